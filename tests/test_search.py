"""The search for a parameter that fits the most rows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linear_cases import Cell, relative_error
from massart.isotropy import radial_isotropy
from massart.l1 import l1_regression
from massart.paper.noise import (
    MassartNoise,
    decoy,
    far_constant,
    gaussian,
    linear_labels,
    paper_adversary,
    paper_mixture,
    paper_weights,
    relu_labels,
    scale,
)
from massart.rows import Progress
from massart.search import (
    Consensus,
    Limits,
    alternate,
    concentrate,
    improve_coordinates,
    search,
)


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


def test_concentration_from_zero_finds_the_truth_among_gross_errors():
    rng = np.random.default_rng(1)
    X = gaussian(100, 10, rng)
    w = rng.standard_normal(10)
    y = MassartNoise(0.4, far_constant).corrupt(X, X @ w, rng).labels
    problem = consensus(X, y)
    found = concentrate(problem, np.zeros((1, 10)), 0.5, 15, enough=54.5)
    np.testing.assert_allclose(found.w, w, rtol=1e-8)


@pytest.mark.slow
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


@pytest.mark.full(first=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("eta", "rows", "adversary"),
    [(0.45, 120, "paper"), (0.25, 60, "paper"), (0.4, 240, "decoy"), (0.4, 240, "scale"), (0.4, 120, "constant")],
)
def test_search_recovers_where_l1_fails(eta, rows, adversary):
    recovered = plain = 0
    for seed in range(10):
        rng = np.random.default_rng([50, seed])
        w = paper_weights(30)
        X = paper_mixture(rows, 30, rng) if adversary == "paper" else gaussian(rows, 30, rng)
        chosen = {
            "paper": paper_adversary(w),
            "decoy": decoy(rng.permutation(w), linear_labels),
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


@pytest.mark.slow
def test_short_rows_are_drawn_more_often_where_long_ones_are_wrong():
    """The paper's adversary answers where rows are long: fits of rows that are drawn alike find these truths late."""
    cell = Cell(60, 30, 0.3)
    recovered = 0
    for trial in (5, 14, 25, 27, 48, 65, 79, 86):
        table = cell.table(trial)
        position = radial_isotropy(table.X)
        basis = position.subspace @ position.matrix.T
        problem = consensus(table.X @ basis, table.y)
        found = search(problem, first_answer(problem), np.random.default_rng(trial), enough=problem.unique, rounds=1)
        recovered += relative_error(basis @ found.w, table.truth) < 1e-5
    assert recovered >= 7  # none of these tables without the preference


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


@pytest.mark.slow
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


def flags_and_counts(rng, n, d):
    return np.column_stack([rng.integers(0, 2, (n, d - 3)), rng.poisson(3.0, (n, 2)), np.ones(n)]).astype(float)


def test_labels_that_are_never_repeated_agree_by_chance_with_no_more_than_k_rows_and_one():
    rng = np.random.default_rng(0)
    problem = consensus(rng.standard_normal((40, 3)), rng.standard_normal(40), rng.integers(1, 4, 40).astype(float))
    assert problem.accidents == problem.chance


@pytest.mark.full(first=2)
@pytest.mark.slow
@pytest.mark.parametrize("law", ["poisson(1.5)", "integers(1, 6)", "poisson(20)", "binomial(1, 0.4)"])
def test_labels_without_a_rule_give_nothing_but_accidents(law):
    rng = np.random.default_rng(0)
    name, arguments = law.rstrip(")").split("(")
    for _ in range(5):
        X = flags_and_counts(rng, 120, 10)
        y = getattr(rng, name)(*map(float, arguments.split(",")), size=120).astype(float)
        problem = consensus(X, y)
        found = search(problem, first_answer(problem), rng, enough=np.inf, rounds=3)
        assert found.agreement > problem.chance, "few values agree more often than any k rows"
        assert problem.is_accident(found)
        one_sided = limited(X, y)
        assert one_sided.is_accident(search(one_sided, first_answer(problem), rng, enough=np.inf, rounds=3))


@pytest.mark.parametrize("clip", [False, True])
def test_a_rule_is_no_accident_and_none_ends_the_search_after_a_round(clip):
    rng = np.random.default_rng(1)
    X = flags_and_counts(rng, 150, 10)
    w = np.array([3.0, -2, 1, 2, -1, 4, 1, 2, -3, 1])
    y = np.where(rng.random(150) < 0.4, rng.permutation(X @ w), X @ w)
    for labels in (y, rng.permutation(y)):
        problem = limited(X, np.maximum(labels, 0)) if clip else consensus(X, labels)
        assert problem.is_accident(problem.best(w[None])) == (labels is not y)
    seen: list[Progress] = []
    search(problem, np.zeros(10), rng, enough=problem.unique, callback=seen.append)
    assert 0 < len(seen) <= 8


# --- limits ---


def limited(X, y, lower=0.0, upper=np.inf, weights=None):
    """Return the consensus of labels that are clipped at two limits, scaled with their rows."""
    problem = consensus(X, y, weights)
    limits = Limits(lower / problem.lengths, upper / problem.lengths, (y > lower) & (y < upper))
    return replace(problem, limits=limits)


def relu_problem(seed, n=200, d=4, eta=0.3, weights=None):
    rng = np.random.default_rng(seed)
    X = gaussian(n, d, rng)
    w = rng.standard_normal(d)
    y = MassartNoise(eta, decoy(rng.standard_normal(d), relu_labels)).corrupt(X, relu_labels(X, w), rng).labels
    return limited(X, y, weights=weights), w


def test_limits_clip_the_products_and_count_by_definition():
    rng = np.random.default_rng(0)
    X = gaussian(60, 3, rng)
    w = np.array([1.0, -2.0, 0.5])
    y = np.clip(X @ w, -1, 1.5)
    y[:20] = rng.uniform(-1, 1.5, 20)
    problem = limited(X, y, -1.0, 1.5, weights=rng.integers(1, 4, 60).astype(float))
    W = np.vstack([rng.standard_normal((5, 3)), w])
    residuals = np.abs(y - np.clip(W @ X.T, -1, 1.5)) / problem.lengths
    np.testing.assert_allclose(problem.residuals(W), residuals, atol=1e-13)
    products = W @ X.T
    np.testing.assert_array_equal(problem.limits.active(W @ problem.Z.T), (products > -1) & (products < 1.5))
    best = problem.best(W)
    np.testing.assert_array_equal(best.w, w)
    assert best.agreement == problem.weights[residuals[-1] < 1e-9].sum()
    np.testing.assert_array_equal(problem.decisive, np.flatnonzero((y > -1) & (y < 1.5)))


def test_zero_fits_most_zeros_and_counts_for_nothing():
    problem, w = relu_problem(0)
    labels_at_the_limit = (~problem.limits.decisive).sum()
    assert labels_at_the_limit > 60
    nothing = problem.best(np.zeros((1, 4)))
    assert nothing.agreement <= problem.chance
    assert not problem.settled(nothing, 0.0)
    assert not problem.has_majority(nothing)
    np.testing.assert_array_equal(problem.best(np.stack([np.zeros(4), w])).w, w)


def test_a_candidate_of_d_rows_is_below_any_that_more_rows_confirm():
    problem, w = relu_problem(1)
    chosen = problem.decisive[:4]
    interpolation = np.linalg.solve(problem.Z[chosen], problem.y[chosen])
    assert problem.best(interpolation[None]).agreement <= problem.chance < problem.best(w[None]).agreement


def test_the_truth_settles_a_problem_with_limits_and_its_rival_does_not():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = gaussian(400, 4, rng)
        w, other = rng.standard_normal((2, 4))
        y = MassartNoise(0.3, decoy(other, relu_labels)).corrupt(X, relu_labels(X, w), rng).labels
        problem = limited(X, y)
        truth, rival = problem.best(w[None]), problem.best(other[None])
        assert problem.settled(truth, np.inf)
        assert problem.has_majority(truth)
        assert not problem.settled(rival, 0.0)


@pytest.mark.parametrize(("lower", "upper"), [(0.0, np.inf), (-np.inf, 1.0), (-1.0, 1.5)])
def test_on_the_active_rows_of_the_truth_l1_finds_the_truth(lower, upper):
    """Right labels at a limit cost nothing there, on either side."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = gaussian(400, 4, rng)
        w = rng.standard_normal(4)
        y = np.clip(np.where(rng.random(400) < 0.2, 5 * rng.standard_normal(400), X @ w), lower, upper)
        answers = list(alternate(limited(X, y, lower, upper), w, 5))
        np.testing.assert_allclose(answers[0], w, atol=1e-9)
        assert len(answers) == 1, "the same rows come again"


def test_concentration_with_limits_finds_the_truth_among_gross_errors():
    rng = np.random.default_rng(1)
    X = gaussian(300, 6, rng)
    w = rng.standard_normal(6)
    y = MassartNoise(0.3, far_constant).corrupt(X, relu_labels(X, w), rng).labels
    found = concentrate(limited(X, y), w[None] + 0.3 * rng.standard_normal((20, 6)), 0.5, 15, enough=np.inf)
    np.testing.assert_allclose(found.w, w, rtol=1e-8)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_search_with_limits_finds_the_most_fitted_that_rows_confirm(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 16)), int(rng.integers(1, 3))
    X = rng.integers(-3, 4, (n, d)).astype(float)
    X = X[X.any(axis=1)]
    clean = np.maximum(0, X @ rng.integers(-2, 3, d))
    y = np.where(rng.random(len(X)) < 0.7, clean, rng.integers(0, 9, len(X))).astype(float)
    problem = limited(X, y)
    if len(problem.decisive) <= d:
        return
    found = search(problem, np.zeros(d), rng, enough=problem.unique)
    for chosen in itertools.combinations(problem.decisive, d):
        rows = X[list(chosen)]
        if abs(np.linalg.det(rows)) > 1e-9:
            rival = problem.best(np.linalg.solve(rows, y[list(chosen)])[None])
            if rival.agreement > problem.chance:
                assert found.agreement >= rival.agreement
