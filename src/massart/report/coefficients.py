"""The coefficients, each with how exactly it is known and which rows determine it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from massart.formula import ESTIMATE_DIGITS, SHOWN_DIGITS, Term
from massart.report.columns import clean
from massart.report.findings import Findings, Support
from massart.report.wording import share

CONSTANT = "the intercept"
"""What a certificate calls the constant."""

_MOST_PARTNERS = 6


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One row of the table of coefficients, in words."""

    label: str
    number: str
    certainty: str
    evidence: str
    determined: bool


def coefficients(findings: Findings) -> Iterator[Coefficient]:
    """Describe each coefficient, the constant last."""
    formula = findings.formula
    linked = {str(name): group for group in findings.certificate.undetermined_columns for name in group}
    terms = [(term, term.label) for term in formula.terms]
    if formula.intercept is not None:
        terms.append((formula.intercept, CONSTANT))
    supports = (*findings.support, *[None] * len(terms))
    for (term, key), support in zip(terms, supports, strict=False):
        evidence = _support(support, key) if term.determined else _open(key, linked.get(key, ()))
        digits = ESTIMATE_DIGITS if formula.noisy else SHOWN_DIGITS
        yield Coefficient(clean(term.label), term.number(digits), _certainty(term, digits), evidence, term.determined)


def _certainty(term: Term, digits: int) -> str:
    if not term.determined:
        return "open"
    if term.exact is not None:
        return "exact"
    if term.standard_error > 0:
        return f"± {term.standard_error:.2g}"
    return "not known" if math.isnan(term.standard_error) else f"rounded to {digits} digits"


def _support(support: Support | None, key: str) -> str:
    if support is None:
        return ""
    used = "rows" if key == CONSTANT else "rows that use it"
    return f"{support.n_agree:,} of {support.n_rows:,} {used} agree ({share(support.n_agree, support.n_rows)})"


def _open(key: str, group: tuple[str | int, ...]) -> str:
    if len(group) == 1:
        return "not determined: no agreeing row uses it"
    partners = [clean(str(name)) for name in group if name != key]
    if not partners:
        return "not determined by the rows that agree"
    if len(partners) > _MOST_PARTNERS:
        partners = [*partners[:_MOST_PARTNERS], f"{len(partners) - _MOST_PARTNERS} more"]
    return f"not determined: moves together with {', '.join(partners)}"
