r"""Terms from text: ``qty*price, max(0, kwh-200)`` and ``total ~ qty:price + hours:C(service)``.

The text is parsed by Python's own grammar into a tree of which only arithmetic, comparisons and our own functions are
accepted; nothing of it is run. A name is a column, in backquotes if it is no plain word. A colon is R's product, a
column of text in a product stands for all its levels, and ``C(plan)`` takes numbers as levels.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from massart.rules import terms as t
from massart.rules.columns import Columns
from massart.rules.terms import Term, TermError

MOST_TERMS = 2_000
"""Terms that a formula may have."""

MOST_LEVELS = 200
_LONGEST = 20_000
_LARGEST_POWER, _MOST_STARS = 6, 8  # a * b stands for three terms, and eight stars for 511
_TOKEN = re.compile(
    r"`(?P<quoted>[^`]*)`|(?P<text>'[^']*'|\"[^\"]*\")|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign>\*\*|<=|>=|==|[-+*/^:<>=(),])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
_FUNCTIONS = {"min": (2, 9), "max": (2, 9), "log": (1, 1), "sqrt": (1, 1), "abs": (1, 1)}
_OF_DATES = ("month", "weekday")
_ORDERED = ("lag", "cumsum")
_SIGNS = {"^": "**", ":": "@", "=": "=="}
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
    return _distinct([term for part in parts for term in tree.expanded(part)], text)


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
    if "~" not in text:
        raise TermError(f"the formula {text[:60]!r} has no ~ between its target and its terms")
    outside = re.sub(r"`[^`]*`", "x", text)
    powers = [int(found) for found in re.findall(r"(?:\*\*|\^)\s*(\d{1,9})", outside)]
    if max(powers, default=0) > _LARGEST_POWER or re.sub(r"\*\*", "", outside).count("*") > _MOST_STARS:
        raise TermError(f"the formula {text[:60]!r} asks for too many products: use : for a single one")
    try:
        parsed = DefaultFormulaParser().get_terms(text)
        target, right = list(parsed.lhs), list(parsed.rhs)
    except Exception as error:  # whatever its parser stumbles over is in the text
        raise TermError(f"the formula {text!r} cannot be read: {str(error).splitlines()[0]}") from None
    if len(target) != 1 or len(target[0].factors) != 1:
        raise TermError(f"the formula {text!r} needs one column on the left of ~")
    found: list[Term] = []
    for entry in right:
        factors = [_source(factor) for factor in entry.factors if str(factor.expr) != "1"]
        if not factors:
            continue
        reader = _Reader(":".join(f"({factor})" for factor in factors), columns)
        found += reader.expanded(reader.body)
    constant = any(str(entry) == "1" for entry in right)
    return str(target[0].factors[0].expr).strip("`"), _distinct(found, text), constant


def _source(factor: Any) -> str:
    """Return a factor as it was written: the parser takes the backquotes off a name."""
    name = str(factor.expr)
    return f"`{name}`" if factor.eval_method.name == "LOOKUP" else name


def target_of(text: str) -> str:
    """Return the column on the left of ~."""
    return text.partition("~")[0].strip().strip("`")


def _distinct(found: Sequence[Term], text: str) -> tuple[Term, ...]:
    distinct = tuple(dict.fromkeys(found))
    if not distinct:
        raise TermError(f"there are no terms in {text[:60]!r}")
    if len(distinct) > MOST_TERMS:
        raise TermError(f"{len(distinct):,} terms are asked for; at most {MOST_TERMS:,} can be fitted at once")
    return distinct


@dataclass(frozen=True, slots=True)
class _Levels:
    """A category in a term: one term for each level."""

    levels: tuple[Term, ...]


class _Reader:
    """The tree of a text, and what its names stand for."""

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
        shown = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        return TermError(f"{shown!r} cannot be read: {why}")

    def _tokens(self, text: str) -> str:
        """Return the text with every name as a number of our own, so that none has a meaning in Python."""
        source = []
        for token in _TOKEN.finditer(text):
            kind, word = token.lastgroup, token.group()
            following = text[token.end() :].lstrip()
            if kind == "other":
                raise self._error(f"{word!r} has no meaning in a term")
            if kind == "quoted":
                source.append(self._named(word[1:-1]))
            elif kind == "word" and following.startswith("("):
                source.append(f"f_{word}")
            elif kind == "word" and word in ("by", "order") and re.match(r"=[^=]", following):
                source.append(f"k_{word}")
            elif kind == "word":
                source.append(self._named(word))
            elif kind == "sign" and word == "=" and source and source[-1].startswith("k_"):
                source.append("=")
            elif kind == "space":
                source.append(" ")
            else:
                source.append(_SIGNS.get(word, word) if kind == "sign" else word)
        return "".join(source)

    def _named(self, name: str) -> str:
        self.names.append(name)
        return f"n_{len(self.names) - 1}"

    def expanded(self, node: ast.expr) -> list[Term]:
        """Return the terms that an expression stands for: one, or one for each combination of levels."""
        found: list[list[Term]] = [[]]
        for part in self._factors(node):
            value = self._value(part, 0)
            levels = value.levels if isinstance(value, _Levels) else (value,)
            found = [[*chosen, level] for chosen in found for level in levels]
            if len(found) > MOST_TERMS:
                raise TermError(f"more than {MOST_TERMS:,} terms are asked for by {self.text[:60]!r}")
        return [t.product(*chosen) for chosen in found]

    def _factors(self, node: ast.expr) -> list[ast.expr]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.MatMult):
            return [*self._factors(node.left), *self._factors(node.right)]
        return [node]

    def _value(self, node: ast.expr, depth: int) -> Term | _Levels:
        if depth > t.MOST_DEPTH:
            raise self._error("it is nested too deeply")
        if isinstance(node, ast.Name) and node.id.startswith("n_"):
            return self._name(self.names[int(node.id[2:])])
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            if not np.isfinite(float(node.value)):
                raise self._error("a number in it is too large")
            return t.number(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("f_"):
            return self._call(node.func.id[2:], node, depth)
        if isinstance(node, ast.Compare):
            return self._condition(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return Term("*", (t.number(-1), self._term(node.operand, depth)))
        if isinstance(node, ast.BinOp):
            return self._binary(node, depth)
        raise self._error("only columns, numbers, + - * / ^, comparisons and functions of terms can be in a term")

    def _term(self, node: ast.expr, depth: int) -> Term:
        value = self._value(node, depth + 1)
        if isinstance(value, _Levels):
            raise self._error("the levels of a category can only be multiplied")
        return value

    def _name(self, name: str) -> Term | _Levels:
        if name in self.columns.numbers:
            return t.column(name)
        if name in self.columns.levels:
            return _Levels(tuple(t.level(name, level) for level in self.columns.levels[name].names))
        known = [*self.columns.numbers, *self.columns.levels]
        raise self._error(f"there is no column {t.quoted(name)} to use; there are {', '.join(known[:12])}")

    def _binary(self, node: ast.BinOp, depth: int) -> Term:
        left = self._term(node.left, depth)
        if isinstance(node.op, ast.Pow):
            right = self._term(node.right, depth)
            if right.op == "*" and all(isinstance(p, Term) and p.op == "number" for p in right.parts):
                right = t.number(float(right.evaluate(Columns({"": np.zeros(1)}))[0]))
            if right.op != "number":
                raise self._error("an exponent must be a number")
            return t.power(left, float(right.parts[0]))  # type: ignore[arg-type]
        sign = "*" if isinstance(node.op, ast.MatMult) else _BINARY.get(type(node.op))
        if sign is None:
            raise self._error("only + - * / ^ and : join terms")
        right = self._term(node.right, depth)
        return t.product(left, right) if sign == "*" else Term(sign, (left, right))

    def _call(self, name: str, node: ast.Call, depth: int) -> Term | _Levels:
        if name == "I" and len(node.args) == 1 and not node.keywords:
            return self._term(node.args[0], depth)
        if name == "C" and len(node.args) == 1 and not node.keywords:
            return self._category(node.args[0], depth)
        if name in _ORDERED:
            return self._ordered(name, node)
        least, most = _FUNCTIONS.get(name, (1, 1) if name in _OF_DATES else (0, -1))
        if most < 0:
            known = ", ".join([*_FUNCTIONS, *_OF_DATES, *_ORDERED, "C"])
            raise self._error(f"there is no function {name}; there are {known}")
        if node.keywords or not least <= len(node.args) <= most:
            raise self._error(f"{name} takes {least} argument{'s or more' if most > 1 else ''}")
        parts = tuple(self._term(argument, depth) for argument in node.args)
        if name in _OF_DATES and (parts[0].op != "column" or parts[0].parts[0] not in self.columns.dates):
            raise self._error(f"{name} takes a column of dates")
        return Term(name, parts)

    def _category(self, node: ast.expr, depth: int) -> _Levels:
        value = self._value(node, depth + 1)
        if isinstance(value, _Levels):
            return value
        values = np.unique(value.evaluate(self.columns))
        if len(values) > MOST_LEVELS:
            raise self._error(f"{value} has {len(values):,} different values, more levels than {MOST_LEVELS}")
        if value.op == "column":
            name = str(value.parts[0])
            return _Levels(tuple(t.level(name, t.plain_number(one)) for one in values))
        return _Levels(tuple(Term("=", (value, t.number(one))) for one in values))

    def _ordered(self, name: str, node: ast.Call) -> Term:
        options: dict[str, str | None] = {"k_by": None, "k_order": None}
        for keyword in node.keywords:
            if keyword.arg not in options or not isinstance(keyword.value, ast.Name):
                raise self._error(f"{name} takes a column, by=column and order=column")
            options[keyword.arg] = self._known(keyword.value)
        if len(node.args) != 1 or not isinstance(node.args[0], ast.Name):
            raise self._error(f"{name} takes one column")
        return Term(name, (self._known(node.args[0]), options["k_by"], options["k_order"]))

    def _known(self, node: ast.Name) -> str:
        name = self.names[int(node.id[2:])]
        self._name(name)
        return name

    def _condition(self, node: ast.Compare) -> Term:
        """Return the term of ``kwh <= 200``, ``200 < kwh <= 500``, ``region = north``."""
        sides = [node.left, *node.comparators]
        if len(sides) == 2 and isinstance(node.ops[0], ast.Eq):
            return self._equality(*sides)
        names = [side for side in sides if isinstance(side, ast.Name)]
        if len(names) != 1 or len(sides) > 3 or (len(sides) == 3 and sides[1] is not names[0]):
            raise self._error("a comparison has one column and numbers: kwh <= 200, or 200 < kwh <= 500")
        name, found = self._known(names[0]), list[Term]()
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            bound = self._term(right if left is names[0] else left, 0)
            if bound.op != "number" or not isinstance(operator, ast.Gt | ast.GtE | ast.Lt | ast.LtE):
                raise self._error("a comparison has one column and numbers: kwh <= 200, or 200 < kwh <= 500")
            value = float(bound.parts[0])  # type: ignore[arg-type]
            above = isinstance(operator, ast.Gt | ast.GtE) == (left is names[0])
            strict = isinstance(operator, ast.Gt | ast.Lt)
            low, high = (value, None) if above else (None, value)
            found.append(t.within(name, low, high, "right" if above == strict else "left"))
        if len(found) == 2 and found[0].parts[3] == found[1].parts[3]:
            ends = [next((one.parts[k] for one in found if one.parts[k] is not None), None) for k in (1, 2)]
            return Term("within", (name, *ends, found[0].parts[3]))
        return t.product(*found)

    def _equality(self, left: ast.expr, right: ast.expr) -> Term:
        if not isinstance(left, ast.Name):
            raise self._error("a level is written (region = north)")
        name = self._known(left)
        if isinstance(right, ast.Name):
            return t.level(name, self.names[int(right.id[2:])])
        if isinstance(right, ast.Constant) and isinstance(right.value, str | int | float):
            return t.level(name, right.value if isinstance(right.value, str) else t.plain_number(right.value))
        raise self._error("a level is written (region = north)")
