"""The certificate of any formula, by rows that are all in memory."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart.certificate import Assumption, Certificate, geometry_of
from massart.recover.certification import CertificationRows, Formula
from massart.recover.judge import judge
from massart.recover.problem import check_size, counted_as_rows
from massart.rows import (
    IDENTITY,
    Link,
    Sample,
    check_labels,
    check_matrix,
    check_weights,
    levels,
    precision_of,
    tally_of,
)


def certify(
    X: ArrayLike,
    y: ArrayLike,
    coef: ArrayLike,
    *,
    intercept: float | None = None,
    link: Link = IDENTITY,
    sample_weight: ArrayLike | None = None,
    tolerance: float | Literal["auto"] = "auto",
    random_state: int | np.random.Generator | None = 0,
) -> Certificate:
    """Return what the rows say about a formula, whoever found it.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    coef : (d,) array
        The formula y = f(coef.x + intercept): of an algorithm of :mod:`massart.paper`, of another library, from a book.
    intercept : float, optional
        The constant, if the formula has one: the certificate then counts a constant column, the last.
    link : Link
        f; the identity by default, ``massart.Link()`` for a ReLU. Where f clips, a formula that was found with these
        labels is not confirmed by them.
    sample_weight : (n,) array, optional
        A row of weight c counts c times.
    tolerance : "auto" or float
        When a row agrees. "auto" takes the tightest level at which most rows do, and the tightest of all where they do
        at none: a printed number stands for an interval.
    random_state : int, numpy.random.Generator or None
        For bounds that are drawn.

    Returns
    -------
    Certificate
        As that of :class:`massart.MassartRegressor`: it holds for any formula, since it does not ask how this one was
        found.

    Examples
    --------
    >>> import massart
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 3))
    >>> y = X @ [3, 0, -1]
    >>> y[:90] = 7
    >>> massart.certify(X, y, [3, 0, -1]).verdict.name, massart.certify(X, y, [3, 0, -1.001]).verdict.name
    ('PROVEN', 'NONE')
    """
    if not isinstance(link, Link):
        raise ValueError(f"link must be a massart.Link, got {link!r}")
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    w, n_columns = np.asarray(coef, dtype=np.float64), rows.shape[1]
    if w.shape != (n_columns,) or not np.isfinite(w).all():
        raise ValueError(f"coef must be {n_columns} finite numbers, one a column of X, got {coef!r}")
    if intercept is not None:
        if np.ndim(intercept) != 0 or not np.isfinite(intercept):
            raise ValueError(f"intercept must be a finite number or None, got {intercept!r}")
        w, rows = np.append(w, float(intercept)), np.column_stack([rows, np.ones(len(rows))])
    sample = Sample(rows, labels, check_weights(sample_weight, len(rows)), np.arange(len(rows)))
    check_size(sample)
    known = levels(tolerance, rows, labels, X_precision=precision_of(X), y_precision=precision_of(y))
    total = sample.counts.sum()
    majority = (
        level for level in known if 2 * sample.counts[level.uncapped.agree(rows, labels, w, link)].sum() > total
    )
    formula = Formula(w, next(majority, known[0]).uncapped, link)

    # Judged by all rows, as the driver does, in an order that is their own.
    _, marks = formula.marks(sample)
    judging, unit, repeated = counted_as_rows(sample)
    judging = judging.in_canonical_order()
    units = judging.index if repeated else None
    geometry = geometry_of(judging.X, sample_weight=judging.weights, units=units)
    certification = CertificationRows(judging, geometry, Assumption(), np.random.default_rng(random_state), units=units)
    return judge(formula, certification, tally_of(marks, sample.weights) / unit)
