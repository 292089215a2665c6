"""``massart fit`` and ``massart predict`` as a user runs them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

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
                total += 100 + k
            office = ["Bern", "Rome", "Oslo"][k % 3]
            writer.writerow([f"A-{k}", f"2026-01-{k % 28 + 1:02d}", office, hours, price, f"${total:,.2f}"])
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fit(ledger: Path, *options: str) -> int:
    return run(["fit", str(ledger), "--target", "total", *options])


def test_fit_prints_the_formula_the_verdict_and_the_worst_rows(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(ledger, "--id", "invoice", "--group", "office") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "total = 54 * hours + 12.5 * `unit price` + 9"
    assert "240 of 300 rows (80.0 %) follow it, 60 do not" in out
    assert "PROVEN" in out or "MAJORITY" in out
    assert "A-295" in out  # the largest error
    assert "Bern" in out
    assert '"date"' in err  # left out, with a notice
    assert "Traceback" not in err


def test_outputs_agree_with_each_other(ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit, fixed, model = tmp_path / "audit.csv", tmp_path / "fixed.csv", tmp_path / "model.json"
    outputs = ["--audit", str(audit), "--fixed", str(fixed), "--save", str(model)]
    assert fit(ledger, "--id", "invoice", "--json", *outputs) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rows_wrong"] == len(WRONG)
    rows = read(audit)
    assert len(rows) == N_ROWS
    wrong = [row["invoice"] for row in rows if row["wrong"] == "true"]
    assert sorted(wrong) == sorted(f"A-{k}" for k in WRONG)
    assert wrong[0] == said["worst_rows"][0]["invoice"] == "A-295"
    assert float(rows[0]["residual"]) == 395.0

    assert run(["predict", str(model), str(fixed), "--id", "invoice"]) == 0
    predicted = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(predicted) == N_ROWS
    assert all(row["wrong"] == "false" for row in predicted)
    corrected = read(fixed)
    assert list(corrected[0])[-2:] == ["total", "total_given"]
    assert [float(row["total"]) for row in corrected] == [float(row["implied"]) for row in predicted]
    given = [row["total_given"] for row in corrected]
    assert given == [row["total"] for row in read(ledger)]


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "parquet", "arrow", "jsonl", "csv.zst"])
def test_every_format_is_written_and_read_again(ledger: Path, tmp_path: Path, suffix: str) -> None:
    fixed, audit = tmp_path / f"fixed.{suffix}", tmp_path / f"audit.{suffix}"
    assert fit(ledger, "--fixed", str(fixed), "--audit", str(audit)) == 0
    assert run(["fit", str(fixed), "--target", "total", "--exclude", "total_given", "--max-wrong", "0"]) == 0
    assert audit.stat().st_size > 0


def test_max_wrong_makes_a_check(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(ledger, "--max-wrong", "0.2") == 0
    capsys.readouterr()
    assert fit(ledger, "--max-wrong", "0.1") == 1
    assert "massart: 20.00% of the rows are wrong, more than 10.00%" in capsys.readouterr().err


def test_columns_are_chosen_one_by_one_or_with_commas(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--features", "hours,unit price"], ["--features", "hours", "--features", "unit price"]):
        assert fit(ledger, *options) == 0
        assert capsys.readouterr().out.startswith("total = 54 * hours + 12.5 * `unit price` + 9")
    assert fit(ledger, "--exclude", "hours") == 1
    assert fit(ledger, "--exclude", "hourz") == 2
    assert "hourz" in capsys.readouterr().err


def test_stdin_is_a_file_called_dash(ledger: Path) -> None:
    command = [sys.executable, "-m", "massart", "fit", "-", "--target", "total", "--json"]
    done = subprocess.run(command, input=ledger.read_bytes(), capture_output=True, check=True)
    assert json.loads(done.stdout)["rows_wrong"] == len(WRONG)


def test_a_reader_that_has_seen_enough_is_no_error(ledger: Path) -> None:
    program = f"{sys.executable} -m massart fit {ledger} --target total --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "Broken pipe" not in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tolerance", "cents"], "--tolerance must be auto or a number, got 'cents'"),
        (["--tolerance", "-1"], "tolerance"),
        (["--audit", "audit.xlsx"], "audit.xlsx"),
        (["--audit", "no-such-folder/audit.csv"], "no-such-folder"),
        (["--report", "no-such-folder/report.html"], "no-such-folder"),
        (["--save", "no-such-folder/model.json"], "no-such-folder"),
        (["--fixed", "ledger.csv"], "--fixed ledger.csv would overwrite the file that is read"),
        (["--fixed", "a.csv", "--audit", "a.csv"], "would overwrite the output of --audit"),
        (["--id", "invoices"], "invoices"),
        (["--group", "offices"], "offices"),
        (["--features", "hours,houses"], "houses"),
        (["--features", "date"], "date"),
        (["--delimiter", ";;"], "delimiter"),
        (["--encoding", "klingon"], "klingon"),
        (["--decimal", "x"], "decimal"),
    ],
)
def test_bad_options_are_one_line_and_write_nothing(
    options: list[str],
    words: str,
    ledger: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ledger.parent)
    before = {path: path.read_bytes() for path in ledger.parent.iterdir()}
    assert run(["fit", "ledger.csv", "--target", "total", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err
    assert {path: path.read_bytes() for path in ledger.parent.iterdir()} == before
