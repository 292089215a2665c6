"""Rows of Dask: arrays, data frames, and blocks that the workers of a cluster read themselves.

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
from operator import add
from typing import Any

import dask.array
import dask.sizeof
import numpy as np
from numpy.typing import NDArray

from massart.rows.arrays import check_integers, first_fault, precision_of, row_blocks
from massart.rows.block import Block, Sample
from massart.rows.rows import Kernel, Sum, Values
from massart.rows.sampling import RUN, Draw, smallest

SHARE = 0.5
"""Of the memory of all workers, what they hold at most: from 0.6 on Dask begins to write it to disk."""

_FAN_IN = 32  # sums that one task adds: few enough to hold, many enough to be worth a task

_PIECE_BYTES = 2 << 20
"""Size of the pieces that kernels see. Marking 2,000,000 x 30 took a sixth less processor time than with 1 MB; with 4
MB temporaries reach the 128 kB from which the allocator of a worker asks the system for each of them."""

_dask: Any = dask  # types are there for a part of it only
_delayed, _sizeof = _dask.delayed, _dask.sizeof.sizeof


def _task(function: Callable[..., Any], argument: Any) -> Any:
    """Return a maker of tasks ``function(argument, ...)``: the argument goes along as it is, and names no task."""
    return _delayed(partial(function, argument), traverse=False)


@dataclass(frozen=True, slots=True)
class _Scheduler:
    """Where tasks run: on the cluster of a client, or wherever Dask runs them by default."""

    client: Any = None

    def compute(self, tasks: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results of tasks, here."""
        try:
            return tuple(_dask.compute(*tasks, scheduler=self.client))
        except Exception as error:
            if type(error).__name__ != "KilledWorker":  # of distributed, which need not be installed
                raise
            raise ConnectionError(
                "workers of the Dask cluster died, one after the other, at the same block of rows: "
                "it may be too large for their memory; smaller blocks or larger workers help"
            ) from None

    def persist(self, tasks: Sequence[Any]) -> list[Any]:
        """Start tasks, whose results stay where they are made."""
        return list(_dask.persist(*tasks) if self.client is None else self.client.persist(list(tasks)))

    def total(self, tasks: Sequence[Any]) -> Any:
        """Return the sum of the results of tasks, added where they are, and always in the same order."""
        tasks = list(tasks)
        while len(tasks) > 1:
            tasks = [_delayed(_sum)(*tasks[i : i + _FAN_IN]) for i in range(0, len(tasks), _FAN_IN)]
        return self.compute(tasks)[0]

    def room(self, share: float) -> float:
        """Return the bytes that workers can hold within a share of their memory, beside what they hold already."""
        try:
            import distributed.system
        except ImportError:
            return math.inf
        most = float(distributed.system.MEMORY_LIMIT)
        try:
            client: Any = self.client or distributed.get_client()
        except ValueError:  # no cluster: all happens in this process
            return share * most
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        held = sum(worker["metrics"]["managed_bytes"] for worker in workers)
        return float(share * sum(worker["memory_limit"] or most for worker in workers) - held)


class DaskValues:
    """Values of all rows, in parts that lie where the rows do.

    Parameters
    ----------
    parts : sequence of Delayed
        What rows were mapped to is held; what is made of that by :meth:`map` is made when it is used.
    starts : (p + 1,) array of int
        The number of the first row of each part, and of all rows.
    scheduler : _Scheduler
    """

    def __init__(self, parts: Sequence[Any], starts: NDArray[np.intp], scheduler: _Scheduler) -> None:
        self._parts, self._starts, self._scheduler = list(parts), starts, scheduler

    @cached_property
    def _type(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """The shape of the values of one row, and their type."""
        shape, dtype = self._scheduler.compute([_delayed(_type_of)(self._parts[0])])[0]
        return shape, dtype

    def __len__(self) -> int:
        return int(self._starts[-1])

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(values, *aligned)`` over all parts."""
        total: Sum = self._scheduler.total(self._tasks(kernel, aligned))
        return total

    def map(self, kernel: Kernel, *aligned: Values) -> DaskValues:
        """Return ``kernel(values, *aligned)`` of all parts."""
        return DaskValues(self._tasks(kernel, aligned), self._starts, self._scheduler)

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Return the values of rows of these numbers, in memory."""
        shape, dtype = self._type
        found = np.empty((len(index), *shape), dtype=dtype)
        places = [*_places(index, self._starts)]
        some = self._scheduler.compute([_delayed(_chosen)(self._parts[part], rows) for part, _, rows in places])
        for (_, where, _), values in zip(places, some, strict=True):
            found[where] = values
        return found

    def native(self) -> Any:
        """Return all values as an array of Dask."""
        shape, dtype = self._type
        lengths = np.diff(self._starts).tolist()
        arrays = [
            _dask.array.from_delayed(part, shape=(length, *shape), dtype=dtype)
            for part, length in zip(self._parts, lengths, strict=True)
        ]
        return _dask.array.concatenate(arrays)

    def to_numpy(self) -> NDArray[Any]:
        """Return all values in memory, in the order of the rows."""
        return np.concatenate(self._scheduler.compute(self._parts))

    def parts(self, starts: NDArray[np.intp]) -> Sequence[Any]:
        """Return the parts that begin with these rows."""
        return self._parts if np.array_equal(starts, self._starts) else _cut(self.to_numpy(), starts)

    def _tasks(self, kernel: Kernel, aligned: Sequence[Values]) -> list[Any]:
        return [*map(_task(_applied, kernel), self._parts, *(_parts(values, self._starts) for values in aligned))]


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
    client : distributed.Client, optional
        By default the current one; without any, tasks run in this process.
    share : float
        Of the memory of all workers: larger tables are not held there but made anew for each verb.
    """

    def __init__(
        self,
        blocks: Sequence[Any],
        precision: tuple[float, float],
        *,
        nbytes: float | None = None,
        client: Any = None,
        share: float = SHARE,
    ) -> None:
        self._scheduler, self._precision = _Scheduler(client), precision
        blocks, look = list(blocks), _delayed(_look)
        first = blocks[:1]
        if nbytes is None:
            first = self._scheduler.persist(first)
            nbytes = len(blocks) * sum(seen.nbytes for seen in self._scheduler.compute([*map(look, first)]))
        if nbytes <= self._scheduler.room(share):
            blocks = self._scheduler.persist([*first, *blocks[1:]])
        looks: tuple[_Look, ...] = self._scheduler.compute([*map(look, blocks)])
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
        return self.map(_weights) if self._looks[0].has_weights else None

    def sample(self, size: int, rng: np.random.Generator, weights: Values | None = None) -> Sample:
        """Return about `size` random rows of positive weight in their order, all of them if there are not more."""
        draw = Draw.of(size, rng)
        if weights is None and self.weights is not None:
            weights = self.weights.map(_is_positive)
        bounds = self._starts[:-1].tolist(), self._starts[1:].tolist()
        if weights is None:  # the keys of runs are known without the rows
            drawn = reduce(add, map(partial(_Drawn.of, draw), *bounds))
        else:
            drawn = self._scheduler.total([*map(_task(_Drawn.of, draw), *bounds, _parts(weights, self._starts))])
        numbers = np.sort(drawn.numbers)
        if weights is None:
            numbers = (numbers[:, None] * RUN + np.arange(RUN)).ravel()
        return self.take(numbers[numbers < self.n_rows])

    def take(self, index: NDArray[np.intp]) -> Sample:
        """Return the rows of these numbers, in this order."""
        places = [*_places(index, self._starts)]
        some = _delayed(_some)
        found = self._scheduler.compute([some(self._blocks[part], rows) for part, _, rows in places])
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
        total: Sum = self._scheduler.total(self._tasks(_reduced, kernel, aligned))
        return total

    def map(self, kernel: Kernel, *aligned: Values) -> DaskValues:
        """Return ``kernel(block, *aligned)`` of all blocks, one value or one row of values for each row."""
        parts = self._scheduler.persist(self._tasks(_mapped, kernel, aligned))
        self._scheduler.compute([*map(_delayed(len), parts)])  # waits, and raises what a kernel raised
        return DaskValues(parts, self._starts, self._scheduler)

    def fault(self) -> str:
        """Say where the first NaN or infinity of the rows is."""
        tasks = map(_delayed(_fault), self._blocks, self._starts[:-1].tolist())
        found = next(filter(None, self._scheduler.compute([*tasks])), None)
        return found or "X times the coefficients is not finite: the numbers are too large"

    def _tasks(self, verb: Callable[..., Any], kernel: Kernel, aligned: Sequence[Values]) -> list[Any]:
        run = _task(verb, kernel)
        lengths = np.diff(self._starts).tolist()
        return [*map(run, lengths, self._blocks, *(_parts(values, self._starts) for values in aligned))]

    def _check(self) -> None:
        """Raise for labels and weights that cannot be meant, as for rows in memory."""
        seen = [*zip(self._blocks, self._looks, self._starts.tolist(), strict=False)]
        for block, look, start in seen:
            if not look.is_finite:
                raise ValueError(self._scheduler.compute([_delayed(_label_fault)(block, start)])[0])
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
        make = _task(_block, intercept)
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


# --- tasks: what follows runs on the workers ---


@_sizeof.register(Block)  # type: ignore[untyped-decorator]  # it decides whether a block is held, moved or spilled
def _nbytes(block: Block) -> int:
    return sum(int(_sizeof(part)) for part in (block.rows, block.y, block.weights))


@dataclass(frozen=True, slots=True)
class _Look:
    """What is known of a block once it was looked at."""

    length: int
    n_columns: int
    n_outputs: int
    nbytes: int
    is_finite: bool
    has_weights: bool
    lightest: tuple[float, int]
    heaviest: float


def _look(block: Block) -> _Look:
    weights, n_columns = block.weights, int(block.rows.shape[1]) + block.intercept
    weighed = np.zeros(1) if weights is None or not len(block) else weights
    return _Look(
        length=len(block),
        n_columns=n_columns,
        n_outputs=int(block.y.shape[1]),
        nbytes=_nbytes(block),
        is_finite=bool(np.isfinite(block.y).all() and (weights is None or np.isfinite(weights).all())),
        has_weights=weights is not None,
        lightest=(float(weighed.min()), int(weighed.argmin())),
        heaviest=float(weighed.max()),
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The smallest keys of a draw so far, and the numbers of their rows; of runs, where rows have no weights."""

    count: int
    keys: NDArray[np.float64]
    numbers: NDArray[np.intp]

    @classmethod
    def of(cls, draw: Draw, start: int, stop: int, weights: NDArray[Any] | None = None) -> _Drawn:
        if weights is None:  # a run belongs to the block that it begins in
            first = -(-start // RUN)
            keys = draw.run_keys(first * RUN, max(stop, first * RUN))
            return cls(draw.n_runs, keys, np.arange(first, first + len(keys)))._smallest()
        there = np.flatnonzero(weights)
        keys = draw.weighted_keys(start + there, weights[there].astype(np.float64))
        return cls(draw.size, keys, start + there)._smallest()

    def __add__(self, other: _Drawn) -> _Drawn:
        keys, numbers = (self.keys, other.keys), (self.numbers, other.numbers)
        return _Drawn(self.count, np.concatenate(keys), np.concatenate(numbers))._smallest()

    def _smallest(self) -> _Drawn:
        chosen = smallest(self.keys, self.count)
        return _Drawn(self.count, self.keys[chosen], self.numbers[chosen])


def _block(intercept: bool, rows: Any, y: NDArray[Any], weights: NDArray[Any] | None = None) -> Block:
    for values, name in ((y, "y"), (weights, "sample_weight")):
        if values is not None and len(values) != rows.shape[0]:
            raise ValueError(
                f"{name} has a chunk of {len(values)} rows where X has one of {rows.shape[0]}: cut both alike"
            )
    for values, name in ((getattr(rows, "data", rows) if hasattr(rows, "tocsr") else rows, "X"), (y, "y")):
        check_integers(values, name)
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    elif not rows.flags.forc:  # some columns of an array, all of which would be held
        rows = np.ascontiguousarray(rows)
    labels = np.asarray(y, dtype=np.float64)
    return Block(
        rows,
        labels[:, None] if labels.ndim == 1 else labels,
        None if weights is None else np.asarray(weights, dtype=np.float64),
        intercept,
    )


def _pieces(length: int, block: Block, values: Sequence[NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    """Cut a block into pieces that stay in the cache: large temporaries cost a worker more than its products."""
    if len(block) != length:
        raise ValueError(f"the table changed while it was read: a block had {length:,} rows, and now {len(block):,}")
    for rows in row_blocks(length, int(block.rows.shape[1]) + block.intercept, _PIECE_BYTES):
        weights = None if block.weights is None else block.weights[rows]
        yield Block(block.rows[rows], block.y[rows], weights, block.intercept), *(array[rows] for array in values)


def _applied(kernel: Kernel, *values: Any) -> Any:
    return kernel(*values)


def _mapped(kernel: Kernel, length: int, block: Block, *values: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([kernel(*piece) for piece in _pieces(length, block, values)])


def _reduced(kernel: Kernel, length: int, block: Block, *values: NDArray[Any]) -> Any:
    return reduce(add, (kernel(*piece) for piece in _pieces(length, block, values)))


def _sum(*parts: Any) -> Any:
    return reduce(add, parts)


def _some(block: Block, index: NDArray[np.intp]) -> Block:
    some = block.take(index)
    return Block(some.dense(), some.y, some.weights, False)


def _chosen(values: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
    return np.asarray(values[index])


def _fault(block: Block, start: int) -> str:
    message = ""
    for (piece,) in _pieces(len(block), block, ()):
        message = message or first_fault(piece.dense(), "X", start)
        start += len(piece)
    return message


def _label_fault(block: Block, start: int) -> str:
    labels = block.y[:, 0] if block.y.shape[1] == 1 else block.y
    return first_fault(labels, "y", start) or first_fault(block.weights, "sample_weight", start)


def _type_of(values: NDArray[Any]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return values.shape[1:], values.dtype


def _weights(block: Block) -> NDArray[Any]:
    return np.asarray(block.weights)


def _is_positive(weights: NDArray[Any]) -> NDArray[Any]:
    return weights > 0


# --- numbers of rows ---


def _parts(values: Values, starts: NDArray[np.intp]) -> Sequence[Any]:
    """Return values in parts that begin with these rows."""
    return values.parts(starts) if isinstance(values, DaskValues) else _cut(values.to_numpy(), starts)


def _cut(array: NDArray[Any], starts: NDArray[np.intp]) -> list[NDArray[Any]]:
    return np.split(array, starts[1:-1])


def _places(
    index: NDArray[np.intp], starts: NDArray[np.intp]
) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the parts that rows of these numbers are in: its number, the places in `index`, the rows within it."""
    if len(index) and not 0 <= index.min() <= index.max() < starts[-1]:
        raise IndexError(f"row {index.max()} is not there: there are {starts[-1]}")
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], starts)
    for part in np.flatnonzero(np.diff(bounds)).tolist():
        where = order[bounds[part] : bounds[part + 1]]
        yield part, where, index[where] - starts[part]
