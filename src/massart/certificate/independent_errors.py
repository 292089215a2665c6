r"""What is certain of a formula that most rows break, if errors do not depend on the columns.

**Declared.** Labels are :math:`y = x \cdot v + e`. Errors depend neither on the columns nor on each other: e is within
h of an E with one law F for all rows, independent given the columns (a right label of cents is off by its rounding,
which does depend on x). And no wrong amount is as frequent as right labels: no window of F holds more than the one at
0. A row agrees with w if :math:`|y - x \cdot w| \le h`. Let k of n rows, which span, agree with the given formula, in
p coefficients; :math:`u = w - v`.

**Theorem 1 (slopes).** Let no slab :math:`|x \cdot u - t| \le a` with :math:`\mathrm{sd}(x \cdot u) > a / \omega` hold
more than C n rows. The probability that any w with k agreeing rows has :math:`\mathrm{sd}(x \cdot u)` above the
resolution is at most

.. math::
    \mathrm{price} \cdot P\bigl(\mathrm{Bin}(n - p, C n / (n - p)) \ge k - p\bigr), \qquad k - p \ge C n + 1,

where for *vertices* the price is :math:`\binom{n}{p} 2^p`, a = 2 h and the resolution :math:`4 h / \omega`; and for
*bases* the price is :math:`n (n-1) \cdots (n-p+1) / (g \, k (k-1) \cdots (k-p+1))`, a = (2 + R) h and the resolution
:math:`(2 + R) h / \omega + R h`, if a share g of the ordered p-tuples of agreeing rows have a reach of at most R.

*Proof.* Fix p rows, and with them a formula w'. The others agree with it independently, and :math:`\sum_i P(|E_i - x_i
\cdot u'| \le a) = \int \#\{i : |x_i \cdot u' - t| \le a\} \, dF(t) \le C n`; among sums of independent trials with that
mean the tail is largest where all are equal (Hoeffding 1956). *Vertices*: the formulas that fit the same rows are a
polytope, and the p rows are at one of their two edges at a vertex w'; a union over vertices. Since w and w' agree on k
> C n rows, :math:`x \cdot (w - w')` is within 2h there, so its deviation is at most :math:`2 h / \omega`. *Bases*: the
formula through p rows of reach R is within R h of w on every row (:mod:`massart.certificate.span`), so that all k rows
fit it within (1 + R) h. There are :math:`g k (k-1) \cdots` such tuples, and Markov's inequality bounds how many of all
tuples have as many rows. R is large, and serves where h is what float arithmetic rounds; then the search for w costs
about :math:`p \log (n / k)` nats.

C is a property of the columns: it is refuted by our own coins (:mod:`massart.certificate.random_tuples`), at the
largest share at which the price still leaves delta. *Columns of few values* make heavy slabs. Then rows that are equal
in these are compared in pairs: a slab with N rows holds at least :math:`N'^2 / n' - \mathrm{loss}` of the n' pairs
(Jensen over cells), their slab is twice as wide, and the claim is about the *other* columns: the root mean square of
differences of :math:`x \cdot u` within cells is at most twice the resolution.

**Theorem 2 (the rest).** No window of F is above that at 0, so a fixed w fits a row with at most the probability that
its label is right. By the union of Theorem 1 that is C at least, or k rows would not agree with any formula. So of any
rows that X chose at least m are right, the lower limit of a binomial number, and these agree with v within a + h.
*Pairs*: where the slopes are confirmed, rivals are refuted among pairs of rows that are equal in the other columns, no
row in two of them. *Cells*: where the slopes are confirmed, rows that are equal in the other columns have residuals
that v shifts by one amount; in each large cell it is that of a window with m of them. *Rivals*: no formula far from the
given one has m rows (:mod:`massart.certificate.random_tuples`): in all columns, among the rows that are left by what
is known so far, ever closer. Where Theorem 1 says nothing rivals are refuted among all rows: that is dearer, but takes
no more than that right labels are the most probable ones in each row.

**The confidence** is shared equally among the events that may fail: for each of the widths :math:`\omega` the price,
the draw of partners and three in the refutation of slabs; the share g, the price and the limit m of Theorem 2, all of
its cells and of pairs, and two for each time that rivals are refuted. k, g and h depend on labels: the bound falls with
k, g is a power of two and h a step of a scale, with a price each (:class:`massart.certificate.mechanisms.Width`). Rows
that are equal in all columns are one, drawn at random: copies are no evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from massart.certificate.mechanisms import Width, log_price_of_vertices
from massart.certificate.random_tuples import farthest_rival, no_heavy_slab, random_subsets, whitening
from massart.certificate.span import coordinates, span_of
from massart.certificate.tails import most_wrong, smallest_share_inside
from massart.rows import BoolArray, FloatArray

FEW_VALUES = 12
"""A column of no more values is compared within cells."""

WIDTHS = (0.01, 0.003, 0.001, 1e-4)
"""Half-widths of slabs that are refuted, for each unit of their deviation: the first that holds is taken
(benchmarks/independent.py, "certificate")."""

REACH = 1e4
"""R: what a formula through p rows may be off elsewhere, in half-widths of float arithmetic."""

MOST_ROWS = 10_000
"""Rows that are looked at: a random part of a larger table."""

FEWEST_ROWS = 20
"""Distinct rows below which nothing is claimed."""

ROWS_OF_A_CELL = 8
"""Right labels that are expected of a cell at least, to say what its rows may be off."""

SHRINKING = 0.7
"""Another round has to bring the right formula nearer by this factor."""

_ROUNDS = 4  # in which rivals are refuted, ever closer
_EVENTS = 5 * len(WIDTHS) + 5 + 2 * (1 + 2 * _ROUNDS)
_TRIED, _SMALLEST_SHARE = 400, 2.0**-6  # tuples of agreeing rows whose reach is looked at, and the smallest g


@dataclass(frozen=True, slots=True)
class IndependentErrors:
    """What is certain of a formula if errors do not depend on the columns, nor on each other.

    Attributes
    ----------
    n_rows, n_agree : int
        Distinct rows that were looked at, and those that agree.
    share : float
        C: a formula with other slopes needs so large a share of the rows in one slab.
    slopes : tuple of int
        Columns whose coefficients are confirmed, whatever amounts labels are wrong by.
    deviation : float
        Of the sum of these terms, in units of the label: formulas that differ by less are not distinguished.
    rest : tuple of int
        Columns that are not confirmed; none if the whole formula is.
    within : float
        Where the whole formula is confirmed, what the right one may differ from it on any of these rows; else infinite.
    """

    n_rows: int
    n_agree: int
    share: float = 0.0
    slopes: tuple[int, ...] = ()
    deviation: float = math.inf
    rest: tuple[int, ...] = ()
    within: float = math.inf

    @property
    def confirmed(self) -> bool:
        """Whether the whole formula is confirmed, the constant and columns of few values included."""
        return self.within < math.inf


def certify_independent(
    X: FloatArray,
    residuals: FloatArray,
    agree: BoolArray,
    half: float,
    *,
    rounded: bool,
    rng: np.random.Generator,
    failure: float,
) -> IndependentErrors:
    """Return what is certain of a formula if errors do not depend on the columns.

    Parameters
    ----------
    X : (n, d) array
        With the constant column, if there is one; in an order that does not depend on labels but for equal rows.
    residuals : (n,) array
    agree : (n,) boolean array
        Rows that agree: no residual of these is above `half`.
    half : float
        h.
    rounded : bool
        Whether h is more than what float arithmetic rounds.
    rng : numpy.random.Generator
    failure : float
        Probability with which all that is returned may be false.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.uniform(0, 100, (2000, 2)).round(2), rng.integers(0, 2, 2000), np.ones(2000)])
    >>> e = np.where(rng.random(2000) < 0.6, 20 * rng.standard_normal(2000), 0.0)
    >>> found = certify_independent(X, e, e == 0, 1e-12, rounded=False, rng=rng, failure=1e-3)
    >>> found.slopes, found.deviation < 1e-5, found.confirmed, found.within < 1e-5
    ((0, 1), True, True, True)
    """
    some = _distinct_rows(X, rng)
    X, residuals, agree = X[some], residuals[some], agree[some]
    n, k = len(X), int(np.count_nonzero(agree))
    columns = span_of(X).columns
    none = IndependentErrors(n, k, rest=tuple(columns.tolist()))
    X, p = X[:, columns], len(columns)
    if not FEWEST_ROWS <= n or k <= p + 1 or span_of(X[agree]).rank < p:
        return none
    each = failure / _EVENTS
    width = Width.of(half, float(np.abs(X).max()))
    h = width.half
    price = log_price_of_vertices(n, p) if rounded else _log_price_of_bases(X, agree, rng, each)
    C = largest_share(n, k, p, price + math.log(width.hypotheses), each)
    if C <= 0:
        return none
    a = 2 * h if rounded else (2 + REACH) * h
    near, m = np.full(n, a + h), fewest_right(n, C, each)
    many = np.array([len(np.unique(column)) > FEW_VALUES for column in X.T])
    slopes = _slopes(X, many, C, lambda width: 4 * h / width if rounded else a / width + REACH * h, rng, each)
    names = () if slopes is None else tuple(columns[many].tolist())
    if slopes is None:
        deviation, within = math.inf, farthest_rival(X, residuals, near, np.ones(n, dtype=bool), m, rng, each)
    else:
        deviation, reach = slopes
        if (~many).any():
            reach = _closer_slopes(X, residuals, many, C, near, reach, rng, each)
        within = _rest(X[:, ~many], residuals, C, near + reach, each) + float(reach.max())
    for _ in range(_ROUNDS if within < math.inf else 0):
        closer = farthest_rival(X, residuals, near, np.abs(residuals) <= near + within, m, rng, each)
        if not closer < SHRINKING * within:
            break
        within = closer
    rest = tuple(j for j in columns.tolist() if j not in names) if within == math.inf else ()
    return IndependentErrors(n, k, C, names, deviation, rest, within)


def largest_share(n: int, k: int, p: int, log_price: float, failure: float) -> float:
    """Return the largest C at which k agreeing rows are still too many for a wrong formula; 0 if there is none.

    Examples
    --------
    >>> round(largest_share(1000, 350, 5, 10.0, 1e-4), 2)
    0.26
    """
    if log_price == math.inf:
        return 0.0
    from scipy.stats import binom  # slow to import

    low, high = 0.0, (k - p - 1) / n
    for _ in range(50):
        C = (low + high) / 2
        tail = binom.logsf(k - p - 1, n - p, min(C * n / (n - p), 1.0))
        low, high = (C, high) if log_price + tail <= math.log(failure) else (low, C)
    return low


def _distinct_rows(X: FloatArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return one row at random of those that are equal, and not too many."""
    order = rng.permutation(len(X))
    _, first = np.unique(X[order] + 0.0, axis=0, return_index=True)
    return np.asarray(np.sort(order[np.sort(first)[:MOST_ROWS]]))


def _log_price_of_bases(X: FloatArray, agree: BoolArray, rng: np.random.Generator, failure: float) -> float:
    """Return the price of bases: that of g = 2^-s is shared out as 2^-s; infinite where g is too small."""
    n, p = X.shape
    frame = coordinates(X)
    if frame is None:
        return math.inf
    rows = np.flatnonzero(agree)
    drawn = rows[random_subsets(len(rows), p, _TRIED, rng)]
    good = int(np.count_nonzero(frame.reach(frame.Y[drawn]) <= REACH))
    share = smallest_share_inside(good, _TRIED, failure)
    if share < _SMALLEST_SHARE:
        return math.inf
    k, s = len(rows), math.ceil(-math.log2(share))
    return float(gammaln(n + 1) - gammaln(n - p + 1) - gammaln(k + 1) + gammaln(k - p + 1) + 2 * s * math.log(2))


def _slopes(
    X: FloatArray,
    many: BoolArray,
    C: float,
    resolution: Callable[[float], float],
    rng: np.random.Generator,
    failure: float,
) -> tuple[float, FloatArray] | None:
    """Return what the slopes of columns of many values may be off, in deviation and on each row; None if unknown."""
    if not many.any():
        return None
    few, slopes = X[:, ~many], X[:, many]
    centred = slopes - slopes.mean(axis=0)
    varying = few[:, (few != few[:1]).any(axis=0)]
    pairs = varying.shape[1] > 0
    if pairs:
        partner, share = partners(varying, C, rng, failure)
        i = np.flatnonzero(partner >= 0)
        metric = centred[i] - centred[partner[i]]
        Z = metric
    else:
        metric, share = centred, C
        Z = np.column_stack([centred, np.ones(len(X))])
    if share <= 0 or len(Z) < FEWEST_ROWS:
        return None
    heavy = math.floor(share * len(Z)) + 1  # a slab with more than a share C of the rows holds at least as many
    width = next((width for width in WIDTHS if no_heavy_slab(Z, heavy, width, rng, failure)), None)
    if width is None:
        return None
    deviation, basis = (2 if pairs else 1) * resolution(width), whitening(metric)
    if basis is None:
        return None
    reach = np.linalg.norm(centred @ basis, axis=1)  # of a row, for one unit of the RMS
    if not _has_constant(few):
        reach = reach + np.linalg.norm(slopes.mean(axis=0) @ basis)
    return deviation, deviation * reach


def _closer_slopes(
    X: FloatArray,
    residuals: FloatArray,
    many: BoolArray,
    C: float,
    near: FloatArray,
    reach: FloatArray,
    rng: np.random.Generator,
    failure: float,
) -> FloatArray:
    """Return what the slopes may be off on each row, once rivals are refuted among pairs of equal cells.

    No row is in two pairs: both of a pair are right with probability C^2 at least, independently of other pairs.
    """
    few, order = X[:, ~many], rng.permutation(len(X))
    cell = np.unique(few[order], axis=0, return_inverse=True)[1].ravel()
    order, cell = order[np.argsort(cell, kind="stable")], np.sort(cell)
    place = np.arange(len(X)) - np.searchsorted(cell, cell)  # within its cell
    first = np.flatnonzero((cell[1:] == cell[:-1]) & (place[:-1] % 2 == 0))
    i, j = order[first], order[first + 1]
    rows = X[:, many] - (X[:, many].mean(axis=0) if _has_constant(few) else 0.0)
    pairs, off, tau = rows[i] - rows[j], residuals[i] - residuals[j], near[i] + near[j]
    m = fewest_right(len(i), C**2, failure)
    for _ in range(_ROUNDS):
        inside = np.abs(off) <= tau + reach[i] + reach[j]
        closer = farthest_rival(pairs, off, tau, inside, m, rng, failure, rows)
        if not closer < SHRINKING * float(reach.max()):
            break
        reach = np.minimum(reach, closer)
    return reach


def _has_constant(few: FloatArray) -> bool:
    """Return whether a column is constant: it takes up what the means of others differ by."""
    return bool(((few == few[:1]) & (few[:1] != 0)).all(axis=0).any())


def partners(few: FloatArray, C: float, rng: np.random.Generator, failure: float) -> tuple[NDArray[np.intp], float]:
    """Return for each row another one that is equal in some columns, -1 without one, and the share of heavy pairs.

    A slab with a share C of the rows holds at least this share of the pairs, but for a probability of `failure`.
    """
    n = len(few)
    _, cell = np.unique(few, axis=0, return_inverse=True)
    cell = cell.ravel()
    order = np.argsort(cell, kind="stable")
    size = np.bincount(cell)
    first = np.cumsum(size) - size
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n) - first[cell[order]]
    own = size[cell]
    paired = own > 1
    step = 1 + (rng.random(n) * (own - 1)).astype(np.intp)
    partner = np.where(paired, order[first[cell] + (place + step) % own], -1)
    n_pairs = int(np.count_nonzero(paired))
    inside = C * n - (n - n_pairs)
    if inside <= 0:
        return partner, 0.0
    # N_c (N_c - 1) / (n_c - 1) is N_c^2 / n_c less n_c / (4 (n_c - 1)) at most; and one partner a row was drawn.
    mean = inside**2 / n_pairs - float((0.25 / (own[paired] - 1)).sum())
    drawn = mean - math.sqrt(2 * max(mean, 0.0) * math.log(1 / failure))
    return partner, drawn / n_pairs


def _rest(few: FloatArray, residuals: FloatArray, C: float, near: FloatArray, failure: float) -> float:
    """Return what columns of few values and the constant may be off on any row; infinite if that is not known.

    Parameters
    ----------
    few : (n, q) array
    residuals : (n,) array
    C : float
        Right labels are so frequent, whatever the columns say.
    near : (n,) array
        How far the residual of a right label may be from what these columns are off.
    failure : float
    """
    if not few.shape[1]:
        return 0.0
    _, first, cell, size = np.unique(few, axis=0, return_index=True, return_inverse=True, return_counts=True)
    large = np.flatnonzero(size * C >= ROWS_OF_A_CELL)
    known, off = [], []
    for place in large:
        there = cell.ravel() == place
        m = fewest_right(int(size[place]), C, failure / len(large))
        found = farthest_window(residuals[there], float(near[there].max()), m)
        if found < math.inf:
            known.append(first[place])
            off.append(found)
    if not known or span_of(few[known]).rank < span_of(few).rank:
        return math.inf
    coordinates_of = few @ np.linalg.pinv(few[known])
    return float((np.abs(coordinates_of) @ np.array(off)).max())


def fewest_right(n: int, share: float, failure: float) -> int:
    """Return a lower limit of the number of right labels among n, if each one is right with this probability."""
    return n - most_wrong(n, 1 - share, failure)


def farthest_window(values: FloatArray, half: float, m: int) -> float:
    """Return how far from 0 a window of this half-width may be that holds m of the values.

    Examples
    --------
    >>> farthest_window(np.array([0.0, 0.1, 0.2, 5.0, 5.1, 9.0]), 0.5, 3)
    0.5
    """
    if m < 2:
        return math.inf
    ordered = np.sort(values)
    low, high = ordered[m - 1 :] - half, ordered[: len(ordered) - m + 1] + half
    there = low <= high
    return float(np.maximum(np.abs(low), np.abs(high))[there].max(initial=0.0))
