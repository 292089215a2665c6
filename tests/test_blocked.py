"""Kernels over all rows of a table, wherever they are: the answers are those of the rows in memory, to 1e-12."""

from __future__ import annotations

import pickle
import sys
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from massart.isotropy import Status, position_weights, radial_isotropy, radial_isotropy_of
from massart.l1 import Status as L1Status
from massart.l1 import blocked, l1_regression, l1_regression_of, preprocessing
from massart.progress import silent
from massart.robust import refine_on_table, robust_regression
from massart.robust.concentration import Positioned
from massart.robust.modes import separate
from massart.robust.position import place
from massart.robust.refinement import Estimate
from massart.rows import ArrayRows, Block
from stream_rows import StreamRows

pytestmark = pytest.mark.slow

EQUAL = 1e-12


def in_memory(X, y, weights=None, intercept=False):
    return ArrayRows(X, y, weights, intercept=intercept)


def sparse(X, y, weights=None, intercept=False):
    return ArrayRows(sp.csr_array(X), y, weights, intercept=intercept)


def stream(*sizes):
    """Return a kind of rows that come in blocks of these sizes, in turn; 0 for empty ones."""

    def make(X, y, weights=None, intercept=False):
        labels = y.reshape(len(y), -1)

        def blocks():
            start, turn = 0, 0
            while start < len(X):
                rows = slice(start, start + sizes[turn % len(sizes)])
                yield Block(X[rows], labels[rows], None if weights is None else weights[rows], intercept)
                start, turn = min(rows.stop, len(X)), turn + 1

        return StreamRows(blocks)

    return make


class Sent:
    """Rows whose kernels travel as bytes, few of them."""

    def __init__(self, rows):
        self._rows = rows
        self.largest = 0

    def __getattr__(self, name):
        return getattr(self._rows, name)

    def _sent(self, kernel):
        packed = pickle.dumps(kernel)
        self.largest = max(self.largest, len(packed))
        return pickle.loads(packed)

    def reduce(self, kernel, *aligned):
        return self._rows.reduce(self._sent(kernel), *aligned)

    def map(self, kernel, *aligned):
        return self._rows.map(self._sent(kernel), *aligned)


def sent(X, y, weights=None, intercept=False):
    return Sent(stream(256)(X, y, weights, intercept))


def elsewhere(module):
    """Return a kind of rows in an array of another library."""

    def make(X, y, weights=None, intercept=False):
        library = pytest.importorskip(module)
        X, y, weights = (None if a is None else library.asarray(a) for a in (X, y, weights))
        return ArrayRows(X, y, weights, intercept=intercept)

    return make


def in_dask(X, y, weights=None, intercept=False):
    dask = pytest.importorskip("dask.array")
    from massart.rows.dask import DaskRows

    arrays = (None if a is None else dask.from_array(a, chunks=(500, *a.shape[1:])) for a in (X, y, weights))
    return DaskRows(*arrays, intercept=intercept)


KINDS = {
    "array": in_memory,
    "sparse": sparse,
    "blocks of 31 and none": stream(31, 0, 0),
    "blocks of all sizes": stream(100, 1, 0, 33, 250),
    "one block": stream(10**9),
    "kernels that are sent": sent,
    "array-api-strict": elsewhere("array_api_strict"),
    "torch": elsewhere("torch"),
    "Dask": in_dask,
}


SLOW = {"Dask": [pytest.mark.slow]}


@pytest.fixture(params=[pytest.param(kind, id=name, marks=SLOW.get(name, [])) for name, kind in KINDS.items()])
def kind(request):
    return request.param


def cloud(n=700, d=5, seed=0, condition=10.0):
    """Return heavy-tailed rows, skewed by a map of this condition number."""
    rng = np.random.default_rng(seed)
    axes = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2)]
    return rng.standard_t(2, (n, d)) @ (axes[0] * np.geomspace(1, condition, d)) @ axes[1]


def weights_of(n, seed=1):
    """Return weights, a quarter of them zero."""
    return np.random.default_rng(seed).integers(0, 4, n) / 2


def psi(X, answer, weights=None):
    """Return Psi by its definition, from the rows that belong to the answer."""
    U = answer.transform(X)[answer.members]
    c = np.ones(len(U)) if weights is None else weights[answer.members]
    return U.shape[1] * (U * c[:, None]).T @ U / c.sum()


def close(found, known):
    assert_allclose(found, known, rtol=0, atol=EQUAL * np.abs(known).max())


# --- radial isotropy ---


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.5, 1e-9])
def test_the_transform_is_that_of_the_rows_in_memory(kind, gamma, weighted):
    X = cloud()
    X[[3, 600]] = 0
    weights = weights_of(len(X)) if weighted else None
    known = radial_isotropy(X, gamma, sample_weight=weights)
    found = radial_isotropy_of(kind(X, X[:, 0], weights), gamma)
    assert found.status is known.status is Status.WHOLE
    close(found.matrix, known.matrix)
    assert_array_equal(found.members, known.members)
    assert found.n_iter == known.n_iter
    certificate = 1 - np.linalg.eigvalsh(psi(X, found, weights))[0]
    assert_allclose(found.residual, certificate, rtol=0, atol=EQUAL)
    assert certificate <= gamma


@pytest.mark.parametrize("condition", [1e2, 1e4])
def test_an_ill_conditioned_table_may_be_cut_in_any_way(kind, condition):
    X = cloud(d=12, condition=condition, seed=3)
    known = radial_isotropy(X)
    close(radial_isotropy_of(kind(X, X[:, 0])).matrix, known.matrix)


def test_a_constant_column_is_one_more(kind):
    X = cloud()
    known = radial_isotropy(np.column_stack([X, np.ones(len(X))]), 1e-6)
    found = radial_isotropy_of(kind(X, X[:, 0], None, True), 1e-6)
    close(found.matrix, known.matrix)


def test_a_linear_map_of_the_rows_changes_the_transform_alone(kind):
    X, B = cloud(), np.random.default_rng(5).standard_normal((5, 5))
    A, C = (radial_isotropy_of(kind(rows, X[:, 0]), 1e-10).matrix for rows in (X, X @ B))
    scatter, other = A.T @ A, B @ C.T @ C @ B.T
    other *= (np.linalg.det(scatter) / np.linalg.det(other)) ** (1 / 5)
    assert_allclose(other, scatter, rtol=0, atol=1e-8 * np.abs(scatter).max())


def test_the_size_of_a_row_does_not_matter(kind):
    X = cloud()
    sizes = np.exp2(np.random.default_rng(2).integers(-900, 900, (len(X), 1)))
    known = radial_isotropy(X * sizes, 1e-6)
    found = radial_isotropy_of(kind(X * sizes, X[:, 0]), 1e-6)
    close(found.matrix, known.matrix)
    close(found.matrix, radial_isotropy(X, 1e-6).matrix)


def heavy(case, n=1000, d=6, seed=0):
    """Return rows of which too many lie in a subspace, and which."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    inside = rng.random(n) < (0.3 if case == "few" else 0.7)
    if case == "few":  # a line: few of the rows are enough, so few that they are taken into memory
        X[np.ix_(inside, np.arange(1, d))] = 0
    elif case == "flat":
        inside[:] = True
        X[:, 3:] = 0
    else:
        X[np.ix_(inside, np.arange(3, d))] = 0
    if case != "coordinates":
        X = X @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    return X, inside


@pytest.mark.full(every=3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [1e-6, 0.1])
@pytest.mark.parametrize("case", ["skew", "coordinates", "few", "flat"])
def test_a_heavy_subspace_is_found(kind, case, gamma, weighted):
    X, inside = heavy(case)
    weights = np.random.default_rng(4).integers(1, 4, len(X)).astype(float) if weighted else None
    known = radial_isotropy(X, gamma, sample_weight=weights)
    found = radial_isotropy_of(kind(X, X[:, 0], weights), gamma)
    assert found.status is known.status is Status.SUBSPACE
    assert_array_equal(found.members, inside)
    assert_array_equal(known.members, inside)
    V, W = found.subspace, known.subspace
    assert_allclose(V @ V.T, W @ W.T, rtol=0, atol=EQUAL)
    maps = [answer.subspace @ answer.matrix.T @ answer.matrix @ answer.subspace.T for answer in (found, known)]
    close(*maps)
    assert 1 - np.linalg.eigvalsh(psi(X, found, weights))[0] <= gamma


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("case", "halves"), [("skew", False), ("coordinates", False), ("coordinates", True), ("whole", False)]
)
def test_a_block_may_be_looked_at_in_pieces(case, halves, weighted, monkeypatch):
    X = cloud(d=6) if case == "whole" else heavy(case)[0]
    size = len(X) // 2 if halves else 64
    monkeypatch.setattr(sys.modules["massart.isotropy.blocked"], "BLOCK_BYTES", size * 6 * 8)
    X[5] *= weighted  # a row of zeros, or rows without weight: neither is there
    weights = weights_of(len(X)) if weighted else None
    known = radial_isotropy(X, 1e-6, sample_weight=weights)
    found = radial_isotropy_of(in_memory(X, X[:, 0], weights), 1e-6)
    assert found.status is known.status
    assert_array_equal(found.members, known.members)
    close(*(one.subspace @ one.matrix.T @ one.matrix @ one.subspace.T for one in (found, known)))


# --- L1 regression ---


def regression(n, d=4, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(1, 100, d)
    y = X @ np.arange(1.0, d + 1) + noise * rng.standard_normal(n)
    wrong = rng.random(n) < 0.4
    y[wrong] += 50 * rng.standard_normal(wrong.sum()) + 20
    return X, y


def gap_of(X, y, solution, weights):
    """Return the duality gap by its definition, and how far the dual is from feasible."""
    r, a = y - X @ solution.coef[:, 0], solution.dual[:, 0]
    scale = weights.sum() * np.abs(X).max(axis=0)
    assert np.all(np.abs(a) <= weights * (1 + EQUAL))
    return weights @ np.abs(r) - a @ y, np.abs(X.T @ a / scale).max()


@pytest.mark.full(every=3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("n", [400, 1500])  # all rows; a sample that guesses
def test_the_l1_fit_is_that_of_the_rows_in_memory(kind, n, noise, weighted, monkeypatch):
    monkeypatch.setattr(preprocessing, "SMALLEST_SAMPLE", 100)
    monkeypatch.setattr(preprocessing, "SAMPLE", 25)
    monkeypatch.setattr(preprocessing, "BAND", 20)
    X, y = regression(n, noise=noise)
    weights = weights_of(n) if weighted else None
    known = l1_regression(X, y, weights)
    found = l1_regression_of(kind(X, y, weights))
    assert found.status is known.status is L1Status.OPTIMAL
    close(found.coef[:, 0], known.coef)
    assert found.n_iter == known.n_iter
    assert found.objective == pytest.approx(known.objective, rel=EQUAL)
    gap, infeasible = gap_of(X, y, found, np.ones(n) if weights is None else weights)
    assert abs(gap) <= 1e-10 * known.objective
    assert infeasible <= EQUAL
    assert found.gap <= 1e-10 * known.objective


def test_a_constant_is_fitted_as_a_column_is(kind):
    X, y = regression(600)
    known = l1_regression(np.column_stack([X, np.ones(600)]), y + 7)
    close(l1_regression_of(kind(X, y + 7, None, True)).coef[:, 0], known.coef)


def test_several_labels_are_several_problems(kind):
    X, y = regression(500, noise=1.0)
    Y = np.column_stack([y, -2 * y, X[:, 0]])
    known, found = l1_regression(X, Y), l1_regression_of(kind(X, Y))
    close(found.coef, known.coef)
    close(found.coef[:, 1], -2 * found.coef[:, 0])


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_a_position_are_one_over_lengths_times_those_of_the_rows(weighted):
    X = cloud()
    X[50] = 0
    weights = weights_of(len(X)) if weighted else None
    position = radial_isotropy(X)
    found = position_weights(in_memory(X, X[:, 0], weights), position).to_numpy()
    lengths = np.linalg.norm(X @ position.matrix.T, axis=1)
    expected = np.divide(1.0, lengths, out=np.zeros(len(X)), where=lengths > 0)
    assert_allclose(found, expected if weights is None else expected * weights, rtol=1e-12)


def test_the_fit_in_position_is_that_of_unit_rows_in_memory(kind):
    X = cloud()
    y = X @ np.arange(1.0, 6.0)
    y[::3] = -100.0
    X[50] = 0
    position = radial_isotropy(X)
    U = X @ position.matrix.T
    lengths = np.linalg.norm(U, axis=1)
    rows = kind(X, np.column_stack([X[:, 0], y]))
    found = l1_regression_of(rows, position_weights(rows, position), column=1)
    there = lengths > 0
    known = l1_regression(U[there] / lengths[there, None], y[there] / lengths[there])
    assert found.coef.shape == (5,)
    close(found.coef, position.matrix.T @ known.coef)
    close(found.coef, np.arange(1.0, 6.0))


def test_adding_a_formula_adds_its_coefficients(kind):
    X, y = regression(900, noise=1.0)
    v = np.array([3.0, -1.0, 0.5, 2.0])
    plain, shifted = (l1_regression_of(kind(X, labels)).coef[:, 0] for labels in (y, y + X @ v))
    assert_allclose(shifted, plain + v, rtol=0, atol=1e-11)


@pytest.mark.parametrize("nearly", [0.0, 1e-9])
def test_dependent_columns_get_the_smallest_coefficients(kind, nearly):
    X, y = regression(700)
    extra = X[:, 0] - 2 * X[:, 1] + nearly * np.random.default_rng(9).standard_normal(700)
    X = np.column_stack([X, extra])
    known, found = l1_regression(X, y), l1_regression_of(kind(X, y))
    assert found.rank == known.rank == (4 if nearly == 0 else 5)
    assert found.status is known.status
    close(X @ found.coef[:, 0], X @ known.coef)  # columns that are nearly dependent leave coefficients open, not fits


# --- noisy rows ---


@cache
def noisy_rows(weighted):
    """Return rows with a constant, labels and weights, and the robust fits of a quarter of them and of all."""
    X, y = regression(1200, noise=1.0)
    X = np.column_stack([X, np.ones(len(X))])
    weights = np.random.default_rng(3).integers(1, 4, len(X)).astype(float) if weighted else None
    start = robust_regression(X[::4], y[::4], rng=np.random.default_rng(0))
    whole = robust_regression(X, y, sample_weight=weights, rng=np.random.default_rng(0))
    return X, y, weights, start, whole


@pytest.mark.parametrize("weighted", [False, True])
def test_noisy_rows_are_refined_as_in_memory(kind, weighted):
    X, y, weights, start, whole = noisy_rows(weighted)
    sample = slice(None, None, 4)
    found = refine_on_table(kind(X[:, :-1], y, weights, True), X[sample], start)
    # The same steps on rows in memory.
    position = place(X[sample], silent)
    shares = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    rows = Positioned(X @ position.back, y, shares)
    first = Estimate(position.to_coordinates(start.coef), start.scale)
    assert start.separated
    width = np.ptp(rows.residuals(first.coef[None]))
    limits = {"width": width, "least": 0.0, "ridge": 0.0, "max_iter": 500, "tol": 1e-7}
    known = separate(rows, first.coef, first.scale, **limits)
    close(found.coef, position.back @ known.coef)
    assert found.scale == pytest.approx(known.scale, rel=EQUAL)
    assert found.n_iter == known.n_iter
    # And the answer is that of a search on all rows.
    assert np.all(np.abs(found.coef - whole.coef) <= 1e-4 * whole.standard_errors)
    assert np.any(np.abs(start.coef - whole.coef) > 1e-2 * whole.standard_errors)
    assert_allclose(found.standard_errors, whole.standard_errors, rtol=1e-4)
    assert_array_equal(found.inliers, whole.inliers)


def test_an_exact_start_is_refused():
    X, y = regression(300)
    start = robust_regression(X, y, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="positive scale"):
        refine_on_table(in_memory(X, y), X, start)


# --- all ---


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("solve", [radial_isotropy_of, l1_regression_of])
def test_a_number_that_is_none_is_named(kind, solve, value):
    X, y = regression(700)
    X[432, 2] = value
    name = "NaN" if np.isnan(value) else "inf"
    with pytest.raises(ValueError, match=f"X must be finite, got {name} at row 432, column 2"):
        solve(kind(X, y))


@pytest.mark.parametrize("solve", [radial_isotropy_of, l1_regression_of])
def test_kernels_are_small(solve):
    X = cloud(n=3000, d=40)
    rows = sent(X, X @ np.ones(40))
    solve(rows)
    assert 0 < rows.largest < 100_000


@pytest.mark.parametrize("solve", [radial_isotropy_of, l1_regression_of])
def test_options_are_checked(solve):
    X, y = regression(50)
    with pytest.raises(ValueError, match="max_iter must be"):
        solve(in_memory(X, y), max_iter=0)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_kernels_of_l1_regression_are_those_of_a_matrix(intercept, scaled):
    rng = np.random.default_rng(0)
    X, q = rng.standard_normal((40, 3)), rng.random(40)
    whole = np.column_stack([X, np.ones(40)]) if intercept else X
    d = whole.shape[1]
    block = Block(X, np.zeros((40, 1)), None, intercept)
    w, scale = rng.random(d), 2.0 ** np.arange(d) if scaled else None
    assert_allclose(blocked._Times(w)(block), whole @ w, rtol=1e-13)
    assert_allclose(blocked._Times(w, magnitudes=True)(block), np.abs(whole) @ w, rtol=1e-13)
    assert_allclose(blocked._TransposedTimes()(block, q), whole.T @ q, rtol=1e-12)
    rows = whole if scale is None else whole * scale
    assert_allclose(blocked._Gram(scale)(block, q), (rows * q[:, None]).T @ rows, rtol=1e-12)
