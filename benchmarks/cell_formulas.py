"""Cell formulas as Excel computes them, for the functions that exports use: a check where no spreadsheet is installed.

A formula is read into a function of a row of cells. Errors of Excel are exceptions. The grammar, in which each line is
read by one method::

    compared = joined [("=" | "<>" | "<" | "<=" | ">" | ">=") joined]
    joined   = sum {"&" sum}
    sum      = product {("+" | "-") product}
    product  = factor {("*" | "/") factor}
    factor   = ["-" | "+"] (number | text | cell | array | function "(" arguments ")" | "(" compared ")")
"""

from __future__ import annotations

import datetime
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Cells = Mapping[str, Any]
Value = Callable[[Cells], Any]

_TOKEN = re.compile(
    r'\s*("(?:[^"]|"")*"|\d+\.?\d*(?:E[-+]?\d+)?|\.\d+|\$?[A-Z]+\$?\d+|[A-Z]+|<=|>=|<>|[-+*/&=<>(){},])', re.S
)
_COMPARE = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_JOIN = [
    {"&": lambda a, b: _text(a) + _text(b)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv},
]
_ERRORS = (ArithmeticError, ValueError, TypeError, KeyError)
_EPOCH = datetime.date(1899, 12, 30)


def read(formula: str) -> Value:
    """Return a formula, which begins with =, as a function of cells by name."""
    reader = _Reader(_TOKEN.findall(formula.removeprefix("=")))
    value = reader.compared()
    if reader.tokens:
        raise ValueError(f"not read: {reader.tokens[:5]}")
    return value


def cell(value: Any) -> Any:
    """Return what a cell holds: a day as its number, and nothing for None."""
    if isinstance(value, datetime.date):
        return float((value - _EPOCH).days)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _Reader:
    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = list(tokens)

    def accept(self, *signs: str) -> str:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in signs else ""

    def compared(self) -> Value:
        left = self.joined(0)
        if sign := self.accept(*_COMPARE):
            right, compare = self.joined(0), _COMPARE[sign]
            return lambda cells: compare(left(cells), right(cells))
        return left

    def joined(self, level: int) -> Value:
        if level == len(_JOIN):
            return self.factor()
        value = self.joined(level + 1)
        while sign := self.accept(*_JOIN[level]):
            value = _both(_JOIN[level][sign], value, self.joined(level + 1))
        return value

    def factor(self) -> Value:
        if sign := self.accept("-", "+"):
            inner = self.factor()
            return inner if sign == "+" else lambda cells: -inner(cells)
        token = self.tokens.pop(0)
        if token == "(":
            inner = self.compared()
            assert self.accept(")")
            return inner
        if token == "{":
            return self.constant(self.listed("}"))
        if token.startswith('"'):
            return self.constant(token[1:-1].replace('""', '"'))
        if self.accept("("):
            return _called(token, self.listed(")"))
        if token == "TRUE":
            return self.constant(True)
        if token[0].isdigit() or token[0] == ".":
            return self.constant(float(token))
        name = token.replace("$", "")
        return lambda cells: cells[name]

    def constant(self, value: Any) -> Value:
        return lambda cells: [one(cells) for one in value] if isinstance(value, list) else value

    def listed(self, end: str) -> list[Value]:
        found: list[Value] = []
        while not self.accept(end):
            found.append(self.compared())
            self.accept(",")
        return found


def _both(join: Callable[[Any, Any], Any], first: Value, second: Value) -> Value:
    return lambda cells: join(first(cells), second(cells))


def _called(name: str, parts: Sequence[Value]) -> Value:
    if name == "IF":
        return lambda cells: parts[1](cells) if parts[0](cells) else parts[2](cells)
    if name in ("IFERROR", "ISNUMBER"):

        def tried(cells: Cells) -> Any:
            try:
                value = parts[0](cells)
            except _ERRORS:
                return False if name == "ISNUMBER" else parts[1](cells)
            is_number = isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)
            if name == "IFERROR" and isinstance(value, float) and not math.isfinite(value):
                return parts[1](cells)
            return is_number if name == "ISNUMBER" else value

        return tried
    return lambda cells: _FUNCTIONS[name](*(part(cells) for part in parts))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _match(value: str, among: Sequence[str], kind: float) -> int:
    assert kind == 0
    return [one.casefold() for one in among].index(value.casefold()) + 1


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent == 0:
        raise ValueError("0^0 is an error in Excel")
    return math.pow(base, exponent)


def _day(number: float) -> datetime.date:
    return _EPOCH + datetime.timedelta(days=math.floor(number))


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "AND": lambda *parts: all(parts),
    "OR": lambda *parts: any(parts),
    "ABS": abs,
    "INT": lambda value: float(math.floor(value)),
    "MAX": max,
    "MIN": min,
    "POWER": _power,
    "LN": math.log,
    "EXP": math.exp,
    "SQRT": math.sqrt,
    "EXACT": lambda first, second: _text(first) == _text(second),
    "LOWER": lambda text: _text(text).lower(),
    "TRIM": lambda text: " ".join(one for one in _text(text).split(" ") if one),
    "SUBSTITUTE": lambda text, old, new: _text(text).replace(old, new),
    "FIND": lambda old, text: text.index(old) + 1,
    "CHAR": lambda code: chr(int(code)),
    "MATCH": _match,
    "MONTH": lambda number: float(_day(number).month),
    "WEEKDAY": lambda number, kind: float(_day(number).isoweekday()) if kind == 2 else None,
}
