"""The columns of a table as terms see them: numbers, and texts with few levels; no files, no frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """A column with few different values: the places of those of its rows in `names`, the most frequent one first."""

    codes: NDArray[np.int32]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The rows of a table, in the order of the file, without those that lack a value."""

    numbers: Mapping[str, FloatArray]  # columns of numbers; yes and no as 1 and 0; dates as days since 1970-01-01
    levels: Mapping[str, Levels] = field(default_factory=dict)  # columns of text
    dates: frozenset[str] = frozenset()  # those of `numbers` that are dates
    ordered: bool = True  # whether these are all rows of a table, so that terms may look at the row before

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        for values in self.numbers.values():
            return len(values)
        return next((len(levels.codes) for levels in self.levels.values()), 0)

    def take(self, rows: NDArray[np.intp] | BoolArray | slice) -> Columns:
        """Return some of the rows."""
        return Columns(
            {name: values[rows] for name, values in self.numbers.items()},
            {name: Levels(levels.codes[rows], levels.names) for name, levels in self.levels.items()},
            self.dates,
            self.ordered,
        )
