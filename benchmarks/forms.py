"""Whether a rule that was found is written as its author wrote it: the same columns, and the same numbers.

A fixed judge, so that nobody reads formulas with a wish: it takes the text of a formula, leaves out names, levels and
the numbers that say nothing (0, 1, 100, small whole exponents), and compares what is left with the numbers of the
author, one for one. A rate of 19 % may stand as 0.19, 1.19, 19 or 119, a divisor as a factor, a threshold anywhere
between two values of its column. A rule with one number more or less is not the author's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from planted import Cut, Form

DIGITS = 1e-9
"""Relative difference of two numbers that are written alike: ten digits are printed."""

_SILENT = (0.0, 1.0, 100.0)
_NAME = r"`(?:[^`]|``)*`|[^\W\d]\w*(?:\.\w+)*\.?"
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_LEVELS = re.compile(r"\b(?:not )?in \([^()]*\)|(?<![<>])=\s*(?:'[^']*'|`[^`]*`|[^\s()]+(?: [^\s()<>=*/+]+)*)(?=\))")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_POWER = re.compile(r"\^\s*[23]\b(?!\.)")
_NUMBER = re.compile(r"(?<![\w`.])(?:\d+(?:,\d{3})+|\d+)?\.?\d+(?:e[-+]?\d+)?", re.IGNORECASE)


def numbers_of(text: str, columns: Sequence[str] = ()) -> list[float]:
    """Return the numbers that a formula needs.

    Examples
    --------
    >>> numbers_of("total = 0.5 * max(0, hours - 40) * rate + 100 * `price 2` - 7 * (code = 12)")
    [0.5, 40.0, 7.0]
    >>> numbers_of("fee = 30 * (date >= 1970-01-03) + 12 * km^2 / 1200")
    [30.0, 2.0, 12.0, 1200.0]
    """
    right = text.split(" = ", 1)[-1].split(" ≈ ", 1)[-1]
    for name in sorted(columns, key=len, reverse=True):
        right = right.replace(f"`{name}`", " name ")
    right = _LEVELS.sub(" ", right)
    right = _QUOTED.sub(" ", right)
    right = _DATE.sub(lambda day: f" {np.datetime64(day[0], 'D').astype(int)} ", right)
    right = _POWER.sub(" ", right)
    right = re.sub(_NAME, " name ", right)
    found = [float(number.replace(",", "")) for number in _NUMBER.findall(right)]
    return [number for number in found if number not in _SILENT]


def is_authors(form: Form, text: str, read: Sequence[str]) -> bool:
    """Return whether a formula that reads some columns is the author's form."""
    if set(read) != set(form.columns):
        return False
    found = numbers_of(text, read)
    if form.free_scale:
        return len(found) <= len(form.numbers) + 2
    return any(_match(found, wanted) for wanted in (form.numbers, *form.others))


def _match(found: Sequence[float], wanted: Sequence[float | Cut]) -> bool:
    """Return whether numbers are those that are wanted, in any order, each written in one of its ways."""
    from scipy.optimize import linear_sum_assignment

    if len(found) != len(wanted):
        return False
    if not found:
        return True
    cost = np.array([[0.0 if _alike(number, own) else 1.0 for own in wanted] for number in found])
    return bool(cost[linear_sum_assignment(cost)].sum() == 0)


def _alike(number: float, own: float | Cut) -> bool:
    if isinstance(own, Cut):
        return own.low <= number <= own.high
    rates = (own, own / 100, own * 100)
    ways = [*rates, *(1 + rate for rate in rates), *(1 - rate for rate in rates), *(100 + own, 100 - own)]
    ways += [1 / way for way in ways if way]
    return any(abs(abs(number) - abs(way)) <= DIGITS * abs(way) for way in ways)
