"""What went wrong in each wrong row: a factor, a sign, digits, a term forgotten, another row's value, a placeholder.

Each error type is a way to get the given value out of a row that follows the formula, and is verified to the unit of
the last place (:mod:`massart.audit.explanations`). A row has one error type at most, and one that chance explains is
not used (:mod:`massart.audit.coincidence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from massart.audit.changes import COLUMN, LEVEL, NO_COLUMNS, Parts, Usual, usual_values
from massart.audit.coincidence import SURE, Explanation, WrongValues, select
from massart.audit.explanations import (
    AFTER,
    BEFORE,
    FEWEST_ROWS,
    SWAPPED,
    RowLabels,
    WrongLabels,
    explanations,
    recalled,
)
from massart.rows import Agreement, Level, row_blocks
from massart.rules import Columns, Formula, Matrix

UNEXPLAINED, LAST_PLACE = "unexplained", "last place"

UNDER_ANOTHER_RULE = "under another rule?"
"""What is said of rows that break the rule where most rows do: they are set apart, and not called wrong."""

BEFORE_IS_WRONG = "the row before is wrong"
"""What is said of a row that agrees once the row before it is put right."""

BY_CHANCE = 0.05
"""The probability, at most, with which a label that has nothing to do with a column fits one of its other values."""

MOST_EXAMPLES = 5
"""Rows of each error type that are named."""

_ROUNDS = 3  # one round names 669 of 47,581 rows less (benchmarks/kinds.py), six 21 more


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
        return self.family not in (UNEXPLAINED, LAST_PLACE, UNDER_ANOTHER_RULE, BEFORE_IS_WRONG)


@dataclass(frozen=True, slots=True, eq=False)
class RowErrorTypes:
    """What happened in each row."""

    codes: NDArray[np.intp]  # (n,), 0 for rows that agree, k for the k-th error type
    kinds: tuple[RowErrorType, ...]  # the most frequent first; what explains nothing comes last

    @classmethod
    def of_codes(
        cls, codes: NDArray[np.intp], kinds: Iterable[RowErrorType], rows: Sequence[int] | None = None
    ) -> RowErrorTypes:
        """Put the error types that happened in order; where these are some rows only, `rows` counts each code."""
        kinds = [*kinds]
        counts = np.bincount(codes, minlength=len(kinds) + 1).tolist() if rows is None else rows
        used = [code for code in range(1, len(kinds) + 1) if counts[code]]
        used.sort(key=lambda code: (not kinds[code - 1].explains, -counts[code] * kinds[code - 1].explains))
        renamed = np.zeros(len(kinds) + 1, dtype=np.intp)
        renamed[used] = np.arange(1, len(used) + 1)
        first = (tuple(np.flatnonzero(codes == code)[:MOST_EXAMPLES].tolist()) for code in used)
        listed = (
            replace(kinds[code - 1], rows=int(counts[code]), examples=few)
            for code, few in zip(used, first, strict=True)
        )
        return cls(renamed[codes], tuple(listed))

    def with_kind(self, kind: RowErrorType, rows: NDArray[np.intp], n_rows: int | None = None) -> RowErrorTypes:
        """Return the same where some rows have another error type: of a file `n_rows` in all, which had none."""
        if not len(rows) and not n_rows:
            return self
        codes = self.codes.copy()
        codes[rows] = len(self.kinds) + 1
        counts = None if n_rows is None else [0, *(each.rows for each in self.kinds), n_rows]
        return self.of_codes(codes, (*self.kinds, kind), counts)

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


@dataclass(frozen=True, slots=True, eq=False)
class RuleRows:
    """A rule on some rows: their terms, as columns where these are here, and what was given."""

    X: Matrix
    formula: Formula
    agreement: Agreement
    labels: RowLabels
    columns: Columns = NO_COLUMNS

    @property
    def is_noisy(self) -> bool:
        """Whether rows follow the rule up to noise: then their values do not distinguish one error from another."""
        return self.formula.noisy or self.agreement.level is Level.NOISE

    def parts(self, usual: Mapping[str, Usual] | None = None) -> tuple[Parts, RowLabels]:
        """Return what the rule adds up, and the labels with half-widths, which wrong rows need, and the unit."""
        usual = usual_values(self.columns) if usual is None else usual
        parts, labels = Parts(self.X, self.formula, self.columns, usual), self.labels
        size, wrong = np.abs(labels.given), np.flatnonzero(labels.wrong)
        for block in row_blocks(len(wrong), len(parts.names)):
            size[wrong[block]] += np.abs(parts.contributions(wrong[block])).sum(axis=1)
        widths = self.agreement.half_widths(size, self.formula.coef)
        return parts, replace(labels, half_widths=widths, unit=self.agreement.unit)


def kinds_of(rows: RuleRows, groups: NDArray[np.intp] | None = None) -> RowErrorTypes:
    """Say of each wrong row what happened; rows with the same number in `groups` belong together."""
    if rows.is_noisy:
        return _counted(rows.labels, [], np.flatnonzero(rows.labels.wrong))
    parts, labels = rows.parts()
    return find_kinds(labels, parts, groups=groups)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The error types that were found in some rows, to find out which of them happened in others.

    The more specific and frequent ones come first, then what is unexplained and a last place.
    """

    kinds: tuple[RowErrorType, ...]
    usual: Mapping[str, Usual] = field(default_factory=dict)  # values of columns of the rows in which they were found
    # where these were all rows of a file: their numbers, in order, and the code of each
    known: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None

    @classmethod
    def of(
        cls, found: RowErrorTypes, rows: RuleRows, first: RowErrorType | None = None, *, is_all: bool = False
    ) -> Catalogue:
        """Take those that hardly a row has by chance; if these are all rows, all that was found, and in which rows.

        The `first` of them, if there is one, is known otherwise.
        """
        usual = usual_values(rows.columns)
        named = [kind for kind in found.kinds if kind.explains and (first is None or kind.label != first.label)]
        if not is_all:
            named = cls(tuple(named), usual)._beyond_chance(found, rows)
        kinds = (*([] if first is None else [first]), *(replace(kind, rows=0, examples=()) for kind in named))
        kinds = (*kinds, *NOTHING.kinds)
        if not is_all:
            return cls(kinds, usual)
        places = {kind.label: code for code, kind in enumerate(kinds, 1)}
        renamed = np.array([0, *(places.get(kind.label, 0) for kind in found.kinds)])
        return cls(kinds, usual, (rows.labels.number(np.arange(len(found.codes))), renamed[found.codes]))

    def _beyond_chance(self, found: RowErrorTypes, rows: RuleRows) -> list[RowErrorType]:
        """Return the error types that nearly all rows were given which they allow, the rarest values first."""
        ways = self._ways(rows)
        nothing = np.isin(found.codes, [k for k, kind in enumerate(found.kinds, 1) if not kind.explains])
        nothing = nothing[rows.labels.wrong]
        kept = []
        for kind in self.kinds:
            if kind.label in ways and kind.rows:
                by_chance = int(np.count_nonzero(nothing[ways[kind.label].rows]))
                if kind.rows >= SURE * (kind.rows + by_chance):
                    kept.append((kind.rows / float(np.median(ways[kind.label].choices)), kind))
        kept.sort(key=lambda pair: -pair[0])
        return [kind for _, kind in kept]

    @property
    def looks_around(self) -> bool:
        """Whether what happened in a row may depend on those next to it."""
        return self._has(BEFORE, AFTER)

    @property
    def has_pairs(self) -> bool:
        """Whether what happened in a row may depend on any other."""
        return self._has(SWAPPED)

    def _has(self, *labels: str) -> bool:
        return self.known is None and any(kind.label in labels for kind in self.kinds)

    @property
    def reads(self) -> frozenset[str]:
        """Columns that show what happened, if the rule may not read them."""
        return frozenset(name for kind in self.kinds for name in kind.reads)

    def codes(self, rows: RuleRows) -> NDArray[np.intp]:
        """Return the error type of each row: 0 if it agrees, k for the k-th of `kinds`."""
        if self.known is not None:
            numbers, codes = self.known
            return codes[np.searchsorted(numbers, rows.labels.number(np.arange(len(rows.labels.wrong))))]
        codes = np.zeros(len(rows.labels.wrong), dtype=np.intp)
        wrong = np.flatnonzero(rows.labels.wrong)
        codes[rows.labels.last_place] = len(self.kinds)
        codes[wrong] = len(self.kinds) - 1
        if len(wrong) and len(self.kinds) > len(NOTHING.kinds):
            ways = self._ways(rows)
            for code, kind in reversed([*enumerate(self.kinds, 1)]):
                if kind.label in ways:
                    codes[wrong[ways[kind.label].rows]] = code
        return codes

    def _ways(self, rows: RuleRows) -> dict[str, Explanation]:
        parts, labels = rows.parts(self.usual)
        wrong = WrongLabels.of(labels, parts, np.flatnonzero(labels.wrong))
        return recalled(wrong, labels, parts, {kind.label: (kind.family, kind.parameter) for kind in self.kinds})


NOTHING = Catalogue(tuple(RowErrorType(word, 0, word) for word in (UNEXPLAINED, LAST_PLACE)))
"""No error types that say what happened."""


@np.errstate(over="ignore", invalid="ignore")
def columns_at_fault(
    rows: RuleRows, kinds: RowErrorTypes, usual: Mapping[str, Usual] | None = None
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
    left = kinds.unexplained[rows.labels.wrong[kinds.unexplained]]
    if not rows.columns.n_rows or not len(left) or rows.is_noisy:
        return found
    parts, labels = rows.parts(usual)
    wrong = WrongLabels.of(labels, parts, left)
    each, open_ = parts.contributions(left), np.ones(len(left), dtype=bool)
    for change in parts.changes:
        if change.family == COLUMN:
            fits = wrong.are(change.values(left, each, wrong.given)) & open_
            if change.apart is not None:
                fits[fits] = (change.apart(left, each, wrong.given) * BY_CHANCE > 2 * wrong.close)[fits]
            if fits.any():
                found[change.label] = np.union1d(found.get(change.label, left[:0]), left[fits])
                open_ &= ~fits
    return found


@np.errstate(over="ignore", invalid="ignore")  # numbers near the end of floats: nothing is explained by them
def find_kinds(
    labels: RowLabels, parts: Parts | None = None, *, groups: NDArray[np.intp] | None = None
) -> RowErrorTypes:
    """Say of each wrong row what happened, given all rows that were judged, and what the formula adds up.

    Rows with the same number in `groups` belong together: a value may be that of the row before in its group.

    Examples
    --------
    >>> implied = np.array([1234.56, 318.4, 77.25, 951.07])
    >>> given = np.array([12345.6, 318.4, 77.25, 951.07])
    >>> wrong = given != implied
    >>> find_kinds(RowLabels(given, implied, wrong, np.zeros(4, bool), unit=0.01)).of(np.arange(2)).tolist()
    ['factor 10', '']
    """
    left = np.flatnonzero(labels.wrong)
    found: list[tuple[RowErrorType, NDArray[np.intp]]] = []
    if len(left):
        rows = WrongLabels.of(labels, parts, left)
        tried = explanations(rows, labels, parts, groups)
        values = WrongValues(rows.given, rows.given - rows.implied, 2 * rows.close, labels.right, rows.grid)
        while True:
            by_chance = np.ones(len(left))
            for _ in range(_ROUNDS):  # what is explained in a round says nothing of rows that nothing explains
                chosen, which, by_chance = select(tried, values.background(by_chance > 0.5))
            few = {one.label for k, one in enumerate(chosen) if one.found and np.sum(which == k) < FEWEST_ROWS}
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
    labels: RowLabels, found: Sequence[tuple[RowErrorType, NDArray[np.intp]]], left: NDArray[np.intp]
) -> RowErrorTypes:
    """Return the error types that were found with their rows, those `left` that nothing explains, and last places."""
    codes = np.zeros(len(labels.wrong), dtype=np.intp)
    members = [*(rows for _, rows in found), left, np.flatnonzero(labels.last_place)]
    for code, rows in enumerate(members, 1):
        codes[rows] = code
    return RowErrorTypes.of_codes(codes, (*(kind for kind, _ in found), *NOTHING.kinds))
