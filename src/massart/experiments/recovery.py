"""Exact recovery: what one trial measures, the mean of each cell over trials, and how means are drawn.

A parameter counts as recovered when its relative error is below `RECOVERED`: exact, but for methods that stop a few
digits short of rounding error.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from massart.experiments import drawing
from massart.experiments.baselines import Baseline
from massart.experiments.experiment import Row, TaskOutcome
from massart.rows import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECOVERED = 1e-5
"""Relative error below which a parameter is recovered."""

VALUE_COLUMNS = ("relative_error", "recovered")
_STATISTICS = ("trials", "mean", "two_standard_deviations")


def measure(
    baseline: Baseline, X: FloatArray, y: FloatArray, truth: FloatArray, rng: np.random.Generator
) -> TaskOutcome:
    """Fit one table; a method without an answer has an error of NaN, and has not recovered."""
    start = time.perf_counter()
    w = baseline.fit(X, y, rng)
    seconds = time.perf_counter() - start
    error = float(np.linalg.norm(w - truth) / np.linalg.norm(truth))
    return TaskOutcome(({"relative_error": error, "recovered": int(error < RECOVERED)},), seconds)


def rates(rows: Sequence[Row], by: tuple[str, ...]) -> list[Row]:
    r"""Return the recovery rate p of each cell and method; two standard deviations are :math:`2 \sqrt{p (1 - p)/n}`."""
    return summarize(rows, by, "recovered", of_the_mean=True)


def summarize(rows: Sequence[Row], by: tuple[str, ...], value: str, *, of_the_mean: bool) -> list[Row]:
    r"""Return the mean of a column over the trials of each group, in the order in which groups appear.

    A group is a method and the columns `by`; rows without an answer (NaN) do not count. Two standard deviations are
    those of the mean, :math:`2 s / \sqrt n`, as for a rate, or those of the trials, :math:`2 s`.
    """
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        groups.setdefault((*(row[name] for name in by), row["method"]), []).append(row[value])
    return [
        {**dict(zip((*by, "method"), key, strict=True)), **_statistics(np.array(group, dtype=float), of_the_mean)}
        for key, group in groups.items()
    ]


def _statistics(values: FloatArray, of_the_mean: bool) -> Row:
    answers = values[np.isfinite(values)]
    if not len(answers):
        return dict(zip(_STATISTICS, (0, float("nan"), float("nan")), strict=True))
    deviation = float(answers.std() / (np.sqrt(len(answers)) if of_the_mean else 1.0))
    return dict(zip(_STATISTICS, (len(answers), float(answers.mean()), 2 * deviation), strict=True))


def plot_summary(
    summary: Sequence[Row], panels: Mapping[str, Sequence[str]], column: str, across: str, up: str
) -> Figure:
    """Draw means against one column of the cells, in one panel for each title, of the methods named there."""
    figure, row = drawing.titled_panels(tuple(panels))
    for axes, methods in zip(row, panels.values(), strict=True):
        _bars(axes, summary, methods, column)
        axes.set(xlabel=across, ylim=(-0.03, 1.03))
    row[0].set(ylabel=up)
    return figure


def _bars(axes: Axes, summary: Sequence[Row], methods: Sequence[str], column: str) -> None:
    """Draw the means of each method against a column, with bars of two standard deviations."""
    for place, method in enumerate(methods):
        points: list[Any] = [row for row in summary if row["method"] == method]
        if not points:
            continue
        positions = np.array([row[column] for row in points], dtype=float)
        offset = (place - (len(methods) - 1) / 2) * 0.004 * np.ptp(positions)  # bars that coincide can be told apart
        axes.errorbar(
            positions + offset,
            [row["mean"] for row in points],
            yerr=[row["two_standard_deviations"] for row in points],
            **drawing.style(method),
        )
    axes.set_xticks(sorted({float(row[column]) for row in summary}))
    drawing.legend(axes)
