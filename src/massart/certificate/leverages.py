r"""Sums over rows that support is made of: second moments, and the leverages that rounding leaves open.

The second moments of all rows and of those that agree give alpha. How far a rival may be, where labels are rounded,
follows from the leverages and from what each row may be off: see :mod:`massart.certificate.support`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.certificate.geometry import Position, squared_lengths
from massart.rows import BoolArray, FloatArray

_BINS = 2300  # binary exponents of c h^2


@dataclass(frozen=True, slots=True)
class AgreeingMoments:
    """Kernel: the sums of c x x' over all rows of a block and over those that agree."""

    position: Position

    def __call__(self, rows: FloatArray, weights: FloatArray | None, agree: BoolArray) -> FloatArray:
        """Return both sums, (2, k, k)."""
        u = self.position.images(rows)[0]
        if weights is not None:
            u *= np.sqrt(weights)[:, None]
        agreeing, others = u[agree], u[~agree]
        M_A = agreeing.T @ agreeing
        return np.stack([M_A + others.T @ others, M_A])


@dataclass(frozen=True, slots=True)
class Spread:
    """The largest leverage, and the agreeing rows by the size of c g^2 (g: what a row may be off).

    Attributes
    ----------
    leverage : float
    slack, held : (_BINS,) arrays
        Sums of c g^2 and of leverages by the binary exponent of c g^2.
    """

    leverage: float
    slack: FloatArray
    held: FloatArray

    @classmethod
    def of(cls, leverage: float, slack: FloatArray, leverages: FloatArray) -> Spread:
        """Return the spread of agreeing rows with this c g^2 each, and these leverages."""
        bins = np.frexp(slack)[1] + _BINS // 2
        bins[np.isinf(slack)] = _BINS - 1
        bins[slack == 0] = 0
        held = np.bincount(bins, leverages, _BINS).astype(np.float64)
        return cls(leverage, np.bincount(bins, slack, _BINS).astype(np.float64), held)

    def __add__(self, other: Spread) -> Spread:
        return Spread(max(self.leverage, other.leverage), self.slack + other.slack, self.held + other.held)

    def radius(self, surplus: float) -> float:
        """Return the smallest R with u'Mu <= R^2 over all sets T of the rows that say least; surplus is alpha - q."""
        if not surplus > 0:
            return np.inf
        slack = np.cumsum(self.slack)[:-1]  # the last rows may be off by anything
        held = np.cumsum(self.held[::-1])[-2::-1]
        possible = held < surplus
        return float(np.sqrt((slack[possible] / (surplus - held[possible])).min(initial=np.inf)))


@dataclass(frozen=True, slots=True)
class Leverages:
    """Kernel: leverages of a block, and what its agreeing rows leave open.

    Attributes
    ----------
    position : Position
    root : (k, r) array
        M^(-1/2).
    earlier : tuple of (Position, array, float)
        Earlier pieces with their roots and radii.
    """

    position: Position
    root: FloatArray
    earlier: tuple[tuple[Position, FloatArray, float], ...]

    def __call__(
        self, rows: FloatArray, weights: FloatArray | None, agree: BoolArray, half_widths: FloatArray
    ) -> Spread:
        """Return the largest leverage and the slack of the block."""
        u, lengths = self.position.images(rows)
        leverages = squared_lengths(u @ self.root)
        if weights is not None:
            leverages *= weights
        agreeing = rows[agree]
        off = 2 * half_widths[agree]
        with np.errstate(over="ignore", under="ignore"):
            for position, root, radius in self.earlier:
                if radius > 0:
                    v, sizes = position.images(agreeing)
                    off = off + radius * np.sqrt(squared_lengths(v @ root)) * sizes
            slack = (off / np.maximum(lengths[agree], np.finfo(float).tiny)) ** 2
            if weights is not None:
                slack *= weights[agree]
        return Spread.of(float(leverages.max(initial=0.0)), slack, leverages[agree])
