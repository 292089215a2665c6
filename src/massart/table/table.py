"""A table in memory: Arrow columns under names that are all different, and a name for messages."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.rows import FloatArray
from massart.table.errors import TableError, near, quote
from massart.table.views import adopted

if TYPE_CHECKING:
    from massart.table.streams import Stream


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows and columns as they were read."""

    arrow: pa.Table
    name: str  # the name of the file, or "the table"
    decimal: str | None = None  # the decimal mark that the file as a whole speaks for; None where it does not tell
    # what a text file writes in a column, if not nothing, where a value is missing
    spellings: Mapping[str, str] = field(default_factory=dict)
    # of some rows of a larger table, their numbers there, from 0; by default these are all of it
    numbers: NDArray[np.intp] | None = None
    # where the larger table has several files: the number of the first row of each, and its name
    files: tuple[tuple[int, str], ...] = ()
    # of a column of text in the larger table, how many rows have each text
    frequencies: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()  # what was passed over when the table was read, as sentences

    def place(self, row: int) -> str:
        """Return the number of a row as people count, from 1, and its file if there are several."""
        number = row if self.numbers is None else int(self.numbers[row])
        if not self.files:
            return f"{number + 1:,}"
        start, name = self.files[bisect_right(self.files, number, key=itemgetter(0)) - 1]
        return f"{number - start + 1:,} of {name}"

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

    def move(self, columns: Mapping[str, FloatArray]) -> None:
        """Let columns of floats live in other memory that holds the same numbers, so that they exist once."""
        schema, arrays = self.arrow.schema, self.arrow.columns
        for name, values in columns.items():
            arrays[schema.get_field_index(name)] = pa.chunked_array([adopted(values)])
        moved = pa.Table.from_arrays(arrays, schema=schema)
        object.__setattr__(self, "arrow", moved)  # what the table says is the same

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


def checked(
    arrow: pa.Table, name: str, decimal: str | None = None, spellings: Mapping[str, str] | None = None
) -> Table:
    """Return a table that has rows, columns and one name for each column; TableError if it does not."""
    if arrow.num_columns == 0:
        raise TableError(f"{name}: there are no columns")
    check_names(arrow.column_names, name)
    if arrow.num_rows == 0:
        raise TableError(f"{name}: there are no rows below the column names")
    return Table(arrow, name, decimal, spellings or {})


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
