r"""The rows of a table that need not be in memory, behind the verbs of :mod:`massart.l1.matrix`.

Every verb is one read of the table in blocks: :math:`X w` and :math:`|X| w` give a number a row, :math:`X^\top a` and
:math:`X^\top \operatorname{diag}(q) X` are sums over blocks, and the few rows of a sample, a band or a basis are taken.
The solvers are the same as in memory. They hold some twenty numbers a row, and X stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from massart.l1.matrix import DenseMatrix, IntArray, PieceKernel, SparseMatrix, split
from massart.rows import (
    ArrayValues,
    Block,
    FloatArray,
    Largest,
    Rows,
    Total,
    is_elsewhere,
    like,
    namespace_of,
    to_numpy,
)

FEW = 0.5
"""A share of the rows below which they are taken into memory; of more, the others are passed over in each read."""


@dataclass(frozen=True, slots=True)
class RowsMatrix:
    """The rows of a table.

    Attributes
    ----------
    table : Rows
    chosen : array of int or None
        Those that count; None for all.
    """

    table: Rows
    chosen: IntArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.table.n_rows if self.chosen is None else self.chosen.size, self.table.n_columns

    def times(self, w: FloatArray) -> FloatArray:
        """Return :math:`X w`."""
        return self._mapped(_Times(w))

    def transposed_times(self, a: FloatArray) -> FloatArray:
        r"""Return :math:`X^\top a`."""
        return self.table.reduce(_TransposedTimes(), self._aligned(a))

    def magnitudes_times(self, w: FloatArray) -> FloatArray:
        """Return :math:`|X| w`."""
        return self._mapped(_Times(w, magnitudes=True))

    def column_maxima(self) -> FloatArray:
        r"""Return :math:`\max_i |x_{ij}|` for every column; all numbers must be finite, and this read tells."""
        largest = self.table.reduce(_Maxima(), *self._present()).values
        if not np.isfinite(largest).all():
            raise ValueError(self.table.fault())
        return largest

    def gram(self, q: FloatArray, scale: FloatArray | None) -> FloatArray:
        r"""Return :math:`S X^\top \operatorname{diag}(q) X S` for q >= 0."""
        return self.table.reduce(_Gram(scale), self._aligned(q))

    def reduce(self, kernel: PieceKernel) -> Any:
        """Return the sum of ``kernel(rows)`` over pieces of the rows."""
        return self.table.reduce(_Pieces(kernel), *self._present()).total

    def rows(self, index: IntArray | slice) -> FloatArray:
        """Return some rows as an array."""
        places = np.arange(self.shape[0])[index]
        return self.table.take(places if self.chosen is None else self.chosen[places]).X

    def restricted(self, index: IntArray) -> DenseMatrix | RowsMatrix:
        """Return some rows as a matrix of their own: in memory if they are few."""
        if index.size < FEW * self.shape[0]:
            return DenseMatrix(self.rows(index))
        return replace(self, chosen=index if self.chosen is None else self.chosen[index])

    def for_highs(self) -> None:
        """Return None: a table that need not be in memory is not handed over."""

    def _mapped(self, kernel: _Times) -> FloatArray:
        values = self.table.map(kernel).to_numpy()
        # A copy: the solvers write into what they get.
        return values.copy() if self.chosen is None else values[self.chosen]

    def _present(self) -> tuple[ArrayValues, ...]:
        return () if self.chosen is None else (self._aligned(np.ones(self.chosen.size)),)

    def _aligned(self, values: FloatArray) -> ArrayValues:
        if self.chosen is None:
            return ArrayValues(values)
        spread = np.zeros(self.table.n_rows)
        spread[self.chosen] = values
        return ArrayValues(spread)


def _rows_of(block: Block) -> DenseMatrix | SparseMatrix:
    """Return the rows of a block in memory, without their constant column."""
    plain = replace(block, intercept=False)
    return DenseMatrix(plain.dense()) if isinstance(block.rows, np.ndarray) else split(sp.csr_array(block.rows))


def _beside(values: Any, X: Any) -> Any:
    """Return the values of rows where these are: some tables bring them there, others leave them in memory."""
    return values if is_elsewhere(values) else like(values, X)


@dataclass(frozen=True, slots=True)
class _Times:
    """The kernel of :math:`X w` and :math:`|X| w`."""

    w: FloatArray
    magnitudes: bool = False

    def __call__(self, block: Block) -> Any:
        if not self.magnitudes:
            return block.times(self.w[:, None])[:, 0]
        columns = self.w[:-1] if block.intercept else self.w
        if is_elsewhere(block.rows):
            X = replace(block, intercept=False).dense()
            product = namespace_of(X).abs(X) @ like(columns, X)
        else:
            product = _rows_of(block).magnitudes_times(columns)
        return product + float(self.w[-1]) if block.intercept else product


@dataclass(frozen=True, slots=True)
class _TransposedTimes:
    r"""The kernel of :math:`X^\top a`."""

    def __call__(self, block: Block, a: Any) -> FloatArray:
        if is_elsewhere(block.rows):
            X = replace(block, intercept=False).dense()
            product = to_numpy(_beside(a, X) @ X)
        else:
            product = np.asarray(block.rows.T @ a)
        return np.append(product, float(namespace_of(a).sum(a))) if block.intercept else product


@dataclass(frozen=True, slots=True)
class _Gram:
    r"""The kernel of :math:`S X^\top \operatorname{diag}(q) X S`."""

    scale: FloatArray | None

    def __call__(self, block: Block, q: Any) -> FloatArray:
        scale = None if self.scale is None else self.scale[: block.rows.shape[1]]
        if is_elsewhere(block.rows):
            X = replace(block, intercept=False).dense()
            X = X if scale is None else X * like(scale, X)
            root = namespace_of(X).sqrt(_beside(q, X))
            weighted = X * root[:, None]
            gram = to_numpy(weighted.T @ weighted)
        else:
            gram = _rows_of(block).gram(q, scale)
        if not block.intercept:
            return gram
        last = _TransposedTimes()(block, q)
        if self.scale is not None:
            last = last * self.scale * self.scale[-1]
        return np.block([[gram, last[:-1, None]], [last]])


@dataclass(frozen=True, slots=True)
class _Maxima:
    """The kernel of the largest magnitude in every column."""

    def __call__(self, block: Block, present: Any = None) -> Largest:
        if is_elsewhere(block.rows):
            X = block.dense()
            xp = namespace_of(X)
            sizes = xp.abs(X) if present is None else xp.abs(X) * _beside(present, X)[:, None]
            return Largest(to_numpy(xp.max(sizes, axis=0)))
        some = block if present is None else block.take(present > 0)
        largest = _rows_of(some).column_maxima()
        return Largest(np.append(largest, 1.0) if block.intercept else largest)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A kernel of rows in memory as one of blocks."""

    kernel: PieceKernel

    def __call__(self, block: Block, present: Any = None) -> Total:
        X = to_numpy(block.dense())
        if present is not None:
            X = X[to_numpy(present) > 0]
        return Total(DenseMatrix(X).reduce(self.kernel) if len(X) else None)
