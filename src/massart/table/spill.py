"""Batches that are kept to be read again: in memory as long as they are few, then in a file without a name.

Each column of each batch is a message of its own in the file, so that some columns can be read without the others, by
plain reads: of a memory map every page that was looked at would count as memory of the process. A file without a name
is gone when the process is, however that ends.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import pyarrow as pa
import pyarrow.ipc

from massart.table.errors import TableError, quote


class Spill:
    """Batches of one schema, written once and then read any number of times, `n_rows` and `nbytes` in all.

    So many bytes are kept in memory; what comes when they are full goes to the file.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, threading.Lock()
        self._file: IO[bytes] | None = None
        self.clear()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch; TableError if there is no room on the disk."""
        self.n_rows += batch.num_rows
        self.nbytes += batch.nbytes
        if self.nbytes <= self._limit:
            self._kept.append(batch)
            return
        with in_temporary_folder():
            self._file = self._file or tempfile.TemporaryFile(prefix="massart-", buffering=0)  # noqa: SIM115
            places = []
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                message = pa.RecordBatch.from_arrays([column], [name]).serialize()
                places.append((self._file.tell(), message.size))
                if self._file.write(message) < message.size:
                    raise OSError(28, "No space left on device")
        self._moved.append((batch.schema, places))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches again, with some of their columns."""
        for batch in self._kept:
            yield batch.select(list(columns))
        for schema, places in self._moved:
            fields = [schema.field(name) for name in columns]
            yield pa.RecordBatch.from_arrays(
                [self._read(pa.schema([field]), *places[schema.get_field_index(field.name)]) for field in fields],
                schema=pa.schema(fields),
            )

    def clear(self) -> None:
        """Forget everything, in memory and on the disk."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._kept: list[pa.RecordBatch] = []
        self._moved: list[tuple[pa.Schema, list[tuple[int, int]]]] = []
        self.n_rows = self.nbytes = 0

    def _read(self, schema: pa.Schema, start: int, size: int) -> pa.Array:
        assert self._file is not None
        with self._lock:
            self._file.seek(start)
            message = self._file.read(size)
        return pa.ipc.read_record_batch(pa.py_buffer(message), schema).column(0)


@contextmanager
def in_temporary_folder() -> Iterator[None]:
    """Say in plain words what a failure to write into the temporary folder means."""
    try:
        yield
    except OSError as error:
        raise TableError(
            f"there is no room for a copy of the table in the temporary folder {quote(tempfile.gettempdir())} "
            f"({error.strerror or 'input/output error'}): "
            "make room there, or name another folder by the variable TMPDIR"
        ) from None
