"""The one-pass statistics and the calculus of f, against their definitions."""

from __future__ import annotations

from collections import deque
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from massart.isotropy import descent
from massart.isotropy.curvature import pinched_hessian
from massart.isotropy.descent import (
    _line_search,
    _two_loop,
    _weighted_factor,
    dual_newton,
    fixed_point,
    geodesic_descent,
)
from massart.isotropy.frame import frame_of_rows
from massart.isotropy.heavy import HeavySearch, Spectrum, is_heavy, light_coordinates
from massart.isotropy.moments import (
    distances,
    fourth_moments,
    radial_moments,
    triangular_factor,
    typical_sizes,
)
from massart.rows import block_rows
from massart.rows.scaling import exponents


def problem(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal((d, k)), rng.random(n) + 0.1


def unit_images(X, T):
    Y = X @ T
    return Y / np.linalg.norm(Y, axis=1)[:, None]


def f(X, T, weights):
    """The objective of the module `descent`, by definition."""
    k = T.shape[1]
    share = weights / weights.sum()
    return k * share @ np.log(np.sum((X @ T) ** 2, axis=1)) - np.linalg.slogdet(T.T @ T)[1]


def expm(S):
    sizes, axes = np.linalg.eigh(S)
    return (axes * np.exp(sizes)) @ axes.T


def symmetric(k, seed):
    S = np.random.default_rng(seed).standard_normal((k, k))
    return S + S.T


@pytest.mark.parametrize("n", [1, 7, block_rows(5) + 3, 2 * block_rows(5)])
@pytest.mark.parametrize("weighted", [False, True])
def test_radial_moments_by_definition(n, weighted):
    X, T, weights = problem(n, 5, 4)
    c = weights if weighted else np.ones(n)
    moments = radial_moments(X, T, weights if weighted else None)
    U = unit_images(X, T)
    np.testing.assert_allclose(moments.second, (U * c[:, None]).T @ U, rtol=1e-10)
    np.testing.assert_allclose(moments.log_norm, c @ np.log(np.sum((X @ T) ** 2, axis=1)), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(moments.psi, 4 * moments.second / c.sum())
    assert moments.weight == pytest.approx(c.sum())


@given(st.integers(1, 49))
def test_moments_of_chunks_add(cut):
    X, T, weights = problem(50, 4, 4)
    whole = radial_moments(X, T, weights)
    parts = radial_moments(X[:cut], T, weights[:cut]) + radial_moments(X[cut:], T, weights[cut:])
    np.testing.assert_allclose(parts.second, whole.second, rtol=1e-12)
    np.testing.assert_allclose(parts.psi, whole.psi, rtol=1e-12)
    assert parts.log_norm == pytest.approx(whole.log_norm, abs=1e-10)
    assert parts.weight == pytest.approx(whole.weight)


def test_fourth_moments_by_definition():
    X, T, weights = problem(80, 4, 3)
    U = unit_images(X, T)
    expected = 3 * np.einsum("i,ia,ib->ab", weights / weights.sum(), U**2, U**2)
    np.testing.assert_allclose(fourth_moments(X, T, weights), expected, rtol=1e-12)
    np.testing.assert_allclose(fourth_moments(X, T), 3 * np.einsum("ia,ib->ab", U**2, U**2) / 80, rtol=1e-12)


def test_triangular_factor_is_that_of_the_unit_rows():
    X, T, _ = problem(3 * block_rows(6), 6, 6)
    R = triangular_factor(X, T)
    U = unit_images(X, T)
    np.testing.assert_allclose(R.T @ R, U.T @ U, rtol=1e-10, atol=1e-8)
    chosen = np.arange(len(X)) % 3 == 0
    R = triangular_factor(X, T, chosen)
    np.testing.assert_allclose(R.T @ R, U[chosen].T @ U[chosen], rtol=1e-10, atol=1e-8)


def test_distances_are_exact_far_below_the_root_of_rounding():
    """Through squares of projections a distance below 1e-8 would be lost; ranks are decided at 1e-13."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    X = rng.standard_normal((20, 2)) @ axes[:, :2].T + 1e-11 * np.outer(np.ones(20), axes[:, 4])
    found = distances(X, np.eye(5), axes[:, 2:])
    np.testing.assert_allclose(found, 1e-11 / np.linalg.norm(X, axis=1), rtol=1e-3)


def test_sizes_balance_columns_whatever_the_rows():
    rng = np.random.default_rng(0)
    scales = np.array([1e-30, 1e20, 1.0, 1e5, 1.0])
    X = rng.standard_normal((400, 5)) * scales * np.exp(5 * rng.standard_normal((400, 1)))
    X[:, 2] = 0
    X[:350, 4] = 1e-16  # rounding errors do not make a column small
    sizes = typical_sizes(X)
    assert np.all(np.frexp(sizes)[0] == 0.5)
    assert sizes[2] == 1
    relative = np.log10(sizes / scales)
    np.testing.assert_allclose(relative[[0, 1, 3]] - relative[0], 0, atol=0.5)
    np.testing.assert_allclose(relative[4] - relative[0], 0, atol=1)


def test_exponents_bound_the_entries():
    X = np.array([[3.0, -100.0], [0.0, 0.0], [1e-200, 1e-300]])
    scaled = np.ldexp(X, -exponents(X, axis=1)[:, None])
    np.testing.assert_array_equal(np.abs(scaled).max(axis=1) >= 0.5, [True, False, True])
    assert np.abs(scaled).max() < 1


# --- f and its derivatives, the formulas of `descent` and `curvature` ---


def test_gradient_of_f_is_identity_minus_psi():
    X, T, weights = problem(60, 4, 4)
    D = symmetric(4, 1)
    h = 1e-5
    slope = (f(X, T @ expm(-h * D / 2), weights) - f(X, T @ expm(h * D / 2), weights)) / (2 * h)
    psi = radial_moments(X, T, weights).psi
    assert slope == pytest.approx(np.vdot(np.eye(4) - psi, D), rel=1e-6)


def test_f_is_convex_along_geodesics():
    X, T, weights = problem(60, 4, 4)
    for seed in range(20):
        D = symmetric(4, seed)
        values = [f(X, T @ expm(-t * D / 2), weights) for t in np.linspace(-2, 2, 21)]
        assert np.diff(values, 2).min() >= -1e-9


def hessian_by_definition(X, T, weights, S):
    U = unit_images(X, T)
    share = weights / weights.sum()
    k = T.shape[1]
    psi = k * (U * share[:, None]).T @ U
    return (psi @ S + S @ psi) / 2 - k * (U * (share * np.einsum("ia,ab,ib->i", U, S, U))[:, None]).T @ U


def test_hessian_formula_is_the_second_derivative():
    X, T, weights = problem(60, 4, 4)
    S = symmetric(4, 2)
    h = 1e-3
    values = [f(X, T @ expm(-t * S / 2), weights) for t in (-h, 0, h)]
    second = (values[0] - 2 * values[1] + values[2]) / h**2
    assert second == pytest.approx(np.vdot(S, hessian_by_definition(X, T, weights, S)), rel=1e-4)


def test_pinched_hessian_is_exact_for_sign_symmetric_images():
    rng = np.random.default_rng(0)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T
    X = (np.abs(rng.standard_cauchy((30, 1, 4))) * signs).reshape(-1, 4)
    weights = np.ones(len(X))
    model = pinched_hessian(X, np.eye(4), radial_moments(X, np.eye(4)).psi, None)
    S = symmetric(4, 3)
    S -= np.eye(4) * np.trace(S) / 4  # f does not change along the identity
    np.testing.assert_allclose(model.apply(S), hessian_by_definition(X, np.eye(4), weights, S), atol=1e-10)
    np.testing.assert_allclose(model.solve(model.apply(S)), S, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_direction_that_f_does_not_see_has_curvature_one(weighted):
    """H vanishes on the identity; the model has 1 there, so that it can be inverted, and nothing else changes."""
    X, T, weights = problem(60, 4, 4)
    weights = weights if weighted else None
    model = pinched_hessian(X, T, radial_moments(X, T, weights).psi, weights)
    np.testing.assert_allclose(model.apply(np.eye(4)), np.eye(4), atol=1e-12)


# --- the three methods ---


@pytest.mark.parametrize("method", [fixed_point, geodesic_descent, dual_newton])
@pytest.mark.parametrize("weighted", [False, True])
def test_iterates_descend_and_report_their_own_spectrum(method, weighted):
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, (80, 5)) @ rng.standard_normal((5, 5))
    weights = rng.random(80) + 0.2 if weighted else None
    c = np.ones(80) if weights is None else weights
    T0 = rng.standard_normal((5, 5))
    previous = np.inf
    for step, iterate in enumerate(method(X, T0, weights)):
        np.testing.assert_allclose(iterate.T, T0 @ iterate.relative, rtol=1e-9, atol=1e-12)
        psi = radial_moments(X, iterate.T, weights).psi
        np.testing.assert_allclose(iterate.eigenvalues, np.linalg.eigvalsh(psi), atol=1e-8)
        value = f(X, iterate.T, c)
        assert value <= previous + 1e-9
        previous = value
        if iterate.error < 1e-9 or step == 200:
            break
    assert iterate.error < 1e-9


def test_fixed_point_never_lets_the_smallest_eigenvalue_fall():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, (40, 5)).astype(float)
        X[:, 4] *= rng.random(40) < 0.1  # often a light coordinate, so that no transform exists
        X = X[X.any(axis=1)]
        if np.linalg.matrix_rank(X) < 5:
            continue
        smallest = [it.eigenvalues[0] for _, it in zip(range(30), fixed_point(X, np.eye(5)), strict=False)]
        assert np.diff(smallest).min() >= -1e-10


@pytest.mark.parametrize("weighted", [False, True])
def test_newton_on_the_dual_doubles_the_digits(weighted):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 5)) * [1, 2, 3, 4, 5]
    weights = rng.random(60) + 0.5 if weighted else None
    errors = [
        iterate.error for iterate in islice(dual_newton(X, np.linalg.inv(np.linalg.cholesky(X.T @ X)).T, weights), 7)
    ]
    assert errors[-1] < 1e-12 < errors[2]
    assert errors[4] < 10 * errors[3] ** 1.5


def test_the_last_step_satisfies_the_secant_equation():
    """H y = s for the last pair of a step s and a change of gradient y, and H is symmetric: a quasi-Newton method."""
    pairs = deque()
    for seed in range(4):
        step = symmetric(5, seed)
        change = step + 0.2 * symmetric(5, 10 + seed)
        pairs.append((step, change, float(np.vdot(step, change))))
    for model in (None, pinched_hessian(*problem(60, 5, 5)[:2], np.eye(5), None)):
        np.testing.assert_allclose(_two_loop(pairs[-1][1], pairs, model), pairs[-1][0], rtol=1e-10, atol=1e-12)
        u, v = symmetric(5, 50), symmetric(5, 51)
        assert np.vdot(u, _two_loop(v, pairs, model)) == pytest.approx(np.vdot(v, _two_loop(u, pairs, model)))
    first = deque([pairs[0]])
    step, change, curvature = pairs[0]
    basis = np.linalg.qr(np.stack([step.ravel(), change.ravel(), symmetric(5, 99).ravel()]).T)[0]
    other = basis[:, 2].reshape(5, 5)  # neither step nor change has a part in it: the curvature alone scales it
    np.testing.assert_allclose(_two_loop(other, first, None), other * curvature / np.vdot(change, change), atol=1e-12)


@pytest.mark.parametrize("times", [0.3, 3.0, 40.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_is_the_longest_of_halves_that_decreases_f_enough(times, weighted):
    rng = np.random.default_rng(2)
    X = rng.standard_t(2, (80, 4))
    c = rng.random(80) + 0.2 if weighted else np.ones(80)
    weights = c if weighted else None
    *_, near = islice(fixed_point(X, np.eye(4), weights), 20)
    T0, M = near.T, expm(0.3 * symmetric(4, 0))
    moments = radial_moments(X, T0 @ M, weights)
    gradient = np.eye(4) - moments.psi
    direction = -times * gradient
    slope = float(np.vdot(gradient, direction))
    length = min(1.0, 5 / np.abs(np.linalg.eigvalsh(direction)).max())
    expected = []
    for j in range(10):
        trial = M @ expm(-length * 0.5**j * direction / 2)
        fall = f(X, T0 @ trial, c) - f(X, T0 @ M, c)
        expected.append((fall <= 1e-4 * length * 0.5**j * slope, j, trial))
    _, halved, trial = next(found for found in expected if found[0])
    assert (halved > 0) == (times > 3)
    step = _line_search(X, T0, M, moments, direction, slope, weights)
    assert (step.length, step.sweeps) == (pytest.approx(length * 0.5**halved), halved + 1)
    np.testing.assert_allclose(step.M, trial, rtol=1e-9)
    np.testing.assert_allclose(step.moments.psi, radial_moments(X, T0 @ trial, weights).psi, atol=1e-12)
    uphill = _line_search(X, T0, M, moments, -direction, slope, weights)
    assert (uphill.moments, uphill.sweeps) == (None, 30)
    np.testing.assert_array_equal(uphill.M, M)


@pytest.mark.parametrize("method", [fixed_point, geodesic_descent, dual_newton])
def test_passes_over_the_rows_are_counted(method, monkeypatch):
    X = np.random.default_rng(0).standard_t(2, (150, 4))
    read = []
    for name in ("radial_moments", "pinched_hessian", "_weighted_factor"):
        plain = getattr(descent, name)
        monkeypatch.setattr(descent, name, lambda *given, plain=plain: read.append(1) or plain(*given))
    sweeps = [iterate.sweeps for iterate in islice(method(X, np.eye(4)), 6)]
    assert sum(sweeps) == len(read) + (method is dual_newton)  # which maps the rows once
    assert min(sweeps) >= 1


@pytest.mark.parametrize("times", [1.0, 3.0])
def test_a_model_of_the_curvature_is_used_where_it_explains_the_last_step(times, monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 4))
    *_, near = islice(fixed_point(X, np.eye(4)), 4)
    asked = []

    class Model:
        def __init__(self, known):
            self.known = known

        def apply(self, S):
            return times * self.known.apply(S)

        def solve(self, G):
            asked.append(1)
            return self.known.solve(G) / times

    monkeypatch.setattr(descent, "pinched_hessian", lambda *given: Model(pinched_hessian(*given)))
    T0 = near.T @ expm(0.02 * symmetric(4, 0))
    *_, last = islice(geodesic_descent(X, T0), 8)
    assert bool(asked) == (times == 1)
    assert last.error < 1e-6


def test_without_a_factor_newtons_method_takes_steps_of_the_fixed_point(monkeypatch):
    def fails(*_):
        raise descent.linalg.LinAlgError

    X = np.random.default_rng(0).standard_t(2, (60, 4))
    monkeypatch.setattr(descent.linalg, "cho_factor", fails)
    *_, last = islice(dual_newton(X, np.eye(4)), 150)
    assert last.error < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_the_dual_is_its_formula(weighted):
    rng = np.random.default_rng(4)
    Z, t = rng.standard_normal((30, 3)), 3 * rng.standard_normal(30)
    share = rng.random(30) if weighted else np.ones(30)
    target = 3 * share / share.sum()
    Q, R, value = _weighted_factor(Z, t, target)
    S = (Z * np.exp(t)[:, None]).T @ Z
    assert value == pytest.approx(np.linalg.slogdet(S)[1] - target @ t)
    np.testing.assert_allclose(R.T @ R * np.exp(t.max()), S, rtol=1e-9)
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-12)


# --- what the iterations give away ---


def heavy_rows(d=5, k=2, share=0.7, n=200):
    """Return rows of which a share lies in a k-dimensional subspace, turned, and which these are."""
    rng = np.random.default_rng(d)
    X = rng.standard_normal((n, d))
    inside = np.arange(n) < share * n
    X[inside, k:] = 0
    return X @ np.linalg.qr(rng.standard_normal((d, d)))[0], inside


@pytest.mark.parametrize(("d", "k"), [(5, 2), (4, 3), (6, 1)])
def test_a_stuck_eigenvalue_gives_a_heavy_subspace_away(d, k):
    X, inside = heavy_rows(d, k, share=0.95)
    frame = frame_of_rows(X, None)
    whitening = np.linalg.inv(np.linalg.cholesky(X.T @ X)).T
    search = HeavySearch(frame, whitening, 1e-13, gamma=0.1)
    *_, last = islice(fixed_point(X, whitening, None), 12)
    found = search.stuck(last)
    assert found is not None
    assert found.basis.shape == (d, k)
    np.testing.assert_array_equal(found.inside, inside)


@pytest.mark.parametrize(("d", "k"), [(5, 2), (4, 3), (6, 1)])
def test_a_diverging_map_gives_a_heavy_subspace_away(d, k):
    X, inside = heavy_rows(d, k, share=0.95)
    whitening = np.linalg.inv(np.linalg.cholesky(X.T @ X)).T
    search = HeavySearch(frame_of_rows(X, None), whitening, 1e-13, gamma=1e-3)
    for iterate in islice(geodesic_descent(X, whitening, None), 12):
        found = search.diverging(iterate, Spectrum(*np.linalg.svd(iterate.relative)[1:]))
        if found is not None:
            break
    assert found is not None
    np.testing.assert_array_equal(found.inside, inside)


def test_sizes_are_the_geometric_means_of_entries_that_are_not_rounding():
    rng = np.random.default_rng(3)
    X = np.ldexp(rng.uniform(0.5, 1, (60, 4)), rng.integers(-9, 10, (60, 4))) * rng.choice([-1, 1], (60, 4))
    X[rng.random((60, 4)) < 0.3] = 0
    X[:20, 1] *= 2.0**-45  # beside the others of their column these are nothing
    X[:, 3] = 0
    X = X[X.any(axis=1)]
    entries = [[] for _ in range(4)]
    for row in X:
        largest = max(int(np.frexp(value)[1]) for value in row if value)
        for j, value in enumerate(row):
            entries[j] += [int(np.frexp(value)[1]) - largest] if value else []
    kept = [[value for value in column if value > max(column) - 40] for column in entries]
    assert sum(map(len, kept)) < sum(map(len, entries))
    means = [round(sum(column) / len(column)) if column else 0 for column in kept]
    np.testing.assert_array_equal(typical_sizes(X), np.exp2(means))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_share_of_rows_is_counted_exactly(weighted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    weights = rng.integers(1, 4, 80) / 10 if weighted else None
    frame = frame_of_rows(X, weights)
    c = np.full(80, 1 / 80) if weights is None else weights / weights.sum()
    np.testing.assert_allclose(frame.shares, c, rtol=1e-12)
    search = HeavySearch(frame, np.eye(4), 1e-13, gamma=0.5)
    distance = rng.random(80)
    for k in (1, 2, 3):
        chosen = search._nearest(distance, k)
        order = np.argsort(distance)
        assert chosen[order[: chosen.sum()]].all()
        assert c[chosen].sum() >= k / 4 - 1e-9
        assert c[chosen].sum() - c[order[chosen.sum() - 1]] < k / 4 - 1e-9
        assert is_heavy(frame, chosen, k)
        fewer = chosen.copy()
        fewer[order[chosen.sum() - 1]] = False
        assert not is_heavy(frame, fewer, k)
        outside = ~chosen
        assert search._rules_out(outside, 3) == (4 * c[outside].sum() < 0.5 * 3)
    assert search._nearest(distance, 4).all()
    few = frame_of_rows(np.where(np.arange(80)[:, None] < [80, 10, 9, 80], 1.0, 0.0) * X, None)
    assert light_coordinates(few, 0.5).tolist() == [False, False, True, False]  # below 80 / 4 / 2
    counted = np.where(np.arange(80) < 10, 0.5, 1.0)
    few = frame_of_rows(X * np.where(np.arange(80)[:, None] < [80, 10, 15, 14], 1.0, 0.0), counted)
    assert light_coordinates(few, 0.5).tolist() == [False, True, False, True]  # below 75 / 4 / 2


def test_a_share_that_is_just_enough_is_whatever_sums_of_weights_round_to():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 5))
    for _ in range(20):
        counts = rng.integers(1, 9, 40).astype(float)
        inside = np.arange(40) < 16
        counts[0] += 2 * counts[~inside].sum()  # then the first rows have more than two thirds of the others ...
        counts[39] += 3 * counts[inside].sum() / 2 - counts[~inside].sum()  # ... and now two fifths of all
        for unit in (1.0, 0.1, 1 / 3):
            assert is_heavy(frame_of_rows(X, unit * counts), inside, 2)
        counts[39] *= 1 + 1e-9
        assert not is_heavy(frame_of_rows(X, counts), inside, 2)


def test_leverages_are_squares_of_projections():
    X, T, _ = problem(30, 4, 4)
    iterate = next(fixed_point(X, T))
    W = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 2)))[0]
    found = HeavySearch(frame_of_rows(X, None), np.eye(4), 1e-13, 0.5)._leverages(iterate, W)
    np.testing.assert_allclose(found, ((unit_images(X, iterate.T) @ W) ** 2).sum(axis=1), rtol=1e-10)


def test_the_condition_of_a_spectrum_is_a_number():
    assert Spectrum(np.array([8.0, 4.0, 2.0]), np.eye(3)).condition == 4
    assert Spectrum(np.array([1e-20, 0.0]), np.eye(2)).condition > 1e200


def test_scales_do_not_count_in_the_condition_of_a_map():
    X = np.random.default_rng(0).standard_normal((50, 3)) * [1.0, 2.0**30, 2.0**-30]
    frame = frame_of_rows(X, None)
    T = np.diag([1.0, 2.0**-30, 2.0**30]) @ np.diag([1.0, 4.0, 1.0])
    assert frame.condition(T) == pytest.approx(4, rel=0.9)
    assert frame.magnification(T) == pytest.approx(4, rel=0.9)
    turned, axes = frame.rotate(np.diag([3.0, 2.0, 1.0]))
    np.testing.assert_allclose(np.abs(axes), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(turned.C, X @ turned.basis)
