"""Balancing a dual: clipped linear functions of the rows that satisfy :math:`X^\\top a = b`.

Given offsets :math:`\\tau`, centres c, slopes k and a box [lower, upper] for every row, find :math:`\\lambda` with

.. math:: X^\\top a(\\lambda) = b, \\qquad
          a_i(\\lambda) = \\operatorname{clip}\\bigl(c_i + k_i (\\tau_i + x_i^\\top \\lambda),\\; lower_i,\\; upper_i\\bigr).

The left side is the gradient of a convex, piecewise quadratic function, so Newton's method ends after finitely many
steps when a solution exists. The equation serves twice:

* with :math:`\\tau = r / h` it is the optimality condition of the Huber-smoothed problem of width h, whose dual is
  feasible for the L1 problem [1]_;
* with :math:`\\tau = 0` and :math:`k_i = 0` off the fit it asks for a dual that is free on the fitted rows alone, which
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
from massart.l1.problem import Point, Problem, evaluate
from massart.rows import FloatArray

BALANCED = 1e-13
"""The equation holds when its error is this fraction of the terms that cancel in it."""


@dataclass(frozen=True, slots=True)
class Clipped:
    """The coefficients of :math:`a(\\lambda)`, one entry a row."""

    offset: FloatArray
    centre: FloatArray
    slope: FloatArray
    lower: FloatArray
    upper: FloatArray

    def dual(self, t: FloatArray) -> FloatArray:
        """Return a for :math:`t = \\tau + X \\lambda`."""
        a = self.slope * t
        a += self.centre
        return np.clip(a, self.lower, self.upper, out=a)


@dataclass(frozen=True, slots=True)
class Balance:
    """Where the Newton iteration ended, and whether the equation holds there."""

    shift: FloatArray  # lambda
    a: FloatArray
    n_iter: int
    balanced: bool


def balance(design: Design, rows: Clipped, b: FloatArray, start: FloatArray, max_iter: int) -> Balance:
    """Solve :math:`X^\\top a(\\lambda) = b` by Newton's method from `start`."""
    shift = start
    t = rows.offset + design.times(shift)
    a = rows.dual(t)
    # |X'a| is at most the column's length times that of a: the error is at rounding level below this.
    largest = np.maximum(np.abs(rows.lower), np.abs(rows.upper))
    noise = BALANCED * (design.lengths * np.linalg.norm(largest) + np.abs(b))
    for step in range(max_iter + 1):
        error = b - design.transposed_times(a)
        if (np.abs(error) <= noise).all():
            return Balance(shift, a, step, True)
        if step == max_iter:
            break
        free = (a > rows.lower) & (a < rows.upper)
        direction = Factor(design.gram(rows.slope * free)).solve(error)
        along = design.times(direction)
        length = _line_search(rows, t, along, float(b @ direction))
        shift = shift + length * direction
        t += length * along
        a = rows.dual(t)
    return Balance(shift, a, max_iter, False)


def _line_search(rows: Clipped, t: FloatArray, along: FloatArray, goal: float) -> float:
    """Return a step at which the derivative :math:`a(t + \\ell\\, along)^\\top along - goal` is near 0.

    It increases with the step and starts below 0; the full Newton step is taken wherever it does not overshoot much.
    """
    before = float(rows.dual(t) @ along) - goal
    low, high = 0.0, 1.0
    for _ in range(10):
        ahead = float(rows.dual(t + high * along) @ along) - goal
        if ahead <= 0.5 * abs(before):
            break
        # Secant through the two ends: the derivative is piecewise linear, and convexity keeps the root between them.
        low, high = low, low + (high - low) * max(-before / (ahead - before), 0.1)
    return high


def prove(problem: Problem, point: Point, start: FloatArray | None = None, max_iter: int = 12) -> tuple[Point, FloatArray]:
    """Return the point with a dual that is free on its fitted rows, and the :math:`\\lambda` of that dual.

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
    found = balance(problem.design, rows, problem.b, start, max_iter)
    proven = evaluate(problem, point.w, found.a)
    return (proven if proven.gap < point.gap else point), found.shift


def smooth(problem: Problem, w: FloatArray, width: float, max_iter: int) -> FloatArray:
    """Return the minimiser of the problem with every kink rounded off within `width`, started from w."""
    lo, hi = problem.lo, problem.hi
    offset = problem.residuals(w)
    offset /= width
    rows = Clipped(offset, 0.5 * (hi - lo), 0.5 * (hi + lo), -lo, hi)
    found = balance(problem.design, rows, problem.b, np.zeros_like(w), max_iter)
    return w - width * found.shift
