"""Names, numbers and dates as they stand in a term, and the error of a term that cannot be read."""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction

CALENDAR = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
}
"""Functions of a date, and what their values 1, 2, ... are called; three letters are enough."""

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_PLAIN_LEVEL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH = date(1970, 1, 1).toordinal()
_LONGEST_SHOWN = 60
_LARGEST_PART = 10**6  # with larger ones a fraction is near any float


class TermError(ValueError):
    """A term that cannot be read or has no value; the message says which one and why."""


def shown(content: object) -> str:
    """Return something that is wrong on one line that is not longer than a line should be."""
    if not isinstance(content, str | int | float | None):
        return f"a {type(content).__name__}"
    text = content if isinstance(content, str) else str(content)
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


def quoted(name: str) -> str:
    """Return a name as it stands in a formula: in backquotes unless it is a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def plain_number(value: float) -> str:
    """Return a number as people write it, with as many digits as it needs: 200, 0.5, 1e-07."""
    text = f"{value:.15g}"
    return text if float(text) == value else repr(float(value))


def plain_level(value: str) -> str:
    """Return a level as it stands in a condition: numbers and dates as they are, other texts as names."""
    plain = is_day(value) or (_PLAIN_LEVEL.fullmatch(value) and plain_number(float(value)) == value)
    return value if plain else quoted(value)


def level_order(value: str) -> tuple[bool, float, str]:
    """Return a key that sorts levels: numbers by their size, then other texts."""
    is_number = _PLAIN_LEVEL.fullmatch(value) is not None
    return not is_number, float(value) if is_number else 0.0, value


def calendar_name(function: str, value: float) -> str:
    """Return what a weekday or month is called, or the number itself where there is no such day.

    Examples
    --------
    >>> calendar_name("weekday", 6), calendar_name("month", 12), calendar_name("month", 13)
    ('Sat', 'Dec', '13')
    """
    names = CALENDAR.get(function, ())
    return names[int(value) - 1][:3] if value in range(1, len(names) + 1) else plain_number(value)


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
    raise TermError(f"{shown(text)} is not a date such as 2024-05-01")


def fraction_of(value: float) -> Fraction:
    """Return the fraction that a person means by a number: 1/20 for 0.05, 1/3 for 0.3333333333333333.

    Examples
    --------
    >>> fraction_of(0.05), fraction_of(2.5), fraction_of(1 / 3)
    (Fraction(1, 20), Fraction(5, 2), Fraction(1, 3))
    """
    short = Fraction(value).limit_denominator(_LARGEST_PART)
    return short if float(short) == value else Fraction(plain_number(value))
