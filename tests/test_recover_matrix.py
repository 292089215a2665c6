"""Recovery of rows in memory by a linear formula: exact for any adversary, and honest where it cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.certificate import Verdict
from massart.isotropy import decompose
from massart.paper import algorithm_2
from massart.paper.noise import (
    MassartNoise,
    decoy,
    far_constant,
    flip,
    gaussian,
    gross,
    linear_labels,
    negate,
    paper_adversary,
    paper_mixture,
    paper_weights,
    scale,
    zero,
)
from massart.recover import recover_matrix
from massart.recover.polish import least_squares
from massart.rows import IDENTITY, RELU
from row_families import cauchy, dummy_table, integers_on_subspace, oppose, scaled_columns

ADVERSARIES = {
    "negate": lambda w, rng: negate(w),
    "flip": lambda w, rng: flip(w, linear_labels),
    "constant": lambda w, rng: far_constant,
    "zero": lambda w, rng: zero,
    "gross": lambda w, rng: gross(),
    "decoy": lambda w, rng: decoy(rng.standard_normal(w.size), linear_labels),
    "oppose": lambda w, rng: oppose(w, linear_labels),
    "1.1": lambda w, rng: scale(1.1),
    "-100": lambda w, rng: scale(-100.0),
}


def relative_error(found, w):
    return np.linalg.norm(found - w) / np.linalg.norm(w)


@pytest.mark.parametrize("eta", [0.15, 0.35])
def test_without_search_it_is_algorithm_2(eta):
    rng = np.random.default_rng(0)
    X, w = paper_mixture(120, 30, rng), paper_weights(30)
    y = MassartNoise(eta, paper_adversary(w)).corrupt(X, X @ w, rng).labels
    np.testing.assert_allclose(recover_matrix(X, y, search=False).coef, algorithm_2(X, y).w, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.sampled_from(sorted(ADVERSARIES)), st.floats(0, 0.3), st.integers(0, 2**32 - 1))
def test_recovery_is_exact_for_any_adversary(name, eta, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    X = [gaussian, cauchy, scaled_columns][int(rng.integers(3))](40 * d + 40, d, rng)
    w = rng.standard_normal(d)
    y = MassartNoise(eta, ADVERSARIES[name](w, rng)).corrupt(X, X @ w, rng).labels
    found = recover_matrix(X, y, rng=rng)
    # A column 1e8 times smaller than another has its coefficient from the last digits of the labels.
    assert np.abs(X @ (found.coef - w)).max() <= 1e-13 * (np.abs(X) @ np.abs(w)).max()
    assert found.certificate.verdict.stands
    np.testing.assert_array_equal(found.agree, np.abs(y - X @ w) <= 1e-12 * (np.abs(X) @ np.abs(w) + np.abs(y)))


def test_recovered_coefficients_are_right_to_the_last_digits():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = gaussian(300, 20, rng)
        w = rng.standard_normal(20)
        y = MassartNoise(0.35, gross()).corrupt(X, X @ w, rng).labels
        assert relative_error(recover_matrix(X, y).coef, w) <= 1e-13


@pytest.mark.slow
def test_heavy_subspaces_are_solved_level_by_level():
    for seed in range(5):
        planted = integers_on_subspace(500, 9, 3, 400, np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        w = rng.integers(-5, 6, 9).astype(float)
        y = MassartNoise(0.25, scale(-1.0)).corrupt(planted.X, planted.X @ w, rng).labels
        found = recover_matrix(planted.X, y)
        assert len(decompose(planted.X)) > 1
        np.testing.assert_allclose(found.coef, w, atol=1e-10)
        assert found.certificate.verdict.stands


def test_a_false_majority_on_a_subspace_is_not_claimed():
    """90 % of the rows in a plane: a formula right there and wrong beyond fits a majority of all rows."""
    planted = integers_on_subspace(400, 6, 3, 360, np.random.default_rng(0))
    X = planted.X
    w = np.array([1.0, -2, 3, 4, -5, 6])
    rng = np.random.default_rng(1)
    y = X @ w
    outside = ~planted.inside
    y[outside] = rng.integers(-40, 40, outside.sum())
    found = recover_matrix(X, y)
    assert 2 * found.agree.sum() > len(y)
    assert not found.certificate.verdict.stands
    assert found.certificate.support.alpha < 0.5


def test_dummies_and_constants():
    rng = np.random.default_rng(0)
    X = dummy_table(2000, [6, 5, 4], rng)
    w = rng.integers(-20, 20, X.shape[1]).astype(float)
    y = MassartNoise(0.4, scale(1.1)).corrupt(X, X @ w, rng).labels
    found = recover_matrix(X, y)
    np.testing.assert_allclose(found.coef, w, atol=1e-10)


def test_more_than_half_wrong_is_not_claimed():
    rng = np.random.default_rng(0)
    X = gaussian(200, 5, rng)
    w = rng.standard_normal(5)
    y = X @ w
    y[:120] = rng.standard_normal(120) * 10
    found = recover_matrix(X, y)
    assert relative_error(found.coef, w) < 1e-9
    assert found.certificate.verdict is Verdict.PLURALITY


def test_contradicting_duplicates_follow_the_majority():
    X = np.repeat(gaussian(30, 3, np.random.default_rng(0)), 5, axis=0)
    y = X @ [1.0, 2.0, 3.0]
    y[::5] += 7.0
    y[1::5] -= 3.0
    np.testing.assert_allclose(recover_matrix(X, y).coef, [1, 2, 3], rtol=1e-12)


def test_undetermined_columns_are_named():
    rng = np.random.default_rng(0)
    X = gaussian(60, 3, rng)
    X = np.column_stack([X, 2 * X[:, 0]])
    found = recover_matrix(X, X[:, :3] @ [1.0, 2.0, 3.0])
    assert found.certificate.verdict is Verdict.PROVEN
    assert (found.certificate.undetermined_columns, found.certificate.rank) == (((0, 3),), 3)
    np.testing.assert_allclose(X @ found.certificate.undetermined, 0, atol=1e-12)
    assert found.agree.all()


def test_weights_count():
    rng = np.random.default_rng(0)
    X = gaussian(60, 3, rng)
    y = X @ [1.0, 2.0, 3.0]
    y[:40] = X[:40] @ [3.0, -1.0, 0.0]
    weights = np.where(np.arange(60) < 40, 1.0, 4.0)
    np.testing.assert_allclose(recover_matrix(X, y).coef, [3, -1, 0], atol=1e-10)
    found = recover_matrix(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.coef, [1, 2, 3], rtol=1e-12)
    assert found.certificate.n_rows == 120


@pytest.mark.slow
def test_rounded_labels_need_the_looser_tolerance_and_get_it():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 100, (300, 3))
    y = np.round(X @ [0.421, 1.534, 2.077], 2)
    y[:100] *= 1.1
    for tolerance in ("auto", 0.005):
        found = recover_matrix(X, y, tolerance=tolerance)
        assert found.agreement.label == 0.005
        np.testing.assert_array_equal(found.agree, np.arange(300) >= 100)
        assert relative_error(found.coef, np.array([0.421, 1.534, 2.077])) < 1e-4


@pytest.mark.slow
def test_regression_equivariance():
    rng = np.random.default_rng(0)
    X = gaussian(100, 4, rng)
    y = MassartNoise(0.3, far_constant).corrupt(X, X @ [1.0, 2.0, 3.0, 4.0], rng).labels
    base = recover_matrix(X, y).coef
    B = rng.standard_normal((4, 4))
    np.testing.assert_allclose(recover_matrix(X, y + X @ [5.0, -1.0, 0.0, 2.0]).coef, base + [5, -1, 0, 2], atol=1e-9)
    np.testing.assert_allclose(recover_matrix(X, 1000 * y).coef, 1000 * base, rtol=1e-9)
    np.testing.assert_allclose(B @ recover_matrix(X @ B, y).coef, base, atol=1e-8)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        pytest.param(np.arange(1.0, 7)[:, None], np.zeros(6), id="labels all zero"),
        pytest.param(np.ones((5, 1)), [1.0, 1, 2, 1, 1], id="constant"),
        pytest.param(np.random.default_rng(0).standard_normal((3, 5)), [1.0, 2.0, 3.0], id="fewer rows than columns"),
        pytest.param(np.random.default_rng(0).standard_normal((5, 5)), np.arange(5.0), id="as many"),
        pytest.param(np.zeros((4, 2)), [0.0, 0, 0, 1], id="zero rows"),
        pytest.param(1e150 * np.random.default_rng(0).standard_normal((30, 2)), np.full(30, 3.0), id="huge"),
    ],
)
def test_odd_tables_get_an_honest_answer(X, y):
    found = recover_matrix(X, y)
    assert np.isfinite(found.coef).all()
    np.testing.assert_array_equal(found.agree, found.agreement.agree(X, np.asarray(y), found.coef))
    assert found.certificate.verdict is Verdict.NONE or found.agree.sum() > found.certificate.rank


def test_least_squares_survives_scales():
    X = np.random.default_rng(0).standard_normal((20, 3)) * [1e120, 1, 1e-120]
    w = np.array([1e-120, 2, 3e120])
    np.testing.assert_allclose(least_squares(X, X @ w), w, rtol=1e-13)


@pytest.mark.parametrize("link", [IDENTITY, RELU], ids=["linear", "ReLU"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [1.0, np.nan, 1.0]}, "y must be finite, got NaN at row 1"),
        ({"X": [[1.0, 2], [3, np.inf], [0, 1]]}, "X must be finite, got inf at row 1, column 1"),
        ({"X": np.ones(3)}, "X must be a matrix"),
        ({"y": np.ones((3, 2))}, "y must have shape"),
        ({"y": [1.0]}, "y has 1 rows but X has 3"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": "loose"}, "tolerance"),
        ({"sample_weight": [0.0, 0, 0]}, "sample_weight"),
        ({"sample_weight": [1.0, 1]}, "sample_weight must have shape"),
    ],
)
def test_bad_input_is_named(arguments, message, link):
    with pytest.raises(ValueError, match=message):
        recover_matrix(**{"X": np.eye(3), "y": np.ones(3), **arguments}, link=link)


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_columns_without_effect_agree_with_a_label_of_zero(seed):
    """Least squares leaves 1e-18 for a coefficient of 0, and a row of that column alone has a size as small."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 3))
    X[:100, [0, 2]] = 0
    y = X @ [1.0, 0, -2]
    y[::5] = 7.3
    found = recover_matrix(X, y)
    assert found.coef[1] == 0
    np.testing.assert_array_equal(found.agree, y != 7.3)
