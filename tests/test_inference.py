"""Standard errors, intervals, weights, summaries, scores and pictures, next to independent references."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.covariance import MinCovDet
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from massart import (
    MassartPACRegressor,
    MassartRegressor,
    MassartReLURegressor,
    agreement_scorer,
    robust_r2_score,
    robust_r2_scorer,
)
from massart.certificate import Verdict

W, B, SIGMA = np.array([2.0, -1.0, 0.5]), 3.0, 0.8


def noisy_rows(n: int = 1500, wrong: float = 0.0, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = X @ W + B + SIGMA * rng.standard_normal(n)
    y[: int(wrong * n)] += rng.uniform(10, 90, int(wrong * n))
    return X, y


def exact_rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (300, 2)).astype(float)
    y = X @ [0.25, 3.0] + 7
    y[::3] = 999
    return X, y


def nothing() -> MassartRegressor:
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning, match="NONE"):
        return MassartRegressor(random_state=0).fit(rng.standard_normal((200, 2)), (rng.random(200) < 0.3) * 1.0)


@pytest.fixture(scope="module")
def clean() -> MassartRegressor:
    return MassartRegressor(random_state=0).fit(*noisy_rows())


@pytest.fixture(scope="module")
def contaminated() -> MassartRegressor:
    return MassartRegressor(random_state=0).fit(*noisy_rows(wrong=0.3))


@pytest.fixture(scope="module")
def exact() -> MassartRegressor:
    return MassartRegressor(random_state=0).fit(*exact_rows())


# --- next to least squares, which is the reference where no label is wrong ---


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_clean_rows_have_the_inference_of_least_squares(fit_intercept: bool) -> None:
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    X, y = noisy_rows()
    y = y if fit_intercept else y - B
    design = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    reg = MassartRegressor(fit_intercept, random_state=0).fit(X, y)
    peer = sm.OLS(y, design).fit()
    table = reg.summary().inference
    errors = peer.bse
    assert_allclose(table.formula.coef, peer.params, atol=0.5 * errors.max())
    assert_allclose(table.standard_errors, errors, rtol=0.1)
    assert_allclose(table.t, peer.tvalues, rtol=0.12)
    assert_allclose(np.diff(reg.conf_int(0.9)), np.diff(peer.conf_int(0.1)), rtol=0.1)
    assert_allclose(reg.covariance_, peer.cov_params(), atol=0.1 * errors.max() ** 2)
    assert reg.scale_ == pytest.approx(np.sqrt(peer.mse_resid), rel=0.05)
    assert reg.robust_r2_ == pytest.approx(peer.rsquared, abs=0.01)
    assert reg.degrees_of_freedom_ == reg.inlier_mask_.sum() - design.shape[1]
    known = peer.get_prediction(design[:50])
    for kind, obs in (("mean", False), ("label", True)):
        own, other = reg.predict_interval(X[:50], 0.9, kind), known.conf_int(obs=obs, alpha=0.1)
        assert_allclose(np.diff(own), np.diff(other), rtol=0.1)
        assert_allclose(own.mean(axis=1), reg.predict(X[:50]), rtol=1e-12)


@pytest.mark.slow
def test_the_table_follows_from_the_covariance(contaminated: MassartRegressor) -> None:
    reg = contaminated
    coef, errors = np.append(reg.coef_, reg.intercept_), np.sqrt(np.diag(reg.covariance_))
    assert_allclose(np.append(reg.standard_errors_, reg.intercept_standard_error_), errors)
    law = stats.t(reg.degrees_of_freedom_)
    table = reg.summary(level=0.9).inference
    assert_allclose(table.t, coef / errors)
    assert_allclose(table.p, 2 * law.sf(np.abs(coef / errors)))
    assert_allclose(reg.conf_int(0.9), coef[:, None] + np.outer(errors, law.ppf([0.05, 0.95])))
    X = np.random.default_rng(1).standard_normal((7, 3))
    rows = np.column_stack([X, np.ones(7)])
    variance = np.array([row @ reg.covariance_ @ row for row in rows])
    for kind, more in (("mean", 0.0), ("label", reg.scale_**2)):
        expected = (rows @ coef)[:, None] + np.outer(np.sqrt(variance + more), law.ppf([0.1, 0.9]))
        assert_allclose(reg.predict_interval(X, 0.8, kind), expected)
        assert_allclose(reg.predict_interval(csr_array(X), 0.8, kind), expected)


def test_frame_and_text_show_the_same_numbers(contaminated: MassartRegressor) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    summary = contaminated.summary(level=0.9)
    frame, text = summary.to_frame(), str(summary)
    assert list(frame.index) == ["x0", "x1", "x2", "intercept"]
    assert_allclose(frame["coefficient"], [*contaminated.coef_, contaminated.intercept_])
    assert_allclose(frame[["lower", "upper"]], contaminated.conf_int(0.9))
    lines = [line.split() for line in text.splitlines()[-4:]]
    for name, *numbers in lines:
        assert_allclose([float(number) for number in numbers], frame.loc[name], rtol=6e-4, atol=6e-4)
    assert "[0.05" in text
    assert contaminated.formula_ in text
    assert f"scale {contaminated.scale_:.4g}   robust R² {contaminated.robust_r2_:.4f}" in text
    assert f"rows 1,500   agree {contaminated.inlier_mask_.sum():,} (" in text
    page = summary._repr_html_()
    assert all(f"{value:.4g}" in page for value in frame["standard error"])


def test_intervals_of_labels_hold_for_right_labels(contaminated: MassartRegressor) -> None:
    X, y = noisy_rows(4000, seed=1)
    lower, upper = contaminated.predict_interval(X, kind="label").T
    assert 0.93 < np.mean((lower <= y) & (y <= upper)) < 0.97


# --- weights and R² ---


def test_weights_are_tukeys_and_wrong_rows_have_none(contaminated: MassartRegressor) -> None:
    X, y = noisy_rows(wrong=0.3)
    u = (y - contaminated.predict(X)) / (4.685061 * contaminated.scale_)
    assert_allclose(contaminated.weights_, np.where(np.abs(u) < 1, (1 - u**2) ** 2, 0), atol=1e-6)
    assert not contaminated.weights_[:450].any()
    assert contaminated.weights_[450:].mean() > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_r2_is_that_of_lmrob(fit_intercept: bool) -> None:
    X, y = noisy_rows(wrong=0.2)
    y = y if fit_intercept else y - B
    counts = np.random.default_rng(0).integers(1, 3, len(y))
    for weights in (None, counts):
        reg = MassartRegressor(fit_intercept, inliers="noisy", random_state=0).fit(X, y, weights)
        w = reg.weights_ * (1 if weights is None else weights)
        centre = np.average(y, weights=w) if fit_intercept else 0.0
        spread, rest = w @ (y - centre) ** 2, w @ (y - reg.predict(X)) ** 2
        assert reg.robust_r2_ == pytest.approx((spread - rest) / (spread + 0.207617 * rest), rel=1e-5)


@pytest.mark.slow
def test_r2_of_wrong_rows_is_that_of_the_right_ones(clean: MassartRegressor, contaminated: MassartRegressor) -> None:
    assert contaminated.robust_r2_ == pytest.approx(clean.robust_r2_, abs=0.02)
    X, y = noisy_rows(wrong=0.3)
    assert contaminated.score(X, y) < 0.2


# --- exact formulas, and none ---


def test_an_exact_formula_has_no_errors(exact: MassartRegressor) -> None:
    X, _ = exact_rows()
    assert exact.certificate_.verdict.certain
    assert_array_equal(exact.covariance_, np.zeros((3, 3)))
    assert_array_equal(exact.weights_, exact.inlier_mask_.astype(float))
    assert exact.robust_r2_ == 1
    assert_array_equal(exact.conf_int(), [[0.25, 0.25], [3, 3], [7, 7]])
    for kind in ("mean", "label"):
        assert_allclose(exact.predict_interval(X[:4], kind=kind), np.column_stack([exact.predict(X[:4])] * 2))
    text = str(exact.summary())
    assert "PROVEN" in text
    assert "rows 300   agree 200 (66.7 %)   wrong 100 rows" in text
    assert "0.25      exact" in text
    assert "P>|t|" not in text
    assert "P&gt;" not in exact.summary()._repr_html_()


def test_right_labels_of_a_rounded_formula_are_within_their_rounding() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 100, (400, 2))
    right = np.round(X @ [0.19, 1.07], 2)
    y = np.where(rng.random(400) < 0.3, right + 5, right)
    reg = MassartRegressor(fit_intercept=False, random_state=0).fit(X, y)
    assert reg.certificate_.agreement.rounded
    lower, upper = reg.predict_interval(X, kind="label").T
    assert ((lower <= right) & (right <= upper)).all()
    assert_allclose(upper - lower, 0.01)


def test_without_a_rule_there_is_no_table() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    reg = nothing()
    summary = reg.summary()
    assert "No rule was found" in str(summary)
    assert "coefficient" not in str(summary)
    assert "<table" not in summary._repr_html_()
    assert len(summary.to_frame()) == 0
    assert len(reg.wrong_rows_) == 0
    assert np.isnan([reg.robust_r2_, *reg.conf_int().ravel(), *reg.predict_interval([[1, 2]])[0]]).all()


def test_what_the_rows_leave_open_has_infinite_limits() -> None:
    X, y = noisy_rows(400)
    twice = np.column_stack([X, X[:, 0]])
    with pytest.warns(ConvergenceWarning, match="x0 and x3 always move together"):
        reg = MassartRegressor(random_state=0).fit(twice, y)
    inside, outside = reg.predict_interval([[1, 0, 0, 1], [1, 0, 0, 0]])
    assert inside[0] - 0.2 < W[0] + B < inside[1] + 0.2
    assert 0 < inside[1] - inside[0] < 0.5
    assert_array_equal(outside, [-np.inf, np.inf])
    assert str(reg.summary()).count("open") == 2


@pytest.mark.slow
def test_outputs_have_their_own_inference() -> None:
    X, y = noisy_rows(600, wrong=0.2)
    Y = np.column_stack([y, X @ W + 1])
    reg = pickle.loads(pickle.dumps(MassartRegressor(random_state=0).fit(X, Y)))
    alone = MassartRegressor(random_state=0).fit(X, Y[:, 1])
    assert [c.verdict for c in reg.certificate_] == [Verdict.NOISY, alone.certificate_.verdict]
    assert reg.covariance_.shape == (2, 4, 4)
    assert reg.conf_int().shape == (2, 4, 2)
    assert reg.predict_interval(X).shape == (600, 2, 2)
    assert reg.weights_.shape == (600, 2)
    assert reg.robust_r2_.shape == reg.degrees_of_freedom_.shape == reg.scale_.shape == (2,)
    assert_array_equal(reg.weights_[:, 1], alone.weights_)
    assert "NOISY" in str(reg.summary())
    assert alone.certificate_.verdict.name in str(reg.summary(output=1))
    assert len(reg.formula_) == len(reg.wrong_rows_) == 2
    assert len(reg.plot(X, Y, output=1).axes) == 2  # of exact labels no normal quantiles


@pytest.mark.slow
def test_clipped_labels_have_limits_between_the_limits() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 3))
    y = np.maximum(0, X @ W + 0.3 * rng.standard_normal(800))
    y[:100] = 50
    reg = MassartReLURegressor(random_state=0).fit(X, y)
    assert reg.certificate_.verdict is Verdict.NOISY
    lower, upper = reg.predict_interval(X, kind="label").T
    assert (lower >= 0).all()
    assert 0.92 < np.mean((lower <= y) & (y <= upper))[()] + 0.125 < 1.0
    assert_allclose(reg.standard_errors_, np.sqrt(np.diag(reg.covariance_)))
    assert reg.robust_r2_ > 0.9
    assert not reg.weights_[:100].any()


def test_the_pac_estimator_has_words_but_no_errors() -> None:
    X, y = exact_rows()
    reg = MassartPACRegressor(random_state=0).fit(X, y)
    assert reg.formula_ == "y = 0.25 * x0 + 3 * x1 + 7"
    assert len(reg.wrong_rows_) == 100
    assert "0.25" in str(reg.summary())
    assert np.isnan(reg.standard_errors_).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda reg: reg.conf_int(1.0), "level must be between 0 and 1, got 1.0"),
        (lambda reg: reg.summary(level=0), "level must be between 0 and 1, got 0"),
        (lambda reg: reg.summary(output=1), "output must be from 0 to 0, got 1"),
        (lambda reg: reg.predict_interval(np.ones((2, 3)), kind="row"), 'kind must be "mean" or "label", got \'row\''),
        (lambda reg: reg.predict_interval(np.ones((2, 2))), "expecting 3 features"),
        (lambda reg: reg.agrees(np.ones((2, 3)), np.ones((2, 2))), r"y must have 1 column\(s\) as in fit, got 2"),
    ],
)
def test_bad_arguments_are_named(clean: MassartRegressor, call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(clean)


@pytest.mark.parametrize("name", ["covariance_", "weights_"])
def test_nothing_is_there_before_a_fit(name: str) -> None:
    assert not hasattr(MassartRegressor(), name)
    for call in (MassartRegressor().summary, MassartRegressor().conf_int):
        with pytest.raises(NotFittedError):
            call()


# --- rows by name ---


def test_rows_agree_as_fit_says(exact: MassartRegressor, contaminated: MassartRegressor) -> None:
    for reg, (X, y) in ((exact, exact_rows()), (contaminated, noisy_rows(wrong=0.3))):
        assert_array_equal(reg.agrees(X, y), reg.inlier_mask_)
        assert_array_equal(reg.agrees(X[5:9], y[5:9]), reg.inlier_mask_[5:9])


def test_wrong_rows_of_arrays_have_their_index(exact: MassartRegressor) -> None:
    X, y = exact_rows()
    rows = exact.wrong_rows_
    assert_array_equal(np.sort(rows["index"]), np.flatnonzero(~exact.inlier_mask_))
    assert_array_equal(rows["given"], y[rows["index"]])
    assert_allclose(rows["implied"], exact.predict(X[rows["index"]]))
    assert_array_equal(rows["residual"], rows["given"] - rows["implied"])
    assert (np.diff(np.abs(rows["residual"])) <= 0).all()


@pytest.mark.slow
def test_wrong_rows_of_pandas_have_their_labels() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = exact_rows()
    index = pd.Index([f"job {i}" for i in range(300)], name="job")
    frame, labels = (
        pd.DataFrame(X, columns=["hours", "the items"], index=index),
        pd.Series(y, index=index, name="total"),
    )
    reg = MassartRegressor(random_state=0).fit(frame, labels)
    assert reg.formula_ == "total = 0.25 * hours + 3 * `the items` + 7"
    assert set(reg.wrong_rows_.index) == {f"job {i}" for i in range(0, 300, 3)}
    assert reg.wrong_rows_.index.name == "job"
    assert_array_equal(labels.loc[reg.wrong_rows_.index], reg.wrong_rows_["given"])
    page = reg.report(frame, labels)._repr_html_()
    assert reg.wrong_rows_.index[0] in page
    assert "<th>job</th>" in page
    assert list(reg.summary().to_frame().index) == ["hours", "the items", "intercept"]
    only_labels = MassartRegressor(random_state=0).fit(X, labels)
    assert_array_equal(only_labels.wrong_rows_.index, reg.wrong_rows_.index)


def test_wrong_rows_of_polars_are_a_frame() -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X, y = exact_rows()
    reg = MassartRegressor(random_state=0).fit(pl.DataFrame(X, schema=["a", "b"]), pl.Series("total", y))
    assert reg.formula_ == "total = 0.25 * a + 3 * b + 7"
    assert set(reg.wrong_rows_["index"].to_list()) == set(range(0, 300, 3))


def test_reports_of_arrays_call_rows_by_their_index(exact: MassartRegressor) -> None:
    rows = exact.report(*exact_rows()).findings.rows
    assert rows is not None
    assert next(iter(rows.cells(np.array([3, 6])).items())) == ("index", [3, 6])


@pytest.mark.slow
def test_weights_of_dask_stay_there() -> None:
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, y = noisy_rows(600, wrong=0.2)
    here = MassartRegressor(random_state=0).fit(X, y)
    there = MassartRegressor(random_state=0).fit(da.from_array(X, chunks=(200, 3)), da.from_array(y, chunks=200))
    assert hasattr(there.weights_, "__dask_graph__")
    assert_allclose(there.weights_.compute(), here.weights_, atol=1e-9)
    assert there.robust_r2_ == pytest.approx(here.robust_r2_)
    assert str(there.summary()) == str(here.summary())
    X, y = exact_rows()
    again = here.fit(da.from_array(X, chunks=(100, 2)), da.from_array(np.column_stack([y, y]), chunks=(100, 2)))
    assert_array_equal(again.weights_.compute(), again.inlier_mask_.compute().astype(float))
    assert not hasattr(again, "wrong_rows_")


@pytest.mark.slow
def test_wrong_rows_of_memory_maps_are_not_read_again(tmp_path: Any) -> None:
    X, y = exact_rows()
    np.save(tmp_path / "X.npy", X)
    reg = MassartRegressor(random_state=0).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    with pytest.raises(AttributeError, match="use inlier_mask_ and predict"):
        _ = reg.wrong_rows_
    assert len(reg.fit(X, y).wrong_rows_) == 100


# --- scores ---


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_scores_choose_the_intercept_where_r2_does_not(noise: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (300, 2))
    y = X @ [2.0, 3.0] + 20 + noise * rng.standard_normal(300)
    y[rng.random(300) < 0.4] = 0
    scoring = {"r2": "r2", "agreement": agreement_scorer, "robust r2": robust_r2_scorer}
    model, grid = MassartRegressor(random_state=0), {"fit_intercept": [False, True]}
    search = GridSearchCV(model, grid, scoring=scoring, cv=3, refit=False).fit(X, y)
    chosen = {name: bool(search.cv_results_[f"mean_test_{name}"].argmax()) for name in scoring}
    assert chosen == {"r2": False, "agreement": True, "robust r2": True}


def test_robust_r2_is_r2_where_no_label_is_wrong() -> None:
    X, y = noisy_rows()
    predicted = X @ W + B
    assert robust_r2_score(y, predicted) == pytest.approx(r2_score(y, predicted), abs=0.01)
    assert robust_r2_score(y, y) == 1
    assert robust_r2_score(np.ones(5), np.zeros(5)) == 0
    both = robust_r2_score(np.column_stack([y, y]), np.column_stack([predicted, y]))
    assert both == pytest.approx((robust_r2_score(y, predicted) + 1) / 2)
    assert robust_r2_score(1e6 * y - 7, 1e6 * predicted - 7) == pytest.approx(robust_r2_score(y, predicted))
    repeated = np.random.default_rng(0).integers(1, 4, len(y))
    assert robust_r2_score(y, predicted, sample_weight=repeated) == pytest.approx(
        robust_r2_score(np.repeat(y, repeated), np.repeat(predicted, repeated))
    )


def test_few_rows_however_close_make_no_score() -> None:
    rng = np.random.default_rng(0)
    y = rng.standard_normal(1000)
    others = rng.permutation(y)
    assert robust_r2_score(y, np.where(np.arange(1000) < 300, y, others)) < 0.3
    assert robust_r2_score(y, np.where(np.arange(1000) < 510, y, others)) == 1


def test_robust_r2_scores_any_regressor() -> None:
    X, y = noisy_rows()
    scores = cross_val_score(LinearRegression(), X, y, scoring=robust_r2_scorer, cv=3)
    assert_allclose(scores, 1 - SIGMA**2 / (W @ W + SIGMA**2), atol=0.05)


def test_agreement_is_the_share_of_rows(exact: MassartRegressor) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 2))
    y = X @ [0.25, 3.0] + 7
    y[:30] += rng.uniform(1, 2, 30)
    assert agreement_scorer(exact, X, y) == pytest.approx(0.7 - 0.01)  # any constant has a row
    assert agreement_scorer(exact, X, y, np.arange(100) >= 30) == pytest.approx(1 - 1 / 70)
    model = make_pipeline(StandardScaler(), MassartRegressor(random_state=0)).fit(X, y)
    assert agreement_scorer(model, X, y) == pytest.approx(0.69)
    with pytest.raises(ValueError, match="needs an estimator of massart, got LinearRegression"):
        agreement_scorer(LinearRegression().fit(X, y), X, y)


@pytest.mark.parametrize("scorer", [agreement_scorer, robust_r2_scorer])
@pytest.mark.parametrize("kind", ["Series", "frame of one column", "Series of Int64", "two columns"])
def test_scores_of_frames_are_those_of_their_arrays(scorer: Any, kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    index = [f"flat {k}" for k in rng.permutation(120)]
    X = pandas.DataFrame({"area": rng.integers(20, 200, 120), "rooms": rng.integers(1, 6, 120)}, index=index)
    y = pandas.Series(12 * X["area"] + 30 * X["rooms"] + 7, name="rent")
    y.iloc[::5] *= 10
    targets = {"Series": y, "frame of one column": y.to_frame(), "Series of Int64": y.astype("Int64")}
    given = targets.get(kind, pandas.DataFrame({"rent": y, "twice": 2 * y}))
    model = MassartRegressor(random_state=0)
    scores = cross_val_score(model, X, given, scoring=scorer, cv=3, error_score="raise")
    plain = np.asarray(given, dtype=float)
    assert_array_equal(scores, cross_val_score(model, X.to_numpy(), plain, scoring=scorer, cv=3, error_score="raise"))
    assert scores.min() > 0.7


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_over_columns_of_a_frame_finds_those_of_the_rule() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    X = pandas.DataFrame({"area": rng.integers(20, 200, 300), "rooms": rng.integers(1, 6, 300)})
    X["city"] = rng.choice(["Rome", "Oslo"], 300)
    y = pandas.Series(12.5 * X["area"] + 30 * X["rooms"] + 90 * (X["city"] == "Oslo"))
    y.iloc[::4] *= rng.integers(2, 12, 75).astype(float)
    parts = [
        ColumnTransformer([("numbers", "passthrough", places[:2]), ("city", OneHotEncoder(drop="first"), places[2:])])
        for places in ([0], [0, 1], [0, 1, 2])
    ]
    pipeline = make_pipeline(parts[0], MassartRegressor(random_state=0))
    search = GridSearchCV(
        pipeline, {"columntransformer": parts}, scoring=agreement_scorer, cv=3, refit=False, error_score="raise"
    )
    search.fit(X, y)
    assert search.best_index_ == 2
    assert search.best_score_ > 0.7


# --- pictures ---


@pytest.mark.slow
def test_pictures_show_every_row_and_the_limits(contaminated: MassartRegressor) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    X, y = noisy_rows(wrong=0.3)
    residuals, distances, quantiles = contaminated.plot(X, y).axes
    for axes in (residuals, distances, quantiles):
        right, wrong = (line for line in axes.lines if line.get_linestyle() == "None")
        assert (len(right.get_xdata()), len(wrong.get_xdata())) == (
            contaminated.inlier_mask_.sum(),
            (~contaminated.inlier_mask_).sum(),
        )
    lines = {float(line.get_xdata()[0]) for line in distances.lines if len(line.get_xdata()) == 2}
    assert any(abs(x - np.sqrt(stats.chi2.ppf(0.975, 3))) < 1e-9 for x in lines)
    drawn = np.concatenate([line.get_ydata() for line in residuals.lines if line.get_linestyle() == "None"])
    assert_allclose(np.sort(drawn), np.sort(y - contaminated.predict(X)))


@pytest.mark.slow
def test_pictures_of_frames_name_rows_by_their_labels() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    X, y = exact_rows()
    frame = pd.DataFrame(X, index=[f"job {i}" for i in range(300)], columns=["a", "b"])
    reg = MassartRegressor(random_state=0).fit(frame, y)
    first, _ = reg.plot(frame, y).axes
    assert {text.get_text() for text in first.texts} <= set(reg.wrong_rows_.index)
    assert first.texts


@pytest.mark.slow
def test_distances_are_those_of_the_determinant_and_affine_invariant() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    X[:60] += 20
    reference = np.sqrt(MinCovDet(random_state=0).fit(X).mahalanobis(X))
    for rows in (X, np.column_stack([X @ rng.standard_normal((3, 3)) * 1e3, np.ones(300)])):
        y = np.round(rows @ np.ones(rows.shape[1]), 6)
        panels = MassartRegressor(tolerance=1e-5, fit_intercept=False, random_state=0).fit(rows, y).plot(rows, y).axes
        (dots,) = (line for line in panels[1].lines if line.get_linestyle() == "None")
        assert_allclose(np.sort(dots.get_xdata()), np.sort(reference), rtol=0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_categories_have_distances_and_few_rows_have_none() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    levels = np.eye(4)[np.random.default_rng(0).choice(4, 200, p=[0.7, 0.1, 0.1, 0.1])]
    for X, panels in ((csr_array(levels), 2), (np.ones((50, 2)), 1), (np.eye(3), 1)):
        y = X @ np.arange(1.0, X.shape[1] + 1)
        assert len(MassartRegressor(fit_intercept=False, random_state=0).fit(X, y).plot(X, y).axes) == panels
