r"""What the rows say about the coefficients: the least-squares solution, its uncertainty, and a test of alternatives.

Rows are divided by their half-widths t, so that units, scales and the precision of the data drop out, and are
then reduced to a triangular factor: with :math:`v = w - w_0` the deviation from the formula given,

.. math::
    \sum_i \left( \frac{y_i - w \cdot x_i}{t_i} \right)^2 = \| R v - z \|^2 + \text{rest} .

All scalings are by powers of two, which round nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from massart.rows import EPS, Agreement, BoolArray, FloatArray, verify

_SMALLEST_SHARE = 2.0**-20
"""A coefficient counts for at least this share of its natural size in the weight of a row: one that is zero up to
rounding would otherwise give rows without any other term a weight of its own inverse."""

_RANK = 1e-14
_DETERMINED = 1e-20
_MANY, _WELL_CONDITIONED = 100, 1e6  # columns; and a condition number at which all directions are determined


@dataclass(frozen=True, slots=True)
class NormalEquations:
    """Rows in units of their half-widths, reduced to a triangle around a formula `start`."""

    X: FloatArray
    y: FloatArray
    agreement: Agreement
    start: FloatArray  # the formula given
    agree: BoolArray  # rows that agree with it
    R: FloatArray  # (d, d)
    z: FloatArray
    best: FloatArray  # the solution of R v = z
    inverse: FloatArray | None  # of R, where there are many well-conditioned columns: values are then given by updates
    exponents: FloatArray  # column j of the triangle is that of the rows times 2**-exponents[j]
    natural: FloatArray  # the size of each coefficient that would make its term as large as the rows
    error: float  # standard error of a row, in units of its half-width
    floor: float  # rounding of a row in float64, in the same units
    rounded: bool  # whether the labels are further from the formula than floats are

    def formula(self, fixed: Mapping[int, float]) -> FloatArray:
        """Return the best formula in which some coefficients have given values."""
        v = self._deviation(fixed)
        w: FloatArray = self.start + np.ldexp(v, -self.exponents)
        for j, value in fixed.items():
            w[j] = value
        return w

    def uncertainty(self, fixed: Iterable[int], sigmas: float) -> FloatArray:
        """Return how far each coefficient may be from the best formula; infinite where rows do not determine it."""
        free = self._free(fixed)
        spread = np.zeros(len(self.start))
        if self.inverse is not None and len(free) >= _MANY:
            known = sorted(fixed)
            own = self.inverse[known]
            left = self.inverse - self.inverse @ np.linalg.pinv(own) @ own if known else self.inverse
            lengths = np.linalg.norm(left, axis=1)[free]
            spread[free] = lengths * self._doubt(sigmas)
            return np.asarray(np.ldexp(spread, -self.exponents), dtype=np.float64)
        _, s, Vt = np.linalg.svd(self.R[:, free], full_matrices=False)
        kept = s > _RANK * len(self.start) * max(s.max(initial=0.0), EPS)
        lengths = np.sqrt(((Vt[kept] / s[kept, np.newaxis]) ** 2).sum(axis=0))
        is_open = (Vt[~kept] ** 2).sum(axis=0) > _DETERMINED  # whatever the doubt, which may be none
        spread[free] = np.where(is_open, np.inf, lengths * self._doubt(sigmas))
        return np.asarray(np.ldexp(spread, -self.exponents), dtype=np.float64)

    def _doubt(self, sigmas: float) -> float:
        """Return what a direction of unit length leaves open."""
        # Rounding may point the same way in every row, so that more rows do not average it out.
        return float(sigmas * self.error + np.sqrt(len(self.y)) * self.floor)

    def fits(self, fixed: Mapping[int, float]) -> bool:
        """Return whether the fit with these values is worse by no more than that of the true formula."""
        v = self._deviation(fixed)
        k = len(fixed)
        growth = float(np.sum((self.R @ (v - self.best)) ** 2))
        most = self.error**2 * (k + 4 * np.sqrt(2 * k) + 20) + len(self.y) * self.floor**2
        if growth > most:
            return False
        return self.agreement.rounded or self.keeps(self.formula(fixed))

    def keeps(self, w: FloatArray) -> bool:
        """Return whether every row that agreed with `start` agrees with `w`."""
        return bool((self.agreement.agree(self.X, self.y, w) | ~self.agree).all())

    def _deviation(self, fixed: Mapping[int, float]) -> FloatArray:
        """Return the scaled deviation from `start` of the best formula with these values."""
        v = np.zeros(len(self.start))
        for j, value in fixed.items():
            v[j] = np.ldexp(value - self.start[j], self.exponents[j])
        free = self._free(fixed)
        if len(free) == len(v):
            return self.best
        if self.inverse is not None and len(free) >= _MANY:
            known = sorted(fixed)
            own = self.inverse[known]
            return np.asarray(self.best + self.inverse @ (np.linalg.pinv(own) @ (v - self.best)[known]))
        if free:
            left = self.z - self.R @ v
            v[free] = np.linalg.lstsq(self.R[:, free], left, rcond=_RANK * len(self.start))[0]
        return v

    def _free(self, fixed: Iterable[int]) -> list[int]:
        return sorted(set(range(len(self.start))) - set(fixed))


def reduce_rows(X: FloatArray, y: FloatArray, w: FloatArray, agreement: Agreement) -> NormalEquations:
    """Reduce rows that agree with the formula `w` to what they say about other formulas."""
    found = verify(X, y, w, agreement)
    natural = _natural_sizes(X, np.abs(X) @ np.abs(w) + np.abs(y))
    size = np.abs(X) @ np.maximum(np.abs(w), _SMALLEST_SHARE * natural) + np.abs(y)
    half_widths = agreement.half_widths(size, w)
    informative = half_widths > 0  # a row of zeros says nothing
    units = np.frexp(half_widths[informative])[1]
    scaled = np.ldexp(X[informative], -units[:, np.newaxis])
    columns = np.frexp(np.abs(scaled).max(axis=0, initial=0.0))[1]
    scaled = np.ldexp(scaled, -columns)
    deviation = np.ldexp(found.residuals[informative], -units)

    n, d = scaled.shape
    table = np.zeros((d + 1, d + 1))
    reduced = np.linalg.qr(np.column_stack([scaled, deviation]), mode="r")
    table[: len(reduced)] = reduced
    R, z = table[:d, :d], table[:d, d]
    inverse = _inverse(R)
    best, _, rank, _ = np.linalg.lstsq(R, z, rcond=_RANK * d) if inverse is None else (inverse @ z, None, d, None)
    rest = float(table[d, d] ** 2 + np.sum((z - R @ best) ** 2))
    surplus = max(n - int(rank), 1)
    floor = _root_mean_square(np.ldexp(EPS * size[informative], -units))
    arithmetic = _root_mean_square(np.ldexp((half_widths - agreement.slack(w))[informative], -units))
    error = max(float(np.sqrt(rest / surplus)), floor)
    rounded = error > max(arithmetic, floor)
    return NormalEquations(
        X, y, agreement, w, found.agree, R, z, best, inverse, columns, natural, error, floor, rounded
    )


def _inverse(R: FloatArray) -> FloatArray | None:
    """Return the inverse of a triangle of many well-conditioned columns; None for others."""
    if len(R) < _MANY:
        return None
    inverse, failed = sla.lapack.dtrtri(R)
    if failed or not np.linalg.norm(R) * np.linalg.norm(np.triu(inverse)) < _WELL_CONDITIONED * len(R):
        return None
    return np.asarray(np.triu(inverse))


def _root_mean_square(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def _natural_sizes(X: FloatArray, size: FloatArray) -> FloatArray:
    """Return, for each column, the size of a coefficient whose largest term would be as large as a row."""
    largest = np.abs(X).max(axis=0, initial=0.0)
    sizes = np.where(X != 0, size[:, None], 0.0).max(axis=0, initial=0.0)
    sizes[sizes == 0] = 1.0  # where all terms are zero, any unit will do
    return np.asarray(np.divide(sizes, largest, out=np.zeros_like(largest), where=largest > 0))
