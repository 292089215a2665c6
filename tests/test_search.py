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
from massart.paper import (
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
from massart.recover import improve_coordinates
from massart.rows import Progress
from massart.search import (
    Consensus,
    LeastSquares,
    Limits,
    alternate,
    quantile,
    random_subsets,
    search,
    smallest,
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
    weights = rng.integers(1, 4, 40).astype(float)
    problem = consensus(rng.standard_normal((40, 3)), rng.standard_normal(40), weights)
    assert problem.accidents == problem.chance == np.sort(weights)[-4:].sum()


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


# --- FAST-LTS ---


def rows(seed, n=30, k=4):
    rng = np.random.default_rng(seed)
    return rng, rng.standard_normal((n, k)), rng.standard_normal(n)


@pytest.mark.parametrize("n_fits", [2, 9])  # few are made one by one, many from stored products
def test_fits_are_weighted_least_squares(n_fits):
    rng, Z, y = rows(0)
    weights = rng.random((n_fits, 30)) * (rng.random((n_fits, 30)) < 0.7)
    expected = [np.linalg.lstsq(Z * np.sqrt(q)[:, None], y * np.sqrt(q), rcond=None)[0] for q in weights]
    np.testing.assert_allclose(LeastSquares(Z, y).fit(weights), expected, atol=1e-9)


@pytest.mark.parametrize("size", [4, 5, 20, 30])
def test_fits_of_subsets_are_least_squares_of_these_rows(size):
    rng, Z, y = rows(1)
    subsets = random_subsets(7, size, np.ones(30), rng)
    expected = [np.linalg.lstsq(Z[chosen], y[chosen], rcond=None)[0] for chosen in subsets]
    np.testing.assert_allclose(LeastSquares(Z, y).fit_subsets(subsets), expected, rtol=1e-6, atol=1e-6)


def test_singular_fits_do_not_stop_the_others():
    _, Z, _ = rows(3)
    truth = np.array([1.0, 2.0, 3.0, 4.0])
    weights = np.zeros((6, 30))
    weights[0, 0] = 1.0
    weights[2:] = 1.0
    found = LeastSquares(Z, Z @ truth).fit(weights)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[2:], np.tile(truth, (4, 1)), atol=1e-8)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_a_concentration_step_never_raises_the_trimmed_squares(seed):
    rng, Z, y = rows(seed)
    C, previous = rng.standard_normal((6, 4)), np.full(6, np.inf)
    for _ in range(5):
        sizes = np.abs(y - C @ Z.T)
        kept = smallest(sizes, 18)
        squares = (kept * sizes**2).sum(axis=1)
        assert (squares <= previous * (1 + 1e-9)).all()
        C, previous = LeastSquares(Z, y).fit(kept), squares


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_quantiles_of_weighted_rows_are_those_of_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, 8)
    values = rng.standard_normal((3, 8))
    repeated = np.repeat(values, counts, axis=1)
    for share in (0.1, 0.5, 0.8, 1.0):
        expected = quantile(repeated, np.full(counts.sum(), 1 / counts.sum()), share)
        np.testing.assert_array_equal(quantile(values, counts / counts.sum(), share), expected)


def test_random_subsets_have_different_rows_and_follow_their_rates():
    rng = np.random.default_rng(0)
    subsets = random_subsets(20_000, 2, np.array([4.0, 2.0, 1.0, 1.0, 0.0]), rng)
    assert all(len(set(chosen)) == 2 for chosen in subsets[:100].tolist())
    assert not (subsets == 4).any()
    first = 4 / 8 + (2 / 8) * (4 / 6) + 2 * (1 / 8) * (4 / 7)  # drawn first, or second after another
    assert (subsets == 0).any(axis=1).mean() == pytest.approx(first, abs=0.015)
    assert random_subsets(2, 5, np.ones(5), rng).shape == (2, 5)
