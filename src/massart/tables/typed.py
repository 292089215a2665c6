"""Files that say what their columns are called and hold: Parquet and Arrow (Feather), and JSON.

Parquet and Arrow files are read from where they are, some columns at a time, as often as is wanted. JSON has one object
a line, or is an array of objects. Arrow parses the usual chunk of lines quickly; what it refuses (a column of numbers
and texts, numbers that no float holds) is parsed again object by object, which either works or finds the line at fault.
An array is read as a whole.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

from massart.rows import in_order
from massart.tables.delimited import Chunk, chunks_of, last_row_end
from massart.tables.errors import TableError, quote
from massart.tables.source import (
    UTF_8,
    Beginning,
    Format,
    ReadOptions,
    Source,
    Text,
    check_utf_8,
    encoding_of,
    first_of,
    in_plain_words,
    line_at,
)
from massart.tables.table import (
    array_of,
    check_names,
    joined_type,
    may_have_lost,
    named,
    texts_of,
    written_types,
)

_BUFFER_BYTES = 1 << 20  # without buffers of this size Arrow holds all bytes of a Parquet file while it decodes them
_BEFORE = "\ufeff \t\r\n"  # the first sign of JSON
_NO_OBJECT = re.compile(rb"(?:^|[}\n])\s*null")  # a null in the place of an object ends Arrow, and the process


# --- Parquet and Arrow ---


class FilePart:
    """A file that can be read at any place; what is compressed as a whole is unpacked into a temporary one.

    Attributes
    ----------
    source : Source
    schema : Schema
        Names and types of the columns.
    n_rows, nbytes : int
        Number of rows, and about what they take in memory.
    """

    decimal = remarks = None
    schema: pa.Schema
    n_rows: int
    nbytes: int

    def __init__(self, source: Source, beginning: Beginning, options: ReadOptions) -> None:
        self.source = source
        self.spellings: Mapping[str, str] = {}
        self._head, self._stored = beginning.data[:16], source.unpacked() if beginning.is_packed else source
        try:
            schema = self._look()
            names = named(schema.names)
            check_names(names, source.name)
            self.schema = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
        except BaseException:
            self.close()
            raise

    def _look(self) -> pa.Schema:
        """Return names and types as the file has them."""
        raise NotImplementedError

    def batches(self, columns: Sequence[str], block_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order, with some of the columns."""
        raise NotImplementedError

    def settle(self, wanted: Mapping[str, pa.DataType]) -> None:
        """Do nothing: names and types are what the file says."""

    def close(self) -> None:
        """Remove what was unpacked."""
        if self._stored is not self.source:
            self._stored.close()

    def _open(self) -> pa.NativeFile:
        path = self._stored.path
        return pa.PythonFile(self._stored.open(), mode="r") if path is None else pa.OSFile(str(path))


class ParquetPart(FilePart):
    """A Parquet file, row group by row group.

    Attributes
    ----------
    group_sizes : list of int
        Rows of each row group.
    is_full : bool
        Whether the statistics in the file say that no value is missing.
    """

    def _look(self) -> pa.Schema:
        with self._reader() as file:
            self.n_rows = int(file.metadata.num_rows)
            groups = [file.metadata.row_group(k) for k in range(file.num_row_groups)]
            self.group_sizes = [group.num_rows for group in groups]
            known = [group.column(k).statistics for group in groups for k in range(group.num_columns)]
            self.is_full = all(one is not None and one.has_null_count and not one.null_count for one in known)
            self._names = file.schema_arrow.names
            return file.schema_arrow

    @property
    def path(self) -> str | None:
        """Where the file can be read as it is; None if it is compressed as a whole."""
        return None if self._stored.path is None else str(self._stored.path.resolve())

    @cached_property
    def nbytes(self) -> int:  # type: ignore[override]
        """What the decoded table takes: known of numbers, and otherwise judged by its first rows."""
        if all(pa.types.is_primitive(kind) for kind in self.schema.types):
            return int(self.n_rows * sum(kind.bit_width for kind in self.schema.types) // 8)
        for batch in self._decoded(self.schema.names, 1 << 13):
            return int(batch.nbytes / batch.num_rows * self.n_rows)
        return 0

    def batches(
        self, columns: Sequence[str], block_bytes: int, groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order, with some of the columns; of some row groups, or of all."""
        row_bytes = max(self.nbytes // max(self.n_rows, 1), 1)
        return self._decoded(columns, max(block_bytes // row_bytes, 1), groups)

    def _reader(self) -> pa.parquet.ParquetFile:
        return pa.parquet.ParquetFile(self._open(), pre_buffer=False, buffer_size=_BUFFER_BYTES)

    def _decoded(
        self, columns: Sequence[str], n_rows: int, groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        raw = [self._names[self.schema.get_field_index(name)] for name in columns]
        with in_plain_words(self.source), self._reader() as file:
            for group in range(file.num_row_groups) if groups is None else groups:
                with in_plain_words(self.source, f" in row group {group + 1:,}"):
                    left = self.group_sizes[group]
                    if left > n_rows:
                        batches = file.iter_batches(n_rows, row_groups=[group], columns=raw, use_threads=True)
                    else:  # which takes less memory
                        batches = iter(file.read_row_group(group, columns=raw).to_batches())
                    for batch in batches:
                        batch.validate(full=True)
                        left -= batch.num_rows
                        yield batch.select(raw).rename_columns(list(columns))
                    if left and raw:  # Arrow passes over pages that it cannot read
                        raise pa.ArrowInvalid(f"{left} rows are missing")


class ArrowPart(FilePart):
    """An Arrow file or stream, batch by batch as it was written."""

    def _look(self) -> pa.Schema:
        with self._open() as file:
            return self._parted(file, None)[0]

    @cached_property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows, counted by reading one column."""
        return sum(batch.num_rows for batch in self.batches(self.schema.names[:1]))

    @cached_property
    def nbytes(self) -> int:  # type: ignore[override]
        """What the decoded table takes, judged by its first batch."""
        for batch in self.batches(self.schema.names):
            return int(batch.nbytes / max(batch.num_rows, 1) * self.n_rows)
        return 0

    def batches(self, columns: Sequence[str], block_bytes: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order, with some of the columns, in the batches of the file."""
        places = [self.schema.get_field_index(name) for name in columns]
        with in_plain_words(self.source), self._open() as file:
            for batch in self._parted(file, sorted(places))[1]:
                batch.validate(full=True)
                yield batch.select([sorted(places).index(place) for place in places]).rename_columns(list(columns))

    def _parted(self, file: pa.NativeFile, places: list[int] | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the schema and the batches of a file, all columns or some."""
        options = pa.ipc.IpcReadOptions(included_fields=places)
        if self._head.startswith(b"ARROW1"):
            reader = pa.ipc.open_file(file, options=options)
            return reader.schema, (reader.get_batch(k) for k in range(reader.num_record_batches))
        stream = pa.ipc.open_stream(file, options=options)
        return stream.schema, iter(stream)


def _begins(*magic: bytes) -> Callable[[Source, bytes], bool]:
    return lambda source, head: head.startswith(magic) and not source.is_named_text(head)


PARQUET = Format("a Parquet file", (".parquet", ".pq"), is_binary=True, matches=_begins(b"PAR1"), read=ParquetPart)
ARROW = Format(
    "an Arrow file",
    (".arrow", ".ipc", ".feather"),
    is_binary=True,
    matches=_begins(b"ARROW1", b"\xff\xff\xff\xff"),
    read=ArrowPart,
)


# --- JSON ---


class JsonLines:
    """A file of JSON objects; a `massart.tables.source.FileReader`."""

    decimal = remarks = None

    def __init__(self, source: Source, beginning: Beginning, options: ReadOptions) -> None:
        self._source, self._options = source, options
        # Text without a byte order mark is UTF-8: JSON is never that of Windows.
        has_mark = beginning.data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))
        self._encoding, _ = encoding_of(source, beginning, options.encoding or (None if has_mark else UTF_8))
        self.spellings: Mapping[str, str] = {}
        self._types: dict[str, pa.DataType] = {}  # by the names that the file has
        first = first_of(source, self._encoding, beginning)
        size = len(first) * source.size // beginning.stored  # of the whole text
        self._is_array = first.lstrip(_BEFORE.encode()).startswith(b"[")
        if not beginning.is_all:
            first = b"" if self._is_array else first[: last_row_end(first, None)]
        if not first:
            with Text(source, self._encoding) as text:
                first = bytes(next(self._chunks(text), (0, b""))[1])
        self._widen(0, first)
        self.types = [*self._types.values()]
        self.nbytes = self._parse(0, first).nbytes * max(size, len(first)) // max(len(first), 1)

    @property
    def names(self) -> list[str]:
        """Names of the columns, all different."""
        return named([*self._types])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order; fewer where some of them needed wider types, which `types` then are."""
        self._types = wanted = dict(zip(self._types, self.types, strict=True))
        schema = pa.schema(zip(self.names, self.types, strict=True))
        with Text(self._source, self._encoding, self._options.callback) as text:
            for place, chunk, table in in_order(partial(self._fitting, wanted=wanted), self._chunks(text)):
                if table is None:
                    self._widen(place, chunk)
                elif self._types == wanted:
                    for batch in table.to_batches():
                        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        self.types = [*self._types.values()]

    def _chunks(self, text: Text) -> Iterator[tuple[int, Chunk]]:
        """Yield whole lines in chunks, each with its place in the text; an array as one."""
        if self._is_array:
            yield 0, b"".join(iter(partial(text.read, self._options.chunk_bytes), b""))
        else:
            yield from chunks_of(text, None, self._options.chunk_bytes)

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
        check_names(self.names, self._source.name)

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
        check_utf_8(text, self._source, self._encoding, place)
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
                    where = f"line {line_at(self._source, self._encoding, place) + number:,}"
                raise TableError(f"{self._source.name}: {where} {fault}") from None


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


JSON = Format("JSON", (".jsonl", ".ndjson", ".json"), is_binary=False, matches=_is_json, read=JsonLines)
