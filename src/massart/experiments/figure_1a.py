"""Figure 1(a): the rate of exact recovery of a linear function against the noise rate.

Section 4: rows from the mixture of Gaussians, labels of rows with a coordinate above d/2 flipped with probability eta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from massart.experiments import recovery
from massart.experiments.baselines import LINEAR, Baseline, given_rate
from massart.experiments.experiment import Cell, Entrant, Experiment, Outcome, Row, Task
from massart.noise import MassartNoise, linear, paper_adversary, paper_mixture, paper_weights
from massart.rows import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINEAR_ENTRANTS = (
    Entrant("naive_l1", published=True),
    Entrant("normalized_l1", published=True),
    Entrant("algorithm_1", published=True),
    Entrant("massart"),
    Entrant("ransac", most_trials=15),
    Entrant("lts", most_trials=15),
    Entrant("lmrob", most_trials=15),
    Entrant("torrent"),
    Entrant("sever"),
    Entrant("huber", most_trials=50),
)
"""The paper's three methods, ours, and the peers that do best on this mixture; the expensive ones on fewer trials."""


@dataclass(frozen=True, slots=True)
class Figure1a:
    """Settings of Figure 1(a): the noise rates, and the size of each table."""

    d: int = 30
    m: int = 120
    etas: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
    entrants: tuple[Entrant, ...] = LINEAR_ENTRANTS

    def cells(self) -> tuple[Cell, ...]:
        """Return one cell for each noise rate."""
        return tuple((eta,) for eta in self.etas)

    def missing(self, method: str) -> str:
        """Return what has to be installed for a method."""
        return LINEAR[method].missing() or ""


def paper_table(m: int, d: int, eta: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rows of the paper's mixture, linear labels after the paper's adversary, and the truth."""
    X, w = paper_mixture(m, d, rng), paper_weights(d)
    return X, MassartNoise(eta, paper_adversary(w)).corrupt(X, linear(X, w), rng).labels, w


def told(eta: float) -> dict[str, Baseline]:
    """Return the linear methods; those whose papers take the noise rate as known are told it."""
    return LINEAR | given_rate(eta)


def run(config: Figure1a, task: Task, data: np.random.Generator, rng: np.random.Generator) -> Outcome:
    """Fit one table."""
    eta = float(task.cell[0])
    return recovery.measure(told(eta)[task.method], *paper_table(config.m, config.d, eta, data), rng)


def plot(rows: Sequence[Row], config: Figure1a) -> Figure:
    """Draw the rate against eta."""
    return recovery.plot_rates(rows, config.entrants, "eta", "noise rate η")


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return the rate for each eta and method."""
    return recovery.rates(rows, ("eta",))


FIGURE_1A = Experiment(
    name="fig1a",
    title="Figure 1(a): recovering a linear function, against the noise rate",
    caption=(
        "How often a method returns the true parameter (relative error below 1e-5) of a linear function in 30 "
        "dimensions from 120 rows of the paper's mixture, of which the labels of long rows are flipped with "
        "probability η. Bars cover two standard deviations of the rate. TORRENT and Sever are told η."
    ),
    alt="Lines of the exact recovery rate against the noise rate, one for each method.",
    config=Figure1a(),
    cell_columns=("eta",),
    value_columns=recovery.VALUE_COLUMNS,
    run=run,
    plot=plot,
    summarize=summarize,
)
