"""Which columns follow a rule of which others: laws of ``scan_table``, and ``massart scan`` as a user runs it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")

from massart import scan_table
from massart.audit import Scan, columns_of
from massart.audit.scan.identities import Identity
from massart.certificate import Verdict
from massart.rules import Term, column, number
from massart.rules.terms import power
from massart.tables import TableError

N = 300


def accounts(seed: int = 0, wrong: float = 0.2) -> dict[str, Any]:
    """Parts, a subtotal, and a total of which some are wrong."""
    rng = np.random.default_rng(seed)
    food, rent, fares = (rng.integers(100, 99_999, N) / 100 for _ in range(3))
    table = {"food": food, "rent": rent, "fares": fares, "living": food + rent}
    total = np.round(food + rent + fares, 2)
    hit = rng.choice(N, int(wrong * N), replace=False)
    total[hit] += rng.integers(1, 9_999, len(hit)) / 100
    return {name: np.round(values, 2) for name, values in table.items()} | {"total": np.round(total, 2)}


def rules(scan: Scan) -> set[str]:
    return {str(audit.formula) for audit in (*scan.identities, *scan.copies)}


def columns(scan: Scan) -> set[frozenset[str]]:
    return {frozenset(columns_of(audit)) for audit in (*scan.identities, *scan.copies)}


def test_subtotals_and_totals_are_untangled() -> None:
    scan = scan_table(accounts())
    assert rules(scan) == {"living = food + rent", "total = fares + living"}
    wrong = {audit.formula.target: audit.n_wrong for audit in scan.identities}
    assert wrong == {"living": 0, "total": 60}
    assert all(audit.is_certain for audit in scan.identities)
    assert scan.without_rule == ()


@pytest.mark.slow
def test_each_identity_is_shown_once_in_any_order_of_the_columns() -> None:
    table = accounts()
    for order in (list(table), list(table)[::-1], ["total", "rent", "living", "fares", "food"]):
        found = scan_table({name: table[name] for name in order})
        assert columns(found) == {frozenset({"living", "food", "rent"}), frozenset({"total", "living", "fares"})}
        assert {audit.formula.target for audit in found.identities} == {"living", "total"}


@pytest.mark.slow
def test_a_difference_that_two_fifths_of_the_rows_break_is_found() -> None:
    rng = np.random.default_rng(3)
    start = rng.integers(0, 2_000, 2_000)
    length = rng.integers(1, 500, 2_000)
    end = start + length + np.where(rng.random(2_000) < 0.38, 40 * rng.integers(1, 5, 2_000), 0)
    noise = {f"other {k}": rng.normal(size=2_000) for k in range(5)}
    scan = scan_table({"start": start, "end": end, "length": length} | noise)
    assert columns(scan) == {frozenset({"start", "end", "length"})}


@pytest.mark.slow
def test_products_ratios_squares_and_logarithms_are_found() -> None:
    rng = np.random.default_rng(8)
    n = 500
    quantity, price = rng.integers(1, 60, n), rng.integers(100, 9_999, n) / 100
    height, weight = np.round(rng.uniform(1.4, 2.0, n), 2), np.round(rng.uniform(45, 120, n), 1)
    amount = np.round(quantity * price, 2)
    amount[::4] += 11.0
    table = {
        "quantity": quantity,
        "price": price,
        "amount": amount,
        "height": height,
        "weight": weight,
        "bmi": np.round(weight / height**2, 2),
        "log_price": np.log(price),
        "quantity_squared": quantity**2,
    }
    scan = scan_table(table)
    assert rules(scan) == {
        "amount = quantity * price",
        "bmi = weight / height^2",
        "log_price = log(price)",
        "quantity_squared = quantity^2",
    }
    assert {audit.formula.target: audit.n_wrong for audit in scan.identities}["amount"] == n // 4


def test_a_rate_is_judged_where_its_denominator_is_not_zero() -> None:
    rng = np.random.default_rng(9)
    n = 600
    games = rng.integers(0, 80, n) * (rng.random(n) < 0.9)
    singles, doubles, runs = (rng.binomial(games, share) for share in (0.4, 0.2, 0.1))
    with np.errstate(all="ignore"):
        points = np.round((singles + 2 * doubles + 4 * runs) / games, 3)
    points[games == 0] = 0.0
    table = {"games": games, "singles": singles, "doubles": doubles, "runs": runs, "points": points}
    (audit,) = scan_table(table).identities
    assert set(columns_of(audit)) == set(table)
    assert audit.n_wrong == 0
    assert audit.design.kept.tolist() == np.flatnonzero(games).tolist()


@pytest.mark.slow
def test_a_rare_term_is_no_error() -> None:
    rng = np.random.default_rng(4)
    n = 20_000
    first, second = rng.integers(500, 2_000, n), rng.integers(0, 1_500, n)
    third = np.where(rng.random(n) < 0.004, rng.integers(50, 400, n), 0)
    (audit,) = scan_table({"first": first, "second": second, "third": third, "area": first + second + third}).identities
    assert str(audit.formula) == "area = first + second + third"
    assert audit.n_wrong == 0


def test_trivial_ones_are_apart() -> None:
    rng = np.random.default_rng(5)
    kilos = np.round(rng.uniform(1, 90, N), 1)
    place = rng.choice(["Bern", "Rome", "Oslo", "Kyiv"], N)
    code = np.array([{"Bern": 7, "Rome": 3, "Oslo": 12, "Kyiv": 5}[name] for name in place])
    table = {
        "kilos": kilos,
        "grams": np.round(1_000 * kilos),
        "year": np.full(N, 2026),
        "place": place,
        "code": code,
        "age": rng.integers(1, 90, N),
    }
    scan = scan_table(table)
    assert scan.identities == ()
    (copy,) = scan.copies
    assert set(columns_of(copy)) == {"kilos", "grams"}
    assert scan.constants == (("year", 2026),)
    assert scan.codes == (("place", "code"),)
    assert set(scan.without_rule) == {"code", "age"}


@pytest.mark.slow
def test_a_column_with_gaps_costs_the_others_no_rows() -> None:
    table = accounts()
    rng = np.random.default_rng(6)
    refund = np.where(rng.random(N) < 0.7, np.nan, rng.integers(1, 999, N))
    paid = np.round(table["food"] - refund, 2)
    scan = scan_table(table | {"refund": refund, "paid": paid})
    judged = {frozenset(columns_of(audit)): len(audit.agree) for audit in scan.identities}
    known = int(np.isfinite(refund).sum())
    assert judged[frozenset({"living", "food", "rent"})] == N
    assert judged[frozenset({"food", "refund", "paid"})] == known


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize(("years", "seed"), [(5, 0), (1, 2)], ids=["in runs", "scattered"])
def test_flags_that_are_rare_have_no_rule_by_chance(years: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flags = np.zeros((200, 60), dtype=int)
    for flag in flags.T:
        for start in rng.integers(0, 200, 6 // years + 1):
            flag[start : start + years] = 1
    flags[20:25, :20] = 1  # a bad time for many
    assert scan_table({f"f{j}": flag for j, flag in enumerate(flags.T)}).identities == ()


def test_flags_that_follow_from_others_have_a_rule() -> None:
    rng = np.random.default_rng(0)
    adult, member, paid = rng.integers(0, 2, (3, N))
    table = {"adult": adult, "member": member, "paid": paid, "votes": adult * member, "guest": 1 - member}
    table["votes"][:3] = 1 - table["votes"][:3]
    assert rules(scan_table(table)) == {"votes = adult * member", "member = -guest + 1"}


@pytest.mark.parametrize("seed", range(4))
def test_noise_has_no_certain_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = {f"normal {k}": rng.normal(size=N) for k in range(3)}
    table |= {f"count {k}": rng.poisson(3, N) for k in range(4)}
    table |= {f"flag {k}": rng.random(N) < 0.2 for k in range(3)}
    scan = scan_table(table)
    assert len(scan.tried) == 10
    assert not [audit for audit in (*scan.identities, *scan.copies) if audit.is_certain]


def test_what_may_fail_is_shared_by_all_designs_and_no_scan_proves() -> None:
    names = ("a", "b", "c")
    found = [*map(column, names), number(1), number(0.25)]
    for _ in range(2):
        found = list(dict.fromkeys([*found, *(one(term) for term in found for one in _functions(found))]))
    terms = [term for term in found if term.op != "number"]
    designs = {((term,), name) for term in terms for name in names} | {
        ((one, other), name) for one in terms[:40] for other in terms[:40] if str(one) < str(other) for name in names
    }
    kraft = sum(2 ** -Identity(name, chosen, (0.0,)).design_bits(3) for chosen, name in designs)
    assert 0.01 < kraft <= 1
    for audit in scan_table(accounts()).identities:
        assert audit.certificate.verdict is Verdict.CONFIRMED
        assert "could have been chosen" in audit.explanation


def _functions(terms: list[Term]) -> list[Callable[[Term], Term]]:
    operations = [lambda one: Term("log", (one,)), lambda one: power(one, 2)]
    return [*operations, *(partial(lambda other, one: Term("/", (one, other)), other) for other in terms[:8])]


def test_a_budget_that_is_over_is_said() -> None:
    scan = scan_table(accounts(), budget=1e-9)
    assert scan.identities == ()
    assert any("Time was over" in notice for notice in scan.notices)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_scan() -> None:
    one, other = scan_table(accounts(), seed=7).summary(), scan_table(accounts(), seed=7).summary()
    assert one == other


@pytest.mark.slow
def test_text_among_numbers_leaves_out_its_column_only() -> None:
    table = accounts()
    spoilt = [str(k) for k in range(N)]
    spoilt[17] = "seventeen"
    scan = scan_table(table | {"spoilt": spoilt})
    assert columns(scan) == columns(scan_table(table))
    assert any("spoilt" in notice for notice in scan.notices)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="budget must be positive"):
        scan_table(accounts(), budget=0)
    with pytest.raises(TableError, match="two columns of numbers"):
        scan_table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    with pytest.raises(TableError, match="no column"):
        scan_table(accounts(), exclude=["totl"])


@pytest.mark.slow
def test_the_page_is_one_file_in_which_names_are_texts() -> None:
    pytest.importorskip("jinja2", reason="jinja2 is not installed: the report is optional")
    table = accounts()
    table["<script>alert(1)</script>"] = table.pop("living")
    page = scan_table(table).to_html({"command": "massart scan x.csv"})
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "60 wrong" in page


def written(tmp_path: Path) -> Path:
    path = tmp_path / "accounts.csv"
    table = accounts()
    lines = [",".join(table), *(",".join(f"{value:g}" for value in row) for row in zip(*table.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.slow
def test_the_command_prints_the_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
    from massart.cli import run

    path, page = written(tmp_path), tmp_path / "scan.html"
    assert run(["scan", str(path), "--report", str(page)]) == 0
    out = capsys.readouterr().out
    assert "living = food + rent" in out
    assert " 60 of 300 wrong  total = fares + living" in out
    assert "--target total --features fares,living" in out
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
    from massart.cli import run

    assert run(["scan", str(written(tmp_path)), "--json", "--exclude", "food,rent"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["formula"] for one in found["identities"]] == ["total = fares + living"]
    assert found["identities"][0]["rows_wrong"] == 60
    assert found["columns_tried"] == ["fares", "living", "total"]
    path = tmp_path / "text.csv"
    path.write_text("a,b\n1,x\n2,y\n")
    assert run(["scan", str(path)]) == 2


@pytest.mark.slow
def test_the_command_names_copies_constants_codes_and_what_is_in_no_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
    from massart.cli import run

    rng = np.random.default_rng(0)
    amount, free, town = rng.integers(100, 99_999, 200), rng.standard_normal(200).round(6), rng.integers(0, 5, 200)
    table = {"amount": amount, "again": amount, "free": free, "unit": ["EUR"] * 200}
    table |= {"town": [f"t{k}" for k in town], "code": [f"c{k}" for k in town]}
    path = tmp_path / "table.csv"
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    assert run(["scan", str(path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("No rule was found")
    assert "again = amount" in said or "amount = again" in said
    assert "The same in every row: unit" in said
    assert "One-to-one: town, code" in said
    assert "In no rule: free" in said


@pytest.mark.slow
def test_the_command_proposes_a_fit_that_runs_whatever_columns_are_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
    from massart.cli import run

    rng = np.random.default_rng(0)
    net, fee = rng.integers(1, 99, 200), rng.integers(1, 99, 200)
    total = net + fee + 7 * (np.arange(200) % 20 == 0)
    path = tmp_path / "table.csv"
    rows = (f"{a},{b},{c}" for a, b, c in zip(net, fee, total, strict=True))
    path.write_text("\n".join(['"amount,  net",fee,total', *rows]) + "\n")
    assert run(["scan", str(path)]) == 0
    proposed = capsys.readouterr().out.rpartition("The wrong rows: massart ")[2]
    assert run(shlex.split(proposed)) == 0
    assert "total = `amount, net` + fee" in capsys.readouterr().out
