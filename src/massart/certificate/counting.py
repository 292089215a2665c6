r"""Counting: how many rows another formula can share with this one, by bounds on the rows of a slab.

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

**Some of the rows.** With m of the a decisive ones, at most h' of them in a slab, h is at most h' + (a - m), and the
rows off every slab are m - h' as before.

**Bounds.** Disjoint blocks of independent rows (packing), all hyperplanes that d - 1 rows span (enumeration) and fourth
moments (:mod:`massart.certificate.fourth_moment`) bound h for certain. A block counts as independent if its reach is
bounded (:mod:`massart.certificate.span`); in doubt it does not, which makes the bounds larger. They are tried in the
order of cost, until one proves. Each decides cases that the others cannot afford or miss (600 tables of 1 to 30
columns): moments prove 94 % of what can be proven, enumeration the most of small integers, and packing serves many
columns with few wrong rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb

import numpy as np
import scipy.linalg as sla

from massart.certificate.fourth_moment import fourth_moment_bound, fourth_moment_cost, largest_off_share
from massart.certificate.span import (
    GOLDEN,
    SLAB_REACH,
    HyperplaneBound,
    Span,
    coordinates,
    hyperplane_normals,
    parallel_classes,
    span_of,
)
from massart.certificate.verdict import Bound
from massart.rows import FloatArray

BUDGET = 4e8
"""Floating-point operations that a bound may cost, about: no more than finding the answer."""

_ENUMERATION_SHARE = 0.05  # of the budget: small operations are slow
_WEIGHT_ROUNDING = 1e-9  # sums of weights that are not whole numbers
_POOL = 3  # rows to choose a block from, in units of k
_GLIMPSE = 1000  # rows that show when there are too many directions
_OVERHEAD = 20.0  # what a small operation costs next to one in a large product


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
    def given(self) -> float:
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


@dataclass(frozen=True, slots=True)
class Sharing:
    """What is known about the rows that another formula can share.

    Attributes
    ----------
    rows : float or None
        The largest number of the decisive rows that it may share.
    bound : Bound
        How that is known.
    proven : bool
        Whether therefore no other formula fits as many rows.
    reach : float
        In half-widths: a formula that nowhere differs by twice as much counts as the same.
    """

    rows: float | None
    bound: Bound
    proven: bool
    reach: float


def bound_sharing(case: Decisive, *, span: Span | None = None) -> Sharing:
    """Bound the rows that another formula can share, for certain: by packing, counting, or fourth moments.

    `span` is that of the rows, if it is known.
    """
    best = Sharing(None, Bound.NONE, False, np.inf)
    if case.given <= case.wrong:  # then nothing that is known of these rows proves anything
        return best
    for name, found in _bounds(case, case.rows[:, (span or span_of(case.rows)).columns]):
        shared = found.rows + max(case.total - case.given, 0.0)
        if case.given - found.rows > case.wrong + case.slack:  # more rows are off every slab than are wrong
            return Sharing(shared, name, True, found.reach)
        if best.rows is None or shared < best.rows:
            best = replace(best, rows=shared, bound=name)
    return best


def is_affordable(k: int, n_rows: int, wrong: float) -> bool:
    """Return whether some bound of n_rows rows that span k columns may be within the budget."""
    counting = enumeration_cost(k, k) <= _ENUMERATION_SHARE * BUDGET  # rows that span have k directions at least
    moments = wrong < largest_off_share(k) * n_rows and fourth_moment_cost(n_rows, k) <= BUDGET
    return counting or moments or _may_pack(k, n_rows, wrong)


def _may_pack(k: int, n_rows: float, wrong: float) -> bool:
    """Return whether the rows may hold more blocks than rows are wrong, within the budget."""
    return n_rows > k * wrong and (wrong + 1) * block_cost(k) <= BUDGET


def _bounds(case: Decisive, rows: FloatArray) -> Iterator[tuple[Bound, HyperplaneBound]]:
    """Yield bounds in order of cost, leaving out those that cannot prove enough; `rows` have full column rank."""
    k = rows.shape[1]
    if k == 0:
        return
    weights, given, wrong = case.weights, case.given, case.wrong
    found: HyperplaneBound | None
    if _may_pack(k, given, wrong):
        found = packing_bound(rows, wrong + case.slack, weights=weights, limit=case.limit, budget=BUDGET)
        if found is not None:
            yield Bound.PACKING, found
    found = slab_count(rows, weights=weights, limit=case.limit, budget=_ENUMERATION_SHARE * BUDGET)
    if found is not None:
        yield Bound.EXACT, found
        return
    if wrong < largest_off_share(k) * given:
        found = fourth_moment_bound(rows, weights=weights, limit=case.limit, budget=BUDGET)
        if found is not None:
            yield Bound.FOURTH_MOMENT, found


def packing_bound(
    rows: FloatArray,
    needed: float,
    *,
    weights: FloatArray | None = None,
    limit: float = SLAB_REACH,
    budget: float = np.inf,
) -> HyperplaneBound | None:
    r"""Bound the rows of one hyperplane by packing disjoint blocks of independent rows.

    Proof. Let b disjoint blocks of d independent rows each be found among the a rows. A hyperplane with normal r
    misses at least one row of each block, since d independent rows are orthogonal to no :math:`r \ne 0`. Hence
    :math:`h \le a - b`. With weights :math:`c_i` let the block j take the same amount :math:`m_j` from each of its
    rows, with :math:`\sum_{j \ni i} m_j \le c_i`; the rows missed weigh at least :math:`\sum_j m_j`. For slabs, r
    exceeds :math:`2t` on a row of each block if it exceeds :math:`2t` times the largest reach on any row.

    Parameters
    ----------
    rows : (n, d) array
        Non-zero rows.
    needed : float
        Stop as soon as the blocks weigh more than this.
    weights : (n,) array, optional
    limit : float
        Largest reach of a block that counts as independent.
    budget : float
        Floating-point operations to spend, about.

    Returns
    -------
    HyperplaneBound or None
        None when not one block is found.

    Examples
    --------
    >>> import numpy as np
    >>> packing_bound(np.random.default_rng(0).standard_normal((100, 5)), needed=10).rows
    89.0
    """
    n, k = rows.shape
    left = np.ones(n) if weights is None else weights.copy()
    total = float(left.sum())
    place = coordinates(rows[left > 0])
    if place is None:
        return None
    left = left[left > 0]
    # Rows near each other in a table resemble each other; rows of like weight waste the least in one block.
    order = np.argsort((np.arange(left.size) * GOLDEN) % 1.0, kind="stable")
    order = order[np.argsort(-left[order], kind="stable")]
    pool, taken, size = order[:0], 0, _POOL * k
    packed = worst = spent = 0.0
    while packed <= needed and spent < budget:
        fresh = order[taken : taken + size - pool.size]
        pool, taken = np.concatenate([pool, fresh]), taken + fresh.size
        if pool.size < k:
            break
        block = pool[sla.qr(place.Y[pool].T, mode="r", pivoting=True)[1][:k]]  # by pivoted elimination
        reach = float(place.reach(place.Y[block]))
        spent += block_cost(k, pool.size)
        if reach > limit:
            if taken == order.size:
                break
            size *= 2
            continue
        amount = float(left[block].min())
        packed += amount
        worst = max(worst, reach)
        left[block] -= amount
        pool = pool[left[pool] > 0]
    return HyperplaneBound(total - packed, worst) if packed > 0 else None


def block_cost(k: int, pool: int | None = None) -> float:
    """Return about how many floating-point operations it takes to choose one block of k rows and to check it: 10 p k^2.

    p is the number of rows that it is chosen from.
    """
    return 10.0 * (_POOL * k if pool is None else pool) * k * k


def slab_count(
    rows: FloatArray, *, weights: FloatArray | None = None, limit: float = SLAB_REACH, budget: float = 1e9
) -> HyperplaneBound | None:
    r"""Count the rows of the fullest slab :math:`|r \cdot x| \le 2` by enumeration, for every r that is not small.

    Proof that nothing is missed. Let S be the rows of a slab and B those d of them of largest volume, in coordinates
    of :func:`massart.certificate.span.coordinates`, so that each row of S is a combination of B with coefficients of
    size at most 1. If B has a reach up to the limit then r is at most 2 reach on every row, and no other formula.
    Otherwise :math:`\sigma_{\min}(B) < \sqrt k \, |y|_{\max} / limit`, and some row b of B is within
    :math:`\sqrt k \, \sigma_{\min}(B)` of the span of the d - 1 others, whose normal is tried; then all of S is
    within the same distance of that hyperplane, and counted. Where S has a rank below d the distance is zero. Rows
    that are merely near are counted, too: the count can only be too large.

    Parameters
    ----------
    rows : (n, d) array
        Non-zero rows that span R^d, divided by their half-widths of agreement.
    weights : (n,) array, optional
    limit : float
        Largest reach of rows that count as independent.
    budget : float
        Floating-point operations to spend, about: the directions' subsets of d - 1 times the directions.

    Returns
    -------
    HyperplaneBound or None
        None when the rows do not span or the budget does not suffice.

    Examples
    --------
    >>> slab_count(1e6 * np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 2, 0], [0, 0, 1]])).rows
    4.0
    """
    d = rows.shape[1]
    if enumeration_cost(len(parallel_classes(rows[:_GLIMPSE], None)[0]), d) > budget:
        return None
    place = coordinates(rows)
    if place is None:
        return None
    near = d * place.longest / limit + place.error
    lengths = np.linalg.norm(place.Y, axis=1)
    # The shortest row of each class of parallel rows stands for it: where it is near, all may be.
    order = np.argsort(lengths, kind="stable")
    first, class_weights = parallel_classes(rows[order], None if weights is None else weights[order])
    Y = place.Y[order][first]
    if enumeration_cost(len(Y), d) > budget:
        return None
    held = [float(((np.abs(normals @ Y.T) <= near) @ class_weights).max()) for normals in hyperplane_normals(Y)]
    return HyperplaneBound(max(held), limit)


def enumeration_cost(n_directions: int, d: int) -> float:
    """Return about how many floating-point operations it takes to enumerate the hyperplanes of these directions."""
    return float(comb(n_directions, d - 1)) * (2.0 * n_directions * d + _OVERHEAD * d**3)
