"""Arrow's memory as numpy arrays.

Arrow's own conversion imports pandas where it is installed, which takes longer than reading most tables of numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray


def view(array: pa.Array) -> NDArray[Any]:
    """Return the numbers of an Arrow array without nulls, in its own memory, read-only."""
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
