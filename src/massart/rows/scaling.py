"""Scaling by powers of two: exact, so that squares neither overflow nor vanish and no bit of an answer changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.rows.arrays import FloatArray

_LARGEST = 1020
"""Exponents up to which a power of two and its inverse are normal numbers."""


def exponents(X: FloatArray, axis: int | None = None) -> NDArray[np.intc]:
    """Return the binary exponents of the largest entries along `axis`, or of all; 0 where there are only zeros.

    The largest entry over two to this power lies in [1/2, 1).
    """
    largest = np.maximum(X.max(axis=axis, initial=0.0), -X.min(axis=axis, initial=0.0))
    return np.asarray(np.frexp(largest)[1])


def scaled(X: FloatArray, axis: int | None = None) -> tuple[FloatArray, NDArray[np.intc]]:
    """Return a copy of `X` whose largest entries along `axis`, or of all, are near one, and their exponents.

    With axis 1 rows are brought to a common size, with axis 0 columns.
    """
    powers = exponents(X, axis)
    return np.ldexp(X, -(powers if axis is None else np.expand_dims(powers, axis))), powers


def power_of_two(sizes: ArrayLike) -> FloatArray:
    """Return the power of two above each size, with which size / power lies in [1/2, 1); 1 for a size of 0.

    For the least and largest numbers it is a power whose inverse is finite, too.
    """
    powers = np.clip(np.frexp(np.asarray(sizes, dtype=np.float64))[1], -_LARGEST, _LARGEST)
    return np.asarray(np.ldexp(1.0, powers))
