"""Floats read as the decimals they print as: how many digits follow the point, and exact integers over a power of ten.

A float stands for the shortest decimal that rounds to it: 0.1 for 1/10, not for 3602879701896397 / 2**55. That is what
a person typed or a file held, provided that it has few enough digits to survive the float: 15 for float64, 6 for
float32. Numbers with more digits are *long*: they were computed, and no decimal is read into them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.rows.arrays import FloatArray

IntArray: TypeAlias = NDArray[np.int64]
DOUBLE = float(np.finfo(np.float64).eps)

LONG = 99
"""The number of decimals given for a number that is no short decimal."""

_MOST_DECIMALS = 22  # 10.0**22 is the largest power of ten that float64 holds exactly
_MOST_DIGITS = 15
_SAFE = 2.0**62  # int64 sums below this cannot overflow


@dataclass(frozen=True, slots=True)
class Decimals:
    """Numbers ``numerators / 10**places``, exactly.

    Attributes
    ----------
    numerators : (n,) array of int64, or of Python integers where these do not fit
    places : int
    """

    numerators: NDArray[Any]
    places: int


def count_decimals(values: FloatArray, precision: float = DOUBLE) -> IntArray:
    """Return the digits after the point of each value, as it prints; `LONG` for a number with too many digits.

    Parameters
    ----------
    values : array of finite numbers
    precision : float
        Machine epsilon of the type that the values had before they became float64.

    Examples
    --------
    >>> count_decimals(np.array([3.0, -19.99, 0.1, 0.1 + 0.2, 1e15, 1e-7])).tolist()
    [0, 2, 1, 99, 0, 7]
    """
    kind = _type_of(precision)
    flat = np.abs(np.asarray(values, dtype=np.float64).ravel())
    count = np.where(flat == np.rint(flat), 0, LONG)
    left = np.flatnonzero(count)
    for places in range(1, _MOST_DECIMALS + 1):
        power = 10.0**places
        scaled = flat[left] * power
        # Below this bound the rounded product is the numerator, and both it and the power are exact, so that one
        # division rounds once: the quotient is the float that this decimal is read as.
        short = scaled < 0.25 / precision
        left, scaled = left[short], scaled[short]
        same = (np.rint(scaled) / power).astype(kind) == flat[left].astype(kind)
        count[left[same]] = places
        left = left[~same]
    return count.astype(np.int64).reshape(np.shape(values))


def read_decimals(values: FloatArray, precision: float = DOUBLE) -> Decimals | None:
    """Return `values` (one dimension) as exact decimals with a common number of places; None if one of them is long."""
    count = count_decimals(values, precision)
    # Whole numbers this large, and numbers as small as 1e-30, print in scientific notation: they are read one by one.
    odd = np.flatnonzero((count == LONG) | (np.abs(values) >= 10.0**_MOST_DIGITS))
    kind = _type_of(precision)
    printed: dict[int, Decimal] = {}
    for i in odd:
        number = Decimal(str(kind(values[i])))
        if len(number.normalize().as_tuple().digits) > _digits(precision):
            return None
        printed[int(i)] = number
    plain = np.delete(count, odd)
    places = max([int(plain.max(initial=0)), *(-int(_exponent(number)) for number in printed.values())])
    if not printed and places <= _MOST_DECIMALS and float(np.abs(values).max(initial=0.0)) * 10.0**places < _SAFE:
        return Decimals(_numerators(values, count, places), places)
    numerators = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        if row in printed:
            numerator, denominator = printed[row].as_integer_ratio()
            numerators[row] = numerator * 10**places // denominator
        else:
            own = int(count[row])
            numerators[row] = int(np.rint(value * 10.0**own)) * 10 ** (places - own)
    return Decimals(numerators, places)


def _numerators(values: FloatArray, count: IntArray, places: int) -> IntArray:
    """Scale each value by its own power of ten, which rounds to its numerator, then to the common one in integers."""
    own = np.rint(values * 10.0**count).astype(np.int64)
    return np.asarray(own * 10 ** (places - count), dtype=np.int64)


def _exponent(number: Decimal) -> int:
    shortest = number.normalize()
    return shortest.adjusted() + 1 - len(shortest.as_tuple().digits)


def _digits(precision: float) -> int:
    return int(np.finfo(_type_of(precision)).precision)


def _type_of(precision: float) -> type[np.floating[Any]]:
    for kind in (np.float64, np.float32):
        if precision <= float(np.finfo(kind).eps):
            return kind
    return np.float16
