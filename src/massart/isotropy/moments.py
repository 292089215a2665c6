r"""Sums over rows under a linear map: all that the solvers ever ask of the data.

For rows :math:`x_i` with weights :math:`c_i` and a map T (``y = T' x``, rows ``X @ T``), with
:math:`u_i = T^\top x_i / |T^\top x_i|` in k dimensions:

.. math::
    \Psi = \frac{k}{\sum_i c_i} \sum_i c_i u_i u_i^\top, \qquad
    \ell = \frac{1}{\sum_i c_i} \sum_i c_i \log |T^\top x_i|^2 .

Each function reads `X` once, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from massart.rows import BoolArray, FloatArray, row_blocks


@dataclass(frozen=True, slots=True)
class RadialMoments:
    """The identity in radial-isotropic position (Definition 1.4), and the mean logarithm of squared lengths."""

    psi: FloatArray  # (k, k)
    log_norm: float


def radial_moments(X: FloatArray, T: FloatArray, weights: FloatArray | None = None) -> RadialMoments:
    """Return Psi and l of the rows of `X` under ``y = T' x``: one pass, ``O(n d k)``.

    Parameters
    ----------
    X : (n, d) array
        Rows, none of which `T` maps to zero.
    T : (d, k) array
    weights : (n,) array, optional
        Row weights; one each by default.
    """
    psi, logs, total = np.zeros((T.shape[1], T.shape[1])), 0.0, 0.0
    for Y, c in _images(X, T, weights):
        squares = _squared_lengths(Y)
        logs += float(np.sum(c * np.log(squares)))
        total += float(c.sum())
        Y *= np.sqrt(c / squares)[:, None]
        psi += Y.T @ Y
    return RadialMoments(psi * (T.shape[1] / total), logs / total)


def fourth_moments(X: FloatArray, T: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Return :math:`K_{ab} = k \sum_i c_i u_{ia}^2 u_{ib}^2 / \sum_i c_i`, (k, k): one pass."""
    K, total = np.zeros((T.shape[1], T.shape[1])), 0.0
    for Y, c in _images(X, T, weights):
        Y *= Y
        Y *= (np.sqrt(c) / Y.sum(axis=1))[:, None]
        K += Y.T @ Y
        total += float(c.sum())
    return K * (T.shape[1] / total)


def _images(X: FloatArray, T: FloatArray, weights: FloatArray | None) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the images of the rows and their weights, block by block."""
    for block in row_blocks(*X.shape):
        Y = X[block] @ T
        yield Y, np.ones(len(Y)) if weights is None else weights[block]


def distances(X: FloatArray, T: FloatArray, N: FloatArray) -> FloatArray:
    """Return ``|N' u_i|`` for each row: its distance from the orthogonal complement of the columns of `N`."""
    outwards = T @ N
    found = np.empty(len(X))
    for block in row_blocks(*X.shape):
        found[block] = np.sqrt(_squared_lengths(X[block] @ outwards) / _squared_lengths(X[block] @ T))
    return found


def triangular_factor(X: FloatArray, T: FloatArray, rows: BoolArray | None = None) -> FloatArray:
    """Return R of the QR factorization of the unit rows ``u_i``, (at most k, k), by a sequence of small QRs.

    Unlike a Cholesky factor of the second moment it does not square the condition number: singular values of R are
    right to rounding, so it decides ranks.

    Parameters
    ----------
    X, T : (n, d) and (d, k) arrays
    rows : (n,) boolean array, optional
        Rows to use; all by default.
    """
    R = np.zeros((0, T.shape[1]))
    for block in row_blocks(*X.shape):
        Y = (X[block] if rows is None else X[block][rows[block]]) @ T
        Y /= np.sqrt(_squared_lengths(Y))[:, None]
        R = np.asarray(np.linalg.qr(np.vstack([R, Y]))[1])
    return R


def _squared_lengths(Y: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", Y, Y))
