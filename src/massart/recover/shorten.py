r"""The form its author would write: the shortest formula that fits the same rows, in exact numbers.

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
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from massart.exact import Brevity, Fractions, exact_numbers, sparser_formulas
from massart.recover.polish import Candidate, least_squares, without_dust
from massart.rows import SQUARE_IS_FINITE, Agreement, BoolArray, FloatArray, Link, Sample, verify

MOST_ROWS, MOST_ROUNDED_ROWS = 2_000, 20_000
"""Rows that are asked: of exact labels, and of rounded ones, which tell less each."""

_PLAIN_DIGITS = 12
_STRAY = 1e-12  # relative size of a term that is nothing but rounding of the others

MOST_LOST = 2.0
"""Weight of the rows that a thin term may rest on."""

_MOST_WORK = 6e9  # rows times columns squared: about a second
_ATTEMPTS = 6  # formulas that are fitted and counted in one step
_ALONE, _NEARLY_ALONE = 1e-7, 1e-2  # what other rows say in a direction that some alone determine; if rounded
_WITHIN = 2.0  # half-widths by which a product may change if its row is to stay
_ROW_SHARE = 0.5  # of two rows that alone determine a direction, one has at least this leverage
_ZERO = 1e-9
_HUGE = 1e60  # squares of ratios of larger numbers overflow
_RANK = 1e-12


def shorten(
    sample: Sample, w: FloatArray, agreement: Agreement, link: Link
) -> tuple[FloatArray, tuple[tuple[int, float], ...]]:
    """Return the formula with the fewest terms among those that fit the rows of `w`, and what was left out of it.

    Parameters
    ----------
    sample : Sample
        Wrong rows among them.
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
    >>> from massart.rows import IDENTITY, levels
    >>> parts = np.random.default_rng(0).integers(1, 99, (50, 3)).astype(float)
    >>> X = np.column_stack([parts, parts[:, 0] + parts[:, 1]])
    >>> sample = Sample(X, X[:, 2] + X[:, 3], None, np.arange(50))
    >>> shorten(sample, np.array([0.25, 0.25, 1, 0.75]), levels(0, X, sample.y)[0], IDENTITY)[0].tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    X = sample.X
    n, d = X.shape
    sizes = np.concatenate([np.abs(X).max(axis=0, initial=0.0), np.abs(w)])
    if n * d**2 > _MOST_WORK or not ((sizes == 0) | ((sizes > 1 / _HUGE) & (sizes < _HUGE))).all():
        return w, ()
    # Of columns that serve as well, that which varies least in the whole table is preferred: the constant, say.
    rank = np.argsort(np.lexsort((np.arange(d), np.ptp(X, axis=0)))) if n else np.arange(d)
    table = _Table(sample, agreement, link, rank)
    now = table.count(w)
    cleared = without_dust(X, w)
    if cleared is not None:
        now = max(table.count(cleared), now, key=_weight)
    thin: dict[int, float] = {}
    for _ in range(2 * d if now.weight else 0):
        shorter = _sparser(table, now, list(thin))
        if shorter is None:
            step = _without_thin_terms(table, now)
            if step is None:
                break
            shorter, lost = step
            thin |= lost
        now = shorter
    return now.coef, tuple(sorted(thin.items()))


_weight = attrgetter("weight")


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows, and what counts as agreement."""

    sample: Sample
    agreement: Agreement
    link: Link
    rank: NDArray[np.intp]

    def count(self, w: FloatArray) -> Candidate:
        """Count the rows that agree with a formula."""
        return Candidate.of(self.sample, w, self.agreement, self.link)

    def informative(self, now: Candidate) -> BoolArray:
        """Return the rows that agree and tell a product; a row of zeros has a half-width of zero."""
        return now.informative & (self.sample.counts > 0) & (now.rows.half_widths > 0)

    def rows(self, now: Candidate, columns: NDArray[np.intp] | slice = slice(None)) -> FloatArray:
        """Return the rows that tell a product in units of their half-widths."""
        informative = self.informative(now)
        X, _ = linear_rows(self.sample.X[informative][:, columns], self.sample.y[informative], self.link)
        return X / now.rows.half_widths[informative, None]

    def fit(
        self, used: BoolArray, chosen: BoolArray, now: Candidate, start: FloatArray, at_least: float
    ) -> Candidate | None:
        """Fit some columns to some rows; None if less weight than that agrees with any fit."""
        start = np.where(used, start, 0.0)
        best = self.count(start)
        all_rows, y = self.sample.X, self.sample.y
        present = used & all_rows[chosen].any(axis=0)  # the others may matter to rows that a link clips
        if present.any():
            X, labels = linear_rows(all_rows[np.ix_(chosen, present)], y[chosen], self.link)
            units = np.exp2(-np.frexp(now.rows.half_widths[chosen])[1].astype(np.float64))
            fitted = start.copy()
            fitted[present] = least_squares(X * units[:, None], labels * units)
            cleared = without_dust(all_rows, fitted)
            best = max(self.count(fitted if cleared is None else cleared), best, key=_weight)
        return best if best.weight >= at_least else None


def _sparser(table: _Table, now: Candidate, thin: list[int]) -> Candidate | None:
    """Return a shorter formula that no fewer rows agree with, where the rows leave a choice."""
    A = table.rows(now)
    A[:, thin] = 0.0  # what was left out stays out
    silent = ~A.any(axis=0)
    for formula in sparser_formulas(A, now.coef, table.rank):
        # Columns that are zero in every row that tells a product may matter to rows that the link clips.
        kept = np.where(silent, now.coef, formula)
        for candidate in (formula, kept) if np.count_nonzero(kept) < np.count_nonzero(now.coef) else (formula,):
            found = table.fit(candidate != 0, table.informative(now), now, candidate, now.weight)
            if found is not None:
                return found
    return None


def _without_thin_terms(table: _Table, now: Candidate) -> tuple[Candidate, dict[int, float]] | None:
    """Return the formula without thin terms, and these; None if it has none."""
    steps = {step.columns: step for step in _thin(table, now)}
    ordered = sorted(steps.values(), key=lambda step: (step.weight, -len(step.columns), step.columns))
    # Rows beyond those that any coefficients take in confirm the columns.
    free = [step for step in ordered if step.weight <= len(step.columns)]
    doubled = [step for step in ordered if step.weight > len(step.columns)]
    # Two rows that say the same of one coefficient are thin by themselves, and evidence where there are more such.
    groups = [free, *([step] for step in free[:_ATTEMPTS]), doubled if len(doubled) == 1 else []]
    for group in filter(None, groups):
        found = _leave_out(table, now, group)
        if found is not None:
            listed = {column: step.weight for step in group for column in step.columns}
            return found, listed if found.weight < now.weight else {}
    return None


class _ThinTerms(NamedTuple):
    """Columns that may be left out, the weight of the rows that are likely lost, and the numbers of these rows."""

    columns: tuple[int, ...]
    weight: float
    rows: tuple[int, ...]


def _thin(table: _Table, now: Candidate) -> Iterator[_ThinTerms]:
    """Yield the terms that vanish along a direction that one row alone determines, or two."""
    used = np.flatnonzero((now.coef != 0) & table.sample.X[table.informative(now)].any(axis=0))
    A = table.rows(now, used)
    if not len(used) or len(A) < len(used):
        return
    norms = np.linalg.norm(A, axis=0)
    if not np.isfinite(norms).all():
        return
    R = np.asarray(np.linalg.qr(A / norms, mode="r"))
    if not np.linalg.cond(R) <= 1 / _RANK:  # columns that are independent but for rounding
        return
    inverse = np.linalg.inv(R * norms)
    Q = A @ inverse
    leverage = (Q**2).sum(axis=1)
    left = _NEARLY_ALONE if table.agreement.rounded else _ALONE
    alone = 1 - leverage <= left
    for row in np.flatnonzero(alone):
        yield from _vanishing(table, now, used, A, inverse @ Q[row], (int(row),))
    for row in np.flatnonzero((leverage >= _ROW_SHARE) & ~alone):
        both = 1 - leverage - (Q @ Q[row]) ** 2 / (1 - leverage[row])  # what is left without this row
        for other in np.flatnonzero((both <= left) & ~alone):
            if other != row and (leverage[other] < _ROW_SHARE or other > row):
                pair = np.array([row, other])
                _, vectors = np.linalg.eigh(Q[pair] @ Q[pair].T)
                direction = inverse @ (vectors[:, -1] @ Q[pair])
                yield from _vanishing(table, now, used, A, direction, (int(row), int(other)))


def _vanishing(
    table: _Table, now: Candidate, used: NDArray[np.intp], A: FloatArray, u: FloatArray, rows: tuple[int, ...]
) -> Iterator[_ThinTerms]:
    """Yield the terms without which the formula is shortest, along a direction u that these rows determine."""
    weight = float(table.sample.counts[table.informative(now)][list(rows)].sum())
    if weight > MOST_LOST:
        return
    w = now.coef[used]
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
    shortest = min(ends, key=Brevity.of(A, w, table.rank[used]))
    yield _ThinTerms(tuple(used[shortest == 0].tolist()), weight, rows)


def _leave_out(table: _Table, now: Candidate, steps: list[_ThinTerms]) -> Candidate | None:
    """Return the formula without these terms, unless it loses more rows than they say."""
    used, chosen = now.coef != 0, table.informative(now)
    used[[column for step in steps for column in step.columns]] = False
    chosen[np.flatnonzero(chosen)[[row for step in steps for row in step.rows]]] = False
    found = table.fit(used, chosen, now, now.coef, now.weight - sum(step.weight for step in steps))
    if found is None:
        return None
    # What is left must be confirmed by more rows than are given up.
    lost = now.weight - found.weight
    return found if lost <= 0 or table.informative(found).sum() - used.sum() > lost else None


def snap(
    sample: Sample, agree: BoolArray, w: FloatArray, agreement: Agreement, link: Link
) -> tuple[FloatArray, Fractions]:
    """Return the formula in exact numbers where the rows that agree with `w` support them, and these numbers.

    Parameters
    ----------
    sample : Sample
        Wrong rows among them.
    agree : (n,) boolean array
        Those that agree with `w`.
    w : (d,) array
        A polished formula.
    agreement : Agreement
    link : Link
    """
    X, y = sample.X, sample.y
    informative = link.decisive(y, verify(X, y, w, agreement, link).half_widths)
    if not agreement.rounded:
        informative &= agree
    informative[np.flatnonzero(informative)[MOST_ROUNDED_ROWS if agreement.rounded else MOST_ROWS :]] = False
    used = w != 0  # what was left out, because rows do not determine it, say, is not an unknown
    if informative.sum() <= used.sum():  # so few rows follow any formula
        return w, (None,) * len(w)
    if not used.any():
        return w, (Fraction(0),) * len(w)
    rows, labels = linear_rows(X[np.ix_(informative, used)], y[informative], link)
    if agreement.inputs:
        agreement = replace(agreement, inputs=tuple(np.asarray(agreement.inputs)[used]))
    exact = exact_numbers(rows, labels, w[used], agreement) if _has_squares(rows, labels, w[used]) else None
    if exact is None:
        return w, tuple(None if own else Fraction(0) for own in used)
    coef = np.zeros(len(w))
    coef[used] = exact.coef
    numbers = iter(exact.fractions)
    return coef, tuple(next(numbers) if own else Fraction(0) for own in used)


def linear_rows(X: FloatArray, y: FloatArray, link: Link) -> tuple[FloatArray, FloatArray]:
    """Return rows with the product w.x for a label; beyond the limits of a link with a slope, that times the slope."""
    if not link.slope:
        return X, y
    limit = np.clip(y, link.lower, link.upper)
    beyond = y != limit
    slopes = np.where(beyond, link.slope, 1.0)
    return X * slopes[:, None], np.where(beyond, y - limit * (1 - link.slope), y)


def _has_squares(X: FloatArray, y: FloatArray, w: FloatArray) -> bool:
    """Return whether squares of the numbers neither overflow nor vanish."""
    sizes = np.abs([X.max(), X.min(), y.max(), y.min(), *w])
    return bool(((sizes == 0) | ((sizes > 1 / SQUARE_IS_FINITE) & (sizes <= SQUARE_IS_FINITE))).all())


def hold_to_exact_arithmetic(
    rows: Sample, w: FloatArray, fractions: Fractions, agreement: Agreement, link: Link
) -> tuple[FloatArray, Fractions, bool]:
    """Return the formula in numbers so exact that rows with large terms may be judged by them, and whether it is.

    Where terms are so large that a unit of the last place is within what computed coefficients leave, rows that are off
    by some units vouch for the wrong digits. So numbers of `_PLAIN_DIGITS` digits compete, and rows are counted as
    exact numbers allow.
    """
    known = all(value is not None for value in fractions)
    X, y, counts = rows.X, rows.y, rows.counts
    sizes = np.abs(X) @ np.abs(w) + np.abs(y)
    if agreement.scales_up_to(float(sizes.max())):
        return w, fractions, known
    terms = np.abs(w) * np.abs(X).max(axis=0)
    slight = terms <= _STRAY * terms.max()
    exact = tuple(Fraction(0) if s else Fraction(f"{c:.{_PLAIN_DIGITS}g}") for c, s in zip(w, slight, strict=True))
    candidates = [(np.array([float(value) for value in exact]), exact)] + [(w, fractions)] * known
    weights = [float(counts[agreement.agree(X, y, coef, link)].sum()) for coef, _ in candidates]
    best = int(np.argmax(weights))
    if 2 * weights[best] < float(counts[agreement.uncapped.agree(X, y, w, link)].sum()):
        return w, fractions, False
    return *candidates[best], True
