"""Segments of a table by name: the columns by which they are looked for, which rows belong to one, how it is called.

All columns of the table are covariates, also those that are not in the rule: numbers and dates by their order, dates
also by weekday, month and day of the month and two of them by the days between, texts by their levels, and columns with
gaps by whether there is a value.
Not so identifiers, free text, and what the user excluded: such a column may have been made of the target. For that
reason numbers that are no features are left out where features were named.

The rule of the rows in a segment in which the rule of the table breaks is looked for in the same terms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from massart.audit.error_types import MOST_EXAMPLES, UNDER_ANOTHER_RULE, RowErrorType, RowErrorTypes
from massart.certificate import Breach, Segment, SegmentScan
from massart.recover import Covariates, recover
from massart.rows import IDENTITY, ArrayRows, BoolArray, FloatArray, Level
from massart.rules.formula import Formula, compose
from massart.rules.matrix import TermMatrix
from massart.rules.terms import Term
from massart.tables import (
    Category,
    Date,
    Design,
    Flag,
    Number,
    Plan,
    Table,
    TableError,
    category_codes,
    column_values,
    date_texts,
    names_rows,
    role_of,
)

if TYPE_CHECKING:
    from massart.audit.table_audit import Audit


Part = Literal["", "weekday", "month", "day of month", "gap"]

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_LAST = {"weekday": 7, "month": 12, "day of month": 31}
_DIGITS = 10

MOST_DATES = 4
"""Columns of dates between which the days are counted, two by two: six numbers more in a table of many dates."""


@dataclass(frozen=True, slots=True)
class Covariate:
    """A column of a table, or what is known of its dates or gaps, as numbers or codes.

    Attributes
    ----------
    entry : Number, Flag, Date or Category
    part : str
        What of it, if not its values.
    since : Date or None
        The date before, where the days from that one to this are meant.
    """

    entry: Number | Flag | Date | Category
    part: Part = ""
    since: Date | None = None

    @property
    def name(self) -> str:
        """How it is called."""
        if self.since is not None:
            return f"days from {self.since.column} to {self.entry.column}"
        return f"{self.part} of {self.entry.column}" if self.part else self.entry.column

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (self.entry.column,) if self.since is None else (self.since.column, self.entry.column)

    def values(self, table: Table) -> FloatArray:
        """Return it for all rows of a table: NaN where a number is missing; of a category codes, -1 where it is."""
        if isinstance(self.entry, Category):
            return category_codes(table, self.entry).astype(np.float64)
        values = column_values(table, self.entry)
        return self.of(values) if self.since is None else values - column_values(table, self.since)

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
        if isinstance(self.entry, Category):
            levels = self.entry.all_levels
            return levels[int(value)] if value < len(levels) else ""
        if self.part == "weekday":
            return _WEEKDAYS[int(value) - 1]
        if self.part == "month":
            return _MONTHS[int(value) - 1]
        if isinstance(self.entry, Date) and not self.part and self.since is None:
            return str(date_texts(np.array([value]))[0])
        if isinstance(self.entry, Flag) and not self.part:
            return "yes" if value else "no"
        return f"{value:.{_DIGITS}g}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Rows in which a covariate lies in a range, both ends included."""

    covariate: Covariate
    low: float
    high: float

    def holds(self, table: Table) -> BoolArray:
        """Return the rows of a table for which it holds."""
        values = self.covariate.values(table)
        return (values >= self.low) & (values <= self.high)

    def __str__(self) -> str:
        one, low, high = self.covariate, self.low, self.high
        name = one.name
        if one.part == "gap":
            return f"{one.entry.column} {'without' if low else 'with'} a value"
        if isinstance(one.entry, Category) and low >= len(one.entry.all_levels):
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
        return [*dict.fromkeys(name for condition in self.conditions for name in condition.covariate.columns)]

    @property
    def is_accused(self) -> bool:
        """Whether another rule may hold there: its rows are not called wrong."""
        return self.breach is not Breach.UNEVEN

    def members(self, table: Table) -> BoolArray:
        """Return which rows of a table, or of a block of it, belong to it."""
        found = np.ones(table.n_rows, dtype=bool)
        for condition in self.conditions:
            found &= condition.holds(table)
        return found


def with_rows_apart(kinds: RowErrorTypes, apart: BoolArray, n_apart: int) -> RowErrorTypes:
    """Return what happened in each row, with rows that are set apart among it: of a file there may be more of them."""
    if not n_apart:
        return kinds
    first = tuple(np.flatnonzero(apart)[:MOST_EXAMPLES].tolist())
    kind = RowErrorType(UNDER_ANOTHER_RULE, n_apart, UNDER_ANOTHER_RULE, examples=first)
    return RowErrorTypes(np.where(apart, len(kinds.kinds) + 1, kinds.codes), (*kinds.kinds, kind))


@dataclass(frozen=True, eq=False)
class TableCovariates:
    """The columns by which segments of a table are looked for, and what each is."""

    covariates: Covariates
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
            one = Covariate(entry)
            if isinstance(entry, Category):
                own = values.astype(np.intp)
                codes[one] = np.where(own < 0, len(entry.all_levels), own)
                continue
            numbers[one] = values
            if isinstance(entry, Date):
                parts: tuple[Part, ...] = ("weekday", "month", "day of month")
                numbers |= {part: part.of(values) for part in (Covariate(entry, name) for name in parts)}
            if np.isnan(values).any():
                gap = Covariate(entry, "gap")
                codes[gap] = gap.of(values).astype(np.intp)
        dates = [(one.entry, days) for one, days in numbers.items() if isinstance(one.entry, Date) and not one.part]
        for (first, start), (second, end) in combinations(dates[:MOST_DATES], 2):
            is_before = np.count_nonzero(start > end) <= np.count_nonzero(start < end)
            one = Covariate(second, since=first) if is_before else Covariate(first, since=second)
            numbers[one] = end - start if is_before else start - end
        scan = SegmentScan([*numbers.values()], [*codes.values()])
        some = None if drawn is None else drawn[design.kept]
        return cls(Covariates(scan, some), tuple(numbers), tuple(codes))

    def named(self, segment: Segment) -> TableSegment:
        """Return a segment that was found in the columns as one of the table."""
        conditions = [Condition(self.levels[column], code, code) for column, code in segment.levels]
        if segment.column is not None and not (math.isinf(segment.low) and math.isinf(segment.high)):
            conditions.append(Condition(self.ordered[segment.column], segment.low, segment.high))
        return TableSegment(segment.breach, tuple(conditions))


def _columns(
    table: Table, plan: Plan, design: Design, excluded: Collection[str], asked: bool
) -> Iterator[tuple[Number | Flag | Date | Category, FloatArray]]:
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
                yield entry, Covariate(entry).values(table)[design.kept]
        except TableError:  # of numbers that are infinite, or that float64 does not hold
            continue


MOST_ROWS, MOST_COLUMNS = 5_000, 60
"""Rows of a segment among which its rule is looked for, and columns in which it is, at most."""

ROWS_A_COLUMN = 3
"""A segment with fewer rows for each column that varies in it has no rule: any table has a formula for so few."""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentRule:
    """What the rows of a segment follow.

    Attributes
    ----------
    formula : Formula
    n_agree, n_rows : int
        Rows of the segment that follow it, of those that were looked at.
    """

    formula: Formula
    n_agree: int
    n_rows: int

    def __str__(self) -> str:
        return f"{self.formula.text()} ({self.n_agree:,} of {self.n_rows:,})"


def with_segment_rule(audit: Audit, seed: int = 0) -> Audit:
    """Return an audit with the rule of its segment, if its rows have one.

    It is a sum of the terms of the first rule, or of these and the plain columns, and needs a majority of the rows in
    every direction. That the rows of a segment were chosen by labels is not accounted for: nothing is claimed
    but how many rows follow it.
    """
    from massart.audit.finding import plain_terms

    segment, columns = audit.segment, audit.design.columns
    if segment is None or not segment.is_accused or not audit.is_rule or columns.n_rows != len(audit.agree):
        return audit
    if audit.agreement.level is Level.NOISE:
        return audit
    rows = np.flatnonzero(segment.members(audit.table)[audit.design.kept])
    rng = np.random.default_rng(seed)
    if len(rows) > MOST_ROWS:
        rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
    plain = plain_terms(audit.plan.encoding)
    used = tuple(term.term for term in audit.formula.terms if term.coef and term.term and not term.term.needs_order)
    for terms in dict.fromkeys((used, (*plain, *(term for term in used if term not in plain)))):
        found = _rule_of(audit, rows, terms, rng)
        if found is not None:
            return audit.having(segment_rule=found)
    return audit


def _rule_of(
    audit: Audit, rows: NDArray[np.intp], terms: tuple[Term, ...], rng: np.random.Generator
) -> SegmentRule | None:
    """Return the rule of some rows in some terms, those that vary there; None if there is none."""
    if not 0 < len(terms) <= MOST_COLUMNS:
        return None
    X = TermMatrix(audit.design.columns, terms)[rows]
    varied = np.flatnonzero((X != X[:1]).any(axis=0))
    if len(rows) < ROWS_A_COLUMN * (len(varied) + 1) or not len(varied):
        return None
    tolerance: float | Literal["auto"] = audit.agreement.label if audit.agreement.level is Level.GIVEN else "auto"
    table = ArrayRows(X[:, varied], audit.given[rows], intercept=True)
    found = recover(table, tolerance=tolerance, inliers="exact", rng=rng)
    (certificate,) = found.certificates
    n_agree = int(np.count_nonzero(found.agree))
    if not certificate.verdict.stands or 2 * n_agree <= len(rows):
        return None
    shown = [terms[j] for j in varied.tolist()]
    numbers = found.coef[:, 0], found.fractions[0], found.standard_errors[:, 0]
    formula = compose(audit.formula.target, shown, *numbers, certificate, IDENTITY)
    return SegmentRule(formula, n_agree, len(rows))
