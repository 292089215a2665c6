"""Forty more tables of offices, households and clubs: a third blind set, as much of it wrong as in the second.

They were written, before they were run, by somebody who had seen neither the search nor what it can do. A timesheet, a
till, a league, a turnout, a music school, a care home: some of their rules are one line of arithmetic (01 to 13), some
have a category, a cap, a started unit, a bracket, a least fee or a rounding (14 to 27), some several of these at once
(28 to 40). Every rule is determined by the columns, among them times of day and crosses in a column else blank. From 9
to 43 % of the values are wrong, in rows chosen at random: ten tables each below 15, 25, 35 and 45 %. In no level,
weekday, month or tenth of a column does one mistake hold on as many rows as the rule.

Each rule stands here twice, written by hand: as NumPy in the maker, and as the text ``Form.terms``, an expression on
one row. ``python benchmarks/office_tables.py --check`` does with them what `trade_tables` does with its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import planted as p
import trade_tables as trades
from planted import Cut, Generator, Made, Make
from trade_tables import _blank, _errors, _form, _levels, _to, _up, _whole, _yes

TABLES: dict[str, Make] = {}
"""The tables by name."""


def _table(make: Make) -> Make:
    TABLES[make.__name__.strip("_").replace("_", "-")] = make
    return make


def _gaps(rng: Generator, values: NDArray[Any], share: float) -> NDArray[Any]:
    """Return a column in which some cells were not filled in."""
    missing = rng.random(len(values)) < share
    return np.where(missing, "", values) if values.dtype.kind == "U" else np.where(missing, np.nan, values)


def _some(rng: Generator, n: int, share: float, low: int, high: int) -> NDArray[np.int64]:
    """Return whole numbers in a range for a share of the rows, and 0 for the others."""
    return np.where(rng.random(n) < share, rng.integers(low, high + 1, n), 0)


def _clock(minutes: NDArray[np.int64]) -> NDArray[Any]:
    """Return minutes since midnight as texts, 07:45."""
    return np.array([f"{k // 60:02d}:{k % 60:02d}" for k in minutes.tolist()])


def _month(days: NDArray[np.int64]) -> NDArray[np.int64]:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1


# One line of arithmetic.


@_table
def _01_timesheet(rng: Generator) -> Made:
    n = 2200
    begin = np.rint(rng.normal(480, 45, n)).clip(330, 700).astype(int)
    end = begin + np.rint(rng.normal(505, 60, n)).clip(150, 640).astype(int)
    pause = rng.choice([0, 15, 30, 45, 60], n, p=[0.08, 0.1, 0.5, 0.22, 0.1])
    exact = (end - begin - pause) / 60
    columns = {
        "Nr": np.arange(1, n + 1),
        "Personal-Nr": rng.integers(1001, 1060, n),
        "Datum": p.dotted(p.days(rng, n)),
        "Abteilung": rng.choice(["Einkauf", "Lager", "Verkauf", "Verwaltung"], n),
        "Beginn": _clock(begin),
        "Ende": _clock(end),
        "Pause min": pause,
        "Ort": rng.choice(["Büro", "Homeoffice"], n, p=[0.7, 0.3]),
        "Bemerkung": _gaps(rng, rng.choice(["Arzt", "Messe", "Schulung"], n), 0.9),
    }
    hours, minutes = np.divmod(end - begin - pause, 60)
    own = {
        "break forgotten": (end - begin) / 60,
        "minutes as hundredths": hours + minutes / 100,
        "always half an hour": (end - begin - 30) / 60,
    }
    errors = _errors(rng, exact, own, "another row", "digits", "ten times")
    read = ("Ende", "Beginn", "Pause min")
    form = _form("(clock(Ende) - clock(Beginn) - `Pause min`)/60", read, ((24.0, 60.0), (60.0, 60.0), (24.0, 1440.0)))
    return Made(columns, "Stunden", exact, form, 0.31, errors, id="Nr", layout="decimal comma")


@_table
def _02_till(rng: Generator) -> Made:
    n = 900
    float_, spent = rng.choice([150, 200, 250], n), np.where(rng.random(n) < 0.35, p.money(rng, 3, 85, n), 0)
    sold = np.round(rng.gamma(5, 130, n) + 60, 2)
    counted = np.round(sold + float_ - spent, 2)
    exact = counted - float_ + spent
    columns = {
        "Datum": p.iso(p.days(rng, n)),
        "Kassa": rng.integers(1, 5, n),
        "Medewerker": rng.choice(["Anouk", "Daan", "Fleur", "Joris", "Sanne"], n),
        "Contant geteld": counted,
        "Wisselgeld": float_,
        "Kasuitgaven": _blank(spent),
        "Pin": np.round(rng.gamma(6, 260, n), 2),
        "Klanten": rng.integers(35, 320, n),
    }
    own = {
        "change forgotten": counted + spent,
        "expenses forgotten": counted - float_,
        "expenses taken off": counted - float_ - spent,
        "card for cash": columns["Pin"],
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    read = ("Contant geteld", "Wisselgeld", "Kasuitgaven")
    form = _form("`Contant geteld` - Wisselgeld + Kasuitgaven", read)
    return Made(columns, "Contante omzet", exact, form, 0.18, errors, layout="semicolons")


@_table
def _03_shared_flat(rng: Generator) -> Made:
    n = 480
    persons, rent = rng.choice([2, 3, 4, 5], n, p=[0.3, 0.4, 0.2, 0.1]), 10 * rng.integers(58, 190, n)
    light, gas = np.round(rng.gamma(6, 14, n) + 20, 2), np.where(rng.random(n) < 0.6, p.money(rng, 18, 240, n), 0)
    net = rng.choice([24.9, 27.95, 29.9, 34.99], n)
    exact = (rent + light + gas + net) / persons
    columns = {
        "Casa": p.codes("C", n),
        "Mese": rng.choice(["aprile", "febbraio", "gennaio", "maggio", "marzo"], n),
        "Quartiere": rng.choice(["Isola", "Lambrate", "Navigli"], n),
        "Affitto": rent,
        "Luce": light,
        "Gas": _blank(gas),
        "Internet": net,
        "Persone": persons,
        "mq": rng.integers(48, 140, n),
        "Cauzione": _gaps(rng, 2.0 * rent, 0.2),
    }
    own = {
        "gas forgotten": (rent + light + net) / persons,
        "rent only": rent / persons,
        "one person more": exact * persons / (persons + 1),
        "not shared": exact * persons,
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    form = _form("(Affitto + Luce + Gas + Internet)/Persone", ("Affitto", "Luce", "Gas", "Internet", "Persone"))
    return Made(columns, "Quota a testa", exact, form, 0.38, errors, id="Casa", layout="euros")


@_table
def _04_league(rng: Generator) -> Made:
    n = 400
    played = rng.choice([22, 26, 30], n)
    won = rng.binomial(played, rng.uniform(0.15, 0.65, n))
    drawn = rng.binomial(played - won, 0.35)
    penalty = _some(rng, n, 0.12, 1, 6)
    exact = 3.0 * won + drawn - penalty
    columns = {
        "N°": np.arange(1, n + 1),
        "Club": np.array([f"{kind} {k}" for kind, k in zip(rng.choice(["AS", "FC", "US"], n), range(n), strict=True)]),
        "Saison": rng.choice(["2020/21", "2021/22", "2022/23", "2023/24"], n),
        "J": played,
        "V": won,
        "Nuls": drawn,
        "D": played - won - drawn,
        "Bp": np.rint(rng.gamma(9, 0.16, n) * played).astype(int),
        "Bc": np.rint(rng.gamma(9, 0.16, n) * played).astype(int),
        "Pénalité": _blank(penalty),
    }
    own = {"two for a win": 2.0 * won + drawn - penalty, "draws forgotten": 3.0 * won - penalty}
    errors = _errors(rng, exact, own, "another row", "swapped", "digits", places=0)
    form = _form("3*V + Nuls - Pénalité", ("V", "Nuls", "Pénalité"))
    return Made(columns, "Pts", exact, form, 0.12, errors, places=0, id="N°")


@_table
def _05_mean_pressure(rng: Generator) -> Made:
    n = 2600
    dia = np.rint(rng.normal(78, 12, n)).clip(40, 125).astype(int)
    systolic = dia + np.rint(rng.normal(50, 13, n)).clip(15, 110).astype(int)
    exact = (systolic + 2 * dia) / 3
    columns = {
        "obs": p.codes("OB", n),
        "patient": rng.integers(20_000, 20_700, n),
        "time": _clock(rng.integers(0, 1440, n)),
        "sys": systolic,
        "dia": dia,
        "pulse": np.rint(rng.normal(76, 13, n)).astype(int),
        "temp": _gaps(rng, np.round(rng.normal(36.9, 0.5, n), 1), 0.25),
        "arm": rng.choice(["left", "right"], n),
    }
    own = {"plain mean": (systolic + dia) / 2, "systolic twice": (2 * systolic + dia) / 3, "systolic": 1.0 * systolic}
    errors = _errors(rng, exact, own, "another row", "digits", "swapped", "off by", places=0)
    form = _form("(sys + 2*dia)/3", ("sys", "dia"), ((3.0,), (1 / 3, 2 / 3), (3.0, 1.5), (3.0, 2 / 3)))
    return Made(columns, "MAP", exact, form, 0.27, errors, places=0, id="obs")


@_table
def _06_fluid_balance(rng: Generator) -> Made:
    n = 1200
    oral, drip = 50 * rng.integers(0, 41, n), 250 * rng.integers(0, 11, n)
    tube, drain = 50 * _some(rng, n, 0.2, 4, 30), 10 * _some(rng, n, 0.3, 2, 60)
    urine = 10 * rng.integers(20, 300, n)
    exact = (oral + drip + tube - urine - drain).astype(float)
    columns = {
        "chart": np.arange(88_001, 88_001 + n),
        "day": p.iso(p.days(rng, n)),
        "ward": rng.choice(["Cardiac", "ICU", "Renal", "Surgical"], n),
        "oral ml": oral,
        "iv ml": _blank(drip),
        "tube feed ml": _blank(tube),
        "urine ml": urine,
        "drain ml": _blank(drain),
        "weight kg": _gaps(rng, np.round(rng.normal(75, 14, n), 1), 0.3),
        "signed": rng.choice(["EB", "JN", "KO", "MW", "TS"], n),
    }
    own = {
        "drip forgotten": exact - drip,
        "drain forgotten": exact + drain,
        "tube forgotten": exact - tube,
        "sign": -exact,
        "intake only": exact + urine + drain,
    }
    errors = _errors(rng, exact, own, "another row", "ten times", "digits", places=0)
    read = ("oral ml", "iv ml", "tube feed ml", "urine ml", "drain ml")
    form = _form("`oral ml` + `iv ml` + `tube feed ml` - `urine ml` - `drain ml`", read)
    return Made(columns, "balance ml", exact, form, 0.42, errors, places=0, id="chart", layout="workbook")


@_table
def _07_slurry(rng: Generator) -> Made:
    n = 700
    area, rich = np.round(rng.gamma(2.2, 3.4, n) + 0.6, 2), np.round(rng.normal(4.1, 0.8, n).clip(1.8, 7), 2)
    cubic = np.rint(area * rng.uniform(10, 42, n)).astype(int) + 1
    exact = cubic * rich / area
    columns = {
        "Mark": p.codes("M", n),
        "Dato": p.dotted(p.days(rng, n, "2023-03-01", 90)),
        "Afgrøde": rng.choice(["græs", "hvede", "majs", "raps"], n),
        "Gylle m3": cubic,
        "N kg pr m3": rich,
        "Areal ha": area,
        "Jordtype": rng.choice(["JB1", "JB4", "JB6"], n),
        "Temp": _gaps(rng, np.round(rng.normal(9, 4, n), 1), 0.15),
    }
    own = {
        "in all": cubic * rich,
        "area forgotten": cubic / area,
        "content of the book": cubic * 4.8 / area,
    }
    errors = _errors(rng, exact, own, "another row", "swapped", "digits", places=1)
    form = _form("`Gylle m3`*`N kg pr m3`/`Areal ha`", ("Gylle m3", "N kg pr m3", "Areal ha"))
    return Made(columns, "N kg pr ha", exact, form, 0.22, errors, places=1, id="Mark", layout="decimal comma")


@_table
def _08_school_leavers(rng: Generator) -> Made:
    n = 320
    courses = rng.integers(35, 45, n)
    points = np.rint(courses * rng.normal(9.4, 1.9, n).clip(5, 14.5)).astype(int)
    exact = 40 * points / courses
    columns = {
        "Prüfling": p.codes("A", n),
        "Profil": rng.choice(["Kunst", "Naturwissenschaft", "Sport", "Sprachen"], n),
        "Kurse": courses,
        "Punktsumme": points,
        "Unterkurse": rng.integers(0, 8, n),
        "Fehltage": _gaps(rng, rng.integers(0, 30, n).astype(float), 0.1),
        "Wiederholer": np.where(rng.random(n) < 0.06, "x", ""),
    }
    own = {"always 44 courses": 40 * points / 44, "not converted": 1.0 * points}
    errors = _errors(rng, exact, own, "swapped", "digits", "another row", places=0)
    form = _form("40*Punktsumme/Kurse", ("Punktsumme", "Kurse"))
    return Made(columns, "Block I", exact, form, 0.09, errors, places=0, id="Prüfling", layout="workbook")


@_table
def _09_unit_price(rng: Generator) -> Made:
    n = 3000
    weight = rng.choice([75, 100, 150, 175, 200, 250, 300, 340, 400, 450, 500, 750, 900, 1000, 1500, 2000], n)
    price = np.round(np.rint(10 * p.money(rng, 9, 160, n)) / 10 - rng.choice([0, 0.05, 0.1], n), 2)
    exact = 1000 * price / weight
    columns = {
        "Artikel": np.arange(730_001, 730_001 + n),
        "Varugrupp": rng.choice(["bröd", "fisk", "frukt", "kött", "mejeri", "torrvaror"], n),
        "Pris": price,
        "Vikt g": weight,
        "Hylla": rng.integers(1, 60, n),
        "Bäst före": p.iso(p.days(rng, n, "2024-01-10", 200)),
        "Kampanj": np.where(rng.random(n) < 0.1, "ja", ""),
    }
    own = {
        "to the hundred grams": 100 * price / weight,
        "price of last week": 1000 * np.round(0.9 * price, 1) / weight,
        "VAT taken off": exact / 1.12,
        "price of the pack": price,
    }
    errors = _errors(rng, exact, own, "another row", "swapped", "digits")
    form = _form("1000*Pris/`Vikt g`", ("Pris", "Vikt g"))
    return Made(columns, "Jämförpris", exact, form, 0.36, errors, id="Artikel", layout="semicolons")


@_table
def _10_milling_feed(rng: Generator) -> Made:
    n = 1100
    teeth, bite = rng.choice([2, 3, 4, 6, 8], n), np.round(rng.uniform(0.03, 0.24, n), 3)
    turns = 10 * rng.integers(24, 900, n)
    exact = turns * teeth * bite
    columns = {
        "op": np.arange(10, 10 * n + 10, 10),
        "machine": rng.choice(["DMU 50", "Haas VF2", "Hermle C20"], n),
        "material": rng.choice(["1.2312", "AlMg3", "C45", "V2A"], n),
        "tool mm": rng.choice([6, 8, 10, 12, 16, 20, 32], n),
        "rpm": turns,
        "teeth": teeth,
        "fz": bite,
        "depth": _gaps(rng, np.round(rng.uniform(0.3, 12, n), 1), 0.1),
        "coolant": _yes(rng, n, 0.7, "on", "off"),
    }
    own = {
        "one tooth": turns * bite,
        "speed of another": p.another_row(rng, turns) * teeth * bite,
        "for two teeth": turns * 2 * bite,
    }
    errors = _errors(rng, exact, own, "ten times", "digits", "another row", places=0)
    form = _form("rpm*teeth*fz", ("rpm", "teeth", "fz"))
    return Made(columns, "feed mm/min", exact, form, 0.16, errors, places=0, id="op", layout="tsv")


@_table
def _11_turnout(rng: Generator) -> Made:
    n = 600
    electors = rng.integers(310, 2400, n)
    share, mail = rng.normal(0.63, 0.1, n).clip(0.25, 0.92), rng.normal(0.35, 0.09, n).clip(0.08, 0.7)
    postal = np.rint(electors * share * mail).astype(int)
    here = np.rint(electors * share * (1 - mail)).astype(int)
    exact = 100 * (here + postal) / electors
    columns = {
        "district": p.codes("D", n),
        "ward": rng.choice(["Castle", "Harbour", "Mill", "North", "Park", "Station"], n),
        "electors": electors,
        "in person": here,
        "postal": postal,
        "spoilt": rng.binomial(here + postal, 0.012),
        "opened": rng.choice(["07:00", "08:00"], n),
        "steward": _gaps(rng, rng.choice(["Abbot", "Cole", "Iqbal", "Reid"], n), 0.12),
    }
    own = {
        "postal forgotten": 100 * here / electors,
        "in person forgotten": 100 * postal / electors,
        "spoilt taken off": 100 * (here + postal - columns["spoilt"]) / electors,
        "roll of another year": exact * 0.97,
    }
    errors = _errors(rng, exact, own, "another row", "swapped", "digits", places=1)
    form = _form("100*(`in person` + postal)/electors", ("in person", "postal", "electors"))
    return Made(columns, "turnout", exact, form, 0.33, errors, places=1, id="district", layout="percent")


@_table
def _12_camp_kitchen(rng: Generator) -> Made:
    n = 450
    serves, guests = rng.choice([4, 6, 8, 10, 12], n), rng.integers(18, 96, n)
    grams = 5 * _whole(rng, n, 1.3, 90)
    exact = grams * guests / serves
    columns = {
        "line": np.arange(1, n + 1),
        "meal": p.day_month(p.days(rng, n, "2024-07-20", 16)),
        "dish": rng.choice(["chili", "curry", "pancakes", "pasta", "porridge", "soup"], n),
        "ingredient": rng.integers(1, 90, n),
        "recipe g": grams,
        "serves": serves,
        "campers": guests,
        "vegetarians": rng.binomial(guests, 0.25),
        "bought at": _gaps(rng, rng.choice(["farm shop", "market", "wholesale"], n), 0.2),
    }
    own = {
        "recipe for one": 1.0 * grams * guests,
        "vegetarians twice": grams * (guests + columns["vegetarians"]) / serves,
        "as in the recipe": 1.0 * grams,
    }
    errors = _errors(rng, exact, own, "another row", "digits", "ten times", places=0)
    form = _form("`recipe g`*campers/serves", ("recipe g", "campers", "serves"))
    return Made(columns, "buy g", exact, form, 0.13, errors, places=0, id="line")


@_table
def _13_budget_left(rng: Generator) -> Made:
    n = 1500
    budget = 100.0 * _whole(rng, n, 1.1, 240, 5)
    moved = np.where(rng.random(n) < 0.25, 50 * np.rint(budget * rng.uniform(-0.3, 0.4, n) / 50), 0)
    spent = np.round((budget + moved) * rng.beta(3, 2, n), 2)
    bound = np.where(rng.random(n) < 0.4, np.round((budget + moved) * rng.uniform(0.01, 0.25, n), 2), 0)
    exact = budget + moved - spent - bound
    columns = {
        "Partida": p.codes("P", n),
        "Departamento": rng.choice(["Cultura", "Deportes", "Obras", "Parques", "Policía"], n),
        "Año": rng.choice([2021, 2022, 2023], n),
        "Presupuesto": budget,
        "Modificación": _blank(moved),
        "Gastado": spent,
        "Comprometido": _blank(bound),
        "Facturas": rng.integers(0, 60, n),
        "Responsable": _gaps(rng, rng.choice(["Gil", "Mora", "Ruiz", "Vega"], n), 0.15),
    }
    own = {
        "commitments forgotten": exact + bound,
        "transfers forgotten": exact - moved,
        "spending forgotten": exact + spent,
        "spending twice": exact - spent,
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "another row")
    read = ("Presupuesto", "Modificación", "Gastado", "Comprometido")
    form = _form("Presupuesto + Modificación - Gastado - Comprometido", read)
    return Made(columns, "Disponible", exact, form, 0.24, errors, id="Partida", layout="decimal comma")


# A category, a cap, a started unit, a bracket, a least fee or a rounding.


@_table
def _14_cleaning(rng: Generator) -> Made:
    n = 1400
    speeds = {"Büro": 175.0, "Flur": 290.0, "Sanitär": 62.0, "Teeküche": 95.0, "Treppe": 140.0}
    kind, speed = p.pick(rng, speeds, n)
    area = np.round(rng.gamma(2.4, 9, n) + 3, 1)
    exact = 60 * area / speed
    columns = {
        "Raum": p.codes("R", n),
        "Haus": rng.choice(["A", "B", "C"], n),
        "Etage": rng.integers(-1, 6, n),
        "Raumart": kind,
        "Fläche qm": area,
        "Boden": rng.choice(["Fliesen", "Linoleum", "Parkett", "Teppich"], n),
        "Fenster": rng.integers(0, 6, n),
        "Turnus": rng.choice(["täglich", "wöchentlich", "zweimal"], n),
    }
    own = {
        "all as offices": 60 * area / 175,
        "speed of another": 60 * area / p.another_row(rng, speed),
        "hours": area / speed,
        "old speeds": exact * 1.1,
    }
    errors = _errors(rng, exact, own, "another row", "digits", "ten times", places=1)
    form = _form(f"60*`Fläche qm`/{speeds!r}[Raumart]", ("Fläche qm", "Raumart"), free_scale=True)
    return Made(columns, "Minuten", exact, form, 0.40, errors, places=1, id="Raum", layout="decimal comma")


@_table
def _15_club_dues(rng: Generator) -> Made:
    n = 800
    fees = {"active": 126.0, "family": 204.0, "junior": 57.0, "passive": 38.0}
    kind, fee = p.pick(rng, fees, n)
    joined = p.days(rng, n, "2023-01-01", 365)
    exact = fee * (13 - _month(joined)) / 12
    columns = {
        "member": p.codes("V", n),
        "joined": p.day_month(joined),
        "membership": kind,
        "section": rng.choice(["chess", "judo", "rowing", "tennis"], n),
        "born": rng.integers(1940, 2018, n),
        "direct debit": _yes(rng, n, 0.8),
        "phone": _gaps(rng, rng.integers(100_000, 999_999, n).astype(float), 0.3),
    }
    own = {
        "whole year": fee,
        "month of entry free": fee * (12 - _month(joined)) / 12,
        "all active": 126.0 * (13 - _month(joined)) / 12,
        "dues of last year": exact / 1.05,
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    form = _form(f"{fees!r}[membership]*(13 - month(joined))/12", ("membership", "joined"), free_scale=True)
    return Made(columns, "dues", exact, form, 0.19, errors, id="member")


@_table
def _16_allotment(rng: Generator) -> Made:
    n = 650
    area, water = rng.integers(90, 460, n), _some(rng, n, 0.85, 1, 38)
    full = 0.42 * area + 1.85 * water
    exact = np.maximum(110, full)
    columns = {
        "Parzelle": p.codes("KG", n),
        "Verein": rng.choice(["Abendfrieden", "Morgentau", "Süd e.V."], n),
        "Fläche qm": area,
        "Wasser m3": _blank(water),
        "Laube": _yes(rng, n, 0.7, "ja", "nein"),
        "Pächter seit": rng.integers(1978, 2024, n),
        "Obstbäume": rng.integers(0, 12, n),
    }
    own = {
        "minimum forgotten": full,
        "water forgotten": np.maximum(110, 0.42 * area),
        "old rent": np.maximum(110, full - 0.04 * area),
    }
    errors = _errors(rng, exact, own, "another row", "digits", "swapped", "zero")
    form = _form("max(110, 0.42*`Fläche qm` + 1.85*`Wasser m3`)", ("Fläche qm", "Wasser m3"))
    return Made(columns, "Pacht", exact, form, 0.28, errors, id="Parzelle", layout="decimal comma")


@_table
def _17_graves(rng: Generator) -> Made:
    n = 700
    rates = {"caveau": 31.5, "cavurne": 14.2, "columbarium": 22.8, "pleine terre": 11.6}
    kind, rate = p.pick(rng, rates, n)
    years, places = rng.choice([10, 15, 30, 50], n), rng.choice([1, 2, 3, 4], n, p=[0.4, 0.35, 0.15, 0.1])
    exact = rate * years * places
    columns = {
        "Concession": p.codes("CC", n),
        "Date": p.day_month(p.days(rng, n)),
        "Emplacement": kind,
        "Carré": rng.choice(["A", "B", "C", "D", "E"], n),
        "Durée": years,
        "Places": places,
        "Renouvellement": _yes(rng, n, 0.4, "oui", "non"),
        "Habitant": np.where(rng.random(n) < 0.85, "x", ""),
    }
    own = {
        "one place": rate * years,
        "rate of another": p.another_row(rng, rate) * years * places,
        "old rates": 0.96 * exact,
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "ten times")
    others = tuple(_levels(tuple(rates.values()))[1:])
    form = _form(f"{rates!r}[Emplacement]*Durée*Places", ("Emplacement", "Durée", "Places"), others)
    return Made(columns, "Redevance", exact, form, 0.11, errors, id="Concession", layout="euros")


@_table
def _18_school_lunch(rng: Generator) -> Made:
    n = 1700
    prices = {"MŠ": 34.0, "ZŠ 1": 39.0, "ZŠ 2": 43.0, "dospělí": 92.0}
    group, price = p.pick(rng, prices, n)
    days, cancelled = rng.integers(17, 23, n), _some(rng, n, 0.45, 1, 9)
    exact = price * (days - cancelled)
    columns = {
        "Strávník": np.arange(4001, 4001 + n),
        "Měsíc": rng.integers(1, 13, n),
        "Třída": rng.choice(["1.A", "2.B", "5.A", "8.C", "9.A"], n),
        "Skupina": group,
        "Dny": days,
        "Odhlášeno": _blank(cancelled),
        "Dieta": np.where(rng.random(n) < 0.08, "x", ""),
        "Přeplatek": _gaps(rng, rng.integers(0, 300, n).astype(float), 0.6),
    }
    own = {
        "cancelled forgotten": price * days,
        "old prices": (price - 2) * (days - cancelled),
        "price of another": p.another_row(rng, price) * (days - cancelled),
        "days of the month": 21 * price,
    }
    errors = _errors(rng, exact, own, "another row", "digits", "swapped", places=0)
    others = tuple(_levels(tuple(prices.values()))[1:])
    form = _form(f"{prices!r}[Skupina]*(Dny - Odhlášeno)", ("Skupina", "Dny", "Odhlášeno"), others)
    return Made(columns, "Platba", exact, form, 0.37, errors, places=0, id="Strávník", layout="semicolons")


@_table
def _19_early_warning(rng: Generator) -> Made:
    n = 2000
    rate = np.rint(rng.normal(17, 6, n)).clip(4, 40).astype(int)
    oxygen = np.where(rng.random(n) < 0.3, "x", "")
    level = np.searchsorted([9, 12, 21, 25], rate, side="right")
    extra = 2.0 * (oxygen == "x")
    exact = np.array([3.0, 1.0, 0.0, 2.0, 3.0])[level] + extra
    columns = {
        "record": p.codes("EW", n),
        "taken": p.iso(p.days(rng, n)),
        "at": _clock(rng.integers(0, 1440, n)),
        "resp rate": rate,
        "on oxygen": oxygen,
        "SpO2": rng.integers(86, 101, n),
        "pulse": np.rint(rng.normal(82, 16, n)).astype(int),
        "temp": _gaps(rng, np.round(rng.normal(37, 0.6, n), 1), 0.2),
        "nurse": rng.choice(["AF", "BL", "CK", "DM"], n),
    }
    own = {
        "oxygen forgotten": exact - extra,
        "rate not looked at": extra,
        "three for oxygen": exact + (oxygen == "x"),
        "next class": np.array([1.0, 0.0, 2.0, 3.0, 3.0])[level] + extra,
    }
    errors = _errors(rng, exact, own, "another row", "digits", places=0)
    limits = {float(at): Cut.of(rate, at) for at in (9, 12, 21, 25)}
    text = "[3, 1, 0, 2, 3][bracket(`resp rate`, 9, 12, 21, 25)] + (2 if `on oxygen` == 'x' else 0)"
    cuts, steps = tuple(limits.values()), ((3.0, 2.0, 2.0), (3.0, 3.0, 2.0), (2.0, 2.0, 3.0), (2.0, 3.0, 2.0))
    others = tuple((*step, *cuts, 2.0) for step in steps)
    form = _form(text, ("resp rate", "on oxygen"), others, limits)
    return Made(columns, "score", exact, form, 0.21, errors, places=0, id="record")


@_table
def _20_launderette(rng: Generator) -> Made:
    n = 1000
    kg, shirts = np.round(rng.gamma(2.4, 4, n) + 0.6, 1), _some(rng, n, 0.55, 1, 14)
    exact = 4.8 * _up(kg / 6) + 2.35 * shirts
    columns = {
        "ticket": np.arange(1, n + 1),
        "left on": p.iso(p.days(rng, n)),
        "customer": rng.integers(1, 260, n),
        "kg": kg,
        "shirts": _blank(shirts),
        "softener": _yes(rng, n, 0.6),
        "stains": np.where(rng.random(n) < 0.2, "x", ""),
        "ready in days": rng.integers(1, 5, n),
    }
    own = {
        "not started": 4.8 * kg / 6 + 2.35 * shirts,
        "shirts forgotten": exact - 2.35 * shirts,
        "one machine": 4.8 + 2.35 * shirts,
        "VAT taken off": exact / 1.2,
    }
    errors = _errors(rng, exact, own, "another row", "digits", "ten times")
    form = _form("4.8*ceil(kg/6) + 2.35*shirts", ("kg", "shirts"))
    return Made(columns, "to pay", exact, form, 0.34, errors, id="ticket", layout="total")


@_table
def _21_commute(rng: Generator) -> Made:
    n = 1800
    km, days = np.round(rng.gamma(1.7, 14, n) + 1, 1), rng.integers(3, 23, n)
    exact = 2 * 0.23 * np.minimum(km, 35) * days
    columns = {
        "Personeelsnr": np.arange(20_101, 20_101 + n),
        "Maand": rng.integers(1, 13, n),
        "Afdeling": rng.choice(["Financiën", "HR", "ICT", "Inkoop", "Zorg"], n),
        "Afstand km": km,
        "Dagen": days,
        "Vervoer": rng.choice(["auto", "bus", "fiets", "trein"], n),
        "Uren per week": rng.choice([16, 24, 32, 36, 40], n),
        "Parkeerplaats": _gaps(rng, rng.integers(1, 120, n).astype(float), 0.6),
    }
    own = {
        "not capped": 0.46 * km * days,
        "one way": exact / 2,
        "rate of last year": 2 * 0.21 * np.minimum(km, 35) * days,
        "a full month": 0.46 * np.minimum(km, 35) * 22,
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "another row")
    others = ((0.46, 35.0), (0.46, 16.1), (2.0, 0.23, 8.05))
    form = _form("2*0.23*min(`Afstand km`, 35)*Dagen", ("Afstand km", "Dagen"), others)
    return Made(columns, "Vergoeding", exact, form, 0.43, errors, id="Personeelsnr", layout="euros")


@_table
def _22_matched_gift(rng: Generator) -> Made:
    n = 1300
    gift = np.where(
        rng.random(n) < 0.7, rng.choice([10, 20, 25, 50, 75, 100, 200, 250, 500], n), p.money(rng, 5, 900, n)
    )
    exact = gift + np.minimum(gift, 150)
    columns = {
        "gift no": np.arange(301, 301 + n),
        "date": p.iso(p.days(rng, n)),
        "employee": rng.integers(1000, 1800, n),
        "office": rng.choice(["Austin", "Boston", "Denver", "Reno"], n),
        "charity": rng.choice(["Animal rescue", "Food bank", "Library", "Red Cross"], n),
        "gift": gift,
        "payroll": _yes(rng, n, 0.65),
    }
    own = {
        "match forgotten": gift,
        "not capped": 2 * gift,
        "cap of last year": gift + np.minimum(gift, 100),
    }
    errors = _errors(rng, exact, own, "swapped", "another row", "ten times")
    form = _form("gift + min(gift, 150)", ("gift",), ((2.0, 150.0), (150.0, 150.0)))
    return Made(columns, "charity gets", exact, form, 0.14, errors, id="gift no", layout="dollars")


@_table
def _23_fence_posts(rng: Generator) -> Made:
    n = 900
    length, gates = np.round(rng.gamma(1.8, 90, n) + 6, 1), rng.choice([0, 1, 2, 3], n, p=[0.25, 0.5, 0.2, 0.05])
    exact = _up(length / 3.5) + 1 + 2 * gates
    columns = {
        "fence": p.codes("Z", n),
        "farm": rng.choice(["Hill", "Lower Ash", "Marsh End", "Oakley"], n),
        "length m": length,
        "gates": gates,
        "wires": rng.choice([2, 3, 5], n),
        "animals": rng.choice(["cattle", "horses", "sheep"], n),
        "put up": _gaps(rng, p.iso(p.days(rng, n)), 0.2),
    }
    own = {
        "last post forgotten": exact - 1,
        "gates forgotten": exact - 2 * gates,
        "every 3 m": _up(length / 3) + 1 + 2 * gates,
        "metres": np.rint(length),
    }
    errors = _errors(rng, exact, own, "another row", "digits", "off by", places=0)
    form = _form("ceil(`length m`/3.5) + 1 + 2*gates", ("length m", "gates"))
    return Made(columns, "posts", exact, form, 0.39, errors, places=0, id="fence")


@_table
def _24_volunteers(rng: Generator) -> Made:
    n = 1250
    rate, minutes = rng.choice([8.5, 10, 12, 14.5], n, p=[0.3, 0.35, 0.25, 0.1]), _whole(rng, n, 3, 105, 10)
    exact = rate * _to(minutes / 60, 0.25)
    columns = {
        "Eintrag": p.codes("E", n),
        "Tag": p.dotted(p.days(rng, n)),
        "Sparte": rng.choice(["Fußball", "Leichtathletik", "Tanzen", "Turnen"], n),
        "Helfer": rng.integers(1, 75, n),
        "Satz": rate,
        "Minuten": minutes,
        "Lizenz": np.where(rng.random(n) < 0.4, "C", ""),
        "Kinder": rng.integers(4, 26, n),
    }
    own = {
        "exact minutes": rate * minutes / 60,
        "quarters started": rate * _up(minutes / 15) / 4,
        "whole hours": rate * _to(minutes / 60, 1.0),
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "another row")
    others = ((60.0, 0.25, 0.25), (15.0, 4.0), (15.0, 0.25), (60.0, 4.0, 4.0))
    form = _form("Satz*nearest(Minuten/60, 0.25)", ("Satz", "Minuten"), others)
    return Made(columns, "Betrag", exact, form, 0.26, errors, id="Eintrag", layout="workbook")


@_table
def _25_residents_parking(rng: Generator) -> Made:
    n = 2100
    length, months = np.rint(rng.normal(438, 38, n)).clip(270, 560).astype(int), rng.integers(1, 25, n)
    fees = np.array([10.0, 15.0, 20.5])
    level = np.searchsorted([421, 471], length, side="right")
    exact = fees[level] * months
    columns = {
        "Ausweis": p.codes("BP", n),
        "Antrag": p.dotted(p.days(rng, n)),
        "Zone": rng.choice(["I", "II", "III", "IV"], n),
        "Länge cm": length,
        "Breite cm": np.rint(rng.normal(180, 7, n)).astype(int),
        "Monate": months,
        "Elektro": np.where(rng.random(n) < 0.15, "x", ""),
        "Personen": rng.integers(1, 6, n),
    }
    own = {
        "length not looked at": 10.0 * months,
        "a month more": fees[level] * (months + 1),
        "next class": fees[np.minimum(level + 1, 2)] * months,
    }
    errors = _errors(rng, exact, own, "swapped", "another row", "digits")
    limits = {float(at): Cut.of(length, at) for at in (421, 471)}
    low, high = limits.values()
    others = (
        (10.0, 5.0, 5.5, low, high),
        (20.5, 5.5, 5.0, low, high),
        (10.0, 15.0, 20.5, low, low, high, high),
        (15.0, 5.0, 5.5, low, high),
    )
    form = _form("[10, 15, 20.5][bracket(`Länge cm`, 421, 471)]*Monate", ("Länge cm", "Monate"), others, limits)
    return Made(columns, "Gebühr", exact, form, 0.10, errors, id="Ausweis", layout="titles")


@_table
def _26_building_permit(rng: Generator) -> Made:
    n = 750
    cost = np.rint(p.money(rng, 3000, 900_000, n) / 10) * 10
    exact = np.maximum(150, 0.0062 * cost)
    columns = {
        "Pratica": p.codes("PE", n),
        "Protocollo": p.day_month(p.days(rng, n)),
        "Uso": rng.choice(["agricolo", "commerciale", "residenziale"], n),
        "Costo opere": cost,
        "Superficie mq": np.rint(cost / rng.uniform(500, 2200, n) + 4).astype(int),
        "Piani": rng.choice([1, 2, 3, 4], n, p=[0.45, 0.35, 0.15, 0.05]),
        "Tecnico": rng.choice(["Bassi", "Conti", "Ferri", "Longo"], n),
        "Vincolo": np.where(rng.random(n) < 0.18, "sì", ""),
    }
    own = {
        "minimum forgotten": 0.0062 * cost,
        "old rate": np.maximum(150, 0.0055 * cost),
        "minimum added": 150 + 0.0062 * cost,
    }
    errors = _errors(rng, exact, own, "ten times", "digits", "another row", "zero")
    form = _form("max(150, 0.0062*`Costo opere`)", ("Costo opere",))
    return Made(columns, "Diritti", exact, form, 0.17, errors, id="Pratica", layout="euros")


@_table
def _27_classified_ads(rng: Generator) -> Made:
    n = 1600
    lines, photo = _whole(rng, n, 1.6, 5), np.where(rng.random(n) < 0.35, "x", "")
    extra = 7.5 * (photo == "x")
    over = np.maximum(0, lines - 3)
    exact = 11.9 + 3.2 * over + extra
    columns = {
        "Anúncio": np.arange(60_001, 60_001 + n),
        "Publicação": p.day_month(p.days(rng, n)),
        "Secção": rng.choice(["automóveis", "casas", "diversos", "emprego"], n),
        "Linhas": lines,
        "Foto": photo,
        "Cliente": rng.integers(1, 700, n),
        "Contacto": _gaps(rng, rng.choice(["balcão", "correio", "telefone"], n), 0.1),
        "Pago": _yes(rng, n, 0.8, "sim", "não"),
    }
    own = {
        "photo forgotten": exact - extra,
        "every line": 11.9 + 3.2 * lines + extra,
        "base price": 11.9 + extra,
        "old price of a line": exact - 0.4 * over,
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "another row")
    text = "11.9 + 3.2*max(0, Linhas - 3) + (7.5 if Foto == 'x' else 0)"
    form = _form(text, ("Linhas", "Foto"), ((2.3, 3.2, 3.0, 7.5), (19.4, 3.2, 3.0, 7.5)))
    return Made(columns, "Preço", exact, form, 0.30, errors, id="Anúncio", layout="semicolons")


# Several of these at once.


@_table
def _28_curtains(rng: Generator) -> Made:
    n = 560
    width, height = np.round(rng.uniform(0.8, 5.2, n), 2), np.round(rng.uniform(1.1, 2.9, n), 2)
    full, wide = rng.choice([1.5, 2.0, 2.5], n), rng.choice([1.4, 1.5, 2.8], n)
    price = rng.choice([12.9, 16.5, 19.9, 24.5, 32.0, 46.9], n)
    drops = _up(width * full / wide)
    exact = drops * (height + 0.25) * price
    columns = {
        "order": p.codes("CU", n),
        "room": rng.choice(["bedroom", "dining room", "living room", "study"], n),
        "width m": width,
        "height m": height,
        "fullness": full,
        "fabric width": wide,
        "price per m": price,
        "lining": _yes(rng, n, 0.3),
        "measured by": _gaps(rng, rng.choice(["Ana", "Lee", "Uma"], n), 0.1),
    }
    own = {
        "hem forgotten": drops * height * price,
        "not started": width * full / wide * (height + 0.25) * price,
        "one drop": (height + 0.25) * price,
        "VAT on top": 1.2 * exact,
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    read = ("width m", "fullness", "fabric width", "height m", "price per m")
    form = _form("ceil(`width m`*fullness/`fabric width`)*(`height m` + 0.25)*`price per m`", read)
    return Made(columns, "fabric", exact, form, 0.12, errors, id="order")


@_table
def _29_music_school(rng: Generator) -> Made:
    n = 1150
    rates = {"Blockflöte": 39.0, "Geige": 63.5, "Gitarre": 55.0, "Klavier": 69.0}
    kind, rate = p.pick(rng, rates, n)
    minutes, child = rng.choice([30, 45, 60], n, p=[0.5, 0.35, 0.15]), rng.choice([1, 2, 3], n, p=[0.62, 0.28, 0.1])
    less = np.where(child >= 2, 0.85, 1.0)
    exact = _to(rate * minutes / 30 * less, 0.5)
    columns = {
        "Vertrag": p.codes("MS", n),
        "Fach": kind,
        "Lehrkraft": rng.choice(["Arnold", "Bär", "Czerny", "Döring", "Egk"], n),
        "Minuten": minutes,
        "Kind Nr": child,
        "Alter": rng.integers(5, 19, n),
        "Beginn": p.dotted(p.days(rng, n, "2019-08-01", 1700)),
        "Leihinstrument": np.where(rng.random(n) < 0.2, "x", ""),
    }
    own = {
        "child not looked at": _to(rate * minutes / 30, 0.5),
        "half an hour": _to(rate * less, 0.5),
        "not rounded": rate * minutes / 30 * less,
        "fees of 2021": _to(0.95 * rate * minutes / 30 * less, 0.5),
    }
    errors = _errors(rng, exact, own, "another row", "digits", "swapped")
    text = f"nearest({rates!r}[Fach]*Minuten/30*(0.85 if `Kind Nr` >= 2 else 1), 0.5)"
    form = _form(text, ("Fach", "Minuten", "Kind Nr"), free_scale=True)
    return Made(columns, "Monatsbeitrag", exact, form, 0.29, errors, id="Vertrag", layout="decimal comma")


@_table
def _30_physiotherapy(rng: Generator) -> Made:
    n = 1350
    rates = {"KG": 27.64, "KG-Gerät": 52.19, "Lymphdrainage": 33.07, "Massage": 20.18}
    kind, rate = p.pick(rng, rates, n)
    times, age = rng.choice([4, 6, 8, 10, 12], n), rng.integers(6, 88, n)
    free = np.where(rng.random(n) < 0.15, "x", "")
    pays = (age >= 18) & (free != "x")
    exact = np.where(pays, 10 + 0.1 * times * rate, 0.0)
    columns = {
        "Verordnung": np.arange(70_001, 70_001 + n),
        "Datum": p.dotted(p.days(rng, n)),
        "Leistung": kind,
        "Anzahl": times,
        "Satz": rate,
        "Alter": age,
        "befreit": free,
        "Kasse": rng.choice(["AOK", "BKK", "IKK", "TK"], n),
        "Arzt": rng.integers(1, 45, n),
        "Hausbesuch": np.where(rng.random(n) < 0.07, "x", ""),
    }
    own = {
        "fixed part forgotten": np.where(pays, 0.1 * times * rate, 10.0),
        "all pay": 10 + 0.1 * times * rate,
        "share forgotten": np.where(pays, 10.0, 0.1 * times * rate),
        "one treatment": np.where(pays, 10 + 0.1 * rate, 10.0),
        "in full": times * rate,
    }
    errors = _errors(rng, exact, own, "another row", "digits")
    cut = Cut.of(age, 18)
    text = "(10 + 0.1*Anzahl*Satz)*(1 if Alter >= 18 and befreit != 'x' else 0)"
    others = ((10.0, 0.1, cut, cut), (10.0, 10.0, cut), (10.0, 10.0, cut, cut))
    form = _form(text, ("Anzahl", "Satz", "Alter", "befreit"), others, {18.0: cut})
    return Made(columns, "Zuzahlung", exact, form, 0.36, errors, id="Verordnung", layout="semicolons")


@_table
def _31_grain_delivery(rng: Generator) -> Made:
    n = 1750
    crop, mean = p.pick(rng, {"barley": 186.0, "oats": 204.0, "rye": 171.0, "wheat": 214.0}, n)
    price = np.round(mean + rng.normal(0, 9, n), 1)
    tonnes, wet = np.round(rng.gamma(5, 3.2, n) + 1.5, 2), np.round(rng.normal(14.9, 1.5, n).clip(11, 21), 1)
    over = np.maximum(0, wet - 14.5)
    exact = tonnes * price * (1 - 0.012 * over)
    columns = {
        "ticket": np.arange(9001, 9001 + n),
        "date": p.iso(p.days(rng, n, "2023-07-05", 60)),
        "farmer": rng.integers(100, 260, n),
        "crop": crop,
        "tonnes": tonnes,
        "moisture": wet,
        "protein": _gaps(rng, np.round(rng.normal(12.3, 0.9, n), 1), 0.4),
        "price": price,
        "lorry": rng.choice(["own", "silo", "trailer"], n),
    }
    own = {
        "moisture forgotten": tonnes * price,
        "a percent a point": tonnes * price * (1 - 0.01 * over),
        "as if from 14": tonnes * price * (1 - 0.012 * np.maximum(0, wet - 14)),
        "VAT on top": 1.078 * exact,
    }
    errors = _errors(rng, exact, own, "swapped", "another row", "digits")
    form = _form("tonnes*price*(1 - 0.012*max(0, moisture - 14.5))", ("tonnes", "price", "moisture"))
    return Made(columns, "paid out", exact, form, 0.23, errors, id="ticket", layout="tsv")


@_table
def _32_firewood(rng: Generator) -> Made:
    n = 620
    prices = {"Birke": 104.0, "Buche": 118.0, "Eiche": 112.0, "Fichte": 83.0}
    wood, price = p.pick(rng, prices, n)
    cubic, km = rng.integers(2, 25, n) / 2, rng.integers(1, 75, n)
    trip = 9 * _up(np.maximum(0, km - 15) / 10)
    exact = price * cubic + trip
    columns = {
        "Lieferung": p.codes("HZ", n),
        "Datum": p.dotted(p.days(rng, n)),
        "Holz": wood,
        "Raummeter": cubic,
        "Scheit cm": rng.choice([25, 33, 50], n),
        "km": km,
        "Restfeuchte": _gaps(rng, np.round(rng.normal(17, 2.5, n), 1), 0.2),
        "Fahrer": rng.choice(["Gregor", "Hannes", "Sepp"], n),
    }
    own = {
        "delivery forgotten": price * cubic,
        "no free km": price * cubic + 9 * _up(km / 10),
        "price of beech": 118.0 * cubic + trip,
        "price of last winter": (price - 12) * cubic + trip,
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "ten times")
    levels = _levels(tuple(prices.values()))
    others = tuple((*way, 9.0, *more) for way in levels for more in ((15.0, 10.0), (10.0, 1.5), (10.0, 2.0, 0.5)))
    form = _form(f"{prices!r}[Holz]*Raummeter + 9*ceil(max(0, km - 15)/10)", ("Holz", "Raummeter", "km"), others)
    return Made(columns, "Rechnung", exact, form, 0.32, errors, id="Lieferung", layout="decimal comma")


@_table
def _33_campsite(rng: Generator) -> Made:
    n = 1500
    day, nights = p.days(rng, n, "2023-05-15", 125), _whole(rng, n, 1.8, 6)
    adults, children = rng.choice([1, 2, 3, 4], n, p=[0.12, 0.68, 0.12, 0.08]), _some(rng, n, 0.5, 1, 4)
    high = (_month(day) == 7) | (_month(day) == 8)
    pitch = np.where(high, 23.5, 16.0)
    each = 7.2 * adults + 3.9 * children
    exact = (pitch + each) * nights
    columns = {
        "Séjour": p.codes("CP", n),
        "Arrivée": p.day_month(day),
        "Nuits": nights,
        "Adultes": adults,
        "Enfants": _blank(children),
        "Emplacement": rng.integers(1, 140, n),
        "Abri": rng.choice(["camping-car", "caravane", "tente"], n),
        "Pays": rng.choice(["BE", "CH", "DE", "FR", "NL"], n),
        "Chien": np.where(rng.random(n) < 0.2, "x", ""),
    }
    own = {
        "low season": (16.0 + each) * nights,
        "children forgotten": (pitch + 7.2 * adults) * nights,
        "a night more": (pitch + each) * (nights + 1),
        "pitch once": pitch + each * nights,
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "another row")
    text = "((23.5 if month(Arrivée) in (7, 8) else 16) + 7.2*Adultes + 3.9*Enfants)*Nuits"
    months, dates = (
        Cut(6, 7),
        tuple(Cut.of(day, int(np.datetime64(at, "D").astype(int))) for at in ("2023-07-01", "2023-09-01")),
    )
    prices = ((16.0, 7.5, 7.2, 3.9), (23.5, 7.5, 7.2, 3.9), (23.5, 16.0, 7.2, 3.9))
    ends = ((), (months,), (months, Cut(8, 9)), dates)
    form = _form(text, ("Arrivée", "Adultes", "Enfants", "Nuits"), tuple((*a, *b) for a in prices for b in ends))
    return Made(columns, "À payer", exact, form, 0.13, errors, id="Séjour", layout="euros")


@_table
def _34_care_home(rng: Generator) -> Made:
    n = 950
    grants = {"PG 2": 770.0, "PG 3": 1262.0, "PG 4": 1775.0, "PG 5": 2005.0}
    grade, grant = p.pick(rng, grants, n)
    days = np.where(rng.random(n) < 0.7, rng.choice([30, 31], n), rng.integers(4, 30, n))
    care = np.round(48 + 0.02 * grant + rng.normal(4, 3, n), 2)
    board = rng.choice([31.85, 33.4, 36.12, 38.9], n)
    full = days * (care + board)
    exact = np.maximum(0, full - grant)
    columns = {
        "Rechnung": np.arange(2401, 2401 + n),
        "Monat": rng.integers(1, 13, n),
        "Haus": rng.choice(["Elbblick", "Lindenhof", "Sonnenau"], n),
        "Zimmer": rng.integers(1, 88, n),
        "Pflegegrad": grade,
        "Tage": days,
        "Pflegesatz": care,
        "Unterkunft": board,
        "Geburtsjahr": rng.integers(1923, 1956, n),
        "Betreuer": np.where(rng.random(n) < 0.3, "x", ""),
    }
    own = {
        "board forgotten": np.maximum(0, days * care - grant),
        "insurance forgotten": full,
        "always PG 2": np.maximum(0, full - 770),
        "a whole month": np.maximum(0, 30.42 * (care + board) - grant),
    }
    errors = _errors(rng, exact, own, "another row", "swapped", "digits")
    text = f"max(0, Tage*(Pflegesatz + Unterkunft) - {grants!r}[Pflegegrad])"
    others = tuple(_levels(tuple(grants.values()))[1:])
    form = _form(text, ("Tage", "Pflegesatz", "Unterkunft", "Pflegegrad"), others)
    return Made(columns, "Eigenanteil", exact, form, 0.18, errors, id="Rechnung", layout="titles")


@_table
def _35_area_payment(rng: Generator) -> Made:
    n = 850
    area, young = np.round(rng.gamma(1.5, 38, n) + 1.2, 2), np.where(rng.random(n) < 0.3, "ja", "nein")
    first, next_ = np.minimum(area, 40), np.maximum(0, np.minimum(area, 60) - 40)
    start = 134 * np.minimum(area, 120) * (young == "ja")
    exact = 156 * area + 69 * first + 41 * next_ + start
    columns = {
        "Betrieb": p.codes("LW", n),
        "Gemeinde": rng.choice(["Aurach", "Ebern", "Hofheim", "Maßbach", "Zeil"], n),
        "Fläche ha": area,
        "Schläge": np.rint(area / 3 + rng.gamma(2, 2, n)).astype(int) + 1,
        "Junglandwirt": young,
        "Öko": np.where(rng.random(n) < 0.25, "x", ""),
        "Tiere": _gaps(rng, rng.integers(0, 240, n).astype(float), 0.35),
        "Antrag": p.dotted(p.days(rng, n, "2024-03-15", 60)),
    }
    own = {
        "first hectares forgotten": exact - 69 * first - 41 * next_,
        "young farmer forgotten": exact - start,
        "no second step": exact - 41 * next_,
        "rate of last year": exact + 14 * area,
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    text = (
        "156*`Fläche ha` + 69*min(`Fläche ha`, 40) + 41*max(0, min(`Fläche ha`, 60) - 40)"
        " + (134*min(`Fläche ha`, 120) if Junglandwirt == 'ja' else 0)"
    )
    others = (
        (156.0, 28.0, 40.0, 41.0, 60.0, 134.0, 120.0),
        (225.0, 28.0, 40.0, 41.0, 60.0, 134.0, 120.0),
        (156.0, 69.0, 40.0, 41.0, 60.0, 134.0, 120.0),
    )
    form = _form(text, ("Fläche ha", "Junglandwirt"), others)
    return Made(columns, "Prämie", exact, form, 0.09, errors, id="Betrieb", layout="decimal comma")


@_table
def _36_clearance_sale(rng: Generator) -> Made:
    n = 2500
    tags = {"blau": 0.8, "gelb": 0.65, "ohne": 1.0, "rot": 0.5}
    tag, factor = p.pick(rng, tags, n)
    price = np.round(np.rint(p.money(rng, 8, 280, n)) - rng.choice([0, 0.05, 0.1, 0.5], n), 2)
    pieces = rng.choice([1, 2, 3, 4], n, p=[0.68, 0.2, 0.08, 0.04])
    exact = _to(price * pieces * factor, 0.05)
    columns = {
        "Bon": np.arange(1, n + 1),
        "Filiale": rng.choice(["Aarau", "Bern", "Chur", "Thun"], n),
        "Abteilung": rng.choice(["Damen", "Herren", "Kinder", "Schuhe", "Sport"], n),
        "Preis": price,
        "Stück": pieces,
        "Etikett": tag,
        "Karte": _yes(rng, n, 0.7, "ja", "nein"),
        "Kundin": _gaps(rng, rng.integers(1000, 9000, n).astype(float), 0.5),
    }
    own = {
        "label not looked at": price * pieces,
        "one piece": _to(price * factor, 0.05),
        "label of another": _to(price * pieces * p.another_row(rng, factor), 0.05),
        "VAT taken off": exact / 1.081,
        "discount for price": price * pieces * (1 - factor),
    }
    errors = _errors(rng, exact, own, "another row", "digits", "swapped")
    text = f"nearest(Preis*Stück*{tags!r}[Etikett], 0.05)"
    wholes = ((0.8, 0.65, 0.5), (0.2, 0.35, 0.5))
    others = tuple((*whole, *more) for whole in wholes for more in ((), (0.05,), (0.05, 0.05)))
    form = _form(text, ("Preis", "Stück", "Etikett"), others)
    return Made(columns, "Total", exact, form, 0.41, errors, id="Bon", layout="swiss")


@_table
def _37_after_school(rng: Generator) -> Made:
    n = 2800
    rates = {"full": 14.5, "half": 9.0, "holiday": 22.0}
    plan, rate = p.pick(rng, rates, n)
    until = rng.choice([960, 990, 1020, 1050], n)
    late = np.where(rng.random(n) < 0.4, rng.integers(1, 75, n), 0)
    picked = np.where(late > 0, until + late, until - rng.integers(0, 50, n))
    quarters = _up(np.maximum(0, picked - until) / 15)
    exact = rate + 5 * quarters
    columns = {
        "entry": np.arange(1, n + 1),
        "day": p.iso(p.days(rng, n)),
        "child": rng.integers(1, 120, n),
        "group": rng.choice(["foxes", "hedgehogs", "owls"], n),
        "plan": plan,
        "booked until": _clock(until),
        "picked up": _clock(picked),
        "by": _gaps(rng, rng.choice(["aunt", "father", "mother", "neighbour"], n), 0.12),
        "snack": _yes(rng, n, 0.5),
    }
    own = {
        "lateness forgotten": rate,
        "from five": rate + 5 * _up(np.maximum(0, picked - 1020) / 15),
        "one quarter": rate + 5 * (quarters > 0),
        "old fee": rate + 4 * quarters,
        "plan of another": p.another_row(rng, rate) + 5 * quarters,
    }
    errors = _errors(rng, exact, own, "another row", "digits", "swapped")
    text = f"{rates!r}[plan] + 5*ceil(max(0, clock(`picked up`) - clock(`booked until`))/15)"
    levels = _levels(tuple(rates.values()))
    others = tuple((*way, 5.0, *more) for way in levels for more in ((15.0,), (0.25,), (4.0,), (96.0,)))
    form = _form(text, ("plan", "picked up", "booked until"), others)
    return Made(columns, "fee", exact, form, 0.27, errors, id="entry")


@_table
def _38_severance(rng: Generator) -> Made:
    n = 420
    salary, months = np.round(rng.gamma(9, 260, n) + 1500, 2), _whole(rng, n, 1.4, 96, 2)
    share = np.minimum(months, 120) / 4 + np.maximum(0, months - 120) / 3
    exact = np.where(months < 8, 0.0, salary * share / 12)
    columns = {
        "Dossier": p.codes("LC", n),
        "Sortie": p.day_month(p.days(rng, n)),
        "Service": rng.choice(["achats", "atelier", "comptabilité", "ventes"], n),
        "Mois": months,
        "Salaire": salary,
        "Âge": rng.integers(22, 64, n),
        "Motif": rng.choice(["inaptitude", "personnel", "économique"], n),
        "Préavis": _gaps(rng, rng.choice([1.0, 2.0, 3.0], n), 0.15),
    }
    own = {
        "a quarter throughout": salary * months / 48,
        "old law": np.where(months < 8, 0.0, salary * (months / 5 + np.maximum(0, months - 120) * 2 / 15) / 12),
        "started years": salary * _up(months / 12) / 4,
        "a month's salary": salary,
    }
    errors = _errors(rng, exact, own, "swapped", "digits", "another row")
    text = "(0 if Mois < 8 else Salaire*(min(Mois, 120)/4 + max(0, Mois - 120)/3)/12)"
    form = _form(text, ("Mois", "Salaire"), free_scale=True)
    return Made(columns, "Indemnité", exact, form, 0.37, errors, id="Dossier", layout="euros")


@_table
def _39_laser_cutting(rng: Generator) -> Made:
    n = 1050
    rates = {"acrylic": 1.9, "birch ply": 1.45, "card": 0.85, "steel": 3.2}
    material, rate = p.pick(rng, rates, n)
    minutes = np.round(rng.gamma(1.3, 14, n) + 0.5, 1)
    net = 12 + rate * minutes
    exact = 1.19 * np.maximum(25, net)
    columns = {
        "job": p.codes("LJ", n),
        "received": p.iso(p.days(rng, n)),
        "material": material,
        "thickness": rng.choice([1.0, 2.0, 3.0, 4.0, 6.0], n),
        "cut_min": minutes,
        "sheets": rng.integers(1, 7, n),
        "operator": rng.choice(["Kaya", "Lutz", "Mona"], n),
        "express": _yes(rng, n, 0.1),
    }
    own = {
        "VAT forgotten": np.maximum(25, net),
        "minimum forgotten": 1.19 * net,
        "setup forgotten": 1.19 * np.maximum(25, rate * minutes),
        "VAT of 2020": 1.16 * np.maximum(25, net),
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    taxed = tuple(round(1.19 * value, 6) for value in rates.values())
    levels = _levels(tuple(rates.values()))
    others = (
        *((1.19, *head, *way) for way in levels for head in ((25.0, 12.0), (13.0, 12.0))),
        *((*head, *way) for way in _levels(taxed) for head in ((29.75, 14.28), (15.47, 14.28))),
    )
    form = _form(f"1.19*max(25, 12 + {rates!r}[material]*cut_min)", ("material", "cut_min"), others)
    return Made(columns, "gross", exact, form, 0.14, errors, id="job", layout="jsonl")


@_table
def _40_scaffold(rng: Generator) -> Made:
    n = 880
    up, stood = p.days(rng, n), rng.integers(6, 120, n)
    area = rng.integers(40, 720, n)
    weeks = np.maximum(0, _up(stood / 7) - 4)
    exact = area * (6.8 + 0.45 * weeks)
    columns = {
        "Baustelle": p.codes("G", n),
        "Aufbau": p.dotted(up),
        "Abbau": p.dotted(up + stood),
        "qm": area,
        "Gewerk": rng.choice(["Dachdecker", "Maler", "Maurer", "Solar"], n),
        "Geschosse": rng.integers(1, 6, n),
        "Netz": np.where(rng.random(n) < 0.3, "x", ""),
        "Kolonne": rng.integers(1, 9, n),
    }
    own = {
        "weeks forgotten": 6.8 * area,
        "no weeks free": area * (6.8 + 0.45 * _up(stood / 7)),
        "price of last year": area * (6.4 + 0.45 * weeks),
        "weeks not started": area * (6.8 + 0.45 * np.maximum(0, np.floor(stood / 7) - 4)),
        "VAT on top": 1.19 * exact,
    }
    errors = _errors(rng, exact, own, "swapped", "digits")
    text = "qm*(6.8 + 0.45*max(0, ceil((day(Abbau) - day(Aufbau))/7) - 4))"
    form = _form(text, ("qm", "Abbau", "Aufbau"), ((6.8, 0.45, 28.0, 7.0), (6.8, 0.45, 7.0, 28.0, 7.0)))
    return Made(columns, "Miete", exact, form, 0.20, errors, id="Baustelle", layout="decimal comma")


if __name__ == "__main__":
    trades.main(TABLES, __doc__)
