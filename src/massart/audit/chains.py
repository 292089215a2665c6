r"""What a rule that looks at other rows implies, given the rows that are known to be right.

A rule with ``lag(stock)`` compares a row with the value of the row before as it was given. Where that is wrong, the row
after it disagrees though it is right, and what is implied for it is wrong. So the rows of a group are walked through in
order: a row that agrees with what follows from the last one that does is a *member* of the chain, and where a row does
not, the walk goes on with what is implied for it. A chain that starts at a wrong value has wrong members only. If
labels are wrong independently, each with probability at most p, m members or more of n rows are all wrong with
probability at most

.. math::
    \Pr[\mathrm{Bin}(n, p) \ge m] ,

and a chain is trusted where that is small. p is an upper limit for the share of rows of the table that do not agree.
Members of a trusted chain are right: of those that disagree with the row before them as it was given, that one is
wrong. A row outside the chain is put right if members come after it, and the row after it does not agree with it as it
was given: else the error may lie in other columns, and go on in all rows after it. Outside a trusted chain no row is
put right.

A running sum, or the lag of another column, reads other rows, too: a wrong number there makes several rows disagree by
the same amount. So a row is put right only where rows that agree stand before and after it, and those next to it are
off by other amounts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from massart.audit.implied import implied_values, marks_of
from massart.certificate import largest_share_outside
from massart.report import Notice
from massart.rows import AGREES, EDGE, EPS, IDENTITY, LAST_PLACE, Agreement, BoolArray, FloatArray, Link, Mark
from massart.rules import Columns, Formula, Matrix, Part, Term, TermMatrix

_DELTA = 1e-3  # as for verdicts: half of it for the share of wrong rows, half for all chains
_MOST_STARTS = 12  # of which more than half are right
_MOST_OUTSIDE = 30  # rows in a row that are not members: then the chain has come to its end
_AFFINE = 1e-9  # of a value: what a sum that is a line may be off
_ROW = "\0row"  # no column has this name


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """The judged rows of a table, as its right rows show."""

    X: Matrix  # the values of the terms, the rows before being put right
    implied: FloatArray  # what the formula gives for these
    follows: BoolArray  # rows that agree once the row before is put right
    open: BoolArray  # wrong rows that stay as they are: what is implied for them rests on rows that may be wrong

    @property
    def notices(self) -> tuple[Notice, ...]:
        """How many rows these are."""
        counts = {"after wrong": int(self.follows.sum()), "rests on others": int(self.open.sum())}
        return tuple(Notice(code, n=n) for code, n in counts.items() if n)


def chains_of(
    name: str,
    columns: Columns,
    judged: NDArray[np.intp],
    rule: tuple[Formula, Agreement, int | None],
    wrong_at_most: float = 0.5,
) -> Chains | None:
    """Return what right rows of a table of that name imply, if its rule looks at other rows.

    Parameters
    ----------
    name : str
    columns : Columns
        All rows of the table, in order, the target among the numbers.
    judged : (m,) integer array
        The rows that are judged, in order.
    rule : Formula, Agreement and int or None
        The last is to how many places implied values are rounded.
    wrong_at_most : float
        The largest probability with which a label is wrong.
    """
    formula = rule[0]
    read = [found for term in formula.terms if term.coef and term.term for found in _ordered(term.term)]
    if not read:
        return None
    table, y = _TableRows(name, columns, judged, *rule), columns.numbers[formula.target]
    X, agrees, implied = table.judged_after(y)
    if formula.noisy:  # then no row tells whether another one is right
        return Chains(X, implied[judged], np.zeros(len(judged), dtype=bool), ~agrees[judged])
    wrong, residual = ~agrees, y - implied
    follows, kept = np.zeros((2, len(y)), dtype=bool)
    specs = {term.parts for term in read if term.op == "lag" and term.parts[0] == formula.target}
    if specs:
        kept = wrong
        walk = table.walked(specs, X, wrong, wrong_at_most)
        if walk is not None:
            X, agrees, implied = table.judged_after(walk.values)  # as tables are judged
            follows = wrong & walk.member & (agrees | walk.first)
            implied[follows & walk.first] = y[follows & walk.first]  # which rests on nothing before it
            kept = wrong & ~follows & ~walk.mended
    for term in read:
        if term.parts[0] != formula.target:
            groups = _groups(columns, term.parts)
            kept = kept | (wrong & ~_stands_alone(groups, wrong, residual, rule[1], term.op))
    return Chains(X, implied[judged], follows[judged], (kept & ~follows)[judged])


@dataclass(frozen=True, slots=True, eq=False)
class _TableRows:
    """All rows of a table next to a rule; those that are not judged agree, and what is implied for them is given."""

    name: str
    columns: Columns
    judged: NDArray[np.intp]
    formula: Formula
    agreement: Agreement
    places: int | None

    def judged_after(self, before: FloatArray) -> tuple[TermMatrix, BoolArray, FloatArray]:
        """Return the terms, which rows agree, and what is implied, where the rows before have these values."""
        y = self.columns.numbers[self.formula.target]
        numbers = {**self.columns.numbers, self.formula.target: before}
        X = TermMatrix(replace(self.columns, numbers=numbers), self._terms).take(self.judged)
        agrees, implied = np.ones(len(y), dtype=bool), y.copy()
        marks = marks_of(self.name, X, y[self.judged], self.formula, self.agreement)
        agrees[self.judged] = marks & (AGREES | LAST_PLACE) > 0
        implied[self.judged] = implied_values(X, self.formula, self.places)
        return X, agrees, implied

    def walked(
        self, specs: set[tuple[Part, ...]], X: TermMatrix, wrong: BoolArray, wrong_at_most: float
    ) -> _Walked | None:
        """Walk from row to row; None where a row does not imply a line for the next, or no chain can be trusted."""
        n, y = len(self.judged), self.columns.numbers[self.formula.target]
        share = largest_share_outside(int(wrong.sum()), n, _DELTA / 2) if n else 1.0
        line = _line(self.columns, self._terms, self.formula) if len(specs) == 1 else None
        if line is None or 2 * min(share, wrong_at_most) >= 1:
            return None
        sizes = np.abs(y)
        for j in np.flatnonzero(self.formula.coef[: len(self._terms)]):
            sizes[self.judged] += np.abs(self.formula.coef[j] * X[:, j])
        widths = self.agreement.half_widths(sizes, self.formula.coef)
        unit = Mark(self.formula.coef, self.agreement, self.formula.link).unit or 0.0
        rows = _Rows(y, wrong, *line, widths, self.formula.link, self.places, unit)
        return rows.walk(_groups(self.columns, next(iter(specs))), min(share, wrong_at_most))

    @property
    def _terms(self) -> list[Term]:
        return [term.term for term in self.formula.terms if term.term is not None]


def _ordered(term: Term) -> Iterator[Term]:
    """Yield the lags and running sums in a term."""
    if term.op in ("lag", "cumsum"):
        yield term
    else:
        for part in term.parts:
            if isinstance(part, Term):
                yield from _ordered(part)


def _groups(columns: Columns, parts: tuple[Part, ...]) -> list[NDArray[np.intp]]:
    """Return the rows of each group in order, given the column, the groups and the order of a term."""
    numbers = {**columns.numbers, _ROW: np.arange(columns.n_rows, dtype=np.float64)}
    before = Term("lag", (_ROW, *parts[1:])).evaluate(replace(columns, numbers=numbers))
    ones = {**columns.numbers, _ROW: np.ones(columns.n_rows)}
    place = Term("cumsum", (_ROW, *parts[1:])).evaluate(replace(columns, numbers=ones))
    group = np.arange(columns.n_rows)
    for row in np.argsort(place, kind="stable").tolist() if len(place) else ():
        if place[row] > 1:
            group[row] = group[int(before[row])]
    order = np.lexsort((place, group))
    return np.split(order, np.flatnonzero(place[order] == 1)[1:])


def _line(columns: Columns, terms: Sequence[Term], formula: Formula) -> tuple[FloatArray, FloatArray] | None:
    """Return a and c such that the terms of each row add up to a times the value before it, plus c; None if not so."""

    def total(value: float) -> FloatArray:
        numbers = {**columns.numbers, formula.target: np.full(columns.n_rows, value)}
        X = TermMatrix(replace(columns, numbers=numbers), terms)
        return implied_values(X, replace(formula, link=IDENTITY), None)

    at = [total(float(value)) for value in (0.0, 1.0, 2.0, -3.0)]
    slope, there = at[1] - at[0], np.isfinite(at[0])
    close = _AFFINE * (1 + np.abs(at[0]) + np.abs(slope))
    for value, found in ((2.0, at[2]), (-3.0, at[3])):
        if not (np.abs(found - at[0] - value * slope) <= close)[there].all():
            return None
    return slope, at[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Walked:
    """What came of a walk, for each row."""

    member: BoolArray  # of a trusted chain
    first: BoolArray  # of its chain
    mended: BoolArray  # put right by the rows around it
    values: FloatArray  # what the walk goes on with: the given values of members, implied ones elsewhere in the chain


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """All rows of a table, as a walk from row to row needs them."""

    given: FloatArray
    wrong: BoolArray  # those that do not agree with the row before as it was given
    slope: FloatArray  # what the terms add up to is the slope times the value before, plus the constant
    constant: FloatArray
    half_widths: FloatArray
    link: Link
    places: int | None
    unit: float  # of the last place, by which a row that agrees may be off; 0 where that means nothing

    def walk(self, groups: Sequence[NDArray[np.intp]], share: float) -> _Walked:
        """Return the members of trusted chains, and what these say of the rows between them.

        No row is wrong with a probability above `share`.
        """
        member, begins, mended = np.zeros((3, len(self.given)), dtype=bool)
        values = self.given.copy()
        for group in (rows.tolist() for rows in groups if self.wrong[rows].any()):
            # Where a value counts for less from row to row, those after a first one do not show whether it is right.
            lasts = self.link == IDENTITY and bool((np.abs(self.slope[group[1:]]) >= 1 - _AFFINE).all())
            start, delta = 0, _DELTA / 2 / len(groups)
            for _ in range(_MOST_STARTS):
                delta /= 2
                agree, on, is_known = self._chain(group, start)
                n_ends = 1 if start + len(agree) == len(group) else len(group)  # it may end anywhere
                if n_ends * bdtrc(sum(agree[1:]) - 1, len(agree) - 1, share) <= delta:
                    last = max(place for place, is_member in enumerate(agree) if is_member)
                    known = 0 if lasts else next((k for k, is_member in enumerate(agree[1:], 1) if is_member), last)
                    for place, row in enumerate(group[start : start + len(agree)]):
                        member[row], values[row] = agree[place], on[place]
                        if not agree[place] and known < place < last:
                            mended[row] = is_known[place] and self.wrong[row] and self.wrong[group[start + place + 1]]
                    member[group[start]] = begins[group[start]] = lasts
                    start += len(agree) - 1
                start += 1
                if start >= len(group) - 1:
                    break
        return _Walked(member, begins, mended, values)

    def _chain(self, group: list[int], start: int) -> tuple[list[bool], list[float], list[bool]]:
        """Follow a group from one of its rows to the last member of its chain.

        Return which rows are members, the value to go on with from each, and whether that of a row outside the chain is
        known to the last place, as far as the rows before it show.
        """
        value, n_outside, is_known, is_lost = float(self.given[group[start]]), 0, True, False
        agree, values, known = [True], [value], [True]
        for row in group[start + 1 :]:
            exact = float(self.link(self.slope[row] * value + self.constant[row]))
            value = exact if self.places is None else round(exact, self.places)
            off = float(abs(self.given[row] - exact) - self.half_widths[row])
            is_near = off <= self.unit  # which is never put right: what it goes on from may be off as much
            is_member = off <= 0 or (is_near and not is_known)
            known.append(is_known and not is_near and not is_lost)
            # A row outside the chain that agrees with the one before it: what the walk goes on with may be wrong.
            is_lost = not is_member and (is_lost or not self.wrong[row])
            if self.places is not None:  # a half may be rounded both ways
                half = 0.5 * 10.0**-self.places
                is_known &= abs(abs(exact - value) - half) > EDGE * half + 2 * EPS * abs(exact)
            if is_member:
                value, is_known = float(self.given[row]), off <= 0
            agree.append(is_member)
            values.append(value)
            n_outside = 0 if is_member else n_outside + 1
            if n_outside > _MOST_OUTSIDE:
                return agree[:-n_outside], values[:-n_outside], known[:-n_outside]
        return agree, values, known


def _stands_alone(
    groups: Sequence[NDArray[np.intp]], wrong: BoolArray, residual: FloatArray, agreement: Agreement, op: str
) -> BoolArray:
    """Return the wrong rows that those next to them do not share an error with, as far as their group shows."""
    found = wrong.copy()
    for group in groups:
        off, by = wrong[group], residual[group]
        if not off.any():
            continue
        both = off[1:] & off[:-1]
        if op == "cumsum":
            both &= np.abs(np.diff(by)) <= _AFFINE * np.abs(by[1:]) + (agreement.unit or 0.0)
            # Rows that agree, before and after it, show the sum so far.
            agreed = np.cumsum(~off)
            found[group[(agreed == 0) | (agreed == agreed[-1])]] = False
        else:
            found[group[:2]] = False  # the number of a first row, which is not judged, may be wrong
        found[group[1:][both]] = found[group[:-1][both]] = False
    return found
