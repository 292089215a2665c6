"""A formula in the form that people read: ``total = 3.5 * hours + 12 * items - 4.25 (when positive, else 0)``.

Numbers that the rows support exactly are written in full; others are rounded for the eye to `SHOWN_DIGITS` digits, and
an estimate from noisy rows has ≈ for the equals sign.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from massart.certificate import Certificate, Verdict
from massart.rows import IDENTITY, FloatArray, Link
from massart.rules.literals import fraction_of, level_order, quoted
from massart.rules.matrix import Matrix
from massart.rules.terms import CONDITIONS, Term, level, number

SHOWN_DIGITS = 10
ESTIMATE_DIGITS = 5

_PIECES = re.compile(r"`[^`]*`|[^`]+|`")
_BETWEEN_TERMS = re.compile(r" (?=[+-] )")
_MOST_PLACES = 12
_LARGEST_IN_FULL = 10**15
_AMOUNTS = 3  # of a category that are written as they are: two are a constant, and what one level has more
_RATIOS = (Fraction(1), Fraction(1, 100))  # of a factor 1 + ratio * term: rates and percentages


INTERCEPT = "intercept"
"""What the constant of a formula is called."""


@dataclass(frozen=True, slots=True)
class Summand:
    """A coefficient times a term.

    Attributes
    ----------
    term : Term or None
        None for the constant.
    coef : float
    exact : Fraction or None
        The coefficient exactly, where the rows support an exact value.
    standard_error : float
        0 for exact rows, NaN where the rows do not tell.
    determined : bool
        Whether the rows that agree determine it.
    """

    term: Term | None
    coef: float
    exact: Fraction | None
    standard_error: float
    determined: bool

    @property
    def label(self) -> str:
        """What the coefficient multiplies, in words."""
        return INTERCEPT if self.term is None else label_of(self.term)

    @property
    def column(self) -> str | None:
        """The name of the column, if the term is one or a level of one."""
        return str(self.term.parts[0]) if self.term is not None and self.term.is_column else None

    @property
    def level(self) -> str | None:
        """The level, if the term is one."""
        return str(self.term.parts[1]) if self.term is not None and self.term.op == "level" else None

    @property
    def is_shown(self) -> bool:
        """Whether a reader wants to see it: of a library only what is in the rule, of plain columns all."""
        return self.coef != 0 or self.term is None or self.term.is_column

    def number(self, digits: int = SHOWN_DIGITS) -> str:
        """Return the coefficient as text: in full where it is exact, else as far as it is known."""
        return write_number(self.coef, self.exact, digits, self.standard_error)


@dataclass(frozen=True, slots=True)
class Formula:
    """``target = link(sum of terms + intercept)``.

    Attributes
    ----------
    target : str
    terms : tuple of Summand
        Without the constant.
    intercept : Summand or None
        None for a formula without a constant.
    link : Link
    noisy : bool
        Whether it is an estimate from rows that follow it up to noise.
    bases : tuple of pairs of str
        Categories with a level that has no term, and this level: the amounts of all others are differences from it.
    cut : Fraction or None
        The unit to which labels are rounded down, where the constant is half of it too low: 1.07 * net - 0.005.

    Examples
    --------
    >>> from massart.rules.terms import column, level
    >>> hours = Summand(column("hours"), 3.5, Fraction(7, 2), 0.0, True)
    >>> north = Summand(level("region", "north"), -12.0, Fraction(-12), 0.0, True)
    >>> print(Formula("total", (hours, north), None, Link(), noisy=False))
    total = 3.5 * hours - 12 * (region = north) (when positive, else 0)
    """

    target: str
    terms: tuple[Summand, ...]
    intercept: Summand | None
    link: Link
    noisy: bool
    bases: tuple[tuple[str, str], ...] = ()
    cut: Fraction | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, most_terms: int | None = None) -> str:
        """Write it in one line, with at most a number of terms."""
        return f"{quoted(self.target)} {'≈' if self.noisy else '='} {self.expression(most_terms)}"

    def expression(self, most_terms: int | None = None) -> str:
        """Write what stands behind the equals sign."""
        groups = factored([term for term in self._by_level if term.coef != 0])
        shown = _joined(map(self._group, groups[:most_terms]))
        if most_terms is not None and len(groups) > most_terms:
            shown += f" + {len(groups) - most_terms} more terms"
        return shown + self.clipping

    @property
    def all_terms(self) -> tuple[Summand, ...]:
        """The terms in the order of the coefficients: the constant, if there is one, is the last."""
        return self.terms if self.intercept is None else (*self.terms, self.intercept)

    @property
    def _by_level(self) -> tuple[Summand, ...]:
        """The terms, with the amounts themselves of a category that has three, and not differences from one of them."""
        constant = self.intercept
        if constant is None or constant.exact is None or not constant.coef or self.noisy:
            return self.all_terms
        amount = constant.exact + (0 if self.cut is None else self.cut / 2)
        constant = constant if self.cut is None else replace(constant, term=None, coef=float(amount), exact=amount)
        for name, base in self.bases:
            own = [term for term in self.terms if term.column == name and term.level is not None]
            if len({0.0, *(term.coef for term in own)}) < _AMOUNTS or any(term.exact is None for term in own):
                continue
            sums = {term: term.exact + amount for term in own if term.exact is not None}
            amounts = {term: replace(term, coef=float(value), exact=value) for term, value in sums.items()}
            of_base = replace(constant, term=level(name, base))
            by_level = sorted([of_base, *amounts.values()], key=lambda term: level_order(str(term.level)))
            place = self.terms.index(own[0])
            others = [term for term in self.terms if term not in amounts]
            return (*others[:place], *by_level, *others[place:])
        return (*self.terms, constant)

    @property
    def names(self) -> tuple[str, ...]:
        """What the terms multiply, in words, without the constant: the names for a certificate."""
        return tuple(term.label for term in self.terms)

    @property
    def coef(self) -> FloatArray:
        """The coefficients, that of the constant last."""
        return np.array([term.coef for term in self.all_terms])

    def has_no_effect(self, summand: Summand) -> bool:
        """Whether a term is not in the rule: a level whose rate or amount is that of the base level is."""
        if summand.coef or not summand.determined or summand.term is None:
            return False
        read = {name for term in self.terms if term.coef and term.term is not None for name in term.term.columns()}
        return summand.level is None or summand.column not in read

    @property
    def undetermined(self) -> tuple[Summand, ...]:
        """Terms, the constant included, that the rows leave open."""
        return tuple(term for term in self.all_terms if not term.determined)

    @property
    def clipping(self) -> str:
        """What is done with the sum, in words; empty for a linear formula."""
        lower, upper = self.link.lower, self.link.upper
        if lower == -math.inf and upper == math.inf:
            return "" if self.cut is None else f" (rounded down to {write_number(float(self.cut), self.cut)})"
        if self.link.slope:
            inside = " and ".join(f"{word} {value:g}" for word, value in self._limits())
            return f" (when {inside}, beyond that with slope {self.link.slope:g})"
        if (lower, upper) == (0, math.inf):
            return " (when positive, else 0)"
        return f" (clipped to {' and '.join(f'{word} {value:g}' for word, value in self._limits())})"

    def predict(self, X: Matrix) -> FloatArray:
        """Return what it gives for rows whose columns are the terms."""
        constant = 0.0 if self.intercept is None else self.intercept.coef
        return self.link(np.asarray(X @ np.array([term.coef for term in self.terms])) + constant)

    def _limits(self) -> Iterator[tuple[str, float]]:
        if self.link.lower > -math.inf:
            yield "at least", self.link.lower
        if self.link.upper < math.inf:
            yield "at most", self.link.upper

    def _group(self, group: Group) -> tuple[bool, str]:
        """Return whether a part has a minus, and what is written behind its sign."""
        minus, text = self._summand(group.terms[0])
        if len(group.terms) > 1:
            minus, text = False, f"({_joined(map(self._summand, group.terms))})"
        for term, ratio in group.factors:
            text += f" * (1 {'-' if ratio < 0 else '+'} {_part(term, abs(ratio))})"
        return minus, text

    def _summand(self, term: Summand) -> tuple[bool, str]:
        exact = None if term.exact is None else abs(term.exact)
        digits = ESTIMATE_DIGITS if self.noisy else SHOWN_DIGITS
        size = write_number(abs(term.coef), exact, digits, term.standard_error)
        if term is self.intercept or term.term is None:
            return term.coef < 0, size
        text = f"({term.term})" if term.term.op in ("+", "-") else str(term.term)
        return term.coef < 0, text if size == "1" else f"{size} * {text}"


def _part(term: Term, ratio: Fraction) -> str:
    """Write a ratio times a term; a hundredth of a column is a percentage."""
    if ratio == 1:
        return str(term)
    if ratio == Fraction(1, 100) and term.op not in CONDITIONS:
        return str(Term("/", (term, number(100))))
    return f"{write_number(float(ratio), ratio)} * {term}"


def _joined(parts: Iterable[tuple[bool, str]]) -> str:
    """Write parts, each of which may have a minus, with signs between them; 0 if there are none."""
    found = ""
    for minus, text in parts:
        sign = "-" if minus else "+"
        found += f" {sign} {text}" if found else f"{'-' * minus}{text}"
    return found or "0"


@dataclass(frozen=True, slots=True)
class Group:
    """A part of a formula: a sum of terms times factors ``1 + ratio * term``."""

    terms: tuple[Summand, ...]
    factors: tuple[tuple[Term, Fraction], ...] = ()


def factored(written: Sequence[Summand]) -> list[Group]:
    """Take out factors such as 1 - discount, where that is exact and shortens the formula.

    Examples
    --------
    >>> from massart.rules.terms import column, product
    >>> pay, less = product(column("qty"), column("price")), column("discount")
    >>> sum_ = [Summand(pay, 1.0, Fraction(1), 0, True), Summand(product(pay, less), -1.0, Fraction(-1), 0, True)]
    >>> [(group.terms[0].label, [str(ratio) for _, ratio in group.factors]) for group in factored(sum_)]
    [('qty * price', ['-1'])]
    """
    known = {_factors(term): term for term in written if term.exact is not None}
    having: dict[Term, list[tuple[Term, ...]]] = {}
    for factors in known:
        for factor in dict.fromkeys(factors):
            having.setdefault(factor, []).append(factors)
    for candidate, whole in having.items():
        parts = [_without(factors, candidate) for factors in whole]
        if not all(part in known for part in parts) or (len(parts) == 1 and not parts[0]):
            continue
        ratios = {_ratio(known[whole[k]], known[parts[k]]) for k in range(len(whole))}
        ratio = ratios.pop()
        of_numbers = abs(ratio) in _RATIOS and candidate.op not in CONDITIONS
        if ratios or not (of_numbers or _is_shorter(ratio, candidate, [known[one] for one in whole])):
            continue
        taken = {*whole, *parts}
        inner = factored([known[part] for part in sorted(parts, key=list(known).index)])
        others = factored([term for term in written if _factors(term) not in taken or term.exact is None])
        if len(inner) == 1:
            return [Group(inner[0].terms, (*inner[0].factors, (candidate, ratio))), *others]
        if not any(group.factors for group in inner):
            return [Group(tuple(known[part] for part in parts), ((candidate, ratio),)), *others]
    return [Group((term,)) for term in written]


def _is_shorter(ratio: Fraction, factor: Term, written: Sequence[Summand]) -> bool:
    """Return whether a ratio has fewer digits than the coefficients that it stands for, so that people think of it."""
    if factor.op not in CONDITIONS or abs(ratio) == 1:
        return False
    digits = sum(_digits(abs(term.exact)) for term in written if term.exact is not None)
    return _digits(abs(ratio)) < digits


def _digits(value: Fraction) -> int:
    return len(write_number(float(value), value).replace(".", "").strip("0"))


def _factors(term: Summand) -> tuple[Term, ...]:
    return () if term.term is None else tuple(sorted(term.term.factors, key=str))


def _without(factors: tuple[Term, ...], one: Term) -> tuple[Term, ...]:
    place = factors.index(one)
    return factors[:place] + factors[place + 1 :]


def _ratio(whole: Summand, part: Summand) -> Fraction:
    assert whole.exact is not None
    assert part.exact is not None
    return whole.exact / part.exact


def compose(
    target: str,
    columns: Sequence[Term],
    coef: FloatArray,
    exact: Sequence[Fraction | None],
    standard_errors: FloatArray,
    certificate: Certificate,
    link: Link,
) -> Formula:
    """Return the formula of an answer: a term for each coefficient, and if there is one more, the constant."""
    undetermined = {column for group in certificate.undetermined_columns for column in group}
    places = [*columns, None]
    terms = tuple(
        Summand(place, float(value), fraction, float(error), column not in undetermined)
        for column, (place, value, fraction, error) in enumerate(
            zip(places, coef, exact, standard_errors, strict=False)
        )
    )
    inputs, constant = terms[: len(columns)], terms[len(columns) :]
    formula = Formula(target, inputs, constant[0] if constant else None, link, certificate.verdict is Verdict.NOISY)
    return replace(formula, cut=_cut(constant[0], certificate)) if constant and link == IDENTITY else formula


def _cut(constant: Summand, certificate: Certificate) -> Fraction | None:
    """Return the unit to which labels are rounded down: the constant is half of it below a multiple of it."""
    agreement = certificate.agreement
    if not agreement.rounded or agreement.unit is None or constant.exact is None:
        return None
    unit = fraction_of(agreement.unit)
    return unit if (constant.exact / unit) % 1 == Fraction(1, 2) and constant.exact < 0 else None


def write_number(value: float, exact: Fraction | None, digits: int = SHOWN_DIGITS, error: float = 0.0) -> str:
    """Return an exact number in full, as a decimal or a fraction, and another one rounded to a number of digits.

    An estimate is rounded to the second digit of its standard error.

    Examples
    --------
    >>> write_number(0.42, Fraction(21, 50)), write_number(1 / 3, Fraction(1, 3)), write_number(2**0.5, None)
    ('0.42', '1/3', '1.414213562')
    >>> write_number(12.34567, None, error=0.0213), write_number(-0.0026049, None, error=0.0064)
    ('12.346', '-0.0026')
    """
    if exact is None and 0 < error < math.inf:
        known = min(max(1 - math.floor(math.log10(error)), 0), _MOST_PLACES)
        return min(f"{value:.{known}f}", f"{value:.{digits}g}", key=len)
    if exact is None:
        return f"{value:.{digits}g}"
    if abs(exact) >= _LARGEST_IN_FULL:
        return f"{float(exact):g}"
    places = next((k for k in range(_MOST_PLACES + 1) if (exact * 10**k).denominator == 1), None)
    return f"{exact.numerator}/{exact.denominator}" if places is None else f"{_decimal(exact, places):f}"


def _decimal(exact: Fraction, places: int) -> Decimal:
    return Decimal(int(exact * 10**places)).scaleb(-places)


def label_of(term: Term) -> str:
    """Return a term in words: names of columns without backquotes."""
    if term.op == "column":
        return str(term.parts[0])
    return f"{term.parts[0]} = {term.parts[1]}" if term.op == "level" else str(term)


def pieces(formula: str) -> list[str]:
    """Cut the text of a formula before each sign, where a line may break; names in backquotes are not cut."""
    parts = [""]
    for token in _PIECES.findall(formula):
        first, *rest = [token] if token.startswith("`") else _BETWEEN_TERMS.split(token)
        parts[-1] += first
        parts += rest
    return parts
