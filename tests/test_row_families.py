"""The defining property of every sampler of rows and parameters that tests and benchmarks share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from massart.paper import gaussian, linear_labels, paper_mixture
from row_families import (
    cauchy,
    column_scales,
    displaced_weights,
    dummy_table,
    elliptical_cauchy,
    gaussian_with_intercept,
    ill_conditioned,
    integer_weights,
    integers,
    integers_on_subspace,
    intercept_weights,
    one_hot,
    permuted_weights,
    planted_subspace,
    rescaled_weights,
    scaled_columns,
)

Sampler = Callable[[int, int, np.random.Generator], np.ndarray]
SAMPLERS: list[Sampler] = [
    cauchy, elliptical_cauchy, gaussian, gaussian_with_intercept, ill_conditioned, integers, paper_mixture,
    scaled_columns,
]  # fmt: skip

CHANCE = 1e-5
"""Level of the statistical tests. Seeds are fixed, and with about fifty tests none fails by bad luck at this level."""


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def distance_to(X: np.ndarray, basis: np.ndarray) -> np.ndarray:
    V = np.linalg.qr(basis)[0]
    return np.asarray(np.linalg.norm(X - X @ V @ V.T, axis=1))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_samplers_give_finite_rows_and_the_same_bytes_for_the_same_seed(sampler: Sampler) -> None:
    X = sampler(17, 5, rng_of(1))
    assert X.shape == (17, 5)
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert X.tobytes() == sampler(17, 5, rng_of(1)).tobytes()
    assert X.tobytes() != sampler(17, 5, rng_of(2)).tobytes()


def test_gaussian_and_cauchy_coordinates_have_their_laws() -> None:
    for X, law in (
        (gaussian(4000, 3, rng_of(0)), stats.norm()),
        (cauchy(4000, 3, rng_of(3)), stats.cauchy()),
    ):
        assert stats.kstest(X.ravel(), law.cdf).pvalue > CHANCE
        assert stats.kendalltau(np.abs(X[:, 0]), np.abs(X[:, 1])).pvalue > CHANCE


def test_elliptical_cauchy_projections_are_cauchy_with_the_scale_of_the_shape() -> None:
    X = elliptical_cauchy(20_000, 4, rng_of(6))
    S = rng_of(6).standard_normal((4, 4))  # the shape is the first thing drawn
    for v in ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, -2.0, 0.5, 3.0]):
        assert stats.kstest(X @ v, stats.cauchy(scale=float(np.linalg.norm(S.T @ v))).cdf).pvalue > CHANCE
    # Rows are large as a whole: coordinates are dependent, those of `cauchy` are not.
    assert stats.kendalltau(np.abs(X[:, 0]), np.abs(X[:, 1])).pvalue < 1e-6


def test_intercept_column_and_parameter_make_a_relu_active_on_a_fifth() -> None:
    X, w = gaussian_with_intercept(20_000, 6, rng_of(0)), intercept_weights(6, rng_of(1))
    assert (X[:, -1] == 1.0).all()
    assert w[-1] == -0.84
    assert np.linalg.norm(w[:-1]) == pytest.approx(1.0)
    assert stats.kstest(linear_labels(X, w), stats.norm(-0.84).cdf).pvalue > CHANCE
    assert stats.norm.cdf(-0.84) == pytest.approx(0.2, abs=1e-3)
    assert intercept_weights(3, rng_of(0), intercept=2.0)[-1] == 2.0


def test_column_scales_run_geometrically_from_one_to_the_largest() -> None:
    scales = column_scales(9)
    assert scales[0] == 1.0
    assert scales[-1] == 1e8
    np.testing.assert_allclose(scales[1:] / scales[:-1], 10.0)
    X = scaled_columns(5000, 9, rng_of(0), largest=1e4)
    assert stats.kstest((X / column_scales(9, 1e4)).ravel(), "norm").pvalue > CHANCE


@pytest.mark.parametrize("condition", [1.0, 1e4, 1e8, 1e12])
def test_ill_conditioned_has_the_asked_condition_number_in_no_special_basis(condition: float) -> None:
    X = ill_conditioned(200, 12, rng_of(0), condition=condition)
    singular = np.linalg.svd(X, compute_uv=False)
    np.testing.assert_allclose(
        singular, np.sqrt(200) * np.geomspace(1.0, 1.0 / condition, 12), rtol=1e-15 * condition + 1e-12
    )
    columns = np.linalg.norm(X, axis=0)
    assert columns.max() / columns.min() < 1e3  # scaling columns back does not undo it


def test_integers_are_uniform() -> None:
    X = integers(3000, 4, rng_of(0), largest=2)
    values, counts = np.unique(X, return_counts=True)
    assert values.tolist() == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert stats.chisquare(counts).pvalue > CHANCE


@pytest.mark.parametrize("levels", [(3,), (2, 4), (3, 4, 2), (1, 5)])
def test_one_hot_and_dummies_have_one_level_a_group_and_the_rank_of_their_coding(levels: tuple[int, ...]) -> None:
    X = one_hot(600, levels, rng_of(0))
    start = 0
    for count in levels:
        group = X[:, start : start + count]
        assert set(np.unique(group)) <= {0.0, 1.0}
        assert (group.sum(axis=1) == 1.0).all()
        assert stats.chisquare(group.sum(axis=0)).pvalue > CHANCE if count > 1 else group.all()
        start += count
    assert X.shape == (600, sum(levels))
    assert np.linalg.matrix_rank(X) == sum(levels) - (len(levels) - 1)
    coded = dummy_table(600, levels, rng_of(0))
    assert (coded[:, 0] == 1.0).all()
    assert coded.shape[1] == 1 + sum(count - 1 for count in levels)
    assert np.linalg.matrix_rank(coded) == coded.shape[1]


# Planted subspaces


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_planted_subspace_has_exactly_the_asked_rows_inside(data: st.DataObject, seed: int) -> None:
    d = data.draw(st.integers(2, 12))
    k, n = data.draw(st.integers(1, d - 1)), data.draw(st.integers(1, 60))
    n_inside = data.draw(st.integers(0, n))
    planted = planted_subspace(n, d, k, n_inside, rng_of(seed))
    away = distance_to(planted.X, planted.basis)
    np.testing.assert_allclose(planted.basis.T @ planted.basis, np.eye(k), atol=1e-12)
    assert planted.inside.sum() == n_inside
    assert (away[planted.inside] < 1e-13).all()
    assert (away[~planted.inside] > 1e-11).all()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_integers_on_subspace_has_exactly_the_asked_rows_inside(data: st.DataObject, seed: int) -> None:
    d = data.draw(st.integers(2, 9))
    k, n = data.draw(st.integers(1, d - 1)), data.draw(st.integers(1, 60))
    n_inside = data.draw(st.integers(0, n))
    planted = integers_on_subspace(n, d, k, n_inside, rng_of(seed))
    np.testing.assert_array_equal(planted.X, np.rint(planted.X))
    np.testing.assert_array_equal(planted.inside, distance_to(planted.X, planted.basis) < 1e-9)
    assert planted.inside.sum() == n_inside
    assert planted.X.any(axis=1).all()
    assert np.linalg.matrix_rank(planted.basis) == k
    assert set(np.unique(planted.basis)) <= {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert np.abs(planted.X[~planted.inside]).max(initial=0.0) <= 3.0
    coefficients = np.linalg.lstsq(planted.basis, planted.X[planted.inside].T)[0]
    np.testing.assert_allclose(coefficients, np.rint(coefficients), atol=1e-9)
    assert np.abs(coefficients).max(initial=0.0) < 3.5


def test_planted_rows_come_in_random_order() -> None:
    planted = planted_subspace(200, 5, 2, 100, rng_of(0))
    assert np.count_nonzero(np.diff(planted.inside)) > 10


# Parameters


@pytest.mark.parametrize("distance", [0.0, 0.05, 3.0])
def test_displaced_weights_lie_at_the_asked_relative_distance_in_every_direction(distance: float) -> None:
    w, rng = np.array([1.0, -2.0, 2.0]), rng_of(0)
    moved = np.array([displaced_weights(w, distance, rng) for _ in range(2000)]) - w
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), distance * 3.0, rtol=1e-12, atol=1e-15)
    if distance:
        # A coordinate of a uniform point of the unit sphere in three dimensions is uniform on [-1, 1].
        assert stats.kstest(moved[:, 1] / (3.0 * distance), stats.uniform(-1.0, 2.0).cdf).pvalue > CHANCE


def test_permuted_and_rescaled_weights_keep_sizes() -> None:
    w = np.array([3.0, -1.0, 1e8, 0.0])
    assert sorted(permuted_weights(w, rng_of(0))) == [0.0, 1.0, 3.0, 1e8]
    ratios = np.array([rescaled_weights(w[:3], rng_of(seed)) / np.abs(w[:3]) for seed in range(1000)])
    assert stats.kstest(ratios.ravel(), "norm").pvalue > CHANCE
    assert w.tolist() == [3.0, -1.0, 1e8, 0.0]


def test_integer_weights_are_uniform_and_never_all_zero() -> None:
    draws = np.array([integer_weights(1, rng_of(seed), largest=1) for seed in range(50)])
    assert set(draws.ravel()) == {-1.0, 1.0}
    values, counts = np.unique(integer_weights(5000, rng_of(0)), return_counts=True)
    assert values.tolist() == list(range(-5, 6))
    assert stats.chisquare(counts).pvalue > CHANCE
