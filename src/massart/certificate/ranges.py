"""The best range of a column that was sorted: the largest difference of cumulative scores, in one pass.

:mod:`massart.certificate.segments` has the theorem, and what it is for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray

ALTERNATIVES = (0.35, 0.6, 0.8, 0.95, 0.995)
"""The values of p1: a segment of any share above one half is within a few rows of its best."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A segment with the logarithm of its bound: a range from one place of an order to another, or levels."""

    log_p: float
    first: int = 0
    last: int = 0
    column: int | None = None
    level: int | None = None  # the column of levels within which it is a range
    levels: tuple[tuple[int, int], ...] = ()

    def priced(
        self,
        price: float,
        *,
        column: int | None = None,
        level: int | None = None,
        levels: tuple[tuple[int, int], ...] = (),
    ) -> Candidate:
        """Return it with where it is, and with its share of delta."""
        return Candidate(self.log_p + price, self.first, self.last, column, level, levels)


NOTHING = Candidate(math.inf)
"""No segment."""


@dataclass(frozen=True, eq=False)
class Sorted:
    """The rows that have a value of a column, in its order; within levels, if there are groups."""

    order: NDArray[np.intp]
    edges: NDArray[np.intp] | None  # where a step begins, and the end; None where all values differ
    groups: NDArray[np.intp] | None = None  # (k,), of each step the level that it is in, which only grows

    @classmethod
    def of(cls, values: FloatArray) -> Sorted:
        """Sort a column: by X alone."""
        there = None if not np.isnan(values).any() else np.flatnonzero(~np.isnan(values))
        order = np.argsort(values if there is None else values[there])
        order = order if there is None else there[order]
        sorted_values = values[order]
        changes = sorted_values[1:] != sorted_values[:-1]
        if changes.all():
            return cls(order, None)
        return cls(order, np.concatenate([[0], np.flatnonzero(changes) + 1, [len(order)]]))

    def within(self, codes: NDArray[np.integer]) -> Sorted:
        """Return the same sorted by level first."""
        level = codes[self.order]
        again = np.argsort(level.astype(np.int16), kind="stable")  # of 16 bits: a radix sort
        steps = np.arange(len(level)) if self.edges is None else np.repeat(np.arange(self.n_steps), np.diff(self.edges))
        level, step = level[again], steps[again]
        changes = np.flatnonzero((level[1:] != level[:-1]) | (step[1:] != step[:-1])) + 1
        edges = np.concatenate([[0], changes, [len(level)]])
        return Sorted(self.order[again], edges, level[edges[:-1]].astype(np.intp))

    @property
    def n_steps(self) -> int:
        """Number of different values."""
        return len(self.order) if self.edges is None else len(self.edges) - 1

    @property
    def steps(self) -> NDArray[np.intp]:
        """Where each step begins, and the end."""
        return np.arange(len(self.order) + 1) if self.edges is None else self.edges

    def wrong_steps(self, wrong: BoolArray) -> NDArray[np.intp]:
        """Return the number of wrong rows of each step."""
        there = wrong[self.order]
        return there.astype(np.intp) if self.edges is None else np.add.reduceat(there, self.edges[:-1], dtype=np.intp)

    def best(self, wrong: BoolArray, p0: float, *, tails: bool = True) -> Candidate:
        """Return the best range; half of delta is for tails, if these are asked for."""
        at = np.flatnonzero(wrong[self.order])
        if not len(at):
            return NOTHING
        # A range begins and ends with a step that has wrong rows: rows and wrong rows before each, and in each.
        if self.edges is None:
            places, size, off, groups = at, np.ones(1, dtype=np.intp), np.ones(1, dtype=np.intp), None
            before, wrong_before = at.astype(np.float64), np.arange(len(at), dtype=np.float64)
        else:
            below = np.searchsorted(at, self.edges)
            places = np.flatnonzero(below[1:] > below[:-1])
            before, wrong_before = self.edges[places].astype(np.float64), below[places].astype(np.float64)
            size, off = np.diff(self.edges)[places], np.diff(below)[places]
            groups = None if self.groups is None else self.groups[places]
        n, k, price = len(self.order), len(at), math.log((1 + tails) * len(ALTERNATIVES))
        one, (S, T, least) = price + math.log(self.n_steps), np.empty((3, len(places)))
        best = (math.inf, 0, 0)
        for p1 in (p1 for p1 in ALTERNATIVES if p1 > p0):
            right = math.log((1 - p1) / (1 - p0))
            more = math.log(p1 / p0) - right
            np.multiply(before, right, out=S)
            np.multiply(wrong_before, more, out=T)
            S += T
            np.add(S, right * size + more * off, out=T)
            if groups is not None:  # no range reaches into another level: every level begins below all before
                S -= (1 + more * n) * groups
                T -= (1 + more * n) * groups
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
        end = n if last == len(places) else int(before[last] + size[last % len(size)])
        return Candidate(log_p, begin, end - 1)
