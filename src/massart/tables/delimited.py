"""Delimited text (CSV and the like): how it is written, and its rows, parsed by Arrow.

How a file is written is decided from its beginning: its lines are parsed with each delimiter, and the one with which
most rows have as many cells as the header is kept. The types of the columns are inferred from the beginning, too, and
chunks that end where a row ends are parsed with them, on all cores; Arrow's own inference would keep the whole text in
memory. Where a later cell does not fit its column, the rest of the text is only looked at for the types that it needs,
and then all of it is parsed again. Cells whose number would not be what is written (integers beyond 2**53 in a column
of floats, ``1e400``, codes such as ``007``) stay text.

A chunk with a row that is not as long as the header is refused by Arrow. Such a chunk is gone over row by row: lines
that are no part of the table (footers, headings) are left out, and any other such row is an error that names its line.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from massart.rows import in_order
from massart.tables.errors import TableError, counted, listed, quote
from massart.tables.numbers import MISSING, TOTAL
from massart.tables.parts import ParsedPart
from massart.tables.source import (
    BEGINNING_BYTES,
    TEXT_SUFFIXES,
    UTF_8,
    Beginning,
    Format,
    ReadOptions,
    Source,
    Text,
    check_utf_8,
    encoding_of,
    first_of,
    line_at,
)
from massart.tables.table import LARGEST_EXACT, joined_type, may_have_lost, named, written_types

SAMPLE_ROWS = 1000
"""How a text or a sheet is written is found from this number of its first rows."""

LARGEST_CHUNK = 1 << 28
"""A row that is longer is an error."""

Chunk = bytes | memoryview

_SPACES = " "  # the delimiter of files with one or more spaces between the cells, as in columns that are aligned
_DELIMITERS = ",;\t|"
_DIRECTIVE = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)  # Excel writes it as the first line
_CODE = re.compile(r"[-+]?0(\d+|[xX][0-9a-fA-F]+)")
# A mark with three digits after it may separate thousands, so it is not evidence.
_DECIMAL = {
    mark: re.compile(rf"[-+]?(\d*{mark}(\d{{1,2}}|\d{{4,}})|0{mark}\d+|\d{{4,}}{mark}\d+)") for mark in (",", r"\.")
}
_NUMBER = re.compile(r"[-+(]?\s*[^\w\s]?\s*\d[\d.,' \u00a0\u202f%]*\)?-?(?:\s*[^\W\d]{1,3}\.?)?")
_YEAR = re.compile(r"(?:19|20)\d\d(?:\.0)?")  # may be the name of a column
_MISSING = frozenset(MISSING)
_MISFIT = re.compile(r"In CSV column #(\d+): .*?invalid value '", re.DOTALL)
_LONG_INTEGER = r"^\s*[-+]?\d{16,}\s*$"
_ENDS_BLANK = re.compile(rb"(?:\n\r?\n|\r\r)\Z")


# --- how a text is written ---


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
    _check(options, source.name)
    # 1. The lines of the table, without the line above it in which Excel names the delimiter.
    above, lines, known = _lines(text, is_all, source, options)
    # 2. The delimiter, the header, and the rows below it that have at least as many cells.
    delimiter, place = _delimiter_and_header(lines, known, source, options)
    rows, ends = _rows(lines, delimiter, SAMPLE_ROWS + place)
    if place >= len(rows):
        raise _too_long_cell(source.name, len(above) + 1)
    header, body = rows[place], [row for row in rows[place + 1 :] if row]
    if 2 * sum(_is_filled(row[len(header) :]) for row in body) > len(body):  # some columns have no name
        header = header + [""] * (max(map(len, body)) - len(header))
    body = [row for row in body if len(row) >= len(header)]
    # 3. What these say about the columns.
    remarks = ["The cells are separated by spaces."] if delimiter == _SPACES else []
    titles = sum(map(_is_filled, rows[:place]))
    if titles and options.skip is None:
        line = f"line {len(above) + ends[place - 1] + 1:,} of the file"
        remarks.append(f"Left out {counted(titles, 'line')} above the column names, which are in {line}.")
    return Dialect(
        delimiter=delimiter,
        decimal=options.decimal or _decimal_mark(body, delimiter),
        start=len("".join(above + lines[: ends[place]]).encode(UTF_8, "surrogateescape")),
        names=tuple(header),
        coded=frozenset(j for row in body for j, cell in enumerate(row) if _CODE.fullmatch(cell.strip())),
        spellings=_spellings(body, len(header)),
        remarks=tuple(remarks),
    )


def _lines(text: str, is_all: bool, source: Source, options: ReadOptions) -> tuple[list[str], list[str], str | None]:
    """Return the line of a text that names the delimiter, the lines below it, and the delimiter; None if unknown."""
    if not text.strip("\r\n \t,;|"):
        raise TableError(f"{source.name}: the file is blank")
    lines = [*io.StringIO(text, newline="")]
    if not is_all:
        lines = lines[: max(len(lines) - 1, 1)]  # the last one may be cut
    directive = _DIRECTIVE.match(text) if options.skip is None else None
    known = options.delimiter or (directive and directive[1])
    above, lines = lines[: directive is not None], lines[directive is not None :]
    first = next((row for row in _rows(lines, known or ",", SAMPLE_ROWS)[0] if row), [])
    if text.count('"') % 2 and "\n" in "".join(first):
        raise TableError(f"{source.name}: a quotation mark that opens in the header is never closed")
    return above, lines, known


def _check(options: ReadOptions, name: str) -> None:
    delimiter = options.delimiter
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n' or ord(delimiter) > 127):
        raise TableError(f"{name}: the delimiter must be one plain character, got {quote(delimiter)}")
    if options.decimal not in (None, ".", ","):
        raise TableError(f'{name}: the decimal mark must be "." or ",", got {quote(options.decimal)}')


def _is_filled(row: Sequence[str]) -> bool:
    return not all(map(_is_empty, row))


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
    skip = options.skip or 0
    for delimiter in known or _DELIMITERS:
        rows, ends = _rows(lines, delimiter, SAMPLE_ROWS)
        place = header_row(rows) if options.skip is None else sum(end < skip for end in ends) + (skip > 0)
        if not rows:
            continue
        if place >= len(rows):
            raise TableError(f"{source.name}: there is no row below the {skip:,} lines that are skipped")
        if (width := len(rows[place])) > 1:
            below = [len(row) == width for row in rows[place + 1 :] if row]
            is_named = delimiter == "\t" and source.suffix in (".tsv", ".tab")
            scores[delimiter, place] = (sum(below) / max(len(below), 1), is_named, width)
    return max(scores, key=lambda found: scores[found]) if scores else _one_column(lines, known, options)


def _one_column(lines: Sequence[str], known: str | None, options: ReadOptions) -> tuple[str, int]:
    """Return the delimiter and the row with the names of a text that no usual delimiter cuts into columns."""
    if known is None and options.skip is None and _are_numbers_in_columns(lines):
        return _SPACES, 0
    rows, ends = _rows(lines, known or ",", SAMPLE_ROWS)
    return known or ",", next((k for k, row in enumerate(rows) if row and ends[k] > (options.skip or 0)), len(rows))


def _rows(lines: Sequence[str], delimiter: str, most: int) -> tuple[list[list[str]], list[int]]:
    """Return the first rows of a text, and how many lines there are up to the end of each."""
    rows: list[list[str]] = []
    ends: list[int] = []
    reader = csv.reader(lines if delimiter != _SPACES else map(_squeezed, lines), delimiter=delimiter)
    try:
        for row in reader:
            rows.append(row)
            ends.append(reader.line_num)
            if len(rows) == most:
                break
    except csv.Error:  # a cell too long, as after a quotation mark that is never closed: the parser will say so
        pass
    return rows, ends


def _squeezed(text: str) -> str:
    r"""Return lines with one space between cells, and none around them.

    Examples
    --------
    >>> _squeezed(" a   b \n 1  2 \n")
    'a b\n1 2\n'
    """
    return re.sub(r"(?m)^[ \t]+|[ \t]+(?=[\r\n]|\Z)", "", re.sub(r"[ \t]+", " ", text))


def _are_numbers_in_columns(lines: Sequence[str]) -> bool:
    """Whether a text is names and below them mostly numbers, as many in each line, with spaces between."""
    rows = [row for row in (line.split() for line in lines) if row]
    if len(rows) < 3 or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return False
    cells = [cell for row in rows[1:] for cell in row]
    return header_row(rows) == 0 and 2 * sum(map(_is_number, cells)) > len(cells)


def _too_long_cell(name: str, line: int) -> TableError:
    return TableError(
        f"{name}: a cell that ends near line {line:,} is longer than {csv.field_size_limit():,} "
        "characters: is a quotation mark before it never closed?"
    )


def _decimal_mark(rows: Sequence[Sequence[str]], delimiter: str) -> str | None:
    cells = [cell.strip() for row in rows for cell in row]
    commas, points = (sum(form.fullmatch(cell) is not None for cell in cells) for form in _DECIMAL.values())
    return None if commas == points or delimiter == "," else "," if commas > points else "."


def header_row(rows: Sequence[Sequence[object]]) -> int:
    """Return which of the first rows of a text file or a sheet has the names of the columns; "" and None are empty.

    That is the first one that has names for most of the columns that the rows below it fill, if no cell of it is a
    number; else the first that is not empty.

    Examples
    --------
    >>> header_row([["Sales 2024", ""], ["", ""], ["qty", "total"], [1, 2.5], [2, 5.0]])
    2
    """
    rows = rows[:SAMPLE_ROWS]
    filled = [sum(not _is_empty(cell) for cell in row) for row in rows]
    first = next((place for place, n in enumerate(filled) if n), 0)
    for share in (1.0, 0.6):  # some columns have no name
        for place in range(first, len(rows)):
            below = sorted(n for n in filled[place + 1 :] if n)
            if not below:
                break
            typical = below[len(below) // 2]
            if filled[place] >= max(share * typical, min(2, typical)) and _are_names(rows[place]):
                return place
    return first


def _are_names(row: Sequence[object]) -> bool:
    cells = [cell for cell in row if not _is_empty(cell)]
    years = [cell for cell in cells if _YEAR.fullmatch(str(cell))]
    texts = [cell for cell in cells if isinstance(cell, str) and not _is_number(cell)]
    return len(set(cells)) == len(cells) == len(years) + len(texts) and len(texts) > 0


def _is_empty(cell: object) -> bool:
    """Whether nothing is written in a cell."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_number(text: str) -> bool:
    """Whether a cell of a text file looks like a number, or like one that is missing."""
    text = text.strip()
    return text in _MISSING or _NUMBER.fullmatch(text) is not None


# --- its rows ---


class Delimited(ParsedPart):
    """A text file with a header."""

    def __init__(self, source: Source, beginning: Beginning, options: ReadOptions) -> None:
        super().__init__(source, options)
        self._encoding, guessed = encoding_of(source, beginning, options.encoding)
        content, is_all = first_of(source, self._encoding)
        self._dialect = sniff(content.decode(UTF_8, "surrogateescape"), is_all, source, options)
        check_utf_8("".join(self._dialect.names), source, self._encoding, 0)
        self.names = named(self._dialect.names, source.name)
        self.decimal = self._dialect.decimal
        self.spellings = {self.names[j]: cell for j, cell in self._dialect.spellings.items()}
        self._remarks = (*((guessed,) if guessed else ()), *self._dialect.remarks)
        self._left_out: dict[tuple[int, int], str] = {}  # place of a chunk, line in it: what the line begins with
        self._below: TableError | None = None  # of lines that are another table below this one, unless this one goes on
        self.types = [pa.string() if j in self._dialect.coded else pa.null() for j in range(len(self.names))]
        with Text(source, self._encoding) as text:
            place, rows = next(self._chunks(text, BEGINNING_BYTES), (0, b""))
        try:
            found = self._widen(rows)
        except pa.ArrowInvalid:
            rows = self._without_asides(place, rows, is_below=False)
            found = self._widen(rows)
        self.nbytes = found.nbytes * beginning.size // max(len(rows), 1)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out so far, and how the text was read."""
        if not self._left_out:
            return self._remarks
        lines = (f"line {self._line(*where):,} {quote(cell)}" for where, cell in self._left_out.items())
        shown = listed(lines, len(self._left_out), 3)
        return (*self._remarks, f"Left out {counted(len(self._left_out), 'line')} of text: {shown}.")

    def parsed(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order; fewer where some of them needed wider types, which `types` then are.

        Raises
        ------
        TableError
            One line that names the file and what is wrong with it.
        """
        types, has_rows = [*self.types], False
        schema = pa.schema(zip(self.names, types, strict=True))
        self._left_out, self._below = {}, None
        with Text(self.source, self._encoding, self._options.callback) as text:
            for rows, table in self._table_chunks(text, types):
                has_rows = True
                if table is None:
                    self._widen(rows)
                elif self.types == types:
                    yield pa.RecordBatch.from_arrays(table.combine_chunks().to_batches()[0].columns, schema=schema)
        if not has_rows and self._left_out:
            line = self._line(*next(iter(self._left_out)))
            raise TableError(
                f"{self.source.name}: there are no rows below the column names, but lines with fewer cells, the first "
                f"of them line {line:,}: are whole rows in quotation marks?"
            )

    def _table_chunks(self, text: Text, types: Sequence[pa.DataType]) -> Iterator[tuple[Chunk, pa.Table | None]]:
        """Yield the rows of each chunk that has any, and what they are by these types: None where they do not fit."""
        before, place = b"", 0
        chunk: Chunk = b""
        rows: Chunk
        chunks = self._chunks(text, self._options.chunk_bytes)
        for place, chunk, table in in_order(partial(self._tried, types=types), chunks):
            rows = chunk
            if isinstance(table, pa.ArrowInvalid):
                rows = self._without_asides(place, chunk, is_below=_ENDS_BLANK.search(before) is not None)
                table = self._fitting(rows, types) if rows else pa.table({})
            before = bytes(chunk[-4:])
            if table is None or table.num_rows:
                if self._below is not None and rows is chunk:
                    raise self._below
                yield rows, table
        last = str(chunk, UTF_8, "surrogateescape")
        if last.count('"') % 2:
            self._check_closed(place, [*io.StringIO(last, newline="")])

    def _chunks(self, text: Text, size: int) -> Iterator[tuple[int, Chunk]]:
        """Yield the rows below the header in chunks, each with its place in the text."""
        return chunks_of(text, self._dialect.delimiter, size, self._dialect.start)

    def _line(self, place: int, line: int) -> int:
        """Return the number, from 1, of a line, from 0, of the chunk at a place."""
        return line_at(self.source, self._encoding, place) + line

    def _parse(self, chunk: Chunk, types: Mapping[int, pa.DataType]) -> pa.Table:
        """Parse rows; columns are named by their places, for names in a header may not be different."""
        if self._dialect.delimiter == _SPACES:
            chunk = _squeezed(str(chunk, UTF_8, "surrogateescape")).encode(UTF_8, "surrogateescape")
        names = [str(j) for j in range(len(self.names))]
        return pa.csv.read_csv(
            pa.BufferReader(chunk),
            pa.csv.ReadOptions(use_threads=False, block_size=len(chunk), column_names=names),
            pa.csv.ParseOptions(delimiter=self._dialect.delimiter, double_quote=True),
            pa.csv.ConvertOptions(
                column_types={names[j]: kind for j, kind in types.items()},
                null_values=list(MISSING),
                decimal_point=self.decimal or ".",
            ),
        )

    def _tried(
        self, item: tuple[int, Chunk], types: Sequence[pa.DataType]
    ) -> tuple[int, Chunk, pa.Table | pa.ArrowInvalid | None]:
        """Parse a chunk by these types: None where they do not fit, and what Arrow says where it refuses a row."""
        place, chunk = item
        try:
            return place, chunk, self._fitting(chunk, types)
        except pa.ArrowInvalid as error:
            return place, chunk, error

    def _fitting(self, chunk: Chunk, types: Sequence[pa.DataType]) -> pa.Table | None:
        """Parse rows by these types; None where they do not fit."""
        try:
            table = self._parse(chunk, dict(enumerate(types)))
        except pa.ArrowInvalid as error:
            if _MISFIT.match(str(error)) is None:
                raise
            return None
        return None if self._lost(chunk, table) else table

    def _widen(self, chunk: Chunk) -> pa.Table:
        """Make the types as wide as a chunk needs them; return what Arrow makes of it."""
        if len(chunk) == 0:
            return pa.table({})
        found = self._parse(chunk, {})
        if any(map(pa.types.is_binary, found.schema.types)):
            raise pa.ArrowInvalid("a cell is not UTF-8")
        self.types[:] = map(joined_type, self.types, written_types(found.schema))
        for j in self._lost(chunk, self._parse(chunk, dict(enumerate(self.types)))):
            self.types[j] = pa.string()
        return found

    def _lost(self, chunk: Chunk, table: pa.Table) -> list[int]:
        """Return the columns of floats in which a cell is not the number that is written."""
        doubtful = [j for j, column in enumerate(table.columns) if may_have_lost(column)]
        if not doubtful:
            return []
        texts = self._parse(chunk, dict.fromkeys(doubtful, pa.string()))
        return [j for j in doubtful if _differ(table[j], texts[j])]

    def _without_asides(self, place: int, chunk: Chunk, *, is_below: bool) -> bytes:
        """Return a chunk that Arrow refused without the lines that are not part of the table.

        A line of fewer cells than the header is left out if it is short and without a number, or says that it is a
        total. Below a blank line other short lines are, too, if no row as long as the header follows: they are another
        table. Empty cells behind the last column are cut. The chunk `is_below` a blank line if one ends what is before.
        """
        width, was_full = len(self.names), not is_below
        kept: list[list[str]] = []
        for line, row in self._rows(place, chunk):
            if not row:
                is_below = is_below or was_full
                continue
            was_full = len(row) >= width
            if not _is_filled(row[width:]):
                row = row[:width]
            if len(row) == width:
                if self._below is not None:
                    raise self._below
                kept.append(row)
                is_below = False
                continue
            words = [cell for cell in row if not _is_empty(cell)]
            if not _is_aside(words, len(row), width):
                self._below = self._below or TableError(
                    f"{self.source.name}: line {self._line(place, line):,} has "
                    f"{counted(len(row), 'field')}, but the header has {width:,} "
                    "(a delimiter inside a cell needs quotation marks)"
                )
                if not is_below or len(row) > width:
                    raise self._below
            self._left_out[place, line] = next(iter(words), "")
        out = io.StringIO()
        csv.writer(out, delimiter=self._dialect.delimiter, lineterminator="\n").writerows(kept)
        return out.getvalue().encode(UTF_8)

    def _rows(self, place: int, chunk: Chunk) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows of a chunk, each with the line, from 0, in which it begins."""
        text = str(chunk, UTF_8, "surrogateescape")
        check_utf_8(text, self.source, self._encoding, place)
        lines = [*io.StringIO(_squeezed(text) if self._dialect.delimiter == _SPACES else text, newline="")]
        if text.count('"') % 2:
            self._check_closed(place, lines)
        reader, line = csv.reader(lines, delimiter=self._dialect.delimiter), 0
        try:
            for row in reader:
                yield line, row
                line = reader.line_num
        except csv.Error:
            raise _too_long_cell(self.source.name, self._line(place, reader.line_num) - 1) from None

    def _check_closed(self, place: int, lines: Sequence[str]) -> None:
        """Raise TableError if the last row opens a quotation mark that swallows the lines up to the end."""
        reader, line = csv.reader(lines, delimiter=self._dialect.delimiter, strict=True), 0
        try:
            for _ in reader:
                line = reader.line_num
        except csv.Error as error:
            if "unexpected end of data" in str(error) or "field limit" in str(error):
                line = self._line(place, line)
                raise TableError(
                    f"{self.source.name}: a quotation mark that opens on line {line:,} is never closed"
                ) from None


def _is_aside(words: Sequence[str], n_cells: int, width: int) -> bool:
    """Whether a row is not one of the table: it has fewer cells, few words, and no number unless it is a total."""
    if n_cells > width or 2 * len(words) > max(width, 2):
        return False
    return not any(map(_is_number, words)) or re.match(TOTAL, words[0], re.IGNORECASE) is not None


def _differ(numbers: pa.ChunkedArray, texts: pa.ChunkedArray) -> bool:
    """Whether floats are not the numbers that texts are."""
    large = pc.greater_equal(pc.abs(numbers), float(LARGEST_EXACT))
    integers = pc.and_(large, pc.match_substring_regex(texts, _LONG_INTEGER))
    return bool(pc.any(pc.or_(integers, pc.is_inf(numbers))).as_py())


FORMAT = Format("a text file", TEXT_SUFFIXES, is_binary=False, matches=lambda source, head: False, read=Delimited)


# --- chunks that end where a row ends ---


def chunks_of(text: Text, delimiter: str | None, size: int, start: int = 0) -> Iterator[tuple[int, Chunk]]:
    """Yield a text from a place on in chunks of about `size` bytes that end with a row, each with its place.

    Without a delimiter every line end separates rows, as in JSON lines.
    """
    chunk, place = b"", start
    while len(chunk) <= start and (data := text.read(max(size, start + 1 - len(chunk)))):
        chunk += data
    chunk, wanted = chunk[start:], size
    while data := text.read(wanted):
        end = last_row_end(chunk, delimiter)
        if end:
            yield place, memoryview(chunk)[:end]
            place += end
            chunk, wanted = chunk[end:] + data, size
        elif len(chunk) >= LARGEST_CHUNK:
            line, hint = line_at(text.source, text.encoding, place), ": is a quotation mark never closed?"
            raise TableError(
                f"{text.source.name}: the row in line {line:,} does not end within {LARGEST_CHUNK >> 20:,} MiB"
                f"{'' if delimiter is None else hint}"
            )
        else:
            chunk += data
            wanted = max(size, len(chunk))  # so that a long row is searched a few times only
    if chunk:
        yield place, chunk


def last_row_end(chunk: bytes, delimiter: str | None) -> int:
    """Return where the last complete row of a chunk ends; 0 if there is none.

    A line end separates rows unless it stands inside quotation marks, and a quotation mark opens only at the start of a
    cell: in ``5" pipe`` it is a character like any other.
    """
    if delimiter is None or b'"' not in chunk:
        # Old Macs end lines with \r; one at the end of a chunk may be half of \r\n.
        return chunk.rfind(b"\n") + 1 or chunk.rfind(b"\r", 0, -1) + 1
    border = re.escape(delimiter.encode()) + rb"\r\n"
    for end, other in ((rb"\n", rb'[^"\n]*+'), (rb"\r(?!\Z)", rb'[^"\r]*+')):
        quoted, mark = rb'(?<![^%b])"(?:[^"]++|"")*+"' % border, rb'(?<=[^%b])"' % border
        rows = re.match(rb"(?:%b(?:(?:%b|%b)%b)*+%b)*+" % (other, quoted, mark, other, end), chunk)
        if rows is not None and rows.end():
            return rows.end()
    return 0
