"""What an experiment is: cells, methods and trials, and one method for each of running, summarizing and drawing.

A trial is named by its :class:`Task`. Its table of data is drawn from a stream of random numbers that depends on the
figure, the cell and the trial, so that all methods see the same tables; what a method draws itself comes from a stream
of its own. Neither depends on what ran before, or in which process.
"""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from massart.experiments.drawing import name_of
from massart.rows import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from massart.experiments.baselines import Baseline

RECOVERED = 1e-5
"""Relative error below which a parameter is recovered: exact, but for methods that stop before rounding error."""

Value: TypeAlias = float | int | str
Cell: TypeAlias = tuple[Value, ...]
Row: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Task:
    """One trial of one method in one cell of one figure."""

    figure: str
    cell: Cell
    method: str
    trial: int


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What one trial gave."""

    values: tuple[Row, ...]  # what was measured; for a descent one row for each iteration shown
    seconds: float  # of the fit alone: the only number that differs between runs


@dataclass(frozen=True, slots=True)
class Entrant:
    """A method in a figure."""

    method: str
    published: bool = False  # it is in the paper's own figure, not "beyond the paper"
    most_trials: int | None = None  # of each cell, for an expensive method

    def trials(self, asked: int) -> int:
        """Return the trials of each cell when `asked` are asked for."""
        return asked if self.most_trials is None else min(asked, self.most_trials)


@dataclass(frozen=True, slots=True)
class Experiment(ABC):
    """A figure: its settings, which are the fields, how one trial is run, and how the rows are drawn.

    By default a trial measures whether the parameter was recovered, and the summary is the rate of recovery.
    """

    name: ClassVar[str]  # as on the command line, and of its files
    title: ClassVar[str]
    caption: ClassVar[str]
    comparison: ClassVar[str]  # what the publication shows, where this agrees and where it differs
    alt: ClassVar[str]  # for readers who do not see the picture; numbers follow
    cell_columns: ClassVar[tuple[str, ...]] = ("eta",)  # names of the entries of a cell
    value_columns: ClassVar[tuple[str, ...]] = ("relative_error", "recovered")  # those of an outcome's values
    methods: ClassVar[Mapping[str, Baseline]]  # those that may have to be installed

    entrants: tuple[Entrant, ...]  # in the order of legends

    @abstractmethod
    def cells(self) -> tuple[Cell, ...]:
        """Return the cells, in the order of the table."""

    @abstractmethod
    def run(self, task: Task, data: np.random.Generator, rng: np.random.Generator) -> TaskOutcome:
        """Draw the table of a trial from `data`, and fit it with `rng`."""

    @abstractmethod
    def plot(self, rows: Sequence[Row]) -> Figure:
        """Draw; nothing is run."""

    def summarize(self, rows: Sequence[Row]) -> list[Row]:
        """Return the numbers behind the picture: one short row for each cell and method."""
        return summarize(rows, self.cell_columns, "recovered", of_the_mean=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table."""
        return (*self.cell_columns, "method", "trial", *self.value_columns)

    def tasks(self, trials: int) -> list[Task]:
        """Return all trials, in the order of the table; without methods that are not installed."""
        absent = self.left_out()
        return [
            Task(self.name, cell, entrant.method, trial)
            for cell in self.cells()
            for entrant in self.entrants
            if entrant.method not in absent
            for trial in range(entrant.trials(trials))
        ]

    def left_out(self) -> dict[str, str]:
        """Return the methods that are not installed, and what they need."""
        keys = [entrant.method for entrant in self.entrants if entrant.method in self.methods]
        return {key: need for key in keys if (need := self.methods[key].missing(name_of(key)))}

    def rows(self, task: Task, outcome: TaskOutcome) -> list[Row]:
        """Return the rows of the table for one trial."""
        names = dict(zip(self.cell_columns, task.cell, strict=True))
        return [{**names, "method": task.method, "trial": task.trial, **values} for values in outcome.values]

    def settings(self) -> dict[str, Any]:
        """Return the fields as plain values, less where data lie on this machine (those without repr)."""
        hidden = {field.name for field in fields(self) if not field.repr}
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {name: value for name, value in plain.items() if name not in hidden}

    def attempt(self, seed: int, task: Task) -> TaskOutcome:
        """Run one trial, on the table that all methods of this cell and trial see."""
        data = stream(seed, task.figure, task.cell, task.trial)
        return self.run(task, data, stream(seed, task.figure, task.cell, task.trial, task.method))


def stream(seed: int, *key: object) -> np.random.Generator:
    """Return the random numbers that belong to a key: the same ones whatever else is drawn, and where."""
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    words = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, len(digest), 4))
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


def measure(
    baseline: Baseline, X: FloatArray, y: FloatArray, truth: FloatArray, rng: np.random.Generator
) -> TaskOutcome:
    """Fit one table; a method without an answer has an error of NaN, and has not recovered."""
    start = time.perf_counter()
    w = baseline.fit(X, y, rng)
    seconds = time.perf_counter() - start
    error = float(np.linalg.norm(w - truth) / np.linalg.norm(truth))
    return TaskOutcome(({"relative_error": error, "recovered": int(error < RECOVERED)},), seconds)


def summarize(rows: Sequence[Row], by: tuple[str, ...], value: str, *, of_the_mean: bool) -> list[Row]:
    r"""Return the mean of a column over the trials of each group, in the order in which groups appear.

    A group is a method and the columns `by`; rows without an answer (NaN) do not count. Two standard deviations are
    those of the mean, :math:`2 s / \sqrt n`, as for a rate, or those of the trials, :math:`2 s`.
    """
    groups: dict[Cell, list[Value]] = {}
    for row in rows:
        groups.setdefault((*(row[name] for name in by), row["method"]), []).append(row[value])
    summary: list[Row] = []
    for key, group in groups.items():
        values = np.array(group, dtype=float)
        values = values[np.isfinite(values)]
        n = len(values)
        mean, deviation = (float(values.mean()), float(values.std())) if n else (float("nan"), float("nan"))
        spread = 2 * (float(deviation / np.sqrt(n)) if of_the_mean and n else deviation)
        statistics = {"trials": n, "mean": mean, "two_standard_deviations": spread}
        summary.append({**dict(zip((*by, "method"), key, strict=True)), **statistics})
    return summary
