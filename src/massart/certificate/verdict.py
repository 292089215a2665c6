"""Verdicts, and the certificate that carries one with all the numbers behind it; columns are numbers, not names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import total_ordering
from typing import TYPE_CHECKING, Any

import numpy as np

from massart.certificate.assumption import PLAIN, Assumption
from massart.certificate.deferred import Deferred, settled
from massart.certificate.independent_errors import IndependentErrors
from massart.certificate.segments import Segment
from massart.certificate.support import Support
from massart.rows import Agreement, FloatArray

if TYPE_CHECKING:
    from massart.report import SegmentFacts


@total_ordering
class Verdict(Enum):
    """What is known about a formula, the strongest first; a stronger verdict is the larger one."""

    PROVEN = 5
    CONFIRMED = 4
    MAJORITY = 3
    PLURALITY = 2
    NOISY = 1
    NONE = 0

    def __lt__(self, other: object) -> bool:
        """Return whether less is known than another verdict says."""
        return self.value < other.value if isinstance(other, Verdict) else NotImplemented

    @property
    def certain(self) -> bool:
        """Whether it is PROVEN or CONFIRMED."""
        return self >= Verdict.CONFIRMED

    @property
    def stands(self) -> bool:
        """Whether more than half of the evidence agrees in every direction, or more is known."""
        return self >= Verdict.MAJORITY


class Bound(Enum):
    """The argument that bounds the rows that another formula can share.

    PACKING: the agreeing rows contain disjoint blocks of independent rows, and another formula misses a row of each.
    FOURTH_MOMENT: the fourth moments of the agreeing rows. EXACT: rows were counted for every other formula.
    """

    PACKING = auto()
    FOURTH_MOMENT = auto()
    EXACT = auto()
    NONE = auto()


class Reason(Enum):
    """Why a verdict is not stronger."""

    NOTHING = auto()
    CHANCE = auto()  # as many rows agree with some formula when the labels are shuffled
    NEAR = auto()  # rows lie near it as densely as on it, or it says less than it costs: noise or an approximation
    FEW = auto()  # any table has a formula for so few rows
    MODE = auto()  # it explains no more than the most frequent value
    DIRECTION = auto()  # in some direction at most half of the evidence agrees
    HALF = auto()  # at most half of the rows agree
    LIMITS = auto()  # too few rows lie between the limits
    PART = auto()  # in a segment of the table most rows break it: another rule may hold there
    CONTESTED = auto()  # rows that would follow it on the other side of a threshold crowd there
    LIST = auto()  # several rules hold, each for some of the rows
    UNEVEN = auto()  # declared independent, but the rows that do not agree depend on the columns
    SECOND_RULE = auto()  # declared independent, but another rule fits many of the other rows


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is known about a formula, and by which numbers; those that decided nothing are computed when first read.

    Attributes
    ----------
    verdict : Verdict
    reason : Reason
        Why it is not more.
    n_rows, n_agree : float
        Rows in all, and rows that the formula fits: sums of weights where rows have weights. Rows that are zero (for a
        linear formula), or that no formula of the model fits (negative labels of a ReLU), are not counted.
    n_last_place : float
        Rows that do not agree, but are off by one unit of the last place only.
    n_columns, rank : int
        Columns, and the rank of the rows that agree (and tell a product, for a link that clips).
    n_decisive : float
        Agreeing rows that can tell two formulas apart: all for a linear formula, those with a label between the limits
        for a link that clips.
    n_active : float or None
        Rows where a link does not clip and the label does not fit for that reason alone: those that speak for the
        formula or against it. None for a linear formula, where all do.
    chance : float
        Rows that agree with some formula when the labels are shuffled, but for those with the most frequent label; as
        far as that was needed.
    agreement : Agreement
        When a row agrees.
    support : Support or None
        The share of the evidence that agrees where it is weakest, and the noise rate that this excludes.
    eta_max : float
        With this confidence either the formula is right, or some label is wrong with a larger probability, or errors
        are not independent.
    assumption : Assumption
        What the user takes for granted: CONFIRMED takes an `eta_max` of `wrong_at_most` or more.
    hyperplane_rows : float or None
        The largest number of decisive rows on which another formula may agree with this one.
    bound : Bound
        How that is known.
    resolution : float
        Of PROVEN and CONFIRMED: formulas that differ by at most this many half-widths of agreement on every row
        count as the same.
    undetermined : (d, d - rank) array
        Orthonormal basis of the directions that the agreeing rows leave undetermined.
    undetermined_columns : tuple of tuples of int
        The columns that those directions involve, in groups that do not interact.
    n_seen : int or None
        Rows whose labels helped to choose the columns, if they did: only other rows confirm.
    thin : tuple of pairs (int, float)
        Columns that were left out of the formula because they rest on so few rows, and these rows.
    constant : bool
        Whether the label is the same in every row that agrees.
    scale : float or None
        Robust scale of the residuals, for NOISY.
    segment : Segment or None
        The segment of the table in which rows that do not agree crowd most surely, if they do: in a range of a column,
        a level, or both. If most of its rows break the formula, the verdict is at most PLURALITY.
    independent : IndependentErrors or None
        What is certain if errors are independent of the columns, where the user declared that they are, and nothing
        else confirms the formula.
    """

    verdict: Verdict
    reason: Reason
    n_rows: float
    n_agree: float
    n_columns: int
    rank: int
    n_decisive: float
    agreement: Agreement
    undetermined: FloatArray
    undetermined_columns: tuple[tuple[int, ...], ...]
    n_last_place: float = 0
    n_active: float | None = None
    chance: float = 0
    support: Support | None = None
    eta_max: Deferred[float] = Deferred(0.0)  # noqa: RUF009  (a descriptor)
    assumption: Assumption = PLAIN
    hyperplane_rows: float | None = None
    bound: Bound = Bound.NONE
    resolution: Deferred[float] = Deferred(0.0)  # noqa: RUF009
    n_seen: int | None = None
    thin: tuple[tuple[int, float], ...] = ()
    constant: bool = False
    scale: float | None = None
    segment: Segment | None = None
    independent: IndependentErrors | None = None

    def __getstate__(self) -> dict[str, Any]:
        return settled(self)

    @property
    def confidence(self) -> float:
        """How sure a confirmed rule is."""
        return self.assumption.confidence

    @property
    def wrong_at_most(self) -> float:
        """The probability with which a label is wrong at most, as the user assumes."""
        return self.assumption.wrong_at_most

    @property
    def noise_rate(self) -> float:
        """The share of the rows that do not agree."""
        return float((self.n_rows - self.n_agree) / self.n_rows) if self.n_rows else 0.0

    @property
    def declared(self) -> bool:
        """Whether it is CONFIRMED because errors were declared independent of the columns."""
        return self.independent is not None and self.verdict is Verdict.CONFIRMED

    @property
    def tolerance(self) -> float:
        """The largest residual, beyond float rounding, that counts as agreement."""
        return self.agreement.label

    @property
    def unconfirmed_columns(self) -> tuple[int, ...]:
        """Columns whose coefficients are determined, but not confirmed."""
        if self.support is None:
            return ()
        open_columns = {j for group in self.undetermined_columns for j in group}
        return tuple(j for j in np.flatnonzero(~self.support.confirmed).tolist() if j not in open_columns)

    def explain(self, names: Sequence[str] | None = None, segment: SegmentFacts | None = None) -> str:
        """Say in plain words what holds, under which assumption, and what is not claimed.

        Parameters
        ----------
        names : sequence of str, optional
            Of the columns; they have numbers without names.
        segment : SegmentFacts, optional
            The segment in which the formula breaks, where more is known of it than the certificate knows.
        """
        from massart.report import explain  # the one step up: a method that users know

        return explain(self, names, segment)

    def __repr__(self) -> str:
        rows = f"{self.n_agree:g} of {self.n_rows:g} rows agree {self.agreement}"
        return f"<Certificate {self.verdict.name}: {rows}>"
