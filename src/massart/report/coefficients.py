"""The coefficients, each with how exactly it is known and which rows determine it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from massart.report.columns import clean
from massart.report.findings import Findings
from massart.report.words import count, listed, name_of, share
from massart.rules.formula import ESTIMATE_DIGITS, SHOWN_DIGITS, Summand


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One row of the table of coefficients, in words."""

    label: str
    number: str
    certainty: str
    evidence: str
    determined: bool  # whether the rows that agree determine it
    silent: bool  # whether it is zero, and not just left out or open


def coefficients(findings: Findings) -> Iterator[Coefficient]:
    """Describe each coefficient, the constant last."""
    formula, certificate = findings.formula, findings.certificate
    groups = {column: group for group in certificate.undetermined_columns for column in group}
    thin, names = dict(certificate.thin), formula.names
    digits = ESTIMATE_DIGITS if formula.noisy else SHOWN_DIGITS
    for column, term in enumerate(formula.all_terms):
        is_constant = column == len(formula.terms)
        if not term.is_shown:
            continue
        evidence = ""
        if column in thin:
            evidence = f"left out: it rests on {count(thin[column], 'rows')}"
        elif not term.determined:
            evidence = _open(column, groups.get(column, ()), names)
        elif findings.usage:
            n, k = findings.usage[column].n_rows, findings.usage[column].n_agree
            evidence = f"{k:,} of {n:,} {'rows' if is_constant else 'rows that use it'} agree ({share(k, n)})"
        yield Coefficient(
            clean(term.label),
            term.number(digits),
            _certainty(term, digits, column in thin),
            evidence,
            term.determined,
            silent=formula.has_no_effect(term) and column not in thin,
        )


def _certainty(term: Summand, digits: int, thin: bool) -> str:
    if not term.determined:
        return "open"
    if thin:
        return "not known"
    if term.exact is not None:
        return "exact"
    if term.standard_error > 0:
        return f"± {term.standard_error:.2g}"
    return "not known" if math.isnan(term.standard_error) else f"rounded to {digits} digits"


def _open(column: int, group: tuple[int, ...], names: tuple[str, ...]) -> str:
    if len(group) == 1:
        return "not determined: no agreeing row uses it"
    partners = [clean(name_of(other, names)) for other in group if other != column]
    return f"not determined: moves together with {listed(partners)}" if partners else "not determined"
