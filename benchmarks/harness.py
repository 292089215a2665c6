"""What a benchmark is made of: cases, the rows they report, and the race between our code and a peer's.

A module ``bench_<name>.py`` has one function, ``cases(small: bool) -> Iterable[Case]``. A case makes its data, runs and
returns one row or several. Times are never compared across runs or machines: a race alternates both sides in one
process and reports the ratio of their medians.
"""

from __future__ import annotations

import os

# Both sides get one BLAS thread, and the libraries read this only once: when numpy is first imported.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any


class Incorrect(Exception):
    """An answer is wrong. The only thing that makes the runner fail."""


class MissingPeer(Exception):
    """A library or program to compare with is not installed. Its row says so."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on a number, with its direction."""

    at_least: bool
    bound: float
    unit: str

    def met_by(self, value: float) -> bool:
        """Whether `value` is on the right side of the bound."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}{self.unit}"


def at_least(bound: float, unit: str = "x") -> Goal:
    """Wanted: the ratio (in a race: peer time / our time, the speed-up) is `bound` or more."""
    return Goal(True, bound, unit)


def at_most(bound: float, unit: str = "x") -> Goal:
    """Wanted: the ratio (in a race: our time / peer time, the relative cost) is `bound` or less."""
    return Goal(False, bound, unit)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    benchmark, case : str
        Where the row comes from; the runner fills in `benchmark` where it is empty.
    ours, peer : float or None
        Seconds, or whatever `note` says was counted; None where there is nothing to compare with.
    peer_name : str
        The other side.
    ratio : float or None
        The number that `wanted` speaks about.
    wanted : str
        The goal, as text.
    passed : bool or None
        None: not measured, `note` says why.
    note : str
        Errors reached, iterations, units.
    """

    benchmark: str
    case: str
    ours: float | None
    peer: float | None
    peer_name: str
    ratio: float | None
    wanted: str
    passed: bool | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A named measurement; data is made inside `measure`, so that listing cases costs nothing."""

    name: str
    measure: Callable[[], Row | Iterable[Row]]


@dataclass(frozen=True, slots=True)
class Times:
    """Median seconds of both sides and the answer each gave last."""

    ours: float
    peer: float
    our_answer: Any
    peer_answer: Any


def alternate(
    ours: Callable[[], Any], peer: Callable[[], Any], *, repeats: int = 5, seconds: float = 20.0, warm_up: bool = True
) -> Times:
    """Time both functions in turn: at most `repeats` rounds, and no new round after `seconds`.

    One untimed round comes first unless `warm_up` is false (for peers that take minutes).
    """
    start = time.perf_counter()
    if warm_up:
        ours()
        peer()
    our_times: list[float] = []
    peer_times: list[float] = []
    our_answer = peer_answer = None
    while not our_times or (len(our_times) < repeats and time.perf_counter() - start < seconds):
        seconds_taken, our_answer = _timed(ours)
        our_times.append(seconds_taken)
        seconds_taken, peer_answer = _timed(peer)
        peer_times.append(seconds_taken)
    return Times(statistics.median(our_times), statistics.median(peer_times), our_answer, peer_answer)


def race(
    case: str,
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    *,
    peer_name: str,
    wanted: Goal,
    judge: Callable[[Any, Any], str] | None = None,
    repeats: int = 5,
    seconds: float = 20.0,
    warm_up: bool = True,
) -> Row:
    """Race `ours` against `peer` and report the ratio that `wanted` speaks about.

    `judge` sees both answers: it raises `Incorrect` when ours is wrong and returns a note otherwise.
    """
    times = alternate(ours, peer, repeats=repeats, seconds=seconds, warm_up=warm_up)
    note = judge(times.our_answer, times.peer_answer) if judge is not None else ""
    ratio = times.peer / times.ours if wanted.at_least else times.ours / times.peer
    return Row("", case, times.ours, times.peer, peer_name, ratio, str(wanted), wanted.met_by(ratio), note)


def count(case: str, value: float, *, wanted: Goal, note: str = "") -> Row:
    """Report a number that has no peer: passes, an error reached, bytes per byte of X, a share of right answers."""
    return Row("", case, None, None, "", value, str(wanted), wanted.met_by(value), note)


def require(module: str) -> ModuleType:
    """Import a peer's module, or raise `MissingPeer` naming the library."""
    library = module.partition(".")[0]
    if importlib.util.find_spec(library) is None:
        raise MissingPeer(f"{library} is not installed")
    return importlib.import_module(module)


def skipped(case: str, reason: object) -> Row:
    """Return the row of a case that could not be measured."""
    return Row("", case, None, None, "", None, "", None, f"skipped: {reason}")


def _timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = function()
    return time.perf_counter() - start, answer
