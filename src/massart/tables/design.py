"""From a table to numbers: how each column is read, the matrix X, the labels y, and the rows they come from.

An encoding has one entry for the target and one for each input, in a form that JSON can hold. It is made from one table
and read back for others, possibly from a file of unknown origin, so `Encoding.from_json` checks everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.options import fits, in_words
from massart.rows import BoolArray, Columnwise, FloatArray, precision_of
from massart.rules import Columns, Levels
from massart.tables.errors import TableError, counted, quote
from massart.tables.numbers import Order, days_of, is_date, is_missing, numbers_in, read_dates
from massart.tables.table import LARGEST_EXACT, CodedTexts, Table, decoded, flags, floats, is_text, levels_in, view

YES = ("yes", "true", "y", "t")
NO = ("no", "false", "n", "f")


# --- how columns are read ---


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table, and the columns of X that it becomes: one of its own, by default."""

    kind: ClassVar[str]

    column: str

    @property
    def terms(self) -> tuple[tuple[str, str | None], ...]:
        """The column and, for a category, the level behind each of its columns of X."""
        return ((self.column, None),)

    def to_json(self) -> dict[str, object]:
        """Return it as plain values; what is false is left out."""
        return {"kind": self.kind, **{name: value for name, value in asdict(self).items() if value is not False}}


@dataclass(frozen=True, slots=True)
class Number(_Column):
    """A column of numbers."""

    kind = "number"

    decimal: Literal[".", ","] = "."  # the decimal mark of those that are text
    unit: str | None = None  # what stands behind those that are text; a number with another unit behind it is a fault
    blank_is_zero: bool = False  # whether a cell without a value means 0


@dataclass(frozen=True, slots=True)
class Flag(_Column):
    """A column of yes and no, as 1 and 0."""

    kind = "flag"


@dataclass(frozen=True, slots=True)
class Category(_Column):
    """A column of text with few levels: a column of X for each, 1 where a row has it."""

    kind = "category"

    levels: tuple[str, ...]  # those that have a column
    base: str | None  # the level that has none, for which all of them are 0

    @property
    def terms(self) -> tuple[tuple[str, str | None], ...]:
        """Those of each level but the base."""
        return tuple((self.column, level) for level in self.levels)

    @property
    def all_levels(self) -> tuple[str, ...]:
        """The base, if there is one, and then the others."""
        return self.levels if self.base is None else (self.base, *self.levels)

    @property
    def alike(self) -> dict[str, str]:
        """The levels by their texts without capitals and extra spaces; empty where two of them are then the same."""
        found = {folded(level): level for level in self.all_levels}
        return found if len(found) == len(self.all_levels) else {}


@dataclass(frozen=True, slots=True)
class Date(_Column):
    """A column of dates, as days since 1970-01-01; `order` is that of day, month and year in those that are text."""

    kind = "date"

    order: Order = "ymd"


Input: TypeAlias = Number | Flag | Category | Date
Target: TypeAlias = Number | Flag | Date


def folded(text: str) -> str:
    """Return a text in small letters, with single spaces between words.

    Examples
    --------
    >>> folded("New  York ") == folded("new york")
    True
    """
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a table becomes X and y: an entry for the target, and one for each input."""

    target: Target
    inputs: tuple[Input, ...]

    @property
    def has_date_terms(self) -> bool:
        """Whether dates have columns of X: where the target is a date, and where there are no other inputs.

        Elsewhere the days since 1970 say nothing by themselves.
        """
        return isinstance(self.target, Date) or all(isinstance(entry, Date) for entry in self.inputs)

    @property
    def terms(self) -> tuple[tuple[str, str | None], ...]:
        """The column and, for a category, the level behind each column of X."""
        with_dates = self.has_date_terms
        return tuple(term for entry in self.inputs if with_dates or not isinstance(entry, Date) for term in entry.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each column of X: "hours", "region = north"."""
        return tuple(column if level is None else f"{column} = {level}" for column, level in self.terms)

    def to_json(self) -> dict[str, object]:
        """Return it as dicts, lists and texts."""
        return {"target": self.target.to_json(), "inputs": [entry.to_json() for entry in self.inputs]}

    @classmethod
    def from_json(cls, content: object) -> Encoding:
        """Return the encoding that `to_json` wrote.

        Raises
        ------
        TableError
            Naming what is wrong.
        """
        given = _fields(content, {"target", "inputs"}, "the encoding")
        target, entries = _entry(given["target"], "target"), given["inputs"]
        if isinstance(target, Category):
            raise TableError("encoding: target must be a number, a flag or a date, not a category")
        if not isinstance(entries, list):
            raise TableError(f"encoding: inputs must be a list, got {type(entries).__name__}")
        inputs = tuple(_entry(entry, f"inputs[{place}]") for place, entry in enumerate(entries))
        columns = [entry.column for entry in inputs]
        if len(set(columns)) < len(columns):
            raise TableError("encoding: two inputs read the same column")
        if target.column in columns:
            raise TableError(f"encoding: the target {quote(target.column)} is among the inputs")
        return cls(target, inputs)


def _entry(content: object, where: str) -> Input:
    found: Any = content if isinstance(content, Mapping) else {}
    entry = next((one for one in (Number, Flag, Category, Date) if one.kind == found.get("kind")), None)
    if entry is None:
        kind = quote(found.get("kind"))
        raise TableError(f'encoding: {where}.kind must be "number", "flag", "category" or "date", got {kind}')
    hints = get_type_hints(entry)
    del hints["kind"]
    given = _fields({**({"blank_is_zero": False} if entry is Number else {}), **found}, {"kind", *hints}, where)
    values: Any = {name: tuple(given[name]) if isinstance(given[name], list) else given[name] for name in hints}
    for name, hint in hints.items():
        if not fits(values[name], hint):
            raise TableError(f"encoding: {where}.{name} must be {in_words(hint)}, got {quote(given[name])}")
    if values.get("unit") == "":
        raise TableError(f"encoding: {where}.unit must be null or a unit")
    levels = values.get("levels", ())
    if len(set(levels)) < len(levels) or values.get("base") in levels:
        raise TableError(f"encoding: {where} has the same level twice")
    return entry(**values)


def _fields(content: object, names: set[str], where: str) -> Mapping[str, Any]:
    """Return an object from a file of unknown origin; TableError if it is something else, or has other fields."""
    if not isinstance(content, Mapping):
        raise TableError(f"encoding: {where} must be a JSON object, got {type(content).__name__}")
    for name in sorted(map(str, content.keys() ^ names)):
        verb = "lacks" if name in names else "has an unknown entry"
        raise TableError(f"encoding: {where} {verb} {quote(name)}")
    return content


# --- X and y ---


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

    @property
    def labels(self) -> FloatArray:
        """The target of the rows, which was asked for."""
        assert self.y is not None
        return self.y

    def take(self, rows: NDArray[np.intp], **others: Any) -> Design:
        """Return some of the rows, with other gaps or remarks."""
        y, columns = None if self.y is None else self.y[rows], self.columns.take(rows)
        return replace(self, X=self.X[rows], y=y, columns=columns, kept=self.kept[rows], **others)


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
    read = {
        entry.column: _codes(table, entry, gaps) if isinstance(entry, Category) else _values(table, entry, gaps)
        for entry in encoding.inputs
    }
    y = _values(table, encoding.target, gaps) if with_target else None
    kept = gaps.kept(table, strict)
    if not (kept.size or is_part):
        raise TableError(f"{table.name}: no row is left. {left_out(gaps.counts(), table.n_rows)[0]}")
    if gaps.reasons:
        y = None if y is None else y[kept]
        read = {name: values[kept] for name, values in read.items()}
    X, columns = _matrix(encoding, read, len(kept))
    return Design(X, y, columns, kept, table.n_rows, gaps.counts(), tuple(gaps.remarks))


def _matrix(encoding: Encoding, read: dict[str, NDArray[Any]], n_rows: int) -> tuple[FloatArray, Columns]:
    """Return X, and the same rows as terms see them; what was read is given up, column by column."""
    matrix, place = np.empty((len(encoding.terms), n_rows)), 0
    numbers: dict[str, FloatArray] = {}
    levels: dict[str, Levels] = {}
    for entry in encoding.inputs:
        values = read.pop(entry.column)
        if isinstance(entry, Category):
            levels[entry.column] = Levels(values, entry.all_levels)
            for level in range(entry.base is not None, len(entry.all_levels)):
                np.equal(values, level, out=matrix[place], casting="unsafe")
                place += 1
        elif encoding.has_date_terms or not isinstance(entry, Date):
            matrix[place] = values
            numbers[entry.column] = matrix[place]
            place += 1
        else:
            numbers[entry.column] = values
    dates = frozenset(entry.column for entry in encoding.inputs if isinstance(entry, Date))
    return matrix.T, Columns(numbers, levels, dates)


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
    return _values(table, entry, _Gaps(table.n_rows))


def category_codes(table: Table, entry: Category) -> NDArray[np.int32]:
    """Return the place of each row's level among `entry.all_levels`: -1 where it is missing or not among them."""
    codes = _codes(table, entry, _Gaps(table.n_rows))
    return np.where(codes == len(entry.all_levels), -1, codes)


# --- rows without a value ---


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
        self.reasons: list[Gap] = []
        self._n_rows = n_rows

    def add(self, column: str, rows: BoolArray, example: str, lack: str = "no") -> None:
        """Note the rows that have no value in a column, or no known one."""
        if not rows.any():
            return
        if not self.reasons:
            self.owner = np.full(self._n_rows, -1, dtype=np.int32)
        self.owner[rows & (self.owner < 0)] = len(self.reasons)
        self.reasons.append(Gap(column, lack, example))

    def add_texts(self, column: str, levels: CodedTexts, which: BoolArray) -> None:
        """Note the rows whose text is not what a column should hold."""
        if which.any():
            self.add(
                column, np.append(which, False)[levels.codes], levels.text(levels.first_row(which)), "an unreadable"
            )

    def counts(self) -> dict[Gap, int]:
        """Return how many rows are left out for each reason."""
        counts = np.bincount(self.owner[self.owner >= 0], minlength=len(self.reasons)).tolist()
        return {reason: count for reason, count in zip(self.reasons, counts, strict=True) if count}

    def kept(self, table: Table, strict: bool) -> NDArray[np.intp]:
        """Return the rows that lack no value; TableError for the first one that does if this is to be `strict`."""
        if not self.reasons:
            return np.arange(table.n_rows, dtype=np.intp)
        if not strict:
            return np.flatnonzero(self.owner < 0)
        row = int(np.argmax(self.owner >= 0))
        reason = self.reasons[self.owner[row]]
        shown = "" if reason.lack == "no" else f": {quote(table.cell(reason.column, row))}"
        raise TableError(f"{table.name}: row {table.place(row)} has {reason.lack} {quote(reason.column)}{shown}")


def left_out(gaps: Mapping[Gap, int], n_rows: int, *, refit: bool = True) -> tuple[str, ...]:
    """Return the counts as a sentence, with advice where they are large; nothing where no row is left out.

    Without `refit`, where the rule is known already, to fit without a column is not among the advice.
    """
    if not gaps:
        return ()
    verbs = ["has " if count == 1 else "have " for count in gaps.values()]
    verbs[1:] = [""] * (len(gaps) - 1)
    reasons = ", ".join(f"{n:,} {verb}{reason}" for verb, (reason, n) in zip(verbs, gaps.items(), strict=True))
    total = sum(gaps.values())
    if 5 * total <= n_rows:
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


# --- one column ---


_UNFIT: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (is_date, "it holds dates"),
    (pa.types.is_time, "it holds times of the day"),
    (pa.types.is_temporal, "it holds durations"),
    (pa.types.is_struct, "it holds structures"),
    (pa.types.is_map, "it holds structures"),
    (pa.types.is_nested, "it holds lists"),
    (lambda kind: "binary" in str(kind), "it holds binary data"),
)
_FIT = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null),
    is_text,
)


def unfit_type(kind: pa.DataType) -> str:
    """Return why a type has no numbers in it: "it holds dates"; empty for numbers, booleans and text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if any(is_fit(kind) for is_fit in _FIT):
        return ""
    return next((why for is_unfit, why in _UNFIT if is_unfit(kind)), f"it holds values of type {kind}")


def words_for_flags(levels: CodedTexts) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return which texts mean yes, which mean no, and which mean that the value is missing."""
    small = pc.utf8_lower(levels.texts)
    yes, no = (flags(pc.is_in(small, value_set=pa.array(words, small.type))) for words in (YES, NO))
    return yes, no, is_missing(levels.texts)


def _values(table: Table, entry: Target, gaps: _Gaps) -> FloatArray:
    """Return the numbers of an entry; NaN where a row has no value, which is noted."""
    name = entry.column
    values = _read(table, entry, gaps)
    if isinstance(entry, Number) and entry.blank_is_zero:
        values = np.where(np.isnan(values), 0.0, values)  # what cannot be read is noted as such
    if isinstance(entry, Flag) and (strange := ~(np.isnan(values) | (values == 0) | (values == 1))).any():
        row = int(np.argmax(strange))
        raise TableError(
            f"{table.name}: column {quote(name)} should say yes or no, but row {table.place(row)} has {values[row]:g}"
        )
    if np.isfinite(values).all():
        return values
    if (infinite := np.isinf(values)).any():
        row = int(np.argmax(infinite))
        cell = table.cell(name, row)
        shown = quote(cell.strip()) if isinstance(cell, str) else cell
        where = f"column {quote(name)} has {shown} in row {table.place(row)}"
        raise TableError(f"{table.name}: {where}, which is infinite or too large for a number")
    gaps.add(name, np.isnan(values), _spelling(table, entry))
    return values


def _read(table: Table, entry: Target, gaps: _Gaps) -> FloatArray:
    """Return the numbers of an entry, NaN where there is none; what is not missing but cannot be read is noted."""
    name, column, unfit = entry.column, table.column(entry.column), ""
    if is_text(column.type):
        return _dates_of_text(table, entry, gaps) if isinstance(entry, Date) else _numbers_of_text(table, entry, gaps)
    if isinstance(entry, Date) and not pa.types.is_null(column.type):
        days, unfit = days_of(column) if is_date(column.type) else (np.empty(0), "it holds no dates")
        if not unfit:
            return days
    elif not (unfit := unfit_type(column.type)):
        if isinstance(entry, Number) and entry.unit is not None:
            gaps.remarks.append(f"Took {quote(name)}, which has no unit, to be in {entry.unit}.")
        return _numbers(table, name, column)
    raise TableError(f"{table.name}: column {quote(name)} cannot be read as it was before: {unfit}")


def _dates_of_text(table: Table, entry: Date, gaps: _Gaps) -> FloatArray:
    levels = levels_in(table, entry.column)
    days = read_dates(levels.texts, entry.order)
    gaps.add_texts(entry.column, levels, np.isnan(days) & ~is_missing(levels.texts))
    return np.append(days, np.nan)[levels.codes]


def _numbers_of_text(table: Table, entry: Number | Flag, gaps: _Gaps) -> FloatArray:
    name, levels = entry.column, levels_in(table, entry.column)
    decimal, unit = (entry.decimal, entry.unit) if isinstance(entry, Number) else (".", None)
    numbers = numbers_in(table, name, decimal=decimal, unit=unit)
    values, strange = numbers.values, ~(numbers.is_number | numbers.missing)
    if isinstance(entry, Flag):
        yes, no, nothing = words_for_flags(levels)
        strange = ~(yes | no | nothing | np.isin(values, (0.0, 1.0)))
        values = np.where(yes, 1.0, np.where(no, 0.0, np.where(strange, np.nan, values)))
    gaps.add_texts(name, levels, strange)
    if numbers.inexact.any():
        row = levels.first_row(numbers.inexact)
        raise _inexact(table, name, row)
    if numbers.bare.any():
        cells = counted(int(levels.counts[numbers.bare].sum()), "cell")
        gaps.remarks.append(f"Took {cells} of {quote(name)} without a unit to be in {unit}.")
    # The code -1 of a missing text finds the NaN at the end.
    return np.append(values, np.nan)[levels.codes]


def _spelling(table: Table, entry: Target) -> str:
    """Return what is written in most of the cells of a column that have no value, "" for nothing."""
    if not is_text(table.column(entry.column).type):
        return table.spellings.get(entry.column, "")
    levels = levels_in(table, entry.column)
    counts = np.where(is_missing(levels.texts, words=not isinstance(entry, Date)), levels.counts, 0)
    if counts.max(initial=0) < max(len(levels.codes) - levels.n_present, 1):
        return ""
    return str(levels.texts[int(np.argmax(counts))].as_py())


def _codes(table: Table, entry: Category, gaps: _Gaps) -> NDArray[np.int32]:
    """Return the place of each row's level among all levels, -1 where it has none, and their number for others."""
    levels = levels_in(table, entry.column)
    known = {level: place for place, level in enumerate(entry.all_levels)}
    alike = {text: known[level] for text, level in entry.alike.items()}
    places = [known.get(text, alike.get(folded(text), len(known))) for text in levels.texts.to_pylist()]
    codes = np.array([*places, -1], dtype=np.int32)[levels.codes]
    gaps.add(entry.column, codes < 0, "")
    strange = codes == len(known)
    gaps.add(entry.column, strange, levels.text(int(np.argmax(strange))) if strange.any() else "", "an unknown")
    return codes


def _numbers(table: Table, name: str, column: pa.ChunkedArray) -> FloatArray:
    """Return numbers and booleans as floats; null becomes NaN."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_decimal(kind) or kind in (pa.int64(), pa.uint64()):
        limits = [limit.as_py() or 0 for limit in pc.min_max(column).values()]
        worst = limits[limits[1] > LARGEST_EXACT]
        if abs(worst) > LARGEST_EXACT:
            raise _inexact(table, name, int(pc.index(column, pa.scalar(worst, kind)).as_py()))
    if pa.types.is_decimal(kind):
        # Arrow's cast to float rounds twice; by way of text each number is the nearest one.
        column = column.cast(pa.string()).cast(pa.float64())
    return floats(column)


def _inexact(table: Table, name: str, row: int) -> TableError:
    return TableError(
        f"{table.name}: column {quote(name)} has {table.cell(name, row)} in row {table.place(row)}, an integer beyond "
        "2**53 that float64 cannot hold exactly (leave the column out, or use it as the id)"
    )


def precision_of_columns(table: Table, encoding: Encoding) -> float:
    """Return the relative precision of the numbers that an encoding reads: the coarsest of their types."""
    entries = (entry for entry in (encoding.target, *encoding.inputs) if not isinstance(entry, Category))
    kinds = {pa.float64(), *(table.column(entry.column).type for entry in entries)}
    return max(precision_of(np.empty(0, kind.to_pandas_dtype())) for kind in kinds if pa.types.is_floating(kind))
