"""Every way in which a file can be wrong gives one line that says so, or the right answer, and never a traceback."""

import gzip
import io
import json
import os
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

from massart.tables import (
    Table,
    TableError,
    check_output,
    encode,
    make_plan,
    read_table,
    table_of,
    write_columns,
    write_table,
)

GOOD = "hours,items,total\n" + "".join(f"{h},{i},{3 * h + 5 * i}\n" for h in range(1, 9) for i in range(4))


def audit(path, **options):
    """Do what every command does with a file."""
    table = read_table(path, **options)
    return encode(table, make_plan(table, "total").encoding)


def text(content, name="file.csv", encoding="utf-8"):
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
        return path

    return make


def with_line(number, line):
    """Return the good table with one line replaced (the header is line 1)."""
    lines = GOOD.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


def packed(name, damage):
    def make(folder: Path) -> Path:
        rng = np.random.default_rng(0)
        path = folder / name
        write_columns(path, {"hours": rng.normal(size=5000), "total": rng.normal(size=5000)})
        path.write_bytes(damage(path.read_bytes()))
        return path

    return make


def cut(content):
    return content[: len(content) // 2]


def spoiled(content):
    middle = len(content) // 2
    return content[:middle] + b"\x55" * 64 + content[middle + 64 :]


def archive(name, inside):
    def make(folder: Path) -> Path:
        path = folder / name
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(inside, GOOD)
        return path

    return make


def folder_named_csv(folder):
    path = folder / "file.csv"
    path.mkdir()
    return path


def pipe(folder):
    path = folder / "file.csv"
    os.mkfifo(path)
    return path


def misspelt(folder):
    text(GOOD, "ledger.csv")(folder)
    return folder / "leger.csv"


def broken_link(folder):
    path = folder / "file.csv"
    path.symlink_to("nowhere.csv")
    return path


def link_to_itself(folder):
    path = folder / "file.csv"
    path.symlink_to("file.csv")
    return path


def nested(folder):
    path = folder / "file.jsonl"
    path.write_text("".join(json.dumps({"total": {"net": n}, "hours": n}) + "\n" for n in range(20)))
    return path


def arrow(name, columns):
    def make(folder):
        write_table(folder / name, Table(pa.table(columns), name))
        return folder / name

    return make


def total_of(cell):
    return text("hours,total\n" + "".join(f"{k},{cell.format(k % 28 + 1)}\n" for k in range(30)))


def numbers_then(cell, n=20):
    return "hours,total\n" + "".join(f"{h},{2 * h}\n" for h in range(1, n)) + f"{cell},8\n"


MALFORMED = {
    "empty": (text(""), ["empty"]),
    "blank": (text("\n\n  \n"), ["blank"]),
    "header only": (text("hours,total\n"), ["no rows"]),
    "one column, other delimiter": (text("hours total\n1 2\n"), ["one column", "delimiter"]),
    "one column, strange delimiter": (text("hours^total\n1^2\n3^4\n"), ["one column", "delimiter", '"hours^total"']),
    "one column, no header": (text("a ledger\n1,2\n3,4\n"), ['no column "total"', '"a ledger", "column 2"']),
    "target alone": (text("total\n1\n2\n"), ["no column is left"]),
    "row too short": (text(with_line(5, "1,2")), ["line 5", "2 fields", "header has 3"]),
    "row too long": (text(with_line(7, "1,2,3,4,5")), ["line 7", "5 fields", "header has 3"]),
    "row too short after a quoted newline": (
        text('hours,note,total\n1,"two\nlines",3\n4,5\n'),
        ["line 4", "2 fields", "header has 3"],
    ),
    "quotes inside a cell": (text('hours,total\n1,2\n"a"b",3,4\n'), ["header has 2"]),
    "quote never closed": (text(with_line(6, '1,"2,3')), ["quotation mark", "line 6", "never closed"]),
    "quote never closed, last cell": (text(with_line(9, '1,2,"3')), ["quotation mark", "line 9", "never closed"]),
    "quote never closed, large": (
        text("hours,total\n" + '1,"2\n' + "1,2\n" * 500_000),
        ["quotation mark", "never closed"],
    ),
    "quote never closed, header": (text(GOOD.replace("hours", '"hours')), ["quotation mark", "header", "never closed"]),
    "quote never closed, long header": (text('"' + "x" * 200_000 + ",total\n1,2\n"), ["longer than"]),
    "header only, no line end": (text("hours,total"), ["no rows"]),
    "names twice": (text("hours,total,hours\n1,2,3\n"), ["columns 1 and 3", '"hours"']),
    "names twice but for blanks": (text("hours,total, hours\n1,2,3\n"), ["columns 1 and 3", '"hours"']),
    "nul bytes": (text(with_line(4, "1,\0,3")), ["line 4", "NUL", "encoding"]),
    "utf-16 without mark": (text(GOOD, encoding="utf-16-le"), ["line 1", "NUL", "utf-16"]),
    "latin-1 far below": (
        text(b"hours,total\n" + b"1,2\n" * 400_000 + b"\xff,2\n"),
        ["line 400,002", "UTF-8", "latin-1"],
    ),
    "utf-16 cut short": (text(GOOD.encode("utf-16")[:-1]), ["utf-16"]),
    "no such column": (text(GOOD.replace("total", "totals")), ['no column "total"', 'did you mean "totals"']),
    "text in the target": (text(GOOD.replace(",8\n", ",eight\n")), ["text among", '"total"', "row 2", '"eight"']),
    "target of moments": (total_of("2026-01-{:02d} 10:30"), ['"total"', "dates or times"]),
    "target missing": (total_of("NA"), ['"total"', "empty"]),
    "target blank": (total_of(""), ['"total"', "empty"]),
    "text target": (text("hours,total\n" + "1,low\n2,high\n" * 9), ["target", '"total"', "text"]),
    "infinity": (text(numbers_then("inf")), ['"hours"', "row 20", '"inf"', "too large"]),
    "minus infinity in the target": (text(with_line(6, "1,2,-inf")), ['"total"', "row 5", "-inf"]),
    "all columns constant": (text("hours,items,total\n" + "1,2,3\n" * 9), ['"total"', '"hours"']),
    "1e400": (text(numbers_then("1e400")), ['"hours"', "row 20", '"1e400"', "too large"]),
    "integer beyond 2**53": (
        text(numbers_then("9007199254740993")),
        ['"hours"', "row 20", "9007199254740993", "2**53"],
    ),
    "integer beyond 2**64": (
        text(numbers_then("99999999999999999999")),
        ['"hours"', "row 20", "99999999999999999999", "2**53"],
    ),
    "integer beyond 2**53 among floats": (
        text(numbers_then("9007199254740993").replace("1,2\n", "1.5,2\n", 1)),
        ['"hours"', "row 20", "9007199254740993", "2**53"],
    ),
    "all rows have gaps": (
        text("hours,items,total\n1,,3\n2,,\n,5,4\n,6,5\n3,7,\n4,8,\n"),
        ["no row is left", "6 rows"],
    ),
    "absurdly long header": (text("x" * (1 << 22) + ",total\n1,2\n"), ["longer than"]),
    "line end in the name": (text("", "a\nb.csv"), ["empty"]),
    "folder": (folder_named_csv, ["folder"]),
    "pipe": (pipe, ["not a regular file", '"-"']),
    "device": (lambda folder: Path("/dev/null"), ["not a regular file"]),
    "no such file": (misspelt, ["no such file", 'did you mean "ledger.csv"']),
    "link to nowhere": (broken_link, ["link", '"nowhere.csv"']),
    "no such folder": (lambda folder: folder / "away" / "file.csv", ["no such file", "no folder"]),
    "link to itself": (link_to_itself, ["file.csv"]),
    "name too long": (lambda folder: folder / ("t" * 300 + ".csv"), ["ttt", "too long"]),
    "odd path": (lambda folder: folder / "a\0b.csv", ["such a name"]),
    "Excel workbook": (archive("file.xlsx", "xl/workbook.xml"), ["workbook", "damaged"]),
    "Excel workbook named csv": (archive("file.csv", "xl/workbook.xml"), ["workbook", "damaged"]),
    "old Excel file": (text(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "file.xls"), ["workbook", "damaged"]),
    "ZIP archive": (archive("file.zip", "ledger.csv"), ["ZIP", "unpack"]),
    "web page": (text("<!DOCTYPE html>\n<html><body>Sign in</body></html>"), ["HTML", "CSV"]),
    "PDF": (text(b"%PDF-1.7\n" + bytes(100)), ["PDF", "CSV"]),
    "pickle": (text(pickle.dumps({"total": [1, 2]}), "file.pkl"), ["NUL", "CSV"]),
    "picture": (text(b"\x89PNG\r\n\x1a\n" + bytes(50)), ["NUL"]),
    "SQLite": (text(b"SQLite format 3\0" + bytes(50), "file.db"), ["NUL", "CSV"]),
    "binary named csv": (text(bytes(range(256)) * 8), ["NUL"]),
    "text named parquet": (text(GOOD, "file.parquet"), ["not a Parquet file", ".csv"]),
    "text named arrow": (text(GOOD, "file.arrow"), ["not an Arrow file", ".csv"]),
    "Parquet cut short": (packed("file.parquet", cut), ["Parquet", "cut short"]),
    "Parquet damaged": (packed("file.parquet", lambda b: b[:-60] + b"\x55" * 40 + b[-20:]), ["Parquet", "damaged"]),
    "Parquet of four bytes": (text(b"PAR1", "file.parquet"), ["Parquet"]),
    "Parquet of no rows": (arrow("file.parquet", {"total": pa.array([], pa.int64())}), ["no rows"]),
    "Parquet of no columns": (arrow("file.parquet", {}), ["no columns"]),
    "Arrow of no rows": (arrow("file.arrow", {"total": pa.array([], pa.int64())}), ["no rows"]),
    "Arrow cut short": (packed("file.arrow", cut), ["Arrow", "cut short"]),
    "Arrow without content": (text(b"ARROW1\0\0" + b"x" * 100, "file.feather"), ["Arrow", "damaged"]),
    "gzip cut short": (packed("file.csv.gz", cut), ["gzip", "cut short"]),
    "gzip without its sum": (packed("file.csv.gz", lambda b: b[:-5]), ["gzip", "cut short"]),
    "gzip of another sum": (packed("file.csv.gz", lambda b: b[:-8] + bytes(4) + b[-4:]), ["gzip", "damaged"]),
    "gzip damaged": (packed("file.csv.gz", spoiled), ["gzip", "damaged"]),
    "gzip with a tail": (packed("file.csv.gz", lambda b: b + b"tail"), ["gzip", "damaged"]),
    "gzip of nothing": (text(gzip.compress(b""), "file.csv.gz"), ["empty"]),
    "gzip twice": (text(gzip.compress(gzip.compress(GOOD.encode())), "file.csv.gz"), ["compressed twice"]),
    "zstd cut short": (packed("file.csv.zst", cut), ["zstd", "cut short"]),
    "zstd damaged": (packed("file.csv.zst", spoiled), ["zstd", "damaged"]),
    "JSON cut short": (packed("file.jsonl", lambda b: b[:-5]), ["line 5,000", "JSON"]),
    "JSON line broken": (text('{"total": 1, "hours": 2}\n{"total": 1, hours: 2}\n', "file.jsonl"), ["line 2", "JSON"]),
    "JSON of columns": (text(json.dumps({"hours": [1, 2], "total": [2, 4]}), "f.json"), ["lists"]),
    "JSON without a column in common": (text('{"a": 1}\n{"b": 2}\n{"total": 3}\n', "f.jsonl"), ['"total"']),
    "text among JSON numbers": (
        text("".join(f'{{"hours": 1, "total": {k}}}\n' for k in range(20)) + '{"total": "oops"}\n', "f.jsonl"),
        ["row 21", "oops"],
    ),
    "JSON number": (text('{"total": 1, "hours": 2}\n7\n', "file.jsonl"), ["line 2", "object"]),
    "JSON array of numbers": (text("[1, 2, 3]", "file.json"), ["item 1", "object"]),
    "JSON array cut short": (text('[{"total": 1},', "file.json"), ["array", "JSON"]),
    "JSON pretty-printed": (text(json.dumps({"total": 1}, indent=1) + ",", "file.json"), ["line 1", "JSON"]),
    "JSON key twice": (text('{"total": 1, "total": 2}\n', "file.jsonl"), ["line 1", "two values", '"total"']),
    "JSON target nested": (nested, ['"total"', "structures"]),
    "JSON no UTF-8": (text('{"total": "é"}\n', "file.jsonl", "latin-1"), ["line 1", "UTF-8"]),
    "JSON nested deeply": (text('{"total": ' + "[" * 100_000 + "\n", "file.jsonl"), ["line 1"]),
    **{
        f"JSON {cell}": (
            text(f'{{"hours": 1.5, "total": 1}}\n{{"hours": 2, "total": 2}}\n{{"hours": {cell}, "total": 3}}\n', name),
            ['"hours"', "row 3", f'"{cell}"', "too large"],
        )
        for cell, name in (("1e400", "f.jsonl"), ("-1E+400", "f.json"), ("Infinity", "f.jsonl"))
    },
    "JSON integer beyond 2**53": (
        text(
            "".join(f'{{"hours": {n}.5, "total": 1}}\n' for n in range(3)) + '{"hours": 9007199254740993, "total": 2}',
            "f.jsonl",
        ),
        ["row 4", "9007199254740993", "2**53"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_file_gives_one_clear_line(tmp_path, kind, capsys):
    make, words = MALFORMED[kind]
    path = make(tmp_path)
    with pytest.raises(TableError) as caught:
        audit(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    for word in words:
        assert word in message
    name = path.name.replace("\0", "\\x00").replace("\n", "\\n")
    assert message.startswith(f"{name}: ")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoding": "klingon"}, ["klingon", "latin-1"]),
        ({"encoding": "base64"}, ["base64", "latin-1"]),
        ({"encoding": "ascii"}, ["ascii"]),
        ({"delimiter": ",,"}, ["delimiter"]),
        ({"delimiter": "\n"}, ["delimiter"]),
        ({"decimal": ";"}, ["decimal"]),
        ({"delimiter": ";"}, ["only one column", "delimiter"]),
    ],
)
def test_wrong_options_give_one_clear_line(tmp_path, options, words):
    path = text(GOOD.replace("items", "stück"))(tmp_path)
    with pytest.raises(TableError) as caught:
        audit(path, **options)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_file_without_permission_says_so(tmp_path, monkeypatch):
    path = text(GOOD)(tmp_path)
    if os.geteuid() == 0:  # nothing is forbidden to root: let the system call say what it would say
        monkeypatch.setattr(Path, "open", lambda *args, **kwargs: (_ for _ in ()).throw(PermissionError(13, "denied")))
    path.chmod(0)
    with pytest.raises(TableError, match="permission"):
        read_table(path)


def test_a_callback_stops_the_reading_by_raising(tmp_path):
    class Stop(Exception):
        pass

    def stop(progress):
        raise Stop

    for name in ("file.csv", "file.jsonl", "file.parquet"):
        path = tmp_path / name
        write_columns(path, {"hours": np.arange(10.0), "total": np.arange(10.0)})
        with pytest.raises(Stop):
            read_table(path, callback=stop)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.arrow", "a.csv.gz", "a.csv.zst"]),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.binary(max_size=4)), min_size=1, max_size=4),
)
def test_a_spoiled_file_is_read_or_refused(tmp_path, name, edits):
    path = tmp_path / name
    columns = {"hours": [n / 4 for n in range(40)], "note": [f'"{n}", or so' for n in range(40)], "total": range(40)}
    write_columns(path, columns)
    content = path.read_bytes()
    for place, n_lost, added in edits:
        at = int(place * len(content))
        content = content[:at] + added + content[at + n_lost :]
    path.write_bytes(content)
    message = ""
    try:
        assert np.isfinite(audit(path).X).all()
    except TableError as error:
        message = str(error)
    assert "\n" not in message


def test_standard_input_is_a_file_too(monkeypatch):
    def give(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    give(gzip.compress(GOOD.encode()))
    assert read_table("-").n_rows == 32
    give(b"")
    with pytest.raises(TableError, match="standard input: the file is empty"):
        read_table("-")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("out.xlsb", ".csv"),
        ("out", ".csv"),
        ("out.parquet.gz", "compressed inside"),
        ("away/out.csv", "no folder"),
        ("folder.csv", "folder"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path, name, words):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=words):
        check_output(tmp_path / name)
    with pytest.raises(TableError, match=words):
        write_columns(tmp_path / name, {"a": [1]})
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_json_has_no_infinite_numbers(tmp_path):
    with pytest.raises(TableError, match=r"a column holds values that a .jsonl file cannot"):
        write_columns(tmp_path / "a.jsonl", {"a": [1.0, np.inf]})
    assert not list(tmp_path.iterdir())


def test_an_output_folder_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(TableError, match="permission"):
        check_output(tmp_path / "out.csv")


def test_a_failure_to_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for name in ("out.csv", "out.csv.gz", "out.csv.zst", "out.jsonl", "out.parquet", "out.arrow"):
        with pytest.raises(TableError, match="No space left"):
            write_columns(tmp_path / name, {"a": [1, 2]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (7, "int"),
        ([1, 2, 3], "list"),
        ({}, "no columns"),
        ({"a": []}, "no rows"),
        ({"a": [1, 2], "b": [1]}, '"b" has 1 rows'),
        ({"a": [1], " a": [2]}, '"a"'),
        ({"a": np.zeros((2, 2))}, "2 dimensions"),
        ({"a": 7}, "not a sequence"),
        ({"a": "text"}, "not a sequence"),
        ({"a": np.array([1 + 2j])}, "cannot be cells"),
    ],
)
def test_what_is_no_table_is_refused(frame, words):
    with pytest.raises(TableError, match=words):
        table_of(frame)
