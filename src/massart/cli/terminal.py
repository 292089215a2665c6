"""What a terminal shows: progress on stderr where somebody watches, harmless texts, tables of them, and JSON.

``docs/schema.json`` says what is in the JSON: one object, or one for each of several targets.
"""

from __future__ import annotations

import json
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from massart import __version__

if TYPE_CHECKING:  # massart.rows imports numpy, which --help can do without
    from massart.rows import Callback, Progress

FORMAT = 3
"""Of JSON. It grows when something is taken away or means something else, not when something is added."""

WIDTH = 100
"""Of a line of text."""

_MOST_CELL = 28
_MOST_LINES = 3
_SPEED_SECONDS = 600.0  # over which the speed is measured that says how much time is left


@contextmanager
def bars(what: str = "", *, in_bytes: bool = False) -> Iterator[Callback]:
    """Yield a callback that draws a bar for each task on stderr; where that is not a terminal, it does nothing.

    For work whose length is not known, `what` says what is computed, in one bar. That one, and bars of bytes, are gone
    when the work is done.
    """
    from massart.rows import silent

    if not sys.stderr.isatty():
        yield silent
        return
    from rich import progress
    from rich.console import Console

    text = progress.TextColumn("{task.description}", markup=False)
    columns: list[Any] = [text, progress.BarColumn(), progress.TimeRemainingColumn(), progress.TextColumn("left")]
    columns.insert(2, progress.DownloadColumn() if in_bytes else progress.MofNCompleteColumn())
    if what:
        columns = [progress.SpinnerColumn(), text, progress.BarColumn(), progress.TimeElapsedColumn()]
    tasks: dict[str, Any] = {}

    def draw(step: Progress) -> None:
        if not what and step.task not in tasks:
            # What an earlier run has done counts as done, not as the speed of this one.
            tasks[step.task] = shown.add_task(step.task, total=step.step + step.residual, completed=step.step)
        if not what:
            shown.update(tasks[step.task], completed=step.step, description=_so_far(step))
        elif step.goal == 0 and float(step.residual).is_integer():  # it counts down
            shown.update(tasks[""], description=step.task, completed=step.step, total=step.step + step.residual)
        else:
            shown.update(tasks[""], description=f"{what}, step {step.step}: {_so_far(step)}")

    with progress.Progress(
        *columns, console=Console(stderr=True), transient=in_bytes or bool(what), speed_estimate_period=_SPEED_SECONDS
    ) as shown:
        if what:
            tasks[""] = shown.add_task(what, total=None)
        yield draw


def _so_far(step: Progress) -> str:
    return f"{step.task}: {one_line(_cut(step.found, WIDTH // 2))}" if step.found else step.task


def say(lines: Iterable[object], *, err: bool = False) -> None:
    """Print lines as they come; messages are for stderr."""
    for line in lines:
        typer.echo(line, err=err)


def harmless(text: object) -> str:
    """Return a text in which control characters, line ends among them, are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def one_line(text: str) -> str:
    """Return a text of any layout as one harmless line."""
    return harmless(" ".join(text.split()))


def table(rows: Sequence[Sequence[str]], name: int = 0) -> Iterator[str]:
    """Lay out texts in columns: names to the left, broken into lines where they are long, and others to the right."""
    last = len(rows[0]) - 1
    short = [[cell if j == name else _cut(cell, _MOST_CELL) for j, cell in enumerate(row)] for row in rows]
    widths = [max(width_of(row[j]) for row in short) for j in range(last + 1)]
    room = max(WIDTH - sum(widths) + widths[name] - 2 * (last + 1), _MOST_CELL)
    broken = [_lines(row[name], room) for row in rows]
    widths[name] = max(width_of(line) for lines in broken for line in lines)
    for row, lines in zip(short, broken, strict=True):
        for k, line in enumerate(lines):
            cells = [line if j == name else "" if k else cell for j, cell in enumerate(row)]
            blanks = [" " * (width - width_of(cell)) for cell, width in zip(cells, widths, strict=True)]
            placed = (c + b if j == name else b + c for j, (c, b) in enumerate(zip(cells, blanks, strict=True)))
            yield "  ".join(["", *placed]).rstrip()


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: Chinese letters take two, combining accents none."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def _lines(text: str, most: int) -> list[str]:
    """Break a text between words; where words are longer than a line, or lines too many, it is cut."""
    lines = textwrap.wrap(_cut(text, _MOST_LINES * most), most, break_long_words=False) or [""]
    fits = len(lines) <= _MOST_LINES and all(width_of(line) <= most for line in lines)
    return lines if fits else [_cut(text, most)]


def _cut(text: str, most: int) -> str:
    """Return a text cut to a width; names that are long differ at their ends, so the middle goes."""
    clean = "".join(letter if letter.isprintable() else " " for letter in text)
    if width_of(clean) <= most:
        return clean
    kept = len(clean) - 1
    while width_of(shown := f"{clean[: (kept + 1) // 2]}…{clean[len(clean) - kept // 2 :]}") > most:
        kept -= 1
    return shown


def json_text(found: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """Return results as JSON, each with the number of the format and the version of massart first."""
    head = {"format": FORMAT, "massart": __version__}
    whole = {**head, **found} if isinstance(found, Mapping) else [{**head, **one} for one in found]
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
