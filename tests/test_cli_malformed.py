"""Broken input, one kind a case: one line that names the fault and nothing written, or the right formula after all."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import pickle
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")
pytest.importorskip("jinja2", reason="jinja2 is not installed: the report is laid out with it")

import pyarrow as pa
from pyarrow import ipc
from pyarrow import parquet as parquet_files

from massart.cli import run
from massart.cli.text import width_of

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


def objects() -> list[dict[str, Any]]:
    return [dict(zip(HEADER, row, strict=True)) for row in rows()]


def json_lines(content: Iterable[object]) -> str:
    return "".join(json.dumps(line) + "\n" for line in content)


def arrow() -> pa.Table:
    return pa.Table.from_pylist(objects())


def parquet(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    parquet_files.write_table(table, stream)
    return stream.getvalue()


def feather(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    with ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def workbook() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        book.writestr("xl/workbook.xml", "<workbook/>")
    return stream.getvalue()


def wide(n_columns: int, n_rows: int, cell: str) -> str:
    names = ["total", *(f"c{j}" for j in range(n_columns))]
    return ",".join(names) + "\n" + (",".join([cell] * (n_columns + 1)) + "\n") * n_rows


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, "zstd", asbytes=True))


GZIP = gzip.compress(text().encode(), mtime=0)
ZSTD = zstd(text().encode())
PARQUET = parquet(arrow())
FEATHER = feather(arrow())

# name of the file, its content, words that the message has to contain
BROKEN_FILES: dict[str, tuple[str, str | bytes, list[str]]] = {
    "a field too many": ("t.csv", text().replace("\nJ7,", "\nJ7,9,"), ["t.csv", "line 9", "5 fields"]),
    "a field too few": ("t.csv", text() + "J99,3\n", ["t.csv", "line 62", "2 fields"]),
    "carets between fields": ("t.csv", text(delimiter="^"), ["t.csv", "only one column", "delimiter"]),
    "no header": ("t.csv", text().split("\n", 1)[1], ["t.csv", '"total"']),
    "NUL byte": ("t.csv", text().replace("J7,", "J\0,"), ["t.csv", "line 9", "NUL"]),
    "UTF-16 without its mark": ("t.csv", text().encode("utf-16-le"), ["t.csv", "--encoding utf-16-le"]),
    "half a UTF-16 letter": ("t.csv", text().encode("utf-16")[:-1], ["t.csv", "utf-16"]),
    "nothing": ("t.csv", "", ["t.csv", "empty"]),
    "only a byte order mark": ("t.csv", b"\xef\xbb\xbf", ["t.csv"]),
    "blanks only": ("t.csv", " \n\t\n  \n", ["t.csv", "blank"]),
    "header only": ("t.csv", ",".join(HEADER) + "\n", ["t.csv", "no rows"]),
    "header only, no line end": ("t.csv", ",".join(HEADER), ["t.csv", "no rows"]),
    "one row": ("t.csv", text(rows()[:1]), ["t.csv", '"total"']),
    "two columns of one name": ("t.csv", text().replace("items", "hours"), ["t.csv", "columns 2 and 3", '"hours"']),
    "names that differ by blanks": ("t.csv", text().replace("items", " hours "), ["t.csv", "2 and 3", '"hours"']),
    "one column": ("t.csv", "total\n" + "1\n2\n3\n" * 9, ["t.csv", '"total"', "no other column"]),
    "no such target": ("t.csv", text().replace("total", "sum"), ["t.csv", '"total"', '"sum"']),
    "target is text": ("t.csv", with_column("total", lambda k: "abc"[k % 3]), ["t.csv", '"total"', "text"]),
    "target is moments": (
        "t.csv",
        with_column("total", lambda k: f"2026-01-{k % 28 + 1:02d} 10:30"),
        ['"total"', "dates or times"],
    ),
    "target is missing": ("t.csv", with_column("total", lambda _: "NA"), ["t.csv", '"total"', "empty"]),
    "target is blank": ("t.csv", with_column("total", lambda _: ""), ["t.csv", '"total"', "empty"]),
    "text in the target": ("t.csv", with_cell(6, "total", "oops"), ["t.csv", '"total"', "row 6", "oops"]),
    "infinity": ("t.csv", with_cell(6, "hours", "inf"), ["t.csv", '"hours"', "row 6", "inf"]),
    "minus infinity in the target": ("t.csv", with_cell(6, "total", "-inf"), ["t.csv", '"total"', "row 6", "-inf"]),
    "a number too large": ("t.csv", with_cell(6, "hours", "1e400"), ["t.csv", '"hours"', "row 6", "1e400"]),
    "a target too large": ("t.csv", with_cell(6, "total", "-1e400"), ["t.csv", '"total"', "row 6", "-1e400"]),
    "an integer above 2**53": ("t.csv", with_cell(6, "items", 2**53 + 1), ["t.csv", '"items"', "row 6", "2**53"]),
    "an integer above 2**64": ("t.csv", with_cell(6, "items", 2**70), ["t.csv", '"items"', "row 6", "2**53"]),
    "large integers among floats": ("t.csv", with_cell(6, "hours", 2**53 + 1), ["t.csv", '"hours"', "row 6"]),
    "a quote never closed": ("t.csv", with_cell(6, "job", '"J5'), ["t.csv", "line 7", "quotation mark"]),
    "a quote never closed, last line": ("t.csv", text() + '"J60,1,2,6\n', ["t.csv", "line 62", "quotation mark"]),
    "a quote never closed, header": ("t.csv", text().replace("job", '"job'), ["t.csv", "quotation mark"]),
    "all columns constant": ("t.csv", text([["J", 1, 2, k] for k in range(30)]), ["t.csv", '"total"', '"hours"']),
    "one row many times": ("t.csv", text([["J", 1, 2, 8]] * 40), ["t.csv", '"total"', '"hours"']),
    "no row is complete": (
        "t.csv",
        text(
            [
                [job, "" if k % 2 else hours, items if k % 2 else "", y]
                for k, (job, hours, items, y) in enumerate(rows())
            ]
        ),
        ["t.csv", "no row is left", '"hours"', '"items"'],
    ),
    "a name of six megabytes": ("t.csv", text().replace("job", "j" * 6_000_000), ["t.csv", "line 1"]),
    "20,000 constant columns": ("t.csv", wide(20_000, 3, "1"), ["t.csv", '"total"']),
    "Excel workbook": ("t.xlsx", workbook(), ["t.xlsx", "workbook", "damaged"]),
    "Excel workbook named CSV": ("t.csv", workbook(), ["t.csv", "workbook", "damaged"]),
    "old Excel": ("t.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), ["t.xls", "workbook", "damaged"]),
    "PDF": ("t.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", ["t.pdf", "PDF"]),
    "picture": ("t.csv", b"\x89PNG\r\n\x1a\n" + bytes(64), ["t.csv", "NUL"]),
    "web page": ("t.csv", "<!DOCTYPE html><html><body>Please sign in</body></html>", ["t.csv", "web page"]),
    "pickle": ("t.pkl", pickle.dumps(objects()), ["t.pkl", "not a text file"]),
    "Parquet cut short": ("t.parquet", PARQUET[: len(PARQUET) // 2], ["t.parquet", "cut short"]),
    "Parquet, first bytes": ("t.parquet", PARQUET[:6], ["t.parquet", "cut short"]),
    "Parquet damaged": ("t.parquet", PARQUET[:200] + bytes(100) + PARQUET[300:], ["t.parquet", "damaged"]),
    "Parquet of no rows": ("t.parquet", parquet(arrow().slice(0, 0)), ["t.parquet", "no rows"]),
    "Parquet of no columns": ("t.parquet", parquet(pa.table({})), ["t.parquet", "no columns"]),
    "CSV named Parquet": ("t.parquet", text(), ["t.parquet", "not a Parquet", ".csv"]),
    "Arrow cut short": ("t.arrow", FEATHER[: len(FEATHER) // 2], ["t.arrow", "cut short"]),
    "Arrow of no rows": ("t.arrow", feather(arrow().slice(0, 0)), ["t.arrow", "no rows"]),
    "gzip cut short": ("t.csv.gz", GZIP[: len(GZIP) // 2], ["t.csv.gz", "cut short"]),
    "gzip without its sum": ("t.csv.gz", GZIP[:-5], ["t.csv.gz", "cut short"]),
    "gzip, first bytes": ("t.csv.gz", GZIP[:3], ["t.csv.gz", "cut short"]),
    "gzip damaged": ("t.csv.gz", GZIP[:60] + bytes(40) + GZIP[100:], ["t.csv.gz", "damaged"]),
    "gzip of another sum": ("t.csv.gz", GZIP[:-8] + bytes(4) + GZIP[-4:], ["t.csv.gz", "damaged"]),
    "gzip of nothing": ("t.csv.gz", gzip.compress(b""), ["t.csv.gz", "empty"]),
    "gzip twice": ("t.csv.gz", gzip.compress(GZIP), ["t.csv.gz", "twice"]),
    "zstd cut short": ("t.csv.zst", ZSTD[: len(ZSTD) // 2], ["t.csv.zst", "cut short"]),
    "zstd damaged": ("t.csv.zst", ZSTD[:40] + bytes(30) + ZSTD[70:], ["t.csv.zst", "damaged"]),
    "JSON of columns": ("t.json", json.dumps({"hours": [1, 2], "total": [2, 4]}), ["t.json", "lists"]),
    "JSON of numbers": ("t.json", "3\n4\n", ["t.json", "line 1", "object"]),
    "JSON without end": ("t.json", "[" * 100_000, ["t.json", "nested"]),
    "a broken line of JSON": ("t.jsonl", json_lines(objects()[:5]) + '{"hours": 3,\n', ["t.jsonl", "line 6"]),
    "JSON cut short": ("t.jsonl", json_lines(objects())[:-9], ["t.jsonl", "line 60"]),
    "no column in common": ("t.jsonl", json_lines([{"a": 1}, {"b": 2}, {"total": 3}]), ["t.jsonl", '"total"']),
    "nested JSON": ("t.jsonl", json_lines({"x": {"y": k}, "total": k} for k in range(9)), ["t.jsonl", '"x"']),
    "JSON with a name twice": ("t.jsonl", '{"hours": 1, "hours": 2, "total": 1}\n', ["t.jsonl", "line 1", '"hours"']),
    "JSON with infinity": ("t.jsonl", json_lines([{"hours": 1e999, "total": 1}, *objects()]), ['"hours"', "row 1"]),
    "text in JSON numbers": ("t.jsonl", json_lines([*objects(), objects()[0] | {"total": "oops"}]), ["row 61", "oops"]),
    "a name of two lines": ("a\nb.csv", "total\n", ["a", "b.csv"]),
    "a name with quotes": ("a'\"b.csv", "total\n", ["a'\"b.csv"]),
    "a name with commands": (f"a{COMMANDS}b.csv", "total\n", ["b.csv"]),
    "a column with commands": (
        "t.csv",
        with_cell(6, "total", f'"oops{COMMANDS}"'),
        ["t.csv", "row 6", "oops"],
    ),
    "a model": ("t.json", json.dumps({"format": "massart model", "version": 1}, indent=1), ["t.json"]),
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


SLOW = "20,000 constant columns"


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.slow] * (c == SLOW)) for c in BROKEN_FILES])
def test_a_broken_file_is_one_line_that_names_the_fault(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, content, words = BROKEN_FILES[case]
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    check_refused(fit(name), words, folder, capsys)


def no_file(folder: Path) -> str:
    return "t.csv"


def a_folder(folder: Path) -> str:
    (folder / "t.csv").mkdir()
    return "t.csv"


def a_pipe(folder: Path) -> str:
    os.mkfifo(folder / "t.csv")
    return "t.csv"


def a_device(folder: Path) -> str:
    return os.devnull


def a_link_to_nowhere(folder: Path) -> str:
    (folder / "t.csv").symlink_to("nowhere.csv")
    return "t.csv"


def a_link_to_itself(folder: Path) -> str:
    (folder / "t.csv").symlink_to("t.csv")
    return "t.csv"


def a_name_too_long(folder: Path) -> str:
    return "t" * 300 + ".csv"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (no_file, ["t.csv", "no such file"]),
        (a_folder, ["t.csv", "folder"]),
        (a_pipe, ["t.csv", "not a regular file"]),
        (a_device, ["null", "not a regular file"]),
        (a_link_to_nowhere, ["t.csv", "nowhere.csv"]),
        (a_link_to_itself, ["t.csv"]),
        (a_name_too_long, ["ttt", "too long"]),
    ],
)
def test_what_is_no_file_is_one_line(
    make: Callable[[Path], str], words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_refused(fit(make(folder)), words, folder, capsys)


def test_no_permission_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    openly = Path.open

    def refuse(path: Path, *args: Any, **kwargs: Any) -> Any:
        if path.name != "good.csv":  # modules may be imported meanwhile
            return openly(path, *args, **kwargs)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as patched:  # root may read everything, so the system cannot be asked to refuse
        patched.setattr(Path, "open", refuse)
        before = capsys.readouterr()
        assert run(fit("good.csv")) == 2
    assert before == ("", "")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "massart: good.csv: no permission to read the file\n")
    assert list((folder / "out").iterdir()) == []


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
        (["--tolerance", "0,5"], ["--tolerance", "0,5"]),
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


SOUND_FILES: dict[str, tuple[str, str | bytes]] = {
    "byte order mark": ("t.csv", b"\xef\xbb\xbf" + text().encode()),
    "UTF-16": ("t.csv", text().encode("utf-16")),
    "UTF-16, the other way round": ("t.csv", b"\xfe\xff" + text().encode("utf-16-be")),
    "CRLF": ("t.csv", text(end="\r\n")),
    "CR": ("t.csv", text(end="\r")),
    "blank lines": ("t.csv", text() + "\n\n\n"),
    "no line end at the end": ("t.csv", text().rstrip("\n")),
    "lines inside cells": ("t.csv", with_cell(6, "job", '"two\nlines, and a ""quote"""')),
    "semicolons and decimal commas": ("t.csv", semicolons()),
    "tabs": ("t.tsv", text(delimiter="\t")),
    "tabs named CSV": ("t.csv", text(delimiter="\t")),
    "bars": ("t.txt", text(delimiter="|")),
    "blanks around everything": ("t.csv", text(delimiter=" , ")),
    "all cells quoted": ("t.csv", "".join(f'"{line}"\n'.replace(",", '","') for line in text().splitlines())),
    "Excel's first line": ("t.csv", "sep=;\n" + semicolons()),
    "letters of the world": ("t.csv", with_cell(6, "job", "Žižek 東京 🙂")),
    "gzip": ("t.csv.gz", GZIP),
    "gzip of another name": ("t.csv", GZIP),
    "gzip in parts": ("t.csv.gz", gzip.compress(text()[:300].encode()) + gzip.compress(text()[300:].encode())),
    "zstd of another name": ("t.csv.gz", ZSTD),
    "not compressed after all": ("t.csv.gz", text()),
    "Parquet": ("t.parquet", PARQUET),
    "Parquet named CSV": ("t.csv", PARQUET),
    "Arrow": ("t.arrow", FEATHER),
    "JSON lines": ("t.jsonl", json_lines(objects())),
    "JSON lines named CSV": ("t.csv", json_lines(objects())),
    "a JSON array": ("t.json", json.dumps(objects(), indent=1)),
    "JSON lines with other keys": ("t.jsonl", json_lines([*objects(), {"hours": 3, "remark": "void"}])),
    "missing values, spelled oddly": (
        "t.csv",
        text([*rows(), ["x", "#N/A", 3, 1], ["x", 3, "-", 2], ["x", 3, 4, "#DIV/0!"], ["x", "", "", ""]]),
    ),
    "minus signs of a typesetter": ("t.csv", with_cell(6, "total", "\u22123")),
    "negative zeros": ("t.csv", text([*rows(), ["x", "-0.0", "-0", "1"], ["y", "-0", "0", "1.0"]])),
    "the index of pandas": (
        "t.csv",
        "".join(f"{'' if k == 0 else k - 1},{line}\n" for k, line in enumerate(text().splitlines())),
    ),
    "a name of two lines": ("a\nb.csv", text()),
    "a name with commands": (f"a{COMMANDS}b.csv", text()),
    "a name with quotes": ("a' \"b.csv", text()),
}


@pytest.mark.full(every=2)
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

    monkeypatch.setattr("massart.audit.audit_table", exhaust)
    check_refused(fit("good.csv"), ["memory"], folder, capsys)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "nowhere"], ["nowhere", "no folder"]),
        (["--out", "good.csv"], ["good.csv"]),
        (["--rows", "49"], ["--rows"]),
        (["--seed", "-1"], ["--seed"]),
    ],
)
def test_a_demo_that_cannot_be_is_one_line(
    options: list[str], words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_refused(["demo", *options], words, folder, capsys)


@pytest.mark.full
@pytest.mark.slow
def test_the_command_that_demo_shows_can_be_typed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "my folder").mkdir()
    status = run(["demo", "--out", "my folder", "--rows", "150"])
    out, err = capsys.readouterr()
    shown = next(line for line in err.splitlines() if line.startswith("$ massart "))
    assert run(shlex.split(shown)[2:]) == status < 2
    again = capsys.readouterr().out
    assert out.startswith(again.rstrip("\n"))


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
    assert len({width_of(line) for line in table}) == 1
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
