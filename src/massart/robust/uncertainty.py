"""How far the coefficients of an M-estimate may be off."""

from __future__ import annotations

import numpy as np

from massart.robust.biweight import constants, slope, weight
from massart.robust.concentration import Positioned
from massart.robust.refinement import Estimate, deflation, regular_inverse
from massart.rows import FloatArray


def covariance_of(rows: Positioned, counts: FloatArray, estimate: Estimate, c: float) -> tuple[FloatArray, FloatArray]:
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
    gram = (rows.Z * (q / q.sum())[:, None]).T @ rows.Z
    inverse = regular_inverse(gram, estimate.ridge / q.sum())
    meat = (rows.Z * (q2 / q2.sum())[:, None]).T @ rows.Z
    factor = estimate.scale**2 / len(rows.y) * spread / steepness**2
    determined = regular_inverse(gram, 0.0) @ gram
    return factor * inverse @ meat @ inverse, determined
