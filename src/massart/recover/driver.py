"""The walk of a recovery: sample, propose, polish, count; again where support is weak; exact numbers; marks; verdict.

Proposing a formula is expensive, and verifying one is a single read of the table. So a small sample proposes, and some
ten thousand rows, or all, judge. These, and what X alone says of them, are fixed before labels are looked at
(:mod:`massart.recover.problem`). What a sample proposed (:mod:`massart.recover.propose`) is counted on more rows, and
where support is lacking, more rows are looked at (:mod:`massart.recover.finding`). In the end the formula is put in
exact numbers, its shortest form is taken, every row of the table is marked, and the verdict is made
(:mod:`massart.recover.judge`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from massart.certificate import PLAIN, Assumption, Certificate, Reason, Verdict, certify_counts, span_of
from massart.recover.certification import Covariates, Formula, stands_out
from massart.recover.finding import find, is_none, share_by_chance, tightest
from massart.recover.judge import judge
from massart.recover.noisy import NoisyFit, find_noisy
from massart.recover.polish import Candidate, polish
from massart.recover.problem import Problem, Question, Start
from massart.recover.settings import SETTINGS, Options
from massart.recover.shorten import hold_to_exact_arithmetic, shorten, snap
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
    Values,
    silent,
    tally,
)

MULTIPLIED = (12.0, 120.0)
"""Half-widths of the labels within which a second rule may lie, too: what was rounded before it was multiplied by 10 or
100 is off by more than what was rounded last."""

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

    @classmethod
    def joined(cls, columns: Sequence[Recovery]) -> Recovery:
        """Return the recoveries of single label columns as one."""

        def together(name: str) -> Any:
            values = [getattr(one, name) for one in columns]
            return np.concatenate(values, axis=-1) if isinstance(values[0], np.ndarray) else sum(values, ())

        return cls(*(together(one.name) for one in fields(cls)))

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
        False for the published algorithm alone; a number for at most as many rounds of search.
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
    question = Question(link, tolerance, inliers, assumption, start, inputs, options, SETTINGS)
    problem = Problem.of(question, rows, units=units, seen=seen, covariates=covariates)
    return Recovery.joined([_walk(column) for column in problem.columns()])


def _walk(problem: Problem) -> Recovery:
    """Return the formula of one label column."""
    question = problem.question
    link, start, options = question.link, question.start, question.options
    if start is not None and start.agreement is not None and start.fractions is not None:
        level = start.agreement
        if problem.seen is None:  # else labels of other rows have no say in the level of terms that labels chose
            level = tightest(problem, start.coef, level, exact=True)
        return _judged(problem, Formula(start.coef, level, link), start.fractions)

    # 1. Noise, where it was asked for: nothing else is looked for, unless the labels are exact.
    sample, forced = problem.some(problem.search, question.settings.search), question.inliers == "noisy"
    noisy = partial(find_noisy, sample, link=link, options=options)
    if forced and link.invertible:
        found = noisy(None, Agreement(Level.EXACT), forced=True)
        if found is not None:
            return _estimated(problem, found)

    # 2. Sample, propose, polish and count; again where support is weak.
    best = find(problem)

    # 3. Where hardly more rows agree than any formula fits, noise comes first: such a formula has no shortest form.
    is_nothing = is_none(best) and 2 * best.weight <= best.total
    may_be_noise = forced or question.may_be_noise
    if is_nothing and may_be_noise:
        found = noisy(best.coef, best.agreement.uncapped, forced=forced)
        if found is not None:
            return _estimated(problem, found)

    # 4. The shortest form in exact numbers, at the tightest level that keeps all rows.
    formula, fractions, thin = _in_exact_numbers(problem, best, is_nothing)

    # 5. One read marks all rows, and the certificate is made.
    answer = _judged(problem, formula, fractions, thin)

    # 6. Noise, where no majority agrees exactly and no minority stands out.
    certificate = answer.certificates[0]
    majority = 2 * certificate.n_agree > certificate.n_rows
    exact = certificate.verdict.stands or (majority and certificate.verdict is Verdict.PLURALITY)
    if not may_be_noise or is_nothing or (exact and not forced):
        return answer
    sharp = not forced and _is_sharp(formula, certificate, problem.search)
    near = majority and certificate.reason is Reason.NEAR
    found = noisy(formula.coef, formula.agreement, forced=forced or near, sharp=sharp)
    return answer if found is None else _estimated(problem, found)


def _in_exact_numbers(
    problem: Problem, best: Candidate, is_nothing: bool
) -> tuple[Formula, tuple[Fraction | None, ...], tuple[tuple[int, float], ...]]:
    """Return the shortest form in exact numbers, these, and the columns left out with the weight of their rows."""
    link, level, coef = problem.question.link, best.agreement.uncapped, best.coef
    settings = problem.question.settings
    rows = problem.some(problem.search, settings.search if level.rounded else settings.exact)
    if level.rounded:  # intervals pin a coefficient the better the more rows there are
        coef = polish(rows, coef, level, link).coef
    thin: tuple[tuple[int, float], ...] = ()
    if not is_nothing:
        coef, thin = shorten(rows, coef, level, link)
    agree = level.agree(rows.X, rows.y, coef, link)
    coef, fractions = snap(rows, agree, coef, level, link)
    coef, fractions, exact = hold_to_exact_arithmetic(rows, coef, fractions, best.agreement, link)
    level = tightest(problem, coef, best.agreement if exact else level, exact)
    return Formula(coef, level, link), fractions, thin


def _is_sharp(formula: Formula, certificate: Certificate, rows: Sample) -> bool:
    """Return whether a minority agrees that no noise explains, and determines all that the columns can determine."""
    if certificate.verdict is not Verdict.PLURALITY:
        return False
    if certificate.rank < certificate.n_columns and certificate.rank < span_of(rows.X).rank:
        return False
    return stands_out(formula, rows, certificate.rank)


def _judged(
    problem: Problem,
    formula: Formula,
    fractions: tuple[Fraction | None, ...],
    thin: tuple[tuple[int, float], ...] = (),
) -> Recovery:
    """Mark all rows with a final formula, and judge it: by all rows that certify where a part says too little."""

    def verdict(tally: FloatArray) -> Certificate:
        if not problem.staged:
            return _certified(problem, formula, tally, thin)
        if tally[~_FOLLOWS].sum() <= problem.question.settings.most_wrong_at_first * tally.sum():
            certificate = _certified(problem, formula, tally, thin)
            if certificate.verdict.certain:
                return certificate
        return _certified(problem.second_stage(), formula, tally, thin)

    return _marked(problem, formula, fractions, verdict)


def _certified(
    problem: Problem, formula: Formula, tally: FloatArray, thin: tuple[tuple[int, float], ...]
) -> Certificate:
    shuffled = partial(share_by_chance, problem, formula)
    second = partial(_has_second_rule, problem, problem.certification.rows, formula)
    return judge(formula, problem.certification, tally / problem.unit, thin=thin, shuffled=shuffled, second_rule=second)


def _estimated(problem: Problem, found: NoisyFit) -> Recovery:
    """Mark all rows with a formula whose inliers are noisy."""
    formula = Formula(found.coef, Agreement(Level.NOISE, label=found.reach), problem.question.link)

    def verdict(tally: FloatArray) -> Certificate:
        return certify_counts(
            Verdict.NOISY,
            formula.agreement,
            problem.question.assumption,
            n_rows=float(tally.sum()) / problem.unit,
            n_agree=float(tally[_FOLLOWS].sum()) / problem.unit,
            span=found.span,
            scale=float(found.scale),
        )

    answer = _marked(problem, formula, (None,) * len(found.coef), verdict)
    return replace(answer, standard_errors=found.standard_errors[:, None], covariances=(found.covariance,))


def _marked(
    problem: Problem,
    formula: Formula,
    fractions: tuple[Fraction | None, ...],
    verdict: Callable[[FloatArray], Certificate],
) -> Recovery:
    """Mark all rows of the table, which is one read, and make the certificate."""
    try:
        marks = problem.rows.map(Mark(formula.coef, formula.agreement, formula.link, problem.place))
    except FloatingPointError:
        raise ValueError(problem.rows.fault()) from None
    counts = tally(marks, problem.rows.weights)
    certificate = verdict(counts)
    errors = np.full((len(formula.coef), 1), 0.0 if certificate.verdict.stands else np.nan)
    scale = np.array([certificate.scale or 0.0])
    coef = formula.coef[:, None]
    return Recovery(coef, (marks,), (counts,), (certificate,), (fractions,), scale, errors, (None,), (verdict,))


def _has_second_rule(problem: Problem, rows: Sample, formula: Formula) -> bool:
    """Return whether another rule is certified among the rows that do not agree with the formula."""
    from massart.recover.further_rule import KnownRule, Search  # which calls the driver

    some = problem.some(rows, problem.question.settings.exact)
    found, marks = formula.marks(some)
    agree = marks & AGREES > 0
    known = KnownRule(found.products, agree, float(found.half_widths[agree].max(initial=0.0)))
    looser = [factor * formula.agreement.label for factor in MULTIPLIED if formula.agreement.rounded]
    return any(
        Search(some.X, some.y, tolerance, precision=max(problem.rows.precision)).further([known]) is not None
        for tolerance in (problem.question.tolerance, *looser)
    )
