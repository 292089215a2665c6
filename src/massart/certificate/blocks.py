r"""Bounds from blocks of independent rows: deterministic by packing, with confidence by sampling.

Every :math:`r \ne 0` is non-zero on at least one row of a block of k independent rows in k dimensions. Both bounds
follow from that, for slabs, once blocks are asked to have a bounded reach (:mod:`massart.certificate.span`): if
:math:`|r \cdot x| \le 2t` on all rows of such a block, then :math:`|r \cdot x| \le 2t \cdot reach` on all rows.

A block that is not clearly independent counts as dependent: doubt makes the bounds larger.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaln

from massart.certificate.assumption import check_confidence
from massart.certificate.span import (
    SLAB_REACH,
    Coordinates,
    HyperplaneBound,
    coordinates,
    independent_rows,
)
from massart.rows import FloatArray, check_matrix, check_weights

_POOL = 3  # rows to choose a block from, in units of k
_GOLDEN = 0.6180339887498949
_BATCH = 1 << 21  # numbers in one batch of sampled blocks


def packing_bound(
    X: ArrayLike,
    needed: float,
    *,
    sample_weight: ArrayLike | None = None,
    limit: float = SLAB_REACH,
    budget: float = np.inf,
) -> HyperplaneBound | None:
    r"""Bound the rows of one hyperplane by packing disjoint blocks of independent rows.

    Proof. Let b disjoint blocks of d independent rows each be found among the a rows. A hyperplane with normal r
    misses at least one row of each block, since d independent rows are orthogonal to no :math:`r \ne 0`. Hence
    :math:`h \le a - b`. With weights :math:`c_i` let the block j take the same amount :math:`m_j` from each of its
    rows, with :math:`\sum_{j \ni i} m_j \le c_i`; the rows missed weigh at least :math:`\sum_j m_j`. For slabs, r
    exceeds :math:`2t` on a row of each block if it exceeds :math:`2t` times the largest reach on any row.

    Parameters
    ----------
    X : (n, d) array
        Non-zero rows.
    needed : float
        Stop as soon as the blocks weigh more than this.
    sample_weight : (n,) array, optional
    limit : float
        Largest reach of a block that counts as independent.
    budget : float
        Floating-point operations to spend, about.

    Returns
    -------
    HyperplaneBound or None
        None when not one block is found.

    Examples
    --------
    >>> import numpy as np
    >>> packing_bound(np.random.default_rng(0).standard_normal((100, 5)), needed=10).rows
    89.0
    """
    rows = check_matrix(X)
    n, k = rows.shape
    weights = check_weights(sample_weight, n)
    left = np.ones(n) if weights is None else weights.copy()
    total = float(left.sum())
    place = coordinates(rows[left > 0])
    if place is None:
        return None
    left = left[left > 0]
    # Rows near each other in a table resemble each other; rows of like weight waste the least in one block.
    order = np.argsort((np.arange(left.size) * _GOLDEN) % 1.0, kind="stable")
    order = order[np.argsort(-left[order], kind="stable")]
    pool, taken, size = order[:0], 0, _POOL * k
    packed = worst = spent = 0.0
    while packed <= needed and spent < budget:
        fresh = order[taken : taken + size - pool.size]
        pool, taken = np.concatenate([pool, fresh]), taken + fresh.size
        if pool.size < k:
            break
        block = pool[independent_rows(place.Y[pool])]
        reach = float(place.reach(place.Y[block]))
        spent += block_cost(k, pool.size)
        if reach > limit:
            if taken == order.size:
                break
            size *= 2
            continue
        amount = float(left[block].min())
        packed += amount
        worst = max(worst, reach)
        left[block] -= amount
        pool = pool[left[pool] > 0]
    return HyperplaneBound(total - packed, worst) if packed > 0 else None


def sampled_bound(
    X: ArrayLike,
    rng: np.random.Generator,
    *,
    n_draws: int = 10_000,
    confidence: float = 0.999,
    sample_weight: ArrayLike | None = None,
    limit: float = SLAB_REACH,
) -> HyperplaneBound | None:
    r"""Bound the rows of one hyperplane, with confidence, by drawing random blocks of d rows.

    Proof. Let S be the h rows of the fullest hyperplane: a set that the rows alone determine, before anything is
    drawn. A block drawn inside S is dependent, which has the probability :math:`p_S = \binom h d / \binom n d`
    (:math:`(h/n)^d` for the weighted draws with replacement). Of K independent draws let f be not clearly independent.
    The share p of such blocks lies below the Clopper-Pearson limit :math:`p_u(f, K)` with the stated confidence,
    and :math:`p_S \le p \le p_u` bounds h. With f = 0: :math:`h \le n (\log(1/\delta)/K)^{1/d}`, about. There is no
    union over hyperplanes. For slabs the same holds with "of a larger reach" for "dependent".

    Parameters
    ----------
    X : (n, d) array
        Non-zero rows.
    rng : numpy.random.Generator
    n_draws : int
        K, chosen before the draws are seen.
    confidence : float
        1 - delta.
    sample_weight, limit
        As for :func:`packing_bound`.

    Returns
    -------
    HyperplaneBound or None
        None when the rows do not span or the draws bound nothing.
    """
    rows = check_matrix(X)
    weights = check_weights(sample_weight, len(rows))
    check_confidence(confidence)
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws}")
    place = coordinates(rows)
    if place is None:
        return None
    failures = _count_failures(place, weights, rng, n_draws, limit)
    if failures == n_draws:
        return None
    ceiling = failure_ceiling(failures, n_draws, confidence)
    n, k = rows.shape
    if weights is not None:
        return HyperplaneBound(float(ceiling ** (1 / k) * weights.sum()), limit)
    held = largest_share(n, k, ceiling)
    return HyperplaneBound(float(held), limit) if held < n else None


def block_cost(k: int, pool: int | None = None) -> float:
    """Return about how many floating-point operations it takes to choose one block of k rows and to check it: 10 p k^2.

    p is the number of rows that it is chosen from.
    """
    return 10.0 * (_POOL * k if pool is None else pool) * k * k


def failure_ceiling(failures: int, n_draws: int, confidence: float) -> float:
    """Return the Clopper-Pearson upper limit for a probability after `failures` of `n_draws` (fewer than all)."""
    return float(betaincinv(failures + 1, n_draws - failures, confidence))


def largest_share(n: int, k: int, probability: float) -> int:
    """Return the largest h, at most n, with C(h, k) / C(n, k) at most `probability`."""
    h = np.arange(k, n + 1)
    logs = gammaln(h + 1.0) - gammaln(h - k + 1.0)  # of the binomial coefficients, but for a common term
    # A margin for the rounding of the logarithms of large factorials makes h larger, never smaller.
    return int(k - 1 + (logs - logs[-1] <= np.log(probability) + 1e-9 * n**0.5).sum())


def _count_failures(
    place: Coordinates, weights: FloatArray | None, rng: np.random.Generator, n_draws: int, limit: float
) -> int:
    """Return how many of `n_draws` random blocks have a reach above `limit`."""
    n, k = place.Y.shape
    shares = None if weights is None else weights / weights.sum()
    batch = max(1, _BATCH // (k * k))
    failures = 0
    for start in range(0, n_draws, batch):
        count = min(batch, n_draws - start)
        if shares is None:
            drawn = _subsets(n, k, count, rng)
        else:
            drawn = rng.choice(n, size=(count, k), p=shares)
        failures += int((place.reach(place.Y[drawn]) > limit).sum())
    return failures


def _subsets(n: int, k: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return `count` uniform k-subsets of n, a row each: Floyd's algorithm, all subsets at once."""
    drawn = np.empty((count, k), dtype=np.intp)
    for j in range(k):
        top = n - k + j
        candidate = rng.integers(0, top + 1, size=count)
        repeated = (drawn[:, :j] == candidate[:, None]).any(axis=1)
        drawn[:, j] = np.where(repeated, top, candidate)
    return drawn
