r"""Counting exactly, by enumeration, and counting under the assumption of general position.

If rows span R^d, every set of rows in one hyperplane lies in a hyperplane that d - 1 independent rows span. So all
subsets of d - 1 rows give all hyperplanes that matter. Parallel rows lie in the same hyperplanes: one of each class
stands for all, with their weights added.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from massart.certificate.span import HyperplaneBound, span_of, unit_rows
from massart.rows import FloatArray, check_matrix, check_weights

NEAR = 1e-9
"""A unit row within this distance of a hyperplane counts as lying in it (see the proof in `exact_count`)."""

_ANGLE = 1e-9  # directions in the plane that differ by less count as one
_PARALLEL_DIGITS = 12
_BATCH = 1 << 21
_GLIMPSE = 1000
_OVERHEAD = 20.0  # what a small operation costs next to one in a large product


def exact_count(X: ArrayLike, *, sample_weight: ArrayLike | None = None, budget: float = 1e9) -> HyperplaneBound | None:
    r"""Count the rows of the fullest hyperplane by enumeration: exact, up to rows within 1e-9 of the hyperplane.

    Proof that nothing is missed. Let S be the rows of the fullest hyperplane and B those d - 1 of them (unit rows) of
    largest volume, so that each row of S is a combination of B with coefficients of size at most 1. Householder
    reflections give a unit vector q with :math:`|Bq|` of the order of :math:`d \epsilon`, however badly conditioned B
    is; hence :math:`|q \cdot x| \le d^2 \epsilon` up to a small factor for every x in S, far below 1e-9, and all of S
    is counted when B is tried. Rows that are merely near are counted, too: the count can only be too large. Where S
    has a rank below d - 1, rows complete it to a hyperplane that holds at least as many. In one dimension no non-zero
    row lies in a hyperplane, {0}; in two dimensions a hyperplane is a line, and the directions are sorted.

    Parameters
    ----------
    X : (n, d) array
        Non-zero rows that span R^d.
    sample_weight : (n,) array, optional
    budget : float
        Floating-point operations to spend, about: the directions' subsets of d - 1 times the directions.

    Returns
    -------
    HyperplaneBound or None
        None when the rows do not span or the budget does not suffice.

    Examples
    --------
    >>> exact_count([[1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 2, 0], [0, 0, 1]]).rows
    4.0
    """
    rows = check_matrix(X)
    d = rows.shape[1]
    weights = check_weights(sample_weight, len(rows))
    if d == 1:
        return HyperplaneBound(0.0)
    # A few rows already tell when there are too many directions.
    if d > 2 and enumeration_cost(len(distinct_directions(rows[:_GLIMPSE], None)[0]), d) > budget:
        return None
    if span_of(rows).rank < d:
        return None
    if d == 2:
        return HyperplaneBound(_heaviest_direction(rows, weights))
    directions, class_weights = distinct_directions(rows, weights)
    if enumeration_cost(len(directions), d) > budget:
        return None
    units = unit_rows(directions)[0]
    heaviest = 0.0
    for normals in hyperplane_normals(units):
        held = (np.abs(normals @ units.T) <= NEAR) @ class_weights
        heaviest = max(heaviest, float(held.max()))
    return HyperplaneBound(heaviest)


def enumeration_cost(n_directions: int, d: int) -> float:
    """Return about how many floating-point operations it takes to enumerate the hyperplanes of so many directions."""
    return float(comb(n_directions, d - 1)) * (2.0 * n_directions * d + _OVERHEAD * d**3)


def general_position(X: ArrayLike, *, sample_weight: ArrayLike | None = None) -> HyperplaneBound:
    """Bound the rows of one hyperplane, assuming that no d different directions share one.

    Proof. Under the assumption a hyperplane holds at most d - 1 classes of parallel rows, so that h is at most the
    weight of the d - 1 heaviest classes: d - 1 where no row is repeated. The classes are those of the rows as they
    are, so that duplicated and rescaled rows need no assumption; rows that are parallel to 12 digits count as parallel.

    Parameters
    ----------
    X : (n, d) array
        Non-zero rows.
    sample_weight : (n,) array, optional
    """
    rows = check_matrix(X)
    _, classes = distinct_directions(rows, check_weights(sample_weight, len(rows)), _PARALLEL_DIGITS)
    heaviest = np.sort(classes)[::-1][: rows.shape[1] - 1]
    return HyperplaneBound(float(heaviest.sum()))


def distinct_directions(
    X: FloatArray, weights: FloatArray | None, digits: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return one row of each class of parallel rows, and the weights of the classes.

    A row is divided by its entry of largest size. If one row is an exact multiple of another the exact quotients are
    equal, so that their correctly rounded values are: no exactly parallel rows are ever told apart. `digits` rounds
    the quotients, which merges more.
    """
    pivots = np.abs(X).argmax(axis=1)
    quotients = X / X[np.arange(len(X)), pivots][:, None] + 0.0  # turns -0 into 0
    if digits is not None:
        quotients = np.round(quotients, digits) + 0.0
    _, first, inverse = np.unique(quotients, axis=0, return_index=True, return_inverse=True)
    return X[first], np.bincount(inverse.ravel(), weights=weights, minlength=first.size).astype(np.float64)


def hyperplane_normals(units: FloatArray) -> Iterator[FloatArray]:
    """Yield unit vectors orthogonal to each subset of d - 1 rows, in batches; d is at least 2."""
    n, d = units.shape
    subsets = combinations(range(n), d - 1)
    batch = max(1, _BATCH // (d * d + n))
    while chunk := list(islice(subsets, batch)):
        columns = units[np.array(chunk)].transpose(0, 2, 1)
        yield np.linalg.qr(columns, mode="complete")[0][:, :, -1]


def _heaviest_direction(X: FloatArray, weights: FloatArray | None) -> float:
    """Return the largest weight of rows in R^2 whose directions, up to sign, lie within a tiny angle."""
    directions, classes = distinct_directions(X, weights)
    units = unit_rows(directions)[0]
    angles = np.arctan2(units[:, 1], units[:, 0]) % np.pi
    order = np.argsort(angles)
    angles, classes = angles[order], classes[order]
    # The circle of directions closes at pi.
    angles, classes = np.concatenate([angles, angles + np.pi]), np.concatenate([classes, classes])
    sums = np.concatenate([[0.0], np.cumsum(classes)])
    ends = np.searchsorted(angles, angles[: order.size] + _ANGLE, side="right")
    starts = np.arange(order.size)
    single = ends == starts + 1
    held = np.where(single, classes[: order.size], sums[ends] - sums[starts])
    return float(held.max())
