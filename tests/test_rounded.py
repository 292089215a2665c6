"""A bill rounded to cents: the tariff comes out exactly, and all wrong rows and no others."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from massart.certificate import Verdict
from massart.recover import recover
from massart.rows import ArrayRows


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
    assert found.certificates[0].verdict in (Verdict.PROVEN, Verdict.MAJORITY)
    assert found.tolerances[0].absolute == 0.005
