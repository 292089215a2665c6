"""Rows of Dask: arrays and data frames.

A kernel goes to where the blocks are, values stay there, sums are added there, and only totals and samples come back.
Blocks are made once and held if they fit into the memory of the workers, and otherwise made anew for each verb. Blocks
and values are results of tasks whose inputs Dask knows: what a lost worker had is made again by another one.

The tasks run on the cluster of the current client or, if there is none, in this process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add, attrgetter
from typing import Any

import dask.array
import dask.sizeof
import numpy as np
from numpy.typing import NDArray

from massart.rows.arrays import check_integers, first_fault, precision_of, row_blocks
from massart.rows.dask_values import DaskValues, compute, parts_of, persist, places_of, room, task, total_of
from massart.rows.rows import Block, Kernel, Sample, Sum, Values
from massart.rows.sampling import Draw, smallest

SHARE = 0.5
"""Of the memory of all workers, what they hold at most: from 0.6 on Dask begins to write it to disk."""

_PIECE_BYTES = 2 << 20
"""Size of the pieces that kernels see. Marking 2,000,000 x 30 took a sixth less processor time than with 1 MB; with 4
MB temporaries reach the 128 kB from which the allocator of a worker asks the system for each of them."""

_dask: Any = dask  # types are there for a part of it only
_delayed = _dask.delayed
_sizeof: Any = dask.sizeof.sizeof


class DaskRows:
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
        labels = _aligned(y, "y", rows, (1, 2))
        columns = [rows.rechunk({1: -1}), labels]
        if sample_weight is not None:
            columns.append(_aligned(sample_weight, "sample_weight", rows, (1,)))
        self.n_columns = int(rows.shape[1]) + intercept
        self.n_outputs = int(labels.shape[1]) if labels.ndim == 2 else 1
        self.precision = precision_of(rows), precision_of(labels)
        self._has_weights = sample_weight is not None
        blocks = _blocks_of(columns, intercept)
        looks: tuple[_Look, ...] = compute([*map(_delayed(_look_at), blocks)])
        there = [(block, look) for block, look in zip(blocks, looks, strict=True) if look.length]
        if not there:
            raise ValueError("X must have at least one row, got none")
        self._blocks = [block for block, _ in there]
        self._starts = np.cumsum([0, *(look.length for _, look in there)], dtype=np.intp)
        self._check([look for _, look in there])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._starts[-1])

    @cached_property
    def weights(self) -> DaskValues | None:
        """The weights of the rows, if they have any."""
        return self.map(attrgetter("weights")) if self._has_weights else None

    def sample(self, size: int, rng: np.random.Generator, weights: Values | None = None) -> Sample:
        """Return about `size` random rows of positive weight in their order, all of them if there are not more."""
        draw = Draw.of(size, rng)
        if weights is None and self.weights is not None:
            weights = self.weights.map(partial(np.less, 0))
        if weights is None:  # the keys of runs are known without the rows
            return self.take(draw.index(self.n_rows))
        drawn = total_of([*map(task(_Drawn.of, draw), self._starts[:-1].tolist(), parts_of(weights, self._starts))])
        return self.take(np.sort(drawn.numbers))

    def take(self, index: NDArray[np.intp]) -> Sample:
        """Return the rows of these numbers, in this order."""
        places = [*places_of(index, self._starts)]
        found = compute([_delayed(_some_of)(self._blocks[part], rows) for part, _, rows in places])
        X, y = np.empty((len(index), self.n_columns)), np.empty((len(index), self.n_outputs))
        weights = np.empty(len(index)) if self._has_weights else None
        for (_, where, _), block in zip(places, found, strict=True):
            X[where], y[where] = block.rows, block.y
            if weights is not None:
                weights[where] = block.weights
        if not np.isfinite(X).all():
            raise ValueError(self.fault())
        return Sample(X, y, weights, index)

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(block, *aligned)`` over all blocks."""
        total: Sum = total_of(self._tasks(_reduced, kernel, aligned))
        return total

    def map(self, kernel: Kernel, *aligned: Values) -> DaskValues:
        """Return ``kernel(block, *aligned)`` of all blocks, one value or one row of values for each row."""
        parts = persist(self._tasks(_mapped, kernel, aligned))
        compute([*map(_delayed(len), parts)])  # waits, and raises what a kernel raised
        return DaskValues(parts, self._starts)

    def fault(self) -> str:
        """Say where the first NaN or infinity of the rows is."""
        found = compute([*map(_delayed(_fault_of), self._blocks, self._starts[:-1].tolist())])
        return next(filter(None, found), "X times the coefficients is not finite: the numbers are too large")

    def _tasks(self, verb: Callable[..., Any], kernel: Kernel, aligned: Sequence[Values]) -> list[Any]:
        lengths = np.diff(self._starts).tolist()
        return [
            *map(task(verb, kernel), lengths, self._blocks, *(parts_of(values, self._starts) for values in aligned))
        ]

    def _check(self, looks: list[_Look]) -> None:
        """Raise for labels and weights that cannot be meant, as for rows in memory."""
        seen = [*zip(self._blocks, looks, self._starts.tolist(), strict=False)]
        for block, look, start in seen:
            if not look.is_finite:
                raise ValueError(compute([_delayed(_label_fault_of)(block, start)])[0])
        least, row = min((look.lightest[0], start + look.lightest[1]) for _, look, start in seen)
        if least < 0:
            raise ValueError(f"sample_weight must not be negative, got {least:g} at row {row}")
        if not any(look.heaviest for look in looks):
            raise ValueError("sample_weight must not be zero for every row")


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


def _aligned(values: Any, name: str, rows: Any, dimensions: tuple[int, ...]) -> Any:
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
    if array.ndim not in dimensions:
        shapes = " or ".join("(n, m)" if k == 2 else "(n,)" for k in dimensions)
        raise ValueError(f"{name} must have shape {shapes}, got {array.shape}")
    if array.ndim > 1:
        array = array.rechunk({1: -1})
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


def _blocks_of(columns: Sequence[Any], intercept: bool) -> list[Any]:
    """Return tasks that make the blocks of arrays that are cut alike; they are held if workers have room for them."""
    optimized = _dask.optimize(*columns)  # together: what two are made of is made once
    chunks = (array.to_delayed(optimize_graph=False).ravel() for array in optimized)
    blocks = [*map(task(_block_of, intercept), *chunks)]
    if all(map(_is_held, columns)):
        return blocks
    nbytes = float(sum(array.nbytes for array in columns))
    if math.isnan(nbytes):  # as if all blocks were like the first
        blocks[:1] = persist(blocks[:1])
        nbytes = len(blocks) * compute([_delayed(_look_at)(blocks[0])])[0].nbytes
    return persist(blocks) if nbytes <= room(SHARE) else blocks


def _is_held(array: Any) -> bool:
    """Return whether workers hold an array as it is: blocks of it take no time to make, and would be counted twice."""
    try:
        import distributed
    except ImportError:
        return False
    futures_of: Any = distributed.futures_of
    return len(futures_of(array)) == len(array.__dask_graph__())


# --- what follows runs on the workers ---


@_sizeof.register(Block)  # type: ignore[untyped-decorator]  # it decides whether a block is held, moved or spilled
def _nbytes(block: Block) -> int:
    return sum(int(_sizeof(part)) for part in (block.rows, block.y, block.weights))


@dataclass(frozen=True, slots=True)
class _Look:
    """What is known of a block once it was looked at."""

    length: int
    nbytes: int
    is_finite: bool
    lightest: tuple[float, int]
    heaviest: float


def _look_at(block: Block) -> _Look:
    weights = np.ones(1) if block.weights is None or not len(block) else block.weights
    is_finite = bool(np.isfinite(block.y).all() and np.isfinite(weights).all())
    lightest = float(weights.min()), int(weights.argmin())
    return _Look(len(block), _nbytes(block), is_finite, lightest, float(weights.max()))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The smallest keys of a draw of rows with weights so far, and the numbers of these rows."""

    count: int
    keys: NDArray[np.float64]
    numbers: NDArray[np.intp]

    @classmethod
    def of(cls, draw: Draw, start: int, weights: NDArray[Any]) -> _Drawn:
        """Return the draw of a block whose rows begin with this number."""
        there = np.flatnonzero(weights)
        keys = draw.weighted_keys(start + there, weights[there].astype(np.float64))
        return cls(draw.size, keys, start + there)._smallest()

    def __add__(self, other: _Drawn) -> _Drawn:
        keys, numbers = (self.keys, other.keys), (self.numbers, other.numbers)
        return _Drawn(self.count, np.concatenate(keys), np.concatenate(numbers))._smallest()

    def _smallest(self) -> _Drawn:
        chosen = smallest(self.keys, self.count)
        return _Drawn(self.count, self.keys[chosen], self.numbers[chosen])


def _block_of(intercept: bool, rows: Any, y: NDArray[Any], weights: NDArray[Any] | None = None) -> Block:
    """Return a block of chunks that were cut alike."""
    for values, name in ((y, "y"), (weights, "sample_weight")):
        if values is not None and len(values) != rows.shape[0]:
            raise ValueError(
                f"{name} has a chunk of {len(values)} rows where X has one of {rows.shape[0]}: cut both alike"
            )
    check_integers(rows.data if hasattr(rows, "tocsr") else rows, "X")
    check_integers(y, "y")
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    elif not rows.flags.forc:  # some columns of an array, all of which would be held
        rows = np.ascontiguousarray(rows)
    labels = np.asarray(y, dtype=np.float64)
    weights = None if weights is None else np.asarray(weights, dtype=np.float64)
    return Block(rows, labels[:, None] if labels.ndim == 1 else labels, weights, intercept)


def _pieces(length: int, block: Block, values: Sequence[NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    """Cut a block into pieces that stay in the cache: large temporaries cost a worker more than its products."""
    if len(block) != length:
        raise ValueError(f"the table changed while it was read: a block had {length:,} rows, and now {len(block):,}")
    for rows in row_blocks(length, int(block.rows.shape[1]) + block.intercept, _PIECE_BYTES):
        yield block.take(rows), *(array[rows] for array in values)


def _mapped(kernel: Kernel, length: int, block: Block, *values: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([kernel(*piece) for piece in _pieces(length, block, values)])


def _reduced(kernel: Kernel, length: int, block: Block, *values: NDArray[Any]) -> Any:
    return reduce(add, (kernel(*piece) for piece in _pieces(length, block, values)))


def _some_of(block: Block, index: NDArray[np.intp]) -> Block:
    """Return the rows of these numbers, dense and with their constant."""
    some = block.take(index)
    return Block(some.dense(), some.y, some.weights, False)


def _fault_of(block: Block, start: int) -> str:
    for (piece,) in _pieces(len(block), block, ()):
        if message := first_fault(piece.dense(), "X", start):
            return message
        start += len(piece)
    return ""


def _label_fault_of(block: Block, start: int) -> str:
    labels = block.y[:, 0] if block.y.shape[1] == 1 else block.y
    return first_fault(labels, "y", start) or first_fault(block.weights, "sample_weight", start)
