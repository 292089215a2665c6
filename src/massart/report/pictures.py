"""What the two pictures show: given against implied, on which scale, and how many wrong rows are how far off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from massart.report.carried import Residuals, sample, wrong_residuals
from massart.report.columns import amounts, write
from massart.report.findings import JudgedRows
from massart.report.legend import GLYPHS, MARKS, codes_of, tones
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


WIDTH, HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 12, 10, 46
_MOST_RIGHT, _MOST_WRONG = 300, 600
_MOST_TICKS = 7
_MOST_POWERS = 40
_LARGEST = 1e300  # beyond which the width of an axis overflows


def scatter(rows: JudgedRows, words: str) -> str:
    """Return the picture as SVG; colours are those of the classes of its paths. `words` say what it shows."""
    rng = np.random.default_rng(0)
    seen = (np.abs(rows.given) < _LARGEST) & (np.abs(rows.implied) < _LARGEST)
    right = sample(np.flatnonzero(rows.agree & seen), _MOST_RIGHT, rng)
    off = wrong_residuals(rows).index
    off = sample(off[seen[off]], _MOST_WRONG, rng)
    index = np.concatenate([right, off])
    if not len(index):
        return ""
    scale = scale_of(np.concatenate([rows.given[index], rows.implied[index]]))
    across, x_ticks = _axis(rows.implied[index], scale, _LEFT, WIDTH - _RIGHT)
    up, y_ticks = _axis(rows.given[index], scale, HEIGHT - _BOTTOM, _TOP)
    parts = [
        f"<svg class='scatter' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{escape(words, quote=True)}'>",
        _grid(across(x_ticks), up(y_ticks)),
    ]
    both = rows.implied[index], rows.given[index]
    ends = np.array([max(v.min() for v in both), min(v.max() for v in both)])
    if ends[0] < ends[1]:
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(across(ends), up(ends), strict=True))
        parts.append(f"<path class='diagonal' d='M{line}'/>")  # straight, since both axes have the same scale
    x, y = across(rows.implied[index]), up(rows.given[index])
    dots = "".join(f"M{x[k]:.1f} {y[k]:.1f}h0" for k in range(len(right)))
    parts.append(f"<path class='right' d='{dots}'/>")
    tone = tones(rows)[codes_of(rows, off)]
    for each in np.unique(tone).tolist():
        glyph = _path(GLYPHS[each])
        marks = "".join(f"M{x[k]:.1f} {y[k]:.1f}{glyph}" for k in len(right) + np.flatnonzero(tone == each))
        parts.append(f"<path class='wrong tone-{each}' d='{marks}'/>")
    parts += [
        *(_label(at, HEIGHT - 26, "middle", write(v)) for at, v in zip(across(x_ticks), x_ticks, strict=True)),
        *(_label(_LEFT - 8, at + 4, "end", write(v)) for at, v in zip(up(y_ticks), y_ticks, strict=True)),
        _label((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 6, "middle", "implied by the formula"),
        f"<text transform='rotate(-90)' x='{-(HEIGHT - _BOTTOM) / 2:.0f}' y='12' text-anchor='middle'>given</text>",
    ]
    return "".join([*parts, "</svg>"])


def _axis(
    values: FloatArray, scale: Scale, start: float, end: float
) -> tuple[Callable[[FloatArray], FloatArray], FloatArray]:
    """Return where values are drawn, and values for ticks."""

    def placed(v: FloatArray) -> FloatArray:
        return np.asarray(np.arcsinh(v / scale.unit / 2) if scale.compressed else v)

    low, high = float(placed(values).min()), float(placed(values).max())
    margin = 0.04 * (high - low) or abs(high) or 1.0
    low, high = low - margin, high + margin

    def position(v: FloatArray) -> FloatArray:
        return start + (placed(v) - low) / (high - low) * (end - start)

    if scale.compressed:
        sizes = scale.unit * 10.0 ** np.arange(_MOST_POWERS)
        for digits in ((1,), (1, 2, 5)):
            some = np.sort(np.multiply.outer(digits, sizes).ravel())
            candidates = np.concatenate([-some[::-1], [0.0], some])
            inside = candidates[(placed(candidates) >= low) & (placed(candidates) <= high)]
            if len(inside) > _MOST_TICKS / 2:
                break
        return position, inside[:: -(-len(inside) // _MOST_TICKS) or 1]
    step = 10.0 ** np.floor(np.log10((high - low) / 4))
    step *= next(k for k in (5, 2, 1) if k * step <= (high - low) / 4 or k == 1)
    return position, step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)


def _grid(xs: FloatArray, ys: FloatArray) -> str:
    lines = [f"M{x:.1f} {_TOP}V{HEIGHT - _BOTTOM}" for x in xs] + [f"M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" for y in ys]
    return f"<path class='grid' d='{''.join(lines)}'/>"


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{text}</text>"


def _path(glyph: Sequence[tuple[float, float]], radius: float = 3.5) -> str:
    """Return a polygon around where the pen is."""
    corners: NDArray[np.float64] = radius * np.array(glyph)
    steps = np.diff(corners, axis=0)
    return f"m{corners[0, 0]:.1f} {corners[0, 1]:.1f}" + "".join(f"l{dx:.1f} {dy:.1f}" for dx, dy in steps) + "z"
