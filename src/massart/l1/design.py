r"""The rows as the solvers see them: scaled, independent columns, full or mostly zero, without a copy of an array.

Write the caller's matrix as :math:`X_0` (n, p). The solvers work with

.. math:: X = X_0 \, S \, E, \qquad S = \operatorname{diag}(2^{e_1}, \dots, 2^{e_p}),

where S brings every column near 1 (powers of two, so that scaling rounds nothing) and E picks d independent columns.
The product is never formed: S and E act on the short side of each product.

An array is read in place. Of a matrix that is mostly zero, the well-filled columns are kept as an array and the others
in compressed rows: tables with categories are mostly zeros with a few full columns, and their Gram matrix, which
dominates the time of every solver here, is then several times cheaper than with either format alone.

**Rank.** Let the columns c of X (scaled to length 1) be independent and the others depend on them,
:math:`X_o = X_c T`. Pivoted Cholesky elimination of the Gram matrix finds c and T. Squaring X hides condition numbers
above 1e8, so this counts only if every pivot is large and :math:`X_o - X_c T`, recomputed from X, vanishes. In doubt
the triangular factor of X itself decides, gathered block by block. All minimisers w have the same fit, and X and
:math:`M = [I, T]` the same row space: the minimiser of smallest norm is the projection of any of them on the rows of M.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from numpy.typing import NDArray

from massart.rows import FloatArray, check_matrix, power_of_two, row_blocks, scaled

IntArray = NDArray[np.intp]

_SAFE_SCALE = 2.0**100  # columns of sizes up to this, and down to its inverse, are squared without overflow or loss


@dataclass(frozen=True, slots=True)
class DesignMatrix:
    r"""An (n, d) matrix :math:`X = X_0 S E`; columns are stored with the full ones first.

    Attributes
    ----------
    full : array of shape (n, k)
        The columns kept as an array: the caller's own array where all are.
    sparse : `scipy.sparse.csr_array` of shape (n, p - k), or None
        The other columns.
    order : integer array of shape (p,)
        The caller's column behind each stored one.
    scale : array of shape (p,)
        The diagonal of S.
    lengths : array of shape (d,)
        The Euclidean lengths of the columns of X, or of the larger design that it was restricted from.
    columns : integer array of shape (d,), or None
        The stored columns that E picks; None stands for all.
    """

    full: FloatArray
    sparse: Any
    order: IntArray
    scale: FloatArray
    lengths: FloatArray
    columns: IntArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of X."""
        return self.full.shape[0], self.scale.size if self.columns is None else self.columns.size

    def times(self, w: FloatArray) -> FloatArray:
        """Return :math:`X w`, one number a row."""
        v, k = self.spread(w), self.full.shape[1]
        product = self.full @ v[:k]
        if self.sparse is not None:
            product += self.sparse @ v[k:]
        return product

    def transposed_times(self, a: FloatArray) -> FloatArray:
        r"""Return :math:`X^\top a`."""
        product = self.full.T @ a
        if self.sparse is not None:
            product = np.concatenate([product, self.sparse.T @ a])
        product = product * self.scale
        return product if self.columns is None else product[self.columns]

    def sizes(self, w: FloatArray) -> FloatArray:
        r"""Return :math:`\sum_j |x_{ij} w_j|` for every row: the number that rounding errors of `times` scale with."""
        v, (n, k) = np.abs(self.spread(w)), self.full.shape
        product = np.zeros(n) if self.sparse is None else abs(self.sparse) @ v[k:]
        for block in row_blocks(n, k):
            product[block] += np.abs(self.full[block]) @ v[:k]
        return product

    def gram(self, q: FloatArray) -> FloatArray:
        r"""Return :math:`X^\top \operatorname{diag}(q) X` for q >= 0."""
        k = self.full.shape[1]
        gram = np.empty((self.scale.size, self.scale.size))
        gram[:k, :k] = _gram(self.full, q, self.scale[:k])
        if self.sparse is not None:
            # One factor is scaled before the product and the other after it: no square overflows.
            data = self.sparse.data * np.repeat(q, np.diff(self.sparse.indptr))
            data *= self.scale[k:][self.sparse.indices]
            weighted = sp.csr_array((data, self.sparse.indices, self.sparse.indptr), shape=self.sparse.shape).T
            gram[k:, :k] = (weighted @ self.full) * self.scale[:k]
            gram[k:, k:] = (weighted @ self.sparse).toarray() * self.scale[k:]
            gram[:k, k:] = gram[k:, :k].T
        return gram if self.columns is None else gram[np.ix_(self.columns, self.columns)]

    def rows(self, index: IntArray | slice) -> FloatArray:
        """Return some rows of X as an array: a basis, a small pool, a block."""
        rows = self.full[index]
        if self.sparse is not None:
            rows = np.hstack([rows, self.sparse[index].toarray()])
        return rows * self.scale if self.columns is None else rows[:, self.columns] * self.scale[self.columns]

    def blocks(self) -> Iterator[FloatArray]:
        """Yield X in pieces of some rows, as arrays."""
        return (self.rows(block) for block in row_blocks(self.full.shape[0], self.scale.size))

    def restricted(self, index: IntArray) -> DesignMatrix:
        """Return the design of the rows `index` (copied: they are few)."""
        sparse = None if self.sparse is None else self.sparse[index]
        return replace(self, full=self.full[index], sparse=sparse)

    def spread(self, w: FloatArray) -> FloatArray:
        """Return :math:`S E w`, one coefficient a stored column."""
        if self.columns is None:
            return self.scale * w
        spread = np.zeros(self.scale.size)
        spread[self.columns] = w
        spread *= self.scale
        return spread


def _gram(X: FloatArray, q: FloatArray, scale: FloatArray, *, block: int = 1 << 15, narrow: int = 64) -> FloatArray:
    r"""Return :math:`S X^\top \operatorname{diag}(q) X S`; rows with q = 0 cost next to nothing.

    Parameters
    ----------
    X, q, scale : arrays of shapes (n, p), (n,) and (p,)
    block : int
        Numbers in a block: 256 KiB, still in the cache when BLAS reads it again (benchmarks/bench_l1.py, 100,000 x 30).
    narrow : int
        Up to this many columns a general product beats the symmetric one, which does half of the work (bench_l1.py,
        5,000 x 20 and the drug set in a basis).
    """
    n, p = X.shape
    # Squares of extreme columns overflow unless they are scaled first, which costs another sweep over each block.
    extreme = p > 0 and max(scale.max(), 1 / scale.min()) > _SAFE_SCALE
    weighing = np.flatnonzero(q)
    gather = weighing.size < 0.8 * n  # a copy of a few rows costs less than their product
    total = np.zeros((p, p))
    size = max(64, block // max(p, 1))
    for start in range(0, weighing.size if gather else n, size):
        chosen = weighing[start : start + size] if gather else slice(start, start + size)
        part, weight = X[chosen], q[chosen, None]
        if extreme:
            part = part * scale
        if p <= narrow:
            total += part.T @ (part * weight)
        else:
            part = part * np.sqrt(weight)
            total += part.T @ part
    return total if extreme else total * scale * scale[:, None]


class Factor:
    """The Cholesky factor of a Gram matrix, lifted off singularity by the least multiple of its diagonal that works."""

    def __init__(self, gram: FloatArray) -> None:
        diagonal = np.diag(gram)
        self._root = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, float(diagonal.max()) or 1.0))
        correlation = gram * self._root
        correlation *= self._root[:, None]
        for lift in (0.0, 1e-14, 1e-11, 1e-8, 1e-4):
            correlation.flat[:: gram.shape[0] + 1] = 1.0 + lift
            # LAPACK itself: the checks of scipy's wrapper cost more than a small factor.
            self._triangle, failed = sla.lapack.dpotrf(correlation, clean=0)
            if not failed:
                return
        self._triangle = np.eye(gram.shape[0])

    def solve(self, rhs: FloatArray) -> FloatArray:
        """Return the solution of the normal equations."""
        solution: FloatArray = sla.lapack.dpotrs(self._triangle, rhs * self._root)[0]
        return solution * self._root


def check_rows(X: Any) -> Any:
    """Return `X` as a float64 array or a `scipy.sparse.csr_array`, or raise ValueError naming X and its fault."""
    if not sp.issparse(X):
        return check_matrix(X)
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
    return sp.csr_array((check_matrix(csr.data[None, :])[0], csr.indices, csr.indptr), shape=csr.shape)


def design_of(
    X: Any, *, full_column: float = 0.15, mostly_zero: float = 0.1, many_columns: int = 64
) -> tuple[DesignMatrix, DesignMatrix, FloatArray]:
    r"""Return X with its independent columns, X with all of its columns, and T (see the module).

    Parameters
    ----------
    X : array or `scipy.sparse.csr_array`, of shape (n, p), as :func:`check_rows` returns it
    full_column : float
        Share of non-zeros above which a column of a matrix that is mostly zero is kept as an array.
    mostly_zero, many_columns : float, int
        Share of non-zeros below which an array is treated as a sparse matrix, and the columns it takes: BLAS is faster
        with fewer (benchmarks/bench_l1.py, the drug set as a table of zeros and ones, for all three).
    """
    n, p = X.shape
    if not sp.issparse(X) and p >= many_columns:
        non_zero = sum(np.count_nonzero(X[block]) for block in row_blocks(n, p))
        X = sp.csr_array(X) if non_zero < mostly_zero * n * p else X
    if sp.issparse(X):
        filled = np.bincount(X.indices, minlength=p) > full_column * n
        order = np.concatenate([np.flatnonzero(filled), np.flatnonzero(~filled)])
        full, sparse = X[:, filled].toarray(), X[:, ~filled].tocsr()
    else:
        order, sparse = np.arange(p), None
        # BLAS needs one unit stride; anything else would be copied at every product.
        full = X if X.itemsize in X.strides else np.ascontiguousarray(X)
    largest = np.zeros(full.shape[1])
    for block in row_blocks(*full.shape):
        np.maximum(largest, np.maximum(full[block].max(axis=0), -full[block].min(axis=0)), out=largest)
    if sparse is not None:
        largest = np.append(largest, abs(sparse).max(axis=0).toarray().ravel() if sparse.shape[1] else [])
    design = DesignMatrix(full, sparse, order, 1.0 / power_of_two(largest), np.zeros(p))
    gram = design.gram(np.ones(n))
    design = replace(design, lengths=np.sqrt(np.diag(gram)))
    columns, T = _independent(design, gram)
    independent = replace(design, columns=columns, lengths=design.lengths[columns]) if len(columns) < p else design
    return independent, design, T


def _independent(design: DesignMatrix, gram: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the independent columns and T, of the caller's matrix: (d,) and (d, p - d)."""
    n, p = design.shape
    if not design.lengths.any():
        return np.zeros(0, dtype=np.intp), np.zeros((0, p))
    unit = 1.0 / np.where(design.lengths > 0, design.lengths, 1.0)
    # Squaring X costs half of the digits: a pivot above the root of the precision is beyond that doubt.
    clear = np.sqrt(np.finfo(float).eps)
    triangle, order, rank, _ = sla.lapack.dpstrf(gram * unit * unit[:, None], tol=clear, lower=0)
    if rank == p:
        return np.arange(p), np.zeros((p, 0))
    order = order.astype(np.intp) - 1
    unit = design.scale * unit
    X = replace(design, scale=unit)
    triangle, columns, others = triangle[:rank, :], order[:rank], order[rank:]
    T = sla.solve_triangular(triangle[:, :rank], triangle[:, rank:], check_finite=False)
    for refine in (True, False):  # a step of iterative refinement, and the error that is left
        products, squares = np.zeros(T.shape), np.zeros(p - rank)
        for rows in X.blocks():
            rest = rows[:, others] - rows[:, columns] @ T
            products += rows[:, columns].T @ rest
            squares += (rest * rest).sum(axis=0)
        if refine:
            T = T + sla.cho_solve((triangle[:, :rank], False), products, check_finite=False)
    tolerance = max(n, p) * np.finfo(float).eps
    if squares.max() > tolerance**2:
        R = np.zeros((p, p))
        for rows in X.blocks():
            R = sla.qr(np.vstack([R, rows]), mode="r", check_finite=False)[0][:p]
        R, order = sla.qr(R, mode="r", pivoting=True, overwrite_a=True, check_finite=False)
        pivots = np.abs(np.diag(R))
        rank = int(np.count_nonzero(pivots > tolerance * pivots[0]))
        columns, others = order[:rank].astype(np.intp), order[rank:]
        T = sla.solve_triangular(R[:rank, :rank], R[:rank, rank:], check_finite=False)
    T = np.where(np.abs(T) > tolerance, T, 0.0)  # what rounding left is not a dependence
    T = T * unit[columns][:, None] / unit[others]
    return columns, T[:, np.argsort(others)]


def minimum_norm(design: DesignMatrix, T: FloatArray, w: FloatArray) -> FloatArray:
    """Return the smallest coefficients of the caller's columns with the fit of w."""
    columns, coupled, p = design.columns, np.flatnonzero(T.any(axis=1)), design.order.size
    stored = design.spread(w)
    if columns is not None and w[coupled].any():
        k, T = coupled.size, T[coupled]
        M = np.hstack([np.eye(k), T])
        Q = sla.qr(scaled(M.T, 0)[0], mode="economic", check_finite=False)[0]
        wanted = missing = stored[columns[coupled]]
        unit = power_of_two(np.abs(wanted).max())
        smallest = np.zeros(M.shape[1])
        # M w must stay what it is. Where columns differ by many orders of magnitude one projection rounds too coarsely
        # for the large ones; projecting what is missing mends that.
        for _ in range(3):
            smallest += Q @ (Q[:k].T @ (missing / unit)) * unit
            missing = (wanted - M.astype(np.longdouble) @ smallest.astype(np.longdouble)).astype(np.float64)
        stored[columns[coupled]], stored[np.setdiff1d(np.arange(p), columns)] = smallest[:k], smallest[k:]
    coefficients = np.empty(p)
    coefficients[design.order] = stored
    return coefficients
