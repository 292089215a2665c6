"""The rule that the rows of a table give, and second looks at its columns: those left out, and blanks that mean 0."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.implied import columns_read
from massart.audit.question import ReadSample, Request, options_of, prepare
from massart.audit.second_rule import with_segment_rule
from massart.audit.table_audit import Audit
from massart.certificate import Certificate
from massart.report import Notice
from massart.rules import (
    Columns,
    Formula,
    FoundRule,
    SearchOptions,
    compared,
    compose,
    find_rule,
    fit_terms,
    judge_again,
)
from massart.tables import Number, Plan, Table, column_values, role_of

BLANKS = 0.02
"""A blank may mean 0 in a column where this share of the rows, at least, has none, or has a number."""

SMALL = 600
"""Rows of a table up to which rows that are added may show more than a rule that is known: it is sought anew, too
(38-severance of the office set)."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The answer of a table, and the audit that says it."""

    audit: Audit
    answer: FoundRule

    def formula(self, certificate: Certificate) -> Formula:
        """Return the rule, written as another certificate of it says what is determined."""
        return _composed(self.audit.formula.target, self.answer, certificate, self.audit.design.columns)


def find(table: Table | ReadSample, request: Request, *, seen: NDArray[np.intp] | None = None) -> Found:
    """Find the rule behind a column of a table in memory, or in some rows of a file.

    Columns that the rule does not use cost no rows: where they have gaps, it is looked for once more without them.
    Where terms that are given were chosen with the labels of rows that were `seen`, the others confirm; none are seen
    if all were, and the number of hypotheses pays for it.
    """
    sample = table if isinstance(table, ReadSample) else ReadSample(table)
    start = time.thread_time()
    found = _find(sample, request, seen)
    again = None
    for other in (_with_blanks_as_zero, _without_gaps) if seen is None else (_without_gaps,):
        if again is None:  # with what is left of the budget
            again = other(sample, request.again(time.thread_time() - start), found)
    found = found if again is None else again
    return replace(found, audit=with_segment_rule(found.audit, request.seed))


def _without_gaps(sample: ReadSample, request: Request, found: Found) -> Found | None:
    """Return the rule without columns that it does not use and that lack values, if more rows follow it; else None."""
    audit = found.audit
    used = columns_read(audit.formula)
    gaps = {gap.column: 0 for gap in audit.design.gaps if gap.column not in used | {request.column}}
    if not gaps or request.are_columns_named or request.strict or not audit.is_rule or not used:
        return None
    # The labels chose what is left out, which is a second look at them.
    known = found.answer.grown is not None
    again = _find(replace(sample, unused=[*gaps]), request, rule=found)
    if known and sample.table.n_rows <= SMALL:
        other = _find(replace(sample, unused=[*gaps]), request)
        again = other if _is_better(other.audit, again.audit) else again
    if not _is_better(again.audit, audit):
        return None
    return replace(again, audit=again.audit.having(notices=(Notice("unneeded", columns=[*gaps]), *again.audit.notices)))


def _is_better(audit: Audit, before: Audit) -> bool:
    """Return whether more rows follow a rule, of which no less is known."""
    return audit.certificate.verdict >= before.certificate.verdict and audit.n_agree > before.n_agree


def _with_blanks_as_zero(sample: ReadSample, request: Request, found: Found) -> Found | None:
    """Return the rule with which blanks in a column of numbers mean 0, if rows with blanks follow it; else None.

    A bonus, a discount or a freight that is nothing is often left empty.
    """
    audit = found.audit
    names = [*_often_blank(sample.table, audit), *_mostly_empty(sample.table, request, audit.plan)]
    settled = audit.is_rule and audit.certificate.verdict.stands and not columns_read(audit.formula) & set(names)
    if not names or settled or request.strict:
        return None
    # The rule that is known, judged by more rows, and another one only where these do not follow it.
    for rule in (found, None) if audit.is_rule and found.answer.grown is not None else (None,):
        again = _find(replace(sample, zero=names), request, rule=rule)
        used = columns_read(again.audit.formula)
        notices = [_blanks_in(again.audit, name) for name in names if name in used]
        follow = all(2 * notice.values["n_agree"] > notice.values["n"] for notice in notices)
        if notices and follow and again.audit.is_rule and _is_better(again.audit, audit):
            return replace(again, audit=again.audit.having(notices=(*notices, *again.audit.notices)))
    return None


def _often_blank(table: Table, audit: Audit) -> list[str]:
    """Return the columns of numbers that are read and lack values in some rows."""
    numbers = {entry.column for entry in audit.plan.encoding.inputs if isinstance(entry, Number)}
    gaps = audit.design.gaps.items()
    return [gap.column for gap, n in gaps if gap.lack == "no" and n >= BLANKS * table.n_rows and gap.column in numbers]


def _blanks_in(audit: Audit, name: str) -> Notice:
    """Say in how many rows a column is blank, where that means 0, and how many of these follow the rule."""
    entry = next(one for one in audit.plan.encoding.inputs if isinstance(one, Number) and one.column == name)
    blank = np.isnan(column_values(audit.table, replace(entry, blank_is_zero=False)))[audit.design.kept]
    return Notice("blank", column=name, n=int(blank.sum()), n_agree=int((blank & audit.agree).sum()))


def _mostly_empty(table: Table, request: Request, plan: Plan) -> list[str]:
    """Return the columns of numbers that are left out since they are empty in most rows."""
    if request.are_columns_named:
        return []
    read = {plan.encoding.target.column, *(entry.column for entry in plan.encoding.inputs)}
    read |= {*request.exclude, *filter(None, (request.id, request.group, request.error_unit))}
    found = []
    for name in table.arrow.column_names:
        column = table.column(name)
        is_identifier = pa.types.is_integer(column.type) and 2 * column.null_count < len(column)  # beyond 2**53, say
        if name not in read and not is_identifier and not role_of(table, name).entry:
            entry = role_of(table, name, asked=True).entry
            if isinstance(entry, Number) and np.mean(~np.isnan(column_values(table, entry))) >= BLANKS:
                found.append(name)
    return found


def _find(
    sample: ReadSample, request: Request, seen: NDArray[np.intp] | None = None, rule: Found | None = None
) -> Found:
    """Find the rule, or judge one that was grown on fewer rows of the same table."""
    prepared = prepare(sample, request)
    plan, design, question = prepared.plan, prepared.design, replace(prepared.question, seen=seen)

    def audit_of(answer: FoundRule) -> Audit:
        (certificate,) = answer.recovery.certificates
        segment = certificate.segment
        audit = Audit(
            sample.table,
            plan,
            design,
            answer.X,
            _composed(request.column, answer, certificate, design.columns),
            certificate,
            answer.recovery.agree[:, 0],
            answer.recovery.last_place[:, 0],
            (*design.notices, *plan.notices, *answer.notices),
            segment=None
            if segment is None
            else prepared.covariates.named(segment, compared(design.columns, answer.terms)),
        ).chained
        if prepared.matrix is not None and not audit.is_rule and request.inliers == "auto":
            audit = audit.having(notices=(*audit.notices, Notice("exact only")))
        facts = audit.segment_facts
        if audit.segment is None or audit.segment.is_accused or facts is None:
            return audit
        return audit.having(notices=(*audit.notices, Notice("uneven", facts=facts)))  # its rows are not set apart

    def announce(answer: FoundRule | None) -> None:
        if request.announce is not None:
            request.announce(None if answer is None else audit_of(answer))

    options: SearchOptions = options_of(request, announce)
    answer: FoundRule | None = None
    if rule is not None and rule.answer.grown is not None:
        place = np.full(sample.table.n_rows, -1)
        place[design.kept] = np.arange(len(design.kept))
        rows = place[rule.audit.design.kept[rule.answer.grown.rows]]
        answer = judge_again(question, options, rule.answer, rows[rows >= 0])
    if prepared.matrix is not None:
        answer = fit_terms(question, options, prepared.matrix, prepared.constants)
    elif answer is None:
        answer = find_rule(question, options)
    return Found(audit_of(answer), answer)


def _composed(target: str, answer: FoundRule, certificate: Certificate, columns: Columns) -> Formula:
    """Return the rule as a formula that knows the base level of each category with amounts by level."""
    recovery = answer.recovery
    exact, errors = recovery.fractions[0], recovery.standard_errors[:, 0]
    formula = compose(target, answer.terms, recovery.coef[:, 0], exact, errors, certificate, answer.link)
    return replace(formula, bases=tuple(_bases_of(formula, columns)))


def _bases_of(formula: Formula, columns: Columns) -> Iterator[tuple[str, str]]:
    """Yield each category with amounts by level, and its level that has no term, if there is one such level."""
    used = [summand.term for summand in formula.terms if summand.term is not None and summand.coef]
    factors = [factor for term in used for factor in term.factors if factor.op in ("level", "in")]
    for name in dict.fromkeys(str(term.parts[0]) for term in used if term.op == "level"):
        known = {str(part) for factor in factors if factor.parts[0] == name for part in factor.parts[1:]}
        known |= {str(term.level) for term in formula.terms if term.column == name}
        levels = columns.levels[name].names if name in columns.levels else ()
        without = [level for level in levels if level not in known]
        if len(without) == 1:
            yield name, without[0]
