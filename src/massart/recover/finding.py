"""Looking for a formula: samples propose, more rows count, and where support is weak more are looked at."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import numpy as np

from massart.certificate import PLURALITY, Support, is_weak_by_chance
from massart.recover.certification import Formula, beyond_mode, measure_support_of, stands_out
from massart.recover.polish import Candidate, polish
from massart.recover.problem import Problem, Start
from massart.recover.propose import CLEAR, NEARLY_ALL, chance_inside, has_more_digits, propose
from massart.recover.score import rule_beyond_chance
from massart.rows import Agreement, FloatArray, Level, Sample
from massart.search import reweighted

KEPT, ROUNDED = 0.98, 1.1
"""Share of the rows that an exact formula keeps at least, of those that a rounded one explains; and half-widths beyond
which no rounding is behind it."""


def find(problem: Problem) -> Candidate:
    """Return the formula that fits most of the search rows; samples go where support is weak."""
    question, settings, rows = problem.question, problem.question.settings, problem.search
    n, d = rows.X.shape
    rounds = 1 if question.inliers == "noisy" else question.options.rounds
    early = settings.early_rounds if rounds is None else min(rounds, settings.early_rounds)
    if question.start is not None:
        best = _started(problem, question.start)
        if not is_none(best):
            return best
    size = settings.first_sample(d, clipped=not question.link.invertible)
    whole = size * settings.worth_sampling > n
    best = _quick(problem, early) or (
        _attempt(problem, rows, rounds) if whole else _attempt(problem, problem.drawn(rows, size), early)
    )
    n_none = int(is_none(best))
    for look in range(settings.looks):
        half = max(n // 2, min(n, 8 * d))
        most = settings.looks_whole if n >= settings.smallest else 1
        if whole and (is_none(best) or look >= most or half >= n or rounds == 0):
            break
        support = _support(problem, best)
        if _is_settled(problem, best, support):
            break
        if n_none > 1 and rounds != 0 and question.inliers != "exact":  # nothing beyond chance was found, twice
            break
        size = half if whole else min(2 * size, n)
        last = not whole and size * settings.worth_sampling > n
        if whole and early and 2 * best.weight > best.total + d and _is_varied(rows.X):
            early = 0  # a better formula would hide in rare levels, and there are none
        sample = problem.some(rows, settings.search) if last else problem.drawn(rows, size, support)
        found = _attempt(problem, sample, rounds if last else early)
        n_none += is_none(found)
        best = found if _is_better(problem, found, best) else best
        whole = whole or last
    return best


def _is_varied(X: FloatArray) -> bool:
    """Return whether no column, but for a constant, has the same value in most rows: there are no rare levels."""
    alike = np.mean(np.median(X, axis=0) == X, axis=0)
    return bool((alike[np.ptp(X, axis=0) > 0] <= 0.5).all())


def _support(problem: Problem, best: Candidate) -> Support:
    """Return the share of the evidence that agrees, in each direction."""
    formula = Formula(best.coef, best.agreement.uncapped, problem.question.link)
    found, marks = formula.marks(problem.search)
    return measure_support_of(formula, problem.searched, found, marks, tails=False)


def _is_settled(problem: Problem, best: Candidate, support: Support) -> bool:
    """Return whether more than half of the evidence agrees in every direction, or as much as chance leaves."""
    share = best.weight / best.total
    return bool(share > 0.5) and (support.alpha > 0.5 or is_weak_by_chance(problem.search_geometry, support, share))


def is_none(best: Candidate) -> bool:
    """Return whether hardly more rows agree than any formula fits: fewer than a plurality takes."""
    return best.decided <= len(best.coef) + 1 + PLURALITY * best.total


def _is_better(problem: Problem, found: Candidate, best: Candidate) -> bool:
    """Return whether a formula fits more rows; a looser one, many more than a majority in every direction."""
    slack = [one.agreement.uncapped.slack(one.coef) for one in (found, best)]
    if found.agreement.level is best.agreement.level or slack[0] == slack[1]:
        return found.weight > best.weight
    tighter, looser = (found, best) if slack[0] < slack[1] else (best, found)
    chance = chance_inside(looser, problem.search)
    needed = chance + CLEAR * np.sqrt(chance)
    if _is_settled(problem, tighter, _support(problem, tighter)):
        needed = max(needed, NEARLY_ALL * (best.total - tighter.weight))
    elif looser.agreement.inputs:
        formula = Formula(tighter.coef, tighter.agreement.uncapped, problem.question.link)
        if stands_out(formula, problem.search, len(best.coef)):
            return tighter is found
    return bool(looser.weight > tighter.weight + needed) == (looser is found)


def _attempt(problem: Problem, sample: Sample, rounds: int | None, first: FloatArray | None = None) -> Candidate:
    """Return the formula of a sample, counted on all search rows."""
    question = problem.question
    options = replace(question.options, rounds=rounds, may_be_noise=question.may_be_noise)
    found = propose(sample, problem.levels_of(sample), question.link, options, first=first)
    if sample is problem.search:
        return found
    return Candidate.of(problem.search, found.coef, found.agreement, question.link)


def _started(problem: Problem, start: Start) -> Candidate:
    """Return the formula that is known, at the tightest level at which hardly a row is lost."""
    link, some = problem.question.link, problem.some(problem.search, problem.question.settings.exact)
    known = problem.levels_of(some)
    unit = 2 * start.half_width
    if unit and np.log10(unit) % 1 == 0 and known[-1].label < start.half_width:
        # Labels of so few units that any rule is near them: only an edge shows that they were rounded.
        few = replace(known[0], level=Level.LABEL, label=start.half_width, unit=unit)
        known += (few,) if stands_out(Formula(start.coef, few, link), some, some.X.shape[1]) else ()
    found = []
    for level in [level for level in known if level.label <= 1.001 * start.half_width] or known[:1]:
        tries = [Candidate.of(some, start.coef, level, link)]
        if not level.rounded:  # known within rounding only, and so is a constant
            shifts = (-start.half_width, 0.0, start.half_width) if (some.X[:, -1] == 1).all() else (0.0,)
            for shift in shifts:
                shifted = start.coef.copy()
                shifted[-1] += shift
                tries.append(polish(some, shifted, level, link))
        found.append(max(tries, key=attrgetter("weight")))
    exact, *looser = found
    best = exact
    for candidate in looser:
        # Rows a unit off an exact formula of a majority are wrong: the other formula lies between two.
        gained = candidate.rows.agree & ~exact.rows.agree
        off, near = np.abs(exact.rows.residuals), ROUNDED * candidate.rows.half_widths
        wrong = gained & (off > near) & (off <= 2 * near)
        majority = 2 * exact.weight > exact.total
        if exact.weight < KEPT * candidate.weight and not (majority and 2 * wrong.sum() > gained.sum()):
            best = candidate
            break
    return Candidate.of(problem.search, best.coef, best.agreement, link)


def _quick(problem: Problem, rounds: int) -> Candidate | None:
    """Return the formula of many rows that a majority follows, if it is found at little cost."""
    rows, settings, link = problem.search, problem.question.settings, problem.question.link
    n, d = rows.X.shape
    if not rounds or not link.invertible or rows.weights is not None:
        return None
    if n < settings.per_column * d or n * d < settings.quick_numbers:
        return None
    sample = problem.drawn(rows, max(settings.quick_per_column * d, settings.quick_sample))
    found = _attempt(problem, sample, 0, first=reweighted(rows.X, rows.y))
    return found if 2 * found.weight > found.total else None


def tightest(problem: Problem, coef: FloatArray, agreement: Agreement, exact: bool) -> Agreement:
    """Return the tightest level at which no fewer rows agree: a shorter formula may not need a loose one.

    Numbers that are `exact` are judged as such.
    """
    if not agreement.rounded:
        return agreement
    rows = problem.some(problem.search, problem.question.settings.search)

    def weight(level: Agreement) -> float:
        agree = level.agree(rows.X, rows.y, coef, problem.question.link)
        return float(rows.counts[agree & ~has_more_digits(rows.y, level)].sum())

    candidates = (level if exact else level.uncapped for level in problem.levels_of(rows))
    return next((level for level in candidates if weight(level) >= weight(agreement)), agreement)


def share_by_chance(problem: Problem, formula: Formula) -> float:
    """Return the share of the rows that some formula fits when labels are shuffled over them.

    Where the order of the labels says by itself that a rule is behind them (:mod:`massart.recover.score`), that is no
    more than the columns fit; else labels are shuffled and a formula is looked for. The most frequent label is not
    counted.
    """
    rows = problem.search
    settings, (n, d) = problem.question.settings, rows.X.shape
    if rows.weights is None:
        some = problem.some(rows, settings.exact)
        rule, n_levels = (formula.coef, formula.agreement, formula.link), len(problem.levels_of(some))
        bits = rule_beyond_chance(some.X, some.y, *rule, n_levels=n_levels, enough=settings.sure)
        if bits >= settings.sure:
            return float(d / n)
    sample = rows
    size = settings.first_sample(d, clipped=not formula.link.invertible)
    if size * settings.worth_sampling <= n:
        sample = problem.drawn(rows, size)
    shuffled = replace(sample, y=problem.rng.permutation(sample.y))
    rounds = problem.question.options.rounds
    options = replace(problem.question.options, rounds=1 if rounds is None else min(rounds, 1))
    found, _ = formula.marks(shuffled)
    other = propose(shuffled, (formula.agreement,), formula.link, options).rows
    by_chance = max(beyond_mode(shuffled, rows, formula.link) for rows in (found, other))
    return float(by_chance) / float(sample.counts.sum())
