"""Tables of rows behind a few verbs, so that nothing above assumes where they lie, nor that they fit into memory.

``sample`` and ``take`` bring a few rows into memory; ``reduce(kernel, *aligned)`` adds a small result over blocks of
rows; ``map(kernel, *aligned)`` makes values a row, which stay where the rows are and can be given to the next kernel as
`aligned`. A kernel is a small frozen dataclass that is called with a :class:`Block` and the values of its rows: it can
be pickled, knows nothing of the table, and does not depend on how that is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from massart.rows.block import Sample
from massart.rows.namespace import namespace_of

Kernel: TypeAlias = Callable[..., Any]
"""Called with a block, and the values of its rows for each of `aligned`."""


class Addable(Protocol):
    """What can be summed over blocks: numbers, arrays, or a class with ``+``."""

    def __add__(self, other: Any, /) -> Any: ...


Sum = TypeVar("Sum", bound=Addable)


@dataclass(frozen=True, slots=True)
class Total:
    """A sum over pieces; None over none."""

    total: Any

    def __add__(self, other: Total) -> Total:
        if self.total is None or other.total is None:
            return other if self.total is None else self
        return Total(self.total + other.total)


@dataclass(frozen=True, slots=True)
class Largest:
    """Numbers of which the larger ones are the sum."""

    values: NDArray[Any]

    def __add__(self, other: Largest) -> Largest:
        return Largest(np.maximum(self.values, other.values))


class Values(Protocol):
    """A value, or a row of values, for each row of a table; it lies where the rows are."""

    def __len__(self) -> int: ...

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(values, *aligned)`` over all blocks."""

    def map(self, kernel: Kernel, *aligned: Values) -> Values:
        """Return ``kernel(values, *aligned)`` of all blocks."""

    def take(self, index: NDArray[np.intp]) -> NDArray[Any]:
        """Return the values of rows of these numbers, in memory."""

    def native(self) -> Any:
        """Return all values as an array of the kind that the rows came in, and where they are."""

    def to_numpy(self) -> NDArray[Any]:
        """Return all values in memory, in the order of the rows."""


class Rows(Protocol):
    """A table of rows with labels."""

    @property
    def n_rows(self) -> int:
        """Number of rows; a table that does not know it counts when it is read first."""

    @property
    def n_columns(self) -> int:
        """Number of columns, the constant one included."""

    @property
    def n_outputs(self) -> int:
        """Number of label columns."""

    @property
    def weights(self) -> Values | None:
        """The weights of the rows, if they have any."""

    @property
    def precision(self) -> tuple[float, float]:
        """The relative precisions of the rows and of the labels."""

    def sample(self, size: int, rng: np.random.Generator, weights: Values | None = None) -> Sample:
        """Return about `size` random rows of positive weight in their order, all of them if there are not more.

        With `weights` a row is drawn with a probability in proportion to its own; see :mod:`massart.rows.sampling`.
        """

    def take(self, index: NDArray[np.intp]) -> Sample:
        """Return the rows of these numbers, in this order."""

    def reduce(self, kernel: Callable[..., Sum], *aligned: Values) -> Sum:
        """Return the sum of ``kernel(block, *aligned)`` over all blocks."""

    def map(self, kernel: Kernel, *aligned: Values) -> Values:
        """Return ``kernel(block, *aligned)`` of all blocks, one value or one row of values for each row."""

    def fault(self) -> str:
        """Say where the first NaN or infinity of the rows is."""


def total_of(weights: Values | None, n_rows: int) -> float:
    """Return the weight of all rows."""
    return float(n_rows) if weights is None else float(weights.reduce(_sum))


def _sum(values: Any) -> float:
    return float(namespace_of(values).sum(values))
