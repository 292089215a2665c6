r"""Appendix B: PAC learning of linear functions without any assumption on the rows, by removing outliers.

If rows concentrate on a subspace, :math:`w^*` cannot be identified off it. What can be had (Theorem B.1) is a w with

.. math::
    \Pr_x [ w \cdot x \ne w^* \cdot x ] \le \epsilon .

**Algorithm.** Remove outliers with :math:`\alpha = \epsilon / 2`, in place of the radial-isotropic transform, and
minimise :math:`\sum |y_i - w \cdot x_i|` over the rows that remain.

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

from massart.isotropy.moments import exponents, typical_sizes
from massart.l1 import Status, l1_regression
from massart.progress import Callback, Progress, silent
from massart.rows import BoolArray, FloatArray, check_labels, check_matrix, check_weights, precision_of

SHARPNESS = 1.01
"""Factor up to which the smallest beta is found."""

_ROUNDING = 1e-9  # relative; another order of summation must not put a kept row outside
_SAFE_MOMENTS = 1e-6  # smallest ratio of eigenvalues at which second moments are as good as the rows


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
        Largest :math:`x^\top M^+ x` of a row inside, with M of the rows inside alone: no row inside is an outlier for
        this number, which is at most :math:`s \beta`.
    share : float
        s, the weight of the rows inside, of all.
    lower_bound : float
        No set of rows of a share :math:`1 - \alpha` or more has a smaller largest ratio.
    scales : (d,) array
        Powers of two that bring the columns to a common size; distances from V are measured after division by them.
    tol : float
        Largest distance at which a unit row counts as lying in V.
    n_iter : int
        Second moments computed.
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
        rows = self._checked(X)
        d, k = self.subspace.shape
        if k == d:
            return np.ones(len(rows), dtype=bool)
        normals = np.linalg.qr(self.subspace / self.scales[:, None], mode="complete")[0][:, k:]
        rows = rows / self.scales
        rows = np.ldexp(rows, -exponents(rows, axis=1)[:, None])
        return np.asarray(np.linalg.norm(rows @ normals, axis=1) <= self.tol * np.linalg.norm(rows, axis=1))

    def ratios(self, X: ArrayLike) -> FloatArray:
        """Return the largest ratio of each row over all directions, ``|A V' x|^2``; infinite outside of V.

        Where one row inside is more than 1e7 times another the product is rounding, and the row counts as outside.
        """
        images = self._checked(X) @ self.subspace @ self.matrix.T
        with np.errstate(over="ignore"):
            ratios = np.einsum("ij,ij->i", images, images)
        return np.where(self.spans(X), ratios, np.inf)

    def _checked(self, X: ArrayLike) -> FloatArray:
        rows = check_matrix(X)
        if rows.shape[1] != len(self.subspace):
            raise ValueError(f"X has {rows.shape[1]} columns but the ellipsoid has {len(self.subspace)}")
        return rows


@dataclass(frozen=True, slots=True)
class PACLearning:
    """What Theorem B.1's algorithm returns.

    Attributes
    ----------
    w : (d,) array
        The shortest of the L1 minimizers that give the same products on the rows inside.
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

    How many rows are enough is known up to a constant only. For a bound that the rows at hand prove, see
    :class:`massart.MassartPACRegressor`.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    epsilon : float in (0, 1)
        Share on which w.x may be wrong; half of it may be removed.
    beta, sample_weight, tol, callback
        As for :func:`remove_outliers`.
    max_iter : int
        As for :func:`massart.l1_regression`.

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
    rows = check_matrix(X)
    labels, weights = check_labels(y, len(rows)), check_weights(sample_weight, len(rows))
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    removal = remove_outliers(X, alpha=epsilon / 2, beta=beta, sample_weight=weights, tol=tol, callback=callback)
    E = removal.inside
    if removal.share == 0:  # beta is below what any set of these rows can reach
        return PACLearning(np.zeros(rows.shape[1]), removal, PACLearningStatus.BEYOND_ALPHA)
    own = None if weights is None else weights[E]
    solution = l1_regression(rows[E], labels[E], own, max_iter=max_iter, callback=callback)
    if solution.status is Status.INEXACT:
        status = PACLearningStatus.INEXACT
    elif removal.status is OutlierStatus.BEYOND_ALPHA:
        status = PACLearningStatus.BEYOND_ALPHA
    elif solution.rank < rows.shape[1]:
        status = PACLearningStatus.SUBSPACE
    else:
        status = PACLearningStatus.UNIQUE
    return PACLearning(solution.coef, removal, status)


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
        Rows with larger ratios are removed, however many these are. By default the smallest that `alpha` allows, up to
        a factor ``SHARPNESS``.
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
    counted = np.flatnonzero(counts)
    # Columns of a common size and no number above 1, by powers of two. Zero rows stay inside, whatever happens.
    scales = typical_sizes(table[counted])
    C = table[counted] / scales
    shift = exponents(C)
    C = np.ldexp(C, -shift)
    present = C.any(axis=1)
    peeling = _Peeling(C[present], counts[counted][present] / counts.sum(), alpha, tol, callback)
    kept, lower = peeling.smallest() if beta is None else (peeling.largest_set(beta), 0.0)
    inside = np.ones(len(table), dtype=bool)
    inside[counted[present]] = kept.rows
    share = float(counts[inside].sum()) / float(counts.sum())
    status = OutlierStatus.WHOLE if kept.rows.all() else OutlierStatus.REMOVED
    if beta is not None and 1 - share > alpha * (1 + _ROUNDING):
        status, lower = OutlierStatus.BEYOND_ALPHA, beta
    d, k = kept.basis.shape
    V = np.eye(d) if k == d else np.linalg.qr(kept.basis * (scales / scales.max())[:, None])[0]
    # M is the mean over the rows inside, as in Definition B.2; the map belongs to the sum over them divided by all.
    T = np.ldexp(kept.map * math.sqrt(share) / scales[:, None], -shift)
    removal = OutlierRemoval(
        subspace=V,
        matrix=np.asarray((V.T @ T).T),
        beta=kept.largest * (1 + _ROUNDING) if beta is None else float(beta),
        inside=inside,
        ratio=share * kept.largest,
        share=share,
        lower_bound=(1 - alpha) * lower,
        scales=scales,
        tol=tol,
        n_iter=peeling.n_iter,
        status=status,
    )
    absent = counts == 0  # rows of weight zero are judged, but do not count
    if absent.any():
        inside[absent] = removal.ratios(table[absent]) <= share * removal.beta
    return removal


@dataclass(frozen=True, slots=True)
class _Kept:
    """K(beta), and what maps it: ``x' M_S^+ x = |map' x|^2``."""

    rows: BoolArray
    removed: float  # share
    basis: FloatArray  # (d, k), orthonormal: the span
    map: FloatArray  # (d, k)
    largest: float  # ratio, with M_S divided by the number of all rows


@dataclass(slots=True)
class _Peeling:
    """Rows from which outliers are removed, none of them zero, and their shares of the weight."""

    rows: FloatArray
    shares: FloatArray
    alpha: float
    tol: float
    callback: Callback
    n_iter: int = 0

    def largest_set(self, beta: float, within: BoolArray | None = None, limit: float = math.inf) -> _Kept:
        """Return K(beta), given a set that holds it, or the set at which more than `limit` is removed."""
        keep = np.ones(len(self.rows), dtype=bool) if within is None else within
        while True:
            self.n_iter += 1
            basis, T, ratios = _whitening(self.rows[keep], self.shares[keep], self.tol)
            kept = _Kept(keep, float(self.shares[~keep].sum()), basis, T, float(ratios.max(initial=0.0)))
            self.callback(Progress("outlier removal", self.n_iter, kept.removed, self.alpha))
            if kept.largest <= beta or kept.removed > limit:
                return kept
            keep = keep.copy()
            keep[keep] = ratios <= beta

    def smallest(self) -> tuple[_Kept, float]:
        """Return K of the smallest beta that removes at most alpha, and a beta that removes more."""
        limit = self.alpha * (1 + _ROUNDING)
        kept = self.largest_set(math.inf)
        # The ratios of k directions have the mean k at least, and more where rows are missing: none is below 1.
        lower = 0.5
        while kept.largest > SHARPNESS * lower:
            middle = math.sqrt(lower * kept.largest)
            fewer = self.largest_set(middle, kept.rows, limit)
            lower, kept = (middle, kept) if fewer.removed > limit else (lower, fewer)
        return kept, min(lower, kept.largest)


def _whitening(rows: FloatArray, shares: FloatArray, tol: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the span of the rows, the map that whitens them, and their ratios."""
    n, d = rows.shape
    if n == 0:
        return np.zeros((d, 0)), np.zeros((d, 0)), np.zeros(0)
    M = (rows * shares[:, None]).T @ rows
    lengths = np.sqrt(np.diag(M))
    if lengths.all():
        values, axes = np.linalg.eigh(M / lengths / lengths[:, None])
        if values[0] > _SAFE_MOMENTS * values[-1]:
            T = axes / np.sqrt(values) / lengths[:, None]
            images = rows @ T
            return np.eye(d), T, np.einsum("ij,ij->i", images, images)
    # Elsewhere squares would cost digits. Ranks are decided on unit rows, where a row that dwarfs the others hides
    # none of their directions.
    units = np.ldexp(rows, -exponents(rows, axis=1)[:, None])
    units /= np.linalg.norm(units, axis=1)[:, None]
    _, sizes, axes = np.linalg.svd(np.linalg.qr(units, mode="r"))
    rank = int((sizes > tol * sizes[0]).sum())
    basis = np.eye(d) if rank == d else axes[:rank].T
    # Large rows first and pivoted columns: elimination that is stable row by row (Cox and Higham, 1998).
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    weighted = (rows[order] @ basis) * np.sqrt(shares[order])[:, None]
    Q, R, pivots = sla.qr(weighted, mode="economic", pivoting=True, check_finite=False)
    inverse = np.zeros((rank, rank))
    inverse[pivots] = sla.solve_triangular(R[:rank], np.eye(rank), check_finite=False)
    ratios = np.empty(n)
    # From Q, not from rows times the inverse: for a row that dwarfs the others that product is rounding.
    ratios[order] = np.einsum("ij,ij->i", Q, Q) / shares[order]
    return basis, basis @ inverse, ratios
