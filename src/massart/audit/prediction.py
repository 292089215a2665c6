"""A saved formula on another table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from massart.audit.implied import implied_values, residuals
from massart.audit.model_file import SavedModel
from massart.audit.table_audit import ROW
from massart.rows import BoolArray, FloatArray
from massart.table import Design, Table, column_values, encode, free_name


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a formula gives for each row of a table.

    Attributes
    ----------
    columns : dict of str to array
        The row (counted from 1) or its id, `implied`, and where the table has the target: given, residual, wrong.
        Rows with missing values have none.
    notices : tuple of str
        Rows that could not be predicted, counted.
    """

    columns: dict[str, Any]
    notices: tuple[str, ...]


def apply_model(model: SavedModel, table: Table, *, id_column: str | None = None) -> Prediction:
    """Apply a formula to the rows of a table, and compare with the target where the table has it."""
    design = encode(table, model.encoding, with_target=False)
    known = np.zeros(table.n_rows, dtype=bool)
    known[design.kept] = True
    implied = np.zeros(table.n_rows)
    implied[design.kept] = implied_values(design.X, model.formula, model.tolerance)
    every = np.arange(table.n_rows)
    columns: dict[str, Any] = {ROW: every + 1} if id_column is None else table.cells([id_column], every)
    values: dict[str, Any] = {"implied": np.ma.MaskedArray(implied, mask=~known)}
    if model.formula.target in table.column_names:
        given = column_values(table, model.encoding.target)
        both = known & ~np.isnan(given)
        there = np.where(np.isnan(given), 0.0, given)
        values["given"] = np.ma.MaskedArray(there, mask=np.isnan(given))
        values["residual"] = np.ma.MaskedArray(residuals(there, implied), mask=~both)
        values["wrong"] = np.ma.MaskedArray(_wrong(model, design, there), mask=~both)
    return Prediction(columns | {free_name(name, columns): value for name, value in values.items()}, design.notices)


def _wrong(model: SavedModel, design: Design, given: FloatArray) -> BoolArray:
    """Return the rows that do not follow, judged as they were when the formula was found: before rounding."""
    X, formula = design.X, model.formula
    constant = 0.0 if formula.intercept is None else abs(formula.intercept.coef)
    sizes = np.abs(X) @ np.abs([term.coef for term in formula.terms]) + constant
    labels = given[design.kept]
    wrong = np.zeros(len(given), dtype=bool)
    wrong[design.kept] = ~model.tolerance.agree(labels - formula.predict(X), sizes + np.abs(labels))
    return wrong
