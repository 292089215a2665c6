"""The pictures of the concept pages, drawn from real output while the documentation is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from massart import audit_table, l1_regression, radial_isotropy
from massart.agreement import levels, verify
from massart.certificate import geometry_of, measure_support
from massart.certificate.simulation import closed_form_eta_max
from massart.demo import make_ledger
from massart.paper import MassartNoise

INK, RIGHT, WRONG, OTHER = "#24292f", "#0969da", "#cf5a00", "#8c959f"


def draw_all(folder: Path) -> None:
    """Write one SVG a picture into a folder."""
    folder.mkdir(exist_ok=True)
    style = {"svg.hashsalt": "massart", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context({**style, "axes.titlesize": 9.5, "svg.fonttype": "path"}):
        for name, draw in PICTURES.items():
            figure = draw()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)


def noise() -> Figure:
    """A rule, the coins, and what an adversary makes of them."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 20, 60))
    X = np.column_stack([x, np.ones_like(x)])
    clean = X @ [2.0, 5.0]
    corruption = MassartNoise(0.4, _flatter).corrupt(X, clean, rng)
    may_be_wrong, wrong = corruption.allowed, corruption.labels != clean
    figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), sharex=True, sharey=True, layout="constrained")
    panels[0].plot(x, clean, "o", color=RIGHT, ms=3.5)
    panels[0].set_title("1. Every label follows a rule")
    panels[1].plot(x[~may_be_wrong], clean[~may_be_wrong], "o", color=RIGHT, ms=3.5)
    panels[1].plot(x[may_be_wrong], clean[may_be_wrong], "o", mfc="none", color=WRONG, ms=5)
    panels[1].set_title("2. Coins pick rows (40 %)")
    panels[2].plot(x[~wrong], corruption.labels[~wrong], "o", color=RIGHT, ms=3.5)
    panels[2].plot(x[wrong], corruption.labels[wrong], "x", color=WRONG, ms=5)
    panels[2].set_title("3. An adversary writes there")
    for axes in panels:
        axes.set_xlabel("x")
    panels[0].set_ylabel("y")
    return figure


def _flatter(X: np.ndarray, clean: np.ndarray, allowed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Write another rule where that is far from the truth, and leave the rest: an adversary may abstain."""
    return np.where(allowed & (X[:, 0] > 4), 9 + 0.3 * X[:, 0], clean)


def agreement() -> Figure:
    """Printed numbers as intervals; and the edge of the residuals that tells the level."""
    rng = np.random.default_rng(1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    x = np.array([1, 2, 3, 4, 5, 6])
    printed = np.round(0.43 * x + 0.3)
    printed[3] = 3
    for k, y in zip(x, printed, strict=True):
        inside = abs(y - 0.43 * k - 0.3) <= 0.5
        color = RIGHT if inside else WRONG
        left.plot([k, k], [y - 0.5, y + 0.5], color=color, lw=7, alpha=0.35, solid_capstyle="butt")
        left.plot(k, y, "_", color=color, ms=12, mew=2)
    left.plot([0.5, 6.5], [0.515, 3.095], color=INK, lw=1.2)
    left.set_title("A printed 2 stands for 1.5 to 2.5")
    left.set_xlabel("x")

    X = np.column_stack([rng.uniform(0, 500, 600), np.ones(600)])
    y = np.round(X @ [0.314, 12.0], 2)
    wrong = rng.random(600) < 0.3
    y[wrong] = np.round(y[wrong] + rng.choice([-1, 1], wrong.sum()) * 10 ** rng.uniform(-2, 2, wrong.sum()), 2)
    rounded = levels("auto", X, y)[1]
    sizes = np.sort(np.abs(y - X @ [0.314, 12.0]))
    agrees = verify(X, y, np.array([0.314, 12.0]), rounded).agree
    right.plot(np.arange(1, 601), np.maximum(sizes, 1e-5), color=INK, lw=1.4)
    right.axhline(rounded.label, color=RIGHT, lw=1)
    right.text(10, rounded.label * 1.3, "half a cent", color=RIGHT)
    right.set_yscale("log")
    right.set_title(f"The residuals have an edge: {np.count_nonzero(agrees)} of 600 rows agree")
    right.set_xlabel("rows, by residual")
    right.set_ylabel("|y - w.x|")
    return figure


def isotropy() -> Figure:
    """Rows as they are, scaled to length one, and in radial-isotropic position."""
    X, y = _leaning_rows()
    iso = radial_isotropy(X, gamma=1e-9)
    moved = X @ iso.subspace @ iso.matrix.T
    shown = [X, X / np.linalg.norm(X, axis=1)[:, None], moved, moved / np.linalg.norm(moved, axis=1)[:, None]]
    titles = ["1. The rows", "2. Scaled to length one", "3. A linear map of the rows", "4. Scaled to length one"]
    figure, panels = plt.subplots(1, 4, figsize=(9, 3.3), layout="constrained")
    truth = np.array([1.0, 2.0])
    wrong = y != X @ truth
    for axes, rows, title in zip(panels, shown, titles, strict=True):
        for chosen, color, marker in ((~wrong, RIGHT, "o"), (wrong, WRONG, "x")):
            axes.plot(rows[chosen, 0], rows[chosen, 1], marker, color=color, ms=2.6, mew=0.8)
        limit = np.abs(rows).max() * 1.1
        axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xticks=[], yticks=[])
        axes.set_title(title)
    for axes, rows in zip(panels[1::2], shown[1::2], strict=True):
        eigenvalues = np.linalg.eigvalsh(2 / len(rows) * rows.T @ rows)
        axes.set_xlabel(f"second moments times d:\n{eigenvalues[0]:.2f} and {eigenvalues[1]:.2f}")
    weights = (None, 1 / np.linalg.norm(X, axis=1), 1 / np.linalg.norm(moved, axis=1))
    answers = [l1_regression(X, y, sample_weight=c).coef for c in weights]
    for axes, coef in zip((panels[0], panels[1], panels[3]), answers, strict=True):
        note = axes.get_xlabel()
        text = f"L1 finds {coef[0]:.2f} x1 + {coef[1]:.2f} x2"
        axes.set_xlabel(f"{note}\n{text}" if note else text)
    return figure


def _leaning_rows() -> tuple[np.ndarray, np.ndarray]:
    """Most rows lean to one side, a few are long. The seed is one for which L1 regression fails at steps 1 and 2."""
    rng = np.random.default_rng(265)
    X = np.column_stack([rng.standard_normal(160), 0.12 * rng.standard_normal(160)])
    X[:14] = rng.standard_normal((14, 2)) * [0.5, 2.5]
    return X, np.where(rng.random(160) < 0.38, X @ [1.0, -1.0], X @ [1.0, 2.0])


def support() -> Figure:
    """The share of the evidence in each direction; and the noise rates that its least excludes."""
    rng = np.random.default_rng(2)
    n = 400
    X = rng.standard_normal((n, 2))
    right = rng.random(n) >= np.where(np.abs(X[:, 1]) > 2 * np.abs(X[:, 0]), 0.5, 0.22)
    found = measure_support(geometry_of(X), X, right, np.zeros(n), rng=np.random.default_rng(0))
    angles = np.linspace(0, np.pi, 361)
    iso = radial_isotropy(X, gamma=1e-6)
    lengths = np.linalg.norm(X @ iso.subspace @ iso.matrix.T, axis=1)
    evidence = (X @ np.stack([np.cos(angles), np.sin(angles)]) / lengths[:, None]) ** 2
    share = evidence[right].sum(axis=0) / evidence.sum(axis=0)
    lowest = int(np.argmin(share))
    assert abs(share[lowest] - found.alpha) < 0.01, "the picture is what the certificate says"

    figure, (left, middle) = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained")
    left.plot(np.degrees(angles), share, color=RIGHT)
    left.axhline(0.5, color=OTHER, lw=0.8, ls="--")
    left.plot(np.degrees(angles[lowest]), share[lowest], "o", color=WRONG)
    left.text(np.degrees(angles[lowest]), share[lowest] - 0.035, f"support {found.alpha:.2f}", color=WRONG, ha="center")
    left.set(xlabel="direction in which a rival differs (degrees)", ylabel="share that agrees", ylim=(0.4, 0.9))
    left.set_title(f"{np.count_nonzero(right)} of {n} rows agree, not in every direction alike")
    alphas = np.linspace(0.5, 0.95, 60)
    for size in (100, 1_000, 10_000):
        rates = [closed_form_eta_max(alpha, 2 / size, 2, 1e-3) for alpha in alphas]
        middle.plot(alphas, rates, color=RIGHT, lw=1.2, alpha=0.3 + 0.17 * np.log10(size))
        middle.text(0.955, rates[-1] - (0.03 if size == 1_000 else 0), f"{size:,} rows", fontsize=7.5, va="center")
    middle.axhline(0.5, color=OTHER, lw=0.8, ls="--")
    middle.text(1.06, 0.515, "CONFIRMED", fontsize=7.5, color=INK, ha="right")
    middle.set(xlabel="support (two columns)", ylabel="excluded noise rate", xlim=(0.5, 1.06), ylim=(0, 1))
    middle.set_title("What it excludes, with 99.9 % confidence")
    return figure


def kinds() -> Figure:
    """By which factor the wrong totals of the demo's ledger are off, coloured by what happened."""
    ledger = make_ledger(np.random.default_rng(0), 3_000)
    audit = audit_table(ledger, "total", terms="hours*rate, items, max(0, items - 10), service, weekend")
    rows = audit.rows()
    given, implied, names = (np.asarray(rows[name]) for name in ("given", "implied", "kind"))
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    agrees = (names == "") & (implied > 0)
    ratio = given / np.where(implied > 0, implied, np.nan)
    axes.loglog(implied[agrees], ratio[agrees], ".", color=OTHER, ms=2, label=f"right ({agrees.sum():,})")
    for kind, color in zip(audit.kinds.kinds, (WRONG, RIGHT, "#8250df", "#1a7f37", "#bf3989"), strict=False):
        chosen = names == kind.label
        label = f"{kind.label} ({kind.rows})"
        axes.loglog(implied[chosen], ratio[chosen], "x", color=color, ms=3.5, mew=0.9, label=label)
    axes.set(xlabel="what the rule implies", ylabel="given / implied", yticks=[0.5, 1, 2, 5, 10])
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "noise": noise, "agreement": agreement, "isotropy": isotropy, "support": support, "kinds": kinds,
}  # fmt: skip
