"""The rule as its author would write it: thresholds and factors in few digits, products in place of logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from massart.rows import BoolArray, FloatArray
from massart.rules import terms as t
from massart.rules.columns import Columns
from massart.rules.grow.cases import table_of
from massart.rules.grow.fit import NO_LIMITS, SLACK, Fit, Labels
from massart.rules.grow.forms import shortest_form
from massart.rules.grow.numbers import in_short_numbers, short_coefficients
from massart.rules.grow.sample import (
    Category,
    Product,
    is_condition,
    is_range,
    written,
)
from massart.rules.grow.simplify import pruned
from massart.rules.grow.units import (
    DECIMALS,
    UNITS,
    are_multiples,
    bits_of,
    digits_of,
    is_decimal,
    near_numbers,
    simplest,
)
from massart.rules.grow.written import cost, written_bits
from massart.rules.literals import day_of
from massart.rules.terms import Term

_NEIGHBOURS = 12  # values on either side of a limit that are tried
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
        fit = shortest_form(min(in_short_numbers(fit), fit, key=cost))
        if fit.terms == before.terms:
            break
    return fit


def _on_ties(labels: Labels) -> Labels:
    """Return labels with which rows agree that lie in the middle of two roundings: a limit at 5175 may be there."""
    return replace(labels, half_widths=labels.half_widths * (1 + 1e-9) / SLACK)


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
    number = day_of(end) if isinstance(end, str) else float(str(end))
    return int(np.searchsorted(values, number, "left" if closed == "left" else "right"))


def _end(values: FloatArray, place: int, closed: str, is_day: bool) -> float | str:
    below, above = float(values[place - 1]), float(values[place])
    if is_day:
        days = range(math.floor(below) + (closed == "left"), math.floor(above) + (closed == "left"))
        return min(
            (str(np.datetime64(day, "D")) for day in days),
            key=lambda day: (bits_of(day), day != str(np.datetime64(int(above), "D"))),
        )
    return simplest(below, above) if closed == "left" else 0.0 - simplest(-above, -below)


# Roundings that are no power of ten, and labels that are cut off.

_TIED = 1e-6  # of half a step, within which a label is in the middle of two steps
_LOST = 2  # rows that agree within half a step, and not with the rounded rule: wrong labels at the edge of a step


def steps_of_rounding(fit: Fit) -> Term | None:
    """Return the rule with the rounding of its labels in it, ``ceil(1.1 * m2 / pack)`` or ``round(z, to=0.05)``.

    Of what is rounded to a power of ten, up or down as well as to the nearest, an agreement within half of it tells as
    much; but a number that is counted, or a step other than a power of ten, has to be said. What is rounded up is half
    a step higher in the middle.
    """
    labels, sample = fit.labels, fit.labels.sample
    unit, middle = 2 * sample.half_unit, fit.coefficient(())
    is_exact = np.count_nonzero(np.abs(fit.residuals[fit.agree]) < 0.01 * unit) > _EXACT * fit.n_agree
    if unit not in UNITS or is_exact or labels.scale != "identity" or fit.limits != NO_LIMITS:
        return None
    others = [term for term in fit.terms if term]
    X = sample.matrix([*others, ()])
    width = labels.half_widths * (1 + 1e-9)  # what is rounded up from a whole step is half of it off
    exact = 1e-9 * np.maximum(1, np.abs(labels.y))
    # A label in the middle of two steps agrees with both, and only one of them is right.
    inside = are_multiples(labels.y, unit) & (np.abs(fit.residuals) < (1 - _TIED) * unit / 2)
    best, most, shortest = None, int(np.count_nonzero(inside)) - _LOST - 1, math.inf
    for op, shift in (("round", 0.0), ("ceil", unit / 2), ("floor", -unit / 2)):
        if is_decimal(unit) and (op == "round" or unit < 1):
            continue
        constant = middle if op == "round" else unit * round((middle - shift) / unit) + shift
        coef = np.array([*(fit.coefficient(term) for term in others), constant])
        known = np.array([False] * len(others) + [op != "round"])

        def right(given: FloatArray, op: str = op, shift: float = shift) -> BoolArray:
            steps = Term(op, (t.column("z"), 1.0)[: 2 if op == "round" else 1])
            columns = Columns({"z": (given - shift) / unit})
            return np.asarray(np.abs(unit * steps.evaluate(columns) - labels.y) <= exact)

        agree = np.abs(labels.y - X @ coef) <= width
        coef = short_coefficients(X, labels.y, width, coef, agree, known=known, right=right)
        if op == "round":  # a constant between two whole steps bends to anything
            coef = _with_more_right(X, labels, unit, coef, known, right)
        n_right = int(np.count_nonzero(right(X @ coef)))
        coef[-1] -= shift
        if not coef.any():
            continue
        whole = _sum([*others, ()], coef)
        term = t.rounded(whole, unit) if op == "round" else _stepped(op, whole, unit)
        if n_right > most or (n_right == most and best is not None and len(str(term)) < shortest):
            best, most, shortest = term, n_right, len(str(term))
    if best is None:
        return None
    steps = np.rint(np.abs(best.evaluate(sample.columns) - labels.y) / unit)[are_multiples(labels.y, unit)]
    near, farther = np.count_nonzero(steps == 1), np.count_nonzero(steps == 2)
    # An approximation is one step off in many rows; wrong labels are as often two.
    return None if near > farther + labels.settings.clear * math.sqrt(farther + 1) else best


def _with_more_right(
    X: FloatArray,
    labels: Labels,
    unit: float,
    coef: FloatArray,
    known: BoolArray,
    right: Callable[[FloatArray], BoolArray],
) -> FloatArray:
    """Return coefficients in as few digits, or in some more where more rows agree then.

    A row agrees with an interval of each coefficient; the most of these have a point in common. Numbers in few digits
    may have lost the few rows of a case, in which all labels are a step off then (``29-music-school``).
    """
    multiples = are_multiples(labels.y, unit)
    for j in np.flatnonzero(~known & (X[multiples] != 0).any(axis=0)).tolist():
        rows = (X[:, j] != 0) & multiples
        x, rest = X[rows, j], (labels.y - X @ coef + X[:, j] * coef[j])[rows]
        ends = np.sort([(rest - unit / 2) / x, (rest + unit / 2) / x], axis=0)
        low, high = np.sort(ends[0]), np.sort(ends[1])
        covered = np.arange(1, len(low) + 1) - np.searchsorted(high, low, side="right")
        first = float(low[np.argmax(covered)])
        tried = coef.copy()
        tried[j] = simplest(first, float(high[high > first].min(initial=high[-1])))
        gain = np.count_nonzero(right(X @ tried)) - np.count_nonzero(right(X @ coef))
        if gain * labels.settings.miss_bits > bits_of(tried[j]) - bits_of(coef[j]) and gain > 0:
            coef = tried
    return coef


def _stepped(op: str, whole: Term, unit: float) -> Term:
    """Return a number rounded up or down to a multiple of a unit."""
    if unit == 1:
        return Term(op, (whole,))
    per_unit = t.product(t.number(1 / unit), whole) if unit < 1 else Term("/", (whole, t.number(unit)))
    return t.product(t.number(unit), Term(op, (per_unit,)))


def _sum(terms: Sequence[Product], coef: FloatArray) -> Term:
    parts = []
    for term, w in zip(terms, coef.tolist(), strict=True):
        if w:
            inverse = float(f"{1 / w:.{DECIMALS - 1}e}")
            if term and len(digits_of(inverse)) < len(digits_of(w)):
                parts.append(Term("/", (written(term), t.number(inverse))))
                continue
            factors = ([] if w == 1 and term else [t.number(w)]) + ([written(term)] if term else [])
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
    flags = [term[0] for term in logs if len(term) == 1 and term[0] in sample.numbers and sample.is_flag(term[0])]
    powers = [(term, w) for term, w in logs.items() if not any(is_condition(one) or one in flags for one in term)]
    tables: dict[int, FloatArray] = {}
    for term, w in logs.items():
        if (term, w) in powers or term[0] in flags:
            continue
        category = sample.category_of(term[0]) if len(term) == 1 else None
        if category is None:
            return None
        levels = tables.setdefault(sample.categories.index(category), np.zeros(len(category)))
        levels += w * (np.bincount(category.codes, sample.factor(term[0]), minlength=len(category)) > 0)
    ways = [(sample.categories[place], np.exp(levels)) for place, levels in tables.items()]
    ways = _not_said_twice(ways)
    for factors in product(*(list(_factors(term, w)) for term, w in powers)):
        base: Product = tuple(factor for group in factors for factor in group)
        found = _with_tables(identity, base, sorted(ways, key=lambda way: -len(way[0])), flags)
        if found is not None and found.n_agree >= fit.n_agree - max(2, round(0.01 * len(sample))):
            return pruned(found)
    return None


def _not_said_twice(ways: Sequence[tuple[Category, FloatArray]]) -> list[tuple[Category, FloatArray]]:
    """Return the tables without those whose level follows from that of another one; numbers come first."""
    kept: list[tuple[Category, FloatArray]] = []
    for way in sorted(ways, key=lambda way: way[0].number is None):
        pairs = [other.codes * len(way[0]) + way[0].codes for other, _ in kept]
        if not any(len(np.unique(both)) == len(np.unique(both // len(way[0]))) for both in pairs):
            kept.append(way)
    return kept


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
    identity: Labels, base: Product, tables: Sequence[tuple[Category, FloatArray]], flags: Sequence[Term]
) -> Fit | None:
    """Return a product with a table for each category: of the largest with rates, of the others with factors.

    The numbers of one table are fitted while those of the others stand. Rates are also those of a flag.
    """
    cells: list[Product] = [base]
    for category, _ in tables:
        cells = [level for cell in cells for level in category.by_level(cell)]
    for flag in flags:
        cells += [(*cell, flag) for cell in cells]
    if len(cells) <= identity.settings.cells:  # a number for each: whether they are products, the form will tell
        return identity.fit(cells)
    factors = [table_of(category, numbers) for category, numbers in tables]
    found = None
    for k in (*reversed(range(len(tables))), *reversed(range(len(tables)))):
        fixed = (*base, *(factor for j, factor in enumerate(factors) if j != k))
        terms = tables[k][0].by_level(fixed)
        for flag in flags:
            terms += [(*term, flag) for term in terms]
        found = identity.fit(terms)
        if found is None:
            return None
        found = in_short_numbers(found)
        numbers = np.array([found.coefficient(term) for term in terms[: len(tables[k][0])]])
        factors[k] = table_of(tables[k][0], numbers) if numbers.all() else factors[k]
    return found
