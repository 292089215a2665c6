"""How figures look: one style for each method, two panels, and files that are the same bytes every time.

The colours are those of Okabe and Ito, which readers with any colour vision tell apart; markers and dashes say the same
once more, for print in grey.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from massart.experiments.experiment import Row

_SETTINGS: Any = {
    "svg.hashsalt": "massart",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine has it
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
}
_BLACK, _GREY, _ORANGE, _SKY, _GREEN = "#000000", "#777777", "#e69f00", "#56b4e9", "#009e73"
_BLUE, _RED, _PURPLE = "#0072b2", "#d55e00", "#cc79a7"

_STYLES = {
    "naive_l1": ("naive L1", _ORANGE, "s", "--"),
    "normalized_l1": ("normalized L1", _SKY, "^", "-."),
    "algorithm_1": ("Algorithm 1 (γ = 1/2, the paper's)", _BLUE, "o", "-"),
    "algorithm_1_tight": ("Algorithm 1, γ = 0.001", _SKY, "v", "--"),
    "algorithm_1_effective": ("Algorithm 1, most effective position (ours)", _GREEN, "*", "-."),
    "rescaled_l1": ("rescaled L1 (Algorithm 2)", _BLUE, "o", "-"),
    "massart": ("massart (default)", _RED, "D", "-"),
    "massart_robust": ("massart (noisy inliers)", _RED, "D", "-"),
    "least_squares": ("least squares", _GREY, "x", ":"),
    "ridge": ("ridge, tuned on clean data", _PURPLE, "v", ":"),
    "huber": ("Huber (scikit-learn)", _PURPLE, "v", ":"),
    "ransac": ("RANSAC, tuned (scikit-learn)", _GREEN, "v", "--"),
    "torrent": ("TORRENT", _BLACK, "P", ":"),
    "ada_crr": ("AdaCRR", _ORANGE, "X", ":"),
    "lmrob": ("MM (R robustbase)", _SKY, "p", "--"),
    "lts": ("FAST-LTS (R robustbase)", _PURPLE, "h", "--"),
    "original": ("Original", _GREY, "", ":"),
    "normalized": ("Normalized", _SKY, "", "-."),
    "isotropic": ("Isotropic", _ORANGE, "", "--"),
    "radial_isotropic": ("Radial-isotropic", _BLUE, "", "-"),
    "radial_isotropic_trace": ("Radial-isotropic, tr A⁻² = d", _GREEN, "", "-"),
    "massart_relu": ("massart (default)", _RED, "D", "-"),
    "published_relu": ("separation oracle and cuts (Thm 1.3)", _BLUE, "o", "-"),
    "karmakar_sgd": ("stochastic descent (Karmakar et al.)", _GREEN, "v", "--"),
    "clad": ("CLAD, iterated LP", _PURPLE, "s", "--"),
}


def name_of(method: str) -> str:
    """Return the name of a method for readers."""
    return _STYLES[method][0] if method in _STYLES else method


def style(method: str) -> dict[str, Any]:
    """Return label, colour, marker and dashes of a method, as matplotlib takes them."""
    label, color, marker, line = _STYLES.get(method, (method, _BLACK, ".", "-"))
    return {
        "label": label,
        "color": color,
        "marker": marker,
        "linestyle": line,
        "markersize": 5,
        "linewidth": 1.6,
        **({"capsize": 2.5, "elinewidth": 1.0} if marker else {}),
    }


def titled_panels(titles: Sequence[str]) -> tuple[Figure, tuple[Axes, ...]]:
    """Return a figure with panels side by side."""
    figure, (row,) = panels(1, len(titles), (5.5 * len(titles), 4.4))
    for axes, title in zip(row, titles, strict=True):
        axes.set_title(title, loc="left")
    return figure, tuple(row)


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """Return a figure with a grid of axes; it belongs to no window and no global list."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False)


def legend(axes: Axes) -> None:
    """Put the legend, if there is something to name, below the axes, where it hides nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=8.5, frameon=False)


def plot_summary(
    summary: Sequence[Row], methods: Mapping[str, Sequence[str]], column: str, across: str, up: str
) -> Figure:
    """Draw means against one column of the cells, with bars of two standard deviations: for each title its methods."""
    figure, row = titled_panels(tuple(methods))
    ticks = sorted({float(entry[column]) for entry in summary})
    for axes, shown in zip(row, methods.values(), strict=True):
        for place, method in enumerate(shown):
            points: list[Any] = [entry for entry in summary if entry["method"] == method]
            if not points:
                continue
            positions = np.array([entry[column] for entry in points], dtype=float)
            offset = (place - (len(shown) - 1) / 2) * 0.004 * np.ptp(positions)  # bars that coincide are set apart
            axes.errorbar(
                positions + offset,
                [entry["mean"] for entry in points],
                yerr=[entry["two_standard_deviations"] for entry in points],
                **style(method),
            )
        axes.set_xticks(ticks)
        legend(axes)
        axes.set(xlabel=across, ylim=(-0.03, 1.03))
    row[0].set(ylabel=up)
    return figure


def encode(figure: Figure, kind: str) -> bytes:
    """Return the picture as a file: "svg" or "png", with no date in it."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None, "Creator": "massart"}, "png": {"Software": "massart"}}[kind]
    with rc_context(_SETTINGS):
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    return buffer.getvalue()
