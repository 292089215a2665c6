"""``massart reproduce``: the figures of the paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from massart.cli.bars import bars


def reproduce(
    figures: Annotated[
        list[str], typer.Argument(help="Of fig1a, fig1b, fig2a, fig2b, phase; or all.", metavar="FIGURE...")
    ],
    out: Annotated[Path, typer.Option(help="Folder for tables, pictures and the page.")] = Path("massart-figures"),
    trials: Annotated[int, typer.Option(min=1, help="Trials of each cell; expensive methods take fewer.")] = 200,
    jobs: Annotated[int, typer.Option(min=1, help="Processes; by default one for each core.")] = os.cpu_count() or 1,
    data: Annotated[Path | None, typer.Option(help="The drug-discovery file, for fig2b; downloaded if absent.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="All random numbers follow from it.")] = 0,
) -> None:
    """Make the figures of the paper again, and those beyond it; a run that was stopped goes on where it was."""
    from massart.experiments import reproduce as experiments

    names = list(dict.fromkeys(figures))
    try:
        experiments.prepare(out, trials, jobs, seed)
        chosen = experiments.choose(names, data, out)
        command = f"massart reproduce {' '.join(names)} --trials {trials} --seed {seed}"
        with bars() as draw:
            for experiment in chosen:
                experiments.reproduce(
                    experiment, out, trials=trials, seed=seed, jobs=jobs, command=command, callback=draw
                )
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror or error}") from error
    typer.echo(out / "index.html")
