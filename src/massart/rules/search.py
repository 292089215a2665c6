"""The search beyond the plain columns: libraries, the simplest first; limits; then rules on parts of the rows.

All is tried on some of the rows, in milliseconds each (:mod:`massart.rules.sheet`), and what explains clearly more rows
than anything simpler is kept. Libraries are made of X alone; thresholds and parts are chosen by labels, so that only
rows that took no part in the search can confirm them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from massart.link import IDENTITY, Link
from massart.progress import Callback, Progress, silent
from massart.rows import BoolArray, FloatArray
from massart.rules import terms as t
from massart.rules.columns import Columns
from massart.rules.libraries import PAIRS, Library, categories, libraries
from massart.rules.parts import Parted, parted
from massart.rules.powers import power_law
from massart.rules.sheet import NEAR, Fit, Sheet, label_half_width
from massart.rules.terms import Term

MOST_ROWS, SHARE, WHOLE = 1_000, 0.5, 600
"""Rows that are looked at: this share of them, at most so many, and all of a smaller table."""

ENOUGH = 0.97
"""Share of the rows from which on nothing more is looked for."""

BRIEF = 150
"""Libraries that are tried where the plain columns have a certain rule, which other rows break."""

MARGIN, FEWEST = 0.03, 5.0
"""What explains more has to explain so many more rows: a share of them, and a number."""

SHUFFLES, CLEARLY = 2, 1.5
"""How often labels are shuffled, and how many times more rows a rule has to explain than it does then."""

PILE = 0.05
"""Share of labels that are alike from which a limit may be behind them."""

TASK = "looking for a rule"
_SHUFFLE_SEED = 0


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A library of terms that explains more than the plain columns."""

    name: str  # what it has, in words: "products of two"
    terms: tuple[Term, ...]
    link: Link
    tried: int  # libraries that were tried
    of: int  # how many there are, by X alone
    rows: NDArray[np.intp]  # (m,), rows whose labels were looked at
    by_x: bool  # whether the terms are a library that was made of X alone
    # (d,), coefficients of the terms that the rule seems to have; zero for others; that of the constant last
    coef: FloatArray
    half_width: float  # of the interval that a label stands for

    @property
    def short(self) -> tuple[Term, ...]:
        """The terms that the rule seems to have."""
        return tuple(term for term, value in zip(self.terms, self.coef, strict=False) if value)


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What was found, the names of the libraries that were tried, and whether all were within the time given."""

    found: Found | None
    searched: tuple[str, ...]
    complete: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """What explains most so far."""

    name: str
    terms: tuple[Term, ...]
    coef: FloatArray
    link: Link
    agree: BoolArray
    net: float
    by_labels: bool
    choices: int = 1
    again: Callable[[Sheet], float] = lambda sheet: 0.0


def draw_sheet(
    columns: Columns, plain: Sequence[Term], y: FloatArray, tolerance: float | Literal["auto"], rng: np.random.Generator
) -> Sheet:
    """Return the rows that are looked at."""
    n = len(y)
    size = n if n < WHOLE else min(MOST_ROWS, max(WHOLE // 2, round(SHARE * n)))
    rows = np.sort(rng.choice(n, size, replace=False)) if size < n else np.arange(n)
    some = columns.take(rows)
    values = np.column_stack([*(term.evaluate(some) for term in plain), np.ones(size)])
    return Sheet(columns, rows, y[rows], label_half_width(values, y[rows], tolerance), y)


def search(
    sheet: Sheet,
    plain: Sequence[Term],
    known: Sequence[Fit],
    seconds: float,
    *,
    brief: bool = False,
    linear: bool = False,
    callback: Callback = silent,
) -> Search:
    """Look for terms in which a rule explains more rows than in the plain columns, of which some rules are `known`.

    It may take so many seconds. `brief`: the plain columns have a rule already, and only simple terms are tried beside
    it; `linear`: caps and floors are out of the question.
    """
    with threadpool_limits(1, user_api="blas"):  # the matrices are small
        return _Searching(sheet, tuple(plain), known, seconds, brief, linear, callback).run()


class _Searching:
    """One search: the best so far, the clock, what was tried."""

    def __init__(
        self,
        sheet: Sheet,
        plain: tuple[Term, ...],
        known: Sequence[Fit],
        seconds: float,
        brief: bool,
        linear: bool,
        callback: Callback,
    ) -> None:
        self.sheet, self.plain, self.callback = sheet, plain, callback
        self.brief, self.linear = brief, linear
        self.end = time.thread_time() + seconds  # not of the wall: a busy machine must not change the answer
        self.names: dict[str, None] = {}
        self.tried, self.late = 0, False
        every = np.ones(len(sheet.rows), dtype=bool)
        nothing = _Best("", plain, np.zeros(len(plain) + 1), IDENTITY, ~every, 0.0, False)
        self.first = max((self._of_fit("", fit) for fit in known), key=lambda best: best.net, default=nothing)
        self.best = self.first

    def run(self) -> Search:
        """Try one thing after the other, until the rows are explained or the time is over."""
        made = libraries(self.sheet.columns, self.plain)[: BRIEF if self.brief else None]
        total, done = len(made) + self._n_parts(made), 0
        steps = [self._limits(self.best), self._libraries(made), self._powers(), self._parts()]
        steps += [] if self.brief else [self._groups(made)]
        for step in steps:
            if step is steps[-1] and not self.brief and self.best.name and 2 * self.best.agree.mean() > 1:
                break  # rules on parts of the rows were looked for already
            for candidate in step:
                done += 1
                self.callback(Progress(TASK, done, max(total - done, 0), 0.0))
                if candidate is not None and candidate.net > self.best.net + self._margin(candidate):
                    self.best = candidate
                if time.thread_time() > self.end:
                    self.late = True
                    break
            if self.late or self._is_enough():
                break
        return Search(self._found(), tuple(self.names), not self.late)

    def _n_parts(self, made: Sequence[Library]) -> int:
        columns = self.sheet.columns
        by = len(columns.numbers) + len(categories(columns))
        pairs = 0 if self.brief else sum(library.name == PAIRS for library in made)
        return 2 * by + pairs * (2 + len(categories(columns)) + len(columns.dates))

    def _margin(self, candidate: _Best) -> float:
        """Return how many more rows something has to explain: more where it is less simple by far."""
        return max(FEWEST, MARGIN * len(self.sheet.rows)) if candidate.by_labels or not self.best.name else FEWEST

    def _is_enough(self) -> bool:
        return float(self.best.agree.mean()) >= ENOUGH

    def _found(self) -> Found | None:
        best = self.best
        if not best.name or not self._is_more_than_chance(best):
            return None
        coef = best.coef
        if not best.by_labels:
            every = np.ones(len(best.agree), dtype=bool)
            short = self.sheet.shortened(Fit(best.terms, best.coef, best.agree, best.net), every)
            values = dict(zip(short.terms, short.coef, strict=False))
            coef = np.array([*(values.get(term, 0.0) for term in best.terms), short.coef[-1]])
        return Found(
            best.name,
            best.terms,
            best.link,
            max(self.tried, 1) * best.choices,
            len(libraries(self.sheet.columns, self.plain)),
            self.sheet.rows,
            not best.by_labels,
            coef,
            self.sheet.half_width,
        )

    def _is_more_than_chance(self, best: _Best) -> bool:
        """Tell whether far fewer rows are explained in the same way when labels are shuffled over the rows."""
        rng = np.random.default_rng(_SHUFFLE_SEED)
        for _ in range(SHUFFLES):
            shuffled = replace(self.sheet, y=rng.permutation(self.sheet.y), labels=None)
            if best.net <= CLEARLY * best.again(shuffled) + self._margin(best):
                return False
        return True

    def _as_well(self, terms: tuple[Term, ...]) -> Callable[[Sheet], float]:
        return lambda sheet: _net(sheet.fit(terms))

    def _of_fit(self, name: str, fit: Fit, *, by_labels: bool = False) -> _Best:
        return _Best(name, fit.terms, fit.coef, IDENTITY, fit.agree, fit.net, by_labels)

    def _libraries(self, made: Sequence[Library]) -> Iterator[_Best | None]:
        """Yield what each library explains, and limits of that."""
        for library in made:
            yield self._try(library)
            if self._is_enough():
                return
        if self.best is not self.first:
            yield from self._limits(self.best)

    def _try(self, library: Library) -> _Best | None:
        self.tried += 1
        self.names[library.name] = None
        fit = self.sheet.fit(library.terms)
        if fit is None:
            return None
        return replace(self._of_fit(library.name, fit), again=self._as_well(library.terms))

    def _powers(self) -> Iterator[_Best | None]:
        self.names["products of powers"] = None
        fit = power_law(self.sheet)
        yield None if fit is None else self._of_fit("products of powers", fit, by_labels=True)

    def _limits(self, best: _Best) -> Iterator[_Best | None]:
        """Yield the best rule with a cap or a floor where many labels are alike."""
        sheet = self.sheet
        if self.linear:
            return
        self.names["caps and floors"] = None
        labels, counts = np.unique(sheet.y, return_counts=True)
        for place in np.argsort(-counts, kind="stable")[:3]:
            if counts[place] < PILE * len(sheet.y):
                return
            value = float(labels[place])
            free = sheet.y != value
            fit = sheet.fit(best.terms, free)
            if fit is None or fit.net <= FEWEST:
                continue
            short = sheet.shortened(fit, free)
            products = sheet.matrix(short.terms) @ short.coef
            for link in (Link(-math.inf, value), Link(value, math.inf)):
                off = np.abs(sheet.y - link(products)) / sheet.half_widths()
                agree = off <= NEAR
                chance = np.count_nonzero((off > NEAR) & (off <= 3 * NEAR)) / 2
                if np.count_nonzero(agree & ~free & (products != value)) > FEWEST:
                    net = float(np.count_nonzero(agree)) - chance - len(short.coef) - 1
                    words = "a cap" if link.upper == value else "a floor"
                    again = self._as_well(best.terms)
                    yield _Best(words, short.terms, short.coef, link, agree, net, True, again=again)

    def _parts(self) -> Iterator[_Best | None]:
        """Yield rules in branches: by dates, by categories, by numbers."""
        self.names["tiers, brackets and groups"] = None
        columns = self.sheet.columns
        by: list[Term | Sequence[Term]] = [t.column(name) for name in sorted(columns.dates)]
        by += categories(columns)
        by += [t.column(name) for name in columns.numbers if name not in columns.dates]
        bases = [self.plain]
        if self.best.name and self.best.link is IDENTITY and not self.best.by_labels:
            found = self._found()
            bases += [] if found is None else [found.short, tuple(dict.fromkeys((*self.plain, *found.short)))]
        for base in bases:
            for one in by:
                also = (one,) if isinstance(one, Term) and one not in base and one.parts[0] not in columns.dates else ()
                yield self._parted((*base, *also), one)

    def _groups(self, made: Sequence[Library]) -> Iterator[_Best | None]:
        """Yield rules in branches whose terms are products of two columns."""
        self.names["tiers and groups of products"] = None
        columns = self.sheet.columns
        for library in made:
            if library.name != PAIRS:
                continue
            pair = library.terms[-7].factors
            base = (*self.plain, t.product(*pair))
            for name in dict.fromkeys(name for one in pair for name in one.columns()):
                if name in columns.numbers:
                    yield self._parted(base, t.column(name))
            for levels in categories(columns):
                yield self._parted(base, levels)
            for name in sorted(columns.dates):
                yield self._parted(base, t.column(name))

    def _parted(self, base: tuple[Term, ...], by: Term | Sequence[Term]) -> _Best | None:
        sheet, every = self.sheet, np.ones(len(self.sheet.rows), dtype=bool)
        known = [fit for fit in (sheet.fit(base),) if fit is not None and fit.net > FEWEST]
        found = parted(sheet, base, by, [sheet.shortened(fit, every) for fit in known])
        if found is None:
            return None

        def again(shuffled: Sheet) -> float:
            return max(_net(parted(shuffled, base, by)), _net(shuffled.fit(base)))

        name = f"tiers by {found.by}" if isinstance(by, Term) else f"a branch for each {found.by}"
        limit = None if self.linear else found.limit(sheet)
        if limit is not None:
            fit, link = limit
            words = "a cap" if link.lower == -math.inf else "a floor"
            return _Best(words, fit.terms, fit.coef, link, found.agree, found.net, True, again=again)
        terms = found.terms(sheet)
        coef = sheet.refitted(terms, found.agree).coef
        return _Best(name, terms, coef, IDENTITY, found.agree, found.net, True, found.choices, again)


def _net(found: Fit | Parted | None) -> float:
    return 0.0 if found is None else found.net
