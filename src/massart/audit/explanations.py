"""How a wrong value may have come about, each way verified to the unit of the last place.

A way is a value that the row may have been given instead of the implied one: ten times as much, the sum without a term,
what the row before has. Factors, constants and values that are not known beforehand are those that most wrong rows have
in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from massart.agreement.agreement import EDGE, EPS
from massart.agreement.decimals import count_decimals
from massart.audit.coincidence import Explanation, crowd
from massart.link import IDENTITY, Link
from massart.rows import BoolArray, FloatArray

FACTORS = (10.0, 100.0, 1000.0, 0.1, 0.01, 0.001)
PLACEHOLDERS = (0.0, -1.0, -9.0, -99.0, -999.0, -9999.0, 9.0, 99.0, 999.0, 9999.0, 99999.0)

BEFORE, AFTER = "value of the row before", "value of the row after"
SWAPPED = "swapped with another row"

_MOST_FOUND = 8
_LEAST_ROWS = 3
_MOST_TERMS = 40  # of which two may be forgotten together
_CHUNK = 50_000
_SAMPLE = 10_000
_FEW_ROWS = 2_000
_NARROW = 1e-3
_INSIDE = 0.9  # neighbours on a grid touch
_AS_MANY, _MANY_ROWS = 0.98, 20  # and of so many rows one may be lost
_FEWEST_PLACES = 2  # 1200 may be 1200.00
_MOST_DIGITS = 15
_FLOAT_DIGITS = 12
_TINY = float(np.finfo(float).tiny)
NO_ROWS = np.empty(0, [("number", np.intp), ("given", np.float64), ("implied", np.float64), ("wrong", np.bool_)])
"""No rows by themselves, as others see them."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
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
        """Labels of rows that are not wrong."""
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

    def beside(self, index: NDArray[np.intp], step: int) -> tuple[NDArray[np.void], BoolArray]:
        """Return the rows so many steps from others in the table, and where there are such rows."""
        wanted = self.number(index) + step
        found = self.at(np.clip(index + step, 0, len(self.given) - 1))
        if len(self.around):
            around = self.around[np.argsort(self.around["number"], kind="stable")]
            place = np.searchsorted(around["number"], wanted).clip(max=len(around) - 1)
            known = around["number"][place] == wanted
            found[known] = around[place[known]]
        return found, found["number"] == wanted


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What the formula adds up: ``implied = link(contributions.sum(axis=1))``, rounded."""

    names: tuple[str, ...]
    # returns an array with one column a name, for the rows asked for
    contributions: Callable[[NDArray[np.intp]], FloatArray]
    link: Link = IDENTITY
    # factors that several parts have, with the places of these: a tax on two amounts may be forgotten in both
    shared: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class WrongRows:
    """The wrong rows."""

    index: NDArray[np.intp]  # (m,), which ones they are
    given: FloatArray  # (m,), the label
    implied: FloatArray  # what the formula gives, as the table would write it
    exact: FloatArray  # the same before it is rounded
    close: FloatArray  # (m,), how far apart two values are that are the same
    unit: float | None

    @classmethod
    def of(cls, labels: Labels, parts: Parts | None, index: NDArray[np.intp]) -> WrongRows:
        """Take them out of all rows."""
        given, implied = labels.given[index], labels.implied[index]
        exact = implied.copy()
        if parts is not None:
            for chunk in _chunks(len(index)):
                exact[chunk] = parts.link(parts.contributions(index[chunk]).sum(axis=1))
        half_widths = np.broadcast_to(labels.half_widths, labels.given.shape)[index]
        close = np.maximum(half_widths, EPS * (np.abs(given) + np.abs(implied)) + _TINY)
        if labels.unit is not None:
            close = np.maximum(close, labels.unit / 2 * (1 + EDGE))
        else:  # right labels were computed; a wrong one may have been typed, and rounded
            last = 10.0 ** -np.maximum(count_decimals(given), _FEWEST_PLACES).astype(float)
            typed = np.minimum(last / 2 * (1 + EDGE), _NARROW / 2 * np.minimum(np.abs(given), np.abs(implied)))
            close = np.maximum(close, typed)
        return cls(index, given, implied, exact, close, labels.unit)

    @property
    def grid(self) -> float | None:
        """The unit, where every digit of what is implied is known."""
        return self.unit if self.unit is not None and np.median(self.close) < self.unit else None

    def are(self, value: FloatArray, chunk: slice = slice(None), looser: FloatArray | float = 1.0) -> BoolArray:
        """Tell which rows were given this value, where it is not what is implied."""
        close, implied = self.close[chunk], self.implied[chunk]
        return np.asarray((np.abs(self.given[chunk] - value) <= looser * close) & (np.abs(value - implied) > close))

    @property
    def some(self) -> WrongRows:
        """A part of them from which parameters are found."""
        return self.part(np.arange(0, len(self.index), max(1, -(-len(self.index) // _SAMPLE))))

    def part(self, chosen: NDArray[np.intp]) -> WrongRows:
        """Return some of them."""
        given, implied, exact, close = (v[chosen] for v in (self.given, self.implied, self.exact, self.close))
        return WrongRows(self.index[chosen], given, implied, exact, close, self.unit)

    def plus(self, constant: float) -> NDArray[np.intp]:
        """Return the rows that were given so much more than what is implied, as written or before it is rounded."""
        return np.flatnonzero(self.are(self.implied + constant) | self.are(self.exact + constant))

    def times(self, factor: float) -> NDArray[np.intp]:
        """Return the rows that were given a multiple of what is implied, as written or before it is rounded."""
        looser, found = self.looser(factor), np.zeros(len(self.given), dtype=bool)
        for value in (self.implied, self.exact, self.otherwise):
            found |= self.are(factor * value, looser=looser)
        return np.flatnonzero(found & (self.given != 0))

    @property
    def otherwise(self) -> FloatArray:
        """What is implied where half a unit is rounded the other way."""
        tie = np.abs(self.exact - self.implied) >= (self.unit or np.inf) / 2 * (1 - EDGE)
        return np.where(tie, 2 * self.exact - self.implied, self.implied)

    def looser(self, factor: float) -> FloatArray:
        """Return how much more multiples may be off: a factor multiplies noise, but not a last rounding."""
        rounding = np.minimum(self.close, (self.unit or 0.0) / 2 * (1 + EDGE))
        return np.asarray((rounding + max(1.0, abs(factor)) * (self.close - rounding)) / self.close)


def explanations(
    rows: WrongRows, labels: Labels, parts: Parts | None, groups: NDArray[np.intp] | None
) -> list[Explanation]:
    """Return all ways that explain a row, the simplest first."""
    ways = [
        *_placeholders(rows),
        *(_factor(rows, factor, f"{factor:g}") for factor in FACTORS),
        Explanation("sign", "sign", rows.times(-1.0)),
        *([] if parts is None else _terms(rows, parts)),
        *_neighbours(rows, labels, groups),
        _swapped_with(rows, swapped_rows(rows.given, rows.implied, rows.unit)),
        *_digits(rows, rows.grid),
        *_constants(rows),
        *_factors(rows),
        *_values(rows),
    ]
    return [way for way in ways if len(way.rows)]


def recalled(
    rows: WrongRows, labels: Labels, parts: Parts | None, known: Mapping[str, tuple[str, float | None]]
) -> dict[str, Explanation]:
    """Return the rows that each of some ways explains, by its label, given its family and its parameter."""
    ways: list[Explanation] = []
    families = {family for family, _ in known.values()}
    for label, (family, parameter) in known.items():
        if family == "placeholder" and parameter is not None:
            ways.append(_value(rows, parameter, label))
        elif family == "factor" and parameter is not None:
            ways.append(replace(_factor(rows, parameter, ""), label=label))
        elif family == "constant" and parameter is not None:
            ways.append(Explanation(family, label, rows.plus(parameter), parameter=parameter))
        elif family == "sign":
            ways.append(Explanation(family, label, rows.times(-1.0)))
    if parts is not None and families & {"forgotten", "counted twice"}:
        ways += _terms(rows, parts, known)
    if known.keys() & {BEFORE, AFTER}:
        ways += _neighbours(rows, labels, None)
    if SWAPPED in known:
        swapped = labels.swapped
        found = swapped_rows(rows.given, rows.implied, rows.unit) if swapped is None else swapped[rows.index]
        ways.append(_swapped_with(rows, found))
    if families & {"digits swapped", "one digit wrong"}:
        ways += _digits(rows, rows.unit)
    return {way.label: way for way in ways if way.label in known}


def _placeholders(rows: WrongRows) -> Iterator[Explanation]:
    for value in PLACEHOLDERS:
        yield _value(rows, value, "zero" if value == 0 else f"placeholder {value:g}")


def _values(rows: WrongRows) -> Iterator[Explanation]:
    """Find values that many wrong rows have."""
    values, counts = np.unique(rows.given, return_counts=True)
    for value in values[np.argsort(-counts, kind="stable")][:_MOST_FOUND].tolist():
        if value not in PLACEHOLDERS:
            yield from _often(_value(rows, value, f"the value {value:.10g}", found=True))


def _value(rows: WrongRows, value: float, label: str, *, found: bool = False) -> Explanation:
    members = np.flatnonzero(rows.are(np.full(len(rows.given), value)))
    return Explanation("placeholder", label, members, parameter=value, found=found)


def _terms(rows: WrongRows, parts: Parts, known: Container[str] | None = None) -> Iterator[Explanation]:
    """Forget each term, count it twice, and forget two together; or do only what is `known` to have happened."""
    names = parts.names
    changes: list[tuple[str, tuple[int, ...], str]]
    changes = [("forgotten", (j,), f"{name} forgotten") for j, name in enumerate(names)]
    changes += [("forgotten", places, f"{name} forgotten") for name, places in parts.shared.items()]
    changes += [("counted twice", (j,), f"{name} counted twice") for j, name in enumerate(names)]
    if 2 < len(names) <= _MOST_TERMS:
        some = rows.part(np.arange(0, len(rows.index), max(1, len(rows.index) // _FEW_ROWS)))
        each = parts.contributions(some.index)
        total = each.sum(axis=1)
        changes += [
            ("forgotten", (i, j), f"{names[i]} and {names[j]} forgotten")
            for i, j in combinations(range(len(names)), 2)
            if (i, j) not in parts.shared.values()
            if known is not None or some.are(parts.link(total - each[:, i] - each[:, j])).any()
        ]
    changes = [change for change in changes if known is None or change[-1] in known]
    found: list[list[NDArray[np.intp]]] = [[] for _ in changes]
    for chunk in _chunks(len(rows.index)):
        each = parts.contributions(rows.index[chunk])
        total = each.sum(axis=1)
        for members, (family, columns, _) in zip(found, changes, strict=True):
            change = each[:, columns].sum(axis=1)
            made = parts.link(total - change if family == "forgotten" else total + change)
            members.append(chunk.start + np.flatnonzero(rows.are(made, chunk)))
    for members, (family, _, label) in zip(found, changes, strict=True):
        yield Explanation(family, label, np.concatenate(members))


def _neighbours(rows: WrongRows, labels: Labels, groups: NDArray[np.intp] | None) -> Iterator[Explanation]:
    """Take the value of the row before or after, in the table or in the group."""
    steps = ((-1, BEFORE), (1, AFTER))
    for step, label in steps:
        yield _value_of(rows, *labels.beside(rows.index, step), label)
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        for step, label in steps:
            other = order[np.clip(place[rows.index] + step, 0, len(order) - 1)]
            there = (groups[other] == groups[rows.index]) & (other != rows.index)
            there &= labels.number(other) != labels.number(rows.index) + step
            yield _value_of(rows, labels.at(other), there, f"{label} in its group")


def _value_of(rows: WrongRows, others: NDArray[np.void], there: BoolArray, label: str) -> Explanation:
    """Compare with what another row implies and, if that is wrong, what it was given; a copy of this row is none."""
    implied = rows.are(others["implied"]) & there
    stale = rows.are(others["given"]) & there & others["wrong"] & (others["implied"] != rows.implied)
    found = np.flatnonzero(implied | stale)
    return Explanation("another row", label, found, np.where(implied[found], 1.0, 2.0))


def _swapped_with(rows: WrongRows, swapped: BoolArray) -> Explanation:
    # A pair is a choice among all rows, once for the two of them.
    return Explanation("another row", SWAPPED, np.flatnonzero(swapped), math.sqrt(len(rows.given)))


def swapped_rows(given: FloatArray, implied: FloatArray, unit: float | None) -> BoolArray:
    """Tell which wrong rows have the value of another one that has theirs."""
    cells = [_cells(values, unit) for values in (given, implied)]
    known, codes = np.unique(np.concatenate(cells), return_inverse=True)
    first, second = np.split(codes.astype(np.int64), 2)
    return np.asarray(np.isin(first * len(known) + second, second * len(known) + first) & (first != second))


def _cells(values: FloatArray, unit: float | None) -> FloatArray:
    if unit is not None:
        return np.asarray(np.rint(values / unit))
    size = 10.0 ** (_FLOAT_DIGITS - np.ceil(np.log10(np.maximum(np.abs(values), 1e-280))))
    return np.asarray(np.rint(values * size) / size)


def _digits(rows: WrongRows, grid: float | None) -> Iterator[Explanation]:
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


def _constants(rows: WrongRows) -> Iterator[Explanation]:
    """Find differences that many rows have."""
    some = rows.some
    residuals, close = some.given - some.exact, _INSIDE * some.close
    for middle in _common(residuals - close, residuals + close):
        value = _shortest(middle, some.plus)
        found = rows.plus(value)
        yield from _often(Explanation("constant", f"off by {value:+.10g}", found, parameter=value, found=True))


def _factors(rows: WrongRows) -> Iterator[Explanation]:
    """Find ratios that many rows have: a tax, a conversion of units."""
    some = rows.some
    some = some.part(np.flatnonzero(some.close < _NARROW * np.minimum(np.abs(some.implied), np.abs(some.given))))
    ratio, width = some.given / some.implied, some.close / np.abs(some.implied)
    for middle in _common(ratio - width, ratio + width):
        value = _shortest(middle, some.times)
        inverse = _shortest(1 / middle, lambda v: some.times(1 / v))
        label = f"{value:.10g}"
        if _digits_of(inverse) < _digits_of(value):
            value, label = 1 / inverse, f"1/{inverse:.10g}"
        if value in (*FACTORS, -1.0):
            continue
        near, others = 2 * float(np.median(width)), np.ones(len(ratio), dtype=bool)
        others[some.times(value)] = False  # small values have ratios far from it, which do not make it less clear
        around = crowd(ratio, near, others)[np.abs(ratio - value) <= near].max(initial=0.0)
        floor = float(around) * len(ratio) / len(rows.some.given)
        yield from _often(replace(_factor(rows, value, label), floor=floor, found=True))


def _factor(rows: WrongRows, factor: float, label: str) -> Explanation:
    members = rows.times(factor)
    return Explanation("factor", f"factor {label}", members, rows.looser(factor)[members], parameter=factor)


def _shortest(value: float, explained: Callable[[float], NDArray[np.intp]]) -> float:
    """Return the number with the fewest digits that explains as many rows."""
    n = len(explained(value))
    enough = min(_AS_MANY * n, n - (n >= _MANY_ROWS))
    for digits in range(1, _FLOAT_DIGITS):
        short = float(f"{value:.{digits}g}")
        if len(explained(short)) >= enough:
            return short
    return value


def _digits_of(value: float) -> int:
    """Return how many digits a number has: 1.07 has three, and 0.9346 four."""
    return len(f"{abs(value):.9e}".partition("e")[0].rstrip("0"))


def _often(kind: Explanation) -> Iterator[Explanation]:
    """Leave out what too few rows have in common."""
    if len(kind.rows) >= _LEAST_ROWS:
        yield kind


def _common(low: FloatArray, high: FloatArray) -> Iterator[float]:
    """Return numbers that lie in most of the intervals; those are taken out, then the next is looked for."""
    for _ in range(_MOST_FOUND):
        ends, steps = np.concatenate([low, high]), np.repeat([1, -1], len(low))
        order = np.lexsort((-steps, ends))
        depth = np.cumsum(steps[order])
        if depth.max(initial=0) < _LEAST_ROWS:
            return
        deepest = int(np.argmax(depth))
        middle = float(ends[order[deepest]] + ends[order[deepest + 1]]) / 2
        yield middle
        rest = (high < middle) | (low > middle)
        low, high = low[rest], high[rest]


def _chunks(n: int) -> Iterator[slice]:
    for start in range(0, n, _CHUNK):
        yield slice(start, min(start + _CHUNK, n))
