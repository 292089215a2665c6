r"""Whether the right labels are exact or noisy, or follow no rule at all.

A majority that agrees with one set of coefficients to rounding settles it: the data are exact, and nothing here may
send them to a noisy fit. So does a minority far beyond accident (:mod:`massart.accidents`). Failing that, the columns
must explain the labels better than chance. If they say nothing about them, all orders of the labels are equally likely,
so that the share of permutations with a statistic as large is a p-value (Fisher 1935), whatever labels and columns are.

Two statistics need no fit but least squares, of the same rows for all permutations: the share of the variance of the
normal scores of the labels that the columns explain, on all rows and on those that are not far out in X. Scores are
bounded, so wrong labels cost no more than their share, and rows of bad leverage are in one of the two alone.

What these overlook, such as two planes that cancel each other, a robust fit may find: the rows are cut in two, and
the fit of one part has not seen the labels of the other. Its mean loss there is compared with that of permuted labels;
the parts change places.

References
----------
Fisher (1935), *The design of experiments*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from massart.accidents import accidental_agreement
from massart.robust.biweight import TUNING, loss
from massart.robust.mm_estimator import Status
from massart.robust.refinement import ROUNDING, size_of_terms, solve_exactly
from massart.robust.regression import RobustFit, robust_regression
from massart.rows import Callback, FloatArray, check_labels, check_matrix, check_weights, precision_of, silent

JUDGED_ROWS = 2000
"""Robust fits see a sample of this many rows (20 for each column, if that is more)."""

LEVEL, OF_RELATION = 0.0075, 0.85
"""The probability with which labels that have nothing to do with the columns are called noisy, and the part of it for
the statistics that need no robust fit."""

_PERMUTATIONS, _OF_HELD_OUT = 999, 3_999  # the least p-values are half of what each may be, for two fits as well
_FAR_OUT = 3.0  # median deviations of a column, in the mean of squares, beyond which a row is far out in X
_FITTED_ROWS = 3  # rows for each column that a fit sees, as long as a quarter of all is left to judge it
_RANK_TOLERANCE = 1e-10  # of singular values, relative to the largest
_PLURALITY = 0.05  # share of rows, beyond those that any labels would allow, that can make a rule without a majority


class Inliers(Enum):
    """What the right labels are; the value is the message."""

    EXACT = "exact: rows agree to rounding with one set of coefficients, far more than chance allows"
    NOISY = "noisy: no majority agrees to rounding, yet the columns explain the labels better than chance"
    NO_RULE = "no rule: the columns explain these labels no better than the same labels in random order"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the right labels are, and what that rests on.

    Attributes
    ----------
    inliers : Inliers
    n_rows : int
        Rows of positive weight.
    n_agree : int
        Rows that the best coefficients reproduce to rounding.
    p_value : float
        Of the hypothesis that the labels have nothing to do with the columns; 0 for exact ones, 1 where rows are too
        few to say.
    """

    inliers: Inliers
    n_rows: int
    n_agree: int
    p_value: float


def judge_inliers(
    X: ArrayLike,
    y: ArrayLike,
    candidates: Sequence[ArrayLike] = (),
    *,
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator,
    callback: Callback = silent,
) -> Judgement:
    """Decide whether the right labels are exact, noisy or follow no rule.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
    candidates : sequence of arrays of shape (d,)
        The best coefficients of an exact search and of a robust fit; without any, those of a robust fit.
    sample_weight : array of shape (n,), optional
    rng : numpy.random.Generator
        Cuts the rows in two and draws the permutations.
    callback : callable

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
    >>> judge_inliers(X, rng.permutation(y), rng=rng).inliers.name
    'NO_RULE'
    """
    rows = _Labelled.checked(X, y, sample_weight)
    d = rows.X.shape[1]
    sample = rows.drawn(max(JUDGED_ROWS, 20 * d), rng)
    if not candidates:
        fit = robust_regression(sample.X, sample.y, sample_weight=sample.shares, rng=rng, tol=1e-3, callback=callback)
        candidates = [fit.coef]
    count, rank = len(rows.y), int(np.linalg.matrix_rank(sample.X))
    n_agree, share = rows.most_agreeing(candidates)
    beyond = n_agree - rank > max(2 * (rows.accidents(rank) - rank), _PLURALITY * count)
    if count > rank and ((share > 0.5 and n_agree > rank) or beyond):
        return Judgement(Inliers.EXACT, count, n_agree, 0.0)
    p_value = min(1.0, sample.relation(rng) / OF_RELATION)
    if p_value > LEVEL:
        trials = [sample.trial(held_out, rng, callback) for held_out in sample.parts(rank, rng)]
        p_value = min([p_value, *(len(trials) * trial / (1 - OF_RELATION) for trial in trials)])
    inliers = Inliers.NOISY if p_value <= LEVEL else Inliers.NO_RULE
    return Judgement(inliers, count, n_agree, p_value)


@dataclass(frozen=True, slots=True)
class _Labelled:
    """Rows that count, their labels and shares of the whole."""

    X: FloatArray
    y: FloatArray
    shares: FloatArray
    precision: float

    @classmethod
    def checked(cls, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> _Labelled:
        """Return the rows of positive weight, or raise ValueError naming the argument that is wrong."""
        matrix = check_matrix(X)
        labels = check_labels(y, len(matrix))
        if labels.ndim != 1:
            raise ValueError(f"y must have shape ({len(matrix)},), got {labels.shape}")
        weights = check_weights(sample_weight, len(matrix))
        shares = np.ones(len(matrix)) if weights is None else weights
        present = np.flatnonzero(shares)
        precision = max(precision_of(X), precision_of(y))
        return cls(matrix[present], labels[present], shares[present] / shares.sum(), precision)

    def drawn(self, size: int, rng: np.random.Generator) -> _Labelled:
        """Return `size` rows drawn by their shares, which are equal then; all of them if there are no more."""
        if len(self.y) <= size:
            return self
        index = rng.choice(len(self.y), size, replace=False, p=self.shares)
        return _Labelled(self.X[index], self.y[index], np.full(size, 1.0 / size), self.precision)

    def accidents(self, rank: int) -> float:
        """Return the number of rows that would agree with the best coefficients if labels had no rule."""
        n = len(self.y)
        return accidental_agreement(self.y, ROUNDING * self.precision * np.abs(self.y), np.ones(n), min(rank, n))

    def most_agreeing(self, coefs: Sequence[ArrayLike]) -> tuple[int, float]:
        """Return the number and the share of the rows that the best of some coefficients fits, once polished."""
        best = 0, 0.0
        for coef in coefs:
            rows = solve_exactly(self.X, self.y, np.asarray(coef, dtype=np.float64), self.precision)[1]
            best = max(best, (int(rows.sum()), float(self.shares[rows].sum())), key=lambda found: (found[1], found[0]))
        return best

    def parts(self, rank: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Return two sets of rows, without a common one, to be judged by fits of all others; halves if rows suffice."""
        n = len(self.y)
        size = min(n // 2, max(n // 4, n - _FITTED_ROWS * rank))
        if n - size <= rank or size < 2:
            return []
        order = rng.permutation(n)
        return [order[:size], order[n - size :]]

    def relation(self, rng: np.random.Generator) -> float:
        """Return the share of orders of the labels, their own among them, that the columns explain as well."""
        n = len(self.y)
        from scipy.stats import rankdata  # slow to import

        scores = ndtri(rankdata(self.y) / (n + 1))
        orders = np.vstack([scores, rng.permuted(np.broadcast_to(scores, (_PERMUTATIONS, n)), axis=1)])
        off = np.abs(self.X - np.median(self.X, axis=0))
        usual = np.median(off, axis=0)
        inside = (off[:, usual > 0] / usual[usual > 0]) ** 2
        near = inside.mean(axis=1) <= _FAR_OUT**2 if inside.shape[1] else np.ones(n, dtype=bool)
        found = [_explained(self.X, orders)]
        if near.sum() < n:
            found.append(_explained(self.X[near], orders[:, near]))
        # The better of the two counts, for permuted labels, too.
        from scipy.stats import rankdata  # slow to import

        best = np.min([rankdata(-values, method="max") for values in found], axis=0)
        return float((best <= best[0]).mean())

    def trial(self, held_out: NDArray[np.intp], rng: np.random.Generator, callback: Callback) -> float:
        """Fit the rows that are not held out, and permute the labels of those that are."""
        seen = np.ones(len(self.y), dtype=bool)
        seen[held_out] = False
        X, y, shares = self.X[seen], self.y[seen], self.shares[seen]
        fit = robust_regression(X, y, sample_weight=shares, rng=rng, tol=1e-3, callback=callback)
        return self._p_value(fit, held_out, rng)

    def _p_value(self, fit: RobustFit, held_out: NDArray[np.intp], rng: np.random.Generator) -> float:
        """Return the share of orders of the labels held out, their own among them, that `fit` explains no worse."""
        if fit.status is Status.UNDERDETERMINED:
            return 1.0
        X, y = self.X[held_out], self.y[held_out]
        labels = np.vstack([y, rng.permuted(np.broadcast_to(y, (_OF_HELD_OUT, len(y))), axis=1)])
        residuals = labels - X @ fit.coef
        if fit.scale > 0.0:
            losses = loss(residuals / fit.scale, TUNING)
        else:
            wrong = np.abs(residuals) > ROUNDING * self.precision * size_of_terms(X, y, fit.coef)
            losses = wrong.astype(np.float64)
        means = losses @ self.shares[held_out]
        return float((means <= means[0]).mean())


def _explained(X: FloatArray, labels: FloatArray) -> FloatArray:
    """Return the share of the variance of each row of `labels` that the columns explain beyond a constant."""
    centred = X - X.mean(axis=0)
    U, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    U = U[:, sizes > _RANK_TOLERANCE * max(float(sizes[0]), np.finfo(float).tiny)]
    labels = labels - labels.mean(axis=1, keepdims=True)
    total = (labels * labels).sum(axis=1)
    found = ((labels @ U) ** 2).sum(axis=1)
    # Rounded, so that orders that only exchange labels which are alike have the same share.
    return np.asarray(np.round(np.divide(found, total, out=np.zeros_like(total), where=total > 0), 12))
