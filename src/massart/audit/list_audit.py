"""A table whose rows follow several rules: which row follows which, what is known of each, and the rows of none.

Rules are looked for in the plain columns first, then in terms that the rows left ask for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from massart.audit.error_types import LAST_PLACE, UNEXPLAINED, RowErrorType, RowErrorTypes
from massart.audit.finding import find
from massart.audit.implied import columns_read, implied_values, marks_of, places_of, residuals, with_constant
from massart.audit.question import Prepared, ReadSample, Request, options_of, prepare
from massart.audit.second_rule import TERMS_TO_CHOOSE_FROM, SecondRule, composed
from massart.audit.table_audit import Audit, audit_columns, versions
from massart.certificate import (
    CONFIDENCE,
    Assumption,
    IndependentErrors,
    Reason,
    Span,
    Verdict,
    certify_counts,
    certify_independent,
)
from massart.recover import MOST_RULES, ErrorType, ListedRule, RuleList, Search, find_rules
from massart.report import ListReport, Notice, Report, Usage, count, explain_list, listed, usage_of
from massart.rows import EPS, BoolArray, FloatArray, Level, verify
from massart.rows import LAST_PLACE as OFF_BY_A_PLACE
from massart.rules import CONDITIONS, Formula, FoundRule, RuleQuestion, Term, TermError, TermMatrix, find_rule
from massart.tables import Table, TableError

NONE, OR = "none", " or "
"""What the column `rule` says of rows that follow none, and between the rules of rows that fit several."""

MOST_NONE_ROWS = 50
"""Rows that follow no rule on the page."""


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A segment of a table most of whose rows follow one rule of a list, and not by chance.

    Attributes
    ----------
    where : str
        Which rows these are: "zone = B".
    n_rows, n_follow : int
        Rows of the segment, and those that follow the rule.
    n_others, n_follow_others : int
        The same of the other rows.
    """

    where: str
    n_rows: int
    n_follow: int
    n_others: int
    n_follow_others: int


@dataclass(frozen=True, slots=True, eq=False)
class TableRule:
    """One rule of a table.

    Attributes
    ----------
    formula : Formula
    listed : ListedRule
        Its rows, and its test.
    branch : Branch or None
        The segment that it holds for, if the rows that follow it depend on the columns.
    known : IndependentErrors or None
        What is certain of its slopes, unless errors, or which rule a row follows, depend on the columns
        (:mod:`massart.certificate.independent_errors`, Theorem 1).
    """

    formula: Formula
    listed: ListedRule
    branch: Branch | None = None
    known: IndependentErrors | None = None

    @property
    def confirmed(self) -> tuple[int, ...]:
        """Terms whose coefficients are those of some rule, under that condition."""
        return () if self.known is None or self.branch is not None else self.known.slopes

    @property
    def n_rows(self) -> int:
        """Number of rows that are given to it."""
        return self.listed.n_own


@dataclass(frozen=True)
class ListAudit(Audit):
    """A table, the rules that its rows follow, and which of them each row follows.

    `formula` is the first rule. Rows that follow none of the rules are `wrong`, if the list is all there is.

    Attributes
    ----------
    rules : tuple of TableRule
        The one with the most rows first.
    found : RuleList
        The same as numbers, for the judged rows.
    """

    rules: tuple[TableRule, ...] = field(kw_only=True)
    found: RuleList = field(kw_only=True)

    @property
    def n_shared(self) -> int:
        """Number of rows that fit more than one rule: they are given to none, and are not wrong."""
        return int(np.count_nonzero(self.found.shared))

    @property
    def most_explained(self) -> int:
        """The largest number of rows of a further rule that chance, repeated errors and the rules explain."""
        return min(self.found.needed, self.n_judged + 1) - 1

    @property
    def unfit_to_fix(self) -> str:
        """Why nothing is replaced."""
        return Notice("of no rule")

    @property
    def when(self) -> str:
        """When a row follows a rule: "exactly", or of each rule where that is not the same for all."""
        levels = [str(rule.listed.agreement) for rule in self.rules]
        if len(set(levels)) == 1:
            return f"A row follows a rule {levels[0]}."
        return f"A row follows {listed([f'rule {k} {level}' for k, level in enumerate(levels, 1)])}."

    @property
    def explanation(self) -> str:
        """Which rows follow what, and what the test of the rules says."""
        shared, counts = np.unique(self.names[self.found.shared], return_counts=True)
        terms, numbered = [term.label for term in self.formula.all_terms], [*enumerate(self.rules, 1)]
        branches = {k: rule.branch for k, rule in numbered if rule.branch is not None}
        confirmed = {k: [terms[j] for j in rule.confirmed] for k, rule in numbered if rule.confirmed and not branches}
        deviations = (rule.known.deviation for rule in self.rules if rule.known and rule.confirmed)
        return explain_list(
            [rule.n_rows for rule in self.rules],
            [(name.split(OR), n) for name, n in zip(shared.tolist(), counts.tolist(), strict=True)],
            {k: (b.where, b.n_follow, b.n_rows, b.n_follow_others, b.n_others) for k, b in branches.items()},
            [*self._left()],
            confirmed,
            max(deviations, default=0.0),
            self.most_explained,
        )

    def _left(self) -> Iterator[tuple[int, tuple[str, str], str]]:
        """Yield how many rows that follow none are what, with the verb for one and for many; the others come last."""
        verbs = {label: verb for label, verb, _ in self._explanations()}
        explained = [kind for kind in self.kinds.kinds if kind.explains]
        for kind in explained:
            yield kind.rows, verbs[kind.label], kind.label
        if self.n_last_place:
            yield self.n_last_place, ("is", "are"), "off by a last place"
        rest = sum(kind.rows for kind in self.kinds.kinds if kind.family == UNEXPLAINED)
        yield rest, ("follows", "follow"), "none of these" if explained or self.n_last_place else "none"

    @property
    def _fits(self) -> BoolArray:
        """Which judged rows agree with each rule: (n, number of rules)."""
        return np.column_stack([rule.listed.fits for rule in self.rules])

    @cached_property
    def names(self) -> NDArray[np.str_]:
        """The rule of each judged row: "1", "1 or 2", "none"."""
        patterns, which = np.unique(self._fits, axis=0, return_inverse=True)
        words = [OR.join(str(k + 1) for k in np.flatnonzero(row)) or NONE for row in patterns]
        return np.array(words)[which.ravel()]

    @cached_property
    def values(self) -> FloatArray:
        """What each rule gives for the judged rows: (n, number of rules)."""
        return np.column_stack(
            [
                implied_values(self.X, rule.formula, places_of(self.X, rule.formula, rule.listed.agreement))
                for rule in self.rules
            ]
        )

    @cached_property
    def implied(self) -> FloatArray:
        """What the rule of each judged row gives; NaN for rows that follow none."""
        fits = self._fits
        first = self.values[np.arange(len(fits)), fits.argmax(axis=1)]
        return np.where(fits.any(axis=1), first, np.nan)

    @cached_property
    def second_rule(self) -> SecondRule | None:
        """A list has its own."""
        return None

    @cached_property
    def kinds(self) -> RowErrorTypes:
        """What happened in rows that follow none: an error that makes a formula, an amount, a last place."""
        ours = [(label, rows) for label, _, rows in self._explanations()]
        labels, masks = zip(*ours, (UNEXPLAINED, self.wrong), (LAST_PLACE, self.last_place), strict=True)
        ways = np.column_stack(masks)
        ways[:, -2] &= ~ways[:, :-2].any(axis=1)
        codes = np.where(ways.any(axis=1), ways.argmax(axis=1) + 1, 0)
        return RowErrorTypes.of_codes(codes, [RowErrorType(label, 0, label) for label in labels])

    def _explanations(self) -> Iterator[tuple[str, tuple[str, str], BoolArray]]:
        """Yield what may have happened in rows that follow none, the verb for one and for many, and in which."""
        has = ("has", "have")
        verbs = {ErrorType.COLUMN: has, ErrorType.VALUE: has, ErrorType.AMOUNT: ("is", "are")}
        for one in self.found.errors:
            rows = np.zeros(len(self.given), dtype=bool)
            rows[one.rows] = True
            column = one.error.column
            words = one.error.words("" if column is None else self.formula.all_terms[column].label)
            yield words, verbs.get(one.error.type, ("follows", "follow")), rows & self.wrong

    def coefficients(self) -> list[tuple[str, list[str]]]:
        """Return each term that a rule has, and its coefficient in each of the rules."""
        every = [rule.formula.all_terms for rule in self.rules]
        return [
            (terms[0].label, [term.number() if term.determined else "not determined" for term in terms])
            for terms in zip(*every, strict=True)
            if any(term.coef for term in terms)
        ]

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The judged rows: those that nothing explains first, then those of each error, then those that follow a rule.

        Rows of one sort stay in the order of the table.
        """
        sort = np.where(
            self.wrong,
            self.kinds.codes,
            np.where(self.last_place, len(self.kinds.kinds) + 1, len(self.kinds.kinds) + 2),
        )
        sort[self.kinds.unexplained] = 0
        return np.argsort(sort, kind="stable")

    def usage(self) -> tuple[Usage, ...]:
        """Return how many rows use each coefficient of the first rule, and how many of them follow it."""
        return usage_of(self.X, self.rules[0].listed.fits, constant=self.formula.intercept is not None)

    def fixed(self, *, fill: bool = False, force: bool = False) -> NoReturn:
        """Raise TableError."""
        raise TableError(self.unfit_to_fix)

    def model(self) -> NoReturn:
        """Raise TableError."""
        raise TableError("A list of rules is not saved: a model has one rule")

    def under_rules(self, order: NDArray[np.intp], others: Sequence[str] = ()) -> dict[str, list[Any]]:
        """Return some judged rows and what each rule gives there, with some columns of the table: plain values."""
        numbers = self.design.kept[order]
        values = {
            "given": self.given[order],
            **{f"rule {k}": self.values[order, k - 1] for k in range(1, len(self.rules) + 1)},
            "what happened": self.kinds.of(order),
        }
        cells = self.table.cells(list(dict.fromkeys([*self.plan.naming, *others])), numbers)
        found = audit_columns(self.numbers_of(numbers) + 1, cells, values)
        return {name: cells if isinstance(cells, list) else cells.tolist() for name, cells in found.items()}

    def none_rows(self, most: int, others: Sequence[str] = ()) -> dict[str, list[Any]]:
        """Return the same of rows that follow none of the rules: those that nothing explains first."""
        return self.under_rules(self.order[: min(most, self.n_wrong)], others)

    def report(self, facts: Mapping[str, str] | None = None) -> Report:
        """Return the page that shows it."""
        return ListReport(
            {
                "title": self.table.name,
                "target": self.formula.target,
                "rules": self.rules,
                "kinds": self.kinds.kinds,
                "n_rows": self.n_judged,
                "n_shared": self.n_shared,
                "n_none": self.n_wrong,
                "verdict": self.certificate.verdict,
                "explanation": self.explanation,
                "when": self.when,
                "coefficients": self.coefficients(),
                "rows": self.none_rows(MOST_NONE_ROWS, self._read()),
                "notices": self.notices,
                "facts": {**(facts or {}), "versions": versions()},
            }
        )

    def __repr__(self) -> str:
        formulas = "; ".join(f"{rule.n_rows:,} rows {rule.formula.text(4)}" for rule in self.rules)
        return f"<ListAudit of {self.table.name}: {formulas}; {self.n_wrong:,} of {count(self.n_judged, 'rows')} none>"

    def _judged(self, order: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        given, implied = self.given[order], self.implied[order]
        none = np.isnan(implied)
        return {
            "given": given,
            "implied": np.ma.MaskedArray(implied, mask=none),
            "residual": np.ma.MaskedArray(residuals(given, np.where(none, given, implied)), mask=none),
            "wrong": self.wrong[order],
            "kind": self.kinds.of(order),
            "rank": np.arange(1, len(order) + 1),
            "rule": self.names[order],
            **{f"rule_{k}": self.values[order, k - 1] for k in range(1, len(self.rules) + 1)},
        }


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
    for name, is_asked, reason in (
        ("model", request.model == "relu", "the rules of a list are sums of terms"),
        (
            "inliers",
            request.inliers == "noisy",
            "rows that follow a rule up to noise cannot be distinguished from those of another rule",
        ),
        ("error_unit", request.error_unit is not None, "its tests take rows to be independent of each other"),
        (
            "errors",
            request.errors != "arbitrary",
            "its sentence names that assumption, and no declaration makes a list certain",
        ),
        ("wrong_at_most", request.wrong_at_most != 0.5, "it does not rest on how many labels are wrong"),
    ):
        if is_asked:
            raise ValueError(f"{name} cannot be combined with rules, which asks for a list: {reason}")


def list_rules(table: Table, request: Request, most: int | Literal["auto"]) -> Audit:
    """Return the rules of a table in memory, or the fit of one rule where there is no second.

    Columns that no rule uses cost no rows: where they have gaps, rules are looked for once more without them.
    """
    found = _listed(table, request, most)
    if not isinstance(found, ListAudit):
        return found
    used = {name for rule in found.rules for name in columns_read(rule.formula)}
    gaps = {gap.column for gap in found.design.gaps} - used - {request.column}
    if not gaps or request.are_columns_named or request.strict:
        return found
    again = _listed(table, request.again(), most, gaps)
    if not isinstance(again, ListAudit) or again.n_agree <= found.n_agree:
        return found
    notice = Notice("unneeded", columns=sorted(gaps), rule="no rule needs")
    return replace(again, notices=(notice, *again.notices))


def _listed(table: Table, request: Request, most: int | Literal["auto"], unused: Collection[str] = ()) -> Audit:
    prepared = prepare(ReadSample(table, unused=unused), request)
    question, n_rules = prepared.question, MOST_RULES if most == "auto" else most
    one: Audit | None = None
    if prepared.matrix is not None:
        ordered = next((term for term in prepared.matrix.terms if term.needs_order), None)
        if ordered is not None:
            raise TermError(f"the term {ordered} looks at other rows: a list of rules takes rows as independent")
        prepared.matrix.check()
        best = _rules_in(prepared.matrix.terms, prepared.matrix, prepared, request, n_rules)
    else:
        best = _rules_in(question.plain, question.X, prepared, request, n_rules)
        if request.terms == "auto" and request.budget > 0 and np.mean(best.found.unexplained) > LEFT_SHARE:
            more, one = _terms_left(table, request, question, best)
            if more:
                terms = (*question.plain, *more)
                wider = _rules_in(terms, TermMatrix(question.columns, terms), prepared, request, n_rules, len(more))
                best = min(best, wider, key=lambda each: np.count_nonzero(each.found.none))
    if len(best.found.rules) > 1:
        return _audit_of(table, request, prepared, best)
    one = find(table, request).audit if one is None else one
    notice = Notice("one rule", n_found=len(best.found.rules), needed=min(best.found.needed, len(question.y)))
    return one.having(notices=(notice, *one.notices))


def _terms_left(
    table: Table, request: Request, question: RuleQuestion, best: _Listed
) -> tuple[tuple[Term, ...], Audit | None]:
    """Return terms beyond the plain columns that the rows left ask for, and the fit of one rule, if it was made."""
    if best.found.rules:
        rows = np.flatnonzero(best.found.unexplained)
        left = replace(
            question, columns=question.columns.take(rows), X=question.X[rows], y=question.y[rows], units=None
        )
        return _terms_beyond(question, find_rule(left, options_of(request))), None
    alone = find(table, request)
    of_these_rows = alone.audit.n_judged == len(question.y)
    return _terms_beyond(question, alone.answer) if of_these_rows else (), alone.audit


def _terms_beyond(question: RuleQuestion, answer: FoundRule) -> tuple[Term, ...]:
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
        with_constant(values, values.shape[1] + intercept),
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
    found = covariates.scan.worst(listed.fits, labels=prepared.question.y)
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
    y, agreement, coef = prepared.question.y, listed.agreement, rule[1]
    X = with_constant(rule[0], len(coef))
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
        coef = np.append(listed.coef, listed.intercept) if question.intercept else listed.coef
        rows = with_constant(best.X[np.flatnonzero(listed.fits)], len(coef))
        formula = composed(request.column, best.terms, (coef, listed.fractions), rows)
        found = best.X[:], coef
        known = None if best.n_chosen else _slopes_of(prepared, listed, found, failure, request.seed)
        return TableRule(formula, listed, _branch_of(prepared, listed), known)

    rules = tuple(map(rule, found.rules))
    last_place = found.none.copy()
    last_place &= np.any(
        [
            marks_of(table.name, best.X, question.y, one.formula, one.listed.agreement) & OFF_BY_A_PLACE > 0
            for one in rules
        ],
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
            span=Span.all_of(n_columns),
            reason=Reason.LIST,
        ),
        ~found.none,
        last_place,
        (*prepared.design.notices, *prepared.plan.notices),
        rules=rules,
        found=found,
    )
