"""The noise rate that is excluded for a formula: by support, on held-out rows for a link that clips, or by counting."""

from __future__ import annotations

import numpy as np

from massart.certificate import Decisive, Sharing, Support, geometry_of, measure_support, sample_sharing, span_of
from massart.certificate.simulation import counting_eta_max
from massart.certificate.support import held_out_support
from massart.recover.judges import Formula, Judges, measure_support_of
from massart.rows import AGREES, BoolArray, FloatArray, Sample, Verified
from massart.rows.marks import Marks


def excluded(
    formula: Formula, judges: Judges, support: Support, found: Verified, marks: Marks
) -> tuple[float, FloatArray]:
    """Return the noise rate that is excluded, and how far coefficients may be off then.

    Where labels helped to choose the columns, by the rows that took no part in it.
    """
    others = judges.unseen
    if others is None:
        return 0.0, np.full(len(formula.coef), np.inf)
    if others is not judges:
        found, marks = formula.marks(others.rows)
        support = measure_support_of(formula, others, found, marks)
    if formula.link.invertible:
        return support.eta_max, support.on_rows
    return _eta_max_of_link(formula, others, found, marks)


def resolution_of(rows: Sample, found: Verified, widths: FloatArray) -> float:
    """Return by how many half-widths a rival may differ on a row that differs by at most so much in coefficients."""
    if not np.isfinite(widths).all():
        if not np.isfinite(widths[rows.X.any(axis=0)]).all():
            return np.inf
        widths = np.where(np.isfinite(widths), widths, 0.0)
    used = found.half_widths > 0
    if not used.any():
        return np.inf
    differences = rows.magnitudes(widths)
    return float((differences[used] / found.half_widths[used]).max())


def _eta_max_of_link(formula: Formula, judges: Judges, found: Verified, marks: Marks) -> tuple[float, FloatArray]:
    """Return the noise rate that is excluded, and how far coefficients may be off then.

    By held-out rows between the limits, or by all rows, whatever w is.
    """
    if not judges.assumption.excludes:
        return 0.0, np.full(judges.rows.X.shape[1], np.inf)
    confidence, bound = judges.assumption.each, judges.assumption.wrong_at_most
    inside = (marks & AGREES > 0) & _inside(formula, found)
    whole = measure_support(
        judges.geometry,
        judges.rows.X,
        inside,
        found.half_widths,
        bound=bound,
        confidence=confidence,
        rng=judges.rng,
        simulate=False,
    )
    if judges.held_out is None:
        return whole.eta_max, whole.on_rows
    part = judges.held_out & _inside(formula, found)  # by X and the frozen formula alone
    rows, units = judges.rows.take(part), None if judges.units is None else judges.units[part]
    if not part.any() or span_of(rows.X).rank < rows.X.shape[1]:
        return whole.eta_max, whole.on_rows
    support = held_out_support(
        geometry_of(rows.X, sample_weight=rows.weights, units=units),
        rows.X,
        found.agree[part],
        found.half_widths[part],
        bound=bound,
        confidence=(1 + confidence) / 2,
    )
    best = max(whole, support, key=lambda one: one.eta_max)
    return best.eta_max, best.on_rows


def _inside(formula: Formula, rows: Verified) -> BoolArray:
    """Return the rows whose product is between the limits by more than two half-widths."""
    t = 2 * rows.half_widths
    return np.asarray((rows.products > formula.link.lower + t) & (rows.products < formula.link.upper - t))


def excluded_by_counting(case: Decisive, sharing: Sharing, n_rows: float, n_agree: float, judges: Judges) -> float:
    """Return the noise rate that is excluded since a wrong formula needs as many wrong rows as it does not share."""
    counts = judges.rows.weights is None and judges.units is None and judges.reserved
    if not counts or not judges.assumption.excludes:
        return 0.0
    delta = (1 - judges.assumption.each) * judges.reserved
    n = int(n_rows)
    best = 0.0
    if sharing.rows is not None:
        best = counting_eta_max(n, int(n_agree), int(sharing.rows), delta)
    if best < judges.assumption.wrong_at_most:
        # Half of the rows and some deviations more: below that no number of shared rows would do.
        wanted = n_agree - judges.assumption.wrong_at_most * n - np.sqrt(n)
        shared = sample_sharing(case, judges.rng, confidence=1 - delta / 2, wanted=wanted)
        if shared is not None:
            best = max(best, counting_eta_max(n, int(n_agree), int(np.ceil(shared)), delta / 2))
    return best
