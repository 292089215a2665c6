"""Thresholds of a rule that some rows chose, next to all rows.

Search rows leave open where between two of their values a threshold lies, and a number in few digits may lie on the
wrong side of a row that they do not have. All rows choose the place, and that is paid for: places are coded by how many
values of the column lie between them and the threshold of the search rows, so that the code is fixed before a label of
another row is read. The rules that a move can lead to share delta as 1/2 for the threshold that stays, and 1 / (4 j
(j + 1)) for one that is moved over j values to either side, which adds up to one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from massart.certificate import SegmentScan
from massart.rows import BoolArray, FloatArray, Link
from massart.rules.columns import Columns
from massart.rules.grow.units import bits_of, simplest
from massart.rules.literals import day_of
from massart.rules.terms import Part, Term, column, number

_ARITHMETIC = 1e-9  # of the size of a label, within which it agrees where labels have no unit

Cut: TypeAlias = tuple[Term, float | str, str]
"""What is compared with a number or a day, this, and on which side it belongs to what is above: "left" for >=."""


def compared(columns: Columns, terms: Sequence[Term]) -> list[Term]:
    """Return what the conditions of a rule compare with numbers: sums and products of columns of numbers.

    Examples
    --------
    >>> from massart.rules import parse_terms
    >>> columns = Columns(dict.fromkeys("abx", np.zeros(1)))
    >>> [str(one) for one in compared(columns, parse_terms("x * (a + b >= 10), (a > 3)", columns))]
    ['a + b']
    """
    found = dict.fromkeys(cut[0] for term in terms for cut in _cuts(term))
    return [one for one in found if not one.is_column and set(one.columns()) <= set(columns.numbers)]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A rule with its thresholds where all rows put them.

    Attributes
    ----------
    terms : tuple of Term
    shares : float
        How many rules share delta by that.
    contested : Term or None
        What a condition compares, if rows that would follow the rule on its other side crowd at the threshold: then
        another condition may hold, such as one of another sum.
    """

    terms: tuple[Term, ...]
    shares: float
    contested: Term | None

    @classmethod
    def of(
        cls, columns: Columns, terms: Sequence[Term], coef: FloatArray, link: Link, y: FloatArray, half_width: float
    ) -> Thresholds:
        """Move each threshold of a rule to where most rows agree.

        Parameters
        ----------
        columns : Columns
        terms : sequence of Term
        coef : array
            Of the terms, and the constant last.
        link : Link
        y : (n,) array
        half_width : float
            Within which a row agrees.
        """
        within = np.maximum(half_width * (1 + _ARITHMETIC), _ARITHMETIC * np.abs(y))

        def agree(rule: Sequence[Term]) -> BoolArray:
            total = np.full(len(y), coef[-1])
            for term, w in zip(rule, coef, strict=False):
                total += w * term.evaluate(columns)
            return np.asarray(np.abs(link(total) - y) <= within)

        terms, shares, contested, now = tuple(terms), 1.0, None, agree(terms)
        for cut in dict.fromkeys(cut for term in terms for cut in _cuts(term)):
            values, steps, place = _places(columns, cut)
            own = {_places(columns, other)[2] for term in terms for other in _cuts(term) if other[0] == cut[0]}
            low = max((other for other in own if other < place), default=0)
            high = min((other for other in own if other > place), default=len(values))
            below, above = (agree([_moved(term, cut, end) for term in terms]) for end in (math.inf, -math.inf))
            gains = np.bincount(steps, below.astype(float) - above, len(values))  # of a cut that passes these values
            agreeing = np.concatenate([[0.0], np.cumsum(gains)])[low : high + 1]
            best = low + np.flatnonzero(agreeing == agreeing.max())
            found = int(best[np.argmin(np.abs(best - place))])
            end = _end(columns, cut, values, found)
            changed = tuple(_without_ends(_moved(term, cut, end)) for term in terms)
            after = agree(changed)
            still_cut = all(np.isfinite(_number(one[1])) for term in changed for one in _cuts(term))
            if np.count_nonzero(after) > np.count_nonzero(now) and still_cut:
                shares *= 4 * abs(found - place) * (abs(found - place) + 1)
                terms, now, place = changed, after, found
            else:
                shares *= 2
            for side, as_beyond in (
                ((low <= steps) & (steps < place), above),
                ((place <= steps) & (steps < high), below),
            ):
                # Each side by itself: one may be wider than the other, and have fewer such rows.
                other = (~now & as_beyond)[side]
                if not SegmentScan([steps[side].astype(float)]).is_even(other):
                    contested = cut[0]
        return cls(terms, shares, contested)


def _places(columns: Columns, cut: Cut) -> tuple[FloatArray, np.ndarray, int]:
    """Return the values of what is compared, where each row has its own, and how many are below the cut."""
    values, order = np.unique(cut[0].evaluate(columns), return_inverse=True)
    return values, order.ravel(), int(np.searchsorted(values, _number(cut[1]), cut[2]))  # type: ignore[call-overload]


def _end(columns: Columns, cut: Cut, values: FloatArray, place: int) -> float | str:
    """Return a cut above the first `place` values, in few digits; infinite outside of all of them."""
    if not 0 < place < len(values):
        return math.inf if place else -math.inf
    below, above = float(values[place - 1]), float(values[place])
    if isinstance(cut[1], str) or (cut[0].op == "column" and cut[0].parts[0] in columns.dates):
        days = range(math.floor(below) + (cut[2] == "left"), math.floor(above) + (cut[2] == "left"))
        return min((str(np.datetime64(day, "D")) for day in reversed(days)), key=bits_of)
    return simplest(below, above) if cut[2] == "left" else 0.0 - simplest(-above, -below)


def _number(end: float | str) -> float:
    return day_of(end) if isinstance(end, str) else float(end)


def _cuts(term: Term) -> Iterator[Cut]:
    """Yield the comparisons with numbers in a term."""
    if term.op == "within":
        name, low, high, closed = term.parts
        for end in (low, high):
            if isinstance(end, int | float | str):
                yield column(str(name)), end, str(closed)
    elif term.op in (">=", "<"):
        first, second = term.parts
        assert isinstance(first, Term)
        assert isinstance(second, Term)
        if second.op == "number" and first.op != "number":
            yield first, float(str(second.parts[0])), "left"
        elif first.op == "number" and second.op != "number":
            yield second, float(str(first.parts[0])), "right"
    for part in term.parts:
        if isinstance(part, Term):
            yield from _cuts(part)


def _moved(term: Term, cut: Cut, end: float | str) -> Term:
    """Return a term with another number in place of a cut."""
    if cut not in _cuts(term):
        return term
    parts: tuple[Part, ...] = tuple(_moved(part, cut, end) if isinstance(part, Term) else part for part in term.parts)
    if term.op == "within" and column(str(parts[0])) == cut[0] and parts[3] == cut[2]:
        parts = (parts[0], *(end if one == cut[1] else one for one in parts[1:3]), parts[3])
    elif term.op in (">=", "<"):
        first, second = parts
        if (first, second) in ((cut[0], number(_number(cut[1]))), (number(_number(cut[1])), cut[0])):
            parts = tuple(
                number(_number(end)) if isinstance(one, Term) and one.op == "number" else one for one in parts
            )
    return Term(term.op, parts)


def _without_ends(term: Term) -> Term:
    """Return a term without limits that all rows keep, where an interval has another one."""
    parts = tuple(_without_ends(part) if isinstance(part, Term) else part for part in term.parts)
    if term.op == "within":
        name, low, high, closed = parts
        ends = None if low == -math.inf else low, None if high == math.inf else high
        parts = parts if ends == (None, None) else (name, *ends, closed)
    return Term(term.op, parts)
