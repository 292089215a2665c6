"""``massart check``: saved rules on other rows, as a contract for pipelines."""

from __future__ import annotations

import csv
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")

import pyarrow.parquet as pq

from massart.audit import audit_table, check_table
from massart.cli import run


def bills(seed: int, n: int = 400, wrong: float = 0.0, **extra: Any) -> dict[str, Any]:
    """Return rows of a tariff in cents; `wrong` of them have ten times the total."""
    rng = np.random.default_rng(seed)
    hours, km = rng.integers(1, 200, n) / 4, rng.integers(0, 300, n)
    zone = rng.choice(["A", "B", "C"], n)
    total = np.round(54 * hours + 0.5 * km + 10 * (zone == "B") + 25 * (zone == "C") + 9, 2)
    chosen = rng.permutation(n)[: round(wrong * n)]
    total[chosen] = np.round(10 * total[chosen], 2)
    note = np.array([f"note {k}" for k in range(n)])
    return {"bill": np.arange(n) + 100, "zone": zone, "hours": hours, "km": km, "total": total, "note": note} | extra


def write(path: Path, columns: dict[str, Any]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path, row_group_size=1_000)
        return path
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tariff.json"
    found = audit_table(bills(0, wrong=0.1), "total", id="bill", exclude=["note"])
    assert found.is_certain
    found.model().save(path)
    return path


def check(*arguments: object) -> int:
    return run(["check", *map(str, arguments)])


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def facts(audit: Any) -> dict[str, Any]:
    kinds = {kind.label: kind.rows for kind in audit.kinds.kinds}
    counts = (audit.n_total, audit.n_judged, audit.n_agree, audit.n_wrong, audit.n_last_place)
    groups = {group.name: (group.n_rows, group.n_wrong) for group in audit.groups()}
    return {"counts": counts, "kinds": kinds, "groups": groups}


@pytest.mark.slow
@pytest.mark.parametrize(("options", "status", "words"), [
    ([], 0, "WRONG: 8 of 400 rows are wrong (2.0 %); no --max-wrong given: nothing fails; 0 not judged."),
    (["--max-wrong", "0.02"], 0, "PASS: 8 of 400 rows are wrong (2.0 %), at most 2 % allowed; 0 not judged."),
    (["--max-wrong", "0.019"], 3, "FAIL: 8 of 400 rows are wrong (2.0 %), more than 1.9 %; 0 not judged."),
])  # fmt: skip
def test_the_share_of_wrong_rows_decides(
    options: list[str], status: int, words: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path / "may.csv", bills(1, wrong=0.02))
    assert check(model, table, *options) == status
    out = capsys.readouterr().out
    assert out.startswith(words + "\n")
    assert "factor 10" in out
    assert check(model, table, "--json", *options) == status
    found = said(capsys)
    assert found["exit_status"] == status
    assert found["passed"] == (None if not options else status == 0)
    assert found["tables"][0]["passed"] == found["passed"]
    assert words.endswith(found["reason"])
    assert found["tables"][0]["rows_wrong"] == 8


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("most", [25_000, 60])
def test_a_stream_is_checked_as_the_table_is(suffix: str, most: int, model: Path, tmp_path: Path) -> None:
    columns = bills(3, 6_000, wrong=0.05)
    columns["total"][7::600] += 0.01  # a last place, or wrong where the labels are exact
    columns["total"][1001::1000] = columns["total"][1000::1000]
    path = write(tmp_path / f"table{suffix}", columns)
    whole = check_table(model, path, group="zone", audit=tmp_path / "whole.parquet").audit
    assert whole.whole is None
    few: dict[str, Any] = {"rows_held": 100, "rows_drawn": 50, "rows_kept": most}
    streamed = check_table(model, path, group="zone", in_full=True, audit=tmp_path / "streamed.parquet", **few).audit
    assert streamed.whole is not None
    assert facts(streamed)["counts"] == facts(whole)["counts"]
    assert facts(streamed)["groups"] == facts(whole)["groups"]
    assert streamed.usage() == whole.usage()
    if most > 60:
        assert facts(streamed)["kinds"] == facts(whole)["kinds"]
    audits = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "streamed")]
    wrong = audits[0].filter(audits[0]["wrong"]).sort_by("row").drop_columns(["rank"])
    assert wrong.num_rows == whole.n_wrong > 300
    assert {*columns} < {*wrong.column_names}
    for name in (*columns, "row", "given", "implied", "residual"):
        assert audits[1][name].to_pylist() == wrong[name].to_pylist(), name
    if most > 60:
        assert audits[1]["kind"].to_pylist() == wrong["kind"].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("most", [25_000, 80])
def test_kinds_do_not_depend_on_how_a_stream_is_cut(most: int, model: Path, tmp_path: Path) -> None:
    columns = bills(8, 600, wrong=0.1)
    total = columns["total"]
    rng = np.random.default_rng(1)
    free = rng.permutation(np.flatnonzero(np.isin(total, bills(8, 600)["total"])))
    right = total.copy()
    total[free[:60]] = right[free[:60] - 1]
    total[free[60:90]], total[free[90:120]] = right[free[90:120]], right[free[60:90]]
    columns["hours"] = [None if k % 97 == 0 else value for k, value in enumerate(columns["hours"])]
    path = write(tmp_path / "table.parquet", columns)
    whole = check_table(model, path)
    few: dict[str, Any] = {"rows_held": 100, "rows_drawn": 200, "rows_kept": most}
    found = []
    for n in (1, 7_000, 100_000, 1 << 20):  # blocks of a row, of a few and of all
        streamed = check_table(model, path, audit=tmp_path / f"{n}.csv", max_memory=n, **few).audit
        assert streamed.whole is not None
        found.append((facts(streamed), (tmp_path / f"{n}.csv").read_text()))
    assert all(one == found[0] for one in found)
    assert {"factor 10", "value of the row before", "swapped with another row"} <= found[0][0]["kinds"].keys()
    assert found[0][0] == facts(whole.audit)


def test_rows_of_which_the_rule_says_nothing_are_left_out_and_told(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = bills(4)
    columns["zone"][:5] = "Q"
    columns["hours"] = ["" if k in (10, 11) else value for k, value in enumerate(columns["hours"])]
    table = write(tmp_path / "gaps.csv", columns)
    assert check(model, table, "--json", "--max-wrong", 0) == 0
    (found,) = said(capsys)["tables"]
    assert (found["rows"], found["rows_judged"]) == (400, 393)
    assert 'unknown "zone" such as "Q"' in " ".join(found["notices"])
    assert check(model, table, "--strict") == 2


def test_a_gate_that_judges_too_few_rows_fails(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = bills(4)
    empty = write(tmp_path / "empty.csv", columns | {"hours": [*columns["hours"][:10], *[""] * 390]})
    for options in ([], ["--max-wrong", 0.01], ["--max-wrong", 0.01, "--quiet"]):
        assert check(model, empty, *options) == 1
        captured = capsys.readouterr()
        assert captured.out.startswith(
            "FAIL: 390 of 400 rows are not judged (97.5 %), more than 5 % (--max-unjudged); "
            "0 of 10 judged rows are wrong (0 %).\n"
        )
        assert "fit without" not in captured.err
    unknown = write(tmp_path / "unknown.csv", columns | {"zone": [columns["zone"][0], *["Q"] * 399]})
    assert check(model, unknown, "--json") == 1
    found = said(capsys)
    assert found["passed"] is False
    (table,) = found["tables"]
    assert table["passed"] is False
    assert (table["rows"], table["rows_judged"], table["rows_unjudged"], table["rows_wrong"]) == (400, 1, 399, 0)
    assert (table["share_unjudged"], table["max_unjudged"]) == (0.9975, 0.05)
    assert check(model, empty, unknown, "--max-wrong", 0) == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        "2 checks: 0 passed, 2 with too few judged rows. "
        "0 of 11 judged rows are wrong (0 %); 789 of 800 rows are not judged (98.6 %)."
    )


@pytest.mark.parametrize(("n_gaps", "options", "status"), [
    (20, [], 0),
    (21, [], 1),
    (21, ["--max-unjudged", 0.0525], 0),
    (21, ["--max-unjudged", 1], 0),
    (1, ["--max-unjudged", 0], 1),
    (0, ["--max-unjudged", 0], 0),
    (21, ["--max-unjudged", 2], 2),
    (21, ["--max-unjudged", "nan"], 2),
    (21, ["--max-unjudged", "many"], 2),
    (20, ["--max-unjudged", "5%"], 0),
    (21, ["--max-unjudged", "5 %"], 1),
    (21, ["--max-unjudged", "5.25%"], 0),
    (116, ["--max-unjudged", 0.29], 0),  # as floats, 116 > 0.29 * 400
    (117, ["--max-unjudged", 0.29], 1),
    (21, ["--max-unjudged", "101%"], 2),
])  # fmt: skip
def test_the_share_of_rows_that_are_not_judged_decides(
    n_gaps: int, options: list[Any], status: int, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = bills(4)
    table = write(tmp_path / "t.csv", columns | {"km": [*[""] * n_gaps, *columns["km"][n_gaps:]]})
    assert check(model, table, "--max-wrong", 0, *options) == status
    out, err = capsys.readouterr()
    if status == 2:
        assert f"'--max-unjudged': a share has to be from 0 to 1, or from 0% to 100%, got '{options[1]}'" in err
    if status == 0:
        limit = 5 if not options else float(str(options[1])[:-1]) if "%" in str(options[1]) else 100 * options[1]
        left = f"{n_gaps} of 400 rows are not judged ({n_gaps / 4:.1f} %), at most {limit:.4g} % allowed"
        assert out.startswith("PASS: 0 of ")
        assert (left if n_gaps else "0 not judged") in out.splitlines()[0]


def test_wrong_rows_weigh_more_than_rows_that_are_not_judged_and_bad_input_most(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = bills(4, wrong=0.3)
    write(tmp_path / "t.csv", columns | {"km": [*[""] * 200, *columns["km"][200:]]})
    assert check(model, tmp_path / "t.csv", "--max-wrong", 0.01) == 3
    assert "more than 1 %; 200 of 400 rows are not judged (50.0 %)." in capsys.readouterr().out
    write(tmp_path / "none.csv", columns | {"km": [""] * 400})
    assert check(model, tmp_path / "none.csv", "--max-wrong", 0.01) == 2
    assert "none.csv: no row is left" in capsys.readouterr().err
    assert check(model, tmp_path / "none.csv", tmp_path / "t.csv", "--max-wrong", 0.01) == 2


def test_a_stream_of_which_too_little_is_judged_fails_as_the_table_does(model: Path, tmp_path: Path) -> None:
    columns = bills(4, 3_000, wrong=0.01)
    columns["hours"][100:400] = np.nan
    path = write(tmp_path / "t.parquet", columns)
    whole = check_table(model, path)
    assert repr(whole).startswith("<Check failed: 300 of 3,000 rows are not judged (10.0 %), more than 5 %")
    assert check_table(model, path, max_unjudged=0.1, max_wrong=0.02).passed
    assert check_table(model, path, max_unjudged=None, max_wrong=0.02).passed
    assert check_table(model, path, rows_held=100).outcome == whole.outcome
    with pytest.raises(ValueError, match="max_unjudged must be a share between 0 and 1, got 5"):
        check_table(model, path, max_unjudged=5)


def test_targets_that_are_not_there_yet_keep_no_prediction_from_passing(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = bills(6)
    columns["total"][:100] = np.nan
    table = str(write(tmp_path / "t.parquet", columns))
    predict = ["predict", str(model), table, "--out", str(tmp_path / "p.csv")]
    assert run([*predict, "--max-wrong", "0"]) == 0
    assert "100 of 400 rows are not judged (25.0 %)" in capsys.readouterr().err
    assert run([*predict, "--max-unjudged", "0.05"]) == 1


def test_blocks_in_which_no_row_has_a_value_are_predicted_like_others(model: Path, tmp_path: Path) -> None:
    columns = bills(4, 300)
    columns["hours"][100:200] = np.nan
    parts: list[Any] = []
    path = write(tmp_path / "t.parquet", columns)
    check_table(model, path, rows_held=0, max_memory=10_000, max_unjudged=None, predictions=parts.append)
    implied = np.ma.concatenate([part.implied for part in parts])
    assert len(parts) > 10
    assert np.flatnonzero(implied.mask).tolist() == list(range(100, 200))


def test_a_quotient_by_zero_is_a_gap_in_tables_and_in_streams(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {"a": rng.integers(1, 900, 400) * 1.0, "b": rng.integers(1, 9, 400) * 1.0}
    columns["y"] = 3 * columns["a"] / columns["b"] + 7
    saved = audit_table(columns, "y", terms="a/b").model()
    columns["b"][:3] = 0
    whole = check_table(saved, write(tmp_path / "t.parquet", columns)).audit
    streamed = check_table(saved, tmp_path / "t.parquet", rows_held=10).audit
    assert facts(whole) == facts(streamed)
    assert whole.notices == streamed.notices != ()
    assert (whole.n_total, whole.n_judged, whole.n_wrong) == (400, 397, 0)


def test_a_table_that_follows_another_rule_is_not_called_wrong_and_passed(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = bills(5)
    columns["total"] = np.round(columns["total"] * 1.19, 2)
    table = write(tmp_path / "other.csv", columns)
    assert check(model, table) == 1
    assert "it may not be the rule of this table" in capsys.readouterr().out
    assert check(model, table, "--max-wrong", "0.1") == 3


def test_what_was_known_of_the_rule_counts(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weak = json.loads(model.read_text()) | {"verdict": "PLURALITY"}
    path = tmp_path / "weak.json"
    path.write_text(json.dumps(weak))
    table = write(tmp_path / "may.csv", bills(1))
    assert check(path, table) == 1
    assert "PLURALITY where it was found, less than MAJORITY" in capsys.readouterr().out
    assert check(model, table, "--require", "confirmed") == 0


@pytest.mark.slow
def test_all_wrong_rows_on_request(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write(tmp_path / "may.csv", bills(1, wrong=0.1))
    for options, n in (([], 20), (["--all-rows"], 40)):
        assert check(model, table, "--json", "--id", "bill", *options) == 0
        (found,) = said(capsys)["tables"]
        assert len(found["worst_rows"]) == n
    wrong = check_table(model, table).audit.wrong_rows()
    assert sorted(row["bill"] for row in found["worst_rows"]) == sorted(wrong["bill"].to_pylist())
    assert check(model, table, "--all-rows") == 0
    assert "The 40 worst of 40" in capsys.readouterr().out
    assert run(["fit", str(table), "--target", "total", "--exclude", "note", "--json", "--all-rows"]) == 0
    assert len(said(capsys)["worst_rows"]) == 40


@pytest.mark.slow
@pytest.mark.parametrize(("n", "wrong"), [(3_000, 0.1), (51_000, 0.02), (60_000, 0.5)])
def test_predictions_are_those_of_the_check_however_large_the_table_is(
    n: int, wrong: float, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 51,000 rows not all are held, and of those that are wrong of 60,000 not all are kept."""
    columns = bills(6, n, wrong=wrong)
    columns["total"][:7] = np.nan
    columns["zone"][5:9] = "Q"
    path = write(tmp_path / "table.parquet", columns)
    streamed = tmp_path / "streamed.parquet"
    parts: list[Any] = []
    check_table(model, path, id="bill", rows_held=n, predictions=parts.append)
    assert len(parts) == 1
    predict = ["predict", str(model), str(path), "--id", "bill", "--max-wrong", "0.01"]
    capsys.readouterr()
    assert run([*predict, "--out", str(streamed), "--json"]) == 3
    (found,) = said(capsys)["tables"]
    whole = {name: np.ma.asarray(values).tolist() for name, values in parts[0].columns.items() if name != "bill"}
    tables = [pq.read_table(streamed).to_pydict()]
    assert {name: values for name, values in tables[0].items() if name != "bill"} == whole
    assert sum(wrong is True for wrong in tables[0]["wrong"]) == found["rows_wrong"] == found["kinds"][0]["rows"]
    assert set(tables[0]["kind"]) == {"", "factor 10", None}
    assert [value is None for value in tables[0]["implied"]] == [5 <= k < 9 for k in range(n)]
    assert [value is None for value in tables[0]["wrong"]] == [k < 9 for k in range(n)]
    assert run(predict) == 3
    printed = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["bill"] for row in printed] == [str(k) for k in tables[0]["bill"]]


def test_a_table_without_the_target_is_predicted_and_cannot_be_checked(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = bills(6)
    total = columns.pop("total")
    table = str(write(tmp_path / "new.csv", columns))
    assert run(["predict", str(model), table]) == 0
    printed = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [float(row["implied"]) for row in printed] == total.tolist()
    assert printed[0].keys() == {"row", "implied"}
    blank = str(write(tmp_path / "blank.csv", {**columns, "total": [""] * len(total)}))
    assert run(["predict", str(model), blank]) == 0
    printed = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(float(row["implied"]), row["wrong"]) for row in printed] == [(value, "") for value in total.tolist()]
    for options in (["--max-wrong", "0"], ["--json", "--out", str(tmp_path / "p.csv")]):
        assert run(["predict", str(model), table, *options]) == 2
        assert "no column 'total' to compare with" in "".join(capsys.readouterr())
    assert not (tmp_path / "p.csv").exists()


def test_report_and_audit_have_every_column(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    table = write(tmp_path / "may.csv", bills(1, wrong=0.02))
    assert check(model, table, "--report", tmp_path / "r.html", "--audit", tmp_path / "a.csv") == 0
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"note", "zone", "bill", "kind"} <= set(rows[0])
    page = (tmp_path / "r.html").read_text()
    assert "A saved formula on other rows" in page
    assert "no other formula fits" not in page  # which is not known of these rows


@pytest.mark.slow
def test_a_folder_of_tables_gives_one_summary(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for k in range(40):
        write(folder / f"day-{k:03}.csv", bills(k, 60))
    for k in (7, 20, 33):
        write(folder / f"day-{k:03}.csv", bills(k, 60, wrong=0.2))
    (folder / "day-014.csv").write_text("this is, no table\n1\n2,3,4\n")
    write(folder / "day-036.csv", {name: values for name, values in bills(1, 60).items() if name != "km"})
    assert check(model, folder, "--max-wrong", 0) == 2
    out = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].split("/")[-1] for line in out[:-1]] == [f"day-{k:03}.csv" for k in (7, 14, 20, 33, 36)]
    assert [line.split()[0] for line in out[:-1]] == ["FAIL", "ERROR", "FAIL", "FAIL", "ERROR"]
    assert out[-1] == (
        "40 checks: 35 passed, 3 with too many wrong rows, 2 not checked. "
        "36 of 2,280 rows are wrong (1.6 %); 0 not judged."
    )
    (folder / "day-014.csv").unlink()
    (folder / "day-036.csv").unlink()
    assert check(model, folder, "--max-wrong", 0, "--json") == 3
    found = said(capsys)
    assert [Path(one["file"]).name for one in found["tables"] if not one["passed"]] == [
        f"day-{k:03}.csv" for k in (7, 20, 33)
    ]
    assert check(model, *sorted(folder.glob("day-01*.csv")), "--max-wrong", 0) == 0


def test_outputs_of_several_tables_are_named_after_them(model: Path, tmp_path: Path) -> None:
    tables = [write(tmp_path / f"{name}.csv", bills(k, wrong=0.01)) for k, name in enumerate(("may", "june"))]
    assert check(model, *tables, "--audit", tmp_path / "audit.csv") == 0
    assert sorted(path.name for path in tmp_path.glob("audit*")) == ["audit-june-csv.csv", "audit-may-csv.csv"]


@pytest.mark.parametrize(("arguments", "words"), [
    (["no-such.json", "t.csv"], "cannot read the model"),
    (["{model}", "no-such.csv"], "no such file"),
    (["{model}"], "needs a model and a file"),
    (["{model}", "t.csv", "--max-wrong", "2"], "max-wrong"),
    (["{model}", "t.csv", "--id", "nothing"], "nothing"),
    (["{model}", "t.csv", "--audit", "t.csv"], "would overwrite"),
    (["{model}", "t.csv", "--config", "massart.toml"], "not both"),
])  # fmt: skip
def test_errors_are_one_line_and_json_where_that_is_asked(
    arguments: list[str],
    words: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t.csv", bills(0))
    arguments = [argument.format(model=model) for argument in arguments]
    assert check(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert check(*arguments, "--json") == 2
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["format"], found["exit_status"], found["passed"]) == (3, 2, False)
    assert words in found["error"]


@pytest.mark.slow
def test_quiet_says_nothing_but_the_result(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = bills(1)
    columns["zone"][:3] = "Q"
    table = write(tmp_path / "may.csv", columns)
    assert check(model, table) == 0
    assert "3 rows left out" in capsys.readouterr().err
    for arguments in (["--quiet", "check", model, table], ["check", model, table, "--quiet"]):
        assert run([*map(str, arguments)]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        assert captured.out.startswith("PASS")
    assert check(model, tmp_path / "nothing.csv", "--quiet") == 2
    assert "no such file" in capsys.readouterr().err


def test_the_library_logs_and_prints_nothing(
    model: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="massart"):
        check_table(model, bills(1, wrong=0.02))
    assert "8 of 400 rows are wrong" in caplog.text
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "status"), [("0.1", 0), ("0", 3)])
def test_a_closed_pipe_changes_no_status(limit: str, status: int, model: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "may.csv", bills(1, 3_000, wrong=0.05))
    command = [sys.executable, "-m", "massart", "check", str(model), str(table), "--json", "--all-rows"]
    process = subprocess.Popen(
        [*command, "--max-wrong", limit], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == status


def test_frames_are_checked_too(model: Path) -> None:
    pandas = pytest.importorskip("pandas")
    found = check_table(model, pandas.DataFrame(bills(1, wrong=0.02)), max_wrong=0)
    assert not found.passed
    assert repr(found) == "<Check failed: 8 of 400 rows are wrong (2.0 %), more than 0 %; 0 not judged.>"


@pytest.mark.slow
def test_everything_that_is_printed_as_json_follows_the_schema(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(__file__).parents[1] / "docs" / "schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    table = str(write(tmp_path / "may.csv", bills(1, wrong=0.1)))
    chance = str(write(tmp_path / "chance.csv", {"x": range(9), "y": [5, 1, 4, 4, 9, 8, 7, 1, 0]}))
    saved = str(model)
    fit = ["fit", table, "--target", "total", "--exclude", "note", "--group", "zone"]
    commands = {
        "fit": [fit, [*fit, "--all-rows"], ["fit", chance, "--target", "y"]],
        "check": [
            ["check", saved, table],
            ["check", saved, table, "none.csv"],
            ["check", saved, table, "--id", "bill"],
        ],
        "scan": [["scan", table, "--budget", "1"]],
        "error": [["fit", "none.csv", "--target", "y"], ["check"], ["fit"], ["scan", "none.csv"]],
    }
    for kind, each in commands.items():
        only = {"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]}
        for command in each:
            run([*command, "--json"])
            found = said(capsys)
            jsonschema.validate(found, only)
            jsonschema.validate(found, schema)
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate({**found, "format": 0}, schema)
    assert run([*fit, "--target", "km", "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert [one["target"] for one in found] == ["total", "km"]
    jsonschema.validate(found, schema)
    # Nothing is printed that it does not tell, and all of that but for what was not asked for.
    known = {name for part in ("head", "outcome", "table") for name in schema["$defs"][part]["properties"]}
    assert set(found[0]) | {"rules", "rows_shared", "rows_explained", "independent_errors"} == known


def test_a_sheet_of_a_workbook_is_checked_and_texts_that_mean_nothing_are_gaps(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="xlsxwriter is not installed: it writes the workbook")
    pytest.importorskip("python_calamine", reason="python-calamine is not installed: it reads workbooks")
    columns = {name: values.tolist() for name, values in bills(3, wrong=0.05).items()}
    columns["hours"][7] = "unknown"
    with xlsxwriter.Workbook(str(tmp_path / "bills.xlsx")) as book:
        book.add_worksheet("notes").write_row(0, 0, ["nothing here"])
        sheet = book.add_worksheet("bills")
        for j, (name, values) in enumerate(columns.items()):
            sheet.write_column(0, j, [name, *values])
    (tmp_path / "massart.toml").write_text(
        f'sheet = "bills"\nna = ["unknown"]\n[[check]]\nmodel = "{model.as_posix()}"\nfiles = "bills.xlsx"\n'
    )
    for given in (
        [model, tmp_path / "bills.xlsx", "--sheet", "bills", "--na", "unknown"],
        ["--config", tmp_path / "massart.toml"],
    ):
        assert check(*given, "--max-wrong", 0.1, "--json") == 0
        assert "of 399 judged rows are wrong" in json.loads(capsys.readouterr().out)["reason"]
