"""Laws of exact numbers: what is short comes out, and what is not stays as it is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from massart.exact import exact_numbers
from massart.exact.simplest import simplest_number
from massart.recover.shorten import snap
from massart.rows import IDENTITY, RELU, Agreement, Level, Link, Sample, levels

EPS = float(np.finfo(float).eps)
TIGHT = Agreement(Level.EXACT, relative=20 * EPS)
CENTS = Agreement(Level.LABEL, label=0.005, relative=TIGHT.relative, unit=0.01)


def sample_of(X, y):
    return Sample(X, y, None, np.arange(len(y)))


simple_numbers = st.one_of(
    st.just(Fraction(0)),
    st.builds(Fraction, st.integers(-500, 500)),
    st.builds(Fraction, st.integers(-9999, 9999), st.just(100)),
    st.builds(Fraction, st.integers(-30, 30), st.integers(1, 12)),
)
formulas = st.lists(simple_numbers, min_size=1, max_size=8)


def floats(w):
    return np.array([float(value) for value in w])


def features(kind, n, d, rng):
    return {
        "floats": lambda: rng.standard_normal((n, d)),
        "integers": lambda: rng.integers(-40, 40, (n, d)).astype(float),
        "decimals": lambda: np.round(rng.uniform(0, 100, (n, d)), 2),
        "heavy": lambda: rng.standard_cauchy((n, d)),
    }[kind]()


def solved(X, y, agreement=TIGHT):
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    return exact_numbers(X, y, w, agreement)


@pytest.mark.slow
@given(formulas, st.sampled_from(["floats", "integers", "decimals", "heavy"]), st.integers(0, 2**32 - 1))
def test_the_formula_behind_floats_is_found(w, kind, seed):
    X = features(kind, 60, len(w), np.random.default_rng(seed))
    assume(np.linalg.cond(X) < 1e4)
    exact = solved(X, X @ floats(w))
    assert exact.fractions == tuple(w)
    assert np.array_equal(exact.coef, floats(w))


@pytest.mark.slow
@given(formulas, st.floats(-12, 0), st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_ill_conditioned_rows_never_give_a_wrong_number(w, log_gap, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, len(w) + 1))
    X[:, -1] = X[:, 0] + 10**log_gap * X[:, -1]
    truth = (*w, Fraction(1, 7))
    exact = solved(X, X @ floats(truth))
    assert all(found in (None, true) for found, true in zip(exact.fractions, truth, strict=True))


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(8, 80), st.booleans())
def test_fit_and_agreement_are_never_loosened(seed, n, rounded):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-20, 20, (n, 4))
    truth = np.array([0.25, 1 / 3, rng.standard_normal(), 7.0])
    y = X @ truth
    y, agreement = (np.round(y, 2), CENTS) if rounded else (y, TIGHT)
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    exact = exact_numbers(X, y, w, agreement)
    lost = agreement.agree(X, y, w).sum() - agreement.agree(X, y, exact.coef).sum()
    assert lost <= (len(w) if rounded else 0)  # free coefficients take in this many rows by chance
    if not rounded:
        before, after = np.abs(y - X @ w), np.abs(y - X @ exact.coef)
        rounding = 4 * EPS * (np.abs(X) @ np.abs(w) + np.abs(y))
        assert after.max() <= before.max() + rounding.max()
        assert after.sum() <= before.sum() + rounding.sum()


def test_arbitrary_coefficients_stay_as_they_are():
    rng = np.random.default_rng(0)
    for _ in range(30):
        X, w = rng.standard_normal((100, 10)), rng.standard_normal(10)
        assert solved(X, X @ w).fractions == (None,) * 10


def test_simple_and_arbitrary_coefficients_are_told_apart():
    X = np.random.default_rng(0).standard_normal((100, 4))
    exact = solved(X, X @ [0.42, np.pi, 0.0, -2 / 3])
    assert exact.fractions == (Fraction(21, 50), None, Fraction(0), Fraction(-2, 3))
    assert exact.coef[1] == pytest.approx(np.pi, rel=1e-14)


@pytest.mark.parametrize("value", ["0.3333", "0.33333333", "0.3333333333", "0.1", "-12.5", "1e-6", "123456.789"])
def test_a_decimal_near_a_fraction_stays_a_decimal(value):
    X = np.random.default_rng(1).standard_normal((50, 3))
    assert solved(X, X @ [float(value), 1, 2]).fractions[0] == Fraction(value)


def test_a_fraction_next_to_a_longer_decimal_is_not_forced_on_it():
    X = np.random.default_rng(1).standard_normal((50, 3))
    for value in (0.333333333333, 0.33333333333334):
        assert solved(X, X @ [value, 1, 2]).fractions[0] in (None, Fraction(str(value)))


def test_rounding_noise_becomes_zero_even_where_a_row_has_no_other_term():
    X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0], [0.0, 1.0], [5.0, 2.0]])
    exact = exact_numbers(X, X @ [5.1, 0.0], np.array([5.1, 3e-17]), TIGHT)
    assert exact.fractions == (Fraction(51, 10), Fraction(0))
    assert exact.coef[1] == 0.0


def test_a_round_number_is_not_taken_for_one_next_to_it():
    X = np.random.default_rng(0).standard_normal((60, 6))
    X[:, -1] = X[:, 0] + 1e-11 * X[:, -1]
    exact = solved(X, X @ [99.99, 0, -354, 0, 0, 1 / 7])  # the first is known to 0.01: 100 would fit as well
    assert exact.fractions == (None, 0, -354, 0, 0, None)


def test_coefficients_that_rows_do_not_determine_are_left():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (60, 4)).astype(float)
    X[:, 3] = X[:, 0] + X[:, 1]
    exact = solved(X, X @ [1, 2, 0.5, 0.25])
    assert exact.fractions == (None, None, Fraction(1, 2), None)
    X[:, 3] = 0
    assert solved(X, X @ [1, 2, 0.5, 0.25]).fractions[3] is None
    X = rng.standard_normal((3, 4))  # fewer rows than columns
    assert solved(X, X @ [1, 2, 0.5, 0.25]).fractions == (None,) * 4


@pytest.mark.slow
@given(st.lists(st.integers(-9999, 9999), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_labels_in_cents_give_the_prices(cents, seed):
    rng = np.random.default_rng(seed)
    prices = [Fraction(value, 100) for value in cents]
    X = rng.uniform(0, 30, (400, len(prices)))
    y = np.round(X @ floats(prices), 2)
    exact = solved(X, y, CENTS)
    assert exact.fractions == tuple(prices)
    # Least squares leaves some residuals above half a cent; the prices leave none.
    assert CENTS.agree(X, y, exact.coef).all()


def test_a_loose_tolerance_does_not_blur_exact_rows():
    X = np.random.default_rng(0).standard_normal((60, 2))
    assert solved(X, X @ [0.4200001, 3.0], CENTS).fractions == (Fraction("0.4200001"), Fraction(3))


def test_float32_data_give_the_formula():
    rng = np.random.default_rng(0)
    w = np.array([0.42, 1 / 3, 0.0, 12.5])
    X = rng.standard_normal((300, 4)).astype(np.float32)
    y = (X.astype(float) @ w).astype(np.float32)
    single = levels("auto", X, y)[-1]
    assert str(single) == "within rounding of float32"
    exact = solved(X.astype(float), y.astype(float), single)
    assert exact.fractions == (Fraction(21, 50), Fraction(1, 3), Fraction(0), Fraction(25, 2))


@pytest.mark.parametrize("scale", ["1e-150", "1e-9", "1e9", "1e150"])
@pytest.mark.parametrize("other", [1e-150, 1.0, 1e150])
def test_scales_do_not_matter(scale, other):
    w = [Fraction(3, 2) * Fraction(scale), Fraction("-0.25") * Fraction(scale)]
    X = np.random.default_rng(0).standard_normal((60, 2)) * other
    exact = exact_numbers(X, X @ floats(w), floats(w) * (1 + 1e-15), TIGHT)
    assert exact.fractions == tuple(w)
    # Each column in its own unit.
    X = X / other * [1 / float(scale), 1.0]
    w = [w[0], Fraction("0.7")]
    exact = exact_numbers(X, X @ floats(w), floats(w) * (1 + 1e-15), TIGHT)
    assert exact.fractions == tuple(w)


def test_rows_of_different_scales_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)) * 10.0 ** rng.uniform(-140, 140, (80, 1))
    w = np.array([0.42, -1 / 3, 7.0])
    exact = exact_numbers(X, X @ w, w * (1 + 1e-15), TIGHT)
    assert exact.fractions == (Fraction(21, 50), Fraction(-1, 3), Fraction(7))


@pytest.mark.parametrize("value", ["1/997", "1/36500", "355/113", "100/119"])
def test_fractions_and_numbers_over_one_are_exact(value):
    X = np.random.default_rng(0).standard_normal((50, 2))
    assert solved(X, X @ [float(Fraction(value)), 2]).fractions[0] == Fraction(value)


def test_interest_by_the_day_is_exact_where_amounts_are_in_cents():
    rng = np.random.default_rng(0)
    X = (rng.integers(1000, 90_000, 400) * rng.integers(1, 90, 400) * rng.integers(1, 90, 400) / 10)[:, None]
    exact = solved(X, np.round(X[:, 0] / 36500, 2), CENTS)
    assert exact.fractions == (Fraction(1, 36500),)


@pytest.mark.parametrize("link", [IDENTITY, RELU, Link(-20.0, 60.0), Link(slope=0.125), Link(slope=3.0)])
def test_labels_behind_a_link_give_the_formula(link):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(0, 10, (300, 3)), np.ones(300)])
    w = [Fraction("1.25"), Fraction(-2, 3), Fraction(0), Fraction(4)]
    y = link(X @ floats(w))
    y[:100] += rng.uniform(1, 9, 100)
    start = floats(w) * (1 + 1e-15)
    assert snap(sample_of(X, y), TIGHT.agree(X, y, start, link), start, TIGHT, link)[1] == tuple(w)


def test_zeros_with_float_dust_are_no_products():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    w = np.array([0.5, 3.0])
    y = RELU(X @ w)
    y[y == 0] = 5.55e-17
    coef, fractions = snap(sample_of(X, y), TIGHT.agree(X, y, w, RELU), w, TIGHT, RELU)
    assert fractions == (Fraction(1, 2), Fraction(3))
    assert coef.tolist() == w.tolist()


@pytest.mark.parametrize("w", [np.zeros(2), np.array([0.5, 2.0])])
def test_too_few_rows_claim_nothing(w):
    X = np.eye(2)
    few = slice(0, np.count_nonzero(w))
    assert snap(sample_of(X[few], X[few] @ w), np.ones(len(X[few]), dtype=bool), w, TIGHT, IDENTITY)[1] == (None, None)


@pytest.mark.slow
@given(st.fractions(-100, 100, max_denominator=50), st.floats(-1, 1))
def test_the_simplest_number_is_the_simplest_of_all_near(value, offset):
    uncertainty = 1e-7
    w = float(value) + 0.9 * offset * uncertainty
    simple = simplest_number(w, uncertainty, 1.0)
    assert simple is not None
    assert abs(float(simple.value) - w) <= 1.01 * uncertainty
    assert simple.value == value  # no two fractions with such denominators are so near
