r"""L1 regression, exactly: the problem, the public function, and the order of the steps.

.. math:: \min_w \sum_{i \notin O} \omega_i |y_i - x_i^\top w| + \sum_{i \in O} \omega_i \max(0, x_i^\top w - y_i)

is a linear program (:mod:`massart.l1.program`) with an optimum at a *vertex*, where rank(X) independent rows are fitted
exactly, and with a dual whose gap proves an answer to be optimal whoever found it. One problem is solved in three
steps: an interior point near the optimum (:mod:`massart.l1.interior_point`), the vertex next to it
(:mod:`massart.l1.simplex`), and, where these end unproven, HiGHS.

**Many rows.** When n is much larger than d, almost every row only says on which side of it the answer lies. Two guesses
save most of the passes over X; each ends in the proof on all rows, so that a wrong guess is noticed.

1. *The sample's answer is the answer.* If the inliers follow a rule exactly, the L1 fit of a small sample finds it;
   one pass finds the rows it fits, and :func:`massart.l1.program.prove` shows that no other w is better.
2. *The signs far away are known.* Otherwise the sample's answer is improved on all rows by a few Newton steps on the
   smoothed problem, and only the rows close to it stay in play. The others keep the dual :math:`a_i` of their sign
   and enter through the linear term :math:`b = -\sum a_i x_i`: the preprocessing of Portnoy and Koenker [1]_, with an
   exact linear term in place of the two aggregated rows. If the solution of this small problem contradicts a sign,
   that row joins the band and the problem is solved again.

References
----------
.. [1] S. Portnoy, R. Koenker. The Gaussian hare and the Laplacian tortoise: computability of squared-error versus
       absolute-error estimators. Statistical Science 12 (1997).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from massart.l1.design import check_rows, design_of, minimum_norm
from massart.l1.interior_point import central_path
from massart.l1.program import Point, Program, evaluate, prove, smooth
from massart.l1.simplex import vertex_near
from massart.rows import Callback, FloatArray, check_labels, check_mask, check_weights, power_of_two, silent


class Status(Enum):
    """What is known about a solution; the value is the message."""

    OPTIMAL = "optimal: the duality gap is closed"
    MINIMUM_NORM = "optimal, and of minimum norm: X is rank deficient, so that other coefficients fit as well"
    INEXACT = "not proven optimal: the duality gap is not closed, and this is the best answer found"


@dataclass(frozen=True, slots=True)
class L1Solution:
    r"""Coefficients of an L1 regression, with the dual that proves them.

    Several right-hand sides are separate problems: `coef` and `dual` have a column for each, `objective`, `gap` and
    `n_iter` are sums over them, and `status` is the worst.

    Attributes
    ----------
    coef : array of shape (d,) or (d, m)
        The minimiser w.
    dual : array of the shape of y
        a, with :math:`X^\top a = 0` up to rounding and :math:`-lo \le a \le hi`; 0 for rows of weight 0.
    objective : float
        The weighted sum of costs at `coef`.
    gap : float
        :math:`\sum_i (c_i(r_i) - a_i r_i)` plus the rounding error of :math:`X^\top a` times the size of w, recomputed
        from `coef`, `dual` and the data: how far the objective can be from the minimum.
    rank : int
        The rank of X (of its rows of positive weight).
    n_iter : int
        Interior-point steps and simplex pivots.
    status : Status
    fell_back : bool
        Whether the answer is that of `scipy.optimize.linprog`, checked in the same way.
    """

    coef: FloatArray
    dual: FloatArray
    objective: float
    gap: float
    rank: int
    n_iter: int
    status: Status
    fell_back: bool


def l1_regression(
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    one_sided: ArrayLike | None = None,
    max_iter: int = 100,
    callback: Callback = silent,
) -> L1Solution:
    r"""Minimise the weighted sum of absolute residuals, exactly.

    .. math:: \min_w \sum_{i \notin O} \omega_i |y_i - x_i^\top w| + \sum_{i \in O} \omega_i \max(0, x_i^\top w - y_i)

    The answer is a vertex: d independent rows are fitted to rounding level, as is every other row that the optimal w
    fits. Memory beyond X is some twenty vectors of n numbers and a few d x d arrays. Sparse matrices, and arrays of
    many columns that are mostly zero, are stored once more in compressed form; rows of weight 0, if there are
    any, cost one copy of the others; the fallback needs several times X.

    Parameters
    ----------
    X : array or SciPy sparse matrix of shape (n, d)
        Rows. Any order, any real type; never changed.
    y : array of shape (n,) or (n, m)
        Labels; the columns are fitted separately and share the work that depends on X alone.
    sample_weight : array of shape (n,), optional
        Non-negative weights :math:`\omega`; a row of weight 0 counts as absent.
    one_sided : boolean array of shape (n,), optional
        The rows O that cost only where the fit lies above the label.
    max_iter : int
        Limit of interior-point steps, and of simplex pivots, for each linear program that is solved.
    callback : function of a :class:`massart.rows.progress.Progress`
        Called at every interior-point step.

    Raises
    ------
    ValueError
        Naming the argument that is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.column_stack([np.ones(5), np.arange(5.0)])
    >>> solution = l1_regression(X, [1.0, 3.0, 5.0, 7.0, -100.0])
    >>> solution.coef.round(12).tolist(), solution.status.name
    ([1.0, 2.0], 'OPTIMAL')
    """
    rows = check_rows(X)
    n, p = rows.shape
    labels = check_labels(y, n)
    weights = check_weights(sample_weight, n)
    mask = check_mask(one_sided, n, "one_sided")
    if max_iter < 1 or int(max_iter) != max_iter:
        raise ValueError(f"max_iter must be a positive integer, got {max_iter!r}")

    # Rows of weight 0 count as absent, for the rank too.
    present = slice(None) if weights is None or weights.all() else np.flatnonzero(weights)
    design, all_columns, T = design_of(rows if isinstance(present, slice) else rows[present])
    rank = design.shape[1]
    omega = (np.ones(n) if weights is None else weights)[present]
    unit = float(power_of_two(omega.max()))
    lo = omega / unit
    hi = np.where(mask[present], 0.0, lo)

    columns = labels[:, None] if labels.ndim == 1 else labels
    coef = np.zeros((p, columns.shape[1]))
    dual = np.zeros(columns.shape)
    objective = gap = 0.0
    n_iter = 0
    optimal, fell_back = True, False
    for j in range(columns.shape[1]):
        size = float(power_of_two(np.abs(columns[present, j]).max()))
        problem = Program(design, columns[present, j] / size, lo, hi, np.zeros(rank))
        answer = _solve(problem, int(max_iter), callback)
        w, point = minimum_norm(design, T, answer.point.w), answer.point
        if rank < p:  # solved in some of the columns, proven in all of them
            whole = replace(problem, design=all_columns, b=np.zeros(p))
            point = evaluate(whole, w[all_columns.order] / all_columns.scale, point.a)
        coef[:, j] = w * size
        dual[present, j] = point.a * unit
        objective += point.objective * size * unit
        gap += point.gap * size * unit
        n_iter += answer.n_iter
        optimal &= point.optimal
        fell_back |= answer.fell_back
    status = Status.INEXACT if not optimal else Status.OPTIMAL if rank == p else Status.MINIMUM_NORM
    if labels.ndim == 1:
        coef, dual = coef[:, 0], dual[:, 0]
    return L1Solution(coef, dual, objective, gap, rank, n_iter, status, fell_back)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A point, the number of iterations (interior-point steps and pivots), and whether HiGHS had to help."""

    point: Point
    n_iter: int
    fell_back: bool = False


def _solve(problem: Program, max_iter: int, callback: Callback, *, sample: int = 64, least: int = 1024) -> _Answer:
    """Solve one problem that has no linear term of its own.

    Parameters
    ----------
    problem, max_iter, callback
    sample, least : int
        Rows of the sample for every column, and at least: a smaller problem costs the same, since the interpreter's
        time dominates. From eight samples on guessing pays (benchmarks/bench_l1.py, 5,000 to 100,000 rows).
    """
    n, d = problem.design.shape
    if d == 0:  # no column that is not 0: w = 0, and every dual in the box is feasible
        a = np.where(problem.y > 0, problem.hi, -problem.lo)
        return _Answer(evaluate(problem, problem.b, a), 0)
    size = max(sample * d, least)
    if n >= 8 * size:
        answer = _solve_by_guess(problem, size, max_iter, callback)
        if answer is not None:
            return answer
    return _solve_all(problem, max_iter, callback, fall_back=True)


def _solve_all(problem: Program, max_iter: int, callback: Callback, *, fall_back: bool) -> _Answer:
    """Solve `problem` on all of its rows in at most `max_iter` interior-point steps and as many pivots.

    HiGHS is asked when the path ends unproven before its limit; a caller who sets a low limit asks for bounded work.
    It solves the dual, and holds the whole constraint matrix: several times the memory of X.
    """
    w, a, weight, steps = central_path(problem, max_iter, callback)
    point, pivots = vertex_near(problem, w, a, weight, max_iter)
    n_iter = steps + pivots
    if point.optimal or not fall_back or steps == max_iter:
        return _Answer(point, n_iter)
    from scipy.optimize import linprog  # slow to import, and rarely needed

    lo, hi = problem.lo, problem.hi
    X = sp.vstack([sp.csr_array(rows) for rows in problem.design.blocks()])
    found = linprog(-problem.y, A_eq=X.T, b_eq=problem.b, bounds=np.column_stack([-lo, hi]), method="highs")
    if found.x is None or found.eqlin.marginals is None:
        return _Answer(point, n_iter)
    w, a = -found.eqlin.marginals, np.clip(found.x, -lo, hi)
    # Rows strictly inside their box are on the fit; the smallest residuals complete the basis.
    inside = np.minimum(hi - a, lo + a) / (hi + lo)
    r = np.abs(problem.residuals(w))
    closeness = 1.0 / (r / max(float(r.max()), np.finfo(float).tiny) + np.finfo(float).eps)
    other = vertex_near(problem, w, a, closeness * (inside + 1e-6), max_iter)[0]
    better = other.optimal or other.gap < point.gap
    return _Answer(other if better else point, n_iter, better)


def _solve_by_guess(
    problem: Program, size: int, max_iter: int, callback: Callback, *, width: float = 0.05, newton_steps: int = 3
) -> _Answer | None:
    """Return a proven answer from one of the two guesses, or None.

    Parameters
    ----------
    problem, size, max_iter, callback
    width : float
        The share of rows that the smoothed problem sees within its width.
    newton_steps : int
        On the smoothed problem: it only has to come close.
    """
    n, d = problem.design.shape
    # A generator of its own, seeded by n: the answer must not depend on anything but the data.
    index = np.sort(np.random.default_rng(n).choice(n, size, replace=False, shuffle=False))
    sample = problem.restricted(index, np.zeros(d))
    guess = _solve_all(sample, max_iter, callback, fall_back=False)
    point = evaluate(problem, guess.point.w)
    if np.count_nonzero(point.fitted) > 2 * np.count_nonzero(guess.point.fitted):
        _, start = prove(sample, guess.point)
        point, _ = prove(problem, point, start)
        if point.optimal:
            return _Answer(point, guess.n_iter)
    if np.count_nonzero(point.fitted) >= width * n:
        return None  # the smoothing width would be 0: an exact fit of many rows that is still not the best
    spread = float(np.partition(np.abs(point.r), int(width * n))[int(width * n)])
    r = problem.residuals(smooth(problem, point.w, spread, newton_steps))
    answer = _solve_band(problem, r, max_iter, callback)
    return None if answer is None else replace(answer, n_iter=answer.n_iter + guess.n_iter)


def _solve_band(
    problem: Program, r: FloatArray, max_iter: int, callback: Callback, *, band: int = 96, rounds: int = 6
) -> _Answer | None:
    """Solve the rows that are nearest to an answer with residuals `r`, the others at the dual of their sign.

    Parameters
    ----------
    problem, r, max_iter, callback
    band : int
        Number of rows that stay in play for every column, at first.
    rounds : int
        How often the band is mended, by rows of a wrong sign or by a wider band (20,000 x 8 Cauchy rows, tables of
        integers), before all rows are solved instead.
    """
    n, d = problem.design.shape
    positive = r > 0
    # How far a row's residual is from changing its sign, in units of how much the row reacts to an error of w.
    distance = np.abs(r)
    distance /= np.maximum(problem.design.sizes(1.0 / problem.design.lengths), np.finfo(float).tiny)
    size, n_iter = band * d, 0
    near = np.zeros(n, dtype=bool)
    for _ in range(rounds):
        if 2 * size > n:
            break
        near[np.argpartition(distance, size)[:size]] = True
        index = np.flatnonzero(near)
        a = np.where(positive, problem.hi, -problem.lo)
        a[index] = 0.0
        inner = problem.restricted(index, problem.b - problem.design.transposed_times(a))
        answer = _solve_all(inner, max_iter, callback, fall_back=False)
        n_iter += answer.n_iter
        wrong = ~near & ((problem.residuals(answer.point.w) > 0) != positive)
        if not answer.point.optimal or np.count_nonzero(wrong) > index.size:
            size *= 4  # unbounded within so narrow a band, or far off
        elif wrong.any():
            near |= wrong
        else:
            a[index] = answer.point.a
            point = evaluate(problem, answer.point.w, a)
            return _Answer(point, n_iter) if point.optimal else None
    return None
