"""What a rule costs as it is written, and its numbers in few digits.

``fee = 0.1 * kWh + 0.05 * max(0, kWh - 200)`` can also be written as two intervals with a rate and an amount each, or
with a hinge from above. All of these give the same values. Of these, an author writes the one that takes fewest bits:
each number its digits, each column, operation and level a word. A number that stands in several places is written once,
and so is a table: its name, and a number for each case. The bits of the rows that do not agree are added, as in the
search, so that forms may also differ a little in what they give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from massart.rows import BoolArray, FloatArray, Link
from massart.rules.grow.fit import SLACK, Fit
from massart.rules.grow.sample import Product, Sample, clip_of, is_condition, threshold_of
from massart.rules.grow.units import DECIMALS, bits_of, near_numbers
from massart.rules.terms import Part, Term

Form = tuple[list[Product], Link]
"""Terms and limits of a rule, without coefficients."""

_ALIKE = 1e-6  # difference of ratios that are one factor
_SURE = 3.0  # standard errors within which the digits of a coefficient are open
_MOST_ROWS = 4000  # that tell coefficients


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
    errors = np.maximum(
        _SURE * coefficient_errors(Z), fit.labels.settings.tie / (np.sqrt((Z**2).mean(axis=0)) + 1e-300)
    )
    numbers = (near_numbers(float(w), float(e)) for w, e in zip(fit.coef, errors, strict=True))
    return np.array([found[0] if found else w for found, w in zip(numbers, fit.coef.tolist(), strict=True)])


def in_few_digits(fit: Fit) -> Fit:
    """Return the rule with its coefficients as they are written, if the rows cost no more then."""
    short = Fit(fit.labels, fit.terms, written_coefficients(fit), fit.limits, fit.X)
    return short if short.bits.sum() <= fit.bits.sum() else fit


def cost(fit: Fit) -> float:
    """Return the bits of the rows that do not agree, and of the rule as it is written."""
    return float(fit.bits.sum()) + written_bits(fit, written_coefficients(fit))


def written_bits(fit: Fit, coef: FloatArray) -> float:
    """Return the bits of what is written, with coefficients in few digits.

    Terms that are the same but for conditions, no two of which hold in the same row, are a table: what they share and
    the columns of the conditions are written once.
    """
    sample, terms, word = fit.labels.sample, fit.terms, fit.labels.settings.word_bits
    limits = [limit for limit in (fit.limits.lower, fit.limits.upper) if np.isfinite(limit)]
    inner: dict[object, float] = {}
    for factor in factors_of(terms):
        inner.update(_numbers(factor))
    left, factors = _common_factors(terms, coef)
    bits = sum(inner.values()) + sum(word + bits_of(limit) for limit in limits)
    for factor, ratio in factors:
        bits += bits_of(ratio) + word * (1 + _exception(sample, factor))
    groups: dict[tuple[Product, frozenset[Part]], list[int]] = {}
    for place in left:
        rest = tuple(factor for factor in terms[place] if not is_condition(factor))
        subjects = frozenset(factor.parts[0] for factor in terms[place] if is_condition(factor))
        groups.setdefault((rest, subjects), []).append(place)
    rests = Counter(rest for rest, _ in groups)
    for (rest, subjects), places in groups.items():
        cases = [tuple(factor for factor in terms[place] if is_condition(factor)) for place in places]
        holding = np.sum([sample.column(case) for case in cases], axis=0)
        once = sum(map(_words, rest))
        if len(places) > 1 and holding.max() == 1 and (holding.min() == 1 or rests[rest] == 1):
            sets = [len(factor.parts) - 2 for factor in factors_of(cases) if factor.op == "in"]
            merged = sum(sets) - max(sets, default=0)  # the largest one is all others
            named = 0 if holding.min() == 1 else len(places)  # a table of some cases says which
            numbers = {round(float(coef[place]), DECIMALS) for place in places}
            bits += sum(map(bits_of, numbers)) + word * (
                fit.labels.settings.table_words + once + len(subjects) + merged + named
            )
            continue
        for place, case in zip(places, cases, strict=True):
            conditions = sum(_exception(sample, factor) for factor in case)
            bits += bits_of(coef[place]) + word * (bool(terms[place]) + once + conditions)
    return bits


def _exception(sample: Sample, condition: Term) -> int:
    """Return the words of a factor that is added; a condition names what is rare, and one more word if it does not."""
    return _words(condition) + (is_condition(condition) and float(sample.factor(condition).mean()) > 0.5)


def _common_factors(terms: Sequence[Product], coef: FloatArray) -> tuple[list[int], list[tuple[Term, float]]]:
    """Return the terms that are left, and factors ``1 + ratio * factor``, where these are taken out of a rule."""
    left, found = list(range(len(terms))), []
    keys = [frozenset(Counter(term).items()) for term in terms]
    for factor in factors_of(terms):
        own = [j for j in left if factor in terms[j]]
        bases = [frozenset(Counter(without(terms[j], factor)).items()) for j in own]
        if not own or not all(base in keys and keys.index(base) in left for base in bases):
            continue
        divisors = [float(coef[keys.index(base)]) for base in bases]
        if not all(divisors):
            continue
        ratios = [float(coef[j]) / divisor for j, divisor in zip(own, divisors, strict=True)]
        is_percentage = min(abs(abs(ratios[0]) - size) for size in (1, 0.01)) < _ALIKE
        is_surcharge = len(own) > 1 and abs(abs(ratios[0]) - 1) > _ALIKE
        if np.ptp(ratios) <= _ALIKE and (is_surcharge if is_condition(factor) else is_percentage):
            found.append((factor, round(ratios[0], DECIMALS)))
            left = [j for j in left if j not in own]
    return left, found


def _words(factor: Term) -> int:
    """Return the columns, operations and levels of a factor; a name is the word, not the operation of reading it."""
    known = threshold_of(factor)
    if known is not None:  # what exceeds a threshold; what is missing to it is said less often
        return 1 + _words(known[0]) + (not known[2])
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


def factors_of(terms: Iterable[Product]) -> list[Term]:
    """Return the factors of some terms, each once."""
    return list(dict.fromkeys(factor for term in terms for factor in term))


def without(term: Product, factor: Term) -> Product:
    """Return a product without a factor, once."""
    place = term.index(factor)
    return (*term[:place], *term[place + 1 :])


# Numbers in few digits.


def in_short_numbers(fit: Fit) -> Fit:
    """Return the rule with coefficients in few digits where hardly a row is lost, or even more rows agree."""
    labels = fit.labels
    inside = fit.agree & (labels.y > fit.limits.lower) & (labels.y < fit.limits.upper)
    lost = max(2, round(labels.settings.loose * labels.n))
    coef = short_coefficients(fit.matrix, labels.y, SLACK * labels.half_widths, fit.coef, inside, lost)
    short = Fit(labels, fit.terms, coef, fit.limits, fit.X)
    return short if short.n_agree >= fit.n_agree - lost else fit


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

    errors = np.full(len(coef), np.inf)
    for _ in coef:
        free = ~fixed
        errors[free] = 3 * coefficient_errors(A[:, free]) + 1e-12 * np.abs(coef[free])
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
    for j in range(len(coef)):  # once more, where the others are short now
        for number in near_numbers(float(coef[j]), max(4 * errors[j], 1.5 / sizes[j])):
            w = coef.copy()
            w[j] = number
            if n_agree(w) >= needed:
                coef = w
                break
    return coef
