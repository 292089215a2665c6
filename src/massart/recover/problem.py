"""What is asked of a recovery, and the rows that certify a rule and propose one: chosen by X alone.

All of it is fixed before any label is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Assumption, Support, geometry_of
from massart.certificate.geometry import Geometry
from massart.certificate.support import weak_row_weights
from massart.recover.judges import Judges
from massart.recover.propose import Options
from massart.recover.scanned import Covariates, Scanned
from massart.recover.settings import Settings
from massart.recover.snapping import SQUARE_IS_FINITE
from massart.rows import Agreement, BoolArray, FloatArray, Link, Rows, Sample, Uses, nonzero_counts, total_of

MOST_REPEATED = 20_000
"""Rows that whole weights may make."""

LARGEST_LABEL = 1e250
"""Wrong labels may be of any size, as long as right ones beside them do not vanish."""


@dataclass(frozen=True, slots=True)
class Start:
    """Coefficients that are known from elsewhere.

    Attributes
    ----------
    coef : (d,) array
        Near the right ones: nothing else is looked for.
    half_width : float
        Within which they are: a looser level is not considered.
    fractions : tuple of d Fraction or None, optional
        With these the coefficients are final: they are judged as they stand.
    agreement : Agreement, optional
        When a row agrees with final coefficients.
    """

    coef: FloatArray
    half_width: float = 0.0
    fractions: tuple[Fraction | None, ...] | None = None
    agreement: Agreement | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What the user asks: the arguments of :func:`massart.recover.recover` that are no rows."""

    link: Link
    tolerance: float | Literal["auto"]
    inliers: Literal["auto", "exact", "noisy"]
    assumption: Assumption
    start: Start | None
    inputs: bool
    options: Options
    settings: Settings


@dataclass(frozen=True)
class Problem:
    """The rows of a table with all their label columns, what X alone says of them, and what is asked.

    Attributes
    ----------
    question : Question
    rows : Rows
        All of them.
    certify : Sample
        Those that certify a rule.
    search : Sample
        Those of them that candidates are looked for and counted on.
    held_out : (n,) array of bool or None
        For a link that clips: certification rows whose labels no step towards the rule has seen.
    clusters : (n,) array of int or None
        Certification rows of one cluster are wrong together.
    rare : (m,) array of int
        Numbers of rows that some columns rest on: they are in every part.
    unit : float
        The weight of the table that counts as one row.
    seen : (m,) array of int or None
        Rows whose labels helped to choose the columns.
    covariates : Covariates or None
    """

    question: Question
    rows: Rows
    certify: Sample
    search: Sample
    held_out: BoolArray | None
    clusters: NDArray[np.integer] | None
    rare: NDArray[np.intp]
    unit: float
    seen: NDArray[np.intp] | None
    covariates: Covariates | None

    @classmethod
    def of(
        cls,
        question: Question,
        rows: Rows,
        *,
        units: NDArray[np.integer] | None = None,
        seen: NDArray[np.intp] | None = None,
        covariates: Covariates | None = None,
    ) -> Problem:
        """Choose the rows, by X alone."""
        settings, link, rng, d = question.settings, question.link, question.options.rng, rows.n_columns
        size = settings.certification_rows(d)
        certify, rare = _with_rare_rows(rows, rows.sample(size, rng), rng, settings)
        certify, unit, repeated = counted_as_rows(certify)
        if size >= rows.n_rows:  # by X alone, where a part of the rows holds its labels back
            certify = certify.in_canonical_order(labels=link.invertible)
        check_size(certify)
        clusters = None if units is None else units[certify.index]
        if repeated and units is None:
            clusters = certify.index
        problem = cls(question, rows, certify, certify, None, clusters, rare, unit, seen, covariates)
        if link.invertible:
            # Where there are many columns, sums of all rows that certify are kept: then all of them propose.
            if len(certify.index) <= settings.search or problem.geometry.wide is not None:
                return problem
            return problem.searched(some_of(certify, settings.search, rare, rng))
        if len(certify.index) < settings.hold_out * d:
            return problem
        least = min(2 * settings.first_sample(d, clipped=True), len(certify.index) // 2)
        share = max(round(settings.propose_share * len(certify.index)), least)
        chosen = _some_clusters(np.arange(len(certify.index)) if clusters is None else clusters, share, rng)
        return replace(problem, search=certify.take(chosen).in_canonical_order(), held_out=~chosen)

    def searched(self, search: Sample) -> Problem:
        """Return the problem with other search rows; what is known of the certification rows stays known."""
        other = replace(self, search=search)
        other.__dict__["geometry"] = self.geometry
        return other

    @property
    def rng(self) -> np.random.Generator:
        """Of all random choices."""
        return self.question.options.rng

    @cached_property
    def geometry(self) -> Geometry:
        """What X alone says of the rows that certify; not asked for where labels turn out to be noisy."""
        rows = self.certify
        return geometry_of(rows.X, sample_weight=rows.weights, units=self.clusters, there=rows.there)

    @cached_property
    def search_geometry(self) -> Geometry:
        """What X alone says of the rows that propose."""
        if self.held_out is None:
            return self.geometry
        return geometry_of(self.search.X, sample_weight=self.search.weights)

    @cached_property
    def _scanned(self) -> Scanned:
        return Scanned.of(self.certify, self.clusters, self.covariates)

    def judges(self, j: int) -> Judges:
        """Return the rows that certify a rule, with one label column."""
        return Judges(
            self.certify.column(j),
            self.geometry,
            self.held_out,
            self.clusters,
            self.question.assumption,
            self.rng,
            self.seen,
            self._scanned,
        )

    def scouts(self, rows: Sample) -> Judges:
        """Return the rows that candidates are counted on, `rows`, and what X alone says of them."""
        clusters = self.clusters if self.held_out is None else None
        return Judges(rows, self.search_geometry, None, clusters, self.question.assumption, self.rng, self.seen)

    def some(self, rows: Sample, most: int) -> Sample:
        """Return the rows, or as many of them at random beside the rare ones."""
        return some_of(rows, most, self.rare, self.rng)

    def drawn(self, rows: Sample, size: int, support: Support | None = None) -> Sample:
        """Return rows at random and, where a support is given, half of them where it is weak."""
        n = len(rows.index)
        chosen = self.rng.choice(n, min(size if support is None else size // 2, n), replace=False)
        if support is not None:
            weights = weak_row_weights(self.search_geometry, rows.X, support) * (rows.counts > 0)
            possible = int(np.count_nonzero(weights))
            if possible:
                weak = self.rng.choice(n, min(size // 2, possible), replace=False, p=weights / weights.sum())
                chosen = np.union1d(chosen, weak)
        return rows.take(np.sort(chosen))


def some_of(rows: Sample, most: int, rare: NDArray[np.intp], rng: np.random.Generator) -> Sample:
    """Return the rows, or as many of them at random beside the rare ones."""
    n = len(rows.index)
    if n <= most:
        return rows
    chosen = np.isin(rows.index, rare)
    chosen[rng.choice(n, most, replace=False)] = True
    return rows.take(np.flatnonzero(chosen))


def _with_rare_rows(
    rows: Rows, certify: Sample, rng: np.random.Generator, settings: Settings
) -> tuple[Sample, NDArray[np.intp]]:
    """Return the rows and more of those that some columns rest on, and the numbers of these: a choice by X alone."""
    none = np.empty(0, dtype=np.intp)
    if len(certify.index) >= rows.n_rows:
        return certify, none
    columns = certify.X[:, :-1] if (certify.X[:, -1] == 1).all() else certify.X
    few = np.flatnonzero(nonzero_counts(columns) < settings.rare)
    if not len(few):
        return certify, none
    uses = rows.map(Uses(tuple(few.tolist())))
    if not total_of(uses, rows.n_rows):
        return certify, none
    rare = rows.sample(min(settings.rare * len(few), settings.most_rare), rng, uses)
    return certify.joined(rare), rare.index


def _some_clusters(clusters: NDArray[np.integer], size: int, rng: np.random.Generator) -> BoolArray:
    """Return as many rows at random, with all that are wrong together with one of them."""
    _, first, codes, sizes = np.unique(clusters, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)[rng.permutation(len(first))]  # whatever the clusters are called
    chosen = np.zeros(len(first), dtype=bool)
    chosen[order[np.cumsum(sizes[order]) - sizes[order] < size]] = True
    return chosen[codes]


def counted_as_rows(sample: Sample) -> tuple[Sample, float, bool]:
    """Return the rows with weights that count as rows, the unit of these weights, and whether rows were repeated.

    A weight is never less than one on average: shares count as rows. A row of a small whole weight is repeated; its
    copies are right or wrong together.
    """
    if sample.weights is None:
        return sample, 1.0, False
    unit = min(1.0, float(sample.weights[sample.weights > 0].mean()))
    weights = sample.weights / unit
    if not _is_whole(weights):
        return replace(sample, weights=weights), unit, False
    times = weights.astype(np.intp)
    return replace(sample.take(np.repeat(np.arange(len(times)), times)), weights=None), unit, True


def _is_whole(weights: FloatArray) -> bool:
    """Return whether weights are numbers of repetitions, and not too many."""
    return bool((weights == np.rint(weights)).all() and weights.sum() <= MOST_REPEATED)


def check_size(sample: Sample) -> None:
    """Raise ValueError where squares of the numbers overflow, or all of them vanish."""
    largest = max(float(sample.X.max()), -float(sample.X.min()))
    if largest and not 1 / SQUARE_IS_FINITE <= largest <= SQUARE_IS_FINITE:
        i, j = np.unravel_index(int(np.abs(sample.X).argmax()), sample.X.shape)
        raise ValueError(
            f"X must have its largest number between {1 / SQUARE_IS_FINITE:g} and {SQUARE_IS_FINITE:g}, got "
            f"{sample.X[i, j]:g} at row {sample.index[i]}, column {j}: choose another unit"
        )
    labels = sample.y.reshape(len(sample.y), -1)
    if np.abs(labels).max() > LARGEST_LABEL:
        i, j = np.unravel_index(int(np.abs(labels).argmax()), labels.shape)
        raise ValueError(
            f"y must have numbers up to {LARGEST_LABEL:g}, got {labels[i, j]:g} at row {sample.index[i]}: "
            "choose another unit, or leave such rows out"
        )
