"""What rows under a rule add up to: marks, error types, groups, and the rows with the largest residuals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.error_types import MOST_EXAMPLES
from massart.audit.explanations import NO_ROWS
from massart.rows import KINDS, BoolArray, FloatArray
from massart.tables import Table

MOST_PAIRED = 2_000_000
"""Wrong rows among which swapped ones are looked for; among more, many have a partner by chance."""

NONE = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Worst:
    """The rows with the largest residuals, and the first ones of each kind, with their cells."""

    most: int  # how many of the largest are kept
    tables: tuple[pa.Table, ...]
    numbers: NDArray[np.intp]  # (m,), their numbers in the file
    sizes: FloatArray  # (m,), of their residuals
    codes: NDArray[np.intp]  # (m,), of their kinds
    # (m, 2), what is before and after each of them, or other rows where nothing is; (m, 0) where that is not asked for
    neighbours: NDArray[np.void]
    least: float = 0.0  # smaller residuals than this are not among the largest

    @classmethod
    def of_nothing(cls, most: int) -> Worst:
        """Return no rows, to which others may be added."""
        return cls(most, (), NONE, np.empty(0), NONE, NO_ROWS.reshape(0, 0))

    @classmethod
    def of(
        cls,
        most: int,
        block: Table,
        rows: NDArray[np.intp],
        sizes: FloatArray,
        codes: NDArray[np.intp],
        least: float,
        examples: NDArray[np.intp],
    ) -> Worst:
        """Take the worst rows of a block: those larger than `least`, and first ones of kinds without `examples`."""
        stay = _worst(most, sizes, codes, least, examples)
        if not len(stay):
            return cls.of_nothing(most)
        assert isinstance(block.numbers, np.ndarray)
        chosen, nothing = rows[stay], np.empty((len(stay), 0), NO_ROWS.dtype)
        cells = block.arrow.take(pa.array(chosen))
        return cls(most, (cells,), block.numbers[chosen], sizes[stay], codes[stay], nothing)

    def __add__(self, other: Worst) -> Worst:
        """Return the worst of both; the rows of `other` come later."""
        if not other.tables or not self.tables:
            return other if other.tables else self
        both = Worst(
            self.most,
            (*self.tables, *other.tables),
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.neighbours, other.neighbours]),
            max(self.least, other.least),
        )
        return both.pruned() if len(both.numbers) > 2 * self.most else both

    @property
    def examples(self) -> NDArray[np.intp]:
        """How many rows there are with each code of a kind."""
        return np.bincount(self.codes)

    def pruned(self) -> Worst:
        """Return no more than are needed."""
        if not self.tables:
            return self
        stay = _worst(self.most, self.sizes, self.codes)
        table = pa.concat_tables(self.tables).take(pa.array(stay)).combine_chunks()
        sizes = self.sizes[stay]
        least = float(np.sort(sizes)[-self.most]) if len(sizes) >= self.most else 0.0
        return Worst(self.most, (table,), self.numbers[stay], sizes, self.codes[stay], self.neighbours[stay], least)

    def joined(self, table: Table, drawn: BoolArray) -> tuple[Table, BoolArray]:
        """Return rows of a file, some of which were drawn, and these, each once and in their order; and which were."""
        assert table.numbers is not None
        new = np.flatnonzero(~np.isin(self.numbers, table.numbers))
        others = [own.select(table.column_names).take(pa.array(new)) for own in self.tables]  # of one table, or none
        numbers, at_random = (
            np.concatenate([table.numbers, self.numbers[new]]),
            np.append(drawn, np.zeros(len(new), bool)),
        )
        order = np.argsort(numbers)
        arrow = pa.concat_tables([table.arrow, *others]).take(pa.array(order)).combine_chunks()
        return replace(table, arrow=arrow, numbers=numbers[order]), at_random[order]

    def knowing(self, ends: NDArray[np.void], others: NDArray[np.void], side: int) -> Worst:
        """Return the same where the row at an end, which is among these, knows the one next to it in another part.

        `ends` are the first and the last row of this part and `others` those of the part next to it, which comes before
        (side 0) or after it (side 1).
        """
        place, end, row = (0, ends[0], others[-1]) if side == 0 else (-1, ends[-1], others[0])
        if not self.neighbours.size or self.numbers[place] != end["number"]:
            return self
        known = self.neighbours.copy()
        known[place, side] = row
        return replace(self, neighbours=known)


def _worst(
    most: int, sizes: FloatArray, codes: NDArray[np.intp], least: float = 0.0, known: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Return the places of the largest sizes above `least`, of equal ones the first, and the first of each kind."""
    chosen = sizes > least if least else np.ones(len(sizes), dtype=bool)
    if np.count_nonzero(chosen) > most:
        limit = np.partition(sizes, len(sizes) - most)[len(sizes) - most]
        chosen = sizes > limit
        chosen[np.flatnonzero(sizes == limit)[: most - int(np.count_nonzero(chosen))]] = True
    for code in range(1, int(codes.max(initial=0)) + 1):
        if known is None or code >= len(known) or known[code] < MOST_EXAMPLES:
            chosen[np.flatnonzero(codes == code)[:MOST_EXAMPLES]] = True
    return np.flatnonzero(chosen)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Rows under a rule, added up; ``a + b`` is that of the rows of a and the rows of b, which come after them.

    Addition is associative, so that rows may be cut into blocks and these judged anywhere.
    """

    n_rows: int
    tally: FloatArray  # judged rows by their marks
    usage: NDArray[np.int64]  # (k, 2), rows that use each coefficient, and those of them that agree
    kinds: NDArray[np.intp]  # rows with each code of a kind
    groups: dict[str, tuple[int, int]]  # rows and wrong rows of each group
    gaps: Counter[Any]  # why rows were left out
    worst: Worst
    looked_at: dict[int, int]  # the codes of the wrong rows for which these were asked
    # wrong rows among which swapped ones are looked for; None where there are too many
    pairs: tuple[NDArray[np.void], ...] | None = ()
    # the first and the last judged one; none if no row was judged
    ends: NDArray[np.void] = field(default_factory=lambda: NO_ROWS)
    # (2,), judged rows of the segment in which the rule breaks, and those that break it
    segment: NDArray[np.intp] = field(default_factory=lambda: np.zeros(2, dtype=np.intp))

    @classmethod
    def of_nothing(cls, n_coefs: int, n_codes: int, most: int) -> Judged:
        """Return the sum of no rows."""
        usage, kinds = np.zeros((n_coefs, 2), np.int64), np.zeros(n_codes, np.intp)
        return cls(0, np.zeros(KINDS), usage, kinds, {}, Counter(), Worst.of_nothing(most), {})

    def __add__(self, other: Judged) -> Judged:
        """Return the sum."""
        groups = dict(self.groups)
        for name, (n, wrong) in other.groups.items():
            before = groups.get(name, (0, 0))
            groups[name] = before[0] + n, before[1] + wrong
        pairs = None if self.pairs is None or other.pairs is None else (*self.pairs, *other.pairs)
        ends, first, second = np.concatenate([self.ends, other.ends]), self.worst, other.worst
        if len(self.ends) and len(other.ends):
            first, second = first.knowing(self.ends, other.ends, 1), second.knowing(other.ends, self.ends, 0)
        return Judged(
            self.n_rows + other.n_rows,
            self.tally + other.tally,
            self.usage + other.usage,
            self.kinds + other.kinds,
            groups,
            self.gaps + other.gaps,
            first + second,
            self.looked_at | other.looked_at,
            None if pairs is not None and sum(map(len, pairs)) > MOST_PAIRED else pairs,
            ends[[0, -1]] if len(ends) else ends,
            self.segment + other.segment,
        )
