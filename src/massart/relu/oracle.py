r"""The separation oracle for ReLUs and other links: Algorithm 3, made sound for finite samples.

Asked about :math:`w_0`, the oracle either accepts it or returns a halfspace with :math:`w_0` on its boundary that holds
the truth. The active rows S, those with :math:`f'(w_0 \cdot x) > 0`, are split into levels
:math:`V_1 \oplus V_2 \oplus \dots` (:func:`massart.isotropy.decompose`: V, then the rest on its complement, and so on),
each with a transform A of its own. The first level on which :math:`w_0` is wrong gives the cut

.. math::
    n = \frac{1}{|S_j|} \sum_{i \in S_j} s_i \frac{V_j V_j^\top x_i}{|A_j V_j^\top x_i|} , \qquad
    n \cdot (w_0 - w^*) > 0 ,

with the sides s of :mod:`massart.relu.separation`. This is the paper's :math:`A^{-1} r`, without an inverse, and lies
in :math:`V_j`: "orthogonal to V" in Algorithm 3 has to mean that. On a later level the paper's labels are
:math:`y - \mathrm{proj}_V w_0 \cdot \mathrm{proj}_V x`, and the limits of the link move with them, row by row; so what
is active, what fits and the sides are those of the whole rows. Further differences from the pseudo-code:

- Labels that no parameter explains (negative ones for a ReLU) and zero rows are dropped. The rest is still Massart.
- "Fits half of the points" accepts w = 0 wherever half of the labels are 0, and any w that is right on a heavy subspace
  only. Here *every level* has to be fitted by more active rows with a decisive label than it has dimensions and than
  half of its rows, the levels have to span all directions in which there are rows, and half of all rows must fit.
  A transform for gamma = 1/2 may exist although most rows lie in a subspace; so the rows that the query fits are
  decomposed, too, and every level of theirs is counted.
- Where few rows are active, or none, their majority may be luck. Then the rows that tell a side without being active
  join: with :math:`w_0 \cdot x \le 0 < y` the truth, if y is right, has the larger product. They also join where they
  are most of the rows that are not active: at the truth, such a label is wrong. Near the truth all of them are wrong
  ones, and chosen by their labels, so otherwise they stay away.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from massart.agreement import Agreement, levels
from massart.cutting_plane import Halfspace
from massart.isotropy import RadialIsotropy, decompose
from massart.link import RELU, Link
from massart.progress import Callback, Progress, silent
from massart.relu.separation import EXACT, Answer, Position, Separation, Sides, check_vector, sides
from massart.rows import BoolArray, FloatArray, check_matrix, check_weights
from massart.rows.scaling import scaled

_MAJORITY = 0.5

_FINE = 0.1
"""The gamma with which the rows that a query fits are searched for subspaces."""

_FEW = 3
"""Rows for each dimension of a level that are too few for a cut: their majority may be luck (measured, not proven)."""

_CANCELLED = 1e-12
"""A sum of rows this much shorter than the rows is rounding: no direction."""

_QUANTILE, _SAFETY = 0.9, 10.0
"""Of the labels' sizes that bound the truth, and the factor on top."""


def separation_oracle(
    X: ArrayLike,
    y: ArrayLike,
    *,
    link: Link = RELU,
    agreement: Agreement | None = None,
    gamma: float = 0.5,
    sample_weight: ArrayLike | None = None,
    callback: Callback = silent,
) -> SeparationOracle:
    """Return the separation oracle of a table.

    Parameters
    ----------
    X : (n, d) array
        If the rows do not span R^d, every normal lies in their span: the rest of a parameter is not determined.
    y : (n,) array
    link : Link
        f, a ReLU by default. With a slope everywhere it is inverted, and every row is active.
    agreement : Agreement, optional
        Residuals that count as agreement; float64 rounding by default.
    gamma : float
        Of the radial-isotropic transforms. The law that a cut keeps the truth wherever condition (dagger) holds does
        not depend on it.
    sample_weight : (n,) array, optional
        A row of weight c counts c times.
    callback : callable
        Called after each query with the share of rows that do not fit.

    Raises
    ------
    ValueError
        For bad input, and if no row that is not zero has a label that the link can produce.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2))
    >>> y = np.maximum(X @ [3.0, -1.0], 0)
    >>> y[:50] = 7
    >>> oracle = separation_oracle(X, y)
    >>> cut = oracle(np.zeros(2))
    >>> bool(cut.normal @ [3.0, -1.0] < cut.offset)
    True
    >>> oracle(np.array([3.0, -1.0])) is None
    True
    """
    rows = check_matrix(X)
    labels = check_vector(y, len(rows), "y")
    if not 0 < gamma < 1:
        raise ValueError(f"gamma must be between 0 and 1, got {gamma}")
    agreement = levels("auto", X, y)[0] if agreement is None else agreement
    return SeparationOracle(rows, labels, link, agreement, gamma, check_weights(sample_weight, len(rows)), callback)


class SeparationOracle:
    """Answers queries about one table; made by :func:`separation_oracle`.

    Called with a query it returns the halfspace that holds the truth, or None: then either the query is accepted, or no
    row tells a side; :meth:`separate` says which.

    Attributes
    ----------
    n_queries : int
        Queries answered so far.
    rank : int
        Dimension of the span of the rows in use.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        link: Link,
        agreement: Agreement,
        gamma: float,
        weights: FloatArray | None,
        callback: Callback,
    ) -> None:
        self._link = link
        self._agreement = agreement
        self._callback = callback
        self.n_queries = 0
        self._used = _possible(X, y, link, agreement, weights)
        self._X, self._y = X[self._used], y[self._used]
        self._sizes = np.abs(self._X)
        self._weights = np.ones(len(self._y)) if weights is None else weights[self._used]
        units, self._exponents = scaled(self._X, axis=1)
        self._position = Position(units, gamma, None if weights is None else self._weights)
        everything = self._position.pieces(np.ones(len(units), dtype=bool))  # and the start of the first query
        self.rank = sum(piece.subspace.shape[1] for piece in everything)

    @property
    def n_isotropy(self) -> int:
        """Iterations towards radial isotropy so far."""
        return self._position.n_iter

    def __call__(self, w0: FloatArray) -> Halfspace | None:
        """Return the halfspace that holds the truth; None where :meth:`separate` gives none."""
        return self.separate(w0).halfspace

    def separate(self, w0: ArrayLike) -> Separation:
        """Answer a query, (d,), and say why."""
        query = check_vector(w0, self._X.shape[1], "w0")
        told = sides(self._X @ query, self._y, self._sizes @ np.abs(query), link=self._link, agreement=self._agreement)
        fitted = self._weight(told.fits) / float(self._weights.sum())
        self.n_queries += 1
        self._callback(Progress("separation oracle", self.n_queries, 1 - fitted, _MAJORITY))
        dimension, wrong = self._first_wrong(told, fitted)
        if wrong is not None:
            return self._cut(query, wrong, told, fitted)
        accepted = fitted > _MAJORITY and dimension == self.rank
        return self._without_cut(query, Answer.ACCEPTED if accepted else Answer.SILENT, fitted)

    def _first_wrong(self, told: Sides, fitted: float) -> tuple[int, RadialIsotropy | None]:
        """Return the dimension of the levels that a query passes, and the level that makes the cut if there is one."""
        solved, wrong = self._walk(self._position.pieces(told.active), told)
        dimension = solved.shape[1]
        if self._undecided(solved, wrong, told):
            more, joined = self._walk(self._position.beyond(solved, told.tells), told)
            dimension += more.shape[1]
            wrong = wrong if joined is None else joined
        if wrong is None:
            wrong = self._hidden(told)
        if wrong is None and fitted <= _MAJORITY:
            # Of the rows that tell a side half or more are not fitted then: on some level of theirs they are, too.
            wrong = self._walk(self._position.decomposed(told.tells), told)[1]
        return dimension, wrong

    def _hidden(self, told: Sides) -> RadialIsotropy | None:
        """Return a level on which the query is wrong although it passes a larger one.

        A transform with a large gamma may exist where a subspace holds most rows. A query that is right there and wrong
        elsewhere shows it: then the rows that it fits have that subspace as a level of their own.
        """
        solved = np.zeros((self._X.shape[1], 0))
        left = told.active
        for piece in self._position.decomposed(told.pinned, gamma=_FINE):
            reached = np.hstack([solved, piece.subspace])
            inside = left & (piece.members | self._position.inside(reached))
            _, wrong = self._walk(self._position.beyond(solved, inside), told)
            if wrong is not None:
                return wrong
            solved, left = reached, left & ~inside
        return self._walk(self._position.beyond(solved, left), told)[1]

    def _walk(self, levels: list[RadialIsotropy], told: Sides) -> tuple[FloatArray, RadialIsotropy | None]:
        """Return a basis of the levels that a query passes, and the first that it does not: later ones mean nothing."""
        passed = [np.zeros((self._X.shape[1], 0))]
        for piece in levels:
            if not self._majority(piece, told):
                return np.hstack(passed), piece
            passed.append(piece.subspace)
        return np.hstack(passed), None

    def _undecided(self, solved: FloatArray, wrong: RadialIsotropy | None, told: Sides) -> bool:
        """Tell whether other rows than the active ones should make the cut."""
        if wrong is None:
            return bool(solved.shape[1] < self.rank)
        if np.count_nonzero(wrong.members) <= _FEW * wrong.subspace.shape[1]:
            return True
        inactive = ~told.active
        return self._weight(inactive & told.tells) > _MAJORITY * self._weight(inactive)

    def _majority(self, piece: RadialIsotropy, told: Sides) -> bool:
        """Tell whether a query passes a level."""
        pinned = piece.members & told.pinned
        if np.count_nonzero(pinned) <= piece.subspace.shape[1]:
            return False
        return self._weight(pinned) > _MAJORITY * self._weight(piece.members)

    def _weight(self, rows: BoolArray) -> float:
        return float(self._weights[rows].sum())

    def _cut(self, query: FloatArray, piece: RadialIsotropy, told: Sides, fitted: float) -> Separation:
        """Return the cut of a level."""
        members, V = piece.members, piece.subspace
        weights = self._weights[members] / (self._weight(members) * self._position.lengths(piece))
        parts = self._position.X[members] @ V
        signed = weights * told.sign[members]
        inside = signed @ parts
        if np.linalg.norm(inside) <= _CANCELLED * (np.abs(signed) @ np.linalg.norm(parts, axis=1)):
            return self._without_cut(query, Answer.SILENT, fitted)
        normal = V @ inside
        used = np.zeros(len(self._y))
        used[members] = np.ldexp(weights, -self._exponents[members])
        halfspace = Halfspace(normal, float(normal @ query))
        return Separation(query, Answer.CUT, halfspace, V, self._of_all_rows(used), fitted)

    def _without_cut(self, query: FloatArray, answer: Answer, fitted: float) -> Separation:
        nothing = np.zeros(len(self._y))
        return Separation(query, answer, None, np.zeros((query.size, 0)), self._of_all_rows(nothing), fitted)

    def _of_all_rows(self, values: FloatArray) -> FloatArray:
        """Return one value for each row of the table, zero for rows not in use."""
        everywhere = np.zeros(len(self._used))
        everywhere[self._used] = values
        return everywhere


def radius_of(X: ArrayLike, y: ArrayLike, *, link: Link = RELU) -> float:
    r"""Return the radius of a ball around 0 that should hold the truth: where a cutting plane may start.

    In radial-isotropic position, on unit rows u with labels :math:`y / |A x|`, the truth is :math:`\tilde w` with
    :math:`w^* = A^\top \tilde w`, and the squares of its products have the mean :math:`|\tilde w|^2 / k`. A right label
    that is decisive shows one of these products, so :math:`\sqrt k` times a high quantile of the labels' sizes bounds
    :math:`|\tilde w|` up to a factor, which a safety factor covers; wrong labels can only hide below the quantile or
    raise it. On a later level the products lack what earlier levels add to them, at most their radius times the
    length of the row there. The bound is no proof: the share of the right labels among the decisive ones is not known
    (few rows may be active). A truth that is missed is one outside the ball, so double the radius and start again.

    Parameters
    ----------
    X, y, link
        As for :func:`separation_oracle`.
    """
    rows = check_matrix(X)
    labels = check_vector(y, len(rows), "y")
    used = _possible(rows, labels, link, EXACT, None)
    rows, exponents = scaled(rows[used], axis=1)
    sizes = np.ldexp(np.abs(link.inverse(labels[used])), -exponents)
    decisive = link.decisive(labels[used])
    total = 0.0
    hidden = np.zeros(len(rows))  # what earlier levels may add to w.x
    for piece in decompose(rows):
        parts = rows[piece.members] @ piece.subspace
        products = (sizes + hidden)[piece.members] / np.linalg.norm(parts @ piece.matrix.T, axis=1)
        shown = products[decisive[piece.members]] if decisive[piece.members].any() else products
        k = piece.subspace.shape[1]
        radius = _SAFETY * np.sqrt(k) * np.linalg.norm(piece.matrix, 2) * np.quantile(shown, _QUANTILE)
        hidden += radius * np.linalg.norm(rows @ piece.subspace, axis=1)
        total = np.hypot(total, radius)
    return float(total) or 1.0  # labels that are all 0 have no scale


def _possible(X: FloatArray, y: FloatArray, link: Link, agreement: Agreement, weights: FloatArray | None) -> BoolArray:
    """Return the rows that can tell anything."""
    used = np.asarray(X.any(axis=1)) & ~link.impossible(y, agreement.label)
    if weights is not None:
        used &= weights > 0
    if not used.any():
        raise ValueError(
            f"y has no label that the link can produce, between {link.lower:g} and {link.upper:g}, on a row"
            " of X that is not zero"
        )
    return used
