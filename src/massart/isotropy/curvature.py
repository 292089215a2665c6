r"""A cheap model of the curvature of f: its Hessian, pinched to the coordinate axes of the images.

At a map with images :math:`u_i` the Hessian of f is the quartic form

.. math::
    H(S) = \tfrac12 (\Psi S + S \Psi) - k \sum_i c_i \, u_i u_i^\top (u_i^\top S u_i) .

Its diagonal part, acting on diagonal S, and its diagonal entries for the other :math:`S_{ab}` need only the matrix
:math:`K_{ab} = k \sum_i c_i u_{ia}^2 u_{ib}^2`: one pass. The model is exact when flipping the sign of a coordinate
of u does not change the distribution, so for independent symmetric coordinates and for elliptical data; it extends
the partial Newton method of Duembgen, Nordhausen and Schuhmacher (2016), which keeps the diagonal part alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.isotropy.moments import fourth_moments
from massart.rows import FloatArray

_FLATTEST = 0.02  # curvatures below this fraction of one are not trusted


@dataclass(frozen=True, slots=True)
class PinchedHessian:
    """The pinched Hessian in factored form."""

    off_diagonal: FloatArray  # (k, k), curvature of each S_ab; its diagonal is not used
    rates: FloatArray  # (k,), eigenvalues of the diagonal part
    axes: FloatArray  # (k, k), its eigenvectors

    def apply(self, S: FloatArray) -> FloatArray:
        """Return the model's H(S)."""
        image = self.off_diagonal * S
        np.fill_diagonal(image, self.axes @ (self.rates * (self.axes.T @ np.diag(S))))
        return image

    def solve(self, G: FloatArray) -> FloatArray:
        """Return S with H(S) = G."""
        S = G / self.off_diagonal
        np.fill_diagonal(S, self.axes @ ((self.axes.T @ np.diag(G)) / self.rates))
        return S


def pinched_hessian(X: FloatArray, T: FloatArray, psi: FloatArray, weights: FloatArray | None) -> PinchedHessian:
    """Return the pinched Hessian at the map `T`, whose Psi is `psi`: one read of the rows."""
    k = len(psi)
    K = fourth_moments(X, T, weights)
    diagonal = np.diag(psi)
    off_diagonal = (diagonal[:, None] + diagonal) / 2 - 2 * K
    # H vanishes on the identity, since f does not change with the scale of T; 1/k pins that direction.
    rates, axes = np.linalg.eigh(np.diag(diagonal) - K + 1 / k)
    return PinchedHessian(np.maximum(off_diagonal, _FLATTEST), np.maximum(rates, _FLATTEST), axes)
