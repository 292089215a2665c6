"""The journal: one line of JSON for each finished trial, so that a run that is killed goes on where it was.

A trial counts as done once its line is on the disk. A line that was torn by a kill is not JSON and is skipped, and its
trial runs again; as every trial has its own random numbers, it gives the same values. Lines of other runs (another
seed, another config, other versions) stay and are skipped as well.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from massart.experiments.experiment import Task, TaskOutcome
from massart.rows import Callback, Progress

_FLUSH_SECONDS, _FLUSH_TRIALS = 0.5, 64

Finished = list[tuple[Task, TaskOutcome]]


def with_journal(
    name: str,
    tasks: Sequence[Task],
    path: Path,
    run: str,
    attempts: Callable[[Sequence[Task]], Iterator[Finished]],
    callback: Callback,
) -> dict[Task, TaskOutcome]:
    """Return the outcome of every task: those of the journal, and the others after they were attempted."""
    outcomes = read(path, run)
    todo = [task for task in tasks if task not in outcomes]
    left = len(todo)
    callback(Progress(name, len(tasks) - left, left, 0.0))
    if not todo:
        return outcomes
    with Journal(path, run) as journal:
        batch: Finished = []
        written = time.monotonic()
        for finished in attempts(todo):
            batch += finished
            left -= len(finished)
            if left and len(batch) < _FLUSH_TRIALS and time.monotonic() - written < _FLUSH_SECONDS:
                continue
            journal.append(batch)
            outcomes |= batch
            batch, written = [], time.monotonic()
            callback(Progress(name, len(tasks) - left, left, 0.0))
    return outcomes


def read(path: Path, run: str) -> dict[Task, TaskOutcome]:
    """Return the finished trials of the run with this name; none if there is no journal."""
    if not path.exists():
        return {}
    with path.open("rb") as file:
        return dict(_finished(file, run))


def _finished(lines: Iterable[bytes], run: str) -> Iterator[tuple[Task, TaskOutcome]]:
    for line in lines:
        try:
            record = json.loads(line)
            if record["run"] == run:
                task = Task(record["figure"], tuple(record["cell"]), record["method"], record["trial"])
                yield task, TaskOutcome(tuple(record["values"]), float(record["seconds"]))
        except (ValueError, KeyError, TypeError):
            continue


class Journal:
    """A journal that is open for writing the lines of one run; use it in a ``with`` statement."""

    def __init__(self, path: Path, run: str) -> None:
        self._run = run
        self._file = path.open("ab+")
        if self._file.tell():
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")  # ends a torn line

    def append(self, finished: Iterable[tuple[Task, TaskOutcome]]) -> None:
        """Write the trials, and return when they are on the disk."""
        self._file.write(b"".join(self._line(task, outcome) for task, outcome in finished))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _line(self, task: Task, outcome: TaskOutcome) -> bytes:
        record = {
            "run": self._run,
            "figure": task.figure,
            "cell": task.cell,
            "method": task.method,
            "trial": task.trial,
            "values": outcome.values,
            "seconds": outcome.seconds,
        }
        return json.dumps(record).encode() + b"\n"

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
