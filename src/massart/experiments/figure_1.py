"""Figure 1: the rate of exact recovery of a linear function against the noise rate (a) and the number of rows (b).

Section 4: rows from the mixture of Gaussians, labels of rows with a coordinate above d/2 flipped with probability eta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from massart.experiments import drawing
from massart.experiments.baselines import LINEAR, linear_given_rate
from massart.experiments.experiment import Cell, Entrant, Experiment, Row, Task, TaskOutcome, measure
from massart.paper import MassartNoise, linear_labels, paper_adversary, paper_mixture, paper_weights
from massart.rows import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def paper_table(m: int, d: int, eta: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rows of the paper's mixture, linear labels after the paper's adversary, and the truth."""
    X, w = paper_mixture(m, d, rng), paper_weights(d)
    return X, MassartNoise(eta, paper_adversary(w)).corrupt(X, linear_labels(X, w), rng).labels, w


_POSITIONS = (
    "The positions of Algorithm 1 differ in the effective number of rows, (Σ a)²/Σ a² with a = |r·x|/|A x|, that stand "
    "up for the truth in the worst direction r: a tight position leaves directions in which four rows decide, the "
    "paper's γ = 1/2 stops before that, and the most effective position has the most."
)


@dataclass(frozen=True, slots=True)
class Figure1(Experiment):
    """What both parts share: the paper's three methods, Algorithm 1 in two other positions, ours, and peers."""

    methods = LINEAR
    axis: ClassVar[str]

    d: int = 30
    entrants: tuple[Entrant, ...] = (
        Entrant("naive_l1", published=True),
        Entrant("normalized_l1", published=True),
        Entrant("algorithm_1", published=True),
        Entrant("algorithm_1_tight"),
        Entrant("algorithm_1_effective"),
        Entrant("massart"),
        Entrant("ransac", most_trials=15),
        Entrant("lts", most_trials=15),
        Entrant("lmrob", most_trials=15),
        Entrant("torrent"),
        Entrant("huber", most_trials=50),
    )

    def run(self, task: Task, data: np.random.Generator, rng: np.random.Generator) -> TaskOutcome:
        """Fit one table."""
        given = self.settings() | dict(zip(self.cell_columns, task.cell, strict=True))
        m, eta = int(given["m"]), float(given["eta"])
        return measure(linear_given_rate(eta)[task.method], *paper_table(m, self.d, eta, data), rng)

    def plot(self, rows: Sequence[Row]) -> Figure:
        """Draw the rate against what the cells differ in."""
        positions = ["algorithm_1_tight", "algorithm_1", "algorithm_1_effective"]
        published = [entrant.method for entrant in self.entrants if entrant.published]
        keys = [entrant.method for entrant in self.entrants]
        panels = {
            "as published": published,
            "positions of Algorithm 1": [key for key in keys if key in positions],
            "massart and others": [key for key in keys if key == "algorithm_1" or key not in {*published, *positions}],
        }
        column = self.cell_columns[0]
        return drawing.plot_summary(self.summarize(rows), panels, column, self.axis, "exact recovery rate")


@dataclass(frozen=True, slots=True)
class Figure1a(Figure1):
    """Figure 1(a): the noise rates, and the size of each table."""

    name = "fig1a"
    title = "Figure 1(a): recovering a linear function, against the noise rate"
    caption = (
        "How often a method returns the true parameter (relative error below 1e-5) of a linear function in 30 "
        "dimensions from 120 rows of the paper's mixture, of which the labels of long rows are flipped with "
        f"probability η. Bars cover two standard deviations of the rate. TORRENT is told η. {_POSITIONS}"
    )
    comparison = (
        "The publication (the text of Section 4): Algorithm 1 withstands more noise than L1 on normalized rows, and "
        "that more than naive L1. Agrees: so it is here, at every noise rate. Differs: how much more Algorithm 1 "
        "withstands depends on the position within γ, which the text leaves open. At η = 0.45 the paper's γ = 1/2, by "
        "our transform, recovers about seven tables of ten, γ = 0.001 one of four, and the most effective "
        "position nearly all."
    )
    alt = "Lines of the exact recovery rate against the noise rate, one for each method."
    axis = "noise rate η"

    m: int = 120
    etas: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)

    def cells(self) -> tuple[Cell, ...]:
        """Return one cell for each noise rate."""
        return tuple((eta,) for eta in self.etas)


@dataclass(frozen=True, slots=True)
class Figure1b(Figure1):
    """Figure 1(b): the numbers of rows, and the noise rate."""

    name = "fig1b"
    title = "Figure 1(b): recovering a linear function, against the number of rows"
    caption = (
        "How often a method returns the true parameter (relative error below 1e-5) of a linear function in 30 "
        "dimensions from m rows of the paper's mixture, of which the labels of long rows are flipped with probability "
        f"0.25. Bars cover two standard deviations of the rate. TORRENT is told the rate of noise. {_POSITIONS}"
    )
    comparison = (
        "The publication (the text of Section 4): Algorithm 1 needs fewer rows than L1 on normalized rows, and that "
        "fewer than naive L1. Agrees: so it is here. Differs: with γ = 1/2, by our transform, Algorithm 1 recovers "
        "nearly every table from 120 rows on; with γ = 0.001 it still misses some at 200; the most effective position "
        "needs fewer than either."
    )
    alt = "Lines of the exact recovery rate against the number of rows, one for each method."
    axis = "number of rows m"
    cell_columns = ("m",)

    eta: float = 0.25
    sizes: tuple[int, ...] = (60, 80, 100, 120, 140, 160, 180, 200)

    def cells(self) -> tuple[Cell, ...]:
        """Return one cell for each number of rows."""
        return tuple((m,) for m in self.sizes)
