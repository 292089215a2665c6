"""A list of rules: several formulas, each followed by a part of the rows, found and tested one after the other.

The list ends where a rule fits no more rows than chance and the rules before it explain
(:mod:`massart.recover.further_rule`). A row that fits two rules says nothing about which of them it follows, and is
given to neither. A formula that is another rule with an error in it is listed as that error
(:mod:`massart.recover.rule_errors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from massart.certificate import FurtherRule
from massart.recover.further_rule import Search, TestedRule
from massart.recover.rule_errors import RowsWithError, RuleError, error_between, errors_of
from massart.rows import (
    Agreement,
    BoolArray,
    Callback,
    FloatArray,
    check_labels,
    check_matrix,
    levels,
    precision_of,
    silent,
)

MOST_RULES, MOST_ERRORS = 8, 8
"""Rules that are looked for if no number is given; and errors of them that make formulas of their own, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class ListedRule:
    """One rule of a list.

    Attributes
    ----------
    coef : (d,) array
    intercept : float
        0 where the rules have no constant.
    fractions : tuple of d + 1 (or d) Fraction or None
        The exact value of each coefficient and of the constant; None where the rows do not give it.
    agreement : Agreement
        When a row agrees.
    fits : (n,) boolean array
        Rows that agree, whether or not another rule fits them, too.
    own : (n,) boolean array
        Rows that fit this rule and no other.
    test : FurtherRule
        This rule against chance, repeated errors and the rules before it.
    """

    coef: FloatArray
    intercept: float
    fractions: tuple[Fraction | None, ...]
    agreement: Agreement
    fits: BoolArray
    own: BoolArray
    test: FurtherRule

    @property
    def n_own(self) -> int:
        """Number of rows that fit this rule and no other."""
        return int(np.count_nonzero(self.own))

    @property
    def n_shared(self) -> int:
        """Number of rows that fit this rule and another one."""
        return int(np.count_nonzero(self.fits & ~self.own))

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return what the rule gives for rows."""
        rows = check_matrix(X)
        if rows.shape[1] != len(self.coef):
            raise ValueError(f"X has {rows.shape[1]} columns, but the rule has {len(self.coef)}")
        return np.asarray(rows @ self.coef + self.intercept)


@dataclass(frozen=True, slots=True, eq=False)
class RuleList:
    """Rules of a table, the one that most rows fit first.

    Attributes
    ----------
    rules : tuple of ListedRule
        Each one passed its test: there is a mechanism beyond chance and the rules before it, or errors depend on the
        columns.
    errors : tuple of RowsWithError
        What many of the rows that follow none are: a multiple of a rule, a rule without a term, the value of a column,
        one and the same value, or off a rule by some amount.
    shared : (n,) boolean array
        Rows that fit two rules or more: they are given to none.
    none : (n,) boolean array
        Rows that follow no rule of the list, those with one of the `errors` among them.
    needed : int
        A further rule that fewer of the rows follow would not be seen.
    """

    rules: tuple[ListedRule, ...]
    errors: tuple[RowsWithError, ...]
    shared: BoolArray
    none: BoolArray
    needed: int

    @property
    def unexplained(self) -> BoolArray:
        """Rows that follow no rule and have none of the errors."""
        found = self.none.copy()
        for error in self.errors:
            found[error.rows] = False
        return found

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
        Number of rules that are looked for at most. Each has to pass its test in any case: "auto" ends with the first
        that does not.
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
    most = MOST_RULES if isinstance(n_rules, str) and n_rules == "auto" else n_rules
    if not _is_whole(most) or most < 1:
        raise ValueError(f'n_rules must be "auto" or a whole number of at least 1, got {n_rules!r}')
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
    return find_rules(search, int(most), intercept=intercept)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def find_rules(search: Search, most: int, *, intercept: bool, category_levels: BoolArray | None = None) -> RuleList:
    """Find the rules of a table one after the other, until one fails its test or `most` are found.

    Parameters
    ----------
    search : Search
    most : int
        Number of rules at most; errors of them do not count.
    intercept : bool
        Whether the last column is the constant.
    category_levels : (p,) boolean array, optional
        Columns that are levels of a category.
    """
    p = search.X.shape[1]
    single = np.zeros(p, dtype=bool) if category_levels is None else category_levels.copy()
    if intercept:
        single[-1] = True
    found: list[TestedRule] = []
    rules, errors = _rules_and_errors(found, search.X, single)
    while len(rules) < most and len(found) < most + MOST_ERRORS:
        rule = search.further(found)
        if rule is None:
            break
        found = sorted([*found, rule], key=lambda one: -int(np.count_nonzero(one.fits)))
        rules, errors = _rules_and_errors(found, search.X, single)
    times = np.sum([rule.fits for rule in rules], axis=0) if rules else np.zeros(len(search.y), dtype=int)
    listed = [
        ListedRule(
            rule.coef[:-1] if intercept else rule.coef,
            float(rule.coef[-1]) if intercept else 0.0,
            rule.fractions,
            rule.agreement,
            rule.fits,
            rule.fits & (times == 1),
            rule.test,
        )
        for rule in rules
    ]
    numbers = [(rule.coef, rule.half) for rule in rules]
    named = errors_of(search.X, search.y, numbers, errors, times == 0, single)
    return RuleList(tuple(listed), named, times > 1, times == 0, search.needed(found))


def _rules_and_errors(
    found: Sequence[TestedRule], X: FloatArray, single: BoolArray
) -> tuple[list[TestedRule], list[tuple[RuleError, BoolArray]]]:
    """Return the rules, and the errors by which the other formulas came from a rule that more rows follow."""
    rules: list[TestedRule] = []
    errors: list[tuple[RuleError, BoolArray]] = []
    for one in found:
        half = max([one.half, *(rule.half for rule in rules)])
        known = (error_between(X, rule.coef, one.coef, half, single, place) for place, rule in enumerate(rules))
        error = next((error for error in known if error is not None), None)
        if error is None:
            rules.append(one)
        else:
            errors.append((error, one.fits))
    return rules, errors
