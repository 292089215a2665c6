from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from massart.recover import recover
from massart.rows import IDENTITY, RELU, ArrayRows, Link
from massart.rules import (
    Columns,
    Formula,
    Summand,
    TermMatrix,
    column,
    compose,
    level,
    parse_terms,
    pieces,
    product,
    quoted,
)

names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="`"), min_size=1, max_size=12)


def term(name: str, value: str | float, of: str | None = None, determined: bool = True) -> Summand:
    exact = Fraction(value) if isinstance(value, str) else None
    return Summand(
        column(name) if of is None else level(name, of),
        float(exact if exact is not None else value),
        exact,
        0.0,
        determined,
    )


HOURS, ITEMS, CONSTANT = term("hours", "3.5"), term("items", "12"), term("intercept", "-4.25")


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (
            Formula("total", (HOURS, ITEMS), CONSTANT, RELU, noisy=False),
            "total = 3.5 * hours + 12 * items - 4.25 (when positive, else 0)",
        ),
        (Formula("total", (term("hours", "-1"),), None, IDENTITY, noisy=False), "total = -hours"),
        (Formula("total", (term("hours", "1"),), term("intercept", "0"), IDENTITY, noisy=False), "total = hours"),
        (Formula("total", (term("hours", "0"),), None, IDENTITY, noisy=False), "total = 0"),
        (Formula("unit price", (term("x y", "1/3"),), None, IDENTITY, noisy=False), "`unit price` = 1/3 * `x y`"),
        (
            Formula("y", (term("region", "-0.5", "north east"),), None, IDENTITY, noisy=False),
            "y = -0.5 * (region = `north east`)",
        ),
        (Formula("y", (term("x", math.pi),), None, IDENTITY, noisy=False), "y = 3.141592654 * x"),
        (Formula("y", (term("x", math.pi),), None, IDENTITY, noisy=True), "y ≈ 3.1416 * x"),
        (
            Formula("y", (HOURS,), None, Link(0, 100), noisy=False),
            "y = 3.5 * hours (clipped to at least 0 and at most 100)",
        ),
        (
            Formula("y", (HOURS,), None, Link(slope=0.1), noisy=False),
            "y = 3.5 * hours (when at least 0, beyond that with slope 0.1)",
        ),
    ],
)
def test_formulas_read_as_people_write_them(formula: Formula, text: str) -> None:
    assert str(formula) == text


def test_long_formulas_are_cut_where_asked() -> None:
    formula = Formula("y", tuple(term(f"x{j}", "2") for j in range(50)), None, IDENTITY, noisy=False)
    assert formula.text(2) == "y = 2 * x0 + 2 * x1 + 48 more terms"
    assert formula.text(50) == formula.text()


@pytest.mark.slow
@given(st.fractions(max_denominator=10**6).filter(lambda f: abs(f) < 10**12))
def test_exact_numbers_are_written_exactly(value: Fraction) -> None:
    shown = str(Formula("y", (), Summand(None, float(value), value, 0.0, True), IDENTITY, noisy=False))
    assert Fraction(shown.removeprefix("y = ")) == value


@given(st.floats(-1e300, 1e300))
def test_other_numbers_are_rounded(value: float) -> None:
    shown = str(Formula("y", (), Summand(None, value, None, 0.0, True), IDENTITY, noisy=False))
    assert float(shown.removeprefix("y = ")) == pytest.approx(value, rel=1e-9)


@given(names)
def test_a_quoted_name_is_the_name(name: str) -> None:
    assert quoted(name).strip("`") == name
    assert quoted(name) == name or quoted(name).startswith("`")


@pytest.mark.slow
@given(st.lists(st.integers(-1000, 1000).map(lambda k: Fraction(k, 4)), min_size=2, max_size=2), st.booleans())
def test_the_text_says_what_is_computed(values: list[Fraction], clipped: bool) -> None:
    terms = tuple(Summand(column(f"x{j}"), float(v), v, 0.0, True) for j, v in enumerate(values))
    formula = Formula("y", terms, term("intercept", "0.5"), RELU if clipped else IDENTITY, noisy=False)
    X = np.random.default_rng(0).integers(-9, 9, (20, 2)).astype(float)
    expression = formula.text().split(" = ")[1].split(" (when")[0]
    direct = [eval(expression, {"x0": a, "x1": b}) for a, b in X]
    np.testing.assert_allclose(formula.predict(X), np.maximum(direct, 0) if clipped else direct)


def test_composed_formulas_name_what_the_rows_leave_open() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (200, 3)).astype(float)
    X[:, 2] = X[:, 0]  # the two always move together
    y = X @ [1.0, 2.0, 3.0] + 5
    y[::4] = 99
    found = recover(ArrayRows(X, y, intercept=True), rng=rng)
    # Names are only shown: one that reads as the constant, or as the level of a category, is that of its own column.
    for called in ("a again", "intercept", "the intercept", "b = 1"):
        columns = [column("a"), column("b"), column(called)]
        answer = found.coef[:, 0], found.fractions[0], found.standard_errors[:, 0], found.certificates[0]
        formula = compose("y", columns, *answer, IDENTITY)
        assert [t.determined for t in formula.all_terms] == [False, True, False, True]
        assert formula.intercept is not None
        assert (formula.intercept.coef, formula.coef[-1]) == (5, 5)
        assert formula.names == ("a", "b", called)
        np.testing.assert_allclose(formula.predict(X)[1:4], y[1:4])


def test_terms_without_effect_are_not_written() -> None:
    assert "clerk" not in str(Formula("y", (HOURS, term("clerk", "0")), None, IDENTITY, noisy=False))


@given(st.text(alphabet="`+-* ab"))
def test_the_pieces_of_a_formula_make_the_formula(text: str) -> None:
    assert " ".join(pieces(text)) == text


def test_a_formula_breaks_before_each_sign() -> None:
    assert pieces("y = 2 * `a + b` - 3 * c + 1") == ["y = 2 * `a + b`", "- 3 * c", "+ 1"]


FACTORS = ["qty", "price", "discount", "vat"]


@pytest.mark.slow
@given(st.lists(st.sampled_from(FACTORS), min_size=1, max_size=4, unique=True), st.data())
def test_factors_that_are_taken_out_leave_the_formula_as_it_is(names: list[str], data: st.DataObject) -> None:
    def summand(factors: tuple[str, ...], value: Fraction) -> Summand:
        return Summand(product(*map(column, factors)), float(value), value, 0.0, True)

    first, *others = names
    terms = {(first,): Fraction(data.draw(st.integers(1, 9)))}
    for other in others:  # (1 + ratio * other) on all that is there
        ratio = data.draw(st.sampled_from([Fraction(1), Fraction(-1), Fraction(-1, 100), Fraction(1, 3)]))
        terms |= {(*factors, other): ratio * value for factors, value in terms.items()}
    formula = Formula("y", tuple(summand(*pair) for pair in terms.items()), None, IDENTITY, noisy=False)
    rng = np.random.default_rng(0)
    columns = Columns({name: rng.uniform(1, 9, 5) for name in FACTORS})
    (read,) = parse_terms(str(formula).removeprefix("y = "), columns)
    np.testing.assert_allclose(
        read.evaluate(columns), formula.predict(TermMatrix(columns, [s.term for s in formula.terms]))
    )


def test_formulas_say_what_their_author_said() -> None:
    """Factors of conditions, percentages, amounts by level, and labels that are rounded down."""
    age, zone = [level("age", "young")], [level("zone", name) for name in "BC"]
    rates = {(column("km"),): "2.5", (column("km"), *age): "0.75", (): "12", (*age,): "3.6"}
    discount = {(column("price"),): "1", (column("price"), column("pct")): "-0.01"}
    cases = {
        "y = (2.5 * km + 12) * (1 + 0.3 * (age = young))": (rates, {}),
        "y = price * (1 - pct / 100)": (discount, {}),
        "y = 12 * (zone = A) + 16 * (zone = B) + 9.5 * (zone = C)": (
            {(zone[0],): "4", (zone[1],): "-2.5", (): "12"},
            {"bases": (("zone", "A"),)},
        ),
        "y = 1.07 * net (rounded down to 0.01)": ({(column("net"),): "1.07", (): "-0.005"}, {"cut": Fraction(1, 100)}),
    }
    for text, (terms, more) in cases.items():
        made = [
            Summand(product(*key) if key else None, float(value), Fraction(value), 0.0, True)
            for key, value in terms.items()
        ]
        constant = next((one for one in made if one.term is None), None)
        inputs = tuple(one for one in made if one.term is not None)
        assert str(Formula("y", inputs, constant, IDENTITY, noisy=False, **more)) == text


def test_a_discount_is_written_as_people_write_it() -> None:
    pay = (column("qty"), column("price"))
    terms = (
        Summand(product(*pay), 1.0, Fraction(1), 0.0, True),
        Summand(product(*pay, column("discount")), -1.0, Fraction(-1), 0.0, True),
        term("weight", "0.35"),
    )
    formula = Formula("amount", terms, Summand(None, 12.0, Fraction(12), 0.0, True), IDENTITY, noisy=False)
    assert str(formula) == "amount = qty * price * (1 - discount) + 0.35 * weight + 12"
