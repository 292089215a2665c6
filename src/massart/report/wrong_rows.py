"""The rows that do not follow the formula, the largest residuals first, as many as a page can carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.report.columns import Column, Numbers, Texts, amounts, clean, read
from massart.report.findings import JudgedRows
from massart.rows import FloatArray

MOST_ROWS = 100_000
MOST_CHARACTERS = 4_500_000
"""Of the packed rows in the page."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """The wrong rows of a table, the largest residuals first.

    Attributes
    ----------
    index : (m,) array
        Which rows they are.
    values : (m,) array
        Given minus implied.
    """

    index: NDArray[np.intp]
    values: FloatArray

    def first(self, number: int) -> Residuals:
        """Return so many of them."""
        return Residuals(self.index[:number], self.values[:number])


@dataclass(frozen=True, slots=True)
class WrongTable:
    """The wrong rows that the page carries.

    Attributes
    ----------
    n_rows, n_wrong : int
        Rows carried, and wrong rows in all.
    columns : tuple of Column
        Which row it is, what was given, what the formula gives, the difference, the kind if known, and the other cells.
    left_out : tuple of str
        Names of columns for which there was no room.
    packed : dict
        All of it for the script.
    """

    n_rows: int
    n_wrong: int
    columns: tuple[Column, ...]
    left_out: tuple[str, ...]
    packed: dict[str, Any]


def wrong_residuals(rows: JudgedRows) -> Residuals:
    """Return the wrong rows by the size of their residual; of equal ones, the first comes first."""
    index = np.flatnonzero(rows.wrong)
    with np.errstate(over="ignore", invalid="ignore"):
        values = rows.given[index] - rows.implied[index]
    size = np.where(np.isnan(values), np.inf, np.abs(values))
    order = np.argsort(-size, kind="stable")
    return Residuals(index[order], values[order])


def columns_of(rows: JudgedRows, chosen: Residuals) -> tuple[Column, ...]:
    """Read some wrong rows: which one it is, given, implied, residual, and the other cells."""
    cells = rows.cells(chosen.index)
    name, identity = next(iter(cells.items()), ("row", chosen.index.tolist()))
    return (
        read(name, identity, exact=True),
        amounts("given", rows.given[chosen.index]),
        amounts("implied", rows.implied[chosen.index]),
        amounts("off by", chosen.values),
        *_kind(rows, chosen.index),
        *(read(other, entries) for other, entries in list(cells.items())[1:]),
    )


def _kind(rows: JudgedRows, index: NDArray[np.intp]) -> list[Texts]:
    if rows.kinds is None:
        return []
    used, codes = np.unique(rows.kinds.codes[index], return_inverse=True)
    words = tuple(clean(rows.kinds.words[code]) for code in used)
    return [Texts("kind", words, codes.astype(np.uint32))]


def wrong_table(
    rows: JudgedRows, wrong: Residuals, most_rows: int = MOST_ROWS, most_characters: int = MOST_CHARACTERS
) -> WrongTable:
    """Choose what the page carries: other cells give way first, then the rows with the smallest residuals."""
    chosen = wrong.first(most_rows)
    identity, given, implied, residual, *others = columns_of(rows, chosen)
    needed = [column.packed() for column in (identity, given, implied)]
    size = sum(len(column["data"]) for column in needed)
    if size > most_characters:
        fewer = int(0.95 * len(chosen.index) * most_characters / size)
        return wrong_table(rows, wrong, fewer, most_characters)
    carried, packed, left_out = [], [], []
    for column in others:
        data = column.packed()
        if size + len(data["data"]) > most_characters:
            left_out.append(column.name)
            continue
        size += len(data["data"])
        carried.append(column)
        packed.append(data)
    assert isinstance(residual, Numbers)
    return WrongTable(
        n_rows=len(chosen.index),
        n_wrong=rows.n_wrong,
        columns=(identity, given, implied, residual, *carried),
        left_out=tuple(left_out),
        packed={"n": len(chosen.index), "places": residual.places, "columns": needed + packed},
    )
