"""Laws of ``benchmarks/compare.py``: the same tables for all, scores that know the truth, losses first."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comparison import methods, page, running, tables
from comparison.methods import METHODS, Answer, Method, called_wrong
from comparison.tables import CELLS, Cell
from massart.rows.files import read_csv

pytest.importorskip("resource")  # limits are the system's
SMALL_CELLS = [cell for cell in CELLS if cell.name != "linear-large"]


def truth(table: tables.Table) -> Answer:
    return Answer(table.right, table.coef if len(table.coef) else None, table.wrong)


@pytest.mark.parametrize("cell", SMALL_CELLS, ids=lambda cell: cell.name)
def test_a_table_says_the_truth_about_itself(cell: Cell) -> None:
    table, again = (cell.make(np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(table.y, again.y)
    off = np.abs(table.y - table.right)
    if not math.isnan(table.half):  # right rows agree to the last place, and wrong ones do not
        np.testing.assert_array_equal(table.wrong, off > table.half)
    found: Any = running.score(cell.group, table, truth(table))
    assert found["status"] == "ok"
    assert found["hits"] == found["called"] == found["wrong"] == table.wrong.sum()
    assert found["recovered"] == (not math.isnan(table.half) or len(table.coef) > 0)
    shifted = replace(truth(table), predicted=table.right + 1e3, called=None)
    assert called_wrong(table, shifted).sum() >= (0 if math.isnan(table.half) else (~table.wrong).sum())


def test_the_grid_has_cells_that_massart_should_lose_and_names_are_unique() -> None:
    names = [cell.name for cell in CELLS]
    assert len(set(names)) == len(names)
    assert {"noisy-clean-small", "linear-clean", "rule-sine", "rows-surface"} <= set(names)
    assert set(tables.SMALL) <= set(names)
    assert all(next(iter(group)) == page.OURS for group in METHODS.values())


def test_only_a_certain_answer_that_is_wrong_is_a_false_claim() -> None:
    table = CELLS[0].make(np.random.default_rng(0))
    right, wrong = truth(table), replace(truth(table), coef=table.coef + 1)
    claims = [
        running.score("linear", table, replace(answer, verdict=verdict))["false_claim"]
        for answer in (right, wrong)
        for verdict in ("CONFIRMED", "MAJORITY")
    ]
    assert claims == [0, 0, 1, 0]


def test_noisy_scale_survives_forty_percent() -> None:
    rng = np.random.default_rng(0)
    residuals = np.abs(np.append(rng.standard_normal(600), rng.uniform(20, 100, 400)))
    assert 0.9 < methods._scale(residuals) < 1.1


def row(cell: str, method: str, **values: Any) -> dict[str, Any]:
    group = next(known.group for known in CELLS if known.name == cell)
    given = {"recovered": 1, "error": 0.0, "oracle": 0.0, "wrong": 10, "called": 10, "hits": 10, "peak_mb": 100.0}
    given |= {"group": group, "cell": cell, "method": method, "table": 0, "status": "ok", "verdict": ""}
    return {**given, "false_claim": 0, "cpu_seconds": 1.0, **values}


def test_cells_where_a_peer_wins_come_first() -> None:
    rows = [
        *(row("linear-clean", name) for name in ("massart", "huber")),
        *(row("linear-tiny", name, cpu_seconds=seconds) for name, seconds in (("massart", 1.0), ("rq", 0.1))),
        row("rule-sine", "massart", recovered=0),
        row("rule-sine", "operon"),
        row("relu-0.1", "massart"),
        row("relu-0.1", "clad", recovered=0, cpu_seconds=0.001),  # fast and wrong is no win
    ]
    summary = page.summarize(rows)
    assert list(dict.fromkeys(found["cell"] for found in summary)) == [
        "rule-sine",
        "linear-tiny",
        "linear-clean",
        "relu-0.1",
    ]
    assert [found["peer_wins"] for found in summary if found["method"] == "massart"] == ["score", "time", "", ""]
    facts = {"command": "massart bench <&>", "seed": 1, "limit": 40, "left_out": ["R is not here"], "versions": {}}
    text = page.html(summary, facts)
    places = [text.index(f'id="{name}"') for name in ("rule-sine", "linear-tiny", "relu-0.1")]
    assert places == sorted(places)
    assert "&lt;&amp;&gt;" in text
    assert "R is not here" in text
    assert "<script" not in text
    assert "http" not in text


@pytest.mark.full
@pytest.mark.slow
def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    cells = [replace(cell, tables=2) for cell in running.choose(["linear-tiny"], small=True)]
    running.bench(cells, tmp_path, seed=5, small=True, most_tables=1, command="compare")
    first = read_csv(tmp_path / "bench.csv")
    assert {found["method"] for found in first} >= {"massart", "quantile"}
    assert all(found["status"] == "ok" and float(found["peak_mb"]) > 10 for found in first)
    running.bench(cells, tmp_path, seed=5, small=True)
    both = read_csv(tmp_path / "bench.csv")
    assert [found for found in both if found["table"] == "0"] == first  # times, too: nothing ran twice
    assert len(both) == 2 * len(first)
    assert len((tmp_path / "bench.jsonl").read_text().splitlines()) == len(both)
    assert json.loads((tmp_path / "bench.json").read_text())["seed"] == 5


def spin(table: tables.Table, rng: Any) -> Answer:
    while True:
        pass


def broken(table: tables.Table, rng: Any) -> Answer:
    raise RuntimeError("no")


@pytest.mark.slow
@pytest.mark.parametrize(("ask", "status"), [(spin, "over the limit"), (broken, "failed")])
def test_a_method_without_an_answer_ends_nothing(ask: Any, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LIMIT", 1)
    cell = running.choose(["linear-tiny"], small=True)[0]
    task = running.Task("linear", (cell.name,), "x", 0)
    outcome = running.measured(task, cell, Method("x", "y", ask), 0)
    assert outcome.values[0]["status"] == status
    assert outcome.values[0]["recovered"] == 0


@pytest.mark.slow
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Method("x", "y", broken, "no_such_library")
    monkeypatch.setitem(METHODS["linear"], "absent", absent)
    assert "x needs no_such_library: pip install no_such_library" in running.left_out()
    assert "absent" not in running.entrants("linear", small=False)


def test_a_cell_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no cell begins with 'nothing'; there are linear-"):
        running.choose(["nothing"], small=False)
