"""The rows that a page carries: wrong ones, the largest residuals first, and some that agree, in one store.

Pictures, table and what-if of the page show these rows and no others. Where not all wrong rows fit, some of those with
small residuals are drawn at random, so that a picture is not of the worst alone. Columns travel as compressed JSON, in
which every number is as it is in the table.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.report.findings import ReportRows
from massart.rows import FloatArray

MOST_ROWS, FEWEST_ROWS = 50_000, 20_000
"""Wrong rows carried for the size of their residual; below this number, columns are dropped before rows."""

MOST_RIGHT, MOST_DRAWN = 2_000, 3_000
"""Rows that agree, and wrong ones that the picture shows."""

MOST_LARGEST = 500
"""Wrong rows that are drawn for the size of their residual; the others are a random sample."""

MOST_CHARACTERS = 4_200_000
"""Of the packed rows in the page."""

LONGEST_TEXT = 300
"""Characters of a cell that the page shows."""

AGREES = "agrees"
"""What happened in a row that agrees."""

_SHOWN_DIGITS = 8  # of a number without common decimals
_MOST_PLACES = 4  # decimals that a column shows
_DUST, _DUST_OF_PLACE = 1e-9, 1e-3  # of a number, and of its last place: what differences of numbers leave behind
_LARGEST_INTEGER = 2.0**53  # that a float64 holds
_LARGEST_IN_PLACES = 1e15  # that is written with decimals
_SMALLEST_POSITIONAL, _LARGEST_POSITIONAL = 1e-6, 1e21  # as JavaScript writes numbers

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_THOUSANDS = re.compile(r"\d(?=(?:\d{3})+$)")


@dataclass(frozen=True, slots=True, eq=False)
class ShownColumn:
    """A column of numbers, NaN where there is none, or of texts."""

    name: str
    values: FloatArray | list[str]
    places: int | None = None  # decimals that write all of the numbers; None where they differ too much
    grouped: bool = False  # thousands are set apart: in amounts, not in years and identifiers

    @property
    def numeric(self) -> bool:
        """Whether the column holds numbers."""
        return isinstance(self.values, np.ndarray)

    def shown(self, index: int) -> str:
        """Return one of the cells as the page shows it."""
        value = self.values[index]
        return value if isinstance(value, str) else write(float(value), self.places, self.grouped)

    def packed(self) -> dict[str, Any]:
        """Return the column for the script."""
        cells = self.values
        if isinstance(cells, np.ndarray):
            cells = np.where(np.isnan(cells), None, cells).tolist()  # type: ignore[call-overload]
        text = json.dumps(cells, ensure_ascii=False, separators=(",", ":"))
        if self.numeric:
            text = text.replace("Infinity", "1e999")  # which JSON reads as infinity
        data = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
        return {**{name: getattr(self, name) for name in ("name", "numeric", "places", "grouped")}, "data": data}


Entries = Sequence[object] | NDArray[Any]


def read(name: str, entries: Entries) -> ShownColumn:
    """Return the entries of a column as numbers, if they all are, else as texts."""
    if (values := _numbers(entries)) is None:
        return ShownColumn(clean(name), [_text(entry) for entry in entries])
    return ShownColumn(clean(name), values, decimal_places(values))


def clean(text: str) -> str:
    """Return a text from the table as the page shows it: not too long, and printable."""
    return printable(text[:LONGEST_TEXT] + "…" if len(text) > LONGEST_TEXT else text)


def printable(text: str) -> str:
    """Return a text with a mark for each character that no page can carry."""
    return _UNPRINTABLE.sub("\ufffd", text)


def decimal_places(values: FloatArray) -> int | None:
    """Return how many decimals write all the numbers, up to rounding error; None for more than a few."""
    values = values[np.isfinite(values)]
    if not len(values) or (size := np.abs(values)).max() >= _LARGEST_IN_PLACES:
        return None
    dust = _DUST * np.maximum(size, 1e-3)
    for places in range(_MOST_PLACES + 1):
        if (np.abs(values - np.round(values, places)) <= np.minimum(dust, _DUST_OF_PLACE / 10.0**places)).all():
            return places
    return None


def write(value: float, places: int | None = None, grouped: bool = True, digits: int = _SHOWN_DIGITS) -> str:
    """Write a number with a number of decimals, or else rounded to a number of digits; the script writes the same.

    Examples
    --------
    >>> write(1234.5, 2), write(-1e-12, 2), write(2 / 3), write(1.5e-7)
    ('1,234.50', '0.00', '0.66666667', '1.5e-7')
    """
    if not np.isfinite(value):
        return "" if np.isnan(value) else "-∞" if value < 0 else "∞"
    if places is not None:
        text = f"{value:.{places}f}"
    elif value == 0 or _SMALLEST_POSITIONAL <= abs(value) < _LARGEST_POSITIONAL:
        text = np.format_float_positional(value, digits, unique=False, fractional=False, trim="-")
    else:
        return np.format_float_scientific(value, digits - 1, unique=False, trim="-", exp_digits=1)
    if not text.strip("-0."):
        text = text.lstrip("-")
    if not grouped:
        return text
    whole, point, rest = text.partition(".")
    return _THOUSANDS.sub(r"\g<0>,", whole) + point + rest


def _numbers(entries: Entries) -> FloatArray | None:
    if isinstance(entries, np.ndarray) and entries.dtype.kind in "iuf":
        values = entries.astype(float)
    elif _all_numbers(map(type, entries)):
        try:
            values = np.array([np.nan if entry is None else entry for entry in entries], dtype=float)
        except OverflowError:
            return None
    else:
        return None
    # Above 2^53 a float64 is not the integer that it came from.
    large = np.flatnonzero(np.abs(values) > _LARGEST_INTEGER).tolist()
    return None if any(isinstance(entries[i], int | np.integer) for i in large) else values


def _all_numbers(types: Iterable[type]) -> bool:
    different = set(types) - {NoneType}
    return bool(different) and all(
        issubclass(t, int | float | np.integer | np.floating) and t is not bool for t in different
    )


def _text(entry: object) -> str:
    if entry is None or (isinstance(entry, float) and np.isnan(entry)):
        return ""
    if isinstance(entry, bool | np.bool_):
        return "true" if entry else "false"
    return clean(str(entry))


@dataclass(frozen=True, slots=True)
class Residuals:
    """The wrong rows of a table, the largest residuals first."""

    index: NDArray[np.intp]  # which rows they are
    values: FloatArray  # given minus implied


@dataclass(frozen=True, slots=True)
class Carried:
    """The rows of a page."""

    index: NDArray[np.intp]  # wrong ones by the size of their residual, then ones that agree
    n_largest: int  # wrong rows carried for the size of their residual
    n_sampled: int  # others that were drawn at random
    n_right: int  # rows that agree
    n_drawn: int  # wrong rows in the picture
    columns: tuple[ShownColumn, ...]  # identity, given, implied, their difference, the kind if known, and other cells
    left_out: tuple[str, ...]  # columns for which there was no room
    packed: dict[str, Any]  # all of it for the script

    @property
    def n_off(self) -> int:
        """Wrong rows carried."""
        return self.n_largest + self.n_sampled


def wrong_residuals(rows: ReportRows) -> Residuals:
    """Return the wrong rows by the size of their residual; of equal ones, the first comes first."""
    index = np.flatnonzero(rows.wrong)
    with np.errstate(over="ignore", invalid="ignore"):
        values = rows.given[index] - rows.implied[index]
    size = np.where(np.isnan(values), np.inf, np.abs(values))
    order = np.argsort(-size, kind="stable")
    return Residuals(index[order], values[order])


def columns_of(rows: ReportRows, index: NDArray[np.intp]) -> tuple[ShownColumn, ...]:
    """Return some rows as columns: identity, given, implied, residual, kind, and the other cells."""
    cells = rows.cells(index)
    name, identity = next(iter(cells.items()), ("row", index.tolist()))
    kinds = []
    if rows.kinds is not None:
        words = [clean(word or AGREES) for word in rows.kinds.words]
        kinds.append(ShownColumn("kind", [words[code] for code in rows.kinds.codes[index].tolist()]))
    others = (read(other, entries) for other, entries in list(cells.items())[1:])
    return read(name, identity), *compared(rows, index), *kinds, *others


def compared(rows: ReportRows, index: NDArray[np.intp]) -> list[ShownColumn]:
    """Return given, implied and given minus implied of some rows, all with the same decimals where that is possible."""
    given, implied = rows.given[index], rows.implied[index]
    with np.errstate(over="ignore", invalid="ignore"):
        amounts = {"given": given, "implied": implied, "off by": given - implied}
    places = [decimal_places(values) for values in amounts.values()]
    if (known := [p for p in places if p is not None]) == places:
        places = [max(known)] * len(places)
    return [ShownColumn(name, v, p, grouped=True) for (name, v), p in zip(amounts.items(), places, strict=True)]


def carry(
    rows: ReportRows, wrong: Residuals, most_rows: int = MOST_ROWS, most_characters: int = MOST_CHARACTERS
) -> Carried:
    """Choose what the page carries: fewer rows first, then fewer columns, and few rows only if that is not enough."""
    rng = np.random.default_rng(0)
    right = sample(np.flatnonzero(rows.agree), MOST_RIGHT, rng)
    drawn = _drawn(rows, wrong, rng)
    n_largest = min(len(wrong.index), most_rows)
    places = np.union1d(np.arange(n_largest), drawn)  # in `wrong`: one less than the rank
    index = np.concatenate([wrong.index[places], right])
    identity, given, implied, residual, *others = columns_of(rows, index)
    needed, packed = ([one.packed() for one in some] for some in ((identity, given, implied), others))
    size, rest = (sum(len(column["data"]) for column in some) for some in (needed, packed))
    for total, fewest in ((size + rest, FEWEST_ROWS), (size, 0)):
        if total > most_characters and n_largest > fewest:
            return carry(rows, wrong, max(fewest, int(0.95 * n_largest * most_characters / total)), most_characters)
    left_out = []
    for column, data in zip(list(others), packed, strict=True):
        if size + len(data["data"]) > most_characters:
            left_out.append(column.name)
            others.remove(column)
        else:
            size += len(data["data"])
            needed.append(data)
    return Carried(
        index,
        n_largest,
        n_sampled=len(places) - n_largest,
        n_right=len(right),
        n_drawn=len(drawn),
        columns=(identity, given, implied, residual, *others),
        left_out=tuple(left_out),
        packed={
            "n": len(index),
            "wrong": len(places),
            "largest": n_largest,
            "ranks": (places[n_largest:] + 1).tolist(),
            "drawn": [] if len(drawn) == len(places) else np.searchsorted(places, drawn).tolist(),
            "places": residual.places,
            "columns": needed,
        },
    )


def _drawn(rows: ReportRows, wrong: Residuals, rng: np.random.Generator) -> NDArray[np.intp]:
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
