"""The unit of labels, and numbers in few digits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from massart.rows import FloatArray

UNITS = (1000.0, 100.0, 10.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""Units to which people round."""

DECIMALS = 12
"""Digits of a number that are looked at: what comes after them is the rounding of floats."""

_MOST, _ODD = 0.9, 0.84  # share of the labels that are multiples; of 0.05, which wrong labels leave more often
_EXACT = 1e-9  # of the size of the labels, where they have no unit
_DIGIT, _SIGN = math.log2(10), 2.0  # bits of a digit; of the sign and the place of the point
_LONG, _LARGEST = 4, 100_000  # digits beyond which a number may be a fraction; its largest denominator
_DENOMINATORS = (3, 6, 7, 9, 11, 12, 30, 60, 360, 365, 1200)


def unit_of(y: FloatArray) -> float:
    """Return the largest unit of which nearly all labels are multiples.

    Examples
    --------
    >>> unit_of(np.array([12.05, 7.10, 3.95, 4.00])), unit_of(np.array([3.0, 4.0, 17.0]))
    (0.05, 1.0)
    """
    for unit in UNITS:
        quotients = y / unit
        off = np.abs(quotients - np.round(quotients))
        share = float(np.mean(off < 1e-6 * np.maximum(1.0, 1e-6 * np.abs(quotients))))
        if share > (_ODD if unit == 0.05 else _MOST):
            return unit
    return max(_EXACT * float(np.median(np.abs(y))), 1e-300)


def simplest(low: float, high: float) -> float:
    """Return the number with the fewest digits above `low` and not above `high`.

    Examples
    --------
    >>> simplest(29.3, 30.4), simplest(0.21, 0.26), simplest(118.0, 119.03)
    (30.0, 0.25, 119.0)
    """
    if not high > low:
        return high
    for exponent in range(9, -10, -1):
        for lead in (1.0, 0.5, 0.25):
            step = lead * 10.0**exponent
            k = math.floor(high / step + 1e-9)
            number = round(k * step, max(0, 2 - exponent))
            if low < number <= high:
                return number
    return high


def near_numbers(value: float, error: float, most: int = 3) -> list[float]:
    """Return numbers in few digits that are no farther off, the shortest first; 1/n and m/n where these are long.

    Examples
    --------
    >>> near_numbers(0.19004, 0.0002)[0], near_numbers(1 / 1200 + 1e-9, 1e-8)[0] == 1 / 1200
    (0.19, True)
    """
    if not (np.isfinite(value) and np.isfinite(error)):
        return []
    found = [0.0] if abs(value) <= error else []
    for digits in range(-6, 13):
        for step in (10.0**-digits, 5 * 10.0**-digits / 10):
            number = round(round(value / step) * step, digits + 1)
            if abs(number - value) <= error and number not in found:
                found.append(number)
    if not found or len(digits_of(found[0])) > 4:
        ratios = [(m, round(value * m)) for m in _DENOMINATORS]
        parts = [whole / m for m, whole in ratios if whole and abs(whole / m - value) <= error]
        if value and abs(1 / value) > 1.5 and abs(1 / round(1 / value) - value) <= error:
            parts.append(1 / round(1 / value))
        return [*parts[-1:], *found[:most]]
    return found[:most]


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
