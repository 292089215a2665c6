r"""A saved model as what every language has to say, and its terms as text: what is the same in all of them.

That is a sum of pieces, limits, and how far a row may be off.

A row is wrong if

.. math::
    |y - f(z)| > u + h + a(s), \qquad z = \sum_k p_k, \qquad s = |y| + \sum_k |p_k| ,

with the half-width :math:`h + a(s)` of :mod:`massart.rows`, and the unit u of the last place where a row that is
off by it is not called wrong. A piece :math:`p_k` is a coefficient times a term; terms that differ in the level of a
category alone are one piece, whose coefficient depends on it. What the rule gives no weight is not read, so that gaps
there cost no rows.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from massart.audit import MAX_UNJUDGED, SavedModel
from massart.rows import Link, Mark, doubt_of
from massart.rules import OPERATIONS, Summand, Term, column, day_of, in_others, is_day, number, product
from massart.tables import Category, Date, Input, Target, folded, on_one_line

SUM, SIZE = column("\0sum"), column("\0size")
"""Stand for z and s; no column has such a name."""


class ExportError(ValueError):
    """A rule that a target cannot say; the message says which part of it."""


@dataclass(frozen=True, slots=True)
class LevelRate:
    """A coefficient: as a float, as a fraction, if it is one, and the level that it is for, if it is for one."""

    coef: float
    exact: Fraction | None
    level: str = ""


@dataclass(frozen=True, slots=True)
class RulePiece:
    """A coefficient times a term."""

    rates: tuple[LevelRate, ...]  # one, or one for each level of a category; others have the coefficient 0
    category: str | None  # the column that tells which of them
    term: Term | None  # None for 1


@dataclass(frozen=True, slots=True)
class ExportedRule:
    """What is exported."""

    text: str  # the formula in words, on one line
    target: Target
    inputs: Mapping[str, Input]  # the columns that are read, by name
    pieces: tuple[RulePiece, ...]
    link: Link
    slack: float  # h
    relative: float  # a(s) for each unit of size
    grid: tuple[float, float] | None  # where labels are on a grid, a(s) is at most max(grid[0], grid[1] s)
    unit: float  # u; 0 where rows are wrong as soon as they do not agree
    doubt: float  # by how much of its size a sum of floats may be off
    max_unjudged: float  # the largest share of rows that are not judged of a table that passes

    @property
    def heading(self) -> tuple[str, ...]:
        """Who wrote this, what is judged, and the rule: lines for a comment.

        Python would take the name of a column in one of the first two for the encoding of the file.
        """
        judged = "Rows with a gap in what the rule reads, or with a level that it does not know, are not judged."
        return (f"Written by massart {version('massart')}.", judged, self.text)

    @property
    def bounds_unjudged(self) -> bool:
        """Whether a table of which nothing is judged does not pass."""
        return self.max_unjudged < 1

    @property
    def limit(self) -> str:
        """What is asked of the rows that are not judged."""
        return f"at most {100 * self.max_unjudged:.4g} % of the rows are not judged"

    @property
    def described(self) -> str:
        """The rule, and what is asked of the rows that are not judged, if anything is."""
        return f"{self.text}; {self.limit}" if self.bounds_unjudged else self.text

    @property
    def limited(self) -> bool:
        """Whether the link is another one than the identity."""
        return self.link.lower > float("-inf") or self.link.upper < float("inf")

    @property
    def value(self) -> Term:
        """f(z), in terms of `SUM`."""
        link, found = self.link, SUM
        if link.lower > float("-inf"):
            found = Term("max", (number(link.lower), found))
        if link.upper < float("inf"):
            found = Term("min", (number(link.upper), found))
        beyond = product(number(link.slope), Term("-", (SUM, found)))
        return Term("+", (found, beyond)) if link.slope and self.limited else found

    def allowed(self, more: float = 0.0) -> Term:
        """Return h + a(s), and `more`, in terms of `SIZE`."""
        found = product(number(self.relative), SIZE)
        if self.grid is not None:
            quarter, tight = self.grid
            found = Term("min", (found, Term("max", (product(number(tight), SIZE), number(quarter)))))
        return Term("+", (number(self.slack + more), found))


def rule_of(model: SavedModel, max_unjudged: float = MAX_UNJUDGED) -> ExportedRule:
    """Return what a saved model says."""
    if not 0 <= max_unjudged <= 1:
        raise ExportError(f"max_unjudged must be a share between 0 and 1, got {max_unjudged!r}")
    model = model.weighed
    formula, agreement = model.formula, model.agreement
    entries = {entry.column: entry for entry in model.encoding.inputs}
    slope = max(1.0, formula.link.slope)
    slack = float(agreement.half_widths(np.zeros(1), formula.coef)[0])  # what a row of size 0 is allowed, every row is
    unit, tight = agreement.unit, agreement.tight
    apart = "" if model.segment is None else f"; not for {model.segment.where}"
    return ExportedRule(
        text=on_one_line(f"{formula}, {agreement}{apart}"),
        target=model.encoding.target,
        inputs=entries,
        pieces=tuple(_pieces([summand for summand in formula.all_terms if summand.coef], entries)),
        link=formula.link,
        slack=slack * slope,
        relative=agreement.relative * slope,
        grid=None if unit is None or tight >= agreement.relative else (unit / 4 * slope, tight * slope),
        unit=Mark(formula.coef, agreement, formula.link).unit or 0.0,
        doubt=doubt_of(formula.coef) * slope,
        max_unjudged=max_unjudged,
    )


def _pieces(used: list[Summand], entries: Mapping[str, Input]) -> Iterator[RulePiece]:
    """Yield the summands, with those that are rates by category together, in the order of the first."""
    groups: dict[tuple[str | None, Term | None], list[LevelRate]] = {}
    for summand in used:
        category, level, rest = None, "", summand.term
        factors = () if summand.term is None else summand.term.factors
        known = (f for f in factors if f.op == "level" and isinstance(entries[str(f.parts[0])], Category))
        if (first := next(known, None)) is not None:
            others = [factor for factor in factors if factor is not first]
            category, level, rest = str(first.parts[0]), str(first.parts[1]), product(*others) if others else None
        groups.setdefault((category, rest), []).append(LevelRate(summand.coef, summand.exact, level))
    for (category, rest), rates in groups.items():
        yield RulePiece(tuple(rates), category, rest)


class Writer(ABC):
    """Writes the pieces of a rule; every text that it returns stands by itself, in brackets where it needs them."""

    name: str
    """Of the language, for complaints."""

    def __init__(self, rule: ExportedRule) -> None:
        self.rule = rule
        self.entries: dict[str, Input] = {**rule.inputs, rule.target.column: rule.target}
        self._names: dict[str, str] = {}

    @property
    def given(self) -> str:
        """The target."""
        return self._column(self.rule.target.column)

    @abstractmethod
    def _number(self, rate: LevelRate) -> str:
        """Return a number with all its digits."""

    @abstractmethod
    def _column(self, name: str) -> str:
        """Return a column as a number."""

    @abstractmethod
    def _chosen(self, category: str, rates: Sequence[LevelRate]) -> str:
        """Return the number that belongs to the level of a category, 0 where none does."""

    def _said(self, operation: str) -> str:
        """Return how the language says an operation on terms, with {0}, {1} for them; nothing if it cannot."""
        return str(getattr(OPERATIONS[operation], self.name))

    def _power(self, base: str, exponent: float) -> str:
        """Return a power with a number for its exponent, which may have no value."""
        return self._said("^").format(base, self.plain(exponent))

    def _extreme(self, op: str, parts: Sequence[str]) -> str:
        """Return the least ("min") or the largest ("max") of some numbers."""
        return self._said(op).format(", ".join(parts))

    def _calendar(self, function: str, date: str) -> str:
        """Return the "month" or the "weekday", Monday being 1, of a column of dates."""
        return self._said(function).format(self._column(date))

    def plain(self, value: float) -> str:
        """Return a number that is not known as a fraction."""
        return self._number(LevelRate(value, None))

    def of(self, term: Term, stand_in: Term, text: str) -> str:
        """Return a term of `SUM` or `SIZE`, with what stands for it."""
        self._names[str(stand_in.parts[0])] = text
        return self.term(term)

    def rate(self, piece: RulePiece) -> str:
        """Return the coefficient of a term, which may depend on a category."""
        if piece.category is None:
            return self._number(piece.rates[0])
        return self._chosen(piece.category, piece.rates)

    def piece(self, piece: RulePiece) -> str:
        """Return a coefficient times a term."""
        rate = self.rate(piece)
        if piece.term is None:
            return rate
        term = self.term(piece.term)
        return term if rate == self.plain(1.0) else f"{rate} * {term}"

    def term(self, term: Term) -> str:
        """Return a term."""
        parts: tuple[Any, ...] = term.parts
        match term.op:
            case "column":
                return self._names.get(parts[0]) or self._checked(parts[0], term)
            case "number":
                return self.plain(parts[0])
            case "level" | "in" if isinstance(parts[0], str):
                return self._one_of_levels(term, *parts)
            case "within" | "in" | "ceil" | "round":
                return self.term(in_others(term))
            case "*" | "+" | "-" as sign:
                return f"({f' {sign} '.join(map(self.term, parts))})"
            case "^" if isinstance(parts[1], float):
                return self._power(self.term(parts[0]), parts[1])
            case "min" | "max" as op:
                return self._extreme(op, [self.term(part) for part in parts])
            case "month" | "weekday" as function:
                return self._of_date(function, parts[0], term)
            case "lag":
                return self._lag(term, *parts)
        if said := self._said(term.op):
            return said.format(*map(self.term, parts))
        # A running sum of floats is off by more than a row may be, and massart's own is one of whole numbers.
        raise ExportError(f"{self.name} cannot say {term}, which looks at other rows")

    def _texts(self, category: str) -> dict[str, str]:
        """Return the levels of a category, each with what it is compared with: folded, unless that tells none apart."""
        entry = self.rule.inputs[category]
        assert isinstance(entry, Category)
        return {level: text for text, level in entry.alike.items()} or {level: level for level in entry.all_levels}

    def _folding(self, category: str) -> Iterator[tuple[str, str]]:
        """Yield blanks and letters beyond ASCII, each with what it becomes, since no tool folds all of them.

        They are those of the levels themselves, and all that are folded into what is beyond ASCII in these, or into ss.
        """
        texts = self._texts(category)
        odd = {sign for level in texts for sign in level if not sign.isascii() or sign.isspace()}
        others = {sign: text for sign, text in _letters() if any(text in level for level in texts.values())}
        found = {sign: folded(sign) or " " for sign in ("\t", "\u00a0", *sorted(odd))} | others
        yield from ((sign, text) for sign, text in found.items() if sign != text)

    def _lag(self, term: Term, name: str, by: str | None, order: str | None) -> str:
        """Return a column in the row before."""
        raise ExportError(f"{self.name} cannot say {term}, which looks at other rows")

    def _checked(self, name: str, term: Term) -> str:
        if isinstance(self.rule.inputs.get(name), Category):
            raise ExportError(f"{self.name} cannot say {term}: the column holds text")
        return self._column(name)

    def _one_of_levels(self, term: Term, name: str, *values: str) -> str:
        """Return 1 where a column has one of some levels, 0 elsewhere."""
        entry = self.rule.inputs[name]
        if isinstance(entry, Category):
            return self._chosen(name, [LevelRate(1.0, None, value) for value in values])
        try:
            wanted = [day_of(value) if isinstance(entry, Date) and is_day(value) else float(value) for value in values]
        except ValueError:
            raise ExportError(f"{self.name} cannot say {term}: the column holds numbers") from None
        return self.term(in_others(Term("in", (column(name), *wanted))))

    def _of_date(self, function: str, inside: Term, term: Term) -> str:
        name = str(inside.parts[0]) if inside.op == "column" else ""
        if not isinstance(self.rule.inputs.get(name), Date):
            raise ExportError(f"{self.name} cannot say {term}: months and weekdays are those of a column of dates")
        return self._calendar(function, name)


@cache
def _letters() -> tuple[tuple[str, str], ...]:
    """Return letters beyond ASCII and what they are folded into: but for ß, other such letters."""
    pairs = ((letter, letter.casefold()) for letter in map(chr, range(0x80, sys.maxunicode + 1)))
    return tuple((letter, text) for letter, text in pairs if text != letter and (not text.isascii() or text == "ss"))
