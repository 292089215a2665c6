r"""Tables whose right rows follow a formula up to noise, in cells; and tables that follow none.

A right row is x ~ N(0, I) of d columns and y = w.x + a + e with e ~ N(0, 1). The others of a cell are one of:

========  ==============================================================================================
none      there are none
vertical  labels off by 20 to 100 sigma, up or down
good      no label is wrong, but x is ten times as far out: rows of good leverage
bad       x lies in a cluster 10 away, and its labels 30 sigma off: bad leverage
shift5    labels 5 sigma too high; shift10: 10 sigma
plane     labels of another plane, whose slope differs by 10, with the same noise
codes     labels 10 sigma too high, and as many that are -9999
two       labels 10 sigma too low, and as many rows of bad leverage
spread    none, but the noise of all rows has the standard deviation |x_1| + 1/2; fan: exp(x_1 / 2)
========  ==============================================================================================

followed by their share in percent. The name of a cell, such as ``shift5_40_n200_d10``, says all. Labels of a censored
cell are 0 where they would be negative.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_SIZES = ((50, 3), (200, 3), (1000, 3), (200, 10), (1000, 10), (200, 30), (1000, 30))
_LARGE = ((5000, 3), (5000, 10), (5000, 30))
_EVERYWHERE = ("none", "vertical_40", "bad_40", "shift5_25", "shift5_40", "plane_40")
_SOMEWHERE = {
    (200, 3): (
        "vertical_10",
        "vertical_25",
        "vertical_45",
        "good_25",
        "bad_25",
        "shift5_45",
        "shift10_25",
        "shift10_45",
        "plane_25",
        "codes_25",
        "codes_40",
        "two_40",
    ),
    (1000, 10): (
        "vertical_45",
        "good_25",
        "bad_25",
        "shift5_45",
        "shift10_40",
        "plane_25",
        "codes_25",
        "codes_40",
        "two_40",
    ),
    (200, 30): ("shift10_25",),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of table."""

    kind: str
    percent: int
    n: int
    d: int
    censored: bool = False

    @property
    def name(self) -> str:
        """What ``--cells`` is matched with."""
        parts = (self.kind, str(self.percent) if self.percent else "", f"n{self.n}", f"d{self.d}")
        return ("censored_" if self.censored else "") + "_".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows without a column of ones, labels, the truth (the intercept first), and which rows are right."""

    X: FloatArray
    y: FloatArray
    truth: FloatArray
    right: BoolArray

    def error(self, coef: FloatArray) -> float:
        """Return the root mean square, over fresh rows N(0, I), of the difference to the true plane."""
        return float(np.linalg.norm(coef - self.truth))


def _cells() -> tuple[Cell, ...]:
    named = [(size, name) for size in _SIZES for name in (*_EVERYWHERE, *_SOMEWHERE.get(size, ()))]
    named += [(size, name) for size in _LARGE for name in _EVERYWHERE if name != "shift5_25"]
    return tuple(_cell(name, *size) for size, name in named)


def _cell(name: str, n: int, d: int, censored: bool = False) -> Cell:
    kind, _, percent = name.partition("_")
    return Cell(kind, int(percent or 0), n, d, censored)


SIMULATION = _cells()
"""The 58 cells with the six of wrong rows of two kinds, and then those of 5,000 rows."""

COVERAGE = tuple(
    _cell(name, n, d)
    for name, n, d in (
        ("none", 50, 3),
        ("none", 200, 5),
        ("vertical_25", 50, 3),
        ("vertical_25", 200, 5),
        ("spread", 200, 5),
        ("spread", 1000, 5),
        ("fan", 200, 5),
        ("plane_25", 200, 5),
    )
)

CENSORED = tuple(
    _cell(name, n, d, censored=True)
    for n, d in ((200, 3), (1000, 3), (1000, 10))
    for name in ("none", "vertical_10", "vertical_30", "shift5_10", "shift5_30", "plane_30")
)


def make(cell: Cell, seed: int, trial: int) -> Table:
    """Return table number `trial` of a seed; the same arguments make the same table."""
    rng = np.random.default_rng((seed, trial, zlib.crc32(cell.name.encode())))
    X, truth = rng.standard_normal((cell.n, cell.d)), rng.standard_normal(cell.d + 1)
    e = rng.standard_normal(cell.n)
    chosen = np.zeros(cell.n, dtype=np.bool_)
    chosen[rng.permutation(cell.n)[: cell.n * cell.percent // 100]] = True
    even = np.arange(cell.n) % 2 == 0
    u = rng.standard_normal(cell.d)
    u /= np.linalg.norm(u)
    if cell.kind == "good":
        X[chosen] *= 10
    elif cell.kind == "bad":
        X[chosen] = 10 * u + 0.5 * X[chosen]
    elif cell.kind == "two":
        X[chosen & even] = 10 * u + 0.5 * X[chosen & even]
    elif cell.kind == "spread":
        e *= np.abs(X[:, 0]) + 0.5
    elif cell.kind == "fan":
        e *= np.exp(X[:, 0] / 2)
    y = truth[0] + X @ truth[1:] + e
    off: dict[str, Callable[[], FloatArray | float]] = {
        "vertical": lambda: rng.uniform(20, 100, cell.n) * rng.choice((-1, 1), cell.n),
        "bad": lambda: 30.0,
        "shift5": lambda: 5.0,
        "shift10": lambda: 10.0,
        "plane": lambda: 10 * X @ u,
        "codes": lambda: np.where(even, -9999.0 - y, 10.0),
        "two": lambda: np.where(even, 30.0, -10.0),
    }
    wrong = chosen & (cell.kind in off)
    if wrong.any():
        y = np.where(wrong, y + off[cell.kind](), y)
    return Table(X, np.maximum(y, 0) if cell.censored else y, truth, ~wrong)


def least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the coefficients of least squares, the intercept first."""
    return np.asarray(np.linalg.lstsq(with_ones(X), y, rcond=None)[0])


def with_ones(X: FloatArray) -> FloatArray:
    """Put a column of ones before the others."""
    return np.column_stack([np.ones(len(X)), X])


# Labels that have nothing to do with X.

_LABELS: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "Gaussian": lambda rng, n: rng.standard_normal(n),
    "t1": lambda rng, n: rng.standard_t(1, n),
    "t2": lambda rng, n: rng.standard_t(2, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1.5, n),
    "counts": lambda rng, n: rng.poisson(rng.choice((1.0, 3.0, 20.0)), n).astype(np.float64),
    "few levels": lambda rng, n: rng.choice((1.0, 2.0, 5.0, 10.0), n),
    "mostly one value": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.lognormal(3, 1, n)),
}
_COLUMNS: dict[str, Callable[[np.random.Generator, int, int], FloatArray]] = {
    "Gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    "one-hot": lambda rng, n, d: (rng.integers(d + 1, size=n)[:, None] == np.arange(d)).astype(np.float64),
    "lognormal": lambda rng, n, d: rng.lognormal(0, 1, (n, d)),
    "integers": lambda rng, n, d: rng.integers(10, size=(n, d)).astype(np.float64),
}
APART = ("noise by x", "random walk")
UNRELATED = (*_LABELS, *APART)
"""Kinds of labels; those apart are related to X in some way, or to each other."""


def unrelated(kind: str, seed: int, trial: int) -> tuple[FloatArray, FloatArray]:
    """Return rows and labels; rows of each kind by turns, 20 to 200 of them, with 2 to 30 columns."""
    rng = np.random.default_rng((seed, trial, zlib.crc32(kind.encode())))
    n = int(np.exp(rng.uniform(np.log(20), np.log(200))))
    d = int(rng.integers(2, min(30, n // 3) + 1))
    X = list(_COLUMNS.values())[trial % len(_COLUMNS)](rng, n, d)
    if kind == "noise by x":
        return X, rng.standard_normal(n) * (0.2 + np.abs(X[:, 0]))
    if kind == "random walk":
        return rng.standard_normal((n, d)).cumsum(axis=0), rng.standard_normal(n).cumsum()
    return X, _LABELS[kind](rng, n)
