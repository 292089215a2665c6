r"""What is searched for: the parameter that fits the most rows.

.. math::
    \max_w \; \#\{ i : |y_i - w \cdot z_i| \le s_i + \rho \, (|y_i| + |w|) \}

over unit rows :math:`z_i`, counted with weights. The allowances are generous, with :math:`\rho` about half of the
digits: a candidate that is right but not yet polished must count. The caller decides at the data's own precision.

**Limits.** Where a link clips, row i is fitted if :math:`\min(\max(l_i, w \cdot z_i), u_i)` is its label. A *decisive*
label, one between its limits, tells :math:`w \cdot z_i`; a limit tells a side only. A row is *active* for w where
:math:`l_i < w \cdot z_i < u_i`. Zero fits half of all ReLU labels, so a candidate counts only with more decisive rows
than any k of them give.

The L1 loss of a clipped formula is not convex, but it is on a fixed set of active rows: :func:`alternate` solves those
that a parameter leaves active, then those of the answer, and so on. There a decisive label costs its absolute residual,
and a limit only what is beyond it: right labels then cost nothing at the truth. As in Algorithm 3 the active rows are
brought in radial-isotropic position, with the recursion on heavy subspaces, each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from massart.isotropy import decompose
from massart.l1 import l1_regression
from massart.rows import BoolArray, FloatArray
from massart.search.fast_lts import LeastSquares

CLEAR = 2.0
"""Standard deviations of a fair coin beyond one half at which a majority of the active rows ends a search."""

_REPEATED = 2
"""Decisive rows, in units of what any k of them give, that end a search."""

_DEVIATIONS = 2.0
"""Standard deviations by which the best of many formulas exceeds the frequency of the most frequent label."""


@dataclass(frozen=True, slots=True)
class FittedParameter:
    """A parameter and the weight of the rows it fits."""

    w: FloatArray
    agreement: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Where the products w.z of rows are clipped."""

    lower: FloatArray  # scaled with their rows
    upper: FloatArray  # likewise
    decisive: BoolArray  # the label lies between the limits; that of any other row is one of them

    def active(self, products: FloatArray) -> BoolArray:
        """Return which rows each parameter does not clip, for products (b, n)."""
        return np.asarray((products > self.lower) & (products < self.upper))

    def restricted(self, index: NDArray[np.intp]) -> Limits:
        """Return the limits of some of the rows."""
        return Limits(self.lower[index], self.upper[index], self.decisive[index])


@dataclass(frozen=True)
class Consensus:
    """Rows to be fitted by as many as possible."""

    Z: FloatArray  # (n, k), unit rows, best in radial-isotropic position
    y: FloatArray  # labels, scaled with their rows
    slack: FloatArray  # residual that each row may have whatever w is
    near: float  # residual that a row may have relative to its label and w
    weights: FloatArray
    lengths: FloatArray  # what rows were divided by: an adversary gains most on long ones, so short ones are preferred
    limits: Limits | None = None  # where the link clips; by default it does not

    @cached_property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum())

    @cached_property
    def chance(self) -> float:
        """What any k independent rows give: a candidate with no more has found nothing."""
        heaviest = np.sort(self.weights)[::-1]
        return float(heaviest[: self.Z.shape[1] + 1].sum())

    @cached_property
    def accidents(self) -> float:
        """What labels without a rule give the best formula: more than `chance` where labels are repeated.

        With limits these are decisive rows.
        """
        rows = self.decisive
        labels = self.y[rows] * self.lengths[rows]
        reach = self.slack[rows] * self.lengths[rows] + self.near * np.abs(labels)
        return accidental_agreement(labels, reach, self.weights[rows], self.Z.shape[1])

    @property
    def unique(self) -> float:
        """In general position, a parameter that fits more than this fits more than any other."""
        return (self.total + self.chance - float(self.weights.max())) / 2

    @cached_property
    def decisive(self) -> NDArray[np.intp]:
        """The rows whose label tells the product w.z."""
        return np.arange(len(self.y)) if self.limits is None else np.flatnonzero(self.limits.decisive)

    @cached_property
    def least_squares(self) -> LeastSquares:
        """The fits of the decisive rows."""
        return LeastSquares(self.Z[self.decisive], self.y[self.decisive])

    @cached_property
    def _allowances(self) -> FloatArray:
        """The residual that each row may have for w = 0."""
        return self.slack + self.near * np.abs(self.y)

    @cached_property
    def _counts(self) -> FloatArray:
        """The weights of the rows; with limits also those of decisive rows, and which rows these are: columns."""
        if self.limits is None:
            return self.weights[:, None]
        return np.column_stack([self.weights, self.weights * self.limits.decisive, self.limits.decisive])

    def restricted(self, index: NDArray[np.intp]) -> Consensus:
        """Return the problem of some of the rows."""
        return replace(
            self,
            Z=self.Z[index],
            y=self.y[index],
            slack=self.slack[index],
            weights=self.weights[index],
            lengths=self.lengths[index],
            limits=None if self.limits is None else self.limits.restricted(index),
        )

    def products(self, W: FloatArray) -> FloatArray:
        """Return the products of each parameter with each row, (b, n), which no limit clips."""
        return np.asarray(W @ self.Z.T)

    def residuals(self, W: FloatArray, products: FloatArray | None = None) -> FloatArray:
        """Return the absolute residuals of each parameter on each row, (b, n)."""
        products = self.products(W) if products is None else products
        if self.limits is not None:
            products = np.clip(products, self.limits.lower, self.limits.upper)
        return np.abs(self.y - products)

    def fits(self, W: FloatArray, products: FloatArray | None = None) -> BoolArray:
        """Return which rows each parameter fits, (b, n)."""
        reach = self._allowances + self.near * np.linalg.norm(W, axis=1)[:, None]
        return np.asarray(self.residuals(W, products) <= reach)

    def best(self, W: FloatArray, products: FloatArray | None = None) -> FittedParameter:
        """Return the parameter of `W`, (b, k), that fits most."""
        counts = self.fits(W, products).astype(np.float64) @ self._counts
        agreement = counts[:, 0]
        if self.limits is not None:
            # At the level of chance the limits still tell one from the other, below all that is beyond it.
            determined = counts[:, 2] >= self.Z.shape[1]
            by_limits = determined * self.chance * agreement / (1 + self.total)
            agreement = np.where(counts[:, 1] > self.chance, agreement, by_limits)
        j = int(np.argmax(agreement))
        return FittedParameter(W[j], float(agreement[j]))

    def settled(self, candidate: FittedParameter, enough: float) -> bool:
        """Return whether nothing better need be looked for: it fits more than `enough`.

        With limits no count alone says so. But rows that are active for a wrong w agree only where their label is
        wrong, so a majority of them, beyond luck and beyond what any k rows give, is the sign of the right one.
        """
        if self.limits is None:
            return candidate.agreement > enough
        if candidate.agreement <= self.chance:
            return False
        right, met = self._evidence(self.limits, candidate.w)
        if right - self.chance > self.total - candidate.agreement:
            return True  # the certificate's count, in general position
        return right > _REPEATED * self.chance and right > (met + CLEAR * np.sqrt(met)) / 2

    def is_accident(self, candidate: FittedParameter) -> bool:
        """Return whether labels without a rule might give such a candidate."""
        if self.limits is None:
            return candidate.agreement <= self.accidents
        return self._evidence(self.limits, candidate.w)[0] <= self.accidents

    def has_majority(self, candidate: FittedParameter) -> bool:
        """Return whether more than half of the rows agree, with limits also of those that are active."""
        if candidate.agreement <= self.total / 2:
            return False
        if self.limits is None:
            return True
        right, met = self._evidence(self.limits, candidate.w)
        return 2 * right > met

    def _evidence(self, limits: Limits, w: FloatArray) -> tuple[float, float]:
        """Return the weight of the decisive rows that agree, and that of all rows which speak for w or against it."""
        products = self.products(w[None])
        fits = self.fits(w[None], products)[0]
        decided = fits & limits.decisive
        active = limits.active(products)[0] & (decided | ~fits)
        return float(self.weights[decided].sum()), float(self.weights[active].sum())


def accidental_agreement(labels: FloatArray, reach: FloatArray, weights: FloatArray, k: int) -> float:
    """Return the weight of rows that labels without a rule give the best formula with `k` coefficients, at most, about.

    Any k independent rows are fitted by some formula, and one more by the choice among such formulas. Of the others
    each agrees at most as often as the most frequent label occurs. For labels that are never repeated this is k + 1;
    for a count or a grade it is a large part of the table.

    Parameters
    ----------
    labels : (n,) array
    reach : (n,) array
        Labels that are nearer to each other than twice this are the same.
    weights : (n,) array
    k : int
    """
    free, others = np.split(np.sort(weights)[::-1], [k + 1])
    repeated = _most_frequent(labels, reach, weights) - weights.max(initial=0.0)
    frequency = repeated / max(others.sum(), repeated) if repeated > 0 else 0.0
    deviation = np.sqrt(frequency * (1 - frequency) * (others @ others))
    return float(free.sum() + frequency * others.sum() + _DEVIATIONS * deviation)


def _most_frequent(labels: FloatArray, reach: FloatArray, weights: FloatArray) -> float:
    """Return the largest weight of rows that have the same label."""
    order = np.argsort(labels)
    ordered = labels[order]
    reached = np.concatenate([[0.0], np.cumsum(weights[order])])
    ends = np.searchsorted(ordered, ordered + 2 * reach[order], side="right")
    return float((reached[ends] - reached[:-1]).max(initial=0.0))


def alternate(
    problem: Consensus, w: FloatArray, steps: int, row_weights: FloatArray | None = None
) -> Iterator[FloatArray]:
    """Yield the L1 answers on the active rows of `w`, of the answer, and so on until these rows come again.

    There are `steps` answers at most, and one where the problem has no limits. `row_weights` go over the problem's.
    """
    weights = problem.weights if row_weights is None else row_weights
    if problem.limits is None:
        yield l1_regression(problem.Z, problem.y, sample_weight=weights).coef
        return
    seen = set()
    for _ in range(steps):
        active = active_rows(problem, problem.limits, w)
        key = active.tobytes()
        if key in seen or not active.any():
            return
        seen.add(key)
        w = _solve(problem, problem.limits, active, weights)
        yield w


def active_rows(problem: Consensus, limits: Limits, w: FloatArray) -> BoolArray:
    """Return the active rows, and the decisive ones, too, where the active ones cannot determine w."""
    active = limits.active(w @ problem.Z.T)
    if (active & limits.decisive).sum() <= problem.Z.shape[1]:
        active |= limits.decisive
    return active


def _solve(problem: Consensus, limits: Limits, active: BoolArray, weights: FloatArray) -> FloatArray:
    """Return the L1 answer on the active rows, piece by piece of their decomposition (Algorithm 2)."""
    one_sided = ~limits.decisive[active]
    # A label at the upper limit bounds from below: turned around, every limit bounds from above.
    turned = np.where(one_sided & (problem.y[active] == limits.upper[active]), -1.0, 1.0)
    Z, y, weights = problem.Z[active] * turned[:, None], problem.y[active] * turned, weights[active]
    w = np.zeros(Z.shape[1])
    for piece in decompose(Z, sample_weight=problem.weights[active]):
        members = piece.members
        basis = piece.subspace @ piece.matrix.T
        images = Z[members] @ basis
        lengths = np.linalg.norm(images, axis=1)
        answer = l1_regression(
            images / lengths[:, None],
            (y[members] - Z[members] @ w) / lengths,
            sample_weight=weights[members],
            one_sided=one_sided[members],
        )
        w = w + basis @ answer.coef
    return w
