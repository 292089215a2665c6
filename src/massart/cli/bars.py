"""Progress on stderr, where somebody watches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # massart.rows imports numpy, which --help can do without
    from massart.rows import Callback, Progress

_SPEED_SECONDS = 600.0  # over which the speed is measured that says how much time is left


@contextmanager
def bars(*, in_bytes: bool = False) -> Iterator[Callback]:
    """Give a callback that draws one bar for each task that counts down; one that does nothing where nobody watches.

    Bars of bytes are gone when the work is done.
    """
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    from massart.rows import silent

    amount = DownloadColumn() if in_bytes else MofNCompleteColumn()
    time_left = (TimeRemainingColumn(), TextColumn("left"))
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), amount, *time_left)
    with _watched(columns, transient=in_bytes) as shown:
        tasks: dict[str, Any] = {}

        def draw(step: Progress) -> None:
            if step.task not in tasks:
                # What an earlier run has done counts as done, not as the speed of this one.
                total = step.step + step.residual
                tasks[step.task] = shown.add_task(step.task, total=total, completed=step.step)
            shown.update(tasks[step.task], completed=step.step)

        yield draw if shown else silent


@contextmanager
def spinner(what: str) -> Iterator[Callback]:
    """Give a callback that shows what is being computed, for work whose length is not known beforehand.

    It is gone when the work is done, and never there where nobody watches.
    """
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

    from massart.rows import silent

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with _watched(columns, transient=True) as shown:
        task = shown and shown.add_task(what, total=None)

        def draw(step: Progress) -> None:
            if step.goal == 0 and float(step.residual).is_integer():  # it counts down
                shown.update(task, description=step.task, completed=step.step, total=step.step + step.residual)
            else:
                shown.update(task, description=f"{what}: {step.task}, step {step.step}")

        yield draw if shown else silent


@contextmanager
def _watched(columns: Sequence[Any], *, transient: bool) -> Iterator[Any]:
    """Give what draws on stderr, or None where nobody watches."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Bars(*columns, console=console, transient=transient, speed_estimate_period=_SPEED_SECONDS) as shown:
        yield shown
