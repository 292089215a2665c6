"""A saved rule on other rows: what it gives for each of them, how many are wrong, and what happened in these.

Nothing is searched, so one read is enough. It keeps the wrong rows with the largest residuals, what is next to them,
and some others drawn at random; error types are found in these as in any table. Only where more rows are wrong than are
kept, a second read counts the error types and writes the audit. Small tables, and those whose rule looks at other rows,
are held as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from massart.audit.error_types import LAST_PLACE as OFF_BY_A_PLACE
from massart.audit.error_types import Catalogue, RowErrorTypes, kinds_of
from massart.audit.implied import places_of
from massart.audit.judged import ROWS_KEPT, Judged
from massart.audit.judging import RowRule, judge_blocks, paired
from massart.audit.model_file import SavedModel, load_model
from massart.audit.prediction import Prediction, certificate_of, compared_with, predicted
from massart.audit.segments import TableCovariates
from massart.audit.summary import MAX_UNJUDGED, Contract, Outcome
from massart.audit.table_audit import ROW, Audit, Whole
from massart.certificate import Verdict
from massart.report import Notice, Usage
from massart.rows import Callback, silent
from massart.tables import (
    Stream,
    Table,
    TableError,
    default_memory,
    frame_in,
    left_out,
    require_column,
    stream_table,
    table_of,
    table_writer,
    write_columns,
)

MOST_SCANNED = 40_000
"""Rows of a table up to which segments are looked for in which a saved rule breaks."""

_LOG = logging.getLogger("massart")


@dataclass(frozen=True, slots=True)
class Check:
    """A table next to a saved rule, and whether it keeps what is asked of it.

    Attributes
    ----------
    audit : Audit
    contract : Contract
    """

    audit: Audit
    contract: Contract

    @property
    def outcome(self) -> Outcome:
        """Pass or fail, and why."""
        return self.contract.outcome(self.audit)

    @property
    def passed(self) -> bool | None:
        """Whether the table keeps the contract; None where rows are wrong and no limit was set."""
        return self.outcome.passed

    def __repr__(self) -> str:
        words = {True: " passed", False: " failed", None: ""}
        return f"<Check{words[self.passed]}: {self.outcome.reason}>"

    def _repr_html_(self) -> str:
        return self.audit._repr_html_()


def check_table(
    model: SavedModel | str | Path,
    source: object,
    *,
    max_wrong: float | None = None,
    max_unjudged: float | None = MAX_UNJUDGED,
    require: Verdict = Verdict.MAJORITY,
    id: str | None = None,
    group: str | None = None,
    strict: bool = False,
    in_full: bool = False,
    max_memory: int | None = None,
    rows_held: int = 50_000,
    rows_drawn: int = 2_000,
    rows_kept: int = ROWS_KEPT,
    audit: str | Path | None = None,
    predictions: Callable[[Prediction], None] | None = None,
    callback: Callback = silent,
) -> Check:
    """Compare the rows of a table with a saved rule.

    Parameters
    ----------
    model : SavedModel, str or Path
        Of ``massart fit --save`` or :meth:`massart.Audit.model`.
    source : str, Path, Stream, Table or data frame
        What :func:`massart.audit_table` reads.
    max_wrong : float, optional
        The table fails if the share of wrong rows, of those that are judged, is larger.
    max_unjudged : float or None
        It fails, too, if the share of rows that could not be judged is larger: those that lack a value that the rule
        reads, or have a category that it does not know. None for any share.
    require : Verdict
        It fails if less was known of the rule where it was found.
    id, group : str, optional
        The column that names the rows, and one for whose values wrong rows are counted.
    strict : bool
        Refuse missing values instead of leaving out their rows.
    in_full : bool
        Whether the rows that are kept have all columns, and the rows that use each coefficient are counted, also where
        the table is not held as a whole; a report shows them.
    max_memory : int, optional
        Bytes that a table may take that is held as a whole.
    rows_held : int
        Rows up to which it is; a larger table is read block by block, and of its rows are
        kept `rows_drawn`, drawn at random, and the `rows_kept` wrong ones that are farthest off.
    rows_drawn, rows_kept : int
    audit : str or Path, optional
        A file to write: the rows with what was found of them; of a large file the wrong ones, in its order.
    predictions : callable, optional
        Given what the rule gives for all rows, with the same kinds, block by block.
    callback : callable

    Returns
    -------
    Check

    Raises
    ------
    TableError
        Naming the file, column or row at fault.
    """
    model = (model if isinstance(model, SavedModel) else load_model(model)).weighed
    most = default_memory() if max_memory is None else max_memory
    with _opened(source, most, callback) as rows:
        for name in filter(None, (model.encoding.target.column, id, group)):
            require_column(rows, name)
        segment, model = model.segment, model.for_columns(rows.column_names)
        rule = RowRule.of_model(model, id_column=id, group_column=group, strict=strict, rows_kept=rows_kept)
        rows = held(model, rows, most, callback, rows_held)
        listed: list[pa.Table] | None = None if predictions is None else []
        if isinstance(rows, Table):
            found = _held_against(model, rule, rows, audit)
        else:
            reading = _Reading(model, rule, rows, in_full or audit is not None, callback)
            found = reading.audit(rows_drawn, audit, listed)
        if segment is not None and model.segment is None:
            found = found.having(notices=(*found.notices, Notice("not apart", where=segment.where)))
        if predictions is not None:
            for part in predicted(model, rows, id, found, listed, callback):
                predictions(part)
    check = Check(found.having(frame=frame_in(source)), Contract(max_wrong, require, max_unjudged))
    for notice in found.notices:
        _LOG.info("%s: %s", found.table.name, notice)
    _LOG.info("%s: %s", found.table.name, check.outcome.reason)
    return check


@contextmanager
def _opened(source: object, most: int, callback: Callback) -> Iterator[Table | Stream]:
    """Yield a table, or the stream of a file."""
    if isinstance(source, str | Path):
        with stream_table(source, max_memory=most, callback=callback) as stream:
            yield stream
    else:
        yield source if isinstance(source, Stream) else table_of(source)


def held(
    model: SavedModel, rows: Table | Stream, most: int, callback: Callback = silent, rows_held: int = 50_000
) -> Table | Stream:
    """Return a stream as a table, if it is small, or if the rule looks at other rows and there is memory."""
    if isinstance(rows, Table):
        return rows
    ordered = next((term.term for term in model.formula.terms if term.term and term.term.needs_order), None)
    if not rows.is_larger_than(most) and (ordered or rows.n_rows <= rows_held):
        return rows.whole(callback)
    if ordered:
        raise TableError(f"the term {ordered} needs the whole table in memory: raise --max-memory")
    return rows


def _held_against(model: SavedModel, rule: RowRule, table: Table, path: str | Path | None) -> Audit:
    """Compare the rows of a table in memory with a rule, and write them if there is a path."""
    found = _some_judged(compared_with(model, rule, table).chained)
    found = found.having(notices=(*found.notices, *_broken_in(found)))
    if path is not None:
        write_columns(path, found.rows())
    return found


def _some_judged(audit: Audit) -> Audit:
    """Raise TableError if no row was judged."""
    if not audit.n_judged:
        raise TableError(f"{audit.table.name}: no row can be compared with the rule. {' '.join(audit.notices)}")
    return audit


@dataclass(frozen=True, slots=True)
class _Reading:
    """A stream next to a rule."""

    model: SavedModel
    rule: RowRule
    stream: Stream
    in_full: bool  # whether the rows that are kept have all columns, and the rows that use each coefficient are counted
    callback: Callback

    def blocks(self) -> Iterable[Table]:
        """Read the columns that are needed."""
        return self.stream.blocks(None if self.in_full else self.rule.columns, self.callback)

    def audit(self, rows_drawn: int, path: str | Path | None, listed: list[pa.Table] | None) -> Audit:
        """Compare all rows; where not all wrong rows were kept, list what happened in each of them."""
        stream = self.stream
        rng, n_rows = np.random.default_rng(0), stream.n_rows
        drawn = np.sort(rng.choice(n_rows, min(n_rows, rows_drawn), replace=False))
        rule = replace(self.rule, pairs=True, counts_usage=self.in_full, asked=drawn)
        judged = judge_blocks(self.blocks(), rule)
        kept = judged.kept.pruned()
        arrow, numbers = (*kept.tables, stream.schema.empty_table())[0], kept.rows["number"]
        table = Table(arrow, stream.name, stream.decimal, stream.spellings, numbers, stream.files)
        found = compared_with(self.model, self.rule, table, is_part=True)
        whole = Whole(
            judged,
            np.isin(numbers, drawn),
            tuple(Usage(*counts) for counts in judged.usage.tolist()) if self.in_full else (),
            RowErrorTypes(np.zeros(len(found.agree), dtype=np.intp), ()),
            places_of(found.X, found.formula, found.agreement),
        )
        found = replace(found, whole=whole)
        labels = replace(found.labels, around=kept.rows["around"][kept.rows["size"] >= 0].ravel())
        rows = replace(found.rule_rows, labels=labels)
        kinds = kinds_of(rows)
        n_judged, n_agree, n_last_place = found.n_judged, found.n_agree, found.n_last_place
        n_wrong, n_listed = found.n_wrong, int(np.count_nonzero(found.wrong))
        notices = left_out(judged.gaps, judged.n_rows, refit=False)
        if is_read_again := n_wrong > n_listed or (path is not None and found.n_apart > 0):
            catalogue = Catalogue.of(kinds, rows)
            rule = replace(rule, catalogue=catalogue, asked=numbers, pairs=False)
            rule = paired(rule, judged) if catalogue.has_pairs else rule
            kinds = self._listed(rule, path, listed).error_types(numbers[found.design.kept], rule.catalogue.kinds)
        if n_wrong > n_listed:
            notices = (*notices, Notice("listed", n=n_listed))
        # Of those off by a last place only some were kept.
        every = (replace(one, rows=n_last_place) if one.family == OFF_BY_A_PLACE else one for one in kinds.kinds)
        kinds = replace(kinds, kinds=tuple(every))
        certificate = certificate_of(self.model, n_judged, n_agree, n_last_place)
        found = replace(found, certificate=certificate, notices=notices, whole=replace(whole, kinds=kinds))
        if path is not None and not is_read_again:
            write_columns(path, _some_judged(found).wrong_rows())
        return _some_judged(found)

    def _listed(self, rule: RowRule, path: str | Path | None, listed: list[pa.Table] | None) -> Judged:
        """Read it once more: write the wrong rows, and list their numbers and error types."""
        with nullcontext() if path is None else table_writer(path, harmless=True) as write:

            def wrong(rows: pa.Table) -> None:
                if write is not None:
                    write(rows)
                if listed is not None:
                    listed.append(rows.select([Audit.column_of(rows.column_names, name) for name in (ROW, "kind")]))

            return judge_blocks(self.blocks(), rule, write_audit=wrong)


def _broken_in(audit: Audit) -> Iterator[Notice]:
    """Name the segment in which a saved rule breaks, if there is one: a new tariff since June, say."""
    n = len(audit.agree)
    if (
        audit.segment is not None
        or not n
        or n > MOST_SCANNED
        or audit.design.columns.n_rows != n
        or not audit.wrong.any()
    ):
        return
    # A number that the rule was not made of may have been made of the target.
    covariates = TableCovariates.of(audit.table, audit.plan, audit.design, excluded=(), asked=True, drawn=None)
    found = covariates.scan.worst(audit.wrong, labels=audit.given)
    if found is not None and found.is_accused:
        facts = replace(audit, segment=covariates.named(found)).segment_facts
        yield from [] if facts is None else [Notice("broken", facts=facts)]
