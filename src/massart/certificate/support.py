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

**How delta = 1 - confidence is split** (before labels are seen). A share, half by default, is reserved for counting,
whether or not it is given. Of the rest part 0 (the whole table) takes all if it is the only part, else nine tenths, and
the other parts share what is left equally. In a part the pieces share equally. Closed form, binomial or simulation:
one tail for each piece, chosen by n, k and delta. On held-out rows (:func:`held_out_support`) there is no counting
and nothing is reserved for it.

**Rounding.** If right labels lie within :math:`h_i` of :math:`w^* \cdot x_i` and agreeing ones within :math:`h_i` of
:math:`w \cdot x_i`, rows of A outside S have :math:`|u \cdot x_i| \le 2 h_i`. Where :math:`\lambda_{\max}(F) \le q`,
every :math:`T \subset A` (whatever chooses it) gives :math:`(\alpha - q - \ell(T)) \, u^\top M u \le 4 \sum_{A
\setminus T} c_i h_i^2`, with :math:`\ell(T)` the sum of the leverages in T: u is inside an ellipsoid. T are the rows
that say least, those of the largest :math:`c_i h_i^2`. In a later piece a row may be off by what earlier pieces leave
open, too: :math:`2 h_i + \sum_l R_l |x_i|_{M_l^{-1}}` takes the place of :math:`2 h_i`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from massart.certificate.assumption import CONFIDENCE, check_confidence
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
from massart.certificate.leverages import AgreeingMoments, Leverages, Spread
from massart.certificate.simulation import (
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
from massart.rows import BoolArray, FloatArray, check_mask, check_matrix

WHOLE_SHARE = 0.9
"""Share of delta that the whole table has, if there are other parts."""


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
        with a larger probability, or errors were not independent: with the confidence.
    weakest : PieceSupport
        The piece with the smallest eta_max: what keeps the whole from more.
    pieces : tuple of PieceSupport
        Of the whole table, in order.
    confirmed : (d,) boolean array
        Coefficients that are confirmed at `bound`, by the whole table or by a part of it.
    resolution : (d,) array
        A rival that is not excluded differs by at most this in each coefficient; infinite where not confirmed.
    on_rows : (d,) array
        On the rows such a rival is what one is that differs by at most this in each coefficient: the same, but for
        coefficients of which rows see combinations only.
    n_rows : int
    """

    alpha: float
    eta_max: float
    weakest: PieceSupport
    pieces: tuple[PieceSupport, ...]
    confirmed: BoolArray
    resolution: FloatArray
    on_rows: FloatArray
    n_rows: int


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
    reserved: float = 0.5,
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
    reserved : float
        Share of delta that the caller reserves for counting; must not depend on labels.
    """
    policy = _Policy((1 - reserved) * (1 - confidence), bound, _seed(rng), simulate, tails)
    return _measure(_Judged.checked(geometry, X, agree, half_widths, confidence, bound), policy)


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
    judged = _Judged.checked(geometry, X, agree, half_widths, confidence, bound)
    return _measure(judged, _Policy(1 - confidence, bound, fixed=True))


@dataclass(frozen=True, slots=True)
class _Judged:
    """The rows of a certificate, checked."""

    geometry: Geometry
    X: FloatArray
    agree: BoolArray
    half_widths: FloatArray

    @classmethod
    def checked(
        cls,
        geometry: Geometry,
        X: ArrayLike,
        agree: ArrayLike,
        half_widths: ArrayLike,
        confidence: float,
        bound: float,
    ) -> _Judged:
        """Return the rows, or raise if they, or what is asked of them, make no sense."""
        check_confidence(confidence)
        if not 0 < bound < 1:
            raise ValueError(f"bound must be between 0 and 1, got {bound}")
        wide = geometry.wide
        rows = wide.X if wide is not None and wide.X is X else check_matrix(X)  # or checked before
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
    seed: int = 0
    simulate: bool = False
    tails: bool = True
    fixed: bool = False  # u was fixed before the labels were read

    def share(self, part: int, n_parts: int) -> float:
        """Return the delta of a part."""
        if n_parts == 1:
            return self.delta
        return WHOLE_SHARE * self.delta if part == 0 else (1 - WHOLE_SHARE) * self.delta / (n_parts - 1)


@dataclass(slots=True)
class _Chain:
    """What a part has excluded so far, piece by piece."""

    columns: int
    holds: bool = True
    earlier: list[tuple[Position, FloatArray, float]] = field(default_factory=list)
    subspaces: list[FloatArray] = field(default_factory=list)

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


def _measure(judged: _Judged, policy: _Policy) -> Support:
    """Measure the whole table, then the other parts if it is not confirmed."""
    geometry, d = judged.geometry, judged.X.shape[1]
    n_parts = len(geometry.parts)
    pieces, chain = _measure_part(judged, policy, 0)
    confirmed, on_rows = chain.confirmed()
    if not chain.holds and policy.tails:
        for part in range(1, n_parts):
            if np.delete(confirmed, geometry.parts[part].left_out).all():
                continue
            inside, widths = _measure_part(judged, policy, part)[1].confirmed()
            confirmed, on_rows = confirmed | inside, np.minimum(on_rows, np.where(inside, widths, np.inf))
    nothing = PieceSupport(0.0, 0.0, 0, 0.0, 1.0, np.zeros(d), np.zeros(d), np.zeros((d, 0)))
    weakest = min(pieces, key=lambda piece: (piece.eta_max, piece.alpha), default=nothing)
    alpha = min((piece.alpha for piece in pieces), default=0.0)
    resolution = np.where(confirmed, on_rows, np.inf)
    return Support(alpha, weakest.eta_max, weakest, tuple(pieces), confirmed, resolution, on_rows, len(judged.X))


def _measure_part(judged: _Judged, policy: _Policy, number: int) -> tuple[list[PieceSupport], _Chain]:
    """Measure one part, piece by piece; parts other than the first end with a piece that fails."""
    geometry, X = judged.geometry, judged.X
    part = geometry.parts[number]
    wide = geometry.wide if geometry.wide is not None and geometry.wide.X is X else None
    if wide is not None:
        chosen = [np.arange(len(X))]
    else:
        members = apply_to(part.membership(geometry.exponents), X, np.arange(len(X)))
        chosen = [np.flatnonzero(counted(geometry, members == j)) for j in range(len(part.pieces))]
    present = [j for j, index in enumerate(chosen) if index.size]
    delta = policy.share(number, len(geometry.parts)) / max(len(present), 1)
    chain, measured, spans = _Chain(X.shape[1], holds=bool(present)), list[PieceSupport](), True
    for j in present:
        index, piece = chosen[j], part.pieces[j]
        position = piece.position
        weights = some_of(geometry.sample_weight, index)
        agree, widths = judged.agree[index], judged.half_widths[index]
        if wide is not None:
            root, (shares, axes) = wide.root, wide.spectrum(agree)
        else:
            M, M_A = total_over(AgreeingMoments(position), X, index, weights, agree)
            root = inverse_root(M)
            shares, axes = np.linalg.eigh(root.T @ M_A @ root)
        alpha = float(np.clip(shares[0], 0.0, 1.0))
        weak = np.ldexp(position.basis @ root @ axes[:, shares < 0.5], -geometry.exponents[:, None])
        direction = _direction(position.basis @ root @ axes[:, 0], geometry)
        if not policy.tails:
            measured.append(PieceSupport(alpha, 0.0, root.shape[1], float(index.size), 1.0, *direction, weak))
            chain.holds = False
            continue
        earlier = tuple(chain.earlier) if chain.holds else ()
        if wide is not None:
            slack = (2 * widths / wide.lengths)[agree] ** 2
            spread = Spread.of(wide.leverage, slack, np.full(len(slack), wide.leverage))
        else:
            spread = total_over(Leverages(position, root, earlier), X, index, weights, agree, widths)
        tail, leverage = _tail(judged, policy, index, Whitened(position, root), spread.leverage, delta, (number, j))
        eta_max, quantile = tail.eta_max(alpha, delta, policy.bound) if spans else (0.0, np.inf)
        passes = alpha > quantile
        eta_max = max(eta_max, policy.bound) if passes else min(eta_max, float(np.nextafter(policy.bound, 0.0)))
        measured.append(PieceSupport(alpha, eta_max, root.shape[1], float(index.size), leverage, *direction, weak))
        radius = spread.radius(alpha - quantile) if passes and chain.holds else np.inf
        spans = spans and root.shape[1] == position.basis.shape[1]
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


def _seed(rng: np.random.Generator) -> int:
    """Return a number that the seed of the generator fixes, whatever was drawn from it since."""
    return int(rng.bit_generator.seed_seq.generate_state(1, np.uint64)[0] >> 2)


def _direction(scaled: FloatArray, geometry: Geometry) -> tuple[FloatArray, FloatArray]:
    """Return a direction in coefficient space whose largest entry times the size of its column is 1, and all these."""
    weighed = scaled * np.ldexp(geometry.sizes, -geometry.exponents)
    largest = weighed[np.argmax(np.abs(weighed))]
    return np.asarray(np.ldexp(scaled / largest, -geometry.exponents)), np.abs(weighed / largest)
