"""Phase diagrams: the probability of exact recovery by noise rate and rows for each column, linear and ReLU.

Rows are standard Gaussian, the truth is too, and wrong labels come from another parameter of the same kind: at
eta = 1/2 the two could not be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from massart.experiments import drawing, recovery
from massart.experiments.baselines import LINEAR, RELU
from massart.experiments.experiment import Cell, Entrant, Experiment, Outcome, Row, Task
from massart.noise import MassartNoise, decoy, gaussian, linear, relu

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MODELS = {"linear": (linear, LINEAR), "relu": (relu, RELU)}
_DARK = 0.55  # rates below which white text is read better


@dataclass(frozen=True, slots=True)
class Phase:
    """Settings of a phase diagram: the kind of function, its dimension, and the grid."""

    model: str
    entrants: tuple[Entrant, ...]
    d: int
    ratios: tuple[float, ...]
    etas: tuple[float, ...]

    def cells(self) -> tuple[Cell, ...]:
        """Return the grid, row by row."""
        return tuple((eta, ratio) for eta in self.etas for ratio in self.ratios)

    def missing(self, method: str) -> str:
        """Return what has to be installed for a method."""
        return _MODELS[self.model][1][method].missing() or ""


def run(config: Phase, task: Task, data: np.random.Generator, rng: np.random.Generator) -> Outcome:
    """Fit one table."""
    concept, methods = _MODELS[config.model]
    eta, ratio = (float(value) for value in task.cell)
    X = gaussian(round(ratio * config.d), config.d, data)
    truth, other = data.standard_normal(config.d), data.standard_normal(config.d)
    y = MassartNoise(eta, decoy(other, concept)).corrupt(X, concept(X, truth), data).labels
    return recovery.measure(methods[task.method], X, y, truth, rng)


def plot(rows: Sequence[Row], config: Phase) -> Figure:
    """Draw one grid for each method: the rate in colour and in figures."""
    figure, (row_of_axes,) = drawing.panels(1, len(config.entrants), (5.5 * len(config.entrants), 4.6))
    rates = {(row["method"], row["eta"], row["ratio"]): row["mean"] for row in summarize(rows)}
    for axes, entrant in zip(row_of_axes, config.entrants, strict=True):
        grid = np.array(
            [[rates.get((entrant.method, eta, ratio), np.nan) for ratio in config.ratios] for eta in config.etas],
            dtype=float,
        )
        image = axes.imshow(grid, origin="lower", aspect="auto", vmin=0, vmax=1, cmap="cividis")
        for (i, j), rate in np.ndenumerate(grid):
            axes.text(j, i, f"{rate:.2g}", ha="center", va="center", fontsize=8, color="w" if rate < _DARK else "k")
        axes.set_xticks(range(len(config.ratios)), [f"{ratio:g}" for ratio in config.ratios])
        axes.set_yticks(range(len(config.etas)), [f"{eta:g}" for eta in config.etas])
        axes.set_title(drawing.name_of(entrant.method), loc="left")
        axes.set(xlabel="rows for each column, m/d", ylabel="noise rate η")
        axes.grid(False)
    figure.colorbar(image, ax=list(row_of_axes), label="exact recovery rate")
    return figure


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return the rate for each cell and method."""
    return recovery.rates(rows, ("eta", "ratio"))


def _experiment(config: Phase, words: str) -> Experiment[Phase]:
    return Experiment(
        name=f"phase_{config.model}",
        title=f"Phase diagram: {words}",
        caption=(
            f"Rate of exact recovery of {words} in {config.d} dimensions, Gaussian rows, labels of another such "
            "function with probability η. Near η = 1/2 that one sometimes fits more rows than the true one "
            "does, and no method could tell."
        ),
        alt="Grids of the exact recovery rate by noise rate and rows for each column, one for each method.",
        config=config,
        cell_columns=("eta", "ratio"),
        value_columns=recovery.VALUE_COLUMNS,
        run=run,
        plot=plot,
        summarize=summarize,
    )


PHASE_LINEAR = _experiment(
    Phase(
        model="linear",
        entrants=(Entrant("algorithm_1", published=True, most_trials=20), Entrant("massart", most_trials=20)),
        d=20,
        ratios=(2, 3, 4, 6, 8, 12, 16, 24),
        etas=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45),
    ),
    "a linear function",
)
PHASE_RELU = _experiment(
    Phase(
        model="relu",
        entrants=(Entrant("published_relu", published=True, most_trials=8), Entrant("massart_relu", most_trials=16)),
        d=10,
        ratios=(4, 6, 8, 12, 16, 24, 48),
        etas=(0.1, 0.2, 0.3, 0.35, 0.4, 0.45),
    ),
    "a ReLU",
)
