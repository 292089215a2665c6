"""Rows next to a rule: ``judge(block, rule)`` is a :class:`Judged`, and these add up.

A table in memory is one block, a file many; a block may be judged by another process or on another machine, and a saved
model is a rule like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.error_types import NOTHING, UNDER_ANOTHER_RULE, Catalogue, RowErrorTypes, Rule, columns_at_fault
from massart.audit.explanations import NO_ROWS, Labels
from massart.audit.finding import check_order, plain_terms, rows_with_values, with_target, with_values
from massart.audit.fixing import Corrections
from massart.audit.implied import implied_values, loose_of, places_of, residuals
from massart.audit.judged import NONE, Judged, Worst
from massart.audit.model_file import SavedModel
from massart.audit.second_rule import SecondRule
from massart.audit.segments import TableSegment
from massart.audit.table_audit import Audit, audit_columns, count_groups
from massart.rows import AGREES, IDENTITY, LAST_PLACE, Agreement, ArrayRows, BoolArray, FloatArray, Mark, tally_of
from massart.rows.ahead import in_order
from massart.rows.columnwise import Columnwise
from massart.rules.columns import Columns
from massart.rules.formula import Formula
from massart.rules.matrix import Matrix, TermMatrix
from massart.tables import Design, Encoding, Table, TableError, encode

ROWS_KEPT = 25_000
"""Wrong rows of a file that are kept, those with the largest residuals: what a report shows of a large one."""

Writer: TypeAlias = Callable[[pa.Table], None]
"""Takes the next part of a file."""


@dataclass(frozen=True, slots=True, eq=False)
class RowRule:
    """A rule as rows are judged by it, wherever they are: it can be sent, and knows nothing of the table."""

    encoding: Encoding  # of the columns that the formula reads, and of those that lack values
    formula: Formula  # without the terms of a library that are not in the rule
    agreement: Agreement
    used: tuple[int, ...]  # the places of its coefficients among those of the whole library
    places: int | None  # to which implied values are rounded
    id_column: str | None = None
    group_column: str | None = None
    strict: bool = False  # whether a missing value is an error
    catalogue: Catalogue = NOTHING
    is_rule: bool = True  # without one no row is called wrong
    whole_numbers: bool = False  # whether implied values are whole
    # numbers of rows, in order, whose error type is asked for, each by itself
    looked_at: NDArray[np.intp] = field(default_factory=lambda: NONE)
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
    def of(cls, audit: Audit, gappy: frozenset[str], strict: bool) -> RowRule:
        """Take the rule that was found in some rows; columns that are `gappy` may lack values in others."""
        full, agreement = audit.formula, audit.agreement
        used = [j for j, term in enumerate(full.terms) if term.is_shown or term.coef]
        formula = replace(full, terms=tuple(full.terms[j] for j in used))
        if full.intercept is not None:
            used.append(len(full.terms))
        if agreement.inputs:
            agreement = replace(agreement, inputs=tuple(agreement.inputs[j] for j in used))
        catalogue = NOTHING
        if audit.is_rule:
            catalogue = Catalogue.of(audit.kinds, audit.X, audit.rule, audit.labels, audit.columns)
        read = {name for term in full.terms if term.term for name in term.term.columns()} | gappy | catalogue.reads
        second = None if audit.second_rule is None else audit.second_rule.of_file(NONE, 0)
        if second is not None:
            catalogue = replace(catalogue, kinds=(second.kind, *catalogue.kinds))
            read |= second.reads
        encoding = audit.plan.encoding
        return cls(
            replace(encoding, inputs=tuple(entry for entry in encoding.inputs if entry.column in read)),
            formula,
            agreement,
            tuple(used),
            places_of(audit.X, full, audit.agreement),
            audit.plan.id_column,
            audit.plan.group_column,
            strict,
            catalogue,
            audit.is_rule,
            bool((audit.implied == np.rint(audit.implied)).all()),
            audit.numbers_of(audit.design.kept),
            left_open=audit.left_open[used],
            ways=audit.ways_to_round if audit.is_rule else (),
            segment=audit.segment if audit.segment is not None and audit.segment.is_accused else None,
            second=second,
        )

    @property
    def pairing(self) -> RowRule:
        """The one that keeps wrong rows, and asks for nothing else."""
        return replace(
            self, catalogue=NOTHING, id_column=None, group_column=None, looked_at=NONE, pairs=True, second=None
        )

    def within(self, start: int, stop: int) -> RowRule:
        """Return the one for rows with these numbers: of other rows it knows nothing."""
        looked_at, swapped = (_between(numbers, start, stop) for numbers in (self.looked_at, self.swapped))
        return replace(self, looked_at=looked_at, swapped=swapped)

    @classmethod
    def of_model(cls, model: SavedModel, **others: Any) -> RowRule:
        """Take a saved rule, and what else is known of the table and asked for."""
        formula, agreement = model.formula, model.agreement
        used = tuple(range(len(formula.all_terms)))
        return cls(model.encoding, formula, agreement, used, agreement.places, **others, is_saved=True)

    @property
    def nothing(self) -> Judged:
        """The sum of no rows."""
        return Judged.of_nothing(len(self.used), len(self.catalogue.kinds) + 1, self.rows_kept)

    @property
    def columns(self) -> list[str]:
        """The columns of the table that are read."""
        names = [*(entry.column for entry in self.encoding.inputs), self.encoding.target.column]
        read = [] if self.segment is None else self.segment.columns
        return [*dict.fromkeys([*names, *self._shown, *read])]

    @property
    def _shown(self) -> list[str]:
        """The columns that name a row."""
        return [*dict.fromkeys(name for name in (self.id_column, self.group_column) if name is not None)]

    def terms(self, columns: Columns, X: FloatArray | Columnwise, formula: Formula) -> Matrix:
        """Return the values of the terms of a formula, given all columns and the plain ones as a matrix."""
        terms = [term.term for term in formula.terms if term.term is not None]
        return X if tuple(terms) == plain_terms(self.encoding) else TermMatrix(columns, terms)

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
        design = encode(table, self.encoding, strict=self.strict, is_part=is_part, is_finite=is_finite)
        terms = [term.term for term in self.formula.terms if term.term is not None]
        X: Matrix
        if any(term.needs_order for term in terms):
            design = replace(design, columns=replace(design.columns, ordered=not is_part))
            check_order(design, terms)
            design, X = with_values(design, TermMatrix(with_target(design, self.formula.target), terms))
        else:
            X = self.terms(design.columns, design.X, self.formula)
        y = design.y
        assert y is not None
        try:
            return design, X, self._marks(X, y)
        except FloatingPointError:
            if is_finite:  # products are checked more quickly than columns
                return self.marked(table, is_part=is_part)
            if self.is_saved and isinstance(X, TermMatrix):
                there, gaps = rows_with_values(X, design.gaps)
                if len(there) < len(y):
                    y, kept, columns = y[there], design.kept[there], design.columns.take(there)
                    design, X = replace(design, y=y, kept=kept, gaps=gaps, columns=columns), X.take(there)
                    return design, X, self._marks(X, y)
            fault = ArrayRows(X, y, intercept=self.formula.intercept is not None).fault()
            raise TableError(f"{table.name}: {fault}") from None

    def rows(self, block: Table, around: NDArray[np.void] = NO_ROWS) -> BlockRows:
        """Judge the rows of a block; what is next to them, if they are a part, is `around`."""
        design, X, marks = self.marked(block, is_part=True, is_finite=True)
        y, formula, kept, columns = design.y, self.formula, design.kept, design.columns
        assert y is not None
        assert isinstance(block.numbers, np.ndarray)
        n, numbers, off = len(y), block.numbers if len(y) == block.n_rows else block.numbers[kept], NONE
        nothing, codes, inside = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
        labels = Labels(y, np.zeros(n), nothing, nothing, numbers=numbers, around=around)
        if n and self.is_rule:
            off = np.flatnonzero(marks & AGREES == 0)
            last_place = np.zeros(n, dtype=bool)
            last_place[off] = marks[off] & LAST_PLACE > 0
            if self.segment is not None:
                inside = self.segment.members(block)[kept]
            wrong = np.zeros(n, dtype=bool)
            wrong[off] = ~last_place[off] & ~inside[off]
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
            codes = self.catalogue.codes(X, Rule(formula, self.agreement), labels, columns)
            if self.second is not None:
                codes[self.second.follow(columns, y, np.flatnonzero(wrong))] = 1
        return BlockRows(self, block, kept, design.gaps, X, columns, marks, labels, codes, off, inside)

    def _marks(self, X: Matrix, y: FloatArray) -> NDArray[np.uint8]:
        if not len(y):
            return np.zeros(0, np.uint8)
        mark, intercept = Mark(self.formula.coef, self.agreement, self.formula.link), self.formula.intercept is not None
        if isinstance(X, np.ndarray) and X.shape[1]:
            X = Columnwise([X[:, j] for j in range(X.shape[1])])
        if isinstance(X, Columnwise) and self.formula.link == IDENTITY:
            return mark.of_columns(X, y, intercept=intercept)
        return ArrayRows(X, y, intercept=intercept).map(mark).to_numpy()

    def _places(self, X: Matrix, rows: NDArray[np.intp]) -> int | None:
        """Return to how many places what some rows imply is rounded."""
        if not self.is_saved or self.places is not None or self.pairs:  # for which nobody asks who looks for pairs
            return self.places
        return places_of(X[rows], self.formula, self.agreement)


def judge(
    block: Table,
    rule: RowRule,
    around: NDArray[np.void] = NO_ROWS,
    least: float = 0.0,
    examples: NDArray[np.intp] = NONE,
) -> Judged:
    """Judge the rows of a block.

    Parameters
    ----------
    block : Table
        With the numbers of its rows.
    rule : RowRule
    around : array
        The rows next to the block, if what happened in a row may depend on them.
    least : float
        Residuals smaller than this are not among the largest, as far as is known from other blocks.
    examples : array
        Of how many rows of each error type the cells are known from other blocks.
    """
    return rule.rows(block, around).judged(least, examples)


def judge_blocks(
    blocks: Iterable[Table],
    rule: RowRule,
    *,
    start: int = 0,
    least: float = 0.0,
    write_audit: Writer | None = None,
    write_fixed: Writer | None = None,
    around: NDArray[np.void] = NO_ROWS,
) -> Judged:
    """Judge consecutive blocks, the first of which has the number `start`, several at a time.

    `write_audit` is given the wrong rows of each block, and `write_fixed` the block with its wrong targets replaced, in
    order. See :func:`judge` for `least` and `around`.
    """
    total = rule.nothing

    def parts() -> Iterator[tuple[Table, NDArray[np.void], float, NDArray[np.intp]]]:
        for block, others in _with_neighbours(rule, numbered(blocks, start), around):
            # What the largest residuals are is known better the more blocks are done.
            yield block, others, max(least, total.worst.least), total.worst.examples

    def judged(
        part: tuple[Table, NDArray[np.void], float, NDArray[np.intp]],
    ) -> tuple[Judged, pa.Table | None, pa.Table | None]:
        block, others, known, examples = part
        found = rule.rows(block, others)
        rows = None if write_audit is None else found.wrong_rows()
        return found.judged(known, examples), rows, None if write_fixed is None else found.fixed()

    for part, rows, fixed in in_order(judged, parts()):
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
    labels: Labels
    codes: NDArray[np.intp]
    off: NDArray[np.intp]
    """The rows that do not agree."""
    inside: BoolArray
    """The rows of the segment in which the rule breaks."""

    @property
    def apart(self) -> BoolArray:
        """Rows that do not agree and are set apart."""
        return np.asarray(self.inside & (self.marks & (AGREES | LAST_PLACE) == 0))

    def judged(self, least: float = 0.0, examples: NDArray[np.intp] = NONE) -> Judged:
        """Return what these rows add up to.

        Residuals smaller than `least` are not among the largest, and of kinds that have `examples` none is needed.
        """
        n_codes = len(self.rule.catalogue.kinds) + 1
        groups = {}
        if self.rule.group_column is not None:
            groups = count_groups(self.block, self.rule.group_column, self.kept, self.labels.wrong)
        return Judged(
            self.block.n_rows,
            tally_of(self.marks),
            self._usage(),
            np.bincount(self.codes, minlength=n_codes),
            groups,
            Counter(self.gaps),
            self._worst(least, examples),
            self._looked_at(),
            (self.labels.at(self.off[self.labels.wrong[self.off]]),) if self.rule.pairs else (),
            self.labels.at(np.array([0, len(self.kept) - 1])) if len(self.kept) else NO_ROWS,
            np.array([np.count_nonzero(self.inside), np.count_nonzero(self.apart)]),
        )

    def _looked_at(self) -> dict[int, int]:
        index = self.off
        if not len(index) or not len(self.rule.looked_at):
            return {}
        numbers = self.labels.number(index)
        known = np.isin(numbers, _between(self.rule.looked_at, numbers[0], numbers[-1] + 1))
        return dict(zip(numbers[known].tolist(), self.codes[index[known]].tolist(), strict=True))

    def _usage(self) -> NDArray[np.int64]:
        agree = self.marks & AGREES > 0
        n, k = len(agree), int(np.count_nonzero(agree))
        usage = np.zeros((len(self.rule.used), 2), dtype=np.int64)
        if not self.rule.counts_usage:
            return usage
        usage[-1] = n, k  # the constant, if there is one
        for place in range(len(self.rule.formula.terms)):
            column = self.X[:, place]
            present = int(np.count_nonzero(column))
            if 2 * present > n:  # of few zeros, those that agree are few, too
                usage[place] = present, k if present == n else k - np.count_nonzero(agree[np.flatnonzero(column == 0)])
            else:
                usage[place] = present, np.count_nonzero(column[agree])
        return usage

    def _worst(self, least: float, examples: NDArray[np.intp]) -> Worst:
        index = self.off[~self.apart[self.off]]
        sizes = np.abs(self.labels.given[index] - self.labels.implied[index])
        found = Worst.of(self.rule.rows_kept, self.block, self.kept[index], sizes, self.codes[index], least, examples)
        if not self.rule.is_saved or not len(found.numbers):
            return found
        assert self.labels.numbers is not None
        index = np.searchsorted(self.labels.numbers, found.numbers)
        return replace(found, neighbours=np.stack([self.labels.neighbours(index, step)[0] for step in (-1, 1)], axis=1))

    def wrong_rows(self) -> pa.Table:
        """Return the wrong rows, and those set apart, as the audit has them."""
        index = np.flatnonzero(self.labels.wrong | self.apart)
        rows, given, implied = self.kept[index], self.labels.given[index], self.labels.implied[index]
        names = dict.fromkeys([*self.rule._shown, *self.block.column_names])
        cells = {name: self.block.column(name).take(pa.array(rows)) for name in names}
        words = pa.array([UNDER_ANOTHER_RULE, *(kind.label for kind in self.rule.catalogue.kinds)], pa.string())
        values = {
            "given": given,
            "implied": implied,
            "residual": residuals(given, implied),
            "wrong": self.labels.wrong[index],
            "kind": words.take(pa.array(self.codes[index])),
        }
        return pa.table(audit_columns(self.labels.number(index) + 1, cells, values))

    def fixed(self) -> pa.Table:
        """Return the block with its wrong targets replaced."""
        own, kinds = self.rule, RowErrorTypes(self.codes, self.rule.catalogue.kinds)
        formula, usual = own.formula, own.catalogue.usual
        rule = formula, own.places, own.ways, loose_of(formula, own.agreement)
        of_rule = Rule(formula, own.agreement)
        faults = columns_at_fault(self.X, of_rule, self.labels, kinds, self.columns, usual)
        changes = Corrections.of(
            self.block.n_rows, self.kept, self.X, own.left_open, self.labels, kinds, rule, at_fault=faults
        )
        return changes.applied(self.block, own.encoding.target, own.whole_numbers).arrow
