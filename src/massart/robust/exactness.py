"""Whether rows are reproduced to rounding, and the least-squares solution of those that are."""

from __future__ import annotations

import numpy as np

from massart.rows import BoolArray, FloatArray

ROUNDING = 64.0
"""A residual of so many units of rounding, of the size of what was added up, counts as zero."""

_NEARLY = 1e-7  # residuals of this relative size become rounding once the rows are solved again, or they are noise


def size_of_terms(X: FloatArray, y: FloatArray, coef: FloatArray) -> FloatArray:
    r"""Return the size of what is added up in each residual, a row each.

    It is :math:`|y_i| + m \sum_j |x_{ij}| / c_j` with :math:`c_j = \max_i |x_{ij}|` and :math:`m = \max_j c_j |w_j|`:
    least squares errs by :math:`\epsilon m / c_j` in :math:`w_j`, also where :math:`w_j` itself is 0.
    """
    columns = np.abs(X).max(axis=0)
    columns[columns == 0.0] = 1.0
    return np.asarray(np.abs(y) + np.max(columns * np.abs(coef), initial=0.0) * (np.abs(X) / columns).sum(axis=1))


def agreeing_rows(X: FloatArray, y: FloatArray, coef: FloatArray, precision: float) -> BoolArray:
    """Return the rows that `coef` reproduces to rounding, of numbers of a `precision`."""
    return np.asarray(np.abs(y - X @ coef) <= ROUNDING * precision * size_of_terms(X, y, coef))


def solve_exactly(X: FloatArray, y: FloatArray, coef: FloatArray, precision: float) -> tuple[FloatArray, BoolArray]:
    """Solve the rows that `coef` nearly fits by least squares; return the solution and the rows it agrees with."""
    near = np.abs(y - X @ coef) <= max(_NEARLY, ROUNDING * precision) * size_of_terms(X, y, coef)
    if not near.any():
        return coef, near
    polished = np.asarray(np.linalg.lstsq(X[near], y[near], rcond=None)[0])
    return polished, agreeing_rows(X, y, polished, precision)
