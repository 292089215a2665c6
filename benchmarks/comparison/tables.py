r"""The grid: tables whose truth is known, in cells.

========  ===========================================================================================================
linear    exact labels :math:`y = w \cdot x`, some of them wrong: uniform, far off (Cauchy), of a second plane, or of
          the paper's adversary, who changes the labels of long rows
relu      exact labels :math:`\max(0, w \cdot x)`, some of them uniform
noisy     labels :math:`w \cdot x + e`, e standard normal; some rows far off, in a cluster of bad leverage, or of a
          second plane
rule      ledgers in cents: products, rates by category, tiers; and smooth curves, which massart has no terms for
rows      which rows are wrong: exact ledgers, a noisy plane, and Friedman's (1991) surface, which no short rule gives
========  ===========================================================================================================

The grid was written before its first run, with cells that massart should lose: right labels that are noisy and few, no
wrong rows at all, curves outside its terms, and rows to audit where nothing is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from massart.experiments.figure_1 import paper_table
from massart.rows import BoolArray, FloatArray

Group = Literal["linear", "relu", "noisy", "rule", "rows"]
Generator = np.random.Generator

SEARCH_SECONDS = 5.0
"""For one search for a formula: some four times what massart takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table and its truth."""

    X: FloatArray  # columns as numbers, categories as indicators: what libraries that read no tables get
    y: FloatArray  # as given
    wrong: BoolArray  # rows whose label is
    right: FloatArray  # what the rule gives in each row, before rounding and noise
    half: float  # how far a right label may be from that: half a unit of the last place; 0 if exact, NaN if noisy
    coef: FloatArray = field(default_factory=lambda: np.empty(0))  # of a linear function or a ReLU
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # as a file has them, where that is not X
    functions: tuple[str, ...] = ()  # what a search for formulas has to be told, besides + - * /
    seconds: float = SEARCH_SECONDS  # of the processor, that such a search may take

    @property
    def frame(self) -> dict[str, NDArray[Any]]:
        """The columns and the target, named y."""
        return {**(self.columns or {f"x{j}": values for j, values in enumerate(self.X.T)}), "y": self.y}


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of table, and how many of them are drawn."""

    name: str
    group: Group
    about: str
    make: Callable[[Generator], Table]
    tables: int


def _chosen(rng: Generator, n: int, eta: float) -> BoolArray:
    return np.asarray(rng.random(n) < eta)


# Exact labels.


def linear(rng: Generator, *, n: int, d: int, eta: float, kind: str) -> Table:
    """Draw Gaussian rows and labels that are wrong with probability eta, in one of the ways."""
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    right, size = X @ w, float(np.linalg.norm(w))
    instead = {
        "uniform": rng.uniform(-3 * size, 3 * size, n),
        "heavy": right + size * rng.standard_cauchy(n),
        "plane": X @ rng.standard_normal(d),
    }[kind]
    wrong = _chosen(rng, n, eta)
    return Table(X, np.where(wrong, instead, right), wrong, right, 0.0, w)


plain = partial(linear, kind="uniform")


def leverage(rng: Generator, *, n: int, d: int, eta: float) -> Table:
    """Draw the paper's mixture, and its adversary, who flips the labels of rows with a coordinate above d/2."""
    X, y, w = paper_table(n, d, eta, rng)
    return Table(X, y, y != X @ w, X @ w, 0.0, w)


def relu(rng: Generator, *, n: int, d: int, eta: float) -> Table:
    """Draw a ReLU with labels that are uniform with probability eta."""
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    right, wrong = np.maximum(X @ w, 0.0), _chosen(rng, n, eta)
    return Table(X, np.where(wrong, rng.uniform(0, 3 * np.linalg.norm(w), n), right), wrong, right, 0.0, w)


# Noisy labels.


def noisy(rng: Generator, *, n: int, d: int, eta: float, kind: str = "vertical") -> Table:
    """Draw a plane with standard normal noise, of which a share of rows is wrong."""
    X, w, u = rng.standard_normal((n, d)), rng.standard_normal(d), rng.standard_normal(d)
    u /= np.linalg.norm(u)
    wrong = np.zeros(n, dtype=np.bool_)
    wrong[rng.permutation(n)[: round(eta * n)]] = True
    if kind == "leverage":
        X[wrong] = 10 * u + 0.5 * X[wrong]
    right = X @ w
    off = {
        "vertical": rng.uniform(20, 100, n) * rng.choice((-1, 1), n),
        "leverage": np.full(n, 30.0),
        "plane": 10 * X @ u,
    }[kind]
    return Table(X, right + rng.standard_normal(n) + np.where(wrong, off, 0.0), wrong, right, np.nan, w)


def friedman(rng: Generator, *, n: int, eta: float) -> Table:
    """Draw Friedman's (1991) first surface of five of ten columns, with noise, and labels of other rows."""
    X = rng.uniform(0, 1, (n, 10))
    right = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y, wrong = right + rng.standard_normal(n), _chosen(rng, n, eta)
    moved = np.where(wrong, y + rng.choice((-1, 1), n) * rng.uniform(8, 20, n), y)
    return Table(X, moved, wrong, right, np.nan)


# Ledgers and curves, rounded.

Draw = tuple[Mapping[str, NDArray[Any]], FloatArray]


def total(rng: Generator, n: int) -> Draw:
    """Return a sum of three columns with prices, and a fee."""
    columns = {name: rng.integers(0, 40, n) for name in ("small", "medium", "large")}
    prices = np.round(rng.uniform(2, 90, 3), 2)
    return columns, np.column_stack(list(columns.values())) @ prices + round(float(rng.uniform(5, 40)), 2)


def _product(rng: Generator, n: int) -> Draw:
    """Return quantity times price less a discount, and freight."""
    qty, price = rng.integers(1, 40, n), np.round(rng.uniform(2, 300, n), 2)
    discount, freight = rng.choice([0.0, 0.05, 0.1, 0.2], n), np.round(rng.uniform(3, 30, n), 2)
    return {"qty": qty, "price": price, "discount": discount, "freight": freight}, (
        qty * price * (1 - discount) + freight
    )


def _rates(rng: Generator, n: int) -> Draw:
    """Return hours times a rate by service, and a fee."""
    names, hours = np.array(["cleaning", "design", "repair", "training"]), rng.integers(1, 60, n) / 4
    rates, code = np.round(rng.choice(np.arange(20, 160, 2.5), 4, replace=False), 2), rng.integers(0, 4, n)
    return {"hours": hours, "service": names[code]}, hours * rates[code] + float(rng.integers(5, 60))


def _tiers(rng: Generator, n: int) -> Draw:
    """Return a tariff with a dearer rate above a threshold, and a base charge by days."""
    kwh, days = rng.integers(20, 900, n), rng.integers(20, 40, n)
    rates = np.round(rng.uniform(0.1, 0.5, 3), 2)
    threshold = int(rng.choice([200, 250, 300, 400]))
    return {"kwh": kwh, "days": days}, rates[0] * kwh + rates[1] * np.maximum(0, kwh - threshold) + rates[2] * days


def _sine(rng: Generator, n: int) -> Draw:
    t, x = np.round(rng.uniform(0, 6, n), 3), np.round(rng.uniform(0, 5, n), 3)
    a, b, c = np.round(rng.uniform((1, 0.6, 0.5), (5, 2, 3)), 2)
    return {"t": t, "x": x}, a * np.sin(b * t) + c * x


def _growth(rng: Generator, n: int) -> Draw:
    t, x = np.round(rng.uniform(0, 5, n), 3), np.round(rng.uniform(0, 5, n), 3)
    a, b, c = np.round(rng.uniform((1, 0.2, 0.5), (4, 0.6, 3)), 2)
    return {"t": t, "x": x}, a * np.exp(b * t) + c * x


def _saturation(rng: Generator, n: int) -> Draw:
    s, x = np.round(rng.uniform(0.1, 9, n), 3), np.round(rng.uniform(0, 5, n), 3)
    v, k = np.round(rng.uniform((5, 0.5), (20, 4)), 2)
    return {"s": s, "x": x}, v * s / (k + s)


def ledger(
    rng: Generator,
    draw: Callable[[Generator, int], Draw],
    *,
    n: int,
    eta: float,
    places: int = 2,
    functions: tuple[str, ...] = ("min", "max"),
) -> Table:
    """Round a rule and make values wrong: ten times too large, of another row, digits added, in turn."""
    columns, exact = draw(rng, n)
    columns = {**columns, "code": rng.integers(1, 500, n), "age": np.round(rng.uniform(0, 90, n), 1)}
    right = np.round(exact, places)
    ways = np.stack([10 * right, rng.permutation(right), right + rng.choice((-1, 1), n) * rng.integers(1, 50, n)])
    y = np.where(_chosen(rng, n, eta), np.round(ways[rng.integers(3, size=n), np.arange(n)], places), right)
    numbers = np.column_stack([*(_as_numbers(values) for values in columns.values())])
    half = 0.5 * 10.0**-places + 1e-9 * float(np.abs(right).max())
    return Table(numbers, y, y != right, exact, half, columns=columns, functions=functions)


def _as_numbers(values: NDArray[Any]) -> FloatArray:
    """Return a column as it is, or the indicators of its categories."""
    if values.dtype.kind != "U":
        return np.asarray(values[:, None], dtype=np.float64)
    return np.asarray(values[:, None] == np.unique(values), dtype=np.float64)


# The grid.

_TABLES = {"linear": 8, "relu": 8, "noisy": 10, "rule": 5, "rows": 5}


def _cell(name: str, about: str, make: Callable[..., Table], n_tables: int | None = None, **settings: Any) -> Cell:
    group: Any = name.partition("-")[0]
    return Cell(name, group, about, partial(make, **settings), n_tables or _TABLES[group])


def _cells() -> Iterator[Cell]:
    etas = {0.1: "10 %", 0.3: "30 %", 0.45: "45 %"}
    words = {"uniform": "uniform labels", "heavy": "Cauchy errors", "plane": "labels of a second plane"}
    for kind, errors in words.items():
        for eta, share in etas.items():
            yield _cell(f"linear-{kind}-{eta:g}", f"200 x 8, {share} {errors}", linear, n=200, d=8, eta=eta, kind=kind)
    for eta in etas:
        about = f"200 x 20, the paper's mixture and adversary, η = {eta:g}"
        yield _cell(f"linear-leverage-{eta:g}", about, leverage, n=200, d=20, eta=eta)
    yield _cell("linear-clean", "200 x 8, nothing wrong", plain, n=200, d=8, eta=0.0)
    yield _cell("linear-tiny", "12 x 3, 20 % uniform labels", plain, n=12, d=3, eta=0.2)
    yield _cell("linear-large", "100,000 x 10, 30 % uniform labels", plain, 2, n=100_000, d=10, eta=0.3)
    for eta, share in etas.items():
        yield _cell(f"relu-{eta:g}", f"200 x 6, {share} uniform labels", relu, n=200, d=6, eta=eta)
    large = {"n": 200, "d": 10}
    yield _cell("noisy-clean-small", "25 x 3, Gaussian noise, nothing wrong", noisy, n=25, d=3, eta=0.0)
    yield _cell("noisy-clean", "200 x 10, Gaussian noise, nothing wrong", noisy, **large, eta=0.0)
    yield _cell("noisy-vertical", "200 x 10, 40 % of labels 20 to 100 sigma off", noisy, **large, eta=0.4)
    about = "200 x 10, 40 % of rows in a cluster 10 away, 30 sigma off"
    yield _cell("noisy-leverage", about, noisy, **large, eta=0.4, kind="leverage")
    yield _cell("noisy-plane", "200 x 10, 40 % of a second plane", noisy, **large, eta=0.4, kind="plane")
    about = "400 rows, qty * price * (1 - discount) + freight, 25 % wrong"
    yield _cell("rule-product", about, ledger, draw=_product, n=400, eta=0.25)
    yield _cell("rule-product-40", "the same product, 40 % wrong", ledger, draw=_product, n=400, eta=0.4)
    yield _cell("rule-product-tiny", "the same product, 20 rows, 10 % wrong", ledger, draw=_product, n=20, eta=0.1)
    about = "400 rows, hours * rate[service] + fee, 25 % wrong"
    yield _cell("rule-rates", about, ledger, draw=_rates, n=400, eta=0.25)
    about = "400 rows, a tariff with a dearer tier, 25 % wrong"
    yield _cell("rule-tiers", about, ledger, draw=_tiers, n=400, eta=0.25)
    smooth: dict[str, Any] = {"n": 400, "places": 4, "functions": ("exp", "log", "sin", "sqrt")}
    for name, curve, draw in (
        ("sine", "a sin(b t) + c x", _sine),
        ("growth", "a exp(b t) + c x", _growth),
        ("saturation", "v s / (k + s)", _saturation),
    ):
        yield _cell(f"rule-{name}", f"400 rows, {curve}, nothing wrong", ledger, draw=draw, eta=0.0, **smooth)
    about = "400 rows, a exp(b t) + c x, 10 % wrong"
    yield _cell("rule-growth-10", about, ledger, draw=_growth, eta=0.1, **smooth)
    yield _cell("rows-total", "500 rows, a sum in cents, 5 % wrong", ledger, draw=total, n=500, eta=0.05)
    yield _cell("rows-total-30", "500 rows, a sum in cents, 30 % wrong", ledger, draw=total, n=500, eta=0.3)
    yield _cell("rows-product", "500 rows, a product in cents, 10 % wrong", ledger, draw=_product, n=500, eta=0.1)
    yield _cell("rows-noisy", "500 x 5, a noisy plane, 10 % 20 to 100 sigma off", noisy, n=500, d=5, eta=0.1)
    about = "500 x 10, Friedman's surface with noise, 10 % 8 to 20 sigma off"
    yield _cell("rows-surface", about, friedman, n=500, eta=0.1)


CELLS = tuple(_cells())
"""All cells, in the order of the grid."""

SMALL = ("linear-uniform-0.3", "rows-total")
"""Cells of ``--small``, one table each."""
