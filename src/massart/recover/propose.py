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
from operator import attrgetter

import numpy as np
from scipy.special import erf

from massart.isotropy import RadialIsotropy, decompose
from massart.paper import algorithm_2
from massart.recover.certification import is_sharp
from massart.recover.noisy import is_plain_noise
from massart.recover.polish import NEAR, Candidate, improve_coordinates, polish
from massart.recover.settings import SETTINGS, Options
from massart.rows import Agreement, BoolArray, FloatArray, Level, Link, Sample
from massart.search import ROUNDS, Consensus, FittedParameter, Limits, alternate, search

FIRST_ALTERNATIONS = 12
EDGE, UNITS_IN_SPREAD, FILLED, PILED = 0.5, 10, 0.3, 0.8
"""At the right level at most this share of rows lies just outside of the edge, of those just inside; and half of the
labels span this many half-widths. Where columns are rounded, residuals reach this share of them; where floats are, most
exceed it if labels were computed in many steps. And no more than half lie in the last fifth of their half-width, unless
half as many agree exactly: of quarters of an hour at 54.50 every second one ends in half a cent."""

HIDDEN = 100.0
"""Half-widths that every term has at least, where labels are taken to be computed in many steps."""

NEARLY_ALL = 0.8
"""Share of the rows that are little off a majority at a tighter level, which a looser one explains at least."""

CLEAR = 3.0
"""Standard deviations of chance beyond which a looser level has gained rows."""

_TINY = 1e-9
_FEW = 1.5  # rows: a looser level gains more than this, whatever the size of the table
_LITTLE = 20.0  # half-widths: rows that are little off, so that a rule, right or wrong, may be behind them
_DIGITS = 1e-9  # relative: what float64 loses of a multiple of the unit; float32 loses what its precision says
_FEW_FARTHER = 10  # of this many rows that rounded columns explain, one is off by more than a last place
_SHELL = 3.0  # half-widths: how far outside rows are counted to tell what chance gives


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
    if pieces is None and first is None:
        pieces = decompose(sample.X, sample_weight=sample.weights, callback=options.callback)
    # Labels of size one: coefficients and residuals have squares that neither overflow nor vanish.
    unit = float(np.exp2(np.frexp(np.abs(sample.y).max())[1]))
    inner = Link(link.lower / unit, link.upper / unit, link.slope)
    task = _Task(
        replace(sample, y=sample.y / unit), inner, pieces or (), options, first if first is None else first / unit
    )
    if first is None and link.invertible:
        task = task.begun([level.scaled(unit) for level in levels])
    best: Candidate | None = None
    for level in levels:
        if best is None:
            best = Candidate.of(sample, task.solve(level.scaled(unit), None) * unit, level, link)
            continue
        if not _crowded(best, sample, level):
            continue
        if level.level is Level.EXACT and level.precision == best.agreement.precision:
            # The search is as generous at any exact level: its answer is polished again.
            w = polish(sample, best.coef, level, link).coef
        else:
            w = task.solve(level.scaled(unit), best.coef / unit) * unit
        looser = Candidate.of(sample, w, level, link)
        if not (_gains(looser, best, sample) and has_edge(looser, sample)):
            continue
        minority = 2 * best.weight <= best.total  # what it gains may be chance where most rows are wrong
        if level.inputs and minority and is_sharp(sample, best.rows, best.agreement, link, sample.X.shape[1]):
            continue
        best = looser
    assert best is not None  # there is at least one level
    return best


def _crowded(best: Candidate, sample: Sample, level: Agreement) -> bool:
    """Return whether a looser level may explain more: no majority agrees yet, or rows crowd outside of a tight one."""
    if not has_majority(best, sample):
        return True
    counts, sizes = sample.counts, np.abs(best.rows.residuals)
    # The formula of a looser level may be another, with which rows agree that are a unit off here.
    looser = _SHELL * level.half_widths(np.abs(best.rows.products) + np.abs(sample.y), best.coef)
    between = float(counts[~best.rows.agree & (sizes <= looser)].sum())
    beyond = float(counts[(sizes > looser) & (sizes <= _SHELL * looser)].sum())
    return _is_more(between, beyond / 2)


def _gains(looser: Candidate, tighter: Candidate, sample: Sample) -> bool:
    """Return whether a looser level explains more rows than chance adds to a tighter one.

    A majority that agrees more closely than it need is not chance. So where the tighter level has one (of all rows, and
    of those of each column), the looser has to keep it, and to explain nearly all the rows that are but little off.
    """
    gain, counts = looser.weight - tighter.weight, sample.counts
    if not _is_more(gain, chance_inside(looser, sample)):
        return False
    gained = looser.rows.agree & ~tighter.rows.agree
    if 2 * counts[gained & has_more_digits(sample.y, looser.agreement)].sum() > gain:
        return False  # no rounding to tens makes a 7
    if looser.agreement.level is Level.EXACT and looser.agreement.precision == tighter.agreement.precision:
        filled = np.abs(tighter.rows.residuals) > FILLED * tighter.rows.half_widths
        terms = np.abs(looser.coef) * np.abs(sample.X).max(axis=0)
        hidden = (terms > 0) & (
            terms <= HIDDEN * np.median(looser.rows.half_widths)
        )  # beneath what arithmetic explains
        return bool(2 * counts[tighter.rows.agree & filled].sum() > tighter.weight and not hidden.any())
    if not has_majority(tighter, sample):
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


def has_majority(found: Candidate, sample: Sample, clear: float = CLEAR) -> bool:
    """Return whether more than half of the rows agree, and for no column clearly fewer of those where it is not zero.

    Fewer by `clear` standard deviations: of rates by category, some may be exact numbers and others within rounding.
    """
    if 2 * found.weight <= found.total + sample.X.shape[1]:
        return False
    present, counts = sample.X != 0, sample.counts
    n_rows, n_agree = counts @ present, (counts * found.rows.agree) @ present
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


def has_edge(answer: Candidate, sample: Sample) -> bool:
    """Return whether rows end where the half-widths do: few lie just outside, and a label tells more than its interval.

    Labels that are rounded have as many residuals near the edge as elsewhere inside, and outside only wrong ones; noise
    goes on across the edge.
    """
    if not answer.agreement.inputs and answer.agreement.level is not Level.LABEL:
        return True
    counts, sizes, t = sample.counts, np.abs(answer.rows.residuals), answer.rows.half_widths
    inside = float(counts[(sizes > t / 2) & (sizes <= t)].sum())
    outside = float(counts[(sizes > t) & (sizes <= 1.5 * t)].sum())
    in_the_middle = float(counts[sizes <= (1 - PILED) * t].sum())
    at_edges = float(counts[answer.rows.agree & (sizes > PILED * t)].sum())
    if at_edges > max(EDGE * answer.weight, in_the_middle / EDGE):
        return False  # rows on both edges: a formula between two others
    if answer.agreement.inputs and np.quantile((sizes / t)[answer.rows.agree], 0.95) < FILLED:
        return False  # rows that agree far better than rounded columns would let them
    low, high = np.percentile(sample.y, [25, 75])
    few = outside <= EDGE * inside + np.sqrt(inside)
    return bool(few and UNITS_IN_SPREAD * float(np.median(t)) <= high - low)


def _is_more(gain: float, chance: float) -> bool:
    return bool(gain > chance + CLEAR * np.sqrt(chance) + _FEW)


def chance_inside(found: Candidate, sample: Sample) -> float:
    """Return how many rows would lie within their half-widths by chance: half of those in (t, 3t]."""
    near = np.abs(found.rows.residuals) <= _SHELL * found.rows.half_widths
    return float(sample.counts[~found.rows.agree & near].sum()) / 2


@dataclass(frozen=True, slots=True)
class _Task:
    """One sample, with labels of size one."""

    sample: Sample
    link: Link
    pieces: Sequence[RadialIsotropy]
    options: Options
    first: FloatArray | None = None
    l1: FloatArray | None = None  # the answer of Algorithm 2, if it is known

    def solve(self, level: Agreement, start: FloatArray | None) -> FloatArray:
        """Return the polished formula that fits the most weight of rows at this level."""
        w = self.first
        if w is None:
            w = self._by_pieces(level.uncapped, start)
        found = polish(self.sample, w, level, self.link)
        if start is not None and level.level is not Level.EXACT:  # the tighter answer may lie in every interval
            found = max(found, polish(self.sample, start, level, self.link), key=_weight)
        if self.options.rounds != 0:
            found = self._improve(found)
        return found.coef if self.link.invertible else self._or_nothing(found)

    def begun(self, levels: Sequence[Agreement]) -> _Task:
        """Return the task with the answer of L1 regression, which is the same at all levels.

        Where a majority follows it at one of them, a search at another finds nothing, at the highest cost.
        """
        X, y = self.sample.X, self.sample.y
        w = algorithm_2(X, self.link.inverse(y), sample_weight=self.sample.counts, pieces=self.pieces).w
        if any(has_majority(polish(self.sample, w, level, self.link), self.sample) for level in levels):
            return replace(self, first=w)
        if self.options.may_be_noise and is_plain_noise(self.sample, w, levels, self.options.rng.spawn(1)[0]):
            return replace(self, first=w, options=replace(self.options, rounds=0))  # there is nothing to search for
        return replace(self, l1=w)

    def _by_pieces(self, agreement: Agreement, start: FloatArray | None) -> FloatArray:
        X, y = self.sample.X, self.sample.y
        slack = agreement.slack(start if start is not None else np.zeros(X.shape[1]))
        possible = ~self.link.impossible(y, slack)

        def solve(piece: RadialIsotropy, w: FloatArray) -> FloatArray:
            members = piece.members & possible
            if not members.any():
                return np.zeros(len(w))
            basis = piece.subspace @ piece.matrix
            known: FloatArray | None = None
            if self.l1 is not None and len(self.pieces) == 1:
                known = np.asarray(np.linalg.lstsq(basis, self.l1, rcond=None)[0], dtype=np.float64)
            return basis @ self._solve_piece(self._consensus(members, w, basis, slack, agreement), known)

        return algorithm_2(X, y, pieces=self.pieces, solve=solve).w

    def _consensus(
        self, members: BoolArray, w: FloatArray, basis: FloatArray, slack: float, agreement: Agreement
    ) -> Consensus:
        """Return what is left to find by the rows of one piece when `w` explains the pieces before it."""
        X, y, link = self.sample.X[members], self.sample.y[members], self.link
        Z = X @ basis
        lengths = np.linalg.norm(Z, axis=1)
        Z /= lengths[:, None]
        explained = X @ w
        near = max(NEAR, agreement.relative)
        limits = None
        labels = link.inverse(y)
        if not link.invertible:
            # Labels that zero or saturation explains are limits, whatever was rounded.
            dust = slack + agreement.relative * (np.abs(explained) + np.abs(self.sample.y).max())
            decisive = link.decisive(y, dust)
            upper = ~decisive & (y >= link.upper - dust)
            labels = np.where(decisive, y, np.where(upper, link.upper, link.lower))
            limits = Limits((link.lower - explained) / lengths, (link.upper - explained) / lengths, decisive)
        return Consensus(
            Z, (labels - explained) / lengths, slack / lengths, near, self.sample.counts[members], lengths, limits
        )

    def _solve_piece(self, problem: Consensus, known: FloatArray | None) -> FloatArray:
        """Return the best parameter found: L1 regression, alternating where there are limits, then the search.

        The L1 answer may be `known`.
        """
        options, k = self.options, problem.Z.shape[1]
        clipped = problem.limits is not None
        best, last = FittedParameter(np.zeros(k), -1.0), np.zeros(k)
        start = _TINY * problem.Z[problem.decisive].sum(axis=0)
        for last in alternate(problem, start, FIRST_ALTERNATIONS) if known is None else [known]:
            best = max(best, problem.best(last[None]), key=attrgetter("agreement"))
            if problem.settled(best, problem.unique):
                return best.w
        rounds = ROUNDS if options.rounds is None else options.rounds
        if not rounds or not len(problem.decisive):
            return best.w if best.agreement > problem.chance or not clipped else last
        # On some of the rows, if there are many.
        part, size = problem, SETTINGS.first_sample(k, clipped=False)
        if len(problem.Z) > 2 * size:
            part = problem.restricted(np.sort(options.rng.choice(len(problem.Z), size, replace=False)))
        found = search(part, last, options.rng, enough=part.unique, rounds=rounds, callback=options.callback)
        return problem.best(np.stack([last, found.w])).w

    def _improve(self, found: Candidate) -> Candidate:
        """Change single coefficients where that makes more rows agree."""
        sample, link = self.sample, self.link
        informative = link.decisive(sample.y, found.rows.half_widths)
        if not informative.any() or has_majority(found, sample, clear=0.0):
            return found
        X, y, w = sample.X[informative], sample.y[informative], found.coef
        widths = found.agreement.loosened(NEAR).half_widths(np.abs(X) @ np.abs(w) + np.abs(y), w)
        better = improve_coordinates(X, link.inverse(y), w, widths, sample.counts[informative])
        return (
            found
            if np.array_equal(better, w)
            else max(found, polish(sample, better, found.agreement, link), key=_weight)
        )

    def _or_nothing(self, found: Candidate) -> FloatArray:
        """Return zero where no more decisive rows agree than any w fits, and zero says it better."""
        if np.count_nonzero(found.informative) > len(found.coef) + 1:
            return found.coef
        nothing = Candidate.of(self.sample, np.zeros(len(found.coef)), found.agreement, self.link)
        return max(found, nothing, key=_weight).coef


_weight = attrgetter("weight")
