from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")

from massart.audit import Audit, ModelError, apply_model, audit_table, load_model, summary
from massart.certificate import Verdict
from massart.rows import Level
from massart.tables import TableError, read_table, table_of, write_columns


def ledger(n: int = 400, share: float = 0.3, seed: int = 0) -> dict[str, Any]:
    """Numbers, a boolean, a category, and a total of which a share is wrong; all numbers are short decimals."""
    rng = np.random.default_rng(seed)
    hours = rng.integers(1, 40, n) / 4
    items = rng.integers(0, 12, n)
    rush = rng.random(n) < 0.3
    region = rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2])
    extra = np.select([region == "south", region == "west"], [4.5, -2.25], 0.0)
    total = np.round(54.1 * hours + 7.9 * items + 25 * rush + extra + 35, 4)
    wrong = rng.random(n) < share
    total[wrong] = np.round(total[wrong] * 1.5 + rng.integers(1, 99, wrong.sum()), 4)
    return {"hours": hours, "items": items, "rush": rush, "region": region, "total": total}


TRUTH = {("hours", None): 54.1, ("items", None): 7.9, ("rush", None): 25.0, ("region", "south"): 4.5}
TRUTH |= {("region", "west"): -2.25}


def is_right(columns: dict[str, Any]) -> Any:
    extra = np.select([columns["region"] == "south", columns["region"] == "west"], [4.5, -2.25], 0.0)
    implied = 54.1 * columns["hours"] + 7.9 * columns["items"] + 25 * columns["rush"] + extra + 35
    return np.isclose(columns["total"], implied, atol=1e-9, rtol=0), implied


@pytest.fixture(scope="module")
def audited() -> Audit:
    """The ledger above, audited once."""
    return audit_table(ledger(), "total")


def coefficients(found: Audit) -> dict[tuple[str, str | None], float]:
    return {(term.column, term.level): term.coef for term in found.formula.terms}


@pytest.mark.slow
def test_the_formula_and_the_wrong_rows_of_a_mixed_table_are_found(audited: Audit) -> None:
    found = audited
    right, implied = is_right(ledger())
    assert coefficients(found) == TRUTH
    assert found.formula.intercept is not None
    assert found.formula.intercept.coef == 35
    np.testing.assert_array_equal(found.wrong, ~right)
    np.testing.assert_allclose(found.implied, implied, rtol=1e-13)
    assert found.certificate.verdict.stands
    assert "54.1 * hours" in str(found.formula)
    assert "(region = west)" in str(found.formula)


@pytest.mark.slow
def test_the_audit_lists_every_row_once_the_worst_first() -> None:
    columns = ledger()
    columns["invoice"] = [f"INV-{k}" for k in range(400)]
    columns["hours"] = [None if k in (7, 300) else float(v) for k, v in enumerate(columns["hours"])]
    found = audit_table(columns, "total", id="invoice", group="region")
    rows = found.rows()
    found_of_rows = ["given", "implied", "residual", "wrong", "kind", "rank"]
    others = [name for name in columns if name not in ("invoice", "region")]
    assert list(rows) == ["row", "invoice", "region", *others, *found_of_rows]
    assert sorted(rows["row"].tolist()) == list(range(1, 401))
    assert rows["row"][-2:].tolist() == [8, 301]
    assert rows["wrong"][-2:].tolist() == [None, None]
    assert [f"INV-{k - 1}" for k in rows["row"]] == rows["invoice"].to_pylist()
    for name in others:
        assert rows[name].to_pylist() == [columns[name][k - 1] for k in rows["row"]]
    wrong = rows["wrong"][:-2].tolist()
    assert wrong == sorted(wrong, reverse=True)
    sizes = np.abs(np.array(rows["residual"][: found.n_wrong], dtype=float))
    assert (np.diff(sizes) <= 0).all()
    assert rows["rank"][:-2].tolist() == list(range(1, 399))
    for most in (1, 7, found.n_wrong, 10**6):
        worst = found.worst(most)
        size = min(most, found.n_wrong)
        shown = ["row", "invoice", "region", *found_of_rows]
        assert {name: len(values) for name, values in worst.items()} == dict.fromkeys(shown, size)
        assert worst["row"] == rows["row"][:size].tolist()
    np.testing.assert_allclose(
        np.array(rows["given"][:-2] - rows["implied"][:-2], dtype=float),
        np.array(rows["residual"][:-2], dtype=float),
        atol=1e-9,
    )
    assert sum(group.n_rows for group in found.groups()) == 398
    assert sum(group.n_wrong for group in found.groups()) == found.n_wrong
    assert any("2 rows" in notice for notice in found.notices)


@pytest.mark.slow
def test_labels_rounded_to_cents_imply_cents() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 100, 500)
    y = np.round(1.2345 * x + 3, 2)
    y[::4] += 5
    found = audit_table({"x": x, "y": y}, "y")
    assert found.agreement.places == 2
    assert str(found.agreement) == "within rounding to cents"
    np.testing.assert_array_equal(found.implied, np.round(found.implied, 2))
    np.testing.assert_array_equal(np.flatnonzero(found.wrong), np.arange(0, 500, 4))


@pytest.mark.slow
def test_estimates_are_written_no_finer_than_they_are_known() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 100, 400)
    y = 1.2345 * x + 3 + rng.normal(0, 0.1, 400)
    y[::4] += 50
    found = audit_table({"x": x, "y": y}, "y")
    assert found.certificate.verdict.name == "NOISY"
    (slope,) = found.formula.terms
    assert len(slope.number()) <= 8
    assert float(slope.number()) == pytest.approx(slope.coef, abs=slope.standard_error)
    np.testing.assert_array_equal(found.implied, np.round(found.implied, 3))


def test_the_fixed_table_follows_the_formula_everywhere(audited: Audit) -> None:
    fixed = audited.fixed(force=True)
    assert fixed.column_names == ("hours", "items", "rush", "region", "total", "total_given", "wrong", "kind")
    again = audit_table(fixed, "total", exclude=["total_given", "wrong", "kind"])
    assert again.n_wrong == 0
    assert coefficients(again) == TRUTH
    given_values = fixed.cells(["total_given"], np.arange(400))["total_given"]
    np.testing.assert_array_equal(given_values, ledger()["total"])


def relu_columns(seed: int = 0, n: int = 600) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-9, 10, (2, n)).astype(float)
    y = np.maximum(0, 3.5 * a + 12 * b - 4.25)
    wrong = rng.random(n) < 0.25
    y[wrong] = np.abs(np.round(rng.standard_normal(wrong.sum()) * 40, 2))
    return {"a": a, "b": b, "y": y}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_auto_takes_the_relu_where_the_rows_certify_it(seed: int) -> None:
    found = audit_table(relu_columns(seed), "y")
    assert str(found.formula) == "y = 3.5 * a + 12 * b - 4.25 (when positive, else 0)"
    assert found.certificate.verdict.stands
    assert any("taken as 0" in notice for notice in found.notices)
    assert str(audit_table(relu_columns(seed), "y", model="relu").formula) == str(found.formula)
    linear = audit_table(relu_columns(seed), "y", model="linear", terms="columns")
    order = list(Verdict)
    assert order.index(found.certificate.verdict) < order.index(linear.certificate.verdict)
    assert not linear.formula.clipping


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_auto_stays_linear_where_zeros_are_wrong_entries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-50, 50, 500).astype(float)
    y = 2 * x + 1
    y[rng.random(500) < 0.35] = 0  # whoever had no value entered a zero
    found = audit_table({"x": x, "y": y}, "y")
    assert str(found.formula) == "y = 2 * x + 1"
    assert found.certificate.verdict.stands


@pytest.mark.slow
def test_a_table_without_a_rule_has_no_wrong_rows() -> None:
    rng = np.random.default_rng(0)
    columns = {"x": rng.standard_normal(80), "y": (rng.random(80) < 0.3).astype(float)}
    found = audit_table(columns, "y")
    assert found.certificate.verdict is Verdict.NONE
    assert not found.is_rule
    assert not found.is_certain
    assert not found.wrong.any()
    assert found.agree.any()
    assert (found.n_wrong, found.wrong_share, found.worst(5)["row"]) == (0, 0, [])
    rows = found.rows()
    assert not rows["wrong"].any()
    assert set(rows["kind"].tolist()) == {""}
    assert set(rows["implied"].tolist()) == set(rows["residual"].tolist()) == {None}
    fixed = found.fixed().cells(["y"], np.arange(80))["y"]
    np.testing.assert_array_equal(fixed, columns["y"])
    assert summary(found)["rows_wrong"] == 0
    assert not apply_model(found.model(), table_of(columns)).columns["wrong"].any()


def rounded(n: int = 300) -> tuple[dict[str, Any], Any, Any]:
    """Amounts to cents: the first 12 off by a cent, 40 by much more; a column without effect beside."""
    rng = np.random.default_rng(0)
    kg = rng.uniform(1, 100, n)
    y = np.round(1.852 * kg, 2)
    y[:12] = np.round(y[:12] + 0.01, 2)
    y[20:60] = np.round(y[20:60] + 5, 2)
    return {"kg": kg, "shelf": rng.integers(0, 9, n), "y": y}, np.arange(12), np.arange(20, 60)


@pytest.mark.slow
def test_rows_off_by_a_last_place_are_a_kind_of_their_own() -> None:
    columns, near, far = rounded()
    found = audit_table(columns, "y")
    assert str(found.formula) == "y = 1.852 * kg"
    np.testing.assert_array_equal(np.flatnonzero(found.last_place), near)
    np.testing.assert_array_equal(np.flatnonzero(found.wrong), far)
    assert (found.n_wrong, found.n_last_place, found.wrong_share) == (40, 12, 40 / 300)
    rows = found.rows()
    assert rows["kind"].tolist() == ["off by +5"] * 40 + ["last place"] * 12 + [""] * 248
    assert rows["wrong"].tolist() == [True] * 40 + [False] * 260
    assert sorted(rows["row"][:40].tolist()) == (far + 1).tolist()
    fixed = np.array(found.fixed().cells(["y"], np.arange(300))["y"])
    np.testing.assert_array_equal(np.flatnonzero(fixed != columns["y"]), far)
    said = summary(found)
    assert (said["rows_wrong"], said["rows_last_place"], said["agreement"]) == (40, 12, "within rounding to cents")


def cancelling(n: int = 400) -> dict[str, Any]:
    """Large terms that cancel, a total to cents, some of them off by a cent or more."""
    rng = np.random.default_rng(3)
    gross, rate = np.round(rng.uniform(1e9, 9e9, n), 2), rng.integers(1, 9, n)
    paid = np.round(gross - rng.uniform(0, 100, n), 2)
    y = np.round(gross - paid + 2.5 * rate, 2)
    y[::7] = np.round(y[::7] + 0.01, 2)
    y[::5] = np.round(y[::5] + 3, 2)
    y[:9] = 1e11
    return {"gross": gross, "paid": paid, "rate": rate, "idle": rng.integers(0, 5, n), "y": y}


def published(n: int = 400) -> dict[str, Any]:
    """Differences of figures that were rounded after they were subtracted."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(100, 900, (2, n))
    y = a - b
    y[:60] += rng.uniform(5, 50, 60)
    return {"a": np.round(a, 1), "b": np.round(b, 1), "idle": rng.integers(0, 9, n), "y": np.round(y, 1)}


@pytest.mark.slow
def test_figures_that_were_rounded_before_the_sum_agree() -> None:
    found = audit_table(published(), "y")
    assert str(found.formula) == "y = a - b"
    assert found.agreement.level is Level.INPUTS
    np.testing.assert_array_equal(np.flatnonzero(found.wrong), np.arange(60))
    assert "340 of 400 rows within rounding to 1 decimal, and that of the columns" in found.explanation


TABLES: dict[str, Any] = {
    "published": (published, "y"),
    "mixed": (ledger, "total"),
    "rounded": (lambda: rounded()[0], "y"),
    "cancelling": (cancelling, "y"),
    "clipped": (relu_columns, "y"),
}


@pytest.mark.full(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_saved_model_judges_the_rows_of_its_table_as_the_fit_did(name: str, tmp_path: Path) -> None:
    make, target = TABLES[name]
    columns = make()
    found = audit_table(columns, target)
    assert found.is_rule
    assert found.wrong.any()
    found.model().save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    write_columns(tmp_path / "table.csv", columns)
    order = np.random.default_rng(0).permutation(len(columns[target]))
    shuffled = table_of({key: np.asarray(values)[order] for key, values in columns.items()})
    every = np.arange(len(order))
    for table, rows in ((table_of(columns), every), (read_table(tmp_path / "table.csv"), every), (shuffled, order)):
        judged = apply_model(model, table).columns
        np.testing.assert_array_equal(judged["kind"], found.kinds.of(rows))
        np.testing.assert_array_equal(judged["wrong"], found.wrong[rows])


@pytest.mark.full
@pytest.mark.slow
def test_what_is_confirmed_follows_the_bound_that_is_assumed() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (250, 5)) + rng.integers(0, 2, (250, 5))
    y = (x @ np.arange(1.0, 6.0)) + 2
    y[rng.random(250) < 0.25] += 7.25
    columns = {f"x{j}": x[:, j] for j in range(5)} | {"y": y}
    strict = audit_table(columns, "y")
    assert strict.certificate.verdict is Verdict.MAJORITY
    lenient = audit_table(columns, "y", wrong_at_most=0.95 * strict.certificate.eta_max)
    assert lenient.certificate.verdict is Verdict.CONFIRMED
    assert lenient.is_certain
    assert not strict.is_certain


@pytest.mark.slow
def test_a_float32_table_agrees_to_its_own_precision() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)).astype(np.float32)
    y = (X @ np.array([1.5, -2.0]) + 1).astype(np.float32)
    y[::3] += 1
    found = audit_table({"a": X[:, 0], "b": X[:, 1], "y": y}, "y")
    np.testing.assert_array_equal(np.flatnonzero(found.wrong), np.arange(0, 300, 3))


@pytest.mark.slow
def test_the_summary_is_json_and_says_what_the_audit_says() -> None:
    found = audit_table(ledger(), "total", group="region")
    said = json.loads(json.dumps(summary(found), allow_nan=False))
    assert said["formula"] == str(found.formula)
    assert said["rows_wrong"] == found.n_wrong
    assert (said["verdict"], said["certain"]) == (found.certificate.verdict.name, found.is_certain)
    assert said["explanation"] == found.explanation
    assert found.certificate.support is not None
    assert (said["alpha"], said["eta_max"]) == (found.certificate.support.alpha, found.certificate.eta_max)
    assert set(said["weakest_direction"]) <= {
        "hours",
        "items",
        "rush",
        "region = south",
        "region = west",
        "the intercept",
    }
    assert (said["undetermined"], said["thin"], said["agreement"]) == ([], [], "exactly")
    assert {(c["column"], c["level"]): c["value"] for c in said["coefficients"][:-1]} == TRUTH
    assert said["coefficients"][0]["exact"] == "541/10"
    assert len(said["worst_rows"]) == 20
    assert {group["name"] for group in said["groups"]} == {"north", "south", "west"}


def test_json_tells_a_column_named_intercept_from_the_constant() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"intercept": rng.integers(1, 99, 60), "x": rng.integers(1, 99, 60)})
    frame["total"] = 2 * frame.intercept + 3 * frame.x + 7
    found = summary(audit_table(frame, target="total"))["coefficients"]
    assert [(c["term"], c["column"], c["value"]) for c in found] == [
        ("intercept", "intercept", 2),
        ("x", "x", 3),
        ("intercept", None, 7),
    ]


def test_rows_that_cannot_be_predicted_are_empty_and_counted(audited: Audit) -> None:
    model = audited.model()
    new: dict[str, Any] = {"hours": [1.0, None, 2.0], "items": [1, 2, 3], "rush": [True, False, True]}
    new["region"] = ["north", "south", "the moon"]
    found = apply_model(model, table_of(new))
    assert found.columns["implied"].tolist() == [pytest.approx(54.1 + 7.9 + 25 + 35), None, None]
    assert found.notices


DAMAGE: dict[str, Any] = {
    "not JSON": lambda text: text[:-40],
    "not a model": lambda text: "{}",
    "a list": lambda text: "[]",
    "not UTF-8": lambda text: b"\xff\xfe\x00",
    "another version": lambda text: text.replace('"version": 3', '"version": 4'),
    "an unknown level": lambda text: text.replace('"level": "EXACT"', '"level": "ABOUT"'),
    "a negative half-width": lambda text: text.replace('"label": 0.0', '"label": -1.0'),
    "too few half-widths": lambda text: text.replace('"inputs": []', '"inputs": [0.5]'),
    "no list of half-widths": lambda text: text.replace('"inputs": []', '"inputs": null'),
    "text for a number": lambda text: text.replace('"coef": 54.1', '"coef": "54.1"'),
    "a boolean for a number": lambda text: text.replace('"coef": 54.1', '"coef": true'),
    "infinity": lambda text: text.replace('"coef": 54.1', '"coef": Infinity'),
    "1e400": lambda text: text.replace('"coef": 54.1', '"coef": 1e400'),
    "a huge integer": lambda text: text.replace('"coef": 54.1', '"coef": 1' + "0" * 400),
    "an endless integer": lambda text: text.replace('"coef": 54.1', '"coef": 1' + "0" * 5000),
    "a huge fraction": lambda text: text.replace('"541/10"', '"1e999999999"'),
    "a division by zero": lambda text: text.replace('"541/10"', '"1/0"'),
    "a missing field": lambda text: text.replace('"intercept"', '"no intercept"', 1),
    "another column": lambda text: text.replace('"column": "hours"', '"column": "days"', 1),
    "an infinite limit": lambda text: text.replace('"lower": null', '"lower": Infinity'),
    "no encoding": lambda text: text[: text.index('"encoding"')] + '"encoding": 3}',
    "an option that cannot be": lambda text: text.replace('"options": {', '"options": {"budget": -1, '),
    "nested without end": lambda text: "[" * 200_000,
    "empty": lambda text: "",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_models_are_refused_in_one_line(kind: str, audited: Audit, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    audited.model().save(path)
    text = path.read_text()
    damaged = DAMAGE[kind](text)
    assert damaged != text
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    with pytest.raises(ModelError, match=r"model\.json") as caught:
        load_model(path)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot read the model .*none\.json"):
        load_model(tmp_path / "none.json")


def test_bad_arguments_are_named() -> None:
    for name, value in {"tolerance": "x", "budget": -1, "features": "hours", "strict": "no", "skip": -1}.items():
        with pytest.raises(ValueError, match=f"^{name} must be .*, got "):
            audit_table(ledger(), "total", **{name: value})
    with pytest.raises(TypeError, match="unexpected keyword argument 'id_column'"):
        audit_table(ledger(), "total", id_column="invoice")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match='model must be "auto", "linear" or "relu", got \'cubic\''):
        audit_table(ledger(), "total", model="cubic")  # type: ignore[arg-type]
    with pytest.raises(TableError, match="totl"):
        audit_table(ledger(), "totl")
    with pytest.raises(ValueError, match="tolerance"):
        audit_table(ledger(), "total", tolerance=-1.0)
    for share in (0.0, 1.0):
        with pytest.raises(ValueError, match="wrong_at_most must be between 0 and 1"):
            audit_table(ledger(), "total", wrong_at_most=share)
    with pytest.raises(TableError, match='no column "batch"'):
        audit_table(ledger(), "total", error_unit="batch")
    with pytest.raises(TableError, match="the target cannot say which rows are wrong together"):
        audit_table(ledger(), "total", error_unit="total")


@pytest.mark.slow
def test_noise_around_zero_is_no_limit_at_zero() -> None:
    """Labels of both signs follow a sum, also where many of them are near zero."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4000, 2))
    y = 2 * X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(4000)
    found = audit_table({"a": X[:, 0], "b": X[:, 1], "y": y}, "y", terms="columns")
    assert found.certificate.verdict is Verdict.NOISY
    assert not found.formula.clipping
    assert found.n_agree > 3900


def gappy(n: int = 400) -> dict[str, Any]:
    """A stock with its movements, and two columns that nothing needs and that are not always filled in."""
    rng = np.random.default_rng(0)
    bought, sold = rng.integers(0, 50, n), rng.integers(0, 30, n)
    stock = 500 + np.cumsum(bought - sold)
    return {
        "bought": bought,
        "sold": sold,
        "note": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n)),
        "clerk": [name if share > 0.1 else None for name, share in zip(["ab", "cd"] * n, rng.random(n), strict=False)],
        "stock": np.where(np.arange(n) % 17 == 16, stock + 90, stock),
        "value": np.where(np.arange(n) % 17 == 3, 7, 3 * bought + 2 * sold),
    }


@pytest.mark.parametrize(
    "more", [{}, {"number": ["note"], "category": ["clerk"]}, {"features": ["bought", "sold", "note"]}]
)
def test_what_no_term_reads_need_not_be_there(more: dict[str, Any]) -> None:
    audit = audit_table(gappy(), "value", terms="bought, sold", exclude=["stock"], **more)
    assert str(audit.formula) == "value = 3 * bought + 2 * sold"
    assert len(audit.design.kept) == 400
    assert np.flatnonzero(audit.wrong).tolist() == list(range(3, 400, 17))


def test_a_term_that_looks_at_the_row_before_needs_only_the_columns_it_reads() -> None:
    audit = audit_table(gappy(), formula="stock ~ lag(stock) + bought + sold")
    assert str(audit.formula) == "stock = lag(stock) + bought - sold"
    assert np.flatnonzero(audit.wrong).tolist() == list(range(15, 399, 17))  # the first row has none before it
    with pytest.raises(TableError, match="needs every row of the table, but row [0-9]+ lacks a value"):
        audit_table(gappy(), "stock", terms="lag(note), bought")


def test_noisy_labels_of_given_terms_are_told_how_they_are_estimated() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 40, 300), np.round(rng.uniform(1, 90, 300), 2)
    table = {"a": a, "b": b, "y": np.round(2.5 * a + 1.2 * b + 15 + rng.normal(0, 3, 300), 2)}
    found = audit_table(table, "y", terms="a, b")
    assert found.certificate.verdict is Verdict.NONE
    assert any("--inliers noisy" in notice for notice in found.notices)
    found = audit_table(table, "y", terms="a, b", inliers="noisy")
    assert found.certificate.verdict is Verdict.NOISY
    assert not any("--inliers noisy" in notice for notice in found.notices)
