"""The rows in which segments are looked for that break a rule, and what they say of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Segment, SegmentScan
from massart.rows import AGREES, LAST_PLACE, BoolArray, Sample
from massart.rows.marks import Marks

MOST_NUMBERS = 50_000
"""Numbers of X that are scanned where nothing is known of its columns: some rows stand for the others, so that a fit
takes hardly longer (`benchmarks/bench_fit.py`)."""

_SEED = 20_240  # of the choice of one row of a cluster


@dataclass(frozen=True, eq=False)
class Covariates:
    """All columns of a table by which its rows may be cut into segments, those that are not in the rule included.

    Attributes
    ----------
    scan : SegmentScan
        Of all rows of the table.
    drawn : (n,) boolean array or None
        Those that were drawn at random, if labels had a say in the choice of the others; None for all.
    """

    scan: SegmentScan
    drawn: BoolArray | None = None


@dataclass(frozen=True, eq=False)
class Scanned:
    """Rows, of those that judge, that are scanned: by X alone, and such that they are wrong independently.

    Attributes
    ----------
    places : (m,) array of int
        Of these rows, among those that judge: one of each cluster, and one of the repetitions of a row.
    scan : SegmentScan
        Of these rows.
    """

    places: NDArray[np.intp]
    scan: SegmentScan

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
            return cls(places, scan if len(index) == scan.n_rows else scan.take(index))
        most = max(MOST_NUMBERS // max(rows.X.shape[1], 1), 1)
        places = places[:: -(-len(places) // most)] if len(places) else places
        some = rows.X[places]
        return cls(places, SegmentScan([np.ascontiguousarray(some[:, j]) for j in range(some.shape[1])]))

    def worst(self, marks: Marks, rows: Sample) -> Segment | None:
        """Return the segment in which a rule breaks, if there is one; rows off by a last place do not break it."""
        wrong = marks[self.places] & (AGREES | LAST_PLACE) == 0
        return self.scan.worst(wrong, labels=rows.y[self.places])

    def is_even(self, marks: Marks) -> bool:
        """Return whether nothing shows that rows which break a rule depend on a column."""
        return self.scan.is_even(marks[self.places] & (AGREES | LAST_PLACE) == 0)
