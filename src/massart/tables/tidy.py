"""Rows and columns of a file that are not part of the table: blank ones, repeated headers, units, totals, footers.

Exports have them, and people who look at a table do not see them. Three rules, which hold in any language, separate
them from data: a row without a value is blank; one that has text where nearly all rows have numbers, and no number
there, is not data; and one that lacks what nearly all have, and whose number is the sum of those above it (or which
says "total"), is a total.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from massart.rows import BoolArray, FloatArray
from massart.tables.errors import counted, listed, quote
from massart.tables.numbers import NEARLY_ALL, TOTAL, TextNumbers, in_ascii, numbers_in, read_numbers, units_of
from massart.tables.table import (
    CodedTexts,
    Table,
    flags,
    floats,
    is_number,
    is_plain_text,
    is_text,
    levels_in,
    levels_of,
    matches,
    named,
)


def tidied(table: Table) -> Table:
    """Return a table as it was read without what is not part of it, with remarks that say so.

    Its columns have names by `named`.
    """
    arrow, places = table.arrow, named([""] * table.arrow.num_columns, table.name)
    kept = [
        j
        for j, (name, column) in enumerate(zip(arrow.column_names, arrow.columns, strict=True))
        if name != places[j] or column.null_count < len(column)
    ]
    if 0 < len(kept) < arrow.num_columns:
        table = replace(table, arrow=arrow.select(kept))
        arrow = table.arrow
    if not any(column.null_count or is_text(column.type) for column in arrow.columns):
        return table
    present = [_present(column) for column in arrow.columns]
    blank = ~np.logical_or.reduce(present)
    numbers = _numbers_of(table)
    texts = _texts_where_numbers_are(present, numbers) & ~blank
    totals = _totals(arrow, present, numbers, ~(blank | texts))
    gone = blank | texts | totals
    if not gone.any() or gone.all():
        return table
    remarks = [
        f"{counted(int(which.sum()), 'row')} left out: {words} ({_examples(arrow, which)})."
        for which, words in (
            (texts, "there are no numbers in columns of numbers, so this is not data"),
            (totals, "this looks like a total of other rows"),
        )
        if which.any()
    ]
    kept = arrow.filter(pa.array(~gone))
    return replace(table, arrow=kept, numbers=np.flatnonzero(~gone), remarks=(*table.remarks, *remarks))


def _present(column: pa.ChunkedArray) -> BoolArray:
    """Mark the cells that are neither null nor blank."""
    if column.null_count == 0 and not is_text(column.type):
        return np.ones(len(column), dtype=bool)
    there = pc.is_valid(column)
    if is_plain_text(column.type):
        there = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(column), ""), False)
    return flags(there.combine_chunks())


def _numbers_of(table: Table) -> dict[int, FloatArray]:
    """Return the columns that hold numbers but for a few cells, with NaN for these."""
    found: dict[int, FloatArray] = {}
    for j, (name, column) in enumerate(zip(table.column_names, table.arrow.columns, strict=True)):
        if is_number(column.type):
            found[j] = floats(column)
        elif is_plain_text(column.type):
            # To read the words of a text takes long, and the first hundred tell that they are no numbers.
            few = levels_of(column.slice(0, 100))
            with_number = _with_number(few, read_numbers(few.texts, few.counts, hint=table.decimal))
            if 2 * with_number.sum() <= len(with_number):
                continue
            levels, read = levels_in(table, name), numbers_in(table, name)
            with_number = _with_number(levels, read)
            n_present = levels.counts[~read.missing].sum()
            if n_present and levels.counts[with_number].sum() >= NEARLY_ALL * n_present:
                values = np.where(with_number & np.isnan(read.values), 0.0, read.values)
                found[j] = np.append(values, np.nan)[levels.codes]
    return found


def _with_number(levels: CodedTexts, read: TextNumbers) -> BoolArray:
    """Mark the texts that are numbers, with a unit or without."""
    found, other = read.is_number.copy(), np.flatnonzero(~read.is_number)
    found[other] = units_of(in_ascii(levels.texts.take(pa.array(other)))).codes >= 0
    return found


def _texts_where_numbers_are(present: Sequence[BoolArray], numbers: dict[int, FloatArray]) -> BoolArray:
    """Mark rows that have no number in any column of numbers, and something else in one."""
    none = np.ones(len(present[0]), dtype=bool)
    if not numbers:
        return ~none
    other = np.zeros_like(none)
    for j, values in numbers.items():
        missing = np.isnan(values)
        none &= missing
        other |= missing & present[j]
    return none & other


def _totals(
    arrow: pa.Table, present: Sequence[BoolArray], numbers: dict[int, FloatArray], data: BoolArray
) -> BoolArray:
    """Mark rows that lack what nearly all rows have and are, or say that they are, the total of those above.

    Of more than a tenth of the rows none is: benchmarks/messy.py, section_headings.
    """
    found = np.zeros_like(data)
    lacking = np.logical_or.reduce([found, *(~has & data for has in present if has[data].mean() >= NEARLY_ALL)])
    texts = [column for column in arrow.columns if is_plain_text(column.type)]
    said = np.logical_or.reduce([found, *(matches(one, TOTAL, ignore_case=True) for one in texts)])
    most = max(len(data) // 10, 1)
    if said.sum() > most:
        return found
    last = np.flatnonzero(data)[-1:]
    for row in np.flatnonzero(lacking | said)[-200:].tolist():
        # A last row that lacks nothing is one if it begins so: a remark in it may begin with "total", too.
        begins_so = re.match(TOTAL, str(_first(arrow, row)), re.IGNORECASE) is not None
        is_sure = said[row] and (lacking[row] or (row in last and begins_so))
        found[row] = is_sure or _is_sum(numbers, row, data & ~found, found)
    return found if found.sum() <= most else np.zeros_like(found)


def _is_sum(numbers: dict[int, FloatArray], row: int, data: BoolArray, totals: BoolArray) -> bool:
    """Whether a number of a row is, to half a cent, the sum of three above it or more, all or those below a total."""
    before = np.flatnonzero(totals[:row])
    for start in {0, int(before[-1]) + 1 if before.size else 0}:
        for values in numbers.values():
            above = values[start:row][data[start:row]]
            above, total = above[~np.isnan(above)], values[row]
            with np.errstate(over="ignore"):
                size = np.abs(above).sum()
            if len(above) > 2 and total and size < np.inf and abs(above.sum() - total) <= 1e-9 * size + 0.005:
                return True
    return False


def _examples(arrow: pa.Table, which: BoolArray) -> str:
    """Return the numbers of some rows, each with its first text."""
    rows = np.flatnonzero(which).tolist()
    return listed((f"row {row + 1:,} {quote(_first(arrow, row))}" for row in rows), len(rows), 3)


def _first(arrow: pa.Table, row: int) -> object:
    """Return the first cell of a row in which something is written."""
    return next((cell for column in arrow.columns if (cell := column[row].as_py()) not in (None, "")), "")
