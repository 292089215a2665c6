r"""Huber's loss with a threshold at the size of the inliers' noise, for oblivious errors.

d'Orsi, Novikov and Steurer (ICML 2021, arXiv:2009.14774) minimise

.. math:: \sum_i \Phi(y_i - w \cdot x_i), \qquad \Phi(r) = \min(r^2 / 2, \; \delta |r| - \delta^2 / 2),

in units in which right labels are off by at most 1, with :math:`\delta = 2`. Nothing estimates a scale, unlike in the
Huber regression of libraries. Where right labels are exact the unit is free: the smaller it is, the closer the answer
is to that of L1 regression, and it is off by the order of :math:`\delta` where wrong labels pull.
"""

from __future__ import annotations

import numpy as np

from massart.l1 import l1_regression
from massart.rows import FloatArray

INLIER_NOISE = 1e-3
"""Size of the errors of right labels, over the median absolute label."""

DELTA = 2.0
"""The threshold in units of those errors."""

MAX_STEPS = 100


def oblivious_huber(
    X: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    *,
    inlier_noise: float = INLIER_NOISE,
    delta: float = DELTA,
    max_steps: int = MAX_STEPS,
) -> FloatArray:
    """Minimise Huber's loss by Newton steps of exact length, from the L1 answer.

    The problem is convex, so where the steps start does not change the answer; d rows of the L1 answer have no
    residual, and keep the Hessian regular. NaN where the steps do not converge.
    """
    unit = float(np.median(np.abs(y[y != 0]))) if y.any() else 1.0
    bound = delta * inlier_noise * unit
    w = l1_regression(X, y).coef
    for _ in range(max_steps):
        r = y - X @ w
        gradient = -X.T @ np.clip(r, -bound, bound)
        if np.abs(gradient).max() <= 1e-9 * bound * np.abs(X).sum(axis=0).max():
            return w
        quadratic = X[np.abs(r) <= bound]
        hessian = quadratic.T @ quadratic
        ridge = 1e-12 * np.square(X).sum() / X.shape[1]
        step = np.linalg.solve(hessian + ridge * np.eye(len(w)), -gradient)
        w = w + _exact_length(r, X @ step, bound) * step
    return np.full(len(w), np.nan)


def _exact_length(r: FloatArray, change: FloatArray, bound: float) -> float:
    """Return the t > 0 that minimises the loss of ``r - t change``: its derivative is monotone and piecewise linear."""
    moving = change != 0
    r, change = r[moving], change[moving]

    def derivative(t: float) -> float:
        return -float(change @ np.clip(r - t * change, -bound, bound))

    kinks = np.concatenate([(r - bound) / change, (r + bound) / change])
    kinks = np.sort(kinks[kinks > 0])
    # The first kink with a derivative that is not negative, by bisection; the minimum lies in the piece before it.
    low, high = 0, len(kinks)
    while low < high:
        middle = (low + high) // 2
        if derivative(kinks[middle]) < 0:
            low = middle + 1
        else:
            high = middle
    left = float(kinks[low - 1]) if low > 0 else 0.0
    right = float(kinks[low]) if low < len(kinks) else left + 1.0
    at_left, at_right = derivative(left), derivative(right)
    return left if at_right <= at_left else left - at_left * (right - left) / (at_right - at_left)
