"""Steps that write the conditions of a rule anew: tables by level or interval, differences, sets, dates, limits.

Each yields the terms and limits of other rules; see :mod:`~massart.rules.grow.forms`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np

from massart.rows import FloatArray, Link
from massart.rules import terms as t
from massart.rules.grow.fit import NO_LIMITS, Fit
from massart.rules.grow.sample import Category, Product, Sample, clipped, divided, is_condition
from massart.rules.grow.units import DECIMALS, near_numbers
from massart.rules.grow.written import Form, factors_of, without, written_coefficients
from massart.rules.terms import Term

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
            cases = _united(sample, subject, [about[j][0] for j in places])
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


def without_condition(fit: Fit) -> Iterator[Form]:
    """Leave out a condition that hardly a row breaks."""
    for factor in factors_of(fit.terms):
        if is_condition(factor):
            yield [tuple(one for one in term if one != factor) for term in fit.terms], fit.limits


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


def limits_of_intervals(fit: Fit) -> Iterator[Form]:
    """Write a limit for an interval in which the rule has one value."""
    for term, w in zip(fit.terms, fit.coef.tolist(), strict=True):
        if len(term) == 1 and term[0].op == "within":
            others = [one for one in fit.terms if one != term]
            free = [tuple(f for f in one if f.op != "within" or f.parts[0] != term[0].parts[0]) for one in others]
            for lower, upper in ((fit.limits.lower, w), (w, fit.limits.upper)):
                if lower < upper and others:
                    for value in near_numbers(w, 2 * fit.labels.typical)[:1]:
                        limits = Link(lower, value) if upper == w else Link(value, upper)
                        yield list(dict.fromkeys(free)), limits


def limits_by_case(fit: Fit) -> Iterator[Form]:
    """Write the smaller of rates times a column and amounts as rates times the smaller of the column and a limit."""
    factors = factors_of(fit.terms)
    if fit.terms != tuple((one,) for one in factors) or len(factors) != 1 or factors[0].op not in ("min", "max"):
        return
    (factor,) = factors
    sides = [_by_case(part) for part in factor.parts if isinstance(part, Term)]
    for rates, amounts in (sides, sides[::-1]) if len(sides) == 2 else ():
        rests = {rest for _, rest in rates.values()}
        if rates.keys() != amounts.keys() or any(rest for _, rest in amounts.values()) or len(rests) != 1:
            continue
        (rest,) = rests
        if len(rest) == 1:
            limits = [amounts[case][0] / rates[case][0] for case in rates]
            error = max(2 * fit.labels.typical / abs(rate) for rate, _ in rates.values())
            for k in near_numbers(float(np.median(limits)), error):
                clip = clipped(rest[0], k, is_cap=factor.op == "min")
                yield [(clip, *case) for case in rates], NO_LIMITS


def _by_case(total: Term) -> dict[Product, tuple[float, Product]]:
    """Return, for the conditions of each part of a sum, its number and the rest."""
    found: dict[Product, tuple[float, Product]] = {}
    for part in total.parts if total.op == "+" else (total,):
        factors = part.factors if isinstance(part, Term) else ()
        number = float(np.prod([float(str(one.parts[0])) for one in factors if one.op == "number"]))
        rest = tuple(one for one in factors if one.op != "number" and not is_condition(one))
        found[tuple(one for one in factors if is_condition(one))] = number, rest
    return found


def sums(fit: Fit) -> Iterator[Form]:
    """Write one table for the sum of two columns that have the same: (rent + heating) * share[flat]."""
    numbers = dict(zip(map(_key, fit.terms), written_coefficients(fit).tolist(), strict=True))
    columns = [one for one in factors_of(fit.terms) if one.op == "column"]
    for first, second in combinations(columns, 2):
        own = [term for term in fit.terms if first in term]
        pairs = [_key((*without(term, first), second)) for term in own]
        if len(own) > 1 and all(
            numbers.get(pair) == numbers[_key(term)] for term, pair in zip(own, pairs, strict=True)
        ):
            others = [term for term in fit.terms if term not in own and _key(term) not in pairs]
            both = t.total(first, second)
            yield [*others, *((both, *without(term, first)) for term in own)], fit.limits


def _key(term: Product) -> frozenset[tuple[Term, int]]:
    return frozenset(Counter(term).items())


def _subjects(sample: Sample, terms: Sequence[Product]) -> Iterator[Category | str]:
    """Yield what tables go by: categories that the rule names, numbers with two values, and columns with intervals."""
    factors = factors_of(terms)
    for category in sample.categories:
        if any(is_condition(one) and sample.category_of(one) is category for one in factors):
            yield category
    for number in dict.fromkeys(t.column(name) for one in factors for name in one.columns()):
        if number in sample.numbers:
            values, codes = np.unique(sample.factor(number), return_inverse=True)
            if len(values) == 2 and values.tolist() != [0, 1]:
                yield Category(str(number.parts[0]), number, None, codes.ravel(), tuple(values.tolist()))
    yield from dict.fromkeys(str(one.parts[0]) for one in factors if one.op == "within")


def _is_about(sample: Sample, factor: Term, subject: Category | str) -> bool:
    """Return whether a factor says something of the levels, or of the intervals, of a column, and of nothing else."""
    if isinstance(subject, str):
        return factor.op == "within" and factor.parts[0] == subject
    if subject.number is not None:
        return factor.op != "within" and set(factor.columns()) == {subject.column}
    return is_condition(factor) and sample.category_of(factor) is subject


def _cases(
    sample: Sample, terms: Sequence[Product], base: Product, subject: Category | str
) -> tuple[list[Product], list[Term]]:
    """Return the terms that are the base times a number for each case, and these cases."""
    if isinstance(subject, str):
        group = [term for term in terms if tuple(one for one in term if not _is_about(sample, one, subject)) == base]
        return group, _intervals([one for one in factors_of(terms) if _is_about(sample, one, subject)])
    levels = {term: ratios for term in terms if (ratios := _by_level(sample, term, base, subject)) is not None}
    patterns: dict[tuple[float, ...], list[int]] = {}
    for k in range(len(subject)):
        patterns.setdefault(tuple(float(ratios[k]) for ratios in levels.values()), []).append(k)
    return list(levels), [subject.condition(*places) for pattern, places in patterns.items() if any(pattern)]


def _intervals(own: Sequence[Term]) -> list[Term]:
    """Return the intervals into which the ends of given ones cut their column."""
    name, closed = str(own[0].parts[0]), str(own[0].parts[3])
    given = {end for one in own for end in one.parts[1:3] if end is not None}
    ends = sorted(given, key=lambda end: t.day_of(end) if isinstance(end, str) else float(str(end)))
    return [t.within(name, low, high, closed) for low, high in pairwise([None, *ends, None])]


def _by_level(sample: Sample, term: Product, base: Product, category: Category) -> FloatArray | None:
    """Return the number by which a term is the base, for each level; None if it is no such multiple."""
    with np.errstate(all="ignore"):
        ratio = sample.column(term) / sample.column(base)
    some = np.isfinite(ratio)
    highest, lowest = np.full(len(category), -np.inf), np.full(len(category), np.inf)
    np.maximum.at(highest, category.codes[some], ratio[some])
    np.minimum.at(lowest, category.codes[some], ratio[some])
    if not np.isfinite(highest).all() or (highest - lowest > 1e-9 * np.maximum(abs(highest), abs(lowest))).any():
        return None
    return np.round(highest, 12)


def _united(sample: Sample, subject: Category | str, cases: Sequence[Term]) -> list[Term]:
    if not isinstance(subject, str):
        holds = np.sum([sample.factor(case) for case in cases], axis=0) > 0
        return [subject.condition(*np.unique(subject.codes[holds]).tolist())]
    ends = {case.parts[1]: case.parts[2] for case in cases}
    found = []
    for low in ends:
        if low in ends.values() and low is not None:
            continue
        high = ends[low]
        while high is not None and high in ends:
            high = ends[high]
        found.append(t.within(subject, low, high, str(cases[0].parts[3])))
    return found
