"""The rule as its author would write it: thresholds and factors in few digits, products in place of logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from massart.rows import FloatArray
from massart.rules import terms as t
from massart.rules.grow.fit import NO_LIMITS, SLACK, Fit, Labels
from massart.rules.grow.forms import shortest_form
from massart.rules.grow.sample import (
    Category,
    Product,
    Sample,
    above,
    below,
    clip_of,
    clipped,
    is_condition,
    is_range,
    threshold_of,
)
from massart.rules.grow.simplify import pruned
from massart.rules.grow.units import DECIMALS, UNITS, bits_of, digits_of, near_numbers, simplest
from massart.rules.grow.written import cost, in_few_digits, in_short_numbers, short_coefficients, written_bits
from massart.rules.terms import Term

_LOST = 0.002  # share of the rows that a rounding of its own may lose
_NEIGHBOURS = 12  # values on either side of a limit that are tried
_WIDTHS = (4.0, 2.0, 1.0, 0.5, 0.2, 0.05)  # half-widths within which a shorter threshold moves no row
_MOVE = 1e-6  # of its range, by which a threshold is moved to see what changes
_ROUNDS = 3
_EXPONENTS = (1, 2, 3, 4, 12)  # denominators of exponents
_EXPONENT_ERROR = 0.02
_EXACT = 0.9  # share of the rows that agree without any rounding, if there is none


# Thresholds.


def tidied(fit: Fit) -> Fit:
    """Return the rule in the form that its author would write."""
    if fit.labels.scale != "identity":
        return fit
    fit = shortest_form(Fit(_on_ties(fit.labels), fit.terms, fit.coef, fit.limits, fit.X))
    for _ in range(_ROUNDS):  # a threshold is solved for while the others stand
        before = fit
        factors = list(dict.fromkeys(one for term in fit.terms for one in term))
        for name in dict.fromkeys(str(one.parts[0]) for one in factors if one.op == "within"):
            fit = _with_cuts(fit, name)
        for factor in factors:
            if factor.op != "within" and is_range(factor):
                fit = _with_bound(fit, factor)
            if (threshold_of(factor) or clip_of(factor)) and any(factor in term for term in fit.terms):
                fit = _with_threshold(fit, factor)
        fit = shortest_form(fit)
        if fit.terms == before.terms:
            break
    return fit


def _on_ties(labels: Labels) -> Labels:
    """Return labels with which rows agree that lie in the middle of two roundings: a limit at 5175 may be there."""
    return replace(labels, half_widths=labels.half_widths * (1 + 1e-9) / SLACK)


def _with_threshold(fit: Fit, factor: Term) -> Fit:
    """Solve for the threshold of a hinge beside the coefficients, and write it in few digits."""
    labels, sample = fit.labels, fit.labels.sample
    hinge = threshold_of(factor)
    number, threshold = (hinge or clip_of(factor) or (factor, 0.0))[:2]

    def at(option: float) -> tuple[Product, ...]:
        other = clipped(number, option, is_cap=factor.op == "min")
        if hinge is not None:
            other = above(number, option) if hinge[2] else below(number, option)
        return tuple(tuple(other if one == factor else one for one in term) for term in fit.terms)

    moved = _MOVE * float(np.ptp(sample.factor(number)))
    slope = (sample.matrix(at(threshold + moved)) - sample.matrix(fit.terms)) @ fit.coef / moved
    steepest = float(np.abs(slope).max())
    use = fit.agree & (fit.predicted > fit.limits.lower) & (fit.predicted < fit.limits.upper)
    if not steepest or use.sum() <= len(fit.terms) + 1:
        return fit
    A = np.column_stack([sample.matrix(fit.terms), -slope])[use]
    sizes = np.sqrt((A**2).mean(axis=0)) + 1e-300
    step = np.linalg.lstsq(A / sizes, fit.residuals[use], rcond=1e-12)[0] / sizes
    solved, error = threshold + float(step[-1]), 4 * labels.typical / steepest
    options = {simplest(solved - error * width, solved + error * width) for width in _WIDTHS} | {solved, threshold}
    found = []
    for option in sorted({float(f"{option:.{DECIMALS - 1}e}") for option in options}):  # 200, not 199.9999999999999
        refitted = labels.fit(at(option), fit.coef, fit.limits, quick=True, near=fit.agree)
        found += [Fit(labels, at(option), fit.coef, fit.limits)]
        found += [] if refitted is None else [in_few_digits(refitted), in_short_numbers(refitted)]
    return min([*found, fit], key=cost)


def _with_cuts(fit: Fit, name: str) -> Fit:
    """Move the ends of intervals of a column, each to where the rows cost least, and write them in few digits.

    What lies between two values of the column parts the rows in the same way. All intervals are closed on the side on
    which their ends are shorter: ``kWp <= 10`` and ``10 < kWp``, not ``kWp < 10.1``.
    """
    sample, column = fit.labels.sample, t.column(name)
    is_day, values = column in sample.dates, np.unique(sample.factor(column))
    ends_of = {one: [_place(one, k, values) for k in (1, 2)] for one in _intervals_of(fit, name)}
    cuts = sorted({place for ends in ends_of.values() for place in ends if place is not None})

    def at(places: Sequence[int], closed: str = "left") -> Fit:
        ends: dict[int | None, float | str | None] = {None: None}
        ends |= {old: _end(values, new, closed, is_day) for old, new in zip(cuts, places, strict=True)}
        moved = {one: t.within(name, ends[low], ends[high], closed) for one, (low, high) in ends_of.items()}
        terms = tuple(tuple(moved.get(one, one) for one in term) for term in fit.terms)
        return Fit(fit.labels, terms, fit.coef, fit.limits)

    found = [fit]
    for closed in ("left", "right"):
        best = list(cuts)
        for k, cut in enumerate(cuts):
            low, high = best[k - 1] if k else 0, cuts[k + 1] if k + 1 < len(cuts) else len(values)
            near = range(max(cut - _NEIGHBOURS, low + 1), min(cut + _NEIGHBOURS + 1, high))
            options = [[*best[:k], place, *best[k + 1 :]] for place in near]
            best = min([best, *options], key=lambda places: _cost_of_cuts(at(places, closed)))
        found.append(at(best, closed))
    return min(found, key=_cost_of_cuts)


def _with_bound(fit: Fit, factor: Term) -> Fit:
    """Move the bound of a product or a sum to where the rows cost least, and write it in few digits."""
    number, bound = factor.parts
    assert isinstance(number, Term)
    assert isinstance(bound, Term)
    values = np.unique(fit.labels.sample.factor(number))
    now = int(np.searchsorted(values, float(str(bound.parts[0]))))
    found = [fit]
    for k in range(max(now - _NEIGHBOURS, 1), min(now + _NEIGHBOURS + 1, len(values))):
        new = Term(factor.op, (number, t.number(simplest(float(values[k - 1]), float(values[k])))))
        terms = tuple(tuple(new if one == factor else one for one in term) for term in fit.terms)
        found.append(Fit(fit.labels, terms, fit.coef, fit.limits))
    return min(found, key=_cost_of_cuts)


def _cost_of_cuts(fit: Fit) -> float:
    """Return the bits of a rule and of its rows, where one that is wrong may have what holds beyond the cut."""
    wrong = fit.labels.n - fit.n_agree
    return fit.labels.settings.cut_bits * wrong + written_bits(fit, fit.coef)


def _intervals_of(fit: Fit, name: str) -> list[Term]:
    return [one for term in fit.terms for one in term if one.op == "within" and one.parts[0] == name]


def _place(one: Term, k: int, values: FloatArray) -> int | None:
    """Return how many values are below an end of an interval."""
    end, closed = one.parts[k], one.parts[3]
    if end is None:
        return None
    number = t.day_of(end) if isinstance(end, str) else float(str(end))
    return int(np.searchsorted(values, number, "left" if closed == "left" else "right"))


def _end(values: FloatArray, place: int, closed: str, is_day: bool) -> float | str:
    below, above = float(values[place - 1]), float(values[place])
    if is_day:
        days = range(math.floor(below) + (closed == "left"), math.floor(above) + (closed == "left"))
        return min(
            (str(np.datetime64(day, "D")) for day in days),
            key=lambda day: (bits_of(day), day != str(np.datetime64(int(above), "D"))),
        )
    return simplest(below, above) if closed == "left" else -simplest(-above, -below)


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
