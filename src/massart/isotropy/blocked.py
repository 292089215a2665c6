"""The rows of a table that need not be in memory, in coordinates: the solvers read them in blocks, and add.

:class:`TableRows` are all rows of a table; :class:`TablePoints` are those in a subspace V, in coordinates ``X @ V``
that are made anew in each read. Nothing comes back but d x d sums and, where subspaces are looked for, a number a row:
the same numbers however the table is cut, but for the rounding of sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.isotropy.moments import PointKernel, Points
from massart.rows import (
    BLOCK_BYTES,
    ArrayValues,
    Block,
    BoolArray,
    FloatArray,
    Rows,
    Total,
    is_elsewhere,
    like,
    namespace_of,
    row_blocks,
)
from massart.rows.scaling import exponents

SAFE_EXPONENT = 400
"""Squares of numbers up to two to this power, summed over any number of columns, stay finite in float64."""

FEW = 500
"""So many rows are taken into memory."""

DEVICE_BYTES = 1 << 30
"""Size of a piece of a block on a device: large enough for matrix products, small beside its memory."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """All rows of a table.

    Attributes
    ----------
    rows : Rows
    members : (n,) boolean array
        Rows that are not zero and have a positive weight.
    rescaled : bool
        Whether rows are brought to a common size, since squares would overflow or vanish.
    """

    rows: Rows
    members: BoolArray
    rescaled: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.rows.n_rows, self.rows.n_columns

    @classmethod
    def of(cls, rows: Rows) -> TableRows:
        """Look at all rows once; their numbers must be finite.

        Raises
        ------
        ValueError
            Naming the first one that is not.
        """
        seen = rows.reduce(_Survey())
        if not np.isfinite(seen.largest):
            raise ValueError(rows.fault())
        members = np.ones(rows.n_rows, dtype=bool)
        if seen.n_members < rows.n_rows:
            members = rows.map(_Member()).to_numpy()
        rescaled = max(abs(np.frexp((seen.largest, seen.least))[1])) > SAFE_EXPONENT
        return cls(rows, members, bool(rescaled))

    def within(self, V: FloatArray | None, members: BoolArray) -> FloatArray | Points:
        """Return the members in the coordinates of V: None for those that the rows have, (d,) for factors of these."""
        count = int(np.count_nonzero(members))
        points = TablePoints(self, V, None if count == len(members) else members, count)
        if count > FEW or not count:
            return points
        few = self.rows.take(np.flatnonzero(members))
        return points.coordinates(Block(few.X, few.y, few.weights, intercept=False))[0]


@dataclass(frozen=True, slots=True)
class TablePoints:
    """Rows of a table in the coordinates of a subspace: see :class:`massart.isotropy.moments.Points`.

    Attributes
    ----------
    table : TableRows
    V : (d, k) or (d,) array or None
    members : (n,) boolean array or None
        The rows; None for all.
    count : int
        How many they are.
    """

    table: TableRows
    V: FloatArray | None
    members: BoolArray | None
    count: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and dimension."""
        return self.count, self.table.rows.n_columns if self.V is None else self.V.shape[-1]

    def __len__(self) -> int:
        return self.count

    def reduce(self, kernel: PointKernel, rows: BoolArray | None = None) -> Any:
        """Return the sum of ``kernel(X, weights)`` over pieces of the rows, or of those in a mask."""
        chosen = self.members
        if rows is not None:
            chosen = self._spread(rows)
        aligned = () if chosen is None else (ArrayValues(chosen),)
        return self.table.rows.reduce(_Reduce(kernel, self.V, self.table.rescaled), *aligned).total

    def map(self, kernel: PointKernel) -> NDArray[Any]:
        """Return ``kernel(X, weights)`` of all rows, one value each."""
        values = self.table.rows.map(_Map(kernel, self.V, self.table.rescaled)).to_numpy()
        return values if self.members is None else values[self.members]

    def coordinates(self, block: Block) -> tuple[FloatArray, Any]:
        """Return the coordinates of a block, and the weights of its rows."""
        return _coordinates(block, self.V, self.table.rescaled)

    def _spread(self, rows: BoolArray) -> BoolArray:
        """Return a mask of the points as one of the table."""
        if self.members is None:
            return rows
        spread = self.members.copy()
        spread[spread] = rows
        return spread


@dataclass(frozen=True, slots=True)
class _Reduce:
    """A kernel of points as one of blocks that adds."""

    kernel: PointKernel
    V: FloatArray | None
    rescaled: bool

    def __call__(self, block: Block, chosen: Any = None) -> Total:
        total = Total(None)
        for piece in _pieces(block):
            some = _cut(block, piece)
            if chosen is not None:
                mask = chosen[piece]
                moved = is_elsewhere(some.rows) and not is_elsewhere(mask)
                some = some.take(like(mask, some.rows) if moved else mask)
            if len(some):
                total = total + Total(self.kernel(*_coordinates(some, self.V, self.rescaled)))
        return total


@dataclass(frozen=True, slots=True)
class _Map:
    """A kernel of points as one of blocks that gives a value a row."""

    kernel: PointKernel
    V: FloatArray | None
    rescaled: bool

    def __call__(self, block: Block) -> Any:
        parts = []
        with np.errstate(invalid="ignore", divide="ignore"):  # rows that are no members may be zero
            for piece in _pieces(block):
                some = _cut(block, piece)
                parts.append(self.kernel(*_coordinates(some, self.V, self.rescaled)))
        return parts[0] if len(parts) == 1 else namespace_of(parts[0]).concat(parts)


def _pieces(block: Block) -> Iterator[slice]:
    """Yield the pieces of a block: they fit the caches or, on a device, leave room there."""
    width = block.rows.shape[1] + block.intercept
    return row_blocks(len(block), width, DEVICE_BYTES if is_elsewhere(block.rows) else BLOCK_BYTES)


def _cut(block: Block, piece: slice) -> Block:
    if piece.stop - piece.start == len(block):
        return block
    weights = None if block.weights is None else block.weights[piece]
    if is_elsewhere(block.rows):  # the standard wants all axes named
        return Block(block.rows[piece, :], block.y[piece, :], weights, block.intercept)
    return Block(block.rows[piece], block.y[piece], weights, block.intercept)


def _coordinates(block: Block, V: FloatArray | None, rescaled: bool) -> tuple[Any, Any]:
    X = block.dense()
    if rescaled:
        X = _rescaled(X)
    if V is not None:
        X = X @ like(V, X)
    return X, block.weights


def _rescaled(X: Any) -> Any:
    """Return rows of a common size. Scaling a row changes nothing about radial isotropy."""
    if isinstance(X, np.ndarray):
        return np.ldexp(X, -exponents(X, axis=1)[:, None])
    xp = namespace_of(X)
    sizes = xp.max(xp.abs(X), axis=1, keepdims=True)
    return X / 2.0 ** xp.floor(xp.log2(xp.where(sizes > 0, sizes, xp.ones_like(sizes))))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a first look tells: how many rows count, and the largest and the least size of one that does."""

    n_members: int
    largest: float
    least: float

    def __add__(self, other: _Seen) -> _Seen:
        largest = float(np.maximum(self.largest, other.largest))  # a NaN stays
        return _Seen(self.n_members + other.n_members, largest, min(self.least, other.least))


@dataclass(frozen=True, slots=True)
class _Survey:
    """The kernel of a first look."""

    def __call__(self, block: Block) -> _Seen:
        seen = _Seen(0, 0.0, np.inf)
        for piece in _pieces(block):
            some = _cut(block, piece)
            sizes = _sizes(some)
            there = sizes > 0 if some.weights is None else (sizes > 0) & (some.weights > 0)
            xp = namespace_of(sizes)
            count = float(xp.sum(xp.where(there, xp.ones_like(sizes), xp.zeros_like(sizes))))
            least = float(xp.min(xp.where(there, sizes, xp.full_like(sizes, np.inf))))
            seen = seen + _Seen(int(count), float(xp.max(sizes)), least)
        return seen


@dataclass(frozen=True, slots=True)
class _Member:
    """The kernel that tells which rows are not zero and have a positive weight."""

    def __call__(self, block: Block) -> Any:
        there = _sizes(block) > 0
        return there if block.weights is None else there & (block.weights > 0)


def _sizes(block: Block) -> Any:
    """Return the largest magnitude of a number in each row."""
    X = block.dense()
    xp = namespace_of(X)
    return xp.max(xp.abs(X), axis=1)
