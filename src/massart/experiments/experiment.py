"""What an experiment is: cells, methods and trials, and one method for each of running and drawing.

A trial is named by its :class:`Task`. Its table of data is drawn from a stream of random numbers that depends on the
figure, the cell and the trial, so that all methods see the same tables; what a method draws itself comes from a stream
of its own. Neither depends on what ran before, or in which process.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from massart.experiments.baselines import Baseline

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
    """A figure: its settings, which are the fields, how one trial is run, and how the rows are drawn."""

    name: ClassVar[str]  # as on the command line, and of its files
    title: ClassVar[str]
    caption: ClassVar[str]
    comparison: ClassVar[str]  # what the publication shows, where this agrees and where it differs
    alt: ClassVar[str]  # for readers who do not see the picture; numbers follow
    cell_columns: ClassVar[tuple[str, ...]] = ("eta",)  # names of the entries of a cell
    value_columns: ClassVar[tuple[str, ...]]  # those of an outcome's values
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

    @abstractmethod
    def summarize(self, rows: Sequence[Row]) -> list[Row]:
        """Return the numbers behind the picture: one short row for each cell and method."""

    def missing(self, method: str) -> str:
        """Return what has to be installed for a method; empty when it can run."""
        return (self.methods[method].missing() or "") if method in self.methods else ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table."""
        return (*self.cell_columns, "method", "trial", *self.value_columns)

    def tasks(self, trials: int) -> list[Task]:
        """Return all trials, in the order of the table; without methods that are not installed."""
        return [
            Task(self.name, cell, entrant.method, trial)
            for cell in self.cells()
            for entrant in self.entrants
            if not self.missing(entrant.method)
            for trial in range(entrant.trials(trials))
        ]

    def left_out(self) -> dict[str, str]:
        """Return the methods that are not installed, and what they need."""
        needs = {entrant.method: self.missing(entrant.method) for entrant in self.entrants}
        return {method: need for method, need in needs.items() if need}

    def rows(self, task: Task, outcome: TaskOutcome) -> list[Row]:
        """Return the rows of the table for one trial."""
        names = dict(zip(self.cell_columns, task.cell, strict=True))
        return [{**names, "method": task.method, "trial": task.trial, **values} for values in outcome.values]

    def settings(self) -> dict[str, Any]:
        """Return the fields as plain values, less where data lie on this machine (those without repr)."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self) if field.repr}

    def attempt(self, seed: int, task: Task) -> TaskOutcome:
        """Run one trial, on the table that all methods of this cell and trial see."""
        data = stream(seed, task.figure, task.cell, task.trial)
        return self.run(task, data, stream(seed, task.figure, task.cell, task.trial, task.method))


def stream(seed: int, *key: object) -> np.random.Generator:
    """Return the random numbers that belong to a key: the same ones whatever else is drawn, and where."""
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    words = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, len(digest), 4))
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


def _plain(value: object) -> object:
    if isinstance(value, Entrant):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
