"""The search for a parameter that fits the most rows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.l1 import l1_regression
from massart.noise import (
    MassartNoise,
    decoy,
    far_constant,
    gaussian,
    linear,
    paper_adversary,
    paper_mixture,
    paper_weights,
    scale,
)
from massart.progress import Progress
from massart.search import Consensus, concentrate, improve_coordinates, search
from massart.search.concentration import least_squares


def consensus(X, y, weights=None, near=1e-8):
    lengths = np.linalg.norm(X, axis=1)
    weights = np.ones(len(y)) if weights is None else weights
    return Consensus(X / lengths[:, None], y / lengths, np.zeros(len(y)), near, weights, lengths)


def first_answer(problem):
    return l1_regression(problem.Z, problem.y, sample_weight=problem.weights).coef


def most_fitted(X, y):
    """Return the largest number of rows that one parameter fits, over all d-subsets that determine one."""
    best = 0
    for chosen in itertools.combinations(range(len(y)), X.shape[1]):
        rows = X[list(chosen)]
        if abs(np.linalg.det(rows)) > 1e-9:
            best = max(best, int((np.abs(y - X @ np.linalg.solve(rows, y[list(chosen)])) < 1e-9).sum()))
    return best


def test_counts_are_by_definition():
    rng = np.random.default_rng(0)
    problem = consensus(rng.standard_normal((20, 3)), rng.standard_normal(20), rng.random(20) + 0.5)
    W = rng.standard_normal((7, 3))
    W[3] = np.linalg.solve(problem.Z[:3], problem.y[:3])
    best = problem.best(W)
    expected = []
    for w in W:
        allowed = problem.slack + problem.near * (np.abs(problem.y) + np.linalg.norm(w))
        expected.append(problem.weights[np.abs(problem.y - problem.Z @ w) <= allowed].sum())
    assert best.agreement == pytest.approx(max(expected))
    np.testing.assert_array_equal(best.w, W[3])


def test_slack_counts_rounded_labels():
    X = np.random.default_rng(0).standard_normal((50, 2))
    problem = consensus(X, np.round(X @ [1.0, 2.0], 2))
    assert problem.best(np.array([[1.0, 2.0]])).agreement < 10
    generous = replace(problem, slack=0.005 / problem.lengths)
    assert generous.best(np.array([[1.0, 2.0]])).agreement == 50


def test_batched_least_squares_is_least_squares():
    rng = np.random.default_rng(0)
    Z, y = rng.standard_normal((6, 20, 4)), rng.standard_normal((6, 20))
    expected = [np.linalg.lstsq(rows, labels, rcond=None)[0] for rows, labels in zip(Z, y, strict=True)]
    np.testing.assert_allclose(least_squares(Z, y), expected, atol=1e-9)


def test_singular_sets_do_not_stop_the_others():
    Z = np.random.default_rng(0).standard_normal((2, 5, 3))
    Z[0] = 1.0
    W = least_squares(Z, Z @ np.array([1.0, 2.0, 3.0]))
    assert np.isfinite(W).all()
    np.testing.assert_allclose(W[1], [1, 2, 3], atol=1e-8)


def test_concentration_never_raises_the_trimmed_squares():
    rng = np.random.default_rng(0)
    problem = consensus(rng.standard_normal((60, 4)), rng.standard_normal(60))
    W = rng.standard_normal((1, 4))

    def trimmed(w):
        return float(np.sort(problem.residuals(w)[0] ** 2)[:35].sum())

    previous = trimmed(W)
    for _ in range(6):
        kept = np.argsort(problem.residuals(W)[0])[:35]
        W = least_squares(problem.Z[kept][None], problem.y[kept][None])
        assert trimmed(W) <= previous + 1e-9
        previous = trimmed(W)


def test_concentration_from_zero_finds_the_truth_among_gross_errors():
    rng = np.random.default_rng(1)
    X = gaussian(100, 10, rng)
    w = rng.standard_normal(10)
    y = MassartNoise(0.4, far_constant).corrupt(X, X @ w, rng).labels
    problem = consensus(X, y)
    found = concentrate(problem, np.zeros((1, 10)), 0.5, 15, enough=54.5)
    np.testing.assert_allclose(found.w, w, rtol=1e-8)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_search_finds_the_most_fitted_of_small_problems(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 12)), int(rng.integers(1, 4))
    X = rng.integers(-3, 4, (n, d)).astype(float)
    X = X[X.any(axis=1)]
    if len(X) < d or np.linalg.matrix_rank(X) < d:
        return
    y = np.where(rng.random(len(X)) < 0.6, X @ rng.integers(-2, 3, d), rng.integers(-9, 10, len(X))).astype(float)
    problem = consensus(X, y)
    found = search(problem, first_answer(problem), rng, enough=len(X))
    assert found.agreement >= most_fitted(X, y)


@pytest.mark.parametrize(
    ("eta", "rows", "adversary"),
    [(0.45, 120, "paper"), (0.25, 60, "paper"), (0.4, 240, "decoy"), (0.4, 240, "scale"), (0.4, 90, "constant")],
)
def test_search_recovers_where_l1_fails(eta, rows, adversary):
    recovered = plain = 0
    for seed in range(10):
        rng = np.random.default_rng([50, seed])
        w = paper_weights(30)
        X = paper_mixture(rows, 30, rng) if adversary == "paper" else gaussian(rows, 30, rng)
        chosen = {
            "paper": paper_adversary(w),
            "decoy": decoy(rng.permutation(w), linear),
            "scale": scale(1.1),
            "constant": far_constant,
        }[adversary]
        problem = consensus(X, MassartNoise(eta, chosen).corrupt(X, X @ w, rng).labels)
        first = first_answer(problem)
        found = search(problem, first, rng, enough=problem.unique)
        recovered += bool(np.allclose(found.w, w, rtol=1e-5))
        plain += bool(np.allclose(first, w, rtol=1e-5))
    assert recovered >= 9
    assert plain < recovered


def test_a_wrong_dummy_is_repaired():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(200), rng.integers(0, 2, 200), np.arange(200) < 20]).astype(float)
    w = np.array([1.0, 2.0, 3.0])
    y = X @ w
    y[:8] += 0.5  # of the twenty rows of the last dummy, eight are wrong together
    threshold = np.full(200, 1e-9)
    found = improve_coordinates(X, y, np.array([1.0, 2.0, 3.5]), threshold, np.ones(200))
    np.testing.assert_allclose(found, w, atol=1e-9)
    heavy = np.where(np.arange(200) < 8, 10.0, 1.0)  # by weight the eight rows are the majority of that dummy
    np.testing.assert_allclose(improve_coordinates(X, y, w, threshold, heavy), [1, 2, 3.5], atol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_changing_single_coefficients_never_loses_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (30, 4)).astype(float)
    y = X @ rng.integers(-3, 4, 4) + (rng.random(30) < 0.3) * rng.integers(1, 9, 30)
    start = rng.integers(-3, 4, 4).astype(float)
    threshold = np.full(30, 1e-6)
    found = improve_coordinates(X, y, start, threshold, np.ones(30))
    assert (np.abs(y - X @ found) <= threshold).sum() >= (np.abs(y - X @ start) <= threshold).sum()


def test_same_seed_same_answer():
    rng = np.random.default_rng(0)
    X = gaussian(60, 8, rng)
    problem = consensus(X, MassartNoise(0.45, scale(-1.0)).corrupt(X, X @ np.ones(8), rng).labels)
    one, other = (search(problem, first_answer(problem), np.random.default_rng(5), enough=60.0) for _ in range(2))
    assert one.w.tobytes() == other.w.tobytes()


def test_noise_ends_the_search_early_and_honestly():
    rng = np.random.default_rng(0)
    problem = consensus(rng.standard_normal((40, 3)), rng.standard_normal(40))
    seen: list[Progress] = []
    found = search(problem, first_answer(problem), rng, enough=problem.unique, callback=seen.append)
    assert found.agreement <= problem.chance
    assert seen
    assert seen[-1].residual > seen[-1].goal
