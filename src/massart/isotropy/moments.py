r"""One-pass statistics of rows under a linear map: all that the solvers ever ask of the data.

For rows :math:`x_i` with weights :math:`c_i` and a map :math:`T` (``y = T' x``, rows ``X @ T``), with
:math:`u_i = T^\top x_i / |T^\top x_i|`:

.. math::
    M = \sum_i c_i u_i u_i^\top, \qquad
    \ell = \sum_i c_i \log |T^\top x_i|^2, \qquad
    c = \sum_i c_i .

Each function reads `X` once, block by block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from massart.rows import BoolArray, FloatArray, row_blocks

_ROUNDING_BITS = 40  # float64 has 53; sums and products of a few numbers cost some
_NO_EXPONENT = -100_000  # below the exponent of any ratio of two numbers


@dataclass(frozen=True, slots=True)
class RadialMoments:
    """Sums over rows; see the module's formulas."""

    second: FloatArray  # M, (k, k)
    log_norm: float  # l
    weight: float  # c

    @property
    def psi(self) -> FloatArray:
        """The matrix (k / c) M, which is the identity in radial-isotropic position (Definition 1.4)."""
        return np.asarray(self.second * (len(self.second) / self.weight))


def radial_moments(X: FloatArray, T: FloatArray, weights: FloatArray | None = None) -> RadialMoments:
    """Return the radial moments of the rows of `X` under ``y = T' x``: one pass, ``O(n d k)``.

    Parameters
    ----------
    X : (n, d) array
        Rows, none of which `T` maps to zero.
    T : (d, k) array
    weights : (n,) array, optional
        Row weights; one each by default.
    """
    second = np.zeros((T.shape[1], T.shape[1]))
    log_norm = 0.0
    for block in row_blocks(*X.shape):
        Y = X[block] @ T
        squared = _row_sums_of_squares(Y)
        logs = np.log(squared)
        log_norm += float(logs.sum() if weights is None else weights[block] @ logs)
        Y *= np.sqrt((1.0 if weights is None else weights[block]) / squared)[:, None]
        second += Y.T @ Y
    return RadialMoments(second, log_norm, _total(X, weights))


def fourth_moments(X: FloatArray, T: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Return :math:`K_{ab} = (k / c) \sum_i c_i u_{ia}^2 u_{ib}^2`, (k, k): one pass."""
    k = T.shape[1]
    total = np.zeros((k, k))
    for block in row_blocks(*X.shape):
        Y = X[block] @ T
        Y *= Y
        Y /= Y.sum(axis=1)[:, None]
        if weights is not None:
            Y *= np.sqrt(weights[block])[:, None]
        total += Y.T @ Y
    return np.asarray(total * (k / _total(X, weights)))


def distances(X: FloatArray, T: FloatArray, N: FloatArray) -> FloatArray:
    """Return ``|N' u_i|`` for each row: its distance from the orthogonal complement of the columns of `N`."""
    outwards = T @ N
    found = np.empty(len(X))
    for block in row_blocks(*X.shape):
        found[block] = np.sqrt(_row_sums_of_squares(X[block] @ outwards) / _row_sums_of_squares(X[block] @ T))
    return found


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
        Y = (X[block] if rows is None else X[block][rows[block]]) @ T
        Y /= np.sqrt(_row_sums_of_squares(Y))[:, None]
        R = np.linalg.qr(np.vstack([R, Y]))[1]
    return R


def typical_sizes(X: FloatArray) -> FloatArray:
    """Return a power of two for each column: the geometric mean of its entries, in rows brought to a common size.

    A maximum or a norm would let the few largest entries decide. Entries too small beside the largest of their
    column are left out, since they may be nothing but rounding. A zero column gets 1.
    """
    largest, least, total, count = _exponent_sums(X, _NO_EXPONENT)
    bound = np.maximum(largest - _ROUNDING_BITS, _NO_EXPONENT)
    if (least <= bound).any():
        _, _, total, count = _exponent_sums(X, bound)
    return np.asarray(np.exp2(np.rint(total / np.maximum(count, 1))))


def _exponent_sums(X: FloatArray, above: ArrayLike) -> FloatArray:
    """Return the largest and the least binary exponent in each column, less that of the row, their sum and number.

    Those above a bound count, of entries that are not zero.
    """
    largest, least, total, count = np.outer([_NO_EXPONENT, 0.0, 0.0, 0.0], np.ones(X.shape[1]))
    for block in row_blocks(*X.shape):
        present = X[block] != 0
        exponent = np.frexp(X[block])[1]
        exponent[~present] = _NO_EXPONENT
        exponent -= exponent.max(axis=1)[:, None]
        present &= exponent > above
        exponent[~present] = 0
        np.maximum(largest, exponent.max(axis=0, where=present, initial=_NO_EXPONENT), out=largest)
        np.minimum(least, exponent.min(axis=0), out=least)
        total += exponent.sum(axis=0)
        count += present.sum(axis=0)
    return np.stack([largest, least, total, count])


def _row_sums_of_squares(Y: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", Y, Y))


def _total(X: FloatArray, weights: FloatArray | None) -> float:
    return float(len(X)) if weights is None else float(weights.sum())
