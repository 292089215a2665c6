"""Marks: what one read of the table says about each row next to a formula, as bits of a small integer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.rows.agreement import Agreement, Level, Verified, compare, doubt_of
from massart.rows.arrays import BoolArray, FloatArray, row_blocks
from massart.rows.block import Block
from massart.rows.columnwise import CHUNK, Columnwise
from massart.rows.link import IDENTITY, Link
from massart.rows.namespace import like, namespace_of, to_numpy
from massart.rows.rows import Values

Marks: TypeAlias = NDArray[np.uint8]

AGREES, ACTIVE, DECISIVE, IMPOSSIBLE, LAST_PLACE, KINDS = 1, 2, 4, 8, 16, 32
"""What a row is marked with, and the number of combinations: it agrees; its product is between the limits of the link;
its label tells the product; no formula gives its label; it is off by one unit of the last place."""

_PIECE_BYTES = 1 << 21  # of a block: stays in the cache between its product and its norm
_LARGEST_COUNT = 1.0  # off by one is no rounding where labels are exact counts


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks of the rows of a block for one formula of one label column: a kernel for :meth:`massart.rows.Rows.map`."""

    coef: FloatArray
    agreement: Agreement
    link: Link
    column: int = 0
    block_bytes: ClassVar[int] = 1 << 24
    """A block is cut into pieces here, so that rows in doubt of many pieces are looked at together."""

    def __call__(self, block: Block) -> Marks:
        """Return the marks of the rows of a block."""
        if self.link == IDENTITY and isinstance(block.rows, np.ndarray):
            return self._of_array(block)
        return self.of(self.compared(block), block.y[:, self.column])

    @np.errstate(over="ignore", invalid="ignore")
    def _of_array(self, block: Block) -> Marks:
        """Return the marks of rows in one array, for a link that is the identity.

        Bounds that need one product and one norm of a piece of the block decide nearly all rows; what is left is put
        together and compared with the definition once.
        """
        y = block.y[:, self.column]
        norm = float(np.sqrt(self.coef @ self.coef))
        marks: Marks = np.full(len(y), AGREES | ACTIVE | DECISIVE, dtype=np.uint8)
        unclear = []
        for piece in row_blocks(len(block), len(self.coef), _PIECE_BYTES):
            part = Block(block.rows[piece], None, None, block.intercept)
            products, labels = part.times(self.coef[:, None])[:, 0], np.abs(y[piece])
            # By Cauchy and Schwarz the terms of a row are at most this much in sum.
            numbers = part.rows.ravel(order="K")
            most = norm * np.sqrt(float(np.vdot(numbers, numbers)) + len(part)) + float(labels.max(initial=0.0))
            if not np.isfinite(most):
                return self.of(self.compared(block), y)
            magnitude = np.abs(y[piece] - products)
            sizes = np.abs(products, out=products)
            sizes += labels
            # What is allowed less what a product may be off is the least at one of the ends of the sizes.
            ends = np.array([most])
            doubt, allowed = doubt_of(self.coef), float(self.agreement.half_widths(ends, self.coef)[0])
            inside = self.agreement.half_widths(sizes, self.coef)
            inside -= doubt * sizes
            np.minimum(inside, allowed - doubt * most, out=inside)
            off = magnitude > inside
            if off.any():
                places = np.flatnonzero(off)
                near = magnitude[places] <= (allowed + doubt * most + (self.unit or 0.0)) * (1 + 1e-9)
                marks[piece.start + places] = ACTIVE | DECISIVE
                unclear.append(piece.start + places[near])
        if unclear and (rows := np.concatenate(unclear)).size:
            close = Block(block.rows[rows], block.y[rows, self.column, None], None, block.intercept)
            marks[rows] = replace(self, column=0).of(replace(self, column=0).compared(close), close.y[:, 0])
        return marks

    @np.errstate(over="ignore", invalid="ignore")
    def of_columns(self, X: Columnwise, y: FloatArray, *, intercept: bool) -> Marks:
        """Return the marks of rows whose columns lie apart, for a link that is the identity.

        A bound for many rows at a time is enough for nearly all that agree; the others are looked at by themselves.
        """
        constant = float(self.coef[-1]) if intercept else 0.0
        magnitude, sizes = X.products(self.coef[:-1] if intercept else self.coef)
        if not np.isfinite(sizes.sum() + y.sum()):
            raise FloatingPointError("a product or a label is not finite")
        magnitude += constant
        np.subtract(y, magnitude, out=magnitude)
        np.abs(magnitude, out=magnitude)
        starts = np.arange(0, len(y), CHUNK)
        low, high = (extreme.reduceat(y, starts) for extreme in (np.minimum, np.maximum))
        ends = np.stack([np.maximum(0.0, np.maximum(low, -high)), np.maximum(high, -low) + sizes + abs(constant)])
        # As below: what is allowed, less what a product may be off, is the least at an end of the sizes.
        inside = (self.agreement.half_widths(ends, self.coef) - doubt_of(self.coef) * ends).min(axis=0)
        marks: Marks = np.full(len(y), AGREES | ACTIVE | DECISIVE, dtype=np.uint8)
        if (off := np.flatnonzero(~(magnitude <= np.repeat(inside, CHUNK)[: len(y)]))).size:
            marks[off] = self(Block(X[off], y[off, None], None, intercept))
        return marks

    @np.errstate(over="ignore", invalid="ignore")  # a half-width beyond all floats leaves room for every label
    def compared(self, block: Block) -> Verified:
        """Compare the rows of a block with the formula.

        The size of a row is at least ``|y| + |w.x|``, and at most what the largest number of the block allows: that
        decides nearly all rows. For those with something that t decides, the definition does.
        """
        slope = max(1.0, self.link.slope)
        most = float(np.abs(self.coef).sum()) * block.largest() if len(block) else 0.0
        if not np.isfinite(slope * most):
            raise FloatingPointError("a product is not finite")
        products = block.times(self.coef[:, None])[:, 0]
        y = block.y[:, self.column]
        xp = namespace_of(y)
        residuals = y - self.link(products)
        magnitude, sizes = abs(residuals), abs(y)
        least, upper = sizes + abs(products), sizes + most
        doubt = slope * doubt_of(self.coef)
        widths, outside = (slope * self.agreement.half_widths(size, self.coef) for size in (least, upper))
        # Between the two sizes, t less what a product may be off is the least at one of them, whatever the grid is.
        off = doubt * upper
        inside = xp.minimum(widths - doubt * least, outside - off)
        outside += off
        agree = magnitude <= inside
        unclear = ~agree & (magnitude <= outside)
        for gap in self._gaps(magnitude, y):
            near = gap <= outside
            near &= gap > inside
            unclear |= near
        rows = Verified(products, residuals, widths, agree)
        if xp.any(unclear):
            close = block.dense(unclear)
            terms = abs(close) @ like(np.abs(self.coef), close)
            told = compare(
                products[unclear], terms, y[unclear], close.__getitem__, self.coef, self.agreement, self.link
            )
            residuals[unclear], widths[unclear], agree[unclear] = told.residuals, told.half_widths, told.agree
        return rows

    def of(self, rows: Verified, y: FloatArray) -> Marks:
        """Return the marks of rows that were compared with the formula."""
        slack = rows.half_widths
        marks: Marks = _bit(rows.agree, AGREES)
        if self.link.invertible:
            marks |= ACTIVE | DECISIVE
        else:
            marks |= _bit(self.link.decisive(rows.products), ACTIVE)
            marks |= _bit(self.link.decisive(y, slack), DECISIVE)
            marks |= _bit(self.link.impossible(y, slack), IMPOSSIBLE)
        if self.unit is not None:
            marks |= _bit(~rows.agree & (abs(rows.residuals) <= self.unit + slack), LAST_PLACE)
        return marks

    def _gaps(self, magnitude: FloatArray, y: FloatArray) -> Iterator[FloatArray]:
        """Yield what else is compared with t."""
        if self.unit is not None:
            yield magnitude - self.unit
        if not self.link.invertible:
            for limit in (self.link.lower, self.link.upper):
                if np.isfinite(limit):
                    yield abs(y - limit)

    @property
    def unit(self) -> float | None:
        """The unit that a row may be off by, if being so means anything."""
        level, unit = self.agreement.level, self.agreement.unit
        counted = level is Level.EXACT and unit is not None and unit < _LARGEST_COUNT
        return unit if counted or level in (Level.LABEL, Level.INPUTS) else None


def _bit(rows: BoolArray, mark: int) -> Any:
    xp = namespace_of(rows)
    return xp.astype(rows, xp.uint8) * mark


@dataclass(frozen=True, slots=True)
class Has:
    """Which rows have a mark: a kernel for :meth:`massart.rows.Values.map`."""

    mark: int

    def __call__(self, marks: Marks) -> BoolArray:
        """Return the rows that have it."""
        return marks & self.mark > 0


def tally(marks: Values, weights: Values | None) -> FloatArray:
    """Return the weight of the rows with each combination of marks."""
    return marks.reduce(tally_of) if weights is None else marks.reduce(tally_of, weights)


def tally_of(marks: Any, weights: Any = None) -> FloatArray:
    """Return the same for marks in one array, in memory."""
    if isinstance(marks, np.ndarray):
        return np.bincount(marks, weights, KINDS).astype(np.float64)
    xp = namespace_of(marks)
    if hasattr(xp, "bincount"):  # no part of the standard, but faster
        return to_numpy(xp.bincount(marks, weights, minlength=KINDS)).astype(np.float64)
    counts = to_numpy(xp.stack([xp.count_nonzero(marks == kind) for kind in range(KINDS)])).astype(np.float64)
    if weights is not None:
        for kind in np.flatnonzero(counts):
            counts[kind] = float(xp.sum(weights[marks == int(kind)]))
    return counts


def speaks(marks: NDArray[np.integer]) -> BoolArray:
    """Return the rows that speak for w or against it: active ones, but for possible limits that agree anyway."""
    neutral = (marks & AGREES > 0) & (marks & DECISIVE == 0)
    return np.asarray((marks & ACTIVE > 0) & (marks & IMPOSSIBLE == 0) & ~neutral)
