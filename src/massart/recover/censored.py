r"""Labels that a limit has cut off, such as ``max(0, w.x + e)``: what rows at the limit say, when others are wrong.

A robust fit of the rows far from the limits (:mod:`massart.recover.noisy`) is not misled by them, and does not use
them. Here they count: a right label inside the limits has the density of :math:`N(w \cdot x, \sigma^2)`, one at a
limit the probability of what lies beyond (Tobin 1958). A wrong one is anywhere inside, or at a limit, with a share of
its own, so that the trust in each row is the probability that it is right. EM steps from the robust fit alternate
between these and least squares, with the expected product in place of a label that was cut off.

References
----------
Tobin (1958), *Estimation of relationships for limited dependent variables*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr

from massart.rows import BoolArray, FloatArray, Link

FEWEST_AT_LIMIT = 0.02
"""Share of the rows at a limit, from which on they are worth counting."""

NEAR = 15.0
"""Standard errors of the start within which the answer must be: else the rows at the limit follow something else."""

_STEPS, _AT_REST = 500, 1e-8
_RIGHT = 0.9  # share to start with
_LOG_ROOT = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, slots=True)
class CensoredFit:
    """Coefficients, their covariance, and the scale of the noise before the limit."""

    coef: FloatArray
    covariance: FloatArray
    scale: float


def refine_censored(
    X: FloatArray, y: FloatArray, counts: FloatArray, coef: FloatArray, errors: FloatArray, scale: float, link: Link
) -> CensoredFit | None:
    """Take a robust fit to the rows at the limits; None where there are few, or where that leads elsewhere.

    Parameters
    ----------
    X, y, counts : (n, d), (n,) and (n,) arrays
        Rows, labels, and how often each counts.
    coef, errors : (d,) arrays
        The robust fit of rows far from the limits, and its standard errors.
    scale : float
    link : Link
        Clips at one limit or two, and does nothing else.
    """
    at_lower, at_upper = y == link.lower, y == link.upper
    if link.slope or (y < link.lower).any() or (y > link.upper).any() or not np.isfinite(errors).all():
        return None
    if counts @ (at_lower | at_upper) < FEWEST_AT_LIMIT * counts.sum():
        return None
    inside = ~(at_lower | at_upper)
    width = float(np.ptp(y[inside])) or 1.0
    w, right, wrong_inside = coef, _RIGHT, 0.5
    trust = expected = spare = np.zeros(len(y))
    for _ in range(_STEPS):
        mean = X @ w
        log_right, expected, spare = _told(mean, y, scale, link, at_lower, at_upper)
        log_wrong = np.where(inside, np.log(wrong_inside / width), np.log((1 - wrong_inside) / 2))
        trust = expit(np.log(right / (1 - right)) + log_right - log_wrong)
        a = counts * trust
        gram = (X * a[:, None]).T @ X
        following = np.linalg.lstsq(gram, (a * expected) @ X, rcond=None)[0]
        change = float(np.abs(X @ (following - w)).max()) / scale
        w = following
        scale = float(np.sqrt(a @ ((expected - X @ w) ** 2 + spare) / max(a.sum() - X.shape[1], 1.0)))
        right = float(np.clip(a.sum() / counts.sum(), 0.5, 1 - 1e-6))
        off = counts * (1 - trust)
        wrong_inside = float(np.clip(off @ inside / max(off.sum(), 1e-300), 0.01, 0.99))
        if change <= _AT_REST:
            break
    if right <= 0.5 or not np.all(np.abs(w - coef) <= NEAR * errors):
        return None
    a = counts * trust
    bread = np.linalg.pinv((X * (a * (1 - spare / scale**2))[:, None]).T @ X)
    force = a * (expected - X @ w)
    return CensoredFit(w, bread @ ((X * force[:, None] ** 2).T @ X) @ bread, scale)


def _told(
    mean: FloatArray, y: FloatArray, scale: float, link: Link, at_lower: BoolArray, at_upper: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log-likelihood of right labels, the expected product behind each, and the variance that is left."""
    log_right = -_LOG_ROOT - np.log(scale) - 0.5 * ((y - mean) / scale) ** 2
    expected, spare = y.copy(), np.zeros(len(y))
    for rows, limit, sign in ((at_lower, link.lower, 1.0), (at_upper, link.upper, -1.0)):
        if rows.any():
            beyond = sign * (limit - mean[rows]) / scale
            log_right[rows] = log_ndtr(beyond)
            ratio = np.exp(-_LOG_ROOT - 0.5 * beyond**2 - log_ndtr(beyond))
            expected[rows] = mean[rows] - sign * scale * ratio
            spare[rows] = scale**2 * np.clip(1 - beyond * ratio - ratio**2, 0, 1)
    return log_right, expected, spare
