"""The search for a parameter that fits more rows: several ways to propose one, cheapest first, every one counted.

L1 regression in radial-isotropic position finds the truth where the structural condition holds (Lemma 2.3). Where it
does not, the truth may still fit far more rows than anything else, and a candidate is cheap to check. The ways fail on
different tables, so that together they do better than each:

- *concentration* from zero (finds the truth among gross errors), from the L1 answer, and from points around it
  (finds it among rows that follow another rule);
- *concentration from few random rows* (FAST-LTS), for less than about a third of wrong rows;
- *consensus* of k random rows, for few columns or few wrong rows;
- *L1 with other weights*: random ones, and ones lowered on the rows that a failed answer fits;
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

from massart.progress import Callback, Progress, silent
from massart.rows import FloatArray
from massart.search.alternation import active_rows, alternate
from massart.search.concentration import concentrate, least_squares
from massart.search.problem import Candidate, Consensus

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

_STEPS = 15
_ROUNDS = 7
_BUDGET = 1e11  # floating-point operations of the last round, about
_PATIENT_ROUNDS = 4
_PLENTY, _PLENTY_WITH_LIMITS = 6, 12  # rows a column
"""With fewer rows than plenty a column, so many rounds are tried before an accident is believed; one with more.

benchmarks/linear_cases.py, Gaussian tables with 40 % wrong: with five rows a column one in ten is found in rounds two
to four, from seven on all are found in the first.
"""

_PATIENCE, _PATIENCE_WITH_A_MAJORITY = 4, 2  # rounds without improvement
_FRUGAL = 3  # with limits L1 answers cost the most and find the least: so many times fewer, and other ways more
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

    Parameters
    ----------
    problem : Consensus
    first : (k,) array
        The L1 answer.
    rng : numpy.random.Generator
    enough : float
        Agreement above which nothing better is looked for.
    rounds : int
        Each round costs about twice the one before.
    callback : callable
        Called after each way of each round.
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
        self.lowered = problem.weights.copy()  # weights that fall on rows that failed answers fit
        self.failed = first
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
        return 1 if n >= (_PLENTY_WITH_LIMITS if self._limited else _PLENTY) * k else _PATIENT_ROUNDS

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
            self.lowered_weights,
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
        W = self.leader.w[None]
        fitted = self.problem.fits(self.problem.residuals(W), W)[0]
        fitted[np.setdiff1d(np.arange(len(fitted)), self.problem.decisive)] = False
        rest = self.problem.restricted(np.flatnonzero(~fitted))
        if len(rest.decisive) <= rest.Z.shape[1]:
            return self.leader
        starts = self._plain_starts(rest)
        found = [concentrate(rest, starts, share, _STEPS, rest.total).w for share in _SHARES]
        return self.problem.best(np.stack(found))

    def _plain_starts(self, problem: Consensus) -> FloatArray:
        Z, y = problem.Z[problem.decisive], problem.y[problem.decisive]
        starts = np.stack([np.zeros(Z.shape[1]), least_squares(Z[None], y[None])[0], self.first])
        if not self._limited:
            return starts
        directions = np.vstack([Z.sum(axis=0), self.rng.standard_normal((_DIRECTIONS, Z.shape[1]))])
        return np.vstack([starts, _TINY * float(np.abs(y).max(initial=1.0)) * directions])

    @property
    def _limited(self) -> bool:
        return self.problem.limits is not None

    def directions(self, effort: int) -> Candidate:
        """Concentrate from the L1 answers on the active rows of random directions."""
        best = Candidate(self.first, -1.0)
        for direction in self.rng.standard_normal((effort, self.first.size)):
            for w in alternate(self.problem, direction, _ALTERNATIONS):
                best = max(best, self._concentrate(w[None], _SHARES[:4]), key=lambda candidate: candidate.agreement)
                if self._settled(best):
                    return best
        return best

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
        fits = []
        batch = max(1, _BATCH_BYTES // (8 * size * self.first.size))
        for first in range(0, count, batch):
            chosen = self._subsets(min(batch, count - first), size)
            fits.append(least_squares(self.problem.Z[chosen], self.problem.y[chosen]))
        return np.concatenate(fits)

    def consensus(self, effort: int) -> Candidate:
        """Count what k random rows, fitted exactly, agree with."""
        n, k = len(self.problem.y), self.first.size
        best = Candidate(self.first, -1.0)
        left = (1000 * _FRUGAL if self._limited else 1000) * effort
        while left > 0 and not self._settled(best):
            size = min(left, max(1, _BATCH_BYTES // (8 * k * max(k, n // k + 1))))
            chosen = self._subsets(size, min(len(self.problem.decisive), k))
            W = least_squares(self.problem.Z[chosen], self.problem.y[chosen])
            best = max(best, self.problem.best(W), key=lambda candidate: candidate.agreement)
            self.draws += size * _PREFERENCES.count(0.0) // len(_PREFERENCES)
            left -= size
        return best

    def random_weights(self, effort: int) -> Candidate:
        """Concentrate from L1 answers for exponential row weights."""
        n = len(self.problem.y)
        return self._from_l1(self.problem.weights * self.rng.exponential(size=n) for _ in range(self._answers(effort)))

    def lowered_weights(self, effort: int) -> Candidate:
        """Concentrate from L1 answers after lowering the weights of the rows that the last one fitted."""

        def weights() -> Iterator[FloatArray]:
            for _ in range(self._answers(effort)):
                failed = self.failed[None]
                fitted = self.problem.fits(self.problem.residuals(failed), failed)[0]
                self.lowered[fitted] *= 0.7
                yield self.lowered

        return self._from_l1(weights(), remember=True)

    def _answers(self, effort: int) -> int:
        return effort if self._limited else _FRUGAL * effort

    def _from_l1(self, weights: Iterator[FloatArray], remember: bool = False) -> Candidate:
        best = Candidate(self.first, -1.0)
        for row_weights in weights:
            for w in alternate(self.problem, self.failed, _ALTERNATIONS, row_weights):
                if remember:
                    self.failed = w
                best = max(best, self._concentrate(w[None], _SHARES[:4]), key=lambda candidate: candidate.agreement)
                if self._settled(best):
                    return best
        return best

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
        keys = -self.rng.gumbel(size=(count, len(rows)))
        preference = np.resize(_PREFERENCES, count)[:, None]
        keys += preference * np.log(self.problem.lengths[rows])
        if self.problem.limits is not None:
            inactive = ~active_rows(self.problem, self.problem.limits, self.first)[rows]
            keys[::2] += np.where(inactive, np.inf if (~inactive).sum() >= size else 0.0, 0.0)
        if size == keys.shape[1]:
            return rows[np.argsort(keys, axis=1)]
        return rows[np.argpartition(keys, size, axis=1)[:, :size]]
