"""Rows that come by in blocks: a file, a query, a generator that can be started again. Few are in memory at a time."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from massart.rows.arrays import first_fault
from massart.rows.block import Block, Sample
from massart.rows.memory import ArrayValues
from massart.rows.rows import Kernel, Sum, Values
from massart.rows.sampling import Draw, Reservoir

MOST_BYTES = 1 << 28
"""Values that take more than this go to disk."""

_DOUBLE = float(np.finfo(np.float64).eps)


class StreamRows:
    """Rows that are read anew, block by block, whenever they are needed.

    Parameters
    ----------
    blocks : callable
        Returns an iterable over the blocks of the table, the same rows in the same order each time, however they are
        cut. Blocks may be empty.
    precision : pair of float
        The relative precisions of the rows and of the labels.
    n_rows : int, optional
        If it is known; otherwise rows are counted when they are read first.
    """

    def __init__(
        self,
        blocks: Callable[[], Iterable[Block]],
        *,
        precision: tuple[float, float] = (_DOUBLE, _DOUBLE),
        n_rows: int | None = None,
    ) -> None:
        self._read, self._n_rows = blocks, n_rows
        self._precision = precision
        first = next((block for block in blocks() if len(block)), None)
        if first is None:
            raise ValueError("there is no row")
        self._n_columns = int(first.rows.shape[1]) + first.intercept
        self._n_outputs = int(first.y.shape[1])
        self._has_weights = first.weights is not None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        if self._n_rows is None:
            for _ in self._blocks(()):
                pass
        assert self._n_rows is not None
        return self._n_rows

    @property
    def n_columns(self) -> int:
        """Number of columns, the constant one included."""
        return self._n_columns

    @property
    def n_outputs(self) -> int:
        """Number of label columns."""
        return self._n_outputs

    @property
    def precision(self) -> tuple[float, float]:
        """The relative precisions of the rows and of the labels."""
        return self._precision

    @property
    def weights(self) -> Values | None:
        """The weights of the rows, if they have any."""
        return self.map(_weights) if self._has_weights else None

    def sample(self, size: int, rng: np.random.Generator, weights: Values | None = None) -> Sample:
        """Return about `size` random rows of positive weight in their order, all of them if there are not more."""
        kept = Kept(Draw.of(size, rng))
        for start, (block, *values) in self._numbered(() if weights is None else (weights,)):
            kept.add(start, block, values[0] if values else None)
        return self._checked(kept.sample())

    def take(self, index: NDArray[np.intp]) -> Sample:
        """Return the rows of these numbers, in this order."""
        wanted, places = np.unique(index, return_inverse=True)
        parts = []
        for start, (block,) in self._numbered(()):
            low, high = np.searchsorted(wanted, (start, start + len(block)))
            if low < high:
                parts.append(_Piece.of(block, wanted[low:high] - start, wanted[low:high]))
        found = _joined(parts)
        if len(found.index) < len(wanted):
            raise IndexError(f"row {wanted[len(found.index)]} is not there: there are {self.n_rows}")
        return self._checked(found.take(places))

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(block, *aligned)`` over all blocks."""
        return _total(kernel(*block) for block in self._blocks(aligned))

    def map(self, kernel: Kernel, *aligned: Values) -> Values:
        """Return ``kernel(block, *aligned)`` of all blocks, one value or one row of values for each row."""
        return collected(kernel(*block) for block in self._blocks(aligned))

    def fault(self) -> str:
        """Say where the first NaN or infinity of the rows is."""
        for start, (block,) in self._numbered(()):
            message = first_fault(block.dense(), "X", start)
            if message:
                return message
        return "X times the coefficients is not finite: the numbers are too large"

    def _checked(self, sample: Sample) -> Sample:
        if not np.isfinite(sample.X).all():
            raise ValueError(self.fault())
        return sample

    def _blocks(self, aligned: Sequence[Values]) -> Iterator[tuple[Any, ...]]:
        for _, block in self._numbered(aligned):
            yield block

    def _numbered(self, aligned: Sequence[Values]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the blocks that are not empty, with the values of their rows, and the number of their first row."""
        arrays = [values.to_numpy() for values in aligned]
        start = 0
        for block in self._read():
            if len(block):
                stop = start + len(block)
                yield start, (block, *(array[start:stop] for array in arrays))
                start = stop
        if self._n_rows is None:
            self._n_rows = start
        elif self._n_rows != start:
            raise ValueError(f"the table changed while it was read: it had {self._n_rows:,} rows, and now {start:,}")


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of a block that are kept."""

    X: Any
    y: Any
    weights: Any
    index: NDArray[np.intp]

    @classmethod
    def of(cls, block: Block, chosen: NDArray[Any], index: NDArray[np.intp]) -> _Piece:
        some = block.take(chosen)
        return cls(some.dense(), np.array(some.y), None if some.weights is None else np.array(some.weights), index)


class Kept:
    """The rows of a draw so far, of blocks that come by in any order.

    Parameters
    ----------
    draw : Draw
    """

    def __init__(self, draw: Draw) -> None:
        self._reservoir = Reservoir(draw)
        self._pieces: list[_Piece] = []

    def add(self, start: int, block: Block, weights: NDArray[Any] | None = None) -> None:
        """Look at the rows of a block whose first one has the number `start`."""
        if weights is None and block.weights is not None:
            weights = (block.weights > 0).astype(np.float64)
        chosen = self._reservoir.offer(start, len(block), weights)
        if len(chosen):
            self._pieces.append(_Piece.of(block, chosen, start + chosen))
        if self._reservoir.is_crowded:
            self._prune()

    def sample(self) -> Sample:
        """Return the rows of the draw, in their order."""
        self._prune()
        found = _joined(self._pieces)
        return found.take(np.argsort(found.index, kind="stable"))

    def _prune(self) -> None:
        stay = self._reservoir.prune()
        some = _joined(self._pieces).take(stay)
        self._pieces = [_Piece(some.X, some.y, some.weights, some.index)]


def _joined(pieces: Sequence[_Piece]) -> Sample:
    if not pieces:
        raise ValueError("no row has a positive weight")
    weights = None if pieces[0].weights is None else np.concatenate([piece.weights for piece in pieces])
    return Sample(
        np.concatenate([piece.X for piece in pieces]),
        np.concatenate([piece.y for piece in pieces]),
        weights,
        np.concatenate([piece.index for piece in pieces]).astype(np.intp),
    )


def collected(parts: Iterable[NDArray[Any]]) -> ArrayValues:
    """Return values that come in parts as one array: in memory or, if they are many, in a file that has no name."""
    with contextlib.ExitStack() as stack:
        return ArrayValues(_collected(parts, lambda: stack.enter_context(tempfile.TemporaryFile())))


def _collected(parts: Iterable[NDArray[Any]], new_file: Callable[[], IO[bytes]]) -> NDArray[Any]:
    held: list[NDArray[Any]] = []
    file, size = None, 0
    for part in parts:
        held.append(np.ascontiguousarray(part))
        size += held[-1].nbytes
        if size > MOST_BYTES:
            file = file or new_file()
            for array in held:
                file.write(array.tobytes())
            like, held, size = held[-1], [], 0
    if file is None:
        return np.concatenate(held)
    for array in held:
        file.write(array.tobytes())
    file.flush()
    values = np.memmap(file, dtype=like.dtype, mode="r")  # has a handle of its own
    return values.reshape(-1, *like.shape[1:])


def _total(parts: Iterator[Sum]) -> Sum:
    total = next(parts)
    for part in parts:
        total = total + part
    return total


def _weights(block: Block) -> NDArray[Any]:
    return np.asarray(block.weights)
