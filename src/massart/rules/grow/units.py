"""The unit of labels, and numbers in few digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from massart.rows import BoolArray, FloatArray

UNITS = (1000.0, 500.0, 100.0, 50.0, 20.0, 10.0, 5.0, 1.0, 0.5, 0.25, 0.2, 0.1, 0.05, *(10.0**-k for k in range(2, 9)))
"""Units to which people round."""

DECIMALS = 12
"""Digits of a number that are looked at: what comes after them is the rounding of floats."""

_MOST, _ODD = 0.9, 0.75  # share of the labels that are multiples; of 5 or 0.05, which wrong labels leave more often
_EXACT = 1e-9  # of the size of the labels, where they have no unit
_DIGIT, _SIGN = math.log2(10), 2.0  # bits of a digit; of the sign and the place of the point
_LONG, _LARGEST = 4, 100_000  # digits beyond which a number may be a fraction; its largest denominator


def unit_of(y: FloatArray) -> float:
    """Return the largest unit of which nearly all labels are multiples.

    Examples
    --------
    >>> unit_of(np.array([12.05, 7.10, 3.95, 4.00])), unit_of(np.array([3.0, 4.0, 17.0]))
    (0.05, 1.0)
    """
    for unit in UNITS:
        share = float(np.mean(are_multiples(y, unit)))
        if share > (_MOST if is_decimal(unit) else _ODD):
            return unit
    return max(_EXACT * float(np.median(np.abs(y))), 1e-300)


def are_multiples(y: FloatArray, unit: float) -> BoolArray:
    """Return which labels are multiples of a unit."""
    quotients = y / unit
    off = np.abs(quotients - np.round(quotients))
    return np.asarray(off < 1e-6 * np.maximum(1.0, 1e-6 * np.abs(quotients)))


def is_decimal(unit: float) -> bool:
    """Return whether a unit is a power of ten."""
    return abs(math.log10(unit) - round(math.log10(unit))) < 1e-9


def simplest(low: float, high: float) -> float:
    """Return the number with the fewest digits above `low` and not above `high`.

    Examples
    --------
    >>> simplest(29.3, 30.4), simplest(0.21, 0.26), simplest(118.0, 119.03), simplest(7.0, 8.0), simplest(22.0, 28.0)
    (30.0, 0.25, 119.0, 8.0, 25.0)
    """
    if not high > low:
        return high
    for exponent in range(9, -10, -1):
        for lead in (1.0, 0.5):
            step = lead * 10.0**exponent
            k = math.floor(high / step + 1e-9)
            number = round(k * step, max(0, 2 - exponent))
            if low < number <= high:
                return number
    return high


@lru_cache(maxsize=10_000)  # the forms of a rule share most of their numbers
def near_numbers(value: float, error: float, most: int = 4) -> tuple[float, ...]:
    """Return numbers in few digits that are no farther off, the shortest first: decimals, 1/6000, and 7/300.

    Examples
    --------
    >>> near_numbers(0.19004, 0.0002)[0], near_numbers(1 / 1200 + 1e-9, 1e-8)[0] == 1 / 1200
    (0.19, True)
    """
    if not (math.isfinite(value) and math.isfinite(error)):
        return ()
    found = {0.0: 0} if abs(value) <= error else {}
    for digits in range(-6, 13):
        for step in (10.0**-digits, 5 * 10.0**-digits / 10):
            number = round(round(value / step) * step, digits + 1)
            if abs(number - value) <= error and number not in found:
                found[number] = len(digits_of(number))
            divisor = round(round(1 / value / step) * step, digits + 1) if value else 0.0
            if divisor and abs(1 / divisor - value) <= error and 1 / divisor not in found:
                found[1 / divisor] = len(digits_of(divisor)) + 1
    for over, under in _fractions(value):
        if over and abs(over / under - value) <= error:
            found.setdefault(over / under, len(digits_of(over)) + len(digits_of(under)) + (over != 1))
    return tuple(sorted(found, key=lambda number: found[number])[:most])


def _fractions(value: float) -> Iterator[tuple[int, int]]:
    """Yield the nearest fractions whose denominators are at most 10, 100 and so on, by one continued fraction.

    Examples
    --------
    >>> list(_fractions(3.14159265))[:3]
    [(22, 7), (311, 99), (355, 113)]
    """
    n, d = value.as_integer_ratio()
    denominator, p, q = d, (0, 1), (1, 0)  # the last two convergents are p[0] / q[0] and p[1] / q[1]
    for most in (10**k for k in range(1, 6)):
        while d and q[0] + n // d * q[1] <= most:
            a = n // d
            p, q = (p[1], p[0] + a * p[1]), (q[1], q[0] + a * q[1])
            n, d = d, n - a * d
        k = (most - q[0]) // q[1]
        between = q[0] + k * q[1]
        yield (p[1], q[1]) if 2 * d * between <= denominator else (p[0] + k * p[1], between)


def digits_of(value: float) -> str:
    """Return the digits of a number, without zeros at its ends.

    Examples
    --------
    >>> digits_of(0.0305), digits_of(1200), digits_of(199.99999999999997)
    ('305', '12', '2')
    """
    return f"{abs(value):.{DECIMALS - 1}e}".partition("e")[0].replace(".", "").strip("0")


def bits_of(number: object) -> float:
    """Return the bits of a number, of a fraction such as 1/1200, or of a day: its digits, and nothing for 0 and 1.

    Tariffs change on the first of a month, so that this is said in fewer digits than other days.

    Examples
    --------
    >>> round(bits_of(-0.25)), round(bits_of(1 / 1200)), round(bits_of("2024-07-01")), bits_of(1.0)
    (9, 12, 9, 0.0)
    """
    if isinstance(number, str):
        return _SIGN + _DIGIT * (2 if number.endswith("-01") else 4)
    signed = float(str(number))
    value = abs(signed)
    if value in (0, 1):
        return float(signed < 0)
    digits = len(digits_of(value))
    if digits > _LONG:
        ratio = Fraction(value).limit_denominator(_LARGEST)
        if abs(ratio - value) < 1e-12 * value:
            digits = min(digits, len(digits_of(ratio.numerator)) + len(digits_of(ratio.denominator)))
    return _SIGN + _DIGIT * digits
