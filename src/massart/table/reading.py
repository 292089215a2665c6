"""Files to tables: CSV and its kin, JSON lines, Parquet and Arrow, plain or compressed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

from massart.progress import Callback, silent
from massart.table.delimited import Delimited, Widened
from massart.table.errors import TableError
from massart.table.json_lines import JsonLines
from massart.table.sources import Format, Source, broken_stream, compression_of, format_of, open_source, open_stream
from massart.table.table import Table, checked, named

BUFFER_BYTES = 1 << 20
"""Without buffers of this size Arrow holds all bytes of a Parquet file while it decodes them."""

_HEAD_BYTES = 1 << 12


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    callback: Callback = silent,
) -> Table:
    """Read a table from a file.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, JSON lines, Parquet or Arrow (Feather), each also compressed by gzip, zstd or bz2; "-" is standard
        input.
    delimiter, encoding, decimal : str, optional
        Of a text file: what parts its cells, its encoding and its decimal mark. By default they are found from its
        first lines.
    callback : callable
        Called with a `Progress` as bytes are read.

    Raises
    ------
    TableError
        One line that names the file and what is wrong with it.
    """
    source = open_source(path)
    with in_plain_words(source):
        kind, head = kind_of(source)
        if kind in (Format.TEXT, Format.JSON):
            text = open_text(source, kind, head, delimiter, encoding, decimal, callback)
            table = checked(_parsed(text), source.name, text.decimal, text.spellings)
        else:
            arrow = _read_parquet(source, callback) if kind is Format.PARQUET else _read_arrow(source, head, callback)
            arrow.validate(full=True)  # a stranger's file may hold texts that are no UTF-8, or offsets that lead astray
            table = checked(arrow.rename_columns(named(arrow.column_names)), source.name)
    source.check_unchanged()
    return table


@contextmanager
def in_plain_words(source: Source, where: str = "") -> Iterator[None]:
    """Turn what goes wrong while a source is read into a TableError of one line.

    Parameters
    ----------
    source : Source
    where : str
        The part of the file that is read, such as " (row group 3)".
    """
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
    source: Source,
    kind: Format,
    head: bytes,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    callback: Callback,
) -> Delimited | JsonLines:
    """Return what parses a text."""
    if kind is Format.JSON:
        return JsonLines(source, head, encoding, callback)
    return Delimited(source, head, delimiter=delimiter, encoding=encoding, decimal=decimal, callback=callback)


def _parsed(text: Delimited | JsonLines) -> pa.Table:
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
    if head.startswith(b"FEA1"):
        return pa.feather.read_table(file)
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
    elif head.startswith((b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")):
        kind = "Arrow file"
    elif isinstance(error, OSError) and error.errno is not None:
        return broken_stream(source, error)
    return TableError(f"{source.name}: the {kind} is damaged or cut short{where}: copy or download it again")
