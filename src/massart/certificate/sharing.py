r"""How many rows another formula can share with this one: the bounds in order of their cost, until one proves.

Let w fit a of n rows, and let h bound how many of those another formula can fit, too. If w' fits a row that w fits,
both within t, then :math:`|(w' - w) \cdot x| \le 2t`; so w' fits at most :math:`(n - a) + h` rows, and :math:`a > (n
+ h)/2` proves that w is the unique l0 minimizer. For a link that clips, two parameters that fit a row with a label
between the limits agree on its product, while a row at a limit may be fitted by both: another w' fits at most
:math:`(n_+ - a_+) + h + n_0`, with h counted among the agreeing rows inside the limits. Both are one rule:

    *the decisive rows off every slab outnumber the rows that w does not fit.*

**Slabs.** No label is exact to the last bit, so rows are divided by their half-width t, and every bound is about slabs
:math:`|r \cdot x| \le 2` of rows so scaled, never about hyperplanes. A slab holds all rows if r is small. So a bound
has a *reach*: it holds for every r that exceeds 2 reach on some row, and PROVEN means that every formula which fits as
many rows, within the same half-widths, differs by at most 2 reach of them from this one on every row given.

With fewer rows at hand, m of the a decisive ones with at most h' of them in a slab, h is at most h' + (a - m), and the
rows off every slab are m - h' as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from massart.certificate.blocks import block_cost, failure_ceiling, largest_share, packing_bound, sampled_bound
from massart.certificate.enumeration import enumeration_cost, slab_count
from massart.certificate.fourth_moment import fourth_moment_bound, fourth_moment_cost, largest_off_share
from massart.certificate.span import SLAB_REACH, HyperplaneBound, Span, span_of
from massart.certificate.verdict import Bound
from massart.rows import FloatArray

BUDGET = 4e8
"""Floating-point operations that a bound may cost, about: no more than finding the answer."""

_ENUMERATION_SHARE = 0.05  # of the budget: small operations are slow
_OPERATIONS_PER_DRAW = 100.0  # times k^3
_MOST_DRAWS = 20_000
_WEIGHT_ROUNDING = 1e-9  # sums of weights that are not whole numbers


@dataclass(frozen=True, slots=True)
class Decisive:
    """Decisive rows that agree, and what has to be shown of them: more than `wrong` of them off every slab.

    Attributes
    ----------
    rows : (m, d) array
        Some or all of the decisive rows that agree, none zero, divided by their half-widths.
    weights : (m,) array or None
    total : float
        The weight of all decisive rows that agree.
    wrong : float
        The weight of the rows that do not.
    limit : float
        Largest reach of rows that count as independent.
    """

    rows: FloatArray
    weights: FloatArray | None
    total: float
    wrong: float
    limit: float = SLAB_REACH

    @property
    def at_hand(self) -> float:
        """The weight of the rows given."""
        return float(len(self.rows) if self.weights is None else self.weights.sum())

    @property
    def slack(self) -> float:
        """What rounding may do to sums of weights: nothing to whole numbers."""
        is_whole = float(self.total).is_integer() and float(self.wrong).is_integer()
        is_whole &= self.total + self.wrong <= 2.0**53  # beyond, sums of whole numbers round, too
        if is_whole and (self.weights is None or bool((self.weights == np.rint(self.weights)).all())):
            return 0.0
        return _WEIGHT_ROUNDING * (self.total + self.wrong)

    def proves(self, bound: HyperplaneBound) -> bool:
        """Tell whether more rows are off every slab than are wrong."""
        return self.at_hand - bound.rows > self.wrong + self.slack

    def shared(self, bound: HyperplaneBound) -> float:
        """Return how many of all decisive rows another formula can share."""
        return bound.rows + max(self.total - self.at_hand, 0.0)


@dataclass(frozen=True, slots=True)
class Sharing:
    """What is known about the rows that another formula can share.

    Attributes
    ----------
    rows : float or None
        At most so many of the decisive rows.
    bound : Bound
        How that is known.
    proven : bool
        Whether therefore no other formula fits as many rows.
    reach : float
        In half-widths: what does not differ by twice as much on some row is no other formula.
    """

    rows: float | None
    bound: Bound
    proven: bool
    reach: float


def bound_sharing(case: Decisive, *, span: Span | None = None) -> Sharing:
    """Bound the rows that another formula can share, for certain: by packing, counting, or fourth moments.

    `span` is that of the rows, if it is known.
    """
    best, bound = None, Bound.NONE
    if case.at_hand <= case.wrong:  # then nothing that is known of these rows proves anything
        return Sharing(None, bound, False, np.inf)
    if span is None:
        span = span_of(case.rows)
    for name, found in _bounds(case, case.rows[:, span.columns]):
        if case.proves(found):
            return Sharing(case.shared(found), name, True, found.reach)
        if best is None or found.rows < best.rows:
            best, bound = found, name
    return Sharing(None if best is None else case.shared(best), bound, False, np.inf)


def is_affordable(k: int, n_rows: int, wrong: float) -> bool:
    """Tell whether some bound of so many rows that span k columns may be within the budget."""
    if k == 0:
        return False
    counting = enumeration_cost(k, k) <= _ENUMERATION_SHARE * BUDGET  # rows that span have k directions at least
    moments = wrong < largest_off_share(k) * n_rows and fourth_moment_cost(n_rows, k) <= BUDGET
    return counting or moments or _may_pack(k, n_rows, wrong)


def _may_pack(k: int, n_rows: float, wrong: float) -> bool:
    """Tell whether so many rows may hold more blocks than rows are wrong, within the budget."""
    return n_rows > k * wrong and (wrong + 1) * block_cost(k) <= BUDGET


def _bounds(case: Decisive, rows: FloatArray) -> Iterator[tuple[Bound, HyperplaneBound]]:
    """Yield bounds in order of cost, leaving out those that cannot prove enough; `rows` have full column rank."""
    k = rows.shape[1]
    if k == 0:
        return
    weights, at_hand, wrong = case.weights, case.at_hand, case.wrong
    found: HyperplaneBound | None
    if _may_pack(k, at_hand, wrong):
        found = packing_bound(rows, wrong + case.slack, sample_weight=weights, limit=case.limit, budget=BUDGET)
        if found is not None:
            yield Bound.PACKING, found
    found = slab_count(rows, sample_weight=weights, limit=case.limit, budget=_ENUMERATION_SHARE * BUDGET)
    if found is not None:
        yield Bound.EXACT, found
        return
    if wrong < largest_off_share(k) * at_hand:
        found = fourth_moment_bound(rows, sample_weight=weights, limit=case.limit, budget=BUDGET)
        if found is not None:
            yield Bound.FOURTH_MOMENT, found


def sample_sharing(case: Decisive, rng: np.random.Generator, *, confidence: float, wanted: float) -> float | None:
    """Bound the rows that another formula can share, with confidence, by random blocks of the decisive rows.

    Parameters
    ----------
    case : Decisive
    rng : numpy.random.Generator
    confidence : float
    wanted : float
        Only a bound of at most so many rows is of use: where no number of draws could give it, none is made.
    """
    span = span_of(case.rows)
    rows = case.rows[:, span.columns]
    k = rows.shape[1]
    n_draws = int(min(_MOST_DRAWS, BUDGET / (_OPERATIONS_PER_DRAW * k**3))) if k else 0
    if not n_draws:
        return None
    ceiling = failure_ceiling(0, n_draws, confidence)
    weighted = case.weights is not None
    least = case.at_hand * ceiling ** (1 / k) if weighted else float(largest_share(len(rows), k, ceiling))
    if case.shared(HyperplaneBound(least)) > wanted:
        return None
    found = sampled_bound(
        rows, rng, n_draws=n_draws, confidence=confidence, sample_weight=case.weights, limit=case.limit
    )
    return None if found is None else case.shared(found)
