"""Exported rules find the rows that massart finds, whatever runs them, and no name is taken for a command."""

import json
import math
import sqlite3
import subprocess
import sys
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are read with it")

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from export import ORDERED, TOOLS, lacks
from export_cases import CASES, ROW, Case, case
from massart.audit import SavedModel, apply_model, check_table
from massart.cli import run
from massart.export import TARGETS, ExportError, dbt_properties, export
from massart.rows import IDENTITY, Agreement, Level, Link
from massart.rules import Columns, Formula, Levels, Summand, parse_terms
from massart.rules import terms as t
from massart.tables import Category, Date, Encoding, Number, folded, table_of

FEW = ("rates-and-fees", "tiers", "percentage", "clipped", "thousands", "calendar", "due-date", "flags", "hostile")
FAST = ("DuckDB", "SQLite", "Python", "pandera", "cell formulas")


@cache
def planted(name: str) -> Case:
    return case(name, 7, 400)


def module_of(text: str) -> dict[str, object]:
    space: dict[str, object] = {}
    exec(compile(text, "exported", "exec"), space)
    return space


def model_of(terms, coefs, inputs, *, target="y", link=IDENTITY, agreement=None, intercept=None) -> SavedModel:
    summands = tuple(Summand(term, coef, None, 0.0, True) for term, coef in zip(terms, coefs, strict=True))
    constant = None if intercept is None else Summand(None, intercept, None, 0.0, True)
    formula = Formula(target, summands, constant, link, noisy=False)
    encoding = Encoding(Number(target), tuple(Number(one) if isinstance(one, str) else one for one in inputs))
    return SavedModel(encoding, formula, agreement or Agreement(Level.GIVEN, 0.5), "CONFIRMED", "")


def judged(model: SavedModel, columns) -> tuple[set[int], dict[str, set[int]]]:
    """Return the rows that massart calls wrong, and those that SQLite, Python and cell formulas do."""
    table = pa.table({"row number": np.arange(len(next(iter(columns.values())))), **columns})
    found = apply_model(model, table_of(table)).columns["wrong"]
    one = Case("one", model, table, frozenset(), 0)
    tools = {name: set(TOOLS[name][0]([one])["one"]) for name in ("SQLite", "Python", "cell formulas")}
    return set(np.flatnonzero(np.ma.filled(found, False)).tolist()), tools


def planted_for(tool: str) -> list[Any]:
    """Return the names of the rules that a tool can say; a full run has all of them."""
    often = (*FEW, *ORDERED.get(tool, ()))
    others = [pytest.param(tool, name, marks=pytest.mark.full(every=2)) for name in CASES if name not in FEW]
    return [*((tool, name) for name in often), *others]


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "name"), [one for tool in FAST for one in planted_for(tool)])
def test_the_same_rows_are_wrong(tool: str, name: str) -> None:
    if missing := lacks(tool):
        pytest.skip(f"{missing} is not installed")
    one = planted(name)
    assert len(one.wrong) > 20
    assert TOOLS[tool][0]([one])[name] == one.wrong


def spelt() -> Case:
    """Rates by levels in two columns: in one of them capitals tell levels apart."""
    rates = {"South": 2.0, "New York": 3.0, "Österreich": 5.0, "Straße 7": 7.0}
    towns = [
        "South",
        " south",
        "SOUTH",
        "New  York",
        "new\tyork\u00a0",
        "ÖSTERREICH",
        "österreich ",
        "STRASSE 7",
        "Suoth",
    ]
    codes = {"a b": 10.0, "A b": 20.0}
    terms = [t.level("town", town) for town in rates] + [t.level("code", code) for code in codes]
    inputs = [Category("town", tuple(rates), None), Category("code", tuple(codes), None)]
    model = model_of(terms, [*rates.values(), *codes.values()], inputs)
    cells = [(town, code) for town in towns for code in ("a b", " A b ", "A B", "a  b", "")]
    n = len(cells)
    table = {ROW: range(2 * n), "town": [c[0] for c in cells] * 2, "code": [c[1] for c in cells] * 2}
    meant = {folded(town): rate for town, rate in rates.items()}
    right = [meant.get(folded(town), 0.0) + codes.get(code.strip(), 0.0) for town, code in cells]
    table["y"] = [*right, *(y + 1 for y in right)]
    known = [folded(town) in meant and code.strip() in codes for town, code in cells]
    assert sum(known) == 16
    return Case("spelt", model, pa.table(table), frozenset(n + k for k in range(n) if known[k]), 2 * sum(known))


@pytest.mark.parametrize(
    "tool",
    [
        tool if tool in ("massart", *FAST) else pytest.param(tool, marks=pytest.mark.slow)
        for tool in ("massart", *TOOLS)
    ],
)
def test_levels_are_told_apart_as_massart_does(tool):
    one = spelt()
    if tool == "massart":
        found = apply_model(one.model, table_of(one.table)).columns["wrong"]
        assert (set(np.flatnonzero(np.ma.filled(found, False))), np.ma.count(found)) == (one.wrong, one.judged)
        return
    if missing := lacks(tool):
        pytest.skip(f"{missing} is not installed")
    assert TOOLS[tool][0]([one]) == {one.name: one.wrong}


def test_a_level_of_many_letters_that_are_folded_one_by_one_is_no_stack_of_calls():
    level = "".join(chr(place) for place in range(0x410, 0x450)) + "ÀÉÎÕÜ"
    model = model_of([t.level("kind", level)], [2.0], ["a", Category("kind", (level,), "another")])
    kinds = [level, level.swapcase(), f" {level.lower()} ", "another", "ANOTHER", level[:-1]]
    ours, theirs = judged(model, {"a": [0.0] * 12, "kind": kinds * 2, "y": [2.0, 2, 2, 0, 0, 0, 9, 9, 9, 9, 9, 9]})
    assert ours == {6, 7, 8, 9, 10}
    assert theirs["SQLite"] == theirs["Python"] == ours


ATOMS = {
    "ceil": "ceil(x / 0.1), ceil(x), ceil(-x / 3), ceil(x + z)",
    "floor": "floor(x / 0.1), floor(-x / 0.3), floor(z - x)",
    "round": "round(x, to=0.1), round(-x, to=0.05), round(x * z, to=0.25), round(z, to=5), round(x / 3, to=0.15)",
    "powers": "(1 + z / 100)^k, abs(z)^(k / 2), z^k, 0^k, k^k, (-1)^(k / 2)",
    "exp": "exp(-0.7 * z), exp(z), x / (2.5 + x), log(1 + x / 4)",
    "no value": "1 / (1 + exp(100 * z)), exp(log(k)), min(5, 1 / k), (log(k) in (0, 7)), (1 / k = 1), 1 / (1 / k)",
    "sets": "(zone in (a, `far b`)), x * (zone in (a, c)) * (k in (1, 3)), (ceil(x) in (2, 3))",
    "calendar": "(weekday(day) in (Sat, Sun)), (month(day) in (Jan, Dec)), x * (weekday(day) = Mon)",
    "days": "(day in (2024-01-01, 2024-02-29)), (2024-01-03 <= day < 2024-02-01)",
    "comparisons": "(x >= z), x * (x * k > z), (x < k) * (k <= z), (1 / k >= x), (x < 1 / k)",
    "larger": "max(0, x - z), min(x, z, 2), max(0, 1 - x) * k",
}


def atoms(texts: str) -> tuple[SavedModel, dict[str, object]]:
    """Return a model with these terms, and rows with halves, whole numbers and what floats make of them."""
    rng = np.random.default_rng(5)
    tenths = np.concatenate(
        [np.arange(-40, 41) / 20, np.arange(40) * 0.1, 0.1 + np.arange(20) / 10, 1e6 + np.arange(9)]
    )
    n = len(tenths)
    table = {
        "x": tenths,
        "z": rng.integers(-99, 99, n) / 8,
        "k": rng.integers(0, 5, n),
        "zone": rng.choice(["a", "far b", "c"], n),
        "day": np.datetime64("2023-12-25") + rng.integers(0, 90, n).astype("timedelta64[D]"),
    }
    days = table["day"].astype(float)
    codes = np.select([table["zone"] == "a", table["zone"] == "c"], [0, 2], 1).astype(np.int32)
    columns = Columns(
        {"x": tenths, "z": table["z"], "k": table["k"].astype(float), "day": days},
        {"zone": Levels(codes, ("a", "far b", "c"))},
        frozenset({"day"}),
    )
    terms = parse_terms(texts, columns)
    values = np.column_stack([term.evaluate(columns) for term in terms])
    inputs = ["x", "z", "k", Category("zone", ("a", "far b", "c"), None), Date("day")]
    coefs = 2.0 ** np.arange(len(terms))  # so that values of different terms make up for each other nowhere
    used = [one for one in inputs if any((one if isinstance(one, str) else one.column) in t.columns() for t in terms)]
    return model_of(terms, coefs.tolist(), used), {**table, "values": values @ coefs}


@pytest.mark.parametrize("atom", ATOMS)
@pytest.mark.parametrize("tool", [tool for tool in FAST if tool != "pandera"])
def test_every_term_has_the_same_value_everywhere(tool, atom):
    if missing := lacks(tool):
        pytest.skip(f"{missing} is not installed")
    model, columns = atoms(ATOMS[atom])
    values = columns.pop("values")
    there = np.isfinite(values)
    assert there.sum() > 40
    n = len(values)
    off = np.where(np.arange(n) % 2, 1.0, 0.0)  # the tolerance is 0.5, and a value that is off by a step more than that
    y = np.where(there, values, 0.0) + off
    table = pa.table({ROW: np.arange(n), **columns, "y": y})
    expected = frozenset(np.flatnonzero(there & (off > 0)).tolist())
    assert TOOLS[tool][0]([Case("one", model, table, expected, n)]) == {"one": expected}


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in FAST])
def test_the_same_rows_are_wrong_in_tools_that_start_slowly(tool):
    if missing := lacks(tool):
        pytest.skip(f"{missing} is not installed")
    chosen = [planted(name) for name in (*FEW, *ORDERED[tool])]
    assert TOOLS[tool][0](chosen) == {one.name: one.wrong for one in chosen}


LEAVES = st.sampled_from(
    (
        t.column("a"),
        t.column("b"),
        t.number(-2.5),
        t.number(3.0),
        t.level("kind", "x'y"),
        t.level("a", "2"),
        t.within("a", -1.0, None, "left"),
        t.within("b", -1.0, 2.0, "right"),
    )
)


def _larger(inner):
    pairs = st.sampled_from(("*", "+", "-", "/", "min", "max", "="))
    return (
        st.builds(lambda op, one, two: t.Term(op, (one, two)), pairs, inner, inner)
        | st.builds(lambda op, one: t.Term(op, (one,)), st.sampled_from(("abs", "sqrt", "log")), inner)
        | st.builds(t.power, inner, st.sampled_from((2.0, 3.0, -1.0, 0.5, -2.0)))
    )


def _has_value(term: t.Term, columns: Columns):
    """Return the rows in which a term and all its parts are finite."""
    parts = [part for part in term.parts if isinstance(part, t.Term)]
    return np.logical_and.reduce([np.isfinite(term.evaluate(columns)), *(_has_value(part, columns) for part in parts)])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.recursive(LEAVES, _larger, max_leaves=6), st.integers(0, 2**32 - 1))
def test_terms_have_the_values_that_massart_gives_them(term, seed):
    rng = np.random.default_rng(seed)
    n = 12
    a, b, codes = rng.integers(-3, 4, n).astype(float), rng.normal(0, 2, n), rng.integers(0, 2, n)
    seen = Columns({"a": a, "b": b}, {"kind": Levels(codes.astype(np.int32), ("other", "x'y"))})
    values = 1.5 * term.evaluate(seen) + 0.25
    known = _has_value(term, seen) & (np.abs(values) < 1e100)
    wanted = [
        pytest.approx(value, rel=1e-11, abs=1e-11) if has else None for value, has in zip(values, known, strict=True)
    ]
    model = model_of([term], [1.5], ["a", "b", Category("kind", ("x'y",), "other")], intercept=0.25)
    kinds = np.array(["other", "x'y"])[codes]
    table = pa.table({"row": np.arange(n), "a": a, "b": b, "kind": kinds, "y": np.full(n, -1e120)})
    expected = module_of(export(model, "python"))["expected"]
    found = map(expected, table.to_pylist())
    assert [one if one is not None and abs(one) < 1e100 else None for one in found] == wanted
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE data (row INTEGER, a REAL, b REAL, kind TEXT, y REAL)")
        rows = [tuple(row.values()) for row in table.to_pylist()]
        database.executemany("INSERT INTO data VALUES (?, ?, ?, ?, ?)", rows)
        text = export(model, "sql", max_unjudged=1)
        listed = dict(database.execute(f"SELECT row, massart_expected FROM ({text})").fetchall())
    assert [one if one is not None and abs(one) < 1e100 else None for one in map(listed.get, range(n))] == wanted


@pytest.mark.parametrize("link", [Link(), Link(-3.0, 4.0), Link(-math.inf, 2.0), Link(0, 5, 0.25), Link(-1, 6, 2.0)])
@pytest.mark.parametrize(
    "agreement",
    [
        Agreement(Level.EXACT, relative=2e-15),
        Agreement(Level.LABEL, 0.5, relative=2e-15, unit=1.0),
        Agreement(Level.INPUTS, 0.05, (0.5, 0.05, 0.0), 2e-15, 0.1),
        Agreement(Level.GIVEN, 0.3, relative=2e-15),
        Agreement(Level.NOISE, 0.7, relative=2e-15),
    ],
)
def test_limits_and_levels_of_agreement_are_the_same(link, agreement):
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 9, 400).astype(float), np.round(rng.normal(0, 3, 400), 1)
    model = model_of(
        [t.column("a"), t.column("b")], [1.0, -0.5], ["a", "b"], link=link, agreement=agreement, intercept=1.5
    )
    y = np.round(link(a - 0.5 * b + 1.5) + rng.choice([0, 0, 0.05, 0.3, 0.55, 1.0, 1.6, 3.0], 400), 2)
    ours, theirs = judged(model, {"a": a, "b": b, "y": y})
    assert 20 < len(ours) < 380
    assert theirs == dict.fromkeys(theirs, ours)


def test_days_of_dates_are_counted_alike_for_centuries():
    days = np.concatenate([np.arange(-60, 400), np.arange(-600_000, 2_900_000, 7_919)])
    dates = days.astype("datetime64[D]")
    inputs = [Date("day")]
    terms = [t.column("day"), t.Term("month", (t.column("day"),)), t.Term("weekday", (t.column("day"),))]
    model = model_of(terms, [1.0, 1e-3, 1e-5], inputs, agreement=Agreement(Level.GIVEN, 1e-7))
    months = dates.astype("datetime64[M]").astype(int) % 12 + 1
    weekdays = np.array([date.fromordinal(int(day) + 719_163).isoweekday() for day in days])
    y = days + 1e-3 * months + 1e-5 * weekdays
    y[::50] += 1e-5
    ours, theirs = judged(model, {"day": dates, "y": y})
    assert ours == set(range(0, len(days), 50))
    assert theirs == dict.fromkeys(theirs, ours)


def test_rows_with_gaps_are_not_judged_and_columns_without_weight_cost_none():
    model = model_of([t.column("a"), t.column("b")], [1.0, 0.0], ["a", "b"])
    cells = [(1.0, 1.0), (1.0, 9.0), (None, 9.0), (math.nan, 9.0), (math.inf, 9.0), ("", 9.0), (1.0, None), (1.0, "")]
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE data (row, a, y, b)")
        database.executemany("INSERT INTO data VALUES (?, ?, ?, NULL)", [(k, *cell) for k, cell in enumerate(cells)])
        assert [row[0] for row in database.execute(export(model, "sql", max_unjudged=1))] == [1]
    wrong = module_of(export(model, "python"))["wrong"]
    found = [wrong({"a": a, "y": y}) for a, y in cells]
    assert found == [False, True, None, None, None, None, None, None]
    few = {"a": [1.0, 1.0, None], "b": [None, None, None], "y": [1.0, 9.0, 9.0]}
    assert apply_model(model, table_of(pa.table(few))).columns["wrong"].tolist() == [False, True, None]
    assert check_table(model, pa.table(few)).audit.wrong.tolist() == [False, True]
    duckdb = pytest.importorskip("duckdb")
    numbers = pa.table({"row": range(6), "a": [cell[0] or 0.0 for cell in cells[:5]] + [None], "y": [1.0, *[9.0] * 5]})
    with duckdb.connect() as database:
        database.register("data", numbers.set_column(1, "a", pa.array([1.0, 1.0, None, math.nan, math.inf, None])))
        assert [row[0] for row in database.execute(export(model, "sql", max_unjudged=1)).fetchall()] == [1]


def test_a_blank_that_means_0_is_0_everywhere():
    blank = Number("bonus", blank_is_zero=True)
    model = model_of([t.column("a"), t.column("bonus")], [1.0, 1.0], ["a", blank])
    assert Encoding.from_json(json.loads(json.dumps(model.encoding.to_json()))) == model.encoding
    cells = [(1.0, 2.0, 3.0), (1.0, None, 1.0), (1.0, None, 3.0), (None, 2.0, 3.0)]
    a, bonus, y = ([row[k] for row in cells] for k in range(3))
    table = pa.table({"row": range(4), "a": pa.array(a), "bonus": pa.array(bonus), "y": pa.array(y)})
    assert apply_model(model, table_of(table)).columns["wrong"].tolist() == [False, False, True, None]
    wrong = module_of(export(model, "python"))["wrong"]
    assert [wrong(dict(zip(("a", "bonus", "y"), row, strict=True))) for row in cells] == [False, False, True, None]
    assert wrong({"a": 1.0, "bonus": "", "y": 1.0}) is False
    assert "ISBLANK" in export(model, "excel")
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE data (row, a, bonus, y)")
        database.executemany("INSERT INTO data VALUES (?, ?, ?, ?)", [(k, *row) for k, row in enumerate(cells)])
        assert [row[0] for row in database.execute(export(model, "sql", max_unjudged=1))] == [2]


def gappy(n_gaps: int, n_unknown: int) -> tuple[SavedModel, pa.Table]:
    """Return 400 rows, the first 10 of which are judged and right, or wrong in the second; then gaps and new levels."""
    model = model_of([t.column("a"), t.level("kind", "x")], [2.0, 3.0], ["a", Category("kind", ("x",), "y")])
    a, kind = np.arange(400.0), np.array(["x", "y"] * 200, dtype=object)
    y = 2 * a + 3 * (kind == "x")
    y[1] += 100
    kind[400 - n_unknown :] = "new"
    gone = np.arange(400) >= 400 - n_unknown - n_gaps
    a = pa.array(a, mask=gone & (np.arange(400) < 400 - n_unknown))
    return model, pa.table({ROW: np.arange(400), "a": a, "kind": kind.astype(str), "y": y})


def listed_by(tool: str, model: SavedModel, table: pa.Table, **options: float) -> dict[int, str]:
    """Return the rows that the SELECT lists, each with what was found."""
    query = f'SELECT "{ROW}", massart_finding FROM ({export(model, "sql", "my data", **options)}) AS found'
    if tool == "DuckDB":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect() as database:
            database.register("my data", table)
            return dict(database.execute(query).fetchall())
    with sqlite3.connect(":memory:") as database:
        database.execute(f'CREATE TABLE "my data" ("{ROW}" INTEGER, a REAL, kind TEXT, y REAL)')
        database.executemany(
            'INSERT INTO "my data" VALUES (?, ?, ?, ?)', map(tuple, map(dict.values, table.to_pylist()))
        )
        return dict(database.execute(query).fetchall())


@pytest.mark.parametrize("tool", ["DuckDB", "SQLite"])
def test_sql_lists_rows_that_are_not_judged_where_they_are_too_many(tool):
    model, table = gappy(20, 0)
    assert listed_by(tool, model, table) == {1: "wrong"}
    for n_gaps, n_unknown in ((21, 0), (0, 21), (11, 10), (390, 0), (0, 400), (100, 300)):
        model, table = gappy(n_gaps, n_unknown)
        unjudged = dict.fromkeys(range(400 - n_gaps - n_unknown, 400), "not judged")
        wrong = {1: "wrong"} if n_gaps + n_unknown < 399 else {}
        assert listed_by(tool, model, table) == {**wrong, **unjudged}
        assert listed_by(tool, model, table, max_unjudged=1) == wrong
        check = check_table(model, table) if n_gaps + n_unknown < 400 else None
        assert check is None or check.outcome.status == 1
    assert listed_by(tool, *gappy(1, 0), max_unjudged=0) == {1: "wrong", 399: "not judged"}
    assert listed_by(tool, *gappy(116, 0), max_unjudged=0.29) == {1: "wrong"}  # as floats, 116 > 0.29 * 400


@pytest.mark.slow
def test_a_schema_fails_where_too_few_rows_are_judged():
    errors = pytest.importorskip("pandera.errors", reason="pandera is not installed: it runs the schema")
    for n_gaps, n_unknown, options, failed in (
        (20, 0, {}, {"y follows its rule"}),
        (21, 0, {}, {"y follows its rule", "enough rows are judged"}),
        (0, 400, {}, {"enough rows are judged"}),
        (21, 0, {"max_unjudged": 0.06}, {"y follows its rule"}),
    ):
        model, table = gappy(n_gaps, n_unknown)
        schema = module_of(export(model, "pandera", **options))["schema"]
        with pytest.raises(errors.SchemaErrors) as told:
            schema.validate(table.to_pandas(), lazy=True)
        assert set(told.value.failure_cases["check"]) <= {"y follows its rule", "enough rows are judged"} | {
            "y = 2 * a + 3 * (kind = x), within 0.5, as given",
            "at most 5 % of the rows are not judged",
        }
        assert {error.check.name for error in told.value.schema_errors} == failed


def test_a_share_that_is_none_is_refused():
    model, _ = gappy(0, 0)
    with pytest.raises(ExportError, match="max_unjudged must be a share between 0 and 1, got 5"):
        export(model, "sql", max_unjudged=5)


def test_a_column_that_is_not_there_is_an_error():
    model = model_of([t.column("a")], [1.0], ["a"])
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE data (y)")
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            database.execute(export(model, "sql"))
    with pytest.raises(KeyError):
        module_of(export(model, "python"))["wrong"]({"y": 1.0})


def test_the_python_module_needs_no_packages(tmp_path):
    one = planted("calendar")
    (tmp_path / "rule.py").write_text(export(one.model, "python"), encoding="utf-8")
    (tmp_path / "rows.json").write_text(json.dumps(one.table.to_pylist(), default=str))
    program = "import json, rule; print([r['row number'] for r in json.load(open('rows.json')) if rule.wrong(r)])"
    told = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(json.loads(told.stdout)) == one.wrong


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
        min_size=3,
        max_size=3,
        unique_by=str.lower,
    )
)
def test_no_name_is_taken_for_a_command(names):
    a, kind, y = (f" {name}" for name in names)
    level = names[0].strip() or "level"
    term = t.product(t.column(a), t.level(kind, level))
    model = model_of([term], [2.0], [a, Category(kind, (level,), "base" + level)], target=y)
    cells = [
        (1.0, level, 2.0),
        (1.0, level, 9.0),
        (4.0, level, 2.0),
        (1.0, "base" + level, 0.0),
        (1.0, "else" + level, 7.0),
    ]
    wrong = module_of(export(model, "python"))["wrong"]
    assert [wrong(dict(zip((a, kind, y), cell, strict=True))) for cell in cells] == [False, True, True, False, None]
    for text in (export(model, "pandera"), export(model, "great-expectations")):
        compile(text, "exported", "exec")
    with sqlite3.connect(":memory:") as database:
        quoted = [name.replace('"', '""') for name in (a, kind, y)]
        database.execute('CREATE TABLE data ("{}", "{}", "{}")'.format(*quoted))
        database.executemany("INSERT INTO data VALUES (?, ?, ?)", cells)
        assert [row[:3] for row in database.execute(export(model, "sql", max_unjudged=0.2))] == [cells[1], cells[2]]
        assert [row[:3] for row in database.execute(export(model, "sql"))] == [cells[1], cells[2], cells[4]]


def test_no_name_is_taken_for_the_encoding_of_a_file(tmp_path):
    names = ["# coding: rot13", "vim: set fileencoding=utf-16 :"]
    model = model_of([t.column(names[0])], [1.0], [names[0]], target=names[1])
    (tmp_path / "rule.py").write_text(export(model, "python"), encoding="utf-8")
    program = f"import rule; print(rule.wrong({dict.fromkeys(names, 1.0)!r}))"
    told = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


def test_what_dbt_runs_is_what_sql_runs():
    jinja2 = pytest.importorskip("jinja2")
    model = planted("hostile").model
    made = jinja2.Environment(keep_trailing_newline=True)
    rendered = made.from_string(export(model, "dbt", "a.b")).render(
        ref=lambda *names: ".".join(f'"{n}"' for n in names)
    )
    assert rendered == export(model, "sql", "a.b")
    properties = json.loads(dbt_properties(model, "test").splitlines()[-1].partition(": ")[2])
    described = made.from_string(properties).render()
    assert described == export(model, "sql").splitlines()[2][3:] + "; at most 5 % of the rows are not judged"


@pytest.mark.slow
def test_what_great_expectations_runs_is_what_sql_runs():
    sqlalchemy = pytest.importorskip("sqlalchemy")
    model = planted("hostile").model
    text = export(model, "great-expectations")
    query = module_of(text[text.index("QUERY") : text.index("suite")])["QUERY"]
    run = str(sqlalchemy.text(query.format(batch='"data"')).compile())
    assert run == "".join(export(model, "sql").splitlines(keepends=True)[3:]).rstrip("\n")


@pytest.mark.slow
def test_what_a_target_cannot_say_is_said_in_one_line(tmp_path, capsys):
    path = tmp_path / "rule.json"
    sayable = {("lag", None): "excel", ("lag", "b"): None, ("cumsum", None): None, ("cumsum", "b"): None}
    for (op, by), able in sayable.items():
        model_of([t.Term(op, ("a", by, None))], [1.0], ["a", "b"]).save(path)
        for target in TARGETS:
            assert run(["export", str(path), "--to", target]) == (0 if target == able else 2)
            assert target == able or f"cannot say {op}(a" in capsys.readouterr().err
    levels = tuple(f"level {k} of a long list of levels" for k in range(200))
    rates = model_of([t.level("kind", level) for level in levels], range(1, 201), [Category("kind", levels, None)])
    with pytest.raises(ExportError, match="excel cannot say the rule: a formula would have"):
        export(rates, "excel")
    assert export(rates, "sql")
    many = [f"x{k}" for k in range(600)]
    with pytest.raises(ExportError, match="sql cannot say a sum of 600 terms"):
        export(model_of([t.column(name) for name in many], [1.0] * 600, many), "sql")
    odd = model_of([t.Term("month", (t.column("a"),))], [1.0], ["a"])
    with pytest.raises(ExportError, match=r"sql cannot say month\(a\)"):
        export(odd, "sql")
    with pytest.raises(ExportError, match="the header has no column 'y'"):
        export(model_of([t.column("a")], [1.0], ["a"]), "excel", header=["a", "b"])
    model_of([t.column("a")], [1.0], ["a"]).save(path)
    assert run(["export", str(path), "--to", "cobol"]) == 2
    assert "to must be one of sql, python" in capsys.readouterr().err
    assert run(["export", str(path), "--to", "sql", "--output", str(path)]) == 2
    assert "would overwrite" in capsys.readouterr().err


def test_the_command_names_the_table_and_the_cells(tmp_path, capsys):
    path = tmp_path / "bills.json"
    model_of([t.column("a")], [1.0], ["a"]).save(path)
    assert run(["export", str(path), "--to", "sql"]) == 0
    assert 'FROM "bills"' in capsys.readouterr().out
    test = tmp_path / "assert_bills.sql"
    assert run(["export", str(path), "--to", "dbt", "--table", "shop.bills", "--output", str(test)]) == 0
    assert 'FROM {{ ref("shop", "bills") }}' in test.read_text()
    assert 'name: "assert_bills"' in test.with_suffix(".yml").read_text()
    assert "at most 5 % of the rows are not judged" in test.with_suffix(".yml").read_text()
    assert run(["export", str(path), "--to", "dbt", "--max-unjudged", "0.01"]) == 0
    assert "/ massart_all > 0.01e0" in capsys.readouterr().out
    (tmp_path / "sheet.csv").write_text("id,y,a\n1,2,3\n")
    assert run(["export", str(path), "--to", "excel", "--table", str(tmp_path / "sheet.csv")]) == 0
    assert "D2 (expected):\n=IF(AND(ISNUMBER($C2))" in capsys.readouterr().out


def test_columns_have_the_letters_of_a_sheet():
    places = {0: "A", 25: "Z", 26: "AA", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA"}
    model = model_of([t.column(f"c{k}") for k in places], [1.0] * len(places), [f"c{k}" for k in places])
    said = export(model, "excel", header=[*(f"c{k}" for k in range(703)), "y"])
    assert [f"Column {letter}: c{k}\n" in said for k, letter in places.items()] == [True] * len(places)
