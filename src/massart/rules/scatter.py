r"""Where the rows that break a rule lie: all over the table, or mostly in some part of it.

If other terms explain rows that a rule of the plain columns gets wrong, and keep those that it gets right, then what
they add is zero where it is right. So the rows that they explain are a part of the rows by X, a level, a range of a
column, the rows with a fee, or two of these at once, in which nearly every row is wrong. Where no part has clearly more
wrong rows than the whole, and as many as other terms would have to explain would stand out, none are looked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.rules.columns import Columns
from massart.rules.formula import label_of
from massart.rules.libraries import categories

WINDOWS = 8
"""Parts of a column of numbers, of equal size, each of which a rule should explain."""

FEWEST_SHARED, STRANGE_SHARE = 12, 0.8
"""Wrong rows, at least, and the share of them that has one value in common, or of its rows that is wrong."""

_NARROW = 16  # windows in which wrong rows are counted, as many again between these
_ONE, _TWO = 4.0, 5.0  # deviations: of hundreds of parts, and of ten thousands of pairs, none is off so far by chance
_SURELY = 2.0  # deviations more that as many rows as other terms would explain stand out by
_LEAST_SHARE = 0.25  # of these rows, that one part holds
_MOST_ROWS, _MOST_PARTS = 20_000, 2_000  # of which pairs are counted


def parts_of(columns: Columns) -> tuple[NDArray[np.intp], ...]:
    """Return parts of the rows by X alone: levels, and windows of each column of numbers."""
    found = [known.codes.astype(np.intp) for known in columns.levels.values()]
    codes = [str(levels[0].parts[0]) for levels in categories(columns) if levels[0].parts[0] in columns.numbers]
    found += [np.unique(columns.numbers[name], return_inverse=True)[1].astype(np.intp) for name in codes]
    found += [_windows(values, np.linspace(0, 1, WINDOWS + 1)[1:-1]) for values in columns.numbers.values()]
    return tuple(found)


def _windows(values: FloatArray, shares: FloatArray) -> NDArray[np.intp]:
    edges = np.unique(np.quantile(values, shares))
    return np.searchsorted(edges, values, side="left").astype(np.intp)


def is_even(columns: Columns, implied: FloatArray, wrong: BoolArray, least: float) -> bool:
    """Tell whether wrong rows lie all over the table, so that no other terms explain as many as `least` of them.

    `implied` is what the rule gives: caps and floors begin at one of these values. False, too, where there are too few
    rows to tell.
    """
    n, share = len(wrong), float(wrong.mean())
    deviation = np.sqrt(share * (1 - share))
    if least * (1 - share) < (_ONE + _SURELY) * deviation * np.sqrt(n / _NARROW + least):
        return False
    parts = parts_of(columns)
    edges = np.arange(1, 2 * _NARROW) / (2 * _NARROW)
    single = [*parts]
    for values in (*columns.numbers.values(), implied):
        single += [_windows(values, edges[1::2]), _windows(values, edges[::2])]
    for name in sorted(columns.dates):
        days = np.floor(columns.numbers[name]).astype(np.int64)
        months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
        single += [(days % 7).astype(np.intp), months.astype(np.intp)]
    for codes in single:
        rows = np.bincount(codes)
        excess = np.bincount(codes, weights=wrong) - share * rows
        if (excess > np.maximum(_ONE * deviation * np.sqrt(rows), _LEAST_SHARE * least)).any():
            return False
    some = np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.intp)
    if sum(int(codes.max()) + 1 for codes in parts) > _MOST_PARTS:
        return False
    member = np.hstack([codes[some, None] == np.arange(codes.max() + 1) for codes in parts]).astype(np.float32)
    excess = member.T @ (member * (wrong[some, None] - np.float32(share)))
    limit = np.maximum(_TWO * deviation * np.sqrt(member.T @ member), _LEAST_SHARE * least * len(some) / n)
    return not (excess > limit).any()


def shared_values(columns: Columns, agree: BoolArray) -> Iterator[str]:
    """Say which values of a column most wrong rows share, or hardly a right row has."""
    wrong = int(np.count_nonzero(~agree))
    for levels in categories(columns):
        for level in levels:
            there = level.evaluate(columns) > 0
            n, off = int(np.count_nonzero(there)), int(np.count_nonzero(there & ~agree))
            if off >= FEWEST_SHARED and off > STRANGE_SHARE * n:
                yield f"Of {n:,} rows with {label_of(level)}, {off:,} do not agree: another rule may hold there."
            elif wrong >= FEWEST_SHARED and off > STRANGE_SHARE * wrong and 2 * n < len(agree):
                yield f"Of {wrong:,} rows that do not agree, {off:,} have {label_of(level)}."
    ranges = [found for name in columns.numbers for found in _strange_ranges(columns, name, agree)]
    if ranges:  # one of them: columns that go together have the same rows
        off, n, text = max(ranges)
        yield f"Of {n:,} rows with {text}, {off:,} do not agree: a curve or another rule may hold there."


def _strange_ranges(columns: Columns, name: str, agree: BoolArray) -> Iterator[tuple[int, int, str]]:
    """Yield ranges of a column in which hardly a row agrees: the rows that do not, all of them, and the range."""
    values = columns.numbers[name]
    codes = _windows(values, np.linspace(0, 1, WINDOWS + 1)[1:-1])
    rows, off = np.bincount(codes), np.bincount(codes, weights=~agree)
    strange = (off >= FEWEST_SHARED) & (off > STRANGE_SHARE * rows)
    if strange.all():
        return
    edges = np.flatnonzero(np.diff(strange, prepend=False, append=False))
    for first, end in edges.reshape(-1, 2):
        some = values[(codes >= first) & (codes < end)]
        low, high = (_written(columns, name, float(value)) for value in (some.min(), some.max()))
        yield int(off[first:end].sum()), len(some), f"{name} from {low} to {high}"


def _written(columns: Columns, name: str, value: float) -> str:
    return str(np.datetime64(int(value), "D")) if name in columns.dates else f"{value:g}"
