"""The rules that the rows of a table follow: of the plain columns first, then in terms that the rows left ask for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from massart.audit.finding import Prepared, Request, find, options_of, prepare
from massart.audit.implied import marks_of
from massart.audit.list_audit import Branch, ListAudit, TableRule
from massart.audit.second_rule import TERMS_TO_CHOOSE_FROM, composed
from massart.audit.table_audit import Audit
from massart.certificate import (
    CONFIDENCE,
    SECOND_LOOK,
    Assumption,
    IndependentErrors,
    Reason,
    Verdict,
    certify_counts,
    certify_independent,
)
from massart.recover import ListedRule, RuleList
from massart.recover.further_rule import Search
from massart.recover.rule_list import MOST_RULES, find_rules
from massart.report import Notice
from massart.rows import LAST_PLACE, BoolArray, FloatArray, Level, verify
from massart.rows.agreement import EPS
from massart.rules.find import Answer, Question, find_rule
from massart.rules.matrix import TermMatrix
from massart.rules.terms import CONDITIONS, Term, TermError
from massart.tables import Table

LEFT_SHARE = 0.15
"""Share of the rows that no rule of the plain columns explains from which on rules in other terms are looked for, too:
where there are rules, labels of none are mostly less (benchmarks/rule_lists.py, "list")."""


@dataclass(frozen=True, slots=True, eq=False)
class _Listed:
    """Rules in some terms."""

    terms: tuple[Term, ...]
    X: FloatArray | TermMatrix
    found: RuleList
    n_chosen: int = 0  # terms that labels chose


def check_list_request(request: Request) -> None:
    """Raise ValueError for what makes no sense together with a list of rules."""
    asked = {
        "model": request.model == "relu",
        "inliers": request.inliers == "noisy",
        "error_unit": request.error_unit is not None,
        "errors": request.errors != "arbitrary",
        "wrong_at_most": request.wrong_at_most != 0.5,
    }
    reasons = {
        "model": "the rules of a list are sums of terms",
        "inliers": "rows that follow a rule up to noise cannot be distinguished from those of another rule",
        "error_unit": "its tests take rows to be independent of each other",
        "errors": "its sentence names that assumption, and no declaration makes a list certain",
        "wrong_at_most": "it does not rest on how many labels are wrong",
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise ValueError(f"{name} has no place beside rules, which asks for a list: {reasons[name]}")


def list_rules(table: Table, request: Request, most: int | Literal["auto"]) -> Audit:
    """Return the rules of a table in memory, or the fit of one rule where there is no second.

    Columns that no rule uses cost no rows: where they have gaps, rules are looked for once more without them.
    """
    check_list_request(request)
    found = _listed(table, request, most)
    if not isinstance(found, ListAudit):
        return found
    used = {name for rule in found.rules for term in rule.formula.terms if term.coef for name in _columns(term.term)}
    gaps = {gap.column for gap in found.design.gaps} - used - {request.column}
    if not gaps or request.are_columns_named or request.strict:
        return found
    again = _listed(table, replace(request, hypotheses=SECOND_LOOK * request.hypotheses), most, gaps)
    if not isinstance(again, ListAudit) or again.n_agree <= found.n_agree:
        return found
    notice = Notice("unneeded", columns=sorted(gaps), rule="no rule needs")
    return replace(again, notices=(notice, *again.notices))


def _columns(term: Term | None) -> Sequence[str]:
    return () if term is None else [*term.columns()]


def _listed(table: Table, request: Request, most: int | Literal["auto"], unused: Collection[str] = ()) -> Audit:
    prepared = prepare(table, request, unused=unused)
    question, n_rules = prepared.question, MOST_RULES if most == "auto" else most
    plain: Audit | None = None
    if prepared.matrix is not None:
        ordered = next((term for term in prepared.matrix.terms if term.needs_order), None)
        if ordered is not None:
            raise TermError(f"the term {ordered} looks at other rows: a list of rules takes rows as independent")
        prepared.matrix.check()
        best = _rules_in(prepared.matrix.terms, prepared.matrix, prepared, request, n_rules)
    else:
        best = _rules_in(question.plain, question.X, prepared, request, n_rules)
        left = best.found.unexplained
        if request.terms == "auto" and request.budget > 0 and np.mean(left) > LEFT_SHARE:
            more: tuple[Term, ...]
            if best.found.rules:
                more = _terms_beyond(question, find_rule(_some_of(question, np.flatnonzero(left)), options_of(request)))
            else:
                alone = find(table, request)
                plain, more = alone.audit, _terms_beyond(question, alone.answer)
            if more and (plain is None or plain.n_judged == len(question.y)):
                terms = (*question.plain, *more)
                wider = _rules_in(terms, TermMatrix(question.columns, terms), prepared, request, n_rules, len(more))
                if np.count_nonzero(wider.found.none) < np.count_nonzero(best.found.none):
                    best = wider
    if len(best.found.rules) > 1:
        return _audit_of(table, request, prepared, best)
    audit = find(table, request).audit if plain is None else plain
    notice = Notice("one rule", n_found=len(best.found.rules), needed=min(best.found.needed, len(question.y)))
    return replace(audit, notices=(notice, *audit.notices))


def _some_of(question: Question, rows: np.ndarray) -> Question:
    return replace(question, columns=question.columns.take(rows), X=question.X[rows], y=question.y[rows], units=None)


def _terms_beyond(question: Question, answer: Answer) -> tuple[Term, ...]:
    """Return the terms of a rule that are no plain columns."""
    used = zip(answer.terms, answer.recovery.coef[:, 0], strict=False)
    chosen = [term for term, coef in used if coef and term not in question.plain and not term.needs_order]
    return tuple(chosen) if np.isfinite(TermMatrix(question.columns, chosen)[:]).all() else ()


def _rules_in(
    terms: tuple[Term, ...],
    X: FloatArray | TermMatrix,
    prepared: Prepared,
    request: Request,
    most: int,
    n_chosen: int = 0,
) -> _Listed:
    """Return the rules in some terms, `n_chosen` of which were chosen by labels."""
    question = prepared.question
    values, intercept = X[:], question.intercept
    search = Search(
        np.column_stack([values, np.ones(len(values))]) if intercept else values,
        question.y,
        request.tolerance,
        request.seed,
        question.precision,
        hypotheses=TERMS_TO_CHOOSE_FROM**n_chosen,
        looks=request.hypotheses,
        callback=request.callback,
    )
    levels: BoolArray = np.array([any(part.op in CONDITIONS for part in term.factors) for term in terms], dtype=bool)
    levels = np.append(levels, [True] * intercept)
    return _Listed(terms, X, find_rules(search, most, intercept=intercept, category_levels=levels), n_chosen)


def _branch_of(prepared: Prepared, listed: ListedRule) -> Branch | None:
    """Return the segment most of whose rows follow a rule, if they follow it more often there than by chance."""
    covariates = prepared.covariates
    found = covariates.covariates.scan.worst(listed.fits, labels=prepared.question.y)
    if found is None or not found.is_accused:
        return None
    where = covariates.named(found).where
    return Branch(where, found.n_rows, found.n_wrong, found.n_others, found.n_wrong_others)


def _slopes_of(
    prepared: Prepared, listed: ListedRule, rule: tuple[FloatArray, FloatArray], failure: float, seed: int
) -> IndependentErrors | None:
    """Return which coefficients are those of some rule, if errors do not depend on the columns.

    Rows come from mechanisms, each of which has a law of errors of its own: the sum over them of the rows that a wrong
    formula fits is bounded by the fullest slab all the same.
    """
    (X, coef), y, agreement = rule, prepared.question.y, listed.agreement
    if len(coef) > X.shape[1]:
        X = np.column_stack([X, np.ones(len(X))])
    if agreement.level not in (Level.EXACT, Level.LABEL, Level.GIVEN):
        return None
    verified = verify(X, y, coef, agreement)
    return certify_independent(
        X,
        verified.residuals,
        verified.agree,
        float(verified.half_widths[verified.agree].max()),
        rounded=agreement.rounded or agreement.precision > EPS,
        rng=np.random.default_rng(seed),
        failure=failure,
    )


def _audit_of(table: Table, request: Request, prepared: Prepared, best: _Listed) -> ListAudit:
    question, found = prepared.question, best.found
    failure = (1 - CONFIDENCE) / (request.hypotheses * len(found.rules))

    def rule(listed: ListedRule) -> TableRule:
        rows = best.X[np.flatnonzero(listed.fits)]
        coef = listed.coef
        if question.intercept:
            rows, coef = np.column_stack([rows, np.ones(len(rows))]), np.append(coef, listed.intercept)
        formula = composed(request.column, best.terms, (coef, listed.fractions), rows)
        found = best.X[:], coef
        known = None if best.n_chosen else _slopes_of(prepared, listed, found, failure, request.seed)
        return TableRule(formula, listed, _branch_of(prepared, listed), known)

    rules = tuple(map(rule, found.rules))
    last_place = found.none.copy()
    last_place &= np.any(
        [marks_of(table.name, best.X, question.y, one.formula, one.listed.agreement) & LAST_PLACE > 0 for one in rules],
        axis=0,
    )
    for error in found.errors:
        last_place[error.rows] = False
    agreement, n = rules[0].listed.agreement, len(question.y)
    n_last, n_columns = int(np.count_nonzero(last_place)), len(best.terms) + question.intercept
    return ListAudit(
        table,
        prepared.plan,
        prepared.design,
        best.X,
        rules[0].formula,
        certify_counts(
            Verdict.PLURALITY,
            agreement,
            Assumption(hypotheses=request.hypotheses),
            n_rows=n,
            n_agree=n - int(np.count_nonzero(found.none)),
            n_last_place=n_last,
            n_columns=n_columns,
            reason=Reason.LIST,
        ),
        ~found.none,
        last_place,
        (*prepared.design.notices, *prepared.plan.notices),
        rules=rules,
        found=found,
    )
