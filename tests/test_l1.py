"""Laws of L1 regression: equivariances, duality, brute force, and agreement with linear programming."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from drug_discovery import drug_discovery
from harness import MissingPeer
from massart.isotropy import decompose
from massart.l1 import L1Solution, Status, l1_regression
from massart.rows import Progress

SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=40, deadline=None, derandomize=True)


def cost(X, y, coef, weight=None, one_sided=None):
    r = y - X @ coef
    weight = np.ones(len(y)) if weight is None else weight
    costs = np.maximum(-r, 0) if one_sided is None else np.where(one_sided, np.maximum(-r, 0), np.abs(r))
    return weight @ (np.abs(r) if one_sided is None else costs)


def wrong_labels(seed, n=60, d=4, noise=0.0, eta=0.4):
    """Gaussian rows with labels of which a share eta is shifted upwards."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    w = rng.standard_normal(d)
    y = X @ w + noise * rng.standard_normal(n)
    y += np.where(rng.random(n) < eta, rng.exponential(5.0, n), 0.0)
    return X, y, w


def hard_case(seed):
    """A small problem out of the families that break L1 solvers: X, y, weights, one-sided rows."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 45)), int(rng.integers(1, 8))
    X = rng.standard_normal((n, d))
    match rng.integers(0, 6):
        case 1:
            X = rng.integers(-2, 3, (n, d)).astype(float)
        case 2:
            X = rng.integers(0, 2, (n, d)).astype(float)
        case 3:
            X[:, -1] = X[:, 0]
        case 4:
            X = X[rng.integers(0, n, n)]
        case 5:
            X *= 10.0 ** rng.integers(-2, 3, d)
    y = X @ rng.standard_normal(d)
    match rng.integers(0, 4):
        case 0:
            y = y + rng.standard_normal(n)
        case 1:
            y = np.where(rng.random(n) < 0.4, -y, y)
        case 2:
            y = rng.integers(-3, 4, n).astype(float)
        case 3:
            y = np.maximum(y, 0.0)
    one_sided = [np.zeros(n, bool), y == 0, rng.random(n) < 0.5, np.ones(n, bool)][rng.integers(0, 4)]
    weight = [np.ones(n), rng.integers(1, 4, n).astype(float), rng.random(n) + 0.01][rng.integers(0, 3)]
    return X, y, weight, one_sided


def check_proof(X, y, solution, weight=None, one_sided=None, tolerance=1e-10):
    """Assert from first principles that the dual is feasible and closes the gap, and that the fields say so."""
    lo = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    hi = lo if one_sided is None else np.where(one_sided, 0.0, lo)
    a = solution.dual
    assert (a <= hi).all()
    assert (a >= -lo).all()
    assert np.abs(X.T @ a).max() <= 1e-12 * (np.abs(X).T @ lo).max()
    scale = lo @ (np.abs(y) + np.abs(X) @ np.abs(solution.coef))
    objective = cost(X, y, solution.coef, lo, one_sided)
    assert solution.objective == pytest.approx(objective, rel=1e-12, abs=1e-15 * scale)
    assert objective - y @ a <= tolerance * objective + 1e-13 * scale
    assert 0 <= solution.gap <= tolerance * objective + 1e-13 * scale


def dual_program(X, y, lo, hi):
    answer = linprog(-y, A_eq=X.T, b_eq=np.zeros(X.shape[1]), bounds=np.column_stack([-lo, hi]), method="highs")
    assert answer.status == 0
    return -answer.fun


def primal_program(X, y, lo, hi):
    n, d = X.shape
    eye = np.eye(n)
    answer = linprog(
        np.concatenate([np.zeros(d), hi, lo]),
        A_eq=np.hstack([X, eye, -eye]),
        b_eq=y,
        bounds=[(None, None)] * d + [(0, None)] * (2 * n),
        method="highs",
    )
    assert answer.status == 0
    return answer.fun


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_objective_equals_that_of_linear_programming(block):
    for seed in range(50 * block, 50 * block + 50):
        X, y, weight, one_sided = hard_case(seed)
        solution = l1_regression(X, y, weight, one_sided=one_sided)
        assert solution.status is (Status.OPTIMAL if solution.rank == X.shape[1] else Status.MINIMUM_NORM), seed
        assert solution.rank == np.linalg.matrix_rank(X)
        check_proof(X, y, solution, weight, one_sided)
        program = primal_program if seed % 3 == 0 else dual_program
        expected = program(X, y, weight, np.where(one_sided, 0.0, weight))
        assert solution.objective == pytest.approx(expected, rel=1e-9, abs=1e-9 * (weight @ np.abs(y))), seed


def test_the_vertex_is_reached_in_few_steps_and_without_help():
    found = []
    for seed in range(100):
        X, y, weight, one_sided = hard_case(seed)
        found.append(l1_regression(X, y, weight, one_sided=one_sided))
    assert not any(solution.fell_back for solution in found)
    assert np.mean([solution.n_iter for solution in found]) < 10


@laws
@given(SEEDS, st.integers(1, 3), st.booleans())
def test_no_d_rows_give_a_better_fit(seed, d, integers):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((9, d)), rng.standard_normal(9)
    if integers:
        X, y = np.round(2 * X), np.round(2 * y)
    solution = l1_regression(X, y)
    for rows in combinations(range(9), d):
        coef = np.linalg.lstsq(X[list(rows)], y[list(rows)], rcond=None)[0]
        assert solution.objective <= cost(X, y, coef) * (1 + 1e-12) + 1e-12


@pytest.mark.slow
@laws
@given(SEEDS, st.sampled_from([0.0, 1.0]), st.sampled_from([60, 9000]))
def test_l1_is_regression_equivariant(seed, noise, n):
    X, y, _ = wrong_labels(seed, n=n, noise=noise)
    b = np.random.default_rng(seed).standard_normal(X.shape[1])
    np.testing.assert_allclose(l1_regression(X, y + X @ b).coef, l1_regression(X, y).coef + b, rtol=0, atol=1e-11)


@pytest.mark.slow
@laws
@given(SEEDS, st.integers(-300, 300), st.integers(-300, 300))
def test_l1_is_scale_equivariant(seed, k, m):
    X, y, _ = wrong_labels(seed, noise=1.0)
    plain = l1_regression(X, y)
    # Powers of two change exponents only, so the same arithmetic takes place.
    scaled = l1_regression(np.ldexp(X, m), np.ldexp(y, k))
    np.testing.assert_allclose(np.ldexp(scaled.coef, m - k), plain.coef, rtol=1e-12)
    np.testing.assert_allclose(scaled.dual, plain.dual, atol=1e-12)
    assert np.ldexp(scaled.objective, -k) == pytest.approx(plain.objective, rel=1e-12)


@pytest.mark.slow
@laws
@given(SEEDS)
def test_l1_is_affine_equivariant(seed):
    X, y, _ = wrong_labels(seed, noise=1.0)
    A = np.random.default_rng(seed).standard_normal((4, 4)) + 3 * np.eye(4)
    np.testing.assert_allclose(A @ l1_regression(X @ A, y).coef, l1_regression(X, y).coef, rtol=0, atol=1e-9)


@pytest.mark.slow
@laws
@given(SEEDS)
def test_the_order_and_the_sign_of_rows_do_not_matter(seed):
    X, y, _ = wrong_labels(seed, noise=1.0)
    rng = np.random.default_rng(seed)
    order, sign = rng.permutation(len(y)), rng.choice([-1.0, 1.0], len(y))
    plain = l1_regression(X, y)
    other = l1_regression((sign[:, None] * X)[order], (sign * y)[order])
    np.testing.assert_allclose(other.coef, plain.coef, atol=1e-12)
    np.testing.assert_allclose(other.dual, (sign * plain.dual)[order], atol=1e-10)


@pytest.mark.slow
@laws
@given(SEEDS)
def test_an_integer_weight_is_a_repeated_row(seed):
    X, y, _ = wrong_labels(seed, n=30, noise=1.0)
    weight = np.random.default_rng(seed).integers(1, 4, 30)
    weighted, repeated = l1_regression(X, y, weight), l1_regression(np.repeat(X, weight, 0), np.repeat(y, weight))
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-12)
    check_proof(X, y, weighted, weight)
    assert repeated.dual.sum() == pytest.approx(weighted.dual.sum(), abs=1e-9)


@pytest.mark.slow
@laws
@given(SEEDS)
def test_a_row_of_weight_zero_is_absent(seed):
    X, y, _ = wrong_labels(seed, noise=1.0)
    weight = np.where(np.random.default_rng(seed).random(60) < 0.3, 0.0, 1.5)
    keep = weight > 0
    with_zeros, without = l1_regression(X, y, weight), l1_regression(X[keep], y[keep], weight[keep])
    assert (with_zeros.dual[~keep] == 0).all()
    np.testing.assert_array_equal(with_zeros.coef, without.coef)
    np.testing.assert_array_equal(with_zeros.dual[keep], without.dual)


def test_rows_of_weight_zero_do_not_count_for_the_rank():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    solution = l1_regression(X, [1.0, 2.0, 5.0], [1.0, 1.0, 0.0])
    assert solution.rank == 1
    assert solution.status is Status.MINIMUM_NORM
    np.testing.assert_allclose(solution.coef, [1.0, 0.0], atol=1e-15)


@pytest.mark.parametrize("shape", [(60, 4), (5000, 20), (30000, 10)])
@pytest.mark.parametrize("wrong", ["above", "flipped"])
def test_recovery_is_exact_when_the_truth_is_exact(shape, wrong):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal(shape), rng.standard_normal(shape[1])
    y = X @ w
    bad = rng.random(shape[0]) < (0.4 if shape[0] > 100 else 0.2)
    y[bad] = -y[bad] if wrong == "flipped" else y[bad] + rng.exponential(10.0, bad.sum())
    solution = l1_regression(X, y)
    assert np.abs(solution.coef - w).max() <= 1e-13
    # Interpolated residuals are at rounding level.
    assert np.abs(y - X @ solution.coef)[~bad].max() <= 1e-14 * shape[1]
    check_proof(X, y, solution)


@pytest.mark.parametrize("case", ["gauss", "heavy", "one-sided", "weights", "dummies", "rounded"])
def test_many_rows_are_solved_as_exactly_as_few(case):
    rng = np.random.default_rng(1)
    n, d = 12000, 6
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    y = X @ w + rng.standard_normal(n)
    weight = one_sided = None
    if case == "heavy":
        X = rng.standard_cauchy((n, d))
        y = X @ w + rng.standard_cauchy(n)
    elif case == "one-sided":
        y, one_sided = np.maximum(y, 0.0), y <= 0
    elif case == "weights":
        weight = rng.exponential(1.0, n) ** 4
    elif case == "dummies":
        X[:, 0], X[:, 1] = 1.0, np.arange(n) < 3  # a column that no sample sees
    elif case == "rounded":
        X, y = np.round(X), np.round(y)
    solution = l1_regression(X, y, weight, one_sided=one_sided)
    assert solution.status is Status.OPTIMAL
    assert not solution.fell_back
    check_proof(X, y, solution, weight, one_sided)
    r = np.abs(y - X @ solution.coef) / (np.abs(y) + np.abs(X) @ np.abs(solution.coef) + 1e-300)
    assert np.linalg.matrix_rank(X[r <= 1e-13] / np.abs(X).max(axis=0)) == d


@pytest.mark.slow
@laws
@given(SEEDS, st.sampled_from([0.0, 1.0]))
def test_sparse_rows_give_the_dense_answer(seed, noise):
    X, y, _ = wrong_labels(seed, noise=noise)
    X = np.where(np.random.default_rng(seed).random(X.shape) < 0.5, 0.0, X)
    y = y if noise else np.where(np.arange(60) % 3 == 0, y, X @ np.arange(4.0))
    dense = l1_regression(X, y)
    for form in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        sparse = l1_regression(form(X), y)
        assert sparse.objective == pytest.approx(dense.objective, rel=1e-11, abs=1e-11)
        check_proof(X, y, sparse)


def test_sparse_rows_reach_every_path():
    rng = np.random.default_rng(3)
    X = sp.random_array((12000, 5), density=0.4, rng=rng, format="csr")
    w = np.arange(1.0, 6.0)
    exact = X @ w
    exact[::3] += 1.0
    assert np.abs(l1_regression(X, exact).coef - w).max() <= 1e-12
    noisy = exact + rng.standard_normal(12000)
    check_proof(X.toarray(), noisy, l1_regression(X, noisy))


@pytest.mark.parametrize("shape", [(60, 4), (9000, 4), (5, 8)])
def test_several_right_hand_sides_equal_one_at_a_time(shape):
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 3))
    Y[:, 1] = X @ np.ones(shape[1])
    together = l1_regression(X, Y)
    alone = [l1_regression(X, Y[:, j]) for j in range(3)]
    np.testing.assert_array_equal(together.coef, np.column_stack([s.coef for s in alone]))
    np.testing.assert_array_equal(together.dual, np.column_stack([s.dual for s in alone]))
    assert together.objective == pytest.approx(sum(s.objective for s in alone), rel=1e-14)
    assert together.n_iter == sum(s.n_iter for s in alone)


def test_one_column_of_labels_keeps_two_dimensions():
    X, y, _ = wrong_labels(0)
    solution = l1_regression(X, y[:, None])
    assert solution.coef.shape == (4, 1)
    assert solution.dual.shape == (60, 1)


@laws
@given(SEEDS, st.integers(2, 30))
def test_rank_deficiency_gives_the_minimum_norm(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, 6)) * 10.0 ** rng.integers(-3, 4, 6)
    y = rng.standard_normal(n)
    solution = l1_regression(X, y)
    assert solution.status is Status.MINIMUM_NORM
    assert solution.rank == min(n, 3)
    # No part of the coefficients lies outside the row space, so none can be taken away.
    row_space = np.linalg.svd(X, full_matrices=False)[2][: solution.rank]
    inside = row_space.T @ (row_space @ solution.coef)
    assert np.linalg.norm(solution.coef - inside) <= 1e-9 * np.linalg.norm(solution.coef)
    check_proof(X, y, solution)


def test_a_million_times_smaller_column_is_not_dependent():
    X, y, _ = wrong_labels(2, noise=1.0)
    X[:, 3] = X[:, 0] + 1e-9 * X[:, 3]
    solution = l1_regression(X, y)
    assert solution.rank == 4
    assert solution.status is Status.OPTIMAL


def test_zero_rows_and_columns_are_harmless():
    X, y, w = wrong_labels(7, eta=0.2)
    wide = np.zeros((70, 5))
    wide[:60, :4] = X
    solution = l1_regression(wide, np.concatenate([y, np.full(10, 1e3)]))
    assert solution.rank == 4
    assert solution.status is Status.MINIMUM_NORM
    np.testing.assert_allclose(solution.coef, [*w, 0.0], atol=1e-13)


def test_all_zero_rows_have_the_coefficient_zero():
    solution = l1_regression(np.zeros((4, 3)), [1.0, -2.0, 0.0, 4.0], one_sided=[False, False, False, True])
    np.testing.assert_array_equal(solution.coef, 0.0)
    assert solution.rank == 0
    assert solution.status is Status.MINIMUM_NORM
    assert solution.objective == 3.0
    assert solution.gap == 0.0


@pytest.mark.parametrize("y", [[1, 1, 2, 1, 1], [0, 0, 0, 0, 0], [3, 3, 3, 3, 3]])
def test_exact_fits_of_a_constant_do_not_crash(y):
    solution = l1_regression(np.ones((5, 1)), y)
    assert solution.coef[0] == np.median(y)
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("x", [1e-150, 1e150])
@pytest.mark.parametrize("label", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("weight", [1e-150, 1e150])
def test_extreme_magnitudes(x, label, weight):
    if x == 1e-150 and label == 1e150:
        label = 1e100  # coefficients of 1e300 times labels would leave the range
    X, y, w = wrong_labels(11, n=200)
    X[:, 1] *= -x
    y = y * label
    solution = l1_regression(X, y, np.full(200, weight))
    assert solution.status is Status.OPTIMAL
    w = w * label
    w[1] /= -x
    np.testing.assert_allclose(solution.coef, w, rtol=1e-12)


def test_largest_rows_overflow_nothing():
    X, y, w = wrong_labels(11, n=5000)
    np.testing.assert_allclose(l1_regression(X * 1e290, y).coef * 1e290, w, rtol=1e-12)


@pytest.mark.parametrize("form", ["fortran", "read-only", "strided", "float32", "int", "list", "bool"])
def test_any_layout_and_type_is_accepted_and_left_alone(form):
    rng = np.random.default_rng(13)
    X = np.round(4 * rng.standard_normal((50, 3)))
    y = np.round(4 * rng.standard_normal(50))
    if form == "bool":
        X = (X > 0).astype(float)
    expected = l1_regression(X, y)
    strided = np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2]
    frozen = X.copy()
    frozen.flags.writeable = False
    given_X = {
        "fortran": np.asfortranarray(X), "read-only": frozen, "strided": strided, "float32": X.astype(np.float32),
        "int": X.astype(np.int64), "list": X.tolist(), "bool": X.astype(bool),
    }[form]  # fmt: skip
    given_y, weight = y.copy(), np.ones(50)
    before = np.array(given_X, copy=True)
    solution = l1_regression(given_X, given_y, weight)
    assert solution.objective == pytest.approx(expected.objective, rel=1e-13)
    np.testing.assert_array_equal(np.asarray(given_X), before)
    np.testing.assert_array_equal(given_y, y)
    np.testing.assert_array_equal(weight, 1.0)


@pytest.mark.parametrize("n", [60, 9000])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_same_input_gives_the_same_bytes(n, noise):
    X, y, _ = wrong_labels(17, n=n, noise=noise)
    first, second = l1_regression(X, y), l1_regression(X, y)
    assert first.coef.tobytes() == second.coef.tobytes()
    assert first.dual.tobytes() == second.dual.tobytes()


def test_one_sided_rows_cost_nothing_above_the_fit():
    X, y, w = wrong_labels(19, n=200, eta=0.0)
    above = np.arange(200) < 120
    y[above] += 10.0
    np.testing.assert_allclose(l1_regression(X, y, one_sided=above).coef, w, atol=1e-13)


def test_separable_one_sided_rows_cost_nothing_at_all():
    rng = np.random.default_rng(23)
    X = np.abs(rng.standard_normal((40, 3)))
    solution = l1_regression(X, -np.ones(40), one_sided=np.ones(40, bool))
    assert solution.objective <= 1e-13
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize(("seed", "n"), [(16, 9_000), (17, 20_000), (52, 20_000), (58, 9_000)])
def test_flags_whose_fitted_rows_do_not_span_are_solved(seed, n):
    """A proof ends where rounding is all that is left of its error, and its Newton step no descent."""
    rng = np.random.default_rng(seed)
    flags = np.column_stack([rng.integers(0, 2, (n, 4)), np.ones(n)])
    w = rng.integers(-3, 4, 5)
    other = w + rng.integers(-2, 3, 5)
    y = np.maximum(np.where(rng.random(n) < 0.4, flags @ other, flags @ w), 0)
    active = flags @ flags[y > 0].sum(axis=0) > 0
    flags, y = flags[active], y[active]
    piece = decompose(flags)[0]
    X = flags[piece.members] @ piece.subspace @ piece.matrix.T
    lengths = np.linalg.norm(X, axis=1)
    labels = y[piece.members]
    solution = l1_regression(X / lengths[:, None], labels / lengths, one_sided=labels == 0)
    assert solution.status is not Status.INEXACT


def test_a_low_limit_is_reported_as_inexact():
    X, y, _ = wrong_labels(29, n=400, d=10, noise=1.0)
    solution = l1_regression(X, y, max_iter=1)
    best = l1_regression(X, y)
    assert solution.status is Status.INEXACT
    assert best.status is Status.OPTIMAL
    # The gap is honest: it covers the distance to the minimum.
    assert solution.objective - solution.gap <= best.objective * (1 + 1e-12)
    assert solution.gap > 1e-6 * solution.objective
    heavier = l1_regression(X, 4096 * y, sample_weight=np.full(len(y), 1024.0), max_iter=1)
    assert (heavier.objective, heavier.gap) == pytest.approx(
        (4096 * 1024 * solution.objective, 4096 * 1024 * solution.gap)
    )


@pytest.mark.parametrize("seed", [1930, 6785])
def test_highs_answers_where_the_vertex_is_not_found(seed):
    X, y, weight, one_sided = hard_case(seed)
    for form in (np.asarray, sp.csr_array):
        solution = l1_regression(form(X), y, weight, one_sided=one_sided)
        assert solution.fell_back
        assert solution.status is not Status.INEXACT
        check_proof(X, y, solution, weight, one_sided)


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["clean", "corrupted"])
def test_drug_discovery_set_has_the_objective_of_highs(labels):
    try:
        data = drug_discovery()
    except MissingPeer as reason:
        pytest.skip(str(reason))
    X, y = data.X, data.y
    if labels == "corrupted":
        y = np.where(np.random.default_rng(0).random(y.size) < 0.4, -100.0 * y, y)
    solution = l1_regression(X, y)
    assert solution.status is Status.MINIMUM_NORM
    assert solution.rank == np.linalg.matrix_rank(X)
    assert not solution.fell_back
    check_proof(X, y, solution)
    assert solution.objective == pytest.approx(dual_program(X, y, np.ones(y.size), np.ones(y.size)), rel=1e-10)


@laws
@given(SEEDS, st.floats(0.0, 0.04), st.sampled_from([1.0, 1e140]))
def test_tables_that_are_mostly_zero_are_fitted_like_any_other(seed, density, size):
    """Above 63 columns such an array is solved as a sparse matrix, with its full columns apart."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((90, 70)) < density, rng.standard_normal((90, 70)), 0.0)
    X[:, 3:5] = rng.standard_normal((90, 2))
    X[:, 5] = 0.0
    y = X @ rng.standard_normal(70) + rng.standard_normal(90)
    scale = np.where(np.arange(70) == 4, -size, 1.0)
    for form in (np.asarray, sp.coo_array):
        solution = l1_regression(form(X * scale), y)
        assert solution.rank == np.linalg.matrix_rank(X)
        check_proof(X, y, replace(solution, coef=solution.coef * scale))


def test_the_callback_sees_the_gap_close():
    seen: list[Progress] = []
    X, y, _ = wrong_labels(37, noise=1.0)
    l1_regression(X, y, callback=seen.append)
    assert [p.step for p in seen] == list(range(len(seen)))
    assert seen[0].residual > seen[-1].goal >= seen[-1].residual


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"X": np.zeros((0, 3))}, "X"),
        ({"X": np.zeros(5)}, "X"),
        ({"X": np.full((5, 2), np.nan)}, "X"),
        (
            {"X": sp.csr_array(np.array([[0, 1.0], [0, np.nan], [0, 0], [1, 1], [1, 0]]))},
            "X must be finite, got NaN at row 1",
        ),
        ({"X": sp.csr_array((0, 3))}, "X"),
        ({"X": [["a", "b"]] * 5}, "X"),
        ({"X": sp.csr_array(np.eye(5, 2) * 1j)}, "X"),
        ({"y": np.ones(4)}, "y"),
        ({"y": np.full(5, np.inf)}, "y"),
        ({"y": np.ones((5, 0))}, "y"),
        ({"y": np.ones((5, 1, 1))}, "y"),
        ({"sample_weight": -np.ones(5)}, "sample_weight"),
        ({"sample_weight": np.zeros(5)}, "sample_weight"),
        ({"sample_weight": np.ones(4)}, "sample_weight"),
        ({"one_sided": np.ones(5)}, "one_sided"),
        ({"one_sided": np.ones(4, bool)}, "one_sided"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 2.5}, "max_iter"),
    ],
)
def test_bad_input_is_named(change, name):
    arguments = {"X": np.ones((5, 2)), "y": np.ones(5), **change}
    with pytest.raises(ValueError, match=name):
        l1_regression(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_the_solution_is_frozen():
    X, y, _ = wrong_labels(0)
    solution = l1_regression(X, y)
    assert isinstance(solution, L1Solution)
    with pytest.raises(AttributeError):
        solution.gap = 0.0
