r"""Links: the non-decreasing f of :math:`y = f(w \cdot x)`.

Lemma 3.1 holds for any non-decreasing f. Those of use in practice are the identity between two limits and a line of
smaller slope beyond them:

.. math::
    f(z) = c + a \, (z - c), \qquad c = \min(\max(l, z), u) .

The ReLU has the lower limit 0 and the slope 0 beyond it; a leaky ReLU has another slope; two limits clip, as do
instruments that saturate and surveys that ask for "100 or more" (censored, Tobit-like tables). With a slope the link
has an inverse, and recovery is linear recovery of :math:`f^{-1}(y)`. Without one, a label tells

- :math:`w \cdot x` itself if it lies between the limits: such a label is *decisive*;
- only a side, :math:`w \cdot x \le l` or :math:`\ge u`, if it is a limit;
- that it is wrong, whatever w is, if it lies beyond: such a label is *impossible*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.rows.arrays import BoolArray, FloatArray, clipped, namespace_of


@dataclass(frozen=True, slots=True)
class Link:
    """The identity between two limits, and a line of slope `slope` beyond them.

    Attributes
    ----------
    lower, upper : float
        The limits, ``lower < upper``; either may be infinite.
    slope : float
        Of the link beyond the limits: 0 clips.

    Examples
    --------
    >>> Link()(np.array([-2.0, 3.0]))
    array([0., 3.])
    >>> Link(slope=0.1)(np.array([-2.0, 3.0]))
    array([-0.2,  3. ])
    >>> Link(lower=-1, upper=1)(np.array([-2.0, 0.5, 3.0]))
    array([-1. ,  0.5,  1. ])
    """

    lower: float = 0.0
    upper: float = float("inf")
    slope: float = 0.0

    def __post_init__(self) -> None:
        if not self.lower < self.upper:
            raise ValueError(f"lower must be less than upper, got {self.lower} and {self.upper}")
        if not 0 <= self.slope < np.inf:
            raise ValueError(f"slope must be finite and not negative, got {self.slope}")

    def __call__(self, z: FloatArray) -> FloatArray:
        """Return f(z)."""
        if self.lower == -np.inf and self.upper == np.inf:
            return z
        inside: FloatArray = clipped(z, self.lower, self.upper)
        return inside + self.slope * (z - inside) if self.slope else inside

    @property
    def invertible(self) -> bool:
        """Whether every label is decisive."""
        return self.slope > 0 or (self.lower == -np.inf and self.upper == np.inf)

    def derivative(self, z: FloatArray) -> FloatArray:
        """Return f'(z); at a limit, that of the inside."""
        xp = namespace_of(z)
        inside: FloatArray = xp.where((z >= self.lower) & (z <= self.upper), xp.ones_like(z), self.slope)
        return inside

    def inverse(self, y: FloatArray) -> FloatArray:
        """Return z with f(z) = y; the label itself where there is not exactly one."""
        inside = np.clip(y, self.lower, self.upper)
        return inside + (y - inside) / self.slope if self.slope else y

    def decisive(self, y: FloatArray, slack: float | FloatArray = 0.0) -> BoolArray:
        """Return which labels lie between the limits by more than `slack`, and so tell w.x itself."""
        if self.invertible:
            return _all(y, True)
        return (y > self.lower + slack) & (y < self.upper - slack)

    def impossible(self, y: FloatArray, slack: float | FloatArray = 0.0) -> BoolArray:
        """Return which labels lie beyond the limits by more than `slack`, and so are wrong whatever w is."""
        if self.invertible:
            return _all(y, False)
        return (y < self.lower - slack) | (y > self.upper + slack)


def _all(y: FloatArray, value: bool) -> BoolArray:
    xp = namespace_of(y)
    same: BoolArray = xp.full_like(y, value, dtype=xp.bool)
    return same


RELU = Link()
"""max(0, z)."""

IDENTITY = Link(lower=-np.inf, upper=np.inf)
"""z: no limit at all."""
