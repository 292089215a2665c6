"""Rules of all kinds, planted in tables with wrong values, gaps and levels that are unknown or odd, to be exported."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
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


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """Terms in massart's words, the value of the rule in every row, how it is rounded and fitted."""

    terms: str
    value: Callable[[SimpleNamespace], NDArray[np.float64]]  # of the columns by name
    places: int | None = 2
    options: Mapping[str, Any] = field(default_factory=dict)
    columns: str = ""  # that the table has, if not those of the terms
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
    planted = {**CASES, **OF_SQL, **OF_SHEETS}[name]
    drawn = everyday(rng, n_rows)
    words = planted.columns.split() or re.findall(r"`[^`]+`|\w+", planted.terms)
    chosen = {word.strip("`"): drawn[word.strip("`")] for word in words if word.strip("`") in drawn}
    values = spoiled(rng, planted, planted.value(SimpleNamespace(**drawn)))
    gaps = (np.arange(n_rows) >= n_rows // 2) & planted.gaps
    columns = {ROW: pa.array(np.arange(n_rows))}
    for column, given in chosen.items():
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


def spoiled(rng: np.random.Generator, planted: Planted, value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round the values, and make some of them wrong: by units of the last place, shifted, scaled, another row's."""
    n, places = len(value), planted.places
    unit = 10.0 ** -(places if places is not None else 6)
    right = value if places is None else np.round(value / unit) * unit
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


def everyday(rng: np.random.Generator, n: int) -> Columns:
    """Draw columns that people have: numbers with and without halves and signs, texts, dates, flags."""
    first, second, category, other, _ = HOSTILE
    day = np.datetime64("2023-11-20") + rng.integers(0, 500, n).astype("timedelta64[D]")
    part, whole = rng.random(n), rng.integers(1, 400, n)
    half = np.arange(n) >= n // 2
    cents = rng.integers(1, 10**13, (2, n))
    mixed = rng.permutation(n)
    return {
        "hours": rng.integers(0, 160, n) / 4,
        "visits": rng.integers(0, 30, n),
        "minutes": rng.integers(1, 600, n),
        "qty": rng.integers(1, 40, n),
        "price": np.round(rng.uniform(1, 90, n), 2),
        "less": rng.integers(0, 9, n) / 20,
        "percent": rng.integers(1, 60, n) / 4,
        "years": rng.integers(0, 20, n),
        "kwh": rng.integers(0, 900, n),
        "kg": rng.integers(1, 3000, n) / 100,
        "weight": rng.integers(400, 1300, n) / 10,
        "height": rng.integers(140, 205, n) / 100,
        "wide": rng.uniform(1, 20, n),
        "long": rng.uniform(1, 20, n),
        "paid": np.round(rng.uniform(-90, 90, n), 2),
        "due": np.round(rng.uniform(-90, 90, n), 2),
        "up": rng.integers(-90, 90, n),
        "down": rng.integers(-90, 90, n),
        "normal": rng.normal(0, 50, n),
        "other_normal": rng.normal(0, 50, n),
        "single": rng.normal(0, 50, n).astype(np.float32),
        "tenths": np.round(rng.uniform(0, 900, n), 1),
        "other_tenths": np.round(rng.uniform(0, 900, n), 1),
        "million": rng.integers(1, 9_000_000, n),
        "large": cents[0] / 100,
        "other_large": cents[1] / 100,
        "whole": np.where(half & (rng.random(n) < 0.02), 0, whole),  # a quotient has no value in such rows
        "part": np.floor(part * whole),
        "service": rng.choice(["wash", "cut", "dye", "style"], n),
        "region": rng.choice(["north", "south", "far east"], n),
        "plan": rng.choice([3, 7, 12], n),
        "day": day,
        "end": day + rng.integers(0, 90, n).astype("timedelta64[D]"),
        "member": rng.random(n) < 0.5,
        "express": np.where(rng.random(n) < 0.5, "yes", "no"),
        first: rng.integers(1, 90, n),
        second: np.round(rng.uniform(0, 90, n), 2),
        category: rng.choice(HOSTILE, n),
        other: rng.integers(0, 2, n),
        "account": rng.choice(["A-1", "B-2", "C-3"], n),
        "date": (np.datetime64("2023-01-01") + np.arange(n).astype("timedelta64[D]"))[mixed],
    }


def by(levels: NDArray[Any], **rates: float) -> NDArray[np.float64]:
    """Return the rate of each row, given those of levels."""
    return np.array([rates[level.replace(" ", "_")] for level in levels])


def _weekday(day: NDArray[Any]) -> NDArray[Any]:
    return (day.astype(int) + 3) % 7 + 1


def _month(day: NDArray[Any]) -> NDArray[Any]:
    return day.astype("datetime64[M]").astype(int) % 12 + 1


def _hostile(f: SimpleNamespace) -> NDArray[np.float64]:
    first, second, category, other, _ = (vars(f).get(name) for name in HOSTILE)
    rates = np.array([2.0 + HOSTILE.index(level) for level in category])
    return 1.5 * first * second + rates * first + 3 * other


def _balance(f: SimpleNamespace) -> NDArray[np.float64]:
    found, order = np.zeros(len(f.paid)), np.argsort(f.date)
    for name in np.unique(f.account):
        rows = order[f.account[order] == name]
        found[rows] = np.cumsum(f.paid[rows])
    return found


OF_SQL: Mapping[str, Planted] = {
    "balance-by-account": Planted("lag(total, by=account, order=date), paid", _balance, gaps=False)
}
"""Rules that look at the row before, in the order of a column."""

OF_SHEETS: Mapping[str, Planted] = {
    "balance": Planted("lag(total), paid", lambda f: np.cumsum(f.paid), gaps=False),
}
"""Those in the order of a sheet."""

_QUOTED = [f"`{name}`" for name in HOSTILE]

CASES: Mapping[str, Planted] = {
    "sum": Planted("hours, visits", lambda f: 3.5 * f.hours - 12 * f.visits + 40.25),
    "thirds": Planted("normal, other_normal", lambda f: f.normal / 3 + 0.7 * f.other_normal, None),
    "product": Planted("qty*price", lambda f: f.qty * f.price),
    "vat": Planted("qty*price", lambda f: 1.19 * f.qty * f.price + 4.5),
    "discount": Planted("qty*price, qty*price*less", lambda f: f.qty * f.price * (1 - f.less)),
    "rates": Planted("hours:service", lambda f: f.hours * by(f.service, wash=20, cut=48.5, dye=80.1, style=0.35)),
    "rates-and-fees": Planted(
        "region, hours:service",
        lambda f: (
            f.hours * by(f.service, wash=20, cut=48, dye=80, style=9) + by(f.region, north=5, south=7.5, far_east=11)
        ),
    ),
    "crossed-rates": Planted(
        "hours:service:region",
        lambda f: (
            f.hours * by(f.service, wash=20, cut=48, dye=80, style=9) * by(f.region, north=1, south=1.5, far_east=2)
        ),
    ),
    "codes": Planted("hours:C(plan)", lambda f: f.hours * (2.5 * f.plan + 1)),
    "tiers": Planted(
        "kwh, max(0, kwh - 200), max(0, kwh - 500)",
        lambda f: 0.21 * f.kwh + 0.08 * np.maximum(0, f.kwh - 200) - 0.03 * np.maximum(0, f.kwh - 500),
    ),
    "brackets": Planted(
        "(kg <= 5), (5 < kg <= 10), (kg > 10), kg*(kg > 10)",
        lambda f: np.select([f.kg <= 5, f.kg <= 10], [4.9, 7.49], 2.5 + 0.9 * f.kg),
        options={"intercept": False},
    ),
    "since": Planted(
        "hours, hours*(day >= 2024-05-01)", lambda f: f.hours * (28 + 3.5 * (f.day >= np.datetime64("2024-05-01")))
    ),
    "bmi": Planted("weight / height^2", lambda f: f.weight / f.height**2, 1),
    "percentage": Planted("part / whole", lambda f: 100 * f.part / np.maximum(f.whole, 1)),
    "powers": Planted("wide^0.5 * long^(-1.5)", lambda f: 923 * f.wide**0.5 * f.long**-1.5, 3),
    "functions": Planted(
        "wide^3, log(long), sqrt(wide*long), long^(-1)",
        lambda f: 2 * f.wide**3 + 5 * np.log(f.long) - 1.5 * np.sqrt(f.wide * f.long) + 0.25 / f.long,
        4,
    ),
    "larger": Planted(
        "max(paid, due), abs(paid - due)", lambda f: 2 * np.maximum(f.paid, f.due) + 0.5 * np.abs(f.paid - f.due)
    ),
    "cap": Planted("min(price, 50)", lambda f: 1.1 * np.minimum(f.price, 50)),
    "clipped": Planted("columns", lambda f: np.maximum(0, 1.5 * f.up + 2.25 * f.down), 2, {"model": "relu"}, "up down"),
    "limited": Planted("auto", lambda f: np.minimum(1.5 * f.up + 2.25 * f.down + 20, 60), columns="up down"),
    "thousands": Planted("million, up", lambda f: 1.25 * f.million + 40_000 * f.up, -3),
    "rounded-inputs": Planted("tenths, other_tenths", lambda f: 3 * (f.tenths + 0.03) + 7 * (f.other_tenths - 0.01), 1),
    "float32": Planted("single", lambda f: (f.single * np.float32(0.75)).astype(np.float64), None),
    "tolerance": Planted(
        "qty, visits", lambda f: 3 * f.qty + 7 * f.visits + 0.4 * np.sin(f.normal), 3, {"tolerance": 0.5}
    ),
    "large": Planted("large, other_large", lambda f: f.large + f.other_large),
    "days-between": Planted("end - day", lambda f: 12.5 * (f.end - f.day).astype(float) + 30),
    "due-date": Planted("day, minutes", lambda f: f.day.astype(float) + f.minutes + 2, 0, target="due", is_date=True),
    "calendar": Planted(
        "hours:C(weekday(day)), month(day)",
        lambda f: f.hours * np.where(_weekday(f.day) >= 6, 30.0, 20.0) + 2.5 * _month(f.day),
    ),
    "flags": Planted("hours, member, express", lambda f: 20 * f.hours - 5 * f.member + 9.5 * (f.express == "yes")),
    "hostile": Planted(
        f"{_QUOTED[0]}*{_QUOTED[1]}, {_QUOTED[0]}:{_QUOTED[2]}, {_QUOTED[3]}", _hostile, target=HOSTILE[4]
    ),
    "hostile-set": Planted(
        f"visits, visits*({_QUOTED[2]} in ({_QUOTED[0]}, {_QUOTED[2]}, {_QUOTED[4]}))",
        lambda f: f.visits * (3 + 2.5 * np.isin(vars(f)[HOSTILE[2]], [HOSTILE[0], HOSTILE[2], HOSTILE[4]])),
    ),
    "started-quarters": Planted(
        "ceil(minutes / 15), ceil(paid / 0.1)",
        lambda f: 2.5 * np.ceil(f.minutes / 15) + 0.5 * np.ceil(np.round(f.paid * 10, 6)),
    ),
    "full-weeks": Planted("floor(up / 7), up", lambda f: 11.5 * np.floor(f.up / 7) + 0.25 * f.up),
    "rounded": Planted(
        "round(hours, to=0.5), round(due)",
        lambda f: 8 * np.floor(f.hours * 2 + 0.5) / 2 + np.sign(f.due) * np.floor(np.abs(f.due) + 0.5),
    ),
    "growth": Planted("price*(1 + percent/100)^years", lambda f: f.price * (1 + f.percent / 100) ** f.years),
    "decay": Planted(
        "exp(-0.085*hours), wide / (7.5 + wide)",
        lambda f: 500 * np.exp(-0.085 * f.hours) + 90 * f.wide / (7.5 + f.wide),
    ),
    "excess": Planted("paid, max(0, paid - due)", lambda f: f.paid + 1.5 * np.maximum(0, f.paid - f.due)),
    "least": Planted("min(paid, due, 20)", lambda f: 3 * np.minimum(np.minimum(f.paid, f.due), 20)),
    "level-set": Planted(
        "hours, hours*(service in (wash, dye))", lambda f: f.hours * (20 + 4.5 * np.isin(f.service, ["wash", "dye"]))
    ),
    "code-set": Planted("hours, hours*(plan in (3, 12))", lambda f: f.hours * (20 + 4.5 * np.isin(f.plan, [3, 12]))),
    "weekend": Planted(
        "hours, hours*(weekday(day) in (Sat, Sun))", lambda f: f.hours * (20 + 5 * (_weekday(f.day) >= 6))
    ),
    "months": Planted(
        "hours, hours*(month(day) in (Jan, Dec))", lambda f: f.hours * (20 + 5 * (_month(f.day) % 11 == 1))
    ),
    "interval": Planted(
        "kwh, kwh*(200 < kwh <= 500)", lambda f: f.kwh * (0.2 + 0.1 * ((f.kwh > 200) & (f.kwh <= 500)))
    ),
    "quarter": Planted(
        "hours, hours*(2024-01-01 <= day < 2024-04-01)",
        lambda f: f.hours * (20 + 5 * ((f.day >= np.datetime64("2024-01-01")) & (f.day < np.datetime64("2024-04-01")))),
    ),
    "bonus": Planted("up, up*(up >= down)", lambda f: f.up * (2 + 1.5 * (f.up >= f.down))),
    "constants": Planted(
        "kwh, max(0, kwh - ?), (price > ?)",
        lambda f: 0.2 * f.kwh + 0.1 * np.maximum(0, f.kwh - 250) + 30 * (f.price > 45),
    ),
}
"""The rules by name."""


def cases(seed: int, n_rows: int, names: Sequence[str] = tuple(CASES)) -> list[Case]:
    """Return the cases of these names."""
    return [case(name, seed, n_rows) for name in names]
