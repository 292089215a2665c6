"""L1 regression: the public function and its result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from massart.l1.direct import Answer, solve_directly
from massart.l1.matrix import Matrix, check_rows
from massart.l1.preprocessing import is_large, solve_by_guess
from massart.l1.program import Program, evaluate
from massart.l1.rank import structure_of
from massart.progress import Callback, silent
from massart.rows import BoolArray, FloatArray, check_labels, check_mask, check_weights
from massart.rows.scaling import power_of_two


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
    callback : function of a :class:`massart.progress.Progress`
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
    matrix = check_rows(X)
    n = matrix.shape[0]
    labels = check_labels(y, n)
    weights = check_weights(sample_weight, n)
    mask = check_mask(one_sided, n, "one_sided")
    return _regression(matrix, labels, weights, mask, _check_limit(max_iter), callback)


def _regression(
    matrix: Matrix,
    labels: FloatArray,
    weights: FloatArray | None,
    mask: BoolArray,
    limit: int,
    callback: Callback,
) -> L1Solution:
    n = len(labels)
    # Rows of weight 0 count as absent, for the rank too.
    present = slice(None) if weights is None or weights.all() else np.flatnonzero(weights)
    rows = matrix if isinstance(present, slice) else matrix.restricted(present)
    structure = structure_of(rows)
    rank = structure.rank
    lo, hi, unit = _costs(np.ones(n) if weights is None else weights, mask, present)

    columns = labels[:, None] if labels.ndim == 1 else labels
    coef = np.zeros((matrix.shape[1], columns.shape[1]))
    dual = np.zeros(columns.shape)
    objective = gap = 0.0
    n_iter = 0
    optimal, fell_back = True, False
    for j in range(columns.shape[1]):
        size = float(power_of_two(np.abs(columns[present, j]).max()))
        problem = Program(structure.design, columns[present, j] / size, lo, hi, np.zeros(rank))
        answer = _solve(problem, limit, callback)
        point = answer.point
        w = structure.minimum_norm(point.w)
        if rank < matrix.shape[1]:  # solved in some of the columns, proven in all of them
            whole = replace(problem, design=structure.all_columns, b=np.zeros(matrix.shape[1]))
            point = evaluate(whole, w / structure.all_columns.scale, point.a)
        coef[:, j] = w * size
        dual[present, j] = point.a * unit
        objective += point.objective * size * unit
        gap += point.gap * size * unit
        n_iter += answer.n_iter
        optimal &= point.optimal
        fell_back |= answer.fell_back
    status = Status.INEXACT if not optimal else Status.OPTIMAL if rank == matrix.shape[1] else Status.MINIMUM_NORM
    if labels.ndim == 1:
        coef, dual = coef[:, 0], dual[:, 0]
    return L1Solution(coef, dual, objective, gap, rank, n_iter, status, fell_back)


def _check_limit(max_iter: object) -> int:
    if not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise ValueError(f"max_iter must be a positive integer, got {max_iter!r}")
    return int(max_iter)


def _costs(weights: FloatArray, one_sided: BoolArray, present: Any) -> tuple[FloatArray, FloatArray, float]:
    """Return lo and hi of the rows that are present, in a unit (a power of two) that brings the largest near 1."""
    unit = float(power_of_two(weights.max()))
    lo = weights[present] / unit
    return lo, np.where(one_sided[present], 0.0, lo), unit


def _solve(problem: Program, max_iter: int, callback: Callback) -> Answer:
    if problem.b.size == 0:  # no column that is not 0: w = 0, and every dual in the box is feasible
        a = np.where(problem.y > 0, problem.hi, -problem.lo)
        return Answer(evaluate(problem, problem.b, a), 0, False)
    if is_large(problem):
        answer = solve_by_guess(problem, max_iter, callback)
        if answer is not None:
            return answer
    return solve_directly(problem, max_iter, callback, fall_back=True)
