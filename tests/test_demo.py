from __future__ import annotations

import numpy as np
import pytest

from massart.demo import PRICES, WRONG_SHARE, fit, make_ledger


@pytest.mark.parametrize("seed", range(5))
def test_the_price_list_is_recovered_and_the_wrong_rows_are_named(seed: int) -> None:
    ledger = make_ledger(np.random.default_rng(seed))
    found = fit(ledger.X, ledger.y)
    np.testing.assert_allclose(found.coef, PRICES, rtol=1e-12)
    right = np.isclose(ledger.y, ledger.X @ np.array(PRICES), rtol=1e-12, atol=0)
    np.testing.assert_array_equal(found.agree, right)
    assert np.abs(found.least_squares - PRICES).max() > 1
    assert found.certificate.verdict.name in ("PROVEN", "MAJORITY")
    assert found.certificate.n_agree == right.sum()


def test_about_a_third_of_the_totals_are_wrong() -> None:
    ledger = make_ledger(np.random.default_rng(0), 20_000)
    wrong = np.abs(ledger.y - ledger.X @ np.array(PRICES)) > 1e-9
    assert abs(wrong.mean() - WRONG_SHARE) < 0.02


def test_a_column_that_most_rows_do_not_have_is_recovered() -> None:
    # 95 % of the rows lie in the subspace where the last column is zero: Algorithm 1 alone has no transform.
    X = np.random.default_rng(0).standard_normal((400, 3))
    X[:380, 2] = 0
    w = np.array([2.0, -1.0, 5.0])
    y = X @ w
    y[::3] += 10
    np.testing.assert_allclose(fit(X, y).coef, w, rtol=1e-9)


def test_random_totals_have_no_majority() -> None:
    rng = np.random.default_rng(0)
    found = fit(rng.standard_normal((100, 3)), rng.standard_normal(100))
    assert 2 * np.count_nonzero(found.agree) <= 100
