"""The pictures of the concept pages, drawn from real output while the documentation is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from massart import audit_table, l1_regression, radial_isotropy
from massart.certificate import geometry_of, measure_support
from massart.certificate.tails import ClosedForm
from massart.cutting_plane.ellipsoid import Ellipsoid
from massart.demo import make_ledger
from massart.paper import (
    Answer,
    MassartNoise,
    decoy,
    linear_labels,
    negate,
    relu_labels,
    remove_outliers,
    separation_oracle,
    where,
)
from massart.rows import levels, verify

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
        rates = [ClosedForm(2 / size, 2, 1e-3).eta_max(alpha) for alpha in alphas]
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


# The page of the paper


def paper_noise() -> Figure:
    """Definition 1.1 for a linear function and for a ReLU."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    for axes, concept, name in zip(panels, (linear_labels, relu_labels), ("w*.x", "max(0, w*.x)"), strict=True):
        rng = np.random.default_rng(11)
        x = rng.uniform(-10, 10, 90)
        X, w = np.column_stack([x, np.ones_like(x)]), np.array([2.0, 3.0])
        clean = concept(X, w)
        adversary = where(lambda X: X[:, 0] > -3, decoy([-1.0, 14.0], concept))
        noise = MassartNoise(0.35, adversary).corrupt(X, clean, rng)
        left = noise.allowed & ~noise.changed
        axes.plot(x[~noise.allowed], noise.labels[~noise.allowed], "o", color=RIGHT, ms=3, label="right")
        axes.plot(
            x[left], noise.labels[left], "o", mfc="none", color=WRONG, ms=5, label="could be changed, and was not"
        )
        axes.plot(x[noise.changed], noise.labels[noise.changed], "x", color=WRONG, ms=5, label="changed")
        axes.set(xlabel="x", ylabel="y", title=f"y = {name}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def paper_position() -> Figure:
    """A skewed cloud, its directions, and its directions in radial-isotropic position."""
    X = _leaning_rows()[0]
    shown = [X, X / np.linalg.norm(X, axis=1)[:, None], radial_isotropy(X).transform(X)]
    titles = ["x", "x / |x|", "A x / |A x|"]
    figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    for axes, rows, title in zip(panels, shown, titles, strict=True):
        axes.plot(rows[:, 0], rows[:, 1], "o", color=RIGHT, ms=3, alpha=0.5)
        limit = np.abs(rows).max() * 1.1
        axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", title=title)
        smallest, largest = np.linalg.eigvalsh(2 / len(rows) * rows.T @ rows)
        axes.set_xlabel(f"(d/n) \u03a3 (x.v)\u00b2: {smallest:.2f} to {largest:.2f}")
    return figure


def paper_l1() -> Figure:
    """The L1 loss about the truth, of the rows as they are and of the rows in position."""
    X, y = _leaning_rows()
    truth = np.array([1.0, 2.0])
    lengths = np.linalg.norm(X @ radial_isotropy(X).matrix, axis=1)
    axis = np.linspace(-1.6, 1.6, 201)
    grid = [1.0, 1.5] + np.stack(np.meshgrid(axis, 1.9 * axis), axis=-1)
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axes, weights, title in zip(
        panels, (np.ones(len(X)), 1 / lengths), ("rows as they are", "rows divided by |A x|"), strict=True
    ):
        loss = np.abs(y[:, None, None] - np.einsum("nd,ijd->nij", X, grid)).transpose(1, 2, 0) @ weights
        w = l1_regression(X, y, sample_weight=weights).coef
        depth = np.quantile(loss - loss.min(), np.linspace(0.004, 0.7, 14) ** 1.5)
        axes.contour(grid[..., 0], grid[..., 1], loss - loss.min(), levels=depth, colors=OTHER, linewidths=0.7)
        axes.plot(*truth, "o", color=RIGHT, ms=9, mfc="none", mew=1.6, label="w*", ls="none")
        axes.plot(*w, "x", color=WRONG, ms=7, mew=1.8, label="least L1 loss", ls="none")
        axes.set(xlabel="first coordinate of w", title=f"{title}: ({w[0]:.2f}, {w[1]:.2f})")
    panels[0].set_ylabel("second coordinate of w")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def _relu_table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the plane, labels of a ReLU of which three of ten are negated, and the truth."""
    rng = np.random.default_rng(4)
    X, w = rng.standard_normal((160, 2)), np.array([1.0, 2.0])
    return X, MassartNoise(0.3, negate(w)).corrupt(X, relu_labels(X, w), rng).labels, w


def paper_cut() -> Figure:
    """One question to the oracle: the rows it looks at, and the half of the plane that it cuts off."""
    X, y, w = _relu_table()
    query = np.array([2.2, -0.3])
    cut = separation_oracle(X, y, query)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    active, good = X @ query >= 0, y == relu_labels(X, w)
    left.plot(*X[~active].T, ".", color=OTHER, ms=3, label="not active")
    left.plot(*X[active & good].T, "o", color=RIGHT, ms=3.4, label="active, right")
    left.plot(*X[active & ~good].T, "x", color=WRONG, ms=4.5, label="active, wrong")
    along = np.array([-query[1], query[0]]) / np.linalg.norm(query)
    left.plot(*np.outer(along, [-3.4, 3.4]), color=INK, lw=1)
    left.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), aspect="equal", xlabel="x\u2081", ylabel="x\u2082")
    left.set_title("The rows with w\u2080.x \u2265 0 decide")
    left.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    normal = cut.normal / np.linalg.norm(cut.normal)
    along = np.array([-normal[1], normal[0]])
    corners = [query + s * 9 * along - k * 9 * normal for s, k in ((-1, 0), (1, 0), (1, 1), (-1, 1))]
    right.fill(*np.transpose(corners), color=RIGHT, alpha=0.1, lw=0)
    right.plot(*np.transpose([query - 9 * along, query + 9 * along]), color=INK, lw=1)
    right.annotate("", query + 0.9 * normal, query, arrowprops={"arrowstyle": "->", "color": WRONG})
    right.text(*(query + 1.0 * normal), "normal", color=WRONG, ha="left", va="center")
    right.plot(*query, "o", color=INK, ms=5)
    right.text(query[0] - 0.15, query[1], "w\u2080", color=INK, ha="right", va="center")
    right.plot(*w, "o", color=RIGHT, ms=6)
    right.text(w[0] + 0.15, w[1], "w*", color=RIGHT, va="center")
    right.text(-2.3, -0.9, "what is left", color=RIGHT)
    right.set(xlim=(-2.6, 4.4), ylim=(-2.2, 3.4), aspect="equal", xlabel="w\u2081", ylabel="w\u2082")
    right.set_title("The answer: w* is on this side")
    return figure


def paper_ellipsoid() -> Figure:
    """The ellipsoids that are left, and how far the queries are from the truth."""
    X, y, w = _relu_table()
    region = Ellipsoid(np.zeros(2), 4 * np.eye(2))
    circle = np.stack([np.cos(np.linspace(0, 2 * np.pi, 200)), np.sin(np.linspace(0, 2 * np.pi, 200))])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    distances, sizes, shown = [], [], (0, 1, 2, 3, 5, 7, 10, 14)
    for query in range(400):
        found = separation_oracle(X, y, region.center)
        distances.append(np.linalg.norm(region.center - w))
        sizes.append(np.exp(region.log_volume() / 2))
        if query in shown:
            color = matplotlib.colormaps["viridis"](0.95 - 0.95 * query / shown[-1])
            left.plot(*(region.center[:, None] + region.B @ circle), color=color, lw=1.2, label=f"{query}")
            left.plot(*region.center, ".", color=color, ms=5)
        cut = None if found.answer is Answer.YES else region.cut(found.normal, 0.0)
        if cut is None:
            break
        region = cut
    left.plot(*w, "x", color=WRONG, ms=7, mew=1.8)
    left.set(
        aspect="equal", xlabel="w\u2081", ylabel="w\u2082", title="What is left after so many cuts (w* is the cross)"
    )
    left.legend(title="cuts", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    right.semilogy(distances, color=RIGHT, lw=1.2, label="distance of the query from w*")
    right.semilogy(sizes, color=OTHER, lw=1.2, ls="--", label="mean radius of what is left")
    right.set(xlabel="queries", title=f"Yes after {len(distances)} queries")
    right.legend(frameon=False)
    return figure


def paper_outliers() -> Figure:
    """Rows before and after the removal of outliers, with the ellipse of their second moments."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 2)) @ [[1.0, 0.5], [0.0, 0.6]]
    X[:9] = rng.standard_normal((9, 2)) * [9, 6]
    removal = remove_outliers(X, alpha=0.04)
    circle = np.stack([np.cos(np.linspace(0, 2 * np.pi, 200)), np.sin(np.linspace(0, 2 * np.pi, 200))])
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    inside = removal.inside
    for axes, rows, title in zip(panels, (X, X[inside]), ("All rows", "The rows inside"), strict=True):
        M = rows.T @ rows / len(rows)
        ratios = np.einsum("ij,ij->i", rows @ np.linalg.inv(M), rows)
        axes.plot(*X[inside].T, "o", color=RIGHT, ms=2.6, label="inside")
        if rows is X:
            axes.plot(*X[~inside].T, "x", color=WRONG, ms=6, label="removed")
        for beta, style in ((1.0, "-"), (ratios.max(), "--")):
            name = "x'M\u207ax = 1" if beta == 1 else "the largest ratio"
            axes.plot(*(np.sqrt(beta) * np.linalg.cholesky(M) @ circle), style, color=INK, lw=0.9, label=name)
        axes.set(
            aspect="equal",
            xlabel="x\u2081",
            ylabel="x\u2082",
            title=f"{title} ({len(rows)}): ratios up to {ratios.max():.1f}",
        )
    panels[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "noise": noise, "agreement": agreement, "isotropy": isotropy, "support": support, "kinds": kinds,
    "paper-noise": paper_noise, "paper-position": paper_position, "paper-l1": paper_l1, "paper-cut": paper_cut,
    "paper-ellipsoid": paper_ellipsoid, "paper-outliers": paper_outliers,
}  # fmt: skip
