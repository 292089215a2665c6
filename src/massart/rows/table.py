"""Tables of rows behind three verbs, so that nothing above assumes that they lie in one array in memory.

``sample(size, rng)`` brings a few rows into memory, ``reduce(kernel)`` adds a small result over blocks of rows, and
``map(kernel)`` collects one value a row. Arrays, memory maps and SciPy sparse matrices are served here; other kinds of
rows implement the same protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.rows.arrays import (
    BoolArray,
    FloatArray,
    check_integers,
    check_labels,
    check_weights,
    first_fault,
    precision_of,
    row_blocks,
)

_BLOCK_BYTES = 1 << 20  # what a kernel makes of a block stays in the cache
_HASH_SEED = 0
_RUN = 16  # rows of a sample that follow each other

Sum = TypeVar("Sum", bound="Addable")


class Addable(Protocol):
    """What can be summed over blocks: numbers, arrays, or a class with ``+``."""

    def __add__(self, other: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Block:
    """Some consecutive rows.

    Attributes
    ----------
    rows : (b, d) array or sparse matrix
        Without the constant column.
    y : (b, m) array
        Labels.
    weights : (b,) array or None
    intercept : bool
        Whether a constant column 1 follows the columns of `rows`.
    start : int
        Number of the first row in the table.
    """

    rows: Any
    y: FloatArray
    weights: FloatArray | None
    intercept: bool
    start: int

    def times(self, W: FloatArray) -> FloatArray:
        """Return the rows, with their constant column, times `W`, (d, m)."""
        if not self.intercept:
            return np.asarray(self.rows @ W)
        product = np.asarray(self.rows @ W[:-1])
        product += W[-1]
        return product

    def largest(self) -> float:
        """Return the largest magnitude of a number in the block, NaN included; that of the constant is 1."""
        values = self.rows if isinstance(self.rows, np.ndarray) else self.rows.data
        largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
        return max(largest, 1.0) if self.intercept else largest

    def dense(self, chosen: BoolArray | None = None) -> FloatArray:
        """Return the rows, or the chosen ones, as an array with their constant column."""
        rows = self.rows if chosen is None else self.rows[chosen]
        array = np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), dtype=np.float64)
        return np.column_stack([array, np.ones(len(array))]) if self.intercept else array


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
    """

    X: FloatArray
    y: FloatArray
    weights: FloatArray | None
    index: NDArray[np.intp]

    @property
    def counts(self) -> FloatArray:
        """How often each row counts."""
        return np.ones(len(self.X)) if self.weights is None else self.weights

    def column(self, j: int) -> Sample:
        """Return the same rows with one label column."""
        return Sample(self.X, self.y[:, j], self.weights, self.index)

    def take(self, chosen: NDArray[Any]) -> Sample:
        """Return some of the rows, by a mask or by numbers."""
        weights = None if self.weights is None else self.weights[chosen]
        return Sample(self.X[chosen], self.y[chosen], weights, self.index[chosen])

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


class Rows(Protocol):
    """A table of rows with labels."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Number of columns, the constant one included."""

    @property
    def n_outputs(self) -> int:
        """Number of label columns."""

    @property
    def weights(self) -> FloatArray | None:
        """The weights of the rows, if they have any."""

    @property
    def precision(self) -> tuple[float, float]:
        """The relative precisions of the rows and of the labels."""

    def sample(self, size: int, rng: np.random.Generator) -> Sample:
        """Return `size` random rows of positive weight, all of them if there are not more."""

    def reduce(self, kernel: Callable[[Block], Sum]) -> Sum:
        """Return the sum of ``kernel(block)`` over all blocks."""

    def map(self, kernel: Callable[[Block], NDArray[Any]]) -> NDArray[Any]:
        """Return ``kernel(block)`` of all blocks, one value or one row of values for each row."""

    def fault(self) -> str:
        """Say where the first NaN or infinity of the rows is."""


class ArrayRows:
    """Rows of a numpy array, a memory map or a SciPy sparse matrix (CSR).

    The rows themselves are not checked for NaN and infinity, since that would read them all once more: labels and
    products with them show every such number, and :meth:`fault` says where it is.

    Parameters
    ----------
    X : (n, d) array, memory map, sparse matrix, or a matrix whose rows are made when they are read
    y : (n,) or (n, m) array
    sample_weight : (n,) array, optional
    intercept : bool
        Add a constant column.
    precision : float, optional
        Machine epsilon of the type that the numbers had, if they were converted; by default that of the arrays.
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        intercept: bool = False,
        precision: float | None = None,
    ) -> None:
        self._X = X if isinstance(X, np.ndarray) or hasattr(X, "terms") else _sparse_rows(X)
        if self._X.ndim != 2 or 0 in self._X.shape:
            raise ValueError(f"X must have at least one row and one column, got shape {self._X.shape}")
        if self._X.dtype.kind not in "fiub":
            raise ValueError(f"X must hold real numbers, got dtype {self._X.dtype}")
        check_integers(getattr(self._X, "data", np.empty(0)) if not isinstance(self._X, np.ndarray) else self._X, "X")
        labels = check_labels(y, self._X.shape[0])
        self._y = labels[:, None] if labels.ndim == 1 else labels
        self._weights = check_weights(sample_weight, self._X.shape[0])
        self._intercept = intercept
        own = precision_of(self._X), precision_of(y)
        self._precision = own if precision is None else (max(own[0], precision), max(own[1], precision))

    @property
    def weights(self) -> FloatArray | None:
        """The weights of the rows, if they have any."""
        return self._weights

    @property
    def precision(self) -> tuple[float, float]:
        """The relative precisions of the rows and of the labels."""
        return self._precision

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns, the constant one included."""
        return int(self._X.shape[1]) + self._intercept

    @property
    def n_outputs(self) -> int:
        """Number of label columns."""
        return int(self._y.shape[1])

    def sample(self, size: int, rng: np.random.Generator) -> Sample:
        """Return about `size` random rows of positive weight, all of them if there are not more."""
        if self._weights is not None:
            candidates = np.flatnonzero(self._weights)
            index = np.sort(rng.choice(candidates, min(size, len(candidates)), replace=False))
        elif size >= self.n_rows:
            index = np.arange(self.n_rows)
        else:  # short runs of rows, which are near each other in memory, from all over the table
            starts = np.sort(rng.choice(-(-self.n_rows // _RUN), -(-size // _RUN), replace=False))
            index = (starts[:, None] * _RUN + np.arange(_RUN)).ravel()
            index = index[index < self.n_rows]
        weights = None if self._weights is None else self._weights[index]
        X = Block(self._X[index], self._y[index], weights, self._intercept, 0).dense()
        if not np.isfinite(X).all():
            raise ValueError(self.fault())
        return Sample(X, self._y[index], weights, index)

    def reduce(self, kernel: Callable[[Block], Sum]) -> Sum:
        """Return the sum of ``kernel(block)`` over all blocks."""
        blocks = self._blocks()
        total = kernel(next(blocks))
        for block in blocks:
            total = total + kernel(block)
        return total

    def map(self, kernel: Callable[[Block], NDArray[Any]]) -> NDArray[Any]:
        """Return ``kernel(block)`` of all blocks, one value or one row of values for each row."""
        return np.concatenate([kernel(block) for block in self._blocks()])

    def fault(self) -> str:
        """Say where the first NaN or infinity of X is."""
        for block in self._blocks():
            message = first_fault(block.dense(), "X", block.start)
            if message:
                return message
        return "X times the coefficients is not finite: the numbers are too large"

    def _blocks(self) -> Iterator[Block]:
        for rows in row_blocks(self.n_rows, self.n_columns, _BLOCK_BYTES):
            weights = None if self._weights is None else self._weights[rows]
            yield Block(self._X[rows], self._y[rows], weights, self._intercept, rows.start)


def _sparse_rows(X: Any) -> Any:
    if not hasattr(X, "tocsr"):
        raise ValueError(f"X must be an array or a SciPy sparse matrix, got {type(X).__name__}")
    return X.tocsr()
