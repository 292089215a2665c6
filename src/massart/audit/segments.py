"""Segments of a table by name: the columns by which they are looked for, which rows belong to one, how it is called.

All columns of the table are covariates, also those that are not in the rule: numbers and dates by their order, dates
also by weekday, month and day of the month and two of them by the days between, texts by their levels, and columns with
gaps by whether there is a value.
Not so identifiers, free text, and what the user excluded: such a column may have been made of the target. For that
reason numbers that are no features are left out where features were named.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Breach, Segment, SegmentScan
from massart.rows import BoolArray, FloatArray
from massart.rules import Columns, Term
from massart.tables import (
    Category,
    Date,
    Design,
    Encoding,
    Flag,
    Input,
    Number,
    Plan,
    Table,
    TableError,
    Target,
    category_codes,
    column_values,
    date_texts,
    names_rows,
    role_of,
)

Part = Literal["", "weekday", "month", "day of month", "gap"]

_NAMES = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
}
_LAST = {"weekday": 7, "month": 12, "day of month": 31}
_DIGITS = 10  # of a number in a name

MOST_DATES = 4
"""Columns of dates between which the days are counted, two by two: six numbers more in a table of many dates."""


@dataclass(frozen=True, slots=True)
class Covariate:
    """A column of a table, a part of its dates, its gaps, the days between two dates, or what a rule makes of columns.

    Two entries without a term are dates: the days from the first to the second are meant.
    """

    entries: tuple[Input, ...]  # how the columns are read that it is made of
    part: Part = ""  # what of a column, if not its values
    term: Term | None = None  # a sum or a product of columns of numbers, which a rule compares with its thresholds

    @property
    def name(self) -> str:
        """How it is called."""
        if self.term is not None:
            return str(self.term)
        *since, column = [entry.column for entry in self.entries]
        if since:
            return f"days from {since[0]} to {column}"
        return f"{self.part} of {column}" if self.part else column

    @property
    def column(self) -> Input | None:
        """The column of which these are the values."""
        return self.entries[0] if self.term is None and len(self.entries) == 1 and not self.part else None

    def to_json(self) -> dict[str, object]:
        """Return it as plain values, but for how its columns are read."""
        if self.term is not None:
            return {"term": self.term.to_json()}
        *since, column = [entry.column for entry in self.entries]
        return {"column": column, "part": self.part, "since": since[0] if since else None}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], entries: Mapping[str, Input]) -> Covariate:
        """Return the covariate that `to_json` wrote, given how its columns are read."""
        if "term" in content:
            term = Term.from_json(content["term"])
            found = cls(tuple(entries[name] for name in dict.fromkeys(term.columns())), term=term)
            if any(isinstance(entry, Category) for entry in found.entries):
                raise ValueError(f"the term {term} of a segment reads text")
            term.evaluate(Columns({entry.column: np.empty(0) for entry in found.entries}))  # whether it can be
            return found
        part, since = content["part"], None if content["since"] is None else entries[content["since"]]
        if part not in get_args(Part):
            raise ValueError(f"part must be one of {', '.join(map(repr, get_args(Part)))}, got {part!r}")
        if not (since is None or isinstance(since, Date)):
            raise ValueError("since must be a column of dates")
        column = entries[content["column"]]
        return cls((column,) if since is None else (since, column), part)

    def values(self, table: Table) -> FloatArray:
        """Return it for all rows of a table: NaN where a number is missing, of a category codes, one more for none."""
        numbers = {entry.column: _numbers_of(table, entry) for entry in self.entries}
        if self.term is not None:
            return self.term.evaluate(Columns(numbers))
        *since, values = [numbers[entry.column] for entry in self.entries]
        return values - since[0] if since else self.of(values)

    def of(self, numbers: FloatArray) -> FloatArray:
        """Return it, given the numbers of the column."""
        if not self.part:
            return numbers
        gaps = np.isnan(numbers)
        if self.part == "gap":
            return gaps.astype(np.float64)
        dates = np.floor(np.where(gaps, 0.0, numbers)).astype(np.int64).astype("datetime64[D]")
        months = dates.astype("datetime64[M]")
        if self.part == "weekday":
            found = (dates.astype(np.int64) + 3) % 7 + 1  # 1 January 1970 was a Thursday; Monday is 1
        elif self.part == "month":
            found = months.astype(np.int64) % 12 + 1
        else:
            found = (dates - months.astype("datetime64[D]")).astype(np.int64) + 1
        return np.where(gaps, np.nan, found)

    def text(self, value: float) -> str:
        """Write one of its values."""
        if isinstance(self.column, Category):
            levels = self.column.all_levels
            return levels[int(value)] if value < len(levels) else ""
        if self.part in _NAMES:
            return _NAMES[self.part][int(value) - 1]
        if isinstance(self.column, Date):
            return str(date_texts(np.array([value]))[0])
        if isinstance(self.column, Flag):
            return "yes" if value else "no"
        return f"{value:.{_DIGITS}g}"


def _numbers_of(table: Table, entry: Input) -> FloatArray:
    if not isinstance(entry, Category):
        return column_values(table, entry)
    codes = category_codes(table, entry)
    return np.where(codes < 0, len(entry.all_levels), codes).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Condition:
    """Rows in which a covariate lies in a range, both ends included."""

    covariate: Covariate
    low: float
    high: float

    def to_json(self) -> dict[str, object]:
        """Return it as plain values."""
        low, high = (float(end) if math.isfinite(end) else None for end in (self.low, self.high))
        return {**self.covariate.to_json(), "low": low, "high": high}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], entries: Mapping[str, Input]) -> Condition:
        """Return the condition that `to_json` wrote, given the columns that it reads."""
        low, high = (math.nan if content[end] is None else float(content[end]) for end in ("low", "high"))
        ends = -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high
        return cls(Covariate.from_json(content, entries), *ends)

    def holds(self, table: Table) -> BoolArray:
        """Return the rows of a table for which it holds."""
        values = self.covariate.values(table)
        return (values >= self.low) & (values <= self.high)

    def __str__(self) -> str:
        one, low, high = self.covariate, self.low, self.high
        name = one.name
        if one.part == "gap":
            return f"{one.entries[0].column} {'without' if low else 'with'} a value"
        if isinstance(one.column, Category) and low >= len(one.column.all_levels):
            return f"{name} without a value"
        if one.part:
            low, high = max(low, 1), min(high, _LAST[one.part])
        if low == high:
            return f"{name} = {one.text(low)}"
        if math.isinf(low) or math.isinf(high):
            return f"{name} up to {one.text(high)}" if math.isinf(low) else f"{name} from {one.text(low)} up"
        return f"{name} from {one.text(low)} to {one.text(high)}"


@dataclass(frozen=True, slots=True)
class TableSegment:
    """A segment of a table: the rows for which all conditions hold."""

    breach: Breach
    conditions: tuple[Condition, ...]

    @property
    def where(self) -> str:
        """Say which rows these are: "zone = B and kg from 31.5 up"."""
        return " and ".join(map(str, self.conditions))

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        entries = (entry for condition in self.conditions for entry in condition.covariate.entries)
        return [*dict.fromkeys(entry.column for entry in entries)]

    @property
    def is_accused(self) -> bool:
        """Whether another rule may hold there: its rows are not called wrong."""
        return self.breach is not Breach.UNEVEN

    def is_in(self, column_names: Collection[str]) -> bool:
        """Return whether a table with these columns shows which of its rows belong to it."""
        return {*self.columns} <= {*column_names}

    def members(self, table: Table) -> BoolArray:
        """Return which rows of a table, or of a block of it, belong to it."""
        found = np.ones(table.n_rows, dtype=bool)
        for condition in self.conditions:
            found &= condition.holds(table)
        return found

    def to_json(self) -> dict[str, object]:
        """Return it as plain values."""
        entries = {entry.column: entry for condition in self.conditions for entry in condition.covariate.entries}
        return {
            "breach": self.breach.name,
            "inputs": [entry.to_json() for entry in entries.values()],
            "conditions": [condition.to_json() for condition in self.conditions],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], target: Target) -> TableSegment:
        """Return the segment that `to_json` wrote; ValueError, TypeError or KeyError where that is none."""
        if content["breach"] not in Breach.__members__:
            raise ValueError(f"breach must be one of {', '.join(Breach.__members__)}, got {content['breach']!r}")
        encoding = Encoding.from_json({"target": target.to_json(), "inputs": content["inputs"]})
        entries = {entry.column: entry for entry in encoding.inputs}
        conditions = tuple(Condition.from_json(one, entries) for one in content["conditions"])
        return cls(Breach[content["breach"]], conditions)


@dataclass(frozen=True, eq=False)
class TableCovariates:
    """The columns by which segments of a table are looked for, and what each is."""

    scan: SegmentScan
    drawn: BoolArray | None  # rows that were drawn at random, where not all were
    ordered: tuple[Covariate, ...]
    levels: tuple[Covariate, ...]

    @classmethod
    def of(
        cls,
        table: Table,
        plan: Plan,
        design: Design,
        *,
        excluded: Collection[str],
        asked: bool,
        drawn: BoolArray | None,
    ) -> TableCovariates:
        """Take all columns of a table but the target, identifiers and those `excluded`.

        Where features were `asked` for, numbers that are none of them are left out, too.
        """
        numbers: dict[Covariate, FloatArray] = {}
        codes: dict[Covariate, NDArray[np.intp]] = {}
        for entry, values in _columns(table, plan, design, excluded, asked):
            one = Covariate((entry,))
            if isinstance(entry, Category) or (isinstance(entry, Flag) and not np.isnan(values).any()):
                codes[one] = values.astype(np.intp)  # levels, of which the ranges of other columns are looked at, too
                continue
            numbers[one] = values
            if isinstance(entry, Date):
                parts: tuple[Part, ...] = ("weekday", "month", "day of month")
                numbers |= {part: part.of(values) for part in (Covariate((entry,), name) for name in parts)}
            if np.isnan(values).any():
                gap = Covariate((entry,), "gap")
                codes[gap] = gap.of(values).astype(np.intp)
        dates = [(one.column, days) for one, days in numbers.items() if isinstance(one.column, Date)]
        for (first, start), (second, end) in combinations(dates[:MOST_DATES], 2):
            is_before = np.count_nonzero(start > end) <= np.count_nonzero(start < end)
            one = Covariate((first, second) if is_before else (second, first))
            numbers[one] = end - start if is_before else start - end
        scan = SegmentScan([*numbers.values()], [*codes.values()])
        return cls(scan, None if drawn is None else drawn[design.kept], tuple(numbers), tuple(codes))

    def named(self, segment: Segment, compared: Sequence[Term] = ()) -> TableSegment:
        """Return a segment that was found in the columns, or in what a rule compared, as one of the table."""
        entries = {one.column.column: one.column for one in (*self.ordered, *self.levels) if one.column is not None}
        more = [Covariate(tuple(entries[name] for name in dict.fromkeys(one.columns())), term=one) for one in compared]
        conditions = [Condition(self.levels[column], code, code) for column, code in segment.levels]
        if segment.column is not None and not (math.isinf(segment.low) and math.isinf(segment.high)):
            conditions.append(Condition([*self.ordered, *more][segment.column], segment.low, segment.high))
        return TableSegment(segment.breach, tuple(conditions))


def _columns(
    table: Table, plan: Plan, design: Design, excluded: Collection[str], asked: bool
) -> Iterator[tuple[Input, FloatArray]]:
    """Yield what each column is, in the order of their names, and its values in the judged rows."""
    inputs = {entry.column: entry for entry in plan.encoding.inputs}
    numbers, levels = design.columns.numbers, design.columns.levels
    barred = {plan.encoding.target.column, plan.id_column, *excluded}
    for name in sorted(table.column_names):
        if name in barred or (name not in inputs and names_rows(table, name)):
            continue
        if name in inputs:
            yield inputs[name], numbers[name] if name in numbers else levels[name].codes.astype(np.float64)
            continue
        try:
            entry = role_of(table, name, asked=True).entry
            if entry is not None and not (asked and isinstance(entry, Number)):
                yield entry, Covariate((entry,)).values(table)[design.kept]
        except TableError:  # of numbers that are infinite, or that float64 does not hold
            continue
