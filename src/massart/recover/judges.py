"""A formula that is fixed, the rows that judge it, and what they say of it: marks, support, the most frequent label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from massart.certificate import Assumption, Segment, Support, geometry_of, measure_support
from massart.certificate.geometry import Geometry
from massart.recover.scanned import Scanned
from massart.rows import AGREES, Agreement, BoolArray, FloatArray, Link, Mark, Sample, Verified, speaks
from massart.rows.agreement import compare
from massart.rows.marks import Marks

COUNTING_ROWS = 5_000
"""Rows up to which counting may say more than support does."""

_LOOKED_AT = 5_000  # labels of which the most frequent is looked for


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


@dataclass(frozen=True, slots=True)
class Judges:
    """The rows that judge, chosen before labels were looked at.

    Attributes
    ----------
    rows : Sample
        All rows of the table, or as many as X, their number and the confidence ask for; one label column.
    geometry : Geometry
        Of these rows.
    held_out : (n,) array of bool or None
        For a link that clips: rows whose labels no step towards the formula has seen, nor those of their units.
    units : (n,) array of int or None
        Rows of one unit are wrong together.
    assumption : Assumption
    rng : numpy.random.Generator
        For bounds that hold with confidence.
    seen : (m,) array of int or None
        Rows of the table, by number, whose labels helped to choose the columns: they cannot confirm.
    scanned : Scanned or None
        The rows in which segments are looked for that break a rule; None for all, by the columns of X.
    """

    rows: Sample
    geometry: Geometry
    held_out: BoolArray | None
    units: np.ndarray | None
    assumption: Assumption
    rng: np.random.Generator
    seen: np.ndarray | None = None
    scanned: Scanned | None = None

    @property
    def unseen(self) -> Judges | None:
        """The judges whose labels did not help to choose the columns; None if these are too few."""
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

    def worst_segment(self, marks: Marks) -> Segment | None:
        """Return the segment in which a rule breaks, given the marks of these rows; None if there is none."""
        return self._scanned.worst(marks, self.rows)

    def is_even(self, marks: Marks) -> bool:
        """Return whether nothing shows that rows which break a rule depend on a column, given the marks of these."""
        return self._scanned.is_even(marks)

    @property
    def _scanned(self) -> Scanned:
        return Scanned.of(self.rows, self.units) if self.scanned is None else self.scanned

    @property
    def fixed_rng(self) -> np.random.Generator:
        """A generator that follows from the seed, whatever was drawn since: all formulas meet the same draws."""
        seed_sequence: Any = self.rng.bit_generator.seed_seq
        return np.random.default_rng(seed_sequence.generate_state(4))

    @property
    def reserved(self) -> float:
        """The share of delta that counting has: none where rows are so many that it says little."""
        return 0.5 if len(self.rows.index) <= COUNTING_ROWS else 0.0


def measure_support_of(
    formula: Formula, judges: Judges, found: Verified, marks: Marks, *, tails: bool = True
) -> Support:
    """Return the support of the formula on the rows that speak for it or against it.

    For a link that clips these depend on the formula: the share of the evidence that agrees is still what it says, and
    shows where to look; the noise rate that it excludes is another matter.
    """
    rows = judges.rows
    agree = marks & AGREES > 0
    given: dict[str, Any] = {
        "bound": judges.assumption.wrong_at_most,
        "confidence": judges.assumption.each,
        "reserved": judges.reserved,
        "rng": judges.rng,
    }
    if formula.link.invertible:
        tails = tails and judges.assumption.excludes
        return measure_support(judges.geometry, rows.X, agree, found.half_widths, tails=tails, **given)
    met = speaks(marks)
    if not met.any():  # a zero row says nothing, either
        zero = np.zeros((1, rows.X.shape[1]))
        return measure_support(geometry_of(zero), zero, np.array([False]), np.zeros(1), tails=False, **given)
    part = rows.take(met)
    geometry = geometry_of(part.X, sample_weight=part.weights)
    return measure_support(geometry, part.X, agree[met], found.half_widths[met], tails=False, **given)


def beyond_mode(rows: Sample, found: Verified, link: Link) -> float:
    """Return the weight of rows that agree and tell a product, but for those with the most frequent label."""
    informative = link.decisive(rows.y, found.half_widths)
    if not informative.any():
        return 0.0
    some = np.flatnonzero(informative)[:_LOOKED_AT]
    values, where = np.unique(rows.y[some], return_inverse=True)
    weights = np.bincount(where.ravel(), rows.counts[some])
    informative &= found.agree
    if weights.max() > rows.counts[some].max():  # else no label is more frequent than others
        informative &= rows.y != values[np.argmax(weights)]
    return float(rows.counts[informative].sum())
