"""Terms: what a coefficient multiplies. Columns, products, powers, functions, levels, conditions, lags; as data.

A term is a small tree of operations from a fixed list, so that a model file or a command line can hold one and nothing
else can be run. :func:`massart.rules.language.parse` reads terms from text, ``str`` writes them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.rows import FloatArray
from massart.rules.columns import Columns

Part: TypeAlias = "Term | str | float | None"

MOST_DEPTH, MOST_OPERATIONS = 20, 500
"""Operations inside each other that a term may have, and all of them."""

CONDITIONS = ("level", "within", "=")
"""Operations that are 1 or 0."""

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_PLAIN_LEVEL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH = date(1970, 1, 1).toordinal()
_LARGEST = sys.float_info.max
_LONGEST_TEXT = 10_000
_LONGEST_SHOWN = 60


class TermError(ValueError):
    """A term that cannot be read or has no value; the message says which one and why."""


@dataclass(frozen=True, slots=True)
class Term:
    """An operation on other terms, columns and numbers.

    Attributes
    ----------
    op : str
        A key of `OPERATIONS`.
    parts : tuple
        Terms, and for leaves the name of a column, a level, numbers.

    Examples
    --------
    >>> area = product(column("width"), power(column("height"), 2))
    >>> print(area)
    width * height^2
    >>> area.evaluate(Columns({"width": np.array([2.0, 3.0]), "height": np.array([1.0, 4.0])}))
    array([ 2., 48.])
    """

    op: str
    parts: tuple[Part, ...]

    def evaluate(self, columns: Columns) -> FloatArray:
        """Return its value in every row; infinite or NaN where it has none."""
        with np.errstate(all="ignore"):
            return np.asarray(OPERATIONS[self.op].evaluate(columns, self.parts), dtype=np.float64)

    def __str__(self) -> str:
        return OPERATIONS[self.op].write(self.parts)

    @property
    def is_column(self) -> bool:
        """Whether it is a column as it stands, or a level of one."""
        return self.op in ("column", "level")

    @property
    def needs_order(self) -> bool:
        """Whether its value in a row depends on other rows."""
        return self.op in ("lag", "cumsum") or any(part.needs_order for part in self.parts if isinstance(part, Term))

    @property
    def factors(self) -> tuple[Term, ...]:
        """The factors of a product; a term that is none is its own."""
        if self.op != "*":
            return (self,)
        return tuple(factor for part in self.parts if isinstance(part, Term) for factor in part.factors)

    def columns(self) -> Iterator[str]:
        """Yield the columns that it reads, each as often as it does."""
        if self.op in ("column", "level", "within"):
            yield str(self.parts[0])
        elif self.op in ("lag", "cumsum"):
            yield from (str(part) for part in self.parts if part is not None)
        else:
            for part in self.parts:
                if isinstance(part, Term):
                    yield from part.columns()

    def columns_here(self) -> Iterator[str]:
        """Yield those of them that it reads in the row itself: of a lag, what tells which row is before it."""
        if self.op == "lag":
            yield from (str(part) for part in self.parts[1:] if part is not None)
        elif any(isinstance(part, Term) for part in self.parts):
            for part in self.parts:
                if isinstance(part, Term):
                    yield from part.columns_here()
        else:
            yield from self.columns()

    def to_json(self) -> list[object]:
        """Return it as nested lists."""
        return [self.op, *(part.to_json() if isinstance(part, Term) else part for part in self.parts)]

    @classmethod
    def from_json(cls, content: object) -> Term:
        """Return the term that `to_json` wrote; TermError where that is none."""
        check_size(content)
        return _read(content)


def check_size(content: object) -> None:
    """Raise TermError for a term, as nested lists or as itself, that is too large to be worked with."""
    waiting, seen = [(content, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        parts = part.parts if isinstance(part, Term) else part
        if not isinstance(parts, list | tuple):
            continue
        seen += 1
        if depth > MOST_DEPTH or seen + len(waiting) + len(parts) > MOST_OPERATIONS:
            raise TermError(f"a term is too large: it has more than {MOST_OPERATIONS} parts, or {MOST_DEPTH} levels")
        waiting += [(inner, depth + 1) for inner in parts]


def _read(content: object) -> Term:
    if not isinstance(content, list) or not content or not isinstance(content[0], str) or content[0] not in OPERATIONS:
        raise TermError(f"a term must be a list that begins with an operation, got {shown(content)}")
    op = content[0]
    parts = tuple(_read(part) if isinstance(part, list) else _leaf(part) for part in content[1:])
    kinds = "".join(
        "t" if isinstance(p, Term) else "s" if isinstance(p, str) else "_" if p is None else "n" for p in parts
    )
    if not re.fullmatch(OPERATIONS[op].shape, kinds):
        raise TermError(f"{op} has wrong parts")
    if op == "within" and (parts[3] not in ("left", "right") or parts[1] is parts[2] is None):
        raise TermError("a condition has a limit, and is closed on its left or right")
    for end in parts[1:3] if op == "within" else ():
        if isinstance(end, str):
            day_of(end)
    return Term(op, parts)


def _leaf(part: object) -> Part:
    if part is None:
        return None
    if isinstance(part, str) and len(part) <= _LONGEST_TEXT:
        return part
    if isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= _LARGEST:
        return float(part)
    raise TermError(f"a term cannot hold {shown(part)}")


def shown(content: object) -> str:
    """Return something that is wrong on one line that is not longer than a line should be."""
    if not isinstance(content, str | int | float | None):
        return f"a {type(content).__name__}"
    text = content if isinstance(content, str) else str(content)
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


def column(name: str) -> Term:
    """Return a column of numbers."""
    return Term("column", (name,))


def level(name: str, value: str) -> Term:
    """Return 1 where a column has a level, 0 elsewhere."""
    return Term("level", (name, value))


def within(name: str, low: float | str | None, high: float | str | None, closed: str = "right") -> Term:
    """Return 1 where low < column <= high, or low <= column < high if it is closed on the left; None is no limit.

    Limits of dates are texts such as 2024-05-01.
    """
    return Term("within", (name, low, high, closed))


def number(value: float) -> Term:
    """Return a number."""
    return Term("number", (float(value),))


def product(*factors: Term) -> Term:
    """Return a product; that of one factor is the factor."""
    flat = tuple(inner for factor in factors for inner in factor.factors)
    return flat[0] if len(flat) == 1 else Term("*", flat)


def total(*parts: Term) -> Term:
    """Return a sum; sums in it are taken apart."""
    return Term("+", tuple(inner for part in parts for inner in (part.parts if part.op == "+" else (part,))))


def power(base: Term, exponent: float) -> Term:
    """Return a power."""
    return base if exponent == 1 else Term("^", (base, float(exponent)))


def hinge(name: str, threshold: float) -> Term:
    """Return max(0, column - threshold): what exceeds a threshold."""
    return Term("max", (number(0), Term("-", (column(name), number(threshold)))))


def quoted(name: str) -> str:
    """Return a name as it stands in a formula: in backquotes unless it is a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def plain_number(value: float) -> str:
    """Return a number as people write it, with as many digits as it needs: 200, 0.5, 1e-07."""
    text = f"{value:.15g}"
    return text if float(text) == value else repr(float(value))


def is_day(text: str) -> bool:
    """Whether a text looks like 2024-05-01."""
    return _DATE.fullmatch(text) is not None


def day_of(text: str) -> float:
    """Return a date such as 2024-05-01 as days since 1970-01-01."""
    try:
        if is_day(text):
            return float(date.fromisoformat(text).toordinal() - _EPOCH)
    except ValueError:
        pass
    raise TermError(f"{shown(text)} is no date such as 2024-05-01")


# --- what the operations do -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """How an operation is evaluated and written."""

    evaluate: Callable[[Columns, tuple[Any, ...]], Any]  # of the columns and the parts
    write: Callable[[tuple[Any, ...]], str]  # of the parts
    shape: str  # a pattern that its parts match: t for a term, s for a text, n for a number, _ for nothing


def _column(columns: Columns, parts: tuple[Any, ...]) -> FloatArray:
    name = parts[0]
    if name in columns.numbers:
        return columns.numbers[name]
    if name in columns.levels:
        raise TermError(f"column {shown(name)} holds text, and a term needs numbers")
    raise TermError(f"no column {shown(name)} that holds numbers")


def _level(columns: Columns, parts: tuple[Any, ...]) -> FloatArray:
    name, value = parts
    if name in columns.levels:
        found = columns.levels[name]
        place = found.names.index(value) if value in found.names else -1
        return np.asarray(found.codes == place, dtype=np.float64)
    try:
        wanted = day_of(value) if name in columns.dates and is_day(value) else float(value)
    except ValueError:
        raise TermError(f"column {shown(name)} holds numbers, not {shown(value)}") from None
    return np.asarray(_column(columns, (name,)) == wanted, dtype=np.float64)


def _within(columns: Columns, parts: tuple[Any, ...]) -> FloatArray:
    name, low, high, closed = parts
    values = _column(columns, (name,))
    low, high = (day_of(end) if isinstance(end, str) else end for end in (low, high))
    inside = np.ones(len(values), dtype=bool)
    if low is not None:
        inside &= values >= low if closed == "left" else values > low
    if high is not None:
        inside &= values < high if closed == "left" else values <= high
    return inside.astype(np.float64)


def _ordered(
    columns: Columns, parts: tuple[Any, ...], values_of: Callable[[FloatArray, NDArray[np.intp]], FloatArray]
) -> FloatArray:
    """Apply something to the values of a column in order, and to where groups start in it."""
    name, by, order = parts
    values = _column(columns, (name,))
    keys: list[NDArray[Any]] = [np.arange(len(values))]
    if order is not None:
        keys.append(_column(columns, (order,)))
    if by is not None:
        keys.append(columns.levels[by].codes if by in columns.levels else _column(columns, (by,)))
    places = np.lexsort(keys)
    group = keys[-1][places] if by is not None else np.zeros(len(values))
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]][: len(values)])
    found = np.empty(len(values))
    found[places] = values_of(values[places], starts)
    return found


def _lagged(values: FloatArray, starts: NDArray[np.intp]) -> FloatArray:
    found = np.roll(values, 1)
    found[starts] = np.nan
    return found


def _running(values: FloatArray, starts: NDArray[np.intp]) -> FloatArray:
    """Return running sums; those of cents are sums of whole numbers, which floats hold exactly."""
    for scale in (1.0, 100.0, 10_000.0):
        whole = np.round(values * scale)
        if np.allclose(values * scale, whole, rtol=0, atol=1e-6) and np.abs(whole).sum() < 2**53:
            total = np.cumsum(whole)
            before = np.repeat(total[starts] - whole[starts], np.diff(starts, append=len(values)))
            return np.asarray((total - before) / scale)
    return np.concatenate([np.cumsum(part) for part in np.split(values, starts[1:])])


def _month(days: FloatArray) -> FloatArray:
    months = np.floor(days).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return np.asarray(months % 12 + 1, dtype=np.float64)


def _weekday(days: FloatArray) -> FloatArray:
    return np.asarray((np.floor(days) + 3) % 7 + 1)  # 1 January 1970 was a Thursday; Monday is 1


def _values(columns: Columns, parts: tuple[Any, ...]) -> list[Any]:
    return [part.evaluate(columns) if part.op != "number" else part.parts[0] for part in parts]


def _folded(function: Callable[[Any, Any], Any]) -> Callable[[Columns, tuple[Any, ...]], Any]:
    def evaluate(columns: Columns, parts: tuple[Any, ...]) -> Any:
        first, *others = _values(columns, parts)
        for other in others:
            first = function(first, other)
        return np.broadcast_to(first, columns.n_rows)

    return evaluate


def _of_one(function: Callable[[FloatArray], FloatArray]) -> Callable[[Columns, tuple[Any, ...]], Any]:
    return lambda columns, parts: function(np.asarray(parts[0].evaluate(columns), dtype=np.float64))


def _called(name: str) -> Callable[[tuple[Any, ...]], str]:
    return lambda parts: f"{name}({', '.join(map(str, parts))})"


def _infix(sign: str, tight: tuple[str, ...]) -> Callable[[tuple[Any, ...]], str]:
    """Write parts with a sign between them, in brackets where they bind less tightly."""

    def write(parts: tuple[Any, ...]) -> str:
        first, *others = parts
        words = [str(first) if first.op not in tight else f"({first})"]
        loose = (*tight, *_SAME.get(sign, ()))
        words += [f"({part})" if part.op in loose else str(part) for part in others]
        return sign.join(words)

    return write


_SAME = {" * ": ("/",), " / ": ("*", "/"), " + ": ("-",), " - ": ("+", "-")}
_SUMS = ("+", "-")


def _write_power(parts: tuple[Any, ...]) -> str:
    base, exponent = parts
    text = str(base) if base.op in ("column", "log", "sqrt", "abs", "max", "min") else f"({base})"
    return f"{text}^{plain_number(exponent)}" if exponent >= 0 else f"{text}^({plain_number(exponent)})"


def _write_level(parts: tuple[Any, ...]) -> str:
    name, value = parts
    plain = is_day(value) or (_PLAIN_LEVEL.fullmatch(value) and plain_number(float(value)) == value)
    return f"({quoted(name)} = {value if plain else quoted(value)})"


def _write_within(parts: tuple[Any, ...]) -> str:
    name, low, high, closed = parts
    above, below, under = (">=", "<", "<=") if closed == "left" else (">", "<=", "<")
    words = quoted(name)
    least, most = (end if isinstance(end, str) else plain_number(end or 0) for end in (low, high))
    if low is not None and high is not None:
        return f"({least} {under} {words} {below} {most})"
    return f"({words} {above} {least})" if high is None else f"({words} {below} {most})"


def _write_ordered(word: str) -> Callable[[tuple[Any, ...]], str]:
    def write(parts: tuple[Any, ...]) -> str:
        name, by, order = parts
        options = [f"by={quoted(by)}"] if by is not None else []
        options += [f"order={quoted(order)}"] if order is not None else []
        return f"{word}({', '.join([quoted(name), *options])})"

    return write


OPERATIONS: Mapping[str, Operation] = {
    "column": Operation(_column, lambda parts: quoted(parts[0]), "s"),
    "level": Operation(_level, _write_level, "ss"),
    "within": Operation(_within, _write_within, "s[sn_][sn_]s"),
    "=": Operation(_folded(np.equal), lambda parts: f"({parts[0]} = {parts[1]})", "tt"),
    "number": Operation(
        lambda columns, parts: np.full(columns.n_rows, parts[0]), lambda parts: plain_number(parts[0]), "n"
    ),
    "*": Operation(_folded(np.multiply), _infix(" * ", _SUMS), "tt+"),
    "/": Operation(_folded(np.divide), _infix(" / ", _SUMS), "tt"),
    "+": Operation(_folded(np.add), _infix(" + ", ()), "tt+"),
    "-": Operation(_folded(np.subtract), _infix(" - ", ()), "tt"),
    "^": Operation(
        lambda columns, parts: np.power(np.asarray(parts[0].evaluate(columns)), parts[1]), _write_power, "tn"
    ),
    "min": Operation(_folded(np.minimum), _called("min"), "tt+"),
    "max": Operation(_folded(np.maximum), _called("max"), "tt+"),
    "log": Operation(_of_one(np.log), _called("log"), "t"),
    "sqrt": Operation(_of_one(np.sqrt), _called("sqrt"), "t"),
    "abs": Operation(_of_one(np.abs), _called("abs"), "t"),
    "month": Operation(_of_one(_month), _called("month"), "t"),
    "weekday": Operation(_of_one(_weekday), _called("weekday"), "t"),
    "lag": Operation(lambda columns, parts: _ordered(columns, parts, _lagged), _write_ordered("lag"), "s[s_][s_]"),
    "cumsum": Operation(
        lambda columns, parts: _ordered(columns, parts, _running), _write_ordered("cumsum"), "s[s_][s_]"
    ),
}
"""All that terms can do."""
