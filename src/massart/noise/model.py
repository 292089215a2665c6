r"""Massart noise for real-valued functions (Definition 1.1).

For a noise rate :math:`\eta < 1/2` and an unknown function f, every row is labelled

.. math::

    y_i = \begin{cases} f(x_i) & \text{with probability } 1 - \eta, \\
                        \text{anything} & \text{with probability } \eta, \end{cases}

independently over the rows. An adversary chooses the "anything" after it has seen all rows, all clean labels and
which labels it may change; it may also leave a label as it is. An adversary is a plain function
``adversary(X, clean, allowed, rng)`` that returns a label for every row; :class:`MassartNoise` draws the rows it may
change and holds it to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.noise.arguments import check_generator, check_label_vector, check_number
from massart.rows import BoolArray, FloatArray, check_matrix

Adversary: TypeAlias = Callable[[FloatArray, FloatArray, BoolArray, np.random.Generator], FloatArray]
"""``adversary(X, clean, allowed, rng)``: returns labels (n,) that differ from `clean` only where `allowed`."""

_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Corruption:
    """Labels after the noise, and where it struck.

    Attributes
    ----------
    labels : ndarray, shape (n,)
        The labels a learner sees.
    allowed : ndarray of bool, shape (n,)
        The rows whose label the adversary could choose.
    changed : ndarray of bool, shape (n,)
        The rows whose label differs from the clean one; never more than `allowed`.
    """

    labels: FloatArray
    allowed: BoolArray
    changed: BoolArray


@dataclass(frozen=True, slots=True)
class MassartNoise:
    r"""Massart noise of rate `eta` with the given adversary (Definition 1.1).

    Parameters
    ----------
    eta : float
        Noise rate, :math:`0 \le \eta < 1/2`. At one half an adversary answers with another function of the class
        wherever it may, and no learner can tell which of the two is the truth.
    adversary : callable
        ``adversary(X, clean, allowed, rng)``, see :mod:`massart.noise.adversaries`.

    Examples
    --------
    >>> import numpy as np
    >>> from massart.noise import MassartNoise, gaussian, linear, scale
    >>> rng = np.random.default_rng(0)
    >>> X = gaussian(5, 2, rng)
    >>> corruption = MassartNoise(0.4, scale(-100.0)).corrupt(X, linear(X, [1.0, 2.0]), rng)
    >>> bool((corruption.changed <= corruption.allowed).all())
    True
    """

    eta: float
    adversary: Adversary

    def __post_init__(self) -> None:
        eta = check_number(self.eta, "eta")
        if not 0.0 <= eta < 0.5:
            raise ValueError(
                f"eta must be at least 0 and below 1/2, got {eta:g}: from one half on, the adversary can make "
                "another function fit as many rows as the true one"
            )
        if not callable(self.adversary):
            raise ValueError(f"adversary must be a function (X, clean, allowed, rng) -> labels, got {self.adversary!r}")

    def corrupt(self, X: ArrayLike, clean: ArrayLike, rng: np.random.Generator) -> Corruption:
        r"""Draw the rows the adversary may change and let it choose their labels.

        The mask is drawn first, as :math:`U_i < \eta` with uniform :math:`U_i`: with the same seed every adversary
        gets the same rows, and a larger `eta` allows the rows of a smaller one and more.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Rows.
        clean : array_like, shape (n,)
            Labels :math:`f(x_i)`.
        rng : numpy.random.Generator
            Draws the mask, then serves the adversary.

        Raises
        ------
        ValueError
            For bad input, and when the adversary returns labels of a wrong shape, labels that are not finite, or
            changes a row it may not change by as much as one bit.
        """
        check_generator(rng)
        rows = check_matrix(X)
        truth = check_label_vector(clean, rows.shape[0], "clean")
        allowed = np.asarray(rng.random(rows.shape[0]) < self.eta)
        # An answer that overflows is refused below, once, by name.
        with np.errstate(over="ignore", invalid="ignore"):
            answer = self.adversary(_read_only(rows), _read_only(truth), _read_only(allowed), rng)
        # A copy: an adversary may well return the array it was given.
        labels = check_label_vector(answer, rows.shape[0], "the adversary's answer").copy()
        _refuse_cheating(labels, truth, allowed)
        return Corruption(labels=labels, allowed=allowed, changed=labels != truth)


def _read_only(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    view = array.view()
    view.flags.writeable = False
    return view


def _refuse_cheating(labels: FloatArray, clean: FloatArray, allowed: BoolArray) -> None:
    touched = labels.view(np.uint64) != clean.view(np.uint64)
    cheated = np.flatnonzero(touched & ~allowed)
    if cheated.size:
        row = int(cheated[0])
        raise ValueError(
            f"adversary changed the label of row {row} from {clean[row]!r} to {labels[row]!r}, a row it may not change "
            f"({cheated.size} such rows)"
        )
