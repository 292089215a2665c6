"""Rules beyond plain columns, from tables of benchmarks/rule_families.py on seeds of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rule_families
from massart import audit_table
from massart.certificate import Verdict

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
