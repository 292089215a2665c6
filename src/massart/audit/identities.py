r"""Identities among the columns of a table, proposed from a sample of its rows.

*Sums.* Each column in turn is the target of an L1 regression on the others, which half of the rows being wrong rarely
misleads. Where it meets most rows to rounding, terms are exchanged and left out while no rows are lost, so that a
*circuit* is left: columns that no longer follow a rule if one is taken away. Sums of two columns are also tried one by
one, whatever other columns do.

*Products.* ``y = c f`` and ``y = f + c`` for logarithms, squares, products and ratios f of two columns are tried one by
one, ``a / (a + b)`` among them. *Rates* are sums of counts over another count, by the regressions above.

All of them are vectors over the columns, their logarithms and the constant, ``y = 2 a b`` as
:math:`\log y - \log a - \log b = \log 2`; so one notion of independence tells which identity follows from others. A
proposal claims nothing: whoever asked for it has it judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from massart.agreement.decimals import LONG, count_decimals
from massart.exact.sparsest import pursued_formulas
from massart.l1 import l1_regression
from massart.rows import BoolArray, FloatArray
from massart.rules.terms import Term, column, power, product

SHARE = 0.55
"""Of the rows, and of those that do not have the most frequent values, that a proposal fits at least."""

_SAMPLE, _ROWS_A_COLUMN = 400, 12  # rows of an L1 regression
_SMALL_SAMPLE = 80  # rows on which each pair of columns is tried
_COMPLETE = 0.98  # share of the rows of a target that a column has to be tried with all others
_LEAST_ROWS = 20
_MOST_VIEWS = 4  # choices of rows and columns for a target, where columns have gaps
_COMPUTED = 3e-7  # relative error of numbers that were computed in float32
_LOOSE = 2e-3  # the same of a product of rounded numbers, when it is proposed
_MOST_TO_SHORTEN = 20  # terms of a sum that is worth it
_LOST = (2, 1e-3)  # rows, and share of the rows, that a shorter sum may fit less
_FIRST_ROWS, _FIRST_SHARE = 24, 0.4  # rows that rule out most products
_LEFT = 0.5  # share of the rows that a factor alone does not explain, which a product leaves over at most
_PART = -0.5  # stands for a / (a + b) among the powers of b
_KEPT = 3  # products that are proposed for one target
_IN_SPREAD = 20  # units in the spread of a column that may be rounded
_FEW_VALUES, _FEW_SHARE = 5, 0.95  # with so few values columns agree by chance, if not in nearly all rows


@dataclass(frozen=True, eq=False)
class Identity:
    """A proposal: a column and the terms that it may be a sum of.

    Attributes
    ----------
    target : str
    terms : tuple of Term
    vector : (2 p + 1,) array
        Coefficients of the columns, of their logarithms, and the constant; the sum is zero.
    share : float
        Of the rows that have all the values, how many it fits.
    coarse : bool
        Whether it is a ratio with whole numbers as target, in which small errors vanish.
    """

    target: str
    terms: tuple[Term, ...]
    vector: FloatArray
    share: float
    coarse: bool = False

    @property
    def is_sum(self) -> bool:
        """Whether its terms are columns as they stand."""
        return all(term.is_column for term in self.terms)

    @property
    def columns(self) -> tuple[str, ...]:
        """The target, and the columns that its terms read."""
        return (self.target, *dict.fromkeys(name for term in self.terms for name in term.columns()))

    @property
    def n_columns(self) -> int:
        """Columns in all."""
        return len(self.columns)

    @property
    def effort(self) -> tuple[float, ...]:
        """How hard it is to read: columns, then logarithms and products, minus signs or ratios, numbers but one."""
        inner = [term for term in self.terms if not term.is_column]
        p = len(self.vector) // 2
        own = self.vector[:-1][self.vector[:-1] != 0] / np.abs(self.vector[:-1]).max()
        if inner:
            return (
                self.n_columns,
                1,
                self.coarse,
                -round(self.share, 2),
                sum(term.op == "/" for term in inner),
                _odd(own),
            )
        others = np.delete(self.vector[:p], int(np.argmax(self.vector[:p] == -1)))
        others = others[others != 0]
        return (self.n_columns, 0, float((others < 0).sum()), _odd(others), -self.share)

    def solved(self, names: Sequence[str]) -> Identity:
        """Return a sum solved for the column that reads best: without minus signs, the total on the left."""
        if not self.is_sum:
            return self
        forms = [self]
        for j in np.flatnonzero(self.vector[: len(names)]).tolist():
            vector = self.vector / -self.vector[j]
            terms = tuple(column(names[k]) for k in np.flatnonzero(vector[: len(names)]).tolist() if k != j)
            forms.append(Identity(names[j], terms, vector, self.share))
        return min(forms, key=lambda one: one.effort)


def _odd(values: FloatArray) -> float:
    """Return how many numbers are not plus or minus one."""
    return float((np.abs(np.abs(values) - 1) > 1e-6).sum())


@dataclass(frozen=True, eq=False)
class Numbers:
    """Columns of numbers to look for identities in.

    Attributes
    ----------
    names : tuple of str
    values : (n, p) array
        NaN where a value is missing.
    """

    names: tuple[str, ...]
    values: FloatArray

    def take(self, rows: NDArray[np.intp]) -> Numbers:
        """Return some rows."""
        return Numbers(self.names, self.values[rows])

    def half_units(self) -> FloatArray:
        """Return half a unit of the last place of each column, 0 where it is no rounding."""
        return np.array([_half_unit(values[np.isfinite(values)]) for values in self.values.T])


def _half_unit(values: FloatArray) -> float:
    places = int(count_decimals(values[:500]).max(initial=0))
    if places == LONG or not values.size:
        return 0.0
    unit = 10.0**-places
    low, high = np.percentile(values, [25, 75])
    return unit / 2 if high - low >= _IN_SPREAD * unit else 0.0


def not_most_frequent(values: FloatArray) -> BoolArray:
    """Mark the values other than the most frequent one, or all where none is."""
    found, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    most = int(np.argmax(counts))
    if len(found) == 1 or counts[most] < 2:
        return np.ones(len(values), dtype=bool)
    return np.asarray(where.ravel() != most)


# --- sums -------------------------------------------------------------------------------------------------------------


def sums_of(numbers: Numbers, target: int, rng: np.random.Generator) -> Identity | None:
    """Propose a sum of columns for a target, from columns that have values where it has some, or from others.

    Parameters
    ----------
    numbers : Numbers
        A sample of the table.
    target : int
    rng : numpy.random.Generator
    """
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
    rows = _few(np.flatnonzero(np.isfinite(values[:, target])), rng)
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


def _few(rows: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    return rows if len(rows) <= _SMALL_SAMPLE else np.sort(rng.choice(rows, _SMALL_SAMPLE, replace=False))


def _share_of_mode(rest: FloatArray, rare: BoolArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return for each column the share of rows at its median, of all rows or of the rare ones, whichever is less."""
    known = np.isfinite(rest)
    centre = _medians(rest)
    at = np.abs(rest - centre) <= 1e-9 * size
    shares = at.sum(axis=0) / np.maximum(known.sum(axis=0), _LEAST_ROWS)
    of_rare = at[rare].sum(axis=0) / np.maximum(known[rare].sum(axis=0), _LEAST_ROWS / 2)
    return np.minimum(shares, of_rare), centre


def _medians(values: FloatArray) -> FloatArray:
    """Return one of the two values in the middle of each column, NaN where there is none; faster than numpy's."""
    ordered = np.sort(values, axis=0)  # NaN is last
    known = np.isfinite(values).sum(axis=0)
    return np.asarray(np.take_along_axis(ordered, (known // 2 * (known > 0))[None, :], axis=0)[0])


# --- products ---------------------------------------------------------------------------------------------------------


def products_of(numbers: Numbers, target: int, rng: np.random.Generator) -> list[Identity]:
    """Propose logarithms, squares, products and ratios of columns, the best first."""
    p = len(numbers.names)
    rows = np.flatnonzero(np.isfinite(numbers.values[:, target]))
    if len(rows) < _LEAST_ROWS:
        return []
    rare = rows[not_most_frequent(numbers.values[rows, target])]
    some = rng.permutation(np.union1d(_few(rows, rng), _few(rare, rng)))
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
        c = _medians(estimates)
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
