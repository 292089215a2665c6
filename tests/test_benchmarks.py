"""The runner of the benchmarks: what it prints, and when it fails."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The runner, with an empty folder in place of the benchmarks."""
    monkeypatch.syspath_prepend(str(_BENCHMARKS))
    import run

    monkeypatch.setattr(run, "_HERE", tmp_path)
    return run


def _add(monkeypatch: pytest.MonkeyPatch, run: Any, name: str, measure: Any) -> None:
    module = ModuleType(f"bench_{name}")
    module.cases = lambda small: [run.harness.Case(f"case of {name}", measure)]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    (run._HERE / f"bench_{name}.py").touch()


def test_a_race_reports_its_ratio(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    harness = run.harness

    def measure() -> Any:
        return harness.race(
            "sums",
            lambda: sum(range(100)),
            lambda: sum(range(100_000)),
            peer_name="a longer sum",
            wanted=harness.at_least(2),
            judge=lambda ours, peer: f"{ours} and {peer}",
        )

    _add(monkeypatch, run, "sums", measure)
    assert run.main(["--csv", str(tmp_path / "rows.csv")]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert "a longer sum" in line
    assert ">= 2x" in line
    assert "pass" in line
    assert line.endswith("4950 and 4999950000")
    assert (tmp_path / "rows.csv").read_text().startswith("benchmark,case,ours,peer,peer_name,ratio")


def test_a_missed_goal_is_printed_and_forgiven(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _add(monkeypatch, run, "slow", lambda: run.harness.count("passes", 20, wanted=run.harness.at_most(15, " passes")))
    assert run.main([]) == 0
    assert "MISS" in capsys.readouterr().out


@pytest.mark.parametrize(("error", "word"), [("Incorrect", "WRONG: off by one"), ("", "CRASHED: off by one")])
def test_a_wrong_answer_fails_the_run(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: str, word: str
) -> None:
    def measure() -> Any:
        raise getattr(run.harness, error or "_", RuntimeError)("off by one")

    _add(monkeypatch, run, "wrong", measure)
    assert run.main([]) == 1
    assert word in capsys.readouterr().out


def test_a_missing_peer_is_a_row_that_says_so(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _add(monkeypatch, run, "lonely", lambda: run.harness.require("no_such_library.part"))
    assert run.main(["--only", "lonely"]) == 0
    assert "skipped: no_such_library is not installed" in capsys.readouterr().out


def test_the_street_tables_are_forty_with_as_much_wrong_as_was_asked_for() -> None:
    street = pytest.importorskip("street_tables")
    import planted

    made = [planted.plant(name, make, 1).made for name, make in street.TABLES.items()]
    shares = sorted(table.share for table in made)
    assert [sum(low <= share < low + 10 for share in (100 * s for s in shares)) for low in (5, 15, 25, 35)] == [10] * 4
    assert all(2 <= len(table.errors) <= 4 for table in made)


@pytest.mark.parametrize("part", ["08", "12", "16", "26", "29", "37", "40"])
def test_a_street_table_is_off_in_exactly_the_rows_that_are_declared(part: str) -> None:
    street = pytest.importorskip("street_tables")
    for module in ("pyarrow", "python_calamine", "xlsxwriter"):
        pytest.importorskip(module)
    import trade_tables

    name = next(name for name in street.TABLES if name.startswith(part))
    assert trade_tables.check(name, street.TABLES[name], 1) == []
