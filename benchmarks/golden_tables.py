"""Sixty small tables whose whole output is kept: what a user sees of them must not change unnoticed.

Each `Case` is a file and the options of one ``massart fit``. The first half are plain tables, one for each kind of
column, error, option and format; the other half are the families of :mod:`rule_families`, 10 % of their values wrong.
:mod:`golden` writes what massart says of them, and ``tests/test_golden.py`` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rule_families

Columns = Mapping[str, NDArray[Any]]
Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class Case:
    """A table in a file, and the options with which it is fitted.

    Attributes
    ----------
    name : str
    columns : mapping of str to array
    options : tuple of str
        Of ``massart fit``.
    text : str or None
        The file, word for word, where it is not simply the columns.
    streams : bool
        Whether the file is fitted in blocks, too, and by a cluster.
    """

    name: str
    columns: Columns
    options: tuple[str, ...]
    text: str | None = None
    streams: bool = False

    def write(self, folder: Path) -> Path:
        """Write the CSV file, and return its path."""
        path = folder / f"{self.name}.csv"
        path.write_text(csv_text(self.columns) if self.text is None else self.text, encoding="utf-8")
        return path


def csv_text(columns: Columns, delimiter: str = ",", mark: str = ".") -> str:
    """Return columns as a CSV file."""
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    lines = [delimiter.join(columns), *(delimiter.join(_cell(value, mark) for value in row) for row in rows)]
    return "\n".join(lines) + "\n"


def _cell(value: object, mark: str) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.10g}".replace(".", mark)
    return str(value)


_MADE: list[Callable[[Generator], Case]] = []


def _made(make: Callable[[Generator], Case]) -> Callable[[Generator], Case]:
    _MADE.append(make)
    return make


def _order(rng: Generator, n: int = 120) -> dict[str, NDArray[Any]]:
    """Return the columns of an order: its number, a quantity, a price and a place."""
    return {
        "order": np.array([f"A-{k:03d}" for k in range(n)]),
        "qty": rng.integers(1, 40, n),
        "price": rng.integers(100, 9000, n) / 100,
        "place": rng.choice(["Bern", "Oslo", "Rome"], n),
    }


def _total(columns: Columns) -> NDArray[np.float64]:
    return np.round(2.5 * columns["qty"] + 1.2 * columns["price"] + 4 * (columns["place"] == "Oslo") + 7, 2)


def _spoilt(rng: Generator, labels: NDArray[Any], share: float) -> NDArray[Any]:
    """Return labels some of which are ten times too large, or anything."""
    found = labels.astype(float)
    wrong = np.flatnonzero(rng.random(len(found)) < share)
    found[wrong[::2]] *= 10
    found[wrong[1::2]] = np.round(rng.uniform(found.min(), found.max(), len(wrong[1::2])), 2)
    return found


def _orders(name: str, rng: Generator, *options: str, n: int = 120, share: float = 0.15, **how: Any) -> Case:
    columns = _order(rng, n)
    columns["total"] = _spoilt(rng, _total(columns), share)
    return Case(name, columns, ("--target", "total", "--id", "order", "--terms", "columns", *options), **how)


@_made
def _plain(rng: Generator) -> Case:
    return _orders("plain", rng, "--group", "place", streams=True)


@_made
def _many_rows(rng: Generator) -> Case:
    return _orders("many-rows", rng, n=600, share=0.3, streams=True)


@_made
def _nothing_wrong(rng: Generator) -> Case:
    return _orders("nothing-wrong", rng, share=0.0, streams=True)


@_made
def _limits(rng: Generator) -> Case:
    return _orders("too-many-wrong", rng, "--max-wrong", "5%", "--require", "confirmed")


@_made
def _forced(rng: Generator) -> Case:
    return _orders("forced", rng, "--force")


@_made
def _missing(rng: Generator) -> Case:
    columns = _order(rng)
    labels = _spoilt(rng, _total(columns), 0.1)
    columns["price"] = np.where(rng.random(120) < 0.1, np.nan, columns["price"])
    labels[rng.integers(0, 120, 5)] = np.nan
    options = ("--target", "total", "--id", "order", "--terms", "columns", "--fill", "--max-unjudged", "20%")
    return Case("missing-values", {**columns, "total": labels}, options, streams=True)


@_made
def _dates(rng: Generator) -> Case:
    start = np.datetime64("2025-01-01") + rng.integers(0, 300, 120)
    days = rng.integers(1, 90, 120)
    due = np.where(rng.random(120) < 0.1, start + 200, start + days + 3)
    columns = {"start": start.astype(str), "days": days, "due": due.astype(str)}
    return Case("dates", columns, ("--target", "due", "--terms", "columns"))


@_made
def _category_of_numbers(rng: Generator) -> Case:
    code, hours = rng.choice([101, 205, 307], 200), rng.integers(1, 80, 200) / 4
    fee = np.select([code == 101, code == 205], [12.0, 48.5], 90.0) + 30 * hours
    columns = {"code": code, "hours": hours, "fee": _spoilt(rng, np.round(fee, 2), 0.2)}
    return Case("codes", columns, ("--target", "fee", "--category", "code", "--terms", "columns"), streams=True)


@_made
def _terms(rng: Generator) -> Case:
    columns = _order(rng, 300)
    labels = np.round(columns["qty"] * columns["price"] + 3 * np.maximum(0, columns["qty"] - 20) + 5, 2)
    options = ("--target", "total", "--id", "order", "--terms", "qty*price, max(0, qty-20)")
    return Case("terms", {**columns, "total": _spoilt(rng, labels, 0.2)}, options, streams=True)


@_made
def _formula(rng: Generator) -> Case:
    columns = _order(rng, 300)
    rate = np.select([columns["place"] == "Bern", columns["place"] == "Oslo"], [1.1, 1.25], 1.3)
    labels = np.round(rate * columns["price"] + 5, 2)
    return Case(
        "formula",
        {**columns, "total": _spoilt(rng, labels, 0.2)},
        ("--formula", "total ~ price:C(place)"),
        streams=True,
    )


@_made
def _lag(rng: Generator) -> Case:
    into, out = rng.integers(0, 50, 200), rng.integers(0, 40, 200)
    stock = 500 + np.cumsum(into - out)
    wrong = rng.random(200) < 0.05
    columns = {"goods_in": into, "goods_out": out, "stock": np.where(wrong, stock + 27, stock)}
    return Case("row-before", columns, ("--target", "stock", "--terms", "lag(stock), goods_in, goods_out"))


@_made
def _running(rng: Generator) -> Case:
    paid = rng.integers(-500, 900, 150) / 4
    balance = 1000 + np.cumsum(paid)
    columns = {"paid": paid, "balance": np.where(rng.random(150) < 0.08, balance - 90, balance)}
    return Case("running-sum", columns, ("--target", "balance", "--terms", "cumsum(paid)"))


@_made
def _relu(rng: Generator) -> Case:
    a, b = rng.normal(0, 10, 400).round(1), rng.normal(0, 10, 400).round(1)
    y = np.maximum(0, np.round(3 * a - 2 * b, 2))
    return Case("relu", {"a": a, "b": b, "y": _spoilt(rng, y, 0.1)}, ("--target", "y", "--model", "relu"))


@_made
def _noisy(rng: Generator) -> Case:
    a, b = rng.normal(0, 10, 300), rng.normal(0, 10, 300)
    y = 3 * a - 2 * b + rng.normal(0, 1, 300)
    y[:40] += 60
    return Case("noisy", {"a": a, "b": b, "y": y}, ("--target", "y", "--terms", "columns"))


@_made
def _asked_to_be_noisy(rng: Generator) -> Case:
    a = rng.normal(0, 10, 200)
    y = np.round(2 * a + rng.normal(0, 0.5, 200), 1)
    return Case("inliers-noisy", {"a": a, "y": y}, ("--target", "y", "--inliers", "noisy", "--terms", "columns"))


@_made
def _tolerance(rng: Generator) -> Case:
    a = rng.integers(1, 900, 200) / 10
    y = np.round(1.5 * a + rng.uniform(-0.3, 0.3, 200), 2)
    y[::9] += 20
    return Case("tolerance", {"a": a, "y": y}, ("--target", "y", "--tolerance", "0.31", "--terms", "columns"))


@_made
def _no_rule(rng: Generator) -> Case:
    columns = {"a": rng.integers(1, 100, 150), "b": rng.normal(0, 5, 150).round(2), "y": rng.integers(1, 500, 150)}
    return Case("no-rule", columns, ("--target", "y", "--terms", "columns"), streams=True)


@_made
def _no_rule_searched(rng: Generator) -> Case:
    columns = {"a": rng.integers(1, 100, 150), "b": rng.normal(0, 5, 150).round(2), "y": rng.normal(0, 9, 150).round(2)}
    return Case("no-rule-searched", columns, ("--target", "y", "--budget", "20"))


@_made
def _most_frequent_value(rng: Generator) -> Case:
    columns = {"a": rng.integers(1, 100, 150), "y": np.where(rng.random(150) < 0.8, 40, rng.integers(1, 99, 150))}
    return Case("one-value", columns, ("--target", "y", "--terms", "columns"))


@_made
def _minority(rng: Generator) -> Case:
    return _orders("minority", rng, n=400, share=0.62)


@_made
def _two_rules(rng: Generator) -> Case:
    columns = _order(rng, 600)
    second = np.round(3.1 * columns["qty"] + 0.4 * columns["price"] + 20, 2)
    labels = np.where(rng.random(600) < 0.3, second, _total(columns))
    return Case("two-rules", {**columns, "total": labels}, ("--target", "total", "--id", "order", "--terms", "columns"))


@_made
def _part(rng: Generator) -> Case:
    columns = _order(rng, 600)
    labels = np.where(
        columns["price"] > 82, np.round(columns["price"] * 3 + rng.integers(0, 99, 600), 2), _total(columns)
    )
    return Case("bad-part", {**columns, "total": labels}, ("--target", "total", "--id", "order", "--terms", "columns"))


@_made
def _few(rng: Generator) -> Case:
    return Case("few-rows", {"a": np.array([1, 2, 3]), "y": np.array([2.0, 4.0, 7.0])}, ("--target", "y"))


@_made
def _rare(rng: Generator) -> Case:
    columns = _order(rng, 300)
    express = np.zeros(300, dtype=int)
    express[[5, 90]] = 1
    labels = _spoilt(rng, _total(columns), 0.1) + 9 * express
    options = ("--target", "total", "--id", "order", "--terms", "columns")
    return Case("rare-column", {**columns, "express": express, "total": labels}, options)


@_made
def _twice(rng: Generator) -> Case:
    a, b = rng.integers(1, 100, 150), rng.integers(1, 100, 150)
    columns = {"a": a, "double": 2 * a, "b": b, "y": _spoilt(rng, 3 * a + b + 1, 0.1)}
    return Case("dependent-columns", columns, ("--target", "y", "--terms", "columns"))


@_made
def _clusters(rng: Generator) -> Case:
    columns = _order(rng, 300)
    clerk = np.arange(300) // 10
    labels = np.where(np.isin(clerk, [3, 11, 20]), _total(columns) * 1.08, _total(columns)).round(2)
    options = (
        "--target",
        "total",
        "--id",
        "order",
        "--terms",
        "columns",
        "--error-unit",
        "clerk",
        "--exclude",
        "clerk",
    )
    return Case("clusters", {**columns, "clerk": clerk, "total": labels}, options)


@_made
def _large_numbers(rng: Generator) -> Case:
    net, tax = rng.integers(10**9, 10**12, 150), rng.integers(1, 10**8, 150)
    gross = np.where(rng.random(150) < 0.2, net, net + 2 * tax)
    return Case("large-numbers", {"net": net, "tax": tax, "gross": gross}, ("--target", "gross", "--terms", "columns"))


@_made
def _small_numbers(rng: Generator) -> Case:
    a = rng.normal(0, 1e-7, 150)
    y = np.where(rng.random(150) < 0.2, rng.normal(0, 1e-3, 150), 2.5e4 * a)
    return Case("small-numbers", {"a": a, "y": y}, ("--target", "y", "--terms", "columns"))


@_made
def _german(rng: Generator) -> Case:
    columns = _order(rng)
    labels = _spoilt(rng, _total(columns), 0.1)
    table = {"Auftrag": columns["order"], "Menge": columns["qty"], "Preis": columns["price"], "Betrag": labels}
    table["Ort"] = columns["place"]
    text = "Umsatz 2025;;;;\n;;;;\n" + csv_text(table, ";", ",") + f"Summe;;;{labels.sum():.2f};\n".replace(".", ",")
    return Case("german", table, ("--target", "Betrag", "--id", "Auftrag", "--terms", "columns"), text)


@_made
def _odd_cells(rng: Generator) -> Case:
    columns = _order(rng)
    labels = _spoilt(rng, _total(columns), 0.1)
    lines = csv_text({**columns, "total": labels}).splitlines()
    lines[7] = lines[7].rsplit(",", 1)[0] + ",n/a"
    lines[9] = lines[9].rsplit(",", 1)[0] + ",see note"
    text = "\n".join(lines) + "\n"
    options = ("--target", "total", "--id", "order", "--terms", "columns", "--number", "total")
    return Case("odd-cells", {**columns, "total": labels}, options, text)


@_made
def _wide(rng: Generator) -> Case:
    columns: dict[str, NDArray[Any]] = {f"c{k}": rng.integers(0, 100, 400) for k in range(30)}
    labels = 2 * columns["c3"] - 7 * columns["c11"] + 5 * columns["c20"] + 40
    return Case("wide", {**columns, "y": _spoilt(rng, labels, 0.15)}, ("--target", "y", "--terms", "columns"))


def cases(seed: int = 27) -> Iterator[Case]:
    """Yield all cases."""
    for place, make in enumerate(_MADE):
        yield make(np.random.default_rng([seed, place]))
    for place, family in enumerate(rule_families.RULES):
        table = rule_families.table(family, 0.1, seed + place, 300)
        name = "rule-" + "".join(c if c.isalnum() else "-" for c in family)
        yield Case(name, table.frame, ("--target", table.ledger.target, "--budget", "20"))
