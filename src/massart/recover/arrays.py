"""Recovery of rows that are all in memory, and the certificate of any formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart.certificate import Assumption, Certificate, geometry_of
from massart.recover.judge import judge
from massart.recover.judges import Formula, Judges
from massart.recover.problem import check_size, counted_as_rows
from massart.recover.propose import Options, propose
from massart.rows import (
    IDENTITY,
    Agreement,
    BoolArray,
    Callback,
    FloatArray,
    Link,
    Sample,
    check_labels,
    check_matrix,
    check_weights,
    levels,
    precision_of,
    silent,
    tally_of,
    verify,
)


@dataclass(frozen=True, slots=True)
class ArrayRecovery:
    """A formula y = f(w.x) with what the rows say about it.

    Attributes
    ----------
    coef : (d,) array
        w.
    agree : (n,) boolean array
        Rows that agree.
    agreement : Agreement
        When a row does.
    certificate : Certificate
        What is known.
    """

    coef: FloatArray
    agree: BoolArray
    agreement: Agreement
    certificate: Certificate


def recover_matrix(
    X: ArrayLike,
    y: ArrayLike,
    *,
    link: Link = IDENTITY,
    sample_weight: ArrayLike | None = None,
    tolerance: float | Literal["auto"] = "auto",
    search: bool = True,
    rng: np.random.Generator | None = None,
    callback: Callback = silent,
) -> ArrayRecovery:
    """Recover w with y = f(w.x) on more than half of the rows, and judge it by all of them.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    link : Link
        f; the identity by default.
    sample_weight : (n,) array, optional
        A row of weight c counts c times.
    tolerance : "auto" or float
        See :func:`massart.rows.levels`.
    search : bool
        False for L1 regression in radial-isotropic position (Algorithm 2; where a link clips, on the active rows) and a
        least-squares polish. For the paper's algorithms by themselves see :mod:`massart.paper`.
    rng : numpy.random.Generator, optional
        For the search and the certificate; a fixed one by default.
    callback : callable

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> y = X @ [3, 0, -1, 0.5, 2]
    >>> y[:60] = rng.standard_normal(60)
    >>> found = recover_matrix(X, y)
    >>> np.round(found.coef, 12) + 0.0, found.certificate.verdict.name
    (array([ 3. ,  0. , -1. ,  0.5,  2. ]), 'PROVEN')
    """
    sample, candidates = _checked(X, y, sample_weight, tolerance)
    options = Options(np.random.default_rng(0) if rng is None else rng, None if search else 0, callback)
    found = propose(sample, candidates, link, options)
    return _judged(sample, Formula(found.coef, found.agreement.uncapped, link), options.rng)


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
    rng = np.random.default_rng(random_state)
    found = judge_matrix(
        X, y, coef, intercept=intercept, link=link, sample_weight=sample_weight, tolerance=tolerance, rng=rng
    )
    return found.certificate


def judge_matrix(
    X: ArrayLike,
    y: ArrayLike,
    coef: ArrayLike,
    *,
    intercept: float | None = None,
    link: Link = IDENTITY,
    sample_weight: ArrayLike | None = None,
    tolerance: float | Literal["auto"] = "auto",
    rng: np.random.Generator | None = None,
) -> ArrayRecovery:
    """Return a formula with what the rows say about it; arguments as for :func:`certify`."""
    if not isinstance(link, Link):
        raise ValueError(f"link must be a massart.Link, got {link!r}")
    sample, candidates = _checked(X, y, sample_weight, tolerance, constant=intercept is not None)
    w, n_columns = np.asarray(coef, dtype=np.float64), sample.X.shape[1] - (intercept is not None)
    if w.shape != (n_columns,) or not np.isfinite(w).all():
        raise ValueError(f"coef must be {n_columns} finite numbers, one a column of X, got {coef!r}")
    if intercept is not None:
        if np.ndim(intercept) != 0 or not np.isfinite(intercept):
            raise ValueError(f"intercept must be a finite number or None, got {intercept!r}")
        w = np.append(w, float(intercept))
    counted = [(level, verify(sample.X, sample.y, w, level.uncapped, link)) for level in candidates]
    majority = [level for level, found in counted if 2 * sample.counts[found.agree].sum() > sample.counts.sum()]
    level = majority[0] if majority else candidates[0]
    return _judged(sample, Formula(w, level.uncapped, link), np.random.default_rng(0) if rng is None else rng)


def _checked(
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    tolerance: float | Literal["auto"],
    *,
    constant: bool = False,
) -> tuple[Sample, Sequence[Agreement]]:
    """Return the rows, with a constant column last, and the levels at which they may agree, the tightest first."""
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    if constant:
        rows = np.column_stack([rows, np.ones(len(rows))])
    sample = Sample(rows, labels, check_weights(sample_weight, len(rows)), np.arange(len(rows)))
    check_size(sample)
    return sample, levels(tolerance, rows, labels, X_precision=precision_of(X), y_precision=precision_of(y))


def _judged(sample: Sample, formula: Formula, rng: np.random.Generator) -> ArrayRecovery:
    """Judge by all rows, as the driver does, in an order that is their own."""
    found, marks = formula.marks(sample)
    rows, unit, repeated = counted_as_rows(sample)
    rows = rows.in_canonical_order()
    units = rows.index if repeated else None
    judges = Judges(rows, geometry_of(rows.X, sample_weight=rows.weights, units=units), None, units, Assumption(), rng)
    certificate = judge(formula, judges, tally_of(marks, sample.weights) / unit)
    return ArrayRecovery(formula.coef, found.agree, formula.agreement, certificate)
