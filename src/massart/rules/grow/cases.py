"""Steps that write the conditions of a rule anew: tables, differences, sets, steps, dates, limits.

Each yields the terms and limits of other rules; see :mod:`~massart.rules.grow.forms`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
from numpy.typing import NDArray

from massart.rows import FloatArray
from massart.rules import terms as t
from massart.rules.grow.evidence import STEPPED
from massart.rules.grow.fit import Fit
from massart.rules.grow.numbers import written_coefficients
from massart.rules.grow.sample import (
    Category,
    Product,
    Sample,
    clipped,
    divided,
    factors_of,
    is_condition,
    is_range,
    key_of,
)
from massart.rules.grow.units import DECIMALS, digits_of, near_numbers
from massart.rules.grow.written import Form, without
from massart.rules.literals import day_of
from massart.rules.terms import Term

_ALIKE = 1e-6  # relative difference of numbers that are one
_FEWEST_STEPS = 3
_LARGEST_SHARE = 1000  # denominator of the ratio of two rates
_MOST_CASES = 16  # of a table that is written as one of them and differences from it


def tables(fit: Fit) -> Iterator[Form]:
    """Write coefficients that differ by level or by interval as a table of them all, or as differences from one."""
    terms, sample = list(fit.terms), fit.labels.sample
    for subject in _subjects(sample, terms):
        rests = [tuple(one for one in term if not _is_about(sample, one, subject)) for term in terms]
        bases = dict.fromkeys(rest for rest, term in zip(rests, terms, strict=True) if rest != term)
        ways: list[list[list[Product]]] = []
        for base in bases:
            group, cases = _cases(sample, terms, base, subject)
            if len(cases) < 2:
                continue
            others = [term for term in terms if term not in group]
            table = [(*base, case) for case in cases]
            ways.append([table])
            if len(cases) <= _MOST_CASES:
                ways[-1] += [[base, *table[:k], *table[k + 1 :]] for k in range(len(cases))]
            for way in ways[-1]:
                yield [*others, *way], fit.limits
        if len(ways) > 1 and len(set(map(len, ways))) == 1:  # the same for all that it multiplies
            others = [term for term, rest in zip(terms, rests, strict=True) if rest not in bases]
            for together in zip(*ways, strict=True):
                yield [*others, *(term for way in together for term in way)], fit.limits


def factor_tables(fit: Fit) -> Iterator[Form]:
    """Write numbers for each pair of cases as one table, or as a table times a table of factors, or times steps."""
    sample, numbers = fit.labels.sample, written_coefficients(fit)
    subjects = list(_subjects(sample, fit.terms))
    for one, other in product([*subjects, _everything(sample)], subjects):
        if one is other:
            continue
        rests = [
            tuple(f for f in term if not any(_is_about(sample, f, it) for it in (one, other))) for term in fit.terms
        ]
        for base in dict.fromkeys(rests):
            group = [j for j, rest in enumerate(rests) if rest == base]
            others = [term for term, rest in zip(fit.terms, rests, strict=True) if rest != base]
            with np.errstate(all="ignore"):
                ratio = sample.matrix([fit.terms[j] for j in group]) @ numbers[group] / sample.column(base)
            cells = _by_code(one.codes * len(other) + other.codes, ratio, len(one) * len(other))
            if cells is None or len(group) < 2 or len(cells) > fit.labels.settings.cells:
                continue
            rates = cells.reshape(len(one), len(other))
            places = [(a, b) for a, b in np.argwhere(rates).tolist() if len(one) > 1]
            yield [*others, *((*base, one.condition(a), other.condition(b)) for a, b in places)], fit.limits
            if rates.all() and np.ptp(rates / rates[:, :1], axis=0).max() < _ALIKE:
                steps = _steps(other, rates[0])
                if steps is not None:
                    yield [*others, *((*base, steps, *case) for case in _conditions(one))], fit.limits
                elif not one.cuts and not other.cuts:  # ends are still moved
                    factors = table_of(one, rates[:, 0]), table_of(other, rates[0] / rates[0, 0])
                    yield [*others, (*base, *factors)], fit.limits


def _everything(sample: Sample) -> Category:
    return Category("", None, None, np.zeros(len(sample), dtype=np.intp), ("",), (t.number(1),))


def _conditions(category: Category) -> list[Product]:
    return [(one,) for one in category.conditions] if len(category) > 1 else [()]


def _steps(classes: Category, rates: FloatArray) -> Term | None:
    """Return started steps of a column for the numbers 1, 2, 3 ... of its intervals, all but the last as wide."""
    if len(classes.cuts) < _FEWEST_STEPS or np.abs(rates / rates[0] - 1 - np.arange(len(rates))).max() > _ALIKE:
        return None
    name, _, end, closed = classes.cuts[0].parts
    if not isinstance(end, float) or any(one.parts[2] != end * k for k, one in enumerate(classes.cuts[:-1], 1)):
        return None
    quotient = Term("/", (t.column(str(name)), t.number(end)))
    steps = Term("ceil", (quotient,)) if closed == "right" else Term("+", (Term("floor", (quotient,)), t.number(1)))
    return clipped(steps, float(len(rates)), is_cap=True)


def table_of(category: Category, rates: FloatArray) -> Term:
    """Return a sum of numbers by level, as they are or relative to what makes them shortest."""
    first = rates / rates[0]
    parts = [Fraction(float(one)).limit_denominator(_LARGEST_SHARE) for one in first]
    whole = first * math.lcm(*(part.denominator for part in parts))
    options = [
        [(near_numbers(float(one), _ALIKE * abs(float(one))) or [float(one)])[0] for one in ratios]
        for ratios in (
            *(rates / base for base in (*rates, 1.0)),
            *([whole] if np.abs(whole).max() < _LARGEST_SHARE else []),
        )
    ]
    numbers = min(
        options, key=lambda found: sum(len(digits_of(one)) for one in (*found, rates[0] / found[0]) if one != 1)
    )
    places: dict[float, list[int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(number, []).append(place)
    cases = [
        category.condition(*own) if number == 1 else t.product(t.number(number), category.condition(*own))
        for number, own in places.items()
    ]
    return cases[0] if len(cases) == 1 else t.total(*cases)


def equal_cases(fit: Fit) -> Iterator[Form]:
    """Write cases that have the same number as one: two levels as a set, two intervals that meet as one."""
    terms, sample, numbers = list(fit.terms), fit.labels.sample, written_coefficients(fit)
    for subject in _subjects(sample, terms):
        about = [[one for one in term if _is_about(sample, one, subject)] for term in terms]
        same: dict[tuple[Product, float], list[int]] = {}
        for j, (term, own) in enumerate(zip(terms, about, strict=True)):
            if len(own) == 1 and is_condition(own[0]):
                same.setdefault((without(term, own[0]), round(float(numbers[j]), DECIMALS)), []).append(j)
        merged = {}
        for (base, number), places in same.items():
            holds = np.sum([sample.factor(about[j][0]) for j in places], axis=0) > 0
            cases = _united(subject, [np.unique(subject.codes[holds]).tolist()])
            if len(cases) < len(places):
                merged[base, number] = [(*base, case) for case in cases]
        for chosen in [[key] for key in merged] + [list(merged)]:  # one at a time, and all, which share factors
            gone = {j for key in chosen for j in same[key]}
            others = [term for j, term in enumerate(terms) if j not in gone]
            yield [*others, *(term for key in chosen for term in merged[key])], fit.limits


def numbers_of_levels(fit: Fit) -> Iterator[Form]:
    """Write coefficients by level as a number times the level, or divided by it."""
    terms, sample = list(fit.terms), fit.labels.sample
    for category in sample.categories:
        number = category.number
        rests = [tuple(one for one in term if sample.category_of(one) is not category) for term in terms]
        bases = dict.fromkeys(rest for rest, term in zip(rests, terms, strict=True) if rest != term)
        for base in bases if number is not None else ():
            assert number is not None
            others = [term for term in terms if _by_level(sample, term, base, category) is None]
            functions = [number] if sample.has_zero(number) else [number, divided(number)]
            for function in functions:
                yield [*others, (*base, function)], fit.limits
                yield [*others, base, (*base, function)], fit.limits


def started_steps(fit: Fit) -> Iterator[Form]:
    """Write started for full steps, one more, or full for started ones: they differ where a quotient is whole."""
    terms = list(fit.terms)
    for factor in factors_of(terms):
        if factor.op in STEPPED:
            other = Term(STEPPED[factor.op == STEPPED[0]], factor.parts)
            moved = [tuple(other if one == factor else one for one in term) for term in terms]
            bases = [without(term, factor) for term in terms if factor in term]
            yield [term for term in moved if term not in bases], fit.limits
            yield [*moved, *(base for base in bases if base not in moved)], fit.limits


def without_condition(fit: Fit) -> Iterator[Form]:
    """Leave out a condition that hardly a row breaks, in all terms or in one."""
    for factor in factors_of(fit.terms):
        if is_condition(factor):
            bare = [tuple(one for one in term if one != factor) for term in fit.terms]
            yield bare, fit.limits
            for j, term in enumerate(bare):
                if term not in fit.terms:
                    yield [*fit.terms[:j], term, *fit.terms[j + 1 :]], fit.limits


def dates(fit: Fit) -> Iterator[Form]:
    """Write months that follow each other, or weekdays of a short table, as an interval of dates."""
    sample = fit.labels.sample
    for date in sample.dates:
        name, days = str(date.parts[0]), sample.factor(date)
        moved = {}
        for factor in factors_of(fit.terms):
            if factor.op in ("=", "in") and set(factor.columns()) == {name}:
                holds = sample.factor(factor) > 0
                low, high = days[holds].min(), days[holds].max() + 1
                if np.array_equal(holds, (days >= low) & (days < high)):
                    first = None if low == days.min() else str(np.datetime64(int(low), "D"))
                    end = None if high > days.max() else str(np.datetime64(int(high), "D"))
                    moved[factor] = t.within(name, first, end, "left")
        if moved:
            yield [tuple(moved.get(one, one) for one in term) for term in fit.terms], fit.limits


def clipped_columns(fit: Fit) -> Iterator[Form]:
    """Write what a rule says of a column in several intervals as the column up to an end of one, or from it on."""
    for column in fit.labels.sample.thresholds:
        about = {one for one in factors_of(fit.terms) if set(one.columns()) == set(column.columns())}
        ends = {end for one in about if one.op == "within" for end in one.parts[1:3] if isinstance(end, float)}
        if len(ends) < _FEWEST_STEPS:
            continue
        bases = dict.fromkeys(tuple(one for one in term if one not in about) for term in fit.terms if about & set(term))
        others = [term for term in fit.terms if not about & set(term) and term not in bases]
        for end, is_cap in product(sorted(ends), (True, False)):
            new = [(*base, clipped(column, end, is_cap=is_cap)) for base in bases]
            yield [*others, *new], fit.limits
            yield [*others, *new, *bases], fit.limits


def sums(fit: Fit) -> Iterator[Form]:
    """Write one table for the sum of two columns that have the same: (rent + heating) * share[flat]."""
    numbers = dict(zip(map(key_of, fit.terms), written_coefficients(fit).tolist(), strict=True))
    columns = [one for one in factors_of(fit.terms) if one.op == "column"]
    for first, second in combinations(columns, 2):
        own = [term for term in fit.terms if first in term]
        pairs = [key_of((*without(term, first), second)) for term in own]
        if len(own) > 1 and all(
            numbers.get(pair) == numbers[key_of(term)] for term, pair in zip(own, pairs, strict=True)
        ):
            others = [term for term in fit.terms if term not in own and key_of(term) not in pairs]
            both = t.total(first, second)
            yield [*others, *((both, *without(term, first)) for term in own)], fit.limits


def _subjects(sample: Sample, terms: Sequence[Product]) -> Iterator[Category]:
    """Yield what tables go by: categories that the rule names, numbers with two values, and numbers that it cuts."""
    factors = factors_of(terms)
    for category in sample.categories:
        named = any(is_condition(one) and sample.category_of(one) is category for one in factors)
        if named or any(one != category.number and [*one.columns()] == [category.column] for one in factors):
            yield category
    for number in dict.fromkeys(t.column(name) for one in factors for name in one.columns()):
        if number in sample.numbers:
            values, codes = np.unique(sample.factor(number), return_inverse=True)
            if len(values) == 2 and values.tolist() != [0, 1]:
                yield Category(str(number.parts[0]), number, None, codes.ravel(), tuple(values.tolist()))
    for subject in dict.fromkeys(one.parts[0] for one in factors if is_range(one)):
        own = [one for one in factors if is_range(one) and one.parts[0] == subject]
        if isinstance(subject, str):
            parts = _intervals(own)
        elif len({one.parts for one in own}) == 1:
            parts = [Term("<", own[0].parts), Term(">=", own[0].parts)]
        else:
            continue
        codes = np.argmax([sample.factor(one) for one in parts], axis=0)
        yield Category(str(subject), None, None, codes, (*map(str, parts),), tuple(parts))


def _is_about(sample: Sample, factor: Term, subject: Category) -> bool:
    """Return whether a factor says something of the levels, or of the parts, of a column, and of nothing else."""
    if subject.cuts and subject not in sample.categories:
        return is_range(factor) and factor.parts[0] == subject.cuts[0].parts[0]
    if subject.number is not None:
        return factor.op != "within" and set(factor.columns()) == {subject.column}
    return is_condition(factor) and sample.category_of(factor) is subject


def _cases(
    sample: Sample, terms: Sequence[Product], base: Product, subject: Category
) -> tuple[list[Product], list[Term]]:
    """Return the terms that are the base times a number for each case, and these cases."""
    levels = {term: ratios for term in terms if (ratios := _by_level(sample, term, base, subject)) is not None}
    patterns: dict[tuple[float, ...], list[int]] = {}
    for k in range(len(subject)):
        patterns.setdefault(tuple(float(ratios[k]) for ratios in levels.values()), []).append(k)
    return list(levels), _united(subject, [places for pattern, places in patterns.items() if any(pattern)])


def _intervals(own: Sequence[Term]) -> list[Term]:
    """Return the intervals into which the ends of given ones cut their column."""
    name, closed = str(own[0].parts[0]), str(own[0].parts[3])
    given = {end for one in own for end in one.parts[1:3] if end is not None}
    ends = sorted(given, key=lambda end: day_of(end) if isinstance(end, str) else float(str(end)))
    return [t.within(name, low, high, closed) for low, high in pairwise([None, *ends, None])]


def _by_level(sample: Sample, term: Product, base: Product, category: Category) -> FloatArray | None:
    """Return the number by which a term is the base, for each level; None if it is not a multiple."""
    with np.errstate(all="ignore"):
        ratio = sample.column(term) / sample.column(base)
    return _by_code(category.codes, ratio, len(category))


def _by_code(codes: NDArray[np.intp], values: FloatArray, n: int) -> FloatArray | None:
    """Return the value of each code; None where it has several, or none."""
    some = np.isfinite(values)
    highest, lowest = np.full(n, -np.inf), np.full(n, np.inf)
    np.maximum.at(highest, codes[some], values[some])
    np.minimum.at(lowest, codes[some], values[some])
    if not np.isfinite(highest).all() or (highest - lowest > 1e-9 * np.maximum(abs(highest), abs(lowest))).any():
        return None
    return np.round(highest, 12)


def _united(subject: Category, groups: Iterable[Sequence[int]]) -> list[Term]:
    """Return a condition for each group of levels; for each run of neighbours in a group of intervals."""
    found = []
    for places in groups:
        breaks = np.flatnonzero(np.diff(places) > 1) + 1 if subject.cuts else np.array([], dtype=np.intp)
        found += [subject.condition(*map(int, run)) for run in np.split(np.asarray(places), breaks)]
    return found
