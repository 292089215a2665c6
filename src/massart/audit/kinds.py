"""What went wrong in each wrong row: a factor, a sign, digits, a term forgotten, another row's value, a placeholder.

Each kind is a way to get the given value out of a row that follows the formula, and is verified to the unit of the last
place (:mod:`massart.audit.explanations`). A row has one kind at most, and a kind that chance explains is not used
(:mod:`massart.audit.coincidence`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from massart.agreement import Agreement
from massart.audit.coincidence import WrongValues, select
from massart.audit.explanations import Labels, Parts, WrongRows, explanations
from massart.rows import BoolArray, FloatArray
from massart.rules.formula import Formula, Summand
from massart.rules.matrix import TermMatrix

UNEXPLAINED, LAST_PLACE, SECOND_RULE = "unexplained", "last place", "second rule"
CONSTANT = "constant"

MOST_EXAMPLES = 5
_ROUNDS = 3
_CHUNK = 50_000


@dataclass(frozen=True, slots=True)
class Kind:
    """One way in which rows are wrong.

    Attributes
    ----------
    label : str
        In words: "factor 10".
    rows : int
        How many there are.
    family : str
        The words without the parameter: "factor".
    parameter : float or None
    examples : tuple of int
        The first of these rows, counted from 0.
    """

    label: str
    rows: int
    family: str
    parameter: float | None = None
    examples: tuple[int, ...] = ()

    @property
    def explains(self) -> bool:
        """Whether it says what happened: not that nothing does, or that it is a last place only."""
        return self.family not in (UNEXPLAINED, LAST_PLACE)


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """What happened in each row.

    Attributes
    ----------
    codes : (n,) array of int
        0 for rows that agree, k for the k-th kind.
    kinds : tuple of Kind
        The most frequent first; what is unexplained or off by a last place comes last.
    """

    codes: NDArray[np.intp]
    kinds: tuple[Kind, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The word for each code."""
        return ("", *(kind.label for kind in self.kinds))

    def of(self, rows: NDArray[np.intp]) -> NDArray[np.str_]:
        """Return the words for some rows."""
        return np.array(self.words)[self.codes[rows]]


def kinds_of(
    X: FloatArray | TermMatrix,
    formula: Formula,
    agreement: Agreement,
    labels: Labels,
    groups: NDArray[np.intp] | None = None,
) -> Kinds:
    """Say of each wrong row what happened, given the terms of the formula; `labels` need no half-widths."""
    parts = parts_of(X, formula)
    size = np.abs(labels.given)
    wrong = np.flatnonzero(labels.wrong)
    for some in np.array_split(wrong, len(wrong) // _CHUNK + 1):
        size[some] += np.abs(parts.contributions(some)).sum(axis=1)
    widths = agreement.half_widths(size, formula.coef)
    return find_kinds(replace(labels, half_widths=widths, unit=agreement.unit), parts, groups=groups)


def parts_of(X: FloatArray | TermMatrix, formula: Formula) -> Parts:
    """Return what the formula adds up: the levels of a category are one part, since a row has one of them."""
    coef = formula.coef
    names = [_part(summand) for summand in formula.all_terms]
    columns = {name: [j for j in np.flatnonzero(coef) if names[j] == name] for name in dict.fromkeys(names)}
    columns = {name: members for name, members in columns.items() if members}

    def contributions(rows: NDArray[np.intp]) -> FloatArray:
        found = np.zeros((len(rows), len(columns)))
        for place, members in enumerate(columns.values()):
            for j in members:
                found[:, place] += coef[j] * (X[rows, j] if j < len(formula.terms) else 1.0)
        return found

    return Parts(tuple(columns), contributions, formula.link)


def _part(summand: Summand) -> str:
    if summand.term is None:
        return CONSTANT
    factors = summand.term.factors
    return " * ".join(str(factor.parts[0]) if factor.op == "level" else str(factor) for factor in factors)


def find_kinds(
    labels: Labels,
    parts: Parts | None = None,
    *,
    groups: NDArray[np.intp] | None = None,
    second_rule: BoolArray | None = None,
) -> Kinds:
    """Say of each wrong row what happened.

    Parameters
    ----------
    labels : Labels
        All rows that were judged, in the order of the table.
    parts : Parts, optional
        What the formula adds up.
    groups : (n,) array of int, optional
        Rows with the same number belong together: a value may be that of the row before in its group.
    second_rule : (n,) boolean array, optional
        Wrong rows that follow another rule.

    Examples
    --------
    >>> implied = np.array([1234.56, 318.4, 77.25, 951.07])
    >>> given = np.array([12345.6, 318.4, 77.25, 951.07])
    >>> wrong = given != implied
    >>> find_kinds(Labels(given, implied, wrong, np.zeros(4, bool), unit=0.01)).of(np.arange(2)).tolist()
    ['factor 10', '']
    """
    second = np.zeros(len(labels.wrong), dtype=bool) if second_rule is None else second_rule & labels.wrong
    left = np.flatnonzero(labels.wrong & ~second)
    found = [(Kind(SECOND_RULE, 0, SECOND_RULE), np.flatnonzero(second))]
    if len(left):
        rows = WrongRows.of(labels, parts, left)
        tried = explanations(rows, labels, parts, groups)
        values = WrongValues(rows.given, rows.given - rows.implied, 2 * rows.close, labels.right, rows.grid)
        by_chance = np.ones(len(left))
        for _ in range(_ROUNDS):  # what is explained in a round says nothing of rows that nothing explains
            chosen, which, by_chance = select(tried, values.background(by_chance > 0.5))
        found += [(Kind(kind.label, 0, kind.family, kind.parameter), left[which == k]) for k, kind in enumerate(chosen)]
        left = left[which < 0]
    found.sort(key=lambda pair: -len(pair[1]))
    found.append((Kind(UNEXPLAINED, 0, UNEXPLAINED), left))
    found.append((Kind(LAST_PLACE, 0, LAST_PLACE), np.flatnonzero(labels.last_place)))
    codes = np.zeros(len(labels.wrong), dtype=np.intp)
    listed: list[Kind] = []
    for kind, members in found:
        if len(members):
            examples = tuple(members[:MOST_EXAMPLES].tolist())
            listed.append(Kind(kind.label, len(members), kind.family, kind.parameter, examples))
            codes[members] = len(listed)
    return Kinds(codes, tuple(listed))
