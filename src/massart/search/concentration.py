"""Concentration steps, many at a time (Rousseeuw and Van Driessen 2006).

From a parameter, keep the h rows with the smallest residuals, fit them by least squares, and repeat: the sum of the h
smallest squares never rises. One start seldom ends at the truth; hundreds of them cost a few matrix products.
"""

from __future__ import annotations

import numpy as np

from massart.rows import FloatArray
from massart.search.problem import Candidate, Consensus

_RIDGE = 1e-12  # relative: keeps the few singular systems among hundreds from stopping the others
_STILL = 1e-12  # relative change at which a start has arrived
_BATCH_BYTES = 1 << 25


def concentrate(problem: Consensus, starts: FloatArray, size: int, steps: int, enough: float) -> Candidate:
    """Return the best parameter met on the way from each of the `starts`, (b, k), with h = `size` rows kept.

    Ends early when a parameter fits more than `enough`.
    """
    n, k = problem.Z.shape
    size = min(max(size, k + 1), n)
    best = Candidate(starts[0], -1.0)
    batch = max(1, _BATCH_BYTES // (8 * size * k))
    for first in range(0, len(starts), batch):
        W = starts[first : first + batch]
        for _ in range(steps + 1):
            residuals = problem.residuals(W)
            best = max(best, problem.best(W, residuals), key=lambda candidate: candidate.agreement)
            if best.agreement > enough:
                return best
            kept = np.argpartition(residuals, size - 1, axis=1)[:, :size] if size < n else _everything(len(W), n)
            W, previous = least_squares(problem.Z[kept], problem.y[kept]), W
            moving = np.abs(W - previous).max(axis=1) > _STILL * np.abs(W).max(axis=1)
            if not moving.any():
                break
            W = W[moving]
    return best


def least_squares(Z: FloatArray, y: FloatArray) -> FloatArray:
    """Return the least-squares parameters of many sets of rows: (b, k) for rows (b, h, k) and labels (b, h)."""
    transposed = Z.transpose(0, 2, 1)
    gram = transposed @ Z
    k = gram.shape[1]
    diagonal = np.arange(k)
    gram[:, diagonal, diagonal] += _RIDGE * np.trace(gram, axis1=1, axis2=2)[:, None] / k
    return np.asarray(np.linalg.solve(gram, transposed @ y[:, :, None])[:, :, 0])


def _everything(b: int, n: int) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    return np.broadcast_to(np.arange(n), (b, n))
