"""Which columns of a table follow a rule of which others: every column as a target, each identity once.

A sample of the rows proposes (:mod:`massart.audit.identities`), and :func:`massart.audit.audit_table` judges on all
rows, with the columns of the proposal. What may fail is shared by all that could have been proposed, so that verdicts
of a scan hold together. Short identities come first; one that follows from others is left out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from massart.audit.auditing import audit_table
from massart.audit.identities import Identity, Numbers, pairs_of, products_of, rates_of, sums_of
from massart.audit.table_audit import Audit, versions
from massart.certificate import Verdict
from massart.progress import Callback, Progress, silent
from massart.report.scan_page import Rule, ScanFindings, render_scan
from massart.rows import FloatArray
from massart.rules.columns import Columns
from massart.rules.terms import TermError, column
from massart.table import Category, Flag, Number, Table, TableError, column_values, groups_of, table_of
from massart.table.errors import quote
from massart.table.roles import role_of

MOST_TERMS = 8
BUDGET = 60.0

_SAMPLE_ROWS = 3_000
_PROPOSING = 0.6  # share of the time in which identities are looked for
_FORMS = 3  # of one identity that are judged, solved for different columns, the one that reads best first
_SINGLE = float(np.finfo(np.float32).eps)
_MOST_LOOKS = 1e12  # beyond it a share of what may fail is too small for a float
_FOLLOWS = 5e-3  # relative distance from what others imply
_DIGITS, _FEW_WRONG = 6, 0.01  # of coefficients that people write; share of rows that break a rule with others
_ROUNDING, _TIGHT = 0.05, 1e-4  # of the spread of a target: what rounding may explain, and with other coefficients
_SURPLUS = 0.01  # share of rows by which a longer sum is better than a part of it
_SHOWN = (Verdict.PROVEN, Verdict.CONFIRMED, Verdict.MAJORITY, Verdict.PLURALITY)


@dataclass(frozen=True)
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

    def findings(self, facts: Mapping[str, str] | None = None) -> ScanFindings:
        """Return what a report shows."""
        return ScanFindings(
            title=self.table.name,
            n_rows=self.table.n_rows,
            identities=[_rule(audit) for audit in self.identities],
            copies=[_rule(audit) for audit in self.copies],
            constants=self.constants,
            codes=self.codes,
            without_rule=self.without_rule,
            notices=self.notices,
            facts={**(facts or {}), "versions": versions()},
        )

    def to_html(self, facts: Mapping[str, str] | None = None) -> str:
        """Return the page that shows the rules: one file, which loads nothing."""
        return render_scan(self.findings(facts))


def columns_of(audit: Audit) -> tuple[str, ...]:
    """Return the target and the columns that the rule reads."""
    read = [name for term in audit.formula.terms if term.coef and term.term for name in term.term.columns()]
    return (audit.formula.target, *dict.fromkeys(read))


def _rule(audit: Audit) -> Rule:
    n_follow = int(audit.agree.sum())
    return Rule(
        audit.formula,
        audit.certificate,
        columns_of(audit),
        len(audit.agree),
        n_follow,
        audit.n_last_place,
        audit.n_wrong,
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
    started = time.thread_time()
    seen = _look_at(table, frozenset(exclude))
    clock = _Clock(started + _PROPOSING * budget, "looking for rules")
    proposals = _proposed(seen.numbers, most_terms, np.random.default_rng(seed), clock, callback)
    judge = _Judge(table, seen.numbers, most_terms, wrong_at_most, seed, _Clock(started + budget, "judging rules"))
    audits = judge.basis(proposals, callback)
    trivial = [_is_copy(audit) for audit in audits]
    return Scan(
        table,
        tuple(audit for audit, copy in zip(audits, trivial, strict=True) if not copy),
        tuple(audit for audit, copy in zip(audits, trivial, strict=True) if copy),
        seen.constants,
        _not_in(seen.codes, audits),
        seen.numbers.names,
        (*seen.notices, *clock.notices(), *judge.clock.notices()),
    )


def _not_in(codes: Sequence[tuple[str, ...]], audits: Sequence[Audit]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns that no rule ties together already."""
    rules = [set(columns_of(audit)) for audit in audits]
    return tuple(names for names in codes if not any(set(names) <= columns for columns in rules))


def _is_copy(audit: Audit) -> bool:
    """Tell whether a rule reads one other column, as it stands."""
    used = [term.term for term in audit.formula.terms if term.coef]
    return len(used) == 1 and used[0] is not None and used[0].is_column


class _OutOfTime(Exception):
    """The time is over; never leaves this module."""


@dataclass(eq=False)
class _Clock:
    """When to stop, and what was not done by then."""

    end: float
    work: str
    missed: int = 0

    @property
    def is_over(self) -> bool:
        return time.thread_time() > self.end

    def __call__(self, progress: Progress) -> None:
        """Stop what is running, as a callback."""
        if self.is_over:
            raise _OutOfTime

    def notices(self) -> list[str]:
        if not self.missed:
            return []
        return [f"Time was over while {self.work}: {self.missed:,} left undone. A larger budget does them."]


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
                columns[name] = column_values(table, role.entry)
                labels[name] = columns[name]
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


def _proposed(
    numbers: Numbers, most_terms: int, rng: np.random.Generator, clock: _Clock, callback: Callback
) -> list[Identity]:
    """Return what a sample of the rows proposes, for every column."""
    n, p = numbers.values.shape
    sample = numbers if n <= _SAMPLE_ROWS else numbers.take(np.sort(rng.choice(n, _SAMPLE_ROWS, replace=False)))
    found: list[Identity] = []
    proposals: list[Identity | None]
    for step in range(3 * p):  # sums first, should time not suffice
        target = step % p
        if clock.is_over:
            clock.missed = 3 * p - step
            break
        if step < p:
            proposals = [sums_of(sample, target, rng), pairs_of(sample, target, rng)]
        elif step < 2 * p:
            proposals = [*products_of(sample, target, rng)]
        else:
            known = any(one.target == numbers.names[target] and not one.is_sum for one in found)
            proposals = [] if known else [rates_of(sample, target, rng)]
        found += [one for one in proposals if one is not None]
        callback(Progress("looking for rules", step + 1, float(3 * p - step - 1), 0.0))
    found = [one for one in found if len(one.terms) <= most_terms and not _is_part(one, found)]
    return [form for one in found for form in (one.solved(numbers.names), one)]


def _is_part(one: Identity, others: Sequence[Identity]) -> bool:
    """Tell whether a sum is what another one is in the rows where some of its columns are zero."""
    own = set(one.columns)
    return any(own < set(other.columns) and other.share > one.share + _SURPLUS for other in others if other.is_sum)


@dataclass(frozen=True, eq=False)
class _Judge:
    """Has proposals judged on all rows, the short ones first, but for those that follow from others."""

    table: Table
    numbers: Numbers
    most_terms: int
    wrong_at_most: float
    seed: int
    clock: _Clock

    def basis(self, proposals: list[Identity], callback: Callback) -> list[Audit]:
        """Return the rules that were found right, none of which follows from the others."""
        span = _Span(self.numbers)
        audits: list[Audit] = []
        failed: dict[str, list[FloatArray]] = {}
        ordered = sorted(proposals, key=lambda one: one.effort)
        for done, one in enumerate(ordered):
            callback(Progress("judging rules", done + 1, float(len(ordered) - done - 1), 0.0))
            direction = span.direction(one.vector)
            alike = [name for name, others in failed.items() if span.is_among(direction, others)]
            if span.holds(direction) or one.target in alike or len(alike) >= _FORMS:
                continue
            try:
                self.clock(Progress("", 0, 0.0, 0.0))
                audit = self._audit(one)
            except _OutOfTime:
                self.clock.missed += 1
                continue
            if audit is None or not _is_worth_showing(audit) or _is_worse(audit, audits):
                failed.setdefault(one.target, []).append(direction)
                continue
            direction = span.direction(self._vector(audit, one))
            if not span.holds(direction):
                audits.append(audit)
                span.add(direction)
        return [audit for audit in audits if not _is_outdone(audit, audits)]

    def _vector(self, audit: Audit, one: Identity) -> FloatArray:
        """Return the vector of what was found: a sum of the columns that were proposed, or of some."""
        if not one.is_sum:
            return one.vector
        place = {name: j for j, name in enumerate(self.numbers.names)}
        vector = np.zeros_like(one.vector)
        vector[place[one.target]] = -1.0
        for name, term in zip(audit.formula.names, audit.formula.terms, strict=True):
            vector[place[name]] = term.coef
        return vector

    def _audit(self, one: Identity) -> Audit | None:
        """Have all rows judge the rule, with the columns that were proposed."""
        looks = self._looks(one)
        if looks > _MOST_LOOKS:
            names = [name for name in self.numbers.names if name != one.target]
            one = replace(one, terms=tuple(map(column, names)))
            looks = 4.0 * len(self.numbers.names)
        try:
            audit = self._ask(one, looks, "auto")
            if not audit.agree.all():
                coef = np.array([term.coef for term in audit.formula.terms])
                reach = 2 * _SINGLE * float((np.abs(audit.X[:]) @ np.abs(coef) + np.abs(audit.given)).max())
                off = np.abs(audit.given - audit.formula.predict(audit.X))[~audit.agree]
                if 2 * np.count_nonzero(off <= reach) > len(off):  # no more than what float32 once left
                    audit = self._ask(one, looks, reach)
        except (TableError, TermError):  # such as no row that has all values
            return None
        return audit

    def _rows(self, one: Identity) -> NDArray[np.intp] | None:
        """Return the rows in which its terms have values, where some divide by zero; None for all rows."""
        columns = dict(zip(self.numbers.names, self.numbers.values.T, strict=True))
        known = np.column_stack([columns[name] for name in one.columns]).sum(axis=1)
        with np.errstate(invalid="ignore"):
            values = np.column_stack([term.evaluate(Columns(columns)) for term in one.terms]).sum(axis=1)
        there = np.asarray(np.isfinite(values))
        return None if one.is_sum or there[np.isfinite(known)].all() else np.flatnonzero(there)

    def _ask(self, one: Identity, looks: float, tolerance: float | Literal["auto"]) -> Audit:
        rows = self._rows(one)
        table = self.table
        if rows is not None:
            table = replace(table, arrow=table.arrow.take(rows))
        audit = audit_table(
            table,
            one.target,
            terms="columns" if one.is_sum else [str(term) for term in one.terms],
            model="linear",
            features=one.columns[1:],
            wrong_at_most=self.wrong_at_most,
            looks=looks,
            tolerance=tolerance,
            seed=self.seed,
            callback=self.clock,
        )
        if rows is None:
            return audit
        design = replace(audit.design, kept=rows[audit.design.kept], n_total=self.table.n_rows)
        n = self.table.n_rows - len(rows)
        notices = (f"{n:,} {'row' if n == 1 else 'rows'} left out: no value of a term.", *audit.notices)
        return replace(audit, table=self.table, design=design, notices=notices)

    def _looks(self, one: Identity) -> float:
        """Return among how many possible proposals what may fail is shared.

        One quarter is for sums of k of the other columns, for each target and each k; one for logarithms, squares,
        products and ratios of two columns; one for such sums over another column; one for sums of all columns.
        """
        p, k = len(self.numbers.names), len(one.terms)
        if one.is_sum:
            return 4.0 * p * self.most_terms * comb(p - 1, k)
        return 4.0 * p * p * (4 * p + 2 if k == 1 else self.most_terms * comb(p - 1, k))


def _is_worth_showing(audit: Audit) -> bool:
    """Tell whether a rule says more than rounding does, in numbers that people write.

    Where columns nearly follow from others, some sum of many of them, with odd coefficients, fits rounded values.
    """
    if audit.certificate.verdict not in _SHOWN or 2 * int(audit.agree.sum()) <= len(audit.agree):
        return False
    used = [term for term in audit.formula.terms if term.coef]
    labels = audit.given[audit.agree]
    low, high = np.percentile(labels, [5, 95])
    slack = audit.agreement.slack(audit.formula.coef) / max(high - low, 1e-300)
    if not used or slack > _ROUNDING:
        return False
    odd = any(term.exact is None or len(term.number().strip("-").replace(".", "")) > _DIGITS for term in used)
    if odd and (len(used) > 2 or audit.wrong_share > _FEW_WRONG or slack > _TIGHT):
        return False
    if audit.is_certain or audit.wrong_share <= _FEW_WRONG:
        return True
    counts = np.sort(np.unique(labels, return_counts=True)[1])
    return bool(2 * counts[-2:].sum() <= counts.sum())  # zeros and ones agree by chance


def _is_worse(audit: Audit, others: Sequence[Audit]) -> bool:
    """Tell whether a rule that is not certain has a target for which a certain one is known."""
    certain = {one.formula.target for one in others if one.is_certain and one.wrong_share <= audit.wrong_share}
    return not audit.is_certain and audit.formula.target in certain


def _is_outdone(audit: Audit, others: Sequence[Audit]) -> bool:
    """Tell whether a rule is part of a longer one that explains more rows."""
    own = set(columns_of(audit))
    return any(own < set(columns_of(other)) and other.n_wrong < audit.n_wrong for other in others)


class _Span:
    """The identities that follow from those that were found: vectors over columns, logarithms and products."""

    def __init__(self, numbers: Numbers) -> None:
        columns = [column[np.isfinite(column)] for column in numbers.values.T]
        logs = [np.log(column[column > 0]) for column in columns]
        self._scale = np.array([float(np.std(own)) if own.size else 1.0 for own in (*columns, *logs)])
        self._scale[self._scale == 0] = 1.0
        self._basis = np.zeros((len(self._scale), 0))

    def direction(self, vector: FloatArray) -> FloatArray:
        """Return a vector in units of what the columns vary by, of length one; its sign does not matter."""
        scaled = vector[:-1] * self._scale
        scaled = scaled / np.linalg.norm(scaled)
        return np.asarray(scaled * np.sign(scaled[np.argmax(np.abs(scaled))]))

    def holds(self, direction: FloatArray) -> bool:
        """Tell whether an identity follows from those that were added."""
        rest = direction - self._basis @ (self._basis.T @ direction)
        return bool(np.linalg.norm(rest) <= _FOLLOWS)

    def is_among(self, direction: FloatArray, others: Sequence[FloatArray]) -> bool:
        """Tell whether an identity is one of some others."""
        return any(np.allclose(direction, other, atol=_FOLLOWS) for other in others)

    def add(self, direction: FloatArray) -> None:
        """Add an identity."""
        rest = direction - self._basis @ (self._basis.T @ direction)
        self._basis = np.column_stack([self._basis, rest / np.linalg.norm(rest)])
