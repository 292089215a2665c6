"""Data that other estimators stumble over, and data that nobody can fit: a right answer or one clear error."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from massart import Link, MassartPACRegressor, MassartRegressor, MassartReLURegressor
from massart.certificate import Verdict

Array = np.ndarray[Any, Any]


def fit(X: Any, y: Any, sample_weight: Any = None, **parameters: Any) -> MassartRegressor:
    """Fit with a fixed seed; a single column may be given flat."""
    table = np.reshape(X, (len(y), -1))
    return MassartRegressor(random_state=0, **parameters).fit(table, y, sample_weight=sample_weight)


# Exact and near-exact fits that crash or give NaN elsewhere; each name ends with the public thread.


@pytest.mark.parametrize(
    ("x", "y", "coef", "intercept", "parameters"),
    [
        pytest.param([0, 0.96, 2.18], [2.8] * 3, 0, 2.8, {}, id="constant labels on three points, statsmodels 55"),
        pytest.param(range(80, -1, -10), range(-4, -13, -1), 0.1, -12, {}, id="noiseless line, statsmodels 3319"),
        pytest.param(range(1, 17), [*range(1, 16), 1000], 1, 0, {}, id="with one outlier, statsmodels 3319"),
        pytest.param(range(10), range(0, 100, 10), 10, 0, {}, id="ten points on a line, statsmodels 2425"),
        pytest.param(range(100), [0.0] * 100, 0, 0, {}, id="horizontal line, scikit-learn 19497"),
        pytest.param(range(10), range(0, 100, 10), 10, 0, {"tolerance": 0}, id="zero tolerance, scikit-learn 4907"),
        pytest.param(
            range(30),
            [3 * x + 1 + (x % 4 == 0) * (x / 9 - 1.1) for x in range(30)],
            *(3, 1, {}),
            id="some residuals exactly zero, statsmodels 2377",
        ),
    ],
)
def test_exact_lines_are_exact(x: Any, y: Any, coef: float, intercept: float, parameters: Any) -> None:
    reg = fit([*x], [*y], **parameters)
    assert (reg.coef_.tolist(), reg.intercept_) == ([coef], intercept)
    assert reg.exact_coef_ == (Fraction(str(coef)),)
    assert (reg.standard_errors_.tolist(), reg.scale_) == ([0.0], 0.0)
    right = np.isclose(np.array(y, dtype=float), coef * np.array(x) + intercept, rtol=1e-14, atol=0)
    assert_array_equal(reg.inlier_mask_, right)


def test_most_labels_equal_scikit_learn_4938() -> None:
    with pytest.warns(ConvergenceWarning, match="NONE: No rule was found: .* most frequent value"):
        reg = fit([0.97873798, 2.2408932, 1.76405235, 1.86755799, 0.40015721], [1.0, 1.0, 2.0, 1.0, 1.0])
    assert (reg.coef_.tolist(), reg.intercept_) == ([0.0], 1.0)
    assert_array_equal(reg.inlier_mask_, [True, True, False, True, True])
    assert reg.noise_rate_ == pytest.approx(0.2)


def test_more_than_half_of_the_labels_equal_scikit_learn_16147() -> None:
    x = np.arange(21.0)
    y = np.where(x < 12, 4.0, x**2)
    with pytest.warns(ConvergenceWarning, match="NONE: .* hardly more rows than the most frequent value does"):
        reg = fit(x, y)
    assert (reg.coef_.tolist(), reg.intercept_) == ([0.0], 4.0)
    assert_array_equal(reg.inlier_mask_, x < 12)


def test_constant_labels_with_weights_scikit_learn_27777() -> None:
    reg = fit([10, 11, 28], np.log([5000.0, 5000.0, 5000.0]), sample_weight=[2.0, 2.0, 2.0])
    assert_allclose(reg.coef_, [0], atol=1e-15)
    assert reg.intercept_ == pytest.approx(np.log(5000.0), rel=1e-15)


@pytest.mark.parametrize("size", [1e-14, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("gross", [0.0, 0.4])
def test_almost_exact_fits_neither_crash_nor_lose_digits_statsmodels_1341(size: float, gross: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(100)
    y = 3 * x + 1 + size * rng.standard_normal(100)
    wrong = np.arange(100) < 100 * gross
    y[wrong] += rng.uniform(5, 50, wrong.sum())
    reg = fit(x, y)
    assert_allclose([reg.coef_[0], reg.intercept_], [3, 1], atol=5 * size)
    assert not reg.inlier_mask_[wrong].any()
    assert reg.inlier_mask_[~wrong].mean() > 0.8
    if size >= 1e-9:
        assert reg.certificate_.verdict is Verdict.NOISY
        assert 0.5 * size < reg.scale_ < 2 * size


def test_noisy_was_asked_for_and_the_labels_are_exact() -> None:
    reg = fit(range(20), range(5, 65, 3), inliers="noisy")
    assert_allclose([reg.coef_[0], reg.intercept_], [3, 5], rtol=1e-12)
    assert np.isfinite(reg.standard_errors_).all()


def test_dummy_and_collinear_columns_statsmodels_2597() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, size=400)
    X = np.column_stack([np.eye(4)[group], rng.standard_normal(400)])
    clean = X @ [1.0, 2, 3, 4, -1]
    y = np.where(np.arange(400) < 150, 99.0, clean)
    with pytest.warns(ConvergenceWarning, match="x3 and the intercept always move together"):
        reg = fit(X, y)
    assert reg.certificate_.verdict.stands
    assert_allclose(reg.predict(X), clean, atol=1e-12)
    assert reg.coef_[4] == pytest.approx(-1)


# Labels and rows that leave something open: the verdict says so and claims no more.


@pytest.mark.parametrize(("label", "fit_intercept"), [(7.0, True), (0.0, True), (0.0, False)])
def test_all_labels_equal(label: float, fit_intercept: bool) -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    reg = fit(X, np.full(60, label), fit_intercept=fit_intercept)
    assert (reg.coef_.tolist(), reg.intercept_, reg.certificate_.verdict) == ([0.0, 0.0, 0.0], label, Verdict.PROVEN)


def relu(X: Any, y: Any, *, doubt: str, **parameters: Any) -> MassartReLURegressor:
    """Fit a ReLU to labels that leave a doubt, which the warning names."""
    with pytest.warns(ConvergenceWarning, match=doubt):
        return MassartReLURegressor(random_state=0, **parameters).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_labels_of_a_relu_that_are_all_zero_or_negative_are_no_rule(fit_intercept: bool) -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    for y in (np.zeros(60), -1.0 - X[:, 0] ** 2):
        reg = relu(X, y, doubt="NONE: No rule was found", fit_intercept=fit_intercept)
        assert_array_equal(reg.coef_, 0)
        assert_array_equal(reg.inlier_mask_, y == 0)
        assert reg.certificate_.verdict is Verdict.NONE


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
    reg = relu(X, y, doubt="NONE|PLURALITY")
    assert np.isfinite(reg.coef_).all()
    assert not reg.certificate_.verdict.stands


def test_columns_of_a_relu_that_are_constant_or_zero() -> None:
    always = "every coefficient: .*x0 and x1 always move together.*The column is constant"
    assert relu(np.ones((20, 2)), np.ones(20), doubt=always).coef_.sum() == pytest.approx(1)
    x = np.arange(-20.0, 21)
    y = np.maximum(0, 3 * x)
    y[::5] = 50
    reg = relu(np.column_stack([x, 0 * x]), y, doubt="Nothing determines the coefficient of x1")
    assert (reg.coef_.tolist(), reg.certificate_.verdict) == ([3.0, 0.0], Verdict.PROVEN)


@pytest.mark.parametrize("n", [1, 3, 7])
@pytest.mark.parametrize("estimator", [MassartRegressor, MassartReLURegressor])
def test_fewer_rows_than_coefficients(estimator: Any, n: int) -> None:
    X = np.random.default_rng(0).standard_normal((n, 8))
    with pytest.warns(ConvergenceWarning, match="NONE: .*any table has a formula for so few"):
        reg = estimator(random_state=0).fit(X, np.arange(n) + 1.0)
    assert_allclose(reg.predict(X), np.arange(n) + 1.0, rtol=1e-10)
    assert reg.certificate_.rank == n


def test_as_many_rows_as_coefficients_confirm_nothing() -> None:
    X = np.random.default_rng(0).standard_normal((3, 2))
    with pytest.warns(ConvergenceWarning, match="NONE"):
        reg = fit(X, [1.0, 5.0, -2.0])
    assert reg.certificate_.verdict is Verdict.NONE
    assert reg.inlier_mask_.all()  # as counted


def test_a_column_of_zeros_has_no_coefficient() -> None:
    X = np.random.default_rng(0).standard_normal((50, 3))
    X[:, 1] = 0
    with pytest.warns(ConvergenceWarning, match="Nothing determines the coefficient of x1"):
        reg = fit(X, X @ [1, 2, 3])
    assert_allclose(reg.coef_, [1, 0, 3], atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.55, 0.7, 0.9])
@pytest.mark.parametrize("inliers", ["auto", "exact"])
def test_more_than_half_wrong_is_never_called_a_majority(share: float, inliers: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = X @ [1.0, 2, 3, 4]
    y[: int(200 * share)] = 9 * rng.standard_normal(int(200 * share))
    with pytest.warns(ConvergenceWarning, match="PLURALITY: .*At most half of the rows agree|NONE: No rule was found"):
        reg = fit(X, y, inliers=inliers)
    assert reg.certificate_.verdict is (Verdict.PLURALITY if share < 0.9 else Verdict.NONE)
    assert reg.noise_rate_ > 0.5


@pytest.mark.parametrize("inliers", ["auto", "exact", "noisy"])
def test_labels_without_any_formula_are_never_called_a_majority(inliers: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((150, 3)), rng.standard_normal(150)
    try:
        reg = fit(X, y, inliers=inliers)
    except ConvergenceWarning:  # an error in this suite: a verdict of doubt
        return
    assert reg.certificate_.verdict is Verdict.NOISY


@pytest.mark.slow
def test_duplicated_rows_with_contradicting_labels() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((40, 3)), 5, axis=0)
    y = X @ [1.0, -1, 2] + np.tile([0, 0, 0, 4, -7], 40)
    reg = fit(X, y)
    assert_allclose(reg.coef_, [1, -1, 2], rtol=1e-13)
    assert_array_equal(reg.inlier_mask_, np.tile([True, True, True, False, False], 40))
    assert reg.certificate_.verdict.stands


def test_duplicated_rows_that_only_contradict_each_other() -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((20, 3)), 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="NONE: No rule was found"):
        fit(X, np.tile(np.arange(10.0), 20), inliers="exact")


@pytest.mark.parametrize("unit", [1e-150, 1e150])
@pytest.mark.parametrize("column", [1e-100, 1e100])
def test_extreme_units_change_nothing_but_the_units(unit: float, column: float) -> None:
    X = np.random.default_rng(0).standard_normal((120, 3))
    y = X @ [1.0, -2, 0.5] + 4
    y[::3] += 10
    reg = fit(X * column, y * unit)
    assert_allclose(reg.coef_ * column / unit, [1, -2, 0.5], rtol=1e-12)
    assert_allclose(reg.intercept_ / unit, 4, rtol=1e-12)
    assert reg.certificate_.verdict.stands


def test_decimals_are_read_as_numbers() -> None:
    X = [[Decimal(i), Decimal(i * i) / 4] for i in range(12)]
    y = [Decimal("0.1") * row[0] + 2 * row[1] for row in X]
    reg = MassartRegressor(random_state=0).fit(X, y)
    assert reg.exact_coef_ == (Fraction(1, 10), Fraction(2))


# One clear error, which names the argument and the place.

GOOD_X = np.random.default_rng(0).standard_normal((30, 3))
GOOD_Y = GOOD_X @ [1.0, 2, 3]
LARGE = np.arange(40).reshape(20, 2)
LARGE[3, 1] = 2**53 + 1


def with_entry(array: Array, place: Any, value: float) -> Array:
    changed = array.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (GOOD_X, with_entry(GOOD_Y, 17, np.nan), "y must be finite, got NaN at row 17"),
        (GOOD_X, with_entry(GOOD_Y, 3, -np.inf), "y must be finite, got -inf at row 3"),
        (with_entry(GOOD_X, (11, 2), np.nan), GOOD_Y, "X must be finite, got NaN at row 11, column 2"),
        (with_entry(np.ones((100_000, 3)), (-1, 1), np.nan), np.ones(100_000), "got NaN at row 99999, column 1"),
        (with_entry(GOOD_X, (0, 1), np.inf), GOOD_Y, "X must be finite, got inf at row 0, column 1"),
        (GOOD_X, GOOD_Y[:-1], "y has 29 rows but X has 30"),
        (GOOD_X, [None] + list(GOOD_Y[1:]), "y must be finite, got NaN at row 0"),
        (GOOD_X, ["yes"] * 30, "y must hold real numbers"),
        (GOOD_X, ["yes"] + list(GOOD_Y[1:]), "y must hold real numbers"),
        (GOOD_X, None, "requires y to be passed"),
        (GOOD_X, np.ones((30, 1, 1)), "Found array with dim 3"),
        (GOOD_X, np.ones((30, 0)), "0 feature"),
        (GOOD_X, 2**53 + np.arange(30), r"y holds the integer \d+, above 2\*\*53"),
        (GOOD_X[:0], GOOD_Y[:0], "0 sample"),
        (GOOD_X[:, :0], GOOD_Y, "0 feature"),
        (GOOD_Y, GOOD_Y, "Expected 2D array, got 1D array"),
        (GOOD_X.astype(str), GOOD_Y, "X must hold real numbers"),
        (GOOD_X.astype("datetime64[s]"), GOOD_Y, "X must hold real numbers"),
        ([[1.0, 2], [3, "n/a"], [5, 6]], [1, 2, 3], "X must hold real numbers"),
        (
            np.array([[1.0, 2], [3, "n/a"], [5, 6]], dtype=object),
            [1, 2, 3],
            "X must hold numbers, got 'n/a' in row 1 of column 1",
        ),
        ([[1, 2], [3]], [1, 2], "inhomogeneous"),
        (GOOD_X + 1j, GOOD_Y, "Complex data not supported"),
        (sparse.csr_array(LARGE), np.arange(20.0), "X .*9007199254740993"),
        (LARGE, np.arange(20.0), "X .*9007199254740993"),
    ],
)
def test_bad_data_is_named(X: Any, y: Any, message: str) -> None:
    for estimator in (MassartRegressor, MassartReLURegressor, MassartPACRegressor):
        with pytest.raises(ValueError, match=message):
            estimator(random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [
        (MassartRegressor, {"tolerance": -1.0}, "tolerance .*-1"),
        (MassartRegressor, {"tolerance": float("nan")}, "tolerance .*nan"),
        (MassartRegressor, {"tolerance": "tight"}, "tolerance .*tight"),
        (MassartRegressor, {"tolerance": None}, "tolerance .*None"),
        (MassartRegressor, {"inliers": "most"}, "inliers .*most"),
        (MassartRegressor, {"random_state": "now"}, "now"),
        (MassartReLURegressor, {"link": "relu"}, "link must be a massart.Link or None, got 'relu'"),
        (MassartReLURegressor, {"link": Link}, "link must be a massart.Link or None"),
        (MassartReLURegressor, {"inliers": None}, "inliers .*None"),
        (MassartPACRegressor, {"epsilon": 0.0}, "epsilon must be between 0 and 1"),
        (MassartPACRegressor, {"epsilon": 1.0}, "epsilon must be between 0 and 1"),
        (MassartPACRegressor, {"eta": 0.5}, "eta must be at least 0 and below 1/2"),
        (MassartPACRegressor, {"confidence": 1.0}, "confidence must be between 0 and 1"),
        (MassartPACRegressor, {"tolerance": -1.0}, "tolerance must be finite and not negative"),
    ],
)
def test_bad_parameters_are_named(estimator: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(GOOD_X, GOOD_Y)


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.ones(29), r"sample_weight must have shape \(30,\), got \(29,\)"),
        (np.ones((30, 1)), r"sample_weight must have shape \(30,\), got \(30, 1\)"),
        (np.zeros(30), "sample_weight must not be zero for every row"),
        (with_entry(np.ones(30), 4, -2), "sample_weight must not be negative, got -2 at row 4"),
        (with_entry(np.ones(30), 4, np.nan), "sample_weight must be finite, got NaN at row 4"),
        (["heavy"] * 30, "sample_weight must hold real numbers"),
    ],
)
def test_bad_weights_are_named(sample_weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MassartRegressor(random_state=0).fit(GOOD_X, GOOD_Y, sample_weight=sample_weight)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_text_in_a_frame_is_named_by_its_column(library: str) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    frame = module.DataFrame({"price": [1.5, 2.5, 3.5], "city": ["Bonn", "Kiel", "Ulm"]})
    with pytest.raises(ValueError, match="X must hold numbers, got 'Bonn' in row 0 of city"):
        MassartRegressor().fit(frame, [1, 2, 3])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_value_in_a_frame_is_found(library: str) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    frame = module.DataFrame({"price": [1.5, 2.5, 3.5], "tax": [1, None, 3]})
    with pytest.raises(ValueError, match=r"X must be finite, got NaN at row 1, column 1 \(tax\)$"):
        MassartRegressor().fit(frame, [1, 2, 3])


def test_predict_rejects_what_it_cannot_use() -> None:
    reg = MassartRegressor(random_state=0).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        reg.predict(with_entry(GOOD_X, (1, 1), np.nan))
    with pytest.raises(ValueError, match="expecting 3 features"):
        reg.predict(GOOD_X[:, :2])


def test_columns_too_large_or_too_far_apart_are_named() -> None:
    for estimator in (MassartRegressor, MassartReLURegressor):
        with pytest.raises(ValueError, match="X must have its largest number between .*choose another unit"):
            estimator(random_state=0).fit(1e160 * GOOD_X, GOOD_Y)
    X = [[-7.7e-92, 1.0e72, 9.0e66], [1.2e-91, -7.6e70, 1.4e67], [4.6e-92, -2.6e71, 1.1e67]]
    with pytest.raises(ValueError, match="other units"):
        MassartRegressor(inliers="exact", random_state=0).fit(X, np.zeros(3))
