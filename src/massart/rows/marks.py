"""Marks: what one read of the table says about each row next to a formula, as bits of a small integer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.rows.agreement import Agreement, Level, Verified, compare, doubt_of
from massart.rows.arrays import BoolArray, FloatArray, like, namespace_of, to_numpy
from massart.rows.link import Link
from massart.rows.rows import Block, Values

Marks: TypeAlias = NDArray[np.uint8]

AGREES, ACTIVE, DECISIVE, IMPOSSIBLE, LAST_PLACE, KINDS = 1, 2, 4, 8, 16, 32
"""What a row is marked with, and the number of combinations: it agrees; its product is between the limits of the link;
its label tells the product; no formula gives its label; it is off by one unit of the last place."""

_LARGEST_COUNT = 1.0  # off by one is not rounding where labels are exact counts


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks of the rows of a block for one formula of one label column: a kernel for :meth:`massart.rows.Rows.map`."""

    coef: FloatArray
    agreement: Agreement
    link: Link
    column: int = 0

    def __call__(self, block: Block) -> Marks:
        """Return the marks of the rows of a block."""
        return self.of(self.compared(block), block.y[:, self.column])

    @np.errstate(over="ignore", invalid="ignore")  # a half-width beyond all floats leaves room for every label
    def compared(self, block: Block) -> Verified:
        """Compare the rows of a block with the formula.

        The size of a row is at least ``|y| + |w.x|``, and at most what a bound of the numbers of the block allows: that
        decides nearly all rows. For those with something that t decides, the definition does.
        """
        slope = max(1.0, self.link.slope)
        most = float(np.abs(self.coef).sum()) * block.bound() if len(block) else 0.0
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
            closer = compare(
                products[unclear], terms, y[unclear], close.__getitem__, self.coef, self.agreement, self.link
            )
            residuals[unclear], widths[unclear], agree[unclear] = closer.residuals, closer.half_widths, closer.agree
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
