"""The embedded example: the ledger of a repair service, and the recovery of its price list.

Each row of the ledger is a job, and its total should be ``hours * rate + items * price + ...``. About a third of the
totals are wrong, in three ways that real ledgers know. `fit` sees the columns and the totals, and nothing of how they
were made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.certificate import Certificate
from massart.noise import MassartNoise
from massart.recover import recover
from massart.rows import ArrayRows, BoolArray, FloatArray

COLUMNS = ("hours", "items", "weekend", "km", "callout")
PRICES = (54.0, 7.9, 25.0, 0.42, 35.0)
"""What makes the totals: a rate an hour, a price an item, a weekend surcharge, a price a kilometre, a fixed charge."""

WRONG_SHARE = 0.35


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
    certificate : Certificate
        What is proven.
    """

    coef: FloatArray
    agree: BoolArray
    least_squares: FloatArray
    certificate: Certificate


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


def fit(X: FloatArray, y: FloatArray, columns: tuple[str, ...] | None = None) -> Fit:
    """Recover ``w`` with ``y = X @ w`` on more than half of the rows, and set it beside least squares."""
    found = recover(ArrayRows(X, y), rng=np.random.default_rng(0), column_names=columns)
    least_squares = np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], dtype=np.float64)
    return Fit(found.coef[:, 0], found.agree[:, 0], least_squares, found.certificates[0])
