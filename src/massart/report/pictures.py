"""What the two pictures show: given against implied, on which scale, and how many wrong rows are how far off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.report.carried import Residuals
from massart.report.columns import amounts, write
from massart.report.findings import JudgedRows
from massart.report.kinds import MARKS, codes_of, tones
from massart.report.words import share
from massart.rows import FloatArray

_MOST_BINS = 40
_STEPS = (0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
_HEAVY, _VERY_HEAVY = 5.0, 15.0
_FEW = 10
_MOST_POWERS = 30  # of ten that an axis shows


@dataclass(frozen=True, slots=True)
class Scale:
    """Of both axes of the picture of given against implied."""

    heavy: bool  # a few values are so much larger that a second scale helps: logarithmic from `unit` on
    compressed: bool  # that one is shown first
    unit: float  # a power of ten below which there are few values, or none that matters


def scale_of(values: FloatArray) -> Scale:
    """Return the scale for these values."""
    size = np.abs(values[np.isfinite(values) & (values != 0)])
    if not len(size):
        return Scale(False, False, 1.0)
    few, common, largest = np.log10(np.quantile(size, [0.05, 0.5, 1.0]))
    ratio = 10 ** min(largest - common, 300.0)
    return Scale(
        bool(ratio > _HEAVY), bool(ratio > _VERY_HEAVY), float(10.0 ** np.floor(max(few, largest - _MOST_POWERS)))
    )


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many wrong rows are how far off."""

    start: float
    step: float  # of bins of log10 |residual|
    counts: tuple[int, ...]
    toned: dict[int, tuple[int, ...]]  # the same for each colour of a kind
    words: str  # the same for those who do not see the picture

    @property
    def drawn(self) -> bool:
        """Whether there are enough for a picture to say more than the words."""
        return sum(self.counts) >= _FEW


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
