"""Sheets of workbooks (.xlsx, .ods, .xls) as tables.

A sheet is a grid of cells in which a table lies somewhere: below a title, beside empty columns, with totals under it.
Cells have types of their own, so numbers and dates need no reading; numbers that were typed as text do. Nothing of a
workbook is run and nothing is fetched: macros, links and formulas are passed over, and a formula counts with the value
that the program which saved it computed.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from massart.progress import Callback, Progress, silent
from massart.rows import FloatArray
from massart.table.errors import MissingLibrary, TableError, counted, listed, near, quote
from massart.table.header import header_row
from massart.table.numbers import LARGEST_EXACT, read_numbers
from massart.table.sources import Source
from massart.table.table import check_names, named
from massart.table.workbook import Oddities, check_size, damaged, look_at, place_of, sheet_parts

_HEADER_ROWS = 200
_SHOWN = 5
_FIRST_ROWS = 100
_BYTES_A_CELL = 4  # a cell takes some 30 bytes of XML, and a number in memory 8

Cells = Sequence[object]
_Merged = tuple[tuple[int, int], tuple[int, int]]


class Spreadsheet:
    """One sheet of a workbook, by its name or its number from 1; read when its columns are first asked for.

    By default it is the only sheet that can be seen, or the largest, and its header is found, not below so many rows to
    `skip`. There is nothing to say of how a sheet is written: `decimal` is None, and `spellings` are empty.
    """

    decimal = None

    def __init__(self, source: Source, sheet: str | None, skip: int | None, callback: Callback = silent) -> None:
        self.spellings: dict[str, str] = {}
        self._source, self._sheet, self._skip, self._callback = source, sheet, skip, callback
        self._is_archive = source.head().startswith(b"PK")
        self._unpacked = source.size
        if self._is_archive:
            with source.open() as file:
                self._unpacked = check_size(file, source.name, source.size)

    @property
    def nbytes(self) -> int:
        """About what the table takes in memory at most."""
        return self._unpacked // _BYTES_A_CELL

    @property
    def names(self) -> list[str]:
        """Names of the columns, all different."""
        return list(self._read[0])

    @cached_property
    def types(self) -> list[pa.DataType]:
        """Types of the columns; the caller may make them wider."""
        return [column.type for column in self._read[1]]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know: which sheet it is, and cells that have no value."""
        return self._read[2]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return pa.schema(zip(self.names, self.types, strict=True))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in one batch."""
        columns = [column.cast(kind) for column, kind in zip(self._read[1], self.types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @cached_property
    def _read(self) -> tuple[Sequence[str], Sequence[pa.Array], tuple[str, ...]]:
        name, remarks = self._source.name, []
        self._callback(Progress(f"reading {name}", 0, float(self._source.size), 0.0))
        with self._opened() as book:
            sheet, oddities = self._chosen(book)
            if len(book.sheet_names) > 1:
                n_sheets = len(book.sheet_names)
                remarks.append(f"Read the sheet {quote(sheet.name)} of {n_sheets:,}; --sheet names another.")
            rows = _grid(sheet, name)
            merged = sheet.merged_cell_ranges or []
        self._callback(Progress(f"reading {name}", self._source.size, 0.0, 0.0))
        start = header_row(rows[:_HEADER_ROWS]) if self._skip is None else self._skip
        if start >= len(rows):
            raise TableError(f"{name}: the sheet {quote(sheet.name)} has no row below the {start:,} that are skipped")
        if start and self._skip is None:
            lines = "row" if start == 1 else f"{start:,} rows"
            remarks.append(f"Left out the first {lines}: the column names are in row {start + 1:,} of the sheet.")
        _fill_merged(rows, merged, start)
        body = rows[start + 1 :]
        columns = [*zip(*body, strict=True)] if body else [() for _ in rows[start]]
        kept = [j for j, cell in enumerate(rows[start]) if cell != "" or any(value != "" for value in columns[j])]
        if not kept:
            raise TableError(f"{name}: the sheet {quote(sheet.name)} is empty")
        names = named([_as_text(rows[start][j]) for j in kept])
        check_names(names, name)
        remarks += self._about(oddities, start, dict(zip(kept, names, strict=True)), len(body))
        return names, [_column(columns[j]) for j in kept], tuple(remarks)

    def _opened(self) -> Any:
        try:
            import python_calamine
        except ModuleNotFoundError:
            raise MissingLibrary("reading workbooks needs python-calamine: pip install 'massart[excel]'") from None
        try:
            path = self._source.path
            return python_calamine.CalamineWorkbook.from_object(path if path is not None else self._source.open())
        except python_calamine.PasswordError:
            raise TableError(f"{self._source.name}: the workbook has a password: save it without one") from None
        except (python_calamine.CalamineError, OSError, ValueError):
            raise damaged(self._source.name) from None

    def _chosen(self, book: Any) -> tuple[Any, Oddities]:
        """Return the sheet, and what is odd about it."""
        import python_calamine

        name, seen = self._source.name, []
        for sheet in book.sheets_metadata:
            if sheet.typ == python_calamine.SheetTypeEnum.WorkSheet:
                visible = sheet.visible == python_calamine.SheetVisibleEnum.Visible
                seen += [sheet.name] if visible or self._sheet is not None else []
        if not seen:
            raise TableError(f"{name}: the workbook has no sheet with cells")
        is_xlsx = self._is_archive and b"mimetype" not in self._source.head()[:64]
        parts = {}
        if is_xlsx:
            with self._source.open() as file:
                parts = sheet_parts(file, name)
        wanted = self._sheet
        if wanted is None:
            wanted = seen[0] if not parts else max(seen, key=lambda one: parts.get(one, ("", 0))[1])
        elif wanted not in seen:
            if not (wanted.isdigit() and 1 <= int(wanted) <= len(seen)):
                raise TableError(f"{name}: no sheet {quote(wanted)}: {near(wanted, seen)}")
            wanted = seen[int(wanted) - 1]
        oddities = Oddities({}, ())
        if is_xlsx:
            if wanted not in parts:
                raise damaged(name)
            with self._source.open() as file:
                oddities = look_at(file, parts[wanted][0], name)
        try:
            return book.get_sheet_by_name(wanted), oddities
        except (python_calamine.CalamineError, OSError, ValueError):
            raise damaged(name) from None

    def _about(self, oddities: Oddities, start: int, names: dict[int, str], n_rows: int) -> list[str]:
        """Return remarks on cells that have no value although something is written there."""
        remarks = []
        for what, cells in (("errors", oddities.errors), ("formulas", oddities.formulas)):
            below = [(cell, *place_of(cell)) for cell in cells]
            below = [(cell, row, j) for cell, row, j in below if row > start and j in names]
            if not below:
                continue
            words = (f"{cell} ({oddities.errors[cell]})" if what == "errors" else cell for cell, _, _ in below)
            shown = listed(words, len(below), _SHOWN)
            if what == "errors":
                remarks.append(f"Took {counted(len(below), 'error')} in the sheet as missing: {shown}.")
                continue
            counts = np.bincount([j for _, _, j in below])
            worst = int(np.argmax(counts))
            if 2 * counts[worst] > n_rows:
                raise TableError(
                    f"{self._source.name}: column {quote(names[worst])} holds formulas without values "
                    f"({shown}): open the file in a spreadsheet program and save it"
                )
            remarks.append(
                f"Took {counted(len(below), 'formula')} without a value as missing: {shown} (a spreadsheet "
                "program computes them when it saves the file)."
            )
        return remarks


def _grid(sheet: Any, name: str) -> list[list[object]]:
    """Return the cells of a sheet from its corner on; "" where there is none."""
    try:
        rows: list[list[object]] = sheet.to_python(skip_empty_area=False)
    except MemoryError:
        raise
    except Exception:
        raise damaged(name) from None
    if not rows or not any(cell != "" for row in rows for cell in row):
        raise TableError(f"{name}: the sheet {quote(sheet.name)} is empty")
    return rows


def _fill_merged(rows: list[list[object]], merged: Sequence[_Merged], start: int) -> None:
    """Give all rows of a merged cell its value: it is written in the first one alone."""
    for (top, left), (bottom, _) in merged:
        if top > start and bottom > top and left < len(rows[0]):
            for row in rows[top + 1 : bottom + 1]:
                row[left] = rows[top][left]


def _column(cells: Cells) -> pa.Array:
    """Return cells as a column of what they all are; of several kinds, as text."""
    kinds = set(map(type, cells))
    if kinds == {str}:
        texts = pa.array(cells, pa.string())
        blank = pc.equal(pc.utf8_trim_whitespace(texts), "")
        return (
            pc.if_else(blank, pa.scalar(None, pa.string()), texts)
            if not pc.all(blank).as_py()
            else pa.nulls(len(texts))
        )
    if str in kinds:
        cells = [None if isinstance(cell, str) and not cell.strip() else cell for cell in cells]
        kinds = set(map(type, cells)) - {type(None)}
    if not kinds:
        return pa.nulls(len(cells))
    if kinds <= {float, int}:
        return _numbers(cells)
    if kinds == {bool}:
        return pa.array(cells, pa.bool_())
    if kinds == {datetime.date}:
        return pa.array(cells, pa.date32())
    if kinds == {datetime.date, datetime.datetime} or kinds == {datetime.datetime}:
        return pa.array([_at_midnight(cell) for cell in cells], pa.timestamp("us"))
    if kinds == {float, str} or kinds == {float, int, str}:
        found = _typed_as_text(cells)
        if found is not None:
            return found
    return pa.array([None if cell is None else _as_text(cell) for cell in cells], pa.string())


def _numbers(cells: Cells) -> pa.Array:
    """Return numbers as integers if all are whole: a sheet has only floats."""
    values = np.array(cells, dtype=np.float64)  # None becomes NaN; pa.array would import pandas, if there is one
    there = ~np.isnan(values)
    valid = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    floats = pa.Array.from_buffers(pa.float64(), len(values), [valid, pa.py_buffer(values)])
    if not all(map(_are_whole, (values[there][:_FIRST_ROWS], values[there]))):
        return floats
    return floats.cast(pa.int64())


def _are_whole(numbers: FloatArray) -> bool:
    return bool((numbers == np.floor(numbers)).all() and (np.abs(numbers) < LARGEST_EXACT).all())


def _typed_as_text(cells: Cells) -> pa.Array | None:
    """Return numbers of which some were typed as text; None if a text is no number."""
    texts = pa.array(sorted({cell.strip() for cell in cells if isinstance(cell, str)}))
    found = read_numbers(texts, np.ones(len(texts), dtype=np.int64))
    if not (found.is_number | found.missing).all() or found.inexact.any() or found.percent:
        return None
    if any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts.to_pylist()):
        return None  # codes
    known = dict(zip(texts.to_pylist(), found.values.tolist(), strict=True))
    values = [known[cell.strip()] if isinstance(cell, str) else cell for cell in cells]
    return _numbers([None if value is None or value != value else value for value in values])


def _at_midnight(cell: object) -> object:
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        return datetime.datetime(cell.year, cell.month, cell.day)
    return cell


def _as_text(cell: object) -> str:
    if isinstance(cell, float) and cell == int(cell) and abs(cell) < LARGEST_EXACT:
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, datetime.date | datetime.time) else str(cell)
