"""The ledger of a repair service whose totals are plain sums, with about a third of them wrong.

Each row is a job, and its total should be ``54 * hours + 7.9 * items + ...``, with a charge that depends on the
service. Totals are wrong in three ways that real ledgers know, and some clerks make more mistakes than others. What is
fitted is the CSV file; nothing of how it was made.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.paper import MassartNoise
from massart.rows import BoolArray, FloatArray

TARGET, ID, GROUP = "total", "invoice", "clerk"

PRICES = {"hours": 54.0, "items": 7.9, "km": 0.42, "weekend": 25.0}
"""What an hour, an item and a kilometre cost, and the surcharge of a weekend."""

CHARGES = {"repair": 35.0, "installation": 95.0, "inspection": 20.0}
"""The fixed charge of each service."""

CLERKS = {"Adams": 0.95, "Brown": 0.9, "Clark": 0.55, "Davis": 0.9, "Evans": 0.7}
"""Of the rows that may be wrong, the share in which each clerk is careless."""

MOST_WRONG = 0.45
"""The noise rate of the Massart model: a total may be wrong with this probability."""

N_ROWS = 3_000

_SERVICES = np.array(list(CHARGES))
_NAMES = np.array(list(CLERKS))
_FIRST_DAY = date(2025, 1, 2)


def make_ledger(rng: np.random.Generator, n_rows: int = N_ROWS) -> dict[str, Any]:
    """Return the columns of a ledger, as texts and numbers that a CSV file would hold."""
    day = np.sort(rng.integers(0, 600, n_rows))
    service = _SERVICES[rng.choice(len(_SERVICES), n_rows, p=[0.6, 0.25, 0.15])]
    dates = [_FIRST_DAY + timedelta(days=int(k)) for k in day]
    inputs = {
        "hours": rng.integers(1, 33, n_rows) / 4,
        "items": rng.poisson(6.0, n_rows),
        "km": np.ceil(rng.lognormal(2.5, 1.0, n_rows)).astype(int),  # most customers are near, a few very far
        "weekend": np.array([d.weekday() > 4 for d in dates]),
    }
    clerk = _NAMES[rng.integers(len(_NAMES), size=n_rows)]
    charge = np.array([CHARGES[name] for name in service.tolist()])
    carelessness = np.array([CLERKS[name] for name in clerk.tolist()])
    X = np.column_stack([*inputs.values(), charge, carelessness]).astype(np.float64)
    noise = MassartNoise(MOST_WRONG, _careless)
    total = noise.corrupt(X, _right_total(X), rng).labels
    hours = inputs["hours"].tolist()
    for row in rng.choice(n_rows, n_rows // 250, replace=False):
        hours[row] = None  # forgotten by the technician
    return {
        ID: [f"{d:%Y}-{k:05d}" for k, d in enumerate(dates, 1)],
        "date": [d.isoformat() for d in dates],
        GROUP: clerk.tolist(),
        "service": service.tolist(),
        "hours": hours,
        "items": inputs["items"],
        "km": inputs["km"],
        "weekend": np.where(inputs["weekend"], "yes", "no").tolist(),
        TARGET: [f"{value:,.2f}" for value in total.tolist()],
    }


def _right_total(X: FloatArray) -> FloatArray:
    total: FloatArray = np.round(X[:, :4] @ np.array(list(PRICES.values())) + X[:, 4], 2)
    return total


def _careless(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Enter totals wrongly: way and surcharge forgotten, the raise of next year applied, or a slipped decimal point."""
    forgotten = np.round(X[:, :2] @ np.array(list(PRICES.values())[:2]) + X[:, 4], 2)
    raised = np.round(clean * 1.08, 2)
    slipped = np.round(clean * 10, 1)
    kind: NDArray[np.intp] = rng.choice(3, size=clean.shape, p=[0.45, 0.35, 0.2])
    wrong = allowed & (rng.random(len(clean)) < X[:, 5])
    return np.where(wrong, np.choose(kind, [forgotten, raised, slipped]), clean)
