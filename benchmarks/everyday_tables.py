"""Forty everyday tables: bills, fares, fines, duties, doses, grades, premiums, each with a rule of its own trade.

They were written before any search had seen them, from what such tables hold and not from what a search can find: some
are one line of arithmetic, others need two conditions, a table of factors, a started unit or the row before. Numbers,
levels and wrong values are drawn from a seed; the rule is always the same. `planted` makes the files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import planted as p
from planted import Cut, Form, Generator, Made, Make

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


def _count(rng: Generator, n: int, mean: float) -> NDArray[np.int64]:
    """Return whole amounts, most of them small, and none below 1."""
    return np.rint(rng.gamma(2.0, mean / 2, n) + 1).astype(np.int64)


@_table
def _01_water_and_sewage(rng: Generator) -> Made:
    n = 1400
    before, used = rng.integers(100, 4000, n), _count(rng, n, 90)
    garden = np.where(rng.random(n) < 0.3, np.minimum(rng.integers(1, 40, n), used), 0)
    full = 1.95 * used + 2.31 * (used - garden)
    exact = np.maximum(120, full)
    columns = {
        "Kunde": p.codes("K", n),
        "Straße": rng.choice(["Am Markt", "Lindenallee", "Bahnhofstr.", "Hof"], n),
        "Stand alt": before,
        "Stand neu": before + used,
        "Garten": garden,
        "Personen": rng.integers(1, 6, n),
    }
    errors = {
        "sewage forgotten": np.maximum(120, 1.95 * used),
        "garden not deducted": np.maximum(120, 4.26 * used),
        "minimum forgotten": full,
        "digits": p.swapped(rng, exact),
    }
    others = ((1.95, 2.31, 120.0), (4.26, 4.26, 2.31, 120.0), (1.95, 2.31, 2.31, 120.0))
    form = Form(
        "max(120, 1.95*(neu - alt) + 2.31*(neu - alt - Garten))",
        ("Stand alt", "Stand neu", "Garten"),
        (4.26, 2.31, 120.0),
        others,
    )
    return Made(columns, "Betrag", exact, form, 0.12, errors, id="Kunde", layout="decimal comma")


@_table
def _02_taxi(rng: Generator) -> Made:
    n = 3000
    metres, waiting = _count(rng, n, 6200), np.where(rng.random(n) < 0.4, rng.integers(1, 15, n), 0)
    night = _yes(rng, n, 0.3)
    steps = np.ceil(metres / 200)
    exact = 4.3 + 0.46 * steps + 0.55 * waiting + 1.5 * (night == "yes")
    columns = {
        "ride": p.codes("R", n),
        "cab": rng.integers(1, 60, n),
        "metres": metres,
        "waiting_min": waiting,
        "night": night,
        "passengers": rng.integers(1, 5, n),
    }
    errors = {
        "by the metre": exact - 0.46 * steps + 0.46 * metres / 200,
        "base forgotten": exact - 4.3,
        "night forgotten": exact - 1.5 * (night == "yes"),
        "digits": p.one_digit(rng, exact),
    }
    form = Form(
        "ceil(metres/200), waiting_min, night",
        ("metres", "waiting_min", "night"),
        (4.3, 0.46, 200.0, 0.55, 1.5),
        ((4.3, 5.8, 0.46, 200.0, 0.55),),
    )
    return Made(columns, "fare", exact, form, 0.18, errors, id="ride", layout="tsv")


@_table
def _03_sick_pay(rng: Generator) -> Made:
    n = 1000
    monthly, days = np.round(np.clip(rng.gamma(9, 420, n), 900, 9500), 2), rng.integers(1, 30, n)
    rest = np.maximum(0, days - 3)
    exact = np.minimum(0.7 * monthly / 30, 128.1) * rest
    columns = {
        "case": p.codes("SC", n),
        "plant": rng.choice(["Graz", "Linz", "Wels"], n),
        "begin": p.iso(p.days(rng, n)),
        "monthly_pay": monthly,
        "days": days,
        "age": rng.integers(18, 65, n),
    }
    errors = {
        "first days paid": np.minimum(0.7 * monthly / 30, 128.1) * days,
        "not capped": 0.7 * monthly / 30 * rest,
        "full pay": monthly / 30 * rest,
        "digits": p.swapped(rng, exact),
    }
    others = ((0.7 / 30, 128.1, 3.0), (0.7 / 30, 5490.0, 3.0), (0.7, 30.0, 5490.0, 3.0), (0.7 / 30, 3.0, 5490.0, 3.0))
    form = Form(
        "min(0.7*monthly_pay/30, 128.1)*max(0, days - 3)", ("monthly_pay", "days"), (0.7, 30.0, 128.1, 3.0), others
    )
    return Made(columns, "sick_pay", exact, form, 0.10, errors, id="case")


@_table
def _04_library_fines(rng: Generator) -> Made:
    n = 1200
    fees = {"book": 0.25, "film": 1.2, "game": 0.5, "magazine": 0.15}
    medium, fee = p.pick(rng, fees, n)
    due, late = p.days(rng, n), _count(rng, n, 24)
    exact = np.minimum(20, fee * late)
    columns = {
        "loan": np.arange(30_000, 30_000 + n),
        "medium": medium,
        "due": p.day_month(due),
        "returned": p.day_month(due + late),
        "member_since": _gaps(rng, rng.integers(1990, 2024, n)),
    }
    errors = {
        "not capped": fee * late,
        "fee of books": np.minimum(20, 0.25 * late),
        "a day too many": np.minimum(20, fee * (late + 1)),
        "junk": p.junk(rng, exact),
    }
    numbers = (*fees.values(), 20.0)
    form = Form("min(20, (returned - due):medium)", ("medium", "due", "returned"), numbers)
    return Made(columns, "fine", exact, form, 0.15, errors, id="loan")


@_table
def _05_customs(rng: Generator) -> Made:
    n = 3000
    by_value = {"textiles": 0.12, "tools": 0.027, "coffee": 0.075, "sugar": 0.0, "wine": 0.0}
    by_weight = {"textiles": 0.0, "tools": 0.0, "coffee": 1.3, "sugar": 0.419, "wine": 0.32}
    goods, ad_valorem = p.pick(rng, by_value, n)
    specific = np.array([by_weight[name] for name in goods.tolist()])
    value, kg = p.money(rng, 80, 40_000, n), p.uniform(rng, 2, 900, n)
    exact = ad_valorem * value + specific * kg
    columns = {
        "declaration": p.codes("MRN", n),
        "origin": rng.choice(["TR", "BR", "CN", "CL", "ZA"], n),
        "goods": goods,
        "customs_value": value,
        "kg": kg,
        "packages": rng.integers(1, 80, n),
    }
    errors = {
        "class of textiles": 0.12 * value,
        "weight in place of value": ad_valorem * kg + specific * kg,
        "ten times": p.scaled(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    numbers = (0.12, 0.027, 0.075, 1.3, 0.419, 0.32)
    form = Form("customs_value:goods, kg:goods", ("goods", "customs_value", "kg"), numbers)
    return Made(columns, "duty", exact, form, 0.22, errors, id="declaration", layout="total")


@_table
def _06_feed_in(rng: Generator) -> Made:
    n = 1100
    kwp = np.round(np.clip(np.exp(rng.normal(2.6, 0.9, n)), 1, 99), 1)
    kwh = np.rint(kwp * rng.uniform(60, 110, n))
    tariff = np.array([0.0811, 0.0703, 0.0574])
    level = np.searchsorted([10, 40], kwp, side="left")
    exact = tariff[level] * kwh
    columns = {
        "Anlage": p.codes("EEG", n),
        "Monat": rng.integers(1, 13, n),
        "kWp": kwp,
        "kWh": kwh,
        "Neigung": _gaps(rng, rng.integers(0, 60, n)),
    }
    errors = {
        "small system": 0.0811 * kwh,
        "next class": tariff[np.minimum(level + 1, 2)] * kwh,
        "with VAT": 1.19 * exact,
        "digits": p.swapped(rng, exact),
    }
    cuts = Cut.of(kwp, 10), Cut.of(kwp, 40)
    steps = (0.0811, 0.0108, 0.0129)
    others = (
        (*tariff.tolist(), *cuts, *cuts),
        (*steps, *cuts),
        (*steps, *cuts, *cuts),
        (0.0574, 0.0237, 0.0129, *cuts),
    )
    form = Form("kWh by class of kWp", ("kWp", "kWh"), (*tariff.tolist(), *cuts), others)
    return Made(columns, "Vergütung", exact, form, 0.14, errors, id="Anlage", layout="decimal comma")


@_table
def _07_train_tickets(rng: Generator) -> Made:
    n = 2500
    age, km = rng.integers(1, 90, n), _count(rng, n, 140)
    first = _yes(rng, n, 0.25, "1", "2")
    share = np.array([0.0, 0.5, 1.0, 0.75])
    band = np.searchsorted([6, 15, 65], age, side="right")
    class_factor = np.where(first == "1", 1.6, 1.0)
    full = 0.22 * km * class_factor
    exact = full * share[band]
    columns = {
        "ticket": p.codes("T", n),
        "age": age,
        "km": km,
        "class": first,
        "sold_at": rng.choice(["machine", "desk", "app"], n),
    }
    errors = {
        "full fare": full,
        "second class": 0.22 * km * share[band],
        "another row": p.another_row(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    form = Form(
        "km * factor[class] * factor[band of age]",
        ("age", "km", "class"),
        (0.22, 0.5, 0.75, 1.6, *(Cut.of(age, at) for at in (6, 15, 65))),
        free_scale=True,
    )
    return Made(columns, "price", exact, form, 0.20, errors, id="ticket")


@_table
def _08_catering(rng: Generator) -> Made:
    n = 700
    menus = {"buffet": 24.5, "finger food": 17.9, "gala": 46.0, "vegan": 21.5}
    menu, price = p.pick(rng, menus, n)
    guests = _count(rng, n, 45)
    exact = price * np.maximum(25, guests) + 85
    columns = {
        "order": p.codes("CA", n),
        "date": p.iso(p.days(rng, n)),
        "menu": menu,
        "guests": guests,
        "waiters": rng.integers(0, 8, n),
    }
    errors = {
        "minimum forgotten": np.where(guests < 25, price * guests + 85, price * guests),
        "delivery forgotten": exact - 85,
        "price of the buffet": 24.5 * np.maximum(25, guests) + 85,
        "digits": p.swapped(rng, exact),
    }
    numbers = (*menus.values(), 25.0, 85.0)
    form = Form("max(25, guests):menu", ("menu", "guests"), numbers, ((*numbers, 25.0, 25.0, 25.0),))
    return Made(columns, "invoice", exact, form, 0.11, errors, id="order", layout="dollars")


@_table
def _09_road_tax(rng: Generator) -> Made:
    n = 2000
    per_step = {"petrol": 2.0, "diesel": 9.5}
    fuel, rate = p.pick(rng, per_step, n)
    ccm, co2 = np.clip(np.rint(rng.normal(1650, 480, n)), 600, 4000), np.clip(np.rint(rng.normal(125, 32, n)), 60, 300)
    above = np.maximum(0, co2 - 95)
    exact = rate * np.ceil(ccm / 100) + 2 * above
    columns = {
        "plate": p.codes("KA-", n),
        "first_seen": p.iso(p.days(rng, n, "2015-01-01", 3000)),
        "fuel": fuel,
        "ccm": ccm.astype(int),
        "co2": co2.astype(int),
        "seats": rng.integers(2, 8, n),
        "kw": rng.integers(40, 260, n),
    }
    errors = {
        "full steps": rate * np.floor(ccm / 100) + 2 * above,
        "petrol": 2 * np.ceil(ccm / 100) + 2 * above,
        "co2 forgotten": rate * np.ceil(ccm / 100),
        "ten times": p.scaled(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    form = Form(
        "ceil(ccm/100):fuel, max(0, co2 - 95)", ("fuel", "ccm", "co2"), (2.0, 9.5, 2.0, 95.0), ((2.0, 7.5, 2.0, 95.0),)
    )
    return Made(columns, "tax", exact, form, 0.17, errors, id="plate", layout="parquet")


@_table
def _10_translation(rng: Generator) -> Made:
    n = 1500
    per_page = {"EN": 28.0, "FR": 31.5, "PL": 36.0, "ZH": 49.0}
    language, price = p.pick(rng, per_page, n)
    characters, express = _count(rng, n, 14_000), _yes(rng, n, 0.3)
    pages = np.ceil(characters / 1500)
    surcharge = np.where(express == "yes", 1.25, 1.0)
    exact = pages * price * surcharge
    columns = {
        "job": p.codes("TR", n),
        "language": language,
        "characters": characters,
        "express": express,
        "certified": _yes(rng, n, 0.15),
        "translator": rng.integers(1, 30, n),
    }
    errors = {
        "express forgotten": pages * price,
        "by the character": characters / 1500 * price * surcharge,
        "price of English": pages * 28 * surcharge,
        "digits": p.swapped(rng, exact),
    }
    numbers = (*per_page.values(), 1500.0, 0.25)
    surcharges = tuple(0.25 * value for value in per_page.values())
    others = tuple((*per_page.values(), *more, *(1500.0,) * k) for more in ((0.25,), surcharges) for k in (1, 2, 4, 8))
    form = Form(
        "ceil(characters/1500):language * (1 + 0.25*(express = yes))",
        ("language", "characters", "express"),
        numbers,
        others,
    )
    return Made(columns, "fee", exact, form, 0.13, errors, id="job")


@_table
def _11_dosage(rng: Generator) -> Made:
    n = 260
    kg = np.round(np.clip(rng.gamma(4, 11, n), 4, 110), 1)
    exact = np.minimum(15 * kg, 1000)
    columns = {
        "patient": p.codes("P", n),
        "ward": rng.choice(["2A", "2B", "5C"], n),
        "age": np.clip(np.rint(kg / 3 + rng.normal(0, 3, n)), 0, 90).astype(int),
        "kg": kg,
        "temperature": np.round(rng.normal(38.1, 0.8, n), 1),
    }
    errors = {
        "not limited": np.where(kg > 66.6, 15 * kg, 10 * kg),
        "pounds": np.minimum(15 * kg * 2.2046, 1000),
        "ten times": p.scaled(rng, exact),
        "digits": p.swapped(rng, exact, 0),
    }
    form = Form("min(15*kg, 1000)", ("kg",), (15.0, 1000.0), ((15.0, 200 / 3), (15.0, 15.0, 200 / 3)))
    return Made(columns, "dose_mg", exact, form, 0.09, errors, places=0, id="patient")


@_table
def _12_dilution(rng: Generator) -> Made:
    n = 420
    stock, final = rng.choice([2.0, 5.0, 10.0, 12.5, 20.0], n), np.round(rng.uniform(0.05, 1.5, n), 2)
    volume = rng.choice([50, 100, 200, 250, 500, 750], n)
    exact = final * volume / stock
    columns = {"sample": p.codes("S", n), "c_stock": stock, "c_final": final, "v_final": volume}
    errors = {
        "upside down": stock * volume / final / 100,
        "water in place of stock": volume - exact,
        "ten times": p.scaled(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    form = Form("c_final*v_final/c_stock", ("c_stock", "c_final", "v_final"))
    return Made(columns, "v_stock", exact, form, 0.25, errors, id="sample", layout="workbook")


@_table
def _13_speed(rng: Generator) -> Made:
    n = 1800
    km = np.round(rng.gamma(2.5, 60, n) + 2, 1)
    minutes = np.rint(60 * km / rng.normal(62, 18, n).clip(15, 120) + 1).astype(int)
    exact = 60 * km / minutes
    columns = {
        "trip": np.arange(5001, 5001 + n),
        "driver": rng.choice(["Ali", "Eva", "Jo", "Pia", "Tom"], n),
        "km": km,
        "minutes": minutes,
        "stops": rng.integers(0, 9, n),
        "litres": np.round(km * rng.uniform(0.05, 0.11, n), 1),
    }
    errors = {
        "miles": exact / 1.609344,
        "km per minute": km / minutes,
        "minutes as hours": exact * 0.6,
        "digits": p.swapped(rng, exact, 1),
        "another row": p.another_row(rng, exact),
    }
    form = Form("km/minutes", ("km", "minutes"), (60.0,))
    return Made(columns, "avg_kmh", exact, form, 0.30, errors, places=1, id="trip")


@_table
def _14_energy_label(rng: Generator) -> Made:
    n = 1000
    litres, kwh = rng.integers(60, 520, n), rng.integers(60, 480, n)
    exact = 100 * kwh / (0.777 * litres + 303)
    columns = {
        "model": p.codes("F", n),
        "brand": rng.choice(["Aro", "Belo", "Cirrus", "Dova"], n),
        "litres": litres,
        "kwh_year": kwh,
        "noise_db": rng.integers(33, 44, n),
        "price": p.money(rng, 199, 1999, n),
    }
    errors = {
        "constant forgotten": 100 * kwh / (0.777 * litres + 100),
        "upside down": 100 / exact * 100,
        "digits": p.one_digit(rng, exact, 1),
        "ten times": p.scaled(rng, exact),
    }
    form = Form("kwh_year/(0.777*litres + 303)", ("litres", "kwh_year"), (0.777, 303.0), free_scale=True)
    return Made(columns, "index", exact, form, 0.12, errors, places=1, id="model")


@_table
def _15_exam_points(rng: Generator) -> Made:
    n = 350
    right = rng.integers(0, 31, n)
    wrong = np.array([rng.integers(0, 41 - own) for own in right.tolist()])
    hints = rng.integers(0, 6, n)
    plain = 4.0 * right - wrong - 3 * hints
    exact = np.maximum(0, plain)
    columns = {
        "student": p.codes("S", n),
        "group": rng.choice(["Mon", "Tue", "Thu"], n),
        "right": right,
        "wrong": wrong,
        "hints": hints,
        "minutes": rng.integers(30, 91, n),
    }
    errors = {
        "below zero": plain,
        "hints not counted": np.maximum(0, 4.0 * right - wrong),
        "no penalty": 4.0 * right - 3 * hints,
        "digits": p.one_digit(rng, exact, 0),
    }
    form = Form("max(0, 4*right - wrong - 3*hints)", ("right", "wrong", "hints"), (4.0, 3.0))
    return Made(columns, "points", exact, form, 0.10, errors, places=0, id="student")


@_table
def _16_rents(rng: Generator) -> Made:
    n = 1300
    per_metre = {"Altstadt": 14.2, "Hafen": 12.6, "Nord": 9.45, "Ost": 8.9, "West": 10.75}
    district, rate = p.pick(rng, per_metre, n)
    area, parking = np.round(rng.gamma(9, 8, n) + 15, 1), rng.integers(0, 3, n)
    renovated = _yes(rng, n, 0.35, "ja", "nein")
    more = 0.85 * (renovated == "ja")
    exact = area * (rate + more) + 65 * parking
    columns = {
        "Wohnung": p.codes("W", n),
        "Stadtteil": district,
        "Fläche": area,
        "saniert": renovated,
        "Stellplätze": parking,
        "Etage": rng.integers(0, 9, n),
        "Baujahr": _gaps(rng, rng.integers(1900, 2020, n)),
    }
    errors = {
        "parking forgotten": exact - 65 * parking,
        "renovation forgotten": area * rate + 65 * parking,
        "rate of another district": area * (p.another_row(rng, rate) + more) + 65 * parking,
        "ten times": p.scaled(rng, exact, (0.1,)),
        "digits": p.swapped(rng, exact),
    }
    numbers = (*per_metre.values(), 0.85, 65.0)
    columns_read = ("Stadtteil", "Fläche", "saniert", "Stellplätze")
    form = Form("Fläche:Stadtteil, Fläche:saniert, Stellplätze", columns_read, numbers)
    return Made(columns, "Miete", exact, form, 0.28, errors, id="Wohnung", layout="euros")


@_table
def _17_leasing(rng: Generator) -> Made:
    n = 1200
    price = np.round(p.money(rng, 14_000, 90_000, n), -1)
    months = rng.choice([24, 36, 42, 48, 60], n)
    residual = np.round(price * rng.uniform(0.2, 0.6, n), -1)
    interest = 0.00235 * (price + residual)
    exact = (price - residual) / months + interest
    columns = {
        "contract": p.codes("L", n),
        "dealer": rng.integers(100, 140, n),
        "make": rng.choice(["Alfa", "Kia", "Seat", "VW"], n),
        "colour": rng.choice(["black", "grey", "red", "white"], n),
        "signed": p.iso(p.days(rng, n)),
        "price": price,
        "residual": residual,
        "months": months,
        "km_year": rng.choice([10_000, 15_000, 20_000, 30_000], n),
        "power_kw": rng.integers(48, 250, n),
        "co2": rng.integers(0, 220, n),
        "insurance": _gaps(rng, p.money(rng, 20, 140, n)),
        "age": rng.integers(18, 80, n),
        "score": rng.integers(300, 999, n),
    }
    errors = {
        "interest forgotten": exact - interest,
        "residual forgotten": price / months + 0.00235 * price,
        "months of another contract": (price - residual) / p.another_row(rng, months) + interest,
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "(price - residual)/months, price + residual",
        ("price", "residual", "months"),
        (0.00235,),
        ((0.00235, 0.00235),),
    )
    return Made(columns, "rate", exact, form, 0.15, errors, id="contract")


@_table
def _18_groundwater(rng: Generator) -> Made:
    n = 2400
    wells = {f"GW{k:02d}": round(float(rng.uniform(180, 260)), 2) for k in range(12)}
    well, height = p.pick(rng, wells, n)
    depth = np.round(rng.gamma(6, 0.9, n) + 0.3, 2)
    exact = height - depth
    columns = {
        "measured": p.iso(p.days(rng, n)),
        "well": well,
        "depth": depth,
        "temperature": _gaps(rng, np.round(rng.normal(10, 1.5, n), 1)),
        "by": rng.choice(["fk", "hb", "ml"], n),
    }
    errors = {
        "added": height + depth,
        "depth in place of level": depth,
        "another well": p.another_row(rng, height) - depth,
        "off by a metre": exact + 1,
        "digits": p.one_digit(rng, exact),
    }
    form = Form("well, depth", ("well", "depth"), tuple(wells.values()))
    return Made(columns, "level", exact, form, 0.33, errors, layout="jsonl")


@_table
def _19_chain_discount(rng: Generator) -> Made:
    n = 1000
    price = p.money(rng, 3, 2500, n)
    trade, cash = rng.choice([5.0, 10.0, 15.0, 25.0, 30.0], n), rng.choice([np.nan, 2.0, 3.0], n, p=[0.5, 0.3, 0.2])
    second = np.nan_to_num(cash)
    exact = price * (1 - trade / 100) * (1 - second / 100)
    columns = {
        "article": p.codes("A", n),
        "list_price": price,
        "trade_pct": trade,
        "cash_pct": cash,
        "stock": rng.integers(0, 900, n),
    }
    errors = {
        "added up": price * (1 - (trade + second + (second == 0)) / 100),
        "trade discount forgotten": price * (1 - second / 100),
        "ten times": p.scaled(rng, exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "list_price*(1 - trade_pct/100)*(1 - cash_pct/100) with blank = 0",
        ("list_price", "trade_pct", "cash_pct"),
        (),
        ((0.01, 0.01), (0.01, 0.01, 0.0001), (0.0001,)),
    )
    return Made(columns, "net_price", exact, form, 0.16, errors, id="article")


@_table
def _20_units(rng: Generator) -> Made:
    n = 5000
    units = {"kg": 1.0, "g": 0.001, "lb": 0.4536, "cwt": 50.8}
    unit, factor = p.pick(rng, units, n)
    quantity = np.where(unit == "g", rng.integers(50, 20_000, n), np.round(rng.gamma(2, 40, n) + 0.5, 1))
    exact = quantity * factor
    columns = {
        "line": np.arange(1, n + 1),
        "item": rng.choice(["flour", "rice", "salt", "sugar", "tea"], n),
        "quantity": quantity,
        "unit": unit,
    }
    errors = {
        "not converted": quantity,
        "divided": quantity / factor,
        "as pounds": 0.4536 * quantity,
        "digits": p.swapped(rng, exact, 3),
    }
    form = Form("quantity:unit", ("quantity", "unit"), (0.001, 0.4536, 50.8))
    return Made(columns, "weight_kg", exact, form, 0.26, errors, places=3, id="line")


@_table
def _21_meter_readings(rng: Generator) -> Made:
    n = 2000
    meter = np.array([f"M-{k:03d}" for k in range(40)])[rng.integers(40, size=n)]
    used = rng.integers(2, 400, n)
    reading, before = np.zeros(n, dtype=int), dict.fromkeys(meter.tolist(), 0)  # a new meter begins at 0
    for k, name in enumerate(meter.tolist()):
        reading[k] = before[name] = before[name] + int(used[k])
    columns = {
        "date": p.iso(19_400 + np.arange(n) // 8),
        "meter": meter,
        "reading": reading,
        "reader": rng.choice(["ab", "cd", "remote"], n),
    }
    exact = used.astype(float)
    errors = {
        "reading in place of use": reading.astype(float),
        "ten times": p.scaled(rng, exact, (10.0,)),
        "digits": p.one_digit(rng, exact, 0),
        "another row": p.another_row(rng, exact),
    }
    form = Form("reading, lag(reading, by=meter)", ("meter", "reading"))
    return Made(columns, "used", exact, form, 0.08, errors, places=0)


@_table
def _22_cartons(rng: Generator) -> Made:
    n = 1400
    quantity, per_carton = _count(rng, n, 130), rng.choice([6, 10, 12, 20, 24, 48], n)
    cartons = np.ceil(quantity / per_carton)
    exact = 3.85 * cartons + 7.5
    columns = {
        "order": p.codes("O", n),
        "customer": rng.integers(1000, 1100, n),
        "quantity": quantity,
        "per_carton": per_carton,
        "carrier": rng.choice(["GLS", "UPS"], n),
        "shipped": p.day_month(p.days(rng, n)),
    }
    errors = {
        "full cartons only": 3.85 * np.floor(quantity / per_carton) + 7.5,
        "by the piece": 3.85 * quantity / per_carton + 7.5,
        "base forgotten": 3.85 * cartons,
        "digits": p.swapped(rng, exact),
    }
    form = Form("ceil(quantity/per_carton)", ("quantity", "per_carton"), (3.85, 7.5))
    return Made(columns, "handling", exact, form, 0.19, errors, id="order", layout="swiss")


@_table
def _23_mobile_phone(rng: Generator) -> Made:
    n = 3500
    gigabytes, abroad = np.round(rng.gamma(2, 3, n), 2), np.where(rng.random(n) < 0.4, rng.integers(1, 120, n), 0)
    more = np.ceil(np.maximum(0, gigabytes - 5))
    exact = 14.99 + 4 * more + 0.19 * abroad
    columns = {
        "number": np.arange(4_915_100_000, 4_915_100_000 + n),
        "gb": gigabytes,
        "minutes_abroad": abroad,
        "minutes": rng.integers(0, 900, n),
        "sms": rng.integers(0, 60, n),
        "handset": rng.choice(["own", "rented"], n),
    }
    errors = {
        "every gigabyte": 14.99 + 4 * np.ceil(gigabytes) + 0.19 * abroad,
        "abroad forgotten": 14.99 + 4 * more,
        "base forgotten": exact - 14.99,
        "another row": p.another_row(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    form = Form(
        "ceil(max(0, gb - 5)), minutes_abroad",
        ("gb", "minutes_abroad"),
        (14.99, 4.0, 5.0, 0.19),
        ((5.01, 4.0, 5.0, 0.19),),
    )
    return Made(columns, "bill", exact, form, 0.21, errors, id="number", layout="jsonl")


@_table
def _24_dog_tax(rng: Generator) -> Made:
    n = 900
    dogs = rng.choice([1, 2, 3, 4], n, p=[0.6, 0.25, 0.1, 0.05])
    listed = np.minimum(rng.choice([0, 1, 2], n, p=[0.7, 0.22, 0.08]), dogs)
    reduced = _yes(rng, n, 0.25, "ja", "nein")
    plain = 96 + 144.0 * (dogs - 1)
    exact = plain * np.where(reduced == "ja", 0.5, 1.0) + 612 * listed
    columns = {
        "Halter": p.codes("H", n),
        "Ortsteil": rng.choice(["Kernstadt", "Neudorf", "Weiler"], n),
        "Hunde": dogs,
        "gelistet": listed,
        "ermäßigt": reduced,
        "angemeldet": p.iso(p.days(rng, n, "2018-01-01", 2000)),
    }
    errors = {
        "as for the first": 96.0 * dogs + 612 * listed,
        "not reduced": plain + 612 * listed,
        "listed forgotten": exact - 612 * listed,
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "(144*Hunde - 48)*(1 - 0.5*(ermäßigt = ja)), gelistet",
        ("Hunde", "gelistet", "ermäßigt"),
        (144.0, 48.0, 0.5, 612.0),
        ((144.0, 72.0, 48.0, 24.0, 612.0), (96.0, 48.0, 144.0, 72.0, 612.0), (96.0, 144.0, 0.5, 612.0)),
    )
    return Made(columns, "Steuer", exact, form, 0.14, errors, id="Halter", layout="decimal comma")


@_table
def _25_refuse_two_tariffs(rng: Generator) -> Made:
    n = 1800
    old = {"60": 4.2, "80": 5.35, "120": 7.6, "240": 14.1}
    new = {"60": 4.55, "80": 5.8, "120": 8.2, "240": 15.3}
    size, before = p.pick(rng, old, n)
    after = np.array([new[name] for name in size.tolist()])
    day, emptied = p.days(rng, n, "2024-01-01", 366), rng.integers(1, 27, n)
    start = int(np.datetime64("2024-07-01", "D").astype(int))
    exact = emptied * np.where(day >= start, after, before)
    columns = {
        "object": p.codes("OB", n),
        "billed": p.iso(day),
        "bin": np.array([f"{name} l" for name in size.tolist()]),
        "emptied": emptied,
        "persons": rng.integers(1, 7, n),
    }
    errors = {
        "old tariff": emptied * before,
        "bin of another row": emptied * p.another_row(rng, before),
        "once too often": (emptied + 1) * np.where(day >= start, after, before),
        "digits": p.one_digit(rng, exact),
    }
    prices, cut = (*old.values(), *new.values()), Cut.of(day, start)
    rises = tuple(new[name] - old[name] for name in old)
    others = [(*values, *(cut,) * k) for values in (prices, (*old.values(), *rises)) for k in (1, 2, 4, 8)]
    form = Form("emptied:bin, by date", ("billed", "bin", "emptied"), (*prices, cut), tuple(others))
    return Made(columns, "charge", exact, form, 0.10, errors, id="object")


@_table
def _26_bonus_on_target(rng: Generator) -> Made:
    n = 900
    target = np.round(p.money(rng, 40_000, 200_000, n), -3)
    revenue = np.round(target * rng.normal(1.05, 0.2, n).clip(0.5, 1.8), 2)
    reached = revenue >= target
    exact = np.where(reached, 250 + 0.03 * revenue, 0.0)
    columns = {
        "rep": p.codes("V", n),
        "region": rng.choice(["N", "O", "S", "W"], n),
        "target": target,
        "revenue": revenue,
        "customers": rng.integers(5, 90, n),
        "joined": rng.integers(1995, 2024, n),
    }
    errors = {
        "target not looked at": 250 + 0.03 * revenue,
        "old rate": np.where(reached, 250 + 0.025 * revenue, 100),
        "constant forgotten": np.where(reached, 0.03 * revenue, 250),
        "digits": p.swapped(rng, exact),
    }
    form = Form(
        "250 + 0.03*revenue if revenue >= target", ("target", "revenue"), (250.0, 0.03), ((250.0, 0.03, 1.0, 1.0),)
    )
    return Made(columns, "bonus", exact, form, 0.12, errors, id="rep", layout="total")


@_table
def _27_commission_by_branch(rng: Generator) -> Made:
    n = 2200
    rates = {"Basel": 0.042, "Bern": 0.035, "Chur": 0.05, "Genf": 0.038}
    branch, rate = p.pick(rng, rates, n)
    sales = p.money(rng, 4000, 190_000, n)
    above = 0.015 * np.maximum(0, sales - 50_000)
    exact = rate * sales + above
    columns = {
        "month": rng.integers(1, 13, n),
        "branch": branch,
        "rep": rng.integers(10, 80, n),
        "sales": sales,
        "returns": np.round(sales * rng.uniform(0, 0.08, n), 2),
    }
    errors = {
        "tier forgotten": rate * sales,
        "rate of Bern": 0.035 * sales + above,
        "of returns": rate * columns["returns"],
        "ten times": p.scaled(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    form = Form("sales:branch, max(0, sales - 50000)", ("branch", "sales"), (*rates.values(), 0.015, 50_000.0))
    return Made(columns, "commission", exact, form, 0.24, errors, layout="swiss")


@_table
def _28_declining_balance(rng: Generator) -> Made:
    n = 700
    cost = np.round(p.money(rng, 500, 60_000, n), -1)
    rate, age = rng.choice([10.0, 12.5, 15.0, 20.0, 25.0, 30.0], n), rng.integers(1, 12, n)
    exact = cost * (1 - rate / 100) ** age
    columns = {
        "asset": p.codes("AS", n),
        "class": rng.choice(["office", "tools", "vehicles"], n),
        "cost": cost,
        "rate_pct": rate,
        "age": age,
        "site": rng.integers(1, 6, n),
    }
    errors = {
        "straight line": cost * np.maximum(0.05, 1 - rate / 100 * age),
        "a year too many": cost * (1 - rate / 100) ** (age + 1),
        "digits": p.swapped(rng, exact),
        "ten times": p.scaled(rng, exact),
    }
    form = Form("cost*(1 - rate_pct/100)^age", ("cost", "rate_pct", "age"))
    return Made(columns, "book_value", exact, form, 0.13, errors, id="asset")


@_table
def _29_annual_leave(rng: Generator) -> Made:
    n = 650
    years, disabled = rng.integers(0, 35, n), _yes(rng, n, 0.12)
    by_years = 24 + np.floor(years / 3)
    exact = np.minimum(30, by_years) + 5 * (disabled == "yes")
    columns = {
        "employee": np.arange(1, n + 1),
        "department": rng.choice(["finance", "IT", "plant"], n),
        "years": years,
        "age": np.clip(years + rng.integers(18, 40, n), 18, 66),
        "disabled": disabled,
    }
    errors = {
        "not limited": by_years + 5 * (disabled == "yes") + (years < 21),
        "years not counted": 24.0 + 5 * (disabled == "yes"),
        "extra days forgotten": np.minimum(30, by_years) - (disabled == "no"),
        "junk": rng.integers(20, 40, n).astype(float),
    }
    form = Form(
        "min(30, 24 + floor(years/3)), disabled",
        ("years", "disabled"),
        (30.0, 24.0, 3.0, 5.0),
        ((24.0, 6.0, 3.0, 5.0), (24.0, 18.0, 3.0, 5.0), (30.0, 35.0, 24.0, 3.0)),
    )
    return Made(columns, "leave", exact, form, 0.09, errors, places=0, id="employee")


@_table
def _30_day_and_night_current(rng: Generator) -> Made:
    n = 2600
    day, night = _count(rng, n, 220), _count(rng, n, 130)
    exact = 0.3147 * day + 0.2289 * night + 11.9
    columns = {
        "Zählpunkt": p.codes("AT", n),
        "Ort": rng.choice(["Bregenz", "Dornbirn", "Lustenau"], n),
        "Tag": day,
        "Nacht": night,
        "Blindstrom": _gaps(rng, rng.integers(0, 60, n)),
        "Zähler": rng.choice(["alt", "smart"], n),
    }
    errors = {
        "all by day": 0.3147 * (day + night) + 11.9,
        "swapped": 0.3147 * night + 0.2289 * day + 11.9,
        "base forgotten": exact - 11.9,
        "VAT on top": 1.2 * exact,
        "digits": p.swapped(rng, exact),
        "another row": p.another_row(rng, exact),
    }
    form = Form("Tag, Nacht", ("Tag", "Nacht"), (0.3147, 0.2289, 11.9))
    return Made(columns, "Rechnung", exact, form, 0.42, errors, id="Zählpunkt", layout="titles")


@_table
def _31_cash_discount(rng: Generator) -> Made:
    n = 1700
    invoiced, after = p.days(rng, n), rng.integers(1, 45, n)
    gross = p.money(rng, 30, 18_000, n)
    in_time = after <= 10
    exact = gross * np.where(in_time, 0.98, 1.0)
    columns = {
        "invoice": p.codes("RE", n),
        "invoiced": p.iso(invoiced),
        "paid_on": p.iso(invoiced + after),
        "gross": gross,
        "customer": rng.integers(200, 300, n),
        "bank": rng.choice(["A", "B", "C"], n),
    }
    errors = {
        "discount too late": gross * 0.98,
        "discount not taken": np.where(in_time, gross, 0.97 * gross),
        "not paid in full": 0.5 * gross,
        "digits": p.swapped(rng, exact),
    }
    cut = Cut(10, 11)
    form = Form(
        "gross*(1 - 0.02*(paid_on - invoiced <= 10))",
        ("invoiced", "paid_on", "gross"),
        (0.02, cut),
        ((0.98, cut, cut),),
    )
    return Made(columns, "paid", exact, form, 0.12, errors, id="invoice")


@_table
def _32_vat_included(rng: Generator) -> Made:
    n = 2000
    rates = {"A": 0.19, "B": 0.07, "F": 0.0}
    code, rate = p.pick(rng, rates, n)
    gross = p.money(rng, 2, 1900, n)
    exact = gross * rate / (1 + rate)
    columns = {
        "Bon": p.codes("B", n),
        "Kasse": rng.integers(1, 8, n),
        "Datum": p.day_month(p.days(rng, n)),
        "Kennz.": code,
        "Brutto": gross,
        "Artikel": rng.integers(1, 30, n),
    }
    errors = {
        "of the gross": gross * np.maximum(rate, 0.05),
        "full rate": gross * 0.19 / 1.19,
        "net in place of VAT": gross - exact,
        "digits": p.one_digit(rng, exact),
    }
    pairs = ((0.19 / 1.19, 0.07 / 1.07), (19.0, 119.0, 7.0, 107.0), (0.19, 0.07), (1.19, 0.19, 1.07, 0.07))
    form = Form("Brutto:`Kennz.`", ("Kennz.", "Brutto"), pairs[0], pairs[1:])
    return Made(columns, "MwSt", exact, form, 0.15, errors, id="Bon", layout="titles")


@_table
def _33_child_support(rng: Generator) -> Made:
    n = 1900
    amounts = np.array(
        [[480, 551, 645, 689], [504, 579, 678, 724], [528, 607, 710, 758], [552, 634, 742, 793]], dtype=float
    )
    age, income = rng.integers(0, 23, n), np.round(rng.uniform(1500, 3300, n), 0)
    column, row = np.searchsorted([6, 12, 18], age, side="right"), np.searchsorted([2100, 2500, 2900], income)
    exact = amounts[row, column] - 125
    columns = {
        "case": p.codes("U", n),
        "age": age,
        "net_income": income.astype(int),
        "children": rng.integers(1, 4, n),
        "lives_with": rng.choice(["father", "mother"], n, p=[0.2, 0.8]),
    }
    errors = {
        "benefit not deducted": exact + 125,
        "next income group": amounts[np.minimum(row + 1, 3), column] - 125,
        "age band before": amounts[row, np.maximum(column - 1, 0)] - 125,
        "digits": p.swapped(rng, exact, 0),
    }
    cuts = [Cut.of(age, at) for at in (6, 12, 18)] + [Cut.of(income, at) for at in (2100, 2500, 2900)]
    form = Form("16 amounts by age and income", ("age", "net_income"), (*(amounts - 125).ravel().tolist(), *cuts))
    return Made(columns, "support", exact, form, 0.11, errors, places=0, id="case")


@_table
def _34_body_surface(rng: Generator) -> Made:
    n = 1100
    cm, kg = rng.integers(60, 205, n), np.round(rng.gamma(9, 6.5, n) + 6, 1)
    exact = np.sqrt(cm * kg / 3600)
    columns = {
        "patient": p.codes("PT", n),
        "sex": rng.choice(["f", "m"], n),
        "cm": cm,
        "kg": kg,
        "creatinine": np.round(rng.gamma(8, 0.12, n), 2),
        "cycle": rng.integers(1, 9, n),
    }
    errors = {
        "pounds": np.sqrt(cm * kg * 2.2046 / 3600),
        "no root": cm * kg / 3600,
        "another row": p.another_row(rng, exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form("sqrt(cm*kg/3600)", ("cm", "kg"), (3600.0,), ((60.0,), (60.0, 0.5, 0.5), (60.0, 0.5)))
    return Made(columns, "bsa", exact, form, 0.18, errors, id="patient")


@_table
def _35_growth(rng: Generator) -> Made:
    n = 1000
    old = p.money(rng, 900, 400_000, n, 0)
    new = np.round(old * rng.normal(1.04, 0.15, n).clip(0.5, 1.7), 0)
    exact = 100 * (new - old) / old
    columns = {
        "commune": p.codes("C", n),
        "county": rng.choice(["Essex", "Kent", "Surrey"], n),
        "y2022": old,
        "y2023": new,
        "area": p.uniform(rng, 2, 90, n),
    }
    errors = {
        "of the new": 100 * (new - old) / new,
        "share": exact / 100,
        "sign": -exact,
        "digits": p.one_digit(rng, exact, 1),
    }
    form = Form("y2023/y2022", ("y2022", "y2023"))
    return Made(columns, "growth", exact, form, 0.20, errors, places=1, id="commune", layout="percent")


@_table
def _36_best_of_two(rng: Generator) -> Made:
    n = 380
    exam, project, first, second = (rng.integers(low, 101, n) for low in (20, 35, 10, 10))
    best = np.maximum(first, second)
    exact = 0.4 * exam + 0.35 * project + 0.25 * best
    columns = {
        "student": p.codes("M", n),
        "exam": exam,
        "project": project,
        "quiz1": first,
        "quiz2": second,
        "absent": rng.integers(0, 8, n),
    }
    errors = {
        "first quiz": np.where(first < best, exact - 0.25 * (best - first), exact + 5),
        "project forgotten": exact - 0.35 * project,
        "equal weights": (exam + project + best) / 3,
        "digits": p.swapped(rng, exact, 1),
    }
    form = Form(
        "exam, project, max(quiz1, quiz2)",
        ("exam", "project", "quiz1", "quiz2"),
        (0.4, 0.35, 0.25),
        ((0.4, 0.35, 0.25, 0.25),),
    )
    return Made(columns, "mark", exact, form, 0.12, errors, places=1, id="student")


@_table
def _37_card_statement(rng: Generator) -> Made:
    n = 2800
    rates = {"EUR": 1.0, "CHF": 1.0415, "DKK": 0.1341, "GBP": 1.1668, "SEK": 0.0883, "USD": 0.9234}
    currency, rate = p.pick(rng, rates, n)
    amount = p.money(rng, 3, 2400, n)
    foreign = currency != "EUR"
    exact = amount * rate + 2.5 * foreign
    columns = {
        "booking": np.arange(1, n + 1),
        "date": p.iso(p.days(rng, n)),
        "currency": currency,
        "amount": amount,
        "merchant": rng.integers(10_000, 10_400, n),
        "card": rng.choice(["Gold", "Blue"], n),
    }
    errors = {
        "fee forgotten": np.where(foreign, amount * rate, amount + 2.5),
        "not converted": amount + 2.5 * foreign,
        "divided": amount / rate + 2.5 * foreign,
        "ten times": p.scaled(rng, exact, (10.0,)),
        "digits": p.swapped(rng, exact),
    }
    own = tuple(rates.values())[1:]
    form = Form(
        "amount:currency, (currency != EUR)",
        ("currency", "amount"),
        (*own, 2.5),
        ((*own, 2.5, 2.5), (*own, *(2.5,) * 5)),
    )
    return Made(columns, "debit", exact, form, 0.16, errors, id="booking", layout="euros")


@_table
def _38_no_claims_class(rng: Generator) -> Made:
    n = 3600
    classes = {"M": 1.55, "0": 1.2, "1/2": 0.85, "1": 0.66, "2": 0.57, "4": 0.46, "8": 0.36, "15": 0.27}
    sf, factor = p.pick(rng, classes, n)
    base, age = np.round(rng.uniform(380, 1400, n), 0), rng.integers(18, 85, n)
    young = np.where(age < 25, 1.3, 1.0)
    exact = base * factor * young
    columns = {
        "policy": p.codes("KFZ", n),
        "SF": np.array([f"SF {name}" for name in sf.tolist()]),
        "base": base,
        "age": age,
        "region": rng.choice(["R1", "R2", "R3"], n),
        "km": rng.choice([6000, 9000, 12_000, 15_000, 20_000], n),
        "garage": _gaps(rng, _yes(rng, n, 0.4)),
    }
    errors = {
        "young drivers forgotten": base * factor,
        "class not applied": base * young,
        "class of another row": base * p.another_row(rng, factor) * young,
        "digits": p.one_digit(rng, exact),
    }
    form = Form(
        "base * factor[SF] * (1 + 0.3*(age < 25))",
        ("SF", "base", "age"),
        (*classes.values(), 0.3, Cut.of(age, 25)),
        free_scale=True,
    )
    return Made(columns, "premium", exact, form, 0.19, errors, id="policy", layout="workbook")


@_table
def _39_gears(rng: Generator) -> Made:
    n = 1500
    front, rear = rng.choice([34, 39, 50, 52], n), rng.choice([11, 12, 14, 16, 18, 21, 25, 28], n)
    rpm = rng.integers(48, 118, n)
    exact = 0.1263 * rpm * front / rear
    columns = {
        "second": np.arange(n) * 2,
        "rpm": rpm,
        "front": front,
        "rear": rear,
        "watt": rng.integers(60, 420, n),
        "pulse": rng.integers(90, 185, n),
    }
    errors = {
        "upside down": 0.1263 * rpm * rear / front,
        "miles": exact / 1.609344,
        "stuck": np.roll(exact, 1),
        "ten times": p.scaled(rng, exact),
        "junk": p.junk(rng, exact, 1),
    }
    form = Form("rpm*front/rear", ("rpm", "front", "rear"), (0.1263,))
    return Made(columns, "kmh", exact, form, 0.45, errors, places=1, id="second", layout="parquet")


@_table
def _40_signal_level(rng: Generator) -> Made:
    n = 1300
    power, cable = np.round(np.exp(rng.uniform(np.log(0.05), np.log(900), n)), 2), rng.integers(0, 45, n)
    exact = 10 * np.log10(power) - 0.35 * cable
    columns = {"power_mw": power, "cable_m": cable, "channel": rng.integers(1, 14, n)}
    errors = {
        "cable forgotten": 10 * np.log10(power) - 1,
        "20 log": 20 * np.log10(power) - 0.35 * cable,
        "in milliwatt": power,
        "digits": p.one_digit(rng, exact, 1),
    }
    log = 10 / float(np.log(10))
    form = Form("log(power_mw), cable_m", ("power_mw", "cable_m"), (10.0, 0.35), ((log, 0.35), (10.0, 10.0, 0.35)))
    return Made(columns, "dbm", exact, form, 0.23, errors, places=1, layout="tsv")
