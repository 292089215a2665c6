"""A saved formula on another table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.audit.implied import implied_values
from massart.audit.model_file import SavedModel
from massart.rows import FloatArray
from massart.table import Table, column_values, encode

ROW = "row"


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
    columns["implied"] = np.ma.MaskedArray(implied, mask=~known)
    if model.formula.target in table.column_names:
        given = column_values(table, model.encoding.target)
        columns |= _compared(model, given, implied, known, _sizes(model, design.X, design.kept, table.n_rows))
    return Prediction(columns, design.notices)


def _compared(
    model: SavedModel, given: FloatArray, implied: FloatArray, known: NDArray[np.bool_], sizes: FloatArray
) -> dict[str, Any]:
    both = known & ~np.isnan(given)
    values = np.where(both, given, 0.0)
    residual = values - implied
    wrong = ~model.tolerance.agree(residual, sizes + np.abs(values))
    masks = {"given": (values, ~np.isnan(given)), "residual": (residual, both), "wrong": (wrong, both)}
    return {name: np.ma.MaskedArray(value, mask=~shown) for name, (value, shown) in masks.items()}


def _sizes(model: SavedModel, X: FloatArray, kept: NDArray[np.intp], n_rows: int) -> FloatArray:
    """Return |w|.|x| of each row: what rounding errors are measured by."""
    sizes = np.zeros(n_rows)
    constant = 0.0 if model.formula.intercept is None else abs(model.formula.intercept.coef)
    sizes[kept] = np.abs(X) @ np.abs([term.coef for term in model.formula.terms]) + constant
    return sizes
