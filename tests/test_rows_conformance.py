"""What every kind of rows must keep: the verbs of :mod:`massart.rows` mean the same wherever the rows are.

A kind is a function ``make(X, y, weights, intercept)``; a new kind of rows is added to `KINDS`, and has all these laws.
"""

from __future__ import annotations

import operator
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from massart.recover import recover
from massart.recover.settings import SETTINGS
from massart.rows import (
    AGREES,
    IDENTITY,
    Agreement,
    ArrayRows,
    Block,
    Draw,
    Level,
    Mark,
    Reservoir,
    Uses,
    rows_of,
    tally,
    tally_of,
    to_numpy,
    total_of,
)
from stream_rows import StreamRows


def in_memory(X, y, weights=None, intercept=False):
    return ArrayRows(X, y, weights, intercept=intercept)


def fortran(X, y, weights=None, intercept=False):
    return ArrayRows(np.asfortranarray(X), y, weights, intercept=intercept)


def sparse(X, y, weights=None, intercept=False):
    return ArrayRows(sp.csr_array(X), y, weights, intercept=intercept)


def stream(*sizes):
    """Return a kind of rows that come in blocks of these sizes, in turn; 0 for empty ones."""

    def make(X, y, weights=None, intercept=False):
        labels = y.reshape(len(y), -1)

        def blocks():
            start, turn = 0, 0
            while start < len(X):
                rows = slice(start, start + (sizes[turn % len(sizes)]))
                yield Block(X[rows], labels[rows], None if weights is None else weights[rows], intercept)
                start, turn = min(rows.stop, len(X)), turn + 1

        return StreamRows(blocks)

    return make


def of_dask(*sizes, known=True):
    """Return a kind of rows in chunks of these sizes, in turn; labels and weights are cut in another way if sizes are
    known."""

    def make(X, y, weights=None, intercept=False):
        array = pytest.importorskip("dask.array", reason="Dask is not installed: massart[dask]")

        def cut(values, sizes):
            ends = np.cumsum(np.resize(sizes, len(values)))
            chunks = np.diff([0, *ends[ends < len(values)], len(values)]).tolist()
            lazy = array.from_array(values, chunks=(tuple(chunks), *values.shape[1:]))
            return lazy if known else lazy[array.ones(len(values), chunks=(tuple(chunks),), dtype=bool)]

        other = sizes[::-1] if known else sizes
        given = cut(X, sizes), cut(y, other), None if weights is None else cut(weights, other)
        return rows_of(*given, intercept=intercept)

    return make


def of_strict(X, y, weights=None, intercept=False):
    """Arrays that have what the array API standard has, and nothing else."""
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed: massart[gpu]")
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed: massart[dev]")
    return rows_of(*(None if values is None else xp.asarray(values) for values in (X, y, weights)), intercept=intercept)


def of_torch(X, y, weights=None, intercept=False):
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed: massart[gpu]")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    given = (None if values is None else torch.asarray(values) for values in (X, y, weights))
    return rows_of(*given, intercept=intercept)


KINDS = {
    "array": in_memory,
    "Fortran": fortran,
    "sparse": sparse,
    "blocks of 1": stream(1),
    "blocks of 7 and none": stream(7, 0, 0),
    "blocks of all sizes": stream(100, 1, 0, 33, 250),
    "one block": stream(10**9),
    "Dask": of_dask(100, 1, 33, 250),
    "Dask, sizes not known": of_dask(300, known=False),
    "array API": of_strict,
    "torch": of_torch,
}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def kind(request):
    return request.param


@dataclass(frozen=True)
class Moments:
    """A kernel with a state: X'DX, of products with W."""

    w: np.ndarray

    def __call__(self, block, values=None):
        weights = block.times(self.w[:, None])[:, 0] if values is None else values
        X = block.dense()
        return to_numpy((X * abs(weights)[:, None]).T @ X)


@dataclass(frozen=True)
class Residual:
    w: np.ndarray

    def __call__(self, block, scale=None):
        found = block.y[:, 0] - block.times(self.w[:, None])[:, 0]
        return found if scale is None else found * scale


def table(n=700, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)) * 8) / 4
    w = np.array([1.5, -2.0, 0.25, 3.0])[:d]
    y = X @ w + 7
    wrong = rng.random(n) < 0.35
    y[wrong] += np.round(rng.standard_normal(wrong.sum()) * 100) / 4 + 0.125
    return X, y, np.append(w, 7.0), wrong


def weights_of(n, seed=1):
    return np.random.default_rng(seed).integers(0, 4, n).astype(np.float64)


@pytest.mark.slow
def test_the_sizes_are_known(kind):
    X, y, _, _ = table()
    rows = kind(X, np.column_stack([y, -y]), None, True)
    assert (rows.n_rows, rows.n_columns, rows.n_outputs) == (700, 5, 2)
    assert rows.weights is None
    assert total_of(rows.weights, rows.n_rows) == 700


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1, 16, 100, 699, 700, 2000])
def test_all_kinds_draw_the_same_rows(kind, size, weighted):
    X, y, _, _ = table()
    weights = weights_of(len(y)) if weighted else None
    expected = in_memory(X, y, weights, True).sample(size, np.random.default_rng(3))
    found = kind(X, y, weights, True).sample(size, np.random.default_rng(3))
    assert_array_equal(found.index, expected.index)
    assert_array_equal(found.X, np.column_stack([X, np.ones(len(X))])[found.index])
    assert_array_equal(found.y[:, 0], y[found.index])
    if weights is not None:
        assert_array_equal(found.weights, weights[found.index])
        assert (found.weights > 0).all()
        assert len(found.index) == min(size, np.count_nonzero(weights))
    else:
        assert min(size, 700) - 16 <= len(found.index) <= size + 15
    assert (np.diff(found.index) > 0).all()


@pytest.mark.slow
def test_a_row_is_drawn_as_often_as_its_weight_says(kind):
    X, y, _, _ = table(n=60)
    rows, chances = kind(X, y, None, False), np.repeat([0.0, 1.0, 3.0], 20)
    weights = rows.map(Constant(chances), rows.map(Number()))
    drawn = np.zeros(60)
    for seed in range(150):
        found = rows.sample(4, np.random.default_rng(seed), weights)
        assert len(found.index) == 4
        drawn[found.index] += 1
    assert drawn[:20].sum() == 0
    assert 2.0 < drawn[40:].sum() / drawn[20:40].sum() < 4.0


@dataclass(frozen=True)
class Number:
    """A value that tells the rows apart."""

    def __call__(self, block):
        return block.y[:, 0]


@dataclass(frozen=True)
class Constant:
    """The chance of each row: looked up by its label, which is its own."""

    chances: np.ndarray

    def __call__(self, block, labels):
        order = np.argsort(table(n=60)[1], kind="stable")
        return self.chances[order[np.searchsorted(np.sort(table(n=60)[1]), to_numpy(labels))]]


@pytest.mark.slow
def test_uniform_draws_miss_no_row(kind):
    X, y, _, _ = table(n=330)
    rows = kind(X, y, None, False)
    drawn = np.zeros(330)
    for seed in range(80):
        drawn[rows.sample(100, np.random.default_rng(seed)).index] += 1
    assert drawn.min() > 8
    assert drawn.max() < 42


def test_rows_are_taken_by_their_numbers(kind):
    X, y, _, _ = table()
    weights = weights_of(len(y))
    index = np.array([699, 0, 3, 3, 350])
    found = kind(X, y, weights, True).take(index)
    assert_array_equal(found.index, index)
    assert_array_equal(found.X[:, :-1], X[index])
    assert_array_equal(found.X[:, -1], 1.0)
    assert_array_equal(found.y[:, 0], y[index])
    assert_array_equal(found.weights, weights[index])


def test_sums_and_values_are_those_of_the_whole_table(kind):
    X, y, w, _ = table()
    whole = Block(np.column_stack([X, np.ones(len(X))]), y[:, None], None, False)
    rows = kind(X, y, None, True)
    residuals = rows.map(Residual(w))
    assert len(residuals) == len(y)
    assert_allclose(residuals.to_numpy(), Residual(w)(whole), rtol=0, atol=1e-12)
    assert_array_equal(residuals.take(np.array([5, 0])), residuals.to_numpy()[[5, 0]])
    assert_allclose(rows.reduce(Moments(w)), Moments(w)(whole), rtol=1e-12)
    assert_allclose(rows.reduce(Moments(w), residuals), Moments(w)(whole, residuals.to_numpy()), rtol=1e-12)
    scaled = rows.map(Residual(w), residuals)
    assert_allclose(scaled.to_numpy(), residuals.to_numpy() ** 2, rtol=1e-12)
    doubled = residuals.map(operator.add, scaled)
    assert_allclose(doubled.to_numpy(), residuals.to_numpy() + scaled.to_numpy(), rtol=1e-15)
    product = float(residuals.reduce(operator.matmul, scaled))
    assert_allclose(product, np.vdot(residuals.to_numpy(), scaled.to_numpy()), rtol=1e-12)


def test_kernels_are_small_and_can_be_sent(kind):
    X, y, w, _ = table()
    rows = kind(X, y, None, True)
    kernel = Mark(w, Agreement(Level.EXACT, relative=1e-14), link=IDENTITY)
    sent = pickle.dumps(kernel)
    assert len(sent) < 100_000
    assert_array_equal(rows.map(pickle.loads(sent)).to_numpy(), rows.map(kernel).to_numpy())


def test_a_tally_is_a_sum(kind):
    X, y, w, wrong = table()
    weights = weights_of(len(y))
    rows = kind(X, y, weights, True)
    marks = rows.map(Mark(w, Agreement(Level.EXACT, relative=1e-14), IDENTITY))
    assert_array_equal(marks.to_numpy() & AGREES > 0, ~wrong)
    assert_array_equal(tally(marks, rows.weights), tally_of(marks.to_numpy(), weights))


def test_the_weight_of_all_rows_is_known(kind):
    X, y, _, _ = table()
    weights = weights_of(len(y))
    rows = kind(X, y, weights, True)
    assert total_of(rows.weights, rows.n_rows) == weights.sum()


@pytest.mark.full(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_the_answer_is_the_same_wherever_the_rows_are(kind, weighted):
    X, y, w, wrong = table()
    weights = weights_of(len(y)) if weighted else None
    found = recover(kind(X, y, weights, True), rng=np.random.default_rng(0))
    known = recover(in_memory(X, y, weights, True), rng=np.random.default_rng(0))
    assert_array_equal(found.coef[:, 0], w)
    assert_array_equal(found.agree[:, 0], ~wrong)
    assert found.certificates[0].verdict is known.certificates[0].verdict
    assert found.certificates[0].verdict.stands
    assert_allclose(found.noise_rate, known.noise_rate)


@pytest.mark.full(every=3)
@pytest.mark.slow
def test_the_order_of_blocks_changes_no_mark(kind):
    X, y, w, _ = table(n=960)
    order = np.concatenate(np.random.default_rng(0).permutation(np.arange(960).reshape(-1, 96)))
    found = recover(kind(X[order], y[order], None, True), rng=np.random.default_rng(0))
    known = recover(in_memory(X, y, None, True), rng=np.random.default_rng(0))
    assert_array_equal(found.coef[:, 0], w)
    assert_array_equal(found.agree[:, 0], known.agree[order, 0])


@pytest.mark.slow
def test_a_large_table_is_sampled_alike(kind, monkeypatch):
    few = replace(SETTINGS, certify=300, certify_per_column=60)
    monkeypatch.setattr("massart.recover.driver.SETTINGS", few)
    X, y, w, wrong = table(n=2000)
    found = recover(kind(X, y, None, True), rng=np.random.default_rng(0))
    assert_array_equal(found.coef[:, 0], w)
    assert_array_equal(found.agree[:, 0], ~wrong)
    assert found.certificates[0].n_rows == 2000


@pytest.mark.slow
def test_rows_that_a_rare_column_rests_on_are_looked_for(kind, monkeypatch):
    few = replace(SETTINGS, certify=300, certify_per_column=60)
    monkeypatch.setattr("massart.recover.driver.SETTINGS", few)
    X, y, w, wrong = table(n=6000)
    rare = np.zeros(6000)
    rare[np.random.default_rng(5).choice(6000, 30, replace=False)] = 1
    X, y, w = np.column_stack([X, rare]), y + 40 * rare, np.insert(w, 4, 40.0)
    rows = kind(X, y, None, True)
    used = rows.map(Uses((4,))).to_numpy()
    assert_array_equal(used, rare)
    found = recover(rows, rng=np.random.default_rng(0))
    assert_array_equal(found.coef[:, 0], w)
    assert_array_equal(found.agree[:, 0], ~wrong)
    assert found.certificates[0].verdict.stands


def test_samples_are_joined_in_order():
    X, y, _, _ = table()
    weights = weights_of(len(y))
    rows = in_memory(X, y, weights, True)
    both = rows.take(np.array([3, 5, 9])).joined(rows.take(np.array([9, 1, 5, 600])))
    expected = rows.take(np.array([1, 3, 5, 9, 600]))
    assert_array_equal(both.index, expected.index)
    assert_array_equal(both.X, expected.X)
    assert_array_equal(both.weights, expected.weights)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_none_is_named(kind, value):
    X, y, _, _ = table()
    X[432, 2] = value
    with pytest.raises(
        ValueError, match=f"X must be finite, got {'NaN' if np.isnan(value) else 'inf'} at row 432, column 2"
    ):
        recover(kind(X, y, None, True), rng=np.random.default_rng(0))


@pytest.mark.parametrize("sizes", [(1,), (7, 0), (100, 33, 250), (10**6,)])
@pytest.mark.parametrize("size", [1, 40, 300, 5000])
def test_rows_that_come_by_in_blocks_are_drawn_alike(sizes, size):
    draw, n, start, turn = Draw.of(size, np.random.default_rng(3)), 3000, 0, 0
    reservoir, kept = Reservoir(draw), np.empty(0, dtype=np.intp)
    while start < n:
        n_rows = min(sizes[turn % len(sizes)], n - start)
        kept = np.concatenate([kept, start + reservoir.offer(start, n_rows)])
        kept = kept[reservoir.prune()] if reservoir.is_crowded else kept
        start, turn = start + n_rows, turn + 1
    assert_array_equal(np.sort(kept[reservoir.prune()]), draw.index(n))
