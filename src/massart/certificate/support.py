r"""Support: how much of the evidence agrees with a formula, in the direction where it is weakest.

For a rival :math:`w + u` of the formula w only rows with :math:`u \cdot x \ne 0` tell the two apart. Weigh them by
:math:`c_i (u \cdot x_i)^2` with :math:`c_i \ge 0` that depend on X only, and let A be the rows that agree with w:

.. math::
    \alpha(w) = \min_u \frac{\sum_{i \in A} c_i (u \cdot x_i)^2}{\sum_i c_i (u \cdot x_i)^2}
              = \lambda_{\min} \bigl( M^{-1/2} M_A M^{-1/2} \bigr), \qquad
    M = \sum_i c_i x_i x_i^\top, \quad M_A = \sum_{i \in A} c_i x_i x_i^\top .

**Theorem.** Given X, let a random set S of rows be wrong, each with probability at most :math:`\eta` given X and the
rows before it; other labels are :math:`w^* \cdot x_i`, labels in S are arbitrary. Let :math:`A_i = M^{-1/2} c_i x_i
x_i^\top M^{-1/2}` on the range of M (rank k), L the largest eigenvalue of an :math:`A_i` and :math:`F = \sum_S A_i`.
Then surely :math:`\alpha(w) \le \lambda_{\max}(F)` for **every** w with :math:`w - w^* \notin \mathrm{null}(M)`,
however it was found, and :math:`P(\lambda_{\max}(F) \ge q) \le k \exp(-\mathrm{KL}(q \| \eta) / L)`.

Proof sketch. With :math:`u = w - w^*`, a row that agrees with w and has :math:`u \cdot x \ne 0` is not right, so it
is in S: :math:`u^\top M_A u \le \sum_S c_i (u \cdot x_i)^2`. Divide by :math:`u^\top M u`. The tail is that of
:mod:`massart.certificate.simulation`. So a large alpha excludes that w is wrong unless labels are wrong more often
than ``eta_max``, the largest :math:`\eta` whose tail at alpha is at most delta. L is smallest, k/n, in
radial-isotropic position, :math:`c_i = 1 / |A x_i|^2`: here the transform of the paper pays.

**Conditions.** Errors are independent given X (`units`: rows that are wrong together are one :math:`A_i`). The rows,
their weights and the geometry are chosen by X alone, once; rows dropped because of their label stay, as disagreeing.
One agreement level, one list of terms, and the same generator for every formula judged on these rows.

**Pieces.** Heavy subspaces have no transform. In the order of :func:`massart.isotropy.decompose`, rows inside
:math:`V_1 + \dots + V_j` test the part of u in :math:`V_j`, once its parts in :math:`V_1, \dots, V_{j-1}` are
excluded. After a piece that fails, later ones confirm nothing.

**Parts.** A few rare levels must not spoil what is said about the rest: a chain of column sets, all columns first,
then without the rarest, and so on. Part m asks rows that are zero in the columns left out, about the other
coefficients.

**How delta = 1 - confidence is split** (before labels are seen). Half is reserved for counting, whether or not it is
given. Of the support's half, part 0 (the whole table) takes all if it is the only part, else half, and the other
parts share the rest equally. In a part the pieces share equally. Closed form, binomial or simulation: one tail for
each piece, chosen by n, k and delta. On held-out rows (:func:`held_out_support`) there is no counting and nothing is
reserved for it.

**Rounding.** If right labels lie within :math:`h_i` of :math:`w^* \cdot x_i` and agreeing ones within :math:`h_i` of
:math:`w \cdot x_i`, rows of A outside S have :math:`|u \cdot x_i| \le 2 h_i`. Where :math:`\lambda_{\max}(F) \le q`,
every :math:`T \subset A` (whatever chooses it) gives :math:`(\alpha - q - \ell(T)) \, u^\top M u \le 4 \sum_{A
\setminus T} c_i h_i^2`, with :math:`\ell(T)` the sum of the leverages in T: u is inside an ellipsoid. T are the rows
that say least, those of the largest :math:`c_i h_i^2`. In a later piece a row may be off by what earlier pieces leave
open, too: :math:`2 h_i + \sum_l R_l |x_i|_{M_l^{-1}}` takes the place of :math:`2 h_i`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from massart.certificate.blocks import check_confidence
from massart.certificate.simulation import (
    BUDGET,
    Binomial,
    ClosedForm,
    Simulation,
    Tail,
    closed_form_eta_max,
    counting_eta_max,
    fixed_sum_eta_max,
    number_of_draws,
    simulated_eta_max,
    upper_triangles,
)
from massart.certificate.span import span_of
from massart.isotropy import decompose
from massart.rows import BoolArray, FloatArray, check_mask, check_matrix, check_weights, row_blocks

__all__ = [
    "CONFIDENCE",
    "Counting",
    "Geometry",
    "PieceSupport",
    "Support",
    "closed_form_eta_max",
    "counting_eta_max",
    "fixed_sum_eta_max",
    "geometry_of",
    "held_out_support",
    "measure_support",
    "simulated_eta_max",
    "weak_row_weights",
]

IntArray = NDArray[np.intp]
Result = TypeVar("Result")

CONFIDENCE = 0.999
"""1 - delta: how sure a confirmed formula is."""

INSIDE = 1e-12
"""Rows this near to a subspace (columns brought to size 1, relative to the row) lie in it."""

RANK = 1e-12
"""Eigenvalues of M below this fraction of the largest are rounding: such directions are undetermined."""

_SAMPLE = 5_000  # rows that the transform is found on
_SIZED = 1_000  # rows that tell the size of columns
_REFINED = 10_000  # rows of the last steps towards isotropy
_MOST_STEPS = 20
_WORTH_A_STEP = 0.995  # ... which must bring L down by so much
_ISOTROPIC = 1.01  # L in units of k / n at which steps end
_MOST_PARTS = 6
_RARE = 0.5  # columns that are non-zero in a larger share of the rows are never left out
_GOLDEN = 0.6180339887498949
_SAFE = 900  # exponents of two that leave room for squares of ratios
_BINS = 2300  # binary exponents of c h^2
_PLAIN = 64  # exponents of columns that need no care


@dataclass(frozen=True, slots=True)
class Position:
    """Where the rows of a piece lie: z = basis' x in columns of size 1, weighed by c = 1 / |z|^2.

    Attributes
    ----------
    exponents : (d,) array of int
        Columns are divided by these powers of two.
    basis : (d, k) array
    """

    exponents: IntArray
    basis: FloatArray

    def images(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z / |z| (zero for z = 0) and |z| in the caller's units, for each row."""
        if np.abs(self.exponents).max(initial=0) <= _PLAIN:  # then one product does, unless squares vanish or overflow
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                z = rows @ np.ldexp(self.basis, -self.exponents[:, None])
                squares = _squared_lengths(z)
            if squares.min(initial=1.0) > 1e-200 and squares.max(initial=1.0) < 1e200:
                lengths = np.sqrt(squares)
                z /= lengths[:, None]
                return z, lengths
        scaled, powers = _scaled(rows, self.exponents)
        z = scaled @ self.basis
        lengths = np.sqrt(_squared_lengths(z))
        z /= np.where(lengths > 0, lengths, 1.0)[:, None]
        if powers is not None:
            with np.errstate(over="ignore", under="ignore"):
                lengths = np.ldexp(lengths, powers)
        return z, lengths


@dataclass(frozen=True, slots=True)
class Moments:
    """Kernel: the sum of c x x' over a block, in the coordinates of the position."""

    position: Position

    def __call__(self, rows: FloatArray, weights: FloatArray | None) -> FloatArray:
        """Return the (k, k) sum."""
        u = self.position.images(rows)[0]
        return np.asarray(u.T @ (u if weights is None else u * weights[:, None]))


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
class Whitened:
    """Kernel: the rows y with A_i = y y', one for each row of a block."""

    position: Position
    root: FloatArray

    def __call__(self, rows: FloatArray, weights: FloatArray | None) -> FloatArray:
        """Return the (b, k) rows."""
        y = self.position.images(rows)[0] @ self.root
        return y if weights is None else y * np.sqrt(weights)[:, None]


@dataclass(frozen=True, slots=True)
class Shares:
    """Kernel: c |W'x|^2 for each row of a block, W given in columns of size 1."""

    position: Position
    W: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the (b,) numbers."""
        scaled = _scaled(rows, self.position.exponents)[0]
        lengths = _squared_lengths(scaled @ self.position.basis)
        return np.asarray(_squared_lengths(scaled @ self.W) / np.where(lengths > 0, lengths, 1.0))


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

    def __add__(self, other: Spread) -> Spread:
        return Spread(max(self.leverage, other.leverage), self.slack + other.slack, self.held + other.held)

    def radius(self, surplus: float) -> float:
        """Return the smallest R with u'Mu <= R^2 over all sets T of the rows that say least; surplus is alpha - q."""
        if not surplus > 0:
            return np.inf
        slack = np.cumsum(self.slack)
        held = np.append(np.cumsum(self.held[::-1])[::-1][1:], 0.0)
        possible = (held < surplus) & np.isfinite(slack)
        if not possible.any():
            return np.inf
        return float(np.sqrt((slack[possible] / (surplus - held[possible])).min()))


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
        leverages = _squared_lengths(u @ self.root)
        if weights is not None:
            leverages *= weights
        agreeing = rows[agree]
        off = 2 * half_widths[agree]
        with np.errstate(over="ignore", under="ignore"):
            for position, root, radius in self.earlier:
                if radius > 0:
                    v, sizes = position.images(agreeing)
                    off = off + radius * np.sqrt(_squared_lengths(v @ root)) * sizes
            slack = (off / np.maximum(lengths[agree], np.finfo(float).tiny)) ** 2
            if weights is not None:
                slack *= weights[agree]
        bins = np.clip(np.frexp(slack)[1] + _BINS // 2, 0, _BINS - 1)
        bins[np.isinf(slack)] = _BINS - 1
        bins[slack == 0] = 0
        return Spread(
            float(leverages.max(initial=0.0)),
            np.bincount(bins, slack, _BINS).astype(np.float64),
            np.bincount(bins, leverages[agree], _BINS).astype(np.float64),
        )


@dataclass(frozen=True, slots=True)
class Membership:
    """Kernel: the piece that a row belongs to, -1 for rows that say nothing.

    Attributes
    ----------
    exponents : (d,) array of int
    left_out : (m,) array of int
        Columns in which rows of this part are zero.
    subspaces : (d, r) array
        Orthonormal bases of the pieces, side by side.
    starts : (J,) array of int
        First column of each piece.
    """

    exponents: IntArray
    left_out: IntArray
    subspaces: FloatArray
    starts: IntArray

    def __call__(self, rows: FloatArray) -> IntArray:
        """Return the number of the last piece on which the row's projection is not zero."""
        belongs = rows.any(axis=1) & ~rows[:, self.left_out].any(axis=1)
        if self.starts.size <= 1:
            return np.where(belongs, 0, -1)
        scaled = _scaled(rows, self.exponents)[0]
        squares = np.add.reduceat((scaled @ self.subspaces) ** 2, self.starts, axis=1)
        present = squares > INSIDE**2 * _squared_lengths(scaled)[:, None]
        last = present.shape[1] - 1 - np.argmax(present[:, ::-1], axis=1)
        return np.where(belongs & present.any(axis=1), last, -1)


@dataclass(frozen=True, slots=True)
class Piece:
    """A subspace V_j, (d, k) orthonormal in columns of size 1, and the position of the rows that belong to it."""

    subspace: FloatArray
    position: Position


@dataclass(frozen=True, slots=True)
class Part:
    """A set of columns: the pieces of the rows that are zero in the columns left out."""

    left_out: IntArray
    pieces: tuple[Piece, ...]

    def membership(self, exponents: IntArray) -> Membership:
        """Return the kernel that tells which piece a row belongs to."""
        sizes = [piece.subspace.shape[1] for piece in self.pieces]
        bases = np.hstack([piece.subspace for piece in self.pieces])
        return Membership(exponents, self.left_out, bases, np.cumsum([0, *sizes[:-1]]))


@dataclass(frozen=True, slots=True)
class Geometry:
    """What X alone says, fixed before any label is looked at.

    Attributes
    ----------
    exponents : (d,) array of int
        Columns divided by these powers of two have a typical size of about 1.
    sizes : (d,) array
        Typical sizes of the columns: medians of their non-zero entries, without sign.
    parts : tuple of Part
        The whole table first. The pieces of a part span all of its columns, so that no row is overlooked.
    sample_weight : (n,) array or None
        With units, possibly divided by the number of rows in the unit.
    units : (n,) array of int or None
        Numbers of the units from 0. With weights or units the geometry is only for the rows it was made from.
    """

    exponents: IntArray
    sizes: FloatArray
    parts: tuple[Part, ...]
    sample_weight: FloatArray | None = None
    units: IntArray | None = None


@dataclass(frozen=True, slots=True)
class PieceSupport:
    """The support in one piece.

    Attributes
    ----------
    alpha : float
        Share of the evidence that agrees in the weakest direction.
    eta_max : float
        Largest probability of a wrong label that is excluded for this piece: at least this where a simulation stopped
        at the bound.
    dimension : int
        k, without undetermined directions.
    n_rows : float
        Rows that belong to the piece.
    leverage : float
        L.
    direction : (d,) array
        The weakest direction v in coefficient space, with max |v_j| times the typical size of column j equal to 1.
    involved : (d,) array
        How much each column takes part in it: |v_j| times its typical size, the largest 1.
    weak : (d, m) array
        All directions of a share below 1/2, in coefficient space, with v'Mv = 1.
    """

    alpha: float
    eta_max: float
    dimension: int
    n_rows: float
    leverage: float
    direction: FloatArray
    involved: FloatArray
    weak: FloatArray


@dataclass(frozen=True, slots=True)
class Support:
    """What the rows say about a formula.

    Attributes
    ----------
    alpha : float
        The smallest over the pieces of the whole table; 0 if no row is non-zero.
    eta_max : float
        The whole formula is right (up to directions that no row sees, and to `resolution`), or some label was wrong
        with a larger probability, or errors were not independent: with the confidence. By pieces or by counting.
    weakest : PieceSupport
        The piece with the smallest eta_max: what keeps the whole from more.
    pieces : tuple of PieceSupport
        Of the whole table, in order.
    confirmed : (d,) boolean array
        Coefficients that are confirmed at `bound`, by the whole table or by a part of it.
    resolution : (d,) array
        A rival that is not excluded differs by at most this in each coefficient; infinite where not confirmed.
    confidence, bound : float
    n_rows : int
    """

    alpha: float
    eta_max: float
    weakest: PieceSupport
    pieces: tuple[PieceSupport, ...]
    confirmed: BoolArray
    resolution: FloatArray
    confidence: float
    bound: float
    n_rows: int


@dataclass(frozen=True, slots=True)
class Counting:
    """What counting needs: any hyperplane holds at most `hyperplane_rows` of the `n_agree` agreeing rows of `n_rows`.

    `reach` is that of :class:`~massart.certificate.span.HyperplaneBound`: for labels with half-widths.
    """

    n_rows: int
    n_agree: int
    hyperplane_rows: float
    reach: float = np.inf


def geometry_of(
    X: ArrayLike, *, sample_weight: ArrayLike | None = None, units: NDArray[np.integer[Any]] | None = None
) -> Geometry:
    """Return pieces, weights and parts for the rows of a certificate, from X alone.

    Parameters
    ----------
    X : (n, d) array
    sample_weight : (n,) array, optional
        Must depend on X only. Rows of weight 0 say nothing; unequal weights make L larger.
    units : (n,) array of int, optional
        Rows of one unit are wrong together.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.column_stack([np.ones(200), np.arange(200)])
    >>> [[piece.subspace.shape[1] for piece in part.pieces] for part in geometry_of(X).parts]
    [[2]]
    """
    rows = check_matrix(X)
    weights = check_weights(sample_weight, len(rows))
    if units is None:
        return _geometry(rows, weights, None)
    numbers = np.asarray(units)
    if numbers.shape != (len(rows),) or numbers.dtype.kind not in "iu":
        raise ValueError(f"units must be {len(rows)} integers, got {numbers.dtype} of shape {numbers.shape}")
    _, numbers, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    plain = _geometry(rows, weights, numbers)
    if counts.min() == counts.max():
        return plain
    shares = 1.0 / counts[numbers] if weights is None else weights / counts[numbers]
    balanced = _geometry(rows, shares, numbers)
    return min(plain, balanced, key=lambda geometry: _largest_unit(geometry, rows))


def measure_support(
    geometry: Geometry,
    X: ArrayLike,
    agree: ArrayLike,
    half_widths: ArrayLike,
    *,
    bound: float = 0.5,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator,
    simulate: bool = True,
    tails: bool = True,
    counting: Counting | None = None,
) -> Support:
    """Return the support of a formula, given which rows agree with it.

    Parameters
    ----------
    geometry : Geometry
    X : (n, d) array
        The rows of the certificate, chosen without their labels.
    agree : (n,) boolean array
    half_widths : (n,) array
        How far an agreeing (and a right) label may be from the formula: 0 or tiny for exact labels.
    bound : float
        Labels are wrong with at most this probability: where `confirmed` and `resolution` hold.
    confidence : float
    rng : numpy.random.Generator
        The same for every formula judged on these rows. Draws follow from its seed, not from its state, which is left
        alone: so that formulas meet the same draws (others would be a second look).
    simulate : bool
        Simulate tails where that is cheap; must not depend on labels.
    tails : bool
        False for alpha and the weak directions alone: then nothing is excluded or confirmed.
    counting : Counting, optional
        Adds what counting says at its half of delta.
    """
    policy = replace(_Policy.checked(confidence, bound, rng, simulate), tails=tails)
    return _measure(_Judged.checked(geometry, X, agree, half_widths), policy, confidence, counting)


def held_out_support(
    geometry: Geometry,
    X: ArrayLike,
    agree: ArrayLike,
    half_widths: ArrayLike,
    *,
    bound: float = 0.5,
    confidence: float = CONFIDENCE,
) -> Support:
    """Return the support of a formula that was frozen before the labels of these rows were read.

    Its rival u is then fixed, and k drops from the tail. This serves limits and links: pass the held-out rows strictly
    inside the limits (by the frozen formula), and a geometry of just them; the conclusion is about their span.
    """
    policy = _Policy.checked(confidence, bound)
    return _measure(_Judged.checked(geometry, X, agree, half_widths), policy, confidence, None)


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
    members = _apply(part.membership(geometry.exponents), rows, np.arange(len(rows))) == number
    if geometry.sample_weight is not None and len(geometry.sample_weight) == len(rows):
        members &= geometry.sample_weight > 0
        weights = geometry.sample_weight
    else:
        weights = np.ones(len(rows))
    chosen = np.flatnonzero(members)
    if chosen.size:
        found[chosen] = weights[chosen] * _apply(Shares(part.pieces[number].position, W), rows, chosen)
    return found


@dataclass(frozen=True, slots=True)
class _Judged:
    """The rows of a certificate, checked."""

    geometry: Geometry
    X: FloatArray
    agree: BoolArray
    half_widths: FloatArray

    @classmethod
    def checked(cls, geometry: Geometry, X: ArrayLike, agree: ArrayLike, half_widths: ArrayLike) -> _Judged:
        rows = check_matrix(X)
        if rows.shape[1] != geometry.exponents.size:
            raise ValueError(f"X has {rows.shape[1]} columns but the geometry has {geometry.exponents.size}")
        for name in ("sample_weight", "units"):
            given = getattr(geometry, name)
            if given is not None and len(given) != len(rows):
                raise ValueError(f"X has {len(rows)} rows but the geometry has {name} for {len(given)}")
        widths = np.asarray(half_widths, dtype=np.float64)
        if widths.shape != (len(rows),) or not (widths >= 0).all():
            raise ValueError(f"half_widths must be {len(rows)} non-negative numbers, got shape {widths.shape}")
        return cls(geometry, rows, check_mask(agree, len(rows), "agree"), widths)


@dataclass(frozen=True, slots=True)
class _Policy:
    """How tails are bounded: all of it fixed before labels are seen."""

    delta: float
    bound: float
    fixed: bool  # u was fixed before the labels were read
    seed: int
    simulate: bool
    tails: bool = True

    @classmethod
    def checked(
        cls, confidence: float, bound: float, rng: np.random.Generator | None = None, simulate: bool = False
    ) -> _Policy:
        """Return the policy of labels that all may have seen, or without `rng` that of held-out ones."""
        check_confidence(confidence)
        if not 0 < bound < 1:
            raise ValueError(f"bound must be between 0 and 1, got {bound}")
        if rng is None:
            return cls(1 - confidence, bound, True, 0, False)
        return cls((1 - confidence) / 2, bound, False, _seed(rng), simulate)

    def share(self, part: int, n_parts: int) -> float:
        """Return the delta of a part."""
        if n_parts == 1:
            return self.delta
        return self.delta / 2 if part == 0 else self.delta / (2 * (n_parts - 1))


@dataclass(slots=True)
class _Chain:
    """What a part has excluded so far, piece by piece."""

    columns: int
    holds: bool = True
    earlier: list[tuple[Position, FloatArray, float]] = field(default_factory=list)
    subspaces: list[FloatArray] = field(default_factory=list)

    def confirmed(self) -> tuple[BoolArray, FloatArray]:
        """Return which unit vectors lie in the confirmed span, and how far such a coefficient may be off."""
        left = np.eye(self.columns)
        widths = np.zeros(self.columns)
        for V in self.subspaces:
            left -= V @ (V.T @ left)
        for position, root, radius in self.earlier:
            with np.errstate(over="ignore", under="ignore"):
                size = radius * np.sqrt(_squared_lengths(position.basis @ root)) if radius > 0 else widths * 0
                widths = widths + np.ldexp(size, -position.exponents)
        inside = np.linalg.norm(left, axis=0) <= 1e-9
        return inside, np.where(inside, widths, np.inf)


def _measure(judged: _Judged, policy: _Policy, confidence: float, counting: Counting | None) -> Support:
    """Measure the whole table, then the other parts if it is not confirmed."""
    geometry, d = judged.geometry, judged.X.shape[1]
    n_parts = len(geometry.parts)
    pieces, chain = _measure_part(judged, policy, 0)
    confirmed, resolution = chain.confirmed()
    if not chain.holds and policy.tails:
        for part in range(1, n_parts):
            if np.delete(confirmed, geometry.parts[part].left_out).all():
                continue
            inside, widths = _measure_part(judged, policy, part)[1].confirmed()
            confirmed, resolution = confirmed | inside, np.minimum(resolution, widths)
    nothing = PieceSupport(0.0, 0.0, 0, 0.0, 1.0, np.zeros(d), np.zeros(d), np.zeros((d, 0)))
    weakest = min(pieces, key=lambda piece: (piece.eta_max, piece.alpha), default=nothing)
    eta_max = weakest.eta_max
    if counting is not None:
        counted = counting_eta_max(counting.n_rows, counting.n_agree, counting.hyperplane_rows, policy.delta)
        eta_max = max(eta_max, counted)
        if counted >= policy.bound:
            widths = _counted_resolution(judged, counting)
            open_columns = np.isin(np.arange(d), [j for group in span_of(judged.X[judged.agree]).groups for j in group])
            confirmed = confirmed | ~open_columns
            resolution = np.where(open_columns, resolution, np.minimum(resolution, widths))
    alpha = min((piece.alpha for piece in pieces), default=0.0)
    return Support(
        alpha, eta_max, weakest, tuple(pieces), confirmed, resolution, confidence, policy.bound, len(judged.X)
    )


def _measure_part(judged: _Judged, policy: _Policy, number: int) -> tuple[list[PieceSupport], _Chain]:
    """Measure one part, piece by piece; parts other than the first end with a piece that fails."""
    geometry, X = judged.geometry, judged.X
    part = geometry.parts[number]
    members = _apply(part.membership(geometry.exponents), X, np.arange(len(X)))
    chosen = [np.flatnonzero(_counted(geometry, members == j)) for j in range(len(part.pieces))]
    present = [j for j, index in enumerate(chosen) if index.size]
    delta = policy.share(number, len(geometry.parts)) / max(len(present), 1)
    chain, measured, spans = _Chain(X.shape[1], holds=bool(present)), list[PieceSupport](), True
    for j in present:
        index, piece = chosen[j], part.pieces[j]
        position = piece.position
        weights = _some(geometry.sample_weight, index)
        agree, widths = judged.agree[index], judged.half_widths[index]
        M, M_A = _total(AgreeingMoments(position), X, index, weights, agree)
        root = _inverse_root(M)
        shares, axes = np.linalg.eigh(root.T @ M_A @ root)
        alpha = float(np.clip(shares[0], 0.0, 1.0))
        weak = np.ldexp(position.basis @ root @ axes[:, shares < 0.5], -geometry.exponents[:, None])
        direction = _direction(position.basis @ root @ axes[:, 0], geometry)
        if not policy.tails:
            measured.append(PieceSupport(alpha, 0.0, root.shape[1], float(index.size), 1.0, *direction, weak))
            chain.holds = False
            continue
        earlier = tuple(chain.earlier) if chain.holds else ()
        spread = _total(Leverages(position, root, earlier), X, index, weights, agree, widths)
        tail, leverage = _tail(judged, policy, index, Whitened(position, root), spread.leverage, delta, (number, j))
        eta_max, quantile = tail.eta_max(alpha, delta, policy.bound) if spans else (0.0, np.inf)
        passes = alpha > quantile
        eta_max = max(eta_max, policy.bound) if passes else min(eta_max, float(np.nextafter(policy.bound, 0.0)))
        measured.append(PieceSupport(alpha, eta_max, root.shape[1], float(index.size), leverage, *direction, weak))
        radius = spread.radius(alpha - quantile) if passes and chain.holds else np.inf
        spans = spans and root.shape[1] == M.shape[0]
        if radius < np.inf:
            V = piece.subspace if spans else np.linalg.qr(np.linalg.pinv(position.basis).T @ np.linalg.qr(root)[0])[0]
            chain.earlier.append((position, root, radius))
            chain.subspaces.append(V)
        chain.holds = radius < np.inf and (spans or j == present[-1])
        if number > 0 and not chain.holds:
            break
    return measured, chain


def _tail(
    judged: _Judged,
    policy: _Policy,
    index: IntArray,
    whitened: Whitened,
    leverage: float,
    delta: float,
    place: tuple[int, int],
) -> tuple[Tail, float]:
    """Return the tail of a piece and its L; rows are whitened only where units or draws need it."""
    units = judged.geometry.units
    weights = _some(judged.geometry.sample_weight, index)
    k = whitened.root.shape[1]
    n = index.size if units is None else np.unique(units[index]).size
    y = None if units is None else _apply(whitened, judged.X, index, weights)
    if units is not None and y is not None:
        leverage = _unit_leverage(y, units[index])
    if k == 1 and leverage * n <= 1 + 1e-9:
        return Binomial(n), leverage
    if policy.fixed:
        return ClosedForm(leverage, 1), leverage
    # The whole table has one budget, the other parts share another.
    sharing = len(judged.geometry.parts[place[0]].pieces) * max(1, len(judged.geometry.parts) - 1 if place[0] else 1)
    budget = BUDGET / sharing
    n_draws = number_of_draws(n, k, delta, budget) if policy.simulate else 0
    if not n_draws:
        return ClosedForm(leverage, k), leverage
    y = _apply(whitened, judged.X, index, weights) if y is None else y
    products = upper_triangles(y)
    if units is not None:
        products = _by_unit(units[index]) @ products
    return Simulation(products, k, n_draws, policy.seed + (place[0] << 20) + place[1], place[0] == 0), leverage


def _seed(rng: np.random.Generator) -> int:
    """Return a number that the seed of the generator fixes, whatever was drawn from it since."""
    sequence = rng.bit_generator.seed_seq
    if not isinstance(sequence, np.random.SeedSequence):
        return int(rng.integers(2**62))
    return int(sequence.generate_state(1, np.uint64)[0] >> 2)


def _direction(scaled: FloatArray, geometry: Geometry) -> tuple[FloatArray, FloatArray]:
    """Return a direction in coefficient space whose largest entry times the size of its column is 1, and all these."""
    weighed = scaled * np.ldexp(geometry.sizes, -geometry.exponents)
    largest = weighed[np.argmax(np.abs(weighed))]
    factor = largest if largest else 1.0
    return np.asarray(np.ldexp(scaled / factor, -geometry.exponents)), np.abs(weighed / factor)


def _counted_resolution(judged: _Judged, counting: Counting) -> FloatArray:
    """Return how far a rival may be that counting leaves: |u.x| is at most 2 t reach on the agreeing rows."""
    widest = float(judged.half_widths[judged.agree].max(initial=0.0))
    d = judged.X.shape[1]
    if widest == 0 or not counting.reach < np.inf:
        return np.full(d, 0.0 if widest == 0 else np.inf)
    rows = judged.X[judged.agree] * np.ldexp(1.0, -judged.geometry.exponents)
    R = np.linalg.qr(rows, mode="r")
    if len(R) < d or np.linalg.cond(R) > 1 / RANK:
        return np.full(d, np.inf)
    norms = np.linalg.norm(np.linalg.inv(R), axis=1) * np.sqrt(len(rows))
    return np.asarray(np.ldexp(norms * 2 * widest * counting.reach, -judged.geometry.exponents))


def _geometry(X: FloatArray, weights: FloatArray | None, units: IntArray | None) -> Geometry:
    """Find exponents, parts and their pieces."""
    active = X.any(axis=1)
    if weights is not None:
        active &= weights > 0
    rows = np.flatnonzero(active)
    exponents, sizes = _column_sizes(X, rows)
    parts: list[Part] = []
    for left_out in _left_out(X, rows):
        inside = rows[~np.asarray(X[:, left_out].any(axis=1))[rows]] if left_out.size else rows
        if parts and not inside.size:
            break
        parts.append(_part(X, exponents, left_out, inside, weights))
    return Geometry(exponents, sizes, tuple(parts), weights, units)


def _left_out(X: FloatArray, rows: IntArray) -> Iterator[IntArray]:
    """Yield the columns that each part leaves out: none, then those up to a growing number of non-zero rows."""
    yield np.arange(0)
    counts = np.count_nonzero(X if len(rows) == len(X) else X[rows], axis=0)
    rare = counts[(counts > 0) & (counts <= _RARE * len(rows))]
    last = 0
    for edge in np.geomspace(rare.min(), rare.max(), _MOST_PARTS - 1) if rare.size else ():
        left_out = np.flatnonzero(counts <= edge * (1 + 1e-9))
        if last < left_out.size < X.shape[1]:
            yield left_out
        last = max(last, left_out.size)


def _part(X: FloatArray, exponents: IntArray, left_out: IntArray, rows: IntArray, weights: FloatArray | None) -> Part:
    """Decompose a sample of the rows, then what is left of the others, until all rows lie in the pieces."""
    ambient = np.delete(np.eye(X.shape[1]), left_out, axis=1)
    pieces: list[Piece] = []
    left = rows
    while left.size and ambient.shape[1]:
        sample = _spread_out(left, _SAMPLE)
        scaled = _scaled(X[sample], exponents)[0]
        projected = scaled @ ambient
        projected[np.abs(projected) <= INSIDE * np.linalg.norm(scaled, axis=1)[:, None]] = 0
        found = decompose(projected, sample_weight=_some(weights, sample)) if projected.any() else []
        for piece in found:
            V = ambient @ piece.subspace
            pieces.append(Piece(V, Position(exponents, V @ piece.matrix.T)))
        V = np.hstack([piece.subspace for piece in found]) if found else np.zeros((ambient.shape[1], 0))
        ambient = ambient @ np.linalg.qr(V, mode="complete")[0][:, V.shape[1] :]
        if not ambient.shape[1] or not found:
            break
        complement = Part(left_out, (*pieces, Piece(ambient, Position(exponents, ambient))))
        left = left[_apply(complement.membership(exponents), X, left) == len(pieces)]
    if ambient.shape[1]:
        pieces.append(Piece(ambient, Position(exponents, ambient)))
    part = Part(left_out, tuple(pieces))
    if not rows.size:
        return part
    members = _apply(part.membership(exponents), X, rows)
    return Part(left_out, tuple(_refined(X, piece, rows[members == j], weights) for j, piece in enumerate(pieces)))


def _refined(X: FloatArray, piece: Piece, rows: IntArray, weights: FloatArray | None) -> Piece:
    """Take a few of Tyler's steps towards radial isotropy and keep the weights with the smallest L."""
    k = piece.subspace.shape[1]
    if k == 1 or rows.size <= k:
        return piece
    sample = _spread_out(rows, _REFINED)
    shares = np.ones(len(sample)) if weights is None else weights[sample]
    basis = best = piece.position.basis
    u = piece.position.images(X[sample])[0]
    least = np.inf
    for _ in range(_MOST_STEPS):
        M = u.T @ (u * shares[:, None])
        root = _inverse_root(M) * np.sqrt(np.trace(M) / k)
        if root.shape[1] < k:
            break
        u = u @ root
        lengths = np.sqrt(_squared_lengths(u))
        largest = float((shares * lengths**2).max()) / shares.sum()  # L in units of k
        gained = largest < least * _WORTH_A_STEP
        if largest < least * (1 - 1e-6):
            best, least = basis, largest
        if not gained or least * len(sample) <= _ISOTROPIC:
            break
        u /= np.where(lengths > 0, lengths, 1.0)[:, None]
        basis = basis @ root
    return Piece(piece.subspace, Position(piece.position.exponents, best))


def _column_sizes(X: FloatArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
    """Return exponents and typical sizes of the columns.

    Exponents are medians over the non-zero entries of rows that are brought to size 1: scaling rows changes nothing,
    and one huge entry does not make the others of its column look like zeros.
    """
    d = X.shape[1]
    exponents, sizes = np.zeros(d, dtype=np.intp), np.ones(d)
    sample = X[_spread_out(rows, _SIZED)]
    for j in np.flatnonzero(~sample.any(axis=0)) if len(sample) < len(rows) else ():
        sample = np.vstack([sample, X[_spread_out(rows[X[rows, j] != 0], 64)]])
    filled = np.flatnonzero(sample.any(axis=0))
    if not filled.size:
        return exponents, sizes
    entries = np.abs(sample[:, filled])
    entries = np.where(entries > 0, entries, np.inf)
    logs = np.where(entries < np.inf, np.frexp(np.where(entries < np.inf, entries, 1.0))[1], np.inf)
    middle = (np.isfinite(logs).sum(axis=0) - 1) // 2, np.arange(filled.size)
    sizes[filled] = np.sort(entries, axis=0)[middle]
    columns = np.zeros(filled.size)
    for _ in range(2):
        largest = np.where(np.isfinite(logs), logs - columns, -np.inf).max(axis=1)
        columns = np.sort(logs - largest[:, None], axis=0)[middle]
    columns -= round((columns.max() + columns.min()) / 2)  # a common factor is a factor of the rows
    exponents[filled] = np.clip(columns, -_SAFE, _SAFE).astype(np.intp)
    return exponents, sizes


def _scaled(rows: FloatArray, exponents: IntArray) -> tuple[FloatArray, IntArray | None]:
    """Return rows with columns of size 1 and, where squares would overflow or vanish, the powers of two taken out."""
    with np.errstate(over="ignore", under="ignore"):
        scaled = rows * np.ldexp(1.0, -exponents)
        squares = _squared_lengths(scaled)
    odd = np.flatnonzero(~((squares > 1e-200) & (squares < 1e200)))
    odd = odd[rows[odd].any(axis=1)]
    if not odd.size:
        return scaled, None
    powers = np.zeros(len(rows), dtype=np.intp)
    fractions, logs = np.frexp(rows[odd])
    logs = np.where(fractions != 0, logs - exponents, -(1 << 20))
    powers[odd] = logs.max(axis=1)
    scaled[odd] = np.ldexp(fractions, np.maximum(logs - powers[odd, None], -1200))
    return scaled, powers


def _inverse_root(M: FloatArray) -> FloatArray:
    """Return the columns of M^(-1/2) on its range, (k, r)."""
    values, axes = np.linalg.eigh(M)
    kept = values > RANK * values[-1]
    return np.asarray(axes[:, kept] / np.sqrt(values[kept]))


def _by_unit(units: IntArray) -> csr_array:
    """Return the matrix that sums rows by unit."""
    numbers = np.unique(units, return_inverse=True)[1]
    return csr_array((np.ones(units.size), (numbers, np.arange(units.size))))


def _unit_leverage(y: FloatArray, units: IntArray) -> float:
    """Return the largest eigenvalue of a unit's matrix: exact for those that may be the largest."""
    sums = _by_unit(units)
    traces = sums @ _squared_lengths(y)
    order = np.argsort(-traces, kind="stable")
    largest = 0.0
    for unit in order:
        if traces[unit] <= largest * (1 + 1e-9):
            break
        rows = y[sums.indices[sums.indptr[unit] : sums.indptr[unit + 1]]]
        gram = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
        largest = max(largest, float(np.linalg.eigvalsh(gram)[-1]))
    return largest


def _largest_unit(geometry: Geometry, X: FloatArray) -> float:
    """Return L of the largest piece of the whole table."""
    part = geometry.parts[0]
    number = int(np.argmax([piece.subspace.shape[1] for piece in part.pieces]))
    members = _apply(part.membership(geometry.exponents), X, np.arange(len(X)))
    index = np.flatnonzero(_counted(geometry, members == number))
    if not index.size or geometry.units is None:
        return 1.0
    position, weights = part.pieces[number].position, _some(geometry.sample_weight, index)
    root = _inverse_root(_total(Moments(position), X, index, weights))
    return _unit_leverage(_apply(Whitened(position, root), X, index, weights), geometry.units[index])


def _counted(geometry: Geometry, members: BoolArray) -> BoolArray:
    """Leave out rows of weight zero."""
    return members if geometry.sample_weight is None else members & (geometry.sample_weight > 0)


def _spread_out(index: IntArray, size: int) -> IntArray:
    """Return about `size` members of `index`, evenly spread but not periodic; all if there are not more."""
    if index.size <= size:
        return index
    return index[(np.arange(index.size) * _GOLDEN) % 1.0 < size / index.size]


def _some(values: FloatArray | None, index: IntArray) -> FloatArray | None:
    return None if values is None else values[index]


def _squared_lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _blocks(X: FloatArray, index: IntArray, aligned: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield blocks of the chosen rows with what is aligned with them."""
    everything = index.size == len(X)
    for block in row_blocks(index.size, X.shape[1]):
        yield X[block] if everything else X[index[block]], *(a if a is None else a[block] for a in aligned)


def _total(kernel: Callable[..., Result], X: FloatArray, index: IntArray, *aligned: Any) -> Result:
    """Return the sum of the kernel over blocks of the chosen rows."""
    blocks = _blocks(X, index, aligned)
    total = kernel(*next(blocks))
    for block in blocks:
        total = total + kernel(*block)  # type: ignore[operator]
    return total


def _apply(kernel: Callable[..., NDArray[Any]], X: FloatArray, index: IntArray, *aligned: Any) -> Any:
    """Return what the kernel gives for each of the chosen rows."""
    return np.concatenate([kernel(*block) for block in _blocks(X, index, aligned)])
