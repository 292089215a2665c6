"""What the rows that do not agree say is missing: cheap evidence that ranks changes of a rule before any is fitted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import numpy as np

from massart.rows import FloatArray
from massart.rules import terms as t
from massart.rules.grow.fit import Fit, Labels
from massart.rules.grow.sample import (
    Category,
    Product,
    Sample,
    divided,
    excess,
    is_condition,
    is_range,
    without,
)
from massart.rules.grow.units import unit_of
from massart.rules.terms import Term

Change = tuple[list[Product], "list[float] | None"]
"""Terms of another rule, and coefficients to start from, if there are any."""

STEPS = (1, 1.2, 1.5, 2, 2.4, 2.5, 3, 3.6, 4, 4.5, 5, 6, 7, 7.5, 8, 9)
"""What people count in, times a power of ten: per started hour (60 minutes), 200 m, dozen, 1,500 characters."""


STEPPED = ("ceil", "floor")
_PERCENT = (1, 100, 1200)  # 1 + rate, 1 + rate / 100, 1 + rate / 1200
_FINE, _FINEST = 500, 50_000  # steps in the range of a column, of any length that people count in, and of 1 or 5
_GROWTH = 7.0  # the largest logarithm of compound interest
_SQUARE = 2  # times that a column is in a product: with more, a series of powers stands for any curve, within rounding


def pool(labels: Labels, focus: Sequence[Term]) -> list[Product]:
    """Return candidates that are made of X alone: of each column, and of pairs of the columns in focus.

    On the scale of logarithms these are the logarithms of factors: columns, growth, levels.
    """
    sample = labels.sample
    near = [one for one in focus if one in sample.numbers]
    found: list[Product] = [(), *((one,) for one in sample.numbers)]
    if labels.scale == "log":
        found += [(Term("log", (one,)),) for one in sample.numbers if sample.is_positive(one)]
        found += [(factor,) for factor in _growth(sample, near)]
        found += [(Term("log", (both,)),) for both in _both(sample, near)]
    else:
        found += [(one,) for one in sample.dates]
        for one in sample.numbers:
            found += [(function,) for function in _functions(sample, one, one in focus)]
        found += combinations(near, 2)
        for a, b in combinations(near, 2):
            difference = sample.factor(a) - sample.factor(b)
            if (
                sample.most_levels and difference.min() < 0 < difference.max()
            ):  # else it is what it exceeds by, everywhere
                found += [(excess(a, b),), (excess(b, a),)]
            for x, z in ((a, b), (b, a)):
                if not sample.has_zero(z):
                    found += [(x, divided(z)), (x, t.power(z, -2))]
                    if sample.most_levels:
                        found += [(Term(step, (Term("/", (x, z)),)),) for step in STEPPED]
        for z in near if sample.most_levels else ():  # shares of a total
            others = [one for one in near if one != z and not sample.has_zero(z)]
            found += [(*pair, divided(z)) for pair in combinations(others, 2)]
    for category in sample.categories:
        if len(category) <= labels.settings.each:
            found += [(condition,) for condition in category.conditions]
    return [one for one in dict.fromkeys(found) if not one or np.ptp(sample.column(one))]  # as (), the constant


def _functions(sample: Sample, one: Term, is_near: bool) -> Iterator[Term]:
    """Yield functions of a column: powers, a logarithm, started and full steps."""
    values = sample.factor(one)
    yield t.power(one, 2)
    if values.min() > 0:
        yield from (divided(one), Term("log", (one,)))
    if values.min() >= 0:
        yield t.power(one, 0.5)
    if is_near and one in sample.thresholds:
        yield from _started(values, one)


def _started(values: FloatArray, one: Term) -> Iterator[Term]:
    """Yield the started and the full steps of a number, of each length that people count in; fine ones only in tens."""
    unit, reach = unit_of(values), float(np.ptp(values))
    if reach == 0:  # among the rows of a branch, say
        return
    for exponent in range(math.floor(math.log10(reach / _FINEST)), math.floor(math.log10(reach)) + 1):
        for lead in STEPS:
            step = round(lead * 10.0**exponent, 9)
            least = reach / (_FINEST if lead in (1, 5) else _FINE)
            if max(least, (1 + 1e-9) * unit) <= step < reach / 3:
                quotient = one if step == 1 else Term("/", (one, t.number(step)))
                yield from (Term("ceil", (quotient,)), Term("floor", (quotient,)))


def _growth(sample: Sample, near: Sequence[Term]) -> Iterator[Term]:
    """Yield logarithms of growth factors, and of them to a power that is a column: compound interest."""
    for rate in near:
        for factor in growth_factors(sample, rate):
            logarithm = Term("log", (factor,))
            yield logarithm
            for time in near:
                if time != rate:
                    yield t.product(time, logarithm)
                    yield from _annuity(sample, factor, time)


def _both(sample: Sample, near: Sequence[Term]) -> Iterator[Term]:
    """Yield sums and differences of two columns that may be factors: ``feed / (animals * (last - first weight))``."""
    for pair in combinations(near, 2):
        more, less = sorted(pair, key=lambda one: -float(sample.factor(one).sum()))
        for both in (Term("-", (more, less)), t.total(more, less)):
            if sample.is_positive(both):
                yield both


def _annuity(sample: Sample, factor: Term, time: Term) -> Iterator[Term]:
    """Yield the logarithms of an annuity: of ``rate / (1 - 1 / (1 + rate)^n)`` and ``((1 + rate)^n - 1) / rate``."""
    grown = Term("^", (factor, time))
    for one in (Term("-", (t.number(1), Term("/", (t.number(1), grown)))), Term("-", (grown, t.number(1)))):
        if factor.op == "+" and sample.factor(one).min() > 0 and np.log(sample.factor(grown)).max() < _GROWTH:
            yield Term("log", (one,))


def _compound(sample: Sample, term: Product) -> Iterator[Product]:
    """Yield a product with compound in place of simple interest: a rate that grows with a whole number of times."""
    for rate, time in permutations([one for one in term if one in sample.numbers], 2):
        times, rest = sample.factor(time), without(term, t.product(rate, time))
        if rest is not None and times.min() >= 0 and (times == np.round(times)).all():
            for factor in growth_factors(sample, rate):
                if np.abs(np.log(sample.factor(factor)) * times).max() < _GROWTH:
                    yield (*rest, t.power(factor, time))


def growth_factors(sample: Sample, rate: Term) -> Iterator[Term]:
    """Yield 1 + rate, 1 - rate, and the same with the rate in percent, where these are positive and not huge."""
    values = sample.factor(rate)
    for size in _PERCENT:
        for sign in (1, -1):
            if (sign * values / size).min() > -0.95 and np.abs(values / size).max() < 1e3:
                part = rate if size == 1 else Term("/", (rate, t.number(size)))
                yield Term("+" if sign > 0 else "-", (t.number(1), part))


def focus_of(labels: Labels, y: FloatArray, most: int) -> list[Term]:
    """Return the columns whose order goes with that of some labels, most of all first."""
    rows, sample = labels.usable, labels.sample

    def centred(values: FloatArray) -> FloatArray:
        _, codes, counts = np.unique(values[rows], return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - counts / 2)[codes.ravel()]
        return np.asarray(ranks - ranks.mean())

    of_y = centred(y)
    found = {}
    for one in (*sample.numbers, *sample.dates):
        ranks = centred(sample.factor(one))
        found[one] = abs(float(ranks @ of_y)) / max(float(np.sqrt((ranks @ ranks) * (of_y @ of_y))), 1e-300)
    return sorted(found, key=lambda one: -found[one])[:most]


def weights_of(fit: Fit) -> FloatArray:
    """Return the weights of the rows in the smooth score, at the size of the median residual."""
    labels = fit.labels
    z = fit.residuals / labels.half_widths
    epsilon = max(float(np.median(np.abs(z[labels.usable]))), 1.0)
    with np.errstate(all="ignore"):
        return np.asarray(labels.usable / (z * z + epsilon * epsilon) / labels.half_widths**2)


def score_test(fit: Fit, Z: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the squared partial correlation of each candidate with the residuals: one matrix product for all."""
    X = fit.labels.sample.matrix(fit.terms)
    sizes = np.sqrt(np.maximum(np.einsum("ij,ij->j", X, X), 1e-300))
    X = X / sizes
    A = X * weights[:, None]
    G = A.T @ X
    G.flat[:: len(G) + 1] += 1e-10 * np.trace(G) / max(len(G), 1)
    beyond = Z - X @ np.linalg.solve(G, A.T @ Z)
    weighted = beyond * weights[:, None]
    left = np.einsum("ij,ij->j", weighted, beyond)
    whole = np.einsum("i,ij,ij->j", weights, Z, Z)
    gain = (weighted.T @ fit.residuals) ** 2 / np.maximum(left, 1e-300)
    return np.where(left > 1e-9 * whole, gain, 0.0) / max(float(weights @ fit.residuals**2), 1e-300)


def votes(fit: Fit, Z: FloatArray, rng: np.random.Generator, pairs: int) -> FloatArray:
    """Return, for each candidate, the pairs of rows whose residuals are the same multiple of it.

    Rows that agree do not vote. Of the votes those are taken off that a wider window leads one to expect by chance.
    """
    labels = fit.labels
    off = np.flatnonzero(labels.usable & ~fit.agree)
    if len(off) < 8:
        return np.zeros(Z.shape[1])
    i, j = rng.choice(off, pairs), rng.choice(off, pairs)
    i, j = i[i != j], j[i != j]
    r, h = fit.residuals, labels.half_widths
    with np.errstate(all="ignore"):
        widths = h[i, None] / np.abs(Z[i]) + h[j, None] / np.abs(Z[j])
        gaps = np.abs(r[i, None] / Z[i] - r[j, None] / Z[j]) / widths
        same, near = np.nansum(gaps <= 1, axis=0), np.nansum(gaps <= 3, axis=0)
    return np.asarray(same - (near - same) / 2)


def grown_terms(fit: Fit) -> list[Product]:
    """Return the terms of a rule times one more column, or divided by one."""
    sample = fit.labels.sample
    found: list[Product] = []
    for bare in dict.fromkeys(
        tuple(one for one in term if not is_condition(one)) for term in fit.terms[: fit.labels.settings.few]
    ):
        if len(bare) > 1 and sample.most_levels:
            number = t.product(*bare)
            found += [(step,) for step in _started(sample.factor(number), number)]
    for term in _small(fit):
        found += _compound(sample, term)
        for one in term if 1 < len(term) < fit.labels.settings.tries else ():
            if one in sample.thresholds:
                rest = without(term, one) or ()
                found += [(*rest, step) for step in _started(sample.factor(one), one)]
        for one in sample.numbers if term else ():
            inverse, most = divided(one), 1 if sample.is_flag(one) else _SQUARE
            if not {inverse, t.power(one, -2)}.intersection(term) and term.count(one) < most:
                found.append(tuple(sorted((*term, one), key=str)))
            if one not in term and not sample.has_zero(one):
                found.append(tuple(sorted((*term, inverse), key=str)))
    return [term for term in dict.fromkeys(found) if term not in fit.terms]


def _small(fit: Fit) -> list[Product]:
    simple = [term for term in fit.terms if len(term) < fit.labels.settings.tries and not any(map(is_range, term))]
    return simple[: fit.labels.settings.each]


def single_changes(
    fit: Fit, candidates: Sequence[Product], Z: FloatArray, n_old: int, rng: np.random.Generator
) -> Iterator[Change]:
    """Yield the rule with one more term, and with a grown term in place of the one that it comes from."""
    settings, sample = fit.labels.settings, fit.labels.sample
    usable = np.isfinite(Z).all(axis=0)
    Z = np.where(usable, np.where(np.isfinite(Z), Z, 0.0), 0.0)
    tested, voted = score_test(fit, Z, weights_of(fit)), votes(fit, Z, rng, settings.pairs)
    best = [*np.argsort(-tested, kind="stable")[: settings.tests], *np.argsort(-voted, kind="stable")[: settings.votes]]
    places = [int(j) for j in dict.fromkeys(best) if candidates[j] not in fit.terms]
    for j in places:
        yield [*fit.terms, candidates[j]], [*fit.coef, 0.0]
    for grown in [candidates[j] for j in places if j >= n_old][: fit.labels.settings.tries]:
        old = [term for term in _small(fit) if len(term) == len(grown) - 1 and set(term) <= set(grown)]
        if old:
            yield [*(term for term in fit.terms if term != old[0]), grown], None
        base = tuple(one for one in grown if one.op != "^" or not isinstance(one.parts[1], Term))
        if base != grown:  # compound interest, with and without what it grows from
            simple = [term for term in fit.terms if grown not in _compound(sample, term) and term != base]
            yield from (([*simple, grown, base], None), ([*simple, grown], None))
    for *rest, step in [candidates[j] for j in places if candidates[j] and candidates[j][-1].op in STEPPED]:
        number = step.parts[0]
        number = number.parts[0] if isinstance(number, Term) and number.op == "/" else number
        rests = [without(term, number) for term in fit.terms if isinstance(number, Term)]
        if any(rest is not None for rest in rests):  # steps in place of what they count
            new = [term if rest is None else (*rest, step) for term, rest in zip(fit.terms, rests, strict=True)]
            yield from ((new, None), ([*new, tuple(rest)], None))


def whole_changes(fit: Fit) -> Iterator[Change]:
    """Yield the rule with all of its terms once more, times a factor: a tax on everything, half of it for some."""
    sample, few = fit.labels.sample, fit.labels.settings.each
    levels = [one for category in sample.categories if len(category) <= few for one in category.conditions]
    factors = [*sample.numbers, *levels]
    Z = fit.predicted[:, None] * np.column_stack([np.empty((len(sample), 0)), *map(sample.factor, factors)])
    for j in np.argsort(-score_test(fit, Z, weights_of(fit)), kind="stable")[:2]:
        one = factors[j]
        most = 1 if is_condition(one) or sample.is_flag(one) else _SQUARE
        also = [(*term, one) for term in fit.terms if term.count(one) < most]
        yield [*fit.terms, *also], None  # rows of which it was forgotten would hold a start from zero


def looser_changes(fit: Fit) -> Iterator[Change]:
    """Yield the rule without one of its ranges: what began as a part of the rows may hold for all of them."""
    for condition in dict.fromkeys(factor for term in fit.terms for factor in term if is_range(factor)):
        terms = [tuple(factor for factor in term if factor != condition) for term in fit.terms]
        yield list(dict.fromkeys(terms)), None


def level_changes(fit: Fit) -> Iterator[Change]:
    """Yield the rule with a coefficient of its own for each level of a category, where the residuals ask for it."""
    sample, weights = fit.labels.sample, weights_of(fit)
    is_log = fit.labels.scale == "log"
    plain: list[Product] = [(one,) for one in sample.numbers] if len(sample.numbers) <= fit.labels.settings.each else []
    bases = [()] if is_log else list(dict.fromkeys([(), *_small(fit), *plain]))
    gains: list[tuple[float, int, int, Product]] = []
    for place, category in enumerate(sample.categories):
        if len(category) > fit.labels.settings.cells:
            continue
        for base in bases:
            if not _differ(base, category):
                continue
            z = sample.column(base)
            with np.errstate(all="ignore"):
                numerator = np.bincount(category.codes, weights * z * fit.residuals)
                denominator = np.bincount(category.codes, weights * z * z)
                gain = float(np.sum(numerator**2 / np.maximum(denominator, 1e-300)))
            if np.isfinite(gain):
                gains.append((-gain, place, len(gains), base))
    for _, place, _, base in sorted(gains)[: fit.labels.settings.tries]:
        yield _levelled(fit, base, sample.categories[place])
    if not is_log:
        yield from _all_by_level(fit)


def _differ(base: Product, category: Category) -> bool:
    """Return whether a product does not say anything of a category yet."""
    if category.cuts:
        return not any(factor.op in (">=", "<") for factor in base)
    return all(
        category.column not in factor.columns() or (category.calendar is not None and not is_condition(factor))
        for factor in base
    )


def _levelled(fit: Fit, base: Product, category: Category) -> Change:
    kept = [(term, value) for term, value in zip(fit.terms, fit.coef, strict=True) if term != base]
    levels = category.by_level(base)
    coef = [*(value for _, value in kept), *[fit.coefficient(base)] * len(levels)]
    return [*(term for term, _ in kept), *levels], coef


def _all_by_level(fit: Fit) -> Iterator[Change]:
    """Yield the rule with all terms that have no condition by one category: a share of a sum of columns."""
    free = [term for term in fit.terms if not any(map(is_condition, term))]
    for category in fit.labels.sample.categories:
        own = [term for term in free if _differ(term, category)]
        if len(own) > 1 and len(category) * len(free) <= fit.labels.settings.cells:
            kept = [term for term in fit.terms if term not in own]
            yield [*kept, *(level for term in own for level in category.by_level(term))], None
