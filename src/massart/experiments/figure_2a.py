"""Figure 2(a): gradient descent on a ReLU with four transformations of the rows.

Section 4: rows from the mixture of Gaussians, eta = 0.4, descent from zero with steps of constant size; what is shown
is the distance to the truth at each iteration. Beyond it: where other methods end on the same tables.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from massart.experiments import drawing
from massart.experiments.baselines import RELU
from massart.experiments.experiment import Cell, Entrant, Experiment, Row, Task, TaskOutcome, summarize
from massart.paper import (
    MassartNoise,
    Scale,
    Transformation,
    descend,
    paper_adversary,
    paper_mixture,
    paper_weights,
    relu_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DESCENTS = {
    "original": (Transformation.ORIGINAL, Scale.DETERMINANT),
    "normalized": (Transformation.NORMALIZED, Scale.DETERMINANT),
    "isotropic": (Transformation.ISOTROPIC, Scale.DETERMINANT),
    "radial_isotropic": (Transformation.RADIAL_ISOTROPIC, Scale.DETERMINANT),
    "radial_isotropic_trace": (Transformation.RADIAL_ISOTROPIC, Scale.TRACE),
}
"""The paper's four, and the last with another factor of A, which the paper leaves open."""

END = "end"
"""The iteration of methods that have only an answer."""

_SHOWN = (0, 50, 100, 200, 500, 1000, END)


@dataclass(frozen=True, slots=True)
class Figure2a(Experiment):
    """Figure 2(a): the size of each table, the steps, and every how many of them is kept."""

    name = "fig2a"
    title = "Figure 2(a): gradient descent on a ReLU"
    caption = (
        "Distance to the true parameter of a ReLU in 30 dimensions, from 240 rows of the paper's mixture at η = 0.4. "
        "Left: gradient descent with four transformations of the rows, mean over trials and two standard deviations of "
        "them. Right: where each method ends on the same tables; the descents after 1000 steps."
    )
    comparison = (
        "The publication (the text of Section 4): radial isotropy significantly improves the descent. Agrees: only "
        "radial-isotropic descent comes near the truth, in every trial, and it stays there; a constant step ends near "
        "the truth, not at it. Differs: the text leaves the factor of A open, which is a step size. The curve has "
        "det A = 1; with tr A⁻² = d, on the right, descent is there in about a quarter of the steps, and ends three to "
        "four times as far."
    )
    alt = "Lines of the distance to the truth against iterations, and dots for where methods end."
    value_columns = ("iteration", "distance")
    methods = RELU

    d: int = 30
    m: int = 240
    eta: float = 0.4
    steps: int = 1000
    every: int = 10
    entrants: tuple[Entrant, ...] = (
        Entrant("original", published=True),
        Entrant("normalized", published=True),
        Entrant("isotropic", published=True),
        Entrant("radial_isotropic", published=True),
        Entrant("radial_isotropic_trace"),
        Entrant("massart_relu"),
        Entrant("published_relu", most_trials=20),
        Entrant("clad", most_trials=50),
        Entrant("karmakar_sgd", most_trials=50),
    )

    def cells(self) -> tuple[Cell, ...]:
        """Return the one cell."""
        return ((self.eta,),)

    def run(self, task: Task, data: np.random.Generator, rng: np.random.Generator) -> TaskOutcome:
        """Descend, or fit, one table."""
        X, w = paper_mixture(self.m, self.d, data), paper_weights(self.d)
        y = MassartNoise(self.eta, paper_adversary(w)).corrupt(X, relu_labels(X, w), data).labels
        start = time.perf_counter()
        if task.method not in DESCENTS:
            coef = RELU[task.method].fit(X, y, rng)
            seconds = time.perf_counter() - start
            return TaskOutcome(({"iteration": END, "distance": float(np.linalg.norm(coef - w))},), seconds)
        transformation, scale = DESCENTS[task.method]
        distances = descend(X, y, transformation, steps=self.steps, scale=scale).distances(w)
        seconds = time.perf_counter() - start
        kept = sorted({*range(0, self.steps + 1, self.every), self.steps})
        return TaskOutcome(tuple({"iteration": k, "distance": float(distances[k])} for k in kept), seconds)

    def plot(self, rows: Sequence[Row]) -> Figure:
        """Draw the descents on the left, and on the right where each method ends."""
        figure, (published, beyond) = drawing.titled_panels(("as published", "where methods end"))
        _descents(published, rows, tuple(entrant.method for entrant in self.entrants if entrant.published))
        _ends(beyond, rows, tuple(entrant.method for entrant in self.entrants))
        return figure

    def summarize(self, rows: Sequence[Row]) -> list[Row]:
        """Return mean distances at a few iterations; their two standard deviations are those of the trials."""
        shown = [row for row in rows if row["iteration"] in _SHOWN]
        return summarize(shown, ("iteration",), "distance", of_the_mean=False)


def _descents(axes: Axes, rows: Sequence[Row], methods: tuple[str, ...]) -> None:
    means = summarize([row for row in rows if row["iteration"] != END], ("iteration",), "distance", of_the_mean=False)
    for method in methods:
        points: list[Any] = [row for row in means if row["method"] == method]
        if not points:
            continue
        iterations = [row["iteration"] for row in points]
        mean = np.array([row["mean"] for row in points])
        spread = np.array([row["two_standard_deviations"] for row in points])
        line = drawing.style(method)
        axes.plot(iterations, mean, **line)
        axes.fill_between(
            iterations, np.maximum(mean - spread, 0), mean + spread, color=line["color"], alpha=0.15, lw=0
        )
    highest = max((float(row["mean"]) for row in means), default=1.0)  # wider bands are cut
    axes.set(xlabel="iteration", ylabel="ℓ₂ distance to the truth, |w − w*|", ylim=(0, 1.15 * highest))
    drawing.legend(axes)


def _ends(axes: Axes, rows: Sequence[Row], methods: tuple[str, ...]) -> None:
    """Draw each trial's last distance, and their median, on a logarithmic axis."""
    last: dict[tuple[Any, Any], Any] = {(row["method"], row["trial"]): row["distance"] for row in rows}
    shown = [method for method in methods if any(key[0] == method for key in last)]
    for place, method in enumerate(reversed(shown)):
        ends = np.array([distance for key, distance in last.items() if key[0] == method], dtype=float)
        ends = np.maximum(ends[np.isfinite(ends)], 1e-16)  # zero has a place on a logarithmic axis
        line = drawing.style(method)
        heights = place + np.linspace(-0.22, 0.22, len(ends))
        axes.plot(ends, heights, ".", color=line["color"], alpha=0.35, markersize=4)
        if len(ends):
            axes.plot([np.median(ends)] * 2, [place - 0.35, place + 0.35], color=line["color"], linewidth=2.5)
    axes.set(xscale="log", xlabel="last distance |w − w*|; bars are medians")
    axes.set_yticks(range(len(shown)), [drawing.name_of(method) for method in reversed(shown)])
