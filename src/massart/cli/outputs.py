"""The files that commands write: checked before any work, written whole."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from massart.cli.bars import spinner

if TYPE_CHECKING:
    from massart.audit import Audit

_MOST_HASHED = 1 << 30

TABLES = ("--audit", "--fixed", "--out")
"""Options whose file is a table."""

PAGES = (".html", ".htm")
"""How the name of a report ends."""


def check_outputs(sources: Sequence[str | Path], outputs: dict[str, Path | None]) -> None:
    """Complain, before any work, of outputs that cannot be written or would overwrite an input or each other."""
    from massart.report import check_installed
    from massart.rows.files import check_place
    from massart.tables import check_output

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
    from massart.cli.text import harmless

    if not found.is_rule and (fixed or save):
        typer.echo("No rule was found, so no fixed table and no model are written.", err=True)
        fixed = save = None
    if not found.is_rule and found.whole is not None and audit:
        typer.echo("No rule was found, so there are no wrong rows to list.", err=True)
        audit = None
    with spinner("Writing"):
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
    from massart.rows import files

    try:
        files.write(path, content.encode())
    except OSError as error:
        raise ValueError(f"{path}: cannot be written ({error.strerror or error})") from None


def digest(source: str) -> dict[str, str]:
    """Return what identifies this version of a file, and when it was changed."""
    import hashlib
    from datetime import datetime

    from massart.report import DATED

    if not Path(source).is_file():
        return {}
    dated = {DATED: f"{datetime.fromtimestamp(Path(source).stat().st_mtime):%Y-%m-%d %H:%M}"}
    if Path(source).stat().st_size > _MOST_HASHED:
        return dated | {"size of the file": f"{Path(source).stat().st_size:,} bytes"}
    with Path(source).open("rb") as file:
        return dated | {"SHA-256 of the file": hashlib.file_digest(file, "sha256").hexdigest()}
