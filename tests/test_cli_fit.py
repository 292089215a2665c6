"""``massart fit`` and ``massart predict`` as a user runs them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")

from massart.cli import run

N_ROWS = 300
WRONG = range(0, N_ROWS, 5)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A CSV file with text, dates and money; every fifth total is wrong."""
    rng = np.random.default_rng(0)
    path = tmp_path / "ledger.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["invoice", "date", "office", "hours", "unit price", "total"])
        for k in range(N_ROWS):
            hours, price = int(rng.integers(1, 200)) / 4, int(rng.integers(1, 100))
            total = 54 * hours + 12.5 * price + 9
            if k in WRONG:
                total += 100.37 + k  # what no other hours and no other price would give
            office = ["Bern", "Rome", "Oslo"][k % 3]
            writer.writerow([f"A-{k}", f"2026-01-{k % 28 + 1:02d}", office, hours, price, f"${total:,.2f}"])
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fit(ledger: Path, *options: str) -> int:
    return run(["fit", str(ledger), "--target", "total", *options])


@pytest.mark.slow
def test_fit_prints_the_formula_the_verdict_and_the_worst_rows(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(ledger, "--id", "invoice", "--group", "office") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "total = 54 * hours + 12.5 * `unit price` + 9"
    assert "240 of 300 rows (80.0 %) follow it, 60 do not" in out
    assert "PROVEN: 240" in out or "CONFIRMED: 240" in out
    assert "A-295" in out  # the largest error
    assert "Bern" in out
    assert '"date"' in err  # left out, with a notice
    assert "Traceback" not in err


@pytest.mark.slow
def test_outputs_agree_with_each_other(ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit, fixed, model = tmp_path / "audit.csv", tmp_path / "fixed.csv", tmp_path / "model.json"
    outputs = ["--audit", str(audit), "--fixed", str(fixed), "--save", str(model)]
    assert fit(ledger, "--id", "invoice", "--json", *outputs) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rows_wrong"] == len(WRONG)
    assert fit(ledger, "--id", "invoice") == 0  # the words are the same everywhere
    assert said["explanation"] in " ".join(capsys.readouterr().out.split())
    assert said["explanation"] == json.loads(model.read_text())["explanation"]
    rows = read(audit)
    assert len(rows) == N_ROWS
    wrong = [row["invoice"] for row in rows if row["wrong"] == "true"]
    assert sorted(wrong) == sorted(f"A-{k}" for k in WRONG)
    assert wrong[0] == said["worst_rows"][0]["invoice"] == "A-295"
    assert float(rows[0]["residual"]) == 395.37

    assert run(["predict", str(model), str(fixed), "--id", "invoice"]) == 0
    predicted = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(predicted) == N_ROWS
    assert all(row["wrong"] == "false" for row in predicted)
    corrected = read(fixed)
    assert list(corrected[0])[-4:] == ["total", "total_given", "wrong", "kind"]
    totals = [float(row["total"].replace("$", "").replace(",", "")) for row in corrected]
    assert totals == [float(row["implied"]) for row in predicted]
    given = [row["total_given"] for row in corrected]
    assert given == [row["total"] for row in read(ledger)]


@pytest.mark.slow
def test_max_wrong_makes_a_check(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(ledger, "--max-wrong", "0.2") == 0
    capsys.readouterr()
    assert fit(ledger, "--max-wrong", "0.1") == 3
    assert "massart: 60 of 300 rows are wrong (20.0 %), more than 10 %; 0 not judged." in capsys.readouterr().err


@pytest.mark.slow
def test_a_limit_for_rows_that_are_not_judged_holds_where_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    hours = rng.integers(1, 99, 200)
    table = write(tmp_path / "t.csv", {"hours": [*[""] * 20, *hours[20:]], "total": 3 * hours + 7})
    assert fit(table) == 0
    assert fit(table, "--max-unjudged", "10%") == 0
    capsys.readouterr()
    assert fit(table, "--max-unjudged", "5%", "--json") == 1
    captured = capsys.readouterr()
    assert "massart: 20 of 200 rows are not judged (10.0 %), more than 5 %" in captured.err
    found = json.loads(captured.out)
    assert (found["passed"], found["rows_unjudged"], found["max_unjudged"]) == (False, 20, 0.05)


def write(path: Path, columns: dict[str, Any]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture
def majority(tmp_path: Path) -> Path:
    """A table whose formula is a majority, and no more: few rows have the surcharge."""
    rng = np.random.default_rng(0)
    hours, rush = rng.integers(1, 40, 400) / 4, np.arange(400) < 9
    total = 54 * hours + 30 * rush + 7
    total[50:150] = rng.integers(1, 999, 100)
    return write(tmp_path / "majority.csv", {"hours": hours, "rush": rush.astype(int), "total": total})


@pytest.fixture
def chance(tmp_path: Path) -> Path:
    """A table without a rule."""
    rng = np.random.default_rng(0)
    columns = {"hours": rng.standard_normal(120), "total": (rng.random(120) < 0.3).astype(int)}
    return write(tmp_path / "chance.csv", columns)


@pytest.mark.slow
def test_the_exit_status_follows_the_verdict(
    ledger: Path, majority: Path, chance: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(ledger, "--require", "confirmed") == fit(majority) == fit(majority, "--require", "majority") == 0
    assert fit(majority, "--require", "confirmed") == fit(majority, "--require", "proven") == 1
    assert "MAJORITY" in capsys.readouterr().out
    assert fit(chance) == 1
    assert fit(chance, "--max-wrong", "0") == 1  # no row is called wrong
    assert fit(majority, "--require", "proven", "--max-wrong", "0.1") == 3  # goes over 1
    assert fit(majority, "--require", "proven", "--max-wrong", "2") == 2  # goes over 3
    assert fit(majority, "--require", "confirmed", "--wrong-at-most", "0.1") == 0


@pytest.mark.slow
def test_without_a_rule_nothing_is_called_wrong_fixed_or_saved(
    chance: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit, fixed, model, report = (tmp_path / name for name in ("audit.csv", "fixed.csv", "model.json", "report.html"))
    outputs = ["--audit", str(audit), "--fixed", str(fixed), "--save", str(model)]
    pytest.importorskip("jinja2", reason="jinja2 is not installed: reports are optional")
    assert fit(chance, *outputs, "--report", str(report)) == 1
    out, err = capsys.readouterr()
    assert out.startswith("NONE.\nNo rule was found: ")
    assert "total =" not in out
    assert "wrong" not in out
    assert "No rule was found, so no fixed table and no model are written." in err
    assert not fixed.exists()
    assert not model.exists()
    rows = read(audit)
    assert {(row["wrong"], row["kind"], row["implied"]) for row in rows} == {("false", "", "")}
    assert len(rows) == 120
    assert "What came closest" in report.read_text(encoding="utf-8")


@pytest.mark.slow
def test_rows_off_by_a_last_place_are_neither_wrong_nor_fixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    kg = np.round(rng.uniform(1, 100, 300), 6)
    total = np.round(1.852 * kg, 2)
    total[:12] = np.round(total[:12] + 0.01, 2)
    table = write(tmp_path / "cents.csv", {"kg": kg, "total": total})
    audit, fixed = tmp_path / "audit.csv", tmp_path / "fixed.csv"
    assert fit(table, "--max-wrong", "0", "--audit", str(audit), "--fixed", str(fixed)) == 0
    assert "288 of 300 rows (96.0 %) follow it, 0 do not, 12 rows off by a last place" in capsys.readouterr().out
    kinds = [row["kind"] for row in read(audit)]
    assert kinds == ["last place"] * 12 + [""] * 288
    assert [float(row["total"]) for row in read(fixed)] == total.tolist()


@pytest.mark.slow
def test_errors_that_come_in_groups_are_said_by_a_column(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for options in ([], ["--error-unit", "date"]):
        assert fit(ledger, "--json", *options) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0]["formula"] == said[1]["formula"]
    assert said[1]["eta_max"] < said[0]["eta_max"]
    assert fit(ledger, "--error-unit", "total") == 2


@pytest.mark.slow
def test_columns_are_chosen_one_by_one_or_with_commas(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--features", "hours,unit price"], ["--features", "hours", "--features", "unit price"]):
        assert fit(ledger, *options) == 0
        assert capsys.readouterr().out.startswith("total = 54 * hours + 12.5 * `unit price` + 9")
    assert fit(ledger, "--exclude", "hours") == 1
    assert fit(ledger, "--exclude", "hourz") == 2
    assert "hourz" in capsys.readouterr().err


@pytest.mark.slow
def test_stdin_is_a_file_called_dash(ledger: Path) -> None:
    command = [sys.executable, "-m", "massart", "fit", "-", "--target", "total", "--json"]
    done = subprocess.run(command, input=ledger.read_bytes(), capture_output=True, check=True)
    assert json.loads(done.stdout)["rows_wrong"] == len(WRONG)


@pytest.fixture
def mostly_wrong(tmp_path: Path) -> Path:
    """A CSV file with 60 % of its totals wrong by noise about the rule."""
    rng = np.random.default_rng(25)
    path, n = tmp_path / "mostly_wrong.csv", 600
    hours, price = rng.integers(1, 400, n) / 4, rng.integers(100, 10_000, n) / 100
    total = 54 * hours + 12.5 * price + 9 + (rng.random(n) < 0.6) * 30 * rng.standard_normal(n)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["hours", "price", "total"])
        writer.writerows(zip(hours, price, np.round(total, 3), strict=True))
    return path


@pytest.mark.parametrize("options", [[], ["--tolerance", "0.0001"], ["--inliers", "exact"]], ids=" ".join)
def test_a_rule_that_four_rows_in_ten_follow_is_the_answer(mostly_wrong, capsys, options) -> None:
    assert fit(mostly_wrong, "--budget", "1", "--json", *options) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "PLURALITY"
    assert found["formula"] == "total = 54 * hours + 12.5 * price + 9"
    assert "at most half of the rows agree" in found["explanation"].lower()
    assert fit(mostly_wrong, "--inliers", "noisy", "--json") == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "NOISY"


def test_a_tolerance_is_obeyed_to_the_letter(tmp_path: Path, capsys) -> None:
    rng = np.random.default_rng(3)
    path, x = tmp_path / "noisy.csv", rng.uniform(0, 100, 400)
    y = 3 * x + rng.standard_normal(400)
    path.write_text("x,total\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True)))
    assert fit(path, "--budget", "1", "--json", "--tolerance", "0.0001") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "NONE"
    assert "0.0001" in found["agreement"]
    assert fit(path, "--budget", "1", "--json") == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "NOISY"
