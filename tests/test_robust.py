"""Laws of robust regression: equivariance, breakdown, efficiency, exact fits, standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from massart.paper import MassartNoise, constant, decoy, far_constant, gross, linear_labels, scale
from massart.robust import TUNING, RobustFit, Status, constants, m_scale, robust_regression
from massart.rows import Progress

SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=12, deadline=None, derandomize=True)


def noisy_rows(seed, n=200, d=3, eta=0.4, sigma=0.1):
    """Gaussian rows; a share eta of the labels is gross, the others are noisy."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    y = X @ w + sigma * rng.standard_normal(n)
    wrong = rng.random(n) < eta
    y[wrong] = rng.uniform(-100, 100, int(wrong.sum()))
    return X, y, w, wrong


def fit(X, y, seed=0, **options) -> RobustFit:
    return robust_regression(X, y, rng=np.random.default_rng(seed), **options)


def assert_sane(answer: RobustFit, X, y) -> None:
    """Hold for every answer: no NaN, and numbers that can be recomputed."""
    n, d = np.shape(X)
    assert answer.coef.shape == answer.standard_errors.shape == (d,)
    assert answer.covariance.shape == (d, d)
    assert np.isfinite(answer.coef).all()
    assert not np.isnan(answer.covariance).any()
    assert not np.isnan(answer.standard_errors).any()
    assert np.isfinite(answer.scale)
    assert answer.scale >= 0
    assert answer.inliers.shape == (n,)
    if answer.scale > 0:
        np.testing.assert_array_equal(answer.inliers, np.abs(y - X @ answer.coef) <= 3 * answer.scale)


# ---- the biweight


def loss(u, c):
    return 1 - np.maximum(1 - (u / c) ** 2, 0) ** 3


@pytest.mark.parametrize("c", [1.547645, 3.44, 4.685])
def test_gaussian_constants_are_the_integrals_they_claim_to_be(c) -> None:
    known = constants(c)

    def mean(function):
        return 2 * quad(lambda u: function(u) * norm.pdf(u), 0, c)[0]

    assert known.mean_loss == pytest.approx(mean(lambda u: loss(u, c)) + 2 * norm.sf(c))
    assert known.mean_slope == pytest.approx(mean(lambda u: (1 - (u / c) ** 2) * (1 - 5 * (u / c) ** 2)))
    assert known.mean_weight == pytest.approx(mean(lambda u: (1 - (u / c) ** 2) ** 2))
    assert known.kappa * known.mean_weight == pytest.approx(mean(lambda u: u**2 * (1 - (u / c) ** 2) ** 2))
    square = mean(lambda u: (u * (1 - (u / c) ** 2) ** 2) ** 2)
    assert known.efficiency == pytest.approx(known.mean_slope**2 / square)


def test_tuning_constants_are_the_published_ones() -> None:
    assert pytest.approx(4.685065, abs=1e-5) == TUNING
    assert constants(1.547645).mean_loss == pytest.approx(0.5, abs=1e-5)
    assert constants(3.443690).efficiency == pytest.approx(0.85, abs=1e-5)
    assert constants(TUNING).efficiency == pytest.approx(0.95)


def test_the_m_scale_solves_its_equation_and_scales() -> None:
    r = np.random.default_rng(0).standard_cauchy((4, 101))
    shares = np.full(101, 1 / 101)
    s = m_scale(r, shares, 0.5)
    np.testing.assert_allclose(loss(r / s[:, None], 1.5476450) @ shares, 0.5, atol=1e-6)
    np.testing.assert_allclose(m_scale(1e9 * r, shares, 0.5), 1e9 * s)
    assert m_scale(np.r_[np.zeros(60), np.ones(41)], shares, 0.5) == 0


# ---- equivariance


@pytest.mark.slow
@given(SEEDS)
@laws
def test_regression_equivariance(seed) -> None:
    X, y, _, _ = noisy_rows(seed)
    shift = np.array([5.0, -3.0, 1.0])
    first, second = fit(X, y), fit(X, y + X @ shift)
    np.testing.assert_allclose(second.coef, first.coef + shift, atol=1e-6)
    assert second.scale == pytest.approx(first.scale, rel=1e-4)


@pytest.mark.slow
@given(SEEDS, st.sampled_from([-1.0, 3.0, 1e-7, 1e9]))
@laws
def test_scale_equivariance(seed, factor) -> None:
    X, y, _, _ = noisy_rows(seed)
    first, second = fit(X, y), fit(X, factor * y)
    np.testing.assert_allclose(second.coef / factor, first.coef, atol=1e-6)
    assert second.scale == pytest.approx(abs(factor) * first.scale, rel=1e-4)
    np.testing.assert_allclose(second.standard_errors, abs(factor) * first.standard_errors, rtol=1e-3)


@pytest.mark.slow
@given(SEEDS)
@laws
def test_affine_equivariance(seed) -> None:
    X, y, _, _ = noisy_rows(seed)
    A = np.array([[1.0, 0, 0], [100.0, 1e-3, 0], [7.0, 0.5, 1e4]])
    first, second = fit(X, y), fit(X @ A, y)
    np.testing.assert_allclose(A @ second.coef, first.coef, atol=1e-6)
    np.testing.assert_allclose(A @ second.covariance @ A.T, first.covariance, rtol=1e-3, atol=1e-9)


@pytest.mark.slow
@given(SEEDS)
@laws
def test_the_order_of_rows_does_not_matter(seed) -> None:
    X, y, _, _ = noisy_rows(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    first, second = fit(X, y), fit(X[order], y[order])
    np.testing.assert_allclose(second.coef, first.coef, atol=1e-6)
    np.testing.assert_array_equal(second.inliers, first.inliers[order])


def test_weights_act_like_repeated_rows() -> None:
    X, y, _, _ = noisy_rows(2, n=300)
    counts = np.random.default_rng(0).integers(0, 4, 300)
    weighted = fit(X, y, sample_weight=counts)
    repeated = fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=2e-3)
    assert weighted.scale == pytest.approx(repeated.scale, rel=0.02)
    halved = fit(X, y, sample_weight=counts / 2)
    np.testing.assert_allclose(halved.standard_errors, weighted.standard_errors)


# ---- breakdown and efficiency


@pytest.mark.slow
@pytest.mark.parametrize(
    "adversary", [gross(), scale(-100.0), far_constant, constant(1e12), decoy([9.0, -9.0, 9.0, -9.0], linear_labels)]
)
@pytest.mark.parametrize("eta", [0.2, 0.45])
def test_wrong_rows_cost_little_more_than_their_number(adversary, eta) -> None:
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, w = rng.standard_normal((400, 4)), np.array([1.0, 2.0, -1.0, 0.5])
        noisy = X @ w + 0.1 * rng.standard_normal(400)
        corruption = MassartNoise(eta, adversary).corrupt(X, noisy, rng)
        right = ~corruption.allowed
        answer = fit(X, corruption.labels)
        assert_sane(answer, X, corruption.labels)
        assert 0.08 < answer.scale < 0.13
        known = np.linalg.lstsq(X[right], noisy[right], rcond=None)[0]
        ratios.append(np.linalg.norm(answer.coef - w) / np.linalg.norm(known - w))
    assert np.median(ratios) < 1.3


@pytest.mark.slow
def test_clean_gaussian_data_lose_five_percent() -> None:
    ours, theirs = [], []
    for seed in range(60):
        X, y, w, _ = noisy_rows(seed, n=150, eta=0.0, sigma=1.0)
        ours.append(((fit(X, y).coef - w) ** 2).sum())
        theirs.append(((np.linalg.lstsq(X, y, rcond=None)[0] - w) ** 2).sum())
    assert np.mean(ours) < 1.15 * np.mean(theirs)


def test_a_cluster_of_leverage_points_is_ignored() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = X @ [1.0, 2, 3] + 0.1 * rng.standard_normal(300)
    X[:120] = [1000, 1000, 0] + rng.standard_normal((120, 3))
    y[:120] = -5000
    answer = fit(X, y)
    np.testing.assert_allclose(answer.coef, [1, 2, 3], atol=0.05)
    assert not answer.inliers[:120].any()


def test_good_leverage_points_are_used() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((400, 3))
    y = X @ [1.0, 2, 3] + 0.1 * rng.standard_normal(400)
    answer = fit(X, y)
    assert answer.standard_errors.max() < 1e-3
    np.testing.assert_allclose(answer.coef, [1, 2, 3], atol=1e-2)


# ---- awkward columns


def test_dummy_columns_and_their_intercept() -> None:
    rng = np.random.default_rng(5)
    levels = rng.integers(0, 8, 600)
    X = np.column_stack([np.ones(600), np.eye(8)[levels], rng.standard_normal(600)])
    w = 10 * rng.standard_normal(10)
    clean = X @ w + 0.1 * rng.standard_normal(600)
    y = np.where(rng.random(600) < 0.4, 1000 * rng.standard_normal(600), clean)
    answer = fit(X, y)
    assert_sane(answer, X, y)
    assert np.abs(X @ (answer.coef - w)).max() < 0.15
    assert np.isinf(answer.standard_errors[:9]).all()
    assert answer.standard_errors[9] < 0.01


def test_rare_levels_are_found_where_most_of_their_rows_are_right() -> None:
    rng = np.random.default_rng(6)
    levels = np.repeat(np.arange(30), 20)
    X = np.column_stack([np.eye(30)[levels], rng.standard_normal(600)])
    w = np.append(10 * rng.standard_normal(30), 2.0)
    y = X @ w + 0.1 * rng.standard_normal(600)
    wrong = np.arange(600) % 20 < 6
    y[wrong] = 1000 * rng.standard_normal(wrong.sum())
    np.testing.assert_allclose(fit(X, y).coef, w, atol=0.3)


def test_redundant_columns_get_the_minimum_norm_and_infinite_errors() -> None:
    X, y, _, _ = noisy_rows(7)
    wide = np.hstack([X, X[:, :1], np.zeros((200, 1))])
    answer, plain = fit(wide, y), fit(X, y)
    assert_sane(answer, wide, y)
    np.testing.assert_allclose(answer.coef[[0, 3]], plain.coef[0] / 2, atol=1e-5)
    np.testing.assert_allclose(answer.coef[[1, 2, 4]], [*plain.coef[1:], 0], atol=1e-5)
    np.testing.assert_array_equal(np.isinf(answer.standard_errors), [True, False, False, True, True])


@pytest.mark.parametrize("n", [1, 2, 4, 5, 6, 7, 9, 12])
def test_few_rows_never_crash(n) -> None:
    X, y, _, _ = noisy_rows(8, n=n, d=5)
    answer = fit(X, y)
    assert_sane(answer, X, y)
    assert (answer.status is Status.UNDERDETERMINED) == (n <= 5)
    if n <= 5:
        np.testing.assert_allclose(X @ answer.coef, y, atol=1e-8)
        assert np.isinf(answer.standard_errors).all()


def test_a_matrix_of_zeros() -> None:
    answer = fit(np.zeros((9, 2)), np.arange(9.0))
    assert_sane(answer, np.zeros((9, 2)), np.arange(9.0))
    assert answer.status is Status.CONVERGED
    assert fit(np.zeros((9, 2)), np.zeros(9)).status is Status.EXACT_FIT


@pytest.mark.parametrize(("columns", "labels"), [(1e150, 1e-150), (1e-150, 1e150), (1e-150, 1e-150)])
def test_extreme_units(columns, labels) -> None:
    X, y, w, _ = noisy_rows(9)
    answer = fit(columns * X, labels * y)
    np.testing.assert_allclose(answer.coef / (labels / columns), w, atol=0.1)


def test_wrong_labels_may_be_as_far_off_as_numbers_go() -> None:
    X, y, w, _ = noisy_rows(9, eta=0)
    far = np.where(np.arange(len(y)) % 5, y, -1e250)
    answer = fit(X, far)
    np.testing.assert_allclose(answer.coef, w, atol=0.1)
    assert answer.scale < 1
    assert not answer.inliers[::5].any()


@pytest.mark.parametrize("code", [-1e3, 99999.0, -1e9])
def test_codes_for_missing_values_hide_no_other_errors(code) -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.standard_normal((200, 2)), np.ones(200)])
    w = np.array([1.0, -2.0, 0.5])
    y = X @ w + 0.1 * rng.standard_normal(200)
    y[:40] += 5
    plain = fit(X, y)
    answer = fit(np.vstack([X, X[:35]]), np.append(y, np.full(35, code)))
    np.testing.assert_allclose(answer.coef, w, atol=0.1)
    np.testing.assert_array_equal(answer.inliers, np.append(plain.inliers, np.zeros(35, dtype=bool)))


@pytest.mark.parametrize("seed", range(3))
def test_wrong_rows_of_two_kinds_are_no_part_of_a_wide_right_mode(seed) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 4))
    X[:40] = 0.5 * X[:40] + [10, 0, 0, 0]
    X[:, 3] = 1
    w = np.array([1.0, -2.0, 0.5, 1.0])
    y = X @ w + 0.3 * rng.standard_normal(200)
    y[:40] += 9
    y[40:80] -= 3
    answer, right = fit(X, y), np.arange(200) >= 80
    oracle = np.linalg.lstsq(X[right], y[right])[0]
    assert np.linalg.norm(answer.coef - w) < 2 * np.linalg.norm(oracle - w)
    assert not answer.inliers[:80].any()


def test_a_right_row_of_large_numbers_is_not_left_out() -> None:
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.standard_normal(100), np.ones(100)])
    X[0, 0] = 1e6
    answer = fit(X, X @ [2.0, 1.0] + rng.standard_normal(100))
    assert answer.inliers[0]
    assert abs(answer.coef[0] - 2) < 1e-5


# ---- exact fits


def line(n):
    return np.column_stack([np.ones(n), np.arange(n)])


@pytest.mark.parametrize(
    ("X", "y", "coef", "agree"),
    [
        pytest.param(line(20), 3 + 2 * np.arange(20.0), [3, 2], 20, id="noiseless line, scikit-learn 19497"),
        pytest.param(line(5), [1.0, 1, 2, 1, 1], [1, 0], 4, id="scikit-learn 4938"),
        pytest.param(line(10), np.full(10, 7.0), [7, 0], 10, id="constant labels, statsmodels 55"),
        pytest.param(line(10), np.zeros(10), [0, 0], 10, id="zero labels"),
        pytest.param(line(3), [0.0, 1, 2], [0, 1], 3, id="perfect fit, statsmodels 3319"),
        pytest.param(np.ones((7, 1)), [4.0, 4, 4, 4, 9, 8, 7], [4], 4, id="four of seven, scale zero"),
    ],
)
def test_exact_fits_never_crash(X, y, coef, agree) -> None:
    answer = fit(X, y)
    assert_sane(answer, X, np.asarray(y))
    assert answer.status is Status.EXACT_FIT
    np.testing.assert_allclose(answer.coef, coef, atol=1e-12)
    assert (answer.scale, answer.inliers.sum()) == (0, agree)
    assert not answer.standard_errors.any()


def test_agreeing_rows_are_about_rounding_and_nothing_larger() -> None:
    X, _, w, _ = noisy_rows(12, n=60, eta=0.0)
    size = np.abs(X) @ np.abs(w)
    y = X @ w
    y[:6] += 1e-15 * size[:6]
    y[6:12] += 1e-5 * size[6:12]
    answer = fit(X, y)
    assert answer.status is Status.EXACT_FIT
    np.testing.assert_array_equal(np.flatnonzero(~answer.inliers), np.arange(6, 12))


# ---- uncertainty and shrinkage


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize("eta", [0.0, 0.4])
def test_intervals_cover(eta) -> None:
    covered, scales = [], []
    for seed in range(60):
        X, y, w, _ = noisy_rows(seed, n=150, eta=eta)
        answer = fit(X, y)
        covered.append(np.abs(answer.coef - w) <= 1.96 * answer.standard_errors)
        scales.append(answer.scale)
    assert 0.88 <= np.mean(covered) <= 0.99
    assert np.mean(scales) == pytest.approx(0.1, rel=0.1)


# ---- the contract


def test_progress_is_reported_and_the_limit_is_a_status() -> None:
    X, y, _, _ = noisy_rows(11)
    seen: list[Progress] = []
    assert fit(X, y, callback=seen.append).status is Status.CONVERGED
    assert {"concentration", "robust regression"} <= {progress.task for progress in seen}
    limited = fit(X, y, max_iter=1)
    assert_sane(limited, X, y)
    assert limited.status is Status.ITERATION_LIMIT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[np.nan, 1.0]]}, "X must be finite"),
        ({"X": []}, "X must"),
        ({"y": [1.0, np.nan]}, "y must be finite, got NaN at row 1"),
        ({"y": [1.0]}, "y has 1 rows"),
        ({"y": [[1.0], [2.0]]}, "y must have shape"),
        ({"sample_weight": [1.0, -1.0]}, "sample_weight must not be negative"),
        ({"starts": [[1.0, 2.0, 3.0]]}, "starts\\[0\\]"),
        ({"starts": [[1.0, np.inf]]}, "starts\\[0\\]"),
        ({"rng": 0}, "rng must be"),
        ({"tol": 0.0}, "tol must"),
        ({"max_iter": 0}, "max_iter must"),
    ],
)
def test_bad_input_is_named(change, message) -> None:
    arguments = {"X": [[1.0, 2.0], [3.0, 4.0]], "y": [1.0, 2.0], "rng": np.random.default_rng(0)} | change
    with pytest.raises(ValueError, match=message):
        robust_regression(**arguments)
