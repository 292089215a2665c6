r"""Appendix B: PAC learning of linear functions without any assumption on the rows, by removing outliers.

If rows concentrate on a subspace, :math:`w^*` cannot be identified off it. What can be had (Theorem B.1) is a w with
:math:`\Pr_x [ w \cdot x \ne w^* \cdot x ] \le \epsilon`: remove outliers with :math:`\alpha = \epsilon / 2`, in place
of the radial-isotropic transform, and minimise :math:`\sum |y_i - w \cdot x_i|` over the rows that remain.

**Outliers.** A row x is a :math:`\beta`-outlier (Definition B.2) of a set with second moments
:math:`M = E[x x^\top]` if some direction v has :math:`(v \cdot x)^2 > \beta\, E[(v \cdot x)^2]`. The worst direction is
:math:`M^+ x`, so that the largest ratio of a row in the span of the set is

.. math::
    \max_v \frac{(v \cdot x)^2}{E[(v \cdot x)^2]} = x^\top M^+ x .

Dunagan and Vempala (2004, Theorem 3; Lemma B.3): for every :math:`\alpha` some ellipsoid holds a share
:math:`1 - \alpha` and no outliers for :math:`\beta = \tilde O(d b / \alpha)`, with b-bit numbers. Rows with
:math:`x^\top M^+ x > \beta` are removed and M is computed anew, until there are none.

**Order does not matter.** With sums over the kept set S divided by the number N of all rows,
:math:`M_S = \frac1N \sum_{x \in S} x x^\top`, a ratio only grows when S shrinks. So every order of removal ends in the
same set :math:`K(\beta)`, the largest one with :math:`x^\top M_S^+ x \le \beta`, and these sets are nested.

**Which beta.** The paper leaves the constant open, and no ratio exceeds N: with b = 53, d = 6, :math:`\alpha` = .025
the value :math:`d b / \alpha` removes nothing from fewer than 12,720 rows. So the default is the smallest :math:`\beta`
whose set holds a share :math:`1 - \alpha`, by bisection; ``beta=`` is the printed way. With the mean over S, as in
Definition B.2, ratios are smaller by the share of S: no set of that share does better than :math:`1 - \alpha` times
what is found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike

from massart.l1 import Status, l1_regression
from massart.paper.linear import checked
from massart.rows import (
    BoolArray,
    Callback,
    FloatArray,
    Progress,
    check_matrix,
    check_weights,
    exponents,
    precision_of,
    silent,
    typical_sizes,
)

SHARPNESS = 1.01
"""Factor up to which the smallest beta is found."""

_ROUNDING = 1e-9  # relative; another order of summation must not put a kept row outside


class OutlierStatus(Enum):
    """How outlier removal ended; the value says it in words."""

    WHOLE = "no row was removed"
    REMOVED = "outliers were removed, and the rows inside have none"
    BEYOND_ALPHA = "the beta given removes more than the share alpha of the rows; those inside have no outliers"


class PACLearningStatus(Enum):
    """What Theorem B.1's algorithm reached; the value says it in words."""

    UNIQUE = "the L1 problem of the rows inside is solved, and they span all columns"
    SUBSPACE = "the L1 problem of the rows inside is solved; w.x is determined in their span, w is not"
    BEYOND_ALPHA = "the beta given leaves more than epsilon / 2 outside; the L1 problem of the rows inside is solved"
    INEXACT = "the L1 problem of the rows inside is not proven to be solved"


@dataclass(frozen=True, slots=True)
class OutlierRemoval:
    r"""An ellipsoid :math:`E = \{ x \in V : |A V^\top x|^2 \le s \beta \}` with share s, and the rows inside.

    Attributes
    ----------
    subspace : (d, k) array
        V, orthonormal: the span of the rows inside; the identity if that is everything.
    matrix : (k, k) array
        A, which makes the rows inside isotropic: the mean of :math:`(A V^\top x)(A V^\top x)^\top` over them is I.
    beta : float
        The rows inside are :math:`K(\beta)`: given as ``beta=`` it finds them again.
    inside : (n,) boolean array
        Rows in E; rows of weight zero are judged, too.
    ratio : float
        Largest :math:`x^\top M^+ x` of a row inside, with M of the rows inside alone; at most :math:`s \beta`.
    share : float
        s, the weight of the rows inside, of all.
    lower_bound : float
        No set of rows of a share :math:`1 - \alpha` or more has a smaller largest ratio.
    scales, tol : (d,) array, float
        A row, its columns divided by these powers of two, lies in V if its distance is at most tol of its length.
    n_iter : int
        Values of beta that were tried.
    status : OutlierStatus

    Notes
    -----
    Paper: Definition B.2. Tests: test_pac::test_no_outlier_is_left_inside
    """

    subspace: FloatArray
    matrix: FloatArray
    beta: float
    inside: BoolArray
    ratio: float
    share: float
    lower_bound: float
    scales: FloatArray
    tol: float
    n_iter: int
    status: OutlierStatus

    def spans(self, X: ArrayLike) -> BoolArray:
        """Return which rows lie in V."""
        rows = check_matrix(X)
        d, k = self.subspace.shape
        if rows.shape[1] != d:
            raise ValueError(f"X has {rows.shape[1]} columns but the ellipsoid has {d}")
        normals = np.linalg.qr(self.subspace / self.scales[:, None], mode="complete")[0][:, k:]
        rows = rows / self.scales
        rows = np.ldexp(rows, -exponents(rows, axis=1)[:, None])
        return np.asarray(np.linalg.norm(rows @ normals, axis=1) <= self.tol * np.linalg.norm(rows, axis=1))

    def ratios(self, X: ArrayLike) -> FloatArray:
        """Return the largest ratio of each row over all directions, ``|A V' x|^2``; infinite outside of V.

        Where one row inside is more than 1e7 times another the product is rounding, and the row counts as outside.
        """
        spanned = self.spans(X)
        with np.errstate(over="ignore"):
            ratios = ((check_matrix(X) @ self.subspace @ self.matrix.T) ** 2).sum(axis=1)
        return np.where(spanned, ratios, np.inf)


def remove_outliers(
    X: ArrayLike,
    *,
    alpha: float,
    beta: float | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float | None = None,
    callback: Callback = silent,
) -> OutlierRemoval:
    """Find an ellipsoid that holds a share ``1 - alpha`` of the rows, with no beta-outliers among the rows inside.

    Parameters
    ----------
    X : (n, d) array
    alpha : float in (0, 1)
        Share of the rows that may be left outside.
    beta : float, optional
        Rows with larger ratios are removed, however many. By default the smallest that `alpha` allows, up to a factor
        ``SHARPNESS``.
    sample_weight : (n,) array, optional
        A row of weight c counts c times.
    tol : float, optional
        Largest distance at which a unit row counts as lying in a subspace, columns brought to a common size: a rank
        decision. By default the 5/6th power of the precision of X.
    callback : callable

    Notes
    -----
    Paper: Lemma B.3. Tests: test_pac::test_no_outlier_is_left_inside, test_pac::test_no_set_beats_the_lower_bound

    Examples
    --------
    Rows on a line, one of them far away, and two rows off the line:

    >>> import numpy as np
    >>> X = np.zeros((100, 2))
    >>> X[:, 0] = np.arange(100) % 2 + 1
    >>> X[0], X[1:3, 1] = (1e6, 0), 1
    >>> removal = remove_outliers(X, alpha=0.05)
    >>> np.flatnonzero(~removal.inside), removal.subspace.shape, round(removal.ratio, 1)
    (array([0, 1, 2]), (2, 1), 1.6)
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}")
    if beta is not None and not 0 < beta < math.inf:
        raise ValueError(f"beta must be positive and finite, got {beta}")
    tol = precision_of(X) ** (5 / 6) if tol is None else tol
    if not 0 < tol < 1:
        raise ValueError(f"tol must be between 0 and 1, got {tol}")
    table = check_matrix(X)
    weights = check_weights(sample_weight, len(table))
    counts = np.ones(len(table)) if weights is None else weights
    # Columns of a common size and no number above 1, by powers of two. Zero rows stay inside, whatever happens.
    counted = np.flatnonzero(counts)
    scales = typical_sizes(table[counted])
    shift = exponents(table[counted] / scales)
    C = np.ldexp(table[counted] / scales, -shift)
    counted, C = counted[C.any(axis=1)], C[C.any(axis=1)]
    shares, limit = counts[counted] / counts.sum(), alpha * (1 + _ROUNDING)
    kept = _largest_set(C, shares, np.ones(len(C), dtype=bool), math.inf if beta is None else beta, math.inf, tol)
    n_iter, lower = 1, 0.0
    if beta is None:
        kept, lower, n_iter = _least_beta(C, shares, kept, limit, tol, callback)
    inside = np.ones(len(table), dtype=bool)
    inside[counted] = kept.rows
    share = float(counts[inside].sum()) / float(counts.sum())
    status = OutlierStatus.WHOLE if kept.rows.all() else OutlierStatus.REMOVED
    if beta is None:
        beta = kept.largest * (1 + _ROUNDING)
    elif 1 - share > limit:
        status, lower = OutlierStatus.BEYOND_ALPHA, beta
    # M is the mean over the rows inside, as in Definition B.2; the map belongs to the sum over them divided by all.
    V = np.eye(len(scales))
    if kept.basis.shape != V.shape:
        V = np.linalg.qr(kept.basis * (scales / scales.max())[:, None])[0]
    A = np.asarray((V.T @ np.ldexp(kept.map * math.sqrt(share) / scales[:, None], -shift)).T)
    ratio, bound = share * kept.largest, (1 - alpha) * lower
    removal = OutlierRemoval(V, A, beta, inside, ratio, share, bound, scales, tol, n_iter, status)
    absent = counts == 0  # rows of weight zero are judged, but do not count
    if absent.any():
        inside[absent] = removal.ratios(table[absent]) <= share * beta
    return removal


@dataclass(frozen=True, slots=True)
class PACLearning:
    """What Theorem B.1's algorithm returns.

    Attributes
    ----------
    w : (d,) array
        The shortest of those that give the same products on the rows inside.
    removal : OutlierRemoval
    status : PACLearningStatus
    """

    w: FloatArray
    removal: OutlierRemoval
    status: PACLearningStatus


def pac_learn(
    X: ArrayLike,
    y: ArrayLike,
    epsilon: float,
    *,
    beta: float | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float | None = None,
    max_iter: int = 100,
    callback: Callback = silent,
) -> PACLearning:
    """Learn w with w.x right on all but a share epsilon of the distribution, whatever that is: one L1 regression.

    How many rows are enough is known up to a constant only. For a bound that given rows prove, see
    :class:`massart.MassartPACRegressor`.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    epsilon : float in (0, 1)
        Share on which w.x may be wrong; half of it may be removed.
    beta, sample_weight, tol, max_iter, callback
        As for :func:`remove_outliers` and :func:`massart.l1_regression`.

    Notes
    -----
    Paper: Theorem B.1. Tests: test_pac::test_theorem_b1_where_w_is_open, test_pac::test_appendix_b_in_fifteen_lines

    Examples
    --------
    Rows in a plane of R^3, a third of the labels wrong: w is not identifiable, w.x is.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((600, 2)) @ [[1, 0, 1], [0, 1, 1]]
    >>> y = X @ [1, 2, 3]
    >>> y[::3] = 7
    >>> learned = pac_learn(X, y, 0.05)
    >>> bool(np.allclose(X @ learned.w, X @ [1, 2, 3])), learned.status.name
    (True, 'SUBSPACE')
    """
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must be between 0 and 1, got {epsilon}")
    rows, labels, weights = checked(X, y, sample_weight)
    removal = remove_outliers(X, alpha=epsilon / 2, beta=beta, sample_weight=weights, tol=tol, callback=callback)
    E = removal.inside
    if removal.share == 0:  # beta is below what any set of these rows can reach
        return PACLearning(np.zeros(rows.shape[1]), removal, PACLearningStatus.BEYOND_ALPHA)
    own = None if weights is None else weights[E]
    solution = l1_regression(rows[E], labels[E], own, max_iter=max_iter, callback=callback)
    status = PACLearningStatus.UNIQUE if solution.rank == rows.shape[1] else PACLearningStatus.SUBSPACE
    if removal.status is OutlierStatus.BEYOND_ALPHA:
        status = PACLearningStatus.BEYOND_ALPHA
    if solution.status is Status.INEXACT:
        status = PACLearningStatus.INEXACT
    return PACLearning(solution.coef, removal, status)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Rows of K(beta), their span (orthonormal), what maps them, ``x' M_S^+ x = |map' x|^2``, and the largest ratio."""

    rows: BoolArray
    basis: FloatArray
    map: FloatArray
    largest: float


def _largest_set(C: FloatArray, shares: FloatArray, keep: BoolArray, beta: float, limit: float, tol: float) -> _Kept:
    """Return K(beta), which is in `keep`; or where it stands when more than the share `limit` is removed."""
    while True:
        basis, T, ratios = _whiten(C[keep], shares[keep], tol)
        largest = float(ratios.max(initial=0.0))
        if largest <= beta or shares[~keep].sum() > limit:
            return _Kept(keep, basis, T, largest)
        keep = keep.copy()
        keep[keep] = ratios <= beta


def _least_beta(
    C: FloatArray, shares: FloatArray, kept: _Kept, limit: float, tol: float, callback: Callback
) -> tuple[_Kept, float, int]:
    """Return K(beta) for the least beta that leaves `limit` outside, a bound below it, and how many were tried."""
    # The ratios of k directions have the mean k at least, and more where rows are missing: none is below 1.
    n_iter, lower = 1, 0.5
    while kept.largest > SHARPNESS * lower:
        n_iter += 1
        middle = math.sqrt(lower * kept.largest)
        fewer = _largest_set(C, shares, kept.rows, middle, limit, tol)
        lower, kept = (middle, kept) if shares[~fewer.rows].sum() > limit else (lower, fewer)
        callback(Progress("outlier removal", n_iter, kept.largest / lower, SHARPNESS))
    return kept, min(lower, kept.largest), n_iter


def _whiten(
    rows: FloatArray, weights: FloatArray, tol: float, *, safe_moments: float = 1e-6
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return the span of the rows (orthonormal columns), a map T that whitens them, (d, k), and their ratios.

    T has :math:`\sum_i c_i T^\top x_i x_i^\top T = I`, and the ratio of a row is :math:`x^\top M^+ x` with
    :math:`M = \sum_i c_i x_i x_i^\top`: the largest :math:`(v \cdot x)^2 / v^\top M v` over all directions v.

    Parameters
    ----------
    rows, weights : (n, d) and (n,) arrays
        The latter are c.
    tol : float
        Relative size of a singular value of the unit rows below which a direction holds none of them.
    safe_moments : float
        Smallest ratio of eigenvalues of M, in columns of length one, at which it is as good as the rows.
    """
    n, d = rows.shape
    if n == 0:
        return np.zeros((d, 0)), np.zeros((d, 0)), np.zeros(0)
    M = (rows * weights[:, None]).T @ rows
    lengths = np.sqrt(np.diag(M))
    if lengths.all():
        values, axes = np.linalg.eigh(M / lengths / lengths[:, None])
        if values[0] > safe_moments * values[-1]:
            T = axes / np.sqrt(values) / lengths[:, None]
            images = rows @ T
            return np.eye(d), T, np.einsum("ij,ij->i", images, images)
    # Squares would cost digits. Ranks are decided on unit rows, where a row that dwarfs the others hides none of them.
    units = np.ldexp(rows, -exponents(rows, axis=1)[:, None])
    units /= np.linalg.norm(units, axis=1)[:, None]
    _, sizes, axes = np.linalg.svd(np.linalg.qr(units, mode="r"))
    rank = int((sizes > tol * sizes[0]).sum())
    basis = np.eye(d) if rank == d else axes[:rank].T
    # Large rows first and pivoted columns: elimination that is stable row by row (Cox and Higham, 1998).
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    weighted = (rows[order] @ basis) * np.sqrt(weights[order])[:, None]
    Q, R, pivots = sla.qr(weighted, mode="economic", pivoting=True, check_finite=False)
    inverse = np.zeros((rank, rank))
    inverse[pivots] = sla.solve_triangular(R[:rank], np.eye(rank), check_finite=False)
    ratios = np.empty(n)
    # From Q, not from rows times the inverse: for a row that dwarfs the others that product is rounding.
    ratios[order] = np.einsum("ij,ij->i", Q, Q) / weights[order]
    return basis, basis @ inverse, ratios
