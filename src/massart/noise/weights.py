"""Parameters: the truths of the paper and of the measured families, and the decoys that adversaries answer with."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from massart.noise.arguments import check_count, check_generator, check_number, check_vector
from massart.rows import FloatArray


def paper_weights(d: int) -> FloatArray:
    r"""Return the parameter of Section 4, :math:`w^* = 9 e_2 + \sum_{i=1}^d e_i`; `d` is at least 2."""
    w = np.ones(check_count(d, "d", 2))
    w[1] += 9.0
    return w


def intercept_weights(d: int, rng: np.random.Generator, intercept: float = -0.84) -> FloatArray:
    r"""Return a random unit direction in the first ``d - 1`` coordinates, followed by `intercept`.

    With rows from `gaussian_with_intercept`, :math:`w \cdot x` is :math:`N(c, 1)` for the intercept c, so a ReLU is
    active on a share :math:`\Phi(c)` of the rows: one fifth at the default.
    """
    direction = check_generator(rng).standard_normal(check_count(d, "d", 2) - 1)
    return np.append(direction / np.linalg.norm(direction), check_number(intercept, "intercept"))


def integer_weights(d: int, rng: np.random.Generator, largest: int = 5) -> FloatArray:
    """Return `d` independent uniform integers from ``-largest`` to ``largest``, not all zero."""
    check_count(d, "d", 1)
    check_count(largest, "largest", 1)
    check_generator(rng)
    while True:
        w = rng.integers(-largest, largest, d, endpoint=True)
        if w.any():
            return w.astype(np.float64)


def displaced_weights(w: ArrayLike, distance: float, rng: np.random.Generator) -> FloatArray:
    r"""Return :math:`w + \rho |w| u` for a uniform random unit vector u and the relative `distance` :math:`\rho`.

    0.05 makes the decoy that is hardest to tell from the truth; 3 makes the one of `oppose`.
    """
    truth, rho = check_vector(w, "w"), check_number(distance, "distance")
    if rho < 0.0:
        raise ValueError(f"distance must not be negative, got {rho:g}")
    direction = check_generator(rng).standard_normal(truth.shape[0])
    return truth + (rho * np.linalg.norm(truth) / np.linalg.norm(direction)) * direction


def permuted_weights(w: ArrayLike, rng: np.random.Generator) -> FloatArray:
    r"""Return :math:`(|w_{\pi(1)}|, \dots, |w_{\pi(d)}|)` for a uniform random permutation :math:`\pi`.

    The decoy of the paper's mixture: non-negative, so a ReLU with it is active on the rows around :math:`d e_i`.
    """
    return check_generator(rng).permutation(np.abs(check_vector(w, "w")))


def rescaled_weights(w: ArrayLike, rng: np.random.Generator) -> FloatArray:
    r"""Return :math:`(g_1 |w_1|, \dots, g_d |w_d|)` for independent standard Gaussian :math:`g_j`.

    The decoy where columns have scales of their own: every entry keeps the order of magnitude of the true one.
    """
    truth = np.abs(check_vector(w, "w"))
    return truth * check_generator(rng).standard_normal(truth.shape[0])
