"""The search for a parameter that fits more rows: several ways to propose one, cheapest first, every one counted.

L1 regression in radial-isotropic position finds the truth where the structural condition holds (Lemma 2.3). Where it
does not, the truth may still fit far more rows than anything else, and a candidate is cheap to check. The ways fail on
different tables, so that together they do better than each:

- *concentration* from zero (finds the truth among gross errors), from the L1 answer, and from points around it
  (finds it among rows that follow another rule);
- *concentration from few random rows* (FAST-LTS), for less than about a third of wrong rows;
- *consensus* of k random rows, for few columns or few wrong rows;
- *L1 with other weights*: random ones, and ones lowered on the rows that a failed answer fits.

Rounds double what is spent on each. The search ends when a parameter fits more than `enough`, when some rounds bring no
improvement, when consensus has drawn so often that it cannot have missed a large share, when the first rounds found
nothing beyond chance (then there is no exact rule to find), or after the last round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from massart.l1 import l1_regression
from massart.progress import Callback, Progress, silent
from massart.rows import FloatArray
from massart.search.concentration import concentrate, least_squares
from massart.search.problem import Candidate, Consensus

_SHARES = (0.5, 0.55, 0.45, 0.4, 0.35, 0.3)
"""Shares of the rows that concentration keeps: larger ones resist chance, smaller ones wrong rows."""

_DISTANCES = (0.1, 0.3, 0.6)
"""How far around an answer concentration starts, relative to its length."""

_SHARE_MET, _CERTAINTY = 0.45, 20.0  # misses a parameter that fits so many rows with a probability of exp(-20)

_PREFERENCES = (0.0, 0.0, 1.0, 2.0, 4.0)
"""Powers of their inverse length with which rows are drawn, in turns."""

_STEPS = 15
_ROUNDS = 7
_BUDGET = 1e11  # floating-point operations of the last round, about
_ROUNDS_FOR_CHANCE = 3
_PATIENCE, _PATIENCE_WITH_A_MAJORITY = 4, 2  # rounds without improvement
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
    step = stale = 0
    affordable = int(np.log2(max(1.0, _BUDGET / portfolio.cost)))
    for number in range(min(rounds, 1 + affordable)):
        before = best.agreement
        for way in portfolio.ways(number):
            if best.agreement > enough or portfolio.exhausted:
                return best
            best = max(best, way(2**number), key=lambda candidate: candidate.agreement)
            step += 1
            callback(Progress("search", step, problem.total - best.agreement, problem.total - enough))
        stale = stale + 1 if best.agreement == before else 0
        if stale >= (_PATIENCE if best.agreement <= problem.total / 2 else _PATIENCE_WITH_A_MAJORITY):
            return best
        if number >= _ROUNDS_FOR_CHANCE and best.agreement <= problem.chance:
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
        self.draws = 0

    @property
    def cost(self) -> float:
        """Floating-point operations of the first round, about: those of `around`."""
        n, k = self.problem.Z.shape
        return float(100 * len(_DISTANCES) * _STEPS * n * k**2)

    @property
    def exhausted(self) -> bool:
        """Whether consensus would have met any parameter that fits a share `_SHARE_MET` of the rows."""
        return bool(self.draws * -np.log1p(-(_SHARE_MET**self.first.size)) > _CERTAINTY)

    def ways(self, number: int) -> list[Callable[[int], Candidate]]:
        """Return what one round tries, cheapest first."""
        ways: list[Callable[[int], Candidate]] = [
            self.few_rows,
            self.consensus,
            self.around,
            self.random_weights,
            self.lowered_weights,
        ]
        if not number:
            ways.insert(0, self.plain_starts)
        return ways if self.cost <= _BUDGET else ways[:1]

    def plain_starts(self, effort: int) -> Candidate:
        """Concentrate from zero, from least squares and from the L1 answer."""
        Z, y = self.problem.Z, self.problem.y
        starts = np.stack([np.zeros(Z.shape[1]), least_squares(Z[None], y[None])[0], self.first])
        return self._concentrate(starts, _SHARES)

    def around(self, effort: int) -> Candidate:
        """Concentrate from points around the L1 answer."""
        k = self.first.size
        length = np.linalg.norm(self.first) / np.sqrt(k)
        spread = np.repeat(_DISTANCES, 20 * effort)[:, None] * length
        return self._concentrate(self.first + spread * self.rng.standard_normal((spread.size, k)), _SHARES[:5])

    def few_rows(self, effort: int) -> Candidate:
        """Concentrate from fits of a few random rows more than there are columns."""
        n, k = self.problem.Z.shape
        chosen = self._subsets(100 * effort, min(n, k + 1))
        starts = least_squares(self.problem.Z[chosen], self.problem.y[chosen])
        return self._concentrate(starts, (0.5 + 0.5 * (k + 1) / n,))

    def consensus(self, effort: int) -> Candidate:
        """Count what k random rows, fitted exactly, agree with."""
        n, k = self.problem.Z.shape
        best = Candidate(self.first, -1.0)
        left = 1000 * effort
        while left > 0 and best.agreement <= self.enough:
            size = min(left, max(1, _BATCH_BYTES // (8 * k * max(k, n // k + 1))))
            chosen = self._subsets(size, min(n, k))
            W = least_squares(self.problem.Z[chosen], self.problem.y[chosen])
            best = max(best, self.problem.best(W), key=lambda candidate: candidate.agreement)
            self.draws += size * _PREFERENCES.count(0.0) // len(_PREFERENCES)
            left -= size
        return best

    def random_weights(self, effort: int) -> Candidate:
        """Concentrate from L1 answers for exponential row weights."""
        n = len(self.problem.y)
        return self._from_l1(self.problem.weights * self.rng.exponential(size=n) for _ in range(3 * effort))

    def lowered_weights(self, effort: int) -> Candidate:
        """Concentrate from L1 answers after lowering the weights of the rows that the last one fitted."""

        def weights() -> Iterator[FloatArray]:
            for _ in range(3 * effort):
                failed = self.failed[None]
                fitted = self.problem.fits(self.problem.residuals(failed), failed)[0]
                self.lowered[fitted] *= 0.7
                yield self.lowered

        return self._from_l1(weights(), remember=True)

    def _from_l1(self, weights: Iterator[FloatArray], remember: bool = False) -> Candidate:
        best = Candidate(self.first, -1.0)
        for row_weights in weights:
            w = l1_regression(self.problem.Z, self.problem.y, sample_weight=row_weights).coef
            if remember:
                self.failed = w
            best = max(best, self._concentrate(w[None], _SHARES[:4]), key=lambda candidate: candidate.agreement)
            if best.agreement > self.enough:
                break
        return best

    def _concentrate(self, starts: FloatArray, shares: tuple[float, ...]) -> Candidate:
        best = Candidate(starts[0], -1.0)
        for share in shares:
            size = round(share * len(self.problem.y))
            found = concentrate(self.problem, starts, size, _STEPS, self.enough)
            best = max(best, found, key=lambda candidate: candidate.agreement)
            if best.agreement > self.enough:
                break
        return best

    def _subsets(self, count: int, size: int) -> NDArray[np.intp]:
        """Return `count` random sets of `size` different rows; a share of them prefers short rows."""
        keys = -self.rng.gumbel(size=(count, len(self.problem.y)))
        preference = np.resize(_PREFERENCES, count)[:, None]
        keys += preference * np.log(self.problem.lengths)
        if size == keys.shape[1]:
            return np.argsort(keys, axis=1)
        return np.argpartition(keys, size, axis=1)[:, :size]
