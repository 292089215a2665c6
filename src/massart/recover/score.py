r"""Scores in bits: whether there is anything to explain, and whether rounding explains it or noise.

**Is it more than chance?** :func:`beyond_chance`. Sender and receiver know X and which labels there are, but not their
order. With r right rows, :math:`c_v` rows of label v, :math:`c'_v` of them not right, and :math:`m_i` the labels of the
table with which row i would agree,

.. math::
    S = \log_2 r! - \sum_v \log_2 \frac{c_v!}{c'_v!} - \sum_{i \text{ right}} \log_2 m_i - \log_2 (n + 1) - L ,

where L is the length of the rule in a prefix code that does not look at the order. If all orders of the labels are
equally likely given X, then P(some rule has S >= k) <= 2^-k, however many rules were tried: the rule, the right rows,
their labels and the order of the rest are a message that says one order, the mean of 2^S over all orders is at most the
Kraft sum of the messages, and Markov's inequality does the rest. It says "not chance", and never "this is the rule": a
vague relation between X and the labels is more than chance, too. It says nothing where labels have an order of their
own, where rows are copies of each other, or about weights that are not numbers of rows.

**Rounding or noise?** :func:`noise_beyond_rounding`. A vague relation looks like a rule of rounded numbers: many rows
are within half a unit. But errors of rounding have a known density, that of a sum of uniform ones, and noise goes on
across the edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr
from scipy.special import gammaln

from massart.recover.settings import SETTINGS
from massart.rows import EPS, IDENTITY, Agreement, BoolArray, FloatArray, Link, doubt_of, verify

# Codes: the length in bits of what a sender writes down.


def log2_factorial(n: ArrayLike) -> FloatArray:
    """Return log2 of n!."""
    return np.asarray(gammaln(np.asarray(n, dtype=np.float64) + 1) / np.log(2))


def choice_bits(n: int, k: int) -> float:
    """Return the bits that name k of n things, and k."""
    return float(np.log2(n + 1) + log2_factorial(n) - log2_factorial(k) - log2_factorial(n - k))


def integer_bits(k: ArrayLike) -> FloatArray:
    """Return the bits of whole numbers |k| >= 1, small ones first: log2 k + 2 log2(1 + log2 k) + 1; Kraft sum .71."""
    size = np.log2(np.maximum(np.abs(np.asarray(k, dtype=np.float64)), 1.0))
    return np.asarray(size + 2 * np.log2(size + 1) + 1)


def signed_bits(k: ArrayLike) -> FloatArray:
    """Return the bits of whole numbers of either sign, zero first."""
    k = np.asarray(k, dtype=np.float64)
    return np.asarray(integer_bits(np.abs(k) + 1) + (k != 0))


def short_number(value: float, slack: float) -> tuple[float, float]:
    """Return the decimal with the fewest digits within `slack` of a value, and its bits: sign, exponent and digits.

    Examples
    --------
    >>> short_number(0.19003, 0.0005)[0], short_number(0.19003, 1e-9)[0]
    (0.19, 0.19003)
    """
    if not value:
        return 0.0, 2.0 + float(signed_bits(0))
    digits = 17 if not slack > 0 else min(max(int(np.ceil(np.log10(abs(value) / slack))), 1), 17)
    for more in range(max(digits - 2, 1), 18):
        text = f"{value:.{more - 1}e}"
        if abs(float(text) - value) <= slack or more == 17:
            break
    mantissa, exponent = text.split("e")
    whole = mantissa.replace(".", "").replace("-", "").rstrip("0")
    return float(text), 1 + float(signed_bits(int(exponent)) + integer_bits(int(whole or 1)))


# More than chance?


def beyond_chance(
    y: FloatArray, low: FloatArray, high: FloatArray, rule_bits: float, agree: BoolArray | None = None
) -> float:
    """Return S, by how many bits a rule says more of the order of the labels than it takes to write it.

    If the labels have nothing to do with the columns, some rule has S >= k in at most one table in 2^k, whatever was
    searched: provided that all rules that could have been found share one prefix code.

    Parameters
    ----------
    y : (n,) array
        Labels of rows that are no copies of each other.
    low, high : (n,) arrays
        The labels with which each row would agree lie between these; they follow from x_i and the rule alone, and may
        be wider than what agrees. A row whose own label lies outside counts as wrong.
    rule_bits : float
        The length of the rule: everything that was chosen with a look at the labels, terms, thresholds, coefficients,
        link and level.
    agree : (n,) boolean array, optional
        Rows that agree; by default those whose label lies in its interval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, wrong = rng.integers(1, 500, 60), rng.random(60) < 0.3
    >>> y = np.where(wrong, rng.integers(1, 1500, 60), 3 * x)
    >>> beyond_chance(y, 3 * x, 3 * x, rule_bits=10) > 50
    True
    >>> beyond_chance(rng.permutation(y), 3 * x, 3 * x, rule_bits=10) > 0
    False
    """
    right = (low <= y) & (y <= high)
    if agree is not None:
        right &= agree
    values, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    left = np.bincount(codes.ravel()[~right], minlength=len(values))
    inside = np.searchsorted(values, high[right], side="right") - np.searchsorted(values, low[right], side="left")
    ties = float((log2_factorial(counts) - log2_factorial(left)).sum())
    found = float(log2_factorial(np.count_nonzero(right)) - np.log2(inside).sum())
    return found - ties - float(np.log2(len(y) + 1)) - rule_bits


def intervals(X: FloatArray, w: FloatArray, level: Agreement, link: Link = IDENTITY) -> tuple[FloatArray, FloatArray]:
    r"""Return the ends between which the labels lie that agree with a rule, by X alone; never too narrow.

    A half-width depends on the label through the size of the row: :math:`t(s + |y|) \le t(s + |f|) / (1 - \rho)` for
    a label that agrees, where :math:`\rho` is what arithmetic explains for each unit of size.
    """
    products, sizes = X @ w, np.abs(X) @ np.abs(w)
    slope = max(1.0, link.slope)
    centre = link(products)
    sizes = sizes + np.abs(centre)
    reach = slope * (level.half_widths(sizes, w) / (1 - 2 * slope * level.relative) + 2 * doubt_of(w) * sizes)
    reach *= 1 + 1e-9
    return centre - reach, centre + reach


def rule_beyond_chance(
    X: FloatArray,
    y: FloatArray,
    w: FloatArray,
    level: Agreement,
    link: Link = IDENTITY,
    *,
    n_levels: int = 1,
    enough: float = np.inf,
) -> float:
    """Return S of ``y = f(w.x)`` on rows that are no copies: the largest over ways to write the rule down.

    A rule is written in decimals, or as the one through d rows and some steps from there. The code pays for the level,
    for which of the two ways, for a link with its limits, for the columns and for their coefficients.

    Parameters
    ----------
    X, y : (n, d) and (n,) arrays
    w : (d,) array
    level : Agreement
    link : Link
    n_levels : int
        Levels of agreement that could have been chosen.
    enough : float
        No other way is tried where one says as much.

    Examples
    --------
    >>> from massart.rows import Level
    >>> rng = np.random.default_rng(0)
    >>> X, wrong = rng.integers(1, 500, (60, 2)).astype(float), rng.random(60) < 0.3
    >>> y = np.where(wrong, rng.integers(1, 1500, 60), X @ [2.0, 1.0])
    >>> exactly = Agreement(Level.EXACT, relative=1e-14)
    >>> rule_beyond_chance(X, y, np.array([2.0, 1.0]), exactly) > 50
    True
    """
    used = np.flatnonzero(w)
    bits = float(np.log2(n_levels)) + 1 + choice_bits(X.shape[1], len(used))
    for limit in (link.lower, link.upper):
        bits += 1 + (short_number(limit, 0.0)[1] if np.isfinite(limit) else 0.0)
    bits += 1 + (short_number(link.slope, 0.0)[1] if link.slope else 0.0)
    best = -np.inf
    for rule, own, others in chain(_in_decimals(X, y, w, level, link), _by_rows(X, y, w, level, link)):
        agree = others & verify(X, y, rule, level, link).agree
        best = max(best, beyond_chance(y, *intervals(X, rule, level, link), bits + own, agree))
        if best >= enough:
            break
    return best


def _in_decimals(
    X: FloatArray, y: FloatArray, w: FloatArray, level: Agreement, link: Link
) -> Iterator[tuple[FloatArray, float, BoolArray]]:
    """Yield the rule with coefficients in decimals, their bits, and the rows that may be right: all.

    They are written to some parts of what moves a row by its half-width: any decimal is a word of the code, so that
    this choice is free.
    """
    found, used = verify(X, y, w, level, link), np.flatnonzero(w)
    everything = np.ones(len(y), dtype=bool)
    some = found.agree if found.agree.any() else everything
    widest = np.maximum(np.abs(X[some]).max(axis=0), 1e-300)
    typical = float(np.median(found.half_widths[some]))
    for share in (1.0, 2.0**-3, 2.0**-6):
        rule, bits = np.zeros(len(w)), 0.0
        for j in used:
            rule[j], own = short_number(float(w[j]), share * typical / len(used) / float(widest[j]))
            bits += own
        yield rule, bits, everything


def _by_rows(
    X: FloatArray, y: FloatArray, w: FloatArray, level: Agreement, link: Link
) -> Iterator[tuple[FloatArray, float, BoolArray]]:
    """Yield the rule through d rows, some steps on, with its bits and the rows that may be right: all but these d.

    The receiver has the d labels, since these rows are sent as wrong ones; the size of a step follows from what he has,
    the half-widths of all rows for the rule through the d rows, so that it is free. Which of three parts of it steps
    are counted in is paid.
    """
    used = np.flatnonzero(w)
    n, d, found = len(y), len(used), verify(X, y, w, level, link)
    some = np.flatnonzero(found.agree & link.decisive(y, found.half_widths))
    if not 0 < d < len(some):
        return
    scaled = X[np.ix_(some, used)]
    scaled = scaled / np.maximum(np.abs(scaled).max(axis=0), 1e-300)
    pins = np.sort(some[qr(scaled.T, mode="r", pivoting=True)[1][:d]])
    A = X[np.ix_(pins, used)]
    if np.linalg.matrix_rank(A) < d:
        return
    through = np.zeros(len(w))
    through[used] = np.linalg.solve(A, link.inverse(y[pins]))
    others = np.ones(n, dtype=bool)
    others[pins] = False
    low, high = intervals(X, through, level, link)
    width = float(np.median(high - low)) / 2
    widest = np.maximum(np.abs(X[:, used]).max(axis=0), 1e-300)
    named = choice_bits(n, d) - float(np.log2(n + 1)) + float(np.log2(3))
    for share in (1.0, 2.0**-2, 2.0**-4):
        step = share * width / d / widest
        if not np.isfinite(step).all() or not step.all():
            continue
        off = np.rint((w - through)[used] / step)
        rule = np.zeros(len(w))
        rule[used] = through[used] + off * step
        yield rule, named + float(signed_bits(off).sum()), others


# Rounding or noise?


def is_noise(residuals: FloatArray, agree: BoolArray, half_widths: FloatArray) -> bool:
    """Return whether noise explains clearly better than rounding alone how far rows are from a rule.

    Parameters
    ----------
    residuals : (n,) array
    agree : (n,) boolean array
        Rows within what rounding and arithmetic leave.
    half_widths : (k,) array
        Of what was rounded, the labels first.
    """
    chosen = np.arange(0, len(residuals), -(-len(residuals) // SETTINGS.telling) or 1)
    off, reach = residuals[chosen], (1 - EPS) * half_widths.sum()
    off = np.where(agree[chosen], np.clip(off, -reach, reach), off)  # what arithmetic explains is not noise
    return len(off) > 0 and noise_beyond_rounding(off, half_widths) >= SETTINGS.sure


def noise_beyond_rounding(residuals: FloatArray, half_widths: FloatArray) -> float:
    """Return by how many bits rounding and noise explain residuals better than the rounding of numbers alone.

    Errors of right rows are a sum of uniform ones, and a normal one for noise: without noise, at most what rounding in
    several steps leaves. Wrong rows are off by Cauchy variables, a small and a large one, and without noise some are
    off by one unit of the labels, all to one side. The likelihoods of these mixtures are compared at their largest.

    Parameters
    ----------
    residuals : (n,) array
    half_widths : (k,) array
        Of the uniform errors, that of the labels first.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> halves = np.array([0.5, 2.0, 3.0])
    >>> rounding = (halves * rng.uniform(-1, 1, (200, 3))).sum(axis=1)
    >>> wrong = np.where(rng.random(200) < 0.3, rng.uniform(-300, 300, 200), 0)
    >>> noise_beyond_rounding(rounding, halves) < 3, noise_beyond_rounding(rounding + wrong, halves) < 3
    (True, True)
    >>> noise_beyond_rounding(rng.normal(0, 4, 200), halves) > 10
    True
    """
    reach = float(half_widths.sum())
    off, unit = residuals / reach, 2 * float(half_widths[0]) / reach
    cumulative = _sum_of_uniform(half_widths / reach)
    quantiles = np.interp((np.arange(32) + 0.5) / 32, cumulative, _GRID)
    deviation = float(np.sqrt((half_widths**2).sum() / 3)) / reach
    scales = np.geomspace(1.0, np.abs(off).max() + 1, 6)
    near, *wrong = [1 / (np.pi * scale * (1 + (off / scale) ** 2)) for scale in scales]

    def density(at: FloatArray, scale: float) -> FloatArray:
        if not scale:
            high, low = (np.interp(at + step, _GRID, cumulative) for step in (_GRID_STEP, -_GRID_STEP))
            return np.asarray((high - low) / (2 * _GRID_STEP))
        steps = (at[:, None] - quantiles) / scale
        return np.asarray(np.exp(-(steps**2) / 2).mean(axis=1) / (scale * np.sqrt(2 * np.pi)))

    alone = [
        [density(off, scale), density(off - shift, scale)]
        for scale in (0.0, _SEVERAL_STEPS * unit / np.sqrt(12))
        for shift in (unit, -unit)
    ]
    noise = [[density(off, times * deviation)] for times in (0.75, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0)]
    best = [max(_likelihood([*right, near, far]) for right in rights for far in wrong) for rights in (noise, alone)]
    return best[0] - best[1]


_SEVERAL_STEPS = 0.5
"""Of the deviation of rounded labels, that of errors before they were rounded: one label in nine is another one then.
The golden table "small-numbers" has columns of ten digits, which move one in twelve."""

_GRID = np.linspace(-1.0, 1.0, 1025)
_GRID_STEP = _GRID[1] - _GRID[0]


def _sum_of_uniform(half_widths: FloatArray) -> FloatArray:
    """Return the distribution function of a sum of uniform errors, whose half-widths add up to one, on the grid."""
    largest, *others = np.sort(half_widths)[::-1]
    cumulative = np.clip((_GRID / largest + 1) / 2, 0.0, 1.0)
    for half in others:
        if half < _GRID_STEP:
            continue
        integral = np.concatenate([[0.0], np.cumsum((cumulative[1:] + cumulative[:-1]) / 2 * _GRID_STEP)])
        beyond = np.maximum(_GRID + half - 1.0, 0.0)  # where the distribution function is one
        high = np.interp(_GRID + half, _GRID, integral) + beyond
        cumulative = (high - np.interp(_GRID - half, _GRID, integral)) / (2 * half)
    return np.asarray(cumulative)


def _likelihood(densities: Sequence[FloatArray], steps: int = 20) -> float:
    """Return the log2-likelihood of the best mixture of densities, found by EM."""
    parts = np.stack(densities)
    shares = np.full(len(parts), 1 / len(parts))
    for _ in range(steps):
        mixed = shares[:, None] * parts
        shares = (mixed / mixed.sum(axis=0)).mean(axis=1)
    return float(np.log2(shares @ parts).sum())
