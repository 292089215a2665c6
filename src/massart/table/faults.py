"""Where a text file is not a table: the line at fault, found by a second, slower reading after the first one failed."""

from __future__ import annotations

import csv
import re
from typing import Any

from massart.table.dialect import Dialect
from massart.table.errors import TableError, counted, quote
from massart.table.sources import Source
from massart.table.text import check_utf_8, lines_of

_ARROWS_WORDS = re.compile(r"Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


def find_fault(source: Source, encoding: str, dialect: Dialect, quotes: int, words: str = "") -> TableError:
    """Return the first fault of a file that could not be parsed, given the number of quotation marks in all of it.

    Where Python's parser finds no fault, the `words` of Arrow's tell.
    """
    check_utf_8(source, encoding)
    with lines_of(source, encoding) as lines:
        for _ in range(dialect.skipped):
            next(lines, None)
        rows = csv.reader(lines, delimiter=dialect.delimiter)
        try:
            fault = _first_odd_row(source, rows, dialect.skipped, quotes)
        except csv.Error:
            line = rows.line_num + dialect.skipped
            return TableError(
                f"{source.name}: a cell that ends near line {line:,} is longer than {csv.field_size_limit():,} "
                "characters: is a quotation mark before it never closed?"
            )
    if fault is not None:
        return fault
    said = _ARROWS_WORDS.search(words)
    if said is not None:
        return TableError(
            f"{source.name}: a line has {said[2]} fields, but the header has {said[1]}; it begins with {quote(said[3])}"
        )
    return TableError(f"{source.name}: a line is too long to be read: is a quotation mark never closed?")


def open_quote(source: Source, encoding: str, dialect: Dialect) -> TableError | None:
    """Return the error for a last row that began with a quotation mark and swallowed lines up to the end; else None."""
    with lines_of(source, encoding) as lines:
        for _ in range(dialect.skipped):
            next(lines, None)
        rows = csv.reader(lines, delimiter=dialect.delimiter, strict=True)
        first = 1
        try:
            for _ in rows:
                first = rows.line_num + 1
        except csv.Error as error:
            if "unexpected end of data" in str(error) or "field limit" in str(error):
                return _never_closed(source, first + dialect.skipped)
    return None


def _first_odd_row(source: Source, rows: Any, above: int, quotes: int) -> TableError | None:
    width, first, n_rows = 0, 1, 0
    for row in rows:
        n_rows += bool(row)
        if row and width == 0:
            width = len(row)
        if row and len(row) != width:
            last, line = rows.line_num, first + above
            if quotes % 2 and last > first and next(rows, None) is None:
                return _never_closed(source, line)
            return TableError(
                f"{source.name}: line {line:,} has {counted(len(row), 'field')}, but the header has {width:,} "
                "(a delimiter inside a cell needs quotation marks)"
            )
        first = rows.line_num + 1
    if quotes % 2:
        return TableError(f"{source.name}: a quotation mark is never closed")
    if n_rows < 2:
        return TableError(f"{source.name}: there are no rows below the column names")
    return None


def _never_closed(source: Source, line: int) -> TableError:
    return TableError(f"{source.name}: a quotation mark that opens on line {line:,} is never closed")
