"""How columns become numbers: one entry for the target and one for each input, in a form that JSON can hold.

An encoding is made from one table and read back for others, possibly from a file of unknown origin, so
`Encoding.from_json` checks everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeAlias

from massart.tables.errors import TableError, quote
from massart.tables.levels import folded
from massart.tables.numbers import LONGEST_UNIT, ORDERS, Order

MOST_INPUTS = 100_000
MOST_LEVELS = 200
_LONGEST_TEXT = 10_000


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table, and the columns of X that it becomes: one of its own, by default."""

    kind: ClassVar[str]

    column: str

    @property
    def terms(self) -> tuple[tuple[str, str | None], ...]:
        """The column and, for a category, the level behind each of its columns of X."""
        return ((self.column, None),)

    def to_json(self) -> dict[str, object]:
        """Return it as plain values."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Number(_Column):
    """A column of numbers."""

    kind = "number"

    decimal: str = "."  # the decimal mark of those that are text
    unit: str | None = None  # what stands behind those that are text; a number with another unit behind it is a fault
    blank_is_zero: bool = False  # whether a cell without a value means 0

    def to_json(self) -> dict[str, object]:
        """Return it as plain values; what a blank means only where it means 0."""
        found = asdict(self)
        return {"kind": self.kind, **{name: found[name] for name in found if name != "blank_is_zero" or found[name]}}


@dataclass(frozen=True, slots=True)
class Flag(_Column):
    """A column of yes and no, as 1 and 0."""

    kind = "flag"


@dataclass(frozen=True, slots=True)
class Category(_Column):
    """A column of text with few levels: a column of X for each, 1 where a row has it."""

    kind = "category"

    levels: tuple[str, ...]  # those that have a column
    base: str | None  # the level that has none, for which all of them are 0

    @property
    def terms(self) -> tuple[tuple[str, str | None], ...]:
        """Those of each level but the base."""
        return tuple((self.column, level) for level in self.levels)

    @property
    def all_levels(self) -> tuple[str, ...]:
        """The base, if there is one, and then the others."""
        return self.levels if self.base is None else (self.base, *self.levels)

    @property
    def alike(self) -> dict[str, str]:
        """The levels by their texts without capitals and extra spaces; empty where two of them are then the same."""
        found = {folded(level): level for level in self.all_levels}
        return found if len(found) == len(self.all_levels) else {}

    def to_json(self) -> dict[str, object]:
        """Return it as plain values."""
        return {"kind": self.kind, "column": self.column, "levels": list(self.levels), "base": self.base}


@dataclass(frozen=True, slots=True)
class Date(_Column):
    """A column of dates, as days since 1970-01-01; `order` is that of day, month and year in those that are text."""

    kind = "date"

    order: Order = "ymd"


Input: TypeAlias = Number | Flag | Category | Date
Target: TypeAlias = Number | Flag | Date


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a table becomes X and y: an entry for the target, and one for each input."""

    target: Target
    inputs: tuple[Input, ...]

    @property
    def has_date_terms(self) -> bool:
        """Whether dates have columns of X: where the target is a date, and where there are no other inputs.

        Elsewhere the days since 1970 say nothing by themselves.
        """
        return isinstance(self.target, Date) or all(isinstance(entry, Date) for entry in self.inputs)

    @property
    def terms(self) -> tuple[tuple[str, str | None], ...]:
        """The column and, for a category, the level behind each column of X."""
        with_dates = self.has_date_terms
        return tuple(term for entry in self.inputs if with_dates or not isinstance(entry, Date) for term in entry.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each column of X: "hours", "region = north"."""
        return tuple(column if level is None else f"{column} = {level}" for column, level in self.terms)

    def to_json(self) -> dict[str, object]:
        """Return it as dicts, lists and texts."""
        return {"target": self.target.to_json(), "inputs": [entry.to_json() for entry in self.inputs]}

    @classmethod
    def from_json(cls, content: object) -> Encoding:
        """Return the encoding that `to_json` wrote.

        Raises
        ------
        TableError
            Naming what is wrong.
        """
        given = _checked(content, Mapping, "the encoding", {"target", "inputs"})
        target = _entry(given["target"], "target")
        if isinstance(target, Category):
            raise TableError("encoding: target must be a number, a flag or a date, not a category")
        listed = _checked(given["inputs"], list, "inputs", most=MOST_INPUTS)
        inputs = tuple(_entry(entry, f"inputs[{place}]") for place, entry in enumerate(listed))
        columns = [entry.column for entry in inputs]
        if len(set(columns)) < len(columns):
            raise TableError("encoding: two inputs read the same column")
        if target.column in columns:
            raise TableError(f"encoding: the target {quote(target.column)} is among the inputs")
        return cls(target, inputs)


def _entry(content: object, where: str) -> Input:
    kind = _checked(content, Mapping, where).get("kind")
    entry = next((one for one in (Number, Flag, Category, Date) if one.kind == kind), None)
    if entry is None:
        raise TableError(f'encoding: {where}.kind must be "number", "flag", "category" or "date", got {quote(kind)}')
    names = [field.name for field in fields(entry)]
    said: dict[str, Any] = {"blank_is_zero": False} if entry is Number else {}
    said |= _checked(content, Mapping, where)
    given = _checked(said, Mapping, where, {"kind", *names})
    values = {name: _value(given[name], name, f"{where}.{name}") for name in names}
    for name, known in (("decimal", (".", ",")), ("order", ORDERS)):
        if values.get(name, known[0]) not in known:
            raise TableError(f"encoding: {where}.{name} must be {' or '.join(map(quote, known))}")
    if values.get("unit") == "":
        raise TableError(f"encoding: {where}.unit must be null or a unit")
    levels = values.get("levels", ())
    if len(set(levels)) < len(levels) or values.get("base") in levels:
        raise TableError(f"encoding: {where} has the same level twice")
    return entry(**values)


def _value(content: object, name: str, where: str) -> Any:
    """Return the value of a field: texts, null where that means that there is none."""
    if name == "levels":
        levels = _checked(content, list, where, most=MOST_LEVELS)
        return tuple(_checked(level, str, f"{where}[{k}]", most=_LONGEST_TEXT) for k, level in enumerate(levels))
    if content is None and name in ("unit", "base"):
        return None
    if name == "blank_is_zero":
        return _checked(content, bool, where)
    return _checked(content, str, where, most=LONGEST_UNIT if name == "unit" else _LONGEST_TEXT)


_KINDS: dict[type, str] = {Mapping: "a JSON object", list: "a list", str: "a text", bool: "true or false"}


def _checked(content: object, kind: type, where: str, keys: set[str] | None = None, most: int | None = None) -> Any:
    """Return a value from a file of unknown origin; TableError unless it has the type, keys and length expected."""
    found: Any = content
    if not isinstance(content, kind):
        raise TableError(f"encoding: {where} must be {_KINDS[kind]}, got {type(content).__name__}")
    if keys is not None and set(found) != keys:
        odd = sorted(map(str, set(found) ^ keys))
        verb = "lacks" if odd[0] in keys else "has an unknown entry"
        raise TableError(f"encoding: {where} {verb} {quote(odd[0])}")
    if most is not None and len(found) > most:
        unit = "characters" if kind is str else "entries"
        raise TableError(f"encoding: {where} has {len(found):,} {unit}, more than {most:,}")
    return found
