"""Rows next to a rule: ``judge(block, rule)`` is a :class:`Judged`, and these add up.

A table in memory is one block, a file many; a block may be judged by another process or on another machine, and a saved
model is a rule like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.coincidence import SURE
from massart.audit.error_types import (
    NOTHING,
    UNDER_ANOTHER_RULE,
    Catalogue,
    RowErrorType,
    RowErrorTypes,
    RuleRows,
)
from massart.audit.explanations import NO_ROWS, SWAPPED, RowLabels, swapped_rows
from massart.audit.fixing import Corrections
from massart.audit.implied import (
    check_order,
    implied_values,
    marks_of,
    places_of,
    plain_terms,
    rows_with_values,
    with_target,
    with_values,
)
from massart.audit.judged import KEPT_ROWS, NONE, ROWS_KEPT, Judged, KeptRows, largest
from massart.audit.model_file import SavedModel
from massart.audit.second_rule import SecondRule
from massart.audit.segments import TableSegment
from massart.audit.table_audit import Audit, audit_columns, count_groups, judged_values
from massart.certificate import Verdict
from massart.report import usage_of
from massart.rows import (
    AGREES,
    KINDS,
    LAST_PLACE,
    Agreement,
    BoolArray,
    Columnwise,
    FloatArray,
    in_order,
    tally_of,
)
from massart.rules import Columns, Formula, Matrix, Term, TermMatrix
from massart.tables import Design, Gap, Plan, Table, TableError, column_values, encode

Writer: TypeAlias = Callable[[pa.Table], None]
"""Takes the next part of a file."""


@dataclass(frozen=True, slots=True, eq=False)
class RowRule:
    """A rule as rows are judged by it, wherever they are: it can be sent, and knows nothing of the table."""

    plan: Plan  # of the columns that the formula reads, and of those that lack values
    formula: Formula  # without the terms of a library that are not in the rule
    agreement: Agreement
    used: tuple[int, ...]  # the places of its coefficients among those of the whole library
    places: int | None  # to which implied values are rounded
    strict: bool = False  # whether a missing value is an error
    catalogue: Catalogue = NOTHING
    is_rule: bool = True  # without one no row is called wrong
    whole_numbers: bool = False  # whether implied values are whole
    # numbers of rows, in order, that are kept, whatever is found of them
    asked: NDArray[np.intp] = field(default_factory=lambda: NONE)
    # numbers of the rows, in order, that were swapped with others
    swapped: NDArray[np.intp] = field(default_factory=lambda: NONE)
    pairs: bool = False  # whether wrong rows are kept, to find those that were swapped
    # whether the formula was found elsewhere: then the rows that do not agree show how many places they imply, what is
    # next to them is kept, and rows for which a term has no value are left out
    is_saved: bool = False
    counts_usage: bool = True  # whether it is counted how many rows use each coefficient
    # (k, m), directions of its coefficients in which a row is not put right: the rule says nothing of them
    left_open: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    ways: tuple[int, ...] = ()  # in which half a unit may be rounded
    segment: TableSegment | None = None  # rows that break the rule there are set apart
    rows_kept: int = ROWS_KEPT  # wrong rows, those with the largest residuals
    second: SecondRule | None = None  # which wrong rows follow: they have the first kind of the catalogue

    @classmethod
    def of(cls, audit: Audit, gappy: frozenset[str], strict: bool, *, is_all: bool = False) -> RowRule:
        """Take the rule that was found in some rows, or all; columns that are `gappy` may lack values in others."""
        full, agreement = audit.formula, audit.agreement
        used = [j for j, term in enumerate(full.terms) if term.is_shown or term.coef]
        formula = replace(full, terms=tuple(full.terms[j] for j in used))
        if full.intercept is not None:
            used.append(len(full.terms))
        if agreement.inputs:
            agreement = replace(agreement, inputs=tuple(agreement.inputs[j] for j in used))
        catalogue, second = NOTHING, None
        if audit.is_rule:  # the errors by which rows of a file are known: a second rule first
            second = None if audit.second_rule is None else audit.second_rule.of_file(NONE, 0)
            first = None if second is None else second.kind
            catalogue = Catalogue.of(audit.kinds, audit.rule_rows, first, is_all=is_all)
        read = {name for term in full.terms if term.term for name in term.term.columns()} | gappy | catalogue.reads
        read |= frozenset() if second is None else second.reads
        encoding = audit.plan.encoding
        encoding = replace(encoding, inputs=tuple(entry for entry in encoding.inputs if entry.column in read))
        return cls(
            replace(audit.plan, encoding=encoding, notices=(), of_rows=()),
            formula,
            agreement,
            tuple(used),
            places_of(audit.X, full, audit.agreement),
            strict,
            catalogue,
            audit.is_rule,
            bool((audit.implied == np.rint(audit.implied)).all()),
            audit.numbers_of(np.arange(audit.table.n_rows)),
            left_open=audit.left_open[used],
            ways=audit.ways_to_round if audit.is_rule else (),
            segment=audit.segment_apart,
            second=second,
        )

    @property
    def pairing(self) -> RowRule:
        """The one that keeps wrong rows, and asks for nothing else."""
        plan = replace(self.plan, id_column=None, group_column=None)
        return replace(self, plan=plan, catalogue=NOTHING, asked=NONE, pairs=True, second=None)

    def within(self, start: int, stop: int) -> RowRule:
        """Return the one for rows with these numbers: of other rows it knows nothing."""
        asked, swapped = (_between(numbers, start, stop) for numbers in (self.asked, self.swapped))
        return replace(self, asked=asked, swapped=swapped)

    @classmethod
    def of_model(
        cls, model: SavedModel, id_column: str | None = None, group_column: str | None = None, **others: Any
    ) -> RowRule:
        """Take a saved rule, and what else is known of the table and asked for."""
        formula, agreement = model.formula, model.agreement
        used = tuple(range(len(formula.all_terms)))
        is_rule = model.verdict != Verdict.NONE.name
        known: dict[str, Any] = {"is_rule": is_rule, "is_saved": True, "segment": model.segment}
        plan = Plan(model.encoding, id_column, group_column, ())
        return cls(plan, formula, agreement, used, agreement.places, **known, **others)

    @property
    def nothing(self) -> Judged:
        """The sum of no rows."""
        usage, kinds = np.zeros((len(self.used), 2), np.int64), np.zeros(len(self.catalogue.kinds) + 1, np.intp)
        return Judged(0, np.zeros(KINDS), usage, kinds, KeptRows(self.rows_kept))

    @property
    def columns(self) -> list[str]:
        """The columns of the table that are read."""
        encoding = self.plan.encoding
        names = [*(entry.column for entry in encoding.inputs), encoding.target.column]
        read = [] if self.segment is None else self.segment.columns
        return [*dict.fromkeys([*names, *self.plan.naming, *read])]

    def terms(self, columns: Columns, X: FloatArray | Columnwise, formula: Formula) -> Matrix:
        """Return the values of the terms of a formula, given all columns and the plain ones as a matrix."""
        terms = [term.term for term in formula.terms if term.term is not None]
        return X if tuple(terms) == plain_terms(self.plan.encoding) else TermMatrix(columns, terms)

    @property
    def looks_around(self) -> bool:
        """Whether what happened in a row may depend on those next to it."""
        return self.is_rule and self.catalogue.looks_around

    def ends(self, block: Table) -> NDArray[np.void]:
        """Return the first and the last row of a block, as the rows next to them ask for them."""
        assert isinstance(block.numbers, np.ndarray)
        rows = np.unique([0, block.n_rows - 1])
        few = replace(block, arrow=block.arrow.take(pa.array(rows)), numbers=block.numbers[rows])
        try:
            found = self.rows(few)
        except ValueError:  # which is raised when it is the turn of the block
            return NO_ROWS
        return found.labels.at(np.arange(len(found.kept)))

    def marked(
        self, table: Table, *, is_part: bool, is_finite: bool = False
    ) -> tuple[Design, Matrix, NDArray[np.uint8]]:
        """Return the judged rows of a table as numbers, the values of the terms there, and whether they agree.

        The table may be some rows of another; its floats may be taken to be finite, unseen.
        """
        terms = [term.term for term in self.formula.terms if term.term is not None]
        X: Matrix
        if any(term.needs_order for term in terms):
            design, X = self._in_order(table, terms, is_part=is_part)
        else:
            design = encode(table, self.plan.encoding, strict=self.strict, is_part=is_part, is_finite=is_finite)
            X = self.terms(design.columns, design.X, self.formula)
        try:
            return design, X, self._marks(table, design, X)
        except TableError:
            if is_finite:  # products are checked more quickly than columns
                return self.marked(table, is_part=is_part)
            if self.is_saved and isinstance(X, TermMatrix):
                there, gaps = rows_with_values(X, design.gaps)
                if len(there) < len(X):
                    design, X = design.take(there, gaps=gaps), X.take(there)
                    return design, X, self._marks(table, design, X)
            raise

    def _marks(self, table: Table, design: Design, X: Matrix) -> NDArray[np.uint8]:
        return marks_of(table.name, X, design.labels, self.formula, self.agreement)

    def _in_order(self, table: Table, terms: Sequence[Term], *, is_part: bool) -> tuple[Design, Matrix]:
        """Return the rows that have a target and all terms; those of a model may look back at rows without a target."""
        name = self.formula.target
        with_gaps = self.is_saved and not self.strict
        design = encode(table, self.plan.encoding, strict=self.strict, with_target=not with_gaps, is_part=is_part)
        design = replace(design, columns=replace(design.columns, ordered=not is_part))
        check_order(design, terms)
        if with_gaps:
            design = replace(design, y=column_values(table, self.plan.encoding.target)[design.kept])
        design, X = with_values(design, TermMatrix(with_target(design, name), terms))
        there = np.flatnonzero(~np.isnan(design.labels))
        if len(there) < len(X):
            gaps = {**design.gaps, Gap(name, "no", ""): len(X) - len(there)}
            design, X = design.take(there, gaps=gaps), X.take(there)
        return design, X

    def rows(self, block: Table, around: NDArray[np.void] = NO_ROWS) -> BlockRows:
        """Judge the rows of a block; what is next to them, if they are a part, is `around`."""
        design, X, marks = self.marked(block, is_part=True, is_finite=True)
        y, formula, kept, columns = design.labels, self.formula, design.kept, design.columns
        assert isinstance(block.numbers, np.ndarray)
        n, numbers, off = len(y), block.numbers if len(y) == block.n_rows else block.numbers[kept], NONE
        nothing, codes, inside = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
        labels = RowLabels(y, np.zeros(n), nothing, nothing, numbers=numbers, around=around)
        if n and self.is_rule:
            off = np.flatnonzero(marks & AGREES == 0)
            last_place = marks & (AGREES | LAST_PLACE) == LAST_PLACE
            if self.segment is not None:
                inside = self.segment.members(block)[kept]
            wrong = (marks & (AGREES | LAST_PLACE) == 0) & ~inside
            # A row may have its neighbour's value; if not, nobody asks what right rows imply.
            index = np.arange(n) if self.looks_around else off
            if self.is_saved and not self.looks_around:
                around_them = np.concatenate([index - 1, index, index + 1, [0, n - 1]])
                index = np.unique(around_them[(around_them >= 0) & (around_them < n)])
            places = self._places(X, index)
            labels.implied[index] = implied_values(X, formula, places, index)
            swapped = np.zeros(n, dtype=bool)
            swapped[off] = np.isin(numbers[off], _between(self.swapped, numbers[0], numbers[-1] + 1))
            labels = replace(labels, wrong=wrong, last_place=last_place, swapped=swapped)
            codes = self.catalogue.codes(RuleRows(X, formula, self.agreement, labels, columns))
            if self.second is not None:
                codes[self.second.follow(columns, y, np.flatnonzero(wrong))] = 1
        return BlockRows(self, block, kept, design.gaps, X, columns, marks, labels, codes, off, inside)

    def _places(self, X: Matrix, rows: NDArray[np.intp]) -> int | None:
        """Return to how many places what some rows imply is rounded."""
        if not self.is_saved or self.places is not None or self.pairs:  # for which nobody asks who looks for pairs
            return self.places
        return places_of(X[rows], self.formula, self.agreement)


def judge(block: Table, rule: RowRule, around: NDArray[np.void] = NO_ROWS) -> Judged:
    """Judge the rows of a block, which have numbers; `around` are those next to it, if an error may depend on them."""
    return rule.rows(block, around).judged()


def judge_blocks(
    blocks: Iterable[Table],
    rule: RowRule,
    *,
    start: int = 0,
    write_audit: Writer | None = None,
    write_fixed: Writer | None = None,
    around: NDArray[np.void] = NO_ROWS,
) -> Judged:
    """Judge consecutive blocks, the first of which has the number `start`, several at a time.

    `write_audit` is given the wrong rows of each block, and `write_fixed` the block with its wrong targets replaced, in
    order; `around` are the rows next to all blocks.
    """

    def judged(part: tuple[Table, NDArray[np.void]]) -> tuple[Judged, pa.Table | None, pa.Table | None]:
        found = rule.rows(*part)
        rows = None if write_audit is None else found.wrong_rows()
        return found.judged(), rows, None if write_fixed is None else found.fixed()

    total = rule.nothing
    for part, rows, fixed in in_order(judged, _with_neighbours(rule, numbered(blocks, start), around)):
        total += part
        for write, table in ((write_audit, rows), (write_fixed, fixed)):
            if write is not None and table is not None:
                write(table)
    return total


def _with_neighbours(
    rule: RowRule, blocks: Iterable[Table], around: NDArray[np.void]
) -> Iterator[tuple[Table, NDArray[np.void]]]:
    """Yield each block with the rows next to it: it waits for the one after it."""
    if not rule.looks_around:
        yield from ((block, NO_ROWS) for block in blocks)
        return
    before = around
    parts = ((block, rule.ends(block)) for block in blocks)
    for (block, ends), (_, after) in pairwise(chain(parts, [(None, around)])):
        assert block is not None
        yield block, np.concatenate([before, after])
        before = ends


def paired(rule: RowRule, judged: Judged) -> RowRule:
    """Return the rule that knows which rows were swapped, if these are not too many to tell."""
    rows = np.concatenate([NO_ROWS, *(judged.pairs or ())])
    given, implied, unit = rows["given"], rows["implied"], rule.agreement.unit
    swapped = swapped_rows(given, implied, unit)
    # With what other rows imply, as many have a partner as do by chance.
    by_chance = np.count_nonzero(swapped_rows(given, implied[::-1], unit))
    if judged.pairs is None or by_chance > (1 - SURE) * np.count_nonzero(swapped):
        kinds = tuple(kind for kind in rule.catalogue.kinds if kind.label != SWAPPED)
        return replace(rule, catalogue=replace(rule.catalogue, kinds=kinds))
    return replace(rule, swapped=rows["number"][swapped])


def numbered(blocks: Iterable[Table], start: int) -> Iterator[Table]:
    """Yield the blocks that have rows, with the numbers of these, from `start` on where there are none."""
    for block in blocks:
        if block.numbers is None:
            block = replace(block, numbers=np.arange(start, start + block.n_rows))
        start += block.n_rows
        if block.n_rows:
            yield block


def _between(numbers: NDArray[np.intp], start: int, stop: int) -> NDArray[np.intp]:
    """Return those of some numbers, which are in order, from `start` to before `stop`."""
    return numbers[slice(*np.searchsorted(numbers, [start, stop]))]


@dataclass(frozen=True, slots=True, eq=False)
class BlockRows:
    """The rows of one block that were judged; implied values are there for rows that do not agree."""

    rule: RowRule
    block: Table
    kept: NDArray[np.intp]
    gaps: Any
    X: Matrix
    columns: Columns
    marks: NDArray[np.uint8]
    labels: RowLabels
    codes: NDArray[np.intp]
    off: NDArray[np.intp]
    """The rows that do not agree."""
    inside: BoolArray
    """The rows of the segment in which the rule breaks."""

    @property
    def apart(self) -> BoolArray:
        """Rows that do not agree and are set apart."""
        return np.asarray(self.inside & (self.marks & (AGREES | LAST_PLACE) == 0))

    def judged(self) -> Judged:
        """Return what these rows add up to."""
        group, groups = self.rule.plan.group_column, {}
        if group is not None:
            groups = count_groups(self.block, group, self.kept, self.labels.wrong)
        return Judged(
            self.block.n_rows,
            tally_of(self.marks),
            self._usage(),
            np.bincount(self.codes, minlength=len(self.rule.catalogue.kinds) + 1),
            self._kept(),
            groups,
            Counter(self.gaps),
            (self.labels.at(self.off[self.labels.wrong[self.off]]),) if self.rule.pairs else (),
            self.labels.at(np.array([0, len(self.kept) - 1])) if len(self.kept) else NO_ROWS,
            np.array([np.count_nonzero(self.inside), np.count_nonzero(self.apart)]),
        )

    def _usage(self) -> NDArray[np.int64]:
        if not self.rule.counts_usage:
            return np.zeros((len(self.rule.used), 2), dtype=np.int64)
        counted = usage_of(self.X, self.marks & AGREES > 0, constant=self.rule.formula.intercept is not None)
        return np.array([(one.n_rows, one.n_agree) for one in counted], dtype=np.int64).reshape(-1, 2)

    def _kept(self) -> KeptRows:
        assert self.block.numbers is not None
        numbers, most = self.block.numbers, self.rule.rows_kept
        asked = np.isin(numbers, _between(self.rule.asked, numbers[0], numbers[-1] + 1))
        index = self.off[~self.apart[self.off]]
        sizes = np.abs(self.labels.given[index] - self.labels.implied[index])
        is_worst = largest(most, sizes, self.codes[index])
        places = np.union1d(self.kept[index[is_worst]], np.flatnonzero(asked))
        if not len(places):
            return KeptRows(most)
        rows, codes = np.zeros(len(places), KEPT_ROWS), np.zeros(len(numbers), dtype=np.intp)
        codes[self.kept[index]] = self.codes[index]
        rows["number"], rows["size"], rows["code"], rows["asked"] = numbers[places], -1, codes[places], asked[places]
        index = index[is_worst]
        at = np.searchsorted(places, self.kept[index])
        rows["size"][at] = sizes[is_worst]
        for side, step in enumerate((-1, 1)):
            rows["around"][at, side] = self.labels.neighbours(index, step)[0]
        return KeptRows(most, (self.block.arrow.take(pa.array(places)),), rows)

    def wrong_rows(self) -> pa.Table:
        """Return the wrong rows, and those set apart, as the audit has them."""
        index = np.flatnonzero(self.labels.wrong | self.apart)
        rows, given, implied = self.kept[index], self.labels.given[index], self.labels.implied[index]
        names = dict.fromkeys([*self.rule.plan.naming, *self.block.column_names])
        cells = {name: self.block.column(name).take(pa.array(rows)) for name in names}
        words = pa.array([UNDER_ANOTHER_RULE, *(kind.label for kind in self.rule.catalogue.kinds)], pa.string())
        values = judged_values(given, implied, self.labels.wrong[index], words.take(pa.array(self.codes[index])))
        return pa.table(audit_columns(self.labels.number(index) + 1, cells, values))

    def fixed(self) -> pa.Table:
        """Return the block with its wrong targets replaced."""
        own, kinds = self.rule, RowErrorTypes(self.codes, self.rule.catalogue.kinds)
        kinds = kinds.with_kind(RowErrorType(UNDER_ANOTHER_RULE, 0, UNDER_ANOTHER_RULE), np.flatnonzero(self.apart))
        rows = RuleRows(self.X, own.formula, own.agreement, self.labels, self.columns)
        rounding, usual = (own.places, own.ways), own.catalogue.usual
        changes = Corrections.of(self.block.n_rows, self.kept, rows, kinds, rounding, own.left_open, usual=usual)
        return changes.applied(self.block, own.plan.encoding.target, own.whole_numbers).arrow
