"""A picture to judge a fit by: residuals against fit, robust distances against residuals, normal quantiles."""

from __future__ import annotations

import warnings
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

_WIDTH, _HEIGHT = 4.4, 4.2
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
    """Return the picture, which belongs to no window and no global list; ImportError if matplotlib is not installed.

    Exact labels have no normal quantiles, and too few rows no distances: their panels are left out.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'massart[plot]'") from None

    panels = [_residuals, *[_distances] * (rows.distances is not None), *[_quantiles] * (rows.scale > 0)]
    with rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH * len(panels), _HEIGHT), layout="constrained")
        shown = _shown(rows.agree)
        every = figure.subplots(1, len(panels), squeeze=False)[0]
        for draw_panel, axes in zip(panels, every, strict=True):
            draw_panel(axes, rows, shown)
        handles, names = every[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _residuals(axes: Axes, rows: Diagnostics, shown: NDArray[np.intp]) -> None:
    axes.set(title="Residuals against fit", xlabel=f"fitted {rows.target}", ylabel="residual")
    _points(axes, rows, shown, rows.fitted, rows.residuals, np.where(rows.agree, 0.0, np.abs(rows.residuals)))
    _across(axes, CUTOFF * rows.scale)


def _distances(axes: Axes, rows: Diagnostics, shown: NDArray[np.intp]) -> None:
    axes.set(title="Residuals against robust distance", xlabel="robust distance of the row", ylabel=rows.unit)
    assert rows.distances is not None
    cutoff = float(np.sqrt(chdtri(rows.rank, _TAIL)))
    far = rows.distances > cutoff
    sizes = np.maximum(np.abs(rows.standardized) / CUTOFF, rows.distances / cutoff)
    _points(axes, rows, shown, rows.distances, rows.standardized, np.where(rows.agree & ~far, 0.0, sizes))
    axes.axvline(cutoff, color=_LINE, linestyle="--", linewidth=1)
    _across(axes, CUTOFF if rows.scale else 0.0)


def _quantiles(axes: Axes, rows: Diagnostics, shown: NDArray[np.intp]) -> None:
    axes.set(title="Normal quantiles", xlabel="normal quantile", ylabel=rows.unit)
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


def _shown(agree: BoolArray) -> NDArray[np.intp]:
    """Return the rows to draw: evenly spaced where there are too many."""
    parts = (np.flatnonzero(agree), np.flatnonzero(~agree))
    return np.concatenate([rows[_spaced(len(rows), MOST_POINTS)] for rows in parts])


MOST_ROWS = 5_000
"""Rows that tell where the bulk is; the others are measured from there."""

_RANK = 1e-10  # of singular values, relative to the largest
_FEWEST = 2  # rows for each column, below which half of them have no spread of their own


def robust_distances(X: Any) -> tuple[FloatArray | None, int]:
    """Return Mahalanobis distances from the minimum covariance determinant's centre, and the rank they are in.

    Columns are brought to size one and to coordinates of their span first. Where half of the rows lie in a subspace,
    as rows of categories do, the determinant tells nothing, and the covariance of all rows takes its place. None where
    the rows are too few, or do not differ.
    """
    from sklearn.covariance import MinCovDet  # which brings a good part of scikit-learn along

    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    spread = rows.std(axis=0)
    varying = spread > _RANK * np.abs(rows).max(axis=0, initial=0.0)
    if not varying.any():
        return None, 0
    centred = (rows - rows.mean(axis=0))[:, varying] / spread[varying]
    some = centred[_spaced(len(centred), MOST_ROWS)]
    _, sizes, axes = np.linalg.svd(some, full_matrices=False)
    rank = int((sizes > _RANK * sizes[0]).sum())
    if len(some) <= _FEWEST * rank:
        return None, rank
    Z = centred @ (axes[:rank].T / sizes[:rank]) * np.sqrt(len(some))
    bulk = MinCovDet(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of singular subsets, which are looked for here
        try:
            bulk.fit(Z[_spaced(len(Z), MOST_ROWS)])
        except ValueError:  # half of the rows are the same
            return np.linalg.norm(Z, axis=1), rank
    if np.linalg.matrix_rank(bulk.covariance_, hermitian=True, tol=_RANK) < rank:
        return np.linalg.norm(Z, axis=1), rank
    return np.sqrt(bulk.mahalanobis(Z)), rank


def _spaced(n: int, most: int) -> slice:
    return slice(None, None, max(-(-n // most), 1))
