"""A stream has the rows of the table, however it is cut, and what a table refuses it refuses with the same words."""

import bz2
import contextlib
import errno
import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

import pyarrow.compute
import pyarrow.ipc
import pyarrow.parquet  # noqa: F401
from test_table_malformed import MALFORMED

from massart.tables import TableError, read_table, stream_table, write_columns

N_ROWS = 3000
KINDS = (
    *("a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.arrow", "a.arrows", "a.feather"),
    *("a.csv.gz", "a.csv.zst", "a.csv.bz2", "a.jsonl.gz", "a.parquet.gz", "a.arrow.zst"),
)
MEMORY = (1 << 10, 1 << 16, 1 << 20, 1 << 29)


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch):
    """Let temporary files lie in a folder of the test's own, and nothing be left there."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def columns(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "hours": rng.integers(1, 400, n) / 4,
        "items": rng.integers(0, 50, n),
        "paid": [None if k % 7 == 0 else k % 2 == 0 for k in range(n)],
        "day": [f"2024-05-{k % 28 + 1:02d}" for k in range(n)],
        "place": [("Zürich", "Orléans, north", 'the "old" one', "two\nlines", None)[k % 5] for k in range(n)],
        "gaps": [None if k % 3 else k / 8 for k in range(n)],
        "empty": [None] * n,
        "code": [f"{k:05d}" for k in range(n)],
    }


def made(path: Path, content=None) -> Path:
    """Write a table as what the suffix says."""
    content = columns() if content is None else content
    plain = path.with_name("plain." + path.name.split(".")[1])
    if plain.suffix == ".arrows":
        arrow = pa.table({name: pa.array(values) for name, values in content.items()})
        with pa.ipc.new_stream(plain, arrow.schema) as writer:
            writer.write_table(arrow, max_chunksize=700)
    elif plain.suffix == ".parquet":
        arrow = pa.table({name: pa.array(values) for name, values in content.items()})
        pa.parquet.write_table(arrow, plain, row_group_size=1100)
    else:
        write_columns(plain, content)
    packing = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda b: pa.compress(b, "zstd", asbytes=True)}
    path.write_bytes(packing.get(path.suffix, bytes)(plain.read_bytes()))
    plain.unlink()
    return path


def whole(blocks):
    return pa.concat_tables([block.arrow for block in blocks]).combine_chunks()


def assert_same(stream, table):
    assert stream.schema.equals(table.arrow.schema)
    assert stream.column_names == table.column_names
    assert stream.n_rows == table.n_rows
    assert (stream.name, stream.decimal, stream.spellings) == (table.name, table.decimal, table.spellings)
    blocks = list(stream.blocks())
    assert all(block.arrow.schema.equals(table.arrow.schema) for block in blocks)
    assert whole(blocks).equals(table.arrow.combine_chunks())
    return len(blocks)


@pytest.mark.full(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_memory", MEMORY)
def test_the_blocks_are_the_table_whatever_their_size(tmp_path, kind, max_memory):
    path = made(tmp_path / kind)
    table = read_table(path)
    with stream_table(path, max_memory=max_memory) as stream:
        before = stream.nbytes
        n_blocks = assert_same(stream, table)
        assert assert_same(stream, table) == n_blocks  # a second time
        assert (n_blocks > 1) == (max_memory < 1 << 22)
        # Estimates need be right enough to choose between memory and a stream.
        assert table.arrow.nbytes / 3 < before < 3 * table.arrow.nbytes


@pytest.mark.full(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_memory", [MEMORY[0], MEMORY[-1]])
def test_a_projection_has_the_columns_asked_for_in_their_order(tmp_path, kind, max_memory):
    path = made(tmp_path / kind)
    table = read_table(path)
    names = ["place", "hours", "empty"]
    with stream_table(path, max_memory=max_memory) as stream:
        assert whole(stream.blocks(names)).equals(table.arrow.select(names).combine_chunks())
        with pytest.raises(TableError, match='no column "hour": did you mean "hours"'):
            next(stream.blocks(["hour"]))


def test_a_batch_without_rows_is_passed_over(tmp_path):
    arrow = pa.table({"x": [1.0, 2.0]})
    with pa.ipc.new_file(tmp_path / "a.arrow", arrow.schema) as writer:
        for batch in (arrow, arrow.slice(0, 0), arrow):
            writer.write_batch(pa.RecordBatch.from_arrays(batch["x"].chunks or [pa.array([], pa.float64())], ["x"]))
    with stream_table(tmp_path / "a.arrow") as stream:
        assert whole(stream.blocks())["x"].to_pylist() == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_readers_at_a_time_do_not_disturb_each_other(tmp_path, kind):
    with stream_table(made(tmp_path / kind), max_memory=1 << 12) as stream:
        for one, other in zip(stream.blocks(), stream.blocks(), strict=True):
            assert one.arrow.equals(other.arrow)


@pytest.mark.full(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_folder", [True, False])
def test_a_folder_is_its_files_one_after_the_other(tmp_path, kind, as_folder):
    folder = tmp_path / "data"
    folder.mkdir()
    paths = [
        made(folder / kind.replace("a.", f"{letter}.", 1), columns(1000, seed)) for seed, letter in enumerate("bac")
    ]
    (folder / ".hidden").write_text("x")
    (folder / "_SUCCESS").touch()
    tables = [read_table(path) for path in sorted(paths)]
    with stream_table(folder if as_folder else folder / "?.*", max_memory=1 << 14) as stream:
        assert stream.name == ("data" if as_folder else "?.*")
        assert whole(stream.blocks()).equals(pa.concat_tables([table.arrow for table in tables]).combine_chunks())
        assert stream.n_rows == 3000


def written(path: Path, text: str) -> Path:
    path.write_text(text, newline="")
    return path


REFUSED = {kind: make for kind, (make, _) in MALFORMED.items() if kind != "folder"}


@pytest.mark.full(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", REFUSED)
def test_what_a_table_refuses_a_stream_refuses_with_the_same_words(tmp_path, kind):
    path = REFUSED[kind](tmp_path)
    table, words = None, ""
    try:
        table = read_table(path)
    except TableError as error:
        words = str(error)
    with contextlib.ExitStack() as stack:
        if table is not None:  # what is wrong with it is no matter of reading
            assert_same(stack.enter_context(stream_table(path, max_memory=1 << 12)), table)
            return
        with pytest.raises(TableError) as caught:
            list(stack.enter_context(stream_table(path, max_memory=1 << 12)).blocks())
    assert str(caught.value) == words


LATE = {  # the cell far below, its value, the one far above, and the type of the column
    "float": ("1.5", 1.5, 1.0, pa.float64()),
    "text": ("many", "many", "1", pa.string()),
    "long integer": ("99999999999999999999", "99999999999999999999", "1", pa.string()),
    "missing": ("NA", None, 1, pa.int64()),
    "boolean": ("true", "true", "1", pa.string()),
    "infinity": ("1e400", "1e400", "1", pa.string()),
    "money": ("$5", "$5", "1", pa.string()),
    "date": ("2024-05-01", "2024-05-01", "1", pa.string()),
}


@pytest.mark.parametrize("kind", LATE)
def test_a_type_that_changes_far_below_holds_for_all_blocks(tmp_path, kind):
    cell, value, first, wanted = LATE[kind]
    n = 530_000  # beyond what is looked at to find the types
    path = written(tmp_path / "a.csv", "a,b\n" + "1,2\n" * n + f"{cell},3\n" + "2,5\n" * 2000 + ",\n")
    with stream_table(path, max_memory=1 << 20) as stream:
        assert stream.schema.types == [wanted, pa.int64()]
        column = whole(stream.blocks())["a"]
        found = [column[k].as_py() for k in (0, n, -1)]
        assert found == [first, value, None if wanted != pa.string() else found[-1]]


@pytest.mark.parametrize("near", ["1.5,2\n", ",2\n"])
def test_what_is_written_for_nan_far_below_is_missing(tmp_path, near):
    rows = "1.5,2\n" * 20_000 + near + "NaN,3\n-nan,3\n" + near + "?,4\n" + "1e300,5\n" * 2000
    with stream_table(written(tmp_path / "a.csv", "a,b\n" + rows), max_memory=1 << 14) as stream:
        column = whole(stream.blocks())["a"]
        assert column.type == pa.float64()
        assert column.null_count == 3 + 2 * near.startswith(",")
        assert not pa.compute.any(pa.compute.is_nan(column)).as_py()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (("1", "2.5"), pa.float64()),
        (("01.5", "x"), pa.string()),
        (("9007199254740993", "2.5"), pa.string()),
        (("", "2.5"), pa.float64()),
    ],
)
def test_files_of_a_folder_share_the_wider_type_and_lose_nothing(tmp_path, cells, wanted, first):
    cells = cells if first else cells[::-1]
    for name, cell in zip("ab", cells, strict=True):
        written(tmp_path / f"{name}.csv", f"x,y\n{cell},1\n{cell},2\n")
    with stream_table(tmp_path) as stream:
        (found,) = stream.blocks()
        assert found.arrow.schema.types[0] == wanted
        values = [cell or None for cell in cells for _ in range(2)]
        if wanted == pa.float64():
            values = [None if cell is None else float(cell) for cell in values]
        assert found.arrow["x"].to_pylist() == values


def test_a_parquet_folder_shares_the_wider_type_or_names_the_file(tmp_path):
    for name, kind in (("a", pa.int32()), ("b", pa.int64()), ("c", pa.float64())):
        pa.parquet.write_table(pa.table({"x": pa.array([1, 2], kind)}), tmp_path / f"{name}.parquet")
    with stream_table(tmp_path) as stream:
        assert stream.schema.types == [pa.float64()]
        assert whole(stream.blocks())["x"].to_pylist() == [1, 2] * 3
    pa.parquet.write_table(pa.table({"x": ["1", "2"]}), tmp_path / "d.parquet")
    with pytest.raises(TableError, match=r'^d.parquet: column "x" holds string, but double in a.parquet$'):
        _ = stream_table(tmp_path).schema


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"x": [1], "z": [2]}, 'b.{}: there is no column "y"'),
        ({"x": [1], "y": [1], "z": [1]}, 'a.{}: there is no column "z"'),
    ],
)
def test_a_file_with_other_columns_is_named(tmp_path, suffix, other, words):
    write_columns(tmp_path / f"a.{suffix}", {"x": [1], "y": [2]})
    write_columns(tmp_path / f"b.{suffix}", other)
    with stream_table(tmp_path) as stream, pytest.raises(TableError) as caught:
        list(stream.blocks())
    assert str(caught.value).startswith(words.format(suffix))


def test_columns_in_another_order_are_the_same_columns(tmp_path):
    write_columns(tmp_path / "a.csv", {"x": [1], "y": [2]})
    write_columns(tmp_path / "b.parquet", {"y": [4], "x": [3]})
    with stream_table(tmp_path) as stream:
        assert whole(stream.blocks()).to_pydict() == {"x": [1, 3], "y": [2, 4]}


@pytest.mark.parametrize(
    ("name", "words"),
    [("none", "none: there are no files in this folder"), ("none/*.csv", r"\*.csv: no file has such a name")],
)
def test_nothing_to_read_is_said(tmp_path, name, words):
    (tmp_path / "none").mkdir()
    with pytest.raises(TableError, match=words):
        stream_table(tmp_path / name)


def test_an_empty_file_in_a_folder_is_named(tmp_path):
    made(tmp_path / "a.csv")
    (tmp_path / "b.csv").touch()
    with pytest.raises(TableError, match=r"^b.csv: the file is empty$"):
        stream_table(tmp_path)


def test_a_damaged_row_group_is_named(tmp_path):
    path = tmp_path / "b.parquet"
    arrow = pa.table({"x": np.random.default_rng(0).normal(size=30_000)})
    pa.parquet.write_table(arrow, path, row_group_size=10_000, use_dictionary=False, compression="zstd")
    place = pa.parquet.read_metadata(path).row_group(1).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[place : place + 2000] = bytes(2000)
    path.write_bytes(content)
    damaged = pytest.raises(TableError, match=r"^b.parquet: .* in row group 2: ")
    with stream_table(tmp_path / "*.parquet") as stream, damaged:
        list(stream.blocks())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changes_between_or_during_reads_is_refused(tmp_path, kind):
    path = made(tmp_path / kind)
    with stream_table(path, max_memory=1 << 12) as stream:
        blocks = stream.blocks()
        next(blocks)
        with path.open("ab") as file:
            file.write(b"\n")
        for attempt in (blocks, stream.blocks()):
            with pytest.raises(TableError, match=f"^{kind}: the file changed while it was read"):
                list(attempt)
        path.unlink()
        with pytest.raises(TableError, match=f"^{kind}: the file went away"):
            list(stream.blocks())


def test_a_file_that_changes_while_it_is_parsed_is_refused(tmp_path):
    path = made(tmp_path / "a.csv")

    def grow(progress):
        with path.open("a") as file:
            file.write("1,2\n")

    with stream_table(path, callback=grow) as stream, pytest.raises(TableError, match="changed while it was read"):
        list(stream.blocks())


class FullDisk:
    """A file on a disk with room for a few bytes."""

    def __init__(self, file, room=20_000):
        self.file, self.room = file, room

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a.csv", "a.jsonl", "a.parquet.gz"])
def test_a_full_disk_is_one_line_that_names_the_folder(tmp_path, kind, monkeypatch, scratch):
    path = made(tmp_path / kind)
    real = tempfile.TemporaryFile
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", lambda *args, **options: FullDisk(real(*args, **options)))
        with pytest.raises(TableError) as caught, stream_table(path, max_memory=1 << 12) as stream:
            list(stream.blocks())
    assert "no room" in str(caught.value)
    assert f'"{scratch}' in str(caught.value)
    assert "No space left on device" in str(caught.value)
    assert "TMPDIR" in str(caught.value)
    with stream_table(path, max_memory=1 << 12) as stream:  # it can be started again
        assert_same(stream, read_table(path))


CELLS = ("", "1", "2.5", '5" pipe', '"', '""', '"a"', '"a""b"', '"two\nlines"', '"x,y"', '"a"b', "ü", " ")


def in_one_piece_and_in_many(path):
    """Read a text in one chunk and in chunks of a few hundred rows; what is refused gives its words."""
    found = []
    for memory in (1 << 29, 1):
        try:
            with stream_table(path, max_memory=memory) as stream:
                table = stream.whole()
            found.append((table.arrow.to_pydict(), table.arrow.schema.types, table.remarks))
        except TableError as error:
            found.append(str(error))
    return found


@pytest.mark.slow
def test_chunks_end_where_rows_end(tmp_path):
    rng, n_read = np.random.default_rng(0), 0
    for _ in range(30):
        rows = rng.choice(CELLS, (int(rng.integers(1, 30)), 3))
        end = str(rng.choice(["\n", "\r\n", "\r"]))
        text = "".join(",".join(row) + end for row in rows)
        path = written(tmp_path / "a.csv", f"a,b,c{end}" + text * (20_000 // len(text)))
        one, many = in_one_piece_and_in_many(path)
        assert one == many
        n_read += isinstance(one, tuple)
    assert n_read > 3


ASIDES = ("Section 7", "", "Total,,", '"a note, on\ntwo lines"', "as of,today")


@pytest.mark.parametrize("n_rows", [40, 1500, 3000])
def test_lines_that_are_no_rows_are_left_out_wherever_they_stand(tmp_path, n_rows):
    rng = np.random.default_rng(n_rows)
    rows = [f"{k},{k / 4},{'north' if k % 2 else 'south'},{k},{5 * k}" for k in range(n_rows)]
    lines = [*rows]
    for place in np.sort(rng.integers(1, n_rows, 12))[::-1]:
        lines.insert(place, str(rng.choice(ASIDES)))
    lines = [line + "," * int(rng.integers(0, 2)) if line in rows else line for line in lines]
    head = ["Report of 2024", "", "row,hours,region,items,total"]
    second = ["", "region,mean", "north,2", "south,3", "end"]
    path = written(tmp_path / "a.csv", "\n".join([*head, *lines, *second]) + "\n")
    one, many = in_one_piece_and_in_many(path)
    assert one == many
    assert one[0]["row"] == [*range(n_rows)]
    assert one[0]["total"] == [5 * k for k in range(n_rows)]
    assert "in line 3 of the file" in one[2][0]
    first = next(k for k, line in enumerate(lines) if line and line.rstrip(",") not in rows)
    assert f"line {sum(line.count(chr(10)) + 1 for line in [*head, *lines[:first]]) + 1:,} " in one[2][1]
    for wrong in ("7,8,north", "1,2,3,4,5,6"):
        place = int(rng.integers(1, n_rows))
        broken = [*head, *rows[:place], wrong, *rows[place:]]
        for words in in_one_piece_and_in_many(written(tmp_path / "b.csv", "\n".join(broken))):
            assert words.startswith(
                f"b.csv: line {place + 4:,} has {wrong.count(',') + 1} fields, but the header has 5"
            )


def test_what_goes_on_below_a_blank_line_is_no_second_table(tmp_path):
    text = "a,b,c\n" + "1,2,3\n" * 2000 + "\n4,5\n" + "1,2,3\n" * 2000
    for words in in_one_piece_and_in_many(written(tmp_path / "a.csv", text)):
        assert words.startswith("a.csv: line 2,003 has 2 fields")
