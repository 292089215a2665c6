r"""Rows in a subspace, in coordinates; and the search for heavy subspaces, which have no transform.

A *frame* is a subspace V of R^d with an orthonormal basis, the rows that lie in V, and their coordinates ``C = X @ V``.
It starts as all non-zero rows in R^d itself, without a copy, and shrinks when a heavy subspace is found.

A k-dimensional subspace of a frame of dimension d is *heavy* when it holds at least a share k/d of the rows (Lemmas 2.5
and 2.6). The search is heuristic; the answer is not: a subspace is returned only after its rows were counted.

Where candidates come from. If V is heavy, the minimizing map T of :mod:`massart.isotropy.descent` diverges: it blows up
the directions outside V, and the images of the rows outside V turn into the m = d - k directions W that grow, while
rows in V stay orthogonal to W. So W is seen as a gap in the singular values of T, or as small eigenvalues of Psi that
the iteration cannot raise, and the rows of V are those with the least leverage :math:`|W^\top u_i|^2`. From them,
refitting and reselecting the nearest rows, the concentration steps of [1]_, leads to V.

References
----------
.. [1] P. J. Rousseeuw, K. Van Driessen. A fast algorithm for the minimum covariance determinant estimator.
       Technometrics 41 (1999).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from massart.isotropy.descent import Iterate
from massart.rows import BoolArray, FloatArray, exponents, row_blocks, typical_sizes, with_safe_exponents

EQUAL = 1e-12
"""A share this close to k/d counts as equal: sums of weights are rounded."""


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

    @classmethod
    def of(cls, X: FloatArray, weights: FloatArray | None) -> Frame:
        """Return the frame of all rows that are not zero and have a positive weight, in R^d."""
        members = np.asarray(X.any(axis=1))
        if weights is not None:
            weights = np.ldexp(weights, -exponents(weights))  # only shares count, and products of weights may overflow
            members &= weights > 0
            weights = weights[members]
        X = with_safe_exponents(X)
        C = X if members.all() else X[members]
        scales = typical_sizes(C) if len(C) else np.ones(X.shape[1])
        return cls(X, members, None, C, weights, scales, scales)

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

    def is_heavy(self, inside: BoolArray, k: int) -> bool:
        """Return whether the rows `inside` are a share k/d or more: counted exactly, up to rounded weights."""
        n, d = self.C.shape
        if self.weights is None:
            return bool(inside.sum() * d >= k * n)
        return bool(self.shares[inside].sum() >= k / d - EQUAL)

    def light_coordinates(self, gamma: float) -> BoolArray:
        """Return the coordinates that are non-zero on so few rows that no map reaches `gamma`.

        The hyperplane where coordinate j vanishes is heavy when fewer than n/d rows are outside, and then Psi has a
        quadratic form of at most (d/n) nnz_j in one direction. Sparse tables and dummies are full of such
        coordinates, and counting finds them all in one read.
        """
        n, d = self.C.shape
        present = self.C != 0
        nonzero = present.sum(axis=0) if self.weights is None else self.weights @ present
        total = n if self.weights is None else float(self.weights.sum())
        return np.asarray(d * nonzero < (1 - gamma) * (1 - EQUAL) * total)

    def restricted(self, B: FloatArray, inside: BoolArray) -> Frame:
        """Return the frame of the rows `inside`, in the subspace spanned by the columns of `B` in these coordinates."""
        V = np.linalg.qr(B if self.V is None else self.V @ B)[0]
        return self._in_basis(V, inside)

    def without_coordinates(self, light: BoolArray) -> Frame:
        """Return the frame of the rows whose `light` coordinates are all zero, without those coordinates."""
        inside = np.asarray(~self.C[:, light].any(axis=1))
        frame = self._in_basis(self.basis[:, ~light], inside)
        return replace(frame, C=self.C[np.ix_(inside, ~light)], scales=self.scales[~light])  # not a bit changes

    def turned(self, T: FloatArray) -> tuple[Frame, FloatArray]:
        """Return the frame turned to the principal axes of the map `T`, and these axes; T becomes ``axes.T @ T``.

        Rounding the entries of a map of condition number K costs a relative 2e-16 K in the images. In its own axes
        the map is diagonal and costs nothing; what is left is the rounding of the coordinates.
        """
        axes = np.linalg.svd(T)[0]
        return self._in_basis(self.basis @ axes, np.ones(len(self.C), dtype=bool)), axes

    def _in_basis(self, V: FloatArray, inside: BoolArray) -> Frame:
        members = self.members.copy()
        members[members] = inside
        # One product of all rows: blocks may sum in another order, and these bits are what a caller recomputes.
        C = np.asarray(self.X[members] @ V)
        weights = None if self.weights is None else self.weights[inside]
        return replace(self, members=members, V=V, C=C, weights=weights, scales=typical_sizes(C))


@dataclass(slots=True)
class HeavySearch:
    """The search for heavy subspaces in the iterates of one descent.

    Attributes
    ----------
    frame : Frame
    whitening : (d, k) array
        The map that the descent started from: its images are the coordinates for coarse distances.
    tol : float
        Largest distance of a unit row (equilibrated coordinates) from a subspace it counts in: a rank decision.
    gamma : float
        What the map shall reach.
    candidates : int
        Gaps in a spectrum that are looked at, the widest first.
    """

    frame: Frame
    whitening: FloatArray
    tol: float
    gamma: float
    candidates: int = 3
    _seen: dict[int, float] = field(default_factory=dict)

    def stuck(self, iterate: Iterate, *, gap: float = 0.14, clean: float = 0.05) -> Frame | None:
        """Return the frame of a subspace that keeps an eigenvalue of Psi below 1 - gamma for every map, or None.

        Seen from the fixed point, which raises the smallest eigenvalues as far as they go: there the rows outside
        the subspace turn into the eigenvectors, and the others lose all leverage, within a few steps.

        Parameters
        ----------
        iterate : Iterate
        gap : float
            A difference of log-eigenvalues that is worth a look (drug discovery: a sixth of the time).
        clean : float
            Largest part of the leverage that the rows inside may have, for a look to be worth its time (families of
            heavy subspaces at gamma = 1/2: a quarter).
        """
        d = self.frame.C.shape[1]
        low = min(int((iterate.eigenvalues < 1 - self.gamma).sum()), d - 1)
        gaps = np.diff(np.log(np.maximum(iterate.eigenvalues[: low + 1], np.finfo(float).tiny)))
        for j in np.argsort(-gaps)[: self.candidates]:
            if gaps[j] < gap:
                break
            m = int(j) + 1
            leverages = distances(self.frame.C, iterate.T, iterate.eigenvectors[:, :m]) ** 2
            outside = leverages > 0.5
            mass = self.frame.shares * leverages
            if not self._rules_out(outside, m) or mass[~outside].sum() > clean * mass.sum():
                continue
            found = self._exact(~outside, d - m)
            if found is not None and self._rules_out(~found[1], m):
                return self.frame.restricted(*found)
        return None

    def diverging(self, iterate: Iterate, sizes: FloatArray, axes: FloatArray, *, gap: float = 1.4) -> Frame | None:
        """Return the frame of a heavy subspace that a gap in the singular values of the map gives away, or None.

        Parameters
        ----------
        iterate : Iterate
        sizes, axes : (k,) and (k, k) arrays
            Singular values of the map, descending, and the directions in which its images have them, a row each.
        gap : float
            A difference of logarithms that is worth a look, and by which it must grow before a second look.
        """
        logs = np.log(np.maximum(sizes, np.finfo(float).tiny))
        gaps = logs[:-1] - logs[1:]
        for j in np.argsort(-gaps)[: self.candidates]:
            m = int(j) + 1
            if gaps[j] < self._seen.get(m, 0.0) + gap:
                continue
            self._seen[m] = float(gaps[j])
            found = self._concentrate(distances(self.frame.C, iterate.T, axes[:m].T), len(logs) - m)
            if found is not None:
                return self.frame.restricted(*found)
        return None

    def _rules_out(self, outside: BoolArray, m: int) -> bool:
        """Return whether so few rows outside a subspace of codimension `m` keep some eigenvalue below 1 - gamma."""
        return bool(self.frame.C.shape[1] * self.frame.shares[outside].sum() < (1 - self.gamma) * m)

    def _concentrate(self, distance: FloatArray, k: int, *, fine: float = 1e-6) -> tuple[FloatArray, BoolArray] | None:
        """Refit and reselect in whitened coordinates, where distances mean the same in all directions.

        Parameters
        ----------
        distance, k
            Which rows are near at first, and the dimension of the subspace.
        fine : float
            Distance of the farthest of the nearest rows below which equilibrated coordinates take over.
        """
        nearest, spread = self._nearest(distance, k), np.inf
        while spread >= fine:
            distance = self._fitted(self.whitening, nearest, k)[1]
            nearest = self._nearest(distance, k)
            previous, spread = spread, float(distance[nearest].max())
            if not spread <= 0.9 * previous:
                break
        return self._exact(nearest, k)

    def _exact(self, nearest: BoolArray, k: int) -> tuple[FloatArray, BoolArray] | None:
        """Refit and reselect in equilibrated coordinates, where a rank is decided.

        Return a basis and the rows within `tol` of it as soon as they are enough; None where they come no nearer.
        """
        equilibrated = self.frame.equilibrated()
        spread = np.inf
        while True:
            axes, distance = self._fitted(equilibrated, nearest, k)
            inside = distance <= self.tol
            if self.frame.is_heavy(inside, k):
                if (inside != nearest).any():  # all rows inside pin the subspace better than the nearest ones alone
                    axes, distance = self._fitted(equilibrated, inside, k)
                    inside = distance <= self.tol
                basis = np.asarray(np.linalg.solve(equilibrated.T, axes[:k].T), dtype=np.float64)
                return (basis, inside) if self.frame.is_heavy(inside, k) else None
            nearest = self._nearest(distance, k)
            previous, spread = spread, float(distance[nearest].max())
            if not spread <= 0.9 * previous:
                return None

    def _fitted(self, T: FloatArray, rows: BoolArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return the axes of some rows under a map, and how far each row is from the first k of them."""
        axes = np.linalg.svd(triangular_factor(self.frame.C, T, rows))[2]
        return axes, distances(self.frame.C, T, axes[k:].T)

    def _nearest(self, distance: FloatArray, k: int) -> BoolArray:
        """Return the nearest rows that together have a share k/d."""
        order = np.argsort(distance, kind="stable")
        shares = np.cumsum(self.frame.shares[order])
        count = min(int(np.searchsorted(shares, k / self.frame.C.shape[1] - EQUAL)) + 1, len(order))
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order[:count]] = True
        return chosen


def distances(X: FloatArray, T: FloatArray, N: FloatArray) -> FloatArray:
    """Return ``|N' u_i|`` for each row: its distance from the orthogonal complement of the columns of `N`."""
    outwards = T @ N
    found = np.empty(len(X))
    for block in row_blocks(*X.shape):
        found[block] = np.linalg.norm(X[block] @ outwards, axis=1) / np.linalg.norm(X[block] @ T, axis=1)
    return found


def triangular_factor(X: FloatArray, T: FloatArray, rows: BoolArray | None = None) -> FloatArray:
    """Return R of the QR factorization of the unit rows ``u_i``, (at most k, k), by a sequence of small QRs.

    Unlike a Cholesky factor of the second moment it does not square the condition number: singular values of R are
    right to rounding, so it decides ranks.

    Parameters
    ----------
    X, T : (n, d) and (d, k) arrays
    rows : (n,) boolean array, optional
        Rows to use; all by default.
    """
    R = np.zeros((0, T.shape[1]))
    for block in row_blocks(*X.shape):
        Y = (X[block] if rows is None else X[block][rows[block]]) @ T
        Y /= np.sqrt(np.einsum("ij,ij->i", Y, Y))[:, None]  # einsum does not warn of overflow
        R = np.asarray(np.linalg.qr(np.vstack([R, Y]))[1])
    return R
