r"""The caller's matrix behind a few verbs, dense or mostly zero.

The solvers ask for :math:`X w`, :math:`X^\top a`, :math:`X^\top \operatorname{diag}(q) X` and a few rows at a time.
Two classes answer within a block of rows of extra memory:

* :class:`DenseMatrix` reads the caller's array in place.
* :class:`SparseMatrix` keeps the well-filled columns of a sparse matrix as an array and the others in compressed rows.
  Tables with categories are mostly zeros with a few full columns. Their Gram matrix, which dominates the time of every
  solver here, is then several times cheaper than with either format alone: BLAS for the pairs of full columns, work
  in proportion to the stored numbers for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from massart.rows import FloatArray, block_rows, check_matrix, row_blocks

IntArray = NDArray[np.intp]

PieceKernel: TypeAlias = Callable[[FloatArray], Any]
"""Called with some rows as an array; what it returns is added."""

GRAM_BLOCK = 1 << 15
"""Numbers in a block of a Gram matrix: 256 KiB, so that a block is still in the cache when BLAS reads it again."""

NARROW = 64
"""Up to so many columns a general product beats the symmetric one (BLAS's syrk) that saves half of the work."""

FULL_COLUMN = 0.15
"""The share of non-zeros above which a column is kept as an array."""

MOSTLY_ZERO = 0.1
"""The share of non-zeros below which an array is treated as a sparse matrix ..."""

MANY_COLUMNS = 64
"""... if it has this many columns; with fewer, BLAS is faster than any bookkeeping."""


@dataclass(frozen=True, slots=True)
class DenseMatrix:
    """An array (n, p) with one unit stride."""

    array: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, p = self.array.shape
        return n, p

    def times(self, w: FloatArray) -> FloatArray:
        """Return :math:`X w`."""
        return self.array @ w

    def transposed_times(self, a: FloatArray) -> FloatArray:
        r"""Return :math:`X^\top a`."""
        return self.array.T @ a

    def magnitudes_times(self, w: FloatArray) -> FloatArray:
        """Return :math:`|X| w`."""
        n, p = self.shape
        product = np.empty(n)
        buffer = np.empty((min(n, block_rows(p)), p))
        for block in row_blocks(n, p):
            magnitudes = np.abs(self.array[block], out=buffer[: block.stop - block.start])
            np.dot(magnitudes, w, out=product[block])
        return product

    def column_maxima(self) -> FloatArray:
        r"""Return :math:`\max_i |x_{ij}|` for every column."""
        n, p = self.shape
        largest = np.zeros(p)
        for block in row_blocks(n, p):
            np.maximum(largest, self.array[block].max(axis=0), out=largest)
            np.maximum(largest, -self.array[block].min(axis=0), out=largest)
        return largest

    def gram(self, q: FloatArray, scale: FloatArray | None) -> FloatArray:
        r"""Return :math:`S X^\top \operatorname{diag}(q) X S` for q >= 0; rows with q = 0 cost next to nothing."""
        n, p = self.shape
        rows = np.flatnonzero(q)
        gather = rows.size < 0.8 * n
        total = np.zeros((p, p))
        size = max(64, GRAM_BLOCK // p)
        buffers = np.empty((2, min(n, size), p))
        for start in range(0, rows.size if gather else n, size):
            if gather:
                chosen = rows[start : start + size]
                part, weight = buffers[0, : chosen.size], q[chosen, None]
                np.take(self.array, chosen, axis=0, out=part, mode="clip")
            else:
                part, weight = self.array[start : start + size], q[start : start + size, None]
            if scale is not None:
                part = np.multiply(part, scale, out=buffers[0, : part.shape[0]])
            weighted = buffers[1, : part.shape[0]]
            if p <= NARROW:
                total += part.T @ np.multiply(part, weight, out=weighted)
            else:
                np.multiply(part, np.sqrt(weight), out=weighted)
                total += weighted.T @ weighted
        return total

    def reduce(self, kernel: PieceKernel) -> Any:
        """Return the sum of ``kernel(rows)`` over pieces of the rows."""
        return _over_pieces(self, kernel)

    def rows(self, index: IntArray | slice) -> FloatArray:
        """Return some rows as an array."""
        return self.array[index]

    def restricted(self, index: IntArray) -> DenseMatrix:
        """Return some rows as a matrix of their own."""
        return DenseMatrix(self.array[index])

    def for_highs(self) -> Any:
        """Return the matrix in the form that `scipy.optimize.linprog` takes."""
        return self.array


@dataclass(frozen=True, slots=True)
class SparseMatrix:
    """A matrix (n, p) in two parts: columns `order[:k]` as an array, the others in compressed rows."""

    full: FloatArray
    sparse: Any
    order: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.full.shape[0], self.order.size

    def _parts(self) -> tuple[IntArray, IntArray]:
        k = self.full.shape[1]
        return self.order[:k], self.order[k:]

    def times(self, w: FloatArray) -> FloatArray:
        """Return :math:`X w`."""
        full, sparse = self._parts()
        product: FloatArray = self.sparse @ w[sparse]
        product += self.full @ w[full]
        return product

    def transposed_times(self, a: FloatArray) -> FloatArray:
        r"""Return :math:`X^\top a`."""
        product = np.empty(self.order.size)
        full, sparse = self._parts()
        product[full] = self.full.T @ a
        product[sparse] = self.sparse.T @ a
        return product

    def magnitudes_times(self, w: FloatArray) -> FloatArray:
        """Return :math:`|X| w`."""
        full, sparse = self._parts()
        product: FloatArray = abs(self.sparse) @ w[sparse]
        product += DenseMatrix(self.full).magnitudes_times(w[full])
        return product

    def column_maxima(self) -> FloatArray:
        r"""Return :math:`\max_i |x_{ij}|` for every column."""
        largest = np.empty(self.order.size)
        full, sparse = self._parts()
        largest[full] = DenseMatrix(self.full).column_maxima()
        largest[sparse] = abs(self.sparse).max(axis=0).toarray().ravel() if sparse.size else 0.0
        return largest

    def gram(self, q: FloatArray, scale: FloatArray | None) -> FloatArray:
        r"""Return :math:`S X^\top \operatorname{diag}(q) X S` for q >= 0."""
        n, k = self.full.shape
        root = np.sqrt(q)
        data = self.sparse.data * np.repeat(root, np.diff(self.sparse.indptr))
        if scale is not None:
            data *= scale[self._parts()[1]][self.sparse.indices]
        scaled = sp.csr_array((data, self.sparse.indices, self.sparse.indptr), shape=self.sparse.shape)
        gram = np.zeros((self.order.size, self.order.size))
        gram[k:, k:] = (scaled.T @ scaled).toarray()
        buffer = np.empty((min(n, block_rows(k)), k))
        for block in row_blocks(n, k):
            part = np.multiply(self.full[block], root[block, None], out=buffer[: block.stop - block.start])
            if scale is not None:
                part *= scale[self._parts()[0]]
            gram[:k, :k] += part.T @ part
            gram[k:, :k] += scaled[block].T @ part
        gram[:k, k:] = gram[k:, :k].T
        place = np.argsort(self.order)
        return gram[np.ix_(place, place)]

    def reduce(self, kernel: PieceKernel) -> Any:
        """Return the sum of ``kernel(rows)`` over pieces of the rows."""
        return _over_pieces(self, kernel)

    def rows(self, index: IntArray | slice) -> FloatArray:
        """Return some rows as an array."""
        full, sparse = self._parts()
        part = self.full[index]
        rows = np.empty((part.shape[0], self.order.size))
        rows[:, full] = part
        rows[:, sparse] = self.sparse[index].toarray()
        return rows

    def restricted(self, index: IntArray) -> SparseMatrix:
        """Return some rows as a matrix of their own."""
        return SparseMatrix(self.full[index], self.sparse[index], self.order)

    def for_highs(self) -> Any:
        """Return the matrix in the form that `scipy.optimize.linprog` takes."""
        return sp.hstack([sp.csr_array(self.full), self.sparse], format="csc")[:, np.argsort(self.order)]


class Matrix(Protocol):
    """What the solvers ask of a matrix."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def times(self, w: FloatArray) -> FloatArray:
        """Return :math:`X w`."""

    def transposed_times(self, a: FloatArray) -> FloatArray:
        r"""Return :math:`X^\top a`."""

    def magnitudes_times(self, w: FloatArray) -> FloatArray:
        """Return :math:`|X| w`."""

    def column_maxima(self) -> FloatArray:
        r"""Return :math:`\max_i |x_{ij}|` for every column."""

    def gram(self, q: FloatArray, scale: FloatArray | None) -> FloatArray:
        r"""Return :math:`S X^\top \operatorname{diag}(q) X S` for q >= 0; None stands for S = I."""

    def reduce(self, kernel: PieceKernel) -> Any:
        """Return the sum of ``kernel(rows)`` over pieces of the rows."""

    def rows(self, index: IntArray | slice) -> FloatArray:
        """Return some rows as an array."""

    def restricted(self, index: IntArray) -> Matrix:
        """Return some rows as a matrix of their own."""

    def for_highs(self) -> Any:
        """Return the matrix in the form that `scipy.optimize.linprog` takes, or None."""


def _over_pieces(matrix: Matrix, kernel: PieceKernel) -> Any:
    total = None
    for block in row_blocks(*matrix.shape):
        part = kernel(matrix.rows(block))
        total = part if total is None else total + part
    return total


def check_rows(X: Any) -> Matrix:
    """Return `X`, an array or a SciPy sparse matrix, as the class that suits it.

    Raises
    ------
    ValueError
        Naming X and what is wrong with it.
    """
    if sp.issparse(X):
        return split(_check_sparse(X))
    array = check_matrix(X)
    n, p = array.shape
    if p >= MANY_COLUMNS:
        non_zero = sum(np.count_nonzero(array[block]) for block in row_blocks(n, p))
        if non_zero < MOSTLY_ZERO * n * p:
            return split(sp.csr_array(array))
    # BLAS needs one unit stride; anything else would be copied at every product.
    return DenseMatrix(array if 8 in array.strides else np.ascontiguousarray(array))


def _check_sparse(X: Any) -> Any:
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be a matrix with at least one row and one column, got shape {X.shape}")
    csr = sp.csr_array(X, copy=True)
    csr.sum_duplicates()
    if not csr.nnz:
        return csr.astype(np.float64)
    # The checks of dense values apply to the stored ones; only the place has to be looked up.
    if csr.data.dtype.kind == "f" and not np.isfinite(csr.data).all():
        entry = int(np.flatnonzero(~np.isfinite(csr.data))[0])
        row = int(np.searchsorted(csr.indptr, entry, side="right")) - 1
        value = "NaN" if np.isnan(csr.data[entry]) else str(csr.data[entry])
        raise ValueError(f"X must be finite, got {value} at row {row}, column {int(csr.indices[entry])}")
    data = check_matrix(csr.data[None, :])[0]
    return sp.csr_array((data, csr.indices, csr.indptr), shape=csr.shape)


def split(csr: Any) -> SparseMatrix:
    """Return a sparse matrix in compressed rows with its well-filled columns as an array."""
    n, p = csr.shape
    filled = np.bincount(csr.indices, minlength=p) > FULL_COLUMN * n
    order = np.concatenate([np.flatnonzero(filled), np.flatnonzero(~filled)])
    return SparseMatrix(csr[:, filled].toarray(), csr[:, ~filled].tocsr(), order)
