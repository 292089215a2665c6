"""Forty more tables of trades and forms: a second blind set, with more wrong rows than the first.

They were written by somebody who had seen neither the search nor what it can do, and nothing was tuned on them. A
beekeeper, a ward, an auction, a school trip, a pawn shop: each writes its own rule, some one line of arithmetic (01 to
13), some with a category, a cap, a started unit, a bracket or dates (14 to 27), some with several of these at once (28
to 40). Every rule is determined by the columns. From 9 to 43 % of the values are wrong, in rows chosen at random: ten
tables each below 15, 25, 35 and 45 %. In no level, weekday, month or tenth of a column does one mistake hold on as many
rows as the rule.

Each rule stands here twice, written by hand: as NumPy in the maker, and as the text ``Form.terms``, an expression on
one row. ``python benchmarks/trade_tables.py --check`` writes each table to its file, reads that file back without
massart, computes the text in exact fractions from what stands there, and asserts that exactly the declared rows are
off.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import blind_tables as blind
import planted as p
from planted import Cut, FloatArray, Form, Generator, Made, Make

TABLES: dict[str, Make] = {}
"""The tables by name."""


def _table(make: Make) -> Make:
    TABLES[make.__name__.strip("_").replace("_", "-")] = make
    return make


def _yes(rng: Generator, n: int, share: float, yes: str = "yes", no: str = "no") -> NDArray[Any]:
    """Return a text for each row, with a share of one of two."""
    return np.where(rng.random(n) < share, yes, no)


def _blank(values: NDArray[Any]) -> FloatArray:
    """Return a column in which nothing is written for zero."""
    return np.where(values == 0, np.nan, values.astype(float))


def _whole(rng: Generator, n: int, shape: float, mean: float, low: int = 1) -> NDArray[np.int64]:
    """Return whole amounts of a skewed distribution that begins at the lowest one."""
    return np.rint(rng.gamma(shape, (mean - low) / shape, n) + low).astype(np.int64)


def _else(rng: Generator, found: FloatArray, exact: FloatArray, places: int) -> FloatArray:
    """Return wrong values; where one is the right one, a digit of it is mistyped."""
    same = np.abs(p.rounded(np.asarray(found, float), places) - p.rounded(exact, places)) < 0.5 * 10.0**-places
    return np.where(same, p.one_digit(rng, exact, places), found)


def _errors(
    rng: Generator, exact: FloatArray, own: Mapping[str, FloatArray], *ways: str, places: int = 2
) -> dict[str, FloatArray]:
    """Return the values of a table's own mistakes, and those of the ways in which any table is wrong."""
    n, size = len(exact), max(float(np.median(np.abs(exact))), 10.0 ** (1 - places))
    step = 10.0 ** (math.floor(math.log10(size)) - 1)
    general = {
        "digits": lambda: p.one_digit(rng, exact, places),
        "swapped": lambda: p.swapped(rng, exact, places),
        "another row": lambda: p.another_row(rng, exact),
        "ten times": lambda: p.scaled(rng, exact),
        "hundred times": lambda: 100 * exact,
        "zero": lambda: np.zeros(n),
        "off by": lambda: exact + step * rng.choice([-5, -2, -1, 1, 2, 5], n),
        "guessed": lambda: rng.uniform(0.3, 2.0, n) * size,
    }
    found = {**own, **{way: general[way]() for way in ways}}
    return {kind: _else(rng, values, exact, places) for kind, values in found.items()}


def _form(
    text: str,
    columns: tuple[str, ...],
    others: Sequence[tuple[float | Cut, ...]] = (),
    cuts: Mapping[float, Cut] | None = None,
    free_scale: bool = False,
) -> Form:
    """Return the form of an author, with the numbers as they stand in the text; limits may lie between two values."""
    numbers = blind.written_numbers(Form(text, columns), columns)
    limits = cuts or {}
    own = tuple(limits.get(number, number) for number in numbers)
    return Form(text, columns, own, tuple(others), free_scale=free_scale)


def _up(values: FloatArray) -> FloatArray:
    return np.ceil(values - 1e-9)


def _to(values: FloatArray, step: float) -> FloatArray:
    """Round half up to a multiple of a step."""
    return np.floor(values / step + 0.5 + 1e-9) * step


def _weekday(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def _levels(values: Sequence[float]) -> list[tuple[float, ...]]:
    """Return the ways to write constants by level: each, or one of them and what the others add to it."""
    relative = [(base, *(v - base for j, v in enumerate(values) if j != k)) for k, base in enumerate(values)]
    return [tuple(values), *relative]


# One line of arithmetic.


@_table
def _01_honey_harvest(rng: Generator) -> Made:
    n = 800
    frames = rng.choice([8, 9, 10, 11], n)
    empty = np.round(4.2 + 0.28 * frames + rng.normal(0, 0.25, n), 1)
    full = np.round(empty + rng.gamma(9, 1.5, n) + 0.5, 1)
    exact = full - empty
    columns = {
        "super": p.codes("H", n),
        "date": p.iso(p.days(rng, n, "2023-05-20", 80)),
        "apiary": rng.choice(["heath", "limes", "mill", "orchard"], n),
        "frames": frames,
        "full_kg": full,
        "empty_kg": empty,
        "water_pct": np.round(rng.normal(17.4, 0.6, n), 1),
    }
    own = {"not tared": full, "frames taken off": full - 0.3 * frames}
    errors = _errors(rng, exact, own, "another row", "digits", "ten times", "guessed", places=1)
    form = _form("full_kg - empty_kg", ("full_kg", "empty_kg"))
    return Made(columns, "honey_kg", exact, form, 0.41, errors, places=1, id="super")


@_table
def _02_vat_return(rng: Generator) -> Made:
    n = 1100
    high, low = p.money(rng, 900, 60_000, n), np.where(rng.random(n) < 0.7, p.money(rng, 100, 20_000, n), 0)
    bought = np.round((0.19 * high + 0.07 * low) * rng.uniform(0.1, 1.2, n), 2)
    exact = 0.19 * high + 0.07 * low - bought
    columns = {
        "Mandant": p.codes("M", n),
        "Monat": rng.integers(1, 13, n),
        "Branche": rng.choice(["Bau", "Gastronomie", "Handel", "Handwerk"], n),
        "Umsatz 19": high,
        "Umsatz 7": low,
        "Vorsteuer": bought,
        "Belege": rng.integers(12, 400, n),
    }
    own = {
        "input tax forgotten": exact + bought,
        "rates of 2020": 0.16 * high + 0.05 * low - bought,
        "7 % forgotten": exact - 0.07 * low,
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    form = _form("0.19*`Umsatz 19` + 0.07*`Umsatz 7` - Vorsteuer", ("Umsatz 19", "Umsatz 7", "Vorsteuer"))
    return Made(columns, "Zahllast", exact, form, 0.12, errors, id="Mandant", layout="decimal comma")


@_table
def _03_deposits(rng: Generator) -> Made:
    n = 1900
    crates_out, kegs_out = _whole(rng, n, 2, 14), np.where(rng.random(n) < 0.5, rng.integers(1, 7, n), 0)
    crates_back = np.rint(crates_out * rng.uniform(0, 1.5, n)).astype(int)
    kegs_back = np.where(rng.random(n) < 0.5, rng.integers(1, 7, n), 0)
    exact = 3.1 * (crates_out - crates_back) + 30.0 * (kegs_out - kegs_back)
    columns = {
        "note": np.arange(51_001, 51_001 + n),
        "driver": rng.choice(["Ben", "Karl", "Mira", "Olaf"], n),
        "customer": rng.integers(100, 340, n),
        "crates_out": crates_out,
        "crates_back": _blank(crates_back),
        "kegs_out": _blank(kegs_out),
        "kegs_back": _blank(kegs_back),
        "tour": rng.choice(["east", "north", "south"], n),
    }
    own = {
        "returned crates forgotten": exact + 3.1 * crates_back,
        "returned kegs forgotten": exact + 30.0 * kegs_back,
        "old deposit on kegs": exact - 5.0 * (kegs_out - kegs_back),
        "sign": -exact,
    }
    errors = _errors(rng, exact, own, "another row", "digits")
    read = ("crates_out", "crates_back", "kegs_out", "kegs_back")
    form = _form("3.1*(crates_out - crates_back) + 30*(kegs_out - kegs_back)", read, ((3.1, 3.1, 30.0, 30.0),))
    return Made(columns, "deposit", exact, form, 0.30, errors, id="note", layout="tsv")


@_table
def _04_braden_scale(rng: Generator) -> Made:
    n = 1400
    frail = rng.normal(0, 0.6, n)
    names = ("sensory", "moisture", "activity", "mobility", "nutrition")
    items = {name: np.rint(rng.normal(2.9, 0.7, n) - frail).clip(1, 4).astype(int) for name in names}
    items["friction"] = np.rint(rng.normal(2.2, 0.6, n) - 0.5 * frail).clip(1, 3).astype(int)
    exact = np.sum(list(items.values()), axis=0).astype(float)
    columns = {
        "patient": p.codes("P", n),
        "ward": rng.choice(["2A", "2B", "5C", "ICU"], n),
        "age": rng.integers(24, 97, n),
        **items,
        "nurse": rng.choice(["AL", "CS", "DM", "PR"], n),
    }
    own = {
        "friction forgotten": exact - items["friction"],
        "nutrition forgotten": exact - items["nutrition"],
        "activity twice": exact + items["activity"],
    }
    errors = _errors(rng, exact, own, "another row", "digits", "swapped", places=0)
    form = _form("sensory + moisture + activity + mobility + nutrition + friction", tuple(items))
    return Made(columns, "score", exact, form, 0.36, errors, places=0, id="patient", layout="workbook")


@_table
def _05_beams(rng: Generator) -> Made:
    n = 1500
    pieces, length = _whole(rng, n, 1.5, 9), rng.integers(15, 80, n) / 10
    width = rng.choice([60, 80, 100, 120, 140], n)
    height = np.maximum(width, rng.choice([100, 120, 160, 180, 200, 240], n))
    exact = pieces * width * height * length / 1_000_000
    columns = {
        "pos": np.arange(1, n + 1),
        "part": rng.choice(["collar", "post", "purlin", "rafter", "sill"], n),
        "wood": rng.choice(["C24", "GL24h", "larch"], n),
        "pieces": pieces,
        "width_mm": width,
        "height_mm": height,
        "length_m": length,
        "planed": _yes(rng, n, 0.4),
    }
    own = {
        "one piece": exact / pieces,
        "width squared": exact / height * width,
        "a metre too long": exact / length * (length + 1),
    }
    errors = _errors(rng, exact, own, "ten times", "digits", "another row", places=3)
    read = ("pieces", "width_mm", "height_mm", "length_m")
    form = _form("pieces*width_mm*height_mm*length_m/1000000", read, ((1000.0, 1000.0), (1.0e6,)))
    return Made(columns, "m3", exact, form, 0.22, errors, places=3, id="pos", layout="total")


@_table
def _06_seed_rate(rng: Generator) -> Made:
    n = 650
    crop, mean = p.pick(rng, {"barley": 48.0, "oats": 36.0, "rye": 33.0, "wheat": 47.0}, n)
    grain, germination = np.round(mean + rng.normal(0, 3, n), 1), rng.integers(82, 99, n)
    seeds = rng.integers(20, 46, n) * 10
    exact = seeds * grain / germination
    columns = {
        "field": p.codes("F", n),
        "crop": crop,
        "variety": rng.integers(1, 30, n),
        "hectares": np.round(rng.gamma(2, 2.5, n) + 0.3, 2),
        "seeds_m2": seeds,
        "tgw_g": grain,
        "germination": germination,
    }
    own = {"germination forgotten": seeds * grain / 100, "multiplied": seeds * grain * germination / 10_000}
    errors = _errors(rng, exact, own, "another row", "swapped", "off by", "ten times", places=1)
    form = _form("seeds_m2*tgw_g/germination", ("seeds_m2", "tgw_g", "germination"))
    return Made(columns, "kg_ha", exact, form, 0.28, errors, places=1, id="field")


@_table
def _07_hops(rng: Generator) -> Made:
    n = 1000
    hop, mean = p.pick(rng, {"Cascade": 6.2, "Magnum": 13.5, "Saaz": 3.4, "Tettnang": 4.4}, n)
    alpha = np.round(mean * rng.uniform(0.85, 1.15, n), 1)
    litres, used = rng.choice([20, 50, 200, 500, 1000], n), np.round(rng.normal(22, 4.5, n).clip(6, 34), 1)
    grams = np.rint(litres * rng.uniform(0.6, 3.2, n)).astype(int)
    exact = grams * alpha * used / (10 * litres)
    columns = {
        "brew": p.codes("S", n),
        "brewed": p.day_month(p.days(rng, n)),
        "hop": hop,
        "grams": grams,
        "alpha": alpha,
        "boil_min": np.rint(used * 2.6 + rng.normal(0, 4, n)).clip(5, 90).astype(int),
        "utilisation": used,
        "litres": litres,
    }
    own = {
        "alpha of last year": grams * (alpha - 0.6) * used / (10 * litres),
        "usual utilisation": grams * alpha * 25 / (10 * litres),
    }
    errors = _errors(rng, exact, own, "another row", "ten times", "digits", places=1)
    form = _form("grams*alpha*utilisation/(10*litres)", ("grams", "alpha", "utilisation", "litres"))
    return Made(columns, "ibu", exact, form, 0.18, errors, places=1, id="brew", layout="tsv")


@_table
def _08_fuel_use(rng: Generator) -> Made:
    n = 2200
    kind, mean = p.pick(rng, {"car": 6.4, "lorry": 27.0, "van": 9.1}, n)
    driven = rng.integers(180, 1400, n)
    before = rng.integers(4000, 290_000, n)
    litres = np.round(driven * mean * rng.normal(1, 0.12, n) / 100, 2)
    exact = 100 * litres / driven
    columns = {
        "filled": p.iso(p.days(rng, n)),
        "vehicle": rng.integers(1, 46, n),
        "kind": kind,
        "km_before": before,
        "km_now": before + driven,
        "litres": litres,
        "paid": np.round(litres * rng.normal(1.72, 0.06, n), 2),
    }
    own = {"kilometres to the litre": driven / litres, "price for litres": 100 * columns["paid"] / driven}
    errors = _errors(rng, exact, own, "another row", "swapped", "digits", "ten times", "guessed", places=1)
    form = _form("100*litres/(km_now - km_before)", ("litres", "km_now", "km_before"))
    return Made(columns, "l_100km", exact, form, 0.43, errors, places=1)


@_table
def _09_term_mark(rng: Generator) -> Made:
    n = 320
    able = rng.normal(2.9, 0.8, n)
    written = np.round((able + rng.normal(0, 0.5, n)).clip(1, 6), 2)
    oral = np.round(2 * (able + rng.normal(-0.2, 0.6, n)).clip(1, 6)) / 2
    exact = (2 * written + oral) / 3
    columns = {
        "pupil": p.codes("K", n),
        "form": rng.choice(["7a", "7b", "8a", "8c"], n),
        "tests": rng.integers(2, 6, n),
        "written": written,
        "oral": oral,
        "absent_days": rng.integers(0, 12, n),
    }
    own = {"plain mean": (written + oral) / 2, "oral twice": (written + 2 * oral) / 3}
    errors = _errors(rng, exact, own, "digits", "another row", places=1)
    form = _form("(2*written + oral)/3", ("written", "oral"), ((2 / 3, 1 / 3), (1.5, 3.0), (2 / 3, 3.0)))
    return Made(columns, "mark", exact, form, 0.09, errors, places=1, id="pupil")


@_table
def _10_service_charges(rng: Generator) -> Made:
    n, houses = 700, 18
    costs, areas = np.round(rng.uniform(9000, 52_000, houses), 2), np.round(rng.uniform(380, 2400, houses), 1)
    house, area = rng.integers(houses, size=n), np.round(rng.gamma(15, 4.8, n) + 18, 1)
    share = costs[house] * area / areas[house]
    paid = 12 * np.rint(share * rng.uniform(0.75, 1.15, n) / 12 / 5) * 5
    exact = share - paid
    columns = {
        "Wohnung": p.codes("W", n),
        "Haus": house + 1,
        "Kosten": costs[house],
        "Gesamtfläche": areas[house],
        "Wohnfläche": area,
        "Vorauszahlung": paid.astype(int),
        "Personen": rng.integers(1, 6, n),
        "Einzug": rng.integers(1992, 2023, n),
    }
    own = {
        "payments forgotten": share,
        "a month's payment forgotten": exact + paid / 12,
        "sign": -exact,
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "another row")
    read = ("Kosten", "Gesamtfläche", "Wohnfläche", "Vorauszahlung")
    form = _form("Kosten*Wohnfläche/Gesamtfläche - Vorauszahlung", read)
    return Made(columns, "Nachzahlung", exact, form, 0.26, errors, id="Wohnung", layout="titles")


@_table
def _11_pharmacy(rng: Generator) -> Made:
    n = 3600
    cost = p.money(rng, 1.2, 420, n)
    exact = 1.19 * (1.03 * cost + 8.56)
    columns = {
        "pzn": np.arange(1_400_021, 1_400_021 + n),
        "form": rng.choice(["capsules", "drops", "ointment", "tablets"], n),
        "pack": rng.choice(["N1", "N2", "N3"], n),
        "purchase": cost,
        "stock": rng.integers(0, 40, n),
        "maker": rng.integers(1, 60, n),
    }
    own = {
        "VAT forgotten": 1.03 * cost + 8.56,
        "fixed amount forgotten": 1.19 * 1.03 * cost,
        "fee of 2012": 1.19 * (1.03 * cost + 8.1),
    }
    errors = _errors(rng, exact, own, "another row", "swapped", "digits")
    form = _form("1.19*(1.03*purchase + 8.56)", ("purchase",), ((1.2257, 10.1864), (1.2257, 1.19, 8.56)))
    return Made(columns, "price", exact, form, 0.38, errors, id="pzn", layout="jsonl")


@_table
def _12_gas_kwh(rng: Generator) -> Made:
    n = 5000
    town, z = p.pick(rng, {"Alden": 0.9524, "Birk": 0.9471, "Celm": 0.9387, "Dorn": 0.9612}, n)
    before = rng.integers(100, 80_000, n)
    used = _whole(rng, n, 2.2, 1100, 20)
    heat = rng.choice([10.284, 10.871, 11.206, 11.343, 11.471], n)
    exact = used * z * heat
    columns = {
        "meter": np.arange(300_001, 300_001 + n),
        "town": town,
        "before": before,
        "now": before + used,
        "z_number": z,
        "kwh_m3": heat,
        "flat": _yes(rng, n, 0.6),
    }
    own = {
        "cubic metres": used.astype(float),
        "z forgotten": used * heat,
        "factor ten": 10.0 * used,
        "reading of now": columns["now"] * z * heat,
    }
    errors = _errors(rng, exact, own, "another row", "digits", places=0)
    form = _form("(now - before)*z_number*kwh_m3", ("now", "before", "z_number", "kwh_m3"))
    return Made(columns, "kwh", exact, form, 0.17, errors, places=0, id="meter", layout="parquet")


@_table
def _13_index_rent(rng: Generator) -> Made:
    n = 500
    rent = p.money(rng, 420, 2100, n)
    before = np.round(rng.uniform(94, 108, n), 1)
    now = np.round(before + rng.gamma(3, 4, n) + 1.5, 1)
    exact = rent * now / before
    columns = {
        "bail": p.codes("B", n),
        "depuis": p.iso(p.days(rng, n, "2012-01-01", 3000)),
        "loyer": rent,
        "indice_base": before,
        "indice": now,
        "charges": rng.integers(4, 30, n) * 10,
        "étage": rng.integers(0, 8, n),
    }
    own = {
        "points as per cent": rent * (1 + (now - before) / 100),
        "not raised": rent,
        "upside down": rent * before / now,
    }
    errors = _errors(rng, exact, own, "swapped", "off by", "digits")
    form = _form("loyer*indice/indice_base", ("loyer", "indice", "indice_base"))
    return Made(columns, "nouveau loyer", exact, form, 0.33, errors, id="bail", layout="euros")


# A category, a cap, a started unit, a bracket or dates.


@_table
def _14_tiles(rng: Generator) -> Made:
    n = 900
    area, pack = np.round(rng.gamma(2, 14, n) + 2, 1), rng.choice([1.08, 1.2, 1.44, 1.62, 1.92], n)
    exact = _up(1.1 * area / pack)
    columns = {
        "order": p.codes("T", n),
        "room": rng.choice(["bath", "hall", "kitchen", "terrace"], n),
        "m2": area,
        "pack_m2": pack,
        "format": rng.choice(["20x20", "30x60", "60x60"], n),
        "laid_by": rng.choice(["Haas", "Moreno", "Novak"], n),
    }
    own = {"waste forgotten": _up(area / pack), "rounded down": exact - 1, "square metres": _up(1.1 * area)}
    errors = _errors(rng, exact, own, "another row", "digits", "ten times", places=0)
    form = _form("ceil(1.1*m2/pack_m2)", ("m2", "pack_m2"))
    return Made(columns, "packs", exact, form, 0.20, errors, places=0, id="order")


@_table
def _15_walls(rng: Generator) -> Made:
    n = 1200
    length, width = np.round(rng.uniform(2.2, 8.5, n), 2), np.round(rng.uniform(1.8, 6, n), 2)
    height = rng.choice([2.4, 2.5, 2.65, 2.8, 3.2], n)
    doors, windows = rng.choice([1, 2, 3], n, p=[0.6, 0.3, 0.1]), rng.integers(0, 5, n)
    walls = 2 * (length + width) * height
    exact = walls - 1.9 * doors - 1.5 * windows
    columns = {
        "Raum": p.codes("R", n),
        "Objekt": rng.choice(["Altbau", "Büro", "Neubau", "Schule"], n),
        "Länge": length,
        "Breite": width,
        "Höhe": height,
        "Türen": doors,
        "Fenster": windows,
        "Farbe": rng.choice(["ocker", "sand", "weiß"], n),
    }
    own = {
        "doors forgotten": walls - 1.5 * windows,
        "windows forgotten": walls - 1.9 * doors,
        "nothing taken off": walls,
        "floor": length * width,
    }
    errors = _errors(rng, exact, own, "swapped", "another row")
    read = ("Länge", "Breite", "Höhe", "Türen", "Fenster")
    form = _form("2*(Länge + Breite)*Höhe - 1.9*Türen - 1.5*Fenster", read, ((2.0, 2.0, 1.9, 1.5),))
    return Made(columns, "Wandfläche", exact, form, 0.37, errors, id="Raum", layout="decimal comma")


@_table
def _16_blood_alcohol(rng: Generator) -> Made:
    n = 1300
    sex, share = p.pick(rng, {"f": 0.6, "m": 0.7}, n)
    kg = np.rint(rng.normal(76, 13, n) - 10 * (sex == "f")).clip(45, 130).astype(int)
    grams, hours = rng.integers(12, 130, n), rng.integers(1, 13, n) / 2
    drunk = grams / (share * kg)
    exact = np.maximum(0, drunk - 0.15 * hours)
    columns = {
        "case": p.codes("BA", n),
        "date": p.iso(p.days(rng, n)),
        "sex": sex,
        "age": rng.integers(16, 80, n),
        "kg": kg,
        "grams": grams,
        "hours": hours,
        "accident": _yes(rng, n, 0.2),
    }
    own = {
        "sex forgotten": np.maximum(0, grams / (0.7 * kg) - 0.15 * hours),
        "time forgotten": drunk,
        "burnt too fast": np.maximum(0, drunk - 0.2 * hours),
    }
    errors = _errors(rng, exact, own, "digits", "another row")
    text = "max(0, grams/({'f': 0.6, 'm': 0.7}[sex]*kg) - 0.15*hours)"
    ways = tuple((*way, 0.15) for way in _levels((1 / 0.6, 1 / 0.7)))
    form = _form(text, ("sex", "kg", "grams", "hours"), (*ways, (0.6, 0.1, 0.15), (0.7, 0.1, 0.15)))
    return Made(columns, "per_mille", exact, form, 0.27, errors, id="case")


@_table
def _17_auction(rng: Generator) -> Made:
    n = 1700
    hammer = 50 * np.rint(np.exp(rng.normal(8.6, 1.1, n)) / 50).clip(1, None)
    over = np.maximum(0, hammer - 10_000)
    exact = hammer + 0.25 * np.minimum(hammer, 10_000) + 0.2 * over
    columns = {
        "lot": np.arange(1, n + 1),
        "sale": rng.choice(["books", "clocks", "paintings", "silver"], n),
        "estimate": 100 * np.rint(hammer * rng.uniform(0.5, 1.3, n) / 100),
        "bids": rng.integers(1, 25, n),
        "hammer": hammer.astype(int),
        "buyer": rng.integers(1000, 1400, n),
        "online": _yes(rng, n, 0.45),
    }
    own = {
        "one rate": 1.25 * hammer,
        "premium forgotten": hammer,
        "old premium": exact - 0.03 * hammer,
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "another row")
    cut = 10_000.0
    others = ((1.25, 0.05, cut), (1.25, 1.2, cut, cut), (0.25, 0.05, cut), (0.2, 0.05, cut), (1.2, 0.05, cut))
    text = "hammer + 0.25*min(hammer, 10000) + 0.2*max(0, hammer - 10000)"
    form = _form(text, ("hammer",), (*others, (1.2, 500.0, 1.25, cut), (1.2, 500.0, 1.25)))
    return Made(columns, "invoice", exact, form, 0.14, errors, id="lot", layout="dollars")


@_table
def _18_rainwater(rng: Generator) -> Made:
    n = 2600
    rates = {"Asphalt": 0.92, "Gründach": 0.18, "Kies": 0.37, "Pflaster": 0.64}
    surface, rate = p.pick(rng, rates, n)
    area = _whole(rng, n, 2, 120, 8)
    exact = np.maximum(12, rate * area)
    columns = {
        "Flurstück": p.codes("FL", n),
        "Straße": rng.choice(["Am Anger", "Bachweg", "Lindenallee", "Ring"], n),
        "Belag": surface,
        "Fläche": area,
        "Grundstück": np.rint(area * rng.uniform(1.5, 8, n)).astype(int),
        "Zisterne": _yes(rng, n, 0.2, "ja", "nein"),
    }
    own = {
        "minimum forgotten": rate * area,
        "all as asphalt": np.maximum(12, 0.92 * area),
        "whole plot": np.maximum(12, rate * columns["Grundstück"]),
        "old rates": np.maximum(10, 0.9 * rate * area),
    }
    errors = _errors(rng, exact, own, "another row", "digits")
    text = f"max(12, {rates!r}[Belag]*Fläche)"
    others = tuple((12.0, *way) for way in _levels(tuple(rates.values())))
    form = _form(text, ("Belag", "Fläche"), (*others, *((*way, 0.01) for way in others)))
    return Made(columns, "Gebühr", exact, form, 0.36, errors, rounding="down", id="Flurstück", layout="titles")


@_table
def _19_tourist_tax(rng: Generator) -> Made:
    n = 3000
    adults, nights = rng.choice([1, 2, 3, 4, 6], n, p=[0.2, 0.5, 0.13, 0.12, 0.05]), _whole(rng, n, 2, 6)
    children = rng.choice([0, 1, 2, 3], n, p=[0.55, 0.18, 0.2, 0.07])
    exact = 2.5 * adults * np.minimum(nights, 7)
    columns = {
        "form_no": np.arange(7001, 7001 + n),
        "arrival": p.day_month(p.days(rng, n, "2023-04-15", 170)),
        "house": rng.choice(["Alpenblick", "Krone", "Lodge", "Pension Eva"], n),
        "adults": adults,
        "children": children,
        "nights": nights,
        "room": rng.integers(1, 45, n),
    }
    own = {
        "not capped": 2.5 * adults * nights,
        "children too": 2.5 * (adults + children) * np.minimum(nights, 7),
        "one person": 2.5 * np.minimum(nights, 7),
        "old rate": 0.8 * exact,
    }
    errors = _errors(rng, exact, own, "another row", "digits", "zero")
    form = _form("2.5*adults*min(nights, 7)", ("adults", "nights"), ((2.5, 17.5),))
    return Made(columns, "tax", exact, form, 0.40, errors, id="form_no", layout="total")


@_table
def _20_childminder(rng: Generator) -> Made:
    n = 1000
    age, hours = rng.integers(8, 73, n), rng.integers(8, 170, n) / 2
    meals = np.rint(hours / 6 * rng.uniform(0, 1, n)).astype(int)
    small = age < 36
    exact = np.where(small, 6.4, 5.5) * hours + 3.8 * meals
    columns = {
        "child": p.codes("C", n),
        "month": rng.integers(1, 13, n),
        "minder": rng.choice(["Berg", "Dahl", "Lund", "Moe"], n),
        "age_months": age,
        "hours": hours,
        "meals": meals,
        "siblings": rng.integers(0, 4, n),
    }
    own = {
        "age not looked at": 5.5 * hours + 3.8 * meals,
        "meals forgotten": exact - 3.8 * meals,
        "old rates": exact - 0.3 * hours,
    }
    errors = _errors(rng, exact, own, "swapped", "ten times", "digits")
    cut = Cut.of(age, 36)
    others = ((6.4, 0.9, 3.8, cut), (5.5, 0.9, 3.8, cut), (6.4, 5.5, 3.8, cut, cut))
    text = "(6.4 if age_months < 36 else 5.5)*hours + 3.8*meals"
    form = _form(text, ("age_months", "hours", "meals"), others, {36.0: cut})
    return Made(columns, "bill", exact, form, 0.13, errors, id="child", layout="workbook")


@_table
def _21_steel(rng: Generator) -> Made:
    n = 1600
    masses = {"IPE 80": 6.0, "IPE 100": 8.1, "IPE 120": 10.4, "IPE 160": 15.8, "IPE 200": 22.4}
    profile, mass = p.pick(rng, masses, n)
    pieces, length = _whole(rng, n, 1.5, 7), rng.integers(16, 241, n) / 20
    exact = mass * length * pieces
    columns = {
        "item": np.arange(1, n + 1),
        "drawing": rng.integers(100, 190, n),
        "profile": profile,
        "length": length,
        "pieces": pieces,
        "grade": rng.choice(["S235", "S355"], n),
        "galvanised": _yes(rng, n, 0.5),
    }
    own = {
        "another profile": p.another_row(rng, mass) * length * pieces,
        "one piece": mass * length,
        "a piece more": mass * length * (pieces + 1),
    }
    errors = _errors(rng, exact, own, "ten times", "digits", "off by", places=1)
    others = tuple(_levels(tuple(masses.values()))[1:])
    form = _form(f"{masses!r}[profile]*length*pieces", ("profile", "length", "pieces"), others)
    return Made(columns, "kg", exact, form, 0.31, errors, places=1, id="item", layout="tsv")


@_table
def _22_weeks_pregnant(rng: Generator) -> Made:
    n = 1100
    last, since = p.days(rng, n), rng.integers(34, 289, n)
    exact = np.floor(since / 7)
    columns = {
        "visit_no": p.codes("MW", n),
        "last_period": p.iso(last),
        "visit": p.iso(last + since),
        "mother_age": rng.integers(17, 46, n),
        "weight_kg": np.round(rng.normal(70, 10, n), 1),
        "pulse": rng.integers(58, 105, n),
        "midwife": rng.choice(["Ines", "Ruth", "Tove"], n),
    }
    own = {
        "a week more": exact + 1,
        "two weeks less": exact - 2,
        "weeks to go": np.maximum(0, 40 - exact),
        "lunar months": np.floor(since / 28),
    }
    errors = _errors(rng, exact, own, "another row", "digits", places=0)
    form = _form("floor((day(visit) - day(last_period))/7)", ("last_period", "visit"))
    return Made(columns, "weeks", exact, form, 0.13, errors, places=0, id="visit_no")


@_table
def _23_lawyer(rng: Generator) -> Made:
    n = 1200
    rate, minutes = rng.choice([220, 260, 280, 320, 350, 420], n), _whole(rng, n, 1.6, 55, 2)
    tenths = _up(minutes / 6)
    exact = _to(1.081 * rate * tenths / 10, 0.05)
    columns = {
        "Leistung": p.codes("L", n),
        "Datum": p.day_month(p.days(rng, n)),
        "Mandat": rng.integers(200, 290, n),
        "Anwalt": rng.choice(["BK", "FS", "MR", "TH"], n),
        "Ansatz": rate,
        "Minuten": minutes,
        "Art": rng.choice(["Brief", "Sitzung", "Studium", "Telefon"], n),
    }
    own = {
        "VAT forgotten": rate * tenths / 10,
        "not started": _to(1.081 * rate * minutes / 60, 0.05),
        "VAT of 2023": _to(1.077 * rate * tenths / 10, 0.05),
    }
    errors = _errors(rng, exact, own, "swapped", "another row", "digits")
    ways = ((1.081, 6.0, 10.0), (0.1081, 6.0), (1.081, 0.1, 6.0))
    others = tuple((*way, *more) for way in ways for more in ((), (0.05,), (0.05, 0.05), (20.0, 20.0)))
    form = _form("nearest(1.081*Ansatz*ceil(Minuten/6)/10, 0.05)", ("Ansatz", "Minuten"), others)
    return Made(columns, "Honorar", exact, form, 0.24, errors, id="Leistung", layout="swiss")


@_table
def _24_book_sheets(rng: Generator) -> Made:
    n = 600
    copies, pages = 50 * _whole(rng, n, 1.5, 18), 4 * rng.integers(8, 120, n)
    exact = copies * _up(pages / 16) + 60
    columns = {
        "Auftrag": p.codes("BD", n),
        "Titel": rng.integers(1, 300, n),
        "Auflage": copies,
        "Seiten": pages,
        "Papier": rng.choice(["Offset 80", "Offset 100", "Werkdruck"], n),
        "Bindung": rng.choice(["Faden", "Klebe"], n),
        "Maschine": rng.choice(["A", "B"], n),
    }
    own = {
        "waste forgotten": exact - 60,
        "not started": copies * np.floor(pages / 16) + 60,
        "signatures of 8": copies * _up(pages / 8) + 60,
    }
    errors = _errors(rng, exact, own, "ten times", "digits", "another row", places=0)
    form = _form("Auflage*ceil(Seiten/16) + 60", ("Auflage", "Seiten"))
    return Made(columns, "Bogen", exact, form, 0.29, errors, places=0, id="Auftrag", layout="decimal comma")


@_table
def _25_service(rng: Generator) -> Made:
    n = 2800
    guests = rng.choice(13, n, p=[0.1, 0.26, 0.14, 0.16, 0.07, 0.07, 0.03, 0.05, 0.03, 0.04, 0.02, 0.02, 0.01]) + 1
    meal = np.round(guests * rng.normal(34, 8, n).clip(9, None), 2)
    large = guests >= 8
    exact = meal * np.where(large, 1.125, 1.0)
    columns = {
        "check": np.arange(4001, 4001 + n),
        "evening": p.iso(p.days(rng, n)),
        "table": rng.integers(1, 32, n),
        "guests": guests,
        "food_and_drink": meal,
        "waiter": rng.choice(["Ada", "Joe", "Kim", "Sol"], n),
        "card": _yes(rng, n, 0.75),
    }
    own = {
        "service forgotten": meal,
        "service for all": 1.125 * meal,
        "tip on top": exact + rng.choice([5, 10, 20], n),
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "another row")
    cut = Cut.of(guests, 8)
    text = "food_and_drink*(1.125 if guests >= 8 else 1)"
    form = _form(text, ("food_and_drink", "guests"), ((1.125, cut, cut),), {8.0: cut})
    return Made(columns, "total", exact, form, 0.16, errors, id="check", layout="dollars")


@_table
def _26_sponsored_run(rng: Generator) -> Made:
    n = 600
    laps = _whole(rng, n, 4, 13)
    kind = rng.choice(3, n, p=[0.55, 0.2, 0.25])
    each = np.where(kind != 1, rng.choice([0.5, 1, 1.5, 2, 2.5, 3, 5], n), 0)
    fixed = np.where(kind != 0, rng.choice([5, 10, 15, 20, 25, 50], n), 0)
    exact = laps * each + fixed
    columns = {
        "sheet": p.codes("SP", n),
        "form": rng.choice(["5a", "5b", "6a", "6b", "7a"], n),
        "laps": laps,
        "per_lap": _blank(each),
        "fixed": _blank(fixed),
        "sponsor": rng.choice(["aunt", "firm", "grandparents", "neighbour", "parents"], n),
    }
    own = {
        "fixed amount forgotten": laps * each,
        "laps of another": p.another_row(rng, laps) * each + fixed,
        "a lap more": (laps + 1) * each + fixed,
    }
    errors = _errors(rng, exact, own, "ten times", "digits", "zero", "another row")
    form = _form("laps*per_lap + fixed", ("laps", "per_lap", "fixed"))
    return Made(columns, "donation", exact, form, 0.38, errors, id="sheet")


@_table
def _27_postage(rng: Generator) -> Made:
    n = 2400
    prices = np.array([0.85, 1.0, 1.6, 2.75])
    grams = np.minimum(1000, np.rint(np.exp(rng.normal(4.0, 1.3, n)) + 5)).astype(int)
    level, letters = np.searchsorted([21, 51, 501], grams, side="right"), _whole(rng, n, 1.2, 8)
    registered = _yes(rng, n, 0.3)
    extra = 2.65 * (registered == "yes")
    exact = letters * (prices[level] + extra)
    columns = {
        "entry": np.arange(1, n + 1),
        "sent": p.iso(p.days(rng, n)),
        "office": rng.choice(["accounts", "personnel", "sales", "works"], n),
        "grams": grams,
        "letters": letters,
        "registered": registered,
        "clerk": rng.choice(["Ott", "Peel", "Quist"], n),
    }
    own = {
        "registration forgotten": letters * prices[level],
        "next class": letters * (prices[np.minimum(level + 1, 3)] + extra),
        "old postage": letters * (prices[level] - 0.05 + extra),
        "a letter more": (letters + 1) * (prices[level] + extra),
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    limits = {float(at): Cut.of(grams, at) for at in (21, 51, 501)}
    cuts = tuple(limits.values())
    others = tuple((0.85, *more, *cuts, 2.65) for more in ((0.15, 0.6, 1.15), (0.15, 0.75, 1.9)))
    text = "letters*([0.85, 1, 1.6, 2.75][bracket(grams, 21, 51, 501)] + (2.65 if registered == 'yes' else 0))"
    both = ((0.85, 1.6, 2.75, *cuts, *cuts, 2.65), (0.85, 1.6, 2.75, *cuts, cuts[0], cuts[1], 2.65))
    form = _form(text, ("grams", "letters", "registered"), (*others, *both), limits)
    return Made(columns, "postage", exact, form, 0.21, errors, id="entry", layout="jsonl")


# Several of these at once.


@_table
def _28_heat_loss(rng: Generator) -> Made:
    n = 1500
    factors = {"attic floor": 0.8, "cellar ceiling": 0.5, "floor slab": 0.6, "roof": 1.0, "wall": 1.0, "window": 1.0}
    part, factor = p.pick(rng, factors, n)
    mean = np.array([{"window": 1.9, "wall": 0.9}.get(name, 0.6) for name in part.tolist()])
    u = np.round(mean * rng.uniform(0.3, 1.7, n), 2)
    area = np.round(rng.gamma(2.5, 22, n) * np.where(part == "window", 0.25, 1) + 1, 1)
    days = rng.choice([2950, 3180, 3400, 3720, 4100], n)
    exact = 0.024 * factor * u * area * days
    columns = {
        "line": np.arange(1, n + 1),
        "building": rng.integers(1, 180, n),
        "part": part,
        "u_value": u,
        "m2": area,
        "degree_days": days,
        "built": rng.integers(1900, 2016, n),
        "heating": rng.choice(["gas", "heat pump", "oil", "wood"], n),
    }
    own = {
        "factor forgotten": 0.024 * u * area * days,
        "average climate": 0.024 * factor * u * area * 3500,
        "after insulation": 0.024 * factor * 0.24 * area * days,
    }
    errors = _errors(rng, exact, own, "another row", "ten times", "digits", places=0)
    read = ("part", "u_value", "m2", "degree_days")
    form = _form(f"0.024*{factors!r}[part]*u_value*m2*degree_days", read, free_scale=True)
    return Made(columns, "kwh_year", exact, form, 0.11, errors, places=0, id="line")


@_table
def _29_movers(rng: Generator) -> Made:
    n = 1300
    crew, hours = rng.choice([2, 3, 4, 5], n, p=[0.35, 0.4, 0.2, 0.05]), np.round(rng.gamma(4, 1.3, n) + 1, 1)
    km = _whole(rng, n, 1.2, 60, 2)
    started = _up(2 * hours) / 2
    exact = 38 * crew * started + 1.1 * km
    columns = {
        "move": p.codes("U", n),
        "day": p.iso(p.days(rng, n)),
        "crew": crew,
        "hours": hours,
        "km": km,
        "m3": np.round(crew * hours * rng.uniform(1, 2.2, n), 0).astype(int),
        "floor": rng.integers(0, 7, n),
        "piano": _yes(rng, n, 0.06),
    }
    own = {
        "exact hours": 38 * crew * hours + 1.1 * km,
        "kilometres forgotten": exact - 1.1 * km,
        "a man less": exact - 38 * started,
        "old rate": exact - 2.5 * crew * started,
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    others = ((19.0, 2.0, 1.1), (19.0, 0.5, 1.1), (38.0, 0.5, 0.5, 1.1))
    form = _form("38*crew*ceil(2*hours)/2 + 1.1*km", ("crew", "hours", "km"), others)
    return Made(columns, "invoice", exact, form, 0.23, errors, id="move", layout="workbook")


@_table
def _30_irrigation(rng: Generator) -> Made:
    n = 2000
    needs = {"maize": 1.2, "onions": 0.95, "potatoes": 1.1, "strawberries": 0.85}
    crop, need = p.pick(rng, needs, n)
    dry, rain = np.round(rng.normal(31, 6, n).clip(12, 52), 1), np.round(rng.gamma(1.1, 12, n), 1)
    exact = np.maximum(0, need * dry - 0.8 * rain)
    columns = {
        "week": rng.integers(18, 40, n),
        "field": rng.integers(1, 60, n),
        "crop": crop,
        "et0_mm": dry,
        "rain_mm": rain,
        "soil": rng.choice(["loam", "sand", "silt"], n),
        "air_c": np.round(rng.normal(18, 4, n), 1),
    }
    own = {
        "crop forgotten": np.maximum(0, dry - 0.8 * rain),
        "rain forgotten": need * dry,
        "rain in full": np.maximum(0, need * dry - rain),
    }
    errors = _errors(rng, exact, own, "another row", "digits", "off by", places=1)
    text = f"max(0, {needs!r}[crop]*et0_mm - 0.8*rain_mm)"
    others = tuple((*way, 0.8) for way in _levels(tuple(needs.values())))
    form = _form(text, ("crop", "et0_mm", "rain_mm"), others)
    return Made(columns, "water_mm", exact, form, 0.32, errors, places=1, layout="parquet")


@_table
def _31_car_hire(rng: Generator) -> Made:
    n = 1900
    rates = {"break": 62.0, "citadine": 39.0, "compacte": 47.5, "minibus": 98.0}
    kind, rate = p.pick(rng, rates, n)
    days = _whole(rng, n, 1.6, 5)
    km = np.rint(days * rng.gamma(3, 62, n) + 8).astype(int)
    over = np.maximum(0, km - 200 * days)
    exact = rate * days + 0.25 * over
    columns = {
        "contrat": p.codes("CT", n),
        "départ": p.iso(p.days(rng, n)),
        "catégorie": kind,
        "jours": days,
        "km": km,
        "agence": rng.choice(["aéroport", "centre", "gare"], n),
        "âge": rng.integers(21, 79, n),
        "siège enfant": _yes(rng, n, 0.15, "oui", "non"),
    }
    own = {
        "kilometres forgotten": rate * days,
        "200 km in all": rate * days + 0.25 * np.maximum(0, km - 200),
        "a day more": exact + rate,
        "rate of another": exact + (p.another_row(rng, rate) - rate) * days,
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    own_rates = tuple(rates.values())
    others = (*((*way, 0.25, 200.0) for way in _levels(own_rates)), (*own_rates, 0.25, 50.0))
    text = f"{rates!r}[catégorie]*jours + 0.25*max(0, km - 200*jours)"
    form = _form(text, ("catégorie", "jours", "km"), others)
    return Made(columns, "prix", exact, form, 0.19, errors, id="contrat", layout="euros")


@_table
def _32_plumber(rng: Generator) -> Made:
    n = 1400
    day, minutes = p.days(rng, n), _whole(rng, n, 2, 70, 6)
    quarters, sunday = _up(minutes / 15), np.where(_weekday(day) == 7, 2.0, 1.0)
    exact = (49 + 18.5 * quarters) * sunday
    columns = {
        "call": p.codes("N", n),
        "date": p.day_month(day),
        "fault": rng.choice(["boiler", "drain", "leak", "tap", "toilet"], n),
        "minutes": minutes,
        "km": rng.integers(1, 40, n),
        "plumber": rng.choice(["Dee", "Ivo", "Sam"], n),
        "paid_cash": _yes(rng, n, 0.3),
    }
    own = {
        "Sunday forgotten": exact / sunday,
        "exact minutes": (49 + 18.5 * minutes / 15) * sunday,
        "call-out forgotten": 18.5 * quarters * sunday,
        "old rates": (45 + 17 * quarters) * sunday,
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    one = (49.0, 18.5, 15.0)
    others = (one, (*one, *one), (*one, 49.0, 18.5), (*one, 7.0), (49.0, 37.0, 18.5, 15.0, 15.0))
    text = "(49 + 18.5*ceil(minutes/15))*(2 if weekday(date) == 7 else 1)"
    form = _form(text, ("date", "minutes"), others)
    return Made(columns, "bill", exact, form, 0.10, errors, id="call")


@_table
def _33_wine(rng: Generator) -> Made:
    n = 2300
    bottles = np.where(rng.random(n) < 0.6, rng.choice([6, 12, 18, 24, 36], n), rng.integers(1, 31, n))
    price = np.round(np.round(rng.gamma(4, 2.8, n) + 3.5, 1) - 0.05, 2)
    goods = bottles * price
    many, sent = np.where(bottles >= 12, 0.9, 1.0), np.where(goods < 120, 6.9, 0.0)
    exact = goods * many + sent
    columns = {
        "order": np.arange(12_001, 12_001 + n),
        "ordered": p.iso(p.days(rng, n)),
        "wine": rng.choice(["Barbera", "Gamay", "Riesling", "Rioja", "Silvaner"], n),
        "vintage": rng.integers(2015, 2024, n),
        "bottles": bottles,
        "price": price,
        "club_member": _yes(rng, n, 0.3),
    }
    own = {
        "discount forgotten": goods + sent,
        "postage forgotten": goods * many,
        "postage for all": goods * many + 6.9,
        "discount for all": 0.9 * goods + sent,
    }
    errors = _errors(rng, exact, own, "digits", "another row", "off by")
    cuts = {12.0: Cut.of(bottles, 12), 120.0: Cut.of(goods, 120)}
    text = "bottles*price*(0.9 if bottles >= 12 else 1) + (6.9 if bottles*price < 120 else 0)"
    others = ((0.9, 6.9, cuts[12.0], cuts[12.0], cuts[120.0]),)
    form = _form(text, ("bottles", "price"), others, cuts)
    return Made(columns, "to_pay", exact, form, 0.28, errors, id="order", layout="dollars")


@_table
def _34_annuity(rng: Generator) -> Made:
    n = 900
    loan, months = 500 * _whole(rng, n, 1.6, 70, 4), 12 * rng.integers(2, 26, n)
    rate = rng.choice([2.4, 3.0, 3.65, 4.2, 4.8, 5.5, 6.9], n)
    monthly = rate / 1200
    exact = loan * monthly / (1 - (1 + monthly) ** -months.astype(float))
    columns = {
        "contract": p.codes("D", n),
        "branch": rng.choice(["Aalst", "Gent", "Leuven"], n),
        "loan": loan,
        "rate_pct": rate,
        "months": months,
        "income": np.rint(exact * rng.uniform(2.5, 9, n)).astype(int),
        "purpose": rng.choice(["car", "house", "kitchen", "roof"], n),
    }
    own = {
        "interest only": loan * monthly,
        "first month": loan / months + loan * monthly,
        "a year more": loan * monthly / (1 - (1 + monthly) ** -(months + 12.0)),
    }
    errors = _errors(rng, exact, own, "swapped", "another row", "digits")
    text = "loan*rate_pct/1200/(1 - (1 + rate_pct/1200)**(-months))"
    form = _form(text, ("loan", "rate_pct", "months"), ((1200.0,), (12.0, 12.0)), free_scale=True)
    return Made(columns, "instalment", exact, form, 0.14, errors, id="contract", layout="parquet")


@_table
def _35_class_trip(rng: Generator) -> Made:
    n = 420
    pupils, bus = rng.integers(14, 33, n), 10 * rng.integers(22, 96, n)
    entry = rng.integers(0, 37, n) / 2 + np.where(rng.random(n) < 0.5, 0.3, 0)
    each = bus / pupils + entry
    exact = _up(2 * each) / 2
    columns = {
        "trip": p.codes("KF", n),
        "goal": rng.choice(["castle", "farm", "museum", "theatre", "zoo"], n),
        "date": p.iso(p.days(rng, n)),
        "pupils": pupils,
        "teachers": rng.choice([2, 3], n),
        "bus": bus,
        "entry": np.round(entry, 2),
    }
    own = {
        "not rounded up": each,
        "entry forgotten": _up(2 * bus / pupils) / 2,
        "teachers pay too": _up(2 * (bus / (pupils + columns["teachers"]) + entry)) / 2,
    }
    errors = _errors(rng, exact, own, "another row", "swapped")
    form = _form("ceil(2*(bus/pupils + entry))/2", ("bus", "pupils", "entry"), ((0.5, 0.5), (0.5,)))
    return Made(columns, "per_pupil", exact, form, 0.12, errors, id="trip", layout="workbook")


@_table
def _36_dog_food(rng: Generator) -> Made:
    n = 1000
    factors = {"intact": 1.8, "neutered": 1.6, "overweight": 1.0, "senior": 1.4, "working": 3.0}
    kind, factor = p.pick(rng, factors, n)
    kg = np.round(np.exp(rng.normal(2.7, 0.7, n)).clip(1.5, 75), 1)
    exact = 70 * kg**0.75 * factor
    columns = {
        "dog": p.codes("DG", n),
        "seen": p.day_month(p.days(rng, n)),
        "kind": kind,
        "kg": kg,
        "age": rng.integers(1, 16, n),
        "sex": rng.choice(["f", "m"], n),
        "condition": rng.integers(2, 9, n),
    }
    own = {
        "rule of thumb": (30 * kg + 70) * factor,
        "at rest": 70 * kg**0.75,
        "as neutered": 70 * kg**0.75 * 1.6,
    }
    errors = _errors(rng, exact, own, "another row", "ten times", "digits", places=0)
    form = _form(f"70*kg**0.75*{factors!r}[kind]", ("kg", "kind"), free_scale=True)
    return Made(columns, "kcal_day", exact, form, 0.34, errors, places=0, id="dog")


@_table
def _37_air_freight(rng: Generator) -> Made:
    n = 2100
    length, width, height = rng.integers(20, 121, n), rng.integers(15, 81, n), rng.integers(10, 81, n)
    volume = length * width * height / 6000
    kg = np.round(volume * np.exp(rng.normal(0, 0.6, n)) + 0.3, 1)
    exact = _up(2 * np.maximum(kg, volume)) / 2
    columns = {
        "awb": np.arange(770_001, 770_001 + n),
        "to": rng.choice(["BOM", "GRU", "JFK", "NRT", "SYD"], n),
        "kg": kg,
        "l_cm": length,
        "w_cm": width,
        "h_cm": height,
        "value": p.money(rng, 40, 9000, n, 0),
        "fragile": _yes(rng, n, 0.25),
    }
    own = {
        "scales only": _up(2 * kg) / 2,
        "volume only": _up(2 * volume) / 2,
        "divisor of couriers": _up(2 * np.maximum(kg, 1.2 * volume)) / 2,
        "not rounded up": np.maximum(kg, volume),
    }
    errors = _errors(rng, exact, own, "another row", "digits", places=1)
    others = ((0.5, 6000.0, 0.5), (0.5, 6000.0), (2.0, 3000.0, 2.0))
    form = _form("ceil(2*max(kg, l_cm*w_cm*h_cm/6000))/2", ("kg", "l_cm", "w_cm", "h_cm"), others)
    return Made(columns, "chargeable_kg", exact, form, 0.24, errors, places=1, id="awb", layout="tsv")


@_table
def _38_equivalent_income(rng: Generator) -> Made:
    n = 1600
    adults = rng.choice([1, 2, 3, 4], n, p=[0.35, 0.48, 0.12, 0.05])
    children = rng.choice([0, 1, 2, 3, 4], n, p=[0.5, 0.2, 0.2, 0.07, 0.03])
    income = np.round(rng.gamma(5, 420, n) * (0.5 + 0.5 * adults) + 600, 2)
    exact = income / (1 + 0.5 * (adults - 1) + 0.3 * children)
    columns = {
        "Haushalt": p.codes("HH", n),
        "Gemeinde": rng.choice(["Aue", "Brunn", "Lohr", "Thal"], n),
        "Erwachsene": adults,
        "Kinder": children,
        "Einkommen": income,
        "Miete": np.round(income * rng.uniform(0.15, 0.45, n), 2),
        "Fragebogen": rng.choice(["online", "Papier"], n),
    }
    own = {
        "by head": income / (adults + children),
        "old scale": income / (1 + 0.7 * (adults - 1) + 0.5 * children),
        "children forgotten": income / (1 + 0.5 * (adults - 1)),
        "not weighted": income,
    }
    errors = _errors(rng, exact, own, "swapped", "another row", "digits")
    read = ("Einkommen", "Erwachsene", "Kinder")
    others = ((0.5, 0.5, 0.3), (2.0, 0.6), (2.0, 2.0, 0.6))
    form = _form("Einkommen/(1 + 0.5*(Erwachsene - 1) + 0.3*Kinder)", read, others)
    return Made(columns, "Äquivalenz", exact, form, 0.36, errors, id="Haushalt", layout="decimal comma")


@_table
def _39_photo_prints(rng: Generator) -> Made:
    n = 4200
    few, many = {"10x15": 0.19, "13x18": 0.29, "20x30": 1.95}, {"10x15": 0.14, "13x18": 0.22, "20x30": 1.49}
    size, low = p.pick(rng, few, n)
    high = np.array([many[name] for name in size.tolist()])
    prints = _whole(rng, n, 1.4, 52)
    price = np.where(prints < 50, low, high)
    exact = price * prints + 2.95
    columns = {
        "bag": np.arange(1, n + 1),
        "shop": rng.choice(["airport", "market", "online", "station"], n),
        "format": size,
        "prints": prints,
        "paper": rng.choice(["gloss", "matt"], n),
        "days": rng.integers(1, 6, n),
    }
    own = {
        "price of few": low * prints + 2.95,
        "price of many": high * prints + 2.95,
        "price of another": p.another_row(rng, price) * prints + 2.95,
        "handling forgotten": exact - 2.95,
    }
    errors = _errors(rng, exact, own, "ten times", "digits", "swapped")
    cut, prices = Cut.of(prints, 50), (*few.values(), *many.values())
    cheaper = tuple(few[name] - many[name] for name in few)
    others = tuple((*group, 2.95, *(cut,) * k) for group in (prices, (*few.values(), *cheaper)) for k in (1, 2, 3, 6))
    others += tuple((*many.values(), *cheaper, 2.95, *(cut,) * k) for k in (1, 3))
    text = f"({few!r}[format] if prints < 50 else {many!r}[format])*prints + 2.95"
    form = _form(text, ("format", "prints"), others, {50.0: cut})
    return Made(columns, "price", exact, form, 0.37, errors, id="bag")


@_table
def _40_pawn_shop(rng: Generator) -> Made:
    n = 1800
    fees, loan = np.array([2.5, 4.0, 6.5]), 5 * _whole(rng, n, 1.5, 42, 4)
    pawned, out = p.days(rng, n), rng.integers(3, 150, n)
    months, fee = _up(out / 30), fees[np.searchsorted([150, 300], loan, side="right")]
    exact = months * (0.01 * loan + fee)
    columns = {
        "ticket": p.codes("PF", n),
        "pledge": rng.choice(["bicycle", "camera", "gold", "watch"], n),
        "pawned": p.iso(pawned),
        "redeemed": p.iso(pawned + out),
        "loan": loan,
        "shelf": rng.integers(1, 90, n),
        "clerk": rng.choice(["GV", "HB", "RT"], n),
    }
    own = {
        "fee forgotten": months * 0.01 * loan,
        "a month less": np.maximum(0, months - 1) * (0.01 * loan + fee),
        "fee taken once": months * 0.01 * loan + fee,
        "lowest fee": months * (0.01 * loan + 2.5),
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    cuts = {150.0: Cut.of(loan, 150), 300.0: Cut.of(loan, 300)}
    ends = (cuts[150.0], cuts[300.0])
    levels = ((2.5, 4.0, 6.5), (2.5, 1.5, 2.5), (2.5, 1.5, 4.0), (4.0, 1.5, 2.5), (6.5, 4.0, 2.5))
    heads = ((30.0, 0.01), (30.0, 30.0, 0.01), (30.0,), (30.0, 30.0))  # a hundredth may stand as /100
    numbers = tuple((*head, *level, *ends, *more) for head in heads for level in levels for more in ((), ends))
    text = "ceil((day(redeemed) - day(pawned))/30)*(0.01*loan + (2.5 if loan < 150 else 4 if loan < 300 else 6.5))"
    form = Form(text, ("pawned", "redeemed", "loan"), numbers[0], numbers[1:])
    return Made(columns, "charges", exact, form, 0.09, errors, id="ticket", layout="jsonl")


# The check: each file is read back without massart, and the text of its rule computed from what stands there.

COMMAS = ("decimal comma", "euros", "semicolons", "titles")
"""Layouts in which a comma stands before the decimals."""


def _rows_of(path: Path, target: str) -> tuple[list[str], list[list[Any]]]:
    """Return the header of a file and its rows, without titles and a line of totals."""
    if path.suffix == ".jsonl":
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        names = list(dict.fromkeys(name for record in records for name in record))
        return names, [[record.get(name) for name in names] for record in records]
    if path.suffix == ".parquet":
        import pyarrow.parquet

        columns = pyarrow.parquet.read_table(path).to_pydict()
        return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]
    lines: list[list[Any]]
    if path.suffix == ".xlsx":
        import python_calamine

        lines = python_calamine.CalamineWorkbook.from_path(path).get_sheet_by_index(0).to_python()
    else:
        raw = path.read_bytes()
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = raw.decode("cp1252")
        ways = [list(csv.reader(text.splitlines(), delimiter=delimiter)) for delimiter in ",;\t"]
        lines = next(way for way in ways if any(target in line for line in way[:10]))
    start = next(k for k, line in enumerate(lines) if target in line)
    rows = [line for line in lines[start + 1 :] if any(cell not in (None, "") for cell in line)]
    while str(rows[-1][0]).lower() in ("total", "summe"):
        rows.pop()
    return [str(name) for name in lines[start]], rows


def _number(cell: Any, commas: bool) -> Fraction:
    """Return a cell as a number; a blank is zero."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return Fraction(0)
    if isinstance(cell, int | float):
        return Fraction(f"{cell:.15g}")
    text = "".join(sign for sign in cell if sign.isdigit() or sign in ".,-")
    text = text.replace(".", "").replace(",", ".") if commas else text.replace(",", "")
    return Fraction(text) if text else Fraction(0)


def from_file(path: Path, made: Made) -> tuple[Made, FloatArray]:
    """Return a table with the columns as they stand in its file, and the target as it stands there."""
    names, rows = _rows_of(path, made.target)
    commas = made.layout in COMMAS
    columns: dict[str, NDArray[Any]] = {}
    for name, values in made.columns.items():
        cells = [row[names.index(name)] for row in rows]
        found = np.empty(len(cells), dtype=object)
        # A column read by the rule is numbers where its author wrote numbers.
        found[:] = [_number(cell, commas) for cell in cells] if values.dtype.kind in "if" else cells
        columns[name] = found
    target = [float(_number(row[names.index(made.target)], commas)) for row in rows]
    return replace(made, columns=columns), np.array(target)


def check(name: str, make: Make, seed: int) -> list[str]:
    """Return what does not hold for a table, as it stands in its file."""
    import forms

    table = p.plant(name, make, seed)
    made, wrong, n = table.made, table.wrong, len(table.labels)
    said = []
    with tempfile.TemporaryDirectory() as folder:
        read, labels = from_file(table.write(Path(folder)), made)
    if len(labels) != n:
        return [f"{len(labels)} rows in the file, not {n}"]
    right = blind.by_hand(read)
    off = np.abs(right - labels) > 0.4 * 10.0**-made.places
    if (off != wrong).any():
        said.append(f"the file and what is declared differ in {(off != wrong).sum()} rows")
    numbers = blind.written_numbers(made.form, made.form.columns)
    text = "y = " + " + ".join(f"{number:.15g}" for number in numbers)
    if not forms.is_authors(made.form, text, made.form.columns):
        said.append(f"numbers {text}, not {made.form.numbers}")
    if abs(wrong.mean() - made.share) > 4 * math.sqrt(made.share * (1 - made.share) / n):
        said.append(f"wrong {wrong.mean():.3f}, not {made.share}")
    if not (0.08 <= made.share <= 0.45 and 300 <= n <= 5000 and 3 <= len(made.columns) + 1 <= 15):
        said.append(f"share {made.share}, {n} rows, {len(made.columns)} columns")
    for column, values in {**made.columns, made.target: table.clean}.items():
        if column == made.id and values.dtype.kind == "U":
            continue
        for part, rows in blind._parts(column, values):
            others = [np.isclose(labels, error, atol=0.4 * 10.0**-made.places) for error in made.errors.values()]
            most = max((int((rows & wrong & other).sum()) for other in others), default=0)
            if rows.sum() >= 5 and most >= (rows & ~wrong).sum():
                said.append(f"{part}: one mistake holds on {most} of {rows.sum()} rows")
    said += [f"no row is wrong by {kind}" for kind in made.errors if not (table.kinds == kind).any()]
    return said


def main(tables: Mapping[str, Make], description: str | None) -> None:
    """Check all tables for some seeds; without --check, print their names and rules."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    parser.add_argument("--only", help="parts of names, with commas between them")
    given = parser.parse_args()
    parts = given.only.split(",") if given.only else [""]
    names = [name for name in tables if any(part in name for part in parts)]
    if not given.check:
        for name in names:
            made = p.plant(name, tables[name], 1).made
            print(f"{name:<22}{len(made.exact):>5} rows, {made.share:3.0%} wrong: {made.target} = {made.form.terms}")
        return
    failed = 0
    for name in names:
        for seed in given.seeds:
            for line in check(name, tables[name], seed):
                failed += 1
                print(f"{name}, seed {seed}: {line}")
    print(f"{len(names)} tables, {len(given.seeds)} seeds, {failed} complaints")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(TABLES, __doc__)
