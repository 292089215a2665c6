r"""Coordinates in which every robust step is well conditioned, and starts that withstand wrong rows.

**Position.** The rows are written as :math:`z_i = M^\top x_i` with r = rank X columns, and an answer c in these
coordinates is :math:`w = M c`, which lies in the row space: the fit of minimum norm where columns are redundant. With
many rows, M comes from the radial-isotropic decomposition of X and :math:`\omega_i = 1/|z_i|`; the rows
:math:`\omega_i z_i` are of length one and spread over all directions, whatever scales, correlations or heavy tails X
has. With few rows for each column the estimate may have to be shrunk: M is then an orthonormal basis of the row space
of columns of equal spread, but for constant ones, which are so much larger that no shrinkage reaches them.

**Starts** are zero, least squares and L1 with concentration steps (FAST-LTS), and others without. Wrong rows break them
in different ways. Those that lie together in X, a cluster of leverage, are missed by sets of neighbours. And those that
are off by the same amount leave the slopes of least squares right, and only its height wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from massart.isotropy import decompose
from massart.l1 import l1_regression
from massart.rows import Callback, FloatArray, Progress
from massart.search import LeastSquares, quantile

NORMAL_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a standard normal variable."""

WIDE = 10
"""With fewer rows than this for each column, ordinary least squares predicts poorly and shrinking pays."""

RANK = 1e-12
"""Singular values of columns below this fraction of the largest are rounding."""

_CONSTANT = 1e4  # size of a constant column among others of spread 1

SCREENED_ROWS = 2000
"""Planes are compared on a sample of this many rows (20 for each column, if that is more)."""

_L1_WORK = 2e8  # n r^2 up to which L1 regression in radial-isotropic position is worth its price here
_MOST_STEPS = 50
_AT_REST = 1e-9  # relative fall of the mean squares
_OF_HALF = 0.7  # of the scale of half of the rows, to start from: of 40 % wrong rows it holds some (noisy_families)
_NEIGHBOURHOODS, _NEIGHBOURS = 20, 3  # sets of neighbours, and rows a column in them (noisy.py, bad_40_n50_d3)
_IS_CONSTANT = 1e-7


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
    rank = int((sizes > RANK * sizes[0]).sum())
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


@dataclass(frozen=True)
class Positioned:
    """Rows in position, their labels, the share of the whole that each stands for, and the ridge of every fit."""

    Z: FloatArray
    y: FloatArray
    shares: FloatArray
    ridge: float = 0.0

    def residuals(self, C: FloatArray) -> FloatArray:
        """Return the residuals of every row of coefficients `C`, shape (b, n)."""
        return np.asarray(self.y - C @ self.Z.T)

    def normal_equations(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the matrix and the right side of weighted least squares."""
        kept = np.flatnonzero(weights)
        Z, q = self.Z[kept], weights[kept]
        return (Z * q[:, None]).T @ Z, (q * self.y[kept]) @ Z

    def quadratic(self, form: FloatArray) -> FloatArray:
        """Return the value of a quadratic form, a symmetric matrix, at each row."""
        return np.asarray(np.einsum("ij,ij->i", self.Z @ form, self.Z))

    def take(self, index: NDArray[np.intp]) -> Positioned:
        """Return the rows of an index array, with shares that sum to 1 again."""
        shares = self.shares[index]
        return Positioned(self.Z[index], self.y[index], shares / shares.sum(), self.ridge)

    @cached_property
    def least_squares(self) -> LeastSquares:
        """The fits of these rows."""
        return LeastSquares(self.Z, self.y, self.ridge)


def find_starts(position: Position, rows: Positioned, given: FloatArray, half: float, callback: Callback) -> FloatArray:
    """Return coefficients that concentration steps have brought to rest, a row each, the best first.

    The starts that are `given`, (g, r), are followed to the end in any case; `half` is h as a share of the rows.
    """
    r = position.rank
    starts = [np.zeros((1, r)), given, rows.least_squares.fit(rows.shares[None])]
    if len(rows.y) * r * r <= _L1_WORK:
        omega = position.leverage_weights
        starts.append(l1_regression(omega[:, None] * rows.Z, omega * rows.y, sample_weight=rows.shares).coef[None])
    C = np.vstack(starts)
    values, moving, following = np.full(len(C), np.inf), np.arange(len(C)), C.copy()
    for step in range(_MOST_STEPS):
        # The rows that each fits best are solved again, as long as their mean square, with the penalty, falls.
        sizes = np.abs(rows.residuals(following))
        kept = np.where(sizes <= quantile(sizes, rows.shares, half)[:, None], rows.shares, 0.0)
        small = np.where(kept > 0, sizes, 0.0)
        reached = (kept * small * small).sum(axis=1) + rows.ridge * (following * following).sum(axis=1)
        better, falls = reached <= values[moving], reached < values[moving] * (1 - _AT_REST)
        C[moving[better]], values[moving[better]] = following[better], reached[better]
        moving, following = moving[falls], rows.least_squares.fit(kept)[falls]
        if not len(moving):
            break
        callback(Progress("concentration", step + 1, float(values.min()), 0.0))
    return np.asarray(C[np.argsort(values, kind="stable")])


def starting_planes(
    position: Position, rows: Positioned, X: FloatArray, concentrated: FloatArray, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, float]]:
    """Yield planes and scales to separate two modes from, the most promising first.

    `rows` are those of `X`, and `concentrated`, (b, r), is what :func:`find_starts` returns.
    """
    level = _constant_of(rows)
    plain = rows.least_squares.fit(rows.shares[None])[0]
    for plane in (concentrated[0], plain, concentrated[1]):
        height, width = _shortest_half(rows.residuals(plane[None])[0], rows.shares)
        yield plane + height * level, _OF_HALF * width
    for plane in (*_neighbourhoods(position, rows, X, rng), *concentrated[2:]):
        half = float(quantile(np.abs(rows.residuals(plane[None])[0]), rows.shares, 0.5))
        yield plane, _OF_HALF * half / NORMAL_MEDIAN


def _constant_of(rows: Positioned) -> FloatArray:
    """Return the coefficients of the constant 1; zeros where the columns have none."""
    ones = np.ones(len(rows.y))
    level = LeastSquares(rows.Z, ones).fit(rows.shares[None])[0]
    return np.asarray(level if np.abs(rows.Z @ level - 1.0).max() < _IS_CONSTANT else np.zeros_like(level))


def _shortest_half(residuals: FloatArray, shares: FloatArray) -> tuple[float, float]:
    """Return the middle of the shortest interval that holds half of the residuals, and its width as a scale."""
    order = np.argsort(residuals, kind="stable")
    ends, mass = residuals[order], np.cumsum(shares[order])
    last = np.searchsorted(mass, mass - shares[order] + 0.5 - 1e-12)
    inside = last < len(ends)
    widths = np.where(inside, ends[np.minimum(last, len(ends) - 1)] - ends, np.inf)
    first = int(np.argmin(widths))
    held = order[first : last[first] + 1]
    middle = float(shares[held] @ residuals[held] / shares[held].sum())
    return middle, float(widths[first]) / 2 / NORMAL_MEDIAN


def _neighbourhoods(
    position: Position, rows: Positioned, X: FloatArray, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield fits of the rows nearest to random ones, by X alone: clusters of wrong rows are all in, or all out."""
    n, r = rows.Z.shape
    places = X / position.spreads
    size = min(max(n // 4, r + 1), _NEIGHBOURS * r, n - 1)
    for i in rng.choice(n, min(_NEIGHBOURHOODS, n), replace=False, p=rows.shares):
        distances = ((places - places[i]) ** 2).sum(axis=1)
        near = np.argpartition(distances, size)[: size + 1]
        yield LeastSquares(rows.Z[near], rows.y[near]).fit(rows.shares[None, near])[0]
