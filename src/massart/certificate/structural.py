r"""The structural condition of Lemma 2.3 for linear formulas, as a number with two sides.

With the rows a formula fits (good) and those it does not (bad), the condition says that the margin

.. math::
    \mu = \min_{r \ne 0} \frac{\sum_{good} |r \cdot x| - \sum_{bad} |r \cdot x|}{\sum_{all} |r \cdot x|}
        = \frac{1 - \rho}{1 + \rho}, \qquad
    \rho = \max_{r \ne 0} \frac{\sum_{bad} |r \cdot x|}{\sum_{good} |r \cdot x|}

is positive: then the formula is the unique L1 minimizer, whatever the bad labels are. The maximum of a convex function
over the polytope :math:`\sum_{good} |r \cdot x| \le 1` is hard in general, so two sides are reported.

*Upper side of the margin*: any direction. From a start r take :math:`g = \sum_{bad} \mathrm{sgn}(r \cdot x) x` and the
r with :math:`g \cdot r = 1` that minimises :math:`\sum_{good} |r \cdot x|`, an L1 regression, until the ratio stops
growing.

*Lower side*: with rows :math:`x_i = s_i u_i` in coordinates in which :math:`E uu^\top = I` over the good rows (weights
:math:`s_i`), Hoelder's inequality gives :math:`E |r \cdot u| \ge (E (r \cdot u)^2)^{3/2} / (E (r \cdot u)^4)^{1/2}`
there, with the fourth moment bounded as in :mod:`massart.certificate.fourth_moment`, and over the bad rows :math:`\sum
s |r \cdot u| \le (\sum s)^{1/2} (\sum s (r \cdot u)^2)^{1/2}`. In few dimensions the vertices of the polytope are
enumerated: each is orthogonal to d - 1 independent good rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from massart.certificate.enumeration import distinct_directions, enumeration_cost, hyperplane_normals
from massart.certificate.fourth_moment import fourth_moment_cost, moment_bounds, whiten
from massart.certificate.span import independent_rows, span_of
from massart.l1 import l1_regression
from massart.rows import FloatArray, check_matrix

_STARTS = 4
_STEPS = 50
_ROUNDING = 1e-9  # taken off the lower side
_GROWTH = 1e-10  # relative growth of the ratio below which the search has converged
_EXACT_BUDGET = 1e8  # floating-point operations for the lower side by enumeration, about ...
_BUDGET = 5e9  # ... and by fourth moments
_DEPENDENT = 1e-13  # subsets of unit rows with a smaller singular value are dependent ...
_DOUBTFUL = 1e-6  # ... and one between the two forbids the enumeration to claim anything


@dataclass(frozen=True, slots=True)
class StructuralMargin:
    """Two sides of the margin of Lemma 2.3's condition.

    Attributes
    ----------
    lower : float
        The margin is at least this. Positive: the formula is the unique L1 minimizer for any labels of the bad rows.
        -1 where nothing is known.
    upper : float
        The margin is at most this: its value at `direction`. Not positive: the condition is violated.
    direction : (d,) array
        A unit vector, the worst that was found.
    """

    lower: float
    upper: float
    direction: FloatArray


def structural_margin(
    X_agree: ArrayLike, X_wrong: ArrayLike, *, rng: np.random.Generator | None = None
) -> StructuralMargin:
    """Return both sides of the margin of the structural condition (Lemma 2.3) for a linear formula.

    Parameters
    ----------
    X_agree, X_wrong : (n, d) and (m, d) arrays
        The rows that the formula fits and the others; m may be 0. As the L1 regression sees them: transformed rows
        for Algorithm 1, times their weights.
    rng : numpy.random.Generator, optional
        More starts for the search of a bad direction.

    Examples
    --------
    >>> margin = structural_margin([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0.5, 0.0]])
    >>> round(margin.lower, 6), round(margin.upper, 6)
    (0.6, 0.6)
    """
    good = check_matrix(X_agree, "X_agree")
    d = good.shape[1]
    empty = np.shape(X_wrong)[:1] == (0,)
    bad = np.zeros((0, d)) if empty else check_matrix(X_wrong, "X_wrong")
    if bad.shape[1] != d:
        raise ValueError(f"X_wrong has {bad.shape[1]} columns but X_agree has {d}")
    good, bad = good[good.any(axis=1)], bad[bad.any(axis=1)]
    span = span_of(good)
    if span.rank < d:
        return _unspanned(bad, span.undetermined)
    if not len(bad):
        return StructuralMargin(1.0, 1.0, np.eye(d)[0])
    # Columns of a common size: powers of two, undone for the direction.
    scales = np.ldexp(1.0, np.frexp(np.abs(np.vstack([good, bad])).max(axis=0))[1])
    good, bad = good / scales, bad / scales
    direction, ratio = _search(good, bad, rng)
    lower = -np.inf
    vertex = _best_vertex(good, bad, _EXACT_BUDGET)
    if vertex is not None:
        if _ratio(good, bad, vertex) > ratio:
            direction, ratio = vertex, _ratio(good, bad, vertex)
        lower = _margin(ratio) - _sensitivity(good, bad, ratio)
    elif fourth_moment_cost(len(good), d) <= _BUDGET:
        lower = _margin(_ratio_bound(good, bad)) - _ROUNDING
    direction = direction / scales
    return StructuralMargin(max(lower, -1.0), _margin(ratio), direction / np.linalg.norm(direction))


def _unspanned(bad: FloatArray, undetermined: FloatArray) -> StructuralMargin:
    """Return the margin where some r is orthogonal to every good row: then the condition fails."""
    seen = np.abs(bad @ undetermined).sum(axis=0)
    worst = int(np.argmax(seen))
    # Neither side sees r where the bad rows do not span either: 0 > 0 fails.
    value = -1.0 if seen[worst] > 1e-9 * np.abs(bad).sum() else 0.0
    return StructuralMargin(-1.0, value, undetermined[:, worst])


def _margin(ratio: float) -> float:
    return (1 - ratio) / (1 + ratio) if np.isfinite(ratio) else -1.0


def _ratio(good: FloatArray, bad: FloatArray, r: FloatArray) -> float:
    return float(np.abs(bad @ r).sum() / np.abs(good @ r).sum())


def _search(good: FloatArray, bad: FloatArray, rng: np.random.Generator | None) -> tuple[FloatArray, float]:
    """Return the direction of the largest ratio that convex-concave steps from several starts find."""
    # Second moments stand in for absolute ones: their worst directions are a generalized eigenproblem.
    root = np.linalg.qr(good)[1]
    relative = np.linalg.svd(np.linalg.solve(root.T, bad.T).T, full_matrices=False)[2]
    starts = list(np.linalg.solve(root, relative[:_STARTS].T).T)
    lengths = np.linalg.norm(np.linalg.solve(root.T, bad.T), axis=0)
    starts += [np.linalg.solve(root.T @ root, bad[i]) for i in np.argsort(-lengths)[:2]]
    if rng is not None:
        starts += list(np.linalg.solve(root, rng.standard_normal((root.shape[0], _STARTS))).T)
    results = [_climb(good, bad, start) for start in starts]
    return max(results, key=lambda found: found[1])


def _climb(good: FloatArray, bad: FloatArray, r: FloatArray) -> tuple[FloatArray, float]:
    """Raise the ratio from `r`: maximise the linear lower bound of the bad sum over the good rows' unit ball."""
    ratio = _ratio(good, bad, r)
    for _ in range(_STEPS):
        g = np.where(bad @ r >= 0, 1.0, -1.0) @ bad
        if not g.any():
            break
        particular = g / (g @ g)
        if g.size == 1:
            break
        N = np.linalg.qr(g[:, None], mode="complete")[0][:, 1:]
        new = particular + N @ l1_regression(good @ N, -(good @ particular)).coef
        reached = _ratio(good, bad, new)
        if reached <= ratio * (1 + _GROWTH):
            break
        r, ratio = new, reached
    return r, ratio


def _best_vertex(good: FloatArray, bad: FloatArray, budget: float) -> FloatArray | None:
    """Return the r of the largest ratio, by enumeration; None if that is too much work or rounding leaves doubt."""
    d = good.shape[1]
    if d == 1:
        return np.ones(1)
    directions, _ = distinct_directions(good, None)
    n = len(directions)
    if enumeration_cost(n, d) * (1 + (len(good) + len(bad)) / n) > budget:
        return None
    # Coordinates of a well-chosen block: badly scaled or nearly dependent columns do not blur the vertices.
    B = good[independent_rows(good / np.linalg.norm(good, axis=1)[:, None])]
    units = np.asarray(np.linalg.solve(B.T, directions.T).T, dtype=np.float64)
    units /= np.linalg.norm(units, axis=1)[:, None]
    if _has_doubtful_subset(units):
        return None
    best: FloatArray | None = None
    best_ratio = -1.0
    for normals in hyperplane_normals(units):
        candidates = np.asarray(np.linalg.solve(B, normals.T), dtype=np.float64)
        below = np.abs(good @ candidates).sum(axis=0)
        ratios = np.abs(bad @ candidates).sum(axis=0) / below
        k = int(np.argmax(ratios))
        if ratios[k] > best_ratio:
            best, best_ratio = candidates[:, k], float(ratios[k])
    return best


def _has_doubtful_subset(units: FloatArray) -> bool:
    """Tell whether some d - 1 rows are neither clearly independent nor dependent to rounding."""
    d = units.shape[1]
    sizes = np.linalg.svd(units[np.array(list(combinations(range(len(units)), d - 1)))], compute_uv=False)[:, -1]
    return bool(((sizes > _DEPENDENT) & (sizes < _DOUBTFUL)).any())


def _sensitivity(good: FloatArray, bad: FloatArray, ratio: float) -> float:
    """Return how much rounding can change the smallest margin over all vertices.

    A vertex from a subset with singular values above the doubtful ones is off by at most 1e-9 in direction; the sums
    then change by that times the rows' lengths, next to a good sum that is at least the smallest singular value.
    """
    root = np.linalg.qr(good)[1]
    lengths = np.linalg.norm(np.linalg.solve(root.T, np.vstack([good, bad]).T), axis=0)
    return _ROUNDING * (1 + (1 + ratio) * float(lengths.sum()))


def _ratio_bound(good: FloatArray, bad: FloatArray) -> float:
    """Return an upper bound on the ratio from second and fourth moments."""
    W = whiten(good, np.full(len(good), 1.0 / len(good)))
    if W is None:
        return np.inf
    good, bad = good @ W, bad @ W
    s = np.linalg.norm(good, axis=1)
    c = s / s.sum()
    B = whiten(good / s[:, None], c)
    if B is None:
        return np.inf
    second, fourth = moment_bounds(good / s[:, None] @ B, c)
    if not second > 0:
        return np.inf
    below = float(s.sum()) * second**1.5 / np.sqrt(fourth)
    bad = bad @ B
    t = np.linalg.norm(bad, axis=1)
    above = np.sqrt(float(t.sum()) * np.linalg.eigvalsh((bad / t[:, None]).T @ bad)[-1])
    return float(above / below)
