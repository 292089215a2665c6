"""The files of a stream: some are read from where they are, and others are parsed once and kept.

Parquet and Arrow files say what their columns are called and hold, and are read some columns at a time, as often as is
wanted. Text is parsed once and kept, for parsing takes ten times as long as reading numbers: in memory as long as that
is little, then in a temporary file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import IO, Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from massart.tables.source import Beginning, Format, ReadOptions, Source, in_plain_words, in_temporary_folder
from massart.tables.table import joined_type, named

_BUFFER_BYTES = 1 << 20  # without buffers of this size Arrow holds all bytes of a Parquet file while it decodes them


class Part:
    """A file of a stream.

    Attributes
    ----------
    source : Source
    schema : Schema
        Names and types of the columns; those of text are final after `settle`.
    n_rows, nbytes : int
        Number of rows, and about what they take in memory.
    decimal : str or None
        The decimal mark that the file as a whole suggests.
    spellings : mapping of str to str
        What is written in a column, if anything, where a value is missing.
    """

    schema: pa.Schema
    n_rows: int
    nbytes: int
    decimal: str | None = None

    def __init__(self, source: Source) -> None:
        self.source = source
        self.spellings: Mapping[str, str] = {}

    @property
    def remarks(self) -> tuple[str, ...] | None:
        """What was left out so far; None where every row of the file is a row of the table."""
        return None

    def settle(self, wanted: Mapping[str, pa.DataType]) -> None:
        """Find the types of the columns, at least as wide as those that are wanted, if the file does not say them."""

    def batches(self, columns: Sequence[str], block_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order, with some of the columns."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove temporary files."""


# --- text and workbooks ---


class ParsedPart(Part):
    """A text or a workbook, parsed when it is first needed and kept to be read again; a format is a class below this.

    Up to `most_kept` bytes of the parsed table stay in memory, and the rest goes to an Arrow file without a name, which
    is gone when the process is, however that ends.

    Attributes
    ----------
    names : list of str
        Of the columns, all different.
    types : list of DataType
        Of the columns. `parsed` makes them wider where some cells do not fit: then it has left out rows, and all is to
        be parsed again.
    """

    names: list[str]
    types: list[pa.DataType]

    def __init__(self, source: Source, options: ReadOptions) -> None:
        super().__init__(source)
        self._options, self.most_kept = options, options.most_kept
        self._is_parsed = False
        self._disk: IO[bytes] | None = None
        self.close()

    def parsed(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order."""
        raise NotImplementedError

    @property
    def schema(self) -> pa.Schema:
        """Names and types as far as they are known; final after `settle`."""
        return pa.schema(zip(self.names, self.types, strict=True))

    def settle(self, wanted: Mapping[str, pa.DataType]) -> None:
        """Parse the text, with types at least as wide as those that are wanted."""
        for j, name in enumerate(self.names):
            wider = joined_type(self.types[j], wanted.get(name, pa.null()))
            if wider != self.types[j]:
                self._is_parsed = self._is_parsed and pa.types.is_null(self.types[j])  # nulls are nulls of any type
                self.types[j] = wider
        with in_plain_words(self.source):
            while not self._is_parsed:
                self.close()
                expected = [*self.types]
                try:
                    self._keep(self.parsed())
                except BaseException:
                    self.close()
                    raise
                self._is_parsed = self.types == expected
        self.source.check_unchanged()

    def batches(self, columns: Sequence[str], block_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order, with some of the columns."""
        for batch in self._kept:
            yield batch.select(list(columns))
        if self._moved is not None:
            yield from self._moved.batches(columns)

    def close(self) -> None:
        """Forget what was kept, in memory and on the disk."""
        if self._disk is not None:
            with suppress(OSError):  # what a full disk has no room for is not wanted any more
                self._disk.close()
            self._disk = None
        self._kept: list[pa.RecordBatch] = []
        self._moved: ArrowPart | None = None
        self.n_rows = 0

    def _keep(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Keep what is parsed; TableError if there is no room on the disk."""
        writer: Any = None
        self.nbytes = 0
        for batch in batches:
            self.n_rows += batch.num_rows
            self.nbytes += batch.nbytes
            if self.nbytes <= self.most_kept:
                self._kept.append(batch)
                continue
            with in_temporary_folder():
                if self._disk is None:
                    self._disk = tempfile.TemporaryFile(prefix="massart-")  # noqa: SIM115
                    writer = pa.ipc.new_file(self._disk, batch.schema)
                writer.write_batch(batch)
        if self._disk is not None:
            with in_temporary_folder():
                writer.close()
                self._disk.flush()
            copy = Source(self.source.name, None, self._disk, self._disk.tell())
            self._moved = ArrowPart(copy, Beginning(b"ARROW1", 1, False), ReadOptions())


# --- Parquet and Arrow ---


class FilePart(Part):
    """A file that can be read at any place; what is compressed as a whole is unpacked into a temporary one."""

    def __init__(self, source: Source, beginning: Beginning, options: ReadOptions) -> None:
        super().__init__(source)
        self._head, self._stored = beginning.data[:16], source.unpacked() if beginning.is_packed else source
        try:
            schema = self._look()
            names = named(schema.names, source.name)
            self.schema = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
        except BaseException:
            self.close()
            raise

    def _look(self) -> pa.Schema:
        """Return names and types as the file has them."""
        raise NotImplementedError

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
