r"""Massart noise (Definition 1.1), the paper's data (Section 4) and oblivious noise (Appendix C).

For a noise rate :math:`\eta < 1/2` and an unknown function f of a concept class, every row is labelled

.. math::

    y_i = \begin{cases} f(x_i) & \text{with probability } 1 - \eta, \\
                        \text{anything} & \text{with probability } \eta, \end{cases}

independently over the rows. An adversary chooses the "anything" after it has seen all rows, all clean labels and which
labels it may change; it may also leave a label as it is. Only experiments, benchmarks and tests use this module, so
that the truth cannot leak into recovery.

>>> import numpy as np
>>> from massart.paper import MassartNoise, linear_labels, paper_adversary, paper_mixture, paper_weights
>>> rng = np.random.default_rng(0)
>>> X, w = paper_mixture(120, 30, rng), paper_weights(30)
>>> corruption = MassartNoise(0.25, paper_adversary(w)).corrupt(X, linear_labels(X, w), rng)
>>> bool((corruption.changed <= corruption.allowed).all())
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from massart.rows import BoolArray, FloatArray, check_mask, check_matrix, check_vector

# fmt: off
__all__ = [
    "Concept", "linear_labels", "relu_labels", "Adversary", "Corruption", "MassartNoise",
    "idle", "zero", "far_constant", "constant", "scale", "gross", "decoy", "negate", "flip", "Predicate", "where",
    "paper_mixture", "paper_weights", "high_leverage", "paper_adversary", "gaussian",
    "ErrorVector", "ObliviousNoise", "massart_rate", "Simulation", "simulate_oblivious",
]
# fmt: on

# The two concept classes

Concept: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""A labelling ``concept(X, w)``: rows (n, d) and a parameter (d,) to labels (n,)."""


def linear_labels(X: ArrayLike, w: ArrayLike) -> FloatArray:
    r"""Return the labels :math:`w \cdot x` of the rows of `X`, (n, d): the concept of Theorem 1.2."""
    rows = check_matrix(X)
    return np.asarray(rows @ check_vector(w, rows.shape[1], "w"))


def relu_labels(X: ArrayLike, w: ArrayLike) -> FloatArray:
    r"""Return the labels :math:`\max(0, w \cdot x)` of the rows of `X`, (n, d): the concept of Theorem 1.3."""
    return np.maximum(linear_labels(X, w), 0.0)


# Definition 1.1

Adversary: TypeAlias = Callable[[FloatArray, FloatArray, BoolArray, np.random.Generator], FloatArray]
"""``adversary(X, clean, allowed, rng)``: returns labels (n,) that differ from `clean` only where `allowed`."""


@dataclass(frozen=True, slots=True, eq=False)
class Corruption:
    """Labels after the noise, and where it struck: one number and two booleans a row.

    `labels` is what a learner sees, `allowed` marks the rows whose label the adversary could choose, `changed` those
    whose label differs from the clean one, never more than `allowed`.
    """

    labels: FloatArray
    allowed: BoolArray
    changed: BoolArray


@dataclass(frozen=True, slots=True)
class MassartNoise:
    r"""Definition 1.1: Massart noise of rate `eta` with the given adversary.

    Parameters
    ----------
    eta : float
        Noise rate, :math:`0 \le \eta < 1/2`. At one half an adversary answers with another function of the class
        wherever it may, and no learner can tell which of the two is the truth.
    adversary : callable
        ``adversary(X, clean, allowed, rng)``: one of those below, or any other function.

    Notes
    -----
    Paper: Definition 1.1. Tests: test_noise::test_each_row_is_allowed_independently_with_probability_eta, test_noise::test_rows_that_may_not_change_keep_their_label_bit_for_bit
    """  # noqa: E501 - the line is read by the table of the documentation

    eta: float
    adversary: Adversary

    def __post_init__(self) -> None:
        _number(self.eta, "eta", lambda eta: 0.0 <= eta < 0.5, "at least 0 and below 1/2")
        if not callable(self.adversary):
            raise ValueError(f"adversary must be a function (X, clean, allowed, rng) -> labels, got {self.adversary!r}")

    def corrupt(self, X: ArrayLike, clean: ArrayLike, rng: np.random.Generator) -> Corruption:
        r"""Let the adversary choose labels of rows drawn by coins: `X` is (n, d), and `clean` holds the f(x_i), (n,).

        The mask is drawn first, as :math:`U_i < \eta` with uniform :math:`U_i`: with the same seed every adversary
        gets the same rows, and a larger `eta` allows the rows of a smaller one and more. A ``ValueError`` names the
        first row that the adversary changed by as much as one bit though it was not allowed to.
        """
        rows, rng = check_matrix(X), _generator(rng)
        truth = check_vector(clean, len(rows), "clean")
        allowed = np.asarray(rng.random(len(rows)) < self.eta)
        shown = rows.view(), truth.view(), allowed.view()
        for array in shown:
            array.flags.writeable = False
        with np.errstate(over="ignore", invalid="ignore"):  # an answer that overflows is refused below, by name
            answer = self.adversary(*shown, rng)
        # A copy: an adversary may well return the array it was given.
        labels = check_vector(answer, len(rows), "the adversary's answer").copy()
        cheated = np.flatnonzero((labels.view(np.uint64) != truth.view(np.uint64)) & ~allowed)
        if cheated.size:
            row = int(cheated[0])
            raise ValueError(
                f"adversary changed the label of row {row} from {truth[row]!r} to {labels[row]!r}, a row it may not "
                f"change ({cheated.size} such rows)"
            )
        return Corruption(labels=labels, allowed=allowed, changed=labels != truth)


# Adversaries, or functions that return one. Definition 1.1's adversary knows everything, so it may be given the truth.


def idle(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Change nothing, as Definition 1.1 allows."""
    return clean


def zero(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Answer 0. On Gaussian rows with ReLU labels most rows are then fitted by w = 0, which must not be returned."""
    return np.where(allowed, 0.0, clean)


def far_constant(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    r"""Answer :math:`10 \max_i |f(x_i)|` on every row: consistent, and far outside (10 if every clean label is 0)."""
    return np.where(allowed, 10.0 * (np.abs(clean).max() or 1.0), clean)


def constant(value: float) -> Adversary:
    """Answer `value` on every row."""
    answer = _number(value, "value")
    return _answering(lambda X, clean, rng: answer)


def scale(factor: float) -> Adversary:
    r"""Answer `factor` times the clean label: -100 times in Section 4's drug-discovery experiment."""
    multiple = _number(factor, "factor")
    return _answering(lambda X, clean, rng: multiple * clean)


def gross(spread: float = 100.0) -> Adversary:
    r"""Answer independent uniform numbers from :math:`\pm s \max_i |f(x_i)|`, s being `spread`."""
    reach = _number(spread, "spread", lambda spread: 0.0 < spread < math.inf, "positive and finite")
    return _answering(
        lambda X, clean, rng: reach * (np.abs(clean).max() or 1.0) * rng.uniform(-1.0, 1.0, clean.shape[0])
    )


def decoy(other: ArrayLike, concept: Concept) -> Adversary:
    r"""Answer with another member of the class, :math:`f_{w'}(x)` for w' = `other`, as if it were the truth."""
    parameter = np.array(other, dtype=np.float64)
    return _answering(lambda X, clean, rng: concept(X, parameter))


def negate(w: ArrayLike) -> Adversary:
    r"""Answer :math:`-w \cdot x`, Section 4's flipped label read literally: on active rows no ReLU is there."""
    return decoy(-np.asarray(w), linear_labels)


def flip(w: ArrayLike, concept: Concept) -> Adversary:
    r"""Answer :math:`f_{-w}(x)`: the flip that stays in the class, :math:`\max(0, -w \cdot x)` for a ReLU."""
    return decoy(-np.asarray(w), concept)


Predicate: TypeAlias = Callable[[FloatArray], BoolArray]
"""``predicate(X)``: one boolean a row."""


def where(predicate: Predicate, adversary: Adversary) -> Adversary:
    """Let `adversary` act only on rows of ``predicate(X)``."""

    def restricted(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
        return adversary(X, clean, allowed & check_mask(predicate(X), X.shape[0], "predicate(X)"), rng)

    return restricted


def _answering(answer: Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray | float]) -> Adversary:
    """Make an adversary of what it answers wherever it may."""

    def adversary(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
        return np.where(allowed, answer(X, clean, rng), clean)

    return adversary


# Section 4: rows, parameter and adversary


def paper_mixture(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    r"""Section 4: return rows of the mixture of Gaussians, where the paper takes d = 30.

    .. math::

        \mathcal D_x = \tfrac12\, N\!\left(e_1, \tfrac{1}{d^2} I_d\right)
                     + \tfrac{1}{2d} \sum_{i=1}^d N\!\left(d\, e_i, \tfrac{1}{d^2} I_d\right).

    Notes
    -----
    Paper: Section 4 (data). Tests: test_noise::test_paper_mixture_has_the_papers_shares_means_and_spread
    """
    X = gaussian(n, d, rng) / d
    near = rng.random(n) < 0.5
    axis = np.where(near, 0, rng.integers(0, d, n))
    X[np.arange(n), axis] += np.where(near, 1.0, float(d))
    return X


def paper_weights(d: int) -> FloatArray:
    r"""Section 4: return the parameter :math:`w^* = 9 e_2 + \sum_{i=1}^d e_i`; `d` is at least 2.

    Notes
    -----
    Paper: Section 4 (data). Tests: test_noise::test_paper_weights_are_nine_e2_plus_ones
    """
    w = np.ones(_count(d, "d", 2))
    w[1] += 9.0
    return w


def high_leverage(X: FloatArray) -> BoolArray:
    """Section 4: return the rows with a coordinate above d/2: in its mixture, those not drawn around e_1."""
    return np.asarray(X.max(axis=1) > X.shape[1] / 2.0)


def paper_adversary(w: ArrayLike) -> Adversary:
    r"""Section 4: return the adversary that answers :math:`-w \cdot x` where any coordinate of x is greater than d/2.

    Notes
    -----
    Paper: Section 4 (data). Tests: test_noise::test_the_papers_adversary_flips_with_probability_eta_the_rows_away_from_e1
    """  # noqa: E501 - the line is read by the table of the documentation
    return where(high_leverage, negate(w))


def gaussian(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return rows of independent standard Gaussian coordinates."""
    return _generator(rng).standard_normal((_count(n, "n", 1), _count(d, "d", 1)))


# Appendix C

ErrorVector: TypeAlias = Callable[[int, int, np.random.Generator], FloatArray]
"""``errors(m, budget, rng)``: the vector b, m numbers of which at most `budget` are not zero."""


@dataclass(frozen=True, slots=True)
class ObliviousNoise:
    r"""Definition C.1: oblivious noise of rate `eta`, :math:`y_i = f(x_i) + b_i` with :math:`\|b\|_0 \le \eta m`.

    Parameters
    ----------
    eta : float
        Largest share of wrong labels, :math:`0 \le \eta < 1`.
    errors : callable
        ``errors(m, budget, rng)`` chooses b. It is given m and :math:`\lfloor \eta m \rfloor` and sees no row and no
        label: obliviousness is its signature.

    Notes
    -----
    Recovery can be possible for rates close to 1; under Massart noise it is only below one half.

    Paper: Definition C.1. Tests: test_noise_oblivious::test_labels_are_the_clean_ones_plus_a_sparse_vector, test_noise_oblivious::test_the_errors_do_not_depend_on_rows_or_labels
    """  # noqa: E501 - the line is read by the table of the documentation

    eta: float
    errors: ErrorVector

    def __post_init__(self) -> None:
        _number(self.eta, "eta", lambda eta: 0.0 <= eta < 1.0, "at least 0 and below 1")
        if not callable(self.errors):
            raise ValueError(f"errors must be a function (m, budget, rng) -> b, got {self.errors!r}")

    def budget(self, m: int) -> int:
        r"""Return :math:`\lfloor \eta m \rfloor`, the largest number of wrong labels among `m`."""
        # 0.29 * 100 is 28.999999999999996 in floating point; the caller means 29.
        return math.floor(round(self.eta * _count(m, "m", 1), 9))

    def draw(self, m: int, rng: np.random.Generator) -> FloatArray:
        """Return a vector b for `m` rows, checked: m finite numbers, at most ``budget(m)`` of them not zero."""
        limit = self.budget(m)
        b = check_vector(self.errors(m, limit, _generator(rng)), m, "errors")
        spent = int(np.count_nonzero(b))
        if spent > limit:
            raise ValueError(f"errors returned {spent} non-zero entries, but eta = {self.eta:g} of {m} allows {limit}")
        return b

    def corrupt(self, X: ArrayLike, clean: ArrayLike, rng: np.random.Generator) -> Corruption:
        """Add b to the labels; parameters as in `MassartNoise.corrupt`, but only the number of rows is used.

        The `allowed` rows of the answer are those where b is not zero.
        """
        m = check_matrix(X).shape[0]
        b = self.draw(m, rng)
        truth = check_vector(clean, m, "clean")
        with np.errstate(over="ignore"):
            labels = check_vector(np.where(b != 0.0, truth + b, truth), m, "clean + errors")
        return Corruption(labels=labels, allowed=b != 0.0, changed=labels != truth)


def massart_rate(eta: float, m: int, delta: float) -> float:
    r"""Lemma C.2: return the Massart rate :math:`\eta + \sqrt{\log(1/\delta) / (2m)}`.

    By Hoeffding's inequality an adversary of this rate may change at least :math:`\eta m` of the m rows except with
    probability :math:`\delta`.

    Notes
    -----
    Paper: Lemma C.2. Tests: test_noise_oblivious::test_massart_rate_is_the_lemmas_formula_and_meets_hoeffding
    """
    _number(eta, "eta", lambda eta: 0.0 <= eta < 1.0, "at least 0 and below 1")
    _number(delta, "delta", lambda delta: 0.0 < delta < 1.0, "strictly between 0 and 1")
    return float(eta) + math.sqrt(-math.log(delta) / (2.0 * _count(m, "m", 1)))


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """What a Massart adversary of rate `rate` did in the place of an oblivious one that chose b = `errors`.

    It `succeeded` if it could change enough rows to place every non-zero entry of b; otherwise some found no row.
    """

    corruption: Corruption
    errors: FloatArray
    rate: float
    succeeded: bool


def simulate_oblivious(
    noise: ObliviousNoise, X: ArrayLike, clean: ArrayLike, delta: float, rng: np.random.Generator
) -> Simulation:
    r"""Lemma C.2: reproduce oblivious noise by a Massart adversary of rate ``massart_rate(noise.eta, m, delta)``.

    Rows are drawn independently and b knows nothing of them, so adding b is the same as adding Ub for a uniform random
    permutation matrix U. The Massart adversary does that: it adds the non-zero entries of b to rows drawn uniformly,
    without replacement, from those it may change. Except with probability `delta`, in (0, 1), there are enough, and
    given that, the labels are distributed exactly as under the oblivious noise. `X` is (m, d), `clean` (m,).

    Notes
    -----
    A rate of 1/2 or more is refused, since it is not Massart noise. The lemma does not print this condition.

    Paper: Lemma C.2. Tests: test_noise_oblivious::test_the_simulated_table_has_the_law_of_oblivious_noise, test_noise_oblivious::test_the_simulation_succeeds_with_probability_at_least_one_minus_delta
    """  # noqa: E501 - the line is read by the table of the documentation
    rows = check_matrix(X)
    m = rows.shape[0]
    rate = massart_rate(noise.eta, m, delta)
    if rate >= 0.5:
        remedy = "no number of rows is enough for this eta"
        if noise.eta < 0.5:
            needed = math.floor(-math.log(delta) / (2.0 * (0.5 - noise.eta) ** 2)) + 1
            remedy = f"use at least {needed} rows or a larger delta"
        case = f"eta = {noise.eta:g} with m = {m} rows and delta = {delta:g}"
        raise ValueError(f"{case} needs a Massart rate of {rate:g}, which must be below 1/2: {remedy}")
    b = noise.draw(m, rng)
    values = b[b != 0.0]

    def place(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
        places = rng.permutation(np.flatnonzero(allowed))[: values.size]  # fewer than `values` when there is no room
        labels = clean.copy()
        labels[places] += values[: places.size]
        return labels

    corruption = MassartNoise(rate, place).corrupt(rows, clean, rng)
    room = int(np.count_nonzero(corruption.allowed))
    return Simulation(corruption=corruption, errors=b, rate=rate, succeeded=room >= values.size)


# Arguments: each is returned in its canonical type, or refused by one ValueError that names it


def _count(value: Any, name: str, least: int) -> int:
    if not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def _number(
    value: Any, name: str, fits: Callable[[float], bool] = math.isfinite, what: str = "a finite number"
) -> float:
    if not isinstance(value, int | float | np.integer | np.floating) or not fits(float(value)):
        raise ValueError(f"{name} must be {what}, got {value!r}")
    return float(value)


def _generator(rng: np.random.Generator) -> np.random.Generator:
    if not isinstance(rng, np.random.Generator):  # two calls with a bare seed would repeat themselves
        raise ValueError(f"rng must be a numpy.random.Generator, got {rng!r}; make one with numpy.random.default_rng")
    return rng
