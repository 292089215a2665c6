"""How a long computation tells its caller where it stands.

A solver calls ``callback(Progress(...))`` once an iteration and never prints; the command line draws the bar. The
default, :func:`silent`, is a null object, so no solver asks whether anybody listens. A callback stops a computation by
raising.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of one task.

    Attributes
    ----------
    task : str
        What is computed, in words ("radial isotropy", "L1 regression").
    step : int
        Iterations finished so far.
    residual : float
        Distance from the goal, in the task's own measure; the task ends when it is at most `goal`.
    goal : float
        The residual at which the task ends.
    found : str
        What there is so far, such as a rule as it grows.
    """

    task: str
    step: int
    residual: float
    goal: float
    found: str = ""


Callback = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Listen to nothing: the default callback."""
