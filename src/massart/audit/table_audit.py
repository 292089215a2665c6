"""One table, one target column: the formula, the certificate, and every row judged."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from massart.agreement import Agreement
from massart.audit.explanations import Labels
from massart.audit.implied import implied_values, residuals
from massart.audit.kinds import UNEXPLAINED, Kinds, kinds_of
from massart.audit.model_file import SavedModel
from massart.certificate import Certificate, Verdict
from massart.progress import Callback, silent
from massart.recover import Assumption
from massart.report import Findings, Group, JudgedRows, Report, RowKinds, Usage, called_wrong, usage_of
from massart.rows import BoolArray, FloatArray
from massart.rules.choice import KINDS, Kind
from massart.rules.columns import Columns
from massart.rules.find import Answer, Options, Question, find_rule, fit_terms
from massart.rules.formula import Formula, compose
from massart.rules.language import parse_formula, parse_terms, target_of
from massart.rules.matrix import TermMatrix
from massart.rules.terms import Term, TermError, column, level
from massart.table import (
    Design,
    Encoding,
    Plan,
    Table,
    TableError,
    encode,
    free_name,
    groups_of,
    make_plan,
    precision_of_columns,
    replaced,
    table_of,
)

ROW = "row"
"""The column of an audit that counts the rows of the table, from 1, its header not counted."""

_VERSIONS = ("massart", "numpy", "scipy", "pyarrow")


@dataclass(frozen=True)
class Audit:
    """A table, the formula behind one of its columns, and what that says of each row.

    Rows with missing values are not judged: `design.kept` has the numbers of the others, and the arrays are theirs.

    Attributes
    ----------
    table : Table
    plan : Plan
        Which columns were used, and how.
    design : Design
        The table as numbers.
    X : (n, d) array or TermMatrix
        The values of the terms in the judged rows.
    formula : Formula
        Without a rule (verdict NONE), what came closest.
    certificate : Certificate
    agree : (n,) boolean array
        Judged rows that follow the formula.
    last_place : (n,) boolean array
        Those that do not, by one unit of the last place.
    notices : tuple of str
        Columns and rows left out, levels of categories, the kind of formula.
    """

    table: Table
    plan: Plan
    design: Design
    X: FloatArray | TermMatrix
    formula: Formula
    certificate: Certificate
    agree: BoolArray
    last_place: BoolArray
    notices: tuple[str, ...]

    @cached_property
    def wrong(self) -> BoolArray:
        """Judged rows that are called wrong: others than those off by a last place, and none without a rule."""
        return called_wrong(self.certificate, self.agree, self.last_place)

    @property
    def n_wrong(self) -> int:
        """Number of wrong rows."""
        return int(np.count_nonzero(self.wrong))

    @property
    def n_last_place(self) -> int:
        """Number of rows that are off by one unit of the last place."""
        return int(np.count_nonzero(self.last_place))

    @property
    def wrong_share(self) -> float:
        """Share of the judged rows that are wrong."""
        return self.n_wrong / len(self.agree)

    @property
    def is_rule(self) -> bool:
        """Whether there is a rule at all."""
        return self.certificate.verdict is not Verdict.NONE

    @property
    def is_certain(self) -> bool:
        """Whether the verdict is PROVEN or CONFIRMED."""
        return self.certificate.verdict.certain

    @property
    def agreement(self) -> Agreement:
        """When a row agrees."""
        return self.certificate.agreement

    @property
    def explanation(self) -> str:
        """The certificate in words."""
        return self.certificate.explain(self.formula.names)

    @property
    def given(self) -> FloatArray:
        """The target of the judged rows, as the table has it."""
        assert self.design.y is not None
        return self.design.y

    @cached_property
    def implied(self) -> FloatArray:
        """What the formula gives for the judged rows."""
        return implied_values(self.X, self.formula, self.agreement)

    @cached_property
    def kinds(self) -> Kinds:
        """What happened in each judged row."""
        labels = Labels(self.given, self.implied, self.wrong, self.last_place & self.is_rule)
        return kinds_of(self.X, self.formula, self.agreement, labels, self._together())

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The judged rows, worst first: wrong ones by the size of the residual, then last places, then the others."""
        kind = np.where(self.wrong, 0, np.where(self.last_place, 1, 2))
        return np.lexsort((-np.abs(self.given - self.implied), kind))

    def rows(self) -> dict[str, Any]:
        """Return the audit as columns: row, id, group, given, implied, residual, wrong, kind, rank.

        The worst row comes first, rows that were not judged last, without values. Without a rule nothing is implied.
        """
        left_out = np.setdiff1d(np.arange(self.design.n_total), self.design.kept)
        hidden = () if self.is_rule else ("implied", "residual")
        values = {
            name: _padded(value, 0 if name in hidden else len(value), len(left_out))
            for name, value in self._judged(self.order).items()
        }
        return self._named(np.concatenate([self.design.kept[self.order], left_out]), values)

    def worst(self, most: int) -> dict[str, Any]:
        """Return the same columns of at most so many wrong rows, as lists of plain values."""
        return self.some(self._worst(most))

    def some(self, order: NDArray[np.intp]) -> dict[str, Any]:
        """Return the same columns of some judged rows, as lists of plain values; the rank is their order here."""
        columns = self._named(self.design.kept[order], self._judged(order))
        return {name: values if isinstance(values, list) else values.tolist() for name, values in columns.items()}

    def _worst(self, most: int) -> NDArray[np.intp]:
        """Return the first rows of `order`, without sorting all of them."""
        wrong = np.flatnonzero(self.wrong)
        sizes = np.abs(self.given - self.implied)[wrong]
        if len(wrong) > most:
            large = sizes >= np.partition(sizes, len(wrong) - most)[len(wrong) - most]
            wrong, sizes = wrong[large], sizes[large]
        return wrong[np.argsort(-sizes, kind="stable")][:most]

    def _judged(self, order: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        given, implied = self.given[order], self.implied[order]
        return {
            "given": given,
            "implied": implied,
            "residual": residuals(given, implied),
            "wrong": self.wrong[order],
            "kind": self.kinds.of(order),
            "rank": np.arange(1, len(order) + 1),
        }

    def _named(self, numbers: NDArray[np.intp], values: Mapping[str, Any]) -> dict[str, Any]:
        """Put what tells which row it is before the values; columns of the table keep their names."""
        columns: dict[str, Any] = {ROW: numbers + 1} | self.table.cells(self._shown(), numbers)
        return columns | {free_name(name, columns): value for name, value in values.items()}

    def fixed(self) -> Table:
        """Return the table with the wrong targets replaced; what was given stays in a column beside it."""
        target = self.formula.target
        rows = self.design.kept[self.wrong]
        original = free_name(f"{target}_given", self.table.column_names)
        return replaced(self.table, target, rows, self.implied[self.wrong], original)

    def model(self) -> SavedModel:
        """Return what is needed to apply the formula to another table."""
        formula, agreement = self.formula, self.agreement
        encoding = self.plan.encoding
        if any(not term.is_shown for term in formula.terms):  # of a library, what is in the rule
            used = [j for j, term in enumerate(formula.terms) if term.coef]
            formula = replace(formula, terms=tuple(formula.terms[j] for j in used))
            if agreement.inputs:
                widths = agreement.inputs
                agreement = replace(agreement, inputs=(*(widths[j] for j in used), *widths[len(self.formula.terms) :]))
        read = {name for term in formula.terms if term.term for name in term.term.columns()}
        encoding = replace(encoding, inputs=tuple(entry for entry in encoding.inputs if entry.column in read))
        return SavedModel(encoding, formula, agreement, self.certificate.verdict.name, self.explanation)

    def groups(self) -> tuple[Group, ...]:
        """Return rows and wrong rows for each value of the group column, the largest share of wrong rows first."""
        if self.plan.group_column is None:
            return ()
        codes, names = groups_of(self.table, self.plan.group_column)
        codes = codes[self.design.kept]
        rows = np.bincount(codes, minlength=len(names))
        wrong = np.bincount(codes[self.wrong], minlength=len(names))
        groups = [Group(*facts) for facts in zip(names, rows.tolist(), wrong.tolist(), strict=True) if facts[1]]
        return tuple(sorted(groups, key=lambda group: (-group.n_wrong / group.n_rows, -group.n_wrong, group.name)))

    def usage(self) -> tuple[Usage, ...]:
        """Return how many rows use each coefficient, and how many of them agree."""
        return usage_of(self.X, self.agree, constant=self.formula.intercept is not None)

    def findings(self, facts: Mapping[str, str] | None = None) -> Findings:
        """Return what a report shows."""
        inputs = self._read()
        shown = self._shown()

        def cells(rows: NDArray[np.intp]) -> Mapping[str, Sequence[object]]:
            numbers = self.design.kept[rows]
            columns = [*shown, *(name for name in inputs if name not in shown)]
            found = self.table.cells(columns, numbers)
            return found if self.plan.id_column else {ROW: (numbers + 1).tolist()} | found

        words = self.kinds.words
        kinds = RowKinds(words, self.kinds.codes, words.index(UNEXPLAINED) if UNEXPLAINED in words else -1)
        group, groups = self.plan.group_column, self.groups()
        rows = JudgedRows(self.given, self.implied, self.agree, self.wrong, cells, group, groups, kinds)
        return Findings(
            title=self.table.name,
            formula=self.formula,
            certificate=self.certificate,
            n_rows=len(self.agree),
            n_agree=int(np.count_nonzero(self.agree)),
            n_wrong=self.n_wrong,
            usage=self.usage(),
            rows=rows if self.is_rule else None,
            notices=self.notices,
            facts={**(facts or {}), "versions": versions()},
        )

    def report(self, facts: Mapping[str, str] | None = None) -> Report:
        """Return the page that shows it; ``report().save("report.html")`` writes it."""
        return Report(self.findings(facts))

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def _read(self) -> list[str]:
        """Return the columns that the formula reads; of plain columns all that it might."""
        shown = (term.term for term in self.formula.terms if term.is_shown and term.term is not None)
        return list(dict.fromkeys(name for term in shown for name in term.columns()))

    def _together(self) -> NDArray[np.intp] | None:
        """Return numbers of the judged rows, equal where they have the same id or, with ids of their own, group."""
        for name in (self.plan.id_column, self.plan.group_column):
            if name is not None:
                codes, names = groups_of(self.table, name)
                if len(names) <= len(codes):
                    return codes[self.design.kept]
        return None

    def _shown(self) -> list[str]:
        """Return the columns that tell which row it is."""
        return list(dict.fromkeys(c for c in (self.plan.id_column, self.plan.group_column) if c is not None))


def audit_table(
    source: object,
    target: str | None = None,
    *,
    terms: str | Sequence[str] = "auto",
    formula: str | None = None,
    model: Kind = "auto",
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    category: Sequence[str] = (),
    id_column: str | None = None,
    group_column: str | None = None,
    error_unit: str | None = None,
    wrong_at_most: float = 0.5,
    looks: float = 1.0,
    tolerance: float | Literal["auto"] = "auto",
    intercept: bool = True,
    strict: bool = False,
    budget: float = 20.0,
    seed: int = 0,
    announce: Callable[[Audit | None], None] | None = None,
    callback: Callback = silent,
) -> Audit:
    """Find the rule behind a column of a table, and the rows that do not follow it.

    Parameters
    ----------
    source : str, Path, Table or data frame
        A file (CSV, TSV, Parquet, Arrow, JSON lines; also compressed), or a pandas, polars or pyarrow table.
    target : str, optional
        The column that should follow a rule of the others; a `formula` names it itself.
    terms : "auto", "columns", str or sequence of str
        What the rule may be made of. "columns": the columns as they stand. "auto": these first and, while many rows
        disagree, products, ratios, rates by category, running sums, tiers and rules by group. Otherwise terms such as
        ``"qty*price, max(0, kwh - 200)"``; see :mod:`massart.rules.language`.
    formula : str, optional
        The same as R and statsmodels write it: ``"total ~ qty:price + hours:C(service)"``.
    model : {"auto", "linear", "relu"}
        A sum of terms, or such a sum with 0 where it is negative; "auto" takes that of which the rows say more.
    features : sequence of str, optional
        The columns that the rule may use; by default all that hold numbers, booleans, dates or categories.
    exclude : sequence of str
        Columns that it may not use.
    category : sequence of str
        Columns whose numbers are codes.
    id_column : str, optional
        The column that names the rows.
    group_column : str, optional
        Wrong rows are counted for each of its values.
    error_unit : str, optional
        Rows with the same value in this column may be wrong together; without it, errors are taken to be independent.
    wrong_at_most : float
        The probability with which a label is wrong at most, as far as you know: CONFIRMED assumes it. With an
        `error_unit`, the probability that a unit has any wrong row.
    looks : float
        Where the answers of several calls are claimed together, among how many what may fail is shared.
    tolerance : "auto" or float
        Largest residual of a row that follows the rule; see :class:`massart.MassartRegressor`.
    intercept : bool
        Whether the rule has a constant.
    strict : bool
        Refuse missing values instead of leaving out their rows.
    budget : float
        Seconds that the search beyond the plain columns may take.
    seed : int
        Of all random choices.
    announce : callable, optional
        Told of the answer of the plain columns, or None if a first glance sees none, before the search goes on.
    callback : callable

    Returns
    -------
    Audit

    Raises
    ------
    TableError
        Naming the file, column or row at fault.
    TermError
        Naming the term at fault.
    """
    if model not in ("auto", *KINDS):
        raise ValueError(f'model must be "auto", "linear" or "relu", got {model!r}')
    if not 0 < wrong_at_most < 1:
        raise ValueError(f"wrong_at_most must be between 0 and 1, got {wrong_at_most}")
    if not 0 <= budget < float("inf"):
        raise ValueError(f"budget must be a number of seconds, got {budget}")
    if tolerance != "auto" and not 0 <= tolerance < float("inf"):
        raise ValueError(f"tolerance must be finite and not negative, got {tolerance}")
    target = _target(target, formula)
    table = source if isinstance(source, Table) else table_of(source)
    if error_unit == target:
        raise TableError(f"{table.name}: the target cannot tell which rows are wrong together")
    units = None if error_unit is None else groups_of(table, error_unit)[0]
    plan = make_plan(
        table,
        target,
        features=features,
        exclude=exclude,
        category=category,
        id_column=id_column,
        group_column=group_column,
        intercept=intercept,
    )
    design = encode(table, plan.encoding, strict=strict)
    assert design.y is not None
    asked, matrix = None, None
    if formula is not None or terms not in ("auto", "columns"):
        asked, intercept = _asked(design, target, terms, formula, intercept)
        check_order(design, asked)
        matrix = TermMatrix(_with_target(design, target), asked)
        design, matrix = _with_values(design, matrix)
    assert design.y is not None
    question = Question(
        design.columns,
        plain_terms(plan.encoding),
        design.X,
        design.y,
        intercept,
        precision_of_columns(table, plan.encoding),
        None if units is None else units[design.kept],
    )

    def audit_of(answer: Answer) -> Audit:
        recovery, (certificate,) = answer.recovery, answer.recovery.certificates
        return Audit(
            table,
            plan,
            design,
            answer.X,
            compose(
                target,
                answer.terms,
                recovery.coef[:, 0],
                recovery.fractions[0],
                recovery.standard_errors[:, 0],
                certificate,
                answer.link,
            ),
            certificate,
            recovery.agree[:, 0],
            recovery.last_place[:, 0],
            (*design.notices, *plan.notices, *answer.notices),
        )

    options = Options(
        model,
        tolerance,
        seed,
        Assumption(wrong_at_most=wrong_at_most, looks=looks),
        budget if terms == "auto" else 0.0,
        lambda answer: None if announce is None else announce(None if answer is None else audit_of(answer)),
        callback,
    )
    if asked is not None and matrix is not None:
        return audit_of(fit_terms(question, options, asked, matrix))
    return audit_of(find_rule(question, options))


def _target(target: str | None, formula: str | None) -> str:
    named = None if formula is None else target_of(formula)
    if target is None and named is None:
        raise ValueError("target must name the column that should follow a rule")
    if target is not None and named is not None and target != named:
        raise ValueError(f"the target is {target!r}, but the formula is for {named!r}")
    return str(target if named is None else named)


def _asked(
    design: Design, target: str, terms: str | Sequence[str], formula: str | None, intercept: bool
) -> tuple[tuple[Term, ...], bool]:
    """Return the terms that the user wrote, and whether there is a constant."""
    columns = _with_target(design, target)
    if formula is not None:
        _, found, constant = parse_formula(formula, columns)
        intercept = intercept and constant
    else:
        found = parse_terms(terms if isinstance(terms, str) else ", ".join(terms), columns)
    alone = next((term for term in found if target in term.columns_here()), None)
    if alone is not None:
        raise TermError(f"the term {alone} uses the target {target!r} itself; only lag({target}) may")
    return found, intercept


def _with_target(design: Design, target: str) -> Columns:
    """Return the columns with the target among them: a lag may look at it."""
    assert design.y is not None
    return replace(design.columns, numbers={**design.columns.numbers, target: design.y})


def _with_values(design: Design, matrix: TermMatrix) -> tuple[Design, TermMatrix]:
    """Leave out rows before which there is none, if a term looks back."""
    there = matrix.has_values()
    if there.all():
        return design, matrix
    kept = np.flatnonzero(there)
    assert design.y is not None
    n = len(there) - len(kept)
    notice = f"{n:,} {'row' if n == 1 else 'rows'} left out: there is none before {'it' if n == 1 else 'them'}."
    smaller = replace(
        design,
        X=design.X[kept],
        y=design.y[kept],
        columns=design.columns.take(kept),
        kept=design.kept[kept],
        remarks=(*design.remarks, notice),
    )
    return smaller, matrix.take(kept)


def plain_terms(encoding: Encoding) -> tuple[Term, ...]:
    """Return the columns of an encoding as terms: what X of its designs has."""
    return tuple(column(name) if value is None else level(name, value) for name, value in encoding.terms)


def check_order(design: Design, terms: Sequence[Term]) -> None:
    """Raise TableError if a term looks at other rows, and rows were left out."""
    ordered = next((term for term in terms if term.needs_order), None)
    if ordered is not None and len(design.kept) < design.n_total:
        row = int(np.setdiff1d(np.arange(design.n_total), design.kept)[0])
        raise TableError(f"the term {ordered} needs every row of the table, but row {row + 1:,} lacks a value")


def versions() -> str:
    """Return the versions of what the answer depends on, in one line."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _VERSIONS)])


def _padded(values: NDArray[Any], n_shown: int, n_missing: int) -> NDArray[Any]:
    """Return so many of the values, then nothing, also for the rows that were not judged."""
    padded = np.concatenate([values, np.zeros(n_missing, dtype=values.dtype)])
    return np.ma.MaskedArray(padded, mask=np.arange(len(padded)) >= n_shown)
