"""The values of a column as groups of rows, and the precision of the numbers in others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.rows import precision_of
from massart.table.encoding import Encoding
from massart.table.levels import is_text, levels_of
from massart.table.table import Table, as_text

MISSING = "(missing)"


def groups_of(table: Table, column: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return the group of each row by the value of a column, whatever it holds, and the names of the groups.

    Rows without a value are a group, too, the last one.
    """
    values = table.column(column)
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    levels = levels_of(values if is_text(kind) else as_text(values))
    names = levels.texts.to_pylist()
    codes = levels.codes.astype(np.intp)
    codes[codes < 0] = len(names)
    return codes, [*names, MISSING]


def precision_of_columns(table: Table, encoding: Encoding) -> float:
    """Return the relative precision of the numbers that an encoding reads: the coarsest of their types."""
    schema = table.arrow.schema
    read = {encoding.target.column, *(entry.column for entry in encoding.inputs)}
    kinds = {kind for name, kind in zip(schema.names, schema.types, strict=True) if name in read}
    floats = [np.empty(0, kind.to_pandas_dtype()) for kind in kinds if pa.types.is_floating(kind)]
    return max([precision_of(np.empty(0)), *map(precision_of, floats)])
