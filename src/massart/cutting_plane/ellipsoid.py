r"""The central-cut ellipsoid method: the reference, with the proof of the paper's Theorem 1.3.

The region is :math:`E = \{c + B z : |z| \le 1\}`. A cut :math:`a \cdot v \le a \cdot c - \delta` of relative depth
:math:`\alpha = \delta / |B^T a|` leaves a cap of E. With :math:`u = B^T a / |B^T a|`, the smallest ellipsoid that
holds the cap has [1]_

.. math::

    c' = c - \frac{1 + d \alpha}{d + 1} B u, \qquad
    B' = B \left( \sqrt{\frac{d^2 (1 - \alpha^2)}{d^2 - 1}} \, (I - u u^T) + \frac{d (1 - \alpha)}{d + 1} u u^T \right),

so that the volume falls by :math:`\frac{d}{d+1} (d^2 / (d^2 - 1))^{(d-1)/2} < e^{-1 / (2d + 2)}` at a central cut. In
one dimension there is nothing across u, and the method is bisection. Where :math:`\alpha \ge 1` nothing is left.

Carrying the factor B instead of :math:`B B^T` keeps the matrix positive definite whatever is rounded.

References
----------
.. [1] M. Grötschel, L. Lovász and A. Schrijver, Geometric Algorithms and Combinatorial Optimization, Springer 1988,
   section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.cutting_plane.queries import Cuts, Oracle, search
from massart.rows import Callback, FloatArray, silent


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """``{center + B z : |z| <= 1}``."""

    center: FloatArray
    B: FloatArray

    @classmethod
    def unit_ball(cls, d: int) -> Ellipsoid:
        """Return the region before the first cut."""
        return cls(np.zeros(d), np.eye(d))

    def log_volume(self) -> float:
        """Return the logarithm of the volume, in units of the volume of the unit ball."""
        return float(np.linalg.slogdet(self.B).logabsdet)

    def cut(self, normal: FloatArray, depth: float) -> Ellipsoid | None:
        """Return the smallest ellipsoid around the cap."""
        d = len(normal)
        u = self.B.T @ normal
        half_width = float(np.linalg.norm(u))
        if not depth < half_width:
            return None
        alpha = depth / half_width
        u /= half_width
        along = d * (1 - alpha) / (d + 1)
        across = d * np.sqrt((1 - alpha) * (1 + alpha) / ((d - 1) * (d + 1))) if d > 1 else along
        Bu = self.B @ u
        return Ellipsoid(
            self.center - (1 + d * alpha) / (d + 1) * Bu,
            across * self.B + np.outer((along - across) * Bu, u),
        )


def ellipsoid(
    oracle: Oracle,
    d: int,
    radius: float,
    *,
    start: FloatArray | None = None,
    max_queries: int = 100_000,
    tol: float = 1e-12,
    callback: Callback = silent,
) -> Cuts:
    """Find a point that `oracle` accepts by the ellipsoid method.

    It takes at most ``2 (d + 1) d log(R / r)`` queries where the target holds a ball of radius r. Queries may leave the
    first ball.

    Parameters
    ----------
    oracle, d, radius, start, max_queries, tol, callback
        As for :func:`analytic_center`.
    """
    return search("ellipsoid method", Ellipsoid.unit_ball, oracle, d, radius, start, max_queries, tol, callback)
