"""What looks like a rule of its own and is another one with an error in it: a multiple, a term forgotten, a column.

Rows cannot tell the two apart: both are mechanisms (:mod:`massart.certificate.mechanisms`). It is a matter of
description, and the shorter one is taken: "rule 1 without the freight" says more than a list of coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from massart.certificate import fullest_window
from massart.rows import BoolArray, FloatArray

FEWEST_ROWS, FEWEST_SHARE, MOST_AMOUNTS = 10, 0.01, 6
"""Rows, and share of the table, that an error has at least; and amounts at most by which rows are off one rule."""

EDGE = 3.0
"""An error has this many times the rows of the fullest window next to it: where columns have few values, residuals
repeat by chance (benchmarks/rule_lists.py, "list")."""

POWERS = (10.0, 0.1, 100.0, 0.01, 1000.0, 0.001, -1.0)
"""Factors that are looked for though no formula with them passed a test: a point or a sign in the wrong place."""

_SAMPLE_DIGITS, _FACTOR_DIGITS, _ARITHMETIC = 10, 6, 1e-12


class ErrorType(Enum):
    """Errors that rows of a rule have; the value says it in words."""

    MULTIPLE = "rule {rule} times {value}"
    FORGOTTEN = "rule {rule} without {term}"
    TWICE = "rule {rule} with {term} counted twice"
    SIGN = "rule {rule} with the sign of {term} reversed"
    COLUMN = "the value of {term}"
    VALUE = "the value {value}"
    AMOUNT = "off rule {rule} by {value}"


@dataclass(frozen=True, slots=True)
class RuleError:
    """How a label came from a rule by an error.

    Attributes
    ----------
    rule : int
        The place of the rule in its list.
    type : ErrorType
    value : float
        The factor of a multiple, the amount, or the value that rows have instead.
    column : int or None
        The column of the term.
    """

    rule: int
    type: ErrorType
    value: float = 1.0
    column: int | None = None

    def words(self, term: str = "") -> str:
        """Say it: "rule 1 without freight"; `term` is what the column is called."""
        return self.type.value.format(rule=self.rule + 1, value=f"{self.value:.10g}", term=term)


@dataclass(frozen=True, slots=True, eq=False)
class RowsWithError:
    """An error, and the rows that have it and no other one that is reported.

    Attributes
    ----------
    error : RuleError
    rows : (m,) array of int
    """

    error: RuleError
    rows: NDArray[np.intp]


def error_between(
    X: FloatArray, rule: FloatArray, other: FloatArray, half: float, single: BoolArray, place: int = 0
) -> RuleError | None:
    """Return by which error a rule becomes the other formula, in every row of the table; None if there is none.

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
    >>> error_between(X, np.array([2.0, 3.0, 1.0]), np.array([2.0, 0.0, 1.0]), 1e-9, single).words("freight")
    'rule 1 without freight'
    >>> error_between(X, np.array([2.0, 3.0, 1.0]), np.array([20.0, 30.0, 10.0]), 1e-9, single).words()
    'rule 1 times 10'
    >>> error_between(X, np.array([2.0, 3.0, 1.0]), np.array([2.0, 3.5, 1.0]), 1e-9, single) is None
    True
    """
    values, implied = X @ other, X @ rule
    ratio = float(values @ implied) / max(float(implied @ implied), np.finfo(float).tiny)
    factor = float(f"{ratio:.{_FACTOR_DIGITS}g}")
    power = factor != 0 and float(np.log10(abs(factor))).is_integer()
    another_price = not power and np.count_nonzero((rule != 0) & ~single) < 2  # for one thing: that is a rule
    factors = () if factor in (0.0, 1.0) or another_price else (factor,)
    known = _errors(X, rule, single, place, factors)
    return next((error for error, made in known if np.abs(values - made).max() <= 2 * half), None)


def errors_of(
    X: FloatArray,
    y: FloatArray,
    rules: Sequence[tuple[FloatArray, float]],
    known: Sequence[tuple[RuleError, BoolArray]],
    none: BoolArray,
    single: BoolArray,
) -> tuple[RowsWithError, ...]:
    """Return the errors that many of the rows that follow no rule have, the most frequent first.

    Parameters
    ----------
    X, y : arrays
    rules : sequence of pairs
        The coefficients of each rule, and the largest half-width of a row that agrees.
    known : sequence of pairs
        Errors whose formulas passed a test, and the rows that fit them.
    none : (n,) boolean array
        Rows that follow no rule.
    single : (p,) boolean array
        See :func:`error_between`.
    """
    fewest = max(FEWEST_ROWS, FEWEST_SHARE * len(y))
    found = [(error, none & fits) for error, fits in known]
    named = {error for error, _ in known}
    left = none & ~np.any([rows for _, rows in found], axis=0)
    size = np.finfo(float).eps + _ARITHMETIC * np.abs(y)
    for place, (rule, half) in enumerate(rules):
        for error, made in _errors(X, rule, single, place, POWERS):
            fits = np.abs(y - made) <= half * max(1.0, abs(error.value)) + size
            n_near = int(np.count_nonzero(left & fits))
            if error in named or n_near < fewest:
                continue
            if n_near >= EDGE * fullest_window((y - made)[left & ~fits], half):
                found.append((error, none & fits))
    left = left & ~np.any([rows for _, rows in found], axis=0)
    for place, (rule, half) in enumerate(rules):
        shifts = [(ErrorType.AMOUNT, y - X @ rule), *[(ErrorType.VALUE, y)] * (place == 0)]
        for type_, rest in shifts:
            for amount, some in amounts_of(rest, left, half):
                found.append((RuleError(place, type_, amount), np.isin(np.arange(len(y)), some)))
    times = np.sum([rows for _, rows in found], axis=0) if found else np.zeros(len(y), dtype=int)
    alone = (RowsWithError(error, np.flatnonzero(rows & (times == 1))) for error, rows in found)
    return tuple(sorted((one for one in alone if len(one.rows)), key=lambda one: -len(one.rows)))


def _errors(
    X: FloatArray, rule: FloatArray, single: BoolArray, place: int, factors: Sequence[float]
) -> Iterator[tuple[RuleError, FloatArray]]:
    """Yield each error that may be, and what the rule gives with it."""
    implied = X @ rule
    terms = np.flatnonzero((rule != 0) & ~single)
    for factor in factors:
        yield RuleError(place, ErrorType.MULTIPLE, factor), factor * implied
    for j in terms if len(terms) > 1 else ():
        part = rule[j] * X[:, j]
        for type_, times in ((ErrorType.FORGOTTEN, -1), (ErrorType.TWICE, 1), (ErrorType.SIGN, -2)):
            yield RuleError(place, type_, column=int(j)), implied + times * part
    for j in np.flatnonzero(~single) if place == 0 else ():
        yield RuleError(place, ErrorType.COLUMN, column=int(j)), X[:, j]


def amounts_of(rest: FloatArray, none: BoolArray, half: float) -> tuple[tuple[float, NDArray[np.intp]], ...]:
    """Return amounts that many of some residuals have, and which, the most frequent first.

    Examples
    --------
    >>> rest = np.r_[np.zeros(50), np.full(4, 25.0), np.linspace(1, 9, 30), np.full(16, 25.0)]
    >>> [(amount, len(rows)) for amount, rows in amounts_of(rest, rest != 0, 0.005)]
    [(25.0, 20)]
    """
    found: list[tuple[float, NDArray[np.intp]]] = []
    rows = np.flatnonzero(none)
    for _ in range(MOST_AMOUNTS):
        if fullest_window(rest[rows], half) < max(FEWEST_ROWS, FEWEST_SHARE * len(rest)):
            break
        ordered = np.sort(rest[rows])
        ends = np.searchsorted(ordered, ordered + 2 * half, side="right")
        start = int((ends - np.arange(len(ordered))).argmax())
        middle = float(np.median(ordered[start : ends[start]]))
        near = np.abs(rest[rows] - middle) <= 2 * half
        found.append((float(f"{middle:.{_SAMPLE_DIGITS}g}"), rows[near]))
        rows = rows[~near]
    beside = fullest_window(rest[rows], half)
    while found and len(found[-1][1]) < EDGE * beside:
        beside = max(beside, len(found.pop()[1]))
    return tuple(found)
