"""The search: starts, a beam that follows what pays, other rules in parts of the rows, and the author's form."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from massart.rows import FloatArray, Link
from massart.rules import terms as t
from massart.rules.columns import Columns
from massart.rules.grow.evidence import (
    STEPPED,
    Change,
    focus_of,
    grown_terms,
    level_changes,
    looser_changes,
    pool,
    single_changes,
    whole_changes,
)
from massart.rules.grow.fit import NO_LIMITS, SLACK, Fit, Labels, Scale, chance_of
from massart.rules.grow.numbers import in_short_numbers, without_ones
from massart.rules.grow.prices import price_list
from massart.rules.grow.running import running_rule
from massart.rules.grow.sample import Product, Sample, divided, is_condition, is_range, written
from massart.rules.grow.second import joined, second_changes, uneven_parts
from massart.rules.grow.settings import Settings
from massart.rules.grow.simplify import empty_ends, limited, pruned
from massart.rules.grow.tidy import as_product, steps_of_rounding, tidied
from massart.rules.grow.units import UNITS, are_multiples, unit_of
from massart.rules.grow.windows import window_changes
from massart.rules.terms import Term


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """What the search found on the search rows.

    Attributes
    ----------
    terms : tuple of Term
    coef : array
        Of the terms, and the constant last.
    link : Link
    rows : array of int
        The search rows: their labels chose the terms.
    half_width : float
        Half of the unit of the labels.
    n_agree : int
        Search rows that agree.
    is_clear : bool
        Whether far more search rows agree than would by chance.
    has_constant : bool
        Whether the terms can say the constant by themselves.
    complete : bool
        Whether the search ended by itself, and not because time was over or a user interrupted it.
    """

    terms: tuple[Term, ...]
    coef: FloatArray
    link: Link
    rows: NDArray[np.intp]
    half_width: float
    n_agree: int
    is_clear: bool
    has_constant: bool
    complete: bool


_HIGH = 2.5  # half-widths of a label that a step is high at least


@dataclass(slots=True)
class Effort:
    """Time and fits that are left, in fits of as many rows as are searched at most."""

    end: float
    most: int
    fits: float = 0.0
    interrupted: bool = False
    watch: Callable[[int, str], None] = field(default=lambda fits, rule: None)
    rule: str = ""  # as far as it is grown

    @property
    def is_complete(self) -> bool:
        """Whether neither time nor a user ended the search."""
        return not self.interrupted and time.thread_time() <= self.end

    def is_over(self, fits: float = np.inf) -> bool:
        """Return whether time is over, or this number of fits was made."""
        return self.interrupted or self.fits >= min(fits, self.most) or time.thread_time() > self.end


def search_rows(n: int, rng: np.random.Generator, settings: Settings) -> NDArray[np.intp]:
    """Return the rows whose labels the search may read: by their number and the seed alone."""
    size = n if n <= settings.whole else min(settings.rows, round(settings.share * n))
    return np.sort(rng.permutation(n)[:size])


def grow(
    columns: Columns,
    y: FloatArray,
    rng: np.random.Generator,
    seconds: float,
    *,
    half_unit: float | None = None,
    linear: bool = False,
    constant: bool = True,
    settings: Settings | None = None,
    watch: Callable[[int, str], None] = lambda fits, rule: None,
) -> Grown | None:
    """Grow a rule on some of the rows; None where there is nothing beyond chance.

    Parameters
    ----------
    columns : Columns
        Of all rows; terms read no others.
    y : (n,) array
        Labels; only those of the search rows are read.
    rng : numpy.random.Generator
    seconds : float
        Of the processor.
    half_unit : float, optional
        Within which a row agrees; by default half of the unit of the labels.
    linear : bool
        Whether limits are out of the question.
    constant : bool
        Whether the rule may have a constant.
    settings : Settings, optional
    watch : callable
        Called between fits, with their number and the rule so far; may raise KeyboardInterrupt, which ends the search
        with the best rule so far.
    """
    settings = Settings() if settings is None else settings
    rows = search_rows(len(y), rng, settings)
    h = unit_of(y[rows]) / 2 if half_unit is None else half_unit
    effort = Effort(time.thread_time() + seconds, settings.effort, watch=watch)
    with threadpool_limits(1, user_api="blas"):  # the matrices are small
        sample = Sample(columns.take(rows), y[rows], h, settings.levels, constant=constant)
        running = running_rule(columns, rows, sample, settings) if columns.ordered else None
        if running is not None and 2 * running[2] > len(rows):
            return _of_running(running, rows, h)
        best = _Search(settings, rng, effort, linear).best(sample, branches=True)
        if best is not None and half_unit is None:
            best = _in_its_unit(best)
        rule = None if best is None else empty_ends(tidied(best))
    if running is not None and (rule is None or running[2] > rule.n_agree + 20):
        return _of_running(running, rows, h)
    return None if rule is None else _finished(rule, rows, effort.is_complete)


def glance(
    columns: Columns,
    terms: Sequence[Term],
    y: FloatArray,
    rng: np.random.Generator,
    half_unit: float | None = None,
    settings: Settings | None = None,
) -> float:
    """Return the share of the search rows that a quick fit in given terms explains beyond chance and its numbers."""
    settings = Settings() if settings is None else settings
    rows = search_rows(len(y), rng, settings)
    h = unit_of(y[rows]) / 2 if half_unit is None else half_unit
    sample = Sample(columns.take(rows), y[rows], h, settings.levels)
    fit = Labels.of(sample, "identity", settings).fit([(), *((term,) for term in terms)])
    if fit is None:
        return 0.0
    n_agree, chance, _ = chance_of(fit.predicted, sample.y, h)
    return max(0.0, n_agree - chance - fit.n_numbers) / len(rows)


def _of_running(running: tuple[tuple[Term, ...], FloatArray, int], rows: NDArray[np.intp], half_unit: float) -> Grown:
    terms, coef, n_agree = running
    has_constant = any(term.op == "level" for term in terms)
    return Grown(terms, coef, NO_LIMITS, rows, half_unit, n_agree, True, has_constant, True)


def _in_its_unit(rule: Fit) -> Fit:
    """Return a rule for labels in the unit in which it saves most bits: wrong labels may have other digits.

    A label that is a multiple of the unit so far says no more digits than this one in a finer unit.
    """
    labels, sample = rule.labels, rule.labels.sample
    if labels.scale != "identity":
        return rule
    known, spread = 2 * sample.half_unit, float(np.subtract(*np.quantile(sample.y, [0.9, 0.1])))

    def saved(unit: float) -> float:
        agree = are_multiples(sample.y, unit) & (np.abs(rule.residuals) <= unit / 2)
        coarse = agree & are_multiples(sample.y, max(known, unit))
        sizes = np.where(coarse, max(known, unit), unit)[agree]
        return float(np.log2(np.maximum(spread / sizes, 1.0)).sum())

    unit = max((known, *UNITS), key=saved)
    if unit == known:
        return rule
    others = Sample(sample.columns, sample.y, unit / 2, sample.most_levels, constant=sample.constant)
    return Labels.of(others, "identity", labels.settings).fit(rule.terms, rule.coef, rule.limits) or rule


def _spans_constant(rule: Fit) -> bool:
    """Return whether a constant is a sum of the terms, such as conditions on all levels."""
    terms = [term for term in rule.terms if term]
    X = rule.labels.sample.matrix(terms)
    X = X / (np.sqrt((X**2).mean(axis=0)) + 1e-300)
    ones = np.ones(len(X))
    left = ones - X @ np.linalg.lstsq(X, ones, rcond=1e-10)[0]
    return bool(rule.coefficient(()) == 0 and (left @ left) < 1e-12 * len(X))


def _finished(rule: Fit, rows: NDArray[np.intp], complete: bool) -> Grown:
    """Return what the search found: the rule in short numbers, perhaps with its rounding in it."""
    sample = rule.labels.sample
    rule = in_short_numbers(rule)
    n_agree, chance, n = chance_of(rule.value(sample), sample.y, sample.half_unit)
    is_clear = n > 0 and n_agree > 2.5 * chance + 4 * np.sqrt(chance) + 2 * rule.n_numbers + 5
    rounded = steps_of_rounding(rule)
    if rounded is not None:
        return Grown((rounded,), np.array([1.0, 0.0]), NO_LIMITS, rows, 0.0, rule.n_agree, is_clear, False, complete)
    terms, coef = written_rule(rule)
    spanned = _spans_constant(rule)
    return Grown(terms, coef, rule.limits, rows, sample.half_unit, rule.n_agree, is_clear, spanned, complete)


def written_rule(rule: Fit) -> tuple[tuple[Term, ...], FloatArray]:
    """Return the terms as people write them: plain columns first, in the order of the table; the constant last."""
    columns = rule.labels.sample.columns
    names = [*columns.numbers, *columns.levels]

    def in_order(term: Term) -> tuple[bool, int, str]:
        places = [names.index(name) for name in term.columns() if name in names]
        return not term.is_column, min(places, default=len(names)), "" if term.op == "level" else str(term)

    products = [tuple(sorted(term, key=in_order)) for term in rule.terms]
    pairs = [(written(term), float(w)) for term, w in zip(products, rule.coef, strict=True) if term]
    pairs.sort(key=lambda pair: in_order(pair[0]))
    return tuple(term for term, _ in pairs), np.array([*(w for _, w in pairs), rule.coefficient(())])


class _Search:
    """One search: its settings, its random numbers, and what is left of its time."""

    def __init__(self, settings: Settings, rng: np.random.Generator, effort: Effort, linear: bool) -> None:
        self.settings, self.rng, self.effort, self.linear = settings, rng, effort, linear
        self.focus: Sequence[Term] = ()

    def best(self, sample: Sample, share: float = 1.0, *, branches: bool = False) -> Fit | None:
        """Return the rule that costs least, from several starts, the most promising first, with a share of the fits."""
        identity = Labels.of(sample, "identity", self.settings)
        ready: list[tuple[float, int, Fit, list[Term]]] = []
        for scale in self._scales(sample):
            labels = identity if scale == "identity" else Labels.of(sample, scale, self.settings)
            focus = focus_of(labels, labels.y, self.settings.focus)
            for terms in _starts(labels, focus):
                start = labels.fit(terms, cold=True)
                if start is not None:
                    ready.append((self._cost(start, identity), len(ready), start, focus))
        best: Fit | None = None
        for _, _, start, focus in sorted(ready, key=lambda one: one[:2]):
            if best is not None and self._is_clear(best):
                share = min(share, self.settings.known)
            found = self._grow(start, focus, share * self.settings.start)
            if found.labels.scale == "log":  # a product, or nothing that could be written
                product = as_product(found)
                if product is None:
                    continue
                found = product
            if branches and self._is_clear(found) and not (best is not None and self._is_good(best)):
                found = self.with_branches(found)
            if best is None or self._cost(found, identity) < self._cost(best, identity) - 0.5:
                best = found
            numbers = self.settings.number_bits * best.n_numbers  # the most that another form could save
            enough = self._is_good(best) and numbers < self.settings.short * best.saved
            is_quotient = len(start.terms) == 1 and any(map(_is_quotient, start.terms[0]))  # which bends to anything
            if (enough and not is_quotient) or self.effort.is_over():
                break
        return best

    def _scales(self, sample: Sample) -> Iterator[Scale]:
        yield "identity"
        if np.mean(sample.y > 0) > 0.5 and len(np.unique(sample.y)) > self.settings.few:
            yield "log"

    def _cost(self, fit: Fit, labels: Labels) -> float:
        """Return the score on the scale of the table."""
        if fit.labels.scale == "identity":
            return fit.total
        bits = labels.bits(labels.y - fit.value(labels.sample))
        return float(bits.sum()) + self.settings.number_bits * fit.n_numbers

    def _is_clear(self, fit: Fit) -> bool:
        """Return whether a good share of the rows agrees, far more than by chance."""
        n_agree, chance, n = chance_of(fit.value(fit.labels.sample), fit.labels.sample.y, fit.labels.sample.half_unit)
        return n_agree > max(self.settings.known * n, 2 * chance)

    def _is_good(self, fit: Fit) -> bool:
        """Return whether most rows agree, not by chance, in all parts of the sample, and not by approximation.

        An approximation leaves rows just outside of a half-unit: wrong labels are as often farther off.
        """
        sample = fit.labels.sample
        value = fit.value(sample)
        n_agree, chance, _ = chance_of(value, sample.y, sample.half_unit)
        off = np.abs(value - sample.y) / sample.half_unit
        near, farther = (np.count_nonzero((off > k) & (off <= k + 1)) for k in (1, 2))
        is_near = near > farther + self.settings.clear * np.sqrt(farther + 1)
        is_most = n_agree > max(0.5 * len(sample), 2 * chance) and not is_near
        return is_most and not uneven_parts(sample, off <= SLACK, self.settings)

    def _grow(self, start: Fit, focus: Sequence[Term], fits: float) -> Fit:
        """Follow the changes that pay, from the best rules of each step."""
        labels, settings = start.labels, self.settings
        candidates, self.focus = pool(labels, focus), focus
        Z = labels.sample.matrix(candidates)
        fits += self.effort.fits
        best = self._simplified(start)
        beam, seen = [best], {(frozenset(best.terms), best.limits)}
        for _ in range(settings.steps):
            made: list[tuple[float, int, Fit]] = []
            try:
                for rule in beam:
                    for found in self._refitted(rule, candidates, Z, seen):
                        made.append((found.total, len(made), found))
                        if self.effort.is_over(fits):
                            break
            except KeyboardInterrupt:  # the best rule so far is better than none
                self.effort.interrupted = True
            following: list[Fit] = []
            for _, _, found in sorted(made, key=lambda one: one[:2])[: 2 * settings.beam]:
                simple = self._simplified(found)
                if all(abs(simple.total - other.total) > 1 for other in following):
                    following.append(simple)
            following = sorted(following, key=lambda fit: fit.total)[: settings.beam]
            if not following or following[0].total > best.total - max(settings.number_bits / 2, 0.002 * labels.n):
                break
            beam, best = following, following[0]
            self.effort.rule = str(best)
            if self.effort.is_over(fits):
                break
        return best

    def _refitted(
        self, rule: Fit, candidates: Sequence[Product], Z: FloatArray, seen: set[tuple[frozenset[Product], Link]]
    ) -> Iterator[Fit]:
        """Yield the changes of a rule, fitted: those that nobody has tried."""
        labels = rule.labels
        changes = ((change, rule.limits) for change in self._changes(rule, candidates, Z))
        free: Iterator[Change] = iter(())
        if labels.scale == "identity":
            free = second_changes(rule, self.focus, candidates, Z)
        if rule.limits != NO_LIMITS:  # where labels are at a limit, its rows say nothing of other terms
            whole = labels.fit(rule.terms, rule.coef)
            free = chain(free, () if whole is None else single_changes(whole, candidates, Z, len(candidates), self.rng))
        for (terms, coef), limits in chain(changes, ((change, NO_LIMITS) for change in free)):
            key = frozenset(terms), limits
            if key in seen or len(terms) > labels.n / 4:
                continue
            seen.add(key)
            self.effort.fits += max(labels.n / self.settings.rows, 0.25)
            self.effort.watch(round(self.effort.fits), self.effort.rule)
            found = labels.fit(terms, coef, limits, cold=len(terms) < self.settings.few)
            if found is not None and _wins_its_conditions(found, rule, self.settings):
                yield found

    def _simplified(self, fit: Fit) -> Fit:
        return pruned(fit) if self.linear else pruned(limited(fit))

    def _changes(self, fit: Fit, candidates: Sequence[Product], Z: FloatArray) -> Iterator[Change]:
        """Yield changes of a rule, the cheap evidence first."""
        grown: list[Product] = []
        if fit.labels.scale == "identity":
            grown = grown_terms(fit)
        everything = np.hstack([Z, fit.labels.sample.matrix(grown)]) if grown else Z
        yield from single_changes(fit, [*candidates, *grown], everything, len(candidates), self.rng)
        yield from looser_changes(fit)
        yield from level_changes(fit)
        if fit.labels.scale == "identity":
            yield from whole_changes(fit)
            yield from window_changes(fit)

    def _joined(self, rule: Fit, there: Fit, parts: Sequence[Term]) -> Iterator[Fit]:
        """Yield one rule, and another where a condition holds, or where something else parts their rows."""
        labels = rule.labels
        names = dict.fromkeys([*rule.terms, *there.terms])
        changes = []
        for condition in parts:
            change = {(*term, condition): there.coefficient(term) - rule.coefficient(term) for term in names}
            changes.append(([*rule.terms, *change], [*rule.coef, *change.values()]))
        first = Fit(labels, rule.terms, rule.coef)
        for terms, coef in (*changes, *joined(first, Fit(labels, there.terms, there.coef))):
            found = labels.fit(terms, coef)
            if found is not None:
                yield pruned(found)

    def with_branches(self, rule: Fit) -> Fit:
        """Add rules of their own for the rows that do not agree, where these are not spread evenly."""
        sample, settings = rule.labels.sample, self.settings
        for _ in range(settings.branches if settings.windows else 0):
            parts = uneven_parts(sample, rule.agree, settings)
            off = rule.labels.usable & ~rule.agree
            inside = [sample.factor(condition) > 0 for condition in parts[:2]]
            best: Fit | None = None
            for rows in [*(off & part for part in inside), off] if parts else []:
                if self.effort.is_over() or rows.sum() < settings.part:
                    break
                there = self.best(sample.take(rows), settings.known)
                if there is None or there.limits != NO_LIMITS:
                    continue
                value = there.value(there.labels.sample)
                n_agree, chance, _ = chance_of(value, there.labels.y, sample.half_unit)
                needed = max(2.5 * chance + 4 * np.sqrt(chance) + 3 * there.n_numbers + 5, settings.uneven * rows.sum())
                for found in self._joined(rule, there, parts[:2]) if n_agree > needed else ():
                    if best is None or found.total < best.total:
                        best = found
                if best is not None and best.total < rule.total - settings.number_bits:
                    break
            if best is None or best.total > rule.total - settings.number_bits:
                break
            rule = best
        return rule


def _wins_its_conditions(found: Fit, old: Fit, settings: Settings) -> bool:
    """Return whether a rule with a new condition wins far more rows than it loses.

    Wrong values that are alike crowd somewhere, and a condition that is chosen by labels finds where. An interval could
    have been any; of levels there are few, and before rows agree they show where to go.
    """
    new = {factor for term in found.terms for factor in term} - {factor for term in old.terms for factor in term}
    for term, w in zip(found.terms, found.coef.tolist(), strict=True):
        if new.intersection(term) and any(one.op in STEPPED for one in term):
            size = float(np.abs(found.labels.sample.column(tuple(one for one in term if one.op not in STEPPED))).mean())
            if abs(w) * size < _HIGH * found.labels.typical:
                return False  # in labels of this unit nobody sees such steps
    won, lost = np.count_nonzero(found.agree & ~old.agree), np.count_nonzero(old.agree & ~found.agree)
    if any(map(is_range, new)):
        return bool(won - lost > settings.clear * np.sqrt(won + lost) and won > settings.clear)
    if lost > settings.clear and old.n_agree > settings.known * found.labels.n and any(map(is_condition, new)):
        return bool(won - lost > settings.clear / 2 * np.sqrt(won + lost))
    return True


def _starts(labels: Labels, focus: Sequence[Term]) -> Iterator[list[Product]]:
    """Yield the terms of first rules."""
    sample = labels.sample
    few = [category for category in sample.categories if len(category) <= labels.settings.few]
    if labels.scale == "identity":
        levels = [(one,) for category in few if category.is_text for one in category.conditions[1:]]
        dated = float(np.median(labels.y)) > 9000 and bool((labels.y == np.round(labels.y)).all())
        plain = [(one,) for one in focus if dated or one not in sample.dates]
        yield [(), *plain, *(levels if len(levels) <= 2 * labels.settings.few else [])]
        yield [()]
        alone = [fit for one in focus if one in sample.numbers and (fit := labels.fit([(one,)])) is not None]
        if alone:
            yield list(min(alone, key=lambda fit: fit.total).terms)
        prices = price_list(labels) if labels.settings.windows else []
        if prices:
            yield prices
        yield from _quotients(labels, focus)
        return
    positive = [one for one in focus if one in sample.numbers and sample.is_positive(one)]
    positive = [one for one in positive if len(np.unique(sample.factor(one))) > 4]
    own = [one for one in few if one.calendar is None and not one.cuts and one.number not in positive]
    levels = [(condition,) for category in own for condition in category.conditions[1:]]
    logs = [(Term("log", (one,)),) for one in positive]
    yield [(), *logs, *(levels if len(levels) <= 2 * labels.settings.few else [])]


def _is_quotient(factor: Term) -> bool:
    """Return whether a factor is 1 / a sum."""
    return (
        factor.op == "^" and factor.parts[1] == -1 and isinstance(factor.parts[0], Term) and factor.parts[0].op == "+"
    )


def _quotients(labels: Labels, focus: Sequence[Term]) -> Iterator[list[Product]]:
    """Yield a column divided by a sum of columns, ``income / (0.5 + 0.5 * adults + 0.3 * children)``, if rows show it.

    The column divided by the label is this sum, within a half-width that goes with both.
    """
    sample, settings = labels.sample, labels.settings
    numbers = [one for one in focus if one in sample.numbers and not sample.is_flag(one)]
    for one in numbers[: settings.tries]:
        with np.errstate(all="ignore"):
            y = sample.factor(one) / labels.y
            half_widths = np.abs(y / labels.y) * labels.half_widths
        usable = labels.usable & np.isfinite(y) & np.isfinite(half_widths) & (half_widths > 0)
        if usable.sum() < settings.part or np.ptp(y[usable]) == 0:
            continue
        others = replace(
            labels, y=np.where(usable, y, 0.0), half_widths=np.where(usable, half_widths, 1.0), usable=usable
        )
        fit = others.fit([(), *((number,) for number in numbers)])
        fit = None if fit is None else in_short_numbers(pruned(fit))
        if fit is None or np.count_nonzero(fit.coef) < 2 or fit.n_agree < settings.known * labels.n:
            continue
        parts = [t.product(t.number(w), *term) for term, w in zip(fit.terms, fit.coef.tolist(), strict=True) if w]
        total = t.total(*map(without_ones, parts))
        if sample.factor(total).all():
            yield [(one, divided(total))]
