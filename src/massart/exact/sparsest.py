r"""Among formulas that the same rows cannot tell apart, those with the fewest terms.

Duplicate columns, subtotals next to their parts and a column for each level next to a constant leave directions N in
which a formula may move without a change on any row. The sparsest of :math:`w + N z` is NP-hard to find, but basis
pursuit (Chen, Donoho and Saunders 1998, *Atomic decomposition by basis pursuit*),

.. math:: \min_z \sum_j \|A_j\| \, |w_j + N_j z| ,

is an L1 regression of d rows, and finds it nearly always: since the norm of a total is less than the sum of those of
its parts, totals are preferred to parts. Its answer is improved by exchanging one column for another, which is also how
``2 * km`` is found where ``3.218688 * miles`` has as many terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.l1 import l1_regression
from massart.rows import BoolArray, FloatArray

_SURELY = 1e-6  # smallest singular value, of columns of length one, that a Gram matrix tells from zero
_ZERO = 1e-9  # relative size of a term that is none
_LEAN = 1e-6  # by how much a column costs more than one of the next rank
_MOST_EXCHANGES, _MOST_PAIRS = 50, 2_500  # of one column for another; pairs of columns that are looked at
_MOST_DECIMALS = 9

Key: TypeAlias = tuple[int, int, float, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Brevity:
    """What makes a formula shorter than another: few terms, of few digits, of small size, in preferred columns.

    Attributes
    ----------
    natural : (d,) array
        The coefficient of each column that makes its term as large as the labels.
    resolved : float
        A change of the labels that rows do not resolve, in units of their size.
    rank : (d,) array of int
        Of each column, where formulas are equal otherwise: the least is preferred.
    """

    natural: FloatArray
    resolved: float
    rank: NDArray[np.intp]

    @classmethod
    def of(cls, A: FloatArray, w: FloatArray, rank: NDArray[np.intp]) -> Brevity:
        """Return the one for formulas that rows `A`, in units of their half-widths, do not tell from `w`."""
        one = np.sqrt(len(A))  # norm of a change by one half-width in each row
        size = max(float(np.linalg.norm(A @ w)), one)
        largest = np.abs(A).max(axis=0, initial=0.0)  # first, since squares of small numbers vanish
        lengths = largest * np.linalg.norm(A / np.where(largest > 0, largest, 1.0), axis=0)
        return cls(size / np.where(lengths > 0, lengths, np.inf), one / size, rank)

    def __call__(self, w: FloatArray) -> Key:
        """Return the key by which formulas are sorted, the shortest first."""
        support = np.flatnonzero(w)
        own, natural = w[support], self.natural[support]
        uncertain = np.maximum(self.resolved * natural, _ZERO * np.abs(own))
        digits = sum(_digits(float(value), float(u)) for value, u in zip(own, uncertain, strict=True))
        return (
            len(own),
            digits,
            float(f"{np.abs(own / natural).sum():.6g}"),
            tuple(sorted(self.rank[support].tolist())),
        )


def sparser_formulas(A: FloatArray, w: FloatArray, rank: NDArray[np.intp] | None = None) -> list[FloatArray]:
    """Return formulas with fewer or simpler terms than `w` that rows do not tell from it, the best first.

    Parameters
    ----------
    A : (m, d) array
        Rows in units of their half-widths: a change of w that changes all products by less than one is none.
    w : (d,) array
    rank : (d,) array of int, optional
        Of each column, where formulas are equal otherwise; that of their order by default.

    Returns
    -------
    list of (d,) arrays
        Empty where the rows determine every coefficient, or `w` is as short as any that was found. Each is to be fitted
        to the rows again, and verified.

    Examples
    --------
    >>> parts = np.random.default_rng(0).uniform(1, 9, (50, 3))
    >>> A = 1e6 * np.column_stack([parts, parts[:, 0] + parts[:, 1]])
    >>> [formula.round(9).tolist() for formula in sparser_formulas(A, np.array([0.5, 0.5, 1.0, 0.5]))]
    [[0.0, 0.0, 1.0, 1.0]]
    """
    rank = np.arange(len(w)) if rank is None else rank
    present = np.asarray(A.any(axis=0), dtype=np.bool_)
    if not present.all():
        shorter = sparser_formulas(A[:, present], w[present], rank[present]) if present.any() else []
        if w[~present].any():
            shorter.append(w[present])
        return [_spread(formula, present) for formula in shorter]
    family = _family(A, w, Brevity.of(A, w, rank))
    if family is None:
        return []
    found = family.exchanged(family.pursued())
    return [found * family.brevity.natural] if family.key(found) < family.key(family.start) else []


def _spread(w: FloatArray, present: BoolArray) -> FloatArray:
    whole = np.zeros(len(present))
    whole[present] = w
    return whole


def _family(A: FloatArray, w: FloatArray, brevity: Brevity) -> _Family | None:
    """Return the formulas that fit the rows as `w` does; None where there is no other."""
    m, d = A.shape
    largest = np.abs(A).max(axis=0, initial=0.0)  # first, since squares overflow or vanish
    if not np.isfinite(largest).all():
        return None
    normed = A / np.where(largest > 0, largest, 1.0)
    norms = np.linalg.norm(normed, axis=0)
    normed /= np.where(norms > 0, norms, 1.0)
    if m >= d and brevity.resolved < _SURELY and np.linalg.eigvalsh(normed.T @ normed)[0] > _SURELY**2:
        return None
    R = np.asarray(np.linalg.qr(normed, mode="r"))
    _, s, Vt = np.linalg.svd(R, full_matrices=True)
    singular = np.zeros(d)
    singular[: len(s)] = s
    null = singular <= max(brevity.resolved, d * float(np.finfo(float).eps) * singular[0])
    return _Family(R, Vt[null].T, w / brevity.natural, brevity) if null.any() else None


@dataclass(frozen=True, slots=True)
class _Family:
    """Formulas ``start + N z``, in natural units."""

    R: FloatArray  # triangular factor of the rows, with columns of length one
    N: FloatArray
    start: FloatArray
    brevity: Brevity

    def key(self, w: FloatArray) -> Key:
        """Return the key of a formula in natural units."""
        return self.brevity(w * self.brevity.natural)

    def _cleared(self, w: FloatArray) -> FloatArray:
        """Return a formula without the terms that rows do not resolve."""
        return np.where(np.abs(w) <= max(_ZERO * np.abs(w).max(initial=0.0), self.brevity.resolved), 0.0, w)

    def pursued(self) -> FloatArray:
        """Return the formula of basis pursuit."""
        costs = 1 + _LEAN * self.brevity.rank
        z = l1_regression(costs[:, None] * self.N, -costs * self.start).coef
        return self._cleared(self.start + self.N @ z)

    def exchanged(self, w: FloatArray) -> FloatArray:
        """Exchange one column for another that the columns in use make up, while the formula gets shorter."""
        w = self._cleared(w)
        key = self.key(w)
        for _ in range(_MOST_EXCHANGES):
            nearest = {self.key(other): other for other in self._neighbours(w)}
            best = min(nearest, default=key)
            if best >= key:
                break
            key, w = best, nearest[best]
        return w

    def _neighbours(self, w: FloatArray) -> list[FloatArray]:
        """Return the formulas, with no more terms, that have one other column instead of one of their own."""
        used, spare = np.flatnonzero(w), np.flatnonzero(w == 0)
        if not 0 < len(used) * len(spare) <= _MOST_PAIRS:
            return []
        C = np.linalg.lstsq(self.R[:, used], self.R[:, spare], rcond=None)[0]
        lost = np.linalg.norm(self.R[:, spare] - self.R[:, used] @ C, axis=0)
        C[np.abs(C) <= _ZERO] = 0.0
        resolved = self.brevity.resolved
        made_up = lost <= np.sqrt(resolved * _ZERO) + resolved
        found = []
        for column in np.flatnonzero(made_up):
            for leaving in np.flatnonzero(C[:, column]):
                step = w[used[leaving]] / C[leaving, column]
                other = w.copy()
                other[used] -= step * C[:, column]
                other[used[leaving]] = 0.0
                other[spare[column]] = step
                other = self._cleared(other)
                if np.count_nonzero(other) <= len(used):
                    found.append(other)
        return found


def _places(value: float, uncertain: float) -> int:
    """Return the decimals of the shortest number within an uncertainty."""
    places = 0
    while places < _MOST_DECIMALS and abs(round(value, places) - value) > uncertain:
        places += 1
    return places


def _digits(value: float, uncertain: float) -> int:
    """Return the digits of the shortest number within an uncertainty; none for a one, which nobody writes."""
    places, whole = _places(value, uncertain), round(abs(value))
    return 0 if places == 0 and whole == 1 else places + len(str(whole))
