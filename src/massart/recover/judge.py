r"""The numbers that a verdict is made of: from a formula, fixed by now, and the rows that judge it.

The verdict itself is made of them in :mod:`massart.certificate.judge`. Each number is computed when a rung first asks
for it.

**What is fixed when.** For a linear formula the theorem of :mod:`massart.certificate.support` holds however w was
found, so all rows judge. The set of rows that are informative about a link that clips depends on w; so there the
formula is frozen, polish and exact numbers included, before the labels of held-out rows are read, and those judge. What
depends on labels otherwise (level, number of rows that agree) costs nothing: levels are nested, so that the sets of
wrong rows are, and the theorem is about them. For links delta is split into halves: all rows, and held-out ones; and
before that, where a large table is judged in two stages (:mod:`massart.recover.problem`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import comb
from typing import Any

import numpy as np

from massart.certificate import (
    EXACT_REACH,
    SECOND_LOOK,
    SLAB_REACH,
    Certificate,
    Decisive,
    Declared,
    Evidence,
    IndependentErrors,
    Reason,
    Segment,
    Sharing,
    Span,
    Support,
    bound_sharing,
    certify_independent,
    geometry_of,
    held_out_support,
    is_affordable,
    measure_support,
    span_of,
)
from massart.certificate import judge as verdict_of
from massart.recover.certification import (
    CertificationRows,
    Formula,
    beyond_mode,
    is_sharp,
    measure_support_of,
    stands_out,
    without_copies,
)
from massart.recover.score import is_noise, rule_beyond_chance
from massart.recover.settings import SETTINGS
from massart.rows import (
    AGREES,
    DECISIVE,
    EPS,
    IMPOSSIBLE,
    KINDS,
    LAST_PLACE,
    BoolArray,
    FloatArray,
    Level,
    Link,
    Marks,
    Sample,
    Verified,
    speaks,
)

CLEARLY_SPANNED = 1e-3
"""Share of the evidence in every direction at which the rows that agree span what all rows do."""

OPEN = 1e-9
"""Part of a row, relative to its length, in directions that others leave open, above which it is not rounding."""

MOST_ROUNDED, MOST_EXACT = 2e3, 1e8
"""Half-widths by which the right formula may differ on a row, at most, to be confirmed as declared: of rounded labels,
and of float arithmetic, which leaves seven digits then."""

_WITH_EDGE = (Level.EXACT, Level.LABEL, Level.GIVEN)
"""Levels at which right labels are off by what does not depend on the coefficients."""


def judge(
    formula: Formula,
    certification: CertificationRows,
    tally: FloatArray,
    *,
    thin: tuple[tuple[int, float], ...] = (),
    shuffled: Callable[[], float] | None = None,
    second_rule: Callable[[], bool] | None = None,
) -> Certificate:
    """Return the certificate of a formula.

    Parameters
    ----------
    formula : Formula
    certification : CertificationRows
    tally : (32,) array
        The weight of ALL rows of the table by their marks.
    thin : tuple of pairs
        Columns that were left out, and the rows that they rested on.
    shuffled : callable, optional
        Returns the share of rows that some formula explains when labels are shuffled, as :func:`beyond_mode` counts
        them; asked where nothing stronger speaks.
    second_rule : callable, optional
        Returns whether another rule is certified among the rows that do not agree; asked before a formula is confirmed
        because errors were declared independent of the columns.
    """
    if thin:
        certification = _without(certification, [column for column, _ in thin])
    numbers = _Numbers(formula, certification, tally)
    later: dict[str, Any] = {name: partial(getattr, numbers, name) for name in _LATER}
    return verdict_of(
        Evidence(
            assumption=certification.assumption,
            agreement=formula.agreement,
            n_rows=numbers.n_rows,
            n_agree=numbers.n_agree,
            n_decisive=numbers.n_decisive,
            n_last_place=float(tally[(_MARKS & LAST_PLACE > 0) & ~_RIGHT].sum()),
            n_active=None if formula.link.invertible else float(tally[speaks(_MARKS)].sum()),
            n_columns=len(formula.coef),
            thin=thin,
            n_seen=None if certification.seen is None else len(certification.seen),
            n_terms=int(np.count_nonzero(formula.coef)),
            n_distinct=len(np.unique(certification.rows.index[numbers.informative])),
            contested=certification.scanned is not None and certification.scanned.contested,
            # Of the whole table, and so not kept for what a certificate computes when it is read.
            chance=lambda: 0.0 if shuffled is None else shuffled() * numbers.n_rows,
            declared=lambda: numbers.declared(second_rule),
            **later,
        )
    )


def _without(certification: CertificationRows, columns: list[int]) -> CertificationRows:
    """Return the rows that certify formulas without some columns: all choices of k of them share delta.

    The numbers k share it as 1 / (k (k + 1)), which adds up to one, after a first look that took all columns.
    """
    rows = certification.rows
    X = rows.X.copy()
    X[:, columns] = 0.0
    d, k = X.shape[1], len(columns)
    hypotheses = certification.assumption.hypotheses * SECOND_LOOK * k * (k + 1) * comb(d, k)
    return replace(
        certification,
        rows=replace(rows, X=X, there=None),
        geometry=geometry_of(X, sample_weight=rows.weights, units=certification.units),
        assumption=replace(certification.assumption, hypotheses=hypotheses),
    )


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A formula next to the rows that judge it, and what :class:`massart.certificate.Evidence` asks of them."""

    formula: Formula
    certification: CertificationRows
    tally: FloatArray

    @property
    def link(self) -> Link:
        return self.formula.link

    @property
    def rows(self) -> Sample:
        return self.certification.rows

    @cached_property
    def compared(self) -> tuple[Verified, Marks]:
        """The rows next to the formula, and their marks."""
        return self.formula.marks(self.rows)

    @cached_property
    def informative(self) -> BoolArray:
        """The rows that agree and tell this formula from others."""
        marks = self.compared[1]
        return np.asarray((marks & AGREES > 0) & (marks & DECISIVE > 0) & self.rows.X.any(axis=1))

    @cached_property
    def n_zero(self) -> float:
        """The weight of zero rows, which agree with every formula, or with none."""
        rows = self.rows
        if not self.link.invertible or float(rows.counts.sum()) != float(self.tally.sum()):
            return 0.0
        empty = ~rows.X.any(axis=1)
        return float(rows.counts[empty & (self.compared[1] & AGREES > 0)].sum())

    @property
    def n_rows(self) -> float:
        return float(self.tally[_POSSIBLE].sum()) - self.n_zero

    @property
    def n_agree(self) -> float:
        return float(self.tally[_POSSIBLE & _RIGHT].sum()) - self.n_zero

    @property
    def n_decisive(self) -> float:
        return float(self.tally[_POSSIBLE & _RIGHT & (_MARKS & DECISIVE > 0)].sum()) - self.n_zero

    @cached_property
    def beyond(self) -> float:
        rows = self.rows
        return beyond_mode(rows, self.compared[0], self.link) * self.n_rows / float(rows.counts.sum())

    @cached_property
    def constant(self) -> bool:
        labels = self.rows.y[self.compared[0].agree]
        return bool(len(labels) > 1 and (labels == labels[0]).all())

    @cached_property
    def stands_out(self) -> bool:
        """Whether rows that did not choose the columns show the formula, by its edge and beyond chance.

        A formula that a minority follows may be an approximation: labels lie as densely near it as on it. That it
        fits the rows that chose its columns says little, since it was the best of many there.
        """
        formula, rows = self.formula, (self.certification.unseen or self.certification).rows
        rows = without_copies(rows.take(np.arange(0, len(rows.index), -(-len(rows.index) // SETTINGS.exact))))
        if not stands_out(formula, rows, self.span.rank):
            return False
        rule = formula.coef, formula.agreement, formula.link
        sure = SETTINGS.sure
        return rule_beyond_chance(rows.X, rows.y, *rule, n_levels=len(Level), enough=sure) >= sure

    @cached_property
    def is_noise(self) -> bool:
        """Whether noise explains clearly better than rounding alone how far rows are from the formula."""
        formula, rows, (found, _) = self.formula, self.rows, self.compared
        level = formula.agreement
        if level.level not in (Level.LABEL, Level.INPUTS):
            return False
        chosen = formula.link.decisive(rows.y, found.half_widths) & (rows.counts > 0)
        halves = np.array([level.label, *(np.abs(formula.coef) * level.inputs if level.inputs else ())])
        return is_noise(found.residuals[chosen], found.agree[chosen], halves)

    # Which other formulas there are

    @cached_property
    def support(self) -> Support:
        return measure_support_of(self.formula, self.certification, *self.compared)

    @cached_property
    def span(self) -> Span:
        """The span of the informative rows: that of all rows where these clearly agree in part."""
        d, support = len(self.formula.coef), self.support
        if support.alpha > CLEARLY_SPANNED and sum(piece.dimension for piece in support.pieces) == d:
            return Span.all_of(d)
        return span_of(self.rows.X[self.informative])

    @property
    def leaves_open(self) -> bool:
        X = self.rows.X
        parts = np.abs(X @ self.span.undetermined).max(axis=1, initial=0.0)
        return bool((parts > OPEN * np.linalg.norm(X, axis=1)).any())

    @cached_property
    def segment(self) -> Segment | None:
        return self.certification.segments.worst(self.compared[1], self.rows)

    @cached_property
    def decisive(self) -> Decisive:
        """The informative rows, in half-widths; none where there are too many to count."""
        rows, chosen, wrong = self.rows, self.informative, self.n_rows - self.n_agree
        if not is_affordable(self.span.rank, int(chosen.sum()), wrong):
            chosen = np.zeros_like(chosen)
        X, widths = rows.X[chosen], self.compared[0].half_widths[chosen]
        # Where all terms vanish, the rounding of the row's numbers.
        widths = np.where(widths > 0, widths, np.finfo(float).eps * np.abs(X).max(axis=1, initial=0.0))
        return Decisive(
            X / widths[:, None],
            None if rows.weights is None else rows.weights[chosen],
            self.n_decisive,
            wrong,
            SLAB_REACH if self.formula.agreement.rounded else EXACT_REACH,
        )

    @cached_property
    def sharing(self) -> Sharing:
        return bound_sharing(self.decisive, span=self.span)

    # What chance explains

    @cached_property
    def excludes_others(self) -> bool:
        """Support is asked whether it excludes the bound, which takes less than to ask which rate it excludes."""
        return self._measured is not None and self._measured.excludes and self.resolution < np.inf

    @property
    def eta_max(self) -> float:
        """The noise rate that is excluded."""
        return 0.0 if self._measured is None else self._measured.eta_max

    @cached_property
    def fresh(self) -> CertificationRows | None:
        """The rows whose labels did not help to choose the columns; None if these leave a direction untested.

        A column that labels of some rows chose, and that is zero in all others, is what these labels made of it.
        """
        others = self.certification.unseen
        if others is None or others is self.certification:
            return others
        return others if span_of(others.rows.X).rank == span_of(self.rows.X).rank else None

    @cached_property
    def _measured(self) -> Support | None:
        """The support that excludes others: where labels helped to choose the columns, of the rows that did not."""
        others = self.fresh
        if others is None:
            return None
        support, (found, marks) = self.support, self.compared
        if others is not self.certification:
            found, marks = self.formula.marks(others.rows)
            support = measure_support_of(self.formula, others, found, marks)
        if self.link.invertible:
            return support
        return _support_of_link(self.formula, others, found, marks)

    @cached_property
    def resolution(self) -> float:
        """By how many half-widths a rival may differ on a row that support does not exclude.

        Infinite where that is more than the labels that agree differ from each other: such a claim says nothing. So
        end series of powers, whose terms are nearly dependent, that only come near the rule.
        """
        if self._measured is None:
            return np.inf
        found = self.compared[0]
        rows, widths, half_widths = self.rows, self._measured.on_rows, found.half_widths
        if not np.isfinite(widths).all():
            if not np.isfinite(widths[rows.X.any(axis=0)]).all():
                return np.inf
            widths = np.where(np.isfinite(widths), widths, 0.0)
        used = half_widths > 0
        if not used.any() or not found.agree.any():
            return np.inf
        apart = rows.magnitudes(widths)
        if apart.max() > np.ptp(rows.y[found.agree]):
            return np.inf
        return float((apart[used] / half_widths[used]).max())

    def declared(self, second_rule: Callable[[], bool] | None) -> Declared:
        """Return what is certain if errors are independent: nothing where there are weights or clusters.

        The declaration is refuted by a second rule (two formulas with different slopes cannot both have many rows
        then), and by wrong rows that depend on a column. Neither costs confidence: both can only withdraw a claim.
        """
        formula, others, nothing = self.formula, self.fresh, Declared(IndependentErrors(0, 0))
        if others is None or others.rows.weights is not None or others.units is not None:
            return nothing
        agreement = formula.agreement
        if not formula.link.invertible or agreement.level not in _WITH_EDGE or not others.assumption.excludes:
            return nothing
        found, marks = formula.marks(others.rows)
        agree = marks & AGREES > 0
        # Rounded noise has no edge: no label of it is right, and the declaration is about right labels.
        if not agree.any() or not is_sharp(others.rows, found, agreement, formula.link, len(formula.coef)):
            return nothing
        half, rounded = float(found.half_widths[agree].max()), agreement.rounded or agreement.precision > EPS
        known = certify_independent(
            others.rows.X,
            found.residuals,
            agree,
            half,
            rounded=rounded,
            rng=self.certification.rng,
            failure=self.certification.assumption.delta,
        )
        if not known.slopes and not known.confirmed:
            return Declared(known)
        if not self.certification.segments.is_even(self.compared[1]):
            return Declared(known, Reason.UNEVEN)
        if second_rule is None or second_rule():
            return Declared(known, Reason.SECOND_RULE)
        too_coarse = known.within > (MOST_ROUNDED if rounded else MOST_EXACT) * half
        return Declared(known, resolution=np.inf if too_coarse else known.within / half)


_LATER = (
    *("span", "beyond", "is_noise", "stands_out", "constant", "support", "sharing", "leaves_open", "segment"),
    *("excludes_others", "eta_max", "resolution"),
)
"""Numbers that are computed when a rung first asks for them."""

_MARKS = np.arange(KINDS)
_POSSIBLE, _RIGHT = _MARKS & IMPOSSIBLE == 0, _MARKS & AGREES > 0


def _support_of_link(formula: Formula, others: CertificationRows, found: Verified, marks: Marks) -> Support | None:
    """Return the support that excludes most for a link that clips, if anything may be excluded.

    By held-out rows between the limits, or by all rows, whatever w is: each at half of delta.
    """
    if not others.assumption.excludes:
        return None
    bound, margin = others.assumption.wrong_at_most, 2 * found.half_widths
    confidence = 1 - others.assumption.delta / 2
    link, products = formula.link, found.products
    between = (products > link.lower + margin) & (products < link.upper - margin)  # by X and the frozen formula alone
    whole = measure_support(
        others.geometry,
        others.rows.X,
        (marks & AGREES > 0) & between,
        found.half_widths,
        bound=bound,
        confidence=confidence,
        rng=others.rng,
        simulate=False,
    )
    if others.held_out is None:
        return whole
    part = others.held_out & between
    rows, units = others.rows.take(part), None if others.units is None else others.units[part]
    if not part.any() or span_of(rows.X).rank < rows.X.shape[1]:
        return whole
    support = held_out_support(
        geometry_of(rows.X, sample_weight=rows.weights, units=units),
        rows.X,
        found.agree[part],
        found.half_widths[part],
        bound=bound,
        confidence=confidence,
    )
    return max(whole, support, key=lambda one: one.eta_max)
