r"""Whether the right labels are exact or noisy, or follow no rule at all.

A majority that agrees with one set of coefficients to rounding settles it: the data are exact, and nothing here may
send them to a noisy fit. So does a minority far beyond accident (:func:`massart.search.accidental_agreement`). Failing
that, the columns must explain the labels better than chance. If they say nothing about them, all orders of the labels
are equally likely, so that the share of permutations with a statistic as large is a p-value (Fisher 1935), whatever
labels and columns are.

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
from numpy.typing import NDArray
from scipy.special import ndtri

from massart.robust.refinement import ROUNDING, loss, size_of_terms, solve_exactly
from massart.robust.regression import Status, robust_regression
from massart.robust.starts import RANK, Positioned
from massart.rows import Callback, FloatArray, precision_of, silent
from massart.search import accidental_agreement

JUDGED_ROWS = 2000
"""Robust fits see a sample of this many rows (20 for each column, if that is more)."""

LEVEL, OF_RELATION = 0.0075, 0.85
"""The probability with which labels that have nothing to do with the columns are called noisy, and the part of it for
the statistics that need no robust fit."""

_PERMUTATIONS, _OF_HELD_OUT = 999, 3_999  # the least p-values are half of what each may be, for two fits as well
_FAR_OUT = 3.0  # median deviations of a column, in the mean of squares, beyond which a row is far out in X
_FITTED_ROWS = 3  # rows for each column that a fit sees, as long as a quarter of all is left to judge it
_PLURALITY = 0.05  # share of rows, beyond those that any labels would allow, that can make a rule without a majority


class Inliers(Enum):
    """What the right labels are; the value is the message."""

    EXACT = "exact: rows agree to rounding with one set of coefficients, far more than chance allows"
    NOISY = "noisy: no majority agrees to rounding, yet the columns explain the labels better than chance"
    NO_RULE = "no rule: the columns explain these labels no better than the same labels in random order"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the right labels are, and the p-value of the hypothesis that they have nothing to do with the columns.

    It is 0 for exact ones, and 1 where rows are too few to say.
    """

    inliers: Inliers
    p_value: float


def judge_inliers(
    X: FloatArray,
    y: FloatArray,
    candidates: Sequence[FloatArray],
    *,
    sample_weight: FloatArray | None = None,
    rng: np.random.Generator,
    callback: Callback = silent,
) -> Judgement:
    """Decide whether the right labels are exact, noisy or follow no rule.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
    candidates : sequence of arrays of shape (d,)
        The best coefficients of an exact search, and of a robust fit.
    sample_weight : array of shape (n,), optional
    rng : numpy.random.Generator
        Cuts the rows in two and draws the permutations.
    callback : callable

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, w = rng.standard_normal((300, 2)), np.array([1.0, 2.0])
    >>> y = np.where(rng.random(300) < 0.3, 9.0, X @ w)
    >>> judge_inliers(X, y, [w], rng=rng).inliers.name
    'EXACT'
    >>> judge_inliers(X, y + 0.1 * rng.standard_normal(300), [w], rng=rng).inliers.name
    'NOISY'
    >>> judge_inliers(X, rng.permutation(y), [w], rng=rng).inliers.name
    'NO_RULE'
    """
    precision = max(precision_of(X), precision_of(y))
    if sample_weight is not None:
        X, y, sample_weight = X[sample_weight > 0], y[sample_weight > 0], sample_weight[sample_weight > 0]
    (n, d), shares = X.shape, np.ones(len(y)) if sample_weight is None else sample_weight
    rows = Positioned(X, y, shares / shares.sum())
    sample = rows
    if n > max(JUDGED_ROWS, 20 * d):  # drawn by their shares, which are equal then
        size = max(JUDGED_ROWS, 20 * d)
        index = rng.choice(n, size, replace=False, p=rows.shares)
        sample = Positioned(X[index], y[index], np.full(size, 1.0 / size))
    rank = int(np.linalg.matrix_rank(sample.Z))

    if _is_exact(rows, candidates, rank, precision):
        return Judgement(Inliers.EXACT, 0.0)
    # Noisy, if the columns explain the labels better than those in another order: all rows, or a fit of one half.
    p_value = min(1.0, _relation(sample, rng) / OF_RELATION)
    count = len(sample.y)
    size = min(count // 2, max(count // 4, count - _FITTED_ROWS * rank))
    if p_value > LEVEL and count - size > rank and size >= 2:
        order = rng.permutation(count)
        trials = [_trial(sample, part, precision, rng, callback) for part in (order[:size], order[count - size :])]
        p_value = min(p_value, *(len(trials) * trial / (1 - OF_RELATION) for trial in trials))
    return Judgement(Inliers.NOISY if p_value <= LEVEL else Inliers.NO_RULE, p_value)


def _is_exact(rows: Positioned, candidates: Sequence[FloatArray], rank: int, precision: float) -> bool:
    """Return whether a majority agrees to rounding, or far more rows than labels without a rule would give."""
    X, y, n, share, n_agree = rows.Z, rows.y, len(rows.y), 0.0, 0
    for coef in candidates:
        agree = solve_exactly(X, y, coef, precision)[1]
        share, n_agree = max((share, n_agree), (float(rows.shares[agree].sum()), int(agree.sum())))
    accidents = accidental_agreement(y, ROUNDING * precision * np.abs(y), np.ones(n), rank)
    beyond = n_agree - rank > max(2 * (accidents - rank), _PLURALITY * n)
    return n > rank and ((share > 0.5 and n_agree > rank) or beyond)


def _relation(rows: Positioned, rng: np.random.Generator) -> float:
    """Return the share of orders of the labels, their own among them, that the columns explain as well."""
    from scipy.stats import rankdata  # slow to import

    X, n = rows.Z, len(rows.y)
    scores = ndtri(rankdata(rows.y) / (n + 1))
    orders = np.vstack([scores, rng.permuted(np.broadcast_to(scores, (_PERMUTATIONS, n)), axis=1)])
    off = np.abs(X - np.median(X, axis=0))
    usual = np.median(off, axis=0)
    inside = (off[:, usual > 0] / usual[usual > 0]) ** 2
    near = inside.mean(axis=1) <= _FAR_OUT**2 if inside.shape[1] else np.ones(n, dtype=bool)
    found = [_explained(X, orders)]
    if near.sum() < n:
        found.append(_explained(X[near], orders[:, near]))
    # The better of the two counts, for permuted labels, too.
    best = np.min([rankdata(-values, method="max") for values in found], axis=0)
    return float((best <= best[0]).mean())


def _trial(
    rows: Positioned, held_out: NDArray[np.intp], precision: float, rng: np.random.Generator, callback: Callback
) -> float:
    """Fit the rows that are not held out; return the share of orders of the other labels that it explains no worse."""
    seen = np.ones(len(rows.y), dtype=bool)
    seen[held_out] = False
    fit = robust_regression(
        rows.Z[seen], rows.y[seen], sample_weight=rows.shares[seen], rng=rng, tol=1e-3, callback=callback
    )
    if fit.status is Status.UNDERDETERMINED:
        return 1.0
    X, y = rows.Z[held_out], rows.y[held_out]
    labels = np.vstack([y, rng.permuted(np.broadcast_to(y, (_OF_HELD_OUT, len(y))), axis=1)])
    residuals = labels - X @ fit.coef
    if fit.scale > 0.0:
        losses = loss(residuals / fit.scale)
    else:
        losses = (np.abs(residuals) > ROUNDING * precision * size_of_terms(X, y, fit.coef)).astype(np.float64)
    means = losses @ rows.shares[held_out]
    return float((means <= means[0]).mean())


def _explained(X: FloatArray, labels: FloatArray) -> FloatArray:
    """Return the share of the variance of each row of `labels` that the columns explain beyond a constant."""
    centred = X - X.mean(axis=0)
    U, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    U = U[:, sizes > RANK * max(float(sizes[0]), np.finfo(float).tiny)]
    labels = labels - labels.mean(axis=1, keepdims=True)
    total = (labels * labels).sum(axis=1)
    found = ((labels @ U) ** 2).sum(axis=1)
    # Rounded, so that orders that only exchange labels which are alike have the same share.
    return np.asarray(np.round(np.divide(found, total, out=np.zeros_like(total), where=total > 0), 12))
