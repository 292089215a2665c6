r"""The one place where verdicts are made: from a formula, fixed by now, and the rows next to it.

The ladder, for linear formulas and links alike:

- PROVEN: counting shows that no other formula fits as many rows (:mod:`massart.certificate.sharing`), for certain.
- CONFIRMED: the support of the formula (:mod:`massart.certificate.support`) excludes every rival with the confidence
  stated, unless labels are wrong with a probability above the bound assumed, or not independently.
- CONFIRMED, too, if the user declares that errors are independent of the columns, and with that the formula is certain
  whatever most rows do (:mod:`massart.certificate.independent_errors`), unless the rows refute the declaration.
- MAJORITY: more than half of the evidence agrees in every direction.
- PLURALITY: far above chance, but not that; or in a segment of the table most rows break the formula
  (:mod:`massart.certificate.segments`), which refutes what the verdicts above take for granted.
- NONE: no more than chance or the most frequent value explains.

**What is fixed when.** For a linear formula the theorem holds however w was found, so all rows judge. The set of rows
that tell anything about a link that clips depends on w; so there the formula is frozen, polish and exact numbers
included, before the labels of held-out rows are read, and those judge. What depends on labels otherwise (level, number
of rows that agree) costs nothing: levels are nested, so that the sets of wrong rows are, and the theorem is about them.
What may fail is split into halves: support, and counting by random blocks; for links, all rows, and held-out ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from massart.certificate import (
    EXACT_REACH,
    SLAB_REACH,
    Certificate,
    Decisive,
    Reason,
    Span,
    Support,
    Verdict,
    bound_sharing,
    span_of,
)
from massart.certificate.geometry import geometry_of
from massart.certificate.sharing import is_affordable
from massart.certificate.verdict import whole
from massart.recover.declared import as_declared
from massart.recover.excluded import excluded, excluded_by_counting, resolution_of
from massart.recover.judges import SECOND_LOOK, Formula, Judges, beyond_mode, measure_support_of
from massart.rows import (
    AGREES,
    DECISIVE,
    IMPOSSIBLE,
    LAST_PLACE,
    Agreement,
    BoolArray,
    FloatArray,
    Link,
    Sample,
    speaks,
)
from massart.rows.marks import KINDS, Marks

PLURALITY = 0.05
"""Share of rows, beyond those that any formula fits, that a plurality has at least."""

CLEARLY_SPANNED = 1e-3
"""Share of the evidence in every direction at which the rows that agree span what all rows do."""

OPEN = 1e-9
"""Part of a row, relative to its length, in directions that others leave open, that is no rounding."""

_DEVIATIONS = 3.0  # of the number of rows that agree by chance, beyond those that any formula fits
_SMALL_GAIN = 2  # rows a term that a formula explains beyond the most frequent value, at least


def judge(
    formula: Formula,
    judges: Judges,
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
    judges : Judges
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
        judges = _without(judges, [column for column, _ in thin])
    rows = judges.rows
    found, marks = formula.marks(rows)
    told = (marks & AGREES > 0) & (marks & DECISIVE > 0) & rows.X.any(axis=1)
    support = measure_support_of(formula, judges, found, marks)
    span = _span(rows.X, told, support)
    counts = _Counts.of(tally, formula.link, rows, marks)
    n_told = len(np.unique(rows.index[told]))  # whatever they weigh
    if not is_affordable(span.rank, int(told.sum()), counts.rows - counts.agree):
        told = np.zeros_like(told)  # a copy of many rows that nobody would look at
    case = Decisive(
        rows.X[told] / _positive(found.half_widths[told], rows.X[told])[:, None],
        None if rows.weights is None else rows.weights[told],
        counts.decisive,
        counts.rows - counts.agree,
        SLAB_REACH if formula.agreement.rounded else EXACT_REACH,
    )
    draft = Certificate(
        verdict=Verdict.PLURALITY,
        reason=Reason.NOTHING,
        n_rows=whole(counts.rows),
        n_agree=whole(counts.agree),
        n_columns=len(formula.coef),
        rank=span.rank,
        n_decisive=whole(counts.decisive),
        agreement=formula.agreement,
        undetermined=span.undetermined,
        undetermined_columns=span.groups,
        n_last_place=whole(counts.last_place),
        n_active=None if formula.link.invertible else whole(counts.active),
        confidence=judges.assumption.confidence,
        wrong_at_most=judges.assumption.wrong_at_most,
        thin=thin,
    )
    # A rule says more than the most frequent value: rows that have it do not speak for one.
    beyond = beyond_mode(rows, found, formula.link) * counts.rows / float(rows.counts.sum())
    nothing = _nothing(formula, counts, span, beyond, n_told)
    if nothing is not Reason.NOTHING:
        few = nothing is Reason.FEW and n_told <= span.rank
        return replace(draft, verdict=Verdict.NONE, reason=nothing, n_decisive=n_told if few else draft.n_decisive)
    draft = replace(draft, constant=_is_constant(rows, found.agree))
    sharing = bound_sharing(case, span=span)
    bound = judges.assumption.wrong_at_most
    eta_max, widths = excluded(formula, judges, support, found, marks)
    resolution = resolution_of(rows, found, widths)
    free = judges.seen is None and formula.link.invertible
    if free and not sharing.proven and (eta_max < bound or not resolution < np.inf):
        counted = excluded_by_counting(case, sharing, counts.rows, counts.agree, judges)
        if counted >= min(bound, eta_max):
            eta_max, resolution = counted, 2 * case.limit
    draft = replace(
        draft,
        support=support,
        eta_max=eta_max,
        hyperplane_rows=None if sharing.rows is None else whole(sharing.rows),
        bound=sharing.bound,
        n_seen=None if judges.seen is None else len(judges.seen),
    )
    segment = judges.worst_segment(marks)
    broken = segment is not None and segment.is_accused
    draft = replace(draft, segment=segment)
    if sharing.proven and judges.seen is None and not broken and not _seen(rows.X, span):
        return replace(draft, verdict=Verdict.PROVEN, resolution=2 * sharing.reach)
    if eta_max >= bound and support.alpha > 0 and resolution < np.inf and not broken:
        return replace(draft, verdict=Verdict.CONFIRMED, resolution=resolution)
    chance = shuffled() * counts.rows if shuffled is not None else 0.0
    draft = replace(draft, chance=whole(round(chance)))
    if beyond <= chance + _DEVIATIONS * (1 + np.sqrt(max(chance - span.rank, 0.0))):
        return replace(draft, verdict=Verdict.NONE, reason=Reason.CHANCE, segment=None)
    most = support.alpha > 0.5 and 2 * counts.agree > counts.rows and not broken
    if not most and counts.decisive - span.rank <= PLURALITY * counts.rows:
        return replace(draft, verdict=Verdict.NONE, reason=Reason.FEW, segment=None)
    if most:
        draft = replace(draft, verdict=Verdict.MAJORITY)
    else:
        draft = replace(draft, reason=_doubt(broken, support))
    if judges.assumption.errors == "arbitrary" or broken:
        return draft
    declared = as_declared(formula, judges, second_rule)
    draft = replace(draft, independent=declared.known)
    if declared.refuted is not Reason.NOTHING:
        return replace(draft, reason=declared.refuted)
    if not declared.resolution < np.inf:
        return draft
    return replace(draft, verdict=Verdict.CONFIRMED, reason=Reason.NOTHING, resolution=declared.resolution)


def judge_list(agreement: Agreement, n_rows: int, n_follow: int, n_last_place: int, n_columns: int) -> Certificate:
    """Return the certificate of a list of rules, each of which passed its test: a plurality of formulas.

    Parameters
    ----------
    agreement : Agreement
        Of the first rule.
    n_rows, n_follow, n_last_place : int
        All rows, those that follow some rule, and the others that are off one by a last place.
    n_columns : int
        Of each rule, the constant included.
    """
    return Certificate(
        verdict=Verdict.PLURALITY,
        reason=Reason.LIST,
        n_rows=n_rows,
        n_agree=n_follow,
        n_columns=n_columns,
        rank=n_columns,
        n_decisive=n_follow,
        agreement=agreement,
        undetermined=np.zeros((n_columns, 0)),
        undetermined_columns=(),
        n_last_place=n_last_place,
    )


def _doubt(broken: bool, support: Support) -> Reason:
    """Say why a plurality is no more."""
    if broken:
        return Reason.PART
    return Reason.DIRECTION if support.alpha <= 0.5 else Reason.HALF


def _without(judges: Judges, columns: list[int]) -> Judges:
    """Return the judges of formulas without some columns: what may fail is shared by all choices of k of them.

    The numbers k share it as 1 / (k (k + 1)), which adds up to one, after a first look that took all columns.
    """
    rows = judges.rows
    X = rows.X.copy()
    X[:, columns] = 0.0
    d, k = X.shape[1], len(columns)
    looks = judges.assumption.looks * SECOND_LOOK * k * (k + 1) * comb(d, k)
    return replace(
        judges,
        rows=replace(rows, X=X, there=None),
        geometry=geometry_of(X, sample_weight=rows.weights, units=judges.units),
        assumption=replace(judges.assumption, looks=looks),
    )


def _seen(X: FloatArray, span: Span) -> bool:
    """Tell whether some row has a part in a direction that the rows which agree leave open."""
    parts = np.abs(X @ span.undetermined).max(axis=1, initial=0.0)
    return bool((parts > OPEN * np.linalg.norm(X, axis=1)).any())


def _positive(half_widths: FloatArray, X: FloatArray) -> FloatArray:
    """Return the half-widths; where all terms vanish, the rounding of the row's numbers."""
    return np.where(half_widths > 0, half_widths, np.finfo(float).eps * np.abs(X).max(axis=1))


def _span(X: FloatArray, told: BoolArray, support: Support) -> Span:
    """Return the span of the rows that tell a product and agree: that of all rows where these clearly agree in part."""
    d = X.shape[1]
    if support.alpha > CLEARLY_SPANNED and sum(piece.dimension for piece in support.pieces) == d:
        return Span(d, np.arange(d), np.zeros((d, 0)), ())
    return span_of(X[told])


@dataclass(frozen=True, slots=True)
class _Counts:
    """Weights of rows of the whole table: those that some formula fits, those that agree, and so on."""

    rows: float
    agree: float
    decisive: float
    active: float
    last_place: float

    @classmethod
    def of(cls, tally: FloatArray, link: Link, rows: Sample, marks: Marks) -> _Counts:
        kinds = np.arange(KINDS)
        possible, right = kinds & IMPOSSIBLE == 0, kinds & AGREES > 0
        zero = 0.0
        if link.invertible and float(rows.counts.sum()) == float(tally.sum()):
            empty = ~rows.X.any(axis=1)  # zero rows agree with every formula, or with none
            zero = float(rows.counts[empty & (marks & AGREES > 0)].sum())
        decisive = tally[possible & right & (kinds & DECISIVE > 0)].sum()
        return cls(
            rows=float(tally[possible].sum()) - zero,
            agree=float(tally[possible & right].sum()) - zero,
            decisive=float(decisive) - zero,
            active=float(tally[speaks(kinds)].sum()),
            last_place=float(tally[(kinds & LAST_PLACE > 0) & ~right].sum()),
        )


def _nothing(formula: Formula, counts: _Counts, span: Span, beyond: float, n_told: int) -> Reason:
    """Say why there is no rule at all, if there is none."""
    if not formula.link.invertible and counts.active == 0:
        return Reason.LIMITS
    if span.rank == 0 or min(counts.decisive, n_told) <= span.rank:
        return Reason.FEW
    n_terms = int(np.count_nonzero(formula.coef))
    hardly_more = beyond <= min(_SMALL_GAIN * n_terms, counts.decisive / 2)
    return Reason.MODE if hardly_more and counts.agree < counts.rows else Reason.NOTHING


def _is_constant(rows: Sample, agree: BoolArray) -> bool:
    labels = rows.y[agree]
    return bool(len(labels) > 1 and (labels == labels[0]).all())
