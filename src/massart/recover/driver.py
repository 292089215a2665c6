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

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Certificate, Verdict, certify_noisy, geometry_of, span_of
from massart.recover.finding import FINDING_ROWS, MOST_EXACT_ROWS, SMALLEST_SAMPLE, Finder, Found, Start, some_of
from massart.recover.judge import PLURALITY, judge
from massart.recover.judges import PLAIN, Assumption, Formula, Judges
from massart.recover.noisy import NoisyFit, find_noisy, noise_of_units
from massart.recover.polish import polish
from massart.recover.propose import Options
from massart.recover.scanned import Covariates, Scanned
from massart.recover.sharpness import stands_out
from massart.recover.shorten import Shortened, shorten
from massart.recover.snapping import MOST_ROUNDED_ROWS, SQUARE_IS_FINITE, hold_to_exact_arithmetic, snap
from massart.rows import (
    AGREES,
    IDENTITY,
    KINDS,
    LAST_PLACE,
    Agreement,
    BoolArray,
    Callback,
    FloatArray,
    Level,
    Link,
    Mark,
    Rows,
    Sample,
    Uses,
    Values,
    nonzero_counts,
    silent,
    tally,
    total_of,
)

ROWS_PER_COLUMN, CLIPPED_ROWS_PER_COLUMN = 16, 32
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

HOLDING_OUT, FINDING_SHARE = 200, 0.25
"""With so many rows a column, a link that clips is found on this share of them, and judged by the others."""

SECOND_RULE_ROWS = 5_000
"""Rows among which a second rule is looked for, before errors are taken to be independent of the columns."""

MULTIPLIED = (12.0, 120.0)
"""Half-widths of the labels within which a second rule may lie, too."""

MOST_NOISY_ROWS = 20_000
"""Rows that an estimate from noisy rows takes."""

MOST_EXACT_NUMBERS, EXACT_ROWS_PER_COLUMN = 1_000_000, 5
"""Rows that tell exact numbers are fewer where there are many columns: so many numbers, or rows a column."""

LARGEST_LABEL = 1e250
"""Wrong labels may be of any size, as long as right ones beside them do not vanish."""

_FOLLOWS = np.arange(KINDS) & AGREES > 0


@dataclass(frozen=True, slots=True)
class Recovery:
    """Formulas for all label columns of a table.

    Attributes
    ----------
    coef : (d, m) array
        One column for each label column; the last row is the intercept where the table has one.
    marks : tuple of m Values
        What all rows are marked with, where the rows are; see :mod:`massart.rows.marks`.
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
    covariates: Covariates | None = None,
    start: Start | None = None,
    inputs: bool = True,
    callback: Callback = silent,
) -> Recovery:
    """Recover the formula of each label column of a table.

    Parameters
    ----------
    rows : Rows
    tolerance : "auto" or float
        See :func:`massart.rows.levels`.
    inliers : {"auto", "exact", "noisy"}
        Whether right rows follow the formula exactly, or up to noise. "auto" asks the rows: a majority that agrees is
        exact, and so is a minority that stands out; only without one noise is considered. Not so with a tolerance that
        was given: that is what right rows may be off.
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
    covariates : Covariates, optional
        All columns of the table: a rule that most rows of a segment break is no more than a plurality. By default the
        columns of X.
    units : (n,) array of int, optional
        Rows of one unit are wrong together; by default each row is a unit.
    callback : callable
    """
    if inliers not in ("auto", "exact", "noisy"):
        raise ValueError(f'inliers must be "auto", "exact" or "noisy", got {inliers!r}')
    options = Options(rng, None if search is True else int(search), callback)
    driver = _Driver(rows, link, tolerance, assumption, units, options, covariates)
    driver.finder = replace(driver.finder, start=start, inputs=inputs)
    driver.judges = replace(driver.judges, seen=seen)
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
        covariates: Covariates | None = None,
    ) -> None:
        self.rows, self.link, self.options = rows, link, options
        d = rows.n_columns
        size = _judging_rows(d)
        judging, rare = _with_rare_rows(rows, rows.sample(size, options.rng), options.rng)
        judging, self.unit, repeated = counted_as_rows(judging)
        if size >= rows.n_rows:  # by X alone, where a part of the rows holds its labels back
            judging = judging.in_canonical_order(labels=link.invertible)
        check_size(judging)
        per_column = ROWS_PER_COLUMN if link.invertible else CLIPPED_ROWS_PER_COLUMN
        first_size = max(per_column * d, SMALLEST_SAMPLE)
        own = None if units is None else units[judging.index]
        if repeated and units is None:
            own = judging.index
        geometry = geometry_of(judging.X, sample_weight=judging.weights, units=own, there=judging.there)
        finding, held_out = judging, None
        if link.invertible and geometry.wide is None:  # else sums of all rows that judge are kept
            finding = some_of(judging, FINDING_ROWS, rare, options.rng)
        if not link.invertible and len(judging.index) >= HOLDING_OUT * d:
            share = max(round(FINDING_SHARE * len(judging.index)), min(2 * first_size, len(judging.index) // 2))
            chosen = _some_units(np.arange(len(judging.index)) if own is None else own, share, options.rng)
            finding, held_out = judging.take(chosen).in_canonical_order(), ~chosen
        scanned = Scanned.of(judging, own, covariates)
        self.judges = Judges(judging, geometry, held_out, own, assumption, options.rng, scanned=scanned)
        scouts = replace(self.judges, scanned=None)
        if link.invertible:
            scouts = replace(scouts, rows=finding)
        elif held_out is not None:
            geometry = geometry_of(finding.X, sample_weight=finding.weights)
            scouts = replace(scouts, rows=finding, geometry=geometry, held_out=None)
        self.finder = Finder(finding, scouts, rows.precision, link, tolerance, first_size, rare, options)

    def outcome(self, j: int, inliers: Literal["auto", "exact", "noisy"]) -> _Outcome:
        """Return the formula of one label column."""
        start = self.finder.start
        if start is not None and start.agreement is not None and start.fractions is not None:
            return self._judged(j, Formula(start.coef, start.agreement, self.link), start.fractions)
        sample = self.finder.some(self.finder.rows.column(j), MOST_NOISY_ROWS)
        if inliers == "noisy" and self.link.invertible:  # nothing else is looked for, unless the labels are exact
            noisy = find_noisy(sample, None, Agreement(Level.EXACT), self.link, self.options, forced=True)
            if noisy is not None:
                return self._noisy(j, noisy)
        found = self.finder.find(j, patient=inliers == "exact", rounds=1 if inliers == "noisy" else self.options.rounds)
        answer = self._final(j, found)
        if inliers == "exact" or (inliers == "auto" and self.finder.tolerance != "auto"):
            return answer
        agreement = answer.certificate.agreement
        noisy = noise_of_units(sample, answer.coef, agreement, self.link) if inliers == "auto" else None
        if noisy is None and (inliers == "noisy" or not self._is_exact(answer.certificate)):
            forced = inliers == "noisy"
            sharp = not forced and self._is_sharp(j, answer)
            noisy = find_noisy(sample, answer.coef, agreement, self.link, self.options, forced=forced, sharp=sharp)
        return answer if noisy is None else self._noisy(j, noisy)

    def _is_exact(self, certificate: Certificate) -> bool:
        """Tell whether noise need not be considered: a majority agrees, and not for want of a rule."""
        verdict = certificate.verdict
        return verdict.stands or (verdict.name == "PLURALITY" and 2 * certificate.n_agree > certificate.n_rows)

    def _is_sharp(self, j: int, answer: _Outcome) -> bool:
        """Tell whether a minority agrees that no noise explains, and determines all that the columns can determine."""
        certificate, rows = answer.certificate, self.finder.rows.column(j)
        if certificate.verdict is not Verdict.PLURALITY:
            return False
        if certificate.rank < certificate.n_columns and certificate.rank < span_of(rows.X).rank:
            return False
        return stands_out(Formula(answer.coef, certificate.agreement, self.link), rows, certificate.rank)

    def _final(self, j: int, found: Found) -> _Outcome:
        """Return the formula in its shortest form and in exact numbers, with all rows marked, and judged."""
        finding = self.finder.rows.column(j)
        formula = found.formula
        rows = self.finder.some(finding, _telling_rows(self.rows.n_columns, formula.agreement))
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
        agreement = self.finder.tightest(rows, coef, found.if_exact if exact else formula.agreement, exact)
        return self._judged(j, replace(formula, coef=coef, agreement=agreement), fractions, short.thin)

    def _judged(
        self,
        j: int,
        formula: Formula,
        fractions: tuple[Fraction | None, ...],
        thin: tuple[tuple[int, float], ...] = (),
    ) -> _Outcome:
        """Mark all rows, and judge."""
        finding, coef = self.finder.rows.column(j), formula.coef
        marks = self._marks(formula, j)
        counts = tally(marks, self.rows.weights)
        judges = replace(self.judges, rows=self.judges.rows.column(j))

        def verdict(tally: FloatArray) -> Certificate:
            shuffled = partial(self.finder.shuffled, finding, formula)
            second = partial(self._has_second_rule, judges.rows, formula)
            return judge(formula, judges, tally / self.unit, thin=thin, shuffled=shuffled, second_rule=second)

        certificate = verdict(counts)
        errors = np.full(len(coef), 0.0 if certificate.verdict.stands else np.nan)
        return _Outcome(coef, fractions, marks, counts, verdict, certificate, errors)

    def _has_second_rule(self, rows: Sample, formula: Formula) -> bool:
        """Return whether another rule is certified among the rows that do not agree with the formula.

        What was rounded before it was multiplied by 10 or 100 is off by more than what was rounded last.
        """
        from massart.recover.further_rule import KnownRule, Search  # which calls the driver

        some = self.finder.some(rows, SECOND_RULE_ROWS)
        found, marks = formula.marks(some)
        agree = marks & AGREES > 0
        half = float(found.half_widths[agree].max(initial=0.0))
        known = KnownRule(found.products, agree, half)
        looser = [factor * formula.agreement.label for factor in MULTIPLIED if formula.agreement.rounded]
        for tolerance in (self.finder.tolerance, *looser):
            search = Search(some.X, some.y, tolerance, precision=max(self.rows.precision))
            if search.further([known]) is not None:
                return True
        return False

    def _noisy(self, j: int, found: NoisyFit) -> _Outcome:
        """Return a formula with noisy inliers, with all rows marked."""
        agreement = Agreement(Level.NOISE, label=found.reach)
        marks = self._marks(Formula(found.coef, agreement, self.link), j)
        counts = tally(marks, self.rows.weights)

        def verdict(tally: FloatArray) -> Certificate:
            return certify_noisy(
                float(tally.sum()) / self.unit,
                float(tally[_FOLLOWS].sum()) / self.unit,
                found.scale,
                reach=found.reach,
                span=found.span,
                assumption=self.judges.assumption,
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


def _judging_rows(d: int) -> int:
    """Return how many rows judge a formula of d columns, if there are so many."""
    return min(max(JUDGING_ROWS, JUDGING_ROWS_PER_COLUMN * d), max(JUDGING_NUMBERS // d, 2 * ROWS_PER_COLUMN * d))


def _telling_rows(d: int, agreement: Agreement) -> int:
    """Return how many rows tell exact numbers and the shortest form of d columns."""
    if agreement.rounded:
        return MOST_ROUNDED_ROWS
    return min(MOST_EXACT_ROWS, max(MOST_EXACT_NUMBERS // d, EXACT_ROWS_PER_COLUMN * d))


def _with_rare_rows(rows: Rows, judging: Sample, rng: np.random.Generator) -> tuple[Sample, NDArray[np.intp]]:
    """Return rows that judge and more of those that some columns rest on, and their numbers: a choice by X alone."""
    none = np.empty(0, dtype=np.intp)
    if len(judging.index) >= rows.n_rows:
        return judging, none
    columns = judging.X[:, :-1] if (judging.X[:, -1] == 1).all() else judging.X
    thin = np.flatnonzero(nonzero_counts(columns) < RARE_ROWS)
    if not len(thin):
        return judging, none
    uses = rows.map(Uses(tuple(thin.tolist())))
    if not total_of(uses, rows.n_rows):
        return judging, none
    rare = rows.sample(min(RARE_ROWS * len(thin), MOST_RARE_ROWS), rng, uses)
    return judging.joined(rare), rare.index


def _some_units(units: NDArray[np.integer], size: int, rng: np.random.Generator) -> BoolArray:
    """Return so many rows at random, with all that are wrong together with one of them."""
    _, first, codes, sizes = np.unique(units, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)[rng.permutation(len(first))]  # whatever the units are called
    chosen = np.zeros(len(first), dtype=bool)
    chosen[order[np.cumsum(sizes[order]) - sizes[order] < size]] = True
    return chosen[codes]


def counted_as_rows(sample: Sample) -> tuple[Sample, float, bool]:
    """Return the rows with weights that count as rows, the unit of these weights, and whether rows were repeated.

    A weight is never less than one on average: shares count as rows. A row of a small whole weight is repeated; its
    copies are right or wrong together.
    """
    if sample.weights is None:
        return sample, 1.0, False
    unit = min(1.0, float(sample.weights[sample.weights > 0].mean()))
    weights = sample.weights / unit
    if not _is_whole(weights):
        return replace(sample, weights=weights), unit, False
    times = weights.astype(np.intp)
    return replace(sample.take(np.repeat(np.arange(len(times)), times)), weights=None), unit, True


def _is_whole(weights: FloatArray) -> bool:
    """Tell whether weights are numbers of repetitions, and not too many."""
    return bool((weights == np.rint(weights)).all() and weights.sum() <= MOST_REPEATED)


def check_size(sample: Sample) -> None:
    """Raise ValueError where squares of the numbers overflow, or all of them vanish."""
    largest = max(float(sample.X.max()), -float(sample.X.min()))
    if largest and not 1 / SQUARE_IS_FINITE <= largest <= SQUARE_IS_FINITE:
        i, j = np.unravel_index(int(np.abs(sample.X).argmax()), sample.X.shape)
        raise ValueError(
            f"X must have its largest number between {1 / SQUARE_IS_FINITE:g} and {SQUARE_IS_FINITE:g}, got "
            f"{sample.X[i, j]:g} at row {sample.index[i]}, column {j}: choose another unit"
        )
    labels = sample.y.reshape(len(sample.y), -1)
    if np.abs(labels).max() > LARGEST_LABEL:
        i, j = np.unravel_index(int(np.abs(labels).argmax()), labels.shape)
        raise ValueError(
            f"y must have numbers up to {LARGEST_LABEL:g}, got {labels[i, j]:g} at row {sample.index[i]}: "
            "choose another unit, or leave such rows out"
        )
