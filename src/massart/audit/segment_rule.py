"""The rule of the rows in a segment in which the rule of the table breaks: looked for in the same terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from massart.recover import recover
from massart.rows import IDENTITY, ArrayRows, Level
from massart.rules.formula import Formula, compose
from massart.rules.matrix import TermMatrix
from massart.rules.terms import Term

if TYPE_CHECKING:
    from massart.audit.table_audit import Audit

MOST_ROWS, MOST_COLUMNS = 5_000, 60
"""Rows of a segment among which its rule is looked for, and columns in which it is, at most."""

ROWS_A_COLUMN = 3
"""A segment with fewer rows for each column that varies in it has no rule: any table has a formula for so few."""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentRule:
    """What the rows of a segment follow.

    Attributes
    ----------
    formula : Formula
    n_agree, n_rows : int
        Rows of the segment that follow it, of those that were looked at.
    """

    formula: Formula
    n_agree: int
    n_rows: int

    def __str__(self) -> str:
        return f"{self.formula.text()} ({self.n_agree:,} of {self.n_rows:,})"


def with_segment_rule(audit: Audit, seed: int = 0) -> Audit:
    """Return an audit with the rule of its segment, if its rows have one.

    It is a sum of the terms of the first rule, or of these and the plain columns, and needs a majority of the rows in
    every direction. That the rows of a segment were chosen by labels is not accounted for: nothing is claimed
    but how many rows follow it.
    """
    from massart.audit.finding import plain_terms

    segment, columns = audit.segment, audit.design.columns
    if segment is None or not segment.is_accused or not audit.is_rule or columns.n_rows != len(audit.agree):
        return audit
    if audit.agreement.level is Level.NOISE:
        return audit
    rows = np.flatnonzero(segment.members(audit.table)[audit.design.kept])
    rng = np.random.default_rng(seed)
    if len(rows) > MOST_ROWS:
        rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
    plain = plain_terms(audit.plan.encoding)
    used = tuple(term.term for term in audit.formula.terms if term.coef and term.term and not term.term.needs_order)
    for terms in dict.fromkeys((used, (*plain, *(term for term in used if term not in plain)))):
        found = _rule_of(audit, rows, terms, rng)
        if found is not None:
            return replace(audit, segment_rule=found)
    return audit


def _rule_of(
    audit: Audit, rows: NDArray[np.intp], terms: tuple[Term, ...], rng: np.random.Generator
) -> SegmentRule | None:
    """Return the rule of some rows in some terms, those that vary there; None if there is none."""
    if not 0 < len(terms) <= MOST_COLUMNS:
        return None
    X = TermMatrix(audit.design.columns, terms)[rows]
    varied = np.flatnonzero((X != X[:1]).any(axis=0))
    if len(rows) < ROWS_A_COLUMN * (len(varied) + 1) or not len(varied):
        return None
    tolerance: float | Literal["auto"] = audit.agreement.label if audit.agreement.level is Level.GIVEN else "auto"
    table = ArrayRows(X[:, varied], audit.given[rows], intercept=True)
    found = recover(table, tolerance=tolerance, inliers="exact", rng=rng)
    (certificate,) = found.certificates
    n_agree = int(np.count_nonzero(found.agree))
    if not certificate.verdict.stands or 2 * n_agree <= len(rows):
        return None
    shown = [terms[j] for j in varied.tolist()]
    numbers = found.coef[:, 0], found.fractions[0], found.standard_errors[:, 0]
    formula = compose(audit.formula.target, shown, *numbers, certificate, IDENTITY)
    return SegmentRule(formula, n_agree, len(rows))
