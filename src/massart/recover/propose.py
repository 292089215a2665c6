r"""The best formula of a sample: L1 regression in radial-isotropic position, the search, the polish, at each level.

On each piece of the decomposition of the rows (Algorithm 2), L1 regression (Algorithm 1; where a link clips,
alternating with the active rows) gives an answer, and where no majority follows it the search (:mod:`massart.search`)
looks for a better one. Nothing is proven on the way, and need not be: any answer is polished by least squares on the
rows that agree with it, and then counted.

**Level.** Labels may be exact or rounded. The right level is where the residuals have an edge: many rows inside, few
just outside. At half-widths t, the rows with residuals in (t, 3t] tell how many would lie within t by chance: half of
them. A looser level is tried where rows crowd just outside of the tighter one, and taken where it gains more rows than
chance gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import erf

from massart.isotropy import RadialIsotropy, decompose
from massart.paper import algorithm_2
from massart.recover.polish import NEAR, polish
from massart.recover.sharpness import is_sharp
from massart.rows import Agreement, BoolArray, Callback, FloatArray, Level, Link, Sample, Verified, silent, verify
from massart.search import Candidate as Fitted
from massart.search import Consensus, Limits, alternate, improve_coordinates
from massart.search import search as search_consensus

SEARCH_ROUNDS = 7
SEARCH_ROWS_PER_COLUMN, SMALLEST_SEARCH = 16, 400
"""Rows that the search looks at, at least."""

PLENTY, FEW_ROUNDS = 12, 2
PLENTY_CLIPPED, FEW_CLIPPED = 48, 3
"""With so many rows a column, so many rounds find what there is to find."""

FIRST_ALTERNATIONS = 12
EDGE, UNITS_IN_SPREAD, FILLED, PILED = 0.5, 10, 0.3, 0.8
"""At the right level at most this share of rows lies just outside of the edge, of those just inside; and half of the
labels span so many half-widths. Where columns are rounded, residuals reach this share of them; where floats are, most
exceed it if labels were computed in many steps. And no more than half lie in the last fifth of their half-width, unless
half as many agree exactly: of quarters of an hour at 54.50 every second one ends in half a cent."""

HIDDEN = 100.0
"""Half-widths that every term has at least, where labels are taken to be computed in many steps."""

FINE = 1_000.0
"""Half units of rounding in the spread of labels, at which few agree by chance."""

NEARLY_ALL = 0.8
"""Share of the rows that are little off a majority at a tighter level, which a looser one explains at least."""

CLEAR = 3.0
"""Standard deviations of chance beyond which a looser level has gained rows."""

_TINY = 1e-9
_FEW = 1.5  # rows: a looser level gains more than so many, whatever the size of the table
_LITTLE = 20.0  # half-widths: rows that are little off, so that a rule, right or wrong, may be behind them
_DIGITS = 1e-9  # relative: what float64 loses of a multiple of the unit; float32 loses what its precision says
_FEW_FARTHER = 10  # of so many rows that rounded columns explain, one is off by more than a last place
_SHELL = 3.0  # half-widths: how far outside rows are counted to tell what chance gives


@dataclass(frozen=True, slots=True)
class Options:
    """How hard to look.

    Attributes
    ----------
    rng : numpy.random.Generator
    rounds : int or None
        Rounds of search for each piece: 0 for the published algorithm alone, all by default.
    callback : callable
    """

    rng: np.random.Generator
    rounds: int | None = None
    callback: Callback = silent


@dataclass(frozen=True, slots=True)
class Candidate:
    """A formula that was found, and what some rows say of it.

    Attributes
    ----------
    coef : (d,) array
    agreement : Agreement
        The level at which it was found.
    rows : Verified
        The rows next to it, at that level without the cap for coefficients that are exact numbers.
    weight, decided, total : float
        Of the rows that agree, of those that agree and tell a product, and of all.
    """

    coef: FloatArray
    agreement: Agreement
    rows: Verified
    weight: float
    decided: float
    total: float


def counted(coef: FloatArray, agreement: Agreement, sample: Sample, link: Link) -> Candidate:
    """Return a candidate with what the rows of a sample say of it."""
    counts, found = sample.counts, verify(sample.X, sample.y, coef, agreement.uncapped, link)
    decided = found.agree & link.decisive(sample.y, found.half_widths)
    return Candidate(
        coef, agreement, found, float(counts[found.agree].sum()), float(counts[decided].sum()), float(counts.sum())
    )


def propose(
    sample: Sample,
    levels: Sequence[Agreement],
    link: Link,
    options: Options,
    pieces: Sequence[RadialIsotropy] | None = None,
    first: FloatArray | None = None,
) -> Candidate:
    """Return the best formula found for a sample with one label column.

    Parameters
    ----------
    sample : Sample
    levels : sequence of Agreement
        The tightest first.
    link : Link
    options : Options
    pieces : sequence of RadialIsotropy, optional
        The decomposition of the rows, if it is known.
    first : (d,) array, optional
        A formula near the right one, if one is known: it is polished at each level, and no other is looked for.
    """
    X, y, counts = sample.X, sample.y, sample.counts
    if pieces is None and first is None:
        pieces = decompose(X, sample_weight=sample.weights, callback=options.callback)
    # Labels of size one: coefficients and residuals have squares that neither overflow nor vanish.
    unit = float(np.exp2(np.frexp(np.abs(y).max())[1]))
    inner = Link(link.lower / unit, link.upper / unit, link.slope)
    problem = _Task(X, y / unit, counts, inner, pieces or (), options, None if first is None else first / unit)
    if first is None and len(levels) > 1 and link.invertible:
        problem = problem.begun(levels, unit)
    best: Candidate | None = None
    for level in levels:
        if best is not None and not _crowded(best, X, y, level, counts):
            continue
        loose = level.uncapped
        if best is not None and level.level is Level.EXACT and level.precision == best.agreement.precision:
            # The search is as generous at any exact level: its answer is polished again.
            w, _ = polish(X, y, counts, best.coef, loose, link)
        else:
            w = problem.solve(loose.scaled(unit), None if best is None else best.coef / unit) * unit
        answer = counted(w, level, sample, link)
        if best is not None:
            if not (_gains(answer, best, X, y, counts) and has_edge(answer, y, counts)):
                continue
            minority = 2 * best.weight <= counts.sum()  # what it gains may be chance among so many that are wrong
            if level.inputs and minority and is_sharp(sample, best.rows, best.agreement, link, X.shape[1]):
                continue
        best = answer
    assert best is not None  # there is at least one level
    return best


def _crowded(best: Candidate, X: FloatArray, y: FloatArray, level: Agreement, counts: FloatArray) -> bool:
    """Return whether a looser level may explain more: no majority agrees yet, or rows crowd outside of a tight one."""
    if not has_majority(best.rows, X, counts):
        return True
    sizes = np.abs(best.rows.residuals)
    # The formula of a looser level may be another, with which rows agree that are a unit off here.
    looser = _SHELL * level.half_widths(np.abs(best.rows.products) + np.abs(y), best.coef)
    between = float(counts[~best.rows.agree & (sizes <= looser)].sum())
    beyond = float(counts[(sizes > looser) & (sizes <= _SHELL * looser)].sum())
    return _is_more(between, beyond / 2)


def _gains(looser: Candidate, tighter: Candidate, X: FloatArray, y: FloatArray, counts: FloatArray) -> bool:
    """Tell whether a looser level explains more rows than chance adds to a tighter one.

    A majority that agrees more closely than it need is no chance. So where the tighter level has one (of all rows, and
    of those of each column), the looser has to keep it, and to explain nearly all the rows that are but little off.
    """
    gain = looser.weight - tighter.weight
    if not _is_more(gain, chance_inside(looser.rows, counts)):
        return False
    gained = looser.rows.agree & ~tighter.rows.agree
    if 2 * counts[gained & has_more_digits(y, looser.agreement)].sum() > gain:
        return False  # no rounding to tens makes a 7
    if looser.agreement.level is Level.EXACT and looser.agreement.precision == tighter.agreement.precision:
        filled = np.abs(tighter.rows.residuals) > FILLED * tighter.rows.half_widths
        terms = np.abs(looser.coef) * np.abs(X).max(axis=0)
        hidden = (terms > 0) & (
            terms <= HIDDEN * np.median(looser.rows.half_widths)
        )  # beneath what arithmetic explains
        return bool(2 * counts[tighter.rows.agree & filled].sum() > tighter.weight and not hidden.any())
    if not has_majority(tighter.rows, X, counts):
        return True
    lost = float(counts[tighter.rows.agree & ~looser.rows.agree].sum())
    sizes = np.abs(tighter.rows.residuals)
    little = ~tighter.rows.agree & (sizes <= _LITTLE * looser.rows.half_widths)
    if looser.agreement.inputs:  # several labels lie in such an interval: the majority would not all be in its middle
        inside = little & (sizes <= looser.rows.half_widths)
        gain = float(counts[inside].sum())
        farther = float(counts[inside & (sizes > 3 * looser.agreement.label)].sum())  # than a last place
        all_inside, expected = tighter.weight + gain, _share_in_the_middle(looser)
        if tighter.weight > (1 + expected) / 2 * all_inside and _FEW_FARTHER * farther > gain:
            return False  # a few errors, each smaller than what large coefficients make of half a unit
    return gain >= NEARLY_ALL * float(counts[little].sum()) and lost <= (1 - NEARLY_ALL) / 10 * tighter.weight


def has_majority(rows: Verified, X: FloatArray, counts: FloatArray, clear: float = CLEAR) -> bool:
    """Return whether more than half of the rows agree, and for no column clearly fewer of those where it is not zero.

    Fewer by `clear` standard deviations: of rates by category, some may be exact numbers and others within rounding.
    """
    if 2 * float(counts[rows.agree].sum()) <= counts.sum() + X.shape[1]:
        return False
    present = X != 0
    n_rows, n_agree = counts @ present, (counts * rows.agree) @ present
    return bool(np.all((2 * n_agree + clear * np.sqrt(n_rows) > n_rows) | (n_rows == 0)))


def has_more_digits(y: FloatArray, agreement: Agreement) -> BoolArray:
    """Return the labels that are no multiples of the unit to which others were rounded.

    Where columns are rounded, too, they may explain what labels of any digits are off.
    """
    if agreement.unit is None or agreement.level is not Level.LABEL:
        return np.zeros(len(y), dtype=bool)
    multiples = y / agreement.unit
    lost = max(_DIGITS, agreement.precision) * np.maximum(np.abs(multiples), 1)
    return np.asarray(np.abs(multiples - np.rint(multiples)) > lost)


def _share_in_the_middle(looser: Candidate) -> float:
    """Return the share of labels that are the nearest to the formula where columns are rounded: errors add up."""
    level = looser.agreement
    spread = np.sqrt((level.label**2 + ((looser.coef * np.array(level.inputs)) ** 2).sum()) / 3)
    return float(erf(level.label / (np.sqrt(2) * spread)))


def has_edge(answer: Candidate, y: FloatArray, counts: FloatArray) -> bool:
    """Tell whether rows end where the half-widths do: few lie just outside, and a label tells more than its interval.

    Labels that are rounded have as many residuals near the edge as elsewhere inside, and outside only wrong ones; noise
    goes on across the edge.
    """
    if not answer.agreement.inputs and answer.agreement.level is not Level.LABEL:
        return True
    sizes, t = np.abs(answer.rows.residuals), answer.rows.half_widths
    inside = float(counts[(sizes > t / 2) & (sizes <= t)].sum())
    outside = float(counts[(sizes > t) & (sizes <= 1.5 * t)].sum())
    inside_all = float(counts[answer.rows.agree].sum())
    in_the_middle = float(counts[sizes <= (1 - PILED) * t].sum())
    at_edges = float(counts[answer.rows.agree & (sizes > PILED * t)].sum())
    if at_edges > max(EDGE * inside_all, in_the_middle / EDGE):
        return False  # rows on both edges: a formula between two others
    if answer.agreement.inputs and np.quantile((sizes / t)[answer.rows.agree], 0.95) < FILLED:
        return False  # rows that agree far better than rounded columns would let them
    low, high = np.percentile(y, [25, 75])
    few = outside <= EDGE * inside + np.sqrt(inside)
    return bool(few and UNITS_IN_SPREAD * float(np.median(t)) <= high - low)


def _is_more(gain: float, chance: float) -> bool:
    return bool(gain > chance + CLEAR * np.sqrt(chance) + _FEW)


def chance_inside(rows: Verified, counts: FloatArray) -> float:
    """Return how many rows would lie within their half-widths by chance: half of those in (t, 3t]."""
    sizes = np.abs(rows.residuals)
    return float(counts[~rows.agree & (sizes <= _SHELL * rows.half_widths)].sum()) / 2


@dataclass(frozen=True, slots=True)
class _Task:
    """One sample, in labels of size one."""

    X: FloatArray
    y: FloatArray
    counts: FloatArray
    link: Link
    pieces: Sequence[RadialIsotropy]
    options: Options
    first: FloatArray | None = None
    columns_too: bool = True  # whether nothing else is looked for even where columns are rounded

    def solve(self, agreement: Agreement, start: FloatArray | None) -> FloatArray:
        """Return the polished formula that fits the most weight of rows at this level."""
        w = self.first
        if w is None or (agreement.inputs and not self.columns_too):
            w = self._by_pieces(agreement, start)
        w, found = polish(self.X, self.y, self.counts, w, agreement, self.link)
        if start is not None and agreement.level is not Level.EXACT:  # the tighter answer may lie in every interval
            other, its = polish(self.X, self.y, self.counts, start, agreement, self.link)
            if self._weight(its.agree) > self._weight(found.agree):
                w, found = other, its
        if self.options.rounds != 0:
            w, found = self._improve(w, found, agreement)
        if not self.link.invertible:
            w = self._or_nothing(w, found, agreement)
        return w

    def begun(self, levels: Sequence[Agreement], unit: float) -> _Task:
        """Return the task with an answer to begin with, where one serves several levels.

        L1 regression gives the same at all of them: where a majority follows it at one, a search at another finds
        nothing, at the highest cost. And where labels are rounded so little that hardly any agrees by chance, what
        agrees exactly is found within rounding, too: one search serves both.
        """
        scaled = [level.uncapped.scaled(unit) for level in levels]
        w = algorithm_2(self.X, self.link.inverse(self.y), sample_weight=self.counts, pieces=self.pieces).w
        for level in scaled:
            _, found = polish(self.X, self.y, self.counts, w, level, self.link)
            if has_majority(found, self.X, self.counts):
                return replace(self, first=w)
        low, high = np.percentile(self.y, [25, 75])
        fine = [one for one in scaled if one.level is Level.LABEL and one.label * FINE <= high - low]
        if not fine or self.options.rounds == 0:
            return self
        return replace(self, first=self._by_pieces(fine[-1], None), columns_too=False)

    def _weight(self, agree: BoolArray) -> float:
        return float(self.counts[agree].sum())

    def _by_pieces(self, agreement: Agreement, start: FloatArray | None) -> FloatArray:
        slack = agreement.slack(start if start is not None else np.zeros(self.X.shape[1]))
        possible = ~self.link.impossible(self.y, slack)

        def solve(piece: RadialIsotropy, w: FloatArray) -> FloatArray:
            members = piece.members & possible
            if not members.any():
                return np.zeros(len(w))
            basis = piece.subspace @ piece.matrix
            return basis @ self._solve_piece(self._consensus(members, w, basis, slack, agreement))

        return algorithm_2(self.X, self.y, pieces=self.pieces, solve=solve).w

    def _consensus(
        self, members: BoolArray, w: FloatArray, basis: FloatArray, slack: float, agreement: Agreement
    ) -> Consensus:
        """Return what is left to find by the rows of one piece when `w` explains the pieces before it."""
        X, y, link = self.X[members], self.y[members], self.link
        Z = X @ basis
        lengths = np.linalg.norm(Z, axis=1)
        Z /= lengths[:, None]
        explained = X @ w
        near = max(NEAR, agreement.relative)
        limits = None
        labels = link.inverse(y)
        if not link.invertible:
            # Labels that zero or saturation explains are limits, whatever was rounded.
            dust = slack + agreement.relative * (np.abs(explained) + np.abs(self.y).max())
            decisive = link.decisive(y, dust)
            upper = ~decisive & (y >= link.upper - dust)
            labels = np.where(decisive, y, np.where(upper, link.upper, link.lower))
            limits = Limits((link.lower - explained) / lengths, (link.upper - explained) / lengths, decisive)
        return Consensus(
            Z, (labels - explained) / lengths, slack / lengths, near, self.counts[members], lengths, limits
        )

    def _solve_piece(self, problem: Consensus) -> FloatArray:
        """Return the best parameter found: L1 regression, alternating where there are limits, then the search."""
        options, k = self.options, problem.Z.shape[1]
        clipped = problem.limits is not None
        best, last = Fitted(np.zeros(k), -1.0), np.zeros(k)
        start = _TINY * problem.Z[problem.decisive].sum(axis=0)
        for last in alternate(problem, start, FIRST_ALTERNATIONS):
            best = max(best, problem.best(last[None]), key=lambda candidate: candidate.agreement)
            if problem.settled(best, problem.unique):
                return best.w
        rounds = SEARCH_ROUNDS if options.rounds is None else options.rounds
        if not rounds or not len(problem.decisive):
            return best.w if best.agreement > problem.chance or not clipped else last
        plenty, few = (PLENTY_CLIPPED, FEW_CLIPPED) if clipped else (PLENTY, FEW_ROUNDS)
        if len(problem.y) >= plenty * k:
            rounds = min(rounds, few)
        return search_rows(problem, last, options, rounds)

    def _improve(self, w: FloatArray, found: Verified, agreement: Agreement) -> tuple[FloatArray, Verified]:
        """Change single coefficients where that makes more rows agree."""
        told = self.link.decisive(self.y, found.half_widths)
        if not told.any() or has_majority(found, self.X, self.counts, clear=0.0):
            return w, found
        widths = agreement.loosened(NEAR).half_widths(np.abs(self.X[told]) @ np.abs(w) + np.abs(self.y[told]), w)
        labels = self.link.inverse(self.y[told])
        better = improve_coordinates(self.X[told], labels, w, widths, self.counts[told])
        if np.array_equal(better, w):
            return w, found
        better, now = polish(self.X, self.y, self.counts, better, agreement, self.link)
        return (better, now) if self._weight(now.agree) > self._weight(found.agree) else (w, found)

    def _or_nothing(self, w: FloatArray, found: Verified, agreement: Agreement) -> FloatArray:
        """Return zero where no more decisive rows agree than any w fits, and zero says it better."""
        decided = found.agree & self.link.decisive(self.y, found.half_widths)
        if decided.sum() > len(w) + 1:
            return w
        zero = np.zeros(len(w))
        nothing = verify(self.X, self.y, zero, agreement, self.link)
        return zero if self._weight(nothing.agree) > self._weight(found.agree) else w


def search_rows(problem: Consensus, first: FloatArray, options: Options, rounds: int) -> FloatArray:
    """Return the answer that fits most among `first` and those of the search, on some of the rows if there are many."""
    n, k = problem.Z.shape
    best = problem.best(first[None])
    if problem.settled(best, problem.unique):
        return best.w
    size = max(SEARCH_ROWS_PER_COLUMN * k, SMALLEST_SEARCH)
    part = problem
    if n > 2 * size:
        part = problem.restricted(np.sort(options.rng.choice(n, size, replace=False)))
    found = search_consensus(part, first, options.rng, enough=part.unique, rounds=rounds, callback=options.callback)
    return max(best, problem.best(found.w[None]), key=lambda candidate: candidate.agreement).w
