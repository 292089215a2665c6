"""``massart bench``: massart beside other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from massart.cli.bars import bars


def bench(
    out: Annotated[Path, typer.Option(help="Folder for the numbers and the page.")] = Path("massart-bench"),
    seed: Annotated[int, typer.Option(min=0, help="All random numbers follow from it.")] = 0,
    small: Annotated[bool, typer.Option("--small", help="A few cells and methods, which take seconds.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="CELL", help="Cells whose names begin so; may be repeated.")
    ] = None,
    tables: Annotated[int | None, typer.Option(min=1, help="At most so many tables of each cell.")] = None,
) -> None:
    """Measure massart and its peers on tables whose truth is known; a run that was stopped goes on where it was.

    Peers that are not installed are named and skipped: pip install massart[bench], and R with robustbase, quantreg and
    MASS.
    """
    from massart.experiments.bench import running

    cells = running.choose(only or (), small)
    for line in running.left_out():
        typer.echo(f"skipped: {line}", err=True)
    options = [*(f"--only {name}" for name in only or ()), *(["--small"] if small else [])]
    options += [f"--tables {tables}"] if tables else []
    command = " ".join(["massart bench", f"--seed {seed}", *options])
    try:
        out.mkdir(parents=True, exist_ok=True)
        with bars() as draw:
            running.bench(cells, out, seed=seed, small=small, most_tables=tables, command=command, callback=draw)
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror or error}") from error
    typer.echo(out / "bench.html")
