r"""Spectral outlier removal: an ellipsoid that holds nearly all rows, with no outliers among those it holds.

A row x is a :math:`\beta`-outlier (Definition B.2) of a set with second moments :math:`M = E[x x^\top]` if some
direction v has :math:`(v \cdot x)^2 > \beta\, E[(v \cdot x)^2]`. The worst direction is :math:`M^+ x`, so that the
largest ratio of a row in the span of the set is

.. math::
    \max_v \frac{(v \cdot x)^2}{E[(v \cdot x)^2]} = x^\top M^+ x .

Dunagan and Vempala (2004, Theorem 3; the paper's Lemma B.3): for every :math:`\alpha` some ellipsoid holds a share
:math:`1 - \alpha` and no outliers for :math:`\beta = \tilde O(d b / \alpha)`. Rows with
:math:`x^\top M^+ x > \beta` are removed and M is computed anew, until there are none.

**Order does not matter.** With sums over the kept set S divided by the number N of all rows,
:math:`M_S = \frac1N \sum_{x \in S} x x^\top`, a ratio only grows when S shrinks. So every order of removal ends in the
same set :math:`K(\beta)`, the largest one with :math:`x^\top M_S^+ x \le \beta`; these sets are nested, a bisection
finds the smallest :math:`\beta` whose set holds a share :math:`1 - \alpha`, and the rows inside the last ellipsoid are
exactly :math:`K(\beta)`. Divided by the mean over S instead, as Definition B.2 has it, ratios are smaller by the share
of S, between :math:`1 - \alpha` and 1. So no set of that share does better than :math:`(1 - \alpha)` times what is
found: the approximation factor of the theorem, and the `lower_bound` of the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike

from massart.isotropy.blocked import TableRows
from massart.isotropy.moments import (
    RadialMoments,
    Triangle,
    accumulate,
    exponents,
    squared_lengths,
    triangular_factor,
    typical_sizes,
    vanishing,
)
from massart.progress import Callback, Progress, silent
from massart.rows import (
    BoolArray,
    FloatArray,
    Largest,
    Rows,
    check_matrix,
    check_weights,
    like,
    namespace_of,
    precision_of,
    to_numpy,
)

SHARPNESS = 1.01
"""Factor up to which the smallest beta is found."""

_ROUNDING = 1e-9  # relative; another order of summation must not put a kept row outside
_SAFE_MOMENTS = 1e-6  # smallest ratio of eigenvalues at which second moments are as good as the rows
_VANISHING = 900  # binary orders below the largest number at which a row counts as zero: squares vanish near 2**-1074
_FAR = 5000  # beyond any binary exponent


class OutlierStatus(Enum):
    """How outlier removal ended; the value says it in words."""

    WHOLE = "no row was removed"
    REMOVED = "outliers were removed, and the rows inside have none"


@dataclass(frozen=True, slots=True)
class OutlierRemoval:
    r"""An ellipsoid :math:`E = \{ x \in V : |A V^\top x|^2 \le \beta \}` and the rows inside.

    Attributes
    ----------
    subspace : (d, k) array
        V, orthonormal: the span of the rows inside; the identity if that is everything.
    matrix : (k, k) array
        A, which makes the rows inside isotropic: the mean of :math:`(A V^\top x)(A V^\top x)^\top` over them is I.
    beta : float
        The bound of the ellipsoid, a rounding error above `ratio`; rows outside are above it, those of V included.
    inside : (n,) boolean array
        Rows in E; rows of weight zero are judged, too.
    ratio : float
        Largest :math:`x^\top M^+ x` of a row inside, with M of the rows inside alone: no row inside is an outlier for
        this number.
    share : float
        Weight of the rows inside, of all.
    lower_bound : float
        No set of rows of a share :math:`1 - \alpha` or more has a smaller largest ratio.
    scales : (d,) array
        Powers of two that bring the columns to a common size; distances from V are measured after division by them.
    tol : float
        Largest distance at which a unit row counts as lying in V.
    n_iter : int
        Second moments computed.
    status : OutlierStatus
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
        """Tell which rows lie in V."""
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
        rows = self._checked(X)
        images = rows @ self.subspace @ self.matrix.T
        with np.errstate(over="ignore"):
            ratios = np.einsum("ij,ij->i", images, images)
        return np.where(self.spans(rows), ratios, np.inf)

    def _checked(self, X: ArrayLike) -> FloatArray:
        rows = check_matrix(X)
        if rows.shape[1] != len(self.subspace):
            raise ValueError(f"X has {rows.shape[1]} columns but the ellipsoid has {len(self.subspace)}")
        return rows


def remove_outliers(
    X: ArrayLike,
    *,
    alpha: float,
    sample_weight: ArrayLike | None = None,
    tol: float | None = None,
    callback: Callback = silent,
) -> OutlierRemoval:
    """Find an ellipsoid that holds a share ``1 - alpha`` of the rows, with no beta-outliers among the rows inside.

    Parameters
    ----------
    X : (n, d) array
    alpha : float in (0, 1)
        Share of the rows that may be left outside. Beta is the smallest that it allows, up to a factor ``SHARPNESS``.
    sample_weight : (n,) array, optional
        A row of weight c counts c times.
    tol : float, optional
        Largest distance at which a unit row counts as lying in a subspace, columns brought to a common size: a rank
        decision. By default the 5/6th power of the precision of X.
    callback : callable

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
    rows = check_matrix(X)
    weights = check_weights(sample_weight, len(rows))
    counts = np.ones(len(rows)) if weights is None else weights
    tol = precision_of(X) ** (5 / 6) if tol is None else tol
    return _Removal(_Memory(rows), counts, alpha, tol, callback).run()


def remove_outliers_of(
    rows: Rows, *, alpha: float, tol: float | None = None, callback: Callback = silent
) -> OutlierRemoval:
    """Do what :func:`remove_outliers` does for the rows of a table, wherever they are, in blocks.

    Second moments are sums over blocks, and ratios a number a row. Where rows differ in size by more than 1e7, or
    numbers by hundreds of orders of magnitude, rows in memory are judged with more care. Labels do not matter.
    """
    counts = np.ones(rows.n_rows) if rows.weights is None else rows.weights.to_numpy()
    tol = rows.precision[0] ** (5 / 6) if tol is None else tol
    return _Removal(_Table(rows), counts, alpha, tol, callback).run()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A set that is its own ellipsoid's, and what maps it: ``x' M_S^+ x = |map' x|^2``."""

    rows: BoolArray
    axes: FloatArray  # (d, k), orthonormal in columns of a common size
    map: FloatArray  # (d, k), from the same columns
    largest: float  # ratio, divided by the sum over all rows


class _Memory:
    """Rows in memory, with columns of a common size, none larger than 1."""

    def __init__(self, X: FloatArray) -> None:
        self.scales = typical_sizes(X)
        C = X / self.scales
        self.exponent = int(exponents(C[C.any(axis=1)], axis=1).max(initial=-_FAR)) if C.any() else 0
        self.C = np.ldexp(C, -self.exponent)
        self.C[exponents(self.C, axis=1) < -_VANISHING] = 0.0
        self.nonzero: BoolArray = np.asarray(self.C.any(axis=1))

    def lengths(self, some: BoolArray, T: FloatArray) -> FloatArray:
        """Return the lengths of some rows times `T`."""
        return np.asarray(np.linalg.norm(self.C[some] @ T, axis=1))

    def whitening(self, some: BoolArray, counts: FloatArray, tol: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the span of some rows, the map that whitens them, and their ratios."""
        rows, shares = self.C[some], counts[some] / counts.sum()
        T = _whitening((rows * shares[:, None]).T @ rows)
        if T is None:
            return _stable_whitening(rows, shares, tol)
        images = rows @ T
        return np.eye(len(T)), T, np.einsum("ij,ij->i", images, images)


class _Table:
    """The same of rows of a table, wherever they are: every verb is a read."""

    def __init__(self, rows: Rows) -> None:
        table = replace(TableRows.of(rows), rescaled=False)
        everything = np.ones(rows.n_rows, dtype=bool)
        X = table.within(None, everything)
        self.scales = typical_sizes(X)
        largest = accumulate(_Largest(), X).values / self.scales
        self.exponent = int(exponents(largest)) if largest.any() else 0
        self.C = table.within(np.ldexp(1 / self.scales, -self.exponent), everything)
        self.nonzero = ~vanishing(self.C, np.ones(len(largest), dtype=bool))

    def lengths(self, some: BoolArray, T: FloatArray) -> FloatArray:
        """Return the lengths of some rows times `T`."""
        return np.sqrt(squared_lengths(self.C, T)[some])

    def whitening(self, some: BoolArray, counts: FloatArray, tol: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the span of some rows, the map that whitens them, and their ratios."""
        moments: RadialMoments = accumulate(_Second(), self.C, counts, some)
        total = float(counts.sum())
        T = _whitening((moments.second + moments.lost) / total)
        basis = np.eye(len(self.scales))
        if T is None:
            _, sizes, axes = np.linalg.svd(triangular_factor(self.C, basis, some))
            rank = int((sizes > tol * sizes[0]).sum())
            basis = basis if rank == len(basis) else axes[:rank].T
            R = accumulate(_Factor(basis), self.C, counts, some).R
            T = basis @ sla.solve_triangular(R[:rank], np.eye(rank), check_finite=False) * math.sqrt(total)
        return basis, T, squared_lengths(self.C, T)[some]


@dataclass(frozen=True, slots=True)
class _Largest:
    """The largest magnitude in every column."""

    def __call__(self, X: Any, weights: Any) -> Largest:
        xp = namespace_of(X)
        return Largest(to_numpy(xp.max(xp.abs(X), axis=0)))


@dataclass(frozen=True, slots=True)
class _Second:
    """Weighted second moments of rows as they are."""

    def __call__(self, X: Any, weights: Any) -> RadialMoments:
        weighted = X if weights is None else X * weights[:, None]
        return RadialMoments(to_numpy(weighted.T @ X), 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Factor:
    """R of weighted rows in a basis."""

    basis: FloatArray

    def __call__(self, X: Any, weights: Any) -> Triangle:
        xp = namespace_of(X)
        Y = X @ like(self.basis, X)
        return Triangle(to_numpy(xp.linalg.qr(Y if weights is None else Y * xp.sqrt(weights)[:, None])[1]))


class _Removal:
    """One call: the rows, and how often each counts."""

    def __init__(
        self,
        cloud: _Memory | _Table,
        counts: FloatArray,
        alpha: float,
        tol: float,
        callback: Callback,
    ) -> None:
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must be between 0 and 1, got {alpha}")
        if not 0 < tol < 1:
            raise ValueError(f"tol must be between 0 and 1, got {tol}")
        self.cloud, self.counts = cloud, counts
        self.total = float(counts.sum())
        self.alpha, self.tol, self.callback = alpha, tol, callback
        self.n_iter = 0

    def run(self) -> OutlierRemoval:
        everything = np.ones(len(self.counts), dtype=bool)
        best = self._peel(everything, np.inf)
        assert best is not None  # nothing is above infinity
        return self._result(*self._smallest(best))

    def _smallest(self, best: _Kept) -> tuple[_Kept, float]:
        """Return the set of the smallest beta that keeps enough, and a beta that does not."""
        # The ratios of k directions have the mean k at least, and more where rows are missing: none is below 1.
        lower = 0.5
        nothing = self._peel(best.rows, lower)
        if nothing is not None:  # nearly all rows are zero
            return nothing, 0.0
        while best.largest > SHARPNESS * lower:
            middle = math.sqrt(lower * best.largest)
            found = self._peel(best.rows, middle)
            if found is None:
                lower = middle
            else:
                best = found
        return best, lower

    def _peel(self, start: BoolArray, beta: float) -> _Kept | None:
        """Remove outliers until there are none; None if more than alpha has to go."""
        keep = start.copy()
        while True:
            axes, T, ratios = self._ellipsoid(keep)
            outlying = keep & ((ratios > beta) | np.isinf(ratios))
            if not outlying.any():
                return _Kept(keep, axes, T, float(ratios[keep].max(initial=0.0)))
            keep &= ~outlying
            removed = float(self.counts[~keep].sum()) / self.total
            self.callback(Progress("outlier removal", self.n_iter, removed, self.alpha))
            if removed > self.alpha * (1 + _ROUNDING):
                return None

    def _ellipsoid(self, keep: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the span of the kept rows, the map that whitens them, and the ratio of every kept row."""
        self.n_iter += 1
        d = len(self.cloud.scales)
        ratios = np.zeros(len(self.counts))
        some = keep & self.cloud.nonzero & (self.counts > 0)
        nothing = np.zeros((d, 0))
        basis, T = nothing, nothing
        if some.any():
            basis, T, ratios[some] = self.cloud.whitening(some, self.counts, self.tol)
        # Rows of weight zero are judged but do not count.
        others = keep & ~some & self.cloud.nonzero
        if others.any():
            ratios[others] = self.cloud.lengths(others, T) ** 2
            off = self.cloud.lengths(others, np.eye(d) - basis @ basis.T)
            ratios[np.flatnonzero(others)[off > self.tol * self.cloud.lengths(others, np.eye(d))]] = np.inf
        return basis, T, ratios

    def _result(self, kept: _Kept, lower: float) -> OutlierRemoval:
        d, k = kept.axes.shape
        share = float(self.counts[kept.rows].sum()) / self.total
        # M is the mean over the rows inside, as in Definition B.2; T belongs to the sum over them divided by all.
        scales = self.cloud.scales
        T = np.ldexp(kept.map * math.sqrt(share) / scales[:, None], -self.cloud.exponent)
        if k == d:
            V = np.eye(d)
        else:
            V = np.linalg.qr(kept.axes * (scales / scales.max())[:, None])[0]
        A = np.asarray((V.T @ T).T)
        ratio = share * kept.largest
        return OutlierRemoval(
            subspace=V,
            matrix=A,
            beta=ratio * (1 + _ROUNDING),
            inside=kept.rows,
            ratio=ratio,
            share=share,
            lower_bound=(1 - self.alpha) * lower,
            scales=scales,
            tol=self.tol,
            n_iter=self.n_iter,
            status=OutlierStatus.WHOLE if kept.rows.all() else OutlierStatus.REMOVED,
        )


def _whitening(M: FloatArray) -> FloatArray | None:
    """Return the whitening map from second moments; None where squaring would cost digits."""
    lengths = np.sqrt(np.diag(M))
    if not lengths.all():
        return None
    values, axes = np.linalg.eigh(M / lengths / lengths[:, None])
    if values[0] < _SAFE_MOMENTS * values[-1]:
        return None
    return np.asarray(axes / np.sqrt(values) / lengths[:, None])


def _stable_whitening(rows: FloatArray, shares: FloatArray, tol: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same from an orthonormal basis of the columns, for rows of any sizes and any rank."""
    d = rows.shape[1]
    # Ranks are decided on unit rows, where a row that dwarfs the others hides none of their directions.
    units = np.ldexp(rows, -exponents(rows, axis=1)[:, None])
    units /= np.linalg.norm(units, axis=1)[:, None]
    _, sizes, axes = np.linalg.svd(np.linalg.qr(units, mode="r"))
    rank = int((sizes > tol * sizes[0]).sum())
    basis = np.eye(d) if rank == d else axes[:rank].T
    Y = rows if rank == d else rows @ basis
    # Large rows first and pivoted columns: elimination that is stable row by row (Cox and Higham, 1998).
    order = np.argsort(-np.abs(Y).max(axis=1), kind="stable")
    weighted = Y[order] * np.sqrt(shares[order])[:, None]
    Q, R, pivots = sla.qr(weighted, mode="economic", pivoting=True, check_finite=False)
    inverse = np.zeros((rank, rank))
    inverse[pivots] = sla.solve_triangular(R[:rank], np.eye(rank), check_finite=False)
    ratios = np.empty(len(rows))
    # From Q, not from rows times the inverse: for a row that dwarfs the others that product is rounding.
    ratios[order] = np.einsum("ij,ij->i", Q, Q) / shares[order]
    return basis, basis @ inverse, ratios
