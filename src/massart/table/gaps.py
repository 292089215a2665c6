"""Values that a caller says are missing: ``--na none``, ``--na -999``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from massart.table.levels import is_plain_text


def with_gaps(arrow: pa.Table, na: Sequence[str]) -> pa.Table:
    """Return a table without the values that mean that there is none: texts that are one of `na`, or numbers.

    Examples
    --------
    >>> with_gaps(pa.table({"a": [1.5, -999.0], "b": ["x", "-999"]}), ["-999"]).to_pydict()
    {'a': [1.5, None], 'b': ['x', None]}
    """
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
