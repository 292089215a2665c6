"""Tiers, brackets and hinges: windows along a column in which the same terms have other coefficients.

In a window of neighbouring rows the terms of the rule are fitted again. Where the new coefficients cost fewer bits than
the old ones, and for how long, is a maximum sum of neighbours: that is the interval. Where the two rules meet is the
threshold of a hinge, which needs fewer numbers than the interval and is tried first. This is the dearest evidence, so
that it is looked for along those columns only on which rows agree least evenly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from massart.rows import FloatArray
from massart.rules import terms as t
from massart.rules.grow.evidence import STEPPED, Change
from massart.rules.grow.fit import Fit
from massart.rules.grow.sample import (
    Product,
    Sample,
    above,
    below,
    clipped,
    interval,
    is_condition,
    is_range,
    key_of,
    without,
)
from massart.rules.grow.units import near_numbers, simplest
from massart.rules.terms import Term

_WIDE, _NARROW = 7, 28  # windows are one of this many parts of the rows, and at both ends narrow ones, too
_WORTH_A_LOOK = 0.15  # of the most that a row costs: windows whose rows cost less on average are left alone
_EDGE = 0.005  # share of rows, besides two, that an interval may leave out at the end of a column


@dataclass(frozen=True, eq=False)
class _Step:
    """An interval in which another rule costs fewer bits."""

    gain: float
    column: Term
    low: float
    high: float
    inside: Fit


def window_changes(fit: Fit) -> Iterator[Change]:
    """Yield the rule with hinges or conditions where a part of a column has other coefficients."""
    steps = [step for column in _columns(fit) for step in _steps(fit, column)]
    sample = fit.labels.sample
    dated = fit.labels.settings.number_bits  # a tariff changes with a date, rather than with a number of rows
    for step in sorted(steps, key=lambda step: -step.gain - dated * (step.column in sample.dates))[
        : fit.labels.settings.tries
    ]:
        names = dict.fromkeys([*fit.terms, *step.inside.terms])
        change = {term: step.inside.coefficient(term) - fit.coefficient(term) for term in names}
        if step.column not in sample.dates:
            yield from _hinges(fit, step, change)
        if step.column.op == "column" or math.isfinite(step.low) != math.isfinite(step.high):
            condition = interval(step.column, step.low, step.high, step.column in sample.dates)
            also = [(*term, condition) for term in change]
            yield [*fit.terms, *also], [*fit.coef, *change.values()]


def maximum_sum(gains: FloatArray) -> tuple[float, int, int]:
    """Return the largest sum of neighbours, and where they begin and end.

    Examples
    --------
    >>> maximum_sum(np.array([-1.0, 2.0, -0.5, 3.0, -4.0]))
    (4.5, 1, 4)
    """
    sums = np.concatenate([[0.0], np.cumsum(gains)])
    end = int(np.argmax(sums - np.minimum.accumulate(sums)))
    first = int(np.argmin(sums[: end + 1]))
    return float(sums[end] - sums[first]), first, end


def _columns(fit: Fit) -> list[Term]:
    """Return the columns along which the cost of rows is least even."""
    labels, sample = fit.labels, fit.labels.sample
    found = [*sample.thresholds, *numbers_of(fit)]
    if len(found) <= labels.settings.windows:
        return found
    mean = float(fit.bits[labels.usable].mean())

    def uneven(column: Term) -> float:
        bits = fit.bits[_order(fit, column)]
        return max(maximum_sum(bits - mean)[0], maximum_sum(mean - bits)[0])

    return sorted(found, key=uneven, reverse=True)[: labels.settings.windows]


def numbers_of(fit: Fit) -> list[Term]:
    """Return the numbers that a rule makes: its products, its steps, and the sum and the number of its columns.

    Discounts begin at an amount, which is quantity times price, or at a number of persons, which is that of adults and
    of children, and tax at what is left of the income.
    """
    sample = fit.labels.sample
    bare = [tuple(one for one in term if not is_condition(one)) for term in fit.terms]
    found = [t.product(*term) for term in bare if len(term) > 1 or (term and term[0].op in STEPPED)]
    plain = {term[0]: w for term, w in zip(fit.terms, fit.coef.tolist(), strict=True) if len(term) == 1 and w}
    plain = {one: w for one, w in plain.items() if one in sample.numbers}
    if 2 <= len(plain) <= fit.labels.settings.tries + 1:
        found += [_total(plain, fit), t.total(*plain)]
    return list(dict.fromkeys(found))


def _total(plain: dict[Term, float], fit: Fit) -> Term:
    """Return a sum of columns, relative to the first of them, in short numbers."""
    first = next(iter(plain))
    total = first
    for one, w in list(plain.items())[1:]:
        size = float(np.abs(fit.labels.sample.factor(one)).mean())
        ratio = w / plain[first]
        error = 4 * fit.labels.typical / abs(plain[first]) / size + 1e-3 * abs(ratio)
        ratio = (near_numbers(ratio, error) or [ratio])[0]
        part = one if abs(ratio) == 1 else t.product(t.number(abs(ratio)), one)
        total = Term("+" if ratio > 0 else "-", (total, part))
    return total


def anchor(number: Term) -> Product:
    """Return the product whose coefficient is that of a number: of a sum, its first column."""
    while number.op in ("+", "-") and isinstance(number.parts[0], Term) and number.parts[0].op != "number":
        number = number.parts[0]
    return number.factors


def _order(fit: Fit, column: Term) -> NDArray[np.intp]:
    order = np.argsort(fit.labels.sample.factor(column), kind="stable")
    return order[fit.labels.usable[order]]


def _steps(fit: Fit, column: Term) -> list[_Step]:
    """Return the best two intervals of a column."""
    labels, sample = fit.labels, fit.labels.sample
    order = _order(fit, column)
    n, values = len(order), sample.factor(column)[order]
    terms = _terms(fit, column)
    size, tiny = max(n // _WIDE, 4 * len(terms) + 8), max(n // _NARROW, 3 * len(terms) + 6)
    if 2 * size > n:
        return []
    windows = {(0, tiny), (n - tiny, n), (n - size, n)}
    windows |= {(first, first + size) for first in range(0, n - size + 1, max(size // 2, 1))}
    found = []
    for first, end in sorted(windows):
        if float(fit.bits[order[first:end]].mean()) < _WORTH_A_LOOK * labels.cap:
            continue
        rows = np.zeros(len(sample), dtype=bool)
        rows[order[first:end]] = True
        local = labels.only(rows).fit(terms, limits=fit.limits)
        if local is None:
            continue
        there = Fit(labels, local.terms, local.coef, fit.limits)
        gain, start, stop = maximum_sum((fit.bits - there.bits)[order])
        while 0 < start < n and values[start] == values[start - 1]:
            start -= 1
        while 0 < stop < n and values[stop] == values[stop - 1]:
            stop += 1
        found.append((gain, start, stop, there))
    steps = []
    for gain, start, stop, there in sorted(found, key=lambda one: -one[0])[:2]:
        if gain < 2 * labels.settings.number_bits:
            continue
        slack = max(2.0, _EDGE * n)
        low = -math.inf if start <= slack else limit_between(sample, column, values, start)
        high = math.inf if stop >= n - slack else limit_between(sample, column, values, stop)
        steps.append(_Step(gain, column, low, high, there))
    return steps


def limit_between(sample: Sample, column: Term, values: FloatArray, place: int) -> float:
    """Return a limit between two neighbouring values; of dates, the later one."""
    if column in sample.dates:
        return float(values[place])
    return simplest(float(values[place - 1]), float(values[place]))


def _terms(fit: Fit, column: Term) -> list[Product]:
    """Return what is fitted in a window: the terms without their intervals, the column, and what it multiplies."""
    sample = fit.labels.sample
    terms = [term for term in fit.terms if not any(map(is_range, term))]
    more: list[Product] = [()]
    if column not in sample.dates:
        rest = [without(term, column) for term in terms]
        more = [anchor(column), (), *(one for one in rest if one is not None)]
    for term in more:
        if len(terms) <= fit.labels.settings.few and term not in terms and not _is_spanned(sample, terms, term):
            terms.append(term)
    return terms


def _is_spanned(sample: Sample, terms: list[Product], term: Product) -> bool:
    """Return whether a term is a sum of others."""
    if not terms:
        return False
    X, v = sample.matrix(terms), sample.column(term)
    X = X / (np.sqrt((X**2).mean(axis=0)) + 1e-300)
    left = v - X @ np.linalg.lstsq(X, v, rcond=1e-10)[0]
    return float(left @ left) < 1e-12 * float(v @ v)


def _hinges(fit: Fit, step: _Step, change: dict[Product, float]) -> Iterator[Change]:
    """Yield the rule with hinges whose threshold is where the old and the new coefficients meet, or the interval ends.

    They are compared as they stand, and the best are yielded, with coefficients to start from.
    """
    column, labels, sample = step.column, fit.labels, fit.labels.sample
    low, high = np.quantile(sample.factor(column), [0.002, 0.998])
    thresholds = [k for k in _crossings(fit, step, change) if low < k < high]
    rests = [without(term, column) for term in fit.terms]
    bases = list(dict.fromkeys([(), *(one for one in rests if one is not None)]))[: fit.labels.settings.tries + 1]
    ways = [[base] for base in bases] + ([[base for base in bases if base]] if len(bases) > 2 else [])
    slopes = [value for term, value in change.items() if without(term, column) is not None]
    middle = float(np.median(slopes)) if slopes else 0.0
    tried: list[tuple[float, int, Change]] = []
    own = {key_of((*base, *anchor(column))): 0.0 for base in bases}
    for term, value in change.items():
        if value and key_of(term) in own:
            own[key_of(term)] = value
    linear = sample.matrix(fit.terms) @ fit.coef

    def add(values: FloatArray, n_more: int, terms: list[Product], coef: list[float]) -> None:
        clipped_values = np.clip(values, fit.limits.lower, fit.limits.upper)
        cost = float(labels.bits(labels.y - clipped_values).sum()) + labels.settings.number_bits * n_more
        tried.append((cost, len(tried), (terms, coef)))

    for threshold, is_cap in product(thresholds, (True, False)):
        factor = clipped(column, threshold, is_cap=is_cap)
        terms = [term if rest is None else (*rest, factor) for term, rest in zip(fit.terms, rests, strict=True)]
        if any(factor in term for term in terms):
            add(sample.matrix(terms) @ fit.coef, 1, terms, list(fit.coef))
    for threshold, is_above in product(thresholds, (True, False)):
        hinge = above(column, threshold) if is_above else below(column, threshold)
        for way in ways:
            start = [(own[key_of((*base, *anchor(column)))] or middle) * (1 if is_above else -1) for base in way]
            also = [(*base, hinge) for base in way]
            add(linear + sample.matrix(also) @ start, 1 + len(way), [*fit.terms, *also], [*fit.coef, *start])
    for _, _, found in sorted(tried, key=lambda one: one[:2])[: fit.labels.settings.tries]:
        yield found


def _crossings(fit: Fit, step: _Step, change: dict[Product, float]) -> list[float]:
    """Return where the two rules meet, also in few digits, and the ends of the interval."""
    column, found = step.column, {end for end in (step.low, step.high) if math.isfinite(end)}
    slope, level = change.get(anchor(column), 0.0), change.get((), 0.0)
    if slope:
        meet, error = -level / slope, 4 * fit.labels.typical / abs(slope)
        found |= {simplest(meet - share * error, meet + share * error) for share in (4.0, 1.0, 0.25, 0.05)} | {meet}
    sample = fit.labels.sample
    rests = {term: rest for term in fit.terms if change.get(term) and (rest := without(term, column)) is not None}
    turning = sorted(rests, key=lambda term: -abs(change[term]) * float(np.abs(sample.column(term)).mean()))
    for term in turning[: fit.labels.settings.tries + 1]:
        slope, level = change[term], change.get(rests[term], 0.0)
        if level:
            meet = -level / slope
            found |= {simplest(meet - e * abs(meet), meet + e * abs(meet)) for e in (1e-2, 1e-3, 1e-4)}
    return sorted(found)
