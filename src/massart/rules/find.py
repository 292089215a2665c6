"""The rule behind a column: the plain columns first, then what is grown beyond them, each recovered and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from massart.certificate import SegmentScan, Verdict
from massart.options import Inliers, Model
from massart.recover import Assumption, Covariates, Recovery, Start, recover
from massart.rows import IDENTITY, RELU, ArrayRows, BoolArray, Callback, FloatArray, Link, Progress, silent
from massart.rules.choice import choose
from massart.rules.columns import Columns
from massart.rules.constants import Constants
from massart.rules.grow import Grown, Settings, glance, grow, short_coefficients
from massart.rules.literals import fraction_of
from massart.rules.matrix import TermMatrix
from massart.rules.terms import CONDITIONS, Term

ENOUGH = 0.98
"""Share of the rows that a rule of plain columns explains if nothing more is looked for."""

CLEAR = 0.4
"""Share of the rows from which on a first glance has seen the rule of the plain columns."""

PATIENCE = 1
"""Rounds of search for a rule of the plain columns where neither they nor other terms showed one."""

PILE = 0.05
"""Share of labels that are zero from which a limit may be behind them."""

LOST = 0.01
"""Share of the rows that shorter numbers may lose."""

PART_OF_MORE = 0.25
"""Of the rows that other terms have to explain, the share that one segment holds."""

LONGEST = 10**9
"""Largest denominator of a coefficient that is printed as an exact number."""

MORE, FEWEST = 0.015, 5.0
"""What explains more than the plain columns explains so many more rows: a share of them, and a number."""

SMALL = 600
"""Rows up to which a rule that some rows did not show is looked for on all of them: then no row is left to confirm."""

PLAIN_SHARE = 0.5
"""Of what may fail, the share of the plain columns; what is grown beyond them has the rest."""

EVEN = "Rows that do not agree are spread evenly over the columns: nothing was looked for beyond these."
"""What is said where a certain rule of the plain columns is broken all over the table."""

SEARCHED = (
    "Looked beyond the plain columns for products, powers, ratios, steps, rates by level, tiers, limits, prices and "
    "running sums."
)
"""What is said of a search beyond the plain columns."""

TASK = "looking for a rule"


@dataclass(frozen=True, eq=False)
class Question:
    """A column that should follow a rule of others."""

    columns: Columns
    plain: tuple[Term, ...]  # the plain columns and levels
    X: FloatArray  # (n, d), their values
    y: FloatArray  # (n,)
    intercept: bool
    precision: float  # of the type that the numbers had
    covariates: Covariates  # all columns of the table: a rule that most rows of a segment break is a plurality at most
    units: NDArray[np.intp] | None = None  # (n,), rows of one unit are wrong together


@dataclass(frozen=True, slots=True)
class Options:
    """How to look for the answer."""

    model: Model
    tolerance: float | Literal["auto"]
    seed: int
    assumption: Assumption
    seconds: float  # time for what is beyond the plain columns; 0 for the plain columns alone
    # told of the answer of the plain columns, or None if a first glance sees none, before the search goes on
    announce: Callable[[Answer | None], None] = lambda answer: None
    callback: Callback = silent
    inliers: Inliers = "auto"  # "noisy": an estimate of the terms as they stand, no search for exact rules


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A rule, verified on all rows."""

    terms: tuple[Term, ...]  # the library in which it was found and judged
    X: FloatArray | TermMatrix  # (n, d), their values
    link: Link
    recovery: Recovery
    notices: tuple[str, ...] = ()  # why it is of its kind, and what was searched

    @property
    def agree(self) -> BoolArray:
        """Rows that agree."""
        found: BoolArray = self.recovery.agree[:, 0]
        return found

    @property
    def n_agree(self) -> int:
        """How many rows agree."""
        return int(np.count_nonzero(self.agree))

    @property
    def net(self) -> int:
        """Rows that agree beyond those that so many coefficients explain anyway."""
        return self.n_agree - int(np.count_nonzero(self.recovery.coef))

    @property
    def verdict(self) -> Verdict:
        """What is known about it."""
        return self.recovery.certificates[0].verdict


def find_rule(question: Question, options: Options) -> Answer:
    """Return the rule of the plain columns, or one that is grown beyond them and explains clearly more rows.

    A first glance tells whether the plain columns have a rule. If it sees none, other terms are looked at before the
    thorough search for one, which takes long where there is nothing to find.
    """

    def of_columns(patience: bool | int) -> Answer:
        looks = 1.0 if options.seconds <= 0 or options.model == "relu" else 1 / PLAIN_SHARE
        answer = _recovered(question, options, question.X, options.model, looks=looks, patience=patience)
        shorter = (
            _in_short_numbers(question, options, answer, looks=looks, seen=None) if answer.verdict.stands else answer
        )
        bent = answer.recovery.coef.size  # a coefficient that is free can be bent to one row more
        is_as_good = shorter.n_agree >= answer.n_agree - bent and shorter.verdict >= answer.verdict
        return shorter if is_as_good else answer

    if options.seconds <= 0 or options.model == "relu" or options.inliers == "noisy":
        return of_columns(patience=True)
    half_unit = None if options.tolerance == "auto" else max(float(options.tolerance), 1e-300)
    seen = glance(question.columns, question.plain, question.y, np.random.default_rng(options.seed), half_unit)
    plain: Answer | None = None
    piled = options.model == "auto" and np.mean(question.y == 0) >= PILE  # a limit at zero may be behind these
    if piled or seen > CLEAR:
        plain = of_columns(patience=seen > CLEAR or PATIENCE)
        if plain.verdict.stands and plain.n_agree >= ENOUGH * len(question.y):
            return plain
        if plain.verdict.certain and _breaks_are_even(question, plain):
            return replace(plain, notices=(*plain.notices, EVEN))
    options.announce(plain)
    best, complete = None, True
    for settings in (Settings(), Settings(share=1.0)):
        grown = grow(
            question.columns,
            question.y,
            np.random.default_rng(options.seed),
            options.seconds,
            half_unit=half_unit,
            linear=options.model == "linear",
            constant=question.intercept,
            settings=settings,
            watch=lambda fits: options.callback(Progress(TASK, fits, 0, 0.0)),
        )
        complete &= grown is None or grown.complete
        if grown is not None and grown.is_clear:
            if set(grown.terms) <= set(question.plain) and grown.link in (RELU, IDENTITY):
                best = of_columns(patience=True) if plain is None or plain.link != grown.link else plain
            else:
                best = _better(best, _beyond(question, options, grown, plain))
        if (best is not None and best.verdict.stands) or len(question.y) > SMALL or not complete:
            break
    if best is None:
        best = of_columns(patience=PATIENCE) if plain is None else plain
    searched = SEARCHED
    if not complete:
        searched += f" The time of {options.seconds:g} s ended before all was tried."
    return replace(best, notices=(*best.notices, searched))


def _better(first: Answer | None, second: Answer | None) -> Answer | None:
    """Return the answer that explains more rows."""
    if first is None or second is None:
        return second if first is None else first
    return second if second.net > first.net else first


def _more(question: Question) -> float:
    """Return how many more rows other terms have to explain."""
    return max(FEWEST, MORE * len(question.y))


def _breaks_are_even(question: Question, plain: Answer) -> bool:
    """Return whether the rows that break a rule lie all over the table, so that no other terms explain enough of them.

    If other terms explain rows that the rule gets wrong, and keep those that it gets right, then what they add is zero
    where it is right: their rows are a segment in which nearly every row is wrong. Caps and floors begin at a value
    that the rule gives, and discounts depend on the days between two dates.
    """
    coef, scan = plain.recovery.coef[:, 0], question.covariates.scan
    d = question.X.shape[1]
    implied = plain.link(question.X @ coef[:d] + coef[d:].sum())
    days = [question.columns.numbers[name] for name in sorted(question.columns.dates)]
    spans = [late - early for early, late in combinations(days, 2)]
    scan = SegmentScan([*scan.ordered, implied, *spans], scan.levels)
    wrong = ~plain.agree
    return scan.fewest(int(wrong.sum())) <= PART_OF_MORE * _more(question) and scan.worst(wrong) is None


def fit_terms(question: Question, options: Options, matrix: TermMatrix, constants: Constants | None = None) -> Answer:
    """Return the rule in terms that were given, with their values; rows that chose constants in them do not judge."""
    matrix.check()
    if constants is None:
        return _recovered(question, options, matrix, options.model)
    start = Start(constants.coef, constants.half_width)
    answer = _recovered(question, options, matrix, options.model, seen=constants.rows, start=start)
    notice = constants.found if answer.verdict.stands else constants.missed
    return replace(answer, notices=(*answer.notices, notice))


def _beyond(question: Question, options: Options, grown: Grown, plain: Answer | None) -> Answer | None:
    """Return what all rows say of a rule that was grown on some of them, or the plain answer if that is no more."""
    best = None if plain is None or plain.verdict in (Verdict.NONE, Verdict.NOISY) else plain
    if not grown.terms:
        return best
    looks = 1 / (1 - PLAIN_SHARE)
    matrix = TermMatrix(question.columns, grown.terms)
    if not matrix.has_values().all() or not all(np.isfinite(matrix[:, j]).all() for j in range(len(grown.terms))):
        return best
    constant = question.intercept and not grown.has_constant
    start = Start(grown.coef if constant else grown.coef[:-1], grown.half_width)
    within = replace(question, intercept=constant)
    answer = _recovered(within, options, matrix, grown.link, looks=looks, seen=grown.rows, start=start)
    if answer.verdict is Verdict.NONE:
        return best
    answer = _in_short_numbers(within, options, answer, looks=looks, seen=grown.rows)
    if best is None or answer.net > best.net + _more(question):
        return answer
    return best


def _in_short_numbers(
    question: Question, options: Options, answer: Answer, *, looks: float, seen: NDArray[np.intp] | None
) -> Answer:
    """Return the same rule in shorter numbers, if hardly a row is lost: coefficients may use all rows."""
    (certificate,), (exact,) = answer.recovery.certificates, answer.recovery.fractions
    unit, coef = certificate.agreement.unit, answer.recovery.coef[:, 0]
    if not certificate.agreement.rounded or not unit:
        return answer
    terms = [*answer.terms, *([None] if question.intercept else [])]
    sums = [term is None or all(factor.op in CONDITIONS for factor in term.factors) for term in terms]
    if all(
        value is not None and (not whole or (value / fraction_of(unit)).denominator == 1)
        for value, whole in zip(exact, sums, strict=True)
    ):
        return answer
    X = np.column_stack([answer.X[:], *([np.ones(len(question.y))] if question.intercept else [])])
    inside = answer.agree & (question.y > answer.link.lower) & (question.y < answer.link.upper)
    half_widths = certificate.agreement.half_widths(np.abs(X) @ np.abs(coef) + np.abs(question.y), coef)
    lost = max(2, round(LOST * len(question.y)))
    short = short_coefficients(X, question.y, np.maximum(half_widths, 1e-300), coef, inside, lost)
    numbers = tuple(fraction_of(value) for value in short.tolist())
    known = tuple(number if number.denominator <= LONGEST else None for number in numbers)
    start = Start(short, fractions=known, agreement=certificate.agreement)
    tried = _recovered(question, options, answer.X, answer.link, looks=looks, seen=seen, start=start)
    return tried if tried.n_agree >= answer.n_agree - lost else answer


def _recovered(
    question: Question,
    options: Options,
    X: FloatArray | TermMatrix,
    kind: Model | Link,
    *,
    looks: float = 1.0,
    seen: NDArray[np.intp] | None = None,
    patience: bool | int = True,
    start: Start | None = None,
) -> Answer:
    """Return what all rows say of a rule in the plain columns, or in other terms."""
    rows = ArrayRows(X, question.y, intercept=question.intercept, precision=question.precision)

    def attempt(link: Link, share: float) -> Recovery:
        return recover(
            rows,
            tolerance=options.tolerance,
            inliers="exact" if isinstance(X, TermMatrix) and options.inliers == "auto" else options.inliers,
            rng=np.random.default_rng(options.seed),
            link=link,
            search=patience,
            assumption=replace(options.assumption, hypotheses=options.assumption.hypotheses * looks / share),
            units=question.units,
            seen=seen,
            covariates=question.covariates,
            start=start,
            inputs=not isinstance(X, TermMatrix),
            callback=options.callback,
        )

    found = choose(attempt, kind, rows)
    terms = X.terms if isinstance(X, TermMatrix) else question.plain
    return Answer(terms, X, found.link, found.recovery, (found.reason,) if found.reason else ())
