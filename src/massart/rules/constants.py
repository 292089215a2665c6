r"""Constants inside terms: what ``?`` stands for in ``max(0, km - ?)``, ``exp(? * t)`` or ``x / (? + x)``.

For given constants c the rule :math:`\sum_j w_j\, t_j(x; c)` is linear in w, and :meth:`Labels.fit
<massart.rules.grow.fit.Labels.fit>` finds the w with the lowest score in bits. The score as a function of c alone has
many minima, so it is searched:

1. **Candidates** for a constant come from the values that the operations around it should have, turned around from the
   outside to the inside: ``km - ?`` should be 0 for some rows, so a quantile of km; ``? * t`` inside an exponential
   should be near one, so one over a quantile of t. Combinations are fitted.
2. The best few are **refined** on all search rows. A Gauss-Newton step fits one term more for each constant, the
   derivative :math:`\partial t_j / \partial c`: its coefficient is :math:`w_j \delta`. Steps to either side and short
   numbers nearby are tried, too, since ``ceil(x / ?)`` and ``(x > ?)`` have no derivative that leads anywhere.
3. Each constant is **written** as the shortest number that keeps the rows. Terms whose constants cost more bits than
   they save are left out: some step in some column always explains some wrong rows.

The labels of the search rows choose the constants, so that these rows confirm nothing afterwards: the other rows judge
the rule, as they judge one that was grown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from massart.rows import IDENTITY, FloatArray, Link
from massart.rules.columns import Columns
from massart.rules.grow.fit import NO_LIMITS, Fit, Labels, chance_of
from massart.rules.grow.growing import search_rows
from massart.rules.grow.sample import Sample
from massart.rules.grow.settings import Settings
from massart.rules.grow.units import near_numbers, unit_of
from massart.rules.literals import TermError
from massart.rules.terms import Term, number

MOST_CONSTANTS = 4
"""Constants that can be looked for at once."""

_SIZES = np.geomspace(0.01, 100, 17)
_SIGNED = np.concatenate([-_SIZES, _SIZES])
_NEARLY = 1.5  # half-widths: less than a row is off that is wrong by a unit
_FARTHER, _LITTLE = 1.25, 0.01  # how much farther off a rule in short numbers may be; half-widths that are nothing
_LARGEST = 1e30  # value of a term, which in other rows may be somewhat larger
_FEWEST, _LEAST = 10, 1e-6  # rows that a term must have, and the part of its largest value that is more than nothing
_EXPONENTS = np.array([-3, -2, -1, -0.5, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.9, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4])


@dataclass(frozen=True, eq=False)
class FoundConstants:
    """Terms with the constants that were found.

    Attributes
    ----------
    terms : tuple of Term
        Without those that say no more than their constants cost, if others are left.
    coef : (d,) array
        Of the terms, and the intercept last, if there is one.
    rows : array of int
        The search rows: their labels chose the constants.
    half_width : float
        Half of the unit of the labels.
    found : str
        What was found where: a sentence.
    missed : str
        The same if the rule does not stand: what came closest.
    """

    terms: tuple[Term, ...]
    coef: FloatArray
    rows: NDArray[np.intp]
    half_width: float
    found: str
    missed: str


def find_constants(
    columns: Columns,
    terms: Sequence[Term],
    y: FloatArray,
    rng: np.random.Generator,
    seconds: float,
    *,
    half_unit: float | None = None,
    intercept: bool = True,
    link: Link = IDENTITY,
    share: float = 0.4,
    tries: int = 100,
    starts: int = 16,
    lost: float = 0.002,
) -> FoundConstants:
    """Return terms with numbers for their unknown constants.

    Parameters
    ----------
    columns : Columns
    terms : sequence of Term
        Some of them with ``?``.
    y : (n,) array
        Labels; only those of the search rows are read.
    rng : numpy.random.Generator
    seconds : float
        Of the processor.
    half_unit : float, optional
        Within which a row agrees; by default half of the unit of the labels.
    intercept : bool
    link : Link
    share : float
        The search rows are this share of the rows: fewer than a grown rule has, since more rows are left to confirm.
    tries, starts : int
        Combinations of candidates that are fitted, and how many of them are refined at most: with 6, sums of two
        exponentials and ``x / (? + x^?)`` are missed in 4 of 8 tables with 40 % of the labels wrong, with 16 in none.
    lost : float
        Share of the rows that a shorter number may lose.

    Raises
    ------
    TermError
        For a ``?`` that cannot be looked for.
    """
    _check(terms)
    settings = Settings(share=share)
    rows = search_rows(len(y), rng, settings)
    h = unit_of(y[rows]) / 2 if half_unit is None else half_unit
    sample = Sample(columns.take(rows), y[rows], h, settings.levels, constant=intercept)
    limits = NO_LIMITS if link == IDENTITY else link
    search = _ConstantSearch(tuple(terms), Labels.of(sample, "identity", settings), limits)
    end = time.thread_time() + seconds
    with threadpool_limits(1, user_api="blas"):  # the matrices are small
        best, settled = None, False
        for start, steps in search.starts(tries, starts):
            refined = search.refined(start, steps, end)
            if refined is not None:
                again = best is not None and abs(refined.fit.total - best.fit.total) < 1
                settled = again and 2 * refined.fit.n_agree > len(rows)
                best = refined if best is None or refined.fit.total < best.fit.total else best
            if settled or time.thread_time() > end:
                break
        if best is None:
            raise TermError(f"{_words(terms)}: no constant was found with which it says something in enough rows")
        if not settled:
            best = search.escaped(best, end)
        best = search.shortened(best, max(1, round(lost * len(rows))))
        known = [term for term in terms if not term.n_unknown]
        without = search.labels.fit([*((term,) for term in known), ()], limits=limits, cold=True) if known else None
    filled = search.filled(best.constants)
    coef = [best.fit.coefficient((term,)) for term in filled] + [best.fit.coefficient(())] * intercept
    n_agree, chance, _ = chance_of(best.fit.predicted, sample.y, h)
    written = [
        str(np.datetime64(int(value), "D")) if is_date else value
        for value, is_date in zip(best.constants, search.are_dates, strict=True)
    ]
    filled = search.filled(written)
    numbers = " and ".join(map(str, [new for old, new in zip(terms, filled, strict=True) if old.n_unknown]))
    price = settings.number_bits * (len(terms) - len(known) + len(best.constants))
    if without is not None and without.bits.sum() - best.fit.bits.sum() <= price:
        coef = [without.coefficient((term,)) for term in known] + [without.coefficient(())] * intercept
        missed = (
            f"No constant was found for {_words(terms)}, which is left out: {numbers} came closest, with which "
            f"{n_agree:,} of {len(rows):,} rows agree; without it, {without.n_agree:,} do."
        )
        return FoundConstants(tuple(known), np.array(coef), rows, h, missed, missed)
    where = f"{len(rows):,} of {len(y):,} rows: only the others can" if len(rows) < len(y) else "all rows: none can"
    return FoundConstants(
        filled,
        np.array(coef),
        rows,
        h,
        f"Found {numbers} for {_words(terms)}, on {where} confirm it.",
        f"No constant was found for {_words(terms)}; {numbers} came closest: {n_agree:,} of {len(rows):,} rows agree, "
        f"{chance:,.0f} by chance.",
    )


def _words(terms: Sequence[Term]) -> str:
    return " and ".join(str(term) for term in terms if term.n_unknown)


def _check(terms: Sequence[Term]) -> None:
    n_unknown = sum(term.n_unknown for term in terms)
    if n_unknown > MOST_CONSTANTS:
        raise TermError(f"{_words(terms)}: {n_unknown} constants are asked for, and {MOST_CONSTANTS} is the most")
    for term in terms:
        if term.needs_order:
            raise TermError(f"{term}: a term that looks at other rows cannot be in a rule with ?")
        parts = [term, *term.factors, *(part for part in term.parts if isinstance(part, Term))]
        if term.op in ("*", "+", "-", "?") and any(part.op == "?" for part in parts):
            raise TermError(f"{term}: the coefficient of a term and the constant of a rule are found without a ?")


@dataclass(frozen=True, eq=False)
class _Trial:
    """Constants, and the rule with them."""

    constants: tuple[float, ...]
    fit: Fit

    def keeps(self, other: _Trial, lost: int) -> bool:
        """Return whether it keeps the rows of another one, and is not farther off in them."""
        return len(self.near) >= len(other.near) - lost and self.off <= max(_FARTHER * other.off, _LITTLE)

    @cached_property
    def near(self) -> FloatArray:
        """How far those rows are off, in half-widths, that would agree if coefficients were exact."""
        off = np.abs(self.fit.residuals) / self.fit.labels.half_widths
        return np.asarray(off[off <= _NEARLY])

    @property
    def off(self) -> float:
        """The root of the mean square of that."""
        return float(np.sqrt((self.near**2).sum() / max(len(self.near), 1)))


class _ConstantSearch:
    """The rows on which constants are looked for."""

    def __init__(self, terms: tuple[Term, ...], labels: Labels, limits: Link) -> None:
        self.terms, self.labels, self.limits = terms, labels, limits
        dates = labels.sample.columns.dates
        self.are_dates = [is_date for term in terms for is_date in _are_dates(term, dates)]

    def filled(self, constants: Sequence[float | str]) -> tuple[Term, ...]:
        """Return the terms with numbers."""
        left = iter(constants)
        return tuple(term.filled([next(left) for _ in range(term.n_unknown)]) for term in self.terms)

    def trial(self, constants: Sequence[float], old: Fit | None = None) -> _Trial | None:
        """Return the best rule with some constants; None where a term has no value, or the same in every row."""
        filled = self.filled(constants)
        coef = None if old is None else [*old.coef] if len(old.terms) == len(filled) + 1 else None
        near = None if old is None else old.agree
        fit = self.labels.fit([*((term,) for term in filled), ()], coef, self.limits, near=near)
        chosen = [(new,) for one, new in zip(self.terms, filled, strict=True) if one.n_unknown]
        if fit is None or not set(chosen) <= set(fit.terms):
            return None
        sizes = np.abs(self.labels.sample.matrix(chosen))
        largest = sizes.max(axis=0)
        if not ((largest < _LARGEST) & (np.count_nonzero(sizes > _LEAST * largest, axis=0) > _FEWEST)).all():
            return None
        return _Trial(tuple(map(float, constants)), fit)

    def starts(self, tries: int, most: int) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
        """Yield the best combinations of candidates, no two of them neighbours, with the distance of candidates."""
        n_unknown = sum(term.n_unknown for term in self.terms)
        size = max(round(tries ** (1 / n_unknown)), 3)
        lists = [_thinned(one, size) for term in self.terms for one in _candidates(term, self.labels.sample, _SIGNED)]
        found = []
        for places in product(*(range(len(one)) for one in lists)):
            trial = self.trial([values[place] for values, place in zip(lists, places, strict=True)])
            if trial is not None:
                found.append((trial.fit.total, places))
        taken: list[NDArray[np.intp]] = []
        for _, places in sorted(found):
            here = np.array(places)
            if len(taken) < most and all(np.abs(here - other).max() > 1 for other in taken):
                taken.append(here)
                steps = [_gap(values, place) for values, place in zip(lists, places, strict=True)]
                yield tuple(float(values[k]) for values, k in zip(lists, places, strict=True)), tuple(steps)

    def refined(self, start: Sequence[float], steps: Sequence[float], end: float) -> _Trial | None:
        """Go down from a start, by Newton steps, steps to either side, and short numbers nearby."""
        best, widths = self.trial(start), np.array(steps)
        seen = {tuple(start)}
        for _ in range(60):
            if best is None or time.thread_time() > end or (widths < 1e-10 * np.abs(best.constants) + 1e-300).all():
                break
            better = best
            for option in self._options(best, widths):
                if option not in seen:
                    seen.add(option)
                    trial = self.trial(option, best.fit)
                    if trial is not None and trial.fit.total < better.fit.total:
                        better = trial
            if better.fit.total > best.fit.total - 1e-3:
                widths = widths / 3
            best = better
        return None if best is None else self._polished(best)

    def escaped(self, best: _Trial, end: float) -> _Trial:
        """Try all numbers of two digits up to four times as large or as small: steps of 15 are no neighbours of 28.

        Without it the example of ``docs/terms.rst`` ends with steps of 30.
        """
        for k, value in enumerate(best.constants):
            first = np.floor(np.log10(abs(value) or 1.0))
            sizes = np.concatenate([np.arange(10, 100) * 10.0 ** (first + shift) for shift in (-2, -1, 0)])
            near = sizes[(sizes > abs(value) / 4) & (sizes < abs(value) * 4)]
            trials = [
                self.trial((*best.constants[:k], size, *best.constants[k + 1 :]), best.fit)
                for size in np.copysign(near, value)
                if time.thread_time() < end
            ]
            for trial in sorted((one for one in trials if one is not None), key=lambda one: one.fit.total)[:1]:
                if trial.fit.total < best.fit.total:
                    refined = self.refined(trial.constants, [abs(one) / 50 for one in trial.constants], end)
                    best = best if refined is None or refined.fit.total > best.fit.total else refined
        return best

    def _polished(self, best: _Trial) -> _Trial:
        """Take Newton steps while rows that agree come nearer: with a wide tolerance they agree long before."""
        while (step := self._newton(best, 1e-2 * np.abs(best.constants) + 1e-300)) is not None:
            trial = self.trial(tuple(np.add(best.constants, step)), best.fit)
            if trial is None or not trial.keeps(best, 0) or trial.off >= 0.9 * best.off:
                break
            best = trial
        return best

    def _options(self, best: _Trial, widths: FloatArray) -> Iterator[tuple[float, ...]]:
        here = np.array(best.constants)
        step = self._newton(best, widths)
        if step is not None:
            for share in (1.0, 0.3):
                yield tuple((here + share * step).tolist())
        for k, width in enumerate(widths):
            nearby = near_numbers(float(here[k]), 3 * float(width))
            for value in (here[k] - width, here[k] + width, here[k] / 2, here[k] * 2, *nearby):  # steps of half an hour
                yield (*best.constants[:k], float(value), *best.constants[k + 1 :])

    def _newton(self, best: _Trial, widths: FloatArray) -> FloatArray | None:
        """Return the Gauss-Newton step: the coefficients of the derivatives, in a fit with the terms."""
        here, derivatives, slopes = np.array(best.constants), [], []
        owners = [j for j, term in enumerate(self.terms) for _ in range(term.n_unknown)]
        filled = self.filled(best.constants)
        for k, j in enumerate(owners):
            side = np.zeros(len(here))
            side[k] = 0.01 * widths[k]
            ahead, behind = self.filled((here + side).tolist())[j], self.filled((here - side).tolist())[j]
            derivatives.append(Term("/", (Term("-", (ahead, behind)), number(2 * side[k]))))
            slopes.append(best.fit.coefficient((filled[j],)))
        products = [*((term,) for term in filled), (), *((one,) for one in derivatives)]
        coef = [best.fit.coefficient(one) for one in products]
        fit = self.labels.fit(products, coef, self.limits)
        if fit is None or not all(slopes):
            return None
        step = np.array([fit.coefficient((one,)) for one in derivatives]) / slopes
        return step if np.isfinite(step).all() and step.any() else None

    def shortened(self, best: _Trial, lost: int) -> _Trial:
        """Return the rule with positive constants where both signs serve, in few digits, as long as no row is lost."""
        for k, value in enumerate(best.constants):
            turned = self.trial((*best.constants[:k], -value, *best.constants[k + 1 :])) if value < 0 else None
            best = turned if turned is not None and turned.keeps(best, lost) else best
        for k, (value, is_date) in enumerate(zip(best.constants, self.are_dates, strict=True)):
            for options in [_days_near(value)] if is_date else _numbers_near(value):
                trials = [
                    self.trial((*best.constants[:k], option, *best.constants[k + 1 :]), best.fit) for option in options
                ]
                kept = [one for one in trials if one is not None and one.keeps(best, lost)]
                if kept:
                    best = min(kept, key=lambda one: one.fit.total)
                    break
        return best


def _are_dates(term: Term, dates: frozenset[str]) -> Iterator[bool]:
    """Yield for each unknown constant whether it is a limit of a column of dates."""
    for part in term.parts:
        if isinstance(part, Term):
            if part.op == "?":
                yield term.op == "within" and term.parts[0] in dates
            yield from _are_dates(part, dates)


def _days_near(value: float) -> list[float]:
    """Return a day, and the first day of the nearest month."""
    day = np.datetime64(int(np.ceil(value)), "D")
    months = {(day + np.timedelta64(shift, "D")).astype("datetime64[M]").astype("datetime64[D]") for shift in (0, 15)}
    return [float(one.astype(int)) for one in (*sorted(months), day)]


def _numbers_near(value: float) -> Iterator[list[float]]:
    """Yield the numbers near one with one digit, with two of which the last is a 5, with two, and so on."""
    first = np.floor(np.log10(abs(value) or 1.0))
    for step in (lead * 10.0 ** (first - digits) for digits in range(12) for lead in (1.0, 0.5)):
        options = {round(float(way(value / step)) * step, 12) for way in (np.floor, np.round, np.ceil)}
        yield sorted(options, key=lambda one: abs(one - value))


def _candidates(term: Term, sample: Sample, wanted: FloatArray) -> Iterator[FloatArray]:
    """Yield values for each unknown constant of a term that should have some of the wanted values."""
    if term.op == "?":
        yield wanted
    if term.op == "within":
        yield from [_quantiles([sample.columns.numbers[str(term.parts[0])]])] * term.n_unknown
        return
    for k, part in enumerate(term.parts):
        if isinstance(part, Term) and part.n_unknown:
            others = [
                sample.factor(one.filled([0.0] * one.n_unknown))
                for j, one in enumerate(term.parts)
                if j != k and isinstance(one, Term)
            ]
            yield from _candidates(part, sample, _turned(term, k, wanted, others))


def _turned(term: Term, k: int, wanted: FloatArray, others: list[FloatArray]) -> FloatArray:
    """Return the values that one part should have, for the whole to have those that are wanted."""
    with np.errstate(all="ignore"):
        match term.op:
            case "+":
                found = np.subtract.outer(wanted, _quantiles([np.sum(others, axis=0)]))
            case "-":
                (other,) = map(_quantiles, [others])
                found = np.add.outer(wanted, other) if k == 0 else np.subtract.outer(other, wanted)
            case "*":
                found = np.divide.outer(wanted, _quantiles([np.prod(others, axis=0)]))
            case "/":
                other = _quantiles(others)
                found = np.multiply.outer(wanted, other) if k == 0 else np.divide.outer(other, wanted)
            case "min" | "max" | ">=" | "<":
                found = _quantiles(others)
            case "log":
                found = 1 + _SIZES
            case "ceil" | "floor" | "round":
                found = np.geomspace(1, 1000, 31)
            case "^" if k == 1:
                found = _EXPONENTS
            case "^":
                exponents = _quantiles(others) if others else np.array([float(str(term.parts[1]))])
                found = np.exp(np.divide.outer(_SIGNED, exponents))
            case _:
                found = _SIGNED
    values = np.unique(found[np.isfinite(found)])
    return values if np.any(values) else _SIGNED


def _quantiles(values: Sequence[FloatArray]) -> FloatArray:
    """Return values of some columns, spread as their rows are."""
    return np.concatenate([np.unique(np.quantile(one[np.isfinite(one)], np.linspace(0, 1, 33))) for one in values])


def _thinned(values: FloatArray, most: int) -> FloatArray:
    """Return some of the values, evenly chosen by their order."""
    places = np.linspace(0, len(values) - 1, min(most, len(values)))
    return np.asarray(np.unique(values)[np.round(places).astype(int)]) if len(values) else _SIGNED


def _gap(values: FloatArray, place: int) -> float:
    """Return the distance of a candidate from its neighbours."""
    near = np.diff(values)[max(place - 1, 0) : place + 1]
    return float(near.max()) / 2 if len(near) else max(abs(float(values[place])), 1.0) / 2
