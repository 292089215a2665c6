"""A table in memory: Arrow columns under names that are all different, and what is done to any Arrow column."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.tables.errors import TableError, near, quote

if TYPE_CHECKING:
    from massart.tables.stream import Stream

Made = TypeVar("Made")

LARGEST_EXACT = 2**53
"""Integers beyond it have no exact float64."""

NO_GROUP = "(missing)"
"""The name of the group of rows without a value."""

REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError)
"""What Arrow raises where values cannot be a column."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows and columns as they were read."""

    arrow: pa.Table
    name: str  # the name of the file, or "the table"
    decimal: str | None = None  # the decimal mark that the file as a whole suggests, if it suggests one
    # what a text file writes in a column, if not nothing, where a value is missing
    spellings: Mapping[str, str] = field(default_factory=dict)
    # of some rows of a larger table, their numbers there, from 0; by default these are all of it
    numbers: NDArray[np.intp] | None = None
    # where the larger table has several files: the number of the first row of each, and its name
    files: tuple[tuple[int, str], ...] = ()
    # of a column of text in the larger table, how many rows have each text
    frequencies: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()  # what was left out when the table was read, as sentences
    _made: dict[Hashable, object] = field(default_factory=dict, init=False, repr=False)

    def place(self, row: int) -> str:
        """Return the number of a row as people count, from 1, and its file if there are several."""
        number = row if self.numbers is None else int(self.numbers[row])
        if not self.files:
            return f"{number + 1:,}"
        start, name = self.files[bisect_right(self.files, number, key=itemgetter(0)) - 1]
        return f"{number - start + 1:,} of {name}"

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made of the table for a key before, or make it now: what is read once serves all who ask."""
        if key not in self._made:
            self._made[key] = make()
        return cast(Made, self._made[key])

    def forget(self, key: Hashable) -> None:
        """Forget what was made for a key: it is large, and nobody will ask again."""
        self._made.pop(key, None)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.arrow.num_rows)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        return tuple(self.arrow.column_names)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column; TableError with near names if there is none of that name."""
        place = self.arrow.schema.get_field_index(name)
        if place < 0:
            require_column(self, name)
        return self.arrow.column(place)

    def cells(self, columns: Sequence[str], rows: NDArray[np.intp]) -> dict[str, list[object]]:
        """Return some columns for rows of these numbers, from 0 and in any order, as plain Python values.

        Each cell is a str, int, float, bool or None; dates and times are ISO text.
        """
        places = np.ascontiguousarray(rows, dtype=np.int64)
        indices = pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])  # as in `view`
        return {name: plain_values(self.column(name).take(indices)) for name in columns}

    def cell(self, name: str, row: int) -> object:
        """Return one cell as a plain Python value."""
        return self.cells([name], np.array([row]))[name][0]


# --- names of columns ---


def require_column(table: Table | Stream, name: str) -> None:
    """Raise TableError with near names if there is no column of that name."""
    if name not in table.column_names:
        alone = " (only one column was found: is the delimiter right?)" if len(table.column_names) == 1 else ""
        raise TableError(f"{table.name}: no column {quote(name)}: {near(name, table.column_names)}{alone}")


def check_names(names: Sequence[str], name: str) -> None:
    """Raise TableError if two columns have the same name."""
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        places = [f"{place:,}" for place, column in enumerate(names, 1) if column == twice[0]]
        raise TableError(f"{name}: columns {places[0]} and {places[1]} are both named {quote(twice[0])}")


def named(names: Iterable[str], name: str) -> list[str]:
    """Return names without surrounding blanks, "column 3" for the third without one; TableError if two are the same."""
    found = [column.strip() or f"column {place}" for place, column in enumerate(names, 1)]
    check_names(found, name)
    return found


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name that no other column has: itself, or one like it."""
    while name in taken:
        name += "_"
    return name


# --- columns to plain values, and back ---


def plain_values(column: pa.ChunkedArray) -> list[object]:
    """Return Arrow values as str, int, float, bool or None."""
    column = decoded(column)
    return [_plain(value) for value in (as_text(column) if pa.types.is_temporal(column.type) else column).to_pylist()]


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as text: dates in ISO form, lists and structs as JSON, others as Arrow writes them."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        # Arrow needs a database of time zones to write local time, and not every system has one.
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    try:
        return column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.chunked_array([pa.array([_as_json(value) for value in column.to_pylist()], pa.string())])


def _plain(value: object) -> object:
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return _as_json(value)


def _as_json(value: object) -> str | None:
    if value is None or isinstance(value, bytes):
        return None if value is None else value.hex()
    return json.dumps(value, default=str, ensure_ascii=False)


def array_of(values: list[object]) -> pa.Array:
    """Return plain Python values as a column; text where their types do not go together, or an integer is too large."""
    try:
        return pa.array(values, from_pandas=True)
    except REFUSALS:
        return texts_of(values)


def texts_of(values: Iterable[object]) -> pa.Array:
    """Return plain Python values as texts: what is not text is written as JSON has it, NaN is missing."""
    there = (None if isinstance(value, float) and math.isnan(value) else value for value in values)
    texts = [value if isinstance(value, str | None) else json.dumps(value, default=str) for value in there]
    return pa.array(texts, pa.string())


def assembled(columns: Mapping[str, object], name: str) -> pa.Table:
    """Return columns (sequences, arrays, columns of frames) as a table; `name` is for complaints."""
    names = [*map(str, columns)]
    check_names(names, name)
    arrays = [_column_from(values, column, name) for column, values in zip(names, columns.values(), strict=True)]
    for column, array in zip(names, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise TableError(
                f"{name}: column {quote(column)} has {len(array):,} rows, but {quote(names[0])} has {len(arrays[0]):,}"
            )
    return pa.table(arrays, names=names)


def _column_from(values: object, column: str, name: str) -> pa.ChunkedArray | pa.Array:
    """Return a sequence, an array or a column of a frame as an Arrow column; NaN, NaT and masked cells are null."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return values
    if hasattr(values, "to_numpy") and not isinstance(values, Sequence):
        values = values.to_numpy()
    shown = f"{name}: column {quote(column)}"
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TableError(f"{shown} is not a sequence of values")
    try:
        if not isinstance(values, np.ndarray) or values.dtype == object:
            return array_of([_unboxed(value) for value in values])
        if values.ndim == 1:
            mask = np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else None
            return pa.array(np.asarray(values), mask=mask, from_pandas=True)
    except REFUSALS:
        raise TableError(f"{shown} holds values that cannot be cells of a table") from None
    raise TableError(f"{shown} has {values.ndim} dimensions, not one")


def _unboxed(value: object) -> object:
    """Return a numpy or pandas scalar as Python's own; NaN, NaT and NA as None."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if type(value).__name__ in ("NAType", "NaTType") or value is np.ma.masked else value


# --- types ---


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds text, possibly coded already."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_plain_text(kind: pa.DataType) -> bool:
    """Whether a type holds text that is not coded."""
    return is_text(kind) and not pa.types.is_dictionary(kind)


def is_number(kind: pa.DataType) -> bool:
    """Whether a type holds integers or floats."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column, which may be coded, as values."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def joined_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type of a column of text that holds cells of both."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else pa.string()


def written_types(schema: pa.Schema) -> list[pa.DataType]:
    """Return the types of columns of text; dates stay as they are written, for nothing is computed with them."""
    return [pa.string() if pa.types.is_temporal(kind) else kind for kind in schema.types]


def may_have_lost(column: pa.ChunkedArray) -> bool:
    """Whether a column of floats may come from integers that they do not hold, or from numbers too large; or is NaN."""
    if not pa.types.is_float64(column.type):
        return False
    parts = [filled(chunk, 0.0) for chunk in column.chunks]
    return not all(-LARGEST_EXACT < part.min(initial=0.0) and part.max(initial=0.0) < LARGEST_EXACT for part in parts)


# --- Arrow and numpy ---


def view(array: pa.Array) -> NDArray[Any]:
    """Return the numbers of an Arrow array without nulls, in its own memory, read-only.

    Arrow's own conversions import pandas where it is installed, which takes longer than reading most tables of numbers.
    """
    dtype = np.dtype(array.type.to_pandas_dtype())
    if len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=array.offset * dtype.itemsize)


def filled(column: pa.Array | pa.ChunkedArray, fill: float) -> NDArray[Any]:
    """Return the numbers of a column, with a number where it has none."""
    if isinstance(column, pa.Array):
        return view(pc.fill_null(column, fill) if column.null_count else column)
    return np.concatenate(
        [np.empty(0, column.type.to_pandas_dtype()), *(filled(chunk, fill) for chunk in column.chunks)]
    )


def flags(mask: pa.Array | pa.ChunkedArray) -> BoolArray:
    """Return Arrow booleans as numpy's; null is false."""
    return filled(mask.cast(pa.uint8()), 0).astype(bool)


def matches(texts: pa.Array | pa.ChunkedArray, pattern: str, *, ignore_case: bool = False) -> BoolArray:
    """Mark the texts in which a pattern is found."""
    return flags(pc.match_substring_regex(texts, pattern, ignore_case=ignore_case))


def floats(column: pa.ChunkedArray) -> FloatArray:
    """Return numbers or booleans as floats; null becomes NaN."""
    return filled(column.cast(pa.float64(), safe=False), np.nan)


def with_missing(arrow: pa.Table, na: Sequence[str]) -> pa.Table:
    """Return a table without the values that a caller says mean missing: texts that are one of `na`, or numbers.

    Examples
    --------
    >>> with_missing(pa.table({"a": [1.5, -999.0], "b": ["x", "-999"]}), ["-999"]).to_pydict()
    {'a': [1.5, None], 'b': ['x', None]}
    """
    if not na:
        return arrow
    texts, numbers = pa.array([text.strip() for text in na], pa.large_string()), []
    for text in na:
        with suppress(ValueError):
            numbers.append(float(text))
    columns = [_without(column, texts, pa.array(numbers, pa.float64())) for column in arrow.columns]
    return pa.table(columns, schema=arrow.schema)


def _without(column: pa.ChunkedArray, texts: pa.Array, numbers: pa.Array) -> pa.ChunkedArray:
    kind = column.type
    if is_plain_text(kind):
        column = column.cast(pa.large_string())  # few functions of Arrow know views on texts
        gone = pc.is_in(pc.utf8_trim_whitespace(column), value_set=texts)
    elif is_number(kind):
        gone = pc.is_in(column.cast(pa.float64(), safe=False), value_set=numbers)
    else:
        return column
    return pc.if_else(gone, pa.scalar(None, column.type), column).cast(kind)


# --- the distinct texts of a column ---


@dataclass(frozen=True, slots=True)
class CodedTexts:
    """A column of text, coded."""

    texts: pa.Array  # (k,), all different, none empty, stripped, by first occurrence
    codes: NDArray[np.int32]  # (n,), the text of each row, -1 where there is none
    counts: NDArray[np.int64]  # (k,)

    @property
    def n_present(self) -> int:
        """Number of rows that have a text."""
        return int(self.counts.sum())

    def first_row(self, which: BoolArray) -> int:
        """Return the first row, from 0, whose text is among those marked."""
        return int(np.argmax(np.append(which, False)[self.codes]))

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return str(self.texts[int(self.codes[row])].as_py())


def levels_of(column: pa.ChunkedArray) -> CodedTexts:
    """Return a column of text, or of any type that can be written as text, coded."""
    if column.type != pa.string() and column.type != pa.large_string():
        column = decoded(column).cast(pa.large_string())
    coded = column.dictionary_encode()
    codes = np.concatenate([np.empty(0, np.int32), *(filled(chunk.indices, -1) for chunk in coded.chunks)])
    texts = coded.chunks[0].dictionary if coded.chunks else pa.array([], pa.string())
    trimmed = pc.utf8_trim_whitespace(texts)
    if not trimmed.equals(texts) or pc.any(pc.equal(trimmed, "")).as_py():
        merged = pc.dictionary_encode(pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, trimmed.type), trimmed))
        texts = merged.dictionary
        codes = np.append(filled(merged.indices, -1), -1).astype(np.int32)[codes]
    counts = np.bincount(codes + 1, minlength=len(texts) + 1)[1:].astype(np.int64)
    return CodedTexts(texts, codes, counts)


def levels_in(table: Table, name: str) -> CodedTexts:
    """Return a column, whatever it holds, coded by its values as text: 101 for 101.0, dates in ISO form.

    A column is coded once for all who ask.
    """
    return table.once(("levels", name), lambda: levels_of(_as_written(table.column(name))))


def _as_written(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if is_text(column.type):
        return column
    column = decoded(column)
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64()) if pa.types.is_float16(column.type) else column
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        with suppress(pa.ArrowInvalid):  # unless all are whole
            column = column.cast(pa.int64())
    return as_text(column)


def groups_of(table: Table, column: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return the group of each row by the value of a column, whatever it holds, and the names of the groups.

    Rows without a value are a group, too, the last one.
    """
    levels = levels_in(table, column)
    names = levels.texts.to_pylist()
    return np.where(levels.codes < 0, len(names), levels.codes).astype(np.intp), [*names, NO_GROUP]
