"""Tables as Excel workbooks: what is wrong in colour, and a sheet that says what was found.

Numbers are numbers and texts are texts: a text is never taken for a formula, whatever it begins with.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, BinaryIO

import pyarrow as pa

from massart.rows import BoolArray
from massart.table.errors import MissingLibrary, TableError
from massart.table.numbers import LARGEST_EXACT
from massart.table.table import plain_values

MOST_ROWS = 1 << 20
MOST_COLUMNS = 1 << 14

_LONGEST_TEXT = 32_767
_RED, _DARK_RED = "#FFC7CE", "#9C0006"
_SAME_BYTES = datetime.datetime(2000, 1, 1)
_WIDEST, _NARROWEST = 60, 8


@dataclass(frozen=True, slots=True)
class Notes:
    """What a workbook shows besides its rows; other formats do not."""

    marked: Mapping[str, BoolArray] = field(default_factory=dict)  # of a column, the cells in colour
    findings: Sequence[Sequence[object]] = ()  # the rows of a second sheet


class BookWriter:
    """A workbook, written part by part; its name is for messages."""

    def __init__(self, stream: BinaryIO, name: str, notes: Notes) -> None:
        # No text is taken for a formula, a number or a link; rows go to a temporary file as they come.
        options = dict.fromkeys(("strings_to_formulas", "strings_to_numbers", "strings_to_urls"), False)
        self._book: Any = _library().Workbook(stream, {"constant_memory": True, **options})
        self._book.set_properties({"created": _SAME_BYTES, "author": "massart"})
        self._sheet = self._book.add_worksheet("rows")
        self._formats = {
            "name": self._book.add_format({"bold": True, "bottom": 1}),
            "wrong": self._book.add_format({"bg_color": _RED, "font_color": _DARK_RED}),
        }
        self._name, self._notes, self._row = name, notes, 0

    def write_table(self, arrow: pa.Table) -> None:
        """Write rows, below the names of the columns if they are the first."""
        if self._row + arrow.num_rows >= MOST_ROWS or arrow.num_columns > MOST_COLUMNS:
            raise TableError(
                f"{self._name}: a sheet holds {MOST_ROWS - 1:,} rows and {MOST_COLUMNS:,} columns: write CSV or Parquet"
            )
        if self._row == 0:
            self._sheet.freeze_panes(1, 0)
            for j, name in enumerate(arrow.column_names):
                self._sheet.set_column(j, j, min(max(len(name) + 2, _NARROWEST), _WIDEST))
            self._write_row(arrow.column_names, [self._formats["name"]] * arrow.num_columns)
        marks = [self._notes.marked.get(name) for name in arrow.column_names]
        start = self._row - 1
        for k, cells in enumerate(zip(*map(plain_values, arrow.columns), strict=True)):
            red = [None if mark is None or not mark[start + k] else self._formats["wrong"] for mark in marks]
            self._write_row(cells, red)

    def close(self) -> None:
        """Write the findings, and finish the file."""
        if self._notes.findings:
            self._sheet, self._row = self._book.add_worksheet("findings"), 0
            self._sheet.set_column(0, 0, 24)
            self._sheet.set_column(1, 1, 90)
            for cells in self._notes.findings:
                self._write_row(cells, [self._formats["name"] if j == 0 else None for j in range(len(cells))])
        self._book.close()

    def _write_row(self, cells: Sequence[object], formats: Sequence[Any]) -> None:
        for j, (cell, form) in enumerate(zip(cells, formats, strict=True)):
            self._write(j, cell, form)
        self._row += 1

    def _write(self, j: int, cell: object, form: Any) -> None:
        sheet, row = self._sheet, self._row
        if isinstance(cell, bool):
            sheet.write_boolean(row, j, cell, form)
        elif isinstance(cell, int | float) and abs(cell) <= LARGEST_EXACT and math.isfinite(cell):
            sheet.write_number(row, j, cell, form)
        elif cell is None or cell == "":
            sheet.write_blank(row, j, None, form)
        else:
            sheet.write_string(row, j, str(cell)[:_LONGEST_TEXT], form)


def _library() -> Any:
    try:
        return import_module("xlsxwriter")
    except ModuleNotFoundError:
        raise MissingLibrary("writing workbooks needs xlsxwriter: pip install 'massart[excel]'") from None
