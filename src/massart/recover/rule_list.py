"""A list of rules: several formulas, each followed by a part of the rows, found and tested one after the other.

The driver looks for a rule among the rows that no rule before it fits, as it does in a whole table; the rule is
polished on all rows and tested (:mod:`massart.certificate.mechanisms`). The list ends where a rule fits no more rows
than chance and the rules before it explain. A row that fits two rules says nothing about which of them it follows, and
is given to neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from massart.agreement import Agreement, levels
from massart.certificate.mechanisms import (
    Explained,
    FurtherRule,
    Width,
    explained_by_chance,
    failure_of,
    fullest_window,
    judge_further_rule,
)
from massart.link import IDENTITY
from massart.progress import Callback, silent
from massart.recover.driver import recover
from massart.recover.judges import Formula
from massart.recover.polish import polish
from massart.recover.sharpness import stands_out
from massart.recover.snapping import snap
from massart.rows import ArrayRows, BoolArray, FloatArray, Sample, check_labels, check_matrix, precision_of
from massart.search import reweighted

MOST_RULES = 8
"""Rules that are looked for if no number is given."""

ATTEMPTS, ATTEMPT_ROWS = 3, 600
"""Searches for one rule, and the rows that those after the first one see, if there are more: the search is random."""

AMOUNT_ROWS, AMOUNT_SHARE, MOST_AMOUNTS = 10, 0.01, 6
"""An amount by which so many rows, and this share of the table, are off is reported; and how many of them at most."""

GLIMPSE_ROWS, GLIMPSE_SETS, GLIMPSE_COLUMNS, GLIMPSE_SHARE = 200, 2000, 12, 0.1
"""A glimpse looks at so many rows and sets of rows, in at most so many columns, and asks for this share of the rows
beyond those that fix a formula (benchmarks/rule_lists.py, "plain")."""

GLIMPSE_HALF_WIDTHS, ROWS_PER_COLUMN = 6.0, 4
"""A formula that few rounded rows fix is taken to be right where a row is off by so many half-widths; and the rows a
column that reweighted least squares takes."""

_SAMPLE_DIGITS, _GLIMPSE_DIGITS = 10, 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class KnownRule:
    """A rule of which the rows are known: what it gives, and which rows agree.

    Attributes
    ----------
    values : (n,) array
    fits : (n,) boolean array
    half : float
        Largest half-width of a row that agrees.
    """

    values: FloatArray
    fits: BoolArray
    half: float


@dataclass(frozen=True, slots=True, eq=False)
class ListedRule:
    """One rule of a list.

    Attributes
    ----------
    coef : (d,) array
    intercept : float
        0 where the rules have no constant.
    fractions : tuple of d + 1 (or d) Fraction or None
        The exact value of each coefficient and of the constant; None where the rows do not tell it.
    agreement : Agreement
        When a row agrees.
    fits : (n,) boolean array
        Rows that agree, whether or not another rule fits them, too.
    own : (n,) boolean array
        Rows that fit this rule and no other.
    test : FurtherRule
        This rule against chance, repeated errors and the rules before it.
    amounts : tuple of pairs (float, int)
        Amounts by which many of the rows that follow no rule are off this one, and these rows.
    """

    coef: FloatArray
    intercept: float
    fractions: tuple[Fraction | None, ...]
    agreement: Agreement
    fits: BoolArray
    own: BoolArray
    test: FurtherRule
    amounts: tuple[tuple[float, int], ...] = ()

    @property
    def n_own(self) -> int:
        """How many rows fit this rule and no other."""
        return int(np.count_nonzero(self.own))

    @property
    def n_shared(self) -> int:
        """How many rows fit this rule and another one."""
        return int(np.count_nonzero(self.fits & ~self.own))

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return what the rule gives for rows."""
        rows = check_matrix(X)
        if rows.shape[1] != len(self.coef):
            raise ValueError(f"X has {rows.shape[1]} columns, but the rule has {len(self.coef)}")
        return np.asarray(rows @ self.coef + self.intercept)


@dataclass(frozen=True, slots=True, eq=False)
class RuleList:
    """Rules of a table, in the order in which they were found.

    Attributes
    ----------
    rules : tuple of ListedRule
        Each one passed its test: there is a mechanism beyond chance and the rules before it, or errors depend on the
        columns.
    shared : (n,) boolean array
        Rows that fit two rules or more: they are given to none.
    none : (n,) boolean array
        Rows that follow no rule of the list.
    needed : int
        A further rule that fewer of the rows follow would not be seen.
    """

    rules: tuple[ListedRule, ...]
    shared: BoolArray
    none: BoolArray
    needed: int

    @property
    def assigned(self) -> np.ndarray:
        """For each row the place of its rule in the list; -1 for rows that follow none, -2 for those that fit two."""
        places = np.full(len(self.none), -1)
        for place, rule in enumerate(self.rules):
            places[rule.own] = place
        places[self.shared] = -2
        return places

    def __repr__(self) -> str:
        counts = ", ".join(f"{rule.n_own:,}" for rule in self.rules)
        rows = f" of {counts} rows" if self.rules else ""
        return f"<RuleList: {len(self.rules)} rules{rows}; {int(self.none.sum()):,} of {len(self.none):,} follow none>"


def recover_list(
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_rules: int | Literal["auto"] = "auto",
    intercept: bool = True,
    tolerance: float | Literal["auto"] = "auto",
    random_state: int = 0,
    callback: Callback = silent,
) -> RuleList:
    """Find the rules that different rows of a table follow.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    n_rules : "auto" or int
        How many rules are looked for at most. Each has to pass its test in any case: "auto" ends with the first that
        does not.
    intercept : bool
        Whether each rule has a constant.
    tolerance : "auto" or float
        Largest residual of a row that agrees, see :class:`massart.MassartRegressor`.
    random_state : int
        Of the search.
    callback : callable

    Returns
    -------
    RuleList

    Notes
    -----
    The test of a rule assumes that rows are independent of each other, and that errors do not depend on the columns:
    see :mod:`massart.certificate.mechanisms` for the theorem. All tests together err with probability .001 at most, if
    the rules before each are what they seem.

    Examples
    --------
    >>> import massart
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 100, (900, 2)).round(2)
    >>> y = np.where(rng.random(900) < 0.6, X @ [2, 0.5] + 12, X @ [1.5, 4])
    >>> y[:90] = rng.uniform(0, 600, 90)
    >>> found = massart.recover_list(X, y)
    >>> for rule in found.rules:
    ...     print(rule.coef, rule.intercept, rule.n_own)
    [2.  0.5] 12.0 505
    [1.5 4. ] 0.0 305
    >>> int(found.none.sum())
    90
    """
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    most = checked_number_of_rules(n_rules)
    if not _is_whole(random_state):
        raise ValueError(f"random_state must be a whole number, got {random_state!r}")
    search = Search(
        np.column_stack([rows, np.ones(len(rows))]) if intercept else rows,
        labels,
        tolerance,
        int(random_state),
        max(precision_of(X), precision_of(y)),
        callback=callback,
    )
    levels(tolerance, rows, labels)  # complains of a tolerance that is none
    found: list[FoundRule] = []
    while len(found) < most:
        rule = search.further([one.known for one in found])
        if rule is None:
            break
        found.append(rule)
    return _listed(found, search, intercept=intercept)


def checked_number_of_rules(n_rules: object, name: str = "n_rules") -> int:
    """Return how many rules are looked for at most, or raise ValueError."""
    if isinstance(n_rules, str) and n_rules == "auto":
        return MOST_RULES
    if not _is_whole(n_rules) or n_rules < 1:
        raise ValueError(f'{name} must be "auto" or a whole number of at least 1, got {n_rules!r}')
    return int(n_rules)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _listed(found: Sequence[FoundRule], search: Search, *, intercept: bool) -> RuleList:
    """Give each row to the rule that it fits alone."""
    n = len(search.y)
    fits = np.stack([rule.known.fits for rule in found], axis=1) if found else np.zeros((n, 0), dtype=bool)
    times = fits.sum(axis=1)
    none = times == 0
    rules = tuple(
        ListedRule(
            rule.coef[:-1] if intercept else rule.coef,
            float(rule.coef[-1]) if intercept else 0.0,
            rule.fractions,
            rule.agreement,
            rule.known.fits,
            rule.known.fits & (times == 1),
            rule.test,
            amounts_of(search.y - rule.known.values, none, rule.known.half),
        )
        for rule in found
    )
    return RuleList(rules, times > 1, none, search.needed([rule.known for rule in found]))


@dataclass(frozen=True, slots=True, eq=False)
class FoundRule:
    """A rule that passed its test."""

    coef: FloatArray
    fractions: tuple[Fraction | None, ...]
    agreement: Agreement
    known: KnownRule
    test: FurtherRule


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """The rows of a table among which rules are looked for.

    Attributes
    ----------
    X : (n, d) array
        With the constant column, if there is one.
    y : (n,) array
    tolerance : "auto" or float
    seed : int
    precision : float
        Machine epsilon of the type that the numbers had.
    hypotheses : float
        Among how many sets of columns labels chose this one.
    callback : callable
    """

    X: FloatArray
    y: FloatArray
    tolerance: float | Literal["auto"] = "auto"
    seed: int = 0
    precision: float = float(np.finfo(float).eps)
    hypotheses: float = 1.0
    callback: Callback = silent

    @property
    def _scale(self) -> float:
        return float(np.abs(self.X).max())

    def explained(self, known: Sequence[KnownRule], half: float) -> Explained:
        """Return what the known rules and chance explain of the next one, at the half-widths of all of them."""
        width = Width.of(max([half, *(rule.half for rule in known)]), self._scale)
        failure = failure_of(len(known) + 1) / 2
        found = explained_by_chance(self.y, [rule.values for rule in known], width, failure)
        return replace(found, hypotheses=found.hypotheses * self.hypotheses)

    def needed(self, known: Sequence[KnownRule]) -> int:
        """Return how many rows the next rule needs."""
        return self._test(0, self.explained(known, self._least), len(known) + 1).needed

    @property
    def _least(self) -> float:
        """The half-width of a rule that fits exactly, or as exactly as was asked for."""
        if self.tolerance != "auto" and self.tolerance > 0:
            return float(self.tolerance)
        return self._scale * self.precision

    def _test(self, rows: int, explained: Explained, place: int) -> FurtherRule:
        return judge_further_rule(rows, self.X.shape[1], explained, failure_of(place))

    def further(self, known: Sequence[KnownRule], among: BoolArray | None = None) -> FoundRule | None:
        """Return a rule that far more of the rows left follow than chance and the known rules explain; None without.

        Only rows that are `among` some count, if these are given.
        """
        place = len(known) + 1
        first = self.explained(known, self._least)
        left = first.left if among is None else first.left & among
        for rule in known:
            left = left & ~rule.fits
        members = np.flatnonzero(left)
        if len(members) < self._test(0, first, place).needed:
            return None
        for attempt in range(ATTEMPTS):
            rng, some = np.random.default_rng([self.seed, attempt]), members
            if attempt and len(members) > ATTEMPT_ROWS:
                some = rng.choice(members, ATTEMPT_ROWS, replace=False)
            elif attempt:
                some = rng.choice(members, 2 * len(members) // 3, replace=False)
            found = self._tested(self._proposed(some, rng), known, left, among)
            if found is not None:
                return found
        return None

    def _proposed(self, some: np.ndarray, rng: np.random.Generator) -> Formula:
        """Return the formula of some rows, polished on all that agree with it."""
        rows = ArrayRows(self.X[some], self.y[some], precision=self.precision)
        found = recover(rows, tolerance=self.tolerance, inliers="exact", rng=rng, callback=self.callback)
        return Formula(found.coef[:, 0], found.certificates[0].agreement, IDENTITY)

    def _tested(
        self, formula: Formula, known: Sequence[KnownRule], left: BoolArray, among: BoolArray | None
    ) -> FoundRule | None:
        """Polish a formula on all rows that agree, and return it if it passes its test."""
        X, y, n = self.X, self.y, len(self.y)
        coef, _ = polish(X, y, np.ones(n), formula.coef, formula.agreement.uncapped, IDENTITY)
        agree = formula.agreement.agree(X, y, coef)
        coef, fractions = snap(X, y, agree, coef, formula.agreement, IDENTITY)
        agree = formula.agreement.agree(X, y, coef)
        exact = all(value is not None for value in fractions)
        half = _largest_half_width(X, coef, formula.agreement) * (1 if exact or not formula.agreement.rounded else 2)
        explained = self.explained(known, half)
        own = agree & explained.left if among is None else agree & explained.left & among
        test = self._test(int(np.count_nonzero(own)), explained, len(known) + 1)
        if not test.is_certified:
            return None
        judges = np.flatnonzero(left | own)
        sample = Sample(X[judges], y[judges], None, judges)
        if not stands_out(Formula(coef, formula.agreement, IDENTITY), sample, X.shape[1]):
            return None
        return FoundRule(coef, fractions, formula.agreement, KnownRule(X @ coef, agree, half), test)


def _largest_half_width(X: FloatArray, coef: FloatArray, agreement: Agreement) -> float:
    """Return the largest half-width of a row that agrees, whose label is about as large as the terms allow."""
    size = 2 * (np.abs(X) @ np.abs(coef)).max(keepdims=True)
    return float(agreement.half_widths(size, coef)[0])


def may_follow_one(X: FloatArray, y: FloatArray, half: float, rng: np.random.Generator) -> bool:
    """Return whether a glimpse at some rows shows many that follow one formula: a search takes a hundred times longer.

    Few of them at a time fix a formula (elemental sets: Fischler and Bolles 1981), and so do least squares with weights
    where most rows follow it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 100, (300, 3))
    >>> noise = 50 * rng.standard_normal(300)
    >>> may_follow_one(X, X @ [2, 3, 4] + noise, 0.005, rng)
    False
    >>> may_follow_one(X, X @ [2, 3, 4] + np.where(rng.random(300) < 0.6, noise, 0), 0.005, rng)
    True
    """
    some = rng.choice(len(X), min(len(X), GLIMPSE_ROWS), replace=False)
    rows, labels = X[some], y[some]
    rows = rows[:, rows.any(axis=0)]
    p = rows.shape[1]
    close = max(GLIMPSE_HALF_WIDTHS * half, _GLIMPSE_DIGITS * float(np.median(np.abs(labels))))
    enough = p + GLIMPSE_SHARE * len(rows)
    if p == 0 or len(rows) <= enough:
        return False
    if (
        len(rows) >= ROWS_PER_COLUMN * p
        and np.count_nonzero(np.abs(labels - rows @ reweighted(rows, labels)) <= close) >= enough
    ):
        return True
    if p > GLIMPSE_COLUMNS:
        return False
    sets = rng.integers(len(rows), size=(GLIMPSE_SETS, p))
    scaled = rows / np.abs(rows).max(axis=0)
    sets = sets[np.abs(np.linalg.det(scaled[sets])) > _GLIMPSE_DIGITS]
    found = np.linalg.solve(scaled[sets], labels[sets][:, :, None])[:, :, 0]
    return bool((np.abs(scaled @ found.T - labels[:, None]) <= close).sum(axis=0).max(initial=0) >= enough)


def amounts_of(rest: FloatArray, none: BoolArray, half: float) -> tuple[tuple[float, int], ...]:
    """Return amounts that many of some residuals have, and how many, the most frequent first.

    Examples
    --------
    >>> rest = np.r_[np.zeros(50), np.full(20, 25.0), np.linspace(1, 9, 30)]
    >>> amounts_of(rest, rest != 0, 0.005)
    ((25.0, 20),)
    """
    found: list[tuple[float, int]] = []
    values = rest[none]
    for _ in range(MOST_AMOUNTS):
        if fullest_window(values, half) < max(AMOUNT_ROWS, AMOUNT_SHARE * len(rest)):
            break
        ordered = np.sort(values)
        ends = np.searchsorted(ordered, ordered + 2 * half, side="right")
        start = int((ends - np.arange(len(ordered))).argmax())
        middle = float(np.median(ordered[start : ends[start]]))
        near = np.abs(values - middle) <= 2 * half
        found.append((float(f"{middle:.{_SAMPLE_DIGITS}g}"), int(near.sum())))
        values = values[~near]
    return tuple(found)
