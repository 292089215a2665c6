r"""Coordinates in which every robust step is well conditioned, and row weights under which no row has much leverage.

The rows are written as :math:`z_i = M^\top x_i` with r = rank X columns, and an answer c in these coordinates is
:math:`w = M c`, which lies in the row space: the fit of minimum norm where columns are redundant. With many rows, M
comes from the radial-isotropic decomposition of X and :math:`\omega_i = 1/|z_i|`; the rows :math:`\omega_i z_i` are
of length one and spread over all directions, whatever scales, correlations or heavy tails X has. With few rows for
each column the estimate may have to be shrunk: M is then an orthonormal basis of the row space of columns of equal
spread, but for constant ones, which are so much larger that no shrinkage reaches them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.isotropy import decompose
from massart.progress import Callback
from massart.rows import FloatArray

WIDE = 10
"""With fewer rows than this for each column, ordinary least squares predicts poorly and shrinking pays."""

_RANK_TOLERANCE = 1e-12  # of singular values, relative to the largest
_CONSTANT = 1e4  # size of a constant column among others of spread 1


@dataclass(frozen=True, slots=True)
class Position:
    """Rows in coordinates of their span."""

    Z: FloatArray  # (n, r)
    back: FloatArray  # M, (d, r): coefficients w = M c
    leverage_weights: FloatArray  # omega, (n,), 0 for a zero row
    spreads: FloatArray  # (d,), of columns about their medians, 1 for constant ones: rows over them tell neighbours
    wide: bool  # fewer than `WIDE` rows for each column; those of M are orthonormal then

    @property
    def rank(self) -> int:
        """Number of coordinates: the rank of X."""
        return int(self.Z.shape[1])

    def to_coordinates(self, w: FloatArray) -> FloatArray:
        """Return c with ``M c`` equal to the part of `w` in the row space."""
        return np.asarray(np.linalg.lstsq(self.back, w, rcond=None)[0])


def place(X: FloatArray, callback: Callback) -> Position:
    """Choose coordinates for the rows of `X`, all of which count."""
    n, d = X.shape
    spreads = np.abs(X - np.median(X, axis=0)).mean(axis=0)
    spreads[spreads == 0] = 1.0
    if n >= WIDE * d and X.any():
        pieces = decompose(X, callback=callback)
        back = np.hstack([piece.subspace @ piece.matrix.T for piece in pieces])
        Z = np.asarray(X @ back)
        sizes = np.sqrt((Z * Z).mean(axis=0))
        if np.isfinite(sizes).all() and sizes.all():
            # Typical rows of length near one, so that a ridge relative to the trace is relative to each direction.
            back = back / np.median(np.linalg.norm(Z, axis=1)[Z.any(axis=1)])
            Z = np.asarray(X @ back)
            return Position(Z, back, _inverse_lengths(Z), spreads, wide=False)
    units = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), np.abs(X).max(axis=0, initial=0.0) / _CONSTANT)
    units[units == 0] = 1.0
    U, sizes, axes = np.linalg.svd(X / units, full_matrices=False)
    rank = int((sizes > _RANK_TOLERANCE * sizes[0]).sum())
    back = axes[:rank].T / units[:, None]
    if rank < d:  # the same fits, by coefficients in the row space
        span = np.linalg.svd(X, full_matrices=False)[2][:rank]
        back = span.T @ (span @ back)
    wide = n < WIDE * rank
    if not wide:
        back = back / sizes[:rank]
    return Position(np.asarray(X @ back), back, _inverse_lengths(U[:, :rank]), spreads, wide=wide)


def _inverse_lengths(rows: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(rows, axis=1)
    return np.asarray(np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0))
