r"""Random rows that do not depend on how a table is cut, nor on knowing its length beforehand.

Row i has the key of its run, :math:`u = h(\lfloor i / 16 \rfloor)`, where h is a hash with a seed, uniform on (0, 1);
the rows with the smallest keys are the sample (bottom-k sampling, Cohen and Kaplan 2007). So it can be drawn while
blocks come by, in any order, and a table of any storage gives the same rows. A row of weight v has the key
:math:`-\log(u) / v` of its own instead (Efraimidis and Spirakis 2006): then rows are drawn one after the other without
replacement, each with a probability in proportion to its weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.rows.arrays import FloatArray, row_blocks

RUN = 16
"""Rows of a sample that follow each other: they are near each other in memory or on disk."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Draw:
    """Which rows are drawn: a number of them, and more where the last run is to be complete."""

    size: int
    seed: int

    @classmethod
    def of(cls, size: int, rng: np.random.Generator) -> Draw:
        """Return a draw of a number of rows, with a seed from a generator, whose own numbers go on as before."""
        return cls(int(size), int(rng.spawn(1)[0].integers(2**63)))

    def index(self, n_rows: int, weights: FloatArray | None = None) -> NDArray[np.intp]:
        """Return the numbers of the rows that are drawn of a number, in order; rows of weight 0 never are."""
        if weights is not None:
            candidates = np.flatnonzero(weights)
            chosen = smallest(self.weighted_keys(candidates, weights[candidates]), self.size)
            return np.asarray(np.sort(candidates[chosen]), dtype=np.intp)
        if self.size >= n_rows:
            return np.arange(n_rows, dtype=np.intp)
        keys, runs = np.zeros(0), np.zeros(0, dtype=np.intp)
        for block in row_blocks(-(-n_rows // RUN), 1):  # the keys of a billion rows at once would be half a gigabyte
            some = np.arange(block.start, block.stop)
            keys, runs = np.append(keys, self.keys_of(some)), np.append(runs, some)
            chosen = smallest(keys, self.n_runs)
            keys, runs = keys[chosen], runs[chosen]
        index = (np.sort(runs)[:, None] * RUN + np.arange(RUN)).ravel()
        return np.asarray(index[index < n_rows], dtype=np.intp)

    @property
    def n_runs(self) -> int:
        """How many runs are drawn."""
        return -(-self.size // RUN)

    def run_keys(self, start: int, stop: int) -> FloatArray:
        """Return the keys of the runs that rows from `start` to before `stop` belong to."""
        return self.keys_of(np.arange(start // RUN, -(-stop // RUN)))

    def keys_of(self, runs: NDArray[np.integer]) -> FloatArray:
        """Return the keys of runs of these numbers."""
        return self._uniform(runs.astype(np.uint64))

    def weighted_keys(self, rows: NDArray[np.integer], weights: FloatArray) -> FloatArray:
        """Return the keys of rows of these numbers and weights."""
        return np.asarray(-np.log(self._uniform(rows.astype(np.uint64))) / weights)

    def _uniform(self, numbers: NDArray[np.uint64]) -> FloatArray:
        """Return a hash of each number and the seed, uniform between 0 and 1 (splitmix64: Steele and others 2014)."""
        with np.errstate(over="ignore"):
            bits = (numbers + np.uint64(self.seed)) * _GOLDEN + np.uint64(self.seed)
            bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
            bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
            bits ^= bits >> np.uint64(31)
        return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


class Reservoir:
    """Which rows of a draw are left of those that came by so far, in blocks of any size and in any order.

    Rows with keys above a `limit` are not drawn, as far as is known from elsewhere.
    """

    def __init__(self, draw: Draw, limit: float = np.inf) -> None:
        self._draw = draw
        self._keys: list[FloatArray] = []
        self._count, self._limit = 0, limit

    def offer(self, start: int, n_rows: int) -> NDArray[np.intp]:
        """Return which of some rows are kept for now, the first of which has the number `start`."""
        keys = self._draw.run_keys(start, start + n_rows)
        runs = np.flatnonzero(keys <= self._limit)
        numbers = ((start // RUN + runs)[:, None] * RUN + np.arange(RUN)).ravel()
        inside = (numbers >= start) & (numbers < start + n_rows)
        self._keys.append(np.repeat(keys[runs], RUN)[inside])
        self._count += len(self._keys[-1])
        return np.asarray(numbers[inside] - start)

    @property
    def is_crowded(self) -> bool:
        """Whether many more rows are kept than are needed."""
        return self._count > 2 * self._draw.size + RUN

    def prune(self) -> NDArray[np.intp]:
        """Return the places, among all rows that are kept, of those that stay."""
        keys = np.concatenate(self._keys)
        if self._count > self._draw.size:  # rows of a run share their key, and a run is kept whole
            limits = np.unique(keys)
            self._limit = float(limits[min(self._draw.n_runs, len(limits)) - 1])
        stay = np.flatnonzero(keys <= self._limit)
        self._keys, self._count = [keys[stay]], len(stay)
        return stay


def smallest(keys: FloatArray, count: int) -> NDArray[np.intp]:
    """Return the places of a number of the smallest keys, in no order; among equal ones the first."""
    if count >= len(keys):
        return np.arange(len(keys))
    limit = np.partition(keys, count - 1)[count - 1]
    below, at = np.flatnonzero(keys < limit), np.flatnonzero(keys == limit)
    return np.concatenate([below, at[: count - len(below)]])
