"""One table, one target column: the formula, the certificate, and every row judged."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.chains import Chains, chains_of
from massart.audit.changes import NO_COLUMNS
from massart.audit.error_types import (
    BEFORE_IS_WRONG,
    UNDER_ANOTHER_RULE,
    UNEXPLAINED,
    RowErrorType,
    RowErrorTypes,
    RuleRows,
    kinds_of,
)
from massart.audit.explanations import RowLabels
from massart.audit.implied import implied_values, places_of, residuals, ways_to_round, with_constant
from massart.audit.judged import Judged
from massart.audit.model_file import SavedModel
from massart.audit.second_rule import SecondRule, SegmentRule, second_rule_of
from massart.audit.segments import TableSegment
from massart.certificate import Certificate, Verdict, span_of
from massart.options import FitOptions
from massart.report import (
    Findings,
    GroupCount,
    Notice,
    Report,
    ReportRows,
    Rest,
    RowKinds,
    SegmentFacts,
    Usage,
    called_wrong,
    count,
    explain_saved,
    usage_of,
)
from massart.rows import AGREES, KINDS, LAST_PLACE, Agreement, BoolArray, FloatArray, tally_of
from massart.rules import Columns, Formula, Matrix, Rates, plain_number, rates_by_level
from massart.tables import Design, Plan, Table, TableError, column_values, encode, frame_like, free_name, groups_of

ROW = "row"
"""The column of an audit that counts the rows of the table, from 1, its header not counted."""

_FEW_TERMS = 8  # in one line
_MOST_LEVELS = 40  # of a column of numbers that has rates by level
_MARKS = np.arange(KINDS)
_VERSIONS = ("massart", "numpy", "scipy", "pyarrow")


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """What all rows of a file say, where only some of them were kept: sums over blocks."""

    judged: Judged
    # (m,), kept rows that were drawn at random; the others are rare by their columns, or the worst
    drawn: BoolArray
    usage: tuple[Usage, ...]  # of each coefficient; empty where this was not counted
    kinds: RowErrorTypes  # what happened in each kept row that was judged, and in how many of all
    places: int | None  # to which implied values are rounded
    second_rule: SecondRule | None = None  # which wrong rows follow


@dataclass(frozen=True)
class Audit:
    """A table, the formula behind one of its columns, and what that says of each row.

    Rows with missing values are not judged: `design.kept` has the numbers of the others, and the arrays are theirs.

    Attributes
    ----------
    table : Table
    plan : Plan
        Which columns were used, and how.
    design : Design
        The table as numbers.
    X : (n, d) array or TermMatrix
        The values of the terms in the judged rows.
    formula : Formula
        Without a rule (verdict NONE), what came closest.
    certificate : Certificate
    agree : (n,) boolean array
        Judged rows that follow the formula.
    last_place : (n,) boolean array
        Those that do not, by one unit of the last place.
    notices : tuple of str
        Columns and rows left out, levels of categories, the kind of formula.
    whole : Whole or None
        Where `table` has only some rows of a file: what all of them say.
    saved : SavedModel or None
        Where the formula was not found in these rows: where it comes from. The verdict is that of the rows it was found
        in.
    frame : data frame or None
        What came in, if it was a data frame: `rows` and `fixed` are such frames, with its index.
    chains : Chains or None
        Where the rule looks at other rows: what those that are known to be right imply.
    segment : TableSegment or None
        The segment of the table in which rows that do not follow the formula crowd, if there is one. If most of its
        rows break the formula, these are set apart and not called wrong.
    segment_rule : SegmentRule or None
        What the rows of that segment follow instead, if it is known.
    options : FitOptions
        What was asked for.
    """

    table: Table
    plan: Plan
    design: Design
    X: Matrix
    formula: Formula
    certificate: Certificate
    agree: BoolArray
    last_place: BoolArray
    notices: tuple[str, ...]
    whole: Whole | None = None
    saved: SavedModel | None = None
    frame: object | None = None
    chains: Chains | None = None
    segment: TableSegment | None = None
    segment_rule: SegmentRule | None = None
    options: FitOptions = field(default_factory=FitOptions)

    def having(self, **others: Any) -> Audit:
        """Return the same with other notices, options or frame: what is known of its rows is not computed again."""
        changed = replace(self, **others)
        changed.__dict__.update({name: value for name, value in vars(self).items() if name not in vars(changed)})
        return changed

    @property
    def chained(self) -> Audit:
        """The same; where the rule looks at other rows, right ones that stand after a wrong one agree."""
        if not self.is_rule or self.whole is not None or self.chains is not None:
            return self
        if not any(term.coef and term.term and term.term.needs_order for term in self.formula.terms):
            return self
        columns = encode(self.table, self.plan.encoding, with_target=False).columns
        y = column_values(self.table, self.plan.encoding.target)
        columns = replace(columns, numbers={**columns.numbers, self.formula.target: y})
        rule = self.formula, self.agreement, places_of(self.X, self.formula, self.agreement)
        chains = chains_of(self.table.name, columns, self.design.kept, rule, self.certificate.wrong_at_most)
        if chains is None:
            return self
        agree, notices = self.agree | chains.follows, (*self.notices, *chains.notices)
        return replace(self, agree=agree, chains=chains, notices=notices)

    @property
    def n_total(self) -> int:
        """Number of rows of the table or of the file, judged or not."""
        return self.design.n_total if self.whole is None else self.whole.judged.n_rows

    @cached_property
    def _tally(self) -> FloatArray:
        """The judged rows of the table or file by their marks."""
        if self.whole is not None:
            return self.whole.judged.tally
        return tally_of((self.agree * AGREES | self.last_place * LAST_PLACE).astype(np.uint8))

    @property
    def n_judged(self) -> int:
        """Number of judged rows."""
        return int(self._tally.sum())

    @property
    def n_agree(self) -> int:
        """Number of judged rows that follow the formula."""
        return int(self._tally[_MARKS & AGREES > 0].sum())

    @property
    def n_last_place(self) -> int:
        """Number of rows that are off by one unit of the last place."""
        return int(self._tally[_MARKS & (AGREES | LAST_PLACE) == LAST_PLACE].sum())

    @cached_property
    def wrong(self) -> BoolArray:
        """Judged rows that are called wrong: not those off by a last place or set apart, and none without a rule."""
        return called_wrong(self.certificate, self.agree, self.last_place, self.apart)

    @property
    def n_wrong(self) -> int:
        """Number of wrong rows."""
        return self.n_judged - self.n_agree - self.n_last_place - self.n_apart if self.is_rule else 0

    @cached_property
    def _in_segment(self) -> BoolArray:
        """Judged rows in the segment in which rows that do not follow the formula crowd."""
        if self.segment is None or not self.is_rule:
            return np.zeros(len(self.agree), dtype=bool)
        return self.segment.members(self.table)[self.design.kept]

    @property
    def segment_apart(self) -> TableSegment | None:
        """The segment whose rows are set apart where they break the formula, since another rule may hold there."""
        return self.segment if self.is_rule and self.segment is not None and self.segment.is_accused else None

    @cached_property
    def apart(self) -> BoolArray:
        """Judged rows that are set apart."""
        return self._in_segment & ~self.agree & ~self.last_place & (self.segment_apart is not None)

    @cached_property
    def _segment_counts(self) -> tuple[int, int]:
        """Judged rows in that segment, and those of them that neither agree nor are off by a last place only."""
        if self.whole is not None:
            n, k = self.whole.judged.segment.tolist()
            return n, k
        off = self._in_segment & ~self.agree & ~self.last_place
        return int(self._in_segment.sum()), int(off.sum())

    @property
    def n_apart(self) -> int:
        """Number of rows that are set apart."""
        return 0 if self.segment_apart is None else self._segment_counts[1]

    @property
    def segment_facts(self) -> SegmentFacts | None:
        """The segment in which rows that do not follow the formula crowd, in words and numbers."""
        if self.segment is None or not self.is_rule:
            return None
        n, k = self._segment_counts
        off_elsewhere = self.n_judged - self.n_agree - self.n_last_place - k
        rule = "" if self.segment_rule is None else str(self.segment_rule)
        return SegmentFacts(self.segment.where, n, k, self.n_judged - n, off_elsewhere, rule)

    @property
    def wrong_share(self) -> float:
        """Share of the judged rows that are wrong."""
        return self.n_wrong / self.n_judged

    @property
    def is_rule(self) -> bool:
        """Whether there is a rule at all."""
        return self.certificate.verdict is not Verdict.NONE

    @property
    def is_certain(self) -> bool:
        """Whether the verdict is PROVEN or CONFIRMED."""
        return self.certificate.verdict.certain

    @property
    def unfit_to_fix(self) -> str:
        """Why nothing is replaced by what the rule implies; "" where that is done, or there is no rule."""
        if not self.is_rule:
            return ""
        if not self.is_certain:
            return Notice("uncertain", verdict=self.certificate.verdict.name)
        return Notice("not followed") if self.saved is not None and 2 * self.n_wrong >= self.n_judged else ""

    @property
    def agreement(self) -> Agreement:
        """When a row agrees."""
        return self.certificate.agreement

    @property
    def explanation(self) -> str:
        """The certificate in words; of a saved formula, how these rows follow it, and what was known before."""
        if self.saved is not None:
            return explain_saved(self.n_agree, self.n_judged, self.saved.explanation)
        return self.certificate.explain(self.formula.names, self.segment_facts)

    @property
    def given(self) -> FloatArray:
        """The target of the judged rows, as the table has it."""
        return self.design.labels

    @cached_property
    def rates(self) -> tuple[Rates, ...]:
        """Rates by level in the rule: of each of its categories that multiplies something, the base level included."""
        columns = self.design.columns
        levels = {name: tuple(sorted(coded.names)) for name, coded in columns.levels.items()}
        named = {term.term.factors for term in self.formula.terms if term.coef and term.term is not None}
        for factor in {
            f for factors in named for f in factors if f.op in ("level", "in") and isinstance(f.parts[0], str)
        }:
            name = str(factor.parts[0])
            if name in columns.numbers and len(values := np.unique(columns.numbers[name])) <= _MOST_LEVELS:
                levels[name] = tuple(plain_number(value) for value in values.tolist())
        return rates_by_level(self.formula, levels) if self.is_rule else ()

    @property
    def bases(self) -> dict[str, str]:
        """The base level of each category with amounts by level in the rule: the one that has no term."""
        return dict(self.formula.bases)

    @cached_property
    def left_open(self) -> FloatArray:
        """Directions of coefficients that no row that agrees determines: (d, m), the constant last.

        Of a row that has a part in one the rule says nothing: a charge that one row has may be right or wrong.
        """
        d = len(self.formula.all_terms)
        if self.saved is None and not self.certificate.thin and not self.certificate.undetermined_columns:
            return np.zeros((d, 0))
        return span_of(with_constant(self.X[np.flatnonzero(self.agree)], d)).undetermined

    @cached_property
    def implied(self) -> FloatArray:
        """What the formula gives for the judged rows; where it looks at other rows, from those put right."""
        if self.chains is not None:
            return self.chains.implied
        places = places_of(self.X, self.formula, self.agreement) if self.whole is None else self.whole.places
        return implied_values(self.X, self.formula, places)

    @property
    def ways_to_round(self) -> tuple[int, ...]:
        """How half a unit is rounded, as far as right rows show; see :func:`massart.audit.implied.ways_to_round`."""
        X, right = self.X if self.chains is None else self.chains.X, np.flatnonzero(self.agree)
        return ways_to_round(X, self.formula, places_of(self.X, self.formula, self.agreement), self.given, right)

    @cached_property
    def second_rule(self) -> SecondRule | None:
        """Another rule that rows follow in which nothing else is known to have happened; None if there is none."""
        if self.whole is not None:
            return self.whole.second_rule
        return second_rule_of(self, self._usual_kinds.unexplained)

    @cached_property
    def kinds(self) -> RowErrorTypes:
        """What happened in each judged row."""
        found = self._usual_kinds
        if self.whole is None and self.second_rule is not None:  # counts of a file have it
            found = found.with_kind(self.second_rule.kind, self.second_rule.rows)
        apart = RowErrorType(UNDER_ANOTHER_RULE, 0, UNDER_ANOTHER_RULE)
        return found.with_kind(apart, np.flatnonzero(self.apart), self.n_apart)

    @cached_property
    def _usual_kinds(self) -> RowErrorTypes:
        if self.whole is not None:
            return self.whole.kinds
        found = kinds_of(self.rule_rows, self._together())
        if self.chains is None:
            return found
        return found.with_kind(RowErrorType(BEFORE_IS_WRONG, 0, BEFORE_IS_WRONG), np.flatnonzero(self.chains.follows))

    @property
    def columns(self) -> Columns:
        """The columns of the judged rows, where these are here as they are."""
        columns = self.design.columns
        return columns if columns.n_rows == len(self.design.kept) else NO_COLUMNS

    @property
    def labels(self) -> RowLabels:
        """The judged rows next to the formula."""
        numbers = self.numbers_of(self.design.kept)
        return RowLabels(self.given, self.implied, self.wrong, self.last_place & self.is_rule, numbers=numbers)

    @property
    def rule_rows(self) -> RuleRows:
        """The judged rows with their terms; where the rule looks at other rows, with those put right."""
        X = self.X if self.chains is None else self.chains.X
        return RuleRows(X, self.formula, self.agreement, self.labels, self.columns)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The judged rows, worst first: wrong ones by the size of the residual, then last places, then the others."""
        kind = np.where(self.wrong, 0, np.where(self.last_place, 1, 2))
        return np.lexsort((-np.abs(self.given - self.implied), kind))

    def rows(self) -> Any:
        """Return the audit as a frame of the kind that came in, or as columns.

        They are: row, those of the table, given, implied, residual, wrong, kind, rank.
        The worst row comes first, rows that were not judged last, without values. Without a rule nothing is implied. Of
        a file larger than memory these are the rows that were kept: its worst, and others drawn at random.
        """
        left_out = np.setdiff1d(np.arange(self.design.n_total), self.design.kept)
        hidden = () if self.is_rule else ("implied", "residual")
        values = {
            name: _padded(value, 0 if name in hidden else len(value), len(left_out))
            for name, value in self._judged(self.order).items()
        }
        return self._in_full(np.concatenate([self.design.kept[self.order], left_out]), values)

    def wrong_rows(self) -> Any:
        """Return the same columns, but for the rank, of the wrong rows, in the order of the table."""
        order = np.flatnonzero(self.wrong)
        values = {name: value for name, value in self._judged(order).items() if name != "rank"}
        return self._in_full(self.design.kept[order], values)

    @staticmethod
    def column_of(columns: Iterable[str], name: str) -> str:
        """Return the column of an audit that holds what `name` says: one of the table may be called the same.

        Examples
        --------
        >>> Audit.column_of(["row", "kind", "given", "implied", "residual", "wrong", "kind_", "rank"], "kind")
        'kind_'
        """
        ordered = [*columns]
        return next(each for each in (ordered if name == ROW else reversed(ordered)) if each.rstrip("_") == name)

    def worst(self, most: int) -> dict[str, Any]:
        """Return the same columns of the `most` worst wrong rows, as lists of plain values."""
        return self.some(self.order[: min(most, int(np.count_nonzero(self.wrong)))])

    def some(self, order: NDArray[np.intp]) -> dict[str, Any]:
        """Return the same columns of some judged rows, as lists of plain values; the rank is their order here."""
        numbers = self.design.kept[order]
        columns = audit_columns(
            self.numbers_of(numbers) + 1, self.table.cells(self.plan.naming, numbers), self._judged(order)
        )
        return {name: values if isinstance(values, list) else values.tolist() for name, values in columns.items()}

    def _judged(self, order: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        values = judged_values(self.given[order], self.implied[order], self.wrong[order], self.kinds.of(order))
        return values | {"rank": np.arange(1, len(order) + 1)}

    def _in_full(self, numbers: NDArray[np.intp], values: Mapping[str, Any]) -> Any:
        """Put all columns of the table before the values, those that name a row first."""
        names = dict.fromkeys([*self.plan.naming, *self.table.column_names])
        rows = self.table.arrow.select([*names]).take(pa.array(numbers))
        found = audit_columns(self.numbers_of(numbers) + 1, dict(zip(names, rows.columns, strict=True)), values)
        return found if self.frame is None else frame_like(self.frame, found, numbers)

    def numbers_of(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the numbers in the file, from 0, of rows of `table`."""
        return rows if self.table.numbers is None else self.table.numbers[rows]

    def fixed(self, *, fill: bool = False, force: bool = False) -> Any:
        """Return the table, or a frame of the kind that came in, with the wrong targets replaced.

        What was given stays in the next column.

        Behind the other columns stand which rows were wrong and what happened in them. With `fill`, targets that are
        missing are replaced, too, where the formula gives them. Nothing is replaced by a rule that is not certain, or
        by a saved one that most of these rows do not follow, unless by `force`.

        Raises
        ------
        TableError
            If that is so.
        """
        from massart.audit.fixing import fixed_table

        if (why := self.unfit_to_fix) and not force:
            raise TableError(f"{why}; fixed(force=True) does it anyway")
        found = fixed_table(self, fill=fill)
        return found if self.frame is None else frame_like(self.frame, found.arrow, np.arange(found.n_rows))

    def model(self) -> SavedModel:
        """Return what is needed to apply the formula to another table."""
        known = self.certificate.verdict.name, self.explanation
        rule = self.plan.encoding, self.formula, self.agreement
        return SavedModel(*rule, *known, self.options, self.segment_apart).weighed

    def groups(self) -> tuple[GroupCount, ...]:
        """Return rows and wrong rows for each value of the group column, the largest share of wrong rows first."""
        if self.plan.group_column is None:
            return ()
        if self.whole is None:
            counts = count_groups(self.table, self.plan.group_column, self.design.kept, self.wrong)
        else:
            counts = self.whole.judged.groups
        groups = [GroupCount(name, *facts) for name, facts in counts.items()]
        return tuple(sorted(groups, key=lambda group: (-group.n_wrong / group.n_rows, -group.n_wrong, group.name)))

    def usage(self) -> tuple[Usage, ...]:
        """Return how many rows use each coefficient, and how many of them agree."""
        if self.whole is not None:
            return self.whole.usage
        return usage_of(self.X, self.agree, constant=self.formula.intercept is not None)

    def findings(self, facts: Mapping[str, str] | None = None) -> Findings:
        """Return what a report shows."""
        inputs = self._read()
        shown = self.plan.naming

        def cells(rows: NDArray[np.intp]) -> Mapping[str, Sequence[object]]:
            numbers = self.design.kept[rows]
            others = (name for name in self.table.column_names if name != self.formula.target)
            found = self.table.cells([*dict.fromkeys([*shown, *inputs, *others])], numbers)
            return found if self.plan.id_column else {ROW: (self.numbers_of(numbers) + 1).tolist()} | found

        words = self.kinds.words
        kinds = RowKinds(words, self.kinds.codes, words.index(UNEXPLAINED) if UNEXPLAINED in words else -1)
        group, groups = self.plan.group_column, self.groups()
        rest = None
        if self.whole is not None:
            codes = (0, *(kind.rows for kind in self.kinds.kinds))
            rest = Rest(self.whole.drawn[self.design.kept], self.n_wrong, codes)
        rows = ReportRows(self.given, self.implied, self.agree, self.wrong, cells, group, groups, kinds, rest, self.X)
        return Findings(
            title=self.table.name,
            formula=self.formula,
            certificate=self.certificate,
            n_rows=self.n_judged,
            n_agree=self.n_agree,
            n_wrong=self.n_wrong,
            usage=self.usage(),
            rows=rows if self.is_rule else None,
            notices=self.notices,
            facts={**(facts or {}), "versions": versions()},
            n_left_out=self.n_total - self.n_judged,
            bases=self.bases,
            rates=self.rates,
            n_apart=self.n_apart,
            segment=self.segment_facts,
            is_saved=self.saved is not None,
        )

    def report(self, facts: Mapping[str, str] | None = None) -> Report:
        """Return the page that shows it; ``report().save("report.html")`` writes it."""
        return Report(self.findings(facts))

    def __repr__(self) -> str:
        counts = f"{self.certificate.verdict.name}, {self.n_wrong:,} of {count(self.n_judged, 'rows')} wrong"
        formula = f"{self.formula.text(_FEW_TERMS)}; " if self.is_rule else ""
        return f"<Audit of {self.table.name}: {formula}{counts}>"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def _read(self) -> list[str]:
        """Return the columns that the formula reads; of plain columns all that it might."""
        shown = (term.term for term in self.formula.terms if term.is_shown and term.term is not None)
        return list(dict.fromkeys(name for term in shown for name in term.columns()))

    def _together(self) -> NDArray[np.intp] | None:
        """Return numbers of the judged rows, equal where they have the same id or, with ids of their own, group.

        None without such a column, and where rows are missing that may have the same.
        """
        for name in (self.plan.id_column, self.plan.group_column):
            if name is not None and self.design.columns.ordered:
                codes, names = groups_of(self.table, name)
                if len(names) <= len(codes):
                    return codes[self.design.kept]
        return None


def count_groups(table: Table, column: str, kept: NDArray[np.intp], wrong: BoolArray) -> dict[str, tuple[int, int]]:
    """Return for each value of a column how many of the judged rows have it, and how many of these are wrong."""
    codes, names = groups_of(table, column)
    codes = codes[kept]
    rows = np.bincount(codes, minlength=len(names)).tolist()
    off = np.bincount(codes[wrong], minlength=len(names)).tolist()
    return {name: (n, k) for name, n, k in zip(names, rows, off, strict=True) if n}


def versions() -> str:
    """Return the versions of what the answer depends on, in one line."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _VERSIONS)])


def audit_columns(numbers: NDArray[np.intp], cells: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Put the numbers of rows before their cells, and values behind; the columns of the table keep their names."""
    columns = {free_name(ROW, cells): numbers, **cells}
    return columns | {free_name(name, columns): value for name, value in values.items()}


def judged_values(given: FloatArray, implied: FloatArray, wrong: BoolArray, kind: Any) -> dict[str, Any]:
    """Return what an audit says of judged rows, by column."""
    return {"given": given, "implied": implied, "residual": residuals(given, implied), "wrong": wrong, "kind": kind}


def _padded(values: NDArray[Any], n_shown: int, n_missing: int) -> NDArray[Any]:
    """Return the first `n_shown` values, then none, also for the rows that were not judged."""
    hidden = values.mask if isinstance(values, np.ma.MaskedArray) else np.zeros(len(values), dtype=bool)
    padded = np.concatenate([np.asarray(values), np.zeros(n_missing, dtype=values.dtype)])
    mask = np.concatenate([hidden, np.ones(n_missing, dtype=bool)]) | (np.arange(len(padded)) >= n_shown)
    return np.ma.MaskedArray(padded, mask=mask)
