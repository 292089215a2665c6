r"""Counting exactly, by enumeration.

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

from massart.certificate.span import SLAB_REACH, HyperplaneBound, IntArray, coordinates
from massart.rows import FloatArray, check_matrix, check_weights

_BATCH = 1 << 21
_GLIMPSE = 1000
_OVERHEAD = 20.0  # what a small operation costs next to one in a large product


def slab_count(
    X: ArrayLike, *, sample_weight: ArrayLike | None = None, limit: float = SLAB_REACH, budget: float = 1e9
) -> HyperplaneBound | None:
    r"""Count the rows of the fullest slab :math:`|r \cdot x| \le 2` by enumeration, for every r that is not small.

    Proof that nothing is missed. Let S be the rows of a slab and B those d of them of largest volume, in coordinates
    of :func:`massart.certificate.span.coordinates`, so that each row of S is a combination of B with coefficients of
    size at most 1. If B has a reach up to the limit then r is at most 2 reach on every row, and no other formula.
    Otherwise :math:`\sigma_{\min}(B) < \sqrt k \, |y|_{\max} / limit`, and some row b of B is within
    :math:`\sqrt k \, \sigma_{\min}(B)` of the span of the d - 1 others, whose normal is tried; then all of S is
    within the same distance of that hyperplane, and counted. Where S has a rank below d the distance is zero. Rows
    that are merely near are counted, too: the count can only be too large.

    Parameters
    ----------
    X : (n, d) array
        Non-zero rows that span R^d, divided by their half-widths of agreement.
    sample_weight : (n,) array, optional
    limit : float
        Largest reach of rows that count as independent.
    budget : float
        Floating-point operations to spend, about: the directions' subsets of d - 1 times the directions.

    Returns
    -------
    HyperplaneBound or None
        None when the rows do not span or the budget does not suffice.

    Examples
    --------
    >>> slab_count(1e6 * np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 2, 0], [0, 0, 1]])).rows
    4.0
    """
    rows = check_matrix(X)
    n, d = rows.shape
    weights = check_weights(sample_weight, n)
    # A few rows already tell when there are too many directions.
    if d > 1 and enumeration_cost(len(distinct_directions(rows[:_GLIMPSE], None)[0]), d) > budget:
        return None
    place = coordinates(rows)
    if place is None:
        return None
    near = d * place.longest / limit + place.error
    lengths = np.linalg.norm(place.Y, axis=1)
    if d == 1:
        counts = np.ones(n) if weights is None else weights
        return HyperplaneBound(float(counts[lengths <= near].sum()), limit)
    # The shortest row of each class of parallel rows stands for it: where it is near, all may be.
    order = np.argsort(lengths, kind="stable")
    first, class_weights = parallel_classes(rows[order], None if weights is None else weights[order])
    Y = place.Y[order][first]
    if enumeration_cost(len(Y), d) > budget:
        return None
    held = [float(((np.abs(normals @ Y.T) <= near) @ class_weights).max()) for normals in hyperplane_normals(Y)]
    return HyperplaneBound(max(held), limit)


def enumeration_cost(n_directions: int, d: int) -> float:
    """Return about how many floating-point operations it takes to enumerate the hyperplanes of so many directions."""
    return float(comb(n_directions, d - 1)) * (2.0 * n_directions * d + _OVERHEAD * d**3)


def parallel_classes(X: FloatArray, weights: FloatArray | None) -> tuple[IntArray, FloatArray]:
    """Return the first row of each class of parallel rows, and the weights of the classes.

    A row is divided by its entry of largest size. If one row is an exact multiple of another the exact quotients are
    equal, so that their correctly rounded values are: no exactly parallel rows are ever told apart.
    """
    pivots = np.abs(X).argmax(axis=1)
    quotients = X / X[np.arange(len(X)), pivots][:, None] + 0.0  # turns -0 into 0
    _, first, inverse = np.unique(quotients, axis=0, return_index=True, return_inverse=True)
    return first, np.bincount(inverse.ravel(), weights=weights, minlength=first.size).astype(np.float64)


def distinct_directions(X: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return one row of each class of parallel rows, and the weights of the classes."""
    first, classes = parallel_classes(X, weights)
    return X[first], classes


def hyperplane_normals(rows: FloatArray) -> Iterator[FloatArray]:
    """Yield unit vectors orthogonal to each subset of d - 1 rows, in batches; d is at least 2."""
    n, d = rows.shape
    subsets = combinations(range(n), d - 1)
    batch = max(1, _BATCH // (d * d + n))
    while chunk := list(islice(subsets, batch)):
        columns = rows[np.array(chunk)].transpose(0, 2, 1)
        yield np.linalg.qr(columns, mode="complete")[0][:, :, -1]
