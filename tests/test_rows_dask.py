"""Rows of Dask, in this process and on a cluster: the same answers as in memory, little that travels, lost workers.

The laws that every kind of rows keeps are in ``test_rows_conformance.py``.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("dask.dataframe", reason="Dask is not installed: massart[dask]")
distributed = pytest.importorskip("distributed", reason="distributed is not installed: massart[dask]")
import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd

import massart.rows.dask
import massart.rows.dask_values
from massart import MassartRegressor, MassartReLURegressor
from massart.recover import recover
from massart.recover.settings import SETTINGS
from massart.rows import ArrayRows, Block
from massart.rows.dask import DaskRows

W = np.array([1.5, -2.0, 0.25, 3.0])


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, len(W))) * 8) / 4
    y = X @ W + 7
    wrong = rng.random(n) < 0.35
    y[wrong] += np.round(rng.standard_normal(wrong.sum()) * 100) / 4 + 0.125
    return X, y, wrong


def frame_of(X, y):
    return dd.from_pandas(pd.DataFrame(X, columns=[*"abcd"]).assign(y=y), npartitions=4)


@pytest.fixture(scope="module")
def threads():
    """A cluster within this process."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["here", "cluster"])
def place(request):
    """Tasks run in this process, or on a cluster that is the current one."""
    if request.param == "here":
        yield
    else:
        with request.getfixturevalue("threads").as_current():
            yield


@pytest.fixture
def processes():
    """A cluster of two processes, which starts another one for each that dies."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


# --- estimators ---


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_is_the_same_bit_for_bit(place, weighted):
    X, y, _ = table()
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(np.float64) if weighted else None
    known = MassartRegressor(random_state=0).fit(X, y, weights)
    lazy = da.from_array(X, chunks=(700, 3)), da.from_array(y, chunks=900)
    found = MassartRegressor(random_state=0).fit(
        *lazy, None if weights is None else da.from_array(weights, chunks=3000)
    )
    assert known.certificate_.verdict.stands
    assert_array_equal(found.coef_, known.coef_)
    assert found.intercept_ == known.intercept_
    assert found.noise_rate_ == known.noise_rate_
    assert repr(found.certificate_) == repr(known.certificate_)
    for name in ("inlier_mask_", "last_place_mask_"):
        mask = getattr(found, name)
        assert isinstance(mask, da.Array)
        assert mask.chunks == ((700, 700, 700, 700, 200),)
        assert_array_equal(mask.compute(), getattr(known, name))


@pytest.mark.slow
def test_a_prediction_is_lazy(place):
    X, y, _ = table()
    lazy = da.from_array(X, chunks=(700, 3))
    found = MassartRegressor(random_state=0).fit(lazy, da.from_array(y, chunks=700)).predict(lazy)
    assert isinstance(found, da.Array)
    assert_array_equal(found.compute(), X @ W + 7)


def test_a_link_that_clips_is_applied_where_the_rows_are():
    X, _, _ = table(n=600)
    y = np.maximum(X @ W, 0)
    y[::10] += 1.125
    lazy = da.from_array(X, chunks=(250, 4))
    found = MassartReLURegressor(random_state=0, fit_intercept=False).fit(lazy, da.from_array(y, chunks=250))
    assert_array_equal(found.coef_, W)
    assert_array_equal(found.inlier_mask_.compute(), np.arange(600) % 10 > 0)
    assert_array_equal(found.predict(lazy).compute(), np.maximum(X @ W, 0))


@pytest.mark.slow
def test_a_data_frame_is_fitted_by_its_columns(place):
    X, y, wrong = table()
    frame = frame_of(X, y)
    columns = [*"abcd"]
    found = MassartRegressor(random_state=0).fit(frame[columns], frame["y"])
    known = MassartRegressor(random_state=0).fit(X, y)
    assert_array_equal(found.coef_, known.coef_)
    assert [*found.feature_names_in_] == columns
    assert_array_equal(found.inlier_mask_.compute(), ~wrong)
    assert_array_equal(found.predict(frame[columns]).compute(), X @ W + 7)


@pytest.mark.slow
def test_columns_of_all_numeric_types_are_numbers(place):
    X, y, wrong = table()
    frame = frame_of(X, y).assign(one=1)
    frame = frame.assign(many=frame["a"].astype("Float64"), flag=frame["a"] > 0, count=frame["one"].astype("Int64"))
    found = MassartRegressor(random_state=0, fit_intercept=False).fit(
        frame[["many", "b", "c", "d", "count"]], frame["y"]
    )
    assert_array_equal(found.coef_, [*W, 7])
    assert_array_equal(found.inlier_mask_.compute(), ~wrong)
    assert DaskRows(frame[["flag", "b"]], frame["y"]).take(np.array([0])).X[0, 0] == (X[0, 0] > 0)


def test_precisions_are_those_of_the_arrays():
    X, y, _ = table()
    rows = DaskRows(da.from_array(X.astype(np.float32)), da.from_array(y))
    assert rows.precision == ArrayRows(X.astype(np.float32), y).precision
    assert rows.precision[0] > rows.precision[1]


# --- what is refused, in one line ---


def test_categories_and_text_are_refused_by_name():
    X, y, _ = table(n=40)
    frame = frame_of(X, y)
    text = frame.assign(b=frame["b"].map(str, meta=("b", "str")))
    with pytest.raises(ValueError, match=r"^X must hold numbers, got str.* in column b$"):
        MassartRegressor().fit(text[["a", "b"]], frame["y"])
    with pytest.raises(ValueError, match="^X must hold numbers, got category in column a$"):
        MassartRegressor().fit(frame.assign(a=frame["a"].astype("category"))[["a", "b"]], frame["y"])
    with pytest.raises(ValueError, match="^y must hold numbers, got str"):
        MassartRegressor().fit(frame[["a"]], text["b"])


@pytest.mark.slow
def test_labels_that_cannot_be_aligned_are_refused(place):
    X, y, _ = table()
    lazy, frame = da.from_array(X, chunks=(1000, 4)), frame_of(X, y)
    with pytest.raises(ValueError, match="^y has 2999 rows but X has 3000$"):
        DaskRows(lazy, da.from_array(y[1:]))
    with pytest.raises(ValueError, match="^y has 3 chunks but X has 4, and not all sizes are known: cut both alike"):
        DaskRows(frame[["a"]], da.from_array(y, chunks=1000))
    with pytest.raises(ValueError, match="^y has a chunk of 600 rows where X has one of 750: cut both alike$"):
        DaskRows(frame[["a"]], da.from_array(y, chunks=((600, 900, 750, 750),)))
    with pytest.raises(ValueError, match="^y is in memory, but X has chunks of unknown sizes"):
        DaskRows(frame[["a"]], y)
    assert DaskRows(lazy, y).n_rows == 3000
    assert DaskRows(frame[["a"]], da.from_array(y, chunks=750)).n_rows == 3000


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("where", ["X", "y", "sample_weight"])
def test_a_number_that_is_none_has_the_message_of_memory(place, where, value):
    X, y, _ = table()
    arrays = {"X": X, "y": y, "sample_weight": np.ones(len(y))}
    arrays[where][(2345, 1)[: arrays[where].ndim]] = value
    with pytest.raises(ValueError) as known:
        MassartRegressor(random_state=0).fit(**arrays)
    with pytest.raises(ValueError) as found:
        MassartRegressor(random_state=0).fit(**{name: da.from_array(a, chunks=700) for name, a in arrays.items()})
    assert str(found.value) == str(known.value)
    assert "row 2345" in str(found.value)


@pytest.mark.parametrize("weights", [np.zeros(3000), np.where(np.arange(3000) == 1234, -2.0, 1.0)])
def test_weights_are_checked_as_in_memory(weights):
    X, y, _ = table()
    with pytest.raises(ValueError) as known:
        ArrayRows(X, y, weights)
    with pytest.raises(ValueError) as found:
        DaskRows(*(da.from_array(array, chunks=700) for array in (X, y, weights)))
    assert str(found.value) == str(known.value)


def test_integers_that_float64_cannot_hold_are_refused():
    X = np.arange(12).reshape(6, 2)
    X[4, 1] = 2**53 + 1
    with pytest.raises(ValueError, match=r"X holds the integer 9007199254740993, above 2\*\*53"):
        DaskRows(da.from_array(X, chunks=2), da.from_array(np.arange(6.0), chunks=2))


@pytest.mark.slow
def test_a_table_without_rows_is_refused():
    with pytest.raises(ValueError, match="^X must have at least one row, got none$"):
        DaskRows(da.zeros((0, 2)), da.zeros(0))
    X, y, _ = table(n=40)
    frame = frame_of(X, y)
    none = frame[frame["a"] > 1e9]
    with pytest.raises(ValueError, match="^X must have at least one row, got none$"):
        DaskRows(none[["a"]], none["y"])


# --- blocks that workers read ---


@dataclass(frozen=True)
class Read:
    """Reads a block, and notes that it did."""

    folder: Path
    number: int
    n_blocks: int = 6

    def __call__(self):
        with (self.folder / "reads").open("a") as file:
            file.write(f"{self.number}\n")
        X, y, _ = table()
        rows = slice(self.number * 500, (self.number + 1) * 500)
        return Block(X[rows], y[rows, None], None, True)


def cluster_rows(blocks):
    """Rows that the workers read themselves: each block makes rows and labels."""
    made = [dask.delayed(block)() for block in blocks]
    X = da.concatenate([da.from_delayed(part.rows, (500, len(W)), float) for part in made])
    y = da.concatenate([da.from_delayed(part.y, (500, 1), float) for part in made])
    return DaskRows(X, y, intercept=True)


@pytest.fixture
def nothing_fits(monkeypatch):
    monkeypatch.setattr(massart.rows.dask, "SHARE", 0.0)


def reads_of(folder):
    return Counter(map(int, (folder / "reads").read_text().split()))


@pytest.mark.slow
@pytest.mark.parametrize("held", [True, False])
def test_blocks_are_read_once_if_they_fit_and_anew_if_not(threads, tmp_path, held, request):
    if not held:
        request.getfixturevalue("nothing_fits")
    blocks = [Read(tmp_path, number) for number in range(6)]
    with threads.as_current():
        found = recover(cluster_rows(blocks), rng=np.random.default_rng(0))
        assert_array_equal(found.coef[:, 0], [*W, 7])
        assert_array_equal(found.agree[:, 0], ~table()[2])
    reads = reads_of(tmp_path)
    assert sorted(reads) == [0, 1, 2, 3, 4, 5]
    assert (max(reads.values()) == 2) == held  # once for the rows, once for the labels


@pytest.mark.parametrize("held", [True, False])
def test_what_workers_hold_already_is_not_held_twice(threads, held):
    X, y, _ = table()
    with threads.as_current():
        given = da.from_array(X, chunks=(700, 4)), da.from_array(y, chunks=700)
        rows = DaskRows(*(threads.persist(given) if held else given))
        assert rows.n_rows == len(y)
        there = {key for keys in threads.has_what().values() for key in keys}
        assert {block.key in there for block in rows._blocks} == {not held}


@dataclass(frozen=True)
class Broken:
    def __call__(self):
        raise OSError("sales.parquet, row group 3: the file is cut off")


def test_an_error_of_a_worker_arrives_as_it_is(threads):
    error = pytest.raises(OSError, match=r"^sales.parquet, row group 3: the file is cut off$")
    with threads.as_current(), error:
        cluster_rows([Broken()])


@dataclass(frozen=True)
class Shrinking:
    """A file that is cut off once there is a note of it."""

    folder: Path

    def __call__(self):
        block = Read(self.folder, 0)()
        return block.take(slice(400)) if (self.folder / "cut off").exists() else block


def test_a_block_that_changes_is_refused(threads, tmp_path, nothing_fits):
    with threads.as_current():
        rows = cluster_rows([Read(tmp_path, 1), Shrinking(tmp_path)])
        (tmp_path / "cut off").touch()
        with pytest.raises(ValueError, match="the table changed while it was read: a block had 500 rows, and now 400"):
            rows.map(Labels())


@dataclass(frozen=True)
class Labels:
    def __call__(self, block):
        return block.y[:, 0]


@pytest.mark.slow
def test_only_totals_and_samples_come_to_the_client(threads, monkeypatch):
    few = replace(SETTINGS, certify=300, certify_per_column=60)
    monkeypatch.setattr("massart.recover.driver.SETTINGS", few)
    came = []
    compute = massart.rows.dask_values.compute

    def noted(tasks):
        results = compute(tasks)
        came.append(sum(map(dask.sizeof.sizeof, results)))
        return results

    monkeypatch.setattr(massart.rows.dask, "compute", noted)
    monkeypatch.setattr(massart.rows.dask_values, "compute", noted)
    X, y, wrong = table(n=100_000)
    with threads.as_current():
        found = MassartRegressor(random_state=0).fit(da.from_array(X, chunks=10_000), da.from_array(y, chunks=10_000))
        assert_array_equal(found.inlier_mask_.compute(), ~wrong)
    assert 0 < sum(came) < X.nbytes / 10


# --- workers that die ---


@dataclass(frozen=True)
class Slowly:
    """Labels that take a while, and a note of the process that looks for them."""

    folder: Path

    def __call__(self, block):
        (self.folder / f"{os.getpid()}").touch()
        time.sleep(0.1)
        return block.y[:, 0]


def kill_workers(folder, times):
    """Kill a worker in the middle of its work, and then another one that has begun."""
    killed = set()
    while len(killed) < times:
        for path in folder.iterdir():
            if int(path.name) not in killed and len(killed) < times:
                time.sleep(0.15)
                os.kill(int(path.name), signal.SIGKILL)
                killed.add(int(path.name))
        time.sleep(0.01)


@pytest.mark.full
@pytest.mark.slow
def test_workers_that_die_are_survived(processes, tmp_path):
    (tmp_path / "workers").mkdir()
    _, y, wrong = table()
    blocks = [Read(tmp_path, number) for number in range(6)]
    killer = threading.Thread(target=kill_workers, args=(tmp_path / "workers", 2))
    with processes.as_current():
        rows = cluster_rows(blocks)
        killer.start()
        labels = rows.map(Slowly(tmp_path / "workers"))
        killer.join()
        assert_array_equal(labels.to_numpy(), y)
        assert len([*(tmp_path / "workers").iterdir()]) > 2  # others went on
        assert_array_equal(recover(rows, rng=np.random.default_rng(0)).agree[:, 0], ~wrong)
    assert max(reads_of(tmp_path).values()) > 2  # what was lost was read again


@pytest.mark.slow
def test_a_fit_goes_on_without_the_worker_that_dies_in_its_middle(processes, monkeypatch):
    X, y, _ = table()
    known = MassartRegressor(random_state=0).fit(X, y)
    sample, killed = massart.rows.dask.DaskRows.sample, []

    def then_die(self, *arguments):
        found = sample(self, *arguments)
        killed.append(min(processes.run(os.getpid).values()))
        os.kill(killed[-1], signal.SIGKILL)
        return found

    monkeypatch.setattr(massart.rows.dask.DaskRows, "sample", then_die)
    with processes.as_current():
        given = da.from_array(X, chunks=(300, 4)), da.from_array(y, chunks=300)
        found = MassartRegressor(random_state=0).fit(*given)
        assert_array_equal(found.inlier_mask_.compute(), known.inlier_mask_)
    assert killed
    assert_array_equal(found.coef_, known.coef_)
    assert repr(found.certificate_) == repr(known.certificate_)


@dataclass(frozen=True)
class Deadly:
    def __call__(self, block):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.full
@pytest.mark.slow
def test_a_block_that_kills_every_worker_is_one_error(processes, tmp_path):
    processes.cluster.scheduler.allowed_failures = 1
    with processes.as_current():
        rows = cluster_rows([Read(tmp_path, 0)])
        with pytest.raises(ConnectionError, match="^workers of the Dask cluster died, one after the other"):
            rows.map(Deadly())
        assert_array_equal(rows.map(Labels()).to_numpy(), table()[1][:500])  # and it can be started again
