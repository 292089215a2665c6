"""The files of a stream, each read again and again, batch by batch, some of its columns at a time.

Parquet and Arrow files are read from where they are. Text is parsed once and kept (`Spill`), for parsing takes ten
times as long as reading numbers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import IO

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from massart.progress import silent
from massart.table.delimited import Delimited, Widened, joined
from massart.table.json_lines import JsonLines
from massart.table.reading import BUFFER_BYTES, in_plain_words
from massart.table.sources import Source, compression_of, open_stream
from massart.table.spill import Spill, in_temporary_folder
from massart.table.spreadsheet import Spreadsheet
from massart.table.table import check_names, named

_SAMPLE_ROWS = 1 << 13


class TextPart:
    """A text, parsed when it is first needed; so many bytes of the table stay in memory, and the rest in a file."""

    def __init__(self, source: Source, text: Delimited | JsonLines | Spreadsheet, limit: int) -> None:
        self.source = source
        self.decimal, self.spellings = text.decimal, text.spellings
        self._text, self._spill, self._parsed = text, Spill(limit), False

    @property
    def schema(self) -> pa.Schema:
        """Names and types as far as they are known; final after `settle`."""
        return self._text.schema

    @property
    def remarks(self) -> tuple[str, ...] | None:
        """What was passed over so far; None where all that is there belongs to the table."""
        return None if isinstance(self._text, JsonLines) else self._text.remarks

    @property
    def n_rows(self) -> int:
        """Number of rows, after `settle`."""
        return self._spill.n_rows

    @property
    def nbytes(self) -> int:
        """What the parsed table takes; before `settle` an estimate."""
        return self._spill.nbytes if self._parsed else self._text.nbytes

    def settle(self, wanted: Mapping[str, pa.DataType]) -> None:
        """Parse the text, with types at least as wide as those that are wanted."""
        types = self._text.types
        for place, name in enumerate(self._text.names):
            wider = joined(types[place], wanted.get(name, pa.null()))
            if wider != types[place]:
                self._parsed = self._parsed and pa.types.is_null(types[place])  # nulls are nulls of any type
                types[place] = wider
        with in_plain_words(self.source):
            while not self._parsed:
                self._spill.clear()
                try:
                    for batch in self._text.batches():
                        self._spill.write(batch)
                    self._parsed = True
                except Widened:
                    continue
                except BaseException:
                    self._spill.clear()
                    raise
        self.source.check_unchanged()

    def batches(self, columns: Sequence[str], block_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order, with some of the columns."""
        return self._spill.batches(columns)

    def close(self) -> None:
        """Remove what was kept."""
        self._spill.clear()


class _Kept:
    """A temporary file for Arrow, which closes what it has read: only the part closes this one."""

    def __init__(self, file: IO[bytes]) -> None:
        self.read, self.seek, self.tell, self.closed = file.read, file.seek, file.tell, False

    def close(self) -> None:
        """Leave the file open."""


class _FilePart:
    """A file that can be read at any place; what is compressed as a whole is unpacked into a temporary one."""

    decimal = remarks = None

    def __init__(self, source: Source) -> None:
        self.source = source
        self.spellings: Mapping[str, str] = {}
        self._unpacked: IO[bytes] | None = None
        if compression_of(source.head()) is not None:
            try:
                with in_plain_words(source):
                    self._unpack()
            except BaseException:
                self.close()
                raise

    def _unpack(self) -> None:
        with open_stream(self.source, silent) as stream:
            with in_temporary_folder():
                self._unpacked = tempfile.TemporaryFile(prefix="massart-")  # noqa: SIM115
            while data := stream.read(BUFFER_BYTES):
                with in_temporary_folder():
                    self._unpacked.write(data)

    def _open(self) -> pa.NativeFile:
        if self._unpacked is not None:
            self._unpacked.seek(0)
            return pa.PythonFile(_Kept(self._unpacked), mode="r")
        if self.source.path is None:
            return pa.PythonFile(self.source.open(), mode="r")
        return pa.OSFile(str(self.source.path))

    def _named(self, schema: pa.Schema) -> pa.Schema:
        names = named(schema.names)
        check_names(names, self.source.name)
        return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])

    def settle(self, wanted: Mapping[str, pa.DataType]) -> None:
        """Do nothing: names and types are what the file says."""

    def close(self) -> None:
        """Remove what was unpacked."""
        if self._unpacked is not None:
            self._unpacked.close()


class ParquetPart(_FilePart):
    """A Parquet file, row group by row group."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        with in_plain_words(source), self._reader() as file:
            self._names = file.schema_arrow.names
            self.schema = self._named(file.schema_arrow)
            self.n_rows = int(file.metadata.num_rows)
            groups = [file.metadata.row_group(k) for k in range(file.num_row_groups)]
            self.group_sizes = [group.num_rows for group in groups]
            self.is_full = all(_is_full(group) for group in groups)

    @property
    def path(self) -> str | None:
        """Where the file can be read as it is; None if it is compressed as a whole."""
        return None if self._unpacked is not None or self.source.path is None else str(self.source.path.resolve())

    @cached_property
    def nbytes(self) -> int:
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
        return pa.parquet.ParquetFile(self._open(), pre_buffer=False, buffer_size=BUFFER_BYTES)

    def _decoded(
        self, columns: Sequence[str], n_rows: int, groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        raw = [self._names[self.schema.get_field_index(name)] for name in columns]
        with in_plain_words(self.source), self._reader() as file:
            for group in range(file.num_row_groups) if groups is None else groups:
                with in_plain_words(self.source, f" in row group {group + 1:,}"):
                    left = self.group_sizes[group]
                    for batch in file.iter_batches(n_rows, row_groups=[group], columns=raw, use_threads=True):
                        batch.validate(full=True)
                        left -= batch.num_rows
                        yield batch.select(raw).rename_columns(list(columns))
                    if left and raw:  # Arrow passes over pages that it cannot read
                        raise pa.ArrowInvalid(f"{left} rows are missing")


def _is_full(group: pa.parquet.RowGroupMetaData) -> bool:
    """Tell whether the statistics of a row group say that no value is missing."""
    columns = (group.column(k).statistics for k in range(group.num_columns))
    return all(known is not None and known.has_null_count and not known.null_count for known in columns)


class ArrowPart(_FilePart):
    """An Arrow file or stream, batch by batch as it was written."""

    def __init__(self, source: Source, head: bytes) -> None:
        super().__init__(source)
        self._head = head
        with in_plain_words(source), self._open() as file:
            self.schema = self._named(self._parted(file, None)[0])

    @cached_property
    def n_rows(self) -> int:
        """Number of rows, counted by reading one column."""
        return sum(batch.num_rows for batch in self._decoded(self.schema.names[:1]))

    @cached_property
    def nbytes(self) -> int:
        """What the decoded table takes, judged by its first batch."""
        for batch in self._decoded(self.schema.names):
            return int(batch.nbytes / max(batch.num_rows, 1) * self.n_rows)
        return 0

    def batches(self, columns: Sequence[str], block_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order, with some of the columns."""
        return self._decoded(columns)

    def _decoded(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
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
