"""A file larger than memory: some rows propose, and one read of all of them judges, counts and writes.

The rows that propose are gathered in a first read, by the columns alone (:mod:`massart.table.gathering`), and the rule
is looked for in them as in any table. In a second read each row is compared with it, block by block: rows are tallied,
counted by kind and by group, written to the audit and to the fixed table, and the worst are kept. The verdict is made
by the rows gathered and the tally of all.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.agreement import AGREES, KINDS, LAST_PLACE, Mark, tally_of
from massart.audit.explanations import Labels
from massart.audit.finding import Found, Request, find, plain_terms
from massart.audit.implied import implied_values, places_of, residuals
from massart.audit.kinds import MOST_EXAMPLES, Catalogue, Rule
from massart.audit.table_audit import ROW, Audit, count_groups
from massart.audit.whole import Whole
from massart.certificate import Certificate, Verdict
from massart.rows import ArrayRows, BoolArray, FloatArray
from massart.rows.ahead import ahead
from massart.rules.formula import Formula
from massart.rules.matrix import TermMatrix
from massart.table import Encoding, Gathered, Stream, Table, encode, free_name, gather, left_out, replaced, writing

MOST_WORST = 100_000
"""Wrong rows that are kept, those with the largest residuals: as many as a report carries."""


class _Different(Exception):
    """All rows tell another story than those that proposed: what was written is not to stand."""


def audit_stream(
    stream: Stream, request: Request, *, audit: str | Path | None = None, fixed: str | Path | None = None
) -> Audit:
    """Find the rule behind a column of a stream, and the rows that do not follow it.

    Parameters
    ----------
    stream : Stream
    request : Request
    audit, fixed : str or Path, optional
        Files to write, if there is a rule: the wrong rows in the order of the stream; and the table with its wrong
        targets replaced.
    """
    gathered = gather(stream, request.seed, request.callback)
    found = find(gathered.table, request, ordered=False)
    judge = _Judge.of(gathered, found)
    try:
        counts, certificate = _read(stream, judge, request, audit, fixed)
    except _Different:
        judge = replace(judge, is_rule=not judge.is_rule)
        counts, certificate = _read(stream, judge, request, audit, fixed)
    return _assembled(gathered, found, judge, counts, certificate)


def _read(
    stream: Stream, judge: _Judge, request: Request, audit: str | Path | None, fixed: str | Path | None
) -> tuple[_Counts, Certificate]:
    """Judge all rows, and write files if there is a rule: raise _Different if they say otherwise."""
    with contextlib.ExitStack() as stack:
        write_audit = write_fixed = None
        if judge.is_rule and audit is not None:
            write_audit = stack.enter_context(writing(audit, harmless=True))
        if judge.is_rule and fixed is not None:
            write_fixed = stack.enter_context(writing(fixed, harmless=False))
        # The fixed table has all columns; otherwise those that are read are enough.
        columns = None if write_fixed else judge.columns
        counts = _Counts(judge)
        for block in ahead(stream.blocks(columns, request.callback)):
            counts.add(block, write_audit, write_fixed, request.strict)
        certificate = judge.found.answer.recovery.verdicts[0](counts.tally)
        if (certificate.verdict is Verdict.NONE) == judge.is_rule:
            raise _Different
    return counts, certificate


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    """What is needed to judge a block.

    Attributes
    ----------
    found : Found
    encoding : Encoding
        Of the columns that the formula reads, and of those that lack values.
    formula : Formula
        Without the terms of a library that are not in the rule.
    used : list of int
        The places of its coefficients among those of the whole library.
    places : int or None
        To which implied values are rounded.
    catalogue : Catalogue
    is_rule : bool
    """

    found: Found
    encoding: Encoding
    formula: Formula
    used: list[int]
    places: int | None
    catalogue: Catalogue
    is_rule: bool

    @classmethod
    def of(cls, gathered: Gathered, found: Found) -> _Judge:
        audit = found.audit
        full = audit.formula
        used = [j for j, term in enumerate(full.terms) if term.is_shown or term.coef]
        formula = replace(full, terms=tuple(full.terms[j] for j in used))
        read = {name for term in full.terms if term.term for name in term.term.columns()} | gathered.gappy
        encoding = audit.plan.encoding
        encoding = replace(encoding, inputs=tuple(entry for entry in encoding.inputs if entry.column in read))
        labels = Labels(audit.given, audit.implied, audit.wrong, audit.last_place & audit.is_rule)
        catalogue = Catalogue.of(audit.kinds, audit.X, audit.rule, labels) if audit.is_rule else Catalogue.of_nothing()
        if full.intercept is not None:
            used = [*used, len(full.terms)]
        places = places_of(audit.X, full, audit.agreement)
        return cls(found, encoding, formula, used, places, catalogue, audit.is_rule)

    @property
    def rule(self) -> Rule:
        agreement = self.found.audit.agreement
        if agreement.inputs:
            agreement = replace(agreement, inputs=tuple(agreement.inputs[j] for j in self.used))
        return Rule(self.formula, agreement)

    @property
    def columns(self) -> list[str]:
        """The columns of the stream that are read."""
        plan = self.found.audit.plan
        names = [*(entry.column for entry in self.encoding.inputs), self.encoding.target.column]
        names += [name for name in (plan.id_column, plan.group_column) if name is not None]
        return [*dict.fromkeys(names)]

    def values(self, columns: Any, X: FloatArray) -> FloatArray | TermMatrix:
        """Return the values of the terms of the formula in the rows of a block."""
        terms = [term.term for term in self.formula.terms if term.term is not None]
        return X if tuple(terms) == plain_terms(self.encoding) else TermMatrix(columns, terms)


class _Counts:
    """What the blocks read so far add up to."""

    def __init__(self, judge: _Judge) -> None:
        self.judge = judge
        self.n_rows = 0
        self.tally = np.zeros(KINDS)
        self.usage = np.zeros((len(judge.used), 2), dtype=np.int64)
        self.kinds = np.zeros(len(judge.catalogue.kinds) + 1, dtype=np.int64)
        self.groups: Counter[str] = Counter()
        self.wrong_groups: Counter[str] = Counter()
        self.gaps: Counter[Any] = Counter()
        self.worst = _Worst()
        self._whole_numbers: bool | None = None

    def add(
        self,
        block: Table,
        write_audit: Callable[[pa.Table], None] | None,
        write_fixed: Callable[[pa.Table], None] | None,
        strict: bool,
    ) -> None:
        """Judge the rows of a block."""
        judge, start = self.judge, self.n_rows
        block = replace(block, numbers=range(start, start + block.n_rows))
        self.n_rows += block.n_rows
        design = encode(block, judge.encoding, strict=strict, is_part=True)
        self.gaps.update(design.gaps)
        kept, y = design.kept, design.y
        assert y is not None
        wrong, implied = np.zeros(0, dtype=bool), np.zeros(0)
        if len(kept):
            X = judge.values(design.columns, design.X)
            wrong, implied, codes = self._judged(X, y)
            index = np.flatnonzero(codes)
            self.worst.add(block, start, kept[index], np.abs(y[index] - implied[index]), codes[index], len(self.kinds))
            self._count_groups(block, kept, wrong)
            if write_audit is not None:
                write_audit(self._rows(block, start, kept, y, implied, np.flatnonzero(wrong), codes))
        if write_fixed is not None:
            write_fixed(self._fixed(block, kept[wrong], implied[wrong]))

    def _judged(self, X: FloatArray | TermMatrix, y: FloatArray) -> tuple[BoolArray, FloatArray, NDArray[np.intp]]:
        """Return which rows are wrong, what is implied where it is needed, and the kinds."""
        judge, rule = self.judge, self.judge.rule
        rows = ArrayRows(X, y, intercept=judge.formula.intercept is not None)
        try:
            marks = rows.map(Mark(judge.formula.coef, rule.agreement, judge.formula.link)).to_numpy()
        except FloatingPointError:
            raise ValueError(rows.fault()) from None
        self.tally += tally_of(marks)
        agree, last_place = marks & AGREES > 0, marks & LAST_PLACE > 0
        self._count_usage(X, agree)
        if not judge.is_rule:
            return np.zeros(len(y), dtype=bool), np.zeros(len(y)), np.zeros(len(y), dtype=np.intp)
        wrong = ~agree & ~last_place
        implied = np.zeros(len(y))
        if len(judge.catalogue.kinds) > 2:  # a row may have its neighbour's value
            implied = implied_values(X, judge.formula, judge.places)
        else:
            index = np.flatnonzero(~agree)
            implied[index] = implied_values(X[index], judge.formula, judge.places)
        codes = judge.catalogue.codes(X, rule, Labels(y, implied, wrong, last_place))
        self.kinds += np.bincount(codes, minlength=len(self.kinds))
        return wrong, implied, codes

    def _count_usage(self, X: FloatArray | TermMatrix, agree: BoolArray) -> None:
        n, k = len(agree), int(np.count_nonzero(agree))
        for place in range(len(self.usage)):
            if place == X.shape[1]:
                self.usage[place] += n, k
                continue
            column = X[:, place]
            present = int(np.count_nonzero(column))
            self.usage[place] += present, k if present == n else int(np.count_nonzero(column[agree]))

    def _count_groups(self, block: Table, kept: NDArray[np.intp], wrong: BoolArray) -> None:
        column = self.judge.found.audit.plan.group_column
        if column is not None:
            for name, (n, off) in count_groups(block, column, kept, wrong).items():
                self.groups[name] += n
                self.wrong_groups[name] += off

    def _rows(
        self,
        block: Table,
        start: int,
        kept: NDArray[np.intp],
        y: FloatArray,
        implied: FloatArray,
        index: NDArray[np.intp],
        codes: NDArray[np.intp],
    ) -> pa.Table:
        """Return the wrong rows as the audit has them."""
        plan = self.judge.found.audit.plan
        names = dict.fromkeys(name for name in (plan.id_column, plan.group_column) if name is not None)
        rows = kept[index]
        columns: dict[str, Any] = {ROW: pa.array(start + rows + 1)}
        columns |= {name: block.column(name).take(pa.array(rows)) for name in names}
        words = pa.array([kind.label for kind in self.judge.catalogue.kinds], pa.string())
        given, meant, yes = y[index], implied[index], np.ones(len(rows), dtype=bool)
        values = {"given": given, "implied": meant, "residual": residuals(given, meant), "wrong": yes}
        kinds = pa.DictionaryArray.from_arrays(pa.array(codes[index] - 1, pa.int32()), words).cast(pa.string())
        for name, value in {**values, "kind": kinds}.items():
            columns[free_name(name, columns)] = value if isinstance(value, pa.Array) else pa.array(value)
        return pa.table(columns)

    def _fixed(self, block: Table, rows: NDArray[np.intp], implied: FloatArray) -> pa.Table:
        """Return a block of the fixed table."""
        target = self.judge.encoding.target.column
        original = free_name(f"{target}_given", block.column_names)
        if self._whole_numbers is None:  # decided once, for all blocks
            audit = self.judge.found.audit
            self._whole_numbers = bool((audit.implied == np.rint(audit.implied)).all())
        return replaced(block, target, rows, implied, original, whole=self._whole_numbers).arrow


class _Worst:
    """The wrong rows with the largest residuals, and the first ones of each kind, with their cells."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []
        self.numbers = np.empty(0, dtype=np.intp)
        self._sizes = np.empty(0)
        self._first = np.empty(0, dtype=bool)
        self._least = -1.0
        self._seen: Counter[int] = Counter()

    def add(
        self,
        block: Table,
        start: int,
        rows: NDArray[np.intp],
        sizes: FloatArray,
        codes: NDArray[np.intp],
        n_codes: int,
    ) -> None:
        """Look at rows of a block that do not follow the formula."""
        first = np.zeros(len(rows), dtype=bool)
        for code in range(1, n_codes):
            if self._seen[code] < MOST_EXAMPLES:
                some = np.flatnonzero(codes == code)[: MOST_EXAMPLES - self._seen[code]]
                first[some] = True
                self._seen[code] += len(some)
        chosen = np.flatnonzero(first | (sizes > self._least))
        if not len(chosen):
            return
        self.tables.append(block.arrow.take(pa.array(rows[chosen])))
        self.numbers = np.concatenate([self.numbers, start + rows[chosen]])
        self._sizes = np.concatenate([self._sizes, sizes[chosen]])
        self._first = np.concatenate([self._first, first[chosen]])
        if len(self.numbers) > 2 * MOST_WORST:
            self.prune()

    def prune(self) -> None:
        """Keep no more than are needed; of equal sizes, the first rows."""
        order = np.argsort(-self._sizes, kind="stable")[:MOST_WORST]
        stay = np.union1d(order, np.flatnonzero(self._first))
        self.tables = [pa.concat_tables(self.tables).take(pa.array(stay)).combine_chunks()]
        self.numbers, self._sizes, self._first = self.numbers[stay], self._sizes[stay], self._first[stay]
        if len(order) == MOST_WORST:
            self._least = float(np.partition(self._sizes, len(self._sizes) - MOST_WORST)[len(self._sizes) - MOST_WORST])


def _assembled(gathered: Gathered, found: Found, judge: _Judge, counts: _Counts, certificate: Certificate) -> Audit:
    """Return the audit of the rows at hand, with what all rows say."""
    audit, worst = found.audit, counts.worst
    names = judge.columns
    if worst.tables:
        worst.prune()
    new = np.flatnonzero(~np.isin(worst.numbers, gathered.numbers))
    tables = [gathered.table.arrow.select(names)]
    if worst.tables:
        tables.append(pa.concat_tables(worst.tables).select(names).take(pa.array(new)))
    numbers = np.concatenate([gathered.numbers, worst.numbers[new]])
    drawn = np.concatenate([gathered.drawn, np.zeros(len(new), dtype=bool)])
    order = np.argsort(numbers)
    arrow = pa.concat_tables(tables).take(pa.array(order)).combine_chunks()
    table = replace(gathered.table, arrow=arrow, numbers=numbers[order])
    design = encode(table, judge.encoding)
    assert design.y is not None
    formula = found.formula(certificate)
    terms = [term.term for term in formula.terms if term.term is not None]
    X: FloatArray | TermMatrix = design.X
    if tuple(terms) != plain_terms(judge.encoding):
        X = TermMatrix(design.columns, terms)
    rows = ArrayRows(X, design.y, intercept=formula.intercept is not None)
    marks = rows.map(Mark(formula.coef, audit.agreement, formula.link)).to_numpy()
    usage = [(0, 0)] * len(formula.all_terms)
    for place, facts in zip(judge.used, counts.usage.tolist(), strict=True):
        usage[place] = (facts[0], facts[1])
    whole = Whole(
        counts.n_rows,
        numbers[order],
        drawn[order],
        counts.tally,
        tuple(usage),
        judge.catalogue,
        tuple(counts.kinds.tolist()),
        {name: (n, counts.wrong_groups[name]) for name, n in counts.groups.items()},
        judge.places,
    )
    closely = f"Looked closely at {len(gathered.numbers):,} of {counts.n_rows:,} rows"
    sampled = (f"{closely}, and compared all of them with the rule.",)
    about = tuple(notice for notice in audit.notices if notice not in audit.design.notices)
    notices = (*left_out(counts.gaps, counts.n_rows), *audit.design.remarks, *about, *sampled)
    return Audit(
        table,
        replace(audit.plan, encoding=judge.encoding),
        design,
        X,
        formula,
        certificate,
        marks & AGREES > 0,
        marks & LAST_PLACE > 0,
        notices,
        whole,
    )
