r"""Terms from text: ``qty*price, max(0, kwh-200)`` and ``total ~ qty:price + hours:C(service)``.

The grammar, in which each line is read by one method of `Reader`::

    terms     = condition {"," condition}
    condition = sum ["=" member | "in" "(" member {"," member} ")" | compare sum [compare sum]]
    sum       = product {("+" | "-") product}
    product   = factor {("*" | ":" | "/") factor}
    factor    = "-" factor | atom [("^" | "**") factor]
    atom      = number | date | "?" | column | function "(" arguments ")" | "(" condition ")"
    member    = level | day of the week | month | condition

with ``<``, ``<=``, ``>`` or ``>=`` to compare. Functions are those of :mod:`massart.rules.operations`, ``C`` and ``I``.
A name is a column, in backquotes if it is not a plain word. A column of text in a product stands for all its levels,
and ``C(plan)`` takes numbers as levels. What ``str`` writes of a term is read as that term. Nothing of a text is run.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from massart.rules import terms as t
from massart.rules.columns import Columns
from massart.rules.literals import CALENDAR, TermError, day_of, plain_number, quoted, shown
from massart.rules.operations import OPERATIONS, begins_with_minus
from massart.rules.terms import Term

MOST_TERMS = 2_000
"""Terms that a formula may have."""

MOST_LEVELS = 200
LONGEST = 20_000
_LONGEST_NAME, _MOST_NAMES = 60, 12  # of a name that near ones are looked for, and names that a message lists
_DATE = r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b"
_TOKEN = re.compile(
    rf"(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'[^']*'|\"[^\"]*\"|{_DATE})"
    r"|(?P<number>(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign>\*\*|<=|>=|==|[-+*/^:<>=(),?])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
_FUNCTIONS = {name: found.arguments for name, found in OPERATIONS.items() if found.arguments} | {
    "C": (1, 1),
    "I": (1, 1),
}
_ORDERED = ("lag", "cumsum")
_COMPARE = ("<", "<=", ">", ">=")
_SIGNS = {"**": "^", "==": "="}
DEEPEST = 2 * t.MOST_DEPTH  # brackets inside each other
_COMPARISON = "a comparison has a column or a term in it: kwh <= 200, 200 < kwh <= 500, paid >= due"
_LEVEL = "a level is written (region = north), several (region in (north, south))"


def parse_terms(text: str, columns: Columns) -> tuple[Term, ...]:
    """Return the terms of a list such as ``qty*price, hours:service, max(0, kwh - 200)``.

    Parameters
    ----------
    text : str
        Terms with commas between them.
    columns : Columns
        The columns that there are, and their levels.

    Raises
    ------
    TermError
        Naming what cannot be read, or the column that is not there.
    """
    return distinct(Reader(text, columns).terms(), text)


def check_number(n_terms: int) -> None:
    """Raise TermError for more terms than can be fitted."""
    if n_terms > MOST_TERMS:
        raise TermError(f"more than {MOST_TERMS:,} terms are asked for, the most that can be fitted at once")


def distinct(found: Sequence[Term], text: str) -> tuple[Term, ...]:
    """Return terms that were read from a text, each once."""
    if not found:
        raise TermError(f"there are no terms in {shown(text)}")
    for term in found:
        t.check_size(term)
    keys = [(term, place if term.n_unknown else 0) for place, term in enumerate(found)]  # each ? is its own
    return tuple(term for term, _ in dict.fromkeys(keys))


def _near(name: str, names: Iterable[str]) -> str:
    """Return a hint for a name that is not among others."""
    some = [other for other in names if len(other) <= _LONGEST_NAME and other.isprintable()]
    close = difflib.get_close_matches(name, some, n=3) if len(name) <= _LONGEST_NAME else []
    if close:
        return f"did you mean {' or '.join(map(quoted, close))}?"
    return f"there are {', '.join(map(quoted, some[:_MOST_NAMES]))}" if some else "there are none"


def _is_constant(term: Term) -> bool:
    """Return whether a term is the same number in every row."""
    return next(term.columns(), None) is None and not term.n_unknown


@dataclass(frozen=True, slots=True)
class _Levels:
    """A category in a term, one term for each level; its column, unless it is a product of several."""

    levels: tuple[Term, ...]
    column: str | None = None


Value: TypeAlias = Term | _Levels | str  # a text is one in quotes, or a date


class Reader:
    """Reads the tokens of a text from left to right."""

    def __init__(self, text: str, columns: Columns) -> None:
        if len(text) > LONGEST:
            raise TermError(f"the terms have {len(text):,} characters, more than {LONGEST:,}")
        self.text, self.columns, self.place, self.depth = text, columns, 0, 0
        self.tokens: list[tuple[str, str]] = []
        for token in _TOKEN.finditer(text):
            kind, word = str(token.lastgroup), token.group()
            if kind == "other":
                raise self.error(f"{word!r} has no meaning in a term")
            if kind != "space":
                self.tokens.append((kind, _SIGNS.get(word, word) if kind == "sign" else word))
        self.tokens += [("end", "")] * 2

    # --- tokens

    def error(self, why: str = "it is not a list of terms such as qty*price, max(0, kwh - 200)") -> TermError:
        """Return what is raised, with the text in it."""
        return TermError(f"{shown(self.text)} cannot be read: {why}")

    @property
    def kind(self) -> str:
        """The kind of the next token."""
        return self.tokens[self.place][0]

    def next(self) -> tuple[str, str]:
        """Go past the next token, and return its kind and the token."""
        self.place += 1
        return self.tokens[self.place - 1]

    def _is(self, *signs: str, ahead: int = 0) -> bool:
        kind, word = self.tokens[self.place + ahead]
        return kind == "sign" and word in signs

    def accept(self, *signs: str) -> str:
        """Go past one of some signs, if it is the next token, and return it; or return nothing."""
        return self.next()[1] if self._is(*signs) else ""

    def expect(self, sign: str) -> None:
        """Go past a sign, or raise TermError."""
        if not self.accept(sign):
            raise self.error()

    # --- the grammar

    def terms(self) -> list[Term]:
        """Read all of the text, one term for each combination of levels."""
        found: list[Term] = []
        while not found or (self.accept(",") and self.kind != "end"):
            value = self._condition()
            found += value.levels if isinstance(value, _Levels) else [self._term(value)]
            check_number(len(found))
        if self.kind != "end":
            raise self.error()
        return found

    def _condition(self) -> Value:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error("it is nested too deeply")
        left = self._sum()
        if self.accept("="):
            left = self._one_of(left, [self._member(left)])
        elif self.tokens[self.place] == ("word", "in") and self._is("(", ahead=1):
            self.place += 2
            left = self._one_of(left, self._listed(lambda: self._member(left)))
        elif self._is(*_COMPARE):
            sides, signs = [left], []
            while sign := self.accept(*_COMPARE):
                signs.append(sign)
                sides.append(self._sum())
            left = self._compared(sides, signs)
        self.depth -= 1
        return left

    def _sum(self) -> Value:
        value = self._product()
        while sign := self.accept("+", "-"):
            first, second = self._term(value), self._term(self._product())
            value = _checked(_sum_of(first, second) if sign == "+" else Term("-", (first, second)))
        return value

    def _product(self) -> Value:
        value = self._factor()
        while sign := self.accept("*", ":", "/"):
            other = self._factor()
            if sign == "/":
                value = _checked(Term("/", (self._term(value), self._term(other))))
            elif isinstance(value, _Levels) or isinstance(other, _Levels):
                value = _Levels(tuple(self.expanded((value, other))))
            else:
                value = _checked(t.product(self._term(value), self._term(other)))
        return value

    def _factor(self) -> Value:
        minus = 0
        while self.accept("-"):
            minus += 1
        if minus > DEEPEST:
            raise self.error("it is nested too deeply")
        value = self.atom()
        if self.accept("^"):
            base, exponent = self._term(value), self._term(self._factor())
            value = _checked(t.power(base, self._number_of(exponent) if _is_constant(exponent) else exponent))
        for _ in range(minus):
            term = self._term(value)
            value = t.number(-float(str(term.parts[0]))) if term.op == "number" else t.product(t.number(-1), term)
        return value

    def atom(self) -> Value:
        """Read a number, a column, a function or what is in brackets."""
        kind, word = self.next()
        if kind == "number":
            return t.number(self._finite(float(word)))
        if kind == "text":
            return _name(kind, word)
        if kind == "quoted" or (kind == "word" and not self._is("(")):
            return self._column(_name(kind, word))
        if kind == "word":
            self.place += 1
            return self._call(word)
        if (kind, word) == ("sign", "?"):
            return t.UNKNOWN
        if (kind, word) == ("sign", "("):
            value = self._condition()
            self.expect(")")
            return value
        raise self.error()

    def _member(self, of: Value) -> str | Term:
        """Read a level, or what a term may be; a name is the name of a level here."""
        is_name = self.kind in ("quoted", "text") or (self.kind == "word" and not self._is("(", ahead=1))
        if is_name and (isinstance(of, _Levels) or (isinstance(of, Term) and of.op in ("column", *CALENDAR))):
            return _name(*self.next())
        return self._term(self._sum())

    def _listed(self, read: Callable[[], Any]) -> list[Any]:
        """Read what stands between commas up to a closing bracket."""
        found = []
        while not self.accept(")"):
            found.append(read())
            if not self._is(")"):
                self.expect(",")
        return found

    def expanded(self, factors: Sequence[Value]) -> list[Term]:
        """Return a product, once for each combination of levels."""
        lists = [one.levels if isinstance(one, _Levels) else (self._term(one),) for one in factors]
        check_number(math.prod(map(len, lists)))
        return [t.product(*chosen) for chosen in product(*lists)]

    # --- columns and numbers

    def _term(self, value: Value) -> Term:
        if isinstance(value, _Levels):
            raise self.error("the levels of a category can only be multiplied")
        if isinstance(value, str):
            raise self.error("only columns, numbers, + - * / ^, comparisons and functions of terms can be in a term")
        return value

    def _finite(self, value: float) -> float:
        if not np.isfinite(value):
            raise self.error("a number in it is too large, or none")
        return value

    def _number_of(self, term: Term, why: str = "a number is expected") -> float:
        """Return the value of numbers such as 1/3; an error says why nothing else can stand there."""
        if not _is_constant(term):
            raise self.error(why)
        return self._finite(float(term.evaluate(Columns({"": np.zeros(1)}))[0]))

    def _column(self, name: str) -> Term | _Levels:
        if name in self.columns.numbers:
            return t.column(name)
        if name in self.columns.levels:
            return _Levels(tuple(t.level(name, level) for level in self.columns.levels[name].names), name)
        hint = _near(name, [*self.columns.numbers, *self.columns.levels])
        raise self.error(f"there is no column {shown(name)} to use; {hint}")

    # --- functions

    def _call(self, name: str) -> Term | _Levels:
        if name in _ORDERED:
            return self._ordered(name)
        if name not in _FUNCTIONS:
            hint = _near(name, [*_FUNCTIONS, *_ORDERED])
            raise self.error(f"there is no function {shown(name)}; {hint}")
        if name == "round":
            return self._rounded()
        values = self._listed(self._condition)
        least, most = _FUNCTIONS[name]
        if not least <= len(values) <= most:
            raise self.error(f"{name} takes {least} argument{'s or more' if most > 1 else ''}")
        if name == "C":
            return values[0] if isinstance(values[0], _Levels) else self._category(self._term(values[0]))
        parts = tuple(map(self._term, values))
        if name in CALENDAR and (parts[0].op != "column" or parts[0].parts[0] not in self.columns.dates):
            raise self.error(f"{name} takes a column of dates")
        return parts[0] if name == "I" else Term(name, parts)

    def _option(self, *names: str) -> str:
        """Go past ``by=``, if that is next."""
        kind, word = self.tokens[self.place]
        if kind != "word" or not self._is("=", ahead=1):
            return ""
        if word not in names:
            raise self.error(f"there is no {word}=, only {' and '.join(f'{name}=' for name in names)}")
        self.place += 2
        return word

    def _rounded(self) -> Term:
        found = self._listed(lambda: (self._option("to"), self._condition()))
        if len(found) not in (1, 2) or found[0][0]:
            raise self.error("round takes a term, and what it is rounded to: round(pay, to=0.05)")
        term, *steps = (self._term(value) for _, value in found)
        return t.rounded(term, *(self._number_of(step, "what is rounded to must be a number") for step in steps))

    def _ordered(self, name: str) -> Term:
        found = self._listed(lambda: (self._option("by", "order"), *self.next()))
        given = [option for option, _, _ in found]
        if len(set(given)) < len(given) or given[:1] != [""]:
            raise self.error(f"{name} takes one column, by=column and order=column")
        if not all(kind in ("word", "quoted") for _, kind, _ in found):
            raise self.error("a column is expected, and something else is there")
        columns = {option: _name(kind, word) for option, kind, word in found}
        for option, column in columns.items():
            if isinstance(self._column(column), _Levels) and option != "by":
                raise self.error(f"column {shown(column)} holds text, not numbers")
        return Term(name, (columns[""], columns.get("by"), columns.get("order")))

    def _category(self, term: Term) -> _Levels:
        values = np.unique(term.evaluate(self.columns))
        if len(values) > MOST_LEVELS:
            raise self.error(f"{term} has {len(values):,} different values, more levels than {MOST_LEVELS}")
        if not np.isfinite(values).all():
            raise self.error(f"{term} has no value in some rows")
        if term.op != "column":
            return _Levels(tuple(Term("=", (term, t.number(one))) for one in values))
        name = str(term.parts[0])
        days = name in self.columns.dates and bool((values == np.round(values)).all())
        texts = [str(np.datetime64(int(one), "D")) if days else plain_number(one) for one in values]
        return _Levels(tuple(t.level(name, text) for text in texts), name)

    # --- conditions

    def _one_of(self, left: Value, members: Sequence[str | Term]) -> Term:
        """Return where a column has one of some levels, or a term one of some values."""
        if not members:
            raise self.error(_LEVEL)
        if isinstance(left, _Levels) and left.column is not None:
            return t.level_set(left.column, *(self._level(left.column, one) for one in members))
        term = self._term(left)
        if term.op == "column":
            return t.level_set(str(term.parts[0]), *(self._level(str(term.parts[0]), one) for one in members))
        return t.one_of(term, *(self._day(term.op, one) for one in members))

    def _level(self, name: str, value: str | Term) -> str:
        value = value if isinstance(value, str) else plain_number(self._number_of(value, _LEVEL))
        if name not in self.columns.levels:
            t.level(name, value).evaluate(self.columns.take(slice(0, 1)))  # says what is neither a number nor a date
        elif value not in self.columns.levels[name].names:
            hint = _near(value, self.columns.levels[name].names)
            raise self.error(f"column {shown(name)} has no level {shown(value)}; {hint}")
        return value

    def _day(self, function: str, value: str | Term) -> float:
        """Return a number, or that of a weekday or month such as Sat, Saturday, Jan."""
        names = CALENDAR.get(function, ())
        if isinstance(value, str):
            places = [k for k, name in enumerate(names) if value.casefold() in (name[:3].casefold(), name.casefold())]
            if not places:
                raise self.error(f"there is no {function} {shown(value)}; {_near(value.title(), names)}")
            return places[0] + 1.0
        found = self._number_of(value, _LEVEL)
        if names and found not in range(1, len(names) + 1):
            raise self.error(f"a {function} is one of {names[0][:3]} to {names[-1][:3]}, or 1 to {len(names)}")
        return found

    def _compared(self, sides: Sequence[Value], signs: Sequence[str]) -> Term:
        """Return the term of ``kwh <= 200``, ``200 < kwh <= 500``, ``paid >= due``."""
        for side in sides:
            if isinstance(side, _Levels) and side.column is not None:
                raise self.error(f"column {shown(side.column)} holds text, not numbers")
        if len(sides) > 3:
            raise self.error(_COMPARISON)
        found, known = [], [side if isinstance(side, str) else self._term(side) for side in sides]
        for sign, left, right in zip(signs, known, known[1:], strict=False):
            low, high = (right, left) if sign.startswith(">") else (left, right)
            found.append(self._ordering(low, high, strict="=" not in sign))
        if len(found) == 2 and all(one.op == "within" for one in found):
            (name, *ends, closed), (other, *others, also) = found[0].parts, found[1].parts
            if (name, closed) == (other, also) and ends.index(None) != others.index(None):
                limits = (one if one is not None else two for one, two in zip(ends, others, strict=True))
                return Term("within", (name, *limits, closed))
        return t.product(*found)

    def _ordering(self, low: Term | str, high: Term | str, *, strict: bool) -> Term:
        """Return the term of low < high, or of low <= high: an interval of a column, or a comparison of two terms."""
        if (end := self._limit(low, high)) is not None:
            return t.within(str(low.parts[0]), None, end, "left" if strict else "right")  # type: ignore[union-attr]
        if (end := self._limit(high, low)) is not None:
            return t.within(str(high.parts[0]), end, None, "right" if strict else "left")  # type: ignore[union-attr]
        if isinstance(low, str) or isinstance(high, str) or (_is_constant(low) and _is_constant(high)):
            raise self.error(_COMPARISON)
        return Term("<", (low, high)) if strict else Term(">=", (high, low))

    def _limit(self, column: Term | str, side: Term | str) -> float | str | Term | None:
        """Return a side as the limit of a column: a number, a date or ?; None where one of them is something else."""
        if isinstance(column, str) or column.op != "column":
            return None
        if isinstance(side, Term):
            return side if side.op == "?" else self._number_of(side) if _is_constant(side) else None
        if column.parts[0] not in self.columns.dates:
            raise self.error(f"column {shown(str(column.parts[0]))} holds no dates to compare with")
        day_of(side)
        return side


def _sum_of(first: Term, second: Term) -> Term:
    """Return first + second; what begins with a minus is subtracted, as it is written."""
    for part in t.total(second).parts:
        assert isinstance(part, Term)
        if begins_with_minus(part):
            minus, *others = part.factors
            first = Term("-", (first, t.product(t.number(-float(str(minus.parts[0]))), *others)))
        else:
            first = t.total(first, part)
    return first


def _checked(term: Term) -> Term:
    t.check_size(term)
    return term


def _name(kind: str, word: str) -> str:
    """Return the name, or the text, that a token stands for."""
    return word[1:-1].replace("``", "`") if kind == "quoted" else word.strip("'\"") if kind == "text" else word
