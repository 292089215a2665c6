"""Equivalent forms of a rule: steps that write it anew, and the walk to the form that costs least.

Each step is a function from a rule to the terms and limits of others. The best of all of them is taken as long as there
is a better one (:func:`~massart.rules.grow.written.cost`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from massart.rows import FloatArray, Link
from massart.rules import terms as t
from massart.rules.grow.cases import (
    clipped_columns,
    dates,
    equal_cases,
    factor_tables,
    numbers_of_levels,
    started_steps,
    sums,
    tables,
    without_condition,
)
from massart.rules.grow.evidence import STEPPED
from massart.rules.grow.fit import NO_LIMITS, Fit
from massart.rules.grow.numbers import in_few_digits, written_coefficients
from massart.rules.grow.sample import (
    Product,
    above,
    below,
    clip_of,
    clipped,
    excess,
    factors_of,
    is_condition,
    threshold_of,
)
from massart.rules.grow.units import DECIMALS, near_numbers, simplest
from massart.rules.grow.written import Form, cost, without
from massart.rules.terms import Term

_MOST_TERMS = 60  # of a rule that is written in other ways
_DROPPED = 4  # terms that are left out, one at a time: those without which the rows cost least
_NARROW = 0.03  # share of the rows on a segment that is a line of its own


# The walk to the shortest form.


def shortest_form(fit: Fit) -> Fit:
    """Return the rule in the form that costs least."""
    if fit.labels.scale != "identity" or len(fit.terms) > _MOST_TERMS:
        return fit
    best, least, seen = fit, cost(fit), set[object]()
    while True:
        found = best
        for step in STEPS:
            for terms, limits in step(best):
                key = frozenset(terms), limits
                if key in seen or len(terms) > _MOST_TERMS:
                    continue
                seen.add(key)
                other = rewritten(best, terms, limits)
                bits = np.inf if other is None else cost(other)
                if other is not None and bits < least - 0.5:
                    found, least = other, bits
        if found is best:
            return best
        best = found


def rewritten(fit: Fit, terms: Sequence[Product], limits: Link) -> Fit | None:
    """Return other terms, with least squares of the rows that agree; without those whose coefficient is 0 then."""
    labels = fit.labels
    terms = list(dict.fromkeys(terms))
    if not labels.sample.constant and () in terms:
        return None
    if len(terms) == len(fit.terms):  # each may stand for the one in its place, and more rows may agree
        fit = max(fit, Fit(labels, tuple(terms), fit.coef, limits), key=lambda one: one.n_agree)
    rows = fit.agree if limits == NO_LIMITS else fit.inside & (labels.y > limits.lower) & (labels.y < limits.upper)
    while terms and np.count_nonzero(rows) > 2 * len(terms):
        X = labels.sample.matrix(terms)
        if not np.isfinite(X).all():
            return None
        Z = X[rows] / labels.half_widths[rows, None]
        sizes = np.sqrt((Z**2).mean(axis=0)) + 1e-300
        coef, _, rank, _ = np.linalg.lstsq(Z / sizes, labels.y[rows] / labels.half_widths[rows], rcond=1e-9)
        if rank < len(terms):  # one of them is a sum of others
            terms = _independent(Z / sizes, terms)
            continue
        other = Fit(labels, tuple(terms), coef / sizes, limits, X)
        kept = written_coefficients(other) != 0
        if kept.all():
            return in_few_digits(other)
        terms = [term for term, keep in zip(terms, kept, strict=True) if keep]
    return None


def _independent(Z: FloatArray, terms: list[Product]) -> list[Product]:
    """Return terms without the last one that is a sum of others."""
    rank = np.linalg.matrix_rank(Z, tol=1e-9 * np.linalg.norm(Z))
    for j in reversed(range(len(terms))):
        if np.linalg.matrix_rank(np.delete(Z, j, axis=1), tol=1e-9 * np.linalg.norm(Z)) == rank:
            return [*terms[:j], *terms[j + 1 :]]
    return terms[:-1]


# Steps.


def _without_one(fit: Fit) -> Iterator[Form]:
    """Leave out a term."""
    labels, terms = fit.labels, list(fit.terms)
    changed = (fit.residuals + w * labels.sample.column(term) for term, w in zip(terms, fit.coef, strict=True))
    bits = [float(labels.bits(residuals).sum()) for residuals in changed]
    for j in np.argsort(bits, kind="stable")[:_DROPPED]:
        yield [term for k, term in enumerate(terms) if k != j], fit.limits


def _turned_hinges(fit: Fit) -> Iterator[Form]:
    """Write max(0, x - k) for max(0, k - x), and x and min(x, k) for one another."""
    terms = list(fit.terms)
    for factor in factors_of(terms):
        known = threshold_of(factor) or clip_of(factor)
        if known is None:
            continue
        number, threshold = known[:2]
        own = [term for term in terms if factor in term]
        others = [term for term in terms if factor not in term]
        bases = [without(term, factor) for term in own]
        for other in (above(number, threshold), clipped(number, threshold, is_cap=True)):
            if other != factor:
                new = [(*base, other) for base in bases]
                yield [*others, *new], fit.limits
                yield [*others, *new, *((*base, number) for base in bases)], fit.limits
                yield [*others, *new, *((*base, number) for base in bases), *bases], fit.limits
                yield [*others, *new, *bases], fit.limits
        yield from _clipped(fit, number, threshold, own, others)


def _clipped(
    fit: Fit, number: Term, threshold: float, own: Sequence[Product], others: Sequence[Product]
) -> Iterator[Form]:
    """Write min(x, k) or max(x, k) for x everywhere, in place of hinges and limits; k in fewer digits, too."""
    slopes = (
        w * fit.labels.sample.column(tuple(one for one in term if number not in (one, *_parts(one))))
        for term, w in zip(fit.terms, fit.coef, strict=True)
        if any(number in (one, *_parts(one)) for one in term)
    )
    steepest = max(float(np.abs(slope).mean()) for slope in slopes)
    for k in dict.fromkeys((threshold, *near_numbers(threshold, 4 * fit.labels.typical / steepest))):
        for is_cap in (True, False):
            factor = clipped(number, k, is_cap=is_cap)
            new = [tuple(factor if one == number else one for one in term) for term in others]
            yield new, NO_LIMITS
            if any(clip_of(one) for term in own for one in term):
                moved = [tuple(factor if clip_of(one) == (number, threshold) else one for one in term) for term in own]
                yield [*new, *moved], fit.limits
                yield [*new, *moved], NO_LIMITS


def corners(fit: Fit) -> Iterator[Form]:
    """Write lines on intervals of a column, hinges among them, as hinges where these lines meet.

    They may be lines in a function of the column: ``4 * max(0, ceil(gb) - 5)``. Segments with few rows, or on which the
    rule is not a line, are left out: what is between two lines is a corner.
    """
    factors = factors_of(fit.terms)
    for column in fit.labels.sample.numbers:
        if any(one.op == "within" and _is_cut(one, column) for one in factors):
            yield from _bent(fit, column, column)
            for number in factors:
                if number.op in ("ceil", "floor") and set(number.columns()) == set(column.columns()):
                    yield from _bent(fit, column, number)


def _bent(fit: Fit, column: Term, number: Term) -> Iterator[Form]:
    values = fit.labels.sample.factor(column)
    cut = [term for term in fit.terms if any(_is_cut(one, column) for one in term)]
    ends = {end for term in cut for one in term if _is_cut(one, column) for end in _ends(one)}
    inner = sorted(end for end in ends if values.min() < end < values.max())
    segments = list(pairwise([float(values.min()), *inner, float(values.max())]))
    is_line = np.array([np.mean((values >= low) & (values < high)) > _NARROW for low, high in segments])
    lines: dict[Product, FloatArray] = {}
    kept: dict[Product, None] = {}
    for term, w in zip(fit.terms, fit.coef, strict=True):
        if term not in cut and not {column, number} & set(term):
            kept[term] = None
            continue
        base = tuple(one for one in term if not set(one.columns()) & set(column.columns()))
        own = lines.setdefault(base, np.zeros((len(segments), 2)))
        for k, (low, high) in enumerate(segments):
            line = _line(term, column, number, low, high)
            is_line[k] &= line is not None
            own[k] += 0.0 if line is None else w * line
    if np.count_nonzero(is_line) < 2:
        return
    numbers = fit.labels.sample.factor(number)
    for end, hinge in ((0, above), (-1, below)):  # the line at one end, and hinges from there
        new = dict(kept)
        for base, own in lines.items():
            size, (level, slope) = _size(fit, base), own[is_line][end]
            if abs(level) * size > fit.labels.typical:
                new[base] = None
            if abs(slope) * size * float(np.ptp(numbers)) > fit.labels.typical:
                new[(*base, number)] = None
            for (level, slope), (next_level, next_slope) in pairwise(own[is_line]):
                turn = float(next_slope - slope)
                if abs(turn) * size * float(np.ptp(numbers)) <= fit.labels.typical:
                    continue
                meet, error = -float(next_level - level) / turn, 4 * fit.labels.typical / (abs(turn) * size)
                if numbers.min() < meet < numbers.max():
                    new[(*base, hinge(number, simplest(meet - error, meet + error)))] = None
        yield list(new), fit.limits


def _is_cut(factor: Term, column: Term) -> bool:
    """Return whether a factor is an interval of a column, or a hinge on it."""
    known = threshold_of(factor)
    return known[0] == column if known is not None else factor.op == "within" and factor.parts[0] == column.parts[0]


def _ends(factor: Term) -> tuple[float, ...]:
    known = threshold_of(factor)
    if known is not None:
        return (known[1],)
    low, high = factor.parts[1:3]
    return -np.inf if low is None else float(str(low)), np.inf if high is None else float(str(high))


def _line(term: Product, column: Term, number: Term, low: float, high: float) -> FloatArray | None:
    """Return level and slope, along a number, of a term between two ends of a column; None if it is not a line."""
    lines, is_line = [], True
    for factor in term:
        known = threshold_of(factor)
        if factor == number:
            lines.append(np.array([0.0, 1.0]))
        elif known is not None and known[0] == column == number:
            is_there = known[1] <= low if known[2] else known[1] >= high
            lines.append((np.array([-known[1], 1.0]) if known[2] else np.array([known[1], -1.0])) * is_there)
        elif factor.op == "within" and _is_cut(factor, column):
            first, last = _ends(factor)
            lines.append(np.array([1.0, 0.0]) * (first <= low and high <= last))
        elif set(factor.columns()) & set(column.columns()):
            is_line = False
    result = np.array([1.0, 0.0])
    for line in lines:
        is_line &= not (result[1] and line[1])
        result = np.array([result[0] * line[0], result[0] * line[1] + result[1] * line[0]])
    return result if is_line or not result.any() else None


def _hinges_of_extremes(fit: Fit) -> Iterator[Form]:
    """Write the larger of two as one of them and what the other exceeds it by: pay, and half of it above 40 hours.

    What a sum exceeds another one by is a hinge where these differ by multiples of two products.
    """
    for term in fit.terms:
        for factor in term:
            sums = [_weights(arm) for arm in factor.parts] if factor.op in ("max", "min") else []
            if len(sums) != 2 or not all(sums):
                continue
            rest = without(term, factor)
            others = [one for one in fit.terms if one != term]
            yield from (([*others, *((*rest, *one) for one in own)], fit.limits) for own in sums)
            for one, other in (sums, sums[::-1]):
                for hinge in _excesses(fit, other, one):
                    yield [*others, *((*rest, *part) for part in one), (*rest, *hinge)], fit.limits


def _extremes_of_columns(fit: Fit) -> Iterator[Form]:
    """Write the smaller of two sums with the same rates by case as these rates times the smaller of two columns."""
    sample = fit.labels.sample
    for term in fit.terms:
        for factor in term:
            sums = [_weights(arm) for arm in factor.parts] if factor.op in ("max", "min") else []
            bares = [{tuple(one for one in part if not is_condition(one)) for part in own} for own in sums]
            if len(sums) != 2 or not all(sums) or any(len(bare) != 1 for bare in bares):
                continue
            with np.errstate(all="ignore"):
                first, second = (
                    sample.matrix(list(own)) @ np.array(list(own.values())) / sample.column(next(iter(bare)))
                    for own, bare in zip(sums, bares, strict=True)
                )
            others = [one for one in fit.terms if one != term]
            for rates, amounts, (up,), (over,) in ((first, second, *bares), (second, first, *bares[::-1])):
                own = sums[0] if rates is first else sums[1]
                if len(up) != 1 or not rates.all() or np.isnan(amounts).any():
                    continue
                k, least = float(np.median(amounts / rates)), float(np.abs(rates).min())
                error = 2 * fit.labels.typical / (least * _size(fit, over))
                for size in near_numbers(k, error)[:2] if np.ptp(amounts / rates) <= 2 * error else ():
                    limit = t.product(*([] if size == 1 and over else [t.number(size)]), *over)
                    lower = Term(factor.op, (up[0], limit))
                    moved = [(lower, *(one for one in part if one != up[0])) for part in own]
                    yield [*others, *((*without(term, factor), *part) for part in moved)], fit.limits


def _weights(arm: object) -> dict[Product, float]:
    """Return the products of a sum, with their numbers."""
    assert isinstance(arm, Term)
    found: dict[Product, float] = {}
    for part in arm.parts if arm.op == "+" else (arm,):
        assert isinstance(part, Term)
        size = float(np.prod([float(str(one.parts[0])) for one in part.factors if one.op == "number"]))
        product = tuple(one for one in part.factors if one.op != "number")
        found[product] = found.get(product, 0.0) + size
    return found


def _excesses(fit: Fit, more: dict[Product, float], less: dict[Product, float]) -> Iterator[Product]:
    """Yield the hinge by which a sum exceeds another one, if their difference has two products but for conditions."""
    sample = fit.labels.sample
    change = {term: more.get(term, 0.0) - less.get(term, 0.0) for term in dict.fromkeys([*more, *less])}
    change = {term: w for term, w in change.items() if abs(w) * _size(fit, term) > fit.labels.typical}
    bare = list(dict.fromkeys(tuple(one for one in term if not is_condition(one)) for term in change))
    if len(bare) != 2 or any(one.op in ("max", "min") for term in bare for one in term):
        return
    gap = sample.matrix(list(change)) @ np.array(list(change.values()))
    X = sample.matrix(bare)
    weights = np.linalg.lstsq(X, gap, rcond=1e-12)[0]
    if np.abs(gap - X @ weights).max() > fit.labels.typical or weights.min() > 0 or not weights.all():
        return
    up, down = (bare[int(j)] for j in (np.argmax(weights), np.argmin(weights)))
    ratio, error = -float(weights.min() / weights.max()), 4 * fit.labels.typical / float(np.abs(gap).max())
    shared = [one for one in up if one in down]
    left, right = (tuple(one for one in term if one not in shared) for term in (up, down))
    for k in near_numbers(ratio, error * ratio)[:2]:
        if left and right:
            yield (*shared, excess(t.product(*left), t.product(t.number(k), *right)))
        elif left and len(left) == 1:
            yield (*shared, above(left[0], k))
        elif right and len(right) == 1:
            yield (*shared, below(right[0], round(1 / k, DECIMALS)))


def _decimal_logarithms(fit: Fit) -> Iterator[Form]:
    """Write decimal logarithms, as decibels have them."""
    for factor in factors_of(fit.terms):
        if factor.op == "log":
            decimal = Term("/", (factor, Term("log", (t.number(10),))))
            yield [tuple(decimal if one == factor else one for one in term) for term in fit.terms], fit.limits


def _limits_of_columns(fit: Fit) -> Iterator[Form]:
    """Write a limit of all as a limit of a column: min(7550, pay) times a rate, max(0, days - 3) times pay."""
    yield from _limits_of(fit)
    for terms, limits in tables(fit) if fit.limits != NO_LIMITS else ():
        other = rewritten(fit, terms, limits)
        yield from () if other is None else _limits_of(other)


def _limits_of(fit: Fit) -> Iterator[Form]:
    terms, lower, upper = list(fit.terms), fit.limits.lower, fit.limits.upper
    if len(terms) == 1 and len(terms[0]) == 1:
        (number,), w = terms[0], float(fit.coef[0])
        for limit, other, is_cap in ((upper, lower, w > 0), (lower, upper, w < 0)):
            if np.isfinite(limit) and not np.isfinite(other):
                for threshold in near_numbers(limit / w, abs(fit.labels.typical / w)):
                    yield [(clipped(number, threshold, is_cap=is_cap),)], NO_LIMITS
    for number in factors_of(terms) if lower == 0 and upper == np.inf else ():
        long = [term for term in terms if number in term]
        short = [without(term, number) for term in long]
        if number.op not in ("column", "-", *STEPPED) or sorted(short, key=str) != sorted(
            set(terms) - set(long), key=str
        ):
            continue
        thresholds = []
        for base, term in zip(short, long, strict=True):
            threshold = -fit.coefficient(base) / fit.coefficient(term)
            error = 4 * fit.labels.typical / (abs(fit.coefficient(term)) * _size(fit, base))
            thresholds.append((*near_numbers(threshold, error)[:1], threshold))
        for option in (0, -1):
            cuts = [one[option] for one in thresholds]
            yield [(*base, above(number, cut)) for base, cut in zip(short, cuts, strict=True)], NO_LIMITS
            if len(short) > 1 and all(len(base) == 1 and is_condition(base[0]) for base in short):
                rates = [fit.coefficient(term) for term in long]
                yield [(_by_case(short, rates), excess(number, _by_case(short, cuts)))], NO_LIMITS


def _by_case(cases: Sequence[Product], numbers: Sequence[float]) -> Term:
    """Return a table: a number for each case."""
    return t.total(*(t.product(t.number(round(w, DECIMALS)), *case) for case, w in zip(cases, numbers, strict=True)))


def _parts(factor: Term) -> tuple[object, ...]:
    """Return what a hinge or a limit of a number is made of."""
    known = threshold_of(factor) or clip_of(factor)
    return () if known is None else known[:2]


def _size(fit: Fit, term: Product) -> float:
    return max(float(np.abs(fit.labels.sample.column(term)).mean()), 1e-300)


STEPS: tuple[Callable[[Fit], Iterator[Form]], ...] = (
    _without_one,
    without_condition,
    dates,
    _turned_hinges,
    corners,
    clipped_columns,
    tables,
    equal_cases,
    numbers_of_levels,
    started_steps,
    _hinges_of_extremes,
    _extremes_of_columns,
    _decimal_logarithms,
    sums,
    factor_tables,
    _limits_of_columns,
)
"""The ways in which a rule is written anew."""
