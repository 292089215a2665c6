r"""Rank: which columns are independent, and the minimum-norm coefficients among equals.

Let the columns c of X (columns scaled to length 1) be independent and the others depend on them, :math:`X_o = X_c T`.
Pivoted Cholesky elimination of the Gram matrix finds c and T. Since squaring X hides condition numbers above 1e8, its
verdict counts only if every pivot is large and :math:`X_o - X_c T`, recomputed from X, vanishes. In doubt the
triangular factor of X itself decides, gathered block by block. Either way memory is O(p^2).

All minimisers have the same fit :math:`X w`. Since X and :math:`M = [I, T]` have the same row space, the minimiser of
smallest norm is the projection of any of them on the rows of M.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sla

from massart.l1.design import Design
from massart.l1.matrix import IntArray, Matrix
from massart.rows import FloatArray
from massart.rows.scaling import power_of_two, scaled

CLEAR_PIVOT = 1e-6
"""A pivot of the correlation matrix above this is beyond the doubt that squaring X adds."""


@dataclass(frozen=True, slots=True)
class Structure:
    """All that the solvers need to know of X alone, shared by every right-hand side.

    Attributes
    ----------
    design : Design
        X reduced to independent columns.
    all_columns : Design
        X with all of its columns, for the final proof.
    dependence : array of shape (d, p - d)
        :math:`X_{0,o} = X_{0,c}` `dependence`, in the caller's units, with o in ascending order.
    """

    design: Design
    all_columns: Design
    dependence: FloatArray

    @property
    def rank(self) -> int:
        """The rank of X."""
        return self.design.shape[1]

    def minimum_norm(self, w: FloatArray) -> FloatArray:
        """Return the smallest coefficients of the caller's columns with the fit of w."""
        coef = self.design.original(w)
        if self.design.columns is None or not coef.any():
            return coef
        p, columns = coef.size, self.design.columns
        others = np.setdiff1d(np.arange(p), columns)
        rank = columns.size
        if 2 * rank <= p:  # project on the row space
            span = np.zeros((p, rank))
            span[columns, np.arange(rank)] = 1.0
            span[others] = self.dependence.T
        else:  # or off the null space, whichever is smaller
            span = np.zeros((p, p - rank))
            span[others, np.arange(p - rank)] = -1.0
            span[columns] = self.dependence
        Q = sla.qr(scaled(span, 0)[0], mode="economic", check_finite=False)[0]
        unit = power_of_two(np.abs(coef).max())
        wanted = coef[columns] / unit
        smallest = np.zeros(p)
        missing = wanted
        # M w must stay what it is. Where columns differ by many orders of magnitude one projection rounds too coarsely
        # for the large ones; projecting what is missing mends that.
        for _ in range(3):
            step = np.zeros(p)
            step[columns] = missing
            part = Q @ (Q.T @ step)
            smallest += part if 2 * rank <= p else step - part
            fitted = smallest[columns] + self.dependence.astype(np.longdouble) @ smallest[others].astype(np.longdouble)
            missing = (wanted - fitted).astype(np.float64)
        return smallest * unit


def structure_of(matrix: Matrix) -> Structure:
    """Return the scales, the lengths, the independent columns and the rank of a matrix."""
    n, p = matrix.shape
    scale = 1.0 / power_of_two(matrix.column_maxima())
    design = Design(matrix, scale, np.zeros(p))
    gram = design.gram(np.ones(n))
    lengths = np.sqrt(np.diag(gram))
    design = replace(design, lengths=lengths)
    if not lengths.any():
        return _reduced(design, np.zeros(0, dtype=np.intp), np.zeros((0, p)))
    unit = 1.0 / np.where(lengths > 0, lengths, 1.0)
    triangle, order, rank, _ = sla.lapack.dpstrf(gram * unit * unit[:, None], tol=CLEAR_PIVOT, lower=0)
    if rank == p:
        return Structure(design, design, np.zeros((p, 0)))
    order = order.astype(np.intp) - 1
    T = sla.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:], check_finite=False)
    unit = design.scale * unit
    T, error = _refine(replace(design, scale=unit), order[:rank], order[rank:], triangle[:rank, :rank], T)
    tolerance = max(n, p) * np.finfo(float).eps
    if error > tolerance:
        R = _triangular_factor(replace(design, scale=unit))
        R, order = sla.qr(R, mode="r", pivoting=True, overwrite_a=True, check_finite=False)
        pivots = np.abs(np.diag(R))
        rank = int(np.count_nonzero(pivots > tolerance * pivots[0]))
        if rank == p:
            return Structure(design, design, np.zeros((p, 0)))
        T = sla.solve_triangular(R[:rank, :rank], R[:rank, rank:], check_finite=False)
    columns, others = order[:rank].astype(np.intp), order[rank:]
    T = T * unit[columns][:, None] / unit[others]
    return _reduced(design, columns, T[:, np.argsort(others)])


def _reduced(design: Design, columns: IntArray, dependence: FloatArray) -> Structure:
    independent = replace(design, lengths=design.lengths[columns], columns=columns)
    return Structure(independent, design, dependence)


def _refine(
    design: Design, columns: IntArray, others: IntArray, triangle: FloatArray, T: FloatArray
) -> tuple[FloatArray, float]:
    """Return T improved by one step of iterative refinement, and the largest length of a column of X_o - X_c T."""
    for final in (False, True):
        total = design.reduce(_Remainder(columns, others, T))
        if not final:
            T = T + sla.cho_solve((triangle, False), total[:-1], check_finite=False)
    return T, float(np.sqrt(total[-1].max()))


@dataclass(frozen=True, slots=True)
class _Remainder:
    """What T leaves of the other columns: its products with the columns, and below them its squared lengths."""

    columns: IntArray
    others: IntArray
    T: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        remainder = rows[:, self.others] - rows[:, self.columns] @ self.T
        return np.vstack([rows[:, self.columns].T @ remainder, np.einsum("ij,ij->j", remainder, remainder)])


def _triangular_factor(design: Design) -> FloatArray:
    """Return R of :math:`X = Q R`, by QR of [R; next piece]."""
    p = design.shape[1]
    R = design.reduce(_triangle).R
    return np.vstack([R, np.zeros((p - R.shape[0], p))])


@dataclass(frozen=True, slots=True)
class _Triangle:
    """R of a QR factorization; that of more rows is the sum."""

    R: FloatArray

    def __add__(self, other: _Triangle) -> _Triangle:
        return _triangle(np.vstack([self.R, other.R]))


def _triangle(rows: FloatArray) -> _Triangle:
    R: FloatArray = sla.qr(rows, mode="r", check_finite=False)[0]
    return _Triangle(R[: rows.shape[1]])
