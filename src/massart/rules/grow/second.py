"""A second rule among the rows that do not agree, and what tells where it holds.

Rows that a rule gets wrong may follow another one: the larger of two fees, a cap by category, half the price for some
customers at some hours. The other rule is fitted on these rows alone. Then one asks what parts the rows of the two: the
larger or the smaller of both values, a category, a range of a number, or two of these at once. Wrong values that follow
a rule of their own ("discount forgotten") are spread over the rows of the first, and nothing parts them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from massart.rows import BoolArray, FloatArray
from massart.rules import terms as t
from massart.rules.grow.evidence import Change, score_test, weights_of
from massart.rules.grow.fit import SLACK, Fit
from massart.rules.grow.sample import Product, interval, is_condition, without, written
from massart.rules.grow.simplify import pruned
from massart.rules.grow.units import digits_of, near_numbers, simplest
from massart.rules.grow.windows import maximum_sum, numbers_of
from massart.rules.grow.written import in_short_numbers
from massart.rules.terms import Term

_FEWEST = 0.01  # share of the rows that a second rule wins at least
_SURE = 8  # rows
_DIGITS = 7  # of a number in a term
_MORE = 3  # terms that are tried beside the plain ones
_SHORT = 12  # terms of a rule beside which a second one is looked for


def second_changes(fit: Fit, focus: Sequence[Term], candidates: Sequence[Product], Z: FloatArray) -> Iterator[Change]:
    """Yield a rule and another one, fitted to the rows that do not agree, with what parts their rows."""
    labels, sample = fit.labels, fit.labels.sample
    fit = Fit(labels, fit.terms, fit.coef)
    rest = labels.usable & ~fit.agree
    is_parted = any(_is_of_numbers(factor) for term in fit.terms for factor in term)
    if is_parted or len(fit.terms) > _SHORT or rest.sum() < 4 * _SURE:
        return
    few = labels.only(rest)
    plain: list[Product] = [(), *((one,) for one in focus if one in sample.numbers)]
    ways = [list(fit.terms), plain]
    ways += [[*category.by_level(())] for category in sample.categories if category.is_text and len(category) <= _SHORT]
    for terms in ways:
        found = few.fit(terms, cold=True)
        if found is not None:
            found = _with_one_more(pruned(found), candidates, Z)
            yield from joined(fit, Fit(labels, found.terms, found.coef))


def _with_one_more(fit: Fit, candidates: Sequence[Product], Z: FloatArray) -> Fit:
    """Return a rule with one more term, if that costs less."""
    tested = score_test(fit, Z, weights_of(fit))
    for j in np.argsort(-tested, kind="stable")[:_MORE].tolist():
        more = fit.labels.fit([*fit.terms, candidates[j]], [*fit.coef, 0.0], cold=True)
        if more is not None and more.total < fit.total:
            fit = pruned(more)
    return fit


def joined(fit: Fit, other: Fit) -> Iterator[Change]:
    """Yield a rule and another one where something parts their rows: which is larger, or conditions."""
    first, second = fit.agree, _agree(other)
    gains = (second & ~first).astype(float) - (first & ~second)
    if np.count_nonzero(gains > 0) < max(_SURE, _FEWEST * fit.labels.n):
        return
    plain = not any(map(_is_of_numbers, (factor for term in [*fit.terms, *other.terms] for factor in term)))
    for op in ("max", "min") if plain else ():
        if _parts(gains, _chooses(op, fit, other)):
            yield from _extremes(op, *_refined(op, fit, other))
    conditions = _conditions(fit, gains)
    if conditions:
        names = dict.fromkeys([*fit.terms, *other.terms])
        change = {_and(term, conditions): other.coefficient(term) - fit.coefficient(term) for term in names}
        yield [*fit.terms, *change], [*fit.coef, *change.values()]


def _is_of_numbers(factor: Term) -> bool:
    """Return whether a factor compares numbers."""
    return factor.op in ("within", ">=", "<")


def _and(term: Product, conditions: Sequence[Term]) -> Product:
    return (*term, *(condition for condition in conditions if condition not in term))


def _agree(fit: Fit) -> BoolArray:
    return np.asarray(fit.labels.usable & (np.abs(fit.residuals) <= SLACK * fit.labels.half_widths))


def _parts(gains: FloatArray, there: BoolArray) -> bool:
    """Return whether rows of a second rule are won there, and hardly one of the first is lost."""
    won, lost = np.count_nonzero(there & (gains > 0)), np.count_nonzero(there & (gains < 0))
    return bool(won >= _SURE and won > 4 * lost and won > 0.5 * np.count_nonzero(gains > 0))


def _conditions(fit: Fit, gains: FloatArray) -> list[Term]:
    """Return one or two conditions that part the rows of a second rule from those of the first."""
    sample = fit.labels.sample
    chosen: list[Term] = []
    inside = np.ones(len(sample), dtype=bool)
    for _ in range(2):
        best: tuple[float, Term] | None = None
        for condition in _possible(fit, np.where(inside, gains, 0.0)):
            total = float(gains[inside & (sample.factor(condition) > 0)].sum())
            if condition not in chosen and (best is None or total > best[0]):
                best = total, condition
        if best is None or best[0] <= (0 if not chosen else float(gains[inside].sum()) + _SURE):
            break
        chosen.append(best[1])
        inside &= sample.factor(best[1]) > 0
    return chosen if _parts(gains, inside) else []


def _possible(fit: Fit, gains: FloatArray) -> Iterator[Term]:
    """Yield the levels of each category, and the range of each number, that win most."""
    sample = fit.labels.sample
    for category in sample.categories:
        sums = np.bincount(category.codes, gains, minlength=len(category))
        places = np.flatnonzero(sums > 0)
        if 0 < len(places) < len(category):
            yield category.condition(*places.tolist())
    for number in (*sample.thresholds, *numbers_of(fit)):
        values = sample.factor(number)
        order = np.argsort(values, kind="stable")
        values, ordered = values[order], gains[order]
        starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
        _, first, end = maximum_sum(np.add.reduceat(ordered, starts))
        distinct = values[starts]
        is_date = number in sample.dates
        low = -math.inf if first == 0 else _limit(distinct, first, is_date)
        high = math.inf if end == len(distinct) else _limit(distinct, end, is_date)
        n_ends = math.isfinite(low) + math.isfinite(high)
        if low < high and (n_ends == 1 or (n_ends == 2 and number.op == "column")):
            yield interval(number, low, high, is_date)


def _limit(values: FloatArray, place: int, is_date: bool) -> float:
    return float(values[place]) if is_date else simplest(float(values[place - 1]), float(values[place]))


def _chooses(op: str, fit: Fit, other: Fit) -> BoolArray:
    """Return where the larger, or smaller, of two rules is the other one."""
    return np.asarray(other.predicted > fit.predicted if op == "max" else other.predicted < fit.predicted)


def _refined(op: str, fit: Fit, other: Fit) -> tuple[Fit, Fit]:
    """Return both rules in short numbers, each from the rows in which it counts."""
    labels, rules = fit.labels, [fit, other]
    for _ in range(2):
        there = _chooses(op, *rules)
        for k, rows in enumerate((~there, there)):
            few = labels.only(rows)
            found = few.fit(rules[k].terms, rules[k].coef, cold=True)
            if found is not None:
                short = in_short_numbers(found)
                rules[k] = Fit(labels, short.terms, short.coef)
    return rules[0], rules[1]


def _extremes(op: str, fit: Fit, other: Fit) -> Iterator[Change]:
    """Yield the larger or smaller of two rules as a term; what both have stands beside it."""
    error = 4 * fit.labels.typical
    common, mine, theirs = {}, {}, {}
    for term in dict.fromkeys([*fit.terms, *other.terms]):
        a, b = fit.coefficient(term), other.coefficient(term)
        size = float(np.abs(fit.labels.sample.column(term)).mean())
        if abs(a - b) * size <= error:
            common[term] = a
        else:
            mine[term], theirs[term] = a, b
    common, mine, theirs = ({term: w for term, w in own.items() if w} for own in (common, mine, theirs))
    if mine and theirs:
        yield from _of_factors(op, common, mine, theirs)
    if not common and (mine.keys() == {()} or theirs.keys() == {()}):
        return  # a limit of the whole rule
    if any(len(digits_of(w)) > _DIGITS for w in (*mine.values(), *theirs.values())):
        return  # numbers in a term are not fitted again
    yield [*common, (Term(op, (_sum(mine), _sum(theirs))),)], [*common.values(), 1.0]


def _of_factors(
    op: str, common: dict[Product, float], mine: dict[Product, float], theirs: dict[Product, float]
) -> Iterator[Change]:
    """Yield rates times the larger of two numbers: 3.1 * max(kg, volume / 5000) * (zone = A) + ..."""
    x, z = (_shared(list(own)) for own in (mine, theirs))
    if not x or not z:
        return
    rates = {_rest(term, x): w for term, w in mine.items()}
    others = {_rest(term, z): w for term, w in theirs.items()}
    if rates.keys() != others.keys():
        return
    ratios = np.array([others[rest] / rates[rest] for rest in rates])
    ratio = float(np.median(ratios))
    if ratio <= 0 or np.ptp(ratios) > 1e-3 * ratio or min(rates.values()) < 0 < max(rates.values()):
        return
    numbers = near_numbers(ratio, 2e-3 * ratio) or [ratio]
    if len(digits_of(numbers[0])) > 4 and 1 / numbers[0] != round(1 / numbers[0]):
        return
    second = written(z) if numbers[0] == 1 else t.product(t.number(numbers[0]), *written(z).factors)
    if numbers[0] < 1 and abs(1 / numbers[0] - round(1 / numbers[0])) < 1e-6:
        second = Term("/", (written(z), t.number(round(1 / numbers[0]))))
    if min(rates.values()) < 0:
        op = "min" if op == "max" else "max"
    factor = Term(op, (written(x), second))
    yield [*common, *((factor, *rest) for rest in rates)], [*common.values(), *rates.values()]


def _shared(terms: Sequence[Product]) -> Product:
    """Return the numbers that all products have."""
    shared = [factor for factor in terms[0] if not is_condition(factor)]
    return tuple(factor for factor in shared if all(factor in term for term in terms))


def _rest(term: Product, factors: Product) -> Product:
    rest: Product | None = term
    for factor in factors:
        rest = None if rest is None else without(rest, factor)
    assert rest is not None
    return rest


def _sum(weights: dict[Product, float]) -> Term:
    parts = []
    for term, w in weights.items():
        factors = [written(term)] if term else []
        parts.append(t.product(*([] if w == 1 and term else [t.number(w)]), *factors))
    if not parts:
        return t.number(0)
    return parts[0] if len(parts) == 1 else t.total(*parts)
