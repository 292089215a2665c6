"""The driver: sample, propose, verify, look where support is weak.

Proposing a formula is expensive, and verifying one is a single read of the table. So a small sample proposes
(:mod:`massart.recover.propose`), and some ten thousand rows, or all, judge. Where support is lacking, more rows are
looked at: half of them drawn at random, and half for the directions in which at most half of the evidence agrees, where
a uniform sample meets too few rows. What fits more rows is kept. In the end the formula is put in exact numbers, its
shortest form is taken, every row of the table is marked, and the verdict is made (:mod:`massart.recover.judge`).

The rows that judge, and what X alone says of them, are fixed before labels are looked at. For a link that clips a part
of them proposes, and the others hold their labels back until the formula is final.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from massart.agreement import AGREES, DECISIVE, KINDS, LAST_PLACE, Agreement, Level, Mark, levels, tally, verify
from massart.certificate import Certificate, Support, geometry_of, noisy_certificate
from massart.certificate.support import is_weak_by_chance, weak_row_weights
from massart.isotropy import decompose
from massart.link import IDENTITY, Link
from massart.progress import Callback, silent
from massart.recover.judge import PLAIN, PLURALITY, Assumption, Formula, Judges, beyond_mode, judge, measure_support_of
from massart.recover.noisy import NoisyFit, find_noisy, noise_of_units
from massart.recover.polish import polish
from massart.recover.propose import CLEAR, NEARLY_ALL, Options, Proposal, chance_inside, propose
from massart.recover.shorten import Shortened, shorten
from massart.recover.snapping import MOST_ROUNDED_ROWS, SQUARE_IS_FINITE, hold_to_exact_arithmetic, snap
from massart.rows import BoolArray, FloatArray, Rows, Sample, Uses, Values, nonzero_counts, total_of
from massart.search import reweighted

ROWS_PER_COLUMN, CLIPPED_ROWS_PER_COLUMN, SMALLEST_SAMPLE = 16, 32, 400
"""Size of the first sample: what Algorithm 1 needs at 40 % wrong labels in Gaussian position, and twice as much where a
link clips, since about half of the rows tell no more than a side."""

JUDGING_ROWS, JUDGING_ROWS_PER_COLUMN, JUDGING_NUMBERS = 40_000, 1_400, 20_000_000
"""Rows that judge a formula, if there are so many: fixed beforehand by the number of columns. And how many numbers they
have at most."""

RARE_ROWS, MOST_RARE_ROWS = 64, 20_000
"""Of a column that fewer of the rows that judge have, other than zero, so many more are looked for in the whole table;
and how many at most for all such columns."""

MOST_REPEATED = 20_000
"""Rows that whole weights may make."""

FINDING_ROWS = 20_000
"""Rows, of those that judge, on which formulas are looked for and counted on the way."""

HOLDING_OUT, FINDING_SHARE = 200, 0.25
"""With so many rows a column, a link that clips is found on this share of them, and judged by the others."""

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

MOST_EXACT_ROWS, MOST_NOISY_ROWS = 5_000, 20_000
"""Rows that tell exact numbers and the shortest form of a formula, and those that an estimate from noisy rows takes."""

MOST_EXACT_NUMBERS, EXACT_ROWS_PER_COLUMN = 1_000_000, 5
"""The first are fewer where there are many columns: so many numbers, or rows a column."""

KEPT, ROUNDED = 0.98, 1.1
"""Share of the rows that an exact formula keeps at least, of those that a rounded one explains; and half-widths beyond
which no rounding is behind it."""

SHUFFLES, PLENTY = 2, 10
"""How often labels are shuffled; and how many times more rows than labels that are alike make that needless."""

_FOLLOWS = np.arange(KINDS) & AGREES > 0


@dataclass(frozen=True, slots=True)
class Recovery:
    """Formulas for all label columns of a table.

    Attributes
    ----------
    coef : (d, m) array
        One column for each label column; the last row is the intercept where the table has one.
    marks : tuple of m Values
        What all rows are marked with, where the rows are; see :mod:`massart.agreement.marks`.
    tallies : tuple of m (32,) arrays
        The weight of all rows by their marks.
    certificates : tuple of m Certificate
    fractions : tuple of m tuples
        The exact value of each coefficient, a Fraction, or None where there is none.
    scale : (m,) array
        Robust scale of the residuals of noisy inliers; 0 for exact ones.
    standard_errors : (d, m) array
        Of the coefficients, for noisy inliers; 0 for exact ones, NaN where nothing is known.
    covariances : tuple of m (d, d) arrays or None
        Of the coefficients, for noisy inliers; None for exact ones.
    verdicts : tuple of m callables
        Return the certificate for another tally: that of a larger table, of which these rows are a part by X alone.
    """

    coef: FloatArray
    marks: tuple[Values, ...]
    tallies: tuple[FloatArray, ...]
    certificates: tuple[Certificate, ...]
    fractions: tuple[tuple[Fraction | None, ...], ...]
    scale: FloatArray
    standard_errors: FloatArray
    covariances: tuple[FloatArray | None, ...]
    verdicts: tuple[Callable[[FloatArray], Certificate], ...]

    @property
    def agree(self) -> BoolArray:
        """Rows that follow the formulas, in memory: (n, m)."""
        return self._marked(AGREES)

    @property
    def last_place(self) -> BoolArray:
        """Rows that do not, by one unit of the last place: (n, m)."""
        return self._marked(LAST_PLACE)

    @property
    def n_agree(self) -> FloatArray:
        """The weight of the rows that follow: (m,)."""
        return np.array([tally[_FOLLOWS].sum() for tally in self.tallies])

    @property
    def noise_rate(self) -> FloatArray:
        """Share of the rows (by weight) that do not follow: (m,)."""
        return np.array([tally[~_FOLLOWS].sum() / tally.sum() for tally in self.tallies])

    def _marked(self, mark: int) -> BoolArray:
        return np.stack([marks.to_numpy() & mark > 0 for marks in self.marks], axis=1)


def recover(
    rows: Rows,
    *,
    tolerance: float | Literal["auto"] = "auto",
    inliers: Literal["auto", "exact", "noisy"] = "auto",
    rng: np.random.Generator,
    link: Link = IDENTITY,
    search: bool | int = True,
    assumption: Assumption = PLAIN,
    units: NDArray[np.integer] | None = None,
    seen: NDArray[np.intp] | None = None,
    parts: Sequence[NDArray[np.intp]] = (),
    start: Start | None = None,
    inputs: bool = True,
    callback: Callback = silent,
) -> Recovery:
    """Recover the formula of each label column of a table.

    Parameters
    ----------
    rows : Rows
    tolerance : "auto" or float
        See :func:`massart.agreement.levels`.
    inliers : {"auto", "exact", "noisy"}
        Whether right rows follow the formula exactly, or up to noise. "auto" asks the rows: a majority that agrees is
        exact, and only without one noise is considered.
    rng : numpy.random.Generator
    link : Link
        f of y = f(w.x).
    search : bool or int
        False for the published algorithm alone; a number for so many rounds of search at most.
    assumption : Assumption
        What CONFIRMED takes for granted.
    start : Start, optional
        Coefficients that are known from elsewhere.
    inputs : bool
        Whether columns may have been rounded; those of products were not.
    seen : (m,) array of int, optional
        Rows whose labels helped to choose the columns: only others can confirm.
    parts : sequence of (n,) arrays of int
        Parts of the rows, by X alone: a rule that most rows of one break is no more than a plurality.
    units : (n,) array of int, optional
        Rows of one unit are wrong together; by default each row is a unit.
    callback : callable
    """
    if inliers not in ("auto", "exact", "noisy"):
        raise ValueError(f'inliers must be "auto", "exact" or "noisy", got {inliers!r}')
    options = Options(rng, None if search is True else int(search), callback)
    driver = _Driver(rows, link, tolerance, assumption, units, options)
    driver.start, driver.inputs = start, inputs
    driver.judges = replace(driver.judges, seen=seen, parts=tuple(codes[driver.judges.rows.index] for codes in parts))
    outcomes = [driver.outcome(j, inliers) for j in range(rows.n_outputs)]
    return Recovery(
        coef=np.stack([outcome.coef for outcome in outcomes], axis=1),
        marks=tuple(outcome.marks for outcome in outcomes),
        tallies=tuple(outcome.tally for outcome in outcomes),
        certificates=tuple(outcome.certificate for outcome in outcomes),
        fractions=tuple(outcome.fractions for outcome in outcomes),
        scale=np.array([outcome.certificate.scale or 0.0 for outcome in outcomes]),
        standard_errors=np.stack([outcome.standard_errors for outcome in outcomes], axis=1),
        covariances=tuple(outcome.covariance for outcome in outcomes),
        verdicts=tuple(outcome.verdict for outcome in outcomes),
    )


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
class _Outcome:
    """A formula for one label column, verified on all rows."""

    coef: FloatArray
    fractions: tuple[Fraction | None, ...]
    marks: Values
    tally: FloatArray
    verdict: Callable[[FloatArray], Certificate]
    certificate: Certificate
    standard_errors: FloatArray
    covariance: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """A formula, counted on the rows that may propose; and its level of agreement once its numbers are exact."""

    formula: Formula
    if_exact: Agreement
    weight: float
    chance: float
    decided: float
    support: Support


class _Driver:
    """One call of `recover`: the table, the options, and what X alone says."""

    def __init__(
        self,
        rows: Rows,
        link: Link,
        tolerance: float | Literal["auto"],
        assumption: Assumption,
        units: NDArray[np.integer] | None,
        options: Options,
    ) -> None:
        self.rows, self.link, self.tolerance, self.options = rows, link, tolerance, options
        self.start: Start | None = None
        self.inputs = True
        d = rows.n_columns
        size = max(JUDGING_ROWS, JUDGING_ROWS_PER_COLUMN * d)
        size = min(size, max(JUDGING_NUMBERS // d, 2 * ROWS_PER_COLUMN * d))
        judging = self._with_rare_rows(rows.sample(size, options.rng))
        repeated = judging.weights is not None and _is_whole(judging.weights)
        if repeated:  # as if the table had each row so often, but for what is independent
            times = np.asarray(judging.weights, dtype=np.intp)
            judging = replace(judging.take(np.repeat(np.arange(len(times)), times)), weights=None)
        if size >= rows.n_rows:  # by X alone, where a part of the rows holds its labels back
            judging = judging.in_canonical_order(labels=link.invertible)
        _check_size(judging)
        per_column = ROWS_PER_COLUMN if link.invertible else CLIPPED_ROWS_PER_COLUMN
        self.first_size = max(per_column * d, SMALLEST_SAMPLE)
        own = None if units is None else units[judging.index]
        if repeated and units is None:
            own = judging.index
        geometry = geometry_of(judging.X, sample_weight=judging.weights, units=own, there=judging.there)
        self.finding, held_out = judging, None
        if link.invertible and geometry.wide is None:  # else sums of all rows that judge are kept
            self.finding = self._some(judging, FINDING_ROWS)
        if not link.invertible and len(judging.index) >= HOLDING_OUT * d:
            chosen = np.zeros(len(judging.index), dtype=bool)
            share = max(round(FINDING_SHARE * len(chosen)), min(2 * self.first_size, len(chosen) // 2))
            chosen[options.rng.permutation(len(chosen))[:share]] = True
            self.finding, held_out = judging.take(chosen).in_canonical_order(), judging.take(~chosen)
        self.judges = Judges(judging, geometry, held_out, own, assumption, options.rng)
        self.scouts = self.judges
        if link.invertible:
            self.scouts = replace(self.judges, rows=self.finding)
        elif held_out is not None:
            geometry = geometry_of(self.finding.X, sample_weight=self.finding.weights)
            self.scouts = replace(self.judges, rows=self.finding, geometry=geometry, held_out=None)

    def outcome(self, j: int, inliers: Literal["auto", "exact", "noisy"]) -> _Outcome:
        """Return the formula of one label column."""
        if self.start is not None and self.start.agreement is not None and self.start.fractions is not None:
            return self._judged(j, Formula(self.start.coef, self.start.agreement, self.link), self.start.fractions)
        sample = self._some(self.finding.column(j), MOST_NOISY_ROWS)
        if inliers == "noisy" and self.link.invertible:  # nothing else is looked for, unless the labels are exact
            noisy = find_noisy(sample, None, Agreement(Level.EXACT), self.link, self.options, forced=True)
            if noisy is not None:
                return self._noisy(j, noisy)
        found = self._find(j, patient=inliers == "exact", rounds=1 if inliers == "noisy" else self.options.rounds)
        answer = self._final(j, found)
        if inliers == "exact":
            return answer
        agreement = answer.certificate.agreement
        noisy = noise_of_units(sample, answer.coef, agreement, self.link) if inliers == "auto" else None
        if noisy is None and (inliers == "noisy" or not self._is_exact(answer.certificate)):
            noisy = find_noisy(sample, answer.coef, agreement, self.link, self.options, forced=inliers == "noisy")
        return answer if noisy is None else self._noisy(j, noisy)

    def _with_rare_rows(self, judging: Sample) -> Sample:
        """Return rows that judge, and more of those that some columns rest on: a choice by X alone."""
        self.rare = np.empty(0, dtype=np.intp)
        if len(judging.index) >= self.rows.n_rows:
            return judging
        columns = judging.X[:, :-1] if (judging.X[:, -1] == 1).all() else judging.X
        thin = np.flatnonzero(nonzero_counts(columns) < RARE_ROWS)
        if not len(thin):
            return judging
        uses = self.rows.map(Uses(tuple(thin.tolist())))
        if not total_of(uses, self.rows.n_rows):
            return judging
        rare = self.rows.sample(min(RARE_ROWS * len(thin), MOST_RARE_ROWS), self.options.rng, uses)
        self.rare = rare.index
        return judging.joined(rare)

    def _some(self, rows: Sample, most: int) -> Sample:
        """Return the rows, or so many of them at random beside the rare ones."""
        n = len(rows.index)
        if n <= most:
            return rows
        chosen = np.isin(rows.index, self.rare)
        chosen[self.options.rng.choice(n, most, replace=False)] = True
        return rows.take(np.flatnonzero(chosen))

    def _is_exact(self, certificate: Certificate) -> bool:
        """Tell whether noise need not be considered: a majority agrees, and not for want of a rule."""
        verdict = certificate.verdict
        return verdict.stands or (verdict.name == "PLURALITY" and 2 * certificate.n_agree > certificate.n_rows)

    def _find(self, j: int, patient: bool, rounds: int | None) -> _Found:
        """Return the formula that fits most of the rows that may propose; samples go where support is weak."""
        finding = self.finding.column(j)
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
                sample = self._some(finding, FINDING_ROWS) if is_last else self._drawn(finding, size, best)
            # Where nothing beyond chance was found, the published algorithm has all rows, and that is that.
            found = self._attempt(finding, sample, 0 if hopeless else rounds if is_last else early)
            barren += self._is_barren(found)
            best = found if self._is_better(found, best) else best
            is_whole |= is_last
            if hopeless:
                break
        return best

    def _is_settled(self, found: _Found) -> bool:
        """Tell whether more than half of the evidence agrees in every direction, or as much as chance leaves."""
        total = float(self.finding.counts.sum())
        if 2 * found.weight <= total:
            return False
        return found.support.alpha > 0.5 or is_weak_by_chance(self.scouts.geometry, found.support, found.weight / total)

    def _is_barren(self, found: _Found) -> bool:
        """Tell whether hardly more rows agree than any formula fits: fewer than a plurality takes."""
        total = float(self.finding.counts.sum())
        few = PLURALITY * total if len(self.finding.index) >= self.first_size * WORTH_SAMPLING else 0.0
        return found.decided <= self.rows.n_columns + 1 + few

    def _is_better(self, found: _Found, best: _Found) -> bool:
        """Tell whether a formula fits more rows; a looser one, many more than one that already has a majority."""
        slack = [one.formula.agreement.slack(one.formula.coef) for one in (found, best)]
        if found.formula.agreement.level is best.formula.agreement.level or slack[0] == slack[1]:
            return found.weight > best.weight
        tighter, looser = (found, best) if slack[0] < slack[1] else (best, found)
        total = float(self.finding.counts.sum())
        needed = looser.chance + CLEAR * np.sqrt(looser.chance)
        if 2 * tighter.weight > total:
            needed = max(needed, NEARLY_ALL * (total - tighter.weight))
        return bool(looser.weight > tighter.weight + needed) == (looser is found)

    def _drawn(self, finding: Sample, size: int, best: _Found | None) -> Sample:
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

    def _attempt(self, finding: Sample, sample: Sample, rounds: int | None) -> _Found:
        """Return the formula of a sample, in exact numbers, counted on all rows that may propose."""
        options = replace(self.options, rounds=rounds)
        pieces = decompose(sample.X, sample_weight=sample.weights, callback=options.callback)
        proposal = propose(sample, self._levels(sample), self.link, options, pieces)
        return self._counted(finding, proposal)

    def _started(self, finding: Sample, start: Start) -> _Found:
        """Return the formula that is known, at the tightest level at which hardly a row is lost."""
        rows = self._some(finding, MOST_EXACT_ROWS)
        known = self._levels(rows)
        found = []
        for level in [level for level in known if level.label <= 1.001 * start.half_width] or known[:1]:
            w, seen = start.coef, verify(rows.X, rows.y, start.coef, level.uncapped, self.link)
            tries = [Proposal(w, level, seen, float(rows.counts[seen.agree].sum()))]
            if not level.rounded:  # known within rounding only, and so is a constant
                shifts = (-start.half_width, 0.0, start.half_width) if (rows.X[:, -1] == 1).all() else (0.0,)
                for shift in shifts:
                    shifted = np.append(w[:-1], w[-1] + shift)
                    v, seen = polish(rows.X, rows.y, rows.counts, shifted, level.uncapped, self.link)
                    tries.append(Proposal(v, level, seen, float(rows.counts[seen.agree].sum())))
            found.append(max(tries, key=lambda proposal: proposal.weight))
        exact, *looser = found
        for proposal in looser:
            # Rows a unit off an exact formula of a majority are wrong: the other formula lies between two.
            gained = proposal.rows.agree & ~exact.rows.agree
            off = np.abs(exact.rows.residuals) / np.maximum(proposal.rows.half_widths, 1e-300)
            wrong = gained & (off > ROUNDED) & (off <= 2 * ROUNDED)
            majority = 2 * exact.weight > rows.counts.sum()
            if exact.weight < KEPT * proposal.weight and not (majority and 2 * wrong.sum() > gained.sum()):
                return self._counted(finding, proposal)
        return self._counted(finding, exact)

    def _quick(self, finding: Sample, rounds: int) -> _Found | None:
        """Return the formula of many rows that a majority follows, if it is found at little cost."""
        n, d = finding.X.shape
        if not rounds or not self.link.invertible or finding.weights is not None:
            return None
        if n < QUICK_ROWS_PER_COLUMN * d or n * d < QUICK_NUMBERS:
            return None
        w = reweighted(finding.X, finding.y)
        sample = self._drawn(finding, max(QUICK_SAMPLE_PER_COLUMN * d, QUICK_SAMPLE), None)
        proposal = propose(sample, self._levels(sample), self.link, replace(self.options, rounds=0), first=w)
        if 2 * proposal.weight <= len(sample.index):
            return None
        answer = self._counted(finding, proposal)
        return answer if 2 * answer.weight > n + d else None

    def _counted(self, finding: Sample, proposal: Proposal) -> _Found:
        formula = Formula(proposal.coef, proposal.agreement.uncapped, self.link)
        found, marks = formula.marks(finding)
        counts = finding.counts
        decided = float(counts[(marks & AGREES > 0) & (marks & DECISIVE > 0)].sum())
        scouts = replace(self.scouts, rows=finding)
        support = measure_support_of(formula, scouts, found, marks, tails=False)
        weight, chance = float(counts[found.agree].sum()), chance_inside(found, counts)
        return _Found(formula, proposal.agreement, weight, chance, decided, support)

    def _final(self, j: int, found: _Found) -> _Outcome:
        """Return the formula in its shortest form and in exact numbers, with all rows marked, and judged."""
        finding = self.finding.column(j)
        formula = found.formula
        most = max(MOST_EXACT_NUMBERS // self.rows.n_columns, EXACT_ROWS_PER_COLUMN * self.rows.n_columns)
        rows = self._some(finding, MOST_ROUNDED_ROWS if formula.agreement.rounded else min(MOST_EXACT_ROWS, most))
        coef = formula.coef
        if formula.agreement.rounded and formula.agreement.level is not Level.NOISE:
            # Intervals of rounded labels pin a coefficient the better the more rows there are.
            coef, _ = polish(rows.X, rows.y, rows.counts, coef, formula.agreement, self.link)
        short = Shortened(coef)
        if found.decided > min(self.rows.n_columns + 1, PLURALITY * float(finding.counts.sum())):  # else there is none
            short = shorten(rows.X, rows.y, rows.counts, coef, formula.agreement, self.link)
        agree = formula.agreement.agree(rows.X, rows.y, short.coef, self.link)
        coef, fractions = snap(rows.X, rows.y, agree, short.coef, formula.agreement, self.link)
        coef, fractions, exact = hold_to_exact_arithmetic(rows, coef, fractions, found.if_exact, self.link)
        agreement = self._tightest(rows, coef, found.if_exact if exact else formula.agreement, exact)
        return self._judged(j, replace(formula, coef=coef, agreement=agreement), fractions, short.thin)

    def _judged(
        self,
        j: int,
        formula: Formula,
        fractions: tuple[Fraction | None, ...],
        thin: tuple[tuple[int, float], ...] = (),
    ) -> _Outcome:
        """Mark all rows, and judge."""
        finding, coef = self.finding.column(j), formula.coef
        marks = self._marks(formula, j)
        counts = tally(marks, self.rows.weights)
        judges = replace(
            self.judges,
            rows=self.judges.rows.column(j),
            held_out=None if self.judges.held_out is None else self.judges.held_out.column(j),
        )

        def verdict(tally: FloatArray) -> Certificate:
            return judge(formula, judges, tally, thin=thin, shuffled=lambda: self._shuffled(finding, formula))

        certificate = verdict(counts)
        errors = np.full(len(coef), 0.0 if certificate.verdict.stands else np.nan)
        return _Outcome(coef, fractions, marks, counts, verdict, certificate, errors)

    def _levels(self, sample: Sample) -> tuple[Agreement, ...]:
        x_precision, y_precision = self.rows.precision
        found = levels(self.tolerance, sample.X, sample.y, X_precision=x_precision, y_precision=y_precision)
        return found if self.inputs else tuple(level for level in found if level.level is not Level.INPUTS)

    def _tightest(self, rows: Sample, coef: FloatArray, agreement: Agreement, exact: bool) -> Agreement:
        """Return the tightest level at which no fewer rows agree: a shorter formula may not need a loose one."""

        def weight(level: Agreement) -> float:
            return float(rows.counts[level.agree(rows.X, rows.y, coef, self.link)].sum())

        if not agreement.rounded:
            return agreement
        candidates = (level if exact else level.uncapped for level in self._levels(rows))
        return next((level for level in candidates if weight(level) >= weight(agreement)), agreement)

    def _shuffled(self, finding: Sample, formula: Formula) -> float:
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
        free = self.rows.n_columns / n
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

    def _noisy(self, j: int, found: NoisyFit) -> _Outcome:
        """Return a formula with noisy inliers, with all rows marked."""
        agreement = Agreement(Level.NOISE, label=found.reach)
        marks = self._marks(Formula(found.coef, agreement, self.link), j)
        counts = tally(marks, self.rows.weights)

        def verdict(tally: FloatArray) -> Certificate:
            return noisy_certificate(
                float(tally.sum()),
                float(tally[_FOLLOWS].sum()),
                found.scale,
                reach=found.reach,
                rank=found.span.rank,
                undetermined=found.span.undetermined,
                undetermined_columns=found.span.groups,
            )

        none = (None,) * len(found.coef)
        certificate = verdict(counts)
        return _Outcome(found.coef, none, marks, counts, verdict, certificate, found.standard_errors, found.covariance)

    def _marks(self, formula: Formula, j: int) -> Values:
        """Return the marks of all rows of the table: one read."""
        try:
            return self.rows.map(Mark(formula.coef, formula.agreement, self.link, j))
        except FloatingPointError:
            raise ValueError(self.rows.fault()) from None


def _is_whole(weights: FloatArray) -> bool:
    """Tell whether weights are numbers of repetitions, and not too many."""
    return bool((weights == np.rint(weights)).all() and weights.sum() <= MOST_REPEATED)


def _check_size(sample: Sample) -> None:
    """Raise ValueError where squares of the numbers overflow, or all of them vanish."""
    largest = max(float(sample.X.max()), -float(sample.X.min()))
    if largest and not 1 / SQUARE_IS_FINITE <= largest <= SQUARE_IS_FINITE:
        i, j = np.unravel_index(int(np.abs(sample.X).argmax()), sample.X.shape)
        raise ValueError(
            f"X must have its largest number between {1 / SQUARE_IS_FINITE:g} and {SQUARE_IS_FINITE:g}, got "
            f"{sample.X[i, j]:g} at row {sample.index[i]}, column {j}: choose another unit"
        )
