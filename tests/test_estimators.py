"""Estimators keep scikit-learn's contract, and add the rows that are wrong and what is proven."""

from __future__ import annotations

import pickle
import tracemalloc
from fractions import Fraction
from pathlib import Path
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
from sklearn.utils.estimator_checks import parametrize_with_checks

import massart.estimators.base
from massart import MassartRegressor, MassartReLURegressor
from massart.certificate import Certificate, Verdict
from massart.rows import IDENTITY, RELU, Link

Array = np.ndarray[Any, Any]

W = np.array([2.0, -0.5, 0.0, 3.25])
INTERCEPT = 7.0

LINEAR_AND_RELU = [
    pytest.param(MassartRegressor(random_state=0), IDENTITY, id="linear"),
    pytest.param(MassartReLURegressor(fit_intercept=True, random_state=0), RELU, id="ReLU"),
]


def contaminated(
    seed: int = 0, n: int = 200, rate: float = 0.3, outputs: int = 1, link: Link = IDENTITY
) -> tuple[Array, Array, Array]:
    """Return rows, labels of a known formula, and which of them are right."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, len(W)))
    y = link(np.stack([(j + 1) * (X @ W) + INTERCEPT + j for j in range(outputs)], axis=1))
    right = np.ones((n, outputs), dtype=bool)
    for j in range(outputs):
        right[rng.choice(n, round(rate * n), replace=False), j] = False
    y[~right] += rng.uniform(1, 100, size=(~right).sum())
    return (X, y[:, 0], right[:, 0]) if outputs == 1 else (X, y, right)


@parametrize_with_checks([MassartRegressor()])
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_contract(estimator: MassartRegressor, check: Any) -> None:
    check(estimator)


def test_the_formula_and_the_wrong_rows_are_found() -> None:
    X, y, right = contaminated()
    reg = MassartRegressor(random_state=0).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-14)
    assert reg.intercept_ == pytest.approx(INTERCEPT, rel=1e-14)
    assert_array_equal(reg.inlier_mask_, right)
    assert reg.noise_rate_ == pytest.approx(0.3)
    assert isinstance(reg.certificate_, Certificate)
    assert reg.certificate_.verdict.stands
    assert reg.exact_coef_ == (Fraction(2), Fraction(-1, 2), Fraction(0), Fraction(13, 4))
    assert reg.exact_intercept_ == Fraction(7)
    assert reg.scale_ == 0
    assert_array_equal(reg.standard_errors_, np.zeros(4))
    assert reg.intercept_standard_error_ == 0
    assert_allclose(reg.predict(X)[right], y[right], rtol=1e-12)
    assert reg.score(X[right], y[right]) == pytest.approx(1)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.35, 0.45])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # not confirmed at 45 %, but right
def test_the_share_of_wrong_labels_is_estimated_and_never_asked_for(rate: float) -> None:
    X, y, right = contaminated(seed=int(100 * rate), rate=rate)
    reg = MassartRegressor(random_state=0).fit(X, y)
    assert reg.noise_rate_ == pytest.approx(1 - right.mean())
    assert_array_equal(reg.inlier_mask_, right)
    assert sorted(reg.get_params()) == ["errors", "fit_intercept", "inliers", "random_state", "tolerance"]


def test_without_an_intercept_the_constant_is_zero() -> None:
    X, y, right = contaminated()
    y = y - INTERCEPT
    reg = MassartRegressor(fit_intercept=False, random_state=0).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-14)
    assert (reg.intercept_, reg.exact_intercept_, reg.intercept_standard_error_) == (0.0, Fraction(0), 0.0)
    assert_array_equal(reg.inlier_mask_, right)


@pytest.mark.slow
def test_noisy_labels_have_a_scale_and_standard_errors() -> None:
    X, y, _ = contaminated(n=600)
    y = y + 0.1 * np.random.default_rng(1).standard_normal(len(y))
    reg = MassartRegressor(random_state=0).fit(X, y)
    assert reg.certificate_.verdict is Verdict.NOISY
    assert 0.05 < reg.scale_ < 0.2
    assert reg.standard_errors_.shape == (4,)
    assert np.all((reg.standard_errors_ > 0) & (reg.standard_errors_ < 0.05))
    assert 0 < reg.intercept_standard_error_ < 0.05
    assert_allclose(reg.coef_, W, atol=0.05)
    assert reg.exact_coef_ == (None,) * 4


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(("estimator", "link"), LINEAR_AND_RELU)
def test_the_same_seed_gives_the_same_bytes(estimator: Any, link: Link, noise: float) -> None:
    X, y, _ = contaminated(n=500, rate=0.4, link=link)
    y = link(y + noise * np.random.default_rng(1).standard_normal(len(y)))
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    first, second = (pickle.dumps(vars(clone(estimator).fit(X, y))) for _ in range(2))
    assert first == second
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002


def test_a_random_state_instance_is_drawn_from() -> None:
    X, y, _ = contaminated()
    state = np.random.RandomState(3)
    MassartRegressor(random_state=state).fit(X, y)
    assert state.get_state()[2] != np.random.RandomState(3).get_state()[2]


@pytest.mark.parametrize(
    ("estimator", "link"),
    [
        pytest.param(MassartRegressor(tolerance=1e-9, random_state=0), IDENTITY, id="linear"),
        pytest.param(MassartReLURegressor(True, Link(lower=-1, upper=9), random_state=0), Link(-1, 9), id="two limits"),
    ],
)
def test_pickling_and_cloning_keep_everything(estimator: Any, link: Link) -> None:
    X, y, _ = contaminated(link=link)
    reg = estimator.fit(X, y)
    again = pickle.loads(pickle.dumps(reg))
    assert_array_equal(again.predict(X), reg.predict(X))
    assert again.certificate_.explain() == reg.certificate_.explain()
    assert clone(reg).get_params() == reg.get_params()
    with pytest.raises(NotFittedError):
        clone(reg).predict(X)


@pytest.mark.slow
def test_several_outputs_equal_single_fits() -> None:
    X, y, right = contaminated(outputs=3)
    reg = MassartRegressor(random_state=0).fit(X, y)
    assert reg.coef_.shape == (3, 4)
    assert reg.intercept_.shape == reg.noise_rate_.shape == reg.scale_.shape == (3,)
    assert reg.standard_errors_.shape == (3, 4)
    assert_array_equal(reg.inlier_mask_, right)
    assert reg.predict(X).shape == (200, 3)
    assert isinstance(reg.certificate_, tuple)
    for j in range(3):
        single = MassartRegressor(random_state=0).fit(X, y[:, j])
        assert_allclose(reg.coef_[j], single.coef_, rtol=1e-13, atol=1e-13)
        assert reg.intercept_[j] == pytest.approx(single.intercept_, rel=1e-13)
        assert_array_equal(reg.inlier_mask_[:, j], single.inlier_mask_)
        assert reg.noise_rate_[j] == single.noise_rate_
        assert reg.exact_coef_[j] == single.exact_coef_
        assert reg.exact_intercept_[j] == single.exact_intercept_
        assert reg.certificate_[j].verdict is single.certificate_.verdict


def test_one_column_of_labels_keeps_its_axis() -> None:
    X, y, _ = contaminated()
    reg = MassartRegressor(random_state=0).fit(X, y[:, None])
    assert reg.coef_.shape == (1, 4)
    assert reg.inlier_mask_.shape == (200, 1)
    assert reg.predict(X).shape == (200, 1)
    assert len(reg.certificate_) == len(reg.exact_coef_) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.lil_array]
)
@pytest.mark.parametrize(("estimator", "link"), LINEAR_AND_RELU)
def test_sparse_rows_equal_dense_ones(estimator: Any, link: Link, make: Any) -> None:
    rng = np.random.default_rng(0)
    dense = rng.integers(-3, 4, size=(300, 6)) * (rng.random((300, 6)) < 0.4)
    w = np.array([1.0, -2, 0.5, 4, 0, 1])
    y = link(dense @ w + 2)
    y[::4] = 1000
    of_dense = clone(estimator).fit(dense, y)
    of_sparse = clone(estimator).fit(make(dense.astype(float)), y)
    assert_allclose(of_dense.coef_, w, atol=1e-13)
    assert_allclose(of_sparse.coef_, of_dense.coef_, atol=1e-13)
    assert_array_equal(of_sparse.inlier_mask_, of_dense.inlier_mask_)
    assert of_sparse.certificate_.verdict is of_dense.certificate_.verdict
    assert_allclose(of_sparse.predict(make(dense)), of_dense.predict(dense), atol=1e-12)


@pytest.mark.parametrize(("estimator", "link"), LINEAR_AND_RELU)
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


@pytest.mark.parametrize(("columns", "factor"), [((1.0, 1.0), 1.0), ((1e-140, 1e26), 1e199), ((1e-140, 1e26), 1e-199)])
def test_weights_and_columns_may_have_any_unit(columns: tuple[float, float], factor: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2)) * columns
    fitted = MassartRegressor(random_state=0).fit(X, -X[:, 1], sample_weight=factor * rng.integers(0, 3, 12))
    assert fitted.certificate_.verdict is Verdict.PROVEN
    assert_allclose(fitted.coef_ * columns, [0, -columns[1]])


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "link"), LINEAR_AND_RELU)
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
@pytest.mark.parametrize(("estimator", "link"), LINEAR_AND_RELU)
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
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int16, np.uint8, bool])
def test_labels_that_hold_in_the_precision_of_the_rows_are_exact(dtype: type) -> None:
    X = np.random.default_rng(0).integers(0, 2 if dtype is bool else 100, size=(400, 4)).astype(dtype)
    y = X @ W + INTERCEPT
    y[::3] += 11
    reg = MassartRegressor(random_state=0).fit(X, y)
    assert_allclose(reg.coef_, W, atol=1e-12)
    assert reg.certificate_.verdict.stands
    assert reg.predict(X).dtype == np.float64


@pytest.mark.slow
def test_float32_tables_are_exact_up_to_their_own_rounding() -> None:
    X, y, right = contaminated(n=1000, rate=0.4)
    X32 = X.astype(np.float32)
    y32 = np.where(right, (X32.astype(float) @ W + INTERCEPT), y).astype(np.float32)
    reg = MassartRegressor(random_state=0).fit(X32, y32)
    assert_array_equal(reg.inlier_mask_, right)
    assert_allclose(reg.coef_, W, atol=1e-5)
    assert reg.certificate_.verdict.stands


class _Seen(Exception):
    pass


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "fortran", "view", "memmap", "csr", "pandas"])
def test_rows_get_the_memory_of_the_caller(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X = np.asfortranarray(np.arange(40.0).reshape(10, 4)) if kind == "fortran" else np.arange(40.0).reshape(10, 4)
    given: Any = X.astype(kind) if kind in ("float32", "int32") else X
    if kind == "view":
        given = X[::2]
    elif kind == "memmap":
        given = np.memmap(tmp_path / "rows.bin", mode="w+", shape=(10, 4))
        given[:] = X
    elif kind == "csr":
        given = sparse.csr_array(X)
    elif kind == "pandas":
        given = pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(X)

    def look(rows: Any, *_: Any, **__: Any) -> None:
        raise _Seen(rows)

    monkeypatch.setattr(massart.estimators.base, "rows_of", look)
    with pytest.raises(_Seen) as caught:
        MassartRegressor().fit(given, np.zeros(given.shape[0]))
    (seen,) = caught.value.args
    if kind == "csr":
        assert np.shares_memory(seen.data, given.data)
    else:
        table = given.to_numpy() if kind == "pandas" else given
        assert seen.dtype == table.dtype
        assert np.shares_memory(seen, table)


@pytest.mark.slow
def test_fitting_a_large_table_copies_nothing_of_its_size() -> None:
    X, y, _ = contaminated(n=400_000)
    X = np.hstack([X] + [np.random.default_rng(1).standard_normal((400_000, 16))])
    MassartRegressor(random_state=0).fit(X, y)  # imports are done
    tracemalloc.start()
    reg = MassartRegressor(random_state=0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(reg.coef_[:4], W, atol=1e-12)
    assert peak < X.nbytes / 2


def test_pandas_frames_give_names_to_the_certificate() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y, right = contaminated()
    frame = pd.DataFrame(X, columns=["price", "tax", "fee", "rate"])
    frame["twice the tax"] = 2 * frame["tax"]
    labels = pd.Series(y, index=np.arange(len(y)) + 1000)
    with pytest.warns(ConvergenceWarning, match="tax and twice the tax always move together"):
        reg = MassartRegressor(random_state=0).fit(frame, labels)
    assert_array_equal(reg.feature_names_in_, ["price", "tax", "fee", "rate", "twice the tax"])
    assert reg.certificate_.undetermined_columns == ((1, 4),)
    assert_array_equal(reg.inlier_mask_, right)
    assert_allclose(reg.predict(frame)[right], y[right], rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        reg.predict(frame[["tax", "price", "fee", "rate", "twice the tax"]])


@pytest.mark.slow
def test_polars_frames_give_names_to_the_certificate() -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X, y, right = contaminated()
    frame = pl.DataFrame(X, schema=["price", "tax", "fee", "rate"]).with_columns(count=pl.int_range(200))
    reg = MassartRegressor(random_state=0).fit(frame, pl.Series(y))
    assert_array_equal(reg.feature_names_in_, ["price", "tax", "fee", "rate", "count"])
    assert reg.report().findings.formula.names == ("price", "tax", "fee", "rate", "count")
    assert_array_equal(reg.inlier_mask_, right)
    assert_allclose(reg.predict(frame)[right], y[right], rtol=1e-12)


def test_names_are_shown_and_nothing_else() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y, _ = contaminated()
    X[:, 1] = 2 * X[:, 0]
    y = X @ W + INTERCEPT
    for names in (["a", "b", "c", "d"], ["a", "the intercept", "intercept", "x0"]):
        with pytest.warns(ConvergenceWarning, match=f"{names[0]} and {names[1]} always move together"):
            reg = MassartRegressor(random_state=0).fit(pd.DataFrame(X, columns=names), y)
        formula = reg.report().findings.formula
        assert [term.determined for term in formula.all_terms] == [False, False, True, True, True]
        assert formula.names == tuple(names)


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_integers_that_float64_does_not_hold_are_refused(sparse_rows: bool) -> None:
    X = np.arange(40).reshape(20, 2)
    X[3, 1] = 2**53 + 1
    with pytest.raises(ValueError, match=r"X .*9007199254740993"):
        MassartRegressor().fit(sparse.csr_array(X) if sparse_rows else X, np.arange(20.0))


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
    alone = MassartRegressor(random_state=0).fit(X, Y[:, 0])
    assert_array_equal(alone.last_place_mask_, reg.last_place_mask_[:, 0])
    findings = alone.report(X, Y[:, 0]).findings
    assert (findings.n_agree, findings.n_wrong, findings.n_last_place) == (248, 40, 12)


def test_columns_without_names_have_numbers() -> None:
    X, y, _ = contaminated()
    with pytest.warns(ConvergenceWarning, match="x4 and the intercept always move together"):
        reg = MassartRegressor(random_state=0).fit(np.column_stack([X, np.ones(len(X))]), y)
    assert not hasattr(reg, "feature_names_in_")


def test_the_warning_is_the_certificate_and_points_at_the_caller() -> None:
    X, y, _ = contaminated(outputs=2)
    y[:, 1] = np.random.default_rng(1).permutation(200) ** 3
    with pytest.warns(ConvergenceWarning) as caught:
        reg = MassartRegressor(inliers="exact", random_state=0).fit(X, y)
    (warning,) = caught
    assert str(warning.message) == f"NONE (output 1): {reg.certificate_[1].explain(['x0', 'x1', 'x2', 'x3'])}"
    assert warning.filename == __file__
    assert reg.certificate_[0].verdict.stands
