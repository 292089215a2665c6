"""What counts as rows: the arrays that kernels accept, and how they are cut into blocks.

Every public kernel passes its arguments through the checks of this module first. They either return a float64 array
that holds the caller's numbers exactly (the caller's own memory where that is possible, never written to) or raise one
``ValueError`` that names the argument and, where there is one, the row and the column at fault.

Kernels that should run where the rows are, on a GPU say, take their functions from :func:`namespace_of` and use no more
than the standard (https://data-apis.org/array-api). CuPy and torch come near it through array-api-compat. Nothing goes
from one device to another by itself but small values (:func:`like`) and samples (:func:`to_numpy`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

BLOCK_BYTES = 1 << 20
"""Size of one block of rows: its buffers stay in the second-level cache, and a pass allocates nothing else."""

_LARGEST_EXACT_INTEGER = 2**53
_HOST = (1, 3)  # of DLPack's devices: the processor's memory, and such that CUDA has pinned


def row_blocks(n_rows: int, n_columns: int, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Cut ``n_rows`` rows of ``n_columns`` float64 numbers into consecutive blocks of about `block_bytes`."""
    size = max(64, block_bytes // (8 * max(n_columns, 1)))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def precision_of(X: Any) -> float:
    """Return the relative precision of the numbers in `X`: the machine epsilon of its own floating type.

    Integers, booleans and lists are exact and count as float64.
    """
    dtype, kinds = getattr(X, "dtype", None), np
    if dtype is not None and not isinstance(dtype, np.dtype) and hasattr(X, "__dlpack__"):
        kinds = namespace_of(X)
        floating = kinds.isdtype(dtype, "real floating")
    else:
        floating = isinstance(dtype, np.dtype) and dtype.kind == "f"
    return max(float(kinds.finfo(dtype).eps) if floating else 0.0, float(np.finfo(np.float64).eps))


def type_of(precision: float) -> type[np.floating[Any]]:
    """Return the floating type of this precision."""
    for kind in (np.float64, np.float32):
        if precision <= float(np.finfo(kind).eps):
            return kind
    return np.float16


def check_matrix(X: ArrayLike, name: str = "X") -> FloatArray:
    """Return `X` as a finite float64 matrix with at least one row and one column.

    Raises
    ------
    ValueError
        Naming `name` and what is wrong with it.
    """
    array = _as_float64(X, name)
    if array.ndim != 2:
        raise ValueError(f"{name} must be a matrix (2 dimensions), got an array of {array.ndim} dimension(s)")
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(f"{name} must have at least one row and one column, got shape {array.shape}")
    _check_finite(array, name)
    return array


def check_labels(y: ArrayLike, n_rows: int, name: str = "y") -> FloatArray:
    """Return `y` as a finite float64 array of shape ``(n_rows,)`` or ``(n_rows, m)`` with m at least 1."""
    array = _as_float64(y, name)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise ValueError(f"{name} must have shape (n,) or (n, m), got {array.shape}")
    if array.shape[0] != n_rows:
        raise ValueError(f"{name} has {array.shape[0]} rows but X has {n_rows}")
    _check_finite(array, name)
    return array


def check_vector(values: ArrayLike, size: int, name: str) -> FloatArray:
    """Return `values` as an array of `size` finite numbers, or raise a ValueError that names them."""
    if np.shape(values) != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {np.shape(values)}")
    return check_labels(values, size, name)


def check_weights(weights: ArrayLike | None, n_rows: int, name: str = "sample_weight") -> FloatArray | None:
    """Return `weights` as ``n_rows`` finite, non-negative float64 numbers that are not all zero; None stays None."""
    if weights is None:
        return None
    array = _as_float64(weights, name)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), got {array.shape}")
    _check_finite(array, name)
    if array.min() < 0:
        row = int(np.argmin(array))
        raise ValueError(f"{name} must not be negative, got {array[row]:g} at row {row}")
    if not array.any():
        raise ValueError(f"{name} must not be zero for every row")
    return array


def check_mask(mask: ArrayLike | None, n_rows: int, name: str) -> BoolArray:
    """Return `mask` as ``n_rows`` booleans; None means no row."""
    if mask is None:
        return np.zeros(n_rows, dtype=bool)
    array = np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != (n_rows,):
        raise ValueError(f"{name} must be a boolean array of shape ({n_rows},), got {array.dtype} {array.shape}")
    return array


def _as_float64(values: ArrayLike, name: str) -> FloatArray:
    try:
        array = np.asarray(values)
    except ValueError as error:  # ragged nested lists
        raise ValueError(f"{name} must be a rectangular array of numbers ({error})") from None
    if array.dtype.kind == "O":
        # Frames with mixed columns and lists of Decimal arrive as objects; text and None do not convert.
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers ({error})") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    check_integers(array, name)
    return np.asarray(array, dtype=np.float64)


def check_integers(array: NDArray[Any], name: str) -> None:
    """Raise for integers that float64 cannot hold exactly."""
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        largest = max(int(array.max()), -int(array.min()))
        if largest > _LARGEST_EXACT_INTEGER:
            raise ValueError(f"{name} holds the integer {largest}, above 2**53: float64 cannot represent it exactly")


def _check_finite(array: FloatArray, name: str) -> None:
    """Raise for the first NaN or infinity, reading block by block so that no mask of the whole array is made."""
    for block in row_blocks(array.shape[0], array.shape[1] if array.ndim == 2 else 1):
        message = first_fault(array[block], name, block.start)
        if message:
            raise ValueError(message)


def first_fault(block: FloatArray, name: str, start: int) -> str:
    """Say where the first NaN or infinity is in rows that begin with number `start`; an empty string for none."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(block.sum()):  # no mask, for nearly all blocks
            return ""
    finite = np.isfinite(block)
    if finite.all():
        return ""
    where = tuple(int(i) for i in np.argwhere(~finite)[0])
    column = f", column {where[1]}" if block.ndim == 2 else ""
    value = "NaN" if np.isnan(block[where]) else str(block[where])
    return f"{name} must be finite, got {value} at row {start + where[0]}{column}"


def nonzero_counts(X: FloatArray) -> NDArray[np.intp]:
    """Return how many numbers of each column are not zero."""
    counts = np.zeros(X.shape[1], dtype=np.intp)
    for block in row_blocks(*X.shape):
        nonzero = X[block] != 0
        counts += len(nonzero) if nonzero.all() else np.count_nonzero(nonzero, axis=0)
    return counts


def magnitudes(X: Any, sizes: FloatArray) -> FloatArray:
    """Return ``abs(X) @ sizes``, without a copy of many rows."""
    if not isinstance(X, np.ndarray):
        return np.asarray(abs(X) @ sizes)
    return np.concatenate([np.abs(X[block]) @ sizes for block in row_blocks(len(X), len(sizes))] or [np.zeros(0)])


# --- the functions that fit an array ---


def is_elsewhere(X: object) -> bool:
    """Return whether rows are neither numpy's nor SciPy's nor a data frame in memory: on a device, or in Dask."""
    return not isinstance(X, np.ndarray) and (hasattr(X, "__dlpack__") or hasattr(X, "__dask_graph__"))


def is_on_host(X: Any) -> bool:
    """Return whether an array is in the memory of the processor, whoever made it."""
    return not hasattr(X, "__dlpack_device__") or int(X.__dlpack_device__()[0]) in _HOST


def namespace_of(array: Any) -> Any:
    """Return the functions for an array: the standard's for its kind, and numpy's for all that numpy understands.

    Raises
    ------
    ImportError
        If array-api-compat is not installed, and the array needs it.
    """
    if isinstance(array, np.ndarray | np.generic) or not hasattr(array, "__dlpack__"):
        return np  # whose functions hand arrays of Dask over to Dask
    return _compat(array).array_namespace(array)


def place_of(array: Any) -> str:
    """Say of what kind an array is, and where."""
    kind = type(array).__module__.partition(".")[0]
    return kind if isinstance(array, np.ndarray) else f"{kind} on {_compat(array).device(array)}"


def matrix_of(X: Any) -> Any:
    """Return rows as a matrix; frames of Dask become its arrays."""
    return X.to_dask_array() if hasattr(X, "to_dask_array") else X


def like(values: NDArray[Any] | float, array: Any) -> Any:
    """Return values, coefficients say, where an array is."""
    values = np.asarray(values)
    if isinstance(array, np.ndarray) or hasattr(array, "__dask_graph__"):
        return values
    if not values.flags.writeable:  # of which torch warns
        values = values.copy()
    return namespace_of(array).asarray(values, device=_compat(array).device(array))


def floats(array: Any) -> Any:
    """Return an array of another namespace as float64, itself if it is that already."""
    xp = namespace_of(array)
    return xp.astype(array, xp.float64, copy=False)


def clipped(array: Any, lower: float, upper: float = np.inf) -> Any:
    """Return an array with its numbers between two limits; array-api-compat's own function waits for the device."""
    xp = namespace_of(array)
    if xp is np:
        return np.clip(array, lower, upper)
    array = array if lower == -np.inf else xp.where(array < lower, lower, array)
    return array if upper == np.inf else xp.where(array > upper, upper, array)


def to_numpy(array: Any) -> NDArray[Any]:
    """Return an array in memory; without a copy if it is there already."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get") and hasattr(array, "__dlpack__"):  # CuPy; pandas has another `get`
        return np.asarray(array.get())
    if hasattr(array, "detach"):  # torch
        return np.asarray(array.detach().cpu().numpy())
    if hasattr(array, "compute"):  # Dask
        return np.asarray(array.compute())
    return np.from_dlpack(array) if hasattr(array, "__dlpack__") else np.asarray(array)


def _compat(array: Any) -> Any:
    try:
        import array_api_compat
    except ImportError:
        kind = f"{type(array).__module__}.{type(array).__name__}"
        raise ImportError(f"arrays of type {kind} need array-api-compat: pip install 'massart[gpu]'") from None
    return array_api_compat
