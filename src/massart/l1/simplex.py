r"""From the interior point to a vertex: d rows that are fitted exactly, and the dual that proves them right.

A basis B of d independent rows fixes :math:`w = X_B^{-1} y_B`. Rows off the basis have the dual
:math:`a_i = hi_i` or :math:`-lo_i` that the sign of their residual asks for, and the basis has

.. math:: a_B = X_B^{-\top} \bigl( b - X_N^\top a_N \bigr).

If :math:`a_B` lies in its box, w is optimal. If the dual of a row k leaves its box, moving along the edge on which only
k leaves the fit lowers the objective. The objective is piecewise linear along the edge, a weighted median finds its
minimum, and the row that is met there enters the basis. This is the simplex method of Barrodale and Roberts [1]_,
started next to its end by the interior point.

Where many w are optimal, the interior point stands amid them and too few rows are on its fit. The basis is completed
with *loose* rows that keep their residual for now: one pivot each exchanges them for rows that are met.

References
----------
.. [1] I. Barrodale, F. D. K. Roberts. An improved algorithm for discrete l1 linear approximation. SIAM J. Numerical
       Analysis 10 (1973).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from massart.l1.design import DesignMatrix, IntArray
from massart.l1.program import Point, Program, evaluate, prove, with_dual
from massart.rows import BoolArray, FloatArray


def vertex_near(
    problem: Program,
    w: FloatArray,
    a: FloatArray,
    weight: FloatArray,
    max_pivots: int,
    *,
    loose: float = 1e-8,
) -> tuple[Point, int]:
    """Return the best proven point that a vertex near (w, a) leads to, and the number of pivots.

    Parameters
    ----------
    problem : Program
    w, a : arrays of shape (d,) and (n,)
        A primal and a dual point near the optimum.
    weight : array of shape (n,)
        How much each row belongs on the fit: only the order and the ratios count.
    max_pivots : int
    loose : float
        A row with less than this fraction of the largest weight is not on the fit.
    """
    basis = _independent_rows(problem.design, weight)
    if basis is None:
        return evaluate(problem, w, a), 0
    off_fit = weight[basis] < loose * weight.max()
    vertex = evaluate(problem, _solve_exactly(problem, basis, off_fit, w))
    # A highly degenerate vertex has many bases, of which few prove it; a dual that is free on all fitted rows does.
    if not off_fit.any() and np.count_nonzero(vertex.fitted) >= 2 * basis.size:
        vertex, _ = prove(problem, vertex)
        if vertex.optimal:
            return vertex, 0
    budget = max_pivots + int(np.count_nonzero(off_fit))
    vertex, pivots = _descend(problem, basis, off_fit, vertex, a, budget)
    if not vertex.optimal:
        vertex, _ = prove(problem, vertex)
    if vertex.optimal:
        return vertex, pivots
    interior = evaluate(problem, w, a)
    return (vertex if vertex.gap <= interior.gap else interior), pivots  # a singular basis has no gap (NaN)


def _independent_rows(design: DesignMatrix, weight: FloatArray) -> IntArray | None:
    """Return d independent rows of large weight, or None if the rows of positive weight do not span.

    Gaussian elimination with row exchanges, on the rows times the roots of their weights, prefers heavy rows, and
    well-conditioned ones among equals. It runs on a small pool of the heaviest rows, grown only if they are dependent.
    """
    n, d = design.shape
    size = n if n <= 10 * d else 3 * d + 32
    while n >= d:
        pool = np.argpartition(weight, n - size)[n - size :] if size < n else np.arange(n)
        pool = pool[np.lexsort((pool, -weight[pool]))]
        heavy = weight[pool]
        reference = heavy[d - 1] or 1.0
        rows = design.rows(pool) * np.sqrt(np.minimum(heavy, reference) / reference)[:, None]
        length = np.abs(rows).max(axis=0)
        length[length == 0] = 1.0
        # LAPACK itself, here and below: scipy's wrapper warns of the dependence that is looked for.
        triangle, exchanges, _ = sla.lapack.dgetrf(rows / length)
        pivots = np.abs(np.diag(triangle))
        if pivots.min() > np.finfo(float).eps * pivots.max():
            for k, other in enumerate(exchanges):
                pool[[k, other]] = pool[[other, k]]
            return pool[:d]
        if size == n:
            break
        size = min(n, 4 * size)
    return None


@np.errstate(invalid="ignore", over="ignore")  # nearly dependent rows: NaN has no gap
def _solve_exactly(problem: Program, basis: IntArray, loose: BoolArray, w: FloatArray) -> FloatArray:
    """Return the w that fits the basis, with residuals at rounding level; loose rows keep the fit of the given w."""
    rows = problem.design.rows(basis)
    triangle, exchanges, _ = sla.lapack.dgetrf(rows)
    wide = rows.astype(np.longdouble)
    goal = np.where(loose, wide @ w, problem.y[basis])
    w = np.zeros_like(w)
    for _ in range(3):
        w = w + sla.lapack.dgetrs(triangle, exchanges, (goal - wide @ w).astype(np.float64))[0]
    return w


def _descend(
    problem: Program,
    basis: IntArray,
    loose: BoolArray,
    vertex: Point,
    a: FloatArray,
    max_pivots: int,
    *,
    in_box: float = 1e-10,
) -> tuple[Point, int]:
    """Walk from vertex to vertex until the dual is feasible or the budget ends.

    `basis` and `loose` are brought up to date. `a` decides on which side the fitted rows off the basis are counted.

    Parameters
    ----------
    problem, basis, loose, vertex, a, max_pivots
    in_box : float
        How far outside its box, relative to its width, a basic dual may lie and count as inside.
    """
    design, lo, hi = problem.design, problem.lo, problem.hi
    positive = np.where(vertex.fitted, 2 * a > hi - lo, vertex.r > 0)
    w, r, pivots = vertex.w, vertex.r.copy(), 0
    rows = design.rows(basis)
    try:
        inverse = np.asarray(np.linalg.inv(rows), dtype=np.float64)
    except np.linalg.LinAlgError:
        return vertex, 0
    while True:
        a = np.where(positive, hi, -lo)
        tight = basis[~loose]
        a[tight] = 0.0
        rest = problem.b - design.transposed_times(a)
        dual = rest @ inverse
        # An inverse loses what the condition number takes; one step of refinement brings X'a = b back to rounding.
        dual += (rest - dual @ rows) @ inverse
        a[tight] = dual[~loose]

        # The dual of a loose row has no room at all: it is the slope along the row's edge.
        above = np.where(loose, dual, dual - hi[basis])
        below = np.where(loose, -dual, -lo[basis] - dual)
        outside = np.where(loose, np.inf, np.maximum(above, below) / (hi[basis] + lo[basis]))
        k = int(np.argmax(outside))
        if outside[k] <= in_box or pivots == max_pivots:
            break

        # The edge: row k gets the residual `side` times the step, the rest of the basis keeps its own.
        side = 1.0 if above[k] > below[k] else -1.0
        direction = -side * inverse[:, k]
        speed = design.times(direction)
        speed[tight] = 0.0
        descent = max(float(above[k]), float(below[k]))
        passed, entering, length = _weighted_median(r, speed, positive, lo + hi, descent)
        if entering < 0:
            break
        leaving = basis[k]
        r -= length * speed
        if not loose[k]:
            r[leaving] = side * length
            positive[leaving] = side > 0
        r[entering] = 0.0
        positive[passed] ^= True
        w = w + length * direction
        # The inverse of the basis with row k exchanged (Sherman and Morrison).
        basis[k], loose[k] = entering, False
        rows[k] = design.rows(basis[k : k + 1])[0]
        row = rows[k] @ inverse
        pivot = row[k]
        row[k] -= 1.0
        inverse -= np.outer(inverse[:, k], row / pivot)
        pivots += 1
    if pivots:
        vertex = evaluate(problem, _solve_exactly(problem, basis, loose, w))
    return with_dual(problem, vertex, np.clip(a, -lo, hi, out=a)), pivots


def _weighted_median(
    r: FloatArray, speed: FloatArray, positive: BoolArray, width: FloatArray, descent: float, *, moving: float = 1e-11
) -> tuple[IntArray, int, float]:
    """Minimise the objective along an edge: return the rows that change sign, the row met at the minimum, and where.

    The objective falls at the rate `descent` at first; every row that changes sign takes off its width times its speed.

    Parameters
    ----------
    r, speed, positive, width, descent
    moving : float
        A row whose residual changes at less than this fraction of the fastest stays where it is.
    """
    towards = np.where(positive, speed, -speed)
    meets = np.flatnonzero(towards > moving * np.abs(speed).max())
    # A fitted row may be counted on the side opposite to its rounding error: it is met at once.
    time = np.maximum(np.where(positive, r, -r)[meets], 0.0) / towards[meets]
    order = np.argsort(time, kind="stable")
    slope = np.cumsum((width[meets] * towards[meets])[order])
    last = int(np.searchsorted(slope, descent))
    if last == order.size:
        return meets[:0], -1, 0.0
    return meets[order[:last]], int(meets[order[last]]), float(time[order[last]])
