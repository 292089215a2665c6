"""Laws of agreement: what a printed number stands for, one answer however rows are cut, and floats read as decimals."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array

from massart.rows import (
    ACTIVE,
    AGREES,
    DECISIVE,
    IDENTITY,
    IMPOSSIBLE,
    KINDS,
    LAST_PLACE,
    LONG,
    RELU,
    Agreement,
    ArrayRows,
    Block,
    Columnwise,
    Level,
    Link,
    Mark,
    compensated_products,
    count_decimals,
    doubt_of,
    levels,
    speaks,
    tally_of,
    verify,
)

EPS, SINGLE = float(np.finfo(float).eps), float(np.finfo(np.float32).eps)
EXACTLY = ["exactly", "exactly"]  # computed in few steps, and in many: labels on no grid
seeds = st.integers(0, 2**32 - 1)


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-50, 50, (n, 3)), np.array([0.4217, -1.93, 7.0])


def words(X, y, tolerance="auto", **precisions):
    return [str(level) for level in levels(tolerance, X, y, **precisions)]


def at_every_edge(n, d, seed, agreement):
    """Return rows with labels about as far from a formula as agreement reaches: to the last bits, and a bit more."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, (n, d)), rng.standard_normal(d)
    products = X @ w
    edge = agreement.half_widths(np.abs(X) @ np.abs(w) + np.abs(products), w)
    share = rng.choice([0.0, 1 - 1e-3, 1 - 1e-9, 1.0, 1 + 1e-9, 1 + 1e-3], n)
    return X, products + rng.choice([-1, 1], n) * share * edge, w


def exact_product(x, w):
    return sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, w, strict=True))


def exact_residual(x, y, w):
    return abs(Fraction(float(y)) - exact_product(x, w))


@pytest.mark.slow
@given(st.integers(-(10**14), 10**14), st.integers(0, 22))
def test_decimals_are_those_of_the_shortest_decimal(numerator, places):
    value = float(Fraction(numerator, 10**places))
    printed = Decimal(repr(value)).normalize().as_tuple().exponent
    assert count_decimals(np.array([value]))[0] == (max(0, -printed) if -printed <= 22 else LONG)


@pytest.mark.slow
@given(st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_decimals_of_float32_are_read_at_its_own_precision(numerator, places):
    value = np.float32(numerator / 10**places)
    printed = Decimal(str(value)).normalize().as_tuple().exponent
    assert count_decimals(np.array([value], dtype=float), SINGLE)[0] == max(0, -printed)


def test_decimals_of_hard_cases():
    values = np.array([0.0, -0.0, 1e15, 1e300, -5.0, 0.1 + 0.2, 1 / 3, 1e-7, 1e-30, 1e15 + 0.125, 123456789012.34])
    assert count_decimals(values).tolist() == [0, 0, 0, 0, 0, LONG, LONG, 7, LONG, LONG, 2]
    assert count_decimals(np.array([1e-22, 3e-22, 1e-23])).tolist() == [22, 22, LONG]


# Levels


@pytest.mark.parametrize("kind", [float, int])
def test_numbers_that_were_computed_agree_exactly(kind):
    X, w = table()
    X = X.astype(kind)
    y = X @ w
    exact = levels("auto", X, y)[0]
    assert exact.level is Level.EXACT
    assert exact.agree(X, y, w).all()
    assert not exact.agree(X, y + 1e-14 * (np.abs(X) @ np.abs(w) + np.abs(y)), w).any()


def test_exact_has_two_levels_and_the_second_is_for_labels_of_many_steps():
    X, w = table()
    y = X @ w
    short, long = levels("auto", X, y)
    assert short.level is long.level is Level.EXACT
    size = np.abs(X) @ np.abs(w) + np.abs(y)
    in_many_steps = y + 100 * EPS * size
    assert not short.agree(X, in_many_steps, w).any()
    assert long.agree(X, in_many_steps, w).all()
    assert not long.agree(X, y + 1e-13 * size, w).any()
    on_a_grid = levels("auto", X, np.round(y, 2))
    assert sum(level.level is Level.EXACT for level in on_a_grid) == 1


def test_float32_has_a_level_of_its_own():
    X, w = table()
    X32 = X.astype(np.float32)
    y32 = X32 @ w.astype(np.float32)
    assert words(X, X @ w) == EXACTLY
    assert words(X32, y32) == [*EXACTLY, "within rounding of float32"]
    assert words(X, X @ w, X_precision=SINGLE) == [*EXACTLY, "within rounding of float32"]
    assert words(X32.astype(float), y32.astype(float)) == [*EXACTLY, "within rounding of float32"]  # from a Stata file
    _, tight, coarse = levels("auto", X32, y32)
    assert not tight.agree(X32.astype(float), y32.astype(float), w).all()
    assert coarse.agree(X32.astype(float), y32.astype(float), w).all()


def test_float32_is_recognised_amid_wrong_labels_of_another_origin():
    X, w = table()
    y = (X @ w).astype(np.float32).astype(float)
    y[:90] *= 1.1
    assert "within rounding of float32" in words(X, y)
    y[:110] *= 1.1
    assert "within rounding of float32" not in words(X, y)


@pytest.mark.parametrize(
    ("places", "name"),
    [
        (4, "4 decimals"),
        (2, "cents"),
        (1, "1 decimal"),
        (0, "whole numbers"),
        (-1, "tens"),
        (-2, "hundreds"),
        (-3, "thousands"),
        (-4, "multiples of 10,000"),
        (-6, "millions"),
    ],
)
def test_rounded_labels_agree_within_half_a_unit(places, name):
    X, w = table()
    X = X * 10.0 ** max(0, 1 - places)
    y = np.round(X @ w, places)
    found = levels("auto", X, y)
    exact, label = found[0], next(level for level in found if level.level is Level.LABEL)
    assert str(label) == f"within rounding to {name}"
    assert label.places == places
    assert label.label == pytest.approx(0.5 * 10.0**-places)
    assert label.tight == exact.tight == (1 + 3 / 2) * EPS  # columns that are no decimals
    assert label.agree(X, y, w).all()
    assert exact.agree(X, y, w).mean() < 0.1
    assert not label.agree(X, y + 1.01 * 10.0**-places, w).any()


def test_rounded_columns_are_the_last_level():
    rng = np.random.default_rng(0)
    parts = rng.uniform(0, 1000, (300, 2))
    X = np.column_stack([np.round(parts, 1), np.ones(300)])
    y = np.round(parts.sum(axis=1), 1)
    assert words(X, y) == [
        "exactly",
        "within rounding to 1 decimal",
        "within rounding to 1 decimal, and that of the columns",
    ]
    X[:3, 0] = 0.0  # which zeros do not hide
    *_, label, inputs = levels("auto", X, y)
    assert inputs.inputs == (0.05, 0.05, 0.0)  # a constant is not rounded
    w = np.array([1.0, 1.0, 0.0])
    assert 0 < (~label.agree(X, y, w)).sum()
    assert inputs.agree(X[3:], y[3:], w).all()
    assert not inputs.agree(X, y + 0.31, w).any()


def test_wrong_labels_with_more_decimals_hide_no_rounding():
    X, w = table()
    y = np.round(X @ w, 2)
    y[:80] *= 1.0937
    assert [level.label for level in levels("auto", X, y)] == [0.0, 0.005]
    y[:80] = np.round(y[:80], 4)
    assert [level.label for level in levels("auto", X, y)] == [0.0, 0.00005, 0.005]
    y[:80] = np.round(y[:80])  # nor do those with fewer stand for the others
    assert [level.label for level in levels("auto", X, y)] == [0.0, 0.005]


@pytest.mark.parametrize("y", [np.zeros(40), np.ones(40), np.tile([0.0, 1.0], 20), np.full(40, 19.99)])
def test_labels_that_rounding_would_explain_away_are_not_taken_for_rounded(y):
    assert set(words(np.ones((40, 1)), y)) == {"exactly"}


def test_zeros_do_not_count_as_whole_numbers():
    X, w = table()
    y = np.round(X @ w, 2)
    y[:150] = 0
    assert [level.label for level in levels("auto", X, y)] == [0.0, 0.005]


def test_a_given_tolerance_is_the_only_level():
    (given_one,) = levels(0.005, [[1.0], [2.0]], [1.0, 2.0])
    assert given_one.level is Level.GIVEN
    # 2.675 prints above a tie, its float lies below: half a unit must survive float rounding
    assert given_one.agree(np.array([[2.675]]), np.array([2.68]), np.ones(1)).all()
    assert not given_one.agree(np.array([[2.674]]), np.array([2.68]), np.ones(1)).any()
    assert words([[1.0]], [1.0], 0) == ["exactly"]
    assert levels(np.float32(0.5), [[1.0]], [1.0])[0].label == 0.5


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), "tight", "", None, True, [0.1]])
def test_bad_tolerances_are_named(bad):
    with pytest.raises(ValueError, match="tolerance must be"):
        levels(bad, [[1.0], [2.0]], [1.0, 2.0])


@given(seeds, st.sampled_from([np.float64, np.float32]), st.integers(-3, 4), st.integers(0, 6), st.integers(1, 6))
def test_levels_are_nested(seed, kind, places, exponent, d):
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(-1, 1, (80, d)) * 10.0**exponent, max(places, 0)).astype(kind)
    w = np.round(rng.uniform(-3, 3, d), 2)
    y = np.round(X @ w, places).astype(kind)
    found = levels("auto", X, y)
    size = np.concatenate([[0.0], 10.0 ** rng.uniform(-6, 14, 50)])
    for tight, loose in pairwise(found):
        assert (tight.half_widths(size, w) <= loose.half_widths(size, w)).all()


def test_levels_follow_the_units():
    X, w = table()
    y = np.round(X @ w, 2)
    for level in levels("auto", X, y):
        scaled = level.scaled(1024.0)
        np.testing.assert_array_equal(scaled.agree(X, y / 1024, w / 1024), level.agree(X, y, w))
        sizes = 10.0 ** np.arange(14)  # of which the larger ones are capped by the unit
        np.testing.assert_allclose(scaled.half_widths(sizes / 1024, w / 1024), level.half_widths(sizes, w) / 1024)


# Agreement


AGREEMENTS = [
    Agreement(Level.EXACT, relative=20 * EPS),
    Agreement(Level.EXACT, relative=20 * EPS, unit=0.01),
    Agreement(Level.EXACT, relative=4 * SINGLE, precision=SINGLE),
    Agreement(Level.LABEL, label=0.005, relative=20 * EPS, unit=0.01),
    Agreement(Level.GIVEN, label=1e-9, relative=20 * EPS),
]
agreements = st.sampled_from(AGREEMENTS)
LINKS = {
    "identity": IDENTITY,
    "relu": RELU,
    "leaky": Link(slope=0.25),
    "clipped": Link(-1.0, 50.0),
    "steep": Link(slope=3.0),
}


@pytest.mark.slow
@given(seeds, agreements, st.integers(1, 9), st.sampled_from(sorted(LINKS)))
def test_neither_blocks_nor_storage_nor_order_change_the_answer(seed, agreement, d, name):
    X, y, w = at_every_edge(60, d, seed, agreement)
    link = LINKS[name]
    y = link(y) if name in ("relu", "clipped") else y
    X[np.random.default_rng(seed).random(X.shape) < 0.2] = 0.0
    whole = verify(X, y, w, agreement, link).agree
    cuts = np.sort(np.random.default_rng(seed).integers(0, 61, 4))
    parts = [
        verify(part, labels, w, agreement, link).agree
        for part, labels in zip(np.split(X, cuts), np.split(y, cuts), strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    alone = [verify(X[i : i + 1], y[i : i + 1], w, agreement, link).agree[0] for i in range(60)]
    np.testing.assert_array_equal(alone, whole)
    for stored in (np.asfortranarray(X), csr_array(X), csc_array(X)):
        np.testing.assert_array_equal(verify(stored, y, w, agreement, link).agree, whole)
    order = np.random.default_rng(seed).permutation(60)
    np.testing.assert_array_equal(verify(X[order], y[order], w, agreement, link).agree, whole[order])
    columns = np.random.default_rng(seed).permutation(d)
    np.testing.assert_array_equal(verify(X[:, columns], y, w[columns], agreement, link).agree, whole)


@given(seeds, agreements, st.integers(1, 9), st.booleans())
def test_marks_of_columns_that_lie_apart_are_those_of_a_matrix(seed, agreement, d, intercept):
    X, y, w = at_every_edge(60, d, seed, agreement)
    mark = Mark(np.append(w, 0.75) if intercept else w, agreement, IDENTITY)
    y = y + 0.75 if intercept else y
    columns = [X[:, j].copy() for j in range(d)]
    found = ArrayRows(Columnwise(columns), y, intercept=intercept).map(mark).to_numpy()
    np.testing.assert_array_equal(found, ArrayRows(X, y, intercept=intercept).map(mark).to_numpy())
    columns[0][seed % 60] = [np.nan, np.inf, -np.inf][seed % 3]
    with pytest.raises(FloatingPointError):
        ArrayRows(Columnwise(columns), y, intercept=intercept).map(mark)


@pytest.mark.slow
@given(seeds, st.integers(1, 9))
def test_agreement_is_that_of_exact_arithmetic(seed, d):
    agreement = Agreement(Level.EXACT, relative=20 * EPS)
    X, y, w = at_every_edge(40, d, seed, agreement)
    found = verify(X, y, w, agreement)
    judged = 0
    for i in range(40):
        residual = exact_residual(X[i], y[i], w)
        edge = Fraction(float(found.half_widths[i]))
        if abs(residual - edge) > edge / 10**12:
            assert found.agree[i] == (residual < edge)
            judged += 1
    assert judged >= 20
    assert 0 < found.agree.sum() < 40 or d == 1


@given(seeds, st.integers(-60, 60))
def test_powers_of_two_change_nothing_where_labels_are_not_rounded(seed, power):
    agreement = Agreement(Level.EXACT, relative=20 * EPS)
    X, y, w = at_every_edge(60, 4, seed, agreement)
    scales = np.exp2(np.random.default_rng(seed).integers(-40, 41, 60))
    whole = agreement.agree(X, y, w)
    np.testing.assert_array_equal(agreement.agree(X * scales[:, None], y * scales, w), whole)
    np.testing.assert_array_equal(agreement.agree(X * 2.0**power, y, w * 2.0**-power), whole)


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e150])
def test_agreement_does_not_depend_on_units(scale):
    X, w = table()
    tight = levels("auto", X * scale, X @ w)[0]
    assert tight.agree(X * scale, X @ w, w / scale).all()
    assert not tight.agree(X * scale, X @ w + 1e-14 * (2 * np.abs(X) @ np.abs(w)), w / scale).any()


@pytest.mark.parametrize("amount", [1e9, 1e11, 1e12, 1.5e13])
def test_a_wrong_cent_shows_in_large_amounts_and_no_right_row_is_accused(amount):
    rng = np.random.default_rng(0)
    n = 400
    net, fee = np.round(rng.uniform(0.1, 0.4, (2, n)) * amount, 2)
    X = np.column_stack([net, fee, rng.integers(0, 9, n)])
    w = (Fraction(1), Fraction(1), Fraction("2.5"))
    y = np.array([float(sum(Fraction(repr(float(x))) * v for x, v in zip(row, w, strict=True))) for row in X])
    wrong = rng.random(n) < 0.4
    y[wrong] = np.round(y[wrong] + rng.choice([-0.03, -0.02, -0.01, 0.01, 0.02, 0.03], wrong.sum()), 2)
    exact = levels("auto", X, y)[0]
    np.testing.assert_array_equal(exact.agree(X, y, np.array([1.0, 1.0, 2.5])), ~wrong)


def test_labels_clipped_agree_beyond_the_limit_and_only_there():
    X = np.array([[-3.0], [-3.0], [2.0], [2.0], [70.0]])
    y = np.array([0.0, -0.5, 2.0, 0.0, 50.0])
    found = verify(X, y, np.ones(1), levels(0, X, y)[0], Link(0.0, 50.0))
    assert found.agree.tolist() == [True, False, True, False, True]
    np.testing.assert_array_equal(found.products, X[:, 0])


finite = st.floats(-1e100, 1e100, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-100)


@pytest.mark.slow
@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=8))
def test_compensated_products_are_as_good_as_twice_the_precision(pairs):
    x, w = (np.array(column) for column in zip(*pairs, strict=True))
    high, low = compensated_products(x[None], w)
    exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
    size = sum((abs(Fraction(a) * Fraction(b)) for a, b in pairs), Fraction(0))
    error = abs(Fraction(float(high[0])) + Fraction(float(low[0])) - exact)
    assert error <= Fraction(EPS) ** 2 * len(pairs) ** 2 * size
    assert float(high[0]) == float(high[0] + low[0])  # the first is the rounded sum


@given(st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=6), seeds)
def test_compensated_products_survive_cancellation(numbers, seed):
    assume(any(numbers))
    rng = np.random.default_rng(seed)
    large = 2.0 ** rng.integers(60, 90)
    x = np.array([large, *map(float, numbers), -large])
    high, low = compensated_products(x[None], np.ones(len(x)))
    assert high[0] + low[0] == sum(numbers)


@pytest.mark.parametrize("slope", [4.0, 64.0])
def test_beyond_a_limit_of_a_steep_link_agreement_is_that_of_exact_arithmetic(slope):
    """There what rounding leaves of a product is so many times larger, and rows near the edge are computed again."""
    rng = np.random.default_rng(0)
    X, w = rng.uniform(-2, -1, (300, 3)), np.array([1.1, 2.3, 0.7])
    agreement = Agreement(Level.EXACT, relative=8 * EPS)
    products = X @ w
    edge = slope * agreement.half_widths(np.abs(products) * (1 + slope))
    y = slope * products + edge * rng.uniform(0.98, 1.02, 300)
    found = verify(X, y, w, agreement, Link(slope=slope))
    exact = [abs(Fraction(float(v)) - Fraction(slope) * exact_product(x, w)) for x, v in zip(X, y, strict=True)]
    right = [r <= Fraction(float(t)) for r, t in zip(exact, found.half_widths, strict=True)]
    np.testing.assert_array_equal(found.agree, right)
    assert 0.2 < np.mean(right) < 0.8


def test_columns_that_are_not_all_decimals_leave_room_for_what_their_products_lose():
    X, w = table()
    X[:, :2] = np.round(X[:, :2])
    for decimals, tight in [(None, (1 + 3 / 2) * EPS), (1, EPS)]:
        rows = X if decimals is None else np.round(X, decimals)
        assert levels("auto", rows, np.round(rows @ w, 2))[0].tight == tight


# Marks


@pytest.mark.parametrize("kind", range(KINDS))
def test_rows_speak_that_are_active_and_possible_and_no_limit_that_agrees(kind):
    agrees, active, decisive, impossible = (bool(kind & mark) for mark in (AGREES, ACTIVE, DECISIVE, IMPOSSIBLE))
    expected = active and not impossible and (decisive or not agrees)
    assert speaks(np.array([kind]))[0] == expected


@pytest.mark.slow
@given(seeds, agreements, st.integers(1, 9), st.sampled_from(sorted(LINKS)))
def test_marks_are_what_the_definitions_say_of_each_row(seed, agreement, d, name):
    X, y, w = at_every_edge(80, d, seed, agreement)
    link, rng = LINKS[name], np.random.default_rng(seed)
    y = link(y) if rng.random() < 0.5 else y
    y[:8] = link(X[:8] @ w) + rng.choice([-1, 1], 8) * (agreement.unit or 1.0)
    y[8:12] = [link.lower, link.upper, link.lower - 1e-3, link.upper + 1e-3]
    y[~np.isfinite(y)] = 0.0
    found = verify(X, y, w, agreement, link)
    for marks in (
        Mark(w, agreement, link)(Block(X, y[:, None], None, False)),
        np.concatenate(
            [Mark(w, agreement, link)(Block(X[i : i + 7], y[i : i + 7, None], None, False)) for i in range(0, 80, 7)]
        ),
    ):
        np.testing.assert_array_equal(marks & AGREES > 0, found.agree)
        for i in range(80):
            slack, product = found.half_widths[i], found.products[i]
            assert bool(marks[i] & ACTIVE) == (link.invertible or link.lower < product < link.upper)
            assert bool(marks[i] & DECISIVE) == (link.invertible or link.lower + slack < y[i] < link.upper - slack)
            beyond = y[i] < link.lower - slack or y[i] > link.upper + slack
            assert bool(marks[i] & IMPOSSIBLE) == (beyond and not link.invertible)
            near = agreement.unit is not None and abs(found.residuals[i]) <= agreement.unit + slack
            assert bool(marks[i] & LAST_PLACE) == (near and not found.agree[i])


@pytest.mark.parametrize("size", [1e3, 1e11, 1e12, 1e13])
@pytest.mark.parametrize("agreement", AGREEMENTS, ids=str)
def test_terms_that_cancel_are_marked_by_what_they_are(agreement, size):
    """A sum of terms of 1e13 is off by some cents, whatever is left of it: such rows are looked at closely."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1, 2, 500) * size, np.zeros(500), rng.uniform(-1, 1, 500)])
    X[:, 1] = X[:, 0] + rng.uniform(-1, 1, 500)
    w = np.array([1.1, -1.1, 3.7])
    exact = np.array(
        [float(sum(Fraction(a) * Fraction(b) for a, b in zip(row, w.tolist(), strict=True))) for row in X.tolist()]
    )
    widths = agreement.half_widths(np.abs(X) @ np.abs(w) + np.abs(exact), w)
    y = exact + rng.uniform(-2, 2, 500) * widths
    found = verify(X, y, w, agreement)
    assert 0.2 < found.agree.mean() < 0.8
    marks = Mark(w, agreement, IDENTITY)(Block(X, y[:, None], None, False))
    np.testing.assert_array_equal(marks & AGREES > 0, found.agree)
    if agreement.unit is not None:
        y = exact + rng.choice([-1, 1], 500) * (agreement.unit + rng.uniform(-2, 2, 500) * widths)
        found = verify(X, y, w, agreement)
        marks = Mark(w, agreement, IDENTITY)(Block(X, y[:, None], None, False))
        off = ~found.agree & (np.abs(found.residuals) <= agreement.unit + found.half_widths)
        np.testing.assert_array_equal(marks & LAST_PLACE > 0, off)
        assert off.any()


class ShakenBlock(Block):
    """Rows whose products are off by more than the order of a sum makes them."""

    off = 0.0

    def times(self, W):
        return super().times(W) + np.reshape(self.off, (-1, 1))


@pytest.mark.parametrize("size", [1e3, 1e11, 3e12])
@pytest.mark.parametrize("slope", [1.0, 5.0])
@pytest.mark.parametrize("agreement", AGREEMENTS, ids=str)
def test_which_rows_agree_does_not_depend_on_how_products_were_rounded(agreement, slope, size):
    rng = np.random.default_rng(0)
    X, w = rng.uniform(1, 2, (200, 2)) * -size, np.array([1.0, 0.25])
    link = IDENTITY if slope == 1 else Link(slope=slope)
    exact = link(X @ w)
    sizes = np.abs(X) @ np.abs(w) + np.abs(exact)
    y = exact + rng.uniform(-1.5, 1.5, 200) * slope * agreement.half_widths(sizes, w)
    agree = verify(X, y, w, agreement, link).agree
    for towards in (-1, 1):
        block = ShakenBlock(X, y[:, None], None, False)
        object.__setattr__(block, "off", 0.6 * towards * np.sign(y - exact) * doubt_of(w) * sizes)
        np.testing.assert_array_equal(Mark(w, agreement, link)(block) & AGREES > 0, agree)


@pytest.mark.parametrize("limit", ["lower", "upper"])
@pytest.mark.parametrize("size", [1e3, 1e9])
def test_labels_at_a_limit_are_marked_by_what_their_terms_allow(size, limit):
    """Terms that cancel leave room for rounding that neither the product nor the label shows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1, 2, 300) * size, np.zeros(300)])
    X[:, 1] = X[:, 0] + rng.uniform(-1, 1, 300)
    w, agreement = np.array([1.0, -1.0]), Agreement(Level.EXACT, relative=20 * EPS)
    link = Link(0.0, np.inf) if limit == "lower" else Link(-np.inf, 0.0)
    widths = agreement.half_widths(np.abs(X) @ np.abs(w))
    y = rng.choice([-1.01, -0.99, 0.99, 1.01], 300) * widths
    marks = Mark(w, agreement, link)(Block(X, y[:, None], None, False))
    inward = 1 if limit == "lower" else -1
    np.testing.assert_array_equal(marks & DECISIVE > 0, inward * y > widths)
    np.testing.assert_array_equal(marks & IMPOSSIBLE > 0, -inward * y > widths)


@pytest.mark.parametrize(
    ("level", "unit", "expected"),
    [
        (Level.EXACT, 0.1, 0.1),
        (Level.EXACT, 1.0, None),  # counts: off by one is no rounding
        (Level.EXACT, None, None),
        (Level.LABEL, 10.0, 10.0),
        (Level.INPUTS, 1.0, 1.0),
        (Level.GIVEN, 0.1, None),
    ],
)
def test_a_row_may_be_off_by_a_unit_that_rounding_is_about(level, unit, expected):
    assert Mark(np.ones(1), Agreement(level, unit=unit), IDENTITY).unit == expected


def test_numbers_near_the_end_of_floats_are_refused_or_judged_without_a_warning():
    X, y = np.array([[1.0], [2e10]]), np.array([3.0, 1e300])
    rows = Block(X, y[:, None], None, False)
    exactly = Agreement(Level.EXACT, relative=1e-15)
    for coef, link in [(1e300, IDENTITY), (1.7e308, IDENTITY), (3.0, Link(slope=1e300))]:
        mark = Mark(np.array([coef]), exactly, link)
        with pytest.raises(FloatingPointError, match="not finite"):
            mark(rows)
    # A slope times a tolerance that overflows allows every label.
    wide = Agreement(Level.GIVEN, label=1e300)
    assert (Mark(np.array([3.0]), wide, Link(slope=1e20))(rows) & AGREES > 0).all()


# Edges of what is read and allowed


@pytest.mark.parametrize("size", [1e6, 1e15])
@pytest.mark.parametrize("d", [2, 3, 8])
def test_labels_on_a_grid_follow_differences_of_numbers_that_are_on_none(d, size):
    rng = np.random.default_rng(d)
    X = rng.uniform(0.1, 0.2, (200, d)) * size
    X[:, 2:] /= size
    y = np.round(rng.uniform(0, 100, 200), 2)
    X[:, 0] = y + X[:, 1]
    w = np.zeros(d)
    w[:2] = 1, -1
    exact = levels("auto", X, y)[0]
    assert exact.unit == 0.01
    assert exact.agree(X, y, w).all()
    off = y + rng.choice([-0.01, 0.01], 200)
    assert not exact.agree(X, off, w).any() or size > 0.01 / EPS


@pytest.mark.parametrize("d", [1, 4, 10, 30])
def test_sums_in_float32_agree_and_twice_their_error_does_not(d):
    rng = np.random.default_rng(d)
    X = rng.uniform(1, 2, (300, d)).astype(np.float32)
    w = rng.uniform(1, 2, d)
    level = levels("auto", X, (X @ w).astype(np.float32))[-1]
    size = X.astype(float) @ w * 2
    assert level.precision == SINGLE
    assert level.agree(X.astype(float), X.astype(float) @ w + d / 2 * SINGLE * size, w).all()
    assert not level.agree(X.astype(float), X.astype(float) @ w + (d + 3) * SINGLE * size, w).any()


@pytest.mark.parametrize(
    ("n", "units", "plausible"), [(200, 30, True), (200, 12, False), (20, 200, True), (19, 200, False)]
)
def test_labels_may_be_rounded_if_there_are_some_rows_and_they_span_some_units(n, units, plausible):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (n, 2))
    X[0], X[1] = 0.0, 1.0
    y = np.round(X[:, 0] * 2 * units + 500)  # half of them lie within so many units
    assert any(level.level is Level.LABEL for level in levels("auto", X, y)) == plausible


@pytest.mark.parametrize("weighted", [False, True])
def test_a_tally_of_other_arrays_is_that_of_numpy(weighted):
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed: massart[gpu]")
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed: massart[dev]")
    rng = np.random.default_rng(0)
    marks, weights = rng.integers(0, KINDS, 400).astype(np.uint8), rng.random(400) if weighted else None
    found = tally_of(xp.asarray(marks), None if weights is None else xp.asarray(weights))
    np.testing.assert_allclose(found, tally_of(marks, weights), rtol=1e-14)
    assert found.sum() == pytest.approx(400 if weights is None else weights.sum())


@pytest.mark.parametrize("d", [1, 2, 7])
def test_what_arithmetic_explains_is_what_the_definitions_say(d):
    """a(s) is (6 + d) epsilons of the size, 256 + d in many steps; of float32 two of its own and a half a column."""
    rng = np.random.default_rng(0)
    X, size = rng.standard_normal((40, d)), 2.0 ** np.arange(-30, 60)
    short, long = levels("auto", X, X @ rng.standard_normal(d))
    np.testing.assert_array_equal(short.half_widths(size), (6 + d) * EPS * size)
    np.testing.assert_array_equal(long.half_widths(size), (256 + d) * EPS * size)
    single = levels("auto", X.astype(np.float32), (X @ rng.standard_normal(d)).astype(np.float32))[-1]
    np.testing.assert_array_equal(single.half_widths(size), (2 + d / 2) * SINGLE * size)


def test_on_a_grid_a_quarter_of_a_unit_is_enough_or_an_epsilon_where_that_is_more():
    size = 2.0 ** np.arange(-30, 60, 0.25)
    capped = Agreement(Level.EXACT, relative=9 * EPS, unit=0.5)
    expected = [min(9 * EPS * s, max(EPS * s, 0.125)) for s in size]
    np.testing.assert_array_equal(capped.half_widths(size), expected)
    np.testing.assert_array_equal(capped.uncapped.half_widths(size), 9 * EPS * size)
    for s, t in zip(size, expected, strict=True):
        assert capped.scales_up_to(s) == (t == 9 * EPS * s)
        assert capped.uncapped.scales_up_to(s)
    assert Agreement(Level.EXACT, relative=9 * EPS).scales_up_to(1e300)
    # Half a unit is a bit wider for labels that were rounded, and is what it is where it was given.
    for level, edge in [(Level.LABEL, 1e-6), (Level.INPUTS, 1e-6), (Level.GIVEN, 0.0)]:
        columns = (0.25,) if level is Level.INPUTS else ()
        width = Agreement(level, 0.5, columns).half_widths(np.zeros(1), np.array([-2.0]))[0]
        assert width == (1.0 if columns else 0.5) * (1 + edge)


def test_large_labels_are_whole_numbers_whatever_they_were_computed_from():
    rng = np.random.default_rng(0)
    X, w = rng.uniform(1, 2, (2000, 60)), rng.uniform(1, 2, 60) * 1e16
    y = np.zeros(2000)
    for j in range(60):
        y += X[:, j] * w[j]
    exact, *others = levels("auto", X, y)
    assert exact.unit is not None
    assert exact.agree(X, y, w).all()
    assert not (np.abs(y - X @ w) <= EPS * 2 * y).all()
    assert not others  # rounding to a grid would be what floats lose anyway


def test_digits_that_a_type_does_not_hold_are_not_read_into_its_numbers():
    half = float(np.finfo(np.float16).eps)
    for precision, kind, most in [(EPS, np.float64, 2**50), (SINGLE, np.float32, 2**21), (half, np.float16, 2**8)]:
        for numerator, places in [(most - 1, 1), (most - 1, 0), (most + 1, 1), (2 * most - 3, 1)]:
            value = np.array([float(kind(numerator / 10**places))])
            few = numerator < most or places == 0
            assert count_decimals(value, precision)[0] == (places if few else LONG)


@pytest.mark.parametrize(("middle", "plausible"), [(7e15, True), (8e15, False)])
def test_whole_numbers_are_rounded_unless_floats_lose_as_much(middle, plausible):
    X = np.arange(1.0, 402)[:, None]
    found = levels("auto", X, middle + np.arange(-200.0, 201))
    assert any(level.level is Level.LABEL for level in found) == plausible


def test_float32_that_is_rounded_is_a_float32_too():
    X, w = table()
    X = X.astype(np.float32)
    last = levels("auto", X, np.round(X @ w, 1).astype(np.float32))[-1]
    assert last.level is Level.LABEL
    assert last.tight == last.relative == (2 + 3 / 2) * SINGLE


@pytest.mark.parametrize("agreement", AGREEMENTS, ids=str)
def test_a_row_of_zeros_agrees_with_its_label_of_zero(agreement):
    X, y, w = np.zeros((2, 3)), np.array([0.0, 1e-300]), np.ones(3)
    found = verify(X, y, w, agreement)
    assert found.agree.tolist() == [True, agreement.label > 0]
    marks = Mark(w, agreement, IDENTITY)(Block(X, y[:, None], None, False))
    np.testing.assert_array_equal(marks & AGREES > 0, found.agree)
