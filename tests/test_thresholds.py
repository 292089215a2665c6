"""Thresholds that some rows chose: all rows move them, and what is certain accuses no right row."""

from __future__ import annotations

import numpy as np
import pytest

import massart
from massart.rows import Link
from massart.rules import Columns, Thresholds, parse_terms

KINDS = ("free", "step", "and", "sum", "date", "hinge")
LAST = np.datetime64("2023-11-17")


def table(kind: str, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the columns of a table with a threshold in its rule, and the right labels."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.choice([250, 400, 900]))
    amount, pieces = np.round(rng.uniform(5, 300, n), 2), rng.integers(1, 40, n).astype(float)
    children = rng.integers(0, 13, n).astype(float)
    day = np.datetime64("2023-01-01") + rng.integers(0, 700, n).astype("timedelta64[D]")
    limit, rate = float(np.round(rng.uniform(80, 220))), float(rng.choice([1.25, 1.4, 2.3, 3.15]))
    right = {
        "free": np.where(amount >= limit, 0, 4.3 + rate * pieces),
        "step": np.where(amount >= limit, 7.5, 4.3) + rate * pieces,
        "and": rate * amount * np.where((pieces >= 12) & (children >= 4), 0.85, 1),
        "sum": (7.5 * pieces + 4 * children) * np.where(pieces + children >= 25, 0.85, 1),
        "date": np.where(day >= LAST, 1.1 * rate, rate) * amount + 3,
        "hinge": rate * amount + 0.35 * np.maximum(amount - limit, 0) + 2 * pieces,
    }[kind]
    right = np.round(right, 2)
    wrong = rng.random(n) < (0.0, 0.1, 0.25, 0.4)[seed % 4]
    ways = (right * 1.19, right + rng.choice([1, -1, 10, -10, 0.9, 9], n), rng.permutation(right))
    labels = np.where(wrong, np.round(ways[seed % 3], 2), right)
    columns = {"amount": amount, "pieces": pieces, "children": children, "day": day.astype(str), "y": labels}
    return columns, right


def n_accused(audit: massart.Audit, columns: dict[str, np.ndarray], right: np.ndarray) -> int:
    """Return how many right rows are called wrong."""
    return int(np.count_nonzero(np.asarray(audit.wrong) & (np.abs(columns["y"] - right) < 1e-9)))


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 10), marks=pytest.mark.slow)])
def test_what_is_certain_accuses_no_right_row(seeds: range) -> None:
    claims = 0
    for kind in KINDS:
        for seed in seeds:
            columns, right = table(kind, seed)
            audit = massart.audit_table(columns, "y")
            claims += audit.certificate.verdict.certain
            assert not audit.certificate.verdict.certain or n_accused(audit, columns, right) == 0, (kind, seed)
    assert claims >= len(seeds) * len(KINDS) // 3


def test_a_threshold_goes_where_the_rows_put_it_that_did_not_choose_it() -> None:
    rng = np.random.default_rng(7)
    weight, order = np.round(rng.uniform(1, 30, 384), 1), np.round(rng.uniform(5, 200, 384), 2)
    order[:8] = [96.1, 96.9, 97.2, 98.32, 98.4, 99.1, 99.5, 99.9]
    columns = {"order": order, "weight": weight, "y": np.where(order >= 97, 0, np.round(4.3 + 1.4 * weight, 2))}
    audit = massart.audit_table(columns, "y")
    assert audit.certificate.verdict.certain
    assert not np.asarray(audit.wrong).any()


@pytest.mark.parametrize(
    ("condition", "contested"), [("b + c >= 24", None), ("b + 0.533 * c >= 20.5", "b + 0.533 * c")]
)
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_a_condition_is_contested_where_rows_crowd_at_it_that_follow_its_other_side(
    condition: str, contested: str | None, rate: float
) -> None:
    rng = np.random.default_rng(3)
    b, c = rng.integers(1, 40, 900).astype(float), rng.integers(0, 13, 900).astype(float)
    full = 7.5 * b + 4 * c
    forgotten = np.where(rng.random(900) < rate, 1.0, 0.85)  # errors that are the other side, but anywhere
    y = np.round(full * np.where(b + c >= 25, forgotten, 1), 2)
    columns = Columns({"b": b, "c": c})
    terms = parse_terms(f"b, c, b * ({condition}), c * ({condition})", columns)
    coef = np.array([7.5, 4, -1.125, -0.6, 0])
    found = Thresholds.of(columns, terms, coef, Link(), y, 0.005)
    assert str(found.contested) == str(contested)
    assert (str(found.terms[2]) == "b * (b + c >= 25)") == (contested is None)
    assert found.shares > 1


@pytest.mark.parametrize("noise", [0.15, 0.3])
def test_halves_that_are_rounded_noise_follow_no_rule(noise: float) -> None:
    rng = np.random.default_rng(0)
    a, b = np.round(rng.uniform(0, 10, 600), 1), rng.integers(0, 8, 600).astype(float)
    y = np.round(2 * ((0.5 * a if noise < 0.2 else 0) + 0.25 * b + noise * rng.standard_normal(600))) / 2
    audit = massart.audit_table({"a": a, "b": b, "y": y}, "y")
    assert audit.certificate.verdict.name in ("NOISY", "NONE")


def test_errors_of_one_side_do_not_contest_a_threshold_that_has_few_values_on_it() -> None:
    """Most days before a flight are many; whoever books three to seven days before pays the price of the day."""
    rng = np.random.default_rng(5)
    days, price = rng.integers(0, 61, 1500).astype(float), np.round(rng.uniform(20, 400, 1500), 2)
    share = np.select([days < 3, days < 8, days < 22], [0.9, 0.6, 0.25], 0.1)
    before = np.select([days < 3, days < 8, days < 22], [0.9, 0.9, 0.6], 0.25)  # as for the bracket before
    wrong = (rng.random(1500) < 0.3) & (share != before)
    audit = massart.audit_table(
        {"days": days, "price": price, "fee": np.round(np.where(wrong, before, share) * price, 2)}, "fee"
    )
    assert audit.certificate.verdict.name in ("MAJORITY", "CONFIRMED")
    np.testing.assert_array_equal(audit.wrong, wrong & (np.abs(np.round(before * price, 2) - audit.given) < 1e-9))
