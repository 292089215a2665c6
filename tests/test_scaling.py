"""Powers of two: exact, and right at both ends of the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from massart.rows import exponents, power_of_two, scaled, typical_sizes

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


def test_sizes_balance_columns_whatever_the_rows():
    rng = np.random.default_rng(0)
    scales = np.array([1e-30, 1e20, 1.0, 1e5, 1.0])
    X = rng.standard_normal((400, 5)) * scales * np.exp(5 * rng.standard_normal((400, 1)))
    X[:, 2] = 0
    X[:350, 4] = 1e-16  # rounding errors do not make a column small
    sizes = typical_sizes(X)
    assert np.all(np.frexp(sizes)[0] == 0.5)
    assert sizes[2] == 1
    relative = np.log10(sizes / scales)
    np.testing.assert_allclose(relative[[0, 1, 3]] - relative[0], 0, atol=0.5)
    np.testing.assert_allclose(relative[4] - relative[0], 0, atol=1)


def test_sizes_are_the_geometric_means_of_entries_that_are_not_rounding():
    rng = np.random.default_rng(3)
    X = np.ldexp(rng.uniform(0.5, 1, (60, 4)), rng.integers(-9, 10, (60, 4))) * rng.choice([-1, 1], (60, 4))
    X[rng.random((60, 4)) < 0.3] = 0
    X[:20, 1] *= 2.0**-45  # beside the others of their column these are nothing
    X[:, 3] = 0
    X = X[X.any(axis=1)]
    entries = [[] for _ in range(4)]
    for row in X:
        largest = max(int(np.frexp(value)[1]) for value in row if value)
        for j, value in enumerate(row):
            entries[j] += [int(np.frexp(value)[1]) - largest] if value else []
    kept = [[value for value in column if value > max(column) - 40] for column in entries]
    assert sum(map(len, kept)) < sum(map(len, entries))
    means = [round(sum(column) / len(column)) if column else 0 for column in kept]
    np.testing.assert_array_equal(typical_sizes(X), np.exp2(means))
