"""How a text file writes a table: what parts its cells, its decimal mark, and columns that must stay text.

Everything is decided from the first lines, by parsing them in each way that is possible and keeping the way in which
most lines have as many cells as the header.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from massart.table.errors import TableError, quote
from massart.table.numbers import MISSING

DELIMITERS = (",", ";", "\t", "|")

_SAMPLE_ROWS = 1000
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_DIRECTIVE = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)  # Excel writes it as the first line
_CODE = re.compile(r"[-+]?0(\d+|[xX][0-9a-fA-F]+)")
# A mark with three digits after it may part thousands, so it is no evidence.
_DECIMAL_COMMA = re.compile(r"[-+]?(\d*,(\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+)")
_DECIMAL_POINT = re.compile(r"[-+]?(\d*\.(\d{1,2}|\d{4,})|0\.\d+|\d{4,}\.\d+)")


@dataclass(frozen=True, slots=True)
class Known:
    """What the caller knows of how a file writes its table; None where it is to be found out."""

    delimiter: str | None = None  # of a text file: what parts its cells
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None  # of a workbook: the name or the number, from 1, of a sheet
    skip: int | None = None  # lines of a text file, or rows of a sheet, above the header
    na: tuple[str, ...] = ()  # texts that mean that a value is missing, besides those that everybody knows


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the cells of a text file are found and read."""

    delimiter: str
    decimal: str | None  # "." or "," where the file gives evidence, None where it does not
    skipped: int  # lines above the header
    coded: frozenset[int]  # columns with cells such as 007 or 0x1F, which would not be the same as numbers
    quoted: bool  # whether the first lines hold quotation marks
    # what the first lines of a column have most often, if not nothing, where a number is missing
    spellings: Mapping[int, str]

    @property
    def decimal_point(self) -> str:
        """The decimal mark to parse with."""
        return self.decimal or "."


def sniff(sample: str, name: str, suffix: str, known: Known) -> Dialect:
    """Return the dialect of a text from its first lines, which are whole; ``.tsv`` settles a tie for tabs."""
    delimiter, decimal = known.delimiter, known.decimal
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n' or ord(delimiter) > 127):
        raise TableError(f"{name}: the delimiter must be one plain character, got {quote(delimiter)}")
    if decimal is not None and decimal not in (".", ","):
        raise TableError(f'{name}: the decimal mark must be "." or ",", got {quote(decimal)}')
    if not sample.strip("\r\n \t,;|"):
        raise TableError(f"{name}: the file holds no text but blanks")
    directive = _DIRECTIVE.match(sample)
    if directive:
        sample = sample[directive.end() :]
        delimiter = delimiter or directive[1]
    header = next(_rows(sample, delimiter or ","), [])
    if sample.count('"') % 2 and any("\n" in cell for cell in header):
        raise TableError(f"{name}: a quotation mark that opens in the header is never closed")
    found = delimiter or _best_delimiter(sample, suffix)
    if found is None:
        _refuse_odd_delimiters(sample, name)
        found = ","
    body = list(_rows(sample, found))[1:]
    if decimal is None and found != ",":
        decimal = _decimal_mark(body)
    coded = frozenset(j for row in body for j, cell in enumerate(row) if _CODE.fullmatch(cell.strip()))
    return Dialect(found, decimal, int(directive is not None), coded, '"' in sample, _spellings(body))


def _spellings(rows: Sequence[Sequence[str]]) -> dict[int, str]:
    missing = frozenset(MISSING)
    counts = Counter((j, cell) for row in rows for j, cell in enumerate(row) if cell in missing)
    most: dict[int, str] = {}
    for (j, cell), _ in counts.most_common():
        most.setdefault(j, cell)
    return {j: cell for j, cell in most.items() if cell}


def _best_delimiter(sample: str, suffix: str) -> str | None:
    best, best_score = None, (0.0, False, 0)
    for delimiter in DELIMITERS:
        widths = [len(row) for row in _rows(sample, delimiter)]
        if not widths or widths[0] < 2:
            continue
        alike = sum(width == widths[0] for width in widths) / len(widths)
        score = (alike, delimiter == "\t" and suffix in (".tsv", ".tab"), widths[0])
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _refuse_odd_delimiters(sample: str, name: str) -> None:
    lines = [line for line in sample.splitlines()[:_SAMPLE_ROWS] if line.strip()]
    for delimiter in (" ", ":", "^", "~", "\x01"):
        widths = {len(line.split(None if delimiter == " " else delimiter)) for line in lines}
        if len(lines) > 1 and len(widths) == 1 and widths != {1}:
            words = _NAMES.get(delimiter, quote(delimiter))
            raise TableError(
                f"{name}: only one column was found; cells seem to be parted by {words}: name the delimiter"
            )
    inside = [delimiter for delimiter in DELIMITERS if any(delimiter in line for line in lines[1:])]
    if inside:
        raise TableError(
            f"{name}: only one column was found, but lines below the header hold {_NAMES[inside[0]]}: "
            "is there a header, and is the delimiter right?"
        )


def _rows(sample: str, delimiter: str) -> Iterator[list[str]]:
    try:
        rows = csv.reader(sample.splitlines(keepends=True), delimiter=delimiter)
        yield from islice((row for row in rows if row), _SAMPLE_ROWS)
    except csv.Error:  # a cell too long, as after a quotation mark that is never closed: the reader will say so
        return


def _decimal_mark(rows: Sequence[Sequence[str]]) -> str | None:
    commas = sum(_DECIMAL_COMMA.fullmatch(cell.strip()) is not None for row in rows for cell in row)
    points = sum(_DECIMAL_POINT.fullmatch(cell.strip()) is not None for row in rows for cell in row)
    if commas == points:
        return None
    return "," if commas > points else "."
