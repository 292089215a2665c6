"""A matrix whose columns lie apart, as those of a table do: rows are put together when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from massart.rows.arrays import FloatArray, row_blocks


class Columnwise:
    """Columns of numbers as a matrix.

    Parameters
    ----------
    columns : sequence of (n,) arrays
    """

    ndim = 2
    dtype = np.dtype(np.float64)
    made_when_read = True

    def __init__(self, columns: Sequence[FloatArray]) -> None:
        self._columns = columns
        self.shape = (len(columns[0]), len(columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> FloatArray:
        """Return some rows, or with ``[:, j]`` one column."""
        if isinstance(key, tuple):
            rows, j = key
            return self._columns[j][rows]
        first = self._columns[0][key]
        found = np.empty((len(first), len(self._columns)), order="F")
        for j, column in enumerate(self._columns):
            found[:, j] = column[key]
        return found

    def __matmul__(self, w: FloatArray) -> FloatArray:
        """Return the products with coefficients."""
        return np.concatenate([self[rows] @ w for rows in row_blocks(*self.shape)])
