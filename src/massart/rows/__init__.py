"""Rows: the arrays that kernels accept, and tables of rows behind three verbs (sample, reduce, map)."""

from massart.rows.arrays import (
    BLOCK_BYTES,
    BoolArray,
    FloatArray,
    block_rows,
    check_labels,
    check_mask,
    check_matrix,
    check_weights,
    precision_of,
    row_blocks,
)
from massart.rows.table import ArrayRows, Block, Rows, Sample

__all__ = [
    "ArrayRows",
    "BLOCK_BYTES",
    "Block",
    "BoolArray",
    "FloatArray",
    "Rows",
    "Sample",
    "block_rows",
    "check_labels",
    "check_mask",
    "check_matrix",
    "check_weights",
    "precision_of",
    "row_blocks",
]
