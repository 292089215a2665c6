r"""Whether the right labels are exact or noisy, or follow no rule at all.

A majority that agrees with one set of coefficients to rounding settles it: the data are exact, and nothing here may
send them to a noisy fit. Failing that, the labels are permuted over the rows, which keeps their values and breaks any
rule, and the same measures are taken again: the largest number of rows that agree to rounding (labels with few values
agree by chance), and the mean loss of a robust fit,

.. math:: L = \frac1n \sum_i \rho_c\Bigl(\frac{y_i - x_i^\top w}{s}\Bigr) ,

at the scale s that robust fits to permuted labels have. A rule shows as agreement, or a loss, out of reach of chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from massart.l1 import l1_regression
from massart.progress import Callback, silent
from massart.robust.biweight import loss, tuning_for_efficiency
from massart.robust.exactness import solve_exactly
from massart.robust.regression import RobustFit, Status, robust_regression
from massart.rows import FloatArray, check_labels, check_matrix, check_weights, precision_of

JUDGED_ROWS = 2000
"""Losses are compared on a sample of this many rows (20 for each column, if that is more)."""

# Standard deviations by which the loss must fall below that of permuted labels. The gain by chance is like a
# chi-squared variable, with a long tail, and its deviation is estimated from few permutations.
_DEVIATIONS = 8.0
_CLEAR = 0.5  # a scale below this part of every scale by chance needs no further evidence
_PLURALITY = 0.05  # share of rows, beyond those that any labels would allow, that can make a rule without a majority


class Inliers(Enum):
    """What the right labels are; the value is the message."""

    EXACT = "exact: rows agree to rounding with one set of coefficients, far more than chance allows"
    NOISY = "noisy: no majority agrees to rounding, yet the columns tell the labels far better than chance"
    NO_RULE = "no rule: the columns tell these labels no better than the same labels in random order"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the decision rests on.

    Attributes
    ----------
    inliers : Inliers
    n_rows : int
        Rows of positive weight.
    n_agree : int
        Rows that the best coefficients reproduce to rounding.
    share_agree : float
        Their share of the weight.
    chance_agree : int
        The same for permuted labels, largest of all permutations; `rank` where no permutation was needed.
    rank : int
        The rank of X: so many rows agree with some coefficients whatever the labels are.
    scale, chance_scale : float
        The scale of the robust fit, and the median scale of fits to permuted labels; 0 where not needed.
    explained : float
        ``1 - (scale / chance_scale)**2``, a robust R squared over chance; 1 for exact labels.
    deviations : float
        By how many standard deviations of its value for permuted labels the mean loss lies below their mean.
    """

    inliers: Inliers
    n_rows: int
    n_agree: int
    share_agree: float
    chance_agree: int
    rank: int
    scale: float
    chance_scale: float
    explained: float
    deviations: float


def judge_inliers(
    X: ArrayLike,
    y: ArrayLike,
    candidates: Sequence[ArrayLike] = (),
    *,
    sample_weight: ArrayLike | None = None,
    fit: RobustFit | None = None,
    tolerance: float | None = None,
    rng: np.random.Generator,
    n_permutations: int = 19,
    callback: Callback = silent,
) -> Evidence:
    """Decide whether the right labels are exact, noisy or follow no rule.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
    candidates : sequence of arrays of shape (d,)
        The best coefficients of an exact search.
    sample_weight : array of shape (n,), optional
    fit : RobustFit, optional
        A robust fit of the same rows, to save its computation here.
    tolerance : float, optional
        Residuals of at most this size agree (0.005 for cents); by default, rounding.
    rng : numpy.random.Generator
        Draws the permutations.
    n_permutations : int
    callback : callable

    Returns
    -------
    Evidence

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> y = np.where(rng.random(300) < 0.3, 9.0, X @ [1.0, 2.0])
    >>> judge_inliers(X, y, rng=rng).inliers.name
    'EXACT'
    >>> judge_inliers(X, y + 0.1 * rng.standard_normal(300), rng=rng).inliers.name
    'NOISY'
    >>> judge_inliers(X, rng.standard_normal(300), rng=rng).inliers.name
    'NO_RULE'
    """
    matrix = check_matrix(X)
    n, d = matrix.shape
    labels = check_labels(y, n)
    if labels.ndim != 1:
        raise ValueError(f"y must have shape ({n},), got {labels.shape}")
    weights = check_weights(sample_weight, n)
    if n_permutations < 2:
        raise ValueError(f"n_permutations must be at least 2, got {n_permutations}")
    if tolerance is not None and not 0.0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be a finite number and not negative, got {tolerance}")
    present = np.ones(n, dtype=bool) if weights is None else weights > 0
    shares = np.ones(n) if weights is None else weights
    rows = _Sample(
        matrix[present],
        labels[present],
        shares[present] / shares[present].sum(),
        max(precision_of(X), precision_of(y)),
        tolerance,
    )
    if fit is None:
        fit = robust_regression(
            rows.X, rows.y, sample_weight=rows.shares, rng=rng, starts=candidates, callback=callback
        )
    n_agree, share = max((rows.agreement(w) for w in [*candidates, fit.coef]), key=lambda found: (found[1], found[0]))
    count, rank = len(rows.y), fit.rank
    if share > 0.5 and n_agree > rank:
        return Evidence(Inliers.EXACT, count, n_agree, share, rank, rank, 0.0, 0.0, 1.0, np.inf)
    if fit.status is Status.UNDERDETERMINED:
        return Evidence(Inliers.NO_RULE, count, n_agree, share, rank, rank, 0.0, 0.0, 0.0, 0.0)

    sample = rows.take(max(JUDGED_ROWS, 20 * d), rng)
    ours = sample.measure(rng, [fit.coef, *candidates])
    chance = [sample.permuted(rng).measure(rng, []) for _ in range(n_permutations)]
    # Agreement was counted on a sample: as a share it holds for all rows.
    chance_agree = max(round((other.n_agree - rank) / len(sample.y) * count) + rank for other in chance)
    scale = float(np.median([other.scale for other in chance]))
    deviations = explained = 0.0
    if scale > 0.0:
        losses = np.array([other.loss(scale) for other in chance])
        spread = max(float(losses.std(ddof=1)), np.finfo(float).eps)
        deviations = (float(losses.mean()) - ours.loss(scale)) / spread
        explained = 1.0 - (ours.scale / scale) ** 2
    if n_agree - rank > max(2 * max(chance_agree - rank, 0), _PLURALITY * count):
        inliers = Inliers.EXACT
    else:
        clear = ours.scale < _CLEAR * min(other.scale for other in chance)
        inliers = Inliers.NOISY if clear or deviations > _DEVIATIONS else Inliers.NO_RULE
    return Evidence(inliers, count, n_agree, share, chance_agree, rank, ours.scale, scale, explained, deviations)


@dataclass(frozen=True, slots=True)
class _Measures:
    """What labels show: the residuals and scale of a robust fit, and how many rows agree to rounding."""

    residuals: FloatArray
    shares: FloatArray
    scale: float
    n_agree: int

    def loss(self, scale: float) -> float:
        return float(loss(self.residuals / scale, tuning_for_efficiency(0.95)) @ self.shares)


@dataclass(frozen=True, slots=True)
class _Sample:
    X: FloatArray
    y: FloatArray
    shares: FloatArray
    precision: float
    tolerance: float | None

    def agreement(self, w: ArrayLike) -> tuple[int, float]:
        """Return how many rows `w` fits, and their share; polished first where rounding decides."""
        coef = np.asarray(w, dtype=np.float64)
        if self.tolerance is not None:
            rows = np.abs(self.y - self.X @ coef) <= self.tolerance
        else:
            rows = solve_exactly(self.X, self.y, coef, self.precision)[1]
        return int(rows.sum()), float(self.shares[rows].sum())

    def take(self, size: int, rng: np.random.Generator) -> _Sample:
        if len(self.y) <= size:
            return self
        index = rng.choice(len(self.y), size, replace=False, p=self.shares)
        return _Sample(self.X[index], self.y[index], np.full(size, 1.0 / size), self.precision, self.tolerance)

    def permuted(self, rng: np.random.Generator) -> _Sample:
        return _Sample(self.X, rng.permutation(self.y), self.shares, self.precision, self.tolerance)

    def measure(self, rng: np.random.Generator, starts: Sequence[ArrayLike]) -> _Measures:
        """Fit robustly, and count the rows that agree with the fit or with an L1 vertex."""
        fit = robust_regression(self.X, self.y, sample_weight=self.shares, starts=starts, rng=rng, tol=1e-3)
        vertex = l1_regression(self.X, self.y, self.shares).coef
        n_agree = max(self.agreement(fit.coef)[0], self.agreement(vertex)[0])
        return _Measures(self.y - self.X @ fit.coef, self.shares, fit.scale, n_agree)
