r"""What rows span: their rank, the directions they leave open, and coordinates in which independence shows.

Rows are never compared in the caller's units. Scaling columns and rows by positive numbers changes neither a rank nor
which rows share a hyperplane, so that both are brought to a common size first (by powers of two where that does).

**Reach.** Let k independent rows form the block B, and let :math:`|r \cdot x| \le 2t` on its rows. Every row x of the
table is :math:`x = (x B^{-1}) B`, so that :math:`|r \cdot x| \le 2t \, |x B^{-1}|_1`. The reach of a block is a bound
on :math:`|x B^{-1}|_1` over all rows: what a formula that agrees on the block to within a tolerance can be off
elsewhere. It decides whether rows are *clearly* independent. No map of the columns changes it, and a dependent block
has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from massart.rows import EPS, FloatArray, scaled

IntArray = NDArray[np.intp]

GOLDEN = 0.6180339887498949
"""Multiples of it, modulo one, spread rows evenly over a table but not periodically."""

BATCH = 1 << 21
"""Numbers in one batch of blocks or of subsets of rows."""

RANK = 1e-12
"""Singular values of unit rows, or eigenvalues, below this fraction of the largest are rounding."""

SLAB_REACH, EXACT_REACH = 1e3, 1e6
"""Blocks of a larger reach say too little: a formula would be unique up to 2000 half-widths of rounded labels. Where
half-widths are rounding of floats, eight digits are left with the second."""

INVOLVED = 1e-8
"""Entries of the projector on the open directions (columns brought to size 1) below this are rounding."""

_SPANNING = 1e-2  # ratio of pivots at which a few rows stand for all


@dataclass(frozen=True, slots=True)
class HyperplaneBound:
    """How many rows one hyperplane through the origin can hold, at most.

    Attributes
    ----------
    rows : float
        Number of rows (sum of their weights).
    reach : float
        The same number bounds the rows with ``|r.x| <= 2 t`` for every r that exceeds ``2 t * reach`` on some row.
    """

    rows: float
    reach: float


@dataclass(frozen=True, slots=True)
class Span:
    """The span of rows in R^d.

    Attributes
    ----------
    rank : int
    columns : (rank,) array of int
        Independent columns: restricted to them the rows have the same dependences.
    undetermined : (d, d - rank) array
        Orthonormal basis of the directions orthogonal to every row.
    groups : tuple of tuples of int
        The columns those directions involve; columns of different groups do not interact.
    """

    rank: int
    columns: IntArray
    undetermined: FloatArray
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def all_of(cls, d: int) -> Span:
        """Return the span of rows that determine all of d columns."""
        return cls(d, np.arange(d), np.zeros((d, 0)), ())


def span_of(X: FloatArray) -> Span:
    """Return the span of the rows of `X`, of which there may be none."""
    d = X.shape[1]
    units, scales = unit_rows(X)
    if not len(units):
        return Span(0, np.arange(0), np.eye(d), tuple((j,) for j in range(d)))
    # The triangular factor has the singular values of the rows; their squares would hide condition numbers above 1e8.
    _, sizes, axes = np.linalg.svd(np.linalg.qr(units, mode="r"))
    rank = int((sizes > RANK * sizes[0]).sum())
    if rank == d:
        return Span.all_of(d)
    columns = np.sort(sla.qr(axes[:rank], mode="r", pivoting=True)[1][:rank])
    # X = lengths * units * scales, so that a null vector v of the units gives v / scales.
    undetermined = np.linalg.qr(axes[rank:].T * (scales.min() / scales)[:, None])[0]
    return Span(rank, columns, undetermined, _groups(axes[rank:].T @ axes[rank:]))


def _groups(projector: FloatArray) -> tuple[tuple[int, ...], ...]:
    """Return the connected components of the columns that the projector involves."""
    from scipy.sparse.csgraph import connected_components  # slow to import

    linked = np.abs(projector) > INVOLVED
    involved = np.flatnonzero(linked.any(axis=1))
    component = connected_components(linked[np.ix_(involved, involved)])[1]
    return tuple(tuple(involved[component == k].tolist()) for k in range(component.max(initial=-1) + 1))


def unit_rows(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rows with their columns brought to a common size and length 1, and the columns' scales.

    ``X = lengths * units * scales``; zero rows stay zero.
    """
    # No exponent of a column is positive: rows keep an entry of size 1, and none is larger.
    units, exponents = scaled(scaled(X, axis=1)[0], axis=0)
    lengths = np.linalg.norm(units, axis=1)
    return units / np.where(lengths > 0, lengths, 1.0)[:, None], np.ldexp(1.0, np.clip(exponents, -900, 900))


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Rows as combinations of a well-chosen block: ``Y = X B^-1``, where independence does not depend on columns.

    Attributes
    ----------
    Y : (n, k) array
    longest : float
        Bound on the length of the true rows of ``X B^-1``.
    error : float
        Bound on the distance of a row of Y from the true one.
    """

    Y: FloatArray
    longest: float
    error: float

    def reach(self, blocks: FloatArray) -> FloatArray:
        r"""Return an upper bound on the reach of each block, (..., k, k) rows of Y; infinite if it may be singular.

        :math:`|y B^{-1}|_1 \le \sqrt k \, |y| / \sigma_{\min}(B)`. The rows are off by at most `error`, so that
        :math:`\sigma_{\min}` is off by at most :math:`\sqrt k` times that, plus what the singular values are rounded.
        """
        k = blocks.shape[-1]
        sizes = np.linalg.svd(blocks, compute_uv=False)
        certain = sizes[..., -1] - np.sqrt(k) * self.error - 16 * k * EPS * sizes[..., 0]
        with np.errstate(divide="ignore"):
            return np.asarray(np.sqrt(k) * self.longest / np.maximum(certain, 0.0))


def coordinates(X: FloatArray) -> Coordinates | None:
    r"""Return the rows of `X`, of full column rank, in the coordinates of a well-chosen block; None if there is none.

    Solving :math:`y B = x` by elimination is exact for a B that is off by some :math:`E`, with
    :math:`|E| \le c k \epsilon |B|`; so y is off by :math:`y E B^{-1}`.
    """
    n, k = X.shape
    if n < k:
        return None
    scales = unit_rows(X)[1]
    rows = np.ldexp(X, -int(np.frexp(np.abs(X).max())[1])) / (scales / scales.max())
    B = rows[_well_chosen(rows)]
    try:
        inverse = np.linalg.inv(B)
    except np.linalg.LinAlgError:
        return None
    relative = 64 * k * EPS * float(np.linalg.norm(B, np.inf) * np.linalg.norm(inverse, np.inf))
    if not relative < 0.25:
        return None
    Y = np.asarray(np.linalg.solve(B.T, rows.T).T, dtype=np.float64)
    sums = float(np.abs(Y).sum(axis=1).max())
    longest = float(np.linalg.norm(Y, axis=1).max())
    error = relative / (1 - relative) * sums
    return Coordinates(Y, longest + error, error)


def _well_chosen(rows: FloatArray) -> IntArray:
    """Return k clearly independent rows from a few, spread over the table; from more where those do not span."""
    n, k = rows.shape
    size = 8 * k + 256
    while True:
        pool = np.unique(np.linspace(0, n - 1, min(size, n)).astype(np.intp))
        _, R, order = sla.qr(rows[pool].T, mode="economic", pivoting=True)
        pivots = np.abs(np.diag(R))
        if size >= n or pivots[-1] > _SPANNING * pivots[0]:
            return np.asarray(pool[order[:k]])
        size *= 8


def parallel_classes(X: FloatArray, weights: FloatArray | None) -> tuple[IntArray, FloatArray]:
    """Return the first row of each class of parallel rows, and the weights of the classes.

    A row is divided by its entry of largest size. If one row is an exact multiple of another the exact quotients are
    equal, so that their correctly rounded values are: exactly parallel rows are always in one class.
    """
    pivots = np.abs(X).argmax(axis=1)
    quotients = X / X[np.arange(len(X)), pivots][:, None] + 0.0  # turns -0 into 0
    _, first, inverse = np.unique(quotients, axis=0, return_index=True, return_inverse=True)
    return first, np.bincount(inverse.ravel(), weights=weights, minlength=first.size).astype(np.float64)


def hyperplane_normals(rows: FloatArray) -> Iterator[FloatArray]:
    """Yield unit vectors orthogonal to each subset of d - 1 rows, in batches."""
    n, d = rows.shape
    subsets = combinations(range(n), d - 1)
    batch = max(1, BATCH // (d * d + n))
    while chunk := list(islice(subsets, batch)):
        columns = rows[np.array(chunk, dtype=np.intp)].transpose(0, 2, 1)
        yield np.linalg.qr(columns, mode="complete")[0][:, :, -1]
