"""Text files around whose table there is something else: titles above it, footers and notes below, headings between.

Such lines have fewer cells than the table, so a parser of tables refuses the file. They are taken out here, the rest
is written as it should have been, and the parser reads that. A line that has more cells than the header, or nearly as
many, may be data with something wrong in it, and stays an error.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from massart.table.dialect import DELIMITERS, Known
from massart.table.errors import counted, listed, quote
from massart.table.header import header_row, is_empty, is_number, says_total
from massart.table.sources import Source
from massart.table.text import lines_of

MOST_BYTES = 1 << 28
BLANKS = " "
_LEAST_ROWS = 3
_SAMPLE_ROWS = 500
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Mended:
    """A text file as a plain CSV file in memory, in UTF-8, with how that is written, and what was taken out."""

    source: Source
    known: Known
    remarks: tuple[str, ...]


def mend(source: Source, encoding: str, known: Known, sample: str) -> Mended | None:
    """Return a text file without the lines that are no part of its table; None if it has none, or is too large."""
    if source.size > MOST_BYTES:
        return None
    found = _delimiter_and_header(sample, known)
    if found is None:
        return None
    delimiter, start = found
    by_blanks = delimiter == BLANKS
    with lines_of(source, encoding) as lines:
        rows: list[list[str]] = []
        numbers: list[int] = []
        if by_blanks:
            rows = [line.split() for line in lines]
            numbers = [*range(1, len(rows) + 1)]
            delimiter = ";"
        else:
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            try:
                for row in reader:
                    rows.append(row)
                    numbers.append(reader.line_num)
            except csv.Error:
                return None
    if start >= len(rows):
        return None
    header = rows[start]
    width = _width(header, rows[start + 1 : start + _SAMPLE_ROWS])
    end = 1 + max((place for place in range(start, len(rows)) if len(rows[place]) >= width), default=start)
    if end < len(rows) and rows[end]:
        end = len(rows)
    # Below a blank line, where no row is as long as the table, there is something else: another table, say.
    dropped = [place for place in range(end, len(rows)) if rows[place]]
    kept: list[list[str]] = []
    for place in range(start + 1, end):
        row = rows[place]
        if not row:
            continue
        if len(row) > width and all(is_empty(cell) for cell in row[width:]):
            row = row[:width]
        if len(row) < width and _is_aside(row, width):
            dropped.append(place)
            continue
        if len(row) != width:
            return None  # the parser says what is wrong with it, and where
        kept.append(row)
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([*header[:width], *[""] * (width - len(header))])
    writer.writerows(kept)
    content = text.getvalue().encode("utf-8", "surrogateescape")
    remarks = ["Took blanks for what parts the cells."] if by_blanks else []
    above = [place for place in range(start) if any(not is_empty(cell) for cell in rows[place])]
    if above and known.skip is None:
        line = numbers[start - 1] + 1 if start else 1
        lines_above = counted(len(above), "line")
        remarks.append(f"Left out {lines_above} above the column names, which are in line {line:,} of the file.")
    if dropped:
        lines_below = (f"line {numbers[place]:,} {quote(_first(rows[place]))}" for place in dropped)
        shown = listed(lines_below, len(dropped), _SHOWN)
        remarks.append(f"Left out {counted(len(dropped), 'line')} of text: {shown}.")
    mended = replace(source, path=None, content=content, size=len(content), padding=0)
    return Mended(mended, replace(known, delimiter=delimiter, encoding="utf-8", skip=None), tuple(remarks))


def is_odd(sample: str, known: Known) -> bool:
    """Whether the first lines do not look like a header and rows of its width."""
    if known.delimiter is not None and (len(known.delimiter) != 1 or known.delimiter in '"\r\n'):
        return False
    if known.skip:
        return True
    if sample.lstrip('"')[:4].lower() == "sep=":  # Excel's own first line
        return False
    found = _delimiter_and_header(sample, known)
    if found is None:
        return False
    delimiter, start = found
    if delimiter == BLANKS:
        return True
    rows = _rows(sample, delimiter)
    widths = {len(row) for row in rows[:-1] if row}
    return (start > 0 and any(map(bool, rows[:start]))) or len(widths) > 1


def _delimiter_and_header(sample: str, known: Known) -> tuple[str, int] | None:
    """Return what parts the cells, and the row with the names: the delimiter with which most rows are equally long."""
    best, score = None, (0.0, 0)
    for delimiter in DELIMITERS if known.delimiter is None else (known.delimiter,):
        rows = _rows(sample, delimiter)
        if not rows:
            continue
        start = header_row(rows) if known.skip is None else _after_lines(sample, delimiter, known.skip)
        if start is None or start >= len(rows):
            continue
        width = len(rows[start])
        below = [len(row) for row in rows[start + 1 :] if row]
        if width < 2 or not below:
            continue
        alike = sum(n == width or n == width + 1 for n in below) / len(below)
        if (alike, width) > score:
            best, score = (delimiter, start), (alike, width)
    if best is None and known.delimiter is None and known.skip is None and _are_numbers_in_columns(sample):
        return BLANKS, 0
    return best


def _are_numbers_in_columns(sample: str) -> bool:
    """Whether a text is names and below them mostly numbers, as many in each line, with blanks between."""
    rows = [row for row in (line.split() for line in sample.splitlines()[:-1]) if row]
    if len(rows) < _LEAST_ROWS or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return False
    cells = [cell for row in rows[1:] for cell in row]
    return header_row(rows) == 0 and 2 * sum(map(is_number, cells)) > len(cells)


def _after_lines(sample: str, delimiter: str, skip: int) -> int | None:
    """Return the number of the first row that begins after so many lines."""
    reader = csv.reader(sample.splitlines(keepends=True), delimiter=delimiter)
    try:
        for place, _ in enumerate(reader):
            if reader.line_num >= skip:
                return place + 1 if skip else 0
    except csv.Error:
        return None
    return None


def _rows(sample: str, delimiter: str) -> list[list[str]]:
    try:
        return [*islice(csv.reader(sample.splitlines(keepends=True), delimiter=delimiter), _SAMPLE_ROWS)]
    except csv.Error:
        return []


def _width(header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of the table: that of its header, unless most rows have more."""
    width = len(header)
    longer = sum(any(not is_empty(cell) for cell in row[width:]) for row in rows)
    return width if 2 * longer <= len(rows) else max(map(len, rows))


def _is_aside(row: Sequence[str], width: int) -> bool:
    """Whether a short line is no row of the table: few words, and no number unless it is a total."""
    words = [cell for cell in row if not is_empty(cell)]
    if 2 * len(words) > max(width, 2):
        return False
    return says_total(_first(row)) or not any(is_number(cell) for cell in words)


def _first(row: Sequence[str]) -> str:
    return next((cell for cell in row if not is_empty(cell)), "")
