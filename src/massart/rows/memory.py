"""Rows and values in memory, or in a memory map: numpy arrays and SciPy sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.rows.arrays import (
    check_integers,
    check_labels,
    check_weights,
    first_fault,
    precision_of,
    row_blocks,
)
from massart.rows.block import Block, Sample
from massart.rows.namespace import like, to_numpy
from massart.rows.rows import Kernel, Rows, Sum, Values
from massart.rows.sampling import Draw

_BLOCK_BYTES = 1 << 20  # what a kernel makes of a block stays in the cache


@dataclass(frozen=True, slots=True, eq=False)
class ArrayValues:
    """Values of all rows in one array.

    Attributes
    ----------
    array : (n,) or (n, k) array
    """

    array: Any

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return ``kernel(values, *aligned)``."""
        return kernel(self.array, *map(array_of, aligned))

    def map(self, kernel: Kernel, *aligned: Values) -> ArrayValues:
        """Return ``kernel(values, *aligned)``."""
        return ArrayValues(kernel(self.array, *map(array_of, aligned)))

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Return the values of rows of these numbers."""
        return to_numpy(self.array[like(index, self.array)])

    def native(self) -> Any:
        """Return the array."""
        return self.array

    def to_numpy(self) -> NDArray[Any]:
        """Return the array in memory."""
        return to_numpy(self.array)


def array_of(values: Values) -> Any:
    """Return the array behind values, without a copy where it is one."""
    return values.array if isinstance(values, ArrayValues) else values.to_numpy()


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
        weights = check_weights(sample_weight, self._X.shape[0])
        self._weights = None if weights is None else ArrayValues(weights)
        self._intercept = intercept
        own = precision_of(self._X), precision_of(y)
        self._precision = own if precision is None else (max(own[0], precision), max(own[1], precision))

    @property
    def weights(self) -> ArrayValues | None:
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

    def sample(self, size: int, rng: np.random.Generator, weights: Values | None = None) -> Sample:
        """Return about `size` random rows of positive weight in their order, all of them if there are not more."""
        if weights is not None:
            chosen = array_of(weights)
        else:
            chosen = None if self._weights is None else self._weights.array > 0
        return self.take(Draw.of(size, rng).index(self.n_rows, None if chosen is None else chosen.astype(np.float64)))

    def take(self, index: NDArray[np.intp]) -> Sample:
        """Return the rows of these numbers, in this order."""
        weights = None if self._weights is None else self._weights.take(index)
        X = Block(self._X[index], self._y[index], weights, self._intercept).dense()
        if not np.isfinite(X).all():
            raise ValueError(self.fault())
        return Sample(X, self._y[index], weights, index)

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(block, *aligned)`` over all blocks."""
        blocks = self._blocks(aligned)
        total: Sum = kernel(*next(blocks))
        for block in blocks:
            total = total + kernel(*block)
        return total

    def map(self, kernel: Kernel, *aligned: Values) -> ArrayValues:
        """Return ``kernel(block, *aligned)`` of all blocks, one value or one row of values for each row."""
        return ArrayValues(np.concatenate([kernel(*block) for block in self._blocks(aligned)]))

    def fault(self) -> str:
        """Say where the first NaN or infinity of X is."""
        start = 0
        for (block,) in self._blocks(()):
            message = first_fault(block.dense(), "X", start)
            if message:
                return message
            start += len(block)
        return "X times the coefficients is not finite: the numbers are too large"

    def _blocks(self, aligned: tuple[Values, ...]) -> Iterator[tuple[Any, ...]]:
        arrays = [array_of(values) for values in aligned]
        for rows in row_blocks(self.n_rows, self.n_columns, _BLOCK_BYTES):
            weights = None if self._weights is None else self._weights.array[rows]
            block = Block(self._X[rows], self._y[rows], weights, self._intercept)
            yield block, *(array[rows] for array in arrays)


def rows_of(X: Any, y: Any, sample_weight: Any = None, *, intercept: bool = False) -> Rows:
    """Return rows of whatever kind `X` is: arrays here or on a device, sparse matrices, Dask."""
    if hasattr(X, "__dask_graph__"):
        from massart.rows.dask import DaskRows

        return DaskRows(X, y, sample_weight, intercept=intercept)
    return ArrayRows(X, y, sample_weight, intercept=intercept)


def _sparse_rows(X: Any) -> Any:
    if not hasattr(X, "tocsr"):
        raise ValueError(f"X must be an array or a SciPy sparse matrix, got {type(X).__name__}")
    return X.tocsr()
