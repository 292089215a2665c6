r"""Alternating minimisation under a spectral constraint: the estimator of Chen, Koehler, Moitra and Yau.

"Online and distribution-free robustness" (FOCS 2021, arXiv:2010.04157; Appendix D of our paper compares). An adversary
who may change each label with probability :math:`\eta` cannot choose which, so the rows left alone keep the share
:math:`1 - \eta` of the second moment in every direction, up to sampling. The method looks for weights with that
property under which least squares fits best, by turns:

.. math::
    a \leftarrow \arg\min_{0 \le a \le 1} \sum_i a_i (y_i - w \cdot x_i)^2
    \quad \text{subject to} \quad \sum_i a_i x_i x_i^\top \succeq \varphi \sum_i x_i x_i^\top ,
    \qquad
    w \leftarrow \arg\min_w \sum_i a_i (y_i - w \cdot x_i)^2 .

The first problem is a semidefinite program, solved here to a duality gap by a barrier method:

.. math:: \min_a t \sum_i c_i a_i - \log\det\Big(\sum_i a_i q_i q_i^\top - \varphi I\Big) - \sum_i \log(a_i (1 - a_i)),

with whitened rows q and :math:`t \to \infty`. Its Hessian is :math:`(q_i^\top S^{-1} q_j)^2` plus a diagonal.

The paper's slack in the constraint has unspecified constants, which make :math:`\varphi` zero at the sizes of our
figures. We take the lower edge of the spectrum that right rows have where the rows are Gaussian,
:math:`\varphi = (\sqrt{(1-\eta)(1-d/n)} - \sqrt{\eta d/n})^2` at a rate two standard deviations above :math:`\eta`. It
tends to :math:`1 - \eta`. It matters: at n = 4d, half or one and a half times this value gives wrong answers.
The sum-of-squares program for :math:`\eta` up to 1/2 is beyond any solver at these sizes, and not here.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from massart.rows import FloatArray

ETA = 0.3
"""Noise rate where the caller does not know it: below 1/3, as the method wants."""

ROUNDS = 25

CONVERGED = 1e-7
"""Relative change of w at which it has converged: what weights of outliers that are not quite zero do to it."""

GAP = 1e-9
"""Duality gap of the last semidefinite programs, over the mean squared residual; outliers keep weights of this size.

In float64 the Hessian may be singular some digits before: the answer is then the last that was not."""

BARRIER_GROWTH = 30.0
NEWTON_STEPS = 40


def chen_sdp(
    X: FloatArray, y: FloatArray, rng: np.random.Generator, *, eta: float = ETA, rounds: int = ROUNDS
) -> FloatArray:
    """Alternate between the weights of the semidefinite program and weighted least squares, from least squares.

    Parameters
    ----------
    eta : float
        The noise rate, which the paper takes as known.
    rounds : int
        At most so many semidefinite programs.
    """
    Q, singular, _ = np.linalg.svd(X, full_matrices=False)
    Q = Q[:, singular > 1e-12 * singular[0]]
    floor = spectral_floor(min(eta + 2 * np.sqrt(eta * (1 - eta) / len(X)), 1.0), Q.shape[1] / len(X))
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    for round_ in range(rounds):
        costs = np.square(y - X @ w)
        if costs.max() <= 1e-28 * np.square(y).max():
            break
        # Early weights are for a w that is about to change.
        a = spectral_weights(Q, costs, floor, gap=max(GAP, 10.0 ** -(2 + round_)))
        roots = np.sqrt(a)
        previous, w = w, np.linalg.lstsq(roots[:, None] * X, roots * y, rcond=None)[0]
        if np.linalg.norm(w - previous) <= CONVERGED * np.linalg.norm(w):
            break
    return np.asarray(w)


def spectral_floor(eta: float, ratio: float) -> float:
    """Return phi for the noise rate and the number of columns over that of rows; 0 where the constraint says nothing.

    The least eigenvalue of a random share 1 - eta of Gaussian rows, whitened by all of them, in the limit (Wachter).
    """
    kept = (1 - eta) * (1 - ratio)
    lost = eta * ratio
    return max(float(np.sqrt(kept) - np.sqrt(lost)), 0.0) ** 2 if ratio < 1 - eta else 0.0


def spectral_weights(Q: FloatArray, costs: FloatArray, floor: float, *, gap: float = GAP) -> FloatArray:
    """Return the weights 0 <= a <= 1 of least total cost with sum a q q' >= floor I, for rows with sum q q' = I.

    Parameters
    ----------
    Q : (n, d) array
    costs : (n,) array
    floor : float
        In [0, 1).
    gap : float
        What the answer may cost above the least, over the mean cost.
    """
    n, d = Q.shape
    costs = costs / costs.mean()
    # The weights and what they lack to 1, apart: either may be far below the rounding errors of the other.
    box = np.array([np.full(n, (1 + floor) / 2), np.full(n, (1 - floor) / 2)])
    t = 1.0
    while True:
        box = _centre(Q, t * costs, floor, box)
        if (d + 2 * n) / t <= gap:
            return np.asarray(box[0])
        t *= BARRIER_GROWTH


def _centre(Q: FloatArray, costs: FloatArray, floor: float, box: FloatArray) -> FloatArray:
    """Return the minimum of the barrier function, by Newton steps from the weights (and 1 minus weights) in `box`."""
    signs = np.array([[1.0], [-1.0]])
    value, L = _barrier(Q, costs, floor, box)
    for _ in range(NEWTON_STEPS):
        assert L is not None  # every iterate is strictly feasible
        G = solve_triangular(L, Q.T, lower=True).T  # q' S^-1 q = |G|^2
        gradient = costs - np.square(G).sum(axis=1) - (signs / box).sum(axis=0)
        try:
            step = -_solve(G, np.square(1 / box).sum(axis=0), gradient)
        except LinAlgError:
            break  # so close to the boundary that the Hessian is singular in these digits
        decrease = -float(gradient @ step)
        if decrease <= 1e-3:
            break
        # The longest step inside the box, shortened until the function falls.
        shrinking = -signs * step / box
        length = min(1.0, 0.99 / max(float(shrinking.max()), 1e-300))
        while length > 1e-12:
            candidate = box + length * signs * step
            new_value, new_L = _barrier(Q, costs, floor, candidate)
            if new_value <= value - 0.1 * length * decrease:
                break
            length /= 2
        else:
            break  # rounding is all that is left
        box, value, L = candidate, new_value, new_L
    return box


def _barrier(Q: FloatArray, costs: FloatArray, floor: float, box: FloatArray) -> tuple[float, FloatArray | None]:
    """Return the barrier function and the Cholesky factor of the slack matrix; infinity and None outside."""
    try:
        L = cholesky((Q.T * box[0]) @ Q - floor * np.eye(Q.shape[1]), lower=True)
    except LinAlgError:
        return np.inf, None
    return float(costs @ box[0] - 2 * np.log(np.diag(L)).sum() - np.log(box).sum()), L


def _solve(G: FloatArray, diagonal: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with the Hessian, ``(G G')**2 + diag``: n equations, or one for each pair of columns if those are fewer."""
    n, d = G.shape
    # Scaled to have ones on the diagonal, whose own entries range over twenty orders of magnitude.
    roots = np.sqrt(diagonal)
    right = right / roots
    if n <= d * (d + 1) // 2:
        hessian = np.square(G @ G.T) / np.outer(roots, roots)
        hessian[np.diag_indices(n)] += 1
        return np.asarray(cho_solve(cho_factor(hessian, lower=True), right) / roots)
    i, j = np.triu_indices(d)
    F = G[:, i] * G[:, j] * np.where(i == j, 1.0, np.sqrt(2.0)) / roots[:, None]
    inner = F.T @ F
    inner[np.diag_indices(len(i))] += 1
    return np.asarray((right - F @ cho_solve(cho_factor(inner, lower=True), F.T @ right)) / roots)
