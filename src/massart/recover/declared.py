"""What is certain of a formula if errors depend neither on the columns nor on each other, as the user may declare.

The declaration is refuted by a second rule (two formulas with different slopes cannot both have many rows then), and by
wrong rows that depend on a column. Neither costs confidence: both can only withdraw a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from massart.certificate import (
    IndependentErrors,
    Reason,
    certify_independent,
)
from massart.recover.judges import Formula, Judges
from massart.recover.sharpness import is_sharp
from massart.rows import AGREES, Level
from massart.rows.agreement import EPS

MOST_ROUNDED, MOST_EXACT = 2e3, 1e8
"""Half-widths by which the right formula may differ on a row, at most, for a verdict: of rounded labels, and of float
arithmetic, which leaves seven digits then."""

_EXACT = (Level.EXACT, Level.LABEL, Level.GIVEN)
"""Levels at which right labels are off by what does not depend on the coefficients."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What the declaration gives.

    Attributes
    ----------
    known : IndependentErrors
    refuted : Reason
        What speaks against the declaration, where that was looked for: only where something is known by it.
    resolution : float
        By how many half-widths of agreement the right formula may differ on a row; infinite if that is not known, or
        too much to confirm the formula.
    """

    known: IndependentErrors
    refuted: Reason = Reason.NOTHING
    resolution: float = np.inf


def as_declared(formula: Formula, judges: Judges, second_rule: Callable[[], bool] | None) -> Declared:
    """Return what is certain of a formula if errors are independent; nothing where there are weights or clusters.

    Parameters
    ----------
    formula : Formula
    judges : Judges
    second_rule : callable or None
        Returns whether another rule is certified among the rows that do not agree; nothing is confirmed without it.
    """
    others, nothing = judges.unseen, Declared(IndependentErrors(0, 0))  # labels of others did not choose the columns
    if others is None or others.rows.weights is not None or others.units is not None:
        return nothing
    agreement = formula.agreement
    if not formula.link.invertible or agreement.level not in _EXACT or not judges.assumption.excludes:
        return nothing
    found, marks = formula.marks(others.rows)
    agree = marks & AGREES > 0
    if not agree.any():
        return nothing
    # Rounded noise has no edge: no label of it is right, and the declaration speaks of right labels.
    if not is_sharp(others.rows, found, agreement, formula.link, others.rows.X.shape[1]):
        return nothing
    half, rounded = float(found.half_widths[agree].max()), agreement.rounded or agreement.precision > EPS
    known = certify_independent(
        others.rows.X,
        found.residuals,
        agree,
        half,
        rounded=rounded,
        rng=judges.rng,
        failure=1 - judges.assumption.each,
    )
    if not known.slopes and not known.confirmed:
        return Declared(known)
    if not judges.is_even(formula.marks(judges.rows)[1]):
        return Declared(known, Reason.UNEVEN)
    if second_rule is None or second_rule():
        return Declared(known, Reason.SECOND_RULE)
    too_coarse = known.within > (MOST_ROUNDED if rounded else MOST_EXACT) * half
    return Declared(known, resolution=np.inf if too_coarse else known.within / half)
