r"""A bound on the rows of one hyperplane from fourth moments: deterministic, and free of any assumption.

Scaling rows and mapping R^d to itself keep which inner products vanish. So let z be the agreeing rows in
radial-isotropic position, whitened to :math:`E zz^\top = I` (E is the weighted mean over the rows). For a unit r
Cauchy and Schwarz give the share of rows off the hyperplane,

.. math::
    P(r \cdot z \ne 0) \ge \frac{(E (r \cdot z)^2)^2}{E (r \cdot z)^4} ,

and the fourth moment is at most that of all quadratic forms: with :math:`T = zz^\top - (|z|^2/d) I` and
:math:`(r \cdot z)^2 = |z|^2/d + \langle T, rr^\top - I/d \rangle`, where the last matrix has the squared norm 1 - 1/d,

.. math::
    E (r \cdot z)^4 \le m_4 = E \frac{|z|^4}{d^2} + 2 \lambda_{\max} E \Big[\frac{|z|^2}{d} T\Big]
    + \Big(1 - \frac1d\Big) \lambda_{\max} E [\mathrm{vec}\, T \, \mathrm{vec}\, T^\top] .

Gaussian rows have :math:`m_4` near 3: a third of them is off any hyperplane, in any dimension. No rows have less than
:math:`3d/(d+2)`, the mean of :math:`E (r \cdot z)^4` over the sphere.
"""

from __future__ import annotations

import numpy as np

from massart.certificate.span import SLAB_REACH, HyperplaneBound, unit_rows
from massart.isotropy import Status, radial_isotropy
from massart.rows import EPS, FloatArray, row_blocks

_GAMMA = 1e-3  # how close to radial isotropy; the bound holds for any map
_SLAB = 0.1  # half width of the slab, in whitened units, that a tolerance may take


def fourth_moment_bound(
    rows: FloatArray, *, weights: FloatArray | None = None, limit: float = SLAB_REACH, budget: float = 5e10
) -> HyperplaneBound | None:
    r"""Bound the rows of one hyperplane by the fourth moments of the rows in radial-isotropic position.

    Proof. See the module; what follows is about rounding and slabs. The computed :math:`\tilde z` differ from a scaled
    and mapped row by at most :math:`\delta`, bounded from the product that computes them; so a row of the hyperplane
    has :math:`|r \cdot \tilde z| \le \delta`, and Paley and Zygmund's inequality,

    .. math:: P(|r \cdot z| > \theta) \ge \frac{(E (r \cdot z)^2 - \theta^2)^2}{E (r \cdot z)^4} ,

    takes the place of Cauchy and Schwarz's, with :math:`\theta = 0.1`, so that rows near a hyperplane count as lying in
    it, too. The moments are those of :math:`\tilde z`, with margins for their summation. Let
    :math:`\tilde z_i = s_i W^\top x_i` and :math:`r = W \tilde r`. If :math:`|r \cdot x_i| \le 2t` and
    :math:`|\tilde r| > 2t \max s / (\theta - \delta)`, then :math:`|\tilde r \cdot \tilde z_i| < \theta |\tilde r|`;
    and a smaller :math:`\tilde r` is at most
    :math:`2t \, (\max s / (\theta - \delta)) \max_i (|\tilde z_i| + \delta) / s_i` on every row. The shortest rows,
    of the largest s, count as lying in the slab where they would make that more than a useful reach.

    Parameters
    ----------
    rows : (n, d) array
        Non-zero rows that span R^d.
    weights : (n,) array, optional
    limit : float
        The largest reach that is of use.
    budget : float
        Floating-point operations to spend, about.

    Returns
    -------
    HyperplaneBound or None
        None when the rows do not span, the budget does not suffice, or nothing is bounded.
    """
    n, d = rows.shape
    if fourth_moment_cost(n, d) > budget or n < d:
        return None
    units, scales = unit_rows(rows)
    c = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    iso = radial_isotropy(units, _GAMMA, sample_weight=weights)
    W = iso.subspace @ iso.matrix.T if iso.status is Status.WHOLE else np.eye(d)
    s = 1.0 / np.linalg.norm(units @ W, axis=1)
    whitening = whiten((units @ W) * s[:, None], c)
    if whitening is None:
        return None
    W = W @ whitening
    Z = (units @ W) * s[:, None]
    delta = float((np.linalg.norm(np.abs(units) @ np.abs(W), axis=1) * s).max()) * (d + 8) * EPS
    if not delta < _SLAB:
        return None
    s = s / np.linalg.norm(rows / scales, axis=1)
    longest = float(((np.linalg.norm(Z, axis=1) + delta) / s).max()) / (_SLAB - delta)
    cap = min(float(s.max()), limit / longest)
    short = float(c[s > cap].sum())
    reach = cap * longest
    second, fourth = moment_bounds(Z, c)
    share = max(second - _SLAB**2, 0.0) ** 2 / fourth - short
    if not share > 0:
        return None
    if weights is None:
        return HyperplaneBound(float(np.floor((1 - share) * n + 1e-6)), reach)
    return HyperplaneBound(float((1 - share) * weights.sum()), reach)


def fourth_moment_cost(n: int, d: int) -> float:
    """Return about how many floating-point operations the bound takes: sums of D x D numbers and their eigenvalues.

    D is the number d (d + 1) / 2 of symmetric matrices or, where there are no more rows, n.
    """
    D = d * (d + 1) // 2
    return float(n) * D * D + 4.0 * float(D) ** 3 if n > D else float(n) * n * d + 4.0 * float(n) ** 3


def largest_off_share(d: int) -> float:
    """Return the largest share of rows that the bound can ever place off a hyperplane: (d + 2) / (3 d)."""
    return (d + 2) / (3 * d)


def whiten(Z: FloatArray, c: FloatArray) -> FloatArray | None:
    """Return B such that the rows of ``Z @ B`` have the identity as their second moment; None if they do not span."""
    eigenvalues, axes = np.linalg.eigh((Z * c[:, None]).T @ Z)
    if not eigenvalues[0] > 1e-10 * eigenvalues[-1]:
        return None
    return np.asarray(axes / np.sqrt(eigenvalues) @ axes.T)


def moment_bounds(Z: FloatArray, c: FloatArray) -> tuple[float, float]:
    r"""Return a lower bound on E (r.z)^2 and an upper bound on E (r.z)^4 over all unit r; the weights `c` sum to one.

    With D = d (d + 1) / 2, rounding takes :math:`16 (n + D) \epsilon` of :math:`E |z|^2` from the one, and adds four
    times that share of :math:`E |z|^4` to the other.
    """
    n, d = Z.shape
    squares = np.einsum("ij,ij->i", Z, Z) / d
    mean = float(c @ squares**2)  # E |z|^4 / d^2
    D = d * (d + 1) // 2
    rounding = 16 * (n + D) * EPS
    second = float(np.linalg.eigvalsh((Z * c[:, None]).T @ Z)[0]) - rounding * float(c @ squares) * d
    cross = (Z * (c * squares)[:, None]).T @ Z - mean * np.eye(d)
    quadratic = _kernel(Z, c, squares) if n <= D else _covariance(Z, c, squares)
    top = float(np.linalg.eigvalsh(quadratic)[-1])
    mixed = float(np.linalg.eigvalsh(cross)[-1])
    fourth = mean + 2 * mixed + (1 - 1 / d) * top + 4 * rounding * mean * d * d
    return second, fourth


def _kernel(Z: FloatArray, c: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the matrix of <T_i, T_j>, (n, n), with the same largest eigenvalue as the second moment of T."""
    d = Z.shape[1]
    roots = np.sqrt(c)
    inner = Z @ Z.T
    return np.asarray((inner**2 - d * np.outer(squares, squares)) * np.outer(roots, roots))


def _covariance(Z: FloatArray, c: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the second moment of T in coordinates of the symmetric matrices, (D, D)."""
    n, d = Z.shape
    i, j = np.triu_indices(d)
    factors = np.where(i == j, 1.0, np.sqrt(2.0))
    total = np.zeros((i.size, i.size))
    for block in row_blocks(n, i.size):
        T = Z[block][:, i] * Z[block][:, j] * factors
        T[:, i == j] -= squares[block][:, None]
        T *= np.sqrt(c[block])[:, None]
        total += T.T @ T
    return total
