r"""High-breakdown starts: many small random fits, each improved by concentration steps (FAST-LTS).

Least trimmed squares looks for

.. math:: \min_c \sum_{i \le h} r^2_{(i)}(c), \qquad r_i(c) = y_i - z_i^\top c ,

the sum of the h smallest squared residuals. A concentration step keeps the h rows that c fits best and solves them by
least squares; it never increases the sum. Two steps from each random start tell good starts from bad ones, and the
best ten are followed to the end. All starts are stepped together: a step is one product with the matrix of residuals
and one with that of the outer products :math:`z_i z_i^\top`.

References
----------
Rousseeuw and Van Driessen (2006), *Computing LTS regression for large data sets*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.l1 import l1_regression
from massart.progress import Callback, Progress
from massart.robust.biweight import quantile
from massart.robust.position import Position
from massart.rows import FloatArray

SCREENED_ROWS = 2000
"""Random starts are compared on a sample of this many rows (20 for each column, if that is more)."""

_MOST_STARTS = 500
_FEWEST_STARTS = 10
_BEST = 10
_SCREEN_WORK = 4e9  # multiplications for the comparison of random starts
_L1_WORK = 2e8  # n r^2 up to which L1 regression in radial-isotropic position is worth its price here
_MOST_STEPS = 50
_RIDGE = 1e-10  # relative to the mean eigenvalue: makes a singular subset solvable, and changes no other
_UNREACHED = 1e-8  # share of a direction's rows that must be near for the direction to count as fitted
_VOTERS = 4  # rows for each direction, without which there is no majority to speak of
_OUTER_NUMBERS = 1 << 22  # n r^2 up to which the outer products are stored


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in position, their labels, the share of the whole that each stands for, and the ridge of every fit."""

    Z: FloatArray
    y: FloatArray
    shares: FloatArray
    ridge: float = 0.0

    def residuals(self, C: FloatArray) -> FloatArray:
        """Return the residuals of every row of coefficients `C`, shape (b, n)."""
        return np.asarray(self.y - C @ self.Z.T)

    def take(self, index: FloatArray) -> Rows:
        """Return the rows of an index array, with shares that sum to 1 again."""
        shares = self.shares[index]
        return Rows(self.Z[index], self.y[index], shares / shares.sum(), self.ridge)


def find_starts(
    position: Position, rows: Rows, given: FloatArray, half: float, rng: np.random.Generator, callback: Callback
) -> FloatArray:
    """Return coefficients that concentration steps have brought to rest, a row each, the best first.

    Parameters
    ----------
    position : Position
        Gives the leverage weights of the random and L1 fits.
    rows : Rows
    given : array of shape (g, r)
        Starts that are followed to the end in any case.
    half : float
        h as a share of the rows.
    rng : numpy.random.Generator
    callback : callable
    """
    r = position.rank
    starts = [np.zeros(r), *given]
    whole = _solve(_gram(rows, rows.shares[None]), (rows.shares * rows.y) @ rows.Z, rows.ridge)[0]
    starts.append(whole)
    if len(rows.y) * r * r <= _L1_WORK:
        omega = position.leverage_weights
        starts.append(l1_regression(omega[:, None] * rows.Z, omega * rows.y, sample_weight=rows.shares).coef)
    random = _random_starts(position, rows, half, rng)
    finished = [_concentrate(rows, start[None], half, callback)[0] for start in [*starts, *random]]
    C = np.array(finished)
    order = np.argsort(_trimmed_squares(rows, C, half), kind="stable")
    return np.asarray(C[order])


def reach_all_directions(rows: Rows, coef: FloatArray, limit: float) -> FloatArray:
    """Fit directions of which no row is within `limit`, such as a rare dummy, by L1 on what `coef` leaves of them.

    The step is taken where most of the rows that it could not have fitted in any case come within the limit.
    """
    residuals = rows.residuals(coef[None])[0]
    near = np.where(np.abs(residuals) < limit, rows.shares, 0.0)
    sizes, axes = np.linalg.eigh((rows.Z * rows.shares[:, None]).T @ rows.Z)
    whitening = axes / np.sqrt(np.maximum(sizes, np.finfo(float).tiny))
    Z = rows.Z @ whitening
    trusted, directions = np.linalg.eigh((Z * near[:, None]).T @ Z)
    unreached = whitening @ directions[:, trusted < _UNREACHED]
    k = unreached.shape[1]
    if k == 0:
        return coef
    columns = rows.Z @ unreached
    touched = np.abs(columns).max(axis=1) > _UNREACHED * np.abs(columns).max()
    step = l1_regression(columns[touched], residuals[touched], sample_weight=rows.shares[touched]).coef
    within = np.abs(residuals[touched] - columns[touched] @ step) <= limit
    if len(within) < _VOTERS * k or within.sum() - k <= 0.5 * (len(within) - k):
        return coef
    return np.asarray(coef + unreached @ step)


def _random_starts(position: Position, rows: Rows, half: float, rng: np.random.Generator) -> FloatArray:
    """Fit small random subsets, take two concentration steps from each, and return the best ten."""
    n, r = rows.Z.shape
    sampled = max(SCREENED_ROWS, 20 * r)
    omega = position.leverage_weights
    if n > sampled:
        index = np.sort(rng.choice(n, sampled, replace=False, p=rows.shares))
        rows, omega = rows.take(index), omega[index]
        n = sampled
    b = int(min(_SCREEN_WORK / (3.0 * n * r * r + r**3), _MOST_STARTS))
    size = r + 1
    if b < _FEWEST_STARTS or size > n:
        return np.empty((0, r))
    # The rows of least random keys: b subsets at once.
    keys = rng.exponential(size=(b, n)) / np.maximum(rows.shares * n, np.finfo(float).tiny)
    subsets = np.sort(np.argpartition(keys, size - 1, axis=1)[:, :size], axis=1)
    # Leverage weights make the Gram matrix of a few random rows well conditioned wherever that is possible.
    Z = rows.Z[subsets] * omega[subsets][..., None]
    labels = rows.y[subsets] * omega[subsets]
    C = _solve(Z.swapaxes(1, 2) @ Z, np.einsum("bij,bi->bj", Z, labels), 0.0)
    outer = _outer_products(rows)
    for _ in range(2):
        C = _step(rows, C, half, outer)
    order = np.argsort(_trimmed_squares(rows, C, half), kind="stable")
    return np.asarray(C[order[:_BEST]])


def _concentrate(rows: Rows, C: FloatArray, half: float, callback: Callback) -> FloatArray:
    """Step until the trimmed sum of squares stops falling."""
    best = np.inf
    for step in range(_MOST_STEPS):
        following = _step(rows, C, half, None)
        value = float(_trimmed_squares(rows, following, half)[0])
        callback(Progress("concentration", step + 1, value, 0.0))
        if not value < best * (1 - 1e-9):
            return C if value > best else following
        best, C = value, following
    return C


def _step(rows: Rows, C: FloatArray, half: float, outer: FloatArray | None) -> FloatArray:
    """Solve, for each row of coefficients, the rows that it fits best by least squares."""
    sizes = np.abs(rows.residuals(C))
    kept = np.where(sizes <= quantile(sizes, rows.shares, half)[:, None], rows.shares, 0.0)
    gram = (kept @ outer).reshape(len(C), C.shape[1], C.shape[1]) if outer is not None else _gram(rows, kept)
    return _solve(gram, (kept * rows.y) @ rows.Z, rows.ridge)


def _trimmed_squares(rows: Rows, C: FloatArray, half: float) -> FloatArray:
    """Return what a step lowers: the trimmed sum of squares and the penalty."""
    sizes = np.abs(rows.residuals(C))
    limit = quantile(sizes, rows.shares, half)[:, None]
    return np.asarray(np.where(sizes <= limit, sizes, 0.0) ** 2 @ rows.shares + rows.ridge * (C * C).sum(axis=1))


def _outer_products(rows: Rows) -> FloatArray | None:
    n, r = rows.Z.shape
    if n * r * r > _OUTER_NUMBERS:
        return None
    return np.asarray((rows.Z[:, :, None] * rows.Z[:, None, :]).reshape(n, r * r))


def _gram(rows: Rows, weights: FloatArray) -> FloatArray:
    grams = []
    for row in weights:
        kept = np.flatnonzero(row)
        Z = rows.Z[kept]
        grams.append((Z * row[kept, None]).T @ Z)
    return np.array(grams)


def _solve(gram: FloatArray, moments: FloatArray, ridge: float) -> FloatArray:
    """Solve a batch of normal equations with the given ridge and a tiny one."""
    r = gram.shape[-1]
    least = _RIDGE * np.trace(gram, axis1=1, axis2=2) / max(r, 1)
    gram = gram + (ridge + least + 1e-300)[:, None, None] * np.eye(r)
    return np.asarray(np.linalg.solve(gram, np.atleast_2d(moments)[..., None])[..., 0])
