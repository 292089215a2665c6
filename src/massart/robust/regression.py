r"""Robust regression when the right labels are noisy: the public function and its result.

More than half of the rows follow :math:`y_i = x_i^\top w^* + \sigma e_i`; the labels of the others are arbitrary. The
estimate withstands them (starts from Algorithm 2's answer, L1 regression in radial-isotropic position, FAST-LTS and
sets of neighbours), separates them where they are a mode of their own, and loses little where there are none (Tukey's
biweight at 95 % efficiency, the MM-estimate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from massart.robust.biweight import TUNING, weight
from massart.robust.mm_estimator import Problem, Status
from massart.robust.refinement import agreeing_rows
from massart.rows import (
    BoolArray,
    Callback,
    FloatArray,
    check_labels,
    check_matrix,
    check_weights,
    precision_of,
    silent,
)
from massart.rows.scaling import power_of_two

CUTOFF = 3.0
"""Rows within so many scales are inliers."""

_FAR_OFF = 1 / np.finfo(float).eps  # typical labels: whatever is further off is as wrong, and they are its rounding


@dataclass(frozen=True, slots=True)
class RobustFit:
    r"""Coefficients of a regression with wrong rows and noisy right ones.

    Attributes
    ----------
    coef : array of shape (d,)
        w, of minimum norm where X is rank deficient.
    scale : float
        :math:`\sigma`: the standard deviation of the noise on right rows, were it Gaussian. 0 for an exact fit.
    weights : array of shape (n,)
        Robustness weight of each row, from 1 (right) to 0 (wrong); the probability to be right where wrong rows are a
        mode of their own.
    inliers : boolean array of shape (n,)
        Rows with :math:`|y_i - x_i^\top w| \le 3` times `scale`; for an exact fit, those that agree.
    covariance : array of shape (d, d)
        Of `coef`, in the directions that the trusted rows determine; zero in the others.
    standard_errors : array of shape (d,)
        Square roots of the diagonal of `covariance`; infinite for a coefficient that the trusted rows do not
        determine (redundant columns, a dummy of which every row is wrong), 0 in an exact fit. Shrinkage makes them
        smaller and the coefficients biased towards 0.
    ridge : float
        :math:`\lambda` of the penalty :math:`\lambda |w|^2` on the weighted sum of squared residuals; 0 for none.
    rank : int
        The rank of X (of its rows of positive weight).
    n_iter : int
        Re-weighted least-squares steps.
    status : Status
    separated : bool
        Whether wrong rows were found to be a mode of their own: see :mod:`massart.robust.modes`.
    """

    coef: FloatArray
    scale: float
    weights: FloatArray
    inliers: BoolArray
    covariance: FloatArray
    standard_errors: FloatArray
    ridge: float
    rank: int
    n_iter: int
    status: Status
    separated: bool = False


def robust_regression(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    starts: Sequence[ArrayLike] = (),
    rng: np.random.Generator,
    tol: float = 1e-7,
    max_iter: int = 500,
    callback: Callback = silent,
) -> RobustFit:
    r"""Fit a linear function to the majority of the rows, when even right labels are noisy.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
    sample_weight : array of shape (n,), optional
        How much a row counts. Only ratios matter: weights (2, 1) give the coefficients of the first row repeated, and
        the standard errors of two rows. A row of weight 0 is judged by the fit and has no part in it.
    starts : sequence of arrays of shape (d,)
        Coefficients to start from besides our own, such as the answer of Algorithm 2.
    rng : numpy.random.Generator
        Draws the random starts.
    tol : float
        The steps end when no trusted row's fit changes by more than this share of the scale.
    max_iter : int
        Limit of re-weighted least-squares steps.
    callback : callable
        Called with a :class:`~massart.rows.progress.Progress` after each step.

    Raises
    ------
    ValueError
        Naming the argument that is wrong.

    Notes
    -----
    Steps: place the rows in radial-isotropic position; collect starts (zero, least squares, L1, those given, 500
    random ones) and take concentration steps from each; separate right rows from a mode of wrong ones by EM steps from
    the best of them, from sets of neighbours and from least squares at another height (:mod:`massart.robust.modes`). If
    the likelihood of deleted rows says that there are two modes, the right one is the answer. Else it is the
    M-estimate: S-steps, then M-steps and the D-scale in turn, held near the scale of the start. With fewer than ten
    rows for each of many columns, the fit is shrunk by a ridge that predicts deleted rows well; laws of equivariance
    under linear maps of X hold without one. If the start, or anything on the way, fits more than half of the rows to
    rounding, those rows are solved by least squares and the fit is exact.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.standard_normal(500)
    >>> y[:200] = 50.0
    >>> fit = robust_regression(X, y, rng=rng)
    >>> fit.coef.round(1).tolist(), round(fit.scale, 1), int(fit.inliers[:200].sum())
    ([1.0, -2.0], 0.1, 0)
    """
    matrix = check_matrix(X)
    n, d = matrix.shape
    labels = _check_vector(y, n)
    sample = check_weights(sample_weight, n)
    given = [_check_start(start, d, j) for j, start in enumerate(starts)]
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy.random.Generator, got {rng!r}")
    if not tol > 0.0:
        raise ValueError(f"tol must be positive, got {tol}")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter}")
    precision = max(precision_of(X), precision_of(y))

    # Powers of two bring numbers near one, so that squares neither overflow nor vanish; they change no bit.
    x_unit, y_unit = float(power_of_two(np.abs(matrix).max())), float(power_of_two(_typical(labels)))
    present = np.ones(n, dtype=bool) if sample is None else sample > 0
    counts = np.ones(n) if sample is None else sample / sample[present].mean()
    with np.errstate(over="ignore", under="ignore"):
        problem = Problem(
            X=matrix[present] / x_unit,
            y=np.clip(labels[present] / y_unit, -_FAR_OFF, _FAR_OFF),
            counts=counts[present],
            precision=precision,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
        )
        unit = y_unit / x_unit
        answer = problem.solve([start / unit for start in given], rng)
        residuals = labels / y_unit - matrix / x_unit @ answer.coef
        if answer.scale == 0.0:
            inliers = agreeing_rows(matrix / x_unit, labels / y_unit, answer.coef, precision)
            weights = inliers.astype(float)
        else:
            inliers = np.abs(residuals) <= CUTOFF * answer.scale
            weights = weight(residuals / answer.scale, TUNING)
            if answer.modes is not None:
                weights = answer.modes.trust_of(residuals)
        return RobustFit(
            coef=answer.coef * unit,
            scale=answer.scale * y_unit,
            weights=weights,
            inliers=inliers,
            covariance=answer.covariance * unit * unit,
            standard_errors=answer.standard_errors * unit,
            ridge=answer.ridge * len(problem.y) * x_unit**2,
            rank=answer.rank,
            n_iter=answer.n_iter,
            status=answer.status,
            separated=answer.modes is not None,
        )


def _typical(labels: FloatArray) -> float:
    sizes = np.abs(labels[labels != 0])
    return float(np.median(sizes)) if sizes.size else 1.0


def _check_vector(y: ArrayLike, n: int) -> FloatArray:
    labels = check_labels(y, n)
    if labels.ndim != 1:
        raise ValueError(f"y must have shape ({n},), got {labels.shape}")
    return labels


def _check_start(start: ArrayLike, d: int, j: int) -> FloatArray:
    array = np.asarray(start, dtype=np.float64)
    if array.shape != (d,) or not np.isfinite(array).all():
        raise ValueError(f"starts[{j}] must be {d} finite numbers, got an array of shape {array.shape}")
    return array
