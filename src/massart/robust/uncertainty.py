"""How far the coefficients of an estimate may be off."""

from __future__ import annotations

import numpy as np

from massart.robust.biweight import TUNING, slope, weight
from massart.robust.modes import Modes
from massart.robust.refinement import SINGULAR, Estimate, Placed, leverages, regular_inverse
from massart.rows import FloatArray

_LEAST_STEEPNESS = 0.1  # slope a row of full trust
_LEAST_PART = 0.5  # of the mean slope, in each direction

UNDETERMINED = 1e-8
"""Part of a coefficient's direction that the trusted rows may leave open before it counts as not determined."""


def uncertainty_of(
    M: FloatArray, rows: Placed, estimate: Estimate, modes: Modes | None
) -> tuple[FloatArray, FloatArray]:
    r"""Return the covariance of the coefficients M c, and their standard errors.

    The estimate solves :math:`\sum_i a_i \psi(r_i) z_i = 0`; the trust in a row is :math:`\psi(r_i)/r_i`. Then the
    covariance of c is

    .. math::

        B^{-1} \Bigl(\sum_i a_i^2 \frac{\psi_i^2}{(1 - h_i)^2} z_i z_i^\top\Bigr) B^{-1}, \qquad
        B = \sum_i a_i \psi'_i z_i z_i^\top + \lambda I ,

    the sandwich of Huber (1967), which asks for no equal variances, with the forces of deleted rows (MacKinnon and
    White 1985, HC3). Where negative slopes, of rows between right and wrong, outweigh the others, B is the
    weighted Gram matrix times the mean slope.
    """
    shares, residuals = rows.shares, rows.residuals(estimate.coef[None])[0]
    if modes is None:
        u = residuals / estimate.scale
        trust, slopes = weight(u, TUNING), slope(u, TUNING)
    else:
        trust, slopes = modes.trust, modes.slopes(residuals)
    q = shares * trust
    gram, _ = rows.normal_equations(q)
    bread, _ = rows.normal_equations(shares * slopes)
    middle = max(float(shares @ slopes) / float(q.sum()), _LEAST_STEEPNESS)
    sizes, axes = np.linalg.eigh(gram)
    kept = sizes > SINGULAR * sizes[-1]
    root = axes[:, kept] / np.sqrt(sizes[kept])
    if not np.linalg.eigvalsh(root.T @ bread @ root)[0] > _LEAST_PART * middle:
        bread = middle * gram
    inverse = regular_inverse(bread, estimate.ridge)
    freedom = 1.0 - leverages(rows, trust, estimate.ridge / float(q.sum()))
    meat, _ = rows.normal_equations((q * residuals / freedom) ** 2)
    covariance = M @ (inverse @ meat @ inverse) @ M.T
    return covariance, _standard_errors(M, covariance, root @ root.T @ gram)


def _standard_errors(M: FloatArray, covariance: FloatArray, determined: FloatArray) -> FloatArray:
    """Return the roots of the diagonal; infinite for a coefficient that the trusted rows do not determine."""
    errors = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    span = np.linalg.qr(M)[0]
    lost = np.linalg.norm(np.eye(len(M)) - span @ span.T, axis=1) > UNDETERMINED
    lost |= np.linalg.norm(M - M @ determined, axis=1) > UNDETERMINED * np.linalg.norm(M, axis=1)
    return np.where(lost, np.inf, errors)
