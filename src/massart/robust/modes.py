r"""Two modes: right rows around one plane, and wrong ones that may gather elsewhere.

Wrong labels need not lie far off in all directions: they may be right labels plus five sigma, or follow a second plane,
and then any scale that covers half of the rows covers some of them, too. So the residuals are taken for a mixture,

.. math::
    r_i = y_i - z_i^\top c \sim \pi_1 N(0, \sigma^2) + \pi_2 N(\mu, s^2) + \pi_3\, U(-R, R), \qquad \pi_1 \ge 1/2 ,

of right rows, of a mode of wrong ones, and of rows anywhere. Its likelihood is raised by the EM algorithm (Dempster,
Laird and Rubin 1977): the *trust* in a row is the probability that it is right, and weights it in the next
least-squares fit. What wrong rows do is explained, not bounded, so that a start is judged by all rows: a plane through
a tight cluster of 40 % of the rows leaves the others unexplained. Nothing holds the fit to its start but the
likelihood, and :math:`\sigma` is that of right rows alone, whatever their share. Planes are compared by the likelihood
of deleted rows.

Where a single normal distribution explains the residuals nearly as well, or the other mode is no more than a heavy
tail, there is nothing to separate, and the M-estimate is the better answer: see :meth:`Modes.is_apart`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from massart.robust.refinement import leverages, solve
from massart.robust.starts import WIDE, Positioned
from massart.rows import Callback, FloatArray, Progress, silent
from massart.search import LeastSquares

EVIDENCE, EVIDENCE_OF_COLUMNS = 24.0, 12.0
"""Twice the gain of log-likelihood from which there are two modes, and what is added for r^2/n: the half of the rows
that r columns fit best looks like a mode of its own. Clean tables of 20 to 1,000 rows gain so much in about one of a
hundred."""

APART, VALLEY, GULF = 6.0, 1.5, 5.0
"""Scales of the right rows beyond which others are apart, and no heavy tail; or times the sum of both scales between
the middles of the modes, where there is a valley between them; and where it is so wide that half of the evidence is
enough, if rows are not few (benchmarks/noisy.py, bad_40_n50_d3)."""

_LOG_NORMAL = 0.5 * np.log(2 * np.pi)
_LEAST_SPREAD = 0.3  # of the other mode, in scales: a single value is not a mode
_LEAST_SHARE = 1e-12
_LEAST_SCALE = 1e-20  # of the range of residuals
_LEAST_FREE = 0.2  # degrees of freedom a row, whatever the number of columns
_NOTHING, _TRUSTED = 1e-9, 0.01  # trust that counts as none; and that of rows whose fits should come to rest
_FAR = 2.5  # scales of the start beyond which a row belongs to the other mode at first


@dataclass(frozen=True, slots=True)
class Mixture:
    """How rows lie about a plane, or about each of b planes."""

    shares: FloatArray  # pi, (3,) or (3, b): of right rows, of the other mode, of rows anywhere
    scale: Any  # sigma: a float, or (b,)
    centre: Any  # mu
    spread: Any  # s
    width: float  # 2R: the range in which residuals may lie; the same for all planes that are compared
    least: float  # what sigma is at least

    @classmethod
    def start(cls, residuals: FloatArray, shares: FloatArray, scale: Any, width: float, least: float) -> Mixture:
        """Take the rows that are far off for the other mode; `least` is the scale of the rounding of labels."""
        width = max(width, np.finfo(float).tiny)
        least = max(least, _LEAST_SCALE * width)
        scale = np.maximum(scale, least)
        far = np.where(np.abs(residuals) > _FAR * np.asarray(scale)[..., None], shares, 0.0)
        off = far.sum(axis=-1)
        mass = np.maximum(off, _LEAST_SHARE)
        pi = np.stack([np.maximum(1.0 - off, 0.5), 0.9 * off, 0.1 * off + 1e-3])
        centre = (far * residuals).sum(axis=-1) / mass
        spread = np.sqrt((far * (residuals - centre[..., None]) ** 2).sum(axis=-1) / mass)
        spread = np.maximum(np.where(off > 0, spread, 3 * scale), scale)
        return cls(pi / pi.sum(axis=0), scale, centre, spread, width, least)

    def following(self, chances: FloatArray, errors: FloatArray, shares: FloatArray) -> Mixture:
        """Return the likeliest mixture, given the probabilities of the parts, (3, ..., n)."""
        first, second = shares * chances[0], shares * chances[1]
        mass = np.maximum(first.sum(axis=-1), _LEAST_SHARE)
        scale = np.maximum(np.sqrt((first * errors**2).sum(axis=-1) / mass), self.least)
        mass = np.maximum(second.sum(axis=-1), _LEAST_SHARE)
        centre = (second * errors).sum(axis=-1) / mass
        spread = np.sqrt((second * (errors - centre[..., None]) ** 2).sum(axis=-1) / mass)
        spread = np.maximum(spread, _LEAST_SPREAD * scale)
        return replace(self, shares=chances @ shares, scale=scale, centre=centre, spread=spread)

    def log_parts(self, residuals: FloatArray) -> FloatArray:
        """Return the logarithms of the three densities at each row, (3, ..., n)."""
        scale, centre, spread = (np.asarray(value)[..., None] for value in (self.scale, self.centre, self.spread))
        parts = np.empty((3, *residuals.shape))
        parts[0] = -_LOG_NORMAL - np.log(scale) - 0.5 * (residuals / scale) ** 2
        parts[1] = -_LOG_NORMAL - np.log(spread) - 0.5 * ((residuals - centre) / spread) ** 2
        parts[2] = -np.log(self.width)
        return parts + np.log(np.maximum(self.shares, _LEAST_SHARE))[..., None]

    def chances(self, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probability of each part for each row, (3, ..., n), and the logarithm of their common density."""
        parts = self.log_parts(residuals)
        top = parts.max(axis=0)
        chances = np.exp(parts - top)
        total = chances.sum(axis=0)
        return chances / total, top + np.log(total)


@dataclass(frozen=True, slots=True)
class Modes:
    """A plane, and how rows lie about it."""

    coef: FloatArray  # (r,), in position
    mixture: Mixture
    trust: FloatArray  # the probability of each row to be right
    likelihood: float  # its logarithm, of deleted rows
    converged: bool

    @property
    def scale(self) -> float:
        r""":math:`\sigma`."""
        return float(self.mixture.scale)

    @property
    def stands(self) -> bool:
        """Whether a majority is right."""
        return bool(self.mixture.shares[0] >= 0.5)

    def slopes(self, residuals: FloatArray) -> FloatArray:
        r"""Return :math:`\psi'(r)` of :math:`\psi(r) = r\,` trust: how the pull of a row grows with its residual."""
        mixture, parts = self.mixture, self.mixture.log_parts(residuals)
        second = 1.0 / (1.0 + np.exp(np.clip(parts[2] - parts[1], -700.0, 700.0)))  # of what is not right
        turn = second * (residuals - mixture.centre) / mixture.spread**2 - residuals / mixture.scale**2
        return np.asarray(self.trust * (1.0 + residuals * (1.0 - self.trust) * turn))

    def is_apart(self, single: float) -> bool:
        """Return whether there are two modes, given the log-likelihood of one normal distribution."""
        mixture, n, r = self.mixture, len(self.trust), len(self.coef)
        right, second, anywhere = (float(share) for share in mixture.shares)
        valley = abs(mixture.centre) / (self.scale + mixture.spread)
        far = valley >= VALLEY or np.hypot(mixture.centre, mixture.spread) >= APART * self.scale
        apart = anywhere + (second if far else 0.0)
        needed = EVIDENCE + EVIDENCE_OF_COLUMNS * r * r / n
        if valley >= GULF and n >= WIDE * r:
            needed /= 2
        evident = 2.0 * (self.likelihood - single) > needed
        return bool(self.stands and evident and apart * n >= 1.0 and 2.0 * apart >= 1.0 - right)


def screened(
    rows: Positioned, planes: FloatArray, scales: FloatArray, *, width: float, least: float, steps: int, most: int
) -> list[tuple[FloatArray, float]]:
    """Take some EM steps from many planes, (b, r), at a time; return the `most` likeliest ones, with their scales."""
    shares, residuals = rows.shares, rows.residuals(planes)
    mixture = Mixture.start(residuals, shares, scales, width, least)
    for _ in range(steps):
        chances = mixture.chances(residuals)[0]
        weights = shares * np.where(chances[0] > _NOTHING, chances[0], 0.0)
        total = np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)  # of a few rows none may be near
        planes = LeastSquares(rows.Z, rows.y, rows.ridge).fit(weights / total)
        residuals = rows.residuals(planes)
        mixture = mixture.following(chances, residuals, shares)
    likelihood = mixture.chances(residuals)[1] @ shares
    order = np.lexsort((-likelihood, mixture.shares[0] < 0.5))[:most]
    return [(planes[j], float(mixture.scale[j])) for j in order]


def separate(
    rows: Positioned,
    coef: FloatArray,
    scale: float,
    *,
    width: float,
    least: float,
    max_iter: int,
    tol: float,
    callback: Callback = silent,
) -> Modes:
    """Take EM steps from a plane and a scale, until no trusted row's fit changes by more than `tol` scales.

    `width` is 2R, and `least` the least scale there can be, that of the rounding of labels.
    """
    shares = rows.shares
    n = np.count_nonzero(shares)
    residuals = rows.residuals(coef[None])[0]
    mixture = Mixture.start(residuals, shares, scale, width, least)
    step, rest = 0, False
    while not rest and step < max_iter:
        chances = mixture.chances(residuals)[0]
        trust = np.where(chances[0] > _NOTHING, chances[0], 0.0)
        if np.count_nonzero(shares * trust) <= len(coef):
            break
        coef = solve(rows, shares * trust, rows.ridge * float(shares @ trust))
        now = rows.residuals(coef[None])[0]
        change = float(np.abs(now - residuals)[trust > _TRUSTED].max(initial=0.0))
        residuals = now
        step, before, mixture = step + 1, mixture.scale, mixture.following(chances, residuals, shares)
        change /= float(mixture.scale)
        rest = change <= tol and abs(float(mixture.scale) / float(before) - 1.0) <= tol
        callback(Progress("robust regression", step, change, tol))
    trust = mixture.chances(residuals)[0][0]
    own = leverages(rows, trust, rows.ridge)
    mass = max(float(shares @ trust), np.finfo(float).tiny)
    free = max(mass - float(own.sum()) / n, _LEAST_FREE * mass)
    mixture = replace(mixture, scale=mixture.scale * np.sqrt(mass / free))
    likelihood = n * float(shares @ mixture.chances(residuals / (1.0 - own))[1])
    return Modes(coef, mixture, trust, likelihood, rest)


def single_likelihood(rows: Positioned, coef: FloatArray) -> float:
    """Return the log-likelihood of one normal distribution about a plane that least squares gives, of deleted rows."""
    n = np.count_nonzero(rows.shares)
    residuals = rows.residuals(coef[None])[0]
    own = leverages(rows, np.ones(len(residuals)), rows.ridge)
    square = float(rows.shares @ residuals**2) / max(1.0 - float(own.sum()) / n, _LEAST_FREE)
    square = max(square, np.finfo(float).tiny)
    deleted = residuals / (1.0 - own)
    return float(-n * (0.5 * np.log(square) + 0.5 * (rows.shares @ deleted**2) / square + _LOG_NORMAL))
