r"""What chance does not explain of the evidence: the pieces of a part one after the other, until it is decided.

The theorem, and how delta is split, are in :mod:`massart.certificate.support`. Here are the sums over rows that it
needs (second moments of all rows and of those that agree; leverages, and what each row may be off), the tail that each
piece has, and the chain of pieces: what one excludes, the next takes for granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from massart.certificate.geometry import Geometry, IntArray, Piece, blocks, inverse_root, squared_lengths
from massart.certificate.tails import (
    BUDGET,
    CLOSED_SHARE,
    LATE_BUDGET,
    Binomial,
    ClosedForm,
    SimulatedTail,
    Tail,
    number_of_draws,
    upper_triangles,
)
from massart.certificate.wide import WideRows
from massart.rows import BoolArray, FloatArray

WHOLE_SHARE = 0.9
"""Share of delta that the whole table has, if there are other parts."""

_BINS = 2300  # binary exponents of c h^2


@dataclass(frozen=True, slots=True)
class PieceEvidence:
    """The rows of one piece, and the spectrum of their evidence.

    Attributes
    ----------
    number : tuple of two int
        Of the part, and of the piece in it.
    piece : Piece
    index : (n,) array of int
        The rows.
    root : (k, r) array
        M^(-1/2) on its range.
    shares, axes : (r,) and (r, r) arrays
        Of the evidence that agrees, the smallest first.
    delta : float
    is_last : bool
        Whether no other piece of the part has rows.
    """

    number: tuple[int, int]
    piece: Piece
    index: IntArray
    root: FloatArray
    shares: FloatArray
    axes: FloatArray
    delta: float
    is_last: bool

    @property
    def alpha(self) -> float:
        """The share that agrees in the weakest direction."""
        return float(np.clip(self.shares[0], 0.0, 1.0))

    @property
    def spans(self) -> bool:
        """Whether the rows determine every direction of the subspace."""
        return bool(self.root.shape[1] == self.piece.basis.shape[1])


@dataclass(frozen=True, slots=True)
class Asked:
    """A piece that was asked, and what it leaves a rival.

    Attributes
    ----------
    evidence : PieceEvidence
    tail : Tail
    leverage : float
        L.
    passes : bool
        Whether its share exceeds the quantile at the bound.
    in_doubt : bool
        Whether rows of a piece before do not determine all of its directions: then this one says nothing.
    radius : float
        R with u'Mu <= R^2, where the pieces before have excluded all but theirs; infinite if it does not pass.
    """

    evidence: PieceEvidence
    tail: Tail
    leverage: float
    passes: bool
    in_doubt: bool
    radius: float

    @property
    def holds(self) -> bool:
        """Whether all that the part says up to here is excluded, so that the next piece may take it for granted."""
        return self.radius < np.inf and (self.evidence.spans or self.evidence.is_last)

    def eta_max(self, bound: float) -> float:
        """Return the largest rate of wrong labels that is excluded: at least the bound if, and only if, it passes."""
        eta = 0.0 if self.in_doubt else self.tail.eta_max(self.evidence.alpha, bound, self.passes)
        return max(eta, bound) if self.passes else min(eta, float(np.nextafter(bound, 0.0)))


@dataclass(frozen=True)
class JudgedPieces:
    """The rows of a certificate, and how tails are bounded. All but `agree` and `half_widths` is fixed without labels.

    What chance explains is asked in the order of cost, and only as far as it decides.
    """

    geometry: Geometry
    X: FloatArray
    agree: BoolArray
    half_widths: FloatArray
    delta: float
    bound: float
    seed: int = 0
    simulate: bool = False
    fixed: bool = False  # u was fixed before the labels were read

    @cached_property
    def whole(self) -> list[PieceEvidence]:
        """The pieces of the whole table."""
        return list(self._pieces(0))

    @cached_property
    def excludes(self) -> bool:
        """Whether chance is excluded, at the bound and in every piece of the whole table."""
        asked = []
        for one in self._ask(self.whole):
            if not one.passes:
                return False
            asked.append(one)
        self.__dict__["asked"] = asked  # all have been asked by now
        return True

    @cached_property
    def asked(self) -> list[Asked]:
        """All pieces of the whole table."""
        return list(self._ask(self.whole))

    @cached_property
    def excluded(self) -> tuple[BoolArray, FloatArray]:
        """Which coefficients are confirmed, and how far a rival may be off.

        Parts are asked about the coefficients that the whole table leaves open.
        """
        parts = self.geometry.parts
        confirmed, on_rows = self._left_open(self.asked)
        for number in range(1, len(parts)) if not self.asked[-1].holds else ():
            asked = []
            for one in self._ask(self._pieces(number)):
                asked.append(one)
                if not one.holds:
                    break
            inside, widths = self._left_open(asked)
            confirmed, on_rows = confirmed | inside, np.minimum(on_rows, np.where(inside, widths, np.inf))
        return confirmed, on_rows

    @property
    def _wide(self) -> WideRows | None:
        """The sums that are kept of these rows, if there are any."""
        wide = self.geometry.wide
        return wide if wide is not None and wide.X is self.X else None

    def _pieces(self, number: int) -> Iterator[PieceEvidence]:
        """Yield the pieces of a part that have rows, with the spectrum of their evidence."""
        part, every, wide = self.geometry.parts[number], np.arange(len(self.X)), self._wide
        if wide is not None:
            chosen = [every]
        else:
            members = part.members(self.X, every)
            if self.geometry.sample_weight is not None:
                members[self.geometry.sample_weight == 0] = -1
            chosen = [np.flatnonzero(members == j) for j in range(len(part.pieces))]
        present = [j for j, index in enumerate(chosen) if index.size]
        delta = share_of_part(number, len(self.geometry.parts)) * self.delta / max(len(present), 1)
        for j in present:
            piece, index = part.pieces[j], chosen[j]
            if wide is not None:
                root, (shares, axes) = wide.root, wide.spectrum(self.agree)
            else:
                M, M_A = self._moments(piece, index)
                root = inverse_root(M)
                shares, axes = np.linalg.eigh(root.T @ M_A @ root)
            yield PieceEvidence((number, j), piece, index, root, shares, axes, delta, j == present[-1])

    def _weights(self, index: IntArray) -> FloatArray | None:
        weights = self.geometry.sample_weight
        return None if weights is None else weights[index]

    def _moments(self, piece: Piece, index: IntArray) -> FloatArray:
        """Return the sums of c x x' over all rows of a piece and over those that agree, (2, k, k)."""
        total, weights = np.zeros((2, *2 * piece.basis.shape[1:])), self._weights(index)
        for block, rows in blocks(self.X, index):
            u, agree = piece.images(rows)[0], self.agree[index[block]]
            if weights is not None:
                u *= np.sqrt(weights[block])[:, None]
            agreeing, others = u[agree], u[~agree]
            M_A = agreeing.T @ agreeing
            total += np.stack([M_A + others.T @ others, M_A])
        return total

    def _ask(self, pieces: Iterable[PieceEvidence]) -> Iterator[Asked]:
        """Ask the pieces of a part one after the other."""
        earlier: list[Asked] = []
        spans, holds = True, True
        for one in pieces:
            leverage, spread = self._spread(one, earlier if holds else [])
            tail, leverage = self._tail(one, leverage)
            quantile = tail.quantile(one.alpha, self.bound) if spans else np.inf
            passes = one.alpha > quantile
            radius = _radius(spread, one.alpha - quantile) if passes and holds else np.inf
            asked = Asked(one, tail, leverage, passes, not spans, radius)
            spans, holds = spans and one.spans, asked.holds
            earlier.append(asked)
            yield asked

    def _spread(self, one: PieceEvidence, earlier: list[Asked]) -> tuple[float, FloatArray]:
        """Return the largest leverage of the rows of a piece, and how far agreeing ones may be off.

        That is sums of c g^2 (g: what a row may be off) and of leverages by the binary exponent of c g^2, (2, _BINS).
        """
        index, wide = one.index, self._wide
        if wide is not None:
            slack = (2 * self.half_widths / wide.lengths)[self.agree] ** 2
            return wide.leverage, _by_exponent(slack, np.full(len(slack), wide.leverage))
        weights, largest, total = self._weights(index), 0.0, np.zeros((2, _BINS))
        for block, rows in blocks(self.X, index):
            agree = self.agree[index[block]]
            u, lengths = one.piece.images(rows)
            leverages = squared_lengths(u @ one.root)
            if weights is not None:
                leverages *= weights[block]
            agreeing, off = rows[agree], 2 * self.half_widths[index[block]][agree]
            with np.errstate(over="ignore", under="ignore"):
                for before in earlier:
                    if before.radius > 0:
                        v, sizes = before.evidence.piece.images(agreeing)
                        off = off + before.radius * np.sqrt(squared_lengths(v @ before.evidence.root)) * sizes
                slack = (off / np.maximum(lengths[agree], np.finfo(float).tiny)) ** 2
                if weights is not None:
                    slack *= weights[block][agree]
            largest = max(largest, float(leverages.max(initial=0.0)))
            total += _by_exponent(slack, leverages[agree])
        return largest, total

    def _tail(self, one: PieceEvidence, leverage: float) -> tuple[Tail, float]:
        """Return the tail of a piece and its L; rows are whitened only where units or draws need it."""
        (part, number), k, delta, n, by_unit = one.number, one.root.shape[1], one.delta, one.index.size, None
        if self.geometry.units is not None:
            units = np.unique(self.geometry.units[one.index], return_inverse=True)[1]
            by_unit = csr_array((np.ones(n), (units, np.arange(n))))
            n, leverage = by_unit.shape[0], _unit_leverage(self._whitened(one), by_unit)
        if k == 1 and leverage * n <= 1 + 1e-9:
            return Binomial(n, delta), leverage
        if self.fixed:
            return ClosedForm(leverage, 1, delta), leverage
        # The whole table has one budget, the other parts share another.
        sharing = len(self.geometry.parts[part].pieces) * (len(self.geometry.parts) - 1 if part else 1)
        n_draws = number_of_draws(n, k, delta, BUDGET / sharing) if self.simulate else 0
        seed = self.seed + (part << 20) + number
        if n_draws:
            products = upper_triangles(self._whitened(one))
            products = products if by_unit is None else by_unit @ products
            return SimulatedTail(products, k, delta, n_draws, seed), leverage
        share = (1 - CLOSED_SHARE) * delta
        n_draws = number_of_draws(n, k, share, LATE_BUDGET)
        if not n_draws or by_unit is not None or not self.simulate or (part, number) != (0, 0):
            return ClosedForm(leverage, k, delta), leverage

        def later() -> SimulatedTail:
            return SimulatedTail(upper_triangles(self._whitened(one)), k, share, n_draws, seed)

        return ClosedForm(leverage, k, CLOSED_SHARE * delta, later), leverage

    def _whitened(self, one: PieceEvidence) -> FloatArray:
        """Return the rows y of a piece with A_i = y y'."""
        y = np.concatenate([one.piece.images(rows)[0] @ one.root for _, rows in blocks(self.X, one.index)])
        weights = self._weights(one.index)
        return y if weights is None else y * np.sqrt(weights)[:, None]

    def _left_open(self, asked: list[Asked]) -> tuple[BoolArray, FloatArray]:
        """Return which unit vectors lie in the confirmed span of a part, and how far coefficients may be off.

        That is of those in the span. Of the others it is how far the part is off that rows see, if all of that is
        confirmed: on the rows a rival is what one is that is off by no more, whatever it is in directions of no row.
        """
        left, widths = np.eye(self.X.shape[1]), np.zeros(self.X.shape[1])
        for before in asked:
            if not before.radius < np.inf:
                break
            one = before.evidence
            piece, V = one.piece, one.piece.subspace
            if not one.spans:
                V = np.linalg.qr(np.linalg.pinv(piece.basis).T @ np.linalg.qr(one.root)[0])[0]
            left -= V @ (V.T @ left)
            if before.radius > 0:
                with np.errstate(over="ignore", under="ignore"):
                    size = before.radius * np.sqrt(squared_lengths(piece.basis @ one.root))
                    widths = widths + np.ldexp(size, -piece.exponents)
        inside = np.linalg.norm(left, axis=0) <= 1e-9
        return inside, np.where(inside | asked[-1].holds, widths, np.inf)


def share_of_part(part: int, n_parts: int) -> float:
    """Return the share of delta that a part has."""
    if n_parts == 1:
        return 1.0
    return WHOLE_SHARE if part == 0 else (1 - WHOLE_SHARE) / (n_parts - 1)


def _by_exponent(slack: FloatArray, leverages: FloatArray) -> FloatArray:
    """Return sums of c g^2 and of leverages by the binary exponent of c g^2, the last one for infinite numbers."""
    bins = np.frexp(slack)[1] + _BINS // 2
    bins[np.isinf(slack)] = _BINS - 1
    bins[slack == 0] = 0
    return np.stack([np.bincount(bins, values, _BINS) for values in (slack, leverages)])


def _radius(spread: FloatArray, surplus: float) -> float:
    """Return the smallest R with u'Mu <= R^2 over all sets T of the rows that say least; surplus is alpha - q."""
    slack, held = np.cumsum(spread[0])[:-1], np.cumsum(spread[1][::-1])[-2::-1]
    possible = held < surplus
    return float(np.sqrt((slack[possible] / (surplus - held[possible])).min(initial=np.inf)))


def _unit_leverage(y: FloatArray, by_unit: csr_array) -> float:
    """Return the largest eigenvalue of a unit's matrix: exact for those that may be the largest."""
    traces = by_unit @ squared_lengths(y)
    largest = 0.0
    for unit in np.argsort(-traces, kind="stable"):
        if traces[unit] <= largest:
            break
        rows = y[by_unit.indices[by_unit.indptr[unit] : by_unit.indptr[unit + 1]]]
        largest = max(largest, float(np.linalg.norm(rows, 2)) ** 2)
    return largest
