"""The rows that a page carries: wrong ones, the largest residuals first, and some that agree, in one store.

Pictures, table and what-if of the page show these rows and no others. Where not all wrong rows fit, some of those with
small residuals are drawn at random, so that a picture is not of the worst alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.report.columns import Column, Numbers, Texts, amounts, clean, read
from massart.report.findings import JudgedRows
from massart.rows import FloatArray

MOST_ROWS, FEWEST_ROWS = 50_000, 20_000
"""Wrong rows carried for the size of their residual; below this number, columns are dropped before rows."""

MOST_RIGHT, MOST_DRAWN = 2_000, 3_000
"""Rows that agree, and wrong ones that the picture shows."""

MOST_LARGEST = 500
"""Wrong rows that are drawn for the size of their residual; the others are a random sample."""

MOST_CHARACTERS = 4_200_000
"""Of the packed rows in the page."""

AGREES = "agrees"
"""What happened in a row that agrees."""

_SEED = 0


@dataclass(frozen=True, slots=True)
class Residuals:
    """The wrong rows of a table, the largest residuals first."""

    index: NDArray[np.intp]  # which rows they are
    values: FloatArray  # given minus implied

    def first(self, number: int) -> Residuals:
        """Return the first of them."""
        return Residuals(self.index[:number], self.values[:number])


@dataclass(frozen=True, slots=True)
class Carried:
    """The rows of a page."""

    index: NDArray[np.intp]  # wrong ones by the size of their residual, then ones that agree
    n_largest: int  # wrong rows carried for the size of their residual
    n_sampled: int  # others that were drawn at random
    n_right: int  # rows that agree
    n_drawn: int  # wrong rows in the picture
    n_wrong: int  # wrong rows of the table, carried or not
    columns: tuple[Column, ...]  # identity, given, implied, their difference, the kind if known, and other cells
    left_out: tuple[str, ...]  # columns for which there was no room
    packed: dict[str, Any]  # all of it for the script

    @property
    def n_off(self) -> int:
        """Wrong rows carried."""
        return self.n_largest + self.n_sampled


def wrong_residuals(rows: JudgedRows) -> Residuals:
    """Return the wrong rows by the size of their residual; of equal ones, the first comes first."""
    index = np.flatnonzero(rows.wrong)
    with np.errstate(over="ignore", invalid="ignore"):
        values = rows.given[index] - rows.implied[index]
    size = np.where(np.isnan(values), np.inf, np.abs(values))
    order = np.argsort(-size, kind="stable")
    return Residuals(index[order], values[order])


def columns_of(rows: JudgedRows, index: NDArray[np.intp]) -> tuple[Column, ...]:
    """Read some rows: which one it is, given, implied, residual, kind, and the other cells."""
    cells = rows.cells(index)
    name, identity = next(iter(cells.items()), ("row", index.tolist()))
    return (
        read(name, identity),
        *compared(rows, index),
        *_kind(rows, index),
        *(read(other, entries) for other, entries in list(cells.items())[1:]),
    )


def compared(rows: JudgedRows, index: NDArray[np.intp]) -> tuple[Numbers, Numbers, Numbers]:
    """Return given, implied and given minus implied of some rows, all with the same decimals where that is possible."""
    given, implied = rows.given[index], rows.implied[index]
    with np.errstate(over="ignore", invalid="ignore"):
        found = [amounts("given", given), amounts("implied", implied), amounts("off by", given - implied)]
    places = [column.places for column in found]
    if None not in places:
        found = [replace(column, places=max(p for p in places if p is not None)) for column in found]
    return found[0], found[1], found[2]


def _kind(rows: JudgedRows, index: NDArray[np.intp]) -> list[Texts]:
    if rows.kinds is None:
        return []
    used, codes = np.unique(rows.kinds.codes[index], return_inverse=True)
    words = tuple(clean(rows.kinds.words[code] or AGREES) for code in used)
    return [Texts("kind", words, codes.astype(np.uint32))]


def carry(
    rows: JudgedRows, wrong: Residuals, most_rows: int = MOST_ROWS, most_characters: int = MOST_CHARACTERS
) -> Carried:
    """Choose what the page carries: many rows give way first, then cells, and rows again where these do not suffice."""
    rng = np.random.default_rng(_SEED)
    right = sample(np.flatnonzero(rows.agree), MOST_RIGHT, rng)
    drawn = _drawn(rows, wrong, rng)
    n_largest = min(len(wrong.index), most_rows)
    places = np.union1d(np.arange(n_largest), drawn)  # in `wrong`: one less than the rank
    index = np.concatenate([wrong.index[places], right])
    identity, given, implied, residual, *others = columns_of(rows, index)
    needed = [column.packed() for column in (identity, given, implied)]
    size = sum(len(column["data"]) for column in needed)
    packed = [column.packed() for column in others]
    whole = size + sum(len(column["data"]) for column in packed)
    if whole > most_characters and n_largest > FEWEST_ROWS:
        fewer = max(FEWEST_ROWS, int(0.95 * n_largest * most_characters / whole))
        return carry(rows, wrong, fewer, most_characters)
    if size > most_characters and n_largest > 0:
        return carry(rows, wrong, int(0.95 * n_largest * most_characters / size), most_characters)
    kept, left_out = [], []
    for column, data in zip(others, packed, strict=True):
        if size + len(data["data"]) > most_characters:
            left_out.append(column.name)
            continue
        size += len(data["data"])
        kept.append((column, data))
    assert isinstance(residual, Numbers)
    return Carried(
        index,
        n_largest,
        n_sampled=len(places) - n_largest,
        n_right=len(right),
        n_drawn=len(drawn),
        n_wrong=rows.n_wrong,
        columns=(identity, given, implied, residual, *(column for column, _ in kept)),
        left_out=tuple(left_out),
        packed={
            "n": len(index),
            "wrong": len(places),
            "largest": n_largest,
            "ranks": (places[n_largest:] + 1).tolist(),
            "drawn": [] if len(drawn) == len(places) else np.searchsorted(places, drawn).tolist(),
            "places": residual.places,
            "columns": needed + [data for _, data in kept],
        },
    )


def _drawn(rows: JudgedRows, wrong: Residuals, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return places of wrong rows for the picture: the largest residuals and a random sample, the same in each run."""
    places = np.arange(len(wrong.index))
    if len(places) <= MOST_DRAWN:
        return places
    largest, others = places[:MOST_LARGEST], places[MOST_LARGEST:]
    if rows.rest is not None:
        others = others[rows.rest.drawn[wrong.index[others]]]
    return np.concatenate([largest, sample(others, MOST_DRAWN - MOST_LARGEST, rng)])


def sample(index: NDArray[np.intp], most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return `most` of the rows, in their order."""
    return index if len(index) <= most else np.sort(rng.choice(index, most, replace=False))
