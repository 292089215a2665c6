"""Each column gets the role that its values speak for, and each decision is said in a sentence."""

import datetime as dt

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

from massart.tables import Category, Date, Flag, Number, TableError, encode, make_plan, read_table, table_of

N = 100
TOTAL = list(range(N))
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=n % 50) for n in range(N)]


def plan_of(column, name="thing", total=TOTAL, **options):
    content = {name: column, "hours": [n % 7 + 0.5 for n in range(len(total))], "total": total}
    return make_plan(table_of(content), "total", **options)


def entries(plan):
    return {entry.column: entry for entry in plan.encoding.inputs}


INPUTS = {
    "integers": ([n % 5 for n in range(N)], Number("thing")),
    "floats": ([n / 7 for n in range(N)], Number("thing")),
    "number text": ([f"{n}.5" for n in range(N)], Number("thing")),
    "decimal commas": ([f"{n},5" for n in range(N)], Number("thing", ",")),
    "numbers with gaps": (["NA" if n % 10 == 0 else str(n) for n in range(N)], Number("thing")),
    **{
        f"numbers and {word}": ([word if n % 10 == 0 else str(n) for n in range(N)], Number("thing"))
        for word in ("n.a.", "N.A.", "na", "nil", "missing", "Unknown", "N/A")
    },
    "an answer": (["yes", "no", "unknown", "no"] * 25, Category("thing", ("unknown", "yes"), "no")),
    "words": (["nil", "missing", "all", "nil"] * 25, Category("thing", ("all", "missing"), "nil")),
    "booleans": ([n % 2 == 0 for n in range(N)], Flag("thing")),
    "yes and no": (["yes" if n % 2 else "No" for n in range(N)], Flag("thing")),
    "t and f": (["t" if n % 2 else "f" if n % 3 else None for n in range(N)], Flag("thing")),
    "text": (["b" if n % 3 else "a" for n in range(N)], Category("thing", ("a",), "b")),
    "text with blanks": ([" b" if n % 3 else "a" for n in range(N)], Category("thing", ("a",), "b")),
    "Namibia": (["NA" if n % 3 else "DE" for n in range(N)], Category("thing", ("DE",), "NA")),
    "codes": (pa.array([n % 2 for n in range(N)]).dictionary_encode(), Category("thing", ("1",), "0")),
    "some numbers": (["1" if n % 3 else "a" for n in range(N)], Category("thing", ("a",), "1")),
    "dates": (DAYS, Date("thing")),
    "coded dates": (pa.array(DAYS).dictionary_encode(), Date("thing")),
    "nanoseconds": (pa.array(DAYS).cast(pa.timestamp("ns")), Date("thing")),
    "milliseconds": (pa.array(DAYS).cast(pa.date64()), Date("thing")),
    "noon": (pa.array([n * 43_200 for n in range(N)], pa.timestamp("s", "UTC")), Date("thing")),
    **{
        f"text dates {form}": ([day.strftime(form) for day in DAYS], Date("thing", order))
        for form, order in {
            **dict.fromkeys(("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y-%m-%dT%H:%M:%SZ"), "ymd"),
            **dict.fromkeys(("%Y-%m-%d %H:%M:%S.000", "%Y/%m/%d %H:%M"), "ymd"),
            **dict.fromkeys(("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y %H:%M:%S"), "dmy"),
            "%m/%d/%Y": "mdy",
        }.items()
    },
    "days of one digit": ([f"{day.month}/{day.day}/{day.year}" for day in DAYS], Date("thing", "mdy")),
    "assumed day": ([f"{n % 12 + 1}.{n % 5 + 1}.2024" for n in range(N)], Date("thing", "dmy")),
    "day like month": ([f"{n % 12 + 1}/{n % 12 + 1}/2024" for n in range(N)], Date("thing", "dmy")),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_columns_become_inputs(kind):
    column, wanted = INPUTS[kind]
    assert entries(plan_of(column))["thing"] == wanted


def test_coded_numbers_are_numbers_where_they_are_asked_for():
    assert entries(plan_of(INPUTS["codes"][0], number=["thing"]))["thing"] == Number("thing")


LEFT_OUT = {
    "timestamps": (pa.array(range(N), pa.timestamp("us")), "dates with times of the day"),
    "time zone": (pa.array(DAYS).cast(pa.timestamp("us")).cast(pa.timestamp("us", "Asia/Tokyo")), "time zone"),
    "times": (pa.array(range(N), pa.time32("s")), "times"),
    "durations": (pa.array(range(N), pa.duration("s")), "durations"),
    "lists": ([[n] for n in range(N)], "lists"),
    "structures": ([{"a": n} for n in range(N)], "structures"),
    "bytes": ([bytes([n]) for n in range(N)], "binary"),
    "empty": ([None] * N, "empty"),
    "empty text": ([""] * N, "empty"),
    "missing text": (["n/a"] * N, "empty"),
    "nan": ([float("nan")] * N, "empty"),
    "coded nulls": (
        pa.DictionaryArray.from_arrays(pa.array([0] * N, pa.int8()), pa.array([None], pa.date32())),
        "empty",
    ),
    "constant": ([3] * N, "3 in every row"),
    "constant float": ([3.5] * N, "3.5 in every row"),
    "constant text": (["x"] * N, '"x" in every row'),
    "constant number text": (["3,5"] * N, "3.5 in every row"),
    "constant boolean": ([True] * N, "every row"),
    "free text": ([f"note {n}" for n in range(N)], "identifier or free text: 100 different values"),
    "constant dates": ([DAYS[3]] * N, "2024-01-04 in every row"),
    "constant text dates": (["04.01.2024"] * N, "2024-01-04 in every row"),
    **{
        f"text dates {form}": ([day.strftime(form) for day in DAYS], "dates")
        for form in (
            *("%d/%m/%y", "%y-%m-%d", "%d %b %Y", "%B %d, %Y", "%d-%b-%y", "%b %Y", "%Y-%m-%dT%H:%M:%S+02:00"),
            *("%m/%d/%Y %I:%M %p", "%Y-%m-%d 10:30"),
        )
    },
    "day or month": ([f"{n % 12 + 1}/{n % 5 + 1}/2024" for n in range(N)], 'whether "6/1/2024"'),
    "mixed forms": ([day.strftime("%d/%m/%Y" if day.month > 1 else "%Y-%m-%d") for day in DAYS], "different forms"),
    "mixed signs": ([day.strftime("%d/%m/%Y" if day.month > 1 else "%d.%m.%Y") for day in DAYS], "different forms"),
    "mixed orders": ([day.strftime("%d/%m/%Y" if day.month > 1 else "%m/%d/%Y") for day in DAYS], "different forms"),
    "30 February": ([*[str(day) for day in DAYS[1:]], "2024-02-30"], '"2024-02-30" is none'),
    "29 February": ([*[str(day) for day in DAYS[1:]], "2023-02-29"], '"2023-02-29" is none'),
    "text among dates": ([*[str(day) for day in DAYS[1:]], "later"], '"later" is none'),
}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_columns_without_use_are_left_out_with_a_reason(kind):
    column, words = LEFT_OUT[kind]
    plan = plan_of(column)
    assert list(entries(plan)) == ["hours"]
    assert len(plan.notices) == 1
    assert plan.notices[0].startswith('Left out "thing": it ')
    assert plan.notices[0].endswith(".")
    assert words in plan.notices[0]


@pytest.mark.parametrize("kind", [kind for kind in LEFT_OUT if "constant" not in kind])
def test_a_column_without_use_cannot_be_asked_for(kind):
    column, words = LEFT_OUT[kind]
    with pytest.raises(TableError) as caught:
        plan_of(column, features=["thing", "hours"])
    assert '"thing"' in str(caught.value)
    assert words.split(":")[0] in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "order_id", "orderId", "Order ID", "uuid", "key", "no", "Invoice No.", "nr", "Rechnungs-Nr", "number"]
    + ["row", "index", "Unnamed: 0", "#"],
)
def test_ids_are_known_by_name_and_values(name):
    distinct = plan_of(list(range(N)), name)
    assert distinct.id_column == name
    assert list(entries(distinct)) == ["hours"]
    assert distinct.notices == (f'Left out "{name}": its name and its values are those of an identifier.',)
    assert plan_of([n // 2 for n in range(N)], name).id_column is None
    assert plan_of([n + 0.5 for n in range(N)], name).id_column is None


@pytest.mark.parametrize("name", ["paid", "humid", "number of items", "monkey", "casino", "rows sold", "indexed"])
def test_other_names_are_no_ids(name):
    assert plan_of(list(range(N)), name).id_column is None


def test_the_nameless_index_of_pandas_is_the_id(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",hours,total\n" + "".join(f"{n},{n % 7},{n}\n" for n in range(20)))
    plan = make_plan(read_table(path), "total")
    assert plan.id_column == "column 1"
    assert plan.encoding.names == ("hours",)


def test_an_id_column_is_never_an_input():
    content = {"code": list(range(N)), "id": list(range(N)), "hours": [n % 7 for n in range(N)], "total": TOTAL}
    plan = make_plan(table_of(content), "total", id_column="code")
    assert plan.id_column == "code"
    assert plan.encoding.names == ("hours",)
    explicit = make_plan(table_of(content), "total", features=["hours"])
    assert explicit.id_column == "id"
    assert explicit.notices == ()


def test_without_an_intercept_all_levels_and_constants_stay():
    plan = plan_of(["b" if n % 3 else "a" for n in range(N)], intercept=False)
    assert entries(plan)["thing"] == Category("thing", ("a", "b"), None)
    assert entries(plan_of([1] * N, intercept=False))["thing"] == Number("thing")
    assert "thing" not in entries(plan_of([0] * N, intercept=False))
    assert entries(plan_of(["x"] * N, intercept=False))["thing"] == Category("thing", ("x",), None)


def test_a_column_with_mostly_spellings_of_nothing_is_left_out_unless_asked_for():
    column = ["-"] * 60 + [f"{n} kg" for n in range(40)]
    assert plan_of(column).notices == ('Left out "thing": it is empty in 60 of 100 rows.',)
    assert "thing" in entries(plan_of(column, features=["thing"]))


@pytest.mark.parametrize("value", [7.5, "x", True])
def test_a_column_that_is_mostly_empty_is_left_out_unless_asked_for(value):
    other = {float: 8.5, str: "y", bool: False}[type(value)]
    column = [None if n % 10 else value if n % 20 else other for n in range(N)]
    plan = plan_of(column)
    assert plan.notices == ('Left out "thing": it is empty in 90 of 100 rows.',)
    assert "thing" in entries(plan_of(column, features=["thing"]))


def test_features_are_taken_as_given():
    content = {"a": TOTAL, "b": TOTAL[::-1], "c": [n % 3 for n in range(N)], "total": TOTAL}
    plan = make_plan(table_of(content), "total", features=["c", "a"])
    assert plan.encoding.names == ("c", "a")
    assert make_plan(table_of(content), "total", exclude=["b"]).encoding.names == ("a", "c")
    assert make_plan(table_of(content), "total", features=np.array(["c", "a"]), exclude=np.array(["b"])) == plan


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "totl"}, ['"totl"', 'did you mean "total"']),
        ({"target": "Total"}, ['did you mean "total"']),
        ({"target": "zzz"}, ['there are "a", "b"']),
        ({"features": ["aa"]}, ['"aa"']),
        ({"features": []}, ["empty"]),
        ({"features": ["a", "a"]}, ["twice"]),
        ({"features": ["total"]}, ["both the target and a feature"]),
        ({"features": ["a"], "exclude": ["a"]}, ["both a feature and excluded"]),
        ({"features": ["a"], "id_column": "a"}, ["both the id and a feature"]),
        ({"id_column": "total"}, ["both the target and the id"]),
        ({"group_column": "total"}, ["both the target and the group"]),
        ({"exclude": ["x"]}, ['no column "x"']),
        ({"id_column": "x"}, ['no column "x"']),
        ({"group_column": "x"}, ['no column "x"']),
        ({"exclude": ["a", "b"]}, ["no column is left"]),
        ({"features": ["day"]}, ["no column is left", 'dates in "day"']),
        ({"category": ["total"]}, ["both the target and a category"]),
        ({"category": ["a"], "exclude": ["a"]}, ["both a category and excluded"]),
        ({"category": ["a"], "number": ["a"]}, ["both a category and a number"]),
        ({"category": ["a"], "id_column": "a"}, ["both the id and a category"]),
        ({"category": ["a"], "features": ["b"]}, ["not a feature: list it there"]),
        ({"category": ["many"]}, ["201 different values, more than 200 (leave it out"]),
    ],
)
def test_requests_that_cannot_be_met_are_errors(options, words):
    wide = {
        "a": [n % 50 for n in range(402)],
        "b": range(402),
        "total": range(402),
        "day": [DAYS[n % N] for n in range(402)],
    }
    table = table_of(wide | ({"many": [n % 201 for n in range(402)]} if "many" in str(options) else {}))
    with pytest.raises(TableError) as caught:
        make_plan(table, **{"target": "total", **options})
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_group_column_is_an_input_too_unless_it_cannot_be():
    shops = [f"shop {n % 4}" for n in range(N)]
    plan = plan_of(shops, group_column="thing")
    assert plan.group_column == "thing"
    assert "thing" in entries(plan)
    excluded = plan_of(shops, group_column="thing", exclude=["thing"])
    assert excluded.group_column == "thing"
    assert "thing" not in entries(excluded)
    many = plan_of([f"shop {n}" for n in range(N)], group_column="thing")
    assert many.group_column == "thing"
    assert many.notices == (
        'Used "thing" only to group rows: it looks like an identifier or free text: 100 different values.',
    )


@pytest.mark.parametrize(
    ("n_rows", "n_levels", "fine"), [(40_000, 200, True), (40_000, 201, False), (N, 20, True), (N, 21, False)]
)
def test_the_number_of_levels_of_a_category_is_bounded(n_rows, n_levels, fine):
    column = [f"level {n % n_levels}" for n in range(n_rows)]
    assert ("thing" in entries(plan_of(column, total=range(n_rows)))) == fine
    if n_levels < 200:
        assert len(entries(plan_of(column, total=range(n_rows), features=["thing"]))["thing"].levels) == n_levels - 1


def test_text_among_numbers_is_named_and_costs_its_row_alone():
    column = [str(n) for n in range(N - 1)] + ["oops"]
    found = plan_of(column)
    assert found.encoding.names == ("thing", "hours")
    assert any('row 100 has "oops"' in notice for notice in found.notices)
    assert plan_of(column, exclude=["thing"]).encoding.names == ("hours",)
    assert plan_of(column, id_column="thing").encoding.names == ("hours",)


def test_a_target_may_be_text_that_reads_as_numbers_or_yes_and_no():
    money = table_of({"a": TOTAL, "total": [f"$ {n},000.50" for n in range(N)]})
    plan = make_plan(money, "total")
    assert plan.notices == ('Read the text in "total" as numbers: "$ 0,000.50" is 0.5.',)
    assert encode(money, plan.encoding).y[2] == 2000.5
    flag = table_of({"a": TOTAL, "total": ["yes" if n % 2 else "no" for n in range(N)]})
    assert encode(flag, make_plan(flag, "total").encoding).y[:2].tolist() == [0, 1]
    same = table_of({"a": TOTAL, "total": [7] * N})
    assert encode(same, make_plan(same, "total").encoding).y[0] == 7
