"""A long text as chunks that end where a row ends, worked on by all cores, in order.

A line end parts rows unless it stands inside quotation marks, and a quotation mark opens only at the start of a cell:
in ``5" pipe`` it is a sign like any other. So the quoted cells are found first, and a chunk is cut at the last line
end outside of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.table.text import Text

CHUNK_BYTES = 1 << 21  # of 1 << 20 a CSV file of 2,000,000 x 21 decimals takes a tenth more processor time
LARGEST_CHUNK = 1 << 28

Chunk = bytes | memoryview

_MARK = b"\xef\xbb\xbf"
_QUOTE = ord('"')


class LongRow(Exception):
    """A row does not end within the largest chunk."""


def chunks_of(text: Text, delimiter: str | None, size: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Yield a text in chunks of about `size` bytes that end with a row.

    Without a delimiter every line end parts rows, as in JSON lines.
    """
    chunk = text.read(size).removeprefix(_MARK)
    wanted = size
    while data := text.read(wanted):
        end = last_row_end(chunk, delimiter)
        if end:
            yield memoryview(chunk)[:end]
            chunk, wanted = chunk[end:] + data, size
        elif len(chunk) >= LARGEST_CHUNK:
            raise LongRow
        else:
            chunk += data
            wanted = max(size, len(chunk))  # so that a long row is searched a few times only
    if chunk:
        yield chunk


def last_row_end(chunk: bytes, delimiter: str | None) -> int:
    """Return where the last complete row ends; 0 if there is none."""
    cells = None if delimiter is None else _Quoted.within(chunk, delimiter)
    stop = len(chunk)
    while stop > 0:
        end = chunk.rfind(b"\n", 0, stop)
        if end < 0:  # old Macs end lines with \r; one at the end of a chunk may be half of \r\n
            end = chunk.rfind(b"\r", 0, min(stop, len(chunk) - 1))
        if end < 0 or cells is None or (span := cells.around(end)) is None:
            return end + 1
        stop = span[0]
    return 0


def first_row_end(chunk: bytes, delimiter: str) -> int:
    """Return where the first row that is not empty ends."""
    cells = _Quoted.within(chunk, delimiter)
    start = len(chunk) - len(chunk.lstrip(b"\r\n"))
    while end := _LINE_END.search(chunk, start):
        span = None if cells is None else cells.around(end.start())
        if span is None:
            return end.end()
        start = span[1]
    return len(chunk)


_LINE_END = re.compile(rb"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class _Quoted:
    """Where the quoted parts of a chunk open, and where they are over; one that is never closed ends with the chunk."""

    opens: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def within(cls, chunk: bytes, delimiter: str) -> _Quoted | None:
        """Return the quoted parts of a chunk that begins with a row; None if there are none."""
        if b'"' not in chunk:
            return None
        signs = np.frombuffer(chunk, dtype=np.uint8)
        quotes = np.flatnonzero(signs == _QUOTE)
        opens, closes = quotes[::2], quotes[1::2]
        # A pair of marks inside a cell, which stands for one, closes it and opens it again.
        border = np.zeros(256, dtype=bool)
        border[[ord(delimiter), *b'\r\n"']] = True
        before, after = border[signs[opens - 1]], border[signs[(closes + 1) % len(chunk)]]
        before[:1] |= opens[:1] == 0
        after[-1:] |= closes[-1:] == len(chunk) - 1
        if not (before.all() and after.all()):  # marks inside cells: look at them one by one
            cell = re.compile(rb'"(?<![^%b\r\n]")(?:[^"]++|"")*+(?:"|\Z)' % re.escape(delimiter.encode()))
            spans = np.array([match.span() for match in cell.finditer(chunk)], dtype=np.int64).reshape(-1, 2)
            return cls(spans[:, 0], spans[:, 1])
        return cls(opens, np.append(closes + 1, [len(chunk)] * (len(opens) - len(closes))).astype(np.int64))

    def around(self, place: int) -> tuple[int, int] | None:
        """Return the quoted part that a place lies in, if any."""
        k = int(np.searchsorted(self.opens, place)) - 1
        return (int(self.opens[k]), int(self.ends[k])) if k >= 0 and place < self.ends[k] else None
