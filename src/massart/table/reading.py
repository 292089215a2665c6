"""Files to tables: CSV and its kin, workbooks, JSON lines, Parquet and Arrow, plain or compressed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from massart.progress import Callback, silent
from massart.table.delimited import Delimited, Widened
from massart.table.dialect import Known
from massart.table.errors import TableError
from massart.table.gaps import with_gaps
from massart.table.json_lines import JsonLines
from massart.table.sources import Format, Source, broken_stream, compression_of, format_of, open_source, open_stream
from massart.table.spreadsheet import Spreadsheet
from massart.table.table import Table, checked, named
from massart.table.tidy import tidied

BUFFER_BYTES = 1 << 20
"""Without buffers of this size Arrow holds all bytes of a Parquet file while it decodes them."""

_HEAD_BYTES = 1 << 12


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    sheet: str | int | None = None,
    skip: int | None = None,
    na: Sequence[str] = (),
    callback: Callback = silent,
) -> Table:
    """Read a table from a file.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, JSON lines, Parquet or Arrow (Feather), each also compressed by gzip, zstd or bz2; or a workbook
        (.xlsx, .ods, .xls); "-" is standard input.
    delimiter, encoding, decimal : str, optional
        Of a text file: what parts its cells, its encoding and its decimal mark. By default they are found from its
        first lines.
    sheet : str or int, optional
        Of a workbook: its name or its number, from 1. By default the largest that can be seen.
    skip : int, optional
        Lines above the column names; found by default.
    na : sequence of str
        Texts that mean that a value is missing, besides "", "-", "NA" and the like.
    callback : callable
        Called with a `Progress` as bytes are read.

    Raises
    ------
    TableError
        One line that names the file and what is wrong with it.
    """
    known = known_of(delimiter, encoding, decimal, sheet, skip, na)
    source = open_source(path)
    with in_plain_words(source):
        kind, head = kind_of(source)
        if kind in (Format.PARQUET, Format.ARROW):
            arrow = _read_parquet(source, callback) if kind is Format.PARQUET else _read_arrow(source, head, callback)
            arrow.validate(full=True)  # a stranger's file may hold texts that are no UTF-8, or offsets that lead astray
            table = checked(arrow.rename_columns(named(arrow.column_names)), source.name)
        else:
            text = open_text(source, kind, head, known, callback)
            table = checked(_parsed(text), source.name, text.decimal, text.spellings)
            if not isinstance(text, JsonLines):
                table = without_strays(table, text.remarks)
    source.check_unchanged()
    return replace(table, arrow=with_gaps(table.arrow, known.na)) if known.na else table


def known_of(
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    sheet: str | int | None,
    skip: int | None,
    na: Sequence[str],
) -> Known:
    """Return what a caller knows of a file; ValueError if that cannot be."""
    if skip is not None and skip < 0:
        raise ValueError(f"skip must be a number of lines, got {skip}")
    listed = (na,) if isinstance(na, str) else tuple(map(str, na))
    return Known(delimiter, encoding, decimal, None if sheet is None else str(sheet), skip, listed)


def without_strays(table: Table, remarks: tuple[str, ...]) -> Table:
    """Return a table as it was read without the rows that are no part of it, and with remarks that say so."""
    arrow, kept, said = tidied(table.arrow, table.decimal)
    numbers = table.numbers if kept is None else np.flatnonzero(kept)
    if arrow.num_rows == 0:
        raise TableError(f"{table.name}: there are no rows below the column names")
    return replace(table, arrow=arrow, numbers=numbers, remarks=(*remarks, *said))


@contextmanager
def in_plain_words(source: Source, where: str = "") -> Iterator[None]:
    """Turn what goes wrong while a source is read, or a part of it such as " in row group 3", into a TableError."""
    try:
        yield
    except TableError:
        source.check_unchanged()
        raise
    except MemoryError:
        raise TableError(f"{source.name}: the table does not fit into memory") from None
    except (pa.ArrowException, OSError, UnicodeError) as error:
        source.check_unchanged()
        raise _explained(source, error, where) from None


def kind_of(source: Source) -> tuple[Format, bytes]:
    """Return what a source holds, with its first bytes, decompressed."""
    with open_stream(source, silent) as stream:
        head: bytes = stream.read(_HEAD_BYTES)
    if not head:
        raise TableError(f"{source.name}: the file is empty")
    if compression_of(head) is not None:
        raise TableError(f"{source.name}: the file is compressed twice: unpack it once")
    return format_of(source, head), head


def open_text(
    source: Source, kind: Format, head: bytes, known: Known, callback: Callback
) -> Delimited | JsonLines | Spreadsheet:
    """Return what parses a text or a workbook."""
    if kind is Format.JSON:
        return JsonLines(source, head, known.encoding, callback)
    if kind is Format.WORKBOOK:
        if compression_of(source.head()) is not None:
            raise TableError(f"{source.name}: this is a compressed workbook: unpack it first")
        return Spreadsheet(source, known.sheet, known.skip, callback)
    return Delimited(source, head, known, callback=callback)


def _parsed(text: Delimited | JsonLines | Spreadsheet) -> pa.Table:
    while True:
        try:
            return pa.Table.from_batches(list(text.batches()), text.schema)
        except Widened:
            continue


def _read_parquet(source: Source, callback: Callback) -> pa.Table:
    with pa.parquet.ParquetFile(_seekable(source, callback), pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
        return file.read()


def _read_arrow(source: Source, head: bytes, callback: Callback) -> pa.Table:
    file = _seekable(source, callback)
    if head.startswith(b"ARROW1"):
        return pa.ipc.open_file(file).read_all()
    return pa.ipc.open_stream(file).read_all()


def _seekable(source: Source, callback: Callback) -> pa.NativeFile:
    stream = open_stream(source, callback)
    if compression_of(source.head()) is None:
        return pa.PythonFile(stream, mode="r")
    return pa.BufferReader(stream.read())


def _explained(source: Source, error: Exception, where: str) -> TableError:
    kind = "file"
    compressed = compression_of(source.head()) is not None
    if compressed and isinstance(error, OSError):
        return broken_stream(source, error)
    head = source.head()
    if head.startswith(b"PAR1"):
        kind = "Parquet file"
        with source.open() as file:
            file.seek(max(source.size - 4, 0))
            if file.read() != b"PAR1":
                return TableError(f"{source.name}: the Parquet file is cut short: its last bytes are missing")
    elif head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        kind = "Arrow file"
    elif isinstance(error, OSError) and error.errno is not None:
        return broken_stream(source, error)
    return TableError(f"{source.name}: the {kind} is damaged or cut short{where}: copy or download it again")
