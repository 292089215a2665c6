r"""One more rule in a table: how many rows chance and the rules that are known already could give to any formula.

**Model.** Rules :math:`w_1, \dots, w_{j-1}` are known. Each label is :math:`y = x \cdot a + \epsilon`, where a is 0 or
one of these rules, and the pair :math:`(a, \epsilon)` depends neither on the columns nor on other rows. Call such a
pair a *mechanism*: a = 0 is a label that has nothing to do with its row, a rule with :math:`\epsilon = 25` is "off by
25". A row is *left* if no known rule fits it within h.

**Theorem.** The probability that any formula w fits k or more of the left rows is at most

.. math::
    \binom{n}{p} 2^p \; P\bigl(\mathrm{Bin}(n - p, q) \ge k - p\bigr), \qquad
    q = \sum_a \sup_t P\bigl(a, |\epsilon - t| \le h, \text{ and } |\epsilon| > h \text{ if } a \ne 0\bigr),

if :math:`k - p \ge q (n - p) + 1`.

*Proof.* A left row of mechanism a fits w only if :math:`\epsilon` is within h of :math:`x \cdot (w - a)` and not within
h of 0: an event of a fixed law, of probability at most the sup. Fix p rows and for each one of the two edges of its
interval: they fix w. The other rows fit it independently, with probabilities that are at most q on average, and their
number has its largest tail where all are equal (Hoeffding 1956). A set of rows that fits some formula fits one at a
vertex of its polytope: a union over the vertices.

So the search costs a price, no rows have to be held back, and the claim holds in any number of columns, for dummies,
too. It claims that there is *a mechanism beyond those known, or errors that depend on the columns*, and no more: that
the formula is that mechanism needs an argument about its slopes.

**q is seen.** Let the sup of mechanism a be reached at :math:`t_a`. A row belongs to one mechanism, so q is at most the
probability that a row lies in the window about :math:`t_a` of its own mechanism. Such a row is left unless another rule
passes there, which is decided by the columns: :math:`x \cdot (w_l - a)` lies within 2h of :math:`t_a`. At most
:math:`\rho n` rows are hidden so, the largest sum, over a, of the fullest windows of these differences. Left rows in
the windows are at most K, the sum of the fullest windows of y - x.a; they are a sum of n independent trials with a mean
of at least :math:`q (n - \rho n)`. Again equal trials are the worst (Hoeffding 1956), so a limit of Clopper and Pearson
for K of n rows, times :math:`1 / (1 - \rho)`, holds for q, without a union over windows: those of the sups are fixed.

**Rounded labels** are rounded sums: :math:`y = x \cdot a + \epsilon + r` with a rounding r that depends on the columns
and is at most h. A row fits w only if :math:`\epsilon` is within 2h of :math:`x \cdot (w - a)`, and its residual is
then within 3h of the same t. Evidence are rows that are more than 3h off each known rule, for which
:math:`|\epsilon| > 2h`; the rows in the windows are counted among all that are more than h off, and these are among
them.

**Amounts that many rows are off by** make a large q. So cells of a fixed grid, twice as wide as the windows, may be set
aside, and those of a second grid that is shifted by a window: each window lies within a cell of one of them. If that
cell is set aside, none of its rows is evidence, and if not, its probability bounds that of the window. Labels chose
which cells: the cell of the largest probability among those of a grid that are kept is one of the r + 1 most probable,
so that the limit and the price are shared among r + 1 cells of either grid. Whether windows or cells are taken for a
mechanism is for the labels to say, too, and shared in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from massart.certificate.assumption import CONFIDENCE
from massart.certificate.tails import largest_share_outside
from massart.rows import BoolArray, FloatArray

MOST_CELLS = 12
"""Cells of amounts that are set aside for one mechanism, at most: an amount may lie on the border of two."""

AMOUNT_TIMES, AMOUNT_CELLS = 3.0, 1.5
"""Cells are set aside where the fullest window holds this many times the rows of the fullest cell that has to be kept,
and those with `AMOUNT_CELLS` times its rows: residuals of columns with few values repeat by chance, and every row set
aside is lost as evidence (benchmarks/rule_lists.py, "list", tables of flags and quantities)."""

_EITHER, _CELLS_CHOSEN = 2, 2 * (MOST_CELLS + 1)  # windows or cells; a cell of either grid

_ROUNDED = 3.0  # half-widths: a window of residuals that are rounded, as the proof has it
_STEPS = (1.0, 2.0, 5.01, 10.0)  # half-widths are these times a power of ten: half a cent is one of them
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Width:
    """A half-width that is taken for all rows and all rules.

    Attributes
    ----------
    half : float
    hypotheses : float
        Labels say how exact they are, so that this is one of several half-widths: they share delta.
    """

    half: float
    hypotheses: float

    @classmethod
    def of(cls, half: float, scale: float) -> Width:
        """Round a half-width up to the next step.

        Parameters
        ----------
        half : float
        scale : float
            Size of the columns, or anything else that is known without labels.

        Examples
        --------
        >>> Width.of(0.005, scale=100.0)
        Width(half=0.00501, hypotheses=24.0)
        """
        decade = math.floor(math.log10(max(half, 1e-290)) + _ROUNDING)
        step = next(step for step in _STEPS if half <= step * 10.0**decade * (1 + _ROUNDING))
        # Half of the prior belongs to decades around cents, half to those around what arithmetic loses.
        likely = (-3, math.floor(math.log10(max(scale, 1e-290) * 1e-15)))
        away = min(abs(decade - place) for place in likely)
        return cls(step * 10.0**decade, 2.0 * 3 * 2 * (away + 1) * (away + 2))


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """What chance and the known mechanisms explain of any further formula.

    Attributes
    ----------
    share : float
        Upper limit of q; 1 where nothing can be claimed.
    left : (n,) boolean array
        Rows that count as evidence: no known rule fits them, and their amount is not set aside.
    hypotheses : float
        By which the price is multiplied.
    """

    share: float
    left: BoolArray
    hypotheses: float


@dataclass(frozen=True, slots=True)
class FurtherRule:
    """The test of one more rule against chance and the rules before it.

    Attributes
    ----------
    rows : int
        Rows that it fits and no rule before it does.
    needed : int
        Chance and the mechanisms that are known give fewer rows to any formula, but for the probability stated.
    """

    rows: int
    needed: int

    @property
    def is_certified(self) -> bool:
        """Whether there is a further mechanism, or errors depend on the columns."""
        return self.rows >= self.needed


def failure_of(place: int) -> float:
    """Return the probability with which the test of one rule of a list may fail: all of them add up to the whole.

    Examples
    --------
    >>> [round(1e6 * failure_of(place)) for place in (1, 2, 3)]
    [500, 167, 83]
    """
    return (1 - CONFIDENCE) / (place * (place + 1))


def explained_by_chance(y: FloatArray, known: Sequence[FloatArray], width: Width, failure: float) -> Explained:
    """Return what labels without a further rule explain.

    Parameters
    ----------
    y : (n,) array
    known : sequence of (n,) arrays
        What each known rule gives.
    width : Width
    failure : float
        Probability with which the limit may be wrong.
    """
    n, h = len(y), width.half
    mechanisms = [np.zeros(n), *known]
    distance = np.full(n, np.inf)
    for values in known:
        distance = np.minimum(distance, np.abs(y - values))
    off, left = distance > h, distance > _ROUNDED * h
    chance = failure / width.hypotheses
    rows, most_hidden, choices = 0, 0, 1.0
    for place, values in enumerate(mechanisms):
        reach = _ROUNDED * h if place else h
        others = [other for rank, other in enumerate(mechanisms) if rank not in (0, place)]
        most_hidden = max(most_hidden, sum(fullest_window(other - values, h + reach) for other in others))
        rest = (y - values)[off]
        fullest = fullest_window(rest, reach)
        largest, aside = _set_aside(rest, reach)
        if fullest >= AMOUNT_TIMES * max(largest, 1):
            left[np.flatnonzero(off)[aside]] = False
            rows, choices = rows + largest, choices * _EITHER * _CELLS_CHOSEN
        else:
            rows, choices = rows + fullest, choices * _EITHER
    if most_hidden >= n:
        return Explained(1.0, left, width.hypotheses)
    share = largest_share_outside(rows, n, chance / choices) * n / (n - most_hidden)
    return Explained(min(share, 1.0), left, width.hypotheses * choices)


def _set_aside(rest: FloatArray, reach: float) -> tuple[int, BoolArray]:
    """Return the rows of the fullest cell that is kept, and which residuals lie in cells that are set aside."""
    grids = [np.floor(rest / (4 * reach) + shift) for shift in (0.0, 0.5)]
    counted = [np.unique(cells, return_inverse=True, return_counts=True)[1:] for cells in grids]
    fewest = max(
        (int(-np.partition(-counts, MOST_CELLS)[MOST_CELLS]) for _, counts in counted if len(counts) > MOST_CELLS),
        default=0,
    )
    most = max(AMOUNT_CELLS * fewest, 1)  # a cell that holds hardly more than others costs evidence for nothing
    aside = np.zeros(len(rest), dtype=bool)
    for places, counts in counted:
        aside |= (counts > most)[places]
    return max((int(counts[counts <= most].max(initial=0)) for _, counts in counted), default=0), aside


def fullest_window(values: FloatArray, half: float) -> int:
    """Return how many values lie in one window of this half-width, at most.

    Examples
    --------
    >>> fullest_window(np.array([0.0, 0.3, 1.0, 5.0]), 0.5)
    3
    """
    if not len(values):
        return 0
    ordered = np.sort(values)
    slack = 4 * np.finfo(float).eps * np.abs(ordered)
    ends = np.searchsorted(ordered, ordered + 2 * half * (1 + _ROUNDING) + slack, side="right")
    return int((ends - np.arange(len(ordered))).max())


def rows_needed(explained: Explained, rank: int, failure: float) -> int:
    """Return the smallest number of rows that no formula reaches by chance; n + 1 where any number may be reached.

    Parameters
    ----------
    explained : Explained
    rank : int
        Coefficients of a formula, the constant included.
    failure : float
        Probability with which a formula may reach it all the same.

    Examples
    --------
    >>> rows_needed(Explained(0.005, np.ones(1000, dtype=bool), 24.0), 5, 5e-4)
    42
    """
    n, share = len(explained.left), explained.share
    if n <= rank or share >= 1:
        return n + 1
    price = log_price_of_vertices(n, rank) + math.log(explained.hypotheses)
    k = np.arange(rank + 1, n + 1)
    from scipy.stats import binom  # slow to import

    chance = price + binom.logsf(k - rank - 1, n - rank, share)
    enough = (chance <= math.log(failure)) & (k - rank >= share * (n - rank) + 1)
    return int(k[np.argmax(enough)]) if enough.any() else n + 1


def log_price_of_vertices(n: int, p: int) -> float:
    """Return the logarithm of the number of vertices that p of n rows fix: each has two edges."""
    return float(gammaln(n + 1) - gammaln(p + 1) - gammaln(n - p + 1) + p * math.log(2))
