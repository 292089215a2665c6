"""Rows: the same marks and the same formula however a table is cut, ordered or stored, and at every door."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import massart.rows.memory
from arrays import recovered
from massart import MassartPACRegressor, MassartRegressor, MassartReLURegressor
from massart.recover import learn_pac, recover
from massart.rows import AGREES, IDENTITY, RELU, Agreement, ArrayRows, Level, Mark, levels


def slow(value):
    return pytest.param(value, marks=pytest.mark.slow)


def cancelling(n=3000, seed=0):
    """Return rows whose terms cancel, of sizes from 1 to 1e13, half of them at the very edge of agreement.

    The first 100 rows alone have large labels: what a block holds beside a row must not matter.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6)) * 10.0 ** rng.integers(0, 7, (n, 1))
    w = np.array([1e6, -1e6, 0.1, 3.0, 0.0, 7.5])
    X[:, 1] = X[:, 0] * (1 + 1e-9 * rng.standard_normal(n))
    y = X @ w
    y[:100] *= 1e6
    edge = rng.random(n) < 0.5
    width = Agreement(Level.EXACT, relative=12 * 2.0**-52).half_widths(np.abs(X) @ np.abs(w) + np.abs(y))
    y[edge] += rng.choice([-1, 1], edge.sum()) * width[edge] * (1 + 1e-3 * rng.integers(-3, 4, edge.sum()))
    y[rng.random(n) < 0.1] += 1.0
    return X, y, w


def marks_of(rows, w, level, link=IDENTITY):
    return rows.map(Mark(w, level, link)).to_numpy()


def cut(monkeypatch, size):
    """Cut tables into blocks of so many rows."""

    def blocks(n_rows, n_columns, block_bytes=0):
        for start in range(0, n_rows, size):
            yield slice(start, min(start + size, n_rows))

    monkeypatch.setattr(massart.rows.memory, "row_blocks", blocks)


LEVELS = {
    "exact": Agreement(Level.EXACT, relative=12 * 2.0**-52),
    "cents": Agreement(Level.LABEL, label=0.005, relative=12 * 2.0**-52, unit=0.01),
    "inputs": Agreement(Level.INPUTS, label=0.005, inputs=(0.5e-6,) * 6, relative=12 * 2.0**-52, unit=0.01),
    "given": Agreement(Level.GIVEN, label=0.5, relative=12 * 2.0**-52),
}


# --- marks ---


@pytest.mark.full(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("link", [IDENTITY, RELU], ids=["linear", "ReLU"])
@pytest.mark.parametrize("name", ["exact", *(slow(name) for name in ("cents", "given", "inputs"))])
def test_marks_do_not_depend_on_blocks_order_or_storage(name, link, monkeypatch, tmp_path):
    X, y, w = cancelling()
    y = link(y)
    level = LEVELS[name]
    whole = marks_of(ArrayRows(X, y), w, level, link)
    assert 200 < (whole & AGREES > 0).sum() < 2990
    monkeypatch.setattr(massart.rows.memory, "BLOCK_BYTES", 1 << 12)
    np.testing.assert_array_equal(marks_of(ArrayRows(X, y), w, level, link), whole)
    np.testing.assert_array_equal(level.agree(X, y, w, link), whole & AGREES > 0, err_msg="one definition")
    order = np.random.default_rng(1).permutation(len(y))
    file = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=X.shape)
    file[:] = X
    kinds = {"sparse": sp.csr_array(X), "Fortran": np.asfortranarray(X), "memory map": file}
    for size in (1, 7, 64, 1000, 3000):
        cut(monkeypatch, size)
        np.testing.assert_array_equal(marks_of(ArrayRows(X, y), w, level, link), whole)
        np.testing.assert_array_equal(marks_of(ArrayRows(X[order], y[order]), w, level, link), whole[order])
        if size > 1:
            for kind, rows in kinds.items():
                np.testing.assert_array_equal(marks_of(ArrayRows(rows, y), w, level, link), whole, err_msg=kind)


@pytest.mark.slow
def test_marks_of_float32_do_not_depend_on_blocks_or_storage(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((3000, 5)) * 10.0 ** rng.integers(0, 4, (3000, 1))).astype(np.float32)
    w = np.array([1.5, -2, 3, 0.25, 1e-3])
    y = (X.astype(float) @ w).astype(np.float32)
    y[::3] += np.abs(y[::3]) * np.float32(1e-6) * rng.integers(-3, 4, 1000).astype(np.float32)
    file = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=X.shape)
    file[:] = X
    level = levels("auto", X, y)[-1]
    assert str(level) == "within rounding of float32"
    whole = marks_of(ArrayRows(X, y), w, level)
    assert 300 < (whole & AGREES > 0).sum() < 2950
    for size in (1, 13, 3000):
        cut(monkeypatch, size)
        for rows in (X, file, np.asfortranarray(X), X.astype(float)):
            np.testing.assert_array_equal(marks_of(ArrayRows(rows, y), w, level), whole)


def test_an_intercept_is_a_column_of_ones(monkeypatch):
    X, y, w = cancelling()
    w = np.append(w, 0.1)
    whole = marks_of(ArrayRows(np.column_stack([X, np.ones(len(y))]), y), w, LEVELS["exact"])
    for size in (5, 3000):
        cut(monkeypatch, size)
        np.testing.assert_array_equal(marks_of(ArrayRows(X, y, intercept=True), w, LEVELS["exact"]), whole)


@pytest.mark.parametrize("link", [IDENTITY, RELU], ids=["linear", "ReLU"])
def test_kernels_travel_light(link):
    """A worker elsewhere gets the formula, and not the table."""
    level = levels("auto", np.random.default_rng(0).standard_normal((100, 20)), np.arange(100.0))[0]
    kernel = Mark(np.random.default_rng(0).standard_normal(20), level, link)
    sent = pickle.dumps(kernel)
    assert len(sent) < 20_000
    X, y, w = cancelling(200)
    kernel = Mark(w, LEVELS["inputs"], link)
    rows = ArrayRows(X, y)
    np.testing.assert_array_equal(rows.map(pickle.loads(pickle.dumps(kernel))).to_numpy(), rows.map(kernel).to_numpy())


# --- the formula ---


def ledger(n=2000, seed=0):
    """Return whole numbers and flags, one of them rare, with prices; 30 % of the labels are wrong."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(1, 60, n), rng.integers(0, 9, n), rng.random(n) < 0.05, np.ones(n)]).astype(float)
    y = np.round(X @ [12.5, 3.25, 40, 7], 2)
    wrong = rng.random(n) < 0.3
    y[wrong] = np.round(y[wrong] * rng.choice([1.1, 10, 0.9], wrong.sum()), 2)
    return X, y


def fit(X, y, **options):
    return recover(ArrayRows(X, y), rng=np.random.default_rng(0), **options)


@pytest.mark.slow
def test_the_formula_does_not_depend_on_blocks_or_storage(monkeypatch, tmp_path):
    X, y = ledger()
    plain = fit(X, y)
    np.testing.assert_array_equal(plain.coef[:, 0], [12.5, 3.25, 40, 7])
    file = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=X.shape)
    file[:] = X
    for size, rows in (
        (1, X),
        (100, sp.csr_array(X)),
        (64, np.asfortranarray(X)),
        (999, file),
        (7, X.astype(np.int32)),
    ):
        cut(monkeypatch, size)
        found = fit(rows, y)
        np.testing.assert_array_equal(found.coef, plain.coef)
        np.testing.assert_array_equal(found.agree, plain.agree)
        assert found.certificates[0].verdict is plain.certificates[0].verdict


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ledger", slow("Gaussian"), slow("ReLU"), slow("two rules")])
def test_the_formula_does_not_depend_on_the_order_of_rows(kind):
    rng = np.random.default_rng(0)
    link = RELU if kind == "ReLU" else IDENTITY
    X, y = ledger(600)
    if kind != "ledger":
        X = rng.standard_normal((600, 4))
        other = X @ [1.0, 2, 3, 5] if kind == "two rules" else 9 * rng.standard_normal(600)
        y = link(np.where(rng.random(600) < (0.5 if kind == "two rules" else 0.4), other, X @ [1.0, 2, 3, 4]))
    plain = fit(X, y, link=link)
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(600)
        found = fit(X[order], y[order], link=link)
        np.testing.assert_array_equal(found.agree, plain.agree[order])
        np.testing.assert_allclose(found.coef, plain.coef, rtol=1e-12)
        assert found.certificates[0].verdict is plain.certificates[0].verdict
        assert found.certificates[0].eta_max == pytest.approx(plain.certificates[0].eta_max, abs=0.02)


# --- every door ---


def estimator_door(kind):
    def door(X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind(random_state=0).fit(X, y)

    return door


DOORS = {
    "rows": lambda X, y: ArrayRows(X, y),
    "sparse rows": lambda X, y: ArrayRows(sp.csr_array(X), y),
    "recovered": recovered,
    "recovered, ReLU": partial(recovered, link=RELU),
    "learn_pac": lambda X, y: learn_pac(X, y, 0.1, rng=np.random.default_rng(0)),
    "MassartRegressor": estimator_door(MassartRegressor),
    "MassartReLURegressor": estimator_door(MassartReLURegressor),
    "MassartPACRegressor": estimator_door(MassartPACRegressor),
}


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("door", sorted(DOORS))
def test_integers_that_float64_cannot_hold_are_refused_at_every_door(door, dtype):
    X = np.arange(40).reshape(20, 2).astype(dtype)
    y = X.sum(axis=1).astype(float)
    X[3, 1] = 2**53
    DOORS[door](X, y)
    X[3, 1] += 1
    with pytest.raises(ValueError, match=r"X holds the integer 9007199254740993, above 2\*\*53"):
        DOORS[door](X, y)


@pytest.mark.parametrize("door", ["recovered", "recovered, ReLU", "MassartRegressor", "MassartReLURegressor"])
def test_labels_that_float64_cannot_hold_are_refused(door):
    X = np.arange(40.0).reshape(20, 2)
    y = X.sum(axis=1).astype(np.int64)
    y[3] = 2**53 + 1
    with pytest.raises(ValueError, match=r"y holds the integer 9007199254740993"):
        DOORS[door](X, y)
