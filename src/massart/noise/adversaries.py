r"""Adversaries: what to write into the labels that Massart noise lets go.

Each is a function ``adversary(X, clean, allowed, rng)`` or a factory that returns one. Definition 1.1's adversary knows
everything, so a factory may be given the truth itself. The names in parentheses below are those of the measured tables:

=================================  ====================================================================
``paper_adversary(w)``             Section 4: :math:`-w \cdot x`, only where a coordinate exceeds d/2
``negate(w)`` (neg)                :math:`-w \cdot x`, the paper's flip read literally
``flip(w, concept)`` (flip)        :math:`f_{-w}(x)`: for a ReLU, :math:`\max(0, -w \cdot x)`
``far_constant`` (const)           ten times the largest clean label, the same for every row
``constant(value)``, ``zero``      one given value; zero (which a ReLU explains by w = 0)
``decoy(other, concept)`` (decoy)  :math:`f_{w'}(x)`: another member of the class
``scale(factor)``                  1.1 y: wrong by a little; -100 y: Section 4's drug-discovery set
``gross(spread)``                  noise without a plan
``idle``                           the clean label: noise that was allowed and not used
``where(predicate, adversary)``    an adversary that holds back outside a set of rows
=================================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from massart.noise.arguments import check_number, check_vector
from massart.noise.concepts import Concept, linear
from massart.noise.model import Adversary
from massart.rows import BoolArray, FloatArray, check_mask

Predicate: TypeAlias = Callable[[FloatArray], BoolArray]
"""``predicate(X)``: one boolean a row."""

FAR = 10.0
"""How far `far_constant` lies out, in units of the largest clean label."""


def idle(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Change nothing, as Definition 1.1 allows."""
    return clean


def zero(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Answer 0. On Gaussian rows with ReLU labels most rows are then fitted by w = 0, which must not be returned."""
    return np.where(allowed, 0.0, clean)


def far_constant(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
    r"""Answer :math:`10 \max_i |f(x_i)|` on every row: consistent, and far outside (10 if every clean label is 0)."""
    return np.where(allowed, FAR * _largest(clean), clean)


def constant(value: float) -> Adversary:
    """Answer `value` on every row."""
    answer = check_number(value, "value")
    return _answering(lambda X, clean, rng: answer)


def scale(factor: float) -> Adversary:
    r"""Answer `factor` times the clean label.

    1.1 is wrong by little on every row and by the same rule; -100 is the adversary of Section 4's drug-discovery
    experiment; -1 flips a linear function. A clean label of 0 stays 0.
    """
    multiple = check_number(factor, "factor")
    return _answering(lambda X, clean, rng: multiple * clean)


def gross(spread: float = 100.0) -> Adversary:
    r"""Answer independent uniform numbers from :math:`\pm s \max_i |f(x_i)|`, s being `spread`."""
    reach = check_number(spread, "spread")
    if reach <= 0.0:
        raise ValueError(f"spread must be positive, got {reach:g}")
    return _answering(lambda X, clean, rng: reach * _largest(clean) * rng.uniform(-1.0, 1.0, clean.shape[0]))


def decoy(other: ArrayLike, concept: Concept) -> Adversary:
    r"""Answer with another member of the class, :math:`f_{w'}(x)` for w' = `other`.

    At :math:`\eta = 1/2` truth and decoy would trade places.
    """
    parameter = check_vector(other, "other")
    return _answering(lambda X, clean, rng: concept(X, parameter))


def negate(w: ArrayLike) -> Adversary:
    r"""Answer :math:`-w \cdot x`, Section 4's flipped label read literally, for either class.

    For a linear truth this is ``scale(-1.0)``. For a ReLU truth it is negative on active rows, where no ReLU can be,
    and positive on the others.
    """
    return decoy(-check_vector(w, "w"), linear)


def flip(w: ArrayLike, concept: Concept) -> Adversary:
    r"""Answer :math:`f_{-w}(x)`: the flip that stays in the class, :math:`\max(0, -w \cdot x)` for a ReLU."""
    return decoy(-check_vector(w, "w"), concept)


def where(predicate: Predicate, adversary: Adversary) -> Adversary:
    """Let `adversary` act only on rows of ``predicate(X)``: its mask is the intersection of both."""

    def restricted(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
        return adversary(X, clean, allowed & check_mask(predicate(X), X.shape[0], "predicate(X)"), rng)

    return restricted


def high_leverage(X: FloatArray) -> BoolArray:
    """Return the rows of which any coordinate is greater than d/2: Section 4's rows that noise may reach.

    In the paper's mixture these are the rows not drawn around :math:`e_1`.
    """
    return np.asarray(X.max(axis=1) > X.shape[1] / 2.0)


def paper_adversary(w: ArrayLike) -> Adversary:
    r"""Return the adversary of Section 4: :math:`-w \cdot x` where any coordinate of x is greater than d/2."""
    return where(high_leverage, negate(w))


def _answering(answer: Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray | float]) -> Adversary:
    """Make an adversary of what it answers wherever it may."""

    def adversary(X: FloatArray, clean: FloatArray, allowed: BoolArray, rng: np.random.Generator) -> FloatArray:
        return np.where(allowed, answer(X, clean, rng), clean)

    return adversary


def _largest(clean: FloatArray) -> float:
    return float(np.abs(clean).max()) or 1.0
