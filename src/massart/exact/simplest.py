r"""The simplest number near a float: zero, a short decimal, a fraction or one over a decimal, and how likely by chance.

Given a number w known up to an uncertainty u, many simple numbers lie in [w - u, w + u]. Which of them means
something? An arbitrary number is within u of some multiple of :math:`10^{-k}` with probability :math:`2 u 10^k`, and
within u of some fraction with a denominator up to q with probability about :math:`2 u \cdot 3 q^2 / \pi^2`. The
simplest number is the one whose probability, called its *chance*, is least. Fractions are rarer in rules than decimals,
so their chance counts as larger.

People write 99.99 about as readily as 100, so chance is never measured on a grid coarser than a hundredth of the number
itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

MAX_DENOMINATOR = 1000
"""The largest denominator of a fraction that is neither a decimal nor one over a decimal."""

FRACTION, ONE_OVER_WHOLE, ONE_OVER_DECIMAL = 10.0, 3.0, 100.0
"""How many times as often people write a decimal as these (benchmarks/exact_numbers.py: 2.381 is not 1/0.42 in
"one_decimal", and 1/36500 is found in "per_year")."""

MOST_DIGITS = 17
"""Digits of the decimals that are tried: those of a float."""

_DENSITY = 3 / math.pi**2  # of fractions up to a denominator q, over q squared
_COARSEST = 1e-2  # of the number itself: the grid on which all numbers are equally simple
_FLOAT_ERROR = 1e-14  # relative, of a few operations
_LARGEST_WITH_FRACTION = 1e12  # a larger number with a denominator reads as no formula


@dataclass(frozen=True, slots=True)
class Simple:
    """A number and the chance that an arbitrary one has so simple a neighbour so near."""

    value: Fraction
    chance: float


def simplest_number(
    w: float, uncertainty: float, natural: float, *, finest: float = 0.0, fractions: bool = True
) -> Simple | None:
    """Return the simplest number within `uncertainty` of `w`; None where the uncertainty is too large for one.

    Parameters
    ----------
    w, uncertainty : float
    natural : float
        The size that w would have if its term alone made up the labels: zero is judged on this scale.
    finest : float
        All multiples of it count as equally simple: a cent, where labels are rounded to cents.
    fractions : bool
        Whether it may be a fraction or one over a decimal.

    Examples
    --------
    >>> [str(simplest_number(w, 1e-9, 1.0).value) for w in (0.42, 1 / 3, 1 / 36500, 1e-12)]
    ['21/50', '1/3', '1/36500', '0']
    """
    if not (math.isfinite(w) and math.isfinite(uncertainty) and uncertainty > 0):
        return None
    if abs(w) <= uncertainty:
        values: Iterator[Fraction] = iter([Fraction(0)])
    elif 2 * uncertainty > max(finest, _COARSEST * abs(w)):
        return None
    else:
        values = _near(w, uncertainty, fractions)
    found = (Simple(value, chance_of(value, uncertainty, natural, finest=finest)) for value in values)
    return min(found, key=lambda simple: simple.chance, default=None)


def chance_of(value: Fraction, uncertainty: float, natural: float, *, finest: float = 0.0) -> float:
    """Return the chance that an arbitrary number, known up to an uncertainty, has a neighbour as simple as this.

    Examples
    --------
    >>> [round(chance_of(Fraction(value), 1e-8, 1.0), 6) for value in ("0", "12", "0.125", "1/36500")]
    [2e-06, 0.0, 4e-06, 0.79935]
    """
    if not value:
        return min(2 * uncertainty / max(finest, _COARSEST * natural), 1.0)
    size = abs(float(value))
    chance = FRACTION * 2 * uncertainty * _DENSITY * float(value.denominator) ** 2
    if (grid := _grid_of(value)) is not None:
        chance = min(chance, 2 * uncertainty / min(grid, max(finest, _COARSEST * size)))
    if (grid := _grid_of(1 / value)) is not None and value.denominator > 1:
        rarer = ONE_OVER_WHOLE if (1 / value).denominator == 1 else ONE_OVER_DECIMAL
        chance = min(chance, rarer * 2 * uncertainty / size**2 / min(grid, _COARSEST / size))
    return min(chance, 1.0)


def _near(w: float, uncertainty: float, fractions: bool) -> Iterator[Fraction]:
    """Yield the shortest decimal, the fraction of least denominator and one over the shortest decimal near w."""
    decimal = _decimal(w, uncertainty)
    if decimal is not None:
        yield decimal
    if not fractions or abs(w) > _LARGEST_WITH_FRACTION:
        return
    radius = Fraction(uncertainty)
    if abs(Fraction(abs(w)).limit_denominator(MAX_DENOMINATOR) - Fraction(abs(w))) <= radius:
        fraction = _simplest_between(Fraction(abs(w)) - radius, Fraction(abs(w)) + radius)
        yield fraction if w > 0 else -fraction
    if w * w and math.isfinite(uncertainty / (w * w)):
        inverse = _decimal(1 / w, uncertainty / (w * w))
        if inverse is not None and abs(1 / inverse - Fraction(w)) <= radius:
            yield 1 / inverse


def _decimal(w: float, uncertainty: float) -> Fraction | None:
    """Return the decimal with the fewest digits within the uncertainty, coarse grids first."""
    exact, radius = Fraction(w), Fraction(uncertainty)
    exponent = math.floor(math.log10(abs(w))) + 1
    for _ in range(MOST_DIGITS + 1):
        grid = 10.0**exponent
        if 2 * uncertainty > grid:
            return None
        # Floats rule out most grids at a fraction of the cost.
        if abs(w / grid - round(w / grid)) * grid <= 2 * uncertainty + _FLOAT_ERROR * abs(w):
            step = Fraction(10) ** exponent
            nearest = round(exact / step) * step
            if nearest and abs(nearest - exact) <= radius:
                return nearest
        exponent -= 1
    return None


def _grid_of(value: Fraction) -> float | None:
    """Return the largest power of ten of which a number is a multiple; None where it has too many digits."""
    numerator, denominator, place = value.numerator, value.denominator, 0
    while denominator == 1 and numerator % 10 == 0:
        numerator, place = numerator // 10, place + 1
    while denominator > 1:
        common = math.gcd(denominator, 10)
        if common == 1:
            return None
        denominator, place = denominator // common, place - 1
    return 10.0**place if place >= math.floor(math.log10(abs(value))) - MOST_DIGITS else None


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of least denominator in [low, high], 0 < low <= high, along its continued fraction."""
    whole = math.floor(low)
    if whole == low:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / _simplest_between(1 / (high - whole), 1 / (low - whole))
