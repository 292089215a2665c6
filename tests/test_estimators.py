"""Estimators keep scikit-learn's contract, and add the rows that are wrong, what is proven, and a report of both."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from massart import Link, MassartPACRegressor, MassartRegressor, MassartReLURegressor
from massart.certificate import Certificate, Verdict
from massart.recover import PACStatus
from massart.rows import IDENTITY, RELU

Array = np.ndarray[Any, Any]

W = np.array([2.0, -0.5, 0.0, 3.25])
INTERCEPT = 7.0

LINEAR = pytest.param(MassartRegressor(random_state=0), IDENTITY, id="linear")
CLIPPED = pytest.param(MassartReLURegressor(fit_intercept=True, random_state=0), RELU, id="ReLU")
PAC = pytest.param(MassartPACRegressor(random_state=0), IDENTITY, id="PAC")

SLOW = (  # many searches in labels without a rule: done with noisy inliers, which search less
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_regressors_train",
)


def contaminated(
    seed: int = 0,
    n: int = 200,
    rate: float = 0.3,
    outputs: int = 1,
    link: Link = IDENTITY,
    intercept: float = INTERCEPT,
) -> tuple[Array, Array, Array]:
    """Return rows, labels of a known formula, and which of them are right."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, len(W)))
    y = link(np.stack([(j + 1) * (X @ W) + intercept + j for j in range(outputs)], axis=1))
    right = np.ones((n, outputs), dtype=bool)
    for j in range(outputs):
        right[rng.choice(n, round(rate * n), replace=False), j] = False
    y[~right] += rng.uniform(1, 100, size=(~right).sum())
    return (X, y[:, 0], right[:, 0]) if outputs == 1 else (X, y, right)


def checks() -> Iterator[Any]:
    """Each of scikit-learn's checks of each estimator once; those of links partly with noisy inliers."""
    for estimator in (MassartRegressor(), MassartPACRegressor(), *map(MassartReLURegressor, *_RELU_VARIANTS)):
        for one, check in estimator_checks_generator(estimator):
            name = check.func.__name__
            if not isinstance(one, MassartReLURegressor) or (name in SLOW) == (one.inliers == "noisy"):
                yield pytest.param(one, check, id=f"{type(one).__name__}-{name}")


_RELU_VARIANTS = ([False, False], [None, None], ["auto", "auto"], ["auto", "noisy"])


@pytest.mark.full(every=3)
@pytest.mark.parametrize(("estimator", "check"), [*checks()])
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED, PAC])
def test_the_formula_and_the_wrong_rows_are_found(estimator: Any, link: Link) -> None:
    X, y, right = contaminated(link=link, n=600)
    reg = clone(estimator).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-13)
    assert reg.intercept_ == pytest.approx(INTERCEPT, rel=1e-13)
    assert_array_equal(reg.inlier_mask_, right)
    assert reg.noise_rate_ == pytest.approx(0.3)
    assert isinstance(reg.certificate_, Certificate)
    assert reg.certificate_.verdict.stands
    assert reg.scale_ == 0
    assert_allclose(reg.predict(X)[right], y[right], rtol=1e-12, atol=1e-13)
    assert reg.score(X[right], y[right]) == pytest.approx(1)
    if not isinstance(reg, MassartPACRegressor):
        assert reg.exact_coef_ == (Fraction(2), Fraction(-1, 2), Fraction(0), Fraction(13, 4))
        assert reg.exact_intercept_ == Fraction(7)
        assert_array_equal([*reg.standard_errors_, reg.intercept_standard_error_], np.zeros(5))


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.45])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # not confirmed at 45 %, but right
def test_the_share_of_wrong_labels_is_estimated_and_never_asked_for(rate: float) -> None:
    X, y, right = contaminated(seed=int(100 * rate), rate=rate)
    reg = MassartRegressor(random_state=0).fit(X, y)
    assert reg.noise_rate_ == pytest.approx(1 - right.mean())
    assert_array_equal(reg.inlier_mask_, right)
    assert sorted(reg.get_params()) == ["errors", "fit_intercept", "inliers", "random_state", "tolerance"]


@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED, PAC])
def test_without_an_intercept_the_constant_is_zero(estimator: Any, link: Link) -> None:
    X, y, right = contaminated(n=600, intercept=0, link=link)
    reg = clone(estimator).set_params(fit_intercept=False).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-13)
    assert (reg.intercept_, reg.exact_intercept_) == (0.0, Fraction(0))
    assert_array_equal(reg.inlier_mask_, right)


@pytest.mark.parametrize(
    "link",
    [Link(slope=0.1), Link(lower=-1, upper=3), Link(lower=-np.inf, upper=2.5), Link(lower=-np.inf)],
    ids=["leaky", "two-sided", "right-censored", "identity"],
)
@pytest.mark.parametrize("intercept", [0.0, 1.5])
def test_predictions_are_the_link_of_the_products(link: Link, intercept: float) -> None:
    X, y, right = contaminated(n=400, rate=0.25, link=link, intercept=intercept)
    reg = MassartReLURegressor(fit_intercept=bool(intercept), link=link, random_state=0).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-12)
    assert reg.intercept_ == pytest.approx(intercept, abs=1e-12)
    far = 100 * X
    assert_allclose(reg.predict(far), link(far @ W + intercept), rtol=1e-11, atol=1e-11)
    assert reg.inlier_mask_[right].all()


@pytest.mark.slow
def test_the_identity_is_the_linear_estimator() -> None:
    X, y, _ = contaminated(intercept=0)
    ours = MassartReLURegressor(link=Link(lower=-np.inf), random_state=0).fit(X, y)
    theirs = MassartRegressor(fit_intercept=False, random_state=0).fit(X, y)
    assert_array_equal(ours.coef_, theirs.coef_)
    assert ours.certificate_.explain() == theirs.certificate_.explain()


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED])
def test_noisy_labels_have_a_scale_and_standard_errors(estimator: Any, link: Link) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 4))
    y = np.where(rng.random(600) < 0.3, 40.0, link(X @ W + INTERCEPT + 0.1 * rng.standard_normal(600)))
    reg = clone(estimator).set_params(inliers="noisy").fit(X, y)
    assert reg.certificate_.verdict is Verdict.NOISY
    assert reg.scale_ == pytest.approx(0.1, rel=0.2)
    assert np.all((reg.standard_errors_ > 0) & (reg.standard_errors_ < 0.05))
    assert 0 < reg.intercept_standard_error_ < 0.05
    assert_allclose(reg.coef_, W, atol=0.1)
    assert reg.exact_coef_ == (None,) * 4


def plane(n: int = 600) -> tuple[Array, Array, Array]:
    """Return rows of a plane in R^4, which leave coefficients open."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, 4))
    y = X @ W + INTERCEPT
    right = rng.random(n) >= 0.3
    y[~right] += rng.uniform(1, 100, (~right).sum())
    return X, y, right


def test_pac_products_are_right_where_coefficients_are_open() -> None:
    X, y, right = plane()
    reg = MassartPACRegressor(random_state=0).fit(X, y)
    assert_allclose(reg.predict(X), X @ W + 7, rtol=1e-9, atol=1e-9)
    assert_array_equal(reg.inlier_mask_, right)
    assert 0 < reg.epsilon_ <= 0.05
    assert_allclose(X @ reg.certificate_.undetermined[:-1] + reg.certificate_.undetermined[-1], 0, atol=1e-9)
    assert reg.pac_formula_.status is PACStatus.PROVEN
    few, labels, _ = plane(n=12)
    with pytest.warns(ConvergenceWarning, match="SHORT: With confidence 95 %") as caught:
        assert MassartPACRegressor(random_state=0).fit(few, labels).epsilon_ > 0.05
    assert caught[0].filename == __file__


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED, PAC])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # PAC of noisy labels
def test_the_same_seed_gives_the_same_bytes(estimator: Any, link: Link, noise: float) -> None:
    X, y, _ = contaminated(n=500, rate=0.4, link=link)
    y = link(y + noise * np.random.default_rng(1).standard_normal(len(y)))
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    first, second = (pickle.dumps(vars(clone(estimator).fit(X, y))) for _ in range(2))
    assert first == second
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002
    state = np.random.RandomState(3)
    clone(estimator).set_params(random_state=state).fit(X, y)
    assert state.get_state()[2] != np.random.RandomState(3).get_state()[2]


@pytest.mark.parametrize(
    ("estimator", "link"),
    [
        pytest.param(MassartRegressor(tolerance=1e-9, random_state=0), IDENTITY, id="linear"),
        pytest.param(MassartReLURegressor(True, Link(lower=-1, upper=9), random_state=0), Link(-1, 9), id="two limits"),
        pytest.param(MassartPACRegressor(epsilon=0.1, random_state=0), IDENTITY, id="PAC"),
    ],
)
def test_pickling_and_cloning_keep_everything(estimator: Any, link: Link) -> None:
    X, y, _ = contaminated(link=link, n=600)
    parameters = estimator.get_params()
    reg = estimator.fit(X, y)
    again = pickle.loads(pickle.dumps(reg))
    assert_array_equal(again.predict(X), reg.predict(X))
    assert again.certificate_.explain() == reg.certificate_.explain()
    assert clone(reg).get_params() == reg.get_params() == parameters
    with pytest.raises(NotFittedError):
        clone(reg).predict(X)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED, PAC])
def test_several_outputs_equal_single_fits(estimator: Any, link: Link) -> None:
    X, y, right = contaminated(outputs=3, link=link, n=500)
    reg = clone(estimator).fit(X, y)
    assert reg.coef_.shape == reg.standard_errors_.shape == (3, 4)
    assert reg.intercept_.shape == reg.noise_rate_.shape == reg.scale_.shape == (3,)
    assert_array_equal(reg.inlier_mask_, right)
    assert reg.predict(X).shape == (500, 3)
    for j in range(3):
        single = clone(estimator).fit(X, y[:, j])
        assert_allclose(reg.coef_[j], single.coef_, rtol=1e-12, atol=1e-12)
        assert reg.intercept_[j] == pytest.approx(single.intercept_, rel=1e-12)
        assert_array_equal(reg.inlier_mask_[:, j], single.inlier_mask_)
        assert reg.noise_rate_[j] == single.noise_rate_
        assert reg.exact_coef_[j] == single.exact_coef_
        assert reg.certificate_[j].verdict is single.certificate_.verdict


def test_one_column_of_labels_keeps_its_axis() -> None:
    X, y, _ = contaminated()
    reg = MassartRegressor(random_state=0).fit(X, y[:, None])
    assert reg.coef_.shape == (1, 4)
    assert reg.inlier_mask_.shape == reg.predict(X).shape == (200, 1)
    assert len(reg.certificate_) == len(reg.exact_coef_) == 1


@pytest.mark.slow
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED, PAC])
def test_sparse_rows_equal_dense_ones(estimator: Any, link: Link, make: Any) -> None:
    rng = np.random.default_rng(0)
    dense = rng.integers(-3, 4, size=(300, 6)) * (rng.random((300, 6)) < 0.4)
    w = np.array([1.0, -2, 0.5, 4, 0, 1])
    y = link(dense @ w + 2)
    y[::8] = 1000
    of_dense = clone(estimator).fit(dense, y)
    of_sparse = clone(estimator).fit(make(dense.astype(float)), y)
    assert_allclose(of_dense.coef_, w, atol=1e-12)
    assert_allclose(of_sparse.coef_, of_dense.coef_, atol=1e-12)
    assert_array_equal(of_sparse.inlier_mask_, of_dense.inlier_mask_)
    assert of_sparse.certificate_.verdict is of_dense.certificate_.verdict
    assert_allclose(of_sparse.predict(make(dense)), of_dense.predict(dense), atol=1e-11)


@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED])
def test_a_zero_weight_removes_a_row_and_still_judges_it(estimator: Any, link: Link) -> None:
    X, y, right = contaminated(link=link)
    weights = np.ones(len(y))
    weights[:60] = 0
    weighted = clone(estimator).fit(X, y, sample_weight=weights)
    removed = clone(estimator).fit(X[60:], y[60:])
    assert_allclose(weighted.coef_, removed.coef_, rtol=1e-13, atol=1e-13)
    assert weighted.noise_rate_ == pytest.approx(removed.noise_rate_)
    assert weighted.certificate_.n_rows == removed.certificate_.n_rows == 140
    assert_array_equal(weighted.inlier_mask_, right)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED])
def test_whole_weights_repeat_rows(estimator: Any, link: Link) -> None:
    X, y, _ = contaminated(link=link)
    weights = np.random.default_rng(2).integers(0, 4, size=len(y))
    weighted = clone(estimator).fit(X, y, sample_weight=weights)
    repeated = clone(estimator).fit(X.repeat(weights, axis=0), y.repeat(weights))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-13, atol=1e-13)
    assert weighted.noise_rate_ == pytest.approx(repeated.noise_rate_)
    assert weighted.certificate_.n_agree == repeated.certificate_.n_agree
    assert weighted.certificate_.n_active == repeated.certificate_.n_active


def test_weights_decide_which_formula_has_the_majority() -> None:
    x = np.arange(20.0)
    y = np.where(x < 8, 2 * x, 5 * x + 1)
    heavy_start = np.where(x < 8, 10.0, 1.0)
    assert_allclose(MassartRegressor(random_state=0).fit(x[:, None], y).coef_, [5])
    assert_allclose(MassartRegressor(random_state=0).fit(x[:, None], y, sample_weight=heavy_start).coef_, [2])


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED])
def test_pipelines_and_cross_validation_work(estimator: Any, link: Link) -> None:
    X, y, right = contaminated(rate=0.2, link=link)
    wide = X * [1, 10, 100, 1] + [5, 0, 0, 0]
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(wide, y)
    assert_allclose(pipeline.predict(wide)[right], y[right], rtol=1e-9, atol=1e-9)
    scores = cross_val_score(estimator, X, y, scoring="neg_median_absolute_error", cv=4)
    assert_allclose(scores, 0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # none without a constant
def test_grid_search_over_the_tolerance_of_rounded_labels() -> None:
    X, y, right = contaminated(n=120, rate=0.25)
    y = np.round(y, 2)
    grid = {"tolerance": [0.005, 0.5, "auto"], "fit_intercept": [True, False]}
    search = GridSearchCV(MassartRegressor(random_state=0), grid, scoring="neg_median_absolute_error", cv=3)
    search.fit(X, y)
    assert search.best_params_["fit_intercept"] is True
    assert_allclose(search.best_estimator_.coef_, W, atol=5e-3)
    assert_array_equal(search.best_estimator_.inlier_mask_, right)


def test_an_absolute_tolerance_accepts_rounded_labels() -> None:
    X, y, right = contaminated()
    reg = MassartRegressor(tolerance=0.005, random_state=0).fit(X, np.round(y, 2))
    assert not reg.inlier_mask_[~right].any()
    assert reg.inlier_mask_[right].mean() > 0.97  # least squares may miss a row that was rounded by half a cent
    assert reg.certificate_.tolerance == pytest.approx(0.005)
    assert_allclose(reg.coef_, W, atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float16, np.int16, np.uint8, bool])
def test_labels_that_hold_in_the_precision_of_the_rows_are_exact(dtype: type) -> None:
    X = np.random.default_rng(0).integers(0, 2 if dtype is bool else 100, size=(400, 4)).astype(dtype)
    y = X @ W + INTERCEPT
    y[::3] += 11
    reg = MassartRegressor(random_state=0).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-12)
    assert reg.certificate_.verdict.stands
    assert reg.predict(X).dtype == np.float64


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [MassartRegressor, MassartPACRegressor])
def test_float32_tables_are_exact_up_to_their_own_rounding(estimator: Any) -> None:
    X, y, right = contaminated(n=1000)
    X32 = X.astype(np.float32)
    y32 = np.where(right, (X32.astype(float) @ W + INTERCEPT), y).astype(np.float32)
    reg = estimator(random_state=0).fit(X32, y32)
    assert_array_equal(reg.inlier_mask_, right)
    assert_allclose(reg.coef_, W, atol=1e-5)
    assert reg.certificate_.verdict.stands


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["C", "Fortran", "float32", "pandas"])
def test_fitting_a_large_table_copies_nothing_of_its_size(kind: str) -> None:
    X, y, _ = contaminated(n=400_000)
    X = np.hstack([X] + [np.random.default_rng(1).standard_normal((400_000, 16))])
    given: Any = {"Fortran": np.asfortranarray, "float32": np.float32}.get(kind, np.asarray)(X)
    if kind == "pandas":
        given = pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(X)
    MassartRegressor(random_state=0).fit(given[:1000], y[:1000])  # imports are done
    tracemalloc.start()
    MassartRegressor(random_state=0).fit(given, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", [MassartRegressor(random_state=0), MassartReLURegressor(True, random_state=0)])
def test_frames_give_names_to_the_certificate(library: str, estimator: Any) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    X, y, right = contaminated(link=RELU, n=400)
    names = ["price", "the intercept", "fee", "rate", "twice"]
    frame = module.DataFrame(dict(zip(names[:4], X.T, strict=True)) | {"twice": 2 * X[:, 1]})
    labels = module.Series(y) if library == "polars" else module.Series(y, index=np.arange(400) + 1000)
    if isinstance(estimator, MassartRegressor):
        labels = np.where(right, X @ W + INTERCEPT, y)
    with pytest.warns(ConvergenceWarning, match="the intercept and twice always move together"):
        reg = clone(estimator).fit(frame, labels)
    assert_array_equal(reg.feature_names_in_, names)
    assert reg.report().findings.formula.names == tuple(names)
    assert [term.determined for term in reg.report().findings.formula.all_terms] == [
        True,
        False,
        True,
        True,
        False,
        True,
    ]
    assert reg.certificate_.undetermined_columns == ((1, 4),)
    assert_array_equal(reg.inlier_mask_, right)
    with pytest.raises(ValueError, match="feature names"):
        reg.predict(frame[[*reversed(names)]])


def test_columns_without_names_have_numbers() -> None:
    X, y, _ = contaminated()
    with pytest.warns(ConvergenceWarning, match="x4 and the intercept always move together"):
        reg = MassartRegressor(random_state=0).fit(np.column_stack([X, np.ones(len(X))]), y)
    assert not hasattr(reg, "feature_names_in_")


@pytest.mark.slow
def test_rows_off_by_a_last_place_have_a_mask_of_their_own() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 100, (300, 1))
    Y = np.round(X @ [[1.852, 0.31]] + [[0, 2]], 2)
    Y[:12, 0] = np.round(Y[:12, 0] + 0.01, 2)
    Y[20:60, 0] += 5
    reg = MassartRegressor(random_state=0).fit(X, Y)
    assert_array_equal(np.flatnonzero(reg.last_place_mask_[:, 0]), np.arange(12))
    assert not reg.last_place_mask_[:, 1].any()
    assert not (reg.last_place_mask_ & reg.inlier_mask_).any()
    findings = reg.report(X, Y).findings
    assert (findings.n_agree, findings.n_wrong, findings.n_last_place) == (248, 40, 12)


@pytest.mark.parametrize(("estimator", "link"), [LINEAR, CLIPPED])
def test_the_warning_is_the_certificate_and_points_at_the_caller(estimator: Any, link: Link) -> None:
    X, y, _ = contaminated(outputs=2, link=link)
    y[:, 1] = np.random.default_rng(1).permutation(200) ** 3
    with pytest.warns(ConvergenceWarning) as caught:
        reg = clone(estimator).set_params(inliers="exact").fit(X, y)
    (warning,) = caught
    assert str(warning.message) == f"NONE (output 1): {reg.certificate_[1].explain(['x0', 'x1', 'x2', 'x3'])}"
    assert warning.filename == __file__
    assert reg.certificate_[0].verdict.stands
    assert_array_equal(np.isnan(reg.standard_errors_), [[False] * 4, [True] * 4])


# Reports.


@pytest.fixture
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (300, 2)).astype(float)
    y = X @ [0.25, 3.0] + 7
    y[::3] = 999
    return X, y


@pytest.mark.parametrize("estimator", [MassartRegressor, MassartReLURegressor, MassartPACRegressor])
def test_every_estimator_shows_itself(estimator: Any, data: tuple[Any, Any]) -> None:
    X, y = data
    reg = estimator(fit_intercept=True, random_state=0)
    before = reg._repr_html_()
    shown = reg.fit(X, y)._repr_html_()
    for words in ("0.25 * x0 + 3 * x1 + 7", reg.report().findings.judgement.word.capitalize()):
        assert words in shown
        assert words in reg._repr_mimebundle_()["text/html"]
        assert words not in before
    for report in (reg.report(), reg.report(X, y)):
        page = report._repr_html_()
        assert all(word in page for word in ("0.25", "x1", estimator.__name__))
        assert "<script" not in page
    assert "999" in reg.report(X, y)._repr_html_()
    assert "999" not in reg.report()._repr_html_()


def test_the_report_is_about_the_fit(data: tuple[Any, Any]) -> None:
    X, y = data
    reg = MassartRegressor(random_state=0).fit(X, y)
    findings = reg.report(X, y).findings
    assert str(findings.formula) == "y = 0.25 * x0 + 3 * x1 + 7"
    assert findings.n_wrong == 100
    assert findings.certificate is reg.certificate_
    assert findings.rows is not None
    np.testing.assert_allclose(findings.rows.implied, reg.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(findings.rows.wrong, ~reg.inlier_mask_)
    assert [s.n_rows for s in findings.usage] == [*(X != 0).sum(axis=0), 300]
    assert [s.n_agree for s in findings.usage] == [*(X[reg.inlier_mask_] != 0).sum(axis=0), 200]


def test_sparse_rows_several_outputs_and_pickles_are_shown(data: tuple[Any, Any]) -> None:
    X, y = data
    Y = np.column_stack([y, -2 * y])
    reg = pickle.loads(pickle.dumps(MassartRegressor(random_state=0).fit(sparse.csr_array(X), Y)))
    dense, thin = reg.report(X, Y, output=1).findings, reg.report(sparse.csr_array(X), Y, output=1).findings
    assert str(thin.formula) == str(dense.formula) == "y1 = -0.5 * x0 - 6 * x1 - 14"
    assert thin.usage == dense.usage
    assert thin.rows is not None
    assert thin.rows.cells(np.array([3]))["x1"] == [X[3, 1]]


def test_bad_arguments_of_a_report_are_named(data: tuple[Any, Any]) -> None:
    X, y = data
    with pytest.raises(NotFittedError):
        MassartRegressor().report()
    reg = MassartRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="output must be from 0 to 0, got 1"):
        reg.report(output=1)
    with pytest.raises(ValueError, match="X and y must be given together"):
        reg.report(X)
    with pytest.raises(ValueError, match="X and y must be those of fit"):
        reg.report(X[:10], y[:10])


def test_a_table_without_a_rule_is_shown_without_a_formula() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 2)), (rng.random(200) < 0.3).astype(float)
    with pytest.warns(ConvergenceWarning, match="NONE: No rule was found"):
        reg = MassartRegressor(random_state=0).fit(X, y)
    report = reg.report(X, y)
    assert report.findings.n_wrong == 0
    assert report.findings.rows is None
    assert repr(report).startswith("NONE. No rule was found.")
    assert "y =" not in report._repr_html_()
    assert reg.inlier_mask_.sum() == (y == 0).sum()  # as counted
