"""How far the coefficients of an estimate may be off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.robust.refinement import SINGULAR, Placed, leverages, regular_inverse
from massart.rows import FloatArray

_LEAST_STEEPNESS = 0.1  # slope a row of full trust
_LEAST_PART = 0.5  # of the mean slope, in each direction

UNDETERMINED = 1e-8
"""Part of a coefficient's direction that the trusted rows may leave open before it counts as not determined."""


@dataclass(frozen=True, slots=True)
class Pull:
    r"""What each row does to an estimate that solves :math:`\sum_i a_i \psi(r_i) z_i = 0`.

    Attributes
    ----------
    trust : (n,) array
        :math:`w_i = \psi(r_i)/r_i`, from 0 to 1.
    slopes : (n,) array
        :math:`\psi'(r_i)`.
    residuals : (n,) array
        :math:`r_i`.
    """

    trust: FloatArray
    slopes: FloatArray
    residuals: FloatArray


def covariance_of(rows: Placed, pull: Pull, ridge: float) -> tuple[FloatArray, FloatArray]:
    r"""Return the covariance of an estimate in position, and the projector on what the trusted rows determine.

    .. math::

        B^{-1} \Bigl(\sum_i a_i^2 \frac{\psi_i^2}{(1 - h_i)^2} z_i z_i^\top\Bigr) B^{-1}, \qquad
        B = \sum_i a_i \psi'_i z_i z_i^\top + \lambda I ,

    the sandwich of Huber (1967), which asks for no equal variances, with the forces of deleted rows (MacKinnon and
    White 1985, HC3). Where negative slopes, of rows between right and wrong, outweigh the others, B is the
    weighted Gram matrix times the mean slope.
    """
    shares = rows.shares
    q = shares * pull.trust
    gram, _ = rows.normal_equations(q)
    bread, _ = rows.normal_equations(shares * pull.slopes)
    middle = max(float(shares @ pull.slopes) / float(q.sum()), _LEAST_STEEPNESS)
    sizes, axes = np.linalg.eigh(gram)
    kept = sizes > SINGULAR * sizes[-1]
    root = axes[:, kept] / np.sqrt(sizes[kept])
    if not np.linalg.eigvalsh(root.T @ bread @ root)[0] > _LEAST_PART * middle:
        bread = middle * gram
    inverse = regular_inverse(bread, ridge)
    freedom = 1.0 - leverages(rows, pull.trust, ridge / float(q.sum()))
    meat, _ = rows.normal_equations((q * pull.residuals / freedom) ** 2)
    return inverse @ meat @ inverse, root @ root.T @ gram


def standard_errors_of(M: FloatArray, covariance: FloatArray, determined: FloatArray) -> FloatArray:
    """Return the standard errors of w = M c; infinite for a coefficient that the trusted rows do not determine."""
    errors = np.sqrt(np.maximum((M @ covariance @ M.T).diagonal(), 0.0))
    span = np.linalg.qr(M)[0]
    lost = np.linalg.norm(np.eye(len(M)) - span @ span.T, axis=1) > UNDETERMINED
    lost |= np.linalg.norm(M - M @ determined, axis=1) > UNDETERMINED * np.linalg.norm(M, axis=1)
    return np.where(lost, np.inf, errors)
