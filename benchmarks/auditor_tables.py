"""Thirty-three tables as an auditor meets them: invoices, payrolls, tariffs, stock cards, exports.

They were described, not kept, by a reviewer who tried the program as a new user would; each is made anew here from its
description: the rule, the form of the file, the rows, the share of wrong values and what went wrong in them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import planted as p
from planted import Cut, Form, Generator, Made, Make

TABLES: dict[str, Make] = {}
"""The tables by name; each name begins with the number of the description."""


def _table(make: Make) -> Make:
    TABLES[make.__name__.strip("_").replace("_", "-")] = make
    return make


@_table
def _01_vat_by_country(rng: Generator) -> Made:
    n = 1800
    rates = {"DE": 0.19, "AT": 0.20, "NL": 0.21, "FR": 0.20, "IT": 0.22, "PL": 0.23}
    country, rate = p.pick(rng, rates, n)
    net = p.money(rng, 5, 4000, n)
    exact = net * (1 + rate)
    columns = {"Beleg": p.codes("RE", n), "Datum": p.iso(p.days(rng, n)), "Land": country, "Nettobetrag": net}
    errors = {
        "VAT forgotten": net,
        "German VAT": net * 1.19,
        "digits": p.swapped(rng, exact),
        "ten times": p.scaled(rng, exact, (10.0,)),
    }
    numbers = tuple(sorted(set(rates.values())))
    form = Form("Nettobetrag, Nettobetrag:Land", ("Nettobetrag", "Land"), numbers, (tuple(rates.values()),))
    return Made(columns, "Bruttobetrag", exact, form, 0.09, errors, id="Beleg", layout="titles")


@_table
def _02_payroll_overtime(rng: Generator) -> Made:
    n = 2600
    rate, hours = p.uniform(rng, 14, 48, n, 2), np.clip(np.round(rng.normal(39, 6, n) * 4) / 4, 8, 60)
    over = np.maximum(0, hours - 40)
    exact = rate * hours + 0.5 * rate * over
    columns = {
        "emp_no": p.codes("E", n),
        "week": rng.integers(1, 13, n),
        "dept": rng.choice(["sales", "plant", "office"], n),
        "hourly_rate": rate,
        "hours": hours,
    }
    errors = {
        "overtime not paid": np.where(over > 0, rate * np.minimum(hours, 40), exact + 50),
        "digits": p.one_digit(rng, exact),
        "another row": p.another_row(rng, exact),
    }
    form = Form(
        "hourly_rate*hours, hourly_rate*max(0, hours - 40)",
        ("hourly_rate", "hours"),
        (0.5, 40.0),
        ((1.5, 40.0), (40.0, 1.5, 40.0)),
    )
    return Made(columns, "gross", exact, form, 0.06, errors, id="emp_no", layout="dollars")


@_table
def _03_payroll_tax_brackets(rng: Generator) -> Made:
    n = 2600
    gross = np.round(np.clip(rng.gamma(7, 200, n), 280, 4200), 2)
    exact = 0.10 * gross + 0.12 * np.maximum(0, gross - 600) + 0.10 * np.maximum(0, gross - 1200)
    columns = {
        "emp_no": p.codes("E", n),
        "week": rng.integers(1, 53, n),
        "allowances": rng.integers(0, 5, n),
        "gross": gross,
        "hours": np.round(rng.uniform(20, 50, n) * 4) / 4,
    }
    errors = {
        "flat rate": 0.22 * gross,
        "top bracket forgotten": 0.10 * gross + 0.12 * np.maximum(0, gross - 600),
        "digits": p.swapped(rng, exact),
        "junk": p.junk(rng, exact),
    }
    numbers = (0.10, 0.12, 600.0, 0.10, 1200.0)
    others = (
        (0.10, 0.22, 0.32, 600.0, 1200.0),
        (0.10, 0.22, 0.32, 600.0, 600.0, 1200.0),
        (0.1, 0.22, 0.32, 600.0, 1200.0, 72.0, 192.0),
    )
    form = Form("gross, max(0, gross - 600), max(0, gross - 1200)", ("gross",), numbers, others)
    return Made(columns, "withheld", exact, form, 0.21, errors, id="emp_no")


@_table
def _04_freight_zones_tier(rng: Generator) -> Made:
    n = 3200
    base = {"A": 6.5, "B": 9.8, "C": 14.2, "D": 21.0}
    kg = {"A": 0.42, "B": 0.58, "C": 0.75, "D": 1.1}
    zone, fixed = p.pick(rng, base, n)
    per_kg = np.array([kg[name] for name in zone.tolist()])
    weight = np.round(rng.gamma(2.0, 11, n) + 0.2, 1)
    over = np.maximum(0, weight - 30)
    exact = fixed + per_kg * weight - 0.12 * over
    columns = {
        "consignment": p.codes("C", n),
        "zone": zone,
        "weight_kg": weight,
        "pieces": rng.integers(1, 9, n),
        "carrier": rng.choice(["DHL", "UPS", "GLS"], n),
    }
    errors = {
        "zone A": 6.5 + 0.42 * weight - 0.12 * over,
        "base forgotten": per_kg * weight,
        "digits": p.one_digit(rng, exact),
        "ten times": p.scaled(rng, exact),
    }
    numbers = (*base.values(), *kg.values(), 0.12, 30.0)
    form = Form("zone, weight_kg:zone, max(0, weight_kg - 30)", ("zone", "weight_kg"), numbers)
    return Made(columns, "freight", exact, form, 0.14, errors, id="consignment")


@_table
def _05_parcel_price_list(rng: Generator) -> Made:
    n = 2400
    zones = ("1", "2", "3")
    prices = np.array(
        [
            [3.99, 4.79, 5.99, 8.49, 13.49, 22.9],
            [8.99, 9.99, 13.99, 17.9, 26.5, 38.4],
            [15.9, 17.9, 23.9, 31.5, 44.9, 62.0],
        ]
    )
    # six classes: up to 1, 2, 5, 10, 31.5 kg and above
    limits = np.array([1, 2, 5, 10, 31.5])
    weight = np.round(np.clip(np.exp(rng.normal(1.3, 1.2, n)), 0.1, 44), 2)
    code = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    kind = np.searchsorted(limits, weight, side="left")
    exact = prices[code, kind]
    columns = {
        "parcel": p.codes("P", n),
        "zone": np.array([f"Z{name}" for name in zones])[code],
        "weight": weight,
        "insured": rng.choice(["yes", "no"], n),
        "length_cm": rng.integers(15, 120, n),
    }
    errors = {
        "price of the next class": prices[code, np.minimum(kind + 1, 5)],
        "price of zone 1": prices[0, kind],
        "digits": p.swapped(rng, exact),
    }
    cuts = tuple(Cut.of(weight, at) for at in limits.tolist())
    form = Form(
        "18 prices by zone and class of weight",
        ("zone", "weight"),
        (*prices.ravel().tolist(), *cuts),
        (
            (*prices.ravel().tolist(), *cuts, *cuts, *cuts),
            (*prices.ravel().tolist(), *cuts[:1], *(c for c in cuts[1:] for _ in range(2))),
        ),
    )
    return Made(columns, "price", exact, form, 0.13, errors, id="parcel")


def _loans(rng: Generator) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """Return 56 loans over 48 months: columns, interest, principal and closing balance."""
    rows: list[tuple[object, ...]] = []
    for loan in range(56):
        balance, rate, months = round(float(rng.uniform(4000, 250_000)), -2), round(float(rng.uniform(1.5, 9)), 2), 48
        instalment = round(balance * (rate / 1200) / (1 - (1 + rate / 1200) ** -float(rng.integers(60, 241))), 2)
        for month in range(1, months + 1):
            interest = float(p.rounded(np.array([balance * rate / 1200]), 2)[0])
            principal = round(instalment - interest, 2)
            rows.append((f"L{loan:03d}", month, balance, rate, instalment, interest, principal))
            balance = round(balance - principal, 2)
    loan_id, month, opening, rates, paid, interest, principal = (np.array(column) for column in zip(*rows, strict=True))
    columns = {
        "loan": loan_id,
        "month": month,
        "opening_balance": opening,
        "annual_rate_pct": rates,
        "instalment": paid,
    }
    return columns, interest, principal, np.round(opening - principal, 2)


@_table
def _06_loan_interest(rng: Generator) -> Made:
    columns, interest, _, _ = _loans(rng)
    opening, rate = columns["opening_balance"], columns["annual_rate_pct"]
    errors = {
        "365 of 360 days": interest * 365 / 360,
        "rate of another loan": opening * p.another_row(rng, rate) / 1200,
        "digits": p.swapped(rng, interest),
        "annual": opening * rate / 100,
    }
    form = Form("opening_balance*annual_rate_pct", ("opening_balance", "annual_rate_pct"), (1200.0,), ((1 / 12,),))
    return Made(columns, "interest", opening * rate / 1200, form, 0.13, errors, layout="tsv")


@_table
def _07_loan_closing(rng: Generator) -> Made:
    columns, interest, principal, closing = _loans(rng)
    opening = columns["opening_balance"]
    errors = {
        "interest forgotten": opening - columns["instalment"],
        "digits": p.one_digit(rng, closing),
        "not booked": opening,
    }
    columns = {**columns, "interest": interest, "principal": principal}
    form = Form("opening_balance, principal", ("opening_balance", "principal"))
    return Made(columns, "closing_balance", opening - principal, form, 0.08, errors, layout="tsv")


@_table
def _08_inventory_value(rng: Generator) -> Made:
    n = 900
    qty, cost = rng.integers(1, 400, n), p.money(rng, 0.4, 300, n)
    discount = rng.choice([0, 0.05, 0.1, 0.15, 0.2], n)
    exact = qty * cost * (1 - discount)
    columns = {
        "Item": p.codes("IT-", n),
        "Bin": rng.choice(["A1", "B2", "C3", "D4"], n),
        "Qty": qty,
        "Unit cost": cost,
        "Disc.": discount,
    }
    errors = {
        "discount forgotten": qty * cost,
        "quantity of another row": p.another_row(rng, qty) * cost * (1 - discount),
        "ten times": p.scaled(rng, exact),
        "digits": p.swapped(rng, exact),
    }
    form = Form("Qty*`Unit cost`, Qty*`Unit cost`*`Disc.`", ("Qty", "Unit cost", "Disc."))
    return Made(columns, "Value", exact, form, 0.18, errors, id="Item", layout="total")


@_table
def _09_stock_card(rng: Generator) -> Made:
    n = 1500
    sku = np.array([f"SKU-{k:02d}" for k in range(14)])[np.sort(rng.integers(14, size=n))]
    order = rng.permutation(n)
    sku = sku[order]
    goods_in = np.where(rng.random(n) < 0.35, rng.integers(20, 200, n), 0)
    goods_out = np.where(goods_in == 0, rng.integers(1, 60, n), 0)
    exact, opening = np.zeros(n), {}
    for k in range(n):
        name = str(sku[k])
        before = opening.get(name)
        if before is None:
            before = float(rng.integers(600, 2400))
        opening[name] = exact[k] = before + goods_in[k] - goods_out[k]
    columns = {
        "line": np.arange(1, n + 1),
        "date": p.iso(19_500 + np.arange(n) // 5),
        "sku": sku,
        "goods_in": goods_in,
        "goods_out": goods_out,
        "clerk": rng.choice(["ab", "cd", "ef"], n),
    }
    errors = {
        "movement forgotten": exact - goods_in + goods_out,
        "sign": exact - 2.0 * goods_in + 2.0 * goods_out,
        "digits": p.swapped(rng, exact, 0),
    }
    form = Form("cumsum(goods_in - goods_out, by=sku), sku", ("sku", "goods_in", "goods_out"), free_scale=True)
    return Made(columns, "stock", exact, form, 0.08, errors, places=0, id="line")


@_table
def _10_electricity(rng: Generator) -> Made:
    n = 4200
    kwh = np.round(rng.gamma(2.2, 160, n) + 5, 0)
    exact = 9.8 + 0.1582 * kwh + 0.0347 * np.maximum(0, kwh - 150) + 0.0521 * np.maximum(0, kwh - 400)
    columns = {
        "Compteur": p.codes("PDL", n),
        "Mois": rng.integers(1, 13, n),
        "Commune": rng.choice(["Lyon", "Nantes", "Brest"], n),
        "Consommation": kwh,
    }
    errors = {
        "abonnement forgotten": exact - 9.8,
        "old tariff": exact * 0.9,
        "VAT": exact * 1.2,
        "ten times": p.scaled(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    tiers = (0.1582, 0.1929, 0.245)
    others = (
        (9.8, *tiers, 150.0, 400.0),
        (9.8, *tiers, 150.0, 150.0, 400.0),
        (*tiers, 9.8, 4.595, -16.245, 150.0, 400.0),
    )
    form = Form(
        "Consommation, max(0, Consommation - 150), max(0, Consommation - 400)",
        ("Consommation",),
        (9.8, 0.1582, 0.0347, 150.0, 0.0521, 400.0),
        others,
    )
    return Made(columns, "Montant", exact, form, 0.40, errors, id="Compteur", layout="euros")


@_table
def _11_hotel(rng: Generator) -> Made:
    n = 1500
    arrival, nights = p.days(rng, n), rng.integers(1, 15, n)
    rate, guests = np.round(rng.choice([79, 95, 110, 129.5, 145, 180], n), 2), rng.integers(1, 5, n)
    exact = nights * rate + 2.5 * nights * guests
    columns = {
        "Booking": p.codes("B", n),
        "Check-in": p.day_month(arrival),
        "Check-out": p.day_month(arrival + nights),
        "Rate": rate,
        "Guests": guests,
        "Channel": rng.choice(["web", "agency", "phone"], n),
    }
    errors = {
        "city tax forgotten": nights * rate,
        "a night too many": (nights + 1) * (rate + 2.5 * guests),
        "digits": p.swapped(rng, exact),
        "tax once": nights * rate + 2.5 * guests,
    }
    form = Form(
        "(`Check-out` - `Check-in`)*Rate, (`Check-out` - `Check-in`)*Guests",
        ("Check-in", "Check-out", "Rate", "Guests"),
        (2.5,),
    )
    return Made(columns, "Total", exact, form, 0.15, errors, id="Booking")


@_table
def _12_insurance_factors(rng: Generator) -> Made:
    n = 6000
    ages = {"18-25": 1.85, "26-34": 1.2, "35-49": 1.0, "50-64": 0.95, "65+": 1.3}
    regions = {"urban": 1.25, "suburban": 1.0, "rural": 0.85, "coastal": 1.4}
    age, by_age = p.pick(rng, ages, n)
    region, by_region = p.pick(rng, regions, n)
    insured = np.round(rng.uniform(20, 900, n), 0) * 1000
    no_claims = rng.choice([0, 0.1, 0.2, 0.3, 0.4], n)
    exact = 0.018 * insured * by_age * by_region * (1 - no_claims)
    columns = {
        "policy": p.codes("PO", n),
        "age_band": age,
        "region": region,
        "sum_insured": insured,
        "ncd": no_claims,
        "agent": rng.integers(1, 40, n),
    }
    errors = {
        "ncd forgotten": 0.018 * insured * by_age * by_region,
        "region forgotten": 0.018 * insured * by_age * (1 - no_claims) * 1.1,
        "old base rate": exact * 0.017 / 0.018,
        "digits": p.one_digit(rng, exact),
    }
    form = Form(
        "sum_insured * (1 - ncd) * factor[age_band] * factor[region]",
        ("age_band", "region", "sum_insured", "ncd"),
        (0.018, 1.85, 1.2, 0.95, 1.3, 1.25, 0.85, 1.4),
        free_scale=True,
    )
    return Made(columns, "premium", exact, form, 0.17, errors, id="policy", layout="parquet")


@_table
def _13_commission_floor_cap(rng: Generator) -> Made:
    n = 1400
    sales = p.money(rng, 4000, 260_000, n)
    exact = np.clip(0.035 * sales, 400, 4000)
    columns = {
        "deal": p.codes("D", n),
        "rep": rng.choice(["Kim", "Ana", "Bo", "Lee", "Max"], n),
        "quarter": rng.integers(1, 5, n),
        "sales": sales,
        "margin_pct": p.uniform(rng, 5, 40, n),
    }
    errors = {
        "neither floor nor cap": 0.035 * sales,
        "old rate": np.clip(0.03 * sales, 400, 4000),
        "digits": p.swapped(rng, exact),
        "junk": p.junk(rng, exact),
    }
    form = Form("min(4000, max(400, 0.035 * sales))", ("sales",), (0.035, 400.0, 4000.0))
    return Made(columns, "commission", exact, form, 0.07, errors, id="deal")


_FX = {
    "USD": (0.9208, 0.9251, 0.9193, 0.9318, 0.9256, 0.9284),
    "GBP": (1.1638, 1.1702, 1.1685, 1.1661, 1.1739, 1.1824),
    "CHF": (1.0671, 1.0588, 1.0357, 1.0242, 1.0185, 1.0391),
}


def _exchange(rng: Generator, n: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    day = p.days(rng, n, "2024-01-01", 181)
    month = (day.astype("datetime64[D]").astype("datetime64[M]").astype(int) % 12).astype(int)
    code = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    rate = np.array(list(_FX.values()))[code, month]
    columns = {
        "doc": p.codes("X", n),
        "date": p.iso(day),
        "currency": np.array(list(_FX))[code],
        "amount": p.money(rng, 20, 20_000, n),
        "cost_centre": rng.integers(100, 120, n),
    }
    return columns, rate, month


@_table
def _14_fx_hidden_rates(rng: Generator) -> Made:
    columns, rate, month = _exchange(rng, 3600)
    amount = columns["amount"]
    exact = amount * rate
    before = np.array(
        [_FX[name][max(m - 1, 0)] for name, m in zip(columns["currency"].tolist(), month.tolist(), strict=True)]
    )
    errors = {
        "rate of the month before": amount * before,
        "not converted": amount,
        "divided": amount / rate,
        "digits": p.swapped(rng, exact),
    }
    numbers = tuple(value for rates in _FX.values() for value in rates)
    form = Form("amount * rate[currency, month of date]", ("date", "currency", "amount"), numbers)
    return Made(columns, "amount_eur", exact, form, 0.11, errors, id="doc")


@_table
def _15_fx_rate_column(rng: Generator) -> Made:
    columns, rate, _ = _exchange(rng, 3600)
    amount = columns["amount"]
    exact = amount * rate
    errors = {"not converted": amount, "divided": amount / rate, "digits": p.swapped(rng, exact)}
    form = Form("amount*rate", ("amount", "rate"))
    return Made({**columns, "rate": rate}, "amount_eur", exact, form, 0.11, errors, id="doc")


@_table
def _16_telecom_allowance(rng: Generator) -> Made:
    n = 5000
    fees, minutes_in = {"S": 9.99, "M": 19.99, "L": 34.99}, {"S": 100, "M": 300, "L": 1000}
    plan, fee = p.pick(rng, fees, n)
    included = np.array([minutes_in[name] for name in plan.tolist()])
    minutes, sms = np.rint(rng.gamma(2, 170, n)).astype(int), rng.integers(0, 120, n)
    over = np.maximum(0, minutes - included)
    exact = fee + 0.09 * over + 0.05 * sms
    columns = {
        "account": np.arange(700_000, 700_000 + n),
        "plan": plan,
        "incl_min": included,
        "minutes": minutes,
        "sms": sms,
        "roaming_mb": rng.integers(0, 900, n),
    }
    errors = {
        "allowance forgotten": fee + 0.09 * minutes + 0.05 * sms,
        "sms forgotten": fee + 0.09 * over,
        "another row": p.another_row(rng, exact),
        "digits": p.one_digit(rng, exact),
    }
    form = Form(
        "plan, max(0, minutes - incl_min), sms",
        ("plan", "incl_min", "minutes", "sms"),
        (9.99, 19.99, 34.99, 0.09, 0.05),
    )
    return Made(columns, "bill", exact, form, 0.30, errors, id="account", layout="jsonl")


@_table
def _17_depreciation(rng: Generator) -> Made:
    n = 420
    cost = np.round(p.money(rng, 800, 90_000, n), -1)
    salvage = np.round(cost * rng.choice([0, 0.05, 0.1, 0.15], n), 0)
    life = rng.choice([3, 4, 5, 6, 8, 10, 13, 15, 20], n)
    exact = (cost - salvage) / life
    columns = {
        "Asset": p.codes("AN", n),
        "Class": rng.choice(["car", "IT", "machine", "furniture"], n),
        "Cost": cost,
        "Salvage": salvage,
        "Useful life": life,
    }
    errors = {
        "salvage forgotten": np.where(salvage > 0, cost / life, cost / (life + 1)),
        "life of another asset": (cost - salvage) / p.another_row(rng, life),
        "digits": p.swapped(rng, exact),
        "monthly": exact / 12,
    }
    form = Form("Cost/`Useful life`, Salvage/`Useful life`", ("Cost", "Salvage", "Useful life"))
    return Made(columns, "Depreciation", exact, form, 0.14, errors, id="Asset")


@_table
def _18_sensor_celsius(rng: Generator) -> Made:
    n = 20_000
    adc = rng.integers(180, 1100, n)
    exact = 0.18 * adc - 4
    columns = {
        "tick": np.arange(n),
        "adc": adc,
        "battery_mv": rng.integers(2900, 4200, n),
        "node": rng.integers(1, 25, n),
    }
    errors = {
        "Celsius": 0.1 * adc - 20,
        "Celsius, second node": 0.1 * adc - 20,
        "Celsius, third node": 0.1 * adc - 20,
        "dropped bits": 0.18 * (adc & 0x3F0) - 4.5,
    }
    form = Form("adc", ("adc",), (0.18, 4.0))
    return Made(columns, "temp_f", exact, form, 0.38, errors, places=2, id="tick", layout="parquet")


@_table
def _19_cloud_costs(rng: Generator) -> Made:
    n = 64
    columns = {
        "day": p.iso(19_700 + np.arange(n)),
        "vcpu_h": rng.integers(100, 2000, n),
        "gb_h": rng.integers(200, 9000, n),
        "storage_gb": rng.integers(500, 4000, n),
        "egress_gb": rng.integers(0, 800, n),
    }
    parts = [
        0.042 * columns["vcpu_h"],
        0.0055 * columns["gb_h"],
        0.023 * columns["storage_gb"],
        0.09 * columns["egress_gb"],
    ]
    exact = np.sum(parts, axis=0)
    errors = {
        "egress forgotten": exact - parts[3],
        "junk": p.junk(rng, exact),
        "digits": p.one_digit(rng, exact),
        "another row": p.another_row(rng, exact),
    }
    form = Form(
        "vcpu_h, gb_h, storage_gb, egress_gb",
        ("vcpu_h", "gb_h", "storage_gb", "egress_gb"),
        (0.042, 0.0055, 0.023, 0.09),
    )
    return Made(columns, "cost", exact, form, 0.48, errors)


@_table
def _20_grades_blank_bonus(rng: Generator) -> Made:
    n = 310
    homework, midterm, final = rng.integers(30, 101, n), rng.integers(20, 101, n), rng.integers(20, 101, n)
    bonus = rng.choice([np.nan, 2.0, 5.0], n, p=[0.7, 0.18, 0.12])
    exact = 0.25 * homework + 0.3 * midterm + 0.45 * final + np.nan_to_num(bonus)
    columns = {
        "student": p.codes("S", n),
        "section": rng.choice(["A", "B"], n),
        "homework": homework,
        "midterm": midterm,
        "final": final,
        "bonus": bonus,
    }
    errors = {
        "bonus forgotten": np.where(np.nan_to_num(bonus) > 0, exact - np.nan_to_num(bonus), exact + 10),
        "equal weights": (homework + midterm + final) / 3,
        "digits": p.swapped(rng, exact, 0),
    }
    form = Form(
        "homework, midterm, final, bonus with blank = 0", ("homework", "midterm", "final", "bonus"), (0.25, 0.3, 0.45)
    )
    return Made(columns, "grade", exact, form, 0.09, errors, places=0, id="student")


@_table
def _21_bmi(rng: Generator) -> Made:
    n = 2500
    cm, kg = np.round(rng.normal(170, 10, n), 0), np.round(np.clip(rng.normal(76, 15, n), 38, 160), 1)
    exact = 1e4 * kg / cm**2
    columns = {
        "patient": p.codes("PT", n),
        "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(18, 90, n),
        "height_cm": cm,
        "weight_kg": kg,
    }
    errors = {
        "pounds": exact * 2.2046,
        "pounds, rounded first": p.rounded(exact * 2.2046, 1),
        "digits": p.swapped(rng, exact, 1),
        "ten times": p.scaled(rng, exact),
    }
    form = Form("weight_kg/height_cm^2", ("height_cm", "weight_kg"), (10_000.0,))
    return Made(columns, "bmi", exact, form, 0.28, errors, places=1, id="patient")


@_table
def _22_pension_ceiling(rng: Generator) -> Made:
    n = 2200
    salary = np.round(np.clip(rng.gamma(6, 900, n), 1500, 16_000), 2)
    exact = 0.093 * np.minimum(salary, 7550)
    columns = {
        "Personalnr": np.arange(4000, 4000 + n),
        "Steuerklasse": rng.integers(1, 7, n),
        "Kinder": rng.integers(0, 4, n),
        "Bruttolohn": salary,
    }
    errors = {
        "old rate": exact * 0.0995 / 0.093,
        "ceiling forgotten": np.where(salary > 7550, 0.093 * salary, exact / 2),
        "digits": p.swapped(rng, exact),
    }
    form = Form("min(Bruttolohn, 7550)", ("Bruttolohn",), (0.093, 7550.0), ((0.093, 702.15), (0.093, 0.093, 7550.0)))
    return Made(columns, "Rentenbeitrag", exact, form, 0.04, errors, id="Personalnr", layout="decimal comma")


@_table
def _23_care_levy(rng: Generator) -> Made:
    n = 2200
    salary = np.round(np.clip(rng.gamma(6, 800, n), 1500, 14_000), 2)
    kids = rng.choice(["ja", "nein"], n, p=[0.6, 0.4])
    rate = np.where(kids == "ja", 0.017, 0.023)
    exact = rate * np.minimum(salary, 5175)
    columns = {
        "Personalnr": np.arange(4000, 4000 + n),
        "Kinder": kids,
        "Abteilung": rng.choice(["EK", "VK", "FI"], n),
        "Bruttolohn": salary,
    }
    errors = {
        "the other rate": exact / rate * (0.04 - rate),
        "ceiling forgotten": np.where(salary > 5175, rate * salary, exact / 2),
        "digits": p.one_digit(rng, exact),
    }
    form = Form(
        "min(Bruttolohn, 5175):Kinder",
        ("Bruttolohn", "Kinder"),
        (0.017, 0.023, 5175.0),
        ((0.017, 0.023, 5175.0, 5175.0),),
    )
    return Made(columns, "Pflegebeitrag", exact, form, 0.07, errors, id="Personalnr", layout="decimal comma")


@_table
def _24_travel_free_km(rng: Generator) -> Made:
    n = 1600
    diem = {"AT": 40.0, "CH": 64.0, "DE": 28.0, "FR": 53.0}
    country, daily = p.pick(rng, diem, n)
    km, days = np.round(rng.gamma(1.6, 160, n), 0), rng.integers(1, 9, n)
    driven = 0.38 * np.maximum(0, km - 30)
    exact = driven + daily * days
    columns = {
        "claim": p.codes("TC", n),
        "country": country,
        "km": km,
        "days": days,
        "project": rng.integers(10, 30, n),
    }
    errors = {
        "30 km not free": 0.38 * km + daily * days,
        "German per diem": driven + 28 * days,
        "km forgotten": daily * days,
        "digits": p.swapped(rng, exact),
    }
    form = Form("max(0, km - 30), days:country", ("country", "km", "days"), (0.38, 30.0, *diem.values()))
    return Made(columns, "refund", exact, form, 0.21, errors, id="claim")


@_table
def _25_vat_truncated(rng: Generator) -> Made:
    n = 1500
    net = p.money(rng, 1, 900, n)
    exact = 1.07 * net
    columns = {"bon": p.codes("K", n), "till": rng.integers(1, 6, n), "net": net}
    errors = {"19 %": 1.19 * net, "VAT forgotten": net, "digits": p.swapped(rng, exact)}
    form = Form("floor(1.07 * net) to 0.01", ("net",), (1.07,), ((1.07, 0.01), (107.0,), (107.0, 0.01)))
    return Made(columns, "gross", exact, form, 0.11, errors, rounding="down", id="bon")


@_table
def _26_swiss_rounding(rng: Generator) -> Made:
    n = 1500
    net = p.money(rng, 2, 900, n)
    exact = np.floor(1.081 * net / 0.05 + 0.5 + 1e-9) * 0.05
    columns = {"bon": p.codes("Q", n), "till": rng.integers(1, 6, n), "net": net}
    errors = {
        "old rate": np.floor(1.077 * net / 0.05 + 0.5) * 0.05,
        "VAT forgotten": net,
        "digits": p.swapped(rng, exact),
    }
    form = Form("round(1.081 * net, to=0.05)", ("net",), (1.081, 0.05), ((1.081,),))
    return Made(columns, "gross", exact, form, 0.15, errors, id="bon")


@_table
def _27_parking_started_hour(rng: Generator) -> Made:
    n = 2500
    minutes = rng.integers(3, 720, n)
    ev = rng.choice(["yes", "no"], n, p=[0.3, 0.7])
    exact = 3.5 * np.ceil(minutes / 60) + 2.0 * (ev == "yes")
    columns = {"ticket": p.codes("T", n), "deck": rng.integers(1, 5, n), "minutes": minutes, "ev": ev}
    errors = {
        "full hours": 3.5 * np.floor(minutes / 60) + 2.0 * (ev == "yes"),
        "by the minute": 3.5 * minutes / 60,
        "digits": p.one_digit(rng, exact),
    }
    form = Form("ceil(minutes/60), ev", ("minutes", "ev"), (3.5, 60.0, 2.0), ((3.5, 60.0, 2.0, 2.0),))
    return Made(columns, "charge", exact, form, 0.12, errors, id="ticket")


@_table
def _28_compound_interest(rng: Generator) -> Made:
    n = 1200
    principal, rate, years = (
        np.round(p.money(rng, 500, 80_000, n), -2),
        rng.choice([0.75, 1.0, 1.25, 1.5, 2.0, 2.25, 3.0, 3.5], n),
        rng.integers(1, 16, n),
    )
    exact = principal * (1 + rate / 100) ** years
    columns = {
        "deposit": p.codes("DP", n),
        "branch": rng.integers(1, 12, n),
        "principal": principal,
        "rate_pct": rate,
        "years": years,
    }
    errors = {
        "simple interest": principal * (1 + rate / 100 * years),
        "a year too few": principal * (1 + rate / 100) ** (years - 1),
        "digits": p.swapped(rng, exact),
    }
    form = Form("principal*(1 + rate_pct/100)^years", ("principal", "rate_pct", "years"))
    return Made(columns, "value_at_end", exact, form, 0.10, errors, id="deposit")


@_table
def _29_margin_percent(rng: Generator) -> Made:
    n = 800
    revenue = p.money(rng, 200, 90_000, n)
    cost = np.round(revenue * rng.uniform(0.45, 0.97, n), 2)
    exact = 100 * (revenue - cost) / revenue
    columns = {
        "product": p.codes("PR", n),
        "line": rng.choice(["home", "garden", "toys"], n),
        "revenue": revenue,
        "cost": cost,
    }
    errors = {
        "on cost": 100 * (revenue - cost) / cost,
        "digits": p.one_digit(rng, exact, 1),
        "ten times": p.scaled(rng, exact, (0.1,)),
    }
    form = Form("cost/revenue", ("revenue", "cost"))
    return Made(columns, "margin", exact, form, 0.13, errors, places=1, id="product", layout="percent")


@_table
def _30_late_interest(rng: Generator) -> Made:
    n = 1800
    due = p.days(rng, n)
    late = rng.integers(1, 200, n)
    amount, rate = p.money(rng, 50, 30_000, n), rng.choice([5.0, 8.12, 9.0, 9.12], n)
    exact = amount * rate * late / 36_500
    columns = {
        "invoice": p.codes("I", n),
        "due": p.iso(due),
        "paid": p.iso(due + late),
        "amount": amount,
        "rate_pct": rate,
    }
    errors = {
        "360 days": amount * rate * late / 36_000,
        "a month": amount * rate / 1200,
        "digits": p.swapped(rng, exact),
        "ten times": p.scaled(rng, exact),
    }
    form = Form("amount*rate_pct*(paid - due)", ("due", "paid", "amount", "rate_pct"), (36_500.0,), ((365.0,),))
    return Made(columns, "late_interest", exact, form, 0.18, errors, id="invoice")


@_table
def _31_trades_weekend(rng: Generator) -> Made:
    n = 2000
    rates = {"electrician": 62.0, "painter": 44.0, "plumber": 58.0}
    trade, rate = p.pick(rng, rates, n)
    day = p.days(rng, n)
    weekend = (day + 3) % 7 >= 5
    hours = rng.integers(2, 36, n) / 4
    exact = rate * hours + 35 * weekend + 18
    columns = {
        "job": p.codes("J", n),
        "date": p.day_month(day),
        "trade": trade,
        "hours": hours,
        "van": rng.integers(1, 9, n),
    }
    errors = {
        "call-out forgotten": rate * hours + 35 * weekend,
        "rate of the painter": 44 * hours + 35 * weekend + 18,
        "digits": p.swapped(rng, exact),
        "ten times": p.scaled(rng, exact),
    }
    form = Form(
        "hours:trade, (weekday(date) >= 6)",
        ("date", "trade", "hours"),
        (*rates.values(), 35.0, 18.0),
        ((*rates.values(), 35.0, 18.0, 6.0), (*rates.values(), 35.0, 18.0, 5.0)),
    )
    return Made(columns, "amount", exact, form, 0.14, errors, id="job")


@_table
def _32_branch_on_old_tariff(rng: Generator) -> Made:
    n = 2400
    branch = rng.choice(["Bern", "Chur", "Genf", "Zug"], n, p=[0.26, 0.27, 0.25, 0.22])
    kg = p.uniform(rng, 0.5, 80, n)
    exact = 4.2 + 0.85 * kg
    columns = {"shipment": p.codes("SH", n), "branch": branch, "kg": kg, "pieces": rng.integers(1, 6, n)}
    errors = {"digits": p.swapped(rng, exact), "junk": p.junk(rng, exact), "base forgotten": 0.85 * kg}
    form = Form("kg", ("kg",), (4.2, 0.85), ((4.2, 0.85, 3.9, 0.79),))
    return Made(
        columns,
        "charge",
        exact,
        form,
        0.03,
        errors,
        id="shipment",
        given=np.where(branch == "Bern", 3.9 + 0.79 * kg, np.nan),
    )


def wide(rng: Generator, n: int = 5000) -> Made:
    """Draw an export of 52 columns, four of which make the target."""
    qty, price = rng.integers(1, 200, n), p.money(rng, 1, 900, n)
    discount, freight = rng.choice([0, 2, 3, 5, 10], n), np.round(rng.choice([0, 4.9, 9.9, 19.5, 35], n), 2)
    exact = qty * price * (1 - discount / 100) + freight
    columns = {
        "VBELN": np.arange(80_000_000, 80_000_000 + n),
        "MENGE": qty,
        "NETPR": price,
        "RABATT_PCT": discount,
        "FRACHT": freight,
    }
    drawn: Mapping[str, object] = {}
    for k in range(46):
        kind = k % 5
        name = f"ZZ{('FLD', 'KNZ', 'DAT', 'BTR', 'MGE')[kind]}{k:02d}"
        drawn = {
            0: lambda: rng.integers(0, 1000, n),
            1: lambda: rng.choice(["A", "B", "C", "X"], n),
            2: lambda: p.iso(p.days(rng, n)),
            3: lambda: p.money(rng, 1, 9000, n),
            4: lambda: p.uniform(rng, 0, 50, n, 3),
        }
        columns[name] = drawn[kind]()  # type: ignore[index,operator]
    names = list(columns)
    order = [names[0], *(names[1 + j] for j in rng.permutation(len(names) - 1))]
    columns = {name: columns[name] for name in order}
    errors = {
        "discount forgotten": qty * price + freight,
        "freight forgotten": exact - freight,
        "digits": p.swapped(rng, exact),
        "ten times": p.scaled(rng, exact),
    }
    form = Form("MENGE*NETPR, MENGE*NETPR*RABATT_PCT, FRACHT", ("MENGE", "NETPR", "RABATT_PCT", "FRACHT"))
    return Made(columns, "BETRAG", exact, form, 0.09, errors, id="VBELN")


@_table
def _33_wide_export(rng: Generator) -> Made:
    return wide(rng)
