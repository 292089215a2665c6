"""CSV and its kin, read by Arrow's parser.

Arrow can infer types while it reads, but then keeps the whole text in memory, in case a type has to be widened. So the
first block alone is used to infer types and the file is read with them; if a later cell does not fit its column, the
column's type is widened and the file is read again. Cells whose number would not be what is written (integers
beyond 2**53 in a column of floats, ``1e400``, codes such as ``007``) stay text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from massart.progress import Callback
from massart.table.dialect import Dialect, sniff
from massart.table.faults import find_fault, open_quote
from massart.table.numbers import LARGEST_EXACT, MISSING
from massart.table.sources import Source
from massart.table.table import Table, check_names, checked, named
from massart.table.text import Text, encoding_of, first_bytes, sample_of

_BLOCK_BYTES = 1 << 22
_LARGEST_BLOCK = 1 << 28
_MOST_READINGS = 6
_MISFIT = re.compile(r"In CSV column #(\d+): .*?invalid value '(.*)'", re.DOTALL)
_LONG_INTEGER = r"^\s*[-+]?\d{16,}\s*$"


class _LateQuotes(Exception):
    """Quotation marks came up after the first lines had none: lines may end inside a cell."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to read one text; each failure leads to a wider one."""

    source: Source
    encoding: str
    dialect: Dialect
    callback: Callback
    quoted: bool
    block_bytes: int = _BLOCK_BYTES

    def options(
        self, types: dict[str, pa.DataType], columns: list[str] | None
    ) -> dict[str, pa.csv.ReadOptions | pa.csv.ParseOptions | pa.csv.ConvertOptions]:
        convert = pa.csv.ConvertOptions(
            column_types=types,
            include_columns=columns,
            null_values=list(MISSING),
            decimal_point=self.dialect.decimal_point,
        )
        return {
            "read_options": pa.csv.ReadOptions(block_size=self.block_bytes, skip_rows=self.dialect.skipped),
            "parse_options": pa.csv.ParseOptions(
                delimiter=self.dialect.delimiter, newlines_in_values=self.quoted, double_quote=True
            ),
            "convert_options": convert,
        }

    def schema(self) -> pa.Schema:
        """Infer types from the first block; the second one completes its last row."""
        first = first_bytes(self.source, self.encoding, 2 * self.block_bytes)
        return pa.csv.open_csv(pa.BufferReader(first), **self.options({}, None)).schema

    def read(self, types: dict[str, pa.DataType], columns: list[str] | None = None) -> tuple[pa.Table, int]:
        """Read all of it; return it with the number of quotation marks."""
        with Text(self.source, self.encoding, self.callback) as text:
            try:
                table = pa.csv.read_csv(text, **self.options(types, columns))
            except pa.ArrowInvalid:
                if text.quotes and not self.quoted:
                    raise _LateQuotes from None
                raise
            if text.quotes and not self.quoted:
                raise _LateQuotes
            return table, text.quotes


def read_delimited(
    source: Source,
    head: bytes,
    *,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    callback: Callback,
) -> Table:
    """Read a text file with a header.

    Parameters
    ----------
    source : Source
    head : bytes
        Its first bytes, decompressed.
    delimiter, encoding, decimal : str or None
        None: found from the first lines.
    callback : callable
    """
    found = encoding_of(source, head, encoding)
    dialect = sniff(sample_of(source, found), source.name, source.suffix, delimiter, decimal)
    reading = _Reading(source, found, dialect, callback, dialect.quoted)
    while True:
        try:
            table, quotes = _read(reading)
            break
        except _LateQuotes:
            reading = _Reading(source, found, dialect, callback, True, reading.block_bytes)
        except pa.ArrowInvalid as error:
            if "straddl" in str(error) and reading.block_bytes < _LARGEST_BLOCK:
                wider = reading.block_bytes * 16
                reading = _Reading(source, found, dialect, callback, True, wider)
                continue
            raise find_fault(source, found, dialect, _count_quotes(source, found), str(error)) from None
        except UnicodeDecodeError:  # in the header
            raise find_fault(source, found, dialect, 0) from None
    if quotes % 2 and _ends_inside_quotes(table) and (fault := open_quote(source, found, dialect)):
        raise fault
    names = named(table.column_names)
    spellings = {names[place]: spelling for place, spelling in dialect.spellings.items() if place < len(names)}
    return checked(table.rename_columns(names), source.name, dialect.decimal, spellings)


def _read(reading: _Reading) -> tuple[pa.Table, int]:
    schema = reading.schema()
    check_names(named(schema.names), reading.source.name)  # Arrow would read both of a pair under one type
    types = {field.name: _kept_type(field.type) for field in schema if not pa.types.is_null(field.type)}
    coded = {name: pa.string() for place, name in enumerate(schema.names) if place in reading.dialect.coded}
    types |= coded
    if schema.names.count("") > 1:
        types.pop("", None)
    if any(pa.types.is_binary(kind) for kind in types.values()):
        raise find_fault(reading.source, reading.encoding, reading.dialect, 0)
    for _ in range(_MOST_READINGS):
        try:
            table, quotes = reading.read(types)
            break
        except pa.ArrowInvalid as error:
            misfit = _MISFIT.match(str(error))
            if misfit is None:
                raise
            name = schema.names[int(misfit[1])]
            types[name] = _wider(types.get(name), misfit[2], reading.dialect)
    else:
        table, quotes = reading.read(coded)
    return _keep_what_is_written(reading, table, types), quotes


def _kept_type(kind: pa.DataType) -> pa.DataType:
    """Return the type to read a column with: dates stay as they are written, for nothing is computed with them."""
    return pa.string() if pa.types.is_temporal(kind) else kind


def _wider(kind: pa.DataType | None, cell: str, dialect: Dialect) -> pa.DataType:
    if kind is None or not pa.types.is_integer(kind):
        return pa.string()
    try:
        float(cell.replace(dialect.decimal_point, "."))
    except ValueError:
        return pa.string()
    return pa.float64()


def _keep_what_is_written(reading: _Reading, table: pa.Table, types: dict[str, pa.DataType]) -> pa.Table:
    """Put text for columns of floats that do not hold the numbers written."""
    names, columns = table.column_names, table.columns
    doubtful = {names[place]: place for place, column in enumerate(columns) if names[place] and _may_have_lost(column)}
    if not doubtful:
        return table
    texts, _ = reading.read(types | dict.fromkeys(doubtful, pa.string()), list(doubtful))
    for name, place in doubtful.items():
        lost = pc.match_substring_regex(texts.column(name), _LONG_INTEGER)
        if pc.any(lost).as_py() or not _is_finite(columns[place]):
            columns[place] = texts.column(name)
    return pa.table(columns, names=names)


def _may_have_lost(column: pa.ChunkedArray) -> bool:
    return pa.types.is_float64(column.type) and max(_limits(column)) >= LARGEST_EXACT


def _is_finite(column: pa.ChunkedArray) -> bool:
    return all(map(math.isfinite, _limits(column)))


def _limits(column: pa.ChunkedArray) -> tuple[float, float]:
    limits = pc.min_max(column)
    return abs(limits["min"].as_py() or 0.0), abs(limits["max"].as_py() or 0.0)


def _ends_inside_quotes(table: pa.Table) -> bool:
    """Whether the last row could be the rest of a file after a quotation mark that is never closed."""
    if not table.num_rows:
        return True
    last = table.slice(table.num_rows - 1).to_pylist()[0]
    return any(isinstance(cell, str) and "\n" in cell for cell in last.values())


def _count_quotes(source: Source, encoding: str) -> int:
    with Text(source, encoding) as text:
        while text.read(1 << 20):
            pass
        return text.quotes
