"""Logarithms, squares, products and ratios of two columns, proposed from a sample of the rows.

``y = c f`` and ``y = f + c`` are tried one by one for each such f, ``a / (a + b)`` among them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.audit.scan.identity import SHARE, Identity, Numbers, few, medians, not_most_frequent
from massart.rows import BoolArray, FloatArray
from massart.rules.terms import Term, column, power, product

_LEAST_ROWS = 20
_LOOSE = 2e-3  # the same of a product of rounded numbers, when it is proposed
_FIRST_ROWS, _FIRST_SHARE = 24, 0.4  # rows that rule out most products
_LEFT = 0.5  # share of the rows that a factor alone does not explain, which a product leaves over at most
_PART = -0.5  # stands for a / (a + b) among the powers of b
_KEPT = 3  # products that are proposed for one target
_IN_SPREAD = 20  # units in the spread of a column that may be rounded
_FEW_VALUES = 5  # with so few columns agree by chance


def products_of(numbers: Numbers, target: int, rng: np.random.Generator) -> list[Identity]:
    """Propose logarithms, squares, products and ratios of columns, the best first."""
    p = len(numbers.names)
    rows = np.flatnonzero(np.isfinite(numbers.values[:, target]))
    if len(rows) < _LEAST_ROWS:
        return []
    rare = rows[not_most_frequent(numbers.values[rows, target])]
    some = rng.permutation(np.union1d(few(rows, rng), few(rare, rng)))
    V = numbers.values[some]
    label = _Label.of(V[:, target], numbers.half_units()[target], np.isin(some, rare))
    found: list[tuple[int, float, dict[int, float], float]] = []

    def try_all(F: FloatArray, present: BoolArray, i: int, exponent: float, own: float = 1.0) -> None:
        """Try each column, to its own power, times column i to another."""
        for j, share, factor in zip(*label.shares(F, present), strict=True):
            exponents = {int(j): own} | ({i: exponent} if exponent else {})
            if target in exponents or (exponent and i == j) or (exponent == 1 and i < j):
                continue
            alone = max(single[k] for k in exponents)
            if share > alone and 1 - share <= _LEFT * (1 - alone):
                found.append((len(exponents), float(share), exponents, float(factor)))

    with np.errstate(all="ignore"):
        single = np.zeros(p)
        logs = np.where(V > 0, np.log(V), np.nan)
        here = np.isfinite(V)
        logged = []
        if label.n_values >= _FEW_VALUES:
            logged = [
                _logarithm(numbers, target, int(j), float(constant), float(share))
                for j, share, constant in zip(*label.shares(logs, here, shifted=True), strict=True)
                if j != target
            ]
        places, shares, _ = label.shares(V, here)
        single[places] = shares
        try_all(V**2, here, 0, 0.0, own=2.0)
        for i in range(p):
            if i != target:
                by, both = V[:, [i]], here & here[:, [i]]
                try_all(V * by, both, i, 1.0)
                try_all(V / by, both, i, -1.0)
                try_all(V / by**2, both, i, -2.0)
                try_all(V / (V + by), both, i, _PART)
    found.sort(key=lambda one: (one[0], -round(one[1], 2), sorted(one[2].items())))
    return logged + [_product(numbers, target, *one[1:]) for one in found[:_KEPT]]


def _logarithm(numbers: Numbers, target: int, j: int, constant: float, share: float) -> Identity:
    p = len(numbers.names)
    vector = np.zeros(2 * p + 1)
    vector[target], vector[p + j], vector[-1] = -1.0, 1.0, constant
    return Identity(numbers.names[target], (Term("log", (column(numbers.names[j]),)),), vector, share)


def _product(numbers: Numbers, target: int, share: float, exponents: dict[int, float], factor: float) -> Identity:
    p = len(numbers.names)
    vector = np.zeros(2 * p + 1)
    vector[p + target], vector[-1] = -1.0, np.log(abs(factor))
    above: list[Term] = []
    below: list[Term] = []
    for j, exponent in exponents.items():
        vector[p + j] = exponent
        own = column(numbers.names[j])
        if exponent == _PART:
            below.append(Term("+", (*above, own)))
        else:
            (above if exponent > 0 else below).append(power(own, abs(exponent)))
    term = product(*above)
    coarse = bool(below) and numbers.half_units()[target] >= 0.5
    terms = (Term("/", (term, product(*below))) if below else term,)
    return Identity(numbers.names[target], terms, vector, share, coarse)


@dataclass(frozen=True, eq=False)
class _Label:
    """Values of a target, those that are not the most frequent, and how far from a product they may be."""

    y: FloatArray
    rare: BoolArray
    reach: FloatArray

    @property
    def n_values(self) -> int:
        """Number of different values."""
        return len(np.unique(self.y))

    @classmethod
    def of(cls, y: FloatArray, half: float, rare: BoolArray) -> _Label:
        spread = float(np.subtract(*np.percentile(y, [90, 10]))) or float(np.ptp(y))
        return cls(y, rare, 1.05 * half + np.minimum(_LOOSE * np.abs(y), 0.01 * spread))

    def shares(
        self, F: FloatArray, present: BoolArray, *, shifted: bool = False
    ) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Return the columns of F of which ``y = c F``, or ``y = F + c``, holds in many rows, the shares, and c.

        Rows that agree on the most frequent value of y say nothing; those where F has no value although its columns
        are `present` speak against it.
        """
        first = self._shares(F[:_FIRST_ROWS], present[:_FIRST_ROWS], slice(_FIRST_ROWS), shifted)[0]
        some = np.flatnonzero(first >= _FIRST_SHARE)
        shares, c = self._shares(F[:, some], present[:, some], slice(None), shifted)
        enough = shares >= SHARE
        return some[enough], shares[enough], c[enough]

    def _shares(self, F: FloatArray, present: BoolArray, rows: slice, shifted: bool) -> tuple[FloatArray, FloatArray]:
        y, rare, reach = self.y[rows, None], self.rare[rows, None], self.reach[rows, None]
        estimates = np.where(rare, y - F if shifted else y / F, np.nan)
        estimates[~np.isfinite(estimates) | (~np.bool_(shifted) & (estimates == 0))] = np.nan
        c = medians(estimates)
        empty = np.isnan(c)
        fitted = F + c if shifted else c * F
        agree = np.abs(y - fitted) <= reach
        told = present & ~(agree & ~rare)
        agree &= rare
        shares = agree.sum(axis=0) / np.maximum(told.sum(axis=0), 5)
        met = agree if self.n_values > 2 else np.isfinite(fitted)  # of two values only one is rare
        spread = np.where(met, fitted, -np.inf).max(axis=0) - np.where(met, fitted, np.inf).min(axis=0)
        shares[empty | ~(spread >= _IN_SPREAD * np.median(reach))] = 0.0
        return shares, c
