"""A second rule among the wrong rows: they are not wrong at random, but follow another formula.

It is looked for where nothing else explains enough of them: a second rule that is ten times the first one, or the first
one without a term, is said in these words. The test is that of a list of rules
(:mod:`massart.certificate.mechanisms`). Of a file larger than memory it is looked for in the rows looked at closely,
and recognized in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from massart.audit.error_types import MOST_EXAMPLES, RowErrorType, RowErrorTypes
from massart.certificate import FurtherRule, span_of
from massart.recover.further_rule import GLIMPSE_ROWS, KnownRule, Search, may_follow_one
from massart.report.words import beyond_chance, count
from massart.rows import IDENTITY, Agreement, FloatArray, Level
from massart.rules.columns import Columns
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
"""How many terms labels chose from, for each term of the first rule that is not a column: the test pays for them."""

_SHOWN_TERMS = 6


@dataclass(frozen=True, slots=True, eq=False)
class SecondRule:
    """A rule that wrong rows follow.

    Attributes
    ----------
    formula : Formula
    agreement : Agreement
        When a row agrees with it.
    test : FurtherRule
        The rule against chance, repeated errors and the first rule.
    rows : (m,) array of int
        Kept wrong rows that follow it.
    n_rows : int
        Number of all wrong rows that follow it: those of the file, where it is larger than memory.
    is_of_some : bool
        Whether it was tested in some rows of a file only.
    """

    formula: Formula
    agreement: Agreement
    test: FurtherRule
    rows: NDArray[np.intp]
    n_rows: int
    is_of_some: bool = False

    @property
    def explanation(self) -> str:
        """What is known of it, in words."""
        tested = (
            f" That is said of the rows looked at closely: {self.test.rows:,} of these do." if self.is_of_some else ""
        )
        return (
            f"{count(self.n_rows, 'rows')} follow another rule: {self.formula.text(_SHOWN_TERMS)}. "
            f"{beyond_chance(self.test)}{tested}"
        )

    @property
    def kind(self) -> RowErrorType:
        """What is said of a row that follows it."""
        return RowErrorType(f"{FAMILY}: {self.formula.expression(_SHOWN_TERMS)}", 0, FAMILY)

    @property
    def reads(self) -> frozenset[str]:
        """Columns that it reads."""
        return frozenset(name for term in _used(self.formula) for name in term.columns())

    def of_file(self, rows: NDArray[np.intp], n_rows: int) -> SecondRule:
        """Return it with the rows that were kept and the number of rows of a file that follow it."""
        return replace(self, rows=rows, n_rows=n_rows, is_of_some=True)

    def follow(self, columns: Columns, given: FloatArray, some: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those of some rows that follow it, given all of them."""
        return _following(self.formula, self.agreement, columns, given, some)


def second_rule_of(audit: Audit, unexplained: NDArray[np.intp]) -> SecondRule | None:
    """Return the rule that many of some wrong rows follow; None where there is none, or it is not looked for.

    It is a sum of the plain columns and the terms of the first rule.
    """
    n, agreement, columns = len(audit.given), audit.agreement, audit.design.columns
    at_hand = audit.chains is None and audit.saved is None and columns.n_rows == n
    if not audit.is_rule or not at_hand or agreement.level is Level.NOISE:
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
    formula = composed(audit.formula.target, terms, (found.coef, found.fractions), X[found.known.fits & audit.wrong])
    # Those with a rarer explanation, too: the frequent one goes first.
    rows = _following(formula, found.agreement, columns, audit.given, np.flatnonzero(audit.wrong))
    return SecondRule(formula, found.agreement, found.test, rows, len(rows))


def _used(formula: Formula) -> list[Term]:
    """Return the terms of a formula that count."""
    return [term.term for term in formula.terms if term.coef and term.term is not None]


def _following(
    formula: Formula, agreement: Agreement, columns: Columns, given: FloatArray, some: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return those of some rows that agree with a formula; columns that it does not use are not read."""
    if not len(some):
        return some
    places = [j for j, term in enumerate(formula.all_terms) if term.coef]
    constant = [np.ones(len(some))] if formula.intercept is not None and formula.intercept.coef else []
    X = np.column_stack([np.zeros((len(some), 0)), TermMatrix(columns, _used(formula))[some], *constant])
    if agreement.inputs:
        agreement = replace(agreement, inputs=tuple(agreement.inputs[j] for j in places))
    return some[agreement.agree(X, given[some], formula.coef[places])]


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


def with_second_rule(kinds: RowErrorTypes, second: SecondRule | None) -> RowErrorTypes:
    """Return what happened in each row, with the second rule among it: the most frequent first, as before."""
    if second is None:
        return kinds
    codes = kinds.codes.copy()
    codes[second.rows] = len(kinds.kinds) + 1
    rows = np.bincount(codes, minlength=len(kinds.kinds) + 2)
    named = enumerate((*kinds.kinds, second.kind), 1)
    order = sorted(
        ((code, kind) for code, kind in named if rows[code]), key=lambda one: -rows[one[0]] * one[1].explains
    )
    renamed = np.zeros(len(rows), dtype=np.intp)
    renamed[[code for code, _ in order]] = np.arange(1, len(order) + 1)
    listed = (
        replace(kind, rows=int(rows[code]), examples=tuple(np.flatnonzero(codes == code)[:MOST_EXAMPLES].tolist()))
        for code, kind in order
    )
    return RowErrorTypes(renamed[codes], tuple(listed))
