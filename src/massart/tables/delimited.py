"""Delimited text (CSV and the like), parsed by Arrow in chunks that end where a row ends.

Arrow can infer types while it reads, but then keeps the whole text in memory, in case a type has to be widened. So the
beginning of the file alone is used to infer types, and chunks are parsed with them, on all cores. Where a later cell
does not fit its column, the rest of the text is only looked at for the types that it needs, and then all of it is
parsed again. Cells whose number would not be what is written (integers beyond 2**53 in a column of floats, ``1e400``,
codes such as ``007``) stay text.

A chunk with a row that is not as long as the header is refused by Arrow. Such a chunk is gone over row by row: lines
that are no part of the table (footers, headings) are left out, and any other such row is an error that names its line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from massart.rows.ahead import in_order
from massart.tables.errors import TableError, counted, listed, quote
from massart.tables.numbers import MISSING
from massart.tables.source import TEXT_SUFFIXES, Beginning, Format, ReadOptions, Source, Widened
from massart.tables.table import LARGEST_EXACT, check_names, joined_type, may_have_lost, named
from massart.tables.text import (
    SPACES,
    UTF_8,
    Text,
    check_utf_8,
    encoding_of,
    is_empty,
    is_number,
    line_at,
    says_total,
    sniff,
    squeezed,
    too_long_cell,
)

LARGEST_CHUNK = 1 << 28
"""A row that is longer is an error."""

_SHOWN = 3
_MISFIT = re.compile(r"In CSV column #(\d+): .*?invalid value '", re.DOTALL)
_LONG_INTEGER = r"^\s*[-+]?\d{16,}\s*$"
_ENDS_BLANK = re.compile(rb"(?:\n\r?\n|\r\r)\Z")

Chunk = bytes | memoryview


class Delimited:
    """A text file with a header; a `massart.tables.source.Reader`."""

    def __init__(self, source: Source, beginning: Beginning, options: ReadOptions) -> None:
        self._source, self._options = source, options
        self._encoding, guessed = encoding_of(source, beginning, options.encoding)
        content = Text.first(source, self._encoding, beginning)
        self._dialect = sniff(content.decode(UTF_8, "surrogateescape"), beginning.is_all, source, options)
        check_utf_8("".join(self._dialect.names), source, self._encoding, 0)
        self.names = named(self._dialect.names)
        check_names(self.names, source.name)
        self.decimal = self._dialect.decimal
        self.spellings = {self.names[j]: cell for j, cell in self._dialect.spellings.items()}
        self._remarks = (*((guessed,) if guessed else ()), *self._dialect.remarks)
        self._left_out: dict[tuple[int, int], str] = {}  # place of a chunk, line in it: what the line begins with
        self._below: list[TableError] = []  # of lines that are another table below this one, unless this one goes on
        self.types, self.nbytes = [pa.null()] * len(self.names), 0
        place, rows = self._dialect.start, content[self._dialect.start :]
        if not beginning.is_all:
            rows = rows[: last_row_end(rows, self._dialect.delimiter)] or self._first_chunk()
        try:
            found = self._inferred(rows) if rows else None
        except pa.ArrowInvalid:
            rows = self._without_asides(place, rows, is_below=False)
            found = self._inferred(rows) if rows else None
        if found is not None:
            size = len(content) * source.size // beginning.stored  # of the whole text
            self.types, self.nbytes = _written_types(found), found.nbytes * size // len(rows)
        for j in self._dialect.coded & set(range(len(self.names))):
            self.types[j] = pa.string()

    def _first_chunk(self) -> bytes:
        with Text(self._source, self._encoding) as text:
            return bytes(next(self._chunks(text), (0, b""))[1])

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out so far, and how the text was read."""
        if not self._left_out:
            return self._remarks
        lines = (
            f"line {line_at(self._source, self._encoding, place) + line:,} {quote(cell)}"
            for (place, line), cell in self._left_out.items()
        )
        shown = listed(lines, len(self._left_out), _SHOWN)
        return (*self._remarks, f"Left out {counted(len(self._left_out), 'line')} of text: {shown}.")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order; raise `Widened` after the last if some of them needed wider types.

        Raises
        ------
        TableError
            One line that names the file and what is wrong with it.
        """
        schema, parse = pa.schema(zip(self.names, self.types, strict=True)), partial(self._tried, types=[*self.types])
        widened, before, place, n_rows = False, b"", 0, 0
        chunk: Chunk = b""
        rows: Chunk
        self._left_out, self._below = {}, []
        with Text(self._source, self._encoding, self._options.callback) as text:
            for place, chunk, table in in_order(parse, self._chunks(text)):
                rows = chunk
                if isinstance(table, pa.ArrowInvalid):
                    rows = self._without_asides(place, chunk, is_below=_ENDS_BLANK.search(before) is not None)
                    table = self._parsed(rows, self.types) if rows else schema.empty_table()
                before = bytes(chunk[-4:])
                if table is not None and not table.num_rows:
                    continue
                if self._below and rows is chunk:
                    raise self._below[0]
                if table is None:
                    self._widen(rows)
                    widened = True
                n_rows += 1 if table is None else table.num_rows
                if table is not None and not widened:
                    yield pa.RecordBatch.from_arrays(table.combine_chunks().to_batches()[0].columns, schema=schema)
        if text.quotes % 2:
            self._check_closed(place, [*io.StringIO(str(chunk, UTF_8, "surrogateescape"), newline="")])
        if not n_rows:
            self._check_left_out()
        if widened:
            raise Widened

    def _check_left_out(self) -> None:
        """Raise TableError if all that stands below the header was left out."""
        for place, line in self._left_out:
            raise TableError(
                f"{self._source.name}: there are no rows below the column names, but lines with fewer cells, the first "
                f"of them line {line_at(self._source, self._encoding, place) + line:,}: are whole rows in quotation "
                "marks?"
            )

    def _chunks(self, text: Text) -> Iterator[tuple[int, Chunk]]:
        """Yield the rows below the header in chunks, each with its place in the text."""
        return chunks_of(text, self._dialect.delimiter, self._options.chunk_bytes, self._dialect.start)

    def _parse(
        self,
        chunk: Chunk,
        types: Sequence[pa.DataType] | Mapping[int, pa.DataType],
        columns: Sequence[int] | None = None,
        missing: Sequence[str] = MISSING,
    ) -> pa.Table:
        """Parse rows; columns are named by their places, for names in a header may not be different."""
        if self._dialect.delimiter == SPACES:
            chunk = squeezed(str(chunk, UTF_8, "surrogateescape")).encode(UTF_8, "surrogateescape")
        kinds = types.items() if isinstance(types, Mapping) else enumerate(types)
        return pa.csv.read_csv(
            pa.BufferReader(chunk),
            pa.csv.ReadOptions(
                use_threads=False, block_size=len(chunk), column_names=[str(j) for j in range(len(self.names))]
            ),
            pa.csv.ParseOptions(delimiter=self._dialect.delimiter, double_quote=True),
            pa.csv.ConvertOptions(
                column_types={str(j): kind for j, kind in kinds},
                include_columns=None if columns is None else [str(j) for j in columns],
                null_values=list(missing),
                decimal_point=self.decimal or ".",
            ),
        )

    def _tried(
        self, item: tuple[int, Chunk], types: Sequence[pa.DataType]
    ) -> tuple[int, Chunk, pa.Table | pa.ArrowInvalid | None]:
        """Parse a chunk by these types: None where they do not fit, and what Arrow says where it refuses a row."""
        place, chunk = item
        try:
            return place, chunk, self._parsed(chunk, types)
        except pa.ArrowInvalid as error:
            return place, chunk, error

    def _parsed(self, chunk: Chunk, types: Sequence[pa.DataType]) -> pa.Table | None:
        # Looking at every cell for fifty spellings takes a tenth of the time, and most chunks hold none of them. What
        # is read as NaN without them is not small.
        for missing in (MISSING,) if self.spellings else (("",), MISSING):
            try:
                table = self._parse(chunk, types, missing=missing)
            except pa.ArrowInvalid as error:
                if _MISFIT.match(str(error)) is None:
                    raise
                table = None
            else:
                if not any(map(may_have_lost, table.columns)):
                    return table
        return None if table is None or self._lost(chunk, table) else table

    def _inferred(self, chunk: Chunk) -> pa.Table:
        found = self._parse(chunk, {})
        if any(pa.types.is_binary(kind) for kind in found.schema.types):
            raise pa.ArrowInvalid("a cell is not UTF-8")
        return found

    def _widen(self, chunk: Chunk) -> None:
        """Make the types as wide as a chunk needs them."""
        inferred = _written_types(self._inferred(chunk))
        while True:
            try:
                table = self._parse(chunk, self.types)
            except pa.ArrowInvalid as error:
                misfit = _MISFIT.match(str(error))
                if misfit is None:
                    raise
                j = int(misfit[1])
                wider = joined_type(self.types[j], inferred[j])
                self.types[j] = wider if wider != self.types[j] else pa.string()
                continue
            lost = self._lost(chunk, table)
            if not lost:
                return
            for j in lost:
                self.types[j] = pa.string()

    def _lost(self, chunk: Chunk, table: pa.Table) -> list[int]:
        """Return the columns of floats in which a cell is not the number that is written."""
        doubtful = [j for j, column in enumerate(table.columns) if may_have_lost(column)]
        if not doubtful:
            return []
        texts = self._parse(chunk, dict.fromkeys(doubtful, pa.string()), doubtful)
        return [j for j, cells in zip(doubtful, texts.columns, strict=True) if _differ(table[j], cells)]

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
            if all(map(is_empty, row[width:])):
                row = row[:width]
            if len(row) == width:
                if self._below:
                    raise self._below[0]
                kept.append(row)
                is_below = False
                continue
            words = [cell for cell in row if not is_empty(cell)]
            if len(row) > width or not _is_aside(words, width):
                self._below.append(
                    TableError(
                        f"{self._source.name}: line {line_at(self._source, self._encoding, place) + line:,} has "
                        f"{counted(len(row), 'field')}, but the header has {width:,} "
                        "(a delimiter inside a cell needs quotation marks)"
                    )
                )
                if not is_below or len(row) > width:
                    raise self._below[0]
            self._left_out[place, line] = words[0] if words else ""
        out = io.StringIO()
        csv.writer(out, delimiter=self._dialect.delimiter, lineterminator="\n").writerows(kept)
        return out.getvalue().encode(UTF_8)

    def _rows(self, place: int, chunk: Chunk) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows of a chunk, each with the line, from 0, in which it begins."""
        text = str(chunk, UTF_8, "surrogateescape")
        check_utf_8(text, self._source, self._encoding, place)
        lines = [*io.StringIO(squeezed(text) if self._dialect.delimiter == SPACES else text, newline="")]
        if text.count('"') % 2:
            self._check_closed(place, lines)
        reader, line = csv.reader(lines, delimiter=self._dialect.delimiter), 0
        try:
            for row in reader:
                yield line, row
                line = reader.line_num
        except csv.Error:
            before = line_at(self._source, self._encoding, place) - 1
            raise too_long_cell(self._source.name, before + reader.line_num) from None

    def _check_closed(self, place: int, lines: Sequence[str]) -> None:
        """Raise TableError if the last row opens a quotation mark that swallows the lines up to the end."""
        reader, line = csv.reader(lines, delimiter=self._dialect.delimiter, strict=True), 0
        try:
            for _ in reader:
                line = reader.line_num
        except csv.Error as error:
            if "unexpected end of data" in str(error) or "field limit" in str(error):
                line += line_at(self._source, self._encoding, place)
                raise TableError(
                    f"{self._source.name}: a quotation mark that opens on line {line:,} is never closed"
                ) from None


def _is_aside(words: Sequence[str], width: int) -> bool:
    """Whether a short line is not a row of the table: it has few cells, and no number unless it is a total."""
    if 2 * len(words) > max(width, 2):
        return False
    return not any(map(is_number, words)) or says_total(words[0])


def _written_types(found: pa.Table) -> list[pa.DataType]:
    """Return the types of columns; dates stay as they are written, for nothing is computed with them."""
    return [pa.string() if pa.types.is_temporal(kind) else kind for kind in found.schema.types]


def _differ(numbers: pa.ChunkedArray, texts: pa.ChunkedArray) -> bool:
    """Whether floats are not the numbers that texts are."""
    large = pc.greater_equal(pc.abs(numbers), float(LARGEST_EXACT))
    integers = pc.and_(large, pc.match_substring_regex(texts, _LONG_INTEGER))
    return bool(pc.any(pc.or_(integers, pc.is_inf(numbers))).as_py())


FORMAT = Format("a text file", TEXT_SUFFIXES, is_binary=False, matches=lambda source, head: False, read=Delimited)


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
    cell: in ``5" pipe`` it is a character like any other. So the quoted cells are found first.
    """
    opens, ends = (_NONE, _NONE) if delimiter is None or b'"' not in chunk else _quoted(chunk, delimiter)
    stop = len(chunk)
    while stop > 0:
        end = chunk.rfind(b"\n", 0, stop)
        if end < 0:  # old Macs end lines with \r; one at the end of a chunk may be half of \r\n
            end = chunk.rfind(b"\r", 0, min(stop, len(chunk) - 1))
        k = int(np.searchsorted(opens, end)) - 1  # the last quoted cell that opens before
        if end < 0 or k < 0 or end >= ends[k]:
            return end + 1
        stop = int(opens[k])
    return 0


_NONE = np.empty(0, dtype=np.int64)


def _quoted(chunk: bytes, delimiter: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where quoted parts of a chunk, which begins with a row, open and end; an open one ends with the chunk."""
    signs = np.frombuffer(chunk, dtype=np.uint8)
    quotes = np.flatnonzero(signs == ord('"'))
    opens, closes = quotes[::2], quotes[1::2]
    # A pair of marks inside a cell, which stands for one, closes it and opens it again.
    border = np.zeros(256, dtype=bool)
    border[[ord(delimiter), *b'\r\n"']] = True
    before, after = border[signs[opens - 1]], border[signs[(closes + 1) % len(chunk)]]
    before[:1] |= opens[:1] == 0
    after[-1:] |= closes[-1:] == len(chunk) - 1
    if before.all() and after.all():
        return opens, np.append(closes + 1, [len(chunk)] * (len(opens) - len(closes))).astype(np.int64)
    # Marks inside cells: look at them one by one.
    cell = re.compile(rb'"(?<![^%b\r\n]")(?:[^"]++|"")*+(?:"|\Z)' % re.escape(delimiter.encode()))
    spans = np.array([match.span() for match in cell.finditer(chunk)], dtype=np.int64).reshape(-1, 2)
    return spans[:, 0], spans[:, 1]
