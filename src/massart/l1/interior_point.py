r"""A primal-dual interior-point method for L1 regression with costs on either side.

The problem and its dual are those of :mod:`massart.l1.program`. Split the residual, :math:`y - Xw = u - v`, and let
:math:`s = hi - a` and :math:`t = lo + a` be the room of the dual. The central path is

.. math:: u s = \mu, \quad v t = \mu, \quad X^\top a = b, \quad u, v, s, t > 0,

and a Newton step that aims at :math:`u = p, v = o` where s and t stand costs one weighted Gram matrix:

.. math:: X^\top Q X \, dw = X^\top Q g - (b - X^\top a), \quad da = Q (g - X \, dw), \quad
          Q^{-1} = \operatorname{diag}(u/s + v/t), \quad g = y - Xw - p + o.

This is the Frisch-Newton method of Portnoy and Koenker with Mehrotra's predictor and corrector, for any box and any b.
In the code U stacks u and v, S stacks s and t, and D stacks da and -da, so that both sides read alike. Memory beyond
X is 17 vectors of n numbers and a few d x d arrays.

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

from massart.l1.program import Program
from massart.progress import Callback, Progress
from massart.rows import FloatArray

GOAL = 1e-8
"""The relative gap at which the vertex is identified; the finishing step takes over there."""

STEP = 0.9995
"""The fraction of the way to the boundary that a step may go."""

START = 0.1
"""The starting distance of u and v from 0, in mean absolute residuals."""

CLEAN = 1e-4
"""The fraction of the weighted labels below which an objective counts as that of an exact fit."""

TINY = float(np.finfo(float).tiny)

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


# Weights that differ by hundreds of orders of magnitude overflow on the way; the rows concerned get q = 0.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def central_path(problem: Program, max_iter: int, callback: Callback) -> Interior:
    """Follow the central path until the gap is at most `GOAL` times the objective."""
    X, lo, hi, b = problem.design, problem.lo, problem.hi, problem.b
    n = problem.y.size
    w = _least_squares(problem)
    r = problem.residuals(w)
    U = _split(r)
    a = 0.5 * (hi - lo)
    S = np.stack([hi - a, lo + a])
    e = b - X.transposed_times(a)
    P, D, dU, work = (np.empty((2, n)) for _ in range(4))
    q = np.empty(n)
    scale = float(np.maximum(lo, hi) @ np.abs(problem.y))
    best, best_step, ending = np.inf, 0, Ending.LIMIT

    def newton(factor: Factor) -> tuple[FloatArray, FloatArray, float, float]:
        """Write the step (D, dU) towards U = P; return dw, X dw, and how far a and w may go."""
        g = np.subtract(r, P[0], out=work[0])
        g += P[1]
        dw = factor.solve(X.transposed_times(np.multiply(q, g, out=work[1])) - e)
        shift = X.times(dw)
        np.subtract(g, shift, out=D[0])
        D[0] *= q
        np.negative(D[0], out=D[1])
        rate = np.divide(D, S, out=work)
        fastest = float(rate.max())
        rate -= 1.0
        np.multiply(rate, U, out=dU)
        dU[...] += P
        return dw, shift, _length(fastest), _length(-float(np.divide(dU, U, out=work).min()))

    for step in range(max_iter + 1):
        gap = float(np.vdot(U, S))
        objective = float(hi @ U[0] + lo @ U[1] + b @ w)
        # Clean labels have the objective 0, so the gap is compared with a fraction of the labels as well.
        measure = (gap + float(np.abs(e) @ np.abs(w))) / max(abs(objective), CLEAN * scale, TINY)
        callback(Progress("L1 regression", step, measure, GOAL))
        if measure < 0.9 * best:
            best, best_step = measure, step
        if measure <= GOAL:
            ending = Ending.CONVERGED
        elif step - best_step >= PATIENCE or not np.isfinite(measure):
            ending = Ending.STALLED
        np.divide(U, S, out=work)
        np.divide(1.0, np.add(work[0], work[1], out=q), out=q)
        if ending is not Ending.LIMIT or step == max_iter:
            break
        factor = Factor(X.gram(q))

        # Predictor: aim at mu = 0.
        P.fill(0.0)
        _, _, fa, fw = newton(factor)
        ahead = gap + fw * np.vdot(S, dU) - fa * np.vdot(D, U) - fa * fw * np.vdot(D, dU)
        mu = gap / (2 * n) * min(float(ahead) / gap, 1.0) ** 3

        # Corrector: aim at mu, allowing for the second-order term -D dU that the predictor left out.
        np.multiply(D, dU, out=P)
        P += mu
        P /= S
        dw, shift, fa, fw = newton(factor)
        if not np.isfinite(dw).all():
            ending = Ending.STALLED
            break

        w = w + fw * dw
        r -= np.multiply(fw, shift, out=shift)
        U += np.multiply(fw, dU, out=dU)
        S -= np.multiply(fa, D, out=D)
        a += D[0]
        e *= 1.0 - fa
    return Interior(w, np.clip(a, -lo, hi, out=a), q, step, ending)


def _length(fastest: float) -> float:
    """Return `STEP` of the way to where the fastest slack becomes 0, at most 1."""
    return min(1.0, STEP / fastest) if fastest > 0 else 1.0


class Factor:
    """The Cholesky factor of a Gram matrix, lifted off singularity by the least multiple of its diagonal that works."""

    def __init__(self, gram: FloatArray) -> None:
        diagonal = np.diag(gram)
        self._root = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, float(diagonal.max()) or 1.0))
        correlation = gram * self._root
        correlation *= self._root[:, None]
        for lift in (0.0, 1e-14, 1e-11, 1e-8, 1e-4):
            correlation.flat[:: gram.shape[0] + 1] = 1.0 + lift
            # LAPACK itself: the checks of scipy's wrapper cost more than a small factor.
            self._triangle, failed = sla.lapack.dpotrf(correlation, clean=0)
            if not failed:
                return
        self._triangle = np.eye(gram.shape[0])

    def solve(self, rhs: FloatArray) -> FloatArray:
        """Return the solution of the normal equations."""
        solution: FloatArray = sla.lapack.dpotrs(self._triangle, rhs * self._root)[0]
        return solution * self._root


def _least_squares(problem: Program) -> FloatArray:
    weight = problem.lo + problem.hi
    rhs = problem.design.transposed_times(weight * problem.y)
    return Factor(problem.design.gram(weight)).solve(rhs)


def _split(r: FloatArray) -> FloatArray:
    """Return u, v > 0 with u - v = r, well inside the positive quadrant."""
    floor = START * float(np.abs(r).mean()) or 1.0
    U = np.stack([r, -r])
    np.maximum(U, 0.0, out=U)
    U += floor
    return U
