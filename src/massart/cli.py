"""The command line: results on stdout, messages on stderr.

Exit status 0 when a formula was found that more than half of the rows follow, 1 when not, 2 for bad input, with one
line that says what is wrong. Commands import what they need when they run, so that ``massart --help`` is quick.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from massart import __version__

if TYPE_CHECKING:
    from massart.demo import Fit, Ledger
    from massart.progress import Callback

# typer exports BadParameter but not its base, which every complaint about the command line derives from.
_UsageError: Any = typer.BadParameter.__mro__[1]

_WRONG_ROWS_SHOWN = 5

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    try:
        status = app(list(arguments), prog_name="massart", standalone_mode=False)
    except _UsageError as error:
        return _complain(error.format_message())
    except ValueError as error:
        return _complain(str(error))
    except typer.Abort:
        typer.echo("massart: stopped", err=True)
        return 130
    return status if isinstance(status, int) else 0


def _complain(message: str) -> int:
    typer.echo(f"massart: {message}", err=True)
    return 2


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"massart {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def massart(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Recover the exact formula behind a table when up to half of its answers are wrong."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random ledger.")] = 0,
    rows: Annotated[int, typer.Option(min=20, help="Number of rows of the ledger.")] = 2000,
) -> None:
    """Make a ledger in which about a third of the totals are wrong, and recover its price list."""
    import numpy as np

    from massart.demo import WRONG_SHARE, fit, make_ledger

    typer.echo(f"Making a ledger of {rows} jobs, about {WRONG_SHARE:.0%} of the totals wrong (seed {seed}).", err=True)
    ledger = make_ledger(np.random.default_rng(seed), rows)
    found = fit(ledger.X, ledger.y, ledger.columns)
    for line in _demo_lines(ledger, found):
        typer.echo(line)
    if found.certificate.verdict.name not in ("PROVEN", "MAJORITY"):
        raise typer.Exit(1)


@app.command()
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
        with _bars() as draw:
            for experiment in chosen:
                experiments.reproduce(
                    experiment, out, trials=trials, seed=seed, jobs=jobs, command=command, callback=draw
                )
    except OSError as error:
        raise ValueError(f"cannot write to {out}: {error.strerror or error}") from error
    typer.echo(out / "index.html")


@contextmanager
def _bars() -> Iterator[Callback]:
    """Give a callback that draws one bar for each figure on stderr; one that does nothing where nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from massart.progress import Progress as Step
    from massart.progress import silent

    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bars: dict[str, Any] = {}

        def draw(step: Step) -> None:
            if step.task not in bars:
                bars[step.task] = progress.add_task(step.task, total=step.step + step.residual)
            progress.update(bars[step.task], completed=step.step)

        yield draw


def _demo_lines(ledger: Ledger, found: Fit) -> Iterator[str]:
    """Say what was found, in the order in which a reader asks for it."""
    import numpy as np

    from massart.demo import PRICES

    n = len(ledger.y)
    n_agree = int(np.count_nonzero(found.agree))
    terms = " + ".join(f"{c:.10g} {name}" for c, name in zip(found.coef, ledger.columns, strict=True))
    yield f"Recovered formula: total = {terms.replace('+ -', '- ')}"
    yield f"{n_agree} of {n} rows ({n_agree / n:.1%}) follow it to rounding error; {n - n_agree} rows do not."
    yield ""
    yield f"{'column':<10}{'recovered':>16}{'least squares':>16}{'true price':>12}"
    for name, coefficient, square, price in zip(ledger.columns, found.coef, found.least_squares, PRICES, strict=True):
        yield f"{name:<10}{coefficient:>16.10g}{square:>16.6g}{price:>12g}"
    yield ""
    yield found.certificate.explain()
    yield ""
    wrong = np.flatnonzero(~found.agree)[:_WRONG_ROWS_SHOWN]
    implied = ledger.X @ found.coef
    yield f"The first {len(wrong)} of {n - n_agree} rows that do not follow the formula:"
    yield "   row" + "".join(f"{name:>9}" for name in ledger.columns) + f"{'given':>12}{'implied':>12}"
    for row in wrong:
        values = "".join(f"{value:>9g}" for value in ledger.X[row])
        yield f"{row:>6}{values}{ledger.y[row]:>12.2f}{implied[row]:>12.2f}"
