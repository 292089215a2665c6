"""One more rule in a table, besides those that are known: looked for in the rows they leave, polished and tested.

The driver looks for it among the rows that no known rule fits, as it does in a whole table; it is polished on all rows
and tested against chance, repeated errors and the known rules (:mod:`massart.certificate.mechanisms`). A list of rules
(:mod:`massart.recover.rule_list`) and the wrong rows of a plain fit are searched in this one way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from massart.certificate import Explained, FurtherRule, Width, explained_by_chance, failure_of, rows_needed, span_of
from massart.recover.certification import Formula, stands_out
from massart.recover.driver import recover
from massart.recover.polish import polish
from massart.recover.shorten import shorten, snap
from massart.rows import IDENTITY, Agreement, ArrayRows, BoolArray, Callback, FloatArray, Sample, silent
from massart.search import reweighted

ATTEMPTS, ATTEMPT_ROWS = 3, 600
"""Searches for one rule, and the rows that those after the first one see, if there are more: the search is random
(benchmarks/rule_lists.py, "list")."""

GLIMPSE_ROWS, GLIMPSE_SETS, GLIMPSE_COLUMNS, GLIMPSE_SHARE = 200, 2000, 12, 0.1
"""Rows, sets of rows and columns that a glimpse looks at, at most, and the share of the rows it asks for beyond those
that fix a formula (benchmarks/rule_lists.py, "plain")."""

GLIMPSE_HALF_WIDTHS, ROWS_PER_COLUMN = 6.0, 4
"""A formula that few rounded rows fix is taken to be right where a row is off by at most this many half-widths; and the
rows a column that reweighted least squares takes."""

DIFFERENT_ROWS = 2
"""Different rows that follow a rule, for each of its coefficients, at least: copies of a few wrong rows are no rule."""

_GLIMPSE_DIGITS = 1e-9


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
class TestedRule(KnownRule):
    """A rule that passed its test.

    Attributes
    ----------
    coef : (p,) array
        The constant last, if there is one.
    fractions : tuple of p Fraction or None
        The exact value of each coefficient; None where the rows do not give it.
    agreement : Agreement
        When a row agrees.
    test : FurtherRule
        The rule against chance, repeated errors and the rules that were known before it.
    """

    coef: FloatArray
    fractions: tuple[Fraction | None, ...]
    agreement: Agreement
    test: FurtherRule


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """The rows of a table among which rules are looked for.

    Attributes
    ----------
    X : (n, p) array
        With the constant column, if there is one.
    y : (n,) array
    tolerance : "auto" or float
    seed : int
    precision : float
        Machine epsilon of the type that the numbers had.
    hypotheses : float
        Number of sets of columns among which labels chose this one.
    looks : float
        Number of columns of labels whose rules are claimed together.
    callback : callable
    """

    X: FloatArray
    y: FloatArray
    tolerance: float | Literal["auto"] = "auto"
    seed: int = 0
    precision: float = float(np.finfo(float).eps)
    hypotheses: float = 1.0
    looks: float = 1.0
    callback: Callback = silent

    @property
    def _scale(self) -> float:
        return float(np.abs(self.X).max())

    def explained(self, known: Sequence[KnownRule], half: float) -> Explained:
        """Return what the known rules and chance explain of the next one, at the half-widths of all of them."""
        width = Width.of(max([half, *(rule.half for rule in known)]), self._scale)
        found = explained_by_chance(self.y, [rule.values for rule in known], width, self._failure(len(known) + 1))
        return replace(found, hypotheses=found.hypotheses * self.hypotheses)

    def needed(self, known: Sequence[KnownRule]) -> int:
        """Return the number of rows that the next rule needs."""
        return self._test(0, self.explained(known, self._least), len(known) + 1).needed

    @property
    def _least(self) -> float:
        """The half-width of a rule that fits exactly, or as exactly as was asked for."""
        if self.tolerance != "auto" and self.tolerance > 0:
            return float(self.tolerance)
        return self._scale * self.precision

    def _test(self, rows: int, explained: Explained, place: int) -> FurtherRule:
        return FurtherRule(rows, rows_needed(explained, self.X.shape[1], self._failure(place)))

    def _failure(self, place: int) -> float:
        """Half of what the test of one rule may fail with: for what is explained, and for what chance adds."""
        return failure_of(place) / self.looks / 2

    def further(self, known: Sequence[KnownRule], among: BoolArray | None = None) -> TestedRule | None:
        """Return a rule that far more of the rows left follow than chance and the known rules explain; None without.

        Only rows that are `among` some count, if these are given.
        """
        first = self.explained(known, self._least)
        counted = np.ones(len(self.y), dtype=bool) if among is None else among
        left = first.left & counted & ~np.any([rule.fits for rule in known], axis=0)
        members = np.flatnonzero(left)
        if len(members) < self._test(0, first, len(known) + 1).needed:
            return None
        for attempt in range(ATTEMPTS):
            rng, some = np.random.default_rng([self.seed, attempt]), members
            if attempt and len(members) > ATTEMPT_ROWS:
                some = rng.choice(members, ATTEMPT_ROWS, replace=False)
            elif attempt:
                some = rng.choice(members, 2 * len(members) // 3, replace=False)
            rows = ArrayRows(self.X[some], self.y[some], precision=self.precision)
            found = recover(rows, tolerance=self.tolerance, inliers="exact", rng=rng, callback=self.callback)
            level = found.certificates[0].agreement
            rule = self._tested(found.coef[:, 0], level, known, left, counted)
            if rule is not None:
                return rule
        return None

    def _tested(
        self, coef: FloatArray, level: Agreement, known: Sequence[KnownRule], left: BoolArray, counted: BoolArray
    ) -> TestedRule | None:
        """Polish a formula on all rows that agree, and return it if it passes its test."""
        X, y = self.X, self.y
        sample = Sample(X, y, None, np.arange(len(y)))
        polished = polish(sample, coef, level, IDENTITY)
        coef = polished.coef
        if span_of(X[polished.rows.agree]).groups:  # of the formulas that fit the same rows, that with the fewest terms
            coef, _ = shorten(sample, coef, level, IDENTITY)
        coef, fractions = snap(sample, level.agree(X, y, coef), coef, level, IDENTITY)
        agree = level.agree(X, y, coef)
        exact = all(value is not None for value in fractions)
        # Of a row that agrees, whose label is about as large as the terms allow.
        size = 2 * (np.abs(X) @ np.abs(coef)).max(keepdims=True)
        half = float(level.half_widths(size, coef)[0]) * (1 if exact or not level.rounded else 2)
        explained = self.explained(known, half)
        own = agree & explained.left & counted
        test = self._test(int(np.count_nonzero(own)), explained, len(known) + 1)
        if not test.is_certified or len(np.unique(X[own], axis=0)) < DIFFERENT_ROWS * X.shape[1]:
            return None
        if not stands_out(Formula(coef, level, IDENTITY), sample.take(left | own), X.shape[1]):
            return None
        return TestedRule(X @ coef, agree, half, coef, fractions, level, test)


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
