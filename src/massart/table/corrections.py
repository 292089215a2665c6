"""A table with some values of a column put right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from massart.rows import FloatArray
from massart.table.dates import as_dates, is_date
from massart.table.design import column_values
from massart.table.encoding import Date, Number, Target
from massart.table.errors import TableError, quote
from massart.table.levels import is_text, levels_of
from massart.table.numbers import LARGEST_EXACT
from massart.table.roles import numbers_and_unit, role_of
from massart.table.table import Table

_SHORT_DIGITS = 9
_ROUNDING = 1e-12


def replaced(
    table: Table,
    column: str,
    rows: Sequence[int] | NDArray[np.intp],
    values: ArrayLike,
    original: str,
    *,
    whole: bool | None = None,
) -> Table:
    """Return a table in which some values of a column are others; as `original` the column stays right behind it.

    The column holds numbers or dates, or text that can be read as such. It becomes integers if all its numbers are
    whole, which these rows tell unless the caller does, and floats otherwise; dates are in ISO form; missing values
    stay missing. Values within rounding error of a short decimal become that decimal.
    """
    if original in table.column_names:
        raise TableError(f"{table.name}: there is a column {quote(original)} already")
    before = table.column(column)
    entry = _entry(table, column)
    numbers = column_values(table, entry)
    numbers[np.asarray(rows, dtype=np.intp)] = shortened(np.asarray(values, dtype=np.float64))
    missing = np.isnan(numbers)
    after = as_dates(numbers) if isinstance(entry, Date) else pa.array(numbers, mask=missing)
    if whole is None:
        whole = bool((numbers[~missing] == np.round(numbers[~missing])).all())
    integers = whole and not isinstance(entry, Date) and not pa.types.is_floating(before.type)
    if integers and np.abs(numbers[~missing]).max(initial=0) <= LARGEST_EXACT:
        after = pc.cast(after, pa.int64())
    place = table.column_names.index(column)
    arrow = table.arrow.set_column(place, column, after).add_column(place + 1, original, before)
    spellings = dict(table.spellings)
    if column in spellings:
        spellings[original] = spellings[column]
    return replace(table, arrow=arrow, spellings=spellings)


def _entry(table: Table, column: str) -> Target:
    """Return how to read a column as numbers."""
    kind = table.column(column).type
    if is_date(kind):
        return Date(column)
    if not is_text(kind):
        return Number(column)
    found = role_of(table, column, asked=True).entry
    if isinstance(found, Date):
        return found
    numbers, unit = numbers_and_unit(levels_of(table.column(column)), table.decimal)
    return Number(column, numbers.decimal, unit)


def shortened(values: FloatArray) -> FloatArray:
    """Return values with those replaced by a decimal of few digits that differ from it only by rounding.

    Examples
    --------
    >>> shortened(np.array([0.1 + 0.2, 1 / 3]))
    array([0.3       , 0.33333333])
    """
    short = np.array([float(f"{value:.{_SHORT_DIGITS}g}") for value in values], dtype=np.float64)
    return np.where(np.abs(short - values) <= _ROUNDING * np.abs(values), short, values)
