"""Tables of rows behind a few verbs, so that nothing above assumes where they lie, nor that they fit into memory.

``sample`` and ``take`` bring a few rows into memory; ``reduce(kernel, *aligned)`` adds a small result over blocks of
rows; ``map(kernel, *aligned)`` makes values a row, which stay where the rows are and can be given to the next kernel as
`aligned`. A kernel is a small frozen dataclass that is called with a :class:`Block` and the values of its rows: it can
be pickled, knows nothing of the table, and does not depend on how that is cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from massart.rows.arrays import BoolArray, FloatArray, floats, is_elsewhere, like, magnitudes, namespace_of, to_numpy

_SQUARED = 1e-280  # of numbers that have squares


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
    largest : float or None
        The largest magnitude of a number in the whole table, where that is known: then the block is not searched.
    """

    rows: Any
    y: Any
    weights: Any
    intercept: bool
    largest: float | None = None

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

    def bound(self) -> float:
        """Return a bound of the magnitudes of the numbers; NaN or infinite if one of them is, and seldom otherwise.

        The length of all numbers of the block as one vector is one quick product where the largest number is a search.
        """
        rows, largest = self.rows, self.largest
        if largest is None and isinstance(rows, np.ndarray) and rows.dtype == np.float64:
            numbers = rows.ravel(order="K")
            square = float(numbers @ numbers)
            if _SQUARED < square < 1 / _SQUARED:  # else squares vanish or overflow
                largest = 1.001 * math.sqrt(square)
        largest = largest_of(rows) if largest is None else largest
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

    def take(self, chosen: NDArray[Any] | slice) -> Block:
        """Return some of the rows, by a mask, by numbers or a slice."""
        weights = None if self.weights is None else self.weights[chosen]
        return Block(self.rows[chosen], self.y[chosen], weights, self.intercept)


def largest_of(X: Any) -> float:
    """Return the largest magnitude of a number in a matrix, NaN included."""
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
        factors = np.random.default_rng(0).integers(2**63, size=numbers.shape[1], dtype=np.uint64) * 2 + 1
        bits = numbers.view(np.uint64)
        bits = bits ^ (bits >> np.uint64(32))
        hashes = (bits * factors).sum(axis=1, dtype=np.uint64)
        return self.take(np.argsort(hashes ^ (hashes >> np.uint64(29)), kind="stable"))


Kernel: TypeAlias = Callable[..., Any]
"""Called with a block, and the values of its rows for each of `aligned`."""


Sum = TypeVar("Sum")
"""What can be summed over blocks: numbers, arrays, or a class with ``+``."""


class Values(Protocol):
    """A value, or a row of values, for each row of a table; it lies where the rows are."""

    def __len__(self) -> int: ...

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(values, *aligned)`` over all blocks."""

    def map(self, kernel: Kernel, *aligned: Values) -> Values:
        """Return ``kernel(values, *aligned)`` of all blocks."""

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Return the values of rows of these numbers, in memory."""

    def native(self) -> Any:
        """Return all values as an array of the kind that the rows came in, and where they are."""

    def to_numpy(self) -> NDArray[Any]:
        """Return all values in memory, in the order of the rows."""


class Rows(Protocol):
    """A table of rows with labels."""

    @property
    def n_rows(self) -> int:
        """Number of rows; a table that does not know it counts when it is read first."""

    @property
    def n_columns(self) -> int:
        """Number of columns, the constant one included."""

    @property
    def n_outputs(self) -> int:
        """Number of label columns."""

    @property
    def weights(self) -> Values | None:
        """The weights of the rows, if they have any."""

    @property
    def precision(self) -> tuple[float, float]:
        """The relative precisions of the rows and of the labels."""

    def sample(self, size: int, rng: np.random.Generator, weights: Values | None = None) -> Sample:
        """Return about `size` random rows of positive weight in their order, all of them if there are not more.

        With `weights` a row is drawn with a probability in proportion to its own; see :mod:`massart.rows.sampling`.
        """

    def take(self, index: NDArray[np.intp]) -> Sample:
        """Return the rows of these numbers, in this order."""

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(block, *aligned)`` over all blocks."""

    def map(self, kernel: Kernel, *aligned: Values) -> Values:
        """Return ``kernel(block, *aligned)`` of all blocks, one value or one row of values for each row."""

    def fault(self) -> str:
        """Say where the first NaN or infinity of the rows is."""


def total_of(weights: Values | None, n_rows: int) -> float:
    """Return the weight of all rows."""
    return float(n_rows) if weights is None else float(weights.reduce(_sum))


def _sum(values: Any) -> float:
    return float(namespace_of(values).sum(values))
