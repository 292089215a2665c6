r"""Balancing a dual: clipped linear functions of the rows that satisfy :math:`X^\top a = b`.

Given offsets :math:`\tau`, centres c, slopes k and a box [lower, upper] for every row, find :math:`\lambda` with

.. math:: X^\top a(\lambda) = b, \qquad
          a_i(\lambda) = \operatorname{clip}\bigl(c_i + k_i (\tau_i + x_i^\top \lambda), \; lower_i, \; upper_i\bigr).

The left side is the gradient of a convex, piecewise quadratic function, so Newton's method ends after finitely many
steps when a solution exists. The equation serves twice:

* with :math:`\tau = r / h` it is the optimality condition of the Huber-smoothed problem of width h, whose dual is
  feasible for the L1 problem [1]_;
* with :math:`\tau = 0` and :math:`k_i = 0` off the fit it asks for a dual that is free on the fitted rows alone, which
  proves that the fit is optimal. When most rows are fitted there are many such duals, and this one costs a few passes,
  where a simplex method would wander from one degenerate basis to the next.

References
----------
.. [1] K. Madsen, H. B. Nielsen. A finite smoothing algorithm for linear l1 estimation. SIAM J. Optimization 3 (1993).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.l1.design import Design
from massart.l1.interior_point import Factor
from massart.l1.program import Point, Program, with_dual
from massart.rows import FloatArray

BALANCED = 1e-13
"""The equation holds when its error is this fraction of the terms that cancel in it."""


PROOF_STEPS = 12
"""Newton steps of a proof; half of them suffice where there is one."""

UNBOUNDED = 1e12
"""A step this long, where the boxes have a width of about 1, leads nowhere."""


@dataclass(frozen=True, slots=True)
class Clipped:
    r"""The coefficients of :math:`a(\lambda)`, one entry a row."""

    offset: FloatArray
    centre: FloatArray
    slope: FloatArray
    lower: FloatArray
    upper: FloatArray

    def dual(self, t: FloatArray) -> FloatArray:
        r"""Return a for :math:`t = \tau + X \lambda`."""
        a = self.slope * t
        a += self.centre
        return np.clip(a, self.lower, self.upper, out=a)


def balance(
    design: Design, rows: Clipped, b: FloatArray, start: FloatArray, max_iter: int
) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`\lambda` and :math:`a(\lambda)` after at most `max_iter` Newton steps from `start`.

    Whether they solve the equation is for the caller to check: a gap is computed from `a` in any case.
    """
    shift = start
    t = rows.offset + design.times(shift)
    a = rows.dual(t)
    # |X'a| is at most the column's length times that of a: the error is at rounding level below this.
    largest = np.maximum(np.abs(rows.lower), np.abs(rows.upper))
    noise = BALANCED * (design.lengths * np.linalg.norm(largest) + np.abs(b))
    for _ in range(max_iter):
        error = b - design.transposed_times(a)
        if (np.abs(error) <= noise).all():
            break
        free = (a > rows.lower) & (a < rows.upper)
        direction = Factor(design.gram(rows.slope * free)).solve(error)
        along = design.times(direction)
        # The free rows do not span, and the step along what they leave open is unbounded: no such dual exists.
        if np.abs(along).max() > UNBOUNDED:
            break
        length = _line_search(rows, t, along, float(b @ direction))
        if length == 0.0:
            break
        shift = shift + length * direction
        t += length * along
        a = rows.dual(t)
    return shift, a


def _line_search(rows: Clipped, t: FloatArray, along: FloatArray, goal: float) -> float:
    r"""Return a step at which the derivative :math:`a(t + \ell\, along)^\top along - goal` is near 0 or still below.

    It increases with the step; the full Newton step is taken wherever it does not overshoot much. It starts below 0,
    unless the free rows do not span and rounding is all that is left of the error: then there is no step, 0.
    """
    before = float(rows.dual(t) @ along) - goal
    if before >= 0.0:
        return 0.0
    length = 1.0
    for _ in range(10):
        ahead = float(rows.dual(t + length * along) @ along) - goal
        if ahead <= 0.5 * abs(before):
            break
        length *= max(-before / (ahead - before), 0.1)  # the secant through both ends
    return length


def prove(problem: Program, point: Point, start: FloatArray | None = None) -> tuple[Point, FloatArray]:
    r"""Return the point with a dual that is free on its fitted rows, and the :math:`\lambda` of that dual.

    The point comes back unchanged when the new dual proves less than the one it has.
    """
    lo, hi, fitted = problem.lo, problem.hi, point.fitted
    bound = np.where(point.r > 0, hi, -lo)
    rows = Clipped(
        offset=np.zeros_like(bound),
        centre=np.where(fitted, 0.5 * (hi - lo), bound),
        slope=np.where(fitted, 0.5 * (hi + lo), 0.0),
        lower=np.where(fitted, -lo, bound),
        upper=np.where(fitted, hi, bound),
    )
    start = np.zeros(problem.b.size) if start is None else start
    shift, a = balance(problem.design, rows, problem.b, start, PROOF_STEPS)
    proven = with_dual(problem, point, a)
    return (proven if proven.gap < point.gap else point), shift


def smooth(problem: Program, w: FloatArray, width: float, max_iter: int) -> FloatArray:
    """Return the minimiser of the problem with every kink rounded off within `width`, started from w."""
    lo, hi = problem.lo, problem.hi
    offset = problem.residuals(w)
    offset /= width
    rows = Clipped(offset, 0.5 * (hi - lo), 0.5 * (hi + lo), -lo, hi)
    shift, _ = balance(problem.design, rows, problem.b, np.zeros_like(w), max_iter)
    return w - width * shift
