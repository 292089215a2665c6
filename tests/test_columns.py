"""The columns that terms are made of hold what the table says, row by row, and X holds them, too."""

import datetime as dt
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

from massart.audit import audit_table
from massart.tables import (
    Category,
    Date,
    Encoding,
    Flag,
    Number,
    TableError,
    encode,
    make_plan,
    precision_of_columns,
    read_table,
    replaced,
    table_of,
    write_table,
)

EPOCH = dt.date(1970, 1, 1).toordinal()
FORMS = {
    "iso": (lambda day: day.isoformat(), "ymd"),
    "slashes": (lambda day: f"{day.year:04}/{day.month}/{day.day}", "ymd"),
    "midnight": (lambda day: f"{day.isoformat()}T00:00:00Z", "mdy"),
    "dots": (lambda day: f"{day.day}.{day.month}.{day.year:04}", "dmy"),
    "day first": (lambda day: f"{day.day:02}/{day.month:02}/{day.year:04} 00:00", "dmy"),
    "month first": (lambda day: f"{day.month}/{day.day}/{day.year:04}", "mdy"),
}
TYPES = {"date32": pa.date32(), "date64": pa.date64(), "seconds": pa.timestamp("s"), "UTC": pa.timestamp("us", "UTC")}
ENCODING = Encoding(
    Number("y"), (Category("color", ("blue", "green"), "red"), Number("x"), Flag("f"), Number("color = red"))
)
CELLS = st.fixed_dictionaries(
    {
        "color": st.sampled_from(["red", "green", "blue", None, "pink"]),
        "x": st.sampled_from([0.25, -3.0, None]),
        "f": st.sampled_from([True, False, None]),
        "color = red": st.integers(-3, 3),
        "y": st.sampled_from([1.0, 2.5, None]),
    }
)


@pytest.mark.slow
@given(st.lists(CELLS, min_size=1, max_size=12), st.booleans())
@settings(max_examples=60, deadline=None)
def test_columns_are_the_cells_of_the_rows_kept(rows, as_text):
    types = {"color": pa.string(), "x": pa.float64(), "f": pa.bool_(), "color = red": pa.int64(), "y": pa.float64()}
    arrow = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})
    if as_text:  # a table without nulls, in which gaps are found only by reading
        texts = arrow["x"].cast(pa.string()).fill_null("NA")
        arrow = arrow.set_column(1, "x", texts)
    whole = [k for k, row in enumerate(rows) if None not in row.values() and row["color"] != "pink"]
    if not whole:
        with pytest.raises(TableError):
            encode(table_of(arrow), ENCODING)
        return
    design = encode(table_of(arrow), ENCODING)
    seen = design.columns
    assert design.kept.tolist() == whole
    assert seen.n_rows == len(whole)
    assert list(seen.numbers) == ["x", "f", "color = red"]
    assert list(seen.levels) == ["color"]
    for name, values in seen.numbers.items():
        assert values.tolist() == [rows[k][name] for k in whole]
        assert np.shares_memory(values, design.X)
    levels = seen.levels["color"]
    assert levels.names == ("red", "blue", "green")
    assert levels.codes.dtype == np.int32
    assert [levels.names[code] for code in levels.codes] == [rows[k]["color"] for k in whole]
    assert [tuple(row) for row in design.X[:, :2]] == [
        (float(rows[k]["color"] == "blue"), float(rows[k]["color"] == "green")) for k in whole
    ]


@pytest.mark.parametrize("form", [*FORMS, *TYPES])
@given(days=st.lists(st.dates(), min_size=1, max_size=8))
@settings(max_examples=25, deadline=None)
def test_dates_are_days_since_1970(form, days):
    write, order = FORMS.get(form, (None, "ymd"))
    column = pa.array(days).cast(TYPES[form]) if write is None else pa.array([write(day) for day in days])
    table = table_of({"x": np.arange(len(days)), "date": column, "y": np.ones(len(days))})
    design = encode(table, Encoding(Number("y"), (Date("date", order), Number("x"))))
    assert design.X.shape == (len(days), 1)
    assert list(design.columns.numbers) == ["date", "x"]
    assert design.columns.dates == {"date"}
    assert design.columns.numbers["date"].tolist() == [day.toordinal() - EPOCH for day in days]


def calendar(n=60):
    start = [dt.date(1969, 11, 3) + dt.timedelta(days=7 * k % 100) for k in range(n)]
    end = [day + dt.timedelta(days=k % 13) for k, day in enumerate(start)]
    return {"start": start, "end": end, "rate": [k % 7 + 0.5 for k in range(n)], "y": [k % 13 for k in range(n)]}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".jsonl"])
def test_files_hold_the_same_dates(tmp_path, suffix):
    content = calendar()
    arrow = pa.table({**content, "end": pa.array(content["end"]).cast(pa.timestamp("ns"))})
    path = tmp_path / f"calendar{suffix}"
    write_table(path, table_of(arrow))
    table = read_table(path)
    design = encode(table, make_plan(table, "y").encoding)
    seen = design.columns.numbers
    assert design.columns.dates == {"start", "end"}
    assert design.X.shape == (60, 1)
    assert (seen["end"] - seen["start"] == design.y).all()


def test_dates_are_columns_of_x_where_nothing_else_is_or_the_target_is_a_date():
    content = calendar()
    table = table_of(content)
    plan = make_plan(table, "y", exclude=["rate"])
    design = encode(table, plan.encoding)
    assert plan.encoding.names == ("start", "end")
    assert (design.X[:, 1] - design.X[:, 0] == design.y).all()
    plan = make_plan(table, "end")
    design = encode(table, plan.encoding)
    assert plan.encoding.names == ("start", "rate", "y")
    assert (design.X[:, 0] + design.X[:, 2] == design.y).all()
    assert np.shares_memory(design.columns.numbers["start"], design.X)
    assert design.columns.dates == {"start"}
    with pytest.raises(TableError, match=r'no column is left to explain "y" with but the dates in "start"'):
        make_plan(table, "y", features=["start"])


@pytest.mark.parametrize("empty", [None, "", "n/a"])
def test_gaps_in_dates_cost_no_rows_unless_asked_for(empty):
    content = calendar() | {"end": [empty, *map(str, calendar()["end"][1:])]}
    table = table_of(content)
    plan = make_plan(table, "y")
    assert 'Left out "end": it holds dates and is empty in 1 of 60 rows.' in plan.notices
    design = encode(table, plan.encoding)
    assert len(design.kept) == 60
    assert design.columns.dates == {"start"}
    design = encode(table, make_plan(table, "y", features=["rate", "end"]).encoding)
    assert design.kept.tolist() == list(range(1, 60))
    assert len(design.columns.numbers["end"]) == design.columns.n_rows == 59


def test_dates_are_read_back_as_they_were_and_nothing_else_is():
    table = table_of(calendar() | {"start": [f"{day.day}.{day.month}.{day.year}" for day in calendar()["start"]]})
    encoding = make_plan(table, "end").encoding
    assert encoding.inputs[0] == Date("start", "dmy")
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert again == encoding
    for bad, words in (
        (["31.12.2024", "12.31.2024"], 'row 2 has an unreadable "start": "12.31.2024"'),
        (["31.12.2024", "30.2.2024"], 'row 2 has an unreadable "start": "30.2.2024"'),
        (["1.12.24", "1.12.2024"], 'row 1 has an unreadable "start": "1.12.24"'),
        ([1.0, 2.0], "it holds no dates"),
        (pa.array([1, 2], pa.timestamp("s")), "times of the day"),
    ):
        with pytest.raises(TableError, match=words):
            encode(table_of({"start": bad, "rate": [1, 2], "y": [1, 2]}), again, with_target=False, strict=True)
    for order in ("dym", None, ["ymd"]):
        with pytest.raises(TableError, match="order must be"):
            Encoding.from_json(encoding.to_json() | {"target": {"kind": "date", "column": "end", "order": order}})


def test_times_of_the_day_are_exact_or_left_out():
    moments = [dt.datetime(1969, 12, 31, 18), dt.datetime(2024, 2, 29, 11, 15), dt.datetime(2024, 2, 29)] * 4
    for unit in ("s", "ms", "us", "ns"):
        table = table_of({"when": pa.array(moments, pa.timestamp(unit)), "x": range(12), "y": range(12)})
        seen = encode(table, make_plan(table, "y").encoding).columns.numbers["when"]
        assert seen[:3].tolist() == [-0.25, 19782 + 45 / 96, 19782]
        minute = pa.array([dt.datetime(2024, 2, 29, 0, 1), *moments[1:]], pa.timestamp(unit))
        plan = make_plan(table_of({"when": minute, "x": range(12), "y": range(12)}), "y")
        assert 'Left out "when": it holds dates with times of the day.' in plan.notices


def test_what_is_assumed_of_dates_is_said():
    dots = [f"{k % 12 + 1}.{k % 5 + 1}.2024" for k in range(60)]
    table = table_of({"day": dots, "x": range(60), "y": range(60)})
    (notice,) = make_plan(table, "y").notices
    assert notice.startswith('Read the text in "day" as dates: ')
    assert notice.endswith('nothing says whether "6.1.2024" begins with the day or the month, and the day was assumed.')


@pytest.mark.parametrize("write", [None, "{0:%d.%m.%Y}", "{0:%Y-%m-%d} 00:00"])
def test_corrected_dates_are_dates(tmp_path, write):
    content = calendar()
    given = content["end"] if write is None else [write.format(day) for day in content["end"]]
    table = table_of(content | {"end": [None, *given[1:]]})
    truth = [day.toordinal() - EPOCH for day in content["end"]]
    entry = make_plan(table, "end").encoding.target
    fixed = replaced(table, entry, [4, 9], [truth[7], truth[8]], "before")
    wanted = [None, *content["end"][1:]]
    wanted[4], wanted[9] = wanted[7], wanted[8]
    assert fixed.column("end").to_pylist() == wanted
    assert fixed.column("before").to_pylist() == [None, *given[1:]]
    write_table(tmp_path / "fixed.csv", fixed)
    assert read_table(tmp_path / "fixed.csv").column("end").to_pylist()[1:] == list(map(str, wanted[1:]))
    noon = replaced(table, entry, [4, 5], [0.5, 1e7], "before").column("end").to_pylist()
    assert noon[:2] + noon[4:6] == [None, str(wanted[1]), "1970-01-01T12:00:00", "10000000"]


@pytest.mark.slow
def test_a_date_follows_from_another_one():
    content = calendar(300)
    due = [day + dt.timedelta(days=30 if k % 4 else k) for k, day in enumerate(content["start"])]
    found = audit_table({"start": content["start"], "rate": content["rate"], "due": due}, "due")
    assert str(found.formula) == "due = start + 30"
    assert found.is_certain
    assert found.n_wrong == 75
    assert found.fixed().column("due").to_pylist() == [day + dt.timedelta(days=30) for day in content["start"]]
    assert 'The dates in "due" are counted in days since 1970-01-01.' in found.notices
    between = audit_table({"start": content["start"], "due": due, "y": [30 if k % 4 else k for k in range(300)]}, "y")
    assert str(between.formula) == "y = (due - start)"


CODES = [101, 7, 7, None] * 5
AS_CODES = {
    "integers": pa.array(CODES, pa.int16()),
    "floats": pa.array(CODES, pa.float64()),
    "NaN": pa.array([float("nan") if code is None else code for code in CODES], pa.float32()),
    "half floats": pa.array(np.array([np.nan if code is None else code for code in CODES], np.float16)),
    "decimals": pa.array(CODES, pa.decimal128(9, 0)),
    "dictionary": pa.array(CODES).dictionary_encode(),
    "text": pa.array([None if code is None else f" {code}" for code in CODES]),
}


@pytest.mark.parametrize("kind", AS_CODES)
def test_codes_are_a_category_where_that_is_asked_for(kind):
    table = table_of({"code": AS_CODES[kind], "x": range(20), "y": range(20)})
    plan = make_plan(table, "y", category=["code"])
    assert plan.encoding.inputs[0] == Category("code", ("101",), "7")
    assert plan.notices[0] == 'Read "code" as a category with 2 levels.'
    for other in AS_CODES.values():  # the same levels, however another table holds them
        design = encode(table_of({"code": other, "x": range(20), "y": range(20)}), plan.encoding)
        assert design.kept.tolist() == [k for k in range(20) if k % 4 < 3]
        assert design.columns.levels["code"].codes.tolist() == [1, 0, 0] * 5
        assert design.X[:, 0].tolist() == [1.0, 0.0, 0.0] * 5
        assert design.notices[0].startswith('5 of 20 rows left out: 5 have no "code".')


def test_whatever_a_category_holds_its_values_are_levels():
    days = calendar()["start"]
    columns = {"half": [0.5, 2.0] * 30, "flag": [True, False] * 30, "day": days, "id": [*range(60)], "one": [3] * 60}
    table = table_of(columns | {"y": range(60)})
    plan = make_plan(table, "y", category=list(columns))
    assert plan.id_column is None
    seen = encode(table, plan.encoding).columns.levels
    assert set(seen) == set(columns) - {"one"}  # which is constant
    assert seen["half"].names == ("0.5", "2")
    assert seen["flag"].names == ("false", "true")
    assert [seen["day"].names[code] for code in seen["day"].codes] == list(map(str, days))
    assert [seen["id"].names[code] for code in seen["id"].codes] == list(map(str, range(60)))


def test_the_precision_of_codes_is_not_that_of_numbers():
    table = table_of({"code": np.array([1, 2] * 9, np.float32), "x": np.arange(18.0), "y": np.arange(18.0)})
    coarse = precision_of_columns(table, make_plan(table, "y").encoding)
    assert precision_of_columns(table, make_plan(table, "y", category=["code"]).encoding) < coarse
