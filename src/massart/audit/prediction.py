"""A saved rule next to the rows of a table: what it gives for each, and which of them agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.error_types import LAST_PLACE as OFF_BY_A_PLACE
from massart.audit.error_types import UNDER_ANOTHER_RULE
from massart.audit.implied import implied_by, residuals
from massart.audit.judging import RowRule
from massart.audit.model_file import SavedModel
from massart.audit.table_audit import ROW, Audit
from massart.certificate import Certificate, Span, Verdict, certify_counts
from massart.report import Notice
from massart.rows import AGREES, LAST_PLACE, Callback, ahead, silent
from massart.tables import Gap, Stream, Table, column_values, free_name, left_out


def compared_with(model: SavedModel, rule: RowRule, table: Table, *, is_part: bool = False) -> Audit:
    """Compare the rows of a table in memory, which may be some rows of another."""
    design, X, marks = rule.marked(table, is_part=is_part)
    agree, last_place = marks & AGREES > 0, marks & LAST_PLACE > 0
    certificate = certificate_of(model, len(marks), int(agree.sum()), int(last_place.sum()))
    notices = (*table.remarks, *left_out(design.gaps, design.n_total, refit=False), *design.remarks)
    answer = model.formula, certificate, agree, last_place, notices
    return Audit(table, rule.plan, design, X, *answer, saved=model, segment=rule.segment)


def certificate_of(model: SavedModel, n_rows: int, n_agree: int, n_last_place: int) -> Certificate:
    """Return what was known of the rule, with the counts of other rows."""
    verdict = Verdict.__members__.get(model.verdict, Verdict.PLURALITY)
    return certify_counts(
        verdict,
        model.agreement,
        model.assumption,
        n_rows=n_rows,
        n_agree=n_agree,
        n_last_place=n_last_place,
        span=Span.all_of(len(model.formula.all_terms)),
    )


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


def predicted(
    model: SavedModel,
    rows: Table | Stream,
    id_column: str | None = None,
    found: Audit | None = None,
    listed: Sequence[pa.Table] | None = None,
    callback: Callback = silent,
) -> Iterator[Prediction]:
    """Yield what a formula gives for a table, or each block of a stream.

    `found` is what a check of it said, and `listed` the wrong rows with their error types, if it did not keep them all.
    """
    model = model.weighed.for_columns(rows.column_names)
    if isinstance(rows, Table):
        yield apply_model(model, rows, id_column=id_column, found=found)
        return
    rule = RowRule.of_model(model, id_column=id_column)
    names = [name for name in rule.columns if name in rows.column_names]
    known: tuple[NDArray[np.intp], NDArray[np.str_]] | None = None
    if listed:
        table = pa.concat_tables(listed)
        numbers, kinds = (table[Audit.column_of(table.column_names, name)].to_numpy() for name in (ROW, "kind"))
        known = numbers - 1, kinds.astype(str)
    elif found is not None:
        wrong = np.flatnonzero(found.wrong)
        known = found.numbers_of(found.design.kept[wrong]), found.kinds.of(wrong)
    for block in ahead(rows.blocks(names, callback)):
        found = None if known is None else compared_with(model, rule, block, is_part=True)
        yield _prediction(model, block, id_column, found, known)


def apply_model(
    model: SavedModel, table: Table, *, id_column: str | None = None, found: Audit | None = None
) -> Prediction:
    """Apply a formula to the rows of a table, and compare with the target where the table has it.

    Rows are marked as they are when a formula is found, so that a table judges its rows alike by `audit_table` and by
    the model that this made; `found` is what a check of it said, if there was one.
    """
    model = model.weighed.for_columns(table.column_names)
    target = model.encoding.target
    if found is None and target.column in table.column_names and not np.isnan(column_values(table, target)).all():
        found = compared_with(model, RowRule.of_model(model), table).chained
    return _prediction(model, table, id_column, found)


def _prediction(
    model: SavedModel,
    table: Table,
    id_column: str | None,
    found: Audit | None,
    known: tuple[NDArray[np.intp], NDArray[np.str_]] | None = None,
) -> Prediction:
    """Return what a formula gives next to what was given; the error types of wrong rows may be `known`."""
    implied, n_without, design = implied_by(model, table, is_part=known is not None)
    every = np.arange(table.n_rows) if table.numbers is None else table.numbers
    columns: dict[str, Any] = {ROW: every + 1} if id_column is None else {id_column: table.column(id_column)}
    values: dict[str, Any] = {"implied": implied}
    if model.formula.target in table.column_names:
        given = column_values(table, model.encoding.target)
        given = np.ma.MaskedArray(given, mask=np.isnan(given))
        wrong = np.ma.MaskedArray(np.zeros(table.n_rows, dtype=bool), mask=True)
        kind = np.full(table.n_rows, "", dtype=object)
        if found is not None:
            kept = found.design.kept
            wrong[kept] = found.wrong
            if known is None:
                implied[kept], kind[kept] = found.implied, found.kinds.of(np.arange(len(kept)))
            else:
                kind[kept[found.last_place]] = OFF_BY_A_PLACE
                kind[kept[found.apart]] = UNDER_ANOTHER_RULE
                start, stop = np.searchsorted(known[0], [every[0], every[-1] + 1])
                kind[np.searchsorted(every, known[0][start:stop])] = known[1][start:stop]
        mask = np.ma.getmaskarray(wrong)
        values["given"] = given
        values["residual"] = np.ma.MaskedArray(residuals(given.filled(0.0), implied.filled(0.0)), mask=mask)
        values |= {"wrong": wrong, "kind": np.ma.MaskedArray(kind.astype(str), mask=mask)}
    named = columns | {free_name(name, columns): value for name, value in values.items()}
    return Prediction(named, implied, table.n_rows, design.gaps, n_without, (*table.remarks, *design.remarks))
