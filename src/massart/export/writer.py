"""Terms as text of another language: what is the same in all of them, and what each has to say for itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from massart.export.rule import ExportError, Piece, Rate, Rule
from massart.rules.literals import day_of, is_day
from massart.rules.operations import OPERATIONS, Operation
from massart.rules.terms import Term, column, in_others
from massart.tables import Category, Date, Input, folded

_LAST_LETTER = 0x1F000


class Writer(ABC):
    """Writes the pieces of a rule; every text that it returns stands by itself, in brackets where it needs them."""

    name: str
    """Of the language, for complaints."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.entries: dict[str, Input] = {**rule.inputs, rule.target.column: rule.target}

    @property
    def given(self) -> str:
        """The target."""
        return self._column(self.rule.target.column)

    @abstractmethod
    def _number(self, rate: Rate) -> str:
        """Return a number with all its digits."""

    @abstractmethod
    def _column(self, name: str) -> str:
        """Return a column as a number."""

    @abstractmethod
    def _chosen(self, category: str, rates: Sequence[Rate]) -> str:
        """Return the number that belongs to the level of a category, 0 where none does."""

    @abstractmethod
    def _said(self, operation: Operation) -> str:
        """Return how the language says an operation on terms, with {0}, {1} for them."""

    def _power(self, base: str, exponent: float) -> str:
        """Return a power with a number for its exponent, which may have no value."""
        return self._said(OPERATIONS["^"]).format(base, self.plain(exponent))

    @abstractmethod
    def _extreme(self, op: str, parts: Sequence[str]) -> str:
        """Return the least ("min") or the largest ("max") of some numbers."""

    @abstractmethod
    def _calendar(self, function: str, date: str) -> str:
        """Return the "month" or the "weekday", Monday being 1, of a column of dates."""

    def plain(self, value: float) -> str:
        """Return a number that is not known as a fraction."""
        return self._number(Rate(value, None))

    def rate(self, piece: Piece) -> str:
        """Return the coefficient of a term, which may depend on a category."""
        if piece.category is None:
            return self._number(piece.rates[0])
        return self._chosen(piece.category, piece.rates)

    def piece(self, piece: Piece) -> str:
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
                return self._checked(parts[0], term)
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
        if said := self._said(OPERATIONS[term.op]):
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
            return self._chosen(name, [Rate(1.0, None, value) for value in values])
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
    pairs = ((letter, letter.casefold()) for letter in map(chr, range(0x80, _LAST_LETTER)))
    return tuple((letter, text) for letter, text in pairs if text != letter and (not text.isascii() or text == "ss"))
