"""The methods of this package and of the paper's own figures, as baselines."""

from __future__ import annotations

import numpy as np

from massart.cutting_plane import analytic_center
from massart.l1 import l1_regression
from massart.paper import algorithm_2, recover_relu
from massart.recover import recover
from massart.rows import RELU, ArrayRows, FloatArray

TIGHT_GAMMA = 1e-3
"""Of the second curve of Algorithm 1, whose line 2 says 1/2."""


def naive_l1(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Minimise the absolute residuals of the rows as they are."""
    return l1_regression(X, y).coef


def normalized_l1(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Minimise the absolute residuals of (x, y)/|x|; a row that is zero says nothing."""
    lengths = np.linalg.norm(X, axis=1)
    rows = lengths > 0
    return l1_regression(X[rows] / lengths[rows, None], y[rows] / lengths[rows]).coef


def algorithm_1(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """L1 regression in 1/2-approximate radial-isotropic position (Algorithm 1; 2 where a subspace is heavy)."""
    return algorithm_2(X, y).w


def algorithm_1_tight(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Do the same in a position that is nearly exact."""
    return algorithm_2(X, y, TIGHT_GAMMA).w


def algorithm_1_effective(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Do the same in the position with the most effective rows, which is ours."""
    return algorithm_2(X, y, position="most_effective").w


def massart(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Recover as users of this package do."""
    return recover(ArrayRows(X, y), rng=rng, inliers="exact").coef[:, 0]


def massart_relu(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Recover a ReLU as users of this package do."""
    return recover(ArrayRows(X, y), rng=rng, link=RELU, inliers="exact").coef[:, 0]


def published_relu(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Recover by the separation oracle of Section 3 and analytic-centre cuts: Theorem 1.3, and nothing else."""
    return recover_relu(X, y, method=analytic_center).w
