"""Fixed tables: what was wrong is put right, everything else stays byte for byte."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")

from massart.audit import audit_table, check_table
from massart.cli import run
from massart.rows import Level

WRONG = range(3, 200, 10)
BLANK = (5, 50)


def ledger(path: Path, delimiter: str = ",", mark: str = ".", money: str = "{}", end: str = "\n") -> list[list[str]]:
    """Write a table as people write them, and return its cells as they are written."""
    rng = np.random.default_rng(0)
    rows = [["no", "customer", "hours", "km", "total", "note"]]
    for k in range(200):
        hours, km = rng.integers(1, 200) / 4, int(rng.integers(0, 300))
        total = 54 * hours + 0.5 * km + 9
        total = 10 * total if k in WRONG else total
        amount = "" if k in BLANK else money.format(f"{total:.2f}".replace(".", mark))
        if delimiter in amount:
            amount = f'"{amount}"'
        note = ['"a, b; ""c"""', "007", "1.50", '"two' + end + 'lines"', "+"][k % 5]
        rows.append([f"{k:05}", "Ann" if k % 2 else '"Bob"', f"{hours:.3f}".replace(".", mark), f"{km}", amount, note])
    if delimiter == "," and mark == ",":
        for row in rows[1:]:
            row[2] = f'"{row[2]}"'
    path.write_bytes(end.join(delimiter.join(row) for row in rows).encode())  # no line end behind the last row
    return rows


def cells(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of a text as they are written."""
    cell = rf'(?:"(?:[^"]|"")*"|[^{re.escape(delimiter)}\r\n"]*)'
    rows = re.findall(rf"{cell}(?:{re.escape(delimiter)}{cell})*", text)
    return [re.findall(rf"(?:^|{re.escape(delimiter)})({cell})", row) for row in rows if row]


@pytest.mark.slow
@pytest.mark.parametrize(("delimiter", "mark", "money", "end"), [
    (",", ".", "{}", "\n"),
    (",", ".", "${}", "\r\n"),
    (";", ",", "{} €", "\n"),
    (",", ",", "{}", "\n"),
    ("\t", ".", "{} kg", "\r\n"),
])  # fmt: skip
def test_untouched_cells_stay_byte_for_byte(delimiter: str, mark: str, money: str, end: str, tmp_path: Path) -> None:
    path, fixed = tmp_path / "ledger.csv", tmp_path / "fixed.csv"
    before = ledger(path, delimiter, mark, money, end)
    options = ["--exclude", "note,customer", "--fixed", str(fixed), "--delimiter", delimiter, "--decimal", mark]
    assert run(["fit", str(path), "--target", "total", *options]) == 0
    after = cells(fixed.read_bytes().decode(), delimiter)
    assert after[0] == ["no", "customer", "hours", "km", "total", "total_given", "note", "wrong", "kind"]
    assert len(after) == len(before)
    touched = 0
    for k, (old, new) in enumerate(zip(before[1:], after[1:], strict=True)):
        assert new[:4] + new[5:7] == old  # what was given stands beside the new value
        if k in WRONG:
            touched += 1
            given = float(re.sub(r"[^\d,.]", "", old[4]).replace(mark, "."))
            right = money.format(f"{given / 10:.2f}".replace(".", mark))
            assert new[4].strip('"') == right
            assert new[7:] == ["true", "factor 10"]
        else:
            assert new[4] == old[4]
            assert new[7:] == ["" if k in BLANK else "false", ""]
    assert touched == len(WRONG)


@pytest.mark.slow
def test_missing_targets_are_filled_in_on_request(tmp_path: Path) -> None:
    path = tmp_path / "ledger.csv"
    before = ledger(path)
    for name in ("fixed.csv", "fixed.parquet"):
        fixed = tmp_path / name
        options = ["--exclude", "note,customer", "--fill", "--fixed", str(fixed)]
        assert run(["fit", str(path), "--target", "total", *options]) == 0
        if fixed.suffix == ".csv":
            with fixed.open(newline="") as file:
                rows = list(csv.DictReader(file))
        else:
            import pyarrow.parquet as pq

            rows = pq.read_table(fixed).to_pylist()
        for k in BLANK:
            hours, km = float(before[k + 1][2]), int(before[k + 1][3])
            assert float(rows[k]["total"]) == 54 * hours + 0.5 * km + 9
            assert rows[k]["kind"] == "filled in"
        assert sum(row["kind"] == "filled in" for row in rows) == len(BLANK)


@pytest.mark.slow
def test_an_uncertain_rule_fixes_nothing_unless_it_is_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    hours, rush = rng.integers(1, 40, 400) / 4, np.arange(400) < 9  # few rows have the surcharge
    total = 54 * hours + 30 * rush + 7
    total[50:150] = rng.integers(1, 999, 100)
    path, fixed = tmp_path / "majority.csv", tmp_path / "fixed.csv"
    rows = zip(hours, rush.astype(int), total, strict=True)
    path.write_text("hours,rush,total\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    for memory in ("1GB", "1kB"):  # in memory, and as a stream
        fit = [
            "fit",
            str(path),
            "--target",
            "total",
            "--terms",
            "columns",
            "--max-memory",
            memory,
            "--fixed",
            str(fixed),
        ]
        assert run(fit) == 1
        assert "no fixed table is written without --force" in capsys.readouterr().err
        assert not fixed.exists()
        assert run([*fit, "--force"]) == 0
        assert fixed.read_text().splitlines()[0].replace('"', "") == "hours,rush,total,total_given,wrong,kind"
        fixed.unlink()
    assert not audit_table(path, "total", terms="columns", fixed=fixed).is_certain
    assert not fixed.exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_come_back_as_they_went_in(kind: str) -> None:
    library = pytest.importorskip(kind)
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 900, (2, 300))
    y = 3 * a + 7 * b + 5
    y[::9] *= 10
    columns = {"a": a, "b": b, "y": y, "note": [f"n{k}" for k in range(300)]}
    labels = [f"row-{k}" for k in range(300)]
    if kind == "pandas":
        frame = library.DataFrame(columns, index=labels)
    else:
        frame = library.DataFrame(columns) if kind == "polars" else library.table(columns)
    found = audit_table(frame, "y", exclude=["note"])
    rows, wrong, fixed = found.rows(), found.wrong_rows(), found.fixed()
    assert type(rows) is type(wrong) is type(fixed) is type(frame)
    assert len(rows) == len(fixed) == 300
    assert len(wrong) == 34
    assert [int(v) for v in np.asarray(fixed["y"])] == (3 * a + 7 * b + 5).tolist()
    assert list(np.asarray(wrong["note"])) == [f"n{k}" for k in range(0, 300, 9)]
    if kind == "pandas":
        assert list(wrong.index) == labels[::9]
        assert list(fixed.index) == labels
        assert [f"row-{number - 1}" for number in rows["row"]] == list(rows.index)


def test_an_audit_is_short_to_look_at() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 900, (2, 300))
    y = 3 * a + 7 * b + 5
    y[::9] *= 10
    found = audit_table({"a": a, "b": b, "y": y}, "y")
    assert repr(found) == "<Audit of the table: y = 3 * a + 7 * b + 5; PROVEN, 34 of 300 rows wrong>"
    assert "factor 10" in found._repr_html_()


@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.parametrize("has_twin", [False, True])
def test_a_row_of_which_the_rule_says_nothing_stays_as_it_is(in_blocks: bool, has_twin: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n, alone = 300, 17
    hours, km = rng.integers(1, 40, n), rng.integers(1, 300, n)
    express = km.copy() if has_twin else np.zeros(n, dtype=int)
    express[alone] += 1
    total = 12 * hours + 2 * km + 45 * (express - km if has_twin else express)
    wrong = np.setdiff1d(np.arange(3, n, 9), alone)
    given = total.copy()
    given[wrong] += 7
    path, fixed = tmp_path / "table.csv", tmp_path / "fixed.csv"
    text = "\n".join(f"{a},{b},{c},{d}" for a, b, c, d in zip(hours, km, express, given, strict=True))
    path.write_text(f"hours,km,express,total\n{text}\n")
    found = audit_table(path, target="total", terms="columns", fixed=fixed, max_memory=2_000 if in_blocks else 1 << 30)
    assert found.is_certain
    assert [column for column, _ in found.certificate.thin]  # one row says nothing of a rule
    rows = list(csv.DictReader(fixed.read_text().splitlines()))
    assert [int(float(row["total"])) for row in rows] == total.tolist()
    assert (rows[alone]["wrong"], rows[alone]["kind"]) == ("", "left open")
    assert [k for k, row in enumerate(rows) if row["wrong"] == "true"] == wrong.tolist()


def stock_card(path: Path, order: str = "interleaved") -> tuple[np.ndarray, np.ndarray]:
    """Write a stock card of 40 articles, and return what is in stock and what is written."""
    rng = np.random.default_rng(7)
    n = 1500
    sku = rng.integers(0, 40, n)
    sku = np.sort(sku) if order == "sorted" else sku
    goods_in = np.where(rng.random(n) < 0.4, rng.integers(10, 120, n), 0)
    goods_out = np.where(goods_in == 0, rng.integers(1, 60, n), 0)
    stock = rng.integers(300, 900, 40)[sku]
    for article in range(40):
        rows = sku == article
        stock[rows] += np.cumsum(goods_in[rows] - goods_out[rows])
    given = stock.copy()
    for row in np.flatnonzero(rng.random(n) < 0.08):
        given[row] = [10 * stock[row], stock[row] + 100, rng.integers(1, 999), -stock[row]][rng.integers(4)]
    rows = (f"S{a:02},{b},{c},{d}" for a, b, c, d in zip(sku, goods_in, goods_out, given, strict=True))
    path.write_text("sku,goods_in,goods_out,stock\n" + "\n".join(rows) + "\n")
    return stock, given


STOCK = ["--category", "sku", "--terms", "lag(stock, by=sku), goods_in, goods_out"]


@pytest.mark.parametrize("order", ["interleaved", "sorted"])
def test_a_right_row_after_a_wrong_one_is_neither_called_wrong_nor_changed(order: str, tmp_path: Path) -> None:
    path, fixed, audit = tmp_path / "stock.csv", tmp_path / "fixed.csv", tmp_path / "audit.csv"
    stock, given = stock_card(path, order)
    outputs = ["--fixed", str(fixed), "--audit", str(audit)]
    assert run(["fit", str(path), "--target", "stock", *STOCK, *outputs]) == 0
    rows = list(csv.DictReader(fixed.read_text().splitlines()))
    after = np.array([int(row["stock"]) for row in rows])
    wrong = stock != given
    assert (after[~wrong] == stock[~wrong]).all()
    assert ((after == stock) | (after == given)).all()  # put right, or left as it is
    assert (after[wrong] == stock[wrong]).mean() > 0.85
    following = [k for k, row in enumerate(rows) if row["kind"] == "the row before is wrong"]
    assert len(following) > 80
    assert not wrong[following].any()
    assert {rows[k]["wrong"] for k in following} == {"false"}
    left = [k for k, row in enumerate(rows) if row["kind"] == "rests on rows that may be wrong"]
    assert {rows[k]["wrong"] for k in left} == {""}
    assert {rows[k]["stock"] == rows[k]["stock_given"] for k in left} == {True}
    for row in csv.DictReader(audit.read_text().splitlines()):
        if row["kind"] == "the row before is wrong":
            assert (row["wrong"], float(row["residual"])) == ("false", 0)
            assert float(row["implied"]) == float(row["given"])


def test_a_wrong_movement_moves_no_right_value(tmp_path: Path) -> None:
    path, fixed = tmp_path / "stock.csv", tmp_path / "fixed.csv"
    rng = np.random.default_rng(3)
    goods_in, goods_out = rng.integers(0, 60, (2, 900))
    stock = 5_000 + np.cumsum(goods_in - goods_out)
    given, moved = stock.copy(), goods_in.copy()
    given[40:880:30] += 300
    moved[[100, 500]] *= 10  # what came in is wrong, and the stock is right
    table = np.column_stack([moved, goods_out, given])
    path.write_text("goods_in,goods_out,stock\n" + "".join(",".join(map(str, row)) + "\n" for row in table))
    changed = 0
    for terms in ("lag(stock), goods_in, goods_out", "cumsum(goods_in), cumsum(goods_out)"):
        run(["fit", str(path), "--target", "stock", "--terms", terms, "--fixed", str(fixed), "--force"])
        after = np.array([int(row["stock"]) for row in csv.DictReader(fixed.read_text().splitlines())])
        assert (after[stock == given] == stock[stock == given]).all()
        changed += np.count_nonzero(after != given)
    assert changed > 20


def test_predictions_and_checks_imply_from_right_rows(tmp_path: Path) -> None:
    path, model, out, audit = (tmp_path / name for name in ("stock.csv", "model.json", "out.csv", "audit.csv"))
    stock, given = stock_card(path)
    assert run(["fit", str(path), "--target", "stock", *STOCK, "--save", str(model)]) == 0
    run(["predict", str(model), str(path), "--out", str(out)])
    run(["check", str(model), str(path), "--audit", str(audit)])
    for name in (out, audit):
        rows = [row for row in csv.DictReader(name.read_text().splitlines()) if row["wrong"]]
        numbers = np.array([int(row["row"]) - 1 for row in rows])
        following = np.array([row["kind"] == "the row before is wrong" for row in rows])
        implied = np.array([float(row["implied"]) for row in rows])
        assert following.sum() > 80
        assert (implied == stock[numbers])[following].all()
        assert {row["wrong"] for row, is_one in zip(rows, following, strict=True) if is_one} == {"false"}
        assert (stock == given)[numbers][following].all()


def test_a_frame_is_not_put_right_by_a_rule_that_is_not_certain() -> None:
    rng = np.random.default_rng(0)
    hours, rush = rng.integers(1, 40, 400) / 4, (np.arange(400) < 9).astype(float)
    total = 54 * hours + 30 * rush + 7
    total[50:150] = rng.integers(1, 999, 100)
    found = audit_table({"hours": hours, "rush": rush, "total": total}, "total", terms="columns")
    assert not found.is_certain
    with pytest.raises(ValueError, match=r"not certain: no values are replaced; fixed\(force=True\)"):
        found.fixed()
    assert found.fixed(force=True).n_rows == 400


@pytest.mark.slow
def test_no_right_value_is_ever_changed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("python_calamine")
    pytest.importorskip("xlsxwriter")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import repairs

    assert repairs.main(["--seed", "3", "--small"]) == 0  # every kind of rule once; formats and errors are drawn
    told = capsys.readouterr().out.splitlines()[-2]
    counts = {what: int(n.replace(",", "")) for what, n in re.findall(r"([a-z ,]+?) ([\d,]*\d)(?:, |$)", told[5:])}
    assert counts["put right"] > 500
    assert counts.get("errors", 0) == counts.get("right changed", 0) == 0


@pytest.mark.parametrize("even", [False, True])
def test_halves_are_rounded_as_right_rows_are(even: bool) -> None:
    rng = np.random.default_rng(0)
    net = rng.integers(1, 2_000, 600)  # in units of 2 cents: a quarter of the values ends in half a cent
    fee = 0.25 * net / 100 * 2
    cents = net / 2
    rounded = np.round(cents) if even else np.floor(cents + 0.5)
    truth = rounded / 100
    given = truth.copy()
    wrong = np.arange(0, 600, 6)
    given[wrong] += 3
    assert np.allclose(fee * 100, cents)
    found = audit_table({"net": net / 50, "fee": given}, "fee", terms="columns")
    fixed = np.array(found.fixed(force=True).cells(["fee"], np.arange(600))["fee"])
    assert (fixed == np.round(truth, 2)).all()


def test_titles_and_totals_of_an_export_stay(tmp_path: Path) -> None:
    path, fixed = tmp_path / "export.csv", tmp_path / "fixed.csv"
    rng = np.random.default_rng(0)
    net = rng.integers(100, 90_000, 300)
    gross = np.round(net * 1.19).astype(int)
    given = np.where(np.arange(300) % 11 == 4, gross * 10, gross)

    def amount(cents: int) -> str:
        return f"{cents / 100:_.2f}".replace(".", ",").replace("_", ".")

    rows = [f"K{k};{amount(net[k])};{amount(given[k])} €;Straße {k}" for k in range(300)]
    title = ["Auszug Mai;;;", "Firma;X & Söhne;;", "", "Kunde;Netto;Brutto;Ort"]
    total = [f"Summe;{amount(net.sum())};{amount(given.sum())} €;", "Seite 1"]
    path.write_bytes("\r\n".join([*title, *rows, *total, ""]).encode("cp1252"))
    assert run(["fit", str(path), "--target", "Brutto", "--terms", "Netto", "--fixed", str(fixed)]) == 0
    lines = fixed.read_bytes().decode("cp1252").split("\r\n")
    assert lines[:3] == title[:3]
    assert lines[3] == "Kunde;Netto;Brutto;Brutto_given;Ort;wrong;kind"
    for k, line in enumerate(lines[4:304]):
        name, before, after, beside, town, wrong, kind = line.split(";")
        assert ";".join([name, before, beside, town]) == rows[k]
        assert after == f"{amount(gross[k])} €"
        assert (wrong, kind) == (("true", "factor 10") if k % 11 == 4 else ("false", ""))
    assert lines[304:] == [
        f"Summe;{amount(net.sum())};{amount(given.sum())} €;{amount(given.sum())} €;;;",
        "Seite 1",
        "",
    ]


def test_a_saved_rule_that_most_rows_break_puts_nothing_right() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 900, (2, 300))
    model = audit_table({"a": a, "b": b, "y": 3 * a + 7 * b + 5}, "y").model()
    other = np.where(np.arange(300) % 3 > 0, 4 * a + 7 * b + 5, 3 * a + 7 * b + 5)
    checked = check_table(model, {"a": a, "b": b, "y": other}).audit
    assert checked.is_certain
    with pytest.raises(ValueError, match="Most of these rows do not follow the saved rule"):
        checked.fixed()


def test_a_right_value_beside_a_wrong_column_is_left_as_it_is() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = np.random.default_rng(0)
    qty, fee = np.rint(np.exp(rng.uniform(0, 7, 800))), rng.integers(1, 40_000, 800) / 100
    y = np.round(12.5 * qty + fee, 2)
    typed, given = qty.copy(), y.copy()
    small, large = np.flatnonzero(qty < 100)[:3], np.flatnonzero(qty >= 100)[:40]
    typed[small] *= 10
    given[large] = np.round(y[large] + rng.integers(1_000, 90_000, 40) / 7, 2)
    found = audit_table(pd.DataFrame({"qty": typed, "fee": fee, "y": given}), "y", terms="columns")
    fixed = found.fixed()
    assert (fixed["y"][small] == y[small]).all()
    assert [str(word) for word in np.asarray(fixed["kind"])[small]] == ["qty may be wrong: factor 10"] * 3
    assert np.count_nonzero(np.asarray(fixed["y"]) == y) >= 795


def test_what_rounded_columns_do_not_settle_is_left_as_it_is() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = np.random.default_rng(1)
    columns = {name: rng.uniform(0, 100, 1_500) for name in "ab"}
    y = np.round(31.7 * columns["a"] + 12.3 * columns["b"], 2)
    given = y.copy()
    given[:60] = np.round(10 * y[:60], 2)
    table = {name: np.round(values, 2) for name, values in columns.items()} | {"y": given}
    found = audit_table(pd.DataFrame(table), "y", terms="columns")
    assert found.agreement.level is Level.INPUTS
    assert found.n_wrong == 60
    assert (np.asarray(found.fixed(force=True)["y"]) == given).all()
