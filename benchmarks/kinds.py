"""Errors of every kind planted in tables: how many wrong rows are given the right kind, and how many a wrong one.

    python benchmarks/kinds.py --seed 1
    python benchmarks/kinds.py --small        # as CI runs it

A table follows one of five rules; three rows in ten are wrong, in four to seven ways. A row that nothing explains (its
value was drawn, or it was changed a little) counts as right if it is called unexplained. Exit status 1 unless 95 % of
the wrong rows are given the right kind and at most 1 % a wrong one.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart import audit_table

WRONG = 0.3
UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Rule:
    """``target = round(sum of coefs times columns + constant)``."""

    columns: dict[str, NDArray[Any]]
    coefs: dict[str, float]
    constant: float
    places: int | None

    @property
    def parts(self) -> dict[str, NDArray[Any]]:
        """What is added up."""
        n = len(next(iter(self.columns.values())))
        parts = {name: coef * self.columns[name] for name, coef in self.coefs.items()}
        return parts | {"constant": np.full(n, self.constant)}

    def write(self, values: NDArray[Any]) -> NDArray[Any]:
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


RULES: tuple[Callable[[np.random.Generator, int], Rule], ...] = (ledger, tariff, counts, balance, physics)


class Planter:
    """Makes errors in a table, each row once."""

    def __init__(self, rule: Rule, rng: np.random.Generator) -> None:
        self.rule, self.rng = rule, rng
        self.parts = rule.parts
        self.exact = np.sum(list(self.parts.values()), axis=0)
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

    def _give(self, kind: str, values: NDArray[Any], size: int, allowed: NDArray[Any] | None = None) -> None:
        """Give so many rows these values, where they differ by more than a last place and nothing was planted."""
        written = self.rule.write(values)
        free = (self.kinds == "") & (np.abs(written - self.implied) > 2.5 * self.unit + 1e-9)
        free &= True if allowed is None else allowed
        rows = np.flatnonzero(free)
        rows = self.rng.choice(rows, min(size, len(rows)), replace=False)
        self.given[rows] = written[rows]
        self.kinds[rows] = kind

    def _factor(self, size: int) -> None:
        factor = float(self.rng.choice([10, 100, 1000, 0.1, 0.01, 1.19, 1.07, 2.2046]))
        allowed = np.abs(self.implied * factor) > 20 * self.unit
        self._give(f"factor {factor:g}", self.implied * factor, size, allowed)

    def _sign(self, size: int) -> None:
        self._give("sign", -self.implied, size)

    def _forgotten(self, size: int) -> None:
        name = str(self.rng.choice(list(self.rule.coefs)))
        self._give(f"{name} forgotten", self.exact - self.parts[name], size, np.abs(self.parts[name]) > 0)

    def _twice(self, size: int) -> None:
        name = str(self.rng.choice(list(self.rule.coefs)))
        self._give(f"{name} counted twice", self.exact + self.parts[name], size, np.abs(self.parts[name]) > 0)

    def _two_forgotten(self, size: int) -> None:
        names = list(self.rule.coefs)
        i, j = sorted(self.rng.choice(len(names), 2, replace=False))
        both = (self.parts[names[i]] != 0) & (self.parts[names[j]] != 0)
        values = self.exact - self.parts[names[i]] - self.parts[names[j]]
        self._give(f"{names[i]} and {names[j]} forgotten", values, size, both)

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


PLAIN: tuple[str, ...] = ("factor", "sign", "forgotten", "twice", "two_forgotten", "constant", "before", "after")
PLAIN += ("swapped", "zero", "placeholder", "value")
OF_DIGITS = ("digit", "digits")
NOISE = ("drawn", "changed")


def plant(seed: int, n: int = 2_000) -> Planted:
    """Return a table with errors of four to seven kinds."""
    rng = np.random.default_rng(seed)
    planter = Planter(RULES[seed % len(RULES)](rng, n), rng)
    names = list(PLAIN if planter.rule.places is None else PLAIN + OF_DIGITS)
    known = rng.choice(names, rng.integers(3, 6), replace=False)
    chosen = [*known, *rng.choice(NOISE, rng.integers(1, 3), replace=False)]
    shares = rng.dirichlet(np.full(len(chosen), 4.0))
    for name, share in zip(chosen, shares, strict=True):
        planter.make(str(name), int(WRONG * n * share))
    return planter.planted


def judged(planted: Planted) -> NDArray[Any]:
    """Return the kind that an audit gives to each row."""
    found = audit_table({**planted.rule.columns, "target": planted.given}, "target")
    return found.kinds.of(np.arange(len(planted.given)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant, judge, and print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--tables", type=int, default=100)
    options = parser.parse_args(arguments)
    planted_rows: Counter[str] = Counter()
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    begun = time.perf_counter()
    for k in range(10 if options.small else options.tables):
        planted = plant(1_000_000 * options.seed + k)
        found = judged(planted)
        for truth, said in zip(planted.kinds[planted.kinds != ""], found[planted.kinds != ""], strict=True):
            family = family_of(truth)
            planted_rows[family] += 1
            right[family] += truth == said
            wrong[family] += said not in (truth, UNEXPLAINED)
    print(f"{'planted':26} {'rows':>7} {'right':>8} {'wrong':>8}")
    for family, rows in [*sorted(planted_rows.items()), ("all", planted_rows.total())]:
        hits, misses = (right.total(), wrong.total()) if family == "all" else (right[family], wrong[family])
        print(f"{family:26} {rows:7,} {100 * hits / rows:7.2f}% {100 * misses / rows:7.2f}%")
    print(f"{time.perf_counter() - begun:.1f} s")
    total = planted_rows.total()
    return 0 if right.total() >= 0.95 * total and wrong.total() <= 0.01 * total else 1


def family_of(kind: str) -> str:
    """Return the kind without its parameter."""
    for word in ("factor", "off by", "placeholder", "the value"):
        if kind.startswith(word):
            return word
    if kind.endswith("forgotten"):
        return "two forgotten" if " and " in kind else "forgotten"
    return "counted twice" if kind.endswith("counted twice") else kind


if __name__ == "__main__":
    raise SystemExit(main())
