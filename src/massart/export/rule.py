r"""A saved model as what every target has to say: a sum of pieces, limits, and how far a row may be off.

A row is wrong if

.. math::
    |y - f(z)| > u + h + a(s), \qquad z = \sum_k p_k, \qquad s = |y| + \sum_k |p_k| ,

with the half-width :math:`h + a(s)` of :mod:`massart.rows`, and the unit u of the last place where a row that is
off by it is not called wrong. A piece :math:`p_k` is a coefficient times a term; terms that differ in the level of a
category alone are one piece, whose coefficient depends on it. What the rule gives no weight is not read, so that gaps
there cost no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version

import numpy as np

from massart.audit.contract import MAX_UNJUDGED
from massart.audit.model_file import SavedModel
from massart.rows import Link, Mark
from massart.rows.agreement import doubt_of
from massart.rules.formula import Summand
from massart.rules.terms import Term, product
from massart.tables import Category, Input, Target


class ExportError(ValueError):
    """A rule that a target cannot say; the message says which part of it."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A coefficient: as a float, as a fraction, if it is one, and the level that it is for, if it is for one."""

    coef: float
    exact: Fraction | None
    level: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A coefficient times a term."""

    rates: tuple[Rate, ...]  # one, or one for each level of a category; others have the coefficient 0
    category: str | None  # the column that tells which of them
    term: Term | None  # None for 1


@dataclass(frozen=True, slots=True)
class Rule:
    """What is exported."""

    text: str  # the formula in words, on one line
    target: Target
    inputs: Mapping[str, Input]  # the columns that are read, by name
    pieces: tuple[Piece, ...]
    link: Link
    slack: float  # h
    relative: float  # a(s) for each unit of size
    grid: tuple[float, float] | None  # where labels are on a grid, a(s) is at most max(grid[0], grid[1] s)
    unit: float  # u; 0 where rows are wrong as soon as they do not agree
    doubt: float  # by how much of its size a sum of floats may be off
    max_unjudged: float  # the largest share of rows that are not judged of a table that passes

    @property
    def heading(self) -> tuple[str, ...]:
        """Who wrote this, what is judged, and the rule: lines for a comment.

        Python would take the name of a column in one of the first two for the encoding of the file.
        """
        judged = "Rows with a gap in what the rule reads, or with a level that it does not know, are not judged."
        return (f"Written by massart {version('massart')}.", judged, self.text)

    @property
    def is_limited(self) -> bool:
        """Whether a table of which nothing is judged does not pass."""
        return self.max_unjudged < 1

    @property
    def limit(self) -> str:
        """What is asked of the rows that are not judged."""
        return f"at most {100 * self.max_unjudged:.4g} % of the rows are not judged"

    @property
    def described(self) -> str:
        """The rule, and what is asked of the rows that are not judged, if anything is."""
        return f"{self.text}; {self.limit}" if self.is_limited else self.text

    @property
    def limited(self) -> bool:
        """Whether the link is another one than the identity."""
        return self.link.lower > float("-inf") or self.link.upper < float("inf")


def rule_of(model: SavedModel, max_unjudged: float = MAX_UNJUDGED) -> Rule:
    """Return what a saved model says."""
    if not 0 <= max_unjudged <= 1:
        raise ExportError(f"max_unjudged must be a share between 0 and 1, got {max_unjudged!r}")
    model = model.weighed
    formula, agreement = model.formula, model.agreement
    entries = {entry.column: entry for entry in model.encoding.inputs}
    slope = max(1.0, formula.link.slope)
    slack = float(agreement.half_widths(np.zeros(1), formula.coef)[0])  # what a row of size 0 is allowed, every row is
    unit, tight = agreement.unit, agreement.tight
    return Rule(
        one_line(f"{formula}, {agreement}"),
        model.encoding.target,
        entries,
        tuple(_pieces([summand for summand in formula.all_terms if summand.coef], entries)),
        formula.link,
        slack * slope,
        agreement.relative * slope,
        None if unit is None or tight >= agreement.relative else (unit / 4 * slope, tight * slope),
        Mark(formula.coef, agreement, formula.link).unit or 0.0,
        doubt_of(formula.coef) * slope,
        max_unjudged,
    )


def _pieces(used: list[Summand], entries: Mapping[str, Input]) -> Iterator[Piece]:
    """Yield the summands, with those that are rates by category together, in the order of the first."""
    groups: dict[tuple[str | None, Term | None], list[Rate]] = {}
    for summand in used:
        category, level, rest = None, "", summand.term
        factors = () if summand.term is None else summand.term.factors
        known = (f for f in factors if f.op == "level" and isinstance(entries[str(f.parts[0])], Category))
        if (first := next(known, None)) is not None:
            others = [factor for factor in factors if factor is not first]
            category, level, rest = str(first.parts[0]), str(first.parts[1]), product(*others) if others else None
        groups.setdefault((category, rest), []).append(Rate(summand.coef, summand.exact, level))
    for (category, rest), rates in groups.items():
        yield Piece(tuple(rates), category, rest)


def one_line(text: str) -> str:
    """Return a text as one line of letters that print, for a comment."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
