r"""Linear regression: by the paper, by this package, by NumPy, scikit-learn and R, and by hard thresholding.

All are without intercept. scikit-learn is imported when it is called: it is slow to load.

**Hard thresholding of residuals.** TORRENT and AdaCRR alternate between least squares and leaving out the rows with
large residuals,

.. math::
    w_{t+1} = \arg\min_w \sum_{i \in S_t} (y_i - w \cdot x_i)^2,
    \qquad S_t = \{i : |y_i - w_t \cdot x_i| < \tau_t\},

and differ in the threshold. TORRENT (Bhatia, Jain and Kar, NeurIPS 2015; its fully corrective variant) keeps a fixed
share :math:`1 - \beta` of the rows, where :math:`\beta` is at least the share of wrong ones. AdaCRR (Suggala, Bhatia,
Ravikumar and Jain, COLT 2019; its fully corrective variant) chooses :math:`\tau_t` at random among those with few
residuals nearby. The rows that a threshold divides are what ties S to x, and so what biases the fit: they should be few
compared with the rows well inside. How near is near shrinks from step to step, with the error of :math:`w_t`.

Both are proven for errors that do not depend on x, AdaCRR for almost any share of them.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from massart.experiments.baselines.baseline import Baseline
from massart.l1 import l1_regression
from massart.paper import algorithm_2
from massart.recover import recover
from massart.rows import ArrayRows, BoolArray, FloatArray

RIDGE_GRID = np.logspace(-8, 4, 25)
"""Penalties tried, in units of the mean square of the columns' lengths."""

RANSAC_TRIALS = 2000
"""At d = 30 these suffice up to 18 % of wrong rows; ten times as many, at ten times the cost, up to 24 %."""

RANSAC_THRESHOLD = 1e-6
"""Residual of an inlier over the median absolute label: inliers that fit exactly."""

TORRENT_BETA = 0.4
"""Share of rows left out where the caller does not know the share of wrong ones."""

MAX_STEPS = 200

ADA_DENSITY = 0.3
"""A threshold of AdaCRR is taken if the rows within one width of it are at most this share of those below it."""

ADA_DECAY = 0.9
"""Factor from the width of one step to that of the next."""

EXACT = 1e-12
"""Largest residual over the median absolute label below which nothing is left to improve."""


def naive_l1(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Minimise the absolute residuals of the rows as they are."""
    return l1_regression(X, y).coef


def normalized_l1(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Minimise the absolute residuals of (x, y)/|x|; a row that is zero says nothing."""
    lengths = np.linalg.norm(X, axis=1)
    rows = lengths > 0
    return l1_regression(X[rows] / lengths[rows, None], y[rows] / lengths[rows]).coef


def algorithm_1(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """L1 regression in 1/2-approximate radial-isotropic position (Algorithm 1; 2 where a subspace is heavy)."""
    return algorithm_2(X, y).w


def algorithm_1_tight(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Do the same in a position that is nearly exact: gamma = 0.001, where line 2 says 1/2."""
    return algorithm_2(X, y, 1e-3).w


def algorithm_1_effective(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Do the same in the position with the most effective rows, which is ours."""
    return algorithm_2(X, y, position="most_effective").w


def massart(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Recover as users of this package do."""
    return recover(ArrayRows(X, y), rng=rng, inliers="exact").coef[:, 0]


def least_squares(X: FloatArray, y: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
    """Minimise the squared residuals."""
    return np.asarray(np.linalg.lstsq(X, y, rcond=None)[0])


def tuned_ridge(X_clean: FloatArray, y_clean: FloatArray) -> Baseline:
    """Return ridge regression with the penalty that cross-validation chooses on these clean data, as Section 4 did."""
    return Baseline(partial(_ridge, choose_penalty(X_clean, y_clean)))


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

    return np.asarray(HuberRegressor(alpha=0.0, max_iter=1000, fit_intercept=False).fit(X, y).coef_)


def ransac(
    X: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    *,
    threshold: float | None = None,
    trials: int = RANSAC_TRIALS,
) -> FloatArray:
    """RANSAC with what this problem needs: d rows a draw, a threshold that only exact fits pass, more trials."""
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


def torrent(X: FloatArray, y: FloatArray, rng: np.random.Generator, *, beta: float = TORRENT_BETA) -> FloatArray:
    """TORRENT-FC: least squares on the share 1 - beta of the rows with the smallest residuals, until it repeats.

    Parameters
    ----------
    beta : float
        An upper bound on the share of wrong labels, which the paper takes as known.
    """
    n, d = X.shape
    kept = max(int(np.ceil((1 - beta) * n)), min(d, n))
    w = least_squares(X, y)
    least = np.inf
    for _ in range(MAX_STEPS):
        sizes = np.abs(y - X @ w)
        rows = np.sort(np.argpartition(sizes, kept - 1)[:kept])
        # Neither half of a step can raise the sum of the kept squares; where it stays, the rows repeat or tie.
        total = float(np.square(sizes[rows]).sum())
        if total >= least:
            break
        least = total
        w = least_squares(X[rows], y[rows])
    return w


def torrent_at_rate(X: FloatArray, y: FloatArray, rng: np.random.Generator, *, eta: float) -> FloatArray:
    """TORRENT where every label is wrong with probability `eta`: beta bounds the share in 98 of 100 tables."""
    return torrent(X, y, rng, beta=min(eta + 2 * float(np.sqrt(eta * (1 - eta) / len(X))), 1.0))


def ada_crr(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """AdaCRR-FC: least squares on the rows below a random threshold that few residuals are near.

    The paper draws fresh rows for every step, which its proof needs and small tables do not have: all rows serve every
    step here. Its constants are for the proof as well; those above are ours. The first
    width is the median absolute label: that of the residuals at w = 0, where the iteration starts.
    """
    w = start = np.zeros(X.shape[1])
    width = unit = float(np.median(np.abs(y[y != 0]))) if y.any() else 1.0
    for _ in range(MAX_STEPS):
        rows = _adaptive_rows(np.abs(y - X @ w), width, X.shape[1], rng)
        if rows is None:  # the width has become less than the error of w, which is as good as it gets
            break
        w = least_squares(X[rows], y[rows])
        width *= ADA_DECAY
        if np.abs(y[rows] - X[rows] @ w).max() <= EXACT * unit:
            break
    return least_squares(X, y) if w is start else w


def _adaptive_rows(sizes: FloatArray, width: float, least: int, rng: np.random.Generator) -> BoolArray | None:
    """Return the rows below the first of the thresholds u, u + 1, ... widths, u random, with few rows around it."""
    ordered = np.sort(sizes)
    # As many thresholds as rows: gross errors, or a small width, would make the list long.
    last = min(int(ordered[-1] / width) + 2, len(sizes))
    thresholds = (1.0 + rng.random() + np.arange(last)) * width
    below = np.searchsorted(ordered, thresholds)
    near = np.searchsorted(ordered, thresholds + width) - np.searchsorted(ordered, thresholds - width)
    allowed = (near <= ADA_DENSITY * below) & (below >= min(2 * least, len(sizes)))
    return np.asarray(sizes < thresholds[np.argmax(allowed)]) if allowed.any() else None


def r_regression(
    method: str, X: FloatArray, y: FloatArray, rng: np.random.Generator, *, limit: float = 600.0
) -> tuple[FloatArray, float]:
    """Return the coefficients of a method of peers.R, and the processor's seconds without the start of R.

    Rows and labels go through a file of doubles to one Rscript process, coefficients come back through another: no
    bindings between the two languages are needed. After `limit` seconds there is no answer. Starting R and loading a
    package takes about half a second, which the time of a figure's fit includes.
    """
    n, d = X.shape
    nothing = np.full(d, np.nan), np.nan
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "table"), Path(folder, "coefficients")
        source.write_bytes(X.tobytes(order="F") + y.tobytes())
        script = Path(__file__).with_name("peers.R")
        seed = int(rng.integers(2**31))
        command = ["Rscript", "--vanilla", str(script), method, str(source), str(target), str(n), str(d), str(seed)]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return nothing
        if done.returncode or not target.exists():
            return nothing
        *coef, seconds = np.fromfile(target)
        return np.array(coef), float(seconds)


def _r(method: str, X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    return r_regression(method, X, y, rng)[0]


LINEAR: dict[str, Baseline] = {
    "naive_l1": Baseline(naive_l1),
    "normalized_l1": Baseline(normalized_l1),
    "algorithm_1": Baseline(algorithm_1),
    "algorithm_1_tight": Baseline(algorithm_1_tight),
    "algorithm_1_effective": Baseline(algorithm_1_effective),
    "massart": Baseline(massart),
    "least_squares": Baseline(least_squares),
    "huber": Baseline(huber),
    "ransac": Baseline(ransac),
    "torrent": Baseline(torrent),
    "ada_crr": Baseline(ada_crr),
    "lmrob": Baseline(partial(_r, "lmrob"), "R: robustbase"),
    "lts": Baseline(partial(_r, "ltsReg"), "R: robustbase"),
}
"""Linear regression: key to method."""


def linear_given_rate(eta: float) -> dict[str, Baseline]:
    """Return the linear methods; TORRENT, whose paper takes the share of wrong labels as known, is given it."""
    return LINEAR | {"torrent": Baseline(partial(torrent_at_rate, eta=eta))}
