r"""Whether the rows that agree stand out from those next to them: what tells an exact rule of a minority from noise.

Labels that follow a formula up to noise have residuals with a smooth density: a window next to the one in which rows
agree holds about as many of them. An exact rule has an edge: many rows in the window and hardly any beside it, however
many labels are wrong and however these scatter about the rule.

Let p be the rank, n the rows and q an upper limit of the share of the rows in a window beside. If the n - p rows that
do not fix the formula fell into its window with probability at most q each, some formula would agree with k rows with
probability at most

.. math::
    \binom{n}{p} 2^p \; P\bigl(\mathrm{Bin}(n - p, q) \ge k - p\bigr),

since a set of rows that fits some formula fits one for which p of them lie at one of the two edges. The q is estimated
beside the formula that was found, so this is a test of sharpness and no certificate; no verdict rests on it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from massart.recover.judges import Formula
from massart.rows import Agreement, FloatArray, Link, Sample, Verified

BESIDE = 3.0
"""The windows beside a rule end at so many half-widths: they are twice as wide as the one in which rows agree."""

EDGE = 0.25
"""At most so many rows beside a rule, for each one that follows it. A tangent of a curve has .7 and noise as wide as
rounding .6 to .9 (benchmarks/independent.py, "curve" and "noise")."""

MIDDLE = 0.6
"""Where columns are rounded, too, errors add up and lie in the middle half of their interval: more than this share of
them. A curve fills it evenly (benchmarks/independent.py, "curve")."""

CHANCE = 1e-3
"""The probability with which rows that scatter evenly may be taken for an exact rule."""


def stands_out(formula: Formula, rows: Sample, rank: int) -> bool:
    """Return whether far more rows agree with a formula than lie next to it, for any formula of this rank.

    Rows with the most frequent label do not count, and copies of a row count once.

    Examples
    --------
    >>> from massart.rows import Agreement, Level
    >>> from massart.rows.link import IDENTITY
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 100, (1000, 2))
    >>> y = X @ [2.0, 0.5] + np.where(rng.random(1000) < 0.7, 20 * rng.standard_normal(1000), 0)
    >>> cents = Agreement(Level.LABEL, 0.005, relative=1e-14, unit=0.01)
    >>> formula = Formula(np.array([2.0, 0.5]), cents, IDENTITY)
    >>> stands_out(formula, Sample(X, np.round(y, 2), None, np.arange(1000)), 2)
    True
    >>> noisy = np.round(X @ [2.0, 0.5] + 0.02 * rng.standard_normal(1000), 2)
    >>> stands_out(formula, Sample(X, noisy, None, np.arange(1000)), 2)
    False
    """
    found, _ = formula.marks(rows)
    return is_sharp(rows, found, formula.agreement, formula.link, rank)


def is_sharp(rows: Sample, found: Verified, agreement: Agreement, link: Link, rank: int) -> bool:
    """Return the same, given the rows next to the formula."""
    _, first = np.unique(rows.index, return_index=True)
    first = first[link.decisive(found.products)[first] & (rows.counts[first] > 0)]
    n = len(first)
    if n <= rank:
        return False
    unit = agreement.unit or 0.0  # labels on a grid lie no closer to a rule than it does
    widths = np.maximum(found.half_widths[first], unit / 2)
    off, agree = np.abs(found.residuals[first]), found.agree[first]
    beside = int(np.count_nonzero(~agree & (off <= BESIDE * widths)))
    k = int(np.count_nonzero(agree & ~_most_frequent(rows.y[first])))
    if k <= rank or beside > EDGE * k:
        return False
    if agreement.inputs and np.count_nonzero(agree & (off <= widths / 2)) <= MIDDLE * np.count_nonzero(agree):
        return False
    from scipy.stats import beta, binom  # slow to import

    q = float(beta.ppf(1 - CHANCE / 2, beside + 1, n - beside)) / 2 if beside < n else 1.0
    formulas = gammaln(n + 1) - gammaln(rank + 1) - gammaln(n - rank + 1) + rank * np.log(2)
    return bool(formulas + binom.logsf(k - rank - 1, n - rank, q) <= np.log(CHANCE / 2))


def _most_frequent(labels: FloatArray) -> np.ndarray:
    """Return the rows that have the most frequent label, if one is repeated."""
    _, where, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.asarray((where.ravel() == counts.argmax()) & (counts.max() > 1))
