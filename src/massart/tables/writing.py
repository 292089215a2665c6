"""Tables to files, whole or not at all, and a table with some values of a column put right.

In a workbook numbers are numbers and texts are texts: a text is never taken for a formula, whatever it begins with.
Wrong cells are in colour, and a second sheet says what was found.
"""

from __future__ import annotations

import datetime
import gzip
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import ArrayLike, NDArray

from massart.rows import BoolArray, FloatArray, check_place, replacing
from massart.tables.design import Date, Target, column_values
from massart.tables.errors import TableError, library, quote
from massart.tables.numbers import as_dates, read_numbers
from massart.tables.source import COMPRESSIONS
from massart.tables.stream import INDEX, Stream, narwhals
from massart.tables.table import (
    LARGEST_EXACT,
    Table,
    as_text,
    assembled,
    decoded,
    is_text,
    levels_of,
    matches,
    plain_values,
)

MOST_ROWS, MOST_COLUMNS, _LONGEST_TEXT = 1 << 20, 1 << 14, 32_767
"""What a sheet of Excel holds."""

_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson")
_BOOK = ".xlsx"
_BINARIES = (".parquet", ".arrow", ".feather", _BOOK)
# Spreadsheets run what begins with one of these as a formula.
_FORMULA = "^([=+\\-@\t\r])"
_PLAIN_NUMBER = r"^[-+]?(?:[1-9][\d.,' ]*|0(?:[.,]\d*)?)$"  # without a currency or a unit, and no code such as 007


@dataclass(frozen=True, slots=True)
class Notes:
    """What a workbook shows besides its rows; other formats do not."""

    marked: Mapping[str, BoolArray] = field(default_factory=dict)  # of a column, the cells in colour
    findings: Sequence[Sequence[object]] = ()  # the rows of a second sheet
    # of columns of text that were read as numbers, the decimal mark: their plain numbers are written as numbers
    decimals: Mapping[str, str] = field(default_factory=dict)


NO_NOTES = Notes()


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
    with table_writer(path, harmless=True, notes=notes) as write:
        write(assembled(columns, Path(path).name))


def csv_text(columns: Mapping[str, object]) -> str:
    """Return what `write_columns` writes to a CSV file."""
    stream = io.BytesIO()
    with _Writer(pa.PythonFile(stream, "w"), ".csv") as writer:
        writer.write(_without_formulas(assembled(columns, "the result")))
    return stream.getvalue().decode()


def write_table(path: str | Path, table: Table, notes: Notes = NO_NOTES) -> None:
    """Write a table in the format that the suffix names; its texts stay as they are."""
    with table_writer(path, harmless=False, notes=notes) as write:
        write(table.arrow)


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
            return _BookWriter(self._stream, self._notes)
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
    safe = partial(pc.replace_substring_regex, pattern=_FORMULA, replacement=r"'\1")
    columns = [safe(decoded(one).cast(pa.large_string())) if is_text(one.type) else one for one in arrow.columns]
    return pa.table(columns, names=safe(pa.array(arrow.column_names, pa.string())).to_pylist())


def _write_json(stream: BinaryIO | pa.NativeFile, arrow: pa.Table) -> None:
    as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for block in arrow.to_batches(1 << 16):
        columns = (plain_values(pa.chunked_array([column])) for column in block.columns)
        try:
            lines = [as_json(dict(zip(arrow.column_names, row, strict=True))) for row in zip(*columns, strict=True)]
        except ValueError:
            raise pa.ArrowInvalid("an infinite number") from None
        stream.write("".join(f"{line}\n" for line in lines).encode())


class _BookWriter:
    """A workbook, written part by part."""

    def __init__(self, stream: BinaryIO, notes: Notes) -> None:
        # No text is taken for a formula, a number or a link; rows go to a temporary file as they come.
        options = dict.fromkeys(("strings_to_formulas", "strings_to_numbers", "strings_to_urls"), False)
        xlsxwriter = library("xlsxwriter", "writing workbooks", "excel")
        self._book: Any = xlsxwriter.Workbook(stream, {"constant_memory": True, **options})
        self._book.set_properties({"created": datetime.datetime(2000, 1, 1), "author": "massart"})
        self._sheet = self._book.add_worksheet("rows")
        self._of_names = self._book.add_format({"bold": True, "bottom": 1})
        self._of_wrong = self._book.add_format({"bg_color": "#FFC7CE", "font_color": "#9C0006"})
        self._notes, self._row, self._n_columns = notes, 0, 0

    def write_table(self, arrow: pa.Table) -> None:
        """Write rows, below the names of the columns if they are the first."""
        if self._row + arrow.num_rows >= MOST_ROWS or arrow.num_columns > MOST_COLUMNS:
            raise TableError(
                f"the workbook: a sheet holds {MOST_ROWS - 1:,} rows and {MOST_COLUMNS:,} columns: write CSV or Parquet"
            )
        if self._row == 0:
            self._sheet.freeze_panes(1, 0)
            self._n_columns = arrow.num_columns
            for j, name in enumerate(arrow.column_names):
                self._sheet.set_column(j, j, min(max(len(name) + 2, 8), 60))
            self._write_row(arrow.column_names, [self._of_names] * arrow.num_columns)
        marks = [self._notes.marked.get(name) for name in arrow.column_names]
        start = self._row - 1
        columns = [self._cells(name, arrow[name]) for name in arrow.column_names]
        for k, cells in enumerate(zip(*columns, strict=True)):
            red = [None if mark is None or not mark[start + k] else self._of_wrong for mark in marks]
            self._write_row(cells, red)

    def _cells(self, name: str, column: pa.ChunkedArray) -> list[object]:
        cells, decimal = plain_values(column), self._notes.decimals.get(name)
        if decimal is None or not is_text(column.type):
            return cells
        levels = levels_of(column)
        read = read_numbers(levels.texts, levels.counts, decimal=decimal)
        plain = matches(levels.texts, _PLAIN_NUMBER) & np.isfinite(read.values) & ~read.inexact
        numbers = dict(zip(levels.texts.filter(pa.array(plain)).to_pylist(), read.values[plain].tolist(), strict=True))
        return [numbers.get(cell.strip(), cell) if isinstance(cell, str) else cell for cell in cells]

    def close(self) -> None:
        """Write the findings, and finish the file."""
        self._sheet.autofilter(0, 0, max(self._row - 1, 0), max(self._n_columns - 1, 0))
        if self._notes.findings:
            self._sheet, self._row = self._book.add_worksheet("findings"), 0
            self._sheet.set_column(0, 0, 24)
            self._sheet.set_column(1, 1, 90)
            for cells in self._notes.findings:
                self._write_row(cells, [self._of_names if j == 0 else None for j in range(len(cells))])
        self._book.close()

    def _write_row(self, cells: Sequence[object], formats: Sequence[Any]) -> None:
        for j, (cell, form) in enumerate(zip(cells, formats, strict=True)):
            is_number = isinstance(cell, int | float) and abs(cell) <= LARGEST_EXACT and math.isfinite(cell)
            if is_number or cell is None or cell == "":
                self._sheet.write(self._row, j, cell, form)
            else:
                self._sheet.write_string(self._row, j, str(cell)[:_LONGEST_TEXT], form)
        self._row += 1


def replaced(
    table: Table,
    entry: Target,
    rows: Sequence[int] | NDArray[np.intp],
    values: ArrayLike,
    original: str,
    *,
    whole: bool | None = None,
) -> Table:
    """Return a table in which some values of a column are replaced; as `original` the column stays right behind it.

    The column is read as the entry says. It becomes integers if all its numbers are whole, by these rows unless the
    caller says so, and floats otherwise; dates are in ISO form; missing values stay missing. Values within rounding
    error of a short decimal become that decimal.
    """
    column = entry.column
    if original in table.column_names:
        raise TableError(f"{table.name}: there is a column {quote(original)} already")
    before = table.column(column)
    numbers = column_values(table, entry)
    numbers[np.asarray(rows, dtype=np.intp)] = shortened(np.asarray(values, dtype=np.float64))
    missing = np.isnan(numbers)
    after = as_dates(numbers) if isinstance(entry, Date) else pa.array(numbers, mask=missing)
    if whole is None:
        whole = bool((numbers[~missing] == np.round(numbers[~missing])).all())
    integers = whole and not isinstance(entry, Date) and not pa.types.is_floating(before.type)
    if integers and np.abs(numbers[~missing]).max(initial=0) <= LARGEST_EXACT:
        after = pc.cast(after, pa.int64())
    place = table.column_names.index(column)
    arrow = table.arrow.set_column(place, column, after).add_column(place + 1, original, before)
    spellings = dict(table.spellings)
    if column in spellings:
        spellings[original] = spellings[column]
    return replace(table, arrow=arrow, spellings=spellings)


def shortened(values: FloatArray, digits: int = 9, rounding: float = 1e-12) -> FloatArray:
    """Return values with those replaced by a decimal of few digits that differ from it only by rounding.

    Examples
    --------
    >>> shortened(np.array([0.1 + 0.2, 1 / 3]))
    array([0.3       , 0.33333333])
    """
    short = np.array([float(f"{value:.{digits}g}") for value in values], dtype=np.float64)
    return np.where(np.abs(short - values) <= rounding * np.abs(values), short, values)


# --- data frames ---


def frame_in(source: object) -> object | None:
    """Return the data frame that a source of a table is, if it is one."""
    return None if isinstance(source, str | Path | Table | Stream | Mapping) else source


def frame_like(frame: object, columns: Mapping[str, Any] | pa.Table, rows: NDArray[np.intp]) -> Any:
    """Return columns as a data frame of the kind of another: of pandas, with the index that `rows` of it have."""
    arrow = columns if isinstance(columns, pa.Table) else assembled(columns, "the result")
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return arrow
    nw = narwhals()
    wrapped: Any = nw.from_native(frame)
    found: Any = nw.from_arrow(arrow, backend=wrapped.implementation).to_native()
    if wrapped.implementation.is_pandas_like():
        pandas: Any = frame
        labels = {INDEX, *pandas.index.names} - {*pandas.columns}  # which the index has
        found = found.drop(columns=[name for name in found.columns if name in labels])
        found.index = pandas.index.take(rows)
    return found
