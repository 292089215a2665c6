r"""Segments of a table in which a rule breaks: all ranges and tails of every column, levels, pairs of levels.

Massart's assumption is that each label is wrong with probability below one half *whatever x is*. A segment of the
table, by X, in which another rule holds violates it, however few labels are wrong in all.

**Theorem.** Sort the rows by a column; rows of equal values are one step. Given X, let rows be wrong independently,
each with probability at most :math:`p_0`. For :math:`p_1 > p_0` a wrong row scores :math:`\log(p_1 / p_0)` and a right
one :math:`\log((1 - p_1) / (1 - p_0))`. Then

.. math::
    \Pr[\text{some range scores} \ge s] \le m \, e^{-s},
    \qquad \Pr[\text{some tail at one end scores} \ge s] \le e^{-s},

where m is the number of different values.

*Proof.* Begin at a fixed first step. The expectation of exp(score) of the next row, given those before, is at most
:math:`p_0 (p_1 / p_0) + (1 - p_0) (1 - p_1) / (1 - p_0) = 1`, since it grows with the probability of a wrong row. So
exp(score) is a nonnegative supermartingale that begins at 1, and by Ville's inequality it ever reaches
:math:`e^s` with probability at most :math:`e^{-s}`: a bound for all last steps at once. The union over the first steps
gives m; a tail has one first step. ∎

The best of all :math:`n^2 / 2` ranges is found in one pass, as the largest :math:`S_j - \min_{i \le j} S_i` of the
cumulative scores S. Ranges within a level are the same after sorting by (level, value). Levels and pairs of levels have
a binomial tail each, and a union.

**What is tested.** :math:`p_0 = 1/2` refutes Massart's assumption; :math:`p_0` = upper confidence limit of the share of
wrong rows refutes that wrong rows do not depend on the columns. The limit may come from the same labels: a range that
scores above 0 has a larger share than :math:`p_0`, and there its score falls with :math:`p_0`; so the event that the
limit is above the true rate and a range is accused lies inside the event that it is accused at the true rate.
A tenth of delta is for the limit, and .45 for each of the two tests. Within a test the families of segments (ranges;
levels; pairs of levels; levels with ranges) share it, and so do the columns of a family. All of these, and the five
:math:`p_1`, are fixed by X.

**What it says.** "Wrong" is "breaks this rule": the guarantee is for the event that the rule is the true one. With
:math:`p_0 = 1/2` the score itself says that some label *of the segment* is wrong with a probability above one half.
With the limit nothing is said about the rate there, only that wrong rows depend on the columns. Where more than half of
the rows are wrong, :math:`p_0 = 1/2` says nothing of a segment, and the limit takes its place.

The scan can only withdraw a claim, never make one: PROVEN and CONFIRMED spend nothing on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, log_ndtr, rel_entr

from massart.certificate.assumption import CONFIDENCE
from massart.certificate.tails import largest_share_outside
from massart.rows import BoolArray, FloatArray

MOSTLY = 1e-3
"""How improbable the wrong rows of an uneven segment must be at one half each, before most of it is called wrong. These
labels chose the segment, which is not accounted for, so nothing is claimed of it. At 1e-2 three in a hundred tables
were accused of which every label is wrong with probability at most one half (`benchmarks/segments.py`, "uneven")."""

MOST_LEVELS = 64
"""Levels of a column of which the ranges of other columns are scanned, and values up to which numbers repeat by nature:
rows that are equal in a table without a more varied column are no copies of each other."""

MOST_CROSSED = 4_000_000
"""Rows times pairs of a level column and an ordered one, up to which ranges within levels are scanned."""

ALTERNATIVES = (0.35, 0.6, 0.8, 0.95, 0.995)
"""The values of p1: a segment of any share above one half is within a few rows of its best."""

_SMALL = 1e-290  # smaller tails lose their digits


class Breach(Enum):
    """What a segment shows, the most first; the value says it in words."""

    MASSART = "some label there breaks the rule with a probability above one half"
    MOSTLY = "wrong rows depend on the columns, and most rows there are wrong"
    UNEVEN = "wrong rows depend on the columns"


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows in a range of an ordered column, of one level of other columns, or both.

    Attributes
    ----------
    breach : Breach
    n_rows, n_wrong : int
        Rows of the segment that were scanned, and the wrong ones among them.
    n_others, n_wrong_others : int
        The same of the other rows.
    column : int or None
        The ordered column.
    low, high : float
        Its range, both ends included; infinite where the range is a tail.
    levels : tuple of pairs (int, int)
        Columns of levels, and the code in each.
    log_p : float
        Logarithm of a bound on the probability of a segment as bad.
    """

    breach: Breach
    n_rows: int = 0
    n_wrong: int = 0
    n_others: int = 0
    n_wrong_others: int = 0
    column: int | None = None
    low: float = -math.inf
    high: float = math.inf
    levels: tuple[tuple[int, int], ...] = ()
    log_p: float = 0.0

    @property
    def is_accused(self) -> bool:
        """Whether another rule may hold there: most of its rows break this one, and not by chance."""
        return self.breach is not Breach.UNEVEN

    def members(self, ordered: Sequence[FloatArray], levels: Sequence[NDArray[np.integer]]) -> BoolArray:
        """Return which rows belong to it, given all columns."""
        n = len(ordered[0]) if ordered else len(levels[0])
        found = np.ones(n, dtype=bool)
        if self.column is not None:
            found &= (ordered[self.column] >= self.low) & (ordered[self.column] <= self.high)
        for column, code in self.levels:
            found &= levels[column] == code
        return found


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A segment with the logarithm of its bound: a range from one place of an order to another, or levels."""

    log_p: float
    first: int = 0
    last: int = 0
    column: int | None = None
    level: int | None = None  # the column of levels within which it is a range
    levels: tuple[tuple[int, int], ...] = ()


_NOTHING = _Candidate(math.inf)


@dataclass(frozen=True, eq=False)
class _Sorted:
    """The rows that have a value of a column, in its order; within levels, if there are groups."""

    order: NDArray[np.intp]
    edges: NDArray[np.intp]  # where each step begins, and the end
    groups: NDArray[np.intp] | None = None  # (k,), of each step the level that it is in, which only grows

    @classmethod
    def of(cls, values: FloatArray) -> _Sorted:
        """Sort a column: by X alone."""
        there = np.flatnonzero(~np.isnan(values))
        order = there[np.argsort(values[there])]
        changes = np.flatnonzero(values[order[1:]] != values[order[:-1]]) + 1
        return cls(order, np.concatenate([[0], changes, [len(order)]]))

    def within(self, codes: NDArray[np.integer]) -> _Sorted:
        """Return the same sorted by level first."""
        level = codes[self.order]
        again = np.argsort(level.astype(np.int16), kind="stable")  # of 16 bits: a radix sort
        level, step = level[again], np.repeat(np.arange(self.n_steps), np.diff(self.edges))[again]
        changes = np.flatnonzero((level[1:] != level[:-1]) | (step[1:] != step[:-1])) + 1
        edges = np.concatenate([[0], changes, [len(level)]])
        return _Sorted(self.order[again], edges, level[edges[:-1]].astype(np.intp))

    @property
    def n_steps(self) -> int:
        """Number of different values."""
        return len(self.edges) - 1

    def wrong_steps(self, wrong: BoolArray) -> NDArray[np.intp]:
        """Return the number of wrong rows of each step."""
        return np.add.reduceat(wrong[self.order], self.edges[:-1], dtype=np.intp)

    def best(self, wrong: BoolArray, p0: float) -> _Candidate:
        """Return the best range; half of delta is for tails, which are those of the column, not of its levels."""
        off, tails = self.wrong_steps(wrong), self.groups is None
        # A range begins and ends with a step that has wrong rows: rows and wrong rows before each, and in each.
        places = np.flatnonzero(off)
        if not len(places):
            return _NOTHING
        before, wrong_before = self.edges[places].astype(np.float64), (np.cumsum(off) - off)[places].astype(np.float64)
        size, off = np.diff(self.edges)[places], off[places]
        n, k, price = len(self.order), int(off.sum()), math.log((1 + tails) * len(ALTERNATIVES))
        one, (S, T, least) = price + math.log(self.n_steps), np.empty((3, len(places)))
        best = (math.inf, 0, 0)
        for p1 in (p1 for p1 in ALTERNATIVES if p1 > p0):
            right = math.log((1 - p1) / (1 - p0))
            more = math.log(p1 / p0) - right
            np.multiply(before, right, out=S)
            np.multiply(wrong_before, more, out=T)
            S += T
            np.add(S, right * size + more * off, out=T)
            if self.groups is not None:  # no range reaches into another level: every level begins below all before
                S -= (1 + more * n) * self.groups[places]
                T -= (1 + more * n) * self.groups[places]
            np.minimum.accumulate(S, out=least)
            np.subtract(T, least, out=least)
            last = int(np.argmax(least))
            if one - least[last] < best[0]:
                best = (one - float(least[last]), int(np.argmin(S[: last + 1])), last)
            if tails:
                last, first = int(np.argmax(T)), int(np.argmin(S))
                from_first = right * n + more * k - float(S[first])
                best = min(best, (price + math.log(2) - float(T[last]), -1, last))
                best = min(best, (price + math.log(2) - from_first, first, len(places)))
        log_p, first, last = best
        begin = 0 if first < 0 else int(before[first])
        end = n if last == len(places) else int(before[last] + size[last])
        return _Candidate(log_p, begin, end - 1)


@dataclass(frozen=True, eq=False)
class SegmentScan:
    """The columns of a table, by which its rows are cut into segments. Labels play no part in what is scanned.

    Attributes
    ----------
    ordered : sequence of (n,) arrays
        Columns of numbers, or of codes with an order. A row without a value (NaN) is in no range.
    levels : sequence of (n,) arrays of int
        Columns of codes from 0.
    """

    ordered: Sequence[FloatArray]
    levels: Sequence[NDArray[np.integer]] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        lengths = {*map(len, self.ordered), *map(len, self.levels)}
        return max(lengths, default=0)

    def take(self, rows: NDArray[np.intp]) -> SegmentScan:
        """Return some rows of it, chosen by X."""
        return SegmentScan([values[rows] for values in self.ordered], [codes[rows] for codes in self.levels])

    def worst(
        self, wrong: BoolArray, confidence: float = CONFIDENCE, *, labels: FloatArray | None = None
    ) -> Segment | None:
        """Return the segment in which wrong rows crowd most surely; None where they lie evenly, as far as is known.

        With `labels`, wrong rows that are equal in every column and in their label count once: copies of a row are not
        wrong independently, and a line that was read thirty times is one error. To count fewer wrong rows lowers all
        scores, so that the theorem holds all the more. Where no column has many values, rows are equal by nature, and
        all count.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> kg, zone = rng.gamma(2.0, 5.0, 3_000), rng.integers(0, 6, 3_000)
        >>> wrong = rng.random(3_000) < 0.2
        >>> scan = SegmentScan([kg], [zone])
        >>> scan.worst(wrong) is None
        True
        >>> found = scan.worst(wrong | (kg > 31.5))
        >>> found.breach.name, found.column, round(found.low, 1), found.high, found.n_wrong == found.n_rows
        ('MASSART', 0, 31.5, inf, True)
        """
        every, wrong = wrong, wrong if labels is None else self._without_copies(wrong, labels)
        n, k = len(wrong), int(np.count_nonzero(wrong))
        if not 0 < k < n:
            return None
        delta = 1 - confidence
        limit = largest_share_outside(k, n, delta / 10)
        share = math.log(0.9 * delta / (2 if limit < 0.5 else 1))
        best = self._best(wrong, limit)
        if best.log_p > share:
            return None  # nor is one half refuted anywhere: a share above it scores less there
        massart = self._best(wrong, 0.5) if limit < 0.5 else _NOTHING
        if massart.log_p <= share:
            return self._segment(massart, Breach.MASSART, every)
        uneven = self._segment(best, Breach.UNEVEN, every)
        is_most = bdtrc(uneven.n_wrong - 1, uneven.n_rows, 0.5) <= MOSTLY
        return replace(uneven, breach=Breach.MOSTLY) if is_most else uneven

    def is_even(self, wrong: BoolArray, confidence: float = CONFIDENCE) -> bool:
        r"""Return whether nothing shows that wrong rows depend on a column: no segment, and no trend.

        If they do not depend on any, the answer is False with a probability of about 1 - `confidence` at most; half of
        that is for segments, and half for the ranks of the wrong rows along each column (Wilcoxon 1945). The wrong rows
        are a sample without replacement then: k of n midranks, as a share of all rows and of variance :math:`s^2`, have
        a mean of variance :math:`s^2 (n - k) / (k (n - 1))`, and are about normal.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(0, 1, 3_000)
        >>> scan = SegmentScan([x])
        >>> scan.is_even(rng.random(3_000) < 0.3), scan.is_even(rng.random(3_000) < 0.1 + 0.3 * x)
        (True, False)
        """
        half = (1 - confidence) / 2
        return self.worst(wrong, 1 - half) is None and self._log_p_of_trend(wrong) > math.log(half)

    def fewest(self, n_wrong: int) -> int:
        """Return how many rows of a range are found surely if all of them are wrong, of `n_wrong` wrong rows in all.

        Examples
        --------
        >>> scan = SegmentScan([np.arange(3_000.0)])
        >>> scan.fewest(150), scan.fewest(600)
        (7, 13)
        """
        n, delta = self.n_rows, 1 - CONFIDENCE
        p0 = largest_share_outside(n_wrong, n, delta / 10)
        rates = 2 if p0 < 0.5 else 1
        steps = max((self._ordered[j].n_steps for j in self._families[0]), default=1)
        price = self._prices[0] + math.log(2 * len(ALTERNATIVES) * steps) - math.log(0.9 * delta / rates)
        gains = [math.log(p1 / p0) for p1 in ALTERNATIVES if p1 > p0]
        return min(math.ceil(price / max(gains)), n) if gains else n

    def _without_copies(self, wrong: BoolArray, labels: FloatArray) -> BoolArray:
        """Return the wrong rows, and of those that are equal in every column and in their label one."""
        if not any(column.n_steps > MOST_LEVELS for column in self._ordered):
            return wrong
        at = np.flatnonzero(wrong)
        rows = np.stack([column[at] + 0.0 for column in (labels, *self.ordered, *self.levels)], axis=1)  # -0.0 is 0.0
        first = np.unique(rows.view(f"V{rows.strides[0]}"), return_index=True)[1]  # compared bit by bit
        if len(first) == len(at):
            return wrong
        single = np.zeros_like(wrong)
        single[at[first]] = True
        return single

    @cached_property
    def _ordered(self) -> tuple[_Sorted, ...]:
        return tuple(_Sorted.of(values) for values in self.ordered)

    @cached_property
    def _n_levels(self) -> tuple[int, ...]:
        return tuple(int(codes.max(initial=-1)) + 1 for codes in self.levels)

    @cached_property
    def _families(self) -> tuple[list[int], list[int], list[tuple[int, int]], list[tuple[int, int]]]:
        """Columns of ranges, columns of levels, pairs of levels, and levels with ranges: chosen by X."""
        ranges = [j for j, column in enumerate(self._ordered) if column.n_steps > 1]
        levels = [j for j, n in enumerate(self._n_levels) if n > 1]
        pairs = [
            (i, j) for i in levels for j in levels if i < j and self._n_levels[i] * self._n_levels[j] <= self.n_rows
        ]
        crossed = [(i, j) for i in levels if self._n_levels[i] <= MOST_LEVELS for j in ranges]
        return ranges, levels, pairs, crossed if len(crossed) * self.n_rows <= MOST_CROSSED else []

    @cached_property
    def _prices(self) -> list[float]:
        """For each family the logarithm of how many ways share delta: its columns, and the families.

        Ranges are what is asked for most: they have two parts of delta, and each other family that there is one.
        """
        sizes = [len(family) for family in self._families]
        parts = [weight if size else 0 for weight, size in zip((2, 1, 1, 1), sizes, strict=True)]
        return [math.log(sum(parts) * size / part) if part else 0.0 for size, part in zip(sizes, parts, strict=True)]

    def _best(self, wrong: BoolArray, p0: float) -> _Candidate:
        """Return the segment with the smallest bound."""
        return min(self._candidates(wrong, p0), key=lambda found: found.log_p, default=_NOTHING)

    def _candidates(self, wrong: BoolArray, p0: float) -> Iterator[_Candidate]:
        """Yield the best segment of each column or pair of columns, at its price."""
        ranges, levels, pairs, crossed = self._families
        prices = self._prices
        for j in ranges:
            found = self._ordered[j].best(wrong, p0)
            yield replace(found, log_p=found.log_p + prices[0], column=j)
        for j in levels:
            found, code = _best_level(self.levels[j], self._n_levels[j], wrong, p0)
            yield replace(found, log_p=found.log_p + prices[1], levels=((j, code),))
        for i, j in pairs:
            n = self._n_levels[j]
            codes = self.levels[i].astype(np.intp) * n + self.levels[j]
            found, code = _best_level(codes, self._n_levels[i] * n, wrong, p0)
            yield replace(found, log_p=found.log_p + prices[2], levels=((i, code // n), (j, code % n)))
        for i, j in crossed:
            found = self._ordered[j].within(self.levels[i]).best(wrong, p0)
            yield replace(found, log_p=found.log_p + prices[3], column=j, level=i)

    def _segment(self, found: _Candidate, breach: Breach, wrong: BoolArray) -> Segment:
        low, high, levels = -math.inf, math.inf, found.levels
        if found.column is not None:
            column, values = self._ordered[found.column], self.ordered[found.column]
            some = column.order
            if found.level is not None:
                codes = self.levels[found.level]
                column = column.within(codes)
                levels = ((found.level, int(codes[column.order[found.first]])),)
                some = some[codes[some] == levels[0][1]]
            first, last = (float(values[column.order[place]]) for place in (found.first, found.last))
            # A range that begins or ends with the column is a tail, whatever values other rows may have.
            low = first if first > values[some[0]] or first == last else low
            high = last if last < values[some[-1]] or first == last else high
        segment = Segment(breach, column=found.column, low=low, high=high, levels=levels, log_p=found.log_p)
        there = segment.members(self.ordered, self.levels)
        n, k = (int(np.count_nonzero(rows)) for rows in (there, there & wrong))
        n_others, k_others = len(there) - n, int(np.count_nonzero(wrong)) - k
        return replace(segment, n_rows=n, n_wrong=k, n_others=n_others, n_wrong_others=k_others)

    def _log_p_of_trend(self, wrong: BoolArray) -> float:
        columns = [column for column in self._ordered if column.n_steps > 1]
        least = 0.0
        for column in columns:
            n, steps = len(column.order), column.edges
            off = column.wrong_steps(wrong)
            k = int(off.sum())
            if not 0 < k < n:
                continue
            away = (steps[1:] + steps[:-1]) / (2.0 * n) - 0.5
            variance = float(np.diff(steps) @ away**2) / n * (n - k) / (k * (n - 1))
            least = min(least, float(log_ndtr(-abs(float(off @ away)) / k / math.sqrt(variance))))
        return least + math.log(2 * max(len(columns), 1))


def _best_level(codes: NDArray[np.integer], n_levels: int, wrong: BoolArray, p0: float) -> tuple[_Candidate, int]:
    """Return the level with the smallest binomial tail, at the price of all levels."""
    rows = np.bincount(codes, minlength=n_levels)
    off = np.bincount(codes[wrong], minlength=n_levels)
    some = np.flatnonzero(off > p0 * rows)
    if not len(some):
        return _NOTHING, 0
    log_p = _log_tail(off[some], rows[some], p0)
    best = int(np.argmin(log_p))
    return _Candidate(math.log(np.count_nonzero(rows)) + float(log_p[best])), int(some[best])


def _log_tail(k: NDArray[np.intp], n: NDArray[np.intp], p: float) -> FloatArray:
    """Return log Pr[Bin(n, p) >= k] for k > p n; where that underflows, Chernoff's bound."""
    tail, share = bdtrc(k - 1, n, p), k / n
    chernoff = n * (np.log(p / share) * share - rel_entr(1 - share, 1 - p))
    log_p: FloatArray = np.where(tail > _SMALL, np.log(np.maximum(tail, _SMALL)), np.minimum(chernoff, np.log(_SMALL)))
    return log_p
