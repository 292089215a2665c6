r"""What random tuples of rows refute: that many rows lie in one slab, and that a rival far away fits many rows.

A *slab* is a set of rows z with :math:`|z \cdot u| \le \omega` for a u with :math:`\mathrm{RMS}(z \cdot u) = 1`: the
rows near a hyperplane through the origin. The largest share of the rows that one slab holds is hard to compute, and a
large share is easy to refute.

**Theorem.** Let Z have rank p, in coordinates in which :math:`\mathrm{RMS}(z \cdot u) = |u|`. Suppose that a slab holds
m of the n rows. Then p - 1 distinct rows drawn at random lie in it with probability :math:`\prod_{j < p - 1} (m - j) /
(n - j)`, and a tuple that does so is a *hit*: with :math:`\nu` the unit normal of the tuple :math:`D` and
:math:`\lambda(z) = (D D^\top)^{-1} D z`, at least m rows satisfy

.. math::
    |\nu \cdot z| \Bigl(1 - \omega \sum_k \mathrm{RMS}(\lambda_k)\Bigr)
    \le \omega \Bigl(1 + \sum_k |\lambda_k(z)|\Bigr).

*Proof.* :math:`z = \sum_k \lambda_k D_k + (\nu \cdot z) \nu`, so that for rows of the slab :math:`|\nu \cdot z| \, |u
\cdot \nu| \le |u \cdot z| + \sum_k |\lambda_k| |u \cdot D_k| \le \omega (1 + \sum_k |\lambda_k|)`, and :math:`1 =
\mathrm{RMS}(z \cdot u) \le \omega \sum_k \mathrm{RMS}(\lambda_k) + |u \cdot \nu|`.

A tuple that does not span a hyperplane says nothing, and counts as a hit. So does one that nearly does not: its
:math:`\lambda` are large, and all rows seem to be near. Then it is asked again: if D and another row e lie in the slab,
so do the tuples in which e replaces a row of D, and each of them must have m rows nearby. At least m rows e have to
pass this. All rows are counted in a sample, of which the slab holds as many as the hypergeometric distribution says.

A rival far from a given formula that fits many rows is refuted in the same way.

**Theorem.** Let :math:`r_i` be the residuals of a formula w, and suppose that a rival :math:`w + \beta` has m rows,
among :math:`n_T` that are fixed beforehand, with :math:`|r_i - x_i \cdot \beta| \le \tau_i`. Then t of these rows drawn
at random, distinct, are all of that kind with probability :math:`\prod_{j < t} (m - j) / (n_T - j)`. For such a tuple D
of full rank, with the least squares solution :math:`\hat\beta = D^+ r_D` and :math:`\lambda(x) = x D^+`,

1. :math:`|r_D - D \hat\beta| \le |\tau_D|`,
2. :math:`|x \cdot (\beta - \hat\beta)| \le s(x) = \sum_k |\lambda_k(x)| \tau_k` for every x, so that
3. at least m rows have :math:`|r_i - x_i \cdot \hat\beta| \le \tau_i + s(x_i)`, and
4. the rival differs from w by at most :math:`\max_i |x_i \cdot \hat\beta| + s(x_i)` on the rows.

*Proof.* :math:`D \beta = r_D + \epsilon` with :math:`|\epsilon_k| \le \tau_k`. The residual of least squares is no
longer than that of :math:`\beta`, and :math:`x \cdot \beta = \lambda(x) \cdot D \beta = x \cdot \hat\beta + \lambda(x)
\cdot \epsilon`.

Call a tuple that passes 1 and 3 a hit at the distance 4; one that does not span is a hit at any distance. The rival is
at one distance, unknown but fixed, and every tuple of its own rows is a hit at least as far away. So if A is the
largest distance but for as many hits as still refute the rival's, then it differs from w by at most A on every row, but
for the probability of so few hits: no union over distances.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, gammaln, pdtri

from massart.rows import BoolArray, FloatArray

MOST_TUPLES, MOST_TUPLES_OF_RIVALS = 500_000, 100_000
"""Tuples that are drawn at most: some 5 to 20 microseconds each."""

ENOUGH_TUPLES = 15_000
"""Tuples up to which those of a rival may be larger than they need to be, to be better conditioned."""

LARGEST_TUPLE = 3
"""Rows of a rival's tuple, for each coefficient, at most."""

_GLANCE, _SAMPLE = 40, 1_500  # rows of a slab among those that are looked at first, and rows that are looked at next
HITS = 2
"""Tuples that may be hits by chance, while the others still refute a slab."""
_MOST_DOUBTS = 150  # tuples that are asked again
_SINGULAR = 1e-10  # smallest eigenvalue of D D', for each unit of its trace
_BATCH, _RIVALS_BATCH, _RIVALS_SINGULAR = 4_000, 2_000, 1e-8


def log_chance_inside(m: int, n: int, size: int) -> float:
    """Return the logarithm of the probability that distinct random rows, `size` of n, are among m given ones.

    Examples
    --------
    >>> round(math.exp(log_chance_inside(5, 10, 2)), 6)  # 5 / 10 * 4 / 9
    0.222222
    """
    if m < size:
        return -math.inf
    return float(gammaln(m + 1) - gammaln(m - size + 1) - gammaln(n + 1) + gammaln(n - size + 1))


def number_of_tuples(chance: float, failure: float) -> int:
    """Return how many tuples refute, with two of them hits, that hits have at least this chance."""
    # A binomial number of hits is at most two with a smaller probability than a Poisson number of the same mean.
    return math.ceil(float(pdtri(HITS, failure)) / chance)


def random_subsets(n: int, k: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return `count` uniform k-subsets of n, a row each: Floyd's algorithm, all subsets at once."""
    drawn = np.empty((count, k), dtype=np.intp)
    for j in range(k):
        top = n - k + j
        candidate = rng.integers(0, top + 1, size=count)
        repeated = (drawn[:, :j] == candidate[:, None]).any(axis=1)
        drawn[:, j] = np.where(repeated, top, candidate)
    return drawn


def no_heavy_slab(Z: FloatArray, m: int, width: float, rng: np.random.Generator, failure: float) -> bool:
    """Return whether no slab holds m rows; where one does, True with probability 3 * failure at most.

    Parameters
    ----------
    Z : (n, p) array
    m : int
    width : float
        Half of the slab's, for each unit of the RMS of z.u.
    rng : numpy.random.Generator
    failure : float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.standard_normal((1000, 3))
    >>> no_heavy_slab(Z, 300, 0.01, rng, 1e-4)
    True
    >>> Z[:350, 0] = Z[:350, 1]
    >>> no_heavy_slab(Z, 300, 0.01, rng, 1e-4)
    False
    """
    n, p = Z.shape
    basis = whitening(Z)
    if basis is None or m <= p or n <= p:
        return False
    Y = Z @ basis
    if p == 1:
        return bool(np.count_nonzero(np.abs(Y[:, 0]) <= width) < m)
    chance = math.exp(log_chance_inside(m, n, p - 1))
    if chance <= 0 or number_of_tuples(chance, failure) > MOST_TUPLES:
        return False
    order = rng.permutation(n)
    glance, sample = Y[order[: math.ceil(_GLANCE * n / m)]], Y[order[:_SAMPLE]]
    from scipy.stats import hypergeom  # slow to import

    least, least_of_sample = (int(hypergeom.ppf(failure, n, m, len(rows))) for rows in (glance, sample))
    tuples, hits, doubts = number_of_tuples(chance, failure), 0, 0
    for start in range(0, tuples, _BATCH):
        D = Y[random_subsets(n, p - 1, min(_BATCH, tuples - start), rng)]
        near, singular = _near(D, glance, width)
        hits += int(np.count_nonzero(singular))
        D = D[~singular & (near.sum(axis=1) >= least)]
        for tuple_ in D[_near(D, sample, width)[0].sum(axis=1) >= least_of_sample]:
            doubts += 1
            hits += doubts > _MOST_DOUBTS or _is_hit(tuple_, sample, least_of_sample, width)
            if hits > HITS:
                return False
        if hits > HITS:
            return False
    return bool(bdtr(hits, tuples, chance) <= failure)


def whitening(Z: FloatArray) -> FloatArray | None:
    """Return B such that |B'u| = RMS(Z @ B @ u): coordinates of rows that span; None where their rank is not full."""
    scale = np.sqrt((Z * Z).mean(axis=0))
    if not (scale > 0).all():
        return None
    _, sizes, axes = np.linalg.svd(Z / scale, full_matrices=False)
    if len(sizes) < Z.shape[1] or sizes[-1] <= math.sqrt(_SINGULAR) * sizes[0]:
        return None
    return np.asarray((axes.T / sizes) * math.sqrt(len(Z)) / scale[:, None])


def _near(D: FloatArray, rows: FloatArray, width: float) -> tuple[BoolArray, BoolArray]:
    """Return which rows may lie in a slab with each tuple, and which tuples do not span a hyperplane."""
    G = D @ np.swapaxes(D, 1, 2)
    smallest, trace = np.linalg.eigvalsh(G)[:, 0], np.trace(G, axis1=1, axis2=2)
    singular = ~(smallest > _SINGULAR * trace)
    G[singular] = np.eye(D.shape[1])
    B = np.linalg.solve(G, D)  # coordinates in the tuple
    normal = np.linalg.qr(np.swapaxes(D, 1, 2), mode="complete")[0][:, :, -1]
    reach = np.abs(B @ rows.T).sum(axis=1)
    certain = 1 - width * np.linalg.norm(B, axis=2).sum(axis=1)
    return np.abs(normal @ rows.T) * certain[:, None] <= width * (1 + reach), singular


def _is_hit(D: FloatArray, sample: FloatArray, least: int, width: float) -> bool:
    """Return whether enough rows of the sample may lie in a slab with the tuple, and with each other."""
    first, _ = _near(D[None], sample, width)
    others = np.flatnonzero(first[0])
    passed = 0
    for place, e in enumerate(others):
        if passed + len(others) - place < least:
            return False
        replaced = np.repeat(D[None], len(D), axis=0)
        replaced[np.arange(len(D)), np.arange(len(D))] = sample[e]
        near, singular = _near(replaced, sample, width)
        passed += bool((singular | (near.sum(axis=1) >= least)).all())
        if passed >= least:
            return True
    return passed >= least


def farthest_rival(
    X: FloatArray,
    residuals: FloatArray,
    tau: FloatArray,
    inside: BoolArray,
    m: int,
    rng: np.random.Generator,
    failure: float,
    on: FloatArray | None = None,
) -> float:
    """Return by how much a formula that fits m rows may differ from the given one on any row; infinite if unknown.

    Parameters
    ----------
    X : (n, p) array
    residuals : (n,) array
    tau : (n,) array
        What a row that fits a rival may be off.
    inside : (n,) boolean array
        Rows among which those of a rival are, in any case.
    m : int
    rng : numpy.random.Generator
    failure : float
        The answer is too small with twice this probability, at most.
    on : (k, p) array, optional
        Rows on which the difference is measured; those of X by default.
    """
    places = np.flatnonzero(inside)
    n, p = len(places), X.shape[1]
    if m > n:
        return 0.0  # there is none
    size = _tuple_size(m, n, p, failure)
    basis = whitening(X if on is None else np.concatenate([X, on]))
    if size is None or basis is None:
        return math.inf
    Y = X @ basis
    where = Y if on is None else on @ basis
    chance = math.exp(log_chance_inside(m, n, size))
    sample = rng.permutation(n)[:_SAMPLE]
    from scipy.stats import hypergeom  # slow to import

    least = int(hypergeom.ppf(failure, n, m, len(sample)))
    rows, tuples = places[sample], number_of_tuples(chance, failure)
    farthest: list[float] = []
    for start in range(0, tuples, _RIVALS_BATCH):
        drawn = places[random_subsets(n, size, min(_RIVALS_BATCH, tuples - start), rng)]
        D, r, t = Y[drawn], residuals[drawn], tau[drawn]
        G = np.swapaxes(D, 1, 2) @ D
        smallest, trace = np.linalg.eigvalsh(G)[:, 0], np.trace(G, axis1=1, axis2=2)
        singular = ~(smallest > _RIVALS_SINGULAR * trace)
        G[singular] = np.eye(p)
        pseudo = np.linalg.solve(G, np.swapaxes(D, 1, 2))  # (tuples, p, size)
        beta = np.einsum("ijk,ik->ij", pseudo, r)
        off = r - np.einsum("ijk,ik->ij", D, beta)
        beta += np.einsum("ijk,ik->ij", pseudo, off)  # what rounding lost
        off = r - np.einsum("ijk,ik->ij", D, beta)
        slack = np.linalg.norm(t, axis=1) + 1e-12 * np.linalg.norm(r, axis=1)
        found = [math.inf] * int(np.count_nonzero(singular))
        for i in np.flatnonzero(~singular & (np.linalg.norm(off, axis=1) <= slack)):
            spread = np.abs(Y[rows] @ pseudo[i]) @ t[i]
            near = np.abs(residuals[rows] - Y[rows] @ beta[i]) <= tau[rows] + spread
            if np.count_nonzero(near) >= least:
                found.append(float((np.abs(where @ beta[i]) + np.abs(where @ pseudo[i]) @ t[i]).max()))
        farthest = sorted([*farthest, *found], reverse=True)[: HITS + 1]
        if len(farthest) > HITS and farthest[-1] == math.inf:
            return math.inf
    return farthest[-1] if len(farthest) > HITS else 0.0


def _tuple_size(m: int, n: int, p: int, failure: float) -> int | None:
    """Return how many rows a tuple has: more than are needed where they are likely to be of one kind."""

    def tuples(size: int) -> float:
        log_chance = log_chance_inside(m, n, size)
        return number_of_tuples(math.exp(log_chance), failure) if log_chance > -600 else math.inf

    if m <= p or tuples(p) > MOST_TUPLES_OF_RIVALS:
        return None
    return max((size for size in range(p, LARGEST_TUPLE * p + 1) if tuples(size) <= ENOUGH_TUPLES), default=p)
