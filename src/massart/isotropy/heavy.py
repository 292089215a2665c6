r"""Heavy subspaces: proof that a point set has no radial-isotropic transform, and the part that has one.

A k-dimensional subspace V is *heavy* when it holds at least a share k/d of the rows (Lemmas 2.5 and 2.6). The search
below is heuristic; the answer is not: a subspace is returned only after its rows were counted.

Where candidates come from. If V is heavy, the minimizing map T diverges: it blows up the directions outside V, and the
images of the rows outside V turn into the m = d - k directions W that grow, while rows in V stay orthogonal to W. So W
is seen as a gap in the singular values of T, or as small eigenvalues of Psi that the iteration cannot raise, and the
rows of V are those with the least leverage :math:`|W^\top u_i|^2`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from massart.isotropy.descent import Iterate
from massart.isotropy.frame import Frame
from massart.isotropy.moments import distances, nonzero_weights, triangular_factor
from massart.rows import BoolArray, FloatArray

_GAP = np.log(4.0)  # a ratio of singular values worth a look, and how much it must grow before a second look
_STUCK_GAP = np.log(1.15)  # a ratio of eigenvalues of Psi worth a look
_CLEAN = 0.05  # largest part of the leverage that the rows inside may have when a stuck eigenvalue is looked at
_CANDIDATES = 3
_COARSE_STEPS, _EXACT_STEPS = 4, 6
_COARSE, _FINE = 1e-3, 1e-6  # distances at which a candidate is hopeless, and good enough for the exact steps
_EQUAL = 1e-12  # a share this close to k/d counts as equal: sums of weights are rounded


@dataclass(frozen=True, slots=True)
class HeavySubspace:
    """A verified heavy subspace of a frame: a basis in the frame's coordinates and the rows in it."""

    basis: FloatArray
    inside: BoolArray


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Singular values of a map, descending, and the directions in which its images have them, a row each."""

    sizes: FloatArray
    axes: FloatArray

    @property
    def condition(self) -> float:
        """The condition number."""
        return float(self.sizes[0] / max(self.sizes[-1], np.finfo(float).tiny))


@dataclass(slots=True)
class HeavySearch:
    """Looks for heavy subspaces in the iterates of one descent.

    Attributes
    ----------
    frame : Frame
    whitening : (d, k) array
        The map that the descent started from: its images are the coordinates for coarse distances.
    tol : float
        Largest distance of a unit row (equilibrated coordinates) from a subspace it counts in: a rank decision.
    gamma : float
        What the map shall reach.
    """

    frame: Frame
    whitening: FloatArray
    tol: float
    gamma: float
    _seen: dict[int, float] = field(default_factory=dict)

    def stuck(self, iterate: Iterate) -> HeavySubspace | None:
        """Return a subspace that keeps an eigenvalue of Psi below 1 - gamma for every map, or None.

        Seen from the fixed point, which raises the smallest eigenvalues as far as they go: there the rows outside
        the subspace turn into the eigenvectors, and the others lose all leverage, within a few steps.
        """
        d = self.frame.shape[1]
        eigenvalues = iterate.eigenvalues
        low = min(int((eigenvalues < 1 - self.gamma).sum()), d - 1)
        gaps = np.diff(np.log(np.maximum(eigenvalues[: low + 1], np.finfo(float).tiny)))
        for j in np.argsort(-gaps)[:_CANDIDATES]:
            if gaps[j] < _STUCK_GAP:
                break
            m = int(j) + 1
            leverages = self._leverages(iterate, iterate.eigenvectors[:, :m])
            outside = leverages > 0.5
            mass = self.frame.shares * leverages
            if not self._rules_out(outside, m) or mass[~outside].sum() > _CLEAN * mass.sum():
                continue
            found = self._exact(~outside, d - m)
            if found is not None and self._rules_out(~found.inside, m):
                return found
        return None

    def diverging(self, iterate: Iterate, spectrum: Spectrum) -> HeavySubspace | None:
        """Return a heavy subspace that a gap in the singular values of the map gives away, or None."""
        logs = np.log(np.maximum(spectrum.sizes, np.finfo(float).tiny))
        gaps = logs[:-1] - logs[1:]
        for j in np.argsort(-gaps)[:_CANDIDATES]:
            m = int(j) + 1
            if gaps[j] < self._seen.get(m, 0.0) + _GAP:
                continue
            self._seen[m] = float(gaps[j])
            found = self._concentrate(self._leverages(iterate, spectrum.axes[:m].T), len(logs) - m)
            if found is not None:
                return found
        return None

    def _leverages(self, iterate: Iterate, W: FloatArray) -> FloatArray:
        """Return ``|W' u_i|^2`` for each row."""
        return distances(self.frame.C, iterate.T, W) ** 2

    def _rules_out(self, outside: BoolArray, m: int) -> bool:
        """Tell whether so few rows outside a subspace of codimension `m` keep some eigenvalue below 1 - gamma."""
        return self.frame.shape[1] * float(self.frame.shares[outside].sum()) < (1 - self.gamma) * m

    def _concentrate(self, leverages: FloatArray, k: int) -> HeavySubspace | None:
        """Refit and reselect until the nearest k/d of the rows lie in one k-dimensional subspace, or give up.

        The steps are those of Rousseeuw and Van Driessen (1999), first in whitened coordinates, where distances mean
        the same in all directions, then in the equilibrated ones, where a rank is decided.
        """
        C = self.frame.C
        nearest = self._nearest(leverages, k)
        spread = np.inf
        for _ in range(_COARSE_STEPS):
            _, _, axes = np.linalg.svd(triangular_factor(C, self.whitening, nearest))
            distance = distances(C, self.whitening, axes[k:].T)
            nearest = self._nearest(distance, k)
            previous, spread = spread, float(distance[nearest].max())
            if spread < _FINE or spread > 0.9 * previous:
                break
        return self._exact(nearest, k) if spread <= _COARSE else None

    def _exact(self, nearest: BoolArray, k: int) -> HeavySubspace | None:
        """Refit and reselect in equilibrated coordinates until enough rows lie within `tol` of the subspace."""
        C = self.frame.C
        equilibrated = self.frame.equilibrated()
        spread = np.inf
        for _ in range(_EXACT_STEPS):
            _, _, axes = np.linalg.svd(triangular_factor(C, equilibrated, nearest))
            distance = distances(C, equilibrated, axes[k:].T)
            inside = distance <= self.tol
            if is_heavy(self.frame, inside, k):
                if (inside != nearest).any():
                    # All rows inside pin the subspace better than the nearest ones alone.
                    _, _, axes = np.linalg.svd(triangular_factor(C, equilibrated, inside))
                    inside = distances(C, equilibrated, axes[k:].T) <= self.tol
                basis = np.linalg.solve(equilibrated.T, axes[:k].T)
                return HeavySubspace(basis, inside) if is_heavy(self.frame, inside, k) else None
            nearest = self._nearest(distance, k)
            previous, spread = spread, float(distance[nearest].max())
            if spread > 0.9 * previous:
                break
        return None

    def _nearest(self, distance: FloatArray, k: int) -> BoolArray:
        """Return the nearest rows that together have a share k/d."""
        d = self.frame.shape[1]
        order = np.argsort(distance, kind="stable")
        shares = np.cumsum(self.frame.shares[order])
        count = min(int(np.searchsorted(shares, k / d - _EQUAL)) + 1, len(order))
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order[:count]] = True
        return chosen


def is_heavy(frame: Frame, inside: BoolArray, k: int) -> bool:
    """Tell whether the rows `inside` are a share k/d of the frame or more: counted exactly, up to rounded weights."""
    n, d = frame.shape
    if frame.weights is None:
        return int(inside.sum()) * d >= k * n
    return float(frame.shares[inside].sum()) >= k / d - _EQUAL


def light_coordinates(frame: Frame, gamma: float) -> BoolArray:
    """Return the coordinates that are non-zero on so few rows that no map reaches `gamma`.

    The hyperplane where coordinate j vanishes is heavy when fewer than n/d rows are outside, and then Psi has a
    quadratic form of at most (d/n) nnz_j in one direction. Sparse tables and dummies are full of such
    coordinates, and counting finds them all in one read.
    """
    n, d = frame.shape
    nonzero = nonzero_weights(frame.C, frame.weights)
    total = n if frame.weights is None else float(frame.weights.sum())
    return np.asarray(d * nonzero < (1 - gamma) * (1 - _EQUAL) * total)
