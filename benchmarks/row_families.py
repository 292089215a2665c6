r"""Rows and parameters of the measured cases: tables that break naive methods, and the truths and decoys for them.

Samplers are ``sampler(n, d, rng)`` and return an (n, d) float64 array; only the tables of categories, `one_hot` and
`dummy_table`, take numbers of levels where the others take `d`. They serve benchmarks and tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from massart.paper import Adversary, Concept, decoy
from massart.rows import BoolArray, FloatArray

_OFF_SUBSPACE = 1e-6
"""Distance from which small integer rows count as outside an integer subspace; true distances are far above it."""

_MOST_SPREAD = 3
"""Integer rows have entries, and rows on an integer subspace coefficients, from -3 to 3."""


def gaussian_with_intercept(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return ``d - 1`` standard Gaussian columns and a last column of ones; `intercept_weights` goes with it."""
    X = rng.standard_normal((n, d))
    X[:, -1] = 1.0
    return X


def cauchy(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return rows of independent standard Cauchy coordinates: no mean, and single entries that dwarf the rest."""
    return rng.standard_cauchy((n, d))


def elliptical_cauchy(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    r"""Return rows :math:`x = S z / |g|` with z and g standard Gaussian and one Gaussian (d, d) matrix S for all rows.

    Every projection :math:`v \cdot x` is Cauchy with scale :math:`|S^\top v|`, and whole rows are large, not entries.
    """
    S = rng.standard_normal((d, d))
    return np.asarray(rng.standard_normal((n, d)) @ S.T / np.abs(rng.standard_normal((n, 1))))


def column_scales(d: int, largest: float = 1e8) -> FloatArray:
    """Return `d` scales in geometric progression from 1 to `largest`; parameters are divided by them."""
    return np.asarray(np.geomspace(1.0, largest, d))


def scaled_columns(n: int, d: int, rng: np.random.Generator, largest: float = 1e8) -> FloatArray:
    """Return independent Gaussian columns with standard deviations ``column_scales(d, largest)``."""
    return rng.standard_normal((n, d)) * column_scales(d, largest)


def ill_conditioned(n: int, d: int, rng: np.random.Generator, condition: float = 1e8) -> FloatArray:
    r"""Return a matrix whose 2-norm condition number is `condition`, in no special basis.

    .. math::

        X = \sqrt n \, Q \, \mathrm{diag}(\kappa^{0}, \dots, \kappa^{-1}) \, R^\top ,

    with random orthonormal Q (n, d) and R (d, d), and singular values in geometric progression. Needs ``n >= d >= 2``.
    """
    Q = np.linalg.qr(rng.standard_normal((n, d)))[0]
    R = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray(np.sqrt(n) * (Q * np.geomspace(1.0, 1.0 / condition, d)) @ R.T)


def integers(n: int, d: int, rng: np.random.Generator, largest: int = 3) -> FloatArray:
    """Return independent uniform integers from ``-largest`` to ``largest``: duplicates, zeros and flats abound."""
    return rng.integers(-largest, largest, (n, d), endpoint=True).astype(np.float64)


def one_hot(n: int, levels: Sequence[int], rng: np.random.Generator) -> FloatArray:
    r"""Return a table of categorical columns, one indicator for each level.

    Column group j has ``levels[j]`` columns :math:`L_j`, of which every row has exactly one equal to 1, uniformly. The
    groups share their row sum, so the rank is at most :math:`\sum_j L_j - (\text{groups} - 1)`.
    """
    return np.hstack([np.eye(count)[rng.integers(0, count, n)] for count in levels])


def dummy_table(n: int, levels: Sequence[int], rng: np.random.Generator) -> FloatArray:
    r"""Return a column of ones and the indicators of `one_hot` without each group's first level.

    The usual coding of categories: :math:`1 + \sum_j (L_j - 1)` columns, of full rank once all levels appear together
    often enough, and most rows in few coordinate subspaces.
    """
    table = one_hot(n, levels, rng)
    first = np.cumsum([0, *levels[:-1]])
    return np.hstack([np.ones((n, 1)), np.delete(table, first, axis=1)])


@dataclass(frozen=True, slots=True, eq=False)
class PlantedSubspace:
    """Rows in random order, of which a known number lies in the span V of the columns of `basis`, (d, k).

    V is *heavy*, so that the rows have no radial-isotropic transform, when more than a share k/d lie in it (Lemma 2.5).
    """

    X: FloatArray
    basis: FloatArray
    inside: BoolArray  # (n,), up to rounding


def planted_subspace(n: int, d: int, k: int, n_inside: int, rng: np.random.Generator) -> PlantedSubspace:
    """Return Gaussian rows of which exactly `n_inside` lie in a random subspace of dimension `k`."""
    V = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :k]
    X = rng.standard_normal((n, d))
    X[:n_inside] = rng.standard_normal((n_inside, k)) @ V.T
    return _shuffled(X, V, n_inside, rng)


def integers_on_subspace(n: int, d: int, k: int, n_inside: int, rng: np.random.Generator) -> PlantedSubspace:
    """Return integer rows of which exactly `n_inside` lie in an integer subspace of dimension `k`, none of them zero.

    Rows inside are combinations, with coefficients from -3 to 3, of k random integer vectors with entries from -2 to 2;
    rows outside have entries from -3 to 3. The measured cases are d = 9, k = 3 with 70 % and 90 % of the rows inside:
    a wrong parameter that is right on the subspace can then fit more than half of all rows.
    """
    while True:
        basis = rng.integers(-2, 2, (d, k), endpoint=True).astype(np.float64)
        if np.linalg.matrix_rank(basis) == k:
            break
    V = np.linalg.qr(basis)[0]
    X = np.empty((n, d))
    # Integers fall on any subspace by chance: redraw the rows that would spoil the counts.
    todo = np.arange(n)
    while todo.size:
        on = todo < n_inside
        coefficients = rng.integers(-_MOST_SPREAD, _MOST_SPREAD, (todo.size, k), endpoint=True)
        free = rng.integers(-_MOST_SPREAD, _MOST_SPREAD, (todo.size, d), endpoint=True)
        X[todo] = np.where(on[:, None], coefficients @ basis.T, free)
        distance = np.linalg.norm(X[todo] - X[todo] @ V @ V.T, axis=1)
        spoilt = np.where(on, ~X[todo].any(axis=1), distance < _OFF_SUBSPACE)
        todo = todo[spoilt]
    return _shuffled(X, basis, n_inside, rng)


def intercept_weights(d: int, rng: np.random.Generator, intercept: float = -0.84) -> FloatArray:
    r"""Return a random unit direction in the first ``d - 1`` coordinates, followed by `intercept`.

    With rows from `gaussian_with_intercept`, :math:`w \cdot x` is :math:`N(c, 1)` for the intercept c, so a ReLU is
    active on a share :math:`\Phi(c)` of the rows: one fifth at the default.
    """
    direction = rng.standard_normal(d - 1)
    return np.append(direction / np.linalg.norm(direction), intercept)


def integer_weights(d: int, rng: np.random.Generator, largest: int = 5) -> FloatArray:
    """Return `d` independent uniform integers from ``-largest`` to ``largest``, not all zero."""
    while True:
        w = rng.integers(-largest, largest, d, endpoint=True)
        if w.any():
            return w.astype(np.float64)


def displaced_weights(w: FloatArray, distance: float, rng: np.random.Generator) -> FloatArray:
    r"""Return :math:`w + \rho |w| u` for a uniform random unit vector u and the relative `distance` :math:`\rho`.

    0.05 makes the decoy that is hardest to tell from the truth; 3 makes the one of `oppose`.
    """
    direction = rng.standard_normal(len(w))
    return w + (distance * np.linalg.norm(w) / np.linalg.norm(direction)) * direction


def permuted_weights(w: FloatArray, rng: np.random.Generator) -> FloatArray:
    r"""Return :math:`(|w_{\pi(1)}|, \dots, |w_{\pi(d)}|)` for a uniform random permutation :math:`\pi`.

    The decoy of the paper's mixture: non-negative, so a ReLU with it is active on the rows around :math:`d e_i`.
    """
    return rng.permutation(np.abs(w))


def rescaled_weights(w: FloatArray, rng: np.random.Generator) -> FloatArray:
    r"""Return :math:`(g_1 |w_1|, \dots, g_d |w_d|)` for independent standard Gaussian :math:`g_j`.

    The decoy where columns have scales of their own: every entry keeps the order of magnitude of the true one.
    """
    return np.abs(w) * rng.standard_normal(len(w))


def oppose(w: FloatArray, concept: Concept) -> Adversary:
    r"""Answer :math:`f_{w + 3v}(x)` for one v of random direction with :math:`|v| = |w|`, drawn at each corruption.

    At rates near 0.45 and few rows this decoy sometimes fits more rows than the truth: the trap for a verdict.
    """

    def adversary(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
        return decoy(displaced_weights(w, 3.0, rng), concept)(X, clean, allowed, rng)

    return adversary


def _shuffled(X: FloatArray, basis: FloatArray, n_inside: int, rng: np.random.Generator) -> PlantedSubspace:
    """Shuffle rows of which those inside came first."""
    order = rng.permutation(X.shape[0])
    return PlantedSubspace(X=X[order], basis=basis, inside=order < n_inside)
