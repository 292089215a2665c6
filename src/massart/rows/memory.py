"""Rows and values in arrays: numpy's, memory maps, SciPy's sparse matrices, and those of CuPy and torch.

Arrays on a device stay there. What comes from it are samples, sums, and a block of rows that holds a NaN, to say where;
what goes there are coefficients and, once, labels and weights that were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.rows.arrays import (
    BLOCK_BYTES,
    FloatArray,
    check_integers,
    check_labels,
    check_weights,
    first_fault,
    floats,
    is_elsewhere,
    is_on_host,
    like,
    namespace_of,
    place_of,
    precision_of,
    row_blocks,
    to_numpy,
)
from massart.rows.rows import Block, Kernel, Rows, Sample, Sum, Values, largest_of
from massart.rows.sampling import Draw

_DEVICE_BLOCK_BYTES = 1 << 30  # starting a function takes as long as a few megabytes; each block starts some dozens
_DEVICE_BLOCKS = 2  # at most: each waits for the device some times


@dataclass(frozen=True, slots=True, eq=False)
class ArrayValues:
    """Values of all rows in one array, (n,) or (n, k)."""

    array: Any

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return ``kernel(values, *aligned)``."""
        return kernel(self.array, *(_next_to(self.array, values) for values in aligned))

    def map(self, kernel: Kernel, *aligned: Values) -> ArrayValues:
        """Return ``kernel(values, *aligned)``."""
        return ArrayValues(self.reduce(kernel, *aligned))

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Return the values of rows of these numbers."""
        return to_numpy(_picked(self.array, index))

    def native(self) -> Any:
        """Return the array."""
        return self.array

    def to_numpy(self) -> NDArray[Any]:
        """Return the array in memory."""
        return to_numpy(self.array)


def _next_to(array: Any, values: Values) -> Any:
    """Return the array behind values, where another array is; without a copy if it is there."""
    own = values.array if isinstance(values, ArrayValues) else values.to_numpy()
    return like(own, array) if isinstance(own, np.ndarray) and is_elsewhere(array) else own


class ArrayRows:
    """Rows of an array, here or on a device, a memory map or a SciPy sparse matrix (CSR).

    The rows themselves are not checked for NaN and infinity, since that would read them all once more: labels and
    products with them show every such number, and :meth:`fault` says where it is.

    Parameters
    ----------
    X : (n, d) array, memory map, sparse matrix, or a matrix whose rows are made when they are read
    y : (n,) or (n, m) array
        Of numpy, or where `X` is.
    sample_weight : (n,) array, optional
        Likewise.
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
        self._X = _matrix(X)
        n_rows, n_columns = self._X.shape if self._X.ndim == 2 else (0, 0)
        self.n_rows, self.n_columns = int(n_rows), int(n_columns) + intercept
        if not self.n_rows or not self.n_columns:
            raise ValueError(f"X must have at least one row and one column, got shape {tuple(self._X.shape)}")
        _check_kind(self._X, "X")
        labels = _placed(y, self._X, "y", check_labels)
        weights = _placed(sample_weight, self._X, "sample_weight", check_weights)
        self._y = labels[:, None] if labels.ndim == 1 else labels
        self.n_outputs = int(self._y.shape[1])
        self.weights = None if weights is None else ArrayValues(weights)
        self._intercept = intercept
        self.precision = max(precision_of(self._X), precision or 0.0), max(precision_of(y), precision or 0.0)

    def sample(self, size: int, rng: np.random.Generator, weights: Values | None = None) -> Sample:
        """Return about `size` random rows of positive weight in their order, all of them if there are not more."""
        chances = None if weights is None else np.asarray(weights.to_numpy(), dtype=np.float64)
        if weights is None and self.weights is not None:
            chances = (self.weights.to_numpy() > 0).astype(np.float64)
        return self.take(Draw.of(size, rng).index(self.n_rows, chances))

    def take(self, index: NDArray[np.intp]) -> Sample:
        """Return the rows of these numbers, in this order."""
        weights = None if self.weights is None else self.weights.take(index)
        rows, y = Block(_picked(self._X, index), None, None, self._intercept).dense(), _picked(self._y, index)
        if not _is_finite(rows):
            raise ValueError(self.fault())
        return Sample(to_numpy(rows), to_numpy(y), weights, index, None if is_on_host(rows) else rows)

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(block, *aligned)`` over all blocks."""
        total: Sum = reduce(add, (kernel(*block) for block in self._blocks(aligned)))
        return total

    def map(self, kernel: Kernel, *aligned: Values) -> ArrayValues:
        """Return ``kernel(block, *aligned)`` of all blocks, one value or one row of values for each row."""
        parts = [kernel(*block) for block in self._blocks(aligned)]
        return ArrayValues(parts[0] if len(parts) == 1 else namespace_of(parts[0]).concat(parts))

    def fault(self) -> str:
        """Say where the first NaN or infinity of X is."""
        start = 0
        for (block,) in self._blocks(()):
            rows = block.dense()
            message = "" if _is_finite(rows) else first_fault(to_numpy(rows), "X", start)
            if message:
                return message
            start += len(block)
        return "X times the coefficients is not finite: the numbers are too large"

    @cached_property
    def _largest(self) -> float | None:
        """The largest magnitude of a number on a device, where a second read costs as much as marking."""
        return None if is_on_host(self._X) else largest_of(self._X)

    def _blocks(self, aligned: tuple[Values, ...]) -> Iterator[tuple[Any, ...]]:
        arrays = [_next_to(self._X, values) for values in aligned]
        for rows in _cuts(self._X, self.n_columns):
            weights = None if self.weights is None else self.weights.array[rows]
            block = Block(_cut(self._X, rows), _cut(self._y, rows), weights, self._intercept, self._largest)
            yield block, *(_cut(array, rows) for array in arrays)


class Columnwise:
    """Columns of numbers that lie apart, as a matrix whose rows are put together when they are read."""

    ndim = 2
    dtype = np.dtype(np.float64)
    made_when_read = True

    def __init__(self, columns: Sequence[FloatArray]) -> None:
        self._columns = columns
        self.shape = (len(columns[0]), len(columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> FloatArray:
        """Return some rows, or with ``[:, j]`` one column."""
        if isinstance(key, tuple):
            rows, j = key
            return self._columns[j][rows]
        first = self._columns[0][key]
        found = np.empty((len(first), len(self._columns)), order="F")
        for j, column in enumerate(self._columns):
            found[:, j] = column[key]
        return found

    def __matmul__(self, w: FloatArray) -> FloatArray:
        """Return the products with coefficients."""
        return np.concatenate([self[rows] @ w for rows in row_blocks(*self.shape)])


def rows_of(X: Any, y: Any, sample_weight: Any = None, *, intercept: bool = False) -> Rows:
    """Return rows of whatever kind `X` is: arrays here or on a device, sparse matrices, Dask."""
    if hasattr(X, "__dask_graph__"):
        from massart.rows.dask import DaskRows

        return DaskRows(X, y, sample_weight, intercept=intercept)
    return ArrayRows(X, y, sample_weight, intercept=intercept)


def times(X: Any, W: FloatArray) -> Any:
    """Return the rows of an array, with a constant column, times `W`, where they are."""
    parts = [Block(_cut(X, rows), None, None, intercept=True).times(W) for rows in _cuts(X, len(W))]
    return namespace_of(X).concat(parts)


def _cuts(X: Any, n_columns: int) -> Iterator[slice]:
    n_rows = int(X.shape[0])
    part = 8 * n_columns * -(-n_rows // _DEVICE_BLOCKS)
    return row_blocks(n_rows, n_columns, BLOCK_BYTES if is_on_host(X) else max(_DEVICE_BLOCK_BYTES, part))


def _cut(array: Any, rows: slice) -> Any:
    return array[rows, ...] if is_elsewhere(array) else array[rows]


def _picked(array: Any, index: NDArray[np.intp]) -> Any:
    return namespace_of(array).take(array, like(index, array), axis=0) if is_elsewhere(array) else array[index]


def _is_finite(array: Any) -> bool:
    if isinstance(array, np.ndarray):
        return not first_fault(array, "X", 0)
    xp = namespace_of(array)
    return bool(xp.all(xp.isfinite(array)))


def _matrix(X: Any) -> Any:
    """Return rows as they are read: without gradients, sparse ones in compressed rows."""
    if is_elsewhere(X):
        return X.detach() if hasattr(X, "detach") else X
    if isinstance(X, np.ndarray) or hasattr(X, "made_when_read"):
        return X
    if not hasattr(X, "tocsr"):
        raise ValueError(f"X must be an array or a SciPy sparse matrix, got {type(X).__name__}")
    return X.tocsr()


def _check_kind(array: Any, name: str) -> None:
    """Raise for what holds no real numbers, or integers that float64 cannot hold exactly."""
    if not is_elsewhere(array):
        if array.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
        if not hasattr(array, "made_when_read"):
            check_integers(array if isinstance(array, np.ndarray) else array.data, name)
        return
    xp = namespace_of(array)
    if not xp.isdtype(array.dtype, ("real floating", "integral", "bool")):
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if xp.isdtype(array.dtype, "integral") and xp.iinfo(array.dtype).bits == 64 and 0 not in array.shape:
        check_integers(np.array([int(xp.min(array)), int(xp.max(array))]), name)


def _placed(values: Any, X: Any, name: str, check: Callable[..., Any]) -> Any:
    """Return labels or weights as float64 where `X` is; where they are not in order, the check for numpy says why."""
    n_rows = int(X.shape[0])
    if values is None or not is_elsewhere(X):
        return check(values, n_rows, name)
    if not is_elsewhere(values):
        return like(check(values, n_rows, name), X)
    if place_of(values) != place_of(X):
        raise ValueError(
            f"{name} must be of numpy or where X is: X is of {place_of(X)}, and {name} of {place_of(values)}"
        )
    _check_kind(values, name)
    array = floats(values.detach() if hasattr(values, "detach") else values)
    xp, shape = namespace_of(array), array.shape
    ok = shape[0] == n_rows if array.ndim in (1, 2) and 0 not in shape else False
    if check is check_weights:
        ok = ok and array.ndim == 1 and bool(xp.all(array >= 0)) and bool(xp.any(array > 0))
    if not (ok and _is_finite(array)):
        check(to_numpy(array), n_rows, name)
    return array
