"""The rule behind a column: plain columns first, then what is grown beyond them, each recovered and judged on all rows.

:func:`find_rule` is the walk. Terms that are grown are chosen with labels of the search rows
(:func:`massart.rules.grow.search_rows`), and so is their level of agreement; both are fixed before a label of the other
rows is read, and only these other rows can confirm the rule. Its coefficients may use all rows. If all rows are search
rows, as in a small table, nothing is confirmed: a prefix code of all rules that could be grown is so long that a few
hundred rows would not confirm anything at its price.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Assumption, SegmentScan, Verdict
from massart.options import Inliers, Model
from massart.recover import Covariates, Formula, Recovery, Start, recover
from massart.recover.score import rule_beyond_chance
from massart.recover.sharpness import stands_out
from massart.rows import (
    AGREES,
    DECISIVE,
    IDENTITY,
    IMPOSSIBLE,
    RELU,
    ArrayRows,
    BoolArray,
    Callback,
    FloatArray,
    Link,
    Mark,
    Progress,
    Sample,
    silent,
    tally_of,
)
from massart.rules import grow
from massart.rules.columns import Columns
from massart.rules.constants import Constants
from massart.rules.formula import Formula as Written
from massart.rules.formula import Summand
from massart.rules.literals import fraction_of
from massart.rules.matrix import TermMatrix
from massart.rules.terms import CONDITIONS, Term

KINDS = {"linear": IDENTITY, "relu": RELU}

TASK = "looking for a rule"


@dataclass(frozen=True, slots=True)
class Settings:
    """When the search goes on, and what it has to bring. The cases are tables of ``benchmarks/rules.py``.

    Attributes
    ----------
    growth : massart.rules.grow.Settings
    clear : float
        Share of the rows from which on a first glance has seen the rule of the plain columns: with less, they are
        searched thoroughly only if nothing is grown, since that takes long where there is nothing to find.
    zeros : float
        Share of labels that are zero from which a limit may be behind them (cap, free-above).
    more, fewest : float
        Rows that a grown rule explains beyond the plain columns at least: a share of them, and a number.
    part : float
        Of these rows, the share that one segment holds: if all wrong rows lie evenly, no more terms are looked for.
    whole : int
        Rows up to which a rule that the search rows did not show is looked for on all of them.
    linear : float
        Of what may fail, the share of the linear rule where one with a limit at zero is judged, too: it is right more
        often.
    bits : float
        What a grown rule says of rows that did not choose it beyond chance: 10 bits, once in a thousand tables.
    """

    growth: grow.Settings = field(default_factory=grow.Settings)
    clear: float = 0.4
    zeros: float = 0.05
    more: float = 0.015
    fewest: float = 5.0
    part: float = 0.25
    whole: int = 600
    linear: float = 0.9
    bits: float = 10.0


EVEN = "Rows that do not agree are spread evenly over the columns: nothing was looked for beyond these."
"""What is said where a certain rule of the plain columns is broken all over the table."""

SEARCHED = (
    "Looked beyond the plain columns for products, powers, ratios, steps, rates by level, tiers, limits, prices and "
    "running sums."
)
"""What is said of a search beyond the plain columns."""

NEXT = (
    "What may help: terms that you know of (--terms), a larger --tolerance if right values are only near, more rows, "
    "or a larger --budget."
)
"""What is said where no rule was found."""


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
    # rows whose labels chose the terms that are given: none where all did, and the number of hypotheses pays for it
    seen: NDArray[np.intp] | None = None


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
    settings: Settings = field(default_factory=Settings)


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
    """Return the rule of the plain columns, or one that is grown beyond them and explains clearly more rows."""
    beyond = options.seconds > 0 and options.model != "relu" and options.inliers != "noisy"
    # What may fail is shared by the rule of the plain columns and the one that is grown beyond them.
    hypotheses = 2.0 if beyond else 1.0

    def of_columns(patience: bool | int) -> Answer:
        answer = _recovered(question, options, question.X, options.model, hypotheses, patience=patience)
        shorter = _in_short_numbers(question, options, answer, hypotheses) if answer.verdict.stands else answer
        bent = answer.recovery.coef.size  # a coefficient that is free can be bent to one row more
        is_as_good = shorter.n_agree >= answer.n_agree - bent and shorter.verdict >= answer.verdict
        return shorter if is_as_good else answer

    # 1. Has the first glance seen a rule of the plain columns, or may a limit at zero hide one?
    if not beyond:
        return of_columns(patience=True)
    end = time.thread_time() + options.seconds
    half_unit = None if options.tolerance == "auto" else max(float(options.tolerance), 1e-300)
    seen = grow.glance(question.columns, question.plain, question.y, np.random.default_rng(options.seed), half_unit)
    plain: Answer | None = None
    if seen > options.settings.clear or (
        options.model == "auto" and np.mean(question.y == 0) >= options.settings.zeros
    ):
        plain = of_columns(patience=seen > options.settings.clear or 1)
        # 2. If hardly a row is left, or those that are lie evenly, there is nothing more to explain.
        if plain.verdict.stands and len(question.y) - plain.n_agree < _more(question, options):
            return plain
        if plain.verdict.certain and _breaks_are_even(question, options, plain):
            return replace(plain, notices=(*plain.notices, EVEN))
    options.announce(plain)
    # 3. Grow a rule on the search rows; if these of a small table show none, on all rows.
    best, closest, complete = None, None, True
    try:
        for growth in (options.settings.growth, replace(options.settings.growth, share=1.0)):
            grown = _grown(question, options, end - time.thread_time(), half_unit, growth)
            complete &= grown is None or grown.complete
            if grown is not None and grown.is_clear:
                if set(grown.terms) <= set(question.plain) and grown.link in (RELU, IDENTITY):
                    same = plain is not None and plain.link == grown.link
                    best = plain if same else of_columns(patience=True)
                else:  # 4. All rows judge it.
                    best = _better(best, _beyond(question, options, grown, plain, hypotheses))
            if best is None and grown is not None and (closest is None or grown.n_agree > closest.n_agree):
                closest = grown
            if (best is not None and best.verdict.stands) or len(question.y) > options.settings.whole or not complete:
                break
    except KeyboardInterrupt:
        if best is None and plain is None:
            raise
        complete = False
    # 5. Say what was looked at and, where no rule was found, what came closest and what to try next.
    if best is None:
        best = of_columns(patience=1) if plain is None else plain
    why = f"The time of {options.seconds:g} s ended" if time.thread_time() >= end else "You stopped it"
    said = [SEARCHED if complete else f"{SEARCHED} {why} before all was tried."]
    if best.verdict < Verdict.PLURALITY:
        said += [*_closest(closest), NEXT]
    return replace(best, notices=(*best.notices, *said))


def _grown(
    question: Question, options: Options, seconds: float, half_unit: float | None, settings: grow.Settings
) -> grow.Grown | None:
    return grow.grow(
        question.columns,
        question.y,
        np.random.default_rng(options.seed),
        seconds,
        half_unit=half_unit,
        linear=options.model == "linear",
        constant=question.intercept,
        settings=settings,
        watch=lambda fits: options.callback(Progress(TASK, fits, 0, 0.0)),
    )


def _closest(grown: grow.Grown | None) -> list[str]:
    """Say what came closest, if something was grown."""
    if grown is None or grown.n_agree <= len(grown.coef):  # any so many rows are followed by some rule
        return []
    terms = [Summand(term, w, None, 0.0, True) for term, w in zip(grown.terms, grown.coef.tolist(), strict=False)]
    constant = Summand(None, float(grown.coef[-1]), None, 0.0, True)
    rule = Written("", tuple(terms), constant, grown.link, noisy=True).expression(most_terms=4)
    return [
        f"Closest was {rule}, which {grown.n_agree:,} of {len(grown.rows):,} rows follow, hardly more than by chance."
    ]


def _better(first: Answer | None, second: Answer | None) -> Answer | None:
    """Return the answer that explains more rows."""
    if first is None or second is None:
        return second if first is None else first
    return second if second.net > first.net else first


def _more(question: Question, options: Options) -> float:
    """Return how many more rows other terms have to explain."""
    return max(options.settings.fewest, options.settings.more * len(question.y))


def _breaks_are_even(question: Question, options: Options, plain: Answer) -> bool:
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
    return (
        scan.fewest(int(wrong.sum())) <= options.settings.part * _more(question, options) and scan.worst(wrong) is None
    )


def fit_terms(question: Question, options: Options, matrix: TermMatrix, constants: Constants | None = None) -> Answer:
    """Return the rule in terms that were given, with their values; rows that chose constants in them do not judge."""
    matrix.check()
    if constants is None:
        return _recovered(question, options, matrix, options.model)
    start = Start(constants.coef, constants.half_width)
    answer = _recovered(question, options, matrix, options.model, seen=constants.rows, start=start)
    notice = constants.found if answer.verdict.stands else constants.missed
    return replace(answer, notices=(*answer.notices, notice))


def _beyond(
    question: Question, options: Options, grown: grow.Grown, plain: Answer | None, hypotheses: float
) -> Answer | None:
    """Return what all rows say of a rule that was grown on some of them, or the plain answer if that is no more."""
    best = None if plain is None or plain.verdict in (Verdict.NONE, Verdict.NOISY) else plain
    if not grown.terms:
        return best
    matrix = TermMatrix(question.columns, grown.terms)
    if not matrix.has_values().all() or not all(np.isfinite(matrix[:, j]).all() for j in range(len(grown.terms))):
        return best
    constant = question.intercept and not grown.has_constant
    start = Start(grown.coef if constant else grown.coef[:-1], grown.half_width)
    within = replace(question, intercept=constant)
    answer = _recovered(within, options, matrix, grown.link, hypotheses, seen=grown.rows, start=start)
    if answer.verdict is Verdict.NONE:
        return best
    answer = _in_short_numbers(within, options, answer, hypotheses, grown.rows)
    if not (answer.verdict.stands or _holds_elsewhere(within, options, answer, grown.rows)):
        return best
    return answer if best is None or answer.net > best.net + _more(question, options) else best


def _holds_elsewhere(question: Question, options: Options, answer: Answer, seen: NDArray[np.intp]) -> bool:
    """Return whether rows that did not choose the terms of a rule show it: by its edge, and beyond chance.

    A rule that a minority follows may be an approximation: labels lie as densely beside it as on it. That it fits the
    rows on which it was grown says little, since it was the best of many there.
    """
    fresh = np.setdiff1d(np.arange(len(question.y)), seen)
    rows = fresh if len(fresh) else np.arange(len(question.y))
    X = answer.X[rows]
    X = np.column_stack([X, np.ones(len(X))]) if question.intercept else X
    (certificate,), coef = answer.recovery.certificates, answer.recovery.coef[:, 0]
    sample = Sample(X, question.y[rows], None, np.arange(len(rows)))
    if not stands_out(Formula(coef, certificate.agreement, answer.link), sample, certificate.rank):
        return False
    return rule_beyond_chance(X, sample.y, coef, certificate.agreement, answer.link) >= options.settings.bits


def _in_short_numbers(
    question: Question, options: Options, answer: Answer, hypotheses: float, seen: NDArray[np.intp] | None = None
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
    lost = int(np.count_nonzero(coef))  # a coefficient that is free can be bent to one row more
    short = grow.short_coefficients(X, question.y, np.maximum(half_widths, 1e-300), coef, inside, lost)
    numbers = tuple(fraction_of(value) for value in short.tolist())
    known = tuple(number if number.denominator <= 10**9 else None for number in numbers)
    start = Start(short, fractions=known, agreement=certificate.agreement)
    tried = _recovered(question, options, answer.X, answer.link, hypotheses, seen=seen, start=start)
    return tried if tried.n_agree >= answer.n_agree - lost else answer


def _recovered(
    question: Question,
    options: Options,
    X: FloatArray | TermMatrix,
    kind: Model | Link,
    hypotheses: float = 1.0,
    *,
    seen: NDArray[np.intp] | None = None,
    patience: bool | int = True,
    start: Start | None = None,
) -> Answer:
    """Return what all rows say of a rule in some terms, of the kind asked for or of that of which they say more.

    A linear rule that stands is kept unless a limit at zero would make it fit more rows. Otherwise both are judged,
    where labels at zero leave room for a limit, and the better verdict is taken; of equal ones, that with more rows.
    """
    rows = ArrayRows(X, question.y, intercept=question.intercept, precision=question.precision)
    terms = X.terms if isinstance(X, TermMatrix) else question.plain
    seen = question.seen if seen is None else seen

    def attempt(link: Link, share: float = 1.0, start: Start | None = start, some: ArrayRows = rows) -> Recovery:
        return recover(
            some,
            tolerance=options.tolerance,
            inliers="exact" if isinstance(X, TermMatrix) and options.inliers == "auto" else options.inliers,
            rng=np.random.default_rng(options.seed),
            link=link,
            search=patience,
            assumption=replace(options.assumption, hypotheses=options.assumption.hypotheses * hypotheses / share),
            units=question.units if some is rows else None,
            seen=seen if some is rows else None,
            covariates=question.covariates if some is rows else None,
            start=start,
            inputs=not isinstance(X, TermMatrix),
            callback=options.callback,
        )

    if kind != "auto":
        link = kind if isinstance(kind, Link) else KINDS[kind]
        found = attempt(link)
        if start is None or seen is None or not len(seen) or not found.certificates[0].verdict.certain:
            return Answer(terms, X, link, found)
        # The rows that chose the terms choose the level, too: at any other one the rule is judged again.
        those = ArrayRows(
            X.take(seen) if isinstance(X, TermMatrix) else X[seen],
            question.y[seen],
            intercept=question.intercept,
            precision=question.precision,
        )
        agreement = attempt(link, some=those).certificates[0].agreement
        if agreement != found.certificates[0].agreement:
            found = attempt(link, start=Start(found.coef[:, 0], fractions=found.fractions[0], agreement=agreement))
        return Answer(terms, X, link, found)
    linear = attempt(IDENTITY, options.settings.linear)
    if not _may_be_clipped(linear, rows, options.settings.zeros):
        return Answer(terms, X, IDENTITY, linear)
    relu = attempt(RELU, 1 - options.settings.linear)
    noisy = relu.certificates[0].verdict is Verdict.NOISY
    if _worth(relu) <= _worth(linear) or (noisy and relu.n_agree[0] < linear.n_agree[0]):
        return Answer(terms, X, IDENTITY, linear)  # a smaller scale of fewer rows says nothing
    why = ": so more rows follow than with no limit" if relu.n_agree[0] > linear.n_agree[0] else ""
    return Answer(terms, X, RELU, relu, (f"Values below zero are taken as 0{why}.",))


def _may_be_clipped(linear: Recovery, rows: ArrayRows, zeros: float) -> bool:
    """Return whether a limit at zero could say more than the linear rule."""
    n_agree = int(linear.n_agree[0])
    if n_agree == rows.n_rows:
        return False
    certificate = linear.certificates[0]
    counts = rows.map(Mark(linear.coef[:, 0], certificate.agreement, RELU)).reduce(tally_of)
    marks = np.arange(len(counts))
    if certificate.verdict.stands:
        return bool(counts[marks & AGREES > 0].sum() > n_agree)
    at_zero, negative = counts[marks & (DECISIVE | IMPOSSIBLE) == 0].sum(), counts[marks & IMPOSSIBLE > 0].sum()
    return bool(at_zero >= zeros * counts.sum() and 2 * negative <= counts.sum())


def _worth(recovery: Recovery) -> tuple[Verdict, float]:
    """Rank what is known about a rule: by verdict, then by rows; estimates by their scale, since rows follow it."""
    verdict = recovery.certificates[0].verdict
    size = -float(recovery.scale[0]) if verdict is Verdict.NOISY else float(recovery.n_agree[0])
    return verdict, size
