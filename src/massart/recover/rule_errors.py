"""What looks like a rule of its own and is another one with an error in it: a multiple, a term forgotten, a column.

Rows cannot tell the two apart: both are mechanisms, and each passed its test
(:mod:`massart.certificate.mechanisms`). It is a matter of description, and the shorter one is taken: "rule 1 without
the freight" says more than a list of coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from massart.certificate.mechanisms import fullest_window
from massart.rows import BoolArray, FloatArray

AMOUNT_ROWS, AMOUNT_SHARE, MOST_AMOUNTS = 10, 0.01, 6
"""Rows, and share of the table, that an amount has at least by which they are off; and amounts at most."""

AMOUNT_EDGE = 3.0
"""An amount has this many times the rows of the fullest window beside those named: where columns have few values,
residuals repeat by chance (benchmarks/rule_lists.py, "list")."""

_SAMPLE_DIGITS, _FACTOR_DIGITS = 10, 6


class ErrorType(Enum):
    """Errors that make a formula of a rule; the value says it in words."""

    MULTIPLE = "times {factor}"
    FORGOTTEN = "without {term}"
    TWICE = "with {term} counted twice"
    SIGN = "with the sign of {term} reversed"
    COLUMN = "the value of {term} instead"


@dataclass(frozen=True, slots=True)
class RuleError:
    """How a formula came from a rule by an error.

    Attributes
    ----------
    rule : int
        The place of the rule in its list.
    type : ErrorType
    factor : float
        Of a multiple.
    column : int or None
        The column of the term.
    """

    rule: int
    type: ErrorType
    factor: float = 1.0
    column: int | None = None


def error_between(
    X: FloatArray, rule: FloatArray, other: FloatArray, half: float, single: BoolArray, place: int = 0
) -> RuleError | None:
    """Return by which error a rule becomes the other formula, in every row of the table; None if it is no such error.

    Parameters
    ----------
    X : (n, p) array
        The constant column included.
    rule, other : (p,) arrays
    half : float
        The half-width within which two values are the same.
    single : (p,) boolean array
        Columns that make no term of their own: the constant, and levels of a category, which are compared with a base
        level that nobody chose.
    place : int
        Of the rule in its list.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(0, 100, (50, 3))
    >>> single = np.zeros(3, dtype=bool)
    >>> error_between(X, np.array([2.0, 3.0, 1.0]), np.array([2.0, 0.0, 1.0]), 1e-9, single)
    RuleError(rule=0, type=<ErrorType.FORGOTTEN: 'without {term}'>, factor=1.0, column=1)
    >>> error_between(X, np.array([2.0, 3.0, 1.0]), np.array([20.0, 30.0, 10.0]), 1e-9, single).factor
    10.0
    >>> error_between(X, np.array([2.0, 3.0, 1.0]), np.array([2.0, 3.5, 1.0]), 1e-9, single) is None
    True
    """
    values = X @ other
    return next(
        (error for error, made in _errors(X, rule, values, single, place) if np.abs(values - made).max() <= 2 * half),
        None,
    )


def _errors(
    X: FloatArray, rule: FloatArray, values: FloatArray, single: BoolArray, place: int
) -> Iterator[tuple[RuleError, FloatArray]]:
    """Yield each error that may be it, and what the rule gives with it."""
    implied = X @ rule
    terms = np.flatnonzero((rule != 0) & ~single)
    ratio = float(values @ implied) / max(float(implied @ implied), np.finfo(float).tiny)
    factor = float(f"{ratio:.{_FACTOR_DIGITS}g}")
    power = abs(factor) > 0 and np.log10(abs(factor)) == round(np.log10(abs(factor)))
    if factor not in (0.0, 1.0) and (power or len(terms) > 1):  # another price for one thing is a rule
        yield RuleError(place, ErrorType.MULTIPLE, factor), factor * implied
    for j in terms if len(terms) > 1 else ():
        part = rule[j] * X[:, j]
        for type_, times in ((ErrorType.FORGOTTEN, -1), (ErrorType.TWICE, 1), (ErrorType.SIGN, -2)):
            yield RuleError(place, type_, column=int(j)), implied + times * part
    for j in np.flatnonzero(~single):
        yield RuleError(place, ErrorType.COLUMN, column=int(j)), X[:, j]


def amounts_of(rest: FloatArray, none: BoolArray, half: float) -> tuple[tuple[float, int], ...]:
    """Return amounts that many of some residuals have, and how many, the most frequent first.

    Examples
    --------
    >>> rest = np.r_[np.zeros(50), np.full(20, 25.0), np.linspace(1, 9, 30)]
    >>> amounts_of(rest, rest != 0, 0.005)
    ((25.0, 20),)
    """
    found: list[tuple[float, int]] = []
    values = rest[none]
    for _ in range(MOST_AMOUNTS):
        if fullest_window(values, half) < max(AMOUNT_ROWS, AMOUNT_SHARE * len(rest)):
            break
        ordered = np.sort(values)
        ends = np.searchsorted(ordered, ordered + 2 * half, side="right")
        start = int((ends - np.arange(len(ordered))).argmax())
        middle = float(np.median(ordered[start : ends[start]]))
        near = np.abs(values - middle) <= 2 * half
        found.append((float(f"{middle:.{_SAMPLE_DIGITS}g}"), int(near.sum())))
        values = values[~near]
    beside = fullest_window(values, half)
    while found and found[-1][1] < AMOUNT_EDGE * beside:
        beside = max(beside, found.pop()[1])
    return tuple(found)
