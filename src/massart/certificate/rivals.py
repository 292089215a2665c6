r"""Whether another formula far from a given one fits many rows, refuted by random tuples of rows.

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

from massart.certificate.heavy_slabs import HITS, distinct, log_chance_inside, number_of_tuples, whitened
from massart.rows import BoolArray, FloatArray

MOST_TUPLES, ENOUGH_TUPLES = 100_000, 15_000
"""Tuples that are drawn at most; and up to which they may be larger than they need to be, to be better conditioned."""

LARGEST_TUPLE = 3
"""Rows of a tuple, for each coefficient, at most."""

_SAMPLE, _BATCH, _SINGULAR = 1_500, 2_000, 1e-8


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
    both = whitened(X if on is None else np.concatenate([X, on]))
    if size is None or both is None:
        return math.inf
    Y, where = (both, both) if on is None else (both[: len(X)], both[len(X) :])
    chance = math.exp(log_chance_inside(m, n, size))
    sample = rng.permutation(n)[:_SAMPLE]
    from scipy.stats import hypergeom  # slow to import

    least = int(hypergeom.ppf(failure, n, m, len(sample)))
    rows, tuples = places[sample], number_of_tuples(chance, failure)
    farthest: list[float] = []
    for start in range(0, tuples, _BATCH):
        drawn = places[distinct(n, min(_BATCH, tuples - start), size, rng)]
        D, r, t = Y[drawn], residuals[drawn], tau[drawn]
        G = np.swapaxes(D, 1, 2) @ D
        smallest, trace = np.linalg.eigvalsh(G)[:, 0], np.trace(G, axis1=1, axis2=2)
        singular = ~(smallest > _SINGULAR * trace)
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

    if m <= p or tuples(p) > MOST_TUPLES:
        return None
    return max((size for size in range(p, LARGEST_TUPLE * p + 1) if tuples(size) <= ENOUGH_TUPLES), default=p)
