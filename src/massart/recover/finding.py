"""Looking for a formula: samples propose, more rows count, and where support is weak more are looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Support
from massart.certificate.support import is_weak_by_chance, weak_row_weights
from massart.isotropy import decompose
from massart.recover.judge import PLURALITY
from massart.recover.judges import Formula, Judges, beyond_mode, measure_support_of
from massart.recover.polish import polish
from massart.recover.propose import CLEAR, NEARLY_ALL, Options, Proposal, chance_inside, has_more_digits, propose
from massart.recover.sharpness import stands_out
from massart.rows import AGREES, DECISIVE, Agreement, FloatArray, Level, Link, Sample, levels, verify
from massart.search import reweighted

SMALLEST_SAMPLE = 400
"""Rows of the first sample, at least."""

FINDING_ROWS = 20_000
"""Rows, of those that judge, on which formulas are looked for and counted on the way."""

MOST_EXACT_ROWS = 5_000
"""Rows that tell exact numbers and the shortest form of a formula."""

WORTH_SAMPLING = 4
"""A table of fewer samples than this is taken whole."""

EARLY_ROUNDS, SHUFFLED_ROUNDS = 2, 1
"""Rounds of search in a sample that can still grow: more rows help more than more search; and on shuffled labels."""

QUICK_ROWS_PER_COLUMN, QUICK_NUMBERS = 16, 500_000
"""With so many rows a column, and so many numbers, reweighted least squares looks first."""

QUICK_SAMPLE_PER_COLUMN, QUICK_SAMPLE = 6, 2_000
"""Rows that polish what it finds: with 40 % wrong, more than half of them and one a column agree."""

LOOKS, SMALL_LOOKS = 6, 3
"""Most times that rows are looked at where support is weak, and where the whole table was looked at."""

MANY_COLUMNS = 64
"""Of so many columns some direction is weak by chance: a majority is not worth a search for another formula, which
takes the longest there, but only L1 regression."""

KEPT, ROUNDED = 0.98, 1.1
"""Share of the rows that an exact formula keeps at least, of those that a rounded one explains; and half-widths beyond
which no rounding is behind it."""

SHUFFLES, PLENTY = 2, 10
"""How often labels are shuffled; and how many times more rows than labels that are alike make that needless."""


@dataclass(frozen=True, slots=True)
class Start:
    """Coefficients that are known from elsewhere.

    Attributes
    ----------
    coef : (d,) array
        Near the right ones: nothing else is looked for.
    half_width : float
        Within which they are: a looser level is not considered.
    fractions : tuple of d Fraction or None, optional
        With these the coefficients are final: they are judged as they stand.
    agreement : Agreement, optional
        When a row agrees with final coefficients.
    """

    coef: FloatArray
    half_width: float = 0.0
    fractions: tuple[Fraction | None, ...] | None = None
    agreement: Agreement | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A formula, counted on the rows that may propose; and its level of agreement once its numbers are exact."""

    formula: Formula
    if_exact: Agreement
    weight: float
    chance: float
    decided: float
    support: Support


@dataclass(frozen=True, slots=True)
class Finder:
    """The rows that may propose, and what a search needs beside them.

    Attributes
    ----------
    rows : Sample
        With all label columns.
    scouts : Judges
        What X alone says of these rows.
    precision : pair of float
        The relative precisions of the rows and of the labels.
    link : Link
    tolerance : "auto" or float
    first_size : int
        Rows of the first sample.
    rare : array of int
        Numbers of rows that some columns rest on: they are in every part.
    options : Options
    start : Start or None
    inputs : bool
        Whether columns may have been rounded.
    """

    rows: Sample
    scouts: Judges
    precision: tuple[float, float]
    link: Link
    tolerance: float | Literal["auto"]
    first_size: int
    rare: NDArray[np.intp]
    options: Options
    start: Start | None = None
    inputs: bool = True

    def some(self, rows: Sample, most: int) -> Sample:
        """Return the rows, or so many of them at random beside the rare ones."""
        return some_of(rows, most, self.rare, self.options.rng)

    def find(self, j: int, patient: bool, rounds: int | None) -> Found:
        """Return the formula that fits most of the rows that may propose; samples go where support is weak."""
        finding = self.rows.column(j)
        n, size = len(finding.index), self.first_size
        is_whole = size * WORTH_SAMPLING > n
        early = EARLY_ROUNDS if rounds is None else min(rounds, EARLY_ROUNDS)
        if self.start is not None:
            found = self._started(finding, self.start)
            if not self._is_barren(found):
                return found
        best = self._quick(finding, early)
        if best is None:
            sample = finding if is_whole else self._drawn(finding, size, None)
            best = self._attempt(finding, sample, rounds if is_whole else early)
        barren = int(self._is_barren(best))
        for look in range(LOOKS):
            if self._is_settled(best):
                break
            hopeless = barren > 1 and not patient
            if is_whole:
                size = max(n // 2, min(n, 8 * finding.X.shape[1]))
                most = SMALL_LOOKS if n >= SMALLEST_SAMPLE else 1
                if self._is_barren(best) or look >= most or size >= n or rounds == 0:
                    break
                sample, is_last = self._drawn(finding, size, best), False
                if finding.X.shape[1] >= MANY_COLUMNS and 2 * best.weight > float(finding.counts.sum()):
                    early = 0
            else:
                size = min(2 * size, n)
                is_last = hopeless or size * WORTH_SAMPLING > n
                sample = self.some(finding, FINDING_ROWS) if is_last else self._drawn(finding, size, best)
            # Where nothing beyond chance was found, the published algorithm has all rows, and that is that.
            found = self._attempt(finding, sample, 0 if hopeless else rounds if is_last else early)
            barren += self._is_barren(found)
            best = found if self._is_better(finding, found, best) else best
            is_whole |= is_last
            if hopeless:
                break
        return best

    def _is_settled(self, found: Found) -> bool:
        """Tell whether more than half of the evidence agrees in every direction, or as much as chance leaves."""
        total = float(self.rows.counts.sum())
        return 2 * found.weight > total and (
            found.support.alpha > 0.5 or is_weak_by_chance(self.scouts.geometry, found.support, found.weight / total)
        )

    def _is_barren(self, found: Found) -> bool:
        """Tell whether hardly more rows agree than any formula fits: fewer than a plurality takes."""
        total = float(self.rows.counts.sum())
        few = PLURALITY * total if len(self.rows.index) >= self.first_size * WORTH_SAMPLING else 0.0
        return bool(found.decided <= self.rows.X.shape[1] + 1 + few)

    def _is_better(self, finding: Sample, found: Found, best: Found) -> bool:
        """Return whether a formula fits more rows; a looser one, many more than a majority in every direction."""
        slack = [one.formula.agreement.slack(one.formula.coef) for one in (found, best)]
        if found.formula.agreement.level is best.formula.agreement.level or slack[0] == slack[1]:
            return found.weight > best.weight
        tighter, looser = (found, best) if slack[0] < slack[1] else (best, found)
        total = float(self.rows.counts.sum())
        needed = looser.chance + CLEAR * np.sqrt(looser.chance)
        if self._is_settled(tighter):
            needed = max(needed, NEARLY_ALL * (total - tighter.weight))
        elif looser.formula.agreement.inputs and stands_out(tighter.formula, finding, finding.X.shape[1]):
            return tighter is found
        return bool(looser.weight > tighter.weight + needed) == (looser is found)

    def _drawn(self, finding: Sample, size: int, best: Found | None) -> Sample:
        """Return rows at random and, where a formula is known, half of them where it has too little support."""
        rng, n = self.options.rng, len(finding.index)
        chosen = rng.choice(n, min(size if best is None else size // 2, n), replace=False)
        if best is not None:
            weights = weak_row_weights(self.scouts.geometry, finding.X, best.support) * (finding.counts > 0)
            possible = int(np.count_nonzero(weights))
            if possible:
                weak = rng.choice(n, min(size // 2, possible), replace=False, p=weights / weights.sum())
                chosen = np.union1d(chosen, weak)
        return finding.take(np.sort(chosen))

    def _attempt(self, finding: Sample, sample: Sample, rounds: int | None) -> Found:
        """Return the formula of a sample, in exact numbers, counted on all rows that may propose."""
        options = replace(self.options, rounds=rounds)
        pieces = decompose(sample.X, sample_weight=sample.weights, callback=options.callback)
        proposal = propose(sample, self.levels(sample), self.link, options, pieces)
        return self._counted(finding, proposal)

    def _started(self, finding: Sample, start: Start) -> Found:
        """Return the formula that is known, at the tightest level at which hardly a row is lost."""
        rows = self.some(finding, MOST_EXACT_ROWS)
        known = self.levels(rows)
        found = []
        for level in [level for level in known if level.label <= 1.001 * start.half_width] or known[:1]:
            w, seen = start.coef, verify(rows.X, rows.y, start.coef, level.uncapped, self.link)
            tries = [Proposal(w, level, seen, float(rows.counts[seen.agree].sum()))]
            if not level.rounded:  # known within rounding only, and so is a constant
                shifts = (-start.half_width, 0.0, start.half_width) if (rows.X[:, -1] == 1).all() else (0.0,)
                for shift in shifts:
                    shifted = w.copy()
                    shifted[-1] += shift
                    v, seen = polish(rows.X, rows.y, rows.counts, shifted, level.uncapped, self.link)
                    tries.append(Proposal(v, level, seen, float(rows.counts[seen.agree].sum())))
            found.append(max(tries, key=lambda proposal: proposal.weight))
        exact, *looser = found
        for proposal in looser:
            # Rows a unit off an exact formula of a majority are wrong: the other formula lies between two.
            gained = proposal.rows.agree & ~exact.rows.agree
            off, near = np.abs(exact.rows.residuals), ROUNDED * proposal.rows.half_widths
            wrong = gained & (off > near) & (off <= 2 * near)
            majority = 2 * exact.weight > rows.counts.sum()
            if exact.weight < KEPT * proposal.weight and not (majority and 2 * wrong.sum() > gained.sum()):
                return self._counted(finding, proposal)
        return self._counted(finding, exact)

    def _quick(self, finding: Sample, rounds: int) -> Found | None:
        """Return the formula of many rows that a majority follows, if it is found at little cost."""
        n, d = finding.X.shape
        if not rounds or not self.link.invertible or finding.weights is not None:
            return None
        if n < QUICK_ROWS_PER_COLUMN * d or n * d < QUICK_NUMBERS:
            return None
        w = reweighted(finding.X, finding.y)
        sample = self._drawn(finding, max(QUICK_SAMPLE_PER_COLUMN * d, QUICK_SAMPLE), None)
        proposal = propose(sample, self.levels(sample), self.link, replace(self.options, rounds=0), first=w)
        return self._counted(finding, proposal) if 2 * proposal.weight > len(sample.index) else None

    def _counted(self, finding: Sample, proposal: Proposal) -> Found:
        formula = Formula(proposal.coef, proposal.agreement.uncapped, self.link)
        found, marks = formula.marks(finding)
        counts = finding.counts
        decided = float(counts[(marks & AGREES > 0) & (marks & DECISIVE > 0)].sum())
        scouts = replace(self.scouts, rows=finding)
        support = measure_support_of(formula, scouts, found, marks, tails=False)
        weight, chance = float(counts[found.agree].sum()), chance_inside(found, counts)
        return Found(formula, proposal.agreement, weight, chance, decided, support)

    def levels(self, sample: Sample) -> tuple[Agreement, ...]:
        """Return the levels of agreement of some rows, the tightest first."""
        x_precision, y_precision = self.precision
        found = levels(self.tolerance, sample.X, sample.y, X_precision=x_precision, y_precision=y_precision)
        return found if self.inputs else tuple(level for level in found if level.level is not Level.INPUTS)

    def tightest(self, rows: Sample, coef: FloatArray, agreement: Agreement, exact: bool) -> Agreement:
        """Return the tightest level at which no fewer rows agree: a shorter formula may not need a loose one."""

        def weight(level: Agreement) -> float:
            agree = level.agree(rows.X, rows.y, coef, self.link)
            return float(rows.counts[agree & ~has_more_digits(rows.y, level)].sum())

        if not agreement.rounded:
            return agreement
        candidates = (level if exact else level.uncapped for level in self.levels(rows))
        return next((level for level in candidates if weight(level) >= weight(agreement)), agreement)

    def shuffled(self, finding: Sample, formula: Formula) -> float:
        """Return the largest share of rows that some formula fits when labels are shuffled over the rows.

        Labels of which hardly two are alike agree by chance on no more rows than there are columns: then, and where far
        more rows agree than labels are alike, that is told without a search. The most frequent one is not counted.
        """
        total = float(finding.counts.sum())
        found, _ = formula.marks(finding)
        width = 2 * float(np.median(found.half_widths))
        n = len(finding.y)
        values, counts = np.unique(finding.y, return_counts=True)
        if counts.max() > 1:
            counts[counts.argmax()] = 0
        labels = np.repeat(values, counts)
        reached = np.searchsorted(labels, labels + width, side="right") - np.arange(len(labels))
        alike = int(reached.max(initial=0))
        weight = beyond_mode(finding, found, self.link)
        free = float(self.rows.X.shape[1]) / n
        if weight - free * total > PLENTY * total * alike / n:
            return free
        sample = finding
        if self.first_size * WORTH_SAMPLING <= len(finding.index):
            sample = self._drawn(finding, self.first_size, None)
        options = replace(self.options, rounds=SHUFFLED_ROUNDS if self.options.rounds is None else self.options.rounds)
        pieces = decompose(sample.X, sample_weight=sample.weights)
        total, best = float(sample.counts.sum()), 0.0
        for _ in range(SHUFFLES):
            order = self.options.rng.permutation(len(sample.y))
            shuffled = replace(sample, y=sample.y[order])
            best = max(best, beyond_mode(shuffled, formula.marks(shuffled)[0], self.link) / total)
            other = propose(shuffled, (formula.agreement,), self.link, options, pieces)
            best = max(best, beyond_mode(shuffled, other.rows, self.link) / total)
        return best


def some_of(rows: Sample, most: int, rare: NDArray[np.intp], rng: np.random.Generator) -> Sample:
    """Return the rows, or so many of them at random beside the rare ones."""
    n = len(rows.index)
    if n <= most:
        return rows
    chosen = np.isin(rows.index, rare)
    chosen[rng.choice(n, most, replace=False)] = True
    return rows.take(np.flatnonzero(chosen))
