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

**Simulation.** B independent sets are drawn and :math:`p = (1 + \#\{\lambda_{\max} \ge \alpha\}) / (B + 1)` is the
rank of alpha among them. The true value and the B drawn ones are exchangeable, so :math:`P(p \le \delta) \le \delta`
over both. The same uniform numbers serve every :math:`\eta`: p is then monotone in it, and bisection costs nothing. B
follows from n, k and delta, before a label is seen. **Every formula judged on the same rows must meet the same
draws** (the same seed): then the event that the confidence excludes is one event, whatever was tried. Fresh draws are
a second look.

**Coverage.** If o of m rows lie outside of a set that other rows chose, the set misses at most the share p of the
distribution with :math:`\Pr[\mathrm{Bin}(m, p) \le o] = \delta` (Clopper and Pearson), with probability 1 - delta.

**Counting.** If any hyperplane holds at most H of the rows that agree with w, a wrong w needs at least
:math:`n_{agree} - H` wrong rows: :math:`P(\mathrm{Bin}(n, \eta) \ge n_{agree} - H)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, inf, log, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, betaincinv, rel_entr

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


def closed_form_eta_max(alpha: float, leverage: float, dimension: int, delta: float) -> float:
    r"""Return the largest eta with :math:`k \exp(-\mathrm{KL}(\alpha \,\|\, \eta) / L) \le \delta`; 0 if there is none.

    Parameters
    ----------
    alpha : float
        Share of the evidence that agrees, in the weakest direction.
    leverage : float
        L, the largest eigenvalue of a single row's (or unit's) matrix.
    dimension : int
        k; 1 for a direction that was fixed before the labels were seen.
    delta : float

    Examples
    --------
    >>> round(closed_form_eta_max(0.622, 0.01, 10, 1e-3), 2)
    0.41
    """
    needed = leverage * log(dimension / delta)
    low, high = 0.0, alpha
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _divergence(alpha, middle) >= needed else (low, middle)
    return low


def closed_form_quantile(eta: float, leverage: float, dimension: int, delta: float) -> float:
    """Return the smallest q whose tail in closed form is at most delta at `eta`; infinite if not even q = 1 is rare."""
    needed = leverage * log(dimension / delta)
    if _divergence(1.0, eta) < needed:
        return inf
    low, high = eta, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _divergence(middle, eta) >= needed else (middle, high)
    return high


def counting_eta_max(n: int, n_agree: int, hyperplane_rows: int, delta: float) -> float:
    """Return the largest eta with P(Bin(n, eta) >= n_agree - hyperplane_rows) <= delta; 0 where none is excluded.

    Examples
    --------
    >>> round(counting_eta_max(100, 70, 2, 5e-4), 3)
    0.512
    """
    needed = n_agree - hyperplane_rows
    return float(betaincinv(needed, n - needed + 1, delta)) if needed > 0 else 0.0


def most_wrong(n: int, eta: float, delta: float) -> int:
    """Return the number q of n labels, chosen by x alone, that are wrong: more are with probability `delta` at most.

    That is the least q with Pr[Bin(n, eta) <= q] >= 1 - delta, whatever the adversary does: which rows it may change is
    drawn before it acts.
    """
    if n == 0 or eta == 0:
        return 0
    mean, spread = eta * n, sqrt(n * log(1 / delta) / 2)
    # Hoeffding's bound is above q; the binomial distribution finds it by bisection.
    low, high = -1, min(n, ceil(mean + spread))
    while high - low > 1:
        middle = (low + high) // 2
        if middle >= 0 and bdtr(middle, n, eta) >= 1 - delta:
            high = middle
        else:
            low = middle
    return high


def largest_share_outside(outside: int, n: int, delta: float) -> float:
    """Return the largest share of a distribution of which `outside` of n rows may have been seen, but for `delta`."""
    if outside >= n:
        return 1.0
    return float(betaincinv(outside + 1, n - outside, 1 - delta))


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The tail in closed form: L and k."""

    leverage: float
    dimension: int

    def quantile(self, alpha: float, delta: float, bound: float) -> float:
        """Return the quantile at the rate `bound`, whatever alpha is."""
        return closed_form_quantile(bound, self.leverage, self.dimension, delta)

    def eta_max(self, alpha: float, delta: float, bound: float, excluded: bool) -> float:
        """Return the largest rate that `alpha` excludes."""
        return closed_form_eta_max(alpha, self.leverage, self.dimension, delta)


@dataclass(frozen=True, slots=True)
class Binomial:
    """The exact tail of n equal numbers."""

    n: int

    def quantile(self, alpha: float, delta: float, bound: float) -> float:
        """Return the quantile at the rate `bound`, whatever alpha is."""
        low, high = -1, self.n  # P(Bin > low) > delta, P(Bin > high) <= delta
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if bdtrc(middle, self.n, bound) <= delta else (middle, high)
        return high / self.n + _TIE

    def eta_max(self, alpha: float, delta: float, bound: float, excluded: bool) -> float:
        """Return the largest rate that `alpha` excludes."""
        return counting_eta_max(self.n, ceil(self.n * (alpha - _TIE)), 0, delta)


@dataclass(frozen=True, slots=True)
class Simulation:
    """The tail by drawing sets of rows.

    Attributes
    ----------
    products : (n, k (k + 1) / 2) array
        The upper triangles of the matrices A_i.
    dimension : int
    n_draws : int
        B, from :func:`number_of_draws`.
    seed : int
        Fixes the draws.
    search : bool
        Look for eta below the bound, too, where alpha does not exclude the bound.
    """

    products: FloatArray
    dimension: int
    n_draws: int
    seed: int
    search: bool = True

    def quantile(self, alpha: float, delta: float, bound: float) -> float:
        """Return the quantile at the rate `bound`; infinite, and soon known, where alpha does not exceed it."""
        allowed = self._allowed(delta)
        open_draws = np.ones(self.n_draws, dtype=bool)
        return inf if allowed < 0 else self._test(ceil(bound * _LEVELS), alpha, allowed, open_draws)

    def eta_max(self, alpha: float, delta: float, bound: float, excluded: bool) -> float:
        """Return the largest rate up to `bound` that `alpha` excludes, given whether it excludes that."""
        allowed, top = self._allowed(delta), ceil(bound * _LEVELS)
        open_draws = np.ones(self.n_draws, dtype=bool)
        if excluded or allowed < 0:
            return bound if excluded else 0.0
        low, high = 0, -(-top // _STEPS) if self.search else 0
        while high - low > 1:
            middle = (low + high) // 2
            passes = self._test(middle * _STEPS, alpha, allowed, open_draws) < inf
            low, high = (middle, high) if passes else (low, middle)
        return min(low * _STEPS / _LEVELS, bound)

    def _allowed(self, delta: float) -> int:
        """Return the number of draws above alpha with which it still passes; negative if there are too few draws."""
        return floor(delta * (self.n_draws + 1) * (1 + 1e-12)) - 1

    def _test(self, level: int, alpha: float, allowed: int, open_draws: BoolArray) -> float:
        """Return the (allowed + 1)-th largest eigenvalue at the rate level / _LEVELS; infinite as soon as alpha fails.

        A draw that stays below alpha here does so for every smaller rate: where alpha fails, such draws are closed.
        """
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


@dataclass(frozen=True, slots=True)
class Late:
    """The closed form at a tenth of delta and, where that does not exclude the bound, draws at the rest.

    For tables that are so large that draws take their time. Both may fail, and their shares add up to delta.

    Attributes
    ----------
    closed : ClosedForm
    draw : callable
        Returns the simulation.
    """

    closed: ClosedForm
    draw: Callable[[], Simulation]

    def quantile(self, alpha: float, delta: float, bound: float) -> float:
        """Return the quantile at the rate `bound`; infinite where alpha exceeds neither."""
        quantile = self.closed.quantile(alpha, CLOSED_SHARE * delta, bound)
        return quantile if alpha > quantile else self.draw().quantile(alpha, (1 - CLOSED_SHARE) * delta, bound)

    def eta_max(self, alpha: float, delta: float, bound: float, excluded: bool) -> float:
        """Return the largest rate that `alpha` excludes, given whether it excludes the bound."""
        eta = self.closed.eta_max(alpha, CLOSED_SHARE * delta, bound, excluded)
        return max(eta, bound) if excluded else eta


Tail: TypeAlias = ClosedForm | Binomial | Simulation | Late


def number_of_draws(n: int, dimension: int, delta: float, budget: float = BUDGET) -> int:
    """Return B, 1 to 5 over delta as the budget allows; 0 where it does not: decided without labels."""
    cost = n * max(dimension * (dimension + 1) / 2, _DRAWING) + 20.0 * dimension**3
    allowed = min(_MOST_ALLOWED, floor(budget * delta / cost))
    return ceil(allowed / delta) - 1 if allowed >= 1 else 0


def upper_triangles(rows: FloatArray) -> FloatArray:
    """Return the upper triangles of y y' for each row y, (n, k (k + 1) / 2)."""
    first, second = np.triu_indices(rows.shape[1])
    return np.asarray(rows[:, first] * rows[:, second])


def _divergence(q: float, eta: float) -> float:
    """Return KL(q || eta)."""
    return float(rel_entr(q, eta) + rel_entr(1 - q, 1 - eta))
