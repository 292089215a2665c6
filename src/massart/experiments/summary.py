"""Numbers behind a picture: the mean of each cell and method, and two standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from massart.experiments.experiment import Row

STATISTICS = ("trials", "mean", "two_standard_deviations")


def summarize(rows: Sequence[Row], by: tuple[str, ...], value: str, *, of_the_mean: bool) -> list[Row]:
    r"""Return the mean of a column over the trials of each group, in the order in which groups appear.

    Parameters
    ----------
    rows : sequence of rows
    by : tuple of str
        The columns that name a group, besides the method. Rows of a method without an answer (NaN) do not count.
    value : str
        The column to average.
    of_the_mean : bool
        Whether two standard deviations are those of the mean, :math:`2 s / \sqrt n`, as for a rate; else those of
        the trials, :math:`2 s`.
    """
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        groups.setdefault((*(row[name] for name in by), row["method"]), []).append(row[value])
    return [
        {**dict(zip((*by, "method"), key, strict=True)), **_statistics(np.array(group, dtype=float), of_the_mean)}
        for key, group in groups.items()
    ]


def _statistics(values: np.ndarray[Any, np.dtype[np.float64]], of_the_mean: bool) -> Row:
    answers = values[np.isfinite(values)]
    if not len(answers):
        return dict(zip(STATISTICS, (0, float("nan"), float("nan")), strict=True))
    deviation = float(answers.std() / (np.sqrt(len(answers)) if of_the_mean else 1.0))
    return dict(zip(STATISTICS, (len(answers), float(answers.mean()), 2 * deviation), strict=True))
