"""What went wrong in each wrong row: a factor, a sign, digits, a term forgotten, another row's value, a placeholder.

Each kind is a way to get the given value out of a row that follows the formula, and is verified to the unit of the last
place (:mod:`massart.audit.explanations`). A row has one kind at most, and a kind that chance explains is not used
(:mod:`massart.audit.coincidence`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from massart.audit.changes import COLUMN, LEVEL, Parts, Usual, parts_of, usual_values
from massart.audit.coincidence import SURE, Explanation, WrongValues, select
from massart.audit.explanations import (
    AFTER,
    BEFORE,
    FEWEST_ROWS,
    SWAPPED,
    Labels,
    WrongRows,
    explanations,
    recalled,
)
from massart.rows import Agreement, Level
from massart.rules.columns import Columns
from massart.rules.formula import Formula
from massart.rules.matrix import Matrix

UNEXPLAINED, LAST_PLACE = "unexplained", "last place"

UNDER_ANOTHER_RULE = "under another rule?"
"""What is said of rows that break the rule where most rows do: they are set apart, and not called wrong."""

BY_CHANCE = 0.05
"""The probability, at most, with which a label that has nothing to do with a column fits one of its other values."""

MOST_EXAMPLES = 5
_ROUNDS = 3
_CHUNK = 50_000


@dataclass(frozen=True, slots=True)
class RowErrorType:
    """One way in which rows are wrong."""

    label: str  # in words: "factor 10"
    rows: int  # how many there are
    family: str  # the words without the parameter: "factor"
    parameter: float | None = None
    examples: tuple[int, ...] = ()  # the first of these rows, counted from 0
    reads: tuple[str, ...] = ()  # columns that it reads, if the rule may not

    @property
    def explains(self) -> bool:
        """Whether it says what happened: not that nothing does, that it is a last place only, or no error at all."""
        return self.family not in (UNEXPLAINED, LAST_PLACE, UNDER_ANOTHER_RULE)


@dataclass(frozen=True, slots=True, eq=False)
class RowErrorTypes:
    """What happened in each row."""

    codes: NDArray[np.intp]  # (n,), 0 for rows that agree, k for the k-th kind
    kinds: tuple[RowErrorType, ...]  # the most frequent first; what is unexplained or off by a last place comes last

    @property
    def words(self) -> tuple[str, ...]:
        """The word for each code."""
        return ("", *(kind.label for kind in self.kinds))

    @property
    def unexplained(self) -> NDArray[np.intp]:
        """The rows that nothing explains."""
        codes = [code for code, kind in enumerate(self.kinds, 1) if kind.family == UNEXPLAINED]
        return np.flatnonzero(np.isin(self.codes, codes))

    def of(self, rows: NDArray[np.intp]) -> NDArray[np.str_]:
        """Return the words for some rows."""
        return np.array(self.words)[self.codes[rows]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A formula, and when a row agrees with it."""

    formula: Formula
    agreement: Agreement

    @property
    def is_noisy(self) -> bool:
        """Whether rows follow it up to noise."""
        return self.formula.noisy or self.agreement.level is Level.NOISE


def kinds_of(
    X: Matrix,
    rule: Rule,
    labels: Labels,
    columns: Columns | None = None,
    groups: NDArray[np.intp] | None = None,
) -> RowErrorTypes:
    """Say of each wrong row what happened, given the terms of the formula; `labels` need no half-widths.

    `columns` are those of the table in the same rows. Of rows that follow a formula up to noise nothing is said: their
    values do not distinguish one way from another.
    """
    if rule.is_noisy:
        return _counted(labels, [], np.flatnonzero(labels.wrong))
    parts = parts_of(X, rule.formula, columns)
    return find_kinds(with_widths(parts, rule, labels), parts, groups=groups)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The kinds that were found in some rows, to find out which of them happened in others.

    The more specific and frequent ones come first, then what is unexplained and a last place.
    """

    kinds: tuple[RowErrorType, ...]
    usual: Mapping[str, Usual] = field(default_factory=dict)  # values of columns of the rows in which they were found

    @classmethod
    def of(
        cls, found: RowErrorTypes, X: Matrix, rule: Rule, labels: Labels, columns: Columns | None = None
    ) -> Catalogue:
        """Take the kinds that hardly a row has by chance: of the rows each allows, nearly all were given it."""
        named, usual = [kind for kind in found.kinds if kind.explains], usual_values(columns)
        ways = cls(tuple(named), usual)._ways(X, rule, labels, columns)
        wrong = np.flatnonzero(labels.wrong)
        nothing = np.isin(found.codes[wrong], [k for k, kind in enumerate(found.kinds, 1) if not kind.explains])
        kept = []
        for kind in named:
            if kind.label not in ways or not kind.rows:
                continue
            by_chance = int(np.count_nonzero(nothing[ways[kind.label].rows]))
            if kind.rows >= SURE * (kind.rows + by_chance):
                kept.append((kind.rows / float(np.median(ways[kind.label].choices)), kind))
        kept.sort(key=lambda pair: -pair[0])
        return cls((*(replace(kind, rows=0, examples=()) for _, kind in kept), *NOTHING.kinds), usual)

    @property
    def explains(self) -> bool:
        """Whether there is any kind that says what happened."""
        return len(self.kinds) > 2

    @property
    def looks_around(self) -> bool:
        """Whether what happened in a row may depend on those next to it."""
        return any(kind.label in (BEFORE, AFTER) for kind in self.kinds)

    @property
    def has_pairs(self) -> bool:
        """Whether what happened in a row may depend on any other."""
        return any(kind.label == SWAPPED for kind in self.kinds)

    def without_pairs(self) -> Catalogue:
        """Return what does not."""
        return Catalogue(tuple(kind for kind in self.kinds if kind.label != SWAPPED), self.usual)

    @property
    def reads(self) -> frozenset[str]:
        """Columns that show what happened, if the rule may not read them."""
        return frozenset(name for kind in self.kinds for name in kind.reads)

    def codes(self, X: Matrix, rule: Rule, labels: Labels, columns: Columns | None = None) -> NDArray[np.intp]:
        """Return the kind of each row: 0 if it agrees, k for the k-th of `kinds`."""
        codes = np.zeros(len(labels.wrong), dtype=np.intp)
        wrong = np.flatnonzero(labels.wrong)
        codes[labels.last_place] = len(self.kinds)
        codes[wrong] = len(self.kinds) - 1
        if len(wrong) and self.explains:
            ways = self._ways(X, rule, labels, columns)
            for code, kind in reversed([*enumerate(self.kinds[:-2], 1)]):
                if kind.label in ways:
                    codes[wrong[ways[kind.label].rows]] = code
        return codes

    def counted(self, codes: NDArray[np.intp], rows: Sequence[int]) -> RowErrorTypes:
        """Return the kinds that happened, given the codes of some rows and the number of all rows with each code."""
        used = [code for code in range(1, len(self.kinds) + 1) if rows[code]]
        used.sort(
            key=lambda code: (not self.kinds[code - 1].explains, -rows[code] if self.kinds[code - 1].explains else code)
        )
        renamed = np.zeros(len(self.kinds) + 1, dtype=np.intp)
        renamed[used] = np.arange(1, len(used) + 1)
        first = [tuple(np.flatnonzero(codes == code)[:MOST_EXAMPLES].tolist()) for code in used]
        kinds = (
            replace(self.kinds[code - 1], rows=int(rows[code]), examples=few)
            for code, few in zip(used, first, strict=True)
        )
        return RowErrorTypes(renamed[codes], tuple(kinds))

    def _ways(self, X: Matrix, rule: Rule, labels: Labels, columns: Columns | None) -> dict[str, Explanation]:
        parts = parts_of(X, rule.formula, columns, self.usual)
        labels = with_widths(parts, rule, labels)
        rows = WrongRows.of(labels, parts, np.flatnonzero(labels.wrong))
        known = {kind.label: (kind.family, kind.parameter) for kind in self.kinds if kind.explains}
        return recalled(rows, labels, parts, known)


@np.errstate(over="ignore", invalid="ignore")
def columns_at_fault(
    X: Matrix,
    rule: Rule,
    labels: Labels,
    kinds: RowErrorTypes,
    columns: Columns | None,
    usual: Mapping[str, Usual] | None = None,
) -> dict[str, NDArray[np.intp]]:
    """Return, by what is said of them, wrong rows in which a column may be wrong and the label right.

    These are the rows that are as for another level or another value of a column, and those that nothing else explains
    whose label is right for a usual error in one column: a factor of ten, a sign, or another of its values, if a label
    that has nothing to do with it would hardly fit one of these.
    """
    found = {
        kind.label: np.flatnonzero(kinds.codes == code)
        for code, kind in enumerate(kinds.kinds, 1)
        if kind.family in (COLUMN, LEVEL)
    }
    left = kinds.unexplained[labels.wrong[kinds.unexplained]]
    if columns is None or not len(left) or rule.is_noisy:
        return found
    parts = parts_of(X, rule.formula, columns, usual)
    rows = WrongRows.of(with_widths(parts, rule, labels), parts, left)
    each, open_ = parts.contributions(left), np.ones(len(left), dtype=bool)
    for change in parts.changes:
        if change.family == COLUMN:
            fits = rows.are(change.values(left, each, rows.given)) & open_
            if change.apart is not None:
                fits[fits] = (change.apart(left, each, rows.given) * BY_CHANCE > 2 * rows.close)[fits]
            if fits.any():
                found[change.label] = np.union1d(found.get(change.label, left[:0]), left[fits])
                open_ &= ~fits
    return found


NOTHING = Catalogue(tuple(RowErrorType(word, 0, word) for word in (UNEXPLAINED, LAST_PLACE)))
"""No kinds that say what happened."""


def with_widths(parts: Parts, rule: Rule, labels: Labels) -> Labels:
    """Return labels with half-widths, which wrong rows need, and the unit."""
    size = np.abs(labels.given)
    wrong = np.flatnonzero(labels.wrong)
    for some in np.array_split(wrong, len(wrong) // _CHUNK + 1):
        size[some] += np.abs(parts.contributions(some)).sum(axis=1)
    widths = rule.agreement.half_widths(size, rule.formula.coef)
    return replace(labels, half_widths=widths, unit=rule.agreement.unit)


@np.errstate(over="ignore", invalid="ignore")  # numbers near the end of floats: nothing is explained by them
def find_kinds(labels: Labels, parts: Parts | None = None, *, groups: NDArray[np.intp] | None = None) -> RowErrorTypes:
    """Say of each wrong row what happened, given all rows that were judged, and what the formula adds up.

    Rows with the same number in `groups` belong together: a value may be that of the row before in its group.

    Examples
    --------
    >>> implied = np.array([1234.56, 318.4, 77.25, 951.07])
    >>> given = np.array([12345.6, 318.4, 77.25, 951.07])
    >>> wrong = given != implied
    >>> find_kinds(Labels(given, implied, wrong, np.zeros(4, bool), unit=0.01)).of(np.arange(2)).tolist()
    ['factor 10', '']
    """
    left = np.flatnonzero(labels.wrong)
    found: list[tuple[RowErrorType, NDArray[np.intp]]] = []
    if len(left):
        rows = WrongRows.of(labels, parts, left)
        tried = explanations(rows, labels, parts, groups)
        values = WrongValues(rows.given, rows.given - rows.implied, 2 * rows.close, labels.right, rows.grid)
        while True:
            by_chance = np.ones(len(left))
            for _ in range(_ROUNDS):  # what is explained in a round says nothing of rows that nothing explains
                chosen, which, by_chance = select(tried, values.background(by_chance > 0.5))
            few = {
                kind.label for k, kind in enumerate(chosen) if kind.found and np.count_nonzero(which == k) < FEWEST_ROWS
            }
            if not few:
                break
            tried = [kind for kind in tried if kind.label not in few]
        found = [
            (RowErrorType(kind.label, 0, kind.family, kind.parameter, reads=kind.reads), left[which == k])
            for k, kind in enumerate(chosen)
        ]
        left = left[which < 0]
    return _counted(labels, found, left)


def _counted(
    labels: Labels, found: Sequence[tuple[RowErrorType, NDArray[np.intp]]], left: NDArray[np.intp]
) -> RowErrorTypes:
    """Return the kinds that were found with their rows, those `left` that nothing explains, and last places."""
    nothing, last_place = NOTHING.kinds
    codes = np.zeros(len(labels.wrong), dtype=np.intp)
    listed: list[RowErrorType] = []
    named = sorted(found, key=lambda pair: -len(pair[1]))
    for kind, members in (*named, (nothing, left), (last_place, np.flatnonzero(labels.last_place))):
        if len(members):
            listed.append(replace(kind, rows=len(members), examples=tuple(members[:MOST_EXAMPLES].tolist())))
            codes[members] = len(listed)
    return RowErrorTypes(codes, tuple(listed))
