"""Rates by level as a table: ``gross = rate[country] * net`` with a rate for each country, the base level included.

A rule has one level of each category without a term, or none; which one is the choice of whoever wrote it, and the
coefficients of the others are differences from it. A reader wants the rates themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from massart.rules.formula import SHOWN_DIGITS, Formula, Summand, write_number
from massart.rules.literals import quoted
from massart.rules.terms import Term, product


@dataclass(frozen=True, slots=True)
class Rate:
    """What one level has.

    Attributes
    ----------
    level : str
    value : float
    exact : Fraction or None
        Where the rows support exact values.
    """

    level: str
    value: float
    exact: Fraction | None

    @property
    def number(self) -> str:
        """The rate as text."""
        return write_number(self.value, self.exact, SHOWN_DIGITS)


@dataclass(frozen=True, slots=True)
class Rates:
    """A part of a rule that is a rate by level times something.

    Attributes
    ----------
    by : str
        The column with the levels.
    of : Term
        What is multiplied.
    rates : tuple of Rate
        One for each level, in the order of the levels.
    places : tuple of int
        The terms of the formula that it stands for.
    base : tuple of int
        Those of them that all levels have.
    is_only : bool
        Whether the levels of this column multiply nothing else.
    """

    by: str
    of: Term
    rates: tuple[Rate, ...]
    places: tuple[int, ...]
    base: tuple[int, ...]
    is_only: bool = True

    @property
    def text(self) -> str:
        """The part as it is written in the formula."""
        return f"{self.name} * ({self.of})" if self.of.op in ("+", "-") else f"{self.name} * {self.of}"

    @property
    def name(self) -> str:
        """What the table is called."""
        return f"rate[{quoted(self.by)}]" if self.is_only else f"rate[{quoted(self.by)}, {self.of}]"

    def counted(self, usage: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return how many rows use it and how many of these agree, given both for each term of the formula."""
        every = [place for place in self.places if place in self.base] or self.places
        return sum(usage[place][0] for place in every), sum(usage[place][1] for place in every)

    @property
    def listed(self) -> tuple[tuple[str, str], ...]:
        """Levels with their rate; those that have the same one stand together."""
        found: dict[str, list[str]] = {}
        for rate in self.rates:
            found.setdefault(rate.number, []).append(rate.level)
        return tuple((", ".join(levels), number) for number, levels in found.items())


def rates_by_level(formula: Formula, levels: Mapping[str, Sequence[str]]) -> tuple[Rates, ...]:
    """Return the rates by level in a rule, given the levels of its categories.

    A category that multiplies what another one multiplies has none: its rates are what the other one leaves. Nor has
    one with a level for which there is no rate: other rules hold there, and are written as they are.

    Examples
    --------
    >>> from massart.rules.formula import Link
    >>> from massart.rules.terms import column, level
    >>> net, dutch = column("net"), product(column("net"), level("country", "NL"))
    >>> of = [Summand(net, 1.19, Fraction(119, 100), 0.0, True), Summand(dutch, 0.02, Fraction(1, 50), 0.0, True)]
    >>> formula = Formula("gross", tuple(of), None, Link(), noisy=False)
    >>> [rates] = rates_by_level(formula, {"country": ("DE", "NL")})
    >>> print(rates.text, rates.listed)
    rate[country] * net (('DE', '1.19'), ('NL', '1.21'))
    """
    if formula.noisy:
        return ()
    groups: dict[Term, list[int]] = {}
    for place, summand in enumerate(formula.terms):
        if summand.term is not None and summand.coef:
            rest = [factor for factor in summand.term.factors if not _selects(factor)]
            if rest:
                groups.setdefault(product(*rest), []).append(place)
    found = []
    for of, places in groups.items():
        conditions = [[f for f in _factors(formula.terms[place]) if _selects(f)] for place in places]
        columns = {str(f.parts[0]) for each in conditions for f in each}
        is_one = len(columns) == 1 and all(len(each) <= 1 for each in conditions)
        if not is_one or not all(formula.terms[place].determined for place in places):
            continue
        (by,) = columns
        named = [str(name) for each in conditions for f in each for name in f.parts[1:]]
        if not set(named) <= set(levels.get(by, ())):
            continue
        rates = []
        for level in levels[by]:
            own = [
                formula.terms[place]
                for place, each in zip(places, conditions, strict=True)
                if all(level in condition.parts[1:] for condition in each)
            ]
            known = [term.exact for term in own if term.exact is not None]
            exact = sum(known, Fraction(0)) if len(known) == len(own) else None
            rates.append(Rate(level, sum(term.coef for term in own) if exact is None else float(exact), exact))
        base = tuple(place for place, each in zip(places, conditions, strict=True) if not each)
        if all(rate.value for rate in rates):
            found.append(Rates(by, of, tuple(rates), tuple(places), base))
    columns_of = [rates.by for rates in found]
    return tuple(replace(rates, is_only=columns_of.count(rates.by) == 1) for rates in found)


def text_by_level(formula: Formula, rates: Sequence[Rates], most_terms: int | None = None) -> str:
    """Write a formula in one line, with rates by level by their names."""
    if not rates:
        return formula.text(most_terms)
    taken = {place for each in rates for place in each.places}
    rest = replace(formula, terms=tuple(term for place, term in enumerate(formula.terms) if place not in taken))
    others = rest.expression(most_terms)
    joined = " + ".join(each.text for each in rates)
    unclipped = others.removesuffix(formula.clipping)
    if unclipped.startswith("-"):
        joined += f" - {unclipped[1:]}"
    elif unclipped != "0":
        joined += f" + {unclipped}"
    return f"{quoted(formula.target)} = {joined}{formula.clipping}"


def _selects(factor: Term) -> bool:
    """Whether a factor is 1 for some levels of a category."""
    return factor.op == "level" or (factor.op == "in" and isinstance(factor.parts[0], str))


def _factors(summand: Summand) -> tuple[Term, ...]:
    return () if summand.term is None else summand.term.factors
