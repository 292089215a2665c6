"""Texts that people write for numbers parse to those numbers, whatever their locale."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

from massart.tables import TableError, encode, make_plan, table_of
from massart.tables.numbers import MISSING, WORDS_FOR_MISSING, read_numbers

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


def read(*texts, **options):
    column = pa.array([text.strip() for text in texts])
    return read_numbers(column, np.ones(len(texts), dtype=np.int64), **options)


def spelled(cents, places, locale):
    mark, part = LOCALES[locale]
    whole, _, rest = f"{Decimal(cents).scaleb(-places):,f}".partition(".")
    return whole.replace(",", part) + (mark + rest if rest else "")


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    cents=st.lists(st.integers(0, 10**12), min_size=1, max_size=8),
    places=st.sampled_from([1, 2, 4, 6]),
    locale=st.sampled_from(list(LOCALES)),
    before=st.sampled_from(BEFORE),
    after=st.sampled_from(AFTER),
    sign=st.sampled_from([None, *SIGNS]),
)
def test_numbers_parse_in_any_locale(cents, places, locale, before, after, sign):
    wanted = np.array([float(Decimal(cent).scaleb(-places)) for cent in cents])
    bodies = [before + spelled(cent, places, locale) + after for cent in cents]
    if sign == "trailing":
        bodies = [before + SIGNS[sign](spelled(cent, places, locale)) for cent in cents]
    elif sign is not None:
        bodies = [SIGNS[sign](body) for body in bodies]
    found = read(*bodies)
    assert found.is_number.all(), bodies
    assert found.decimal == LOCALES[locale][0]
    assert np.array_equal(found.values, wanted if sign is None else -wanted)
    assert not found.ambiguous


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_any_float_that_python_writes_is_read_exactly(values):
    found = read(*map(repr, values))
    assert np.array_equal(found.values, values)


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
        ("1-2", None),
        ("--5", None),
        ("5 apples", None),
        ("0x10", None),
        ("1_000", None),
        ("()", None),
        ("$", None),
        ("٣", None),
    ],
)
def test_what_is_a_number_and_what_is_not(text, value):
    found = read(text)
    if value is None:
        assert not found.is_number[0]
    else:
        assert found.values[0] == value


def test_missing_spellings_are_neither_numbers_nor_faults():
    spellings = [*MISSING, *WORDS_FOR_MISSING, "n.a.", "N.A.", "na", "Na", "nil", "missing", "N/a", "Unknown", "nUlL"]
    found = read(*spellings, *(spelling.upper() for spelling in spellings))
    assert found.missing.all()
    assert not found.is_number.any()


def test_one_cell_decides_for_its_column():
    assert read("1.234", "5.678").values.tolist() == [1.234, 5.678]
    assert read("1.234", "5,5").values.tolist() == [1234, 5.5]
    assert read("1,234", "5.5").values.tolist() == [1234, 5.5]
    assert read("1,234", "5,678", hint=",").values.tolist() == [1.234, 5.678]
    assert read("1,234", "5,678", decimal=",").values.tolist() == [1.234, 5.678]


def test_commas_that_nothing_decides_part_thousands_and_say_so():
    found = read("1,234", "5,678", "12")
    assert found.ambiguous
    assert found.values.tolist() == [1234, 5678, 12]
    table = table_of({"a": ["1,234", "5,678", "9,012"], "total": [1, 2, 3]})
    (notice,) = make_plan(table, "total").notices
    assert '"1,234" is 1234' in notice
    assert "thousands were assumed" in notice


def test_percent_signs_are_dropped_and_said():
    table = table_of({"rate": ["12 %", "7.5%", "3"], "total": [1, 2, 3]})
    plan = make_plan(table, "total")
    assert encode(table, plan.encoding).X[:, 0].tolist() == [12, 7.5, 3]
    assert "percent signs were dropped" in plan.notices[0]


def test_a_semicolon_file_speaks_for_all_its_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("price;weight;total\n" + "".join(f"{n},5;{n}.250;{n}\n" for n in range(1, 9)))
    table = table_of(path)
    design = encode(table, make_plan(table, "total").encoding)
    assert design.X[0].tolist() == [1.5, 1250]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["9007199254740993"], ["9007199254740993", "2**53", "row 3"]),
        (["-9007199254740993"], ["-9007199254740993", "2**53", "row 3"]),
        (["1e400"], ["1e400", "row 3"]),
        (["inf"], ["inf", "row 3"]),
        (["∞"], ["∞", "row 3"]),
    ],
)
def test_numbers_that_float64_does_not_hold_are_refused(values, words):
    table = table_of({"a": ["1", "2", *values], "total": [1, 2, 3]})
    with pytest.raises(TableError) as caught:
        encode(table, make_plan(table, "total").encoding)
    for word in [*words, '"a"']:
        assert word in str(caught.value)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(38, 0), pa.decimal128(38, 2)], ids=str)
def test_integers_beyond_2_to_the_53_are_refused_in_every_type(kind):
    column = pa.array([1, 2, 2**53 + 1], pa.decimal128(19, 0)).cast(kind)
    table = table_of(pa.table({"a": column, "total": [1, 2, 3]}))
    with pytest.raises(TableError, match=r'"a" has 9007199254740993 in row 3, an integer beyond 2\*\*53'):
        encode(table, make_plan(table, "total").encoding)


def test_two_to_the_53_itself_is_exact():
    table = table_of({"a": ["1", str(2**53)], "b": [3, -(2**53)], "total": [1, 2]})
    design = encode(table, make_plan(table, "total").encoding)
    assert design.X[1].tolist() == [2.0**53, -(2.0**53)]


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float16()]
    + [
        pa.float32(),
        pa.float64(),
        pa.decimal128(30, 3),
        pa.decimal256(40, 3),
        pa.bool_(),
        pa.string(),
        pa.large_string(),
    ],
    ids=str,
)
def test_every_type_of_number_converts_exactly(kind):
    base = pa.array([True, False, None, True]) if kind == pa.bool_() else pa.array([1, 0, None, 100])
    column = pa.chunked_array([base.cast(kind)[:2], base.cast(kind)[2:]])
    table = table_of(pa.table({"a": column, "total": [1, 2, 3, 4]}))
    design = encode(table, make_plan(table, "total").encoding)
    assert design.kept.tolist() == [0, 1, 3]
    assert design.X[:, 0].tolist() == [1, 0, 1 if kind == pa.bool_() else 100]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(st.decimals(-(10**15), 10**15, places=6), min_size=2, max_size=5))
def test_decimals_become_the_nearest_float(values):
    table = table_of(pa.table({"a": pa.array(values, pa.decimal128(38, 6)), "total": range(len(values))}))
    if len(set(values)) > 1:
        design = encode(table, make_plan(table, "total").encoding)
        assert design.X[:, 0].tolist() == [float(value) for value in values]
