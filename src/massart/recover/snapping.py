"""Exact numbers for the formula of a sample: the rows that vouch for them, and those that are no witnesses."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np

from massart import linear
from massart.exact import Tolerance, exact_coefficients
from massart.exact.rounded import guess_formula
from massart.recover.model import Model
from massart.rows import BoolArray, FloatArray

Fractions: TypeAlias = tuple[Fraction | None, ...]

MOST_ROWS, MOST_ROUNDED_ROWS = 2_000, 20_000
"""Rows that are asked: of exact labels, and of rounded ones, which tell less each."""

KEPT = 0.995
"""Share of the agreeing rows that must stay when rounded labels get exact numbers: wrong ones may agree by chance."""

SQUARE_IS_FINITE = 1e152
"""Largest number whose square does not overflow, by far; the squares of smaller ones than its inverse vanish."""

_EDGE, _WIDE_EDGE = 1e-6, 8.0  # shares of the tolerance; the second for each column, over the number of rows
_CLOSE = 0.25  # root mean square of residuals, in tolerances: rounding alone makes 0.58
_STRAY = 1e-12  # relative size of a term that is nothing but rounding of the others


def snap(
    model: Model, X: FloatArray, y: FloatArray, agree: BoolArray, w: FloatArray, tolerance: Tolerance
) -> tuple[FloatArray, Fractions]:
    """Return the formula in exact numbers where the rows that agree with `w` support them."""
    told = model.decisive(y, tolerance.absolute)
    if tolerance.absolute == 0:
        chosen = np.flatnonzero(agree & told)[:MOST_ROWS]
        return _snap(X[chosen], model.products(y[chosen]), w, tolerance)
    return _snap_rounded(X[told], model.products(y[told]), w, tolerance)


def _snap(X: FloatArray, y: FloatArray, w: FloatArray, tolerance: Tolerance) -> tuple[FloatArray, Fractions]:
    """Return the formula in exact numbers where these rows, on which w.x is y, support them."""
    if len(y) <= len(w) or not _has_squares(X, y, w):
        return w, (None,) * len(w)
    exact = exact_coefficients(X, y, w, tolerance)
    return exact.coef, exact.fractions


def _has_squares(X: FloatArray, y: FloatArray, w: FloatArray) -> bool:
    """Tell whether squares of the numbers neither overflow nor vanish."""
    sizes = np.abs([X.max(initial=0.0), X.min(initial=0.0), y.max(initial=0.0), y.min(initial=0.0), *w])
    return bool(1 / SQUARE_IS_FINITE < sizes[sizes > 0].min(initial=1.0) and sizes.max() <= SQUARE_IS_FINITE)


def _snap_rounded(X: FloatArray, y: FloatArray, w: FloatArray, tolerance: Tolerance) -> tuple[FloatArray, Fractions]:
    """Return the formula in exact numbers, where labels are rounded: all rows that tell a product are given.

    Rows at the very edge of agreement are no witnesses. `w` may be a vertex, which puts some there, be they right or
    wrong; and a wrong row that agrees by chance does so near the edge, if the truth is near. So rows near it are left
    out, few and then more, and what was found is counted on all. Where simple numbers agree with no fewer rows than
    `w` does, these rows are asked.
    """
    best: tuple[FloatArray, Fractions] = (w, (None,) * len(w))
    residual, threshold = _residuals(X, y, w, tolerance)
    agree = residual <= threshold
    n_agree = int(agree.sum())
    if n_agree > len(w) and _has_squares(X, y, w):
        guess = guess_formula(X[agree], y[agree], w, tolerance)
        if guess is not None:
            others = _residuals(X, y, guess, tolerance)
            if (others[0] <= others[1]).sum() >= n_agree:
                w, residual, threshold = guess, *others
    most = 0
    few, more = _EDGE, min(_WIDE_EDGE * len(w) / max(n_agree, 1), 0.5)
    for margin, centred in ((0.0, True), (few, False), (more, False)):
        chosen = np.flatnonzero(residual <= (1 - margin) * threshold)[:MOST_ROUNDED_ROWS]
        if len(chosen) <= len(w):  # so few rows follow any formula
            break
        start = w
        if centred:  # rows that agree far better than they may do so with the least squares of them
            start = linear.least_squares(X[chosen], y[chosen])
            if np.mean(((y - X @ start) / threshold)[chosen] ** 2) > _CLOSE**2:
                continue
        coef, fractions = _snap(X[chosen], y[chosen], start, tolerance)
        n_exact = sum(value is not None for value in fractions)
        if n_exact > most and np.less_equal(*_residuals(X, y, coef, tolerance)).sum() >= KEPT * n_agree:
            best, most = (coef, fractions), n_exact
        if most == len(w):
            break
    return _without_strays(X, y, best[0], best[1], tolerance), best[1]


def _without_strays(
    X: FloatArray, y: FloatArray, w: FloatArray, fractions: Fractions, tolerance: Tolerance
) -> FloatArray:
    """Set coefficients without an exact number to zero that are nothing but rounding of others, where no row minds."""
    terms = np.abs(w) * np.abs(X).max(axis=0, initial=0.0)
    stray = (terms <= _STRAY * terms.max(initial=0.0)) & np.array([value is None for value in fractions])
    cleared = np.where(stray, 0.0, w)
    agree, now = (np.less_equal(*_residuals(X, y, v, tolerance)) for v in (w, cleared))
    return cleared if now.sum() >= agree.sum() else w


def _residuals(X: FloatArray, y: FloatArray, w: FloatArray, tolerance: Tolerance) -> tuple[FloatArray, FloatArray]:
    """Return the magnitudes of the residuals, and the largest that agree."""
    return np.abs(y - X @ w), tolerance.threshold(np.abs(X) @ np.abs(w) + np.abs(y))
