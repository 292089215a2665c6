r"""A formula that is fixed, the rows that judge it, and what they say: marks, support, segments, and sharpness.

**Sharpness** is what tells an exact rule of a minority from noise. Labels that follow a formula up to noise have
residuals with a smooth density: a window next to the one in which rows agree holds about as many of them. An exact
rule has an edge: many rows in the window and hardly any next to it, however many labels are wrong and however these
scatter about the rule.

Let p be the rank, n the rows and q an upper limit of the share of the rows in such a window. If the n - p rows that
do not fix the formula fell into its window with probability at most q each, some formula would agree with k rows with
probability at most

.. math::
    \binom{n}{p} 2^p \; P\bigl(\mathrm{Bin}(n - p, q) \ge k - p\bigr),

since a set of rows that fits some formula fits one for which p of them lie at one of the two edges. The q is estimated
next to the formula that was found, so this is a test of sharpness and no certificate; no verdict rests on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, gammaln

from massart.certificate import Assumption, Geometry, Segment, SegmentScan, Support, geometry_of, measure_support
from massart.rows import (
    AGREES,
    LAST_PLACE,
    Agreement,
    BoolArray,
    FloatArray,
    Link,
    Mark,
    Marks,
    Sample,
    Verified,
    compare,
    speaks,
)

BESIDE = 3.0
"""The windows next to a rule end at this many half-widths: they are twice as wide as the one in which rows agree."""

EDGE = 0.25
"""At most this many rows next to a rule, for each one that follows it. A tangent of a curve has .7 and noise as wide as
rounding .6 to .9 (benchmarks/independent.py, "curve" and "noise")."""

MIDDLE = 0.6
"""Where columns are rounded, too, errors add up and lie in the middle half of their interval: more than this share of
them. A curve fills it evenly (benchmarks/independent.py, "curve")."""

NEARLY_ALL, ON_GRID = 0.9, 1e-6
"""Share of the labels that are multiples of a step, and by how much of it a multiple may be off in floats."""

CHANCE = 1e-3
"""The probability with which rows that scatter evenly may be taken for an exact rule."""

MOST_NUMBERS = 50_000
"""Numbers of X that are scanned where nothing is known of its columns: some rows stand for the others, so that a fit
takes hardly longer (`benchmarks/bench_fit.py`)."""

_SEED = 20_240  # of the choice of one row of a cluster


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula for one label column, fixed before it is judged."""

    coef: FloatArray
    agreement: Agreement
    link: Link

    def marks(self, rows: Sample) -> tuple[Verified, Marks]:
        """Return rows in memory next to the formula."""
        w = self.coef
        sums = rows.products(w), rows.magnitudes(w)
        found = compare(*sums, rows.y, rows.X.__getitem__, w, self.agreement, self.link)
        return found, Mark(self.coef, self.agreement, self.link).of(found, rows.y)


@dataclass(frozen=True, eq=False)
class Covariates:
    """All columns of a table by which its rows may be cut into segments, those that are not in the rule included.

    Attributes
    ----------
    scan : SegmentScan
        Of all rows of the table.
    drawn : (n,) boolean array or None
        Those that were drawn at random, if labels had a say in the choice of the others; None for all.
    contested : bool
        Whether rows crowd at a threshold of the rule that would follow it on the other side: its condition is wrong.
    """

    scan: SegmentScan
    drawn: BoolArray | None = None
    contested: bool = False

    def beside(self, numbers: Iterable[FloatArray]) -> Covariates:
        """Return them with more columns of numbers: what a rule compares with its thresholds."""
        more = list(numbers)
        return replace(self, scan=SegmentScan([*self.scan.ordered, *more], self.scan.levels)) if more else self


@dataclass(frozen=True, eq=False)
class Scanned:
    """Rows, of those that judge, that are scanned: by X alone, and such that they are wrong independently.

    Attributes
    ----------
    places : (m,) array of int
        Of these rows, among those that judge: one of each cluster, and one of the repetitions of a row.
    scan : SegmentScan
        Of these rows.
    contested : bool
        As of the covariates.
    """

    places: NDArray[np.intp]
    scan: SegmentScan
    contested: bool = False

    @classmethod
    def of(
        cls, rows: Sample, units: NDArray[np.integer] | None = None, covariates: Covariates | None = None
    ) -> Scanned:
        """Choose the rows: by the columns of a table, or by those of X where nothing else is known of it."""
        places = np.flatnonzero(rows.counts > 0)
        if covariates is not None and covariates.drawn is not None:
            places = places[covariates.drawn[rows.index[places]]]
        if units is not None:
            shuffled = np.random.default_rng(_SEED).permutation(places)
            places = shuffled[np.unique(units[shuffled], return_index=True)[1]]
        if covariates is not None:  # in the order of the table: its columns are sorted once for all rules
            places = places[np.argsort(rows.index[places])]
            index, scan = rows.index[places], covariates.scan
            return cls(places, scan if len(index) == scan.n_rows else scan.take(index), covariates.contested)
        most = max(MOST_NUMBERS // max(rows.X.shape[1], 1), 1)
        places = places[:: -(-len(places) // most)] if len(places) else places
        some = rows.X[places]
        return cls(places, SegmentScan([np.ascontiguousarray(some[:, j]) for j in range(some.shape[1])]))

    def worst(self, marks: Marks, rows: Sample) -> Segment | None:
        """Return the segment in which a rule breaks, if there is one; approximations do by a last place."""
        wrong = marks[self.places] & AGREES == 0
        return self.scan.worst(wrong, labels=rows.y[self.places])

    def is_even(self, marks: Marks) -> bool:
        """Return whether nothing shows that rows which break a rule depend on a column."""
        return self.scan.is_even(marks[self.places] & (AGREES | LAST_PLACE) == 0)


@dataclass(frozen=True, slots=True)
class CertificationRows:
    """The rows that judge, chosen before labels were looked at.

    Attributes
    ----------
    rows : Sample
        All rows of the table, or as many as X, their number and the confidence ask for; one label column.
    geometry : Geometry
        Of these rows.
    assumption : Assumption
    rng : numpy.random.Generator
        For bounds that hold with confidence.
    held_out : (n,) array of bool or None
        For a link that clips: rows whose labels no step towards the formula has seen, nor those of their units.
    units : (n,) array of int or None
        Rows of one unit are wrong together.
    seen : (m,) array of int or None
        Rows of the table, by number, whose labels helped to choose the columns: they cannot confirm.
    scanned : Scanned or None
        The rows in which segments are looked for that break a rule; None for all, by the columns of X.
    """

    rows: Sample
    geometry: Geometry
    assumption: Assumption
    rng: np.random.Generator
    held_out: BoolArray | None = None
    units: np.ndarray | None = None
    seen: np.ndarray | None = None
    scanned: Scanned | None = None

    @property
    def unseen(self) -> CertificationRows | None:
        """Those whose labels did not help to choose the columns; None if these are too few."""
        if self.seen is None:
            return self
        fresh = ~np.isin(self.rows.index, self.seen)
        if self.units is not None:  # a unit of which a row was seen is right or wrong for all to see
            fresh &= ~np.isin(self.units, self.units[~fresh])
        if np.count_nonzero(fresh) <= self.rows.X.shape[1]:
            return None
        rows, units = self.rows.take(fresh), None if self.units is None else self.units[fresh]
        held_out = None if self.held_out is None else self.held_out[fresh]
        geometry = geometry_of(rows.X, sample_weight=rows.weights, units=units)
        return replace(self, rows=rows, geometry=geometry, held_out=held_out, units=units, seen=None, scanned=None)

    @property
    def segments(self) -> Scanned:
        """The rows in which segments are looked for that break a rule."""
        return Scanned.of(self.rows, self.units) if self.scanned is None else self.scanned


def measure_support_of(
    formula: Formula, certification: CertificationRows, found: Verified, marks: Marks, *, tails: bool = True
) -> Support:
    """Return the support of the formula on the rows that speak for it or against it.

    For a link that clips these depend on the formula: the share of the evidence that agrees is still what it says, and
    shows where to look; the noise rate that it excludes is another matter.
    """
    rows = certification.rows
    agree = marks & AGREES > 0
    assumption = certification.assumption
    measured = partial(
        measure_support, bound=assumption.wrong_at_most, confidence=assumption.each, rng=certification.rng, tails=False
    )
    if formula.link.invertible:
        tails = tails and assumption.excludes
        return measured(certification.geometry, rows.X, agree, found.half_widths, tails=tails)
    met = speaks(marks)
    if not met.any():  # a zero row says nothing, either
        zero = np.zeros((1, rows.X.shape[1]))
        return measured(geometry_of(zero), zero, np.array([False]), np.zeros(1))
    part = rows.take(met)
    geometry = geometry_of(part.X, sample_weight=part.weights)
    return measured(geometry, part.X, agree[met], found.half_widths[met])


def beyond_mode(rows: Sample, found: Verified, link: Link) -> float:
    """Return the weight of rows that agree and tell a product, but for those with the most frequent label."""
    informative = link.decisive(rows.y, found.half_widths)
    if not informative.any():
        return 0.0
    counts = rows.counts[informative]
    return float(counts[found.agree[informative] & ~_most_frequent(rows.y[informative], counts)].sum())


def without_copies(rows: Sample) -> Sample:
    """Return one of the repetitions of each row; and one of equal rows, if most of these have one label.

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0], [2.0], [3.0], [3.0]]), np.array([5.0, 6.0, 6.0, 7.0, 7.0])
    >>> without_copies(Sample(X, y, None, np.arange(5))).y
    array([5., 6., 7.])
    >>> without_copies(Sample(X, np.array([5.0, 6.0, 8.0, 7.0, 7.0]), None, np.arange(5))).y
    array([5., 6., 8., 7., 7.])
    """
    first = np.unique(rows.index, return_index=True)[1]
    rows = rows.take(first[rows.counts[first] > 0])
    _, equal, times = np.unique(rows.X, axis=0, return_inverse=True, return_counts=True)
    pairs, some = np.unique(np.column_stack([equal.ravel(), rows.y]), axis=0, return_index=True)
    one_label = np.bincount(pairs[:, 0].astype(np.intp), minlength=len(times)) == 1
    repeated = times > 1
    return rows.take(np.sort(some)) if repeated.any() and one_label[repeated].mean() > 0.5 else rows


def stands_out(formula: Formula, rows: Sample, rank: int) -> bool:
    """Return whether far more rows agree with a formula than lie next to it, for any formula of this rank.

    Rows with the most frequent label do not count, and copies of a row count once.

    Examples
    --------
    >>> from massart.rows import Agreement, Level
    >>> from massart.rows.link import IDENTITY
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 100, (1000, 2))
    >>> y = X @ [2.0, 0.5] + np.where(rng.random(1000) < 0.7, 20 * rng.standard_normal(1000), 0)
    >>> cents = Agreement(Level.LABEL, 0.005, relative=1e-14, unit=0.01)
    >>> formula = Formula(np.array([2.0, 0.5]), cents, IDENTITY)
    >>> stands_out(formula, Sample(X, np.round(y, 2), None, np.arange(1000)), 2)
    True
    >>> noisy = np.round(X @ [2.0, 0.5] + 0.02 * rng.standard_normal(1000), 2)
    >>> stands_out(formula, Sample(X, noisy, None, np.arange(1000)), 2)
    False
    """
    found, _ = formula.marks(rows)
    return is_sharp(rows, found, formula.agreement, formula.link, rank)


def is_sharp(rows: Sample, found: Verified, agreement: Agreement, link: Link, rank: int) -> bool:
    """Return the same, given the rows next to the formula."""
    _, first = np.unique(rows.index, return_index=True)
    first = first[link.decisive(found.products)[first] & (rows.counts[first] > 0)]
    n = len(first)
    if n <= rank:
        return False
    off, agree = np.abs(found.residuals[first]), found.agree[first]
    # Labels on a grid lie no closer to a rule than it does; wrong ones may have more digits.
    step = _step(rows.y[first[agree]], agreement.unit or 0.0)
    widths = np.maximum(found.half_widths[first], step / 2)
    is_rounded = off <= (0.5 + ON_GRID) * (agreement.unit or 0.0)  # others agree exactly: it is rounding, and no noise
    beside = int(np.count_nonzero(~agree & ~is_rounded & (off <= BESIDE * widths)))
    k = int(np.count_nonzero(agree & ~_most_frequent(rows.y[first], np.ones(n))))
    if k <= rank or beside > EDGE * k:
        return False
    if agreement.inputs and np.count_nonzero(agree & (off <= widths / 2)) <= MIDDLE * np.count_nonzero(agree):
        return False
    q = float(betaincinv(beside + 1, n - beside, 1 - CHANCE / 2)) / 2 if beside < n else 1.0
    formulas = gammaln(n + 1) - gammaln(rank + 1) - gammaln(n - rank + 1) + rank * np.log(2)
    with np.errstate(divide="ignore"):
        tail = np.log(betainc(k - rank, n - k + 1, q))  # of a binomial variable: at least k - rank of n - rank
    return bool(formulas + tail <= np.log(CHANCE / 2))


def _step(labels: FloatArray, unit: float) -> float:
    """Return the largest step, of some multiples of a unit, on which nearly all labels lie: halves, quarters, 0.05."""
    for times in (1000, 500, 250, 200, 100, 50, 25, 20, 10, 5, 2) if unit and len(labels) else ():
        multiples = labels / (times * unit)
        if np.mean(np.abs(multiples - np.rint(multiples)) < ON_GRID) > NEARLY_ALL:
            return times * unit
    return unit


def _most_frequent(labels: FloatArray, counts: FloatArray) -> BoolArray:
    """Return the rows that have the most frequent label, if one is repeated."""
    where = np.unique(labels, return_inverse=True)[1].ravel()
    weights = np.bincount(where, counts)
    return np.asarray((where == weights.argmax()) & (weights.max() > counts.max()))
