r"""A printed number stands for an interval: when a row agrees with a formula.

A row :math:`(x, y)` agrees with :math:`y = f(w \cdot x)` if its numbers are compatible with it,

.. math::
    |y - f(w \cdot x)| \le t, \qquad t = h_y + \sum_j |w_j| h_j + a(s), \qquad s = \sum_j |w_j x_j| + |y| .

:math:`h_y` is half a unit of the last place of the labels where these are rounded, :math:`h_j` the same for the
columns, and :math:`a(s)` is what float arithmetic explains. The *size* s is the sum of the magnitudes that cancel in
the residual: y, x and w are rounded to a relative :math:`\epsilon/2` each, and whoever computed y rounded each step,
so that :math:`a(s) = (6 + d) \epsilon s` for numbers that were computed. Labels on a grid of 10^k, cents say, were
rounded after that: then a quarter of a unit is enough, or :math:`\epsilon s` where even that is more, so that a wrong
cent shows at 1e13.

Residuals come from one matrix product. It is off by at most :math:`(d/2 + 2) \epsilon s`; rows that this leaves in
doubt are computed again by compensated sums (Ogita, Rump and Oishi 2005, *Accurate sum and dot product*, Dot2), so
that the answer depends neither on the blocks nor on the storage of the rows, nor on the device they are on: each step
of these sums is an array operation of its own, which no compiler can join with the next one into a fused multiply-add.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from massart.rows.arrays import BoolArray, FloatArray, clipped, magnitudes, namespace_of, type_of
from massart.rows.link import IDENTITY, Link

EPS = float(np.finfo(np.float64).eps)

SQUARE_IS_FINITE = 1e152
"""Largest number whose square does not overflow, by far; the squares of smaller ones than its inverse vanish."""

EDGE = 1e-6
"""Half a unit is taken so much wider: labels at the very edge, halves that were rounded, pin a formula on both sides,
and none is known to the last digit."""

_SPLIT = 2.0**27 + 1  # Dekker's: cuts a float64 into two halves of 26 bits
_GRID_NAMES = {
    1: "1 decimal",
    0: "whole numbers",
    2: "cents",
    -1: "tens",
    -2: "hundreds",
    -3: "thousands",
    -6: "millions",
}


class Level(Enum):
    """What is taken to be rounded, the tightest first; the value says it in words."""

    EXACT = "exactly"
    LABEL = "labels are rounded"
    INPUTS = "labels and columns are rounded"
    GIVEN = "a tolerance that was given"
    NOISE = "labels carry noise"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a row that agrees may be from the formula, and why.

    Attributes
    ----------
    level : Level
    label : float
        :math:`h_y`: half a unit of the last place of the labels, or the tolerance that was given.
    inputs : tuple of float
        :math:`h_j` for each column; empty where columns are not rounded.
    relative : float
        What arithmetic explains for each unit of size.
    unit : float or None
        Of the last place of the labels, where they are on a grid of powers of ten.
    tight : float
        What arithmetic explains at least, where labels are on a grid.
    precision : float
        Machine epsilon of the type that the numbers have, or come from.
    """

    level: Level
    label: float = 0.0
    inputs: tuple[float, ...] = ()
    relative: float = 0.0
    unit: float | None = None
    tight: float = EPS
    precision: float = EPS

    def __str__(self) -> str:
        """Say it in words: "within rounding to cents"."""
        match self.level:
            case Level.EXACT:
                return "exactly" if self.precision <= EPS else f"within rounding of {type_of(self.precision).__name__}"
            case Level.LABEL:
                return f"within rounding to {self._grid}"
            case Level.INPUTS:
                return f"within rounding to {self._grid}, and that of the columns"
            case Level.GIVEN:
                return f"within {self.label:g}, as given" if self.label else "exactly"
            case Level.NOISE:
                return f"within {self.label:.3g}, since labels carry noise"

    @property
    def places(self) -> int | None:
        """Decimals to which labels are rounded, negative for tens and hundreds; None where nothing is."""
        if self.unit is None or self.level not in (Level.LABEL, Level.INPUTS):
            return None
        return -round(float(np.log10(self.unit)))

    @property
    def rounded(self) -> bool:
        """Whether a row that agrees stands for an interval, and not for a number with a little float rounding."""
        return self.label > 0

    @property
    def _grid(self) -> str:
        places = self.places or 0
        return _GRID_NAMES.get(places, f"{places} decimals" if places > 0 else f"multiples of {10**-places:,}")

    def half_widths(self, size: FloatArray, w: FloatArray | None = None) -> FloatArray:
        """Return t for rows of these sizes; `w` is needed where columns are rounded."""
        arithmetic = self.relative * size
        if self.unit is not None:
            arithmetic = namespace_of(size).minimum(arithmetic, clipped(self.tight * size, self.unit / 4))
        slack = self.slack(w)
        if self.level in (Level.LABEL, Level.INPUTS):
            slack *= 1 + EDGE
        return slack + arithmetic

    def scales_up_to(self, size: float) -> bool:
        """Return whether what arithmetic explains is in proportion to the size of all rows that are not larger."""
        return self.unit is None or self.relative <= self.tight or self.relative * size <= self.unit / 4

    def slack(self, w: FloatArray | None = None) -> float:
        """Return the part of t that every row has."""
        if not self.inputs:
            return self.label
        assert w is not None, "rounded columns need the coefficients"
        return self.label + float(np.abs(w) @ np.asarray(self.inputs))

    def loosened(self, relative: float) -> Agreement:
        """Return the same with at least this relative part, for formulas that are not polished yet."""
        return replace(self, relative=max(relative, self.relative), unit=None)

    @property
    def uncapped(self) -> Agreement:
        """The same without the cap for labels on a grid, for coefficients that are not exact numbers (yet)."""
        return replace(self, tight=self.relative)

    def scaled(self, unit: float) -> Agreement:
        """Return the same for labels divided by `unit`."""
        return replace(self, label=self.label / unit, unit=None if self.unit is None else self.unit / unit)

    def agree(self, X: Any, y: FloatArray, w: FloatArray, link: Link = IDENTITY) -> BoolArray:
        """Return the rows that agree with ``y = link(X @ w)``."""
        return verify(X, y, w, self, link).agree


@dataclass(frozen=True, slots=True)
class Verified:
    """Rows next to a formula.

    Attributes
    ----------
    products : (n,) array
        w.x.
    residuals : (n,) array
        ``y - f(w.x)``.
    half_widths : (n,) array
        t.
    agree : (n,) boolean array
    """

    products: FloatArray
    residuals: FloatArray
    half_widths: FloatArray
    agree: BoolArray


def verify(X: Any, y: FloatArray, w: FloatArray, agreement: Agreement, link: Link = IDENTITY) -> Verified:
    """Compare rows in memory, an array or a SciPy sparse matrix, with the formula ``y = link(X @ w)``."""

    def dense(chosen: BoolArray) -> FloatArray:
        rows = X[chosen]
        return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), dtype=np.float64)

    return compare(np.asarray(X @ w), magnitudes(X, np.abs(w)), y, dense, w, agreement, link)


def compare(
    products: FloatArray,
    terms: FloatArray,
    y: FloatArray,
    dense: Callable[[BoolArray], FloatArray],
    w: FloatArray,
    agreement: Agreement,
    link: Link,
) -> Verified:
    """Decide which rows agree, given what matrix products say; `dense` gives the rows of a mask where that is doubtful.

    Parameters
    ----------
    products, terms : (n,) arrays
        w.x and the sum of its terms' magnitudes, as computed.
    y : (n,) array
    dense : callable
    w : (d,) array
    agreement : Agreement
    link : Link
    """
    size, slope = terms + abs(y), max(1.0, link.slope)
    widths = slope * agreement.half_widths(size, w)
    residuals = y - link(products)
    magnitude = abs(residuals)
    agree = magnitude <= widths
    doubtful = abs(magnitude - widths) <= doubt_of(w) * slope * size
    if namespace_of(y).any(doubtful):
        high, low = compensated_products(dense(doubtful), w)
        residuals[doubtful] = _residuals(y[doubtful], high, low, link)
        agree[doubtful] = abs(residuals[doubtful]) <= widths[doubtful]
    return Verified(products, residuals, widths, agree)


def doubt_of(w: FloatArray) -> float:
    """Return by how much of its size a residual from a matrix product may be off, in any order of its sum."""
    return (len(w) / 2 + 2) * EPS


def _residuals(y: FloatArray, high: FloatArray, low: FloatArray, link: Link) -> FloatArray:
    """Return y - f(high + low), with the small part of the product not lost."""
    return (y - link(high)) - link.derivative(high) * low


def compensated_products(X: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the products X @ w as if computed in twice the precision: an unevaluated sum of two floats.

    Examples
    --------
    >>> high, low = compensated_products(np.array([[1e16, 1.0, -1e16]]), np.ones(3))
    >>> float(high[0] + low[0])
    1.0
    """
    xp = namespace_of(X)
    high, low = xp.zeros_like(X[:, 0]), xp.zeros_like(X[:, 0])
    for j, coefficient in enumerate(w.tolist()):
        if coefficient == 0:
            continue
        product, rest = _two_product(X[:, j], coefficient)
        high, lost = _two_sum(high, product)
        low += lost + rest
    return _two_sum(high, low)


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rounded sum and what rounding lost (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _two_product(x: FloatArray, c: float) -> tuple[FloatArray, FloatArray]:
    """Return the rounded product and what rounding lost (Veltkamp, Dekker)."""
    product = x * c
    x_high, x_low = _halves(x)
    c_high, c_low = _halves(c)
    lost = ((x_high * c_high - product) + x_high * c_low + x_low * c_high) + x_low * c_low
    return product, lost


def _halves(x: Any) -> tuple[Any, Any]:
    scaled = _SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high
