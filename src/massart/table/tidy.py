"""Rows and columns of a file that are no part of the table: blank ones, repeated headers, units, totals, footers.

Exports have them, and people who look at a table do not see them. Three laws tell them from data, in any language: a
row without a value is none; neither is one that has no number where nearly all rows have numbers, but a text; and a row
that lacks what nearly all have, and whose number is the sum of those above it (or which says "total"), is a total.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from massart.rows import BoolArray, FloatArray
from massart.table.errors import counted, listed, quote
from massart.table.levels import Levels, levels_of
from massart.table.numbers import in_ascii, is_missing, read_numbers, units_of
from massart.table.table import flags, is_plain_text, is_text, named
from massart.table.text import TOTAL

_NEARLY_ALL = 0.9
_MOST_TOTALS = 0.1
_SHOWN = 3
_FIRST_ROWS = 100
_MOST_LOOKED_AT = 200
_ROUNDING = 1e-9


def tidied(arrow: pa.Table, decimal: str | None) -> tuple[pa.Table, BoolArray | None, tuple[str, ...]]:
    """Return a table as it was read without what is no part of it, the rows that are left, and remarks.

    The columns have names by `named`; `decimal` is the decimal mark of texts, if it is known. None stands for all rows.
    """
    places = named([""] * arrow.num_columns)
    empty = [j for j, column in enumerate(arrow.columns) if _n_present(column) == 0]
    nameless = {j for j in empty if arrow.column_names[j] == places[j]}
    if nameless and len(nameless) < arrow.num_columns:
        arrow = arrow.select([j for j in range(arrow.num_columns) if j not in nameless])
    if not any(column.null_count or is_text(column.type) for column in arrow.columns):
        return arrow, None, ()
    present = [_present(column) for column in arrow.columns]
    blank = ~np.logical_or.reduce(present)
    numbers = _numbers_of(arrow, decimal)
    texts = _texts_where_numbers_are(present, numbers) & ~blank
    totals = _totals(arrow, present, numbers, ~(blank | texts))
    gone = blank | texts | totals
    if not gone.any() or gone.all():
        return arrow, None, ()
    remarks = [
        f"{counted(int(which.sum()), 'row')} left out: {words} ({_examples(arrow, which)})."
        for which, words in (
            (texts, "there are no numbers in columns of numbers, so this is no data"),
            (totals, "this looks like a total of other rows"),
        )
        if which.any()
    ]
    return arrow.filter(pa.array(~gone)), ~gone, tuple(remarks)


def _n_present(column: pa.ChunkedArray) -> int:
    return len(column) - int(column.null_count)


def _present(column: pa.ChunkedArray) -> BoolArray:
    """Mark the cells that are neither null nor blank."""
    if column.null_count == 0 and not is_text(column.type):
        return np.ones(len(column), dtype=bool)
    there = pc.is_valid(column)
    if is_plain_text(column.type):
        there = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(column), ""), False)
    return flags(there.combine_chunks())


def _numbers_of(arrow: pa.Table, decimal: str | None) -> dict[int, FloatArray]:
    """Return the columns that hold numbers but for a few cells, with NaN for these."""
    found: dict[int, FloatArray] = {}
    for j, column in enumerate(arrow.columns):
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            found[j] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        elif is_plain_text(column.type):
            # To read the words of a text takes long, and the first hundred tell that they are no numbers.
            few = _readable(levels_of(column.slice(0, _FIRST_ROWS)), decimal)[0]
            if 2 * few.sum() <= len(few):
                continue
            levels = levels_of(column)
            is_number, values = _readable(levels, decimal)
            missing = is_missing(levels.texts, words=True)
            n_present = levels.counts[~missing].sum()
            if n_present and levels.counts[is_number].sum() >= _NEARLY_ALL * n_present:
                found[j] = np.append(np.where(is_number & np.isnan(values), 0.0, values), np.nan)[levels.codes]
    return found


def _readable(levels: Levels, decimal: str | None) -> tuple[BoolArray, FloatArray]:
    """Return which texts are numbers, with a unit or without, and these numbers as far as they are known."""
    read = read_numbers(levels.texts, levels.counts, hint=decimal)
    return read.is_number | (units_of(in_ascii(levels.texts)).codes >= 0), read.values


def _texts_where_numbers_are(present: Sequence[BoolArray], numbers: dict[int, FloatArray]) -> BoolArray:
    """Mark rows that have no number in any column of numbers, and something else in one, or next to nothing."""
    none = np.ones(len(present[0]), dtype=bool)
    if not numbers:
        return ~none
    other = np.zeros_like(none)
    for j, values in numbers.items():
        missing = np.isnan(values)
        none &= missing
        other |= missing & present[j]
    n_filled = np.sum(present, axis=0)
    return none & (other | (4 * n_filled <= len(present))) if len(present) > 1 else none & other


def _totals(
    arrow: pa.Table, present: Sequence[BoolArray], numbers: dict[int, FloatArray], data: BoolArray
) -> BoolArray:
    """Mark rows that lack what nearly all rows have and are, or say that they are, the total of those above."""
    lacking = np.zeros(len(data), dtype=bool)
    for filled in present:
        if filled[data].mean() >= _NEARLY_ALL:
            lacking |= ~filled & data
    said = np.zeros_like(lacking)
    for column in arrow.columns:
        if is_plain_text(column.type):
            said |= flags(pc.match_substring_regex(column, TOTAL, ignore_case=True))
    last = np.flatnonzero(data)[-1:]
    found = np.zeros_like(lacking)
    candidates = np.union1d(np.flatnonzero(lacking | said)[-_MOST_LOOKED_AT:], last)
    for row in candidates.tolist() if said.sum() <= max(_MOST_TOTALS * len(data), 1) else []:
        is_sure = said[row] and (lacking[row] or row in last)
        found[row] = is_sure or ((said[row] or lacking[row]) and _is_sum(numbers, row, data & ~found, found))
    return found if found.sum() <= max(_MOST_TOTALS * len(data), 1) else np.zeros_like(found)


def _is_sum(numbers: dict[int, FloatArray], row: int, data: BoolArray, totals: BoolArray) -> bool:
    """Whether a number of a row is the sum of at least three above it, or of those below the last total."""
    before = np.flatnonzero(totals[:row])
    for start in {0, int(before[-1]) + 1 if before.size else 0}:
        for values in numbers.values():
            above = values[start:row][data[start:row]]
            above, total = above[~np.isnan(above)], values[row]
            with np.errstate(over="ignore"):
                size = np.abs(above).sum()
            if len(above) > 2 and total and size < np.inf and abs(above.sum() - total) <= _ROUNDING * size + 0.005:
                return True
    return False


def _examples(arrow: pa.Table, which: BoolArray) -> str:
    """Return the numbers of some rows, each with its first text."""
    rows = np.flatnonzero(which).tolist()
    return listed((f"row {row + 1:,} {quote(_first_text(arrow, row))}" for row in rows), len(rows), _SHOWN)


def _first_text(arrow: pa.Table, row: int) -> object:
    cells = (column[row].as_py() for column in arrow.columns)
    return next((cell for cell in cells if cell not in (None, "")), "")
