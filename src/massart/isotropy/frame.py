"""Coordinates in which rows are handed to the solvers.

A frame is a subspace V of R^d with an orthonormal basis, the rows that lie in V, and their coordinates ``C = X @ V``.
It starts as all non-zero rows in R^d itself, without a copy, and shrinks when a heavy subspace is found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from massart.isotropy.moments import typical_sizes, vanishing
from massart.rows import BoolArray, FloatArray
from massart.rows.scaling import exponents

SAFE_EXPONENT = 400
"""Squares of numbers up to two to this power, summed over any number of columns, stay finite in float64."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of X in a subspace V, in coordinates.

    Attributes
    ----------
    X : (n, d) array
        All rows, as given or scaled row by row with powers of two.
    members : (n,) boolean array
        Rows in V, without zero rows and rows of weight zero.
    V : (d, k) array or None
        Orthonormal basis; None for R^d in its own coordinates.
    C : (number of members, k) array
        Coordinates of the members.
    weights : (number of members,) array or None
    scales : (k,) array
        A typical size of each coordinate of C, a power of two.
    column_scales : (d,) array
        The same for the columns of X.
    """

    X: FloatArray
    members: BoolArray
    V: FloatArray | None
    C: FloatArray
    weights: FloatArray | None
    scales: FloatArray
    column_scales: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and dimension."""
        return self.C.shape

    @property
    def shares(self) -> FloatArray:
        """Weights of the rows, divided by their sum."""
        if self.weights is None:
            return np.full(len(self.C), 1 / len(self.C))
        return np.asarray(self.weights / self.weights.sum())

    @property
    def basis(self) -> FloatArray:
        """V as a matrix."""
        return np.eye(self.C.shape[1]) if self.V is None else self.V

    def equilibrated(self) -> FloatArray:
        """Return a map of C to coordinates in which all columns of X have size one, up to a rotation: (k, k).

        Distances are measured and ranks decided there, whatever the frame: X is rounded in its own columns.
        """
        if self.V is None:
            return np.diag(1 / self.scales)
        return np.asarray(np.linalg.qr(self.V / self.column_scales[:, None])[1].T)

    def magnification(self, T: FloatArray) -> float:
        """Return by how much `T` magnifies the rounding of X: the condition number from equilibrated coordinates."""
        return float(np.linalg.cond(np.linalg.solve(self.equilibrated(), T)))

    def condition(self, T: FloatArray) -> float:
        """Return the condition number of `T` that the rounding of its entries feels: scales do not count."""
        return float(np.linalg.cond(self.scales[:, None] * T))

    def restrict(self, B: FloatArray, inside: BoolArray) -> Frame:
        """Return the frame of the rows `inside`, in the subspace spanned by the columns of `B` in these coordinates."""
        members = self.members.copy()
        members[members] = inside
        V = np.linalg.qr(B)[0] if self.V is None else np.linalg.qr(self.V @ B)[0]
        weights = None if self.weights is None else self.weights[inside]
        return self._in_basis(V, members, weights)

    def drop_coordinates(self, light: BoolArray) -> Frame:
        """Return the frame of the rows whose `light` coordinates are all zero, without those coordinates."""
        inside = vanishing(self.C, light)
        members = self.members.copy()
        members[members] = inside
        weights = None if self.weights is None else self.weights[inside]
        V = self.basis[:, ~light]
        return Frame(
            self.X, members, V, self.C[np.ix_(inside, ~light)], weights, self.scales[~light], self.column_scales
        )

    def rotate(self, T: FloatArray) -> tuple[Frame, FloatArray]:
        """Return the frame turned to the principal axes of the map `T`, and these axes; T becomes ``axes.T @ T``.

        Rounding the entries of a map of condition number K costs a relative 2e-16 K in the images. In its own axes
        the map is diagonal and costs nothing; what is left is the rounding of the coordinates.
        """
        axes, _, _ = np.linalg.svd(T)
        V = axes if self.V is None else self.V @ axes
        return self._in_basis(V, self.members, self.weights), axes

    def _in_basis(self, V: FloatArray, members: BoolArray, weights: FloatArray | None) -> Frame:
        C = self._coordinates(V, members)
        return replace(self, members=members, V=V, C=C, weights=weights, scales=typical_sizes(C))

    def _coordinates(self, V: FloatArray, members: BoolArray) -> FloatArray:
        # One product of all rows: blocks may sum in another order, and these bits are what a caller recomputes.
        return np.asarray(self.X[members] @ V)


def frame_of_rows(X: FloatArray, weights: FloatArray | None) -> Frame:
    """Return the frame of all rows that are not zero and have a positive weight, in R^d."""
    members = np.asarray(X.any(axis=1))
    if weights is not None:
        weights = np.ldexp(weights, -exponents(weights))  # only shares count, and products of weights may overflow
        members &= weights > 0
        weights = weights[members]
    X = with_safe_exponents(X)
    C = X if members.all() else X[members]
    scales = typical_sizes(C) if len(C) else np.ones(X.shape[1])
    return Frame(X, members, None, C, weights, scales, scales)


def with_safe_exponents(X: FloatArray) -> FloatArray:
    """Return `X`, or a copy with rows scaled by powers of two where squares would overflow or vanish.

    Scaling a row changes nothing about radial isotropy.
    """
    row_exponents = exponents(X, axis=1)
    if np.abs(row_exponents).max() <= SAFE_EXPONENT:
        return X
    return np.ldexp(X, -row_exponents[:, None])
