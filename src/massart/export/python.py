"""Rules as a Python module of the standard library alone: ``expected``, ``agrees`` and ``wrong`` of a row.

Rows are judged as massart does: by a sum of floats, and where that is in doubt exactly, by fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from massart.export.rule import SIZE, ExportedRule, LevelRate, Writer
from massart.rules import DUST, RELATIVE_DUST
from massart.tables import NO, YES, Category, Date, Flag, Input, Number

_MAIN = '''
def _read(row):
    """Return the given value and what the rule adds up, coefficients and values; None where a row is not judged."""
{reading}
    if {gaps}:
        return None
    try:
        terms = [
{terms}
        ]
    except (ArithmeticError, ValueError):
        return None
    return {given}, terms


def expected(row):
    """Return what the rule gives for a row, a mapping of names of columns to values; None where it is not judged."""
    found = _read({{**row, {target!r}: {some}}})
    return None if found is None else _limited(math.fsum(coef * value for coef, value in found[1]))


def agrees(row):
    """Return whether a row agrees with the rule; None where it is not judged."""
    return _within(row, 0.0)


def wrong(row):
    """Return whether a row {but}; None where it is not judged."""
    right = _within(row, {unit})
    return None if right is None else not right


def _within(row, more):
    found = _read(row)
    if found is None:
        return None
    given, terms = found
    size = abs(given) + math.fsum(abs(coef * value) for coef, value in terms)
    if not math.isfinite(size):
        return None
    allowed = {allowed} + more
    off = abs(given - _limited(math.fsum(coef * value for coef, value in terms)))
    if abs(off - allowed) <= {doubt} * size:  # what floats round decides, so it is computed exactly
        exact = sum((Fraction(coef) * Fraction(value) for coef, value in terms), Fraction())
        off = abs(Fraction(given) - _limited(exact))
    return off <= allowed


def _limited(z):
{limited}
'''

_NUMBER = '''
def _number(value):
    """Return a number; NaN where there is none."""
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        return math.nan
    number = float(value)
    return number if math.isfinite(number) else math.nan
'''
_NUMBER_OR_ZERO = '''
def _number_or_zero(value):
    """Return a number; 0 where there is none."""
    is_blank = value is None or value != value or (isinstance(value, str) and not value.strip())
    return 0.0 if is_blank else _number(value)
'''
_FLAG = '''
def _flag(value):
    """Return 1 for yes and 0 for no; NaN where there is neither."""
    if value is None or value != value:
        return math.nan
    return {words}.get(str(value).strip().lower(), math.nan)
'''
_DAYS = '''
def _days(value):
    """Return a date, or a text such as 2024-05-01, as days since 1970-01-01; NaN where there is none."""
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        return math.nan
    moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    if isinstance(moment, datetime) and moment != datetime.combine(moment, time(), moment.tzinfo):
        return math.nan
    return float(moment.toordinal() - 719163)


def _date(days):
    return date.fromordinal(int(days) + 719163)
'''
_LEVEL = '''
def _level(value, levels, alike):
    """Return the level that a text means, `alike` by capitals and blanks if need be; None where it means none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None or value != value else str(value).strip()
    return text if text in levels else alike.get(" ".join(text.casefold().split()))
'''

_FLOOR = f'''
def _floor(value):
    """Return the whole number below; the next one where only what floats are off is missing."""
    return float(math.floor(value + ({DUST!r} + {RELATIVE_DUST!r} * abs(value))))
'''


def module(rule: ExportedRule) -> str:
    """Return the text of the module."""
    python = Python(rule)
    terms = "\n".join(f"            ({rate}, {term})," for rate, term in python.terms())
    readers = {_reader(entry) for entry in python.entries.values()}
    tools = (
        (_NUMBER, readers & {"_number", "_number_or_zero"}),
        (_NUMBER_OR_ZERO, "_number_or_zero" in readers),
        (_FLAG.format(words=_WORDS), "_flag" in readers),
        (_DAYS, "_days" in readers),
        (_LEVEL, "_level" in readers),
        (_FLOOR, "_floor(" in terms),
    )
    dates = "from datetime import date, datetime, time\n" if "_days" in readers else ""
    imports = f"import math\n{dates}from fractions import Fraction\n"
    main = _MAIN.format(
        reading="\n".join(python.reading()),
        gaps=" or ".join(python.gaps()),
        terms=terms,
        given=python.given,
        target=rule.target.column,
        some=repr("1970-01-01") if isinstance(rule.target, Date) else 0,
        but="is wrong, and not merely off by one in the last place" if rule.unit else "does not agree with the rule",
        unit=rule.unit,
        allowed=python.of(rule.allowed(), SIZE, "size"),
        doubt=repr(rule.doubt),
        limited="\n".join(_limited(rule)),
    )
    heading = "".join(f"# {line}\n" for line in rule.heading)
    return "\n".join([heading + "\n" + imports, *(text for text, is_used in tools if is_used), main])


def _limited(rule: ExportedRule) -> Iterator[str]:
    """Yield the lines of a function that works for floats and for fractions alike."""
    link = rule.link
    inside = "z"
    if link.lower > float("-inf"):
        inside = f"max({inside}, {link.lower!r})"
    if link.upper < float("inf"):
        inside = f"min({inside}, {link.upper!r})"
    if link.slope and rule.limited:
        yield f"    inside = type(z)({inside})"
        yield f"    return inside + type(z)({link.slope!r}) * (z - inside)"
    else:
        yield f"    return {inside}"


def _reader(entry: Input) -> str:
    match entry:
        case Category():
            return "_level"
        case Date():
            return "_days"
        case Flag():
            return "_flag"
        case Number(blank_is_zero=True):
            return "_number_or_zero"
    return "_number"


_WORDS = {**dict.fromkeys((*YES, "1", "1.0"), 1.0), **dict.fromkeys((*NO, "0", "0.0"), 0.0)}


class Python(Writer):
    """Terms as Python."""

    name = "python"

    def __init__(self, rule: ExportedRule) -> None:
        super().__init__(rule)
        self.entries = {rule.target.column: rule.target, **rule.inputs}
        self._places = {column: f"x{k}" for k, column in enumerate(self.entries)}

    def reading(self) -> Iterator[str]:
        """Yield the lines that read the columns."""
        for column, entry in self.entries.items():
            known = f", {entry.all_levels!r}, {entry.alike!r}" if isinstance(entry, Category) else ""
            yield f"    {self._places[column]} = {_reader(entry)}(row[{column!r}]{known})"

    def gaps(self) -> Iterator[str]:
        """Yield what holds of rows that are not judged."""
        for column, entry in self.entries.items():
            place = self._places[column]
            yield f"{place} is None" if isinstance(entry, Category) else f"math.isnan({place})"

    def terms(self) -> Iterator[tuple[str, str]]:
        """Yield coefficients and what they multiply."""
        for piece in self.rule.pieces:
            yield self.rate(piece), "1.0" if piece.term is None else self.term(piece.term)

    def _number(self, rate: LevelRate) -> str:
        return repr(float(rate.coef))

    def _column(self, name: str) -> str:
        return self._places[name]

    def _chosen(self, category: str, rates: Sequence[LevelRate]) -> str:
        listed = {rate.level: float(rate.coef) for rate in rates}
        return f"{listed!r}.get({self._places[category]}, 0.0)"
