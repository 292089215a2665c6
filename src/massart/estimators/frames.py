"""Data frames that come to an estimator: names of labels, labels of rows, and frames of the same kind to give back.

Rows of arrays are known by their index, from 0, as ``X[index]`` takes it, and those of pandas by the labels of its
index. (Numbers of rows in files and audits, called *row*, count from 1.)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.rows import FloatArray

TARGET = "y"
"""What labels without a name are called."""

INDEX = "index"
"""What the index of rows without a name is called."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the rows and labels of a fit came as."""

    library: str | None = None  # "pandas" or "polars"; None for arrays
    index: Any = None  # pandas.Index, or None: the labels of the rows

    @property
    def index_name(self) -> str:
        """What the labels of the rows are called."""
        name = getattr(self.index, "name", None)
        return INDEX if name is None else str(name)

    def labels(self, rows: NDArray[np.intp]) -> list[object]:
        """Return the labels of some rows: numbers, or text."""
        found = rows.tolist() if self.index is None else self.index[rows].tolist()
        return [label if isinstance(label, int | float | str) else str(label) for label in found]

    def of(self, rows: NDArray[np.intp]) -> Origin:
        """Return the same for some of the rows."""
        return Origin(self.library, None if self.index is None else self.index[rows])


@dataclass(frozen=True, slots=True)
class WrongRows:
    """Rows that are called wrong, with what they give and what the formula implies, to the decimals of labels."""

    rows: NDArray[np.intp]
    given: FloatArray
    implied: FloatArray
    origin: Origin
    places: int | None

    def table(self) -> Any:
        """Return the worst first: a frame of the library they came from, or a structured array with their index."""
        implied = self.implied if self.places is None else np.round(self.implied, self.places)
        residual = self.given - implied
        order = np.argsort(-np.abs(residual), kind="stable")
        columns: dict[str, NDArray[Any]] = {
            "given": self.given[order],
            "implied": implied[order],
            "residual": residual[order],
        }
        if self.origin.index is not None:
            return sys.modules["pandas"].DataFrame(columns, index=self.origin.index[order])
        columns = {INDEX: self.rows[order], **columns}
        if self.origin.library == "polars":
            return sys.modules["polars"].DataFrame(columns)
        array = np.empty(len(order), dtype=[(name, values.dtype) for name, values in columns.items()])
        for name, values in columns.items():
            array[name] = values
        return array


def origin_of(X: Any, y: Any = None) -> Origin:
    """Return what rows and labels came as: the rows decide, unless only the labels are of a frame."""
    for data in (X, y):
        for library in ("pandas", "polars"):
            module = sys.modules.get(library)  # which it is if there is a frame of it
            if module is not None and isinstance(data, module.DataFrame | module.Series):
                return Origin(library, data.index if library == "pandas" else None)
    return Origin()


def target_names(y: Any, m: int) -> list[str]:
    """Return the names of the m label columns."""
    if getattr(y, "columns", None) is not None:
        return [str(column) for column in y.columns]
    name = y.name if hasattr(y, "to_frame") else None  # of a series; arrays of Dask have names of another kind
    return [name if isinstance(name, str) and name else TARGET] * m
