"""Many columns: sums that are made once, rows that are looked at once, and answers that stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from massart import MassartRegressor
from massart.certificate import geometry_of, is_weak_by_chance, measure_support, wide
from massart.search import reweighted

N, D = 4_000, 150
ADVERSARIES = {
    "decoy": lambda X, y, rng: X @ rng.standard_normal(X.shape[1]),
    "constant": lambda X, y, rng: np.full(len(y), 100.0),
    "permuted": lambda X, y, rng: rng.permutation(y),
    "flipped": lambda X, y, rng: -y,
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def corrupted(X, w, rng, adversary, share=0.4):
    y = X @ w
    wrong = rng.random(len(y)) < share
    y[wrong] = ADVERSARIES[adversary](X[wrong], y[wrong], rng)
    return y, np.abs(y - X @ w) <= 1e-9 * (np.abs(X) @ np.abs(w))


def support_of(X, agree, rng, geometry=None):
    return measure_support(geometry or geometry_of(X), X, agree, np.full(len(X), 1e-12), rng=rng)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_reweighting_comes_near_for_any_adversary(adversary, share, rng):
    X, w = rng.standard_normal((N, D)) * np.exp(rng.standard_normal((N, 1))), rng.standard_normal(D)
    y, _ = corrupted(X, w, rng, adversary, share)
    np.testing.assert_allclose(reweighted(X, y), w, atol=1e-6)


def test_reweighting_follows_units_of_rows_and_columns(rng):
    X, w = rng.standard_normal((N, D)), rng.standard_normal(D)
    y, _ = corrupted(X, w, rng, "decoy")
    columns, rows = np.exp2(rng.integers(-20, 20, D)), np.exp2(rng.integers(-5, 5, N))
    found = reweighted(X * columns * rows[:, None], y * rows)
    np.testing.assert_allclose(found * columns, w, atol=1e-6)


def test_sums_that_are_kept_are_those_of_the_general_way(rng, monkeypatch):
    mixing = rng.standard_normal((D, D)) / np.sqrt(D) + np.eye(D)
    X = rng.standard_normal((N, D)) @ mixing * np.exp2(rng.integers(-9, 9, D))
    agree = rng.random(N) < 0.9
    geometry = geometry_of(X)
    assert geometry.wide is not None
    kept = support_of(X, agree, rng, geometry)
    monkeypatch.setattr(wide, "COLUMNS", 10**9)
    general = support_of(X, agree, rng)
    assert kept.alpha == pytest.approx(general.alpha, rel=0.02)
    assert kept.eta_max == pytest.approx(general.eta_max, abs=0.02)


def test_alpha_and_leverage_are_what_they_are_called(rng):
    X = rng.standard_normal((N, D)) * np.exp(rng.standard_normal((N, 1)))
    agree = rng.random(N) < 0.6
    geometry = geometry_of(X)
    assert geometry.wide is not None
    rows = X / geometry.wide.lengths[:, None]
    M, M_A = rows.T @ rows, rows[agree].T @ rows[agree]
    values = np.linalg.eigvals(np.linalg.solve(M, M_A)).real
    support = support_of(X, agree, rng, geometry)
    assert support.alpha == pytest.approx(values.min(), rel=1e-6)
    leverages = np.einsum("ij,ij->i", rows @ np.linalg.inv(M), rows)
    assert leverages.max() <= geometry.wide.leverage <= 1.1 * D / N
    other = rng.random(N) < 0.8  # the sums of one formula are not taken for those of another
    assert support_of(X, other, rng, geometry).alpha == support_of(X, other, rng, geometry_of(X)).alpha


@pytest.mark.slow
def test_rows_that_are_not_near_isotropic_take_the_general_way(rng):
    X = rng.standard_normal((N, D))
    X[:, 1] = X[:, 0]  # dependent columns
    assert geometry_of(X).wide is None
    X[:, 1] = X[:, 0] * (1 + 1e-6 * rng.standard_normal(N))  # nearly so
    assert geometry_of(X).wide is None
    X[:, 1] = X[:, 0] + np.where(np.arange(N) < 10, 1.0, 0.0)  # but on ten rows
    assert geometry_of(X).wide is None


@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_whose_squares_are_beyond_single_precision_take_the_general_way(sign, rng):
    X = rng.standard_normal((N, D))
    assert geometry_of(X).wide is not None
    X[5, 7] = sign * 1e30
    assert geometry_of(X).wide is None


def test_random_wrong_rows_are_chance_and_a_rival_is_not(rng):
    X = rng.standard_normal((N, D))
    geometry = geometry_of(X)
    agree = rng.random(N) < 0.6
    support = support_of(X, agree, rng, geometry)
    assert support.alpha < 0.5
    assert is_weak_by_chance(geometry, support, float(agree.mean()))
    against = rng.random(N) < 0.6
    against &= np.abs(X[:, 0]) < np.quantile(np.abs(X[:, 0]), 0.8)  # one direction has most of its evidence against it
    assert not is_weak_by_chance(geometry, support_of(X, against, rng, geometry), float(against.mean()))


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_many_columns_are_recovered_exactly(adversary, rng):
    X, w = rng.standard_normal((N, D)), rng.standard_normal(D)
    y, right = corrupted(X, w, rng, adversary)
    with np.errstate(all="ignore"), pytest.warns():  # so many columns leave some direction weak
        reg = MassartRegressor(random_state=0).fit(X, y)
    np.testing.assert_allclose(reg.coef_, w, atol=1e-11)
    np.testing.assert_array_equal(reg.inlier_mask_, right)


def test_rounding_leaves_open_what_it_does_in_the_general_way(rng, monkeypatch):
    X = rng.standard_normal((N, D)) * 300.0
    agree, widths = rng.random(N) < 0.95, rng.uniform(0.5, 1.0, N)
    scales = np.exp2(rng.integers(-4, 5, N))
    geometry = geometry_of(X)
    assert geometry.wide is not None
    kept = measure_support(geometry, X, agree, widths, rng=rng, bound=0.3)
    scaled = X * scales[:, None]
    other = measure_support(geometry_of(scaled), scaled, agree, widths * scales, rng=rng, bound=0.3)
    monkeypatch.setattr(wide, "COLUMNS", 10**9)
    general = measure_support(geometry_of(X), X, agree, widths, rng=rng, bound=0.3)
    assert kept.confirmed.all()
    np.testing.assert_allclose(kept.resolution, general.resolution, rtol=0.3)
    np.testing.assert_allclose(kept.resolution, other.resolution, rtol=0.3)
