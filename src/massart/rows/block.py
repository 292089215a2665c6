"""Blocks and samples: some rows of a table, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.rows.arrays import BoolArray, FloatArray, magnitudes
from massart.rows.namespace import floats, is_elsewhere, like, namespace_of, to_numpy

_HASH_SEED = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Some consecutive rows of a table, where the table has them: a kernel is called with one block after the other.

    Attributes
    ----------
    rows : (b, d) array or sparse matrix
        Without the constant column. The array may be of any namespace: numpy, CuPy, torch.
    y : (b, m) array
        Labels.
    weights : (b,) array or None
    intercept : bool
        Whether a constant column 1 follows the columns of `rows`.
    all_rows : Extent or None
        Of the whole table, where that was looked at: then a block need not be.
    """

    rows: Any
    y: Any
    weights: Any
    intercept: bool
    all_rows: Extent | None = None

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def times(self, W: FloatArray) -> Any:
        """Return the rows, with their constant column, times `W`, (d, m), in float64."""
        columns = W[:-1] if self.intercept else W
        if is_elsewhere(self.rows):
            one = columns.shape[1] == 1  # a vector: devices have a function of its own for that
            product = floats(self.rows) @ like(columns[:, 0] if one else columns, self.rows)
            product = product[:, None] if one else product
        else:
            product = np.asarray(self.rows @ columns)
        if self.intercept:
            product += like(W[-1], product)
        return product

    def largest(self) -> float:
        """Return the largest magnitude of a number in the block or the table, NaN included; 1 for the constant."""
        largest = (self.all_rows or Extent(self.rows)).largest
        return max(largest, 1.0) if self.intercept else largest

    def dense(self, chosen: BoolArray | None = None) -> Any:
        """Return the rows, or the chosen ones, as an array with their constant column, where they are."""
        rows = self.rows if chosen is None else self.rows[chosen]
        if is_elsewhere(rows):
            array = floats(rows)
            xp = namespace_of(array)
            return xp.concat([array, xp.ones_like(array[:, :1])], axis=1) if self.intercept else array
        array = np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), dtype=np.float64)
        return np.column_stack([array, np.ones(len(array))]) if self.intercept else array

    def take(self, chosen: NDArray[Any]) -> Block:
        """Return some of the rows, by a mask or by numbers."""
        weights = None if self.weights is None else self.weights[chosen]
        return Block(self.rows[chosen], self.y[chosen], weights, self.intercept)


class Extent:
    """How large the numbers of a matrix are: looked at once, when it is asked for."""

    def __init__(self, X: Any) -> None:
        self._X = X

    @cached_property
    def largest(self) -> float:
        """The largest magnitude of a number, NaN included."""
        X = self._X
        values = X if isinstance(X, np.ndarray) or is_elsewhere(X) else X.data
        if 0 in values.shape:
            return 0.0
        xp = namespace_of(values)
        least, most = xp.aminmax(values) if hasattr(xp, "aminmax") else (xp.min(values), xp.max(values))  # one read
        return max(float(most), -float(least))


@dataclass(frozen=True, slots=True)
class Uses:
    """Which rows have a number other than zero in some of the columns: a kernel for :meth:`massart.rows.Rows.map`."""

    columns: tuple[int, ...]

    def __call__(self, block: Block) -> Any:
        """Return 1 for such rows, and 0 for others."""
        if is_elsewhere(block.rows):
            xp = namespace_of(block.rows)
            some = xp.take(block.rows, like(np.array(self.columns), block.rows), axis=1)
            return xp.astype(xp.any(some != 0, axis=1), xp.float64)
        some = block.rows[:, list(self.columns)]
        used = some != 0 if isinstance(some, np.ndarray) else (some != 0).toarray()
        return np.asarray(used.any(axis=1), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Sample:
    """A few rows in memory.

    Attributes
    ----------
    X : (n, d) array
        With the constant column, if there is one.
    y : (n, m) or (n,) array
    weights : (n,) array or None
    index : (n,) array of int
        Row numbers in the table.
    there : (n, d) array or None
        X on the device that the table is on, for sums that are quicker there; other samples of these rows have none.
    """

    X: FloatArray
    y: FloatArray
    weights: FloatArray | None
    index: NDArray[np.intp]
    there: Any = None

    @property
    def counts(self) -> FloatArray:
        """How often each row counts."""
        return np.ones(len(self.X)) if self.weights is None else self.weights

    def products(self, w: FloatArray) -> FloatArray:
        """Return X @ w."""
        return self.X @ w if self.there is None else to_numpy(self.there @ like(w, self.there))

    def magnitudes(self, w: FloatArray) -> FloatArray:
        """Return abs(X) @ abs(w)."""
        sizes = np.abs(w)
        return magnitudes(self.X, sizes) if self.there is None else to_numpy(abs(self.there) @ like(sizes, self.there))

    def column(self, j: int) -> Sample:
        """Return the same rows with one label column."""
        return Sample(self.X, self.y[:, j], self.weights, self.index, self.there)

    def take(self, chosen: NDArray[Any]) -> Sample:
        """Return some of the rows, by a mask or by numbers."""
        weights = None if self.weights is None else self.weights[chosen]
        return Sample(self.X[chosen], self.y[chosen], weights, self.index[chosen])

    def joined(self, other: Sample) -> Sample:
        """Return these rows and those of another sample that are not among them, in the order of the table."""
        new = other.take(~np.isin(other.index, self.index))
        weights = None if self.weights is None else np.concatenate([self.weights, new.counts])
        both = Sample(
            np.concatenate([self.X, new.X]),
            np.concatenate([self.y, new.y]),
            weights,
            np.concatenate([self.index, new.index]),
        )
        return both.take(np.argsort(both.index, kind="stable"))

    def in_canonical_order(self, *, labels: bool = True) -> Sample:
        """Return the rows in an order that their own numbers decide, so that answers do not depend on that of a table.

        Without `labels` these have no say: rows that are alike but for them stay in the order of the table.
        """
        columns = [self.X, self.y, self.counts] if labels else [self.X, self.counts]
        numbers = np.ascontiguousarray(np.column_stack(columns) + 0.0)  # no negative zero
        factors = np.random.default_rng(_HASH_SEED).integers(2**63, size=numbers.shape[1], dtype=np.uint64) * 2 + 1
        bits = numbers.view(np.uint64)
        bits = bits ^ (bits >> np.uint64(32))
        hashes = (bits * factors).sum(axis=1, dtype=np.uint64)
        return self.take(np.argsort(hashes ^ (hashes >> np.uint64(29)), kind="stable"))
