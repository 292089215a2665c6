"""The rule behind a column: plain columns first, then what is grown beyond them, each recovered and judged on all rows.

:func:`find_rule` is the walk. Terms that are grown are chosen with labels of the search rows
(:func:`massart.rules.grow.search_rows`), and so is their level of agreement; both are fixed before a label of the other
rows is read, and only these other rows can confirm the rule. Its coefficients may use all rows. If all rows are search
rows, as in a small table, nothing is confirmed: a prefix code of all rules that could be grown is so long that a few
hundred rows would not confirm anything at its price.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Assumption, Reason, SegmentScan, Verdict
from massart.options import Inliers, Model
from massart.recover import Covariates, Recovery, Start, is_noise, recover
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
    silent,
    tally_of,
)
from massart.rules import grow
from massart.rules.columns import Columns
from massart.rules.constants import FoundConstants
from massart.rules.formula import Formula as Written
from massart.rules.formula import Summand
from massart.rules.literals import fraction_of
from massart.rules.matrix import TermMatrix
from massart.rules.terms import CONDITIONS, Term, number, product
from massart.rules.thresholds import Thresholds, compared

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
        Of delta, the share of the linear rule where one with a limit at zero is judged, too: it is right more
        often.
    """

    growth: grow.Settings = field(default_factory=grow.Settings)
    clear: float = 0.4
    zeros: float = 0.05
    more: float = 0.015
    fewest: float = 5.0
    part: float = 0.25
    whole: int = 600
    linear: float = 0.9


EVEN = "Rows that do not agree are spread evenly over the columns: nothing was looked for beyond these."
"""What is said where a certain rule of the plain columns is broken all over the table."""

SEARCHED = (
    "Looked beyond the plain columns for products, powers, ratios, steps, rates by level, tiers, limits, prices and "
    "running sums."
)
"""What is said of a search beyond the plain columns."""

CONTESTED = (
    "Rows that would follow the rule on the other side of a threshold of {} crowd near it: another condition may hold."
)
"""What is said where rows speak against a condition, which are too few to name a segment."""

UNTESTED = (
    "Rates inside of a rounding were chosen by labels, and rows do not test each of them: nothing confirms such a rule."
)
"""What is said where the whole rule is one term that rounds."""

NEXT = (
    "What may help: terms that you know of (--terms), a larger --tolerance if right values are only near, more rows, "
    "or a larger --budget."
)
"""What is said where no rule was found."""


@dataclass(frozen=True, eq=False)
class RuleQuestion:
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
class SearchOptions:
    """How to look for the answer."""

    model: Model
    tolerance: float | Literal["auto"]
    seed: int
    assumption: Assumption
    seconds: float  # time for what is beyond the plain columns; 0 for the plain columns alone
    # given the answer of the plain columns, or None if a first glance sees none, before the search goes on
    announce: Callable[[FoundRule | None], None] = lambda answer: None
    callback: Callback = silent
    inliers: Inliers = "auto"  # "noisy": an estimate of the terms as they stand, no search for exact rules
    settings: Settings = field(default_factory=Settings)

    @property
    def half_unit(self) -> float | None:
        """Within which a row agrees, if that is known."""
        return None if self.tolerance == "auto" else max(float(self.tolerance), 1e-300)

    def shared(self, hypotheses: float) -> SearchOptions:
        """Return the same where this many times as many rules share delta."""
        assumption = replace(self.assumption, hypotheses=self.assumption.hypotheses * hypotheses)
        return replace(self, assumption=assumption)


@dataclass(frozen=True, slots=True, eq=False)
class FoundRule:
    """A rule, verified on all rows."""

    terms: tuple[Term, ...]  # the library in which it was found and judged
    X: FloatArray | TermMatrix  # (n, d), their values
    link: Link
    recovery: Recovery
    notices: tuple[str, ...] = ()  # why it is of its kind, and what was searched
    grown: grow.Grown | None = None  # what the search rows showed, if the rule was grown

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
        """Rows that agree, less the number of coefficients, which explain as many rows anyway."""
        return self.n_agree - int(np.count_nonzero(self.recovery.coef))

    @property
    def verdict(self) -> Verdict:
        """What is known about it."""
        return self.recovery.certificates[0].verdict


def find_rule(question: RuleQuestion, options: SearchOptions) -> FoundRule:
    """Return the rule of the plain columns, or one that is grown beyond them and explains clearly more rows."""
    if options.seconds <= 0 or options.model == "relu" or options.inliers == "noisy":
        return _of_columns(question, options)
    end = time.thread_time() + options.seconds
    options = options.shared(2)  # by the rule of the plain columns, and the one that is grown beyond them
    # 1. The plain columns first, if a glance sees their rule or a limit at zero may hide it.
    plain = _at_first_glance(question, options)
    # 2. If hardly a row is left, or those that are lie evenly, there is nothing more to explain.
    if plain is not None and plain.verdict.stands and len(question.y) - plain.n_agree < _more(question, options):
        return plain
    if plain is not None and plain.verdict.certain and _breaks_are_even(question, options, plain):
        return replace(plain, notices=(*plain.notices, EVEN))
    options.announce(plain)
    # 3. Grow a rule on the search rows, and let all rows judge it.
    best, closest, complete = _grow(question, options, plain, end)
    # 4. Say what was looked at and, where no rule was found, what came closest and what to try next.
    if best is None:
        best = _of_columns(question, options, patience=1) if plain is None else plain
    why = f"The time of {options.seconds:g} s ended" if time.thread_time() >= end else "You stopped it"
    said = [SEARCHED if complete else f"{SEARCHED} {why} before all was tried."]
    if best.verdict < Verdict.PLURALITY:
        said += [*_closest(closest), NEXT]
    return replace(best, notices=(*best.notices, *said))


def judge_again(
    question: RuleQuestion, options: SearchOptions, rule: FoundRule, seen: NDArray[np.intp]
) -> FoundRule | None:
    """Return what other rows say of a rule that was grown, given the search rows among them.

    Its terms were fixed before: where the rows are those of the same table and some more, nothing is looked for anew.
    None where the terms have no value in some of them, such as a quotient by zero, or nothing is left of the rule.
    """
    assert rule.grown is not None
    found = _beyond(question, options, replace(rule.grown, rows=seen), None)
    # The last notice of a rule that was grown says what was searched.
    return None if found is None else replace(found, notices=(*found.notices, rule.notices[-1]))


def _at_first_glance(question: RuleQuestion, options: SearchOptions) -> FoundRule | None:
    """Return the rule of the plain columns, if a quick fit sees one, or labels at zero may hide it."""
    rng, settings = np.random.default_rng(options.seed), options.settings
    seen = grow.glance(question.columns, question.plain, question.y, rng, options.half_unit) > settings.clear
    if not seen and (options.model != "auto" or np.mean(question.y == 0) < settings.zeros):
        return None
    return _of_columns(question, options, patience=seen or 1)


def _of_columns(question: RuleQuestion, options: SearchOptions, patience: bool | int = True) -> FoundRule:
    """Return the rule of the plain columns, in short numbers if these keep it."""
    answer = _recovered(question, options, question.X, options.model, patience=patience)
    shorter = _in_short_numbers(question, options, answer) if answer.verdict.stands else answer
    bent = answer.recovery.coef.size  # a coefficient that is free can be bent to one row more
    is_as_good = shorter.n_agree >= answer.n_agree - bent and shorter.verdict >= answer.verdict
    return shorter if is_as_good else answer


def _grow(
    question: RuleQuestion, options: SearchOptions, plain: FoundRule | None, end: float
) -> tuple[FoundRule | None, grow.Grown | None, bool]:
    """Return the best rule that was grown, the closest one where none was found, and whether the search is complete.

    Of a small table, all rows are searched where the search rows show none: then nothing is confirmed.
    """
    settings = options.settings
    best, closest, complete = None, None, True
    try:
        for growth in (settings.growth, replace(settings.growth, share=1.0)):
            grown = grow.grow(
                question.columns,
                question.y,
                np.random.default_rng(options.seed),
                end - time.thread_time(),
                half_unit=options.half_unit,
                linear=options.model == "linear",
                constant=question.intercept,
                settings=growth,
                watch=lambda fits, rule: options.callback(Progress(TASK, fits, np.inf, 0.0, rule)),
            )
            if grown is not None:
                complete &= grown.complete
                best = _judged(question, options, grown, plain, best) if grown.is_clear else best
                if best is None and (closest is None or grown.n_agree > closest.n_agree):
                    closest = grown
            if (best is not None and best.verdict.stands) or len(question.y) > settings.whole or not complete:
                break
    except KeyboardInterrupt:
        if best is None and plain is None:
            raise
        complete = False
    return best, closest, complete


def _judged(
    question: RuleQuestion, options: SearchOptions, grown: grow.Grown, plain: FoundRule | None, best: FoundRule | None
) -> FoundRule | None:
    """Return the best rule so far, or what all rows say of one that was grown on some of them, if that is more."""
    if set(grown.terms) <= set(question.plain) and grown.link in (RELU, IDENTITY):
        same = plain is not None and plain.link == grown.link
        best = plain if same else _of_columns(question, options)
    if best is not None and best.verdict >= Verdict.PLURALITY:
        return best
    other = _beyond(question, options, grown, plain)
    return other if best is None or (other is not None and other.net > best.net) else best


def _closest(grown: grow.Grown | None) -> list[str]:
    """Say what came closest, if something was grown."""
    if grown is None or grown.n_agree <= len(grown.coef):  # some rule follows any rows as few as that
        return []
    terms = [Summand(term, w, None, 0.0, True) for term, w in zip(grown.terms, grown.coef.tolist(), strict=False)]
    constant = Summand(None, float(grown.coef[-1]), None, 0.0, True)
    rule = Written("", tuple(terms), constant, grown.link, noisy=True).expression(most_terms=4)
    return [
        f"Closest was {rule}: {grown.n_agree:,} of the {len(grown.rows):,} rows that were searched follow it, no more "
        "than chance or an approximation gives."
    ]


def _more(question: RuleQuestion, options: SearchOptions) -> float:
    """Return how many more rows other terms have to explain."""
    return max(options.settings.fewest, options.settings.more * len(question.y))


def _breaks_are_even(question: RuleQuestion, options: SearchOptions, plain: FoundRule) -> bool:
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


def fit_terms(
    question: RuleQuestion, options: SearchOptions, matrix: TermMatrix, constants: FoundConstants | None = None
) -> FoundRule:
    """Return the rule in terms that were given, with their values; rows that chose constants in them do not judge."""
    matrix.check()
    if constants is None:
        return _recovered(question, options, matrix, options.model)
    start = Start(constants.coef, constants.half_width)
    answer = _recovered(question, options, matrix, options.model, seen=constants.rows, start=start)
    notice = constants.found if answer.verdict.stands else constants.missed
    return replace(answer, notices=(*answer.notices, notice))


def _beyond(
    question: RuleQuestion, options: SearchOptions, grown: grow.Grown, plain: FoundRule | None
) -> FoundRule | None:
    """Return what all rows say of a rule that was grown on some of them, or the plain answer if that is no more."""
    best = None if plain is None or plain.verdict in (Verdict.NONE, Verdict.NOISY) else plain
    if not grown.terms:
        return best
    known = Thresholds.of(question.columns, grown.terms, grown.coef, grown.link, question.y, grown.half_width)
    terms, options = known.terms, options.shared(known.shares)
    matrix = TermMatrix(question.columns, terms)
    if not matrix.has_values().all() or not all(np.isfinite(matrix[:, j]).all() for j in range(len(terms))):
        return best
    exactly = _without_rounding(question, terms[0])
    if exactly is not None:  # labels are near the term, and rounded: they do not follow it as rounded
        of_term = replace(question, intercept=False)
        near = TermMatrix(question.columns, (exactly,))
        return best or _recovered(of_term, replace(options, inliers="noisy"), near, grown.link)
    constant = question.intercept and not grown.has_constant
    start = Start(grown.coef if constant else grown.coef[:-1], grown.half_width)
    covariates = replace(question.covariates, contested=known.contested is not None)
    within = replace(question, intercept=constant, covariates=covariates)
    untested = any(map(_hides_numbers, terms))
    seen = np.arange(len(question.y)) if untested else grown.rows
    answer = _recovered(within, options, matrix, grown.link, seen=seen, start=start)
    (certificate,) = answer.recovery.certificates
    if best is None and certificate.reason is Reason.NEAR and 2 * answer.n_agree > len(question.y):
        # Most labels are near it: as an estimate it says more than one of the plain columns.
        return _recovered(within, replace(options, inliers="noisy"), matrix, grown.link, start=start)
    if answer.verdict is Verdict.NONE:
        return best
    answer = _in_short_numbers(within, options, answer, seen)
    answer = replace(answer, grown=grown)
    if untested:
        answer = replace(answer, notices=(*answer.notices, UNTESTED))
    if known.contested is not None:
        answer = replace(answer, notices=(*answer.notices, CONTESTED.format(known.contested)))
    return answer if best is None or answer.net > best.net + _more(question, options) else best


def _hides_numbers(term: Term) -> bool:
    """Return whether a term rounds a sum or a multiple: labels chose the rates in it, and no coefficient tests them."""
    rounded = [factor for factor in term.factors if factor.op in ("round", "ceil", "floor")]
    insides = [factor.parts[0] for factor in rounded if isinstance(factor.parts[0], Term)]
    return any(
        inner.op == "+" or any(factor.op in ("+", "number") for factor in inner.factors)
        for inner in insides
        if inner.op != "number"
    )


def _without_rounding(question: RuleQuestion, term: Term) -> Term | None:
    """Return what a term rounds, if labels are near that and not the rounded term: rounded noise is a step off, too.

    What is rounded up is half a step higher in the middle, and what is rounded down half a step lower.
    """
    *sizes, rounded = term.factors
    if rounded.op not in ("round", "ceil", "floor") or any(size.op != "number" for size in sizes):
        return None
    inner = rounded.parts[0]
    unit = (
        float(str(rounded.parts[1])) if rounded.op == "round" else math.prod(float(str(one.parts[0])) for one in sizes)
    )
    assert isinstance(inner, Term)
    agree = term.evaluate(question.columns) == question.y
    if rounded.op != "round":
        middle = Term("+" if rounded.op == "ceil" else "-", (inner, number(0.5)))
        inner = product(*sizes, middle)
    off = question.y - inner.evaluate(question.columns)
    return inner if is_noise(off, agree, np.array([float(str(unit)) / 2])) else None


def _in_short_numbers(
    question: RuleQuestion, options: SearchOptions, answer: FoundRule, seen: NDArray[np.intp] | None = None
) -> FoundRule:
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
    tried = _recovered(question, options, answer.X, answer.link, seen=seen, start=start)
    return tried if tried.n_agree >= answer.n_agree - lost else answer


def _recovered(
    question: RuleQuestion,
    options: SearchOptions,
    X: FloatArray | TermMatrix,
    kind: Model | Link,
    *,
    seen: NDArray[np.intp] | None = None,
    patience: bool | int = True,
    start: Start | None = None,
) -> FoundRule:
    """Return what all rows say of a rule in some terms, of the kind asked for or of that of which they say more.

    A linear rule that stands is kept unless a limit at zero would make it fit more rows. Otherwise both are judged,
    where labels at zero leave room for a limit, and the better verdict is taken; of equal ones, that with more rows.
    """
    terms = X.terms if isinstance(X, TermMatrix) else question.plain
    rows = _rows_of(question, X)
    seen = question.seen if seen is None else seen
    table: dict[str, Any] = {
        "units": question.units,
        "seen": seen,
        "covariates": question.covariates.beside(
            one.evaluate(question.columns) for one in compared(question.columns, terms)
        ),
    }
    attempt = partial(_recover, options, terms=isinstance(X, TermMatrix), search=patience)
    if kind != "auto":
        link = kind if isinstance(kind, Link) else KINDS[kind]
        found = attempt(rows, link, start=start, **table)
        if start is None or seen is None or not len(seen) or not found.certificates[0].verdict.certain:
            return FoundRule(terms, X, link, found)
        # The rows that chose the terms choose the level, too: at any other one the rule is judged again.
        agreement = attempt(_rows_of(question, X, seen), link, start=start).certificates[0].agreement
        if agreement != found.certificates[0].agreement:
            again = Start(found.coef[:, 0], fractions=found.fractions[0], agreement=agreement)
            found = attempt(rows, link, start=again, **table)
        return FoundRule(terms, X, link, found)
    share = options.settings.linear
    linear = attempt(rows, IDENTITY, share=share, start=start, **table)
    if not _may_be_clipped(linear, rows, options.settings.zeros):
        return FoundRule(terms, X, IDENTITY, linear)
    relu = attempt(rows, RELU, share=1 - share, start=start, **table)
    noisy = relu.certificates[0].verdict is Verdict.NOISY
    if _worth(relu) <= _worth(linear) or (noisy and relu.n_agree[0] < linear.n_agree[0]):
        return FoundRule(terms, X, IDENTITY, linear)  # a smaller scale of fewer rows says nothing
    why = ": so more rows follow than with no limit" if relu.n_agree[0] > linear.n_agree[0] else ""
    return FoundRule(terms, X, RELU, relu, (f"Values below zero are taken as 0{why}.",))


def _rows_of(question: RuleQuestion, X: FloatArray | TermMatrix, some: NDArray[np.intp] | None = None) -> ArrayRows:
    """Return the rows, or some of them, with the values of terms."""
    y = question.y
    if some is not None:
        X, y = X.take(some) if isinstance(X, TermMatrix) else X[some], y[some]
    return ArrayRows(X, y, intercept=question.intercept, precision=question.precision)


def _recover(
    options: SearchOptions, rows: ArrayRows, link: Link, *, terms: bool, share: float = 1.0, **given: Any
) -> Recovery:
    """Recover a formula; products and other terms have no noise of their own, and were not rounded."""
    return recover(
        rows,
        link=link,
        tolerance=options.tolerance,
        inliers="exact" if terms and options.inliers == "auto" else options.inliers,
        inputs=not terms,
        rng=np.random.default_rng(options.seed),
        assumption=options.shared(1 / share).assumption,
        callback=options.callback,
        **given,
    )


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
