r"""The short formula among those that fit the same rows, without the terms that rest on one or two of them.

Two things make a formula longer than the rule behind the table. *Directions that no row determines*: duplicate columns
or subtotals leave a family of formulas, of which the sparsest is taken (:mod:`massart.exact.sparsest`). *Thin terms*: d
coefficients take in d rows whatever these say, so that a direction that one or two rows alone determine says nothing
about a rule; its terms are left out, and listed.

In units of half-widths, let A be the agreeing rows, :math:`G = A^\top A` and :math:`H = A G^{-1} A^\top`. The rows S
alone determine a direction if :math:`H_{SS}` has the eigenvalue 1: with v its eigenvector, no other row has a part in
:math:`u = G^{-1} A_S^\top v`. Then the formula moves along u until terms vanish, and only the rows S are lost.

Whatever is found is fitted again and all rows are counted. Each step depends on the formula alone, so that a formula
that was shortened is not shortened further.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from massart.exact import Brevity, sparser_formulas
from massart.recover.polish import ROUNDING, least_squares, polish, without_dust
from massart.recover.snapping import linear_rows
from massart.rows import Agreement, BoolArray, FloatArray, Link, Verified, verify

MOST_LOST = 2.0
"""Weight of the rows that a thin term may rest on."""

_MOST_WORK = 6e9  # rows times columns squared: about a second
_ATTEMPTS = 6  # formulas that are fitted and counted in one step
_NEARLY, _MOST_POLISHED = 0.02, 2e5  # share of the rows, and numbers, for which intervals are worth a linear program
_ALONE, _NEARLY_ALONE = 1e-7, 1e-2  # what other rows say in a direction that some alone determine; if rounded
_WITHIN = 2.0  # half-widths by which a product may change if its row is to stay
_ROW_SHARE = 0.5  # of two rows that alone determine a direction, one has at least this leverage
_ZERO = 1e-9
_HUGE = 1e60  # squares of ratios of larger numbers overflow
_RANK = 1e-12


def shorten(
    X: FloatArray, y: FloatArray, counts: FloatArray, w: FloatArray, agreement: Agreement, link: Link
) -> tuple[FloatArray, tuple[tuple[int, float], ...]]:
    """Return the formula with the fewest terms among those that fit the rows of `w`, and what was left out of it.

    Parameters
    ----------
    X, y : (n, d) and (n,) arrays
        Rows of a sample, wrong ones among them.
    counts : (n,) array
        How often each row counts.
    w : (d,) array
        A polished formula.
    agreement : Agreement
    link : Link

    Returns
    -------
    coef : (d,) array
    thin : tuple of (int, float)
        Columns that were left out because they rest on one or two rows, and the weight of these rows.

    Examples
    --------
    >>> from massart.rows import levels
    >>> from massart.rows.link import IDENTITY
    >>> parts = np.random.default_rng(0).integers(1, 99, (50, 3)).astype(float)
    >>> X = np.column_stack([parts, parts[:, 0] + parts[:, 1]])
    >>> y = X[:, 2] + X[:, 3]
    >>> shorten(X, y, np.ones(50), np.array([0.25, 0.25, 1, 0.75]), levels(0, X, y)[0], IDENTITY)[0].tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    n, d = X.shape
    sizes = np.concatenate([np.abs(X).max(axis=0, initial=0.0), np.abs(w)])
    if n * d**2 > _MOST_WORK or not ((sizes == 0) | ((sizes > 1 / _HUGE) & (sizes < _HUGE))).all():
        return w, ()
    # Of columns that serve as well, that which varies least in the whole table is preferred: the constant, say.
    rank = np.argsort(np.lexsort((np.arange(d), np.ptp(X, axis=0)))) if n else np.arange(d)
    # Shares count as rows, too: a weight is never less than one on average.
    unit = min(1.0, float(counts[counts > 0].mean())) if counts.any() else 1.0
    table = _Table(X, y, counts / unit, agreement, link, rank)
    now = table.count(w)
    cleared = without_dust(X, w, ROUNDING)
    if cleared is not None:
        now = max(table.count(cleared), now, key=_weight)
    thin: dict[int, float] = {}
    for _ in range(2 * d if now.weight else 0):
        shorter = _sparser(table, now, list(thin))
        if shorter is None:
            step = _Directions(table, now).drop()
            if step is None:
                break
            shorter, lost = step
            thin |= lost
        now = shorter
    return now.coef, tuple((column, weight * unit) for column, weight in sorted(thin.items()))


@dataclass(frozen=True, slots=True)
class _Count:
    """A formula and the rows that agree with it.

    Attributes
    ----------
    coef : (d,) array
    rows : Verified
    told : (n,) boolean array
        Rows that agree and tell a product.
    weight : float
        Of the rows that agree.
    """

    coef: FloatArray
    rows: Verified
    told: BoolArray
    weight: float


def _weight(formula: _Count) -> float:
    return formula.weight


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows, and what counts as agreement."""

    X: FloatArray
    y: FloatArray
    counts: FloatArray
    agreement: Agreement
    link: Link
    rank: NDArray[np.intp]

    def count(self, w: FloatArray) -> _Count:
        """Count the rows that agree with a formula."""
        found = verify(self.X, self.y, w, self.agreement, self.link)
        # A label is decisive and agrees: so its product is decisive, too. A row of zeros has a half-width of zero.
        told = found.agree & self.link.decisive(self.y, found.half_widths) & (self.counts > 0) & (found.half_widths > 0)
        return _Count(w, found, told, float(self.counts[found.agree].sum()))

    def rows(self, now: _Count, columns: NDArray[np.intp] | None = None) -> FloatArray:
        """Return the rows that tell a product in units of their half-widths."""
        X = self.X[now.told] if columns is None else self.X[np.ix_(now.told, columns)]
        X, _ = linear_rows(X, self.y[now.told], self.link)
        return X / now.rows.half_widths[now.told, None]

    def fit(self, used: BoolArray, chosen: BoolArray, now: _Count, start: FloatArray, at_least: float) -> _Count | None:
        """Fit some columns to some rows; None if less weight than that agrees with any fit."""
        start = np.where(used, start, 0.0)
        best = self.count(start)
        present = used & self.X[chosen].any(axis=0)  # the others may matter to rows that a link clips
        if present.any():
            X, y = linear_rows(self.X[np.ix_(chosen, present)], self.y[chosen], self.link)
            units = np.exp2(-np.frexp(now.rows.half_widths[chosen])[1].astype(np.float64))
            X, y = X * units[:, None], y * units
            fitted = start.copy()
            fitted[present] = least_squares(X, y)
            cleared = without_dust(self.X, fitted, ROUNDING)
            fitted = fitted if cleared is None else cleared
            best = max(self.count(fitted), best, key=_weight)
            if at_least - _NEARLY * at_least <= best.weight < now.weight and X.size <= _MOST_POLISHED:
                best = max(best, self._polished(used, best), key=_weight)
        return best if best.weight >= at_least else None

    def _polished(self, used: BoolArray, start: _Count) -> _Count:
        """Move a formula into the intervals of rounded labels, where least squares stays outside of some."""
        agreement = self.agreement
        if not agreement.rounded:
            return start
        if agreement.inputs:
            agreement = replace(agreement, inputs=tuple(np.asarray(agreement.inputs)[used]))
        coef = np.zeros(len(used))
        coef[used], _ = polish(self.X[:, used], self.y, self.counts, start.coef[used], agreement, self.link)
        return self.count(coef)


def _sparser(table: _Table, now: _Count, thin: list[int]) -> _Count | None:
    """Return a shorter formula that no fewer rows agree with, where the rows leave a choice."""
    A = table.rows(now)
    A[:, thin] = 0.0  # what was left out stays out
    silent = ~A.any(axis=0)
    for formula in sparser_formulas(A, now.coef, table.rank)[:_ATTEMPTS]:
        # Columns that are zero in every row that tells a product may matter to rows that the link clips.
        kept = np.where(silent, now.coef, formula)
        for candidate in (formula, kept) if np.count_nonzero(kept) < np.count_nonzero(now.coef) else (formula,):
            found = table.fit(candidate != 0, now.told, now, candidate, now.weight)
            if found is not None:
                return found
    return None


@dataclass(frozen=True, slots=True)
class _Step:
    """Columns that may be left out, and the weight of the rows that are likely lost.

    Attributes
    ----------
    columns : tuple of int
    weight : float
    rows : tuple of int
        Row numbers, where they are known.
    """

    columns: tuple[int, ...]
    weight: float
    rows: tuple[int, ...] = ()

    @property
    def confirmed(self) -> float:
        """Weight of the rows beyond those that any coefficients take in."""
        return self.weight - len(self.columns)


@dataclass(slots=True)
class _Directions:
    """What the rows that tell a product say about each term in use, and each other."""

    table: _Table
    now: _Count
    used: NDArray[np.intp] = field(init=False)
    counts: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        told = self.table.X[self.now.told]
        self.used = np.flatnonzero((self.now.coef != 0) & told.any(axis=0))
        self.counts = self.table.counts[self.now.told]

    def drop(self) -> tuple[_Count, dict[int, float]] | None:
        """Return the formula without thin terms, and these; None if it has none."""
        factors = self._factors()
        if factors is None:
            return None
        steps = {step.columns: step for step in self._thin(*factors)}
        ordered = sorted(steps.values(), key=lambda step: (step.weight, -len(step.columns), step.columns))
        free = [step for step in ordered if step.confirmed <= 0]
        doubled = [step for step in ordered if step.confirmed > 0]
        # Two rows that say the same of one coefficient are thin by themselves, and evidence where there are more such.
        groups = [free, *([step] for step in free[:_ATTEMPTS]), doubled if len(doubled) == 1 else []]
        for group in filter(None, groups):
            found = self._leave_out(group)
            if found is not None:
                listed = {column: step.weight for step in group for column in step.columns}
                return found, listed if found.weight < self.now.weight else {}
        return None

    def _factors(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the rows A, orthonormal Q and the inverse of R with A = QR; None where that says nothing."""
        A = self.table.rows(self.now, self.used)
        m, k = A.shape
        if not k or m < k:
            return None
        norms = np.linalg.norm(A, axis=0)
        if not np.isfinite(norms).all():
            return None
        R = np.asarray(np.linalg.qr(A / norms, mode="r"))
        if not np.linalg.cond(R) <= 1 / _RANK:  # columns that are independent but for rounding
            return None
        inverse = np.linalg.inv(R * norms)
        return A, A @ inverse, inverse

    def _thin(self, A: FloatArray, Q: FloatArray, inverse: FloatArray) -> Iterator[_Step]:
        """Yield the terms that vanish along a direction that one row alone determines, or two."""
        leverage = (Q**2).sum(axis=1)
        left = _NEARLY_ALONE if self.table.agreement.rounded else _ALONE
        alone = 1 - leverage <= left
        for row in np.flatnonzero(alone):
            yield from self._vanishing(A, inverse @ Q[row], (int(row),))
        for row in np.flatnonzero((leverage >= _ROW_SHARE) & ~alone):
            products = Q @ Q[row]
            both = 1 - leverage - products**2 / (1 - leverage[row])  # what is left without this row
            for other in np.flatnonzero((both <= left) & ~alone):
                if other != row and (leverage[other] < _ROW_SHARE or other > row):
                    pair = np.array([row, other])
                    _, vectors = np.linalg.eigh(Q[pair] @ Q[pair].T)
                    yield from self._vanishing(A, inverse @ (vectors[:, -1] @ Q[pair]), (int(row), int(other)))

    def _vanishing(self, A: FloatArray, u: FloatArray, rows: tuple[int, ...]) -> Iterator[_Step]:
        """Yield the terms without which the formula is shortest, along a direction that these rows determine."""
        weight = float(self.counts[list(rows)].sum())
        if weight > MOST_LOST:
            return
        w = self.now.coef[self.used]
        moved = np.abs(A @ u)
        own = moved[list(rows)].max()
        moved[list(rows)] = 0.0
        present = np.abs(u) * np.abs(A).max(axis=0) > _ZERO * own
        steps = -w[present] / u[present]
        if moved.max() > _ALONE * own:
            steps = steps[np.abs(steps) * moved.max() <= _WITHIN]
        if not len(steps):
            return
        ends = w + steps[:, None] * u
        ends[np.abs(ends) <= _ZERO * np.abs(steps[:, None] * u)] = 0.0
        brevity = Brevity.of(A, w, self.table.rank[self.used])
        shortest = min(ends, key=brevity)
        yield _Step(tuple(self.used[shortest == 0].tolist()), weight, rows)

    def _leave_out(self, steps: list[_Step]) -> _Count | None:
        """Return the formula without these terms, unless it loses more rows than they say."""
        now = self.now
        used, chosen = now.coef != 0, now.told.copy()
        used[[column for step in steps for column in step.columns]] = False
        chosen[np.flatnonzero(chosen)[[row for step in steps for row in step.rows]]] = False
        found = self.table.fit(used, chosen, now, now.coef, now.weight - sum(step.weight for step in steps))
        if found is None:
            return None
        # What is left must be confirmed by more rows than are given up.
        lost = now.weight - found.weight
        return found if lost <= 0 or found.told.sum() - used.sum() > lost else None
