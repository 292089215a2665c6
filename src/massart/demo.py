"""The embedded example: the ledger of a repair service, as its office would export it, with a fifth of it wrong.

Each row is a job. Its total should be ``hours * rate``, what the items cost (less from the eleventh on), a charge that
depends on the service, and a surcharge on weekends. Totals are wrong in four ways that real ledgers know, and some
clerks make more mistakes than others. What is fitted is the CSV file; nothing of how it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.paper import MassartNoise
from massart.rows import BoolArray, FloatArray

TARGET, ID, GROUP = "total", "invoice", "clerk"

ITEM, LATER_ITEM, TIER = 7.9, 6.5, 10
"""What an item costs, what it costs above a number of items, and that number."""

SURCHARGE = 25.0
"""For a weekend."""

CHARGES = {"repair": 35.0, "installation": 95.0, "inspection": 20.0}
"""The fixed charge of each service."""

CLERKS = {"Adams": 0.95, "Brown": 0.9, "Clark": 0.55, "Davis": 0.9, "Evans": 0.7}
"""Of the rows that may be wrong, the share in which each clerk is careless."""

MOST_WRONG = 0.3
"""The noise rate of the Massart model: a total may be wrong with this probability."""

N_ROWS = 8_000

_SERVICES = np.array(list(CHARGES))
_NAMES = np.array(list(CLERKS))
_FIRST_DAY = date(2025, 1, 2)


def make_ledger(rng: np.random.Generator, n_rows: int = N_ROWS) -> dict[str, Any]:
    """Return the columns of a ledger, as texts and numbers that a CSV file would hold."""
    day = np.sort(rng.integers(0, 600, n_rows))
    dates = [_FIRST_DAY + timedelta(days=int(k)) for k in day]
    clerk = _NAMES[rng.integers(len(_NAMES), size=n_rows)].tolist()
    columns: dict[str, Any] = {
        ID: [f"{d:%Y}-{k:05d}" for k, d in enumerate(dates, 1)],
        "date": [d.isoformat() for d in dates],
        GROUP: clerk,
        "service": _SERVICES[rng.choice(len(_SERVICES), n_rows, p=[0.5, 0.3, 0.2])].tolist(),
        "hours": (rng.integers(1, 33, n_rows) / 4).tolist(),
        "rate": np.round(0.4 * rng.integers(110, 181, n_rows), 2),  # of an hour, by who comes: 44.00 to 72.00
        "items": np.floor(rng.lognormal(1.6, 0.9, n_rows)).astype(int),  # mostly a handful, now and then very many
        "weekend": ["yes" if d.weekday() > 4 else "no" for d in dates],
    }
    X = np.column_stack([_surcharge(columns), [CLERKS[name] for name in clerk]])
    total = MassartNoise(MOST_WRONG, _careless).corrupt(X, right_totals(columns), rng).labels
    columns[TARGET] = [f"{value:,.2f}" for value in total.tolist()]
    for row in rng.choice(n_rows, n_rows // 250, replace=False):
        columns["hours"][row] = None  # forgotten by the technician
    return columns


def right_totals(columns: Mapping[str, Any]) -> FloatArray:
    """Return what the totals of a ledger should be; NaN where the hours are missing."""
    items = np.asarray(columns["items"])
    labour = np.asarray(columns["hours"], dtype=np.float64) * np.asarray(columns["rate"])
    material = ITEM * items - (ITEM - LATER_ITEM) * np.maximum(0, items - TIER)
    charge = np.array([CHARGES[name] for name in columns["service"]])
    total: FloatArray = np.round(labour + material + charge + _surcharge(columns), 2)
    return total


def _surcharge(columns: Mapping[str, Any]) -> FloatArray:
    return np.where(np.asarray(columns["weekend"]) == "yes", SURCHARGE, 0.0)


def _careless(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Forget the surcharge, apply the raise of next year, slip the decimal point, or swap digits."""
    surcharge, carelessness = X.T
    forgotten = np.round(clean - surcharge, 2)  # right, but for weekends
    raised = np.round(clean * 1.08, 2)
    slipped = np.round(clean * 10, 1)
    tens, ones = clean // 10 % 10, clean // 1 % 10
    swapped = np.round(clean + 9 * (ones - tens), 2)
    kind: NDArray[np.intp] = rng.choice(4, size=clean.shape, p=[0.25, 0.35, 0.2, 0.2])
    wrong = allowed & (rng.random(len(clean)) < carelessness)
    return np.where(wrong, np.choose(kind, [forgotten, raised, slipped, swapped]), clean)
