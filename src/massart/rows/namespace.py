"""The functions that fit an array: numpy's for arrays of numpy, and those of the array API standard for others.

Kernels that should run where the rows are, on a GPU say, take their functions from :func:`namespace_of` and use no more
than the standard (https://data-apis.org/array-api). CuPy and torch come near it through array-api-compat. Nothing goes
from one device to another by itself but small values (:func:`like`) and samples (:func:`to_numpy`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_HOST = (1, 3)  # of DLPack's devices: the processor's memory, and such that CUDA has pinned


def is_elsewhere(X: object) -> bool:
    """Tell whether rows are neither numpy's nor SciPy's nor a data frame in memory: on a device, or in Dask."""
    return not isinstance(X, np.ndarray) and (hasattr(X, "__dlpack__") or hasattr(X, "__dask_graph__"))


def is_on_host(X: Any) -> bool:
    """Tell whether an array is in the memory of the processor, whoever made it."""
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
