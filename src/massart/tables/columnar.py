"""Parquet and Arrow (Feather) files: read from where they are, some columns at a time, as often as is wanted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from massart.tables.source import Beginning, Format, ReadOptions, Source, in_plain_words, in_temporary_folder
from massart.tables.table import check_names, named

_BUFFER_BYTES = 1 << 20  # without buffers of this size Arrow holds all bytes of a Parquet file while it decodes them
_SAMPLE_ROWS = 1 << 13


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
        self.source, self.callback = source, options.callback
        self.spellings: Mapping[str, str] = {}
        self._head, self._stored = beginning.data[:16], _unpacked(source) if beginning.is_packed else source
        try:
            self._look()
        except BaseException:
            self.close()
            raise

    def _look(self) -> None:
        """Find names and types."""
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

    def _named(self, schema: pa.Schema) -> pa.Schema:
        names = named(schema.names)
        check_names(names, self.source.name)
        return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])


class ParquetPart(FilePart):
    """A Parquet file, row group by row group.

    Attributes
    ----------
    group_sizes : list of int
        Rows of each row group.
    is_full : bool
        Whether the statistics in the file say that no value is missing.
    """

    def _look(self) -> None:
        with self._reader() as file:
            self._names = file.schema_arrow.names
            self.schema = self._named(file.schema_arrow)
            self.n_rows = int(file.metadata.num_rows)
            groups = [file.metadata.row_group(k) for k in range(file.num_row_groups)]
            self.group_sizes = [group.num_rows for group in groups]
            self.is_full = all(map(_is_full, groups))

    @property
    def path(self) -> str | None:
        """Where the file can be read as it is; None if it is compressed as a whole."""
        return None if self._stored.path is None else str(self._stored.path.resolve())

    @cached_property
    def nbytes(self) -> int:  # type: ignore[override]
        """What the decoded table takes: known of numbers, and otherwise judged by its first rows."""
        if all(pa.types.is_primitive(kind) for kind in self.schema.types):
            return int(self.n_rows * sum(kind.bit_width for kind in self.schema.types) // 8)
        for batch in self._decoded(self.schema.names, _SAMPLE_ROWS):
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

    def _look(self) -> None:
        with self._open() as file:
            self.schema = self._named(self._parted(file, None)[0])

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


def _unpacked(source: Source) -> Source:
    """Return a copy of a compressed file in the temporary folder, without a name."""
    with in_temporary_folder():
        copy = tempfile.TemporaryFile(prefix="massart-")  # noqa: SIM115
    try:
        with source.open_unpacked() as stream:
            while data := stream.read(_BUFFER_BYTES):
                with in_temporary_folder():
                    copy.write(data)
        with in_temporary_folder():
            copy.flush()
        return replace(source, path=None, copy=copy, size=copy.tell())
    except BaseException:
        copy.close()
        raise


def _is_full(group: pa.parquet.RowGroupMetaData) -> bool:
    """Whether the statistics of a row group say that no value is missing."""
    columns = (group.column(k).statistics for k in range(group.num_columns))
    return all(known is not None and known.has_null_count and not known.null_count for known in columns)


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
