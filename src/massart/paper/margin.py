r"""Lemma 2.3: how far the right rows outweigh the wrong ones, in every direction.

L1 regression returns w* whatever the labels of the wrong rows are if and only if

.. math:: \sum_{right} |r \cdot x| > \sum_{wrong} |r \cdot x| \quad \text{for all } r \ne 0 , \qquad (\star)

that is, if the largest ratio of the two sums is below 1:

.. math:: \rho = \max_{r \ne 0} \frac{\sum_j |r \cdot z_j|}{\sum_i |r \cdot x_i|}

over wrong rows z and right rows x. The maximum of a convex function over a polytope is hard in general, so two sides of
it are computed.

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
from numpy.typing import ArrayLike

from massart.l1 import l1_regression
from massart.rows import FloatArray, check_matrix


@dataclass(frozen=True, slots=True)
class StructuralMargin:
    """Two sides of the margin of Lemma 2.3's condition.

    Attributes
    ----------
    lower : float
        The margin is at least this. Positive: the condition holds, and w* is the unique L1 minimizer whatever the
        labels of the wrong rows are.
    upper : float
        The margin is at most this: its value at `direction`. Not positive: the condition is violated, and there are
        labels of the wrong rows for which w* is not the unique L1 minimizer.
    direction : (d,) array
        A unit vector, the worst that was found.
    """

    lower: float
    upper: float
    direction: FloatArray


def structural_margin(X_right: ArrayLike, X_wrong: ArrayLike, *, size_limit: int = 20_000) -> StructuralMargin:
    r"""Lemma 2.3 (star): how far the right rows outweigh the wrong ones in the worst direction.

    .. math::
        \mu = \min_{r \ne 0} \frac{\sum_{right} |r \cdot x| - \sum_{wrong} |r \cdot x|}{\sum_{all} |r \cdot x|}
            = \frac{1 - \rho}{1 + \rho}, \qquad
        \rho = \max_{r \ne 0} \frac{\sum_{wrong} |r \cdot x|}{\sum_{right} |r \cdot x|} .

    Parameters
    ----------
    X_right, X_wrong : (n, d) and (m, d) arrays
        The rows that w* fits and the others, as the L1 regression sees them: for Algorithm 1 in its position. The
        wrong rows may be none.
    size_limit : int
        The lower side is sharp, a linear program, up to this product n m of right and wrong rows, and a cheap bound
        beyond. 100 right and 20 wrong rows in 30 dimensions take about two seconds.

    Notes
    -----
    At the paper's size the two sides differ by about .03, in 5 dimensions by less than .01.

    Paper: Lemma 2.3. Tests: test_paper_linear::test_a_positive_lower_side_makes_the_l1_answer_exact, test_paper_linear::test_a_negative_upper_side_lets_an_adversary_defeat_l1

    Examples
    --------
    >>> margin = structural_margin([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0.5, 0.0]])
    >>> round(margin.lower, 6), round(margin.upper, 6)
    (0.6, 0.6)
    """  # noqa: E501 - the line is read by the table of the documentation
    right = check_matrix(X_right, "X_right")
    d = right.shape[1]
    wrong = np.zeros((0, d)) if np.shape(X_wrong)[:1] == (0,) else check_matrix(X_wrong, "X_wrong")
    if wrong.shape[1] != d:
        raise ValueError(f"X_wrong has {wrong.shape[1]} columns but X_right has {d}")
    # Columns of a common size: powers of two, undone for the direction.
    scales = np.ldexp(1.0, np.frexp(np.abs(np.vstack([right, wrong])).max(axis=0))[1])
    below, above = right / scales, wrong / scales
    _, sizes, axes = np.linalg.svd(below)
    rank = int((sizes > 1e-12 * sizes.max(initial=0.0) * max(below.shape)).sum())
    if rank < d:  # some r is orthogonal to every right row
        unseen = np.abs(above @ axes[rank:].T).sum(axis=0)
        r = axes[rank + int(np.argmax(unseen))]
        ratio, bound = (np.inf if unseen.max() > 1e-9 * np.abs(above).sum() else 1.0), np.inf
    elif not above.any():
        ratio, bound, r = 0.0, 0.0, np.eye(d)[0] * scales
    else:
        r, ratio = max((_climb(above, below, start) for start in _starts(above, below)), key=lambda found: found[1])
        bound = max(_bound(above, below, size_limit), ratio)
    lower, upper = ((1 - rho) / (1 + rho) if np.isfinite(rho) else -1.0 for rho in (bound, ratio))
    r = r / scales
    return StructuralMargin(lower, upper, r / np.linalg.norm(r))


def _starts(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return directions in which rows above are longer than those below: by second moments, and by single rows."""
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
    from scipy.optimize import linprog  # slow to import

    answer = linprog(cost, A_ub=used_at_most, b_ub=np.zeros(n), A_eq=equal, b_eq=above.ravel(), method="highs")
    if answer.x is None:
        return bound
    combination = (answer.x[: m * n] - answer.x[m * n : 2 * m * n]).reshape(m, n)
    combination += (above - combination @ below) @ inverse  # what the solver's tolerance left open
    return min(bound, float(np.abs(combination).sum(axis=0).max()) * (1 + 1e-9))
