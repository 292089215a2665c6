"""Exact numbers for the formula of a sample: the rows that vouch for them, and those that are no witnesses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from massart.agreement import Agreement, Verified, verify
from massart.exact import Fractions, exact_coefficients, guess_formula
from massart.link import Link
from massart.recover.polish import without_dust
from massart.rows import BoolArray, FloatArray, Sample

MOST_ROWS, MOST_ROUNDED_ROWS = 2_000, 20_000
"""Rows that are asked: of exact labels, and of rounded ones, which tell less each."""

KEPT = 0.995
"""Share of the agreeing rows that must stay when rounded labels get exact numbers: wrong ones may agree by chance."""

SQUARE_IS_FINITE = 1e152
"""Largest number whose square does not overflow, by far; the squares of smaller ones than its inverse vanish."""

_EDGE, _WIDE_EDGE = 1e-5, 8.0  # shares of the half-width; the second for each column, over the number of rows
_PLAIN_DIGITS = 12
_FEW_DIGITS, _VERY_NEAR, _NEARLY, _MATTERS = (
    3,
    6e-4,
    0.95,
    20.0,
)  # the second in units of the last digit, the third of the rows, the last in half-widths of a term
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
        told[np.flatnonzero(told)[MOST_ROWS:]] = False
    used = w != 0  # what was left out, because rows do not determine it, say, is no unknown
    if told.sum() <= used.sum():  # so few rows follow any formula
        return w, (None,) * len(w)
    if not used.any():
        return w, (Fraction(0),) * len(w)
    rows, labels = linear_rows(X[np.ix_(told, used)], y[told], link)
    if agreement.inputs:
        agreement = replace(agreement, inputs=tuple(np.asarray(agreement.inputs)[used]))
    found, exact = (_snap_rounded if agreement.rounded else _snap)(rows, labels, w[used], agreement)
    coef = np.zeros(len(w))
    coef[used] = found
    numbers = iter(exact)
    return coef, tuple(next(numbers) if own else Fraction(0) for own in used)


def linear_rows(X: FloatArray, y: FloatArray, link: Link) -> tuple[FloatArray, FloatArray]:
    """Return rows with the product w.x for a label; beyond the limits of a link with a slope, that times the slope."""
    if not link.slope:
        return X, y
    limit = np.clip(y, link.lower, link.upper)
    beyond = y != limit
    slopes = np.where(beyond, link.slope, 1.0)
    return X * slopes[:, None], np.where(beyond, y - limit * (1 - link.slope), y)


def _snap(X: FloatArray, y: FloatArray, w: FloatArray, agreement: Agreement) -> tuple[FloatArray, Fractions]:
    """Return the formula in exact numbers where these rows, on which w.x is y, support them."""
    if not _has_squares(X, y, w):
        return w, (None,) * len(w)
    exact = exact_coefficients(X, y, w, agreement)
    return exact.coef, exact.fractions


def _has_squares(X: FloatArray, y: FloatArray, w: FloatArray) -> bool:
    """Tell whether squares of the numbers neither overflow nor vanish."""
    sizes = np.abs([X.max(), X.min(), y.max(), y.min(), *w])
    return bool(((sizes == 0) | ((sizes > 1 / SQUARE_IS_FINITE) & (sizes <= SQUARE_IS_FINITE))).all())


def _snap_rounded(X: FloatArray, y: FloatArray, w: FloatArray, agreement: Agreement) -> tuple[FloatArray, Fractions]:
    """Return the formula in exact numbers, where labels are rounded: all rows that tell a product are given.

    Rows at the very edge of agreement are no witnesses. `w` may be a vertex, which puts some there, be they right or
    wrong; and a wrong row that agrees by chance does so near the edge, if the truth is near. So rows near it are left
    out, few and then more, and what was found is counted on all. Where simple numbers agree with no fewer rows than
    `w` does, these rows are asked.
    """
    best: tuple[FloatArray, Fractions] = (w, (None,) * len(w))
    found = verify(X, y, w, agreement)
    n_agree = int(found.agree.sum())
    if n_agree <= len(w):  # so few rows follow any formula
        return best
    if _has_squares(X, y, w):
        guess = guess_formula(X[found.agree], y[found.agree], w, agreement)
        if guess is not None:
            other = verify(X, y, guess, agreement)
            if other.agree.sum() >= n_agree:
                w, found = guess, other
    most = 0
    few, more = _EDGE, min(_WIDE_EDGE * len(w) / n_agree, 0.5)
    for margin in (few, more):
        chosen = np.flatnonzero(_inside(found, margin))[:MOST_ROUNDED_ROWS]
        if len(chosen) <= len(w):  # so few rows follow any formula
            break
        coef, fractions = _snap(X[chosen], y[chosen], w, agreement)
        n_exact = sum(value is not None for value in fractions)
        if n_exact > most and agreement.agree(X, y, coef).sum() >= KEPT * n_agree:
            best, most = (coef, fractions), n_exact
        if most == len(w):
            break
    # A coefficient of many digits takes in a row or so that a plain one next to it does not.
    matters = np.abs(best[0]) * np.abs(X).max(axis=0) > _MATTERS * float(np.median(found.half_widths))
    plain = tuple(
        value if value is not None else _short_neighbour(c) if m else None
        for c, value, m in zip(best[0], best[1], matters, strict=True)
    )
    numbers = np.array([np.nan if value is None else float(value) for value in plain])
    enough = min(_NEARLY * n_agree, n_agree - len(w) - 1)
    if np.isfinite(numbers).all() and agreement.agree(X, y, numbers).sum() >= max(enough, len(w) + 1):
        return numbers, plain
    return _without_strays(X, y, best[0], best[1], agreement), best[1]


def _short_neighbour(c: float) -> Fraction | None:
    """Return a number of few digits so near that one in five hundred has such a neighbour; None if there is none."""
    for digits in range(1, _FEW_DIGITS + 1):
        value = Fraction(f"{c:.{digits}g}")
        if value and abs(float(value) - c) <= _VERY_NEAR * 10.0 ** (np.floor(np.log10(abs(c))) - digits + 1):
            return value
    return None


def _inside(found: Verified, margin: float) -> BoolArray:
    """Return the rows that agree, but for those within a share of their half-width of the edge."""
    return np.asarray(found.agree & (np.abs(found.residuals) <= (1 - margin) * found.half_widths))


def _without_strays(
    X: FloatArray, y: FloatArray, w: FloatArray, fractions: Fractions, agreement: Agreement
) -> FloatArray:
    """Set coefficients without an exact number to zero that are nothing but rounding of others, where no row minds."""
    cleared = without_dust(X, w, _STRAY)
    if cleared is None:
        return w
    cleared = np.where([value is None for value in fractions], cleared, w)
    minds = agreement.agree(X, y, cleared).sum() < agreement.agree(X, y, w).sum()
    return w if minds else cleared


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
