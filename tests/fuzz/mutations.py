"""Valid files, and how they are spoiled: in their bytes, in their lines and cells, in their tree, in their archive."""

from __future__ import annotations

import bz2
import datetime
import decimal
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

NAMES = ("job", "day", "region", "hours", "items", "note", "total")
N_ROWS = 40
CELLS = (
    *("", " ", "0", "-0", "-1", "1e308", "1e400", "-1e-400", "nan", "inf", "-inf", "NA", "null", "-", "1,5"),
    *("1.234,5", "1,234.5", "1'234", "12 kg", "12kg", "5 %", "$3", "(3)", "3-", "007", "0x10", "1_000", "½", "٣"),
    *("9" * 400, "+"),
    *(str(2**53 + 1), str(2**63), str(-(2**63)), str(2**64), "1e5", "0." + "0" * 30 + "1", "true", "FALSE", "yes"),
    *("2024-02-30", "2024-05-01", "31.12.2024", "12/31/24", "2024-05-01T10:00Z", "10:30", "0000-00-00"),
    *("99999-01-01"),
    *(
        "=1+1",
        "@x",
        "the intercept",
        "a = b",
        "DROP TABLE t",
        "\x1b[31m",
        "\u202e",
        "😀",
        "e\u0301",
        "\ufeff",
        "\u2028",
    ),
    *('"', '""', "'", '"a', 'a"b', '"a\nb"', "\\", "\\N", "a,b", "a;b", "a\tb", "\0", "\r", "x" * 3000, "#REF!"),
    *("--1"),
)
TOKENS = (
    *(cell.encode() for cell in CELLS),
    *(b"\n", b"\r\n", b",", b";", b"\t", b"|", b"{", b"}", b"[", b"]", b":", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80"),
    *(b"\xff" * 4, b"\0" * 8, b"\xff\xff\xff\x7f", b"PAR1", b"ARROW1", b"PK\x03\x04", b"\x1f\x8b", b"<", b">", b"&#0;"),
)
TREES = (None, True, False, 0, -1, 1.5, 10**400, -(10**19), 1e308, "", "x", "1/0", "9" * 80, [], {}, [[]], [None], "\0")


def rows() -> list[dict[str, Any]]:
    """The table that all files start from; every fourth total is wrong."""
    rng = Random(0)
    found = []
    for k in range(N_ROWS):
        hours, items = rng.randrange(1, 80) / 4, rng.randrange(12)
        total = 3 * hours + 2 * items + 1 + (7 + k if k % 4 == 0 else 0)
        day = datetime.date(2024, 1, 1) + datetime.timedelta(days=k)
        note = f'"{k}", or\nso' if k % 9 == 0 else f"note {k}"
        cells = (f"J{k:03d}", day, ("north", "south", "east")[k % 3], hours, items, note, total)
        found.append(dict(zip(NAMES, cells, strict=True)))
    return found


def csv_text(delimiter: str = ",", mark: str = ".", end: str = "\n") -> str:
    def cell(value: object) -> str:
        text = str(value)
        if isinstance(value, float):
            text = text.replace(".", mark)
        return '"' + text.replace('"', '""') + '"' if any(c in text for c in f'{delimiter}"\n') else text

    lines = [NAMES, *(row.values() for row in rows())]
    return "".join(delimiter.join(map(cell, line)) + end for line in lines)


def plain_csv() -> str:
    """Without line ends or delimiters in cells, so that a cell can be spoiled as such."""
    lines = [[*row.values()] for row in rows()]
    return "".join(",".join(map(str, [*line[:5], "n", line[6]])) + "\n" for line in [list(NAMES), *lines])


def json_lines() -> str:
    return "".join(json.dumps(row, default=str) + "\n" for row in rows())


def arrow_table() -> pa.Table:
    return pa.Table.from_pylist(rows())


def _parquet(table: pa.Table, **options: Any) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(table, stream, **options)
    return stream.getvalue()


def _ipc(table: pa.Table, make: Callable[..., Any]) -> bytes:
    stream = io.BytesIO()
    with make(stream, table.schema) as writer:
        writer.write_table(table, max_chunksize=16)
    return stream.getvalue()


def workbook() -> bytes:
    import xlsxwriter

    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, {"in_memory": True, "default_date_format": "yyyy-mm-dd"}) as book:
        book.set_properties({"created": datetime.datetime(2024, 1, 1)})
        sheet = book.add_worksheet("Jobs")
        sheet.write_row(0, 0, NAMES)
        for place, row in enumerate(rows(), 1):
            for column, cell in enumerate(row.values()):
                sheet.write(place, column, cell)
        book.add_worksheet("Empty").hide()
    return stream.getvalue()


def open_document() -> bytes:
    def cell(value: object) -> str:
        if isinstance(value, int | float):
            return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
        text = str(value).replace("&", "&amp;").replace("<", "&lt;")
        return f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'

    lines = [NAMES, *(row.values() for row in rows())]
    body = "".join(f"<table:table-row>{''.join(map(cell, line))}</table:table-row>" for line in lines)
    space = "urn:oasis:names:tc:opendocument:xmlns"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    content = (
        f'<?xml version="1.0"?><office:document-content xmlns:office="{space}:office:1.0" '
        f'xmlns:table="{space}:table:1.0" xmlns:text="{space}:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="Jobs">{body}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    manifest = (
        f'<manifest:manifest xmlns:manifest="{space}:manifest:1.0"><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="{kind}"/></manifest:manifest>'
    )
    return zipped(
        {"mimetype": kind.encode(), "content.xml": content.encode(), "META-INF/manifest.xml": manifest.encode()}
    )


def zipped(members: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), content, kind)
    return stream.getvalue()


@cache
def valid_files() -> dict[str, bytes]:
    """One file of each kind that is read."""
    table, text = arrow_table(), csv_text()
    return {
        "plain.csv": plain_csv().encode(),
        "quoted.csv": text.encode(),
        "windows.csv": csv_text(";", ",", "\r\n").encode("cp1252"),
        "tabs.tsv": csv_text("\t").encode(),
        "utf16.csv": text.encode("utf-16"),
        "titled.csv": ("Jobs of 2024\n\n" + text + "Total,,,,,,4711\n").encode(),
        "a.jsonl": json_lines().encode(),
        "a.json": json.dumps(rows(), default=str, indent=1).encode(),
        "a.parquet": _parquet(table, row_group_size=16, compression="none"),
        "zstd.parquet": _parquet(table, compression="zstd"),
        "a.arrow": _ipc(table, ipc.new_file),
        "stream.arrow": _ipc(table, ipc.new_stream),
        "a.xlsx": workbook(),
        "a.ods": open_document(),
        "a.csv.gz": gzip.compress(text.encode(), mtime=0),
        "a.csv.bz2": bz2.compress(text.encode()),
        "a.csv.zst": pa.compress(text.encode(), "zstd", asbytes=True),
        "a.jsonl.gz": gzip.compress(json_lines().encode(), mtime=0),
    }


def bytes_spoiled(content: bytes, rng: Random) -> bytes:
    """Return bytes with a few of them changed, lost, doubled, moved, or the end cut off."""
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at, length = rng.randrange(len(content) + 1), rng.choice((1, 1, 2, 4, 8, 64, 1024))
        piece, kind = content[at : at + length], rng.randrange(7)
        if kind == 0 and piece:
            content = content[:at] + bytes([piece[0] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + rng.randbytes(length) + content[at + length :]
        elif kind == 2:
            content = content[:at] + content[at + length :]
        elif kind == 3:
            content = content[:at] + piece * rng.choice((2, 3, 50)) + content[at + length :]
        elif kind == 4:
            content = content[:at] + rng.choice(TOKENS) + content[at + rng.choice((0, length)) :]
        elif kind == 5:
            to = rng.randrange(len(content) + 1)
            content = content[:to] + piece + content[to:]
        elif rng.randrange(3) == 0:
            content = content[:at]
    return content


def text_spoiled(text: str, rng: Random) -> str:
    """Return a text of lines and cells with some of them changed, lost, doubled or put elsewhere."""
    lines = [line.split(",") for line in text.splitlines()]
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        i, kind = rng.choice((0, rng.randrange(len(lines)), rng.randrange(len(lines)))), rng.randrange(9)
        j = rng.randrange(max(len(lines[i]), 1))
        if kind <= 2:
            lines[i][j : j + 1] = [rng.choice(CELLS)]
        elif kind == 3:  # a column of them
            some = rng.choice((CELLS, [rng.choice(CELLS)], [str(rng.gauss(0, 1e3)) for _ in range(99)]))
            for line in lines[rng.randrange(2) :]:
                line[j : j + 1] = [rng.choice(some)]
        elif kind == 4:
            lines.insert(rng.randrange(len(lines)), list(lines[i]))
        elif kind == 5 and len(lines) > 1:
            del lines[i : i + rng.choice((1, 1, 30))]
        elif kind == 6:
            lines.insert(i, [rng.choice(CELLS)] * rng.choice((0, 1, 7)))
        elif kind == 7:
            for line in lines:
                line[j:j] = line[j : j + 1] * rng.choice((1, 40))
        else:
            rng.shuffle(lines[i])
        lines = lines or [[""]]
    end, delimiter = rng.choice(("\n", "\n", "\n", "\r\n", "\r", "\n\n")), rng.choice(",,,,;\t|")
    return end.join(delimiter.join(line) for line in lines) + rng.choice((end, ""))


def tree_spoiled(tree: Any, rng: Random) -> Any:
    """Return a tree of lists and dicts with one of its nodes replaced, lost, renamed or doubled."""
    nodes: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            nodes.append((node, key))
            if isinstance(node[key], dict | list):
                visit(node[key])

    tree = json.loads(json.dumps(tree))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        nodes.clear()
        if not isinstance(tree, dict | list) or not tree:
            return rng.choice(TREES)
        visit(tree)
        node, key = rng.choice(nodes)
        other = rng.choice(nodes)
        kind = rng.randrange(7)
        if kind <= 1:
            node[key] = rng.choice((*TREES, rng.choice(CELLS)))
        elif kind == 2:
            node[key] = json.loads(json.dumps(other[0][other[1]]))
        elif kind == 3:
            del node[key]
        elif kind == 4 and isinstance(node[key], str):
            node[key] = "".join(rng.sample(node[key], len(node[key])))
        elif kind == 5 and isinstance(node[key], int | float):
            value = max(min(node[key], 1e308), -1e308)  # integers have no end, and floats have
            node[key] = rng.choice((-value, value * 1e300, value / 3, str(value), [value]))
        elif isinstance(node, dict):
            node[rng.choice(CELLS)] = node.pop(key)
        else:
            node.insert(rng.randrange(len(node) + 1), json.loads(json.dumps(node[key])))
    return tree


def archive_spoiled(content: bytes, rng: Random) -> bytes:
    """Return a workbook with one of its members spoiled, lost, renamed or doubled, and packed again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name, kind = rng.choice([*members]), rng.randrange(6)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[rng.choice(("xl/workbook.xml", "../x", "content.xml", "a" * 300))] = members.pop(name)
    elif kind == 2:
        members[name] = members[rng.choice([*members])]
    elif kind == 3:
        tokens = members[name].split(b'"')
        tokens[rng.randrange(len(tokens))] = rng.choice(TOKENS)
        members[name] = b'"'.join(tokens)
    else:
        members[name] = bytes_spoiled(members[name], rng)
    return zipped(members, rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)))


def strange_table(rng: Random) -> pa.Table:
    """Return an Arrow table of any types: those that are numbers, and those that a table cannot be made of."""
    n = rng.choice((0, 1, 5, 40))
    whole = [rng.randrange(-5, 90) for _ in range(n)]
    makers: list[Callable[[], pa.Array]] = [
        lambda: pa.array(whole, rng.choice((pa.int8(), pa.int16(), pa.int64(), pa.float32(), pa.float64()))),
        lambda: pa.array([abs(x) for x in whole], rng.choice((pa.uint8(), pa.uint64()))),
        lambda: pa.array(
            [decimal.Decimal(x) / 4 for x in whole], rng.choice((pa.decimal128(12, 2), pa.decimal256(70, 9)))
        ),
        lambda: pa.array([float(x) for x in whole], pa.float64()).cast(pa.float16()),
        lambda: pa.array(
            [rng.choice(CELLS) for _ in whole], rng.choice((pa.string(), pa.large_string(), pa.string_view()))
        ),
        lambda: pa.array([rng.choice("abc") for _ in whole]).dictionary_encode(),
        lambda: pa.array(whole).dictionary_encode(),
        lambda: pa.array([rng.choice((None, True, False)) for _ in whole]),
        lambda: pa.nulls(n),
        lambda: pa.array([bytes([x % 256]) for x in whole], rng.choice((pa.binary(), pa.binary(1), pa.binary_view()))),
        lambda: pa.array(whole, pa.int64()).cast(
            pa.timestamp(rng.choice(("s", "ms", "us", "ns")), rng.choice((None, "UTC")))
        ),
        lambda: pa.array(whole, pa.int32()).cast(pa.date32()),
        lambda: pa.array([x * 86_400_000 for x in whole], pa.int64()).cast(pa.date64()),
        lambda: pa.array([abs(x) for x in whole], pa.int32()).cast(pa.time32("s")),
        lambda: pa.array(whole, pa.int64()).cast(pa.duration("s")),
        lambda: pa.array([[x] for x in whole]),
        lambda: pa.array([{"a": x} for x in whole], pa.struct([("a", pa.int64())])),
        lambda: pa.array([[("k", x)] for x in whole], pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([rng.choice((None, x, 2**62, -1)) for x in whole], pa.int64()),
        lambda: pa.array(
            [rng.choice((None, x / 4, float("nan"), float("inf"), 1e300, 5e-324)) for x in whole], pa.float64()
        ),
    ]
    some = [rng.choice((*makers, makers[0], makers[0]))() for _ in range(rng.choice((0, 1, 3, 6)))]
    names = [rng.choice((*NAMES, *CELLS, f"c{j}", f"c{j}", f"c{j}")) for j in range(len(some))]
    return pa.Table.from_arrays(some, names=names)


def any_file(rng: Random) -> tuple[str, bytes]:
    """Return the name and the content of a file that is valid, nearly so, or not at all."""
    files = valid_files()
    kind = rng.randrange(10)
    if kind <= 2:
        name = rng.choice([*files])
        return name, bytes_spoiled(files[name], rng)
    if kind <= 5:
        text = text_spoiled(plain_csv(), rng)
        encoding = rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "utf-32"))
        content = text.encode(encoding, "replace")
        if rng.randrange(8) == 0:
            return "text.csv.gz", gzip.compress(content, mtime=0) + rng.choice(
                (b"", b"\0" * 9, b"x", gzip.compress(b"a", mtime=0))
            )
        return "text" + rng.choice((".csv", ".csv", ".csv", ".tsv", ".txt", "", ".json", ".xlsx")), content
    if kind == 6:
        spoiled = tree_spoiled(rows_as_json(), rng)
        if rng.randrange(2) and isinstance(spoiled, list):
            return "tree.jsonl", "".join(json.dumps(line) + "\n" for line in spoiled).encode()
        return "tree.json", json.dumps(spoiled, indent=rng.choice((None, 1))).encode()
    if kind == 7:
        name = rng.choice(("a.xlsx", "a.ods"))
        return name, archive_spoiled(files[name], rng)
    if kind == 8:
        table, suffix = strange_table(rng), rng.choice(("parquet", "arrow", "stream"))
        try:
            if suffix == "parquet":
                return "strange.parquet", _parquet(table)
            return "strange.arrow", _ipc(table, ipc.new_file if suffix == "arrow" else ipc.new_stream)
        except (pa.ArrowException, ValueError):  # types that the format does not hold
            return "strange.arrow", _ipc(table, ipc.new_file)
    name, other = rng.choice([*files]), rng.choice([*files])
    one, two = files[name], files[other]
    return name, one[: rng.randrange(len(one))] + two[rng.randrange(len(two)) :]


def rows_as_json() -> Any:
    return json.loads(json.dumps(rows(), default=str))
