"""Draw the picture of the README from real output: ``python docs/make_picture.py`` (needs matplotlib).

200 deliveries, and for each a coin that decides whether its bill may be wrong (Massart noise, 45 %). The wrong bills
follow a rule of their own. The seed is one for which many of the far deliveries are among them: least squares, which is
never right here, and plain L1 regression, which most seeds leave unharmed, both follow those. L1 regression on the rows
in radially isotropic position does not.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from massart import l1_regression
from massart.paper import MassartNoise
from massart.recover import recover
from massart.rows import ArrayRows, BoolArray, FloatArray

N_ROWS, ETA, SEED = 200, 0.45, 2
TRUTH = np.array([2.0, 5.0])
STYLES = {
    "light": {"ink": "#24292f", "points": "#8c959f", "right": "#0969da", "wrong": "#cf5a00", "other": "#57606a"},
    "dark": {"ink": "#e6edf3", "points": "#8b949e", "right": "#58a6ff", "wrong": "#ff9b52", "other": "#adb5bd"},
}


def main() -> None:
    """Write ``picture-light.svg`` and ``picture-dark.svg`` beside this file."""
    X, y = _deliveries(np.random.default_rng(SEED))
    # A fixed salt and no date: the same code writes the same bytes.
    matplotlib.rcParams.update({"svg.hashsalt": "massart", "font.size": 10})
    for style, colors in STYLES.items():
        _draw(X, y, colors, Path(__file__).with_name(f"picture-{style}.svg"))


def _deliveries(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    distance = rng.lognormal(2.2, 0.9, N_ROWS)
    X = np.column_stack([distance, np.ones_like(distance)])
    return X, MassartNoise(ETA, _flat_rate).corrupt(X, X @ TRUTH, rng).labels


def _flat_rate(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    return np.where(allowed, 8 + 0.2 * X[:, 0] + rng.uniform(0, 14, len(clean)), clean)


def _draw(X: FloatArray, y: FloatArray, colors: dict[str, str], path: Path) -> None:
    found = recover(ArrayRows(X, y), rng=np.random.default_rng(0))
    coef, agree = found.coef[:, 0], found.agree[:, 0]
    squares = np.linalg.lstsq(X, y, rcond=None)[0]
    plain = l1_regression(X, y).coef
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), sharex=True, sharey=True, layout="constrained")

    left.scatter(X[:, 0], y, s=9, color=colors["points"], linewidths=0)
    _line(left, squares, colors["other"], "--", "least squares")
    _line(left, plain, colors["wrong"], "-", "plain L1")
    left.set_title(f"{N_ROWS} rows, {ETA:.0%} of the answers unreliable", fontsize=10, color=colors["ink"])

    right.scatter(*_points(X, y, agree), s=9, color=colors["right"], linewidths=0)
    right.scatter(*_points(X, y, ~agree), s=14, marker="x", color=colors["wrong"], linewidths=0.8)
    slope, constant = coef
    agreement = f"{np.count_nonzero(agree)} of {len(y)} rows agree exactly"
    label = f"recovered: {slope:.10g} x + {constant:.10g}\n{agreement}"
    _line(right, coef, colors["right"], "-", label)
    right.set_title("massart: the formula, and the wrong rows marked", fontsize=10, color=colors["ink"])

    for axes in (left, right):
        axes.patch.set_alpha(0)
        axes.tick_params(colors=colors["ink"])
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(colors["ink"])
        axes.legend(loc="upper left", frameon=False, labelcolor=colors["ink"])
    figure.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(figure)


def _points(X: FloatArray, y: FloatArray, chosen: BoolArray) -> tuple[FloatArray, FloatArray]:
    return X[chosen, 0], y[chosen]


def _line(axes: Axes, coef: FloatArray, color: str, dashes: str, label: str) -> None:
    ends = np.array([0.0, 85.0])
    axes.plot(ends, coef[0] * ends + coef[1], dashes, color=color, linewidth=1.6, label=label)


if __name__ == "__main__":
    main()
