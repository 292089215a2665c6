r"""The score of a rule in bits, and the robust regression that finds coefficients for given terms.

With half-widths :math:`h_i` of the labels and residuals :math:`r_i`, a rule with k numbers has the score

.. math::
    S = \sum_{i \text{ disagrees}} \Bigl( m + \min\bigl(c, \log_2 |r_i| / h_i\bigr) \Bigr) + b\,k ,
    \qquad c = \log_2 \frac{\text{spread of the labels}}{\text{median } h} ,

about the bits that say the labels next to the rule, and the rule. A row that agrees, :math:`|r_i| \le h_i`, is free,
and a wrong one costs no more than :math:`m + c`. Coefficients minimise a smooth version of it,
:math:`\sum_i \log(r_i^2 + \epsilon^2)`, by reweighted least squares with :math:`\epsilon` falling from the median
residual to :math:`h` (graduated, so that many rows lead the way and the rows that agree have the last word). It starts
from the coefficients that are known, and for short rules also from L1 regression in near-isotropic position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.linalg.lapack import dposv

from massart.rows import BoolArray, FloatArray, Link
from massart.rules.grow.sample import Product, Sample, clip_of, key_of, n_constants, threshold_of, written
from massart.rules.grow.settings import Settings
from massart.rules.terms import Term

Scale = Literal["identity", "log"]

NO_LIMITS = Link(-np.inf, np.inf)

SLACK = 0.98
"""Half-widths within which a row agrees: less than one, so that no rule between two others has the rows of both."""

_ARITHMETIC = 1e-10  # relative error of a label that the products of a trial rule may have
_FLAT_STEPS, _QUICK_STEPS = 11, 3  # in which epsilon falls to the half-width; where only a term is left out
_WARM_STEPS = 8
_NEAR = (4.0, 2.0, 1.2)  # half-widths within which rows are fitted by least squares in the end
_RIDGE = 1e-11
_TINY = 1e-300
_FEWEST = 3  # rows, besides the number of terms, that a fit needs; rows in which a term is not zero


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a sample on a scale, each with its half-width; `usable` are those that the scale has.

    `cap` is the most that a residual costs, in bits.
    """

    sample: Sample
    scale: Scale
    y: FloatArray
    half_widths: FloatArray
    usable: BoolArray
    cap: float
    settings: Settings

    @classmethod
    def of(cls, sample: Sample, scale: Scale, settings: Settings) -> Labels:
        """Return the labels as they are, or their logarithms."""
        y, half_widths = sample.y, np.full(len(sample), sample.half_unit)
        usable = np.ones(len(y), dtype=bool)
        if scale == "log":
            usable = y > 0
            positive = np.where(usable, y, 1.0)
            y, half_widths = np.log(positive), half_widths / positive
        half_widths = half_widths + _ARITHMETIC * np.abs(y) + _TINY
        low, high = np.quantile(y[usable], [0.1, 0.9])
        cap = float(np.log2(max(4.0, (high - low + _TINY) / float(np.median(half_widths[usable])))))
        return cls(sample, scale, y, half_widths, usable, cap, settings)

    def only(self, rows: BoolArray) -> Labels:
        """Return the same labels, of which only some rows count."""
        return replace(self, usable=self.usable & rows)

    @cached_property
    def n(self) -> int:
        """The number of rows that count."""
        return int(np.count_nonzero(self.usable))

    @cached_property
    def typical(self) -> float:
        """The median half-width."""
        return float(np.median(self.half_widths[self.usable]))

    def bits(self, residuals: FloatArray) -> FloatArray:
        """Return what each row costs."""
        with np.errstate(all="ignore"):
            off = np.where(np.isfinite(residuals), np.abs(residuals), np.inf) / self.half_widths
            off[~self.usable] = 0.0
            cost = np.minimum(np.log2(np.maximum(off, 1.0)), self.cap) + self.settings.miss_bits * (off > SLACK)
        return np.asarray(cost)

    def shuffled(self, rng: np.random.Generator) -> Labels:
        """Return the same labels, each at another row."""
        order = rng.permutation(len(self.y))
        return replace(self, y=self.y[order], half_widths=self.half_widths[order], usable=self.usable[order])

    def follows(self, X: FloatArray) -> BoolArray:
        """Mark the rows that agree with robust regression on some columns and a constant."""
        with np.errstate(all="ignore"):
            X = (X - np.median(X, axis=0)) / np.maximum(X.std(axis=0), _TINY)
        X = np.column_stack([np.ones(len(X)), X[:, np.isfinite(X).all(axis=0)]])[self.usable]
        y, h = self.y[self.usable], self.half_widths[self.usable]
        rows = self.usable.copy()
        try:
            coef = _descend(np.ascontiguousarray(X.T) / h, y / h, _isotropic_l1(X, y), _FLAT_STEPS)
        except np.linalg.LinAlgError:
            return np.zeros(len(rows), dtype=bool)
        rows[self.usable] = np.abs(y - X @ coef) <= SLACK * h
        return rows

    def fit(
        self,
        terms: Sequence[Product],
        coef: Sequence[float] | FloatArray | None = None,
        limits: Link = NO_LIMITS,
        *,
        cold: bool = False,
        quick: bool = False,
        near: BoolArray | None = None,
    ) -> Fit | None:
        """Return the rule in some terms that costs least, from given coefficients, from nothing, or from given rows.

        `cold` starts from nothing, too, and `near` from least squares of these rows, which are thought to be right.

        None where too few rows have something to say.
        """
        alike = {key_of(term): term for term in terms}
        if len(alike) < len(terms):
            terms, coef = list(alike.values()), None
        X = self.sample.matrix(terms)
        rows = self.usable
        if limits != NO_LIMITS:
            rows = rows & (self.y > limits.lower) & (self.y < limits.upper)
        some = X[rows]
        with np.errstate(all="ignore"):
            sizes = np.sqrt(np.einsum("ij,ij->j", some, some) / max(len(some), 1))
        if self.scale == "identity" and not self.sample.constant:
            sizes = np.where([not term for term in terms], 0.0, sizes)
        kept = np.isfinite(sizes) & (sizes > 0) & (np.count_nonzero(some, axis=0) > _FEWEST)
        if not kept.all():
            terms = [term for term, keep in zip(terms, kept, strict=True) if keep]
            X, some, sizes = X[:, kept], some[:, kept], sizes[kept]
            coef = None if coef is None else np.asarray(coef)[kept]
        if not len(terms) or len(some) < len(terms) + _FEWEST:
            return None
        h = self.half_widths[rows]
        Z, v = np.ascontiguousarray((some / sizes).T) / h, self.y[rows] / h
        found: list[Fit] = []
        starts = [] if coef is None else [(np.asarray(coef) * sizes, _QUICK_STEPS if quick else _WARM_STEPS)]
        try:
            if cold or coef is None:
                starts.append((_isotropic_l1(some / sizes, self.y[rows]), _FLAT_STEPS))
            if near is not None and np.count_nonzero(near[rows]) > 2 * len(terms):
                chosen = near[rows]
                starts.append((solve(Z[:, chosen], v[chosen], np.ones(np.count_nonzero(chosen))), 0))
            for start, steps in starts:
                found.append(Fit(self, tuple(terms), _descend(Z, v, start, steps) / sizes, limits, X))
        except np.linalg.LinAlgError:
            return None
        return min(found, key=lambda fit: fit.total)


@dataclass(frozen=True, eq=False)
class Fit:
    """A rule on a sample: its terms and coefficients, its limits, and what it costs."""

    labels: Labels
    terms: tuple[Product, ...]
    coef: FloatArray
    limits: Link = NO_LIMITS
    X: FloatArray | None = None

    def __str__(self) -> str:
        terms = [
            f"{w:.4g}" + (f" * {written(term)}" if term else "") for term, w in zip(self.terms, self.coef, strict=True)
        ]
        return " + ".join(terms).replace("+ -", "- ")

    @property
    def matrix(self) -> FloatArray:
        """The values of its terms."""
        return self.labels.sample.matrix(self.terms) if self.X is None else self.X

    @cached_property
    def predicted(self) -> FloatArray:
        """What the rule gives, on the scale of the labels."""
        return np.asarray(np.clip(self.matrix @ self.coef, self.limits.lower, self.limits.upper))

    @cached_property
    def residuals(self) -> FloatArray:
        """Labels less what the rule gives."""
        return self.labels.y - self.predicted

    @cached_property
    def bits(self) -> FloatArray:
        """What each row costs."""
        return self.labels.bits(self.residuals)

    @cached_property
    def agree(self) -> BoolArray:
        """Rows that agree."""
        return self.labels.usable & (np.abs(self.residuals) <= SLACK * self.labels.half_widths)

    @property
    def inside(self) -> BoolArray:
        """Rows that agree between the limits: a label at a limit says nothing of coefficients."""
        return self.agree & (self.predicted > self.limits.lower) & (self.predicted < self.limits.upper)

    @property
    def n_agree(self) -> int:
        """Number of rows that agree."""
        return int(np.count_nonzero(self.agree))

    @cached_property
    def n_numbers(self) -> int:
        """Coefficients, thresholds and limits; a threshold that several terms share counts once."""
        cuts: dict[object, int] = {}
        for term in self.terms:
            for factor in term:
                known = threshold_of(factor) or clip_of(factor)
                if known is not None:
                    cuts[known[:2]] = 1 + n_constants(known[0])
                elif factor.op in ("within", ">=", "<"):
                    cuts[factor.parts] = 1 + (n_constants(factor.parts[0]) if isinstance(factor.parts[0], Term) else 0)
                elif factor.op in ("min", "max") or (factor.op == "^" and factor.parts[1] == -1):
                    cuts[factor] = n_constants(factor)
        return len(self.terms) + sum(cuts.values()) + int(np.isfinite([self.limits.lower, self.limits.upper]).sum())

    @cached_property
    def total(self) -> float:
        """The score: bits of the rows, and of the numbers."""
        return float(self.bits.sum()) + self.labels.settings.number_bits * self.n_numbers

    @property
    def saved(self) -> float:
        """The bits that rows cost less than wrong ones would."""
        labels = self.labels
        return labels.n * (labels.cap + labels.settings.miss_bits) - float(self.bits.sum())

    def coefficient(self, term: Product) -> float:
        """Return the coefficient of a term, 0 if the rule does not have it."""
        return float(self.coef[self.terms.index(term)]) if term in self.terms else 0.0

    def value(self, sample: Sample) -> FloatArray:
        """Return what the rule gives for other rows, on the scale of the table."""
        values = np.clip(sample.matrix(self.terms) @ self.coef, self.limits.lower, self.limits.upper)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(values) if self.labels.scale == "log" else values)


def chance_of(predicted: FloatArray, y: FloatArray, half_unit: float) -> tuple[int, float, int]:
    """Return the rows that agree, those that would by chance, and all, except those with the most frequent label.

    By chance: half of those that a shell of one to three half-units around the rule has, or what labels of other rows
    would give.
    """
    values, counts = np.unique(np.round(y / (2 * half_unit)), return_counts=True)
    use = np.isfinite(predicted)
    if counts.max() > 1:
        use &= np.abs(predicted - 2 * half_unit * values[np.argmax(counts)]) > half_unit
    off = np.abs(predicted[use] - y[use]) / (half_unit + _ARITHMETIC * (half_unit + np.abs(y[use])))  # ties agree
    shell = np.count_nonzero((off > 1) & (off <= 3)) / 2
    labels = np.sort(y)
    high = np.searchsorted(labels, predicted[use] + half_unit, side="right")
    low = np.searchsorted(labels, predicted[use] - half_unit, side="left")
    return int(np.count_nonzero(off <= 1)), max(shell, float((high - low).sum()) / len(y)), int(use.sum())


def solve(Z: FloatArray, v: FloatArray, weights: FloatArray) -> FloatArray:
    """Return weighted least squares by normal equations, with a ridge that keeps them regular; a row of Z is a term."""
    A = Z * weights
    G = A @ Z.T
    diagonal = G.ravel()[:: len(G) + 1]
    diagonal += _RIDGE * diagonal.mean() + _TINY
    _, b, failed = dposv(G, A @ v, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError
    return np.asarray(b)


def _middle(values: FloatArray) -> float:
    """Return the upper median; np.median spends ten times as long on its arguments."""
    return float(np.partition(values, len(values) // 2)[len(values) // 2])


def _descend(Z: FloatArray, v: FloatArray, b: FloatArray, steps: int) -> FloatArray:
    """Minimise the smooth score of rows in units of their half-widths, from a start; a row of Z is a term."""
    r = v - b @ Z
    epsilon = max(_middle(np.abs(r)), 1.0)
    shrink = (1 / epsilon) ** (1 / max(steps, 1))
    for _ in range(steps):
        b = solve(Z, v, 1 / (r * r + epsilon * epsilon))
        r = v - b @ Z
        epsilon *= shrink
    for width in _NEAR:
        near = np.abs(r) <= width
        if np.count_nonzero(near) <= len(Z):
            break
        some = Z[:, near]
        b = b + solve(some, r[near], np.ones(some.shape[1]))  # of the residuals: no digits are lost
        r = v - b @ Z
    return b


def _isotropic_l1(X: FloatArray, y: FloatArray, tyler_steps: int = 2, l1_steps: int = 14) -> FloatArray:
    """Return L1 regression of rows of length one, in a basis in which they are spread nearly evenly."""
    n, d = X.shape
    Q, R = np.linalg.qr(X)
    R[np.diag_indices(d)] += 1e-12
    for _ in range(tyler_steps):
        squares = np.maximum(np.einsum("ij,ij->i", Q, Q), _TINY)
        values, vectors = np.linalg.eigh((Q / squares[:, None]).T @ Q * (d / n))
        step = (vectors / np.sqrt(np.maximum(values, 1e-6))) @ vectors.T
        Q, R = Q @ step, np.linalg.solve(step, R)
    lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", Q, Q)), _TINY)
    Z, v = np.ascontiguousarray((Q / lengths[:, None]).T), y / lengths
    b = solve(Z, v, np.ones(n))
    smallest = 1e-12 * _middle(np.abs(v)) + _TINY
    for k in range(l1_steps):
        r = np.abs(v - b @ Z)
        b = solve(Z, v, 1 / np.maximum(r, max(_middle(r) * 0.5**k, smallest)))
    return np.asarray(np.linalg.lstsq(R, b, rcond=1e-12)[0])
