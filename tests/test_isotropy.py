"""Laws of the radial-isotropic transform, and comparisons with definitions, brute force and other libraries."""

from __future__ import annotations

import warnings
import zlib
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from heavy_families import FAMILIES, Truth, check_answer, heaviest_flat
from massart.isotropy import RadialIsotropy, Status, generalized_forster, radial_isotropy
from massart.l1 import l1_regression
from massart.paper import paper_mixture
from massart.rows import Progress
from row_families import cauchy, dummy_table, ill_conditioned


def images(X, iso: RadialIsotropy):
    """Return the unit vectors of the members, by definition."""
    Y = np.asarray(X, dtype=float)[iso.members] @ iso.subspace @ iso.matrix.T
    return Y / np.linalg.norm(Y, axis=1)[:, None]


def psi(X, iso: RadialIsotropy, weights=None):
    U = images(X, iso)
    c = np.ones(len(U)) if weights is None else weights[iso.members]
    return (U * c[:, None]).T @ U * (U.shape[1] / c.sum())


def precision_matrix(iso: RadialIsotropy):
    """Return Sigma^-1 = V A'A V' with trace one: what the transform determines."""
    B = iso.matrix @ iso.subspace.T
    return B.T @ B / np.trace(B.T @ B)


@pytest.fixture
def gaussian():
    return np.random.default_rng(1).standard_normal((90, 6)) @ np.random.default_rng(2).standard_normal((6, 6))


def test_residual_and_error_are_those_of_the_rows(gaussian):
    for gamma in (0.5, 0.1, 1e-3, 1e-9):
        iso = radial_isotropy(gaussian, gamma)
        spectrum = np.linalg.eigvalsh(psi(gaussian, iso))
        assert iso.residual == pytest.approx(1 - spectrum[0], abs=1e-12)
        assert iso.error == pytest.approx(max(1 - spectrum[0], spectrum[-1] - 1), abs=1e-12)
        assert iso.residual <= gamma
        assert iso.status is Status.WHOLE
        assert iso.members.all()
        assert np.array_equal(iso.subspace, np.eye(6))


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from([0.5, 1e-2, 1e-6]))
def test_generalized_forster_bounds_both_sides_on_a_heavy_subspace(seed, k, delta):
    """Lemma 2.6, on the whole space and on a subspace that holds one row more than its share."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, (60, 6)) * np.exp(rng.standard_normal((60, 1)))
    X[: 10 * k + 1] = rng.standard_normal((10 * k + 1, k)) @ rng.standard_normal((k, 6))
    found = generalized_forster(X, delta)
    dimension = found.subspace.shape[1]
    assert found.members.sum() * 6 >= dimension * 60
    assert found.error == pytest.approx(np.linalg.norm(psi(X, found) - np.eye(dimension), 2), abs=1e-8)
    assert found.error <= delta
    if delta == 1e-6:  # a rough position of all rows may exist, this one does not
        np.testing.assert_array_equal(found.members, np.arange(60) < 10 * k + 1)


def test_isotropy_is_invariant_to_row_scaling(gaussian):
    factors = np.exp(5 * np.random.default_rng(3).standard_normal((90, 1)))
    factors[::2] *= -1
    one, other = generalized_forster(gaussian, 1e-9), generalized_forster(gaussian * factors, 1e-9)
    np.testing.assert_allclose(precision_matrix(one), precision_matrix(other), rtol=0, atol=1e-8)


def test_isotropy_is_equivariant_to_linear_maps(gaussian):
    B = np.random.default_rng(4).standard_normal((6, 6))
    one, other = generalized_forster(gaussian, 1e-9), generalized_forster(gaussian @ B, 1e-9)
    mapped = B @ precision_matrix(other) @ B.T
    np.testing.assert_allclose(precision_matrix(one), mapped / np.trace(mapped), rtol=0, atol=1e-8)


def test_isotropy_is_invariant_to_row_order(gaussian):
    order = np.random.default_rng(5).permutation(90)
    one, other = generalized_forster(gaussian, 1e-9), generalized_forster(gaussian[order], 1e-9)
    np.testing.assert_allclose(precision_matrix(one), precision_matrix(other), rtol=0, atol=1e-8)


def test_integer_weights_are_repeated_rows_and_zero_weights_absent_ones(gaussian):
    weights = np.random.default_rng(6).integers(0, 4, 90)
    weighted = generalized_forster(gaussian, 1e-9, sample_weight=weights)
    repeated = generalized_forster(np.repeat(gaussian, weights, axis=0), 1e-9)
    np.testing.assert_allclose(precision_matrix(weighted), precision_matrix(repeated), rtol=0, atol=1e-8)
    np.testing.assert_array_equal(weighted.members, weights > 0)
    spectrum = np.linalg.eigvalsh(psi(gaussian, weighted, weights.astype(float)))
    assert np.abs(spectrum - 1).max() <= 1.1e-9


def test_weights_can_make_a_subspace_heavy(gaussian):
    X = gaussian.copy()
    X[:10, 2:] = 0  # ten rows in a plane: far below 90 * 2 / 6
    assert radial_isotropy(X, 1e-6).status is Status.WHOLE
    weights = np.where(np.arange(90) < 10, 10.0, 1.0)
    iso = radial_isotropy(X, 1e-6, sample_weight=weights)
    assert iso.status is Status.SUBSPACE
    np.testing.assert_array_equal(np.flatnonzero(iso.members), np.arange(10))


# --- the matrix: symmetric, positive definite, of determinant one (Lemma 2.2) ---


def check_matrix_and_residual(X, iso: RadialIsotropy):
    """Assert what Lemma 2.2 says about A, and that the residual is that of the rows under it."""
    A = iso.matrix
    np.testing.assert_array_equal(A, A.T)
    np.linalg.cholesky(A)  # raises unless A is positive definite, whatever the sizes of its columns
    sizes = np.sqrt(np.diag(A))  # rounding the entries of A changes its determinant by as much as this
    rounding = 2.0**-52 * np.linalg.cond(A / np.outer(sizes, sizes))
    assert np.linalg.slogdet(A)[1] == pytest.approx(0, abs=max(1e-8, rounding))
    spectrum = np.linalg.eigvalsh(psi(X, iso))
    assert iso.residual == pytest.approx(1 - spectrum[0], abs=1e-6)
    assert iso.error == pytest.approx(max(1 - spectrum[0], spectrum[-1] - 1), abs=1e-6)


@pytest.mark.slow
@given(
    st.sampled_from(sorted(FAMILIES)),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.5, 1e-2, 1e-6]),
    st.lists(st.integers(-30, 30), min_size=16, max_size=16),
)
@example("signs", 420441, 0.5, [-7, 2, -22, 5, 0, 8, -23, 0, 0, 0, 0, 0, 0, 0, 0, 0])
def test_the_matrix_is_symmetric_and_positive_definite(name, seed, gamma, exponents):
    X, _ = FAMILIES[name](np.random.default_rng(seed))
    check_matrix_and_residual(X, radial_isotropy(X, gamma))
    X = X * 10.0 ** np.resize(exponents, X.shape[1])  # columns in other units
    check_matrix_and_residual(X, radial_isotropy(X, gamma))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(-200, 200), min_size=6, max_size=6))
def test_units_of_columns_cost_no_digit_of_the_matrix(seed, exponents):
    """With columns times the diagonal D, A^2 becomes D^-1 A^2 D^-1, up to a factor."""
    X = np.random.default_rng(seed).standard_t(2, (40, 6))
    D = 2.0 ** np.array(exponents)
    known, found = generalized_forster(X, 1e-12).matrix, generalized_forster(X * D, 1e-12).matrix
    back = found * D / 2.0 ** np.mean(exponents)  # well-conditioned again, and not rounded but for one factor
    np.testing.assert_allclose(back.T @ back, known @ known, rtol=0, atol=1e-9 * np.abs(known @ known).max())


@pytest.mark.parametrize("condition", [1e6, 1e9, 1e12])
def test_a_turned_subspace_keeps_the_matrix_positive_definite(condition):
    for seed in range(5):
        X = ill_conditioned(200, 8, np.random.default_rng(seed), condition=condition)
        iso = radial_isotropy(X, 1e-6)
        assert not np.array_equal(iso.subspace, np.eye(8)), "the axes are turned"
        check_matrix_and_residual(X, iso)


def test_algorithm_1_as_printed_recovers_from_skewed_tables():
    """Lines 2 to 4 of Algorithm 1, with "return A w", are right only where A is symmetric."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        skew = rng.standard_normal((5, 5)) * [1, 30, 0.1, 1, 10]
        X = rng.standard_normal((300, 5)) @ skew * np.exp(2 * rng.standard_normal((300, 1)))
        w = rng.standard_normal(5)
        y = np.where(rng.random(300) < 0.3, -X @ w, X @ w)
        A = radial_isotropy(X).matrix
        lengths = np.linalg.norm(X @ A, axis=1)
        solution = l1_regression(X @ A / lengths[:, None], y / lengths).coef
        np.testing.assert_allclose(A @ solution, w, rtol=0, atol=1e-9 * np.linalg.norm(w))
        other = np.linalg.qr(skew)[0] @ A  # puts the rows in the same position, turned
        assert not np.allclose(other @ np.linalg.solve(other.T, w), w)


def test_the_matrix_is_that_of_appendix_a(gaussian):
    """A = (sum_i e^(t_i) x_i x_i')^(-1/2) up to a factor, where all leverages of the weighted rows are d/n."""
    A = generalized_forster(gaussian, 1e-9).matrix
    t = -2 * np.log(np.linalg.norm(gaussian @ A, axis=1))
    sizes, axes = np.linalg.eigh((gaussian.T * np.exp(t)) @ gaussian)
    published = (axes / np.sqrt(sizes)) @ axes.T
    np.testing.assert_allclose(A, published / np.linalg.det(published) ** (1 / 6), rtol=0, atol=1e-7)
    lengths = np.linalg.norm(gaussian @ published, axis=1)
    np.testing.assert_allclose(np.exp(t) * lengths**2, 6 / 90, atol=1e-8)


@given(st.integers(0, 2**32 - 1))
def test_the_condition_number_is_below_the_bound_of_appendix_a(seed):
    """At most (8 n / delta^2)^((d-1)/2), delta being the smallest |det| of d unit rows over 2 d."""
    X = np.random.default_rng(seed).integers(-20, 20, (7, 3))
    unit = X / np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]
    smallest = min(abs(np.linalg.det(unit[list(rows)])) for rows in combinations(range(7), 3))
    assume(smallest > 1e-9)  # in general position
    iso = generalized_forster(X, 1e-9)
    assert iso.status is Status.WHOLE
    assert np.linalg.cond(iso.matrix) <= (8 * 7 / (smallest / 6) ** 2) ** ((3 - 1) / 2)


def test_transform_gives_unit_rows_and_zero_for_zero(gaussian):
    X = np.vstack([gaussian, np.zeros((1, 6)), 1e200 * gaussian[:1], 1e-200 * gaussian[:1]])
    iso = radial_isotropy(X, 1e-6)
    U = iso.transform(X)
    np.testing.assert_allclose(np.linalg.norm(U[iso.members], axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(U[90], 0)
    np.testing.assert_allclose(U[91], U[0], atol=1e-12)
    np.testing.assert_allclose(U[92], U[0], atol=1e-12)
    with pytest.raises(ValueError, match="X has 3 columns but the transform has 6"):
        iso.transform(np.ones((2, 3)))


# --- independent references ---


def tyler_scatter_by_definition(X, steps=4000):
    """Iterate Sigma <- (d/n) sum x x' / x' Sigma^-1 x, nothing else."""
    n, d = X.shape
    S = np.eye(d)
    for _ in range(steps):
        q = np.einsum("ij,ij->i", X @ np.linalg.inv(S), X)
        S = (X / q[:, None]).T @ X * (d / n)
        S /= np.trace(S)
    return S


def test_agrees_with_tylers_iteration(gaussian):
    iso = generalized_forster(gaussian, 1e-9)
    inverse = np.linalg.inv(tyler_scatter_by_definition(gaussian))
    np.testing.assert_allclose(precision_matrix(iso), inverse / np.trace(inverse), rtol=0, atol=1e-8)


@pytest.mark.slow
def test_agrees_with_pyriemann():
    covariance = pytest.importorskip("pyriemann.geometry.covariance", reason="pyriemann is not installed")
    X = np.random.default_rng(8).standard_t(3, (400, 5))
    iso = generalized_forster(X, 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own dependencies deprecate what it calls
        scatter = covariance.covariance_mest(X.T, "tyl", tol=1e-13, n_iter_max=1000, assume_centered=True)
    inverse = np.linalg.inv(scatter)
    np.testing.assert_allclose(precision_matrix(iso), inverse / np.trace(inverse), rtol=0, atol=1e-8)


# --- heavy subspaces ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solve", "gamma"), [(generalized_forster, 1e-6), (radial_isotropy, 0.5), (radial_isotropy, 1e-2)]
)
@pytest.mark.parametrize("name", FAMILIES)
def test_planted_families_get_verified_right_answers(name, solve, gamma):
    for seed in range(4):
        X, truth = FAMILIES[name](np.random.default_rng([10_000 + seed, zlib.crc32(name.encode())]))
        iso = solve(X, gamma)
        assert iso.status is not Status.STALLED
        fault = check_answer(X, truth, iso, gamma, two_sided=solve is generalized_forster)
        assert fault == "", f"seed {10_000 + seed}"


@pytest.mark.slow
def test_every_flat_in_small_dimension():
    outcomes = set()
    for seed in range(60):
        X, truth = FAMILIES["all flats tried"](np.random.default_rng([20_000, seed]))
        iso = generalized_forster(X, 1e-9)
        assert check_answer(X, truth, iso, 1e-9, two_sided=True) == "", f"seed {seed}"
        outcomes.add(truth)
    assert outcomes == set(Truth), "the cases must cover all three truths"


@pytest.mark.slow
@given(
    hnp.arrays(np.int64, st.tuples(st.integers(1, 14), st.integers(1, 4)), elements=st.integers(-2, 2)).filter(np.any)
)
def test_any_small_integer_table_gets_the_right_answer(X):
    rows = X.astype(float)
    truth = heaviest_flat(rows[rows.any(axis=1)])
    assert check_answer(rows, truth, generalized_forster(X, 1e-6), 1e-6, two_sided=True) == ""


def test_a_heavy_line_is_found_exactly():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    X[:20] = np.outer(rng.standard_normal(20), [1, 2, 3, 4])
    iso = radial_isotropy(X, 1e-3)
    assert iso.status is Status.SUBSPACE
    assert iso.subspace.shape == (4, 1)
    np.testing.assert_array_equal(iso.members, np.arange(60) < 20)
    np.testing.assert_allclose(np.abs(iso.subspace[:, 0]), np.array([1, 2, 3, 4]) / np.sqrt(30), atol=1e-14)


def test_gamma_one_half_keeps_a_slightly_heavy_set_whole():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 4))
    X[:20, 1:] = 0  # 20 of 60 on a line: above 15, but Psi can still be 1/2 everywhere
    assert radial_isotropy(X, 0.5).status is Status.WHOLE
    assert radial_isotropy(X, 0.01).status is Status.SUBSPACE


# --- kinds of tables ---


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("shape", [(300, 12), (1500, 30)])
def test_ill_conditioned_rows(condition, shape):
    X = ill_conditioned(*shape, np.random.default_rng(3), condition=condition)
    iso = generalized_forster(X, 1e-9)
    assert iso.status is Status.WHOLE
    assert np.abs(np.linalg.eigvalsh(psi(X, iso)) - 1).max() <= 1e-8
    np.testing.assert_allclose(iso.subspace.T @ iso.subspace, np.eye(shape[1]), atol=1e-13)


def test_moderate_condition_leaves_the_coordinates_alone():
    X = ill_conditioned(300, 8, np.random.default_rng(3), condition=1e3) * np.logspace(-100, 100, 8)
    iso = generalized_forster(X, 1e-9)
    assert np.array_equal(iso.subspace, np.eye(8))
    U = iso.transform(X)
    assert np.abs(np.linalg.eigvalsh(U.T @ U * 8 / 300) - 1).max() <= 2e-9


def test_large_n_takes_few_steps():
    iso = generalized_forster(cauchy(5000, 40, np.random.default_rng(0)), 1e-10)
    assert iso.error <= 1e-10
    assert iso.n_iter <= 15


@pytest.mark.parametrize(
    "X",
    [
        pytest.param(np.eye(3), id="n equals d"),
        pytest.param(np.vstack([np.eye(3), np.ones((1, 3))]), id="n is d + 1"),
        pytest.param(np.random.default_rng(0).standard_normal((3, 7)), id="n below d"),
        pytest.param(np.array([[2.0, 1.0]]), id="one row"),
        pytest.param(np.arange(1.0, 6)[:, None], id="one column"),
        pytest.param(np.repeat(np.random.default_rng(0).standard_normal((9, 4)), 7, axis=0), id="duplicates"),
        pytest.param(np.eye(5)[np.arange(40) % 5], id="one-hot"),
        pytest.param(np.random.default_rng(0).standard_normal((50, 3)) @ np.ones((3, 6)), id="rank one"),
        pytest.param(
            np.hstack([np.random.default_rng(0).standard_normal((50, 3)), np.zeros((50, 2))]), id="zero columns"
        ),
        pytest.param(np.vstack([np.zeros((5, 3)), np.random.default_rng(0).standard_normal((20, 3))]), id="zero rows"),
        pytest.param(np.random.default_rng(0).integers(-3, 4, (60, 5)), id="integers"),
        pytest.param(np.random.default_rng(0).random((60, 5)) < 0.4, id="booleans"),
        pytest.param(dummy_table(200, [3, 4, 2], np.random.default_rng(0)), id="dummies"),
    ],
)
def test_kinds_of_tables(X):
    iso = generalized_forster(X, 1e-9)
    assert iso.status is not Status.STALLED
    assert check_answer(np.asarray(X, dtype=float), Truth.EITHER, iso, 1e-9, two_sided=True) == ""
    assert iso.subspace.shape[1] <= np.linalg.matrix_rank(X)


def test_float32_decides_ranks_at_its_own_precision():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    X[:150] = rng.standard_normal((150, 2)) @ rng.standard_normal((2, 5))
    single = radial_isotropy(X.astype(np.float32), 1e-6)
    np.testing.assert_array_equal(single.members, np.arange(200) < 150)
    # The same numbers, called float64, are off the plane by 1e-8 and count as a full-dimensional set or its planes.
    assert radial_isotropy(X.astype(np.float32).astype(float), 1e-6).members.sum() != 150
    assert radial_isotropy(X.astype(np.float32).astype(float), 1e-6, tol=1e-6).members.sum() == 150


def test_memory_layout_and_type_do_not_matter(gaussian):
    expected = radial_isotropy(gaussian, 1e-3)
    frozen = gaussian.copy()
    frozen.setflags(write=False)
    for X in (np.asfortranarray(gaussian), frozen, gaussian.tolist(), np.repeat(gaussian, 2, axis=0)[::2]):
        np.testing.assert_allclose(radial_isotropy(X, 1e-3).matrix, expected.matrix, rtol=1e-9)


def test_inputs_are_not_changed(gaussian):
    X, weights = gaussian.copy(), np.ones(90)
    radial_isotropy(X, 1e-6, sample_weight=weights)
    np.testing.assert_array_equal(X, gaussian)
    np.testing.assert_array_equal(weights, 1)


def test_same_input_gives_the_same_bytes():
    X, _ = FAMILIES["nested"](np.random.default_rng(0))
    one, other = radial_isotropy(X, 1e-6), radial_isotropy(X.copy(), 1e-6)
    assert one.matrix.tobytes() == other.matrix.tobytes()
    assert one.subspace.tobytes() == other.subspace.tobytes()


# --- the iteration ---


def test_more_steps_never_give_a_worse_map():
    X = paper_mixture(300, 30, np.random.default_rng(0))
    found = [radial_isotropy(X, 1e-9, max_iter=steps) for steps in (1, 2, 4, 8, 100)]
    residuals = [iso.residual for iso in found]
    assert residuals == sorted(residuals, reverse=True)
    assert [iso.status is Status.STALLED for iso in found] == [residual > 1e-9 for residual in residuals]
    assert residuals[0] > 1e-9 >= residuals[-1]


def test_callback_sees_the_residual_fall_to_the_goal(gaussian):
    seen: list[Progress] = []
    iso = radial_isotropy(gaussian, 1e-6, callback=seen.append)
    assert [p.step for p in seen] == list(range(1, iso.n_iter + 1))
    assert seen[-1].residual <= seen[-1].goal == 1e-6


def test_callback_stops_the_iteration_by_raising(gaussian):
    class Stop(Exception):
        pass

    def stop(progress):
        raise Stop

    with pytest.raises(Stop):
        radial_isotropy(gaussian, 1e-6, callback=stop)


def test_stalled_says_how_far_it_came():
    X = paper_mixture(120, 30, np.random.default_rng(0))
    iso = generalized_forster(X, 1e-12, max_iter=1)
    assert iso.status is Status.STALLED
    assert iso.error > 1e-12
    assert iso.error == pytest.approx(np.abs(np.linalg.eigvalsh(psi(X, iso)) - 1).max(), abs=1e-10)


@pytest.mark.parametrize("off", [1e-9, 1e-10, 1e-11, 1e-12])
def test_hardest_zone_is_reported_honestly(off):
    """Rows this close to a subspace are hard to tell from rows in it: whatever is claimed must hold."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    X = rng.standard_normal((60, 6))
    X[:40] = rng.standard_normal((40, 3)) @ axes[:, :3].T
    X[20:40] += off * rng.standard_normal((20, 6))
    iso = generalized_forster(X, 1e-4)
    error = np.abs(np.linalg.eigvalsh(psi(X, iso)) - 1).max()
    assert iso.error == pytest.approx(error, abs=1e-3)
    if iso.status is not Status.STALLED:
        assert error <= 2e-4
        assert iso.members.sum() * 6 >= iso.matrix.shape[0] * 60


# --- bad input ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": [[1.0, np.nan]]}, "X must be finite, got NaN at row 0, column 1"),
        ({"X": [[1.0], [np.inf]]}, "X must be finite, got inf at row 1, column 0"),
        ({"X": [1.0, 2.0]}, "X must be a matrix"),
        ({"X": np.zeros((0, 3))}, "X must have at least one row"),
        ({"X": np.zeros((3, 0))}, "X must have at least one row and one column"),
        ({"X": np.zeros((3, 2))}, "X has no non-zero row"),
        ({"X": [["a", "b"]]}, "X must hold real numbers"),
        ({"X": [[None, 1.0]]}, "X must be finite, got NaN at row 0, column 0"),
        ({"X": [[{}, 1.0]]}, "X must hold numbers"),
        ({"X": [[1.0], [1.0, 2.0]]}, "X must be a rectangular array"),
        ({"X": [[1j]]}, "X must hold real numbers"),
        ({"X": [[2**53 + 1]]}, "above 2\\*\\*53"),
        ({"gamma": 0.0}, "gamma must be between 0 and 1, got 0.0"),
        ({"gamma": 1.0}, "gamma must be between 0 and 1"),
        ({"gamma": np.nan}, "gamma must be between 0 and 1"),
        ({"tol": 0.0}, "tol must be between 0 and 1"),
        ({"tol": 1.0}, "tol must be between 0 and 1"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"sample_weight": [1.0]}, "sample_weight must have shape"),
        ({"sample_weight": [1.0, -1.0]}, "sample_weight must not be negative, got -1 at row 1"),
        ({"sample_weight": [0.0, 0.0]}, "sample_weight must not be zero for every row"),
        ({"sample_weight": [1.0, np.nan]}, "sample_weight must be finite"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        radial_isotropy(**{"X": np.eye(2), **arguments})


def test_a_bad_delta_is_named():
    with pytest.raises(ValueError, match="delta must be between 0 and 1, got 1.0"):
        generalized_forster(np.eye(2), 1.0)


# --- the convex function behind the transform (massart.isotropy.descent), its gradient and its curvature ---


def problem(n=60, k=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, k)), rng.standard_normal((k, k)), rng.random(n) + 0.1


def f(X, T, weights):
    share = weights / weights.sum()
    return T.shape[1] * share @ np.log(np.sum((X @ T) ** 2, axis=1)) - np.linalg.slogdet(T.T @ T)[1]


def geodesic(T, D, t):
    rates, axes = np.linalg.eigh(D)
    return T @ (axes * np.exp(-t * rates / 2)) @ axes.T


def symmetric(k, seed):
    S = np.random.default_rng(seed).standard_normal((k, k))
    return S + S.T


def unit_rows(X, T, weights):
    U = X @ T
    U /= np.linalg.norm(U, axis=1)[:, None]
    share = weights / weights.sum()
    return U, share, T.shape[1] * (U * share[:, None]).T @ U


def test_gradient_of_f_is_identity_minus_psi():
    X, T, weights = problem()
    D, h = symmetric(4, 1), 1e-5
    slope = (f(X, geodesic(T, D, h), weights) - f(X, geodesic(T, D, -h), weights)) / (2 * h)
    assert slope == pytest.approx(np.vdot(np.eye(4) - unit_rows(X, T, weights)[2], D), rel=1e-6)


def test_f_is_convex_along_geodesics():
    X, T, weights = problem()
    for seed in range(20):
        values = [f(X, geodesic(T, symmetric(4, seed), t), weights) for t in np.linspace(-2, 2, 21)]
        assert np.diff(values, 2).min() >= -1e-9


def test_hessian_formula_is_the_second_derivative():
    X, T, weights = problem()
    S, h = symmetric(4, 2), 1e-3
    U, share, psi = unit_rows(X, T, weights)
    H = (psi @ S + S @ psi) / 2 - 4 * (U * (share * np.einsum("ia,ab,ib->i", U, S, U))[:, None]).T @ U
    values = [f(X, geodesic(T, S, t), weights) for t in (-h, 0, h)]
    assert (values[0] - 2 * values[1] + values[2]) / h**2 == pytest.approx(np.vdot(S, H), rel=1e-4)


@pytest.mark.parametrize("n", [60, 1500])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_transform_minimizes_f(n, weighted):
    X, _, weights = problem(n)
    weights = weights if weighted else np.ones(n)
    A = generalized_forster(X, 1e-10, sample_weight=weights).matrix
    least = f(X, A, weights)
    for seed in range(10):
        for t in (-1e-2, 1e-2, 1.0):
            assert f(X, geodesic(A, symmetric(4, seed), t), weights) > least


@pytest.mark.parametrize("n", [150, 5000])
def test_the_curvature_model_saves_passes(n):
    """Newton's method on the dual, and the pinched Hessian of elliptical rows."""
    rng = np.random.default_rng(1)
    X = rng.standard_t(2, (n, 5)) @ rng.standard_normal((5, 5))
    answer = generalized_forster(X, 1e-10)
    assert answer.error <= 1e-10
    assert answer.n_iter <= 20
