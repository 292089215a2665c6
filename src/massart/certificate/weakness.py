"""Where the support of a formula is weak: which rows tell more, and whether chance alone is behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from massart.certificate.geometry import Geometry, Position, apply_to, scaled_rows, squared_lengths
from massart.certificate.support import Support
from massart.rows import FloatArray, check_matrix

_WEAKEST, _HEAVY_TAILED = 8, 4.0  # directions that are looked at, and the kurtosis that shows few rows (Gaussian: 3)


@dataclass(frozen=True, slots=True)
class Shares:
    """Kernel: c |W'x|^2 for each row of a block, W given in columns of size 1."""

    position: Position
    W: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the (b,) numbers."""
        scaled = scaled_rows(rows, self.position.exponents)[0]
        lengths = squared_lengths(scaled @ self.position.basis)
        return np.asarray(squared_lengths(scaled @ self.W) / np.where(lengths > 0, lengths, 1.0))


def weak_row_weights(geometry: Geometry, X: ArrayLike, support: Support) -> FloatArray:
    """Return where to look next: c_i |W'x_i|^2 for the weak directions W of the first piece that has any.

    Zero for rows of other pieces, and for all rows if every direction has a share of at least 1/2. The rows need not be
    those that were measured.
    """
    rows = check_matrix(X)
    found = np.zeros(len(rows))
    weak = next((piece.weak for piece in support.pieces if piece.weak.shape[1]), None)
    if weak is None:
        return found
    part = geometry.parts[0]
    W = np.ldexp(weak, geometry.exponents[:, None])  # in columns of size 1
    held = [float(np.linalg.norm(piece.subspace.T @ W)) for piece in part.pieces]
    number = int(np.argmax(held))
    members = apply_to(part.membership(geometry.exponents), rows, np.arange(len(rows))) == number
    if geometry.sample_weight is not None and len(geometry.sample_weight) == len(rows):
        members &= geometry.sample_weight > 0
        weights = geometry.sample_weight
    else:
        weights = np.ones(len(rows))
    chosen = np.flatnonzero(members)
    if chosen.size:
        found[chosen] = weights[chosen] * apply_to(Shares(part.pieces[number].position, W), rows, chosen)
    return found


def is_weak_by_chance(geometry: Geometry, support: Support, share: float) -> bool:
    r"""Tell whether the weakest direction is what a random choice of wrong rows leaves, where there are many columns.

    If a share p of n Gaussian rows of k columns agrees, whichever they are, the spectrum of :math:`M^{-1/2} M_A
    M^{-1/2}` begins at :math:`(\sqrt{p (1 - c)} - \sqrt{c (1 - p)})^2`, c = k / n (Wachter 1980), up to
    :math:`k^{-2/3}`. A rival makes a direction weaker, or rests on few rows: then weak directions have heavy tails.
    """
    wide = geometry.wide
    if wide is None or not support.pieces:
        return False
    n, k = wide.X.shape
    edge = (np.sqrt(share * (1 - k / n)) - np.sqrt((1 - share) * k / n)) ** 2
    if support.alpha < edge * (1 - 2 * k ** (-2 / 3)):
        return False
    evidence = wide.shares(support.pieces[0].weak[:, :_WEAKEST])
    return bool((n * (evidence**2).sum(axis=0) <= _HEAVY_TAILED * evidence.sum(axis=0) ** 2).all())
