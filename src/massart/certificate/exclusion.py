r"""What chance does not explain of the evidence: the pieces of a part one after the other, until it is decided.

The theorem, and how delta is split, are in :mod:`massart.certificate.support`. Here are the sums over rows that it
needs (second moments of all rows and of those that agree; leverages, and what each row may be off), the tail that each
piece has, and the chain of pieces: what one excludes, the next takes for granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from massart.certificate.geometry import (
    Geometry,
    IntArray,
    Position,
    Whitened,
    apply_to,
    counted,
    inverse_root,
    some_of,
    squared_lengths,
    sum_by_unit,
    total_over,
    unit_leverage,
)
from massart.certificate.tails import (
    BUDGET,
    CLOSED_SHARE,
    LATE_BUDGET,
    Binomial,
    ClosedForm,
    Late,
    Simulation,
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
class Exclusion:
    """What is certain since chance does not explain it.

    Attributes
    ----------
    leverage : tuple of float
        L of each piece of the whole table.
    confirmed : (d,) boolean array
    on_rows : (d,) array
        As in :class:`massart.certificate.Support`.
    """

    leverage: tuple[float, ...]
    confirmed: BoolArray
    on_rows: FloatArray


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """The rows of a certificate."""

    geometry: Geometry
    X: FloatArray
    agree: BoolArray
    half_widths: FloatArray

    @property
    def wide(self) -> WideRows | None:
        """The sums that are kept of these rows, if there are any."""
        wide = self.geometry.wide
        return wide if wide is not None and wide.X is self.X else None


@dataclass(frozen=True, slots=True)
class Policy:
    """How tails are bounded: all of it fixed before labels are seen."""

    delta: float
    bound: float
    seed: int = 0
    simulate: bool = False
    tails: bool = True
    fixed: bool = False  # u was fixed before the labels were read

    def share(self, part: int, n_parts: int) -> float:
        """Return the delta of a part."""
        if n_parts == 1:
            return self.delta
        return WHOLE_SHARE * self.delta if part == 0 else (1 - WHOLE_SHARE) * self.delta / (n_parts - 1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The rows of one piece, and the spectrum of their evidence.

    Attributes
    ----------
    place : tuple of two int
        Numbers of the part and of the piece in it.
    subspace : (d, k) array
    position : Position
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

    place: tuple[int, int]
    subspace: FloatArray
    position: Position
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
        return bool(self.root.shape[1] == self.position.basis.shape[1])


def evidence_of(judged: JudgedRows, policy: Policy, number: int) -> Iterator[Evidence]:
    """Yield the pieces of a part that have rows, with the spectrum of their evidence."""
    geometry, X = judged.geometry, judged.X
    part = geometry.parts[number]
    wide = judged.wide
    if wide is not None:
        chosen = [np.arange(len(X))]
    else:
        members = apply_to(part.membership(geometry.exponents), X, np.arange(len(X)))
        chosen = [np.flatnonzero(counted(geometry, members == j)) for j in range(len(part.pieces))]
    present = [j for j, index in enumerate(chosen) if index.size]
    delta = policy.share(number, len(geometry.parts)) / max(len(present), 1)
    for j in present:
        index, piece = chosen[j], part.pieces[j]
        agree = judged.agree[index]
        if wide is not None:
            root, (shares, axes) = wide.root, wide.spectrum(agree)
        else:
            weights = some_of(geometry.sample_weight, index)
            M, M_A = total_over(_AgreeingMoments(piece.position), X, index, weights, agree)
            root = inverse_root(M)
            shares, axes = np.linalg.eigh(root.T @ M_A @ root)
        yield Evidence((number, j), piece.subspace, piece.position, index, root, shares, axes, delta, j == present[-1])


@dataclass(slots=True)
class _Chain:
    """What a part has excluded so far, piece by piece."""

    columns: int
    holds: bool = True
    earlier: list[tuple[Position, FloatArray, float]] = field(default_factory=list)
    subspaces: list[FloatArray] = field(default_factory=list)

    def add(self, piece: Evidence, radius: float, spans: bool) -> None:
        """Add a piece: the radius that it leaves a rival, and whether all directions up to it are determined."""
        if radius < np.inf:
            position, root = piece.position, piece.root
            V = piece.subspace if spans else np.linalg.qr(np.linalg.pinv(position.basis).T @ np.linalg.qr(root)[0])[0]
            self.earlier.append((position, root, radius))
            self.subspaces.append(V)
        self.holds = radius < np.inf and (spans or piece.is_last)

    def confirmed(self) -> tuple[BoolArray, FloatArray]:
        """Return which unit vectors lie in the confirmed span, and how far coefficients may be off.

        That is of those in the span. Of the others it is how far the part is off that rows see, if all of that is
        confirmed: on the rows a rival is what one is that is off by no more, whatever it is in directions of no row.
        """
        left = np.eye(self.columns)
        widths = np.zeros(self.columns)
        for V in self.subspaces:
            left -= V @ (V.T @ left)
        for position, root, radius in self.earlier:
            with np.errstate(over="ignore", under="ignore"):
                size = radius * np.sqrt(squared_lengths(position.basis @ root)) if radius > 0 else widths * 0
                widths = widths + np.ldexp(size, -position.exponents)
        inside = np.linalg.norm(left, axis=0) <= 1e-9
        return inside, np.where(inside | self.holds, widths, np.inf)


@dataclass(frozen=True, slots=True)
class _AgreeingMoments:
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
class _Leverages:
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A piece that was asked, its tail, and whether its share exceeds the quantile at the bound."""

    piece: Evidence
    tail: Tail
    leverage: float
    passes: bool
    in_doubt: bool  # rows of a piece before do not determine all of its directions: then this one says nothing

    def eta_max(self, bound: float) -> float:
        """Return the largest rate of wrong labels that is excluded: at least the bound if, and only if, it passes."""
        piece = self.piece
        eta = 0.0 if self.in_doubt else self.tail.eta_max(piece.alpha, piece.delta, bound, self.passes)
        return max(eta, bound) if self.passes else min(eta, float(np.nextafter(bound, 0.0)))


@dataclass(frozen=True, eq=False)
class Tails:
    """What chance explains of the evidence, asked in the order of cost and only as far as it decides."""

    judged: JudgedRows
    policy: Policy
    whole: list[Evidence]

    @cached_property
    def excludes(self) -> bool:
        """Whether chance is excluded, at the bound and in every piece of the whole table."""
        asked = []
        for one, chain in self._part(self.whole):
            if not one.passes:
                return False
            asked.append((one, chain))
        self.__dict__["_asked"] = asked  # all have been asked by now
        return True

    @cached_property
    def _asked(self) -> list[tuple[_Asked, _Chain]]:
        return list(self._part(self.whole))

    @cached_property
    def exclusion(self) -> Exclusion:
        """What is excluded: parts are asked about the coefficients that the whole table leaves open."""
        parts, chain = self.judged.geometry.parts, self._asked[-1][1]
        confirmed, on_rows = chain.confirmed()
        for number in range(1, len(parts)) if not chain.holds else ():
            if np.delete(confirmed, parts[number].left_out).all():
                continue
            for _, chain in self._part(evidence_of(self.judged, self.policy, number)):
                if not chain.holds:
                    break
            inside, widths = chain.confirmed()
            confirmed, on_rows = confirmed | inside, np.minimum(on_rows, np.where(inside, widths, np.inf))
        return Exclusion(tuple(one.leverage for one, _ in self._asked), confirmed, on_rows)

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """The rate of wrong labels that each piece excludes."""
        return tuple(one.eta_max(self.policy.bound) for one, _ in self._asked)

    def _part(self, pieces: Iterable[Evidence]) -> Iterator[tuple[_Asked, _Chain]]:
        """Ask the pieces of a part one after the other; with each comes what is excluded up to it."""
        chain, spans, bound = _Chain(self.judged.X.shape[1]), True, self.policy.bound
        for piece in pieces:
            spread = self._spread(piece, tuple(chain.earlier) if chain.holds else ())
            tail, leverage = _tail(self.judged, self.policy, piece, spread.leverage)
            quantile = tail.quantile(piece.alpha, piece.delta, bound) if spans else np.inf
            passes = piece.alpha > quantile
            radius = spread.radius(piece.alpha - quantile) if passes and chain.holds else np.inf
            in_doubt, spans = not spans, spans and piece.spans
            chain.add(piece, radius, spans)
            yield _Asked(piece, tail, leverage, passes, in_doubt), chain

    def _spread(self, piece: Evidence, earlier: tuple[tuple[Position, FloatArray, float], ...]) -> Spread:
        """Return the leverages of the rows of a piece, and by how much agreeing ones may be off."""
        judged, index = self.judged, piece.index
        agree, widths = judged.agree[index], judged.half_widths[index]
        if judged.wide is not None:
            slack = (2 * widths / judged.wide.lengths)[agree] ** 2
            return Spread.of(judged.wide.leverage, slack, np.full(len(slack), judged.wide.leverage))
        weights = some_of(judged.geometry.sample_weight, index)
        return total_over(_Leverages(piece.position, piece.root, earlier), judged.X, index, weights, agree, widths)


def _tail(judged: JudgedRows, policy: Policy, piece: Evidence, leverage: float) -> tuple[Tail, float]:
    """Return the tail of a piece and its L; rows are whitened only where units or draws need it."""
    index, place, delta = piece.index, piece.place, piece.delta
    whitened = Whitened(piece.position, piece.root)
    units = judged.geometry.units
    weights = some_of(judged.geometry.sample_weight, index)
    k = whitened.root.shape[1]
    n = index.size if units is None else np.unique(units[index]).size
    y = None
    if units is not None:
        y = apply_to(whitened, judged.X, index, weights)
        leverage = unit_leverage(y, units[index])
    if k == 1 and leverage * n <= 1 + 1e-9:
        return Binomial(n), leverage
    if policy.fixed:
        return ClosedForm(leverage, 1), leverage
    # The whole table has one budget, the other parts share another.
    sharing = len(judged.geometry.parts[place[0]].pieces) * (len(judged.geometry.parts) - 1 if place[0] else 1)
    n_draws = number_of_draws(n, k, delta, BUDGET / sharing) if policy.simulate else 0
    seed = policy.seed + (place[0] << 20) + place[1]
    if not n_draws:
        late = number_of_draws(n, k, (1 - CLOSED_SHARE) * delta, LATE_BUDGET)
        if not late or units is not None or not policy.simulate or place != (0, 0):
            return ClosedForm(leverage, k), leverage

        def draw() -> Simulation:
            rows = apply_to(whitened, judged.X, index, weights)
            return Simulation(upper_triangles(rows), k, late, seed, False)

        return Late(ClosedForm(leverage, k), draw), leverage
    y = apply_to(whitened, judged.X, index, weights) if y is None else y
    products = upper_triangles(y)
    if units is not None:
        products = sum_by_unit(units[index]) @ products
    return Simulation(products, k, n_draws, seed, place[0] == 0), leverage
