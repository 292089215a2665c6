r"""ReLU regression: by the paper, by this package, by stochastic steps, and by censored least absolute deviations.

Karmakar, Mukherjee and Muthukumar (2020) and, for one ReLU, Mukherjee and co-authors ("Provable training of a ReLU gate
with an iterative non-gradient algorithm", arXiv:2005.04211) train on labels :math:`\max(0, w^* \cdot x) + \xi`, where
:math:`\xi \neq 0` with a bounded probability and :math:`|\xi| \le \theta`, by

.. math:: w \leftarrow w + \frac{\rho}{b} \sum_{i \in \text{batch}} 1[y_i > \theta] \, (y_i - w \cdot x_i) \, x_i .

A label above :math:`\theta` proves :math:`w^* \cdot x > 0`, so the rows that count are linear ones. The preconditioner
M in the version of that method for convolutional networks is the identity for one ReLU.

Powell's (1984) censored least absolute deviations minimises :math:`\sum_i |y_i - \max(0, w \cdot x_i)|`; Buchinsky's
(1994) iterated linear programs do L1 regression on the rows with :math:`w \cdot x > 0` until these repeat.
"""

from __future__ import annotations

import numpy as np

from massart.cutting_plane import analytic_center
from massart.experiments.baselines.baseline import Baseline
from massart.l1 import l1_regression
from massart.paper import recover_relu
from massart.recover import recover
from massart.rows import ArrayRows, FloatArray, Link

SGD_STEPS = 20_000
SGD_BATCH = 16
CLAD_ROUNDS = 50


def karmakar_sgd(X: FloatArray, y: FloatArray, rng: np.random.Generator, *, theta: float = 0.0) -> FloatArray:
    """Mini-batch steps on the rows with y > theta, drawn with replacement, from w = 0.

    Parameters
    ----------
    theta : float
        The bound on the additive noise, which the paper takes as known. Here 0: no bound is known for Massart noise.
    """
    w = np.zeros(X.shape[1])
    active = y > theta
    if not active.any():
        return w
    longest = float(np.square(X[active]).sum(axis=1).max())
    if longest == 0:
        return w
    # The paper's step length depends on moments of the rows; this one is the longest at which no row overshoots.
    rate = 1.0 / (longest * SGD_BATCH)
    # The indicator as a factor: rows that do not count still fill the batch, as in the paper.
    counted = np.where(active[:, None], X, 0.0)
    labels = np.where(active, y, 0.0)
    for _ in range(SGD_STEPS):
        drawn = rng.integers(len(X), size=SGD_BATCH)
        rows = counted[drawn]
        w = w + rate * ((labels[drawn] - rows @ w) @ rows)
    return w


def clad(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Repeat L1 regression on the rows with w.x > 0, starting from those of a positive label.

    From all rows, half of whose labels are zero, the first fit is often w = 0, and that would be the end.
    """
    w = np.zeros(X.shape[1])
    rows = y > 0
    seen: set[bytes] = set()
    while rows.sum() >= X.shape[1] and rows.tobytes() not in seen and len(seen) < CLAD_ROUNDS:
        seen.add(rows.tobytes())
        w = l1_regression(X[rows], y[rows]).coef
        rows = X @ w > 0
    return w


def massart_relu(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Recover a ReLU as users of this package do."""
    return recover(ArrayRows(X, y), rng=rng, link=Link(), inliers="exact").coef[:, 0]


def published_relu(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Recover by the separation oracle of Section 3 and analytic-centre cuts: Theorem 1.3, and nothing else."""
    return recover_relu(X, y, method=analytic_center).w


RELU: dict[str, Baseline] = {
    "massart_relu": Baseline(massart_relu),
    "published_relu": Baseline(published_relu),
    "karmakar_sgd": Baseline(karmakar_sgd),
    "clad": Baseline(clad),
}
"""ReLU regression: key to method."""
