"""Powers of two: exact, and right at both ends of the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from massart.rows.scaling import exponents, power_of_two, scaled

MATRICES = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(-1e300, 1e300))


@pytest.mark.slow
@given(MATRICES, st.sampled_from([None, 0, 1]))
def test_largest_entries_come_near_one_and_back(X, axis) -> None:
    near, powers = scaled(X, axis)
    largest = np.abs(X).max(axis=axis)
    sizes = np.abs(near).max(axis=axis)
    assert np.all((sizes >= 0.5) & (sizes < 1) | (largest == 0))
    np.testing.assert_array_equal(powers, exponents(X, axis))
    kept = (near == 0) == (X == 0)  # what is 1e-300 times the largest may vanish
    back = np.ldexp(near, powers if axis is None else np.expand_dims(powers, axis))
    normal = kept & (np.abs(near) > 1e-300)
    np.testing.assert_array_equal(back[normal], X[normal])


@pytest.mark.parametrize(("size", "power"), [(0.0, 1.0), (1.0, 2.0), (0.75, 1.0), (3.0, 4.0), (1e-310, 2.0**-1020)])
def test_a_power_of_two_is_above_its_size(size, power) -> None:
    assert power_of_two(size) == power
    assert np.isfinite(1 / power_of_two(size))


def test_powers_of_the_largest_numbers_are_finite() -> None:
    np.testing.assert_array_equal(power_of_two([1.7e308, 5e-324]), [2.0**1020, 2.0**-1020])


def test_nothing_has_exponent_zero() -> None:
    assert exponents(np.zeros((3, 2)), 1).tolist() == [0, 0, 0]
    assert exponents(np.zeros((0, 2)), 0).tolist() == [0, 0]
