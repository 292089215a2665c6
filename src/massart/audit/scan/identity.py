r"""A proposal of a scan: a column and the terms that it may be a sum of.

All identities are vectors over the columns, their logarithms and the constant, ``y = 2 a b`` as
:math:`\log y - \log a - \log b = \log 2`; so one notion of independence tells which identity follows from others. A
proposal claims nothing: whoever asked for it has it judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.rows.decimals import LONG, count_decimals
from massart.rules.terms import Term, column

SHARE = 0.55
"""Of the rows, and of those that do not have the most frequent values, that a proposal fits at least."""

_SMALL_SAMPLE = 80  # rows on which each pair of columns is tried
_IN_SPREAD = 20  # units in the spread of a column that may be rounded


@dataclass(frozen=True, eq=False)
class Identity:
    """A proposal: a column and the terms that it may be a sum of."""

    target: str
    terms: tuple[Term, ...]
    # (2 p + 1,), coefficients of the columns, of their logarithms, and the constant; the sum is zero
    vector: FloatArray
    share: float  # of the rows that have all the values, how many it fits
    coarse: bool = False  # whether it is a ratio with whole numbers as target, in which small errors vanish

    @property
    def is_sum(self) -> bool:
        """Whether its terms are columns as they stand."""
        return all(term.is_column for term in self.terms)

    @property
    def columns(self) -> tuple[str, ...]:
        """The target, and the columns that its terms read."""
        return (self.target, *dict.fromkeys(name for term in self.terms for name in term.columns()))

    @property
    def n_columns(self) -> int:
        """Columns in all."""
        return len(self.columns)

    @property
    def effort(self) -> tuple[float, ...]:
        """How hard it is to read: columns, then logarithms and products, minus signs or ratios, numbers but one."""
        inner = [term for term in self.terms if not term.is_column]
        p = len(self.vector) // 2
        own = self.vector[:-1][self.vector[:-1] != 0] / np.abs(self.vector[:-1]).max()
        if inner:
            return (
                self.n_columns,
                1,
                self.coarse,
                -round(self.share, 2),
                sum(term.op == "/" for term in inner),
                _odd(own),
            )
        others = np.delete(self.vector[:p], int(np.argmax(self.vector[:p] == -1)))
        others = others[others != 0]
        return (self.n_columns, 0, float((others < 0).sum()), _odd(others), -self.share)

    def solved(self, names: Sequence[str]) -> Identity:
        """Return a sum solved for the column that reads best: without minus signs, the total on the left."""
        if not self.is_sum:
            return self
        forms = [self]
        for j in np.flatnonzero(self.vector[: len(names)]).tolist():
            vector = self.vector / -self.vector[j]
            terms = tuple(column(names[k]) for k in np.flatnonzero(vector[: len(names)]).tolist() if k != j)
            forms.append(Identity(names[j], terms, vector, self.share))
        return min(forms, key=lambda one: one.effort)


def _odd(values: FloatArray) -> float:
    """Return how many numbers are not plus or minus one."""
    return float((np.abs(np.abs(values) - 1) > 1e-6).sum())


@dataclass(frozen=True, eq=False)
class Numbers:
    """Columns of numbers to look for identities in: (n, p) values, NaN where one is missing."""

    names: tuple[str, ...]
    values: FloatArray

    def take(self, rows: NDArray[np.intp]) -> Numbers:
        """Return some rows."""
        return Numbers(self.names, self.values[rows])

    def half_units(self) -> FloatArray:
        """Return half a unit of the last place of each column, 0 where it is no rounding."""
        return np.array([_half_unit(values[np.isfinite(values)]) for values in self.values.T])


def _half_unit(values: FloatArray) -> float:
    places = int(count_decimals(values[:500]).max(initial=0))
    if places == LONG or not values.size:
        return 0.0
    unit = 10.0**-places
    low, high = np.percentile(values, [25, 75])
    return unit / 2 if high - low >= _IN_SPREAD * unit else 0.0


def not_most_frequent(values: FloatArray) -> BoolArray:
    """Mark the values other than the most frequent one, or all where none is."""
    found, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    most = int(np.argmax(counts))
    if len(found) == 1 or counts[most] < 2:
        return np.ones(len(values), dtype=bool)
    return np.asarray(where.ravel() != most)


def few(rows: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the rows, or some of them if there are many."""
    return rows if len(rows) <= _SMALL_SAMPLE else np.sort(rng.choice(rows, _SMALL_SAMPLE, replace=False))


def medians(values: FloatArray) -> FloatArray:
    """Return one of the two values in the middle of each column, NaN where there is none; faster than numpy's."""
    ordered = np.sort(values, axis=0)  # NaN is last
    known = np.isfinite(values).sum(axis=0)
    return np.asarray(np.take_along_axis(ordered, (known // 2 * (known > 0))[None, :], axis=0)[0])
