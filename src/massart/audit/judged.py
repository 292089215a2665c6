"""What rows under a rule add up to: marks, error types, groups, and the rows with the largest residuals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.error_types import MOST_EXAMPLES, RowErrorType, RowErrorTypes
from massart.audit.explanations import NO_ROWS
from massart.rows import BoolArray, FloatArray

MOST_PAIRED = 2_000_000
"""Wrong rows among which swapped ones are looked for; among more, many have a partner by chance."""

ROWS_KEPT = 25_000
"""Wrong rows of a file that are kept, those with the largest residuals: what a report shows of a large one."""

NONE = np.empty(0, dtype=np.intp)
KEPT_ROWS = np.dtype(
    [("number", np.intp), ("size", float), ("code", np.intp), ("asked", bool), ("around", NO_ROWS.dtype, 2)]
)


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """The rows with the largest residuals, the first ones of each error type, and those asked for, with their cells."""

    most: int  # how many of the largest are kept
    tables: tuple[pa.Table, ...] = ()
    # of the rows of all tables, in order: the number in the file, the size of the residual (-1 of those that are kept
    # for having been asked for), the code of the error type, whether they were asked for, and the rows before and after
    # those with a size, or other rows where nothing is
    rows: NDArray[np.void] = field(default_factory=lambda: np.empty(0, KEPT_ROWS))

    def __add__(self, other: KeptRows) -> KeptRows:
        """Return those of both; the rows of `other` come later."""
        both = KeptRows(self.most, (*self.tables, *other.tables), np.concatenate([self.rows, other.rows]))
        return both.pruned() if np.count_nonzero(both.rows["size"] >= 0) > 2 * self.most else both

    def pruned(self) -> KeptRows:
        """Return no more than are needed."""
        if not self.tables:
            return self
        rows = self.rows.copy()
        rows["size"][~largest(self.most, rows["size"], rows["code"])] = -1
        stay = np.flatnonzero(rows["asked"] | (rows["size"] >= 0))
        table = pa.concat_tables(self.tables).take(pa.array(stay)).combine_chunks()
        return KeptRows(self.most, (table,), rows[stay])

    def with_neighbour(self, side: int, row: np.void, other: np.void) -> KeptRows:
        """Return the same, where a row, if it is kept, knows the one before it (side 0) or after it (side 1)."""
        place = np.searchsorted(self.rows["number"], row["number"])
        if place == len(self.rows) or self.rows["number"][place] != row["number"]:
            return self
        rows = self.rows.copy()
        rows["around"][place, side] = other
        return replace(self, rows=rows)


def largest(most: int, sizes: FloatArray, codes: NDArray[np.intp]) -> BoolArray:
    """Return which are the largest sizes, of equal ones the first, and the first of each error type."""
    chosen = np.ones(len(sizes), dtype=bool)
    if len(sizes) > most:
        limit = np.partition(sizes, len(sizes) - most)[len(sizes) - most]
        chosen = sizes > limit
        chosen[np.flatnonzero(sizes == limit)[: most - int(np.count_nonzero(chosen))]] = True
    for code in range(1, int(codes.max(initial=0)) + 1):
        chosen[np.flatnonzero(codes == code)[:MOST_EXAMPLES]] = True
    return chosen


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Rows under a rule, added up; ``a + b`` is that of the rows of a and the rows of b, which come after them.

    Addition is associative, so that rows may be cut into blocks and these judged anywhere.
    """

    n_rows: int
    tally: FloatArray  # judged rows by their marks
    usage: NDArray[np.int64]  # (k, 2), rows that use each coefficient, and those of them that agree
    kinds: NDArray[np.intp]  # rows with each code of an error type
    kept: KeptRows
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)  # rows and wrong rows of each group
    gaps: Counter[Any] = field(default_factory=Counter)  # why rows were left out
    # wrong rows among which swapped ones are looked for; None where there are too many
    pairs: tuple[NDArray[np.void], ...] | None = ()
    ends: NDArray[np.void] = field(default_factory=lambda: NO_ROWS)  # the first and the last judged one
    # judged rows of the segment in which the rule breaks, and those that break it
    segment: NDArray[np.intp] = field(default_factory=lambda: np.zeros(2, dtype=np.intp))

    def error_types(self, numbers: NDArray[np.intp], kinds: Sequence[RowErrorType]) -> RowErrorTypes:
        """Return the error types of kept rows of some numbers, and of how many rows in all."""
        rows = self.kept.rows
        codes = rows["code"][np.searchsorted(rows["number"], numbers)]
        return RowErrorTypes.of_codes(codes, kinds, self.kinds.tolist())

    def __add__(self, other: Judged) -> Judged:
        """Return the sum."""
        groups = dict(self.groups)
        for name, (n, wrong) in other.groups.items():
            before = groups.get(name, (0, 0))
            groups[name] = before[0] + n, before[1] + wrong
        pairs = None if self.pairs is None or other.pairs is None else (*self.pairs, *other.pairs)
        if pairs is not None and sum(map(len, pairs)) > MOST_PAIRED:
            pairs = None
        ends, first, second = np.concatenate([self.ends, other.ends]), self.kept, other.kept
        if len(self.ends) and len(other.ends):
            first = first.with_neighbour(1, self.ends[-1], other.ends[0])
            second = second.with_neighbour(0, other.ends[0], self.ends[-1])
        return Judged(
            self.n_rows + other.n_rows,
            self.tally + other.tally,
            self.usage + other.usage,
            self.kinds + other.kinds,
            first + second,
            groups,
            self.gaps + other.gaps,
            pairs,
            ends[[0, -1]] if len(ends) else ends,
            self.segment + other.segment,
        )
