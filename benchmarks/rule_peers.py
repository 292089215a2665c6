"""Other libraries that look for the formula of a column, each with the same time as massart and at least two seconds.

All get the columns as numbers: dates as days, texts of few levels as indicators, texts of many levels not at all; and
none is told what is wrong. What a library needs to know beyond the table is given to it: RANSAC gets half a unit of the
target's last place as its threshold. Settings are chosen for values that are wrong, where there is a choice:

========  ===============================================================================================
operon    pyoperon's SymbolicRegressor: mean absolute error, + - * / pow min max, constants polished, one thread
gplearn   SymbolicRegressor: mean absolute error, + - * / sqrt min max, generation by generation
RANSAC    scikit-learn's, on polynomials of degree 1, 2 and 3 by turns (as far as there are rows for them), 20 trials
          a turn; the answer is that with most inliers
Huber     scikit-learn's, without penalty, on the same polynomials; the answer is the one that fits most rows
TaCLe     learns constraints of spreadsheets; skipped where it does not run
========  ===============================================================================================

None can be interrupted in the middle of a step, so that some take longer than they are given.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from harness import MissingPeer, require
from rule_families import TIE, FloatArray, Table

LEAST_SECONDS = 2.0

_MOST_LEVELS = 12
_TRIALS = 20


def numbers(table: Table) -> FloatArray:
    """Return the columns as numbers."""
    found: list[FloatArray] = []
    for values in table.ledger.columns.values():
        if values.dtype.kind != "U":
            found.append(values.astype(np.float64))
            continue
        try:
            found.append(values.astype("datetime64[D]").astype(np.float64))
        except ValueError:
            levels = np.unique(values)
            if len(levels) <= _MOST_LEVELS:
                found += [(values == level).astype(np.float64) for level in levels]
    return np.column_stack(found)


def _half(table: Table) -> float:
    return float(0.5 * 10.0**-table.ledger.places + TIE * np.abs(table.labels).max())


def _polynomials(table: Table) -> Iterator[FloatArray]:
    """Yield polynomials of degree 1, 2 and 3 in scaled columns, as long as they have fewer terms than rows."""
    preprocessing = require("sklearn.preprocessing")
    scaled = preprocessing.StandardScaler().fit_transform(numbers(table))
    for degree in (1, 2, 3):
        terms = preprocessing.PolynomialFeatures(degree, include_bias=False)
        if terms.fit(scaled[:1]).n_output_features_ >= len(scaled):
            return
        yield preprocessing.StandardScaler().fit_transform(terms.transform(scaled))


def ransac(table: Table, seconds: float) -> FloatArray:
    """Return the prediction with most inliers."""
    regressor = require("sklearn.linear_model").RANSACRegressor
    end = time.monotonic() + seconds
    libraries = list(_polynomials(table))
    best, most, turn = np.full(len(table.labels), np.nan), -1, 0
    while turn == 0 or time.monotonic() < end:
        X = libraries[turn % len(libraries)]
        model = regressor(
            min_samples=X.shape[1] + 1, residual_threshold=_half(table), max_trials=_TRIALS, random_state=turn
        )
        turn += 1
        try:
            model.fit(X, table.labels)
        except ValueError:  # no trial had an inlier
            continue
        if model.inlier_mask_.sum() > most:
            best, most = model.predict(X), model.inlier_mask_.sum()
    return best


def huber(table: Table, seconds: float) -> FloatArray:
    """Return the prediction that fits most rows."""
    regressor = require("sklearn.linear_model").HuberRegressor
    end = time.monotonic() + seconds
    best, most = np.full(len(table.labels), np.nan), -1
    for X in _polynomials(table):
        predicted = regressor(alpha=0.0, max_iter=1_000, tol=1e-9).fit(X, table.labels).predict(X)
        fits = int((np.abs(predicted - table.labels) <= _half(table)).sum())
        if fits > most:
            best, most = predicted, fits
        if time.monotonic() > end:
            break
    return best


def operon(table: Table, seconds: float) -> FloatArray:
    """Return the prediction of operon's genetic programming."""
    regressor = require("pyoperon.sklearn").SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,pow,fmin,fmax,constant,variable",
        objectives=["mae"],
        optimizer_iterations=10,
        max_evaluations=10**9,
        generations=10**6,
        max_time=math.ceil(seconds),
        n_threads=1,
        random_state=0,
    )
    X = numbers(table)
    return np.asarray(regressor.fit(X, table.labels).predict(X), dtype=np.float64).ravel()


def gplearn(table: Table, seconds: float) -> FloatArray:
    """Return the prediction of gplearn's genetic programming."""
    end = time.monotonic() + seconds
    model = require("gplearn.genetic").SymbolicRegressor(
        function_set=("add", "sub", "mul", "div", "sqrt", "max", "min"),
        const_range=(-100.0, 100.0),
        metric="mean absolute error",
        generations=1,
        warm_start=True,
        random_state=0,
    )
    X = numbers(table)
    while True:
        model.fit(X, table.labels)
        if time.monotonic() > end:
            return np.asarray(model.predict(X), dtype=np.float64)
        model.set_params(generations=model.generations + 1)


def tacle(table: Table, seconds: float) -> FloatArray:
    """Say why TaCLe is not compared."""
    if not hasattr(np, "product"):
        raise MissingPeer("TaCLe 1.2.2 uses numpy.product and numpy.object, which this numpy does not have")
    require("tacle")
    raise MissingPeer("TaCLe learns constraints that hold in every row, and predicts nothing")


PEERS: Mapping[str, Callable[[Table, float], FloatArray]] = {
    "operon": operon,
    "gplearn": gplearn,
    "RANSAC": ransac,
    "Huber": huber,
    "TaCLe": tacle,
}
