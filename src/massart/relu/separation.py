r"""Lemma 3.1: what the labels tell about the side on which the truth lies, seen from a query.

For a non-decreasing f, a query :math:`w_0` and a row that the truth fits, :math:`y = f(w^* \cdot x)`, there is a sign
with

.. math::
    s \, (w_0 - w^*) \cdot x = |(w_0 - w^*) \cdot x| ,

the *side* that the row tells: :math:`s = \mathrm{sgn}(w_0 \cdot x - y)` where the label is decisive, +1 where it is
the lower limit and :math:`w_0 \cdot x \ge l`, -1 where it is the upper limit and :math:`w_0 \cdot x \le u`. The paper's
:math:`\mathrm{sgn}(f(w_0 \cdot x) - y)` is 0 for :math:`w_0 \cdot x = y = 0`, so at :math:`w_0 = 0` half of the right
rows are silent and the wrong ones decide. A wrong row tells some side, at worst the other one. Hence for any weights
:math:`c_i > 0`

.. math::
    \sum_i c_i s_i x_i \cdot (w_0 - w^*) \;\ge\;
    \sum_{y_i = f(w^* \cdot x_i)} c_i |(w_0 - w^*) \cdot x_i|
    - \sum_{y_i \ne f(w^* \cdot x_i)} c_i |(w_0 - w^*) \cdot x_i| ,

and where the right-hand side is positive, which is condition (dagger), :math:`\sum_i c_i s_i x_i` is the normal of a
cut that keeps the truth. It should hold for the *active* rows, :math:`f'(w_0 \cdot x) > 0`, in radial-isotropic
position: :math:`c_i = 1 / |A x_i|`. They are chosen by x alone, so their labels are still Massart.

Rows that the query fits up to a tolerance keep their side. If they fell silent, the wrong rows would be left to decide
as soon as a query comes that close to the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from massart.agreement import Agreement, Level, levels
from massart.cutting_plane import Halfspace
from massart.isotropy import RadialIsotropy, Status, decompose, radial_isotropy
from massart.link import RELU, Link
from massart.rows import BoolArray, FloatArray, check_labels, check_matrix

EXACT = Agreement(Level.EXACT)
"""Agreement to the last bit."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What each row tells about a query."""

    sign: FloatArray  # +1 where the truth has the smaller w.x, -1 where the larger one, 0 where nothing is told
    active: BoolArray  # f' > 0 at the query
    tells: BoolArray  # active rows, and others with a side: those on which the query is wrong
    fits: BoolArray  # y = f(w.x), up to the tolerance
    pinned: BoolArray  # active rows with a decisive label that fits: the only ones that fix a number


def sides(z: FloatArray, y: FloatArray, size: FloatArray, *, link: Link = RELU, agreement: Agreement = EXACT) -> Sides:
    """Return what each row tells about a query with products ``z = w.x``, rounded relative to ``size = |w|.|x|``."""
    told = link.inverse(y)  # the label itself where the link only clips
    slope = link.derivative(z)
    active = slope > 0
    # A residual is smaller than that of w.x by the slope, and so is its rounding.
    sizes = np.where(active, slope, 1.0) * (size + np.abs(told))
    fits = np.abs(y - link(z)) <= agreement.half_widths(sizes)
    decisive = link.decisive(y, agreement.label)
    pinned = decisive & active & fits
    low = ~decisive & (y <= link.lower + agreement.label)
    sign = np.where(decisive, np.sign(z - told), np.where(low, z >= link.lower, -1.0 * (z <= link.upper)))
    return Sides(np.asarray(sign), active, active | (sign != 0), fits, pinned)


def check_vector(values: ArrayLike, size: int, name: str) -> FloatArray:
    """Return `values` as `size` finite numbers."""
    if np.shape(values) != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {np.shape(values)}")
    return check_labels(values, size, name)


class Answer(Enum):
    """What a separation oracle says; the value says it in words."""

    ACCEPTED = "the query fits most rows, and on every level more than chance would let it"
    CUT = "the truth lies on the other side of a hyperplane through the query"
    SILENT = "no row tells on which side the truth lies"


@dataclass(frozen=True, slots=True)
class Separation:
    """What an oracle says to one query.

    Attributes
    ----------
    query : (d,) array
        w_0.
    answer : Answer
    halfspace : Halfspace or None
        Where the truth is: through the query, None unless the answer is CUT.
    subspace : (d, k) array
        V, orthonormal, of the level that gave the cut: the normal lies in it. No columns without a cut.
    weights : (n,) array
        ``c_i = 1/|A V' x_i|`` of the rows of that level, times their sample weight; zero for all others.
    fitted : float
        Share of the rows that the query fits, of those with a possible label.
    """

    query: FloatArray
    answer: Answer
    halfspace: Halfspace | None
    subspace: FloatArray
    weights: FloatArray
    fitted: float


def separation_margin(
    separation: Separation,
    X: ArrayLike,
    y: ArrayLike,
    w_true: ArrayLike,
    *,
    link: Link = RELU,
    agreement: Agreement | None = None,
) -> float:
    r"""Return the left-hand side of condition (dagger) for a cut, if the truth is known.

    On a level beyond the first, rows also have a part outside its V, on which query and truth should agree. Where they
    do not, the difference there counts against the margin, so that in any case

    .. math::
        n \cdot (w_0 - w^*) \ge \text{margin} ,

    up to the tolerance, for the cut's normal n: a positive margin proves that the cut keeps the truth.

    Parameters
    ----------
    separation : Separation
        Of a query to an oracle for X and y.
    X : (n, d) array
    y : (n,) array
    w_true : (d,) array
    link : Link
    agreement : Agreement, optional
        Of the labels; float64 rounding by default.
    """
    rows = check_matrix(X)
    labels = check_vector(y, len(rows), "y")
    truth = check_vector(w_true, rows.shape[1], "w_true")
    if len(separation.weights) != len(rows):
        raise ValueError(f"separation is one of {len(separation.weights)} rows but X has {len(rows)}")
    agreement = levels("auto", rows, labels)[0] if agreement is None else agreement
    V = separation.subspace
    difference = separation.query - truth
    whole = rows @ difference
    inside = (rows @ V) @ (V.T @ difference)
    right = sides(rows @ truth, labels, np.abs(rows) @ np.abs(truth), link=link, agreement=agreement).fits
    gain = np.where(right, np.abs(whole) - np.abs(whole - inside), -np.abs(inside))
    return float(separation.weights @ gain)


_INSIDE = 1e-11  # relative distance at which a row lies in a subspace
_ROUNDING = 8 * np.finfo(float).eps


class Position:
    """Radial-isotropic position of ever new subsets of the same rows, each from where the last one was.

    Neighbouring queries share most of their active rows, so the last transform is a good start for the next.
    """

    def __init__(self, X: FloatArray, gamma: float, sample_weight: FloatArray | None = None) -> None:
        self.X = X
        self.gamma = gamma
        self.sample_weight = sample_weight
        self.n_iter = 0
        """Iterations spent on transforms so far."""
        self._start: RadialIsotropy | None = None
        self._subset = np.zeros(len(X), dtype=bool)
        self._pieces: list[RadialIsotropy] = []

    def pieces(self, subset: BoolArray) -> list[RadialIsotropy]:
        """Return the decomposition of some rows, as :func:`massart.isotropy.decompose` does; members are rows of X."""
        if not np.array_equal(subset, self._subset):
            self._pieces = self._whole(subset) or self.decomposed(subset)
            self._subset = subset.copy()
            whole = self._pieces and self._pieces[0].status is Status.WHOLE
            self._start = self._pieces[0] if whole else None
        return self._pieces

    def beyond(self, basis: FloatArray, subset: BoolArray) -> list[RadialIsotropy]:
        """Return the decomposition of the parts of some rows that are orthogonal to `basis`, (d, k) orthonormal."""
        k = basis.shape[1]
        if not k:
            return self.decomposed(subset)
        complement = np.linalg.qr(basis, mode="complete")[0][:, k:]
        outside = subset & ~self.inside(basis)
        parts = self.X @ complement
        # A column of nothing but rounding is no dimension.
        parts[np.abs(parts) <= _ROUNDING * np.linalg.norm(self.X, axis=1)[:, None]] = 0
        pieces = self.decomposed(outside, parts)
        return [replace(piece, subspace=complement @ piece.subspace) for piece in pieces]

    def inside(self, basis: FloatArray) -> BoolArray:
        """Return which rows lie in the span of `basis`, (d, k) orthonormal."""
        rest = self.X - (self.X @ basis) @ basis.T
        return np.asarray(np.linalg.norm(rest, axis=1) <= _INSIDE * np.linalg.norm(self.X, axis=1))

    def decomposed(
        self, subset: BoolArray, X: FloatArray | None = None, gamma: float | None = None
    ) -> list[RadialIsotropy]:
        """Return the decomposition of some rows from scratch, optionally of others in their place."""
        if not subset.any():
            return []
        rows = (self.X if X is None else X)[subset]
        gamma = self.gamma if gamma is None else gamma
        pieces = decompose(rows, gamma, sample_weight=self._weights(subset))
        self.n_iter += sum(piece.n_iter for piece in pieces)
        return [_spread(piece, subset) for piece in pieces]

    def lengths(self, piece: RadialIsotropy) -> FloatArray:
        """Return ``|A V' x|`` of the members of a piece."""
        return np.asarray(np.linalg.norm(self.X[piece.members] @ piece.subspace @ piece.matrix.T, axis=1))

    def _whole(self, subset: BoolArray) -> list[RadialIsotropy]:
        """Return a transform of the whole space, from the last one; nothing where either has none."""
        if self._start is None or not subset.any():
            return []
        weights = self._weights(subset)
        found = radial_isotropy(self.X[subset], self.gamma, sample_weight=weights, start=self._start)
        self.n_iter += found.n_iter
        return [_spread(found, subset)] if found.status is Status.WHOLE else []

    def _weights(self, subset: BoolArray) -> FloatArray | None:
        return None if self.sample_weight is None else self.sample_weight[subset]


def _spread(piece: RadialIsotropy, subset: BoolArray) -> RadialIsotropy:
    """Return the piece with members counted among all rows."""
    members = np.zeros(len(subset), dtype=bool)
    members[subset] = piece.members
    return replace(piece, members=members)
