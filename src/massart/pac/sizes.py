r"""Sample sizes of Theorems 1.2, 1.3 and B.1 and of Lemma B.3, with what they leave open as parameters.

The paper states :math:`m = \tilde O(f)`: a constant and a power of a logarithm are open. All functions here return

.. math::
    m = \left\lceil c \, f \, \max(1, \ln f)^p \right\rceil

for a `constant` c and a `log_power` p, with c = 1 and p = 0 unless the caller knows better. They say how the number of
rows grows, not how many a table needs: that is what a certificate tells, and it is far fewer.
"""

from __future__ import annotations

import math


def linear_sample_size(d: int, eta: float, rho: float = 1.0, *, constant: float = 1.0, log_power: float = 0.0) -> int:
    r"""Return the rows for exact recovery of a linear function (Theorem 1.2).

    .. math:: m = \tilde O\!\left( \frac{d^3}{\rho (1 - 2\eta)^2} \right)

    Parameters
    ----------
    d : int
        Dimension.
    eta : float in [0, 1/2)
        Noise rate.
    rho : float in (0, 1]
        No hyperplane holds more than a share 1 - rho of the distribution.
    constant, log_power : float
        c and p of the module's formula.

    Examples
    --------
    >>> linear_sample_size(10, 0.4), linear_sample_size(10, 0.4, 0.5)
    (25000, 50000)
    """
    growth = float(_dimension(d)) ** 3 / (_share(rho, "rho") * _margin(eta) ** 2)
    return _size(growth, constant, log_power)


def relu_sample_size(
    d: int, eta: float, rho: float = 1.0, half_space: float = 0.5, *, constant: float = 1.0, log_power: float = 0.0
) -> int:
    r"""Return the rows for exact recovery of a ReLU (Theorem 1.3).

    .. math:: m = \tilde O\!\left( \frac{d^3}{\rho \lambda^2 (1 - 2\eta)^2} \right)

    Parameters
    ----------
    d, eta, constant, log_power
        As for :func:`linear_sample_size`.
    rho : float in (0, 1]
        No hyperplane holds more than a share 1 - rho of any half-space.
    half_space : float in (0, 1]
        :math:`\lambda`: every half-space through the origin holds this share at least; 1/2 for symmetric rows.
    """
    growth = float(_dimension(d)) ** 3 / (
        _share(rho, "rho") * _share(half_space, "half_space") ** 2 * _margin(eta) ** 2
    )
    return _size(growth, constant, log_power)


def pac_sample_size(
    d: int, bits: float, epsilon: float, eta: float, *, constant: float = 1.0, log_power: float = 0.0
) -> int:
    r"""Return the rows for a linear function that is right on all but a share epsilon (Theorem B.1).

    .. math:: m = \tilde O\!\left( \frac{d^4 b^3}{\epsilon^3 (1 - 2\eta)^2} \right)

    Parameters
    ----------
    d, eta, constant, log_power
        As for :func:`linear_sample_size`.
    bits : float
        b, the bits of the numbers in a row.
    epsilon : float in (0, 1]
    """
    growth = (
        float(_dimension(d)) ** 4 * _positive(bits, "bits") ** 3 / (_share(epsilon, "epsilon") ** 3 * _margin(eta) ** 2)
    )
    return _size(growth, constant, log_power)


def outlier_sample_size(d: int, bits: float, alpha: float, *, constant: float = 1.0, log_power: float = 0.0) -> int:
    r"""Return the rows from which an ellipsoid without outliers is one for the distribution, too (Lemma B.3).

    .. math:: m = \tilde O\!\left( \frac{d^2 b}{\alpha} \right)

    Parameters
    ----------
    d, bits, constant, log_power
        As for :func:`pac_sample_size`.
    alpha : float in (0, 1]
        Share that may be left out.
    """
    growth = float(_dimension(d)) ** 2 * _positive(bits, "bits") / _share(alpha, "alpha")
    return _size(growth, constant, log_power)


def _size(growth: float, constant: float, log_power: float) -> int:
    if not (math.isfinite(log_power) and log_power >= 0):
        raise ValueError(f"log_power must be finite and not negative, got {log_power}")
    size: float = _positive(constant, "constant") * growth * max(1.0, math.log(growth)) ** log_power
    return math.ceil(size * (1 - 1e-12))  # 25000.000000000004 rows are 25000


def _dimension(d: int) -> int:
    if d < 1:
        raise ValueError(f"d must be at least 1, got {d}")
    return d


def _margin(eta: float) -> float:
    if not 0 <= eta < 0.5:
        raise ValueError(f"eta must be at least 0 and below 1/2, got {eta}")
    return 1 - 2 * eta


def _share(value: float, name: str) -> float:
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {value}")
    return value


def _positive(value: float, name: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return value
