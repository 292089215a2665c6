"""A saved formula on another table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from massart.agreement import AGREES, LAST_PLACE, Mark
from massart.audit.explanations import Labels
from massart.audit.finding import check_order
from massart.audit.implied import implied_values, places_of, residuals
from massart.audit.kinds import kinds_of
from massart.audit.model_file import SavedModel
from massart.audit.table_audit import ROW
from massart.rows import ArrayRows, BoolArray
from massart.rules.columns import Columns
from massart.rules.matrix import TermMatrix
from massart.rules.terms import Term
from massart.table import Design, Table, column_values, encode, free_name


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a formula gives for each row of a table.

    Attributes
    ----------
    columns : dict of str to array
        The row (counted from 1) or its id, `implied`, and where the table has the target: given, residual, wrong, kind.
        Rows with missing values have none.
    notices : tuple of str
        Rows that could not be predicted, counted.
    implied : masked array
        The values themselves.
    """

    columns: dict[str, Any]
    notices: tuple[str, ...]
    implied: Any


def apply_model(model: SavedModel, table: Table, *, id_column: str | None = None) -> Prediction:
    """Apply a formula to the rows of a table, and compare with the target where the table has it.

    Rows are marked as they are when a formula is found, so that a table judges its rows alike by `audit_table` and by
    the model that this made.
    """
    model = model.weighed
    formula, agreement = model.formula, model.agreement
    design = encode(table, model.encoding, with_target=False)
    terms = [term.term for term in formula.terms if term.term is not None]
    check_order(design, terms)
    X = _values(model, table, design, terms)
    complete, kept, notices = _has_values(X), design.kept, (*table.remarks, *design.notices)
    if not complete.all():
        X, kept = X.take(np.flatnonzero(complete)), kept[complete]
        notices = (*notices, _without(int(np.count_nonzero(~complete))))
    known = np.zeros(table.n_rows, dtype=bool)
    known[kept] = True
    implied = np.zeros(table.n_rows)
    implied[kept] = implied_values(X, formula, places_of(X, formula, agreement))
    every = np.arange(table.n_rows)
    columns: dict[str, Any] = {ROW: every + 1} if id_column is None else table.cells([id_column], every)
    values: dict[str, Any] = {"implied": np.ma.MaskedArray(implied, mask=~known)}
    if formula.target in table.column_names:
        given = column_values(table, model.encoding.target)
        both = known & ~np.isnan(given)
        there = np.where(np.isnan(given), 0.0, given)
        wrong, kind = np.zeros(table.n_rows, dtype=bool), np.full(table.n_rows, "", dtype=object)
        if both.any():
            there_too = X[both[kept]]
            rows = ArrayRows(there_too, given[both], intercept=formula.intercept is not None)
            marks = rows.map(Mark(formula.coef, agreement, formula.link)).to_numpy()
            last_place = marks & LAST_PLACE > 0
            wrong[both] = (marks & AGREES == 0) & ~last_place
            labels = Labels(given[both], implied[both], wrong[both], last_place, numbers=np.flatnonzero(both))
            kinds = kinds_of(there_too, formula, agreement, labels)
            kind[both] = kinds.of(np.arange(len(marks)))
        values["given"] = np.ma.MaskedArray(there, mask=np.isnan(given))
        judged = {"residual": residuals(there, implied), "wrong": wrong, "kind": kind.astype(str)}
        values |= {name: np.ma.MaskedArray(value, mask=~both) for name, value in judged.items()}
    named = columns | {free_name(name, columns): value for name, value in values.items()}
    return Prediction(named, notices, values["implied"])


def _values(model: SavedModel, table: Table, design: Design, terms: Sequence[Term]) -> TermMatrix:
    """Return the values of the terms; those before a first row, and after a target that is missing, are NaN."""
    columns, target = design.columns, model.encoding.target
    if not columns.n_rows:  # a rule that is a constant reads no column
        columns = Columns({"": np.zeros(len(design.kept))})
    if any(target.column in term.columns() for term in terms):
        given = column_values(table, target)[design.kept]
        columns = replace(columns, numbers={**columns.numbers, target.column: given})
    return TermMatrix(columns, terms)


def _has_values(X: TermMatrix) -> BoolArray:
    found = np.ones(len(X), dtype=bool)
    for j in range(X.shape[1]):
        found &= np.isfinite(X[:, j])
    return found


def _without(n: int) -> str:
    return f"{n:,} {'row has' if n == 1 else 'rows have'} no implied value: a term has none there."
