"""Simpler rules that cost less: without a term, with levels written as numbers, between two limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from massart.rows import Link
from massart.rules.grow.evidence import growth_factors
from massart.rules.grow.fit import NO_LIMITS, Fit
from massart.rules.grow.forms import corners
from massart.rules.grow.sample import EACH, Category, Product, divided, interval
from massart.rules.grow.units import simplest
from massart.rules.terms import Term

_MOST_TERMS = 45  # of a rule of which terms are left out one by one
_LEFT_OUT = 6  # terms that are tried
_SHORT = 12  # terms up to which a fit may start from nothing
_LIMITS = 4  # most frequent labels that may be limits
_FREQUENT = 0.01  # share of the rows that have a limit
_FREE = 0.1  # share of the rows that are not at a limit


def pruned(fit: Fit) -> Fit:
    """Leave out terms, write lines that meet as hinges and levels as numbers, as long as the score gets better."""
    if len(fit.terms) > _MOST_TERMS:
        return fit
    fit = _without_terms(fit)
    for terms, limits in corners(fit):
        start = np.linalg.lstsq(fit.labels.sample.matrix(terms), fit.predicted, rcond=1e-12)[0]  # what the rule gives
        found = fit.labels.fit(terms, start.astype(float), limits, near=fit.agree)
        found = None if found is None else _without_terms(found)
        if found is not None and found.total < fit.total - 1:
            fit = found
    for base, category, own in _blocks(fit):
        if set(own) <= set(fit.terms):
            fit = _merged(fit, base, category, own)
    return fit


def _without_terms(fit: Fit) -> Fit:
    again = True
    while again and len(fit.terms) > 1:
        again, labels, sample = False, fit.labels, fit.labels.sample
        changes = zip(fit.terms, fit.coef, strict=True)
        costs = [float(labels.bits(fit.residuals + w * sample.column(term)).sum()) for term, w in changes]
        for j in np.argsort(costs, kind="stable")[:_LEFT_OUT]:
            others = [term for k, term in enumerate(fit.terms) if k != j]
            found = labels.fit(others, np.delete(fit.coef, j), fit.limits, quick=True, near=fit.agree)
            if found is not None and found.total <= fit.total:
                fit, again = found, True
                break
    return fit


def _blocks(fit: Fit) -> list[tuple[Product, Category, list[Product]]]:
    """Return the terms that are the same but for a level, with what they share."""
    sample = fit.labels.sample
    found: dict[tuple[Product, int], list[Product]] = {}
    for term in fit.terms:
        for factor in term:
            category = sample.category_of(factor) if factor.op in EACH else None
            if category is not None:
                base = tuple(one for one in term if one is not factor)
                found.setdefault((base, sample.categories.index(category)), []).append(term)
    return [(base, sample.categories[k], terms) for (base, k), terms in found.items() if len(terms) > 1]


def _merged(fit: Fit, base: Product, category: Category, terms: list[Product]) -> Fit:
    """Write rates by level as a number times the level, or as one rate, if that costs less."""
    kept = [(term, w) for term, w in zip(fit.terms, fit.coef, strict=True) if term not in terms]
    old = [term for term, _ in kept]
    for new in (*_as_numbers(fit, base, category), [base]):
        if len(old) + len(new) < _SHORT:
            found = fit.labels.fit([*old, *new], limits=fit.limits)
        else:
            middle = float(np.median([fit.coefficient(term) for term in terms]))
            found = fit.labels.fit([*old, *new], [*(w for _, w in kept), *[middle] * len(new)], fit.limits)
        if found is not None and found.total < fit.total - 1:
            return found
    return fit


def _as_numbers(fit: Fit, base: Product, category: Category) -> Iterator[list[Product]]:
    number, sample = category.number, fit.labels.sample
    if number is None:
        return
    positive = sample.is_positive(number)
    if fit.labels.scale == "log":
        if positive:
            yield [(*base, Term("log", (number,)))]
        for factor in growth_factors(sample, number):
            yield [(*base, Term("log", (factor,)))]
        return
    yield [(*base, number)]
    yield [base, (*base, number)]
    if positive:
        yield [(*base, divided(number))]


def limited(fit: Fit) -> Fit:
    """Try caps and floors at labels that many rows have, one after the other; drop a limit that no longer pays."""
    best = _limited(_without_limits(fit))
    return best if best.limits == fit.limits else _limited(best)


def _without_limits(fit: Fit) -> Fit:
    labels, best = fit.labels, fit
    for link in (Link(-np.inf, fit.limits.upper), Link(fit.limits.lower, np.inf)):
        if link != fit.limits:
            found = labels.fit(fit.terms, fit.coef, link)
            if found is not None and found.total <= best.total:
                best = found
    return best


def _limited(fit: Fit) -> Fit:
    """Return the rule with the limit that saves most, if there is one."""
    labels, best = fit.labels, fit
    values, counts = np.unique(labels.y[labels.usable], return_counts=True)
    if counts.max() < _FREQUENT * labels.n:
        return fit
    for value in values[np.argsort(-counts, kind="stable")][:_LIMITS].tolist():
        for lower, upper in ((fit.limits.lower, value), (value, fit.limits.upper)):
            if not lower < upper or (lower, upper) == (fit.limits.lower, fit.limits.upper):
                continue
            link = Link(lower, upper)
            refitted = labels.fit(fit.terms, fit.coef, link, cold=True)
            for found in (Fit(labels, fit.terms, fit.coef, link, fit.X), refitted):
                if (
                    found is not None
                    and found.total < best.total - labels.settings.number_bits
                    and _is_limit(found, fit, value)
                ):
                    best = found
    return best


def empty_ends(fit: Fit) -> Fit:
    """Return the rule with 0 at an end of a column, ``(0 if months < 8 else pay * months / 48)``, if rows show it.

    These rows may be too few for a window (``38-severance``: seven of 420). If labels of 0 were wrong as others are,
    any order of them and of the rows that agree would be as likely: that as many come before all that agree has to say
    more bits than a number costs.
    """
    labels, sample = fit.labels, fit.labels.sample
    empty = labels.usable & ~fit.agree & (labels.y == 0)
    if labels.scale != "identity" or fit.limits != NO_LIMITS or not empty.any() or not fit.n_agree:
        return fit
    found = [fit]
    for column in sample.thresholds:
        values = sample.factor(column)
        low, high = values[fit.agree].min(), values[fit.agree].max()
        for beyond, is_low in ((values < low, True), (values > high, False)):
            left = np.count_nonzero(empty) - np.arange(np.count_nonzero(empty & beyond))
            bits = np.log2((left + fit.n_agree) / left).sum()
            if bits > labels.settings.number_bits:
                is_date, at = column in sample.dates, values[empty & beyond]
                last, first = (at.max(), low) if is_low else (high, at.min())
                end = float(first if is_date else simplest(float(last), float(first)))
                condition = interval(column, *((end, np.inf) if is_low else (-np.inf, end)), is_date)
                found.append(Fit(labels, tuple((*term, condition) for term in fit.terms), fit.coef))
    return min(found, key=lambda one: one.total)


def _is_limit(found: Fit, fit: Fit, value: float) -> bool:
    """Return whether rows agree at the limit, others next to it, and no fewer than without it."""
    at = found.predicted == value
    n = found.labels.n
    return bool(
        np.count_nonzero(~at) > _FREE * len(at)
        and found.n_agree >= fit.n_agree
        and np.count_nonzero(found.agree & at) > max(5.0, _FREQUENT * n)
    )
