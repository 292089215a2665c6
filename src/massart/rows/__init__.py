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

__all__ = [
    "BLOCK_BYTES",
    "BoolArray",
    "FloatArray",
    "block_rows",
    "check_labels",
    "check_mask",
    "check_matrix",
    "check_weights",
    "precision_of",
    "row_blocks",
]
