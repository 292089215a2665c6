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
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from posixpath import join, normpath
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from massart.rows import Progress
from massart.tables.delimited import header_row
from massart.tables.errors import TableError, counted, library, listed, near, quote
from massart.tables.numbers import read_numbers
from massart.tables.parts import ParsedPart
from massart.tables.source import Beginning, Format, ReadOptions, Source
from massart.tables.table import LARGEST_EXACT, filled, named

MOST_CELLS = 1 << 25
MOST_BYTES, MOST_TIMES = 1 << 31, 250
"""A workbook unpacks to at most this number of bytes, and to at most this multiple of its size: sheets of one number in
all cells reach 120."""

_WIDE = re.compile(rb"""\sr=["']([A-Za-z]{2,})(\d+)["']""")
_FORMULA = re.compile(
    rb"""<c\s[^>]*\br=["']([A-Z]+\d+)["'][^>]*>\s*<f(?:[^>]*/>|[^>]*>[^<]*</f>)\s*(?:</c>|<v\s*/>|<v>\s*</v>)"""
)
_ERROR = re.compile(rb"""<c\s(?=[^>]*\bt=["']e["'])[^>]*\br=["']([A-Z]+\d+)["'][^>]*>(?:<f.*?)??<v>(#[^<]*)</v>""")

_OddCells = dict[str, str]  # by references such as B7: what an error says, "" for a formula without a value


class Workbook(ParsedPart):
    """One sheet of a workbook, by its name or its number from 1.

    By default it is the only sheet that can be seen, or the largest, and its header is found.
    """

    def __init__(self, source: Source, beginning: Beginning, options: ReadOptions) -> None:
        super().__init__(source, options)
        self._beginning = beginning
        if beginning.is_packed:
            raise TableError(f"{source.name}: this is a compressed workbook: unpack it first")
        options.callback(Progress(f"reading {source.name}", 0, float(source.size), 0.0))
        sheet, rows, merged, odd, remarks = self._sheet()
        options.callback(Progress(f"reading {source.name}", source.size, 0.0, 0.0))
        start = self._header(sheet, rows, remarks)
        _fill_merged(rows, merged, start)
        header, body = rows[start], rows[start + 1 :]
        cells = [*zip(*body, strict=True)] or [() for _ in header]
        kept = [j for j, cell in enumerate(header) if cell != "" or any(value != "" for value in cells[j])]
        self.names = named((_as_text(header[j]) or "" for j in kept), source.name)
        self._columns = [_column(cells[j]) for j in kept]
        self.types = [column.type for column in self._columns]
        self.nbytes = sum(column.nbytes for column in self._columns)
        self._remarks = (*remarks, *self._about(odd, start, dict(zip(kept, self.names, strict=True)), len(body)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Which sheet it is, and which cells have no value."""
        return self._remarks

    def parsed(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in one batch."""
        columns = [column.cast(kind) for column, kind in zip(self._columns, self.types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, self.names)

    def _sheet(self) -> tuple[str, list[list[Any]], Sequence[Any], _OddCells, list[str]]:
        """Return the name of the sheet, its cells, "" where there is none, those merged, those odd, and remarks."""
        if self._beginning.data.startswith(b"PK"):
            with self._archive() as archive:
                self._check_size(archive)
        calamine, remarks = library("python_calamine", "reading workbooks", "excel"), []
        try:
            with self.source.open() as file, calamine.CalamineWorkbook.from_object(file) as book:
                seen = {
                    sheet.name: sheet.visible == calamine.SheetVisibleEnum.Visible
                    for sheet in book.sheets_metadata
                    if sheet.typ == calamine.SheetTypeEnum.WorkSheet
                }
                name, odd = self._chosen(seen)
                if (n_sheets := len(book.sheet_names)) > 1:
                    remarks.append(f"Read the sheet {quote(name)} of {n_sheets:,}; --sheet names another.")
                sheet = book.get_sheet_by_name(name)
                rows: list[list[Any]] = sheet.to_python(skip_empty_area=False)
                merged = sheet.merged_cell_ranges or []
        except (TableError, MemoryError):
            raise
        except calamine.PasswordError:
            raise TableError(f"{self.source.name}: the workbook has a password: save it without one") from None
        except Exception:
            raise self._damaged() from None
        return name, rows, merged, odd, remarks

    def _header(self, sheet: str, rows: Sequence[Sequence[Any]], remarks: list[str]) -> int:
        """Return which row has the names of the columns; a remark says so if it is not the first."""
        if not any(cell != "" for row in rows for cell in row):
            raise TableError(f"{self.source.name}: the sheet {quote(sheet)} is empty")
        start = header_row(rows) if self._options.skip is None else self._options.skip
        if start >= len(rows):
            where = f"{self.source.name}: the sheet {quote(sheet)}"
            raise TableError(f"{where} has no row below the {start:,} that are skipped")
        if start and self._options.skip is None:
            lines = "row" if start == 1 else f"{start:,} rows"
            remarks.append(f"Left out the first {lines}: the column names are in row {start + 1:,} of the sheet.")
        return start

    def _chosen(self, sheets: Mapping[str, bool]) -> tuple[str, _OddCells]:
        """Return the name of the sheet to read, and its odd cells; by default it is the largest that can be seen.

        The sheets are given with whether they can be seen.
        """
        name, wanted = self.source.name, self._options.sheet
        seen = [sheet for sheet, is_visible in sheets.items() if is_visible or wanted is not None]
        if not seen:
            raise TableError(f"{name}: the workbook has no sheet with cells")
        if wanted not in (None, *seen):
            wanted = str(wanted)
            if not (wanted.isdigit() and 1 <= int(wanted) <= len(seen)):
                raise TableError(f"{name}: no sheet {quote(wanted)}: {near(wanted, seen)}")
            wanted = seen[int(wanted) - 1]
        if not self._beginning.data.startswith(b"PK") or b"mimetype" in self._beginning.data[:64]:  # .xls and .ods
            return wanted or seen[0], {}
        with self._archive() as archive:
            parts = _sheet_parts(archive)
            chosen = wanted or max(seen, key=lambda one: parts.get(one, ("", 0))[1])
            return chosen, self._odd_cells(archive, parts[chosen][0])

    def _about(self, odd: _OddCells, start: int, names: Mapping[int, str], n_rows: int) -> list[str]:
        """Return remarks on cells that have no value although something is written there."""
        remarks: list[str] = []
        below = [cell for cell in odd if (place := place_of(cell))[0] > start and place[1] in names]
        if errors := [f"{cell} ({odd[cell]})" for cell in below if odd[cell]]:
            shown = listed(errors, len(errors), 5)
            remarks.append(f"Took {counted(len(errors), 'error')} in the sheet as missing: {shown}.")
        if formulas := [cell for cell in below if not odd[cell]]:
            shown = listed(formulas, len(formulas), 5)
            worst, count = Counter(place_of(cell)[1] for cell in formulas).most_common(1)[0]
            if 2 * count > n_rows:
                raise TableError(
                    f"{self.source.name}: column {quote(names[worst])} holds formulas without values "
                    f"({shown}): open the file in a spreadsheet program and save it"
                )
            remarks.append(
                f"Took {counted(len(formulas), 'formula')} without a value as missing: {shown} (a spreadsheet program "
                "computes them when it saves the file)."
            )
        return remarks

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        """Open the archive; whatever is wrong with it or with a part that is read is one TableError."""
        try:
            with self.source.open() as file, zipfile.ZipFile(file) as archive:
                yield archive
        except (TableError, MemoryError):
            raise
        except Exception:  # those of ZIP, of each compression in it and of XML
            raise self._damaged() from None

    def _damaged(self) -> TableError:
        return TableError(
            f"{self.source.name}: the workbook is damaged or cut short: copy or download it again, or save it as CSV"
        )

    def _check_size(self, archive: zipfile.ZipFile) -> None:
        """Raise TableError if the archive unpacks to too many bytes of XML."""
        name, stored, parts = self.source.name, self.source.size, archive.infolist()
        total = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
        if total > MOST_BYTES or total > MOST_TIMES * stored:
            raise TableError(
                f"{name}: the workbook unpacks to {total / 2**20:,.0f} MiB, {total / max(stored, 1):,.0f} times its "
                "size: it is not read (save the sheet as CSV if you trust it)"
            )

    def _odd_cells(self, archive: zipfile.ZipFile, part: str) -> _OddCells:
        """Look through the XML of a sheet before the library does; TableError if it spans too many cells.

        Return the cells that the library leaves empty: those with errors, and what is written there (``#REF!``), and
        those with formulas that have no value, because no spreadsheet program has computed them.
        """
        width, height, rest = 0, 0, b""
        odd: _OddCells = {}
        with archive.open(part) as stream:
            while data := stream.read(1 << 24):
                # What was cut at the end of a chunk is in the next one as well.
                chunk, rest = rest + data, data[-(1 << 12) :]
                for letters, digits in set(_WIDE.findall(chunk)):  # up to the column Z no sheet is too large
                    row, j = place_of((letters + digits).decode())
                    height, width = max(height, row + 1), max(width, j + 1)
                if width * height > MOST_CELLS:
                    raise TableError(
                        f"{self.source.name}: the sheet spans {height:,} rows and {width:,} columns, more than "
                        f"{MOST_CELLS:,} cells: it is not read (copy what is needed to a new sheet)"
                    )
                if b"<f" in chunk:
                    odd |= dict.fromkeys((found.decode() for found in _FORMULA.findall(chunk)), "")
                if b't="e"' in chunk or b"t='e'" in chunk:
                    odd |= {cell.decode(): words.decode(errors="replace") for cell, words in _ERROR.findall(chunk)}
        return odd


def _sheet_parts(archive: zipfile.ZipFile) -> dict[str, tuple[str, int]]:
    """Return for each sheet of an .xlsx file the part of the archive that holds it, and its size in bytes."""
    sizes = {part.filename: part.file_size for part in archive.infolist()}
    relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    targets = {one.get("Id"): normpath(join("/xl", one.get("Target", "")))[1:] for one in relations}
    parts = {}
    for sheet in ElementTree.fromstring(archive.read("xl/workbook.xml")).findall(".//{*}sheet"):
        part = targets.get(next((value for key, value in sheet.items() if key.endswith("}id")), None), "")
        if part in sizes and "worksheets" in part:
            parts[sheet.get("name", "")] = (part, sizes[part])
    return parts


def _fill_merged(rows: Sequence[list[Any]], merged: Sequence[Any], start: int) -> None:
    """Give all rows of a merged cell its value: it is written in the first one alone."""
    for (top, left), (bottom, _) in merged:
        for row in rows[top + 1 : bottom + 1] if top > start and left < len(rows[0]) else ():
            row[left] = rows[top][left]


def place_of(cell: str) -> tuple[int, int]:
    """Return row and column, from 0, of a reference.

    Examples
    --------
    >>> place_of("AB12")
    (11, 27)
    """
    letters = cell.rstrip("0123456789")
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
    return int(cell[len(letters) :]) - 1, number - 1


# --- columns ---


def _column(cells: Sequence[object]) -> pa.Array:
    """Return cells as a column of what they all are; of several types, as text."""
    cells = [None if isinstance(cell, str) and not cell.strip() else cell for cell in cells]
    kinds = set(map(type, cells)) - {type(None)}
    if not kinds:
        return pa.nulls(len(cells))
    if kinds <= {float, int}:
        return _numbers(cells)
    if kinds <= {datetime.date, datetime.datetime}:
        return _dates(cells)
    if kinds == {bool}:
        return pa.array(cells)
    found = _typed_as_text(cells) if kinds in ({float, str}, {int, str}, {float, int, str}) else None
    return pa.array(map(_as_text, cells), pa.string()) if found is None else found


def _dates(cells: Sequence[Any]) -> pa.Array:
    if not any(isinstance(cell, datetime.datetime) for cell in cells):
        return pa.array(cells)
    moments = (datetime.datetime(*cell.timetuple()[:3]) if type(cell) is datetime.date else cell for cell in cells)
    return pa.array(moments, pa.timestamp("us"))


def _numbers(cells: Sequence[Any]) -> pa.Array:
    """Return numbers as integers if all are whole: a sheet has only floats."""
    floats = pa.array([None if cell is None else float(cell) for cell in cells], pa.float64(), from_pandas=True)
    there = filled(floats.drop_null(), 0.0)
    is_whole = (there == np.floor(there)).all() and (np.abs(there) < LARGEST_EXACT).all()
    return floats.cast(pa.int64()) if is_whole else floats


def _typed_as_text(cells: Sequence[Any]) -> pa.Array | None:
    """Return numbers some of which were typed as text; None if a text is not a number, or is a code such as 007."""
    texts = sorted({cell.strip() for cell in cells if isinstance(cell, str)})
    found = read_numbers(pa.array(texts), np.ones(len(texts), dtype=np.int64))
    has_code = any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts)
    if has_code or not (found.is_number | found.missing).all() or found.inexact.any() or found.percent:
        return None
    known = dict(zip(texts, found.values.tolist(), strict=True))
    return _numbers([known[cell.strip()] if isinstance(cell, str) else cell for cell in cells])


def _as_text(cell: object) -> str | None:
    if cell is None:
        return None
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
