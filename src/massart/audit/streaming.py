"""A file larger than memory: some rows propose, and one read of all of them judges, counts and writes.

The rows that propose are gathered in a first read, by the columns alone (:func:`massart.tables.gather`), and the rule
is looked for in them as in any table. In a second read each row is compared with it (:mod:`massart.audit.judging`):
rows are tallied, counted by kind and by group, written to the audit and to the fixed table, and the worst are kept. The
verdict is made by the rows gathered and the tally of all. Where rows were swapped, a read before that finds the pairs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from massart.audit.coincidence import SURE
from massart.audit.explanations import NO_ROWS, swapped_rows
from massart.audit.finding import Found, Request, find
from massart.audit.fixing import rewritten
from massart.audit.implied import marks_of
from massart.audit.judging import Judge, Writer
from massart.audit.table_audit import Audit, Whole
from massart.audit.totals import Totals
from massart.certificate import Certificate, Verdict
from massart.rows import AGREES, LAST_PLACE
from massart.rows.ahead import ahead
from massart.tables import TOTAL, Gathered, Stream, Table, encode, gather, gather_some, left_out, quote, table_writer


class _Different(Exception):
    """All rows tell another story than those that proposed: what was written is not to stand."""


class _Uncertain(Exception):
    """The rule is not certain: a fixed table is not to stand."""


class Engine(Protocol):
    """Where the two reads of a stream are done."""

    def gather(self, stream: Stream, request: Request) -> Gathered:
        """Read it once, for the rows to look at closely."""

    def totals(
        self, stream: Stream, judge: Judge, request: Request, write_audit: Writer | None, write_fixed: Writer | None
    ) -> Totals:
        """Read it once more, and judge all rows; parts of files are written in order."""


class Here:
    """Both reads are done in this process, while the next block is read."""

    def gather(self, stream: Stream, request: Request) -> Gathered:
        """Read it once, or as much of it as is needed, for the rows to look at closely."""
        found = gather_some(stream, request.seed)
        return found or gather(ahead(stream.blocks(callback=request.callback)), request.seed)

    def totals(
        self, stream: Stream, judge: Judge, request: Request, write_audit: Writer | None, write_fixed: Writer | None
    ) -> Totals:
        """Read it once more, and judge all rows."""
        # What is written has all columns; otherwise those that are read are enough.
        names = None if write_audit or write_fixed else judge.columns
        blocks: Iterable[Table] = stream.blocks(names, request.callback)
        if write_audit or write_fixed:
            blocks = ahead(blocks)  # what is written does not keep the next block waiting
        return judge.totals(blocks, write_audit=write_audit, write_fixed=write_fixed)


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
    or by another engine (:mod:`massart.audit.cluster`).
    """
    engine = engine or Here()
    gathered = engine.gather(stream, request)
    found = find(gathered.table, request, ordered=False, drawn=gathered.drawn)
    judge = Judge.of(found.audit, gathered.gappy, request.strict)
    if judge.catalogue.has_pairs:
        judge = paired(judge, engine.totals(stream, judge.pairing, request, None, None))
    if not force and not found.audit.is_certain:
        fixed = None
    while True:
        try:
            totals, certificate = _read(stream, engine, judge, found, request, audit, fixed, force)
            break
        except _Different:
            judge = replace(judge, is_rule=not judge.is_rule)
        except _Uncertain:
            fixed = None
    answer = _assembled(gathered, found, judge, totals, certificate)
    if fixed is None or not judge.is_rule:
        return answer
    return replace(answer, notices=(*answer.notices, *rewritten(stream.name, fixed, "the file was read in blocks")))


def paired(judge: Judge, totals: Totals) -> Judge:
    """Return the judge that knows which rows were swapped, if these are not too many to tell."""
    rows = np.concatenate([NO_ROWS, *totals.pairs])
    given, implied, unit = rows["given"], rows["implied"], judge.agreement.unit
    swapped = swapped_rows(given, implied, unit)
    # With what other rows imply, as many have a partner as do by chance.
    by_chance = np.count_nonzero(swapped_rows(given, implied[::-1], unit))
    if len(rows) < totals.kinds[1] or by_chance > (1 - SURE) * np.count_nonzero(swapped):
        return replace(judge, catalogue=judge.catalogue.without_pairs())
    return replace(judge, swapped=rows["number"][swapped])


def _read(
    stream: Stream,
    engine: Engine,
    judge: Judge,
    found: Found,
    request: Request,
    audit: str | Path | None,
    fixed: str | Path | None,
    force: bool,
) -> tuple[Totals, Certificate]:
    """Judge all rows, and write files if there is a rule: raise _Different if they say otherwise."""
    with contextlib.ExitStack() as stack:
        write_audit = write_fixed = None
        if judge.is_rule and audit is not None:
            write_audit = stack.enter_context(table_writer(audit, harmless=True))
        if judge.is_rule and fixed is not None:
            write_fixed = stack.enter_context(table_writer(fixed, harmless=False))
        totals = engine.totals(stream, judge, request, write_audit, write_fixed)
        certificate = found.answer.recovery.verdicts[0](totals.tally)
        if (certificate.verdict is Verdict.NONE) == judge.is_rule:
            raise _Different
        if write_fixed is not None and not force and not certificate.verdict.certain:
            raise _Uncertain
    return totals, certificate


def _assembled(gathered: Gathered, found: Found, judge: Judge, totals: Totals, certificate: Certificate) -> Audit:
    """Return the audit of the rows at hand, with what all rows say."""
    audit, worst = found.audit, totals.worst.pruned()
    read = replace(gathered.table, arrow=gathered.table.arrow.select(judge.columns))
    table, drawn = worst.joined(read, gathered.drawn)
    assert table.numbers is not None
    design = encode(table, judge.encoding)
    assert design.y is not None
    formula = found.formula(certificate)
    X = judge.terms(design.columns, design.X, formula)
    marks = marks_of(table.name, X, design.y, formula, audit.agreement)
    codes = totals.looked_at | dict(zip(worst.numbers.tolist(), worst.codes.tolist(), strict=True))
    judged = table.numbers[design.kept].tolist()
    usage = [(0, 0)] * len(formula.all_terms)
    for place, (n, agree) in zip(judge.used, totals.usage.tolist(), strict=True):
        usage[place] = n, agree
    whole = Whole(
        totals.n_rows,
        drawn,
        totals.tally,
        tuple(usage),
        judge.catalogue.counted(np.array([codes.get(number, 0) for number in judged]), totals.kinds.tolist()),
        totals.groups,
        judge.places,
        segment=(int(totals.segment[0]), int(totals.segment[1])),
    )
    if judge.second is not None and totals.kinds[1]:
        first = [code for code, kind in enumerate(whole.kinds.kinds, 1) if kind.label == judge.second.kind.label]
        at_hand = np.flatnonzero(np.isin(whole.kinds.codes, first))
        whole = replace(whole, second_rule=judge.second.of_file(at_hand, int(totals.kinds[1])))
    closely = f"Looked closely at {len(gathered.numbers):,} of {totals.n_rows:,} rows"
    about = (_among(notice) for notice in audit.notices if notice not in audit.design.notices)
    return Audit(
        table,
        replace(audit.plan, encoding=judge.encoding),
        design,
        X,
        formula,
        certificate,
        marks & AGREES > 0,
        marks & LAST_PLACE > 0,
        (
            *left_out(totals.gaps, totals.n_rows),
            *audit.design.remarks,
            f"{closely}, and compared all of them with the rule.",
            *islice(chain(_totals_among(gathered.table), _totals_among(table)), 1),
            *about,
        ),
        whole,
        segment=audit.segment,
        segment_rule=audit.segment_rule,
    )


def _totals_among(table: Table) -> Iterator[str]:
    """Say that a row looks like the total of others: to leave such rows out takes the whole table."""
    for column in table.arrow.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            for row in pc.indices_nonzero(pc.match_substring_regex(column, TOTAL, ignore_case=True)).to_pylist():
                said = f"Row {table.place(row)} says {quote(column[row].as_py())}"
                yield f"{said}: totals are left out of tables that fit into memory only (--max-memory)."


def _among(notice: str) -> str:
    """Say of a notice that counts rows, or tells what the values of a column are like, which rows it is about."""
    about_rows = notice.startswith(("Of ", "Left out ", "Used "))
    return f"Among these: {notice[0].lower()}{notice[1:]}" if about_rows else notice
