"""The paper's rows and its parameter: ``sampler(n, d, rng)`` returns an (n, d) float64 array."""

from __future__ import annotations

import numpy as np

from massart.noise.arguments import check_count, check_generator
from massart.rows import FloatArray


def paper_mixture(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    r"""Return rows of Section 4's mixture of Gaussians, where the paper takes d = 30.

    .. math::

        \mathcal D_x = \tfrac12\, N\!\left(e_1, \tfrac{1}{d^2} I_d\right)
                     + \tfrac{1}{2d} \sum_{i=1}^d N\!\left(d\, e_i, \tfrac{1}{d^2} I_d\right).
    """
    _check_table(n, d, rng)
    X = rng.standard_normal((n, d)) / d
    near = rng.random(n) < 0.5
    axis = np.where(near, 0, rng.integers(0, d, n))
    X[np.arange(n), axis] += np.where(near, 1.0, float(d))
    return X


def gaussian(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return rows of independent standard Gaussian coordinates."""
    _check_table(n, d, rng)
    return rng.standard_normal((n, d))


def paper_weights(d: int) -> FloatArray:
    r"""Return the parameter of Section 4, :math:`w^* = 9 e_2 + \sum_{i=1}^d e_i`; `d` is at least 2."""
    w = np.ones(check_count(d, "d", 2))
    w[1] += 9.0
    return w


def _check_table(n: int, d: int, rng: np.random.Generator) -> None:
    check_count(n, "n", 1)
    check_count(d, "d", 1)
    check_generator(rng)
