"""Exact numbers for the formula of a sample, from the rows that determine a product."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from massart.exact import Fractions, exact_numbers
from massart.rows import Agreement, BoolArray, FloatArray, Link, Sample, verify

MOST_ROWS, MOST_ROUNDED_ROWS = 2_000, 20_000
"""Rows that are asked: of exact labels, and of rounded ones, which tell less each."""

SQUARE_IS_FINITE = 1e152
"""Largest number whose square does not overflow, by far; the squares of smaller ones than its inverse vanish."""

_PLAIN_DIGITS = 12
_STRAY = 1e-12  # relative size of a term that is nothing but rounding of the others


def snap(
    X: FloatArray, y: FloatArray, agree: BoolArray, w: FloatArray, agreement: Agreement, link: Link
) -> tuple[FloatArray, Fractions]:
    """Return the formula in exact numbers where the rows that agree with `w` support them.

    Parameters
    ----------
    X, y : (n, d) and (n,) arrays
        The rows of a sample, wrong ones among them.
    agree : (n,) boolean array
        Those that agree with `w`.
    w : (d,) array
        A polished formula.
    agreement : Agreement
    link : Link

    Returns
    -------
    coef : (d,) array
    fractions : tuple of Fraction or None
    """
    told = link.decisive(y, verify(X, y, w, agreement, link).half_widths)
    if not agreement.rounded:
        told &= agree
    told[np.flatnonzero(told)[MOST_ROUNDED_ROWS if agreement.rounded else MOST_ROWS :]] = False
    used = w != 0  # what was left out, because rows do not determine it, say, is no unknown
    if told.sum() <= used.sum():  # so few rows follow any formula
        return w, (None,) * len(w)
    if not used.any():
        return w, (Fraction(0),) * len(w)
    rows, labels = linear_rows(X[np.ix_(told, used)], y[told], link)
    if agreement.inputs:
        agreement = replace(agreement, inputs=tuple(np.asarray(agreement.inputs)[used]))
    exact = exact_numbers(rows, labels, w[used], agreement) if _has_squares(rows, labels, w[used]) else None
    if exact is None:
        return w, tuple(None if own else Fraction(0) for own in used)
    coef = np.zeros(len(w))
    coef[used] = exact.coef
    numbers = iter(exact.fractions)
    return coef, tuple(next(numbers) if own else Fraction(0) for own in used)


def linear_rows(X: FloatArray, y: FloatArray, link: Link) -> tuple[FloatArray, FloatArray]:
    """Return rows with the product w.x for a label; beyond the limits of a link with a slope, that times the slope."""
    if not link.slope:
        return X, y
    limit = np.clip(y, link.lower, link.upper)
    beyond = y != limit
    slopes = np.where(beyond, link.slope, 1.0)
    return X * slopes[:, None], np.where(beyond, y - limit * (1 - link.slope), y)


def _has_squares(X: FloatArray, y: FloatArray, w: FloatArray) -> bool:
    """Tell whether squares of the numbers neither overflow nor vanish."""
    sizes = np.abs([X.max(), X.min(), y.max(), y.min(), *w])
    return bool(((sizes == 0) | ((sizes > 1 / SQUARE_IS_FINITE) & (sizes <= SQUARE_IS_FINITE))).all())


def hold_to_exact_arithmetic(
    rows: Sample, w: FloatArray, fractions: Fractions, agreement: Agreement, link: Link
) -> tuple[FloatArray, Fractions, bool]:
    """Return the formula in numbers so exact that rows with large terms may be judged by them, and whether it is.

    Where terms are so large that a unit of the last place is within what computed coefficients leave, rows that are off
    by some units vouch for the wrong digits. So numbers of `_PLAIN_DIGITS` digits compete, and rows are counted as
    exact numbers allow.
    """
    known = all(value is not None for value in fractions)
    X, y, counts = rows.X, rows.y, rows.counts
    sizes = np.abs(X) @ np.abs(w) + np.abs(y)
    if agreement.scales_up_to(float(sizes.max())):
        return w, fractions, known
    terms = np.abs(w) * np.abs(X).max(axis=0)
    slight = terms <= _STRAY * terms.max()
    exact = tuple(Fraction(0) if s else Fraction(f"{c:.{_PLAIN_DIGITS}g}") for c, s in zip(w, slight, strict=True))
    candidates = [(np.array([float(value) for value in exact]), exact)] + [(w, fractions)] * known
    weights = [float(counts[agreement.agree(X, y, coef, link)].sum()) for coef, _ in candidates]
    best = int(np.argmax(weights))
    if 2 * weights[best] < float(counts[agreement.uncapped.agree(X, y, w, link)].sum()):
        return w, fractions, False
    return *candidates[best], True
