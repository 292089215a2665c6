"""From a table to numbers: the matrix X, the labels y, and the rows they come from.

Each column of X is contiguous and is filled straight from Arrow's memory. Floats of a table without missing values move:
the table keeps them where X has them, so that they exist once. Other numbers exist twice at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.table.encoding import Category, Encoding, Flag, Input, Number
from massart.table.errors import TableError, quote
from massart.table.levels import is_text, levels_of
from massart.table.numbers import LARGEST_EXACT, read_numbers
from massart.table.roles import text_among_numbers, unfit_type, words_for_flags
from massart.table.table import Table
from massart.table.views import view


_WORTH_RETURNING = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Rows as numbers.

    Attributes
    ----------
    X : (n, d) array
        In Fortran order.
    y : (n,) array or None
    kept : (n,) array
        The row of the table, from 0, behind each row of X.
    n_total : int
        Rows of the table.
    notices : tuple of str
        Rows left out, counted by column.
    """

    X: FloatArray
    y: FloatArray | None
    kept: NDArray[np.intp]
    n_total: int
    notices: tuple[str, ...]


def encode(table: Table, encoding: Encoding, *, strict: bool = False, with_target: bool = True) -> Design:
    """Return a table as numbers.

    Parameters
    ----------
    table : Table
    encoding : Encoding
    strict : bool
        Whether a missing value is an error; otherwise its row is left out.
    with_target : bool
        Whether to read the target; without it `Design.y` is None.

    Raises
    ------
    TableError
        For columns that are not there or do not hold what the encoding says, numbers that float64 does not hold, and if
        no row is left.
    """
    n, d = table.n_rows, len(encoding.terms)
    entries = [*encoding.inputs, *([encoding.target] if with_target else [])]
    complete = not any(table.column(entry.column).null_count for entry in entries)
    columns, y = np.empty((d, n)), np.empty(n) if with_target else None
    gaps = _Gaps(n)
    place = 0
    for entry in encoding.inputs:
        part = columns[place : place + len(entry.terms)]
        place += len(entry.terms)
        _fill(table, entry, part, gaps)
        if complete:
            _move(table, entry, part[0])
    if y is not None:
        _fill(table, encoding.target, y[None, :], gaps)
    if not gaps.any:
        return Design(columns.T, y, np.arange(n, dtype=np.intp), n, ())
    if strict:
        raise gaps.error(table)
    kept = np.flatnonzero(gaps.owner < 0)
    notice = gaps.notice()
    if kept.size == 0:
        raise TableError(f"{table.name}: no row is left. {notice}")
    X = columns[:, kept].T if complete else _compressed(columns, kept)  # the table may live in these columns
    return Design(X, None if y is None else y[kept], kept, n, (notice,))


def _move(table: Table, entry: Input, values: FloatArray) -> None:
    if isinstance(entry, Number) and table.column(entry.column).type == pa.float64():
        table.move(entry.column, values)
        if values.nbytes >= _WORTH_RETURNING:
            pa.default_memory_pool().release_unused()  # Arrow keeps what it frees for later, of which there is none


def column_values(table: Table, entry: Number | Flag) -> FloatArray:
    """Return one column as numbers, NaN where a value is missing."""
    values = np.empty(table.n_rows)
    _fill(table, entry, values[None, :], _Gaps(table.n_rows))
    return values


class _Gaps:
    """Rows that lack a value, each counted for the first column that lacks it."""

    def __init__(self, n_rows: int) -> None:
        self.owner = np.full(0, -1, dtype=np.int32)
        self._n_rows = n_rows
        self._reasons: list[tuple[str, str]] = []

    @property
    def any(self) -> bool:
        """Whether any row lacks a value."""
        return bool(self._reasons)

    def add(self, column: str, rows: BoolArray, reason: str = "no") -> None:
        """Note the rows that have no value in a column, or no known one."""
        if not rows.any():
            return
        if not self._reasons:
            self.owner = np.full(self._n_rows, -1, dtype=np.int32)
        self.owner[rows & (self.owner < 0)] = len(self._reasons)
        self._reasons.append((column, reason))

    def notice(self) -> str:
        """Return the counts as a sentence."""
        counts = np.bincount(self.owner[self.owner >= 0], minlength=len(self._reasons))
        parts: list[str] = []
        for count, (column, reason) in zip(counts, self._reasons, strict=True):
            verb = "" if parts else "has " if count == 1 else "have "
            parts += [f"{count:,} {verb}{reason} {quote(column)}"] if count else []
        total = int(counts.sum())
        return f"{total:,} {'row' if total == 1 else 'rows'} left out: {', '.join(parts)}."

    def error(self, table: Table) -> TableError:
        """Return the error for the first row that lacks a value."""
        row = int(np.argmax(self.owner >= 0))
        column, reason = self._reasons[self.owner[row]]
        return TableError(f"{table.name}: row {row + 1:,} has {reason} {quote(column)}")


def _compressed(columns: FloatArray, kept: NDArray[np.intp]) -> FloatArray:
    """Return the rows kept as a matrix in Fortran order, in the same memory: each column moves towards the front."""
    d, m = columns.shape[0], kept.size
    flat = columns.reshape(-1)
    for j in range(d):
        flat[j * m : (j + 1) * m] = columns[j, kept]
    return flat[: d * m].reshape(d, m).T


def _fill(table: Table, entry: Input, out: FloatArray, gaps: _Gaps) -> None:
    """Fill the rows of `out`, one for each term of an entry, and note the rows without a value."""
    column = table.column(entry.column)
    unfit = unfit_type(column.type.value_type if pa.types.is_dictionary(column.type) else column.type)
    if unfit:
        raise TableError(f"{table.name}: column {quote(entry.column)} cannot be read as it was before: {unfit}")
    if isinstance(entry, Category):
        _fill_category(column, entry, out, gaps)
        return
    if is_text(column.type):
        _fill_text(table, column, entry, out[0], gaps)
    else:
        _fill_numbers(table, column, entry, out[0])
    finite = np.isfinite(out[0])
    if finite.all():
        return
    missing = np.isnan(out[0])
    if (finite | missing).sum() < finite.size:
        row = int(np.argmin(finite | missing))
        shown = table.cells([entry.column], np.array([row]))[entry.column][0]
        raise TableError(
            f"{table.name}: column {quote(entry.column)} has {shown} in row {row + 1:,}, "
            "which is infinite or too large for a number"
        )
    gaps.add(entry.column, missing)


def _fill_category(column: pa.ChunkedArray, entry: Category, out: FloatArray, gaps: _Gaps) -> None:
    if pa.types.is_null(column.type):
        gaps.add(entry.column, np.ones(len(column), dtype=bool))
        return
    levels = levels_of(column)
    known = {level: place for place, level in enumerate(entry.levels)}
    base, unknown = len(known), len(known) + 1
    if entry.base is not None:
        known[entry.base] = base
    renamed = np.array([known.get(text, unknown) for text in levels.texts.to_pylist()] + [-1], dtype=np.int32)
    codes = renamed[levels.codes]
    for place in range(len(entry.levels)):
        np.equal(codes, place, out=out[place], casting="unsafe")
    gaps.add(entry.column, codes < 0)
    gaps.add(entry.column, codes == unknown, "an unknown")


def _fill_text(table: Table, column: pa.ChunkedArray, entry: Number | Flag, out: FloatArray, gaps: _Gaps) -> None:
    levels = levels_of(column)
    decimal = entry.decimal if isinstance(entry, Number) else "."
    numbers = read_numbers(levels.texts, levels.counts, decimal=decimal)
    values = np.append(numbers.values, np.nan)
    if isinstance(entry, Flag):
        yes, no, nothing = words_for_flags(levels)
        zero_or_one = np.isin(numbers.values, (0.0, 1.0))
        strange = ~(yes | no | nothing | zero_or_one)
        if strange.any():
            row = levels.first_row(strange)
            raise TableError(
                f"{table.name}: column {quote(entry.column)} should say yes or no, but row {row + 1:,} has "
                f"{quote(levels.text(row))}"
            )
        values[:-1][yes], values[:-1][no] = 1.0, 0.0
    elif not (numbers.is_number | numbers.missing).all():
        raise text_among_numbers(table, entry.column, levels, numbers)
    if numbers.inexact.any():
        row = levels.first_row(numbers.inexact)
        raise _inexact(table, entry.column, row, levels.text(row))
    infinite = np.isinf(values[:-1])
    if infinite.any():
        row = levels.first_row(infinite)
        raise TableError(
            f"{table.name}: column {quote(entry.column)} has {quote(levels.text(row))} in row {row + 1:,}, "
            "which is infinite or too large for a number"
        )
    np.take(values, levels.codes, out=out, mode="wrap")  # the code -1 of a missing text finds the NaN at the end


def _fill_numbers(table: Table, column: pa.ChunkedArray, entry: Number | Flag, out: FloatArray) -> None:
    """Copy numbers chunk by chunk; null becomes NaN."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        out[:] = np.nan
        return
    if pa.types.is_decimal(column.type):
        _check_exact(table, entry.column, column)
        # Arrow's cast to float rounds twice; by way of text each number is the nearest one.
        column = column.cast(pa.string()).cast(pa.float64())
    elif pa.types.is_integer(column.type) and column.type.bit_width == 64:
        _check_exact(table, entry.column, column)
    start = 0
    for chunk in column.chunks:
        part = out[start : start + len(chunk)]
        start += len(chunk)
        if pa.types.is_boolean(chunk.type):
            chunk = chunk.cast(pa.uint8())
        if chunk.null_count:
            missing = view(pc.is_null(chunk).cast(pa.uint8())).astype(bool)
            part[:] = view(pc.fill_null(chunk, 0))
            part[missing] = np.nan
        else:
            part[:] = view(chunk)
    if isinstance(entry, Flag):
        strange = ~(np.isnan(out) | (out == 0) | (out == 1))
        if strange.any():
            row = int(np.argmax(strange))
            raise TableError(
                f"{table.name}: column {quote(entry.column)} should say yes or no, but row {row + 1:,} has {out[row]:g}"
            )


def _check_exact(table: Table, name: str, column: pa.ChunkedArray) -> None:
    limits = pc.min_max(column)
    low, high = limits["min"].as_py() or 0, limits["max"].as_py() or 0
    if -LARGEST_EXACT <= low and high <= LARGEST_EXACT:
        return
    worst = high if high > LARGEST_EXACT else low
    row = int(pc.index(column, pa.scalar(worst, column.type)).as_py())
    raise _inexact(table, name, row, str(table.cells([name], np.array([row]))[name][0]))


def _inexact(table: Table, name: str, row: int, shown: str) -> TableError:
    return TableError(
        f"{table.name}: column {quote(name)} has {shown} in row {row + 1:,}, an integer beyond 2**53 that "
        "float64 cannot hold exactly (leave the column out, or use it as the id)"
    )
