r"""Rational solutions: w with y = X w exactly, where the data are whole numbers or short decimals.

The numbers are read as the decimals they print as, columns are scaled to integers, d independent rows are chosen by
elimination modulo a prime (rows independent modulo a prime are independent over the rationals, with no tolerance), the
square system is solved in integers, and every row is checked in integers. What is returned holds without rounding.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.agreement.decimals import Decimals, IntArray, read_decimals
from massart.rows import precision_of

_PRIME = 2**31 - 1  # products of two residues fit in int64
_MOST_COLUMNS = 80  # without python-flint: a second or two of integer elimination
_SAFE = 2**62
_FIRST_ROWS = 4  # rows a column that are searched first for independent ones


class RationalStatus(Enum):
    """How a rational solve ended; the value says it in words."""

    EXACT = "every row holds exactly in rational arithmetic"
    NOT_DECIMAL = "some numbers have too many digits to be read as the decimals they print as"
    DEPENDENT = "the rows do not determine every coefficient"
    CONTRADICTED = "no formula holds exactly on every row: some labels are rounded or wrong"
    TOO_LARGE = f"more than {_MOST_COLUMNS} columns need python-flint: pip install 'massart[exact]'"


@dataclass(frozen=True, slots=True)
class RationalSolution:
    """The formula in rational numbers.

    Attributes
    ----------
    coef : tuple of Fraction
        One for each column; empty unless the status is EXACT.
    status : RationalStatus
    """

    coef: tuple[Fraction, ...]
    status: RationalStatus


def solve_rational(X: NDArray[Any], y: NDArray[Any]) -> RationalSolution:
    """Solve ``y = X w`` in rational arithmetic, and check every row.

    Parameters
    ----------
    X : (n, d) array
        Rows that agree with one formula, in whole numbers or short decimals, read at the precision of their type.
    y : (n,) array
        Their labels, the same.

    Returns
    -------
    RationalSolution
        With the status EXACT, or one that says why there is no such solution.

    Notes
    -----
    With python-flint (the ``exact`` extra) 60 columns take milliseconds. Without it integers of Python are used, for
    up to 80 columns.

    Examples
    --------
    >>> X = np.array([[1, 0.1], [2, 0.3], [3, 0.7]])
    >>> solve_rational(X, np.array([0.35, 0.7, 1.1])).status.name
    'CONTRADICTED'
    >>> [str(w) for w in solve_rational(X, np.array([0.45, 1.1, 2.15])).coef]
    ['1/4', '2']
    """
    system = _read(X, y)
    if system is None:
        return RationalSolution((), RationalStatus.NOT_DECIMAL)
    chosen = _independent_rows(system.N)
    if len(chosen) < X.shape[1]:
        return RationalSolution((), RationalStatus.DEPENDENT)
    flint = _flint()
    if flint is None and X.shape[1] > _MOST_COLUMNS:
        return RationalSolution((), RationalStatus.TOO_LARGE)
    A = [[int(value) for value in row] for row in system.N[chosen]]
    b = [int(value) for value in system.M[chosen]]
    scaled = _solve_by_elimination(A, b) if flint is None else _solve_by_flint(flint, A, b)
    if not system.holds(scaled).all():
        return RationalSolution((), RationalStatus.CONTRADICTED)
    return RationalSolution(system.unscaled(scaled), RationalStatus.EXACT)


def holds_exactly(X: NDArray[Any], y: NDArray[Any], coef: Sequence[Fraction]) -> bool:
    """Tell whether every row satisfies ``y = X coef`` exactly, its numbers read as the decimals they print as."""
    system = _read(X, y)
    return system is not None and bool(system.holds(system.scaled(coef)).all())


@dataclass(frozen=True, slots=True)
class _System:
    """The equations ``N v = M`` in integers, with ``v_j = w_j 10^(labels - columns_j)``."""

    N: NDArray[Any]
    M: NDArray[Any]
    columns: tuple[int, ...]
    labels: int

    def scaled(self, w: Sequence[Fraction]) -> list[Fraction]:
        return [value * Fraction(10) ** (self.labels - places) for value, places in zip(w, self.columns, strict=True)]

    def unscaled(self, v: Sequence[Fraction]) -> tuple[Fraction, ...]:
        pairs = zip(v, self.columns, strict=True)
        return tuple(value * Fraction(10) ** (places - self.labels) for value, places in pairs)

    def holds(self, v: Sequence[Fraction]) -> NDArray[np.bool_]:
        """Mark the equations that v satisfies, in integers wide enough for them."""
        q = lcm(*(value.denominator for value in v))
        p = [int(value * q) for value in v]
        left = sum(_largest(column) * abs(value) for column, value in zip(self.N.T, p, strict=True))
        if left < _SAFE and _largest(self.M) * q < _SAFE and q < _SAFE and max(map(abs, p)) < _SAFE:
            N, M, weights = self.N.astype(np.int64), self.M.astype(np.int64), np.array(p, dtype=np.int64)
            return np.asarray(N @ weights == M * q, dtype=np.bool_)
        wide = self.N.astype(object) @ np.array(p, dtype=object)
        return np.asarray(wide == self.M.astype(object) * q, dtype=np.bool_)


def _read(X: NDArray[Any], y: NDArray[Any]) -> _System | None:
    labels = read_decimals(y.astype(np.float64), precision_of(y))
    if labels is None:
        return None
    columns: list[Decimals] = []
    for column in X.T:
        decimals = read_decimals(column.astype(np.float64), precision_of(X))
        if decimals is None:
            return None
        columns.append(decimals)
    N = np.column_stack([column.numerators for column in columns])
    return _System(N, labels.numerators, tuple(column.places for column in columns), labels.places)


def _largest(values: NDArray[Any]) -> int:
    return max(abs(int(values.max())), abs(int(values.min())))


def _independent_rows(N: NDArray[Any]) -> list[int]:
    """Return rows that are independent modulo a prime: as many as the rank, but for a chance of one in a billion."""
    n, d = N.shape
    size = min(n, _FIRST_ROWS * d)
    while True:
        chosen = _pivot_rows(np.asarray(N[:size] % _PRIME, dtype=np.int64))
        if len(chosen) == d or size == n:
            return chosen
        size = min(n, 8 * size)


def _pivot_rows(residues: IntArray) -> list[int]:
    """Eliminate modulo the prime and return the rows of the pivots."""
    left = residues.copy()
    chosen: list[int] = []
    free = np.ones(len(left), dtype=bool)
    for column in range(left.shape[1]):
        candidates = np.flatnonzero(free & (left[:, column] != 0))
        if not candidates.size:
            continue
        pivot = int(candidates[0])
        chosen.append(pivot)
        free[pivot] = False
        others = candidates[1:]
        factors = left[others, column] * pow(int(left[pivot, column]), -1, _PRIME) % _PRIME
        left[others] = (left[others] - factors[:, np.newaxis] * left[pivot] % _PRIME) % _PRIME
    return chosen


def _flint() -> Any:
    """Return the module of python-flint, or None where it is not installed."""
    try:
        return importlib.import_module("flint")
    except ImportError:
        return None


def _solve_by_flint(flint: Any, A: list[list[int]], b: list[int]) -> list[Fraction]:
    solution = flint.fmpz_mat(A).solve(flint.fmpz_mat([[value] for value in b]))
    return [Fraction(int(value.p), int(value.q)) for value in solution.entries()]


def _solve_by_elimination(A: list[list[int]], b: list[int]) -> list[Fraction]:
    """Solve an invertible system by Bareiss's elimination: divisions are exact, so that integers stay integers."""
    d = len(A)
    table = [[*row, value] for row, value in zip(A, b, strict=True)]
    previous = 1
    for k in range(d):
        pivot = next(i for i in range(k, d) if table[i][k])
        table[k], table[pivot] = table[pivot], table[k]
        top, head = table[k], table[k][k]
        for i in range(k + 1, d):
            row, factor = table[i], table[i][k]
            table[i] = [(head * value - factor * above) // previous for value, above in zip(row, top, strict=True)]
        previous = head
    solution = [Fraction(0)] * d
    for k in reversed(range(d)):
        known = sum((table[k][j] * solution[j] for j in range(k + 1, d)), Fraction(0))
        solution[k] = (table[k][d] - known) / table[k][k]
    return solution
