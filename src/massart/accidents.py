r"""How many rows follow the best formula by accident, when labels have no rule.

Any k independent rows are fitted by some formula with k coefficients, and one more by the choice among such formulas.
Of the others each agrees as often as its label is what the formula says, at most as often as the most frequent label
occurs. For labels that are never repeated this is k + 1; for a count or a grade it is a large part of the table.
"""

from __future__ import annotations

import numpy as np

from massart.rows import FloatArray

_DEVIATIONS = 2.0
"""Standard deviations by which the best of many formulas exceeds the frequency of the most frequent label."""


def accidental_agreement(labels: FloatArray, reach: FloatArray, weights: FloatArray, k: int) -> float:
    """Return the weight of rows that labels without a rule give the best formula with `k` coefficients, at most, about.

    Parameters
    ----------
    labels : (n,) array
    reach : (n,) array
        Labels that are nearer to each other than twice this are the same.
    weights : (n,) array
    k : int
    """
    free, others = np.split(np.sort(weights)[::-1], [k + 1])
    repeated = _most_frequent(labels, reach, weights) - weights.max(initial=0.0)
    frequency = repeated / max(others.sum(), repeated) if repeated > 0 else 0.0
    deviation = np.sqrt(frequency * (1 - frequency) * (others @ others))
    return float(free.sum() + frequency * others.sum() + _DEVIATIONS * deviation)


def _most_frequent(labels: FloatArray, reach: FloatArray, weights: FloatArray) -> float:
    """Return the largest weight of rows that have the same label."""
    order = np.argsort(labels)
    ordered = labels[order]
    reached = np.concatenate([[0.0], np.cumsum(weights[order])])
    ends = np.searchsorted(ordered, ordered + 2 * reach[order], side="right")
    return float((reached[ends] - reached[:-1]).max(initial=0.0))
