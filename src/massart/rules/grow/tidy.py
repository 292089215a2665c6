"""The rule as its author would write it: thresholds and factors in few digits, products in place of logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from massart.rows import BoolArray, FloatArray, Link
from massart.rules import terms as t
from massart.rules.grow.fit import NO_LIMITS, SLACK, Fit, Labels
from massart.rules.grow.sample import (
    Category,
    Product,
    Sample,
    above,
    below,
    clip_of,
    clipped,
    interval,
    is_condition,
    threshold_of,
)
from massart.rules.grow.simplify import pruned
from massart.rules.grow.units import DECIMALS, UNITS, digits_of, near_numbers, simplest
from massart.rules.terms import Term

_LOST, _LOOSE = 0.002, 0.01  # share of the rows that a threshold, and coefficients, in fewer digits may lose
_NEIGHBOURS = 12  # values on either side of a limit that are tried
_WIDTHS = (4.0, 2.0, 1.0, 0.5, 0.2, 0.05)  # half-widths within which a shorter threshold moves no row
_MOST_TERMS = 60
_FEW_LEVELS = 3  # of a category each of which has a rate of its own
_MOST_ROWS = 4000  # that tell coefficients
_EXPONENTS = (1, 2, 3, 4, 12)  # denominators of exponents
_EXPONENT_ERROR = 0.02
_EXACT = 0.9  # share of the rows that agree without any rounding, if there is none


# Thresholds.


def tidied(fit: Fit) -> Fit:
    """Return the rule with thresholds in few digits, as long as hardly a row is lost."""
    if fit.labels.scale != "identity":
        return fit
    fit = _with_fewer_hinges(shortest_form(fit))
    cuts = [one for term in fit.terms for one in term if one.op == "within" or threshold_of(one) or clip_of(one)]
    for factor in dict.fromkeys(cuts):
        if any(factor in term for term in fit.terms):
            fit = _with_limits(fit, factor) if factor.op == "within" else _with_threshold(fit, factor)
    return shortest_form(fit)


def _exchanged(fit: Fit, old: Term, new: Term) -> Fit | None:
    terms = [tuple(new if factor == old else factor for factor in term) for term in fit.terms]
    return fit.labels.fit(terms, fit.coef, fit.limits, quick=True, near=fit.agree)


def in_short_numbers(fit: Fit) -> Fit:
    """Return the rule with coefficients in few digits where hardly a row is lost, or even more rows agree."""
    labels = fit.labels
    inside = fit.agree & (labels.y > fit.limits.lower) & (labels.y < fit.limits.upper)
    lost = max(2, round(_LOOSE * labels.n))
    coef = short_coefficients(fit.matrix, labels.y, SLACK * labels.half_widths, fit.coef, inside, lost)
    short = Fit(labels, fit.terms, coef, fit.limits, fit.X)
    return short if short.n_agree >= fit.n_agree - lost else fit


def _with_threshold(fit: Fit, factor: Term) -> Fit:
    """Solve for the threshold of a hinge beside the coefficients, and write it in few digits."""
    labels, sample = fit.labels, fit.labels.sample
    hinge, clip = threshold_of(factor), clip_of(factor)
    if hinge is not None:
        number, threshold, is_above = hinge
        x = sample.factor(number)
        side = (x > threshold).astype(float) if is_above else -(x < threshold).astype(float)
    else:
        assert clip is not None
        number, threshold = clip
        x = sample.factor(number)
        side = -((x > threshold) if factor.op == "min" else (x < threshold)).astype(float)

    def at(option: float) -> Term:
        if hinge is None:
            return clipped(number, option, is_cap=factor.op == "min")
        return above(number, option) if hinge[2] else below(number, option)

    slope = np.zeros(len(x))
    for term, w in zip(fit.terms, fit.coef, strict=True):
        if factor in term:
            slope += w * side * sample.column(tuple(one for one in term if one != factor))
    steepest = float(np.abs(slope).max())
    use = fit.agree & (fit.predicted > fit.limits.lower) & (fit.predicted < fit.limits.upper)
    if not steepest or use.sum() <= len(fit.terms) + 1:
        return fit
    A = np.column_stack([sample.matrix(fit.terms), -slope])[use]
    sizes = np.sqrt((A**2).mean(axis=0)) + 1e-300
    step = np.linalg.lstsq(A / sizes, fit.residuals[use], rcond=1e-12)[0] / sizes
    solved, error = threshold + float(step[-1]), 4 * labels.typical / steepest
    found = []
    options = {simplest(solved - error * width, solved + error * width) for width in _WIDTHS} | {solved, threshold}
    for option in {round(option, DECIMALS) for option in options}:  # 200, not 199.9999999999999
        other = _exchanged(fit, factor, at(option))
        if other is not None:
            short = in_short_numbers(other)
            found.append((len(digits_of(option)), option, max((other, short), key=lambda one: one.n_agree)))
    return _shortest_of_the_best(fit, found, lost=max(2, round(_LOOSE * labels.n)))


def _with_limits(fit: Fit, factor: Term) -> Fit:
    """Move each limit of an interval by some values, to where most rows agree."""
    sample = fit.labels.sample
    for place in (1, 2):
        _, *ends, _ = factor.parts
        if ends[place - 1] is None:
            continue
        column = t.column(str(factor.parts[0]))
        is_date = column in sample.dates
        low, high = (
            side if end is None else t.day_of(end) if isinstance(end, str) else float(str(end))
            for end, side in zip(ends, (-math.inf, math.inf), strict=True)
        )
        values = np.unique(sample.factor(column))
        now = int(np.searchsorted(values, (low, high)[place - 1]))
        found, factors = [], []
        for k in range(max(now - _NEIGHBOURS, 1), min(now + _NEIGHBOURS + 1, len(values))):
            end = float(values[k]) if is_date else simplest(float(values[k - 1]), float(values[k]))
            limits = (end, high) if place == 1 else (low, end)
            if not limits[0] < limits[1]:
                continue
            new = interval(column, *limits, is_date)
            terms = tuple(tuple(new if one == factor else one for one in term) for term in fit.terms)
            other = Fit(fit.labels, terms, fit.coef, fit.limits)
            length = _starts_no_month(end) if is_date else len(digits_of(end))
            found.append((length, end, other))
            factors.append((other, new))
        best = _shortest_of_the_best(fit, found, lost=0)
        factor = next((new for other, new in factors if other is best), factor)
        fit = best
    return fit


def _starts_no_month(day: float) -> int:
    """Return 0 for the first day of a month, on which tariffs change, and 1 for others."""
    date = np.datetime64(int(day), "D")
    return int(date != date.astype("datetime64[M]").astype("datetime64[D]"))


def _shortest_of_the_best(fit: Fit, found: Sequence[tuple[int, float, Fit]], lost: int) -> Fit:
    """Return the rule with the fewest digits among those with which hardly fewer rows agree than with the best."""
    if not found:
        return fit
    most = max(other.n_agree for _, _, other in found)
    if most < fit.n_agree - lost:
        return fit
    return min((one for one in found if one[2].n_agree >= most - lost), key=lambda one: one[:2])[2]


def _with_fewer_hinges(fit: Fit) -> Fit:
    """Leave out a hinge where another one on the same number does as well with a threshold of its own."""
    for term in fit.terms:
        own = {known[0] for one in term if (known := threshold_of(one)) is not None}
        rest = [other for other in fit.terms if other != term]
        others = [one for other in rest for one in other if (threshold_of(one) or (None,))[0] in own]
        found = fit.labels.fit(rest, limits=fit.limits, near=fit.agree) if others else None
        if found is None:
            continue
        for factor in others:
            moved = _with_threshold(found, factor)
            if moved.total < fit.total - 1:
                return _with_fewer_hinges(moved)
    return fit


# Equivalent forms.


def shortest_form(fit: Fit) -> Fit:
    """Return the shortest of the forms that say the same: the fewest numbers, differences, digits, and words.

    Hinges may count from either side, rates by level may have a base or none, and what is a function of a category may
    be written as a table: all of these explain the same rows.
    """
    found = [fit]
    for form, limits in _forms(fit):
        other = fit.labels.fit(form, limits=limits, near=fit.agree)
        if other is not None and len(form) <= _MOST_TERMS:
            found.append(pruned(other))
    lost = max(2, round(_LOOSE * fit.labels.n))
    enough = [fit, *(one for one in found[1:] if in_short_numbers(one).n_agree >= fit.n_agree - lost)]
    return min(enough, key=_length)


def _length(fit: Fit) -> tuple[int, int, int, int]:
    digits = sum(len(digits_of(w)) for w in in_short_numbers(fit).coef.tolist() if abs(w) != 1)
    return fit.n_numbers, _n_differences(fit), digits, sum(len(str(factor)) for term in fit.terms for factor in term)


def _n_differences(fit: Fit) -> int:
    """Return how many categories have rates that are differences from a rate that another term says."""
    sample, found = fit.labels.sample, 0
    for category in sample.categories:
        sets: dict[Product, list[Term]] = {}
        for term in fit.terms:
            base = tuple(one for one in term if sample.category_of(one) is not category)
            if base != term:
                sets.setdefault(base, []).append(next(one for one in term if one not in base))
        for base, own in sets.items():
            covered = np.sum([sample.factor(one) for one in own], axis=0).min() > 0
            few = bool(base) and len(category) <= _FEW_LEVELS  # two rates, not one and a difference
            others = [term for term in fit.terms if term != base and not any(one in own for one in term)]
            is_coded = any(_is_by_level(sample, term, base, category) for term in others)
            found += is_coded or ((len(own) > 1 or few) and (base in fit.terms or not covered))
    return found


def _forms(fit: Fit) -> Iterator[tuple[list[Product], Link]]:
    """Yield other terms that span the same."""
    terms, sample = list(fit.terms), fit.labels.sample
    turned = [tuple(_from_above(factor) for factor in term) for term in terms]
    if turned != terms:
        yield list(dict.fromkeys([*turned, *_needed_when_turned(terms)])), fit.limits
    yield from _clipped(terms)
    beyond = [tuple(_beyond_clip(factor) for factor in term) for term in terms]
    if beyond != terms:
        constants = [tuple(one for one in term if clip_of(one) is None) for term in terms]
        yield list(dict.fromkeys([*beyond, *constants])), fit.limits
    for category in sample.categories:
        rest = [tuple(one for one in term if sample.category_of(one) is not category) for term in terms]
        bases = [base for base, term in zip(rest, terms, strict=True) if base != term]
        for base in dict.fromkeys(bases):
            group = [term for term in terms if _is_by_level(sample, term, base, category)]
            others = [term for term in terms if term not in group]
            if len(group) >= len(category):
                yield [*others, *category.by_level(base)], fit.limits
            own = [next((one for one in term if sample.category_of(one) is category), None) for term in group]
            sets = [one for one in own if one is not None]
            for one in sets:
                yield [*others, base, *((*base, other) for other in sets if other != one)], fit.limits


def _is_by_level(sample: Sample, term: Product, base: Product, category: Category) -> bool:
    """Return whether a term is the base times a number for each level."""
    with np.errstate(all="ignore"):
        ratio = sample.column(term) / sample.column(base)
    some = np.isfinite(ratio)
    for place in range(len(category)):
        own = ratio[some & (category.codes == place)]
        if len(own) and np.ptp(own) > 1e-9 * np.abs(own).max():
            return False
    return True


def _clipped(terms: Sequence[Product]) -> Iterator[tuple[list[Product], Link]]:
    """Yield min(x, k) or max(x, k) in place of x, without hinges at k, and without limits."""
    hinges = dict.fromkeys(known for term in terms for one in term if (known := threshold_of(one)) is not None)
    for number, threshold, _ in hinges:
        others = [
            term for term in terms if not any((threshold_of(one) or ())[:2] == (number, threshold) for one in term)
        ]
        for is_cap in (True, False):
            factor = clipped(number, threshold, is_cap=is_cap)
            yield [tuple(factor if one == number else one for one in term) for term in others], NO_LIMITS


def _beyond_clip(factor: Term) -> Term:
    known = clip_of(factor)
    return factor if known is None or factor.op == "min" else above(*known)


def _from_above(factor: Term) -> Term:
    known = threshold_of(factor)
    return factor if known is None or known[2] else above(known[0], known[1])


def _needed_when_turned(terms: Sequence[Product]) -> Iterator[Product]:
    """Yield what max(0, k - x) has more than max(0, x - k): x, and a constant."""
    for term in terms:
        for factor in term:
            known = threshold_of(factor)
            if known is not None and not known[2]:
                rest = tuple(one for one in term if one != factor)
                yield from ((*rest, known[0]), rest)


# Coefficients.


def short_coefficients(
    X: FloatArray, y: FloatArray, half_widths: FloatArray, coef: FloatArray, agree: BoolArray, lost: int = 0
) -> FloatArray:
    """Return coefficients in few digits with which no fewer rows agree than with given ones, but for some.

    One after the other is rounded, the best determined first, and the others are fitted again to the rows that agree.
    """
    coef = coef.astype(np.float64).copy()
    some = np.flatnonzero(agree)
    some = some[:: max(1, len(some) // _MOST_ROWS)]
    if len(some) <= len(coef):
        return coef
    A, v = X[some] / half_widths[some, None], y[some] / half_widths[some]
    sizes = np.sqrt((A**2).mean(axis=0)) + 1e-300
    needed, fixed = int(agree.sum()) - lost, np.zeros(len(coef), dtype=bool)

    def n_agree(w: FloatArray) -> int:
        return int(np.count_nonzero(np.abs(y - X @ w) <= half_widths))

    def refitted(w: FloatArray, free: BoolArray) -> FloatArray:
        w = w.copy()
        if free.any():
            Z = A[:, free] / sizes[free]
            w[free] = np.linalg.lstsq(Z, v - A[:, ~free] @ w[~free], rcond=1e-12)[0] / sizes[free]
        return w

    for _ in coef:
        free = ~fixed
        Z = A[:, free] / sizes[free]
        errors = np.full(len(coef), np.inf)
        errors[free] = 3 * np.sqrt(np.abs(np.diag(np.linalg.pinv(Z.T @ Z)))) / sizes[free] + 1e-12 * np.abs(coef[free])
        with np.errstate(over="ignore"):  # a coefficient of zero is known least
            relative = errors / np.maximum(np.abs(coef), np.finfo(float).tiny)
        j = int(np.argmin(np.where(free, relative, np.inf)))
        fixed[j] = True
        for number in near_numbers(float(coef[j]), max(4 * errors[j], 1.5 / sizes[j])):
            w = coef.copy()
            w[j] = number
            w = refitted(w, ~fixed)
            if n_agree(w) >= needed:
                coef = w
                break
    return coef


# Roundings that are no power of ten, and labels that are cut off.


def steps_of_rounding(fit: Fit) -> Term | None:
    """Return the rule with its rounding in it, ``round(1.081 * net, to=0.05)``, where that is not to a power of ten."""
    labels, sample = fit.labels, fit.labels.sample
    unit = 2 * sample.half_unit
    is_odd = unit in UNITS and abs(math.log10(unit) - round(math.log10(unit))) > 1e-9
    is_exact = np.count_nonzero(np.abs(fit.residuals[fit.agree]) < 0.01 * unit) > _EXACT * fit.n_agree
    conditions = any(any(map(is_condition, term)) for term in fit.terms)
    if not is_odd or is_exact or conditions or labels.scale != "identity" or fit.limits != NO_LIMITS:
        return None
    X = sample.matrix(fit.terms)
    coef = short_coefficients(
        X, labels.y, SLACK * labels.half_widths, fit.coef, fit.agree, lost=max(1, round(_LOST * labels.n))
    )
    term = t.rounded(_sum(fit.terms, coef), unit)
    off = np.abs(sample.factor(term) - labels.y)
    enough = fit.n_agree - max(2, round(0.01 * labels.n))
    return term if np.count_nonzero(off <= 1e-9 * np.maximum(1, np.abs(labels.y))) >= enough else None


def _sum(terms: Sequence[Product], coef: FloatArray) -> Term:
    parts = []
    for term, w in zip(terms, coef.tolist(), strict=True):
        if w:
            factors = ([] if w == 1 and term else [t.number(w)]) + list(term)
            parts.append(t.product(*factors))
    return parts[0] if len(parts) == 1 else t.total(*parts)


# Products in place of logarithms.


def as_product(fit: Fit) -> Fit | None:
    """Return a rule on the scale of logarithms as a product of powers, growth factors, and tables by level.

    With at most one category the rates by level are coefficients. With more, each category has a table of factors.
    """
    labels, sample = fit.labels, fit.labels.sample
    if labels.scale != "log" or fit.limits != NO_LIMITS:
        return None
    identity = Labels.of(sample, "identity", labels.settings)
    logs = {term: w for term, w in zip(fit.terms, fit.coef, strict=True) if term}
    powers = [(term, w) for term, w in logs.items() if not any(map(is_condition, term))]
    tables: dict[int, dict[Term, float]] = {}
    for term, w in logs.items():
        if (term, w) in powers:
            continue
        category = sample.category_of(term[0]) if len(term) == 1 else None
        if category is None:
            return None
        tables.setdefault(sample.categories.index(category), {})[term[0]] = w
    needed = fit.n_agree - max(2, round(0.01 * len(sample)))
    for factors in product(*(list(_factors(term, w)) for term, w in powers)):
        base: Product = tuple(factor for group in factors for factor in group)
        own = [sample.categories[place] for place in tables]
        found = identity.fit(own[0].by_level(base) if len(own) == 1 else [base]) if len(own) < 2 else None
        if len(own) > 1:
            found = _with_tables(fit, identity, base, [(sample.categories[k], table) for k, table in tables.items()])
        if found is not None and found.n_agree >= needed:
            return pruned(found)
    return None


def _factors(term: Product, exponent: float) -> Iterator[Product]:
    """Yield factors whose logarithm is a term times an exponent."""
    *time, last = term if len(term) > 1 else term[0].factors
    if last.op == "log":
        base = last.parts[0]
        assert isinstance(base, Term)
        for denominator in _EXPONENTS:
            nearest = round(exponent * denominator) / denominator
            if abs(nearest - exponent) <= _EXPONENT_ERROR * max(1.0, abs(exponent)) and nearest:
                if time:
                    years = t.product(*time)
                    yield (t.power(base, years if nearest == 1 else t.product(t.number(nearest), years)),)
                else:
                    yield (t.power(base, nearest),)
                return
    elif len(term) == 1 and not time:
        for number in near_numbers(math.exp(exponent), 1e-4 * abs(exponent)):
            yield (t.power(t.number(number), last),)


def _with_tables(
    fit: Fit, identity: Labels, base: Product, tables: Sequence[tuple[Category, dict[Term, float]]]
) -> Fit | None:
    """Return a product with a table of factors for each category, in numbers as short as the rows allow."""
    sample = identity.sample
    error = 4 * float(np.median(fit.labels.half_widths[fit.agree])) if fit.n_agree else 0.0
    factors = []
    for category, logarithms in tables:
        levels = [
            sum(w for one, w in logarithms.items() if _holds(sample, category, one, k)) for k in range(len(category))
        ]
        factors.append(_table(category, np.array(levels), error))
    return identity.fit([(*base, *factors)])


def _holds(sample: Sample, category: Category, condition: Term, place: int) -> bool:
    rows = category.codes == place
    return bool(rows.any() and sample.factor(condition)[rows][0] > 0)


def _table(category: Category, logarithms: FloatArray, error: float) -> Term:
    """Return a sum of numbers by level, relative to the level with which they are shortest."""
    best: tuple[int, list[float]] | None = None
    for base in logarithms:
        ratios = np.exp(logarithms - base)
        numbers = [(near_numbers(float(one), error * float(one)) or [float(one)])[0] for one in ratios]
        length = sum(len(digits_of(one)) for one in numbers)
        if best is None or length < best[0]:
            best = length, numbers
    assert best is not None
    places: dict[float, list[int]] = {}
    for place, number in enumerate(best[1]):
        places.setdefault(number, []).append(place)
    parts = [
        category.condition(*own) if number == 1 else t.product(t.number(number), category.condition(*own))
        for number, own in places.items()
    ]
    return parts[0] if len(parts) == 1 else t.total(*parts)
