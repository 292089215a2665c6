r"""Iterates towards radial isotropy: two minimizers of one geodesically convex function.

With weights :math:`c_i` that sum to one, rows in k dimensions and a map T, the function

.. math::
    f(T) = k \sum_i c_i \log |T^\top x_i|^2 - \log \det T T^\top

is convex along the curves :math:`T \exp(-tD/2)`, D symmetric, with gradient :math:`I - \Psi(T)`, where
:math:`\Psi = k \sum_i c_i u_i u_i^\top`. So its minimizers are the maps with :math:`\Psi = I` (Definition 1.4), and it
has none when a heavy subspace exists (Lemma 2.5): then T diverges, and its shape shows the subspace.

* :func:`fixed_point` is Tyler's iteration [1]_: slow in the end, but it never lets the smallest eigenvalue of Psi fall,
  so it serves a large gamma.
* :func:`geodesic_descent` is a limited-memory quasi-Newton method, one pass over the rows a step.

Newton's method in one variable a row, on the dual of Barthe (1998) that Appendix A works with, takes as many steps of
:math:`O(n^3)`: from 30 to 200 rows it took up to a hundred times as long, with the same result.

Both are generators of :class:`Iterate`; the caller decides when to stop.

**The curvature of f** at images :math:`u_i` is the quartic form

.. math::
    H(S) = \tfrac12 (\Psi S + S \Psi) - k \sum_i c_i \, u_i u_i^\top (u_i^\top S u_i) .

Its diagonal part, acting on diagonal S, and its diagonal entries for the other :math:`S_{ab}` need only the matrix
:math:`K_{ab} = k \sum_i c_i u_{ia}^2 u_{ib}^2`, one pass. This *pinched* Hessian is exact when flipping the sign of a
coordinate of u does not change the distribution, so for independent symmetric coordinates and for elliptical data; it
extends the partial Newton method of [2]_, which keeps the diagonal part alone.

Rows are read block by block, once for each evaluation of f and its gradient.

References
----------
.. [1] D. E. Tyler. A distribution-free M-estimator of multivariate scatter. Annals of Statistics 15 (1987).
.. [2] L. Duembgen, K. Nordhausen, H. Schuhmacher. New algorithms for M-estimation of multivariate scatter and location.
       J. Multivariate Analysis 144 (2016).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from massart.rows import FloatArray, row_blocks

_Model = Callable[[FloatArray], FloatArray]
"""Maps G to S with H(S) = G."""

LONGEST_STEP = 5.0
"""Of a step in log-eigenvalues: a factor exp(5/2) lets a diverging map show itself within a few steps."""


def radial_moments(X: FloatArray, T: FloatArray, weights: FloatArray | None = None) -> tuple[FloatArray, float]:
    """Return Psi and the mean of ``log |T' x|^2`` over the rows of `X`: one pass, ``O(n d k)``.

    Parameters
    ----------
    X : (n, d) array
        Rows, none of which `T` maps to zero.
    T : (d, k) array
    weights : (n,) array, optional
        Row weights; one each by default.
    """
    psi, logs, total = np.zeros((T.shape[1], T.shape[1])), 0.0, 0.0
    for Y, c in _images(X, T, weights):
        squares = np.einsum("ij,ij->i", Y, Y)
        logs += float(np.sum(c * np.log(squares)))
        total += float(c.sum())
        Y *= np.sqrt(c / squares)[:, None]
        psi += Y.T @ Y
    return psi * (T.shape[1] / total), logs / total


def fourth_moments(X: FloatArray, T: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Return :math:`K_{ab} = k \sum_i c_i u_{ia}^2 u_{ib}^2 / \sum_i c_i`, (k, k): one pass."""
    K, total = np.zeros((T.shape[1], T.shape[1])), 0.0
    for Y, c in _images(X, T, weights):
        Y *= Y
        Y *= (np.sqrt(c) / Y.sum(axis=1))[:, None]
        K += Y.T @ Y
        total += float(c.sum())
    return np.asarray(K * (T.shape[1] / total))


def _images(X: FloatArray, T: FloatArray, weights: FloatArray | None) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the images of the rows and their weights, block by block."""
    for block in row_blocks(*X.shape):
        Y = X[block] @ T
        yield Y, np.ones(len(Y)) if weights is None else weights[block]


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
    """

    T: FloatArray
    relative: FloatArray
    eigenvalues: FloatArray
    eigenvectors: FloatArray

    @property
    def residual(self) -> float:
        """1 - lambda_min(Psi), the gamma that is reached (Definition 1.4)."""
        return float(1 - self.eigenvalues[0])

    @property
    def error(self) -> float:
        """The two-sided error, the spectral norm of Psi - I."""
        return float(max(1 - self.eigenvalues[0], self.eigenvalues[-1] - 1))


def fixed_point(X: FloatArray, T0: FloatArray, weights: FloatArray | None = None) -> Iterator[Iterate]:
    """Iterate ``T <- T Psi^(-1/2)`` from `T0`: the spectrum of Psi shrinks towards 1 from both sides."""
    M = np.eye(T0.shape[1])
    while True:
        eigenvalues, eigenvectors = np.linalg.eigh(radial_moments(X, T0 @ M, weights)[0])
        yield Iterate(T0 @ M, M, eigenvalues, eigenvectors)
        M = M @ (eigenvectors / np.sqrt(np.maximum(eigenvalues, np.exp(-LONGEST_STEP)))) @ eigenvectors.T


def geodesic_descent(
    X: FloatArray,
    T0: FloatArray,
    weights: FloatArray | None = None,
    *,
    memory: int = 10,
    model_step: int = 2,
    armijo: float = 1e-4,
    rounding: float = 1e-11,
) -> Iterator[Iterate]:
    """Minimize f by L-BFGS in the moving frame, from `T0`; ends only when rounding stops all progress.

    Parameters
    ----------
    X, T0, weights
        Rows, (n, d); the first map, (d, k); weights of the rows.
    memory : int
        Pairs of the quasi-Newton method (paper mixture 240 x 30: a third more passes with half of them).
    model_step : int
        The step from which the pinched Hessian is the model of the curvature; few steps reach gamma = 1/2 without
        one (benchmarks/bench_isotropy.py, Cauchy rows to 1e-10: a third more passes without it).
    armijo : float
        The part of what the linear model promises that f must fall by.
    rounding : float
        Changes of f below this are noise: there a smaller gradient decides.
    """
    identity = np.eye(T0.shape[1])
    M = identity
    psi, log_norm = radial_moments(X, T0, weights)
    pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=memory)
    model: _Model | None = None
    for step_number in count():
        eigenvalues, eigenvectors = np.linalg.eigh(psi)
        yield Iterate(T0 @ M, M, eigenvalues, eigenvectors)
        gradient = identity - psi
        if step_number == model_step:
            model = _pinched_hessian(X, T0 @ M, psi, weights)
        direction = -_two_loop(gradient, pairs, model)
        slope = float(np.vdot(gradient, direction))
        if not pairs or slope >= 0:
            # Tyler's fixed-point step: a majorize-minimize step of f, so it always descends.
            pairs.clear()
            direction = (eigenvectors * np.log(np.maximum(eigenvalues, np.exp(-LONGEST_STEP)))) @ eigenvectors.T
            slope = float(np.vdot(gradient, direction))

        # Backtrack until f falls by Armijo's rule, or the gradient shrinks where f is noise.
        rates, axes = np.linalg.eigh(direction)
        length = LONGEST_STEP / max(float(np.abs(rates).max()), LONGEST_STEP)
        for _ in range(30):
            trial = M @ ((axes * np.exp(-0.5 * length * rates)) @ axes.T)
            reached, log_reached = radial_moments(X, T0 @ trial, weights)
            rise = len(M) * (log_reached - log_norm) + length * float(rates.sum())
            nearer = np.linalg.norm(reached - identity) < np.linalg.norm(gradient)
            if rise <= armijo * length * slope or (length * abs(slope) < rounding and nearer):
                break
            length *= 0.5
        else:
            return
        step, change = length * direction, psi - reached
        curvature = float(np.vdot(step, change))
        if curvature > 0:
            pairs.append((step, change, curvature))
        M, psi, log_norm = trial, reached, log_reached


def _two_loop(
    gradient: FloatArray, pairs: deque[tuple[FloatArray, FloatArray, float]], model: _Model | None
) -> FloatArray:
    """Apply the L-BFGS inverse Hessian to `gradient` (Nocedal 1980), from `model` or a multiple of the identity."""
    q = gradient.copy()
    coefficients = []
    for step, change, curvature in reversed(pairs):
        coefficient = float(np.vdot(step, q)) / curvature
        q -= coefficient * change
        coefficients.append(coefficient)
    if model is not None:
        q = model(q)
    elif pairs:
        _, change, curvature = pairs[-1]
        q *= curvature / float(np.vdot(change, change))
    for (step, change, curvature), coefficient in zip(pairs, reversed(coefficients), strict=True):
        q += step * (coefficient - float(np.vdot(change, q)) / curvature)
    return np.asarray((q + q.T) / 2)


def _pinched_hessian(
    X: FloatArray, T: FloatArray, psi: FloatArray, weights: FloatArray | None, *, flattest: float = 0.02
) -> _Model:
    """Return the inverse of the pinched Hessian at the map `T`, whose Psi is `psi`: one read of the rows.

    Parameters
    ----------
    X, T, psi, weights
    flattest : float
        Curvatures below this fraction of one are not trusted.
    """
    k = len(psi)
    K = fourth_moments(X, T, weights)
    diagonal = np.diag(psi)
    off_diagonal = np.maximum((diagonal[:, None] + diagonal) / 2 - 2 * K, flattest)
    # H vanishes on the identity, since f does not change with the scale of T; 1/k pins that direction.
    rates, axes = np.linalg.eigh(np.diag(diagonal) - K + 1 / k)
    rates = np.maximum(rates, flattest)

    def solve(G: FloatArray) -> FloatArray:
        S = G / off_diagonal
        np.fill_diagonal(S, axes @ ((axes.T @ np.diag(G)) / rates))
        return S

    return solve
