"""Rows, and when a row agrees with a rule.

The arrays that kernels accept; tables of rows behind a few verbs (sample, take, reduce, map); links; agreement, one
definition for every row, every door and any cutting into blocks; progress.
"""

from massart.rows.agreement import (
    EDGE,
    EPS,
    SQUARE_IS_FINITE,
    Agreement,
    Level,
    Verified,
    compare,
    compensated_products,
    doubt_of,
    verify,
)
from massart.rows.ahead import ahead, in_order
from massart.rows.arrays import (
    BoolArray,
    FloatArray,
    check_labels,
    check_mask,
    check_matrix,
    check_vector,
    check_weights,
    clipped,
    floats,
    is_elsewhere,
    is_on_host,
    like,
    matrix_of,
    namespace_of,
    nonzero_counts,
    place_of,
    precision_of,
    row_blocks,
    to_numpy,
)
from massart.rows.files import check_place, replacing, write
from massart.rows.levels import LONG, count_decimals, levels
from massart.rows.link import IDENTITY, RELU, Link
from massart.rows.marks import (
    ACTIVE,
    AGREES,
    DECISIVE,
    IMPOSSIBLE,
    KINDS,
    LAST_PLACE,
    Has,
    Mark,
    Marks,
    speaks,
    tally,
    tally_of,
)
from massart.rows.memory import ArrayRows, ArrayValues, Columnwise, rows_of, times
from massart.rows.progress import Callback, Progress, silent
from massart.rows.rows import Block, Kernel, Rows, Sample, Uses, Values, total_of
from massart.rows.sampling import RUN, Draw, Reservoir
from massart.rows.scaling import exponents, power_of_two, scaled, typical_sizes, with_safe_exponents

# fmt: off
__all__ = [
    "BoolArray", "FloatArray", "check_labels", "check_mask", "check_matrix", "check_vector", "check_weights",
    "nonzero_counts", "precision_of", "row_blocks",
    "clipped", "floats", "is_elsewhere", "is_on_host", "like", "matrix_of", "namespace_of", "place_of", "to_numpy",
    "exponents", "power_of_two", "scaled", "typical_sizes", "with_safe_exponents",
    "Block", "Kernel", "Rows", "Sample", "Uses", "Values", "total_of",
    "ArrayRows", "ArrayValues", "Columnwise", "rows_of", "times",
    "RUN", "Draw", "Reservoir",
    "IDENTITY", "RELU", "Link",
    "EDGE", "EPS", "SQUARE_IS_FINITE", "Agreement", "Level", "Verified", "compare", "compensated_products", "doubt_of",
    "verify", "LONG", "count_decimals", "levels",
    "ACTIVE", "AGREES", "DECISIVE", "IMPOSSIBLE", "KINDS", "LAST_PLACE", "Has", "Mark", "Marks", "speaks", "tally",
    "tally_of",
    "Callback", "Progress", "silent", "ahead", "in_order",
    "check_place", "replacing", "write",
]
# fmt: on
