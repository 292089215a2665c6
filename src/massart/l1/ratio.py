r"""The ratio of two sums of absolute values, in the worst direction: two sides of its maximum.

.. math:: \rho = \max_{r \ne 0} \frac{\sum_j |r \cdot z_j|}{\sum_i |r \cdot x_i|}

The maximum of a convex function over a polytope is hard in general.

*From below*: any direction. From a start take :math:`g = \sum_j \mathrm{sgn}(r \cdot z_j) z_j` and the r with
:math:`g \cdot r = 1` of the least :math:`\sum_i |r \cdot x_i|`, an L1 regression, until the ratio stops growing.

*From above*: write every z as a combination of rows x, :math:`z_j = \sum_i \Lambda_{ji} x_i`. Then
:math:`\sum_j |r \cdot z_j| \le \sum_i |r \cdot x_i| \sum_j |\Lambda_{ji}|`, so that
:math:`\rho \le \max_i \sum_j |\Lambda_{ji}|`. The best :math:`\Lambda` is a linear program; that of least squares is
cheap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from massart.l1.regression import l1_regression
from massart.rows import FloatArray


@dataclass(frozen=True, slots=True)
class LargestRatio:
    """Two sides of the largest ratio.

    Attributes
    ----------
    ratio : float
        The ratio at `direction`, at most the largest; infinite where only the rows above see it, 1 where none do.
    bound : float
        The largest ratio is at most this; infinite where nothing is known.
    direction : (d,) array
        A unit vector.
    """

    ratio: float
    bound: float
    direction: FloatArray


def largest_ratio(above: FloatArray, below: FloatArray, *, size_limit: int) -> LargestRatio:
    """Return two sides of the largest ratio of ``sum |r.z|`` over rows `above` to that over rows `below`.

    Parameters
    ----------
    above, below : (m, d) and (n, d) arrays
        m may be 0.
    size_limit : int
        Up to this product n m the bound is a linear program.

    Examples
    --------
    >>> found = largest_ratio(np.array([[0.5, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), size_limit=100)
    >>> round(found.ratio, 6), round(found.bound, 6)
    (0.25, 0.25)
    """
    d = below.shape[1]
    # Columns of a common size: powers of two, undone for the direction.
    scales = np.ldexp(1.0, np.frexp(np.abs(np.vstack([below, above])).max(axis=0))[1])
    below, above = below / scales, above / scales
    _, sizes, axes = np.linalg.svd(below)
    rank = int((sizes > 1e-12 * sizes.max(initial=0.0) * max(below.shape)).sum())
    if rank < d:  # some r is orthogonal to every row below
        unseen = np.abs(above @ axes[rank:].T).sum(axis=0)
        r = axes[rank + int(np.argmax(unseen))] / scales
        seen = unseen.max() > 1e-9 * np.abs(above).sum()
        return LargestRatio(np.inf if seen else 1.0, np.inf, r / np.linalg.norm(r))
    if not above.any():
        return LargestRatio(0.0, 0.0, np.eye(d)[0])
    r, ratio = max((_climb(above, below, start) for start in _starts(above, below)), key=lambda found: found[1])
    r = r / scales
    return LargestRatio(ratio, max(_bound(above, below, size_limit), ratio), r / np.linalg.norm(r))


def _starts(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return directions in which rows above are long beside those below: by second moments, and by single rows."""
    root = np.linalg.qr(below)[1]
    relative = np.linalg.solve(root.T, above.T).T
    longest = relative[np.argsort(-np.linalg.norm(relative, axis=1))[:2]]
    principal = np.linalg.svd(relative, full_matrices=False)[2][:4]
    return np.asarray(np.linalg.solve(root, np.vstack([principal, longest]).T).T)


def _climb(above: FloatArray, below: FloatArray, r: FloatArray) -> tuple[FloatArray, float]:
    """Raise the ratio from r by convex-concave steps; return where it stops growing, and the ratio there."""

    def ratio(r: FloatArray) -> float:
        return float(np.abs(above @ r).sum() / np.abs(below @ r).sum())

    while True:
        g = np.where(above @ r >= 0, 1.0, -1.0) @ above  # the sum above is at least g.r, with equality here
        if g.size == 1 or not g.any():
            return r, ratio(r)
        N = np.linalg.qr(g[:, None], mode="complete")[0][:, 1:]
        new = g / (g @ g)
        new = new + N @ l1_regression(below @ N, -(below @ new)).coef
        if ratio(new) <= ratio(r) * (1 + 1e-10):
            return r, ratio(r)
        r = new


def _bound(above: FloatArray, below: FloatArray, size_limit: int) -> float:
    """Return a bound of the ratio in all directions: no row below is used more often in all rows above."""
    n, m, d = len(below), len(above), below.shape[1]
    inverse = np.linalg.pinv(below)
    used = np.abs(above @ inverse)
    bound = float(used.sum(axis=0).max())
    if n * m > size_limit:
        return bound
    # min t, Lambda = P - N: sum_i Lambda_ji x_i = x_j for each row above, sum_j (P + N)_ji <= t for each row below
    combine = sp.kron(sp.identity(m), below.T)
    equal = sp.hstack([combine, -combine, sp.csr_array((m * d, 1))]).tocsr()
    use = sp.kron(np.ones((1, m)), sp.identity(n))
    used_at_most = sp.hstack([use, use, -np.ones((n, 1))]).tocsr()
    cost = np.append(np.zeros(2 * m * n), 1.0)
    answer = linprog(cost, A_ub=used_at_most, b_ub=np.zeros(n), A_eq=equal, b_eq=above.ravel(), method="highs")
    if answer.x is None:
        return bound
    combination = (answer.x[: m * n] - answer.x[m * n : 2 * m * n]).reshape(m, n)
    combination += (above - combination @ below) @ inverse  # what the solver's tolerance left open
    return min(bound, float(np.abs(combination).sum(axis=0).max()) * (1 + 1e-9))
