"""Labels rounded to cents: the tariff comes out in its own numbers, all wrong rows and no others, and nothing made up.

Least squares on rounded labels leaves some rows, and every other choice of what is fixed leaves others: a search that
asks all rows to stay while it fixes one number after the other ends halfway, at 4.999916712 beside 14.6. So these laws
are about whole tables: what is simple snaps, all of it; what is not never does; a column without effect is 0, not
1e-14.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from massart import MassartRegressor
from massart.certificate import Verdict
from massart.recover import recover
from massart.rows import ArrayRows


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("unit", "digit"), [(1000, 1), (10, 1), (1, 0.01)], ids=["thousands", "tens", "whole numbers"])
def test_a_label_with_more_digits_was_not_rounded(unit, digit, seed):
    rng = np.random.default_rng(seed)
    n = 300
    X = rng.integers(1, 60, (n, 2)).astype(float)
    wrong = rng.random(n) < 0.3
    errors = digit * rng.integers(1, round(unit / digit / 2), n) * rng.choice([-1, 1], n)
    y = np.round(X @ [3 * unit, 7 * unit] + wrong * errors, 2)
    found = recover(ArrayRows(X, y, intercept=True), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.agree[:, 0], ~wrong)
    assert found.coef[:, 0].tolist() == [3 * unit, 7 * unit, 0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("places", [0, 2])
def test_errors_smaller_than_what_coefficients_make_of_half_a_unit_are_errors(places, seed):
    rng = np.random.default_rng(seed)
    n = 300
    X = rng.integers(1, 300, (n, 2)) / 10**places
    wrong = rng.random(n) < 0.15
    y = np.round(X @ [12, 5] + wrong * rng.integers(2, 9, n) * rng.choice([-1, 1], n) / 10**places, places)
    found = recover(ArrayRows(X, y, intercept=True), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.agree[:, 0], ~wrong)
    assert found.coef[:, 0].tolist() == [12, 5, 0]


@pytest.mark.parametrize("w", [(12.0, 5.0), (1.0, 1.0)])
def test_columns_that_are_rounded_leave_rows_anywhere_between_the_edges(w):
    rng = np.random.default_rng(0)
    measured = rng.uniform(1, 900, (400, 2))
    X, y = np.round(measured), np.round(measured @ w)
    wrong = np.arange(400) % 10 == 3
    y[wrong] += 200
    found = recover(ArrayRows(X, y, intercept=True), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.agree[:, 0], ~wrong)


def test_a_tariff_behind_rounded_and_wrong_bills():
    rng = np.random.default_rng(99)
    energy = rng.integers(50, 2000, 3000)
    peak = rng.random(3000) * energy
    winter = rng.random(3000) < 0.25
    X = np.column_stack([energy, peak, winter, energy * winter]).astype(float)
    bills = np.round(X @ [0.137, 0.0425, 4.95, 0.02] + 9.9, 2)
    wrong = rng.random(3000) < 0.38
    bills[wrong] = np.round(bills[wrong] * rng.choice([1.19, 0.5, 10], wrong.sum()), 2)
    found = recover(ArrayRows(X, bills, intercept=True), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.agree[:, 0], ~wrong)
    np.testing.assert_allclose(found.coef[:, 0], [0.137, 0.0425, 4.95, 0.02, 9.9], rtol=1e-4)
    assert found.fractions[0][0] == Fraction(137, 1000)
    assert found.certificates[0].verdict in (Verdict.PROVEN, Verdict.CONFIRMED)
    assert str(found.certificates[0].agreement) == "within rounding to cents"


ROUNDINGS = {
    "to even": lambda values: np.round(values, 2),
    "half up": lambda values: np.floor(100 * values + 0.5 + 1e-7) / 100,
    "cut off": lambda values: np.floor(100 * values + 1e-7) / 100,
}
ERRORS = {
    "scaled": lambda y, rng: y * rng.choice([1.19, 0.5, 10], len(y)),
    "a fee forgotten": lambda y, rng: y - rng.choice([9.9, 5, 1.25], len(y)),
    "shuffled": lambda y, rng: rng.permutation(y),
    "a cent or two": lambda y, rng: y + rng.choice([-2, -1, 1, 2], len(y)) / 100,
}
TARIFF = ("0.3412", "0.2278", "14.6", "5", "0", "9.9")


def bills(w, n, rng):
    """Return meter readings, a tariff of three with its base, a column without effect, and the exact amounts."""
    tariff = rng.integers(0, 3, n)
    X = np.column_stack(
        [rng.integers(80, 900, n), rng.integers(20, 400, n), tariff == 1, tariff == 2, rng.random(n) < 0.5]
    ).astype(float)
    return X, X @ w[:-1] + w[-1]


def spoiled(amounts, rounding, error, share, rng):
    y = ROUNDINGS[rounding](amounts)
    wrong = rng.random(len(y)) < share
    y[wrong] = np.round(ERRORS[error](y[wrong], rng), 2)
    return y


def found(X, y):
    """Return the coefficients of the recovered rule, the constant last, as floats and in exact numbers."""
    answer = recover(ArrayRows(X, y, intercept=True), inliers="exact", rng=np.random.default_rng(0))
    return answer.coef[:, 0], answer.fractions[0]


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("n", "rounding"), [(900, "to even"), (6000, "half up")])
def test_every_number_of_a_tariff_snaps(n, rounding, error):
    rng = np.random.default_rng([n, len(error)])
    X, amounts = bills(np.array(TARIFF, dtype=float), n, rng)
    share = 0.2 if error == "a cent or two" else 0.4
    coef, fractions = found(X, spoiled(amounts, rounding, error, share, rng))
    assert fractions == tuple(Fraction(value) for value in TARIFF)
    assert coef[4] == 0.0


@pytest.mark.slow
def test_labels_cut_off_give_the_rates_and_no_wrong_fee():
    # Half a cent is missing on average: 9.895 is as near as labels within half a cent come to a fee of 9.9.
    rng = np.random.default_rng(0)
    X, amounts = bills(np.array(TARIFF, dtype=float), 20_000, rng)
    coef, fractions = found(X, spoiled(amounts, "cut off", "scaled", 0.3, rng))
    truth = (*(Fraction(value) for value in TARIFF[:-1]), Fraction("9.895"))
    assert all(value in (None, true) for value, true in zip(fractions, truth, strict=True))
    np.testing.assert_allclose(coef, [float(value) for value in truth], atol=2e-4)
    assert coef[4] == 0.0


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 2000])
def test_arbitrary_coefficients_never_snap(n):
    rng = np.random.default_rng(n)
    for _ in range(12):
        X, amounts = bills(rng.uniform(0.1, 2, 6) * [0.5, 0.5, 10, 10, 1, 10], n, rng)
        _, fractions = found(X, spoiled(amounts, "to even", "scaled", 0.3, rng))
        assert fractions == (None,) * 6


def test_a_fee_that_no_label_tells_from_its_neighbours_is_the_round_one():
    # Whole numbers times 0.137 leave gaps of a tenth of a cent, in which the fee may lie, however many rows there are.
    rng = np.random.default_rng(0)
    x = rng.integers(1, 400, 3000).astype(float)
    _, fractions = found(x[:, None], np.round(0.137 * x + 9.95, 2))
    assert fractions == (Fraction("0.137"), Fraction("9.95"))


def cents(n, sigma, seed=0, one_sided=False):
    """Return rows, amounts to cents that carry noise of this size, and the rates."""
    rng = np.random.default_rng(seed)
    X, rates = rng.uniform(0, 50, (n, 3)), np.array([1.25, 0.42, 3.5])
    noise = sigma * rng.standard_normal(n)
    return X, np.round(X @ rates + (np.abs(noise) if one_sided else noise), 2), rates


def test_noise_of_less_than_a_cent_is_noise_and_no_wrong_row():
    X, y, rates = cents(900, 0.006)
    found = recover(ArrayRows(X, y), rng=np.random.default_rng(0))
    assert found.certificates[0].verdict is Verdict.NOISY
    assert found.agree.mean() > 0.98
    assert found.fractions[0] == (None,) * 3
    assert (np.abs(found.coef[:, 0] - rates) < 4 * found.standard_errors[:, 0]).all()
    assert found.scale[0] == pytest.approx(np.hypot(0.006, 0.01 / np.sqrt(12)), rel=0.1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_labels_rounded_to_cents_are_rounded_in_single_precision_too(dtype):
    rng = np.random.default_rng(1)
    X = np.round(rng.uniform(0, 100, (400, 3)), 1)
    wrong = rng.random(400) < 0.3
    y = np.round(np.where(wrong, rng.uniform(0, 400, 400), X @ [1.2345, 2.3456, 0.789] + 3.1), 2)
    found = MassartRegressor(random_state=0).fit(X.astype(dtype), y.astype(dtype))
    assert found.certificate_.agreement.unit == 0.01
    np.testing.assert_array_equal(found.inlier_mask_, ~wrong)


def test_a_rounded_column_explains_labels_of_any_digits():
    """A column to one decimal beside finer ones: their labels have three decimals, and are right."""
    rng = np.random.default_rng(0)
    fine = np.arange(220) < 31
    drawn = rng.uniform(5, 900, (2, 220))
    value, capital = np.where(fine, np.round(drawn, 3), np.round(drawn, 1))
    gap = np.round(value - 2 * capital, 1)
    wrong = np.arange(220) % 7 == 0
    gap[wrong] *= 10
    # A gap that is ten times too large is wrong in the columns, where such rows are a tail that breaks the rule.
    with pytest.warns(ConvergenceWarning, match="The rule does not hold for x1"):
        found = MassartRegressor(fit_intercept=False, random_state=0).fit(np.column_stack([capital, gap]), value)
    np.testing.assert_array_equal(found.coef_, [2.0, 1.0])
    np.testing.assert_array_equal(found.inlier_mask_, ~wrong)


@pytest.mark.parametrize("seed", range(3))
def test_rates_of_which_some_are_exact_and_others_rounded_are_found_together(seed):
    # More than half of the rows agree exactly with rates of 50.8, 1 and 1: the last is what was not converted.
    rng = np.random.default_rng(seed)
    unit, quantity = rng.integers(0, 3, 1_500), np.round(rng.gamma(2, 40, 1_500) + 0.5, 1)
    rates = np.array([50.8, 1.0, 0.4536])
    right = np.round(quantity * rates[unit], 3)
    other = np.where((rng.random(1_500) < 0.5) & (unit != 1), quantity, np.round(rng.uniform(1, 4_000, 1_500), 3))
    wrong = rng.random(1_500) < 0.26
    found = MassartRegressor(random_state=0).fit(
        quantity[:, None] * (unit[:, None] == np.arange(3)), np.where(wrong, other, right)
    )
    np.testing.assert_allclose(found.coef_, rates, rtol=1e-9)
    assert found.certificate_.verdict.name in ("PROVEN", "CONFIRMED", "MAJORITY")
    assert np.mean(found.inlier_mask_ == (right == np.where(wrong, other, right))) == 1


def rounded_columns(seed, n, share, off):
    """Return labels in cents of columns with one decimal, right rows, and wrong ones that are off by little."""
    rng = np.random.default_rng([8, seed])
    X = np.column_stack([rng.uniform(1, 90, n).round(1), rng.uniform(1, 50, n).round(1 if seed % 2 else 2)])
    wrong = rng.random(n) < share
    y = np.round(X @ [54.1, 12.35] + 5, 2)
    return X, np.round(np.where(wrong, y + off(rng, n), y), 2), ~wrong


OFF = {
    "anything up to 2.5": lambda rng, n: rng.uniform(0.05, 2.5, n),
    "a few amounts": lambda rng, n: rng.choice([1.0, 0.5, -1.0], n),
    "dimes": lambda rng, n: rng.choice([0.1, 0.2], n),
}


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize("share", [0.03, 0.1, 0.25])
def test_errors_smaller_than_rounded_columns_leave_are_found(off, share):
    """Half a unit of a column times 54.1 is 2.7: rows off by less may be explained so, but right rows are too close."""
    for seed, n in enumerate((150, 400)):
        X, y, right = rounded_columns(seed, n, share, OFF[off])
        found = recover(ArrayRows(X, y, intercept=True), rng=np.random.default_rng(0))
        np.testing.assert_array_equal(found.agree[:, 0], right)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [8, 30])
def test_rounded_columns_do_not_explain_what_scatters_about_a_sharp_minority(seed, spread):
    X, y, right = rounded_columns(seed, (150, 400, 1000)[seed % 3], 0.6, lambda rng, n: rng.normal(0, spread, n))
    found = recover(ArrayRows(X, y, intercept=True), rng=np.random.default_rng(0))
    assert (found.agree[:, 0] != right).sum() <= 2
