"""Regression by NumPy and scikit-learn, without intercept, with the settings named here.

scikit-learn is imported when it is called: it is slow to load.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from massart.experiments.baselines.baseline import Baseline, baseline
from massart.rows import FloatArray

RIDGE_GRID = np.logspace(-8, 4, 25)
"""Penalties tried, in units of the mean square of the columns' lengths."""

HUBER_ITERATIONS = 1000
RANSAC_TRIALS = 2000
"""At d = 30 these suffice up to 18 % of wrong rows; ten times as many, at ten times the cost, up to 24 %."""

RANSAC_THRESHOLD = 1e-6
"""Residual of an inlier over the median absolute label: inliers that fit exactly."""


def least_squares(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Minimise the squared residuals."""
    return np.asarray(np.linalg.lstsq(X, y, rcond=None)[0])


def ridge(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Ridge regression whose penalty leave-one-out cross-validation chooses on the labels at hand, right or wrong."""
    return _ridge(choose_penalty(X, y), X, y, rng)


def tuned_ridge(X_clean: FloatArray, y_clean: FloatArray) -> Baseline:
    """Return ridge regression with the penalty that cross-validation chooses on these clean data, as Section 4 did."""
    method = partial(_ridge, choose_penalty(X_clean, y_clean))
    return baseline("Ridge (tuned on clean data)", "scikit-learn Ridge, penalty by RidgeCV on clean labels", method)


def choose_penalty(X: FloatArray, y: FloatArray) -> float:
    """Return the penalty with the smallest leave-one-out error."""
    from sklearn.linear_model import RidgeCV

    unit = float(np.square(X).sum()) / X.shape[1]
    return float(RidgeCV(alphas=RIDGE_GRID * unit, fit_intercept=False).fit(X, y).alpha_)


def _ridge(penalty: float, X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    from sklearn.linear_model import Ridge

    return np.asarray(Ridge(alpha=penalty, fit_intercept=False).fit(X, y).coef_)


def huber(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Huber's loss with the scale fitted along (scikit-learn): epsilon 1.35, no penalty."""
    from sklearn.linear_model import HuberRegressor

    return np.asarray(HuberRegressor(alpha=0.0, max_iter=HUBER_ITERATIONS, fit_intercept=False).fit(X, y).coef_)


def ransac(
    X: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    *,
    threshold: float | None = None,
    trials: int = RANSAC_TRIALS,
) -> FloatArray:
    """RANSAC told what this problem needs: d rows a draw, a threshold that only exact fits pass, more trials."""
    from sklearn.linear_model import LinearRegression, RANSACRegressor

    if threshold is None:
        threshold = RANSAC_THRESHOLD * float(np.median(np.abs(y[y != 0]))) if y.any() else RANSAC_THRESHOLD
    model = RANSACRegressor(
        LinearRegression(fit_intercept=False),
        min_samples=X.shape[1],
        residual_threshold=threshold,
        max_trials=trials,
        random_state=int(rng.integers(2**31)),
    )
    return np.asarray(model.fit(X, y).estimator_.coef_)
