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
from massart.rules.grow.evidence import Change, score_test, weights_of
from massart.rules.grow.fit import Fit
from massart.rules.grow.numbers import in_short_numbers
from massart.rules.grow.sample import Product, Sample, interval, total_of
from massart.rules.grow.settings import Settings
from massart.rules.grow.simplify import pruned
from massart.rules.grow.windows import limit_between, maximum_sum, numbers_of
from massart.rules.terms import Term


def second_changes(fit: Fit, focus: Sequence[Term], candidates: Sequence[Product], Z: FloatArray) -> Iterator[Change]:
    """Yield a rule and another one, fitted to the rows that do not agree, with what parts their rows."""
    labels, sample = fit.labels, fit.labels.sample
    fit = Fit(labels, fit.terms, fit.coef)
    rest = labels.usable & ~fit.agree
    is_parted = any(_is_of_numbers(factor) for term in fit.terms for factor in term)
    if is_parted or len(fit.terms) > labels.settings.few or rest.sum() < labels.settings.part:
        return
    yield from _with_surcharge(fit, rest)
    few = labels.only(rest)
    plain: list[Product] = [(), *((one,) for one in focus if one in sample.numbers)]
    ways = [list(fit.terms), plain]
    ways += [
        [*category.by_level(())]
        for category in sample.categories
        if category.is_text and len(category) <= labels.settings.few
    ]
    for terms in ways:
        found = few.fit(terms, cold=True)
        if found is not None:
            found = _with_one_more(pruned(found), candidates, Z)
            yield from joined(fit, Fit(labels, found.terms, found.coef))


def _with_surcharge(fit: Fit, rest: BoolArray) -> Iterator[Change]:
    """Yield the rule and one that is higher by what most of the other rows are off by, with what parts their rows."""
    steps, counts = np.unique(np.round(fit.residuals[rest] / (2 * fit.labels.typical)), return_counts=True)
    if counts.max() >= fit.labels.settings.sure:
        more = 2 * fit.labels.typical * float(steps[np.argmax(counts)])
        terms = list(dict.fromkeys([*fit.terms, ()]))
        coef = np.array([fit.coefficient(term) + (more if term == () else 0.0) for term in terms])
        yield from joined(fit, Fit(fit.labels, tuple(terms), coef))


def _with_one_more(fit: Fit, candidates: Sequence[Product], Z: FloatArray) -> Fit:
    """Return a rule with one more term, if that costs less."""
    tested = score_test(fit, Z, weights_of(fit))
    for j in np.argsort(-tested, kind="stable")[: fit.labels.settings.tries].tolist():
        more = fit.labels.fit([*fit.terms, candidates[j]], [*fit.coef, 0.0], cold=True)
        if more is not None and more.total < fit.total:
            fit = pruned(more)
    return fit


def uneven_parts(sample: Sample, agree: BoolArray, settings: Settings) -> list[Term]:
    """Return conditions under which clearly fewer rows agree: levels, and ranges of a column; the clearest first."""
    share = float(agree.mean())
    deviation = np.sqrt(max(share * (1 - share), 1e-4))
    found: list[tuple[float, int, Term]] = []

    def add(n: int, n_agree: float, condition: Term) -> None:
        distance = (share * n - n_agree) / deviation / np.sqrt(n)
        if distance > settings.clear:
            found.append((-distance, len(found), condition))

    for category in sample.categories:
        n, right = np.bincount(category.codes), np.bincount(category.codes, agree)
        for k in np.flatnonzero((n >= settings.part) & (right < settings.uneven * n)):
            add(int(n[k]), float(right[k]), category.condition(int(k)))
    for column in (*sample.numbers, *sample.dates):
        if column.op != "column":
            continue
        values = sample.factor(column)
        order = np.argsort(values, kind="stable")
        _, first, end = maximum_sum(settings.uneven - agree[order].astype(float))
        if settings.part <= end - first < 0.95 * len(order):
            low = -np.inf if first == 0 else float(values[order[first]])
            high = np.inf if end == len(order) else float(values[order[end]])
            if low < high and np.isfinite([low, high]).any():
                part = interval(column, low, high, column in sample.dates)
                add(end - first, float(agree[order[first:end]].sum()), part)
    return [condition for _, _, condition in sorted(found, key=lambda one: one[:2])]


def joined(fit: Fit, other: Fit) -> Iterator[Change]:
    """Yield a rule and another one where something parts their rows: which is larger, or conditions."""
    first, second = fit.agree, other.agree
    gains = (second & ~first).astype(float) - (first & ~second)
    if np.count_nonzero(gains > 0) < max(fit.labels.settings.sure, 0.01 * fit.labels.n):
        return
    plain = not any(map(_is_of_numbers, (factor for term in [*fit.terms, *other.terms] for factor in term)))
    for op in ("max", "min") if plain else ():
        if _parts(gains, _chooses(op, fit, other), fit.labels.settings.sure):
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


def _parts(gains: FloatArray, there: BoolArray, sure: int) -> bool:
    """Return whether rows of a second rule are won there, and hardly one of the first is lost."""
    won, lost = np.count_nonzero(there & (gains > 0)), np.count_nonzero(there & (gains < 0))
    return bool(won >= sure and won > 4 * lost and won > 0.5 * np.count_nonzero(gains > 0))


def _conditions(fit: Fit, gains: FloatArray) -> list[Term]:
    """Return one or two conditions that part the rows of a second rule from those of the first.

    The first of two may hold for more rows of the first rule than of the second one: both count alike then.
    """
    sample, sure = fit.labels.sample, fit.labels.settings.sure
    won, lost = int(np.count_nonzero(gains > 0)), max(1, int(np.count_nonzero(gains < 0)))
    best: tuple[float, list[Term]] = (0.0, [])
    for weights in (gains, np.where(gains > 0, gains / won, gains / lost)):
        chosen: list[Term] = []
        inside = np.ones(len(sample), dtype=bool)
        for values in (weights, gains):
            left = np.where(inside, values, 0.0)
            options = [one for one in _possible(fit, left) if one not in chosen]
            if not options:
                break
            totals = [float(left @ sample.factor(one)) for one in options]
            chosen.append(options[int(np.argmax(totals))])
            inside = inside & (sample.factor(chosen[-1]) > 0)
            total = float(gains[inside].sum())
            if total > best[0] + sure * bool(best[1]) and _parts(gains, inside, sure):
                best = total, list(chosen)
    return best[1]


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
        low = -math.inf if first == 0 else limit_between(sample, number, distinct, first)
        high = math.inf if end == len(distinct) else limit_between(sample, number, distinct, end)
        n_ends = math.isfinite(low) + math.isfinite(high)
        if low < high and (n_ends == 1 or (n_ends == 2 and number.op == "column")):
            yield interval(number, low, high, number in sample.dates)


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
    """Yield the larger or smaller of two rules as a term; what both have stands next to it."""
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
    if not common and (mine.keys() == {()} or theirs.keys() == {()}):
        return  # a limit of the whole rule
    yield [*common, (Term(op, (total_of(mine), total_of(theirs))),)], [*common.values(), 1.0]
