"""The files of commands: tables are read whole or as streams, and outputs are checked before any work."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from massart.audit import Audit
from massart.cli.app import LOCAL
from massart.cli.terminal import bars, harmless
from massart.options import BlockReading
from massart.report import DATED, check_installed
from massart.rows import check_place, files
from massart.tables import Stream, Table, check_output, default_memory, stream_table

_SECONDS = 20
_MOST_HASHED = 1 << 30

TABLES = ("--audit", "--fixed", "--out")
"""Options whose file is a table."""

PAGES = (".html", ".htm")
"""How the name of a report ends."""


@contextmanager
def opened(file: str, reading: BlockReading, *, as_stream: bool = False) -> Iterator[Table | Stream]:
    """Open a file, a folder or a pattern: a table in memory, or a stream if that would take too much of it."""
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


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Yield a client of a Dask cluster: at an address, of a local cluster for LOCAL, or None without an address."""
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


def check_outputs(sources: Sequence[str | Path], outputs: dict[str, Path | None]) -> None:
    """Raise ValueError, before any work, for an output that cannot be written or would overwrite a file in use."""
    taken = {os.path.realpath(source): "the file that is read" for source in sources if str(source) != "-"}
    for option, path in outputs.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"{option} {path} would overwrite {taken[place]}")
        taken[place] = f"the output of {option}"
        if option in TABLES:
            check_output(path)
        else:
            check_place(path)
        if option == "--report":
            check_installed()
            if path.suffix.lower() not in PAGES:
                raise ValueError(f"{option} {path}: a report is a page, so its name ends in {' or '.join(PAGES)}")


def typed(context: typer.Context) -> str:
    """Return the command as the user typed it."""
    return shlex.join(["massart", *context.obj])


def write_outputs(
    found: Audit,
    command: str,
    source: str,
    *,
    report: Path | None = None,
    audit: Path | None = None,
    fixed: Path | None = None,
    save: Path | None = None,
) -> None:
    """Write the report and the model, and say what was written; without a rule there is nothing to fix or to save."""
    if not found.is_rule and (fixed or save):
        typer.echo("No rule was found, so no fixed table and no model are written.", err=True)
        fixed = save = None
    if not found.is_rule and found.whole is not None and audit:
        typer.echo("No rule was found, so there are no wrong rows to list.", err=True)
        audit = None
    with bars("Writing"):
        if save is not None:
            write(save, found.model().to_json())
        if report is not None:
            write(report, found.report({"command": command, **digest(source)}).to_html())
    for what, path in (("audit", audit), ("fixed table", fixed), ("model", save), ("report", report)):
        if path is not None:
            typer.echo(f"Wrote the {what} to {harmless(path)}.", err=True)
    if fixed is not None and found.n_wrong and not found.is_certain:
        verdict = found.certificate.verdict.name
        typer.echo(f"The formula is not certain ({verdict}), nor are the values it gave the fixed table.", err=True)


def write(path: Path, content: str) -> None:
    """Write a text, whole or not at all."""
    try:
        files.write(path, content.encode())
    except OSError as error:
        raise ValueError(f"{path}: cannot be written ({error.strerror or error})") from None


def digest(source: str) -> dict[str, str]:
    """Return what identifies this version of a file, and when it was changed."""
    if not Path(source).is_file():
        return {}
    dated = {DATED: f"{datetime.fromtimestamp(Path(source).stat().st_mtime):%Y-%m-%d %H:%M}"}
    if Path(source).stat().st_size > _MOST_HASHED:
        return dated | {"size of the file": f"{Path(source).stat().st_size:,} bytes"}
    with Path(source).open("rb") as file:
        return dated | {"SHA-256 of the file": hashlib.file_digest(file, "sha256").hexdigest()}


def named_after(outputs: Mapping[str, Path | None], what: str) -> dict[str, Path | None]:
    """Return where the outputs of one run of several are written: report.html becomes report-total.html."""
    name = re.sub(r"\W+", "-", what).strip("-") or "target"
    return {
        option: path.with_name(f"{path.stem}-{name}{path.suffix}") if path is not None and path.name else path
        for option, path in outputs.items()  # without a name it is a folder, which is refused later
    }
