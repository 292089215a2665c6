"""The commands together: arguments in, exit status out, every complaint one line."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from massart import __version__
from massart.cli.terminal import json_text, one_line

# typer exports BadParameter but not its base, which every complaint about the command line derives from.
_UsageError: Any = typer.BadParameter.__mro__[1]

LOCAL = "local"
"""The cluster that --dask means without an address."""

BAD_INPUT, _STOPPED = 2, 130

_GROUPS = ("Input", "Rule", "Errors", "Verdict", "Output", "Options")

_COMMANDS = {  # the module of each, and what it does
    "fit": ("fit", "Find the rule behind a column, and the wrong rows."),
    "check": ("check", "Check tables against saved rules."),
    "scan": ("scan", "Find rules among the columns of a table."),
    "predict": ("models", "Apply a saved rule to a table."),
    "export": ("models", "Write a saved rule as SQL, Python, cells or a check."),
    "demo": ("demo", "Try it on a made-up ledger."),
    "reproduce": ("reproduce", "Reproduce the figures of the paper."),
}

_EXAMPLES = """
massart fit ledger.csv --target total --id invoice --report ledger.html
massart fit ledger.csv --target total --terms "qty*price, freight" --fixed fixed.csv
massart check total.json new.csv --max-wrong 1%
massart check --config massart.toml --json
massart scan accounts.xlsx
massart scan accounts.xlsx --exclude note,clerk --report accounts.html
massart predict total.json new.csv --out totals.csv
massart predict total.json new.csv --id invoice --max-wrong 1% --out totals.csv
massart export total.json --to sql --table ledger
massart export total.json --to excel --table ledger.xlsx --output cells.csv
massart demo
massart demo --out try-it --rows 500
massart reproduce fig1a
massart reproduce all --trials 20 --out figures
"""


class _Command(typer.core.TyperCommand):
    """A command whose help lists options in groups."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the options and arguments, without braces."""
        return [piece.strip("{}").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {}
        for one in self.get_params(ctx):
            if record := one.get_help_record(ctx):
                name = getattr(one, "rich_help_panel", None) or "Options"
                if one.param_type_name == "argument":
                    name, record = "Arguments", (one.metavar or record[0], record[1])
                groups.setdefault(name, []).append(record)
        for name in ("Arguments", *_GROUPS):
            if name in groups:
                with formatter.section(name):
                    formatter.write_dl(groups[name])


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    quiet, as_json = "--quiet" in arguments, "--json" in arguments
    arguments = [argument for argument in arguments if argument != "--quiet"]
    with _tolerant_streams() as stdout:
        with _silence() if quiet else nullcontext():
            status, message = _outcome(arguments)
        stdout.flush()
        if stdout.failure:
            status, message = BAD_INPUT, f"standard output: cannot be written ({stdout.failure})"
        if message:
            _complain(message, as_json=as_json and status == BAD_INPUT)
    return status


def _outcome(arguments: Sequence[str]) -> tuple[int, str]:
    """Run one command, and return its exit status and an error message, if there is one."""
    completed = os.environ.get("COMP_WORDS", "").split()  # of a line that a shell completes
    try:
        app = commands([*arguments, *completed])
        status = app(_with_cluster(arguments), prog_name="massart", standalone_mode=False, obj=list(arguments))
    except _UsageError as error:
        return BAD_INPUT, error.format_message()
    except ValueError as error:
        return BAD_INPUT, str(error)
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        return BAD_INPUT, where + (error.strerror or str(error))
    except MemoryError:
        return BAD_INPUT, "there is not enough memory for this table"
    except (typer.Abort, KeyboardInterrupt):
        status = _STOPPED
    # typer may have made it of the interrupt
    return status if isinstance(status, int) else 0, "stopped" if status == _STOPPED else ""


@contextmanager
def _tolerant_streams() -> Iterator[_TolerantStream]:
    """Let the reader of a stream, such as head, close it: the work goes on, and its exit status counts."""
    before = sys.stdout, sys.stderr
    streams = sys.stdout, sys.stderr = _TolerantStream(sys.stdout), _TolerantStream(sys.stderr)
    try:
        yield streams[0]
    finally:
        sys.stdout, sys.stderr = before
        for stream in streams:
            stream.flush()


class _TolerantStream:
    """A stream that drops what it cannot write; `failure` says why, except where its reader has closed it."""

    def __init__(self, stream: Any) -> None:
        # Without a stream, the next file that is opened would get its number, and what a library prints.
        self._stream, self.failure = stream or Path(os.devnull).open("w"), ""  # noqa: SIM115
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may have no letter for ≈ or for a name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return int(self._stream.write(text))
        except OSError as error:
            return self._lost(error, len(text))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._lost(error, 0)

    def _lost(self, error: OSError, written: int) -> int:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        if not isinstance(error, BrokenPipeError):
            self.failure = error.strerror or str(error)
        return written


@contextmanager
def _silence() -> Iterator[None]:
    """Write nothing to stderr: no progress, no notices, no names of files that were written."""
    with Path(os.devnull).open("w") as nothing, redirect_stderr(nothing):
        yield


def _with_cluster(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a local cluster where --dask names none: in typer an option has a value or has not."""
    return [
        f"--dask={LOCAL}" if argument == "--dask" and after.startswith("-") else argument
        for argument, after in pairwise([*arguments, "-"])
    ]


def _complain(message: str, *, as_json: bool) -> None:
    typer.echo(f"massart: {one_line(message)}", err=True)
    if as_json:
        typer.echo(json_text({"passed": False, "exit_status": BAD_INPUT, "error": one_line(message)}))


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"massart {__version__}")
        raise typer.Exit


def massart(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress and no notices on stderr; anywhere on the line.")
    ] = False,
) -> None:
    """Recover the exact formula behind a table when up to half of its answers are wrong."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _not_asked() -> None:
    """Stand for a command of which only the name and the line are shown."""


def commands(asked: Collection[str] = _COMMANDS) -> typer.Typer:
    """Return the commands; only the modules of those that are asked for are loaded, so that --help is quick."""
    app = typer.Typer(
        callback=massart, invoke_without_command=True, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    for name, (module, line) in _COMMANDS.items():
        command = getattr(import_module(f"massart.cli.{module}"), name) if name in asked else _not_asked
        examples = [f"  {each}" for each in _EXAMPLES.splitlines() if each.split()[1:2] == [name]]
        epilog = "\n".join(["\b", "Examples:", *examples])
        app.command(name, cls=_Command, short_help=line, epilog=epilog)(command)
    return app
