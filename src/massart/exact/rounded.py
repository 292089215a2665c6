r"""Simple numbers behind rounded labels: a point of the polytope that chance does not explain.

Each coefficient is known to an interval (:mod:`massart.exact.polytope`), and an arbitrary number has a multiple of g in
an interval of width b with probability b / g at most: the *chance* of a simple number. The search fixes the surest
coefficients, asks for the intervals of the others again, which are shorter now, and so on: every step keeps the
polytope from being empty, so that all rows still agree.

The first steps rest on wide intervals and may be wrong. So each number that was found is put on trial, in the interval
that it has when all others are fixed and it alone is free. An arbitrary number among simple ones survives with
the probability of its chance, so that one alone must be as unlikely as `_ALONE`. It may be likelier among
numbers that are beyond doubt together (their chances, step by step, multiply), and more so where no coefficient is
left over, since a formula of simple numbers has another one more often than a formula of arbitrary ones. Zeros
bear no witness for the others: columns without effect are as frequent among arbitrary coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from massart.agreement import Agreement, verify
from massart.agreement.decimals import DOUBLE
from massart.exact.normal_equations import NormalEquations, reduce_rows
from massart.exact.polytope import Intervals, Polytope
from massart.exact.simplest import Simple, simplest_number
from massart.rows import FloatArray

_STEP = 0.1
_SURE = 1e-2
"""Chances of the numbers that the search fixes: the best one if it is no likelier than the first, all at once if they
are no likelier than the second."""

_ALONE = 1e-4
"""Chance, on trial, of a number for itself."""

_BEYOND_DOUBT, _WHOLE = 1e-5, 1e-2
"""Product of the chances of the other numbers that makes one credible among them; and of all, where none is left."""

_AMONG, _LEFT = 3e-3, 0.25
"""Then the chance of one, on trial, is the first at most, times the number of the others, over that of the coefficients
that are left (plus the second)."""

_LEAP, _ON_A_GRID, _ROWS_A_POINT = 0.5, 0.25, 4
"""The same for a whole formula whose predictions are on a grid of which each point has so many rows, about; and the
chance, before that, of a number that is tried as the last."""

_MOST_COLUMNS = 24
"""With more, only formulas are found that are simple as a whole: linear programs take their time."""

_SIGMAS = 5.0
_EDGE = 1e-5
_FOUR_DIGITS = 1e-3
_MOST_PLACES = 30
_MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class RoundedAnswer:
    """Simple values of some coefficients, and a formula with them on which all rows agree."""

    fixed: dict[int, Fraction]
    formula: FloatArray


def search_polytope(equations: NormalEquations) -> RoundedAnswer:
    """Return the simple values of as many coefficients as rounded labels support; those that agree with the start."""
    search = _Search(equations)
    if not search.guess() and len(equations.start) <= _MOST_COLUMNS:
        search.climb()
        if not search.leap():
            search.judge()
    return search.answer()


def guess_formula(X: FloatArray, y: FloatArray, w: FloatArray, agreement: Agreement) -> FloatArray | None:
    """Return the formula of simple numbers that least squares on these rows suggests; None if there is none.

    Nothing is claimed for it. Wrong rows that agree with `w` by chance may exclude the truth from the polytope, but do
    not move least squares by much: count the rows that agree with the guess, and if they are no fewer, ask these.
    """
    search = _Search(reduce_rows(X, y, w, agreement))
    search.suggest()
    if len(search.fixed) < len(w):
        return None
    return np.array([float(search.fixed[j]) for j in range(len(w))])


class _Search:
    """What was fixed so far, with the chance of each step, and the rows that are asked."""

    def __init__(self, equations: NormalEquations) -> None:
        self.equations = equations
        agree, w = equations.agree, equations.start
        X, y = equations.X[agree], equations.y[agree]
        found = verify(X, y, w, equations.agreement)
        rest = found.residuals / found.half_widths
        self.polytope = self.whole = Polytope(X / found.half_widths[:, np.newaxis], rest, w)
        self.fixed: dict[int, Fraction] = {}
        self.chances: dict[int, float] = {}
        self.rounds = 0
        self.latest: tuple[Polytope, dict[int, float], Intervals] | None = None

    def climb(self) -> None:
        """Fix simple numbers while the polytope has any, the surest first."""
        intervals = self._intervals(self.fixed)
        while intervals is not None and len(self.fixed) < len(self.equations.start) and self.rounds < _MOST_ROUNDS:
            found = sorted(
                (simple.chance, j, simple.value)
                for j in range(len(self.equations.start))
                if j not in self.fixed and (simple := self._simplest(intervals, j, _STEP)) is not None
            )
            size = max(sum(chance <= _SURE for chance, _, _ in found), 1)
            inner = None
            while found and size and inner is None:
                group = {j: value for _, j, value in found[:size]}
                inner = self._intervals(self.fixed | group)
                if inner is None:
                    size //= 2
            if inner is None:
                return
            self.fixed |= group
            self.chances |= {j: chance for chance, j, _ in found[:size]}
            intervals = inner

    def guess(self) -> bool:
        """Fix all at once, and tell whether this stands: where all are simple, no program need be solved."""
        self.suggest()
        return self._stands_or_falls({})

    def suggest(self) -> None:
        """Fix simple numbers by the standard errors of least squares."""
        while len(self.fixed) < len(self.equations.start):
            floats = {j: float(value) for j, value in self.fixed.items()}
            w, spread = self.equations.formula(floats), self.equations.uncertainty(self.fixed, _SIGMAS)
            if not self._fix(Intervals(w - spread, w + spread, w), _STEP):
                return

    def leap(self) -> bool:
        """Fix all that is left at once, by the intervals of the polytope."""
        climbed = self.fixed.copy()
        intervals = self._intervals(climbed)
        if intervals is not None:
            self._fix(intervals, _LEAP)
        return self._stands_or_falls(climbed)

    def _fix(self, intervals: Intervals, most_chance: float) -> bool:
        """Fix every number that is simple enough, and tell whether there was any."""
        before = len(self.fixed)
        for j in set(range(len(self.equations.start))) - set(self.fixed):
            simple = self._simplest(intervals, j, most_chance)
            if simple is not None:
                self.fixed[j], self.chances[j] = simple.value, simple.chance
        return len(self.fixed) > before

    def _stands_or_falls(self, otherwise: dict[int, Fraction]) -> bool:
        """Tell whether the formula as a whole passes all trials; return to what was fixed otherwise if it does not."""
        if len(self.fixed) == len(self.equations.start) and self._intervals(self.fixed) is not None:
            self._dismiss_ties()
            if all(self._trial(j) <= self._most_chance(j) for j in self.fixed):
                return True
        self.polytope, self.fixed = self.whole, otherwise
        self.chances = {j: self.chances[j] for j in otherwise}
        return False

    def judge(self) -> None:
        """Free the numbers again that fail on trial."""
        while self.fixed and self.rounds < _MOST_ROUNDS:
            self._dismiss_ties()
            # To free one number makes the intervals of the others longer: whatever fails now would fail later.
            failed = [j for j in self.fixed if self._trial(j) > self._most_chance(j)]
            if not failed:
                return
            for j in failed:
                del self.fixed[j], self.chances[j]

    def _dismiss_ties(self) -> None:
        """Leave out rows that are at the very edge of agreement with what was found.

        Where all numbers are multiples of 0.0001, so are their residuals, and a formula off by 0.0001 has as
        many rows at half a cent as the true one has: on both sides they would pin it, whatever it is.
        """
        intervals = self._intervals(self.fixed)
        if intervals is None:
            return
        whole = self.polytope
        inside = np.abs(whole.rest - whole.X @ (intervals.centre - whole.start)) < 1 - _EDGE
        if not inside.all():
            self.polytope = Polytope(whole.X[inside], whole.rest[inside], whole.start)

    def _most_chance(self, j: int) -> float:
        """Return how likely by chance the number of coefficient j may be, on trial, given the others."""
        left = len(self.equations.start) - len(self.fixed)
        others = [i for i, value in self.fixed.items() if value and i != j]
        witnesses = others if left else [i for i, value in self.fixed.items() if value] or list(self.fixed)
        together = float(np.prod([self.chances[i] for i in witnesses]))
        if together > (_BEYOND_DOUBT if left else _WHOLE):
            return _ALONE
        most = min(_AMONG * max(len(others), not left) / (left + _LEFT), _STEP)
        if not left and self._on_a_grid():
            most = max(most, _ON_A_GRID)
        return most / self._excess(self.fixed[j])

    def _on_a_grid(self) -> bool:
        """Tell whether all rows have predictions on a grid so coarse that labels leave gaps, however many there are.

        Whole numbers times 0.137 are multiples of 0.001: then no label tells 9.9 from 9.9004, now or ever. That
        the interval of a number is long says little against it.
        """
        w = np.array([float(self.fixed[j]) for j in range(len(self.equations.start))])
        rest = self.polytope.rest - self.polytope.X @ (w - self.polytope.start)
        gaps = np.diff(np.sort(rest))
        return len(rest) > _ROWS_A_POINT * (1 + int((gaps > _EDGE).sum()))

    def answer(self) -> RoundedAnswer:
        """Return the numbers that are left, with the middle of what the rows allow for the others."""
        self.polytope = self.whole  # ties are rows that agree, too
        intervals = self._intervals(self.fixed) if self.fixed else None
        if intervals is None:
            return RoundedAnswer({}, self.equations.start)
        return RoundedAnswer(self.fixed, intervals.centre)

    def _trial(self, j: int) -> float:
        """Return the chance of the number found for coefficient j, in the interval that it has given the others."""
        intervals = self._intervals({i: value for i, value in self.fixed.items() if i != j}, only=j)
        simple = None if intervals is None else self._simplest(intervals, j, 1.0)
        return simple.chance if simple is not None and simple.value == self.fixed[j] else np.inf

    def _excess(self, value: Fraction) -> float:
        """Return how much finer the grid of a number is than four digits and the labels are."""
        if not value:
            return 1.0
        unit = min(10.0 ** np.floor(np.log10(abs(float(value)) * _FOUR_DIGITS)), 2 * self.equations.agreement.label)
        own = min(value.denominator**2, _decimal_denominator(value))
        return float(max(1.0, own * unit))

    def _intervals(self, fixed: dict[int, Fraction], only: int | None = None) -> Intervals | None:
        values = {j: float(value) for j, value in fixed.items()}
        if only is None and self.latest is not None and self.latest[:2] == (self.polytope, values):
            return self.latest[2]
        self.rounds += 1
        intervals = self.polytope.intervals(values, only)
        if only is None and intervals is not None:
            self.latest = (self.polytope, values, intervals)
        return intervals

    def _simplest(self, intervals: Intervals, j: int, most_chance: float) -> Simple | None:
        low, high = float(intervals.low[j]), float(intervals.high[j])
        if not np.isfinite(high - low):
            return None
        middle = (low + high) / 2
        return simplest_number(
            middle,
            (high - low) / 2 + 2 * DOUBLE * max(abs(low), abs(high), float(self.equations.natural[j])),
            float(self.equations.natural[j]),
            most_chance=most_chance,
            finest=2 * self.equations.agreement.label,
        )


def _decimal_denominator(value: Fraction) -> float:
    """Return the power of ten of which the decimal is a multiple; infinite for a number that is none."""
    power, denominator = 1, value.denominator
    while power < 10**_MOST_PLACES and power % denominator:
        power *= 10
    return float(power) if power % denominator == 0 else np.inf
