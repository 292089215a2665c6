"""The design matrix as the solvers see it: a few verbs, and no copy of the caller's numbers.

Write the caller's matrix as :math:`X_0` (n, p). The solvers work with

.. math:: X = X_0 \\, S \\, E, \\qquad S = \\operatorname{diag}(2^{e_1}, \\dots, 2^{e_p}),

where S brings every column near 1 (powers of two, so that scaling rounds nothing) and E picks d independent columns.
The product is never formed: S and E act on the short side of each verb, so memory beyond :math:`X_0` is one block of
rows and a few p x p arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from massart.rows import FloatArray, block_rows, check_matrix, row_blocks

IntArray = NDArray[np.intp]

SAFE_EXPONENT = 100
"""Columns within 2**-100 .. 2**100 are squared without overflow or loss, so their scale can be applied afterwards."""


@dataclass(frozen=True, slots=True)
class Design:
    """An (n, d) matrix :math:`X = X_0 S E`, dense or sparse, behind the verbs the solvers need.

    Attributes
    ----------
    matrix : array or CSR matrix of shape (n, p)
        The caller's numbers.
    scale : array of shape (p,)
        The diagonal of S.
    lengths : array of shape (d,)
        The Euclidean lengths of the columns of X, or of the larger design it was restricted from.
    columns : array of shape (d,) or None
        The columns that E picks; None stands for all.
    """

    matrix: Any
    scale: FloatArray
    lengths: FloatArray
    columns: IntArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self.matrix.shape
        return n, p if self.columns is None else self.columns.size

    def times(self, w: FloatArray) -> FloatArray:
        """Return :math:`X w`, one number a row."""
        product: FloatArray = self.matrix @ self.original(w)
        return product

    def transposed_times(self, a: FloatArray) -> FloatArray:
        """Return :math:`X^\\top a`."""
        product: FloatArray = (self.matrix.T @ a) * self.scale
        return product if self.columns is None else product[self.columns]

    def sizes(self, w: FloatArray) -> FloatArray:
        """Return :math:`\\sum_j |x_{ij} w_j|` for every row: the number that rounding errors of `times` scale with."""
        size = np.abs(self.original(w))
        if sp.issparse(self.matrix):
            product: FloatArray = abs(self.matrix) @ size
            return product
        n, p = self.matrix.shape
        sizes = np.empty(n)
        buffer = np.empty((min(n, block_rows(p)), p))
        for block in row_blocks(n, p):
            magnitude = np.abs(self.matrix[block], out=buffer[: block.stop - block.start])
            np.dot(magnitude, size, out=sizes[block])
        return sizes

    def gram(self, q: FloatArray) -> FloatArray:
        """Return :math:`X^\\top \\operatorname{diag}(q) X` for q >= 0; rows with q = 0 cost next to nothing."""
        # Squares of extreme columns overflow unless they are scaled first, which costs another sweep over each block.
        scale_first = bool((np.abs(np.frexp(self.scale)[1]) > SAFE_EXPONENT).any())
        gram = self._sparse_gram(q, scale_first) if sp.issparse(self.matrix) else self._dense_gram(q, scale_first)
        if not scale_first:
            gram *= self.scale[:, None] * self.scale
        return gram if self.columns is None else gram[np.ix_(self.columns, self.columns)]

    def _dense_gram(self, q: FloatArray, scale_first: bool) -> FloatArray:
        n, p = self.matrix.shape
        root = np.sqrt(q)
        rows = np.flatnonzero(root)
        gather = rows.size < 0.8 * n
        total = np.zeros((p, p))
        buffer = np.empty((min(n, block_rows(p)), p))
        for block in row_blocks(rows.size if gather else n, p):
            part = buffer[: block.stop - block.start]
            if gather:
                chosen = rows[block]
                np.take(self.matrix, chosen, axis=0, out=part, mode="clip")
                part *= root[chosen, None]
            else:
                np.multiply(self.matrix[block], root[block, None], out=part)
            if scale_first:
                part *= self.scale
            total += part.T @ part
        return total

    def _sparse_gram(self, q: FloatArray, scale_first: bool) -> FloatArray:
        matrix = self.matrix
        data = matrix.data * np.repeat(np.sqrt(q), np.diff(matrix.indptr))
        if scale_first:
            data *= self.scale[matrix.indices]
        scaled = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
        gram: FloatArray = (scaled.T @ scaled).toarray()
        return gram

    def rows(self, index: IntArray | slice) -> FloatArray:
        """Return the rows `index` of X as a dense array: for a basis, a small pool or a block only."""
        part = self.matrix[index]
        dense: FloatArray = part.toarray() if sp.issparse(part) else part
        dense = dense * self.scale
        return dense if self.columns is None else dense[:, self.columns]

    def restricted(self, index: IntArray) -> Design:
        """Return the design of the rows `index` (copied: they are few)."""
        return replace(self, matrix=self.matrix[index])

    def original(self, w: FloatArray) -> FloatArray:
        """Return :math:`S E w`, the coefficients of the caller's columns."""
        if self.columns is None:
            return self.scale * w
        coefficients = np.zeros(self.scale.size)
        coefficients[self.columns] = w
        coefficients *= self.scale
        return coefficients


def check_design(X: Any) -> Any:
    """Return `X` as a float64 matrix, dense or CSR, that the verbs can run on without hidden copies.

    Raises
    ------
    ValueError
        Naming X and what is wrong with it.
    """
    if not sp.issparse(X):
        dense = check_matrix(X)
        # BLAS needs one unit stride; anything else would be copied at every product.
        return dense if 8 in dense.strides else np.ascontiguousarray(dense)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be a matrix with at least one row and one column, got shape {X.shape}")
    csr = sp.csr_array(X)
    if csr.nnz:
        # The checks of dense values apply to the stored ones; only the place has to be looked up.
        values = np.asarray(csr.data)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            entry = int(np.flatnonzero(~np.isfinite(values))[0])
            row = int(np.searchsorted(csr.indptr, entry, side="right")) - 1
            raise ValueError(
                f"X must be finite, got {values[entry]} at row {row}, column {int(csr.indices[entry])}"
            )
        data = check_matrix(values[None, :])[0]
        csr = sp.csr_array((data, csr.indices, csr.indptr), shape=csr.shape)
    else:
        csr = csr.astype(np.float64)
    return csr


def power_of_two(magnitude: FloatArray) -> FloatArray:
    """Return the power of two that brings each magnitude into [1/2, 1), and 1 for 0."""
    exponent = np.where(magnitude > 0, -np.frexp(magnitude)[1], 0)
    # The scale of a subnormal number must stay finite.
    scale: FloatArray = np.ldexp(1.0, np.clip(exponent, -1020, 1020))
    return scale
