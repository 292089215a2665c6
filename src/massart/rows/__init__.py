"""Rows: the arrays that kernels accept, and tables of rows behind a few verbs (sample, take, reduce, map)."""

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
from massart.rows.memory import ArrayRows, ArrayValues, rows_of
from massart.rows.namespace import is_elsewhere, like, matrix_of, namespace_of, to_numpy
from massart.rows.rows import Kernel, Largest, Rows, Total, Values, total_of

__all__ = [
    "ArrayRows",
    "ArrayValues",
    "BLOCK_BYTES",
    "Block",
    "BoolArray",
    "FloatArray",
    "Kernel",
    "Largest",
    "Rows",
    "Sample",
    "Total",
    "Uses",
    "Values",
    "block_rows",
    "check_labels",
    "check_mask",
    "check_matrix",
    "check_weights",
    "is_elsewhere",
    "like",
    "magnitudes",
    "matrix_of",
    "namespace_of",
    "nonzero_counts",
    "precision_of",
    "row_blocks",
    "rows_of",
    "to_numpy",
    "total_of",
]
