r"""Terms from text: ``qty*price, max(0, kwh-200)`` and ``total ~ qty:price + hours:C(service)``.

The text is parsed by Python's own grammar into a tree of which only arithmetic, comparisons and our own functions are
accepted; nothing of it is run. A name is a column, in backquotes if it is no plain word. A colon is R's product, a
column of text in a product stands for all its levels, and ``C(plan)`` takes numbers as levels. What ``str`` writes of a
term is read as that term.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from massart.rules import terms as t
from massart.rules.columns import Columns
from massart.rules.literals import CALENDAR
from massart.rules.operations import OPERATIONS
from massart.rules.terms import Term, TermError

MOST_TERMS = 2_000
"""Terms that a formula may have."""

MOST_LEVELS = 200
_LONGEST = 20_000
_LONGEST_NAME, _MOST_NAMES = 60, 12  # of a name that near ones are looked for, and names that a message lists
_DATE = r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b"
_TOKEN = re.compile(
    rf"(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'[^']*'|\"[^\"]*\"|{_DATE})"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign>\*\*|<=|>=|==|[-+*/^:<>=(),?])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
_FUNCTIONS = {name: found.arguments for name, found in OPERATIONS.items() if found.arguments}
_FUNCTIONS |= {"C": (1, 1), "I": (1, 1)}
_ORDERED = ("lag", "cumsum")
_KEYWORDS = {"by": _ORDERED, "order": _ORDERED, "to": ("round",)}
_SIGNS = {"^": "**", ":": "@", "=": "=="}
_ENDS = re.compile(r"[\w`'\")?]$")  # the end of a column or a term
_COMPARISON = "a comparison has a column or a term in it: kwh <= 200, 200 < kwh <= 500, paid >= due"
_LEVEL = "a level is written (region = north), several (region in (north, south))"
_PLACEHOLDER = "massart_unknown_constant"  # for ? where it would be no formula
_BINARY: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


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
    tree = _Reader(text, columns)
    parts = tree.body.elts if isinstance(tree.body, ast.Tuple) else [tree.body]
    found: list[Term] = []
    for part in parts:
        found += tree.expanded(part)
        _check_number(len(found))
    return _distinct(found, text)


def parse_formula(text: str, columns: Columns) -> tuple[str, tuple[Term, ...], bool]:
    """Return target, terms and whether there is a constant, of a formula as R and statsmodels write it.

    Parameters
    ----------
    text : str
        ``total ~ qty:price + hours:C(service) - 1``; ``a*b`` stands for a, b and a:b.
    columns : Columns
    """
    try:
        from formulaic.parser import DefaultFormulaParser
    except ImportError:
        raise TermError("formulas need the package formulaic: pip install 'massart[formula]'; or use --terms") from None
    if len(text) > _LONGEST:
        raise TermError(f"the formula has {len(text):,} characters, more than {_LONGEST:,}")
    target_of(text)
    parser = DefaultFormulaParser()
    try:
        source = re.sub(rf"(`[^`]*`|'[^']*'|\"[^\"]*\")|({_DATE})", lambda found: found[1] or f"'{found[2]}'", text)
        source = re.sub(r"(`[^`]*`)|[?]", lambda found: found[1] or _PLACEHOLDER, source)
        _most_terms(parser.get_ast(source))
        parsed = parser.get_terms(source)
        target, right = list(parsed.lhs), list(parsed.rhs)
        if len(target) != 1 or len(target[0].factors) != 1:
            raise TermError(f"the formula {t.shown(text)} needs one column on the left of ~")
        sources = [[_source(factor) for factor in entry.factors if str(factor.expr) != "1"] for entry in right]
    except TermError:
        raise
    except Exception as error:  # whatever its parser stumbles over is in the text
        known = type(error).__module__.startswith("formulaic") or isinstance(error, SyntaxError)
        why = str(error).splitlines()[0] if known else "it is no formula such as total ~ qty:price + hours"
        raise TermError(f"the formula {t.shown(text)} cannot be read: {t.shown(why)}") from None
    found: list[Term] = []
    for factors in filter(None, sources):
        reader = _Reader(":".join(f"({factor})" for factor in factors), columns)
        found += reader.expanded(reader.body)
        _check_number(len(found))
    constant = any(str(entry) == "1" for entry in right)
    return str(target[0].factors[0].expr).strip("`"), _distinct(found, text), constant


def _most_terms(node: Any) -> int:
    """Return a bound on the terms that a formula stands for, before they are made: (a + b)^6 has many."""
    waiting, total = [node], 0
    while waiting:  # sums may be long, and all else is deep only to do harm
        part = waiting.pop()
        arguments = list(getattr(part, "args", ()))
        sign = str(part.operator.symbol) if arguments else ""
        if sign in ("**", "^"):
            exponent = str(arguments[1])
            total += (_most_terms(arguments[0]) + 1) ** (int(exponent) if exponent in "123456789" else 99)
        elif sign in (":", "*", "/", "%in%"):
            with_themselves = sign != ":"
            left, right = (_most_terms(argument) + with_themselves for argument in arguments)
            total += left * right
        else:
            waiting += arguments
            total += not arguments
        _check_number(total)
    return total


def _source(factor: Any) -> str:
    """Return a factor as it was written: the parser takes the backquotes off a name."""
    name = str(factor.expr).replace(_PLACEHOLDER, "?")
    return f"`{name}`" if factor.eval_method.name == "LOOKUP" else name


def target_of(text: str) -> str:
    """Return the column on the left of ~."""
    if "~" not in text:
        raise TermError(f"the formula {t.shown(text)} has no ~ between its target and its terms")
    quoted = re.match(r"\s*`([^`]*)`\s*~", text)
    return quoted.group(1) if quoted else text.partition("~")[0].strip()


def _check_number(n_terms: int) -> None:
    if n_terms > MOST_TERMS:
        raise TermError(f"more than {MOST_TERMS:,} terms are asked for, the most that can be fitted at once")


def _distinct(found: Sequence[Term], text: str) -> tuple[Term, ...]:
    if not found:
        raise TermError(f"there are no terms in {t.shown(text)}")
    for term in found:
        t.check_size(term)
    keys = [(term, place if term.n_unknown else 0) for place, term in enumerate(found)]  # each ? is its own
    return tuple(term for term, _ in dict.fromkeys(keys))


def _near(name: str, names: Iterable[str]) -> str:
    """Return a hint for a name that is not among others."""
    some = [other for other in names if len(other) <= _LONGEST_NAME and other.isprintable()]
    close = difflib.get_close_matches(name, some, n=3) if len(name) <= _LONGEST_NAME else []
    if close:
        return f"did you mean {' or '.join(map(t.quoted, close))}?"
    return f"there are {', '.join(map(t.quoted, some[:_MOST_NAMES]))}" if some else "there are none"


def _is_constant(term: Term) -> bool:
    """Return whether a term is the same number in every row."""
    return next(term.columns(), None) is None and not term.n_unknown


def _name_of(column: Term | str) -> str:
    """Return the name of a column that was read as a term."""
    return str(column.parts[0] if isinstance(column, Term) else column)


@dataclass(frozen=True, slots=True)
class _Levels:
    """A category in a term: one term for each level."""

    levels: tuple[Term, ...]


class _Reader:
    """The tree of a text, and what its names stand for.

    In it ``n_3`` is a name, ``s_3`` a text or a date, ``f_max`` a function, ``k_by`` a keyword, and ``u_`` a constant
    that is to be found.
    """

    def __init__(self, text: str, columns: Columns) -> None:
        if len(text) > _LONGEST:
            raise TermError(f"the terms have {len(text):,} characters, more than {_LONGEST:,}")
        self.text, self.columns, self.names = text, columns, list[str]()
        source = self._tokens(text)
        try:
            self.body = ast.parse(source.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error("it is no list of terms such as qty*price, max(0, kwh - 200)") from None

    def _error(self, why: str) -> TermError:
        return TermError(f"{t.shown(self.text)} cannot be read: {why}")

    def _tokens(self, text: str) -> str:
        """Return the text with every name as a number of our own, so that none has a meaning in Python."""
        source, before = [], ""
        for token in _TOKEN.finditer(text):
            kind, word = token.lastgroup, token.group()
            following = text[token.end() : token.end() + 100].lstrip()
            if kind == "other":
                raise self._error(f"{word!r} has no meaning in a term")
            if kind == "quoted":
                source.append(self._named("n", word[1:-1].replace("``", "`")))
            elif kind == "text":
                source.append(self._named("s", word.strip("'\"")))
            elif word == "in" and following.startswith("(") and _ENDS.search(before):
                source.append(" in ")
            elif kind == "word" and following.startswith("("):
                source.append(f" f_{word}")
            elif kind == "word" and word in _KEYWORDS and before == "," and re.match(r"=[^=]", following):
                source.append(f" k_{word}")
            elif kind == "word":
                source.append(self._named("n", word))
            elif word == "=" and before in _KEYWORDS and source[-1].startswith(" k_"):
                source.append("=")
            elif word == "?":
                source.append(" u_ ")
            elif kind != "space":
                source.append(_SIGNS.get(word, word) if kind == "sign" else f" {word}")
            before = before if kind == "space" else word
        return "".join(source)

    def _named(self, kind: str, name: str) -> str:
        self.names.append(name)
        return f" {kind}_{len(self.names) - 1} "

    def expanded(self, node: ast.expr) -> list[Term]:
        """Return the terms that an expression stands for: one, or one for each combination of levels."""
        found: list[list[Term]] = [[]]
        for part in self._factors(node):
            value = self._value(part, 0)
            levels = value.levels if isinstance(value, _Levels) else (value,)
            _check_number(len(found) * len(levels))
            found = [[*chosen, level] for chosen in found for level in levels]
        return [t.product(*chosen) for chosen in found]

    def _factors(self, node: ast.expr) -> list[ast.expr]:
        waiting, found = [node], list[ast.expr]()
        while waiting:
            part = waiting.pop()
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.MatMult):
                waiting += [part.right, part.left]
            else:
                found.append(part)
        if len(found) > t.MOST_OPERATIONS:
            raise self._error(f"a product in it has {len(found):,} factors, more than {t.MOST_OPERATIONS}")
        return found

    def _value(self, node: ast.expr, depth: int) -> Term | _Levels:
        if depth > t.MOST_DEPTH:
            raise self._error("it is nested too deeply")
        if isinstance(node, ast.Name) and node.id.startswith("n_"):
            return self._name(self._text(node))
        if isinstance(node, ast.Constant):
            return t.number(self._number(node))
        if isinstance(node, ast.Name) and node.id == "u_":
            return t.UNKNOWN
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("f_"):
            return self._call(node.func.id[2:], node, depth)
        if isinstance(node, ast.Compare):
            return self._condition(node, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            term = self._term(node.operand, depth)
            return t.number(-float(str(term.parts[0]))) if term.op == "number" else t.product(t.number(-1), term)
        if isinstance(node, ast.BinOp):
            return self._binary(node, depth)
        raise self._error("only columns, numbers, + - * / ^, comparisons and functions of terms can be in a term")

    def _term(self, node: ast.expr, depth: int) -> Term:
        value = self._value(node, depth + 1)
        if isinstance(value, _Levels):
            raise self._error("the levels of a category can only be multiplied")
        return value

    def _text(self, node: ast.Name) -> str:
        """Return what a name or a text of ours stands for."""
        return self.names[int(node.id[2:])]

    def _number(self, node: ast.Constant) -> float:
        try:
            value = float(node.value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            value = np.nan
        if not np.isfinite(value):
            raise self._error("a number in it is too large")
        return value

    def _constant(self, node: ast.expr, depth: int, why: str = "a number is expected") -> float:
        """Return the value of numbers such as 1/3; an error says why nothing else can stand there."""
        term = self._term(node, depth)
        if not _is_constant(term):
            raise self._error(why)
        return self._value_of_constant(term)

    def _value_of_constant(self, term: Term) -> float:
        value = float(term.evaluate(Columns({"": np.zeros(1)}))[0])
        if not np.isfinite(value):
            raise self._error("a number in it is too large, or none")
        return value

    def _name(self, name: str) -> Term | _Levels:
        if name in self.columns.numbers:
            return t.column(name)
        if name in self.columns.levels:
            return _Levels(tuple(t.level(name, level) for level in self.columns.levels[name].names))
        hint = _near(name, [*self.columns.numbers, *self.columns.levels])
        raise self._error(f"there is no column {t.shown(name)} to use; {hint}")

    def _binary(self, node: ast.BinOp, depth: int) -> Term:
        left = self._term(node.left, depth)
        if isinstance(node.op, ast.Pow):
            exponent = self._term(node.right, depth)
            return t.power(left, self._value_of_constant(exponent) if _is_constant(exponent) else exponent)
        right = self._term(node.right, depth)
        sign = "*" if isinstance(node.op, ast.MatMult) else _BINARY.get(type(node.op))
        if sign is None:
            raise self._error("only + - * / ^ and : join terms")
        if sign in "+*":
            return t.product(left, right) if sign == "*" else t.total(left, right)
        return Term(sign, (left, right))

    def _call(self, name: str, node: ast.Call, depth: int) -> Term | _Levels:
        if name in _ORDERED:
            return self._ordered(name, node)
        least, most = _FUNCTIONS.get(name, (0, -1))
        if most < 0:
            hint = _near(name, [*_FUNCTIONS, *_ORDERED])
            raise self._error(f"there is no function {t.shown(name)}; {hint}")
        if name == "round":
            return self._rounded(node, depth)
        if node.keywords or not least <= len(node.args) <= most:
            raise self._error(f"{name} takes {least} argument{'s or more' if most > 1 else ''}")
        if name == "C":
            return self._category(node.args[0], depth)
        parts = tuple(self._term(argument, depth) for argument in node.args)
        if name == "I":
            return parts[0]
        if name in CALENDAR and (parts[0].op != "column" or parts[0].parts[0] not in self.columns.dates):
            raise self._error(f"{name} takes a column of dates")
        return Term(name, parts)

    def _rounded(self, node: ast.Call, depth: int) -> Term:
        steps = [*node.args[1:], *(keyword.value for keyword in node.keywords if keyword.arg == "k_to")]
        if not node.args or len(steps) > 1 or len(steps) < len(node.args) - 1 + len(node.keywords):
            raise self._error("round takes a term, and what it is rounded to: round(pay, to=0.05)")
        step = self._constant(steps[0], depth, "what is rounded to must be a number") if steps else 1.0
        try:
            return t.rounded(self._term(node.args[0], depth), step)
        except TermError as error:
            raise self._error(str(error)) from None

    def _category(self, node: ast.expr, depth: int) -> _Levels:
        value = self._value(node, depth + 1)
        if isinstance(value, _Levels):
            return value
        values = np.unique(value.evaluate(self.columns))
        if len(values) > MOST_LEVELS:
            raise self._error(f"{value} has {len(values):,} different values, more levels than {MOST_LEVELS}")
        if not np.isfinite(values).all():
            raise self._error(f"{value} has no value in some rows")
        if value.op == "column":
            name = str(value.parts[0])
            days = name in self.columns.dates and bool((values == np.round(values)).all())
            texts = [str(np.datetime64(int(one), "D")) if days else t.plain_number(one) for one in values]
            return _Levels(tuple(t.level(name, text) for text in texts))
        return _Levels(tuple(Term("=", (value, t.number(one))) for one in values))

    def _ordered(self, name: str, node: ast.Call) -> Term:
        options: dict[str, str | None] = {"k_by": None, "k_order": None}
        for keyword in node.keywords:
            if keyword.arg not in options or options[keyword.arg] is not None:
                raise self._error(f"{name} takes a column, by=column and order=column")
            options[keyword.arg] = self._known(keyword.value, numbers=keyword.arg == "k_order")
        if len(node.args) != 1:
            raise self._error(f"{name} takes one column")
        return Term(name, (self._known(node.args[0]), options["k_by"], options["k_order"]))

    def _known(self, node: ast.expr, *, numbers: bool = True) -> str:
        """Return the name of a column, of numbers where others have no meaning."""
        if not isinstance(node, ast.Name) or not node.id.startswith("n_"):
            raise self._error("a column is expected, and something else is there")
        name = self._text(node)
        self._name(name)
        if numbers and name not in self.columns.numbers:
            raise self._error(f"column {t.shown(name)} holds text, not numbers")
        return name

    def _condition(self, node: ast.Compare, depth: int) -> Term:
        """Return the term of ``kwh <= 200``, ``200 < kwh <= 500``, ``region = north``, ``month(day) in (Jan, Dec)``."""
        sides = [node.left, *node.comparators]
        if len(sides) == 2 and isinstance(node.ops[0], ast.Eq | ast.In):
            values = [sides[1]]
            if isinstance(node.ops[0], ast.In) and isinstance(sides[1], ast.Tuple):
                values = sides[1].elts
            return self._membership(sides[0], values, depth)
        if len(sides) > 3 or not all(isinstance(one, ast.Gt | ast.GtE | ast.Lt | ast.LtE) for one in node.ops):
            raise self._error(_COMPARISON)
        found = []
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            ends = self._side(left, depth), self._side(right, depth)
            low, high = ends[::-1] if isinstance(operator, ast.Gt | ast.GtE) else ends
            found.append(self._compared(low, high, strict=isinstance(operator, ast.Gt | ast.Lt)))
        if len(found) == 2 and all(one.op == "within" for one in found):
            (name, *ends_of, closed), (other, *others, also) = found[0].parts, found[1].parts
            if (name, closed) == (other, also) and ends_of.index(None) != others.index(None):
                limits = (one if one is not None else two for one, two in zip(ends_of, others, strict=True))
                return Term("within", (name, *limits, closed))
        return t.product(*found)

    def _side(self, node: ast.expr, depth: int) -> Term | str:
        """Return a side of a comparison: a term, or a date such as 2024-05-01."""
        if not isinstance(node, ast.Name) or node.id == "u_":
            return self._term(node, depth)
        return t.column(self._known(node)) if node.id.startswith("n_") else self._text(node)

    def _compared(self, low: Term | str, high: Term | str, *, strict: bool) -> Term:
        """Return the term of low < high, or of low <= high: an interval of a column, or a comparison of two terms."""
        if (end := self._limit(low, high)) is not None:
            return t.within(_name_of(low), None, end, "left" if strict else "right")
        if (end := self._limit(high, low)) is not None:
            return t.within(_name_of(high), end, None, "right" if strict else "left")
        if isinstance(low, str) or isinstance(high, str) or (_is_constant(low) and _is_constant(high)):
            raise self._error(_COMPARISON)
        return Term("<", (low, high)) if strict else Term(">=", (high, low))

    def _limit(self, column: Term | str, side: Term | str) -> float | str | Term | None:
        """Return a side as the limit of a column: a number, a date or ?; None where one of them is something else."""
        if isinstance(column, str) or column.op != "column":
            return None
        if isinstance(side, Term):
            return side if side.op == "?" else self._value_of_constant(side) if _is_constant(side) else None
        name = _name_of(column)
        if name not in self.columns.dates:
            raise self._error(f"column {t.shown(name)} holds no dates to compare with")
        t.day_of(side)
        return side

    def _membership(self, left: ast.expr, values: Sequence[ast.expr], depth: int) -> Term:
        """Return where a column has one of some levels, or a term one of some values."""
        if not values:
            raise self._error(_LEVEL)
        if not isinstance(left, ast.Name) or not left.id.startswith("n_"):
            term = self._term(left, depth)
            return t.one_of(term, *(self._value_of(term.op, value, depth) for value in values))
        name = self._known(left, numbers=False)
        return t.level_set(name, *(self._level_of(name, value, depth) for value in values))

    def _value_of(self, function: str, node: ast.expr, depth: int) -> float:
        """Return a number, or that of a weekday or month such as Sat, Saturday, Jan."""
        if function not in CALENDAR:
            return self._constant(node, depth, _LEVEL)
        names = CALENDAR[function]
        if isinstance(node, ast.Name) and node.id != "u_":
            word = self._text(node)
            known = [(name[:3].casefold(), name.casefold()) for name in names]
            places = [k for k, ways in enumerate(known) if word.casefold() in ways]
            if not places:
                raise self._error(f"there is no {function} {t.shown(word)}; {_near(word.title(), names)}")
            return places[0] + 1.0
        value = self._constant(node, depth, _LEVEL)
        if value not in range(1, len(names) + 1):
            raise self._error(f"a {function} is one of {names[0][:3]} to {names[-1][:3]}, or 1 to {len(names)}")
        return value

    def _level_of(self, name: str, node: ast.expr, depth: int) -> str:
        if isinstance(node, ast.Name) and node.id != "u_":
            value = self._text(node)
        else:
            value = t.plain_number(self._constant(node, depth, _LEVEL))
        if name in self.columns.levels:
            names = self.columns.levels[name].names
            if value not in names:
                raise self._error(f"column {t.shown(name)} has no level {t.shown(value)}; {_near(value, names)}")
        else:
            t.level(name, value).evaluate(self.columns.take(slice(0, 1)))  # says what is no number and no date
        return value
