"""What str writes of a term is read as that term, and whatever else is written is a term or one line."""

from __future__ import annotations

import string
import time
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from massart.rules import (
    Columns,
    Levels,
    Term,
    TermError,
    column,
    parse_formula,
    parse_terms,
    plain_number,
    quoted,
    target_of,
)

NAMES = [
    "qty",
    "unit price",
    "in",
    "lambda",
    "by",
    "order",
    "max",
    "größe",
    "2nd",
    "a`b",
    "n_0",
    "x.y",
    "",
    "価格",
    "if\nelse",
]
DATES = ["day", "date of sale", "2024-05-01"]
TEXTS = {"region": ("north", "c d", "3", "05", "by", "2024-05-01", "-1.5"), "class": ("in", "é`è", "")}
COLUMNS = Columns(
    {name: np.array([1.0, 2.0, 3.0]) for name in NAMES} | {name: np.array([0.0, 9_000.0, 20_000.0]) for name in DATES},
    {name: Levels(np.array([0, 1, 2], dtype=np.int32), levels) for name, levels in TEXTS.items()},
    frozenset(DATES),
)


# --- what is written is read ------------------------------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False) | st.integers(-999, 999).map(float)
LEAVES = [
    *("`" + name.replace("`", "``") + "`" for name in [*NAMES, *DATES]),
    *(f"({name} = {quoted(level)})" for name, levels in TEXTS.items() for level in levels),
    *("?", "(region in (north, `c d`, 3))", "(qty in (1, 2.5))", "(qty = 7)", "(in = -1.5)", "(day = 2024-05-01)"),
    *(
        "(200 < qty <= 500)",
        "(3 <= `a``b` < ?)",
        "(by > 1e-7)",
        "(day >= 2024-05-01)",
        "(2024-01-01 <= day < 2024-05-01)",
    ),
    *("month(day)", "(weekday(`date of sale`) in (Sat, Sun))", "(month(day) = Jan)", "(month(day) >= by)"),
    *("lag(qty)", "lag(`unit price`, by=region, order=day)", "cumsum(in, order=qty)", "cumsum(by, by=`2024-05-01`)"),
]
WHOLES = [
    *("{} * {}", "{}:{}", "({}) / ({})", "({}) + ({})", "({}) - ({})", "({})^({})", "-({})", "2^({})", "({})^-0.5"),
    *(
        "min({}, {}, 3)",
        "max(0, {})",
        "log({})",
        "exp(-0.1 * ({}))",
        "sqrt({})",
        "abs({})",
        "ceil(({}) / 7)",
        "floor({})",
    ),
    *("round({})", "round({}, to=0.05)", "(({}) >= ({}))", "(({}) < ({}))", "(1 < ({}) <= ({}))", "(({}) in (1, 2.5))"),
]
TEXT = st.recursive(
    st.sampled_from(LEAVES) | numbers.map(plain_number),
    lambda inner: st.builds(lambda whole, a, b: whole.format(a, b), st.sampled_from(WHOLES), inner, inner),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(TEXT)
def test_what_is_written_is_read(text: str) -> None:
    try:
        terms = parse_terms(text, COLUMNS)
    except TermError:  # numbers alone that are compared, or too large
        reject()
    for term in terms:
        assert parse_terms(str(term), COLUMNS) == (term,)
        assert Term.from_json(term.to_json()) == term


@settings(max_examples=100, deadline=None)
@given(numbers)
def test_numbers_are_written_with_all_their_digits(value: float) -> None:
    assert float(plain_number(value)) == value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("qty*in", "qty * in"),
        ("qty:in", "qty * in"),
        ("-qty", "-1 * qty"),
        ("qty^-2", "qty^(-2)"),
        ("qty**2", "qty^2"),
        ("qty^(1/2)", "qty^0.5"),
        ("qty / (in / by)", "qty / (in / by)"),
        ("qty - (in + by)", "qty - (in + by)"),
        ("qty * (in / by)", "qty * (in / by)"),
        ("max(0, qty-200)", "max(0, qty - 200)"),
        ("I(qty^2)", "qty^2"),
        ("qty <= 200", "(qty <= 200)"),
        ("500 >= qty > 2e2", "(200 < qty <= 500)"),
        ("200 <= qty <= 500", "(qty >= 200) * (qty <= 500)"),
        ("1 < qty > 0", "(qty > 1) * (qty > 0)"),
        ("day < 2024-05-01", "(day < 2024-05-01)"),
        ("2024-01-01 <= day < 2024-05-01", "(2024-01-01 <= day < 2024-05-01)"),
        ("(day = 2024-05-01)", "(day = 2024-05-01)"),
        ("(region = 'c d')", "(region = `c d`)"),
        ("(region = 3)", "(region = 3)"),
        ("(region = `05`)", "(region = `05`)"),
        ("(qty = 3.0)", "(qty = 3)"),
        ("(weekday(day) = 6)", "(weekday(day) = Sat)"),
        ("weekday(day) in (saturday, Sun, 7)", "(weekday(day) in (Sat, Sun))"),
        ("month(day) in (Dec, JAN)", "(month(day) in (Jan, Dec))"),
        ("qty >= by", "(qty >= by)"),
        ("qty > in * by", "(in * by < qty)"),
        ("qty - in <= 2^by", "((2)^by >= qty - in)"),
        ("day < `date of sale`", "(day < `date of sale`)"),
        ("0 < qty*in <= by", "(0 < qty * in) * (by >= qty * in)"),
        ("qty * in > ?", "(? < qty * in)"),
        ("region in (north, `c d`, 3, north)", "(region in (3, `c d`, north))"),
        ("region in (north)", "(region = north)"),
        ("in in (1, 2)", "(in in (1, 2))"),
        ("day in (2024-05-01, 2024-01-01)", "(day in (2024-01-01, 2024-05-01))"),
        ("qty*(region in (north, 3))", "qty * (region in (3, north))"),
        ("(1 + qty/100)^in", "(1 + qty / 100)^in"),
        ("2^(qty + 1)", "(2)^(qty + 1)"),
        ("qty^(-in)", "qty^(-1 * in)"),
        ("ceil(qty/6)", "ceil(qty / 6)"),
        ("round(qty*in, 0.05)", "round(qty * in, to=0.05)"),
        ("round(qty * in, to = 1/20)", "round(qty * in, to=0.05)"),
        ("round(qty)", "round(qty)"),
        ("exp(-0.5*qty)", "exp(-0.5 * qty)"),
        ("qty / (? + qty)", "qty / (? + qty)"),
        ("max(0,qty-?)", "max(0, qty - ?)"),
        ("qty*(qty>?)", "qty * (qty > ?)"),
        ("qty^?", "qty^?"),
        ("log(1 + qty/?)", "log(1 + qty / ?)"),
        ("(by = 3)", "(by = 3)"),
        ("lag(qty, by = region, order=day)", "lag(qty, by=region, order=day)"),
    ],
)
def test_people_write_terms_in_several_ways(text: str, written: str) -> None:
    (term,) = parse_terms(text, COLUMNS)
    assert str(term) == written


def test_a_category_stands_for_its_levels() -> None:
    levels = len(TEXTS["region"])
    assert len(parse_terms("qty:region", COLUMNS)) == levels
    assert len(parse_terms("qty:region:class", COLUMNS)) == levels * 3
    assert parse_terms("qty:(region:class)", COLUMNS) == parse_terms("qty:region:class", COLUMNS)
    assert [str(term) for term in parse_terms("C(qty)", COLUMNS)] == ["(qty = 1)", "(qty = 2)", "(qty = 3)"]
    assert str(parse_terms("C(month(day))", COLUMNS)[0]) == "(month(day) = Jan)"
    assert str(parse_terms("C(day)", COLUMNS)[0]) == "(day = 1970-01-01)"
    assert parse_terms("qty, qty, `qty`", COLUMNS) == (column("qty"),)


# --- what is no term is one line, soon --------------------------------------------------------------------------------

HOSTILE = {
    "__import__('os').system('true')": "'.' has no meaning",
    "exec('1')": "no function 'exec'",
    "[x for x in qty]": "no meaning",
    "lambda: qty": None,
    "(qty := 3)": "not a list of terms",
    "qty if in else by": "not a list of terms",
    "f'{qty}'": "no column 'f'",
    "qty.real": "no meaning",
    "": "not a list of terms",
    "   ": "not a list of terms",
    ",": "not a list of terms",
    "\0": "no meaning",
    "`a\0\nb`": "no column",
    "`qty": "no meaning",
    "qty in": "not a list of terms",
    "qty`in`": "not a list of terms",
    "2qty": "not a list of terms",
    "2024-05-013": "not a list of terms",
    "(" * 5_000: "too deeply",
    "(" * 30 + "qty" + ")" * 30: None,
    "-" * 3_000 + "qty": "too deeply",
    "-" * 60 + "qty": "too deeply",
    "log(" * 60 + "qty" + ")" * 60: "too deeply",
    "qty" + "*qty" * 4_000: "too large",
    "qty" + "+qty" * 600: "too large",
    "qty" + "/qty" * 30: "too large",
    "x" * 19_999: "no column",
    "x" * 20_001: "20,001 characters",
    "qty^region": "levels of a category can only be multiplied",
    "2^region": "levels of a category can only be multiplied",
    "qty^(1/0*?)": None,
    "region in (nort, south)": "no level 'nort'; did you mean north",
    "region in ()": "several .region in",
    "region in north": "not a list of terms",
    "region in (north, ?)": "a level is written",
    "qty in (abc, 2)": "holds numbers, not 'abc'",
    "nowhere in (1, 2)": "no column 'nowhere'",
    "qty*in in (1, in)": "a level is written",
    "weekday(day) in (Sat, Sunn)": "there is no weekday 'Sunn'; did you mean Sun",
    "weekday(day) = Sept": "there is no weekday 'Sept'; did you mean Sat|there are",
    "month(day) = 13": "one of Jan to Dec, or 1 to 12",
    "month(day) in (0, Jan)": "one of Jan to Dec, or 1 to 12",
    "weekday(qty) in (Sat)": "weekday takes a column of dates",
    "round(qty, in)": "what is rounded to must be a number",
    "round(qty, ?)": "what is rounded to must be a number",
    "round(qty, 0)": "cannot be rounded to 0",
    "round(qty, -1)": "cannot be rounded to -1",
    "round(qty, 1, 2)": "round takes a term",
    "round()": "round takes a term",
    "round(qty, 1, to=2)": "round takes a term",
    "round(qty, by=2)": "there is no by=, only to=",
    "ceiling(qty)": "did you mean ceil",
    "ceil(qty, 2)": "ceil takes 1 argument",
    "exp(region)": "levels of a category can only be multiplied",
    "? ?": "not a list of terms",
    "qty = ?": "a level is written",
    "lag(?)": "a column is expected",
    "(?<qty)": None,
    "9^9^9^9^9^9": "too large",
    "qty^(1/0)": "too large, or none",
    "1e999": "too large",
    "9" * 400: "too large",
    "9" * 9_000: "too large",
    "(qty = 1e999)": "too large",
    "(qty > 1e999)": "too large",
    "oof(qty)": "no function 'oof'; there are min, max",
    "mx(qty, 2)": "did you mean max",
    "quantity": "no column 'quantity'",
    "qtz": "did you mean qty",
    "(region = nowhere)": "no level 'nowhere'; there are north",
    "(region = nort)": "did you mean north",
    "(qty = abc)": "holds numbers, not 'abc'",
    "(qty = in)": "holds numbers, not 'in'",
    "(qty = Yes)": "holds numbers, not 'Yes': write 1 for yes or true, 0 for no or false",
    "(region > 3)": "holds text",
    "(qty > 2024-05-01)": "holds no dates",
    "(day > 2024-02-30)": "not a date such as",
    "(qty > 1 > 0)": "a comparison has a column",
    "(1 < 2)": "a comparison has a column",
    "qty = in = by": "holds numbers, not 'in'",
    "(3 = qty)": "a level is written",
    "region^2": "levels of a category can only be multiplied",
    "max(region, 2)": "levels of a category can only be multiplied",
    "lag(region)": "holds text",
    "lag(qty*in)": "not a list of terms",
    "lag('qty')": "a column is expected",
    "lag(qty, 2)": "takes one column",
    "lag(qty, by=3)": "a column is expected",
    "lag(qty, n=3)": "there is no n=, only by= and order=",
    "lag(qty, by=region, by=class)": "takes one column, by=column and order=column",
    "max(*qty, 2)": "not a list of terms",
    "min(qty)": "min takes 2 arguments or more",
    "log(qty, in)": "log takes 1 argument",
    "C(qty, in)": "C takes 1 argument",
    "month(qty)": "takes a column of dates",
    "C(log(0 * qty))": "no value in some rows",
    "'qty'": "only columns",
    "((qty, in), by)": "not a list of terms",
    ":".join(["region"] * 12): "more than 2,000 terms",
    ",".join(["region:class"] * 500): "more than 2,000 terms",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:30]))
def test_hostile_terms_are_one_line(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _one_line(lambda: parse_terms(text, COLUMNS), HOSTILE[text])


def _one_line(read: Any, match: str | None) -> None:
    start = time.process_time()
    if match is None:
        assert read()
    else:
        with pytest.raises(TermError, match=match) as caught:
            read()
        message = str(caught.value)
        assert message.isprintable()
        assert len(message) < 400
    assert time.process_time() - start < 3


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([*"qty in by -+*/^:<>=(),`'1.e9", "max(", "lag(", "C(", "region", "day", "2024-05-01", "é"])
    )
)
def test_any_text_is_terms_or_one_line(words: list[str]) -> None:
    assert _terms_or_line("".join(words))


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=string.printable + "é\0²５"))
def test_any_characters_are_terms_or_one_line(text: str) -> None:
    assert _terms_or_line(text)


def _terms_or_line(text: str) -> bool:
    try:
        return bool(parse_terms(text, COLUMNS))
    except TermError as error:
        return str(error).isprintable()


def test_as_many_terms_as_can_be_fitted_are_read() -> None:
    columns = Columns({f"c{j}": np.ones(2) for j in range(2_001)})
    names = list(columns.numbers)
    assert len(parse_terms(",".join(names[:-1]), columns)) == 2_000
    with pytest.raises(TermError, match="more than 2,000 terms"):
        parse_terms(",".join(names), columns)


# --- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "target", "terms", "constant"),
    [
        ("total ~ qty:in + qty:C(region)", "total", "qty*in, qty:region", True),
        ("total ~ qty*in - 1", "total", "qty, in, qty*in", False),
        ("total ~ 0 + (qty + in)^2", "total", "qty, in, qty*in", False),
        ("total ~ (qty + in + by)^2 - in:by", "total", "qty, in, by, qty*in, qty*by", True),
        ("total ~ qty/in + by + 0", "total", "qty, by, qty*in", False),
        ("total ~ qty:qty + (1 + in):by - by", "total", "qty, in*by", True),
        ("total ~ I(qty^2) + max(0, qty - 200)", "total", "qty^2, max(0, qty - 200)", True),
        ("total ~ I(day >= 2024-05-01):qty", "total", "(day >= 2024-05-01)*qty", True),
        ("total ~ I(region = north) + I(200 < qty)", "total", "(region = north), (qty > 200)", True),
        ("`the total~` ~ `unit price`:qty + lag(`unit price`, by=region)", "the total~", "`unit price`*qty, "
         "lag(`unit price`, by=region)", True),
    ],
)  # fmt: skip
def test_formulas_are_terms_in_other_words(text: str, target: str, terms: str, constant: bool) -> None:
    found = parse_formula(text, COLUMNS)
    assert (found[0], set(found[1]), found[2]) == (target, set(parse_terms(terms, COLUMNS)), constant)
    assert target_of(text) == target


EVERY = ["`" + name.replace("`", "``") + "`" for name in [*NAMES, *DATES, *TEXTS]]
HOSTILE_FORMULAS = {
    "qty*in": "has no ~",
    "": "has no ~",
    "~ qty": "needs one column on the left",
    "y ~": "not a formula such as",
    "y ~ 1": "no terms",
    "y + x ~ qty": "needs one column on the left",
    "y ~ qty ~ in": "has no meaning",
    "y ~ qty | in": "has no meaning",
    "y ~ .": "has no meaning",
    "y ~ [qty ~ in]": "has no meaning",
    "y ~ {__import__('os').system('true')}": "has no meaning",
    "y ~ exec('1')": "no function 'exec'",
    "y ~ qty.__class__": "has no meaning",
    "y ~ \0": "has no meaning",
    "y ~ quantity": "no column 'quantity'",
    "y ~ C(region, Treatment)": "no column 'Treatment'",
    "y ~ 2*qty": "not a formula such as",
    "y ~ qty + (kwh": "no column 'kwh'",
    "y ~ (qty + in": "not a formula such as",
    "y ~ qty^2^2": "not a formula such as",
    "y ~ qty > 3": "not a formula such as",
    "y ~ (qty + in + by)^99999999999": "not a formula such as",
    "y ~ (" + "+".join(EVERY) + ")^9": "more than 2,000 terms",
    "y ~ " + "*".join(EVERY): "more than 2,000 terms",
    "y ~ " + ":".join(["(qty + in + by + order)"] * 600): None,
    "y ~ " + "(" * 5_000: "too deeply",
    "y ~ " + "x" * 20_001: "characters",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE_FORMULAS, ids=lambda text: ascii(text[:30]))
def test_hostile_formulas_are_one_line(text: str) -> None:
    _one_line(lambda: parse_formula(text, COLUMNS), HOSTILE_FORMULAS[text])
