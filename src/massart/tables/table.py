"""A table in memory: Arrow columns under names that are all different, and what is done to any Arrow column."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray
from massart.tables.errors import TableError, near, quote

if TYPE_CHECKING:
    from massart.tables.stream import Stream

Made = TypeVar("Made")

LARGEST_EXACT = 2**53
"""Integers beyond it have no exact float64."""


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
        indices = adopted(np.ascontiguousarray(rows, dtype=np.int64))
        return {name: plain_values(self.column(name).take(indices)) for name in columns}


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


def free_name(name: str, taken: Container[str]) -> str:
    """Return the name of a column beside others: itself, or one like it that is not taken."""
    while name in taken:
        name += "_"
    return name


def named(names: Sequence[str]) -> list[str]:
    """Return names without surrounding blanks, and "column 3" for the third where it has none."""
    return [name.strip() or f"column {place}" for place, name in enumerate(names, 1)]


def plain_values(column: pa.ChunkedArray) -> list[object]:
    """Return Arrow values as str, int, float, bool or None."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain_values(column.cast(kind.value_type))
    if pa.types.is_temporal(kind):
        return list(as_text(column).to_pylist())
    return [_plain(value) for value in column.to_pylist()]


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
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.hex()
    return json.dumps(value, default=str, ensure_ascii=False)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds text, possibly coded already."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    is_view = hasattr(pa.types, "is_string_view") and pa.types.is_string_view(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_view)


def is_plain_text(kind: pa.DataType) -> bool:
    """Whether a type holds text that is not coded."""
    return is_text(kind) and not pa.types.is_dictionary(kind)


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


def may_have_lost(column: pa.ChunkedArray) -> bool:
    """Whether a column of floats may come from integers that they do not hold, or from numbers too large."""
    return pa.types.is_float64(column.type) and not all(map(_are_small, column.chunks))


def _are_small(numbers: pa.Array) -> bool:
    """Whether all numbers are below the first integer that has no float of its own; NaN is not."""
    if numbers.null_count:
        if pc.any(pc.is_nan(numbers)).as_py():
            return False
        limits = pc.min_max(numbers).as_py()
        low, high = limits["min"] or 0.0, limits["max"] or 0.0
    else:  # numpy answers a few thousand numbers sooner
        values = view(numbers)
        low, high = values.min(initial=0.0), values.max(initial=0.0)
    return bool(-LARGEST_EXACT < low and high < LARGEST_EXACT)


def view(array: pa.Array) -> NDArray[Any]:
    """Return the numbers of an Arrow array without nulls, in its own memory, read-only.

    Arrow's own conversion imports pandas where it is installed, which takes longer than reading most tables of numbers.
    """
    dtype = np.dtype(array.type.to_pandas_dtype())
    if len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=array.offset * dtype.itemsize)


def adopted(values: NDArray[Any]) -> pa.Array:
    """Return contiguous numbers as an Arrow array, in their own memory."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def flags(mask: pa.Array | pa.ChunkedArray) -> BoolArray:
    """Return Arrow booleans as numpy's; null is false."""
    filled = pc.fill_null(mask, False).cast(pa.uint8())
    chunks = filled.chunks if isinstance(filled, pa.ChunkedArray) else [filled]
    return np.concatenate([np.empty(0, dtype=bool), *(view(chunk).astype(bool) for chunk in chunks)])


def with_missing(arrow: pa.Table, na: Sequence[str]) -> pa.Table:
    """Return a table without the values that a caller says mean missing: texts that are one of `na`, or numbers.

    Examples
    --------
    >>> with_missing(pa.table({"a": [1.5, -999.0], "b": ["x", "-999"]}), ["-999"]).to_pydict()
    {'a': [1.5, None], 'b': ['x', None]}
    """
    if not na:
        return arrow
    numbers = [number for number in map(_number, na) if number is not None]
    return pa.table([_without(column, na, numbers) for column in arrow.columns], schema=arrow.schema)


def _without(column: pa.ChunkedArray, na: Sequence[str], numbers: Sequence[float]) -> pa.ChunkedArray:
    kind = column.type
    if is_plain_text(kind):
        # Of views on texts few functions of Arrow know.
        cells = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
        values = pa.array([text.strip() for text in na], pa.large_string())
    elif numbers and (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        cells, values = column.cast(pa.float64(), safe=False), pa.array(numbers, pa.float64())
    else:
        return column
    gone = pc.is_in(cells, value_set=values)
    if is_plain_text(kind):
        return pc.if_else(gone, None, column.cast(pa.large_string())).cast(kind)
    return pc.if_else(gone, pa.scalar(None, kind), column)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
