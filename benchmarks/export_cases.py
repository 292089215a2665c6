"""Rules of all kinds, planted in tables with wrong values, gaps and levels that are unknown or odd, to be exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart import audit_table
from massart.audit import SavedModel, apply_model
from massart.tables import table_of

ROW = "row number"
"""The column that names the rows."""

HOSTILE = (
    'a "quoted" name',
    "semi;colon -- DROP TABLE x",
    "{{ ref('x') }} {% raw %} {0} {batch}",
    "naïve Größe ☃",
    "it's :b \\",
)
"""Names that no target may take for a command."""

WRONG, GAPS = 0.2, 0.03
"""Shares of rows whose target is wrong, and of those after the first half that lack a value."""

SPELLINGS = (str.upper, str.title, " {}\t".format, lambda text: text.replace(" ", "  \u00a0"))
"""How else a level may be written."""

Columns = dict[str, NDArray[Any]]
Draw = Callable[[np.random.Generator, int], "Planted"]


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """Columns, the value of a rule in every row, its terms in massart's words, and how it is rounded and fitted."""

    columns: Columns
    value: NDArray[np.float64]
    terms: str
    places: int | None = 2
    options: Mapping[str, Any] = field(default_factory=dict)
    target: str = "total"
    is_date: bool = False
    gaps: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A saved model, a table, and the rows of it that massart calls wrong, by their numbers."""

    name: str
    model: SavedModel
    table: pa.Table
    wrong: frozenset[int]
    judged: int

    @property
    def key(self) -> str:
        """The name as a word."""
        return "case_" + self.name.replace("-", "_")


def case(name: str, seed: int, n_rows: int) -> Case:
    """Draw a table, fit the first half of its rows, or all of them if they depend on each other, and judge all."""
    rng = np.random.default_rng([seed, *name.encode()])
    planted = {**CASES, **OF_SQL, **OF_SHEETS}[name](rng, n_rows)
    values = spoiled(rng, planted)
    gaps = (np.arange(n_rows) >= n_rows // 2) & planted.gaps
    columns = {ROW: pa.array(np.arange(n_rows))}
    for column, given in planted.columns.items():
        missing = gaps & (rng.random(n_rows) < GAPS)
        if _is_level(given):
            given = np.where(gaps & (rng.random(n_rows) < GAPS), "unheard of", given)
            for spelling in SPELLINGS:
                given = np.where(gaps & (rng.random(n_rows) < GAPS), np.array([*map(spelling, given)]), given)
        columns[column] = pa.array(given, mask=missing)
    if planted.is_date:
        columns[planted.target] = pa.array(values.astype("datetime64[D]"))
    else:
        columns[planted.target] = pa.array(values, mask=gaps & (rng.random(n_rows) < GAPS))
    table = pa.table(columns)
    options = {"terms": planted.terms, "exclude": [ROW], **planted.options}
    whole = table if not planted.gaps else table.slice(0, n_rows // 2)
    model = audit_table(whole, planted.target, **options).model()
    found = apply_model(model, table_of(table)).columns
    # What is exported compares a row with the one before as it was given; massart with that as it should be.
    wrong = np.ma.filled(found["wrong"], False) | (np.ma.filled(found["kind"], "") == "the row before is wrong")
    return Case(name, model, table, frozenset(np.flatnonzero(wrong).tolist()), int(np.ma.count(found["wrong"])))


def _is_level(values: NDArray[Any]) -> bool:
    return values.dtype.kind == "U" and not set(values) <= {"yes", "no"}


def spoiled(rng: np.random.Generator, planted: Planted) -> NDArray[np.float64]:
    """Round the values, and make some of them wrong: by units of the last place, shifted, scaled, another row's."""
    n, places = len(planted.value), planted.places
    unit = 10.0 ** -(places if places is not None else 6)
    right = planted.value if places is None else np.round(planted.value / unit) * unit
    right = right if places is None or places < 0 else np.round(right, places)
    ways = (
        right + unit * rng.choice([-1, 1], n),
        right + unit * rng.integers(2, 5, n),
        right + unit * np.round(rng.normal(0, 100 / min(unit, 1.0), n)),
        np.where(rng.random(n) < 0.5, 10 * right, -right),
        rng.permutation(right),
    )
    chosen = np.choose(rng.integers(0, len(ways), n), ways)
    chosen = np.round(chosen, places) if places is not None and places >= 0 else chosen
    return np.where(rng.random(n) < WRONG, chosen, right)


def _money(rng: np.random.Generator, low: float, high: float, n: int) -> NDArray[np.float64]:
    return np.round(rng.uniform(low, high, n), 2)


def _pick(rng: np.random.Generator, rates: Mapping[str, float], n: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    names = rng.choice(list(rates), n)
    return names, np.array([rates[name] for name in names])


def _sums(rng: np.random.Generator, n: int) -> Planted:
    hours, visits = rng.integers(0, 160, n) / 4, rng.integers(0, 30, n)
    return Planted({"hours": hours, "visits": visits}, 3.5 * hours - 12 * visits + 40.25, "hours, visits")


def _thirds(rng: np.random.Generator, n: int) -> Planted:
    a, b = rng.normal(0, 50, n), rng.normal(0, 50, n)
    return Planted({"a": a, "b": b}, a / 3 + 0.7 * b, "a, b", None)


def _product(rng: np.random.Generator, n: int) -> Planted:
    qty, price = rng.integers(1, 40, n), _money(rng, 1, 90, n)
    return Planted({"qty": qty, "price": price}, qty * price, "qty*price")


def _vat(rng: np.random.Generator, n: int) -> Planted:
    qty, price = rng.integers(1, 40, n), _money(rng, 1, 90, n)
    return Planted({"qty": qty, "price": price}, 1.19 * qty * price + 4.5, "qty*price")


def _discount(rng: np.random.Generator, n: int) -> Planted:
    qty, price, less = rng.integers(1, 40, n), _money(rng, 1, 90, n), rng.integers(0, 9, n) / 20
    columns = {"qty": qty, "price": price, "less": less}
    return Planted(columns, qty * price * (1 - less), "qty*price, qty*price*less")


def _rates(rng: np.random.Generator, n: int) -> Planted:
    service, rate = _pick(rng, {"wash": 20.0, "cut": 48.5, "dye": 80.1, "style": 0.35}, n)
    hours = rng.integers(0, 160, n) / 4
    return Planted({"service": service, "hours": hours}, rate * hours, "hours:service")


def _fees(rng: np.random.Generator, n: int) -> Planted:
    service, rate = _pick(rng, {"wash": 20.0, "cut": 48.0, "dye": 80.0}, n)
    region, fee = _pick(rng, {"north": 5.0, "south": 7.5, "far east": 11.0}, n)
    hours = rng.integers(0, 160, n) / 4
    columns = {"service": service, "region": region, "hours": hours}
    return Planted(columns, rate * hours + fee, "region, hours:service")


def _crossed(rng: np.random.Generator, n: int) -> Planted:
    service, rate = _pick(rng, {"wash": 20.0, "cut": 48.0, "dye": 80.0}, n)
    region, share = _pick(rng, {"north": 1.0, "south": 1.5}, n)
    hours = rng.integers(1, 160, n) / 4
    columns = {"service": service, "region": region, "hours": hours}
    return Planted(columns, rate * share * hours, "hours:service:region")


def _codes(rng: np.random.Generator, n: int) -> Planted:
    plan, hours = rng.choice([3, 7, 12], n), rng.integers(1, 160, n) / 4
    return Planted({"plan": plan, "hours": hours}, hours * (2.5 * plan + 1), "hours:C(plan)")


def _tiers(rng: np.random.Generator, n: int) -> Planted:
    kwh = rng.integers(0, 900, n)
    value = 0.21 * kwh + 0.08 * np.maximum(0, kwh - 200) - 0.03 * np.maximum(0, kwh - 500)
    return Planted({"kwh": kwh}, value, "kwh, max(0, kwh - 200), max(0, kwh - 500)")


def _brackets(rng: np.random.Generator, n: int) -> Planted:
    kg = rng.integers(1, 3000, n) / 100
    value = np.select([kg <= 5, kg <= 10], [4.9, 7.49], 2.5 + 0.9 * kg)
    return Planted({"kg": kg}, value, "(kg <= 5), (5 < kg <= 10), (kg > 10), kg*(kg > 10)", 2, {"intercept": False})


def _since(rng: np.random.Generator, n: int) -> Planted:
    day, hours = _days(rng, n), rng.integers(1, 160, n) / 4
    value = hours * np.where(day >= np.datetime64("2024-05-01"), 31.5, 28.0)
    return Planted({"day": day, "hours": hours}, value, "hours, hours*(day >= 2024-05-01)")


def _bmi(rng: np.random.Generator, n: int) -> Planted:
    weight, height = rng.integers(400, 1300, n) / 10, rng.integers(140, 205, n) / 100
    return Planted({"weight": weight, "height": height}, weight / height**2, "weight / height^2", 1)


def _percentage(rng: np.random.Generator, n: int) -> Planted:
    whole = rng.integers(1, 400, n)
    part = rng.integers(0, whole + 1)
    half = np.arange(n) >= n // 2
    whole = np.where(half & (rng.random(n) < 0.02), 0, whole)  # such rows have no value
    return Planted({"part": part, "whole": whole}, 100 * part / np.maximum(whole, 1), "part / whole")


def _powers(rng: np.random.Generator, n: int) -> Planted:
    wide, long = rng.uniform(1, 20, n), rng.uniform(1, 20, n)
    return Planted({"wide": wide, "long": long}, 923 * wide**0.5 * long**-1.5, "wide^0.5 * long^(-1.5)", 3)


def _functions(rng: np.random.Generator, n: int) -> Planted:
    x, z = rng.uniform(1, 9, n), rng.uniform(1, 9, n)
    value = 2 * x**3 + 5 * np.log(z) - 1.5 * np.sqrt(x * z) + 0.25 / z
    return Planted({"x": x, "z": z}, value, "x^3, log(z), sqrt(x*z), z^(-1)", 4)


def _larger(rng: np.random.Generator, n: int) -> Planted:
    a, b = _money(rng, 0, 90, n), _money(rng, 0, 90, n)
    return Planted({"a": a, "b": b}, 2 * np.maximum(a, b) + 0.5 * np.abs(a - b), "max(a, b), abs(a - b)")


def _cap(rng: np.random.Generator, n: int) -> Planted:
    fee = _money(rng, 0, 90, n)
    return Planted({"fee": fee}, 1.1 * np.minimum(fee, 50), "min(fee, 50)")


def _clipped(rng: np.random.Generator, n: int) -> Planted:
    a, b = rng.integers(-90, 90, n), rng.integers(-90, 90, n)
    return Planted({"a": a, "b": b}, np.maximum(0, 1.5 * a + 2.25 * b), "columns", 2, {"model": "relu"})


def _limited(rng: np.random.Generator, n: int) -> Planted:
    a, b = rng.integers(-90, 90, n), rng.integers(-90, 90, n)
    return Planted({"a": a, "b": b}, np.minimum(1.5 * a + 2.25 * b + 20, 60), "auto")


def _thousands(rng: np.random.Generator, n: int) -> Planted:
    a, b = rng.integers(1, 9_000_000, n), rng.integers(1, 9_000_000, n)
    return Planted({"a": a, "b": b}, 1.25 * a + 0.4 * b, "a, b", -3)


def _rounded_inputs(rng: np.random.Generator, n: int) -> Planted:
    a, b = rng.uniform(0, 900, n), rng.uniform(0, 900, n)
    columns = {"a": np.round(a, 1), "b": np.round(b, 1)}
    return Planted(columns, 3 * a + 7 * b, "a, b", 1)


def _singles(rng: np.random.Generator, n: int) -> Planted:
    a, b = rng.normal(0, 50, n).astype(np.float32), rng.normal(0, 50, n).astype(np.float32)
    return Planted({"a": a, "b": b}, (a * 0.75 + b * 3).astype(np.float64), "a, b", None)


def _given(rng: np.random.Generator, n: int) -> Planted:
    a, b = rng.integers(1, 90, n), rng.integers(1, 90, n)
    value = 3 * a + 7 * b + rng.uniform(-0.4, 0.4, n)
    return Planted({"a": a, "b": b}, value, "a, b", 3, {"tolerance": 0.5})


def _large(rng: np.random.Generator, n: int) -> Planted:
    cents = rng.integers(1, 10**13, (2, n))
    value = (cents[0] + cents[1]) / 100
    return Planted({"a": cents[0] / 100, "b": cents[1] / 100}, value, "a, b")


def _days(rng: np.random.Generator, n: int) -> NDArray[Any]:
    return np.datetime64("2023-11-20") + rng.integers(0, 500, n).astype("timedelta64[D]")


def _between(rng: np.random.Generator, n: int) -> Planted:
    start = _days(rng, n)
    end = start + rng.integers(0, 90, n).astype("timedelta64[D]")
    value = 12.5 * (end - start).astype(float) + 30
    return Planted({"start": start, "end": end}, value, "end - start")


def _due(rng: np.random.Generator, n: int) -> Planted:
    day, term = _days(rng, n), rng.integers(5, 60, n)
    value = day.astype("datetime64[D]").astype(float) + term + 2
    return Planted({"day": day, "term": term}, value, "day, term", 0, target="due", is_date=True)


def _calendar(rng: np.random.Generator, n: int) -> Planted:
    day, hours = _days(rng, n), rng.integers(1, 160, n) / 4
    months = day.astype("datetime64[M]").astype(int) % 12 + 1
    weekdays = (day.astype(int) + 3) % 7 + 1
    value = hours * np.where(weekdays >= 6, 30.0, 20.0) + 2.5 * months
    return Planted({"day": day, "hours": hours}, value, "hours:C(weekday(day)), month(day)")


def _flags(rng: np.random.Generator, n: int) -> Planted:
    member, hours = rng.random(n) < 0.5, rng.integers(1, 160, n) / 4
    express = np.where(rng.random(n) < 0.5, "yes", "no")
    value = 20 * hours - 5 * member + 9.5 * (express == "yes")
    return Planted({"member": member, "express": express, "hours": hours}, value, "hours, member, express")


def _hostile(rng: np.random.Generator, n: int) -> Planted:
    level, rate = _pick(rng, {name: 2.0 + k for k, name in enumerate(HOSTILE)}, n)
    first, second, category, other, target = HOSTILE
    a, b = rng.integers(1, 90, n), _money(rng, 0, 90, n)
    quoted = [f"`{name}`" for name in HOSTILE]
    columns = {first: a, second: b, category: level, other: rng.integers(0, 2, n)}
    terms = f"{quoted[0]}*{quoted[1]}, {quoted[0]}:{quoted[2]}, {quoted[3]}"
    return Planted(columns, 1.5 * a * b + rate * a + 3 * columns[other], terms, target=target)


def _balance(rng: np.random.Generator, n: int) -> Planted:
    account, paid = rng.choice(["A-1", "B-2", "C-3"], n), _money(rng, -90, 90, n)
    day = np.datetime64("2023-01-01") + np.arange(n).astype("timedelta64[D]")
    value = np.zeros(n)
    for name in np.unique(account):
        value[account == name] = np.cumsum(paid[account == name])
    mixed = rng.permutation(n)
    columns = {"account": account[mixed], "day": day[mixed], "paid": paid[mixed]}
    return Planted(columns, value[mixed], "lag(total, by=account, order=day), paid", gaps=False)


def _running(rng: np.random.Generator, n: int) -> Planted:
    paid = _money(rng, -90, 90, n)
    return Planted({"paid": paid}, np.cumsum(paid), "lag(total), paid", gaps=False)


OF_SQL: Mapping[str, Draw] = {"balance-by-account": _balance}
"""Rules that look at the row before, in the order of a column."""

OF_SHEETS: Mapping[str, Draw] = {"balance": _running}
"""Those in the order of a sheet."""

CASES: Mapping[str, Draw] = {
    "sum": _sums,
    "thirds": _thirds,
    "product": _product,
    "vat": _vat,
    "discount": _discount,
    "rates": _rates,
    "rates-and-fees": _fees,
    "crossed-rates": _crossed,
    "codes": _codes,
    "tiers": _tiers,
    "brackets": _brackets,
    "since": _since,
    "bmi": _bmi,
    "percentage": _percentage,
    "powers": _powers,
    "functions": _functions,
    "larger": _larger,
    "cap": _cap,
    "clipped": _clipped,
    "limited": _limited,
    "thousands": _thousands,
    "rounded-inputs": _rounded_inputs,
    "float32": _singles,
    "tolerance": _given,
    "large": _large,
    "days-between": _between,
    "due-date": _due,
    "calendar": _calendar,
    "flags": _flags,
    "hostile": _hostile,
}
"""The rules by name."""


def cases(seed: int, n_rows: int, names: Sequence[str] = tuple(CASES)) -> list[Case]:
    """Return the cases of these names."""
    return [case(name, seed, n_rows) for name in names]
