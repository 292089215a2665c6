"""The values of a column as groups of rows, and the precision of the numbers in others."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import precision_of
from massart.table.encoding import Category, Encoding
from massart.table.levels import Levels, decoded, is_text, levels_of
from massart.table.table import Table, as_text

MISSING = "(missing)"


def groups_of(table: Table, column: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return the group of each row by the value of a column, whatever it holds, and the names of the groups.

    Rows without a value are a group, too, the last one.
    """
    levels = levels_as_written(table.column(column))
    names = levels.texts.to_pylist()
    codes = levels.codes.astype(np.intp)
    codes[codes < 0] = len(names)
    return codes, [*names, MISSING]


def levels_as_written(column: pa.ChunkedArray) -> Levels:
    """Return a column, whatever it holds, coded by its values as text: 101 for 101.0, dates in ISO form."""
    if is_text(column.type):
        return levels_of(column)
    column = decoded(column)
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64()) if pa.types.is_float16(column.type) else column
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        with suppress(pa.ArrowInvalid):  # unless all are whole
            column = column.cast(pa.int64())
    return levels_of(as_text(column))


def precision_of_columns(table: Table, encoding: Encoding) -> float:
    """Return the relative precision of the numbers that an encoding reads: the coarsest of their types."""
    schema = table.arrow.schema
    numbers = (entry.column for entry in encoding.inputs if not isinstance(entry, Category))
    read = {encoding.target.column, *numbers}
    kinds = {kind for name, kind in zip(schema.names, schema.types, strict=True) if name in read}
    floats = [np.empty(0, kind.to_pandas_dtype()) for kind in kinds if pa.types.is_floating(kind)]
    return max([precision_of(np.empty(0)), *map(precision_of, floats)])
