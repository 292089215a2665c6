"""JSON with one object a line, or an array of objects.

Arrow parses the usual chunk of lines quickly. What it refuses (a column of numbers and texts, numbers that no float
holds) is parsed again object by object, which either works or finds the line at fault. An array is read as a whole.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.json

from massart.progress import Callback
from massart.rows.ahead import in_order
from massart.table.chunks import Chunk, LongRow, chunks_of
from massart.table.delimited import Widened, joined, may_have_lost
from massart.table.errors import TableError, quote
from massart.table.numbers import LARGEST_EXACT
from massart.table.sources import Source
from massart.table.table import check_names, named
from massart.table.text import UTF_8, Text, check_utf_8, encoding_of, lines_of, size_of

_INT64 = 2**63


_NO_OBJECT = re.compile(rb"(?:^|[}\n])\s*null")  # a null in the place of an object ends Arrow, and the process


class JsonLines:
    """A file of JSON objects; attributes and batches as those of `Delimited`."""

    decimal = None

    def __init__(self, source: Source, head: bytes, encoding: str | None, callback: Callback) -> None:
        self._source, self._callback = source, callback
        self._encoding = encoding_of(source, head, encoding)
        self.spellings: Mapping[str, str] = {}
        self.names: list[str] = []
        self.types: list[pa.DataType] = []
        self._keys: list[str] = []  # the names as the file has them
        self._whole = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        self._first: Chunk | None = None
        if not self._whole:
            with Text(source, self._encoding) as text:
                self._first = next(self._chunks(text), b"")
        self._widen(self._first)

    @property
    def nbytes(self) -> int:
        """About what the parsed table takes in memory, by what the first chunk takes."""
        decoded = self._parse(self._first, dict(zip(self._keys, self.types, strict=True))).nbytes
        return int(decoded / len(self._first) * size_of(self._source, self._encoding)) if self._first else decoded

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return pa.schema(zip(self.names, self.types, strict=True))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order; `Widened` after the last chunk if some of them needed wider types."""
        schema, wanted, widened = self.schema, dict(zip(self._keys, self.types, strict=True)), False
        with Text(self._source, self._encoding, self._callback) as text:
            chunks: Iterable[Chunk | None] = [None] if self._whole else self._chunks(text)
            for chunk, table in in_order(partial(self._fitting, wanted=wanted), chunks):
                if table is None:
                    self._widen(chunk)
                    widened = True
                elif not widened:
                    for batch in table.to_batches():
                        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        if widened:
            raise Widened

    def _chunks(self, text: Text) -> Iterator[Chunk]:
        try:
            yield from chunks_of(text, None)
        except LongRow:
            raise self._fault() from None

    def _fitting(self, chunk: Chunk | None, wanted: Mapping[str, pa.DataType]) -> tuple[Chunk | None, pa.Table | None]:
        """Parse a chunk by the types that are wanted; None where they do not fit."""
        table = self._parse(chunk, wanted)
        kinds = dict(zip(table.column_names, table.schema.types, strict=True))
        if any(kind not in (wanted.get(key), pa.null()) or key not in wanted for key, kind in kinds.items()):
            return chunk, None
        columns = [table[key] if kinds.get(key) == kind else pa.nulls(len(table), kind) for key, kind in wanted.items()]
        return b"", pa.table(columns, names=list(wanted))

    def _widen(self, chunk: Chunk | None) -> None:
        """Make the columns as many and as wide as a chunk needs them."""
        while True:
            wanted = dict(zip(self._keys, self.types, strict=True))
            table = self._parse(chunk, wanted)
            for key, kind in zip(table.column_names, table.schema.types, strict=True):
                # Dates stay as they are written, for nothing is computed with them.
                found = pa.string() if pa.types.is_temporal(kind) else kind
                if key not in wanted:
                    self._keys.append(key)
                    self.types.append(found)
                elif found not in (wanted[key], pa.null()):
                    wider = joined(wanted[key], found)
                    self.types[self._keys.index(key)] = wider if wider != wanted[key] else pa.string()
            if wanted == dict(zip(self._keys, self.types, strict=True)):
                break
        self.names = named(self._keys)
        check_names(self.names, self._source.name)

    def _parse(self, chunk: Chunk | None, wanted: Mapping[str, pa.DataType]) -> pa.Table:
        if chunk is None:
            return _tabulated(self._source, _objects(self._source, self._encoding), wanted)
        table = _by_arrow(chunk, wanted)
        if table is not None:
            return table
        try:
            lines = io.StringIO(str(chunk, UTF_8).removeprefix("\ufeff"), newline="")
            return _tabulated(self._source, _lines(self._source, lines), wanted)
        except (TableError, UnicodeDecodeError):
            raise self._fault() from None

    def _fault(self) -> TableError:
        """Return the first fault of the file."""
        try:
            for where, content in _objects(self._source, self._encoding):
                _check_object(self._source, where, content)
        except TableError as error:
            return error
        return TableError(f"{self._source.name}: a line is too long to be read")


def _by_arrow(chunk: Chunk, wanted: Mapping[str, pa.DataType]) -> pa.Table | None:
    if _NO_OBJECT.search(chunk):
        return None
    known = pa.schema([(key, kind) for key, kind in wanted.items() if not pa.types.is_null(kind)])
    try:
        table = pa.json.read_json(
            pa.BufferReader(chunk),
            pa.json.ReadOptions(use_threads=False, block_size=len(chunk) + 1),
            pa.json.ParseOptions(explicit_schema=known),
        )
        table.validate(full=True)  # its texts may be no UTF-8
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    return None if any(map(may_have_lost, table.columns)) else table


def _tabulated(source: Source, objects: Iterable[tuple[str, object]], wanted: Mapping[str, pa.DataType]) -> pa.Table:
    columns: dict[str, list[object]] = {}
    for n_rows, (where, content) in enumerate(objects):
        for name, value in _check_object(source, where, content).items():
            if name not in columns:
                columns[name] = [None] * n_rows
            columns[name].append(value)
        for column in columns.values():
            if len(column) == n_rows:
                column.append(None)
    return pa.table({name: _column(values, wanted.get(name)) for name, values in columns.items()})


def _check_object(source: Source, where: str, content: object) -> Mapping[str, object]:
    if not isinstance(content, Mapping):
        raise TableError(f"{source.name}: {where} is not a JSON object with a value for each column")
    return content


def _column(values: list[object], wanted: pa.DataType | None) -> pa.Array:
    found = column_of(values)
    if wanted == pa.float64() and pa.types.is_integer(found.type):
        if not any(isinstance(value, int) and abs(value) > LARGEST_EXACT for value in values):
            return found.cast(pa.float64())
        wanted = pa.string()
    return pa.array([_text(value) for value in values], pa.string()) if wanted == pa.string() else found


def _objects(source: Source, encoding: str) -> Iterator[tuple[str, object]]:
    """Yield the objects of a file, each with the words for where it is."""
    check_utf_8(source, encoding)
    with lines_of(source, encoding) as lines:
        first = next((line for line in lines if line.strip("\ufeff \t\r\n")), "").lstrip("\ufeff \t")
        if first.startswith("["):
            content = _parsed(source, first + lines.read(), "the array")
            listed = content if isinstance(content, list) else [content]
            yield from ((f"item {number:,} of the array", item) for number, item in enumerate(listed, 1))
            return
    with lines_of(source, encoding) as lines:
        yield from _lines(source, lines)


def _lines(source: Source, lines: Iterable[str]) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(lines, 1):
        stripped = line.strip("\ufeff \t\r\n")
        if stripped:
            yield f"line {number:,}", _parsed(source, stripped, f"line {number:,}")


def _parsed(source: Source, text: str, where: str) -> object:
    try:
        return json.loads(
            text,
            object_pairs_hook=lambda pairs: _without_twins(source, pairs, where),
            parse_float=_finite_or_text,
            parse_constant=_finite_or_text,
        )
    except TableError:
        raise
    except json.JSONDecodeError as error:
        raise TableError(
            f"{source.name}: {where} is not valid JSON ({error.msg}, character {error.pos + 1:,})"
        ) from None
    except RecursionError:
        raise TableError(f"{source.name}: {where} is nested too deeply to be a row of a table") from None
    except ValueError:  # Python refuses integers of more than 4,300 digits
        raise TableError(f"{source.name}: {where} holds a number that is too long") from None


def _finite_or_text(written: str) -> float | str:
    """Return a number, or what is written if it is too large for one: it is quoted where it does harm."""
    value = float(written)
    return written if math.isinf(value) else value


def _without_twins(source: Source, pairs: list[tuple[str, object]], where: str) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise TableError(f"{source.name}: {where} has two values for {quote(twice)}")
    return content


def column_of(values: list[object]) -> pa.Array:
    """Return plain Python values as a column; text where their types do not go together."""
    kinds = {type(value) for value in values if value is not None}
    beyond = any(isinstance(value, int) and not -_INT64 <= value < _INT64 for value in values) or (
        kinds == {int, float} and any(isinstance(value, int) and abs(value) > LARGEST_EXACT for value in values)
    )
    if not beyond:
        try:
            return pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            pass
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: object) -> str | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value if isinstance(value, str) else json.dumps(value, default=str)
