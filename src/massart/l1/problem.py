"""The linear program behind L1 regression, and the gap that proves an answer.

With residuals :math:`r = y - Xw` and costs :math:`lo_i, hi_i \\ge 0`,

.. math::

    \\min_w \\; f(w) = \\sum_i \\bigl( hi_i \\max(r_i, 0) + lo_i \\max(-r_i, 0) \\bigr) + b^\\top w,
    \\qquad
    \\max_a \\; y^\\top a \\quad \\text{s.t.} \\quad X^\\top a = b, \\; -lo \\le a \\le hi .

Plain L1 regression has :math:`lo = hi` and :math:`b = 0`; a one-sided row has :math:`hi_i = 0`; the term b carries rows
whose sign is already known (:mod:`massart.l1.preprocessing`). For any w, and any a in its box,

.. math:: f(w) - \\min f \\; \\le \\; \\sum_i \\bigl( c_i(r_i) - a_i r_i \\bigr) + |X^\\top a - b|^\\top |w^* - w| ,

where :math:`c_i` is the cost of row i. Every term of the sum is non-negative, so it loses nothing to cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.l1.design import Design, IntArray
from massart.rows import BoolArray, FloatArray

RELATIVE_GAP = 1e-11
"""An answer is optimal when its gap is at most this fraction of its objective ..."""

ROUNDING_GAP = 1e-13
"""... or this fraction of the sum of weighted terms it is computed from, which only rounding separates from 0."""

ON_THE_FIT = 2.0**-38
"""A residual below this fraction of the terms that cancelled in it counts as 0 (about 4e-12)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Rows, labels, costs on either side and the linear term."""

    design: Design
    y: FloatArray
    lo: FloatArray
    hi: FloatArray
    b: FloatArray

    def residuals(self, w: FloatArray) -> FloatArray:
        r = self.design.times(w)
        return np.subtract(self.y, r, out=r)

    def costs(self, r: FloatArray) -> FloatArray:
        """Return :math:`c_i(r_i)` for every row."""
        return np.maximum(self.hi * r, -self.lo * r)

    def restricted(self, index: IntArray, b: FloatArray) -> Problem:
        return Problem(self.design.restricted(index), self.y[index], self.lo[index], self.hi[index], b)


@dataclass(frozen=True, slots=True)
class Point:
    """A primal and a dual answer with the proof of how good they are, recomputed from the data.

    Attributes
    ----------
    w, a : arrays of shape (d,) and (n,)
        Coefficients and dual.
    r : array of shape (n,)
        Residuals.
    objective : float
        :math:`f(w)`.
    gap : float
        The bound of this module's docstring. The unknown :math:`|w^* - w|`, which only multiplies the rounding error of
        :math:`X^\\top a`, is taken as :math:`|w|` plus the coefficient that would make a column as long as y.
    fitted : boolean array of shape (n,)
        Rows whose residual is 0 but for rounding.
    optimal : bool
        Whether the gap is closed.
    """

    w: FloatArray
    a: FloatArray
    r: FloatArray
    objective: float
    gap: float
    fitted: BoolArray
    optimal: bool


def evaluate(problem: Problem, w: FloatArray, a: FloatArray | None = None) -> Point:
    """Return the point (w, a) with its gap; without `a`, rows off the fit sit at their bound and the others at 0."""
    r = problem.residuals(w)
    size = problem.design.sizes(w)
    size += np.abs(problem.y)
    fitted = np.abs(r) <= ON_THE_FIT * size
    if a is None:
        a = np.where(r > 0, problem.hi, -problem.lo)
        a[fitted] = np.clip(0.0, -problem.lo[fitted], problem.hi[fitted])
    costs = problem.costs(r)
    objective = float(costs.sum() + problem.b @ w)
    # Term by term: every one is non-negative, so nothing cancels (c - a r is (hi - a) r or (lo + a)(-r)).
    slack = float(np.where(r > 0, problem.hi - a, -problem.lo - a) @ r)
    imbalance = np.abs(problem.design.transposed_times(a) - problem.b)
    gap = slack + float(imbalance @ (np.abs(w) + _reach(problem)))
    rounding = ROUNDING_GAP * float(np.maximum(problem.lo, problem.hi) @ size)
    return Point(w, a, r, objective, gap, fitted, gap <= max(RELATIVE_GAP * abs(objective), rounding))


def _reach(problem: Problem) -> FloatArray:
    """Return :math:`|y| / |X_j|` for every column, 0 for columns of zeros."""
    lengths = problem.design.lengths
    return np.linalg.norm(problem.y) / np.where(lengths > 0, lengths, np.inf)
