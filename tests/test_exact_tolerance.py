"""Laws of the tolerance, and of reading floats as the decimals they print as."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from massart.exact import Tolerance, resolve_tolerance, tolerances
from massart.exact.decimals import LONG, count_decimals, read_decimals

SINGLE = float(np.finfo(np.float32).eps)


def residual_and_size(X, y, w):
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    return y - X @ w, np.abs(X) @ np.abs(w) + np.abs(y)


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-50, 50, (n, 3)), np.array([0.4217, -1.93, 7.0])


@given(st.integers(-(10**14), 10**14), st.integers(0, 22))
def test_decimals_are_those_of_the_shortest_decimal(numerator, places):
    value = float(Fraction(numerator, 10**places))
    printed = Decimal(repr(value)).normalize().as_tuple().exponent
    assert count_decimals(np.array([value]))[0] == (max(0, -printed) if -printed <= 22 else LONG)


@given(st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_decimals_of_float32_are_read_at_its_own_precision(numerator, places):
    value = np.float32(numerator / 10**places)
    printed = Decimal(str(value)).normalize().as_tuple().exponent
    assert count_decimals(np.array([value], dtype=float), SINGLE)[0] == max(0, -printed)


def test_decimals_of_hard_cases():
    values = np.array([0.0, -0.0, 1e15, 1e300, -5.0, 0.1 + 0.2, 1 / 3, 1e-7, 1e-30, 1e15 + 0.125, 123456789012.34])
    assert count_decimals(values).tolist() == [0, 0, 0, 0, 0, LONG, LONG, 7, LONG, LONG, 2]


def test_decimals_of_thousands_of_numbers_are_counted_at_once():
    values = np.random.default_rng(0).standard_normal(5000)
    start = time.perf_counter()
    count_decimals(values)
    assert time.perf_counter() - start < 0.2


@given(st.lists(st.tuples(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(-150, 150)), min_size=1, max_size=5))
def test_reading_decimals_is_exact(parts):
    exact = [Fraction(numerator) * Fraction(10) ** exponent for numerator, exponent in parts]
    read = read_decimals(np.array([float(value) for value in exact]))
    assert read is not None
    assert [Fraction(int(value), 10**read.places) for value in read.numerators] == exact


def test_a_computed_number_is_no_decimal():
    assert read_decimals(np.array([0.5, 0.1 + 0.2])) is None


@pytest.mark.parametrize("kind", [float, int])
def test_float64_and_integers_agree_to_rounding_of_float64(kind):
    X, w = table()
    X = X.astype(kind)
    y = X @ w
    (tight, *_) = tolerances("auto", X, y)
    residual, size = residual_and_size(X, y, w)
    assert tight.absolute == 0
    assert 1e-14 < tight.relative < 1e-12
    assert tight.agree(residual, size).all()
    assert not tight.agree(residual + 1e-11 * size, size).any()


def test_float32_is_tried_after_float64_and_only_then():
    X, w = table()
    X32 = X.astype(np.float32)
    candidates = tolerances("auto", X32, X32 @ w.astype(np.float32))
    assert [c.reason for c in candidates[:2]] == ["rounding of float64", "rounding of float32"]
    coarse = resolve_tolerance(candidates, *residual_and_size(X32, X32 @ w.astype(np.float32), w))
    assert coarse.reason == "rounding of float32"
    fine = resolve_tolerance(candidates, *residual_and_size(X32, X32.astype(float) @ w, w))
    assert fine.reason == "rounding of float64"


def test_precisions_may_be_told_after_a_conversion():
    X, w = table()
    assert tolerances("auto", X, X @ w, X_precision=SINGLE)[1].reason == "rounding of float32"
    assert len(tolerances("auto", X, X @ w)) == 1


@pytest.mark.parametrize("places", [0, 1, 2, 4, 6])
def test_rounded_labels_agree_within_half_a_unit(places):
    X, w = table()
    y = np.round(X @ w, places)
    candidates = tolerances("auto", X, y)
    chosen = resolve_tolerance(candidates, *residual_and_size(X, y, w))
    if places == 0:  # labels that span some hundred units
        assert chosen.reason == "labels rounded to whole numbers"
    assert chosen.absolute == float(f"5e-{places + 1}")
    assert chosen.agree(*residual_and_size(X, y, w)).all()


def test_nothing_is_loosened_where_exact_agreement_explains_a_majority():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (200, 3)).astype(float)
    w = np.array([1.25, 0.5, 3.0])
    y = X @ w
    y[:80] = np.round(y[:80] * 1.1, 2)
    candidates = tolerances("auto", X, y)
    assert len(candidates) > 1
    assert resolve_tolerance(candidates, *residual_and_size(X, y, w)) is candidates[0]


def test_wrong_labels_with_more_decimals_hide_no_rounding():
    X, w = table()
    y = np.round(X @ w, 2)
    y[:80] *= 1.0937
    assert [c.absolute for c in tolerances("auto", X, y)] == [0.0, 0.005]
    y[:80] = np.round(y[:80], 4)
    assert [c.absolute for c in tolerances("auto", X, y)] == [0.0, 0.00005, 0.005]


@pytest.mark.parametrize("y", [np.zeros(40), np.ones(40), np.tile([0.0, 1.0], 20), np.full(40, 19.99)])
def test_labels_that_rounding_would_explain_away_are_not_taken_for_rounded(y):
    assert len(tolerances("auto", np.ones((40, 1)), y)) == 1


def test_zeros_do_not_count_as_whole_numbers():
    X, w = table()
    y = np.round(X @ w, 2)
    y[:150] = 0
    assert [c.absolute for c in tolerances("auto", X, y)] == [0.0, 0.005]


def test_candidates_go_from_tight_to_loose():
    X, w = table()
    X = X.astype(np.float32)
    candidates = tolerances("auto", X, np.round(X @ w, 2).astype(np.float32))
    assert len(candidates) == 3
    size = np.array([0.0, 1.0, 1e6])
    for tight, loose in pairwise(candidates):
        assert (tight.threshold(size) <= loose.threshold(size)).all()


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e150])
def test_agreement_does_not_depend_on_units(scale):
    X, w = table()
    (tight, *_) = tolerances("auto", X * scale, X @ w)
    assert tight.agree(*residual_and_size(X * scale, X @ w, w / scale)).all()


def test_an_absolute_number_is_the_only_candidate():
    (given_one,) = tolerances(0.005, [[1.0], [2.0]], [1.0, 2.0])
    assert given_one.absolute == 0.005
    # 2.675 prints above a tie, its float lies below: half a unit must survive float rounding
    assert given_one.agree(np.array([2.68 - 2.675]), np.array([5.355])).all()
    assert tolerances(0, [[1.0]], [1.0])[0].absolute == 0
    assert tolerances(np.float32(0.5), [[1.0]], [1.0])[0].absolute == 0.5


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), "tight", "", None, True, [0.1]])
def test_bad_tolerances_are_named(bad):
    with pytest.raises(ValueError, match="tolerance must be"):
        tolerances(bad, [[1.0], [2.0]], [1.0, 2.0])


def test_without_a_majority_the_tightest_candidate_stays():
    candidates = (Tolerance(0.0, 1e-13, "tight"), Tolerance(0.1, 1e-13, "loose"))
    assert resolve_tolerance(candidates, np.array([5.0, 7.0]), np.ones(2)) is candidates[0]
    with pytest.raises(ValueError, match="candidates"):
        resolve_tolerance((), np.ones(2), np.ones(2))
