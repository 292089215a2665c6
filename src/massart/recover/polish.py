"""From a candidate to the formula that its rows determine: least squares on the rows that agree, counted again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as sla

from massart.l1 import l1_regression
from massart.rows import Agreement, BoolArray, FloatArray, Link, Verified, verify
from massart.rows.agreement import EDGE, compensated_products

NEAR = 2.0**-26
"""Relative residual of a row that may agree once the answer is polished: half of the digits of float64."""

ROUNDING = 16 * float(np.finfo(float).eps)
"""Relative size of a term that is rounding of a larger one."""

_STEPS = 3
_MANY, _WELL_CONDITIONED = 100, 1e-6  # columns; inverse of the condition number at which a step gains nine digits
_CROWDED = 0.1  # share of rows that nearly agree and do not, at which small terms may hide beneath huge ones
_NEARBY = (2.0, 2.0, 1.5, 1.25, 1.1)  # half-widths: rows that may lie in their intervals once the formula has moved


def polish(
    X: FloatArray, y: FloatArray, counts: FloatArray, w: FloatArray, agreement: Agreement, link: Link
) -> tuple[FloatArray, Verified]:
    """Fit the rows that nearly agree, then those that do; return the formula that fits most, and its rows.

    Where a link clips, the rows that tell a product are fitted: those whose label and product lie between the limits.
    """
    best, found = w, verify(X, y, w, agreement, link)
    weight = float(counts[found.agree].sum())

    def attempt(candidate: FloatArray | None, at_least: float) -> bool:
        nonlocal best, found, weight
        if candidate is None:
            return False
        now = verify(X, y, candidate, agreement, link)
        reached = float(counts[now.agree].sum())
        if reached < at_least:
            return False
        best, found, weight = candidate, now, reached
        return True

    def fit(rows: BoolArray) -> bool:
        told = _told(rows, y, found, link)
        return bool(told.any()) and attempt(_solve(X[told], link.inverse(y[told]), found.half_widths[told]), weight)

    chosen = near = verify(X, y, w, agreement.loosened(NEAR), link).agree
    for _ in range(_STEPS):
        if not fit(chosen) or np.array_equal(found.agree, chosen):
            break
        chosen = found.agree
    crowd = near & ~found.agree
    if counts[crowd].sum() > weight * _CROWDED:
        told = _told(near | found.agree, y, found, link)
        if told.any():
            attempt(best + _beneath(X[told], link.inverse(y[told]), best, found.half_widths[told]), weight)
        for _ in range(2):
            if not fit(found.agree):
                break
    attempt(without_dust(X, best, ROUNDING), weight)
    for reach in _NEARBY if agreement.rounded else ():  # wrong rows nearby pull: fewer of them take part each time
        attempt(_into_intervals(X, y, best, found, link, reach), np.nextafter(weight, np.inf))
    return best, found


def _told(rows: BoolArray, y: FloatArray, found: Verified, link: Link) -> BoolArray:
    """Return those of the rows that tell a product: label and product lie between the limits."""
    return rows & link.decisive(found.products) & link.decisive(y, found.half_widths)


def without_dust(X: FloatArray, w: FloatArray, share: float) -> FloatArray | None:
    """Return `w` without the coefficients that are nothing but rounding of others; None where there are none.

    A row that uses no other column has a size of rounding, too, and would not agree with its label of zero.
    """
    terms = np.abs(w) * np.abs(X).max(axis=0)
    dust = (terms > 0) & (terms <= share * terms.max())
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


def _into_intervals(
    X: FloatArray, y: FloatArray, w: FloatArray, found: Verified, link: Link, reach: float
) -> FloatArray | None:
    """Move `w` into the intervals of rounded labels, y - t <= w.x <= y + t, where least squares stays outside of some.

    The sum of what is missing to the interval of each row nearby is a one-sided L1 problem of two rows each.
    """
    t = found.half_widths
    near = _told(np.abs(found.residuals) <= reach * t, y, found, link)
    outside = near & ~found.agree
    if not outside.any():
        return None
    labels = link.inverse(y[near])
    # In the units of the half-widths, around w, the numbers are of size one.
    units = 1.0 / t[near]
    rows = X[near] * units[:, None]
    rest = (labels - X[near] @ w) * units
    scales = np.exp2(np.frexp(np.abs(rows).max(axis=0))[1].astype(np.float64))
    both = np.vstack([rows, -rows]) / scales
    inner = 1 - EDGE  # the answer is a vertex, on the edge of some intervals
    ends = np.concatenate([inner + rest, inner - rest])
    step = l1_regression(both, ends, one_sided=np.ones(len(ends), dtype=bool)).coef
    return np.asarray(w + step / scales)
