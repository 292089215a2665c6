r"""Which position should L1 regression see? Effective numbers of rows, and the position that has the most (ours).

L1 regression in a position depends on its map A only through the weights :math:`\omega_i = 1 / |A x_i|` of the rows. It
fails in a direction r where wrong rows hold half of :math:`\sum_i a_i`, :math:`a_i = \omega_i |r \cdot x_i|` (Lemma
2.3). As corruption is independent over the rows, the margin in units of its standard deviation is :math:`(1 - 2\eta) /
(2 \sqrt{\eta (1 - \eta)})` times the root of the *effective number of rows*

.. math::
    n_{\mathrm{eff}}(r) = \frac{(\sum_i a_i)^2}{\sum_i a_i^2} ,
    \qquad \frac{1}{\max_i h_i} \le n_{\mathrm{eff}}(r) \le n ,

where :math:`h_i` are the leverages of the weighted rows :math:`u_i = \omega_i x_i`. In exact radial-isotropic position
all leverages are d/n, in 1/2-approximate position they are at most 2 d/n. That is all Theorem 2.1 uses of it:

**Theorem.** Let the rows X be fixed, the weights depend on X only, and all leverages be at most c d/n. Under Massart
noise of rate :math:`\eta < 1/2` with any adversary, the L1 answer is :math:`w^*` but for a probability of at most

.. math::
    \left( 1 + \frac{8 \sqrt{c d}}{1 - 2\eta} \right)^d \exp\left( - \frac{(1 - 2\eta)^2 n}{8 c d} \right) .

It is ours, and needs :math:`O(d^2 \log d)` rows. The documentation's page of theory has the proof, and its limits.

**The most effective position.** The exact position can meet the bound n/d: a line with n/d rows, the others orthogonal
to it. In the paper's mixture an axis with four rows is nearly that; the exact position shrinks these rows until every
other row vanishes along the axis, and the answer there is a vote of four. The hat matrix H of the weighted rows shows
it: :math:`\kappa_i = (\sum_j |H_{ij}|)^2 / H_{ii}` is :math:`n_{\mathrm{eff}}` in the direction of row i. From the
loose and from the exact position, rows along which few rows act lose weight, :math:`\omega_i \gets \omega_i (\kappa_i /
\bar\kappa)^{1/4}`, and the weights with the largest least :math:`\kappa` among those with leverages of at most 2 d/n
are kept. (:math:`\kappa` is a diagnostic: it looks in n directions only.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.isotropy import RadialIsotropy, Status, radial_isotropy
from massart.rows import FloatArray, check_matrix, check_weights

LEVERAGE = 2.0
"""c = 1/(1 - gamma) at the paper's gamma = 1/2: leverages are at most c d/n."""


@dataclass(frozen=True, slots=True)
class EffectivePosition:
    """Weights of rows for L1 regression, and how many rows act under them.

    Attributes
    ----------
    weights : (n,) array
        Omega, with geometric mean 1; 0 for zero rows and rows of sample weight 0.
    kappa : (n,) array
        The effective number of rows in the direction of each row: a diagnostic; for many rows an estimate.
    leverages : (n,) array
        Of the weighted rows, a row of sample weight c being c rows.
    """

    weights: FloatArray
    kappa: FloatArray
    leverages: FloatArray

    @property
    def least_effective(self) -> float:
        """1 / max leverage: in no direction fewer rows are effective."""
        return float(1 / self.leverages.max())


def effective_number(X: ArrayLike, weights: ArrayLike, r: ArrayLike) -> float:
    """Return the effective number of rows in the direction r under weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> effective_number(np.eye(3)[[0, 0, 1, 2]], np.ones(4), [1.0, 0, 0])
    2.0
    """
    a = np.abs(check_matrix(X) @ np.asarray(r, dtype=np.float64)) * np.asarray(weights, dtype=np.float64)
    return float(a.sum() ** 2 / (a @ a)) if a.any() else 0.0


def failure_probability(n: int, d: int, eta: float, c: float = LEVERAGE) -> float:
    """Return the theorem's bound on the probability that L1 regression is not exact, at most 1.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    eta : float
        The noise rate, below 1/2.
    c : float
        The largest leverage, times n/d.

    Examples
    --------
    >>> failure_probability(2000, 2, 0.2) < 1e-3
    True
    """
    if not 0 <= eta < 0.5:
        raise ValueError(f"eta must be at least 0 and below 1/2, got {eta}")
    gap = 1 - 2 * eta
    exponent = d * math.log1p(8 * math.sqrt(c * d) / gap) - gap**2 * n / (8 * c * d)
    return math.exp(min(exponent, 0.0))


def most_effective_position(
    X: ArrayLike,
    *,
    gammas: Sequence[float] = (0.5, 1e-3),
    start: RadialIsotropy | None = None,
    sample_weight: ArrayLike | None = None,
    steps: int = 20,
    hat_columns: int = 1000,
    rng: np.random.Generator | None = None,
) -> EffectivePosition:
    """Return the weights under which the least effective direction has the most effective rows (ours, by X alone).

    Parameters
    ----------
    X : (n, d) array
        Rows that have a radial-isotropic position: those of one piece of :func:`massart.decompose`, in its coordinates.
    gammas : sequence of float
        The positions to start from: the loose one of the paper, and one that is nearly exact. The first depends on the
        coordinates, the second does not.
    start : RadialIsotropy, optional
        The first of these positions, if it is known.
    sample_weight : (n,) array, optional
        A row of weight c counts c times.
    steps : int
        From each start.
    hat_columns : int
        Columns of the hat matrix that are summed; where there are more rows, a sample of them stands for all.
    rng : numpy.random.Generator, optional
        Draws that sample; a fixed one by default.

    Raises
    ------
    ValueError
        If X has no radial-isotropic position: a subspace holds too many of its rows.

    Examples
    --------
    In the paper's mixture the least effective direction gains a factor of two or more:

    >>> from massart.paper.noise import paper_mixture
    >>> X = paper_mixture(120, 30, np.random.default_rng(0))
    >>> loose = most_effective_position(X, gammas=(0.5,), steps=0)
    >>> bool(most_effective_position(X).kappa.min() > 2 * loose.kappa.min())
    True
    """
    rows = check_matrix(X)
    given = check_weights(sample_weight, len(rows))
    counts = np.ones(len(rows)) if given is None else given
    used = rows.any(axis=1) & (counts > 0)
    Z, counts = rows[used], counts[used]
    if not len(Z):
        raise ValueError("X has no non-zero row of positive weight")
    n, d = Z.shape
    rng = np.random.default_rng(0) if rng is None else rng
    sampled = np.sort(rng.choice(n, hat_columns, replace=False)) if n > hat_columns else np.arange(n)
    most = LEVERAGE * d / counts.sum() * (1 + 1e-9)
    rest, own = gammas[start is not None :], None if given is None else counts
    pieces = [radial_isotropy(Z, gamma, sample_weight=own) for gamma in rest]
    if start is not None:
        pieces.insert(0, replace(start, subspace=np.eye(d)))  # X is in its coordinates
    # Where a subspace holds too many rows for a gamma there is no position of all of them.
    whole = [piece for piece in pieces if len(piece.matrix) == d and piece.status is not Status.STALLED]
    found = (triple for p in whole for triple in _spread(Z @ p.subspace @ p.matrix, counts, sampled, steps))
    allowed = (triple for triple in found if triple[2].max() <= most)
    best = max(allowed, key=lambda triple: float(triple[1].min()), default=None)
    if best is None:
        raise ValueError("X has no 1/2-approximate radial-isotropic position: decompose it and take one piece")
    everywhere = np.zeros((3, len(rows)))
    everywhere[:, used] = best
    return EffectivePosition(*everywhere)


def _spread(
    images: FloatArray, counts: FloatArray, sampled: NDArray[np.intp], steps: int
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Yield weights, kappa and leverages, with ever less weight on rows along which few rows act."""
    n, m = len(images), len(sampled)
    weights = 1 / np.linalg.norm(images, axis=1)
    for _ in range(steps + 1):
        P = np.linalg.qr(images * (weights * np.sqrt(counts))[:, None])[0] / np.sqrt(counts)[:, None]
        leverages = np.maximum(np.einsum("ij,ij->i", P, P), np.finfo(float).tiny)
        own = counts * leverages
        others = np.abs(P @ P[sampled].T) @ counts[sampled]
        if m < n:  # the row's own term is known; the sample stands for the others
            inside = np.isin(np.arange(n), sampled)
            others = own + (others - np.where(inside, own, 0.0)) * (n - 1) / (m - inside)
        kappa = others**2 / leverages
        yield weights, kappa, leverages
        weights = weights * (kappa / kappa.mean()) ** 0.25
        weights = weights / np.exp(np.log(weights).mean())
