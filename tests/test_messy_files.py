"""Files as people have them: the rule and its wrong rows at the first try, or one line with a way out."""

import gzip

import numpy as np
import pytest

pytest.importorskip("python_calamine")
pytest.importorskip("xlsxwriter")

import messy
from massart import audit_table
from massart.tables import TableError, read_table

REFUSED = {"odd_target_cells", "mixed_currencies", "excel_without_values", "sensor_sentinels"}


@pytest.mark.full(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("name", messy.MAKERS)
def test_a_messy_file_is_read_as_it_was_meant(tmp_path, name):
    found = messy.outcome(name, tmp_path, seed=15, budget=2.0)
    assert found.how == ("refused" if name in REFUSED else "right"), found.words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("odd_target_cells", {"number": ["Total"]}),
        ("odd_target_cells", {"na": ["cancelled", "see note"]}),
        ("mixed_currencies", {"number": ["Net", "Freight", "Discount", "Gross"]}),
    ],
)
def test_the_way_out_leads_out(tmp_path, name, options):
    path, expected = messy.MAKERS[name](tmp_path, np.random.default_rng(3))
    with pytest.raises(TableError):
        audit_table(path, expected.target)
    found = audit_table(path, expected.target, terms="columns", **options)
    assert frozenset((found.numbers_of(found.design.kept[found.wrong]) + 1).tolist()) == expected.wrong


@pytest.mark.slow
def test_a_number_that_may_mean_missing_is_asked_about(tmp_path):
    path, expected = messy.MAKERS["sensor_sentinels"](tmp_path, np.random.default_rng(3))
    asked = audit_table(path, expected.target, terms="columns")
    assert any("say so with --na -999" in notice for notice in asked.notices)
    found = audit_table(path, expected.target, terms="columns", na=["-999"])
    assert frozenset((found.numbers_of(found.design.kept[found.wrong]) + 1).tolist()) == expected.wrong
    assert not any("--na -999" in notice for notice in found.notices)


def test_a_given_number_of_lines_is_skipped(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\nz,w\na,b\n1,2\n3,4\n")
    assert read_table(path, skip=2).cells(["a", "b"], np.arange(2)) == {"a": [1, 3], "b": [2, 4]}
    with pytest.raises(ValueError, match="skip"):
        read_table(path, skip=-1)


def test_what_means_missing_can_be_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n1,x,1\n-999,none,2\n3,y,3\n")
    found = read_table(path, na=["-999", "none"])
    assert found.cells(["a", "b"], np.arange(3)) == {"a": [1, None, 3], "b": ["x", None, "y"]}


def test_text_of_windows_is_read_and_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("Straße,n\nMüller,1\nZoë,2\n".encode("cp1252"))
    found = read_table(path)
    assert found.cells(["Straße", "n"], np.arange(2)) == {"Straße": ["Müller", "Zoë"], "n": [1, 2]}
    assert "cp1252" in found.remarks[0]


def test_a_broken_letter_in_utf_8_stays_an_error(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("Straße,n\nMüller,1\n".encode() + b"Zo\xeb,2\n")
    with pytest.raises(TableError, match="line 3 is not UTF-8"):
        read_table(path)


def test_a_line_that_lacks_a_cell_stays_an_error(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n" + "1,2,3\n" * 30 + "1,2\n" + "1,2,3\n" * 3)
    with pytest.raises(TableError, match="line 32 has 2 fields"):
        read_table(path)


def coded(rng, n=900):
    plan, units = rng.choice([101, 102, 103, 104], n), rng.integers(1, 50, n)
    fee = np.select([plan == code for code in (101, 102, 103)], [1010, 1020, 1030], 5)
    return {"plan": plan, "units": units, "total": fee + 2.5 * units}


@pytest.mark.slow
def test_a_code_that_a_rule_of_numbers_leaves_out_is_a_segment_and_no_wrong_row():
    table = coded(np.random.default_rng(0))
    found = audit_table(table, "total", terms="columns")
    assert found.n_wrong == 0
    assert found.segment_facts is not None
    np.testing.assert_array_equal(found.apart, table["plan"] == 104)
    again = audit_table(table, "total", terms="columns", category=["plan"])
    assert (again.n_wrong, again.n_apart) == (0, 0)


def test_gaps_in_columns_that_the_rule_does_not_use_cost_no_rows():
    rng = np.random.default_rng(0)
    a, b, unused = rng.integers(1, 99, 500), rng.integers(1, 99, 500), rng.normal(size=500)
    unused[rng.random(500) < 0.3] = np.nan
    total = 3 * a + 2 * b
    total[::9] += 17
    found = audit_table({"a": a, "b": b, "unused": unused, "total": total}, "total", terms="columns")
    assert found.n_judged == 500
    assert found.n_wrong == 56
    assert any('"unused"' in notice for notice in found.notices)


LINES = [f"{k},{2 * k}" for k in range(1, 25)]
ODD = {  # files of programs that are rarely met
    "the end of a file of DOS": "\r\n".join(["a,b", *LINES, "\x1a"]).encode(),
    "a drawn table": "\n".join(["+--+--+", "|a|b|", "+--+--+", *(f"|{x}|".replace(",", "|") for x in LINES)]).encode(),
    "Markdown": "\n".join(["| a | b |", "|---|---|", *(f"| {x} |".replace(",", " | ") for x in LINES)]).encode(),
    "comments above": "\n".join(["# of 2024-05-01", "# by Smith", "#", "a,b", *LINES]).encode(),
    "members that end within a row": b"".join(
        gzip.compress(part)
        for part in ("\n".join(["a,b", *LINES])[:20].encode(), "\n".join(["a,b", *LINES])[20:].encode())
    ),
    "a delimiter that Excel names, behind a mark": (
        "\ufeffsep=;\r\na;b\r\n" + "\r\n".join(LINES).replace(",", ";")
    ).encode("utf-16"),
}


@pytest.mark.parametrize("kind", ODD)
def test_files_of_programs_that_are_rarely_met_are_read(tmp_path, kind):
    (tmp_path / "a.csv").write_bytes(ODD[kind])
    found = read_table(tmp_path / "a.csv")
    assert found.cells(["a", "b"], np.arange(24)) == {"a": [*range(1, 25)], "b": [*range(2, 49, 2)]}


def test_rows_that_are_one_cell_each_are_not_taken_for_notes(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f'"{k},""x {k}"""\n' for k in range(24)))
    with pytest.raises(TableError, match=r"no rows .* line 2: are whole rows in quotation marks"):
        read_table(tmp_path / "a.csv")


def test_a_last_row_whose_remark_begins_with_total_is_a_row(tmp_path):
    rows = [f"{k},{3 * k + 2},{'ok' if k % 20 else 'Total of May'}" for k in range(1, 61)]
    for more in ([], ["Total,7,ok"]):
        (tmp_path / "a.csv").write_text("\n".join(["items,amount,remark", *rows, *more]) + "\n")
        assert read_table(tmp_path / "a.csv").n_rows == 60
