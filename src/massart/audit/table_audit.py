"""One table, one target column: the formula, the certificate, and every row judged."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from massart.audit import choice
from massart.audit.choice import Kind
from massart.audit.implied import implied_values, residuals
from massart.audit.model_file import SavedModel
from massart.certificate import Certificate
from massart.exact import Tolerance
from massart.formula import Formula, column_labels, compose
from massart.progress import Callback, silent
from massart.report import Findings, Group, JudgedRows, Report, Support
from massart.rows import ArrayRows, BoolArray, FloatArray
from massart.table import (
    Design,
    Plan,
    Table,
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

    Rows with missing values are not judged: `design.kept` has the numbers of the others, and `given`, `implied` and
    `wrong` are theirs.

    Attributes
    ----------
    table : Table
    plan : Plan
        Which columns were used, and how.
    design : Design
        The numbers that were fitted.
    formula : Formula
    certificate : Certificate
    tolerance : Tolerance
        What counted as agreement.
    wrong : (n,) boolean array
        Judged rows that do not follow the formula.
    notices : tuple of str
        Columns and rows left out, levels of categories, the kind of formula.
    """

    table: Table
    plan: Plan
    design: Design
    formula: Formula
    certificate: Certificate
    tolerance: Tolerance
    wrong: BoolArray
    notices: tuple[str, ...]

    @property
    def n_wrong(self) -> int:
        """Number of wrong rows."""
        return int(np.count_nonzero(self.wrong))

    @property
    def wrong_share(self) -> float:
        """Share of the judged rows that are wrong."""
        return self.n_wrong / len(self.wrong)

    @property
    def is_certain(self) -> bool:
        """Whether the verdict is PROVEN or MAJORITY."""
        return self.certificate.verdict in choice.CERTAIN

    @property
    def given(self) -> FloatArray:
        """The target of the judged rows, as the table has it."""
        assert self.design.y is not None
        return self.design.y

    @cached_property
    def implied(self) -> FloatArray:
        """What the formula gives for the judged rows."""
        return implied_values(self.design.X, self.formula, self.tolerance)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The judged rows, worst first: wrong ones by the size of the residual, then the others."""
        return np.lexsort((-np.abs(self.given - self.implied), ~self.wrong))

    def rows(self) -> dict[str, Any]:
        """Return the audit as columns: row, id, group, given, implied, residual, wrong, rank; the worst row first.

        Rows that were not judged come last, without values.
        """
        left_out = np.setdiff1d(np.arange(self.design.n_total), self.design.kept)
        judged = self._judged(self.order)
        values = {name: _padded(value, len(left_out)) for name, value in judged.items()}
        return self._named(np.concatenate([self.design.kept[self.order], left_out]), values)

    def worst(self, most: int) -> dict[str, Any]:
        """Return the same columns of at most so many wrong rows, as lists of plain values."""
        order = self._worst(most)
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
        return SavedModel(
            self.plan.encoding,
            self.formula,
            self.tolerance,
            self.certificate.verdict.name,
            self.certificate.explain(),
        )

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

    def support(self) -> tuple[Support, ...]:
        """Return how many rows speak about each coefficient, and how many of them agree."""
        agree = ~self.wrong
        uses = (column != 0 for column in self.design.X.T)
        found = [Support(int(used.sum()), int((used & agree).sum())) for used in uses]
        return (*found, Support(len(agree), int(agree.sum()))) if self.formula.intercept else tuple(found)

    def findings(self, facts: Mapping[str, str] | None = None) -> Findings:
        """Return what a report shows."""
        inputs = list(dict.fromkeys(column for column, _ in self.plan.encoding.terms))
        shown = self._shown()

        def cells(rows: NDArray[np.intp]) -> Mapping[str, Sequence[object]]:
            numbers = self.design.kept[rows]
            columns = [*shown, *(name for name in inputs if name not in shown)]
            found = self.table.cells(columns, numbers)
            return found if self.plan.id_column else {ROW: (numbers + 1).tolist()} | found

        return Findings(
            title=self.table.name,
            formula=self.formula,
            certificate=self.certificate,
            agreement=self.tolerance.reason,
            n_rows=len(self.wrong),
            n_wrong=self.n_wrong,
            support=self.support(),
            rows=JudgedRows(self.given, self.implied, self.wrong, cells, self.plan.group_column, self.groups()),
            notices=self.notices,
            facts={**(facts or {}), "versions": versions()},
        )

    def report(self, facts: Mapping[str, str] | None = None) -> Report:
        """Return the page that shows it; ``report().save("report.html")`` writes it."""
        return Report(self.findings(facts))

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def _shown(self) -> list[str]:
        """Return the columns that tell which row it is."""
        return list(dict.fromkeys(c for c in (self.plan.id_column, self.plan.group_column) if c is not None))


def audit_table(
    source: object,
    target: str,
    *,
    model: Kind = "auto",
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    id_column: str | None = None,
    group_column: str | None = None,
    tolerance: float | Literal["auto"] = "auto",
    intercept: bool = True,
    strict: bool = False,
    seed: int = 0,
    callback: Callback = silent,
) -> Audit:
    """Find the formula behind a column of a table, and the rows that do not follow it.

    Parameters
    ----------
    source : str, Path, Table or data frame
        A file (CSV, TSV, Parquet, Arrow, JSON lines; also compressed), or a pandas, polars or pyarrow table.
    target : str
        The column that should follow a formula of the others.
    model : {"auto", "linear", "relu"}
        A sum of terms, or such a sum with 0 where it is negative; "auto" takes what the rows certify.
    features : sequence of str, optional
        The columns that the formula may use; by default all that hold numbers, booleans or categories.
    exclude : sequence of str
        Columns that it may not use.
    id_column : str, optional
        The column that names the rows.
    group_column : str, optional
        Wrong rows are counted for each of its values.
    tolerance : "auto" or float
        Largest residual of a row that follows the formula; see :class:`massart.MassartRegressor`.
    intercept : bool
        Whether the formula has a constant.
    strict : bool
        Refuse missing values instead of leaving out their rows.
    seed : int
        Of all random choices.
    callback : callable

    Returns
    -------
    Audit

    Raises
    ------
    TableError
        Naming the file, column or row at fault.
    """
    if model not in ("auto", *choice.KINDS):
        raise ValueError(f'model must be "auto", "linear" or "relu", got {model!r}')
    table = source if isinstance(source, Table) else table_of(source)
    plan = make_plan(
        table,
        target,
        features=features,
        exclude=exclude,
        id_column=id_column,
        group_column=group_column,
        intercept=intercept,
    )
    design = encode(table, plan.encoding, strict=strict)
    assert design.y is not None
    terms = plan.encoding.terms
    rows = ArrayRows(design.X, design.y, intercept=intercept, precision=precision_of_columns(table, plan.encoding))
    names = column_labels(terms, intercept=intercept)
    found = choice.fit(rows, design.y, model, tolerance=tolerance, seed=seed, column_names=names, callback=callback)
    answer = found.recovery
    certificate = answer.certificates[0]
    formula = compose(
        target, terms, answer.coef[:, 0], answer.fractions[0], answer.standard_errors[:, 0], certificate, found.link
    )
    notices = (*design.notices, *plan.notices, *([found.reason] if found.reason else []))
    return Audit(table, plan, design, formula, certificate, answer.tolerances[0], ~answer.agree[:, 0], notices)


def versions() -> str:
    """Return the versions of what the answer depends on, in one line."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _VERSIONS)])


def _padded(values: NDArray[Any], n_missing: int) -> NDArray[Any]:
    nothing = np.zeros(n_missing, dtype=values.dtype)
    return np.ma.MaskedArray(np.concatenate([values, nothing]), mask=np.arange(len(values) + n_missing) >= len(values))
