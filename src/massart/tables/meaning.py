"""What a column can serve as: a number, yes or no, a category, a date; or why it cannot be an input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.tables.encoding import MOST_LEVELS, Category, Date, Flag, Input, Number
from massart.tables.errors import TableError, listed, quote
from massart.tables.levels import Levels, levels_in, numbers_in, spellings_of
from massart.tables.numbers import (
    Numbers,
    currencies_in,
    date_texts,
    days_of,
    in_ascii,
    is_date,
    is_missing,
    order_of,
    read_dates,
    read_numbers,
    units_of,
)
from massart.tables.table import LARGEST_EXACT, Table, flags, is_text

YES = ("yes", "true", "y", "t")
NO = ("no", "false", "n", "f")
_ROWS_A_LEVEL = 4
_FEW_LEVELS = 20
NUMBERS_SHARE = 0.9
"""From this share of numbers on, a text among them is a mistake and not a level: benchmarks/messy.py, odd_cells."""

_FIRST_ROWS = 1 << 12
_SAMPLE_TEXTS = 1 << 10
_MOST_UNITS = 8
_MOST_SHOWN = 10
_SENTINELS = frozenset(sign * (10.0**digits - 1) for sign in (-1, 1) for digits in range(2, 8))
_FAR = 2.0  # times as large as any other: benchmarks/messy.py, sensor_sentinels
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(?i:[ap]\.?m\.?)?\s*(?i:z|utc|[-+]\d{2}:?\d{2})?"
_DAY = (
    r"(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})|"
    rf"\d{{1,2}}\.?[-/ ]{_MONTH}([-/, ]+\d{{2,4}})?|{_MONTH} \d{{1,2}}(,? \d{{4}})?|{_MONTH}[- ]\d{{2,4}})"
)
# 2024.05 and 12.30 are numbers, so numbers are looked for first.
_DATE = rf"^(({_DAY})([T ,]+({_CLOCK}|\d{{2}}Z?))?|{_CLOCK})$"


@dataclass(frozen=True, slots=True)
class Role:
    """What a column can serve as."""

    entry: Input | None  # None if it cannot be an input
    why: str = ""  # why it cannot, or need not: "it holds lists"; empty otherwise
    notice: str = ""  # how it was interpreted, as a sentence; empty where nothing was
    constant: bool = False  # whether all rows have the same value, as `why` says: an input only without an intercept
    doubt: str = ""  # why what looks like numbers was not read as such; empty otherwise
    bad: str = ""  # the cells among numbers that are not numbers, by row: 'row 6 has "oops"'; empty otherwise


def role_of(table: Table, name: str, *, asked: bool = False, with_base: bool = True) -> Role:
    """Decide what a column can serve as.

    A column that was `asked` for by name may have more levels, and missing values in most rows. With a base, the most
    frequent level of a category gets no column of X.
    """
    column = table.column(name)
    unfit = unfit_type(column.type)
    is_coded = pa.types.is_dictionary(column.type) or is_text(column.type)
    levels = levels_in(table, name) if is_coded and not unfit else None
    n_present = len(column) - column.null_count if levels is None else levels.n_present
    if n_present == 0:
        return Role(None, "it is empty")
    if is_date(column.type):
        return _role_of_days(Date(name), *days_of(column), asked)
    if unfit:
        return Role(None, unfit)
    if 2 * n_present < len(column) and not asked:
        # As an input it would cost more rows than it leaves.
        return Role(None, f"it is empty in {len(column) - n_present:,} of {len(column):,} rows")
    if levels is not None:
        return _role_of_text(table, name, levels, asked, with_base)
    if pa.types.is_boolean(column.type):
        is_constant = pc.count_distinct(column.drop_null()).as_py() == 1
        return Role(Flag(name), "it is the same in every row" if is_constant else "", constant=is_constant)
    role = _role_of_numbers(column, name)
    if not asked and isinstance(role.entry, Number) and _are_beyond_floats(column):
        return Role(None, "it has integers beyond 2**53, as identifiers are")
    return role


def role_as_category(table: Table, name: str, *, with_base: bool = True) -> Role:
    """Return the role of a column that is to be a category, whatever it holds; TableError if it has too many values."""
    levels = levels_in(table, name)
    if not levels.n_present:
        return Role(None, "it is empty")
    if len(levels.texts) > MOST_LEVELS:
        raise TableError(
            f"{table.name}: column {quote(name)} cannot be a category: it has {len(levels.texts):,} different values, "
            f"more than {MOST_LEVELS} (leave it out, or let it be a number)"
        )
    return _category(table, name, levels, with_base, asked=True)


_UNFIT: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (is_date, "it holds dates"),
    (pa.types.is_time, "it holds times of the day"),
    (pa.types.is_temporal, "it holds durations"),
    (pa.types.is_struct, "it holds structures"),
    (pa.types.is_map, "it holds structures"),
    (pa.types.is_nested, "it holds lists"),
    (lambda kind: "binary" in str(kind), "it holds binary data"),
)
_FIT = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null),
    is_text,
)


def unfit_type(kind: pa.DataType) -> str:
    """Return why a type has no numbers in it: "it holds dates"; empty for numbers, booleans and text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if any(is_fit(kind) for is_fit in _FIT):
        return ""
    return next((why for is_unfit, why in _UNFIT if is_unfit(kind)), f"it holds values of type {kind}")


def words_for_flags(levels: Levels) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return which texts mean yes, which mean no, and which mean that the value is missing."""
    small = pc.utf8_lower(levels.texts)
    yes, no = (flags(pc.is_in(small, value_set=pa.array(words, small.type))) for words in (YES, NO))
    return yes, no, is_missing(levels.texts)


def role_as_number(table: Table, name: str) -> Role:
    """Return the role of a column that is to be a number, whatever else is in it; TableError if it holds none."""
    column = table.column(name)
    unfit = unfit_type(column.type)
    if unfit:
        raise TableError(f"{table.name}: column {quote(name)} cannot be a number: {unfit}")
    if not is_text(column.type):
        return _role_of_numbers(column, name)
    numbers, unit = numbers_and_unit(table, name)
    if not numbers.is_number.any():
        raise TableError(f"{table.name}: column {quote(name)} cannot be a number: no cell of it is one")
    return _role_of_number_text(table, name, numbers, True, unit)


def bad_cells(table: Table, levels: Levels, strange: BoolArray) -> str:
    """Return the rows whose text is marked, and what they have: 'row 6 has "oops", row 9 has "?!" and 3 more'."""
    rows = np.flatnonzero(np.append(strange, False)[levels.codes])
    shown = (f"row {table.place(row)} has {quote(levels.text(row))}" for row in map(int, rows))
    return listed(shown, len(rows), _MOST_SHOWN)


def unit_of(levels: Levels, numbers: Numbers) -> tuple[str | None, str]:
    """Return the unit behind nearly all numbers of a column, or else why there is none, "" if none has one.

    The numbers are the texts read without a unit.
    """
    strange = ~numbers.is_number & ~numbers.missing
    if not strange.any():
        return None, ""
    present = levels.counts[~numbers.missing].sum()
    found = units_of(in_ascii(levels.texts))
    held = (found.codes >= 0) & strange
    if not held.any():
        return None, ""
    counts = np.bincount(found.codes[held], levels.counts[held], len(found.names))
    # Ties go to the unit that sorts first, so that the order of the rows does not matter.
    order = sorted(np.flatnonzero(counts), key=lambda place: (-counts[place], found.names[place]))
    names = [found.names[place] for place in order]
    if counts[order[0]] >= NUMBERS_SHARE * present:
        return names[0], ""
    if levels.counts[held | numbers.is_number].sum() < NUMBERS_SHARE * present or len(names) > _MOST_UNITS:
        return None, ""
    if len(names) == 1:
        return None, f"some of its numbers are in {names[0]} and some have no unit"
    return None, f"its numbers have different units ({', '.join(map(quote, names))})"


def numbers_and_unit(table: Table, name: str) -> tuple[Numbers, str | None]:
    """Return a column of text as numbers, whatever else is among them, and the unit behind these."""
    unit, _ = unit_of(levels_in(table, name), numbers_in(table, name))
    return numbers_in(table, name, unit=unit), unit


def _role_of_numbers(column: pa.ChunkedArray, name: str) -> Role:
    # The first rows are enough to see of nearly every column that it is neither empty nor constant.
    for part in (column.slice(0, _FIRST_ROWS), column):
        low, high = _limits(part)
        if low is not None and low < high:
            return Role(Number(name), notice=_sentinel(name, *_counted(column)))
    if low is None:
        return Role(None, "it is empty")
    # A column of zeros determines nothing even where there is no intercept.
    return Role(Number(name) if low else None, f"it is {low:g} in every row", constant=True)


def _counted(column: pa.ChunkedArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the values of a column and how often each occurs, if the least or the largest may mean missing."""
    low, high = _limits(column)
    if low not in _SENTINELS and high not in _SENTINELS:
        return np.empty(0), np.empty(0, dtype=np.int64)
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.unique(values[np.isfinite(values)], return_counts=True)


def _sentinel(name: str, values: FloatArray, counts: NDArray[np.int64]) -> str:
    """Ask about a number such as -999 that several rows have and that is far from all others; empty without one.

    Examples
    --------
    >>> _sentinel("t", np.array([-999.0, 12.5, 14.0]), np.array([4, 1, 1]))
    '"t" is -999 in 4 rows, far from all others: if that means missing, say so with --na -999.'
    """
    for place in {int(np.argmin(values)), int(np.argmax(values))} if len(values) > 2 else ():
        others, value = np.delete(values, place), float(values[place])
        if value in _SENTINELS and counts[place] > 1 and np.abs(others).max() * _FAR < abs(value):
            rest = f"far from all others: if that means missing, say so with --na {value:g}."
            return f"{quote(name)} is {value:g} in {int(counts[place]):,} rows, {rest}"
    return ""


def _are_beyond_floats(column: pa.ChunkedArray) -> bool:
    """Whether most numbers of a column are integers that float64 does not hold."""
    if not pa.types.is_integer(column.type) or column.type.bit_width < 64:
        return False
    low, high = _limits(column)
    if low is None or max(-low, high) <= LARGEST_EXACT:
        return False
    beyond = pc.greater(pc.abs_checked(column.cast(pa.float64(), safe=False)), float(LARGEST_EXACT))
    return bool(2 * pc.sum(beyond).as_py() > len(column) - column.null_count)


def _limits(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return the least and the largest number, None if there is none."""
    if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
        column = column.cast(pa.float64(), safe=False)
    limits = pc.min_max(column)
    low, high = limits["min"].as_py(), limits["max"].as_py()
    return (None, None) if isinstance(low, float) and math.isnan(low) else (low, high)


def _role_of_text(table: Table, name: str, levels: Levels, asked: bool, with_base: bool) -> Role:
    yes, no, nothing = words_for_flags(levels)
    if yes.any() and no.any() and (yes | no | nothing).all():
        return Role(Flag(name), notice=f"Read {quote(name)} as 1 for yes or true and 0 for no or false.")
    if is_text(table.column(name).type) and _may_be_numbers_or_dates(levels):
        numbers = numbers_in(table, name)
        present = int(levels.counts[~numbers.missing].sum())
        n_numbers = int(levels.counts[numbers.is_number].sum())
        if present == 0:
            return Role(None, "it is empty")
        if n_numbers >= NUMBERS_SHARE * present:
            mixed = currencies_in(levels.texts, levels.counts)
            if len(mixed) > 1:
                listed = ", ".join(f"{currency} in {count:,} rows" for currency, count in mixed.items())
                return Role(None, f"it mixes currencies ({listed}); --number reads the numbers as they are")
            return _role_of_number_text(table, name, numbers, asked)
        if levels.counts[_dates(levels.texts)].sum() >= NUMBERS_SHARE * present:
            return _role_of_date_text(name, levels, numbers.missing, asked)
        unit, doubt = unit_of(levels, numbers)
        if unit is not None:
            return _role_of_number_text(table, name, numbers_in(table, name, unit=unit), asked, unit)
        return _role_of_levels(table, name, levels, asked, with_base, doubt)
    return _role_of_levels(table, name, levels, asked, with_base)


def _may_be_numbers_or_dates(levels: Levels) -> bool:
    """Whether more than half of a sample are numbers or dates: to read all of a column of free text takes long."""
    step = len(levels.texts) // _SAMPLE_TEXTS
    if step < 2:
        return True
    places = np.arange(0, len(levels.texts), step)
    texts = levels.texts.take(pa.array(places))
    numbers = read_numbers(texts, levels.counts[places])
    with_units = units_of(in_ascii(texts)).codes >= 0
    return bool((numbers.is_number | numbers.missing | with_units | _dates(texts)).mean() > 0.5)


def _dates(texts: pa.Array) -> BoolArray:
    return flags(pc.match_substring_regex(texts, _DATE))


def _role_of_date_text(name: str, levels: Levels, missing: BoolArray, asked: bool) -> Role:
    order, doubt = order_of(levels.texts.filter(pa.array(~missing)))
    if order is None:
        return Role(None, doubt)
    days = read_dates(levels.texts, order)
    role = _role_of_days(Date(name, order), np.append(days, np.nan)[levels.codes], "", asked)
    if role.why:
        return role
    notice = f"Read the text in {quote(name)} as dates"
    if order != "ymd":
        late = int(np.nanargmax(days))
        notice += f": {quote(levels.texts[late].as_py())} is {date_texts(days[late : late + 1])[0]}"
    if doubt:
        notice += f"; {doubt}, and the day was assumed"
    return replace(role, notice=notice + ".")


def _role_of_days(entry: Date, days: FloatArray, why: str, asked: bool) -> Role:
    if why:
        return Role(None, why)
    present = days[~np.isnan(days)]
    if not present.size:  # Arrow counts no nulls that are among coded values
        return Role(None, "it is empty")
    if len(present) < len(days) and not asked:
        # Few rules need it, and as an input it would cost all rules the rows in which it is empty.
        return Role(None, f"it holds dates and is empty in {len(days) - len(present):,} of {len(days):,} rows")
    if present.min() == present.max():
        return Role(entry, f"it is {date_texts(present[:1])[0]} in every row", constant=True)
    return Role(entry)


def _role_of_number_text(table: Table, name: str, numbers: Numbers, asked: bool, unit: str | None = None) -> Role:
    levels, is_number = levels_in(table, name), numbers.is_number
    values, counts = numbers.values[is_number], levels.counts[is_number]
    entry, behind = Number(name, numbers.decimal, unit), f" {unit}" if unit else ""
    n_rows, n_present = len(levels.codes), int(counts.sum())
    if 2 * n_present < n_rows and not asked:
        return Role(None, f"it is empty in {n_rows - n_present:,} of {n_rows:,} rows")
    if values.min() == values.max():
        return Role(entry if values[0] else None, f"it is {values[0]:g}{behind} in every row", constant=True)
    notice = f"Read the text in {quote(name)} as numbers{' in' if unit else ''}{behind}"
    odd = np.flatnonzero(is_number & ~numbers.plain)
    if odd.size:
        notice += f": {quote(levels.texts[int(odd[0])].as_py())} is {numbers.values[odd[0]]:.15g}"
    if numbers.ambiguous:
        notice += "; its commas may separate thousands or decimals, and thousands were assumed"
    if numbers.percent:
        notice += "; percent signs were dropped"
    bad = bad_cells(table, levels, ~is_number & ~numbers.missing)
    if bad:
        notice += f"; {bad}, which is not a number: such rows are left out"
    return Role(entry, notice=f"{notice}. {_sentinel(name, values, counts)}".rstrip(), bad=bad)


def _role_of_levels(table: Table, name: str, levels: Levels, asked: bool, with_base: bool, doubt: str = "") -> Role:
    n_levels = len(levels.texts)
    n_present = sum(table.frequencies[name].values()) if name in table.frequencies else levels.n_present
    few = min(MOST_LEVELS, max(_FEW_LEVELS, math.isqrt(n_present)))
    if asked:
        few = MOST_LEVELS
    if n_levels > 1 and (n_levels > few or n_present < (2 if asked else _ROWS_A_LEVEL) * n_levels):
        table.forget(("levels", name))
        return Role(None, doubt or f"it looks like an identifier or free text: {n_levels:,} different values")
    return _category(table, name, levels, with_base, doubt)


def _category(
    table: Table, name: str, levels: Levels, with_base: bool, doubt: str = "", *, asked: bool = False
) -> Role:
    known = table.frequencies.get(name, {})
    pairs = zip(levels.texts.to_pylist(), levels.counts.tolist(), strict=True)
    found, words = spellings_of({text: known.get(text, count) for text, count in pairs}, asked=asked)
    texts = list(found)
    if len(texts) == 1:
        return Role(Category(name, (texts[0],), None), f"it is {quote(texts[0])} in every row", constant=True)
    # Ties go to the text that sorts first, so that the order of the rows does not matter.
    ordered = sorted(texts, key=lambda text: (-found[text], text))
    base = ordered[0] if with_base else None
    kept = tuple(sorted(ordered[1:] if with_base else ordered))
    notice = f"Read {quote(name)} as a category with {len(texts)} levels"
    if doubt:
        notice += f"; it was not read as numbers, for {doubt}"
    return Role(Category(name, kept, base), notice=f"{notice}.{words}", doubt=doubt)
