"""From a candidate to the formula that its rows determine: least squares on the rows that agree, counted again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from massart.l1 import l1_regression
from massart.rows import (
    EDGE,
    Agreement,
    BoolArray,
    FloatArray,
    Link,
    Sample,
    Verified,
    compensated_products,
    verify,
)

NEAR = 2.0**-26
"""Relative residual of a row that may agree once the answer is polished: half of the digits of float64."""

ROUNDING = 16 * float(np.finfo(float).eps)
"""Relative size of a term that is rounding of a larger one."""

_STEPS = 3
_SWEEPS = 5  # over the coefficients, one at a time
_MANY, _WELL_CONDITIONED = 100, 1e-6  # columns; inverse of the condition number at which a step gains nine digits
_CROWDED = 0.1  # share of rows that nearly agree and do not, at which small terms may hide beneath huge ones
_NEARBY = (2.0, 1.25)  # half-widths: rows that may lie in their intervals once the formula has moved


@dataclass(frozen=True, slots=True)
class Candidate:
    """A formula that was found, and what the rows of a sample say of it.

    Attributes
    ----------
    coef : (d,) array
    agreement : Agreement
        The level at which it was found.
    rows : Verified
        The rows next to it, at that level without the cap for coefficients that are exact numbers.
    informative : (n,) boolean array
        Rows that agree and tell a product.
    weight, decided, total : float
        Of the rows that agree, of the informative ones, and of all.
    """

    coef: FloatArray
    agreement: Agreement
    rows: Verified
    informative: BoolArray
    weight: float
    decided: float
    total: float

    @classmethod
    def of(cls, sample: Sample, coef: FloatArray, agreement: Agreement, link: Link) -> Candidate:
        """Count the rows of a sample that agree with a formula."""
        counts, rows = sample.counts, verify(sample.X, sample.y, coef, agreement.uncapped, link)
        informative = rows.agree & link.decisive(sample.y, rows.half_widths)
        weight, decided = float(counts[rows.agree].sum()), float(counts[informative].sum())
        return cls(coef, agreement, rows, informative, weight, decided, float(counts.sum()))


def polish(sample: Sample, w: FloatArray, agreement: Agreement, link: Link) -> Candidate:
    """Fit the rows that nearly agree, then those that do; return the formula that fits most.

    Where a link clips, the rows that tell a product are fitted: those whose label and product lie between the limits.
    """
    X, y, counts = sample.X, sample.y, sample.counts
    labels = link.inverse(y)
    best = Candidate.of(sample, w, agreement, link)

    def attempt(coef: FloatArray, at_least: float) -> bool:
        nonlocal best
        found = Candidate.of(sample, coef, agreement, link)
        if found.weight < at_least:
            return False
        best = found
        return True

    def informative(rows: BoolArray) -> BoolArray:
        return rows & link.decisive(best.rows.products) & link.decisive(y, best.rows.half_widths)

    def fit(rows: BoolArray) -> bool:
        rows = informative(rows)
        return bool(rows.any()) and attempt(_solve(X[rows], labels[rows], best.rows.half_widths[rows]), best.weight)

    chosen = near = verify(X, y, w, agreement.loosened(NEAR), link).agree
    for _ in range(_STEPS):
        if not fit(chosen) or np.array_equal(best.rows.agree, chosen):
            break
        chosen = best.rows.agree
    if counts[near & ~best.rows.agree].sum() > best.weight * _CROWDED:
        rows = informative(near | best.rows.agree)
        if rows.any():
            attempt(best.coef + _beneath(X[rows], labels[rows], best.coef, best.rows.half_widths[rows]), best.weight)
        for _ in range(2):
            if not fit(best.rows.agree):
                break
    cleared = without_dust(X, best.coef)
    if cleared is not None:
        attempt(cleared, best.weight)
    for reach in _NEARBY if agreement.rounded else ():  # wrong rows nearby pull: fewer of them take part each time
        rows = informative(np.abs(best.rows.residuals) <= reach * best.rows.half_widths)
        if (rows & ~best.rows.agree).any():
            step = _into_intervals(X[rows], labels[rows], best.coef, best.rows.half_widths[rows])
            attempt(best.coef + step, np.nextafter(best.weight, np.inf))
    return best


def without_dust(X: FloatArray, w: FloatArray) -> FloatArray | None:
    """Return `w` without the coefficients that are nothing but rounding of others; None where there are none.

    A row that uses no other column has a size of rounding, too, and would not agree with its label of zero.
    """
    terms = np.abs(w) * np.abs(X).max(axis=0)
    dust = (terms > 0) & (terms <= ROUNDING * terms.max())
    return np.where(dust, 0.0, w) if dust.any() else None


def _beneath(X: FloatArray, y: FloatArray, w: FloatArray, half_widths: FloatArray) -> FloatArray:
    """Return what L1 regression adds to `w` in units of the half-widths: it sees small terms beneath huge ones."""
    high, low = compensated_products(X, w)
    least = half_widths.min(initial=1.0, where=half_widths > np.finfo(float).tiny)
    units = 1.0 / np.maximum(half_widths, least)  # a row of zeros has none, whatever its columns may say
    rows, rest = X * units[:, None], ((y - high) - low) * units
    scales = np.exp2(np.frexp(np.abs(rows).max(axis=0))[1].astype(np.float64))
    return np.asarray(l1_regression(rows / scales, rest).coef / scales)


def _solve(X: FloatArray, y: FloatArray, half_widths: FloatArray) -> FloatArray:
    """Return the least-squares fit of rows in units of their half-widths, so that none drowns in another's rounding."""
    units = np.exp2(-np.frexp(half_widths)[1].astype(np.float64))
    return least_squares(X * units[:, None], y * units)


def least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the least-squares solution, of minimum norm where there are many, refined to the last digits."""
    scales = np.exp2(np.frexp(np.abs(X).max(axis=0))[1].astype(np.float64))
    scaled = X / scales
    quick = _normal_equations(scaled)
    solve = quick or (lambda rest: np.linalg.lstsq(scaled, rest, rcond=None)[0])
    w = solve(y)
    for _ in range(1 if quick is None else 2):
        high, low = compensated_products(scaled, w)
        w = w + solve((y - high) - low)
    return np.asarray(w / scales)


def _normal_equations(X: FloatArray) -> Callable[[FloatArray], FloatArray] | None:
    """Return what solves least squares of many well-conditioned columns to some digits; None for other columns."""
    n, d = X.shape
    if d < _MANY or n < d:
        return None
    gram = X.T @ X
    factor, failed = sla.lapack.dpotrf(gram)
    if failed or sla.lapack.dpocon(factor, np.linalg.norm(gram, 1))[0] < _WELL_CONDITIONED:
        return None
    return lambda rest: np.asarray(sla.cho_solve((factor, False), X.T @ rest, check_finite=False))


def _into_intervals(X: FloatArray, y: FloatArray, w: FloatArray, half_widths: FloatArray) -> FloatArray:
    """Return what moves `w` into the intervals of rounded labels, y - t <= w.x <= y + t, where it is outside of some.

    The sum of what is missing to the interval of each row is a one-sided L1 problem of two rows each.
    """
    # In the units of the half-widths, around w, the numbers are of size one.
    units = 1.0 / half_widths
    rows, rest = X * units[:, None], (y - X @ w) * units
    scales = np.exp2(np.frexp(np.abs(rows).max(axis=0))[1].astype(np.float64))
    inner = 1 - EDGE  # the answer is a vertex, on the edge of some intervals
    ends = np.concatenate([inner + rest, inner - rest])
    step = l1_regression(np.vstack([rows, -rows]) / scales, ends, one_sided=np.ones(len(ends), dtype=bool)).coef
    return np.asarray(step / scales)


def improve_coordinates(
    X: FloatArray, y: FloatArray, w: FloatArray, threshold: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return `w` after changes of single coefficients that each make more rows agree, counted with their weights.

    A formula can fit most rows and still be wrong where few rows look: with a wrong coefficient of a dummy, the right
    rows of that level disagree, and a majority of all rows does not notice. Changing one coefficient by t makes a row
    agree when t is its residual over its entry, within the row's tolerance: the best t is the point that most such
    intervals cover. A row agrees whose residual is not above its `threshold`.
    """
    w = w.copy()
    residuals = y - X @ w
    for _ in range(_SWEEPS):
        changed = False
        for j in range(X.shape[1]):
            rows = np.flatnonzero(X[:, j])
            now = float(weights[rows][np.abs(residuals[rows]) <= threshold[rows]].sum())
            step, agreement = _most_covered(
                residuals[rows] / X[rows, j], threshold[rows] / np.abs(X[rows, j]), weights[rows]
            )
            if agreement > now and step != 0:
                w[j] += step
                residuals[rows] -= step * X[rows, j]
                changed = True
        if not changed:
            break
    return w


def _most_covered(centres: FloatArray, radii: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return a point that the most weight of intervals covers, and that weight."""
    if not len(centres):
        return 0.0, 0.0
    ends = np.concatenate([centres - radii, centres + radii])
    change = np.concatenate([weights, -weights])
    order = np.lexsort((-change, ends))  # at equal ends, openings first
    covered = np.cumsum(change[order])
    best = int(np.argmax(covered))
    following = ends[order[min(best + 1, len(order) - 1)]]
    return float((ends[order[best]] + following) / 2), float(covered[best])
