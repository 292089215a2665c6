"""JSON: one object a line, or an array of objects.

Arrow parses the usual chunk of lines quickly; what it refuses (a column of numbers and texts, numbers that no float
holds) is parsed again object by object, which either works or finds the line at fault. An array is read as a whole.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.json

from massart.rows import in_order
from massart.tables.delimited import Chunk, chunks_of
from massart.tables.errors import TableError, quote
from massart.tables.parts import ParsedPart
from massart.tables.source import (
    BEGINNING_BYTES,
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
from massart.tables.table import array_of, joined_type, may_have_lost, named, texts_of, written_types

_BEFORE = "\ufeff \t\r\n"  # the first sign of JSON
_NO_OBJECT = re.compile(rb"(?:^|[}\n])\s*null")  # a null in the place of an object ends Arrow, and the process


class JsonLines(ParsedPart):
    """A file of JSON objects."""

    def __init__(self, source: Source, beginning: Beginning, options: ReadOptions) -> None:
        super().__init__(source, options)
        encoding, guessed = encoding_of(source, beginning, options.encoding)
        self._encoding = UTF_8 if guessed else encoding  # JSON is never in the encoding of Windows
        self._types: dict[str, pa.DataType] = {}  # by the names that the file has
        self._is_array = first_of(source, self._encoding)[0].lstrip(_BEFORE.encode()).startswith(b"[")
        with Text(source, self._encoding) as text:
            first = next(self._chunks(text, BEGINNING_BYTES), (0, b""))[1]
        self._widen(0, first)
        self.nbytes = self._parse(0, first).nbytes * max(beginning.size, len(first)) // max(len(first), 1)

    def parsed(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order; fewer where some of them needed wider types, which `types` then are."""
        self._types = wanted = dict(zip(self._types, self.types, strict=True))
        schema = pa.schema(zip(self.names, self.types, strict=True))
        with Text(self.source, self._encoding, self._options.callback) as text:
            chunks = self._chunks(text, self._options.chunk_bytes)
            for place, chunk, table in in_order(partial(self._fitting, wanted=wanted), chunks):
                if table is None:
                    self._widen(place, chunk)
                elif self._types == wanted:
                    for batch in table.to_batches():
                        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _chunks(self, text: Text, size: int) -> Iterator[tuple[int, Chunk]]:
        """Yield whole lines in chunks, each with its place in the text; an array as one."""
        if self._is_array:
            yield 0, b"".join(iter(partial(text.read, size), b""))
        else:
            yield from chunks_of(text, None, size)

    def _fitting(
        self, item: tuple[int, Chunk], wanted: Mapping[str, pa.DataType]
    ) -> tuple[int, Chunk, pa.Table | None]:
        """Parse a chunk by the types that are wanted; None where they do not fit."""
        table = self._parse(*item, wanted)
        kinds = dict(zip(table.column_names, table.schema.types, strict=True))
        if any(kind not in (wanted.get(key), pa.null()) or key not in wanted for key, kind in kinds.items()):
            return *item, None
        columns = [table[key] if kinds.get(key) == kind else pa.nulls(len(table), kind) for key, kind in wanted.items()]
        return *item, pa.table(columns, names=list(wanted))

    def _widen(self, place: int, chunk: Chunk) -> None:
        """Make the columns as many and as wide as a chunk needs them."""
        before = None
        while before != self._types:
            before = self._types
            table = self._parse(place, chunk)
            self._types = dict(before)
            for key, found in zip(table.column_names, written_types(table.schema), strict=True):
                known = before.get(key, found)
                wider = joined_type(known, found)
                self._types[key] = pa.string() if wider == known and found not in (known, pa.null()) else wider
        self.names, self.types = named(self._types, self.source.name), [*self._types.values()]

    def _parse(self, place: int, chunk: Chunk, wanted: Mapping[str, pa.DataType] | None = None) -> pa.Table:
        wanted = self._types if wanted is None else wanted
        table = None if self._is_array else _by_arrow(chunk, wanted)
        if table is not None:
            return table
        rows = [*self._objects(place, chunk)]
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({name: _column([row.get(name) for row in rows], wanted.get(name)) for name in names})

    def _objects(self, place: int, chunk: Chunk) -> Iterator[Mapping[str, object]]:
        text = str(chunk, UTF_8, "surrogateescape")
        check_utf_8(text, self.source, self._encoding, place)
        for number, line in enumerate([text] if self._is_array else io.StringIO(text, newline="")):
            where = "the array"
            if not (stripped := line.strip(_BEFORE)):
                continue
            try:
                found = _loaded(stripped)
                for item, one in enumerate(found if self._is_array else [found], 1):
                    if not isinstance(one, Mapping):
                        where = f"item {item:,} of the array"
                        raise _Fault("is not a JSON object with a value for each column")
                    yield one
            except _Fault as fault:
                if not self._is_array:
                    where = f"line {line_at(self.source, self._encoding, place) + number:,}"
                raise TableError(f"{self.source.name}: {where} {fault}") from None


class _Fault(Exception):
    """What is wrong with a line."""


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


def _column(values: list[object], wanted: pa.DataType | None) -> pa.Array:
    found = array_of(values)
    if wanted == pa.float64() and pa.types.is_integer(found.type):
        with suppress(pa.ArrowInvalid):  # integers beyond 2**53
            return found.cast(wanted)
        wanted = pa.string()
    return texts_of(values) if wanted == pa.string() else found


def _loaded(text: str) -> Iterable[object]:
    try:
        found: Iterable[object] = json.loads(
            text, object_pairs_hook=_without_twins, parse_float=_finite_or_text, parse_constant=_finite_or_text
        )
    except json.JSONDecodeError as error:
        raise _Fault(f"is not valid JSON ({error.msg}, character {error.pos + 1:,})") from None
    except RecursionError:
        raise _Fault("is nested too deeply to be a row of a table") from None
    except ValueError:  # Python refuses integers of more than 4,300 digits
        raise _Fault("holds a number that is too long") from None
    return found


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


def _is_json(source: Source, head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b'{"', b"[{"))


FORMAT = Format("JSON", (".jsonl", ".ndjson", ".json"), is_binary=False, matches=_is_json, read=JsonLines)
