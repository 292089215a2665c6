"""Verdicts: a list of rungs (verdict, reason, condition), read from the top; the first condition that holds decides.

This is the only place that makes a verdict of a rule, and the only one that makes a certificate. The conditions are
about numbers (:class:`Evidence`), and a number that is expensive is computed when a condition first asks for it: so the
order of the rungs, and of the conditions within each, is the order of cost.

- PROVEN: counting shows that no other rule fits as many rows (:mod:`massart.certificate.counting`), for certain.
- CONFIRMED: support (:mod:`massart.certificate.support`) or counting excludes every other rule with the confidence
  stated, unless some label is wrong with a probability above `wrong_at_most`, or errors depend on each other. Declared
  independent of the columns, errors may be more than half of the rows (:mod:`massart.certificate.independent_errors`),
  unless the rows refute the declaration.
- MAJORITY: more than half of the evidence agrees in every direction.
- PLURALITY: it stands out from chance and noise, but no more than that; or most rows of a segment break the rule
  (:mod:`massart.certificate.segments`), which refutes what the verdicts above take for granted.
- NOISY: an estimate; nothing is proven of it (:func:`certify_counts`).
- NONE: no more than chance, the most frequent value or an approximation explains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from massart.certificate.assumption import Assumption
from massart.certificate.counting import Sharing
from massart.certificate.deferred import Deferred
from massart.certificate.independent_errors import IndependentErrors
from massart.certificate.segments import Segment
from massart.certificate.span import Span
from massart.certificate.support import Support
from massart.certificate.verdict import Certificate, Reason, Verdict
from massart.rows import Agreement

PLURALITY = 0.05
"""Share of the rows, beyond those that any rule fits, that follow a plurality at least."""

DEVIATIONS = 3.0
"""Standard deviations of the rows that agree by chance by which a rule exceeds them."""

HALF = 0.5 + 1e-9
"""Share of the evidence in each direction that a majority exceeds: tables of levels have exact halves, which round."""

SMALL_GAIN = 2
"""Rows for each of its terms that a rule explains beyond the most frequent value, at least."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What is certain if errors are independent of the columns, as the user declared.

    Attributes
    ----------
    known : IndependentErrors
    refuted : Reason
        What speaks against the declaration, where that was looked for: only where something is known by it.
    resolution : float
        By how many half-widths of agreement the right rule may differ on a row; infinite if that is not known, or too
        much to confirm the rule.
    """

    known: IndependentErrors
    refuted: Reason = Reason.NOTHING
    resolution: float = inf


@dataclass(frozen=True)
class Evidence:
    """The numbers that verdicts are made of; those from `span` on may be functions, called when a rung first asks.

    Attributes
    ----------
    assumption, agreement, n_rows, n_agree, n_decisive, n_last_place, n_active, n_columns, thin, n_seen
        As in :class:`Certificate`.
    n_terms : int
        Columns with a coefficient other than zero.
    n_distinct : int
        Different rows, whatever they weigh, that agree and tell two rules apart.
    span : Span
        Of these rows.
    beyond : float
        Rows that agree, but for those with the most frequent label, scaled to the whole table.
    constant : bool
        Whether all rows that agree have one label.
    support : Support
    sharing : Sharing
        How many rows another rule can share.
    leaves_open : bool
        Whether some row has a part in a direction that the rows which agree leave open.
    segment : Segment or None
        The one that breaks the rule most surely.
    excludes_others : bool
        Whether chance explains no other rule, but for delta, if labels are wrong at the rate `wrong_at_most`.
    eta_max, resolution : float
        The largest rate for which that holds, and by how many half-widths of agreement another rule may differ on a row
        all the same.
    chance : float
        Rows that some rule explains when labels are shuffled.
    is_noise : bool
        Whether noise explains better than rounded columns how far rows are from the rule.
    stands_out : bool
        Whether rows that did not choose its terms show the rule: far more of them agree than lie near it, and it says
        more of the order of their labels than it takes to write it down.
    declared : Declared
        What is certain if errors are independent; asked only where the user declares it.
    contested : bool
        Whether rows crowd at a threshold of the rule that would follow it on the other side.
    """

    assumption: Assumption
    agreement: Agreement
    n_rows: float
    n_agree: float
    n_decisive: float
    n_last_place: float
    n_active: float | None
    n_columns: int
    thin: tuple[tuple[int, float], ...]
    n_seen: int | None
    n_terms: int
    n_distinct: int
    span: Deferred[Span] = Deferred()  # noqa: RUF009  (descriptors)
    beyond: Deferred[float] = Deferred()  # noqa: RUF009
    constant: Deferred[bool] = Deferred()  # noqa: RUF009
    support: Deferred[Support] = Deferred()  # noqa: RUF009
    sharing: Deferred[Sharing] = Deferred()  # noqa: RUF009
    leaves_open: Deferred[bool] = Deferred()  # noqa: RUF009
    segment: Deferred[Segment | None] = Deferred()  # noqa: RUF009
    excludes_others: Deferred[bool] = Deferred()  # noqa: RUF009
    eta_max: Deferred[float] = Deferred()  # noqa: RUF009
    resolution: Deferred[float] = Deferred()  # noqa: RUF009
    chance: Deferred[float] = Deferred()  # noqa: RUF009
    is_noise: Deferred[bool] = Deferred()  # noqa: RUF009
    stands_out: Deferred[bool] = Deferred()  # noqa: RUF009
    declared: Deferred[Declared] = Deferred()  # noqa: RUF009
    contested: bool = False


@dataclass(frozen=True, slots=True)
class Rung:
    """A verdict, why it is not a stronger one, and when it is reached."""

    verdict: Verdict
    reason: Reason
    holds: Callable[[Evidence], bool]


# The conditions


def _is_small(e: Evidence) -> bool:
    return e.span.rank == 0 or min(e.n_decisive, e.n_distinct) <= e.span.rank


def _is_mode(e: Evidence) -> bool:
    return e.n_agree < e.n_rows and e.beyond <= min(SMALL_GAIN * e.n_terms, e.n_decisive / 2)


def _is_broken(e: Evidence) -> bool:
    return e.contested or (e.segment is not None and e.segment.is_accused)


def _is_proven(e: Evidence) -> bool:
    return e.sharing.proven and e.n_seen is None and not e.leaves_open and not _is_broken(e)


def _is_confirmed(e: Evidence) -> bool:
    return e.support.alpha > 0 and not _is_broken(e) and e.excludes_others


def _is_majority(e: Evidence) -> bool:
    return e.support.alpha > HALF and 2 * e.n_agree > e.n_rows and not _is_broken(e)


def _is_chance(e: Evidence) -> bool:
    return _is_majority(e) and e.beyond <= e.chance + DEVIATIONS * (1 + sqrt(max(e.chance - e.span.rank, 0.0)))


def _is_little(e: Evidence) -> bool:
    return not _is_majority(e) and e.n_decisive - e.span.rank <= PLURALITY * e.n_rows


def _is_near(e: Evidence) -> bool:
    return not _is_majority(e) and not e.stands_out


def _is_declared(e: Evidence) -> bool:
    return e.assumption.errors == "independent" and not _is_broken(e)


def _refuted_by(reason: Reason) -> Callable[[Evidence], bool]:
    return lambda e: _is_declared(e) and e.declared.refuted is reason


def _is_confirmed_as_declared(e: Evidence) -> bool:
    return _is_declared(e) and e.declared.refuted is Reason.NOTHING and e.declared.resolution < inf


WITHOUT_RULE = (
    Rung(Verdict.NONE, Reason.LIMITS, lambda e: e.n_active == 0),
    Rung(Verdict.NONE, Reason.FEW, _is_small),
    Rung(Verdict.NONE, Reason.MODE, _is_mode),
    Rung(Verdict.NONE, Reason.NEAR, lambda e: e.is_noise),
)
"""Counts, and how far rows are from it, show that there is nothing to judge."""

CERTAIN = (
    Rung(Verdict.PROVEN, Reason.NOTHING, _is_proven),
    Rung(Verdict.CONFIRMED, Reason.NOTHING, _is_confirmed),
)
"""What is certain, under the assumption."""

OTHERWISE = (
    Rung(Verdict.NONE, Reason.CHANCE, _is_chance),
    Rung(Verdict.NONE, Reason.FEW, _is_little),
    Rung(Verdict.CONFIRMED, Reason.NOTHING, _is_confirmed_as_declared),
    Rung(Verdict.NONE, Reason.NEAR, _is_near),
    Rung(Verdict.PLURALITY, Reason.CONTESTED, lambda e: e.contested),
    Rung(Verdict.PLURALITY, Reason.PART, _is_broken),
    Rung(Verdict.MAJORITY, Reason.UNEVEN, lambda e: _is_majority(e) and _refuted_by(Reason.UNEVEN)(e)),
    Rung(Verdict.MAJORITY, Reason.SECOND_RULE, lambda e: _is_majority(e) and _refuted_by(Reason.SECOND_RULE)(e)),
    Rung(Verdict.MAJORITY, Reason.NOTHING, _is_majority),
    Rung(Verdict.PLURALITY, Reason.UNEVEN, _refuted_by(Reason.UNEVEN)),
    Rung(Verdict.PLURALITY, Reason.SECOND_RULE, _refuted_by(Reason.SECOND_RULE)),
    Rung(Verdict.PLURALITY, Reason.DIRECTION, lambda e: e.support.alpha <= HALF),
    Rung(Verdict.PLURALITY, Reason.HALF, lambda e: True),
)
"""What is not certain; the last one always holds."""


def judge(evidence: Evidence) -> Certificate:
    """Return the certificate of a rule, given the numbers.

    Parameters
    ----------
    evidence : Evidence
        Any object with these attributes.
    """
    e = evidence
    rung = next(rung for rung in (*WITHOUT_RULE, *CERTAIN, *OTHERWISE) if rung.holds(e))
    known = _counts(e)
    if rung in WITHOUT_RULE:
        if rung.reason is Reason.FEW and e.n_distinct <= e.span.rank:
            known["n_decisive"] = e.n_distinct
        return Certificate(rung.verdict, rung.reason, **known)
    known |= {
        "constant": e.constant,
        "support": e.support,
        "eta_max": vars(e)["eta_max"],  # a value or a function that gives it, but not the rest of the evidence
        "hyperplane_rows": None if e.sharing.rows is None else whole(e.sharing.rows),
        "bound": e.sharing.bound,
        "n_seen": e.n_seen,
    }
    if rung.verdict is not Verdict.NONE:
        known["segment"] = e.segment
    if rung in CERTAIN:
        proven = rung.verdict is Verdict.PROVEN
        known["resolution"] = 2 * e.sharing.reach if proven else vars(e)["resolution"]
        return Certificate(rung.verdict, rung.reason, **known)
    if _is_majority(e):  # others stand out, or there is nothing to compare
        known["chance"] = whole(round(e.chance))
    if rung.verdict is not Verdict.NONE and _is_declared(e):
        known["independent"] = e.declared.known
    if rung.verdict is Verdict.CONFIRMED:
        known["resolution"] = e.declared.resolution
    return Certificate(rung.verdict, rung.reason, **known)


def _counts(e: Evidence) -> dict[str, Any]:
    """Return what is known of a rule by counting rows alone."""
    return {
        "n_rows": whole(e.n_rows),
        "n_agree": whole(e.n_agree),
        "n_columns": e.n_columns,
        "rank": e.span.rank,
        "n_decisive": whole(e.n_decisive),
        "agreement": e.agreement,
        "undetermined": e.span.undetermined,
        "undetermined_columns": e.span.groups,
        "n_last_place": whole(e.n_last_place),
        "n_active": None if e.n_active is None else whole(e.n_active),
        "assumption": e.assumption,
        "thin": e.thin,
    }


def certify_counts(
    verdict: Verdict,
    agreement: Agreement,
    assumption: Assumption,
    *,
    n_rows: float,
    n_agree: float,
    span: Span,
    n_last_place: float = 0,
    reason: Reason = Reason.NOTHING,
    scale: float | None = None,
) -> Certificate:
    """Return the certificate of what was judged elsewhere, with the counts of these rows.

    Of a saved rule it is the verdict that the rule had when it was found; of a list of rules, each of which passed its
    test, it is a plurality; of an estimate, whose inliers are not exact, it is NOISY, and nothing is proven.

    Parameters
    ----------
    verdict : Verdict
    agreement : Agreement
        Of the first rule; of an estimate up to which residual a row counts as an inlier.
    assumption : Assumption
    n_rows, n_agree, n_last_place : float
        All rows, those that follow some rule, and the others that are off one by a last place.
    span : Span
        Of the rows that follow a rule.
    reason : Reason
    scale : float, optional
        Of the inliers' residuals.
    """
    return Certificate(
        verdict=verdict,
        reason=reason,
        n_rows=whole(n_rows),
        n_agree=whole(n_agree),
        n_columns=len(span.undetermined),
        rank=span.rank,
        n_decisive=whole(n_agree),
        agreement=agreement,
        undetermined=span.undetermined,
        undetermined_columns=span.groups,
        n_last_place=n_last_place,
        assumption=assumption,
        scale=scale,
    )


def whole(value: float) -> float:
    """Return whole numbers as int: counts read as counts."""
    return int(value) if float(value).is_integer() else float(value)
