"""The tables that commands read: how, whole where they fit into memory, and as streams where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from massart.cli.bars import bars
from massart.options import BlockReading, Reading

if TYPE_CHECKING:
    from massart.tables import Stream, Table

LOCAL = "local"
"""The cluster that --dask means without an address."""

_SECONDS = 20


@contextmanager
def opened(file: str, reading: BlockReading, *, as_stream: bool = False) -> Iterator[Table | Stream]:
    """Open a file, a folder or a pattern: a table in memory, or a stream if that would take too much of it."""
    from massart.tables import default_memory, stream_table

    most = default_memory() if reading.most_bytes is None else reading.most_bytes
    with (
        bars(in_bytes=True) as draw,
        stream_table(file, **reading.of_file, max_memory=most, callback=draw) as stream,
    ):
        if as_stream or stream.is_larger_than(most):
            yield stream
            return
        table = stream.whole(draw)
    yield table


def whole_table(file: str, reading: Reading) -> Table:
    """Read a file, or all files of a folder or a pattern, into memory."""
    from massart.tables import read_table

    with bars(in_bytes=True) as draw:
        return read_table(file, **reading.of_file, callback=draw)


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Give a client of a Dask cluster: at an address, of a local one for LOCAL, or None where none is asked for."""
    if address is None:
        yield None
        return
    try:
        distributed: Any = import_module("dask.distributed")
    except ImportError:
        raise ValueError("--dask needs Dask: pip install 'massart[dask]'") from None
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
