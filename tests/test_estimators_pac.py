"""MassartPACRegressor keeps scikit-learn's contract and stands behind its epsilon."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from massart.certificate import Certificate
from massart.estimators.pac import MassartPACRegressor
from massart.recover.pac import PACStatus

Array = np.ndarray[Any, Any]

W = np.array([2.0, -0.5, 1.0, 3.25])


def flat_rows(seed: int = 0, n: int = 600, outputs: int = 1) -> tuple[Array, Array, Array]:
    """Return rows of a plane in R^4, labels of a known formula, and which are right."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, 4))
    y = np.stack([(j + 1) * (X @ W) + 7 for j in range(outputs)], axis=1)
    right = rng.random((n, outputs)) >= 0.3
    y[~right] += rng.uniform(1, 100, (~right).sum())
    return (X, y[:, 0], right[:, 0]) if outputs == 1 else (X, y, right)


@pytest.mark.full(every=3)
@parametrize_with_checks([MassartPACRegressor()])
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_contract(estimator: MassartPACRegressor, check: Any) -> None:
    check(estimator)


def test_products_are_right_where_coefficients_are_open() -> None:
    X, y, right = flat_rows()
    reg = MassartPACRegressor(random_state=0).fit(X, y)
    assert_allclose(reg.predict(X), X @ W + 7, rtol=1e-9, atol=1e-9)
    assert_array_equal(reg.inlier_mask_, right)
    assert reg.noise_rate_ == pytest.approx(1 - right.mean())
    assert 0 < reg.epsilon_ <= 0.05
    assert isinstance(reg.certificate_, Certificate)
    assert reg.certificate_.verdict.stands
    assert_allclose(X @ reg.certificate_.undetermined[:-1] + reg.certificate_.undetermined[-1], 0, atol=1e-9)
    assert reg.pac_formula_.status is PACStatus.PROVEN
    assert reg.coef_.shape == (4,)


def test_without_an_intercept_the_constant_is_zero() -> None:
    X, y, right = flat_rows()
    reg = MassartPACRegressor(fit_intercept=False, random_state=0).fit(X, y - 7)
    assert reg.intercept_ == 0.0
    assert_array_equal(reg.inlier_mask_, right)


@pytest.mark.slow
def test_several_outputs_have_an_epsilon_each() -> None:
    X, y, right = flat_rows(outputs=2)
    reg = MassartPACRegressor(random_state=0).fit(X, y)
    assert reg.coef_.shape == (2, 4)
    assert reg.intercept_.shape == reg.epsilon_.shape == reg.noise_rate_.shape == (2,)
    assert_array_equal(reg.inlier_mask_, right)
    assert_allclose(reg.predict(X), np.stack([X @ W + 7, 2 * (X @ W) + 7], axis=1), rtol=1e-9, atol=1e-9)
    assert len(reg.certificate_) == len(reg.pac_formula_) == 2


@pytest.mark.slow
def test_sparse_rows_equal_dense_ones() -> None:
    rng = np.random.default_rng(0)
    dense = rng.integers(-3, 4, size=(300, 6)) * (rng.random((300, 6)) < 0.4)
    y = dense @ np.array([1.0, -2, 0.5, 4, 0, 1]) + 2
    y[::8] = 1000
    of_dense = MassartPACRegressor(random_state=0).fit(dense, y)
    of_sparse = MassartPACRegressor(random_state=0).fit(sparse.csr_array(dense.astype(float)), y)
    assert_allclose(of_sparse.coef_, of_dense.coef_, atol=1e-12)
    assert of_sparse.epsilon_ == of_dense.epsilon_


@pytest.mark.slow
def test_float32_rows_are_exact_up_to_their_own_rounding() -> None:
    X, y, right = flat_rows()
    X32 = X.astype(np.float32)
    y32 = np.where(right, X32.astype(float) @ W + 7, y).astype(np.float32)
    reg = MassartPACRegressor(random_state=0).fit(X32, y32)
    assert_array_equal(reg.inlier_mask_, right)
    assert reg.epsilon_ <= 0.05
    assert_allclose(reg.predict(X32), X @ W + 7, atol=1e-3)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes() -> None:
    X, y, _ = flat_rows()
    first, second = (pickle.dumps(vars(MassartPACRegressor(random_state=7).fit(X, y))) for _ in range(2))
    assert first == second


def test_pickling_and_cloning_keep_everything() -> None:
    X, y, _ = flat_rows()
    reg = MassartPACRegressor(epsilon=0.1, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(reg))
    assert_array_equal(again.predict(X), reg.predict(X))
    assert again.epsilon_ == reg.epsilon_
    assert clone(reg).get_params() == reg.get_params()
    with pytest.raises(NotFittedError):
        clone(reg).predict(X)


def test_a_shortage_of_rows_is_warned_of_and_points_at_the_caller() -> None:
    X, y, _ = flat_rows(n=12)
    with pytest.warns(ConvergenceWarning, match="SHORT: With confidence 95 %") as caught:
        reg = MassartPACRegressor(random_state=0).fit(X, y)
    assert caught[0].filename == __file__
    assert reg.epsilon_ > 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be between 0 and 1"),
        ({"epsilon": 1.0}, "epsilon must be between 0 and 1"),
        ({"eta": 0.5}, "eta must be at least 0 and below 1/2"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1"),
        ({"tolerance": -1.0}, "tolerance must be finite and not negative"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    X, y, _ = flat_rows(n=50)
    with pytest.raises(ValueError, match=message):
        MassartPACRegressor(**parameters).fit(X, y)


def test_bad_rows_are_named() -> None:
    X, y, _ = flat_rows(n=50)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="X must be finite, got NaN at row 3, column 1"):
        MassartPACRegressor().fit(X, y)
