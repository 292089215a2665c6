r"""Hard thresholding of residuals: TORRENT and AdaCRR.

Both alternate between least squares and leaving out the rows with large residuals,

.. math::
    w_{t+1} = \arg\min_w \sum_{i \in S_t} (y_i - w \cdot x_i)^2,
    \qquad S_t = \{i : |y_i - w_t \cdot x_i| < \tau_t\},

and differ in the threshold. TORRENT (Bhatia, Jain and Kar, NeurIPS 2015; its fully corrective variant) keeps a fixed
share :math:`1 - \beta` of the rows, where :math:`\beta` is at least the share of wrong ones. AdaCRR (Suggala, Bhatia,
Ravikumar and Jain, COLT 2019; its fully corrective variant) chooses :math:`\tau_t` at random among those with few
residuals nearby. The rows that a threshold divides are what ties S to x, and so what biases the fit: they should be few
beside the rows well inside. How near is near shrinks from step to step, with the error of :math:`w_t`.

Both are proven for errors that do not depend on x, AdaCRR for almost any share of them.
"""

from __future__ import annotations

import numpy as np

from massart.rows import BoolArray, FloatArray

TORRENT_BETA = 0.4
"""Share of rows left out where the caller does not know the share of wrong ones."""

MAX_STEPS = 200

ADA_DENSITY = 0.3
"""A threshold of AdaCRR is taken if the rows within one width of it are at most this share of those below it."""

ADA_DECAY = 0.9
"""Factor from the width of one step to that of the next."""

EXACT = 1e-12
"""Largest residual over the median absolute label below which nothing is left to improve."""


def torrent(X: FloatArray, y: FloatArray, rng: np.random.Generator, *, beta: float = TORRENT_BETA) -> FloatArray:
    """TORRENT-FC: least squares on the share 1 - beta of the rows with the smallest residuals, until it repeats.

    Parameters
    ----------
    beta : float
        An upper bound on the share of wrong labels, which the paper takes as known.
    """
    n, d = X.shape
    kept = max(int(np.ceil((1 - beta) * n)), min(d, n))
    w = _least_squares(X, y)
    least = np.inf
    for _ in range(MAX_STEPS):
        sizes = np.abs(y - X @ w)
        rows = np.sort(np.argpartition(sizes, kept - 1)[:kept])
        # Neither half of a step can raise the sum of the kept squares; where it stays, the rows repeat or tie.
        total = float(np.square(sizes[rows]).sum())
        if total >= least:
            break
        least = total
        w = _least_squares(X[rows], y[rows])
    return w


def torrent_at_rate(X: FloatArray, y: FloatArray, rng: np.random.Generator, *, eta: float) -> FloatArray:
    """TORRENT where every label is wrong with probability `eta`: beta bounds the share in 98 of 100 tables."""
    return torrent(X, y, rng, beta=min(eta + 2 * float(np.sqrt(eta * (1 - eta) / len(X))), 1.0))


def ada_crr(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """AdaCRR-FC: least squares on the rows below a random threshold that few residuals are near.

    The paper draws fresh rows for every step, which its proof needs and small tables do not have: all rows serve every
    step here. Its constants are for the proof as well; those above are ours. The first
    width is the median absolute label: that of the residuals at w = 0, where the iteration starts.
    """
    w = start = np.zeros(X.shape[1])
    width = unit = float(np.median(np.abs(y[y != 0]))) if y.any() else 1.0
    for _ in range(MAX_STEPS):
        rows = _adaptive_rows(np.abs(y - X @ w), width, X.shape[1], rng)
        if rows is None:  # the width has become less than the error of w, which is as good as it gets
            break
        w = _least_squares(X[rows], y[rows])
        width *= ADA_DECAY
        if np.abs(y[rows] - X[rows] @ w).max() <= EXACT * unit:
            break
    return _least_squares(X, y) if w is start else w


def _adaptive_rows(sizes: FloatArray, width: float, least: int, rng: np.random.Generator) -> BoolArray | None:
    """Return the rows below the first of the thresholds u, u + 1, ... widths, u random, with few rows around it."""
    ordered = np.sort(sizes)
    # As many thresholds as rows: gross errors, or a small width, would make the list long.
    last = min(int(ordered[-1] / width) + 2, len(sizes))
    thresholds = (1.0 + rng.random() + np.arange(last)) * width
    below = np.searchsorted(ordered, thresholds)
    near = np.searchsorted(ordered, thresholds + width) - np.searchsorted(ordered, thresholds - width)
    allowed = (near <= ADA_DENSITY * below) & (below >= min(2 * least, len(sizes)))
    return np.asarray(sizes < thresholds[np.argmax(allowed)]) if allowed.any() else None


def _least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(X, y, rcond=None)[0])
