"""Outlier removal, the PAC learner and its bounds, sample sizes."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from bench_pac import learn, subspaces
from massart.certificate import Verdict
from massart.pac import (
    OutlierStatus,
    PACStatus,
    learn_pac,
    remove_outliers,
)
from massart.pac.coverage import largest_share_outside, most_wrong
from massart.pac.outliers import SHARPNESS
from massart.paper.noise import MassartNoise, flip, gaussian, linear_labels
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
def test_no_row_inside_is_an_outlier_in_any_direction(sampler, alpha, seed):
    rng = np.random.default_rng(seed)
    X = sampler(int(rng.integers(2, 200)), int(rng.integers(1, 6)), rng)
    removal = remove_outliers(X, alpha=alpha)
    inside = X[removal.inside]
    assert removal.share == removal.inside.mean() >= 1 - alpha - 1e-12
    assert_allclose(removal.ratio, largest_ratio(inside), rtol=1e-6)
    directions = rng.standard_normal((200, X.shape[1]))
    squares = (inside @ directions.T) ** 2
    assert np.all(squares.max(axis=0) <= removal.beta * squares.mean(axis=0) * (1 + 1e-9))
    assert_array_equal(removal.ratios(X) <= removal.beta, removal.inside)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_no_set_of_that_share_beats_the_lower_bound(seed):
    rng = np.random.default_rng(seed)
    X = cauchy(9, 2, rng)
    removal = remove_outliers(X, alpha=0.34)
    best = min(largest_ratio(X[list(kept)]) for size in (6, 7, 8, 9) for kept in combinations(range(9), size))
    assert removal.lower_bound <= best * (1 + 1e-9)
    assert best <= removal.ratio * (1 + 1e-9)
    assert removal.ratio <= SHARPNESS * removal.lower_bound / (1 - 0.34) * (1 + 1e-9)


@pytest.mark.slow
@given(st.sampled_from(SAMPLERS), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_removal_is_equivariant_to_linear_maps(sampler, seed):
    rng = np.random.default_rng(seed)
    X = sampler(80, 3, rng)
    A = np.linalg.qr(rng.standard_normal((3, 3)))[0] * np.exp(rng.uniform(-1, 1, 3))
    before, after = remove_outliers(X, alpha=0.1), remove_outliers(X @ A, alpha=0.1)
    assert_array_equal(before.inside, after.inside)
    assert_allclose(before.ratio, after.ratio, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
def test_units_do_not_matter(scale):
    X = cauchy(200, 4, np.random.default_rng(0))
    before = remove_outliers(X, alpha=0.1)
    for after in (remove_outliers(X * scale, alpha=0.1), remove_outliers(X * [1, scale, 1, 1], alpha=0.1)):
        assert_array_equal(before.inside, after.inside)
        assert_allclose(before.ratio, after.ratio, rtol=1e-9)
    assert_array_equal(after.ratios(X * [1, scale, 1, 1]) <= after.beta, after.inside)


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
    assert_array_equal(weighted.ratios(X) <= weighted.beta, weighted.inside)  # rows of weight zero are judged


def test_rows_of_weight_zero_do_not_span():
    X = np.array([[1.0, 0], [2, 0], [3, 0], [0, 1]])
    removal = remove_outliers(X, alpha=0.1, sample_weight=[1, 1, 1, 0])
    assert removal.subspace.shape == (2, 1)
    assert_array_equal(removal.inside, [True, True, True, False])


def test_zero_rows_are_inside_and_count():
    X = np.zeros((100, 3))
    X[:10, 0] = 1
    assert remove_outliers(X, alpha=0.05).ratio == pytest.approx(10)
    removal = remove_outliers(X, alpha=0.2)
    assert (removal.ratio, removal.subspace.shape, removal.share) == (0, (3, 0), 0.9)
    nothing = remove_outliers(np.zeros((5, 2)), alpha=0.2)
    assert nothing.status is OutlierStatus.WHOLE
    assert nothing.ratio == 0


def test_fewer_rows_than_columns_span_what_they_span():
    X = gaussian(3, 7, np.random.default_rng(0))
    removal = remove_outliers(X, alpha=0.1)
    assert removal.subspace.shape == (7, 3)
    assert removal.ratio == pytest.approx(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, "alpha must be between 0 and 1, got 0.0"),
        ({"alpha": 1.0}, "alpha must be between 0 and 1"),
        ({"alpha": np.nan}, "alpha must be between 0 and 1"),
        ({"alpha": 0.1, "tol": 2.0}, "tol must be between 0 and 1"),
        ({"alpha": 0.1, "sample_weight": [1.0]}, "sample_weight must have shape"),
    ],
)
def test_bad_arguments_of_outlier_removal(arguments, message):
    with pytest.raises(ValueError, match=message):
        remove_outliers(np.eye(3), **arguments)
    with pytest.raises(ValueError, match="X has 2 columns but the ellipsoid has 3"):
        remove_outliers(np.eye(3), alpha=0.1).ratios(np.eye(2))


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


# The learner


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


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_learning_does_not_depend_on_units(scale):
    rng = np.random.default_rng(0)
    X = subspaces(rng)(600, rng)
    w = rng.standard_normal(8)
    y = MassartNoise(0.3, flip(w, linear_labels)).corrupt(X, X @ w, rng).labels
    plain = learn_pac(X, y, 0.05, eta=0.3, rng=np.random.default_rng(1))
    for rows, labels in ((X * scale, y), (X, y * scale), (X * [1, 1, 1, scale, 1, 1, 1, 1], y)):
        scaled = learn_pac(rows, labels, 0.05, eta=0.3, rng=np.random.default_rng(1))
        assert_array_equal(scaled.agree, plain.agree)
        assert_allclose(scaled.achieved, plain.achieved)


def test_the_rows_that_bound_the_share_did_not_choose_the_subspace():
    """Rows in general position, as many as columns: they span everything they show and nothing they do not."""
    rng = np.random.default_rng(0)
    X = gaussian(20, 40, rng)
    found = learn_pac(X, X @ rng.standard_normal(40), 0.05, rng=rng)
    assert found.status is PACStatus.SHORT
    assert found.achieved == 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_claim_nothing(n):
    found = learn_pac(np.ones((n, 2)), np.ones(n), 0.05, rng=np.random.default_rng(0))
    assert found.achieved == 1


def test_zero_rows_are_always_right():
    found = learn_pac(np.zeros((400, 2)), np.zeros(400), 0.05, rng=np.random.default_rng(0))
    assert_array_equal(found.coef, [0, 0])
    assert found.achieved < 0.03


@pytest.mark.slow
def test_the_same_generator_gives_the_same_bytes():
    first, second = (learn("subspaces", "decoy", 400, 0.3, told=True, seed=3)[0] for _ in range(2))
    assert first.coef.tobytes() == second.coef.tobytes()
    assert first.achieved == second.achieved


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
