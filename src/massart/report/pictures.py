"""What the two pictures show: some rows, given against implied, and how many wrong rows are how far off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.certificate.words import share
from massart.report.columns import amounts, clean, read, write
from massart.report.findings import JudgedRows
from massart.report.kinds import MARKS, codes_of, tones
from massart.report.wrong_rows import Residuals
from massart.rows import FloatArray

MOST_RIGHT = 2_000
MOST_WRONG = 3_000
MOST_LARGEST = 500
"""Wrong rows that are drawn for the size of their residual; the others are a random sample."""

_MOST_CELLS = 8
_MOST_BINS = 40
_STEPS = (0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
_HEAVY, _VERY_HEAVY = 5.0, 15.0
_FEW = 10
_SEED = 0


@dataclass(frozen=True, slots=True)
class Points:
    """Rows drawn in the picture of given against implied.

    Attributes
    ----------
    right, wrong : int
        How many of each are drawn.
    packed : dict
        The right ones, then the wrong ones, for the script.
    heavy : bool
        Whether a few values are so much larger than the others that a second scale helps.
    """

    right: int
    wrong: int
    packed: dict[str, Any]
    heavy: bool


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many wrong rows are how far off.

    Attributes
    ----------
    start, step : float
        Bins of log10 |residual|.
    counts : tuple of int
    toned : dict of int to tuple of int
        The same for each colour of a kind.
    words : str
        The same for those who do not see the picture.
    """

    start: float
    step: float
    counts: tuple[int, ...]
    toned: dict[int, tuple[int, ...]]
    words: str

    @property
    def drawn(self) -> bool:
        """Whether there are enough for a picture to say more than the words."""
        return sum(self.counts) >= _FEW


def draw_points(rows: JudgedRows, wrong: Residuals) -> Points:
    """Choose the rows to draw: the largest residuals and a random sample, the same in each run."""
    rng = np.random.default_rng(_SEED)
    finite = np.isfinite(rows.given) & np.isfinite(rows.implied)
    right = _sample(np.flatnonzero(finite & rows.agree), MOST_RIGHT, rng)
    off = wrong.index[finite[wrong.index]]
    if len(off) > MOST_WRONG:
        others = off[MOST_LARGEST:]
        if rows.rest is not None:
            others = others[rows.rest.drawn[others]]
        off = np.concatenate([off[:MOST_LARGEST], _sample(others, MOST_WRONG - MOST_LARGEST, rng)])
    index = np.concatenate([right, off])
    given, implied = rows.given[index], rows.implied[index]
    cells = list(rows.cells(index).items())[:_MOST_CELLS] if len(index) else []
    columns = [
        amounts("given", given),
        amounts("implied", implied),
        *(read(name, entries, exact=place == 0) for place, (name, entries) in enumerate(cells)),
    ]
    with np.errstate(over="ignore"):
        places = amounts("off by", given - implied).places
    ratio, unit = _spread(np.abs(np.concatenate([given, implied])))
    packed = {
        "n": len(index),
        "right": len(right),
        "places": places,
        "columns": [column.packed() for column in columns],
        "unit": unit,
        "codes": codes_of(rows, off).tolist(),
        "kinds": [] if rows.kinds is None else [clean(word) for word in rows.kinds.words],
        "tones": tones(rows).tolist(),
        "compressed": ratio > _VERY_HEAVY,
    }
    return Points(len(right), len(off), packed, heavy=ratio > _HEAVY)


def _sample(index: NDArray[np.intp], most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    return index if len(index) <= most else np.sort(rng.choice(index, most, replace=False))


def _spread(size: FloatArray) -> tuple[float, float]:
    """Return the largest value over a common one, and a power of ten below which there are few values."""
    size = size[size > 0]
    if not len(size):
        return 1.0, 1.0
    few, common, largest = np.log10(np.quantile(size, [0.05, 0.5, 1.0]))
    return float(10 ** min(largest - common, 300.0)), float(10.0 ** np.floor(few))


def measure_sizes(rows: JudgedRows, wrong: Residuals, off: str) -> Sizes | None:
    """Count the wrong rows by the power of ten of their residual; None where there are none to count."""
    among = ""
    if rows.rest is not None:
        drawn = rows.rest.drawn[wrong.index]
        wrong = Residuals(wrong.index[drawn], wrong.values[drawn])
        among = f"Of {len(wrong.index):,} {off} drawn at random: "
    size = np.abs(wrong.values)
    counted = np.isfinite(size) & (size > 0)
    size, tone = size[counted], tones(rows)[codes_of(rows, wrong.index[counted])]
    if not len(size):
        return None
    logs = np.log10(size)
    low, high = float(logs.min()), float(logs.max())
    step = next((s for s in _STEPS if (high - low) / s <= _MOST_BINS - 2), _STEPS[-1])
    start = step * np.floor(low / step)
    bins = ((logs - start) / step).astype(int)
    counts = np.bincount(tone.astype(int) * (bins.max() + 1) + bins, minlength=len(MARKS) * (bins.max() + 1))
    table = counts.reshape(len(MARKS), -1)
    toned = {place: tuple(row.tolist()) for place, row in enumerate(table) if row.any()}
    return Sizes(float(start), step, tuple(table.sum(axis=0).tolist()), toned, among + _words(wrong, size, off))


def _words(wrong: Residuals, size: FloatArray, off: str) -> str:
    n = len(wrong.index)
    above = int((wrong.values > 0).sum())
    below = int((wrong.values < 0).sum())
    if n == 1:
        return f"The only one is off by {write(float(size[0]))}."
    places = amounts("off by", wrong.values).places
    middle, most, least = (write(float(v), places, digits=4) for v in (np.median(size), size.max(), size.min()))
    return (
        f"Half of the {off} are off by {middle} or more; the largest difference is {most}, the smallest {least}. "
        f"{above:,} ({share(above, n)}) were given too high and {below:,} ({share(below, n)}) too low."
    )
