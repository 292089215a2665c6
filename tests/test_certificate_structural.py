"""The margin of Lemma 2.3's condition: both sides are sides, and a positive lower side is what the lemma needs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.certificate import structural, structural_margin
from massart.certificate.enumeration import enumeration_cost
from massart.isotropy import radial_isotropy
from massart.l1 import l1_regression


def margin_at(good, bad, R):
    """Return the margin at each row of `R`, by definition."""
    fine, wrong = np.abs(R @ good.T).sum(axis=1), np.abs(R @ bad.T).sum(axis=1)
    return (fine - wrong) / (fine + wrong)


def brute_force(good, bad):
    """Return the margin from every r that is orthogonal to d - 1 good rows."""
    d = good.shape[1]
    R = [np.linalg.svd(good[list(s)])[2][-1] for s in combinations(range(len(good)), d - 1)]
    return margin_at(good, bad, np.array(R)).min()


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_few_dimensions_are_exact(d):
    rng = np.random.default_rng(d)
    for _ in range(10):
        good, bad = rng.standard_normal((12, d)), rng.standard_normal((int(rng.integers(1, 8)), d))
        margin = structural_margin(good, bad)
        expected = brute_force(good, bad) if d > 1 else margin_at(good, bad, np.ones((1, 1)))[0]
        assert margin.upper == pytest.approx(expected, abs=1e-10)
        assert margin.lower == pytest.approx(expected, abs=1e-6)
        assert margin.lower <= margin.upper
        assert margin_at(good, bad, margin.direction[None])[0] == pytest.approx(margin.upper, abs=1e-12)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from([2, 3, 6, 12]), st.booleans())
@settings(max_examples=30)
def test_no_direction_leaves_the_two_sides(seed, d, heavy):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4 * d, 12 * d))
    good, bad = rng.standard_normal((n, d)), rng.standard_normal((n // 4, d))
    if heavy:
        good *= np.exp(rng.standard_normal((n, 1)))
    c, b = rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n // 4)
    good, bad = good * c[:, None], bad * b[:, None]
    margin = structural_margin(good, bad)
    assert margin_at(good, bad, margin.direction[None])[0] == pytest.approx(margin.upper, abs=1e-10)
    assert margin.lower <= margin.upper
    values = margin_at(good, bad, np.vstack([rng.standard_normal((3000, d)), bad, good]))
    assert values.min() >= margin.lower
    assert values.min() >= margin.upper - 0.05  # the search is local, yet no random direction is far below it


@pytest.mark.slow
def test_moments_certify_a_third_of_wrong_rows_in_any_dimension():
    rng = np.random.default_rng(0)
    for d in (10, 30):
        good, bad = rng.standard_normal((3000, d)), rng.standard_normal((1200, d))
        margin = structural_margin(good, bad)
        assert 0 < margin.lower < margin.upper < (3000 - 1200) / 4200 + 1e-3


@pytest.mark.parametrize(("n", "d", "wrong"), [(60, 3, 12), (1200, 10, 300)])
def test_a_positive_lower_side_makes_the_l1_minimizer_the_l0_minimizer(n, d, wrong):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    w = rng.standard_normal(d)
    assert structural_margin(X[wrong:], X[:wrong]).lower > 0
    for labels in (-10 * (X[:wrong] @ w), np.full(wrong, 1e3), X[:wrong] @ rng.standard_normal(d)):
        y = X @ w
        y[:wrong] = labels
        np.testing.assert_allclose(l1_regression(X, y).coef, w, rtol=0, atol=1e-10)


def test_a_negative_upper_side_lets_labels_defeat_the_l1_minimizer():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 3))
    X[:10] *= [20, 1, 1]  # few rows that outweigh the others in one direction
    margin = structural_margin(X[10:], X[:10])
    assert margin.upper < 0
    w = rng.standard_normal(3)
    y = X @ w
    y[:10] += 1e-3 * (X[:10] @ margin.direction)
    rival = w + 1e-3 * margin.direction
    assert np.abs(y - X @ rival).sum() < np.abs(y - X @ w).sum()
    assert not np.allclose(l1_regression(X, y).coef, w, atol=1e-6)
    # Radial isotropy mends it (Algorithm 1): the margin is that of the rows as L1 sees them.
    iso = radial_isotropy(X)
    U = iso.transform(X)
    mended = structural_margin(U[10:], U[:10])
    assert mended.lower > 0
    scale = np.linalg.norm(X @ iso.subspace @ iso.matrix.T, axis=1)
    solved = l1_regression(U, y / scale).coef
    np.testing.assert_allclose(iso.subspace @ iso.matrix.T @ solved, w, atol=1e-10)


@pytest.mark.slow
def test_integer_rows_with_coincidences_are_exact():
    rng = np.random.default_rng(2)
    for _ in range(20):
        good, bad = rng.integers(-2, 3, (14, 3)), rng.integers(-2, 3, (5, 3))
        good, bad = good[good.any(axis=1)], bad[bad.any(axis=1)]
        if np.linalg.matrix_rank(good) < 3 or not len(bad):
            continue
        margin = structural_margin(good, bad)
        R = rng.standard_normal((20_000, 3))
        assert margin_at(good, bad, R).min() >= margin.lower
        assert margin.upper - margin.lower < 1e-6


def test_units_of_columns_do_not_matter():
    rng = np.random.default_rng(3)
    good, bad = rng.standard_normal((30, 3)), rng.standard_normal((8, 3))
    scales = np.array([1e-9, 1.0, 1e9])
    one, other = structural_margin(good, bad), structural_margin(good * scales, bad * scales)
    assert other.upper == pytest.approx(one.upper, abs=1e-9)
    assert other.lower == pytest.approx(one.lower, abs=1e-6)


def test_good_rows_that_do_not_span_violate_the_condition():
    good = np.array([[1.0, 0.0], [2.0, 0.0]])
    violated = structural_margin(good, [[0.0, 1.0]])
    assert violated.upper == -1
    np.testing.assert_allclose(np.abs(violated.direction), [0, 1], atol=1e-12)
    assert structural_margin(good, [[1.0, 0.0]]).upper == 0  # 0 > 0 fails where no row sees the direction
    for nothing in (np.zeros((0, 2)), np.zeros((3, 2))):
        whole = structural_margin(np.eye(2), nothing)
        assert (whole.lower, whole.upper, np.linalg.norm(whole.direction)) == (1, 1, 1)
        open_ = structural_margin(good, nothing)
        assert (open_.lower, open_.upper) == (-1, 0)
    assert structural_margin(good, [[1.0, 0.9e-9], [0.0, 0.0]]).upper == 0  # rounding
    assert structural_margin(good, [[1.0, 1.1e-9], [0.0, 0.0]]).upper == -1
    assert abs(structural_margin([[1.0, 0, 0]], [[0, 3.0, 4.0]]).direction @ [0, 3.0, 4.0]) >= 3


def test_more_starts_never_hurt():
    rng = np.random.default_rng(4)
    good, bad = rng.standard_normal((200, 8)), rng.standard_normal((60, 8))
    plain = structural_margin(good, bad)
    more = structural_margin(good, bad, rng=np.random.default_rng(0))
    assert more.upper <= plain.upper


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="X_wrong has 3 columns but X_agree has 2"):
        structural_margin(np.eye(2), np.ones((1, 3)))
    with pytest.raises(ValueError, match="X_agree must be finite"):
        structural_margin([[np.nan, 0.0]], np.ones((1, 2)))


def test_nearly_dependent_columns_claim_nothing():
    rng = np.random.default_rng(0)
    good = rng.standard_normal((200, 8))
    good[:, 7] = good[:, 0] + 1e-7 * rng.standard_normal(200)
    margin = structural_margin(good, rng.standard_normal((5, 8)))
    assert margin.lower == -1.0
    assert margin.lower <= margin.upper


def test_where_nothing_is_affordable_nothing_is_claimed(monkeypatch):
    rng = np.random.default_rng(0)
    good, bad = rng.standard_normal((40, 3)), rng.standard_normal((4, 3))
    known = structural_margin(good, bad)
    assert known.lower > 0
    monkeypatch.setattr(structural, "_EXACT_BUDGET", 0.0)
    monkeypatch.setattr(structural, "_BUDGET", 0.0)
    margin = structural_margin(good, bad)
    assert margin.lower == -1.0
    assert known.lower <= known.upper <= margin.upper


@pytest.mark.parametrize(("distance", "doubtful"), [(0.0, False), (1e-14, False), (1e-9, True), (1e-3, False)])
def test_rows_that_are_nearly_parallel_leave_doubt(distance, doubtful):
    X = np.array([[1.0, 0.0, 0.0], [1.0, distance, 0.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8], [0.0, 0.6, 0.8]])
    assert structural._has_doubtful_subset(X / np.linalg.norm(X, axis=1)[:, None]) == doubtful
    planes = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 2 * distance, 0.0], [0.0, 0.0, 0.0, 1.0]])
    assert structural._has_doubtful_subset(planes / np.linalg.norm(planes, axis=1)[:, None]) == doubtful


def test_steps_without_an_enumeration_find_what_it_finds():
    """Nearly always: the search is local. Of these tables half need one kind of start, and half the other."""
    found = []
    for seed in (2, 15, 22, 24, 56, 57, 59, 84):
        rng = np.random.default_rng(seed)
        good, bad = rng.standard_normal((14, 3)), rng.standard_normal((5, 3)) * np.exp(rng.standard_normal((5, 1)))
        direction, ratio = structural._search(good, bad, None)
        assert margin_at(good, bad, direction[None])[0] == pytest.approx(structural._margin(ratio))
        found.append(structural._margin(ratio) <= brute_force(good, bad) + 1e-9)
    assert sum(found) >= 7


@pytest.mark.parametrize("d", [1, 3])
def test_the_bound_of_moments_is_met_by_orthogonal_rows(d):
    good, bad = np.tile(np.eye(d), (20, 1)), np.tile(2 * np.eye(d)[:1], (3, 1))
    assert structural._ratio_bound(good, bad) == pytest.approx(2 * 3 / 20, rel=1e-9)
    scales = 2.0 ** np.arange(d)
    assert structural._ratio_bound(good * scales, bad * scales) == pytest.approx(2 * 3 / 20, rel=1e-9)
    assert structural._ratio_bound(good[:, :1] * np.ones((1, 2)), np.ones((1, 2))) == np.inf


def test_what_rounding_may_change_is_what_is_stated():
    assert structural._sensitivity(2 * np.eye(2), np.array([[6.0, 8.0]]), 0.5) == pytest.approx(1e-9 * (1 + 1.5 * 7))


def test_vertices_are_enumerated_within_the_budget_and_beat_the_search():
    rng = np.random.default_rng(0)
    good, bad = rng.standard_normal((20, 3)), rng.standard_normal((5, 3))
    cost = enumeration_cost(20, 3) * (1 + 25 / 20)
    assert structural._best_vertex(good, bad, 0.999 * cost) is None
    best = structural._best_vertex(good, bad, cost)
    assert margin_at(good, bad, best[None])[0] == pytest.approx(brute_force(good, bad), abs=1e-12)
    twice = np.vstack([good, -2 * good])  # the same hyperplanes
    assert structural._best_vertex(twice, bad, enumeration_cost(20, 3) * (1 + 45 / 20)) is not None
    assert structural._margin(np.inf) == -1


def test_without_wrong_rows_the_margin_is_whole():
    margin = structural_margin(np.eye(3), np.zeros((2, 3)))
    assert (margin.lower, margin.upper) == (1.0, 1.0)
    assert np.linalg.norm(margin.direction) == 1
