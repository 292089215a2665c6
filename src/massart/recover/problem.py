"""What is asked of a recovery, and the rows that certify a rule and propose one: chosen by X alone.

All of it is fixed before any label is looked at.

**Two stages.** Of a large table fewer rows judge first, which is enough for most rules, and as many as it takes where
most of the labels are nearly wrong only if the first do not settle it. Each may fail with half of delta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from massart.certificate import WIDE_COLUMNS, Assumption, Geometry, Support, geometry_of, weak_row_weights
from massart.recover.certification import CertificationRows, Covariates, Scanned
from massart.recover.settings import Options, Settings
from massart.rows import (
    SQUARE_IS_FINITE,
    Agreement,
    BoolArray,
    FloatArray,
    Level,
    Link,
    Rows,
    Sample,
    Uses,
    levels,
    nonzero_counts,
    total_of,
)

MOST_REPEATED = 20_000
"""Rows that whole weights may make."""

LARGEST_LABEL = 1e250
"""Wrong labels may be of any size, as long as right ones do not vanish in comparison."""


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

    @property
    def may_be_noise(self) -> bool:
        """Whether the rows are asked if right ones follow the formula up to noise."""
        return self.inliers == "auto" and self.tolerance == "auto"


@dataclass(frozen=True)
class Problem:
    """The rows of a table with their labels, what X alone says of them, and what is asked.

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
    units : array or None
        As `clusters`, for all rows of the table.
    staged : bool
        Whether more rows certify if these do not settle it.
    place : int
        Of the label column.
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
    units: NDArray[np.integer] | None = None
    staged: bool = False
    place: int = 0

    @classmethod
    def of(
        cls,
        question: Question,
        rows: Rows,
        *,
        units: NDArray[np.integer] | None = None,
        seen: NDArray[np.intp] | None = None,
        covariates: Covariates | None = None,
        stages: int = 2,
    ) -> Problem:
        """Choose the rows, by X alone; those of the second stage at once where `stages` is 1."""
        settings, link, rng, d = question.settings, question.link, question.options.rng, rows.n_columns
        size = settings.certification_rows(d)
        # The columns of a table are scanned for segments among all rows that certify.
        staged = stages > 1 and link.invertible and covariates is None and d < WIDE_COLUMNS
        staged = staged and settings.search < size < rows.n_rows
        if staged:
            size, halved = settings.search, 2 * question.assumption.hypotheses
            question = replace(question, assumption=replace(question.assumption, hypotheses=halved))
        certify, rare = _with_rare_rows(rows, rows.sample(size, rng), rng, settings)
        certify, unit, repeated = counted_as_rows(certify)
        if size >= rows.n_rows:  # by X alone, where a part of the rows holds its labels back
            certify = certify.in_canonical_order(labels=link.invertible)
        check_size(certify)
        vanishes = (np.abs(certify.X) < 1 / SQUARE_IS_FINITE) & (certify.X != 0)
        if vanishes.any():  # exp(-400 * t): where squares underflow, a number says nothing of a direction
            certify = replace(certify, X=np.where(vanishes, 0.0, certify.X))
        clusters = None if units is None else units[certify.index]
        if repeated and units is None:
            clusters = certify.index
        problem = cls(
            question, rows, certify, certify, None, clusters, rare, unit, seen, covariates, units=units, staged=staged
        )
        return problem if staged else problem._parted()

    def _parted(self) -> Problem:
        """Return the problem in which a part of the rows proposes; where a link clips, the others hold labels back."""
        settings, (n, d) = self.question.settings, self.certify.X.shape
        if self.question.link.invertible:
            # Where there are many columns, sums of all rows that certify are kept: then all of them propose.
            if n <= settings.search or self.geometry.wide is not None:
                return self
            searched = replace(self, search=self.some(self.certify, settings.search))
            vars(searched)["geometry"] = self.geometry
            return searched
        if n < settings.hold_out * d:
            return self
        least = min(2 * settings.first_sample(d, clipped=True), n // 2)
        share = max(round(settings.propose_share * n), least)
        chosen = _some_clusters(np.arange(n) if self.clusters is None else self.clusters, share, self.rng)
        return replace(self, search=self.certify.take(chosen).in_canonical_order(), held_out=~chosen)

    def columns(self) -> Iterator[Problem]:
        """Yield the problem of each label column; what X alone says is said once."""
        if self.rows.n_outputs > 1:
            _ = self.geometry, self.search_geometry, self._scanned
        for j in range(self.rows.n_outputs):
            yield self._column(j)

    def _column(self, j: int) -> Problem:
        known = {name: value for name, value in vars(self).items() if name in _BY_X}
        certify = self.certify.column(j)
        search = certify if self.search is self.certify else self.search.column(j)
        one = replace(self, certify=certify, search=search, place=j)
        vars(one).update(known)
        return one

    def second_stage(self) -> Problem:
        """Return the problem with as many rows as it takes to certify a rule."""
        options = replace(self.question.options, rng=self.rng.spawn(1)[0])
        question = replace(self.question, options=options)
        more = Problem.of(question, self.rows, units=self.units, seen=self.seen, stages=1)
        if self.clusters is None and self.certify.weights is None:  # what X says of some rows serves others, too
            vars(more)["geometry"] = self.geometry
        return more._column(self.place)

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

    def levels_of(self, sample: Sample) -> tuple[Agreement, ...]:
        """Return the levels of agreement of some rows, the tightest first."""
        question, (x_precision, y_precision) = self.question, self.rows.precision
        found = levels(question.tolerance, sample.X, sample.y, X_precision=x_precision, y_precision=y_precision)
        return found if question.inputs else tuple(level for level in found if level.level is not Level.INPUTS)

    @cached_property
    def certification(self) -> CertificationRows:
        """The rows that certify a rule."""
        by_rows = self.held_out, self.clusters, self.seen, self._scanned
        return CertificationRows(self.certify, self.geometry, self.question.assumption, self.rng, *by_rows)

    @property
    def searched(self) -> CertificationRows:
        """The rows that candidates are counted on."""
        return CertificationRows(self.search, self.search_geometry, self.question.assumption, self.rng)

    def some(self, rows: Sample, most: int) -> Sample:
        """Return the rows, or `most` of them at random besides the rare ones."""
        n = len(rows.index)
        if n <= most:
            return rows
        chosen = np.isin(rows.index, self.rare)
        chosen[self.rng.choice(n, most, replace=False)] = True
        return rows.take(np.flatnonzero(chosen))

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


_BY_X = ("geometry", "search_geometry", "_scanned")


def _with_rare_rows(
    rows: Rows, certify: Sample, rng: np.random.Generator, settings: Settings
) -> tuple[Sample, NDArray[np.intp]]:
    """Return the rows and more of those that some columns rest on, and the numbers of these: a choice by X alone."""
    columns = certify.X[:, :-1] if (certify.X[:, -1] == 1).all() else certify.X
    few = np.flatnonzero(nonzero_counts(columns) < settings.rare)
    uses = rows.map(Uses(tuple(few.tolist()))) if len(few) and len(certify.index) < rows.n_rows else None
    if uses is None or not total_of(uses, rows.n_rows):
        return certify, np.empty(0, dtype=np.intp)
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
    if (weights != np.rint(weights)).any() or weights.sum() > MOST_REPEATED:
        return replace(sample, weights=weights), unit, False
    times = weights.astype(np.intp)
    return replace(sample.take(np.repeat(np.arange(len(times)), times)), weights=None), unit, True


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
