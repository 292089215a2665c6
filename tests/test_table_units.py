"""A unit behind all numbers of a column is read and remembered; units are never mixed."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

from massart.tables import Category, Encoding, Number, TableError, encode, make_plan, read_table, replaced, table_of
from massart.tables.numbers import same_unit, units_of

N = 60
UNITS = ("mg/L", "bar", "kg", "h", "°C", "°", "m²", "m3/h", "km/h", "l/100km", "kWh", "W/m²K", "N·m", "€/kWh", "Std.")
WORDS = ("apples", "fl oz", "Stück", "B", "kg CO2")


def plan_of(column, **options):
    content = {"thing": column, "hours": [n % 7 + 0.5 for n in range(len(column))], "total": range(len(column))}
    table = table_of(content)
    return table, make_plan(table, "total", **options)


def entry_of(plan):
    return {entry.column: entry for entry in plan.encoding.inputs}.get("thing")


@pytest.mark.full(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("blank", [" ", "", "\u00a0", "\u202f", "  "])
@pytest.mark.parametrize("unit", UNITS + WORDS)
def test_numbers_with_one_unit_are_numbers(unit, blank):
    column = [f"{n}.25{blank}{unit}" for n in range(N)]
    table, plan = plan_of(column)
    if not blank and unit in WORDS:
        assert not isinstance(entry_of(plan), Number)  # a code, for all that is known
        return
    entry = entry_of(plan)
    assert isinstance(entry, Number)
    assert f'Read the text in "thing" as numbers in {entry.unit}: ' in plan.notices[0]
    assert np.array_equal(encode(table, plan.encoding).X[:, 0], np.arange(N) + 0.25)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=8, unique=True),
    mark=st.sampled_from(".,"),
    minus=st.sampled_from("-\u2212"),
    unit=st.sampled_from(UNITS),
    order=st.randoms(use_true_random=False),
)
def test_numbers_with_units_parse_in_any_locale_and_order(values, mark, minus, unit, order):
    column = [f"{value / 100:.2f} {unit}".replace(".", mark, 1).replace("-", minus, 1) for value in values]
    table, plan = plan_of(column, features=["thing"])
    assert encode(table, plan.encoding).X[:, 0].tolist() == [value / 100 for value in values]
    order.shuffle(column)
    assert plan_of(column, features=["thing"])[1].encoding == plan.encoding


@pytest.mark.parametrize(
    "form",
    ["A{n}", "{n}B", "{n}A", "{n}rd", "{n}th", "{n} th", "{n}x20", "{n} x 20", "{n}:30 am", "{n}pm", "{n} p.m.", "{n}x"]
    + ["{n} Mai", "{n} May", "{n}. Okt", "{n}D", "{n}G", "0x{n}", "{n}f", "{n} 1/2", "{n}-10 kg", "{n}h30", "{n} CR"],
)
def test_codes_dates_and_times_are_no_numbers(form):
    _, plan = plan_of([form.format(n=n) for n in range(1, 29)])
    assert entry_of(plan) is None
    assert plan.notices[0].startswith('Left out "thing"')


@pytest.mark.parametrize(("form", "value"), [("{n}e5", 3e5), ("{n} %", 3), ("{n} €", 3), ("{n} USD", 3), ("{n} ft", 3)])
def test_exponents_percents_and_currencies_are_no_units(form, value):
    table, plan = plan_of([form.format(n=n) for n in range(N)])
    assert entry_of(plan) == Number("thing")
    assert encode(table, plan.encoding).X[3, 0] == value


def test_a_plural_is_the_same_unit():
    table, plan = plan_of([f"{n} day{'s' * (n != 1)}" for n in range(N)])
    assert entry_of(plan) == Number("thing", ".", "days")
    assert encode(table, plan.encoding).X[:3, 0].tolist() == [0, 1, 2]
    assert same_unit("day", "days")
    assert not same_unit("m", "ms")
    assert not same_unit("mg", "Mg")


def test_signs_of_one_unit_are_the_same():
    found = units_of(pa.array(["5 m²", "5 m2", "5 µg", "5 μg", "5 kg.", "5 kg", "5℃", "5°C"]))
    assert found.names == ("m2", "μg", "kg", "°C")


@pytest.mark.parametrize("others", [1, 6, 7, 30])
def test_several_units_are_never_mixed(others):
    column = ["300 g" if n < others else f"{n} kg" for n in range(N)]
    if others <= N // 10:
        table, plan = plan_of(column)
        assert any('row 1 has "300 g"' in notice for notice in plan.notices)
        assert encode(table, plan.encoding).kept.tolist() == list(range(others, N))
        return
    column = [f"{300 + n} g" if n < others else f"{n} kg" for n in range(N)]
    _, plan = plan_of(column)
    assert entry_of(plan) is None
    assert plan.notices[0].startswith('Left out "thing": its numbers have different units ("')
    with pytest.raises(TableError, match="different units"):
        plan_of(column, features=["thing"])
    with pytest.raises(TableError, match='the target "thing" has to hold numbers, but its numbers have different'):
        make_plan(table_of({"thing": column, "a": range(N)}), "thing")


def test_a_few_sizes_in_several_units_are_a_category_that_says_why():
    column = ["500 g", "1 kg", "250 g", "500 g"] * 15
    _, plan = plan_of(column)
    assert entry_of(plan) == Category("thing", ("1 kg", "250 g"), "500 g")
    assert plan.notices[0].endswith('it was not read as numbers, for its numbers have different units ("g", "kg").')
    with pytest.raises(TableError, match='has to hold numbers, but its numbers have different units \\("g", "kg"\\)'):
        make_plan(table_of({"thing": column, "a": range(60)}), "thing")


def test_numbers_without_a_unit_among_others_are_said():
    few = ["7" if n < 2 else f"{n} kg" for n in range(N)]
    table, plan = plan_of(few)
    design = encode(table, plan.encoding)
    assert design.X[:3, 0].tolist() == [7, 7, 2]
    assert design.notices == ('Took 2 cells of "thing" without a unit to be in kg.',)
    _, plan = plan_of([f"{n}" if n % 2 else f"{n} kg" for n in range(N)])
    assert entry_of(plan) is None
    assert "some of its numbers are in kg and some have no unit" in plan.notices[0]
    _, plan = plan_of(["0 kg", *map(str, range(1, N))])
    assert any('row 1 has "0 kg"' in notice for notice in plan.notices)


@pytest.mark.parametrize("cell", ["300 g", "3 KG", "3 lb", "3 €", "3 %", "3 ft", "many"])
def test_a_saved_encoding_refuses_another_unit(cell):
    _, plan = plan_of([f"{n} kg" for n in range(N)])
    encoding = Encoding.from_json(json.loads(json.dumps(plan.encoding.to_json())))
    assert encoding == plan.encoding
    new = {"thing": ["1 kg", "n.a.", cell], "hours": [1, 2, 3]}
    with pytest.raises(TableError, match='row 3 has an unreadable "thing"') as caught:
        encode(table_of(new | {"thing": ["1 kg", "2 kg", cell]}), encoding, with_target=False, strict=True)
    assert cell in str(caught.value)
    assert encode(table_of(new), encoding, with_target=False).kept.tolist() == [0]
    fine = encode(table_of({"thing": ["1kg", "2 kg", "3\u00a0kg."], "hours": [1, 2, 3]}), encoding, with_target=False)
    assert fine.X[:, 0].tolist() == [1, 2, 3]
    assert fine.notices == ()
    bare = encode(table_of({"thing": [1, 2, 3], "hours": [1, 2, 3]}), encoding, with_target=False)
    assert bare.notices == ('Took "thing", which has no unit, to be in kg.',)


def test_an_encoding_without_a_unit_refuses_one():
    _, plan = plan_of(list(range(N)))
    table = table_of({"thing": ["1", "2 kg"], "hours": [1, 2]})
    with pytest.raises(TableError, match='row 2 has an unreadable "thing": "2 kg"'):
        encode(table, plan.encoding, with_target=False, strict=True)
    assert encode(table, plan.encoding, with_target=False).kept.tolist() == [0]


def test_units_are_read_from_files_with_gaps(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{n},5 mg/L;{n},25h;{n}" if n % 9 else f"n.a.;;{n}" for n in range(N)]
    path.write_text("load;time;total\n" + "\n".join(rows), encoding="utf-8")
    table = read_table(path)
    plan = make_plan(table, "total")
    assert plan.encoding.inputs == (Number("load", ",", "mg/L"), Number("time", ",", "h"))
    design = encode(table, plan.encoding)
    assert design.X[0].tolist() == [1.5, 1.25]
    assert design.kept.size == N - 7


@pytest.mark.slow
def test_many_different_numbers_with_a_unit_are_read():
    rng = np.random.default_rng(0)
    values = rng.permutation(20_000) / 8
    column = pa.array([f"{value} kg" for value in values])
    table, plan = plan_of(column)
    assert np.array_equal(encode(table, plan.encoding).X[:, 0], values)


def test_a_target_with_a_unit_can_be_put_right():
    table = table_of({"a": range(4), "total": ["1,5 kg", "2 kg", "n.a.", "9 kg"]})
    plan = make_plan(table, "total")
    assert plan.encoding.target == Number("total", ",", "kg")
    assert plan.notices == ('Read the text in "total" as numbers in kg: "1,5 kg" is 1.5.',)
    fixed = replaced(table, "total", [3], [4.5], "before")
    cells = fixed.cells(["total", "before"], np.arange(4))
    assert cells == {"total": [1.5, 2, None, 4.5], "before": ["1,5 kg", "2 kg", "n.a.", "9 kg"]}


def test_a_constant_with_a_unit_says_so():
    _, plan = plan_of(["5 kg"] * N)
    assert plan.notices == ('Left out "thing": it is 5 kg in every row.',)
