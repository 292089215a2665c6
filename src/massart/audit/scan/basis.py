"""The rules of a scan that all rows find right, none of which follows from the others.

Short proposals are judged first, by :func:`massart.audit.audit_table` with their columns. What may fail is shared by
all that could have been proposed, so that verdicts of a scan hold together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from massart.audit.auditing import audit_table
from massart.audit.scan.identity import Identity, Numbers
from massart.audit.table_audit import Audit
from massart.certificate import Verdict
from massart.rows import Callback, FloatArray, Progress
from massart.rules.columns import Columns
from massart.rules.terms import TermError, column
from massart.tables import Table, TableError, counted

_FORMS = 3  # of one identity that are judged, solved for different columns, the one that reads best first
_SINGLE = float(np.finfo(np.float32).eps)
_MOST_LOOKS = 1e12  # beyond it a share of what may fail is too small for a float
_FOLLOWS = 5e-3  # relative distance from what others imply
_DIGITS, _FEW_WRONG = 6, 0.01  # of coefficients that people write; share of rows that break a rule with others
_ROUNDING, _TIGHT = 0.05, 1e-4  # of the spread of a target: what rounding may explain, and with other coefficients
_CHANCE = 1e-3  # of all rules that could have been proposed, that one of two values agrees as well


def columns_of(audit: Audit) -> tuple[str, ...]:
    """Return the target and the columns that the rule reads."""
    read = [name for term in audit.formula.terms if term.coef and term.term for name in term.term.columns()]
    return (audit.formula.target, *dict.fromkeys(read))


class _OutOfTime(Exception):
    """The time is over; never leaves this module."""


@dataclass(eq=False)
class Clock:
    """When to stop, and what was not done by then."""

    end: float
    work: str
    missed: int = 0

    @property
    def is_over(self) -> bool:
        """Whether to stop."""
        return time.thread_time() > self.end

    def __call__(self, progress: Progress) -> None:
        """Stop what is running, as a callback."""
        if self.is_over:
            raise _OutOfTime

    def notices(self) -> list[str]:
        """Return what was left undone, as a sentence or none."""
        if not self.missed:
            return []
        return [f"Time was over while {self.work}: {self.missed:,} left undone. A larger budget does them."]


@dataclass(frozen=True, eq=False)
class Judge:
    """Has proposals judged on all rows, the short ones first, but for those that follow from others."""

    table: Table
    numbers: Numbers
    most_terms: int
    wrong_at_most: float
    seed: int
    clock: Clock

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
            if audit is None or not _is_worth_showing(audit, self._looks(one)) or _is_worse(audit, audits):
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
            hypotheses=looks,
            tolerance=tolerance,
            seed=self.seed,
            callback=self.clock,
        )
        if rows is None:
            return audit
        design = replace(audit.design, kept=rows[audit.design.kept], n_total=self.table.n_rows)
        n = self.table.n_rows - len(rows)
        notices = (f"{counted(n, 'row')} left out: no value of a term.", *audit.notices)
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


def _is_worth_showing(audit: Audit, looks: float) -> bool:
    """Tell whether a rule says more than rounding does, in numbers that people write.

    Where columns nearly follow from others, some sum of many of them, with odd coefficients, fits rounded values.
    """
    if audit.certificate.verdict < Verdict.PLURALITY or 2 * int(audit.agree.sum()) <= len(audit.agree):
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
    if not looks * _chance_of_two_values(audit) < _CHANCE:
        return False
    if audit.is_certain or audit.wrong_share <= _FEW_WRONG:
        return True
    counts = np.sort(np.unique(labels, return_counts=True)[1])
    return bool(2 * counts[-2:].sum() <= counts.sum())  # zeros and ones agree by chance


def _chance_of_two_values(audit: Audit) -> float:
    """Bound how probable it is that a rule has so many of the rarer of two values where the target does; 0 for more.

    Of m rows that should have it, e have: there are so many sets of e of these, and each is among the k rows that do
    have it with the share of all sets of k rows that hold a given e. Where a row breaks the rule, rows next to each
    other that have it are one: years of a crisis come together.
    """
    given, implied = audit.given, audit.implied
    values, counts = np.unique(given, return_counts=True)
    if len(values) != 2:
        return 0.0
    rare = given == values[np.argmin(counts)]
    sets = rare & audit.agree, rare, implied == given[rare][0]
    if audit.n_wrong:
        sets = tuple(rows & ~np.append(False, rows[:-1]) for rows in sets)
    e, k, m = (int(np.count_nonzero(rows)) for rows in sets)
    n = len(given)
    return float(np.exp(_log_choices(m, e) + _log_choices(n - e, k - e) - _log_choices(n, k)))


def _log_choices(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


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
