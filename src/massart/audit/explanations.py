"""How a wrong value may have come about, each way verified to the unit of the last place.

A way is a value that the row may have been given instead of the implied one: ten times as much, what another row has,
or what the rule gives once one thing is changed (:mod:`massart.audit.changes`). Factors, constants, rates and values
that are not known beforehand are those that most wrong rows have in common.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from massart.audit.changes import COLUMN, FACTORS, Parts
from massart.audit.coincidence import SAMPLE, Explanation, crowd
from massart.rows import EDGE, EPS, BoolArray, FloatArray, count_decimals, row_blocks

PLACEHOLDERS = (0.0, -1.0, -9.0, -99.0, -999.0, -9999.0, 9.0, 99.0, 999.0, 9999.0, 99999.0)
"""What is written where there is no value."""

BEFORE, AFTER = "value of the row before", "value of the row after"
SWAPPED, ANOTHER = "swapped with another row", "value of another row"

FEWEST_ROWS = 3
"""Rows that have a number in common which is not known beforehand: a factor, a constant, a rate, a value."""

YEARS = tuple(f"{first}/{second}" for first in (360, 365, 366) for second in (360, 365, 366) if first != second)
"""Factors between years of banks, common years and leap years."""

_MOST_FOUND = 8  # numbers of one family; 4 name 41 of 47,581 rows less (benchmarks/kinds.py), 16 none more
_FEW_ROWS = 2_000  # rows in which changes are tried before all are; 100 name 40 of 47,581 rows less
_NARROW = 1e-3  # of a number: how exactly a typed one is known
_NARROW_RATIO = 5e-3  # a body mass of 25.1 times 2.2
AS_MANY = 0.95
"""Share of the rows of a number that a shorter one keeps: taxes on whole amounts lose some (tests/test_kinds.py)."""

_INSIDE = 0.9  # neighbours on a grid touch
_MOST_UNITS = 10.0  # one digit less
_FEWEST_PLACES = 2  # 1200 may be 1200.00
_MOST_DIGITS = 15  # of a float
_FLOAT_DIGITS = 12  # that two values have in common which are the same
_TINY = float(np.finfo(float).tiny)
NO_ROWS = np.empty(0, [("number", np.intp), ("given", np.float64), ("implied", np.float64), ("wrong", np.bool_)])
"""No rows by themselves, as others see them."""


@dataclass(frozen=True, slots=True, eq=False)
class RowLabels:
    """Rows next to the formula, in the order of the table."""

    given: FloatArray  # (n,), the label
    implied: FloatArray  # what the formula gives
    wrong: BoolArray  # (n,)
    last_place: BoolArray
    half_widths: FloatArray | float = 0.0  # (n,), how far a row that agrees may be off; read for wrong rows only
    unit: float | None = None  # of the grid on which labels are
    numbers: NDArray[np.intp] | None = None  # (n,), of these rows in the table, where some of it were left out
    # where these are a part of the table: those next to them
    around: NDArray[np.void] = field(default_factory=lambda: NO_ROWS)
    swapped: BoolArray | None = None  # (n,), where these are a part of the table: rows that were swapped with any other

    @property
    def right(self) -> FloatArray:
        """Labels of the rows that are not wrong."""
        return self.given[~self.wrong]

    def at(self, index: NDArray[np.intp]) -> NDArray[np.void]:
        """Return some rows by themselves."""
        rows = np.empty(len(index), dtype=NO_ROWS.dtype)
        rows["number"], rows["given"], rows["implied"] = self.number(index), self.given[index], self.implied[index]
        rows["wrong"] = self.wrong[index]
        return rows

    def number(self, index: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return their numbers in the table."""
        return index if self.numbers is None else self.numbers[index]

    def neighbours(self, index: NDArray[np.intp], step: int) -> tuple[NDArray[np.void], BoolArray]:
        """Return the rows at a number of steps from others in the table, and where there are such rows."""
        wanted = self.number(index) + step
        found = self.at(np.clip(index + step, 0, len(self.given) - 1))
        if len(self.around):
            around = self.around[np.argsort(self.around["number"], kind="stable")]
            place = np.searchsorted(around["number"], wanted).clip(max=len(around) - 1)
            known = around["number"][place] == wanted
            found[known] = around[place[known]]
        return found, found["number"] == wanted


@dataclass(frozen=True, slots=True, eq=False)
class WrongLabels:
    """The wrong rows."""

    index: NDArray[np.intp]  # (m,), which ones they are
    given: FloatArray  # (m,), the label
    implied: FloatArray  # what the formula gives, as the table would write it
    exact: FloatArray  # the same before it is rounded
    close: FloatArray  # (m,), how far apart two values are that are the same
    typed: FloatArray  # (m,), the same of a label that was rounded to the digits that it has
    unit: float | None

    @classmethod
    def of(cls, labels: RowLabels, parts: Parts | None, index: NDArray[np.intp]) -> WrongLabels:
        """Take them out of all rows."""
        given, implied = labels.given[index], labels.implied[index]
        exact = implied.copy()
        if parts is not None:
            for chunk in row_blocks(len(index), len(parts.names)):
                exact[chunk] = parts.link(parts.contributions(index[chunk]).sum(axis=1))
        half_widths = np.broadcast_to(labels.half_widths, labels.given.shape)[index]
        close = np.maximum(half_widths, EPS * (np.abs(given) + np.abs(implied)) + _TINY)
        places = count_decimals(given)
        if labels.unit is not None:
            close = np.maximum(close, labels.unit / 2 * (1 + EDGE))
            last = np.clip(10.0 ** -places.astype(float), labels.unit, _MOST_UNITS * labels.unit)
        else:  # right labels were computed; a wrong one may have been typed, and rounded
            last = 10.0 ** -np.maximum(places, _FEWEST_PLACES).astype(float)
        size = np.minimum(np.abs(given), np.abs(implied))
        typed = np.minimum(last / 2 * (1 + EDGE), (_NARROW / 2 if labels.unit is None else _NARROW_RATIO) * size)
        typed = np.maximum(close, typed)
        return cls(index, given, implied, exact, typed if labels.unit is None else close, typed, labels.unit)

    @property
    def grid(self) -> float | None:
        """The unit, where every digit of what is implied is known."""
        return self.unit if self.unit is not None and np.median(self.close) < self.unit else None

    def are(self, value: FloatArray, chunk: slice = slice(None), looser: FloatArray | float = 1.0) -> BoolArray:
        """Return which rows were given this value, where it is not the implied one."""
        close, implied = self.close[chunk], self.implied[chunk]
        return np.asarray((np.abs(self.given[chunk] - value) <= looser * close) & (np.abs(value - implied) > close))

    def part(self, chosen: NDArray[np.intp] | slice) -> WrongLabels:
        """Return some of them."""
        names = ("index", "given", "implied", "exact", "close", "typed")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def every(self, most: int) -> WrongLabels:
        """Return at most `most` of them, at equal distances: parameters are found in these."""
        return self.part(slice(None, None, max(1, -(-len(self.index) // most))))

    def plus(self, constant: float) -> NDArray[np.intp]:
        """Return the rows that were given this much more than what is implied, as written or before it is rounded."""
        return np.flatnonzero(self.are(self.implied + constant) | self.are(self.exact + constant))

    def times(self, factor: float) -> NDArray[np.intp]:
        """Return the rows that were given a multiple of what is implied, as written or before it is rounded."""
        return np.flatnonzero(self._times(factor, self._looser(factor)))

    def choices(self, factor: float) -> FloatArray:
        """Return how many values a multiple may be: more where a label was rounded to fewer digits than others have."""
        looser = self._looser(factor)
        tight = looser - (self.typed - self.close) / self.close
        return np.where(self._times(factor, tight), tight, looser)

    def _times(self, factor: float, looser: FloatArray) -> BoolArray:
        # The last one is implied where half a unit is rounded the other way.
        tie = np.abs(self.exact - self.implied) >= (self.unit or np.inf) / 2 * (1 - EDGE)
        values = self.implied, self.exact, np.where(tie, 2 * self.exact - self.implied, self.implied)
        found = np.any([self.are(factor * value, looser=looser) for value in values], axis=0)
        return np.asarray(found & (self.given != 0))

    def _looser(self, factor: float) -> FloatArray:
        """Return how much more multiples may be off: a factor multiplies noise, but not a last rounding."""
        rounding = np.minimum(self.close, (self.unit or 0.0) / 2 * (1 + EDGE))
        noise = max(1.0, abs(factor)) * (self.close - rounding)
        return np.asarray((rounding + noise + (self.typed - self.close)) / self.close)


def explanations(
    rows: WrongLabels, labels: RowLabels, parts: Parts | None, groups: NDArray[np.intp] | None
) -> list[Explanation]:
    """Return all ways that explain a row, the simplest first, and of those that explain the same rows that one."""
    usual = [*_usual(rows, labels, groups)]
    # What rows have in common, and is not known beforehand, explains several of them.
    others = [way for way in _others(rows, labels, parts) if len(way.rows) >= FEWEST_ROWS or not way.found]
    tried = Counter(way.family for way in others)
    if parts is not None:
        tried |= Counter(change.family for change in parts.changes)
    tried[COLUMN] += tried.total()  # labels are wrong more often than columns
    # Families have the same share of what chance may bring in; what is usual, and fits a row, has that of all of them.
    n_usual = sum(len(way.rows) > 0 for way in usual)
    ways = [replace(way, tried=n_usual) for way in usual]
    ways += [replace(way, tried=len(tried) * tried[way.family]) for way in others]
    simplest: dict[bytes, Explanation] = {}
    for way in ways:
        if len(way.rows):
            simplest.setdefault(way.rows.tobytes() + np.float64(np.median(way.choices)).tobytes(), way)
    return [*simplest.values()]


def _usual(rows: WrongLabels, labels: RowLabels, groups: NDArray[np.intp] | None) -> Iterator[Explanation]:
    """Try what is known beforehand, whatever the rule."""
    for value in PLACEHOLDERS:
        yield _value(rows, value, "zero" if value == 0 else f"placeholder {value:g}")
    for factor in FACTORS:
        yield _factor(rows, factor)
    yield Explanation("sign", "sign", rows.times(-1.0))
    yield from _neighbours(rows, labels, groups)
    yield _swapped_with(rows, swapped_rows(rows.given, rows.implied, rows.unit))
    yield from _digits(rows, rows.grid)


def _others(rows: WrongLabels, labels: RowLabels, parts: Parts | None) -> Iterator[Explanation]:
    """Try changes of the rule and of the row, and look for numbers that wrong rows have in common."""
    if parts is not None:
        yield from _changed(rows, parts)
    yield from _of_another_row(rows, labels)
    yield from _constants(rows)
    if parts is not None:
        yield from _rates(rows, parts)
    yield from _factors(rows, parts)
    yield from _values(rows)


def recalled(
    rows: WrongLabels, labels: RowLabels, parts: Parts | None, known: Mapping[str, tuple[str, float | None]]
) -> dict[str, Explanation]:
    """Return the rows that each of some ways explains, by its label, given its family and its parameter."""
    ways: list[Explanation] = []
    for label, (family, parameter) in known.items():
        if family == "sign":
            ways.append(Explanation(family, label, rows.times(-1.0)))
        elif parameter is not None and family in _OF_ONE_NUMBER:
            ways.append(_OF_ONE_NUMBER[family](rows, parameter, label))
        elif parameter is not None and family == "rate" and parts is not None:
            ways += _recalled_rate(rows, parts, parameter, label)
    if parts is not None:
        ways += _changed(rows, parts, known)
    if known.keys() & {BEFORE, AFTER}:
        ways += _neighbours(rows, labels, None)
    if SWAPPED in known:
        swapped = labels.swapped
        found = swapped_rows(rows.given, rows.implied, rows.unit) if swapped is None else swapped[rows.index]
        ways.append(_swapped_with(rows, found))
    if known.keys() & {"digits swapped", "one digit wrong"}:
        ways += _digits(rows, rows.unit)
    return {way.label: way for way in ways if way.label in known}


# --- one parameter ----------------------------------------------------------------------------------------------------


def _value(rows: WrongLabels, value: float, label: str) -> Explanation:
    members = np.flatnonzero(rows.are(np.full(len(rows.given), value)))
    return Explanation("placeholder", label, members, parameter=value)


def _factor(rows: WrongLabels, factor: float, label: str = "") -> Explanation:
    members, label = rows.times(factor), label or f"factor {factor:g}"
    return Explanation("factor", label, members, rows.choices(factor)[members], parameter=factor)


def _constant(rows: WrongLabels, value: float, label: str = "") -> Explanation:
    return Explanation("constant", label or f"off by {value:+.10g}", rows.plus(value), parameter=value)


_OF_ONE_NUMBER: dict[str, Callable[[WrongLabels, float, str], Explanation]] = {
    "placeholder": _value,
    "factor": _factor,
    "constant": _constant,
}


def _at(rows: WrongLabels, parts: Parts, place: int, value: float) -> Explanation:
    """Return the rows in which the rate of a part has another value."""
    each = parts.contributions(rows.index)
    made = parts.link(each.sum(axis=1) - each[:, place] + value * parts.base(place, rows.index))
    return Explanation("rate", _rate_label(parts, place, value), np.flatnonzero(rows.are(made)), parameter=value)


def _recalled_rate(rows: WrongLabels, parts: Parts, value: float, label: str) -> list[Explanation]:
    """Return the rows in which the rate that a label names has another value."""
    rates = [place for place in parts.rates if label.startswith(f"{parts.names[place]} at ")]
    return [replace(_at(rows, parts, place, value), label=label) for place in rates[:1]]


def _rate_label(parts: Parts, place: int, value: float) -> str:
    old = parts.number(place)
    return f"{parts.names[place]} at {value:.10g}" + (f" instead of {old}" if old else "")


def _values(rows: WrongLabels) -> Iterator[Explanation]:
    """Find values that many wrong rows have."""
    values, counts = np.unique(rows.given, return_counts=True)
    for value in values[np.argsort(-counts, kind="stable")][:_MOST_FOUND].tolist():
        if value not in PLACEHOLDERS:
            yield replace(_value(rows, value, f"the value {value:.10g}"), found=True)


def _constants(rows: WrongLabels) -> Iterator[Explanation]:
    """Find differences that many rows have."""
    some = rows.every(SAMPLE)
    residuals, close = some.given - some.exact, _INSIDE * some.close
    for middle in _common(residuals - close, residuals + close):
        yield replace(_constant(rows, _shortest(middle, some.plus)), found=True)


def _factors(rows: WrongLabels, parts: Parts | None) -> Iterator[Explanation]:
    """Find ratios that many rows have: a tax, a conversion of units, another rate."""
    some = rows.every(SAMPLE)
    n_some = len(some.given)
    some = some.part(np.flatnonzero(some.typed < _NARROW_RATIO * np.minimum(np.abs(some.implied), np.abs(some.given))))
    ratio, width = some.given / some.implied, some.typed / np.abs(some.implied)
    known = [*FACTORS, -1.0]
    for middle in _common(ratio - width, ratio + width):
        value, label = _named_factor(some, middle, parts)
        # Two roundings move a ratio farther than one: it is the same factor.
        at = np.abs(ratio - middle) <= width
        same = (abs(other - middle) <= 2 * float(np.median(width[at], axis=0)) for other in known if at.any())
        if value in (*FACTORS, -1.0) or any(same):
            continue
        known.append(value)
        near, others = 2 * float(np.median(width)), np.ones(len(ratio), dtype=bool)
        others[some.times(value)] = False  # small values have ratios far from it, which do not make it less clear
        around = crowd(ratio, near, others)[np.abs(ratio - value) <= near].max(initial=0.0)
        yield replace(_factor(rows, value, label), floor=float(around) * len(ratio) / n_some, found=True)


def _named_factor(some: WrongLabels, middle: float, parts: Parts | None) -> tuple[float, str]:
    """Return the factor with the fewest digits near a number, or its inverse, or the rate that it makes of another."""
    enough = AS_MANY * len(some.times(middle))
    for year in YEARS:
        first, second = map(float, year.split("/"))
        if abs(first / second - middle) < _NARROW and len(some.times(first / second)) >= enough:
            return first / second, f"factor {year}"
    value = _shortest(middle, some.times)
    inverse = _shortest(1 / middle, lambda v: some.times(1 / v))
    label = f"factor {value:.10g}"
    if _digits_of(inverse) < _digits_of(value):
        value, label = 1 / inverse, f"factor 1/{inverse:.10g}"
    if parts is not None and len(parts.names) == 1 and parts.rates and parts.number(0):
        old = float(Fraction(parts.number(0)))
        if old:
            rate = _shortest(old * middle, lambda v: some.times(v / old))
            if _digits_of(rate) < min(_digits_of(value), _digits_of(inverse)):
                return rate / old, _rate_label(parts, 0, rate)
    return value, label


def _rates(rows: WrongLabels, parts: Parts) -> Iterator[Explanation]:
    """Find a number that rows have instead of one of the numbers of the rule: an old rate."""
    if len(parts.names) == 1 and all(map(parts.number, parts.rates)):
        return  # it is a factor
    some = rows.every(SAMPLE)
    each = parts.contributions(some.index)
    exact = each.sum(axis=1)
    free = np.abs(parts.link(exact) - exact) <= some.close
    for place in parts.rates:
        base = parts.base(place, some.index)
        there = free & (np.abs(base) * _NARROW_RATIO > some.close)
        few, base = some.part(np.flatnonzero(there)), base[there]
        found = (few.given - (exact - each[:, place])[there]) / base
        width = _INSIDE * few.close / np.abs(base)
        for middle in _common(found - width, found + width):
            value = _shortest(middle, partial(_rows_at, few, parts, place))
            if value:
                yield replace(_at(rows, parts, place, value), found=True)


def _rows_at(rows: WrongLabels, parts: Parts, place: int, value: float) -> NDArray[np.intp]:
    return _at(rows, parts, place, value).rows


def _shortest(value: float, explained: Callable[[float], NDArray[np.intp]]) -> float:
    """Return the number with the fewest digits that explains as many rows, most of them the same."""
    own = explained(value)
    shorter = [*dict.fromkeys(float(f"{value:.{digits}g}") for digits in range(1, _FLOAT_DIGITS)), value]
    rows = [explained(short) for short in shorter]
    counts = [len(found) if 2 * np.isin(own, found).sum() >= len(own) else 0 for found in rows]
    return next(short for short, n in zip(shorter, counts, strict=True) if n >= AS_MANY * max(counts))


def _digits_of(value: float) -> int:
    """Return how many digits a number has: 1.07 has three, and 0.9346 four."""
    return len(f"{abs(value):.9e}".partition("e")[0].rstrip("0"))


def _common(low: FloatArray, high: FloatArray) -> Iterator[float]:
    """Return numbers that lie in most of the intervals; those are taken out, then the next is looked for."""
    for _ in range(_MOST_FOUND):
        ends, steps = np.concatenate([low, high]), np.repeat([1, -1], len(low))
        order = np.lexsort((-steps, ends))
        depth = np.cumsum(steps[order])
        if depth.max(initial=0) < FEWEST_ROWS:
            return
        deepest = int(np.argmax(depth))
        middle = float(ends[order[deepest]] + ends[order[deepest + 1]]) / 2
        yield middle
        rest = (high < middle) | (low > middle)
        low, high = low[rest], high[rest]


# --- the rule or the row changed --------------------------------------------------------------------------------------


def _changed(rows: WrongLabels, parts: Parts, known: Container[str] | None = None) -> Iterator[Explanation]:
    """Change one thing about the rule or the row: all that is tried, or what is `known` to have happened."""
    changes = [change for change in parts.changes if known is None or change.label in known]
    if not changes:
        return
    if len(rows.index) > _FEW_ROWS and known is None:
        some = rows.every(_FEW_ROWS)
        each = parts.contributions(some.index)
        changes = [change for change in changes if some.are(change.values(some.index, each, some.given)).any()]
    found: list[list[NDArray[np.intp]]] = [[] for _ in changes]
    for chunk in row_blocks(len(rows.index), len(parts.names)):
        index = rows.index[chunk]
        each = parts.contributions(index)
        for members, change in zip(found, changes, strict=True):
            values = change.values(index, each, rows.given[chunk])
            members.append(chunk.start + np.flatnonzero(rows.are(values, chunk)))
    for members, change in zip(found, changes, strict=True):
        yield Explanation(change.family, change.label, np.concatenate(members), change.choices, reads=change.reads)


# --- another row ------------------------------------------------------------------------------------------------------


def _neighbours(rows: WrongLabels, labels: RowLabels, groups: NDArray[np.intp] | None) -> Iterator[Explanation]:
    """Take the value of the row before or after, in the table or in the group."""
    steps = ((-1, BEFORE), (1, AFTER))
    for step, label in steps:
        yield _value_of(rows, *labels.neighbours(rows.index, step), label)
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        for step, label in steps:
            other = order[np.clip(place[rows.index] + step, 0, len(order) - 1)]
            there = (groups[other] == groups[rows.index]) & (other != rows.index)
            there &= labels.number(other) != labels.number(rows.index) + step
            yield _value_of(rows, labels.at(other), there, f"{label} in its group")


def _value_of(rows: WrongLabels, others: NDArray[np.void], there: BoolArray, label: str) -> Explanation:
    """Compare with what another row implies and, if that is wrong, what it was given; a copy of this row is none."""
    implied = rows.are(others["implied"]) & there
    stale = rows.are(others["given"]) & there & others["wrong"] & (others["implied"] != rows.implied)
    found = np.flatnonzero(implied | stale)
    return Explanation("another row", label, found, np.where(implied[found], 1.0, 2.0))


def _swapped_with(rows: WrongLabels, swapped: BoolArray) -> Explanation:
    # A pair is a choice among all rows, once for the two of them.
    return Explanation("another row", SWAPPED, np.flatnonzero(swapped), math.sqrt(len(rows.given)))


def _of_another_row(rows: WrongLabels, labels: RowLabels) -> Iterator[Explanation]:
    """Take the value of any other row: each of their values is allowed."""
    if labels.swapped is None and not len(labels.around):  # all rows are here
        values, given = (_cells(each, rows.unit) for each in (labels.implied, rows.given))
        found = np.flatnonzero(np.isin(given, values) & rows.are(rows.given))
        yield Explanation("any row", ANOTHER, found, float(len(np.unique(values))))


def swapped_rows(given: FloatArray, implied: FloatArray, unit: float | None) -> BoolArray:
    """Return which wrong rows have the value of another one that has theirs."""
    cells = [_cells(values, unit) for values in (given, implied)]
    known, codes = np.unique(np.concatenate(cells), return_inverse=True)
    first, second = np.split(codes.astype(np.int64), 2)
    return np.asarray(np.isin(first * len(known) + second, second * len(known) + first) & (first != second))


def _cells(values: FloatArray, unit: float | None) -> FloatArray:
    if unit is not None:
        return np.asarray(np.rint(values / unit))
    size = 10.0 ** (_FLOAT_DIGITS - np.ceil(np.log10(np.maximum(np.abs(values), 1e-280))))
    return np.asarray(np.rint(values * size) / size)


# --- digits -----------------------------------------------------------------------------------------------------------


def _digits(rows: WrongLabels, grid: float | None) -> Iterator[Explanation]:
    """Compare the digits of given and implied, where all of them are known."""
    if grid is None:
        return
    a, b = (np.rint(np.abs(values) / grid) for values in (rows.given, rows.implied))
    on_grid = np.abs(np.abs(rows.given) - a * grid) <= grid * EDGE + EPS * np.abs(rows.given)
    usable = on_grid & (rows.close < grid) & (np.maximum(a, b) < 10.0**_MOST_DIGITS)
    usable &= (rows.given * rows.implied > 0) & (a != b) & (a < 10 * 10 ** np.floor(np.log10(np.maximum(b, 1))))
    index = np.flatnonzero(usable)
    first, second = a[index].astype(np.int64), b[index].astype(np.int64)
    n_digits = np.floor(np.log10(np.maximum(second, 1))).astype(int) + 1
    place = np.zeros(len(index), dtype=np.int64)  # of the last digit that differs
    for p in range(1, _MOST_DIGITS):
        place[first % 10**p == second % 10**p] = p
    first, second = first // 10**place, second // 10**place
    one = first // 10 == second // 10
    swap = (first // 100 == second // 100) & (first % 10 == second // 10 % 10) & (first // 10 % 10 == second % 10)
    yield Explanation("digits swapped", "digits swapped", index[swap], np.maximum(n_digits[swap] - 1.0, 1.0))
    yield Explanation("one digit wrong", "one digit wrong", index[one], 9.0 * n_digits[one])
