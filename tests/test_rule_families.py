"""The tables of the benchmark of rules are what they are called. What massart says of them is not tested here."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rule_families
import rules
from rule_families import NO_RULES, RATES, RULES, WAYS, FloatArray, Ledger, Table

pytestmark = pytest.mark.slow  # hundreds of tables of a benchmark

WRITTEN_OUT = (
    "product",
    "product-vat",
    "bmi",
    "percentage",
    "share",
    "power-law",
    "cap",
    "cap-sum",
    "floor",
    "free-above",
)
"""Families whose truth is an expression in the columns."""

LINEAR = ("linear", "day-fee", "days", "due-date")
"""Families whose rule is a sum of columns, dates taken as numbers."""

EVERY = (*RULES, *NO_RULES)

DISTRACTORS = {name for seed in range(50) for name in rule_families._distractors(np.random.default_rng(seed), 3)}


def rows_of(ledger: Ledger) -> list[dict[str, Any]]:
    names, columns = list(ledger.columns), [values.tolist() for values in ledger.columns.values()]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def numbers_of(ledger: Ledger) -> FloatArray:
    """The columns as numbers: dates as days, few texts as indicators, many not at all."""
    found = [np.ones(len(ledger.exact))]
    for name, values in ledger.columns.items():
        if values.dtype.kind != "U":
            found.append(values.astype(np.float64))
        elif name in ("issued", "returned", "date", "arrival", "invoiced", "entered"):
            found.append(values.astype("datetime64[D]").astype(np.float64))
        elif len(levels := np.unique(values)) <= 10:
            found += [(values == level).astype(np.float64) for level in levels]
    return np.column_stack(found)


@pytest.mark.parametrize("family", EVERY)
def test_a_table_depends_on_its_seed_alone_and_its_ledger_not_on_the_rate(family: str) -> None:
    some, again, more, other = (
        rule_families.table(family, rate, seed) for rate, seed in [(0.1, 3)] * 2 + [(0.4, 3), (0.1, 4)]
    )
    for name, values in some.frame.items():
        np.testing.assert_array_equal(values, again.frame[name])
    np.testing.assert_array_equal(some.ledger.exact, more.ledger.exact)
    assert not np.array_equal(some.ledger.exact, other.ledger.exact)


@pytest.mark.parametrize("family", EVERY)
def test_columns_have_the_same_rows_and_some_have_nothing_to_do_with_the_rule(family: str) -> None:
    for seed in range(5):
        ledger = rule_families.table(family, 0.0, seed).ledger
        assert {len(values) for values in ledger.columns.values()} == {len(ledger.exact)}
        assert rule_families.FEWEST <= len(ledger.exact) <= rule_families.MOST
        assert ledger.target not in ledger.columns
        assert all(values.dtype.kind in "Uif" for values in ledger.columns.values())
        assert bool(ledger.truth) == (family in RULES)
        assert len(DISTRACTORS & set(ledger.columns)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("family", RULES)
def test_values_are_wrong_as_often_as_said_and_differ_from_the_right_ones(family: str) -> None:
    for rate in RATES:
        tables = [rule_families.table(family, rate, seed) for seed in range(len(WAYS) + 1)]
        n_rows, n_wrong = sum(len(t.labels) for t in tables), sum(int(t.wrong.sum()) for t in tables)
        assert abs(n_wrong - rate * n_rows) <= 4.5 * np.sqrt(rate * (1 - rate) * n_rows)
        assert {t.way for t in tables} == ({*WAYS, "mixture"} if rate else {"none"})
        for table in tables:
            np.testing.assert_array_equal(table.labels[~table.wrong], table.ledger.clean[~table.wrong])
            np.testing.assert_array_equal(table.labels, np.round(table.labels, table.ledger.places))


@pytest.mark.parametrize("way", [*WAYS, "mixture"])
@pytest.mark.parametrize("family", RULES)
def test_a_way_of_going_wrong_spares_no_row_that_it_meets(family: str, way: str) -> None:
    ledger = rule_families.table(family, 0.0, 11).ledger
    assert Table(ledger, rule_families.spoiled(np.random.default_rng(0), ledger, 1.0, way), way).wrong.all()


@pytest.mark.parametrize("family", RULES)
def test_what_forgets_a_term_is_another_rule(family: str) -> None:
    for seed in range(20):
        ledger = rule_families.table(family, 0.0, seed).ledger
        assert ledger.forgotten
        for values in ledger.forgotten:
            assert np.mean(np.abs(values - ledger.exact) > 10.0**-ledger.places / 2) > 0.1


@pytest.mark.parametrize("family", RULES)
def test_only_linear_families_are_sums_of_their_columns(family: str) -> None:
    for seed in range(10):
        ledger = rule_families.table(family, 0.0, seed).ledger
        X = numbers_of(ledger)
        left = ledger.exact - X @ np.linalg.lstsq(X, ledger.exact, rcond=None)[0]
        fits = np.abs(left) <= 10.0**-ledger.places / 2
        if family in LINEAR:
            assert fits.all()
        elif family != "plan-code":  # its second form is a sum, if the code is taken for a category
            assert fits.mean() < 0.5


@pytest.mark.parametrize("family", RULES)
def test_no_column_is_the_target(family: str) -> None:
    for seed in range(10):
        ledger = rule_families.table(family, 0.0, seed).ledger
        numbers = [values for values in ledger.columns.values() if values.dtype.kind != "U"]
        assert all(np.mean(values == ledger.clean) < 0.5 for values in numbers)


@pytest.mark.parametrize("family", WRITTEN_OUT)
def test_the_truth_as_written_gives_the_values(family: str) -> None:
    for seed in range(6):
        ledger = rule_families.table(family, 0.0, seed, 300).ledger
        found = [eval(ledger.truth, {"min": min, "max": max}, row) for row in rows_of(ledger)]
        np.testing.assert_allclose(ledger.exact, found, rtol=1e-9, atol=1e-9)


def test_brackets_add_up_what_each_rate_takes() -> None:
    for k in (2, 3, 4, 5):
        ledger = rule_families.table(f"brackets-{k}", 0.0, k).ledger
        income, children = ledger.columns["income"], ledger.columns["children"]
        rates, rest = ledger.truth.split(" of income from ")
        cuts, deduction = rest.split(" on, less ")
        edges = [*eval(cuts), np.inf]
        tax = sum(
            rate * (np.clip(income, low, high) - low)
            for rate, low, high in zip(eval(rates), edges, edges[1:], strict=False)
        )
        assert len(eval(rates)) == k
        np.testing.assert_allclose(ledger.exact, tax - float(deduction.split()[0]) * children)
        shares = np.diff(np.searchsorted(np.sort(income), edges)) / len(income)
        assert shares.min() > 0.5 / k


def test_weekdays_and_months_are_those_of_the_calendar() -> None:
    for seed in range(6):
        ledger = rule_families.table("by-weekday", 0.0, seed, 300).ledger
        rates = eval(ledger.truth.split("first: ")[1])
        found = [row["hours"] * rates[date.fromisoformat(row["date"]).weekday()] for row in rows_of(ledger)]
        np.testing.assert_allclose(ledger.exact, found)
        ledger = rule_families.table("by-month", 0.0, seed, 300).ledger
        prices, cleaning = eval(ledger.truth.split("first: ")[1]), float(ledger.truth.split("+ ")[1].split(",")[0])
        found = [row["nights"] * prices[date.fromisoformat(row["arrival"]).month - 1] for row in rows_of(ledger)]
        np.testing.assert_allclose(ledger.exact, np.add(found, cleaning))


def test_dates_are_written_as_dates_and_differ_as_said() -> None:
    table = rule_families.table("due-date", 0.0, 5)
    after = int(table.ledger.truth.split()[2])
    for invoiced, due in zip(table.frame["invoiced"].tolist(), table.frame["due"].tolist(), strict=True):
        assert (date.fromisoformat(due) - date.fromisoformat(invoiced)).days == after
    ledger = rule_families.table("days", 0.0, 5).ledger
    issued, returned = (ledger.columns[name].astype("datetime64[D]") for name in ("issued", "returned"))
    np.testing.assert_array_equal(ledger.exact, (returned - issued).astype(np.int64) + int(ledger.truth.split()[-1]))


@pytest.mark.parametrize("family", ["balance", "balance-by-account"])
def test_a_balance_is_the_previous_one_and_what_came_and_went(family: str) -> None:
    ledger = rule_families.table(family, 0.0, 2).ledger
    moved = ledger.columns["in"] - ledger.columns["out"]
    account = ledger.columns.get("account", np.zeros(len(moved)))
    for name in np.unique(account):
        rows = account == name
        np.testing.assert_allclose(np.diff(ledger.exact[rows]), moved[rows][1:], atol=1e-6)
    assert len(np.unique(account)) == (1 if family == "balance" else len(eval(ledger.truth.split("from ")[1])))


@pytest.mark.parametrize(("family", "share"), [("groups-60-40", 0.6), ("groups-50-50", 0.5)])
def test_groups_have_their_shares_and_rules_of_their_own(family: str, share: float) -> None:
    ledger = rule_families.table(family, 0.0, 1, 3_000).ledger
    name, _, level = ledger.truth.split(" if ")[1].split(" else ")[0].split()
    is_first = ledger.columns[name] == level
    assert abs(is_first.mean() - share) < 0.05
    rules = ledger.truth.split(" if ")[0], ledger.truth.split(" else ")[1]
    found = [eval(rules[int(not first)], {}, row) for first, row in zip(is_first, rows_of(ledger), strict=True)]
    np.testing.assert_allclose(ledger.exact, found)


def test_a_half_is_rounded_up_and_known_as_a_tie() -> None:
    ledger = Ledger({}, "y", np.array([1.005, 2.675, -1.005, 1.0049, 3.0]))
    np.testing.assert_array_equal(ledger.clean, [1.01, 2.68, -1.0, 1.0, 3.0])
    np.testing.assert_array_equal(ledger.is_tied, [True, True, True, False, False])


# The score.


def oracle(table: Table, implied: FloatArray | None = None, verdict: str = "CONFIRMED", **changes: Any) -> Any:
    """What a perfect audit says, or one that implies something else."""
    implied = table.ledger.clean if implied is None else implied
    facts = {
        "implied": implied,
        "wrong": table.wrong,
        "last_place": np.zeros(len(implied), dtype=np.bool_),
        "design": SimpleNamespace(kept=np.arange(len(implied))),
        "certificate": SimpleNamespace(verdict=SimpleNamespace(name=verdict)),
        "formula": table.ledger.truth,
    }
    return SimpleNamespace(**(facts | changes))


def scored(family: str, table: Table, audit: Any) -> rules.Record:
    return rules.score(rules.Task(family, 0.25, 1), table, audit, 0.0)


@pytest.mark.parametrize("family", RULES)
def test_a_perfect_audit_passes_rounded_or_not(family: str) -> None:
    table = rule_families.table(family, 0.25, 1)
    for implied in (table.ledger.clean, table.ledger.exact, np.round(table.ledger.exact, table.ledger.places)):
        found = scored(family, table, oracle(table, implied))
        assert found.both
        assert found.certain
        assert not found.false
    off_by_one = np.abs(table.labels - table.ledger.clean) < 1.5 * 10.0**-table.ledger.places
    apart = {"wrong": table.wrong & ~off_by_one, "last_place": table.wrong & off_by_one}
    assert scored(family, table, oracle(table, **apart)).both


@pytest.mark.parametrize("family", RULES)
def test_one_unit_on_one_row_is_not_the_rule(family: str) -> None:
    table = rule_families.table(family, 0.25, 1)
    row = int(np.flatnonzero(~table.ledger.is_tied)[0])
    implied = table.ledger.clean
    implied[row] += 10.0**-table.ledger.places
    found = scored(family, table, oracle(table, implied))
    assert not found.rule
    assert found.rows
    assert not found.false  # one row is not one in 200
    assert scored(family, table, oracle(table, table.ledger.clean * np.nan)).false


def test_what_is_certain_and_wrong_is_false_and_nothing_else_is() -> None:
    table = rule_families.table("linear", 0.25, 1)
    implied = table.ledger.clean + 1
    assert scored("linear", table, oracle(table, implied)).false
    assert scored("linear", table, oracle(table, implied, "PROVEN")).false
    assert not scored("linear", table, oracle(table, implied, "MAJORITY")).false
    none = rule_families.table("noise", 0.0, 1)
    assert scored("noise", none, oracle(none)).false
    assert not scored("noise", none, oracle(none, verdict="NONE")).false


def test_wrong_rows_count_one_by_one() -> None:
    table = rule_families.table("linear", 0.25, 1)
    for row, missed in ((np.flatnonzero(table.wrong)[0], 1), (np.flatnonzero(~table.wrong)[0], 0)):
        called = table.wrong.copy()
        called[row] = not called[row]
        found = scored("linear", table, oracle(table, wrong=called))
        assert found.rule
        assert not found.rows
        assert (found.missed, found.accused) == (missed, 1 - missed)


def test_rows_that_are_not_judged_are_no_way_out() -> None:
    table = rule_families.table("linear", 0.25, 1)
    some = np.arange(len(table.labels) // 2)
    short = {
        name: values[some] for name, values in (("wrong", table.wrong), ("last_place", np.zeros_like(table.wrong)))
    }
    audit = oracle(table, table.ledger.clean[some], **short, design=SimpleNamespace(kept=some))
    found = scored("linear", table, audit)
    assert not found.rule
    assert found.missed == table.wrong[len(some) :].sum()


def test_dates_are_scored_as_dates() -> None:
    table = rule_families.table("due-date", 0.25, 1)
    days = table.ledger.clean.astype(np.int64).astype("datetime64[D]")
    assert scored("due-date", table, oracle(table, days)).both
    assert not scored("due-date", table, oracle(table, days + 1)).rule


def test_limits_of_a_share_are_those_of_wilson() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    for k, n in ((0, 10), (7, 10), (10, 10), (950, 1_000)):
        theirs = scipy_stats.binomtest(k, n).proportion_ci(method="wilson")
        np.testing.assert_allclose(rules.wilson(k, n), theirs, atol=1e-4)


def test_a_journal_is_gone_on_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(rules, "audited", lambda table, limit: seen.append(table) or oracle(table))
    arguments = ["--families", "bmi,cap", "--tables", "2", "--rates", "0,0.4", "--journal", str(tmp_path / "j")]
    assert rules.main(arguments) == 0
    first = capsys.readouterr().out
    assert len(seen) == 8
    assert "4/4" in first
    assert rules.main(arguments) == 0
    assert len(seen) == 8
    assert capsys.readouterr().out == first


def test_an_error_is_a_score(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(rules, "audited", lambda table, limit: 1 / 0)
    assert rules.main(["--small", "--families", "bmi"]) == 0
    assert "0/1" in capsys.readouterr().out
    found = rules.attempt(rules.Task("bmi", 0.4, 0))
    assert (found.verdict, found.both) == ("CRASHED", False)
