"""What went wrong in each wrong row: a factor, a sign, digits, a term forgotten, another row's value, a placeholder.

Each kind is a way to get the given value out of a row that follows the formula, and is verified to the unit of the last
place (:mod:`massart.audit.explanations`). A row has one kind at most, and a kind that chance explains is not used
(:mod:`massart.audit.coincidence`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from massart.agreement import Agreement
from massart.audit.coincidence import SURE, Explanation, WrongValues, select
from massart.audit.explanations import AFTER, BEFORE, SWAPPED, Labels, Parts, WrongRows, explanations, recalled
from massart.rows import FloatArray
from massart.rules.formula import Formula, Summand
from massart.rules.matrix import Matrix

UNEXPLAINED, LAST_PLACE = "unexplained", "last place"

UNDER_ANOTHER_RULE = "under another rule?"
"""What is said of rows that break the rule where most rows do: they are set apart, and not called wrong."""

CONSTANT = "constant"

MOST_EXAMPLES = 5
_ROUNDS = 3
_CHUNK = 50_000


@dataclass(frozen=True, slots=True)
class Kind:
    """One way in which rows are wrong."""

    label: str  # in words: "factor 10"
    rows: int  # how many there are
    family: str  # the words without the parameter: "factor"
    parameter: float | None = None
    examples: tuple[int, ...] = ()  # the first of these rows, counted from 0

    @property
    def explains(self) -> bool:
        """Whether it says what happened: not that nothing does, that it is a last place only, or no error at all."""
        return self.family not in (UNEXPLAINED, LAST_PLACE, UNDER_ANOTHER_RULE)


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """What happened in each row."""

    codes: NDArray[np.intp]  # (n,), 0 for rows that agree, k for the k-th kind
    kinds: tuple[Kind, ...]  # the most frequent first; what is unexplained or off by a last place comes last

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


def kinds_of(X: Matrix, rule: Rule, labels: Labels, groups: NDArray[np.intp] | None = None) -> Kinds:
    """Say of each wrong row what happened, given the terms of the formula; `labels` need no half-widths."""
    parts = parts_of(X, rule.formula)
    return find_kinds(with_widths(parts, rule, labels), parts, groups=groups)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The kinds that were found in some rows, to tell of others which of them happened there.

    The more specific and frequent ones come first, then what is unexplained and a last place.
    """

    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, found: Kinds, X: Matrix, rule: Rule, labels: Labels) -> Catalogue:
        """Take the kinds that hardly a row has by chance: of the rows each allows, nearly all were given it."""
        named = [kind for kind in found.kinds if kind.explains]
        ways = cls(tuple(named))._ways(X, rule, labels)
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
        return cls((*(replace(kind, rows=0, examples=()) for _, kind in kept), *NOTHING.kinds))

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
        return Catalogue(tuple(kind for kind in self.kinds if kind.label != SWAPPED))

    def codes(self, X: Matrix, rule: Rule, labels: Labels) -> NDArray[np.intp]:
        """Return the kind of each row: 0 if it agrees, k for the k-th of `kinds`."""
        codes = np.zeros(len(labels.wrong), dtype=np.intp)
        wrong = np.flatnonzero(labels.wrong)
        codes[labels.last_place] = len(self.kinds)
        codes[wrong] = len(self.kinds) - 1
        if len(wrong) and self.explains:
            ways = self._ways(X, rule, labels)
            for code, kind in reversed([*enumerate(self.kinds[:-2], 1)]):
                if kind.label in ways:
                    codes[wrong[ways[kind.label].rows]] = code
        return codes

    def counted(self, codes: NDArray[np.intp], rows: Sequence[int]) -> Kinds:
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
        return Kinds(renamed[codes], tuple(kinds))

    def _ways(self, X: Matrix, rule: Rule, labels: Labels) -> dict[str, Explanation]:
        parts = parts_of(X, rule.formula)
        labels = with_widths(parts, rule, labels)
        rows = WrongRows.of(labels, parts, np.flatnonzero(labels.wrong))
        known = {kind.label: (kind.family, kind.parameter) for kind in self.kinds if kind.explains}
        return recalled(rows, labels, parts, known)


NOTHING = Catalogue(tuple(Kind(word, 0, word) for word in (UNEXPLAINED, LAST_PLACE)))
"""No kinds that say what happened."""


def with_widths(parts: Parts, rule: Rule, labels: Labels) -> Labels:
    """Return labels with half-widths, which wrong rows need, and the unit."""
    size = np.abs(labels.given)
    wrong = np.flatnonzero(labels.wrong)
    for some in np.array_split(wrong, len(wrong) // _CHUNK + 1):
        size[some] += np.abs(parts.contributions(some)).sum(axis=1)
    widths = rule.agreement.half_widths(size, rule.formula.coef)
    return replace(labels, half_widths=widths, unit=rule.agreement.unit)


def parts_of(X: Matrix, formula: Formula) -> Parts:
    """Return what the formula adds up: the levels of a category are one part, since a row has one of them."""
    coef = formula.coef
    names = [_part(summand) for summand in formula.all_terms]
    columns = {name: [j for j in np.flatnonzero(coef).tolist() if names[j] == name] for name in dict.fromkeys(names)}
    columns = {name: members for name, members in columns.items() if members}

    def contributions(rows: NDArray[np.intp]) -> FloatArray:
        found = np.zeros((len(rows), len(columns)))
        for place, members in enumerate(columns.values()):
            for j in members:
                found[:, place] += coef[j] * (X[rows, j] if j < len(formula.terms) else 1.0)
        return found

    return Parts(tuple(columns), contributions, formula.link, _shared(columns, [*map(_factors, formula.all_terms)]))


def _shared(columns: Mapping[str, Sequence[int]], factors: Sequence[Sequence[str]]) -> dict[str, tuple[int, ...]]:
    """Return the factors that several parts have, but not all, and that are no part themselves."""
    places: dict[str, list[int]] = {}
    for place, members in enumerate(columns.values()):
        for factor in dict.fromkeys(factors[members[0]]):
            places.setdefault(factor, []).append(place)
    return {name: tuple(own) for name, own in places.items() if 1 < len(own) < len(columns) and name not in columns}


def _part(summand: Summand) -> str:
    return " * ".join(_factors(summand))


def _factors(summand: Summand) -> list[str]:
    if summand.term is None:
        return [CONSTANT]
    return [str(factor.parts[0]) if factor.op == "level" else str(factor) for factor in summand.term.factors]


@np.errstate(over="ignore", invalid="ignore")  # numbers near the end of floats: nothing is explained by them
def find_kinds(labels: Labels, parts: Parts | None = None, *, groups: NDArray[np.intp] | None = None) -> Kinds:
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
    found: list[tuple[Kind, NDArray[np.intp]]] = []
    if len(left):
        rows = WrongRows.of(labels, parts, left)
        tried = explanations(rows, labels, parts, groups)
        values = WrongValues(rows.given, rows.given - rows.implied, 2 * rows.close, labels.right, rows.grid)
        by_chance = np.ones(len(left))
        for _ in range(_ROUNDS):  # what is explained in a round says nothing of rows that nothing explains
            chosen, which, by_chance = select(tried, values.background(by_chance > 0.5))
        found = [(Kind(kind.label, 0, kind.family, kind.parameter), left[which == k]) for k, kind in enumerate(chosen)]
        left = left[which < 0]
    found.sort(key=lambda pair: -len(pair[1]))
    nothing, last_place = NOTHING.kinds
    codes = np.zeros(len(labels.wrong), dtype=np.intp)
    listed: list[Kind] = []
    for kind, members in (*found, (nothing, left), (last_place, np.flatnonzero(labels.last_place))):
        if len(members):
            listed.append(replace(kind, rows=len(members), examples=tuple(members[:MOST_EXAMPLES].tolist())))
            codes[members] = len(listed)
    return Kinds(codes, tuple(listed))
