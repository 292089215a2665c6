"""CSV and its kin, parsed by Arrow in chunks.

Arrow can infer types while it reads, but then keeps the whole text in memory, in case a type has to be widened. So the
first chunk alone is used to infer types, and chunks are parsed with them, on all cores. Where a later cell does not fit
its column, the rest of the text is only looked at for the types that it needs, and then all of it is parsed again.
Cells whose number would not be what is written (integers beyond 2**53 in a column of floats, ``1e400``, codes such as
``007``) stay text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from massart.progress import Callback
from massart.rows.ahead import in_order
from massart.table.chunks import CHUNK_BYTES, Chunk, LongRow, chunks_of, first_row_end
from massart.table.dialect import Known, sniff
from massart.table.errors import TableError
from massart.table.faults import find_fault, open_quote
from massart.table.mending import is_odd, mend
from massart.table.numbers import LARGEST_EXACT, MISSING
from massart.table.sources import Source
from massart.table.table import check_names, named
from massart.table.text import UTF_8, WINDOWS, Text, encoding_of, is_windows_text, sample_of, size_of
from massart.table.views import view

_MISFIT = re.compile(r"In CSV column #(\d+): .*?invalid value '", re.DOTALL)
_LONG_INTEGER = r"^\s*[-+]?\d{16,}\s*$"


class Widened(Exception):
    """Some cells did not fit the types that were expected: all is to be parsed again with wider ones."""


class Delimited:
    """A text file with a header; what is not known of how it is written is found from its first lines.

    Attributes
    ----------
    names : list of str
        Of the columns, all different.
    types : list of DataType
        Of the columns. `batches` makes them wider where it has to; so may the caller.
    decimal : str or None
        The decimal mark that the text as a whole speaks for.
    spellings : mapping of str to str
        What the text writes in a column, if not nothing, where a value is missing.
    """

    def __init__(self, source: Source, head: bytes, known: Known, *, callback: Callback) -> None:
        self.remarks: tuple[str, ...] = ()
        self._source, self._callback, self._known = source, callback, known
        self._encoding = encoding_of(source, head, known.encoding)
        if known.encoding is None and is_windows_text(source, self._encoding):
            self._encoding = WINDOWS
            self.remarks = ("Read the text as that of Windows (cp1252), for it is no UTF-8; --encoding names another.",)
        self._is_mended = False
        if is_odd(sample_of(source, self._encoding), known):
            self._mend()
        self._sniff()

    def _sniff(self) -> None:
        """Find how the text is written, and names and types."""
        self._dialect = sniff(
            sample_of(self._source, self._encoding), self._source.name, self._source.suffix, self._known
        )
        self.decimal = self._dialect.decimal
        try:
            self._start()
        except (pa.ArrowInvalid, LongRow, UnicodeDecodeError) as error:
            if not self._mend():
                raise self._fault(str(error)) from None
            self._sniff()

    def _mend(self) -> bool:
        """Take out the lines that are no part of the table; say whether that changed anything."""
        if self._is_mended:
            return False
        self._is_mended = True
        found = mend(self._source, self._encoding, self._known, sample_of(self._source, self._encoding))
        if found is None:
            return False
        self._source, self._encoding, self._known = found.source, UTF_8, found.known
        self.remarks += found.remarks
        return True

    def _start(self) -> None:
        """Find names and types from the first chunk."""
        with Text(self._source, self._encoding) as text:
            chunk = next(chunks_of(text, self._dialect.delimiter), b"")
        header, body = self._parted(chunk)
        raw = pa.csv.read_csv(pa.BufferReader(header), parse_options=self._parsing()).column_names
        self.names = named(raw)
        check_names(self.names, self._source.name)
        spellings = self._dialect.spellings.items()
        self.spellings = {self.names[place]: spelling for place, spelling in spellings if place < len(raw)}
        self.types = self._inferred(body) if body else [pa.null()] * len(raw)
        self._first = body
        for place in self._dialect.coded & set(range(len(raw))):
            self.types[place] = pa.string()

    @property
    def nbytes(self) -> int:
        """About what the parsed table takes in memory, by what the first chunk takes."""
        if not self._first:
            return 0
        decoded = self._parse(self._first, dict(enumerate(self.types))).nbytes
        return int(decoded / len(self._first) * size_of(self._source, self._encoding))

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return pa.schema(zip(self.names, self.types, strict=True))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order; `Widened` after the last chunk if some of them needed wider types.

        Raises
        ------
        TableError
            One line that names the file and what is wrong with it.
        """
        schema, widened, last = self.schema, False, None
        try:
            with Text(self._source, self._encoding, self._callback) as text:
                chunks = self._bodies(chunks_of(text, self._dialect.delimiter))
                for chunk, table in in_order(partial(self._fitting, types=list(self.types)), chunks):
                    if table is None:
                        self._widen(chunk)
                        widened = True
                    elif table.num_rows:
                        last = table
                        if not widened:
                            yield pa.RecordBatch.from_arrays(
                                table.combine_chunks().to_batches()[0].columns, schema=schema
                            )
        except (pa.ArrowInvalid, LongRow) as error:
            if not self._mend():
                raise self._fault(str(error)) from None
            self._sniff()
            widened = True
        if widened:
            raise Widened
        if text.quotes % 2 and _ends_inside_quotes(last):
            fault = open_quote(self._source, self._encoding, self._dialect)
            if fault is not None:
                raise fault

    def _parted(self, chunk: Chunk) -> tuple[bytes, bytes]:
        """Part the first chunk into its header and the rows below it."""
        chunk = bytes(chunk)
        for _ in range(self._dialect.skipped):
            chunk = chunk[chunk.find(b"\n") + 1 :]
        end = first_row_end(chunk, self._dialect.delimiter)
        return chunk[:end], chunk[end:]

    def _bodies(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        body = self._parted(next(chunks, b""))[1]
        if body:
            yield body
        yield from chunks

    def _parsing(self) -> pa.csv.ParseOptions:
        return pa.csv.ParseOptions(delimiter=self._dialect.delimiter, double_quote=True)

    def _parse(
        self,
        chunk: Chunk,
        types: Mapping[int, pa.DataType],
        columns: Sequence[int] | None = None,
        missing: Sequence[str] = MISSING,
    ) -> pa.Table:
        """Parse rows; columns are named by their places, for names in a header may not be different."""
        return pa.csv.read_csv(
            pa.BufferReader(chunk),
            pa.csv.ReadOptions(
                use_threads=False, block_size=len(chunk), column_names=[str(place) for place in range(len(self.names))]
            ),
            self._parsing(),
            pa.csv.ConvertOptions(
                column_types={str(place): kind for place, kind in types.items()},
                include_columns=None if columns is None else [str(place) for place in columns],
                null_values=list(missing),
                decimal_point=self._dialect.decimal_point,
            ),
        )

    def _inferred(self, chunk: Chunk) -> list[pa.DataType]:
        types = self._parse(chunk, {}).schema.types
        if any(pa.types.is_binary(kind) for kind in types):
            raise pa.ArrowInvalid("a cell is no UTF-8")
        # Dates stay as they are written, for nothing is computed with them.
        return [pa.string() if pa.types.is_temporal(kind) else kind for kind in types]

    def _fitting(self, chunk: Chunk, types: Sequence[pa.DataType]) -> tuple[Chunk, pa.Table | None]:
        """Parse a chunk by these types; None where they do not fit."""
        table = None
        # Looking at every cell for fifty spellings takes a tenth of the time, and most chunks hold none of them. What
        # is read as NaN without them is not small.
        for missing in (MISSING,) if self.spellings else (("",), MISSING):
            try:
                table = self._parse(chunk, dict(enumerate(types)), missing=missing)
            except pa.ArrowInvalid as error:
                if _MISFIT.match(str(error)) is None:
                    raise
                table = None
            else:
                if not any(map(may_have_lost, table.columns)):
                    return b"", table
        return (chunk, None) if table is None or self._lost(chunk, table) else (b"", table)

    def _widen(self, chunk: Chunk) -> None:
        """Make the types as wide as a chunk needs them."""
        inferred = self._inferred(chunk)
        while True:
            try:
                table = self._parse(chunk, dict(enumerate(self.types)))
            except pa.ArrowInvalid as error:
                misfit = _MISFIT.match(str(error))
                if misfit is None:
                    raise
                place = int(misfit[1])
                wider = joined(self.types[place], inferred[place])
                self.types[place] = wider if wider != self.types[place] else pa.string()
                continue
            lost = self._lost(chunk, table)
            if not lost:
                return
            for place in lost:
                self.types[place] = pa.string()

    def _lost(self, chunk: Chunk, table: pa.Table) -> list[int]:
        """Return the columns of floats in which a cell is not the number that is written."""
        doubtful = [place for place, column in enumerate(table.columns) if may_have_lost(column)]
        if not doubtful:
            return []
        texts = self._parse(chunk, dict.fromkeys(doubtful, pa.string()), doubtful)
        return [place for place, cells in zip(doubtful, texts.columns, strict=True) if _differ(table[place], cells)]

    def _fault(self, words: str) -> TableError:
        with Text(self._source, self._encoding) as text:
            while text.read(CHUNK_BYTES):
                pass
            quotes = text.quotes
        return find_fault(self._source, self._encoding, self._dialect, quotes, words)


def joined(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type of a column that holds cells of both."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else pa.string()


def may_have_lost(column: pa.ChunkedArray) -> bool:
    """Whether a column of floats may come from integers that they do not hold, or from numbers too large."""
    return pa.types.is_float64(column.type) and not all(map(_are_small, column.chunks))


def _are_small(numbers: pa.Array) -> bool:
    """Whether all numbers are below the first integer that has no float of its own; NaN is not."""
    if numbers.null_count:
        if pc.any(pc.is_nan(numbers)).as_py():
            return False
        limits = pc.min_max(numbers).as_py()
        low, high = limits["min"] or 0.0, limits["max"] or 0.0
    else:  # numpy answers a few thousand numbers sooner
        values = view(numbers)
        low, high = values.min(initial=0.0), values.max(initial=0.0)
    return bool(-LARGEST_EXACT < low and high < LARGEST_EXACT)


def _differ(numbers: pa.ChunkedArray, texts: pa.ChunkedArray) -> bool:
    large = pc.greater_equal(pc.abs(numbers), float(LARGEST_EXACT))
    integers = pc.and_(large, pc.match_substring_regex(texts, _LONG_INTEGER))
    return bool(pc.any(pc.or_(integers, pc.is_inf(numbers))).as_py())


def _ends_inside_quotes(table: pa.Table | None) -> bool:
    """Whether the last row could be the rest of a file after a quotation mark that is never closed."""
    if table is None:
        return True
    last = table.slice(table.num_rows - 1).to_pylist()[0]
    return any(isinstance(cell, str) and "\n" in cell for cell in last.values())
