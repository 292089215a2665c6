"""Terms are data: their values are those of numpy and pandas, and no JSON does more than make a term or an error."""

from __future__ import annotations

import json
import time
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from massart.rules import Columns, Levels, Term, TermError, TermMatrix, parse_terms
from massart.rules import terms as t

pd = pytest.importorskip("pandas", reason="pandas is not installed")

ACCOUNTS = ("a", "b", "c d")
TERMS = [
    "qty",
    "qty * price",
    "price^2 / qty",
    "max(0, qty - 7), min(qty, price, 5)",
    "log(price) + sqrt(qty), abs(price - 5)",
    "qty:account",
    "C(qty)",
    "(3 < qty <= 7) * price, (qty >= 3), (price < 2.5)",
    "(day >= 2024-05-01):qty, month(day), (weekday(day) = 3)",
    "cumsum(qty), cumsum(price, by=account), cumsum(qty, by=account, order=day)",
    "lag(price), lag(qty, by=account), lag(qty, order=day)",
    "qty * lag(price, by=account) - cumsum(qty)",
    "ceil(qty / 3), floor(price), round(qty * price, to=0.05), exp(-0.1 * qty), (1 + price / 100)^qty",
    "(account in (a, `c d`)) * qty, (qty in (3, 7)), (weekday(day) in (Sat, Sun)), (month(day) in (Jan, May)) * price",
]


def table(n: int = 200, seed: int = 0) -> tuple[Columns, Any]:
    """Return columns and the same as a pandas frame."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n).astype(np.int32)
    numbers = {
        "qty": rng.integers(1, 12, n).astype(float),
        "price": rng.integers(1, 2_000, n) / 100,
        "day": rng.integers(19_700, 20_200, n).astype(float),
    }
    frame = pd.DataFrame(numbers).assign(account=np.array(ACCOUNTS)[codes])
    frame["day"] = pd.to_datetime(frame["day"], unit="D")
    return Columns(numbers, {"account": Levels(codes, ACCOUNTS)}, frozenset({"day"})), frame


COLUMNS, FRAME = table()


def value(text: str, columns: Columns = COLUMNS) -> Any:
    (term,) = parse_terms(text, columns)
    return term.evaluate(columns)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qty * price", lambda f: f.qty * f.price),
        ("price^2 / qty", lambda f: f.price**2 / f.qty),
        ("max(0, qty - 7)", lambda f: np.maximum(0, f.qty - 7)),
        ("min(qty, price, 5)", lambda f: f[["qty", "price"]].min(axis=1).clip(upper=5)),
        ("log(price) - sqrt(qty)", lambda f: np.log(f.price) - np.sqrt(f.qty)),
        ("abs(price - 5)", lambda f: (f.price - 5).abs()),
        ("(account = `c d`)", lambda f: f.account == "c d"),
        ("(qty = 3)", lambda f: f.qty == 3),
        ("(3 < qty <= 7)", lambda f: f.qty.between(3, 7, inclusive="right")),
        ("(3 <= qty < 7)", lambda f: f.qty.between(3, 7, inclusive="left")),
        ("(day >= 2024-05-01)", lambda f: f.day >= "2024-05-01"),
        ("(day = 2024-05-01)", lambda f: f.day == "2024-05-01"),
        ("month(day)", lambda f: f.day.dt.month),
        ("weekday(day)", lambda f: f.day.dt.day_of_week + 1),
        ("(month(day) = 5)", lambda f: f.day.dt.month == 5),
        ("(month(day) in (May, Jan))", lambda f: f.day.dt.month.isin([1, 5])),
        ("(weekday(day) in (Sat, Sun))", lambda f: f.day.dt.day_of_week >= 5),
        ("(price >= qty)", lambda f: f.price >= f.qty),
        ("(qty * price > 20)", lambda f: f.qty * f.price > 20),
        ("(price < 2 * qty)", lambda f: f.price < 2 * f.qty),
        ("(price <= qty)", lambda f: f.price <= f.qty),
        ("(account in (a, `c d`))", lambda f: f.account.isin(["a", "c d"])),
        ("(qty in (3, 7))", lambda f: f.qty.isin([3, 7])),
        ("(day in (2024-05-01, 2024-05-02))", lambda f: f.day.isin(pd.to_datetime(["2024-05-01", "2024-05-02"]))),
        ("ceil(qty / 3)", lambda f: np.ceil(f.qty / 3)),
        ("floor(-qty / 3)", lambda f: np.floor(-f.qty / 3)),
        ("(1 + price / 100)^qty", lambda f: (1 + f.price / 100) ** f.qty),
        ("2^qty", lambda f: 2.0**f.qty),
        ("exp(-0.5 * price)", lambda f: np.exp(-0.5 * f.price)),
        ("price / (2.5 + price)", lambda f: f.price / (2.5 + f.price)),
        ("log(1 + price / 4)", lambda f: np.log(1 + f.price / 4)),
        ("lag(price)", lambda f: f.price.shift()),
        ("lag(price, by=account)", lambda f: f.groupby("account").price.shift()),
        ("lag(price, order=day)", lambda f: f.sort_values("day", kind="stable").price.shift().sort_index()),
        ("cumsum(qty)", lambda f: f.qty.cumsum()),
        ("cumsum(qty, by=account)", lambda f: f.groupby("account").qty.cumsum()),
        (
            "cumsum(qty, by=account, order=day)",
            lambda f: f.sort_values("day", kind="stable").groupby("account").qty.cumsum().sort_index(),
        ),
    ],
)
def test_values_are_those_of_pandas(text: str, expected: Any) -> None:
    assert_allclose(value(text), expected(FRAME).to_numpy().astype(float), rtol=1e-15)


@given(st.integers(-(10**9), 10**9), st.sampled_from(["0.01", "0.05", "0.1", "0.25", "1", "5", "0.3", "1000"]))
def test_numbers_are_rounded_as_they_are_written(cents: int, step: str) -> None:
    columns = Columns({"x": np.array([cents / 1000, -cents / 1000])})
    ratio, whole = abs(Decimal(cents).scaleb(-3)) / Decimal(step), Decimal(1)
    up, down, half = (ratio.quantize(whole, mode) for mode in (ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP))
    sign = 1 if cents >= 0 else -1
    nearest = sign * float(half * Decimal(step))
    assert value(f"round(x, {step})", columns).tolist() == [nearest, -nearest]
    expected = [float(up), -float(down)] if cents >= 0 else [-float(down), float(up)]
    assert value(f"ceil(x / {step})", columns).tolist() == expected
    assert value(f"floor(-x / {step})", columns).tolist() == [-v for v in expected]


def test_sums_of_decimals_are_whole_where_people_see_that() -> None:
    columns = Columns({"x": np.array([0.1 + 0.2, 1.1 + 2.2, 4.35 * 100 / 100, 1e9 + 0.3])})
    assert_array_equal(value("ceil(x / 0.1)", columns), [3, 33, 44, 10_000_000_003])
    assert_array_equal(value("floor(x / 0.1)", columns), [3, 33, 43, 10_000_000_003])
    assert_array_equal(value("round(x, to=0.1)", columns), [0.3, 3.3, 4.4, 1e9 + 0.3])


def test_a_term_that_is_made_of_a_gap_is_a_gap() -> None:
    columns = Columns({"x": np.array([0.0, 1.0])})
    for text in ("1 / (1 / x)", "exp(log(x))", "min(5, 1 / x)", "(log(x) in (0, 7))", "(1 / x = 1)", "ceil(1 / x)"):
        assert np.isnan(value(text, columns)[0])
        assert np.isfinite(value(text, columns)[1])


def test_unknown_constants_are_counted_and_filled_in_their_order() -> None:
    (term,) = parse_terms("(qty > ?) * max(0, price - ?) * exp(? * qty)^?", COLUMNS)
    assert term.n_unknown == 4
    known = term.filled([3, 2.5, -0.1, 2])
    assert str(known) == "(qty > 3) * max(0, price - 2.5) * exp(-0.1 * qty)^2"
    assert parse_terms(str(known), COLUMNS) == (known,)
    assert known.n_unknown == 0
    assert list(term.columns_here()) == ["qty", "price", "qty"]
    with pytest.raises(TermError, match="until the constant is found"):
        term.evaluate(COLUMNS)


def test_dates_before_1970_have_months_and_weekdays() -> None:
    days = np.array([-1.0, -0.5, -365.0, 0.0, -100_000.0])
    columns = Columns({"day": days}, dates=frozenset({"day"}))
    stamps = pd.Series(np.floor(days).astype("datetime64[D]").astype("datetime64[s]"))
    assert_array_equal(value("month(day)", columns), stamps.dt.month)
    assert_array_equal(value("weekday(day)", columns), stamps.dt.day_of_week + 1)


def test_running_sums_of_cents_are_exact() -> None:
    rng = np.random.default_rng(0)
    cents, codes = rng.integers(-(10**7), 10**7, 50_000), rng.integers(0, 20_000, 50_000)
    columns = Columns({"paid": cents / 100, "account": codes.astype(float)})
    expected = pd.Series(cents).groupby(codes).cumsum().to_numpy() / 100
    assert_array_equal(value("cumsum(paid, by=account)", columns), expected)
    irrational = Columns({"paid": cents * np.pi, "account": codes.astype(float)})
    expected = pd.Series(cents * np.pi).groupby(codes).cumsum().to_numpy()
    assert_allclose(value("cumsum(paid, by=account)", irrational), expected, rtol=1e-9, atol=1e-6)


def test_a_million_accounts_take_a_moment() -> None:
    n = 1_000_000
    columns = Columns({"paid": np.ones(n), "account": np.arange(n, dtype=float)})
    start = time.process_time()
    assert_array_equal(value("cumsum(paid, by=account)", columns), 1)
    assert np.isnan(value("lag(paid, by=account)", columns)).all()
    assert time.process_time() - start < 10


def test_no_rows_have_no_values() -> None:
    none = COLUMNS.take(slice(0, 0))
    for text in TERMS:
        for term in parse_terms(text, COLUMNS):
            assert term.evaluate(none).shape == (0,)


# --- the matrix -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TERMS)
def test_a_matrix_of_terms_is_the_dense_matrix(text: str) -> None:
    rng = np.random.default_rng(1)
    terms = parse_terms(text, COLUMNS)
    X = TermMatrix(COLUMNS, terms)
    dense = np.column_stack([term.evaluate(COLUMNS) for term in terms])
    mask, some = rng.random(200) < 0.3, rng.integers(0, 200, 17)
    assert (X.shape, len(X), X.ndim) == (dense.shape, 200, 2)
    for rows in (slice(None), slice(5, 60), slice(3, 200, 7), mask, some, np.flatnonzero(mask)):
        assert_array_equal(X[rows], dense[rows])
        assert_array_equal(X.take(rows)[:], dense[rows])
        for j in range(len(terms)):
            assert_array_equal(X[rows, j], dense[rows, j])
    assert_array_equal(X.take(mask).take(slice(2, 9))[:], dense[mask][2:9])
    w = rng.standard_normal(len(terms))
    assert_allclose(X @ w, dense @ w, rtol=1e-12, atol=1e-12)
    ordered = [term.needs_order for term in terms]
    assert_array_equal(X.has_values(), np.isfinite(dense[:, ordered]).all(axis=1))


def test_terms_without_a_coefficient_are_not_looked_at() -> None:
    X = TermMatrix(Columns({"x": np.array([0.0, 1.0])}), parse_terms("x, 1 / x", Columns({"x": np.zeros(1)})))
    assert_array_equal(X @ np.array([2.0, 0.0]), [0, 2])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1 / x", "infinite in row 2"),
        ("x^400", "infinite in row 1"),
        ("0 / x", "no value in row 2"),
        ("log(x - 1)", "no value in row 2"),
        ("log(x)", "infinite in row 2"),
        ("sqrt(-x)", "no value in row 1"),
        ("(1 - x)^0.5", "no value in row 1"),
        ("lag(x)", "no value in row 1"),
    ],
)
def test_a_term_without_a_value_is_named_with_its_row(text: str, what: str) -> None:
    columns = Columns({"x": np.array([1e150, 0.0, 2.0])})
    with pytest.raises(TermError, match=what):
        TermMatrix(columns, parse_terms(text, columns)).check()


# --- JSON -------------------------------------------------------------------------------------------------------------


def nested(depth: int) -> list[object]:
    term: list[object] = ["column", "qty"]
    for _ in range(depth):
        term = ["log", term]
    return term


@pytest.mark.parametrize(
    "content",
    [
        None,
        "qty",
        7,
        [],
        {},
        [[]],
        [["column", "qty"]],
        [{}, "qty"],
        [None],
        ["exec", "print()"],
        ["column"],
        ["column", 3],
        ["column", "a", "b"],
        ["column", ["column", "a"]],
        ["column", "x" * 10_001],
        ["level", "region", 3],
        ["number", None],
        ["number", "3"],
        ["number", True],
        ["number", float("nan")],
        ["number", float("inf")],
        ["number", 10**400],
        ["number", {}],
        ["*", ["column", "a"]],
        ["*", ["column", "a"], 2],
        ["/", ["column", "a"], ["column", "b"], ["column", "c"]],
        ["^", ["column", "a"], None],
        ["^", ["column", "a"], ["number", 2]],
        ["within", "a", None, None, "left"],
        ["within", "a", 1, 2, "both"],
        ["within", "a", "now", None, "left"],
        ["within", "a", "2024-02-30", None, "left"],
        ["within", "a", ["column", "b"], None, "left"],
        ["lag", "a", 3, None],
        ["lag", ["column", "a"], None, None],
        ["month"],
        ["in", "a"],
        ["in", "a", "b"],
        ["in", "a", 1, 2],
        ["in", ["column", "a"], 1],
        ["in", ["column", "a"], "1", "2"],
        ["round", ["column", "a"]],
        ["round", ["column", "a"], 0],
        ["round", ["column", "a"], -1],
        ["round", ["column", "a"], 1e-300],
        ["ceil", "a"],
        ["?", 3],
        ["within", "a", ["?"], ["column", "b"], "left"],
        ["^", ["column", "a"], ["+", ["number", 2], ["number", 3]]],
        nested(t.MOST_DEPTH + 1),
        nested(900),
        ["+", *[["column", "a"]] * 100_000],
        ["+", *[["+", *[["column", "a"]] * 99]] * 99],
    ],
    ids=lambda content: str(content)[:40],
)
def test_a_strangers_json_is_one_line(content: object) -> None:
    start = time.process_time()
    with pytest.raises(TermError) as caught:
        Term.from_json(content)
    assert time.process_time() - start < 1
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_terms_as_deep_as_they_may_be_are_read() -> None:
    assert str(Term.from_json(nested(t.MOST_DEPTH - 1))).count("log") == t.MOST_DEPTH - 1


def test_columns_of_another_table_that_do_not_fit_are_one_line() -> None:
    for term, what in (
        (t.column("nowhere"), "no column 'nowhere'"),
        (t.column("account"), "holds text"),
        (t.level("qty", "abc"), "holds numbers, not 'abc'"),
        (t.within("account", 1, None), "holds text"),
        (Term("lag", ("qty", "nowhere", None)), "no column 'nowhere'"),
    ):
        with pytest.raises(TermError, match=what):
            term.evaluate(COLUMNS)


def test_a_lag_reads_its_column_in_another_row() -> None:
    (term,) = parse_terms("qty * lag(price, by=account) + (day > 3)", COLUMNS)
    assert list(term.columns()) == ["qty", "price", "account", "day"]
    assert list(term.columns_here()) == ["qty", "account", "day"]


# --- models -----------------------------------------------------------------------------------------------------------


def _ledger(n: int = 300) -> Any:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "qty": rng.integers(1, 20, n).astype(float),
            "price": rng.integers(100, 999, n) / 100,
            "kwh": rng.integers(0, 600, n).astype(float),
            "account": rng.choice(["a", "b", "c d"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    )


def _balance(f: Any) -> Any:
    return 100 + np.cumsum(np.round(100 * (f.qty - 2 * f.price))) / 100


MODELS = {
    "qty*price": lambda f: np.round(2 * f.qty * f.price + 1, 2),
    "kwh, max(0, kwh - 200)": lambda f: 0.25 * f.kwh + 0.5 * np.maximum(0, f.kwh - 200) + 5,
    "qty:account": lambda f: f.qty * f.account.map({"a": 1.0, "b": 2.0, "c d": 3.5}) + 4,
    "price, cumsum(qty, by=account)": lambda f: f.price + 3 * f.groupby("account").qty.cumsum(),
    "qty, (day >= 2024-05-01):qty": lambda f: 2 * f.qty + 0.5 * f.qty * (f.day >= "2024-05-01") + 1,
    "qty, (weekday(day) = 7)": lambda f: 2 * f.qty + 5 * (f.day.dt.day_of_week == 6),
    "lag(y), qty, price": _balance,
}


@pytest.mark.parametrize("terms", MODELS)
def test_a_saved_model_predicts_what_the_fit_implied(terms: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")
    from massart.audit import apply_model, audit_table, load_model
    from massart.tables import table_of

    frame = _ledger()
    y = np.array(MODELS[terms](frame), dtype=float)
    if "lag" not in terms:  # of which two rows are wrong, that of the error and the next one
        y[::6] += 7
    audit = audit_table(frame.assign(y=y), "y", terms=terms)
    assert audit.is_certain
    audit.model().save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    found = apply_model(model, table_of(frame.assign(y=y))).columns
    assert_array_equal(found["implied"].mask, ~np.isin(np.arange(300), audit.design.kept))
    assert_array_equal(found["implied"].compressed(), audit.implied)
    assert_array_equal(found["wrong"].compressed(), audit.wrong)
    assert found["wrong"].sum() == (0 if "lag" in terms else 50)
    if "lag" not in terms:
        alone = apply_model(model, table_of(frame)).columns
        assert_array_equal(alone["implied"], found["implied"])


def test_a_lag_of_the_target_needs_the_target_before() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")
    from massart.audit import apply_model, audit_table
    from massart.tables import TableError, table_of

    frame = _ledger()
    y = np.array(_balance(frame))
    model = audit_table(frame.assign(y=y), "y", terms="lag(y), qty, price").model()
    gap = y.copy()
    gap[[7, 299]] = np.nan
    found = apply_model(model, table_of(frame.assign(y=gap)))
    assert_array_equal(np.flatnonzero(found.columns["implied"].mask), [0, 8])
    assert found.columns["implied"][299] == y[299]
    assert found.notices == ("2 rows have no implied value: a term cannot be computed there.",)
    with pytest.raises(TableError, match='"y"'):
        apply_model(model, table_of(frame))


def test_the_target_itself_is_no_input_of_a_model(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")
    from massart.audit import ModelError, audit_table, load_model

    frame = _ledger()
    path = tmp_path / "model.json"
    audit_table(frame.assign(y=_balance(frame)), "y", terms="lag(y), qty, price").model().save(path)
    text = path.read_text()
    content = json.loads(text)
    for stranger in (["column", "y"], ["lag", "y", "y", None], ["lag", "nowhere", None, None]):
        content["terms"][0]["term"] = stranger
        path.write_text(json.dumps(content))
        with pytest.raises(ModelError, match="a column that is not read"):
            load_model(path)


def test_a_rule_that_is_a_constant_predicts_it() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")
    from massart.audit import apply_model, audit_table
    from massart.tables import table_of

    frame = _ledger().assign(y=np.where(np.arange(300) % 5, 5.0, 9.0))
    model = audit_table(frame, "y", terms="qty").model()
    assert not model.formula.terms or not model.formula.coef[:-1].any()
    found = apply_model(model, table_of(frame)).columns
    assert_array_equal(found["implied"], 5)


def test_a_row_in_which_a_term_has_no_value_is_not_predicted() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")
    from massart.audit import apply_model, audit_table
    from massart.tables import table_of

    frame = _ledger()
    model = audit_table(frame.assign(y=8 / frame.qty + 1), "y", terms="1 / qty").model()
    frame.loc[3, "qty"] = 0
    found = apply_model(model, table_of(frame))
    assert_array_equal(np.flatnonzero(found.columns["implied"].mask), [3])
    assert found.notices == ("1 row has no implied value: a term cannot be computed there.",)
