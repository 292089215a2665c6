r"""Tukey's biweight: the bounded loss behind the S-, M- and D-steps, and its constants for Gaussian residuals.

.. math::

    \rho_c(u) = 1 - (1 - u^2/c^2)_+^3, \qquad w_c(u) = (1 - u^2/c^2)_+^2, \qquad \psi_c(u) = u\, w_c(u)

A residual beyond c scales has weight zero: it counts as wrong and no further than that, however far it lies. Every
constant below is an integral of a polynomial against the normal density on :math:`[-c, c]`, by the recursion
:math:`m_k = (k - 1) m_{k-2} - 2 c^{k-1} \varphi(c)`.

References
----------
Beaton and Tukey (1974), *The fitting of power series, meaning polynomials, illustrated on band-spectroscopic data*.
Rousseeuw and Yohai (1984), *Robust regression by means of S-estimators*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, pi, sqrt

import numpy as np
from scipy.special import ndtr

from massart.fast_lts import quantile
from massart.rows import FloatArray

NORMAL_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a standard normal variable."""

_SCALE_STEPS = 100
_SCALE_TOLERANCE = 1e-10
_LONGEST_STEP = 0.5  # of the logarithm of a scale


def loss(u: FloatArray, c: float) -> FloatArray:
    r"""Return :math:`\rho_c(u)`, between 0 and 1."""
    return np.asarray(1.0 - np.maximum(1.0 - (u / c) ** 2, 0.0) ** 3)


def weight(u: FloatArray, c: float) -> FloatArray:
    r"""Return :math:`w_c(u) = \psi_c(u)/u`, between 0 and 1."""
    return np.asarray(np.maximum(1.0 - (u / c) ** 2, 0.0) ** 2)


def slope(u: FloatArray, c: float) -> FloatArray:
    r"""Return :math:`\psi_c'(u)`; negative where the influence of a residual falls again."""
    t = (u / c) ** 2
    return np.where(t < 1.0, (1.0 - t) * (1.0 - 5.0 * t), 0.0)


@dataclass(frozen=True, slots=True)
class Constants:
    """Expectations under a standard normal e, for one c."""

    mean_loss: float  # E rho_c(e): an M-scale that shall be consistent equates the mean loss with it
    mean_slope: float  # E psi_c'(e)
    efficiency: float  # (E psi')^2 / E psi^2: variance of the mean over that of the M-estimate
    mean_weight: float  # E w_c(e)
    kappa: float  # E w_c(e) e^2 / E w_c(e): by how much weighting makes residuals look smaller


@lru_cache(maxsize=64)
def constants(c: float) -> Constants:
    """Return the Gaussian expectations for the tuning constant `c`."""
    density = exp(-c * c / 2.0) / sqrt(2.0 * pi)
    m = [2.0 * float(ndtr(c)) - 1.0]
    for k in (2, 4, 6, 8, 10):
        m.append((k - 1) * m[-1] - 2.0 * c ** (k - 1) * density)
    q = [moment / c ** (2 * j) for j, moment in enumerate(m)]  # E (e/c)^(2j) on [-c, c]
    slope_mean = q[0] - 6 * q[1] + 5 * q[2]
    square = c * c * (q[1] - 4 * q[2] + 6 * q[3] - 4 * q[4] + q[5])
    weight_mean = q[0] - 2 * q[1] + q[2]
    return Constants(
        mean_loss=3 * q[1] - 3 * q[2] + q[3] + 1.0 - q[0],
        mean_slope=slope_mean,
        efficiency=slope_mean**2 / square,
        mean_weight=weight_mean,
        kappa=c * c * (q[1] - 2 * q[2] + q[3]) / weight_mean,
    )


@lru_cache(maxsize=64)
def tuning_for_breakdown(share: float) -> float:
    """Return c with mean loss `share`: the M-scale then withstands that share of wrong rows (1.548 for one half)."""
    from scipy.optimize import brentq  # slow to import

    return float(brentq(lambda c: constants(c).mean_loss - share, 0.3, 50.0, xtol=1e-12))


@lru_cache(maxsize=64)
def tuning_for_efficiency(efficiency: float) -> float:
    """Return c at which the M-estimate has the given Gaussian efficiency (4.685 for 95 %)."""
    from scipy.optimize import brentq  # slow to import

    return float(brentq(lambda c: constants(c).efficiency - efficiency, 1.0, 60.0, xtol=1e-12))


TUNING = 4.685064948543447  # tuning_for_efficiency(0.95), which is slow to import
"""c of M-steps: 95 % efficient against least squares when all rows are right."""


def m_scale(residuals: FloatArray, shares: FloatArray, breakdown: float, freedom: float = 1.0) -> FloatArray:
    r"""Return the M-scale of each row of `residuals`, (..., n): s with :math:`\sum_i a_i \rho_c(r_i/s) = b`.

    The shares a sum to 1; b is the `breakdown`, the share of wrong residuals that the scale withstands, times the
    degrees of `freedom` of a residual; c makes it consistent. It is 0 where residuals that are not 0 weigh at most b.
    """
    c = tuning_for_breakdown(breakdown)
    breakdown *= freedom
    sizes = np.abs(residuals)
    # The quantile is within a small factor of the answer, from where Newton's method for log s takes few steps.
    scale = quantile(sizes, shares, 1.0 - breakdown)
    positive = scale > 0
    for _ in range(_SCALE_STEPS):
        t = (sizes / np.where(positive, c * scale, 1.0)[..., None]) ** 2
        rest = np.maximum(1.0 - t, 0.0)
        excess = (1.0 - rest**3) @ shares - breakdown
        descent = 6.0 * (t * rest**2) @ shares
        step = np.clip(excess / np.maximum(descent, np.finfo(float).tiny), -_LONGEST_STEP, _LONGEST_STEP)
        scale = np.where(positive, scale * np.exp(step), 0.0)
        if np.all(np.abs(step[positive]) <= _SCALE_TOLERANCE):
            break
    return np.asarray(scale)
