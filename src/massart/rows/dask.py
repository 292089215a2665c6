"""Rows of Dask: arrays, data frames, and blocks that the workers of a cluster read themselves.

A kernel goes to where the blocks are, values stay there, sums are added there, and only totals and samples come back.
Blocks are made once and held if they fit into the memory of the workers, and otherwise made anew for each verb. Blocks
and values are results of tasks whose inputs Dask knows: what a lost worker had is made again by another one.

The tasks run on the cluster of the current client or, if there is none, in this process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial, reduce
from operator import add
from typing import Any

import dask.array
import numpy as np
from numpy.typing import NDArray

from massart.rows.arrays import precision_of
from massart.rows.block import Sample
from massart.rows.dask_tasks import (
    Drawn,
    Look,
    block_of,
    fault_of,
    is_positive,
    label_fault_of,
    look_at,
    mapped,
    reduced,
    some_of,
    weights_of,
)
from massart.rows.dask_values import DaskValues, compute, parts_of, persist, places_of, room, task, total_of
from massart.rows.rows import Kernel, Sum, Values
from massart.rows.sampling import RUN, Draw

SHARE = 0.5
"""Of the memory of all workers, what they hold at most: from 0.6 on Dask begins to write it to disk."""

_dask: Any = dask  # types are there for a part of it only
_delayed = _dask.delayed


class BlockRows:
    """Rows in blocks that tasks make.

    Parameters
    ----------
    blocks : sequence of Delayed
        Each makes a :class:`massart.rows.Block`, the same one each time; the rows are numbered in their order.
    precision : pair of float
        The relative precisions of the rows and of the labels.
    nbytes : float, optional
        Size of all blocks; by default as if all were like the first.
    """

    def __init__(self, blocks: Sequence[Any], precision: tuple[float, float], *, nbytes: float | None = None) -> None:
        self._precision = precision
        blocks, look = list(blocks), _delayed(look_at)
        first = blocks[:1]
        if nbytes is None:
            first = persist(first)
            nbytes = len(blocks) * sum(seen.nbytes for seen in compute([*map(look, first)]))
        if nbytes <= room(SHARE):
            blocks = persist([*first, *blocks[1:]])
        looks: tuple[Look, ...] = compute([*map(look, blocks)])
        there = [(block, look) for block, look in zip(blocks, looks, strict=True) if look.length]
        if not there:
            raise ValueError("X must have at least one row, got none")
        self._blocks = [block for block, _ in there]
        self._looks = [look for _, look in there]
        self._starts = np.cumsum([0, *(look.length for look in self._looks)], dtype=np.intp)
        self._check()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._starts[-1])

    @property
    def n_columns(self) -> int:
        """Number of columns, the constant one included."""
        return self._looks[0].n_columns

    @property
    def n_outputs(self) -> int:
        """Number of label columns."""
        return self._looks[0].n_outputs

    @property
    def precision(self) -> tuple[float, float]:
        """The relative precisions of the rows and of the labels."""
        return self._precision

    @cached_property
    def weights(self) -> DaskValues | None:
        """The weights of the rows, if they have any."""
        return self.map(weights_of) if self._looks[0].has_weights else None

    def sample(self, size: int, rng: np.random.Generator, weights: Values | None = None) -> Sample:
        """Return about `size` random rows of positive weight in their order, all of them if there are not more."""
        draw = Draw.of(size, rng)
        if weights is None and self.weights is not None:
            weights = self.weights.map(is_positive)
        bounds = self._starts[:-1].tolist(), self._starts[1:].tolist()
        if weights is None:  # the keys of runs are known without the rows
            drawn = reduce(add, map(partial(Drawn.of, draw), *bounds))
        else:
            drawn = total_of([*map(task(Drawn.of, draw), *bounds, parts_of(weights, self._starts))])
        numbers = np.sort(drawn.numbers)
        if weights is None:
            numbers = (numbers[:, None] * RUN + np.arange(RUN)).ravel()
        return self.take(numbers[numbers < self.n_rows])

    def take(self, index: NDArray[np.intp]) -> Sample:
        """Return the rows of these numbers, in this order."""
        places = [*places_of(index, self._starts)]
        some = _delayed(some_of)
        found = compute([some(self._blocks[part], rows) for part, _, rows in places])
        X, y = np.empty((len(index), self.n_columns)), np.empty((len(index), self.n_outputs))
        weights = np.empty(len(index)) if self._looks[0].has_weights else None
        for (_, where, _), block in zip(places, found, strict=True):
            X[where], y[where] = block.rows, block.y
            if weights is not None:
                weights[where] = block.weights
        if not np.isfinite(X).all():
            raise ValueError(self.fault())
        return Sample(X, y, weights, index)

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(block, *aligned)`` over all blocks."""
        total: Sum = total_of(self._tasks(reduced, kernel, aligned))
        return total

    def map(self, kernel: Kernel, *aligned: Values) -> DaskValues:
        """Return ``kernel(block, *aligned)`` of all blocks, one value or one row of values for each row."""
        parts = persist(self._tasks(mapped, kernel, aligned))
        compute([*map(_delayed(len), parts)])  # waits, and raises what a kernel raised
        return DaskValues(parts, self._starts)

    def fault(self) -> str:
        """Say where the first NaN or infinity of the rows is."""
        tasks = map(_delayed(fault_of), self._blocks, self._starts[:-1].tolist())
        found = next(filter(None, compute([*tasks])), None)
        return found or "X times the coefficients is not finite: the numbers are too large"

    def _tasks(self, verb: Callable[..., Any], kernel: Kernel, aligned: Sequence[Values]) -> list[Any]:
        run = task(verb, kernel)
        lengths = np.diff(self._starts).tolist()
        return [*map(run, lengths, self._blocks, *(parts_of(values, self._starts) for values in aligned))]

    def _check(self) -> None:
        """Raise for labels and weights that cannot be meant, as for rows in memory."""
        seen = [*zip(self._blocks, self._looks, self._starts.tolist(), strict=False)]
        for block, look, start in seen:
            if not look.is_finite:
                raise ValueError(compute([_delayed(label_fault_of)(block, start)])[0])
        if not self._looks[0].has_weights:
            return
        least, row = min((look.lightest[0], start + look.lightest[1]) for _, look, start in seen)
        if least < 0:
            raise ValueError(f"sample_weight must not be negative, got {least:g} at row {row}")
        if not any(look.heaviest for look in self._looks):
            raise ValueError("sample_weight must not be zero for every row")


class DaskRows(BlockRows):
    """Rows of an array or a data frame of Dask.

    Parameters
    ----------
    X : (n, d) dask array or data frame
        Chunks may be of unknown sizes; chunks along columns are merged. All columns of a frame must be numbers.
    y : (n,) or (n, m) dask array, series or frame, or an array in memory
        Cut like X, or of known sizes like X.
    sample_weight : (n,) dask array or series, or an array in memory, optional
    intercept : bool
        Add a constant column.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, *, intercept: bool = False) -> None:
        rows = _array(X, "X")
        if rows.ndim != 2 or rows.shape[1] == 0:
            raise ValueError(f"X must have at least one row and one column, got shape {rows.shape}")
        columns = [rows.rechunk({1: -1}), _aligned(y, "y", rows)]
        if columns[1].ndim not in (1, 2):
            raise ValueError(f"y must have shape (n,) or (n, m), got {columns[1].shape}")
        if sample_weight is not None:
            columns.append(_aligned(sample_weight, "sample_weight", rows))
            if columns[2].ndim != 1:
                raise ValueError(f"sample_weight must have shape (n,), got {columns[2].shape}")
        optimized = _dask.optimize(*columns)  # together: what two are made of is made once
        tasks = (array.to_delayed(optimize_graph=False).ravel() for array in optimized)
        make = task(block_of, intercept)
        nbytes = math.inf if all(map(_is_held, columns)) else float(sum(array.nbytes for array in columns))
        super().__init__(
            [*map(make, *tasks)],
            (precision_of(rows), precision_of(columns[1])),
            nbytes=None if math.isnan(nbytes) else nbytes,
        )


# --- collections ---


def _array(values: Any, name: str) -> Any:
    """Return a dask array of real numbers; that of a frame has chunks of unknown sizes."""
    if hasattr(values, "to_dask_array"):
        types = {"": values.dtype} if values.ndim == 1 else {f" in column {j}": t for j, t in values.dtypes.items()}
        for where, dtype in types.items():
            if dtype.kind not in "fiub":
                raise ValueError(f"{name} must hold numbers, got {dtype}{where}")
        values = values.astype(np.result_type(*map(_plain, types.values()))).to_dask_array()
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {values.dtype}")
    return values


def _plain(dtype: Any) -> Any:
    """Return the type of numpy that holds the numbers of a column; missing ones are NaN."""
    if isinstance(dtype, np.dtype):
        return dtype
    return dtype.numpy_dtype if dtype.kind == "f" else np.float64


def _aligned(values: Any, name: str, rows: Any) -> Any:
    """Return an array that is cut like the rows."""
    cuts = rows.chunks[0]
    is_known = not any(map(math.isnan, cuts))
    if not hasattr(values, "__dask_graph__"):
        if not is_known:
            raise ValueError(
                f"{name} is in memory, but X has chunks of unknown sizes: X.compute_chunk_sizes() tells them"
            )
        values = _dask.array.from_array(np.asarray(values), chunks=-1)
    array = _array(values, name)
    if array.ndim > 1:
        array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    if is_known and not any(map(math.isnan, array.chunks[0])):
        if array.shape[0] != rows.shape[0]:
            raise ValueError(f"{name} has {array.shape[0]} rows but X has {rows.shape[0]}")
        return array.rechunk({0: cuts})
    if len(array.chunks[0]) != len(cuts):
        raise ValueError(
            f"{name} has {len(array.chunks[0])} chunks but X has {len(cuts)}, and not all sizes are known: "
            "cut both alike, or call compute_chunk_sizes() on them"
        )
    return array


def _is_held(array: Any) -> bool:
    """Tell whether workers hold an array as it is: blocks of it take no time to make, and would be counted twice."""
    try:
        import distributed
    except ImportError:
        return False
    futures_of: Any = distributed.futures_of
    return len(futures_of(array)) == len(array.__dask_graph__())
