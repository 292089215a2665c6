r"""Evidence of many columns in a few matrix products.

With k columns, radial-isotropic position and its sums cost some ten products of n x k and k x k numbers where three do.
The weights :math:`c_i = 1 / |z_i|^2` may be any function of X, so that half of the digits suffice to find them. And
where the columns are no worse conditioned than a hundred, :math:`M = \sum_i c_i x_i x_i^\top` loses nothing when it is
summed as it stands and brought to :math:`z = B^\top x` afterwards: only the rows that disagree are then left to sum for
each formula. Leverages are not computed, but bounded: :math:`c_i z_i^\top (B^\top M B)^{-1} z_i` is at most one over
the smallest eigenvalue, and one of Tyler's steps from the covariance of unit rows brings that near to k / n where rows
are anything like elliptical. Where it does not, this says so, and the pieces of :mod:`massart.isotropy` serve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from massart.rows import BoolArray, FloatArray, in_order, like, namespace_of, to_numpy

COLUMNS, ROWS_PER_COLUMN = 128, 8
"""Columns, and rows for each, from which it pays."""

NEAR_ISOTROPIC = 1.1
"""Largest leverage, in units of k / n, that counts as equal leverage: units of the general way are as large."""

_CONDITION = 1e5  # of the covariance of unit rows
_STEPS = 2
_ROUNDING = 1e-3  # of lengths and sums in float32, by far
_LARGEST = 1e15
_BLOCK, _TASK = 1024, 8192  # rows at a time, whose products stay in the cache; and rows for a thread


@dataclass(frozen=True, slots=True)
class WideRows:
    """Rows of many columns in near-isotropic position.

    Attributes
    ----------
    X : (n, d) array
    rows : (n, d) array
        The same, or where sums of them are made.
    factors : (d,) array
        Powers of two by which columns are multiplied, to be of size 1.
    basis : (d, d) array
        B.
    lengths : (n,) array
        |z|.
    M : (d, d) array
        The sum of c x x', of columns of size 1.
    root : (d, d) array
        One with root' B'MB root = I.
    leverage : float
        L: at least c z'(B'MB)^(-1)z for every row.
    """

    X: FloatArray
    rows: Any
    factors: FloatArray
    basis: FloatArray
    lengths: FloatArray
    M: FloatArray
    root: FloatArray
    leverage: float

    def spectrum(self, agree: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the shares of the evidence that agrees, the smallest first, and their axes after `root`."""
        M_A = self.M - _weighted_gram(self.rows, self.factors, self.lengths, np.flatnonzero(~agree))
        frame = self.basis @ self.root
        shares, axes = np.linalg.eigh(frame.T @ M_A @ frame)
        return shares, axes

    def shares(self, directions: FloatArray) -> FloatArray:
        """Return c (v.x)^2 for each row and each direction v of coefficients, (n, m)."""
        return np.asarray((self.X @ directions / self.lengths[:, None]) ** 2)


def wide_rows(X: FloatArray, exponents: NDArray[np.intp], there: Any = None) -> WideRows | None:
    """Return the rows in near-isotropic position; None where there are few columns, or where that is not so simple.

    Sums are made of `there`, the rows on a device, if these are given.
    """
    n, d = X.shape
    if d < COLUMNS or n < ROWS_PER_COLUMN * d:
        return None
    factors = np.ldexp(1.0, -exponents)
    if max(X.max(), -X.min()) >= _LARGEST / factors.max():
        return None
    rows = X if there is None else there
    everything = np.arange(n)
    lengths = _lengths(rows, factors, None)
    if not lengths.min() > 1 / _LARGEST:
        return None
    gram = _weighted_gram(rows, factors, lengths, everything)
    factor, failed = sla.lapack.dpotrf(gram)
    if failed or sla.lapack.dpocon(factor, np.linalg.norm(gram, 1))[0] * _CONDITION < 1:
        return None
    basis = np.triu(sla.lapack.dtrtri(factor)[0])
    for _ in range(_STEPS):
        lengths = _lengths(rows, factors, basis)
        M = _weighted_gram(rows, factors, lengths, everything)
        M_z = basis.T @ M @ basis
        factor, failed = sla.lapack.dpotrf(M_z)
        if failed:
            return None
        root = np.triu(sla.lapack.dtrtri(factor)[0])
        leverage = (1 + _ROUNDING) / float(np.linalg.eigvalsh(M_z)[0])
        if leverage * n <= NEAR_ISOTROPIC * d:
            return WideRows(X, rows, factors, basis, lengths, M, root, leverage)
        basis = basis @ root
    return None


def _lengths(X: Any, factors: FloatArray, basis: FloatArray | None) -> FloatArray:
    """Return |B'x| for each row, to half of the digits, of columns of size 1."""
    xp = namespace_of(X)
    scales = like(factors, X)
    rough = None if basis is None else like(basis.astype(np.float32), X)

    def lengths_of(block: slice) -> FloatArray:
        rows = xp.astype(X[block, :] * scales, xp.float32)
        images = rows if rough is None else rows @ rough
        return to_numpy(xp.sqrt(xp.vecdot(images, images))).astype(np.float64)

    return np.concatenate(_in_blocks(lambda blocks: np.concatenate([*map(lengths_of, blocks)]), X, len(X)))


def _weighted_gram(X: Any, factors: FloatArray, lengths: FloatArray, index: NDArray[np.intp]) -> FloatArray:
    """Return the sum of x x' / |z|^2 over some rows, of columns of size 1."""
    xp = namespace_of(X)

    def gram_of(block: slice) -> FloatArray:
        chosen = index[block]
        rows = xp.take(X, like(chosen, X), axis=0)
        rows *= like(1 / lengths[chosen, None], X)
        return to_numpy(rows.T @ rows)

    parts = _in_blocks(lambda blocks: sum(map(gram_of, blocks)), X, len(index))
    return np.asarray(sum(parts, np.zeros((X.shape[1], X.shape[1]))) * (factors[:, None] * factors))


def _in_blocks(function: Callable[[list[slice]], Any], X: Any, n: int) -> list[Any]:
    """Return the results of a function on the blocks of n rows, some at a time: the same for any number of threads."""
    if not isinstance(X, np.ndarray):
        return [function([slice(0, n)])] if n else []
    starts = range(0, n, _TASK)
    tasks = [[slice(i, min(i + _BLOCK, n)) for i in range(start, min(start + _TASK, n), _BLOCK)] for start in starts]
    with _blas().limit(limits=1):  # products of a block are too small to be shared
        return list(in_order(function, tasks))


@cache
def _blas() -> Any:
    """Return the control of the threads of matrix products; to look for libraries takes longer than to use it."""
    return ThreadpoolController().select(user_api="blas")
