"""Sheets of workbooks (.xlsx, .ods, .xls) as tables.

A sheet is a grid of cells in which a table lies somewhere: below a title, next to empty columns, with totals under it.
Cells have types of their own, so numbers and dates need no reading; numbers that were typed as text do. Nothing of a
workbook is run and nothing is fetched: macros, links and formulas are passed over, and a formula counts with the value
that the program which saved it computed.

A workbook is a ZIP archive of XML that a stranger wrote. A few kilobytes may unpack to terabytes, and two cells at the
corners of a sheet span seventeen billion; the library that reads it believes both. So sizes are checked in the
archive's directory and the extent of a sheet in its cells, in one pass over its text, which also finds the cells that
the library leaves empty without a word.
"""

from __future__ import annotations

import datetime
import io
import lzma
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from html import unescape
from posixpath import join, normpath
from typing import IO, Any

import numpy as np
import pyarrow as pa

from massart.rows import FloatArray, Progress
from massart.tables.errors import MissingLibrary, TableError, counted, listed, near, quote
from massart.tables.numbers import read_numbers
from massart.tables.source import Beginning, Format, ReadOptions, Source
from massart.tables.table import LARGEST_EXACT, check_names, named
from massart.tables.text import header_row

MOST_BYTES = 1 << 31
MOST_CELLS = 1 << 25
MOST_TIMES = 250
"""A workbook that unpacks to this many times its size is a bomb; sheets of one number in all cells reach 120."""

_SMALL_BYTES = 1 << 27  # a smaller one is no harm, however small it was packed
_CHUNK_BYTES = 1 << 24
_OVERLAP_BYTES = 1 << 12
_MOST_PARTS = 10_000
_DIRECTORY_BYTES = 1 << 22
_BYTES_A_CELL = 4  # a cell takes some 30 bytes of XML, and a number in memory 8
_HEADER_ROWS = 200
_SHOWN = 5
_SHEET = re.compile(rb"<(?:\w+:)?sheet\s[^>]*>")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\s[^>]*>")
_BEYOND_Z = re.compile(rb"""r="[A-Za-z]{2,}\d""")
_WIDE = re.compile(rb"""\sr=["']([A-Za-z]{2,})(\d+)["']""")
_FORMULA = re.compile(
    rb"""<c\s[^>]*\br=["']([A-Z]+\d+)["'][^>]*>\s*<f(?:[^>]*/>|[^>]*>[^<]*</f>)\s*(?:</c>|<v\s*/>|<v>\s*</v>)"""
)
_ERROR = re.compile(rb"""<c\s(?=[^>]*\bt=["']e["'])[^>]*\br=["']([A-Z]+\d+)["'][^>]*>(?:<f.*?)??<v>(#[^<]*)</v>""")

Cells = Sequence[object]
_Merged = tuple[tuple[int, int], tuple[int, int]]
_OddCells = tuple[dict[str, str], tuple[str, ...]]  # by references such as B7: errors, and formulas without values


class Workbook:
    """One sheet of a workbook, by its name or its number from 1; a `massart.tables.source.Reader`.

    By default it is the only sheet that can be seen, or the largest, and its header is found. It is read when its
    columns are first asked for. A sheet does not say how it is written: `decimal` is None, and `spellings` are empty.
    """

    decimal = None

    def __init__(self, source: Source, beginning: Beginning, options: ReadOptions) -> None:
        self.spellings: dict[str, str] = {}
        self._source, self._options, self._beginning = source, options, beginning
        if beginning.is_packed:
            raise TableError(f"{source.name}: this is a compressed workbook: unpack it first")
        self._is_archive = beginning.data.startswith(b"PK")
        self.nbytes = source.size // _BYTES_A_CELL
        if self._is_archive:
            with self._archive() as archive:
                self.nbytes = self._checked_size(archive) // _BYTES_A_CELL

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
        """Which sheet it is, and which cells have no value."""
        return self._read[2]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in one batch."""
        columns = [column.cast(kind) for column, kind in zip(self._read[1], self.types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(zip(self.names, self.types, strict=True)))

    @cached_property
    def _read(self) -> tuple[Sequence[str], Sequence[pa.Array], tuple[str, ...]]:
        name, callback, skip = self._source.name, self._options.callback, self._options.skip
        callback(Progress(f"reading {name}", 0, float(self._source.size), 0.0))
        sheet, rows, merged, odd, remarks = self._sheet()
        callback(Progress(f"reading {name}", self._source.size, 0.0, 0.0))
        start = header_row(rows[:_HEADER_ROWS]) if skip is None else skip
        if start >= len(rows):
            raise TableError(f"{name}: the sheet {quote(sheet)} has no row below the {start:,} that are skipped")
        if start and skip is None:
            lines = "row" if start == 1 else f"{start:,} rows"
            remarks.append(f"Left out the first {lines}: the column names are in row {start + 1:,} of the sheet.")
        _fill_merged(rows, merged, start)
        columns = [*zip(*rows[start + 1 :], strict=True)] or [() for _ in rows[start]]
        kept = [j for j, cell in enumerate(rows[start]) if cell != "" or any(value != "" for value in columns[j])]
        if not kept:
            raise TableError(f"{name}: the sheet {quote(sheet)} is empty")
        names = named([_as_text(rows[start][j]) for j in kept])
        check_names(names, name)
        remarks += self._about_cells(*odd, start, dict(zip(kept, names, strict=True)), len(rows) - start - 1)
        return names, [_column(columns[j]) for j in kept], tuple(remarks)

    def _sheet(self) -> tuple[str, list[list[Any]], Sequence[_Merged], _OddCells, list[str]]:
        """Return the name of the sheet, its cells, "" where there is none, those merged, those odd, and remarks."""
        try:
            import python_calamine
        except ModuleNotFoundError:
            raise MissingLibrary("reading workbooks needs python-calamine: pip install 'massart[excel]'") from None
        path: Any = self._source.path
        remarks: list[str] = []
        try:
            in_memory = path is None or self._beginning.is_all
            with python_calamine.CalamineWorkbook.from_object(self._file() if in_memory else path) as book:
                name, odd = self._chosen(
                    {
                        sheet.name: sheet.visible == python_calamine.SheetVisibleEnum.Visible
                        for sheet in book.sheets_metadata
                        if sheet.typ == python_calamine.SheetTypeEnum.WorkSheet
                    }
                )
                if len(book.sheet_names) > 1:
                    n_sheets = len(book.sheet_names)
                    remarks.append(f"Read the sheet {quote(name)} of {n_sheets:,}; --sheet names another.")
                sheet = book.get_sheet_by_name(name)
                rows: list[list[Any]] = sheet.to_python(skip_empty_area=False)
                merged = sheet.merged_cell_ranges or []
        except (TableError, MemoryError):
            raise
        except python_calamine.PasswordError:
            raise TableError(f"{self._source.name}: the workbook has a password: save it without one") from None
        except Exception:
            raise self._damaged() from None
        if not any(cell != "" for row in rows for cell in row):
            raise TableError(f"{self._source.name}: the sheet {quote(name)} is empty")
        return name, rows, merged, odd, remarks

    def _chosen(self, sheets: Mapping[str, bool]) -> tuple[str, _OddCells]:
        """Return the name of the sheet to read, and its odd cells; by default it is the largest that can be seen.

        The sheets are given with whether they can be seen.
        """
        name, wanted = self._source.name, self._options.sheet
        seen = [sheet for sheet, is_visible in sheets.items() if is_visible or wanted is not None]
        if not seen:
            raise TableError(f"{name}: the workbook has no sheet with cells")
        if wanted is not None and wanted not in seen:
            if not (wanted.isdigit() and 1 <= int(wanted) <= len(seen)):
                raise TableError(f"{name}: no sheet {quote(wanted)}: {near(wanted, seen)}")
            wanted = seen[int(wanted) - 1]
        if not self._is_archive or b"mimetype" in self._beginning.data[:64]:  # .xls and .ods
            return wanted or seen[0], ({}, ())
        with self._archive() as archive:
            parts = self._sheet_parts(archive)
            chosen = wanted or max(seen, key=lambda one: parts.get(one, ("", 0))[1])
            if chosen not in parts:
                raise self._damaged()
            return chosen, self._odd_cells(archive, parts[chosen][0])

    def _file(self) -> Any:
        return io.BytesIO(self._beginning.data) if self._beginning.is_all else self._source.open()

    def _about_cells(
        self, errors: dict[str, str], formulas: Sequence[str], start: int, names: dict[int, str], n_rows: int
    ) -> list[str]:
        """Return remarks on cells that have no value although something is written there."""
        remarks: list[str] = []
        below = [cell for cell in errors if _is_below(cell, start, names)]
        if below:
            shown = listed((f"{cell} ({errors[cell]})" for cell in below), len(below), _SHOWN)
            remarks.append(f"Took {counted(len(below), 'error')} in the sheet as missing: {shown}.")
        below = [cell for cell in formulas if _is_below(cell, start, names)]
        if below:
            shown = listed(below, len(below), _SHOWN)
            worst, count = Counter(place_of(cell)[1] for cell in below).most_common(1)[0]
            if 2 * count > n_rows:
                raise TableError(
                    f"{self._source.name}: column {quote(names[worst])} holds formulas without values "
                    f"({shown}): open the file in a spreadsheet program and save it"
                )
            remarks.append(
                f"Took {counted(len(below), 'formula')} without a value as missing: {shown} (a spreadsheet program "
                "computes them when it saves the file)."
            )
        return remarks

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        """Open the archive; whatever is wrong with it or with a part that is read is one TableError."""
        try:
            with self._file() as file, zipfile.ZipFile(file) as archive:
                yield archive
        except TableError:
            raise
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, EOFError, OSError, ValueError):
            raise self._damaged() from None

    def _damaged(self) -> TableError:
        return TableError(
            f"{self._source.name}: the workbook is damaged or cut short: copy or download it again, or save it as CSV"
        )

    def _checked_size(self, archive: zipfile.ZipFile) -> int:
        """Return how many bytes of XML the archive unpacks to; TableError if they are too many."""
        name, stored, parts = self._source.name, self._source.size, archive.infolist()
        if len(parts) > _MOST_PARTS:
            raise TableError(f"{name}: the workbook has {len(parts):,} parts, more than {_MOST_PARTS:,}")
        total = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
        if total > MOST_BYTES or (total > _SMALL_BYTES and total > MOST_TIMES * stored):
            raise TableError(
                f"{name}: the workbook unpacks to {total / 2**20:,.0f} MiB, {total / max(stored, 1):,.0f} times its "
                "size: it is not read (save the sheet as CSV if you trust it)"
            )
        return total

    def _sheet_parts(self, archive: zipfile.ZipFile) -> dict[str, tuple[str, int]]:
        """Return for each sheet of an .xlsx file the part of the archive that holds it, and its size in bytes."""
        sizes = {part.filename: part.file_size for part in archive.infolist()}
        book, relations = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
        if any(sizes.get(part, _DIRECTORY_BYTES + 1) > _DIRECTORY_BYTES for part in (book, relations)):
            raise self._damaged()
        targets = {}
        for tag in _RELATION.findall(archive.read(relations)):
            found = _attributes(tag)
            place = found.get("Target", "")
            targets[found.get("Id", "")] = place[1:] if place.startswith("/") else normpath(join("xl", place))
        parts = {}
        for tag in _SHEET.findall(archive.read(book)):
            found = _attributes(tag)
            relation = next((value for key, value in found.items() if key.endswith(":id")), "")
            part = targets.get(relation, "")
            if part in sizes and "worksheets" in part:
                parts[unescape(found.get("name", ""))] = (part, sizes[part])
        return parts

    def _odd_cells(self, archive: zipfile.ZipFile, part: str) -> _OddCells:
        """Look through the XML of a sheet before the library does; TableError if it spans too many cells.

        Return the cells that the library leaves empty: those with errors, and what is written there (``#REF!``), and
        those with formulas that have no value, because no spreadsheet program has computed them.
        """
        width, height = 0, 0
        errors: dict[str, str] = {}
        formulas: dict[str, None] = {}
        with archive.open(part) as stream:
            for chunk in _chunks(stream):
                width, height = _extent(chunk, width, height)
                if width * height > MOST_CELLS:
                    raise TableError(
                        f"{self._source.name}: the sheet spans {height:,} rows and {width:,} columns, more than "
                        f"{MOST_CELLS:,} cells: it is not read (copy what is needed to a new sheet)"
                    )
                if b"<f" in chunk:
                    formulas |= dict.fromkeys(found.decode() for found in _FORMULA.findall(chunk))
                if b't="e"' in chunk or (b"'" in chunk and b"t='e'" in chunk):
                    errors |= {cell.decode(): words.decode(errors="replace") for cell, words in _ERROR.findall(chunk)}
        return errors, tuple(formulas)


def _extent(chunk: bytes, width: int, height: int) -> tuple[int, int]:
    """Return how many columns and rows a sheet spans at least, by its cells in the columns behind Z.

    Sheets of up to 26 columns span no more than a few million cells.
    """
    if _BEYOND_Z.search(chunk) or (b"'" in chunk and _WIDE.search(chunk)):
        for letters, digits in set(_WIDE.findall(chunk)):
            width, height = max(width, _number(letters)), max(height, int(digits))
    return width, height


def place_of(cell: str) -> tuple[int, int]:
    """Return row and column, from 0, of a reference.

    Examples
    --------
    >>> place_of("AB12")
    (11, 27)
    """
    letters = cell.rstrip("0123456789")
    return int(cell[len(letters) :]) - 1, _number(letters.encode()) - 1


def _is_below(cell: str, start: int, names: Container[int]) -> bool:
    """Whether a cell is in a column that is read, below the header."""
    row, j = place_of(cell)
    return row > start and j in names


def _number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a text in chunks; what may have been cut at the end of one is in the next as well."""
    rest = b""
    while data := stream.read(_CHUNK_BYTES):
        yield rest + data
        rest = data[-_OVERLAP_BYTES:]


def _attributes(tag: bytes) -> dict[str, str]:
    found = re.findall(rb"""([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""", tag)
    return {key.decode(): (one or other).decode(errors="replace") for key, one, other in found}


def _fill_merged(rows: list[list[object]], merged: Sequence[_Merged], start: int) -> None:
    """Give all rows of a merged cell its value: it is written in the first one alone."""
    for (top, left), (bottom, _) in merged:
        if top > start and bottom > top and left < len(rows[0]):
            for row in rows[top + 1 : bottom + 1]:
                row[left] = rows[top][left]


def _column(cells: Cells) -> pa.Array:
    """Return cells as a column of what they all are; of several types, as text."""
    cells = [None if isinstance(cell, str) and not cell.strip() else cell for cell in cells]
    kinds = set(map(type, cells)) - {type(None)}
    if not kinds:
        return pa.nulls(len(cells))
    if kinds <= {float, int}:
        return _numbers(cells)
    if kinds in ({bool}, {datetime.date}):
        return pa.array(cells)
    if kinds <= {datetime.date, datetime.datetime}:
        return pa.array([_at_midnight(cell) for cell in cells], pa.timestamp("us"))
    found = _typed_as_text(cells) if kinds <= {float, int, str} and kinds != {str} else None
    return (
        pa.array([None if cell is None else _as_text(cell) for cell in cells], pa.string()) if found is None else found
    )


def _numbers(cells: Cells) -> pa.Array:
    """Return numbers as integers if all are whole: a sheet has only floats."""
    values = np.array(cells, dtype=np.float64)  # None becomes NaN; pa.array would import pandas, if there is one
    there = ~np.isnan(values)
    valid = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    floats = pa.Array.from_buffers(pa.float64(), len(values), [valid, pa.py_buffer(values)])
    if not all(map(_are_whole, (values[there][:100], values[there]))):
        return floats
    return floats.cast(pa.int64())


def _are_whole(numbers: FloatArray) -> bool:
    return bool((numbers == np.floor(numbers)).all() and (np.abs(numbers) < LARGEST_EXACT).all())


def _typed_as_text(cells: Cells) -> pa.Array | None:
    """Return numbers some of which were typed as text; None if a text is not a number, or is a code such as 007."""
    texts = sorted({cell.strip() for cell in cells if isinstance(cell, str)})
    found = read_numbers(pa.array(texts), np.ones(len(texts), dtype=np.int64))
    has_code = any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts)
    if has_code or not (found.is_number | found.missing).all() or found.inexact.any() or found.percent:
        return None
    known = dict(zip(texts, found.values.tolist(), strict=True))
    values = [known[cell.strip()] if isinstance(cell, str) else cell for cell in cells]
    return _numbers([None if value != value else value for value in values])


def _at_midnight(cell: object) -> object:
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        return datetime.datetime(cell.year, cell.month, cell.day)
    return cell


def _as_text(cell: object) -> str:
    if isinstance(cell, float) and cell == int(cell) and abs(cell) < LARGEST_EXACT:
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, datetime.date | datetime.time) else str(cell)


def _is_workbook(source: Source, head: bytes) -> bool:
    """Whether a file is an archive with the parts of a workbook, or an old Excel file."""
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return True
    if not head.startswith(b"PK\x03\x04"):
        return False
    if b"xl/workbook.bin" in head or source.suffix == ".xlsb":
        raise TableError(f"{source.name}: this is a binary Excel workbook: save it as .xlsx")
    if b"wordprocessingml" in head or source.suffix in (".docx", ".odt", ".pptx"):
        raise TableError(f"{source.name}: this is a document, not a workbook: save the table as CSV")
    marks = (b"xl/", b"[Content_Types].xml", b"opendocument.spreadsheet")
    return source.suffix in FORMAT.suffixes or any(mark in head for mark in marks)


FORMAT = Format("a workbook", (".xlsx", ".xlsm", ".ods", ".xls"), is_binary=True, matches=_is_workbook, read=Workbook)
