"""The methods of this package and of the paper's own figures, as baselines."""

from __future__ import annotations

import numpy as np

from massart.cutting_plane import analytic_center
from massart.l1 import l1_regression
from massart.linear import recover_linear
from massart.relu import recover_relu
from massart.rows import FloatArray

ALGORITHM_GAMMA = 1e-3
"""How closely Algorithm 1 is put in radial-isotropic position; the paper leaves it open."""


def naive_l1(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Minimise the absolute residuals of the rows as they are."""
    return l1_regression(X, y).coef


def normalized_l1(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Minimise the absolute residuals of (x, y)/|x|; a row that is zero says nothing."""
    lengths = np.linalg.norm(X, axis=1)
    rows = lengths > 0
    return l1_regression(X[rows] / lengths[rows, None], y[rows] / lengths[rows]).coef


def algorithm_1(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """L1 regression in radial-isotropic position (Algorithm 1; Algorithm 2 where a subspace is heavy), no search."""
    return recover_linear(X, y, search=False, gamma=ALGORITHM_GAMMA, rng=rng).coef


def massart(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Recover as users of this package do."""
    return recover_linear(X, y, rng=rng).coef


def massart_relu(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Recover a ReLU as users of this package do."""
    return recover_relu(X, y, rng=rng).coef


def published_relu(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Recover by the separation oracle of Section 3 and analytic-centre cuts, with no search."""
    return recover_relu(X, y, cuts=analytic_center, rng=rng).coef
