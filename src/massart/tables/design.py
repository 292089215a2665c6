"""From a table to numbers: the matrix X, the labels y, and the rows they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray, precision_of
from massart.rows.columnwise import Columnwise
from massart.rules.columns import Columns
from massart.rules.columns import Levels as Coded
from massart.tables.encoding import Category, Date, Encoding, Flag, Number, Target
from massart.tables.errors import TableError, counted, quote
from massart.tables.levels import Levels, folded, levels_in, numbers_in
from massart.tables.meaning import unfit_type, words_for_flags
from massart.tables.numbers import days_of, is_date, is_missing, read_dates
from massart.tables.table import LARGEST_EXACT, Table, decoded, is_text, view

_MANY = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Rows as numbers."""

    # (n, d), in Fortran order; of a part of a table, it may be a matrix whose columns lie where Arrow has them
    X: FloatArray | Columnwise
    y: FloatArray | None  # (n,)
    columns: Columns  # the same rows as terms see them; numbers that are columns of X lie there
    kept: NDArray[np.intp]  # (n,), the row of the table, from 0, behind each row of X
    n_total: int  # rows of the table
    gaps: Mapping[Gap, int] = field(default_factory=dict)  # why rows were left out, and how many
    remarks: tuple[str, ...] = ()  # units that were assumed

    @property
    def notices(self) -> tuple[str, ...]:
        """Rows left out, counted by column, and units that were assumed, as sentences."""
        return (*left_out(self.gaps, self.n_total), *self.remarks)


def encode(
    table: Table,
    encoding: Encoding,
    *,
    strict: bool = False,
    with_target: bool = True,
    is_part: bool = False,
    is_finite: bool = False,
) -> Design:
    """Return a table as numbers, without the rows that lack a value; if it is to be `strict`, these are errors.

    A part of another table need not have any row left, and is not needed afterwards; its floats may be taken to be
    finite, unseen: then NaN is not taken for a missing value.

    Raises
    ------
    TableError
        For columns that are not there or do not hold what the encoding says, numbers that float64 does not hold, and if
        no row is left.
    """
    if is_part and with_target and (views := _views(table, encoding, is_finite)) is not None:
        return Design(*views, np.arange(table.n_rows, dtype=np.intp), table.n_rows)
    gaps = _Gaps(table.n_rows)
    X, numbers, codes = _inputs(table, encoding, gaps)
    y = None
    if with_target:
        y = np.empty(table.n_rows)
        _fill(table, encoding.target, y, gaps)
    kept = np.arange(table.n_rows, dtype=np.intp)
    if gaps.any:
        if strict:
            raise gaps.error(table)
        kept = np.flatnonzero(gaps.owner < 0)
        if kept.size == 0 and not is_part:
            raise TableError(f"{table.name}: no row is left. {left_out(gaps.counts(), table.n_rows)[0]}")
        X, y = X.T.take(kept, axis=1).T, None if y is None else y[kept]
        numbers = {name: values[kept] for name, values in numbers.items()}
        codes = {name: values[kept] for name, values in codes.items()}
    seen = _columns(encoding, X, numbers, codes)
    return Design(X, y, seen, kept, table.n_rows, gaps.counts(), tuple(gaps.remarks))


def _inputs(
    table: Table, encoding: Encoding, gaps: _Gaps
) -> tuple[FloatArray, dict[str, FloatArray], dict[str, NDArray[np.int32]]]:
    """Return X with all rows, columns of dates that are not in it, and the codes of categories."""
    n, place = table.n_rows, 0
    matrix = np.empty((len(encoding.terms), n))
    dates: dict[str, FloatArray] = {}
    codes: dict[str, NDArray[np.int32]] = {}
    for entry in encoding.inputs:
        if isinstance(entry, Date) and not encoding.has_date_terms:
            _fill(table, entry, dates.setdefault(entry.column, np.empty(n)), gaps)
            continue
        part = matrix[place : place + len(entry.terms)]
        place += len(entry.terms)
        if isinstance(entry, Category):
            codes[entry.column] = _fill_category(table, entry, part, gaps)
        else:
            _fill(table, entry, part[0], gaps)
    return matrix.T, dates, codes


def _columns(
    encoding: Encoding, X: FloatArray, dates: dict[str, FloatArray], codes: dict[str, NDArray[np.int32]]
) -> Columns:
    """Return the same rows as terms see them, in the order of the inputs."""
    places = {column: place for place, (column, level) in enumerate(encoding.terms) if level is None}
    numbers: dict[str, FloatArray] = {}
    levels: dict[str, Coded] = {}
    for entry in encoding.inputs:
        if isinstance(entry, Category):
            levels[entry.column] = Coded(codes[entry.column], entry.all_levels)
        else:
            place = places.get(entry.column)
            numbers[entry.column] = dates[entry.column] if place is None else X[:, place]
    return Columns(numbers, levels, frozenset(entry.column for entry in encoding.inputs if isinstance(entry, Date)))


def _views(table: Table, encoding: Encoding, is_finite: bool) -> tuple[Columnwise, FloatArray, Columns] | None:
    """Return the numbers of a table where they are, if all of them are floats and none is missing."""
    found: dict[str, FloatArray] = {}
    for entry in (*encoding.inputs, encoding.target):
        column = table.column(entry.column)
        if not isinstance(entry, Number) or column.type != pa.float64() or column.null_count or not len(column):
            return None
        parts = [view(chunk) for chunk in column.chunks]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not is_finite and not np.isfinite(values.sum()):
            return None
        found[entry.column] = values
    y = found.pop(encoding.target.column)
    return Columnwise([*found.values()]), y, Columns(found)


def column_values(table: Table, entry: Target) -> FloatArray:
    """Return one column as numbers, NaN where a value is missing."""
    values = np.empty(table.n_rows)
    _fill(table, entry, values, _Gaps(table.n_rows))
    return values


def category_codes(table: Table, entry: Category) -> NDArray[np.int32]:
    """Return the place of each row's level among `entry.all_levels`: -1 where it is missing or not among them."""
    codes = _fill_category(table, entry, np.empty((len(entry.levels), table.n_rows)), _Gaps(table.n_rows))
    return np.where(codes == len(entry.all_levels), -1, codes)


@dataclass(frozen=True, slots=True)
class Gap:
    """Why rows are left out: they have "no" value in a column, or "an unknown" one, `example`.

    Where the value is missing, `example` is what is written instead, "" for nothing.
    """

    column: str
    lack: str
    example: str

    def __str__(self) -> str:
        such = f" such as {quote(self.example)}" if self.lack != "no" else ""
        return f"{self.lack} {quote(self.column)}{such}"


class _Gaps:
    """Rows that lack a value, each counted for the first column that lacks it, and remarks about others."""

    def __init__(self, n_rows: int) -> None:
        self.owner = np.full(0, -1, dtype=np.int32)
        self.remarks: list[str] = []
        self._n_rows = n_rows
        self._reasons: list[Gap] = []

    @property
    def any(self) -> bool:
        """Whether any row lacks a value."""
        return bool(self._reasons)

    def add(self, column: str, rows: BoolArray, example: str, lack: str = "no") -> None:
        """Note the rows that have no value in a column, or no known one."""
        if not rows.any():
            return
        if not self._reasons:
            self.owner = np.full(self._n_rows, -1, dtype=np.int32)
        self.owner[rows & (self.owner < 0)] = len(self._reasons)
        self._reasons.append(Gap(column, lack, example))

    def counts(self) -> dict[Gap, int]:
        """Return how many rows are left out for each reason."""
        counts = np.bincount(self.owner[self.owner >= 0], minlength=len(self._reasons)).tolist()
        return {reason: count for reason, count in zip(self._reasons, counts, strict=True) if count}

    def error(self, table: Table) -> TableError:
        """Return the error for the first row that lacks a value."""
        row = int(np.argmax(self.owner >= 0))
        reason = self._reasons[self.owner[row]]
        shown = (
            "" if reason.lack == "no" else f": {quote(table.cells([reason.column], np.array([row]))[reason.column][0])}"
        )
        return TableError(f"{table.name}: row {table.place(row)} has {reason.lack} {quote(reason.column)}{shown}")


def left_out(gaps: Mapping[Gap, int], n_rows: int, *, refit: bool = True) -> tuple[str, ...]:
    """Return the counts as a sentence, with advice where they are large; nothing where no row is left out.

    Without `refit`, where the rule is known already, to fit without a column is not among the advice.
    """
    if not gaps:
        return ()
    parts: list[str] = []
    for reason, count in gaps.items():
        verb = "" if parts else "has " if count == 1 else "have "
        parts.append(f"{count:,} {verb}{reason}")
    total, reasons = sum(gaps.values()), ", ".join(parts)
    if total <= _MANY * n_rows:
        return (f"{counted(total, 'row')} left out: {reasons}.",)
    return (f"{total:,} of {n_rows:,} rows left out: {reasons}. {_advice(max(gaps, key=gaps.__getitem__), refit)}",)


def _advice(reason: Gap, refit: bool) -> str:
    """Return what can be done about a reason that costs many rows."""
    if reason.lack == "an unreadable":
        advice = f"; to keep such rows, fit without {quote(reason.column)}" if refit else ""
        return f"{quote(reason.example)} is none of its values{advice}."
    if reason.lack != "no":
        return (
            f"Nothing is known of rows with another {quote(reason.column)} than those that the formula was made from."
        )
    if reason.example:
        return f"{quote(reason.example)} was taken as missing; if it means 0, write 0."
    return f"To keep them, fill in {quote(reason.column)}{', or fit without it' if refit else ''}."


def _fill(table: Table, entry: Target, out: FloatArray, gaps: _Gaps) -> None:
    """Fill `out` with the numbers of an entry, and note the rows without a value."""
    if isinstance(entry, Date):
        spelling = _fill_dates(table, entry, out, gaps)
        gaps.add(entry.column, np.isnan(out), spelling)
        return
    column = table.column(entry.column)
    unfit = unfit_type(column.type)
    if unfit:
        raise TableError(f"{table.name}: column {quote(entry.column)} cannot be read as it was before: {unfit}")
    if is_text(column.type):
        spelling = _fill_text(table, entry, out, gaps)
    else:
        spelling = table.spellings.get(entry.column, "")
        _fill_numbers(table, column, entry, out)
        if isinstance(entry, Number) and entry.unit is not None:
            gaps.remarks.append(f"Took {quote(entry.column)}, which has no unit, to be in {entry.unit}.")
    if isinstance(entry, Number) and entry.blank_is_zero:
        out[np.isnan(out)] = 0.0  # what cannot be read is noted as such
    finite = np.isfinite(out)
    if finite.all():
        return
    missing = np.isnan(out)
    if (finite | missing).sum() < finite.size:
        row = int(np.argmin(finite | missing))
        raise _infinite(table, entry.column, row, str(table.cells([entry.column], np.array([row]))[entry.column][0]))
    gaps.add(entry.column, missing, spelling)


def _fill_dates(table: Table, entry: Date, out: FloatArray, gaps: _Gaps) -> str:
    """Fill `out` with days, and return the spelling that most missing values have, "" if they are empty."""
    column = table.column(entry.column)
    if is_text(column.type):
        levels = levels_in(table, entry.column)
        days, missing = read_dates(levels.texts, entry.order), is_missing(levels.texts)
        strange = np.isnan(days) & ~missing
        _add_unreadable(gaps, entry.column, levels, strange)
        np.take(np.append(days, np.nan), levels.codes, out=out, mode="wrap")
        return _most_frequent(levels, missing)
    if pa.types.is_null(column.type):
        out[:] = np.nan
    else:
        days, why = days_of(column) if is_date(column.type) else (out, "it holds no dates")
        if why:
            raise TableError(f"{table.name}: column {quote(entry.column)} cannot be read as it was before: {why}")
        out[:] = days
    return table.spellings.get(entry.column, "")


def _add_unreadable(gaps: _Gaps, column: str, levels: Levels, strange: BoolArray) -> None:
    """Note the rows whose text is not what a column should hold."""
    if strange.any():
        rows = np.append(strange, False)[levels.codes]
        gaps.add(column, rows, levels.text(int(np.argmax(rows))), "an unreadable")


def _fill_category(table: Table, entry: Category, out: FloatArray, gaps: _Gaps) -> NDArray[np.int32]:
    """Fill the rows of `out`, one for each level with a term, note the rows without one, and return the codes."""
    levels = levels_in(table, entry.column)
    known = {level: place for place, level in enumerate(entry.all_levels)}
    unknown = len(known)
    alike = {text: known[level] for text, level in entry.alike.items()}
    texts = levels.texts.to_pylist()
    places = [known.get(text, alike.get(folded(text), unknown)) for text in texts]
    renamed = np.array([*places, -1], dtype=np.int32)
    codes = renamed[levels.codes]
    for place, level in enumerate(entry.levels):
        np.equal(codes, known[level], out=out[place], casting="unsafe")
    gaps.add(entry.column, codes < 0, "")
    strange = codes == unknown
    example = levels.text(int(np.argmax(strange))) if strange.any() else ""
    gaps.add(entry.column, strange, example, "an unknown")
    return codes


def _fill_text(table: Table, entry: Number | Flag, out: FloatArray, gaps: _Gaps) -> str:
    """Fill `out`, and return the spelling that most missing values have, "" if they are empty."""
    levels = levels_in(table, entry.column)
    decimal, unit = (entry.decimal, entry.unit) if isinstance(entry, Number) else (".", None)
    numbers = numbers_in(table, entry.column, decimal=decimal, unit=unit)
    values = np.append(numbers.values, np.nan)
    if isinstance(entry, Flag):
        yes, no, nothing = words_for_flags(levels)
        zero_or_one = np.isin(numbers.values, (0.0, 1.0))
        strange = ~(yes | no | nothing | zero_or_one)
        values[:-1][yes], values[:-1][no] = 1.0, 0.0
        values[:-1][strange] = np.nan
    else:
        strange = ~(numbers.is_number | numbers.missing)
    _add_unreadable(gaps, entry.column, levels, strange)
    if numbers.inexact.any():
        row = levels.first_row(numbers.inexact)
        raise _inexact(table, entry.column, row, levels.text(row))
    infinite = np.isinf(values[:-1])
    if infinite.any():
        row = levels.first_row(infinite)
        raise _infinite(table, entry.column, row, quote(levels.text(row)))
    np.take(values, levels.codes, out=out, mode="wrap")  # the code -1 of a missing text finds the NaN at the end
    if numbers.bare.any():
        cells = counted(int(levels.counts[numbers.bare].sum()), "cell")
        gaps.remarks.append(f"Took {cells} of {quote(entry.column)} without a unit to be in {unit}.")
    return _most_frequent(levels, numbers.missing)


def _most_frequent(levels: Levels, which: BoolArray) -> str:
    """Return the most frequent text among those marked, "" if empty cells are more."""
    counts = np.where(which, levels.counts, 0)
    if not which.any() or counts.max() < len(levels.codes) - levels.n_present:
        return ""
    return str(levels.texts[int(np.argmax(counts))].as_py())


def _fill_numbers(table: Table, column: pa.ChunkedArray, entry: Number | Flag, out: FloatArray) -> None:
    """Copy numbers chunk by chunk; null becomes NaN."""
    column = decoded(column)
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
                f"{table.name}: column {quote(entry.column)} should say yes or no, "
                f"but row {table.place(row)} has {out[row]:g}"
            )


def _check_exact(table: Table, name: str, column: pa.ChunkedArray) -> None:
    limits = pc.min_max(column)
    low, high = limits["min"].as_py() or 0, limits["max"].as_py() or 0
    if -LARGEST_EXACT <= low and high <= LARGEST_EXACT:
        return
    worst = high if high > LARGEST_EXACT else low
    row = int(pc.index(column, pa.scalar(worst, column.type)).as_py())
    raise _inexact(table, name, row, str(table.cells([name], np.array([row]))[name][0]))


def _infinite(table: Table, name: str, row: int, shown: str) -> TableError:
    where = f"column {quote(name)} has {shown} in row {table.place(row)}"
    return TableError(f"{table.name}: {where}, which is infinite or too large for a number")


def _inexact(table: Table, name: str, row: int, shown: str) -> TableError:
    return TableError(
        f"{table.name}: column {quote(name)} has {shown} in row {table.place(row)}, an integer beyond 2**53 that "
        "float64 cannot hold exactly (leave the column out, or use it as the id)"
    )


def precision_of_columns(table: Table, encoding: Encoding) -> float:
    """Return the relative precision of the numbers that an encoding reads: the coarsest of their types."""
    schema = table.arrow.schema
    numbers = (entry.column for entry in encoding.inputs if not isinstance(entry, Category))
    read = {encoding.target.column, *numbers}
    kinds = {kind for name, kind in zip(schema.names, schema.types, strict=True) if name in read}
    floats = [np.empty(0, kind.to_pandas_dtype()) for kind in kinds if pa.types.is_floating(kind)]
    return max([precision_of(np.empty(0)), *map(precision_of, floats)])
