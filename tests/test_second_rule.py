"""A second rule among the wrong rows: what happened to them, where nothing else did."""

from __future__ import annotations

import json

import numpy as np
import pytest

from massart import Audit, audit_table
from massart.audit import summary

pa = pytest.importorskip("pyarrow")


def sensor(seed: int = 18, n: int = 3000, junk: float = 0.1) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return readings in Fahrenheit, of which some are in Celsius by another formula, and which are."""
    rng = np.random.default_rng(seed)
    adc, humidity = rng.integers(300, 900, n).astype(float), rng.uniform(20, 90, n).round(1)
    kind = rng.choice(3, n, p=[0.72 - junk, 0.28, junk])
    temperature = np.choose(kind, [0.18 * adc - 4, 0.1 * adc - 20, rng.uniform(0, 200, n)]).round(2)
    table = {"adc": adc, "humidity": humidity, "station": rng.choice(["A", "B"], n), "temp_f": temperature}
    return table, kind == 1


def audited(table: dict[str, np.ndarray], target: str) -> Audit:
    return audit_table(pa.table(table), target)


def test_the_rule_of_the_wrong_rows_is_what_happened_to_them():
    table, celsius = sensor()
    found = audited(table, "temp_f")
    assert str(found.formula) == "temp_f = 0.18 * adc - 4"
    assert found.second_rule is not None
    assert str(found.second_rule.formula) == "temp_f = 0.1 * adc - 20"
    told = found.kinds.of(np.arange(3000)) == "another rule: 0.1 * adc - 20"
    assert np.array_equal(np.flatnonzero(told), found.second_rule.rows)
    assert told[celsius & found.wrong].mean() > 0.99
    assert celsius[told].mean() > 0.99
    kind = found.kinds.kinds[0]
    assert kind.label == "another rule: 0.1 * adc - 20"
    assert kind.rows == len(found.second_rule.rows) >= found.second_rule.test.needed
    assert sum(kind.rows for kind in found.kinds.kinds) == found.n_wrong + found.n_last_place
    assert json.loads(json.dumps(summary(found)))["second_rule"]["formula"] == "temp_f = 0.1 * adc - 20"


def test_it_does_not_depend_on_the_order_of_the_rows():
    table, _ = sensor(n=1000)
    order = np.random.default_rng(0).permutation(1000)
    one, other = audited(table, "temp_f"), audited({name: cells[order] for name, cells in table.items()}, "temp_f")
    assert one.second_rule is not None
    assert other.second_rule is not None
    assert str(one.second_rule.formula) == str(other.second_rule.formula)
    assert set(order[other.second_rule.rows]) == set(one.second_rule.rows)


def test_what_is_said_in_other_words_is_no_second_rule():
    rng = np.random.default_rng(1)
    qty, price = rng.integers(1, 30, 1500).astype(float), rng.uniform(1, 90, 1500).round(2)
    right = 3 * qty + 2 * price + 11
    told = 0
    for change in (10 * right, right + 25, right - 2 * price, -right, 1.19 * right):
        total = np.where(rng.random(1500) < 0.25, change, right).round(2)
        found = audited({"qty": qty, "price": price, "total": total}, "total")
        told += sum(kind.rows for kind in found.kinds.kinds if kind.explains)
        assert found.second_rule is None
    assert told > 1000


@pytest.mark.parametrize("law", ["uniform", "normal", "Cauchy", "two values"])
def test_junk_has_no_rule(law):
    rng = np.random.default_rng(2)
    a, b = rng.uniform(0, 100, (2, 1200)).round(2)
    errors = {
        "uniform": rng.uniform(-300, 300, 1200),
        "normal": 30 * rng.standard_normal(1200),
        "Cauchy": 30 * rng.standard_cauchy(1200),
        "two values": rng.choice([17.31, -4.02], 1200),
    }[law]
    y = (2 * a + 3 * b + 7 + np.where(rng.random(1200) < 0.3, errors, 0)).round(2)
    found = audited({"a": a, "b": b, "y": y}, "y")
    assert found.is_certain
    assert found.n_wrong > 300
    assert found.second_rule is None


def test_few_wrong_rows_and_noise_have_none():
    rng = np.random.default_rng(3)
    a = rng.uniform(0, 100, 600).round(2)
    few = (2 * a + 7).round(2)
    few[:8] = 5 * a[:8]
    assert audited({"a": a, "y": few}, "y").second_rule is None
    noisy = 2 * a + rng.standard_normal(600)
    noisy[:60] = 5 * a[:60]
    assert audited({"a": a, "y": noisy}, "y").second_rule is None
