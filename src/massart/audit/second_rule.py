"""Another rule that some rows follow: the wrong rows, which are not wrong at random, or those of a segment.

A second rule among the wrong rows is looked for where nothing else explains enough of them: a second rule that is ten
times the first one, or the first one without a term, is said in these words. The test is that of a list of rules
(:mod:`massart.certificate.mechanisms`). Of a file larger than memory it is looked for in the rows looked at closely,
and recognized in the others. The rule of a segment in which the rule of the table breaks is looked for in the same
terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from massart.audit.error_types import RowErrorType
from massart.audit.implied import columns_read, plain_terms, with_constant
from massart.certificate import FurtherRule, span_of
from massart.report import explain_second
from massart.rows import IDENTITY, Agreement, ArrayRows, FloatArray, Level
from massart.rules import Columns, Formula, Summand, Term, TermMatrix, compose

if TYPE_CHECKING:
    from massart.audit.table_audit import Audit

FAMILY = "another rule"

FEWEST_ROWS, FEWEST_SHARE = 30, 0.01
"""Rows without an explanation among which a second rule is looked for, and their share of the table."""

MOST_COLUMNS = 60
"""Columns in which it is looked for, at most."""

TERMS_TO_CHOOSE_FROM = 1e6
"""How many terms labels chose from, for each term of the first rule that is not a column: the test pays for them."""

_SHOWN_TERMS = 6  # in the name of an error type


@dataclass(frozen=True, slots=True, eq=False)
class SecondRule:
    """A rule that wrong rows follow."""

    formula: Formula
    agreement: Agreement  # when a row agrees with it
    test: FurtherRule  # the rule against chance, repeated errors and the first rule
    rows: NDArray[np.intp]  # kept wrong rows that follow it
    n_rows: int  # number of all wrong rows that follow it: those of the file, where it is larger than memory
    is_of_some: bool = False  # whether it was tested in some rows of a file only

    @property
    def explanation(self) -> str:
        """What is known of it, in words."""
        formula = self.formula.text(_SHOWN_TERMS)
        return explain_second(self.n_rows, formula, self.test, is_of_some=self.is_of_some)

    @property
    def kind(self) -> RowErrorType:
        """What is said of a row that follows it."""
        return RowErrorType(f"{FAMILY}: {self.formula.expression(_SHOWN_TERMS)}", 0, FAMILY)

    @property
    def reads(self) -> frozenset[str]:
        """Columns that it reads."""
        return frozenset(columns_read(self.formula))

    def of_file(self, rows: NDArray[np.intp], n_rows: int) -> SecondRule:
        """Return it with the rows that were kept and the number of rows of a file that follow it."""
        return replace(self, rows=rows, n_rows=n_rows, is_of_some=True)

    def follow(self, columns: Columns, given: FloatArray, some: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those of some rows that follow it, given all of them; columns that it does not use are not read."""
        if not len(some):
            return some
        formula, agreement = self.formula, self.agreement
        places = [j for j, term in enumerate(formula.all_terms) if term.coef]
        constant = [np.ones(len(some))] if formula.intercept is not None and formula.intercept.coef else []
        X = np.column_stack([np.zeros((len(some), 0)), TermMatrix(columns, _used(formula))[some], *constant])
        if agreement.inputs:
            agreement = replace(agreement, inputs=tuple(agreement.inputs[j] for j in places))
        return some[agreement.agree(X, given[some], formula.coef[places])]


def second_rule_of(audit: Audit, unexplained: NDArray[np.intp]) -> SecondRule | None:
    """Return the rule that many of some wrong rows follow; None where there is none, or it is not looked for.

    It is a sum of the plain columns and the terms of the first rule.
    """
    n, agreement, columns = len(audit.given), audit.agreement, audit.design.columns
    is_in_memory = audit.chains is None and audit.saved is None and columns.n_rows == n
    if not audit.is_rule or not is_in_memory or agreement.level is Level.NOISE:
        return None
    if len(unexplained) < max(FEWEST_ROWS, FEWEST_SHARE * n):
        return None
    terms, n_chosen = _terms_of(audit)
    if not 0 < len(terms) <= MOST_COLUMNS:
        return None
    matrix, constant = TermMatrix(columns, terms), audit.formula.intercept is not None

    def values(rows: NDArray[np.intp]) -> FloatArray:
        return with_constant(matrix[rows], len(terms) + constant)

    from massart.recover import GLIMPSE_ROWS, KnownRule, Search, may_follow_one

    rng, half = np.random.default_rng(0), agreement.slack(audit.formula.coef)
    some = rng.choice(unexplained, min(len(unexplained), GLIMPSE_ROWS), replace=False)
    if not may_follow_one(values(some), audit.given[some], half, rng):
        return None
    X, among = values(np.arange(n)), np.zeros(n, dtype=bool)
    among[unexplained] = True
    search = Search(X, audit.given, _tolerance(agreement), hypotheses=TERMS_TO_CHOOSE_FROM**n_chosen)
    first = KnownRule(audit.formula.predict(audit.X), audit.agree | audit.last_place, half)
    found = search.further([first], among)
    if found is None:
        return None
    formula = composed(audit.formula.target, terms, (found.coef, found.fractions), X[found.fits & audit.wrong])
    second = SecondRule(formula, found.agreement, found.test, np.empty(0, dtype=np.intp), 0)
    # Those with a rarer explanation, too: the frequent one goes first.
    rows = second.follow(columns, audit.given, np.flatnonzero(audit.wrong))
    return replace(second, rows=rows, n_rows=len(rows))


def _tolerance(agreement: Agreement) -> float | Literal["auto"]:
    return agreement.label if agreement.level is Level.GIVEN else "auto"


def _used(formula: Formula) -> list[Term]:
    """Return the terms of a formula that count."""
    return [term.term for term in formula.terms if term.coef and term.term is not None]


def _terms_of(audit: Audit) -> tuple[tuple[Term, ...], int]:
    """Return the plain columns and the other terms of the rule, and how many of these labels may have chosen."""
    plain = plain_terms(audit.plan.encoding)
    chosen = [term for term in _used(audit.formula) if term not in plain and not term.needs_order]
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


MOST_ROWS = 5_000
"""Rows of a segment among which its rule is looked for, at most."""

ROWS_A_COLUMN = 3
"""A segment with fewer rows for each column that varies in it has no rule: any table has a formula for so few."""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentRule:
    """What the rows of a segment follow."""

    formula: Formula
    n_agree: int  # rows of the segment that follow it, of those that were looked at
    n_rows: int

    def __str__(self) -> str:
        return f"{self.formula.text()} ({self.n_agree:,} of {self.n_rows:,})"


def with_segment_rule(audit: Audit, seed: int = 0) -> Audit:
    """Return an audit with the rule of its segment, if its rows have one.

    It is a sum of the terms of the first rule, or of these and the plain columns, and needs a majority of the rows in
    every direction. That the rows of a segment were chosen by labels is not accounted for: nothing is claimed
    but how many rows follow it.
    """
    segment, columns = audit.segment, audit.design.columns
    if segment is None or not segment.is_accused or not audit.is_rule or columns.n_rows != len(audit.agree):
        return audit
    if audit.agreement.level is Level.NOISE:
        return audit
    rows = np.flatnonzero(segment.members(audit.table)[audit.design.kept])
    rng = np.random.default_rng(seed)
    if len(rows) > MOST_ROWS:
        rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
    used = tuple(term for term in _used(audit.formula) if not term.needs_order)
    for terms in dict.fromkeys((used, _terms_of(audit)[0])):
        found = _rule_of(audit, rows, terms, rng)
        if found is not None:
            return audit.having(segment_rule=found)
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
    from massart.recover import recover

    table = ArrayRows(X[:, varied], audit.given[rows], intercept=True)
    # One round: a rule that hardly half of a segment follows took ten minutes to be sure of, and is only a hint.
    found = recover(table, tolerance=_tolerance(audit.agreement), inliers="exact", rng=rng, search=1)
    (certificate,) = found.certificates
    n_agree = int(np.count_nonzero(found.agree))
    if not certificate.verdict.stands or 2 * n_agree <= len(rows):
        return None
    shown = [terms[j] for j in varied.tolist()]
    numbers = found.coef[:, 0], found.fractions[0], found.standard_errors[:, 0]
    formula = compose(audit.formula.target, shown, *numbers, certificate, IDENTITY)
    return SegmentRule(formula, n_agree, len(rows))
