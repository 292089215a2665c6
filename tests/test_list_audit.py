"""``massart fit --rules``: a table whose rows follow several rules, at every door."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pa = pytest.importorskip("pyarrow")

from massart import audit_table, recover_list
from massart.audit import ListAudit
from massart.cli import run

N = 700
FIRST = "2.5 * kg + 9 * express - 4 * (zone = A) + 8"
SECOND = "3.1 * kg + 11"


def parcels(seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return a price list with two tariffs, errors and junk, and what made each price: 1, 2, or an error."""
    rng = np.random.default_rng(seed)
    kg, express, zone = rng.uniform(0.2, 40, N).round(1), rng.random(N) < 0.3, rng.choice(["A", "B"], N, p=[0.4, 0.6])
    first, second = 2.5 * kg + 9 * express + np.where(zone == "A", 4, 8), 3.1 * kg + 11
    made = rng.choice(["1", "2", "factor", "kg forgotten", "junk"], N, p=[0.48, 0.3, 0.07, 0.08, 0.07])
    prices = [first, second, 10 * first, first - 2.5 * kg, rng.uniform(5, 300, N)]
    price = np.select([made == name for name in ("1", "2", "factor", "kg forgotten", "junk")], prices).round(2)
    kg[:2], express[:2], zone[:2], price[:2], made[:2] = 10, True, "B", 42, "both"
    number = np.array([f"P{k:03d}" for k in range(N)])
    return {"parcel": number, "kg": kg, "express": express, "zone": zone, "price": price}, made


def fits(table: dict[str, np.ndarray]) -> np.ndarray:
    """Return the rule of each row as the audit names it, by reckoning."""
    kg, express, zone, price = (table[name] for name in ("kg", "express", "zone", "price"))
    first, second = 2.5 * kg + 9 * express + np.where(zone == "A", 4, 8), 3.1 * kg + 11
    one, two = np.abs(first - price) < 0.00501, np.abs(second - price) < 0.00501
    return np.where(one & two, "1 or 2", np.where(one, "1", np.where(two, "2", "none")))


@pytest.fixture(scope="module")
def found() -> ListAudit:
    table, _ = parcels()
    audit = audit_table(pa.table(table), "price", rules="auto", id="parcel")
    assert isinstance(audit, ListAudit)
    return audit


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table, _ = parcels()
    path = tmp_path_factory.mktemp("parcels") / "parcels.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(table)
        writer.writerows(zip(*(values.tolist() for values in table.values()), strict=True))
    return path


def test_each_rule_has_its_formula_and_its_rows(found):
    table, made = parcels()
    assert [str(rule.formula) for rule in found.rules] == [f"price = {FIRST}", f"price = {SECOND}"]
    assert found.names.tolist() == fits(table).tolist()
    assert [rule.n_rows for rule in found.rules] == [int((fits(table) == name).sum()) for name in ("1", "2")]
    assert found.n_shared == 2
    assert found.n_wrong + found.n_last_place == (fits(table) == "none").sum()
    assert found.certificate.verdict.name == "PLURALITY"
    kinds = {kind.label: kind.rows for kind in found.kinds.kinds}
    assert kinds["rule 1 times 10"] == (made == "factor").sum()
    assert kinds["rule 1 without kg"] == (made == "kg forgotten").sum()
    assert sum(kinds.values()) == found.n_wrong + found.n_last_place


def test_the_sentence_counts_every_row_once(found):
    text = found.explanation
    assert "; 2 rows fit rules 1 and 2." in text
    assert text.startswith(f"Two rules: {found.rules[0].n_rows} rows follow rule 1 and {found.rules[1].n_rows} others")
    rest = next(kind.rows for kind in found.kinds.kinds if kind.label == "unexplained")
    assert f"{rest} follow none of these" in text
    assert "Unless errors, or which rule a row follows, depend on the columns or on other rows" in text
    assert "Of the coefficients those of kg in rule 1 are right, up to what changes a label by" in text
    assert f"at most {found.most_explained} rows of a further one" in text


def test_the_audit_names_the_rule_of_each_row(found):
    table, _ = parcels()
    rows = found.rows().to_pandas().set_index("parcel").loc[table["parcel"]]
    assert rows["rule"].tolist() == fits(table).tolist()
    assert rows["wrong"].tolist() == found.wrong.tolist()
    followed = (rows["rule"] != "none").to_numpy()
    assert np.allclose(rows["implied"][followed], table["price"][followed])
    assert rows["implied"][~followed].isna().all()
    assert rows["residual"][~followed].isna().all()
    assert np.allclose(rows["rule_2"], (3.1 * table["kg"] + 11).round(2))
    assert set(found.wrong_rows().to_pandas()["rule"]) == {"none"}


def test_the_order_of_rows_changes_nothing(found):
    table, _ = parcels()
    order = np.random.default_rng(1).permutation(N)
    again = audit_table(pa.table({name: cells[order] for name, cells in table.items()}), "price", rules="auto")
    assert [str(rule.formula) for rule in again.rules] == [str(rule.formula) for rule in found.rules]
    assert again.names.tolist() == found.names[order].tolist()
    assert again.explanation == found.explanation


def test_nothing_is_replaced_or_saved(found):
    for act in (found.fixed, found.model):
        with pytest.raises(ValueError, match="list of rules"):
            act()


@pytest.mark.parametrize(
    "terms", ["qty*unit, km", *(pytest.param(terms, marks=pytest.mark.slow) for terms in ("columns", "auto"))]
)
def test_terms_that_no_column_is(terms):
    rng = np.random.default_rng(5)
    qty, unit, km = rng.integers(1, 30, 800), rng.uniform(0.5, 60, 800).round(2), rng.integers(5, 900, 800)
    which = rng.choice(3, 800, p=[0.55, 0.33, 0.12])
    total = np.choose(which, [qty * unit + 6.9, 0.8 * qty * unit + 0.05 * km, rng.uniform(5, 900, 800)]).round(2)
    table = pa.table({"qty": qty, "unit": unit, "km": km, "total": total})
    found = audit_table(table, "total", rules="auto", terms=terms)
    if terms == "columns":
        assert not isinstance(found, ListAudit)
        return
    assert [set(str(rule.formula).split(" = ")[1].split(" + ")) for rule in found.rules] == [
        {"qty * unit", "6.9"},
        {"0.8 * qty * unit", "0.05 * km"},
    ]
    assert (found.names == np.choose(which, ["1", "2", "none"])).mean() > 0.995


def test_one_rule_is_the_plain_fit():
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 99, (2, 300)).astype(float)
    y = 2 * a + 3 * b + 7
    y[:60] += rng.uniform(-90, 90, 60).round(2)
    found = audit_table({"a": a, "b": b, "y": y}, "y", rules="auto")
    assert not isinstance(found, ListAudit)
    assert found.is_certain
    assert found.notices[0].startswith("No list of rules: no second rule passed the test")


@pytest.mark.slow
def test_copies_of_a_few_rows_are_no_rule():
    """Thirty wrong rows, each forty times: a formula through eight of them fits 320 rows, and labels repeat little."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.uniform(0, 100, (900, 7)).round(2), np.ones(900)])
    y = X @ np.arange(1.0, 9.0)
    y[:30] += rng.uniform(-90, 90, 30).round(2)
    again = np.r_[np.arange(900), np.repeat(np.arange(30), 40)]
    found = recover_list(X[again], y[again], n_rules=2, intercept=False)
    assert [rule.coef.tolist() for rule in found.rules] == [[1, 2, 3, 4, 5, 6, 7, 8]]


def test_a_column_without_which_all_rows_are_judged_is_left_out():
    table, _ = parcels()
    note = np.where(np.arange(N) % 5 == 0, np.nan, np.arange(N) % 17)
    found = audit_table(pa.table({**table, "note": pa.array(note, from_pandas=True)}), "price", rules="auto")
    assert [str(rule.formula) for rule in found.rules] == [f"price = {FIRST}", f"price = {SECOND}"]
    assert found.n_judged == N
    assert any(notice.startswith('Left out "note"') for notice in found.notices)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rules": 0}, "rules must be"),
        ({"rules": "many"}, "rules must be"),
        ({"inliers": "noisy"}, "inliers cannot be combined with rules"),
        ({"model": "relu"}, "model cannot be combined with rules"),
        ({"error_unit": "parcel"}, "error_unit cannot be combined with rules"),
        ({"errors": "independent"}, "errors cannot be combined with rules"),
        ({"wrong_at_most": 0.2}, "wrong_at_most cannot be combined with rules"),
        ({"terms": "lag(kg)"}, "looks at other rows"),
        ({"fixed": "x.csv"}, "no fixed table"),
    ],
)
def test_what_has_no_place_beside_a_list_is_one_clear_error(options, words):
    table, _ = parcels()
    with pytest.raises(ValueError, match=words):
        audit_table(pa.table(table), "price", **{"rules": "auto", **options})


def test_a_tolerance_is_obeyed():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 100, (2, 500))
    y = np.where(rng.random(500) < 0.6, 2 * a + 3 * b, 5 * a - b + 40) + rng.uniform(-0.09, 0.09, 500)
    found = audit_table({"a": a, "b": b, "y": y}, "y", rules="auto", tolerance=0.1)
    assert len(found.rules) == 2
    assert found.n_wrong < 5
    assert "0.1" in found.when


# --- the command line ---


def test_the_terminal_says_it_all(file, tmp_path, capsys):
    audit, report = tmp_path / "audit.csv", tmp_path / "report.html"
    options = ("--id", "parcel", "--group", "zone", "--rules", "auto", "--audit", str(audit), "--report", str(report))
    assert run(["fit", str(file), "--target", "price", *options]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[:2] == [f"Rule 1: price = {FIRST}", f"Rule 2: price = {SECOND}"]
    assert "PLURALITY: Two rules: " in out
    assert "rule 1 without kg" in out
    assert "rows that follow none, and what each rule gives:" in out
    with audit.open(newline="") as stream:
        rows = {row["parcel"]: row for row in csv.DictReader(stream)}
    table, _ = parcels()
    assert [rows[name]["rule"] for name in table["parcel"]] == fits(table).tolist()
    page = report.read_text()
    assert "rule 1 without kg" in page
    assert "3.1 * kg" in page


def test_json_has_the_rules_and_follows_the_schema(file, capsys):
    jsonschema = pytest.importorskip("jsonschema")
    assert run(["fit", str(file), "--target", "price", "--rules", "2", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads((Path(__file__).parents[1] / "docs" / "schema.json").read_text()))
    assert [rule["formula"] for rule in found["rules"]] == [f"price = {FIRST}", f"price = {SECOND}"]
    assert sum(rule["rows"] for rule in found["rules"]) + found["rows_shared"] + found["rows_wrong"] + found[
        "rows_last_place"
    ] == len(parcels()[0]["price"])
    assert all(row["rule"] == "none" for row in found["worst_rows"])


def test_exit_status(file, tmp_path, capsys):
    common = ["fit", str(file), "--target", "price", "--rules", "2"]
    assert run([*common, "--max-wrong", "5%"]) == 3
    assert run([*common, "--save", str(tmp_path / "m.json")]) == 2
    assert "a model has one rule" in capsys.readouterr().err
    assert run([*common, "--max-memory", "1"]) == 2
    assert "whole table is in memory" in capsys.readouterr().err
    assert run([*common[:-1], "none"]) == 2
    assert "Invalid value for '--rules': it must be auto or a whole number" in capsys.readouterr().err


def test_a_configuration_may_ask_for_a_list(file, tmp_path, capsys):
    config = tmp_path / "massart.toml"
    config.write_text(f'[[check]]\ntarget = "price"\nrules = "auto"\nfiles = "{file}"\n')
    assert run(["check", "--config", str(config)]) == 1
    assert f"Rule 2: price = {SECOND}" in capsys.readouterr().out
    config.write_text(f'[[check]]\ntarget = "price"\nrules = "all"\nfiles = "{file}"\n')
    assert run(["check", "--config", str(config)]) == 2
    assert 'rules must be "auto" or a whole number' in capsys.readouterr().err


def test_a_rule_of_a_part_of_the_table_is_said_to_be_one():
    rng = np.random.default_rng(4)
    kg, km, zone = rng.uniform(0.2, 40, 600).round(1), rng.integers(5, 900, 600), rng.choice(["A", "B", "C"], 600)
    second = (zone == "B") | (rng.random(600) < 0.04)
    price = np.where(second, 3.1 * kg + 0.08 * km + 15, 2.5 * kg + 0.12 * km + 8)
    price = np.where(rng.random(600) < 0.1, rng.uniform(5, 200, 600), price).round(2)
    found = audit_table(pa.table({"kg": kg, "km": km, "zone": zone, "price": price}), "price", rules="auto")
    assert [rule.formula.expression() for rule in found.rules] == [
        "2.5 * kg + 0.12 * km + 8",
        "3.1 * kg + 0.08 * km + 15",
    ]
    branch = found.rules[1].branch
    assert branch.where == "zone = B"
    assert branch.n_rows == (zone == "B").sum()
    assert branch.n_follow == (found.rules[1].listed.fits & (zone == "B")).sum()
    assert "Which rule a row follows depends on the columns: " in found.explanation
    assert "Unless errors depend on the columns or on each other" in found.explanation
    assert "none is confirmed" in found.explanation
    assert f"{branch.n_follow} of {branch.n_rows} rows with zone = B follow rule 2" in found.explanation


def test_rules_that_rows_follow_at_random_are_no_parts(found):
    assert [rule.branch for rule in found.rules] == [None, None]
