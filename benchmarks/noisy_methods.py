"""The methods that `noisy` compares: massart, those of R through noisy_peers.R, and censored maximum likelihood."""

from __future__ import annotations

import math
import subprocess
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  # isort: skip

import numpy as np

from noisy_families import FloatArray, least_squares, with_ones

ROBUST = ("lmrob MM", "KS2014", "ltsReg", "rlm MM")
"""As noisy_peers.R orders them."""

_LIMIT = 20.0  # processor seconds for one fit of a peer


@dataclass(frozen=True, slots=True)
class Fit:
    """What a method said of a table. Times are the processor's, so that a busy machine counts for nothing.

    Attributes
    ----------
    coef, errors : (d + 1,) arrays
        Coefficients and their standard errors, the intercept first; NaN where there are none.
    scale : float
        Of the noise.
    seconds : float
    """

    coef: FloatArray
    errors: FloatArray
    scale: float
    seconds: float


def robust(X: FloatArray, y: FloatArray) -> Fit:
    """Fit by massart's robust regression."""
    from massart.robust import robust_regression

    start = time.process_time()
    fit = robust_regression(with_ones(X), y, rng=np.random.default_rng(0))
    return Fit(fit.coef, fit.standard_errors, fit.scale, time.process_time() - start)


def noisy_estimator(X: FloatArray, y: FloatArray) -> Fit:
    """Fit by massart's estimator, told that right labels are noisy."""
    from massart import MassartRegressor

    return estimated(MassartRegressor(inliers="noisy", random_state=0), X, y)


def estimated(estimator: Any, X: FloatArray, y: FloatArray) -> Fit:
    """Fit by an estimator of massart."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    seconds = time.process_time() - start
    coef = np.concatenate([[float(estimator.intercept_)], estimator.coef_])
    errors = np.concatenate([[float(estimator.intercept_standard_error_)], estimator.standard_errors_])
    return Fit(coef, errors, float(estimator.scale_), seconds)


def by_r(kind: str, tables: Sequence[tuple[FloatArray, FloatArray]], limit: float = _LIMIT) -> list[dict[str, Fit]]:
    """Fit tables by all methods of a kind ("robust" or "censored"), in one process of R."""
    with tempfile.TemporaryDirectory() as folder:
        given, taken = Path(folder, "tables"), Path(folder, "fits")
        with given.open("wb") as file:
            for X, y in tables:
                for part in (np.array(X.shape), X.ravel(order="F"), y):
                    file.write(np.ascontiguousarray(part, dtype=np.float64).tobytes())
        methods = r_program(kind, str(given), str(taken), str(limit)).splitlines()
        numbers = np.fromfile(taken)
    answers, place = [], 0
    for X, _ in tables:
        size = X.shape[1] + 1
        fits = {}
        for method in methods:
            seconds, scale, *rest = numbers[place : place + 2 + 2 * size]
            fits[method] = Fit(np.array(rest[:size]), np.array(rest[size:]), float(scale), float(seconds))
            place += 2 + 2 * size
        answers.append(fits)
    return answers


def r_program(*arguments: str) -> str:
    """Run noisy_peers.R, and return what it printed."""
    command = ["Rscript", "--vanilla", str(Path(__file__).with_name("noisy_peers.R")), *arguments]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise SystemExit("Rscript is not on the path; --peers-from FILE needs no R") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"noisy_peers.R failed: {error.stderr.strip()[-500:]}") from None


def tobit(X: FloatArray, y: FloatArray) -> Fit:
    """Fit labels that are censored at 0 from below by maximum likelihood under Gaussian noise."""
    from scipy.optimize import minimize
    from scipy.stats import norm

    start = time.process_time()
    rows, seen = with_ones(X), y > 0

    def loss(at: FloatArray) -> float:
        values, scale = rows @ at[:-1], math.exp(at[-1])
        likely = norm.logpdf((y - values)[seen] / scale).sum() - seen.sum() * at[-1]
        return -float(likely + norm.logcdf(-values[~seen] / scale).sum())

    begin = least_squares(X, y)
    found = minimize(loss, np.append(begin, math.log(np.std(y - rows @ begin))), method="BFGS").x
    return Fit(found[:-1], np.full(len(begin), np.nan), math.exp(found[-1]), time.process_time() - start)
