"""The methods: massart as its documentation shows it, and peers with the settings that theirs recommends for such data.

Peers are told what they need to know and massart is not: RANSAC, which residuals count as none (or the size of the
noise) and how many draws the share of wrong rows needs; a search for formulas, which functions to use; all of them,
how close a right label is when wrong rows are read off their residuals. Where labels are noisy, a row is called wrong
beyond 2.5 standard deviations of the residuals (`_scale`), the same for every peer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Literal

import numpy as np

from comparison.tables import Generator, Group, Table
from massart.experiments.baselines import RELU, Baseline, Fit, linear, missing_line
from massart.rows import BoolArray, FloatArray

TRIALS = 5_000
"""Of RANSAC at most. Its rule (scikit-learn.org/stable/modules/linear_model.html#ransac-regression) ends it before,
once a draw of right rows alone has had a chance of 99 %: 1,800 draws of 10 rows where 45 % are wrong.
"""

_EVALUATIONS = 60_000

_CUT = 2.5
_EXACT = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a method says of a table."""

    predicted: FloatArray
    coef: FloatArray | None = None
    called: BoolArray | None = None  # rows that the method itself calls wrong; else they are read off the residuals
    verdict: str = ""  # massart's; others claim nothing
    seconds: float | None = None  # of the processor, where the method is no part of this process


@dataclass(frozen=True, slots=True)
class Method:
    """A method: its name for readers, where it comes from, what it needs, and how it is asked."""

    name: str
    library: str
    ask: Callable[[Table, Generator], Answer]
    requires: str | None = None

    def missing(self) -> str:
        """Return one line that says what to install; empty where nothing is missing."""
        return missing_line(self.name, self.requires)


def called_wrong(table: Table, answer: Answer) -> BoolArray:
    """Return the rows that a method calls wrong, or whose residuals do."""
    if answer.called is not None:
        return answer.called
    residuals = np.abs(table.y - answer.predicted)
    if math.isnan(table.half):
        return np.asarray(~(residuals <= _CUT * _scale(residuals)))
    slack = _EXACT * float(np.median(np.abs(table.y))) if table.half == 0 else table.half
    return np.asarray(~(residuals <= slack))


def _scale(residuals: FloatArray) -> float:
    """Return the standard deviation by the median absolute residual, again without those it calls wrong."""
    scale = 1.4826 * float(np.median(residuals))
    for _ in range(5):
        scale = 1.4826 * float(np.median(residuals[residuals <= _CUT * scale]))
    return scale


# massart.


def _massart(table: Table, rng: Generator, *, inliers: Literal["auto", "noisy"] = "auto") -> Answer:
    from massart import MassartRegressor

    return _estimated(MassartRegressor(fit_intercept=False, inliers=inliers, random_state=0), table)


def _massart_relu(table: Table, rng: Generator) -> Answer:
    from massart import MassartReLURegressor

    return _estimated(MassartReLURegressor(fit_intercept=False, random_state=0), table)


def _estimated(estimator: Any, table: Table) -> Answer:
    estimator.fit(table.X, table.y)
    verdict = estimator.certificate_.verdict.name
    return Answer(estimator.predict(table.X), estimator.coef_, ~estimator.inlier_mask_, verdict)


def _audit(table: Table, rng: Generator) -> Answer:
    from massart import audit_table

    audit = audit_table(table.frame, "y")
    kept = np.asarray(audit.design.kept)
    predicted, called = np.full(len(table.y), np.nan), np.zeros(len(table.y), dtype=np.bool_)
    predicted[kept], called[kept] = audit.implied, np.asarray(audit.wrong) | np.asarray(audit.last_place)
    return Answer(predicted, None, called, audit.certificate.verdict.name)


# Regression.


def _rlm(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """M-estimation with Tukey's biweight and the scale by MAD (statsmodels), from least squares."""
    sm = import_module("statsmodels.api")
    model = sm.RLM(y, X, M=sm.robust.norms.TukeyBiweight())
    return np.asarray(model.fit(maxiter=200).params)


def _theil_sen(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Theil-Sen (scikit-learn) with d rows a subsample, the most robust choice, and the 10,000 subsamples it takes."""
    from sklearn.linear_model import TheilSenRegressor

    model = TheilSenRegressor(fit_intercept=False, n_subsamples=X.shape[1], random_state=int(rng.integers(2**31)))
    return np.asarray(model.fit(X, y).coef_)


def _quantile(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Median regression (scikit-learn) without the penalty that it has by default, by HiGHS."""
    from sklearn.linear_model import QuantileRegressor

    return np.asarray(QuantileRegressor(alpha=0.0, solver="highs", fit_intercept=False).fit(X, y).coef_)


def _quant_reg(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Median regression (statsmodels), by its reweighted least squares with more and finer steps than by default."""
    sm = import_module("statsmodels.api")
    return np.asarray(sm.QuantReg(y, X).fit(q=0.5, max_iter=5000, p_tol=1e-9).params)


def _regress(fit: Fit, table: Table, rng: Generator) -> Answer:
    coef = Baseline(fit).fit(table.X, table.y, rng)
    return Answer(table.X @ coef, coef)


def _ransac(table: Table, rng: Generator) -> Answer:
    threshold = _CUT if math.isnan(table.half) else None  # the noise has a standard deviation of 1
    return _regress(partial(linear.ransac, threshold=threshold, trials=TRIALS), table, rng)


def _r(method: str, table: Table, rng: Generator) -> Answer:
    coef, seconds = linear.r_regression(method, table.X, table.y, rng)
    predicted = table.X @ coef
    return Answer(np.maximum(predicted, 0.0) if method == "crq" else predicted, coef, seconds=seconds)


def _relu(fit: Fit, table: Table, rng: Generator) -> Answer:
    coef = fit(table.X, table.y, rng)
    return Answer(np.maximum(table.X @ coef, 0.0), coef)


# Formulas. Both are told the functions; absolute errors where rows may be wrong.

_OPERON = {"min": "fmin", "max": "fmax"}


def _operon(table: Table, rng: Generator) -> Answer:
    """Search with operon: constants polished in each individual, as its paper has it (Burlacu et al. 2020)."""
    functions = ",".join(_OPERON.get(name, name) for name in table.functions)
    model = import_module("pyoperon.sklearn").SymbolicRegressor(
        allowed_symbols=f"add,sub,mul,div,{functions},constant,variable",
        objectives=["mae"],
        optimizer_iterations=10,
        max_evaluations=math.ceil(_EVALUATIONS * table.seconds),  # not by the clock, which others slow down
        generations=10**6,
        epsilon=1e-7,
        n_threads=1,
        random_state=int(rng.integers(2**31)),
    )
    model.fit(table.X, table.y)
    return Answer(np.asarray(model.predict(table.X), dtype=np.float64).ravel())


def _gplearn(table: Table, rng: Generator) -> Answer:
    """Search with gplearn, generation by generation; its documentation advises a large population."""
    end = time.process_time() + table.seconds
    functions = [name for name in table.functions if name != "exp"]  # which it does not have
    model = import_module("gplearn.genetic").SymbolicRegressor(
        population_size=2000,
        function_set=("add", "sub", "mul", "div", *functions),
        const_range=(-100.0, 100.0),
        metric="mean absolute error",
        stopping_criteria=1e-7,
        generations=1,
        warm_start=True,
        random_state=int(rng.integers(2**31)),
    )
    while True:
        model.fit(table.X, table.y)
        if time.process_time() > end or model.run_details_["best_fitness"][-1] < 1e-7:
            return Answer(np.asarray(model.predict(table.X), dtype=np.float64))
        model.set_params(generations=model.generations + 1)


def _polynomials(table: Table, rng: Generator) -> Answer:
    """RANSAC on polynomials of degree 1, 2 and 3, as far as there are rows for them; most inliers win."""
    from sklearn.linear_model import RANSACRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    best, most = np.full(len(table.y), np.nan), -1
    end = time.process_time() + table.seconds
    for degree in (1, 2, 3):
        terms = make_pipeline(StandardScaler(), PolynomialFeatures(degree, include_bias=False), StandardScaler())
        X = terms.fit_transform(table.X)
        rank = int(np.linalg.matrix_rank(X))
        while rank + 1 < len(X) and (left := end - time.process_time()) > 0:
            model = RANSACRegressor(
                min_samples=rank + 1,
                residual_threshold=table.half,
                max_trials=50,
                random_state=int(rng.integers(2**31)),
            )
            try:
                model.fit(X, table.y)
            except ValueError:  # no draw had an inlier
                pass
            else:
                if model.inlier_mask_.sum() > most:
                    best, most = model.predict(X), int(model.inlier_mask_.sum())
            if left < table.seconds * (3 - degree) / 3:  # each degree has a third of the time
                break
    return Answer(best)


# Audits of rows.


def _cleanlab(model: Callable[[], Any], table: Table, rng: Generator) -> Answer:
    """Find label issues with a model that suits the data, as cleanlab's tutorial on regression advises."""
    learn = import_module("cleanlab.regression.learn").CleanLearning
    issues = learn(model=model(), seed=int(rng.integers(2**31))).find_label_issues(table.X, table.y)
    return Answer(np.asarray(issues["predicted_label"]), None, np.asarray(issues["is_label_issue"], dtype=np.bool_))


def _linear_model() -> Any:
    from sklearn.linear_model import LinearRegression

    return LinearRegression()


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=0)


def _with_intercept(ask: Callable[[Table, Generator], Answer], table: Table, rng: Generator) -> Answer:
    answer = ask(replace(table, X=np.column_stack([table.X, np.ones(len(table.y))])), rng)
    return replace(answer, coef=None)  # which has one more entry than the truth; only rows count


def _by_r(method: str, name: str, package: str) -> Method:
    return Method(name, f"R {package}", partial(_r, method), f"R: {package}")


_REGRESSION: dict[str, Method] = {
    "massart": Method("massart", "this package", _massart),
    "least_squares": Method("least squares", "NumPy", partial(_regress, linear.least_squares)),
    "huber": Method("Huber", "scikit-learn", partial(_regress, linear.huber)),
    "theil_sen": Method("Theil-Sen", "scikit-learn", partial(_regress, _theil_sen)),
    "quantile": Method("median regression", "scikit-learn", partial(_regress, _quantile)),
    "ransac": Method("RANSAC", "scikit-learn", _ransac),
    "rlm_biweight": Method("RLM, biweight", "statsmodels", partial(_regress, _rlm), "statsmodels"),
    "quant_reg": Method("QuantReg", "statsmodels", partial(_regress, _quant_reg), "statsmodels"),
    "lmrob": _by_r("lmrob", "lmrob MM", "robustbase"),
    "KS2014": _by_r("KS2014", "lmrob KS2014", "robustbase"),
    "rlm_mm": _by_r("rlm", "rlm MM", "MASS"),
    "lqs": _by_r("lqs", "lqs (LTS)", "MASS"),
    "rq": _by_r("rq", "rq", "quantreg"),
}

METHODS: dict[Group, dict[str, Method]] = {
    "linear": {**_REGRESSION, "lts": _by_r("ltsReg", "ltsReg", "robustbase")},
    "noisy": {
        **_REGRESSION,
        "massart_noisy": Method('massart, inliers="noisy"', "this package", partial(_massart, inliers="noisy")),
        "lts": _by_r("ltsReg_reweighted", "ltsReg", "robustbase"),
    },
    "relu": {
        "massart": Method("massart", "this package", _massart_relu),
        "clad": Method("CLAD, iterated LP", "Buchinsky 1994, our L1", partial(_relu, RELU["clad"].fit)),
        "karmakar_sgd": Method("stochastic descent", "Karmakar et al. 2020", partial(_relu, RELU["karmakar_sgd"].fit)),
        "crq": _by_r("crq", "crq Powell", "quantreg"),
    },
    "rule": {
        "massart": Method("massart", "this package", _audit),
        "operon": Method("operon", "pyoperon", _operon, "pyoperon"),
        "gplearn": Method("gplearn", "gplearn", _gplearn, "gplearn"),
        "polynomials": Method("RANSAC on polynomials", "scikit-learn", _polynomials),
    },
    "rows": {
        "massart": Method("massart", "this package", _audit),
        "cleanlab_linear": Method("cleanlab, linear", "cleanlab", partial(_cleanlab, _linear_model), "cleanlab"),
        "cleanlab_boosting": Method("cleanlab, boosting", "cleanlab", partial(_cleanlab, _boosting), "cleanlab"),
        "huber": Method("Huber", "scikit-learn", partial(_with_intercept, _REGRESSION["huber"].ask)),
        "lmrob": Method(
            "lmrob MM", "R robustbase", partial(_with_intercept, _REGRESSION["lmrob"].ask), "R: robustbase"
        ),
    },
}
"""The methods of each group: key to method; massart first."""

SMALL = ("massart", "quantile", "lmrob", "cleanlab_linear")
"""Methods of ``--small``, which takes seconds."""
