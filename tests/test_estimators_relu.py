"""MassartReLURegressor: scikit-learn's contract, layers and links behind any table, and tables that nobody can fit."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

from massart import Link, MassartRegressor, MassartReLURegressor
from massart.certificate import Certificate, Verdict
from massart.recover import recover, recover_matrix
from massart.rows import RELU, ArrayRows

Array = np.ndarray[Any, Any]

W = np.array([2.0, -0.5, 0.0, 3.25])
INTERCEPT = 1.5
SLOW = (  # many searches in labels without a rule: done with noisy inliers, which search less
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_regressors_train",
)


def contaminated(
    seed: int = 0, n: int = 400, rate: float = 0.3, intercept: float = 0.0, link: Link = RELU
) -> tuple[Array, Array, Array]:
    """Return rows, labels of a known formula, and which of them are right."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, len(W)))
    y = link(X @ W + intercept)
    right = np.ones(n, dtype=bool)
    right[rng.choice(n, round(rate * n), replace=False)] = False
    y[~right] = link(y[~right] + rng.uniform(1, 100, size=(~right).sum())) + 1e-3
    return X, y, right


def layer(seed: int = 0, n: int = 400, rate: float = 0.3) -> tuple[Array, Array, Array]:
    """Return rows, the outputs of three neurons, many of them wrong, and the weights of the neurons."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    V = np.array([[1.0, -2, 0.5], [3, 0, -1], [0.25, 1, 1]])
    Y = np.maximum(0, X @ V.T)
    Y[rng.random(Y.shape) < rate] = 7
    return X, Y, V


def checks() -> Iterator[tuple[MassartReLURegressor, Any]]:
    """Each of scikit-learn's checks once: with the defaults, or with noisy inliers."""
    for inliers in ("auto", "noisy"):
        for estimator, check in estimator_checks_generator(MassartReLURegressor(inliers=inliers)):
            if (check.func.__name__ in SLOW) == (inliers == "noisy"):
                yield estimator, check


@pytest.mark.full(every=3)
@pytest.mark.parametrize(
    ("estimator", "check"), [*checks()], ids=lambda value: value.func.__name__ if hasattr(value, "func") else ""
)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_contract(estimator: MassartReLURegressor, check: Any) -> None:
    check(estimator)


def test_the_formula_and_the_wrong_rows_are_found() -> None:
    X, y, right = contaminated()
    reg = MassartReLURegressor(random_state=0).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-14)
    assert_array_equal(reg.inlier_mask_, right)
    assert reg.noise_rate_ == pytest.approx(0.3)
    assert isinstance(reg.certificate_, Certificate)
    assert reg.certificate_.verdict.stands
    assert reg.exact_coef_ == (Fraction(2), Fraction(-1, 2), Fraction(0), Fraction(13, 4))
    assert (reg.intercept_, reg.exact_intercept_, reg.intercept_standard_error_) == (0.0, Fraction(0), 0.0)
    assert reg.scale_ == 0
    assert_array_equal(reg.standard_errors_, np.zeros(4))
    assert_allclose(reg.predict(X)[right], y[right], rtol=1e-12, atol=1e-14)
    assert reg.score(X[right], y[right]) == pytest.approx(1)


def test_the_intercept_is_found() -> None:
    X, y, right = contaminated(intercept=INTERCEPT)
    reg = MassartReLURegressor(fit_intercept=True, random_state=0).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-13)
    assert (reg.intercept_, reg.exact_intercept_) == (INTERCEPT, Fraction(3, 2))
    assert_array_equal(reg.inlier_mask_, right)
    assert reg.certificate_.n_columns == 5


@pytest.mark.parametrize(
    "link",
    [RELU, Link(slope=0.1), Link(lower=-1, upper=3), Link(lower=-np.inf, upper=2.5), Link(lower=-np.inf)],
    ids=["ReLU", "leaky", "two-sided", "right-censored", "identity"],
)
@pytest.mark.parametrize("intercept", [0.0, INTERCEPT])
def test_predictions_are_the_link_of_the_products(link: Link, intercept: float) -> None:
    X, y, right = contaminated(rate=0.25, intercept=intercept, link=link)
    reg = MassartReLURegressor(fit_intercept=bool(intercept), link=link, random_state=0).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-12)
    assert reg.intercept_ == pytest.approx(intercept, abs=1e-12)
    far = 100 * X
    assert_allclose(reg.predict(far), link(far @ W + intercept), rtol=1e-11, atol=1e-11)
    assert reg.inlier_mask_[right].all()


@pytest.mark.slow
def test_the_identity_is_the_linear_estimator() -> None:
    X, y, _ = contaminated(link=Link(lower=-np.inf))
    ours = MassartReLURegressor(link=Link(lower=-np.inf), random_state=0).fit(X, y)
    theirs = MassartRegressor(fit_intercept=False, random_state=0).fit(X, y)
    assert_array_equal(ours.coef_, theirs.coef_)
    assert ours.certificate_.explain() == theirs.certificate_.explain()


def test_the_estimator_agrees_with_the_kernel() -> None:
    X, y, _ = contaminated()
    reg, found = MassartReLURegressor(random_state=0).fit(X, y), recover_matrix(X, y, link=RELU)
    assert_allclose(reg.coef_, found.coef, atol=1e-13)
    assert reg.certificate_.n_decisive == found.certificate.n_decisive
    assert reg.certificate_.n_active == found.certificate.n_active


@pytest.mark.slow
def test_a_layer_equals_its_neurons() -> None:
    X, Y, V = layer()
    reg = MassartReLURegressor(random_state=0).fit(X, Y)
    assert_allclose(reg.coef_, V, atol=1e-13)
    assert reg.intercept_.shape == reg.noise_rate_.shape == reg.scale_.shape == (3,)
    assert reg.inlier_mask_.shape == Y.shape
    assert_allclose(reg.predict(X), np.maximum(0, X @ V.T), atol=1e-12)
    for j in range(3):
        single = MassartReLURegressor(random_state=0).fit(X, Y[:, j])
        assert_allclose(reg.coef_[j], single.coef_, rtol=1e-13, atol=1e-13)
        assert_array_equal(reg.inlier_mask_[:, j], single.inlier_mask_)
        assert reg.exact_coef_[j] == single.exact_coef_
        assert reg.certificate_[j].verdict is single.certificate_.verdict


def test_parameters_are_stored_and_nothing_else() -> None:
    link = Link(slope=0.1)
    reg = MassartReLURegressor(fit_intercept=True, link=link, tolerance=1e-9, inliers="exact", random_state=3)
    assert sorted(reg.get_params()) == ["fit_intercept", "inliers", "link", "random_state", "tolerance"]
    assert reg.get_params()["link"] is link
    assert clone(reg).get_params() == reg.get_params()
    assert reg.set_params(link=None, tolerance="auto").link is None
    X, y, _ = contaminated()
    before = MassartReLURegressor(random_state=0)
    assert before.fit(X, y).get_params() == MassartReLURegressor(random_state=0).get_params()


@pytest.mark.slow
def test_noisy_labels_have_a_scale_and_standard_errors() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 4))
    y = np.where(rng.random(500) < 0.3, 40.0, RELU(X @ W + 0.1 * rng.standard_normal(500)))
    reg = MassartReLURegressor(inliers="noisy", random_state=0).fit(X, y)
    assert reg.certificate_.verdict is Verdict.NOISY
    assert reg.scale_ == pytest.approx(0.1, rel=0.2)
    assert np.all((reg.standard_errors_ > 0) & (reg.standard_errors_ < 0.05))
    assert_allclose(reg.coef_, W, atol=0.1)
    assert reg.exact_coef_ == (None,) * 4


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_give_names_to_the_certificate(library: str) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    X, y, right = contaminated()
    frame = module.DataFrame(dict(zip(["price", "tax", "fee", "rate"], X.T, strict=True)) | {"twice": 2 * X[:, 1]})
    with pytest.warns(ConvergenceWarning, match="tax and twice always move together"):
        reg = MassartReLURegressor(fit_intercept=True, random_state=0).fit(frame, module.Series(y))
    assert_array_equal(reg.feature_names_in_, ["price", "tax", "fee", "rate", "twice"])
    assert reg.certificate_.undetermined_columns == ((1, 4),)
    assert_array_equal(reg.inlier_mask_, right)
    assert_allclose(reg.predict(frame)[right], y[right], rtol=1e-12, atol=1e-13)


def test_a_large_table_is_recovered_from_a_sample_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n, d = 200_000, 10
    X = rng.standard_normal((n, d))
    w = rng.standard_normal(d)
    right = rng.random(n) > 0.3
    y = np.where(right, np.maximum(0, X @ w), np.maximum(0, -X @ w))
    asked: list[int] = []
    sample = ArrayRows.sample

    def spy(self: ArrayRows, size: int, rng: np.random.Generator, weights: Any = None) -> Any:
        asked.append(size)
        return sample(self, size, rng, weights)

    monkeypatch.setattr(ArrayRows, "sample", spy)
    reg = MassartReLURegressor(random_state=0).fit(X, y)
    assert_allclose(reg.coef_, w, rtol=1e-12)
    assert_array_equal(reg.inlier_mask_, right)
    assert asked
    assert sum(asked) < n / 4
    assert reg.certificate_.n_rows == n
    assert reg.certificate_.n_agree == right.sum()
    assert reg.certificate_.n_active == (X @ w > 0).sum()
    assert reg.certificate_.verdict.stands


def test_the_driver_takes_any_link() -> None:
    link = Link(lower=-1, upper=3)
    X, y, right = contaminated(n=30_000, link=link)
    found = recover(ArrayRows(X, y), rng=np.random.default_rng(0), link=link)
    assert_allclose(found.coef[:, 0], W, atol=1e-13)
    assert_array_equal(found.agree[:, 0], right)
    assert found.noise_rate[0] == pytest.approx(0.3)
    assert found.certificates[0].verdict.stands


# Labels and rows that leave something open: the verdict says so and claims no more.


@pytest.mark.slow
def test_the_warning_is_the_certificate_and_points_at_the_caller() -> None:
    X, Y, _ = layer()
    Y[:, 1] = np.random.default_rng(1).permutation(400) ** 3
    with pytest.warns(ConvergenceWarning) as caught:
        reg = MassartReLURegressor(inliers="exact", random_state=0).fit(X, Y)
    (warning,) = caught
    assert str(warning.message) == f"NONE (output 1): {reg.certificate_[1].explain()}"
    assert warning.filename == __file__
    assert reg.certificate_[0].verdict.stands
    assert_array_equal(np.isnan(reg.standard_errors_), [[False] * 3, [True] * 3, [False] * 3])


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_labels_that_are_all_zero(fit_intercept: bool) -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    with pytest.warns(ConvergenceWarning, match="NONE: No rule was found"):
        reg = MassartReLURegressor(fit_intercept=fit_intercept, random_state=0).fit(X, np.zeros(60))
    assert_array_equal(reg.coef_, 0)
    assert_array_equal(reg.predict(X), 0)
    assert reg.inlier_mask_.all()
    assert reg.certificate_.verdict is Verdict.NONE


def test_labels_that_are_all_negative() -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    with pytest.warns(ConvergenceWarning, match="NONE: No rule was found"):
        reg = MassartReLURegressor(random_state=0).fit(X, -1.0 - X[:, 0] ** 2)
    assert_array_equal(reg.coef_, 0)
    assert not reg.inlier_mask_.any()
    assert reg.noise_rate_ == 1


@pytest.mark.parametrize("n", [1, 3, 7])
def test_fewer_rows_than_coefficients(n: int) -> None:
    X = np.random.default_rng(0).standard_normal((n, 8))
    with pytest.warns(ConvergenceWarning, match="NONE: .*any table has a formula for so few"):
        reg = MassartReLURegressor(random_state=0).fit(X, np.arange(n) + 1.0)
    assert_allclose(reg.predict(X), np.arange(n) + 1.0, rtol=1e-10)
    assert reg.certificate_.rank == n


@pytest.mark.parametrize(
    ("X", "y"),
    [
        pytest.param(np.zeros((20, 2)), np.zeros(20), id="zero rows"),
        pytest.param(np.zeros((20, 2)), np.ones(20), id="zero rows of other labels"),
        pytest.param(-np.ones((20, 1)), [0.0] * 19 + [4.0], id="no active row"),
        pytest.param([[1.0]], [2.0], id="one row"),
    ],
)
def test_tables_that_determine_little_are_not_claimed(X: Any, y: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="NONE|PLURALITY"):
        reg = MassartReLURegressor(random_state=0).fit(X, y)
    assert np.isfinite(reg.coef_).all()
    assert not reg.certificate_.verdict.stands


def test_constant_columns_determine_their_sum() -> None:
    with pytest.warns(
        ConvergenceWarning, match="every coefficient: .*x0 and x1 always move together.*The column is constant"
    ):
        reg = MassartReLURegressor(random_state=0).fit(np.ones((20, 2)), np.ones(20))
    assert reg.coef_.sum() == pytest.approx(1)


def test_one_column_and_a_column_of_zeros() -> None:
    x = np.arange(-20.0, 21)
    y = np.maximum(0, 3 * x)
    y[::5] = 50
    reg = MassartReLURegressor(random_state=0).fit(x[:, None], y)
    assert (reg.coef_.tolist(), reg.certificate_.verdict) == ([3.0], Verdict.PROVEN)
    with pytest.warns(ConvergenceWarning, match="Nothing determines the coefficient of x1"):
        reg = MassartReLURegressor(random_state=0).fit(np.column_stack([x, 0 * x]), y)
    assert_array_equal(reg.coef_, [3, 0])
    assert reg.certificate_.verdict is Verdict.PROVEN


# One clear error, which names the argument and the place.

GOOD_X, GOOD_Y, _ = contaminated(n=30)


def with_entry(array: Array, place: Any, value: float) -> Array:
    changed = array.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (GOOD_X, with_entry(GOOD_Y, 17, np.nan), "y must be finite, got NaN at row 17"),
        (GOOD_X, with_entry(GOOD_Y, 3, np.inf), "y must be finite, got inf at row 3"),
        (with_entry(GOOD_X, (11, 2), np.nan), GOOD_Y, "X must be finite, got NaN at row 11, column 2"),
        (GOOD_X, GOOD_Y[:-1], "y has 29 rows but X has 30"),
        (GOOD_X[:0], GOOD_Y[:0], "0 sample"),
        (GOOD_X[:, :0], GOOD_Y, "0 feature"),
        (GOOD_X, ["yes"] * 30, "y must hold real numbers"),
        (1e160 * GOOD_X, GOOD_Y, "X must have its largest number between .*choose another unit"),
    ],
)
def test_bad_data_is_named(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MassartReLURegressor(random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"link": "relu"}, "link must be a massart.Link or None, got 'relu'"),
        ({"link": np.tanh}, "link must be a massart.Link or None"),
        ({"link": Link}, "link must be a massart.Link or None"),
        ({"tolerance": -1.0}, "tolerance .*-1"),
        ({"inliers": "most"}, "inliers .*most"),
        ({"random_state": "now"}, "now"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MassartReLURegressor(**parameters).fit(GOOD_X, GOOD_Y)
