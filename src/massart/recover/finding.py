"""Looking for a formula: samples propose, more rows count, and where support is weak more are looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from massart.certificate import PLURALITY, Support
from massart.certificate.support import is_weak_by_chance
from massart.recover.judges import Formula, beyond_mode, measure_support_of
from massart.recover.polish import polish
from massart.recover.problem import Problem, Start
from massart.recover.propose import CLEAR, NEARLY_ALL, Candidate, chance_inside, counted, has_more_digits, propose
from massart.recover.score import rule_beyond_chance
from massart.recover.sharpness import stands_out
from massart.rows import Agreement, FloatArray, Level, Sample, levels
from massart.search import reweighted

KEPT, ROUNDED = 0.98, 1.1
"""Share of the rows that an exact formula keeps at least, of those that a rounded one explains; and half-widths beyond
which no rounding is behind it."""


def find(problem: Problem, rows: Sample) -> Candidate:
    """Return the formula that fits most of the search rows, with one label column; samples go where support is weak."""
    question, settings, (n, d) = problem.question, problem.question.settings, rows.X.shape
    rounds = 1 if question.inliers == "noisy" else question.options.rounds
    early = settings.early_rounds if rounds is None else min(rounds, settings.early_rounds)
    if question.start is not None:
        best = _started(problem, rows, question.start)
        if not is_none(best):
            return best
    size = settings.first_sample(d, clipped=not question.link.invertible)
    whole = size * settings.worth_sampling > n
    best = _quick(problem, rows, early) or (
        _attempt(problem, rows, rows, rounds) if whole else _attempt(problem, rows, problem.drawn(rows, size), early)
    )
    barren = int(is_none(best))
    for look in range(settings.looks):
        half = max(n // 2, min(n, 8 * d))
        most = settings.looks_whole if n >= settings.smallest else 1
        if whole and (is_none(best) or look >= most or half >= n or rounds == 0):
            break
        support = _support(problem, rows, best)
        if _is_settled(problem, best, support):
            break
        if barren > 1 and rounds != 0 and question.inliers != "exact":  # nothing beyond chance was found, twice
            break
        size = half if whole else min(2 * size, n)
        last = not whole and size * settings.worth_sampling > n
        if whole and early and 2 * best.weight > best.total + d and _is_varied(rows.X):
            early = 0  # a better formula would hide where few rows look, and there is no such place
        sample = problem.some(rows, settings.search) if last else problem.drawn(rows, size, support)
        found = _attempt(problem, rows, sample, rounds if last else early)
        barren += is_none(found)
        best = found if _is_better(problem, rows, found, best) else best
        whole = whole or last
    return best


def _is_varied(X: FloatArray) -> bool:
    """Return whether no column, but for a constant, has the same value in most rows: there are no rare levels."""
    alike = np.mean(np.median(X, axis=0) == X, axis=0)
    return bool((alike[np.ptp(X, axis=0) > 0] <= 0.5).all())


def _support(problem: Problem, rows: Sample, best: Candidate) -> Support:
    """Return the share of the evidence that agrees, in each direction."""
    formula = Formula(best.coef, best.agreement.uncapped, problem.question.link)
    found, marks = formula.marks(rows)
    return measure_support_of(formula, problem.scouts(rows), found, marks, tails=False)


def _is_settled(problem: Problem, best: Candidate, support: Support) -> bool:
    """Return whether more than half of the evidence agrees in every direction, or as much as chance leaves."""
    share = best.weight / best.total
    return bool(share > 0.5) and (support.alpha > 0.5 or is_weak_by_chance(problem.search_geometry, support, share))


def is_none(best: Candidate) -> bool:
    """Return whether hardly more rows agree than any formula fits: fewer than a plurality takes."""
    return best.decided <= len(best.coef) + 1 + PLURALITY * best.total


def _is_better(problem: Problem, rows: Sample, found: Candidate, best: Candidate) -> bool:
    """Return whether a formula fits more rows; a looser one, many more than a majority in every direction."""
    slack = [one.agreement.uncapped.slack(one.coef) for one in (found, best)]
    if found.agreement.level is best.agreement.level or slack[0] == slack[1]:
        return found.weight > best.weight
    tighter, looser = (found, best) if slack[0] < slack[1] else (best, found)
    chance = chance_inside(looser.rows, rows.counts)
    needed = chance + CLEAR * np.sqrt(chance)
    if _is_settled(problem, tighter, _support(problem, rows, tighter)):
        needed = max(needed, NEARLY_ALL * (best.total - tighter.weight))
    elif looser.agreement.inputs:
        formula = Formula(tighter.coef, tighter.agreement.uncapped, problem.question.link)
        if stands_out(formula, rows, rows.X.shape[1]):
            return tighter is found
    return bool(looser.weight > tighter.weight + needed) == (looser is found)


def _attempt(problem: Problem, rows: Sample, sample: Sample, rounds: int | None) -> Candidate:
    """Return the formula of a sample, counted on all search rows."""
    link, options = problem.question.link, replace(problem.question.options, rounds=rounds)
    proposed = propose(sample, _levels(problem, sample), link, options)
    return counted(proposed.coef, proposed.agreement, rows, link)


def _started(problem: Problem, rows: Sample, start: Start) -> Candidate:
    """Return the formula that is known, at the tightest level at which hardly a row is lost."""
    link, some = problem.question.link, problem.some(rows, problem.question.settings.exact)
    known = _levels(problem, some)
    found = []
    for level in [level for level in known if level.label <= 1.001 * start.half_width] or known[:1]:
        tries = [counted(start.coef, level, some, link)]
        if not level.rounded:  # known within rounding only, and so is a constant
            shifts = (-start.half_width, 0.0, start.half_width) if (some.X[:, -1] == 1).all() else (0.0,)
            for shift in shifts:
                shifted = start.coef.copy()
                shifted[-1] += shift
                w, _ = polish(some.X, some.y, some.counts, shifted, level.uncapped, link)
                tries.append(counted(w, level, some, link))
        found.append(max(tries, key=lambda candidate: candidate.weight))
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
    return counted(best.coef, best.agreement, rows, link)


def _quick(problem: Problem, rows: Sample, rounds: int) -> Candidate | None:
    """Return the formula of many rows that a majority follows, if it is found at little cost."""
    (n, d), settings, link = rows.X.shape, problem.question.settings, problem.question.link
    if not rounds or not link.invertible or rows.weights is not None:
        return None
    if n < settings.per_column * d or n * d < settings.quick_numbers:
        return None
    w = reweighted(rows.X, rows.y)
    sample = problem.drawn(rows, max(settings.quick_per_column * d, settings.quick_sample))
    options = replace(problem.question.options, rounds=0)
    proposed = propose(sample, _levels(problem, sample), link, options, first=w)
    return counted(proposed.coef, proposed.agreement, rows, link) if 2 * proposed.weight > proposed.total else None


def _levels(problem: Problem, sample: Sample) -> tuple[Agreement, ...]:
    """Return the levels of agreement of some rows, the tightest first."""
    x_precision, y_precision = problem.rows.precision
    found = levels(problem.question.tolerance, sample.X, sample.y, X_precision=x_precision, y_precision=y_precision)
    return found if problem.question.inputs else tuple(level for level in found if level.level is not Level.INPUTS)


def tightest(problem: Problem, rows: Sample, coef: FloatArray, agreement: Agreement, exact: bool) -> Agreement:
    """Return the tightest level at which no fewer rows agree: a shorter formula may not need a loose one."""

    def weight(level: Agreement) -> float:
        agree = level.agree(rows.X, rows.y, coef, problem.question.link)
        return float(rows.counts[agree & ~has_more_digits(rows.y, level)].sum())

    if not agreement.rounded:
        return agreement
    candidates = (level if exact else level.uncapped for level in _levels(problem, rows))
    return next((level for level in candidates if weight(level) >= weight(agreement)), agreement)


def share_by_chance(problem: Problem, rows: Sample, formula: Formula) -> float:
    """Return the share of the rows that some formula fits when labels are shuffled over them.

    Where the order of the labels says by itself that a rule is behind them (:mod:`massart.recover.score`), that is no
    more than the columns fit; else labels are shuffled and a formula is looked for. The most frequent label is not
    counted.
    """
    settings, (n, d) = problem.question.settings, rows.X.shape
    if rows.weights is None:
        some = problem.some(rows, settings.exact)
        n_levels = len(_levels(problem, some))
        bits = rule_beyond_chance(some.X, some.y, formula.coef, formula.agreement, formula.link, n_levels=n_levels)
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
