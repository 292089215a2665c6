"""Concentration steps, many at a time (Rousseeuw and Van Driessen 2006).

From a parameter, keep the h rows with the smallest residuals, fit them by least squares, and repeat: the sum of the h
smallest squares never rises. One start seldom ends at the truth; hundreds of them cost a few matrix products. With
limits, h is a share of the decisive rows that are active for the parameter, and changes with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.search.problem import Candidate, Consensus, Limits

_RIDGE = 1e-12  # relative: keeps the few singular systems among hundreds from stopping the others
_STILL = 1e-12  # relative change at which a start has arrived
_BATCH_BYTES = 1 << 25


def concentrate(problem: Consensus, starts: FloatArray, share: float, steps: int, enough: float) -> Candidate:
    """Return the best parameter met on the way from each of the `starts`, (b, k), with a `share` of the rows kept.

    Ends early when a parameter settles the problem (:meth:`Consensus.settled`).
    """
    n, k = problem.Z.shape
    best = Candidate(starts[0], -1.0)
    batch = max(1, int(_BATCH_BYTES // (8 * max(share * n, k + 1) * k)))
    for first in range(0, len(starts), batch):
        W = starts[first : first + batch]
        for _ in range(steps + 1):
            residuals = problem.residuals(W)
            found = problem.best(W, residuals)
            if found.agreement > best.agreement:
                best = found
                if problem.settled(best, enough):
                    return best
            W, previous = _refit(problem, W, residuals, share), W
            moving = np.abs(W - previous).max(axis=1) > _STILL * np.abs(W).max(axis=1)
            if not moving.any():
                break
            W = W[moving]
    return best


def _refit(problem: Consensus, W: FloatArray, residuals: FloatArray, share: float) -> FloatArray:
    """Return the least-squares fits of the rows that each parameter keeps."""
    n, k = problem.Z.shape
    if problem.limits is not None:
        kept, count = _kept(problem, problem.limits, W, share)
        Z = problem.Z[kept] * count[:, :, None]
        return least_squares(Z, problem.y[kept] * count)
    size = min(max(round(share * n), k + 1), n)
    kept = np.argpartition(residuals, size - 1, axis=1)[:, :size] if size < n else _everything(len(W), n)
    return least_squares(problem.Z[kept], problem.y[kept])


def _kept(problem: Consensus, limits: Limits, W: FloatArray, share: float) -> tuple[NDArray[np.intp], BoolArray]:
    """Return row numbers, the smallest residuals first, and how many of them each parameter keeps, as a mask."""
    k = problem.Z.shape[1]
    rows = problem.decisive
    products = W @ problem.Z[rows].T
    active = (products > limits.lower[rows]) & (products < limits.upper[rows])
    keys = np.abs(problem.y[rows] - products)
    # Too few active rows determine nothing: then all decisive ones compete.
    lost = active.sum(axis=1) <= k
    active[lost] = True
    keys[~active] = np.inf
    sizes = np.minimum(np.maximum(np.rint(share * active.sum(axis=1)), k + 1), active.sum(axis=1)).astype(int)
    most = int(sizes.max(initial=1))
    order = np.argsort(keys, axis=1)[:, :most]
    return rows[order], np.arange(order.shape[1]) < sizes[:, None]


def least_squares(Z: FloatArray, y: FloatArray) -> FloatArray:
    """Return the least-squares parameters of many sets of rows: (b, k) for rows (b, h, k) and labels (b, h)."""
    transposed = Z.transpose(0, 2, 1)
    gram = transposed @ Z
    k = gram.shape[1]
    diagonal = np.arange(k)
    gram[:, diagonal, diagonal] += _RIDGE * np.trace(gram, axis1=1, axis2=2)[:, None] / k + np.finfo(float).tiny
    return np.asarray(np.linalg.solve(gram, transposed @ y[:, :, None])[:, :, 0])


def _everything(b: int, n: int) -> NDArray[np.intp]:
    return np.broadcast_to(np.arange(n), (b, n))
