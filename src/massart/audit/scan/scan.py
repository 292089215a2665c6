"""Which columns of a table follow a rule of which others: every column as a target, each identity once.

Each is grown from the others, and all rows judge (:mod:`massart.audit.scan.identities`). Short identities come first;
one that follows from others is left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.audit.question import Request, check_size
from massart.audit.scan.identities import SETTINGS, Grower, Identity, Known, Numbers, judged
from massart.audit.table_audit import Audit, versions
from massart.report import Findings, render_scan
from massart.rows import SQUARE_IS_FINITE, Callback, FloatArray, Progress, silent
from massart.tables import Category, Flag, Number, Table, TableError, column_values, groups_of, quote, role_of, table_of

MOST_TERMS = 8
BUDGET = 60.0


@dataclass(frozen=True, repr=False)
class Scan:
    """The rules among the columns of a table.

    Attributes
    ----------
    table : Table
    identities : tuple of Audit
        One for each rule, solved for the column that reads best; short rules first.
    copies : tuple of Audit
        Columns that are another one, but for a factor and a constant.
    constants : tuple of (str, object)
        Columns that have one value in every row, and it.
    codes : tuple of tuples of str
        Columns that name the same things: each value of one goes with one value of the other, in every row.
    tried : tuple of str
        The columns that were tried as targets.
    notices : tuple of str
        Sentences: columns that were left out, and what time did not suffice for.
    """

    table: Table
    identities: tuple[Audit, ...]
    copies: tuple[Audit, ...]
    constants: tuple[tuple[str, object], ...]
    codes: tuple[tuple[str, ...], ...]
    tried: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def without_rule(self) -> tuple[str, ...]:
        """Columns of numbers that are in no rule."""
        used = {name for audit in (*self.identities, *self.copies) for name in columns_of(audit)}
        return tuple(name for name in self.tried if name not in used)

    def rules(self) -> dict[str, list[Any]]:
        """Return the rules as columns: target, rule, verdict, rows, follow, last_place, wrong."""
        audits = (*self.identities, *self.copies)
        return {
            "target": [audit.formula.target for audit in audits],
            "rule": [str(audit.formula) for audit in audits],
            "verdict": [audit.certificate.verdict.name for audit in audits],
            "rows": [len(audit.agree) for audit in audits],
            "follow": [int(audit.agree.sum()) for audit in audits],
            "last_place": [audit.n_last_place for audit in audits],
            "wrong": [audit.n_wrong for audit in audits],
        }

    def summary(self) -> dict[str, Any]:
        """Return it as JSON values: what ``massart scan --json`` prints."""
        return {
            "massart": version("massart"),
            "table": self.table.name,
            "rows": self.table.n_rows,
            "columns": len(self.table.column_names),
            "columns_tried": list(self.tried),
            "identities": [_plain(audit) for audit in self.identities],
            "copies": [_plain(audit) for audit in self.copies],
            "constants": [{"column": name, "value": value} for name, value in self.constants],
            "codes": [list(names) for names in self.codes],
            "without_rule": list(self.without_rule),
            "notices": list(self.notices),
        }

    def to_html(self, facts: Mapping[str, str] | None = None) -> str:
        """Return the page that shows the rules: one file, which loads nothing."""
        uses: dict[str, list[int]] = {}  # the numbers of the rules that each column is in
        for number, audit in enumerate((*self.identities, *self.copies), 1):
            for name in columns_of(audit):
                uses.setdefault(name, []).append(number)
        return render_scan(
            {
                "title": self.table.name,
                "n_rows": self.table.n_rows,
                "identities": [_rule(audit) for audit in self.identities],
                "copies": [_rule(audit) for audit in self.copies],
                "uses": uses,
                "constants": self.constants,
                "codes": self.codes,
                "without_rule": self.without_rule,
                "notices": self.notices,
                "facts": {**(facts or {}), "versions": versions()},
            }
        )

    def __repr__(self) -> str:
        rules = [repr(audit) for audit in (*self.identities, *self.copies)]
        return "\n".join(
            [f"<Scan of {self.table.name}: {len(self.tried)} columns tried, {len(rules)} follow a rule>", *rules]
        )


def _rule(audit: Audit) -> Findings:
    return Findings(
        "", audit.formula, audit.certificate, audit.n_judged, audit.n_agree, audit.n_wrong, n_apart=audit.n_apart
    )


def _plain(audit: Audit) -> dict[str, Any]:
    return {
        "target": audit.formula.target,
        "columns": list(columns_of(audit)[1:]),
        "formula": str(audit.formula),
        "verdict": audit.certificate.verdict.name,
        "explanation": audit.explanation,
        "rows_judged": len(audit.agree),
        "rows_follow": int(audit.agree.sum()),
        "rows_last_place": audit.n_last_place,
        "rows_wrong": audit.n_wrong,
        "share_wrong": audit.wrong_share,
        "agreement": str(audit.agreement),
    }


def scan_table(
    source: object,
    *,
    exclude: Sequence[str] = (),
    wrong_at_most: float = 0.5,
    most_terms: int = MOST_TERMS,
    budget: float = BUDGET,
    seed: int = 0,
    callback: Callback = silent,
) -> Scan:
    """Find the rules among the columns of a table: every column of numbers is tried as a target.

    Parameters
    ----------
    source : str, Path, Table or data frame
        As for :func:`massart.audit_table`.
    exclude : sequence of str
        Columns that are not looked at.
    wrong_at_most : float
        The probability with which a label is wrong at most, as far as you know.
    most_terms : int
        Longer rules are not looked for.
    budget : float
        Seconds of processor time; what is not done by then is left out, and said.
    seed : int
        Of all random choices.
    callback : callable

    Returns
    -------
    Scan

    Raises
    ------
    TableError
        Where the table cannot be read, or has no two columns of numbers.
    """
    if not budget > 0:
        raise ValueError(f"budget must be positive, got {budget}")
    if most_terms < 1:
        raise ValueError(f"most_terms must be at least 1, got {most_terms}")
    table = source if isinstance(source, Table) else table_of(source)
    for name in exclude:
        table.column(name)
    clock = _Clock(time.thread_time() + budget, callback)
    seen = _look_at(table, frozenset(exclude))
    numbers, notices = seen.numbers, list(seen.notices)
    grower, ready, audits = Grower(numbers, seed), list[Identity](), list[Audit]()
    request = Request(numbers.names[0], wrong_at_most=wrong_at_most, seed=seed, callback=clock)
    with _until_stopped(notices, "columns were tried"):
        for k, target in enumerate(numbers.names):
            clock.show("looking for rules", k + 1, len(numbers.names) - k - 1, ready[-1] if ready else "")
            ready += grower.identities(target, clock.share(len(numbers.names) - k))
    with _until_stopped(notices, "rules were judged"):
        for audit in _judged(table, grower, ready, request, most_terms, clock):
            audits.append(audit)
    audits = [audit for audit in audits if not _is_part(audit, audits)]
    trivial = [_is_copy(audit) for audit in audits]
    return Scan(
        table,
        tuple(audit for audit, copy in zip(audits, trivial, strict=True) if not copy),
        tuple(audit for audit, copy in zip(audits, trivial, strict=True) if copy),
        seen.constants,
        _not_in(seen.codes, audits),
        numbers.names,
        tuple(notices),
    )


def _judged(
    table: Table, grower: Grower, ready: list[Identity], request: Request, most_terms: int, clock: _Clock
) -> Iterator[Audit]:
    """Yield what all rows say of identities, the simplest first, but for those that follow from others.

    Where one reads a column that follows from others, there may be a simpler one without it, or another one.
    """
    known, derived, again, found = Known(grower.numbers), set[str](), set[str](), ""
    while ready:
        clock.show("judging rules", len(derived) + 1, len(ready), found)
        one = min(ready, key=lambda one: one.difficulty)
        ready.remove(one)
        implied = known.implies(one)
        if one.target not in again and (implied or derived & set(one.columns)):
            again.add(one.target)
            others = grower.identities(one.target, clock.share(len(ready) + 1), frozenset(derived - {one.target}))
            better = [other for other in others if implied or other.difficulty < one.difficulty]
            if any(other.saved > one.saved - 0.1 for other in better):
                ready += better if implied else [*better, one]
                continue
        if implied or len(one.terms) > most_terms:
            continue
        audit = judged(table, grower.numbers, one, request, SETTINGS)
        if audit is not None:
            known.add(Identity.of(audit))
            derived.add(audit.formula.target)
            found = str(audit.formula)
            yield audit


class _OutOfTime(Exception):
    """The time is over; never leaves this module."""


@contextmanager
def _until_stopped(notices: list[str], what: str) -> Iterator[None]:
    """Say what was left undone, where time or a user stops the work; what was found by then stands."""
    try:
        yield
    except (KeyboardInterrupt, _OutOfTime) as stop:
        if isinstance(stop, KeyboardInterrupt):
            notices.append(f"You stopped it before all {what}.")
        else:
            notices.append(f"Time was over before all {what}: a larger budget does them.")


@dataclass(frozen=True)
class _Clock:
    """Processor time until which the scan may work; as a callback it stops what is running."""

    end: float
    callback: Callback

    def __call__(self, progress: Progress) -> None:
        if time.thread_time() > self.end:
            raise _OutOfTime

    def show(self, task: str, done: int, left: int, found: object) -> None:
        """Show how far a task is, and what was found last."""
        progress = Progress(task, done, float(left), 0.0, str(found))
        self(progress)
        self.callback(progress)

    def share(self, n_targets: int) -> float:
        """Return the time of one of the targets that are left: half of what there is, as the rest judges."""
        return (self.end - time.thread_time()) / (2 * n_targets)


def columns_of(audit: Audit) -> tuple[str, ...]:
    """Return the target and the columns that the rule reads."""
    return Identity.of(audit).columns


def _is_part(audit: Audit, others: Sequence[Audit]) -> bool:
    """Return whether a rule is what a longer one is in the rows where some of its columns are zero."""
    own = set(columns_of(audit))
    return any(own < set(columns_of(other)) and other.n_wrong < audit.n_wrong for other in others)


def _not_in(codes: Sequence[tuple[str, ...]], audits: Sequence[Audit]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns that no rule ties together already."""
    rules = [set(columns_of(audit)) for audit in audits]
    return tuple(names for names in codes if not any(set(names) <= columns for columns in rules))


def _is_copy(audit: Audit) -> bool:
    """Return whether a rule reads one other column, as it stands."""
    used = [term.term for term in audit.formula.terms if term.coef]
    return len(used) == 1 and used[0] is not None and used[0].is_column


@dataclass(frozen=True)
class _Seen:
    """Columns by what they hold."""

    numbers: Numbers
    constants: tuple[tuple[str, object], ...]
    codes: tuple[tuple[str, ...], ...]
    notices: tuple[str, ...]


def _look_at(table: Table, exclude: frozenset[str]) -> _Seen:
    columns: dict[str, FloatArray] = {}
    labels: dict[str, NDArray[Any]] = {}
    constants: list[tuple[str, object]] = []
    notices: list[str] = [*table.remarks]
    for name in table.column_names:
        if name in exclude:
            continue
        try:
            role = role_of(table, name, asked=True)
            if role.constant:
                constants.append((name, table.cells([name], _first_value(table, name))[name][0]))
            elif isinstance(role.entry, Number | Flag):
                values = column_values(table, role.entry)
                check_size(table, name, values, SQUARE_IS_FINITE)
                columns[name] = labels[name] = values
                notices += [role.notice] if role.bad else []
            elif isinstance(role.entry, Category):
                labels[name] = groups_of(table, name)[0]
            else:
                why = role.why or role.doubt or "scan looks at numbers and categories"
                notices.append(f"Left out {quote(name)}: {why}.")
        except TableError as error:
            notices.append(f"Left out {quote(name)}: {error}.")
    if len(columns) < 2:
        raise TableError(f"{table.name}: a scan needs two columns of numbers that vary, got {len(columns)}")
    numbers = Numbers(tuple(columns), np.column_stack(list(columns.values())))
    return _Seen(numbers, tuple(constants), _codes(labels), tuple(notices))


def _first_value(table: Table, name: str) -> NDArray[np.intp]:
    """Return the first row that has a value."""
    column = table.column(name)
    return np.array([next((row for row in range(len(column)) if column[row].is_valid), 0)], dtype=np.intp)


def _codes(labels: dict[str, NDArray[Any]]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns each of whose values goes with one value of the others.

    Numbered by their first rows, the values of such columns are the same.
    """
    alike: dict[bytes, list[str]] = {}
    for name, values in labels.items():
        _, first, where = np.unique(values, return_index=True, return_inverse=True)
        if 2 < len(first) <= len(values) / 2:
            order = np.empty(len(first), dtype=np.int32)
            order[np.argsort(first)] = np.arange(len(first))
            alike.setdefault(order[where.ravel()].tobytes(), []).append(name)
    return tuple(tuple(names) for names in alike.values() if len(names) > 1)
