"""Sums of columns, proposed from a sample of the rows.

Each column in turn is the target of an L1 regression on the others, which half of the rows being wrong rarely misleads.
Where it meets most rows to rounding, terms are exchanged and left out while no rows are lost, so that a *circuit* is
left: columns that no longer follow a rule if one is taken away. Sums of two columns are also tried one by one, whatever
other columns do. *Rates* are sums of counts over another count, by the same regressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.audit.scan.identity import SHARE, Identity, Numbers, few, medians, not_most_frequent
from massart.exact.sparsest import pursued_formulas
from massart.l1 import l1_regression
from massart.rows import BoolArray, FloatArray
from massart.rules.terms import Term, column

_SAMPLE, _ROWS_A_COLUMN = 400, 12  # rows of an L1 regression
_COMPLETE = 0.98  # share of the rows of a target that a column has to be tried with all others
_LEAST_ROWS = 20
_MOST_VIEWS = 4  # choices of rows and columns for a target, where columns have gaps
_COMPUTED = 3e-7  # relative error of numbers that were computed in float32
_MOST_TO_SHORTEN = 20  # terms of a sum that is worth it
_LOST = (2, 1e-3)  # rows, and share of the rows, that a shorter sum may fit less
_IN_SPREAD = 20  # units in the spread of a column that may be rounded
_FEW_VALUES, _FEW_SHARE = 5, 0.95  # with so few values columns agree by chance, if not in nearly all rows


def sums_of(numbers: Numbers, target: int, rng: np.random.Generator) -> Identity | None:
    """Propose a sum of columns for a target, from columns that have values where it has some, or from others."""
    halves = numbers.half_units()
    for rows, features in _views(numbers.values, target):
        X, y = numbers.values[np.ix_(rows, features)], numbers.values[rows, target]
        rules = _Rows(X, y, halves[features], halves[target])
        found = rules.circuit(rng)
        if found is None:
            continue
        w, constant = found
        vector = np.zeros(2 * len(numbers.names) + 1)
        vector[features], vector[target], vector[-1] = w, -1.0, constant
        terms = tuple(column(numbers.names[j]) for j, c in zip(features, w, strict=True) if c)
        return Identity(numbers.names[target], terms, vector, float(rules.fits(w, constant).mean()))
    return None


def _views(values: FloatArray, target: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield rows and columns that have no gaps in them: all rows of the target first, then those of a rarer column."""
    present = np.isfinite(values)
    barred = np.arange(values.shape[1]) == target
    seen: set[bytes] = set()
    shares = present[present[:, target]].mean(axis=0)
    rarer = [j for j in np.argsort(-shares, kind="stable") if shares[j] < _COMPLETE and not barred[j]]
    for extra in [None, *rarer]:
        own = present[:, target] if extra is None else present[:, target] & present[:, extra]
        usable = ~barred & (present[own].mean(axis=0) >= _COMPLETE) if own.any() else barred & False
        rows = np.flatnonzero(own & present[:, usable].all(axis=1))
        key = rows.tobytes()
        if len(rows) < _LEAST_ROWS or not usable.any() or key in seen:
            continue
        seen.add(key)
        features = np.flatnonzero(usable)
        features = features[np.ptp(values[np.ix_(rows, features)], axis=0) > 0]
        if len(features):
            yield rows, features
        if len(seen) >= _MOST_VIEWS:
            return


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows without gaps, and what rounding explains in them."""

    X: FloatArray
    y: FloatArray
    halves: FloatArray
    half: float

    def take(self, rows: NDArray[np.intp]) -> _Rows:
        return _Rows(self.X[rows], self.y[rows], self.halves, self.half)

    def reach(self, w: FloatArray) -> FloatArray:
        size = np.abs(self.y) + np.abs(self.X) @ np.abs(w)
        return np.asarray(1.05 * (self.half + np.abs(w) @ self.halves) + _COMPUTED * size)

    def fits(self, w: FloatArray, constant: float) -> BoolArray:
        return np.asarray(np.abs(self.y - self.X @ w - constant) <= self.reach(w))

    def enough(self, w: FloatArray, constant: float) -> bool:
        """Tell whether a sum says more than the most frequent value and than rounding, and in most rows."""
        fits, n_terms = self.fits(w, constant), int(np.count_nonzero(w))
        if not n_terms or not self._enough(fits, 3 * n_terms + 5):
            return False
        return bool(np.ptp(self.y[fits]) >= _IN_SPREAD * np.median(self.reach(w)))

    def _enough(self, fits: BoolArray, least: int = 0) -> bool:
        rare = not_most_frequent(self.y)
        share = SHARE if len(np.unique(self.y)) >= _FEW_VALUES else _FEW_SHARE
        return bool(fits.mean() >= share and (fits & rare).sum() >= max(share * rare.sum(), least))

    def regress(self, columns: NDArray[np.intp]) -> tuple[FloatArray, float]:
        """Return the L1 regression on some columns, as coefficients of all."""
        scale = np.abs(self.X[:, columns]).max(axis=0)
        scale[scale == 0] = 1.0
        A = np.column_stack([self.X[:, columns] / scale, np.ones(len(self.y))])
        size = float(np.abs(self.y).max()) or 1.0
        found = l1_regression(A, self.y / size).coef * size
        w = np.zeros(self.X.shape[1])
        w[columns] = found[:-1] / scale
        return w, float(found[-1])

    def circuit(self, rng: np.random.Generator) -> tuple[FloatArray, float] | None:
        """Return a sum of as few columns as can be, or None."""
        n, d = self.X.shape
        if 2 * d > n:  # any sum of so many columns fits: those that vary with the target
            ranks = np.argsort(np.argsort(np.column_stack([self.X, self.y]), axis=0), axis=0)
            near = np.nan_to_num(np.abs(np.atleast_2d(np.corrcoef(ranks.T))[-1, :-1]))
            chosen = np.sort(np.argsort(-near)[: n // 2])
            inner = _Rows(self.X[:, chosen], self.y, self.halves[chosen], self.half).circuit(rng)
            if inner is None:
                return None
            w = np.zeros(d)
            w[chosen] = inner[0]
            return w, inner[1]
        size = max(_SAMPLE, _ROWS_A_COLUMN * d)
        some = self if n <= size else self.take(rng.choice(n, size, replace=False))
        found = some._shortest()
        if found is None or n <= size:
            return found
        off = np.flatnonzero(~self.fits(*found))
        if 2 < len(off) < 0.4 * n:  # rows that use a rare term are few, and among these
            half = rng.choice(off, min(len(off), size // 3), replace=False)
            again = self.take(np.union1d(half, rng.choice(n, size, replace=False)))._shortest()
            if again is not None and self.fits(*again).sum() > self.fits(*found).sum() + 2:
                found = again
        return found

    def _shortest(self) -> tuple[FloatArray, float] | None:
        w, constant = self.regress(np.arange(self.X.shape[1]))
        fits = self.fits(w, constant)
        n, d = self.X.shape
        if fits.sum() - d < 0.4 * (n - d) or not self._enough(fits):
            return None
        best = (w, constant)
        least = fits.sum() - _LOST[0] - _LOST[1] * n
        for used in self._fewer(w, fits):
            other = self.regress(used)
            if self.fits(*other).sum() >= least:
                best = other
                break
        if np.count_nonzero(best[0]) > _MOST_TO_SHORTEN:
            return None
        best = self._without_needless(best, least)
        return best if self.enough(*best) else None

    def _fewer(self, w: FloatArray, fits: BoolArray) -> list[NDArray[np.intp]]:
        """Return columns that may do, the fewest first, where some are sums of others."""
        reach = self.reach(w)[fits]
        reach = np.maximum(reach, 1e-3 * float(reach.max()) or 1.0)  # rows of zeros have none
        A = (self.X[fits] - self.X[fits].mean(axis=0)) / reach[:, None]  # a constant costs no column
        present = np.flatnonzero(A.any(axis=0))
        found = [present[formula != 0] for formula in pursued_formulas(A[:, present], w[present])]
        return sorted((used for used in found if len(used)), key=len)[:2]

    def _without_needless(self, best: tuple[FloatArray, float], least: float) -> tuple[FloatArray, float]:
        """Leave out terms, the smallest first, while no more rows are lost."""
        spread = np.subtract(*np.percentile(self.X, [90, 10], axis=0)) + 1e-3 * np.ptp(self.X, axis=0)
        sizes = np.abs(best[0]) * spread
        for j in np.argsort(sizes, kind="stable"):
            used = np.flatnonzero(best[0])
            if best[0][j] == 0 or len(used) == 1:
                continue
            other = self.regress(used[used != j])
            if self.fits(*other).sum() >= least:
                best = other
        return best


def pairs_of(numbers: Numbers, target: int, rng: np.random.Generator) -> Identity | None:
    """Propose a sum or difference of two columns and a constant, also where L1 regressions are misled."""
    values, p = numbers.values, len(numbers.names)
    rows = few(np.flatnonzero(np.isfinite(values[:, target])), rng)
    if len(rows) < _LEAST_ROWS:
        return None
    V, y = values[rows], values[rows, target]
    varied = np.array([len(np.unique(own[np.isfinite(own)])) >= _FEW_VALUES for own in V.T])
    if not varied[target]:
        return None
    rare = not_most_frequent(y)
    best: tuple[float, int, int, float, float] | None = None
    for i in np.flatnonzero(varied).tolist():
        for sign in (1.0, -1.0):
            rest = y[:, None] - V[:, [i]] - sign * V
            with np.errstate(invalid="ignore"):
                shares, constants = _share_of_mode(rest, rare, np.abs(y)[:, None] + np.abs(V[:, [i]]) + np.abs(V))
            shares[~varied] = 0.0
            shares[[target, i]] = 0.0
            shares[: i if sign > 0 else 0] = 0.0
            j = int(np.argmax(shares))
            if i != target and shares[j] >= SHARE and (best is None or shares[j] > best[0]):
                best = (float(shares[j]), i, j, sign, float(constants[j]))
    if best is None:
        return None
    _, i, j, sign, constant = best
    vector = np.zeros(2 * p + 1)
    vector[[target, i, j]], vector[-1] = (-1.0, 1.0, sign), constant
    off = values[:, i] + sign * values[:, j] + constant - values[:, target]
    share = float((np.abs(off) <= 1e-9 * np.abs(values[:, [target, i, j]]).sum(axis=1))[np.isfinite(off)].mean())
    return Identity(numbers.names[target], (column(numbers.names[i]), column(numbers.names[j])), vector, share)


def _share_of_mode(rest: FloatArray, rare: BoolArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return for each column the share of rows at its median, of all rows or of the rare ones, whichever is less."""
    known = np.isfinite(rest)
    centre = medians(rest)
    at = np.abs(rest - centre) <= 1e-9 * size
    shares = at.sum(axis=0) / np.maximum(known.sum(axis=0), _LEAST_ROWS)
    of_rare = at[rare].sum(axis=0) / np.maximum(known[rare].sum(axis=0), _LEAST_ROWS / 2)
    return np.minimum(shares, of_rare), centre


def rates_of(numbers: Numbers, target: int, rng: np.random.Generator) -> Identity | None:
    """Propose a sum of several columns over another one, such as a rate of counts, for a target with decimals."""
    values, p = numbers.values, len(numbers.names)
    half = numbers.half_units()[target]
    if not 0 < half < 0.5:
        return None
    for below in range(p):
        by = values[:, below]
        rows = np.flatnonzero(np.isfinite(values[:, target]) & (by > 0))
        if below == target or len(rows) < _LEAST_ROWS or (by[rows] % 1).any() or len(np.unique(by[rows])) < _IN_SPREAD:
            continue
        whole = np.isfinite(values[rows]).all(axis=0) & (np.nan_to_num(values[rows]) % 1 == 0).all(axis=0)
        whole[[target, below]] = False
        features = np.flatnonzero(whole)
        X = values[np.ix_(rows, features)] / by[rows, None]
        found = (
            _Rows(X, values[rows, target], np.zeros(len(features)), half).circuit(rng) if len(features) > 1 else None
        )
        if found is None or np.count_nonzero(found[0]) < 2:
            continue
        w, constant = found
        vector = np.zeros(2 * p + 1)
        vector[p + target], vector[p + below], vector[p + features] = -1.0, -1.0, w / np.abs(w).max()
        over = column(numbers.names[below])
        terms = tuple(Term("/", (column(numbers.names[j]), over)) for j, c in zip(features, w, strict=True) if c)
        share = float(np.mean(np.abs(values[rows, target] - X @ w - constant) <= 2 * half))
        return Identity(numbers.names[target], terms, vector, share)
    return None
