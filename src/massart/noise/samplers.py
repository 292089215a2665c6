r"""Samplers: distributions of rows, from the paper's mixture to tables that break naive methods.

Each is ``sampler(n, d, rng)`` with defaults for whatever else defines it, and returns an (n, d) float64 array. Only the
tables of categories, `one_hot` and `dummy_table`, take numbers of levels where the others take `d`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from massart.noise.arguments import check_count, check_generator, check_number
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


def gaussian_with_intercept(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return ``d - 1`` standard Gaussian columns and a last column of ones; `intercept_weights` goes with it."""
    _check_table(n, d, rng)
    X = rng.standard_normal((n, d))
    X[:, -1] = 1.0
    return X


def student_t(n: int, d: int, rng: np.random.Generator, df: float = 2.0) -> FloatArray:
    """Return rows of independent Student-t coordinates with `df` degrees of freedom; the variance is infinite to 2."""
    _check_table(n, d, rng)
    freedom = check_number(df, "df")
    if freedom <= 0.0:
        raise ValueError(f"df must be positive, got {freedom:g}")
    return rng.standard_t(freedom, (n, d))


def cauchy(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return rows of independent standard Cauchy coordinates: no mean, and single entries that dwarf the rest."""
    _check_table(n, d, rng)
    return rng.standard_cauchy((n, d))


def elliptical_cauchy(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    r"""Return rows :math:`x = S z / |g|` with z and g standard Gaussian and one Gaussian (d, d) matrix S for all rows.

    Every projection :math:`v \cdot x` is Cauchy with scale :math:`|S^\top v|`, and whole rows are large, not entries.
    """
    _check_table(n, d, rng)
    S = rng.standard_normal((d, d))
    return np.asarray(rng.standard_normal((n, d)) @ S.T / np.abs(rng.standard_normal((n, 1))))


def column_scales(d: int, largest: float = 1e8) -> FloatArray:
    """Return `d` scales in geometric progression from 1 to `largest`; parameters are divided by them."""
    check_count(d, "d", 2)
    top = check_number(largest, "largest")
    if top < 1.0:
        raise ValueError(f"largest must be at least 1, got {top:g}")
    return np.asarray(np.geomspace(1.0, top, d))


def scaled_columns(n: int, d: int, rng: np.random.Generator, largest: float = 1e8) -> FloatArray:
    """Return independent Gaussian columns with standard deviations ``column_scales(d, largest)``."""
    _check_table(n, d, rng)
    return rng.standard_normal((n, d)) * column_scales(d, largest)


def ill_conditioned(n: int, d: int, rng: np.random.Generator, condition: float = 1e8) -> FloatArray:
    r"""Return a matrix whose 2-norm condition number is `condition`, in no special basis.

    .. math::

        X = \sqrt n \, Q \, \mathrm{diag}(\kappa^{0}, \dots, \kappa^{-1}) \, R^\top ,

    with random orthonormal Q (n, d) and R (d, d), and singular values in geometric progression. Needs ``n >= d >= 2``.
    """
    _check_table(n, d, rng)
    check_count(d, "d", 2)
    check_count(n, "n", d)
    kappa = check_number(condition, "condition")
    if kappa < 1.0:
        raise ValueError(f"condition must be at least 1, got {kappa:g}")
    Q = np.linalg.qr(rng.standard_normal((n, d)))[0]
    R = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray(np.sqrt(n) * (Q * np.geomspace(1.0, 1.0 / kappa, d)) @ R.T)


def integers(n: int, d: int, rng: np.random.Generator, largest: int = 3) -> FloatArray:
    """Return independent uniform integers from ``-largest`` to ``largest``: duplicates, zeros and flats abound."""
    _check_table(n, d, rng)
    check_count(largest, "largest", 1)
    return rng.integers(-largest, largest, (n, d), endpoint=True).astype(np.float64)


def binary(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return independent fair zeros and ones."""
    _check_table(n, d, rng)
    return rng.integers(0, 2, (n, d)).astype(np.float64)


def sparse_gaussian(n: int, d: int, rng: np.random.Generator, density: float = 0.1) -> FloatArray:
    """Return entries that are standard Gaussian with probability `density` and else 0 (also whole rows of zeros)."""
    _check_table(n, d, rng)
    share = check_number(density, "density")
    if not 0.0 < share <= 1.0:
        raise ValueError(f"density must be above 0 and at most 1, got {share:g}")
    return np.asarray(np.where(rng.random((n, d)) < share, rng.standard_normal((n, d)), 0.0))


def one_hot(n: int, levels: Sequence[int], rng: np.random.Generator) -> FloatArray:
    r"""Return a table of categorical columns, one indicator for each level.

    Column group j has ``levels[j]`` columns :math:`L_j`, of which every row has exactly one equal to 1, uniformly. The
    groups share their row sum, so the rank is at most :math:`\sum_j L_j - (\text{groups} - 1)`.
    """
    _check_levels(levels)
    check_count(n, "n", 1)
    check_generator(rng)
    return np.hstack([np.eye(count)[rng.integers(0, count, n)] for count in levels])


def dummy_table(n: int, levels: Sequence[int], rng: np.random.Generator) -> FloatArray:
    r"""Return a column of ones and the indicators of `one_hot` without each group's first level.

    The usual coding of categories: :math:`1 + \sum_j (L_j - 1)` columns, of full rank once all levels appear together
    often enough, and most rows in few coordinate subspaces.
    """
    table = one_hot(n, levels, rng)
    first = np.cumsum([0, *levels[:-1]])
    return np.hstack([np.ones((n, 1)), np.delete(table, first, axis=1)])


def _check_table(n: int, d: int, rng: np.random.Generator) -> None:
    check_count(n, "n", 1)
    check_count(d, "d", 1)
    check_generator(rng)


def _check_levels(levels: Sequence[int]) -> None:
    if len(levels) == 0:
        raise ValueError(f"levels must name at least one column group, got {levels!r}")
    for index, count in enumerate(levels):
        check_count(count, f"levels[{index}]", 1)
