r"""Oblivious noise, and Massart noise that simulates it (Appendix C).

For :math:`0 \le \eta < 1` the oblivious adversary is told the number m of rows, and nothing about them or about
:math:`w^*`. It chooses a vector b with :math:`\|b\|_0 \le \eta m`, and the labels become

.. math::

    y_i = w^* \cdot x_i + b_i .

Because rows are drawn independently and b knows nothing of them, adding b is the same as adding Ub for a uniform random
permutation matrix U. A Massart adversary can do this as long as it may change at least :math:`\|b\|_0` rows, and by
Hoeffding's inequality a Massart adversary of rate

.. math::

    \eta + \sqrt{\frac{\log(1/\delta)}{2m}}

may, with probability at least :math:`1 - \delta` (Lemma C.2). The converse is false: recovery is possible under
oblivious noise of rates close to 1, and under Massart noise only below one half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from massart.noise.arguments import check_count, check_generator, check_label_vector, check_number
from massart.noise.model import Adversary, Corruption, MassartNoise
from massart.rows import BoolArray, FloatArray, check_matrix

ErrorVector: TypeAlias = Callable[[int, int, np.random.Generator], FloatArray]
"""``errors(m, budget, rng)``: the vector b, m numbers of which at most `budget` are not zero."""


@dataclass(frozen=True, slots=True)
class ObliviousNoise:
    r"""Oblivious noise of rate `eta` (Definition C.1).

    Parameters
    ----------
    eta : float
        Largest share of wrong labels, :math:`0 \le \eta < 1`.
    errors : callable
        ``errors(m, budget, rng)`` chooses b. It is told m and :math:`\lfloor \eta m \rfloor` and sees no row and no
        label: obliviousness is its signature.
    """

    eta: float
    errors: ErrorVector

    def __post_init__(self) -> None:
        eta = check_number(self.eta, "eta")
        if not 0.0 <= eta < 1.0:
            raise ValueError(f"eta must be at least 0 and below 1, got {eta:g}")
        if not callable(self.errors):
            raise ValueError(f"errors must be a function (m, budget, rng) -> b, got {self.errors!r}")

    def budget(self, m: int) -> int:
        r"""Return :math:`\lfloor \eta m \rfloor`, the largest number of wrong labels among `m`."""
        # 0.29 * 100 is 28.999999999999996 in floating point; the caller means 29.
        return math.floor(round(self.eta * check_count(m, "m", 1), 9))

    def draw(self, m: int, rng: np.random.Generator) -> FloatArray:
        """Return a vector b for `m` rows, checked: m finite numbers, at most ``budget(m)`` of them not zero."""
        limit = self.budget(m)
        b = check_label_vector(self.errors(m, limit, check_generator(rng)), m, "errors")
        spent = int(np.count_nonzero(b))
        if spent > limit:
            raise ValueError(f"errors returned {spent} non-zero entries, but eta = {self.eta:g} of {m} allows {limit}")
        return b

    def corrupt(self, X: ArrayLike, clean: ArrayLike, rng: np.random.Generator) -> Corruption:
        """Add b to the labels; the signature of `MassartNoise.corrupt`, so that one can stand for the other.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Rows. Only their number is used.
        clean : array_like, shape (n,)
        rng : numpy.random.Generator

        Returns
        -------
        Corruption
            Its `allowed` rows are those where b is not zero.
        """
        m = check_matrix(X).shape[0]
        b = self.draw(m, rng)
        truth = check_label_vector(clean, m, "clean")
        with np.errstate(over="ignore"):
            labels = check_label_vector(np.where(b != 0.0, truth + b, truth), m, "clean + errors")
        return Corruption(labels=labels, allowed=b != 0.0, changed=labels != truth)


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """What a Massart adversary did in the place of an oblivious one.

    Attributes
    ----------
    corruption : Corruption
        Labels and masks under Massart noise of rate `rate`.
    errors : ndarray, shape (m,)
        The vector b that the oblivious adversary chose.
    rate : float
        The Massart rate of the lemma.
    succeeded : bool
        Whether enough rows could be changed to place every non-zero entry of b. Given success the labels are
        distributed exactly as under the oblivious noise; without it some entries found no row.
    """

    corruption: Corruption
    errors: FloatArray
    rate: float
    succeeded: bool


def massart_rate(eta: float, m: int, delta: float) -> float:
    r"""Return :math:`\eta + \sqrt{\log(1/\delta) / (2m)}`, the Massart rate of Lemma C.2.

    Parameters
    ----------
    eta : float
        Oblivious rate, in [0, 1).
    m : int
        Number of rows.
    delta : float
        Probability of failure, in (0, 1).
    """
    check_number(eta, "eta")
    if not 0.0 <= eta < 1.0:
        raise ValueError(f"eta must be at least 0 and below 1, got {eta:g}")
    check_number(delta, "delta")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta:g}")
    return float(eta + math.sqrt(-math.log(delta) / (2.0 * check_count(m, "m", 1))))


def simulate_oblivious(
    noise: ObliviousNoise, X: ArrayLike, clean: ArrayLike, delta: float, rng: np.random.Generator
) -> Simulation:
    r"""Reproduce oblivious noise by a Massart adversary (Lemma C.2).

    Draws b from `noise`, then corrupts with Massart noise of rate ``massart_rate(noise.eta, m, delta)`` whose adversary
    adds the non-zero entries of b to rows drawn uniformly, without replacement, from those it may change.

    Parameters
    ----------
    noise : ObliviousNoise
        The noise to reproduce.
    X : array_like, shape (m, d)
    clean : array_like, shape (m,)
    delta : float
        Probability of failure, in (0, 1).
    rng : numpy.random.Generator

    Returns
    -------
    Simulation
        `succeeded` with probability at least :math:`1 - \delta`.

    Raises
    ------
    ValueError
        When the Massart rate reaches 1/2: more rows or a larger `delta` are needed, and none suffice if
        ``noise.eta`` itself is that large.
    """
    check_generator(rng)
    rows = check_matrix(X)
    m = rows.shape[0]
    rate = massart_rate(noise.eta, m, delta)
    if rate >= 0.5:
        if noise.eta < 0.5:
            needed = math.floor(-math.log(delta) / (2.0 * (0.5 - noise.eta) ** 2)) + 1
            remedy = f"use at least {needed} rows or a larger delta"
        else:
            remedy = "no number of rows is enough for this eta"
        raise ValueError(
            f"eta = {noise.eta:g} with m = {m} rows and delta = {delta:g} needs a Massart rate of {rate:g}, "
            f"which must be below 1/2: {remedy}"
        )
    b = noise.draw(m, rng)
    corruption = MassartNoise(rate, _placing(b[b != 0.0])).corrupt(rows, clean, rng)
    succeeded = int(np.count_nonzero(corruption.allowed)) >= int(np.count_nonzero(b))
    return Simulation(corruption=corruption, errors=b, rate=rate, succeeded=succeeded)


def _placing(values: FloatArray) -> Adversary:
    """Add `values`, one each, to allowed rows in random order, as many as there is room for."""

    def adversary(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
        places = rng.permutation(np.flatnonzero(allowed))[: values.shape[0]]
        labels = clean.copy()
        labels[places] += values[: places.shape[0]]
        return labels

    return adversary
