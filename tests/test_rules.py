"""Rules beyond plain columns, from tables of benchmarks/rule_families.py on seeds of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rule_families
from massart import audit_table
from massart.certificate import Verdict
from massart.rows import Progress
from massart.rules import Columns
from massart.rules.find import TASK
from massart.rules.grow import Settings, grow
from massart.rules.grow.growing import search_rows

pytest.importorskip("pandas")


def audited(family: str, rate: float, seed: int) -> tuple[Any, Any]:
    table = rule_families.table(family, rate, seed, 900)
    return table, audit_table(dict(table.frame), table.ledger.target, budget=600)


@pytest.mark.full(first=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        "product",
        "rate-by-service",
        "power-law",
        "brackets-3",
        "cap",
        "balance",
        "days",
        pytest.param("product-vat", marks=pytest.mark.slow),
        pytest.param("by-weekday", marks=pytest.mark.slow),
    ],
)
def test_the_rule_and_all_wrong_rows_are_found(family: str) -> None:
    table, found = audited(family, 0.25, 77)
    free = ~table.ledger.is_tied[found.design.kept]
    off = np.abs(np.asarray(found.implied) - table.ledger.clean[found.design.kept])
    assert (off[free] <= 0.5 * 10.0**-table.ledger.places + 1e-9).all(), str(found.formula)
    np.testing.assert_array_equal((found.wrong | found.last_place)[free], table.wrong[found.design.kept][free])


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize("family", ["counts", "noise"])
def test_tables_without_a_rule_have_none(family: str) -> None:
    _, found = audited(family, 0.0, 77)
    assert found.certificate.verdict is Verdict.NONE
    assert any("Looked beyond the plain columns" in notice for notice in found.notices)


@pytest.mark.slow
def test_one_branch_of_a_tariff_is_not_certain() -> None:
    """A table whose second rule cannot be found: most rows of one level break the first, and that is said."""
    rng = np.random.default_rng(0)
    n = 900
    hours, plan = rng.integers(1, 40, n) / 4, rng.choice(["a", "b"], n, p=[0.7, 0.3])
    total = np.where(plan == "a", 54 * hours, rng.integers(10, 99_999, n) / 100)
    found = audit_table({"hours": hours, "plan": plan.tolist(), "total": total}, "total", budget=600)
    assert not found.certificate.verdict.certain
    assert "The rule does not hold for plan = b" in found.explanation
    assert (found.n_apart, found.n_wrong) == ((plan == "b").sum(), 0)


@pytest.mark.slow
def test_terms_that_labels_chose_are_confirmed_by_other_rows_only() -> None:
    _, found = audited("brackets-3", 0.1, 5)
    certificate = found.certificate
    assert certificate.n_seen == 540
    assert certificate.verdict in (Verdict.CONFIRMED, Verdict.MAJORITY)  # never PROVEN
    assert "were chosen with the labels of 540 rows" in found.explanation


@pytest.mark.slow
def test_the_search_is_the_same_for_the_same_seed() -> None:
    table = rule_families.table("tiers", 0.25, 3, 400)
    first, again = (audit_table(dict(table.frame), table.ledger.target, budget=600) for _ in range(2))
    assert str(first.formula) == str(again.formula)
    np.testing.assert_array_equal(first.wrong, again.wrong)


@pytest.mark.slow
def test_without_time_nothing_is_found_and_that_is_said() -> None:
    table = rule_families.table("product", 0.25, 3, 200)
    found = audit_table(dict(table.frame), table.ledger.target, budget=1e-9)
    assert any("ended before all was tried" in notice for notice in found.notices)


def test_labels_of_rows_that_are_not_searched_do_not_choose() -> None:
    rng = np.random.default_rng(0)
    x, z = np.round(rng.uniform(1, 100, 400), 1), np.round(rng.uniform(0, 100, 400), 1)
    y = np.round(3 * x + 2 * np.maximum(0, z - 60), 2)
    y[::4] += rng.integers(1, 900, 100)
    columns = Columns({"x": x, "z": z})
    searched = search_rows(len(y), np.random.default_rng(0), Settings())
    hidden, permuted = np.full(len(y), np.nan), y.copy()
    hidden[searched] = y[searched]
    others = np.setdiff1d(np.arange(len(y)), searched)
    permuted[others] = rng.permutation(y[others])
    first, *found = (grow(columns, labels, np.random.default_rng(0), 60.0) for labels in (y, hidden, permuted))
    assert first is not None
    assert first.is_clear
    for other in found:
        assert other is not None
        assert (other.terms, other.link, other.half_width) == (first.terms, first.link, first.half_width)
        np.testing.assert_array_equal(other.coef, first.coef)


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "noise", "n"), [(0.19, 0.20, 1000), (0.19, 0.03, 400)])
def test_an_approximate_relation_is_not_a_rule(slope: float, noise: float, n: int) -> None:
    rng = np.random.default_rng(1)
    x, z = np.round(rng.uniform(1, 500, n), 2), np.round(rng.uniform(1, 500, n), 2)
    y = np.round(slope * x + noise * rng.standard_normal(n), 2)
    assert audit_table({"x": x, "z": z, "y": y}, "y").certificate.verdict < Verdict.PLURALITY


def test_a_failed_search_says_what_to_try_next() -> None:
    rng = np.random.default_rng(2)
    table = {"x": rng.integers(1, 99, 200), "z": rng.normal(size=200).round(2), "y": rng.normal(size=200).round(2)}
    found = audit_table(table, "y")
    assert found.certificate.verdict < Verdict.PLURALITY
    (said,) = [notice for notice in found.notices if notice.startswith("What may help")]
    for way in ("--terms", "--tolerance", "more rows", "--budget"):
        assert way in said


def test_an_interrupt_keeps_the_best_rule_so_far() -> None:
    rng = np.random.default_rng(3)
    x, kind = rng.integers(1, 500, 400), rng.integers(0, 4, 400)
    y = 3 * x + np.where(kind == 2, 2 * x, 0)

    def stop(progress: Progress) -> None:
        if progress.task == TASK:
            raise KeyboardInterrupt

    found = audit_table({"x": x, "kind": kind, "y": y}, "y", callback=stop)
    assert found.n_agree >= 250
    assert any("You stopped it before all was tried" in notice for notice in found.notices)


def test_a_column_with_gaps_that_the_rule_does_not_need_costs_no_rows() -> None:
    rng = np.random.default_rng(2)
    n = 900
    premium, paid, reserve = (np.round(rng.uniform(low, high, n)) for low, high in ((4e4, 2e6), (1e4, 9e5), (1e3, 4e5)))
    wrong = rng.random(n) < 0.2
    ratio = np.round(100 * (paid - reserve * ~wrong) / premium, 1)
    broker = np.where(rng.random(n) < 0.4, np.nan, rng.integers(10, 60, n))
    found = audit_table(
        {"premium": premium, "paid": paid, "reserve": reserve, "broker": broker, "ratio": ratio}, "ratio"
    )
    assert len(found.agree) == n
    assert any("the rule does not need it" in notice for notice in found.notices)
    assert found.certificate.verdict is Verdict.CONFIRMED
    off = np.abs(np.round(100 * (paid - reserve) / premium, 1) - ratio) > 0.15
    np.testing.assert_array_equal(np.asarray(found.wrong)[off], True)
    assert not np.asarray(found.wrong)[~wrong].any()


def test_blanks_that_mean_zero_are_judged_by_the_rule_that_is_known() -> None:
    rng = np.random.default_rng(4)
    n = 1000
    cover, parts = rng.random(n) < 0.28, np.where(rng.random(n) < 0.15, 0.0, np.round(rng.uniform(6, 210, n), 2))
    right = np.where(cover, 15.0, parts + 49)
    wrong = rng.random(n) < 0.13
    pay = np.where(wrong, np.round(rng.uniform(0, 300, n), 2), right)
    blank = np.where(parts == 0, np.nan, parts)
    found = audit_table({"warranty": np.where(cover, "yes", "no"), "parts": blank, "pay": pay}, "pay")
    assert len(found.agree) == n
    assert found.certificate.verdict is Verdict.CONFIRMED
    np.testing.assert_array_equal(found.wrong | found.last_place, wrong)


@pytest.mark.parametrize("error", [0.1, 0.01])
def test_labels_in_halves_are_seen_though_wrong_ones_have_other_digits(error: float) -> None:
    rng = np.random.default_rng(6)
    n = 1500
    points, most = np.round(rng.uniform(6, 60, n)), rng.choice([60, 72, 90], n).astype(float)
    exact = 1 + 5 * points / most
    right = np.floor(2 * exact + 0.5) / 2
    wrong = rng.random(n) < 0.28
    mark = np.where(wrong, np.round(exact / error) * error, right)
    found = audit_table({"points": points, "most": most, "mark": np.round(mark, 2)}, "mark")
    assert found.certificate.verdict is Verdict.MAJORITY
    np.testing.assert_array_equal(found.wrong | found.last_place, np.abs(mark - right) > 1e-9)


def test_a_flag_and_a_range_are_a_segment() -> None:
    """A cap that holds for members alone: 6 % of the rows, which the rule without it gets wrong."""
    rng = np.random.default_rng(8)
    n = 1200
    member, kg = rng.random(n) < 0.3, np.round(rng.uniform(1, 100, n), 1)
    cost = np.round(0.85 * np.where(member & (kg > 80), 80, kg), 2)
    columns = {"member": np.where(member, "yes", "no"), "kg": kg, "cost": cost}
    found = audit_table(columns, "cost", terms="columns")
    assert found.certificate.verdict is Verdict.PLURALITY
    assert found.segment is not None
    assert "member = yes and kg from" in found.segment.where


def test_a_quotient_by_a_column_with_blanks_is_no_rule_of_the_rows_with_blanks() -> None:
    """Where a blank is taken for zero, the terms that are known divide by it."""
    rng = np.random.default_rng(3)
    n = 1200
    cost, life = np.round(rng.uniform(100, 9000, n), 2), rng.integers(2, 40, n).astype(float)
    right = np.round(cost / life, 2)
    wrong = rng.random(n) < 0.2
    blank = rng.random(n) < 0.15
    share = np.where(blank, 0.0, np.where(wrong, np.round(10 * right, 2), right))
    found = audit_table({"cost": cost, "life": np.where(blank, np.nan, life), "share": share}, "share")
    assert str(found.formula) == "share = cost / life"
    assert len(found.agree) == n - blank.sum()
    np.testing.assert_array_equal(found.wrong, wrong[~blank])
