"""Libraries of terms, the simplest first. They are made of X alone, before any label is looked at.

Each is small: the plain columns, and all that two, three or four columns make with each other. A rule that joins few
columns is in one of them, and a small library needs few rows and milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from massart.rows import FloatArray
from massart.rules import terms as t
from massart.rules.columns import Columns
from massart.rules.terms import Term

MOST_LIBRARIES = 600
"""Libraries that are made; simpler ones come first."""

PAIRS = "products of two"
MOST_LEVELS = 12
"""Different values of a column of whole numbers that may be codes, and levels of a category that has rates."""

_MOST_RATES = 120  # terms of a library of rates
_LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True)
class Library:
    """Terms among which a rule is looked for, the plain columns first, and what they add to these, in words."""

    name: str
    terms: tuple[Term, ...]


def libraries(columns: Columns, plain: Sequence[Term]) -> list[Library]:
    """Return the libraries beyond the plain columns and levels."""
    return list(islice(_libraries(columns, tuple(plain)), MOST_LIBRARIES))


def _libraries(columns: Columns, plain: tuple[Term, ...]) -> Iterator[Library]:
    spans = days_between(columns)
    numbers = [t.column(name) for name in columns.numbers if name not in columns.dates] + list(spans)
    groups = categories(columns)
    basic = (*plain, *spans)
    if spans:
        yield Library("days between dates", basic)
    for levels in groups:
        yield from _rates(basic, levels, [one for one in numbers if _differ(one, levels[0])])
    for pair in combinations(numbers, 2):
        yield Library(PAIRS, (*basic, *_of_two(*pair)))
    for pair in combinations(numbers, 2):
        for levels in groups:
            if all(_differ(one, levels[0]) for one in pair):
                both = t.product(*pair)
                by_level = (t.product(one, level) for one in (both, *pair) for level in levels)
                yield Library("products by category", (*basic, *levels, both, *by_level))
    for triple in combinations(numbers, 3):
        yield Library("products and ratios of three", (*basic, *_of_three(*triple)))
    for levels in calendar(columns):
        yield from _rates(basic, levels, numbers, "by month or weekday")
    if columns.ordered:
        yield from _running(columns, basic)
    for four in combinations(numbers, 4):
        products = [t.product(*chosen) for size in (2, 3, 4) for chosen in combinations(four, size)]
        # A tax or discount is on all that a formula sums up.
        products += [t.product(one, rate) for rate in four if _is_rate(rate, columns) for one in numbers if one != rate]
        yield Library("products of four", (*basic, *products))


def _rates(
    basic: tuple[Term, ...], levels: tuple[Term, ...], numbers: Sequence[Term], words: str = "by category"
) -> Iterator[Library]:
    """Yield one library for each number times the levels, and one of all numbers unless it is too large."""
    parts = [[one] for one in numbers]
    if 1 < len(numbers) and len(numbers) * len(levels) <= _MOST_RATES:
        parts.append(list(numbers))
    for part in parts:
        yield Library(f"rates {words}", (*basic, *levels, *(t.product(one, level) for one in part for level in levels)))


def _of_two(a: Term, b: Term) -> tuple[Term, ...]:
    ratios = (Term("/", (a, b)), Term("/", (b, a)), Term("/", (a, t.power(b, 2))), Term("/", (b, t.power(a, 2))))
    return (t.product(a, b), t.power(a, 2), t.power(b, 2), *ratios)


def _of_three(a: Term, b: Term, c: Term) -> tuple[Term, ...]:
    pairs = [t.product(*pair) for pair in combinations((a, b, c), 2)]
    squares = [t.product(t.power(one, 2), other) for one in (a, b, c) for other in (a, b, c) if one != other]
    ratios = [Term("/", (t.product(x, y), z)) for x, y, z in ((a, b, c), (a, c, b), (b, c, a))]
    ratios += [Term("/", (x, t.product(y, z))) for x, y, z in ((c, a, b), (b, a, c), (a, b, c))]
    return (*pairs, t.product(a, b, c), *squares, *ratios)


def categories(columns: Columns) -> list[tuple[Term, ...]]:
    """Return the levels of what may be a category: texts, and numbers with few whole values."""
    found = [
        tuple(t.level(name, value) for value in levels.names)
        for name, levels in columns.levels.items()
        if len(levels.names) <= MOST_LEVELS
    ]
    for name, values in columns.numbers.items():
        few = None if name in columns.dates else _few_values(values)
        if few is not None:
            found.append(tuple(t.level(name, t.plain_number(value)) for value in few))
    return found


def _few_values(values: FloatArray) -> FloatArray | None:
    if len(np.unique(values[:_LOOKED_AT])) > MOST_LEVELS:
        return None
    distinct = np.unique(values)
    whole = bool((distinct == np.round(distinct)).all())
    return distinct if whole and 2 < len(distinct) <= MOST_LEVELS else None


def _is_rate(term: Term, columns: Columns) -> bool:
    """Whether a column may be a tax or a discount: few different values, none of them negative."""
    values = term.evaluate(columns)[:_LOOKED_AT]
    return bool(values.min() >= 0 and values.max() <= 100 and len(np.unique(values)) <= MOST_LEVELS)


def calendar(columns: Columns) -> Iterator[tuple[Term, ...]]:
    """Yield months and weekdays of each date, as conditions."""
    for name in sorted(columns.dates):
        for part in ("month", "weekday"):
            term = Term(part, (t.column(name),))
            values = np.unique(term.evaluate(columns))
            if len(values) > 1:
                yield tuple(Term("=", (term, t.number(value))) for value in values)


def days_between(columns: Columns) -> tuple[Term, ...]:
    """Return the differences of all pairs of dates, the later date first."""
    pairs = (sorted(pair, key=lambda name: columns.numbers[name].mean()) for pair in combinations(columns.dates, 2))
    return tuple(Term("-", (t.column(late), t.column(early))) for early, late in sorted(pairs))


def _running(columns: Columns, basic: tuple[Term, ...]) -> Iterator[Library]:
    """Yield running sums, in the order of the file and within each category."""
    numbers = [name for name in columns.numbers if name not in columns.dates]
    yield Library("running sums", (*basic, *(Term("cumsum", (name, None, None)) for name in numbers)))
    for by, levels in columns.levels.items():
        opening = (t.level(by, value) for value in levels.names)
        sums = (Term("cumsum", (name, by, None)) for name in numbers)
        yield Library(f"running sums by {by}", (*basic, *opening, *sums))


def _differ(one: Term, level: Term) -> bool:
    return not set(one.columns()) & set(level.columns())
