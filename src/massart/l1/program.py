r"""The linear program behind L1 regression, the gap that proves an answer, and Newton's method for the dual.

With residuals :math:`r = y - Xw` and costs :math:`lo_i, hi_i \ge 0`,

.. math::

    \min_w \; f(w) = \sum_i \bigl( hi_i \max(r_i, 0) + lo_i \max(-r_i, 0) \bigr) + b^\top w,
    \qquad
    \max_a \; y^\top a \quad \text{s.t.} \quad X^\top a = b, \; -lo \le a \le hi .

Plain L1 regression has :math:`lo = hi` and :math:`b = 0`; a one-sided row has :math:`hi_i = 0`; the term b carries rows
whose sign is already known (:mod:`massart.l1.regression`). For any w, and any a in its box,

.. math:: f(w) - \min f \; \le \; \sum_i \bigl( c_i(r_i) - a_i r_i \bigr) + |X^\top a - b|^\top |w^* - w| ,

where :math:`c_i` is the cost of row i. Every term of the sum is non-negative, so it loses nothing to cancellation.

**A dual by Newton's method.** Clip a linear function of the rows to the box,

.. math:: X^\top a(\lambda) = b, \qquad
          a_i(\lambda) = \operatorname{clip}\bigl(c_i + k_i (\tau_i + x_i^\top \lambda), \; lower_i, \; upper_i\bigr).

The left side is the gradient of a convex, piecewise quadratic function, so that Newton's method ends after finitely
many steps when a solution exists. The equation serves twice:

* :func:`smooth`: with :math:`\tau = r / h` it is the optimality condition of the Huber-smoothed problem of width h,
  whose dual is feasible for the L1 problem [1]_.
* :func:`prove`: with :math:`\tau = 0` and :math:`k_i = 0` off the fit it asks for a dual that is free on the fitted
  rows alone, which proves that the fit is optimal. When most rows are fitted there are many such duals, and this one
  costs a few passes, where a simplex method would wander from one degenerate basis to the next.

References
----------
.. [1] K. Madsen, H. B. Nielsen. A finite smoothing algorithm for linear l1 estimation. SIAM J. Optimization 3 (1993).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from massart.l1.design import DesignMatrix, Factor, IntArray
from massart.rows import BoolArray, FloatArray

RELATIVE_GAP = 1e-11
"""An answer is optimal when its gap is at most this fraction of its objective ..."""

ROUNDING_GAP = 1e-13
"""... or this fraction of the sum of weighted terms it is computed from, which only rounding separates from 0."""

ON_THE_FIT = 2.0**-38
"""A residual below this fraction of the terms that cancelled in it counts as 0 (about 4e-12)."""


@dataclass(frozen=True, slots=True)
class Program:
    """Rows, labels, costs on either side and the linear term."""

    design: DesignMatrix
    y: FloatArray
    lo: FloatArray
    hi: FloatArray
    b: FloatArray

    def residuals(self, w: FloatArray) -> FloatArray:
        """Return :math:`y - X w`."""
        r = self.design.times(w)
        return np.subtract(self.y, r, out=r)

    def restricted(self, index: IntArray, b: FloatArray) -> Program:
        """Return the problem of some rows, with a linear term of its own."""
        return Program(self.design.restricted(index), self.y[index], self.lo[index], self.hi[index], b)


@dataclass(frozen=True, slots=True)
class Point:
    r"""A primal and a dual answer with the proof of how good they are, recomputed from the data.

    Attributes
    ----------
    w, a : arrays of shape (d,) and (n,)
        Coefficients and dual.
    r : array of shape (n,)
        Residuals.
    fitted : boolean array of shape (n,)
        Rows whose residual is 0 but for rounding.
    objective : float
        :math:`f(w)`.
    terms : float
        The weighted sum of the magnitudes that cancel in the residuals, which rounding errors scale with.
    gap : float
        The bound of this module's docstring. The unknown :math:`|w^* - w|`, which only multiplies the rounding error of
        :math:`X^\top a`, is taken as :math:`|w|` plus the coefficient that would make a column as long as y.
    """

    w: FloatArray
    a: FloatArray
    r: FloatArray
    fitted: BoolArray
    objective: float
    terms: float
    gap: float

    @property
    def optimal(self) -> bool:
        """Whether the gap is closed."""
        return self.gap <= max(RELATIVE_GAP * abs(self.objective), ROUNDING_GAP * self.terms)


def evaluate(problem: Program, w: FloatArray, a: FloatArray | None = None) -> Point:
    """Return the point (w, a) with its gap; without `a`, rows off the fit are at their bound and the others near 0."""
    r = problem.residuals(w)
    size = problem.design.sizes(w)
    size += np.abs(problem.y)
    fitted = np.abs(r) <= ON_THE_FIT * size
    if a is None:
        a = np.where(r > 0, problem.hi, -problem.lo)
        a[fitted] = 0.0
    objective = float(np.maximum(problem.hi * r, -problem.lo * r).sum() + problem.b @ w)
    terms = float(np.maximum(problem.lo, problem.hi) @ size)
    return Point(w, a, r, fitted, objective, terms, _gap(problem, w, a, r))


def with_dual(problem: Program, point: Point, a: FloatArray) -> Point:
    """Return the same w with another dual."""
    return replace(point, a=a, gap=_gap(problem, point.w, a, point.r))


def _gap(problem: Program, w: FloatArray, a: FloatArray, r: FloatArray) -> float:
    # Term by term: every one is non-negative, so nothing cancels (c - a r is (hi - a) r or (lo + a)(-r)).
    slack = float((np.where(r > 0, problem.hi, -problem.lo) - a) @ r)
    lengths = problem.design.lengths
    reach = np.abs(w) + np.linalg.norm(problem.y) / np.where(lengths > 0, lengths, np.inf)
    return slack + float(np.abs(problem.design.transposed_times(a) - problem.b) @ reach)


@dataclass(frozen=True, slots=True)
class _ClippedDual:
    r"""The coefficients of :math:`a(\lambda)`, one entry a row; `offset` is :math:`\tau`, `centre` c, `slope` k."""

    offset: FloatArray
    centre: FloatArray
    slope: FloatArray
    lower: FloatArray
    upper: FloatArray

    def at(self, t: FloatArray) -> FloatArray:
        r"""Return a for :math:`t = \tau + X \lambda`."""
        a = self.slope * t
        a += self.centre
        return np.clip(a, self.lower, self.upper, out=a)


def prove(problem: Program, point: Point, start: FloatArray | None = None) -> tuple[Point, FloatArray]:
    r"""Return the point with a dual that is free on its fitted rows, and the :math:`\lambda` of that dual.

    The point comes back unchanged when the new dual proves less than the one it has.
    """
    lo, hi, fitted = problem.lo, problem.hi, point.fitted
    bound = np.where(point.r > 0, hi, -lo)
    dual = _ClippedDual(
        offset=np.zeros_like(bound),
        centre=np.where(fitted, 0.5 * (hi - lo), bound),
        slope=np.where(fitted, 0.5 * (hi + lo), 0.0),
        lower=np.where(fitted, -lo, bound),
        upper=np.where(fitted, hi, bound),
    )
    shift, a = _newton(problem, dual, np.zeros(problem.b.size) if start is None else start)
    proven = with_dual(problem, point, a)
    return (proven if proven.gap < point.gap else point), shift


def smooth(problem: Program, w: FloatArray, width: float, max_iter: int) -> FloatArray:
    """Return w after Newton steps on the problem with every kink rounded off within `width`."""
    lo, hi = problem.lo, problem.hi
    dual = _ClippedDual(problem.residuals(w) / width, 0.5 * (hi - lo), 0.5 * (hi + lo), -lo, hi)
    return w - width * _newton(problem, dual, np.zeros_like(w), max_iter=max_iter)[0]


def _newton(
    problem: Program,
    dual: _ClippedDual,
    start: FloatArray,
    *,
    max_iter: int = 12,
    balanced: float = 1e-13,
) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`\lambda` and :math:`a(\lambda)` after Newton steps from `start`.

    Whether they solve the equation is for the caller to check: a gap is computed from a in any case.

    Parameters
    ----------
    problem, dual, start
        Rows and b; the coefficients of a; the first :math:`\lambda`.
    max_iter : int
        Steps: half of these prove what can be proven (benchmarks/bench_l1.py, exact labels).
    balanced : float
        The equation holds when its error is this fraction of the terms that cancel in it.
    """
    design, b = problem.design, problem.b
    shift = start
    t = dual.offset + design.times(shift)
    a = dual.at(t)
    # |X'a| is at most the column's length times that of a: the error is at rounding level below this.
    largest = np.maximum(np.abs(dual.lower), np.abs(dual.upper))
    noise = balanced * (design.lengths * np.linalg.norm(largest) + np.abs(b))
    for _ in range(max_iter):
        error = b - design.transposed_times(a)
        if (np.abs(error) <= noise).all():
            break
        free = (a > dual.lower) & (a < dual.upper)
        direction = Factor(design.gram(dual.slope * free)).solve(error)
        along = design.times(direction)
        # The derivative a(t + l along)'along - b'direction of the convex function increases with the step l. The full
        # step is taken wherever it does not overshoot much.
        goal, length = float(b @ direction), 1.0
        before = float(a @ along) - goal
        if before >= 0.0:  # the free rows do not span, and rounding is all that is left of the error
            break
        for _ in range(10):
            ahead = float(dual.at(t + length * along) @ along) - goal
            if ahead <= 0.5 * abs(before):
                break
            length *= max(-before / (ahead - before), 0.1)  # the secant through both ends
        shift = shift + length * direction
        t += length * along
        a = dual.at(t)
    return shift, a
