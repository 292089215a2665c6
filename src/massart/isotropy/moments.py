r"""One-pass statistics of rows under a linear map: all that the solvers ever ask of the data.

For rows :math:`x_i` with weights :math:`c_i` and a map :math:`T` (``y = T' x``, rows ``X @ T``), with
:math:`u_i = T^\top x_i / |T^\top x_i|`:

.. math::
    M = \sum_i c_i u_i u_i^\top, \qquad
    \ell = \sum_i c_i \log |T^\top x_i|^2, \qquad
    c = \sum_i c_i .

Each function reads `X` once, block by block, through buffers that are allocated once. The results are sums over rows:
a chunked, distributed or GPU execution calls the same function on each chunk and adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray, block_rows, row_blocks
from massart.rows.scaling import exponents as exponents

_ROUNDING_BITS = 40  # float64 has 53; sums and products of a few numbers cost some
_NO_EXPONENT = -100_000  # below the exponent of any ratio of two numbers


@dataclass(frozen=True, slots=True)
class RadialMoments:
    """Sums over rows; see the module's formulas. Moments of disjoint sets of rows add."""

    second: FloatArray  # M, (k, k)
    log_norm: float  # l
    weight: float  # c

    def __add__(self, other: RadialMoments) -> RadialMoments:
        return RadialMoments(self.second + other.second, self.log_norm + other.log_norm, self.weight + other.weight)

    @property
    def psi(self) -> FloatArray:
        """The matrix (k / c) M, which is the identity in radial-isotropic position (Definition 1.4)."""
        return self.second * (len(self.second) / self.weight)


def radial_moments(
    X: FloatArray, T: FloatArray, weights: FloatArray | None = None, *, lengths: FloatArray | None = None
) -> RadialMoments:
    """Return the radial moments of the rows of `X` under ``y = T' x``: one pass, ``O(n d k)``.

    Parameters
    ----------
    X : (n, d) array
        Rows, none of which `T` maps to zero.
    T : (d, k) array
    weights : (n,) array, optional
        Row weights; one each by default.
    lengths : (n,) array, optional
        Receives ``|T' x_i|^2``.
    """
    n, k = X.shape[0], T.shape[1]
    second = np.zeros((k, k))
    product = np.empty((k, k))
    images = np.empty((min(n, block_rows(max(X.shape[1], k))), k))
    log_norm = 0.0
    for block in row_blocks(n, max(X.shape[1], k)):
        Y = images[: block.stop - block.start]
        np.matmul(X[block], T, out=Y)
        squared = np.einsum("ij,ij->i", Y, Y)
        if lengths is not None:
            lengths[block] = squared
        if weights is None:
            log_norm += float(np.log(squared).sum())
            Y /= np.sqrt(squared)[:, None]
        else:
            log_norm += float(weights[block] @ np.log(squared))
            Y *= np.sqrt(weights[block] / squared)[:, None]
        second += np.matmul(Y.T, Y, out=product)
    return RadialMoments(second, log_norm, float(n) if weights is None else float(weights.sum()))


def fourth_moments(X: FloatArray, T: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Return :math:`K_{ab} = (k / c) \sum_i c_i u_{ia}^2 u_{ib}^2`, (k, k): one pass."""
    n, k = X.shape[0], T.shape[1]
    total = np.zeros((k, k))
    for block in row_blocks(n, max(X.shape[1], k)):
        Y = X[block] @ T
        np.square(Y, out=Y)
        Y /= Y.sum(axis=1)[:, None]
        if weights is not None:
            Y *= np.sqrt(weights[block])[:, None]
        total += Y.T @ Y
    return np.asarray(total * (k / (n if weights is None else float(weights.sum()))))


def squared_lengths(X: FloatArray, T: FloatArray) -> FloatArray:
    """Return ``|T' x_i|^2`` for each row."""
    lengths = np.empty(X.shape[0])
    for block in row_blocks(X.shape[0], max(X.shape[1], T.shape[1])):
        Y = X[block] @ T
        lengths[block] = np.einsum("ij,ij->i", Y, Y)
    return lengths


def triangular_factor(X: FloatArray, T: FloatArray, rows: BoolArray | None = None) -> FloatArray:
    """Return R of the QR factorization of the unit rows ``u_i``, (at most k, k), by a sequence of small QRs.

    Unlike a Cholesky factor of the second moment it does not square the condition number: singular values of R are
    right to rounding, so it decides ranks.

    Parameters
    ----------
    rows : (n,) boolean array, optional
        Rows to use; all by default.
    """
    R = np.zeros((0, T.shape[1]))
    for block in row_blocks(*X.shape):
        B = X[block] if rows is None else X[block][rows[block]]
        Y = B @ T
        Y /= np.sqrt(np.einsum("ij,ij->i", Y, Y))[:, None]
        R = np.linalg.qr(np.vstack([R, Y]))[1]
    return R


def distances(X: FloatArray, T: FloatArray, N: FloatArray) -> FloatArray:
    """Return ``|N' u_i|`` for each row: its distance from the orthogonal complement of the columns of `N`."""
    return np.sqrt(squared_lengths(X, T @ N) / squared_lengths(X, T))


def typical_sizes(X: FloatArray) -> FloatArray:
    """Return a power of two for each column: the geometric mean of its entries, in rows brought to a common size.

    A maximum or a norm would let the few largest entries decide. Entries too small beside the largest of their
    column are left out, since they may be nothing but rounding. A zero column gets 1.
    """
    largest = np.full(X.shape[1], _NO_EXPONENT)
    for block in row_blocks(*X.shape):
        np.maximum(largest, _relative_exponents(X[block]).max(axis=0), out=largest)
    total = np.zeros(X.shape[1])
    count = np.zeros(X.shape[1])
    for block in row_blocks(*X.shape):
        exponent = _relative_exponents(X[block])
        kept = exponent > np.maximum(largest - _ROUNDING_BITS, _NO_EXPONENT)
        total += np.where(kept, exponent, 0).sum(axis=0)
        count += kept.sum(axis=0)
    return np.exp2(np.rint(total / np.maximum(count, 1)))


def _relative_exponents(X: FloatArray) -> NDArray[np.intc]:
    """Return the binary exponent of each entry less that of the largest entry of its row; far below for zeros."""
    return np.where(X != 0, np.frexp(X)[1] - exponents(X, axis=1)[:, None], _NO_EXPONENT)
