"""Scaling by powers of two: exact, so that squares neither overflow nor vanish and no bit of an answer changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.rows.arrays import FloatArray, row_blocks


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

    For the least and largest numbers it is a power whose inverse is finite, too: up to an exponent of 1020.
    """
    powers = np.clip(np.frexp(np.asarray(sizes, dtype=np.float64))[1], -1020, 1020)
    return np.asarray(np.ldexp(1.0, powers))


def with_safe_exponents(X: FloatArray, largest: int = 400) -> FloatArray:
    """Return `X`, or a copy with rows scaled by powers of two where squares would overflow or vanish.

    Squares of numbers up to two to the power `largest`, summed over any number of columns, stay finite.
    """
    powers = exponents(X, axis=1)
    return X if np.abs(powers).max() <= largest else np.ldexp(X, -powers[:, None])


def typical_sizes(X: FloatArray, rounding_bits: int = 40) -> FloatArray:
    """Return a power of two for each column: the geometric mean of its entries, in rows brought to a common size.

    A maximum or a norm would let the few largest entries decide. Entries smaller than the largest of their column by
    more than `rounding_bits` are left out, since they may be nothing but rounding: float64 has 53 bits, and sums and
    products of a few numbers cost some. A zero column gets 1.
    """
    d = X.shape[1]
    above = np.full(d, -np.inf)
    while True:
        largest, least, total, number = np.full(d, -np.inf), np.full(d, np.inf), np.zeros(d), np.zeros(d)
        for block in row_blocks(*X.shape):
            powers = np.where(X[block] != 0, np.frexp(X[block])[1], np.nan)  # fmax and fmin pass over NaN
            powers -= np.fmax.reduce(powers, axis=1, keepdims=True)
            powers[powers <= above] = np.nan
            largest = np.fmax(largest, np.fmax.reduce(powers, axis=0))
            least = np.fmin(least, np.fmin.reduce(powers, axis=0))
            kept = ~np.isnan(powers)
            total += powers.sum(axis=0, where=kept)
            number += kept.sum(axis=0)
        if (least > largest - rounding_bits).all():
            return np.asarray(np.exp2(np.rint(total / np.maximum(number, 1))))
        above = largest - rounding_bits
