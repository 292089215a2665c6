"""A matrix whose columns lie apart, as those of a table do: rows are put together when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg.blas import daxpy, idamax

from massart.rows.arrays import FloatArray, row_blocks

CHUNK = 1 << 13
"""Rows whose products stay in a core's own memory while columns are added to them."""


class Columnwise:
    """Columns of numbers, arrays of the same length, as a matrix."""

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

    def products(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the products with coefficients, and for each `CHUNK` of rows how large their terms are at most.

        Every number is read once. Where one is not finite, neither is the product.
        """
        found = np.zeros(len(self))
        sizes = np.zeros(-(-len(self) // CHUNK))
        for k, start in enumerate(range(0, len(self), CHUNK)):
            part = found[start : start + CHUNK]
            for column, coef in zip(self._columns, w.tolist(), strict=True):
                some = column[start : start + CHUNK]
                daxpy(some, part, a=coef)
                sizes[k] += abs(coef * some[idamax(some)])
        return found, sizes

    def __matmul__(self, w: FloatArray) -> FloatArray:
        """Return the products with coefficients."""
        return np.concatenate([self[rows] @ w for rows in row_blocks(*self.shape)])
