r"""The polytope of rounded labels: all formulas that every row allows, and the interval of each coefficient in it.

A label rounded to cents says no more than an interval, and a formula is as good as another that meets all of them:

.. math::
    P = \{ w : |y_i - w \cdot x_i| \le t_i \text{ for all } i \} , \qquad
    [l_j, h_j] = \left[ \min_{w \in P} w_j , \max_{w \in P} w_j \right] .

These intervals shrink like 1/n, where standard errors of least squares shrink like :math:`1 / \sqrt n`: few of many
rows bind, those whose label was rounded by nearly half a unit. That is also why each linear program needs few rows: it
is solved with some, and those that its answer violates are added until there are none. In the coordinates in which the
scaled rows have :math:`X^\top X = n I`, around the least-squares solution, no point of P has a norm above 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from massart.rows import BoolArray, FloatArray

_SLACK = 1e-8  # of a half-width: where halves of a unit bind from both sides, the polytope is a single point
_FEASIBLE = 1e-9
_RANK = 1e-13
_DETERMINED = 1e-20
_FIRST_ROWS, _MORE_ROWS = 8, 3  # a column
_MOST_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Intervals:
    """What the rows allow, given the coefficients that are fixed."""

    low: FloatArray  # the value itself of a coefficient that is fixed
    high: FloatArray  # infinite, as low is, where rows do not determine it
    centre: FloatArray  # a formula in the middle of the polytope


@dataclass(slots=True, eq=False)
class Polytope:
    """All formulas within the half-widths of all rows."""

    X: FloatArray  # rows divided by their half-widths
    rest: FloatArray  # what `start` leaves of their labels, divided likewise: at most one in magnitude
    start: FloatArray  # a formula in the polytope
    _binding: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self._binding = np.zeros((2, len(self.rest)), dtype=bool)

    def intervals(self, fixed: Mapping[int, float], only: int | None = None) -> Intervals | None:
        """Return the intervals of the coefficients that are not `fixed`; None if no formula has the fixed ones.

        With `only` the interval of this one; the others count as unknown.
        """
        d = len(self.start)
        low, high, centre = np.full(d, -np.inf), np.full(d, np.inf), self.start.copy()
        rest = self.rest.copy()
        for j, value in fixed.items():
            low[j] = high[j] = centre[j] = value
            rest -= self.X[:, j] * (value - self.start[j])
        free = [j for j in range(d) if j not in fixed]
        if not free:
            return Intervals(low, high, centre) if (np.abs(rest) <= 1 + _SLACK).all() else None
        if len(free) == 1:
            (j,) = free
            return self._on_a_line(j, rest, low, high, centre)

        X = self.X[:, free]
        scales = np.exp2(np.frexp(np.abs(X).max(axis=0))[1].astype(np.float64))
        _, s, Vt = np.linalg.svd(np.linalg.qr(X / scales, mode="r"), full_matrices=True)
        kept = s > _RANK * len(free) * s.max(initial=0.0)
        lost = np.ones(len(free), dtype=bool)
        lost[: len(s)] = ~kept
        determined = (Vt[lost] ** 2).sum(axis=0) <= _DETERMINED
        basis = Vt[: len(s)][kept].T / s[kept] * np.sqrt(len(X)) / scales[:, np.newaxis]
        rows = X @ basis
        # Where the fixed values are not those of `start`, the middle is not the origin: move it there.
        origin = rows.T @ rest / len(X)
        rest -= rows @ origin
        shift = np.zeros(len(free))
        n_points = 0
        for i in np.flatnonzero(determined):
            j = free[i]
            if only is not None and j != only:
                continue
            ends = []
            for sign in (1.0, -1.0):
                u = self._least(rows, rest, sign * basis[i])
                if u is None:
                    return None
                ends.append(float(basis[i] @ (origin + u)))
                shift += basis @ (origin + u)
                n_points += 1
            low[j], high[j] = self.start[j] + min(ends), self.start[j] + max(ends)
        if n_points:
            centre[free] += shift / n_points
        return Intervals(low, high, centre)

    def _on_a_line(
        self, j: int, rest: FloatArray, low: FloatArray, high: FloatArray, centre: FloatArray
    ) -> Intervals | None:
        """Return the interval of the only coefficient that is free."""
        x = self.X[:, j]
        told = x != 0
        if (np.abs(rest[~told]) > 1 + _SLACK).any():
            return None
        if told.any():
            middle, half = rest[told] / x[told], (1 + _SLACK) / np.abs(x[told])
            least, most = float((middle - half).max()), float((middle + half).min())
            if least > most:
                return None
            low[j], high[j] = self.start[j] + least, self.start[j] + most
            centre[j] += (least + most) / 2
        return Intervals(low, high, centre)

    def _least(self, rows: FloatArray, rest: FloatArray, objective: FloatArray) -> FloatArray | None:
        """Return the u of least ``objective @ u`` with ``|rest - rows @ u| <= 1``; None if there is none."""
        from scipy.optimize import linprog  # slow to import, and only rounded labels need it

        k = rows.shape[1]
        above, below = self._binding  # shared by all programs: what binds in one direction often does in another
        if not above.any():
            for mask, order in ((above, np.argsort(-rest)), (below, np.argsort(rest))):
                mask[order[: _FIRST_ROWS * k]] = True
        objective = objective / np.abs(objective).max()
        for _ in range(_MOST_ROUNDS):
            answer = linprog(
                objective,
                A_ub=np.vstack([-rows[above], rows[below]]),
                b_ub=np.concatenate([1 + _SLACK - rest[above], 1 + _SLACK + rest[below]]),
                bounds=(-2.0, 2.0),
                method="highs-ds",
                options={"primal_feasibility_tolerance": _FEASIBLE},
            )
            if answer.x is None:
                return None
            left = rest - rows @ answer.x
            excess = np.maximum(left, -left) - (1 + _SLACK)
            if excess.max() <= 2 * _FEASIBLE:
                return np.asarray(answer.x)
            worst = np.argsort(-excess)[: _MORE_ROWS * k]
            worst = worst[excess[worst] > 2 * _FEASIBLE]
            above[worst[left[worst] > 0]] = True
            below[worst[left[worst] < 0]] = True
        return None
