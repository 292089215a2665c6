"""A file larger than memory: some rows propose a rule, and one read of all of them judges, counts and writes.

The rows that propose are gathered in a first read, by the columns alone (:func:`massart.tables.gather`), and the rule
is looked for in them as in any table. In a second read each row is compared with it (:mod:`massart.audit.judging`):
rows are tallied, counted by error type and by group, written to the audit and to the fixed table, and the worst are
kept. The verdict is made by the rows gathered and the tally of all. Where rows were swapped, a read before that finds
the pairs.

Both reads may be done by the workers of a Dask cluster. A task there is a piece of a Parquet file and a small rule, and
has no other input: what a lost worker had is done again by another. Few tasks are under way at a time, and their
results come in order, so that what the client holds is bounded.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.audit.explanations import NO_ROWS
from massart.audit.finding import Found, find
from massart.audit.fixing import rewritten
from massart.audit.judged import Judged
from massart.audit.judging import RowRule, Writer, judge_blocks, numbered, paired
from massart.audit.question import Call, ReadSample
from massart.audit.table_audit import Audit, Whole
from massart.certificate import Certificate, Verdict
from massart.report import Notice, Usage
from massart.rows import AGREES, LAST_PLACE, Progress, ahead
from massart.tables import (
    TOTAL,
    Gathered,
    RowGroups,
    Stream,
    Table,
    gather,
    gather_some,
    join,
    left_out,
    limit_of,
    quote,
    row_groups_of,
    table_writer,
)


class _Discard(Exception):
    """What was written is not to stand."""


def audit_stream(stream: Stream, call: Call) -> Audit:
    """Find the rule behind a column of a stream, and the rows that do not follow it.

    If there is a rule, the wrong rows are written in the order of the stream, and the table with its wrong targets
    replaced: if the rule is certain, or by force. The reads are done here, or by the workers of a Dask cluster.
    """
    _check(call)
    engine = Here(stream, call) if call.client is None else OnCluster(stream, call)
    gathered = engine.gather()
    found = find(ReadSample(gathered.table, ordered=False, drawn=gathered.drawn), call)
    is_all = len(gathered.numbers) == stream.n_rows
    rule = RowRule.of(found.audit, gathered.gappy, call.strict, is_all=is_all)
    rule = replace(rule, rows_kept=call.rows_kept)
    if rule.catalogue.has_pairs:
        rule = paired(rule, engine.judged(rule.pairing, None, None))
    fixed = call.fixed if call.force or found.audit.is_certain else None
    while True:
        try:
            with contextlib.ExitStack() as stack:
                write_audit, write_fixed = (
                    stack.enter_context(table_writer(path, harmless=harmless))
                    if rule.is_rule and path is not None
                    else None
                    for path, harmless in ((call.audit, True), (fixed, False))
                )
                judged = engine.judged(rule, write_audit, write_fixed)
                certificate = found.answer.recovery.verdicts[0](judged.tally)
                verdict = certificate.verdict
                is_as_taken = (verdict is Verdict.NONE) != rule.is_rule
                if not is_as_taken or (write_fixed is not None and not call.force and not verdict.certain):
                    raise _Discard
            break
        except _Discard:  # all rows contradict those from which the rule came, or it is not certain
            rule = replace(rule, is_rule=verdict is not Verdict.NONE)
            fixed = None if is_as_taken else fixed
    answer = _assembled(gathered, found, rule, judged, certificate)
    if fixed is None or not rule.is_rule:
        return answer
    return answer.having(notices=(*answer.notices, *rewritten(stream.name, fixed, "the file was read in blocks")))


def _check(call: Call) -> None:
    """Raise ValueError for what takes the whole table in memory."""
    if call.rules is not None:
        raise ValueError(
            "a list of rules is looked for where the whole table is in memory: raise --max-memory, leave out --dask, "
            "or take a part of the rows"
        )
    if call.fixed is not None and call.fill:
        raise ValueError("missing targets are filled in where the whole table is in memory: raise --max-memory")


def _assembled(gathered: Gathered, found: Found, rule: RowRule, judged: Judged, certificate: Certificate) -> Audit:
    """Return the audit of the rows that were kept, with what all rows say."""
    audit, kept = found.audit, judged.kept.pruned()
    (arrow,), numbers = kept.tables, kept.rows["number"]  # where rows were looked at, these are among the rows kept
    table = replace(gathered.table, arrow=arrow.select(rule.columns), numbers=numbers)
    design, _, marks = rule.marked(table, is_part=False)
    n_seen = len(gathered.numbers)
    formula = found.formula(certificate)
    X = rule.terms(design.columns, design.X, formula)
    usage = [Usage(0, 0)] * len(formula.all_terms)
    for place, counts in zip(rule.used, judged.usage.tolist(), strict=True):
        usage[place] = Usage(*counts)
    kinds = judged.error_types(numbers[design.kept], rule.catalogue.kinds)
    second = None
    if rule.second is not None and judged.kinds[1]:
        rows = np.flatnonzero(kinds.of(np.arange(len(kinds.codes))) == rule.second.kind.label)
        second = rule.second.of_file(rows, int(judged.kinds[1]))
    of_rows = {*audit.plan.of_rows, *(each for each in audit.notices if isinstance(each, Notice))}
    about = (
        Notice("among", notice=notice) if notice in of_rows else notice
        for notice in audit.notices
        if notice not in audit.design.notices
    )
    return Audit(
        table,
        rule.plan,
        design,
        X,
        formula,
        certificate,
        marks & AGREES > 0,
        marks & LAST_PLACE > 0,
        (
            *left_out(judged.gaps, judged.n_rows),
            *audit.design.remarks,
            *([Notice("closely", n=n_seen, n_rows=judged.n_rows)] if n_seen < judged.n_rows else []),
            *islice(chain(_totals_among(gathered.table), _totals_among(table)), 1),
            *about,
        ),
        Whole(judged, np.isin(numbers, gathered.numbers[gathered.drawn]), tuple(usage), kinds, rule.places, second),
        segment=audit.segment,
        segment_rule=audit.segment_rule,
    )


def _totals_among(table: Table) -> Iterator[Notice]:
    """Say that a row looks like the total of others: to leave such rows out takes the whole table."""
    for column in table.arrow.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            for row in pc.indices_nonzero(pc.match_substring_regex(column, TOTAL, ignore_case=True)).to_pylist():
                yield Notice("total row", place=table.place(row), text=quote(column[row].as_py()))


@dataclass(frozen=True, slots=True)
class Here:
    """Both reads are done in this process, while the next block is read."""

    stream: Stream
    call: Call

    def gather(self) -> Gathered:
        """Read the stream once, or as much of it as is needed, for the rows to look at closely."""
        stream, seed = self.stream, self.call.seed
        return gather_some(stream, seed) or gather(ahead(stream.blocks(callback=self.call.callback)), seed)

    def judged(self, rule: RowRule, write_audit: Writer | None, write_fixed: Writer | None) -> Judged:
        """Read it once more, and judge all rows; parts of files are written in order."""
        # What is written has all columns; otherwise those that are read are enough.
        writes = write_audit is not None or write_fixed is not None
        blocks: Iterable[Table] = self.stream.blocks(None if writes else rule.columns, self.call.callback)
        blocks = ahead(blocks) if writes else blocks  # what is written does not keep the next block waiting
        return judge_blocks(blocks, rule, write_audit=write_audit, write_fixed=write_fixed)


_JOINED = 8  # what pieces gather is joined when there is so much of it
_AHEAD = 2  # tasks for each thread of a worker: one is worked on, and one is ready


@dataclass(frozen=True, slots=True)
class OnCluster:
    """Both reads are done by the workers of a Dask cluster."""

    stream: Stream
    call: Call

    def gather(self) -> Gathered:
        """Read the stream once, for the rows to look at closely."""
        pieces, seed = row_groups_of(self.stream), self.call.seed
        parts: list[Gathered] = []
        limit = np.inf
        # Which rows are drawn is known better the more pieces are done.
        for part in self._results(((_gathered, piece, seed, limit) for piece in pieces), len(pieces)):
            parts.append(part)
            if len(parts) == _JOINED:
                parts = [join(parts, seed)]
                limit = limit_of(parts[0], seed)
        return join(parts, seed)

    def judged(self, rule: RowRule, write_audit: Writer | None, write_fixed: Writer | None) -> Judged:
        """Read it once more, and judge all rows; parts of files are written in order, here."""
        total = rule.nothing
        pieces = row_groups_of(self.stream)
        starts = [*(piece.start for piece in pieces), self.stream.n_rows]
        ends = NO_ROWS
        if rule.looks_around:
            asked = rule.within(0, 0)
            found = self._results(((_ends, piece, asked) for piece in pieces), len(pieces))
            ends = np.concatenate([NO_ROWS, *found])
        tasks = (
            (
                _judged,
                piece,
                rule.within(start, stop),
                ends[np.isin(ends["number"], [start - 1, stop])],
                write_audit is not None,
                write_fixed is not None,
            )
            for piece, (start, stop) in zip(pieces, pairwise(starts), strict=True)
        )
        for found, rows, fixed in self._results(tasks, len(pieces)):
            total += found
            for write, tables in ((write_audit, rows), (write_fixed, fixed)):
                for table in tables:
                    if write is not None:
                        write(table)
        return total

    def _results(self, tasks: Iterator[tuple[Any, ...]], n_tasks: int) -> Iterator[Any]:
        """Yield the results of tasks in their order; few of them are under way at a time."""
        waiting: deque[Any] = deque()
        most = _AHEAD * max(sum(self.call.client.ncores().values()), 1)
        for done in range(n_tasks):
            while len(waiting) < most and (task := next(tasks, None)) is not None:
                waiting.append(self.call.client.submit(*task, pure=False))
            try:
                yield waiting.popleft().result()
            except Exception as error:
                if type(error).__name__ != "KilledWorker":
                    raise
                raise ConnectionError(
                    "workers of the Dask cluster died, one after the other, at the same piece of a file: "
                    "its row groups may be too large for their memory"
                ) from None
            self.call.callback(Progress("reading on the cluster", done + 1, float(n_tasks - done - 1), 0.0))


def _gathered(piece: RowGroups, seed: int, limit: float) -> Gathered:
    return gather(piece.blocks(), seed, piece.start, limit)


def _ends(piece: RowGroups, rule: RowRule) -> NDArray[np.void]:
    """Return the rows at the ends of a piece, as the rows next to them ask for them."""
    blocks = [rule.ends(block) for block in numbered(piece.blocks(rule.columns), piece.start)]
    return np.concatenate([NO_ROWS, *blocks[:1], *blocks[1:][-1:]])


def _judged(
    piece: RowGroups, rule: RowRule, around: NDArray[np.void], with_audit: bool, with_fixed: bool
) -> tuple[Judged, Sequence[pa.Table], Sequence[pa.Table]]:
    rows: list[pa.Table] = []
    fixed: list[pa.Table] = []
    judged = judge_blocks(
        piece.blocks(None if with_audit or with_fixed else rule.columns),
        rule,
        start=piece.start,
        write_audit=rows.append if with_audit else None,
        write_fixed=fixed.append if with_fixed else None,
        around=around,
    )
    return judged, rows, fixed
