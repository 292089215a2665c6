r"""The linear program behind L1 regression, and the gap that proves an answer.

With residuals :math:`r = y - Xw` and costs :math:`lo_i, hi_i \ge 0`,

.. math::

    \min_w \; f(w) = \sum_i \bigl( hi_i \max(r_i, 0) + lo_i \max(-r_i, 0) \bigr) + b^\top w,
    \qquad
    \max_a \; y^\top a \quad \text{s.t.} \quad X^\top a = b, \; -lo \le a \le hi .

Plain L1 regression has :math:`lo = hi` and :math:`b = 0`; a one-sided row has :math:`hi_i = 0`; the term b carries rows
whose sign is already known (:mod:`massart.l1.preprocessing`). For any w, and any a in its box,

.. math:: f(w) - \min f \; \le \; \sum_i \bigl( c_i(r_i) - a_i r_i \bigr) + |X^\top a - b|^\top |w^* - w| ,

where :math:`c_i` is the cost of row i. Every term of the sum is non-negative, so it loses nothing to cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from massart.l1.design import Design
from massart.l1.matrix import IntArray
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

    design: Design
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
    """Return the point (w, a) with its gap; without `a`, rows off the fit sit at their bound and the others near 0."""
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
