r"""Tolerance: the residual that the precision of the data explains.

Numbers in a table are rounded, so y = w.x never holds to the last bit. A row *agrees* with w when rounding explains its
residual:

.. math::
    |y - w \cdot x| \le \text{absolute} + \text{relative} \cdot (|w| \cdot |x| + |y|) ,

where the last factor, the *size* of the row, is the sum of the magnitudes that cancel in the residual: a float sum of
these terms is off by some multiple of the machine epsilon times their size, whatever the units. The absolute part is
for labels that were rounded to a fixed number of digits, such as cents.

With ``"auto"`` there are several candidates, from the tightest to the loosest. The tightest that explains a majority
is the answer (:func:`resolve_tolerance`): nothing is loosened where exact agreement is found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart.exact.decimals import DOUBLE, LONG, count_decimals
from massart.rows import BoolArray, FloatArray, check_labels, check_matrix, precision_of

_DOUBLE_MULTIPLE = 256
"""Epsilons that a residual in float64 may have, apart from one a column: what solving for w leaves."""

_COARSE_MULTIPLE = 16
"""The same for float32, where w is solved for in float64 and only the data are coarse."""

_UNITS_IN_SPREAD = 100
"""Rounding is plausible when half of the labels span this many units: else a rounded label says nothing."""

_MAJORITY = 0.5


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The residual that the precision of the data explains.

    Attributes
    ----------
    absolute : float
        Explained whatever the size of the row, in units of the labels.
    relative : float
        Explained for each unit of size.
    reason : str
        Where the numbers come from, in plain words.
    places : int or None
        Decimals to which the labels were rounded, where that is the reason.
    """

    absolute: float
    relative: float
    reason: str
    places: int | None = None

    def agree(self, residual: FloatArray, size: FloatArray) -> BoolArray:
        """Mark the rows that agree, given their residuals y - w.x and their sizes ``|w|.|x| + |y|``."""
        return np.asarray(np.abs(residual) <= self.threshold(size), dtype=np.bool_)

    def threshold(self, size: FloatArray) -> FloatArray:
        """Return the largest residual that agrees, for rows of the given sizes."""
        return np.asarray(self.absolute + self.relative * size, dtype=np.float64)


def tolerances(
    tolerance: float | Literal["auto"],
    X: ArrayLike,
    y: ArrayLike,
    *,
    X_precision: float | None = None,
    y_precision: float | None = None,
) -> tuple[Tolerance, ...]:
    """Return the tolerances that the data allow, the tightest first.

    Parameters
    ----------
    tolerance : "auto" or float
        A number is the absolute residual that counts as agreement, in the units of y, on top of float64 rounding; then
        there is exactly one candidate. Zero asks for agreement up to float64 rounding.
    X : (n, d) array
        A sample of the rows; a few thousand are plenty.
    y : (n,) or (n, m) array
        Their labels, some of them wrong.
    X_precision, y_precision : float, optional
        Machine epsilons of the types that the data have. By default those of the arrays given: say so if they were
        converted to float64 on the way.

    Returns
    -------
    tuple of Tolerance
        For "auto": float64 rounding; then float32 rounding where X or y is float32; then half a unit in the last place
        of the labels, if they have few decimals and could have been rounded: first the place of all labels, then that
        of the majority, since wrong labels may have more decimals than right ones.

    Raises
    ------
    ValueError
        If `tolerance` is negative, not finite or not a number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 100, (50, 2))
    >>> y = np.round(X @ [0.42, 1.5], 2)
    >>> for candidate in tolerances("auto", X, y):
    ...     print(candidate.absolute, candidate.reason)
    0.0 rounding of float64
    0.005 labels rounded to 2 decimals
    """
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    y_precision = precision_of(y) if y_precision is None else y_precision
    coarsest = max(precision_of(X) if X_precision is None else X_precision, y_precision)
    columns = rows.shape[1]
    tight = Tolerance(0.0, (_DOUBLE_MULTIPLE + columns) * DOUBLE, "rounding of float64")

    given = _checked(tolerance)
    if given is not None:
        return (Tolerance(given, tight.relative, f"absolute tolerance {given:g}, as given"),)
    candidates = [tight]
    if coarsest > DOUBLE:
        name = "float32" if coarsest <= float(np.finfo(np.float32).eps) else "float16"
        candidates.append(Tolerance(0.0, (_COARSE_MULTIPLE + columns) * coarsest, f"rounding of {name}"))
    for places in _rounded_places(labels, y_precision):
        half_unit = float(f"5e-{places + 1}")
        decimals = "whole numbers" if places == 0 else f"{places} decimal{'s' if places > 1 else ''}"
        candidates.append(Tolerance(half_unit, candidates[-1].relative, f"labels rounded to {decimals}", places))
    return tuple(candidates)


def resolve_tolerance(candidates: Sequence[Tolerance], residual: FloatArray, size: FloatArray) -> Tolerance:
    """Return the tightest candidate with which more than half of the rows agree; the tightest if none is.

    Parameters
    ----------
    candidates : sequence of Tolerance
        As :func:`tolerances` gives them, the tightest first.
    residual, size : (n,) arrays
        Residuals y - w.x of a formula and sizes ``|w|.|x| + |y|``. Where formulas differ from one candidate to the
        next, because each is polished on the rows that agree, ask with those of the candidate in question.
    """
    if not candidates:
        raise ValueError("candidates must hold at least one tolerance")
    for candidate in candidates:
        if candidate.agree(residual, size).mean() > _MAJORITY:
            return candidate
    return candidates[0]


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


def _rounded_places(y: FloatArray, precision: float) -> list[int]:
    """Return the decimals to which the labels may have been rounded, the most decimals first."""
    labels = y[y != 0]  # zero has no decimals whatever it was rounded to
    if not labels.size:
        return []
    count = np.sort(count_decimals(labels, precision))
    majority = int(count[len(count) // 2])  # more than half of the labels have at most as many
    low, middle, high = np.percentile(np.abs(labels), [25, 50, 75])
    spread = max(high - low, float(np.subtract(*np.percentile(labels, [75, 25]))))
    # Labels that nothing rounded have as many digits as their type: then half a unit is what floats lose anyway.
    multiple = _DOUBLE_MULTIPLE if precision <= DOUBLE else _COARSE_MULTIPLE
    return [
        places
        for places in sorted({int(count[-1]), majority}, reverse=True)
        if places != LONG and spread >= _UNITS_IN_SPREAD * 10.0**-places > 2 * multiple * precision * middle
    ]
