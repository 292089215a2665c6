"""Pictures of the rows: given against implied, and how many are how far off, in the colour and mark of each type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from massart.report.findings import ReportRows
from massart.report.rows import Residuals, clean, compared, decimal_places, read, sample, write, wrong_residuals
from massart.report.words import share
from massart.rows import FloatArray

_PLUS = ((-1, -3), (1, -3), (1, -1), (3, -1), (3, 1), (1, 1), (1, 3), (-1, 3), (-1, 1), (-3, 1), (-3, -1), (-1, -1))
_STAR = [(r, 0.2 * math.pi * k) for k, r in enumerate((1.4, 0.6) * 5)]

MARKS = "◆■▲✚✖▼⬟★"
"""Of rows that nothing explains, then of the kinds, the most frequent first; the last one is for all others."""

GLYPHS = (
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.2), (1.2, 0.9), (-1.2, 0.9)),
    tuple((x / 2.5, y / 2.5) for x, y in _PLUS),
    tuple((0.3 * (x - y), 0.3 * (x + y)) for x, y in _PLUS),
    ((-1.2, -0.9), (1.2, -0.9), (0, 1.2)),
    ((0, -1.2), (1.15, -0.35), (0.7, 1), (-0.7, 1), (-1.15, -0.35)),
    tuple((round(r * math.sin(turn), 3), round(-r * math.cos(turn), 3)) for r, turn in _STAR),
)
"""The corners of the marks, for pictures that draw them, around the origin."""

OTHERS = "other kinds"


@dataclass(frozen=True, slots=True)
class ShownKind:
    """One type of error, as pictures and tables show it."""

    label: str
    n_rows: int
    tone: int  # number of its colour and of its mark
    example: tuple[str, ...]  # a row in which it happened: which one, what was given, what is implied

    @property
    def mark(self) -> str:
        """What the pictures draw for it."""
        return MARKS[self.tone]


def tones(rows: ReportRows) -> NDArray[np.uint8]:
    """Return the number of the colour for each code of a kind; 0 where nothing is explained."""
    found = np.zeros(len(rows.kinds.words) if rows.kinds else 1, dtype=np.uint8)
    if rows.kinds is not None:
        explained = [code for code, word in enumerate(rows.kinds.words) if word and code != rows.kinds.unexplained]
        found[explained] = np.minimum(np.arange(1, len(explained) + 1), len(MARKS) - 1)
    return found


def codes_of(rows: ReportRows, index: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the codes of the kinds of some rows; all zero where kinds are not known."""
    return np.zeros(len(index), dtype=np.intp) if rows.kinds is None else rows.kinds.codes[index]


def shown_kinds(rows: ReportRows) -> list[ShownKind]:
    """Return the kinds of the wrong rows in the order of their codes."""
    if rows.kinds is None:
        return []
    wrong = np.flatnonzero(rows.wrong)
    codes, first, counts = np.unique(rows.kinds.codes[wrong], return_index=True, return_counts=True)
    if rows.rest is not None:
        counts = np.array(rows.rest.kinds)[codes]
    examples = wrong[first]
    name, identity = next(iter(rows.cells(examples).items()), ("row", examples.tolist()))
    columns = read(name, identity), *compared(rows, examples)[:2]
    tone = tones(rows)
    return [
        ShownKind(clean(rows.kinds.words[code]), n, int(tone[code]), tuple(column.shown(k) for column in columns))
        for k, (code, n) in enumerate(zip(codes.tolist(), counts.tolist(), strict=True))
    ]


def legend(kinds: list[ShownKind]) -> list[tuple[int, str, str]]:
    """Return tone, mark and label of what the pictures distinguish."""
    alone = {kind.tone for kind in kinds if [k.tone for k in kinds].count(kind.tone) == 1}
    named = {kind.tone: kind.label if kind.tone in alone else OTHERS for kind in kinds}
    return [(tone, MARKS[tone], label) for tone, label in named.items()]


_MOST_BINS = 40  # of the histogram
_STEPS = (0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
_HEAVY, _VERY_HEAVY = 5.0, 15.0  # the largest value over the middle one
_FEW = 10  # rows, of which words say as much
_MOST_POWERS = 40  # of ten that an axis shows


@dataclass(frozen=True, slots=True)
class AxisScale:
    """The scale of both axes of the picture of given against implied values."""

    heavy: bool  # a few values are so much larger that a second scale helps: logarithmic from `unit` on
    compressed: bool  # that one is shown first
    unit: float  # a power of ten below which there are few values, or none that matters


def scale_of(values: FloatArray) -> AxisScale:
    """Return the scale for these values."""
    size = np.abs(values[np.isfinite(values) & (values != 0)])
    if not len(size):
        return AxisScale(False, False, 1.0)
    few, common, largest = np.log10(np.quantile(size, [0.05, 0.5, 1.0]))
    ratio = 10 ** min(largest - common, 300.0)
    return AxisScale(
        bool(ratio > _HEAVY), bool(ratio > _VERY_HEAVY), float(10.0 ** np.floor(max(few, largest - _MOST_POWERS)))
    )


@dataclass(frozen=True, slots=True)
class Sizes:
    """A histogram of how far off the wrong rows are."""

    start: float
    step: float  # of bins of log10 |residual|
    toned: dict[int, tuple[int, ...]]  # the counts of the bins for each colour of a kind
    words: str  # the same for those who do not see the picture
    drawn: bool  # whether there are enough for a picture to say more than the words


def measure_sizes(rows: ReportRows, wrong: Residuals, off: str) -> Sizes | None:
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
    return Sizes(float(start), step, toned, among + _words(wrong, size, off), drawn=len(size) >= _FEW)


def _words(wrong: Residuals, size: FloatArray, off: str) -> str:
    n = len(wrong.index)
    above = int((wrong.values > 0).sum())
    below = int((wrong.values < 0).sum())
    if n == 1:
        return f"The only one is off by {write(float(size[0]))}."
    places = decimal_places(wrong.values)
    middle, most, least = (write(float(v), places, digits=4) for v in (np.median(size), size.max(), size.min()))
    return (
        f"Half of the {off} are off by {middle} or more; the largest difference is {most}, the smallest {least}. "
        f"{above:,} ({share(above, n)}) were given too high and {below:,} ({share(below, n)}) too low."
    )


WIDTH, HEIGHT = 640, 400  # of the picture
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 12, 10, 46  # its margins
_MOST_RIGHT, _MOST_WRONG = 300, 600  # points of the picture without a script
_MOST_TICKS = 7  # of an axis
_LARGEST = 1e300  # beyond which the width of an axis overflows


def scatter(rows: ReportRows, words: str) -> str:
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
    values: FloatArray, scale: AxisScale, start: float, end: float
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
