"""A second rule among the wrong rows: they are not wrong at random, but follow another formula.

It is looked for where nothing else explains enough of them: a second rule that is ten times the first one, or the first
one without a term, is said in these words. The test is that of a list of rules
(:mod:`massart.certificate.mechanisms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from massart.agreement import Level
from massart.audit.kinds import MOST_EXAMPLES, Kind, Kinds
from massart.certificate import FurtherRule, span_of
from massart.certificate.words import beyond_chance, count
from massart.link import IDENTITY
from massart.recover.further_rule import GLIMPSE_ROWS, KnownRule, Search, may_follow_one
from massart.rows import FloatArray
from massart.rules.formula import Formula, Summand
from massart.rules.matrix import TermMatrix
from massart.rules.terms import Term

if TYPE_CHECKING:
    from massart.audit.table_audit import Audit

FAMILY = "another rule"

FEWEST_ROWS, FEWEST_SHARE = 30, 0.01
"""Rows without an explanation among which a second rule is looked for, and their share of the table."""

MOST_COLUMNS = 60
"""Columns in which it is looked for, at most."""

TERMS_TO_CHOOSE_FROM = 1e6
"""How many terms labels chose from, for each term of the first rule that is no column: the test pays for them."""

_SHOWN_TERMS = 6


@dataclass(frozen=True, slots=True, eq=False)
class SecondRule:
    """A rule that wrong rows follow.

    Attributes
    ----------
    formula : Formula
    rows : (m,) array of int
        Rows that follow it, of those that break the first rule and that nothing else explains.
    test : FurtherRule
        The rule against chance, repeated errors and the first rule.
    """

    formula: Formula
    rows: NDArray[np.intp]
    test: FurtherRule

    @property
    def explanation(self) -> str:
        """What is known of it, in words."""
        return (
            f"{count(len(self.rows), 'rows')} follow another rule: {self.formula.text(_SHOWN_TERMS)}. "
            f"{beyond_chance(self.test)}"
        )


def second_rule_of(audit: Audit, unexplained: NDArray[np.intp]) -> SecondRule | None:
    """Return the rule that many of some wrong rows follow; None where there is none, or it is not looked for.

    It is a sum of the plain columns and the terms of the first rule.
    """
    n, agreement, columns = len(audit.given), audit.agreement, audit.design.columns
    in_memory = audit.whole is None and audit.chains is None and audit.saved is None and columns.n_rows == n
    if not audit.is_rule or not in_memory or agreement.level is Level.NOISE:
        return None
    if len(unexplained) < max(FEWEST_ROWS, FEWEST_SHARE * n):
        return None
    terms, n_chosen = _terms_of(audit)
    if not 0 < len(terms) <= MOST_COLUMNS:
        return None
    matrix, constant = TermMatrix(columns, terms), audit.formula.intercept is not None

    def values(rows: NDArray[np.intp]) -> FloatArray:
        found = matrix[rows]
        return np.column_stack([found, np.ones(len(rows))]) if constant else found

    rng, half = np.random.default_rng(0), agreement.slack(audit.formula.coef)
    some = rng.choice(unexplained, min(len(unexplained), GLIMPSE_ROWS), replace=False)
    if not may_follow_one(values(some), audit.given[some], half, rng):
        return None
    X, among = values(np.arange(n)), np.zeros(n, dtype=bool)
    among[unexplained] = True
    tolerance: float | Literal["auto"] = agreement.label if agreement.level is Level.GIVEN else "auto"
    search = Search(X, audit.given, tolerance, hypotheses=TERMS_TO_CHOOSE_FROM**n_chosen)
    first = KnownRule(audit.formula.predict(audit.X), audit.agree | audit.last_place, half)
    found = search.further([first], among)
    if found is None:
        return None
    rows = np.flatnonzero(
        found.known.fits & audit.wrong
    )  # those with a rarer explanation, too: the frequent one goes first
    return SecondRule(composed(audit.formula.target, terms, (found.coef, found.fractions), X[rows]), rows, found.test)


def _terms_of(audit: Audit) -> tuple[tuple[Term, ...], int]:
    """Return the plain columns and the other terms of the rule, and how many of these labels may have chosen."""
    from massart.audit.finding import plain_terms

    plain = plain_terms(audit.plan.encoding)
    used = [term.term for term in audit.formula.terms if term.coef and term.term is not None]
    chosen = [term for term in used if term not in plain and not term.needs_order]
    return (*plain, *chosen), len(chosen)


def composed(
    target: str,
    terms: tuple[Term, ...],
    numbers: tuple[FloatArray, Sequence[Fraction | None]],
    rows: FloatArray,
) -> Formula:
    """Return a rule as a formula, given its coefficients and their exact values; `rows` are those that follow it."""
    open_columns = {j for group in span_of(rows).groups for j in group}
    written = [
        Summand(term, float(coef), exact, 0.0, j not in open_columns)
        for j, (term, coef, exact) in enumerate(zip([*terms, None], numbers[0].tolist(), numbers[1], strict=False))
    ]
    return Formula(target, tuple(written[: len(terms)]), (*written[len(terms) :], None)[0], IDENTITY, noisy=False)


def with_second_rule(kinds: Kinds, second: SecondRule | None) -> Kinds:
    """Return what happened in each row, with the second rule among it: the most frequent first, as before."""
    if second is None:
        return kinds
    codes = kinds.codes.copy()
    codes[second.rows] = len(kinds.kinds) + 1
    label = f"{FAMILY}: {second.formula.expression(_SHOWN_TERMS)}"
    rows = np.bincount(codes, minlength=len(kinds.kinds) + 2)
    named = enumerate((*kinds.kinds, Kind(label, 0, FAMILY)), 1)
    order = sorted(
        ((code, kind) for code, kind in named if rows[code]), key=lambda one: -rows[one[0]] * one[1].explains
    )
    renamed = np.zeros(len(rows), dtype=np.intp)
    renamed[[code for code, _ in order]] = np.arange(1, len(order) + 1)
    listed = (
        replace(kind, rows=int(rows[code]), examples=tuple(np.flatnonzero(codes == code)[:MOST_EXAMPLES].tolist()))
        for code, kind in order
    )
    return Kinds(renamed[codes], tuple(listed))
