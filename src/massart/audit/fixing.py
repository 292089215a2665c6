"""A table put right: the wrong targets replaced, what was given next to them, and what happened in each row.

Where a text file is fixed into a text file, every other cell stays as it is (:mod:`massart.audit.patching`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.audit.changes import Usual
from massart.audit.error_types import RowErrorTypes, RuleRows, columns_at_fault
from massart.audit.implied import are_open, implied_by, loose_of, places_of, settle_ties
from massart.audit.patching import is_text, patched
from massart.audit.table_audit import Audit
from massart.report import Notice
from massart.rows import BoolArray, FloatArray, files
from massart.rules import TermMatrix
from massart.tables import Notes, Number, Table, Target, column_values, encode, free_name, replaced, write_table

FILLED = "filled in"
"""What happened in a row whose target was missing."""

LEFT_OPEN = "left open"
"""What is said of a row that has something which no row that agrees has: it may be right, and stays as it is."""

RESTS_ON_OTHERS = "rests on rows that may be wrong"
"""What is said of a row for which other rows that may be wrong imply something: it stays as it is, too."""


@dataclass(frozen=True, slots=True, eq=False)
class Corrections:
    """What is changed: rows of the table and their new targets.

    For each row of the table, `wrong` is null where it was not judged, or is left open, and `kind` says what happened,
    "" where it agrees.
    """

    rows: NDArray[np.intp]
    values: FloatArray
    wrong: pa.Array
    kind: pa.Array

    @classmethod
    def of(
        cls,
        n_rows: int,
        kept: NDArray[np.intp],
        rows: RuleRows,
        kinds: RowErrorTypes,
        rounding: tuple[int | None, tuple[int, ...]],
        left_open: FloatArray,
        rests: BoolArray | None = None,
        usual: Mapping[str, Usual] | None = None,
    ) -> Corrections:
        """Take the wrong rows among those `kept` of `n_rows`, without those that are left open.

        The `rounding` is to how many places what the formula gives is rounded, and how; what is implied for rows that
        `rests` names rests on other rows, which may be wrong. Neither is changed where a column may be wrong.
        """
        index = np.flatnonzero(rows.labels.wrong)
        loose = loose_of(rows.formula, rows.agreement)
        implied, unsettled = settle_ties(rows.X, rows.formula, rounding[0], index, rounding[1], loose)
        is_open = are_open(rows.X[index], left_open) | unsettled
        on_others = np.zeros(len(index), dtype=bool) if rests is None else rests[index]
        doubts = {LEFT_OPEN: index[is_open], RESTS_ON_OTHERS: index[on_others], **columns_at_fault(rows, kinds, usual)}
        is_changed = ~np.isin(index, np.concatenate([*doubts.values()]))
        known, wrong = np.zeros((2, n_rows), dtype=bool)
        codes = np.zeros(n_rows, dtype=np.intp)
        known[kept], wrong[kept], codes[kept] = True, rows.labels.wrong, kinds.codes
        for code, some in enumerate(doubts.values(), len(kinds.words)):
            known[kept[some]], codes[kept[some]] = False, code
        kind = pa.array([*kinds.words, *doubts]).take(pa.array(codes))
        return cls(kept[index[is_changed]], implied[is_changed], pa.array(wrong, mask=~known), kind)

    @classmethod
    def of_audit(cls, audit: Audit, fill: bool) -> Corrections:
        """Take those of an audit, and rows without a target if these are to be filled in."""
        rests = None if audit.chains is None else audit.chains.open
        rounding = places_of(audit.X, audit.formula, audit.agreement), audit.ways_to_round
        kept, n_rows = audit.design.kept, audit.table.n_rows
        found = cls.of(n_rows, kept, audit.rule_rows, audit.kinds, rounding, audit.left_open, rests)
        if not fill:
            return found
        model = audit.model()
        implied, _, _ = implied_by(model, audit.table)
        blank = np.isnan(column_values(audit.table, model.encoding.target)) & ~np.ma.getmaskarray(implied)
        blank[blank] &= ~_are_open(audit, np.flatnonzero(blank))
        rows, values = np.flatnonzero(blank), implied.data[blank]
        kind = pc.if_else(pa.array(blank), FILLED, found.kind)
        return cls(np.append(found.rows, rows), np.append(found.values, values), found.wrong, kind)

    def applied(self, table: Table, target: Target, whole: bool | None = None) -> Table:
        """Return a table with its wrong targets replaced: the given ones stand next to them, what happened last."""
        given = free_name(f"{target.column}_given", table.column_names)
        found = replaced(table, target, self.rows, self.values, given, whole=whole)
        arrow = found.arrow
        for name, values in (("wrong", self.wrong), ("kind", self.kind)):
            arrow = arrow.append_column(free_name(name, arrow.column_names), values)
        return replace(found, arrow=arrow)


def _are_open(audit: Audit, rows: NDArray[np.intp]) -> BoolArray:
    """Return of which rows of the table, judged or not, the rule says nothing."""
    if not len(rows) or not audit.left_open.size:
        return np.zeros(len(rows), dtype=bool)
    some = replace(audit.table, arrow=audit.table.arrow.take(pa.array(rows)))
    design = encode(some, audit.plan.encoding, with_target=False, is_part=True)
    terms = [term.term for term in audit.formula.terms if term.term is not None]
    found = np.ones(len(rows), dtype=bool)
    found[design.kept] = are_open(TermMatrix(design.columns, terms)[np.arange(len(design.kept))], audit.left_open)
    return found


def fixed_table(audit: Audit, *, fill: bool = False) -> Table:
    """Return the table of an audit with its wrong targets replaced; the given ones stand next to them."""
    return Corrections.of_audit(audit, fill).applied(audit.table, audit.plan.encoding.target)


def write_fixed(path: str | Path, audit: Audit, source: object, *, fill: bool = False) -> tuple[str, ...]:
    """Write the table of an audit with its wrong targets replaced, as text where it was read from `source` as text.

    Return what a reader should know: where cells of a text could not be left as they are.
    """
    content: bytes | str = ""
    changes = Corrections.of_audit(audit, fill)
    if isinstance(source, str | Path) and Path(source).is_file():
        content = patched(Path(source), Path(path), audit, changes)
    if isinstance(content, bytes):
        files.write(Path(path), content)
        return ()
    table = changes.applied(audit.table, audit.plan.encoding.target)
    write_table(path, table, notes_on_table(audit, table))
    return rewritten(source, path, content)


def rewritten(source: object, path: str | Path, why: str) -> tuple[str, ...]:
    """Say that cells of a text were written anew, and why; in other files cells have no spelling to keep."""
    if not isinstance(source, str | Path) or not is_text(Path(source)) or not is_text(Path(path)):
        return ()
    return (Notice("rewritten", why=why),)


def notes_on_rows(audit: Audit, columns: dict[str, object]) -> Notes:
    """Return the notes on `Audit.rows`: the given values that are wrong are marked."""
    wrong = np.ma.filled(np.ma.asarray(columns[audit.column_of(columns, "wrong")]), False).astype(bool)
    return Notes({audit.column_of(columns, "given"): wrong}, findings(audit), _decimals(audit))


def notes_on_table(audit: Audit, table: Table) -> Notes:
    """Return the notes on `Audit.fixed`: what was replaced is marked, and what was given next to it."""
    target, names = audit.formula.target, audit.table.column_names
    old = free_name(f"{target}_given", names)
    wrong = table.column(free_name("wrong", [*names, old])).fill_null(False).to_numpy()
    decimals = _decimals(audit)
    if target in decimals:
        decimals[old] = decimals[target]
    return Notes({target: wrong, old: wrong}, findings(audit), decimals)  # what was left as it is has no colour


def _decimals(audit: Audit) -> dict[str, str]:
    """Return the decimal mark of each column of numbers."""
    encoding = audit.plan.encoding
    return {entry.column: entry.decimal for entry in (encoding.target, *encoding.inputs) if isinstance(entry, Number)}


def findings(audit: Audit) -> list[list[object]]:
    """Return the rule, the verdict, the counts, the kinds of errors and the notices as rows of a sheet."""
    rows: list[list[object]] = [
        ["table", audit.table.name],
        ["target", audit.formula.target],
        ["rule", str(audit.formula) if audit.is_rule else "none"],
        ["verdict", audit.certificate.verdict.name],
        ["meaning", audit.explanation],
        ["rows", audit.n_total],
        ["rows judged", audit.n_judged],
        ["rows wrong", audit.n_wrong],
        ["rows off by a last place", audit.n_last_place],
    ]
    if audit.n_apart:
        rows.append(["rows set apart", audit.n_apart])
    if audit.is_rule and audit.kinds.kinds:
        rows += [[], ["what happened", "", "rows"], *(["", kind.label, kind.rows] for kind in audit.kinds.kinds)]
    if audit.notices:
        rows.append([])
        rows.extend(["notice", notice] for notice in audit.notices)
    return rows
