"""Rules that hold on parts of the rows: tiers, brackets, jumps, rules by group, rules that changed on a date.

The rows are sorted by a column and cut into overlapping windows; in each the plain rule of its terms is looked for, and
a window that straddles a threshold gives the rule of its larger side, or nothing. Then each row is given to one of the
rules found: the most rows agree, with as few changes along the column as that takes (Viterbi's dynamic programme).
Levels of a category are windows of another kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from massart.link import Link
from massart.rows import BoolArray, FloatArray
from massart.rules import terms as t
from massart.rules.sheet import Fit, Sheet, is_clear
from massart.rules.terms import Term

WINDOWS = 8
"""Windows of a column, of equal size; as many lie across their borders."""

ROWS_A_TERM = 5
"""Rows of a window for each coefficient, at least."""

CHANGE = 6.0
"""Rows that a change of rule has to gain, at least."""

CHANCE = 1e-6
"""How improbable it has to be that a window, chosen among many, speaks for its own rule by chance."""

SIMPLE = 0.98
"""Share of the rows that simple thresholds keep."""

MOST_RULES = 6
MOST_PARTS = 8

_SAME = 0.9  # share of rows in common from which two rules are the same
_PATIENCE = 2  # rounds of refitting


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A rule in the fewest terms, on a part of the rows."""

    condition: Term
    fit: Fit
    part: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """A rule in branches."""

    by: str  # the column that tells which branch holds
    branches: tuple[Branch, ...]
    net: float  # rows that agree with their branch, beyond what chance and so many coefficients explain
    choices: int = 1  # among how many borders those were chosen with rows that took no other part in the search

    @property
    def agree(self) -> BoolArray:
        """Rows that agree with their branch."""
        found = np.zeros(len(self.branches[0].part), dtype=bool)
        for branch in self.branches:
            found |= branch.part & branch.fit.agree
        return found

    def terms(self, sheet: Sheet) -> tuple[Term, ...]:
        """Return the terms in which it is one formula: hinges where branches meet, conditions elsewhere."""
        hinges = self._hinges(sheet)
        if hinges is not None:
            return hinges
        used = dict.fromkeys(term for branch in self.branches for term in branch.fit.terms)
        found: list[Term] = []
        for term in used:
            values = [_coef(branch.fit, term) for branch in self.branches]
            if _equal(sheet, term, values, self.branches):
                found.append(term)
            else:
                found += [
                    t.product(branch.condition, term)
                    for branch, value in zip(self.branches, values, strict=True)
                    if value
                ]
        constants = [float(branch.fit.coef[-1]) for branch in self.branches]
        if not _equal(sheet, None, constants, self.branches):
            found += [branch.condition for branch in self.branches[1:]]
        return tuple(found)

    def limit(self, sheet: Sheet) -> tuple[Fit, Link] | None:
        """Return the rule and its cap or floor, if one of two branches is a constant that the other one meets."""
        if len(self.branches) != 2 or self._hinges(sheet) is None:
            return None
        flat, steep = sorted((branch.fit for branch in self.branches), key=lambda fit: len(fit.terms))
        if flat.terms or len(steep.terms) == 0:
            return None
        value = float(flat.coef[-1])
        labels, counts = np.unique(sheet.y[np.abs(sheet.y - value) <= sheet.half_width], return_counts=True)
        value = float(labels[np.argmax(counts)]) if len(labels) else value
        free = self.agree & (np.abs(sheet.y - value) > sheet.half_width)
        return steep, Link(-np.inf, value) if np.median(sheet.y[free]) < value else Link(value, np.inf)

    def _hinges(self, sheet: Sheet) -> tuple[Term, ...] | None:
        """Return one slope and its changes, if the branches differ in nothing else and meet where they change."""
        if any(branch.condition.op != "within" for branch in self.branches) or len(self.branches) < 2:
            return None
        by = t.column(self.by)
        used = dict.fromkeys(term for branch in self.branches for term in branch.fit.terms)
        others = [term for term in used if term != by]
        if not all(_equal(sheet, term, [_coef(b.fit, term) for b in self.branches], self.branches) for term in others):
            return None
        choices = [_meetings(sheet, by, *pair) for pair in zip(self.branches, self.branches[1:], strict=False)]
        if not all(choices):
            return None
        # Simple thresholds first, as long as hardly a row is lost to the finest.
        chosen = [values[-1] for values in choices]
        most = self._fitting(sheet, by, others, chosen)
        for place, values in enumerate(choices):
            for value in values:
                tried = [*chosen[:place], value, *chosen[place + 1 :]]
                rows = self._fitting(sheet, by, others, tried)
                if rows >= SIMPLE * most:
                    chosen, most = tried, max(most, rows)
                    break
        return (by, *others, *(t.hinge(self.by, value) for value in chosen))

    def _fitting(self, sheet: Sheet, by: Term, others: Sequence[Term], thresholds: Sequence[float]) -> int:
        """Return how many rows follow the slopes between these thresholds."""
        terms = (by, *others, *(t.hinge(self.by, value) for value in thresholds))
        return int(np.count_nonzero(sheet.refitted(terms, self.agree).agree))


def parted(sheet: Sheet, terms: Sequence[Term], by: Term | Sequence[Term], known: Sequence[Fit] = ()) -> Parted | None:
    """Return the rule in branches by a column of numbers, or by the levels of one, if there is any.

    A branch may have these terms; rules that are `known` may be those of a branch.
    """
    if isinstance(by, Term):
        return _by_windows(sheet, terms, by, known)
    return _by_levels(sheet, terms, by, known)


def _by_windows(sheet: Sheet, terms: Sequence[Term], by: Term, known: Sequence[Fit]) -> Parted | None:
    """Return the rule in branches by a column; fewer terms, once they are known, leave room for smaller windows."""
    found = _in_windows(sheet, terms, by, known)
    while found is not None:
        fits = [branch.fit for branch in found.branches]
        used = tuple(dict.fromkeys(term for fit in fits for term in fit.terms))
        again = _in_windows(sheet, used, by, [*known, *fits]) if len(used) < len(terms) else None
        if again is None or again.net <= found.net:
            break
        found, terms = again, used
    return found


def _in_windows(sheet: Sheet, terms: Sequence[Term], by: Term, known: Sequence[Fit]) -> Parted | None:
    z = sheet.values(by)
    order = np.argsort(z, kind="stable")
    kept = sheet.independent(terms)
    rules = list(known)
    for part in _windows(order, len(kept) + 1):
        fit = sheet.fit(kept, part)
        if fit is not None and fit.net > CHANGE:
            rules.append(fit)
    rules = _distinct([*rules, *_constant(sheet)])
    best: Parted | None = None
    for _ in range(_PATIENCE):
        if len(rules) < 2:
            return best
        parts = _segments(z, order, np.array([rule.agree for rule in rules]))
        if not 2 <= len(parts) <= MOST_PARTS:
            return best
        masks = [part for part, _ in parts]
        fits = [_refitted(sheet, kept, part, rules[rule]) for part, rule in parts]
        _merge(sheet, kept, masks, fits)
        found = _of_segments(sheet, by, z, masks, fits) if len(masks) > 1 else None
        if found is None or (best is not None and found.net <= best.net):
            return best
        best, rules = found, _distinct([branch.fit for branch in found.branches])
    return best


def _windows(order: NDArray[np.intp], n_coefficients: int) -> Iterator[BoolArray]:
    n = len(order)
    size = max(n // WINDOWS, ROWS_A_TERM * n_coefficients)
    if 2 * size > n:
        return
    for start in range(0, n - size + 1, max(size // 2, 1)):
        part = np.zeros(n, dtype=bool)
        part[order[start : start + size]] = True
        yield part


def _constant(sheet: Sheet) -> list[Fit]:
    """Return the most frequent label as a rule."""
    values, counts = np.unique(sheet.y, return_counts=True)
    if counts.max() <= CHANGE:
        return []
    return [sheet.counted((), np.array([values[np.argmax(counts)]]), np.ones(len(sheet.y), dtype=bool))]


def _distinct(rules: Sequence[Fit]) -> list[Fit]:
    """Return rules of which no two agree with nearly the same rows, the best first."""
    found: list[Fit] = []
    for rule in sorted(rules, key=lambda rule: -rule.net):
        shares = (
            int(np.sum(rule.agree & other.agree)) / max(int(np.sum(rule.agree | other.agree)), 1) for other in found
        )
        if all(share < _SAME for share in shares):
            found.append(rule)
    return found[:MOST_RULES]


def _segments(z: FloatArray, order: NDArray[np.intp], agree: BoolArray) -> list[tuple[BoolArray, int]]:
    """Return the parts of the rows along a column, and the rule of each."""
    k, n = agree.shape
    gains = agree[:, order].astype(np.float64)
    score, came = gains[:, 0].copy(), np.zeros((n, k), dtype=np.intp)
    places = np.arange(k)
    for i in range(1, n):
        best = int(np.argmax(score))
        stay = score >= score[best] - CHANGE
        if z[order[i]] == z[order[i - 1]]:  # rows that are alike in the column have one rule
            stay[:] = True
        came[i] = np.where(stay, places, best)
        score = np.where(stay, score, score[best] - CHANGE) + gains[:, i]
    path = np.empty(n, dtype=np.intp)
    path[-1] = int(np.argmax(score))
    for i in range(n - 1, 0, -1):
        path[i - 1] = came[i, path[i]]
    cuts = np.flatnonzero(path[1:] != path[:-1]) + 1
    found = []
    for start, end in zip(np.r_[0, cuts], np.r_[cuts, n], strict=True):
        part = np.zeros(n, dtype=bool)
        part[order[start:end]] = True
        found.append((part, int(path[start])))
    return found


def _refitted(sheet: Sheet, terms: Sequence[Term], part: BoolArray, rule: Fit) -> Fit:
    """Return the best rule of a part, in the fewest terms."""
    fits = [sheet.counted(rule.terms, rule.coef, part)]
    again = sheet.fit(terms, part)
    if again is not None:
        fits.append(again)
    return sheet.shortened(max(fits, key=lambda fit: fit.net), part)


def _merge(sheet: Sheet, terms: Sequence[Term], parts: list[BoolArray], fits: list[Fit]) -> None:
    """Join neighbours that one rule serves about as well."""
    place = 0
    while place + 1 < len(parts):
        both = parts[place] | parts[place + 1]
        tried = (sheet.counted(fit.terms, fit.coef, both) for fit in fits[place : place + 2])
        best = max(tried, key=lambda fit: fit.net)
        left, right = fits[place], fits[place + 1]
        apart = is_clear(left, right, parts[place], CHANCE) and is_clear(right, left, parts[place + 1], CHANCE)
        if not apart or best.net >= left.net + right.net - CHANGE:
            parts[place : place + 2] = [both]
            fits[place : place + 2] = [_refitted(sheet, terms, both, best)]
        else:
            place += 1


def _narrowed(sheet: Sheet, by: Term, fits: tuple[Fit, Fit], last: float, first: float) -> tuple[float, float, int]:
    """Return the two rows of the whole table between which one rule follows on another, and how many lay between."""
    if sheet.labels is None:
        return last, first, 0
    z = by.evaluate(sheet.columns)
    rows = np.flatnonzero((z > last) & (z < first))
    if not len(rows):
        return last, first, 0
    rows = rows[np.argsort(z[rows], kind="stable")]
    left, right = (sheet.agrees(fit, rows) for fit in fits)
    gains = np.concatenate([[0], np.cumsum(left & ~right)]) - np.concatenate([[0], np.cumsum(right & ~left)])
    z = z[rows]
    gains[1:-1][z[1:] == z[:-1]] = gains.min() - 1
    cut = int(np.argmax(gains))
    below, above = z[:cut][left[:cut]], z[cut:][right[cut:]]
    return max([last, *below.tolist()]), min([first, *above.tolist()]), len(rows)


def _of_segments(
    sheet: Sheet, by: Term, z: FloatArray, parts: Sequence[BoolArray], fits: Sequence[Fit]
) -> Parted | None:
    if any(fit.net <= 0 or not (part & fit.agree).any() for part, fit in zip(parts, fits, strict=True)):
        return None
    borders: list[tuple[float, str]] = []
    choices = 1
    for place in range(len(parts) - 1):
        last = z[parts[place] & fits[place].agree].max()
        first = z[parts[place + 1] & fits[place + 1].agree].min()
        if last >= first:
            last, first = z[parts[place]].max(), z[parts[place + 1]].min()
        last, first, between = _narrowed(sheet, by, (fits[place], fits[place + 1]), float(last), float(first))
        choices *= between + 1
        borders.append(border(last, first, whole=str(by.parts[0]) in sheet.columns.dates))
    name = str(by.parts[0])
    branches = []
    for place, (part, fit) in enumerate(zip(parts, fits, strict=True)):
        low_end = borders[place - 1] if place else None
        high_end = borders[place] if place < len(borders) else None
        closed = "left" if "left" in {end[1] for end in (low_end, high_end) if end is not None} else "right"
        low, high = (None if end is None else _as_written(sheet, name, end[0]) for end in (low_end, high_end))
        condition = t.within(name, low, high, closed)
        inside = sheet.values(condition) > 0 if low_end or high_end else part
        branches.append(Branch(condition, fit, inside))
    net = sum(fit.net for fit in fits) - CHANGE * len(borders)
    return Parted(name, tuple(branches), net, choices)


def _as_written(sheet: Sheet, name: str, value: float) -> float | str:
    """Return a limit as people write it: that of a date is a date."""
    return str(np.datetime64(round(value), "D")) if name in sheet.columns.dates else value


def border(low: float, high: float, *, whole: bool = False) -> tuple[float, str]:
    """Return the simplest number at which a rule changes between two rows, and the side to which it belongs.

    Dates are whole days, of which none is simpler than another: the first row of the new rule tells.

    Examples
    --------
    >>> border(19_712.3, 20_444.0), border(99.0, 100.0), border(0.21, 0.34)
    ((20000.0, 'left'), (100.0, 'left'), (0.3, 'left'))
    """
    if whole:
        return high, "left"
    for exponent in range(18, -12, -1):
        step = 10.0**exponent
        multiple = ceil(low / step) if ceil(low / step) * step > low else floor(low / step) + 1
        value = float(f"{multiple * step:.12g}")
        if low < value <= high:
            return value, "left"
    return high, "left"


def _coef(fit: Fit, term: Term) -> float:
    return float(fit.coef[fit.terms.index(term)]) if term in fit.terms else 0.0


def _equal(sheet: Sheet, term: Term | None, values: Sequence[float], branches: Sequence[Branch]) -> bool:
    """Tell whether coefficients are the same up to what rounded labels leave open."""
    spread = max(values) - min(values)
    if spread == 0:
        return True
    size = 1.0 if term is None else float(np.abs(sheet.values(term)).max())
    fewest = int(min(np.count_nonzero(branch.part & branch.fit.agree) for branch in branches))
    return bool(spread * size <= 8 * (sheet.half_width + 1e-9 * np.abs(sheet.y).max()) / np.sqrt(max(fewest, 1)))


def _meetings(sheet: Sheet, by: Term, left: Branch, right: Branch) -> list[float]:
    """Return where two branches may have the same value, simple numbers first, if one follows on the other there."""
    slope = _coef(right.fit, by) - _coef(left.fit, by)
    if slope == 0:
        return []
    z = sheet.values(by)
    low, high = z[left.part & left.fit.agree].max(), z[right.part & right.fit.agree].min()
    meeting = -float(right.fit.coef[-1] - left.fit.coef[-1]) / slope
    slack = 4 * sheet.half_width / abs(slope) + 1e-9 * abs(meeting)
    if not min(low, high) - slack <= meeting <= max(low, high) + slack:
        return []
    errors = [width * slack + 1e-12 * abs(meeting) for width in (2.0, 0.5, 0.1, 0.02, 0.004)]
    return [*dict.fromkeys(border(meeting - error, meeting + error)[0] for error in errors), meeting]


def _by_levels(sheet: Sheet, terms: Sequence[Term], levels: Sequence[Term], known: Sequence[Fit]) -> Parted | None:
    kept = sheet.independent(terms)
    parts = [sheet.values(level) > 0 for level in levels]
    rules = list(known)
    for part in parts:
        fit = sheet.fit(kept, part)
        if fit is not None and fit.net > CHANGE:
            rules.append(fit)
    rules = _distinct([*rules, *_constant(sheet)])
    if len(rules) < 2:
        return None
    branches = []
    for level, part in zip(levels, parts, strict=True):
        if not part.any():
            continue
        own = _refitted(sheet, kept, part, max(rules, key=lambda rule: np.count_nonzero(rule.agree & part)))
        if not is_clear(own, rules[0], part):
            own = sheet.shortened(sheet.counted(rules[0].terms, rules[0].coef, part), part)
        branches.append(Branch(level, own, part))
    if not 2 <= len(branches) or len(_distinct([branch.fit for branch in branches])) < 2:
        return None
    net = sum(branch.fit.net for branch in branches)
    return Parted(str(levels[0].parts[0]), tuple(branches), net)
