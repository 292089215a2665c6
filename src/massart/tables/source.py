"""Where a table comes from: a file, a folder, a pattern or standard input; its bytes, and what the first of them say.

The suffix says what a file is meant to be and the first bytes say what it is, and the bytes win where they are sure: a
Parquet file named ``.csv`` is read as Parquet, and a gzip file needs no suffix. A format of files is one module that
defines a `Format`, and one line that lists it (`massart.tables.stream.FORMATS`).
"""

from __future__ import annotations

import errno
import glob
import io
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, cast

import pyarrow as pa

from massart.rows import Callback, Progress, silent
from massart.tables.errors import TableError, near_names, on_one_line, quote

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
BEGINNING_BYTES = 1 << 21
"""What is looked at to find out what a file holds, how it is written and the types of its columns."""

_STEP_BYTES = 1 << 20
_FOREIGN = (
    (b"%PDF", "a PDF: export the table as CSV"),
    (b"PK\x03\x04", "a ZIP archive: unpack it first"),
    *((begin, "a web page (HTML), not a table: download the table as CSV") for begin in (b"<!doctype", b"<html")),
    (b"<?xml", "an XML file, not a table: export the table as CSV"),
)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a caller says of how a file is written and read; None where it is to be found out."""

    delimiter: str | None = None  # between the cells of a text file
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None  # of a workbook: the name or the number, from 1, of a sheet
    skip: int | None = None  # lines of a text file, or rows of a sheet, above the header
    na: tuple[str, ...] = ()  # texts that mean that a value is missing, besides those that everybody knows
    chunk_bytes: int = 1 << 21  # of 1 << 20 a CSV file of 2,000,000 x 21 decimals takes a tenth more processor time
    callback: Callback = silent


class Widened(Exception):
    """Some cells did not fit the types that were expected: all is to be parsed again with wider ones."""


class Reader(Protocol):
    """Parses one file; it is made from a `Source`, its `Beginning` and `ReadOptions`.

    Attributes
    ----------
    names : list of str
        Of the columns, all different.
    types : list of DataType
        Of the columns; `batches` makes them wider where it has to, and so may the caller.
    decimal : str or None
        The decimal mark that the file as a whole suggests.
    spellings : mapping of str to str
        What is written in a column, if anything, where a value is missing.
    """

    names: list[str]
    types: list[pa.DataType]
    decimal: str | None
    spellings: Mapping[str, str]

    @property
    def nbytes(self) -> int:
        """About what the parsed table takes in memory."""

    @property
    def remarks(self) -> tuple[str, ...] | None:
        """What was left out so far; None where every row of the file is a row of the table."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order; raise `Widened` after the last if some of them needed wider types."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files."""

    name: str  # for messages: "a Parquet file"
    suffixes: tuple[str, ...]
    is_binary: bool
    matches: Callable[[Source, bytes], bool]  # whether the first bytes, unpacked, are surely of this format
    # a `Reader` of text that is parsed once and kept, or a `massart.tables.columnar.FilePart` that is read again
    read: Callable[[Source, Beginning, ReadOptions], object]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first bytes of a source, read once."""

    data: bytes  # unpacked
    stored: int  # how many bytes of the file they take
    is_packed: bool  # whether the file as a whole is compressed
    is_all: bool  # whether there is nothing behind them


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or a copy of standard input: bytes that can be read several times."""

    name: str  # for messages
    path: Path | None  # None for standard input
    copy: IO[bytes] | None  # of standard input: a temporary file without a name
    size: int  # in bytes, as stored
    modified: int  # time of the last change, in nanoseconds

    def open(self, callback: Callback = silent) -> _File:
        """Return the bytes as stored, from the start."""
        return _File(self, callback)

    def open_unpacked(self, callback: Callback = silent) -> io.RawIOBase | pa.NativeFile:
        """Return the bytes, decompressed; they can be sought only if nothing is compressed."""
        file = self.open(callback)
        compression = compression_of(file.head)
        return file if compression is None else pa.CompressedInputStream(pa.PythonFile(file, mode="r"), compression)

    def beginning(self) -> Beginning:
        """Return the first bytes; TableError if there are none, or if they are compressed twice."""
        stored, left = 0, BEGINNING_BYTES
        parts: list[bytes] = []

        def note(progress: Progress) -> None:
            nonlocal stored
            stored = progress.step

        with self.open_unpacked(note) as stream:
            while left > 0 and (part := stream.read(left)):
                parts.append(part)
                left -= len(part)
            is_all = left > 0 or not stream.read(1)
            is_packed = not isinstance(stream, _File)
        data = b"".join(parts)
        if not data:
            raise TableError(f"{self.name}: the file is empty")
        if compression_of(data) is not None:
            raise TableError(f"{self.name}: the file is compressed twice: unpack it once")
        return Beginning(data, max(stored, 1), is_packed, is_all)

    @property
    def suffix(self) -> str:
        """The suffix in small letters, without that of a compression."""
        suffixes = [] if self.path is None else [suffix.lower() for suffix in self.path.suffixes]
        if suffixes and suffixes[-1] in COMPRESSIONS:
            suffixes.pop()
        return suffixes[-1] if suffixes else ""

    def is_named_text(self, head: bytes) -> bool:
        """Whether a file is text by its name and may be text by its bytes: a column may be named PAR1 or ORCID."""
        return self.suffix in TEXT_SUFFIXES and may_be_text(head)

    def close(self) -> None:
        """Remove the copy, if this is one."""
        if self.copy is not None:
            self.copy.close()

    def check_unchanged(self) -> None:
        """Raise TableError if the file is not what it was when it was opened first."""
        if self.path is None:
            return
        try:
            now = self.path.stat()
        except OSError:
            raise TableError(f"{self.name}: the file went away while it was read") from None
        if (now.st_size, now.st_mtime_ns) != (self.size, self.modified):
            raise TableError(f"{self.name}: the file changed while it was read: try again when it is complete")


class _File(io.RawIOBase):
    """A source as stored, read from a place of its own; reports how many bytes have been read.

    Not more than the size of the source is read: a file that grows faster than it is read would never end.
    """

    def __init__(self, source: Source, callback: Callback) -> None:
        self._name, self._size, self._callback = f"reading {source.name}", source.size, callback
        self._own: IO[bytes] | None = None
        if source.copy is None:
            assert source.path is not None
            try:
                self._own = source.path.open("rb", buffering=0)
            except PermissionError:
                raise TableError(f"{source.name}: no permission to read the file") from None
        self._file = cast("IO[bytes]", self._own or source.copy)
        self._place = self._done = 0
        self.head = os.pread(self._file.fileno(), 16, 0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._place, 0)
        data = os.pread(self._file.fileno(), left if size < 0 else min(size, left), self._place)
        self._place += len(data)
        self._done += len(data)
        self._callback(Progress(self._name, self._done, float(max(self._size - self._done, 0)), 0.0))
        return data

    def close(self) -> None:
        if self._own is not None:
            self._own.close()
        super().close()


def sources_of(path: str | Path) -> tuple[str, list[Source]]:
    """Return the name of a file, a folder or a pattern, or of standard input for "-", and the sources meant.

    Raises
    ------
    TableError
        If there is nothing that can be read, or it is empty.
    """
    written, place = str(path), Path(path)
    name = on_one_line(place.name or written)
    if place.is_dir():
        paths = [file for file in place.iterdir() if file.is_file() and not file.name.startswith((".", "_"))]
        if not paths:
            raise TableError(f"{name}: there are no files in this folder")
    elif glob.has_magic(written) and not place.exists():
        paths = [file for file in map(Path, glob.glob(written, recursive=True)) if file.is_file()]  # noqa: PTH207
        if not paths:
            raise TableError(f"{on_one_line(written)}: no file has such a name")
    else:
        source = _standard_input() if written == "-" else file_source(place)
        return source.name, [source]
    return name, [file_source(file) for file in sorted(paths)]


def _standard_input() -> Source:
    """Copy standard input, which can be read once only, into a temporary file."""
    if sys.stdin is None:
        raise TableError("standard input: there is none, for it was closed")
    size = 0
    with in_temporary_folder():
        copy = tempfile.TemporaryFile(prefix="massart-", buffering=0)  # noqa: SIM115
    while True:
        try:
            data = sys.stdin.buffer.read(_STEP_BYTES)
        except OSError as error:
            words = error.strerror or "input/output error"
            raise TableError(f"standard input: cannot be read ({words})") from None
        if not data:
            break
        with in_temporary_folder():
            if copy.write(data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        size += len(data)
    if not size:
        copy.close()
        raise TableError("standard input: the file is empty")
    return Source("standard input", None, copy, size, 0)


def file_source(path: Path) -> Source:
    """Return a file as a source; TableError if it cannot be read or is empty."""
    name = on_one_line(path.name or str(path))
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise TableError(f"{name}: this is a link to {quote(path.readlink())}, which is not there") from None
        raise TableError(f"{name}: no such file{_near_files(path)}") from None
    except PermissionError:
        raise TableError(f"{name}: no permission to read the file") from None
    except OSError as error:
        raise TableError(f"{name}: cannot be opened ({error.strerror or 'input/output error'})") from None
    except ValueError:
        raise TableError(f"{name}: no file can have such a name") from None
    if stat.S_ISDIR(found.st_mode):
        raise TableError(f"{name}: this is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise TableError(f'{name}: this is not a regular file (to read from a pipe, give "-" as the file)')
    if found.st_size == 0:
        raise TableError(f"{name}: the file is empty")
    return Source(name, path, None, found.st_size, found.st_mtime_ns)


def _near_files(path: Path) -> str:
    if not path.parent.is_dir():
        return f" (there is no folder {quote(path.parent)})"
    try:
        names = sorted(file.name for file in path.parent.iterdir() if not file.name.startswith("."))
    except OSError:
        return ""
    close = near_names(path.name, names)
    return f": did you mean {close}?" if close else f" in {quote(path.parent.resolve())}"


def format_of(source: Source, head: bytes, formats: Sequence[Format]) -> Format:
    """Return what a file holds, by its name and its first bytes, decompressed; the last format is plain text.

    Raises
    ------
    TableError
        For a file that is not a table, or not what its name says.
    """
    for one in formats:
        if one.matches(source, head):
            return one
    begin = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for magic, words in _FOREIGN:
        if head.startswith(magic) or (magic.startswith(b"<") and begin.startswith(magic)):
            raise TableError(f"{source.name}: this is {words}")
    meant = next((one for one in formats if source.suffix in one.suffixes), formats[-1])
    if meant.is_binary:
        hint = ": it looks like text, so name it .csv" if may_be_text(head) else ""
        raise TableError(f"{source.name}: this is not {meant.name}, whatever its name says{hint}")
    return meant


def may_be_text(head: bytes) -> bool:
    """Whether some bytes may be text: in UTF-16 or UTF-32 by their mark, or without a NUL byte."""
    return head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" not in head


def compression_of(head: bytes) -> str | None:
    """Return the name of the compression that the first bytes show."""
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zstd"
    # "BZh1" may begin a text; in a bz2 file the magic number of its first block follows.
    if head.startswith(b"BZh") and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        return "bz2"
    return None


@contextmanager
def in_plain_words(source: Source, where: str = "") -> Iterator[None]:
    """Turn what goes wrong while a source is read, or a part of it such as " in row group 3", into a TableError."""
    try:
        yield
    except TableError:
        source.check_unchanged()
        raise
    except MemoryError:
        raise TableError(f"{source.name}: the table does not fit into memory") from None
    except (pa.ArrowException, OSError, UnicodeError) as error:
        source.check_unchanged()
        raise TableError(f"{source.name}: {_explained(source, error, where)}") from None


def _explained(source: Source, error: Exception, where: str) -> str:
    kind = "file"
    with source.open() as file:
        head = file.head
        file.seek(max(source.size - 4, 0))
        tail = file.read()
    compression = compression_of(head)
    if compression is not None:
        damage = "cut short" if "Truncated compressed stream" in str(error) else "damaged"
        return f"the {compression} file is {damage}: copy or download it again"
    if head.startswith(b"PAR1"):
        kind = "Parquet file"
        if tail != b"PAR1":
            return "the Parquet file is cut short: its last bytes are missing"
    elif head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        kind = "Arrow file"
    elif isinstance(error, OSError) and error.errno is not None:
        return f"the file cannot be read ({error.strerror or 'input/output error'})"
    return f"the {kind} is damaged or cut short{where}: copy or download it again"


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
