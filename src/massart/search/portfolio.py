"""The search for a parameter that fits more rows: several ways to propose one, cheapest first, every one counted.

L1 regression in radial-isotropic position finds the truth where the structural condition holds (Lemma 2.3). Where it
does not, the truth may still fit far more rows than anything else, and a candidate is cheap to check. The ways fail on
different tables, so that together they do better than each:

- *concentration* from zero (finds the truth among gross errors), from the L1 answer, and from points around it
  (finds it among rows that follow another rule);
- *concentration without the rows of the leader*, which outnumber the right ones where an adversary answers by a rule;
- *concentration from few random rows* (FAST-LTS), for less than about a third of wrong rows;
- *consensus* of k random rows, for few columns or few wrong rows;
- *L1 with random weights*.

Rounds double what is spent on each. The search ends when a parameter fits more than `enough`, when some rounds bring no
improvement, when consensus has drawn so often that it cannot have missed a large share, when the first rounds found
nothing that labels without a rule would not give (then there is no exact rule to find), or after the last round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import comb
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, Callback, FloatArray, Progress, silent
from massart.search.consensus import Consensus, FittedParameter, Limits, active_rows, alternate
from massart.search.fast_lts import random_subsets, smallest

SHARES = (0.5, 0.4, 0.3)
"""Shares of the rows that concentration keeps: larger ones resist chance, smaller ones wrong rows."""

DISTANCES = (0.1, 0.3, 0.6)
"""How far around an answer concentration starts, relative to its length."""

ROUNDS, STEPS = 7, 15
"""Rounds at most, and steps of a concentration."""

PATIENCE, PATIENCE_WITH_A_MAJORITY, PLENTY = 4, 2, 12
"""Rounds without improvement that end the search, also where a majority leads; one with this many rows a column."""

SETS, DRAWS, MOST_DRAWS = 100, 1_000, 10_000
"""Random sets in the first round that concentration starts from, and that are only counted; and counted ones at most
where few columns make more of them worth it (`tests/test_recover_cases.py`, a minority of 30 % in 200 rows)."""

SMALL_SHARE, SURE_HITS, SHARE_MET, CERTAINTY = 0.25, 8, 0.45, 20.0
"""With few columns draws meet a parameter that fits the first share of the rows this often; and a search is exhausted
that misses one of the second share with a probability of exp(-20)."""

ROWS_FOR_ONE_ROUND, MOST_FOR_ACCIDENTS = 8, 4
"""With as many rows a column, one round is enough to tell that a leader is an accident; with fewer, up to four
(`linear_cases.py`, Gaussian tables with 40 % wrong: with five rows a column one in ten is found in a later round)."""

BUDGET = 1e11
"""Floating-point operations of the last round, about."""

_TINY = 1e-9  # length of a start, relative to the labels, that is zero but for the rows it makes active
_STEEPEST = 300.0  # the largest logarithm of a rate with which a row is drawn, against the median one
_STILL = 1e-12  # relative change at which a start has arrived
_DIRECTIONS, _ALTERNATIONS = 20, 8
_BATCH_BYTES, _STEP_BYTES = 1 << 25, 1 << 23


def search(
    problem: Consensus,
    first: FloatArray,
    rng: np.random.Generator,
    *,
    enough: float,
    rounds: int = ROUNDS,
    callback: Callback = silent,
) -> FittedParameter:
    """Return the parameter that fits the most weight of rows among all that the portfolio proposes.

    `first`, (k,), is the L1 answer; nothing better is looked for above the agreement `enough`; each of the rounds costs
    about twice the one before.
    """
    (n, k), n_decisive = problem.Z.shape, len(problem.decisive)
    best, step, stale, spent = problem.best(first[None]), 0, 0, 0
    cost = 100 * len(DISTANCES) * STEPS * n * k**2  # of the first round
    likely = max(SHARE_MET**k, 1 / max(1, comb(n_decisive, k)))  # that a draw meets a large share, or any given set
    exhausting = CERTAINTY / -np.log1p(-min(likely, 0.5))
    for_accidents = min(max(ROWS_FOR_ONE_ROUND - n_decisive // k + 1, 1), MOST_FOR_ACCIDENTS)

    def leader() -> FittedParameter:
        return best

    if problem.settled(best, enough):
        return best
    for number in range(min(rounds, 1 + int(np.log2(max(1.0, BUDGET / cost))))):
        before = best.agreement
        for found in _ways(problem, first, leader, rng, enough, 2**number, cheap=cost > BUDGET):
            best = max(best, found, key=_agreement)
            if problem.settled(best, enough):
                return best
            step += 1
            callback(Progress("search", step, problem.total - best.agreement, problem.total - enough))
        spent += _draws(problem, 2**number) // 2  # the other half prefers short rows
        stale = stale + 1 if best.agreement == before else 0
        patience = PATIENCE_WITH_A_MAJORITY if problem.has_majority(best) else PATIENCE
        patience = 1 if n_decisive >= PLENTY * k else patience
        if spent > exhausting or stale >= patience or (number + 1 >= for_accidents and problem.is_accident(best)):
            return best
    return best


def _ways(
    problem: Consensus,
    first: FloatArray,
    leader: Callable[[], FittedParameter],
    rng: np.random.Generator,
    enough: float,
    effort: int,
    *,
    cheap: bool,
) -> Iterator[FittedParameter]:
    """Yield what each way of one round finds, the cheapest first; only that one where the others cost too much."""
    n, k, limited = len(problem.decisive), len(first), problem.limits is not None

    def concentrated(starts: FloatArray, shares: Sequence[float]) -> FittedParameter:
        best = FittedParameter(starts[0], -1.0)
        for share in shares:
            best = max(best, concentrate(problem, starts, share, STEPS, enough), key=_agreement)
            if problem.settled(best, enough):
                break
        return best

    def fits(count: int, size: int) -> FloatArray:
        return problem.least_squares.fit_subsets(_subsets(problem, first, count, min(n, size), rng))

    if effort == 1:
        yield concentrated(_plain_starts(problem, first, rng), SHARES)
    if cheap:
        return
    yield _without(problem, leader(), first, rng)
    yield concentrated(fits(SETS * effort, k + 1), (0.5 + 0.5 * (k + 1) / max(n, k + 1),))
    batch = max(1, _BATCH_BYTES // (8 * max(k * k, len(problem.y))))
    left = _draws(problem, effort)
    best = FittedParameter(first, -1.0)
    while left > 0 and not problem.settled(best, enough):
        best = max(best, problem.best(fits(min(left, batch), k)), key=_agreement)
        left -= batch
    yield best
    spread = np.repeat(DISTANCES, SETS // 5 * effort)[:, None] * np.linalg.norm(first) / np.sqrt(k)
    yield concentrated(first + spread * rng.standard_normal((len(spread), k)), SHARES)
    weights = problem.weights * rng.exponential(size=(effort if limited else 6 * effort, len(problem.y)))
    answers = (w for row in weights for w in alternate(problem, first, _ALTERNATIONS, row))
    yield concentrated(np.stack([first, *answers]), SHARES)


_agreement = attrgetter("agreement")


def _draws(problem: Consensus, effort: int) -> int:
    """Return how many sets of k rows are counted: with few columns, as many as meet even a small share."""
    k, draws = problem.Z.shape[1], DRAWS * effort * (3 if problem.limits is not None else 1)
    hits = MOST_DRAWS * SMALL_SHARE**k
    return max(draws, min(round(MOST_DRAWS * SURE_HITS / hits), MOST_DRAWS)) if hits > 0.5 else draws


def _plain_starts(problem: Consensus, first: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return zero, least squares, the L1 answer and, with limits, directions at zero."""
    Z, y = problem.least_squares.Z, problem.least_squares.y
    starts = np.vstack([np.zeros(Z.shape[1]), problem.least_squares.fit(np.ones((1, len(y)))), first])
    if problem.limits is None:
        return starts
    directions = np.vstack([Z.sum(axis=0), rng.standard_normal((_DIRECTIONS, Z.shape[1]))])
    return np.vstack([starts, _TINY * float(np.abs(y).max(initial=1.0)) * directions])


def _without(
    problem: Consensus, leader: FittedParameter, first: FloatArray, rng: np.random.Generator
) -> FittedParameter:
    """Concentrate on the rows that the leader does not explain."""
    fitted = problem.fits(leader.w[None])[0]
    fitted[np.setdiff1d(np.arange(len(fitted)), problem.decisive)] = False
    rest = problem.restricted(np.flatnonzero(~fitted))
    if len(rest.decisive) <= rest.Z.shape[1]:
        return leader
    starts = _plain_starts(rest, first, rng)
    return problem.best(np.stack([concentrate(rest, starts, share, STEPS, rest.total).w for share in SHARES]))


def _subsets(
    problem: Consensus, first: FloatArray, count: int, size: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return random sets of different decisive rows; every other one prefers short rows, an adversary's are long.

    With limits every other set prefers the rows that are active for the first answer: more of them are right.
    """
    rows = problem.decisive
    preference = np.resize((0.0, 0.0, 1.0, 3.0), count)[:, None]
    logarithms = np.log(problem.lengths[rows])
    rates = np.exp(np.clip(preference * (np.median(logarithms) - logarithms), -_STEEPEST, _STEEPEST))
    if problem.limits is not None:
        active = active_rows(problem, problem.limits, first)[rows]
        if active.sum() >= size:
            rates[::2, ~active] = 0.0
    return random_subsets(count, size, rates, rng)


def concentrate(problem: Consensus, starts: FloatArray, share: float, steps: int, enough: float) -> FittedParameter:
    """Return the best parameter met on the way from each of the `starts`, (b, k), with a `share` of the rows kept.

    All starts are followed to the end: on hard tables (benchmarks/linear_cases.py, Gaussian with 120 rows and 30
    columns) the squares after two steps do not tell those that end at the truth. With limits, the rows kept are a share
    of the decisive ones that are active for the parameter, and change with it.

    Ends early when a parameter settles the problem (:meth:`Consensus.settled`).
    """
    n, k = problem.Z.shape
    best = FittedParameter(starts[0], -1.0)
    batch = max(1, _STEP_BYTES // (8 * max(n, k * k)))
    for first in range(0, len(starts), batch):
        W = starts[first : first + batch]
        for _ in range(steps + 1):
            products = problem.products(W)
            found = problem.best(W, products)
            if found.agreement > best.agreement:
                best = found
                if problem.settled(best, enough):
                    return best
            W, previous = problem.least_squares.fit(_kept(problem, products, share)), W
            moving = np.abs(W - previous).max(axis=1) > _STILL * np.abs(W).max(axis=1)
            if not moving.any():
                break
            W = W[moving]
    return best


def _kept(problem: Consensus, products: FloatArray, share: float) -> FloatArray:
    """Return which of the decisive rows each parameter keeps: 1 for these, 0 for others."""
    k = problem.Z.shape[1]
    if problem.limits is None:
        n = len(problem.y)
        return smallest(np.abs(problem.y - products), min(max(round(share * n), k + 1), n))
    competing = _competing(problem, problem.limits, products)
    sizes = np.where(competing, np.abs(problem.least_squares.y - products[:, problem.decisive]), np.inf)
    counts = competing.sum(axis=1)
    return smallest(sizes, np.clip(np.rint(share * counts).astype(np.intp), np.minimum(k + 1, counts), counts))


def _competing(problem: Consensus, limits: Limits, products: FloatArray) -> BoolArray:
    """Return which decisive rows are active for each parameter; all of them where too few are to determine it."""
    active = limits.active(products)[:, problem.decisive]
    active[active.sum(axis=1) <= problem.Z.shape[1]] = True
    return active
