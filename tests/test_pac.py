"""Appendix B to the letter, and the certified learner with its bounds."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from bench_pac import learn
from massart.certificate import Verdict, largest_share_outside, most_wrong
from massart.l1 import l1_regression
from massart.paper import (
    MassartNoise,
    OutlierStatus,
    PACLearningStatus,
    decoy,
    flip,
    gaussian,
    linear_labels,
    pac_learn,
    remove_outliers,
)
from massart.paper.pac import SHARPNESS
from massart.recover import PACStatus, learn_pac
from row_families import cauchy, elliptical_cauchy, integers, planted_subspace

SAMPLERS = [gaussian, cauchy, elliptical_cauchy, integers]


def largest_ratio(X, weights=None):
    """The largest outlier ratio of the rows, by eigenvalues: no code in common with the package."""
    weights = np.ones(len(X)) if weights is None else weights
    M = (X * weights[:, None]).T @ X / weights.sum()
    values, axes = np.linalg.eigh(M)
    good = values > 1e-12 * values[-1] if values[-1] > 0 else np.zeros(len(values), dtype=bool)
    return (((X @ axes[:, good]) ** 2) / values[good]).sum(axis=1).max(initial=0.0)


# Outlier removal


@given(st.sampled_from(SAMPLERS), st.floats(0.01, 0.4), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_no_outlier_is_left_inside(sampler, alpha, seed):
    rng = np.random.default_rng(seed)
    X = sampler(int(rng.integers(2, 200)), int(rng.integers(1, 6)), rng)
    removal = remove_outliers(X, alpha=alpha)
    inside = X[removal.inside]
    assert removal.share == removal.inside.mean() >= 1 - alpha - 1e-12
    assert_allclose(removal.ratio, largest_ratio(inside), rtol=1e-6)
    assert removal.ratio <= removal.share * removal.beta
    directions = rng.standard_normal((200, X.shape[1]))
    squares = (inside @ directions.T) ** 2
    assert np.all(squares.max(axis=0) <= removal.ratio * squares.mean(axis=0) * (1 + 1e-9))
    assert_array_equal(removal.ratios(X) <= removal.share * removal.beta, removal.inside)


@given(st.sampled_from([cauchy, integers]), st.integers(1, 3), st.integers(0, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_no_set_beats_the_lower_bound(sampler, d, may_go, seed):
    X = sampler(9, d, np.random.default_rng(seed))
    alpha = (may_go + 0.1) / 9
    removal = remove_outliers(X, alpha=alpha)
    sizes = range(9 - may_go, 10)
    best = min(largest_ratio(X[list(kept)]) for size in sizes for kept in combinations(range(9), size))
    assert removal.lower_bound <= best * (1 + 1e-9)
    assert best <= removal.ratio * (1 + 1e-9)
    assert removal.ratio <= SHARPNESS * removal.lower_bound / (1 - alpha) * (1 + 1e-9)


@given(st.sampled_from(SAMPLERS), st.floats(1.05, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_the_order_of_removal_does_not_matter_and_sets_are_nested(sampler, factor, seed):
    rng = np.random.default_rng(seed)
    X = sampler(60, 3, rng)
    beta = 3 * factor
    keep = np.ones(60, dtype=bool)
    while keep.any():
        ratios = np.einsum("ij,jk,ik->i", X, np.linalg.pinv(X[keep].T @ X[keep] / 60, 1e-12, hermitian=True), X)
        out = np.flatnonzero(keep & (ratios > beta))
        if not len(out):
            break
        keep[rng.choice(out)] = False  # one at a time, any of them
    assert_array_equal(remove_outliers(X, alpha=0.5, beta=beta).inside, keep)
    wider = remove_outliers(X, alpha=0.5, beta=1.2 * beta)
    assert np.all(wider.inside[keep])


def test_a_given_beta_is_kept_to_however_many_rows_it_removes():
    X = cauchy(1000, 6, np.random.default_rng(0))
    printed = remove_outliers(X, alpha=0.025, beta=6 * 53 / 0.025)  # d b / alpha, with constant one
    assert printed.status is OutlierStatus.WHOLE
    assert printed.lower_bound == 0
    best = remove_outliers(X, alpha=0.025)
    assert_array_equal(remove_outliers(X, alpha=0.025, beta=best.beta).inside, best.inside)
    beta = best.beta / 1.2
    few = remove_outliers(X, alpha=0.025, beta=beta)
    assert few.status is OutlierStatus.BEYOND_ALPHA
    assert 0 < few.share < 0.975
    assert_allclose(few.ratio, largest_ratio(X[few.inside]))
    assert few.ratio <= beta == few.beta
    assert few.lower_bound == pytest.approx(0.975 * beta)
    assert few.lower_bound <= best.ratio
    assert not remove_outliers(X, alpha=0.025, beta=1.0).inside.any()  # the mean ratio is the rank


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
def test_units_do_not_matter(scale):
    X = cauchy(200, 4, np.random.default_rng(0))
    before = remove_outliers(X, alpha=0.1)
    for after in (remove_outliers(X * scale, alpha=0.1), remove_outliers(X * [1, scale, 1, 1], alpha=0.1)):
        assert_array_equal(before.inside, after.inside)
        assert_allclose(before.ratio, after.ratio, rtol=1e-9)
    assert_array_equal(after.ratios(X * [1, scale, 1, 1]) <= after.share * after.beta, after.inside)


def test_rows_off_a_subspace_that_are_few_are_outliers():
    planted = planted_subspace(400, 6, 3, 390, np.random.default_rng(0))
    removal = remove_outliers(planted.X, alpha=0.05)
    assert removal.subspace.shape == (6, 3)
    assert not removal.inside[~planted.inside].any()
    assert_array_equal(removal.spans(planted.X), planted.inside)
    assert_allclose(removal.subspace @ (removal.subspace.T @ planted.basis), planted.basis, atol=1e-12)
    images = planted.X[removal.inside] @ removal.subspace @ removal.matrix.T
    assert_allclose(images.T @ images / len(images), np.eye(3), atol=1e-10)


def test_a_row_that_dwarfs_the_others_hides_none_of_them():
    X = gaussian(50, 4, np.random.default_rng(0))
    X[7] *= 1e100
    few = remove_outliers(X, alpha=0.001)
    assert few.status is OutlierStatus.WHOLE
    assert few.ratio == pytest.approx(50)  # it is all of the second moment in its direction
    assert few.subspace.shape == (4, 4)
    some = remove_outliers(X, alpha=0.1)
    assert not some.inside[7]
    assert_allclose(some.ratio, largest_ratio(X[some.inside]), rtol=1e-9)


def test_whole_weights_repeat_rows_and_zero_weights_remove_them():
    rng = np.random.default_rng(0)
    X = cauchy(150, 3, rng)
    weights = rng.integers(0, 4, 150)
    weighted = remove_outliers(X, alpha=0.1, sample_weight=weights)
    repeated = remove_outliers(X.repeat(weights, axis=0), alpha=0.1)
    assert_array_equal(weighted.inside.repeat(weights), repeated.inside)
    assert_allclose([weighted.ratio, weighted.share], [repeated.ratio, repeated.share], rtol=1e-9)
    judged = weighted.ratios(X) <= weighted.share * weighted.beta
    assert_array_equal(judged, weighted.inside)  # rows of weight zero, too


def test_zero_rows_are_inside_and_count():
    X = np.zeros((100, 3))
    X[:10, 0] = 1
    assert remove_outliers(X, alpha=0.05).ratio == pytest.approx(10)
    removal = remove_outliers(X, alpha=0.2)
    assert (removal.ratio, removal.subspace.shape, removal.share) == (0, (3, 0), 0.9)
    nothing = remove_outliers(np.zeros((5, 2)), alpha=0.2)
    assert nothing.status is OutlierStatus.WHOLE
    assert nothing.ratio == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, "alpha must be between 0 and 1, got 0.0"),
        ({"alpha": 1.0}, "alpha must be between 0 and 1"),
        ({"alpha": np.nan}, "alpha must be between 0 and 1"),
        ({"alpha": 0.1, "tol": 2.0}, "tol must be between 0 and 1"),
        ({"alpha": 0.1, "beta": 0.0}, "beta must be positive and finite, got 0.0"),
        ({"alpha": 0.1, "beta": np.nan}, "beta must be positive and finite, got nan"),
        ({"alpha": 0.1, "sample_weight": [1.0]}, "sample_weight must have shape"),
    ],
)
def test_bad_arguments_of_outlier_removal(arguments, message):
    with pytest.raises(ValueError, match=message):
        remove_outliers(np.eye(3), **arguments)
    with pytest.raises(ValueError, match="X has 2 columns but the ellipsoid has 3"):
        remove_outliers(np.eye(3), alpha=0.1).ratios(np.eye(2))


# Theorem B.1


def appendix_b(X, y, beta):
    """Appendix B, from L1 regression and numpy alone."""
    inside = np.ones(len(X), dtype=bool)
    while True:
        M = X[inside].T @ X[inside] / len(X)
        ratios = np.einsum("ij,jk,ik->i", X, np.linalg.pinv(M, rcond=1e-12, hermitian=True), X)
        if not (inside & (ratios > beta)).any():
            return inside, l1_regression(X[inside], y[inside]).coef
        inside &= ratios <= beta


def smallest_beta(X, alpha):
    """The smallest beta that removes at most alpha: rows go one at a time, the largest ratio first."""
    left, smallest = X, np.inf
    while len(left) >= (1 - alpha) * len(X):
        M = left.T @ left / len(X)
        ratios = np.einsum("ij,jk,ik->i", left, np.linalg.pinv(M, rcond=1e-12, hermitian=True), left)
        smallest = min(smallest, ratios.max())
        left = np.delete(left, np.argmax(ratios), axis=0)
    return smallest


def rows_of_a_subspace(n, d, rng):
    return planted_subspace(n, d, 2, n - 5, rng).X


@given(st.sampled_from([*SAMPLERS, rows_of_a_subspace]), st.floats(0.02, 0.4), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_appendix_b_in_fifteen_lines(sampler, epsilon, seed):
    rng = np.random.default_rng(seed)
    X = sampler(200, 4, rng)
    w = rng.standard_normal(4)
    y = MassartNoise(0.3, flip(w, linear_labels)).corrupt(X, X @ w, rng).labels
    learned = pac_learn(X, y, epsilon)
    smallest = smallest_beta(X, epsilon / 2)
    assert smallest * (1 - 1e-6) <= learned.removal.beta <= SHARPNESS * smallest * (1 + 1e-6)
    inside, v = appendix_b(X, y, learned.removal.beta)
    assert_array_equal(learned.removal.inside, inside)
    span = learned.removal.spans(X)
    assert np.all(span[inside])
    assert np.all(np.abs(X[span] @ (learned.w - v)) <= 1e-9 * (np.abs(X[span]) @ np.abs(w)))


def test_theorem_b1_where_w_is_open():
    """Three of six columns are used by one row in a hundred, and rows differ in size by many orders."""

    def draw(n, rng):
        X = rng.standard_normal((n, 6)) * np.exp(3 * rng.standard_normal((n, 1)))
        X[:, 3:] = 0
        X[rng.random(n) < 0.01] = rng.integers(-9, 10, 6)
        return X

    tables = open_tables = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, fresh = draw(800, rng), draw(20_000, rng)
        w = rng.integers(-5, 6, 6).astype(float)
        y = MassartNoise(0.35, decoy(rng.standard_normal(6), linear_labels)).corrupt(X, X @ w, rng).labels
        learned = pac_learn(X, y, 0.05)
        assert learned.removal.share >= 0.975
        wrong = np.abs(fresh @ (learned.w - w)) > 1e-9 * (np.abs(fresh) @ np.abs(w))
        assert wrong.mean() <= 0.05
        open_tables += np.abs(learned.w - w).max() > 0.1
        tables += 1
    assert tables == 20
    assert open_tables >= 15, "w itself is wrong where hardly any row tells"


@pytest.mark.parametrize(
    ("columns", "options", "status"),
    [
        ([1, 1, 1], {}, PACLearningStatus.UNIQUE),
        ([1, 1, 0], {}, PACLearningStatus.SUBSPACE),
        ([1, 1, 1], {"beta": 9.5}, PACLearningStatus.BEYOND_ALPHA),
    ],
)
def test_what_was_reached_is_a_status(columns, options, status):
    X = gaussian(300, 3, np.random.default_rng(0)) * columns
    y = X @ [1.0, 2, 3]
    y[::3] = 7
    learned = pac_learn(X, y, 0.05, **options)
    assert learned.status is status
    assert_allclose(X @ learned.w, X @ [1.0, 2, 3], atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be between 0 and 1, got 0.0"),
        ({"epsilon": np.nan}, "epsilon must be between 0 and 1"),
        ({"y": np.ones(3)}, r"y must have shape \(4,\), got \(3,\)"),
        ({"y": np.ones((4, 2))}, r"y must have shape \(4,\), got \(4, 2\)"),
        ({"sample_weight": [1.0]}, "sample_weight must have shape"),
    ],
)
def test_bad_arguments_of_theorem_b1(arguments, message):
    with pytest.raises(ValueError, match=message):
        pac_learn(**({"X": np.ones((4, 2)), "y": np.ones(4), "epsilon": 0.1} | arguments))


# The bounds


@given(st.integers(1, 40), st.floats(0.01, 0.5), st.floats(1e-4, 0.3))
def test_most_wrong_is_the_quantile_of_a_binomial(n, eta, delta):
    def above(q):
        return sum(comb(n, i) * eta**i * (1 - eta) ** (n - i) for i in range(q + 1, n + 1))

    q = most_wrong(n, eta, delta)
    assert above(q) <= delta * (1 + 1e-9)
    assert q == 0 or above(q - 1) >= delta * (1 - 1e-9)


@pytest.mark.slow
@given(st.integers(1, 40), st.data(), st.floats(1e-4, 0.3))
def test_the_share_outside_is_the_bound_of_clopper_and_pearson(n, data, delta):
    outside = data.draw(st.integers(0, n - 1))
    p = largest_share_outside(outside, n, delta)
    as_few = sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(outside + 1))
    assert as_few == pytest.approx(delta, rel=1e-6)
    assert largest_share_outside(n, n, delta) == 1


# The certified learner


@pytest.mark.full(every=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "adversary"),
    [
        ("subspaces", "decoy"),
        ("subspaces", "far constant"),
        ("subspaces", "flip"),
        ("integer subspaces", "flip"),
        ("rare directions", "decoy"),
        ("one-hot 8", "far constant"),
        ("dummies 6, 5, 4", "flip"),
    ],
)
def test_the_promise_holds_on_fresh_rows_and_the_reported_epsilon_is_honest(name, adversary):
    results = [learn(name, adversary, 1500, 0.35, told=seed % 2 == 0, seed=seed) for seed in range(5)]
    assert sum(error <= 0.05 for _, error in results) >= 4
    assert sum(error <= found.achieved for found, error in results) >= 4
    assert all((found.status is PACStatus.SHORT) == (found.achieved > 0.05) for found, _ in results)
    assert any(found.achieved < 1 for found, _ in results), "something is claimed"


@pytest.mark.slow
def test_every_number_of_a_result_can_be_recomputed():
    found, _ = learn("subspaces", "decoy", 2000, 0.4, told=True, seed=0)
    assert found.status is PACStatus.PROVEN
    assert sum(piece.n_rows for piece in found.pieces) == 2000
    assert sum(piece.n_agree for piece in found.pieces) == found.agree.sum()
    for piece in found.pieces:
        assert piece.verdict.certain
        assert piece.n_agree > piece.n_wrong
        k = piece.subspace.shape[1]
        assert_allclose(piece.subspace.T @ piece.subspace, np.eye(k), atol=1e-12)
    assert [piece.subspace.shape[1] for piece in found.pieces] == [2, 6, 8]
    assert "errs on at most" in found.explain()


@pytest.mark.slow
def test_a_subspace_off_which_a_formula_is_wrong_is_not_counted():
    """90 % of the rows in a plane, labels beyond it at random: most rows agree, and the tenth is not claimed."""
    rng = np.random.default_rng(0)
    planted = planted_subspace(1000, 5, 2, 900, rng)
    w = rng.standard_normal(5)
    y = planted.X @ w
    y[~planted.inside] = rng.standard_normal(100)
    found = learn_pac(planted.X, y, 0.05, eta=0.4, rng=rng)
    assert found.status is PACStatus.SHORT
    assert found.pieces[-1].verdict is Verdict.PLURALITY
    assert 0.1 < found.achieved < 0.2
    assert learn_pac(planted.X, y, 0.2, eta=0.4, rng=rng).status is PACStatus.PROVEN


def test_products_are_exact_where_coefficients_are_open():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 10))
    w = rng.standard_normal(10)
    y = MassartNoise(0.35, flip(w, linear_labels)).corrupt(X, X @ w, rng).labels
    found = learn_pac(X, y, 0.05, eta=0.35, rng=rng)
    assert found.status is PACStatus.PROVEN
    assert_allclose(X @ found.coef, X @ w, atol=1e-11)
    assert found.certificate.verdict.stands
    assert (found.certificate.rank, found.certificate.undetermined.shape) == (3, (10, 7))
    assert_allclose(X[found.agree] @ found.certificate.undetermined, 0, atol=1e-11)


def test_the_rows_that_bound_the_share_did_not_choose_the_subspace():
    """Rows in general position, as many as columns: they span everything they show and nothing they do not."""
    rng = np.random.default_rng(0)
    X = gaussian(20, 40, rng)
    found = learn_pac(X, X @ rng.standard_normal(40), 0.05, rng=rng)
    assert found.status is PACStatus.SHORT
    assert found.achieved == 1


def test_zero_rows_are_always_right():
    found = learn_pac(np.zeros((400, 2)), np.zeros(400), 0.05, rng=np.random.default_rng(0))
    assert_array_equal(found.coef, [0, 0])
    assert found.achieved < 0.03


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be between 0 and 1, got 0.0"),
        ({"epsilon": 1.0}, "epsilon must be between 0 and 1"),
        ({"epsilon": np.nan}, "epsilon must be between 0 and 1"),
        ({"eta": 0.5}, "eta must be at least 0 and below 1/2"),
        ({"eta": -0.1}, "eta must be at least 0"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1"),
        ({"tolerance": "loose"}, "tolerance must be"),
        ({"X": np.zeros((0, 2))}, "X must have at least one row"),
        ({"X": [[np.nan, 1.0]] * 4}, "X must be finite, got NaN at row 0, column 0"),
        ({"y": np.ones(3)}, "y has 3 rows but X has 4"),
        ({"y": np.ones((4, 2))}, r"y must have shape \(n,\), got \(4, 2\)"),
    ],
)
def test_bad_arguments_of_the_learner(arguments, message):
    good = {"X": np.ones((4, 2)), "y": np.ones(4), "epsilon": 0.1, "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=message):
        learn_pac(**(good | arguments))
