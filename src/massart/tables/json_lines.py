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

from massart.rows.ahead import in_order
from massart.tables.delimited import Chunk, chunks_of, last_row_end
from massart.tables.errors import TableError, quote
from massart.tables.source import Beginning, Format, ReadOptions, Source, Widened
from massart.tables.table import LARGEST_EXACT, check_names, joined_type, may_have_lost, named
from massart.tables.text import UTF_8, Text, check_utf_8, encoding_of, line_at

_INT64 = 2**63
_BEFORE = "\ufeff \t\r\n"  # the first sign of JSON
_NO_OBJECT = re.compile(rb"(?:^|[}\n])\s*null")  # a null in the place of an object ends Arrow, and the process

_Item = tuple[int, Chunk]  # a chunk with its place in the text


class JsonLines:
    """A file of JSON objects; a `massart.tables.source.Reader`."""

    decimal = remarks = None

    def __init__(self, source: Source, beginning: Beginning, options: ReadOptions) -> None:
        self._source, self._options = source, options
        self._encoding, _ = encoding_of(source, beginning, options.encoding or _by_mark(beginning))
        self.spellings: Mapping[str, str] = {}
        self.names: list[str] = []
        self.types: list[pa.DataType] = []
        self._keys: list[str] = []  # the names as the file has them
        first = Text.first(source, self._encoding, beginning)
        size = len(first) * source.size // beginning.stored  # of the whole text
        self._is_array = first.lstrip(_BEFORE.encode()).startswith(b"[")
        if not beginning.is_all:
            first = b"" if self._is_array else first[: last_row_end(first, None)]
        if not first:
            with Text(source, self._encoding) as text:
                first = bytes(next(self._chunks(text), (0, b""))[1])
        self._widen((0, first))
        self.nbytes = self._parse((0, first), self._wanted).nbytes * max(size, len(first)) // max(len(first), 1)

    @property
    def _wanted(self) -> dict[str, pa.DataType]:
        return dict(zip(self._keys, self.types, strict=True))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order; raise `Widened` after the last if some of them needed wider types."""
        schema, wanted, widened = pa.schema(zip(self.names, self.types, strict=True)), self._wanted, False
        with Text(self._source, self._encoding, self._options.callback) as text:
            for item, table in in_order(partial(self._fitting, wanted=wanted), self._chunks(text)):
                if table is None:
                    self._widen(item)
                    widened = True
                elif not widened:
                    for batch in table.to_batches():
                        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        if widened:
            raise Widened

    def _chunks(self, text: Text) -> Iterator[_Item]:
        """Yield whole lines in chunks, each with its place in the text; an array as one."""
        if not self._is_array:
            yield from chunks_of(text, None, self._options.chunk_bytes)
            return
        parts = []
        while part := text.read(self._options.chunk_bytes):
            parts.append(part)
        yield 0, b"".join(parts)

    def _fitting(self, item: _Item, wanted: Mapping[str, pa.DataType]) -> tuple[_Item, pa.Table | None]:
        """Parse a chunk by the types that are wanted; None where they do not fit."""
        table = self._parse(item, wanted)
        kinds = dict(zip(table.column_names, table.schema.types, strict=True))
        if any(kind not in (wanted.get(key), pa.null()) or key not in wanted for key, kind in kinds.items()):
            return item, None
        columns = [table[key] if kinds.get(key) == kind else pa.nulls(len(table), kind) for key, kind in wanted.items()]
        return item, pa.table(columns, names=list(wanted))

    def _widen(self, item: _Item) -> None:
        """Make the columns as many and as wide as a chunk needs them."""
        while True:
            wanted = self._wanted
            table = self._parse(item, wanted)
            for key, kind in zip(table.column_names, table.schema.types, strict=True):
                # Dates stay as they are written, for nothing is computed with them.
                found = pa.string() if pa.types.is_temporal(kind) else kind
                if key not in wanted:
                    self._keys.append(key)
                    self.types.append(found)
                elif found not in (wanted[key], pa.null()):
                    wider = joined_type(wanted[key], found)
                    self.types[self._keys.index(key)] = wider if wider != wanted[key] else pa.string()
            if wanted == self._wanted:
                break
        self.names = named(self._keys)
        check_names(self.names, self._source.name)

    def _parse(self, item: _Item, wanted: Mapping[str, pa.DataType]) -> pa.Table:
        place, chunk = item
        table = None if self._is_array else _by_arrow(chunk, wanted)
        if table is not None:
            return table
        text = str(chunk, UTF_8, "surrogateescape")
        check_utf_8(text, self._source, self._encoding, place)
        return _tabulated(self._array(text) if self._is_array else self._lines(text, place), wanted)

    def _lines(self, text: str, place: int) -> Iterator[Mapping[str, object]]:
        for number, line in enumerate(io.StringIO(text, newline="")):
            if stripped := line.strip(_BEFORE):
                try:
                    yield _object(stripped)
                except _Fault as fault:
                    line_number = line_at(self._source, self._encoding, place) + number
                    raise TableError(f"{self._source.name}: line {line_number:,} {fault}") from None

    def _array(self, text: str) -> Iterator[Mapping[str, object]]:
        try:
            items = _parsed(text.strip(_BEFORE))
        except _Fault as fault:
            raise TableError(f"{self._source.name}: the array {fault}") from None
        for number, item in enumerate(items if isinstance(items, list) else [items], 1):
            if not isinstance(item, Mapping):
                raise TableError(f"{self._source.name}: item {number:,} of the array {_NOT_AN_OBJECT}")
            yield item


_NOT_AN_OBJECT = "is not a JSON object with a value for each column"


class _Fault(Exception):
    """What is wrong with a line."""


def _by_mark(beginning: Beginning) -> str | None:
    """Return UTF-8 for text without a byte order mark: JSON is never that of Windows."""
    return None if beginning.data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")) else UTF_8


def _by_arrow(chunk: Chunk, wanted: Mapping[str, pa.DataType]) -> pa.Table | None:
    """Return what Arrow makes of a chunk; None if it refuses it, or does not read it as it is written."""
    if _NO_OBJECT.search(chunk):
        return None
    known = pa.schema([(key, kind) for key, kind in wanted.items() if not pa.types.is_null(kind)])
    try:
        table = pa.json.read_json(
            pa.BufferReader(chunk),
            pa.json.ReadOptions(use_threads=False, block_size=len(chunk) + 1),
            pa.json.ParseOptions(explicit_schema=known),
        )
        table.validate(full=True)  # its texts may not be UTF-8
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    return None if any(map(may_have_lost, table.columns)) else table


def _tabulated(objects: Iterable[Mapping[str, object]], wanted: Mapping[str, pa.DataType]) -> pa.Table:
    columns: dict[str, list[object]] = {}
    for n_rows, content in enumerate(objects):
        for name, value in content.items():
            if name not in columns:
                columns[name] = [None] * n_rows
            columns[name].append(value)
        for column in columns.values():
            if len(column) == n_rows:
                column.append(None)
    return pa.table({name: _column(values, wanted.get(name)) for name, values in columns.items()})


def _column(values: list[object], wanted: pa.DataType | None) -> pa.Array:
    found = column_of(values)
    if wanted == pa.float64() and pa.types.is_integer(found.type):
        if not any(isinstance(value, int) and abs(value) > LARGEST_EXACT for value in values):
            return found.cast(pa.float64())
        wanted = pa.string()
    return pa.array([_text(value) for value in values], pa.string()) if wanted == pa.string() else found


def _object(text: str) -> Mapping[str, object]:
    content = _parsed(text)
    if not isinstance(content, Mapping):
        raise _Fault(_NOT_AN_OBJECT)
    return content


def _parsed(text: str) -> object:
    try:
        return json.loads(
            text, object_pairs_hook=_without_twins, parse_float=_finite_or_text, parse_constant=_finite_or_text
        )
    except json.JSONDecodeError as error:
        raise _Fault(f"is not valid JSON ({error.msg}, character {error.pos + 1:,})") from None
    except RecursionError:
        raise _Fault("is nested too deeply to be a row of a table") from None
    except ValueError:  # Python refuses integers of more than 4,300 digits
        raise _Fault("holds a number that is too long") from None


def _finite_or_text(written: str) -> float | str:
    """Return a number, or what is written if it is too large for one: it is quoted where it does harm."""
    value = float(written)
    return written if math.isinf(value) else value


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise _Fault(f"has two values for {quote(twice)}")
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


def _is_json(source: Source, head: bytes) -> bool:
    begin = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return begin.startswith((b'{"', b"[{"))


FORMAT = Format("JSON", (".jsonl", ".ndjson", ".json"), is_binary=False, matches=_is_json, read=JsonLines)
