"""Where a table comes from: a file or standard input, what it holds by its first bytes, and its bytes as a stream.

The suffix says what a file is meant to be, the first bytes say what it is, and the bytes win where they are sure: a
Parquet file named ``.csv`` is read as Parquet, and a gzip file needs no suffix.
"""

from __future__ import annotations

import io
import re
import stat
import sys
import tempfile
import threading
import weakref
import zlib
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import pyarrow as pa

from massart.progress import Callback, Progress
from massart.table.errors import TableError, near, on_one_line, quote
from massart.table.spill import in_temporary_folder

if TYPE_CHECKING:
    from typing_extensions import Buffer  # in collections.abc from 3.12 on

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


class Format(Enum):
    """What a file holds."""

    TEXT = auto()
    JSON = auto()
    PARQUET = auto()
    ARROW = auto()
    WORKBOOK = auto()


FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), Format.TEXT),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), Format.JSON),
    **dict.fromkeys((".parquet", ".pq"), Format.PARQUET),
    **dict.fromkeys((".arrow", ".ipc", ".feather"), Format.ARROW),
    **dict.fromkeys((".xlsx", ".xlsm", ".ods", ".xls"), Format.WORKBOOK),
}

_BINARY = {Format.PARQUET: "a Parquet file", Format.ARROW: "an Arrow file", Format.WORKBOOK: "a workbook"}

_HEAD_BYTES = 1 << 12
_COPIED_BYTES = 1 << 20
_MOST_HELD = 1 << 24
_GZIP_ALONE = 16 + zlib.MAX_WBITS
_STEP_BYTES = 1 << 14  # at most a thousand times as much when unpacked
_GZIP, _ZSTD, _BZ2 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh"
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Protocols 2 to 5 name themselves; 0 and 1 begin with a dict, a list or a class, and a place for it in the memory.
_PICKLE = re.compile(
    rb"\x80[\x02-\x05]|\([dl]p\d+\n|[}\]]q\x00|c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n(?:p\d+\n|q.|\()", re.DOTALL
)
_STRANGERS = (
    (b"%PDF", "a PDF: export the table as CSV"),
    (b"SQLite format 3\0", "an SQLite database: export the table as CSV"),
    (b"\x89HDF", "an HDF5 file: export the table as CSV or Parquet"),
    (b"Obj\x01", "an Avro file: convert it to Parquet"),
    (b"ORC", "an ORC file: convert it to Parquet"),
    (b"FEA1", "a Feather file of version 1, which Arrow reads unchecked: write it again as Parquet"),
    (b"\x93NUMPY", "a numpy array without column names: write it as CSV or Parquet"),
    (b"\xfd7zXZ\0", "an xz archive: unpack it first"),
    (b"7z\xbc\xaf", "a 7z archive: unpack it first"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes that can be read several times."""

    name: str  # for messages
    path: Path | None  # None for what is no file, whose bytes are `content`
    content: bytes | Copy
    size: int  # in bytes, as stored
    modified: int  # time of the last change, in nanoseconds
    padding: int = 0  # zeros behind the end of a gzip file, as from a tape, which do not belong to it

    def open(self) -> BinaryIO:
        """Return the bytes as stored, from the start."""
        if self.path is not None:
            return self.path.open("rb", buffering=0)
        return io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content.open()

    def head(self) -> bytes:
        """Return the first bytes as stored."""
        with self.open() as file:
            return file.read(_HEAD_BYTES)

    @property
    def suffix(self) -> str:
        """The suffix in small letters, without that of a compression."""
        suffixes = [] if self.path is None else [suffix.lower() for suffix in self.path.suffixes]
        if suffixes and suffixes[-1] in COMPRESSIONS:
            suffixes.pop()
        return suffixes[-1] if suffixes else ""

    def check_unchanged(self) -> None:
        """Raise TableError if the file is no longer what it was when it was opened first."""
        if self.path is None:
            return
        try:
            now = self.path.stat()
        except OSError:
            raise TableError(f"{self.name}: the file went away while it was read") from None
        if (now.st_size, now.st_mtime_ns) != (self.size, self.modified):
            raise TableError(f"{self.name}: the file changed while it was read: try again when it is complete")


class Copy:
    """What standard input holds, to be read several times: in memory while it is small, then in a nameless file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = tempfile.SpooledTemporaryFile(_MOST_HELD, prefix="massart-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self.size = 0
        while data := _from_stdin(_COPIED_BYTES):
            with in_temporary_folder():
                self._file.write(data)
            self.size += len(data)

    def open(self) -> BinaryIO:
        """Return the bytes, from the start."""
        return cast(BinaryIO, _Reader(self))

    def read_at(self, place: int, size: int) -> bytes:
        """Return some of the bytes."""
        with self._lock:
            self._file.seek(place)
            return self._file.read(size)


def _from_stdin(size: int) -> bytes:
    if sys.stdin is None:
        raise TableError("standard input: there is none, for it was closed")
    try:
        return sys.stdin.buffer.read(size)
    except OSError as error:
        raise TableError(f"standard input: cannot be read ({error.strerror or 'input/output error'})") from None


class _Reader(io.RawIOBase):
    """A copy that is read from a place of its own."""

    def __init__(self, copy: Copy) -> None:
        self._copy, self._place = copy, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._copy.size}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Buffer) -> int:
        target = memoryview(buffer)
        data = self._copy.read_at(self._place, target.nbytes)
        target[: len(data)] = data
        self._place += len(data)
        return len(data)


def open_source(path: str | Path) -> Source:
    """Return the file at `path`, or standard input for "-"; TableError if it cannot be read or is empty."""
    if str(path) == "-":
        copy = Copy()
        source = Source("standard input", None, copy, copy.size, 0)
    else:
        source = _open_file(Path(path))
    if source.size == 0:
        raise TableError(f"{source.name}: the file is empty")
    return source if compression_of(source.head()) != "gzip" else replace(source, padding=_zeros_behind(source))


def _zeros_behind(source: Source) -> int:
    """Return the number of zeros behind the last member of a gzip file, 0 if there is anything else."""
    with source.open() as file:
        file.seek(source.size - 1)
        if file.read(1) != b"\0":  # without padding only texts of less than 16 MiB, by their length, end with a zero
            return 0
        file.seek(0)
        rest, n_zeros = file.read(_STEP_BYTES), 0
        try:
            while rest.startswith(_GZIP):
                rest = _behind_member(file, rest)
        except zlib.error:
            return 0
        while rest:
            if rest.strip(b"\0"):
                return 0
            n_zeros += len(rest)
            rest = file.read(_STEP_BYTES)
        return n_zeros


def _behind_member(file: BinaryIO, data: bytes) -> bytes:
    """Return the first bytes behind the gzip member that begins with `data`."""
    member = zlib.decompressobj(wbits=_GZIP_ALONE)
    while data:
        member.decompress(data)
        data = b"" if member.eof else file.read(_STEP_BYTES)
    return member.unused_data or file.read(_STEP_BYTES)


def _open_file(path: Path) -> Source:
    name = on_one_line(path.name or str(path))
    try:
        found = path.stat()
        if stat.S_ISREG(found.st_mode):
            path.open("rb").close()
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
    return Source(name, path, b"", found.st_size, found.st_mtime_ns)


def _near_files(path: Path) -> str:
    if not path.parent.is_dir():
        return f" (there is no folder {quote(path.parent)})"
    try:
        names = sorted(file.name for file in path.parent.iterdir() if not file.name.startswith("."))
    except OSError:
        return ""
    hint = near(path.name, names)
    return f": {hint}" if hint.startswith("did you mean") else f" in {quote(path.parent.resolve())}"


def compression_of(head: bytes) -> str | None:
    """Return the name of the compression that the first bytes show."""
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD):
        return "zstd"
    # "BZh1" may begin a text; in a bz2 file the magic number of its first block follows.
    if head.startswith(_BZ2) and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        return "bz2"
    return None


def format_of(source: Source, head: bytes) -> Format:
    """Decide what a file holds, by its name and its first bytes, decompressed."""
    meant = FORMATS.get(source.suffix)
    is_word = meant is Format.TEXT and _is_text(head)  # the first column may be named PAR1 or ORCID
    if head.startswith(b"PAR1") and not is_word:
        return Format.PARQUET
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")) and not is_word:
        return Format.ARROW
    if _is_workbook(source, head):
        return Format.WORKBOOK
    _refuse_strangers(source, head, is_word)
    begin = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if meant in _BINARY:
        hint = ": it looks like text, so name it .csv" if _is_text(head) else ""
        raise TableError(f"{source.name}: this is not {_BINARY[meant]}, whatever its name says{hint}")
    if meant is Format.JSON or begin.startswith((b'{"', b"[{")):
        return Format.JSON
    return Format.TEXT


def _is_workbook(source: Source, head: bytes) -> bool:
    """Whether a file is a workbook: an archive with its parts, or an old Excel file."""
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return True
    if not head.startswith(b"PK\x03\x04"):
        return False
    if b"xl/workbook.bin" in head or source.suffix == ".xlsb":
        raise TableError(f"{source.name}: this is a binary Excel workbook: save it as .xlsx")
    if b"wordprocessingml" in head or source.suffix in (".docx", ".odt", ".pptx"):
        raise TableError(f"{source.name}: this is a document, not a workbook: save the table as CSV")
    meant = FORMATS.get(source.suffix) is Format.WORKBOOK
    return meant or b"xl/" in head or b"[Content_Types].xml" in head or b"opendocument.spreadsheet" in head


def _refuse_strangers(source: Source, head: bytes, is_word: bool) -> None:
    for magic, words in _STRANGERS:
        if head.startswith(magic) and not (is_word and magic.isalnum()):
            raise TableError(f"{source.name}: this is {words}")
    if head.startswith(b"PK\x03\x04"):
        raise TableError(f"{source.name}: this is a ZIP archive: unpack it first")
    if _PICKLE.match(head):
        raise TableError(
            f"{source.name}: this is a Python pickle, which can run code when it is read: write CSV or Parquet"
        )
    if head[257:262] == b"ustar":
        raise TableError(f"{source.name}: this is a tar archive: unpack it first")
    begin = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:64].lower()
    if begin.startswith((b"<!doctype", b"<html", b"<?xml", b"<table", b"<head")):
        kind = "an XML file" if begin.startswith(b"<?xml") else "a web page (HTML)"
        raise TableError(f"{source.name}: this is {kind}, not a table: export or download it as CSV")


def _is_text(head: bytes) -> bool:
    return head.startswith(_BYTE_ORDER_MARKS) or b"\0" not in head


class _Counted(io.RawIOBase):
    """A file that reports how much of it has been read."""

    def __init__(self, source: Source, callback: Callback) -> None:
        self._file, self._source, self._callback = source.open(), source, callback
        self._done = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        # A file that grows faster than it is read would never end; that it grew is found at the end.
        left = max(self._source.size - self._source.padding - self._file.tell(), 0)
        data = self._file.read(left if size < 0 else min(size, left))
        self._done += len(data)
        self._callback(
            Progress(f"reading {self._source.name}", self._done, float(max(self._source.size - self._done, 0)), 0.0)
        )
        return data

    def close(self) -> None:
        self._file.close()
        super().close()


def open_stream(source: Source, callback: Callback) -> io.RawIOBase | pa.NativeFile:
    """Return the bytes of a source, decompressed; they can be sought only if nothing is compressed."""
    raw = _Counted(source, callback)
    compression = compression_of(source.head())
    return raw if compression is None else pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), compression)


def broken_stream(source: Source, error: OSError) -> TableError:
    """Return what a failure to read means in plain words."""
    compression = compression_of(source.head())
    if "Truncated compressed stream" in str(error):
        return TableError(f"{source.name}: the {compression} file is cut short: copy or download it again")
    if compression is not None:
        return TableError(f"{source.name}: the {compression} file is damaged: copy or download it again")
    return TableError(f"{source.name}: the file cannot be read ({error.strerror or 'input/output error'})")
