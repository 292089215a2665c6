r"""Whitening rows as they are: a map T with :math:`\sum_i c_i T^\top x_i x_i^\top T = I`, and each row's ratio.

The ratio of a row, :math:`x^\top M^+ x` with :math:`M = \sum_i c_i x_i x_i^\top`, is the largest
:math:`(v \cdot x)^2 / v^\top M v` over all directions v.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from massart.rows import FloatArray
from massart.rows.scaling import exponents

_SAFE_MOMENTS = 1e-6  # smallest ratio of eigenvalues at which second moments are as good as the rows


def whiten(rows: FloatArray, weights: FloatArray, tol: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the span of the rows (orthonormal columns), a map that whitens them, (d, k), and their ratios.

    `tol` is the relative size of a singular value of the unit rows below which a direction holds none of them.
    """
    n, d = rows.shape
    if n == 0:
        return np.zeros((d, 0)), np.zeros((d, 0)), np.zeros(0)
    M = (rows * weights[:, None]).T @ rows
    lengths = np.sqrt(np.diag(M))
    if lengths.all():
        values, axes = np.linalg.eigh(M / lengths / lengths[:, None])
        if values[0] > _SAFE_MOMENTS * values[-1]:
            T = axes / np.sqrt(values) / lengths[:, None]
            images = rows @ T
            return np.eye(d), T, np.einsum("ij,ij->i", images, images)
    # Squares would cost digits. Ranks are decided on unit rows, where a row that dwarfs the others hides none of them.
    units = np.ldexp(rows, -exponents(rows, axis=1)[:, None])
    units /= np.linalg.norm(units, axis=1)[:, None]
    _, sizes, axes = np.linalg.svd(np.linalg.qr(units, mode="r"))
    rank = int((sizes > tol * sizes[0]).sum())
    basis = np.eye(d) if rank == d else axes[:rank].T
    # Large rows first and pivoted columns: elimination that is stable row by row (Cox and Higham, 1998).
    order = np.argsort(-np.abs(rows).max(axis=1), kind="stable")
    weighted = (rows[order] @ basis) * np.sqrt(weights[order])[:, None]
    Q, R, pivots = sla.qr(weighted, mode="economic", pivoting=True, check_finite=False)
    inverse = np.zeros((rank, rank))
    inverse[pivots] = sla.solve_triangular(R[:rank], np.eye(rank), check_finite=False)
    ratios = np.empty(n)
    # From Q, not from rows times the inverse: for a row that dwarfs the others that product is rounding.
    ratios[order] = np.einsum("ij,ij->i", Q, Q) / weights[order]
    return basis, basis @ inverse, ratios
