"""The search for a parameter that fits more rows: several ways to propose one, cheapest first, every one counted.

L1 regression in radial-isotropic position finds the truth where the structural condition holds (Lemma 2.3). Where it
does not, the truth may still fit far more rows than anything else, and a candidate is cheap to check. The ways fail on
different tables, so that together they do better than each:

- *concentration* from zero (finds the truth among gross errors), from the L1 answer, and from points around it
  (finds it among rows that follow another rule);
- *concentration from few random rows* (FAST-LTS), for less than about a third of wrong rows;
- *consensus* of k random rows, for few columns or few wrong rows;
- *L1 with random weights*;
- with limits, *L1 from other active rows*: those of random directions, where the alternation ends elsewhere; and
  *concentration without the rows of the leader*, which outnumber the right ones where an adversary answers by a rule.

Rounds double what is spent on each. The search ends when a parameter fits more than `enough`, when some rounds bring no
improvement, when (with limits) several ways end at the same majority, when consensus has drawn so often that it cannot
have missed a large share, when the first rounds found nothing that labels without a rule would not give (then there is
no exact rule to find), or after the last round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import comb

import numpy as np
from numpy.typing import NDArray

from massart.fast_lts import random_subsets
from massart.rows import Callback, FloatArray, Progress, silent
from massart.search.alternation import active_rows, alternate
from massart.search.concentration import concentrate
from massart.search.consensus import Candidate, Consensus

_SHARES = (0.5, 0.55, 0.45, 0.4, 0.35, 0.3)
"""Shares of the rows that concentration keeps: larger ones resist chance, smaller ones wrong rows."""

_SMALL_SHARES = (0.25, 0.2)
"""Also tried with limits: wrong labels may be decisive where right ones are not."""

_TINY = 1e-9
"""Length of a start, relative to the labels, that is zero but for the rows it makes active."""

_DIRECTIONS = 20
_ALTERNATIONS = 8

_DISTANCES = (0.1, 0.3, 0.6)
"""How far around an answer concentration starts, relative to its length."""

_SHARE_MET, _CERTAINTY = 0.45, 20.0  # misses a parameter that fits so many rows with a probability of exp(-20)

_PREFERENCES = (0.0, 0.0, 1.0, 2.0, 4.0)
"""Powers of their inverse length with which rows are drawn, in turns."""

_STEEPEST = 300.0
"""The largest logarithm of a rate with which a row is drawn, against the median one."""

_STEPS = 15
_ROUNDS = 7
_BUDGET = 1e11  # floating-point operations of the last round, about
_ROUNDS_FOR_ACCIDENTS = ((8, 1), (7, 2), (0, 4))
_ROUNDS_FOR_ACCIDENTS_WITH_LIMITS = ((12, 1), (0, 3))
"""With so many rows a column, so many rounds are tried before an accident is believed to be one.

benchmarks/linear_cases.py and relu_cases.py, Gaussian tables with 40 % wrong: with five rows a column (ten with limits)
one table in ten is found in a later round than the first; with seven, one in sixty in the second one.
"""

_PATIENCE, _PATIENCE_WITH_A_MAJORITY = 4, 2  # rounds without improvement
_L1_ANSWERS = 6  # with limits, where they cost the most and find the least, one
_SURE_HITS, _SMALL_SHARE, _MOST_DRAWS = 8, 0.25, 10_000
"""With few columns so many draws are made that a parameter which fits this share of the rows is met so often."""

_DRAWS, _DRAWS_WITH_LIMITS = 1000, 3000
_HITS = 3  # ways with limits, where no count proves a majority, that end at the same one
_BATCH_BYTES = 1 << 25


def search(
    problem: Consensus,
    first: FloatArray,
    rng: np.random.Generator,
    *,
    enough: float,
    rounds: int = _ROUNDS,
    callback: Callback = silent,
) -> Candidate:
    """Return the parameter that fits the most weight of rows among all that the portfolio proposes.

    `first`, (k,), is the L1 answer; nothing better is looked for above the agreement `enough`; each of the rounds costs
    about twice the one before.
    """
    portfolio = _Portfolio(problem, first, rng, enough)
    best = problem.best(first[None])
    step = stale = hits = 0
    affordable = int(np.log2(max(1.0, _BUDGET / portfolio.cost)))
    for number in range(min(rounds, 1 + affordable)):
        before = best.agreement
        for way in portfolio.ways(number):
            if problem.settled(best, enough) or portfolio.exhausted:
                return best
            found = way(2**number)
            if found.agreement >= best.agreement:
                hits = 1 if found.agreement > best.agreement else hits + 1
                best = portfolio.leader = found
            if problem.limits is not None and hits >= _HITS and problem.has_majority(best):
                return best
            step += 1
            callback(Progress("search", step, problem.total - best.agreement, problem.total - enough))
        stale = stale + 1 if best.agreement == before else 0
        if stale >= (portfolio.patience if problem.has_majority(best) else _PATIENCE):
            return best
        if number + 1 >= portfolio.rounds_for_accidents and problem.is_accident(best):
            return best
    return best


class _Portfolio:
    """The ways to propose a candidate; each spends `effort` times its smallest cost."""

    def __init__(self, problem: Consensus, first: FloatArray, rng: np.random.Generator, enough: float) -> None:
        self.problem = problem
        self.first = first
        self.rng = rng
        self.enough = enough
        self.leader = problem.best(first[None])
        self.draws = 0

    @property
    def patience(self) -> int:
        """Rounds without improvement that end the search when there is a majority."""
        return _PATIENCE_WITH_A_MAJORITY - self._limited

    @property
    def rounds_for_accidents(self) -> int:
        """Rounds after which a leader that labels without a rule might give ends the search."""
        n, k = self.problem.Z.shape
        table = _ROUNDS_FOR_ACCIDENTS_WITH_LIMITS if self._limited else _ROUNDS_FOR_ACCIDENTS
        return next(rounds for ratio, rounds in table if n >= ratio * k)

    @property
    def cost(self) -> float:
        """Floating-point operations of the first round, about: those of `around`."""
        n, k = self.problem.Z.shape
        return float(100 * len(_DISTANCES) * _STEPS * n * k**2)

    @property
    def exhausted(self) -> bool:
        """Whether consensus would have met any parameter that fits a share `_SHARE_MET` of the rows, or any at all."""
        likely = _SHARE_MET**self.first.size
        likely = max(likely, 1 / max(1, comb(len(self.problem.decisive), self.first.size)))
        return bool(self.draws * -np.log1p(-min(likely, 0.5)) > _CERTAINTY)

    def ways(self, number: int) -> list[Callable[[int], Candidate]]:
        """Return what one round tries, cheapest first."""
        ways: list[Callable[[int], Candidate]] = [
            self.without_leader,
            self.few_rows,
            self.consensus,
            self.around,
            self.random_weights,
        ]
        if self._limited:
            ways.insert(3, self.directions)
        if not number:
            ways.insert(0, self.plain_starts)
        return ways if self.cost <= _BUDGET else ways[:1]

    def plain_starts(self, effort: int) -> Candidate:
        """Concentrate from zero, from least squares, from the L1 answer and, with limits, from directions at zero."""
        return self._concentrate(self._plain_starts(self.problem), _SHARES + _SMALL_SHARES * self._limited)

    def without_leader(self, effort: int) -> Candidate:
        """Concentrate on the rows that the leader does not explain."""
        fitted = self.problem.fits(self.leader.w[None])[0]
        fitted[np.setdiff1d(np.arange(len(fitted)), self.problem.decisive)] = False
        rest = self.problem.restricted(np.flatnonzero(~fitted))
        if len(rest.decisive) <= rest.Z.shape[1]:
            return self.leader
        starts = self._plain_starts(rest)
        found = [concentrate(rest, starts, share, _STEPS, rest.total).w for share in _SHARES]
        return self.problem.best(np.stack(found))

    def _plain_starts(self, problem: Consensus) -> FloatArray:
        Z, y = problem.least_squares.Z, problem.least_squares.y
        starts = np.vstack([np.zeros(Z.shape[1]), problem.least_squares.fit(np.ones((1, len(y)))), self.first])
        if not self._limited:
            return starts
        directions = np.vstack([Z.sum(axis=0), self.rng.standard_normal((_DIRECTIONS, Z.shape[1]))])
        return np.vstack([starts, _TINY * float(np.abs(y).max(initial=1.0)) * directions])

    @property
    def _limited(self) -> bool:
        return self.problem.limits is not None

    def directions(self, effort: int) -> Candidate:
        """Concentrate from the L1 answers on the active rows of random directions."""
        directions = self.rng.standard_normal((effort, self.first.size))
        return self._from_l1((direction, self.problem.weights) for direction in directions)

    def around(self, effort: int) -> Candidate:
        """Concentrate from points around the L1 answer."""
        k = self.first.size
        length = np.linalg.norm(self.first) / np.sqrt(k)
        spread = np.repeat(_DISTANCES, 20 * effort)[:, None] * length
        return self._concentrate(self.first + spread * self.rng.standard_normal((spread.size, k)), _SHARES[:5])

    def few_rows(self, effort: int) -> Candidate:
        """Concentrate from fits of a few random rows more than there are columns; with limits, of many rows, too.

        Rows that are active for the right parameter are mostly right, whatever their share of all decisive ones: so
        large random sets and large shares find it where small ones drown.
        """
        n, k = len(self.problem.decisive), self.first.size
        few, share = min(n, k + 1), 0.5 + 0.5 * (k + 1) / max(n, k + 1)
        if not self._limited:
            return self._concentrate(self._fits(100 * effort, few), (share,))
        best = Candidate(self.first, -1.0)
        for size, kept in ((few, share), (round(0.75 * n), 0.8), (round(0.88 * n), 0.8), (round(0.88 * n), 0.92)):
            starts = self._fits(100 * effort, max(few, size))
            best = max(best, self._concentrate(starts, (kept,)), key=lambda candidate: candidate.agreement)
            if self._settled(best):
                break
        return best

    def _fits(self, count: int, size: int) -> FloatArray:
        """Return least-squares fits of random sets of rows."""
        return self.problem.least_squares.fit_subsets(self._subsets(count, size))

    def consensus(self, effort: int) -> Candidate:
        """Count what k random rows, fitted exactly, agree with."""
        n, k = self.problem.Z.shape
        best = Candidate(self.first, -1.0)
        left = (_DRAWS_WITH_LIMITS if self._limited else _DRAWS) * effort
        left = max(left, int(min(_SURE_HITS / _SMALL_SHARE**k, _MOST_DRAWS)))
        while left > 0 and not self._settled(best):
            size = min(left, max(1, _BATCH_BYTES // (8 * max(k * k, n))))
            W = self._fits(size, min(len(self.problem.decisive), k))
            best = max(best, self.problem.best(W), key=lambda candidate: candidate.agreement)
            self.draws += size * _PREFERENCES.count(0.0) // len(_PREFERENCES)
            left -= size
        return best

    def random_weights(self, effort: int) -> Candidate:
        """Concentrate from L1 answers for exponential row weights."""
        shape = (effort if self._limited else _L1_ANSWERS * effort, len(self.problem.y))
        weights = self.problem.weights * self.rng.exponential(size=shape)
        return self._from_l1((self.first, row_weights) for row_weights in weights)

    def _from_l1(self, problems: Iterator[tuple[FloatArray, FloatArray]]) -> Candidate:
        """Concentrate from the L1 answers for some starts and row weights."""
        answers = [w for start, weights in problems for w in alternate(self.problem, start, _ALTERNATIONS, weights)]
        return self._concentrate(np.stack([self.first, *answers]), _SHARES[:4])

    def _settled(self, best: Candidate) -> bool:
        return self.problem.settled(best, self.enough)

    def _concentrate(self, starts: FloatArray, shares: tuple[float, ...]) -> Candidate:
        best = Candidate(starts[0], -1.0)
        for share in shares:
            found = concentrate(self.problem, starts, share, _STEPS, self.enough)
            best = max(best, found, key=lambda candidate: candidate.agreement)
            if self._settled(best):
                break
        return best

    def _subsets(self, count: int, size: int) -> NDArray[np.intp]:
        """Return `count` random sets of `size` different decisive rows; a share of them prefers short rows.

        With limits every other set prefers the rows that are active for the first answer: more of them are right.
        """
        rows = self.problem.decisive
        preference = np.resize(_PREFERENCES, count)[:, None]
        logarithms = np.log(self.problem.lengths[rows])
        rates = np.exp(np.clip(preference * (np.median(logarithms) - logarithms), -_STEEPEST, _STEEPEST))
        if self.problem.limits is not None:
            active = active_rows(self.problem, self.problem.limits, self.first)[rows]
            if active.sum() >= size:
                rates[::2, ~active] = 0.0
        return random_subsets(count, size, rates, self.rng)
