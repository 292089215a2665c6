"""Some rows of a table as the search sees them: numbers, categories, and the values of products of factors, kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.rules import terms as t
from massart.rules.columns import Columns
from massart.rules.literals import plain_number
from massart.rules.terms import Term

Product: TypeAlias = tuple[Term, ...]
"""Factors that are multiplied; none of them for the constant."""

FEW_VALUES = 12
"""Different values of a column of numbers that may be codes."""

SEVERAL_VALUES = 6
"""A column of numbers with more different values may have thresholds."""


EACH = ("level", "=", ">=", "<")
"""Operations of conditions that hold for one value of a category."""

READ = 0.1
"""What a counter goes on between two readings at most, as a share of the range of each (08-fuel-use of the trades)."""

RARE = 0.05
"""Share of the rows for which a comparison of two columns holds, or does not, at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Category:
    """A column with few values, or the weekday or month of a date.

    Attributes
    ----------
    column : str
    number : Term or None
        The column of numbers whose values these are; None for texts and parts of dates.
    calendar : Term or None
        The weekday or month whose values these are.
    cuts : tuple of Term
        The parts of a number, in order, or the two sides of a comparison of columns; empty for others.
    codes : (n,) array of int
        Places of the rows in `values`.
    values : tuple
    """

    column: str
    number: Term | None
    calendar: Term | None
    codes: NDArray[np.intp]
    values: tuple[str | float, ...]
    cuts: tuple[Term, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_text(self) -> bool:
        """Whether it is a column of texts."""
        return self.number is None and self.calendar is None and not self.cuts

    def condition(self, *places: int) -> Term:
        """Return the term that is 1 where the category has one of some values, given by their places."""
        chosen = [self.values[place] for place in places]
        if self.cuts:
            first, last = self.cuts[places[0]], self.cuts[places[-1]]
            if len(places) == len(self):
                return t.number(1)
            return first if first == last else Term("within", (*first.parts[:2], last.parts[2], first.parts[3]))
        if self.calendar is not None:
            return t.one_of(self.calendar, *map(float, chosen))
        texts = (value if isinstance(value, str) else plain_number(value) for value in chosen)
        return t.level_set(self.column, *texts)

    @property
    def conditions(self) -> tuple[Term, ...]:
        """A condition for each value."""
        return tuple(self.condition(place) for place in range(len(self)))

    def by_level(self, product: Product) -> list[Product]:
        """Return a product once for each value."""
        return [(*product, condition) for condition in self.conditions]


class Sample:
    """Rows and labels on which a rule is grown.

    Attributes
    ----------
    columns : Columns
    y : (n,) array
    half_unit : float
        Half of the unit to which labels are rounded.
    numbers : tuple of Term
        Columns of numbers, and days between two dates.
    dates : tuple of Term
    categories : tuple of Category
    constant : bool
        Whether a rule may have a constant.
    """

    def __init__(
        self, columns: Columns, y: FloatArray, half_unit: float, most_levels: int, *, constant: bool = True
    ) -> None:
        self.columns, self.y, self.half_unit, self.most_levels = columns, y, half_unit, most_levels
        self.constant = constant
        self._factors: dict[Term, FloatArray] = {}
        self._products: dict[Product, FloatArray] = {}
        varied = {name: values for name, values in columns.numbers.items() if len(values) and np.ptp(values) > 0}
        self.dates = tuple(t.column(name) for name in varied if name in columns.dates)
        days = sorted(self.dates, key=lambda date: (float(self.factor(date).mean()), str(date)))
        spans = [Term("-", (late, early)) for early, late in combinations(days, 2)]
        plain = [t.column(name) for name in varied if name not in columns.dates]
        spans += list(self._readings(plain))
        self.numbers = (*plain, *(span for span in spans if np.ptp(self.factor(span)) > 0))
        self.categories = tuple(self._categories())

    def __len__(self) -> int:
        return len(self.y)

    def _readings(self, plain: Sequence[Term]) -> Iterator[Term]:
        """Yield what a counter went on between two readings: a difference of one sign, small compared with both."""
        for pair in combinations(plain, 2):
            more, less = sorted(pair, key=lambda one: -float(self.factor(one).sum()))
            difference = self.factor(more) - self.factor(less)
            if difference.min() > 0 and np.ptp(difference) < READ * min(np.ptp(self.factor(one)) for one in pair):
                yield Term("-", (more, less))

    def _categories(self) -> list[Category]:
        if not self.most_levels:
            return []
        found = []
        for name, levels in self.columns.levels.items():
            there = np.unique(levels.codes)
            if 2 <= len(there) <= self.most_levels:
                codes = np.searchsorted(there, levels.codes)
                found.append(Category(name, None, None, codes, tuple(levels.names[k] for k in there)))
        for term in self.numbers:
            if term.op != "column":
                continue
            values, codes = np.unique(self.factor(term), return_inverse=True)
            if 3 <= len(values) <= FEW_VALUES:
                found.append(Category(str(term.parts[0]), term, None, codes.ravel(), tuple(values.tolist())))
        for date in self.dates:
            for part in ("weekday", "month"):
                term = Term(part, (date,))
                values, codes = np.unique(self.factor(term), return_inverse=True)
                if len(values) > 1:
                    found.append(Category(str(date.parts[0]), None, term, codes.ravel(), tuple(values.tolist())))
        for first, second in self._overlaps([one for one in self.numbers if one.op == "column"]):
            sides = [Term(">=", (second, first)), Term(">=", (first, second))]
            tied = (self.factor(first) == self.factor(second)).any()
            for holds in sides if tied else sides[1:]:
                values = self.factor(holds)
                if RARE < values.mean() < 1 - RARE:
                    sides_of = (Term("<", holds.parts), holds)
                    found.append(Category(str(holds), None, None, values.astype(np.intp), (0.0, 1.0), sides_of))
        return found

    def _overlaps(self, plain: Sequence[Term]) -> Iterator[tuple[Term, Term]]:
        """Yield pairs of columns that have the same range, more or less, so that they may be compared."""
        ranges = [np.quantile(self.factor(one), [0.1, 0.9]).tolist() for one in plain]
        for (first, (a, b)), (second, (c, d)) in combinations(zip(plain, ranges, strict=True), 2):
            if min(b, d) - max(a, c) > 0.5 * min(b - a, d - c) > 0:
                yield first, second

    def take(self, rows: NDArray[np.intp] | BoolArray) -> Sample:
        """Return some of the rows."""
        columns = self.columns.take(rows)
        return Sample(columns, self.y[rows], self.half_unit, self.most_levels, constant=self.constant)

    def factor(self, factor: Term) -> FloatArray:
        """Return the values of a factor."""
        if factor not in self._factors:
            self._factors[factor] = factor.evaluate(self.columns)
        return self._factors[factor]

    def column(self, product: Product) -> FloatArray:
        """Return the values of a product."""
        if product not in self._products:
            values = np.ones(len(self))
            with np.errstate(all="ignore"):
                for factor in product:
                    values = values * self.factor(factor)
            self._products[product] = values
        return self._products[product]

    def matrix(self, products: Sequence[Product]) -> FloatArray:
        """Return the values of products as columns."""
        return np.column_stack([np.empty((len(self), 0)), *map(self.column, products)])

    @cached_property
    def thresholds(self) -> tuple[Term, ...]:
        """Columns that have enough different values for thresholds."""
        if not self.most_levels:
            return ()
        return tuple(one for one in (*self.numbers, *self.dates) if len(np.unique(self.factor(one))) > SEVERAL_VALUES)

    def is_positive(self, number: Term) -> bool:
        """Return whether a column is positive in every row."""
        return bool(self.factor(number).min() > 0)

    def is_flag(self, number: Term) -> bool:
        """Return whether a column is 0 or 1 in every row."""
        return bool(np.isin(self.factor(number), (0, 1)).all())

    def has_zero(self, number: Term) -> bool:
        """Return whether a column is zero somewhere."""
        return bool((self.factor(number) == 0).any())

    def category_of(self, condition: Term) -> Category | None:
        """Return the category of a condition on levels."""
        for category in self.categories:
            if category.cuts:
                same = condition in category.cuts
            elif category.calendar is not None:
                same = condition.op in ("=", "in") and condition.parts[0] == category.calendar
            else:
                same = condition.op in ("level", "in") and condition.parts[0] == category.column
            if same:
                return category
        return None


def is_condition(factor: Term) -> bool:
    """Return whether a factor is 1 or 0."""
    return factor.op in t.CONDITIONS


def n_constants(term: Term) -> int:
    """Return how many numbers but 0 stand in a term, and how many ranges; a summand without a number has the 1.

    Examples
    --------
    >>> n_constants(t.total(t.product(t.number(28), t.level("menu", "A")), t.product(t.column("km"), t.column("rate"))))
    2
    """
    if term.op == "number":
        return int(term.parts[0] != 0)
    parts = [part for part in term.parts if isinstance(part, Term)]
    bare = sum(not any(one.op == "number" for one in part.factors) for part in parts) if term.op == "+" else 0
    return int(term.op == "within") + bare + sum(map(n_constants, parts))


def is_range(factor: Term) -> bool:
    """Return whether a factor is the condition that a number is in a range."""
    return factor.op == "within" or (factor.op in (">=", "<") and factor.parts[1].op == "number")  # type: ignore[union-attr]


def above(number: Term, threshold: float) -> Term:
    """Return max(0, number - threshold)."""
    return Term("max", (t.number(0), Term("-", (number, t.number(threshold)))))


def below(number: Term, threshold: float) -> Term:
    """Return max(0, threshold - number)."""
    return Term("max", (t.number(0), Term("-", (t.number(threshold), number))))


def excess(first: Term, second: Term) -> Term:
    """Return max(0, first - second)."""
    return Term("max", (t.number(0), Term("-", (first, second))))


def clipped(number: Term, threshold: float, *, is_cap: bool) -> Term:
    """Return min(number, threshold), or max(number, threshold)."""
    return Term("min" if is_cap else "max", (number, t.number(threshold)))


def clip_of(factor: Term) -> tuple[Term, float] | None:
    """Return the number and the threshold of min(number, threshold) or max(number, threshold); None for others."""
    if factor.op not in ("min", "max") or not isinstance(factor.parts[1], Term) or factor.parts[1].op != "number":
        return None
    number = factor.parts[0]
    assert isinstance(number, Term)
    return number, float(str(factor.parts[1].parts[0]))


def threshold_of(factor: Term) -> tuple[Term, float, bool] | None:
    """Return the number, the threshold and whether it is max(0, number - threshold); None for other factors."""
    if factor.op != "max" or not isinstance(factor.parts[1], Term) or factor.parts[1].op != "-":
        return None
    first, second = factor.parts[1].parts
    assert isinstance(first, Term)
    assert isinstance(second, Term)
    if second.op == "number":
        return first, float(str(second.parts[0])), True
    if first.op == "number":
        return second, float(str(first.parts[0])), False
    return None


def interval(number: Term, low: float, high: float, is_date: bool) -> Term:
    """Return the condition low <= number < high; an infinite end is no limit.

    Of what is not a column, such as days between two dates or a product, it has one end: that which is finite.

    Examples
    --------
    >>> print(interval(Term("-", (t.column("back"), t.column("out"))), 11, np.inf, False))
    (back - out >= 11)
    """

    def end(value: float) -> float | str | None:
        if not np.isfinite(value):
            return None
        return str(np.datetime64(int(np.ceil(value)), "D")) if is_date else float(value)

    if number.op == "column":
        return t.within(str(number.parts[0]), end(low), end(high), "left")
    return Term(">=", (number, t.number(low))) if np.isfinite(low) else Term("<", (number, t.number(high)))


def without(product: Product, number: Term) -> Product | None:
    """Return a product without a number, which may be a product itself; None if it is not in it."""
    left = list(product)
    for factor in (number,) if number in product else number.factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def key_of(product: Product) -> frozenset[tuple[Term, int]]:
    """Return the factors of a product in any order, each with its number."""
    return frozenset(Counter(product).items())


def factors_of(products: Iterable[Product]) -> list[Term]:
    """Return the factors of some products, each once."""
    return list(dict.fromkeys(factor for product in products for factor in product))


def total_of(weights: Mapping[Product, float]) -> Term:
    """Return a sum of products, each times its number, as a term; nothing is written of 0 and 1.

    Examples
    --------
    >>> print(total_of({(t.column("km"),): 0.3, (t.level("zone", "a"),): 1.0, (): 12.5, (t.column("kg"),): 0.0}))
    0.3 * km + (zone = a) + 12.5
    """
    parts = []
    for product, w in weights.items():
        if w:
            factors = [written(product)] if product else []
            parts.append(t.product(*([] if w == 1 and product else [t.number(w)]), *factors))
    if not parts:
        return t.number(0)
    return parts[0] if len(parts) == 1 else t.total(*parts)


def divided(number: Term) -> Term:
    """Return 1 / number, as a factor."""
    return t.power(number, -1)


def written(product: Product) -> Term:
    """Return a product as a term: conditions last, and a quotient for what is divided by.

    Examples
    --------
    >>> print(written((t.column("cost"), divided(t.column("life")), t.level("kind", "a"))))
    cost / life * (kind = a)
    """
    over, under, conditions = [], [], []
    for factor in product:
        if is_condition(factor):
            conditions.append(factor)
        elif factor.op == "^" and isinstance(factor.parts[1], float) and factor.parts[1] < 0:
            base = factor.parts[0]
            assert isinstance(base, Term)
            under.append(t.power(base, -factor.parts[1]))
        else:
            over.append(factor)
    result = t.product(*over) if over else t.number(1) if under else None
    if under:
        assert result is not None
        result = Term("/", (result, t.product(*under)))
    factors = [*([] if result is None else [result]), *conditions]
    return t.product(*factors)
