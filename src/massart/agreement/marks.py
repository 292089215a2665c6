"""Marks: what one read of the table says about each row next to a formula, as bits of a small integer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.agreement.agreement import Agreement, Level, Verified, compare
from massart.link import Link
from massart.rows import Block, BoolArray, FloatArray

Marks: TypeAlias = NDArray[np.uint8]

AGREES, ACTIVE, DECISIVE, IMPOSSIBLE, LAST_PLACE, KINDS = 1, 2, 4, 8, 16, 32
"""What a row is marked with, and the number of combinations: it agrees; its product is between the limits of the link;
its label tells the product; no formula gives its label; it is off by one unit of the last place."""

_LARGEST_COUNT = 1.0  # off by one is no rounding where labels are exact counts


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks of the rows of a block for one formula of one label column: a kernel for :meth:`massart.rows.Rows.map`."""

    coef: FloatArray
    agreement: Agreement
    link: Link
    column: int = 0

    def __call__(self, block: Block) -> Marks:
        """Return the marks of the rows of a block."""
        W = self.coef[:, None]
        products, terms = block.times(W)[:, 0], block.sizes(W)[:, 0]
        if not np.isfinite(terms).all():
            raise FloatingPointError("a product is not finite")
        y = block.y[:, self.column]
        return self.of(compare(products, terms, y, block.dense, self.coef, self.agreement, self.link), y)

    def of(self, rows: Verified, y: FloatArray) -> Marks:
        """Return the marks of rows that were compared with the formula."""
        slack = rows.half_widths
        marks = rows.agree * np.uint8(AGREES)
        marks |= self.link.decisive(rows.products) * np.uint8(ACTIVE)
        marks |= self.link.decisive(y, slack) * np.uint8(DECISIVE)
        marks |= self.link.impossible(y, slack) * np.uint8(IMPOSSIBLE)
        marks |= self._last_place(rows) * np.uint8(LAST_PLACE)
        return np.asarray(marks)

    def _last_place(self, rows: Verified) -> BoolArray:
        unit, level = self.agreement.unit, self.agreement.level
        if unit is None or not (level in (Level.LABEL, Level.INPUTS) or (level is Level.EXACT and unit < _LARGEST_COUNT)):
            return np.zeros(len(rows.agree), dtype=bool)
        return np.asarray(~rows.agree & (np.abs(rows.residuals) <= unit + rows.half_widths))


def tally(marks: Marks, weights: FloatArray | None) -> FloatArray:
    """Return the weight of the rows with each combination of marks."""
    return np.bincount(marks, weights, KINDS).astype(np.float64)


def speaks(marks: NDArray[np.integer]) -> BoolArray:
    """Return the rows that speak for w or against it: active ones, but for possible limits that agree anyway."""
    neutral = (marks & AGREES > 0) & (marks & DECISIVE == 0)
    return np.asarray((marks & ACTIVE > 0) & (marks & IMPOSSIBLE == 0) & ~neutral)
