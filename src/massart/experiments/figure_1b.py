"""Figure 1(b): the rate of exact recovery of a linear function against the number of rows.

The distribution, the adversary and the methods are those of :mod:`massart.experiments.figure_1a`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from massart.experiments import recovery
from massart.experiments.baselines import LINEAR
from massart.experiments.experiment import Cell, Entrant, Experiment, Outcome, Row, Task
from massart.experiments.figure_1a import LINEAR_ENTRANTS, paper_table, told

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Figure1b:
    """Settings of Figure 1(b): the numbers of rows, and the noise rate."""

    d: int = 30
    eta: float = 0.25
    sizes: tuple[int, ...] = (60, 80, 100, 120, 140, 160, 180, 200)
    entrants: tuple[Entrant, ...] = LINEAR_ENTRANTS

    def cells(self) -> tuple[Cell, ...]:
        """Return one cell for each number of rows."""
        return tuple((m,) for m in self.sizes)

    def missing(self, method: str) -> str:
        """Return what has to be installed for a method."""
        return LINEAR[method].missing() or ""


def run(config: Figure1b, task: Task, data: np.random.Generator, rng: np.random.Generator) -> Outcome:
    """Fit one table."""
    (m,) = task.cell
    return recovery.measure(told(config.eta)[task.method], *paper_table(int(m), config.d, config.eta, data), rng)


def plot(rows: Sequence[Row], config: Figure1b) -> Figure:
    """Draw the rate against the number of rows."""
    return recovery.plot_rates(rows, config.entrants, "m", "number of rows m")


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return the rate for each number of rows and method."""
    return recovery.rates(rows, ("m",))


FIGURE_1B = Experiment(
    name="fig1b",
    title="Figure 1(b): recovering a linear function, against the number of rows",
    caption=(
        "How often a method returns the true parameter (relative error below 1e-5) of a linear function in 30 "
        "dimensions from m rows of the paper's mixture, of which the labels of long rows are flipped with probability "
        "0.25. Bars cover two standard deviations of the rate. TORRENT and Sever are told the rate of noise."
    ),
    alt="Lines of the exact recovery rate against the number of rows, one for each method.",
    config=Figure1b(),
    cell_columns=("m",),
    value_columns=recovery.VALUE_COLUMNS,
    run=run,
    plot=plot,
    summarize=summarize,
)
