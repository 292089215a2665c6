"""The commands together: arguments in, exit status out, every complaint one line."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import typer

from massart import __version__
from massart.cli.demo import demo
from massart.cli.export import export
from massart.cli.fit import fit
from massart.cli.inputs import LOCAL
from massart.cli.predict import predict
from massart.cli.reproduce import reproduce
from massart.cli.scan import scan
from massart.cli.text import one_line

# typer exports BadParameter but not its base, which every complaint about the command line derives from.
_UsageError: Any = typer.BadParameter.__mro__[1]

_STOPPED = 130

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may have no letter for ≈ or for a name
    try:
        status = app(_with_cluster(arguments), prog_name="massart", standalone_mode=False, obj=list(arguments))
        sys.stdout.flush()
    except _UsageError as error:
        return _complain(error.format_message())
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        return _complain(str(error))
    except MemoryError:
        return _complain("there is not enough memory for this table")
    except (typer.Abort, KeyboardInterrupt):
        status = _STOPPED
    if status == _STOPPED:  # typer may have made it of the interrupt
        typer.echo("massart: stopped", err=True)
    return status if isinstance(status, int) else 0


def _with_cluster(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a local cluster where --dask names none: in typer an option has a value or has not."""
    return [
        f"--dask={LOCAL}" if argument == "--dask" and after.startswith("-") else argument
        for argument, after in pairwise([*arguments, "-"])
    ]


def _complain(message: str) -> int:
    typer.echo(f"massart: {one_line(message)}", err=True)
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


for command in (demo, export, fit, predict, reproduce, scan):
    app.command()(command)
