"""Rows, and when a row agrees with a rule.

The arrays that kernels accept; tables of rows behind a few verbs (sample, take, reduce, map); links; agreement, one
definition for every row, every door and any cutting into blocks; progress.
"""

from massart.rows.agreement import Agreement, Level, Verified, verify
from massart.rows.arrays import (
    BLOCK_BYTES,
    BoolArray,
    FloatArray,
    block_rows,
    check_labels,
    check_mask,
    check_matrix,
    check_weights,
    magnitudes,
    nonzero_counts,
    precision_of,
    row_blocks,
)
from massart.rows.block import Block, Sample, Uses
from massart.rows.levels import levels
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
from massart.rows.memory import ArrayRows, ArrayValues, rows_of
from massart.rows.namespace import is_elsewhere, like, matrix_of, namespace_of, to_numpy
from massart.rows.progress import Callback, Progress, silent
from massart.rows.rows import Kernel, Largest, Rows, Total, Values, total_of

__all__ = [
    "ACTIVE",
    "Agreement",
    "AGREES",
    "ArrayRows",
    "ArrayValues",
    "Block",
    "BLOCK_BYTES",
    "block_rows",
    "BoolArray",
    "Callback",
    "check_labels",
    "check_mask",
    "check_matrix",
    "check_weights",
    "DECISIVE",
    "FloatArray",
    "Has",
    "IDENTITY",
    "IMPOSSIBLE",
    "is_elsewhere",
    "Kernel",
    "KINDS",
    "Largest",
    "LAST_PLACE",
    "Level",
    "levels",
    "like",
    "Link",
    "magnitudes",
    "Mark",
    "Marks",
    "matrix_of",
    "namespace_of",
    "nonzero_counts",
    "precision_of",
    "Progress",
    "RELU",
    "row_blocks",
    "Rows",
    "rows_of",
    "Sample",
    "silent",
    "speaks",
    "tally",
    "tally_of",
    "to_numpy",
    "Total",
    "total_of",
    "Uses",
    "Values",
    "Verified",
    "verify",
]
