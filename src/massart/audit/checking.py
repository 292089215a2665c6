"""A saved rule on other rows: nothing is searched, so one read tells how many are wrong, and what happened in them.

The read keeps the wrong rows with the largest residuals, what is next to them, and some others drawn at random; kinds
of errors are found in these as in any table. Only where more rows are wrong than are kept, a second read counts the
kinds and writes the audit. Small tables, and those whose rule looks at other rows, are held as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.contract import MAX_UNJUDGED, Contract, Outcome
from massart.audit.error_types import LAST_PLACE as OFF_BY_A_PLACE
from massart.audit.error_types import Catalogue, RowErrorType, RowErrorTypes, kinds_of
from massart.audit.implied import places_of
from massart.audit.judging import ROWS_KEPT, RowRule, judge_blocks
from massart.audit.model_file import SavedModel, load_model
from massart.audit.prediction import Prediction, held, predicted
from massart.audit.segments import TableCovariates
from massart.audit.streaming import paired
from massart.audit.table_audit import ROW, Audit, Whole
from massart.certificate import Certificate, Verdict, certify_counts
from massart.report import Notice
from massart.rows import AGREES, LAST_PLACE, Callback, silent
from massart.tables import (
    Plan,
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
_FEW = 200
_SEED = 0


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
    rule = RowRule.of_model(model, id_column=id, group_column=group, strict=strict, rows_kept=rows_kept)
    checking = _Checking(model, rule, in_full or audit is not None, callback, rows_drawn)
    most = default_memory() if max_memory is None else max_memory
    with _opened(source, most, callback) as rows:
        for name in (model.encoding.target.column, id, group):
            if name is not None:
                require_column(rows, name)
        rows = held(model, rows, most, callback, rows_held)
        listed: list[pa.Table] | None = None if predictions is None else []
        found = checking.table(rows) if isinstance(rows, Table) else checking.read(rows, audit, listed)
        if not found.n_judged:
            raise TableError(f"{found.table.name}: no row can be compared with the rule. {' '.join(found.notices)}")
        if audit is not None and isinstance(rows, Table):
            write_columns(audit, found.rows())
        if predictions is not None:
            for part in predicted(model, rows, id, _known(found, listed), callback):
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


def _known(found: Audit, listed: list[pa.Table] | None) -> tuple[NDArray[np.intp], NDArray[np.str_]]:
    """Return the wrong rows and what happened in them: those that were kept, if not all of them were listed."""
    if listed:
        rows = pa.concat_tables(listed)
        numbers, kinds = (rows[Audit.column_of(rows.column_names, name)].to_numpy() for name in (ROW, "kind"))
        return numbers - 1, kinds.astype(str)
    wrong = np.flatnonzero(found.wrong)
    return found.numbers_of(found.design.kept[wrong]), found.kinds.of(wrong)


@dataclass(frozen=True, slots=True)
class _Checking:
    """What is asked of a model, whatever the rows."""

    model: SavedModel
    rule: RowRule
    in_full: bool
    callback: Callback
    rows_drawn: int

    def table(self, table: Table, *, is_part: bool = False) -> Audit:
        """Compare the rows of a table in memory, which may be some rows of another."""
        model = self.model
        design, X, marks = self.rule.marked(table, is_part=is_part)
        agree, last_place = marks & AGREES > 0, marks & LAST_PLACE > 0
        certificate = _certificate(model, len(marks), int(agree.sum()), int(last_place.sum()))
        plan = Plan(model.encoding, self.rule.id_column, self.rule.group_column, ())
        notices = (*table.remarks, *left_out(design.gaps, design.n_total, refit=False), *design.remarks)
        found = Audit(table, plan, design, X, model.formula, certificate, agree, last_place, notices, saved=model)
        if is_part:
            return found
        found = found.chained
        return found.having(notices=(*found.notices, *_broken_in(found)))

    def read(self, stream: Stream, audit: str | Path | None, listed: list[pa.Table] | None) -> Audit:
        """Compare the rows of a stream, block by block; where not all wrong rows were kept, say what they are."""
        rule = replace(self.rule, pairs=True, counts_usage=self.in_full)
        names = None if self.in_full else rule.columns
        drawn = _Drawn(stream.n_rows, self.rows_drawn)
        judged = judge_blocks(drawn.passing(stream.blocks(names, self.callback)), rule)
        worst = judged.worst.pruned()
        table, is_drawn = worst.joined(drawn.table, np.ones(len(drawn.numbers), dtype=bool))
        found = self.table(table, is_part=True)
        off = np.flatnonzero(~found.agree) if not found.agree.all() else np.arange(min(_FEW, len(found.agree)))
        whole = Whole(
            judged,
            is_drawn,
            tuple((n, agree) for n, agree in judged.usage.tolist()) if self.in_full else (),
            RowErrorTypes(np.zeros(len(found.agree), dtype=np.intp), ()),
            places_of(found.X[off], found.formula, found.agreement) if len(off) else None,
        )
        found = replace(found, whole=whole)
        labels = replace(found.labels, around=worst.neighbours.ravel())
        kinds = kinds_of(found.X, found.rule, labels, found.columns)
        n_judged, n_agree, n_last_place = found.n_judged, found.n_agree, found.n_last_place
        n_wrong, n_listed = n_judged - n_agree - n_last_place, int(np.count_nonzero(found.wrong))
        notices = left_out(judged.gaps, judged.n_rows, refit=False)
        if n_wrong > n_listed:
            catalogue = Catalogue.of(kinds, found.X, found.rule, labels, found.columns)
            numbers = found.numbers_of(found.design.kept)
            rule = replace(rule, catalogue=catalogue, looked_at=numbers, pairs=False)
            rule = paired(rule, judged) if catalogue.has_pairs else rule
            with nullcontext() if audit is None else table_writer(audit, harmless=True) as write:

                def wrong(rows: pa.Table) -> None:
                    if write is not None:
                        write(rows)
                    if listed is not None:
                        listed.append(rows.select([Audit.column_of(rows.column_names, name) for name in (ROW, "kind")]))

                judged = judge_blocks(stream.blocks(names, self.callback), rule, write_audit=wrong)
            codes = np.array([judged.looked_at.get(number, 0) for number in numbers.tolist()], dtype=np.intp)
            kinds = rule.catalogue.counted(codes, judged.kinds.tolist())
            notices = (*notices, Notice("listed", n=n_listed))
        kinds = replace(kinds, kinds=tuple(_counting(kind, n_last_place) for kind in kinds.kinds))
        certificate = _certificate(self.model, n_judged, n_agree, n_last_place)
        found = replace(found, certificate=certificate, notices=notices, whole=replace(whole, kinds=kinds))
        if audit is not None and n_wrong == n_listed:
            write_columns(audit, found.wrong_rows())
        return found


def _broken_in(audit: Audit) -> Iterator[Notice]:
    """Name the segment in which a saved rule breaks, if there is one: a new tariff since June, say."""
    n = len(audit.agree)
    if not n or n > MOST_SCANNED or audit.design.columns.n_rows != n or not audit.wrong.any():
        return
    # A number that the rule was not made of may have been made of the target.
    covariates = TableCovariates.of(audit.table, audit.plan, audit.design, excluded=(), asked=True, drawn=None)
    found = covariates.covariates.scan.worst(audit.wrong, labels=audit.given)
    if found is not None and found.is_accused:
        facts = replace(audit, segment=covariates.named(found)).segment_facts
        yield from [] if facts is None else [Notice("broken", facts=facts)]


def _counting(kind: RowErrorType, n_last_place: int) -> RowErrorType:
    """Return a kind with the number of its rows: of those off by a last place only some were kept."""
    return replace(kind, rows=n_last_place) if kind.family == OFF_BY_A_PLACE else kind


class _Drawn:
    """Rows of a stream drawn at random, kept while its blocks pass by."""

    def __init__(self, n_rows: int, most: int) -> None:
        rng = np.random.default_rng(_SEED)
        self.numbers = np.sort(rng.choice(n_rows, min(n_rows, most), replace=False))
        self._tables: list[pa.Table] = []
        self._block: Table | None = None

    @property
    def table(self) -> Table:
        """The rows drawn."""
        assert self._block is not None
        return replace(self._block, arrow=pa.concat_tables(self._tables), numbers=self.numbers)

    def passing(self, blocks: Iterable[Table]) -> Iterator[Table]:
        """Yield the blocks."""
        for block in blocks:
            assert block.numbers is not None
            start, stop = np.searchsorted(self.numbers, [block.numbers[0], block.numbers[-1] + 1])
            self._tables.append(block.arrow.take(pa.array(self.numbers[start:stop] - block.numbers[0])))
            self._block = block
            yield block


def _certificate(model: SavedModel, n_rows: int, n_agree: int, n_last_place: int) -> Certificate:
    """Return what was known of the rule, with the counts of other rows."""
    verdict = Verdict.__members__.get(model.verdict, Verdict.PLURALITY)
    return certify_counts(
        verdict,
        model.agreement,
        model.assumption,
        n_rows=n_rows,
        n_agree=n_agree,
        n_last_place=n_last_place,
        n_columns=len(model.formula.all_terms),
    )
