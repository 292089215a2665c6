"""Finishing on a vertex: d rows that are fitted exactly, and the dual that proves them right.

A basis B of d independent rows fixes :math:`w = X_B^{-1} y_B`. Rows off the basis have the dual
:math:`a_i = hi_i` or :math:`-lo_i` that the sign of their residual asks for, and the basis has

.. math:: a_B = X_B^{-\\top} \\bigl( b - X_N^\\top a_N \\bigr).

If :math:`a_B` lies in its box, w is optimal. If row k of the basis leaves its box, moving along the edge on which only k
leaves the fit lowers the objective; the objective along the edge is piecewise linear, a weighted median finds its
minimum, and the row that is met there enters the basis. This is the method of Barrodale and Roberts, started next
to its end by the interior point.

References
----------
.. [1] I. Barrodale, F. D. K. Roberts. An improved algorithm for discrete l1 linear approximation. SIAM J. Numerical
       Analysis 10 (1973).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from massart.l1.balance import prove
from massart.l1.design import Design, IntArray
from massart.l1.problem import Point, Problem, evaluate
from massart.rows import BoolArray, FloatArray

INDEPENDENT = 1e-11
"""A pivot below this fraction of the largest means that the rows of the pool are dependent."""

MOVING = 1e-11
"""A row whose residual changes at less than this fraction of the fastest stays where it is."""

IN_BOX = 1e-10
"""How far outside its box, relative to its width, a basic dual may lie and count as inside."""


def finish(problem: Problem, w: FloatArray, a: FloatArray, weight: FloatArray, max_pivots: int) -> tuple[Point, int]:
    """Return the best proven point that a vertex near (w, a) leads to, and the pivots it took.

    `weight` says how much each row belongs on the fit: only the order and the ratios count.
    """
    best = evaluate(problem, w, a)
    basis = independent_rows(problem.design, weight)
    if basis is None:
        return best, 0
    vertex = evaluate(problem, _solve_exactly(problem, basis))
    d = basis.size
    if np.count_nonzero(vertex.fitted) > d:
        # Degenerate: many bases describe this vertex and few of them prove it. A dual free on all fitted rows does.
        vertex, _ = prove(problem, vertex)
        if vertex.optimal:
            return vertex, 0
    vertex, pivots = _descend(problem, basis, vertex, a, max_pivots)
    if not vertex.optimal and np.count_nonzero(vertex.fitted) > d:
        vertex, _ = prove(problem, vertex)
    return (vertex if vertex.optimal or vertex.gap <= best.gap else best), pivots


def independent_rows(design: Design, weight: FloatArray) -> IntArray | None:
    """Return d independent rows of large weight, or None if the rows of positive weight do not span.

    Gaussian elimination with row exchanges on the rows times the square roots of their weights prefers heavy rows, and
    well-conditioned ones among equals. It runs on a small pool of the heaviest rows, grown only when they are dependent.
    """
    n, d = design.shape
    size = min(n, max(3 * d, d + 32))
    while True:
        pool = np.argpartition(weight, n - size)[n - size :] if size < n else np.arange(n)
        pool = pool[np.lexsort((pool, -weight[pool]))]
        heavy = weight[pool]
        reference = heavy[d - 1] if heavy.size >= d and heavy[d - 1] > 0 else 1.0
        rows = design.rows(pool) * np.sqrt(np.minimum(heavy / reference, 1.0))[:, None]
        chosen = _eliminate(rows, d)
        if chosen is not None:
            return pool[chosen]
        if size == n:
            return None
        size = min(n, 4 * size)


def _eliminate(rows: FloatArray, d: int) -> IntArray | None:
    if rows.shape[0] < d:
        return None
    length = np.abs(rows).max(axis=0)
    length[length == 0] = 1.0
    triangle, exchanges = sla.lu_factor(rows / length, check_finite=False)
    pivots = np.abs(np.diag(triangle))
    if pivots.min() <= INDEPENDENT * pivots.max():
        return None
    order = np.arange(rows.shape[0])
    for k, other in enumerate(exchanges):
        order[[k, other]] = order[[other, k]]
    return order[:d]


def _solve_exactly(problem: Problem, basis: IntArray) -> FloatArray:
    """Return :math:`X_B^{-1} y_B` with its residuals driven to rounding level."""
    rows, y = problem.design.rows(basis), problem.y[basis]
    factor = sla.lu_factor(rows, check_finite=False)
    w: FloatArray = sla.lu_solve(factor, y, check_finite=False)
    wide = rows.astype(np.longdouble)
    for _ in range(2):
        residual = (y - wide @ w.astype(np.longdouble)).astype(np.float64)
        w = w + sla.lu_solve(factor, residual, check_finite=False)
    return w


def _descend(problem: Problem, basis: IntArray, vertex: Point, a: FloatArray, max_pivots: int) -> tuple[Point, int]:
    """Walk from vertex to vertex until the dual is feasible or the budget ends.

    `a` decides on which side the fitted rows off the basis are counted.
    """
    design, lo, hi = problem.design, problem.lo, problem.hi
    basis = basis.copy()
    positive = np.where(vertex.fitted, 2 * a > hi - lo, vertex.r > 0)
    w, r = vertex.w, vertex.r
    pivots = 0
    while True:
        factor = sla.lu_factor(design.rows(basis), check_finite=False)
        a = np.where(positive, hi, -lo)
        a[basis] = 0.0
        a[basis] = sla.lu_solve(factor, problem.b - design.transposed_times(a), trans=1, check_finite=False)
        above, below = a[basis] - hi[basis], -lo[basis] - a[basis]
        outside = np.maximum(above, below) / (hi[basis] + lo[basis])
        k = int(np.argmax(outside))
        if outside[k] <= IN_BOX or pivots == max_pivots:
            break
        # The edge: row k gets the residual `side` times the step, the rest of the basis stays on the fit.
        side = 1.0 if above[k] > 0 else -1.0
        change = np.zeros(basis.size)
        change[k] = -side
        speed = design.times(sla.lu_solve(factor, change, check_finite=False))
        speed[basis] = 0.0
        passed, entering = _weighted_median(r, speed, positive, lo + hi, max(above[k], below[k]))
        if entering < 0:
            break
        positive[passed] ^= True
        positive[basis[k]] = side > 0
        basis[k] = entering
        w = _solve_exactly(problem, basis)
        r = problem.residuals(w)
        pivots += 1
    return evaluate(problem, w, np.clip(a, -lo, hi, out=a)), pivots


def _weighted_median(
    r: FloatArray, speed: FloatArray, positive: BoolArray, width: FloatArray, descent: float
) -> tuple[IntArray, int]:
    """Minimise the objective along an edge: return the rows that change sign and the row on the fit at the minimum.

    The objective falls at the rate `descent` at first; every row that changes sign takes off its width times its speed.
    """
    towards = np.where(positive, speed, -speed)
    meets = np.flatnonzero(towards > np.abs(towards).max() * MOVING)
    distance = np.where(positive, r, -r)[meets]
    # A fitted row may be counted on the side opposite to its rounding error: it is met at once.
    time = np.maximum(distance, 0.0) / towards[meets]
    order = np.argsort(time, kind="stable")
    slope = np.cumsum((width[meets] * towards[meets])[order])
    last = int(np.searchsorted(slope, descent))
    if last == order.size:
        return meets[:0], -1
    return meets[order[:last]], int(meets[order[last]])
