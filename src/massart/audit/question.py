"""What is asked of a table, as numbers: its columns, the terms that are asked for, and the columns of its segments."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from massart.audit.implied import check_order, plain_terms, with_target, with_values
from massart.audit.judged import ROWS_KEPT
from massart.audit.segments import TableCovariates
from massart.audit.table_audit import Audit
from massart.certificate import SECOND_LOOK, Assumption
from massart.options import BlockReading, FitOptions, Option, Outputs
from massart.recover import LARGEST_LABEL, Covariates
from massart.rows import IDENTITY, SQUARE_IS_FINITE, BoolArray, Callback, FloatArray, silent
from massart.rules import (
    KINDS,
    FoundConstants,
    FoundRule,
    RuleQuestion,
    SearchOptions,
    Term,
    TermError,
    TermMatrix,
    find_constants,
    parse_formula,
    parse_terms,
    target_of,
)
from massart.tables import (
    Design,
    Number,
    Plan,
    Table,
    TableError,
    encode,
    groups_of,
    make_plan,
    precision_of_columns,
    quote,
)


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
    ] = ROWS_KEPT
    callback: Annotated[Callback, Option("Called with a `Progress` now and then.")] = silent

    @property
    def column(self) -> str:
        """The target, once it is known."""
        assert self.target is not None
        return self.target

    def again(self, spent: float = 0.0) -> Request:
        """Return the same, where labels were looked at before, after some seconds: more hypotheses share delta."""
        budget = max(self.budget - spent, 0.0)
        return replace(self, hypotheses=SECOND_LOOK * self.hypotheses, budget=budget, announce=None)

    @property
    def are_columns_named(self) -> bool:
        """Whether the user said which columns the rule is made of."""
        return self.features is not None or self.formula is not None or self.terms not in ("auto", "columns")


@dataclass(frozen=True)
class Call(Request, BlockReading, Outputs):
    """All that :func:`audit_table` may be given."""

    _: KW_ONLY
    client: Annotated[
        Any,
        Option("A Dask cluster (`distributed.Client`) whose workers read the source, which has to be Parquet files."),
    ] = None
    read_from: Annotated[
        str | None,
        Option("The file that a Table was read from: the cells of a text stay as they are where nothing is fixed."),
    ] = None


def target_in(target: str | None, formula: str | None) -> str:
    """Return the target that is named, by itself or by a formula."""
    named = None if formula is None else target_of(formula)
    if target is None and named is None:
        raise ValueError("target must name the column that should follow a rule")
    if target is not None and named is not None and target != named:
        raise ValueError(f"the target is {target!r}, but the formula is for {named!r}")
    return str(target if named is None else named)


def options_of(request: Request, announce: Callable[[FoundRule | None], None] = lambda answer: None) -> SearchOptions:
    """Return how to look for the answer."""
    return SearchOptions(
        request.model,
        request.tolerance,
        request.seed,
        Assumption.of(request),
        request.budget if request.terms == "auto" else 0.0,
        announce,
        request.callback,
        request.inliers,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ReadSample:
    """A table in which a rule is looked for, or some rows of a file."""

    table: Table
    ordered: bool = True  # whether these are all rows, as they were: then terms may look at the row before
    # where labels had a say in which rows of a file these are: those that were drawn at random show segments
    drawn: BoolArray | None = None
    unused: Collection[str] = ()  # columns that the rule does not use; segments are looked for by them all the same
    zero: Collection[str] = ()  # columns of numbers in which a blank means 0


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A question about a table, as numbers."""

    plan: Plan
    design: Design
    matrix: TermMatrix | None  # the terms that were asked for, if any were
    constants: FoundConstants | None  # what was found for ``?`` in them
    question: RuleQuestion
    covariates: TableCovariates  # the columns by which segments are looked for


def prepare(sample: ReadSample, request: Request) -> Prepared:
    """Read the columns of a table as numbers, and the terms that are asked for."""
    table, target, intercept = sample.table, request.column, request.intercept
    units = _units(table, request)
    plan = _plan_of(sample, request)
    design = _numbers_of(sample, plan, request)
    matrix = constants = None
    if request.formula is not None or request.terms not in ("auto", "columns"):
        asked, intercept = _asked(design, request)
        unread = {gap.column for gap in design.gaps} - {target, *(name for term in asked for name in term.columns())}
        if unread:  # what no term reads need not be there
            return prepare(replace(sample, unused=[*sample.unused, *unread]), request)
        check_order(design, asked)
        if any(term.n_unknown for term in asked):
            constants = find_constants(
                design.columns,
                asked,
                design.labels,
                np.random.default_rng(request.seed),
                request.budget,
                half_unit=None if request.tolerance == "auto" else max(float(request.tolerance), 1e-300),
                intercept=intercept,
                link=KINDS.get(request.model, IDENTITY),
            )
            asked = constants.terms
        design, matrix = with_values(design, TermMatrix(with_target(design, target), asked))
    assert isinstance(design.X, np.ndarray)
    asked_for = request.features is not None
    covariates = TableCovariates.of(table, plan, design, excluded=request.exclude, asked=asked_for, drawn=sample.drawn)
    question = RuleQuestion(
        design.columns,
        plain_terms(plan.encoding),
        design.X,
        design.labels,
        intercept,
        precision_of_columns(table, plan.encoding),
        Covariates(covariates.scan, covariates.drawn),
        None if units is None else units[design.kept],
    )
    return Prepared(plan, design, matrix, constants, question, covariates)


def _units(table: Table, request: Request) -> NDArray[np.intp] | None:
    """Return numbers of the rows, equal for those that are wrong together."""
    if request.error_unit is None:
        return None
    if request.error_unit == request.column:
        raise TableError(f"{table.name}: the target cannot say which rows are wrong together")
    return groups_of(table, request.error_unit)[0]


def _plan_of(sample: ReadSample, request: Request) -> Plan:
    """Return which columns are used, and how."""
    unused, zero = {*sample.unused}, [*sample.zero]
    plan = make_plan(
        sample.table,
        request.column,
        features=None if request.features is None else [name for name in request.features if name not in unused],
        exclude=(*request.exclude, *sample.unused),
        category=[name for name in request.category if name not in unused],
        number=[*(name for name in request.number if name not in {*unused, *zero}), *zero],
        id_column=request.id,
        group_column=request.group,
        intercept=request.intercept,
    )
    inputs = (
        replace(one, blank_is_zero=True) if isinstance(one, Number) and one.column in zero else one
        for one in plan.encoding.inputs
    )
    return replace(plan, encoding=replace(plan.encoding, inputs=tuple(inputs))) if zero else plan


def _numbers_of(sample: ReadSample, plan: Plan, request: Request) -> Design:
    """Return the columns as numbers, none of which is too large to reckon with."""
    design = encode(sample.table, plan.encoding, strict=request.strict)
    for name, values in design.columns.numbers.items():
        check_size(sample.table, name, values, SQUARE_IS_FINITE, design.kept)
    check_size(sample.table, request.column, design.labels, LARGEST_LABEL, design.kept)
    return replace(design, columns=replace(design.columns, ordered=sample.ordered))


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
