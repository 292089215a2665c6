"""Text files as UTF-8 bytes, whatever they are stored as, watched for what a table of text does not hold."""

from __future__ import annotations

import codecs
import io
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from massart.progress import Callback, Progress, silent
from massart.table.errors import TableError, quote
from massart.table.sources import Source, open_stream

if TYPE_CHECKING:
    from typing_extensions import Buffer  # in collections.abc from 3.12 on

UTF_8 = "utf-8"
WINDOWS = "cp1252"
SAMPLE_BYTES = 1 << 18

_STEP = 1 << 16

_NO_WINDOWS = re.compile(rb"[\x81\x8d\x8f\x90\x9d\x00-\x08\x0e-\x1b]")
_NO_UTF_8 = re.compile("[\udc80-\udcff]")  # what "surrogateescape" makes of it

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def encoding_of(source: Source, head: bytes, asked: str | None) -> str:
    """Return the encoding asked for, that of a byte order mark in the first bytes, or UTF-8."""
    if asked is not None:
        try:
            found = codecs.lookup(asked)
        except LookupError:
            raise TableError(
                f"{source.name}: there is no encoding {quote(asked)}: try utf-8, latin-1 or cp1252"
            ) from None
        if not getattr(found, "_is_text_encoding", True):
            raise TableError(f"{source.name}: {quote(asked)} is not an encoding of text: try utf-8, latin-1 or cp1252")
        return found.name
    return next((encoding for mark, encoding in _MARKS if head.startswith(mark)), UTF_8)


def is_windows_text(source: Source, encoding: str) -> bool:
    """Whether the first bytes are no UTF-8 but may be what Windows writes: no letter of theirs is one of UTF-8."""
    if encoding != UTF_8:
        return False
    data = first_bytes(open_stream(source, silent), SAMPLE_BYTES)
    text = data.decode(UTF_8, "surrogateescape")
    cut = 3 if len(data) >= SAMPLE_BYTES else 0  # a letter may be cut at the end
    odd = _NO_UTF_8.search(text[: len(text) - cut])
    letters = (c for c in text if not c.isascii() and not "\udc80" <= c <= "\udcff")
    return odd is not None and b"\0" not in data and not _NO_WINDOWS.search(data) and next(letters, None) is None


class Text(io.RawIOBase):
    """The text of a source as UTF-8, read once from its start.

    Attributes
    ----------
    quotes : int
        Quotation marks read so far: an odd number at the end is a sign of one that is never closed.
    """

    _stream: Any = None

    def __init__(self, source: Source, encoding: str, callback: Callback = silent) -> None:
        self.quotes = 0
        self._source, self._encoding = source, encoding
        self._stream = open_stream(source, callback)
        self._decoder = None if encoding == UTF_8 else codecs.getincrementaldecoder(encoding)()
        self._done = self._lines = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to about `size` bytes; none at the end."""
        return b"" if self.closed else self._read(size)

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer, for the wrappers of the standard library."""
        room = memoryview(buffer).cast("B")
        data = self.read(len(room) // 4)  # one byte of another encoding is at most three in UTF-8
        room[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the source."""
        if self._stream is not None:
            self._stream.close()
        super().close()

    def _read(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        if self._decoder is not None:
            data = self._decoded(data, size)
        if b'"' in data:  # looking is quicker than counting
            self.quotes += data.count(b'"')
        if b"\0" in data:
            line = self._lines_read() + data.count(b"\n", 0, data.index(b"\0")) + 1
            raise TableError(
                f"{self._source.name}: line {line:,} holds a NUL byte, so this is no UTF-8 text: "
                "if it is text in another encoding, name it (--encoding utf-16-le)"
            )
        self._done += len(data)
        if self._decoder is not None:
            self._lines += data.count(b"\n")
        return data

    def _lines_read(self) -> int:
        """Return the number of lines read; for UTF-8 they are counted only where somebody asks."""
        if self._decoder is not None:
            return self._lines
        with open_stream(self._source, silent) as stream:
            return sum(stream.read(min(_STEP, self._done - k)).count(b"\n") for k in range(0, self._done, _STEP))

    def _decoded(self, data: bytes, size: int) -> bytes:
        assert self._decoder is not None
        try:
            text = self._decoder.decode(data, final=not data)
            while data and not text:  # a character that is not complete yet: nothing must not look like the end
                data = self._stream.read(max(size, 16))
                text = self._decoder.decode(data, final=not data)
        except UnicodeError:
            raise TableError(
                f"{self._source.name}: line {self._lines + 1:,} or below is not {self._encoding} text: "
                "name the right encoding (--encoding)"
            ) from None
        return text.encode(UTF_8, "replace")


def lines_of(source: Source, encoding: str) -> io.TextIOWrapper:
    """Return the text line by line, with what is no UTF-8 kept as surrogates, to look for faults."""
    buffered = io.BufferedReader(Text(source, encoding), 1 << 16)
    return io.TextIOWrapper(buffered, UTF_8, errors="surrogateescape", newline="")


def first_bytes(stream: io.RawIOBase | pa.NativeFile, size: int) -> bytes:
    """Return about the first `size` bytes of a stream, fewer only if there are no more, and close it."""
    parts: list[bytes] = []
    with stream:
        while size > 0 and (part := stream.read(size)):
            parts.append(part)
            size -= len(part)
    return b"".join(parts)


def size_of(source: Source, encoding: str) -> int:
    """Return about how many bytes a text has as UTF-8, by how many the first of the stored bytes become."""
    stored = 1

    def note(progress: Progress) -> None:
        nonlocal stored
        stored = max(progress.step, 1)

    with Text(source, encoding, note) as text:
        return len(text.read(SAMPLE_BYTES)) * source.size // stored


def sample_of(source: Source, encoding: str) -> str:
    """Return the first lines, cut after a whole one where the text is longer than the sample."""
    data = first_bytes(Text(source, encoding), SAMPLE_BYTES)
    if len(data) >= SAMPLE_BYTES and b"\n" in data:
        data = data[: data.rindex(b"\n") + 1]
    return data.decode(UTF_8, "replace").removeprefix("\ufeff")


def check_utf_8(source: Source, encoding: str) -> None:
    """Raise TableError naming the first line that is no UTF-8."""
    with lines_of(source, encoding) as lines:
        for number, line in enumerate(lines, 1):
            if not line.isascii() and _NO_UTF_8.search(line):
                raise TableError(
                    f"{source.name}: line {number:,} is not UTF-8 text: "
                    "name the encoding, for instance --encoding latin-1 or cp1252"
                )
