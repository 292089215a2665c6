"""Broken input, one kind a case: one line that names the fault and nothing written, or the right formula after all."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")
pytest.importorskip("jinja2", reason="jinja2 is not installed: the report is laid out with it")

from rich.cells import cell_len
from test_table_malformed import MALFORMED

from massart.cli import run

N_ROWS = 60
FORMULA = "total = 3 * hours + 2 * items + 1"
HEADER = ("job", "hours", "items", "total")
COMMANDS = "\x1b]0;owned\x07\x1b[31m\r\b"
"""What a terminal would obey: a new title, a bell, red letters, and writing over the line."""


def rows() -> list[list[Any]]:
    """The table that all cases start from; every fourth total is wrong."""
    rng = np.random.default_rng(0)
    table = []
    for k in range(N_ROWS):
        hours, items = int(rng.integers(1, 80)) / 4, int(rng.integers(0, 12))
        table.append([f"J{k}", hours, items, 3 * hours + 2 * items + 1 + (7 + k if k % 4 == 0 else 0)])
    return table


def text(body: Iterable[Iterable[Any]] | None = None, delimiter: str = ",", end: str = "\n") -> str:
    lines = [HEADER, *(rows() if body is None else body)]
    return "".join(delimiter.join(map(str, line)) + end for line in lines)


def with_cell(row: int, column: str, value: object) -> str:
    """The table with one cell replaced; the row counts from 1, as in the messages."""
    body = rows()
    body[row - 1][HEADER.index(column)] = value
    return text(body)


def with_column(column: str, value: Callable[[int], object]) -> str:
    place = HEADER.index(column)
    return text([*row[:place], value(k), *row[place + 1 :]] for k, row in enumerate(rows()))


def wide(n_columns: int, n_rows: int, cell: str) -> str:
    names = ["total", *(f"c{j}" for j in range(n_columns))]
    return ",".join(names) + "\n" + (",".join([cell] * (n_columns + 1)) + "\n") * n_rows


# What is wrong with files is in test_table_malformed.py; here, that a command says one such line and writes nothing.
REFUSED = (
    *("row too short", "empty", "text in the target", "infinity", "all rows have gaps", "target alone", "folder"),
    *("no such file", "link to itself", "name too long", "line end in the name", "Excel workbook"),
    *("Parquet damaged", "gzip cut short", "JSON line broken"),
)

# name of the file, its content, words that the message has to contain
BROKEN_FILES: dict[str, tuple[str, str, list[str]]] = {
    "a name with quotes": ("a'\"b.csv", "total\n", ["a'\"b.csv"]),
    "a name with commands": (f"a{COMMANDS}b.csv", "total\n", ["b.csv"]),
    "a column with commands": ("t.csv", with_cell(6, "total", f'"oops{COMMANDS}"'), ["t.csv", "row 6", "oops"]),
    "a model": ("t.json", json.dumps({"format": "massart model", "version": 1}, indent=1), ["t.json"]),
    "one row many times": ("t.csv", text([["J", 1, 2, 8]] * 40), ["t.csv", '"total"', '"hours"']),
    "20,000 constant columns": ("t.csv", wide(20_000, 3, "1"), ["t.csv", '"total"']),
}

OUTPUTS = {
    "--audit": "out/audit.csv",
    "--fixed": "out/fixed.parquet",
    "--save": "out/model.json",
    "--report": "out/report.html",
}


def fit(name: str, *options: str) -> list[str]:
    """Return the arguments that ask for everything; of an option given twice the last one counts."""
    outputs = [word for pair in OUTPUTS.items() for word in pair]
    return ["fit", name, "--target", "total", *outputs, *options]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a good table and a place for outputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "good.csv").write_text(text())
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def check_refused(arguments: list[str], words: Iterable[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    capsys.readouterr()
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("massart: ")
    assert err.endswith("\n")
    line = err[:-1]
    assert line.isprintable(), line  # so it is one line, too
    assert len(line) < 1000
    assert "Error" not in line  # no name of an exception, no traceback
    assert [word for word in words if word not in line] == [], line
    assert contents(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN_FILES)
def test_a_broken_file_is_one_line_that_names_the_fault(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, content, words = BROKEN_FILES[case]
    (folder / name).write_text(content)
    check_refused(fit(name), words, folder, capsys)


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_reader_refuses_is_one_line(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, words = MALFORMED[case]
    check_refused(fit(str(make(folder).name)), words, folder, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", ""], ['""', '"total"']),
        (["--delimiter", ";"], ["good.csv", '"total"', "delimiter"]),
        (["--delimiter", ";;"], ["delimiter", '";;"']),
        (["--delimiter", ""], ["delimiter"]),
        (["--encoding", "klingon"], ["klingon"]),
        (["--encoding", "base64"], ["base64"]),
        (["--encoding", "utf-16"], ["good.csv", "utf-16"]),
        (["--decimal", "x"], ["decimal", '"x"']),
        (["--decimal", ""], ["decimal"]),
        (["--features", ""], ["good.csv", '""']),
        (["--features", "hours,,items"], ['""']),
        (["--features", "hours,hours"], ['"hours"', "twice"]),
        (["--features", "hours", "--exclude", "hours"], ['"hours"']),
        (["--features", "total"], ['"total"', "target"]),
        (["--exclude", "hours,items"], ['"total"']),
        (["--id", "total"], ['"total"']),
        (["--group", "town"], ['"town"']),
        (["--tolerance", "nan"], ["tolerance", "nan"]),
        (["--tolerance", "inf"], ["tolerance", "inf"]),
        (["--tolerance", "1e400"], ["tolerance"]),
        (["--tolerance", "-1"], ["tolerance", "-1"]),
        (["--tolerance", "0,5"], ["Invalid value for '--tolerance': it must be auto or a number, got '0,5'"]),
        (["--wrong-at-most", "1.5"], ["--wrong-at-most must be between 0 and 1, got 1.5"]),
        (["--error-unit", "town"], ['"town"']),
        (["--require", "luck"], ["luck"]),
        (["--max-wrong", "nan"], ["--max-wrong"]),
        (["--max-wrong", "2"], ["--max-wrong"]),
        (["--max-wrong", "few"], ["--max-wrong"]),
        (["--model", "cubic"], ["--model", "cubic"]),
        (["--seed", "-1"], ["--seed"]),
        (["--shiny"], ["--shiny"]),
        (["other.csv"], ["other.csv"]),
        (["--audit", "out/audit.xlsb"], ["out/audit.xlsb", ".csv"]),
        (["--audit", "out/audit"], ["out/audit", ".csv"]),
        (["--fixed", "out/fixed.parquet.gz"], ["out/fixed.parquet.gz"]),
        (["--audit", "nowhere/audit.csv"], ["nowhere"]),
        (["--save", "nowhere/model.json"], ["nowhere"]),
        (["--report", "good.csv/report.html"], ["good.csv"]),
        (["--report", "out"], ['"out"', "folder"]),
        (["--save", "out"], ['"out"', "folder"]),
        (["--fixed", "good.csv"], ["--fixed good.csv", "the file that is read"]),
        (["--audit", "./out/../good.csv"], ["good.csv", "the file that is read"]),
        (["--save", "link.csv"], ["link.csv", "the file that is read"]),
        (["--report", "link.csv"], ["link.csv", "the file that is read"]),
        (["--fixed", "out/audit.csv"], ["out/audit.csv", "the output of --audit"]),
        (["--save", "./out/report.html"], ["out/report.html", "the output of --"]),
        (["--report", os.devnull], [os.devnull, "not a regular file"]),
        (["--audit", f"out/a{COMMANDS}.xlsb"], [".xlsb"]),
    ],
)
def test_a_bad_option_is_one_line_that_names_it(
    options: list[str], words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "link.csv").symlink_to("good.csv")
    check_refused(fit("good.csv", *options), words, folder, capsys)


def semicolons() -> str:
    return text(delimiter=";").replace(".", ",")


SOUND_FILES: dict[str, tuple[str, str | bytes]] = {  # others: test_table_reading.py and test_messy_files.py
    "lines inside cells": ("t.csv", with_cell(6, "job", '"two\nlines, and a ""quote"""')),
    "letters of the world": ("t.csv", with_cell(6, "job", "Žižek 東京 🙂")),
    "gzip of another name": ("t.csv", gzip.compress(text().encode())),
    "a name of two lines": ("a\nb.csv", text()),
    "a name with commands": (f"a{COMMANDS}b.csv", text()),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SOUND_FILES)
def test_what_can_be_read_gives_the_formula(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, content = SOUND_FILES[case]
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert run(fit(name, "--terms", "columns")) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == FORMULA
    assert "".join(out.splitlines()).isprintable()
    assert "".join(err.splitlines()).isprintable()
    assert sorted(path.name for path in (folder / "out").iterdir()) == sorted(Path(p).name for p in OUTPUTS.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "options"),
    [
        (text().replace("J7,", "Jé,").encode("latin-1"), ["--encoding", "latin-1"]),
        (text().encode("utf-16-le"), ["--encoding", "utf-16-le"]),
        (text(delimiter=" ").encode(), ["--delimiter", " "]),
        (text(delimiter="\t").encode(), ["--delimiter", r"\t"]),
        (text(delimiter="\t").encode(), ["--delimiter", "tab"]),
        (semicolons().encode(), ["--decimal", ","]),
        (text().encode(), ["--features", "hours, items"]),
        (text().encode(), ["--tolerance", "0"]),
    ],
)
def test_what_a_message_proposes_helps(
    content: bytes, options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "t.csv").write_bytes(content)
    assert run(fit("t.csv", "--terms", "columns", *options)) == 0
    assert capsys.readouterr().out.splitlines()[0] == FORMULA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "formula"),
    [
        ([["x", k, k * k % 7, 0] for k in range(40)], 0, "total = 0"),
        ([["x", k, k * k % 7, 5] for k in range(40)], 0, "total = 5"),
        ([["x", k % 2, 3, 2 * (k % 2) + 4] for k in range(40)], 0, "total = 2 * hours + 4"),
        ([["x", 1, 2, 3], ["x", 2, 5, 4]], 1, None),  # fewer rows than columns determine nothing
    ],
)
def test_a_poor_table_is_judged_and_not_refused(
    body: list[list[object]], status: int, formula: str | None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "t.csv").write_text(text(body))
    assert run(fit("t.csv", "--json")) == status
    said = json.loads(capsys.readouterr().out)
    assert formula in (None, said["formula"])
    assert said["rows_wrong"] == 0
    assert said["certain"] is (status == 0)


@pytest.mark.slow
def test_names_with_commands_reach_no_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = [[f'"{COMMANDS}{"ab"[k % 2]}"', *row[1:]] for k, row in enumerate(rows())]
    (folder / "t.csv").write_text(text(body).replace("hours", f'"ho\n{COMMANDS}urs"'))
    assert run(fit("t.csv", "--group", "job", "--audit", f"out/a{COMMANDS}.csv")) == 1  # half of a job is wrong
    out, err = capsys.readouterr()
    assert "".join(out.splitlines()).isprintable()
    assert "".join(err.splitlines()).isprintable()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The model of the good table."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "good.csv").write_text(text())
    assert run(["fit", str(folder / "good.csv"), "--target", "total", "--save", str(folder / "model.json")]) == 0
    return (folder / "model.json").read_text()


@pytest.fixture
def model(folder: Path, saved: str) -> Path:
    (folder / "model.json").write_text(saved)
    return folder / "model.json"


BROKEN_MODELS: dict[str, tuple[Callable[[str], str | bytes], list[str]]] = {
    "no JSON": (lambda _: "y = 3 x", ["m.json", "not JSON"]),
    "nothing": (lambda _: "", ["m.json", "not JSON"]),
    "cut short": (lambda saved: saved[: len(saved) // 2], ["m.json", "not JSON"]),
    "no text": (lambda _: b"\xff\xfe\xfa\0", ["m.json", "not JSON"]),
    "a table": (lambda _: text(), ["m.json", "not a model"]),
    "a list": (lambda _: "[1, 2]", ["m.json", "not a model"]),
    "other JSON": (lambda _: '{"hours": 3}', ["m.json", "not a model"]),
    "nested without end": (lambda _: "[" * 100_000, ["m.json", "not a model"]),
    "of the future": (lambda saved: saved.replace('"version": 3', '"version": 4'), ["m.json", "version 4"]),
    "without terms": (lambda saved: saved.replace('"terms"', '"words"'), ["m.json", "damaged", "terms"]),
    "a coefficient of text": (lambda saved: saved.replace('"coef": 3.0', '"coef": "3"'), ["m.json", "coef"]),
    "an infinite coefficient": (lambda saved: saved.replace('"coef": 3.0', '"coef": 1e999'), ["m.json", "coef"]),
    "NaN": (lambda saved: saved.replace('"coef": 3.0', '"coef": NaN'), ["m.json", "coef"]),
    "columns mixed up": (lambda saved: saved.replace('"column": "hours"', '"column": "days"', 1), ["m.json", "terms"]),
    "a command": (lambda saved: saved.replace('"kind": "number"', f'"kind": {json.dumps(COMMANDS)}'), ["m.json"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN_MODELS)
def test_a_broken_model_is_one_line(case: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change, words = BROKEN_MODELS[case]
    content = change(model.read_text())
    (model.parent / "m.json").write_bytes(content.encode() if isinstance(content, str) else content)
    arguments = ["predict", "m.json", "good.csv", "--out", "out/predicted.csv"]
    check_refused(arguments, words, model.parent, capsys)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["good.csv", "model.json"], ["good.csv", "not a model"]),
        (["model.json", "model.json"], ["model.json", '"hours"']),
        (["nothing.json", "good.csv"], ["nothing.json"]),
        (["out", "good.csv"], ["out", "directory"]),
        (["model.json", "short.csv"], ["short.csv", '"items"']),
        (["model.json", "words.csv"], ["words.csv", '"hours"', '"a"']),
        (["model.json", "dates.csv"], ["dates.csv", '"hours"']),
        (["model.json", "infinite.csv"], ["infinite.csv", '"hours"', "row 6"]),
        (["model.json", "good.csv", "--id", "invoice"], ['"invoice"']),
        (["model.json", "good.csv", "--out", "good.csv"], ["--out good.csv", "the file that is read"]),
        (["model.json", "good.csv", "--out", "./model.json"], ["--out model.json", "the file that is read"]),
        (["model.json", "good.csv", "--out", "out/predicted.xlsb"], ["predicted.xlsb", ".csv"]),
        (["model.json", "good.csv", "--out", "nowhere/p.csv"], ["nowhere"]),
    ],
)
def test_a_model_for_another_table_is_one_line(
    arguments: list[str], words: list[str], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model.parent
    (folder / "short.csv").write_text("hours,total\n1,2\n3,4\n")
    (folder / "words.csv").write_text(with_column("hours", lambda k: "abc"[k % 3]))
    (folder / "dates.csv").write_text(with_column("hours", lambda k: f"2026-01-{k % 28 + 1:02d}"))
    (folder / "infinite.csv").write_text(with_cell(6, "hours", "inf"))
    out = [] if "--out" in arguments else ["--out", "out/predicted.csv"]
    check_refused(["predict", *arguments, *out], words, folder, capsys)


@pytest.mark.slow
def test_predict_judges_the_rows_as_fit_did(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    hours, items = rng.integers(1, 99, 80) / 4, rng.integers(1, 99, 80)
    total = [
        round(5.45 * h + 1.1 * i + 0.3 + 9.37 * (k % 3 == 0), 3)
        for k, (h, i) in enumerate(zip(hours, items, strict=True))
    ]
    body = [[f"J{k}", *row] for k, row in enumerate(zip(hours, items, total, strict=True))]
    (folder / "t.csv").write_text(text(body).replace("job", "implied"))  # a name that predict uses itself
    assert run(["fit", "t.csv", "--target", "total", "--id", "implied", "--audit", "a.csv", "--save", "m.json"]) == 0
    capsys.readouterr()
    assert run(["predict", "m.json", "t.csv", "--id", "implied"]) == 0
    predicted = {row["implied"]: row for row in csv.DictReader(capsys.readouterr().out.splitlines())}
    with Path("a.csv").open(newline="") as file:
        audit = {row["implied"]: row for row in csv.DictReader(file)}
    assert len(audit) == len(body)
    columns = ("given", "implied_", "residual", "wrong")
    assert {job: [row[c] for c in columns] for job, row in predicted.items()} == {
        job: [row[c] for c in columns] for job, row in audit.items()
    }
    assert sum(row["wrong"] == "true" for row in audit.values()) == len(total[::3])
    assert {row["residual"] for row in audit.values() if row["wrong"] == "true"} <= {"9.369", "9.37", "9.371"}


FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-1+2", "@SUM(A1)", "\tx", '=HYPERLINK("http://x")')


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
def test_no_text_is_a_formula_in_a_spreadsheet(suffix: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Path("t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["=id", "@group", "hours", "items", "total"])
        for k, (_, hours, items, total) in enumerate(rows()):
            formula = FORMULAS[k % len(FORMULAS)]
            writer.writerow([f"{formula}{k}", formula, hours, items, 2 - total])
    shown = ["--id", "=id", "--group", "@group"]
    outputs = ["--audit", f"a.{suffix}", "--save", "m.json", "--report", "r.html"]
    assert run(["fit", "t.csv", "--target", "total", "--exclude", "@group", *shown, *outputs]) == 0
    capsys.readouterr()
    assert run(["predict", "m.json", "t.csv", "--id", "=id", "--out", f"p.{suffix}"]) == 0
    assert run(["predict", "m.json", "t.csv", "--id", "=id"]) == 0
    printed = capsys.readouterr().out
    for content in (written(f"a.{suffix}"), written(f"p.{suffix}"), printed):
        header, *cells = csv.reader(
            io.StringIO(content, newline=""), delimiter="\t" if content.count("\t") > 200 else ","
        )
        ids = header.index("'=id")
        assert len(cells) == N_ROWS
        assert all(row[ids].startswith(tuple(f"'{formula}" for formula in FORMULAS)) for row in cells)
        assert "'@group" in header or content != written(f"a.{suffix}")
        numbers = [row[header.index(name)] for row in cells for name in ("given", "implied", "residual")]
        assert any(number.startswith("-") for number in numbers)
        assert all(np.isfinite(float(number)) for number in numbers)


def written(name: str) -> str:
    content = Path(name).read_bytes()
    return (gzip.decompress(content) if name.endswith(".gz") else content).decode()


@pytest.mark.slow
def test_letters_that_the_output_cannot_show_are_escaped(folder: Path) -> None:
    (folder / "t.csv").write_text(text().replace("hours", "東京"), encoding="utf-8")
    command = [sys.executable, "-m", "massart", "fit", "t.csv", "--target", "total"]
    environment = os.environ | {"PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(command, env=environment, capture_output=True, cwd=folder, check=True)
    assert done.stdout.decode("ascii").startswith(r"total = 3 * \u6771\u4eac + 2 * items + 1")


def test_too_little_memory_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhaust(*args: object, **kwargs: object) -> None:
        raise MemoryError

    monkeypatch.setattr("massart.cli.fit.audit_table", exhaust)
    check_refused(fit("good.csv"), ["memory"], folder, capsys)


def test_columns_are_aligned_whatever_the_letters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = ["単価の合計金額", "e\u0301tude", *(f"a name as long as this one, of column {j}" for j in range(5))]
    rng = np.random.default_rng(0)
    X = rng.integers(0, 99, (400, len(long)))
    y = X @ np.arange(1, 1 + len(long)) + np.where(np.arange(400) % 50 == 0, 7, 0)
    with Path("t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[*long, "total"], *([*x, label] for x, label in zip(X, y, strict=True))])
    assert run(["fit", "t.csv", "--target", "total"]) == 0
    lines = capsys.readouterr().out.splitlines()
    formula = lines[: lines.index("")]
    assert all(line.startswith(("total = 単価", "    +")) for line in formula)  # whole terms, sign first
    assert all(line.count("`") % 2 == 0 for line in formula)
    start = next(k for k, line in enumerate(lines) if line.split()[:1] == ["term"])
    table = lines[start : start + 2 + len(long)]
    assert len({cell_len(line) for line in table}) == 1
    assert all(f"column {j} " in line for j, line in enumerate(table[-6:-1]))  # long names differ at their ends


@pytest.mark.slow
@pytest.mark.parametrize(("n_wrong", "words"), [(0, "0 do not"), (1, "1 does not"), (2, "2 do not")])
def test_wrong_rows_are_counted_in_english(
    n_wrong: int, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = [["x", k, k * k % 7, 3 * k + 2 * (k * k % 7) + (k < n_wrong)] for k in range(40)]
    (folder / "t.csv").write_text(text(body))
    assert run(["fit", "t.csv", "--target", "total"]) == 0
    out = capsys.readouterr().out
    assert words in out
    assert ("The wrong row:" in out) == (n_wrong == 1)


@pytest.mark.slow
def test_values_from_an_uncertain_formula_come_with_a_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = [["ab"[k % 2], *row[1:]] for k, row in enumerate(rows())]  # every wrong row is of job a
    (folder / "t.csv").write_text(text(body))
    assert run(fit("t.csv")) == 1
    assert "The rule is PLURALITY, not certain: no fixed table is written without --force." in capsys.readouterr().err
    assert run([*fit("t.csv"), "--force"]) == 1
    assert "The formula is not certain (PLURALITY)" in capsys.readouterr().err
    assert run(fit("good.csv")) == 0
    assert "not certain" not in capsys.readouterr().err


def test_numbers_near_the_end_of_floats_are_named_with_a_way_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [(i % 17 + 1, i * i % 23 + 1, i % 5) for i in range(60)]
    lines = [f"{a},{b},{c},{2 * a + 3 * b}" for a, b, c in rows]
    lines[7] = f"{rows[7][0]},{rows[7][1]},{rows[7][2]},1.7e308"
    table, model, other = tmp_path / "t.csv", tmp_path / "m.json", tmp_path / "other.csv"
    table.write_text("\n".join(["a,b,c,y", *lines]))
    assert run(["fit", str(table), "--target", "y"]) == 2
    assert 't.csv: column "y" holds 1.7e+308 in row 8' in capfd.readouterr().err
    assert run(["scan", str(table)]) == 0
    assert 'Left out "y"' in capfd.readouterr().err
    assert run(["fit", str(table), "--target", "y", "--na", "1.7e+308", "--save", str(model)]) == 0
    assert "y = 2 * a + 3 * b" in capfd.readouterr().out
    # Without labels there is nothing to compare with; an infinite value is no prediction.
    other.write_text("a,b,c\n1,2,3\n1.7e308,1.7e308,3\n")
    assert run(["predict", str(model), str(other)]) == 2
    found = capfd.readouterr()
    assert "not finite" in found.err
    assert not found.out
