"""Forty more tables of shops, workshops, farms and clubs: a fourth blind set, as much of it wrong as in the third.

They were written, before they were run, by somebody who had seen neither the search nor what it can do. A weighbridge,
a call centre, a diving contest, a regatta, a ferry, a skip hire: some of their rules are one line of arithmetic (01 to
13), some have a category, a cap, a season, a bracket, a least amount or a rounding (14 to 27), some several of these at
once (28 to 40). Every rule is determined by the columns. From 9 to 43 % of the values are wrong, in rows chosen at
random, each by one of two to four mistakes: ten tables each below 15, 25, 35 and 45 %. In no level, weekday, month or
tenth of a column does one mistake hold on as many rows as the rule.

Each rule stands here twice, written by hand: as NumPy in the maker, and as the text ``Form.terms``, an expression on
one row. ``python benchmarks/street_tables.py --check`` does with them what `trade_tables` does with its own.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import planted as p
import trade_tables as trades
from office_tables import _clock, _gaps, _month, _some
from planted import Cut, Generator, Made, Make
from trade_tables import _blank, _errors, _form, _levels, _to, _up, _whole, _yes

TABLES: dict[str, Make] = {}
"""The tables by name."""


def _table(make: Make) -> Make:
    TABLES[make.__name__.strip("_").replace("_", "-")] = make
    return make


def _step(values: NDArray[Any], *limits: float) -> NDArray[np.int64]:
    """Return how many of the limits each value has reached."""
    return np.searchsorted(np.array(limits), values, side="right")


# One line of arithmetic.


@_table
def _01_tonne_km(rng: Generator) -> Made:
    n = 2400
    kg, km = _whole(rng, n, 2.2, 9800, 350), _whole(rng, n, 1.6, 240, 8)
    exact = kg * km / 1000
    columns = {
        "Fuvarlevél": p.codes("FL", n),
        "Dátum": p.iso(p.days(rng, n)),
        "Rendszám": np.array([f"KAM-{k}" for k in rng.integers(101, 140, n).tolist()]),
        "Rakomány": rng.choice(["bútor", "fa", "gabona", "vegyes"], n),
        "Súly kg": kg,
        "Távolság km": km,
        "Raklap": rng.integers(1, 34, n),
        "Gázolaj l": np.round(km * rng.uniform(0.22, 0.36, n), 1),
    }
    own = {"kilograms left": kg * km * 1.0, "empty way counted too": 2 * exact}
    errors = _errors(rng, exact, own, "another row", "swapped", places=1)
    form = _form("`Súly kg`*`Távolság km`/1000", ("Súly kg", "Távolság km"))
    return Made(columns, "tkm", exact, form, 0.27, errors, places=1, id="Fuvarlevél", layout="semicolons")


@_table
def _02_chlorine(rng: Generator) -> Made:
    n = 1100
    cubic, wanted = rng.integers(120, 2600, n), rng.choice([0.5, 0.6, 0.8, 1.0], n)
    measured = np.round(rng.uniform(0.02, 0.42, n), 2)
    exact = cubic * (wanted - measured)
    columns = {
        "log": np.arange(5001, 5001 + n),
        "date": p.iso(p.days(rng, n)),
        "reservoir": rng.choice(["east", "hill", "mill lane", "tower"], n),
        "volume m3": cubic,
        "target mg/l": wanted,
        "measured mg/l": measured,
        "pH": np.round(rng.uniform(7.2, 8, n), 1),
        "water C": np.round(rng.normal(11, 3, n), 1),
        "remark": _gaps(rng, rng.choice(["pump serviced", "sample sent", "storm"], n), 0.88),
    }
    own = {
        "what is there not taken off": cubic * wanted,
        "target of the last round": cubic * np.abs(0.9 - measured),
        "volume of another": p.another_row(rng, cubic * 1.0) * (wanted - measured),
    }
    errors = _errors(rng, exact, own, "ten times", places=1)
    form = _form("`volume m3`*(`target mg/l` - `measured mg/l`)", ("volume m3", "target mg/l", "measured mg/l"))
    return Made(columns, "chlorine g", exact, form, 0.39, errors, places=1, id="log")


@_table
def _03_earned_runs(rng: Generator) -> Made:
    n = 620
    outs = rng.integers(18, 640, n)
    earned = rng.poisson(outs / 27 * rng.uniform(2, 6.5, n)) + 1
    exact = 27 * earned / outs
    columns = {
        "player_id": p.codes("PL", n),
        "season": rng.integers(2012, 2025, n),
        "team": rng.choice(["Bears", "Comets", "Herons", "Mules", "Pilots"], n),
        "G": rng.integers(4, 62, n),
        "outs": outs,
        "H": rng.poisson(outs / 3.1),
        "R": earned + rng.poisson(earned * 0.09),
        "ER": earned,
        "BB": rng.poisson(outs / 9),
        "SO": rng.poisson(outs / 3.6),
    }
    own = {
        "unearned runs too": 27 * columns["R"] / outs,
        "seven innings": 21 * earned / outs,
    }
    errors = _errors(rng, exact, own, "swapped")
    form = _form("27*ER/outs", ("ER", "outs"), ((9.0, 3.0),))
    return Made(columns, "ERA", exact, form, 0.12, errors, id="player_id", layout="tsv")


@_table
def _04_own_solar_power(rng: Generator) -> Made:
    n = 1460
    made = np.round(rng.gamma(2.1, 8.5, n) + 1.5, 1)
    sold = np.round(made * rng.beta(3, 2.2, n), 1)
    bought = np.round(rng.gamma(2.4, 3, n), 1)
    exact = 100 * (made - sold) / made
    columns = {
        "Datum": p.dotted(p.days(rng, n, "2021-01-01", 1400)),
        "Anlage": rng.choice(["Carport", "Hof", "Scheune", "Stall"], n),
        "Erzeugt kWh": made,
        "Eingespeist kWh": sold,
        "Bezug kWh": bought,
        "Sonne h": np.round(rng.uniform(0, 15, n), 1),
        "Batterie %": rng.integers(5, 101, n),
    }
    own = {
        "share that was sold": 100 * sold / made,
        "self-sufficiency": 100 * (made - sold) / (made - sold + bought),
        "rounded day": np.round(exact / 10) * 10,
    }
    errors = _errors(rng, exact, own, "digits", places=1)
    form = _form("100*(`Erzeugt kWh` - `Eingespeist kWh`)/`Erzeugt kWh`", ("Erzeugt kWh", "Eingespeist kWh"))
    return Made(columns, "Eigenverbrauch %", exact, form, 0.21, errors, places=1, layout="semicolons")


@_table
def _05_colonies(rng: Generator) -> Made:
    n = 1300
    first, second = rng.integers(22, 290, n), rng.integers(22, 290, n)
    diluted, plated = rng.choice([10, 100, 1000], n), rng.choice([0.1, 0.2, 0.5, 1.0], n)
    exact = (first + second) / 2 * diluted / plated
    columns = {
        "sample": p.codes("S-", n),
        "taken": p.iso(p.days(rng, n)),
        "matrix": rng.choice(["cheese", "milk", "surface", "water"], n),
        "plate_a": first,
        "plate_b": second,
        "dilution": diluted,
        "ml": plated,
        "hours": rng.choice([24, 48, 72], n),
        "incubator": rng.integers(1, 5, n),
    }
    own = {
        "volume forgotten": exact * plated,
        "both plates added": 2 * exact,
        "only the first plate": first * diluted / plated,
        "one dilution further": 10 * exact,
    }
    errors = _errors(rng, exact, own, places=0)
    text = "(plate_a + plate_b)/2*dilution/ml"
    form = _form(text, ("plate_a", "plate_b", "dilution", "ml"), ((2.0, 2.0),))
    return Made(columns, "cfu_ml", exact, form, 0.36, errors, places=0, id="sample", layout="jsonl")


@_table
def _06_book_spine(rng: Generator) -> Made:
    n = 780
    pages = 8 * rng.integers(8, 110, n)
    paper, cover = rng.choice([90, 105, 115, 130, 150], n), rng.choice([0.25, 0.3, 0.4], n)
    exact = pages / 2 * paper / 1000 + 2 * cover
    columns = {
        "Ordre": np.arange(23_001, 23_001 + n),
        "Tittel": p.codes("T", n),
        "Format": rng.choice(["130x200", "148x210", "170x240"], n),
        "Sider": pages,
        "Papir my": paper,
        "Omslag mm": cover,
        "Gram": rng.choice([80, 90, 100, 115], n),
        "Opplag": 50 * rng.integers(2, 80, n),
        "Ferdig": p.dotted(p.days(rng, n)),
    }
    own = {
        "pages for leaves": 2 * exact - 2 * cover,
        "cover forgotten": exact - 2 * cover,
        "cover once": exact - cover,
    }
    errors = _errors(rng, exact, own, "swapped", places=1)
    form = _form("Sider/2*`Papir my`/1000 + 2*`Omslag mm`", ("Sider", "Papir my", "Omslag mm"), ((2000.0, 2.0),))
    return Made(columns, "Rygg mm", exact, form, 0.14, errors, places=1, id="Ordre", layout="decimal comma")


@_table
def _07_room_revenue(rng: Generator) -> Made:
    n = 1090
    rooms = rng.choice([18, 34, 52, 76], n)
    sold = rng.binomial(rooms, rng.uniform(0.35, 0.97, n))
    all_ = np.round(sold * rng.uniform(78, 165, n) + 40, 2)
    meals = np.round(sold * rng.uniform(9, 21, n), 2)
    exact = (all_ - meals) / rooms
    columns = {
        "Tag": p.dotted(p.days(rng, n)),
        "Haus": rng.choice(["Alpenhof", "Bahnhof", "Park", "See"], n),
        "Zimmer": rooms,
        "Belegt": sold,
        "Erlös Logis": all_,
        "davon Frühstück": meals,
        "Gäste": np.rint(sold * rng.uniform(1.1, 1.9, n)).astype(int),
        "Wetter": _gaps(rng, rng.choice(["Regen", "Schnee", "Sonne"], n), 0.3),
    }
    own = {
        "breakfast left in": all_ / rooms,
        "price of a room that was sold": (all_ - meals) / np.maximum(1, sold),
    }
    errors = _errors(rng, exact, own, "another row")
    form = _form("(`Erlös Logis` - `davon Frühstück`)/Zimmer", ("Erlös Logis", "davon Frühstück", "Zimmer"))
    return Made(columns, "RevPAR", exact, form, 0.30, errors, layout="titles")


@_table
def _08_handling_time(rng: Generator) -> Made:
    n = 2000
    calls = rng.integers(12, 95, n)
    talk = np.rint(calls * rng.uniform(120, 330, n)).astype(int)
    hold, after = (
        np.rint(calls * rng.uniform(4, 45, n)).astype(int),
        np.rint(calls * rng.uniform(15, 80, n)).astype(int),
    )
    exact = (talk + hold + after) / calls
    columns = {
        "shift": p.codes("SH", n),
        "date": p.day_month(p.days(rng, n)),
        "agent": rng.integers(301, 345, n),
        "queue": rng.choice(["billing", "moves", "sales", "technical"], n),
        "calls": calls,
        "talk_s": talk,
        "hold_s": hold,
        "after_call_s": after,
        "transfers": rng.poisson(calls * 0.08),
        "satisfaction": _gaps(rng, np.round(rng.uniform(2.5, 5, n), 1), 0.2),
    }
    own = {
        "hold forgotten": (talk + after) / calls,
        "talk only": talk / calls,
        "after-call work forgotten": (talk + hold) / calls,
    }
    errors = _errors(rng, exact, own, "guessed", places=0)
    form = _form("(talk_s + hold_s + after_call_s)/calls", ("talk_s", "hold_s", "after_call_s", "calls"))
    return Made(columns, "AHT", exact, form, 0.43, errors, places=0, id="shift", layout="parquet")


@_table
def _09_feed_conversion(rng: Generator) -> Made:
    n = 460
    pigs = rng.integers(40, 420, n)
    start, end = np.round(rng.normal(27, 2.5, n).clip(20, 35), 1), np.round(rng.normal(116, 6, n).clip(95, 135), 1)
    feed = np.rint(pigs * (end - start) * rng.normal(2.75, 0.22, n)).astype(int)
    exact = feed / (pigs * (end - start))
    columns = {
        "Ronde": p.codes("R", n),
        "Opgelegd": p.iso(p.days(rng, n, "2018-01-01", 2000)),
        "Stal": rng.choice(["A", "B", "C", "D"], n),
        "Dieren": pigs,
        "Gewicht in": start,
        "Gewicht uit": end,
        "Voer kg": feed,
        "Uitval": rng.binomial(pigs, 0.02),
        "Dagen": rng.integers(98, 131, n),
        "Voerprijs": np.round(rng.uniform(24, 38, n), 2),
    }
    own = {
        "start not taken off": feed / (pigs * end),
        "the dead taken off": feed / ((pigs - columns["Uitval"]) * (end - start)),
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    form = _form(
        "`Voer kg`/(Dieren*(`Gewicht uit` - `Gewicht in`))", ("Voer kg", "Dieren", "Gewicht uit", "Gewicht in")
    )
    return Made(columns, "Voederconversie", exact, form, 0.18, errors, id="Ronde", layout="semicolons")


@_table
def _10_loss_ratio(rng: Generator) -> Made:
    n = 540
    premium = p.money(rng, 40_000, 2_500_000, n, 0)
    paid = np.round(premium * rng.beta(2.5, 3, n), 0)
    before, after = np.round(premium * rng.beta(2, 9, n), 0), np.round(premium * rng.beta(2, 9, n), 0)
    exact = 100 * (paid + after - before) / premium
    columns = {
        "portfolio": p.codes("PF", n),
        "year": rng.integers(2009, 2025, n),
        "line": rng.choice(["cargo", "fire", "liability", "motor", "travel"], n),
        "premium earned": premium,
        "claims paid": paid,
        "reserve 1 Jan": before,
        "reserve 31 Dec": after,
        "policies": rng.integers(60, 9000, n),
        "broker": _gaps(rng, rng.integers(10, 60, n).astype(float), 0.4),
    }
    own = {
        "reserves forgotten": 100 * paid / premium,
        "reserves the wrong way": 100 * (paid + before - after) / premium,
        "opening reserve kept": 100 * (paid + after) / premium,
    }
    errors = _errors(rng, exact, own, "swapped", places=1)
    read = ("claims paid", "reserve 31 Dec", "reserve 1 Jan", "premium earned")
    form = _form("100*(`claims paid` + `reserve 31 Dec` - `reserve 1 Jan`)/`premium earned`", read)
    return Made(columns, "loss ratio", exact, form, 0.10, errors, places=1, id="portfolio", layout="percent")


@_table
def _11_sludge_index(rng: Generator) -> Made:
    n = 900
    settled, solids = 10 * rng.integers(12, 95, n), 10 * rng.integers(170, 520, n)
    exact = 1000 * settled / solids
    columns = {
        "Päivä": p.dotted(p.days(rng, n, "2020-01-01", 1500)),
        "Linja": rng.integers(1, 5, n),
        "Laskeuma ml/l": settled,
        "Kiintoaine mg/l": solids,
        "Happi mg/l": np.round(rng.uniform(0.6, 4.2, n), 1),
        "Virtaama m3": rng.integers(2000, 19_000, n),
        "Lämpö": np.round(rng.normal(12, 4, n), 1),
        "Huom": _gaps(rng, rng.choice(["rihmaa", "sade", "vaahtoa"], n), 0.8),
    }
    own = {
        "the other way round": solids / settled * 10,
        "of another line": p.another_row(rng, 1000.0 * settled) / solids,
    }
    errors = _errors(rng, exact, own, "ten times", "digits", places=0)
    form = _form("1000*`Laskeuma ml/l`/`Kiintoaine mg/l`", ("Laskeuma ml/l", "Kiintoaine mg/l"))
    return Made(columns, "SVI", exact, form, 0.33, errors, places=0, layout="semicolons")


@_table
def _12_weighbridge(rng: Generator) -> Made:
    n = 3200
    tare, pallets = 20 * rng.integers(360, 840, n), rng.integers(0, 34, n)
    gross = tare + 22 * pallets + 20 * rng.integers(40, 1150, n)
    exact = (gross - tare - 22 * pallets).astype(float)
    columns = {
        "Kwit": np.arange(1, n + 1),
        "Data": p.dotted(p.days(rng, n)),
        "Brama": rng.choice(["północ", "tory", "wschód"], n),
        "Towar": rng.choice(["cegła", "cement", "nawóz", "wapno"], n),
        "Brutto kg": gross,
        "Tara kg": tare,
        "Palety": pallets,
        "Wilgotność": _gaps(rng, np.round(rng.uniform(1, 15, n), 1), 0.5),
        "Wagowy": rng.integers(1, 7, n),
    }
    own = {"pallets forgotten": exact + 22 * pallets, "heavy pallets": exact - 3 * pallets, "gross": gross * 1.0}
    errors = _errors(rng, exact, own, "swapped", places=0)
    form = _form("`Brutto kg` - `Tara kg` - 22*Palety", ("Brutto kg", "Tara kg", "Palety"))
    return Made(columns, "Netto kg", exact, form, 0.24, errors, places=0, id="Kwit", layout="workbook")


@_table
def _13_knitting(rng: Generator) -> Made:
    n = 350
    width, gauge = 0.5 * rng.integers(24, 240, n), rng.integers(14, 33, n)
    edge = rng.choice([1, 2, 3, 4], n)
    exact = width * gauge / 10 + 2 * edge
    columns = {
        "pattern": p.codes("K", n),
        "piece": rng.choice(["back", "front", "scarf", "sleeve"], n),
        "yarn": rng.choice(["alpaca", "cotton", "merino"], n),
        "needles": rng.choice([2.5, 3.0, 3.5, 4.0, 5.0], n),
        "width_cm": width,
        "stitches_10cm": gauge,
        "rows_10cm": gauge + rng.integers(4, 13, n),
        "edge": edge,
        "grams": 25 * rng.integers(2, 30, n),
    }
    own = {
        "edge forgotten": width * gauge / 10,
        "rows for stitches": width * columns["rows_10cm"] / 10 + 2 * edge,
        "edge on one side": width * gauge / 10 + edge,
        "inches": width * gauge / 4 + 2 * edge,
    }
    errors = _errors(rng, exact, own, places=0)
    form = _form("width_cm*stitches_10cm/10 + 2*edge", ("width_cm", "stitches_10cm", "edge"))
    return Made(columns, "cast_on", exact, form, 0.40, errors, places=0, id="pattern")


# One case, cap, table, bracket or rounding.


@_table
def _14_roaming(rng: Generator) -> Made:
    n = 2700
    rates = {"EU": 0.0022, "Europe other": 0.049, "North America": 0.09, "World": 0.19}
    zone, rate = p.pick(rng, rates, n)
    data, texts = _whole(rng, n, 1.1, 240, 3), _some(rng, n, 0.55, 1, 40)
    exact = rate * data + 0.12 * texts
    columns = {
        "record": p.codes("CDR", n),
        "month": rng.choice(["2024-01", "2024-02", "2024-03", "2024-04"], n),
        "zone": zone,
        "data_mb": data,
        "sms": texts,
        "calls_in": rng.poisson(4, n),
        "handset": rng.choice(["basic", "smart", "watch"], n),
        "plan": rng.choice(["L", "M", "S"], n),
    }
    own = {
        "texts forgotten": rate * data,
        "zone of another": p.another_row(rng, rate) * data + 0.12 * texts,
        "old price of a text": exact - 0.03 * texts,
    }
    errors = _errors(rng, exact, own, "ten times")
    others = tuple((*way, 0.12) for way in _levels(tuple(rates.values())))
    form = _form(f"{rates!r}[zone]*data_mb + 0.12*sms", ("zone", "data_mb", "sms"), others)
    return Made(columns, "charge", exact, form, 0.16, errors, id="record", layout="parquet")


@_table
def _15_bin_emptyings(rng: Generator) -> Made:
    n = 1700
    times = rng.binomial(26, rng.beta(3, 3, n))
    exact = 96.5 + 4.35 * np.maximum(0, times - 12)
    columns = {
        "Kassenzeichen": np.arange(700_100, 700_100 + n),
        "Straße": rng.choice(["Am Anger", "Bachweg", "Lindenallee", "Ringstraße"], n),
        "Personen": rng.integers(1, 7, n),
        "Behälter l": rng.choice([60, 80, 120], n),
        "Leerungen": times,
        "Biotonne": _yes(rng, n, 0.4, "ja", "nein"),
        "Bescheid": p.dotted(p.days(rng, n, "2024-01-08", 60)),
    }
    own = {
        "each emptying counted": 96.5 + 4.35 * times,
        "extra ones forgotten": np.full(n, 96.5),
        "fees of last year": 92.0 + 4.1 * np.maximum(0, times - 12),
    }
    errors = _errors(rng, exact, own, "swapped")
    form = _form("96.5 + 4.35*max(0, Leerungen - 12)", ("Leerungen",), ((44.3, 4.35, 12.0), (96.5, 44.3, 4.35)))
    return Made(columns, "Gebühr", exact, form, 0.11, errors, id="Kassenzeichen", layout="decimal comma")


@_table
def _16_swiss_marks(rng: Generator) -> Made:
    n = 1500
    best = rng.choice([24, 30, 36, 45, 60], n)
    points = np.round(2 * best * (0.28 + 0.72 * rng.beta(2.6, 1.9, n))) / 2
    exact = _to(1 + 5 * points / best, 0.5)
    columns = {
        "Prüfung": rng.integers(1, 25, n),
        "Schüler": rng.integers(1001, 1400, n),
        "Klasse": rng.choice(["3a", "3b", "4a", "4b"], n),
        "Fach": rng.choice(["Biologie", "Chemie", "Französisch", "Mathematik"], n),
        "Punkte": points,
        "Maximum": best,
        "Datum": p.dotted(p.days(rng, n)),
        "Nachprüfung": np.where(rng.random(n) < 0.05, "x", ""),
    }
    own = {
        "not rounded": 1 + 5 * points / best,
        "one mark forgotten": _to(5 * points / best, 0.5),
        "out of six": _to(6 * points / best, 0.5),
        "rounded to whole marks": _to(1 + 5 * points / best, 1.0),
    }
    errors = _errors(rng, exact, own, places=1)
    text = "nearest(1 + 5*Punkte/Maximum, 0.5)"
    form = _form(text, ("Punkte", "Maximum"), ((5.0, 0.5, 0.5), (10.0, 2.0), (2.0, 5.0, 2.0), (5.0, 2.0, 2.0)))
    return Made(columns, "Note", exact, form, 0.28, errors, places=1, layout="swiss")


@_table
def _17_cancellation(rng: Generator) -> Made:
    n = 1250
    price, left = p.money(rng, 140, 3600, n), np.rint(rng.gamma(1.1, 14, n)).astype(int)
    shares = [0.9, 0.6, 0.25, 0.1]
    exact = price * np.array(shares)[_step(left, 3, 8, 22)]
    columns = {
        "booking": p.codes("B", n),
        "made on": p.day_month(p.days(rng, n)),
        "house": rng.choice(["Bay View", "Old Mill", "The Anchor"], n),
        "rooms": rng.integers(1, 5, n),
        "price": price,
        "days before": left,
        "channel": rng.choice(["agency", "phone", "portal", "web"], n),
        "guests": rng.integers(1, 9, n),
        "reason": _gaps(rng, rng.choice(["illness", "other", "weather"], n), 0.4),
    }
    own = {
        "terms of last year": price * np.array([0.8, 0.5, 0.2, 0.0])[_step(left, 3, 8, 22)],
        "the whole price": price,
        "share of the next step": price * np.array([*shares[1:], 0.0])[_step(left, 3, 8, 22)],
        "what is paid back": price - exact,
    }
    errors = _errors(rng, exact, own)
    cuts = {at: Cut.of(left, at) for at in (3.0, 8.0, 22.0)}
    limits, steps = tuple(cuts.values()), ((0.9, 0.3, 0.35, 0.15), (0.1, 0.3, 0.35, 0.15))
    others = tuple((*way, *limits) for way in (*_levels(shares), *steps))
    form = _form(f"price*{shares!r}[bracket(`days before`, 3, 8, 22)]", ("price", "days before"), others, cuts)
    return Made(columns, "fee", exact, form, 0.37, errors, id="booking", layout="total")


@_table
def _18_corrected_calcium(rng: Generator) -> Made:
    n = 1900
    calcium, albumin = np.round(rng.normal(2.28, 0.16, n), 2), rng.integers(22, 52, n)
    exact = calcium + 0.02 * np.maximum(0, 40 - albumin)
    columns = {
        "tube": p.codes("LB", n),
        "drawn": p.iso(p.days(rng, n)),
        "age": rng.integers(18, 96, n),
        "sex": rng.choice(["f", "m"], n),
        "calcium": calcium,
        "albumin": albumin,
        "phosphate": np.round(rng.normal(1.1, 0.2, n), 2),
        "creatinine": np.rint(rng.gamma(8, 11, n)).astype(int),
        "ward": _gaps(rng, rng.choice(["dialysis", "medical", "surgical"], n), 0.2),
    }
    own = {
        "not corrected": calcium,
        "corrected too much": calcium + 0.025 * np.maximum(0, 40 - albumin),
        "from 44": calcium + 0.02 * np.maximum(0, 44 - albumin),
    }
    errors = _errors(rng, exact, own, "swapped")
    form = _form("calcium + 0.02*max(0, 40 - albumin)", ("calcium", "albumin"), ((0.8, 0.02), (0.02, 40.0, 40.0)))
    return Made(columns, "calcium corr", exact, form, 0.23, errors, id="tube")


@_table
def _19_pet_insurance(rng: Generator) -> Made:
    n = 830
    bill, excess = np.round(rng.gamma(1.6, 260, n) + 25, 2), rng.choice([50, 100, 150, 250], n)
    exact = 0.8 * np.maximum(0, bill - excess)
    columns = {
        "sinistre": p.codes("SN", n),
        "reçu": p.day_month(p.days(rng, n)),
        "animal": rng.choice(["chat", "chien", "lapin"], n, p=[0.4, 0.5, 0.1]),
        "âge": rng.integers(0, 15, n),
        "facture": bill,
        "franchise": excess,
        "acte": rng.choice(["accident", "chirurgie", "maladie"], n),
        "cotisation": np.round(rng.uniform(9, 48, n), 2),
    }
    own = {
        "excess after the share": np.maximum(0, 0.8 * bill - excess),
        "excess forgotten": 0.8 * bill,
        "the share forgotten": np.maximum(0, bill - excess),
        "old share": 0.7 * np.maximum(0, bill - excess),
    }
    errors = _errors(rng, exact, own)
    form = _form("0.8*max(0, facture - franchise)", ("facture", "franchise"))
    return Made(columns, "remboursé", exact, form, 0.34, errors, id="sinistre", layout="euros")


@_table
def _20_driving_times(rng: Generator) -> Made:
    n = 640
    driving, loading = rng.integers(40, 1080, n), 5 * rng.integers(0, 37, n)
    exact = driving + loading + 45 * np.floor(driving / 270)
    columns = {
        "tour": p.codes("TR", n),
        "start": _clock(rng.integers(180, 900, n)),
        "depot": rng.choice(["Gent", "Luik", "Namen"], n),
        "driver": rng.integers(1, 36, n),
        "driving min": driving,
        "loading min": loading,
        "stops": rng.integers(1, 15, n),
        "km": np.rint(driving * rng.uniform(0.8, 1.3, n)).astype(int),
    }
    own = {
        "breaks forgotten": driving + loading * 1.0,
        "half an hour of break": driving + loading + 30 * np.floor(driving / 270),
        "loading forgotten": exact - loading,
    }
    errors = _errors(rng, exact, own, "swapped", places=0)
    text = "`driving min` + `loading min` + 45*floor(`driving min`/270)"
    form = _form(text, ("driving min", "loading min"))
    return Made(columns, "total min", exact, form, 0.09, errors, places=0, id="tour", layout="tsv")


@_table
def _21_district_heat(rng: Generator) -> Made:
    n = 3400
    day, heat = p.days(rng, n, "2022-01-01", 1090), rng.integers(180, 6400, n)
    month = _month(day)
    summer = (month >= 5) & (month <= 9)
    exact = heat * np.where(summer, 0.52, 0.89)
    columns = {
        "Målernr": rng.integers(40_000, 40_400, n),
        "Aflæst": p.dotted(day),
        "By": rng.choice(["Hjørring", "Nibe", "Skagen", "Sæby"], n),
        "Forbrug kWh": heat,
        "m3": np.round(heat * rng.uniform(0.018, 0.031, n), 1),
        "Fremløb": np.round(rng.normal(72, 5, n), 1),
        "Boligtype": rng.choice(["hus", "lejlighed", "række"], n),
    }
    own = {
        "winter price": heat * 0.89,
        "summer price": heat * 0.52,
        "VAT on top": 1.25 * exact,
        "price of last year": heat * np.where(summer, 0.49, 0.82),
    }
    errors = _errors(rng, exact, own)
    text = "`Forbrug kWh`*(0.52 if month(Aflæst) >= 5 and month(Aflæst) <= 9 else 0.89)"
    cuts = {5.0: Cut(4, 5), 9.0: Cut(9, 10)}
    prices = ((0.52, 0.89), (0.89, 0.37), (0.52, 0.37))
    others = tuple((*way, *more) for way in prices for more in ((), (Cut(4, 5), Cut(9, 10))))
    form = _form(text, ("Forbrug kWh", "Aflæst"), others, cuts)
    return Made(columns, "Beløb", exact, form, 0.41, errors, layout="decimal comma")


@_table
def _22_apple_sizes(rng: Generator) -> Made:
    n = 1150
    prices = {"65/70": 0.31, "70/75": 0.44, "75/80": 0.52, "80+": 0.47, "industria": 0.11}
    size, price = p.pick(rng, prices, n)
    kg = _whole(rng, n, 1.8, 2900, 120)
    exact = 0.975 * kg * price
    columns = {
        "Bolletta": p.codes("BO", n),
        "Data": p.day_month(p.days(rng, n, "2023-08-20", 75)),
        "Socio": rng.integers(1, 90, n),
        "Varietà": rng.choice(["Fuji", "Gala", "Golden", "Stark"], n),
        "Calibro": size,
        "Peso kg": kg,
        "Cassoni": _up(kg / 290).astype(int),
        "Durezza": np.round(rng.normal(6.8, 0.7, n), 1),
    }
    own = {
        "charge of the cooperative forgotten": kg * price,
        "size of another": 0.975 * kg * p.another_row(rng, price),
        "charge added": 1.025 * kg * price,
    }
    errors = _errors(rng, exact, own, "digits")
    net = tuple(round(0.975 * value, 6) for value in prices.values())
    others = (*((0.975, *way) for way in _levels(tuple(prices.values()))), *_levels(net))
    form = _form(f"0.975*`Peso kg`*{prices!r}[Calibro]", ("Peso kg", "Calibro"), others)
    return Made(columns, "Importo", exact, form, 0.19, errors, id="Bolletta", layout="euros")


@_table
def _23_phone_repair(rng: Generator) -> Made:
    n = 950
    cover = _yes(rng, n, 0.28)
    parts = np.where(rng.random(n) < 0.85, p.money(rng, 6, 210, n), 0)
    exact = np.where(cover == "yes", 15.0, parts + 49)
    columns = {
        "ticket": np.arange(9001, 9001 + n),
        "received": p.iso(p.days(rng, n)),
        "device": rng.choice(["laptop", "phone", "tablet"], n, p=[0.25, 0.6, 0.15]),
        "fault": rng.choice(["battery", "camera", "screen", "water"], n),
        "warranty": cover,
        "parts": _blank(parts),
        "minutes": rng.integers(10, 180, n),
        "bench": rng.integers(1, 6, n),
        "rating": _gaps(rng, rng.integers(1, 6, n).astype(float), 0.6),
    }
    own = {"warranty not looked at": parts + 49, "parts forgotten": np.where(cover == "yes", 0.0, 49.0)}
    errors = _errors(rng, exact, own, "swapped", "another row")
    form = _form("15 if warranty == 'yes' else parts + 49", ("warranty", "parts"), ((15.0, 34.0), (49.0, 34.0)))
    return Made(columns, "to pay", exact, form, 0.13, errors, id="ticket", layout="dollars")


@_table
def _24_diving(rng: Generator) -> Made:
    n = 1600
    level = rng.normal(6.8, 1.1, n)
    names = ("j1", "j2", "j3", "j4", "j5")
    marks = {name: (np.rint(2 * (level + rng.normal(0, 0.55, n))) / 2).clip(0, 10) for name in names}
    hard = np.round(rng.uniform(1.4, 3.8, n), 1)
    judges = np.stack(list(marks.values()))
    kept = judges.sum(0) - judges.max(0) - judges.min(0)
    exact = hard * kept
    columns = {
        "dive": p.codes("D", n),
        "athlete": rng.integers(1, 60, n),
        "board": rng.choice(["1 m", "10 m", "3 m"], n),
        "code": rng.choice(["103B", "107C", "205C", "305B", "5132D"], n),
        "dd": hard,
        **marks,
        "round": rng.integers(1, 7, n),
    }
    own = {
        "all five judges": hard * judges.sum(0),
        "the highest kept": hard * (judges.sum(0) - judges.min(0)),
        "difficulty forgotten": kept,
    }
    errors = _errors(rng, exact, own, "digits")
    text = "dd*(j1 + j2 + j3 + j4 + j5 - max(j1, j2, j3, j4, j5) - min(j1, j2, j3, j4, j5))"
    form = _form(text, ("dd", *names))
    return Made(columns, "points", exact, form, 0.26, errors, id="dive")


@_table
def _25_regatta(rng: Generator) -> Made:
    n = 480
    classes = {"Dyas": 101, "Jollenkreuzer": 112, "Laser": 114, "Pirat": 118, "Varianta": 120}
    kind, number = p.pick(rng, classes, n)
    start = rng.choice([600, 610, 620, 840, 850], n)
    finish = start + np.rint(rng.normal(0.78 * number, 9, n)).astype(int)
    exact = 100 * (finish - start) / number
    columns = {
        "Segel-Nr": p.codes("G ", n),
        "Wettfahrt": rng.integers(1, 13, n),
        "Klasse": kind,
        "Start": _clock(start),
        "Ziel": _clock(finish),
        "Wind bft": rng.integers(1, 7, n),
        "Verein": rng.choice(["SC Nord", "SV Bucht", "YC Hafen"], n),
        "Crew": rng.integers(1, 5, n),
    }
    own = {
        "not corrected": 1.0 * (finish - start),
        "class of another": 100 * (finish - start) / p.another_row(rng, number),
        "multiplied": number * (finish - start) / 100,
        "a start before": 100 * (finish - start + 10) / number,
    }
    errors = _errors(rng, exact, own)
    text = f"100*(clock(Ziel) - clock(Start))/{classes!r}[Klasse]"
    form = _form(text, ("Ziel", "Start", "Klasse"), free_scale=True)
    return Made(columns, "berechnet min", exact, form, 0.38, errors, layout="semicolons")


@_table
def _26_passport_desk(rng: Generator) -> Made:
    n = 1350
    fees = {"carnet": 18.5, "duplicado": 12.0, "pasaporte": 47.3, "salvoconducto": 31.8}
    document, fee = p.pick(rng, fees, n)
    urgent = _yes(rng, n, 0.3, "sí", "no")
    exact = fee + np.where(urgent == "sí", 22.6, 0)
    columns = {
        "Expediente": np.arange(1, n + 1),
        "Fecha": p.day_month(p.days(rng, n)),
        "Documento": document,
        "Urgente": urgent,
        "Edad": rng.integers(0, 92, n),
        "Ventanilla": rng.integers(1, 9, n),
        "Pago": rng.choice(["efectivo", "tarjeta", "transferencia"], n),
        "Espera min": rng.integers(1, 75, n),
    }
    own = {
        "urgency forgotten": fee,
        "fees of last year": np.round(0.95 * fee, 2) + np.where(urgent == "sí", 20.0, 0),
    }
    errors = _errors(rng, exact, own, "swapped", "another row")
    others = tuple((*way, 22.6) for way in _levels(tuple(fees.values())))
    text = f"{fees!r}[Documento] + (22.6 if Urgente == 'sí' else 0)"
    form = _form(text, ("Documento", "Urgente"), others)
    return Made(columns, "Tasa", exact, form, 0.29, errors, id="Expediente", layout="decimal comma")


@_table
def _27_flyers(rng: Generator) -> Made:
    n = 720
    copies = 10 * np.rint(rng.gamma(1.3, 55, n) + 2).astype(int)
    exact = 38 + 0.115 * np.maximum(250, copies)
    columns = {
        "Objednávka": p.codes("OB", n),
        "Přijato": p.dotted(p.days(rng, n)),
        "Formát": rng.choice(["A4", "A5", "A6", "DL"], n),
        "Papír g": rng.choice([90, 115, 135, 170], n),
        "Kusů": copies,
        "Barvy": rng.choice(["1/0", "4/0", "4/4"], n),
        "Stroj": rng.integers(1, 4, n),
        "Ořez": np.where(rng.random(n) < 0.4, "x", ""),
    }
    own = {
        "least number forgotten": 38 + 0.115 * copies,
        "set-up forgotten": 0.115 * np.maximum(250, copies),
        "VAT on top": 1.21 * exact,
    }
    errors = _errors(rng, exact, own, "swapped")
    form = _form("38 + 0.115*max(250, Kusů)", ("Kusů",), ((66.75, 0.115, 250.0), (66.75, 38.0, 0.115)))
    return Made(columns, "Cena", exact, form, 0.20, errors, id="Objednávka", layout="semicolons")


# Several of these at once.


@_table
def _28_courier(rng: Generator) -> Made:
    n = 3600
    zones = {"city": 5.9, "country": 8.4, "island": 13.5}
    zone, base = p.pick(rng, zones, n)
    kg = np.round(rng.gamma(1.2, 4.2, n) + 0.1, 1)
    fast = _yes(rng, n, 0.27)
    over = _up(np.maximum(0, kg - 3))
    factor = np.where(fast == "yes", 1.5, 1.0)
    exact = (base + 0.85 * over) * factor
    columns = {
        "waybill": p.codes("WB", n),
        "posted": p.iso(p.days(rng, n)),
        "zone": zone,
        "kg": kg,
        "longest_cm": rng.integers(12, 150, n),
        "express": fast,
        "contents": rng.choice(["books", "clothes", "parts", "wine"], n),
        "value": np.round(rng.gamma(1.2, 90, n) + 5, 2),
        "depot": rng.integers(1, 12, n),
    }
    own = {
        "weight forgotten": base * factor,
        "express forgotten": base + 0.85 * over,
        "kilograms not started": (base + 0.85 * np.maximum(0, kg - 3)) * factor,
        "zone of another": (p.another_row(rng, base) + 0.85 * over) * factor,
    }
    errors = _errors(rng, exact, own)
    text = f"({zones!r}[zone] + 0.85*ceil(max(0, kg - 3)))*(1.5 if express == 'yes' else 1)"
    others = tuple((*way, 0.85, 3.0, 1.5) for way in _levels(tuple(zones.values())))
    form = _form(text, ("zone", "kg", "express"), others)
    return Made(columns, "price", exact, form, 0.36, errors, id="waybill", layout="parquet")


@_table
def _29_heating_oil(rng: Generator) -> Made:
    n = 1050
    litres = 50 * rng.integers(10, 130, n)
    prices = [0.985, 0.942, 0.918]
    price = np.array(prices)[_step(litres, 1500, 3000)]
    way = np.where(litres < 1500, 39.5, 0)
    exact = litres * price + way
    columns = {
        "Lieferschein": p.codes("LS", n),
        "Datum": p.dotted(p.days(rng, n, "2023-09-01", 210)),
        "Ort": rng.choice(["Aich", "Bernau", "Grabenstätt", "Prien"], n),
        "Liter": litres,
        "Temperatur": np.round(rng.normal(9, 5, n), 1),
        "Tankinhalt": 500 * rng.integers(3, 15, n),
        "Wagen": rng.integers(1, 6, n),
        "Zusatz": np.where(rng.random(n) < 0.2, "x", ""),
    }
    own = {
        "delivery forgotten": litres * price,
        "price of small amounts": litres * prices[0] + way,
        "delivery charged to all": litres * price + 39.5,
    }
    errors = _errors(rng, exact, own, "swapped")
    cuts = {at: Cut.of(litres, at) for at in (1500.0, 3000.0)}
    low, high = cuts.values()
    ways = _levels(tuple(prices))
    ways += [(0.985, 0.043, 0.024), (0.918, 0.043, 0.024)]
    others = tuple((*way, 39.5, *more) for way in ways for more in ((low, high, low), (low, high)))
    text = f"Liter*{prices!r}[bracket(Liter, 1500, 3000)] + (39.5 if Liter < 1500 else 0)"
    form = _form(text, ("Liter",), others, cuts)
    return Made(columns, "Betrag", exact, form, 0.13, errors, id="Lieferschein", layout="titles")


@_table
def _30_guest_bill(rng: Generator) -> Made:
    n = 2300
    nights, adults = np.minimum(21, rng.geometric(0.24, n)), rng.integers(1, 5, n)
    price = rng.choice([79, 92, 108, 124, 149], n)
    mornings = np.where(rng.random(n) < 0.7, nights * adults, 0)
    week = nights >= 7
    exact = nights * price * np.where(week, 0.88, 1.0) + 13.5 * mornings + 2.2 * adults * np.minimum(nights, 5)
    columns = {
        "fatura": p.codes("F", n),
        "chegada": p.iso(p.days(rng, n)),
        "quarto": rng.integers(101, 140, n),
        "noites": nights,
        "adultos": adults,
        "crianças": _some(rng, n, 0.25, 1, 3),
        "diária": price,
        "pequenos-almoços": mornings,
        "país": rng.choice(["Alemanha", "Brasil", "Espanha", "França", "Portugal"], n),
        "canal": rng.choice(["agência", "portal", "telefone"], n),
    }
    own = {
        "week not looked at": exact + np.where(week, 0.12, 0) * nights * price,
        "tax on all nights": exact + 2.2 * adults * np.maximum(0, nights - 5),
        "breakfasts forgotten": exact - 13.5 * mornings,
        "tax forgotten": exact - 2.2 * adults * np.minimum(nights, 5),
    }
    errors = _errors(rng, exact, own)
    cut = Cut.of(nights, 7)
    text = "noites*diária*(0.88 if noites >= 7 else 1) + 13.5*`pequenos-almoços` + 2.2*adultos*min(noites, 5)"
    read = ("noites", "diária", "pequenos-almoços", "adultos")
    others = ((0.88, cut, 13.5, 2.2, 11.0), (0.88, cut, cut, 13.5, 2.2, 5.0))
    form = _form(text, read, others, {7.0: cut})
    return Made(columns, "total", exact, form, 0.22, errors, id="fatura", layout="euros")


@_table
def _31_machinery_ring(rng: Generator) -> Made:
    n = 980
    rates = {"Ballenpresse": 88.0, "Häcksler": 245.0, "Mähwerk": 64.0, "Sämaschine": 72.0}
    machine, rate = p.pick(rng, rates, n)
    hours, km = np.round(rng.gamma(1.6, 1.5, n) + 0.25, 2), rng.integers(1, 38, n)
    exact = np.maximum(120, rate * hours) + 1.4 * km
    columns = {
        "Einsatz": p.codes("E", n),
        "Datum": p.dotted(p.days(rng, n, "2023-04-01", 200)),
        "Betrieb": rng.integers(1, 75, n),
        "Gerät": machine,
        "Stunden": hours,
        "Anfahrt km": km,
        "Fläche ha": np.round(rng.gamma(2, 2.2, n) + 0.3, 2),
        "Diesel l": np.round(hours * rng.uniform(9, 24, n), 1),
        "Wetter": _gaps(rng, rng.choice(["heiß", "nass", "trocken"], n), 0.5),
    }
    own = {
        "least charge forgotten": rate * hours + 1.4 * km,
        "way forgotten": exact - 1.4 * km,
        "rate of another machine": np.maximum(120, p.another_row(rng, rate) * hours) + 1.4 * km,
    }
    errors = _errors(rng, exact, own, "digits")
    others = tuple((120.0, *way, 1.4) for way in _levels(tuple(rates.values())))
    text = f"max(120, {rates!r}[Gerät]*Stunden) + 1.4*`Anfahrt km`"
    form = _form(text, ("Gerät", "Stunden", "Anfahrt km"), others)
    return Made(columns, "Rechnung", exact, form, 0.31, errors, id="Einsatz", layout="decimal comma")


@_table
def _32_water_blocks(rng: Generator) -> Made:
    n = 3000
    bases = {"13 mm": 8.2, "15 mm": 11.6, "25 mm": 26.5}
    size, base = p.pick(rng, bases, n)
    cubic = _whole(rng, n, 2.2, 31, 0)
    flow = 0.64 * np.minimum(cubic, 20) + 1.38 * np.maximum(0, cubic - 20)
    exact = 1.1 * (base + flow)
    columns = {
        "póliza": np.arange(300_001, 300_001 + n),
        "lectura": p.iso(p.days(rng, n)),
        "municipio": rng.choice(["Alzira", "Cullera", "Gandia", "Sueca"], n),
        "contador": size,
        "m3": cubic,
        "m3 año anterior": np.maximum(0, cubic + rng.integers(-9, 10, n)),
        "habitantes": rng.integers(1, 7, n),
        "domiciliado": _yes(rng, n, 0.8, "sí", "no"),
    }
    own = {
        "VAT forgotten": base + flow,
        "one block": 1.1 * (base + 0.64 * cubic),
        "meter of another": 1.1 * (p.another_row(rng, base) + flow),
        "VAT of 21 %": 1.21 * (base + flow),
    }
    errors = _errors(rng, exact, own)
    taxed = tuple(round(1.1 * value, 6) for value in bases.values())
    first = ((0.64, 20.0, 1.38, 20.0), (0.64, 0.74, 20.0), (1.38, 0.74, 20.0), (0.64, 1.38, 14.8))
    second = ((0.704, 20.0, 1.518, 20.0), (0.704, 0.814, 20.0), (1.518, 0.814, 20.0), (0.704, 1.518, 16.28))
    others = (
        *((1.1, *way, *flow_) for way, flow_ in product(_levels(tuple(bases.values())), first)),
        *((*way, *flow_) for way, flow_ in product(_levels(taxed), second)),
    )
    text = f"1.1*({bases!r}[contador] + 0.64*min(m3, 20) + 1.38*max(0, m3 - 20))"
    form = _form(text, ("contador", "m3"), others)
    return Made(columns, "recibo", exact, form, 0.42, errors, id="póliza", layout="semicolons")


@_table
def _33_car_premium(rng: Generator) -> Made:
    n = 1750
    bases = {"autobus": 2350, "motocykl": 310, "osobowy": 880, "van": 1420}
    kind, base = p.pick(rng, bases, n)
    age = rng.integers(18, 82, n)
    years = np.minimum(age - 18, rng.integers(0, 26, n))
    less = 1 - 0.05 * np.minimum(years, 12)
    exact = base * less * np.where(age < 26, 1.3, 1.0)
    columns = {
        "polisa": p.codes("OC", n),
        "od": p.iso(p.days(rng, n)),
        "pojazd": kind,
        "rocznik": rng.integers(1998, 2025, n),
        "wiek": age,
        "lata bez szkody": years,
        "pojemność": rng.choice([998, 1248, 1598, 1968], n),
        "miasto": rng.choice(["Gdynia", "Kielce", "Opole", "Radom"], n),
        "raty": rng.choice([1, 2, 4], n),
    }
    own = {
        "young driver forgotten": base * less,
        "discount without an end": base * np.maximum(0, 1 - 0.05 * years) * np.where(age < 26, 1.3, 1.0),
        "discount forgotten": base * np.where(age < 26, 1.3, 1.0),
        "vehicle of another": p.another_row(rng, base) * less * np.where(age < 26, 1.3, 1.0),
    }
    errors = _errors(rng, exact, own)
    cut = Cut.of(age, 26)
    text = f"{bases!r}[pojazd]*(1 - 0.05*min(`lata bez szkody`, 12))*(1.3 if wiek < 26 else 1)"
    form = _form(text, ("pojazd", "lata bez szkody", "wiek"), (), {26.0: cut}, free_scale=True)
    return Made(columns, "składka", exact, form, 0.12, errors, id="polisa", layout="workbook")


@_table
def _34_school_bus(rng: Generator) -> Made:
    n = 1400
    km, ticket = np.round(rng.gamma(1.8, 3.4, n) + 0.3, 1), np.round(rng.gamma(6, 7, n) + 12, 2)
    exact = np.where(km < 3, 0.0, np.minimum(45, 0.75 * ticket))
    columns = {
        "processo": p.codes("TE", n),
        "escola": rng.choice(["Centro", "Norte", "Ria", "Serra"], n),
        "ano": rng.integers(5, 13, n),
        "distância km": km,
        "passe": ticket,
        "irmãos": rng.integers(0, 4, n),
        "entregue": p.day_month(p.days(rng, n, "2023-09-01", 60)),
        "escalão": rng.choice(["A", "B", "C"], n),
    }
    own = {
        "distance not looked at": np.minimum(45, 0.75 * ticket),
        "most of it forgotten": np.where(km < 3, 0.0, 0.75 * ticket),
        "half of it": np.where(km < 3, 0.0, np.minimum(45, 0.5 * ticket)),
        "the whole pass": ticket,
    }
    errors = _errors(rng, exact, own)
    cut = Cut.of(km, 3)
    form = _form(
        "0 if `distância km` < 3 else min(45, 0.75*passe)", ("distância km", "passe"), ((cut, 60.0, 0.75),), {3.0: cut}
    )
    return Made(columns, "apoio", exact, form, 0.17, errors, id="processo", layout="euros")


@_table
def _35_ferry(rng: Generator) -> Made:
    n = 1850
    seasons = {"high": 1.4, "low": 0.8, "middle": 1.0}
    season, factor = p.pick(rng, seasons, n)
    long = np.round(rng.normal(5.3, 1.1, n).clip(2.2, 11), 2)
    people = rng.integers(1, 8, n)
    metres = _up(np.maximum(0, long - 5))
    exact = factor * (24 + 6.5 * metres) + 7.9 * people
    columns = {
        "ticket": p.codes("FY", n),
        "sailing": rng.integers(1, 420, n),
        "leaves": _clock(rng.choice([435, 600, 780, 975, 1140], n)),
        "season": season,
        "vehicle_m": long,
        "people": people,
        "dogs": _some(rng, n, 0.15, 1, 2),
        "deck": rng.choice(["car", "lorry", "upper"], n),
        "paid": rng.choice(["card", "cash", "online"], n),
    }
    own = {
        "metres not started": factor * (24 + 6.5 * np.maximum(0, long - 5)) + 7.9 * people,
        "season on all of it": factor * (24 + 6.5 * metres + 7.9 * people),
        "season forgotten": 24 + 6.5 * metres + 7.9 * people,
        "driver free": exact - 7.9,
    }
    errors = _errors(rng, exact, own)
    text = f"{seasons!r}[season]*(24 + 6.5*ceil(max(0, vehicle_m - 5))) + 7.9*people"
    form = _form(text, ("season", "vehicle_m", "people"), free_scale=True)
    return Made(columns, "fare", exact, form, 0.28, errors, id="ticket", layout="total")


@_table
def _36_net_metering(rng: Generator) -> Made:
    n = 870
    taken, given = _whole(rng, n, 3, 260, 20), _whole(rng, n, 1.5, 210, 0)
    more, less = np.maximum(0, taken - given), np.maximum(0, given - taken)
    exact = 6.9 + 0.284 * more - 0.061 * less
    columns = {
        "punct": p.codes("PM", n),
        "luna": rng.integers(1, 13, n),
        "județ": rng.choice(["Alba", "Cluj", "Iași", "Mureș"], n),
        "consum kWh": taken,
        "livrat kWh": given,
        "putere kW": np.round(rng.choice([3, 5, 6.4, 10], n), 1),
        "citit": p.iso(p.days(rng, n)),
        "invertor": rng.choice(["K3", "S5", "V2"], n),
    }
    own = {
        "one price for both": 6.9 + 0.284 * (taken - given),
        "nothing for what is left": 6.9 + 0.284 * more,
        "fixed part forgotten": exact - 6.9,
        "delivered not taken off": 6.9 + 0.284 * taken,
    }
    errors = _errors(rng, exact, own)
    text = "6.9 + 0.284*max(0, `consum kWh` - `livrat kWh`) - 0.061*max(0, `livrat kWh` - `consum kWh`)"
    others = ((6.9, 0.284, 0.223), (6.9, 0.061, 0.223))
    form = _form(text, ("consum kWh", "livrat kWh"), others)
    return Made(columns, "factura", exact, form, 0.09, errors, id="punct", layout="semicolons")


@_table
def _37_soil_laboratory(rng: Generator) -> Made:
    n = 1250
    prices = {"heavy metals": 64.0, "humus": 21.0, "nutrients": 17.5, "pesticides": 118.0, "pH": 6.5}
    test, price = p.pick(rng, prices, n)
    samples = np.minimum(60, rng.geometric(0.11, n))
    rush = np.where(rng.random(n) < 0.25, "x", "")
    less, more = np.where(samples >= 10, 0.85, 1.0), np.where(rush == "x", 35.0, 0.0)
    exact = price * samples * less + more
    columns = {
        "order": p.codes("SO", n),
        "arrived": p.iso(p.days(rng, n)),
        "customer": rng.integers(100, 260, n),
        "test": test,
        "samples": samples,
        "rush": rush,
        "depth_cm": rng.choice([15, 30, 60, 90], n),
        "crop": _gaps(rng, rng.choice(["barley", "grass", "maize", "vines"], n), 0.3),
        "balance": rng.integers(1, 4, n),
    }
    own = {
        "quantity not looked at": price * samples + more,
        "rush forgotten": price * samples * less,
        "test of another": p.another_row(rng, price) * samples * less + more,
        "price list of last year": np.round(0.94 * price, 1) * samples * less + more,
    }
    errors = _errors(rng, exact, own)
    cut = Cut.of(samples, 10)
    others = tuple(
        (*way, 0.85, *limits, 35.0) for way in _levels(tuple(prices.values())) for limits in ((cut,), (cut, cut))
    )
    text = f"{prices!r}[test]*samples*(0.85 if samples >= 10 else 1) + (35 if rush == 'x' else 0)"
    form = _form(text, ("test", "samples", "rush"), others, {10.0: cut})
    return Made(columns, "invoice", exact, form, 0.37, errors, id="order", layout="jsonl")


@_table
def _38_late_filing(rng: Generator) -> Made:
    n = 1450
    due = p.days(rng, n, "2022-06-30", 500)
    late, tax = _whole(rng, n, 1.1, 95, 1), np.round(rng.gamma(1.3, 2600, n) + 150, 0)
    months = _up(late / 30)
    exact = np.minimum(600, np.maximum(25, 0.01 * tax * months))
    columns = {
        "dossier": p.codes("V", n),
        "office": rng.choice(["Centre", "Harbour", "West"], n),
        "due": p.day_month(due),
        "filed": p.day_month(due + late),
        "tax": tax,
        "form": rng.choice(["A", "B", "C"], n),
        "clerk": rng.integers(1, 21, n),
        "appeal": np.where(rng.random(n) < 0.07, "x", ""),
    }
    own = {
        "least amount forgotten": np.minimum(600, 0.01 * tax * months),
        "no limit": np.maximum(25, 0.01 * tax * months),
        "months not started": np.minimum(600, np.maximum(25, 0.01 * tax * np.floor(late / 30))),
        "one month": np.minimum(600, np.maximum(25, 0.01 * tax)),
    }
    errors = _errors(rng, exact, own)
    text = "min(600, max(25, 0.01*tax*ceil((day(filed) - day(due))/30)))"
    form = _form(text, ("tax", "filed", "due"), ((600.0, 25.0, 30.0),))
    return Made(columns, "surcharge", exact, form, 0.32, errors, id="dossier", layout="csv")


@_table
def _39_ski_hire(rng: Generator) -> Made:
    n = 2100
    kits = {"børneski": 95, "langrend": 120, "slalåm": 185, "snowboard": 210}
    kit, price = p.pick(rng, kits, n)
    days, age = np.minimum(14, rng.geometric(0.26, n)), rng.integers(4, 71, n)
    units, young = np.minimum(days, 3) + 0.6 * np.maximum(0, days - 3), np.where(age < 15, 0.7, 1.0)
    exact = price * units * young
    columns = {
        "kvittering": np.arange(1, n + 1),
        "dato": p.dotted(p.days(rng, n, "2023-12-01", 120)),
        "udstyr": kit,
        "dage": days,
        "alder": age,
        "sko": rng.integers(27, 48, n),
        "højde cm": np.minimum(200, 70 + 6 * np.minimum(age, 18) + rng.integers(-9, 22, n)),
        "hjelm": _yes(rng, n, 0.6, "ja", "nej"),
        "butik": rng.choice(["by", "lift", "station"], n),
    }
    own = {
        "every day at the full price": price * days * young,
        "age not looked at": price * units,
        "equipment of another": p.another_row(rng, price) * units * young,
    }
    errors = _errors(rng, exact, own, "swapped")
    cut = Cut.of(age, 15)
    text = f"{kits!r}[udstyr]*(min(dage, 3) + 0.6*max(0, dage - 3))*(0.7 if alder < 15 else 1)"
    form = _form(text, ("udstyr", "dage", "alder"), (), {15.0: cut}, free_scale=True)
    return Made(columns, "pris", exact, form, 0.14, errors, id="kvittering", layout="decimal comma")


@_table
def _40_skip_hire(rng: Generator) -> Made:
    n = 1550
    skips, kinds = {"3 m3": 85, "5 m3": 110, "7 m3": 135, "10 m3": 190}, {"bois": 62, "gravats": 28, "mélange": 174}
    size, base = p.pick(rng, skips, n)
    waste, rate = p.pick(rng, kinds, n)
    tonnes, days = np.round(rng.gamma(2.4, 0.8, n) + 0.1, 2), rng.integers(1, 29, n)
    longer = 4.5 * np.maximum(0, days - 10)
    exact = base + rate * tonnes + longer
    columns = {
        "Bon": p.codes("BN", n),
        "Dépôt": rng.choice(["Aigle", "Bulle", "Morges", "Nyon"], n),
        "Posée": p.dotted(p.days(rng, n)),
        "Benne": size,
        "Déchet": waste,
        "Tonnes": tonnes,
        "Jours": days,
        "Camion": rng.integers(1, 9, n),
        "Trottoir": np.where(rng.random(n) < 0.3, "oui", "non"),
    }
    own = {
        "days forgotten": base + rate * tonnes,
        "every day charged": base + rate * tonnes + 4.5 * days,
        "waste of another": base + p.another_row(rng, rate) * tonnes + longer,
        "VAT on top": 1.081 * exact,
    }
    errors = _errors(rng, exact, own)
    own_, other = _levels(tuple(skips.values())), _levels(tuple(kinds.values()))
    others = tuple((*a, *b, 4.5, 10.0) for a, b in product(own_, other))
    text = f"{skips!r}[Benne] + {kinds!r}[Déchet]*Tonnes + 4.5*max(0, Jours - 10)"
    form = _form(text, ("Benne", "Déchet", "Tonnes", "Jours"), others)
    return Made(columns, "Montant", exact, form, 0.24, errors, id="Bon", layout="swiss")


if __name__ == "__main__":
    trades.main(TABLES, __doc__)
