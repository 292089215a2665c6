"""Tables without a rule: noise, codes, dates, surveys, noisy relations, public data, shuffled and exchanged targets.

None has an exact rule that more than chance, or the most frequent value, explains. Some are related to their columns
all the same: sums with noise, prices by category with noise, and targets exchanged with those of similar rows, so that
an approximate relation is all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import planted as p
import rule_families
from rule_families import NO_RULES, RULES

Generator = np.random.Generator
Columns = dict[str, NDArray[Any]]

FEWEST, MOST = 200, 3_000
"""Rows of a table, unless said."""


@dataclass(frozen=True, slots=True, eq=False)
class Ruleless:
    """Columns, one of which is the target."""

    columns: Columns
    target: str


Make = Callable[[Generator], Ruleless]
FAMILIES: dict[str, Make] = {}
"""What draws a table, by name."""


def _family(make: Make) -> Make:
    FAMILIES[make.__name__.replace("_", "-")] = make
    return make


def _rows(rng: Generator, most: int = MOST) -> int:
    return round(float(np.exp(rng.uniform(np.log(FEWEST), np.log(most)))))


def _others(rng: Generator, n: int, low: int = 2, high: int = 7) -> Columns:
    """Return a few columns of all types."""
    return rule_families._distractors(rng, n, int(rng.integers(low, high)))


def _with(rng: Generator, columns: Columns, target: NDArray[Any], name: str = "value") -> Ruleless:
    """Put the columns in some order, the target anywhere among them."""
    every = {**columns, name: target}
    names = list(every)
    return Ruleless({names[j]: every[names[j]] for j in rng.permutation(len(names)).tolist()}, name)


def _of(name: str) -> Make:
    def make(rng: Generator) -> Ruleless:
        ledger = NO_RULES[name](rng, _rows(rng))
        return Ruleless({**ledger.columns, ledger.target: ledger.clean}, ledger.target)

    return make


FAMILIES |= {name: _of(name) for name in NO_RULES}


# Columns that are no amounts.


@_family
def codes(rng: Generator) -> Ruleless:
    """Draw post codes, telephone numbers or article numbers."""
    n = _rows(rng)
    low, high = ((10_000, 99_999), (4_915_000_000, 4_915_999_999), (100, 999))[int(rng.integers(3))]
    return _with(rng, _others(rng, n), rng.integers(low, high, n), "code")


@_family
def ids(rng: Generator) -> Ruleless:
    """Draw numbers that increase with the date, by anything from 1 to 40."""
    n = _rows(rng)
    target = int(rng.integers(100_000)) + np.cumsum(rng.integers(1, 41, n))
    return _with(rng, _others(rng, n) | {"booked": p.iso(np.sort(p.days(rng, n)))}, target, "document")


@_family
def delays(rng: Generator) -> Ruleless:
    """Draw dates that come 1 to 90 days after others."""
    n = _rows(rng)
    ordered = p.days(rng, n)
    return _with(
        rng, _others(rng, n) | {"ordered": p.iso(ordered)}, p.iso(ordered + rng.integers(1, 91, n)), "delivered"
    )


# Amounts that follow nothing.


@_family
def zeros(rng: Generator) -> Ruleless:
    """Draw damages: most are 0, the others are any amount."""
    n = _rows(rng)
    return _with(rng, _others(rng, n), np.where(rng.random(n) < rng.uniform(0.5, 0.9), 0, p.money(rng, 20, 9e3, n)))


@_family
def nearly_constant(rng: Generator) -> Ruleless:
    """Draw one value nearly always, and now and then another."""
    n = _rows(rng)
    usual, share = float(rng.integers(1, 50)), rng.uniform(0.6, 0.97)
    return _with(rng, _others(rng, n), np.where(rng.random(n) < share, usual, p.money(rng, 1, 100, n)))


@_family
def list_prices(rng: Generator) -> Ruleless:
    """Draw prices as shops like them: 4.99, 7.95, 20."""
    n = _rows(rng)
    whole = np.floor(p.money(rng, 1, 300, n))
    return _with(rng, _others(rng, n), whole + rng.choice([0.99, 0.95, 0.49, 0.0], n, p=[0.5, 0.2, 0.2, 0.1]), "price")


@_family
def heavy_tails(rng: Generator) -> Ruleless:
    """Draw Cauchy columns and a Cauchy target."""
    n = _rows(rng)
    columns = {f"x{j}": np.round(rng.standard_cauchy(n), 2) for j in range(int(rng.integers(2, 6)))}
    return _with(rng, columns, np.round(rng.standard_cauchy(n) * 10, 2))


@_family
def few_rows(rng: Generator) -> Ruleless:
    """Draw 15 to 60 rows of small numbers."""
    n = int(rng.integers(15, 61))
    columns: Columns = {f"x{j}": rng.integers(0, 12, n) for j in range(int(rng.integers(2, 8)))}
    return _with(rng, columns, rng.integers(0, 25, n))


@_family
def wide(rng: Generator) -> Ruleless:
    """Draw 20 to 35 columns of all types."""
    n = _rows(rng, 1_000)
    columns: Columns = _others(rng, n, 5, 11)
    for j in range(int(rng.integers(12, 22))):
        columns[f"f{j:02d}"] = rng.integers(0, 100, n) if j % 2 else p.money(rng, 1, 900, n)
    return _with(rng, columns, p.money(rng, 10, 3_000, n))


# Relations that are not exact.


@_family
def classes(rng: Generator) -> Ruleless:
    """Draw yes or no, more often yes for some: who has bought."""
    n = _rows(rng)
    age, income = rng.integers(18, 80, n), p.money(rng, 900, 9_000, n, 0)
    logit = (age - 45) / 15 + np.log(income / 3_000) + rng.normal(0, 1, n)
    return _with(rng, _others(rng, n) | {"years": age, "income": income}, (rng.logistic(size=n) < logit) * 1, "bought")


@_family
def series(rng: Generator) -> Ruleless:
    """Draw daily series with a trend, a season and noise that are related to each other."""
    n = _rows(rng, 1_500)
    day = np.arange(n)
    season = 10 * np.sin(2 * np.pi * day / 365.25)
    columns: Columns = {"date": p.iso(19_000 + day)}
    for name in ("north", "south", "total", "other"):
        noise = np.convolve(rng.normal(0, 2, n + 9), 0.7 ** np.arange(10), mode="valid")
        columns[name] = np.round(60 + season * rng.uniform(0.5, 2) + rng.uniform(0, 0.05) * day + noise, 1)
    return Ruleless(columns, "total")


@_family
def noisy_sums(rng: Generator) -> Ruleless:
    """Draw a sum of columns and noise of 3 to 300 units of the last place, and more than rounded columns explain."""
    n, d, places, digits = _rows(rng), int(rng.integers(1, 6)), int(rng.integers(0, 3)), int(rng.integers(0, 3))
    X, w = np.round(rng.uniform(0, 100, (n, d)), digits), rng.integers(1, 40, d) / 4
    units = float(np.exp(rng.uniform(np.log(3), np.log(300))))
    size = units * max(10.0**-places, w.sum() / 2 * 10.0**-digits)
    noise = (rng.standard_normal, lambda k: rng.standard_t(3, k), lambda k: rng.laplace(size=k))[int(rng.integers(3))]
    target = np.round(X @ w + size * noise(n), places)
    return _with(rng, {f"x{j}": X[:, j] for j in range(d)} | _others(rng, n, 0, 4), target)


@_family
def noisy_levels(rng: Generator) -> Ruleless:
    """Draw a price by category and quantity, with noise of 3 to 30 units of the last place."""
    n = _rows(rng)
    prices = {name: float(rng.integers(8, 90)) for name in ("basic", "extra", "plus", "top")[: int(rng.integers(2, 5))]}
    name, price = p.pick(rng, prices, n)
    quantity = rng.integers(1, 30, n)
    noise = rng.normal(0, float(np.exp(rng.uniform(np.log(3), np.log(30)))), n)
    return _with(rng, _others(rng, n) | {"plan": name, "quantity": quantity}, np.rint(price * quantity + noise))


@_family
def exchanged(rng: Generator) -> Ruleless:
    """Draw a table with a rule, whose targets are exchanged among rows of about the same target."""
    name = ("product", "product-vat", "rate-by-service-fees", "power-law", "linear")[int(rng.integers(5))]
    ledger = RULES[name](rng, _rows(rng))
    target = exchange(rng, ledger.units) / 10**ledger.places
    return Ruleless({**ledger.columns, ledger.target: target}, ledger.target)


def exchange(rng: Generator, values: NDArray[Any]) -> NDArray[Any]:
    """Return values that have changed places with those of about the same rank; fewer than 5 % are where they were."""
    window, ranks = 8, np.argsort(np.argsort(values, kind="stable"), kind="stable")
    while True:
        target = np.empty_like(values)
        target[np.argsort(ranks + window * rng.uniform(-1, 1, len(values)), kind="stable")] = np.sort(values)
        if (target == values).mean() < 0.05 or window > len(values):
            return target
        window *= 2


@_family
def shuffled(rng: Generator) -> Ruleless:
    """Draw a table with a rule, whose targets are shuffled."""
    names = [name for name in RULES if name not in ("due-date", "cap", "cap-sum", "free-above")]
    ledger = RULES[names[int(rng.integers(len(names)))]](rng, _rows(rng))
    return Ruleless({**ledger.columns, ledger.target: rng.permutation(ledger.clean)}, ledger.target)


# Public data.

PUBLIC: Mapping[str, tuple[str, ...]] = {
    "sklearn iris": ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)"),
    "sklearn diabetes": ("target", "age", "bp", "bmi"),
    "sklearn wine": ("alcohol", "proline", "magnesium", "hue", "ash"),
    "sklearn breast_cancer": ("mean texture", "mean symmetry", "worst texture"),
    "sklearn linnerud": ("Weight", "Situps"),
    "statsmodels anes96": ("age", "income", "popul"),
    "statsmodels cancer": ("cancer", "population"),
    "statsmodels ccard": ("AVGEXP", "AGE"),
    "statsmodels committee": ("BILLS104", "STAFF"),
    "statsmodels copper": ("COPPERPRICE", "WORLDCONSUMPTION"),
    "statsmodels danish_data": ("lrm", "lry", "ibo"),
    "statsmodels elnino": ("JAN", "JUN", "OCT"),
    "statsmodels engel": ("foodexp", "income"),
    "statsmodels fair": ("age", "educ", "yrs_married"),
    "statsmodels grunfeld": ("invest", "value", "capital"),
    "statsmodels heart": ("survival", "age"),
    "statsmodels interest_inflation": ("Dp", "R"),
    "statsmodels longley": ("TOTEMP", "ARMED", "UNEMP"),
    "statsmodels macrodata": ("realgdp", "realcons", "m1", "unemp"),
    "statsmodels modechoice": ("invt", "gc"),
    "statsmodels nile": ("volume",),
    "statsmodels scotland": ("YES", "MOR", "ACT"),
    "statsmodels spector": ("GPA", "TUCE"),
    "statsmodels stackloss": ("STACKLOSS", "ACIDCONC"),
    "statsmodels star98": ("LOWINC", "PERHISP", "AVSALK"),
    "statsmodels statecrime": ("violent", "murder", "poverty"),
    "statsmodels strikes": ("duration",),
    "statsmodels sunspots": ("SUNACTIVITY",),
}
"""Data sets that come with scikit-learn and statsmodels, and columns of them that follow no known identity."""

DERIVED = (
    *("INCOMESQ", "logpopul", "s4", "realint", "COUTAX_FEMALEUNEMP", "PERMINTE_AVYRSEXP", "PERMINTE_AVSAL"),
    *("AVYRSEXP_AVSAL", "PERSPEN_PTRATIO", "PERSPEN_PCTAF", "PTRATIO_PCTAF", "PERMINTE_AVYRSEXP_AVSAL"),
    "PERSPEN_PTRATIO_PCTAF",
)
"""Columns that do, such as products of others; they are left out."""


@cache
def public_columns(name: str) -> Mapping[str, NDArray[Any]]:
    """Return a public data set, without rows that lack a value."""
    from importlib import import_module

    library, item = name.split()
    if library == "sklearn":
        options = {"scaled": False} if item == "diabetes" else {}
        frame = getattr(import_module("sklearn.datasets"), f"load_{item}")(as_frame=True, **options).frame
    else:
        frame = import_module(f"statsmodels.datasets.{item}").load_pandas().data
    frame = frame.drop(columns=[column for column in frame if column in DERIVED]).dropna()
    return {
        str(column): frame[column].to_numpy() if frame[column].dtype.kind in "if" else frame[column].to_numpy(dtype=str)
        for column in frame
    }


def _public(rng: Generator) -> tuple[Columns, str]:
    """Return some of the rows of a public data set, at most 2,000, and a target."""
    name = list(PUBLIC)[int(rng.integers(len(PUBLIC)))]
    targets, columns = PUBLIC[name], public_columns(name)
    n = len(next(iter(columns.values())))
    rows = np.sort(rng.permutation(n)[: min(2_000, int(0.9 * n))])
    return {column: values[rows] for column, values in columns.items()}, targets[int(rng.integers(len(targets)))]


@_family
def public(rng: Generator) -> Ruleless:
    """Draw a public data set as it is."""
    return Ruleless(*_public(rng))


@_family
def public_shuffled(rng: Generator) -> Ruleless:
    """Draw a public data set whose target is shuffled."""
    columns, target = _public(rng)
    return Ruleless(columns | {target: rng.permutation(columns[target])}, target)


@_family
def public_crossed(rng: Generator) -> Ruleless:
    """Draw the columns of a public data set, and the target of another."""
    (columns, own), (others, target) = _public(rng), _public(rng)
    n = len(columns[own])
    return _with(rng, columns, rng.choice(others[target], n), "of another set")
