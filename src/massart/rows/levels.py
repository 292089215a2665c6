r"""The levels of agreement that the data allow, the tightest first.

*Exact* is always there. Numbers of type float32, or that come from there (each is a float32, and no short decimal), are
rounded to its precision. Labels on a grid of :math:`10^k`, cents as well as thousands, may have been rounded to it; if
they were, so may the columns have been that lie on grids of their own, as in published tables. Levels are nested:
a row that agrees at one agrees at the next. Which of them is right is for the residuals to say.
"""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.rows.agreement import EPS, Agreement, Level
from massart.rows.arrays import FloatArray, check_labels, check_matrix, precision_of, type_of

IntArray: TypeAlias = NDArray[np.int64]

LONG = 99
"""The number of decimals given for a number that is not a short decimal."""

ARITHMETIC = 6
"""Epsilons that a residual may have, apart from one a column, where numbers were computed in float64."""

LONG_ARITHMETIC = 256
"""The same where labels were computed in many steps, or carry noise as small: taken only where residuals fill what the
first leaves."""

FEWEST_ROWS = 20
"""With fewer, an interval for each label leaves room for too many formulas."""

_COARSE = 2.0  # the same for float32, in units of its rounding, with one half a column: w is solved for in float64
_UNITS_IN_SPREAD = 20  # rounding is plausible when half of the labels span this many units: else a label says nothing
_MOST_ZEROS = 12  # of a grid of 10^k
_MOST_DECIMALS = 22  # 10.0**22 is the largest power of ten that float64 holds exactly
_LOOKED_AT, _GLIMPSE = 500, 8


def levels(
    tolerance: float | Literal["auto"],
    X: ArrayLike,
    y: ArrayLike,
    *,
    X_precision: float | None = None,
    y_precision: float | None = None,
) -> tuple[Agreement, ...]:
    """Return the levels of agreement that the data allow, the tightest first.

    Parameters
    ----------
    tolerance : "auto" or float
        A number is the absolute residual that counts as agreement, in the units of y, on top of float rounding; then
        there is exactly one level. Zero asks for exact agreement.
    X : (n, d) array
        A sample of the rows; a few thousand are plenty.
    y : (n,) array
        Their labels, some of them wrong.
    X_precision, y_precision : float, optional
        Machine epsilons of the types that the data have. By default those of the arrays given: say so if they were
        converted to float64 on the way.

    Raises
    ------
    ValueError
        If `tolerance` is negative, not finite or not a number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 100, (50, 2))
    >>> y = np.round(X @ [0.42, 1.5], 2)
    >>> for level in levels("auto", X, y):
    ...     print(level)
    exactly
    within rounding to cents
    """
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    d = rows.shape[1]
    relative = (ARITHMETIC + d) * EPS
    given = _checked(tolerance)
    if given is not None:
        return (Agreement(Level.GIVEN, label=given, relative=relative),)
    x_eps = _origin(rows, precision_of(X) if X_precision is None else X_precision)
    y_eps = _origin(labels, precision_of(y) if y_precision is None else y_precision)
    coarsest = max(x_eps, y_eps)
    places = _column_places(rows, x_eps)
    decimal = bool((places != LONG).all()) and coarsest <= EPS
    tight = EPS if decimal else (1 + d / 2) * EPS
    grids = _grids(labels, y_eps)
    unit = grids[0] if grids and coarsest <= EPS else None
    exact = Agreement(Level.EXACT, relative=relative, unit=unit, tight=tight)
    some = np.column_stack([rows, labels])[:_LOOKED_AT]  # repeated rows say nothing new
    enough = len(np.unique(some, axis=0)) >= FEWEST_ROWS
    plausible = [unit for unit in grids if _is_plausible(labels, unit, y_eps)] if enough else []
    found = [exact]
    if not grids:  # labels on a grid were not computed in many steps
        found.append(replace(exact, relative=(LONG_ARITHMETIC + d) * EPS))
    if coarsest > EPS:
        relative = (_COARSE + d / 2) * coarsest
        found.append(Agreement(Level.EXACT, relative=relative, precision=coarsest))
    cap = tight if coarsest <= EPS else relative  # a float32 that is rounded is a float32, too
    found += [Agreement(Level.LABEL, unit / 2, (), relative, unit, cap, coarsest) for unit in plausible]
    inputs = tuple(_half_units(rows, places, x_eps))
    if plausible and any(inputs):
        last = found[-1]
        found.append(Agreement(Level.INPUTS, last.label, inputs, relative, last.unit, last.tight, precision=coarsest))
    return tuple(found)


def _checked(tolerance: object) -> float | None:
    """Return the absolute number, or None for "auto"."""
    if isinstance(tolerance, str) and tolerance == "auto":
        return None
    if isinstance(tolerance, bool | np.bool_) or not isinstance(tolerance, Real):
        raise ValueError(f'tolerance must be "auto" or a number, got {tolerance!r}')
    number = float(tolerance)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"tolerance must be finite and not negative, got {number}")
    return number


def _origin(values: FloatArray, precision: float) -> float:
    """Return the precision that the numbers were made in: float32 where each long one is a float32."""
    if precision > EPS:
        return precision
    some = values[:_LOOKED_AT].ravel()
    with np.errstate(over="ignore"):
        single = some.astype(np.float32).astype(np.float64) == some
    if not single.any():
        return precision
    is_long = count_decimals(some) == LONG
    # One double in 2^29 is a float32 by chance. Wrong labels may come from elsewhere.
    return float(np.finfo(np.float32).eps) if 2 * (single & is_long).sum() > is_long.sum() else precision


def _grids(y: FloatArray, precision: float) -> list[float]:
    """Return units of ten that all labels, and that most of them, are multiples of: the finest first."""
    labels = y[y != 0]  # zero has no decimals whatever it was rounded to
    if not labels.size:
        return []
    count = np.sort(_places(labels, precision))
    # More than half of the labels have at most as many places as the one in the middle.
    return [float(f"1e{-p}") for p in sorted({int(count[-1]), int(count[len(count) // 2])})[::-1] if p != LONG]


def _places(values: FloatArray, precision: float) -> IntArray:
    """Return the decimals of each number, negative for multiples of ten; `LONG` for a number that is none."""
    places = count_decimals(values, precision)
    left = np.flatnonzero(places == 0)
    for zeros in range(1, _MOST_ZEROS + 1):
        left = left[values[left] % 10.0**zeros == 0]
        places[left] = -zeros
    return places


def _is_plausible(y: FloatArray, unit: float, precision: float) -> bool:
    """Return whether labels may have been rounded to multiples of the unit, and what is left says something."""
    labels = y[y != 0]
    low, high = np.percentile(labels, [25, 75])
    # Labels that nothing rounded have as many digits as their type: then half a unit is what floats lose anyway.
    lost = 2 * ARITHMETIC * precision * float(np.median(np.abs(labels)))
    return bool(high - low >= _UNITS_IN_SPREAD * unit > lost)


def _column_places(X: FloatArray, precision: float) -> IntArray:
    """Return the decimals that each column has at most; `LONG` for a column of other numbers."""
    some = X[:_LOOKED_AT]
    places = np.full(X.shape[1], LONG)
    for j in np.flatnonzero(~(count_decimals(X[:_GLIMPSE], precision) == LONG).any(axis=0)):
        column = some[:, j]
        places[j] = int(_places(column[column != 0], precision).max(initial=-_MOST_ZEROS))
    return places


def _half_units(X: FloatArray, places: IntArray, precision: float) -> list[float]:
    """Return half a unit of the last place of each column that may have been rounded; 0 for flags, codes and counts."""
    halves = []
    for column, p in zip(X[:_LOOKED_AT].T, places, strict=True):
        unit = 0.0 if p == LONG else 10.0 ** -int(p)
        halves.append(unit / 2 if unit and column.any() and _is_plausible(column, unit, precision) else 0.0)
    return halves


def count_decimals(values: FloatArray, precision: float = EPS) -> IntArray:
    """Return the digits after the point of each value, as it prints; `LONG` for a number with too many digits.

    A float stands for the shortest decimal that rounds to it: 0.1 for 1/10, not for 3602879701896397 / 2**55. That is
    what a person typed or a file held, provided that it has few enough digits to survive the float: 15 for float64, 6
    for float32. Numbers with more digits were computed, and no decimal is read into them.

    Parameters
    ----------
    values : array of finite numbers
    precision : float
        Machine epsilon of the type that the values had before they became float64.

    Examples
    --------
    >>> count_decimals(np.array([3.0, -19.99, 0.1, 0.1 + 0.2, 1e15, 1e-7])).tolist()
    [0, 2, 1, 99, 0, 7]
    """
    kind = type_of(precision)
    flat = np.abs(np.asarray(values, dtype=np.float64).ravel())
    count = np.where(flat == np.rint(flat), 0, LONG)
    left = np.flatnonzero(count)
    for places in range(1, _MOST_DECIMALS + 1):
        power = 10.0**places
        scaled = flat[left] * power
        # Below this bound the rounded product is the numerator, and both it and the power are exact, so that one
        # division rounds once: the quotient is the float that this decimal is read as.
        short = scaled < 0.25 / precision
        left, scaled = left[short], scaled[short]
        same = (np.rint(scaled) / power).astype(kind) == flat[left].astype(kind)
        count[left[same]] = places
        left = left[~same]
    return count.astype(np.int64).reshape(np.shape(values))
