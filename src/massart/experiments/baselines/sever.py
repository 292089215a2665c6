r"""Sever with least squares as its base learner.

Diakonikolas, Kamath, Kane, Li, Steinhardt and Stewart (ICML 2019, arXiv:1803.02815): fit; take the gradients of the
rows' losses at the fit, :math:`g_i = (w \cdot x_i - y_i) x_i`, less their mean; score each row by its square along the
top right singular vector,

.. math:: \tau_i = ((g_i - \bar g) \cdot v)^2 ;

leave out rows of large score; repeat. The theorem's filter draws the cut at random and stops when the mean score is
small beside a known variance bound. The experiments of that paper, which this module follows, run a fixed number of
rounds (4) and leave out a share epsilon/2 of the rows in each, where epsilon is the share of outliers, known.
"""

from __future__ import annotations

import numpy as np

from massart.rows import FloatArray

EPSILON = 0.2
"""Share of outliers where the caller does not know it: 4 rounds leave out 40 % of the rows."""

ROUNDS = 4


def sever(X: FloatArray, y: FloatArray, rng: np.random.Generator, *, epsilon: float = EPSILON) -> FloatArray:
    """Least squares after four times leaving out the share epsilon/2 of the rows with the largest scores."""
    n, d = X.shape
    removed = int(np.ceil(epsilon / 2 * n)) if epsilon > 0 else 0
    rows = np.arange(n)
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    for _ in range(ROUNDS):
        if len(rows) - removed < d:
            break
        gradients = (X[rows] @ w - y[rows])[:, None] * X[rows]
        gradients -= gradients.mean(axis=0)
        direction = np.linalg.svd(gradients, full_matrices=False)[2][0]
        scores = np.square(gradients @ direction)
        rows = rows[np.sort(np.argsort(scores, kind="stable")[: len(rows) - removed])]
        w = np.linalg.lstsq(X[rows], y[rows], rcond=None)[0]
    return np.asarray(w)
