"""Tables to files: whole or not at all."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from massart.files import check_place, replacing
from massart.table.errors import TableError, quote
from massart.table.frames import assembled
from massart.table.levels import decoded, is_text
from massart.table.sheets import BookWriter, Notes
from massart.table.sources import COMPRESSIONS
from massart.table.table import Table, as_text, plain_values

_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson")
_BOOK = ".xlsx"
_BINARIES = (".parquet", ".arrow", ".feather", _BOOK)
_BLOCK_ROWS = 1 << 16
NO_NOTES = Notes()
# Spreadsheets run what begins with one of these as a formula.
_FORMULA = "^([=+\\-@\t\r])"


def check_output(path: str | Path) -> None:
    """Raise TableError if no table can be written to `path`: an unknown suffix, no such folder, no permission."""
    _suffixes(Path(path))
    try:
        check_place(Path(path))
    except ValueError as error:
        raise TableError(str(error)) from None


def write_columns(path: str | Path, columns: Mapping[str, object], notes: Notes = NO_NOTES) -> None:
    """Write columns as a table, in the format that the suffix names.

    Parameters
    ----------
    path : str or Path
        CSV, TSV or JSON lines, also with ``.gz`` or ``.zst`` behind it; Parquet, Arrow or Excel (.xlsx).
    columns : mapping of str to sequence or array
        None, NaN and masked cells are empty. In CSV and TSV a text that a spreadsheet would run as a formula gets an
        apostrophe in front.
    notes : Notes
        What a workbook shows besides.

    Raises
    ------
    TableError
        Without anything written.
    """
    path = Path(path)
    _write(path, assembled(columns, path.name), notes, harmless=True)


def csv_text(columns: Mapping[str, object]) -> str:
    """Return what `write_columns` writes to a CSV file."""
    stream = io.BytesIO()
    with _Writer(pa.PythonFile(stream, "w"), ".csv") as writer:
        writer.write(_without_formulas(assembled(columns, "the result")))
    return stream.getvalue().decode()


def write_table(path: str | Path, table: Table, notes: Notes = NO_NOTES) -> None:
    """Write a table in the format that the suffix names; its texts stay as they are."""
    _write(Path(path), table.arrow, notes, harmless=False)


def _write(path: Path, arrow: pa.Table, notes: Notes, *, harmless: bool) -> None:
    with table_writer(path, harmless=harmless, notes=notes) as write:
        write(arrow)


@contextmanager
def table_writer(path: str | Path, *, harmless: bool, notes: Notes = NO_NOTES) -> Iterator[Callable[[pa.Table], None]]:
    """Write a table part by part: yield a function that takes the next one. Whole at the end, or nothing.

    If it is to be `harmless`, a text that a spreadsheet would run as a formula gets an apostrophe in front, in CSV and
    TSV. The notes are for workbooks.
    """
    path = Path(path)
    check_output(path)
    suffix, compression = _suffixes(path)
    try:
        with (
            replacing(path) as file,
            _compressing(file, compression) as stream,
            _Writer(stream, suffix, notes) as writer,
        ):
            is_text_file = suffix in (".csv", ".tsv")
            yield lambda arrow: writer.write(_without_formulas(arrow) if harmless and is_text_file else arrow)
    except OSError as error:
        raise TableError(f"{quote(path)}: cannot be written ({error.strerror or 'input/output error'})") from None
    except pa.ArrowException:
        raise TableError(f"{quote(path)}: a column holds values that a {suffix} file cannot") from None


def _suffixes(path: Path) -> tuple[str, str | None]:
    """Return the suffix that names the format, and the compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in (".gz", ".zst") else ""
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _TEXTS or (suffix in _BINARIES and not packed):
        return suffix, COMPRESSIONS.get(packed)
    if suffix in _BINARIES:
        raise TableError(f"{quote(path)}: {suffix} files are compressed inside: leave out {packed}")
    known = ", ".join(_TEXTS + _BINARIES)
    raise TableError(f"{quote(path)}: the name has to end in one of {known} (the first four also with .gz or .zst)")


@contextmanager
def _compressing(file: BinaryIO, compression: str | None) -> Iterator[BinaryIO | pa.NativeFile]:
    if compression is None:
        yield file
    elif compression == "gzip":
        # No name and no time inside: the same table gives the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
            yield packed
    else:
        # Arrow closes what it writes to, and this file is not ours to close.
        with os.fdopen(os.dup(file.fileno()), "wb") as twin, pa.CompressedOutputStream(twin, compression) as stream:
            yield stream


class _Writer:
    """One open file of one format, which knows its columns from the first part on."""

    def __init__(self, stream: BinaryIO | pa.NativeFile, suffix: str, notes: Notes = NO_NOTES) -> None:
        self._stream, self._suffix, self._notes = stream, suffix, notes
        self._writer: Any = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, arrow: pa.Table) -> None:
        if self._suffix in (".jsonl", ".ndjson"):
            _write_json(self._stream, arrow)
            return
        if self._suffix in (".csv", ".tsv"):
            arrow = pa.table([_writable(column) for column in arrow.columns], names=arrow.column_names)
        if self._writer is None:
            self._writer = self._opened(arrow.schema)
        self._writer.write_table(arrow)

    def _opened(self, schema: pa.Schema) -> Any:
        if self._suffix == ".parquet":
            return pa.parquet.ParquetWriter(self._stream, schema)
        if self._suffix in (".csv", ".tsv"):
            delimiter = "\t" if self._suffix == ".tsv" else ","
            return pa.csv.CSVWriter(self._stream, schema, write_options=pa.csv.WriteOptions(delimiter=delimiter))
        if self._suffix == _BOOK:
            return BookWriter(self._stream, "the workbook", self._notes)
        return pa.ipc.new_file(self._stream, schema)


def _writable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    column = decoded(column)
    kind = column.type
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_date(kind):
        return column
    return column.cast(pa.large_string()) if is_text(kind) else as_text(column)


def _without_formulas(arrow: pa.Table) -> pa.Table:
    names = pa.array(arrow.column_names, pa.string())
    safe = pc.replace_substring_regex(names, _FORMULA, r"'\1").to_pylist()
    return pa.table([_without_formula(column) for column in arrow.columns], names=safe)


def _without_formula(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not is_text(column.type):
        return column
    return pc.replace_substring_regex(decoded(column).cast(pa.large_string()), _FORMULA, r"'\1")


def _write_json(stream: BinaryIO | pa.NativeFile, arrow: pa.Table) -> None:
    names = arrow.column_names
    as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for start in range(0, arrow.num_rows, _BLOCK_ROWS):
        block = arrow.slice(start, _BLOCK_ROWS)
        text = io.StringIO()
        for row in zip(*map(plain_values, block.columns), strict=True):
            text.write(as_json(dict(zip(names, row, strict=True))) + "\n")
        stream.write(text.getvalue().encode())
