r"""Tables whose right rows follow a formula up to noise: the cells of the simulation.

A right row is x ~ N(0, I) of d columns and y = w.x + a + e with e ~ N(0, 1). The wrong rows of a cell are one of:

========  ==============================================================================================
none      there are none
vertical  labels off by 20 to 100 sigma, up or down
good      no label is wrong, but x is ten times as far out: rows of good leverage
bad       x lies in a cluster 10 away, and its labels 30 sigma off: bad leverage
shift5    labels 5 sigma too high; shift10: 10 sigma
plane     labels of another plane, whose slope differs by 10, with the same noise
========  ==============================================================================================

followed by their share in percent. The name of a cell, such as ``shift5_40_n200_d10``, says all.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_SIZES = ((50, 3), (200, 3), (1000, 3), (200, 10), (1000, 10), (200, 30), (1000, 30))
_LARGE = ((5000, 3), (5000, 10), (5000, 30))
_EVERYWHERE = ("none_0", "vertical_40", "bad_40", "shift5_25", "shift5_40", "plane_40")
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
    ),
    (1000, 10): ("vertical_45", "good_25", "bad_25", "shift5_45", "shift10_40", "plane_25"),
    (200, 30): ("shift10_25",),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of table."""

    kind: str
    percent: int
    n: int
    d: int

    @property
    def name(self) -> str:
        """What ``--cells`` is matched with."""
        return f"{self.kind}_{self.percent}_n{self.n}_d{self.d}" if self.percent else f"{self.kind}_n{self.n}_d{self.d}"


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

    @property
    def oracle(self) -> FloatArray:
        """Least squares on the right rows."""
        return least_squares(self.X[self.right], self.y[self.right])


def cells() -> tuple[Cell, ...]:
    """Return the 58 cells, and then those of 5,000 rows."""
    named = [(size, name) for size in _SIZES for name in (*_EVERYWHERE, *_SOMEWHERE.get(size, ()))]
    named += [(size, name) for size in _LARGE for name in _EVERYWHERE if name != "shift5_25"]
    return tuple(Cell(*_split(name), *size) for size, name in named)


def _split(name: str) -> tuple[str, int]:
    kind, _, percent = name.partition("_")
    return kind, int(percent)


def make(cell: Cell, seed: int, trial: int) -> Table:
    """Return table number `trial` of a seed; the same arguments make the same table."""
    rng = np.random.default_rng((seed, trial, zlib.crc32(cell.name.encode())))
    X, truth = rng.standard_normal((cell.n, cell.d)), rng.standard_normal(cell.d + 1)
    e = rng.standard_normal(cell.n)
    chosen = np.zeros(cell.n, dtype=np.bool_)
    chosen[rng.permutation(cell.n)[: cell.n * cell.percent // 100]] = True
    u = rng.standard_normal(cell.d)
    u /= np.linalg.norm(u)
    if cell.kind == "good":
        X[chosen] *= 10
    elif cell.kind == "bad":
        X[chosen] = 10 * u + 0.5 * X[chosen]
    y = truth[0] + X @ truth[1:] + e
    off = {
        "none": lambda: 0.0,
        "good": lambda: 0.0,
        "vertical": lambda: rng.uniform(20, 100, cell.n) * rng.choice((-1, 1), cell.n),
        "bad": lambda: 30.0,
        "shift5": lambda: 5.0,
        "shift10": lambda: 10.0,
        "plane": lambda: 10 * X @ u,
    }[cell.kind]()
    wrong = chosen if cell.kind != "good" else np.zeros_like(chosen)
    return Table(X, y + np.where(wrong, off, 0.0), truth, ~wrong)


def least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the coefficients of least squares, the intercept first."""
    return np.asarray(np.linalg.lstsq(with_ones(X), y, rcond=None)[0])


def with_ones(X: FloatArray) -> FloatArray:
    """Put a column of ones before the others."""
    return np.column_stack([np.ones(len(X)), X])
