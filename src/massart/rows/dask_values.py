"""Values of the rows of Dask, in parts that lie where the rows do; and where tasks run.

The tasks run on the cluster of the current client or, if there is none, in this process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial, reduce
from operator import add, call, getitem
from typing import Any

import dask.array
import numpy as np
from numpy.typing import NDArray

from massart.rows.rows import Kernel, Sum, Values

_FAN_IN = 32  # sums that one task adds: few enough to hold, many enough to be worth a task

_dask: Any = dask  # types are there for a part of it only
_delayed = _dask.delayed


def task(function: Callable[..., Any], argument: Any) -> Any:
    """Return a maker of tasks ``function(argument, ...)``: the argument goes along as it is, and names no task."""
    return _delayed(partial(function, argument), traverse=False)


def compute(tasks: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of tasks, here."""
    try:
        return tuple(_dask.compute(*tasks))
    except Exception as error:
        if type(error).__name__ != "KilledWorker":  # of distributed, which need not be installed
            raise
        raise ConnectionError(
            "workers of the Dask cluster died, one after the other, at the same block of rows: "
            "it may be too large for their memory; smaller blocks or larger workers help"
        ) from None


def persist(tasks: Sequence[Any]) -> list[Any]:
    """Start tasks, whose results stay where they are made."""
    return list(_dask.persist(*tasks))


def total_of(tasks: Sequence[Any]) -> Any:
    """Return the sum of the results of tasks, added where they are, and always in the same order."""
    tasks = list(tasks)
    while len(tasks) > 1:
        tasks = [_delayed(_sum)(*tasks[i : i + _FAN_IN]) for i in range(0, len(tasks), _FAN_IN)]
    return compute(tasks)[0]


def room(share: float) -> float:
    """Return the bytes that workers can hold within a share of their memory, in addition to what they hold."""
    try:
        import distributed.system
    except ImportError:
        return math.inf
    most = float(distributed.system.MEMORY_LIMIT)
    try:
        client: Any = distributed.get_client()
    except ValueError:  # no cluster: all happens in this process
        return share * most
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    held = sum(worker["metrics"]["managed_bytes"] for worker in workers)
    return float(share * sum(worker["memory_limit"] or most for worker in workers) - held)


class DaskValues:
    """Values of all rows, in parts that lie where the rows do, and where these parts start.

    What rows were mapped to is held; what is made of that by :meth:`map` is made when it is used.
    """

    def __init__(self, parts: Sequence[Any], starts: NDArray[np.intp]) -> None:
        self.parts, self.starts = list(parts), starts

    @cached_property
    def _type(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """The shape of the values of one row, and their type."""
        shape, dtype = compute([_delayed(_type_of)(self.parts[0])])[0]
        return shape, dtype

    def __len__(self) -> int:
        return int(self.starts[-1])

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(values, *aligned)`` over all parts."""
        total: Sum = total_of(self._tasks(kernel, aligned))
        return total

    def map(self, kernel: Kernel, *aligned: Values) -> DaskValues:
        """Return ``kernel(values, *aligned)`` of all parts."""
        return DaskValues(self._tasks(kernel, aligned), self.starts)

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Return the values of rows of these numbers, in memory."""
        shape, dtype = self._type
        found = np.empty((len(index), *shape), dtype=dtype)
        places = [*places_of(index, self.starts)]
        some = compute([_delayed(getitem)(self.parts[part], rows) for part, _, rows in places])
        for (_, where, _), values in zip(places, some, strict=True):
            found[where] = values
        return found

    def native(self) -> Any:
        """Return all values as an array of Dask."""
        shape, dtype = self._type
        lengths = np.diff(self.starts).tolist()
        arrays = [
            _dask.array.from_delayed(part, shape=(length, *shape), dtype=dtype)
            for part, length in zip(self.parts, lengths, strict=True)
        ]
        return _dask.array.concatenate(arrays)

    def to_numpy(self) -> NDArray[Any]:
        """Return all values in memory, in the order of the rows."""
        return np.concatenate(compute(self.parts))

    def _tasks(self, kernel: Kernel, aligned: Sequence[Values]) -> list[Any]:
        return [*map(task(call, kernel), self.parts, *(parts_of(values, self.starts) for values in aligned))]


def parts_of(values: Values, starts: NDArray[np.intp]) -> Sequence[Any]:
    """Return values in parts that begin with these rows."""
    if isinstance(values, DaskValues) and np.array_equal(starts, values.starts):
        return values.parts
    return np.split(values.to_numpy(), starts[1:-1])


def places_of(
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


# --- what follows runs on the workers ---


def _sum(*parts: Any) -> Any:
    return reduce(add, parts)


def _type_of(values: NDArray[Any]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return values.shape[1:], values.dtype
