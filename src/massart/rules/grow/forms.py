"""Which of the forms that say the same its author would write: the one that takes fewest bits.

``fee = 0.1 * kWh + 0.05 * max(0, kWh - 200)`` can also be written as two intervals with a rate and an amount each, or
with a hinge from above. All of these give the same values. A rule costs the bits of the rows that do not agree, as in
the search, and the bits of what is written: each number its digits, each column, operation and level a word. A number
that stands in several places is written once, and so is a table: its name, and a number for each case.

The forms are made by steps, each a function from a rule to the terms of others. The best of all of them is taken as
long as there is a better one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np

from massart.rows import FloatArray, Link
from massart.rules.grow.fit import NO_LIMITS, Fit
from massart.rules.grow.sample import (
    Category,
    Product,
    Sample,
    above,
    below,
    clip_of,
    clipped,
    divided,
    interval,
    is_condition,
    threshold_of,
)
from massart.rules.grow.units import bits_of, near_numbers
from massart.rules.terms import Part, Term

Form = tuple[list[Product], Link]
"""Terms and limits of a rule, without coefficients."""

WORD = 5.0
"""Bits of a column, an operation, a level: one of thirty-two."""

_HEAD = 3.0  # words of a table beside its names: else every surcharge is a table of two
_FACTOR = 2.0  # words of a factor: 1, and a sign
_ALIKE = 1e-6  # difference of ratios that are one factor
_SURE = 3.0  # standard errors within which the digits of a coefficient are open
_TIES = 0.25  # half-widths by which labels in the middle of two roundings may have moved a coefficient
_MOST_TERMS = 60  # of a rule that is written in other ways
_MOST_CASES = 16  # of a table that is written as one of them and differences from it
_DROPPED = 4  # terms that are left out, one at a time: those without which the rows cost least


# What a rule costs.


def coefficient_errors(Z: FloatArray) -> FloatArray:
    """Return the standard errors of coefficients, given the rows that agree in units of their half-widths."""
    sizes = np.sqrt((Z**2).mean(axis=0)) + 1e-300
    inverse = np.linalg.pinv((Z / sizes).T @ (Z / sizes))
    return np.asarray(np.sqrt(np.abs(np.diag(inverse))) / sizes)


def written_coefficients(fit: Fit) -> FloatArray:
    """Return the coefficients in as few digits as the rows that agree leave each of them open."""
    rows = fit.agree
    if np.count_nonzero(rows) <= len(fit.terms):
        return fit.coef
    Z = fit.matrix[rows] / fit.labels.half_widths[rows, None]
    errors = np.maximum(_SURE * coefficient_errors(Z), _TIES / (np.sqrt((Z**2).mean(axis=0)) + 1e-300))
    numbers = (near_numbers(float(w), float(e)) for w, e in zip(fit.coef, errors, strict=True))
    return np.array([found[0] if found else w for found, w in zip(numbers, fit.coef.tolist(), strict=True)])


def in_few_digits(fit: Fit) -> Fit:
    """Return the rule with its coefficients as they are written, if the rows cost no more then."""
    short = Fit(fit.labels, fit.terms, written_coefficients(fit), fit.limits, fit.X)
    return short if short.bits.sum() <= fit.bits.sum() else fit


def cost(fit: Fit) -> float:
    """Return the bits of the rows that do not agree, and of the rule as it is written."""
    return float(fit.bits.sum()) + written_bits(fit.labels.sample, fit.terms, written_coefficients(fit), fit.limits)


def written_bits(sample: Sample, terms: Sequence[Product], coef: FloatArray, limits: Link) -> float:
    """Return the bits of what is written.

    Terms that are the same but for conditions, one of which holds in each row, are a table: what they share and the
    columns of the conditions are written once.
    """
    inner: dict[object, float] = {}
    for factor in {factor for term in terms for factor in term}:
        inner.update(_numbers(factor))
    bits = sum(inner.values())
    groups: dict[tuple[Product, frozenset[Part]], list[int]] = {}
    left, factors = _common_factors(terms, coef)
    for place in left:
        rest = tuple(factor for factor in terms[place] if not is_condition(factor))
        subjects = frozenset(factor.parts[0] for factor in terms[place] if is_condition(factor))
        groups.setdefault((rest, subjects), []).append(place)
    for (rest, subjects), places in groups.items():
        conditions = [tuple(factor for factor in terms[place] if is_condition(factor)) for place in places]
        is_table = len(places) > 1 and bool(np.all(sum(map(sample.column, conditions)) == 1))
        own = {round(float(coef[place]), 12) for place in places}
        bits += sum(map(bits_of, own if is_table else coef[places].tolist()))
        once = sum(map(_words, rest))
        if is_table:
            merged = sum(len(factor.parts) - 2 for factor in _factors(conditions) if factor.op == "in")
            bits += WORD * (_HEAD + once + len(subjects) + merged)
        else:
            bits += WORD * sum(
                bool(terms[k]) + once + sum(map(_words, c)) for k, c in zip(places, conditions, strict=True)
            )
    bits += sum(bits_of(ratio) + WORD * (_FACTOR + _words(factor)) for factor, ratio in factors)
    return bits + sum(WORD + bits_of(limit) for limit in (limits.lower, limits.upper) if np.isfinite(limit))


def _common_factors(terms: Sequence[Product], coef: FloatArray) -> tuple[list[int], list[tuple[Term, float]]]:
    """Return the terms that are left, and factors ``1 + ratio * factor``, where these are taken out of a rule."""
    places, found = list(range(len(terms))), []
    keys = [frozenset(Counter(term).items()) for term in terms]
    for factor in _factors(terms):
        own = [j for j in places if factor in terms[j]]
        bases = [frozenset(Counter(_without(terms[j], factor)).items()) for j in own]
        if not all(base in keys and keys.index(base) in places for base in bases):
            continue
        ratios = [float(coef[j] / coef[keys.index(base)]) for j, base in zip(own, bases, strict=True)]
        if own and len(own) > 1 - (len(ratios) == 1 and abs(ratios[0]) in (1, 0.01)) and np.ptp(ratios) <= _ALIKE:
            found.append((factor, round(float(np.median(ratios)), 12)))
            places = [j for j in places if j not in own]
    return places, found


def _words(factor: Term) -> int:
    """Return the columns, operations and levels of a factor; a name is the word, not the operation of reading it."""
    known = threshold_of(factor)
    if known is not None:  # what exceeds a threshold, or is missing to it
        return 1 + _words(known[0])
    if factor.op == "number":
        return 0
    if clip_of(factor) is not None:  # a longer thought than what exceeds a threshold
        return 2 + sum(_words(part) for part in factor.parts if isinstance(part, Term))
    if is_condition(factor):
        return 2 + sum(part is not None for part in factor.parts[1:]) - (factor.op == "within")
    inside = [part for part in factor.parts if isinstance(part, Term)]
    return 1 + sum(map(_words, inside))


def _numbers(factor: Term) -> dict[object, float]:
    """Return the bits of the numbers inside a factor, each with what it is compared with."""
    if factor.op == "within":
        name, *ends, _ = factor.parts
        return {(name, end): bits_of(end) for end in ends if end is not None}
    found: dict[object, float] = {}
    for part in factor.parts:
        if isinstance(part, Term) and part.op == "number" and factor.op not in ("=", "in"):
            columns = tuple(factor.columns())
            found[(columns[0] if columns else None, part.parts[0])] = bits_of(float(str(part.parts[0])))
        elif isinstance(part, Term):
            found.update(_numbers(part))
        elif isinstance(part, float) and factor.op in ("^", "round"):
            found[(factor.op, part)] = bits_of(part)
    return found


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
                if other is not None and bits < least - 1:
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
    rows = fit.agree & (labels.y > limits.lower) & (labels.y < limits.upper)
    if limits == NO_LIMITS:
        rows = fit.agree
    while terms and np.count_nonzero(rows) > 2 * len(terms):
        X = labels.sample.matrix(terms)
        if not np.isfinite(X).all():
            return None
        Z = X[rows] / labels.half_widths[rows, None]
        sizes = np.sqrt((Z**2).mean(axis=0)) + 1e-300
        coef, _, rank, _ = np.linalg.lstsq(Z / sizes, labels.y[rows] / labels.half_widths[rows], rcond=1e-9)
        if rank < len(terms):
            return None
        other = Fit(labels, tuple(terms), coef / sizes, limits, X)
        kept = written_coefficients(other) != 0
        if kept.all():
            return in_few_digits(other)
        terms = [term for term, keep in zip(terms, kept, strict=True) if keep]
    return None


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
    for factor in _factors(terms):
        known = threshold_of(factor) or clip_of(factor)
        if known is None:
            continue
        number, threshold = known[:2]
        own = [term for term in terms if factor in term]
        others = [term for term in terms if factor not in term]
        bases = [_without(term, factor) for term in own]
        turned: Iterable[Term] = (above(number, threshold), clipped(number, threshold, is_cap=True))
        for other in turned:
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


def _fewer_hinges(fit: Fit) -> Iterator[Form]:
    """Write one hinge for two on the same number: together they rise as one whose threshold is their mean."""
    terms = list(fit.terms)
    hinges = [(term, one, known) for term in terms for one in term if (known := threshold_of(one)) is not None]
    for (term, one, first), (other, its, second) in combinations(hinges, 2):
        weights = [fit.coefficient(term), fit.coefficient(other)]
        base = _without(term, one)
        if first[::2] != second[::2] or base != _without(other, its) or not sum(weights):
            continue
        middle = (weights[0] * first[1] + weights[1] * second[1]) / sum(weights)
        error = 4 * fit.labels.typical / (abs(sum(weights)) * _size(fit, base))
        for k in near_numbers(middle, error):
            hinge = (above if first[2] else below)(first[0], k)
            yield [*(one for one in terms if one not in (term, other)), (*base, hinge)], fit.limits


def _tables(fit: Fit) -> Iterator[Form]:
    """Write coefficients that differ by level or by interval as a table of them all, or as differences from one."""
    terms, sample = list(fit.terms), fit.labels.sample
    subjects = dict.fromkeys(factor.parts[0] for term in terms for factor in term if is_condition(factor))
    for subject in subjects:
        everywhere: list[list[Product]] = []
        rests = [tuple(one for one in term if not (is_condition(one) and one.parts[0] == subject)) for term in terms]
        for base in dict.fromkeys(rest for rest, term in zip(rests, terms, strict=True) if rest != term):
            group, cases = _cases(sample, terms, base, subject)
            others = [term for term in terms if term not in group]
            if len(cases) < 2:
                continue
            table = [(*base, case) for case in cases]
            everywhere.append(table)
            yield [*others, *table], fit.limits
            for k in range(len(cases) if len(cases) <= _MOST_CASES else 0):
                yield [*others, base, *table[:k], *table[k + 1 :]], fit.limits
        if len(everywhere) > 1:  # one table for all that it multiplies
            bases = {rest for rest, term in zip(rests, terms, strict=True) if rest != term}
            others = [term for term, rest in zip(terms, rests, strict=True) if rest not in bases]
            yield [*others, *(term for table in everywhere for term in table)], fit.limits


def _cases(
    sample: Sample, terms: Sequence[Product], base: Product, subject: object
) -> tuple[list[Product], list[Term]]:
    """Return the terms that are the base times a number for each case of a column, and these cases."""
    own = [one for term in terms for one in term if is_condition(one) and one.parts[0] == subject]
    if any(one.op == "within" for one in own):
        group = [
            term
            for term in terms
            if tuple(one for one in term if not (one.op == "within" and one.parts[0] == subject)) == base
        ]
        return group, _intervals(sample, own)
    category = next((one for one in map(sample.category_of, own) if one is not None), None)
    if category is None:
        return [], []
    levels = {term: ratios for term in terms if (ratios := _by_level(sample, term, base, category)) is not None}
    patterns: dict[tuple[float, ...], list[int]] = {}
    for k in range(len(category)):
        patterns.setdefault(tuple(float(ratios[k]) for ratios in levels.values()), []).append(k)
    cases = [category.condition(*places) for pattern, places in patterns.items() if any(pattern)]
    return list(levels), cases


def _intervals(sample: Sample, own: Sequence[Term]) -> list[Term]:
    """Return the intervals into which the ends of given ones cut their column."""
    is_day = any(isinstance(end, str) for one in own for end in one.parts[1:3])
    from massart.rules.terms import column, day_of

    ends = {
        float(day_of(end)) if isinstance(end, str) else float(str(end))
        for one in own
        for end in one.parts[1:3]
        if end is not None
    }
    edges = [-np.inf, *sorted(ends), np.inf]
    return [interval(column(str(own[0].parts[0])), low, high, is_day) for low, high in pairwise(edges)]


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


def _numbers_of_levels(fit: Fit) -> Iterator[Form]:
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


def _limits_of_columns(fit: Fit) -> Iterator[Form]:
    """Write a limit of all as a limit of a column: min(7550, pay) times a rate, max(0, days - 3) times pay."""
    terms, lower, upper = list(fit.terms), fit.limits.lower, fit.limits.upper
    if len(terms) == 1 and len(terms[0]) == 1:
        (number,), w = terms[0], float(fit.coef[0])
        for limit, other, is_cap in ((upper, lower, w > 0), (lower, upper, w < 0)):
            if np.isfinite(limit) and not np.isfinite(other):
                for threshold in near_numbers(limit / w, abs(fit.labels.typical / w)):
                    yield [(clipped(number, threshold, is_cap=is_cap),)], NO_LIMITS
    if len(terms) == 2 and lower == 0 and upper == np.inf:
        for long, short in (terms, terms[::-1]):
            extra = [one for one in long if one not in short]
            if len(extra) == 1 and len(long) == len(short) + 1 and extra[0].op in ("column", "-"):
                threshold = -fit.coefficient(short) / fit.coefficient(long)
                error = 4 * fit.labels.typical / (abs(fit.coefficient(long)) * _size(fit, short))
                for k in (*near_numbers(threshold, error), threshold):
                    yield [(*short, above(extra[0], k))], NO_LIMITS


def _parts(factor: Term) -> tuple[object, ...]:
    """Return what a hinge or a limit of a number is made of."""
    known = threshold_of(factor) or clip_of(factor)
    return () if known is None else known[:2]


def _size(fit: Fit, term: Product) -> float:
    return max(float(np.abs(fit.labels.sample.column(term)).mean()), 1e-300)


def _factors(terms: Iterable[Product]) -> list[Term]:
    return list(dict.fromkeys(factor for term in terms for factor in term))


def _without(term: Product, factor: Term) -> Product:
    place = term.index(factor)
    return (*term[:place], *term[place + 1 :])


STEPS: tuple[Callable[[Fit], Iterator[Form]], ...] = (
    _without_one,
    _turned_hinges,
    _fewer_hinges,
    _tables,
    _numbers_of_levels,
    _limits_of_columns,
)
"""The ways in which a rule is written anew."""
