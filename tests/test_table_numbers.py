"""Texts that people write for numbers parse to those numbers, whatever their locale and their unit."""

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

from massart.tables import Category, Encoding, Number, TableError, encode, make_plan, table_of

N = 60
LOCALES = {  # decimal mark, thousands separator
    "en": (".", ","),
    "de": (",", "."),
    "fr": (",", "\u202f"),
    "sv": (",", "\u00a0"),
    "ch": (".", "'"),
    "ch, curly": (".", "\u2019"),
    "si": (",", " "),
    "none": (".", ""),
    "none, comma": (",", ""),
}
BEFORE = ["", "$", "€ ", "£", "¥", "USD ", "CHF ", "US$", "kr ", "R$ ", "\u00a0"]
AFTER = ["", " €", "\u00a0€", " EUR", " kr", " kr.", "%", " %", " zł", " "]
SIGNS = {
    "minus": lambda number: f"-{number}",
    "unicode": lambda number: f"\u2212{number}",
    "trailing": lambda number: f"{number}-",
    "accounting": lambda number: f"({number})",
    "blank": lambda number: f"- {number}",
}
UNITS = ("mg/L", "bar", "kg", "h", "°C", "°", "m²", "m3/h", "km/h", "l/100km", "kWh", "W/m²K", "N·m", "€/kWh", "Std.")
WORDS = ("apples", "fl oz", "Stück", "B", "kg CO2")


def planned(column, **options):
    """Return a table with the column "thing", and the plan that is made of it."""
    table = table_of({"thing": column, "hours": [n % 7 + 0.5 for n in range(len(column))], "total": range(len(column))})
    return table, make_plan(table, "total", **options)


def entry_of(plan):
    return {entry.column: entry for entry in plan.encoding.inputs}.get("thing")


def numbers_of(column, **options):
    """Return the decimal mark of a column of texts, its numbers, and the rows that they are in."""
    table, plan = planned(column, features=["thing"], **options)
    design = encode(table, plan.encoding)
    return entry_of(plan).decimal, design.X[:, 0].tolist(), design.kept.tolist()


def spelled(cents, places, locale):
    mark, thousands = LOCALES[locale]
    whole, _, rest = f"{Decimal(cents).scaleb(-places):,f}".partition(".")
    return whole.replace(",", thousands) + (mark + rest if rest else "")


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    cents=st.lists(st.integers(0, 10**12), min_size=2, max_size=8, unique=True),
    places=st.sampled_from([1, 2, 4, 6]),
    locale=st.sampled_from(list(LOCALES)),
    before=st.sampled_from(BEFORE),
    after=st.sampled_from(AFTER),
    sign=st.sampled_from([None, *SIGNS]),
)
def test_numbers_parse_in_any_locale(cents, places, locale, before, after, sign):
    wanted = [float(Decimal(cent).scaleb(-places)) for cent in cents]
    bodies = [before + spelled(cent, places, locale) + after for cent in cents]
    if sign == "trailing":
        bodies = [before + SIGNS[sign](spelled(cent, places, locale)) for cent in cents]
    elif sign is not None:
        bodies = [SIGNS[sign](body) for body in bodies]
    wanted = wanted if sign is None else [-value for value in wanted]
    assert numbers_of(bodies, number=["thing"])[:2] == (LOCALES[locale][0], wanted)


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
    assert numbers_of(column)[1] == [value / 100 for value in values]
    encoding = planned(column, features=["thing"])[1].encoding
    order.shuffle(column)
    assert planned(column, features=["thing"])[1].encoding == encoding


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=5, unique=True))
def test_any_float_that_python_writes_is_read_exactly(values):
    if max(map(abs, values)) <= 2**53:
        assert numbers_of([*map(repr, values), "x"], number=["thing"])[1] == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.50", 1234.5),
        ("1.234,50", 1234.5),
        ("1 234,50", 1234.5),
        ("12,34,567.5", 1234567.5),
        ("CHF 5.-", 5),
        ("5,-- €", 5),
        ("(1,234.00)", -1234),
        ("$(12.50)", -12.5),
        ("-$12.50", -12.5),
        ("$-12.50", -12.5),
        ("12.50 CR", None),
        ("1e3", 1000),
        (".5", 0.5),
        (",5", 0.5),
        ("+7", 7),
        ("007", 7),
        ("1,23,4", None),
        ("1.2.3", None),
        ("12:30", 12.5),
        ("-0:45:00", -0.75),
        ("12:75", None),
        ("12.5*", 12.5),
        ("1,234.50\u00b9", 1234.5),
        *((text, None) for text in ("1-2", "--5", "5 apples", "0x10", "1_000", "()", "$", "٣")),
        *(
            (text, None)
            for text in ("-", "\u2014", "#DIV/0!", "n.a.", "N.A.", "Na", "nil", "MISSING", "Unknown", "nUlL")
        ),
    ],
)
def test_what_is_a_number_and_what_is_not(text, value):
    assert numbers_of([text, "77", "78"], number=["thing"])[1] == [*([] if value is None else [value]), 77, 78]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1.234", "5.678"], [1.234, 5.678]),
        (["1.234", "5,5"], [1234, 5.5]),
        (["1,234", "5.5"], [1234, 5.5]),
        (["1,234", "5,678"], [1234, 5678]),
        (["12 %", "7.5%", "3"], [12, 7.5, 3]),
        (["1", str(2**53)], [1, 2.0**53]),
    ],
)
def test_one_cell_decides_for_its_column(texts, values):
    assert numbers_of(texts, number=["thing"])[1] == values


def test_what_was_assumed_and_dropped_is_said(tmp_path):
    for column, words in (
        (["1,234", "5,678"], "thousands were assumed"),
        (["12 %", "3"], "percent signs were dropped"),
    ):
        assert words in planned(column)[1].notices[0]
    path = tmp_path / "a.csv"
    path.write_text("price;weight;total\n" + "".join(f"{n},5;{n}.250;{n}\n" for n in range(1, 9)))
    table = table_of(path)  # its prices decide for its weights, too
    assert encode(table, make_plan(table, "total").encoding).X[0].tolist() == [1.5, 1250]
    path.write_text("price;weight;pieces;total\n" + "".join(f"{n},5;{n}.5;{n},250;{n}\n" for n in range(1, 9)))
    table = table_of(path)  # as many commas as points decide nothing for others
    assert encode(table, make_plan(table, "total").encoding).X[0].tolist() == [1.5, 1.5, 1250]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["1", "2", "9007199254740993"], ['"thing" has 9007199254740993 in row 3', "2**53"]),
        (["1", "2", "-9007199254740993"], ["-9007199254740993", "2**53"]),
        *((["1", "2", text], [text, "row 3"]) for text in ("1e400", "inf", "∞")),
        *(
            (pa.array([1, 2, 2**53 + 1], pa.decimal128(19, 0)).cast(kind), ['"thing" has 9007199254740993 in row 3'])
            for kind in (pa.int64(), pa.uint64(), pa.decimal128(38, 0), pa.decimal128(38, 2))
        ),
    ],
    ids=str,
)
def test_numbers_that_float64_does_not_hold_are_refused(column, words):
    with pytest.raises(TableError) as caught:
        numbers_of(column)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(30, 3), pa.decimal256(40, 3)),
        *(pa.bool_(), pa.string(), pa.large_string()),
    ],
    ids=str,
)
def test_every_type_of_number_converts_exactly(kind):
    base = pa.array([True, False, None, True]) if kind == pa.bool_() else pa.array([1, 0, None, 100])
    table = table_of(pa.table({"a": pa.chunked_array([base.cast(kind)[:2], base.cast(kind)[2:]]), "total": range(4)}))
    design = encode(table, make_plan(table, "total").encoding)
    assert design.kept.tolist() == [0, 1, 3]
    assert design.X[:, 0].tolist() == [1, 0, 1 if kind == pa.bool_() else 100]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(st.decimals(-(10**15), 10**15, places=6), min_size=2, max_size=5, unique=True))
def test_decimals_become_the_nearest_float(values):
    assert numbers_of(pa.array(values, pa.decimal128(38, 6)))[1] == [float(value) for value in values]


# --- units ---


@pytest.mark.full(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("blank", [" ", "", "\u00a0", "\u202f", "  "])
@pytest.mark.parametrize("unit", UNITS + WORDS)
def test_numbers_with_one_unit_are_numbers(unit, blank):
    table, plan = planned([f"{n}.25{blank}{unit}" for n in range(N)])
    entry = entry_of(plan)
    if not blank and unit in WORDS:
        assert not isinstance(entry, Number)  # a code, for all that is known
        return
    assert f'Read the text in "thing" as numbers in {entry.unit}: ' in plan.notices[0]
    assert np.array_equal(encode(table, plan.encoding).X[:, 0], np.arange(N) + 0.25)


@pytest.mark.parametrize(
    "form",
    ["A{n}", "{n}B", "{n}A", "{n}rd", "{n}th", "{n} th", "{n}x20", "{n} x 20", "{n}:30 am", "{n}pm", "{n} p.m.", "{n}x"]
    + ["{n} Mai", "{n} May", "{n}. Okt", "{n}D", "{n}G", "0x{n}", "{n}f", "{n} 1/2", "{n}-10 kg", "{n}h30", "{n} CR"],
)
def test_codes_dates_and_times_are_not_numbers(form):
    _, plan = planned([form.format(n=n) for n in range(1, 29)])
    assert entry_of(plan) is None
    assert plan.notices[0].startswith('Left out "thing"')


@pytest.mark.parametrize(
    ("column", "entry", "start"),
    [
        ([f"{n}e5" for n in range(N)], Number("thing"), [0, 1e5]),
        *(([f"{n} {sign}" for n in range(N)], Number("thing"), [0, 1]) for sign in ("%", "€", "USD", "ft")),
        ([f"{n} day{'s' * (n != 1)}" for n in range(N)], Number("thing", ".", "days"), [0, 1, 2]),
        (["0 m²", *(f"{n} m2" for n in range(1, N))], Number("thing", ".", "m2"), [0, 1]),
        (["0 µg", *(f"{n} μg." for n in range(1, N))], Number("thing", ".", "μg"), [0, 1]),
        ([f"{n},5 kg" if n % 9 else "n.a." for n in range(N)], Number("thing", ",", "kg"), [1.5, 2.5]),
    ],
)
def test_columns_of_numbers_with_what_stands_behind_them(column, entry, start):
    table, plan = planned(column)
    assert entry_of(plan) == entry
    assert encode(table, plan.encoding).X[: len(start), 0].tolist() == start


@pytest.mark.parametrize("others", [1, 6, 7, 30])
def test_several_units_are_never_mixed(others):
    if others <= N // 10:
        table, plan = planned(["300 g" if n < others else f"{n} kg" for n in range(N)])
        assert any('row 1 has "300 g"' in notice for notice in plan.notices)
        assert encode(table, plan.encoding).kept.tolist() == list(range(others, N))
        return
    column = [f"{300 + n} g" if n < others else f"{n} kg" for n in range(N)]
    _, plan = planned(column)
    assert entry_of(plan) is None
    assert plan.notices[0].startswith('Left out "thing": its numbers have different units ("')
    with pytest.raises(TableError, match="different units"):
        planned(column, features=["thing"])
    with pytest.raises(TableError, match='the target "thing" has to hold numbers, but its numbers have different'):
        make_plan(table_of({"thing": column, "a": range(N)}), "thing")


def test_a_few_sizes_in_several_units_are_a_category_that_says_why():
    column = ["500 g", "1 kg", "250 g", "500 g"] * 15
    _, plan = planned(column)
    assert entry_of(plan) == Category("thing", ("1 kg", "250 g"), "500 g")
    assert plan.notices[0].endswith('it was not read as numbers, for its numbers have different units ("g", "kg").')


def test_numbers_without_a_unit_among_others_are_said():
    table, plan = planned(["7" if n < 2 else f"{n} kg" for n in range(N)])
    design = encode(table, plan.encoding)
    assert design.X[:3, 0].tolist() == [7, 7, 2]
    assert design.notices == ('Took 2 cells of "thing" without a unit to be in kg.',)
    for column, words in (
        ([f"{n}" if n % 2 else f"{n} kg" for n in range(N)], "some of its numbers are in kg and some have no unit"),
        (["0 kg", *map(str, range(1, N))], 'row 1 has "0 kg"'),
        (["5 kg"] * N, 'Left out "thing": it is 5 kg in every row.'),
    ):
        assert words in planned(column)[1].notices[0]


@pytest.mark.parametrize("cell", ["300 g", "3 KG", "3 lb", "3 €", "3 %", "3 ft", "many"])
def test_a_saved_encoding_refuses_another_unit(cell):
    def read(cells, **options):
        table = table_of({"thing": cells, "hours": range(len(cells))})
        return encode(table, encoding, with_target=False, **options)

    _, plan = planned([f"{n} kg" for n in range(N)])
    encoding = Encoding.from_json(json.loads(json.dumps(plan.encoding.to_json())))
    assert encoding == plan.encoding
    with pytest.raises(TableError, match='row 3 has an unreadable "thing"') as caught:
        read(["1 kg", "2 kg", cell], strict=True)
    assert cell in str(caught.value)
    assert read(["1 kg", "n.a.", cell]).kept.tolist() == [0]
    fine = read(["1kg", "2 kg", "3\u00a0kg."])
    assert (fine.X[:, 0].tolist(), fine.notices) == ([1, 2, 3], ())
    assert read([1, 2, 3]).notices == ('Took "thing", which has no unit, to be in kg.',)
    encoding = planned(range(N))[1].encoding
    with pytest.raises(TableError, match='row 2 has an unreadable "thing": "2 kg"'):
        read(["1", "2 kg"], strict=True)


@pytest.mark.slow
def test_many_different_numbers_with_a_unit_are_read():
    values = np.random.default_rng(0).permutation(20_000) / 8
    assert numbers_of(pa.array([f"{value} kg" for value in values]))[1] == values.tolist()
