"""Data frames to tables and back: pandas, polars, Arrow, whatever narwhals reads, and mappings of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.tables.errors import MissingLibrary, TableError, quote
from massart.tables.json_lines import column_of
from massart.tables.stream import Stream, read_table
from massart.tables.table import Table, check_names, named, with_missing

INDEX = "index label"
"""The column that an index of pandas without a name becomes."""

_ARROW_INDEX = "__index_level_0__"
_REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError)


def table_of(
    frame: object,
    name: str = "the table",
    *,
    sheet: str | int | None = None,
    skip: int | None = None,
    na: Sequence[str] = (),
) -> Table:
    """Return a data frame as a table, sharing its memory where that is possible.

    Parameters
    ----------
    frame : data frame, mapping of column names to sequences, str or Path
        pandas, polars, pyarrow or anything else that narwhals reads; a lazy frame is collected, a path is read.
        The index of a pandas frame is a column if it has a name; else its labels name the rows, unless they count them.
    name : str
        For messages.
    sheet, skip, na
        Of a file, as `read_table` takes them; `na` also of a frame.

    Raises
    ------
    TableError
        If it is not a table, or two columns have the same name.
    """
    if isinstance(frame, Table):
        return frame
    if isinstance(frame, str | Path):
        return read_table(frame, sheet=sheet, skip=skip, na=na)
    table = _of_any(frame, name)
    return replace(table, arrow=with_missing(table.arrow, na))


def _of_any(frame: object, name: str) -> Table:
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return _named(frame, name)
    if isinstance(frame, Mapping):
        return _named(assembled(frame, name), name)
    return _of_frame(frame, name)


def column_from(values: object, column: str, name: str) -> pa.ChunkedArray:
    """Return a sequence, an array or a column of a frame as an Arrow column; NaN, NaT and masked cells are null."""
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        return pa.chunked_array([pa.array(np.asarray(values.data), mask=mask, from_pandas=True)])
    if hasattr(values, "to_numpy") and not isinstance(values, Sequence):
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise TableError(f"{name}: column {quote(column)} has {values.ndim} dimensions, not one")
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TableError(f"{name}: column {quote(column)} is not a sequence of values")
    try:
        if isinstance(values, np.ndarray) and values.dtype != object:
            return pa.chunked_array([pa.array(values, from_pandas=True)])
        return pa.chunked_array([column_of([_unboxed(value) for value in values])])
    except _REFUSALS:
        raise TableError(f"{name}: column {quote(column)} holds values that cannot be cells of a table") from None


def assembled(columns: Mapping[str, object], name: str) -> pa.Table:
    """Return columns as a table; `name` is for complaints."""
    names = [*map(str, columns)]
    check_names(names, name)
    arrays = [column_from(values, column, name) for column, values in zip(names, columns.values(), strict=True)]
    for column, array in zip(names, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise TableError(
                f"{name}: column {quote(column)} has {len(array):,} rows, but {quote(names[0])} has {len(arrays[0]):,}"
            )
    return pa.table(arrays, names=names)


def _of_frame(frame: Any, name: str) -> Table:
    nw = _narwhals()
    if not hasattr(frame, "collect_schema"):  # a lazy frame warns, and pandas alone allows twins
        check_names(named([str(column) for column in getattr(frame, "columns", ())]), name)
    try:
        wrapped: Any = nw.from_native(frame)
    except TypeError:
        raise TableError(
            f"{name}: cannot read a table from {type(frame).__name__}: "
            "give a path, a data frame or a mapping of columns"
        ) from None
    if isinstance(wrapped, nw.LazyFrame):
        wrapped = wrapped.collect()
    try:
        arrow = wrapped.to_arrow()
    except _REFUSALS:  # a column of objects of several types
        arrow = assembled({str(column.name): column.to_list() for column in wrapped.iter_columns()}, name)
    return _named(arrow.rename_columns([INDEX if c == _ARROW_INDEX else c for c in arrow.column_names]), name)


def _named(arrow: pa.Table, name: str) -> Table:
    """Return a table that has rows, columns and one name for each column; TableError if it does not."""
    names = named(arrow.column_names)
    if not names:
        raise TableError(f"{name}: there are no columns")
    check_names(names, name)
    if arrow.num_rows == 0:
        raise TableError(f"{name}: there are no rows below the column names")
    return Table(arrow.rename_columns(names), name)


def _unboxed(value: object) -> object:
    """Return a numpy or pandas scalar as Python's own; NaN, NaT and NA as None."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value is np.ma.masked:
        return None
    return value


def frame_in(source: object) -> object | None:
    """Return the data frame that a source of a table is, if it is one."""
    return None if isinstance(source, str | Path | Table | Stream | Mapping) else source


def frame_like(frame: object, columns: Mapping[str, Any] | pa.Table, rows: NDArray[np.intp]) -> Any:
    """Return columns as a data frame of the kind of another: of pandas, with the index that `rows` of it have."""
    arrow = columns if isinstance(columns, pa.Table) else assembled(columns, "the result")
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return arrow
    nw = _narwhals()
    wrapped: Any = nw.from_native(frame)
    found: Any = nw.from_arrow(arrow, backend=wrapped.implementation).to_native()
    if wrapped.implementation.is_pandas_like():
        pandas: Any = frame
        labels = {INDEX, *pandas.index.names} - {*pandas.columns}  # which the index has
        found = found.drop(columns=[name for name in found.columns if name in labels])
        found.index = pandas.index.take(rows)
    return found


def _narwhals() -> Any:
    try:
        return import_module("narwhals")
    except ModuleNotFoundError:
        raise MissingLibrary("reading and returning data frames needs narwhals: pip install 'massart[io]'") from None
