"""Rows that come by in blocks, however they are cut: what no kernel may tell from rows in one array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.rows import ArrayValues, Block, Draw, Kernel, Sample, Values
from massart.rows.arrays import first_fault

_DOUBLE = float(np.finfo(np.float64).eps)


class StreamRows:
    """Rows that are read anew, block by block, whenever they are needed.

    Parameters
    ----------
    blocks : callable
        Returns an iterable over the blocks of the table, the same rows in the same order each time. Blocks may be
        empty.
    """

    precision = (_DOUBLE, _DOUBLE)

    def __init__(self, blocks: Callable[[], Iterable[Block]]) -> None:
        self._read = blocks
        first = next(block for block in blocks() if len(block))
        self.n_rows = sum(map(len, blocks()))
        self.n_columns = int(first.rows.shape[1]) + first.intercept
        self.n_outputs = int(first.y.shape[1])
        self._has_weights = first.weights is not None

    @property
    def weights(self) -> Values | None:
        """The weights of the rows, if they have any."""
        return self.map(_weights) if self._has_weights else None

    def sample(self, size: int, rng: np.random.Generator, weights: Values | None = None) -> Sample:
        """Return about `size` random rows of positive weight in their order, all of them if there are not more."""
        chances = None if weights is None else weights.to_numpy().astype(np.float64)
        if weights is None and self.weights is not None:
            chances = (self.weights.to_numpy() > 0).astype(np.float64)
        return self.take(Draw.of(size, rng).index(self.n_rows, chances))

    def take(self, index: NDArray[np.intp]) -> Sample:
        """Return the rows of these numbers, in this order."""
        if len(index) and index.max() >= self.n_rows:
            raise IndexError(f"row {index.max()} is not there: there are {self.n_rows}")
        X, y = np.empty((len(index), self.n_columns)), np.empty((len(index), self.n_outputs))
        weights = np.empty(len(index)) if self._has_weights else None
        for start, (block,) in self._numbered(()):
            there = np.flatnonzero((index >= start) & (index < start + len(block)))
            some = block.take(index[there] - start)
            X[there], y[there] = some.dense(), some.y
            if weights is not None:
                weights[there] = some.weights
        if not np.isfinite(X).all():
            raise ValueError(self.fault())
        return Sample(X, y, weights, index)

    def reduce(self, kernel: Kernel, *aligned: Values) -> Any:
        """Return the sum of ``kernel(block, *aligned)`` over all blocks."""
        return reduce(add, (kernel(*block) for _, block in self._numbered(aligned)))

    def map(self, kernel: Kernel, *aligned: Values) -> ArrayValues:
        """Return ``kernel(block, *aligned)`` of all blocks, one value or one row of values for each row."""
        return ArrayValues(np.concatenate([kernel(*block) for _, block in self._numbered(aligned)]))

    def fault(self) -> str:
        """Say where the first NaN or infinity of the rows is."""
        found = (first_fault(block.dense(), "X", start) for start, (block,) in self._numbered(()))
        return next(filter(None, found), "X times the coefficients is not finite: the numbers are too large")

    def _numbered(self, aligned: tuple[Values, ...]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the blocks that are not empty, with the values of their rows, and the number of their first row."""
        arrays, start = [values.to_numpy() for values in aligned], 0
        for block in filter(len, self._read()):
            stop = start + len(block)
            yield start, (block, *(array[start:stop] for array in arrays))
            start = stop


def _weights(block: Block) -> NDArray[Any]:
    return np.asarray(block.weights)
