"""What a rule gives for a row once one thing about it is changed: a term forgotten, a level taken for another.

Each change is a way in which a wrong value may have come about, computed from the rule and the columns of the row.
Nothing is said relative to the base level of a category, which is a choice of whoever wrote the rule: terms that differ
in levels only are one part, a rate for each level, and a rate is compared with the rates of other levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.rows import IDENTITY, BoolArray, FloatArray, Link
from massart.rows.decimals import LONG, count_decimals
from massart.rules.columns import Columns
from massart.rules.formula import Formula, Summand
from massart.rules.matrix import Matrix
from massart.rules.terms import Part, Term, day_of, number, product

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

CONSTANT = "constant"
_STEPS = 3
_MOST_POINTS = 1e9
_DUST = 1e-6

Rows: TypeAlias = NDArray[np.intp]


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


def usual_values(columns: Columns | None) -> dict[str, Usual]:
    """Return which values the columns of numbers have that are written with few digits."""
    found: dict[str, Usual] = {}
    for name, values in ({} if columns is None else columns.numbers).items():
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
    """One thing that may have happened.

    Attributes
    ----------
    family, label : str
        What happened in general: "forgotten", and to what: "freight forgotten".
    values : callable
        What the rule gives with it, not rounded, for some rows, the contributions of the parts there, and the labels.
    choices : float
        How many values it allows a row.
    reads : tuple of str
        Columns that it reads, if the rule may not.
    apart : callable, optional
        Given what `values` is given: how far apart the values are that it allows, where these are many.
    """

    family: str
    label: str
    values: Callable[[Rows, FloatArray, FloatArray], FloatArray]
    choices: float = 1.0
    reads: tuple[str, ...] = ()
    apart: Callable[[Rows, FloatArray, FloatArray], FloatArray] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Rate:
    """A part of a rule that is a number times something: what it multiplies, and the number if all rows have one."""

    place: int  # of the part
    name: str
    number: str
    base: Callable[[Rows], FloatArray]


@dataclass(frozen=True, eq=False)
class Parts:
    """What the rule adds up: ``implied = link(contributions.sum(axis=1))``, rounded.

    Attributes
    ----------
    names : tuple of str
    contributions : callable
        Returns an array with one column a name, for the rows asked for.
    link : Link
    shared : mapping
        Factors that several parts have, with the places of these: a tax on two amounts may be forgotten in both.
    rates : tuple of Rate
    others : tuple of Change
        What else may have happened, but for parts that are forgotten or counted twice.
    """

    names: tuple[str, ...]
    contributions: Callable[[Rows], FloatArray]
    link: Link = IDENTITY
    shared: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rates: tuple[Rate, ...] = ()
    others: tuple[Change, ...] = ()

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """All that may have happened, the simplest first."""
        names = self.names
        alone: list[tuple[str, tuple[int, ...], str]]
        alone = [("forgotten", (j,), name) for j, name in enumerate(names)]
        alone += [("forgotten", places, name) for name, places in self.shared.items()]
        alone += [("counted twice", (j,), name) for j, name in enumerate(names)]
        if 2 < len(names) <= MOST_PARTS:
            alone += [
                ("two forgotten", pair, f"{names[pair[0]]} and {names[pair[1]]}")
                for pair in combinations(range(len(names)), 2)
                if pair not in self.shared.values()
            ]
        return (*(self._of_parts(*each) for each in alone), *self.others)

    def _of_parts(self, family: str, places: tuple[int, ...], name: str) -> Change:
        sign, what = (1.0, family) if family == "counted twice" else (-1.0, "forgotten")
        return Change(
            family,
            f"{name} {what}",
            lambda _, each, __: self.link(each.sum(axis=1) + sign * each[:, places].sum(axis=1)),
        )


def parts_of(
    X: Matrix, formula: Formula, columns: Columns | None = None, usual: Mapping[str, Usual] | None = None
) -> Parts:
    """Return what a rule adds up, and what may have happened to it.

    Parameters
    ----------
    X : (n, d) array or TermMatrix
        The values of the terms.
    formula : Formula
    columns : Columns, optional
        The same rows as columns. Without them, parts may be forgotten or counted twice, and nothing else.
    usual : mapping of str to Usual, optional
        Of columns of which these rows are a part; by default of these rows.
    """
    used = [j for j, term in enumerate(formula.all_terms) if term.coef]
    groups: dict[tuple[Term, ...], list[int]] = {}
    for j in used:
        groups.setdefault(_base(formula.all_terms[j]), []).append(j)
    rule = _Rule(X, formula, columns, usual_values(columns) if usual is None else usual)
    names = [_name(base, [formula.all_terms[j] for j in members]) for base, members in groups.items()]
    rates = tuple(
        Rate(place, name, formula.all_terms[members[0]].number() if len(members) == 1 else "", rule.base_of(*group))
        for place, (name, group) in enumerate(zip(names, groups.items(), strict=True))
        if (members := group[1]) and (columns is not None or len(members) == 1)
    )
    shared: dict[str, list[int]] = {}
    for place, base in enumerate(groups):
        for factor in dict.fromkeys(base):
            if _without(base, factor) in groups:  # a tax on an amount, and not the price of a quantity
                shared.setdefault(str(factor), []).append(place)
    return Parts(
        tuple(names),
        lambda rows: np.column_stack([np.zeros((len(rows), 0)), *(rule.sum_of(j, rows) for j in groups.values())]),
        formula.link,
        {name: tuple(own) for name, own in shared.items() if 1 < len(own) < len(groups) and name not in names},
        rates,
        tuple(rule.changes()),
    )


def _selects(factor: Term) -> bool:
    """Whether a factor is 1 for levels of a category: then which of its levels has none is a choice."""
    return factor.op == "level" or (factor.op == "in" and isinstance(factor.parts[0], str))


def _base(summand: Summand) -> tuple[Term, ...]:
    """Return the factors of a term but for its levels; that of a sum of rates by level is the same for all of them."""
    return () if summand.term is None else tuple(f for f in summand.term.factors if not _selects(f))


def _without(base: tuple[Term, ...], factor: Term) -> tuple[Term, ...]:
    place = base.index(factor)
    return (*base[:place], *base[place + 1 :])


def _share(factor: Term) -> Term | None:
    """Return the column of 1 + column or 1 - column; None for other factors."""
    if factor.op not in ("+", "-") or factor.parts[0] != number(1.0):
        return None
    column = factor.parts[1]
    return column if isinstance(column, Term) and column.op == "column" else None


def _name(base: tuple[Term, ...], members: Sequence[Summand]) -> str:
    """Return a part in words; the levels of a category are one part, since a row has one of them."""
    by = dict.fromkeys(str(f.parts[0]) for m in members for f in (m.term.factors if m.term else ()) if _selects(f))
    words = [f"({base[0]})" if len(base) == 1 and base[0].op in ("+", "-") else str(product(*base))] if base else []
    return " * ".join([*words, *by]) or CONSTANT


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """A rule on some rows, and what it gives there where columns have other values."""

    X: Matrix
    formula: Formula
    columns: Columns | None
    usual: Mapping[str, Usual]

    def sum_of(self, places: Sequence[int], rows: Rows) -> FloatArray:
        """Return what some summands add up to."""
        found = np.zeros(len(rows))
        for j in places:
            found += self.formula.coef[j] * (self.X[rows, j] if j < len(self.formula.terms) else 1.0)
        return found

    def base_of(self, base: tuple[Term, ...], members: Sequence[int]) -> Callable[[Rows], FloatArray]:
        """Return what the rates of a part multiply."""
        if len(members) == 1 and not any(_selects(f) for f in self._factors(members[0])):
            return lambda rows: self.sum_of(members, rows) / self.formula.coef[members[0]]
        return lambda rows: self._value(base, rows)

    def _factors(self, j: int) -> tuple[Term, ...]:
        term = self.formula.all_terms[j].term
        return () if term is None else term.factors

    def _value(self, factors: Sequence[Term], rows: Rows) -> FloatArray:
        if not factors:
            return np.ones(len(rows))
        assert self.columns is not None
        return product(*factors).evaluate(self.columns.take(rows))

    @property
    def _used(self) -> dict[int, Term]:
        """The terms that read the row alone."""
        terms = enumerate(self.formula.terms)
        return {j: term.term for j, term in terms if term.coef and term.term is not None}

    def changes(self) -> Iterator[Change]:
        """Yield what may have happened beyond parts that are forgotten or counted twice."""
        yield from self._limits()
        if self.columns is None:
            return
        reading: dict[str, list[int]] = {}
        for j, term in self._used.items():
            for name in dict.fromkeys(term.columns()):
                reading.setdefault(name, []).append(j)
        for name in [name for name, places in reading.items() if any(self._used[j].needs_order for j in places)]:
            del reading[name]
        yield from self._surcharges()
        for name, places in reading.items():
            if all(self._selected(name, j) for j in places):
                yield from self._levels(name, places)
            elif name in self.columns.numbers:
                yield from self._thresholds(name, places)
                yield from self._values(name, places)
        yield from self._columns(list(reading))
        for name, places in reading.items():
            if name in self.columns.numbers and not all(self._selected(name, j) for j in places):
                yield from self._wrong(name, places)

    def _limits(self) -> Iterator[Change]:
        """Forget a limit of the link."""
        link = self.formula.link
        for limit, free in (
            (link.lower, Link(-math.inf, link.upper, link.slope)),
            (link.upper, Link(link.lower, math.inf, link.slope)),
        ):
            if math.isfinite(limit):
                yield Change("forgotten", f"limit {limit:g} forgotten", partial(_linked, free))

    def _surcharges(self) -> Iterator[Change]:
        """Forget a tax or a discount: a factor 1 + x or 1 - x of products."""
        having: dict[Term, list[int]] = {}
        for j in self._used:
            for factor in dict.fromkeys(self._factors(j)):
                having.setdefault(factor, []).append(j)
        for factor, places in having.items():
            share = _share(factor)
            if share is not None and share not in having and not any(self._used[j].needs_order for j in places):
                yield self._rewritten("forgotten", f"{share} forgotten", places, {factor: number(1.0)})

    # --- levels -------------------------------------------------------------------------------------------------------

    def _selected(self, name: str, j: int) -> bool:
        """Whether a term reads a column as one factor alone, which selects levels."""
        reads = [factor for factor in self._factors(j) if name in factor.columns()]
        return len(reads) == 1 and _selects(reads[0])

    def _levels(self, name: str, places: Sequence[int]) -> Iterator[Change]:
        """Take a row for one with another level: each of its rates is that of the other level."""
        assert self.columns is not None
        rates: dict[tuple[Term, ...], list[tuple[tuple[str, ...], float]]] = {}
        for j in places:
            condition = next(factor for factor in self._factors(j) if name in factor.columns())
            rest = tuple(factor for factor in self._factors(j) if factor is not condition)
            rates.setdefault(rest, []).append((tuple(map(str, condition.parts[1:])), self.formula.coef[j]))
        coded = self.columns.levels.get(name)
        names = coded.names if coded is not None else _as_texts(self.usual.get(name))

        def values(level: str, rows: Rows, each: FloatArray, _: FloatArray) -> FloatArray:
            total = each.sum(axis=1) - self.sum_of(places, rows)
            for rest, known in rates.items():
                total += sum(rate for levels, rate in known if level in levels) * self._value(rest, rows)
            return self.formula.link(total)

        for level in names:
            yield Change(LEVEL, f"as for {name} = {level}", partial(values, level))

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _with(self, name: str, places: Sequence[int], rows: Rows, each: FloatArray, other: FloatArray) -> FloatArray:
        """Return what the rule gives where a column has other values."""
        assert self.columns is not None
        some = self.columns.take(rows)
        some = replace(some, numbers={**some.numbers, name: other})
        return self._replaced(places, rows, each, [self._used[j] for j in places], some)

    def _replaced(
        self, places: Sequence[int], rows: Rows, each: FloatArray, terms: Sequence[Term], some: Columns
    ) -> FloatArray:
        total = each.sum(axis=1) - self.sum_of(places, rows)
        for j, term in zip(places, terms, strict=True):
            total += self.formula.coef[j] * term.evaluate(some)
        return self.formula.link(total)

    def _values(self, name: str, places: Sequence[int]) -> Iterator[Change]:
        """Take a row for one with another of the few values of a column."""
        assert self.columns is not None

        def values(value: float, rows: Rows, each: FloatArray, _: FloatArray) -> FloatArray:
            return self._with(name, places, rows, each, np.full(len(rows), value))

        if name in self.usual and name not in self.columns.dates:
            usual = self.usual[name]
            for value, text in zip(usual.few, _as_texts(usual), strict=True):
                yield Change(LEVEL, f"as for {name} = {text}", partial(values, value))

    def _thresholds(self, name: str, places: Sequence[int]) -> Iterator[Change]:
        """Count a column up to a threshold only, forget a threshold, or take a row for one on its other side."""
        assert self.columns is not None
        column = self.columns.numbers[name]
        found = dict.fromkeys(part for j in places for part in _nested(self._used[j]) if name in part.columns())
        inside = [part for part in found if part.op == "within"]
        bends = [part for part in found if part.op in ("max", "min") and any(map(_is_number, part.parts))]
        limits = {float(end) for part in inside for end in part.parts[1:3] if isinstance(end, float | int)}
        limits |= {float(str(p.parts[0])) for part in bends for p in _nested(part) if _is_number(p) and p.parts[0]}

        def capped(limit: float, rows: Rows, each: FloatArray, _: FloatArray) -> FloatArray:
            return self._with(name, places, rows, each, np.minimum(column[rows], limit))

        for limit in sorted(limits):
            yield Change("threshold", f"{name} up to {limit:g} only", partial(capped, limit))
        for part in bends:
            for other in _unbent(part):
                yield self._rewritten("threshold", f"{part} taken as {other}", places, {part: other})
        for part in inside:
            elsewhere = {other: number(1.0 if _holds(other, part) else 0.0) for other in inside}
            yield self._rewritten(LEVEL, f"as for {str(part)[1:-1]}", places, elsewhere)

    def _rewritten(self, family: str, label: str, places: Sequence[int], new: Mapping[Term, Term]) -> Change:
        """Write other terms for some parts of terms."""
        terms, columns = [_rewritten(self._used[j], new) for j in places], self.columns
        assert columns is not None
        return Change(
            family, label, lambda rows, each, _: self._replaced(places, rows, each, terms, columns.take(rows))
        )

    def _columns(self, read: Sequence[str]) -> Iterator[Change]:
        """Give the value of another column, or a sum, difference, product or quotient of it and one of the rule."""
        assert self.columns is not None
        numbers = self.columns.numbers
        names = [name for name in numbers if name not in self.columns.dates and name != self.formula.target]
        own = [name for name in names if name in read]
        if len(names) > MOST_COLUMNS:
            names = own
        terms = [Term("column", (name,)) for name in names]
        made = [*terms]
        for first, second in combinations(terms, 2):
            if first.parts[0] in own or second.parts[0] in own:
                made += [Term(op, (first, second)) for op in "+-*/"] + [Term(op, (second, first)) for op in "-/"]
        for term in made:
            reads = tuple(dict.fromkeys(term.columns()))
            yield Change("value of a column", f"the value of {term}", partial(self._of_term, term), reads=reads)

    def _of_term(self, term: Term, rows: Rows, each: FloatArray, given: FloatArray) -> FloatArray:
        return self._value([term], rows)

    def _wrong(self, name: str, places: Sequence[int]) -> Iterator[Change]:
        """Say that a column may be wrong: the label is right for another value of it, one that it usually has."""
        assert self.columns is not None
        column = self.columns.numbers[name]

        usual = self.usual.get(name)

        def scaled(factor: float, rows: Rows, each: FloatArray, _: FloatArray) -> FloatArray:
            value = column[rows] / factor
            found = self._with(name, places, rows, each, value)
            return found if usual is None else np.where(usual.holds(value), found, np.nan)

        for factor in () if name in self.columns.dates else (*FACTORS, -1.0):
            what = "sign" if factor < 0 else f"factor {factor:g}"
            yield Change(COLUMN, f"{name} may be wrong: {what}", partial(scaled, factor))
        if usual is not None:
            solved, apart = (partial(f, name, places, usual) for f in (self._solved, self._apart))
            yield Change(COLUMN, f"{name} may be wrong", solved, usual.n_values, apart=apart)

    def _solved(
        self, name: str, places: Sequence[int], usual: Usual, rows: Rows, each: FloatArray, given: FloatArray
    ) -> FloatArray:
        """Return what the rule gives for the usual value of a column that fits a label best; NaN if there is none."""
        assert self.columns is not None
        value = self._solution(name, places, usual, rows, each, given)
        found = self._with(name, places, rows, each, value)
        return np.where(np.abs(value - self.columns.numbers[name][rows]) > usual.step / 2, found, np.nan)

    def _apart(
        self, name: str, places: Sequence[int], usual: Usual, rows: Rows, each: FloatArray, given: FloatArray
    ) -> FloatArray:
        """Return how far what the rule gives moves from that value of the column to the next one."""
        value = self._solution(name, places, usual, rows, each, given)
        here, there = (self._with(name, places, rows, each, at) for at in (value, value + usual.step))
        return np.abs(there - here)

    def _solution(
        self, name: str, places: Sequence[int], usual: Usual, rows: Rows, each: FloatArray, given: FloatArray
    ) -> FloatArray:
        assert self.columns is not None
        column = self.columns.numbers[name][rows]
        value, step = column, usual.step
        for _ in range(_STEPS):  # of Newton's method, on the values that the column may have
            here, there = (self._with(name, places, rows, each, at) for at in (value, value + step))
            with np.errstate(all="ignore"):
                value = usual.low + np.rint((value + step * (given - here) / (there - here) - usual.low) / step) * step
            value = np.where(np.isfinite(value), np.clip(value, usual.low, usual.high), column)
        return value


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


def _linked(link: Link, rows: Rows, each: FloatArray, given: FloatArray) -> FloatArray:
    return link(each.sum(axis=1))


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
