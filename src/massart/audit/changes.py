"""What a rule gives for a row once one thing about it is changed: a term forgotten, a level taken for another.

Each change is a way in which a wrong value may have come about, computed from the rule and the columns of the row.
Nothing is said relative to the base level of a category, which is a choice of whoever wrote the rule: terms that differ
in levels only are one part, a rate for each level, and a rate is compared with the rates of other levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.rows import LONG, BoolArray, FloatArray, Link, count_decimals
from massart.rules import Columns, Formula, Matrix, Part, Summand, Term, day_of, number, product

FACTORS = (10.0, 100.0, 1000.0, 0.1, 0.01, 0.001)
"""Factors that somebody may have typed."""

COLUMN = "another column"
"""The family of changes of a row in which a column may be wrong, and the label right."""

LEVEL = "another level"
"""The family of changes that take a row for one with another level, or in another range."""

MOST_PARTS = 40
"""Parts of which two may be forgotten together."""

MOST_VALUES = 12
"""Different values of a column of numbers that are taken for its levels."""

MOST_COLUMNS = 30
"""Columns outside the rule whose values a row may have been given."""

NO_COLUMNS = Columns({})
CONSTANT = "constant"
_STEPS = 3  # of Newton's method; one names 47 of 95,229 rows less (benchmarks/kinds.py), six none more
_MOST_POINTS = 1e9  # nobody mistakes a larger number for another amount
_DUST = 1e-6  # of a step

Rows: TypeAlias = NDArray[np.intp]
Values: TypeAlias = Callable[[Rows, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Usual:
    """Which values a column of numbers has: multiples of `step` between two limits, and all of them if they are few."""

    low: float
    high: float
    step: float
    few: tuple[float, ...]

    @property
    def n_values(self) -> float:
        """How many values the column may have."""
        return round((self.high - self.low) / self.step) + 1.0

    def holds(self, values: FloatArray) -> BoolArray:
        """Return which values are multiples of the step; outside the limits, too: there are other rows."""
        steps = (values - self.low) / self.step
        return np.asarray(np.abs(steps - np.rint(steps)) < _DUST)


def usual_values(columns: Columns) -> dict[str, Usual]:
    """Return which values the columns of numbers have that are written with few digits."""
    found: dict[str, Usual] = {}
    for name, values in columns.numbers.items():
        if not len(values) or not np.isfinite(values).all() or np.abs(values).max() > _MOST_POINTS:
            continue
        places = int(count_decimals(values).max())
        if places == LONG:
            continue
        whole = np.rint((values - values.min()) * 10.0**places).astype(np.int64)
        step = int(np.gcd.reduce(whole))
        if step:
            few = np.unique(values) if len(np.unique(whole[:1000])) <= MOST_VALUES else values
            kept = tuple(few.tolist()) if len(few) <= MOST_VALUES else ()
            found[name] = Usual(float(values.min()), float(values.max()), step / 10.0**places, kept)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One thing that may have happened."""

    family: str  # in general: "forgotten"
    label: str  # and to what: "freight forgotten"
    # what the rule gives with it, not rounded, for some rows, the contributions of the parts there, and the labels
    values: Values
    choices: float = 1.0  # how many values it allows a row
    reads: tuple[str, ...] = ()  # columns that it reads, if the rule may not
    apart: Values | None = None  # how far apart the values are that it allows, where these are many


@dataclass(frozen=True, eq=False)
class Parts:
    """What a rule adds up on some rows: ``implied = link(contributions.sum(axis=1))``, rounded.

    Without columns, parts may be forgotten or counted twice, and nothing else. What values columns usually have is
    that of all rows of which these are a part.
    """

    X: Matrix
    formula: Formula
    columns: Columns = NO_COLUMNS
    usual: Mapping[str, Usual] = field(default_factory=dict)

    @cached_property
    def groups(self) -> dict[tuple[Term, ...], list[int]]:
        """The places of the terms of each part by what they have in common: all but levels of categories."""
        found: dict[tuple[Term, ...], list[int]] = {}
        for j, term in enumerate(self.formula.all_terms):
            if term.coef:
                base = () if term.term is None else tuple(f for f in term.term.factors if not _selects(f))
                found.setdefault(base, []).append(j)
        return found

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each part is called."""
        terms = self.formula.all_terms
        return tuple(_name(base, [terms[j] for j in members]) for base, members in self.groups.items())

    def contributions(self, rows: Rows) -> FloatArray:
        """Return an array with one column a part."""
        return np.column_stack([np.zeros((len(rows), 0)), *(self._sum_of(j, rows) for j in self.groups.values())])

    def link(self, values: FloatArray) -> FloatArray:
        """Return what the rule makes of a sum."""
        return self.formula.link(values)

    # --- rates --------------------------------------------------------------------------------------------------------

    @property
    def rates(self) -> list[int]:
        """The parts that are a number times something."""
        members = enumerate(self.groups.values())
        return [place for place, terms in members if self.columns.n_rows or len(terms) == 1]

    def number(self, place: int) -> str:
        """Return the number of a part, "" where it depends on the row."""
        members = [*self.groups.values()][place]
        return self.formula.all_terms[members[0]].number() if len(members) == 1 else ""

    def base(self, place: int, rows: Rows) -> FloatArray:
        """Return what the number of a part multiplies."""
        base, members = [*self.groups.items()][place]
        if len(members) == 1 and not any(_selects(factor) for factor in self._factors(members[0])):
            return self._sum_of(members, rows) / self.formula.all_terms[members[0]].coef
        return self._value(base, rows)

    # --- changes ------------------------------------------------------------------------------------------------------

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """All that may have happened, the simplest first."""
        return (*self._of_parts(), *self._limits(), *(self._of_columns() if self.columns.n_rows else ()))

    def _of_parts(self) -> Iterator[Change]:
        """Forget parts, or count them twice; a tax on two amounts may be forgotten in both."""
        names, bases = self.names, [*self.groups]
        having: dict[str, list[int]] = {}
        for place, base in enumerate(bases):
            for factor in dict.fromkeys(base):
                k = base.index(factor)
                if (*base[:k], *base[k + 1 :]) in self.groups:  # a tax on an amount, and not the price of a quantity
                    having.setdefault(str(factor), []).append(place)
        shared = {n: tuple(own) for n, own in having.items() if 1 < len(own) < len(bases) and n not in names}

        def of(family: str, places: tuple[int, ...], label: str, sign: float) -> Change:
            return Change(
                family, label, lambda _, each, __: self.link(each.sum(axis=1) + sign * each[:, places].sum(axis=1))
            )

        alone = [(name, (j,)) for j, name in enumerate(names)]
        for name, places in [*alone, *shared.items()]:
            yield of("forgotten", places, f"{name} forgotten", -1.0)
        for name, places in alone:
            yield of("counted twice", places, f"{name} counted twice", 1.0)
        if 2 < len(names) <= MOST_PARTS:
            for pair in combinations(range(len(names)), 2):
                if pair not in shared.values():
                    yield of("two forgotten", pair, f"{names[pair[0]]} and {names[pair[1]]} forgotten", -1.0)

    def _limits(self) -> Iterator[Change]:
        """Forget a limit of the link."""

        def without(limit: float, link: Link) -> Change:
            return Change("forgotten", f"limit {limit:g} forgotten", lambda _, each, __: link(each.sum(axis=1)))

        own = self.formula.link
        if math.isfinite(own.lower):
            yield without(own.lower, replace(own, lower=-math.inf))
        if math.isfinite(own.upper):
            yield without(own.upper, replace(own, upper=math.inf))

    def _of_columns(self) -> Iterator[Change]:
        """Change the columns of the row, or how the rule reads them."""
        yield from self._surcharges()
        numbers = []
        for name, places in self._reading.items():
            if all(self._selected(name, j) for j in places):
                yield from self._levels(name, places)
            elif name in self.columns.numbers:
                numbers.append(name)
                yield from self._thresholds(name, places)
                yield from self._values_of(name, places)
        yield from self._other_columns()
        for name in numbers:
            yield from self._wrong(name, self._reading[name])

    def _values_of(self, name: str, places: Sequence[int]) -> Iterator[Change]:
        """Take a row for one with another of the few values of a column of numbers."""
        usual = None if name in self.columns.dates else self.usual.get(name)
        for value, text in zip(() if usual is None else usual.few, _as_texts(usual), strict=True):
            other = self._having(name, places, partial(np.full_like, fill_value=value))
            yield Change(LEVEL, f"as for {name} = {text}", other)

    def _surcharges(self) -> Iterator[Change]:
        """Forget a tax or a discount: a factor 1 + x or 1 - x of products."""
        having: dict[Term, list[int]] = {}
        for j in self._used:
            for factor in dict.fromkeys(self._factors(j)):
                having.setdefault(factor, []).append(j)
        for factor, places in having.items():
            share = factor.parts[1] if factor.op in ("+", "-") and factor.parts[0] == number(1.0) else None
            if not isinstance(share, Term) or share.op != "column" or share in having:
                continue
            if not any(self._used[j].needs_order for j in places):
                yield self._rewritten("forgotten", f"{share} forgotten", places, {factor: number(1.0)})

    def _levels(self, name: str, places: Sequence[int]) -> Iterator[Change]:
        """Take a row for one with another level: each of its rates is that of the other level."""
        rates: dict[tuple[Term, ...], list[tuple[tuple[str, ...], float]]] = {}
        for j in places:
            condition = next(factor for factor in self._factors(j) if name in factor.columns())
            rest = tuple(factor for factor in self._factors(j) if factor is not condition)
            rates.setdefault(rest, []).append((tuple(map(str, condition.parts[1:])), self.formula.coef[j]))
        coded = self.columns.levels.get(name)
        names = coded.names if coded is not None else _as_texts(self.usual.get(name))

        def values(level: str, rows: Rows, each: FloatArray, _: FloatArray) -> FloatArray:
            total = each.sum(axis=1) - self._sum_of(places, rows)
            for rest, known in rates.items():
                total += sum(rate for levels, rate in known if level in levels) * self._value(rest, rows)
            return self.link(total)

        for level in names:
            yield Change(LEVEL, f"as for {name} = {level}", partial(values, level))

    def _thresholds(self, name: str, places: Sequence[int]) -> Iterator[Change]:
        """Count a column up to a threshold only, forget a threshold, or take a row for one on its other side."""
        found = dict.fromkeys(part for j in places for part in _nested(self._used[j]) if name in part.columns())
        inside = [part for part in found if part.op == "within"]
        bends = [part for part in found if part.op in ("max", "min") and any(map(_is_number, part.parts))]
        limits = {float(end) for part in inside for end in part.parts[1:3] if isinstance(end, float | int)}
        limits |= {float(str(p.parts[0])) for part in bends for p in _nested(part) if _is_number(p) and p.parts[0]}
        for limit in sorted(limits):
            capped = self._having(name, places, partial(np.minimum, limit))
            yield Change("threshold", f"{name} up to {limit:g} only", capped)
        for part in bends:
            for other in _unbent(part):
                yield self._rewritten("threshold", f"{part} taken as {other}", places, {part: other})
        for part in inside:
            elsewhere = {other: number(1.0 if _holds(other, part) else 0.0) for other in inside}
            yield self._rewritten(LEVEL, f"as for {str(part)[1:-1]}", places, elsewhere)

    def _other_columns(self) -> Iterator[Change]:
        """Give the value of another column, or a sum, difference, product or quotient of it and one of the rule."""
        names = [n for n in self.columns.numbers if n not in self.columns.dates and n != self.formula.target]
        own = [name for name in names if name in self._reading]
        terms = [Term("column", (name,)) for name in (own if len(names) > MOST_COLUMNS else names)]
        for term in (*terms, *_combined(terms, {*own})):
            reads, values = tuple(dict.fromkeys(term.columns())), partial(self._value, [term])
            yield Change("value of a column", f"the value of {term}", values, reads=reads)

    def _wrong(self, name: str, places: Sequence[int]) -> Iterator[Change]:
        """Say that a column may be wrong: the label is right for another value of it, one that it usually has."""
        column, usual = self.columns.numbers[name], self.usual.get(name)

        def scaled(factor: float, rows: Rows, each: FloatArray, _: FloatArray) -> FloatArray:
            value = column[rows] / factor
            found = self._with(name, places, rows, each, value)
            return found if usual is None else np.where(usual.holds(value), found, np.nan)

        for factor in () if name in self.columns.dates else (*FACTORS, -1.0):
            what = "sign" if factor < 0 else f"factor {factor:g}"
            yield Change(COLUMN, f"{name} may be wrong: {what}", partial(scaled, factor))
        if usual is None:
            return

        def solution(rows: Rows, each: FloatArray, given: FloatArray) -> FloatArray:
            value, step = column[rows], usual.step
            for _ in range(_STEPS):  # of Newton's method, on the values that the column may have
                here, there = (self._with(name, places, rows, each, at) for at in (value, value + step))
                with np.errstate(all="ignore"):
                    steps = (value + step * (given - here) / (there - here) - usual.low) / step
                    value = usual.low + np.rint(steps) * step
                value = np.where(np.isfinite(value), np.clip(value, usual.low, usual.high), column[rows])
            return value

        def solved(rows: Rows, each: FloatArray, given: FloatArray) -> FloatArray:
            """Return what the rule gives for the usual value that fits a label best; NaN if there is none."""
            value = solution(rows, each, given)
            found = self._with(name, places, rows, each, value)
            return np.where(np.abs(value - column[rows]) > usual.step / 2, found, np.nan)

        def apart(rows: Rows, each: FloatArray, given: FloatArray) -> FloatArray:
            """Return how far what the rule gives moves from that value of the column to the next one."""
            value = solution(rows, each, given)
            here, there = (self._with(name, places, rows, each, at) for at in (value, value + usual.step))
            return np.abs(there - here)

        yield Change(COLUMN, f"{name} may be wrong", solved, usual.n_values, apart=apart)

    # --- what the rule gives otherwise --------------------------------------------------------------------------------

    @cached_property
    def _used(self) -> dict[int, Term]:
        """The terms of the rule that count."""
        terms = enumerate(self.formula.terms)
        return {j: term.term for j, term in terms if term.coef and term.term is not None}

    @cached_property
    def _reading(self) -> dict[str, list[int]]:
        """The places of the terms that read each column; not of columns of which they read other rows, too."""
        found: dict[str, list[int]] = {}
        for j, term in self._used.items():
            for name in dict.fromkeys(term.columns()):
                found.setdefault(name, []).append(j)
        ordered = {name for term in self._used.values() if term.needs_order for name in term.columns()}
        return {name: places for name, places in found.items() if name not in ordered}

    def _factors(self, j: int) -> tuple[Term, ...]:
        term = self.formula.all_terms[j].term
        return () if term is None else term.factors

    def _selected(self, name: str, j: int) -> bool:
        """Whether a term reads a column as one factor alone, which selects levels."""
        reads = [factor for factor in self._factors(j) if name in factor.columns()]
        return len(reads) == 1 and _selects(reads[0])

    def _sum_of(self, places: Sequence[int], rows: Rows) -> FloatArray:
        """Return what some summands add up to."""
        found = np.zeros(len(rows))
        for j in places:
            found += self.formula.coef[j] * (self.X[rows, j] if j < len(self.formula.terms) else 1.0)
        return found

    def _value(self, factors: Sequence[Term], rows: Rows, *_: FloatArray) -> FloatArray:
        if not factors:
            return np.ones(len(rows))
        return product(*factors).evaluate(self.columns.take(rows))

    def _having(self, name: str, places: Sequence[int], change: Callable[[FloatArray], FloatArray]) -> Values:
        """Return what gives the values of the rule where those of a column are changed."""
        own = self.columns.numbers[name]
        return lambda rows, each, _: self._with(name, places, rows, each, change(own[rows]))

    def _with(self, name: str, places: Sequence[int], rows: Rows, each: FloatArray, other: FloatArray) -> FloatArray:
        """Return what the rule gives where a column has other values."""
        some = self.columns.take(rows)
        some = replace(some, numbers={**some.numbers, name: other})
        return self._replaced(places, rows, each, [self._used[j] for j in places], some)

    def _rewritten(self, family: str, label: str, places: Sequence[int], new: Mapping[Term, Term]) -> Change:
        """Write other terms for some parts of terms."""
        terms, columns = [_rewritten(self._used[j], new) for j in places], self.columns
        return Change(
            family, label, lambda rows, each, _: self._replaced(places, rows, each, terms, columns.take(rows))
        )

    def _replaced(
        self, places: Sequence[int], rows: Rows, each: FloatArray, terms: Sequence[Term], some: Columns
    ) -> FloatArray:
        total = each.sum(axis=1) - self._sum_of(places, rows)
        for j, term in zip(places, terms, strict=True):
            total += self.formula.coef[j] * term.evaluate(some)
        return self.link(total)


def _combined(terms: Sequence[Term], own: Container[Part]) -> Iterator[Term]:
    """Yield sums, differences, products and quotients of two columns, one of which at least is one of the rule."""
    for first, second in combinations(terms, 2):
        if first.parts[0] in own or second.parts[0] in own:
            yield from (Term(op, (first, second)) for op in "+-*/")
            yield from (Term(op, (second, first)) for op in "-/")


def _selects(factor: Term) -> bool:
    """Whether a factor is 1 for levels of a category: then which of its levels has none is a choice."""
    return factor.op == "level" or (factor.op == "in" and isinstance(factor.parts[0], str))


def _name(base: tuple[Term, ...], members: Sequence[Summand]) -> str:
    """Return a part in words; the levels of a category are one part, since a row has one of them."""
    by = dict.fromkeys(str(f.parts[0]) for m in members for f in (m.term.factors if m.term else ()) if _selects(f))
    words = [f"({base[0]})" if len(base) == 1 and base[0].op in ("+", "-") else str(product(*base))] if base else []
    return " * ".join([*words, *by]) or CONSTANT


def _as_texts(usual: Usual | None) -> tuple[str, ...]:
    return () if usual is None else tuple(f"{value:.12g}" for value in usual.few)


def _is_number(part: Part) -> bool:
    return isinstance(part, Term) and part.op == "number"


def _nested(term: Term) -> Iterator[Term]:
    """Yield a term and all that are in it."""
    yield term
    for part in term.parts:
        if isinstance(part, Term):
            yield from _nested(part)


def _rewritten(term: Term, new: Mapping[Term, Term]) -> Term:
    if term in new:
        return new[term]
    return Term(term.op, tuple(_rewritten(part, new) if isinstance(part, Term) else part for part in term.parts))


def _unbent(part: Term) -> Iterator[Term]:
    """Yield max(0, km - 30) without its bend, km - 30, and without its threshold, km."""
    for inner in part.parts:
        if isinstance(inner, Term) and inner.op != "number":
            yield inner
            if inner.op == "-" and _is_number(inner.parts[1]) and isinstance(inner.parts[0], Term):
                yield inner.parts[0]


def _holds(condition: Term, where: Term) -> bool:
    """Return whether a condition on a column holds where another one on the same column does."""
    low, high = (day_of(end) if isinstance(end, str) else end for end in where.parts[1:3])
    ends = [float(str(end)) for end in (low, high) if end is not None]
    value = sum(ends) / 2 if len(ends) == 2 else ends[0] + (1.0 if high is None else -1.0) * 1e-6 * max(1, abs(ends[0]))
    return bool(condition.evaluate(Columns({str(condition.parts[0]): np.array([value])}))[0])
