"""The rule behind a column: the plain columns first, then what else explains more rows, each recovered and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from massart.certificate import SegmentScan, Verdict
from massart.link import RELU, Link
from massart.progress import Callback, silent
from massart.recover import Assumption, Covariates, Recovery, Start, recover
from massart.rows import ArrayRows, BoolArray, FloatArray
from massart.rules.choice import Kind, choose
from massart.rules.columns import Columns
from massart.rules.matrix import TermMatrix
from massart.rules.search import FEWEST, MARGIN, PILE, Found, draw_sheet, search
from massart.rules.terms import CONDITIONS, Term

ENOUGH = 0.98
"""Share of the rows that a rule of plain columns explains if nothing more is looked for."""

HOPE = 0.1
"""Share of the rows that a first glance at the plain columns explains if they are looked at closely before all else."""

CLEAR = 0.4
"""Share of the rows from which on a first glance has seen the rule, and a thorough look does not take long."""

PATIENCE = 1
"""Rounds of search for a rule of the plain columns where neither they nor other terms showed one."""

LOST = 0.01
"""Share of the rows that shorter numbers may lose."""

PART_OF_MORE = 0.25
"""Of the rows that other terms have to explain, the share that one segment holds."""

EVEN = "Rows that do not agree are spread evenly over the columns: nothing was looked for beyond these."
"""What is said where a certain rule of the plain columns is broken all over the table."""

Inliers = Literal["auto", "exact", "noisy"]
"""What right rows are."""

PLAIN_SHARE = 0.5
"""Of what may fail, the share of the plain columns; the libraries beyond share the rest."""


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

    model: Kind
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
    """Return the rule of the plain columns, or one in other terms that explains clearly more rows.

    A first glance tells whether the plain columns have a rule. If it sees none, other terms are looked at before the
    thorough search for one, which takes long where there is nothing to find.
    """

    def of_columns(patience: bool | int) -> Answer:
        looks = 1.0 if options.seconds <= 0 or options.model == "relu" else 1 / PLAIN_SHARE
        return _recovered(question, options, question.X, options.model, looks=looks, patience=patience)

    if options.seconds <= 0 or options.model == "relu" or options.inliers == "noisy":
        return of_columns(patience=True)
    rng = np.random.default_rng(options.seed)
    sheet = draw_sheet(question.columns, question.plain, question.y, options.tolerance, rng)
    known = [fit for fit in (sheet.fit(question.plain),) if fit is not None]
    plain: Answer | None = None
    piled = options.model == "auto" and np.mean(sheet.y == 0) >= PILE  # a limit at zero may be behind these
    if piled or any(fit.net > HOPE * len(sheet.rows) for fit in known):
        seen = max((fit.net for fit in known), default=0.0) > CLEAR * len(sheet.rows)
        plain = of_columns(patience=seen or PATIENCE)
        if plain.verdict.stands and plain.n_agree >= ENOUGH * len(question.y):
            return plain
        if plain.verdict.certain and _breaks_are_even(question, plain):
            return replace(plain, notices=(*plain.notices, EVEN))
        if plain.verdict not in (Verdict.NONE, Verdict.NOISY):
            every = np.ones(len(sheet.rows), dtype=bool)
            known.append(sheet.counted(question.plain, _with_constant(plain.recovery, question), every))
    options.announce(plain)
    result = search(
        sheet,
        question.plain,
        known,
        options.seconds,
        brief=plain is not None and plain.verdict.certain,
        linear=options.model == "linear",
        callback=options.callback,
    )
    searched = f"Looked beyond the plain columns for {', '.join(result.searched)}."
    if not result.complete:
        searched += f" The time of {options.seconds:g} s ended before all was tried."
    best = None
    if result.found is not None and result.found.link == RELU and set(result.found.short) <= set(question.plain):
        best = plain if plain is not None and plain.link == RELU else of_columns(patience=True)
    elif result.found is not None:
        best = _beyond(question, options, result.found, plain)
    if best is None:
        best = of_columns(patience=PATIENCE) if plain is None else plain
    return replace(best, notices=(*best.notices, searched))


def _more(question: Question) -> float:
    """Return how many more rows other terms have to explain."""
    return max(FEWEST, MARGIN / 2 * len(question.y))


def _breaks_are_even(question: Question, plain: Answer) -> bool:
    """Return whether the rows that break a rule lie all over the table, so that no other terms explain enough of them.

    If other terms explain rows that the rule gets wrong, and keep those that it gets right, then what they add is zero
    where it is right: their rows are a segment in which nearly every row is wrong. Caps and floors begin at a value
    that the rule gives.
    """
    coef, scan = plain.recovery.coef[:, 0], question.covariates.scan
    d = question.X.shape[1]
    implied = plain.link(question.X @ coef[:d] + coef[d:].sum())
    scan = SegmentScan([*scan.ordered, implied], scan.levels)
    wrong = ~plain.agree
    return scan.fewest(int(wrong.sum())) <= PART_OF_MORE * _more(question) and scan.worst(wrong) is None


def fit_terms(question: Question, options: Options, matrix: TermMatrix) -> Answer:
    """Return the rule in terms that were given, with their values."""
    matrix.check()
    return _recovered(question, options, matrix, options.model)


def _beyond(question: Question, options: Options, found: Found, plain: Answer | None) -> Answer | None:
    """Return what the terms that were found say of all rows, or the plain answer if that is no more."""
    best = None if plain is None or plain.verdict in (Verdict.NONE, Verdict.NOISY) else plain
    if not found.short:
        return best
    looks = found.tried / (1 - PLAIN_SHARE)
    start = found.coef if question.intercept else found.coef[:-1]
    used = start != 0
    used[len(found.terms) :] = True  # the constant, if there is one
    matrix, known = TermMatrix(question.columns, found.short), Start(start[used], found.half_width)
    answer = _recovered(question, options, matrix, found.link, looks=looks, seen=found.rows, start=known)
    if answer.verdict is Verdict.NONE:
        return best
    answer = _in_short_numbers(question, options, answer, looks=looks, seen=found.rows)
    if not answer.verdict.certain and found.by_x:
        # The library was made of X alone: the same formula may be judged among all its terms, by all rows. The search
        # ended where labels said so: the k-th of N libraries has 1 / (k H) of what may fail, H = 1 + 1/2 + ... + 1/N.
        coef, exact = np.zeros(len(start)), np.full(len(start), Fraction(0), dtype=object)
        coef[used], exact[used] = answer.recovery.coef[:, 0], np.array(answer.recovery.fractions[0], dtype=object)
        known = Start(coef, fractions=tuple(exact), agreement=answer.recovery.certificates[0].agreement)
        matrix = TermMatrix(question.columns, found.terms)
        looks *= sum(1 / k for k in range(1, found.of + 1))
        judged = _recovered(question, options, matrix, found.link, looks=looks, start=known)
        answer = judged if judged.verdict.certain else answer
    if best is None or answer.net > best.net + _more(question):
        what = "Values below zero are taken as 0." if found.link == RELU else f"The rule has {found.name}."
        return replace(answer, notices=(*answer.notices, what))
    return best


def _in_short_numbers(
    question: Question, options: Options, answer: Answer, *, looks: float, seen: NDArray[np.intp]
) -> Answer:
    """Return the same rule in shorter numbers, if hardly a row is lost.

    Where many values lie in the middle of two roundings, as quarters of an hour at 29.50 do, a formula with half a cent
    added fits as well.
    """
    (certificate,), (exact,) = answer.recovery.certificates, answer.recovery.fractions
    unit, coef = certificate.agreement.unit, answer.recovery.coef[:, 0]
    terms = [*answer.terms, *([None] if question.intercept else [])]
    sums = [term is None or all(factor.op in CONDITIONS for factor in term.factors) for term in terms]
    if not unit or all(
        value is not None and (not whole or (value / Fraction(str(unit))).denominator == 1)
        for value, whole in zip(exact, sums, strict=True)
    ):
        return answer
    best = answer
    for rounded in (np.floor, np.trunc, np.round):
        numbers = []
        for j, (value, known, whole) in enumerate(zip(coef, exact, sums, strict=True)):
            if whole:
                numbers.append(Fraction(int(rounded(value / unit + 1e-6 * np.sign(value)))) * Fraction(str(unit)))
            elif known is not None:
                numbers.append(known)
            else:
                sizes = np.abs(answer.X[:, j])
                numbers.append(_shortest(value, 4 * unit / max(float(np.median(sizes[sizes > 0])), 1e-300)))
        coefs = np.array(numbers, dtype=np.float64)
        start = Start(coefs, fractions=tuple(numbers), agreement=certificate.agreement)
        tried = _recovered(question, options, answer.X, answer.link, looks=looks, seen=seen, start=start)
        if tried.n_agree >= answer.n_agree - max(2, LOST * len(question.y)) and (
            best is answer or tried.n_agree > best.n_agree
        ):
            best = tried
    return best


def _shortest(value: float, error: float) -> Fraction:
    """Return the decimal with the fewest digits that is no farther off."""
    for digits in range(-6, 13):
        short = round(value, digits)
        if abs(short - value) <= error:
            return Fraction(f"{short:.{max(digits, 0)}f}")
    return Fraction(value)


def _recovered(
    question: Question,
    options: Options,
    X: FloatArray | TermMatrix,
    kind: Kind | Link,
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
            assumption=replace(options.assumption, looks=options.assumption.looks * looks / share),
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


def _with_constant(recovery: Recovery, question: Question) -> FloatArray:
    coef = recovery.coef[:, 0]
    return coef if question.intercept else np.append(coef, 0.0)
