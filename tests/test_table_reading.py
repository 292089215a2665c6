"""Files are read as what they are, and what is written reads back the same."""

import bz2
import csv
import gzip
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

from massart.tables import Table, read_table, table_of, write_columns, write_table

FORMATS = ("csv", "tsv", "jsonl", "ndjson", "parquet", "arrow", "feather", "csv.gz", "csv.zst", "tsv.gz", "jsonl.zst")
LEDGER = {
    "hours": [1.5, 2.0, None, 4.25],
    "items": [3, 1, 4, 1],
    "paid": [True, False, True, None],
    "place": ["Zürich", "Orléans, north", 'the "old" one', "two\nlines"],
}


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def as_lists(table: Table) -> dict[str, list[object]]:
    return table.cells(table.column_names, np.arange(table.n_rows))


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_written_reads_back(tmp_path, suffix):
    path = tmp_path / f"ledger.{suffix}"
    write_columns(path, LEDGER)
    assert as_lists(read_table(path)) == LEDGER
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t,;|\"'"), min_size=1, max_size=12)
COLUMNS = st.one_of(
    st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=6, max_size=6),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=6, max_size=6),
    st.lists(st.booleans() | st.none(), min_size=6, max_size=6),
    # A letter first: neither a number nor a date, and nothing that a spreadsheet would run.
    st.lists(CELLS.map(lambda cell: "x" + cell.strip() + "x"), min_size=6, max_size=6),
)


def filled(columns):
    """Return the rows that hold anything: blank lines of a text are none."""
    return [row for row in zip(*columns, strict=True) if any(cell is not None for cell in row)]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=st.lists(COLUMNS, min_size=2, max_size=4), suffix=st.sampled_from(FORMATS))
def test_any_table_reads_back_the_same(tmp_path, columns, suffix):
    content = {f"column {letter}": column for letter, column in zip("abcd", columns, strict=False)}
    path = tmp_path / f"any.{suffix}"
    write_columns(path, content)
    if suffix.partition(".")[0] in ("csv", "tsv"):
        content = {name: [row[j] for row in filled(columns)] for j, name in enumerate(content)}
    if any(content.values()):
        assert as_lists(read_table(path)) == content


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    columns=st.lists(COLUMNS, min_size=2, max_size=4),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_the_dialect_is_found(tmp_path, columns, delimiter, encoding, line_end):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=line_end)
    writer.writerow(f"column {letter}" for letter, _ in zip("abcd", columns, strict=False))
    writer.writerows([["" if cell is None else cell for cell in row] for row in zip(*columns, strict=True)])
    path = written(tmp_path / "any.txt", text.getvalue(), encoding)
    if rows := filled(columns):
        found = as_lists(read_table(path))
        assert list(found.values()) == [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a;b\n1,5;2\n2,25;3\n", {"a": [1.5, 2.25], "b": [2, 3]}),
        ("a;b\n1.5;2\n2.25;3\n", {"a": [1.5, 2.25], "b": [2, 3]}),
        ("a\tb\n1\t2\n", {"a": [1], "b": [2]}),
        ("a|b\n1|x,y\n", {"a": [1], "b": ["x,y"]}),
        ('"a;b",c\n1,"x;y;z"\n', {"a;b": [1], "c": ["x;y;z"]}),
        ("sep=;\na;b\n1;2\n", {"a": [1], "b": [2]}),
        (",a\n0,5\n1,6\n", {"column 1": [0, 1], "a": [5, 6]}),
        ("a,b,\n1,2,\n", {"a": [1], "b": [2]}),
        (" a , b \n1,2\n", {"a": [1], "b": [2]}),
        ("a,b\n007,1\n010,2\n", {"a": ["007", "010"], "b": [1, 2]}),
        ("a,b\nNA,1\nDE,2\n", {"a": ["NA", "DE"], "b": [1, 2]}),
        ("a,b\nNA,1\n5,2\n", {"a": [None, 5], "b": [1, 2]}),
        ("a,b\n#REF!,1\n-,2\n3,?\n", {"a": [None, None, 3], "b": [1, 2, None]}),
        ("a,b\n\n1,2\n\n3,4\n\n", {"a": [1, 3], "b": [2, 4]}),
        (
            "a,b\n2024-05-01,12:30\n2024-05-02,13:45\n",
            {"a": ["2024-05-01", "2024-05-02"], "b": ["12:30", "13:45"]},
        ),
        ("a,b\n2024-05-01 10:30,1\n", {"a": ["2024-05-01 10:30"], "b": [1]}),
        ("a,b\n0x1F,1\n", {"a": ["0x1F"], "b": [1]}),
        ('a,b\n1," "\n2,3\n', {"a": [1, 2], "b": [" ", "3"]}),
        ("a,b\r1,2\r3,4\r", {"a": [1, 3], "b": [2, 4]}),
        ("a,b\n1,2,3\n4,5,6\n", {"a": [1, 4], "b": [2, 5], "column 3": [3, 6]}),
        ("a b\n 1   2\n10  20\n", {"a": [1, 10], "b": [2, 20]}),
        ("a,b\n12345678901234567890,1\n", {"a": ["12345678901234567890"], "b": [1]}),
        ("a\n1\n2\n", {"a": [1, 2]}),
        ("a,b\n1,2", {"a": [1], "b": [2]}),
        ('a,b\n1,5" pipe\n', {"a": [1], "b": ['5" pipe']}),
    ],
)
def test_text_files_as_people_write_them(tmp_path, text, wanted):
    assert as_lists(read_table(written(tmp_path / "file.csv", text))) == wanted


def test_encodings_by_mark_and_by_name(tmp_path):
    text = "größe,wert\n1,ü\n2,é\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        assert as_lists(read_table(written(tmp_path / "a.csv", text, encoding))) == {
            "größe": [1, 2],
            "wert": ["ü", "é"],
        }
    for encoding in ("latin-1", "cp1252", "utf-16-le", "utf-16-be"):
        path = written(tmp_path / "b.csv", text, encoding)
        assert as_lists(read_table(path, encoding=encoding)) == {"größe": [1, 2], "wert": ["ü", "é"]}


def test_a_long_file_in_another_encoding(tmp_path):
    lines = [f"{n},straße {n}" for n in range(100_000)]
    path = written(tmp_path / "a.csv", "n,s\n" + "\n".join(lines), "utf-16")
    table = read_table(path)
    assert table.n_rows == 100_000
    assert table.cells(["s"], np.array([99_999])) == {"s": ["straße 99999"]}


@pytest.mark.slow
def test_a_row_longer_than_a_block_is_read(tmp_path):
    table = read_table(written(tmp_path / "a.csv", "a,b\n1," + "x" * (6 << 20) + "\n2,y\n"))
    assert len(table.cells(["b"], np.array([0]))["b"][0]) == 6 << 20


def test_bytes_decide_over_suffixes(tmp_path):
    columns = {"a": [1, 2], "b": [1.5, 2.5]}
    write_columns(tmp_path / "a.parquet", columns)
    write_columns(tmp_path / "a.arrow", columns)
    write_columns(tmp_path / "a.csv", columns)
    plain = (tmp_path / "a.csv").read_bytes()
    for name, content in {
        "parquet.csv": (tmp_path / "a.parquet").read_bytes(),
        "arrow.csv": (tmp_path / "a.arrow").read_bytes(),
        "gzip.csv": gzip.compress(plain),
        "two members.csv": gzip.compress(plain) + gzip.compress(b""),
        "bz2.csv": bz2.compress(plain),
        "plain.csv.gz": plain,
        "upper.CSV": plain,
        "no suffix": plain,
        "lines.csv": b'{"a": 1, "b": 1.5}\n{"a": 2, "b": 2.5}\n',
        "parquet.parquet.gz": gzip.compress((tmp_path / "a.parquet").read_bytes()),
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert as_lists(read_table(path)) == columns, name


@pytest.mark.parametrize("name", ["PAR1", "ORCID", "ARROW1", "FEA1", "BZh9", "PK"])
def test_a_column_may_be_named_like_a_format(tmp_path, name):
    (tmp_path / "a.csv").write_text(f"{name},b\n1,2\n3,4\n")
    assert as_lists(read_table(tmp_path / "a.csv")) == {name: [1, 3], "b": [2, 4]}


def test_arrow_streams(tmp_path):
    arrow = pa.table({"a": [1, 2]})
    with pa.ipc.new_stream(tmp_path / "a.arrows", arrow.schema) as writer:
        writer.write_table(arrow)
    assert as_lists(read_table(tmp_path / "a.arrows")) == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"a": 1, "b": "x"}\n{"a": 2.5}\n', {"a": [1, 2.5], "b": ["x", None]}),
        ('{"a": 1}\n\n{"b": 2}\n', {"a": [1, None], "b": [None, 2]}),
        ('[{"a": 1}, {"a": 2}]', {"a": [1, 2]}),
        ('[\n {"a": 1,\n  "b": null},\n {"a": 2}]\n', {"a": [1, 2], "b": [None, None]}),
        ('{"a": 1}\n{"a": "x"}\n', {"a": ["1", "x"]}),
        ('{"a": 12345678901234567890}\n{"a": 2}\n', {"a": ["12345678901234567890", "2"]}),
        ('{"a": true}\n{"a": null}\n', {"a": [True, None]}),
        ('{"a": NaN}\n{"a": 1.5}\n', {"a": [None, 1.5]}),
        ('\ufeff{"a": 1}\n', {"a": [1]}),
        ('{"a": "2024-05-01"}\n{"a": null}\n', {"a": ["2024-05-01", None]}),
        ('{"a": [1, 2]}\n{"a": []}\n', {"a": ["[1, 2]", "[]"]}),
        ('{"a": {"b": 1}}\n', {"a": ['{"b": 1}']}),
    ],
)
def test_json_as_people_write_it(tmp_path, text, wanted):
    assert as_lists(read_table(written(tmp_path / "file.json", text))) == wanted


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize(("cell", "first", "last"), [("1.5", 1.0, 1.5), ('"x"', "1", "x"), ("null", 1, None)])
def test_json_types_that_change_far_below_are_widened(tmp_path, cell, first, last):
    path = written(tmp_path / "a.jsonl", '{"a": 1, "b": 2}\n' * 300_000 + f'{{"a": {cell}, "b": 3}}\n')
    assert read_table(path).cells(["a"], np.array([0, 300_000])) == {"a": [first, last]}


@pytest.mark.slow
def test_progress_reaches_the_end_of_the_file(tmp_path):
    for suffix in ("csv", "csv.gz", "parquet", "jsonl"):
        path = tmp_path / f"a.{suffix}"
        write_columns(path, {"a": np.arange(50_000.0), "b": np.arange(50_000)})
        seen = []
        read_table(path, callback=seen.append)
        assert seen[-1].task == f"reading {path.name}"
        assert min(step.residual for step in seen) == 0
        assert all(math.isfinite(step.residual) for step in seen)


def test_formulas_are_disarmed_in_text_only(tmp_path):
    cells = ["=1+1", "+1", "-1", "@sum", "\tx", "plain", "a=b", None]
    path = tmp_path / "a.csv"
    write_columns(path, {"text": cells, "=name": [-1, -2, -3, -4, -5, -6, -7, -8]})
    rows = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))
    assert rows[0] == ["text", "'=name"]
    assert [row[0] for row in rows[1:]] == ["'=1+1", "'+1", "'-1", "'@sum", "'\tx", "plain", "a=b", ""]
    assert [row[1] for row in rows[1:]] == [f"-{n}" for n in range(1, 9)]
    write_columns(tmp_path / "a.jsonl", {"text": cells})
    assert [json.loads(line)["text"] for line in (tmp_path / "a.jsonl").read_text().splitlines()] == cells


def test_the_users_own_table_is_written_as_it_is(tmp_path):
    text = 'a,"=b"\n"=1+1",2\n"-x",3\n'
    table = read_table(written(tmp_path / "a.csv", text))
    write_table(tmp_path / "b.csv", table)
    assert as_lists(read_table(tmp_path / "b.csv")) == {"a": ["=1+1", "-x"], "=b": [2, 3]}


def test_missing_cells_are_empty(tmp_path):
    masked = np.ma.MaskedArray([1.0, 2.0, 3.0], mask=[False, True, False])
    columns = {
        "masked": masked,
        "nan": np.array([np.nan, 1, 2]),
        "none": [None, "x", "y"],
        "list": [float("nan"), 1, 2],
    }
    write_columns(tmp_path / "a.tsv", columns)
    assert (tmp_path / "a.tsv").read_text().splitlines()[1:3] == ["1\t\t\t", '\t1\t"x"\t1']


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for suffix in FORMATS:
        paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
        for path in paths:
            write_columns(path, LEDGER)
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_every_arrow_type_can_be_written_as_text(tmp_path):
    arrow = pa.table(
        {
            "list": [[1, 2], None],
            "struct": [{"a": 1}, {"a": 2}],
            "duration": pa.array([1, 2], pa.duration("s")),
            "zone": pa.array([0, 1], pa.timestamp("ns", "America/New_York")),
            "decimal": pa.array([1, 2], pa.decimal128(10, 2)),
            "category": pa.array(["x", "y"]).dictionary_encode(),
            "binary": pa.array([b"\x00\xff", None]),
            "half": pa.array(np.array([1.5, np.nan], dtype=np.float16)),
        }
    )
    table = table_of(arrow)
    for suffix in ("csv", "jsonl"):
        write_table(tmp_path / f"a.{suffix}", table)
        back = as_lists(read_table(tmp_path / f"a.{suffix}"))
        assert list(back) == list(arrow.column_names)
        assert back["category"] == ["x", "y"]
        assert back["decimal"] == [1, 2]
        assert back["half"] == [1.5, None]
        assert back["list"][0] == "[1, 2]"
