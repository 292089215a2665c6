r"""How much of the evidence chance may spoil: tails of the largest eigenvalue of a random sum.

Let :math:`A_1, \dots, A_n \succeq 0` be fixed k x k matrices with :math:`\sum_i A_i = I`, :math:`\lambda_{\max}(A_i)
\le L`, and let each row be wrong with probability at most :math:`\eta` given the rows before it. Wanted is q with

.. math::
    P \Bigl( \lambda_{\max} \Bigl( \sum_{i \in S} A_i \Bigr) \ge q \Bigr) \le \delta ,

or, for a given :math:`q = \alpha`, the largest :math:`\eta` that has such a tail: ``eta_max``. S lies inside a set in
which every row is drawn independently with probability :math:`\eta`, and a sum over more rows is larger: so
independent draws suffice, and the tail grows with :math:`\eta`.

**Closed form.** The tail is at most :math:`k \exp(-\mathrm{KL}(q \,\|\, \eta) / L)` for :math:`q > \eta`. Proof
sketch. For :math:`\theta > 0`, :math:`\log E \exp(\theta f_i A_i) = \Lambda(\theta A_i)` with :math:`\Lambda(s) =
\log(1 + \eta (e^s - 1))`, which is convex and zero at zero: on :math:`[0, \theta L]` it lies below its chord, so
:math:`\Lambda(\theta A_i) \preceq A_i \Lambda(\theta L) / L`. The matrix Laplace transform (Lieb, Tropp) adds these
over i; the sum is :math:`I \, \Lambda(\theta L) / L`, the trace gives k, and the best :math:`\theta` gives the
divergence. For a direction that was fixed before the labels were seen the sum is a number and k is 1.

**Binomial.** For k = 1 and equal :math:`A_i` the tail is that of a binomial: exact.

**SimulatedTail.** B independent sets are drawn and :math:`p = (1 + \#\{\lambda_{\max} \ge \alpha\}) / (B + 1)` is the
rank of alpha among them. The true value and the B drawn ones are exchangeable, so :math:`P(p \le \delta) \le \delta`
over both. The same uniform numbers serve every :math:`\eta`: p is then monotone in it, and bisection costs nothing. B
follows from n, k and delta, before a label is seen. **Every formula judged on the same rows must meet the same
draws** (the same seed): then the event that the confidence excludes is one event, whatever was tried. Fresh draws are
a second look.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, inf, log, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betaincinv, rel_entr

from massart.rows import BoolArray, FloatArray

BUDGET = 4e8
"""Multiplications that the draws of one table may take: about a tenth of a second."""

LATE_BUDGET, CLOSED_SHARE = 2.5e9, 0.1
"""The same where the closed form, at this share of delta, does not suffice: less than a second."""

_MOST_ALLOWED = 5  # draws above alpha that still pass: more make the simulated quantile steadier
_DRAWING = 20  # multiplications that take as long as a draw
_LEVELS = 1 << 16  # probabilities are multiples of 1 / _LEVELS, rounded up: drawn rates are never below eta
_STEPS = 1 << 6  # ... and bisection ends at multiples of _STEPS / _LEVELS, a thousandth
_BATCH = 256  # draws at a time
_TIE = 1e-9  # eigenvalues this near to alpha count as reaching it: discrete tables have ties


def smallest_share_inside(inside: int, n: int, delta: float) -> float:
    """Return the smallest share of a distribution of which `inside` of n rows may have been seen, but for `delta`.

    The p with P(Bin(n, p) >= inside) = delta (Clopper and Pearson).

    Examples
    --------
    >>> round(smallest_share_inside(68, 100, 5e-4), 3)
    0.512
    """
    return float(betaincinv(inside, n - inside + 1, delta)) if inside > 0 else 0.0


def largest_share_outside(outside: int, n: int, delta: float) -> float:
    """Return the largest share of a distribution of which `outside` of n rows may have been seen, but for `delta`.

    The p with P(Bin(n, p) <= outside) = delta (Clopper and Pearson): a set that other rows chose misses no more.
    """
    return float(betaincinv(outside + 1, n - outside, 1 - delta)) if outside < n else 1.0


def most_wrong(n: int, eta: float, delta: float) -> int:
    """Return the number q of n labels, chosen by x alone, that are wrong: more are with probability `delta` at most.

    That is the least q with P(Bin(n, eta) > q) <= delta, whatever the adversary does: which rows it may change is
    drawn before it acts.
    """
    # Hoeffding's bound is above q; the binomial distribution finds it by bisection.
    low, high = -1, min(n, ceil(eta * n + sqrt(n * log(1 / delta) / 2)))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bdtrc(middle, n, eta) <= delta else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class ClosedForm:
    r"""The tail :math:`k \exp(-\mathrm{KL}(q \,\|\, \eta) / L)`.

    Attributes
    ----------
    leverage : float
        L, the largest eigenvalue of a single row's (or unit's) matrix.
    dimension : int
        k; 1 for a direction that was fixed before the labels were seen.
    delta : float
    later : callable, optional
        Returns draws, at a delta of their own, made where the closed form does not exclude the bound: of tables
        that are so large that draws take their time. Both may fail, and their shares add up.

    Examples
    --------
    >>> round(ClosedForm(0.01, 10, 1e-3).eta_max(0.622), 2)
    0.41
    """

    leverage: float
    dimension: int
    delta: float
    later: Callable[[], SimulatedTail] | None = None

    def quantile(self, alpha: float, bound: float) -> float:
        """Return the smallest q whose tail is at most delta at the rate `bound`; infinite if not even q = 1 is rare."""
        low, high = bound, 1.0
        if self._bounds(1.0, bound):
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (low, middle) if self._bounds(middle, bound) else (middle, high)
        else:
            high = inf
        return high if alpha > high or self.later is None else self.later().quantile(alpha, bound)

    def eta_max(self, alpha: float, bound: float = 0.5, excluded: bool = False) -> float:
        """Return the largest rate that `alpha` excludes; 0 if there is none."""
        low, high = 0.0, alpha
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._bounds(alpha, middle) else (low, middle)
        return low

    def _bounds(self, q: float, eta: float) -> bool:
        """Return whether the tail at q is at most delta."""
        divergence = float(rel_entr(q, eta) + rel_entr(1 - q, 1 - eta))
        return divergence >= self.leverage * log(self.dimension / self.delta)


@dataclass(frozen=True, slots=True)
class Binomial:
    """The exact tail of n equal numbers."""

    n: int
    delta: float

    def quantile(self, alpha: float, bound: float) -> float:
        """Return the quantile at the rate `bound`, whatever alpha is."""
        return most_wrong(self.n, bound, self.delta) / self.n + _TIE

    def eta_max(self, alpha: float, bound: float = 0.5, excluded: bool = False) -> float:
        """Return the largest rate that `alpha` excludes."""
        return smallest_share_inside(ceil(self.n * (alpha - _TIE)), self.n, self.delta)


@dataclass(frozen=True, slots=True)
class SimulatedTail:
    """The tail by drawing sets of rows.

    Attributes
    ----------
    products : (n, k (k + 1) / 2) array
        The upper triangles of the matrices A_i.
    dimension : int
    delta : float
    n_draws : int
        B, from :func:`number_of_draws`.
    seed : int
        Fixes the draws.
    """

    products: FloatArray
    dimension: int
    delta: float
    n_draws: int
    seed: int

    def quantile(self, alpha: float, bound: float) -> float:
        """Return the quantile at the rate `bound`; infinite, and soon known, where alpha does not exceed it."""
        return self._test(ceil(bound * _LEVELS), alpha, np.ones(self.n_draws, dtype=bool))

    def eta_max(self, alpha: float, bound: float = 0.5, excluded: bool = False) -> float:
        """Return the largest rate up to `bound` that `alpha` excludes, given whether it excludes that."""
        if excluded:
            return bound
        open_draws = np.ones(self.n_draws, dtype=bool)
        low, high = 0, -(-ceil(bound * _LEVELS) // _STEPS)
        while high - low > 1:
            middle = (low + high) // 2
            passes = self._test(middle * _STEPS, alpha, open_draws) < inf
            low, high = (middle, high) if passes else (low, middle)
        return min(low * _STEPS / _LEVELS, bound)

    def _test(self, level: int, alpha: float, open_draws: BoolArray) -> float:
        """Return the quantile at the rate level / _LEVELS; infinite as soon as alpha fails.

        That is the (a + 1)-th largest eigenvalue, where alpha passes with a draws above it.
        A draw that stays below alpha here does so for every smaller rate: where alpha fails, such draws are closed.
        """
        allowed = floor(self.delta * (self.n_draws + 1) * (1 + 1e-12)) - 1
        largest = np.full(allowed + 1, -inf)
        below = np.zeros(self.n_draws, dtype=bool)
        for start in range(0, self.n_draws, _BATCH):
            chosen = np.flatnonzero(open_draws[start : start + _BATCH])
            if not chosen.size:
                continue
            values = self._eigenvalues(start, chosen, level, float(largest[0]))
            below[start + chosen] = values < alpha - _TIE
            largest = np.sort(np.concatenate([largest, values]))[-(allowed + 1) :]
            if largest[0] >= alpha - _TIE:
                open_draws &= ~below
                return inf
        return float(largest[0])

    def _eigenvalues(self, start: int, chosen: NDArray[np.intp], level: int, floor: float) -> FloatArray:
        """Return the largest eigenvalues of the chosen draws of the batch at `start`; -inf for those below `floor`."""
        n, k = len(self.products), self.dimension
        size = min(_BATCH, self.n_draws - start)
        numbers = np.frombuffer(np.random.default_rng([self.seed, start]).bytes(2 * n * size), dtype=np.uint16)
        drawn = numbers.reshape(size, n)[chosen] < level
        sums = drawn.astype(np.float64) @ self.products
        matrices = np.empty((chosen.size, k, k))
        rows, columns = np.triu_indices(k)
        matrices[:, rows, columns] = sums
        matrices[:, columns, rows] = sums
        values = np.full(chosen.size, -inf)
        # lambda_max(F) <= eta + |(F - eta)^4|^(1/4) in the Frobenius norm, which costs far less than eigenvalues.
        powers = matrices - level / _LEVELS * np.eye(k)
        powers = powers @ powers
        powers = powers @ powers
        ceilings = level / _LEVELS + np.sqrt(np.sqrt(np.linalg.norm(powers, axis=(1, 2))))
        high = ceilings >= floor - _TIE
        values[high] = np.linalg.eigvalsh(matrices[high])[:, -1]
        return values


Tail: TypeAlias = ClosedForm | Binomial | SimulatedTail


def number_of_draws(n: int, dimension: int, delta: float, budget: float = BUDGET) -> int:
    """Return B, 1 to 5 over delta as the budget allows; 0 where it does not: decided without labels."""
    cost = n * max(dimension * (dimension + 1) / 2, _DRAWING) + 20.0 * dimension**3
    allowed = min(_MOST_ALLOWED, floor(budget * delta / cost))
    return ceil(allowed / delta) - 1 if allowed >= 1 else 0


def upper_triangles(rows: FloatArray) -> FloatArray:
    """Return the upper triangles of y y' for each row y, (n, k (k + 1) / 2)."""
    first, second = np.triu_indices(rows.shape[1])
    return np.asarray(rows[:, first] * rows[:, second])
