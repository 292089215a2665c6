"""Errors of every kind planted in tables: how many wrong rows are given the right kind, and how many a wrong one.

    python benchmarks/kinds.py --seed 1
    python benchmarks/kinds.py --small        # as CI runs it

A table follows one of sixteen rules: sums, products, rates and amounts by level, thresholds, caps, quotients, rates in
columns. Three rows in ten are wrong, in four to seven of 25 ways. A row that nothing explains (its
value was drawn, or it was changed a little) counts as right if it is called unexplained. Two names for the same values
are both right: what is forgotten may leave the value of a column. Exit status 1 unless 95 % of the wrong rows are given
the right kind and at most 1 % a wrong one.
"""

# ruff: noqa: D401 (what is made is named)

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart import audit_table

Values: TypeAlias = NDArray[Any]

WRONG = 0.3
UNEXPLAINED = "unexplained"
SECOND = 0.12  # share of the rows that follow another rule, at least
SURPRISE = 0.002  # share of the values of a label that a kind allows, at most
SAME = 0.9  # of the rows of a kind: if they all are called something else, that is another name for it


@dataclass(frozen=True)
class Rule:
    """``target = round(sum of coefs times columns + constant)``, or of other parts."""

    columns: dict[str, Values]
    coefs: dict[str, float] = field(default_factory=dict)
    constant: float = 0.0
    places: int | None = 2
    terms: str = "auto"
    # what is added up, given the columns, where these are not plain columns
    summed: Callable[[dict[str, Values]], dict[str, Values]] | None = None
    cap: float = np.inf
    others: dict[str, tuple[Values, str]] = field(default_factory=dict)  # errors of this rule alone, and what is said

    @property
    def parts(self) -> dict[str, Values]:
        """What is added up."""
        return self.parts_of(self.columns)

    def parts_of(self, columns: dict[str, Values]) -> dict[str, Values]:
        """Return what is added up where columns have other values."""
        if self.summed is not None:
            return self.summed(columns)
        n = len(next(iter(columns.values())))
        parts = {name: coef * columns[name] for name, coef in self.coefs.items()}
        return parts | {"constant": np.full(n, self.constant)}

    def exact(self, columns: dict[str, Values]) -> Values:
        """Return the target where columns have other values, not rounded."""
        return np.minimum(self.cap, np.sum([*self.parts_of(columns).values()], axis=0))

    def write(self, values: Values) -> Values:
        """Round as the table does."""
        return values if self.places is None else np.round(values, self.places) + 0.0


@dataclass(frozen=True)
class Planted:
    """A rule, the labels with their errors, and the kind of each row."""

    rule: Rule
    given: NDArray[Any]
    implied: NDArray[Any]
    kinds: NDArray[Any]


def ledger(rng: np.random.Generator, n: int) -> Rule:
    """Cents, exactly."""
    columns = {
        "hours": rng.integers(1, 33, n) / 4,
        "items": rng.poisson(6.0, n).astype(float),
        "km": np.ceil(rng.lognormal(2.5, 1.0, n)),
        "weekend": (rng.random(n) < 0.3).astype(float),
    }
    return Rule(columns, {"hours": 54.0, "items": 7.9, "km": 0.42, "weekend": 25.0}, 35.0, 2)


def tariff(rng: np.random.Generator, n: int) -> Rule:
    """Cents, rounded."""
    columns = {
        "kwh": np.round(rng.gamma(3.0, 900.0, n), 1),
        "days": rng.integers(20, 400, n).astype(float),
        "peak": np.round(rng.gamma(2.0, 10.0, n), 2),
    }
    return Rule(columns, {"kwh": 0.1937, "days": 0.2431, "peak": 3.1415}, 12.5, 2)


def counts(rng: np.random.Generator, n: int) -> Rule:
    """Whole numbers."""
    columns = {name: rng.integers(0, most, n).astype(float) for name, most in (("a", 300), ("b", 90), ("c", 50))}
    return Rule(columns, {"a": 37.0, "b": 113.0, "c": 59.0}, 400.0, 0)


def balance(rng: np.random.Generator, n: int) -> Rule:
    """Cents on both sides of zero."""
    columns = {
        "credit": np.round(rng.gamma(2.0, 800.0, n), 2),
        "debit": np.round(rng.gamma(2.0, 800.0, n), 2),
        "fee": np.round(rng.uniform(0, 40, n), 2),
    }
    return Rule(columns, {"credit": 1.0, "debit": -1.0, "fee": -1.0}, -2.5, 2)


def physics(rng: np.random.Generator, n: int) -> Rule:
    """Floats that nothing rounded."""
    columns = {name: rng.normal(0, 3, n) for name in ("u", "v", "w")}
    return Rule(columns, {"u": 1.7, "v": -0.31, "w": 2.25}, 4.0, None)


def money(rng: np.random.Generator, n: int, most: float) -> Values:
    """Amounts in cents, as many below the geometric mean as above."""
    return np.round(np.exp(rng.uniform(np.log(2.0), np.log(most), n)), 2)


def picked(rng: np.random.Generator, n: int, names: str, amounts: Sequence[float]) -> tuple[Values, Values]:
    """Return a level for each row, and its amount."""
    code = rng.choice(len(amounts), n, p=rng.dirichlet(np.full(len(amounts), 15.0)))
    return np.array(names.split())[code], np.array(amounts)[code]


def vat(rng: np.random.Generator, n: int) -> Rule:
    """Rates by country."""
    country, rate = picked(rng, n, "AT DE FR IT NL PL", (1.2, 1.19, 1.2, 1.22, 1.21, 1.23))
    net = money(rng, n, 4000)
    others = {"German VAT": (1.19 * net, "as for country = DE"), "VAT forgotten": (net, "the value of net")}
    return Rule(
        {"net": net, "country": country},
        terms="net:country",
        summed=lambda c: {"net * country": c["net"] * rate},
        others=others,
    )


def freight(rng: np.random.Generator, n: int) -> Rule:
    """An amount by zone and a rate by zone."""
    zone, base = picked(rng, n, "A B C D", (4.0, 7.5, 9.0, 12.25))
    rate = {"A": 0.82, "B": 1.1, "C": 1.35, "D": 2.05}
    kg = np.round(rng.gamma(2.0, 9.0, n), 1) + 0.5
    per = np.array([rate[name] for name in zone.tolist()])
    others = {"zone A": (4.0 + 0.82 * kg, "as for zone = A"), "zone D": (12.25 + 2.05 * kg, "as for zone = D")}
    return Rule(
        {"kg": kg, "zone": zone},
        terms="zone, kg:zone",
        summed=lambda c: {"kg * zone": per * c["kg"], "zone": base},
        others=others,
    )


def levels(rng: np.random.Generator, n: int) -> Rule:
    """An amount by level beside a rate."""
    zone, base = picked(rng, n, "east north south west", (40.0, 75.5, 91.0, 122.25))
    km = rng.integers(1, 400, n).astype(float)
    others = {"zone": (2.5 * km + 91.0, "as for zone = south")}
    return Rule(
        {"km": km, "zone": zone},
        terms="columns",
        summed=lambda c: {"km": 2.5 * c["km"], "zone": base},
        others=others,
    )


def payroll(rng: np.random.Generator, n: int) -> Rule:
    """Overtime."""
    rate, hours = np.round(rng.uniform(14, 48, n), 2), np.round(rng.normal(41, 6, n) * 4) / 4
    over = np.maximum(0, hours - 40)

    def summed(c: dict[str, Values]) -> dict[str, Values]:
        more = 0.5 * c["rate"] * np.maximum(0, c["hours"] - 40)
        return {"rate * hours": c["rate"] * c["hours"], "rate * max(0, hours - 40)": more}

    others = {
        "not paid": (np.where(over > 0, 40 * rate, np.nan), "hours up to 40 only"),
        "paid for all": (rate * hours * 1.5, "max(0, hours - 40) taken as hours"),
    }
    terms = "rate*hours, rate*max(0, hours-40)"
    return Rule({"rate": rate, "hours": hours}, terms=terms, summed=summed, others=others)


def pension(rng: np.random.Generator, n: int) -> Rule:
    """A ceiling, and an old rate."""
    salary = np.round(rng.lognormal(8.6, 0.5, n), 2)
    capped = np.minimum(salary, 7550)
    others = {
        "ceiling": (0.093 * salary, "min(salary, 7550) taken as salary"),
        "old rate": (0.0995 * capped, "min(salary, 7550) at 0.0995 instead of 0.093"),
    }
    return Rule(
        {"salary": salary, "children": rng.integers(0, 4, n).astype(float)},
        terms="min(salary, 7550)",
        summed=lambda c: {"min(salary, 7550)": 0.093 * np.minimum(c["salary"], 7550)},
        others=others,
    )


def closing(rng: np.random.Generator, n: int) -> Rule:
    """A difference, beside columns that are not in the rule."""
    opening, interest, paid = money(rng, n, 90_000) + 500, money(rng, n, 400), money(rng, n, 2000) + 400
    columns = {"opening": opening, "interest": interest, "instalment": paid, "principal": np.round(paid - interest, 2)}
    others = {
        "interest": (opening - paid, "the value of opening - instalment"),
        "paid": (paid, "the value of instalment"),
    }
    return Rule(
        columns,
        terms="opening, principal",
        summed=lambda c: {"opening": c["opening"], "principal": -c["principal"]},
        others=others,
    )


def invoice(rng: np.random.Generator, n: int) -> Rule:
    """A product of three."""
    off = rng.choice([0.0, 0.05, 0.1, 0.15], n)
    columns = {
        "qty": rng.integers(1, 90, n).astype(float),
        "price": money(rng, n, 90),
        "off": off,
        "fee": money(rng, n, 60),
    }

    def summed(c: dict[str, Values]) -> dict[str, Values]:
        gross = c["qty"] * c["price"]
        return {"qty * price": gross, "qty * price * off": -gross * c["off"], "fee": c["fee"]}

    return Rule(columns, terms="qty*price, qty*price*off, fee", summed=summed)


def exchange(rng: np.random.Generator, n: int) -> Rule:
    """A rate column."""
    amount = money(rng, n, 20_000)
    rate = rng.choice([0.9208, 0.9251, 1.1638, 1.1702, 1.0671, 1.0588, 0.1093], n)
    others = {
        "not converted": (amount, "the value of amount"),
        "divided": (amount / rate, "the value of amount / rate"),
    }
    return Rule(
        {"amount": amount, "rate": rate},
        terms="amount*rate",
        summed=lambda c: {"amount * rate": c["amount"] * c["rate"]},
        others=others,
    )


def interest(rng: np.random.Generator, n: int) -> Rule:
    """Days of a year."""
    amount, days = money(rng, n, 90_000) + 900, rng.integers(20, 400, n).astype(float)
    rate = rng.choice([2.5, 3.25, 4.0, 4.75, 6.5], n)

    def summed(c: dict[str, Values]) -> dict[str, Values]:
        return {"amount * rate * days": c["amount"] * c["rate"] * c["days"] / 36_500}

    every = amount * rate * days
    others = {"360 days": (every / 36_000, "factor 365/360")}
    columns = {"amount": amount, "rate": rate, "days": days}
    return Rule(columns, terms="amount*rate*days", summed=summed, others=others)


def tiers(rng: np.random.Generator, n: int) -> Rule:
    """A threshold."""
    kwh = rng.integers(1, 900, n).astype(float)

    def summed(c: dict[str, Values]) -> dict[str, Values]:
        more = np.maximum(0, c["kwh"] - 200)
        return {"kwh": 0.2537 * c["kwh"], "max(0, kwh - 200)": 0.1121 * more, "constant": np.full(n, 12.4)}

    others = {"not free": (0.2537 * kwh + 0.1121 * kwh + 12.4, "max(0, kwh - 200) taken as kwh")}
    return Rule({"kwh": kwh}, terms="kwh, max(0, kwh-200)", summed=summed, others=others)


def quotient(rng: np.random.Generator, n: int) -> Rule:
    """Pounds among kilograms, rounded twice."""
    kg, cm = np.round(rng.normal(78, 14, n), 1), np.round(rng.normal(171, 9, n))

    def summed(c: dict[str, Values]) -> dict[str, Values]:
        return {"kg / cm^2": 1e4 * c["kg"] / c["cm"] ** 2}

    bmi = np.round(1e4 * kg / cm**2, 2)
    others = {"pounds": (np.round(2.2046 * bmi, 1), "factor 2.2046")}
    return Rule({"kg": kg, "cm": cm}, terms="kg/cm^2", summed=summed, others=others)


RULES: tuple[Callable[[np.random.Generator, int], Rule], ...] = (ledger, tariff, counts, balance, physics)
FORMS = (*RULES, vat, freight, levels, payroll, pension, closing, invoice, exchange, interest, tiers, quotient)


class Planter:
    """Makes errors in a table, each row once."""

    def __init__(self, rule: Rule, rng: np.random.Generator) -> None:
        self.rule, self.rng = rule, rng
        self.parts = rule.parts
        self.exact = rule.exact(rule.columns)
        self.implied = rule.write(self.exact)
        self.given = self.implied.copy()
        self.kinds = np.full(len(self.given), "", dtype=object)
        self.unit = 0.0 if rule.places is None else 10.0**-rule.places

    def make(self, name: str, size: int) -> None:
        """Make so many errors of the kind with this name, one of `ALL`."""
        getattr(self, f"_{name}")(size)

    @property
    def planted(self) -> Planted:
        """The table as it is now."""
        return Planted(self.rule, self.given, self.implied, self.kinds)

    def _give(self, kind: str, values: NDArray[Any], size: int, allowed: Values | None = None) -> Values:
        """Give so many rows these values, where they differ by more than a last place and nothing was planted."""
        written = self.rule.write(values)
        free = (self.kinds == "") & (np.abs(written - self.implied) > 2.5 * self.unit + 1e-9)
        free &= True if allowed is None else allowed
        rows = np.flatnonzero(free)
        rows = self.rng.choice(rows, min(size, len(rows)), replace=False)
        self.given[rows] = written[rows]
        self.kinds[rows] = kind
        return rows

    def _factor(self, size: int) -> None:
        factor = float(self.rng.choice([10, 100, 1000, 0.1, 0.01, 1.19, 1.07, 2.2046]))
        allowed = np.abs(self.implied * factor) > 20 * self.unit
        self._give(f"factor {factor:g}", self.implied * factor, size, allowed)

    def _sign(self, size: int) -> None:
        self._give("sign", -self.implied, size)

    def _names(self) -> list[str]:
        return [*self.rule.coefs] or [name for name in self.parts if name != "constant"]

    def _forgotten(self, size: int) -> None:
        name = str(self.rng.choice(self._names()))
        self._give(f"{name} forgotten", self.exact - self.parts[name], size, np.abs(self.parts[name]) > 0)

    def _twice(self, size: int) -> None:
        name = str(self.rng.choice(self._names()))
        self._give(f"{name} counted twice", self.exact + self.parts[name], size, np.abs(self.parts[name]) > 0)

    def _two_forgotten(self, size: int) -> None:
        names = self._names()
        i, j = sorted(self.rng.choice(len(names), 2, replace=False))
        both = (self.parts[names[i]] != 0) & (self.parts[names[j]] != 0)
        values = self.exact - self.parts[names[i]] - self.parts[names[j]]
        self._give(f"{names[i]} and {names[j]} forgotten", values, size, both)

    def _other(self, size: int) -> None:
        """Make an error that this rule alone can have."""
        name = str(self.rng.choice([*self.rule.others]))
        values, said = self.rule.others[name]
        self._give(said, np.nan_to_num(values), size, np.isfinite(values))

    def _constants(self, size: int) -> None:
        places = 2 if self.rule.places is None else self.rule.places
        for k in range(3):
            value = float(np.round(self.rng.uniform(10, 40) * (k + 1), places))
            self._give(f"off by {value:+.10g}", self.implied + value, size // 3)

    def _another(self, size: int) -> None:
        self._give("value of another row", self.rng.permutation(self.implied), size)

    def _numbers(self) -> list[str]:
        """Columns that the rule reads, one value of which says little of a label."""
        every = [name for name, values in self.rule.columns.items() if values.dtype.kind == "f" and self._reads(name)]
        few = [name for name in every if self._surprises(n_values(self.rule.columns[name]))]
        return few if len(every) > 1 else []

    def _reads(self, name: str) -> bool:
        columns = {**self.rule.columns, name: self.rule.columns[name] + 1}
        return bool(np.any(self.rule.exact(columns) != self.exact))

    def _surprises(self, n_values: int) -> bool:
        """Whether one of so many values is hardly met by chance."""
        return bool(
            n_values * self.unit < SURPRISE * (np.quantile(self.implied, 0.95) - np.quantile(self.implied, 0.05))
        )

    def can_make(self, name: str) -> bool:
        """Whether rows of a kind can be told from others, and are another kind than its others."""
        parts = [part for part in self.parts if part != "constant"]
        if name == "another":
            return self._surprises(len(np.unique(self.implied)))
        if name in ("column", "typed"):
            return self.rule.places is not None and bool(self._numbers())
        return {
            "forgotten": len(parts) > 1,
            "two_forgotten": len(parts) > 2,
            "twice": len(parts) > 1,
            "other": bool(self.rule.others),
            "another_rule": self.rule.summed is None,
        }.get(name, True)

    def _column(self, size: int) -> None:
        """Give what the rule gives with the number that another row has in a column."""
        name = str(self.rng.choice(self._numbers()))
        columns = {**self.rule.columns, name: self.rng.permutation(self.rule.columns[name])}
        self._give(f"{name} may be wrong", self.rule.exact(columns), size)

    def _typed(self, size: int) -> None:
        """Give what the rule gives with a tenth of a column."""
        name = str(self.rng.choice(self._numbers()))
        columns = {**self.rule.columns, name: self.rule.columns[name] / 10}
        self._give(f"{name} may be wrong: factor 10", self.rule.exact(columns), size)

    def _another_rule(self, size: int) -> None:
        columns = [values for values in self.rule.columns.values() if values.dtype.kind == "f"]
        values = np.sum([k * each for k, each in zip((1.7, 0.4, 2.9, 5.1), columns, strict=False)], axis=0)
        self._give("another rule", values, max(size, int(SECOND * len(self.given))))

    def _constant(self, size: int) -> None:
        places = 2 if self.rule.places is None else self.rule.places
        value = float(np.round(self.rng.uniform(3, 80) * self.rng.choice([-1, 1]), places))
        self._give(f"off by {value:+.10g}", self.implied + value, size)

    def _before(self, size: int) -> None:
        self._give("value of the row before", np.roll(self.implied, 1), size, np.arange(len(self.given)) > 0)

    def _after(self, size: int) -> None:
        last = np.arange(len(self.given)) == len(self.given) - 1
        self._give("value of the row after", np.roll(self.implied, -1), size, ~last)

    def _swapped(self, size: int) -> None:
        rows = self.rng.permutation(np.flatnonzero(self.kinds == ""))[: size // 2 * 2]
        first, second = np.split(rows, 2)
        apart = np.abs(self.implied[first] - self.implied[second]) > 2.5 * self.unit
        first, second = first[apart], second[apart]
        self.given[first], self.given[second] = self.implied[second], self.implied[first]
        self.kinds[first] = self.kinds[second] = "swapped with another row"

    def _zero(self, size: int) -> None:
        self._give("zero", np.zeros(len(self.given)), size)

    def _placeholder(self, size: int) -> None:
        value = float(self.rng.choice([-999, 9999, -1, 99999]))
        self._give(f"placeholder {value:g}", np.full(len(self.given), value), size)

    def _value(self, size: int) -> None:
        value = float(self.rule.write(np.array([self.rng.uniform(1, 3) * self.implied.max()]))[0])
        self._give(f"the value {value:.10g}", np.full(len(self.given), value), size)

    def _digit(self, size: int) -> None:
        whole = np.rint(np.abs(self.implied) / self.unit).astype(np.int64)
        place = self.rng.integers(0, np.floor(np.log10(np.maximum(whole, 10))).astype(int) + 1)
        old = whole // 10**place % 10
        new = (old + self.rng.integers(1, 10, len(whole))) % 10
        values = np.sign(self.implied) * (whole + (new - old) * 10**place) * self.unit
        self._give("one digit wrong", values, size, (whole >= 10) & (values != 0))

    def _digits(self, size: int) -> None:
        whole = np.rint(np.abs(self.implied) / self.unit).astype(np.int64)
        place = self.rng.integers(0, np.maximum(np.floor(np.log10(np.maximum(whole, 10))).astype(int), 1))
        low, high = whole // 10**place % 10, whole // 10 ** (place + 1) % 10
        values = np.sign(self.implied) * (whole + (low - high) * (10 ** (place + 1) - 10**place)) * self.unit
        self._give("digits swapped", values, size, whole >= 10)

    def _drawn(self, size: int) -> None:
        low, high = self.implied.min(), self.implied.max()
        self._give(UNEXPLAINED, self.rng.uniform(low, high, len(self.given)), size)

    def _changed(self, size: int) -> None:
        scale = 0.1 * np.abs(self.implied) + 10 * self.unit
        self._give(UNEXPLAINED, self.implied + scale * self.rng.standard_normal(len(self.given)), size)


def n_values(column: Values) -> int:
    """Return how many values a column may have that is written as it is."""
    cents = np.rint(100 * column).astype(int)
    return int(np.ptp(cents) // max(1, np.gcd.reduce(cents - cents.min()))) + 1


PLAIN: tuple[str, ...] = ("factor", "sign", "forgotten", "twice", "two_forgotten", "constant", "before", "after")
PLAIN += ("swapped", "zero", "placeholder", "value")
OF_DIGITS = ("digit", "digits")
OF_FORMS = ("other", "other", "constants", "another", "column", "typed", "another_rule")
NOISE = ("drawn", "changed")


def plant(seed: int, n: int = 2_000, rules: Sequence[Callable[[np.random.Generator, int], Rule]] = RULES) -> Planted:
    """Return a table with errors of four to seven kinds."""
    rng = np.random.default_rng(seed)
    planter = Planter(rules[seed % len(rules)](rng, n), rng)
    names = list(PLAIN if planter.rule.places is None else PLAIN + OF_DIGITS)
    if rules is not RULES:
        names = [name for name in [*names, *OF_FORMS] if planter.can_make(name)]
    known = rng.choice(names, rng.integers(3, 6), replace=False)
    chosen = [*dict.fromkeys(known.tolist()), *rng.choice(NOISE, rng.integers(1, 3), replace=False)]
    shares = rng.dirichlet(np.full(len(chosen), 4.0))
    for name, share in zip(chosen, shares, strict=True):
        planter.make(str(name), int(WRONG * n * share))
    return planter.planted


def judged(planted: Planted) -> NDArray[Any]:
    """Return the kind that an audit gives to each row."""
    table = {**planted.rule.columns, "target": planted.given}
    options = {} if planted.rule.terms == "auto" else {"terms": planted.rule.terms}
    found = audit_table(table, "target", **options)
    return found.kinds.of(np.arange(len(planted.given)))


def synonyms(truth: Values, said: Values) -> dict[str, str]:
    """Return the names of kinds by what nearly all of their rows are called: another name for the same values."""
    found = {}
    for kind in {*truth.tolist()} - {"", UNEXPLAINED}:
        names, counts = np.unique(said[truth == kind].astype(str), return_counts=True)
        most = str(names[np.argmax(counts)])
        if counts.max() >= SAME * counts.sum() and most not in ("", UNEXPLAINED):
            found[kind] = most
    return found


def is_opposite(truth: str, said: str) -> bool:
    """Whether something is called forgotten that was counted twice, or the other way round."""
    words = ("forgotten", "counted twice")
    return any(truth.endswith(a) and said.endswith(b) for a, b in (words, words[::-1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant, judge, and print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--tables", type=int, default=320)
    parser.add_argument("--misses", action="store_true", help="print what wrong rows are called instead")
    options = parser.parse_args(arguments)
    planted_rows: Counter[str] = Counter()
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    called: Counter[tuple[str, str]] = Counter()
    opposite, begun = 0, time.process_time()
    for k in range(len(FORMS) if options.small else options.tables):
        planted = plant(1_000_000 * options.seed + k, rules=FORMS)
        said = judged(planted)
        same = synonyms(planted.kinds, said)
        for truth, found in zip(planted.kinds.tolist(), said.tolist(), strict=True):
            if not truth:
                continue
            family, names = family_of(truth), (truth, same.get(truth, truth))
            is_right = found in names or (truth == "another rule" and found.startswith(truth))
            if truth.endswith(" may be wrong"):  # it has few values, or several were typed
                is_right = found.startswith((truth, f"as for {truth.removesuffix(' may be wrong')} ="))
            planted_rows[family] += 1
            right[family] += is_right
            wrong[family] += not is_right and found not in ("", UNEXPLAINED)
            opposite += is_opposite(truth, found)
            if found != truth:
                called[f"{FORMS[k % len(FORMS)].__name__}: {truth}", found] += 1
    print(f"{'planted':26} {'rows':>7} {'right':>8} {'wrong':>8}")
    for family, rows in [*sorted(planted_rows.items()), ("all", planted_rows.total())]:
        hits, misses = (right.total(), wrong.total()) if family == "all" else (right[family], wrong[family])
        print(f"{family:26} {rows:7,} {100 * hits / rows:7.2f}% {100 * misses / rows:7.2f}%")
    print(f"the opposite: {opposite} rows; {time.process_time() - begun:.1f} s")
    if options.misses:
        for (truth, found), rows in called.most_common(100):
            print(f"{rows:7,} {truth} -> {found}")
    total = planted_rows.total()
    return 0 if right.total() >= 0.95 * total and wrong.total() <= 0.01 * total and not opposite else 1


def family_of(kind: str) -> str:
    """Return the kind without its parameter."""
    if " at " in kind:
        return "an old rate"
    for word in ("factor", "off by", "placeholder", "the value of", "the value", "as for"):
        if kind.startswith(word):
            return word
    if "may be wrong" in kind:
        return "a column wrong: factor 10" if "factor" in kind else "a column wrong"
    if kind.endswith("forgotten"):
        return "two forgotten" if " and " in kind else "forgotten"
    if " only" in kind or " taken as " in kind:
        return "a threshold"
    return "counted twice" if kind.endswith("counted twice") else kind


if __name__ == "__main__":
    raise SystemExit(main())
