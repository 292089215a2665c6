"""FAST-LTS: batched least squares, trimming, concentration steps and random subsets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart import fast_lts
from massart.fast_lts import LeastSquares, quantile, random_subsets, smallest, trimmed, trimmed_squares

SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=25, deadline=None, derandomize=True)


def rows(seed, n=30, k=4):
    rng = np.random.default_rng(seed)
    return rng, rng.standard_normal((n, k)), rng.standard_normal(n)


@pytest.mark.parametrize("products", [0, 1 << 22])
def test_fits_are_weighted_least_squares(products, monkeypatch) -> None:
    monkeypatch.setattr(fast_lts, "_PRODUCTS", products)
    rng, Z, y = rows(0)
    weights = rng.random((9, 30)) * (rng.random((9, 30)) < 0.7)
    expected = [np.linalg.lstsq(Z * np.sqrt(q)[:, None], y * np.sqrt(q), rcond=None)[0] for q in weights]
    np.testing.assert_allclose(LeastSquares(Z, y).fit(weights), expected, atol=1e-9)


@pytest.mark.parametrize("size", [4, 5, 20, 30])
def test_fits_of_subsets_are_least_squares_of_these_rows(size) -> None:
    rng, Z, y = rows(1)
    subsets = random_subsets(7, size, np.ones(30), rng)
    expected = [np.linalg.lstsq(Z[chosen], y[chosen], rcond=None)[0] for chosen in subsets]
    np.testing.assert_allclose(LeastSquares(Z, y).fit_subsets(subsets), expected, rtol=1e-6, atol=1e-6)
    factors = rng.uniform(1, 2, 30)
    expected = [
        np.linalg.lstsq(Z[chosen] * factors[chosen, None], y[chosen] * factors[chosen], rcond=None)[0]
        for chosen in subsets
    ]
    np.testing.assert_allclose(LeastSquares(Z, y).fit_subsets(subsets, factors), expected, rtol=1e-6, atol=1e-6)


def test_a_ridge_shrinks() -> None:
    _, Z, y = rows(2)
    expected = np.linalg.solve(Z.T @ Z + 3 * np.eye(4), Z.T @ y)
    np.testing.assert_allclose(LeastSquares(Z, y, 3.0).fit(np.ones((1, 30)))[0], expected, rtol=1e-9)


def test_singular_fits_do_not_stop_the_others() -> None:
    _, Z, _ = rows(3)
    truth = np.array([1.0, 2.0, 3.0, 4.0])
    weights = np.zeros((6, 30))
    weights[0, 0] = 1.0
    weights[2:] = 1.0
    found = LeastSquares(Z, Z @ truth).fit(weights)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[2:], np.tile(truth, (4, 1)), atol=1e-8)


@given(SEEDS)
@laws
def test_a_step_never_raises_the_trimmed_squares(seed) -> None:
    rng, Z, y = rows(seed)
    shares = np.full(30, 1 / 30)
    C = rng.standard_normal((6, 4))
    previous = np.full(6, np.inf)
    for _ in range(5):
        sizes = np.abs(y - C @ Z.T)
        kept = trimmed(sizes, shares, 0.6)
        assert (trimmed_squares(sizes, kept) <= previous * (1 + 1e-9)).all()
        previous = trimmed_squares(sizes, kept)
        C = LeastSquares(Z, y).fit(kept)


def test_the_smallest_are_kept_so_many_for_each_parameter() -> None:
    sizes = np.array([[3.0, 1.0, 2.0, np.inf], [np.inf, 5.0, np.inf, 4.0]])
    np.testing.assert_array_equal(smallest(sizes, np.array([2, 1])), [[0, 1, 1, 0], [0, 0, 0, 1]])
    np.testing.assert_array_equal(smallest(sizes, 1), [[0, 1, 0, 0], [0, 0, 0, 1]])


def test_trimming_counts_shares() -> None:
    sizes = np.array([[3.0, 1.0, 2.0]])
    kept = trimmed(sizes, np.array([0.5, 0.2, 0.3]), 0.5)
    np.testing.assert_array_equal(kept, [[0, 0.2, 0.3]])
    np.testing.assert_allclose(trimmed_squares(sizes, kept), [0.2 + 0.3 * 4])


@given(SEEDS)
@laws
def test_quantiles_of_weighted_rows_are_those_of_repeated_rows(seed) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, 8)
    values = rng.standard_normal((3, 8))
    repeated = np.repeat(values, counts, axis=1)
    for share in (0.1, 0.5, 0.8, 1.0):
        expected = quantile(repeated, np.full(counts.sum(), 1 / counts.sum()), share)
        np.testing.assert_array_equal(quantile(values, counts / counts.sum(), share), expected)


def test_random_subsets_have_different_rows_and_follow_their_rates() -> None:
    rng = np.random.default_rng(0)
    subsets = random_subsets(20_000, 2, np.array([4.0, 2.0, 1.0, 1.0, 0.0]), rng)
    assert all(len(set(chosen)) == 2 for chosen in subsets[:100].tolist())
    assert not (subsets == 4).any()
    first = 4 / 8 + (2 / 8) * (4 / 6) + 2 * (1 / 8) * (4 / 7)  # drawn first, or second after another
    assert (subsets == 0).any(axis=1).mean() == pytest.approx(first, abs=0.015)
    assert random_subsets(2, 5, np.ones(5), rng).shape == (2, 5)
