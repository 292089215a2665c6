"""All that terms can do, in one table: how an operation is evaluated, written, and said in SQL, Python and Excel.

``ceil``, ``floor`` and ``round`` read numbers as people do. In floats 0.3 / 0.1 is a little less than 3, and 1.15 / 0.1
a little less than 11.5. So a number is taken for the whole number next to it if it is within a billionth of it,
or 1e-13 of its size, and half of a step is rounded away from zero. Every target does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.rows import FloatArray
from massart.rules.columns import Columns
from massart.rules.literals import (
    TermError,
    calendar_name,
    day_of,
    is_day,
    plain_level,
    plain_number,
    quoted,
    shown,
)

DUST, RELATIVE_DUST = 1e-9, 1e-13
"""How far from a whole number a number is still taken for it: so far, and so far for each unit of its size."""

EXCEL_EPOCH = 25569
"""1970-01-01 in Excel's count of days."""

Parts = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """How an operation is evaluated and written.

    Attributes
    ----------
    evaluate : callable or None
        Of the columns and the parts; None for what :func:`massart.rules.terms.in_others` says by other operations.
    write : callable
        Of the parts; :mod:`massart.rules.language` reads it again.
    shape : str
        A pattern that its parts match: t for a term, s for a text, n for a number, _ for nothing.
    arguments : (int, int) or None
        How many arguments it takes at least and at most, if it is written as a function of terms.
    sql, python, excel : str
        The same in another language, with {0}, {1} for its parts; empty where :mod:`massart.export` has to say it by
        the kinds of columns.
    """

    evaluate: Callable[[Columns, Parts], Any] | None
    write: Callable[[Parts], str]
    shape: str
    arguments: tuple[int, int] | None = None
    sql: str = ""
    python: str = ""
    excel: str = ""


# --- columns and conditions -------------------------------------------------------------------------------------------


def _column(columns: Columns, parts: Parts) -> FloatArray:
    name = parts[0]
    if name in columns.numbers:
        return columns.numbers[name]
    if name in columns.levels:
        raise TermError(f"column {shown(name)} holds text, and a term needs numbers")
    raise TermError(f"no column {shown(name)} that holds numbers")


def _level(columns: Columns, parts: Parts) -> FloatArray:
    name, *values = parts
    if name in columns.levels:
        found = columns.levels[name]
        places = [found.names.index(value) for value in values if value in found.names]
        return np.asarray(np.isin(found.codes, places), dtype=np.float64)
    return _is_one_of(_column(columns, (name,)), [_number_of(columns, name, value) for value in values])


FLAGS = ("yes", "true", "y", "t", "no", "false", "n", "f")
"""Words that a table holds where its columns have 1 and 0."""


def _number_of(columns: Columns, name: str, value: str) -> float:
    try:
        return day_of(value) if name in columns.dates and is_day(value) else float(value)
    except ValueError:
        hint = ": write 1 for yes or true, 0 for no or false" if value.lower() in FLAGS else ""
        raise TermError(f"column {shown(name)} holds numbers, not {shown(value)}{hint}") from None


def _is_one_of(values: FloatArray, wanted: list[float]) -> FloatArray:
    return np.where(np.isnan(values), np.nan, np.isin(values, wanted))


def _one_of(columns: Columns, parts: Parts) -> FloatArray:
    """Return where a column has one of some levels, or a term one of some values."""
    if isinstance(parts[0], str):
        return _level(columns, parts)
    return _is_one_of(_inner(columns, parts[0]), list(parts[1:]))


def _within(columns: Columns, parts: Parts) -> FloatArray:
    name, low, high, closed = parts
    values = _column(columns, (name,))
    low, high = (_limit(columns, end) for end in (low, high))
    inside = np.ones(len(values), dtype=bool)
    if low is not None:
        inside &= values >= low if closed == "left" else values > low
    if high is not None:
        inside &= values < high if closed == "left" else values <= high
    return inside.astype(np.float64)


def _limit(columns: Columns, end: Any) -> float | None:
    if end is None or isinstance(end, float | int):
        return end
    return day_of(end) if isinstance(end, str) else _unknown(columns, ())


def _unknown(columns: Columns, parts: Parts) -> float:
    raise TermError("a term with ? has no value until the constant is found")


# --- the rows before --------------------------------------------------------------------------------------------------


def _ordered(
    columns: Columns, parts: Parts, values_of: Callable[[FloatArray, NDArray[np.intp]], FloatArray]
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


# --- functions of numbers and dates -----------------------------------------------------------------------------------


def _month(days: FloatArray) -> FloatArray:
    months = np.floor(days).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return np.asarray(months % 12 + 1, dtype=np.float64)


def _weekday(days: FloatArray) -> FloatArray:
    return np.asarray((np.floor(days) + 3) % 7 + 1)  # 1 January 1970 was a Thursday; Monday is 1


def _floor(values: FloatArray) -> FloatArray:
    return np.asarray(np.floor(values + (DUST + RELATIVE_DUST * np.abs(values))))


def _power(columns: Columns, parts: Parts) -> FloatArray:
    return np.asarray(np.power(_inner(columns, parts[0]), _values(columns, parts[1:])[0]))


def _inner(columns: Columns, term: Any) -> FloatArray:
    """Return the values of a term in another one: NaN where it is infinite, so that 1 / (1 / 0) has no value either."""
    values = np.asarray(term.evaluate(columns), dtype=np.float64)
    return values if np.isfinite(values).all() else np.where(np.isfinite(values), values, np.nan)


def _values(columns: Columns, parts: Parts) -> list[Any]:
    """Return the values of terms, of numbers only one."""
    return [
        part if isinstance(part, float) else part.parts[0] if part.op == "number" else _inner(columns, part)
        for part in parts
    ]


def _folded(function: Callable[[Any, Any], Any]) -> Callable[[Columns, Parts], Any]:
    def evaluate(columns: Columns, parts: Parts) -> Any:
        first, *others = _values(columns, parts)
        for other in others:
            first = function(first, other)
        return np.broadcast_to(first, columns.n_rows)

    return evaluate


# --- how they are written ---------------------------------------------------------------------------------------------


_BOUND = ("column", "log", "exp", "sqrt", "abs", "max", "min", "ceil", "floor", "round", "?")
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, **dict.fromkeys(_BOUND, 4)}
"""How tightly an operation binds; others 3."""


def _bracketed(part: Any, least: int) -> str:
    """Write a part, in brackets where it binds less tightly than its place asks for."""
    return f"({part})" if _BINDS.get(part.op, 3) < least else str(part)


def begins_with_minus(term: Any) -> bool:
    """Return whether a term is a negative number, or a product whose first factor is one."""
    first = term.parts[0] if term.op == "*" else term
    return bool(first.op == "number" and first.parts[0] < 0)


def _infix(sign: str) -> Callable[[Parts], str]:
    """Write parts with a sign between them; sums in sums, and products in products, need no brackets."""
    least, same = _BINDS[sign], sign if sign in "+*" else ""

    def write(parts: Parts) -> str:
        text = ""
        for place, part in enumerate(parts):
            word = _bracketed(part, least + (place > 0 and part.op != same))
            minus = sign == "+" and begins_with_minus(part)
            text += f" {'-' if minus else sign} {word[minus:]}" if place else word
        return text

    return write


def _write_power(parts: Parts) -> str:
    base, exponent = (plain_number(part) if isinstance(part, float) else _bracketed(part, 4) for part in parts)
    return f"{base}^({exponent})" if exponent.startswith("-") else f"{base}^{exponent}"


def _write_round(parts: Parts) -> str:
    return f"round({parts[0]})" if parts[1] == 1 else f"round({parts[0]}, to={plain_number(parts[1])})"


def _write_level(parts: Parts) -> str:
    return f"({quoted(parts[0])} = {plain_level(parts[1])})"


def _write_one_of(parts: Parts) -> str:
    first, *values = parts
    if isinstance(first, str):
        return f"({quoted(first)} in ({', '.join(map(plain_level, values))}))"
    return f"({first} in ({', '.join(calendar_name(first.op, value) for value in values)}))"


def _write_equal(parts: Parts) -> str:
    first, second = parts
    return f"({first} = {calendar_name(first.op, second.parts[0]) if second.op == 'number' else second})"


def _write_within(parts: Parts) -> str:
    name, low, high, closed = parts
    above, below, under = (">=", "<", "<=") if closed == "left" else (">", "<=", "<")
    words = quoted(name)
    least, most = (plain_number(end) if isinstance(end, float | int) else str(end) for end in (low, high))
    if low is not None and high is not None:
        return f"({least} {under} {words} {below} {most})"
    return f"({words} {above} {least})" if high is None else f"({words} {below} {most})"


def _write_ordered(word: str) -> Callable[[Parts], str]:
    def write(parts: Parts) -> str:
        name, by, order = parts
        options = [f"by={quoted(by)}"] if by is not None else []
        options += [f"order={quoted(order)}"] if order is not None else []
        return f"{word}({', '.join([quoted(name), *options])})"

    return write


# --- the table --------------------------------------------------------------------------------------------------------


def _function(name: str, values: Callable[[FloatArray], FloatArray], sql: str, python: str, excel: str) -> Operation:
    """Return an operation on one term that is written as a function."""
    evaluate = lambda columns, parts: values(_inner(columns, parts[0]))  # noqa: E731
    return Operation(evaluate, lambda parts: f"{name}({parts[0]})", "t", (1, 1), sql, python, excel)


def _extreme(name: str, function: Callable[[Any, Any], Any]) -> Operation:
    said = {"python": f"{name}({{0}})", "excel": f"{name.upper()}({{0}})"}  # {0} is all of them
    return Operation(_folded(function), lambda parts: f"{name}({', '.join(map(str, parts))})", "tt+", (2, 9), **said)


def _comparison(sign: str, otherwise: str, function: Callable[[Any, Any], Any]) -> Operation:
    """Return an operation that is 1 or 0 where a comparison holds or not, and has no value where a side has none."""
    known = lambda first, second: np.where(np.isnan(first) | np.isnan(second), np.nan, function(first, second))  # noqa: E731
    python = "==" if sign == "=" else sign
    return Operation(
        _folded(known),
        _write_equal if sign == "=" else lambda parts: f"({parts[0]} {sign} {parts[1]})",
        "tt",
        sql=f"CASE WHEN {{0}} {sign} {{1}} THEN 1e0 WHEN {{0}} {otherwise} {{1}} THEN 0e0 END",
        python=f"float({{0}} {python} {{1}})",
        excel=f"IF({{0}}{sign}{{1}},1,0)",
    )


def _of_rows(name: str, values: Callable[[FloatArray, NDArray[np.intp]], FloatArray]) -> Operation:
    """Return an operation that looks at the rows before."""
    return Operation(lambda columns, parts: _ordered(columns, parts, values), _write_ordered(name), "s[s_][s_]")


_SQL_FLOOR = f"FLOOR({{0}} + ({DUST!r} + {RELATIVE_DUST!r} * ABS({{0}})))"
_EXCEL_FLOOR = f"INT({{0}}+({DUST:.0E}+{RELATIVE_DUST:.0E}*ABS({{0}})))"
_SQL_EXP = "CASE WHEN {0} < -708e0 THEN 0e0 WHEN {0} < 709.78e0 THEN EXP({0}) END"  # too large is an error in some
_SQL_POWER = (
    "CASE WHEN {0} > 0e0 OR ({0} = 0e0 AND {1} >= 0e0) OR ({0} < 0e0 AND {1} = FLOOR({1})) THEN POWER({0}, {1}) END"
)
_EXCEL_POWER = "IF(AND({0}=0,{1}=0),1,POWER({0},{1}))"

OPERATIONS: Mapping[str, Operation] = {
    "column": Operation(_column, lambda parts: quoted(parts[0]), "s"),
    "number": Operation(
        lambda columns, parts: np.full(columns.n_rows, parts[0]), lambda parts: plain_number(*parts), "n"
    ),
    "?": Operation(_unknown, lambda parts: "?", ""),
    "level": Operation(_level, _write_level, "ss"),
    "in": Operation(_one_of, _write_one_of, "sss+|tnn+"),
    "within": Operation(_within, _write_within, "s[snt_][snt_]s"),
    "=": _comparison("=", "<>", np.equal),
    ">=": _comparison(">=", "<", np.greater_equal),
    "<": _comparison("<", ">=", np.less),
    "+": Operation(_folded(np.add), _infix("+"), "tt+"),
    "-": Operation(_folded(np.subtract), _infix("-"), "tt"),
    "*": Operation(_folded(np.multiply), _infix("*"), "tt+"),
    "/": Operation(_folded(np.divide), _infix("/"), "tt", None, "({0} / NULLIF({1}, 0e0))", "({0} / {1})", "({0}/{1})"),
    "^": Operation(_power, _write_power, "t[tn]", None, _SQL_POWER, "math.pow({0}, {1})", _EXCEL_POWER),
    "min": _extreme("min", np.minimum),
    "max": _extreme("max", np.maximum),
    "log": _function("log", np.log, "CASE WHEN {0} > 0e0 THEN LN({0}) END", "math.log({0})", "LN({0})"),
    "exp": _function("exp", np.exp, _SQL_EXP, "math.exp({0})", "EXP({0})"),
    "sqrt": _function("sqrt", np.sqrt, "CASE WHEN {0} >= 0e0 THEN SQRT({0}) END", "math.sqrt({0})", "SQRT({0})"),
    "abs": _function("abs", np.abs, "ABS({0})", "abs({0})", "ABS({0})"),
    "floor": _function("floor", _floor, _SQL_FLOOR, "_floor({0})", _EXCEL_FLOOR),
    "ceil": Operation(None, lambda parts: f"ceil({parts[0]})", "t", (1, 1)),
    "round": Operation(None, _write_round, "tn", (1, 2)),
    "month": _function("month", _month, "", "float(_date({0}).month)", f"MONTH({{0}}+{EXCEL_EPOCH})"),
    "weekday": _function("weekday", _weekday, "", "float(_date({0}).isoweekday())", f"WEEKDAY({{0}}+{EXCEL_EPOCH},2)"),
    "lag": _of_rows("lag", _lagged),
    "cumsum": _of_rows("cumsum", _running),
}
"""All that terms can do."""
