r"""What is searched for: the parameter that fits the most rows.

.. math::
    \max_w \; \#\{ i : |y_i - w \cdot z_i| \le s_i + \rho \, (|y_i| + |w|) \}

over unit rows :math:`z_i`, counted with weights. The allowances are generous, with :math:`\rho` about half of the
digits: a candidate that is right but not yet polished must count. The caller decides at the data's own precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class Candidate:
    """A parameter and the weight of the rows it fits."""

    w: FloatArray
    agreement: float


@dataclass(frozen=True, slots=True)
class Consensus:
    """Rows to be fitted by as many as possible.

    Attributes
    ----------
    Z : (n, k) array
        Unit rows, best in radial-isotropic position.
    y : (n,) array
        Labels, scaled with their rows.
    slack : (n,) array
        Residual that each row may have whatever w is.
    near : float
        Residual that a row may have relative to its label and w.
    weights : (n,) array
    lengths : (n,) array
        What the rows were divided by: an adversary gains most on long ones, so short ones are drawn more often.
    """

    Z: FloatArray
    y: FloatArray
    slack: FloatArray
    near: float
    weights: FloatArray
    lengths: FloatArray

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum())

    @property
    def chance(self) -> float:
        """What any k independent rows give: a candidate with no more has found nothing."""
        heaviest = np.sort(self.weights)[::-1]
        return float(heaviest[: self.Z.shape[1] + 1].sum())

    @property
    def unique(self) -> float:
        """In general position, a parameter that fits more than this fits more than any other."""
        return (self.total + self.chance - float(self.weights.max())) / 2

    def restricted(self, index: NDArray[np.intp]) -> Consensus:
        """Return the problem of some of the rows."""
        return Consensus(
            self.Z[index], self.y[index], self.slack[index], self.near, self.weights[index], self.lengths[index]
        )

    def fits(self, residuals: FloatArray, W: FloatArray) -> BoolArray:
        """Return which rows each parameter fits: (b, n) for absolute residuals (b, n) and parameters (b, k)."""
        reach = np.abs(self.y) + np.linalg.norm(W, axis=1)[:, None]
        return np.asarray(residuals <= self.slack + self.near * reach)

    def residuals(self, W: FloatArray) -> FloatArray:
        """Return the absolute residuals of each parameter on each row, (b, n)."""
        return np.abs(self.y - W @ self.Z.T)

    def best(self, W: FloatArray, residuals: FloatArray | None = None) -> Candidate:
        """Return the parameter of `W`, (b, k), that fits most."""
        agreement = self.fits(self.residuals(W) if residuals is None else residuals, W) @ self.weights
        j = int(np.argmax(agreement))
        return Candidate(W[j], float(agreement[j]))
