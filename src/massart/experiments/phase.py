"""Phase diagrams: the probability of exact recovery by noise rate and rows for each column, linear and ReLU.

Rows are standard Gaussian, the truth is too, and wrong labels come from another parameter of the same kind: at
eta = 1/2 the two are indistinguishable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from massart.experiments import drawing
from massart.experiments.baselines import LINEAR, RELU
from massart.experiments.experiment import Cell, Entrant, Experiment, Row, Task, TaskOutcome, measure
from massart.paper import MassartNoise, decoy, gaussian, linear_labels, relu_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Phase(Experiment):
    """What both diagrams share: the kind of function, its dimension, and the grid."""

    alt = "Grids of the exact recovery rate by noise rate and rows for each column, one for each method."
    cell_columns = ("eta", "ratio")

    d: int
    ratios: tuple[float, ...]
    etas: tuple[float, ...]

    def cells(self) -> tuple[Cell, ...]:
        """Return the grid, row by row."""
        return tuple((eta, ratio) for eta in self.etas for ratio in self.ratios)

    def run(self, task: Task, data: np.random.Generator, rng: np.random.Generator) -> TaskOutcome:
        """Fit one table."""
        eta, ratio = (float(value) for value in task.cell)
        X = gaussian(round(ratio * self.d), self.d, data)
        truth, other = data.standard_normal(self.d), data.standard_normal(self.d)
        concept = relu_labels if self.methods is RELU else linear_labels
        y = MassartNoise(eta, decoy(other, concept)).corrupt(X, concept(X, truth), data).labels
        return measure(self.methods[task.method], X, y, truth, rng)

    def plot(self, rows: Sequence[Row]) -> Figure:
        """Draw one grid for each method: the rate in colour and in figures."""
        lines = math.ceil(len(self.entrants) / 2)
        figure, grid_of_axes = drawing.panels(lines, 2, (11.0, 4.6 * lines))
        rates = {(row["method"], row["eta"], row["ratio"]): row["mean"] for row in self.summarize(rows)}
        for axes, entrant in zip(grid_of_axes.flat, self.entrants, strict=True):
            grid = np.array(
                [[rates.get((entrant.method, eta, ratio), np.nan) for ratio in self.ratios] for eta in self.etas],
                dtype=float,
            )
            image = axes.imshow(grid, origin="lower", aspect="auto", vmin=0, vmax=1, cmap="cividis")
            for (i, j), rate in np.ndenumerate(grid):
                axes.text(j, i, f"{rate:.2g}", ha="center", va="center", fontsize=8, color="w" if rate < 0.55 else "k")
            axes.set_xticks(range(len(self.ratios)), [f"{ratio:g}" for ratio in self.ratios])
            axes.set_yticks(range(len(self.etas)), [f"{eta:g}" for eta in self.etas])
            axes.set_title(drawing.name_of(entrant.method), loc="left")
            axes.set(xlabel="rows for each column, m/d", ylabel="noise rate η")
            axes.grid(False)
        figure.colorbar(image, ax=list(grid_of_axes.flat), label="exact recovery rate")
        return figure


_CAPTION = (
    "Rate of exact recovery of {} dimensions, Gaussian rows, labels of another such function with probability η. Near "
    "η = 1/2 that one sometimes fits more rows than the true one does, and no method could tell."
)


@dataclass(frozen=True, slots=True)
class PhaseLinear(Phase):
    """The diagram of linear functions."""

    name = "phase_linear"
    title = "Phase diagram: a linear function"
    caption = _CAPTION.format("a linear function in 20")
    comparison = (
        "Not in the publication: there is nothing to agree with. No row of a Gaussian table stands out, and the three "
        "positions of Algorithm 1 differ little."
    )
    methods = LINEAR

    entrants: tuple[Entrant, ...] = (
        Entrant("algorithm_1", published=True, most_trials=20),
        Entrant("algorithm_1_tight", most_trials=20),
        Entrant("algorithm_1_effective", most_trials=20),
        Entrant("massart", most_trials=20),
    )
    d: int = 20
    ratios: tuple[float, ...] = (2, 3, 4, 6, 8, 12, 16, 24)
    etas: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)


@dataclass(frozen=True, slots=True)
class PhaseReLU(Phase):
    """The diagram of ReLUs."""

    name = "phase_relu"
    title = "Phase diagram: a ReLU"
    caption = _CAPTION.format("a ReLU in 10")
    comparison = (
        "Not in the publication: there is nothing to agree with. Theorem 1.3 promises recovery with enough rows at any "
        "η below 1/2; the diagram shows how many are enough."
    )
    methods = RELU

    entrants: tuple[Entrant, ...] = (
        Entrant("published_relu", published=True, most_trials=8),
        Entrant("massart_relu", most_trials=16),
    )
    d: int = 10
    ratios: tuple[float, ...] = (4, 6, 8, 12, 16, 24, 48)
    etas: tuple[float, ...] = (0.1, 0.2, 0.3, 0.35, 0.4, 0.45)
