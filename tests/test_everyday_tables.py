"""The tables of everyday life are what they are called: each rule, written out by hand, gives the right labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from math import ceil, floor, log10, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everyday_tables
import forms
import planted
from massart.tables import read_table

Row = Mapping[str, Any]


def day(text: str) -> date:
    """Read 2024-02-29 or 29/02/2024."""
    return date.fromisoformat(text) if "-" in text else date(*map(int, reversed(text.split("/"))))


def level(limits: list[float], value: float) -> int:
    """Number of limits that a value reaches."""
    return sum(value >= limit for limit in limits)


CUSTOMS = {"textiles": (0.12, 0), "tools": (0.027, 0), "coffee": (0.075, 1.3), "sugar": (0, 0.419), "wine": (0, 0.32)}
REFUSE = {"60 l": (4.2, 4.55), "80 l": (5.35, 5.8), "120 l": (7.6, 8.2), "240 l": (14.1, 15.3)}
RENTS = {"Altstadt": 14.2, "Hafen": 12.6, "Nord": 9.45, "Ost": 8.9, "West": 10.75}
CARDS = {"EUR": 1, "CHF": 1.0415, "DKK": 0.1341, "GBP": 1.1668, "SEK": 0.0883, "USD": 0.9234}
CLASSES = {"M": 1.55, "0": 1.2, "1/2": 0.85, "1": 0.66, "2": 0.57, "4": 0.46, "8": 0.36, "15": 0.27}
SUPPORT = [(355, 426, 520, 564), (379, 454, 553, 599), (403, 482, 585, 633), (427, 509, 617, 668)]

RULES: dict[str, Callable[[Row], float]] = {
    "01-water-and-sewage": lambda r: max(120, 4.26 * (r["Stand neu"] - r["Stand alt"]) - 2.31 * r["Garten"]),
    "02-taxi": lambda r: 4.3 + 0.46 * ceil(r["metres"] / 200) + 0.55 * r["waiting_min"] + 1.5 * (r["night"] == "yes"),
    "03-sick-pay": lambda r: min(0.7 * r["monthly_pay"] / 30, 128.1) * max(0, r["days"] - 3),
    "04-library-fines": lambda r: min(
        20,
        {"book": 0.25, "film": 1.2, "game": 0.5, "magazine": 0.15}[r["medium"]]
        * (day(r["returned"]) - day(r["due"])).days,
    ),
    "05-customs": lambda r: CUSTOMS[r["goods"]][0] * r["customs_value"] + CUSTOMS[r["goods"]][1] * r["kg"],
    "06-feed-in": lambda r: r["kWh"] * (0.0811 if r["kWp"] <= 10 else 0.0703 if r["kWp"] <= 40 else 0.0574),
    "07-train-tickets": lambda r: (
        0.22 * r["km"] * (0, 0.5, 1, 0.75)[level([6, 15, 65], r["age"])] * {"1": 1.6, "2": 1}[r["class"]]
    ),
    "08-catering": lambda r: (
        {"buffet": 24.5, "finger food": 17.9, "gala": 46, "vegan": 21.5}[r["menu"]] * max(25, r["guests"]) + 85
    ),
    "09-road-tax": lambda r: {"petrol": 2, "diesel": 9.5}[r["fuel"]] * ceil(r["ccm"] / 100) + 2 * max(0, r["co2"] - 95),
    "10-translation": lambda r: (
        ceil(r["characters"] / 1500)
        * {"EN": 28, "FR": 31.5, "PL": 36, "ZH": 49}[r["language"]]
        * (1.25 if r["express"] == "yes" else 1)
    ),
    "11-dosage": lambda r: min(15 * r["kg"], 1000),
    "12-dilution": lambda r: r["c_final"] * r["v_final"] / r["c_stock"],
    "13-speed": lambda r: r["km"] / (r["minutes"] / 60),
    "14-energy-label": lambda r: 100 * r["kwh_year"] / (0.777 * r["litres"] + 303),
    "15-exam-points": lambda r: max(0, 4 * r["right"] - r["wrong"] - 3 * r["hints"]),
    "16-rents": lambda r: r["Fläche"] * (RENTS[r["Stadtteil"]] + 0.85 * (r["saniert"] == "ja")) + 65 * r["Stellplätze"],
    "17-leasing": lambda r: (r["price"] - r["residual"]) / r["months"] + 0.00235 * r["price"] + 0.00235 * r["residual"],
    "19-chain-discount": lambda r: (
        r["list_price"] * (100 - r["trade_pct"]) * (100 - np.nan_to_num(r["cash_pct"])) / 10_000
    ),
    "20-units": lambda r: r["quantity"] * {"kg": 1, "g": 0.001, "lb": 0.4536, "cwt": 50.8}[r["unit"]],
    "22-cartons": lambda r: 3.85 * -(-r["quantity"] // r["per_carton"]) + 7.5,
    "23-mobile-phone": lambda r: 14.99 + 4 * max(0, ceil(r["gb"] - 5)) + 0.19 * r["minutes_abroad"],
    "24-dog-tax": lambda r: (144 * r["Hunde"] - 48) * (0.5 if r["ermäßigt"] == "ja" else 1) + 612 * r["gelistet"],
    "25-refuse-two-tariffs": lambda r: r["emptied"] * REFUSE[r["bin"]][day(r["billed"]) >= date(2024, 7, 1)],
    "26-bonus-on-target": lambda r: 250 + 0.03 * r["revenue"] if r["revenue"] >= r["target"] else 0,
    "27-commission-by-branch": lambda r: (
        {"Basel": 0.042, "Bern": 0.035, "Chur": 0.05, "Genf": 0.038}[r["branch"]] * r["sales"]
        + (0.015 * (r["sales"] - 50_000) if r["sales"] > 50_000 else 0)
    ),
    "28-declining-balance": lambda r: r["cost"] * ((100 - r["rate_pct"]) / 100) ** r["age"],
    "29-annual-leave": lambda r: min(30, 24 + floor(r["years"] / 3)) + (5 if r["disabled"] == "yes" else 0),
    "30-day-and-night-current": lambda r: 11.9 + 0.3147 * r["Tag"] + 0.2289 * r["Nacht"],
    "31-cash-discount": lambda r: r["gross"] * (0.98 if (day(r["paid_on"]) - day(r["invoiced"])).days <= 10 else 1),
    "32-vat-included": lambda r: r["Brutto"] - r["Brutto"] / {"A": 1.19, "B": 1.07, "F": 1}[r["Kennz."]],
    "33-child-support": lambda r: SUPPORT[sum(r["net_income"] > top for top in (2100, 2500, 2900))][
        level([6, 12, 18], r["age"])
    ],
    "34-body-surface": lambda r: sqrt(r["cm"] * r["kg"]) / 60,
    "35-growth": lambda r: 100 * r["y2023"] / r["y2022"] - 100,
    "36-best-of-two": lambda r: 0.4 * r["exam"] + 0.35 * r["project"] + 0.25 * max(r["quiz1"], r["quiz2"]),
    "37-card-statement": lambda r: r["amount"] * CARDS[r["currency"]] + (2.5 if r["currency"] != "EUR" else 0),
    "38-no-claims-class": lambda r: r["base"] * CLASSES[r["SF"][3:]] * (1.3 if r["age"] < 25 else 1),
    "39-gears": lambda r: 0.1263 * r["rpm"] * r["front"] / r["rear"],
    "40-signal-level": lambda r: 10 * log10(r["power_mw"]) - 0.35 * r["cable_m"],
}
"""The rules, row by row; two look at other rows or at heights that are drawn, and have tests of their own."""

ALONE = ("18-groundwater", "21-meter-readings")


def drawn(name: str, seed: int = 5) -> planted.Planted:
    return planted.plant(name, everyday_tables.TABLES[name], seed)


def rows_of(table: planted.Planted) -> list[dict[str, Any]]:
    columns = table.made.columns
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*(own.tolist() for own in columns.values()), strict=True)
    ]


def test_forty_tables_have_a_rule_written_out() -> None:
    assert len(everyday_tables.TABLES) == 40
    assert set(RULES) | set(ALONE) == set(everyday_tables.TABLES)


@pytest.mark.parametrize("name", RULES)
def test_the_rule_gives_the_right_labels_and_no_wrong_one(name: str) -> None:
    table = drawn(name)
    implied = np.array([RULES[name](row) for row in rows_of(table)], dtype=float)
    unit = 10.0**-table.made.places
    assert np.abs(implied - table.made.exact).max() <= 1e-6 * unit
    follows = np.abs(table.labels - implied) <= 0.5 * unit + 1e-6 * unit
    np.testing.assert_array_equal(follows[~table.wrong], True)
    assert follows[table.wrong].mean() < 0.01  # a tie, rounded the other way, is wrong and follows all the same


def test_levels_are_heights_of_wells_less_a_depth() -> None:
    table = drawn("18-groundwater")
    heights: dict[str, set[float]] = {}
    for row, right in zip(rows_of(table), table.clean.tolist(), strict=True):
        heights.setdefault(row["well"], set()).add(round(right + row["depth"], 2))
    assert len(heights) == 12
    assert all(len(own) == 1 for own in heights.values())


def test_what_was_used_is_the_reading_less_the_one_before_of_the_same_meter() -> None:
    table, before = drawn("21-meter-readings"), {}
    for row, right in zip(rows_of(table), table.clean.tolist(), strict=True):
        assert right == row["reading"] - before.get(row["meter"], 0)
        before[row["meter"]] = row["reading"]
    assert len(before) == 40


@pytest.mark.parametrize("name", everyday_tables.TABLES)
def test_size_share_of_wrong_values_and_ways_to_go_wrong_are_as_they_should(name: str) -> None:
    table, again, other = drawn(name), drawn(name), drawn(name, 6)
    np.testing.assert_array_equal(table.labels, again.labels)
    assert not np.array_equal(table.labels, other.labels)
    n, made = len(table.labels), table.made
    assert 200 <= n <= 5000
    assert 3 <= len(table.frame) <= 15
    assert {len(values) for values in table.frame.values()} == {n}
    assert 0.08 <= made.share <= 0.45
    assert abs(table.wrong.mean() - made.share) <= 4 * np.sqrt(made.share * (1 - made.share) / n)
    assert set(table.kinds[table.wrong]) == set(made.errors)
    assert len(made.errors) >= 4
    assert set(made.form.columns) < set(made.columns)  # and others that distract
    assert made.id is None or made.id in made.columns
    assert np.isfinite(table.labels).all()


def test_files_hold_the_tables(tmp_path: Path) -> None:
    layouts = {}
    for name in everyday_tables.TABLES:
        table = drawn(name)
        layouts.setdefault(table.made.layout, table)
    assert len(layouts) >= 10
    for table in layouts.values():
        read = read_table(table.write(tmp_path))
        assert list(read.column_names) == list(table.frame)
        assert read.n_rows - len(table.labels) in (0, 1)  # a line of totals


def test_an_author_would_know_his_own_numbers() -> None:
    for name in everyday_tables.TABLES:
        form = drawn(name).made.form
        numbers = [own.high if isinstance(own, planted.Cut) else own for own in form.numbers]
        text = "y = " + " + ".join(["x", *(f"{number:.10g}*x" for number in numbers)])
        assert forms.is_authors(form, text, form.columns), name
        assert not forms.is_authors(form, text + " + 3.21*x + 7.77*x + 5.43*x", form.columns), name
