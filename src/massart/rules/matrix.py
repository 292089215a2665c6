"""The values of terms as a matrix that is made when it is read: a large table never holds all its terms at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from massart.rows import BoolArray, Columnwise, FloatArray, row_blocks
from massart.rules.columns import Columns
from massart.rules.literals import TermError
from massart.rules.terms import Term


class TermMatrix:
    """One column for each term, one row for each row of the table."""

    ndim = 2
    dtype = np.dtype(np.float64)
    made_when_read = True

    def __init__(self, columns: Columns, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)
        self.shape = (columns.n_rows, len(self.terms))
        self._columns = columns
        self._ready = {term: term.evaluate(columns) for term in self.terms if term.needs_order}

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> FloatArray:
        """Return some rows, or with ``[:, j]`` one column."""
        if isinstance(key, tuple):
            rows, j = key
            return self._values(self.terms[j], self._columns.take(rows), rows)
        some = self._columns.take(key)
        found = np.empty((some.n_rows, len(self.terms)), order="F")
        for j, term in enumerate(self.terms):
            found[:, j] = self._values(term, some, key)
        return found

    def __matmul__(self, w: FloatArray) -> FloatArray:
        """Return the products with coefficients; beyond plain columns, terms without one are not looked at."""
        chosen, used = self, np.asarray(w)
        if not all(term.is_column for term in self.terms):
            places = np.flatnonzero(w)
            chosen, used = self.only([self.terms[j] for j in places]), used[places]
        return np.concatenate([np.zeros(0), *(chosen[rows] @ used for rows in row_blocks(*self.shape))])

    def only(self, terms: Sequence[Term]) -> TermMatrix:
        """Return the columns of some of the terms."""
        found = TermMatrix(self._columns, ())
        found.terms, found.shape, found._ready = tuple(terms), (self.shape[0], len(terms)), self._ready
        return found

    def _values(self, term: Term, some: Columns, rows: Any) -> FloatArray:
        return self._ready[term][rows] if term in self._ready else term.evaluate(some)

    def take(self, rows: Any) -> TermMatrix:
        """Return some of the rows."""
        some = TermMatrix(self._columns.take(rows), ())
        some.terms, some.shape = self.terms, (some.shape[0], len(self.terms))
        some._ready = {term: values[rows] for term, values in self._ready.items()}
        return some

    def has_values(self) -> BoolArray:
        """Return the rows in which all terms that look at other rows have a value: a first row has none before it."""
        found = np.ones(len(self), dtype=bool)
        for values in self._ready.values():
            found &= np.isfinite(values)
        return found

    def check(self) -> None:
        """Raise TermError where a term has no finite value, naming the term and the row."""
        for j, term in enumerate(self.terms):
            values = self[:, j]
            finite = np.isfinite(values)
            if not finite.all():
                row = int(np.argmin(finite))
                what = "is infinite" if np.isinf(values[row]) else "has no value"
                raise TermError(f"the term {term} {what} in row {row + 1:,} of those that are judged")


Matrix: TypeAlias = FloatArray | Columnwise | TermMatrix
"""The values of terms: an array, the columns of a table where they are, or terms that are made when they are read."""
