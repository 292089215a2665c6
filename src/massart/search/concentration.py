"""Concentration steps (:mod:`massart.fast_lts`) for the count of rows: every parameter on the way is a candidate.

All starts are followed to the end: on hard tables (benchmarks/linear_cases.py, Gaussian with 120 rows and 30 columns)
the squares after two steps do not tell those that end at the truth.

With limits, h is a share of the decisive rows that are active for the parameter, and changes with it.
"""

from __future__ import annotations

import numpy as np

from massart.fast_lts import smallest
from massart.rows import BoolArray, FloatArray
from massart.search.consensus import Candidate, Consensus, Limits

_STILL = 1e-12  # relative change at which a start has arrived
_BATCH_BYTES = 1 << 23


def concentrate(problem: Consensus, starts: FloatArray, share: float, steps: int, enough: float) -> Candidate:
    """Return the best parameter met on the way from each of the `starts`, (b, k), with a `share` of the rows kept.

    Ends early when a parameter settles the problem (:meth:`Consensus.settled`).
    """
    n, k = problem.Z.shape
    best = Candidate(starts[0], -1.0)
    batch = max(1, _BATCH_BYTES // (8 * max(n, k * k)))
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
