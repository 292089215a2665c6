"""What a workbook of an audit shows besides its rows: wrong cells in colour, and a sheet of findings."""

from __future__ import annotations

import numpy as np

from massart.audit.table_audit import Audit
from massart.tables import Notes, Number, Table, free_name


def notes_on_rows(audit: Audit, columns: dict[str, object]) -> Notes:
    """Return the notes on `Audit.rows`: the given values that are wrong are marked."""
    name = next(name for name in reversed(columns) if name.startswith("wrong"))
    wrong = np.ma.filled(np.ma.asarray(columns[name]), False).astype(bool)
    given = next(name for name in reversed(columns) if name.startswith("given"))
    return Notes({given: wrong}, findings(audit), _decimals(audit))


def notes_on_table(audit: Audit, table: Table) -> Notes:
    """Return the notes on `Audit.fixed`: what was replaced is marked, and what was given beside it."""
    target, names = audit.formula.target, audit.table.column_names
    beside = free_name(f"{target}_given", names)
    wrong = table.column(free_name("wrong", [*names, beside])).fill_null(False).to_numpy()
    decimals = _decimals(audit)
    if target in decimals:
        decimals[beside] = decimals[target]
    return Notes({target: wrong, beside: wrong}, findings(audit), decimals)  # what was left as it is has no colour


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
