"""Where a table comes from: a file, a folder, a pattern or standard input; its bytes, and its text.

The suffix says what a file is meant to be and the first bytes say what it is, and the bytes win where they are sure: a
Parquet file named ``.csv`` is read as Parquet, and a gzip file needs no suffix. A format of files is one module that
defines a `Format`, and one line that lists it (`massart.tables.stream.FORMATS`).
"""

from __future__ import annotations

import codecs
import glob
import io
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from massart.rows import Callback, Progress, silent
from massart.tables.errors import TableError, near_names, on_one_line, quote

if TYPE_CHECKING:
    from massart.tables.parts import Part

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
BEGINNING_BYTES = 1 << 21
"""What is looked at to find out what a file holds, how it is written and the types of its columns."""

UTF_8 = "utf-8"

_FOREIGN = (  # in small letters
    (b"%pdf", "a PDF: export the table as CSV"),
    (b"pk\x03\x04", "a ZIP archive: unpack it first"),
    *((begin, "a web page (HTML), not a table: download the table as CSV") for begin in (b"<!doctype", b"<html")),
    (b"<?xml", "an XML file, not a table: export the table as CSV"),
)
_MARK = b"\xef\xbb\xbf"
_BYTE_ORDER_MARKS = (  # that of UTF-32 begins as that of UTF-16 does
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_WINDOWS = re.compile(rb"[\x81\x8d\x8f\x90\x9d\x00-\x08\x0e-\x1b]")
_NO_UTF_8 = re.compile("[\udc80-\udcff]")  # what "surrogateescape" makes of it


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a caller says of how a file is written and read; None where it is to be found out."""

    delimiter: str | None = None  # between the cells of a text file
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None  # of a workbook: the name or the number, from 1, of a sheet
    skip: int | None = None  # lines of a text file, or rows of a sheet, above the header
    chunk_bytes: int = 1 << 21  # of 1 << 20 a CSV file of 2,000,000 x 21 decimals takes a tenth more processor time
    most_kept: float = np.inf  # bytes of a parsed table that stay in memory
    callback: Callback = silent


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files."""

    name: str  # for messages: "a Parquet file"
    suffixes: tuple[str, ...]
    is_binary: bool
    matches: Callable[[Source, bytes], bool]  # whether the first bytes, unpacked, are surely of this format
    read: Callable[[Source, Beginning, ReadOptions], Part]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first bytes of a source, read once."""

    data: bytes  # unpacked
    size: int  # about how many bytes all of the source has, unpacked
    is_packed: bool  # whether the file as a whole is compressed


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or a copy of standard input: bytes that can be read several times."""

    name: str  # for messages
    path: Path | None  # None for a copy
    copy: IO[bytes] | None  # of standard input, or of a compressed file: a temporary file without a name
    size: int  # in bytes, as stored
    modified: int = 0  # time of the last change, in nanoseconds

    def open(self, callback: Callback = silent) -> _File:
        """Return the bytes as stored, from the start."""
        return _File(self, callback)

    def open_unpacked(self, callback: Callback = silent) -> io.RawIOBase | pa.NativeFile:
        """Return the bytes, decompressed; they can be sought only if nothing is compressed."""
        return _unpacking(self.open(callback))

    def unpacked(self) -> Source:
        """Return a copy of a compressed file."""
        with self.open_unpacked() as stream:
            return _copied(self.name, stream)

    def beginning(self) -> Beginning:
        """Return the first bytes; TableError if there are none, or if they are compressed twice."""
        left, parts = BEGINNING_BYTES, []
        file = self.open()
        with _unpacking(file) as stream:
            while left > 0 and (part := stream.read(left)):
                parts.append(part)
                left -= len(part)
            data = b"".join(parts)
            found = Beginning(data, len(data) * self.size // max(file.tell(), 1), stream is not file)
        if not found.data:
            raise TableError(f"{self.name}: the file is empty")
        if compression_of(found.data) is not None:
            raise TableError(f"{self.name}: the file is compressed twice: unpack it once")
        return found

    @property
    def suffix(self) -> str:
        """The suffix in small letters, without that of a compression."""
        suffixes = [] if self.path is None else [suffix.lower() for suffix in self.path.suffixes]
        return next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSIONS), "")

    def is_named_text(self, head: bytes) -> bool:
        """Whether a file is text by its name and may be text by its bytes: a column may be named PAR1 or ORCID."""
        return self.suffix in TEXT_SUFFIXES and _may_be_text(head)

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
            try:
                self._own = cast(Path, source.path).open("rb", buffering=0)
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


def _unpacking(file: _File) -> io.RawIOBase | pa.NativeFile:
    compression = compression_of(file.head)
    return file if compression is None else pa.CompressedInputStream(pa.PythonFile(file, mode="r"), compression)


def sources_of(path: str | Path) -> tuple[str, list[Source]]:
    """Return the name of a file, a folder or a pattern, or of standard input for "-", and the sources meant.

    Raises
    ------
    TableError
        If there is nothing that can be read.
    """
    files = files_of(path)
    if files is not None:
        return on_one_line(Path(path).name or str(path)), [file_source(file) for file in files]
    source = _standard_input() if str(path) == "-" else file_source(Path(path))
    return source.name, [source]


def files_of(path: str | Path) -> list[Path] | None:
    """Return the files of a folder or of a pattern, by name; None for one file. TableError if there are none."""
    written, place = str(path), Path(path)
    if os.path.isdir(written):  # noqa: PTH112 (a name that is too long is none)
        found = [file for file in place.iterdir() if file.is_file() and not file.name.startswith((".", "_"))]
        if not found:
            raise TableError(f"{on_one_line(place.name or written)}: there are no files in this folder")
    elif glob.has_magic(written) and not os.path.exists(written):  # noqa: PTH110
        found = [file for file in map(Path, glob.glob(written, recursive=True)) if file.is_file()]  # noqa: PTH207
        if not found:
            raise TableError(f"{on_one_line(written)}: no file has such a name")
    else:
        return None
    return sorted(found)


def _standard_input() -> Source:
    """Copy standard input, which can be read once only."""
    if sys.stdin is None:
        raise TableError("standard input: there is none, for it was closed")
    try:
        return _copied("standard input", sys.stdin.buffer)
    except OSError as error:
        words = error.strerror or "input/output error"
        raise TableError(f"standard input: cannot be read ({words})") from None


def _copied(name: str, stream: Any) -> Source:
    """Return a copy of a stream in a temporary file without a name."""
    size = 0
    with in_temporary_folder():
        copy = tempfile.TemporaryFile(prefix="massart-")  # noqa: SIM115
    try:
        while data := stream.read(1 << 20):
            size += len(data)
            with in_temporary_folder():
                copy.write(data)
        with in_temporary_folder():
            copy.flush()
    except BaseException:
        with suppress(OSError):  # what a full disk has no room for is not wanted any more
            copy.close()
        raise
    return Source(name, None, copy, size)


def file_source(path: Path) -> Source:
    """Return a file as a source; TableError if it cannot be read."""
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
        if begin.startswith(magic):
            raise TableError(f"{source.name}: this is {words}")
    meant = next((one for one in formats if source.suffix in one.suffixes), formats[-1])
    if meant.is_binary:
        hint = ": it looks like text, so name it .csv" if _may_be_text(head) else ""
        raise TableError(f"{source.name}: this is not {meant.name}, whatever its name says{hint}")
    return meant


def _may_be_text(head: bytes) -> bool:
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
    with source.open() as file:
        head = file.head
    if (compression := compression_of(head)) is not None:
        damage = "cut short" if "Truncated compressed stream" in str(error) else "damaged"
        return f"the {compression} file is {damage}: copy or download it again"
    kinds = (("Parquet file", b"PAR1"), ("Arrow file", b"ARROW1"), ("Arrow file", b"\xff\xff\xff\xff"))
    kind = next((kind for kind, magic in kinds if head.startswith(magic)), "file")
    if kind == "file" and isinstance(error, OSError) and error.errno is not None:
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


# --- text ---


def encoding_of(source: Source, beginning: Beginning, asked: str | None) -> tuple[str, str]:
    """Return the encoding of a text, and a remark where it was guessed.

    It is the one asked for, that of a byte order mark, or UTF-8; or that of Windows, if the first bytes are not UTF-8
    but may be what Windows writes, and none of them is a letter in UTF-8.
    """
    if asked is not None:
        try:
            "".encode(asked)  # refuses what is not an encoding of text, such as base64
            return codecs.lookup(asked).name, ""
        except LookupError:
            raise TableError(
                f"{source.name}: {quote(asked)} is not an encoding of text: try utf-8, latin-1 or cp1252"
            ) from None
    data = beginning.data[: 1 << 18]  # what is not UTF-8 further down is an error
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding, ""
    text = data.decode(UTF_8, "surrogateescape")
    cut = 3 if len(beginning.data) > len(data) else 0  # a letter may be cut at the end
    odd = _NO_UTF_8.search(text[: len(text) - cut])
    has_letters = any(not c.isascii() and not "\udc80" <= c <= "\udcff" for c in text)
    if odd is None or b"\0" in data or _NO_WINDOWS.search(data) or has_letters:
        return UTF_8, ""
    return "cp1252", "Read the text in the encoding of Windows (cp1252), for it is not UTF-8; --encoding names another."


class Text:
    """The text of a source as UTF-8 without a byte order mark, read once from its start."""

    def __init__(self, source: Source, encoding: str, callback: Callback = silent) -> None:
        self.source, self.encoding, self._done = source, encoding, 0
        self._stream: Any = source.open_unpacked(callback)
        if encoding != UTF_8:
            stream = self._stream if isinstance(self._stream, pa.NativeFile) else pa.PythonFile(self._stream, mode="r")
            self._stream = pa.transcoding_input_stream(stream, encoding, UTF_8)

    def __enter__(self) -> Text:
        """Return the text."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the source."""
        self._stream.close()

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end."""
        try:
            data = self.read_unchecked(size)
        except UnicodeError:
            line = line_at(self.source, self.encoding, self._done)
            raise TableError(
                f"{self.source.name}: line {line:,} or below is not {self.encoding} text: name the right encoding "
                "(--encoding)"
            ) from None
        if b"\0" in data:
            line = line_at(self.source, self.encoding, self._done - len(data) + data.index(b"\0"))
            raise TableError(
                f"{self.source.name}: line {line:,} holds a NUL byte, so this is not a text file: export the table as "
                "CSV, or name its encoding (--encoding utf-16-le)"
            )
        return data

    def read_unchecked(self, size: int) -> bytes:
        """Return up to `size` bytes, whatever they are."""
        data: bytes = self._stream.read(size)
        data = data if self._done else data.removeprefix(_MARK)
        self._done += len(data)
        return data


def first_of(source: Source, encoding: str) -> tuple[bytes, bool]:
    """Return the beginning of a text as UTF-8, and whether that is all of it."""
    with Text(source, encoding) as text:
        return text.read(BEGINNING_BYTES), not text.read(1)


def line_at(source: Source, encoding: str, place: int) -> int:
    """Return the number of the line, from 1, that the byte at a place of a text stands in; the text is read again."""
    line, before = 1, b""
    with Text(source, encoding) as text, suppress(UnicodeError):
        while place > 0 and (data := text.read_unchecked(min(place, 1 << 20))):
            # A line ends with \n, \r\n, or the \r of old Macs.
            line += data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
            line -= before == b"\r" and data.startswith(b"\n")
            before, place = data[-1:], place - len(data)
    return line


def check_utf_8(text: str, source: Source, encoding: str, place: int) -> None:
    """Raise TableError naming the first line that is not UTF-8 of a piece, decoded by "surrogateescape", of a text."""
    if not text.isascii() and (odd := _NO_UTF_8.search(text)):
        before = text[: odd.start()].encode(UTF_8, "surrogateescape")
        raise TableError(
            f"{source.name}: line {line_at(source, encoding, place + len(before)):,} is not UTF-8 text: "
            "name the encoding, for instance --encoding latin-1 or cp1252"
        )
