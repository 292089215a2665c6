"""What each column means: a number, yes or no, a category, a date, or no input; and which columns are the inputs.

Spellings of a category that differ only by capitals and spaces are one level: ``north`` is ``North``. A rare one that
is a slip of the pen away from a frequent one is not: ``Suoth`` may be ``South``, or a name of its own. Its rows are
left out, and a notice asks. So are those of a rare ``N/A``, which is the level of no row.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.tables.design import (
    Category,
    Date,
    Encoding,
    Flag,
    Input,
    Number,
    Target,
    folded,
    unfit_type,
    words_for_flags,
)
from massart.tables.errors import TableError, counted, listed, quote
from massart.tables.numbers import (
    MISSING,
    NEARLY_ALL,
    TextNumbers,
    currencies_in,
    date_texts,
    days_of,
    in_ascii,
    is_date,
    numbers_in,
    order_of,
    read_dates,
    read_numbers,
    units_of,
)
from massart.tables.stream import INDEX
from massart.tables.table import LARGEST_EXACT, CodedTexts, Table, decoded, floats, is_text, levels_in, matches

MOST_LEVELS = 200

# Numbers that may mean that a value is missing: 99, 999 and so on, of either sign.
_SENTINELS = frozenset(sign * (10.0**digits - 1) for sign in (-1, 1) for digits in range(2, 8))
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(?i:[ap]\.?m\.?)?\s*(?i:z|utc|[-+]\d{2}:?\d{2})?"
_DAY = (
    r"(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})|"
    rf"\d{{1,2}}\.?[-/ ]{_MONTH}([-/, ]+\d{{2,4}})?|{_MONTH} \d{{1,2}}(,? \d{{4}})?|{_MONTH}[- ]\d{{2,4}})"
)
# 2024.05 and 12.30 are numbers, so numbers are looked for first.
_DATE = rf"^(({_DAY})([T ,]+({_CLOCK}|\d{{2}}Z?))?|{_CLOCK})$"
_MISSING = frozenset(spelling.lower() for spelling in MISSING) - {"none"}  # no discount is one
_ID_WORDS = frozenset(
    {"id", "ids", "uuid", "guid", "key", "no", "nr", "number", "num", "row", "index", "idx", "rownum"}
)
# What pandas makes of the nameless column of its index, and what `named` does.
_INDEX_NAMES = frozenset({"unnamed: 0", "column 1", INDEX, "#"})
_EXCLUSIVE = {  # what a column cannot be at the same time
    "the target": ("a feature", "the id", "the group", "a category"),
    "the id": ("a feature", "a category"),
    "a category": ("excluded", "a number"),
    "a feature": ("excluded",),
}


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
        return _mostly_empty(len(column) - n_present, len(column))
    if levels is not None:
        return _role_of_text(table, name, levels, asked, with_base)
    return _role_of_numbers(column, name, asked)


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


def role_as_number(table: Table, name: str) -> Role:
    """Return the role of a column that is to be a number, whatever else is in it; TableError if it holds none."""
    column = table.column(name)
    unfit = unfit_type(column.type)
    if not unfit and not is_text(column.type):
        return _role_of_numbers(column, name, True)
    if not unfit:
        unit, _ = _unit_of(levels_in(table, name), numbers_in(table, name))
        numbers = numbers_in(table, name, unit=unit)
        if numbers.is_number.any():
            return _role_of_number_text(table, name, numbers, True, unit)
    raise TableError(f"{table.name}: column {quote(name)} cannot be a number: {unfit or 'no cell of it is one'}")


def _mostly_empty(n_missing: int, n_rows: int) -> Role:
    # As an input it would cost more rows than it leaves.
    return Role(None, f"it is empty in {n_missing:,} of {n_rows:,} rows")


# --- numbers ---


def _role_of_numbers(column: pa.ChunkedArray, name: str, asked: bool) -> Role:
    values = floats(column)
    if np.isnan(values.min()):
        values = values[~np.isnan(values)]
    if not values.size:
        return Role(None, "it is empty")
    low, high = values.min(), values.max()
    if pa.types.is_boolean(column.type):
        same = bool(low == high)
        return Role(Flag(name), "it is the same in every row" if same else "", constant=same)
    if not asked and pa.types.is_integer(column.type) and 2 * (np.abs(values) > LARGEST_EXACT).sum() > len(values):
        return Role(None, "it has integers beyond 2**53, as identifiers are")
    if low == high:  # a column of zeros determines nothing even where there is no intercept
        return Role(Number(name) if low else None, f"it is {low:g} in every row", constant=True)
    if low not in _SENTINELS and high not in _SENTINELS:
        return Role(Number(name))
    return Role(Number(name), notice=_sentinel(name, *np.unique(values[np.isfinite(values)], return_counts=True)))


def _sentinel(name: str, values: FloatArray, counts: NDArray[np.int64]) -> str:
    """Ask about a number such as -999 that several rows have and that is far from all others; empty without one.

    Examples
    --------
    >>> _sentinel("t", np.array([-999.0, 12.5, 14.0]), np.array([4, 1, 1]))
    '"t" is -999 in 4 rows, far from all others: if that means missing, say so with --na -999.'
    """
    for place in {int(np.argmin(values)), int(np.argmax(values))} if len(values) > 2 else ():
        others, value = np.delete(values, place), float(values[place])
        # Far is twice as large as any other: benchmarks/messy.py, sensor_sentinels.
        if value in _SENTINELS and counts[place] > 1 and 2 * np.abs(others).max() < abs(value):
            rest = f"far from all others: if that means missing, say so with --na {value:g}."
            return f"{quote(name)} is {value:g} in {int(counts[place]):,} rows, {rest}"
    return ""


# --- text ---


def _role_of_text(table: Table, name: str, levels: CodedTexts, asked: bool, with_base: bool) -> Role:
    yes, no, nothing = words_for_flags(levels)
    if yes.any() and no.any() and (yes | no | nothing).all():
        return Role(Flag(name), notice=f"Read {quote(name)} as 1 for yes or true and 0 for no or false.")
    if not is_text(table.column(name).type) or not _may_be_numbers_or_dates(levels):
        return _role_of_levels(table, name, levels, asked, with_base)
    numbers = numbers_in(table, name)
    present = int(levels.counts[~numbers.missing].sum())
    if present == 0:
        return Role(None, "it is empty")
    if levels.counts[numbers.is_number].sum() >= NEARLY_ALL * present:
        mixed = currencies_in(levels.texts, levels.counts)
        if len(mixed) > 1:
            amounts = ", ".join(f"{currency} in {count:,} rows" for currency, count in mixed.items())
            return Role(None, f"it mixes currencies ({amounts}); --number reads the numbers as they are")
        return _role_of_number_text(table, name, numbers, asked)
    if levels.counts[matches(levels.texts, _DATE)].sum() >= NEARLY_ALL * present:
        return _role_of_date_text(name, levels, numbers.missing, asked)
    unit, doubt = _unit_of(levels, numbers)
    if unit is not None:
        return _role_of_number_text(table, name, numbers_in(table, name, unit=unit), asked, unit)
    return _role_of_levels(table, name, levels, asked, with_base, doubt)


def _may_be_numbers_or_dates(levels: CodedTexts) -> bool:
    """Whether more than half of a sample are numbers or dates: to read all of a column of free text takes long."""
    step = len(levels.texts) >> 10
    if step < 2:
        return True
    places = np.arange(0, len(levels.texts), step)
    texts = levels.texts.take(pa.array(places))
    numbers = read_numbers(texts, levels.counts[places])
    with_units = units_of(in_ascii(texts)).codes >= 0
    return bool((numbers.is_number | numbers.missing | with_units | matches(texts, _DATE)).mean() > 0.5)


def _unit_of(levels: CodedTexts, numbers: TextNumbers) -> tuple[str | None, str]:
    """Return the unit behind nearly all numbers of a column, or else why there is none, "" if none has one.

    The numbers are the texts read without a unit.
    """
    strange = ~numbers.is_number & ~numbers.missing
    present = levels.counts[~numbers.missing].sum()
    found = units_of(in_ascii(levels.texts))
    held = (found.codes >= 0) & strange
    if not held.any():
        return None, ""
    counts = np.bincount(found.codes[held], levels.counts[held], len(found.names))
    # Ties go to the unit that sorts first, so that the order of the rows does not matter.
    order = sorted(np.flatnonzero(counts), key=lambda place: (-counts[place], found.names[place]))
    names = [found.names[place] for place in order]
    if counts[order[0]] >= NEARLY_ALL * present:
        return names[0], ""
    if levels.counts[held | numbers.is_number].sum() < NEARLY_ALL * present or len(names) > 8:
        return None, ""
    if len(names) == 1:
        return None, f"some of its numbers are in {names[0]} and some have no unit"
    return None, f"its numbers have different units ({', '.join(map(quote, names))})"


def _role_of_number_text(table: Table, name: str, numbers: TextNumbers, asked: bool, unit: str | None = None) -> Role:
    levels, is_number = levels_in(table, name), numbers.is_number
    values, counts = numbers.values[is_number], levels.counts[is_number]
    entry, behind = Number(name, "," if numbers.decimal == "," else ".", unit), f" {unit}" if unit else ""
    n_rows, n_present = len(levels.codes), int(counts.sum())
    if 2 * n_present < n_rows and not asked:
        return _mostly_empty(n_rows - n_present, n_rows)
    if values.min() == values.max():
        return Role(entry if values[0] else None, f"it is {values[0]:g}{behind} in every row", constant=True)
    notice = f"Read the text in {quote(name)} as numbers{' in' if unit else ''}{behind}"
    odd = np.flatnonzero(is_number & ~numbers.plain)
    if odd.size:
        notice += f": {quote(levels.texts[int(odd[0])].as_py())} is {numbers.values[odd[0]]:.15g}"
    rows = np.flatnonzero(np.append(~is_number & ~numbers.missing, False)[levels.codes]).tolist()
    bad = listed((f"row {table.place(row)} has {quote(levels.text(row))}" for row in rows), len(rows), 10)
    assumed = {
        "its commas may separate thousands or decimals, and thousands were assumed": numbers.ambiguous,
        "percent signs were dropped": numbers.percent,
        f"{bad}, which is not a number: such rows are left out": bool(bad),
    }
    notice += "".join(f"; {words}" for words, holds in assumed.items() if holds)
    return Role(entry, notice=f"{notice}. {_sentinel(name, values, counts)}".rstrip(), bad=bad)


def _role_of_date_text(name: str, levels: CodedTexts, missing: BoolArray, asked: bool) -> Role:
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


# --- categories ---


def _role_of_levels(table: Table, name: str, levels: CodedTexts, asked: bool, with_base: bool, doubt: str = "") -> Role:
    n_levels = len(levels.texts)
    n_present = sum(table.frequencies[name].values()) if name in table.frequencies else levels.n_present
    few = MOST_LEVELS if asked else min(MOST_LEVELS, max(20, math.isqrt(n_present)))
    if n_levels > 1 and (n_levels > few or n_present < (2 if asked else 4) * n_levels):
        table.forget(("levels", name))
        return Role(None, doubt or f"it looks like an identifier or free text: {n_levels:,} different values")
    return _category(table, name, levels, with_base, doubt)


def _category(
    table: Table, name: str, levels: CodedTexts, with_base: bool, doubt: str = "", *, asked: bool = False
) -> Role:
    known = table.frequencies.get(name, {})
    pairs = zip(levels.texts.to_pylist(), levels.counts.tolist(), strict=True)
    found, words = spellings_of({text: known.get(text, count) for text, count in pairs}, asked=asked)
    if len(found) == 1:
        (only,) = found
        return Role(Category(name, (only,), None), f"it is {quote(only)} in every row", constant=True)
    # Ties go to the text that sorts first, so that the order of the rows does not matter.
    base = min(found, key=lambda text: (-found[text], text)) if with_base else None
    notice = f"Read {quote(name)} as a category with {len(found)} levels"
    if doubt:
        notice += f"; it was not read as numbers, for {doubt}"
    entry = Category(name, tuple(sorted(text for text in found if text != base)), base)
    return Role(entry, notice=f"{notice}.{words}", doubt=doubt)


def spellings_of(counts: Mapping[str, int], *, asked: bool = False) -> tuple[dict[str, int], str]:
    """Return the levels that texts mean, with their numbers of rows, and what was assumed, as sentences.

    A level has its most frequent spelling. If levels were `asked` for, ``N/A`` is one, too.

    Examples
    --------
    >>> found, words = spellings_of({"South": 80, "North": 90, "north": 2, "Suoth": 1})
    >>> found
    {'North': 92, 'South': 80}
    >>> print(words)
     Took "north" (2 rows) for "North". "Suoth" (1 row): did you mean "South"? Such rows are left out.
    """
    meant: dict[str, str] = {}
    total: dict[str, int] = {}
    merged: list[str] = []
    for text in sorted(counts, key=lambda text: (-counts[text], text)):
        level = meant.setdefault(folded(text), text)
        total[level] = total.get(level, 0) + counts[text]
        if level != text:
            merged.append(f"{_with_rows(text, counts)} for {quote(level)}")
    slips = _slips(total)
    words = f" Took {listed(merged, len(merged), 5)}." if merged else ""
    if slips:
        doubts = [f"{_with_rows(slip, total)}: did you mean {quote(own)}?" for slip, own in slips.items()]
        words += f" {' '.join(doubts[:5])} Such rows are left out."
    missing = {} if asked else {level: count for level, count in total.items() if level.lower() in _MISSING}
    # In more than a twentieth of the rows N/A may be an answer.
    if missing and 20 * sum(missing.values()) <= sum(total.values()):
        named = listed((_with_rows(level, missing) for level in missing), len(missing), 5)
        words += f" Took {named} as missing: such rows are left out (--category makes it a level)."
        slips |= dict.fromkeys(missing, "")
    return {level: count for level, count in total.items() if level not in slips}, words


def _slips(counts: Mapping[str, int]) -> dict[str, str]:
    """Return rare levels that are one slip away from one that is twenty times as frequent, with that one.

    Rare are two rows, or one of a thousand: benchmarks/messy.py, misspelt_category. Codes and numbers differ by one
    character on purpose, and so do short words.
    """
    most = max(2, sum(counts.values()) // 1000)
    may_be_misspelt = [text for text in counts if len(text) >= 4 and not any(sign.isdigit() for sign in text)]
    found = {}
    for slip in (text for text in may_be_misspelt if counts[text] <= most):
        for level in may_be_misspelt:
            if counts[level] >= 20 * counts[slip] and _is_slip(folded(slip), folded(level)):
                found[slip] = level
                break
    return found


def _is_slip(one: str, other: str) -> bool:
    """Whether two texts differ by one character: another one, one more, or two neighbours that changed places."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def _with_rows(text: str, counts: Mapping[str, int]) -> str:
    return f"{quote(text)} ({counted(counts[text], 'row')})"


# --- which columns are the inputs ---


@dataclass(frozen=True, slots=True)
class Plan:
    """The roles of the columns of one table."""

    encoding: Encoding
    id_column: str | None  # names the rows; never an input
    group_column: str | None
    notices: tuple[str, ...]  # sentences: what was left out, and what was interpreted
    of_rows: tuple[str, ...] = ()  # those of them that say what the values of a column in these rows are like

    @property
    def naming(self) -> list[str]:
        """The columns that name a row."""
        return [*dict.fromkeys(name for name in (self.id_column, self.group_column) if name is not None)]


def make_plan(
    table: Table,
    target: str,
    *,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    category: Sequence[str] = (),
    number: Sequence[str] = (),
    id_column: str | None = None,
    group_column: str | None = None,
    intercept: bool = True,
) -> Plan:
    """Decide what each column of a table is for, as :func:`massart.audit_table` is asked for it.

    Raises
    ------
    TableError
        For unknown columns, columns that cannot be what was asked for, text among numbers, and if no input is left.
    """
    wanted = None if features is None else tuple(features)
    asked: dict[str, Sequence[str | None]] = {
        "the target": [target],
        "a feature": () if wanted is None else wanted,
        "excluded": exclude,
        "a category": category,
        "the id": [id_column],
        "the group": [group_column],
        "a number": number,
    }
    _check_request(table, asked)
    _check_features(table, wanted, category)
    entry, notices = _target_entry(table, target, target in number)
    taken = {target, id_column, *exclude, *category, *number, *asked["a feature"]}
    identifiers = [name for name in table.column_names if name not in taken and names_rows(table, name)]
    id_column = next(iter(identifiers), None) if id_column is None else id_column
    why = "its name and its values are those of an identifier"
    of_rows = [f"Left out {quote(name)}: {why}." for name in identifiers if wanted is None]
    notices += of_rows
    barred = {target, id_column, *exclude, *identifiers}
    inputs: list[Input] = []
    for name in wanted or [name for name in table.column_names if name not in barred]:
        found, notice = _input(table, name, asked, wanted is not None, intercept)
        if found is None:
            of_rows.append(notice)
        else:
            inputs.append(found)
        notices.append(notice)
    notices = [notice for notice in notices if notice]
    _check_inputs(table, entry, inputs, notices)
    return Plan(Encoding(entry, tuple(inputs)), id_column, group_column, (*table.remarks, *notices), tuple(of_rows))


def _check_inputs(table: Table, entry: Target, inputs: Sequence[Input], notices: Sequence[str]) -> None:
    """Raise TableError if no input is left, or only dates are."""
    nothing = f"{table.name}: no column is left to explain {quote(entry.column)} with"
    if not inputs:
        raise TableError(f"{nothing}. {' '.join(notices[:3]) or 'The table has no other column.'}")
    if len(inputs) == 1 and isinstance(inputs[0], Date) and not isinstance(entry, Date):
        raise TableError(f"{nothing} but the dates in {quote(inputs[0].column)}")


def _input(
    table: Table, name: str, asked: Mapping[str, Sequence[str | None]], is_listed: bool, intercept: bool
) -> tuple[Input | None, str]:
    """Return the input that a column becomes, if it does, and a notice."""
    if name in asked["a category"]:
        role = role_as_category(table, name, with_base=intercept)
    elif name in asked["a number"]:
        role = role_as_number(table, name)
    else:
        role = role_of(table, name, asked=is_listed, with_base=intercept)
    if role.constant and (intercept or role.entry is None):
        return None, f"Left out {quote(name)}: {role.why}."
    if role.constant or not role.why:
        return role.entry, role.notice
    if name in asked["the group"]:
        return None, f"Used {quote(name)} only to group rows: {role.why}."
    if is_listed:
        raise TableError(f"{table.name}: column {quote(name)} cannot be a feature: {role.why}")
    return None, f"Left out {quote(name)}: {role.why}."


def _check_request(table: Table, asked: Mapping[str, Sequence[str | None]]) -> None:
    """Raise TableError for columns that are not there, or cannot be all that is asked of them."""
    for name in chain.from_iterable(asked.values()):
        if name is not None:
            table.column(name)
    for one, other in ((one, other) for one, others in _EXCLUSIVE.items() for other in others):
        for both in asked[one]:
            if both is not None and both in asked[other]:
                raise TableError(f"{table.name}: column {quote(both)} cannot be both {one} and {other}")


def _check_features(table: Table, features: tuple[str, ...] | None, categories: Sequence[str]) -> None:
    """Raise TableError for a list of features that is empty, or has one twice, or has not one that is a category."""
    if features is None:
        return
    if not features:
        raise TableError(f"{table.name}: the list of features is empty")
    alone = next((name for name in categories if name not in features), None)
    if alone is not None:
        raise TableError(f"{table.name}: column {quote(alone)} is to be a category, but not a feature: list it there")
    twice = next((name for name, count in Counter(features).items() if count > 1), None)
    if twice is not None:
        raise TableError(f"{table.name}: feature {quote(twice)} is listed twice")


def _target_entry(table: Table, target: str, is_number: bool) -> tuple[Target, list[str]]:
    role = role_as_number(table, target) if is_number else role_of(table, target, asked=True)
    if role.bad and not is_number:
        raise TableError(
            f"{table.name}: text among the numbers of the target {quote(target)}: {role.bad} "
            "(--number leaves such rows out, --na says what means missing)"
        )
    entry = role.entry or (Number(target) if role.constant else None)  # all are zero
    if entry is None or isinstance(entry, Category):
        why = role.why or role.doubt or "it holds text"
        raise TableError(f"{table.name}: the target {quote(target)} has to hold numbers, but {why}")
    counted_in = f"The dates in {quote(target)} are counted in days since 1970-01-01."
    return entry, [role.notice, counted_in if isinstance(entry, Date) and not role.constant else ""]


def names_rows(table: Table, name: str) -> bool:
    """Return whether a column is called an id and its values are all different."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    last = re.split(r"[\W_]+", words.lower().rstrip(" .#:"))[-1]
    if last not in _ID_WORDS and name.lower() not in _INDEX_NAMES and not name.rstrip().endswith("#"):
        return False
    column = table.column(name)
    if column.null_count or not (pa.types.is_integer(column.type) or is_text(column.type)):
        return False
    return int(pc.count_distinct(decoded(column)).as_py()) == len(column) > 1
