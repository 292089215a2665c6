"""What all rows of a file say, where only some of them are at hand: sums over blocks."""

from __future__ import annotations

from dataclasses import dataclass

from massart.audit.kinds import Kinds
from massart.rows import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A file of which only some rows are at hand.

    Attributes
    ----------
    n_rows : int
        Rows of the file.
    drawn : (m,) boolean array
        Those at hand that were drawn at random; the others are rare by their columns, or the worst.
    tally : (32,) array
        The judged rows by their marks.
    usage : tuple of pairs of int
        For each coefficient the rows that use it, and those of them that agree; empty where these were not counted.
    kinds : Kinds
        What happened in each row at hand that was judged, and in how many of all.
    groups : dict of str to pair of int
        For each value of the group column its rows, and those that are wrong.
    places : int or None
        To which implied values are rounded.
    """

    n_rows: int
    drawn: BoolArray
    tally: FloatArray
    usage: tuple[tuple[int, int], ...]
    kinds: Kinds
    groups: dict[str, tuple[int, int]]
    places: int | None
