"""How far the coefficients of an M-estimate may be off."""

from __future__ import annotations

import numpy as np

from massart.robust.biweight import constants, slope, weight
from massart.robust.refinement import Estimate, Placed, deflation, regular_inverse
from massart.rows import FloatArray

UNDETERMINED = 1e-8
"""Part of a coefficient's direction that the trusted rows may leave open before it counts as not determined."""


def covariance_of(rows: Placed, counts: FloatArray, estimate: Estimate, c: float) -> tuple[FloatArray, FloatArray]:
    r"""Return the covariance of the M-estimate in position, and the projector on what the trusted rows determine.

    .. math::

        \frac{\sigma^2}{n} \frac{\overline{\psi^2}}{(\overline{\psi'})^2}\, B\, G_2\, B, \qquad
        B = (G + \lambda I)^{-1}, \quad G = \frac{\sum a w z z^\top}{\sum a w}, \quad
        G_2 = \frac{\sum a^2 w z z^\top}{\sum a^2 w}

    with means over all rows: wrong rows have no part in the Gram matrices, whatever their leverage.
    """
    residuals = rows.residuals(estimate.coef[None])[0] / estimate.scale
    w = weight(residuals, c)
    u = residuals / deflation(rows, w, estimate.ridge, c)
    psi = u * weight(np.minimum(np.abs(u), c), c)
    steepness = float(rows.shares @ slope(u, c))
    # Negative slopes of rows in between can outweigh the others only where hardly a row is right.
    steepness = max(steepness, 0.1 * constants(c).mean_slope * float(rows.shares @ w))
    spread = float((rows.shares * counts) @ (np.where(np.abs(u) < c, psi, 0.0) ** 2))
    q, q2 = rows.shares * w, rows.shares * counts * w
    gram, _ = rows.normal_equations(q / q.sum())
    inverse = regular_inverse(gram, estimate.ridge / q.sum())
    meat, _ = rows.normal_equations(q2 / q2.sum())
    factor = estimate.scale**2 / np.count_nonzero(rows.shares) * spread / steepness**2
    determined = regular_inverse(gram, 0.0) @ gram
    return factor * inverse @ meat @ inverse, determined


def standard_errors_of(M: FloatArray, covariance: FloatArray, determined: FloatArray) -> FloatArray:
    """Return the standard errors of w = M c; infinite for a coefficient that the trusted rows do not determine."""
    errors = np.sqrt(np.maximum((M @ covariance @ M.T).diagonal(), 0.0))
    span = np.linalg.qr(M)[0]
    lost = np.linalg.norm(np.eye(len(M)) - span @ span.T, axis=1) > UNDETERMINED
    lost |= np.linalg.norm(M - M @ determined, axis=1) > UNDETERMINED * np.linalg.norm(M, axis=1)
    return np.where(lost, np.inf, errors)
