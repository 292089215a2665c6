"""Terms: what a coefficient multiplies. Columns, products, powers, functions, levels, conditions, lags; as data.

A term is a small tree of operations from a fixed list, :mod:`massart.rules.operations`, so that a model file or a
command line can hold one and nothing else can be run. :func:`massart.rules.language.parse_terms` reads terms from text,
``str`` writes them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from massart.rows import FloatArray
from massart.rules.columns import Columns
from massart.rules.literals import TermError, day_of, fraction_of, level_order, shown
from massart.rules.operations import OPERATIONS

Part: TypeAlias = "Term | str | float | None"

MOST_DEPTH, MOST_OPERATIONS = 20, 500
"""Operations inside each other that a term may have, and all of them."""

CONDITIONS = ("level", "in", "within", "=", ">=", "<")
"""Operations that are 1 or 0."""

_LARGEST = sys.float_info.max
_LONGEST_TEXT = 10_000
_LEAST_STEP, _LARGEST_STEP = 1e-99, 1e99  # that numbers are rounded to


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
    _hash: int = field(init=False, repr=False, compare=False)  # the search looks terms up a million times

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.op, self.parts)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Term], tuple[str, tuple[Part, ...]]]:
        return Term, (self.op, self.parts)  # hashes of texts differ from process to process

    def evaluate(self, columns: Columns) -> FloatArray:
        """Return its value in every row; infinite or NaN where it has none."""
        evaluate = OPERATIONS[self.op].evaluate
        with np.errstate(all="ignore"):
            values = in_others(self).evaluate(columns) if evaluate is None else evaluate(columns, self.parts)
            return np.asarray(values, dtype=np.float64)

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

    @property
    def _names_a_column(self) -> bool:
        return self.op in ("column", "level", "within") or (self.op == "in" and isinstance(self.parts[0], str))

    @property
    def n_unknown(self) -> int:
        """How many constants in it are to be found, written ``?``."""
        return int(self.op == "?") + sum(part.n_unknown for part in self.parts if isinstance(part, Term))

    def filled(self, constants: Iterable[float | str]) -> Term:
        """Return it with numbers for its unknown constants, dates for limits of dates, in the order of the text.

        Examples
        --------
        >>> print(hinge("km", UNKNOWN).filled([25]))
        max(0, km - 25)
        """
        return _filled(self, iter(constants))

    def columns(self) -> Iterator[str]:
        """Yield the columns that it reads, each as often as it does."""
        if self._names_a_column:
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
        elif not self._names_a_column:
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
    if op == "round" and not _LEAST_STEP <= float(str(parts[1])) <= _LARGEST_STEP:
        raise TermError(f"numbers cannot be rounded to {parts[1]:g}")
    if op == "^" and isinstance(parts[1], Term) and next(parts[1].columns(), None) is None and not parts[1].n_unknown:
        raise TermError("an exponent is a number, or a term that reads a column")
    if op == "within" and (parts[3] not in ("left", "right") or parts[1] is parts[2] is None):
        raise TermError("a condition has a limit, and is closed on its left or right")
    for end in parts[1:3] if op == "within" else ():
        if isinstance(end, str):
            day_of(end)
        if isinstance(end, Term) and end.op != "?":
            raise TermError("the limit of a condition is a number or a date")
    return Term(op, parts)


def _filled(term: Term, constants: Iterator[float | str]) -> Term:
    if not term.n_unknown:
        return term
    if term.op == "?":
        return Term("number", (next(constants),))
    parts = tuple(_filled(part, constants) if isinstance(part, Term) else part for part in term.parts)
    if term.op == "within":
        return Term(term.op, tuple(part.parts[0] if isinstance(part, Term) else part for part in parts))
    return power(*parts) if term.op == "^" else Term(term.op, parts)  # type: ignore[arg-type]


def _leaf(part: object) -> Part:
    if part is None:
        return None
    if isinstance(part, str) and len(part) <= _LONGEST_TEXT:
        return part
    if isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= _LARGEST:
        return float(part)
    raise TermError(f"a term cannot hold {shown(part)}")


def column(name: str) -> Term:
    """Return a column of numbers."""
    return Term("column", (name,))


def level(name: str, value: str) -> Term:
    """Return 1 where a column has a level, 0 elsewhere."""
    return Term("level", (name, value))


def level_set(name: str, *values: str) -> Term:
    """Return 1 where a column has one of some levels, 0 elsewhere; the order in which they are given does not matter.

    Examples
    --------
    >>> print(level_set("zone", "north", "far east"))
    (zone in (`far east`, north))
    """
    kept = sorted(set(values), key=level_order)
    return Term("in", (name, *kept)) if len(kept) > 1 else level(name, *kept)


def one_of(term: Term, *values: float) -> Term:
    """Return 1 where a term has one of some values, 0 elsewhere: weekdays, months.

    Examples
    --------
    >>> print(one_of(Term("weekday", (column("day"),)), 6, 7))
    (weekday(day) in (Sat, Sun))
    """
    kept = sorted({float(value) for value in values})
    return Term("in", (term, *kept)) if len(kept) > 1 else Term("=", (term, number(*kept)))


def within(name: str, low: float | str | Term | None, high: float | str | Term | None, closed: str = "right") -> Term:
    """Return 1 where low < column <= high, or low <= column < high if it is closed on the left; None is no limit.

    Limits of dates are texts such as 2024-05-01; `UNKNOWN` is one that is to be found.
    """
    return Term("within", (name, low, high, closed))


def number(value: float) -> Term:
    """Return a number; a negative zero is zero."""
    return Term("number", (float(value) + 0.0,))


def product(*factors: Term) -> Term:
    """Return a product; that of one factor is the factor."""
    flat = tuple(inner for factor in factors for inner in factor.factors)
    return flat[0] if len(flat) == 1 else Term("*", flat)


def total(*parts: Term) -> Term:
    """Return a sum; sums in it are taken apart."""
    return Term("+", tuple(inner for part in parts for inner in (part.parts if part.op == "+" else (part,))))


def power(base: Term, exponent: float | Term) -> Term:
    """Return a power; the exponent may be a term: ``(1 + rate / 100)^years``."""
    if isinstance(exponent, Term) and exponent.op != "number":
        return Term("^", (base, exponent))
    size = float(str(exponent.parts[0]) if isinstance(exponent, Term) else exponent)
    return base if size == 1 else Term("^", (base, size))


def rounded(term: Term, to: float = 1.0) -> Term:
    """Return a term rounded to multiples of a number, such as 0.05; halves away from zero."""
    if not _LEAST_STEP <= to <= _LARGEST_STEP:
        raise TermError(f"numbers cannot be rounded to {to:g}, only to something positive such as 0.05")
    return Term("round", (term, float(to)))


def in_others(term: Term) -> Term:
    """Return what a term is in terms of simpler operations; itself where there are none.

    Examples
    --------
    >>> print(in_others(Term("ceil", (column("x"),))), in_others(within("x", 1, 2)), sep=", ")
    0 - floor(-1 * x), (1 < x) * (2 >= x)
    """
    match term.op, term.parts:
        case "ceil", (Term() as inner,):
            return Term("-", (number(0), Term("floor", (product(number(-1), inner),))))
        case "round", (Term() as inner, float() as to):
            above, below = map(number, fraction_of(to).as_integer_ratio())
            steps = Term("/", (product(Term("abs", (inner,)), below), above))
            sign = Term("-", (number(1), product(number(2), Term("<", (inner, number(0))))))
            return Term("/", (product(Term("floor", (total(steps, number(0.5)),)), above, sign), below))
        case "in", (Term() as inner, *values):
            return total(*(Term("=", (inner, number(float(str(value))))) for value in values))
        case "within", (str() as name, low, high, closed):
            least, most = (
                end if end is None or isinstance(end, Term) else number(_day_or_number(end)) for end in (low, high)
            )
            value, found = column(name), []
            if least is not None:
                found.append(Term(">=", (value, least)) if closed == "left" else Term("<", (least, value)))
            if most is not None:
                found.append(Term("<", (value, most)) if closed == "left" else Term(">=", (most, value)))
            return product(*found)
    return term


def _day_or_number(end: str | float) -> float:
    return day_of(end) if isinstance(end, str) else end


UNKNOWN = Term("?", ())
"""A constant that is to be found."""


def hinge(name: str, threshold: float | Term) -> Term:
    """Return max(0, column - threshold): what exceeds a threshold."""
    end = threshold if isinstance(threshold, Term) else number(threshold)
    return Term("max", (number(0), Term("-", (column(name), end))))
