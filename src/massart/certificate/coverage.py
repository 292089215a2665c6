r"""Finite-sample bounds: what rows of which some labels are wrong say about rows that were never seen.

Let :math:`r = \hat w - w^*`. A formula errs on x if :math:`r \cdot x \ne 0`. Both bounds below hold for n rows drawn
independently, and neither looks at labels to choose what it counts.

**Labels.** Among n rows chosen by x alone, the number of wrong labels exceeds

.. math::
    q(n, \eta, \delta) = \min \{ q : \Pr[\mathrm{Bin}(n, \eta) \le q] \ge 1 - \delta \}

with probability at most :math:`\delta`, whatever the adversary does (Definition 1.1 draws the rows it may change
before it acts). If :math:`r \cdot x \ne 0` for some of these rows, then each of the rows that agree with
:math:`\hat w` and lie off the hyperplane :math:`r^\perp` has a wrong label. So if a rows agree, at most h of them on
one hyperplane, and :math:`a - h > q`, then :math:`\hat w` is right on all of their span.

**Rows.** If o of m rows lie outside of a set that other rows chose, the set misses at most the share p of the
distribution with :math:`\Pr[\mathrm{Bin}(m, p) \le o] = \delta` (Clopper and Pearson), with probability
:math:`1 - \delta`.
"""

from __future__ import annotations

import math

from scipy.special import bdtr, betaincinv


def most_wrong(n: int, eta: float, delta: float) -> int:
    """Return q(n, eta, delta): more than so many of n labels are wrong with probability `delta` at most."""
    if n == 0 or eta == 0:
        return 0
    mean, spread = eta * n, math.sqrt(n * math.log(1 / delta) / 2)
    # Hoeffding's bound is above q; the binomial distribution finds it by bisection.
    low, high = -1, min(n, math.ceil(mean + spread))
    while high - low > 1:
        middle = (low + high) // 2
        if middle >= 0 and bdtr(middle, n, eta) >= 1 - delta:
            high = middle
        else:
            low = middle
    return high


def largest_share_outside(outside: int, n: int, delta: float) -> float:
    """Return the one-sided bound of Clopper and Pearson on a share of which `outside` of n rows were seen."""
    if outside >= n:
        return 1.0
    return float(betaincinv(outside + 1, n - outside, 1 - delta))
