r"""A primal-dual interior-point method for L1 regression with costs on either side.

The problem and its dual are those of :mod:`massart.l1.program`. Split the residual, :math:`y - Xw = u - v`, and let
:math:`s = hi - a` and :math:`t = lo + a` be the room of the dual. The central path is

.. math:: u s = \mu, \quad v t = \mu, \quad X^\top a = b, \quad u, v, s, t > 0,

and a Newton step that aims at :math:`u = p, v = o` where s and t stand costs one weighted Gram matrix:

.. math:: X^\top Q X \, dw = X^\top Q g - (b - X^\top a), \quad da = Q (g - X \, dw), \quad
          Q^{-1} = \operatorname{diag}(u/s + v/t), \quad g = y - Xw - p + o.

This is the Frisch-Newton method of Portnoy and Koenker [1]_ with Mehrotra's predictor and corrector [2]_, for any box
and any b. In the code U stacks u and v, S stacks s and t, and D stacks da and -da, so that both sides read alike.
Memory beyond X is 17 vectors of n numbers and a few d x d arrays.

References
----------
.. [1] S. Portnoy, R. Koenker. The Gaussian hare and the Laplacian tortoise: computability of squared-error versus
       absolute-error estimators. Statistical Science 12 (1997).
.. [2] S. Mehrotra. On the implementation of a primal-dual interior point method. SIAM J. Optimization 2 (1992).
"""

from __future__ import annotations

import numpy as np

from massart.l1.design import Factor
from massart.l1.program import Program
from massart.rows import Callback, FloatArray, Progress

_TINY = float(np.finfo(float).tiny)


# Weights that differ by hundreds of orders of magnitude overflow on the way; the rows concerned get q = 0.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def central_path(
    problem: Program,
    max_iter: int,
    callback: Callback,
    *,
    goal: float = 1e-8,
    step: float = 0.9995,
    start: float = 0.1,
    clean: float = 1e-4,
    patience: int = 8,
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Follow the central path until the gap is at most `goal` times the objective, or stops shrinking.

    Return w, a, the diagonal of Q (huge for rows on the fit, next to 0 for the others) and the number of steps.

    Parameters
    ----------
    problem : Program
    max_iter, callback
        As for :func:`massart.l1_regression`.
    goal : float
        The relative gap at which the vertex is identified; the simplex method takes over there.
    step : float
        The fraction of the way to the boundary that a step may go.
    start : float
        The starting distance of u and v from 0, in mean absolute residuals.
    clean : float
        The fraction of the weighted labels below which an objective counts as that of an exact fit.
    patience : int
        Steps without a smaller gap before the method counts as stalled.
    """
    X, lo, hi, b = problem.design, problem.lo, problem.hi, problem.b
    n = problem.y.size
    # Start at least squares, with u - v = r well inside the positive quadrant.
    w = Factor(X.gram(lo + hi)).solve(X.transposed_times((lo + hi) * problem.y))
    r = problem.residuals(w)
    U = np.maximum(np.stack([r, -r]), 0.0)
    U += start * float(np.abs(r).mean()) or 1.0
    a = 0.5 * (hi - lo)
    S = np.stack([hi - a, lo + a])
    e = b - X.transposed_times(a)
    P, D, dU, work = (np.empty((2, n)) for _ in range(4))
    q = np.empty(n)
    scale = float(np.maximum(lo, hi) @ np.abs(problem.y))
    best, best_at = np.inf, 0

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
        fa = length(float(rate.max()))
        rate -= 1.0
        np.multiply(rate, U, out=dU)
        dU[...] += P
        return dw, shift, fa, length(-float(np.divide(dU, U, out=work).min()))

    def length(fastest: float) -> float:
        """Return `step` of the way to where the fastest slack becomes 0, at most 1."""
        return min(1.0, step / fastest) if fastest > 0 else 1.0

    for n_iter in range(max_iter + 1):
        gap = float(np.vdot(U, S))
        objective = float(hi @ U[0] + lo @ U[1] + b @ w)
        # Clean labels have the objective 0, so the gap is compared with a fraction of the labels as well.
        measure = (gap + float(np.abs(e) @ np.abs(w))) / max(abs(objective), clean * scale, _TINY)
        callback(Progress("L1 regression", n_iter, measure, goal))
        if measure < 0.9 * best:
            best, best_at = measure, n_iter
        np.divide(U, S, out=work)
        np.divide(1.0, np.add(work[0], work[1], out=q), out=q)
        stalled = n_iter - best_at >= patience or not np.isfinite(measure)
        if measure <= goal or stalled or n_iter == max_iter:
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
            break

        w = w + fw * dw
        r -= np.multiply(fw, shift, out=shift)
        U += np.multiply(fw, dU, out=dU)
        S -= np.multiply(fa, D, out=D)
        a += D[0]
        e *= 1.0 - fa
    return w, np.clip(a, -lo, hi, out=a), q, n_iter
