"""L1 regression with limits: on the rows that a parameter leaves active, then on those of the answer, and so on.

The L1 loss of a clipped formula is not convex, but it is on a fixed set of active rows. There a decisive label costs
its absolute residual, and a limit only what is beyond it: right labels then cost nothing at the truth. As in Algorithm
3 the active rows are brought in radial-isotropic position, with the recursion on heavy subspaces, each time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from massart.isotropy import decompose
from massart.l1 import l1_regression
from massart.rows import BoolArray, FloatArray
from massart.search.consensus import Consensus, Limits


def alternate(
    problem: Consensus, w: FloatArray, steps: int, row_weights: FloatArray | None = None
) -> Iterator[FloatArray]:
    """Yield the L1 answers on the active rows of `w`, of the answer, and so on until these rows come again.

    There are `steps` answers at most, and one where the problem has no limits. `row_weights` go over the problem's.
    """
    weights = problem.weights if row_weights is None else row_weights
    if problem.limits is None:
        yield l1_regression(problem.Z, problem.y, sample_weight=weights).coef
        return
    seen = set()
    for _ in range(steps):
        active = active_rows(problem, problem.limits, w)
        key = active.tobytes()
        if key in seen or not active.any():
            return
        seen.add(key)
        w = _solve(problem, problem.limits, active, weights)
        yield w


def active_rows(problem: Consensus, limits: Limits, w: FloatArray) -> BoolArray:
    """Return the active rows, and the decisive ones, too, where the active ones cannot determine w."""
    active = limits.active(w @ problem.Z.T)
    if (active & limits.decisive).sum() <= problem.Z.shape[1]:
        active |= limits.decisive
    return active


def _solve(problem: Consensus, limits: Limits, active: BoolArray, weights: FloatArray) -> FloatArray:
    """Return the L1 answer on the active rows, piece by piece of their decomposition (Algorithm 2)."""
    one_sided = ~limits.decisive[active]
    # A label at the upper limit bounds from below: turned around, every limit bounds from above.
    turned = np.where(one_sided & (problem.y[active] == limits.upper[active]), -1.0, 1.0)
    Z, y, weights = problem.Z[active] * turned[:, None], problem.y[active] * turned, weights[active]
    w = np.zeros(Z.shape[1])
    for piece in decompose(Z, sample_weight=problem.weights[active]):
        members = piece.members
        basis = piece.subspace @ piece.matrix.T
        images = Z[members] @ basis
        lengths = np.linalg.norm(images, axis=1)
        answer = l1_regression(
            images / lengths[:, None],
            (y[members] - Z[members] @ w) / lengths,
            sample_weight=weights[members],
            one_sided=one_sided[members],
        )
        w = w + basis @ answer.coef
    return w
