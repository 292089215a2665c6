"""The tables that commands read: how, whole where they fit into memory, and as streams where they do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from massart.cli.bars import bars

if TYPE_CHECKING:
    from massart.tables import Stream, Table

LOCAL = "local"
"""The cluster that --dask means without an address."""

_SECONDS = 20
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a file is read: the options for what it does not tell itself."""

    delimiter: Annotated[
        str | None,
        typer.Option(
            help="Between the fields of a CSV file, tab or one character; found out by default.",
            parser=lambda text: "\t" if text in ("tab", r"\t") else text,
        ),
    ] = None
    decimal: Annotated[str | None, typer.Option(help="The decimal mark, . or ,; found out by default.")] = None
    encoding: Annotated[str | None, typer.Option(help="Of a text file, such as latin-1; UTF-8 by default.")] = None
    sheet: Annotated[
        str | None, typer.Option(help="Of a workbook: the name or the number of a sheet; the largest by default.")
    ] = None
    skip: Annotated[int | None, typer.Option(min=0, help="Lines above the column names; found out by default.")] = None
    na: Annotated[
        list[str] | None, typer.Option(help="A text or number that means that a value is missing; again for another.")
    ] = None

    @property
    def known(self) -> dict[str, Any]:
        """What readers are told."""
        return {field.name: getattr(self, field.name) for field in fields(Reading)} | {"na": self.na or ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReading(Reading):
    """The same of files that may be larger than memory."""

    max_memory: Annotated[
        str | None,
        typer.Option(
            help="Larger tables are read in blocks: 2GB, 500MB; an eighth of the machine's memory by default."
        ),
    ] = None

    @property
    def most_bytes(self) -> int:
        """What a table may take of memory."""
        from massart.tables import default_memory

        return default_memory() if self.max_memory is None else size_of(self.max_memory)


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, in the place of its parameter `reading`, the options of that one's class: typer has no groups."""
    kind: type[Reading] = get_type_hints(command)["reading"]
    hints = get_type_hints(kind, include_extras=True)
    options = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=None, annotation=hints[field.name])
        for field in fields(kind)
    ]
    own = signature(command, eval_str=True)
    parameters = [
        option
        for parameter in own.parameters.values()
        for option in (options if parameter.name == "reading" else [parameter.replace(kind=Parameter.KEYWORD_ONLY)])
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        values = {field.name: given.pop(field.name) for field in fields(kind)}
        values["na"] = tuple(values["na"] or ()) or None  # which has a hash, as tasks need
        command(reading=kind(**values), **given)

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


@contextmanager
def opened(file: str, reading: BlockReading, *, as_stream: bool = False) -> Iterator[Table | Stream]:
    """Open a file, a folder or a pattern: a table in memory, or a stream if that would take too much of it."""
    from massart.tables import stream_table

    most = reading.most_bytes
    with (
        bars(in_bytes=True) as draw,
        stream_table(file, **reading.known, max_memory=most, callback=draw) as stream,
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
        return read_table(file, **reading.known, callback=draw)


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


def size_of(text: str) -> int:
    """Return a number of bytes that is written as 2GB, 500 MB or 1.5GiB."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if found is None or found[2] not in _UNITS or not float(found[1]):
        raise ValueError(f"--max-memory must be a size such as 2GB or 500MB, got {text!r}")
    return int(float(found[1]) * _UNITS[found[2]])
