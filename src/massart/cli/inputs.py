"""The tables that commands read: whole where they fit into memory, and as streams where they do not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from massart.cli.bars import bars

if TYPE_CHECKING:
    from massart.table import Stream, Table

LOCAL = "local"
"""The cluster that --dask means without an address."""

_SECONDS = 20
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@contextmanager
def opened(
    file: str,
    *,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    max_memory: str | None,
    sheet: str | None = None,
    skip: int | None = None,
    na: Sequence[str] | None = None,
    as_stream: bool = False,
) -> Iterator[Table | Stream]:
    """Open a file, a folder or a pattern: a table in memory, or a stream if that would take more than `max_memory`."""
    from massart.table import default_memory, stream_table

    most = default_memory() if max_memory is None else size_of(max_memory)
    known: Any = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    known |= {"sheet": sheet, "skip": skip, "na": na or ()}
    with (
        bars(in_bytes=True) as draw,
        stream_table(file, **known, max_memory=most, callback=draw) as stream,
    ):
        if as_stream or stream.is_larger_than(most):
            yield stream
            return
        if file == "-":  # there is no second read
            yield stream.whole(draw)
            return
    yield whole_table(file, **known)


def whole_table(
    file: str,
    *,
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    sheet: str | None = None,
    skip: int | None = None,
    na: Sequence[str] | None = None,
) -> Table:
    """Read a file, or all files of a folder or a pattern, into memory."""
    from massart.table import read_table, stream_table

    known: Any = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    known |= {"sheet": sheet, "skip": skip, "na": na or ()}
    with bars(in_bytes=True) as draw:
        if file == "-" or Path(file).is_file():
            return read_table(file, **known, callback=draw)
        with stream_table(file, **known) as stream:
            return stream.whole(draw)


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Give a client of a Dask cluster: at an address, of a local one for LOCAL, or None where none is asked for."""
    if address is None:
        yield None
        return
    try:
        distributed: Any = import_module("dask.distributed")
    except ImportError:
        raise ValueError("--dask needs Dask: install massart[dask]") from None
    if address == LOCAL:
        with (
            distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0", silence_logs=50) as workers,
            distributed.Client(workers) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_SECONDS)
    except (OSError, ValueError) as error:
        raise ValueError(f"--dask {address}: no Dask scheduler answers there ({error})") from None
    with client:
        yield client


def size_of(text: str) -> int:
    """Return a number of bytes that is written as 2GB, 500 MB or 1.5GiB."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if found is None or found[2] not in _UNITS or not float(found[1]):
        raise ValueError(f"--max-memory must be a size such as 2GB or 500MB, got {text!r}")
    return int(float(found[1]) * _UNITS[found[2]])
