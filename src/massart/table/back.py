"""Tables back to data frames, of the kind that came in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.table.errors import MissingLibrary
from massart.table.frames import INDEX, column_from
from massart.table.streams import Stream
from massart.table.table import Table


def frame_in(source: object) -> object | None:
    """Return the data frame that a source of a table is, if it is one."""
    return None if isinstance(source, str | Path | Table | Stream | Mapping) else source


def frame_like(frame: object, columns: Mapping[str, Any] | pa.Table, rows: NDArray[np.intp]) -> Any:
    """Return columns as a data frame of the kind of another: of pandas, with the index that `rows` of it have."""
    if isinstance(columns, pa.Table):
        arrow = columns
    else:
        arrow = pa.table({name: column_from(values, name, "the result") for name, values in columns.items()})
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return arrow
    try:
        import narwhals as nw
    except ModuleNotFoundError:
        raise MissingLibrary("data frames need narwhals: install massart[io]") from None
    wrapped: Any = nw.from_native(frame)
    found: Any = nw.from_arrow(arrow, backend=wrapped.implementation).to_native()
    if wrapped.implementation.is_pandas_like():
        pandas: Any = frame
        labels = {INDEX, *pandas.index.names} - {*pandas.columns}  # which the index has
        found = found.drop(columns=[name for name in found.columns if name in labels])
        found.index = pandas.index.take(rows)
    return found
