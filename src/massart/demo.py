"""The embedded example: the ledger of a repair service, and the recovery of its price list.

Each row of the ledger is a job, and its total should be ``hours * rate + items * price + ...``. About a third of the
totals are wrong, in three ways that real ledgers know. `fit` sees the columns and the totals, and nothing of how they
were made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.isotropy import decompose
from massart.l1 import l1_regression
from massart.noise import MassartNoise
from massart.rows import BoolArray, FloatArray

COLUMNS = ("hours", "items", "weekend", "km", "callout")
PRICES = (54.0, 7.9, 25.0, 0.42, 35.0)
"""What makes the totals: a rate an hour, a price an item, a weekend surcharge, a price a kilometre, a fixed charge."""

WRONG_SHARE = 0.35

NEAR = 2.0**-26
"""Relative residual below which a row is taken to be right for now: half the digits of float64."""

ROUNDING = 2.0**-44
"""Relative residual that rounding explains: a few hundred times the precision of float64."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """A table of jobs and their totals.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns of `X`.
    X : array of shape (n, d)
        One job a row.
    y : array of shape (n,)
        The totals, as they were entered.
    """

    columns: tuple[str, ...]
    X: FloatArray
    y: FloatArray


@dataclass(frozen=True, slots=True)
class Fit:
    """A formula and what the rows say about it; every number is recomputed from `coef` and the data.

    Attributes
    ----------
    coef : array of shape (d,)
        The recovered formula: total = X @ coef.
    agree : array of shape (n,), bool
        Rows whose residual is at rounding level.
    least_squares : array of shape (d,)
        What least squares says, for comparison.
    isotropy_residual : float
        The largest residual of the radial-isotropic transforms that were used.
    gap : float
        The largest duality gap of the L1 problems, relative to the size of their objective.
    """

    coef: FloatArray
    agree: BoolArray
    least_squares: FloatArray
    isotropy_residual: float
    gap: float


def make_ledger(rng: np.random.Generator, n_rows: int = 2000) -> Ledger:
    """Make a ledger whose totals follow `PRICES`, apart from about `WRONG_SHARE` of the rows."""
    X = np.column_stack(
        [
            rng.integers(1, 33, n_rows) / 4,  # quarters of an hour
            rng.poisson(6.0, n_rows),
            rng.random(n_rows) < 2 / 7,
            np.ceil(rng.lognormal(2.5, 1.0, n_rows)),  # most customers are near, a few are very far
            np.ones(n_rows),
        ]
    ).astype(np.float64)
    clean = np.round(X @ np.array(PRICES), 2)
    noise = MassartNoise(WRONG_SHARE, _careless)
    return Ledger(COLUMNS, X, noise.corrupt(X, clean, rng).labels)


def _careless(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Enter the allowed totals wrongly: the surcharge and the way forgotten, 10 % added, or a slipped decimal point."""
    forgotten = np.round(X[:, [0, 1, 4]] @ np.array(PRICES)[[0, 1, 4]], 2)
    raised = np.round(clean * 1.1, 2)
    slipped = np.round(clean * 10, 1)
    kind = rng.integers(3, size=clean.shape)
    wrong = np.choose(kind, [forgotten, raised, slipped])
    return np.where(allowed, wrong, clean)


def fit(X: FloatArray, y: FloatArray) -> Fit:
    """Recover ``w`` with ``y = X @ w`` on more than half of the rows (Algorithm 2 of the paper), and verify it.

    On each piece of the decomposition of X, L1 regression runs on the rows in radially isotropic position, the labels
    being what earlier pieces left. Then the rows that agree are solved once more by least squares, and counted.
    """
    w: FloatArray = np.zeros(X.shape[1])
    isotropy_residual = gap = 0.0
    for piece in decompose(X):
        basis = piece.subspace @ piece.matrix.T
        Z = X[piece.members] @ basis
        norms = np.linalg.norm(Z, axis=1)
        labels = (y - X @ w)[piece.members] / norms
        solution = l1_regression(Z / norms[:, np.newaxis], labels)
        w = w + basis @ solution.coef
        isotropy_residual = max(isotropy_residual, piece.residual)
        gap = max(gap, solution.gap / max(1.0, abs(solution.objective)))

    agree = _agree(X, y, w, NEAR)
    if agree.any():
        w = _least_squares(X[agree], y[agree])
    return Fit(w, _agree(X, y, w, ROUNDING), _least_squares(X, y), isotropy_residual, gap)


def _agree(X: FloatArray, y: FloatArray, w: FloatArray, tolerance: float) -> BoolArray:
    """Mark the rows whose residual is within `tolerance` of the size of the terms that were summed."""
    return np.asarray(np.abs(y - X @ w) <= tolerance * (np.abs(X) @ np.abs(w) + np.abs(y)), dtype=np.bool_)


def _least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], dtype=np.float64)
