r"""The simplest number near a float: zero, a short decimal or a small fraction, and how likely that is by chance.

Given a number w known up to an uncertainty u, many simple numbers lie in [w - u, w + u]. Which of them means
something? An arbitrary number is within u of some multiple of :math:`10^{-k}` with probability :math:`2 u 10^k`, and
within u of some fraction with a denominator up to q with probability about :math:`2 u q^2` at most. The simplest number
is the one whose probability, called its *chance*, is least; it is found only if that is small.

People write 99.99 about as readily as 100, so chance is never measured on a grid coarser than a hundredth of the number
itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

MAX_DENOMINATOR = 1000
"""The largest denominator of a fraction that is not a decimal."""

_COARSEST = 1e-2  # of the number itself: the grid on which all numbers are equally simple
_FLOAT_ERROR = 1e-14  # relative, of a few operations
_LARGEST_WITH_FRACTION = 1e12  # a larger number with a denominator reads as no formula


@dataclass(frozen=True, slots=True)
class Simple:
    """A number and the chance that an arbitrary one has so simple a neighbour so near."""

    value: Fraction
    chance: float


def simplest_number(
    w: float, uncertainty: float, natural: float, *, most_chance: float, finest: float = 0.0
) -> Simple | None:
    """Return the simplest number within `uncertainty` of `w`, or None if its chance exceeds `most_chance`.

    `natural` is the size that w would have if its term alone made up the labels: zero is judged on this scale. All
    multiples of `finest` count as equally simple: a cent, where labels are rounded to cents.
    """
    if not (math.isfinite(w) and math.isfinite(uncertainty) and uncertainty > 0):
        return None
    if abs(w) <= uncertainty:
        grid = max(finest, _COARSEST * natural)
        return Simple(Fraction(0), 2 * uncertainty / grid) if 2 * uncertainty <= most_chance * grid else None
    if 2 * uncertainty > most_chance * max(finest, _COARSEST * abs(w)):
        return None
    found = [_decimal(w, uncertainty, most_chance), _fraction(w, uncertainty)]
    return min(
        (simple for simple in found if simple is not None and simple.chance <= most_chance),
        key=lambda simple: simple.chance,
        default=None,
    )


def _decimal(w: float, uncertainty: float, most_chance: float) -> Simple | None:
    """Return the decimal with the fewest digits within the uncertainty, coarse grids first."""
    exact, radius = Fraction(w), Fraction(uncertainty)
    exponent = math.floor(math.log10(abs(w))) + 1
    while True:
        grid = 10.0**exponent
        chance = 2 * uncertainty / grid
        if chance > most_chance:
            return None
        # Floats rule out most grids at a fraction of the cost.
        if abs(w / grid - round(w / grid)) * grid <= 2 * uncertainty + _FLOAT_ERROR * abs(w):
            step = Fraction(10) ** exponent
            nearest = round(exact / step) * step
            if nearest and abs(nearest - exact) <= radius:
                return Simple(nearest, chance)
        exponent -= 1


def _fraction(w: float, uncertainty: float) -> Simple | None:
    """Return the fraction with the smallest denominator within the uncertainty."""
    if abs(w) > _LARGEST_WITH_FRACTION:
        return None
    exact, radius = Fraction(abs(w)), Fraction(uncertainty)
    if abs(exact.limit_denominator(MAX_DENOMINATOR) - exact) > radius:
        return None
    value = _simplest_between(exact - radius, exact + radius)
    if value.denominator > MAX_DENOMINATOR:
        return None
    chance = 2 * uncertainty * value.denominator**2
    return Simple(value if w > 0 else -value, chance)


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of least denominator in [low, high], 0 < low <= high, along its continued fraction."""
    whole = math.floor(low)
    if whole == low:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / _simplest_between(1 / (high - whole), 1 / (low - whole))
