r"""The design as the solvers see it: scaled, independent columns, without a copy of the caller's numbers.

Write the caller's matrix as :math:`X_0` (n, p). The solvers work with

.. math:: X = X_0 \, S \, E, \qquad S = \operatorname{diag}(2^{e_1}, \dots, 2^{e_p}),

where S brings every column near 1 (powers of two, so that scaling rounds nothing) and E picks d independent columns.
The product is never formed: S and E act on the short side of each verb.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from massart.l1.matrix import IntArray, Matrix, PieceKernel
from massart.rows import FloatArray

SAFE_SCALE = 2.0**100
"""Columns of sizes up to this, and down to its inverse, are squared without overflow or loss before they are scaled."""


@dataclass(frozen=True, slots=True)
class Design:
    r"""An (n, d) matrix :math:`X = X_0 S E` behind the verbs the solvers need.

    Attributes
    ----------
    matrix : Matrix of shape (n, p)
        The caller's numbers.
    scale : array of shape (p,)
        The diagonal of S.
    lengths : array of shape (d,)
        The Euclidean lengths of the columns of X, or of the larger design it was restricted from.
    columns : array of shape (d,) or None
        The columns that E picks; None stands for all.
    """

    matrix: Matrix
    scale: FloatArray
    lengths: FloatArray
    columns: IntArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of X."""
        n, p = self.matrix.shape
        return n, p if self.columns is None else self.columns.size

    def times(self, w: FloatArray) -> FloatArray:
        """Return :math:`X w`, one number a row."""
        return self.matrix.times(self.original(w))

    def transposed_times(self, a: FloatArray) -> FloatArray:
        r"""Return :math:`X^\top a`."""
        product = self.matrix.transposed_times(a) * self.scale
        return product if self.columns is None else product[self.columns]

    def sizes(self, w: FloatArray) -> FloatArray:
        r"""Return :math:`\sum_j |x_{ij} w_j|` for every row: the number that rounding errors of `times` scale with."""
        return self.matrix.magnitudes_times(np.abs(self.original(w)))

    def gram(self, q: FloatArray) -> FloatArray:
        r"""Return :math:`X^\top \operatorname{diag}(q) X` for q >= 0."""
        # Squares of extreme columns overflow unless they are scaled first, which costs another sweep over each block.
        if self.scale.max() > SAFE_SCALE or self.scale.min() < 1 / SAFE_SCALE:
            gram = self.matrix.gram(q, self.scale)
        else:
            gram = self.matrix.gram(q, None)
            gram *= self.scale[:, None] * self.scale
        return gram if self.columns is None else gram[np.ix_(self.columns, self.columns)]

    def reduce(self, kernel: PieceKernel) -> Any:
        """Return the sum of ``kernel(rows)`` over pieces of X."""
        return self.matrix.reduce(_Scaled(kernel, self.scale, self.columns))

    def rows(self, index: IntArray | slice) -> FloatArray:
        """Return some rows of X as an array: a basis, a small pool."""
        return _scaled(self.matrix.rows(index), self.scale, self.columns)

    def restricted(self, index: IntArray) -> Design:
        """Return the design of the rows `index` (copied: they are few)."""
        return replace(self, matrix=self.matrix.restricted(index))

    def original(self, w: FloatArray) -> FloatArray:
        """Return :math:`S E w`, the coefficients of the caller's columns."""
        if self.columns is None:
            return self.scale * w
        coefficients = np.zeros(self.scale.size)
        coefficients[self.columns] = w
        coefficients *= self.scale
        return coefficients


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A kernel of rows of X as one of rows of the caller's."""

    kernel: PieceKernel
    scale: FloatArray
    columns: IntArray | None

    def __call__(self, rows: FloatArray) -> Any:
        return self.kernel(_scaled(rows, self.scale, self.columns))


def _scaled(rows: FloatArray, scale: FloatArray, columns: IntArray | None) -> FloatArray:
    if columns is None:
        return rows * scale
    rows = rows[:, columns]
    rows *= scale[columns]
    return rows
