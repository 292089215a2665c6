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
:mod:`massart.certificate.tails`. So a large alpha excludes that w is wrong unless labels are wrong more often
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

**How delta = 1 - confidence is split** (before labels are seen). Part 0 (the whole table) takes all if it is the only
part, else nine tenths, and the other parts share what is left equally. In a part the pieces share equally. Closed form,
binomial or simulation: one tail for each piece, chosen by n, k and delta. (Counting by random blocks as well, for
half of delta, confirmed none of 380 tables that support did not, and cost one of them its confirmation.)

**Rounding.** If right labels lie within :math:`h_i` of :math:`w^* \cdot x_i` and agreeing ones within :math:`h_i` of
:math:`w \cdot x_i`, rows of A outside S have :math:`|u \cdot x_i| \le 2 h_i`. Where :math:`\lambda_{\max}(F) \le q`,
every :math:`T \subset A` (whatever chooses it) gives :math:`(\alpha - q - \ell(T)) \, u^\top M u \le 4 \sum_{A
\setminus T} c_i h_i^2`, with :math:`\ell(T)` the sum of the leverages in T: u is inside an ellipsoid. T are the rows
that say least, those of the largest :math:`c_i h_i^2`. In a later piece a row may be off by what earlier pieces leave
open, too: :math:`2 h_i + \sum_l R_l |x_i|_{M_l^{-1}}` takes the place of :math:`2 h_i`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from massart.certificate.assumption import CONFIDENCE
from massart.certificate.deferred import Deferred, settled
from massart.certificate.exclusion import JudgedPieces, PieceEvidence
from massart.certificate.geometry import Geometry, blocks, scaled_rows, squared_lengths
from massart.rows import BoolArray, FloatArray

_WEAKEST, _HEAVY_TAILED = 8, 4.0  # directions that are looked at, and the kurtosis that shows few rows (Gaussian: 3)


@dataclass(frozen=True, slots=True)
class PieceSupport:
    """The support in one piece.

    Attributes
    ----------
    alpha : float
        Share of the evidence that agrees in the weakest direction.
    dimension : int
        k, without undetermined directions.
    n_rows : float
        Rows that belong to the piece.
    involved : (d,) array
        How much each column takes part in the weakest direction v: |v_j| times its typical size, the largest 1.
    weak : (d, m) array
        All directions of a share below 1/2, in coefficient space, with v'Mv = 1.
    """

    alpha: float
    dimension: int
    n_rows: float
    involved: FloatArray
    weak: FloatArray


@dataclass(frozen=True, eq=False)
class Support:
    """What the rows say about a formula.

    Attributes
    ----------
    alpha : float
        The smallest over the pieces of the whole table; 0 if no row is non-zero.
    pieces : tuple of PieceSupport
        Of the whole table, in order.
    n_rows : int
    excludes : bool
        Whether chance is excluded, at the bound and in every piece. This and what follows is computed when first
        read, and each takes more than the one before.
    leverage : tuple of float
        L of each piece.
    confirmed : (d,) boolean array
        Coefficients that are confirmed at the bound, by the whole table or by a part of it.
    on_rows : (d,) array
        On the rows a rival that is not excluded is what one is that differs by at most this in each coefficient: the
        same as `resolution`, but for coefficients of which rows see combinations only.
    rates : tuple of float
        Of each piece, the largest probability of a wrong label that is excluded: at least this where a simulation
        stopped at the bound.
    """

    alpha: float
    pieces: tuple[PieceSupport, ...]
    n_rows: int
    excludes: Deferred[bool] = Deferred()  # noqa: RUF009  (a descriptor)
    leverage: Deferred[tuple[float, ...]] = Deferred()  # noqa: RUF009
    confirmed: Deferred[BoolArray] = Deferred()  # noqa: RUF009
    on_rows: Deferred[FloatArray] = Deferred()  # noqa: RUF009
    rates: Deferred[tuple[float, ...]] = Deferred()  # noqa: RUF009

    def __getstate__(self) -> dict[str, Any]:
        return settled(self)

    @property
    def eta_max(self) -> float:
        """The rate of wrong labels that is excluded.

        With the confidence the formula is right (up to directions that no row sees, and to `resolution`), or some label
        was wrong with a larger probability, or errors were not independent.
        """
        return min(self.rates, default=0.0)

    @property
    def weakest(self) -> PieceSupport:
        """The piece with the smallest eta_max: what keeps the whole from more."""
        nothing = np.zeros(len(self.confirmed))
        none = PieceSupport(0.0, 0, 0.0, nothing, np.zeros((len(nothing), 0)))
        ranked = zip(self.rates, self.pieces, strict=True)
        return min(ranked, key=lambda pair: (pair[0], pair[1].alpha), default=(0.0, none))[1]

    @property
    def resolution(self) -> FloatArray:
        """A rival that is not excluded differs by at most this in each coefficient; infinite where not confirmed."""
        return np.where(self.confirmed, self.on_rows, np.inf)


def measure_support(
    geometry: Geometry,
    X: FloatArray,
    agree: BoolArray,
    half_widths: FloatArray,
    *,
    bound: float = 0.5,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator,
    simulate: bool = True,
    tails: bool = True,
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
    """
    seeds: Any = rng.bit_generator.seed_seq
    seed, delta = int(seeds.generate_state(1, np.uint64)[0] >> 2), 1 - confidence
    return _measure(JudgedPieces(geometry, X, agree, half_widths, delta, bound, seed, simulate), tails)


def held_out_support(
    geometry: Geometry,
    X: FloatArray,
    agree: BoolArray,
    half_widths: FloatArray,
    *,
    bound: float = 0.5,
    confidence: float = CONFIDENCE,
) -> Support:
    """Return the support of a formula that was frozen before the labels of these rows were read.

    Its rival u is then fixed, and k drops from the tail. This serves limits and links: pass the held-out rows strictly
    inside the limits (by the frozen formula), and a geometry of just them; the conclusion is about their span.
    """
    return _measure(JudgedPieces(geometry, X, agree, half_widths, 1 - confidence, bound, fixed=True))


def _measure(judged: JudgedPieces, tails: bool = True) -> Support:
    """Measure the whole table; what chance explains is left for later."""
    pieces = tuple(_piece_support(one, judged.geometry) for one in judged.whole)
    alpha, n, d = min((piece.alpha for piece in pieces), default=0.0), *judged.X.shape
    if not tails or not pieces:
        nothing = np.zeros(d, dtype=bool), np.full(d, np.inf)
        return Support(alpha, pieces, n, False, (1.0,) * len(pieces), *nothing, (0.0,) * len(pieces))
    return Support(
        alpha,
        pieces,
        n,
        lambda: judged.excludes,
        lambda: tuple(one.leverage for one in judged.asked),
        lambda: judged.excluded[0],
        lambda: judged.excluded[1],
        lambda: tuple(one.eta_max(judged.bound) for one in judged.asked),
    )


def _piece_support(one: PieceEvidence, geometry: Geometry) -> PieceSupport:
    directions = one.piece.basis @ one.root @ one.axes
    weak = np.ldexp(directions[:, one.shares < 0.5], -geometry.exponents[:, None])
    involved = np.abs(directions[:, 0] * np.ldexp(geometry.sizes, -geometry.exponents))
    return PieceSupport(one.alpha, one.root.shape[1], float(one.index.size), involved / involved.max(), weak)


def weak_row_weights(geometry: Geometry, X: FloatArray, support: Support) -> FloatArray:
    """Return where to look next: c_i |W'x_i|^2 for the weak directions W of the first piece that has any.

    Zero for rows of other pieces, and for all rows if every direction has a share of at least 1/2. The rows need not be
    those that were measured.
    """
    found = np.zeros(len(X))
    weak = next((piece.weak for piece in support.pieces if piece.weak.shape[1]), None)
    if weak is None:
        return found
    part = geometry.parts[0]
    W = np.ldexp(weak, geometry.exponents[:, None])  # in columns of size 1
    number = int(np.argmax([float(np.linalg.norm(piece.subspace.T @ W)) for piece in part.pieces]))
    members, weights = part.members(X, np.arange(len(X))) == number, np.ones(len(X))
    if geometry.sample_weight is not None and len(geometry.sample_weight) == len(X):
        weights = geometry.sample_weight
        members &= weights > 0
    chosen = np.flatnonzero(members)
    for block, rows in blocks(X, chosen):
        scaled = scaled_rows(rows, geometry.exponents)[0]
        lengths = squared_lengths(scaled @ part.pieces[number].basis)
        shares = squared_lengths(scaled @ W) / np.where(lengths > 0, lengths, 1.0)
        found[chosen[block]] = weights[chosen[block]] * shares
    return found


def is_weak_by_chance(geometry: Geometry, support: Support, share: float) -> bool:
    r"""Return whether the weakest direction is what a random choice of wrong rows leaves, where there are many columns.

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
