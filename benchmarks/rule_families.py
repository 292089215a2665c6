"""Tables that follow the rules which ledgers, tariffs and logs have, with wrong values in the target column.

A family draws a `Ledger`: columns as a CSV file has them (texts, numbers, ISO dates), the value of the rule on each
row, the places that the target is rounded to, and what the rule gives where one term is forgotten. Rates, thresholds,
levels and shares are drawn anew each time, and some columns have nothing to do with the rule. `table` rounds the values
and makes each of them wrong with the same probability, independently, in one of the `WAYS` or in a mixture of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Integers = NDArray[np.int64]
Generator = np.random.Generator

RATES = (0.0, 0.1, 0.25, 0.4)
"""Probabilities with which a value is wrong."""

FEWEST, MOST = 300, 3_000
"""Rows of a table, unless said."""

TIE = 1e-9
"""A value so close to the middle of two roundings, as a share of itself, may be rounded either way."""


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """Columns, and a target that follows a rule of some of them.

    Attributes
    ----------
    columns : mapping of str to array
        All but the target.
    target : str
    exact : (n,) array
        What the rule gives; for dates, in days since 1970. Without a rule, the target itself.
    places : int
        After the decimal point, to which the target is rounded.
    forgotten : tuple of (n,) arrays
        What the rule gives where one term or factor is forgotten.
    truth : str
        The rule in words; empty where there is none.
    is_date : bool
        Whether the target is a date.
    """

    columns: Mapping[str, NDArray[Any]]
    target: str
    exact: FloatArray
    places: int = 2
    forgotten: tuple[FloatArray, ...] = ()
    truth: str = ""
    is_date: bool = False

    @property
    def units(self) -> Integers:
        """The right target, rounded half up, in units of its last place."""
        return _in_units(self.exact, self.places)

    @property
    def clean(self) -> FloatArray:
        """The right target."""
        return self.units / 10**self.places

    @property
    def is_tied(self) -> BoolArray:
        """Rows whose value lies in the middle of two roundings."""
        scaled = self.exact * 10**self.places
        slack = TIE * np.maximum(1, np.abs(scaled))
        return np.asarray(np.abs(scaled - np.floor(scaled) - 0.5) <= slack, dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A ledger as somebody wrote it down.

    Attributes
    ----------
    ledger : Ledger
    labels : (n,) array
        The target as given; for dates, in days since 1970.
    way : str
        How wrong values came about.
    """

    ledger: Ledger
    labels: FloatArray
    way: str

    @property
    def wrong(self) -> BoolArray:
        """Rows whose target is not the right one."""
        return np.asarray(np.rint(self.labels * 10**self.ledger.places) != self.ledger.units, dtype=np.bool_)

    @property
    def frame(self) -> dict[str, NDArray[Any]]:
        """The columns, the target last."""
        target = _iso(self.labels) if self.ledger.is_date else self.labels
        return {**self.ledger.columns, self.ledger.target: target}


Make = Callable[[Generator, int], Ledger]


def table(family: str, rate: float, seed: int, rows: int | None = None) -> Table:
    """Return a table of a family; the same seed gives the same ledger at every rate.

    Seven seeds in a row meet all ways of going wrong.
    """
    name = zlib.crc32(family.encode())
    rng = np.random.default_rng([seed, name])
    n = round(float(np.exp(rng.uniform(np.log(FEWEST), np.log(MOST))))) if rows is None else rows
    ledger = (RULES | NO_RULES)[family](rng, n)
    way = (*WAYS, "mixture")[(seed + name) % (len(WAYS) + 1)] if rate > 0 and ledger.truth else "none"
    return Table(ledger, spoiled(np.random.default_rng([seed, name, round(1_000 * rate)]), ledger, rate, way), way)


# Wrong values. Each way takes the right values in units of the last place, and returns a wrong one for every row.


def spoiled(rng: Generator, ledger: Ledger, rate: float, way: str) -> FloatArray:
    """Return the target with each value wrong with probability `rate`, independently, in the given way."""
    right = ledger.units
    if way == "none":
        return ledger.clean
    if way == "mixture":
        every = np.stack([make(rng, ledger) for make in WAYS.values()])
        found = every[rng.integers(len(every), size=len(right)), np.arange(len(right))]
    else:
        found = WAYS[way](rng, ledger)
    found = np.where(found == right, _shifted(rng, ledger), found)  # ten times 0 is not wrong
    return np.where(rng.random(len(right)) < rate, found, right) / 10**ledger.places


def _scaled(rng: Generator, ledger: Ledger) -> Integers:
    """Return values that are 10 or 100 times too large or too small; for dates, what is added to them."""
    if ledger.is_date:
        start = ledger.forgotten[0].astype(np.int64)
        return start + rng.choice([10, 100], len(start)) * (ledger.units - start)
    return _in_units(ledger.clean * rng.choice([0.01, 0.1, 10, 100], len(ledger.exact)), ledger.places)


def _shifted(rng: Generator, ledger: Ledger) -> Integers:
    """Return values that are off by the same amount in every row."""
    typical = 30.0 if ledger.is_date else float(np.median(np.abs(ledger.clean)))
    amount = _short(rng.uniform(0.05, 0.6) * typical, 2)
    return ledger.units + int(rng.choice([-1, 1])) * max(int(_in_units(np.array(amount), ledger.places)), 2)


def _of_another_row(rng: Generator, ledger: Ledger) -> Integers:
    """Return values of other rows, each drawn from all of them."""
    return ledger.units[rng.integers(len(ledger.exact), size=len(ledger.exact))]


def _forgetful(rng: Generator, ledger: Ledger) -> Integers:
    """Return values in which the same term is forgotten in every row."""
    return _in_units(ledger.forgotten[rng.integers(len(ledger.forgotten))], ledger.places)


def _mistyped(rng: Generator, ledger: Ledger) -> Integers:
    """Return values in which two digits beside each other are swapped, or one digit is another one."""
    if ledger.is_date:
        return np.array([_mistyped_date(rng, day) for day in ledger.units.tolist()], dtype=np.int64)
    return np.array([_mistyped_number(rng, value) for value in ledger.units.tolist()], dtype=np.int64)


def _mistyped_number(rng: Generator, value: int) -> int:
    digits = list(str(abs(value)))
    place = int(rng.integers(len(digits)))
    if rng.random() < 0.5 and place and digits[place] != digits[place - 1]:
        digits[place - 1], digits[place] = digits[place], digits[place - 1]
    else:
        digits[place] = str((int(digits[place]) + int(rng.integers(1, 10))) % 10)
    return (-1 if value < 0 else 1) * int("".join(digits))


def _mistyped_date(rng: Generator, day: int) -> int:
    text = str(np.datetime64(day, "D"))
    while True:
        place = int(rng.choice([3, 5, 6, 8, 9]))
        typed = f"{text[:place]}{rng.integers(10)}{text[place + 1 :]}"
        try:
            found = int(np.datetime64(typed, "D").astype(np.int64))
        except ValueError:  # there is no such day
            continue
        if found != day:
            return found


def _taxed(rng: Generator, ledger: Ledger) -> Integers:
    """Return values with VAT on top or without it, at the same rate in every row; for dates, a year off."""
    if ledger.is_date:
        return ledger.units + int(rng.choice([-365, 365]))
    factor = 1 + float(rng.choice([0.05, 0.07, 0.1, 0.19, 0.2, 0.25]))
    return _in_units(ledger.clean * (factor if rng.random() < 0.7 else 1 / factor), ledger.places)


WAYS: Mapping[str, Callable[[Generator, Ledger], Integers]] = {
    "factor": _scaled,
    "constant": _shifted,
    "another row": _of_another_row,
    "forgotten": _forgetful,
    "digits": _mistyped,
    "vat": _taxed,
}


# Columns.


def _money(rng: Generator, low: float, high: float, n: int, places: int = 2) -> FloatArray:
    """Return amounts, as many below the geometric mean as above."""
    return np.round(np.exp(rng.uniform(np.log(low), np.log(high), n)), places)


def _short(value: float, digits: int) -> float:
    """Return a number with so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


def _rate(rng: Generator, low: float, high: float, digits: int = 3) -> float:
    return _short(float(rng.uniform(low, high)), digits)


def _days(rng: Generator, n: int, years: float = 2) -> Integers:
    start = int(rng.integers(16_000, 19_500))  # from 2013 to 2023
    return start + rng.integers(round(365 * years), size=n)


def _iso(days: NDArray[Any]) -> NDArray[Any]:
    """Return dates as a file has them, 2024-02-29."""
    return np.datetime_as_string(days.astype(np.int64).astype("datetime64[D]"))


def _levels(rng: Generator, names: Sequence[str] | Sequence[int], n: int) -> tuple[Integers, NDArray[Any]]:
    """Return the level of each row, by number and by name; none is rare."""
    share = rng.dirichlet(np.full(len(names), 20.0))
    code = rng.choice(len(names), n, p=share)
    return code, np.array(names)[code]


def _distinct(rng: Generator, k: int, low: float, high: float, digits: int = 3) -> FloatArray:
    """Return k rates that are at least a twentieth of the range apart, in any order."""
    while True:
        found = np.array([_rate(rng, low, high, digits) for _ in range(k)])
        if k == 1 or np.diff(np.sort(found)).min() > (high - low) / 20 / max(k / 6, 1):
            return found


def _in_units(values: FloatArray, places: int) -> Integers:
    """Round half up, also where a float is a hair below the half."""
    scaled = values * 10**places
    return np.floor(scaled + 0.5 + TIE * np.maximum(1, np.abs(scaled))).astype(np.int64)


def _distractors(rng: Generator, n: int, k: int | None = None) -> dict[str, NDArray[Any]]:
    """Return some columns that no rule uses: three to five, or k."""
    pool: dict[str, Callable[[], NDArray[Any]]] = {
        "record": lambda: np.arange(1, n + 1) + int(rng.integers(100_000)),
        "reference": lambda: np.array([f"R-{number:06d}" for number in rng.permutation(n)]),
        "region": lambda: _levels(rng, ["North", "East", "South", "West"], n)[1],
        "clerk": lambda: rng.integers(1, 40, n),
        "entered": lambda: _iso(_days(rng, n)),
        "rating": lambda: rng.integers(1, 6, n),
        "temperature": lambda: np.round(rng.normal(14, 8, n), 1),
        "age": lambda: rng.integers(18, 90, n),
        "channel": lambda: _levels(rng, ["web", "phone", "shop"], n)[1],
        "list_value": lambda: _money(rng, 5, 900, n),
        "urgent": lambda: _levels(rng, ["no", "yes"], n)[1],
        "index": lambda: np.round(rng.uniform(0, 2, n), 3),
    }
    names = list(pool)
    chosen = rng.choice(len(names), size=int(rng.integers(3, 6)) if k is None else k, replace=False)
    return {names[j]: pool[names[j]]() for j in chosen.tolist()}


def _ledger(
    rng: Generator,
    target: str,
    columns: Mapping[str, NDArray[Any]],
    exact: FloatArray,
    truth: str,
    forgotten: Sequence[FloatArray],
    *,
    places: int = 2,
    is_date: bool = False,
    n_others: int | None = None,
) -> Ledger:
    """Add columns that the rule does not use, and put all of them in some order."""
    every = {**columns, **_distractors(rng, len(exact), n_others)}
    names = list(every)
    shuffled = {names[j]: every[names[j]] for j in rng.permutation(len(names)).tolist()}
    return Ledger(shuffled, target, exact, places, tuple(forgotten), truth, is_date)


# Products and rates.


def product(rng: Generator, n: int, *, vat: bool = False, n_others: int | None = None) -> Ledger:
    """Draw qty * price * (1 - discount) + fees, and with VAT on top."""
    qty, price = rng.integers(1, int(rng.integers(12, 80)), n), _money(rng, 2, float(rng.uniform(60, 600)), n)
    steps = rng.choice([0.05, 0.1, 0.15, 0.2, 0.25, 0.3], int(rng.integers(2, 5)), replace=False)
    discount = rng.choice(np.append(0.0, steps), n)
    weight = np.round(rng.uniform(0.2, 40, n), 1)
    in_percent = bool(rng.random() < 0.3)
    kind = ("none", "fixed", "weight", "both")[int(rng.integers(4))]
    per_kg = _rate(rng, 0.2, 2, 2) if kind in ("weight", "both") else 0.0
    fixed = float(rng.integers(3, 40)) if kind in ("fixed", "both") else 0.0
    fees = per_kg * weight + fixed
    columns: dict[str, NDArray[Any]] = {"qty": qty, "price": price, "weight": weight}
    columns["discount"] = np.rint(100 * discount) if in_percent else discount
    net = qty * price * (1 - discount)
    exact, forgotten = net + fees, [qty * price + fees]
    if fees.any():
        forgotten.append(net)
    truth = f"qty * price * (1 - discount{' / 100' if in_percent else ''}) + {per_kg:g} * weight + {fixed:g}"
    if vat:
        columns["vat"] = rng.choice([(0.0, 0.07, 0.19), (0.05, 0.2), (0.1, 0.22, 0.04)][int(rng.integers(3))], n)
        forgotten = [exact, *(values * (1 + columns["vat"]) for values in forgotten)]
        exact, truth = exact * (1 + columns["vat"]), f"({truth}) * (1 + vat)"
    return _ledger(rng, "amount", columns, exact, truth, forgotten, n_others=n_others)


_SERVICES = ("cleaning", "consulting", "design", "repair", "training", "transport")


def rate_by_service(rng: Generator, n: int, *, fees: bool = False) -> Ledger:
    """Draw hours * rate[service], and with a fixed fee and one by distance."""
    names = _SERVICES[: int(rng.integers(3, 7))]
    rates = _distinct(rng, len(names), 20, 160)
    code, service = _levels(rng, names, n)
    hours, distance = rng.integers(1, 60, n) / 4, rng.integers(0, 120, n)
    work = hours * rates[code]
    columns = {"hours": hours, "service": service, "distance": distance}
    truth = f"hours * rate[service], {dict(zip(names, rates.tolist(), strict=True))}"
    forgotten = [hours * rates[0], rates[code]]
    if not fees:
        return _ledger(rng, "charge", columns, work, truth, forgotten)
    per_km, fixed = _rate(rng, 0.2, 0.9, 2), float(rng.integers(5, 60))
    exact = work + per_km * distance + fixed
    truth = f"{truth} + {per_km:g} * distance + {fixed:g}"
    return _ledger(rng, "charge", columns, exact, truth, [work + fixed, work + per_km * distance])


def plan_code(rng: Generator, n: int) -> Ledger:
    """Draw a price by plan, where plans are numbers: a column that is a category in disguise."""
    codes = [(1, 2, 3, 4), (10, 20, 30), (101, 102, 201, 202, 301), (0, 1, 2)][int(rng.integers(4))]
    prices = _distinct(rng, len(codes), 5, 90)
    code, plan = _levels(rng, codes, n)
    seats, minutes = rng.integers(1, 30, n), rng.integers(0, 600, n)
    per_minute = _rate(rng, 0.02, 0.2, 2)
    columns = {"plan": plan, "seats": seats, "minutes": minutes}
    listed = dict(zip(codes, prices.tolist(), strict=True))
    if rng.random() < 0.5:
        exact, truth, without = prices[code] * seats, f"seats * price[plan], {listed}", prices[code]
    else:
        exact, truth = prices[code] + per_minute * minutes, f"price[plan] + {per_minute:g} * minutes, {listed}"
        without = prices[code].copy()
    return _ledger(rng, "bill", columns, exact, truth, [without])


def vat_by_code(rng: Generator, n: int) -> Ledger:
    """Draw net * (1 + rate[code])."""
    rates = rng.permutation([0.0, 0.05, 0.07, 0.1, 0.19, 0.2, 0.25])[: int(rng.integers(2, 5))]
    names: Sequence[str] | Sequence[int] = ["A", "B", "C", "D"] if rng.random() < 0.7 else [0, 1, 2, 3]
    code, name = _levels(rng, names[: len(rates)], n)
    net = _money(rng, 5, 4_000, n)
    truth = f"net * (1 + rate[vat_code]), {rates.tolist()}"
    flat = net * (1 + rates[0])
    return _ledger(rng, "gross", {"net": net, "vat_code": name}, net * (1 + rates[code]), truth, [net + 0.0, flat])


# Ratios and powers.


def bmi(rng: Generator, n: int) -> Ledger:
    """Draw weight / height ** 2, height in metres or centimetres, to a tenth."""
    height = np.round(rng.normal(1.72, 0.1, n).clip(1.4, 2.1), 2)
    weight = np.round(height**2 * rng.normal(25, 4, n).clip(16, 45), 1)
    in_cm = bool(rng.random() < 0.5)
    columns = {"weight": weight, "height": np.rint(100 * height) if in_cm else height}
    truth = "10000 * weight / height ** 2" if in_cm else "weight / height ** 2"
    return _ledger(rng, "bmi", columns, weight / height**2, truth, [weight / height], places=1)


def ratio(rng: Generator, n: int, *, percent: bool) -> Ledger:
    """Draw 100 * part / whole or part / whole, rounded."""
    whole = rng.integers(200, int(rng.integers(1_000, 50_000)), n)
    part = np.rint(whole * rng.beta(2, 3, n)).astype(np.int64)
    other = np.rint(whole * rng.uniform(0.6, 1.4, n)).astype(np.int64)
    share = part / whole
    columns = {"part": part, "whole": whole, "last_year": other}
    if percent:
        truth, places, target = "100 * part / whole", int(rng.integers(1, 3)), "percent"
        return _ledger(rng, target, columns, 100 * share, truth, [share, 100 * part / other], places=places)
    places = int(rng.integers(3, 5))
    return _ledger(rng, "share", columns, share, "part / whole", [part / other, 1 - share], places=places)


def power_law(rng: Generator, n: int) -> Ledger:
    """Draw c * x ** a * y ** b, rounded."""
    a, b = (float(e) for e in rng.choice([-1, -0.5, 0.5, 0.75, 1.5, 2, 3], 2, replace=False))
    x, y = _money(rng, 1, 30, n), _money(rng, 1, 30, n)
    rest = x**a * y**b
    c = _short(float(rng.uniform(50, 2_000)) / float(np.median(rest)), 3)
    places = 2 if np.quantile(c * rest, 0.1) < 100 else int(rng.choice([0, 1, 2]))
    truth = f"{c:g} * diameter ** {a:g} * length ** {b:g}"
    columns = {"diameter": x, "length": y}
    return _ledger(rng, "flow", columns, c * rest, truth, [c * x**a, c * y**b], places=places)


# Thresholds.


def _thresholds(rng: Generator, values: NDArray[Any], k: int) -> list[float]:
    """Return k short numbers that cut the values into parts of about the same size."""
    shares = (np.arange(1, k + 1) + rng.uniform(-0.2, 0.2, k)) / (k + 1)
    return [_short(float(cut), 2) for cut in np.quantile(values, shares)]


def brackets(rng: Generator, n: int, *, k: int) -> Ledger:
    """Draw a tax with k brackets that meet, less a deduction for each child."""
    income = _money(rng, 8_000, 150_000, n, int(rng.choice([0, 2])))
    cuts = _thresholds(rng, income, k - 1)
    rates = np.cumsum([int(rng.integers(8, 16)), *rng.integers(3, 9, k - 1).tolist()]) / 100
    children, deduction = rng.integers(0, 5, n), float(rng.integers(10, 80))
    steps = np.diff(rates)
    tax = rates[0] * income + sum(s * np.maximum(0, income - cut) for s, cut in zip(steps, cuts, strict=True))
    truth = f"{rates.tolist()} of income from {[0.0, *cuts]} on, less {deduction:g} * children"
    forgotten = [tax, rates[0] * income - deduction * children]
    columns = {"income": income, "children": children}
    places = int(rng.choice([0, 2]))
    return _ledger(rng, "tax", columns, tax - deduction * children, truth, forgotten, places=places)


def tiers(rng: Generator, n: int) -> Ledger:
    """Draw a discount that jumps: on the whole order, from a quantity on."""
    qty = rng.integers(1, int(rng.integers(150, 400)), n)
    cuts = _thresholds(rng, qty, int(rng.integers(1, 3)))
    off = np.append(0, np.cumsum(rng.integers(4, 12, len(cuts)))) / 100
    tier = np.searchsorted(cuts, qty, side="right")
    by_price = bool(rng.random() < 0.5)
    price = _money(rng, 2, 60, n) if by_price else np.full(n, _rate(rng, 2, 60))
    postage = float(rng.integers(4, 30))
    columns = {"qty": qty} | ({"price": price} if by_price else {})
    truth = (
        f"qty * {'price' if by_price else f'{price[0]:g}'} * (1 - {off.tolist()} from {[0.0, *cuts]} on) + {postage:g}"
    )
    full = qty * price
    exact = full * (1 - off[tier]) + postage
    return _ledger(rng, "total", columns, exact, truth, [full + postage, exact - postage])


def cap(rng: Generator, n: int, *, of_sum: bool = False) -> Ledger:
    """Draw min(rate * hours, cap), or min(the sum of several columns, cap)."""
    columns: dict[str, NDArray[Any]]
    if of_sum:
        names = ("meals", "hotel", "travel", "phone")[: int(rng.integers(2, 5))]
        columns = {name: _money(rng, 5, 300, n) for name in names}
        whole, without, text = sum(columns.values()), columns[names[0]], " + ".join(names)
    else:
        hours, rate = rng.integers(2, 200, n) / 4, _rate(rng, 3, 60)
        columns = {"hours": hours}
        whole, without, text = rate * hours, hours * _short(rate / 2, 2), f"{rate:g} * hours"
    limit = _short(float(np.quantile(whole, 1 - rng.uniform(0.15, 0.45))), 2)
    exact = np.minimum(whole, limit)
    return _ledger(rng, "paid", columns, exact, f"min({text}, {limit:g})", [whole + 0.0, np.minimum(without, limit)])


def floor(rng: Generator, n: int) -> Ledger:
    """Draw max(minimum fee, a * weight + b * distance)."""
    weight, distance = np.round(rng.uniform(0.5, 60, n), 1), rng.integers(1, 400, n)
    a, b = _rate(rng, 0.2, 2, 2), _rate(rng, 0.05, 0.5, 2)
    whole = a * weight + b * distance
    least = _short(float(np.quantile(whole, rng.uniform(0.15, 0.45))), 2)
    truth = f"max({least:g}, {a:g} * weight + {b:g} * distance)"
    forgotten = [whole, np.maximum(least, a * weight)]
    return _ledger(rng, "freight", {"weight": weight, "distance": distance}, np.maximum(whole, least), truth, forgotten)


def free_above(rng: Generator, n: int) -> Ledger:
    """Draw shipping by weight, and none from an order of some size on."""
    order, weight = _money(rng, 10, 400, n), np.round(rng.uniform(0.2, 30, n), 1)
    limit = _short(float(np.quantile(order, 1 - rng.uniform(0.2, 0.45))), 1 if rng.random() < 0.5 else 2)
    base, a = _rate(rng, 2, 10, 2), _rate(rng, 0.2, 2, 2)
    whole = base + a * weight
    is_free = order >= limit
    truth = f"0 if order >= {limit:g} else {base:g} + {a:g} * weight"
    forgotten = [whole, np.where(is_free, 0, base)]
    return _ledger(rng, "shipping", {"order": order, "weight": weight}, np.where(is_free, 0, whole), truth, forgotten)


# Dates.


def by_weekday(rng: Generator, n: int) -> Ledger:
    """Draw hours * rate[weekday of a date]: seven rates, or three."""
    days, hours = _days(rng, n), rng.integers(2, 48, n) / 4
    weekday = (days + 3) % 7  # 1970-01-01 was a Thursday
    group = np.arange(7) if rng.random() < 0.5 else np.array([0, 0, 0, 0, 0, 1, 2])
    rates = _distinct(rng, group.max() + 1, 12, 90)[group]
    truth = f"hours * rate[weekday of date], Monday first: {rates.tolist()}"
    forgotten = [hours * rates[0]]
    return _ledger(rng, "wage", {"date": _iso(days), "hours": hours}, hours * rates[weekday], truth, forgotten)


def by_month(rng: Generator, n: int) -> Ledger:
    """Draw nights * price[month of a date] + cleaning: a price for each month, or for three seasons."""
    days, nights = _days(rng, n), rng.integers(1, 15, n)
    month = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    seasons = np.array([0, 0, 0, 1, 1, 2, 2, 2, 1, 1, 0, 0])
    group = seasons if rng.random() < 0.6 else np.arange(12)
    prices, cleaning = _distinct(rng, group.max() + 1, 40, 240, 2)[group], float(rng.integers(20, 80))
    truth = f"nights * price[month of arrival] + {cleaning:g}, January first: {prices.tolist()}"
    work = nights * prices[month]
    forgotten = [work, nights * prices[0] + cleaning]
    return _ledger(rng, "rent", {"arrival": _iso(days), "nights": nights}, work + cleaning, truth, forgotten)


def days_between(rng: Generator, n: int, *, fee: bool) -> Ledger:
    """Draw the days between two dates, or a fee for each of them."""
    start = _days(rng, n)
    length = rng.integers(0, int(rng.integers(40, 120)), n)
    columns = {"issued": _iso(start), "returned": _iso(start + length)}
    if fee:
        per_day, base = _rate(rng, 0.3, 25), float(rng.integers(2) * rng.integers(5, 40))
        truth = f"{per_day:g} * days from issued to returned + {base:g}"
        forgotten = [per_day * length] if base else [per_day * np.maximum(length - 1, 0.0)]
        return _ledger(rng, "fee", columns, per_day * length + base, truth, forgotten)
    more = int(rng.integers(2))
    truth = f"days from issued to returned + {more}"
    forgotten = [length + 1.0 - more]
    return _ledger(rng, "days", columns, length + float(more), truth, forgotten, places=0)


def due_date(rng: Generator, n: int) -> Ledger:
    """Draw a date so many days after another."""
    days, after = _days(rng, n), int(rng.choice([7, 10, 14, 30, 45, 60, 90]))
    columns = {"invoiced": _iso(days), "net": _money(rng, 5, 4_000, n)}
    exact, truth = (days + after).astype(np.float64), f"invoiced + {after} days"
    return _ledger(rng, "due", columns, exact, truth, [days.astype(np.float64)], places=0, is_date=True)


# Order, and more than one rule.


def balance(rng: Generator, n: int, *, accounts: bool) -> Ledger:
    """Draw the previous balance + in - out, in the order of the file; also for each account apart."""
    is_in = rng.random(n) < rng.uniform(0.35, 0.65)
    amount = _money(rng, 5, 900, n)
    paid_in, paid_out = np.where(is_in, amount, 0), np.where(is_in, 0, amount)
    k = int(rng.integers(3, 7)) if accounts else 1
    names = [f"{number:04d}-K" for number in rng.choice(10_000, k, replace=False)]
    code, account = _levels(rng, names, n)
    opening = np.array([_short(rng.uniform(0, 5_000), 3) if rng.random() < 0.7 else 0.0 for _ in names])
    columns: dict[str, NDArray[Any]] = {"in": paid_in, "out": paid_out} | ({"account": account} if accounts else {})
    exact, unpaid = opening[code], opening[code]
    for level in range(len(names)):
        rows = code == level
        exact[rows] += np.cumsum(paid_in[rows] - paid_out[rows])
        unpaid[rows] += np.cumsum(paid_in[rows])
    truth = f"previous balance{' of the account' if accounts else ''} + in - out, from {opening.tolist()}"
    forgotten = [exact - paid_in + paid_out, unpaid]  # this row's own movement; all payments
    return _ledger(rng, "balance", columns, exact, truth, forgotten)


def groups(rng: Generator, n: int, *, share: float) -> Ledger:
    """Draw two groups, of which each has a rule of its own over other columns."""
    hours, distance, stops = rng.integers(1, 60, n) / 4, rng.integers(1, 400, n), rng.integers(1, 12, n)
    qty, price = rng.integers(1, 50, n), _money(rng, 2, 60, n)
    columns = {"hours": hours, "distance": distance, "stops": stops, "qty": qty, "price": price}
    a, b, c, d = _rate(rng, 15, 90), float(rng.integers(5, 40)), _rate(rng, 0.2, 1.5, 2), _rate(rng, 2, 9, 2)
    rules = (
        (a * hours + b, f"{a:g} * hours + {b:g}", a * hours),
        (c * distance + d * stops, f"{c:g} * distance + {d:g} * stops", c * distance),
        (qty * price, "qty * price", price),
    )
    first, second = (rules[j] for j in rng.choice(3, 2, replace=False).tolist())
    name, level = [("kind", ("delivery", "repair")), ("tariff", ("A", "B")), ("site", ("Lyon", "Porto"))][
        int(rng.integers(3))
    ]
    is_first = rng.random(n) < share
    columns[name] = np.where(is_first, *level)
    truth = f"{first[1]} if {name} is {level[0]} else {second[1]}"
    exact = np.where(is_first, first[0], second[0])
    return _ledger(rng, "charge", columns, exact, truth, [np.where(is_first, first[2], second[2])])


def changed(rng: Generator, n: int) -> Ledger:
    """Draw a rule whose rates changed on a date."""
    days, kwh = _days(rng, n), np.round(rng.uniform(20, 900, n), int(rng.choice([0, 1])))
    if rng.random() < 0.5:
        days = np.sort(days)
    day = int(np.quantile(days, rng.uniform(0.35, 0.65)))
    rates, bases = _distinct(rng, 2, 0.1, 0.6), rng.choice(np.arange(4.0, 30.0), 2, replace=False)
    new = (days >= day).astype(np.int64)
    truth = f"{rates[0]:g} * kwh + {bases[0]:g}, from {np.datetime64(day, 'D')} on {rates[1]:g} * kwh + {bases[1]:g}"
    exact = rates[new] * kwh + bases[new]
    forgotten = [rates[new] * kwh, rates[0] * kwh + bases[0]]
    return _ledger(rng, "bill", {"date": _iso(days), "kwh": kwh}, exact, truth, forgotten)


def linear(rng: Generator, n: int) -> Ledger:
    """Draw a plain sum of columns and an amount by category: what needs no search."""
    names = ("items", "weight", "distance", "pages")[: int(rng.integers(2, 5))]
    columns: dict[str, NDArray[Any]] = {name: rng.integers(0, 200, n) for name in names}
    rates = _distinct(rng, len(names), 0.1, 4, 2)
    levels = ("express", "letter", "parcel", "pallet")[: int(rng.integers(2, 5))]
    extra = _distinct(rng, len(levels), 2, 60)
    code, columns["class"] = _levels(rng, levels, n)
    terms = [rate * columns[name] for rate, name in zip(rates, names, strict=True)]
    truth = " + ".join(f"{rate:g} * {name}" for rate, name in zip(rates, names, strict=True))
    truth += f" + extra[class], {dict(zip(levels, extra.tolist(), strict=True))}"
    exact = sum(terms) + extra[code]
    return _ledger(rng, "price", columns, exact, truth, [exact - terms[0], exact - extra[code]])


# No rule.


def _aimless(rng: Generator, n: int, target: FloatArray, places: int, columns: Mapping[str, NDArray[Any]]) -> Ledger:
    found = _ledger(rng, "value", columns, target, "", (), places=places)
    return Ledger(found.columns, "value", found.clean, places)


def noise(rng: Generator, n: int) -> Ledger:
    """Draw Gaussian columns and a Gaussian target."""
    columns = {f"x{j}": np.round(rng.normal(0, 1, n), 3) for j in range(int(rng.integers(3, 8)))}
    return _aimless(rng, n, rng.normal(0, float(rng.choice([1, 100])), n), int(rng.integers(1, 4)), columns)


def counts(rng: Generator, n: int) -> Ledger:
    """Draw counts of unrelated things, the target among them; many are small or 0."""
    columns = {f"count_{j}": rng.poisson(rng.uniform(0.5, 20), n) for j in range(int(rng.integers(3, 8)))}
    return _aimless(rng, n, rng.poisson(rng.uniform(0.5, 12), n).astype(np.float64), 0, columns)


def ratings(rng: Generator, n: int) -> Ledger:
    """Draw grades from 1 to 5 that mean something, but follow no rule: good things get good grades."""
    quality = rng.normal(0, 1, n)
    columns = {f"grade_{j}": _graded(rng, quality) for j in range(int(rng.integers(3, 7)))}
    return _aimless(rng, n, _graded(rng, quality), 0, columns)


def _graded(rng: Generator, quality: FloatArray) -> FloatArray:
    return np.clip(np.rint(3.4 + 0.6 * quality + rng.normal(0, 0.9, len(quality))), 1, 5)


def walks(rng: Generator, n: int) -> Ledger:
    """Draw random walks apart from each other, which look related."""
    columns = {f"series_{j}": _walk(rng, n) for j in range(int(rng.integers(3, 7)))}
    return _aimless(rng, n, _walk(rng, n), 2, columns)


def _walk(rng: Generator, n: int) -> FloatArray:
    return np.round(rng.uniform(50, 200) + np.cumsum(rng.normal(0, 1, n)), 2)


def unrelated(rng: Generator, n: int) -> Ledger:
    """Draw the columns of one ledger and the target of another."""
    names = list(RULES)
    first, second = (RULES[names[j]](rng, n) for j in rng.choice(len(names), 2, replace=False).tolist())
    target = second.exact if not second.is_date else rng.integers(0, 90, n).astype(np.float64)
    return _aimless(rng, n, rng.permutation(target), second.places, first.columns)


RULES: Mapping[str, Make] = {
    "product": product,
    "product-vat": partial(product, vat=True),
    "rate-by-service": rate_by_service,
    "rate-by-service-fees": partial(rate_by_service, fees=True),
    "plan-code": plan_code,
    "vat-by-code": vat_by_code,
    "bmi": bmi,
    "percentage": partial(ratio, percent=True),
    "share": partial(ratio, percent=False),
    "power-law": power_law,
    **{f"brackets-{k}": partial(brackets, k=k) for k in (2, 3, 4, 5)},
    "tiers": tiers,
    "cap": cap,
    "cap-sum": partial(cap, of_sum=True),
    "floor": floor,
    "free-above": free_above,
    "by-weekday": by_weekday,
    "by-month": by_month,
    "day-fee": partial(days_between, fee=True),
    "days": partial(days_between, fee=False),
    "due-date": due_date,
    "balance": partial(balance, accounts=False),
    "balance-by-account": partial(balance, accounts=True),
    "groups-60-40": partial(groups, share=0.6),
    "groups-50-50": partial(groups, share=0.5),
    "changed": changed,
    "linear": linear,
}
"""Families that have a rule."""

NO_RULES: Mapping[str, Make] = {
    "noise": noise,
    "counts": counts,
    "ratings": ratings,
    "walks": walks,
    "unrelated": unrelated,
}
"""Families that have none."""
