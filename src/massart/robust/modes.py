r"""Two modes: right rows around one plane, and wrong ones that may gather elsewhere.

Wrong labels need not lie far off in all directions: they may be right labels plus five sigma, or follow a second plane,
and then any scale that covers half of the rows covers some of them, too. So the residuals are taken for a mixture,

.. math::
    r_i = y_i - z_i^\top c \sim \pi_1 N(0, \sigma^2) + \pi_2 N(\mu, s^2) + \pi_3\, U(-R, R), \qquad \pi_1 \ge 1/2 ,

of right rows, of a mode of wrong ones, and of rows anywhere. Its likelihood is raised by the EM algorithm (Dempster,
Laird and Rubin 1977): the *trust* in a row is the probability that it is right, and weights it in the next
least-squares fit. What wrong rows do is explained, not bounded, so that a start is judged by all rows: a plane through
a tight cluster of 40 % of the rows leaves the others unexplained. Nothing holds the fit to its start but the
likelihood, and :math:`\sigma` is that of right rows alone, whatever their share. With few rows for each column
residuals are studentized; planes are compared by the likelihood of deleted rows.

Where a single normal distribution explains the residuals nearly as well, or the other mode is no more than a heavy
tail, there is nothing to separate, and the M-estimate is the better answer: :meth:`Modes.is_apart` tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from massart.progress import Callback, Progress, silent
from massart.robust.refinement import Placed, leverages, solve
from massart.rows import FloatArray

EVIDENCE, EVIDENCE_OF_COLUMNS = 24.0, 12.0
"""Twice the gain of log-likelihood from which there are two modes, and what is added for r^2/n: the half of the rows
that r columns fit best looks like a mode of its own. Clean tables of 20 to 1,000 rows gain so much in about one of a
hundred."""

APART, VALLEY = 6.0, 1.5
"""Scales of the right rows beyond which others are apart, and no heavy tail; or so many times the sum of both scales
between the middles of the modes, where there is a valley between them."""

_LOG_NORMAL = 0.5 * np.log(2 * np.pi)
_LEAST_SPREAD = 0.3  # of the other mode, in scales: a single value is no mode
_LEAST_SHARE = 1e-12
_LEAST_SCALE = 1e-20  # of the range of residuals
_FEW_ROWS = 20  # a column, with which residuals are clearly smaller than errors
_LEAST_FREE = 0.2  # degrees of freedom a row, whatever the number of columns
_NOTHING, _TRUSTED = 1e-9, 0.01  # trust that counts as none; and that of rows whose fits should come to rest
_FAR = 2.5  # scales of the start beyond which a row belongs to the other mode at first


@dataclass(frozen=True, slots=True)
class Modes:
    r"""A plane, and how rows lie about it.

    Attributes
    ----------
    coef : (r,) array
        In position.
    scale : float
        :math:`\sigma`.
    shares : (3,) array
        :math:`\pi`: of right rows, of the other mode, of rows anywhere.
    centre, spread : float
        :math:`\mu` and s.
    trust : (n,) array
        The probability of each row to be right.
    likelihood : float
        Its logarithm.
    width : float
        2R.
    n_iter : int
        Steps.
    converged : bool
    """

    coef: FloatArray
    scale: float
    shares: FloatArray
    centre: float
    spread: float
    trust: FloatArray
    likelihood: float
    width: float
    n_iter: int = 0
    converged: bool = False

    @property
    def stands(self) -> bool:
        """Whether a majority is right."""
        return bool(self.shares[0] >= 0.5)

    def trust_of(self, residuals: FloatArray) -> FloatArray:
        """Return the probability of rows to be right."""
        return np.asarray(_chances(self.log_parts(residuals))[0][0])

    def slopes(self, residuals: FloatArray) -> FloatArray:
        r"""Return :math:`\psi'(r)` of :math:`\psi(r) = r\,` trust: how the pull of a row grows with its residual."""
        parts = self.log_parts(residuals)
        second = 1.0 / (1.0 + np.exp(np.clip(parts[2] - parts[1], -700.0, 700.0)))  # of what is not right
        turn = second * (residuals - self.centre) / self.spread**2 - residuals / self.scale**2
        return np.asarray(self.trust * (1.0 + residuals * (1.0 - self.trust) * turn))

    def log_parts(self, residuals: FloatArray) -> FloatArray:
        """Return the logarithms of the three densities at each row, (3, n)."""
        log_shares = np.log(np.maximum(self.shares, _LEAST_SHARE))
        parts = np.empty((3, len(residuals)))
        parts[0] = log_shares[0] - _LOG_NORMAL - np.log(self.scale) - 0.5 * (residuals / self.scale) ** 2
        off = (residuals - self.centre) / self.spread
        parts[1] = log_shares[1] - _LOG_NORMAL - np.log(self.spread) - 0.5 * off * off
        parts[2] = log_shares[2] - np.log(self.width)
        return parts

    def is_apart(self, single: float) -> bool:
        """Tell whether there are two modes, given the log-likelihood of one normal distribution."""
        far = np.hypot(self.centre, self.spread) >= APART * self.scale
        far |= abs(self.centre) >= VALLEY * (self.scale + self.spread)
        apart = float(self.shares[2]) + (float(self.shares[1]) if far else 0.0)
        n, r = len(self.trust), len(self.coef)
        apart = apart if 2.0 * apart >= 1.0 - self.shares[0] else 0.0
        evident = 2.0 * (self.likelihood - single) > EVIDENCE + EVIDENCE_OF_COLUMNS * r * r / n
        return bool(self.stands and evident and apart * n >= 1.0)


def separate(
    rows: Placed,
    coef: FloatArray,
    scale: float,
    *,
    width: float,
    least: float,
    ridge: float,
    max_iter: int,
    tol: float,
    callback: Callback = silent,
) -> Modes:
    """Take EM steps from a plane and a scale, until no trusted row's fit changes by more than `tol` scales.

    Parameters
    ----------
    rows : Placed
    coef, scale : array of shape (r,) and float
        The start.
    width : float
        2R: the range in which residuals may lie; the same for all planes that are compared.
    least : float
        The least scale there can be: that of the rounding of labels.
    ridge : float
        Of every fit.
    max_iter : int
    tol : float
    callback : callable
    """
    shares = rows.shares
    n = np.count_nonzero(shares)
    residuals = rows.residuals(coef[None])[0]
    width = max(width, np.finfo(float).tiny)
    least = max(least, _LEAST_SCALE * width)
    scale = max(scale, least)
    far = np.where(np.abs(residuals) > _FAR * scale, shares, 0.0)
    off = float(far.sum())
    pi = np.array([max(1.0 - off, 0.5), 0.9 * off, 0.1 * off + 1e-3])
    centre = float(far @ residuals) / off if off else 0.0
    spread = max(float(np.sqrt(far @ (residuals - centre) ** 2 / off)) if off else 3 * scale, scale)
    found = Modes(coef, scale, pi / pi.sum(), centre, spread, shares, -np.inf, width)
    errors, few = residuals, n < _FEW_ROWS * len(coef)
    for step in range(1, max_iter + 1):
        chances = _chances(found.log_parts(errors))[0]
        trust = np.where(chances[0] > _NOTHING, chances[0], 0.0)
        if np.count_nonzero(shares * trust) <= len(coef):
            break
        following = solve(rows, shares * trust, ridge * float(shares @ trust))
        now = rows.residuals(following[None])[0]
        change = float(np.abs(now - residuals)[trust > _TRUSTED].max(initial=0.0))
        coef, residuals = following, now
        errors = residuals
        if few:  # the plane is drawn near to a row that it is fitted to
            errors = residuals / np.sqrt(1.0 - leverages(rows, trust, ridge))
        scale = max(float(np.sqrt(shares * trust @ errors**2 / (shares @ trust))), least)
        second = shares * chances[1]
        mass = max(float(second.sum()), _LEAST_SHARE)
        centre = float(second @ errors) / mass
        spread = max(float(np.sqrt(second @ (errors - centre) ** 2 / mass)), _LEAST_SPREAD * scale)
        rest = change <= tol * scale and abs(scale / found.scale - 1.0) <= tol
        callback(Progress("robust regression", step, change / scale, tol))
        found = replace(found, coef=coef, scale=scale, shares=chances @ shares, centre=centre, spread=spread)
        found = replace(found, n_iter=step, converged=rest)
        if rest:
            break
    trust = found.trust_of(errors)
    own = leverages(rows, trust, ridge)
    if not few:
        mass = max(float(shares @ trust), np.finfo(float).tiny)
        free = max(mass - float(own.sum()) / n, _LEAST_FREE * mass)
        found = replace(found, scale=found.scale * float(np.sqrt(mass / free)))
    deleted = residuals / (1.0 - own)
    likelihood = n * float(shares @ _chances(found.log_parts(deleted))[1])
    return replace(found, trust=trust, likelihood=likelihood)


def single_likelihood(rows: Placed, coef: FloatArray, ridge: float) -> float:
    """Return the log-likelihood of one normal distribution about a plane that least squares gives, of deleted rows."""
    n = np.count_nonzero(rows.shares)
    residuals = rows.residuals(coef[None])[0]
    own = leverages(rows, np.ones(len(residuals)), ridge)
    square = float(rows.shares @ residuals**2) / max(1.0 - float(own.sum()) / n, _LEAST_FREE)
    square = max(square, np.finfo(float).tiny)
    deleted = residuals / (1.0 - own)
    return float(-n * (0.5 * np.log(square) + 0.5 * (rows.shares @ deleted**2) / square + _LOG_NORMAL))


def _chances(log_parts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each part for each row, (3, n), and the logarithm of their common density."""
    top = log_parts.max(axis=0)
    chances = np.exp(log_parts - top)
    total = chances.sum(axis=0)
    return chances / total, top + np.log(total)
