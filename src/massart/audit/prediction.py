"""A saved formula on another table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.audit.chains import BEFORE_IS_WRONG, Chains, chains_of
from massart.audit.error_types import LAST_PLACE as OFF_BY_A_PLACE
from massart.audit.error_types import Rule, kinds_of
from massart.audit.explanations import Labels
from massart.audit.finding import check_order, rows_with_values
from massart.audit.implied import implied_values, marks_of, places_of, residuals
from massart.audit.model_file import SavedModel
from massart.audit.table_audit import ROW
from massart.report import Notice
from massart.rows import AGREES, LAST_PLACE, ArrayRows, Callback, silent
from massart.rows.ahead import ahead
from massart.rules.columns import Columns
from massart.rules.matrix import Matrix, TermMatrix
from massart.rules.terms import Term
from massart.tables import Design, Gap, Stream, Table, TableError, column_values, encode, free_name, left_out


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a formula gives for each row of a table.

    Attributes
    ----------
    columns : dict of str to array
        The row (counted from 1) or its id, `implied`, and where the table has the target: given, residual, wrong, kind.
        Rows with missing values have none.
    implied : masked array
        The values themselves.
    n_rows : int
    gaps : mapping of Gap to int
        Why rows have none, and how many.
    n_without : int
        How many have none since a term has none.
    remarks : tuple of str
        Units that were assumed.
    """

    columns: dict[str, Any]
    implied: Any
    n_rows: int
    gaps: Mapping[Gap, int]
    n_without: int
    remarks: tuple[str, ...]

    @property
    def notices(self) -> tuple[str, ...]:
        """Rows that could not be predicted, counted, and units that were assumed."""
        return notices_of([self])


def notices_of(parts: Sequence[Prediction]) -> tuple[str, ...]:
    """Return how many rows of all parts could not be predicted, and units that were assumed, as sentences."""
    gaps = sum((Counter(part.gaps) for part in parts), Counter[Gap]())
    n, n_rows = sum(part.n_without for part in parts), sum(part.n_rows for part in parts)
    remarks = dict.fromkeys(remark for part in parts for remark in part.remarks)
    return (*left_out(gaps, n_rows, refit=False), *remarks, *([Notice("no value", n=n)] if n else []))


def held(
    model: SavedModel, rows: Table | Stream, most: int, callback: Callback = silent, rows_held: int = 50_000
) -> Table | Stream:
    """Return a stream as a table, if it is small, or if the rule looks at other rows and there is memory."""
    if isinstance(rows, Table):
        return rows
    ordered = next((term.term for term in model.formula.terms if term.term and term.term.needs_order), None)
    if not rows.is_larger_than(most) and (ordered or rows.n_rows <= rows_held):
        return rows.whole(callback)
    if ordered:
        raise TableError(f"the term {ordered} needs the whole table in memory: raise --max-memory")
    return rows


def predicted(
    model: SavedModel,
    rows: Table | Stream,
    id_column: str | None = None,
    known_kinds: tuple[NDArray[np.intp], NDArray[np.str_]] | None = None,
    callback: Callback = silent,
) -> Iterator[Prediction]:
    """Yield what a formula gives for a table, or each block of a stream; kinds of wrong rows may be known already."""
    if isinstance(rows, Table):
        yield apply_model(model, rows, id_column=id_column, known_kinds=known_kinds)
        return
    names = [entry.column for entry in model.weighed.encoding.inputs]
    names += [name for name in (model.encoding.target.column, id_column) if name in rows.column_names]
    for block in ahead(rows.blocks([*dict.fromkeys(names)], callback)):
        yield apply_model(model, block, id_column=id_column, known_kinds=known_kinds, is_part=True)


def apply_model(
    model: SavedModel,
    table: Table,
    *,
    id_column: str | None = None,
    known_kinds: tuple[NDArray[np.intp], NDArray[np.str_]] | None = None,
    is_part: bool = False,
) -> Prediction:
    """Apply a formula to the rows of a table, and compare with the target where the table has it.

    Rows are marked as they are when a formula is found, so that a table judges its rows alike by `audit_table` and by
    the model that this made. What happened in wrong rows is found out here, unless their numbers and kinds are known.
    """
    model = model.weighed
    formula, agreement = model.formula, model.agreement
    design = encode(table, model.encoding, with_target=False, is_part=is_part)
    terms = [term.term for term in formula.terms if term.term is not None]
    check_order(design, terms)
    X = _values(model, table, design, terms)
    complete, _ = rows_with_values(X, {})
    n_without, kept = len(X) - len(complete), design.kept[complete]
    X = X.take(complete) if n_without else X
    known = np.zeros(table.n_rows, dtype=bool)
    known[kept] = True
    implied = np.zeros(table.n_rows)
    implied[kept] = implied_values(X, formula, places_of(X, formula, agreement))
    if not np.isfinite(implied).all():
        raise TableError(f"{table.name}: {ArrayRows(X, np.zeros(len(X)), intercept=False).fault()}")
    every = np.arange(table.n_rows) if table.numbers is None else table.numbers
    columns: dict[str, Any] = {ROW: every + 1} if id_column is None else {id_column: table.column(id_column)}
    values: dict[str, Any] = {"implied": np.ma.MaskedArray(implied, mask=~known)}
    if formula.target in table.column_names:
        given = column_values(table, model.encoding.target)
        both = known & ~np.isnan(given)
        there = np.where(np.isnan(given), 0.0, given)
        wrong, kind = np.zeros(table.n_rows, dtype=bool), np.full(table.n_rows, "", dtype=object)
        if both.any():
            there_too: Matrix = X[both[kept]]
            marks = marks_of(table.name, there_too, given[both], formula, agreement)
            last_place = marks & LAST_PLACE > 0
            wrong[both] = (marks & AGREES == 0) & ~last_place
            chains = None if is_part else _chains(model, table, design, np.flatnonzero(both), there_too)
            if chains is not None:
                implied[both], there_too = chains.implied, chains.X
                wrong[both] &= ~chains.follows
            if known_kinds is None:
                labels = Labels(given[both], implied[both], wrong[both], last_place, numbers=every[both])
                judged_columns = design.columns.take(complete[both[kept]])
                kind[both] = kinds_of(there_too, Rule(formula, agreement), labels, judged_columns).of(
                    np.arange(len(marks))
                )
            else:
                kind[np.flatnonzero(both)[last_place]] = OFF_BY_A_PLACE
                start, stop = np.searchsorted(known_kinds[0], [every[0], every[-1] + 1])
                kind[np.searchsorted(every, known_kinds[0][start:stop])] = known_kinds[1][start:stop]
            if chains is not None:
                kind[np.flatnonzero(both)[chains.follows]] = BEFORE_IS_WRONG
        values["given"] = np.ma.MaskedArray(there, mask=np.isnan(given))
        judged = {"residual": residuals(there, implied), "wrong": wrong, "kind": kind.astype(str)}
        values |= {name: np.ma.MaskedArray(value, mask=~both) for name, value in judged.items()}
    named = columns | {free_name(name, columns): value for name, value in values.items()}
    return Prediction(named, values["implied"], table.n_rows, design.gaps, n_without, (*table.remarks, *design.remarks))


def _chains(model: SavedModel, table: Table, design: Design, judged: NDArray[np.intp], X: Matrix) -> Chains | None:
    """Return what right rows imply, where the formula looks at other rows."""
    formula, agreement, target = model.formula, model.agreement, model.encoding.target
    if not any(term.coef and term.term and term.term.needs_order for term in formula.terms):
        return None
    y = column_values(table, target)
    columns = replace(design.columns, numbers={**design.columns.numbers, target.column: y})
    return chains_of(table.name, columns, judged, (formula, agreement, places_of(X, formula, agreement)))


def _values(model: SavedModel, table: Table, design: Design, terms: Sequence[Term]) -> TermMatrix:
    """Return the values of the terms; those before a first row, and after a target that is missing, are NaN."""
    columns, target = design.columns, model.encoding.target
    if not columns.n_rows:  # a rule that is a constant reads no column
        columns = Columns({"": np.zeros(len(design.kept))})
    if any(target.column in term.columns() for term in terms):
        given = column_values(table, target)[design.kept]
        columns = replace(columns, numbers={**columns.numbers, target.column: given})
    return TermMatrix(columns, terms)
