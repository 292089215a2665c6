"""Forty tables of other trades than `everyday_tables`: a blind set, for one last run.

They were written by somebody who had seen neither the search nor what it can do, and nothing was tuned on them. A
bakery, a farm, a harbour, a ward, a box office, a print shop, a town hall: each writes its own rule, some one line of
arithmetic (01 to 10), some with a category, a minimum, a started unit or a set of months (11 to 30), some with several
of these at once (31 to 40). Every rule is determined by the columns; fewer than half of the rows are wrong in each
level and range.

Each rule stands here twice, written by hand: as NumPy in the maker, and as the text ``Form.terms``, an expression on
one row. ``python benchmarks/blind_tables.py`` computes the second in exact fractions and compares.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

import planted as p
from planted import BoolArray, Cut, FloatArray, Form, Generator, Made, Make

TABLES: dict[str, Make] = {}
"""The tables by name."""


def _table(make: Make) -> Make:
    TABLES[make.__name__.strip("_").replace("_", "-")] = make
    return make


def _yes(rng: Generator, n: int, share: float, yes: str = "yes", no: str = "no") -> NDArray[Any]:
    """Return a text for each row, with a share of one of two."""
    return np.where(rng.random(n) < share, yes, no)


def _gaps(rng: Generator, values: NDArray[Any], share: float = 0.1) -> NDArray[Any]:
    """Return a column with missing values."""
    return np.where(rng.random(len(values)) < share, "" if values.dtype.kind == "U" else np.nan, values)


def _blank(values: NDArray[Any]) -> FloatArray:
    """Return a column in which nothing is written for zero."""
    return np.where(values == 0, np.nan, values.astype(float))


def _some(rng: Generator, n: int, share: float, low: int, high: int) -> NDArray[np.int64]:
    """Return whole numbers in a range for a share of the rows, and 0 for the others."""
    return np.where(rng.random(n) < share, rng.integers(low, high, n), 0)


def _count(rng: Generator, n: int, mean: float) -> NDArray[np.int64]:
    """Return whole amounts, most of them small, and none below 1."""
    return np.rint(rng.gamma(2.0, mean / 2, n) + 1).astype(np.int64)


def _looked_up(table: Mapping[str, float], names: NDArray[Any]) -> FloatArray:
    return np.array([table[name] for name in names.tolist()], dtype=float)


def _else(rng: Generator, found: FloatArray, exact: FloatArray, places: int = 2) -> FloatArray:
    """Return wrong values; where one is the right one, a digit of it is mistyped."""
    same = np.abs(p.rounded(np.asarray(found, float), places) - p.rounded(exact, places)) < 0.5 * 10.0**-places
    return np.where(same, p.one_digit(rng, exact, places), found)


def _up(values: FloatArray) -> FloatArray:
    return np.ceil(values - 1e-9)


def _to(values: FloatArray, step: float) -> FloatArray:
    """Round half up to a multiple of a step."""
    return np.floor(values / step + 0.5 + 1e-9) * step


def _weekday(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def _month(days: NDArray[np.int64]) -> NDArray[np.int64]:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1


def _relative(values: Sequence[float]) -> list[tuple[float, ...]]:
    """Return the ways to write constants by level: one of them, and what the others add to it."""
    return [(base, *(other - base for j, other in enumerate(values) if j != k)) for k, base in enumerate(values)]


@_table
def _01_bakery(rng: Generator) -> Made:
    n = 900
    rolls, loaves, cakes = _count(rng, n, 90), _count(rng, n, 12), _some(rng, n, 0.6, 1, 9)
    exact = 0.38 * rolls + 3.95 * loaves + 18.5 * cakes
    columns = {
        "Lieferschein": p.codes("L", n),
        "Datum": p.iso(p.days(rng, n)),
        "Kunde": rng.choice(["Hotel Post", "Kantine", "Krone", "Schule", "Spital"], n),
        "Brötchen": rolls,
        "Brote": loaves,
        "Kuchen": cakes,
        "Körbe": np.maximum(1, (rolls + 4 * loaves) // 45),
    }
    errors = {
        "old prices": 0.35 * rolls + 3.7 * loaves + 17.9 * cakes,
        "cakes forgotten": _else(rng, exact - 18.5 * cakes, exact),
        "ten times": p.scaled(rng, exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form("0.38*Brötchen + 3.95*Brote + 18.5*Kuchen", ("Brötchen", "Brote", "Kuchen"), (0.38, 3.95, 18.5))
    return Made(columns, "Betrag", exact, form, 0.11, errors, id="Lieferschein", layout="decimal comma")


@_table
def _02_livestock_units(rng: Generator) -> Made:
    n = 420
    cows, heifers, calves = _some(rng, n, 0.8, 4, 90), _some(rng, n, 0.7, 2, 50), _some(rng, n, 0.7, 2, 45)
    sheep = _some(rng, n, 0.4, 5, 160)
    exact = cows + 0.6 * heifers + 0.3 * calves + 0.15 * sheep
    columns = {
        "farm": p.codes("FM", n),
        "valley": rng.choice(["Glen Ard", "Glen Coe", "Strath Beg"], n),
        "hectares": np.round((cows + heifers + 3) * rng.uniform(0.5, 1.4, n), 1),
        "cows": cows,
        "heifers": heifers,
        "calves": calves,
        "sheep": sheep,
        "organic": _yes(rng, n, 0.25),
    }
    errors = {
        "heads counted": _else(rng, (cows + heifers + calves + sheep).astype(float), exact),
        "sheep forgotten": _else(rng, exact - 0.15 * sheep, exact),
        "calves as heifers": _else(rng, exact + 0.3 * calves, exact),
        "digits": p.swapped(rng, exact),
        "another row": p.another_row(rng, exact),
    }
    form = Form(
        "cows + 0.6*heifers + 0.3*calves + 0.15*sheep", ("cows", "heifers", "calves", "sheep"), (0.6, 0.3, 0.15)
    )
    return Made(columns, "livestock_units", exact, form, 0.15, errors, id="farm", layout="workbook")


@_table
def _03_alcohol(rng: Generator) -> Made:
    n = 1100
    style, start = p.pick(rng, {"lager": 1.048, "pale ale": 1.053, "porter": 1.058, "bock": 1.07}, n)
    og = np.round(start + rng.normal(0, 0.006, n), 3)
    fg = np.round(1 + (og - 1) * rng.uniform(0.15, 0.32, n), 3)
    exact = 131.25 * (og - fg)
    columns = {
        "batch": p.codes("B", n),
        "style": style,
        "og": og,
        "fg": fg,
        "ibu": rng.integers(12, 65, n),
        "litres": rng.choice([500, 1000, 2000], n),
        "tank": rng.integers(1, 15, n),
    }
    errors = {
        "final gravity forgotten": 131.25 * (og - 1),
        "old factor": 105 * (og - fg),
        "digits": p.swapped(rng, exact, 1),
        "another batch": p.another_row(rng, exact),
        "ten times": p.scaled(rng, exact, (10.0,)),
    }
    form = Form("131.25*(og - fg)", ("og", "fg"), (131.25,), ((131.25, 131.25),))
    return Made(columns, "abv", exact, form, 0.24, errors, places=1, id="batch")


@_table
def _04_cold_store(rng: Generator) -> Made:
    n = 5000
    room, mean = p.pick(rng, {"fish": 24.0, "fruit": 42.0, "ice": -6.0, "meat": 31.0, "wine": 54.0}, n)
    fahrenheit = np.round(mean + rng.normal(0, 5, n), 1)
    exact = (fahrenheit - 32) / 1.8
    columns = {"logged": p.iso(19_700 + np.arange(n) // 24), "room": room, "temp_f": fahrenheit}
    errors = {
        "not converted": fahrenheit,
        "32 not taken off": fahrenheit / 1.8,
        "sign": _else(rng, -exact, exact, 1),
        "another row": p.another_row(rng, exact),
        "digits": p.one_digit(rng, exact, 1),
    }
    others = ((5 / 9, 160 / 9), (5.0, 9.0, 32.0), (5 / 9, 32.0), (1.8, 160 / 9))
    form = Form("(temp_f - 32)/1.8", ("temp_f",), (32.0, 1.8), others)
    return Made(columns, "temp_c", exact, form, 0.43, errors, places=1, layout="parquet")


@_table
def _05_garage(rng: Generator) -> Made:
    n = 1300
    hours, parts = rng.integers(1, 36, n) / 4, np.where(rng.random(n) < 0.85, p.money(rng, 6, 1400, n), 0)
    exact = 78 * hours + 1.2 * parts + 14.9
    year = rng.integers(2004, 2024, n)
    columns = {
        "job": p.codes("J", n),
        "in": p.day_month(p.days(rng, n)),
        "make": rng.choice(["Ford", "Honda", "Opel", "Skoda", "Volvo"], n),
        "year": year,
        "mileage": np.rint((2024 - year) * rng.uniform(5000, 19_000, n)).astype(int),
        "mechanic": rng.choice(["AB", "JK", "MS", "TT"], n),
        "hours": hours,
        "parts": parts,
        "courtesy_car": _yes(rng, n, 0.2),
    }
    errors = {
        "parts at cost": _else(rng, exact - 0.2 * parts, exact),
        "old hourly rate": exact - 6 * hours,
        "disposal forgotten": exact - 14.9,
        "digits": p.swapped(rng, exact),
    }
    form = Form("78*hours + 1.2*parts + 14.9", ("hours", "parts"), (78.0, 1.2, 14.9))
    return Made(columns, "bill", exact, form, 0.18, errors, id="job", layout="dollars")


@_table
def _06_cholesterol(rng: Generator) -> Made:
    n = 3000
    hdl, trig = rng.normal(54, 13, n).clip(22, 110).round(), np.exp(rng.normal(4.8, 0.45, n)).clip(35, 398).round()
    total = (hdl + trig / 5 + rng.normal(122, 32, n).clip(35, 260)).round()
    exact = total - hdl - trig / 5
    columns = {
        "sample": np.arange(700_001, 700_001 + n),
        "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(19, 92, n),
        "chol": total.astype(int),
        "hdl": hdl.astype(int),
        "trig": trig.astype(int),
        "glucose": np.rint(rng.gamma(20, 5, n)).astype(int),
        "fasting": _gaps(rng, _yes(rng, n, 0.8)),
    }
    errors = {
        "triglycerides forgotten": total - hdl,
        "HDL forgotten": total - trig / 5,
        "divisor of mmol": total - hdl - trig / 2.2,
        "another sample": p.another_row(rng, exact),
        "digits": p.one_digit(rng, exact, 0),
    }
    form = Form("chol - hdl - trig/5", ("chol", "hdl", "trig"), (5.0,))
    return Made(columns, "ldl", exact, form, 0.38, errors, places=0, id="sample", layout="tsv")


@_table
def _07_drip_rate(rng: Generator) -> Made:
    n = 700
    ml, hours = rng.integers(2, 31, n) * 50, rng.integers(1, 25, n) / 2
    factor = rng.choice([15, 20, 60], n, p=[0.3, 0.5, 0.2])
    exact = ml * factor / (60 * hours)
    columns = {
        "infusion": p.codes("IV", n),
        "ward": rng.choice(["1 North", "2 North", "ICU"], n),
        "solution": rng.choice(["NaCl 0.9", "Glucose 5", "Ringer"], n),
        "ml": ml,
        "hours": hours,
        "drops_per_ml": factor,
        "weight": rng.integers(38, 120, n),
    }
    errors = {
        "set of 20 drops": _else(rng, ml * 20 / (60 * hours), exact, 0),
        "millilitres an hour": _else(rng, ml / hours, exact, 0),
        "ten times": p.scaled(rng, exact),
        "digits": p.one_digit(rng, exact, 0),
    }
    form = Form("ml*drops_per_ml/(60*hours)", ("ml", "hours", "drops_per_ml"), (60.0,))
    return Made(columns, "drops_min", exact, form, 0.20, errors, places=0, id="infusion")


@_table
def _08_eggs(rng: Generator) -> Made:
    n = 2200
    prices = {"S": 21.6, "M": 27.45, "L": 31.2, "XL": 35.9}
    grade, price = p.pick(rng, prices, n)
    boxes = _count(rng, n, 14)
    exact = price * boxes
    columns = {
        "bon": np.arange(1, n + 1),
        "client": rng.choice(["Carrefour", "Grossiste", "Marché", "Pâtisserie"], n),
        "calibre": grade,
        "boîtes": boxes,
        "casse": rng.integers(0, 8, n),
        "poids": np.round(boxes * rng.normal(11, 0.8, n), 1),
    }
    errors = {
        "price of M": _else(rng, 27.45 * boxes, exact),
        "a box more": price * (boxes + 1),
        "price of another row": _else(rng, p.another_row(rng, price) * boxes, exact),
        "ten times": p.scaled(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    rule = '{"S": 21.6, "M": 27.45, "L": 31.2, "XL": 35.9}[calibre]*boîtes'
    form = Form(rule, ("calibre", "boîtes"), (*prices.values(),))
    return Made(columns, "montant", exact, form, 0.30, errors, id="bon", layout="euros")


@_table
def _09_quick_ratio(rng: Generator) -> Made:
    n = 520
    liabilities = p.money(rng, 20_000, 3_000_000, n, 0)
    cash = np.round(liabilities * rng.uniform(0.05, 0.6, n), 0)
    claims = np.round(liabilities * rng.uniform(0.2, 1.1, n), 0)
    stock = np.round(liabilities * rng.uniform(0.0, 0.9, n), 0)
    exact = 100 * (cash + claims) / liabilities
    columns = {
        "firm": p.codes("F", n),
        "branch": rng.choice(["building", "food", "metal", "trade"], n),
        "cash": cash,
        "receivables": claims,
        "stock": stock,
        "short_term_liabilities": liabilities,
        "employees": _gaps(rng, rng.integers(3, 250, n)),
    }
    errors = {
        "with stock": 100 * (cash + claims + stock) / liabilities,
        "cash only": 100 * cash / liabilities,
        "upside down": 100 * liabilities / (cash + claims),
        "digits": p.swapped(rng, exact, 1),
    }
    read = ("cash", "receivables", "short_term_liabilities")
    form = Form("100*(cash + receivables)/short_term_liabilities", read)
    return Made(columns, "quick_ratio", exact, form, 0.16, errors, places=1, id="firm", layout="percent")


@_table
def _10_church_tax(rng: Generator) -> Made:
    n = 2600
    rates = {"Baden-Württemberg": 0.08, "Bayern": 0.08, "Berlin": 0.09, "Hessen": 0.09, "NRW": 0.09, "Sachsen": 0.09}
    land, rate = p.pick(rng, rates, n)
    tax = p.money(rng, 150, 30_000, n)
    exact = rate * tax
    columns = {
        "Steuernr.": np.arange(40_100, 40_100 + n),
        "Land": land,
        "Konfession": rng.choice(["ev", "rk"], n),
        "Einkommen": np.round(tax * rng.uniform(3.2, 6, n), 2),
        "Lohnsteuer": tax,
        "Kinder": rng.choice([0, 1, 2, 3], n, p=[0.5, 0.25, 0.18, 0.07]),
    }
    errors = {
        "rate of the other states": (0.17 - rate) * tax,
        "of the income": rate * columns["Einkommen"],
        "ten times": p.scaled(rng, exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "(0.08 if Land in ('Baden-Württemberg', 'Bayern') else 0.09)*Lohnsteuer",
        ("Land", "Lohnsteuer"),
        (0.08, 0.09),
        (tuple(rates.values()), (0.09, 0.01), (0.08, 0.01), (0.09, 0.01, 0.01), (0.08, 0.01, 0.01, 0.01, 0.01)),
    )
    return Made(columns, "Kirchensteuer", exact, form, 0.14, errors, rounding="down", id="Steuernr.", layout="titles")


@_table
def _11_harbour_dues(rng: Generator) -> Made:
    n = 3000
    rates = {"bulker": 0.118, "container": 0.142, "ferry": 0.064, "tanker": 0.171}
    ship, rate = p.pick(rng, rates, n)
    gross = p.money(rng, 900, 60_000, n, 0).astype(int)
    length = np.round(9.2 * gross**0.3 * rng.uniform(0.9, 1.1, n), 1)
    cargo = rng.choice(["cars", "chemicals", "fuel", "gas", "general", "grain", "none", "ore"], n)
    hazard = np.isin(cargo, ["chemicals", "fuel", "gas"])
    exact = rate * gross + 1.35 * length + 420 * hazard
    columns = {
        "call": p.codes("PC", n),
        "arrival": p.iso(p.days(rng, n)),
        "ship": ship,
        "flag": rng.choice(["BS", "DK", "LR", "MT", "PA"], n),
        "gt": gross,
        "nt": np.rint(gross * rng.uniform(0.35, 0.65, n)).astype(int),
        "loa": length,
        "draught": np.round(length * rng.uniform(0.04, 0.06, n), 1),
        "cargo": cargo,
        "berth": rng.integers(1, 25, n),
        "tugs": rng.integers(0, 4, n),
        "pilot": _yes(rng, n, 0.7),
        "crew": rng.integers(6, 40, n),
        "agent": rng.choice(["Baltic", "Nordsee", "Scan"], n),
        "remark": np.where(rng.random(n) < 0.03, "see file", ""),
    }
    errors = {
        "hazard forgotten": _else(rng, exact - 420 * hazard, exact),
        "rate of another ship": _else(rng, exact + (p.another_row(rng, rate) - rate) * gross, exact),
        "net tonnage": rate * columns["nt"] + 1.35 * length + 420 * hazard,
        "ten times": p.scaled(rng, exact),
        "digits": p.swapped(rng, exact),
    }
    numbers = (*rates.values(), 1.35, 420.0)
    form = Form(
        '{"bulker": 0.118, "container": 0.142, "ferry": 0.064, "tanker": 0.171}[ship]*gt + 1.35*loa'
        " + (420 if cargo in ('chemicals', 'fuel', 'gas') else 0)",
        ("ship", "gt", "loa", "cargo"),
        numbers,
        ((*numbers, 420.0, 420.0),),
    )
    return Made(columns, "dues", exact, form, 0.22, errors, id="call", layout="total")


@_table
def _12_box_office(rng: Generator) -> Made:
    n = 4000
    prices = {
        "stalls": {"full": 48.0, "reduced": 36.0, "child": 20.0},
        "circle": {"full": 39.0, "reduced": 31.0, "child": 18.0},
        "balcony": {"full": 27.0, "reduced": 22.5, "child": 12.0},
        "standing": {"full": 14.0, "reduced": 9.5, "child": 6.0},
    }
    area, by_kind = p.pick(rng, prices, n)
    kind = rng.choice(["full", "reduced", "child"], n, p=[0.5, 0.3, 0.2])
    price = np.array([table[name] for table, name in zip(by_kind.tolist(), kind.tolist(), strict=True)])
    full = np.array([table["full"] for table in by_kind.tolist()])
    seats = rng.choice([1, 2, 3, 4, 5, 6], n, p=[0.2, 0.4, 0.12, 0.18, 0.05, 0.05])
    exact = price * seats
    columns = {
        "order": np.arange(88_001, 88_001 + n),
        "show": rng.choice(["Carmen", "Hamlet", "Oklahoma!", "Swan Lake"], n),
        "evening": p.iso(p.days(rng, n, "2023-09-01", 280)),
        "area": area,
        "ticket": kind,
        "seats": seats,
        "row": rng.integers(1, 30, n),
        "paid_by": rng.choice(["card", "cash", "voucher"], n),
    }
    errors = {
        "full price": _else(rng, full * seats, exact),
        "a seat too few": _else(rng, price * np.maximum(1, seats - 1), exact),
        "price of another order": _else(rng, p.another_row(rng, price) * seats, exact),
        "fee on top": exact + 2.5,
        "digits": p.one_digit(rng, exact),
    }
    numbers = tuple(price for table in prices.values() for price in table.values())
    form = Form(f"{prices!r}[area][ticket]*seats", ("area", "ticket", "seats"), numbers)
    return Made(columns, "total", exact, form, 0.27, errors, id="order", layout="jsonl")


@_table
def _13_vet(rng: Generator) -> Made:
    n = 1500
    fees = {"cat": 31.5, "dog": 36.0, "horse": 84.0, "rabbit": 22.5}
    animal, fee = p.pick(rng, fees, n)
    day, ml = p.days(rng, n), np.round(rng.gamma(2, 3, n) * np.where(animal == "horse", 3, 1), 1)
    weekend, mean = _weekday(day) >= 6, _looked_up({"cat": 4, "dog": 22, "horse": 510, "rabbit": 2}, animal)
    exact = fee + 3.6 * ml + 42 * weekend
    columns = {
        "visit": p.codes("V", n),
        "date": p.iso(day),
        "animal": animal,
        "kg": np.round(mean * rng.uniform(0.6, 1.5, n), 1),
        "age": rng.integers(0, 18, n),
        "ml": ml,
        "vaccinated": _gaps(rng, _yes(rng, n, 0.7)),
        "doctor": rng.choice(["Ames", "Boyd", "Cole"], n),
    }
    errors = {
        "weekend forgotten": _else(rng, exact - 42 * weekend, exact),
        "fee of a dog": _else(rng, exact - fee + 36, exact),
        "drug forgotten": fee + 42 * weekend - 1,
        "digits": p.swapped(rng, exact),
    }
    own = tuple(fees.values())
    form = Form(
        '{"cat": 31.5, "dog": 36, "horse": 84, "rabbit": 22.5}[animal] + 3.6*ml'
        " + (42 if weekday(date) in (6, 7) else 0)",
        ("animal", "date", "ml"),
        (*own, 3.6, 42.0),
        tuple((*ways, 3.6, *more) for ways in (own, *_relative(own)) for more in ((42.0,), (42.0, 6.0), (42.0, 42.0))),
    )
    return Made(columns, "bill", exact, form, 0.13, errors, id="visit")


@_table
def _14_milk_money(rng: Generator) -> Made:
    n = 1800
    kg = np.rint(rng.gamma(5, 420, n) + 150).astype(int)
    fat, protein = np.round(rng.normal(4.1, 0.3, n), 2), np.round(rng.normal(3.38, 0.18, n), 2)
    per_100 = 62 + 3.1 * (fat - 4) + 5.4 * (protein - 3.3)
    exact = _to(kg / 100 * per_100, 0.05)
    columns = {
        "Lieferung": p.codes("ML", n),
        "Hof": rng.choice(["Egg", "Halden", "Moos", "Rüti", "Sonnhalde"], n),
        "kg": kg,
        "Fett": fat,
        "Eiweiss": protein,
        "Keime": rng.integers(4, 90, n),
        "Zellen": rng.integers(40, 340, n),
        "Temp": np.round(rng.normal(4.4, 0.6, n), 1),
    }
    errors = {
        "base price": _to(0.62 * kg, 0.05),
        "protein forgotten": _to(kg / 100 * (62 + 3.1 * (fat - 4)), 0.05),
        "old price": _to(kg / 100 * (per_100 - 2.5), 0.05),
        "ten times": p.scaled(rng, exact),
        "digits": p.swapped(rng, exact),
    }
    ways = ((62.0, 3.1, 4.0, 5.4, 3.3), (31.78, 3.1, 5.4), (0.3178, 0.031, 0.054))
    form = Form(
        "nearest(kg/100*(62 + 3.1*(Fett - 4) + 5.4*(Eiweiss - 3.3)), 0.05)",
        ("kg", "Fett", "Eiweiss"),
        (*ways[0], 0.05),
        tuple((*way, *more) for way in ways for more in ((), (0.05,), (0.05, 0.05), (20.0, 20.0))),
    )
    return Made(columns, "Milchgeld", exact, form, 0.17, errors, id="Lieferung", layout="swiss")


@_table
def _15_kidney(rng: Generator) -> Made:
    n = 1250
    sex, age = rng.choice(["f", "m"], n), rng.integers(19, 95, n)
    kg = np.round(rng.normal(74, 14, n).clip(38, 140) - 6 * (sex == "f"), 1)
    creatinine = np.round(rng.gamma(9, 0.12, n).clip(0.35, 6), 2)
    male = (140 - age) * kg / (72 * creatinine)
    exact = male * np.where(sex == "f", 0.85, 1.0)
    columns = {
        "patient": p.codes("PT", n),
        "taken": p.days(rng, n).astype("datetime64[D]"),
        "sex": sex,
        "age": age,
        "kg": kg,
        "cm": np.rint(rng.normal(171, 9, n)).astype(int),
        "creatinine": creatinine,
        "urea": np.rint(creatinine * rng.uniform(22, 48, n)).astype(int),
        "potassium": np.round(rng.normal(4.2, 0.4, n), 1),
    }
    errors = {
        "sex forgotten": _else(rng, male, exact, 1),
        "age not taken off": age * kg / (72 * creatinine),
        "in micromoles": exact * 0.884,
        "another patient": p.another_row(rng, exact),
        "digits": p.swapped(rng, exact, 1),
    }
    form = Form(
        "(140 - age)*kg/(72*creatinine)*(0.85 if sex == 'f' else 1)",
        ("sex", "age", "kg", "creatinine"),
        (140.0, 72.0, 0.85),
        free_scale=True,
    )
    return Made(columns, "clearance", exact, form, 0.19, errors, places=1, id="patient", layout="parquet")


@_table
def _16_property_tax(rng: Generator) -> Made:
    n = 2400
    kinds = {"bâti": 0.0031, "agricole": 0.0055, "commercial": 0.0042}
    communes = {"Aubel": 3.8, "Dison": 4.25, "Esneux": 4.6, "Herve": 5.1, "Limbourg": 4.0, "Olne": 3.65}
    kind, share = p.pick(rng, kinds, n)
    commune, multiplier = p.pick(rng, communes, n)
    value = p.money(rng, 18_000, 900_000, n, 0)
    exact = value * share * multiplier
    columns = {
        "parcelle": p.codes("PA", n),
        "commune": commune,
        "type": kind,
        "surface": np.rint(value / rng.uniform(200, 900, n)).astype(int),
        "valeur": value,
        "année": rng.integers(1890, 2022, n),
    }
    errors = {
        "rate of buildings": _else(rng, value * 0.0031 * multiplier, exact),
        "multiplier of another row": _else(rng, value * share * p.another_row(rng, multiplier), exact),
        "old value": exact * 0.92,
        "ten times": p.scaled(rng, exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        f"valeur*{kinds!r}[type]*{communes!r}[commune]",
        ("valeur", "type", "commune"),
        (*kinds.values(), *communes.values()),
        free_scale=True,
    )
    return Made(columns, "impôt", exact, form, 0.26, errors, id="parcelle", layout="euros")


@_table
def _17_marina(rng: Generator) -> Made:
    n = 2000
    length = np.round(rng.gamma(14, 0.7, n).clip(4.5, 22), 1)
    beam = np.round(length * rng.uniform(0.27, 0.36, n) + 0.3, 1)
    day, nights = p.days(rng, n, "2023-04-01", 214), _count(rng, n, 4)
    high = np.isin(_month(day), [7, 8])
    low_season = 0.62 * length * beam * nights
    exact = low_season * np.where(high, 1.3, 1.0)
    columns = {
        "stay": p.codes("S", n),
        "arrived": p.day_month(day),
        "kind": rng.choice(["motor", "sail"], n),
        "length_m": length,
        "beam_m": beam,
        "nights": nights,
        "persons": rng.integers(1, 8, n),
        "power": _yes(rng, n, 0.6),
        "jetty": rng.choice(["A", "B", "C", "D"], n),
    }
    errors = {
        "season forgotten": _else(rng, low_season, exact),
        "a night too many": exact / nights * (nights + 1),
        "in feet": exact * 3.2808,
        "digits": p.one_digit(rng, exact),
    }
    form = Form(
        "0.62*length_m*beam_m*nights*(1.3 if month(arrived) in (7, 8) else 1)",
        ("arrived", "length_m", "beam_m", "nights"),
        (0.62, 1.3),
        ((0.62, 0.186), (0.62, 0.806), (0.62, 0.186, 0.186), (0.62, 0.3, 0.3)),
    )
    return Made(columns, "fee", exact, form, 0.15, errors, id="stay")


@_table
def _18_print_shop(rng: Generator) -> Made:
    n = 1700
    quantity = np.where(rng.random(n) < 0.5, p.money(rng, 25, 3000, n, -1), p.money(rng, 20, 3000, n, 0)).astype(int)
    price = np.array([0.22, 0.16, 0.11])
    level = np.searchsorted([250, 1000], quantity, side="right")
    exact = 35 + price[level] * quantity
    columns = {
        "Auftrag": p.codes("DR", n),
        "Produkt": rng.choice(["Flyer", "Karte", "Plakat A4"], n),
        "Papier": rng.choice([90, 135, 170, 250], n),
        "Auflage": quantity,
        "Kunde": rng.integers(100, 400, n),
        "Bogen": quantity // 8 + rng.integers(5, 40, n),
        "Lieferung": p.iso(p.days(rng, n)),
    }
    errors = {
        "price of few": _else(rng, 35 + 0.22 * quantity, exact),
        "setup forgotten": exact - 35,
        "by sheets": 35 + price[level] * columns["Bogen"],
        "with VAT": 1.19 * exact,
        "digits": p.swapped(rng, exact),
    }
    cuts = Cut.of(quantity, 250), Cut.of(quantity, 1000)
    others = (
        (35.0, 0.22, 0.16, 0.11, *cuts, *cuts),
        (35.0, 0.22, 0.06, 0.05, *cuts),
        (35.0, 0.11, 0.05, 0.06, *cuts),
        (35.0, 0.11, 0.11, 0.05, *cuts),
    )
    form = Form(
        "35 + (0.22 if Auflage < 250 else 0.16 if Auflage < 1000 else 0.11)*Auflage",
        ("Auflage",),
        (35.0, 0.22, 0.16, 0.11, *cuts),
        others,
    )
    return Made(columns, "Preis", exact, form, 0.18, errors, id="Auftrag", layout="decimal comma")


@_table
def _19_savings(rng: Generator) -> Made:
    n = 1000
    capital, years = np.round(p.money(rng, 500, 80_000, n), -1), rng.integers(1, 21, n)
    rate = rng.choice([1.25, 1.75, 2.0, 2.4, 3.1, 3.5, 4.25], n)
    exact = capital * ((1 + rate / 100) ** years - 1)
    columns = {
        "account": np.arange(620_000, 620_000 + n),
        "branch": rng.choice(["Dover", "Exeter", "Leeds", "York"], n),
        "capital": capital,
        "rate_pct": rate,
        "years": years,
        "holder_age": rng.integers(18, 90, n),
        "online": _yes(rng, n, 0.5),
    }
    errors = {
        "simple interest": _else(rng, capital * rate / 100 * years, exact),
        "a year too many": capital * ((1 + rate / 100) ** (years + 1) - 1),
        "with the capital": exact + capital,
        "digits": p.swapped(rng, exact),
    }
    form = Form("capital*((1 + rate_pct/100)**years - 1)", ("capital", "rate_pct", "years"))
    return Made(columns, "interest", exact, form, 0.12, errors, id="account", layout="dollars")


@_table
def _20_piece_work(rng: Generator) -> Made:
    n = 1400
    hours = rng.integers(8, 90, n) / 2
    pieces = np.rint(hours * rng.normal(30, 7, n).clip(8, 60)).astype(int)
    by_hour, by_piece = 13.5 * hours, 0.47 * pieces
    exact = np.maximum(by_hour, by_piece)
    columns = {
        "slip": p.codes("PW", n),
        "week": rng.integers(1, 53, n),
        "line": rng.choice(["cutting", "packing", "sewing"], n),
        "hours": hours,
        "pieces": pieces,
        "rejects": np.rint(pieces * rng.uniform(0, 0.05, n)).astype(int),
        "experience": rng.integers(0, 25, n),
    }
    errors = {
        "the smaller one": np.minimum(by_hour, by_piece),
        "old minimum": np.maximum(12.4 * hours, by_piece - 0.02 * pieces),
        "rejects taken off": np.maximum(12.0 * hours, 0.47 * (pieces - columns["rejects"] - 20)),
        "digits": p.swapped(rng, exact),
    }
    form = Form("max(13.5*hours, 0.47*pieces)", ("hours", "pieces"), (13.5, 0.47))
    return Made(columns, "wage", exact, form, 0.16, errors, id="slip", layout="tsv")


@_table
def _21_swimming_pool(rng: Generator) -> Made:
    n = 2500
    adults, children = rng.choice(8, n) + 1, np.where(rng.random(n) < 0.7, rng.choice(13, n), 0)
    persons = adults + children
    group = persons >= 10
    full = 7.5 * adults + 4 * children
    exact = full * np.where(group, 0.85, 1.0)
    columns = {
        "ticket": np.arange(1, n + 1),
        "date": p.iso(p.days(rng, n, "2024-05-10", 120)),
        "adults": adults,
        "children": children,
        "lockers": np.minimum(persons, rng.integers(0, 12, n)),
        "till": rng.choice(["east", "west"], n),
        "water_c": np.round(rng.normal(23, 1.2, n), 1),
    }
    errors = {
        "group forgotten": _else(rng, full, exact),
        "always a group": _else(rng, 0.85 * full, exact),
        "children as adults": _else(rng, 7.5 * persons * np.where(group, 0.85, 1.0), exact),
        "old prices": (6.8 * adults + 3.5 * children) * np.where(group, 0.85, 1.0),
        "digits": p.one_digit(rng, exact),
    }
    cut = Cut.of(persons, 10)
    form = Form(
        "(7.5*adults + 4*children)*(0.85 if adults + children >= 10 else 1)",
        ("adults", "children"),
        (7.5, 4.0, 0.85, cut),
        ((7.5, 4.0, 1.125, 0.6, cut, cut), (7.5, 4.0, 6.375, 3.4, cut, cut), (7.5, 4.0, 1.125, 0.6, cut)),
    )
    return Made(columns, "paid", exact, form, 0.21, errors, id="ticket")


@_table
def _22_bike_hire(rng: Generator) -> Made:
    n = 1600
    rates = {"city": 14.0, "e-bike": 32.5, "mountain": 24.0}
    kind, rate = p.pick(rng, rates, n)
    hours, helmets = np.round(rng.gamma(2, 36, n) + 1, 1), rng.choice([0, 1, 2, 3], n, p=[0.45, 0.3, 0.2, 0.05])
    days = _up(hours / 24)
    exact = rate * np.minimum(5, days) + 4.5 * helmets
    columns = {
        "hire": p.codes("BH", n),
        "kind": kind,
        "frame": rng.choice(["S", "M", "L"], n),
        "hours": hours,
        "km": np.rint(hours * rng.uniform(0.5, 3, n)).astype(int),
        "helmets": helmets,
        "deposit": rng.choice([50, 100], n),
    }
    errors = {
        "not capped": _else(rng, rate * days + 4.5 * helmets, exact),
        "by the hour": rate * hours / 24 + 4.5 * helmets,
        "helmets forgotten": _else(rng, exact - 4.5 * helmets, exact),
        "rate of another kind": _else(rng, exact + (p.another_row(rng, rate) - rate) * np.minimum(5, days), exact),
        "digits": p.swapped(rng, exact),
    }
    numbers = (*rates.values(), 5.0, 24.0, 4.5)
    form = Form(
        '{"city": 14, "e-bike": 32.5, "mountain": 24}[kind]*min(5, ceil(hours/24)) + 4.5*helmets',
        ("kind", "hours", "helmets"),
        numbers,
        ((*rates.values(), 120.0, 24.0, 4.5), (*numbers, 5.0, 5.0, 24.0, 24.0), (*numbers, 5.0, 24.0)),
    )
    return Made(columns, "price", exact, form, 0.14, errors, id="hire", layout="workbook")


@_table
def _23_reorder(rng: Generator) -> Made:
    n = 1300
    most = rng.integers(4, 60, n) * 10
    stock, coming = np.rint(most * rng.uniform(0, 1.1, n)).astype(int), _some(rng, n, 0.45, 1, 120)
    plain = (most - stock - coming).astype(float)
    exact = np.maximum(0, plain)
    columns = {
        "article": np.arange(100_000, 100_000 + n),
        "shelf": rng.choice(["A1", "A2", "B1", "B2", "C1"], n),
        "stock": stock,
        "on_order": _blank(coming),
        "minimum": np.rint(most * 0.3).astype(int),
        "maximum": most,
        "sold_month": np.rint(most * rng.uniform(0.1, 0.9, n)).astype(int),
        "price": p.money(rng, 0.4, 90, n),
    }
    errors = {
        "orders forgotten": _else(rng, np.maximum(0, plain + coming), exact, 0),
        "up to the minimum": _else(rng, np.maximum(0, columns["minimum"] - stock - coming).astype(float), exact, 0),
        "below zero": _else(rng, np.where(plain < 0, plain, 10 * plain), exact, 0),
        "as last month": _else(rng, columns["sold_month"].astype(float), exact, 0),
    }
    form = Form("max(0, maximum - stock - on_order)", ("maximum", "stock", "on_order"))
    return Made(columns, "order", exact, form, 0.13, errors, places=0, id="article", layout="tsv")


@_table
def _24_heat_costs(rng: Generator) -> Made:
    n = 1500
    houses = 24
    costs, areas = np.round(rng.uniform(6000, 48_000, houses), 2), np.round(rng.uniform(420, 2900, houses), 1)
    counted = np.rint(areas * rng.uniform(8, 17, houses))
    house = rng.integers(houses, size=n)
    area = np.round(rng.gamma(14, 5, n) + 18, 1)
    units = np.rint(area * rng.gamma(4, 3, n)).astype(int)
    basic, used = costs[house] * area / areas[house], costs[house] * units / counted[house]
    exact = 0.3 * basic + 0.7 * used
    columns = {
        "Wohnung": p.codes("WE", n),
        "Haus": house + 1,
        "Kosten": costs[house],
        "Fläche gesamt": areas[house],
        "Einheiten gesamt": counted[house].astype(int),
        "Fläche": area,
        "Einheiten": units,
        "Personen": rng.integers(1, 6, n),
        "Etage": rng.integers(0, 7, n),
        "Mieter seit": _gaps(rng, rng.integers(1985, 2024, n)),
    }
    errors = {
        "half and half": 0.5 * basic + 0.5 * used,
        "by area only": basic,
        "basic costs forgotten": 0.7 * used,
        "another flat": p.another_row(rng, exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "Kosten*(0.3*Fläche/`Fläche gesamt` + 0.7*Einheiten/`Einheiten gesamt`)",
        ("Kosten", "Fläche gesamt", "Einheiten gesamt", "Fläche", "Einheiten"),
        (0.3, 0.7),
    )
    return Made(columns, "Heizkosten", exact, form, 0.23, errors, id="Wohnung", layout="decimal comma")


@_table
def _25_golf_handicap(rng: Generator) -> Made:
    n = 1200
    index, slope = np.round(rng.gamma(5, 4.2, n).clip(0, 54), 1), rng.integers(96, 146, n)
    par = rng.choice([70, 71, 72, 73], n)
    rating = np.round(par + rng.normal(-0.3, 1.6, n), 1)
    exact = index * slope / 113 + rating - par
    columns = {
        "card": p.codes("G", n),
        "club": rng.choice(["Hill", "Links", "Park", "Royal"], n),
        "index": index,
        "slope": slope,
        "rating": rating,
        "par": par,
        "sex": rng.choice(["f", "m"], n, p=[0.3, 0.7]),
        "score": np.rint(par + index + rng.normal(3, 5, n)).astype(int),
    }
    errors = {
        "slope forgotten": _else(rng, index + rating - par, exact, 0),
        "rating forgotten": _else(rng, index * slope / 113, exact, 0),
        "strokes over par": _else(rng, (columns["score"] - par).astype(float), exact, 0),
        "another card": _else(rng, p.another_row(rng, exact), exact, 0),
        "digits": p.one_digit(rng, exact, 0),
    }
    form = Form("index*slope/113 + rating - par", ("index", "slope", "rating", "par"), (113.0,))
    return Made(columns, "playing_hcp", exact, form, 0.25, errors, places=0, id="card")


@_table
def _26_timber(rng: Generator) -> Made:
    n = 3200
    diameter, length = rng.integers(12, 78, n), rng.choice([2.5, 3.0, 4.0, 5.0], n) + rng.integers(0, 4, n) / 10
    exact = 0.00007854 * diameter**2 * length
    columns = {
        "log": np.arange(1, n + 1),
        "species": rng.choice(["beech", "larch", "oak", "spruce"], n),
        "quality": rng.choice(["A", "B", "C"], n, p=[0.2, 0.5, 0.3]),
        "cm": diameter,
        "m": length,
        "bark_mm": np.rint(diameter * rng.uniform(0.2, 0.6, n)).astype(int),
        "stack": rng.integers(1, 60, n),
    }
    errors = {
        "without bark": 0.00007854 * (diameter - columns["bark_mm"] / 5 - 1) ** 2 * length,
        "a length too short": exact / length * (length - 0.5),
        "square": exact / 0.7854,
        "ten times": p.scaled(rng, exact),
        "digits": p.one_digit(rng, exact, 3),
    }
    # 7.854e-05 is read as two numbers
    others = ((0.00007854,), (7.854, 5.0))
    form = Form("0.7854*cm**2*m/10000", ("cm", "m"), (0.7854, 10_000.0), others)
    return Made(columns, "m3", exact, form, 0.34, errors, places=3, id="log", layout="total")


@_table
def _27_dental(rng: Generator) -> Made:
    n = 2800
    shares = {"basic": 0.5, "comfort": 0.75, "plus": 0.9}
    plan, share = p.pick(rng, shares, n)
    ceiling = rng.choice([90, 150, 240, 400, 650, 900], n)
    cost = np.round(ceiling * rng.gamma(5, 0.2, n), 2)
    paid = np.minimum(cost, ceiling)
    exact = share * paid
    columns = {
        "claim": p.codes("ZC", n),
        "treated": p.iso(p.days(rng, n)),
        "plan": plan,
        "cost": cost,
        "ceiling": ceiling,
        "tooth": rng.integers(11, 48, n),
        "member_years": rng.integers(0, 30, n),
        "dentist": rng.integers(1, 90, n),
    }
    errors = {
        "ceiling not looked at": _else(rng, share * cost, exact),
        "all of it": paid,
        "plan of another row": _else(rng, p.another_row(rng, share) * paid, exact),
        "the ceiling": _else(rng, share * ceiling, exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        '{"basic": 0.5, "comfort": 0.75, "plus": 0.9}[plan]*min(cost, ceiling)',
        ("plan", "cost", "ceiling"),
        (*shares.values(),),
    )
    return Made(columns, "refund", exact, form, 0.20, errors, id="claim", layout="jsonl")


@_table
def _28_hall_hire(rng: Generator) -> Made:
    n = 1500
    area, hours, heated = rng.integers(30, 420, n), rng.integers(2, 29, n) / 2, _yes(rng, n, 0.4)
    cold = 0.42 * area * hours
    exact = _to(cold * np.where(heated == "yes", 1.25, 1.0), 5.0)
    columns = {
        "booking": p.codes("H", n),
        "hall": rng.choice(["gym", "school", "town hall", "village"], n),
        "area_m2": area,
        "hours": hours,
        "heated": heated,
        "guests": np.rint(area * rng.uniform(0.3, 1.1, n)).astype(int),
        "club": _yes(rng, n, 0.5),
        "month": rng.integers(1, 13, n),
    }
    errors = {
        "heating forgotten": _else(rng, _to(cold, 5.0), exact, 0),
        "by the guest": _else(rng, _to(1.5 * columns["guests"] * hours, 5.0), exact, 0),
        "old rate": _else(rng, _to(exact * 0.38 / 0.42, 5.0), exact, 0),
        "an hour too many": _to(exact / hours * (hours + 1), 5.0) + 5 * (exact < 15),
        "digits": p.swapped(rng, exact, 0),
    }
    ways = ((0.42, 1.25), (0.42, 0.25), (0.42, 0.105), (0.42, 0.525))
    form = Form(
        "nearest(0.42*area_m2*hours*(1.25 if heated == 'yes' else 1), 5)",
        ("area_m2", "hours", "heated"),
        (0.42, 1.25, 5.0),
        tuple((*way, *more) for way in ways for more in ((), (5.0,), (5.0, 5.0))),
    )
    return Made(columns, "rent", exact, form, 0.16, errors, places=0, id="booking", layout="workbook")


@_table
def _29_film_rental(rng: Generator) -> Made:
    n = 1100
    visitors = _count(rng, n, 95)
    takings = np.round(visitors * rng.normal(9.4, 0.7, n), 2)
    guarantee = rng.choice([100, 150, 200, 250, 300], n)
    share = 0.47 * takings / 1.07
    exact = np.maximum(guarantee, share)
    columns = {
        "show": p.codes("F", n),
        "played": p.days(rng, n).astype("datetime64[D]"),
        "film": rng.choice(["Alba", "Dune", "Momo", "Nosferatu", "Roma"], n),
        "week": rng.integers(1, 7, n),
        "visitors": visitors,
        "takings": takings,
        "guarantee": guarantee,
        "screen": rng.integers(1, 5, n),
    }
    errors = {
        "guarantee forgotten": _else(rng, share, exact),
        "VAT not taken out": _else(rng, np.maximum(guarantee, 0.47 * takings), exact),
        "last year's share": _else(rng, np.maximum(guarantee, 0.44 * takings / 1.07), exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "max(guarantee, 0.47*takings/1.07)", ("guarantee", "takings"), (0.47, 1.07), ((0.47 / 1.07,), (47.0, 107.0))
    )
    return Made(columns, "film_rental", exact, form, 0.13, errors, id="show", layout="parquet")


@_table
def _30_copies(rng: Generator) -> Made:
    n = 900
    black, colour, bound = _count(rng, n, 45), _some(rng, n, 0.4, 1, 60), _some(rng, n, 0.3, 1, 5)
    exact = 0.08 * black + 0.35 * colour + 2.2 * bound
    columns = {
        "Beleg": p.codes("KB", n),
        "Tag": p.day_month(p.days(rng, n)),
        "s/w": black,
        "farbig": _blank(colour),
        "gebunden": _blank(bound),
        "Gerät": rng.choice(["EG", "Lesesaal", "OG"], n),
        "Ausweis": rng.integers(10_000, 19_999, n),
    }
    errors = {
        "colour forgotten": _else(rng, exact - 0.35 * colour, exact),
        "all in colour": _else(rng, exact + 0.27 * black, exact),
        "old prices": 0.07 * black + 0.3 * colour + 2 * bound,
        "digits": p.swapped(rng, exact),
        "ten times": p.scaled(rng, exact),
    }
    form = Form("0.08*`s/w` + 0.35*farbig + 2.2*gebunden", ("s/w", "farbig", "gebunden"), (0.08, 0.35, 2.2))
    return Made(columns, "zu zahlen", exact, form, 0.14, errors, id="Beleg", layout="titles")


@_table
def _31_demurrage(rng: Generator) -> Made:
    n = 1800
    rates, free = {"20 ft": 28.0, "40 ft": 45.0, "reefer": 82.5}, {"20 ft": 7, "40 ft": 6, "reefer": 3}
    size, rate = p.pick(rng, rates, n)
    allowed = _looked_up(free, size)
    landed, stay = p.days(rng, n), rng.integers(1, 26, n)
    over = np.maximum(0, stay - allowed)
    exact = rate * over
    columns = {
        "container": p.codes("MSKU", n),
        "size": size,
        "landed": p.iso(landed),
        "released": p.iso(landed + stay),
        "tonnes": np.round(rng.uniform(3, 27, n), 1),
        "line": rng.choice(["CMA", "MSC", "ONE"], n),
        "customs_check": _yes(rng, n, 0.12),
    }
    errors = {
        "no free days": rate * stay,
        "five free days": _else(rng, rate * np.maximum(0, stay - 5), exact),
        "rate of another size": _else(rng, p.another_row(rng, rate) * np.maximum(1, over), exact),
        "a day more": rate * (over + 1),
        "digits": _else(rng, p.swapped(rng, exact), exact),
    }
    numbers = (*rates.values(), *map(float, free.values()))
    form = Form(
        '{"20 ft": 28, "40 ft": 45, "reefer": 82.5}[size]'
        '*max(0, day(released) - day(landed) - {"20 ft": 7, "40 ft": 6, "reefer": 3}[size])',
        ("size", "landed", "released"),
        numbers,
    )
    return Made(columns, "demurrage", exact, form, 0.13, errors, id="container", layout="tsv")


@_table
def _32_trade_tax(rng: Generator) -> Made:
    n = 1500
    profit = np.rint(np.exp(rng.normal(10.9, 0.8, n))).astype(int)
    multiplier = rng.choice([350, 380, 400, 410, 440, 490], n)
    hundreds = np.floor(np.maximum(0, profit - 24_500) / 100)
    exact = 0.035 * hundreds * multiplier
    columns = {
        "Betrieb": p.codes("GB", n),
        "Rechtsform": rng.choice(["Einzel", "GbR", "KG"], n),
        "Gewinn": profit,
        "Umsatz": np.rint(profit * rng.uniform(3, 12, n)).astype(int),
        "Hebesatz": multiplier,
        "Beschäftigte": rng.integers(1, 60, n),
        "Jahr": rng.choice([2021, 2022, 2023], n),
    }
    errors = {
        "no allowance": 0.035 * np.floor(profit / 100) * multiplier,
        "multiplier of 400": _else(rng, 14 * hundreds, exact),
        "five per cent": _else(rng, 0.05 * hundreds * multiplier, exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "0.035*floor(max(0, Gewinn - 24500)/100)*Hebesatz", ("Gewinn", "Hebesatz"), (0.035, 24_500.0), ((0.035, 245.0),)
    )
    return Made(columns, "Gewerbesteuer", exact, form, 0.10, errors, id="Betrieb", layout="decimal comma")


@_table
def _33_kindergarten(rng: Generator) -> Made:
    n = 3500
    fees = {
        "25 h": [0.0, 38.0, 71.0, 112.0, 165.0],
        "35 h": [0.0, 52.0, 94.0, 151.0, 218.0],
        "45 h": [0.0, 83.0, 147.0, 236.0, 341.0],
    }
    names, amounts, limits = list(fees), np.array(list(fees.values())), [20_000, 35_000, 50_000, 75_000]
    which, income = rng.choice(3, n, p=[0.3, 0.4, 0.3]), np.rint(rng.gamma(4, 11_500, n) + 4000).astype(int)
    bracket = np.searchsorted(limits, income, side="right")
    second = _yes(rng, n, 0.3)
    half = np.where(second == "yes", 0.5, 1.0)
    exact = amounts[which, bracket] * half
    columns = {
        "child": p.codes("C", n),
        "group": rng.choice(["bears", "foxes", "hares", "owls"], n),
        "age": rng.integers(1, 7, n),
        "hours": np.array(names)[which],
        "income": income,
        "second_child": second,
        "lunch": _yes(rng, n, 0.75),
        "district": rng.choice(["centre", "north", "south"], n),
    }
    errors = {
        "sibling forgotten": _else(rng, amounts[which, bracket], exact),
        "next bracket": _else(rng, amounts[which, np.minimum(bracket + 1, 4)] * half, exact),
        "45 hours": _else(rng, amounts[2, bracket] * half, exact),
        "digits": _else(rng, p.swapped(rng, exact), exact),
    }
    cuts = [Cut.of(income, at) for at in limits]
    numbers = tuple(amounts.ravel()[amounts.ravel() > 0].tolist())
    form = Form(
        f"{fees!r}[hours][bracket(income, 20000, 35000, 50000, 75000)]*(0.5 if second_child == 'yes' else 1)",
        ("hours", "income", "second_child"),
        (*numbers, *cuts, 0.5),
        ((*numbers, *cuts, *cuts, 0.5),),
    )
    return Made(columns, "monthly_fee", exact, form, 0.09, errors, id="child", layout="workbook")


@_table
def _34_royalties(rng: Generator) -> Made:
    n = 1000
    copies = np.rint(np.exp(rng.normal(8.3, 0.95, n))).astype(int)
    price = np.round(np.round(rng.uniform(6, 34, n), 1) - 0.01, 2)
    second, third = np.maximum(0, copies - 3000), np.maximum(0, copies - 10_000)
    exact = price * (0.08 * copies + 0.02 * second + 0.025 * third)
    columns = {
        "title": p.codes("ISBN", n),
        "genre": rng.choice(["crime", "poetry", "school", "travel"], n),
        "year": rng.integers(2012, 2024, n),
        "pages": rng.integers(60, 900, n),
        "net_price": price,
        "copies": copies,
        "returns": np.rint(copies * rng.uniform(0, 0.15, n)).astype(int),
        "cover": rng.choice(["hard", "soft"], n),
    }
    errors = {
        "first rate only": _else(rng, 0.08 * price * copies, exact),
        "highest rate for all": price * copies * np.where(copies > 10_000, 0.125, np.where(copies > 3000, 0.1, 0.09)),
        "less the returns": exact - 0.08 * price * (columns["returns"] + 1),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "net_price*(0.08*copies + 0.02*max(0, copies - 3000) + 0.025*max(0, copies - 10000))",
        ("net_price", "copies"),
        (0.08, 0.02, 3000.0, 0.025, 10_000.0),
    )
    return Made(columns, "royalty", exact, form, 0.11, errors, id="title", layout="dollars")


@_table
def _35_shift_pay(rng: Generator) -> Made:
    n = 2400
    grade, rate = p.pick(rng, {"P5": 17.85, "P6": 18.9, "P7": 20.15, "P8": 21.7}, n)
    day, hours = p.days(rng, n), rng.integers(12, 41, n) / 4
    night = np.where(rng.random(n) < 0.45, np.minimum(rng.integers(1, 33, n) / 4, hours), 0)
    sunday = _weekday(day) == 7
    exact = rate * (hours + 0.5 * hours * sunday + 0.25 * night)
    columns = {
        "shift": p.codes("D", n),
        "ward": rng.choice(["geriatrics", "ICU", "maternity", "surgery"], n),
        "date": p.day_month(day),
        "grade": grade,
        "rate": rate,
        "hours": hours,
        "night_hours": night,
        "break_min": rng.choice([30, 45, 60], n),
        "trainee": _yes(rng, n, 0.15),
    }
    errors = {
        "Sunday forgotten": _else(rng, exact - 0.5 * rate * hours * sunday, exact),
        "night forgotten": _else(rng, exact - 0.25 * rate * night, exact),
        "old rate": exact * 0.96,
        "rate of another grade": _else(rng, exact / rate * p.another_row(rng, rate), exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "rate*hours*(1.5 if weekday(date) == 7 else 1) + 0.25*rate*night_hours",
        ("rate", "hours", "night_hours", "date"),
        (0.5, 0.25),
        ((1.5, 0.25), (0.5, 0.25, 7.0)),
    )
    return Made(columns, "pay", exact, form, 0.12, errors, id="shift")


@_table
def _36_charging_station(rng: Generator) -> Made:
    n = 3200
    prices = {"AC": 0.45, "DC": 0.59, "HPC": 0.69}
    plug, price = p.pick(rng, prices, n)
    kwh, minutes = np.round(rng.gamma(4, 8, n) + 0.5, 2), np.rint(rng.gamma(2.2, 100, n) + 5).astype(int)
    energy, blocking = price * kwh, 0.1 * np.maximum(0, minutes - 240)
    exact = energy + np.minimum(12, blocking)
    columns = {
        "session": np.arange(1, n + 1),
        "station": rng.choice(["depot", "mall", "motorway", "station"], n),
        "plug": plug,
        "kwh": kwh,
        "minutes": minutes,
        "kw_max": np.round(kwh / minutes * 60 * rng.uniform(1.0, 1.6, n), 1),
        "soc_start": rng.integers(3, 80, n),
        "card": rng.choice(["app", "RFID", "roaming"], n),
    }
    errors = {
        "blocking forgotten": _else(rng, energy, exact),
        "not capped": _else(rng, energy + blocking, exact),
        "price of AC": _else(rng, exact - energy + 0.45 * kwh, exact),
        "another session": p.another_row(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    numbers = (*prices.values(), 12.0, 0.1, 240.0)
    form = Form(
        '{"AC": 0.45, "DC": 0.59, "HPC": 0.69}[plug]*kwh + min(12, 0.1*max(0, minutes - 240))',
        ("plug", "kwh", "minutes"),
        numbers,
        ((*prices.values(), 0.1, 240.0, 0.1, 360.0), (*prices.values(), 0.1, 240.0, 120.0)),
    )
    return Made(columns, "amount", exact, form, 0.17, errors, id="session", layout="jsonl")


@_table
def _37_concrete(rng: Generator) -> Made:
    n = 1200
    prices = {"C16/20": 118.0, "C20/25": 124.5, "C25/30": 131.0, "C30/37": 142.0}
    grade, price = p.pick(rng, prices, n)
    ordered = np.round(rng.gamma(3, 2.4, n) + 0.4, 1)
    charged = _up(ordered / 0.5) * 0.5
    short = 24 * np.maximum(0, 6 - charged)
    exact = price * charged + short
    columns = {
        "delivery": p.codes("BT", n),
        "grade": grade,
        "m3": ordered,
        "km": rng.integers(2, 38, n),
        "unload_min": np.rint(ordered * rng.uniform(3, 8, n) + 5).astype(int),
        "pump": _yes(rng, n, 0.3),
        "air_c": np.round(rng.normal(14, 7, n), 1),
    }
    errors = {
        "short load forgotten": _else(rng, price * charged, exact),
        "not rounded up": _else(rng, price * ordered + 24 * np.maximum(0, 6 - ordered), exact),
        "price of another grade": _else(rng, p.another_row(rng, price) * charged + short, exact),
        "digits": p.swapped(rng, exact),
    }
    numbers = (*prices.values(), 24.0, 6.0)
    form = Form(
        '{"C16/20": 118, "C20/25": 124.5, "C25/30": 131, "C30/37": 142}[grade]*ceil(m3/0.5)*0.5'
        " + 24*max(0, 6 - ceil(m3/0.5)*0.5)",
        ("grade", "m3"),
        (*numbers, *(0.5,) * 4),
        ((*numbers, 0.5, 0.5), (*(price / 2 for price in prices.values()), 12.0, 12.0, *(0.5,) * 2)),
    )
    return Made(columns, "invoice", exact, form, 0.14, errors, id="delivery")


@_table
def _38_seminars(rng: Generator) -> Made:
    n = 1700
    fees = {"accounting": 390.0, "first aid": 85.0, "law": 540.0, "rhetoric": 275.0}
    course, fee = p.pick(rng, fees, n)
    persons, start = rng.choice([1, 2, 3, 4, 6], n, p=[0.5, 0.25, 0.12, 0.08, 0.05]), p.days(rng, n, "2024-01-10")
    ahead = rng.integers(1, 75, n)
    early = ahead >= 30
    full = fee * persons
    exact = full * np.where(early, 0.85, 1.0)
    columns = {
        "dossier": p.codes("S", n),
        "cours": course,
        "inscrit": p.iso(start - ahead),
        "début": p.iso(start),
        "personnes": persons,
        "ville": rng.choice(["Lille", "Lyon", "Nantes", "Paris"], n),
        "repas": _yes(rng, n, 0.6, "oui", "non"),
    }
    errors = {
        "discount forgotten": _else(rng, full, exact),
        "discount too late": _else(rng, 0.85 * full, exact),
        "one person": _else(rng, exact / persons, exact),
        "fee of another course": _else(rng, exact / fee * p.another_row(rng, fee), exact),
        "digits": p.one_digit(rng, exact),
    }
    own, cut = tuple(fees.values()), Cut.of(ahead, 30)
    form = Form(
        f"{fees!r}[cours]*personnes*(0.85 if day(début) - day(inscrit) >= 30 else 1)",
        ("cours", "inscrit", "début", "personnes"),
        (*own, 0.85, cut),
        tuple((*own, *(share * value for value in own), *(cut,) * k) for share in (0.15, 0.85) for k in (1, 4)),
    )
    return Made(columns, "prix", exact, form, 0.10, errors, id="dossier", layout="euros")


@_table
def _39_cash_book(rng: Generator) -> Made:
    n = 1300
    is_in = rng.random(n) < 0.55
    amount = p.money(rng, 2, 380, n)
    received, paid = np.where(is_in, amount, 0), np.where(is_in, 0, amount)
    exact = 1840.55 + np.cumsum(received) - np.cumsum(paid)
    text = np.where(is_in, rng.choice(["fees", "sales", "tickets"], n), rng.choice(["post", "repairs", "wages"], n))
    columns = {
        "no": np.arange(1, n + 1),
        "date": p.iso(19_724 + np.arange(n) // 4),
        "text": text,
        "received": _blank(received),
        "paid": _blank(paid),
        "clerk": rng.choice(["EF", "GH"], n),
    }
    errors = {
        "wrong way round": exact - 2 * (received - paid),
        "entry forgotten": exact - (received - paid),
        "digits": p.swapped(rng, exact),
        "ten times": p.scaled(rng, exact),
    }
    form = Form(
        "1840.55 + running(received) - running(paid)", ("received", "paid"), (1840.55,), ((), (1840.55, 1840.55))
    )
    return Made(columns, "balance", exact, form, 0.08, errors)


@_table
def _40_insulin(rng: Generator) -> Made:
    n = 1500
    carbs, ratio = rng.integers(4, 125, n), rng.choice([6, 8, 10, 12, 15], n)
    glucose, target = np.rint(rng.gamma(14, 11.5, n) + 20).astype(int), rng.choice([100, 110, 120, 140], n)
    factor = rng.choice([25, 30, 40, 50], n)
    meal, correction = carbs / ratio, np.maximum(0, glucose - target) / factor
    exact = _to(meal + correction, 0.5)
    columns = {
        "entry": p.codes("IN", n),
        "ward": rng.choice(["3A", "3B", "4A"], n),
        "meal": rng.choice(["breakfast", "dinner", "lunch"], n),
        "carbs_g": carbs,
        "g_per_unit": ratio,
        "glucose": glucose,
        "target": target,
        "mg_per_unit": factor,
        "pulse": rng.integers(52, 110, n),
        "kg": rng.integers(42, 125, n),
    }
    errors = {
        "correction forgotten": _else(rng, _to(meal, 0.5), exact, 1),
        "target not taken off": _to(meal + glucose / factor, 0.5),
        "meal forgotten": _else(rng, _to(correction, 0.5), exact, 1),
        "another patient": _else(rng, p.another_row(rng, exact), exact, 1),
        "digits": p.swapped(rng, exact, 1),
    }
    form = Form(
        "nearest(carbs_g/g_per_unit + max(0, glucose - target)/mg_per_unit, 0.5)",
        ("carbs_g", "g_per_unit", "glucose", "target", "mg_per_unit"),
        (0.5,),
        ((), (0.5, 0.5)),
    )
    return Made(columns, "units", exact, form, 0.12, errors, places=1, id="entry")


# The second way: the text of each rule, computed row by row in exact fractions.


class _InFractions(ast.NodeTransformer):
    """Turn the numbers of an expression into fractions of what is printed."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return node
        text = f"{node.value:.15g}"
        return ast.parse(f"Fraction('{text}')", mode="eval").body


def _cell(value: Any) -> Any:
    """Return a cell as an expression reads it; a blank is zero."""
    if isinstance(value, float):
        return Fraction(0) if math.isnan(value) else Fraction(f"{value:.15g}")
    return Fraction(value) if isinstance(value, int) else value


def _day(value: Any) -> int:
    """Return days since 1970 of a date in a file."""
    parts = re.split("[/.]", str(value))
    return int(np.datetime64("-".join(reversed(parts)), "D").astype(np.int64))


def _clock(value: str) -> int:
    """Return minutes since midnight of a time in a file, 07:45."""
    hours, minutes = value.split(":")
    return 60 * int(hours) + int(minutes)


def _nearest(value: Fraction, step: Fraction) -> Fraction:
    return math.floor(value / step + Fraction(1, 2)) * step


def _month_of(value: Any) -> int:
    return int(str(np.datetime64(_day(value), "D")).split("-")[1])


FUNCTIONS: dict[str, Any] = {
    "Fraction": Fraction,
    "bracket": lambda value, *limits: sum(value >= limit for limit in limits),
    "ceil": math.ceil,
    "clock": _clock,
    "day": _day,
    "floor": math.floor,
    "max": max,
    "min": min,
    "month": _month_of,
    "nearest": _nearest,
    "weekday": lambda value: (_day(value) + 3) % 7 + 1,
}


def _parsed(form: Form, names: Sequence[str]) -> ast.Expression:
    """Return the text of a rule as Python, in which column k is named ``_k``."""
    text = form.terms
    for k, name in sorted(enumerate(names), key=lambda pair: -len(pair[1])):
        text = text.replace(f"`{name}`", f"_{k}")
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = f"_{names.index(node.id)}"
    return tree


def by_hand(made: Made) -> FloatArray:
    """Return what the text of a rule gives for each row, rounded as `planted.rounded` does."""
    names = list(made.columns)
    cells = [[_cell(value) for value in made.columns[name].tolist()] for name in names]
    tree = ast.fix_missing_locations(_InFractions().visit(_parsed(made.form, names)))
    # running() is the one function that looks at other rows: it finds the sum up to the cell that it is given.
    code = compile(tree, made.target, "eval")
    sums = {f"_{k}": list(accumulate(column)) for k, column in enumerate(cells) if isinstance(column[0], Fraction)}
    unit, found = Fraction(10) ** made.places, []
    half = Fraction(1, 2) if made.rounding == "nearest" else Fraction(0)
    for row in range(len(made.exact)):
        values = {f"_{k}": column[row] for k, column in enumerate(cells)}
        totals = {id(values[name]): sums[name][row] for name in sums}
        running: Callable[[Fraction], Fraction] = lambda value, totals=totals: totals[id(value)]  # noqa: E731
        value = Fraction(eval(code, {**FUNCTIONS, **values, "running": running}))
        scaled = value * unit
        found.append(float(math.floor(scaled + half + Fraction(p.TIE) * max(1, abs(scaled))) / unit))
    return np.array(found)


def written_numbers(form: Form, names: Sequence[str]) -> list[float]:
    """Return the numbers in the text of a rule, but for levels, exponents, and 0, 1 and 100."""
    tree = _parsed(form, names)
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.In):
            left_out |= {id(inner) for inner in ast.walk(node.comparators[0])}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            left_out.add(id(node.right))
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in left_out]
    values = [node.value for node in constants if not isinstance(node.value, str)]
    return [float(value) for value in values if value not in (0, 1, 100)]  # type: ignore[arg-type,misc]


def _parts(name: str, values: NDArray[Any]) -> list[tuple[str, BoolArray]]:
    """Return the levels, weekdays and months of a column, and its tenths."""
    found: list[tuple[str, BoolArray]] = []
    plain = values.astype(np.int64) if values.dtype.kind == "M" else values
    is_date = values.dtype.kind == "M" or (values.dtype.kind == "U" and re.fullmatch(r"[\d/.-]{10}", str(values[0])))
    if is_date:
        plain = np.array([_day(value) for value in values.tolist()])
        found += [(f"{name}: day {k}", _weekday(plain) == k) for k in range(1, 8)]
        found += [(f"{name}: month {k}", _month(plain) == k) for k in range(1, 13)]
    levels = np.unique(plain[~np.isnan(plain)] if plain.dtype.kind == "f" else plain)
    if len(levels) <= 12:
        found += [(f"{name} = {level}", plain == level) for level in levels]
    if plain.dtype.kind in "if":
        known = np.flatnonzero(~np.isnan(plain))
        order = known[np.argsort(plain[known], kind="stable")]
        for k, rows in enumerate(np.array_split(order, 10)):
            inside = np.zeros(len(plain), dtype=bool)
            inside[rows] = True
            found.append((f"{name}: tenth {k + 1}", inside))
    return [(part, rows) for part, rows in found if rows.any()]


def check(name: str, seed: int) -> list[str]:
    """Return what does not hold for a table: the rule written twice, the share, a part that is mostly wrong."""
    import forms

    table = p.plant(name, TABLES[name], seed)
    made, wrong, n = table.made, table.wrong, len(table.labels)
    said = []
    off = np.abs(by_hand(made) - table.labels) > 0.4 * 10.0**-made.places
    if (off != wrong).any():
        said.append(f"the two rules differ in {(off != wrong).sum()} rows")
    text = "y = " + " + ".join(f"{value:.15g}" for value in written_numbers(made.form, list(made.columns)))
    if not forms.is_authors(made.form, text, made.form.columns):
        said.append(f"numbers {text}, not {made.form.numbers}")
    if abs(wrong.mean() - made.share) > 4 * math.sqrt(made.share * (1 - made.share) / n):
        said.append(f"wrong {wrong.mean():.3f}, not {made.share}")
    if not (0.08 <= made.share <= 0.45 and 300 <= n <= 5000 and 3 <= len(made.columns) <= 15):
        said.append(f"share {made.share}, {n} rows, {len(made.columns)} columns")
    for column, values in {**made.columns, made.target: table.clean}.items():
        if column == made.id and values.dtype.kind == "U":
            continue
        parts = [(part, rows) for part, rows in _parts(column, values) if wrong[rows].mean() > 0.5]
        said += [f"{part}: {wrong[rows].mean():.2f} of {rows.sum()} wrong" for part, rows in parts]
    for kind in made.errors:
        if not (table.kinds == kind).any():
            said.append(f"no row is wrong by {kind}")
    return said


def main() -> None:
    """Check all tables for seeds 1 to 3, or those that are named."""
    failed = 0
    for name in TABLES:
        for seed in [int(seed) for seed in sys.argv[1:]] or [1, 2, 3]:
            for line in check(name, seed):
                failed += 1
                print(f"{name}, seed {seed}: {line}")
    print(f"{len(TABLES)} tables, {failed} complaints")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
