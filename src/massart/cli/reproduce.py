"""``massart reproduce``: the figures of the paper, and further ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from massart.cli.options import with_options
from massart.cli.terminal import bars
from massart.experiments import reproduce as experiments
from massart.options import Option, OptionGroup


@dataclass(frozen=True)
class ReproduceOptions(OptionGroup):
    """How much is computed, and where it goes."""

    out: Annotated[Path, Option("Folder for tables, pictures and the page.", "Output", metavar="FOLDER")] = Path(
        "massart-figures"
    )
    trials: Annotated[int, Option("Trials of each cell; expensive methods take fewer.", least=1)] = 200
    jobs: Annotated[int, Option("Processes; by default one for each core.", least=1)] = os.cpu_count() or 1
    data: Annotated[Path | None, Option("The drug-discovery file, for fig2b; downloaded if absent.")] = None
    seed: Annotated[int, Option("Random seed.", least=0)] = 0


@with_options(options=ReproduceOptions)
def reproduce(
    *,
    figures: Annotated[list[str], typer.Argument(help="fig1a, fig1b, fig2a, fig2b, phase; or all.", metavar="FIGURE")],
    options: ReproduceOptions,
) -> None:
    """Reproduce the figures of the paper, and further ones; a run that was stopped continues where it was."""
    names, out = list(dict.fromkeys(figures)), options.out
    try:
        experiments.prepare(out)
        chosen = experiments.choose(names, options.data, out)
        command = f"massart reproduce {' '.join(names)} --trials {options.trials} --seed {options.seed}"
        with bars() as draw:
            for experiment in chosen:
                experiments.reproduce(
                    experiment,
                    out,
                    trials=options.trials,
                    seed=options.seed,
                    jobs=options.jobs,
                    command=command,
                    callback=draw,
                )
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror or error}") from error
    typer.echo(out / "index.html")
