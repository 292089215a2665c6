"""A question about a column of a table, and the answer that the rows of a table give."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Annotated

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.segments import TableCovariates, with_segment_rule
from massart.audit.table_audit import Audit
from massart.certificate import SECOND_LOOK, Assumption, Certificate
from massart.options import FitOptions, Option
from massart.recover.problem import LARGEST_LABEL
from massart.recover.snapping import SQUARE_IS_FINITE
from massart.report import Notice
from massart.rows import IDENTITY, BoolArray, Callback, FloatArray, silent
from massart.rules.columns import Columns
from massart.rules.constants import Constants, find_constants
from massart.rules.find import KINDS, Answer, Options, Question, find_rule, fit_terms
from massart.rules.formula import Formula, compose
from massart.rules.language import parse_terms
from massart.rules.matrix import TermMatrix
from massart.rules.terms import Term, TermError, column, level
from massart.rules.wilkinson import parse_formula, target_of
from massart.tables import (
    Design,
    Encoding,
    Gap,
    Number,
    Plan,
    Table,
    TableError,
    column_values,
    encode,
    groups_of,
    make_plan,
    precision_of_columns,
    quote,
    role_of,
)

_BLANKS = 0.02  # share of the rows in which a column is blank, if a blank may mean 0
_MOST_VALUES, _LEAST_WRONG, _NEARLY_ALL = 20, 5, 0.9  # of a column that may be codes


@dataclass(frozen=True)
class Request(FitOptions):
    """What is asked of the rows, and who hears of the work."""

    _: KW_ONLY
    announce: Annotated[
        Callable[[Audit | None], None] | None,
        Option(
            "Called with the answer of the plain columns, or None if none is seen at first, before the search goes on."
        ),
    ] = None
    rows_kept: Annotated[
        int, Option("Wrong rows of a file larger than memory that are kept, those that are farthest off.", least=1)
    ] = 25_000
    callback: Annotated[Callback, Option("Called with a `Progress` now and then.")] = silent

    @property
    def column(self) -> str:
        """The target, once it is known."""
        assert self.target is not None
        return self.target

    @property
    def are_columns_named(self) -> bool:
        """Whether the user said which columns the rule is made of."""
        return self.features is not None or self.formula is not None or self.terms not in ("auto", "columns")


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The answer of a table, and the audit that says it."""

    audit: Audit
    answer: Answer

    def formula(self, certificate: Certificate) -> Formula:
        """Return the formula, as another certificate of it says what is determined."""
        formula = _composed(self.audit.formula.target, self.answer, certificate)
        return replace(formula, bases=self.audit.formula.bases)


def find(
    table: Table,
    request: Request,
    *,
    ordered: bool = True,
    drawn: BoolArray | None = None,
    seen: NDArray[np.intp] | None = None,
) -> Found:
    """Find the rule behind a column of a table in memory.

    Columns that the rule does not use cost no rows: where they have gaps, it is looked for once more without them.
    Terms may look at the row before if these are all rows, `ordered` as they were. Where they are some rows of a file,
    and labels had a say in which, segments are looked for among those `drawn` at random. Where terms that are given
    were chosen with the labels of rows that were `seen`, the others confirm; none are seen if all were, and the number
    of hypotheses pays for it.
    """
    found = _find(table, request, ordered, drawn, seen=seen)
    filled = None if seen is not None else _with_blanks_as_zero(table, request, found, ordered, drawn)
    if filled is not None:
        return _explored(filled, request)
    found = _explored(found, request)
    audit = found.audit
    used = {name for term in audit.formula.terms if term.coef and term.term for name in term.term.columns()}
    gaps = {gap.column: 0 for gap in audit.design.gaps if gap.column not in used | {request.column}}
    if not gaps or request.are_columns_named or request.strict or not audit.is_rule or not used:
        return found
    # The labels chose what is left out, which is a second look at them.
    again = _find(
        table, replace(request, hypotheses=SECOND_LOOK * request.hypotheses, announce=None), ordered, drawn, gaps
    )
    weaker = again.audit.certificate.verdict < audit.certificate.verdict
    if weaker or again.audit.n_agree <= audit.n_agree:
        return found
    notice = Notice("unneeded", columns=[*gaps])
    return _explored(replace(again, audit=replace(again.audit, notices=(notice, *again.audit.notices))), request)


def _with_blanks_as_zero(
    table: Table, request: Request, found: Found, ordered: bool, drawn: BoolArray | None
) -> Found | None:
    """Return the rule with which blanks in a column of numbers mean 0, if rows with blanks follow it; else None.

    A bonus, a discount or a freight that is nothing is often left empty.
    """
    audit = found.audit
    numbers = {entry.column for entry in audit.plan.encoding.inputs if isinstance(entry, Number)}
    missing = [gap.column for gap, n in audit.design.gaps.items() if gap.lack == "no" and n >= _BLANKS * table.n_rows]
    names = [*(name for name in missing if name in numbers), *_mostly_empty(table, request, audit.plan)]
    used = {name for term in audit.formula.terms if term.coef and term.term for name in term.term.columns()}
    settled = audit.is_rule and audit.certificate.verdict.stands and not used & set(names)
    if not names or settled or request.strict:
        return None
    again = _find(
        table, replace(request, hypotheses=SECOND_LOOK * request.hypotheses, announce=None), ordered, drawn, zero=names
    )
    rule = again.audit
    used = {name for term in rule.formula.terms if term.coef and term.term for name in term.term.columns()}
    names = [name for name in names if name in used]
    weaker = rule.certificate.verdict < audit.certificate.verdict
    if not names or not rule.is_rule or weaker or rule.n_agree <= audit.n_agree:
        return None
    notices = []
    entries = {entry.column: entry for entry in rule.plan.encoding.inputs if isinstance(entry, Number)}
    for name in names:
        values = column_values(table, replace(entries[name], blank_is_zero=False))
        blank = np.isnan(values)[rule.design.kept]
        n, n_agree = int(blank.sum()), int((blank & rule.agree).sum())
        if 2 * n_agree <= n:
            return None
        notices.append(Notice("blank", column=name, n=n, n_agree=n_agree))
    return replace(again, audit=replace(rule, notices=(*notices, *rule.notices)))


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
            if isinstance(entry, Number) and np.mean(~np.isnan(column_values(table, entry))) >= _BLANKS:
                found.append(name)
    return found


def _explored(found: Found, request: Request) -> Found:
    """Look for the rule of a segment, and add a notice where the numbers of a column in the rule seem to be codes."""
    audit = with_segment_rule(found.audit, request.seed)
    used = {name for term in audit.formula.terms if term.coef and term.term for name in term.term.columns()}
    for name in sorted(used & set(audit.design.columns.numbers)):
        value = looks_like_codes(audit.design.columns.numbers[name], audit.wrong)
        if value is not None:
            audit = audit.having(notices=(*audit.notices, Notice("codes", column=name, value=value)))
    return replace(found, audit=audit)


def looks_like_codes(values: FloatArray, wrong: BoolArray) -> float | None:
    """Return the value of a column of whole numbers at which nearly all rows are wrong, if most wrong rows have it.

    Examples
    --------
    >>> plan = np.repeat([101.0, 102.0, 103.0], 50)
    >>> looks_like_codes(plan, plan == 103)
    103.0
    """
    if wrong.sum() < _LEAST_WRONG or not (values == np.floor(values)).all():
        return None
    known, codes = np.unique(values, return_inverse=True)
    if not 3 <= len(known) <= _MOST_VALUES:
        return None
    off = np.bincount(codes[wrong], minlength=len(known))
    worst = int(np.argmax(off))
    others = (off.sum() - off[worst]) / max(len(values) - np.count_nonzero(codes == worst), 1)
    share = off[worst] / np.count_nonzero(codes == worst)
    return float(known[worst]) if share >= _NEARLY_ALL and 2 * others < share and 2 * off[worst] > off.sum() else None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A question about a table, as numbers.

    Attributes
    ----------
    plan : Plan
    design : Design
    matrix : TermMatrix or None
        The terms that were asked for, if any were.
    constants : Constants or None
        What was found for ``?`` in them.
    question : Question
    covariates : TableCovariates
        The columns by which segments are looked for.
    """

    plan: Plan
    design: Design
    matrix: TermMatrix | None
    constants: Constants | None
    question: Question
    covariates: TableCovariates


def prepare(
    table: Table,
    request: Request,
    *,
    ordered: bool = True,
    drawn: BoolArray | None = None,
    unused: Collection[str] = (),
    zero: Collection[str] = (),
) -> Prepared:
    """Read the columns of a table as numbers, and the terms that are asked for.

    Where labels had a say in which rows of a file these are, `drawn` are those that were drawn at random. The rule does
    not use columns that are `unused`; segments are looked for by them all the same. Blanks mean 0 in those of `zero`.
    """
    target, intercept = request.column, request.intercept
    if request.error_unit == target:
        raise TableError(f"{table.name}: the target cannot say which rows are wrong together")
    units = None if request.error_unit is None else groups_of(table, request.error_unit)[0]
    plan = make_plan(
        table,
        target,
        features=None if request.features is None else [name for name in request.features if name not in unused],
        exclude=(*request.exclude, *unused),
        category=[name for name in request.category if name not in unused],
        number=[*(name for name in request.number if name not in {*unused, *zero}), *zero],
        id_column=request.id,
        group_column=request.group,
        intercept=intercept,
    )
    if zero:
        entries = plan.encoding.inputs
        inputs = tuple(
            replace(one, blank_is_zero=True) if isinstance(one, Number) and one.column in zero else one
            for one in entries
        )
        plan = replace(plan, encoding=replace(plan.encoding, inputs=inputs))
    design = encode(table, plan.encoding, strict=request.strict)
    for name, values in design.columns.numbers.items():
        check_size(table, name, values, SQUARE_IS_FINITE, design.kept)
    assert design.y is not None
    check_size(table, target, design.y, LARGEST_LABEL, design.kept)
    design = replace(design, columns=replace(design.columns, ordered=ordered))
    matrix = constants = None
    if request.formula is not None or request.terms not in ("auto", "columns"):
        asked, intercept = _asked(design, request)
        unread = {gap.column for gap in design.gaps} - {target, *(name for term in asked for name in term.columns())}
        if unread:  # what no term reads need not be there
            return prepare(table, request, ordered=ordered, drawn=drawn, unused=[*unused, *unread], zero=zero)
        check_order(design, asked)
        if any(term.n_unknown for term in asked):
            assert design.y is not None
            constants = find_constants(
                design.columns,
                asked,
                design.y,
                np.random.default_rng(request.seed),
                request.budget,
                half_unit=None if request.tolerance == "auto" else max(float(request.tolerance), 1e-300),
                intercept=intercept,
                link=KINDS.get(request.model, IDENTITY),
            )
            asked = constants.terms
        matrix = TermMatrix(with_target(design, target), asked)
        design, matrix = with_values(design, matrix)
    assert design.y is not None
    assert isinstance(design.X, np.ndarray)
    covariates = TableCovariates.of(
        table,
        plan,
        design,
        excluded=request.exclude,
        asked=request.features is not None,
        drawn=drawn,
    )
    question = Question(
        design.columns,
        plain_terms(plan.encoding),
        design.X,
        design.y,
        intercept,
        precision_of_columns(table, plan.encoding),
        covariates.covariates,
        None if units is None else units[design.kept],
    )
    return Prepared(plan, design, matrix, constants, question, covariates)


def _find(
    table: Table,
    request: Request,
    ordered: bool,
    drawn: BoolArray | None,
    unused: Collection[str] = (),
    zero: Collection[str] = (),
    seen: NDArray[np.intp] | None = None,
) -> Found:
    prepared = prepare(table, request, ordered=ordered, drawn=drawn, unused=unused, zero=zero)
    plan, design, matrix = prepared.plan, prepared.design, prepared.matrix
    question = replace(prepared.question, seen=seen)

    def audit_of(answer: Answer) -> Audit:
        (certificate,) = answer.recovery.certificates
        audit = Audit(
            table,
            plan,
            design,
            answer.X,
            _composed(request.column, answer, certificate),
            certificate,
            answer.recovery.agree[:, 0],
            answer.recovery.last_place[:, 0],
            (*design.notices, *plan.notices, *answer.notices),
            segment=None if certificate.segment is None else prepared.covariates.named(certificate.segment),
        )
        bases = tuple(audit.bases.items())
        return replace(audit, formula=replace(audit.formula, bases=bases)).chained.noticed

    def announce(answer: Answer | None) -> None:
        if request.announce is not None:
            request.announce(None if answer is None else audit_of(answer))

    options = options_of(request, announce)
    if matrix is None:
        answer = find_rule(question, options)
    else:
        answer = fit_terms(question, options, matrix, prepared.constants)
    return Found(audit_of(answer), answer)


def options_of(request: Request, announce: Callable[[Answer | None], None] = lambda answer: None) -> Options:
    """Return how to look for the answer."""
    return Options(
        request.model,
        request.tolerance,
        request.seed,
        Assumption(**{one.name: known for one in fields(Assumption) if (known := getattr(request, one.name, None))}),
        request.budget if request.terms == "auto" else 0.0,
        announce,
        request.callback,
        request.inliers,
    )


def _composed(target: str, answer: Answer, certificate: Certificate) -> Formula:
    recovery = answer.recovery
    exact, errors = recovery.fractions[0], recovery.standard_errors[:, 0]
    return compose(target, answer.terms, recovery.coef[:, 0], exact, errors, certificate, answer.link)


def target_in(target: str | None, formula: str | None) -> str:
    """Return the target that is named, by itself or by a formula."""
    named = None if formula is None else target_of(formula)
    if target is None and named is None:
        raise ValueError("target must name the column that should follow a rule")
    if target is not None and named is not None and target != named:
        raise ValueError(f"the target is {target!r}, but the formula is for {named!r}")
    return str(target if named is None else named)


def _asked(design: Design, request: Request) -> tuple[tuple[Term, ...], bool]:
    """Return the terms that the user wrote, and whether there is a constant."""
    target, terms, intercept = request.column, request.terms, request.intercept
    columns = with_target(design, target)
    if request.formula is not None:
        _, found, constant = parse_formula(request.formula, columns)
        intercept = intercept and constant
    else:
        found = parse_terms(terms if isinstance(terms, str) else ", ".join(terms), columns)
    alone = next((term for term in found if target in term.columns_here()), None)
    if alone is not None:
        raise TermError(f"the term {alone} uses the target {target!r} itself; only lag({target}) may")
    return found, intercept


def check_size(table: Table, name: str, values: FloatArray, most: float, kept: NDArray[np.intp] | None = None) -> None:
    """Raise TableError for a number of a column that is too large to reckon with, naming its row."""
    if len(values) and np.fmax.reduce(np.abs(values)) > most:
        i = int(np.nanargmax(np.abs(values)))
        place = i if kept is None else int(kept[i])
        row = (place if table.numbers is None else int(table.numbers[place])) + 1
        raise TableError(
            f"{table.name}: column {quote(name)} holds {values[i]:g} in row {row:,}, too large to reckon with: choose "
            f"another unit, leave the column out, or say that it stands for no value (--na {values[i]:g})"
        )


def with_target(design: Design, target: str) -> Columns:
    """Return the columns with the target among them: a lag may look at it."""
    assert design.y is not None
    return replace(design.columns, numbers={**design.columns.numbers, target: design.y})


def with_values(design: Design, matrix: TermMatrix) -> tuple[Design, TermMatrix]:
    """Leave out rows before which there is none, if a term looks back."""
    there = matrix.has_values()
    if there.all():
        return design, matrix
    kept = np.flatnonzero(there)
    assert design.y is not None
    notice = Notice("first rows", n=len(there) - len(kept))
    smaller = replace(
        design,
        X=design.X[kept],
        y=design.y[kept],
        columns=design.columns.take(kept),
        kept=design.kept[kept],
        remarks=(*design.remarks, notice),
    )
    return smaller, matrix.take(kept)


def rows_with_values(X: TermMatrix, gaps: Mapping[Gap, int]) -> tuple[NDArray[np.intp], dict[Gap, int]]:
    """Return the rows in which every term has a finite value, and why others are left out: a quotient by 0, say."""
    there, found = np.ones(len(X), dtype=bool), dict(gaps)
    for j, term in enumerate(X.terms):
        lacking = there & ~np.isfinite(X[:, j])
        if lacking.any():
            found[Gap(str(term), "no", "")] = int(np.count_nonzero(lacking))
            there &= ~lacking
    return np.flatnonzero(there), found


def plain_terms(encoding: Encoding) -> tuple[Term, ...]:
    """Return the columns of an encoding as terms: what X of its designs has."""
    return tuple(column(name) if value is None else level(name, value) for name, value in encoding.terms)


def check_order(design: Design, terms: Sequence[Term]) -> None:
    """Raise TableError if a term looks at other rows, and rows were left out."""
    ordered = next((term for term in terms if term.needs_order), None)
    if ordered is not None and not design.columns.ordered:
        raise TableError(f"the term {ordered} needs the whole table in memory: raise --max-memory")
    if ordered is not None and len(design.kept) < design.n_total:
        row = int(np.setdiff1d(np.arange(design.n_total), design.kept)[0])
        raise TableError(f"the term {ordered} needs every row of the table, but row {row + 1:,} lacks a value")
