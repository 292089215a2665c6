r"""Iterates towards radial isotropy: three minimizers of one geodesically convex function.

With weights :math:`c_i` that sum to one, rows in k dimensions and a map :math:`T`, the function

.. math::
    f(T) = k \sum_i c_i \log |T^\top x_i|^2 - \log \det T T^\top

is convex along the curves :math:`T \exp(-tD/2)`, D symmetric, with gradient :math:`I - \Psi(T)`, where
:math:`\Psi = k \sum_i c_i u_i u_i^\top`. So its minimizers are the maps with :math:`\Psi = I` (Definition 1.4), and it
has none when a heavy subspace exists (Lemma 2.5): then T diverges, and its shape shows the subspace.

:func:`fixed_point` is Tyler's iteration: slow in the end, but it never lets the smallest eigenvalue of Psi fall, so it
serves a large gamma. :func:`geodesic_descent` is a limited-memory quasi-Newton method, one pass over the rows a step.
:func:`dual_newton` is Newton's method in one variable a row, for few rows: the dual of Barthe (1998) that Appendix A
works with. All are generators of :class:`Iterate`; the caller decides when to stop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
from scipy import linalg

from massart.isotropy.curvature import PinchedHessian, pinched_hessian
from massart.isotropy.moments import RadialMoments, radial_moments
from massart.rows import FloatArray

_MEMORY = 10  # pairs kept by the quasi-Newton method; more do not save passes on any family measured
_LONGEST_STEP = 5.0  # in log-eigenvalues: a factor exp(5/2) a step lets a diverging map show itself within a few steps
_MODEL_STEP = 2  # few steps reach gamma = 1/2 without a model
_EXPLAINED = 0.5  # largest part of a change of gradient that a useful model may miss
_ARMIJO = 1e-4
_ROUNDING = 1e-11  # decreases of f below this are noise: there the gradient decides


@dataclass(frozen=True, slots=True)
class Iterate:
    """One map on the way, with the spectrum of its Psi.

    Attributes
    ----------
    T : (d, k) array
        The map; rows become ``X @ T``.
    relative : (k, k) array
        M with ``T = T0 M``, T0 being the map that the iteration started from.
    eigenvalues, eigenvectors : (k,), (k, k) arrays
        Of Psi, ascending.
    sweeps : int
        Passes over the rows since the previous iterate.
    """

    T: FloatArray
    relative: FloatArray
    eigenvalues: FloatArray
    eigenvectors: FloatArray
    sweeps: int

    @property
    def residual(self) -> float:
        """1 - lambda_min(Psi), the gamma that is reached (Definition 1.4)."""
        return float(1 - self.eigenvalues[0])

    @property
    def error(self) -> float:
        """The two-sided error, the spectral norm of Psi - I."""
        return float(max(1 - self.eigenvalues[0], self.eigenvalues[-1] - 1))


def fixed_point(X: FloatArray, T0: FloatArray, weights: FloatArray | None = None) -> Iterator[Iterate]:
    """Iterate ``T <- T Psi^(-1/2)`` from `T0` (Tyler 1987): the spectrum of Psi shrinks towards 1 from both sides."""
    M = np.eye(T0.shape[1])
    while True:
        psi = radial_moments(X, T0 @ M, weights).psi
        eigenvalues, eigenvectors = np.linalg.eigh(psi)
        yield Iterate(T0 @ M, M, eigenvalues, eigenvectors, 1)
        M = M @ (eigenvectors / np.sqrt(np.maximum(eigenvalues, np.exp(-_LONGEST_STEP)))) @ eigenvectors.T


def geodesic_descent(X: FloatArray, T0: FloatArray, weights: FloatArray | None = None) -> Iterator[Iterate]:
    """Minimize f by L-BFGS in the moving frame, from `T0`; ends only when rounding stops all progress."""
    k = T0.shape[1]
    identity = np.eye(k)
    M = identity
    moments = radial_moments(X, T0, weights)
    pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_MEMORY)
    model: PinchedHessian | None = None
    sweeps = 1
    for step_number in count():
        psi = moments.psi
        eigenvalues, eigenvectors = np.linalg.eigh(psi)
        yield Iterate(T0 @ M, M, eigenvalues, eigenvectors, sweeps)
        gradient = identity - psi
        if step_number == _MODEL_STEP and pairs:
            step, change, _ = pairs[-1]
            model = pinched_hessian(X, T0 @ M, psi, weights)
            if np.linalg.norm(change - model.apply(step)) > _EXPLAINED * np.linalg.norm(change):
                model = None
        direction = -_two_loop(gradient, pairs, model)
        slope = float(np.vdot(gradient, direction))
        if not pairs or slope >= 0:
            # Tyler's fixed-point step: a majorize-minimize step of f, so it always descends.
            pairs.clear()
            floor = np.maximum(eigenvalues, np.exp(-_LONGEST_STEP))
            direction = (eigenvectors * np.log(floor)) @ eigenvectors.T
            slope = float(np.vdot(gradient, direction))
        accepted = _line_search(X, T0, M, moments, direction, slope, weights)
        sweeps = accepted.sweeps + (step_number == _MODEL_STEP)
        if accepted.moments is None:
            return
        step = accepted.length * direction
        change = moments.psi - accepted.moments.psi
        curvature = float(np.vdot(step, change))
        if curvature > 0:
            pairs.append((step, change, curvature))
        M, moments = accepted.M, accepted.moments


@dataclass(frozen=True, slots=True)
class _Step:
    M: FloatArray
    moments: RadialMoments | None  # None: no acceptable step was found
    length: float
    sweeps: int


def _line_search(
    X: FloatArray,
    T0: FloatArray,
    M: FloatArray,
    moments: RadialMoments,
    direction: FloatArray,
    slope: float,
    weights: FloatArray | None,
) -> _Step:
    """Backtrack along ``M exp(-t D / 2)`` until f falls by Armijo's rule, or the gradient shrinks where f is noise."""
    k = len(M)
    rates, axes = np.linalg.eigh(direction)
    length = _LONGEST_STEP / max(float(np.abs(rates).max()), _LONGEST_STEP)
    for sweeps in range(1, 31):
        trial = M @ ((axes * np.exp(-0.5 * length * rates)) @ axes.T)
        reached = radial_moments(X, T0 @ trial, weights)
        fall = k * (reached.log_norm - moments.log_norm) / moments.weight + length * float(rates.sum())
        if fall <= _ARMIJO * length * slope:
            return _Step(trial, reached, length, sweeps)
        if abs(length * slope) < _ROUNDING and _distance(reached) < _distance(moments):
            return _Step(trial, reached, length, sweeps)
        length *= 0.5
    return _Step(M, None, 0.0, sweeps)


def _distance(moments: RadialMoments) -> float:
    psi = moments.psi
    return float(np.linalg.norm(psi - np.eye(len(psi))))


def _two_loop(
    gradient: FloatArray, pairs: deque[tuple[FloatArray, FloatArray, float]], model: PinchedHessian | None
) -> FloatArray:
    """Apply the L-BFGS inverse Hessian to `gradient` (Nocedal 1980), from `model` or a multiple of the identity."""
    q = gradient.copy()
    coefficients = []
    for step, change, curvature in reversed(pairs):
        coefficient = float(np.vdot(step, q)) / curvature
        q -= coefficient * change
        coefficients.append(coefficient)
    if model is not None:
        q = model.solve(q)
    elif pairs:
        _, change, curvature = pairs[-1]
        q *= curvature / float(np.vdot(change, change))
    for (step, change, curvature), coefficient in zip(pairs, reversed(coefficients), strict=True):
        q += step * (coefficient - float(np.vdot(change, q)) / curvature)
    return np.asarray((q + q.T) / 2)


def dual_newton(X: FloatArray, T0: FloatArray, weights: FloatArray | None = None) -> Iterator[Iterate]:
    r"""Newton's method on the dual, from `T0`: :math:`O(n^3)` a step, about ten steps to rounding level.

    .. math::
        \min_t \; \log\det \sum_i e^{t_i} z_i z_i^\top - k \sum_i c_i t_i

    over the unit rows :math:`z_i` along :math:`T_0^\top x_i`. Its gradient is the leverage of row i in the weighted
    rows less :math:`k c_i`; at the minimum :math:`T_0 R^{-1}` is radial-isotropic, R being the triangular factor of
    the rows :math:`e^{t_i/2} z_i`.
    """
    Z = X @ T0
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    n, k = Z.shape
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    target = k * share
    t = np.zeros(n)
    Q, R, value = _weighted_factor(Z, t, target)
    sweeps = 2
    while True:
        leverage = np.einsum("ij,ij->i", Q, Q)
        scaled = Q * np.sqrt(target / leverage)[:, None]
        eigenvalues, eigenvectors = np.linalg.eigh(scaled.T @ scaled)
        M = linalg.solve_triangular(R, np.eye(k))
        yield Iterate(T0 @ M, M, eigenvalues, eigenvectors, sweeps)
        gradient = leverage - target
        # f is constant along t + const; k / n^2 pins that direction.
        hessian = np.diag(leverage) - (Q @ Q.T) ** 2 + k / n**2
        try:
            step = -linalg.cho_solve(linalg.cho_factor(hessian), gradient)
        except linalg.LinAlgError:
            step = np.zeros(n)
        slope = float(gradient @ step)
        if not slope < 0:
            step = np.log(target / leverage)
            slope = float(gradient @ step)
        length = _LONGEST_STEP / max(float(np.abs(step).max()), _LONGEST_STEP)
        for sweeps in range(1, 31):  # noqa: B007 - read after the yield
            Q_new, R_new, value_new = _weighted_factor(Z, t + length * step, target)
            if value_new - value <= _ARMIJO * length * slope or abs(length * slope) < _ROUNDING:
                break
            length *= 0.5
        else:
            return
        if not np.isfinite(value_new):
            return
        t = t + length * step
        Q, R, value = Q_new, R_new, value_new


def _weighted_factor(Z: FloatArray, t: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    Q, R = np.linalg.qr(np.exp(0.5 * (t - t.max()))[:, None] * Z)
    with np.errstate(divide="ignore"):
        log_determinant = 2 * float(np.log(np.abs(np.diag(R))).sum())
    return Q, R, log_determinant - float(target @ (t - t.max()))
