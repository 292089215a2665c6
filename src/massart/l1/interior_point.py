"""A primal-dual interior-point method for L1 regression with costs on either side.

The problem and its dual are those of :mod:`massart.l1.problem`. With slacks :math:`s = hi - a`, :math:`t = lo + a` and the
split residual :math:`y - Xw = u - v`, the central path is

.. math:: u s = \\mu, \\quad v t = \\mu, \\quad X^\\top a = b, \\quad u, v, s, t > 0,

and a Newton step on it costs one weighted Gram matrix:

.. math:: X^\\top Q X \\, dw = X^\\top Q g - (b - X^\\top a), \\quad da = Q (g - X \\, dw), \\quad
          Q^{-1} = \\operatorname{diag}(u/s + v/t).

This is the Frisch-Newton method of Portnoy and Koenker with Mehrotra's predictor and corrector, for any box and any b.
Memory beyond X is a dozen vectors of n numbers and a few d x d arrays.

References
----------
.. [1] S. Portnoy, R. Koenker. The Gaussian hare and the Laplacian tortoise: computability of squared-error versus
       absolute-error estimators. Statistical Science 12 (1997).
.. [2] S. Mehrotra. On the implementation of a primal-dual interior point method. SIAM J. Optimization 2 (1992).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy.linalg as sla

from massart.l1.problem import Problem
from massart.progress import Callback, Progress
from massart.rows import FloatArray

GOAL = 1e-9
"""The relative gap at which the vertex is identified; the finishing step takes over there."""

STEP = 0.9995
"""The fraction of the way to the boundary that a step may go."""

START = 0.1
"""The starting distance of u and v from 0, in mean absolute residuals."""

CLEAN = 1e-4
"""The fraction of the weighted labels below which an objective counts as that of an exact fit."""

PATIENCE = 8
"""Steps without a smaller gap before the method counts as stalled."""


class Ending(Enum):
    """Why the iteration ended."""

    CONVERGED = "the gap is closed"
    LIMIT = "the iteration limit was reached"
    STALLED = "the gap stopped shrinking"


@dataclass(frozen=True, slots=True)
class Interior:
    """A point near the central path.

    `weight` is the diagonal of Q: huge for rows on the fit, next to 0 for the others.
    """

    w: FloatArray
    a: FloatArray
    weight: FloatArray
    n_iter: int
    ending: Ending


def central_path(problem: Problem, max_iter: int, callback: Callback) -> Interior:
    """Follow the central path until the gap is at most `GOAL` times the objective."""
    X, lo, hi, b = problem.design, problem.lo, problem.hi, problem.b
    n = problem.y.size
    w = _least_squares(problem)
    r = problem.residuals(w)
    u, v = _split(r)
    a = 0.5 * (hi - lo)
    s, t = hi - a, lo + a
    e = b - X.transposed_times(a)
    q, da, du, dv, pu, pv, work = (np.empty(n) for _ in range(7))
    scale = float(np.maximum(lo, hi) @ np.abs(problem.y))
    best, best_step, ending = np.inf, 0, Ending.LIMIT

    def newton(factor: Factor) -> tuple[FloatArray, FloatArray]:
        """Return (dw, X dw) and write da, du, dv: a step towards u = pu, v = pv at the present s and t."""
        np.subtract(r, pu, out=work)
        np.add(work, pv, out=work)
        np.multiply(q, work, out=da)
        dw = factor.solve(X.transposed_times(da) - e)
        shift = X.times(dw)
        np.subtract(work, shift, out=da)
        np.multiply(q, da, out=da)
        _slope(pu, u, s, da, out=du)
        _slope(pv, v, t, np.negative(da, out=work), out=dv)
        return dw, shift

    for step in range(max_iter + 1):
        gap = float(u @ s + v @ t)
        objective = float(hi @ u + lo @ v + b @ w)
        # Clean labels have the objective 0, so the gap is compared with a fraction of the labels as well.
        measure = (gap + float(np.abs(e) @ np.abs(w))) / max(abs(objective), CLEAN * scale, np.finfo(float).tiny)
        callback(Progress("L1 regression", step, measure, GOAL))
        if measure < 0.9 * best:
            best, best_step = measure, step
        if measure <= GOAL:
            ending = Ending.CONVERGED
        elif step - best_step >= PATIENCE or not np.isfinite(measure):
            ending = Ending.STALLED
        np.divide(u, s, out=q)
        q += np.divide(v, t, out=work)
        np.divide(1.0, q, out=q)
        if ending is not Ending.LIMIT or step == max_iter:
            break
        factor = Factor(X.gram(q))

        # Predictor: aim at mu = 0.
        pu[:], pv[:] = 0.0, 0.0
        newton(factor)
        fa, fw = _step_lengths(a=((s, da, -1.0), (t, da, 1.0)), w=((u, du, 1.0), (v, dv, 1.0)), work=work)
        ahead = _product(s, -fa, da, u, fw, du) + _product(t, fa, da, v, fw, dv)
        mu = gap / (2 * n) * min(ahead / gap, 1.0) ** 3

        # Corrector: aim at mu, allowing for the second-order terms ds du and dt dv that the predictor left out.
        np.multiply(da, du, out=pu)
        np.add(pu, mu, out=pu)
        np.divide(pu, s, out=pu)
        np.multiply(da, dv, out=pv)
        np.subtract(mu, pv, out=pv)
        np.divide(pv, t, out=pv)
        dw, shift = newton(factor)
        fa, fw = _step_lengths(a=((s, da, -1.0), (t, da, 1.0)), w=((u, du, 1.0), (v, dv, 1.0)), work=work)

        w = w + fw * dw
        for vector, change, length in ((r, shift, -fw), (u, du, fw), (v, dv, fw), (a, da, fa), (s, da, -fa), (t, da, fa)):
            vector += np.multiply(length, change, out=work)
        e *= 1.0 - fa
    return Interior(w, np.clip(a, -lo, hi), q, step, ending)


class Factor:
    """The Cholesky factor of a Gram matrix, lifted off singularity by the least multiple of its diagonal that works."""

    def __init__(self, gram: FloatArray) -> None:
        diagonal = np.diag(gram).copy()
        diagonal[diagonal <= 0] = max(float(diagonal.max(initial=0.0)), 1e-300)
        self._root = 1.0 / np.sqrt(diagonal)
        correlation = gram * self._root * self._root[:, None]
        for lift in (0.0, 1e-14, 1e-11, 1e-8, 1e-4):
            correlation.flat[:: gram.shape[0] + 1] = 1.0 + lift
            try:
                self._factor = sla.cho_factor(correlation, lower=True, check_finite=False)
                return
            except np.linalg.LinAlgError:
                continue
        self._factor = (np.eye(gram.shape[0]), True)

    def solve(self, rhs: FloatArray) -> FloatArray:
        solution: FloatArray = sla.cho_solve(self._factor, rhs * self._root, check_finite=False) * self._root
        return solution


def _least_squares(problem: Problem) -> FloatArray:
    weight = problem.lo + problem.hi
    rhs = problem.design.transposed_times(weight * problem.y)
    return Factor(problem.design.gram(weight)).solve(rhs)


def _split(r: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return u, v > 0 with u - v = r, well inside the positive quadrant."""
    floor = START * float(np.abs(r).mean()) or 1.0
    u = np.maximum(r, 0.0)
    u += floor
    return u, u - r


def _slope(target: FloatArray, u: FloatArray, s: FloatArray, da: FloatArray, out: FloatArray) -> None:
    """Write du = target - u + (u / s) da."""
    np.divide(da, s, out=out)
    out -= 1.0
    out *= u
    out += target


_Change = tuple[FloatArray, FloatArray, float]


def _step_lengths(a: tuple[_Change, _Change], w: tuple[_Change, _Change], work: FloatArray) -> tuple[float, float]:
    """Return how far a and w may go, at most 1: `STEP` of the way to where one of their slacks becomes 0."""
    lengths = []
    for pair in (a, w):
        fastest = 0.0
        for slack, change, sign in pair:
            np.divide(change, slack, out=work)
            fastest = max(fastest, float(-work.min() if sign > 0 else work.max()))
        lengths.append(min(1.0, STEP / fastest) if fastest > 0 else 1.0)
    return lengths[0], lengths[1]


def _product(s: FloatArray, fs: float, ds: FloatArray, u: FloatArray, fu: float, du: FloatArray) -> float:
    """Return (s + fs ds)'(u + fu du) without forming either vector."""
    return float(s @ u + fu * (s @ du) + fs * (ds @ u) + fs * fu * (ds @ du))
