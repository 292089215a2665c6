"""A picture to judge a fit by: residuals against fit, robust distances against residuals, normal quantiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from massart.robust import CUTOFF
from massart.rows import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 5_000
"""Rows that agree that are drawn; of the others, all up to the same number."""

MOST_NAMED = 5
"""Points of a picture that have labels."""

_SIZE = (13.0, 4.2)
_TAIL = 0.025  # of the chi-square law of squared distances, beyond which a row has leverage
_RIGHT, _WRONG, _LINE = "#0072b2", "#d55e00", "#777777"  # of Okabe and Ito, for readers with any colour vision
_STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
}


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Rows next to a fit."""

    target: str
    fitted: FloatArray
    residuals: FloatArray
    agree: BoolArray
    scale: float  # of the residuals; 0 where labels are exact
    distances: FloatArray | None  # of the rows from their bulk
    rank: int  # the number of columns that the distances are in
    labels: Callable[[NDArray[np.intp]], list[object]]  # what rows of given numbers are called

    @property
    def standardized(self) -> FloatArray:
        """Residuals in scales, where there is one."""
        return self.residuals / self.scale if self.scale else self.residuals

    @property
    def unit(self) -> str:
        """What the axis of these is called."""
        return "residual / scale" if self.scale else "residual"


def draw(rows: Diagnostics) -> Figure:
    """Return the picture, which belongs to no window and no global list; ImportError if matplotlib is not installed."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'massart[plot]'") from None

    with rc_context(_STYLE):
        figure = Figure(figsize=_SIZE, layout="constrained")
        first, second, third = figure.subplots(1, 3)
        shown = _shown(rows.agree)
        _residuals(first, rows, shown)
        _distances(second, rows, shown)
        _quantiles(third, rows, shown)
        handles, names = first.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _residuals(axes: Axes, rows: Diagnostics, shown: NDArray[np.intp]) -> None:
    axes.set(title="Residuals against fit", xlabel=f"fitted {rows.target}", ylabel="residual")
    _points(axes, rows, shown, rows.fitted, rows.residuals, np.where(rows.agree, 0.0, np.abs(rows.residuals)))
    _across(axes, CUTOFF * rows.scale)


def _distances(axes: Axes, rows: Diagnostics, shown: NDArray[np.intp]) -> None:
    axes.set(title="Residuals against robust distance", xlabel="robust distance of the row", ylabel=rows.unit)
    if rows.distances is None:
        _without(axes, "too few rows for distances")
        return
    cutoff = float(np.sqrt(chdtri(rows.rank, _TAIL)))
    far = rows.distances > cutoff
    sizes = np.maximum(np.abs(rows.standardized) / CUTOFF, rows.distances / cutoff)
    _points(axes, rows, shown, rows.distances, rows.standardized, np.where(rows.agree & ~far, 0.0, sizes))
    axes.axvline(cutoff, color=_LINE, linestyle="--", linewidth=1)
    _across(axes, CUTOFF if rows.scale else 0.0)


def _quantiles(axes: Axes, rows: Diagnostics, shown: NDArray[np.intp]) -> None:
    axes.set(title="Normal quantiles", xlabel="normal quantile", ylabel=rows.unit)
    if not rows.scale:
        _without(axes, "the labels are exact")
        return
    n, values = len(rows.residuals), rows.standardized
    normal = np.empty(n)
    normal[np.argsort(values, kind="stable")] = ndtri((np.arange(n) + 0.5) / n)
    _points(axes, rows, shown, normal, values, np.where(rows.agree, 0.0, np.abs(values)))
    axes.axline((0.0, 0.0), slope=1.0, color=_LINE, linestyle="--", linewidth=1)


def _points(
    axes: Axes, rows: Diagnostics, shown: NDArray[np.intp], x: FloatArray, y: FloatArray, extreme: FloatArray
) -> None:
    """Draw rows, those that agree first, and name the most extreme ones, of those that are extreme at all."""
    follows = shown[rows.agree[shown]]
    off = shown[~rows.agree[shown]]
    axes.plot(x[follows], y[follows], "o", ms=4, mew=0, alpha=0.6, color=_RIGHT, label="rows that agree")
    if len(off):
        axes.plot(x[off], y[off], "D", ms=4.5, mew=0, alpha=0.8, color=_WRONG, label="rows that do not")
    named = shown[np.argsort(-extreme[shown], kind="stable")][:MOST_NAMED]
    named = named[extreme[named] > 0]
    for row, label in zip(named, rows.labels(named), strict=True):
        axes.annotate(str(label), (x[row], y[row]), xytext=(4, 3), textcoords="offset points", fontsize=7.5)


def _across(axes: Axes, cutoff: float) -> None:
    axes.axhline(0.0, color=_LINE, linewidth=0.8)
    for sign in (-1, 1) if cutoff else ():
        axes.axhline(sign * cutoff, color=_LINE, linestyle="--", linewidth=1)


def _without(axes: Axes, why: str) -> None:
    axes.text(0.5, 0.5, why, ha="center", va="center", transform=axes.transAxes, color=_LINE)
    axes.set(xticks=[], yticks=[])


def _shown(agree: BoolArray) -> NDArray[np.intp]:
    """Return the rows to draw: evenly spaced where there are too many."""
    parts = (np.flatnonzero(agree), np.flatnonzero(~agree))
    return np.concatenate([rows[:: max(-(-len(rows) // MOST_POINTS), 1)] for rows in parts])
