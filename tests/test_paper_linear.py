"""Section 2 of the paper: Lemma 2.3, Algorithms 1 and 2, Theorems 1.2 and 2.1, and the positions L1 may see."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from massart.isotropy import decompose, radial_isotropy
from massart.l1 import l1_regression
from massart.paper import (
    LinearStatus,
    MassartNoise,
    algorithm_1,
    algorithm_2,
    decoy,
    effective_number,
    failure_probability,
    far_constant,
    gaussian,
    linear_labels,
    most_effective_position,
    negate,
    paper_adversary,
    paper_mixture,
    paper_weights,
    structural_margin,
    zero,
)
from row_families import cauchy, integers_on_subspace, scaled_columns

ADVERSARIES = {
    "negate": lambda w, rng: negate(w),
    "zero": lambda w, rng: zero,
    "far": lambda w, rng: far_constant,
    "decoy": lambda w, rng: decoy(rng.standard_normal(w.size), linear_labels),
}


def corrupted(X, w, eta, adversary, rng):
    return MassartNoise(eta, ADVERSARIES[adversary](w, rng)).corrupt(X, X @ w, rng).labels


def is_exact(found, w, tol=1e-9):
    return bool(np.linalg.norm(found - w) <= tol * np.linalg.norm(w))


def mixture(m, eta, seed, d=30):
    rng = np.random.default_rng([31, seed])
    X, w = paper_mixture(m, d, rng), paper_weights(d)
    return X, MassartNoise(eta, paper_adversary(w)).corrupt(X, X @ w, rng).labels, w


def rows_with_a_heavy_subspace(rng, d=6):
    X = rng.standard_normal((60 * d, d))
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0][:, : rng.integers(1, d // 2 + 1)]
    inside = rng.random(len(X)) < 0.75
    X[inside] = X[inside] @ basis @ basis.T
    return X


# --- the algorithms, literally, from the kernels alone ---


def literal_algorithm_1(X, y, gamma=0.5):
    A = radial_isotropy(X, gamma).matrix  # 2
    lengths = np.linalg.norm(X @ A, axis=1)
    w = l1_regression(X @ A / lengths[:, None], y / lengths).coef  # 3
    return A @ w  # 4


def literal_algorithm_2(X, y, gamma=0.5):
    if not X.any():
        return np.zeros(X.shape[1])
    X, y = X[X.any(axis=1)], y[X.any(axis=1)]  # 4: for x_i != 0
    forster = radial_isotropy(X, gamma)  # 2
    V, A, inside = forster.subspace, forster.matrix, forster.members
    Z = X[inside] @ V  # 7, 8: rotate S_V into R^k
    lengths = np.linalg.norm(Z @ A, axis=1)
    w = V @ A @ l1_regression(Z @ A / lengths[:, None], y[inside] / lengths).coef  # 4 to 6, 8, 9
    if V.shape[1] == X.shape[1]:  # 3
        return w
    C = np.linalg.qr(V, mode="complete")[0][:, V.shape[1] :]  # 10
    P = X[~inside] @ C
    P[np.abs(P) < 1e-12 * np.linalg.norm(X[~inside], axis=1)[:, None]] = 0
    return w + C @ literal_algorithm_2(P, y[~inside] - X[~inside] @ w, gamma)  # 11 to 13


@pytest.mark.parametrize("gamma", [0.5, 1e-3])
@pytest.mark.parametrize("seed", range(5))
def test_algorithm_1_is_its_fifteen_lines(seed, gamma):
    X, y, _ = mixture(120, 0.4, seed)
    found = algorithm_1(X, y, gamma)
    literal = literal_algorithm_1(X, y, gamma)
    np.testing.assert_allclose(found.w, literal, rtol=0, atol=1e-9 * np.linalg.norm(literal))
    assert found.status is LinearStatus.DONE
    assert len(found.pieces) == 1


@pytest.mark.parametrize("gamma", [0.5, 1e-3])
@pytest.mark.parametrize("seed", range(5))
def test_algorithm_2_is_its_fifteen_lines(seed, gamma):
    rng = np.random.default_rng([32, seed])
    X = rows_with_a_heavy_subspace(rng)
    w = rng.standard_normal(6)
    y = corrupted(X, w, 0.3, "decoy", rng)
    found, literal = algorithm_2(X, y, gamma), literal_algorithm_2(X, y, gamma)
    np.testing.assert_allclose(found.w, literal, rtol=0, atol=1e-9 * np.linalg.norm(literal))
    assert found.status is LinearStatus.DONE
    if gamma < 0.5:
        assert len(found.pieces) == 2


# --- theorems ---


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ADVERSARIES)), st.integers(2, 8))
@settings(max_examples=25)
def test_algorithm_1_recovers_rows_in_general_position(seed, adversary, d):
    rng = np.random.default_rng(seed)
    X = gaussian(80 * d, d, rng) * np.exp(2 * rng.standard_normal((80 * d, 1)))
    w = rng.standard_normal(d)
    found = algorithm_1(X, corrupted(X, w, 0.3, adversary, rng))
    assert found.status is LinearStatus.DONE
    assert is_exact(found.w, w)


@pytest.mark.parametrize("adversary", sorted(ADVERSARIES))
@pytest.mark.parametrize("kind", ["gaussian", "cauchy", "columns of any unit", "integers on a subspace", "heavy"])
def test_theorem_1_2_for_any_adversary(kind, adversary):
    hits = 0
    for seed in range(5):
        rng = np.random.default_rng([33, seed])
        X = {
            "gaussian": lambda rng: gaussian(300, 5, rng),
            "cauchy": lambda rng: cauchy(300, 5, rng),
            "columns of any unit": lambda rng: scaled_columns(300, 5, rng),
            "integers on a subspace": lambda rng: integers_on_subspace(400, 6, 3, 280, rng).X,
            "heavy": rows_with_a_heavy_subspace,
        }[kind](rng)
        w = rng.standard_normal(X.shape[1])
        found = algorithm_2(X, corrupted(X, w, 0.3, adversary, rng))
        hits += np.allclose(X @ found.w, X @ w, rtol=1e-8, atol=1e-8 * np.abs(X @ w).max())
    assert hits == 5


def test_heavy_subspaces_are_solved_one_after_the_other():
    rng = np.random.default_rng(34)
    X = np.zeros((700, 7))
    X[:300, :1] = rng.standard_normal((300, 1))
    X[300:550, :3] = rng.standard_normal((250, 3))
    X[550:] = rng.standard_normal((150, 7))
    w = np.arange(1.0, 8)
    found = algorithm_2(X, corrupted(X, w, 0.3, "far", rng), gamma=1e-3)
    assert is_exact(found.w, w)
    assert [piece.subspace.shape[1] for piece in found.pieces] == [1, 2, 4]
    heavy = algorithm_1(X, X @ w, gamma=1e-3)
    assert heavy.status is LinearStatus.HEAVY_SUBSPACE
    np.testing.assert_allclose(heavy.w, [1, 0, 0, 0, 0, 0, 0], atol=1e-12)


@pytest.mark.slow
def test_figure_1a_has_the_rates_of_the_paper():
    """At eta = .45 one L1 regression is right in most tables at gamma = 1/2, in few at 1e-3, in all in our position."""
    rates = np.zeros(4)
    for seed in range(40):
        X, y, w = mixture(120, 0.45, seed)
        answers = (
            l1_regression(X, y).coef,
            algorithm_1(X, y, gamma=1e-3).w,
            algorithm_1(X, y).w,
            algorithm_1(X, y, position="most_effective").w,
        )
        rates += [is_exact(answer, w, 1e-5) for answer in answers]
    naive, tight, loose, effective = rates / 40
    assert naive < 0.1
    assert 0.1 < tight < loose - 0.15
    assert 0.5 < loose < effective
    assert effective >= 0.95


def test_weights_repeat_rows():
    X, y, _ = mixture(60, 0.2, 3, d=5)
    weights = np.random.default_rng(0).integers(0, 4, 60)
    for position in ("radial_isotropic", "most_effective"):
        one = algorithm_2(X, y, position=position, sample_weight=weights).w
        other = algorithm_2(np.repeat(X, weights, axis=0), np.repeat(y, weights), position=position).w
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)


# --- statuses and misuse ---


def test_directions_that_no_row_sees_are_a_status():
    rng = np.random.default_rng(35)
    X = gaussian(60, 4, rng)
    X[:, 3] = X[:, 0] + X[:, 1]
    found = algorithm_2(X, X @ [1.0, 2, 3, 4])
    assert found.status is LinearStatus.NOT_SPANNING
    np.testing.assert_allclose(X @ found.w, X @ [1.0, 2, 3, 4], rtol=1e-10)
    assert algorithm_1(X, X @ [1.0, 2, 3, 4]).status is LinearStatus.NOT_SPANNING
    for algorithm in (algorithm_1, algorithm_2):
        nothing = algorithm(np.zeros((5, 2)), np.ones(5))
        assert nothing.status is LinearStatus.NOT_SPANNING
        assert not nothing.w.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.ones((3, 1))}, "y must have shape"),
        ({"y": [1, np.nan, 2]}, "y"),
        ({"X": [[1, np.inf]] * 3}, "X"),
        ({"gamma": 1.0}, "gamma must be between 0 and 1"),
        ({"position": "exact"}, 'position must be "radial_isotropic" or "most_effective"'),
        ({"sample_weight": [-1, 1, 1]}, "sample_weight"),
        (
            {"X": np.full((3, 2), 1e200)},
            "X must have its largest number between 1e-152 and 1e152, got 1e.200: write it",
        ),
        ({"y": [1, 2, 1e300]}, "y must have its largest number"),
    ],
)
@pytest.mark.parametrize("algorithm", [algorithm_1, algorithm_2])
def test_misuse_is_named(algorithm, arguments, message):
    with pytest.raises(ValueError, match=message):
        algorithm(**{"X": np.eye(3)[:, :2] + 1, "y": np.ones(3), **arguments})


# --- Lemma 2.3 ---


def exact_margin(right, wrong):
    """The margin of integer rows in the plane, in rational arithmetic: the worst r is orthogonal to a right row."""
    ratios = []
    for a, b in right:
        below = sum(abs(-b * x + a * z) for x, z in right)
        above = sum(abs(-b * x + a * z) for x, z in wrong)
        ratios.append(Fraction(above, below) if below else None)
    worst = max(ratios)
    return (1 - worst) / (1 + worst)


@given(st.lists(st.tuples(*[st.integers(-9, 9)] * 2), min_size=4, max_size=12), st.integers(1, 3))
def test_the_margin_of_integer_rows_lies_between_its_two_sides(rows, n_wrong):
    rows = [row for row in rows if any(row)]
    right, wrong = rows[n_wrong:], rows[:n_wrong]
    if len(right) < 2 or np.linalg.matrix_rank(right) < 2:
        return
    margin, known = structural_margin(right, wrong), float(exact_margin(right, wrong))
    assert margin.lower <= known + 1e-12
    assert margin.upper >= known - 1e-12
    ratio = np.abs(np.array(wrong) @ margin.direction).sum() / np.abs(np.array(right) @ margin.direction).sum()
    assert margin.upper == pytest.approx((1 - ratio) / (1 + ratio), abs=1e-12)


@pytest.mark.slow
def test_both_sides_meet_where_wrong_rows_are_few_and_at_the_papers_size_decide():
    decided = 0
    for seed in range(6):
        X, y, w = mixture(120, 0.25, seed)
        A = radial_isotropy(X).matrix
        U = X @ A / np.linalg.norm(X @ A, axis=1)[:, None]
        right = np.abs(X @ w - y) <= 1e-9 * np.abs(X) @ np.abs(w)
        margin = structural_margin(U[right], U[~right])
        assert margin.lower <= margin.upper <= margin.lower + 0.1
        decided += margin.lower > 0 or margin.upper < 0
        if margin.lower > 0:
            assert is_exact(algorithm_1(X, y).w, w)
    assert decided >= 4


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 12))
@settings(max_examples=30)
def test_a_positive_lower_side_makes_the_l1_answer_exact(seed, d, n_wrong):
    rng = np.random.default_rng(seed)
    X, w = gaussian(40, d, rng), rng.standard_normal(d)
    margin = structural_margin(X[n_wrong:], X[:n_wrong])
    if margin.lower <= 0:
        return
    for factor in (1.0, -1.0, 1e6):  # labels along the worst direction, and far ones
        y = X @ w
        y[:n_wrong] = X[:n_wrong] @ (w + factor * margin.direction)
        assert is_exact(l1_regression(X, y).coef, w)


def test_most_draws_of_that_law_are_decided():
    rng = np.random.default_rng(36)
    positive = sum(structural_margin(X[5:], X[:5]).lower > 0 for X in (gaussian(40, 3, rng) for _ in range(20)))
    assert positive >= 15


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@settings(max_examples=30)
def test_a_negative_upper_side_lets_an_adversary_defeat_l1(seed, d):
    rng = np.random.default_rng(seed)
    X, w = gaussian(30, d, rng), rng.standard_normal(d)
    X[:6] *= 20  # long wrong rows
    margin = structural_margin(X[6:], X[:6])
    assert margin.upper < 0
    y = X @ w
    y[:6] = X[:6] @ (w + margin.direction)
    loss = np.abs(X @ w - y).sum()
    assert np.abs(X @ (w + margin.direction) - y).sum() < loss  # another parameter is cheaper than w*
    answer = linprog(  # and so says an independent solver: minimise sum t, |y - Xw| <= t
        np.r_[np.zeros(d), np.ones(30)],
        A_ub=np.block([[X, -np.eye(30)], [-X, -np.eye(30)]]),
        b_ub=np.r_[y, -y],
        bounds=[(None, None)] * d + [(0, None)] * 30,
    )
    assert answer.fun < loss * (1 - 1e-9)


def test_the_margin_of_many_rows_is_a_bound_still():
    rng = np.random.default_rng(37)
    X = gaussian(600, 4, rng)
    cheap, sharp = structural_margin(X[60:], X[:60], size_limit=0), structural_margin(X[100:160], X[:10])
    assert 0 < cheap.lower <= cheap.upper
    assert sharp.lower > structural_margin(X[100:160], X[:10], size_limit=0).lower


def test_margins_where_nothing_is_seen():
    assert structural_margin(np.eye(3), np.zeros((0, 3))).lower == 1
    assert structural_margin(np.eye(3), np.zeros((2, 3))).upper == 1
    assert structural_margin([[1.0, 0]], [[0.0, 1]]).upper == -1
    assert structural_margin([[1.0, 0]], [[1.0, 0]]).upper == 0  # 0 > 0 fails where no row sees the direction
    with pytest.raises(ValueError, match="X_wrong has 3 columns but X_right has 2"):
        structural_margin(np.eye(2), np.ones((1, 3)))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_the_margin_does_not_depend_on_units(seed):
    rng = np.random.default_rng(seed)
    X, scales = gaussian(24, 3, rng), 10.0 ** rng.uniform(-8, 8, 3)
    one, other = structural_margin(X[4:], X[:4]), structural_margin(X[4:] * scales, X[:4] * scales)
    assert one.lower == pytest.approx(other.lower, abs=1e-6)
    assert one.upper == pytest.approx(other.upper, abs=1e-6)


# --- positions (ours) ---

POSITIONED = {
    "mixture": lambda rng: paper_mixture(120, 30, rng),
    "gaussian": lambda rng: gaussian(60, 6, rng),
    "cauchy": lambda rng: cauchy(80, 8, rng),
    "units": lambda rng: scaled_columns(90, 5, rng),
}


@pytest.mark.parametrize("kind", sorted(POSITIONED))
@pytest.mark.parametrize("seed", range(3))
def test_no_row_outweighs_the_others_by_more_than_its_leverage_allows(kind, seed):
    rng = np.random.default_rng([38, seed])
    X = POSITIONED[kind](rng)
    n, d = X.shape
    found = most_effective_position(X)
    U = X * found.weights[:, None]
    H = U @ np.linalg.solve(U.T @ U, U.T) if kind != "units" else None
    assert found.leverages.max() <= 2 * d / n * (1 + 1e-6)
    if H is not None:
        np.testing.assert_allclose(found.leverages, np.diag(H), rtol=1e-6)
        np.testing.assert_allclose(found.kappa, np.abs(H).sum(axis=1) ** 2 / np.diag(H), rtol=1e-6)
    scales = np.abs(U).max(axis=0)
    directions = [rng.standard_normal(d) / scales for _ in range(50)]
    if H is not None:
        directions += list(np.linalg.solve(U.T @ U, U[:50].T).T)  # the directions of the hat matrix
    for r in directions:
        a = np.abs(U @ r)
        assert a.max() <= 2 * d / n * a.sum() * (1 + 1e-9)
        assert effective_number(X, found.weights, r) >= found.least_effective * (1 - 1e-9)


def test_the_position_of_each_piece_keeps_its_leverages():
    rng = np.random.default_rng(39)
    X = rows_with_a_heavy_subspace(rng)
    pieces = decompose(X, 1e-3)
    assert len(pieces) > 1
    for piece in pieces:
        Z = X[piece.members] @ piece.subspace
        found = most_effective_position(Z)
        assert found.leverages.max() <= 2 * Z.shape[1] / len(Z) * (1 + 1e-6)
    w = rng.standard_normal(6)
    y = corrupted(X, w, 0.3, "decoy", rng)
    assert is_exact(algorithm_2(X, y, gamma=1e-3, position="most_effective").w, w)


def test_weights_follow_the_order_of_rows_and_not_the_coordinates():
    rng = np.random.default_rng(40)
    X = paper_mixture(90, 12, rng)
    order, Q = rng.permutation(90), np.linalg.qr(rng.standard_normal((12, 12)))[0]
    found = most_effective_position(X).weights
    np.testing.assert_allclose(most_effective_position(X[order]).weights, found[order], rtol=1e-6)
    tight = most_effective_position(X, gammas=(1e-8,)).weights
    np.testing.assert_allclose(most_effective_position(X @ Q, gammas=(1e-8,)).weights, tight, rtol=1e-4)


def test_a_sample_of_the_hat_matrix_stands_for_all_of_it():
    rng = np.random.default_rng(41)
    X = paper_mixture(1500, 10, rng)
    whole, some = (most_effective_position(X, hat_columns=size) for size in (1500, 500))
    np.testing.assert_allclose(np.log(some.weights / whole.weights), 0, atol=0.5)
    assert some.leverages.max() <= 2 * 10 / 1500 * (1 + 1e-6)
    true = most_effective_position(X * some.weights[:, None], steps=0).kappa.min()
    assert true > 0.5 * whole.kappa.min()


def test_rows_without_a_position_are_refused():
    with pytest.raises(ValueError, match="decompose it"):
        most_effective_position([[1.0, 0]] * 9 + [[0.0, 1]])
    with pytest.raises(ValueError, match="no non-zero row"):
        most_effective_position(np.zeros((3, 2)))


@pytest.mark.parametrize("eta", [0.1, 0.3])
def test_the_bound_on_failure_holds_in_simulation(eta):
    rng = np.random.default_rng(42)
    n, d = 400, 2
    X = gaussian(n, d, rng)
    leverages = most_effective_position(X).leverages
    bound = failure_probability(n, d, eta, c=leverages.max() * n / d)
    w, failures = np.array([1.0, 2.0]), 0
    for _ in range(100):
        y = corrupted(X, w, eta, "decoy", rng)
        failures += not is_exact(algorithm_1(X, y, position="most_effective").w, w)
    assert failures / 100 <= max(bound, 0.02)
    assert failure_probability(10 * n, d, eta) < failure_probability(5 * n, d, eta) < 1
    assert failure_probability(10, 5, 0.4) == 1
    with pytest.raises(ValueError, match="eta must be at least 0 and below 1/2"):
        failure_probability(10, 5, 0.5)
