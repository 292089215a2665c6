"""A file larger than memory: some rows propose, and one read of all of them judges, counts and writes.

The rows that propose are gathered in a first read, by the columns alone (:func:`massart.tables.gather`), and the rule
is looked for in them as in any table. In a second read each row is compared with it (:mod:`massart.audit.judging`):
rows are tallied, counted by kind and by group, written to the audit and to the fixed table, and the worst are kept. The
verdict is made by the rows gathered and the tally of all. Where rows were swapped, a read before that finds the pairs.

Both reads may be done by the workers of a Dask cluster. A task there is a piece of a Parquet file and a small rule, and
has no other input: what a lost worker had is done again by another. Few tasks are under way at a time, and their
results come in order, so that what the client holds is bounded.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.audit.coincidence import SURE
from massart.audit.explanations import NO_ROWS, swapped_rows
from massart.audit.finding import Found, Request, find
from massart.audit.fixing import rewritten
from massart.audit.judged import Judged
from massart.audit.judging import RowRule, Writer, judge_blocks, numbered
from massart.audit.table_audit import Audit, Whole
from massart.certificate import Certificate, Verdict
from massart.report import Notice
from massart.rows import AGREES, LAST_PLACE, Callback, Progress
from massart.rows.ahead import ahead
from massart.tables import (
    TOTAL,
    Gathered,
    Piece,
    Stream,
    Table,
    gather,
    gather_some,
    join,
    left_out,
    limit_of,
    pieces_of,
    quote,
    table_writer,
)


class _Different(Exception):
    """The full data contradict the rows from which the rule came: discard what was written."""


class _Uncertain(Exception):
    """The rule is not certain: discard the fixed table."""


class Engine(Protocol):
    """Where the two reads of a stream are done."""

    def gather(self, stream: Stream, request: Request) -> Gathered:
        """Read it once, for the rows to look at closely."""

    def judged(
        self, stream: Stream, rule: RowRule, request: Request, write_audit: Writer | None, write_fixed: Writer | None
    ) -> Judged:
        """Read it once more, and judge all rows; parts of files are written in order."""


class Here:
    """Both reads are done in this process, while the next block is read."""

    def gather(self, stream: Stream, request: Request) -> Gathered:
        """Read it once, or as much of it as is needed, for the rows to look at closely."""
        found = gather_some(stream, request.seed)
        return found or gather(ahead(stream.blocks(callback=request.callback)), request.seed)

    def judged(
        self, stream: Stream, rule: RowRule, request: Request, write_audit: Writer | None, write_fixed: Writer | None
    ) -> Judged:
        """Read it once more, and judge all rows."""
        # What is written has all columns; otherwise those that are read are enough.
        names = None if write_audit or write_fixed else rule.columns
        blocks: Iterable[Table] = stream.blocks(names, request.callback)
        if write_audit or write_fixed:
            blocks = ahead(blocks)  # what is written does not keep the next block waiting
        return judge_blocks(blocks, rule, write_audit=write_audit, write_fixed=write_fixed)


def audit_stream(
    stream: Stream,
    request: Request,
    *,
    audit: str | Path | None = None,
    fixed: str | Path | None = None,
    force: bool = False,
    engine: Engine | None = None,
) -> Audit:
    """Find the rule behind a column of a stream, and the rows that do not follow it.

    If there is a rule, the wrong rows are written to the file `audit`, in the order of the stream, and to the file
    `fixed` the table with its wrong targets replaced: if the rule is certain, or by `force`. The reads are done here,
    or by another engine, such as :class:`OnCluster`.
    """
    engine = engine or Here()
    gathered = engine.gather(stream, request)
    found = find(gathered.table, request, ordered=False, drawn=gathered.drawn)
    rule = replace(RowRule.of(found.audit, gathered.gappy, request.strict), rows_kept=request.rows_kept)
    if rule.catalogue.has_pairs:
        rule = paired(rule, engine.judged(stream, rule.pairing, request, None, None))
    if not force and not found.audit.is_certain:
        fixed = None
    while True:
        try:
            judged, certificate = _read(stream, engine, rule, found, request, audit, fixed, force)
            break
        except _Different:
            rule = replace(rule, is_rule=not rule.is_rule)
        except _Uncertain:
            fixed = None
    answer = _assembled(gathered, found, rule, judged, certificate)
    if fixed is None or not rule.is_rule:
        return answer
    return answer.having(notices=(*answer.notices, *rewritten(stream.name, fixed, "the file was read in blocks")))


def paired(rule: RowRule, judged: Judged) -> RowRule:
    """Return the rule that knows which rows were swapped, if these are not too many to tell."""
    rows = np.concatenate([NO_ROWS, *(judged.pairs or ())])
    given, implied, unit = rows["given"], rows["implied"], rule.agreement.unit
    swapped = swapped_rows(given, implied, unit)
    # With what other rows imply, as many have a partner as do by chance.
    by_chance = np.count_nonzero(swapped_rows(given, implied[::-1], unit))
    if judged.pairs is None or by_chance > (1 - SURE) * np.count_nonzero(swapped):
        return replace(rule, catalogue=rule.catalogue.without_pairs())
    return replace(rule, swapped=rows["number"][swapped])


def _read(
    stream: Stream,
    engine: Engine,
    rule: RowRule,
    found: Found,
    request: Request,
    audit: str | Path | None,
    fixed: str | Path | None,
    force: bool,
) -> tuple[Judged, Certificate]:
    """Judge all rows, and write files if there is a rule: raise _Different if they say otherwise."""
    with contextlib.ExitStack() as stack:
        write_audit = write_fixed = None
        if rule.is_rule and audit is not None:
            write_audit = stack.enter_context(table_writer(audit, harmless=True))
        if rule.is_rule and fixed is not None:
            write_fixed = stack.enter_context(table_writer(fixed, harmless=False))
        judged = engine.judged(stream, rule, request, write_audit, write_fixed)
        certificate = found.answer.recovery.verdicts[0](judged.tally)
        if (certificate.verdict is Verdict.NONE) == rule.is_rule:
            raise _Different
        if write_fixed is not None and not force and not certificate.verdict.certain:
            raise _Uncertain
    return judged, certificate


def _assembled(gathered: Gathered, found: Found, rule: RowRule, judged: Judged, certificate: Certificate) -> Audit:
    """Return the audit of the rows that were kept, with what all rows say."""
    audit, worst = found.audit, judged.worst.pruned()
    read = replace(gathered.table, arrow=gathered.table.arrow.select(rule.columns))
    table, drawn = worst.joined(read, gathered.drawn)
    assert table.numbers is not None
    design, _, marks = rule.marked(table, is_part=False)
    formula = found.formula(certificate)
    X = rule.terms(design.columns, design.X, formula)
    codes = judged.looked_at | dict(zip(worst.numbers.tolist(), worst.codes.tolist(), strict=True))
    at_hand = np.array([codes.get(number, 0) for number in table.numbers[design.kept].tolist()])
    usage = [(0, 0)] * len(formula.all_terms)
    for place, (n, agree) in zip(rule.used, judged.usage.tolist(), strict=True):
        usage[place] = n, agree
    whole = Whole(
        judged,
        drawn,
        tuple(usage),
        rule.catalogue.counted(at_hand, judged.kinds.tolist()),
        rule.places,
    )
    if rule.second is not None and judged.kinds[1]:
        first = [code for code, kind in enumerate(whole.kinds.kinds, 1) if kind.label == rule.second.kind.label]
        rows = np.flatnonzero(np.isin(whole.kinds.codes, first))
        whole = replace(whole, second_rule=rule.second.of_file(rows, int(judged.kinds[1])))
    of_rows = {*audit.plan.of_rows, *(each for each in audit.notices if isinstance(each, Notice))}
    about = (
        Notice("among", notice=notice) if notice in of_rows else notice
        for notice in audit.notices
        if notice not in audit.design.notices
    )
    return Audit(
        table,
        replace(audit.plan, encoding=rule.encoding),
        design,
        X,
        formula,
        certificate,
        marks & AGREES > 0,
        marks & LAST_PLACE > 0,
        (
            *left_out(judged.gaps, judged.n_rows),
            *audit.design.remarks,
            Notice("closely", n=len(gathered.numbers), n_rows=judged.n_rows),
            *islice(chain(_totals_among(gathered.table), _totals_among(table)), 1),
            *about,
        ),
        whole,
        segment=audit.segment,
        segment_rule=audit.segment_rule,
    )


def _totals_among(table: Table) -> Iterator[Notice]:
    """Say that a row looks like the total of others: to leave such rows out takes the whole table."""
    for column in table.arrow.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            for row in pc.indices_nonzero(pc.match_substring_regex(column, TOTAL, ignore_case=True)).to_pylist():
                yield Notice("total row", place=table.place(row), text=quote(column[row].as_py()))


_JOINED = 8  # what pieces gather is joined when there is so much of it
_AHEAD = 2  # tasks for each thread of a worker: one is worked on, and one is ready


@dataclass(frozen=True, slots=True)
class OnCluster:
    """The workers of a Dask cluster, by its `distributed.Client`."""

    client: Any

    def gather(self, stream: Stream, request: Request) -> Gathered:
        """Read a stream once, for the rows to look at closely."""
        pieces = pieces_of(stream)
        parts: list[Gathered] = []
        limit = np.inf
        # Which rows are drawn is known better the more pieces are done.
        tasks = ((_gathered, piece, request.seed, limit) for piece in pieces)
        for part in self._results(tasks, len(pieces), request.callback):
            parts.append(part)
            if len(parts) == _JOINED:
                parts = [join(parts, request.seed)]
                limit = limit_of(parts[0], request.seed)
        return join(parts, request.seed)

    def judged(
        self, stream: Stream, rule: RowRule, request: Request, write_audit: Writer | None, write_fixed: Writer | None
    ) -> Judged:
        """Read it once more, and judge all rows; parts of files are written in order, here."""
        total = rule.nothing
        pieces = pieces_of(stream)
        starts = [*(piece.start for piece in pieces), stream.n_rows]
        ends = NO_ROWS
        if rule.looks_around:
            asked = rule.within(0, 0)
            found = self._results(((_ends, piece, asked) for piece in pieces), len(pieces), request.callback)
            ends = np.concatenate([NO_ROWS, *found])
        # What the largest residuals are is known better the more pieces are done.
        tasks = (
            (
                _judged,
                piece,
                rule.within(start, stop),
                ends[np.isin(ends["number"], [start - 1, stop])],
                total.worst.least,
                write_audit is not None,
                write_fixed is not None,
            )
            for piece, (start, stop) in zip(pieces, pairwise(starts), strict=True)
        )
        for found, rows, fixed in self._results(tasks, len(pieces), request.callback):
            total += found
            for write, tables in ((write_audit, rows), (write_fixed, fixed)):
                for table in tables:
                    if write is not None:
                        write(table)
        return total

    def _results(self, tasks: Iterator[tuple[Any, ...]], n_tasks: int, callback: Callback) -> Iterator[Any]:
        """Yield the results of tasks in their order; few of them are under way at a time."""
        waiting: deque[Any] = deque()
        most = _AHEAD * max(sum(self.client.ncores().values()), 1)
        for done in range(n_tasks):
            while len(waiting) < most and (task := next(tasks, None)) is not None:
                waiting.append(self.client.submit(*task, pure=False))
            try:
                yield waiting.popleft().result()
            except Exception as error:
                if type(error).__name__ != "KilledWorker":
                    raise
                raise ConnectionError(
                    "workers of the Dask cluster died, one after the other, at the same piece of a file: "
                    "its row groups may be too large for their memory"
                ) from None
            callback(Progress("reading on the cluster", done + 1, float(n_tasks - done - 1), 0.0))


def _gathered(piece: Piece, seed: int, limit: float) -> Gathered:
    return gather(piece.blocks(), seed, piece.start, limit)


def _ends(piece: Piece, rule: RowRule) -> NDArray[np.void]:
    """Return the rows at the ends of a piece, as the rows next to them ask for them."""
    blocks = [rule.ends(block) for block in numbered(piece.blocks(rule.columns), piece.start)]
    return np.concatenate([NO_ROWS, *blocks[:1], *blocks[1:][-1:]])


def _judged(
    piece: Piece, rule: RowRule, around: NDArray[np.void], least: float, with_audit: bool, with_fixed: bool
) -> tuple[Judged, Sequence[pa.Table], Sequence[pa.Table]]:
    rows: list[pa.Table] = []
    fixed: list[pa.Table] = []
    blocks: Iterator[Table] = piece.blocks(None if with_audit or with_fixed else rule.columns)

    def kept(tables: list[pa.Table], wanted: bool) -> Callable[[pa.Table], None] | None:
        return tables.append if wanted else None

    judged = judge_blocks(
        blocks,
        rule,
        start=piece.start,
        least=least,
        write_audit=kept(rows, with_audit),
        write_fixed=kept(fixed, with_fixed),
        around=around,
    )
    return judged, rows, fixed
