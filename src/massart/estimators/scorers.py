"""Scores for labels of which some are wrong: ``scoring=`` of scikit-learn's searches and cross-validation.

R² on such labels rewards what comes closest to the wrong ones. The scores here count the rows that agree, or weigh rows
as a robust fit does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer
from sklearn.utils.validation import check_array, check_consistent_length

from massart.estimators.inference import moments_of, weight_of
from massart.robust import m_scale
from massart.rows import FloatArray, check_weights, to_numpy

_HALF = 0.5


def robust_r2_score(y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Return the robust R² of predictions by any model: 1 for perfect ones, also where fewer than half are wrong.

    It is the coefficient of Renaud and Victoria-Feser (2010). The weights of the rows are those of a robust fit with
    these residuals, whose scale withstands that just under half of the labels are wrong: to be close to a few
    rows, however close, does not make a score.

    Parameters
    ----------
    y_true, y_pred : (n,) or (n, m) arrays
        Of several columns the mean score is returned.
    sample_weight : (n,) array, optional

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import r2_score
    >>> y = np.arange(10.0)
    >>> wrong = np.where(y < 3, 500, y)
    >>> robust_r2_score(wrong, y), r2_score(wrong, y) < 0
    (1.0, True)
    """
    y, predicted = (_columns(values) for values in (y_true, y_pred))
    check_consistent_length(y, predicted)
    counts = _counts(sample_weight, len(y))
    return float(np.mean([_r2(*columns, counts) for columns in zip(y.T, predicted.T, strict=True)]))


def _columns(values: ArrayLike) -> FloatArray:
    array = check_array(to_numpy(values), ensure_2d=False, dtype=np.float64)
    return np.asarray(array.reshape(len(array), -1))


def _counts(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    found = check_weights(sample_weight, n)
    return np.ones(n) if found is None else found


def _r2(y: FloatArray, predicted: FloatArray, counts: FloatArray) -> float:
    residuals = y - predicted
    scale = float(m_scale(residuals, counts / counts.sum(), _HALF))
    weights = weight_of(residuals, scale) if scale > 0 else (residuals == 0).astype(np.float64)
    return moments_of(y, residuals, weights * counts).r2(intercept=True)


robust_r2_scorer = make_scorer(robust_r2_score)
"""``scoring=robust_r2_scorer``: :func:`robust_r2_score` of any regressor."""


def agreement_scorer(estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
    """Return the share of rows that agree with a fit, less the share that would agree with the best constant.

    A row agrees as the fit says: exactly, within rounding or, where labels carry noise, within three scales of it. As
    that is wider the worse a fit is, a constant as wide is the mark to beat: a formula that every row follows only
    because its scale is large scores 0. Of labels with hardly two alike, an exact formula scores the share of its rows.

    Parameters
    ----------
    estimator : estimator of this package, fitted, or a Pipeline that ends in one
    X : (n, d) array
    y : (n,) or (n, m) array
        Of several columns the mean score is returned.
    sample_weight : (n,) array, optional
    """
    if hasattr(estimator, "steps"):
        if len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    if not hasattr(estimator, "agrees"):
        raise ValueError(f"agreement_scorer needs an estimator of massart, got {type(estimator).__name__}")
    agree, labels = to_numpy(estimator.agrees(X, y)), _columns(y)
    n = len(labels)
    counts = _counts(sample_weight, n)
    scores = [
        float(counts[follows].sum() - _most_alike(column, counts, width)) / float(counts.sum())
        for follows, column, width in zip(agree.reshape(n, -1).T, labels.T, _half_widths(estimator), strict=True)
    ]
    return float(np.mean(scores))


def _half_widths(estimator: Any) -> list[float]:
    """Return the largest distance of an agreeing label from each formula."""
    coef = np.column_stack([np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_)])
    known = (estimator.certificate_,) if estimator.coef_.ndim == 1 else estimator.certificate_
    used = coef if estimator.fit_intercept else coef[:, :-1]
    return [certificate.agreement.slack(w) for certificate, w in zip(known, used, strict=True)]


def _most_alike(y: FloatArray, counts: FloatArray, width: float) -> float:
    """Return the largest weight of labels that one constant explains."""
    order = np.argsort(y, kind="stable")
    values, sums = y[order], np.concatenate([[0.0], np.cumsum(counts[order])])
    ends = np.searchsorted(values, values + 2 * width, side="right")
    return float((sums[ends] - sums[:-1]).max())
