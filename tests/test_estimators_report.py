from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from massart import MassartPACRegressor, MassartRegressor, MassartReLURegressor

ESTIMATORS = [MassartRegressor, MassartReLURegressor, MassartPACRegressor]


@pytest.fixture
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (300, 2)).astype(float)
    y = X @ [0.25, 3.0] + 7
    y[::3] = 999
    return X, y


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_shows_itself(estimator: Any, data: tuple[Any, Any]) -> None:
    X, y = data
    reg = estimator(fit_intercept=True, random_state=0).fit(X, y)
    for report in (reg.report(), reg.report(X, y)):
        page = report._repr_html_()
        assert "0.25" in page
        assert "x1" in page
        assert estimator.__name__ in page
        assert "<script" not in page
    assert "999" in reg.report(X, y)._repr_html_()
    assert "999" not in reg.report()._repr_html_()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_notebook_shows_the_rule_and_the_verdict_of_a_fit(estimator: Any, data: tuple[Any, Any]) -> None:
    X, y = data
    reg = estimator(fit_intercept=True, random_state=0)
    before = reg._repr_html_()
    shown = reg.fit(X, y)._repr_html_()
    for words in ("0.25 * x0 + 3 * x1 + 7", reg.report().findings.judgement.word.capitalize()):
        assert words in shown
        assert words in reg._repr_mimebundle_()["text/html"]
        assert words not in before


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
    reg = pickle.loads(pickle.dumps(MassartRegressor(random_state=0).fit(csr_array(X), Y)))
    dense, sparse = reg.report(X, Y, output=1).findings, reg.report(csr_array(X), Y, output=1).findings
    assert str(sparse.formula) == str(dense.formula) == "y = -0.5 * x0 - 6 * x1 - 14"
    assert sparse.usage == dense.usage
    assert sparse.rows is not None
    assert sparse.rows.cells(np.array([3]))["x1"] == [X[3, 1]]


def test_names_of_a_frame_are_used() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({"hours": np.arange(50.0) % 7, "the intercept": np.arange(50.0) % 11})
    y = 2 * frame["hours"] + frame["the intercept"] + 1
    reg = MassartRegressor(random_state=0).fit(frame, y)
    assert str(reg.report().findings.formula) == "y = 2 * hours + `the intercept` + 1"


def test_bad_arguments_are_named(data: tuple[Any, Any]) -> None:
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
