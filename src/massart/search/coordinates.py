"""Better fits one coefficient at a time.

A formula can fit most rows and still be wrong where few rows look: with a wrong coefficient of a dummy, the right rows
of that level disagree, and a majority of all rows does not notice. Changing one coefficient by t makes a row agree when
t is its residual over its entry, within the row's tolerance: the best t is the point that most such intervals cover.
"""

from __future__ import annotations

import numpy as np

from massart.rows import FloatArray

_SWEEPS = 5


def improve_coordinates(
    X: FloatArray, y: FloatArray, w: FloatArray, threshold: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return `w` after changes of single coefficients that each make more rows agree, counted with their weights.

    A row agrees whose residual is not above its `threshold`.
    """
    w = w.copy()
    residuals = y - X @ w
    for _ in range(_SWEEPS):
        changed = False
        for j in range(X.shape[1]):
            rows = np.flatnonzero(X[:, j])
            now = float(weights[rows][np.abs(residuals[rows]) <= threshold[rows]].sum())
            step, agreement = _most_covered(
                residuals[rows] / X[rows, j], threshold[rows] / np.abs(X[rows, j]), weights[rows]
            )
            if agreement > now and step != 0:
                w[j] += step
                residuals[rows] -= step * X[rows, j]
                changed = True
        if not changed:
            break
    return w


def _most_covered(centres: FloatArray, radii: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return a point that the most weight of intervals covers, and that weight."""
    if not len(centres):
        return 0.0, 0.0
    ends = np.concatenate([centres - radii, centres + radii])
    change = np.concatenate([weights, -weights])
    order = np.lexsort((-change, ends))  # at equal ends, openings first
    covered = np.cumsum(change[order])
    best = int(np.argmax(covered))
    following = ends[order[min(best + 1, len(order) - 1)]]
    return float((ends[order[best]] + following) / 2), float(covered[best])
