"""The functions that fit an array: numpy's for arrays of numpy, and those of the array API standard for others.

Kernels that should run where the rows are, on a GPU say, take their functions from :func:`namespace_of` and use no more
than the standard (https://data-apis.org/array-api). CuPy and torch come near it through array-api-compat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_elsewhere(X: object) -> bool:
    """Tell whether rows are neither numpy's nor SciPy's nor a data frame in memory: on a device, or in Dask."""
    return not isinstance(X, np.ndarray) and (hasattr(X, "__dlpack__") or hasattr(X, "__dask_graph__"))


def namespace_of(array: Any) -> Any:
    """Return the functions for an array: numpy, or the standard's for its kind.

    Raises
    ------
    ImportError
        If array-api-compat is not installed, and the array is not numpy's.
    """
    if isinstance(array, np.ndarray | np.generic):
        return np
    try:
        from array_api_compat import array_namespace
    except ImportError:
        raise ImportError(
            f"arrays of type {type(array).__module__}.{type(array).__name__} need array-api-compat: "
            "pip install 'massart[gpu]'"
        ) from None
    return array_namespace(array)


def matrix_of(X: Any) -> Any:
    """Return rows as a matrix; frames of Dask become its arrays."""
    return X.to_dask_array() if hasattr(X, "to_dask_array") else X


def like(values: NDArray[Any] | float, array: Any) -> Any:
    """Return small values, coefficients say, where an array is."""
    if isinstance(array, np.ndarray) or hasattr(array, "__dask_graph__"):
        return np.asarray(values)
    from array_api_compat import device

    return namespace_of(array).asarray(values, device=device(array))


def to_numpy(array: Any) -> NDArray[Any]:
    """Return an array in memory; without a copy if it is there already."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    if hasattr(array, "detach"):  # torch
        return np.asarray(array.detach().cpu().numpy())
    if hasattr(array, "compute"):  # Dask
        return np.asarray(array.compute())
    return np.asarray(array)
