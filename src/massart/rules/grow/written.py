"""What a rule costs as it is written.

``fee = 0.1 * kWh + 0.05 * max(0, kWh - 200)`` can also be written as two intervals with a rate and an amount each, or
with a hinge from above. All of these give the same values. Of these, an author writes the one that takes fewest bits:
each number its digits, each column, operation and level a word. A number that stands in several places is written once,
and so is a table: its name, and a number for each case. The bits of the rows that do not agree are added, as in the
search, so that forms may also differ a little in what they give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from massart.rows import FloatArray, Link
from massart.rules.grow.evidence import STEPPED
from massart.rules.grow.fit import Fit
from massart.rules.grow.numbers import written_coefficients
from massart.rules.grow.sample import Product, Sample, clip_of, factors_of, is_condition, key_of, threshold_of
from massart.rules.grow.units import DECIMALS, bits_of
from massart.rules.terms import Part, Term

Form = tuple[list[Product], Link]
"""Terms and limits of a rule, without coefficients."""

_ALIKE = 1e-6  # difference of ratios that are one factor
_LN_10 = Term("log", (Term("number", (10.0,)),))
_TABLE = 4  # words of a table of factors: its name, and what it goes by


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
    left, factors = _common_factors(sample, terms, coef)
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
            bits += sum(bits_of(coef[place]) for place in places) + word * (
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


def _common_factors(
    sample: Sample, terms: Sequence[Product], coef: FloatArray
) -> tuple[list[int], list[tuple[Term, float]]]:
    """Return the terms that are left, and factors ``1 + ratio * factor``, where these are taken out of a rule."""
    left, found = list(range(len(terms))), []
    keys = [key_of(term) for term in terms]
    for factor in factors_of(terms):
        own = [j for j in left if factor in terms[j]]
        bases = [key_of(without(terms[j], factor)) for j in own]
        if not own or not all(base in keys and keys.index(base) in left for base in bases):
            continue
        divisors = [float(coef[keys.index(base)]) for base in bases]
        if not all(divisors):
            continue
        ratios = [float(coef[j]) / divisor for j, divisor in zip(own, divisors, strict=True)]
        sizes = (0.01,) if factor.op in STEPPED else (1, 0.01)  # one more step than the full ones is a started one
        is_percentage = min(abs(abs(ratios[0]) - size) for size in sizes) < _ALIKE
        is_surcharge = len(own) > 1 and abs(ratios[0] + 1) > _ALIKE
        is_chosen = is_condition(factor) or (factor in sample.numbers and sample.is_flag(factor))
        if np.ptp(ratios) <= _ALIKE and (is_surcharge if is_chosen else is_percentage):
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
    if factor.op == "/" and inside[1:] == [_LN_10]:  # a decimal logarithm is one word
        return _words(inside[0])
    cases = [one for part in inside for one in part.factors if is_condition(one)] if factor.op == "+" else []
    if len(cases) == len(inside) and len({one.parts[0] for one in cases}) == 1:
        return _TABLE
    return 1 + sum(map(_words, inside))


def _numbers(factor: Term) -> dict[object, float]:
    """Return the bits of the numbers inside a factor, each with what it is compared with."""
    if factor == _LN_10:
        return {}
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


def without(term: Product, factor: Term) -> Product:
    """Return a product without a factor, once."""
    place = term.index(factor)
    return (*term[:place], *term[place + 1 :])
