"""How a text file writes a table: its encoding, its delimiter and decimal mark, and its header.

All of it is decided from the beginning of the file: its lines are parsed with each delimiter, and the delimiter with
which most rows have as many cells as the header is kept.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from massart.rows import Callback, silent
from massart.tables.errors import TableError, counted, quote
from massart.tables.numbers import MISSING
from massart.tables.source import Beginning, ReadOptions, Source

UTF_8 = "utf-8"
SPACES = " "
"""The delimiter of files with one or more spaces between the cells, as in columns that are aligned."""

TOTAL = (
    r"^\s*\W*(?:(?:grand|sub|over ?all|end|zwischen|gesamt|general)[ -]?)?"
    r"(?:totals?|totale[ns]?|totaux|sums?|summen?|somm[ae]|sumas?|gesamt|insgesamt|saldo|balance|kontostand|ensemble|"
    r"average|mean|mittelwert|moyenne|media|promedio|durchschnitt)(?:\W.*)?$"
)
"""What a row that sums up others begins with, in English, German, French, Spanish and Italian."""

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_ROWS = 1000
_HEADER_ROWS = 200  # among these is the header
_GUESS_BYTES = 1 << 18  # from these the encoding is guessed; what is not UTF-8 further down is an error
_MARK = b"\xef\xbb\xbf"
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_WINDOWS = re.compile(rb"[\x81\x8d\x8f\x90\x9d\x00-\x08\x0e-\x1b]")
_NO_UTF_8 = re.compile("[\udc80-\udcff]")  # what "surrogateescape" makes of it
_DIRECTIVE = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)  # Excel writes it as the first line
_CODE = re.compile(r"[-+]?0(\d+|[xX][0-9a-fA-F]+)")
# A mark with three digits after it may separate thousands, so it is not evidence.
_DECIMAL_COMMA = re.compile(r"[-+]?(\d*,(\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+)")
_DECIMAL_POINT = re.compile(r"[-+]?(\d*\.(\d{1,2}|\d{4,})|0\.\d+|\d{4,}\.\d+)")
_NUMBER = re.compile(r"[-+(]?\s*[^\w\s]?\s*\d[\d.,' \u00a0\u202f%]*\)?-?(?:\s*[^\W\d]{1,3}\.?)?")
_YEAR = re.compile(r"(?:19|20)\d\d(?:\.0)?")  # may be the name of a column
_MISSING = frozenset(MISSING)


def encoding_of(source: Source, beginning: Beginning, asked: str | None) -> tuple[str, str]:
    """Return the encoding of a text, and a remark where it was guessed.

    It is the one asked for, that of a byte order mark, or UTF-8; or that of Windows, if the first bytes are not UTF-8
    but may be what Windows writes, and none of them is a letter in UTF-8.
    """
    if asked is not None:
        try:
            "".encode(asked)  # refuses what is not an encoding of text, such as base64
            return codecs.lookup(asked).name, ""
        except LookupError:
            raise TableError(
                f"{source.name}: {quote(asked)} is not an encoding of text: try utf-8, latin-1 or cp1252"
            ) from None
    data = beginning.data[:_GUESS_BYTES]
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding, ""
    text = data.decode(UTF_8, "surrogateescape")
    cut = 3 if len(beginning.data) > len(data) else 0  # a letter may be cut at the end
    odd = _NO_UTF_8.search(text[: len(text) - cut])
    letters = (c for c in text if not c.isascii() and not "\udc80" <= c <= "\udcff")
    if odd is None or b"\0" in data or _NO_WINDOWS.search(data) or next(letters, None) is not None:
        return UTF_8, ""
    return "cp1252", "Read the text in the encoding of Windows (cp1252), for it is not UTF-8; --encoding names another."


class Text:
    """The text of a source as UTF-8 without a byte order mark, read once from its start.

    Attributes
    ----------
    quotes : int
        Quotation marks read so far: an odd number at the end is a sign of one that is never closed.
    """

    def __init__(self, source: Source, encoding: str, callback: Callback = silent, stream: Any = None) -> None:
        self.quotes = 0
        self.source, self.encoding = source, encoding
        self._stream = source.open_unpacked(callback) if stream is None else stream
        self._decoder = None if encoding == UTF_8 else codecs.getincrementaldecoder(encoding)()
        self._done = self._lines = 0  # lines are counted where text is decoded, and for UTF-8 only if somebody asks

    def __enter__(self) -> Text:
        """Return the text."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the source."""
        self._stream.close()

    def read(self, size: int) -> bytes:
        """Return up to about `size` bytes; none at the end."""
        data = self._read(size)
        if b'"' in data:  # looking is quicker than counting
            self.quotes += data.count(b'"')
        if b"\0" in data:
            line = line_at(self.source, self.encoding, self._done + data.index(b"\0"))
            raise TableError(
                f"{self.source.name}: line {line:,} holds a NUL byte, so this is not a text file: export the table as "
                "CSV, or name its encoding (--encoding utf-16-le)"
            )
        self._done += len(data)
        return data

    def _read(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        if self._decoder is not None:
            data = self._decoded(data, size)
        return data if self._done else data.removeprefix(_MARK)

    def _decoded(self, data: bytes, size: int) -> bytes:
        assert self._decoder is not None
        try:
            text = self._decoder.decode(data, final=not data)
            while data and not text:  # a character that is not complete yet: nothing must not look like the end
                data = self._stream.read(max(size, 16))
                text = self._decoder.decode(data, final=not data)
        except UnicodeError:
            raise TableError(
                f"{self.source.name}: line {self._lines + 1:,} or below is not {self.encoding} text: "
                "name the right encoding (--encoding)"
            ) from None
        self._lines += text.count("\n")
        return text.encode(UTF_8, "replace")

    @classmethod
    def first(cls, source: Source, encoding: str, beginning: Beginning) -> bytes:
        """Return the beginning of a text as UTF-8."""
        stream = io.BytesIO(beginning.data)
        text = cls(source, encoding, stream=stream)
        first = text.read(len(beginning.data))
        return first + text.read(1) if beginning.is_all else first  # at the end all characters are complete


def line_at(source: Source, encoding: str, place: int) -> int:
    """Return the number of the line, from 1, that the byte at a place of a text stands in; the text is read again."""
    line, before = 1, b""
    with Text(source, encoding) as text:
        while place > 0 and (data := text._read(min(place, 1 << 20))[:place]):
            text._done += len(data)
            line += n_line_ends(data) - (before == b"\r" and data.startswith(b"\n"))
            before, place = data[-1:], place - len(data)
    return line


def n_line_ends(data: bytes) -> int:
    r"""Return the number of line ends: ``\n``, ``\r\n``, or the ``\r`` of old Macs."""
    return data.count(b"\n") + (data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0)


def check_utf_8(text: str, source: Source, encoding: str, place: int) -> None:
    """Raise TableError naming the first line that is not UTF-8 of a piece, decoded by "surrogateescape", of a text."""
    if not text.isascii() and (odd := _NO_UTF_8.search(text)):
        before = text[: odd.start()].encode(UTF_8, "surrogateescape")
        raise TableError(
            f"{source.name}: line {line_at(source, encoding, place + len(before)):,} is not UTF-8 text: "
            "name the encoding, for instance --encoding latin-1 or cp1252"
        )


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the rows of a text file are found and read."""

    delimiter: str
    decimal: str | None  # "." or "," where the file gives evidence, None where it does not
    start: int  # the first byte below the header
    names: tuple[str, ...]  # the cells of the header, one for each column
    coded: frozenset[int]  # columns with cells such as 007 or 0x1F, which would not be the same as numbers
    spellings: dict[int, str]  # what a column has most often, if not nothing, where a number is missing
    remarks: tuple[str, ...]


def sniff(text: str, is_all: bool, source: Source, options: ReadOptions) -> Dialect:
    """Return the dialect of a text from its first lines.

    Raises
    ------
    TableError
        If these are not the lines of a table, or the options cannot be followed.
    """
    name = source.name
    _check(options, name)
    if not text.strip("\r\n \t,;|"):
        raise TableError(f"{name}: the file is blank")
    # 1. The lines of the table, without the line above it in which Excel names the delimiter.
    lines = [*io.StringIO(text, newline="")]
    if not is_all:
        lines = lines[: max(len(lines) - 1, 1)]  # the last one may be cut
    directive = _DIRECTIVE.match(text) if options.skip is None else None
    n_above = int(directive is not None)
    wanted = options.delimiter or (None if directive is None else directive[1])
    first = next((row for row in _rows(lines[n_above:], wanted or ",", _HEADER_ROWS)[0] if row), [])
    if text.count('"') % 2 and "\n" in "".join(first):
        raise TableError(f"{name}: a quotation mark that opens in the header is never closed")
    # 2. The delimiter, the header, and the rows below it that have at least as many cells.
    delimiter, place = _delimiter_and_header(lines[n_above:], wanted, source, options)
    rows, ends = _rows(lines[n_above:], delimiter, _SAMPLE_ROWS + place)
    if place >= len(rows):
        raise too_long_cell(name, n_above + 1)
    header, body = _widened(rows[place], [row for row in rows[place + 1 :] if row])
    # 3. What these say about the columns.
    remarks = ["The cells are separated by spaces."] if delimiter == SPACES else []
    above = sum(map(_is_filled, rows[:place]))
    if above and options.skip is None:
        line, titles = n_above + ends[place - 1] + 1, counted(above, "line")
        remarks.append(f"Left out {titles} above the column names, which are in line {line:,} of the file.")
    return Dialect(
        delimiter=delimiter,
        decimal=options.decimal or (None if delimiter == "," else _decimal_mark(body)),
        start=len("".join(lines[: n_above + ends[place]]).encode(UTF_8, "surrogateescape")),
        names=tuple(header),
        coded=frozenset(j for row in body for j, cell in enumerate(row) if _CODE.fullmatch(cell.strip())),
        spellings=_spellings(body, len(header)),
        remarks=tuple(remarks),
    )


def _check(options: ReadOptions, name: str) -> None:
    delimiter = options.delimiter
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n' or ord(delimiter) > 127):
        raise TableError(f"{name}: the delimiter must be one plain character, got {quote(delimiter)}")
    if options.decimal not in (None, ".", ","):
        raise TableError(f'{name}: the decimal mark must be "." or ",", got {quote(options.decimal)}')


def _widened(header: list[str], body: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return a header with an empty name for each cell that most rows have behind it, and the rows that are as long."""
    if 2 * sum(_is_filled(row[len(header) :]) for row in body) > len(body):
        header = header + [""] * (max(map(len, body)) - len(header))
    return header, [row for row in body if len(row) >= len(header)]


def _is_filled(row: Sequence[str]) -> bool:
    return not all(map(is_empty, row))


def _spellings(rows: Sequence[Sequence[str]], width: int) -> dict[int, str]:
    """Return what each column has most often where a value is missing, if that is not nothing."""
    counts = Counter((j, cell) for row in rows for j, cell in enumerate(row[:width]) if cell in _MISSING)
    most: dict[int, str] = {}
    for (j, cell), _ in counts.most_common():
        most.setdefault(j, cell)
    return {j: cell for j, cell in most.items() if cell}


def _delimiter_and_header(
    lines: Sequence[str], known: str | None, source: Source, options: ReadOptions
) -> tuple[str, int]:
    """Return the delimiter, and which row has the names: with it most rows are as long as that one."""
    scores: dict[tuple[str, int], tuple[float, bool, int]] = {}
    for delimiter in _DELIMITERS if known is None else (known,):
        rows, ends = _rows(lines, delimiter, _SAMPLE_ROWS)
        place = header_row(rows[:_HEADER_ROWS]) if options.skip is None else _first_below(options.skip, ends)
        if rows and place >= len(rows):
            raise TableError(f"{source.name}: there is no row below the {options.skip:,} lines that are skipped")
        if rows and (width := len(rows[place])) > 1:
            below = [len(row) == width for row in rows[place + 1 :] if row]
            is_named = delimiter == "\t" and source.suffix in (".tsv", ".tab")
            scores[delimiter, place] = (sum(below) / max(len(below), 1), is_named, width)
    return max(scores, key=lambda found: scores[found]) if scores else _one_column(lines, known, options)


def _one_column(lines: Sequence[str], known: str | None, options: ReadOptions) -> tuple[str, int]:
    """Return the delimiter and the row with the names of a text that no usual delimiter cuts into columns."""
    rows, ends = _rows(lines, known or ",", _SAMPLE_ROWS)
    if known is None and options.skip is None and _are_numbers_in_columns(lines):
        return SPACES, 0
    return known or ",", next((k for k, row in enumerate(rows) if row and ends[k] > (options.skip or 0)), len(rows))


def _first_below(n_lines: int, ends: Sequence[int]) -> int:
    """Return the first row that begins below that number of lines."""
    return next((k + 1 for k, end in enumerate(ends) if end >= n_lines), len(ends)) if n_lines else 0


def _rows(lines: Sequence[str], delimiter: str, most: int) -> tuple[list[list[str]], list[int]]:
    """Return the first rows of a text, and how many lines there are up to the end of each."""
    rows: list[list[str]] = []
    ends: list[int] = []
    reader = csv.reader(lines if delimiter != SPACES else map(squeezed, lines), delimiter=delimiter)
    try:
        for row in reader:
            rows.append(row)
            ends.append(reader.line_num)
            if len(rows) == most:
                break
    except csv.Error:  # a cell too long, as after a quotation mark that is never closed: the parser will say so
        pass
    return rows, ends


def squeezed(text: str) -> str:
    r"""Return lines with one space between cells, and none around them.

    Examples
    --------
    >>> squeezed(" a   b \n 1  2 \n")
    'a b\n1 2\n'
    """
    return re.sub(r"(?m)^[ \t]+|[ \t]+(?=[\r\n]|\Z)", "", re.sub(r"[ \t]+", " ", text))


def _are_numbers_in_columns(lines: Sequence[str]) -> bool:
    """Whether a text is names and below them mostly numbers, as many in each line, with spaces between."""
    rows = [row for row in (line.split() for line in lines) if row]
    if len(rows) < 3 or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return False
    cells = [cell for row in rows[1:] for cell in row]
    return header_row(rows[:_HEADER_ROWS]) == 0 and 2 * sum(map(is_number, cells)) > len(cells)


def too_long_cell(name: str, line: int) -> TableError:
    """Return the error for a cell that Python's parser refuses."""
    return TableError(
        f"{name}: a cell that ends near line {line:,} is longer than {csv.field_size_limit():,} "
        "characters: is a quotation mark before it never closed?"
    )


def _decimal_mark(rows: Sequence[Sequence[str]]) -> str | None:
    commas = sum(_DECIMAL_COMMA.fullmatch(cell.strip()) is not None for row in rows for cell in row)
    points = sum(_DECIMAL_POINT.fullmatch(cell.strip()) is not None for row in rows for cell in row)
    if commas == points:
        return None
    return "," if commas > points else "."


def header_row(rows: Sequence[Sequence[object]]) -> int:
    """Return which of the first rows of a text file or a sheet has the names of the columns; "" and None are empty.

    That is the first one that has names for most of the columns that the rows below it fill, if no cell of it is a
    number; else the first that is not empty.

    Examples
    --------
    >>> header_row([["Sales 2024", ""], ["", ""], ["qty", "total"], [1, 2.5], [2, 5.0]])
    2
    """
    filled = [sum(not is_empty(cell) for cell in row) for row in rows]
    first = next((place for place, n in enumerate(filled) if n), 0)
    for share in (1.0, 0.6):  # some columns have no name
        for place in range(first, len(rows)):
            n, below = filled[place], sorted(n for n in filled[place + 1 :] if n)
            if not below:
                break
            typical = below[len(below) // 2]
            cells = [cell for cell in rows[place] if not is_empty(cell)]
            if n >= max(share * typical, min(2, typical)) and _are_names(cells):
                return place
    return first


def _are_names(cells: Sequence[object]) -> bool:
    years = [cell for cell in cells if _YEAR.fullmatch(str(cell))]
    texts = [cell for cell in cells if isinstance(cell, str) and not is_number(cell)]
    return len(set(cells)) == len(cells) == len(years) + len(texts) and len(texts) > 0


def is_empty(cell: object) -> bool:
    """Whether nothing is written in a cell."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def is_number(text: str) -> bool:
    """Whether a cell of a text file looks like a number, or like one that is missing."""
    text = text.strip()
    return text in _MISSING or _NUMBER.fullmatch(text) is not None


def says_total(text: str) -> bool:
    """Whether a text announces a total."""
    return re.match(TOTAL, text, re.IGNORECASE) is not None
