r"""Identities among the columns of a table: each column grown from the others, each identity once, judged on all rows.

Every column is a target for a short run of the search of ``massart fit`` (:mod:`massart.rules.grow`). The same identity
comes back from several targets, and some follow from others. The gradients show both: where
:math:`F(x) = y - \sum_j w_j t_j(x) = 0` holds, it follows from :math:`F_1 = \dots = F_k = 0` if, at the rows of the
table, :math:`\nabla F` is a combination of the :math:`\nabla F_i`. So the simplest are judged first, and what follows
from those that passed is left out.

Labels of all rows choose the terms, so that delta is shared by all designs in a prefix code: a design of b bits
is judged at :math:`2^{-b}` of it. By Kraft's inequality these add up to no more than the whole, whatever was searched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from massart.audit.finding import find
from massart.audit.question import Request
from massart.audit.table_audit import Audit
from massart.certificate import Verdict
from massart.recover import beyond_chance, choice_bits, integer_bits, rule_beyond_chance, short_number
from massart.rows import BoolArray, FloatArray
from massart.rules import OPERATIONS, Columns, Summand, Term, TermError, grow, unit_of
from massart.tables import Table, TableError, counted

_COMMON = ("*", "/", "^", "log")  # operations with short names in the prefix code
_ARITHMETIC = (*_COMMON, "column", "number", "+", "-")
_SINGLE = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True)
class Settings:
    """How identities are looked for. The defaults serve the tables of ``benchmarks/scan.py``.

    Attributes
    ----------
    growth : massart.rules.grow.Settings
        Of a brief search without rules by cases: an identity holds in most rows, so that it is seen soon or not at all.
    known : float
        Share of the rows of a target that other columns have together, in a second look: gaps of one cost all rows.
    units : float
        With more of them in the spread of a target, columns that it is made of may be rounded, too (fringe, lunch).
    columns : int
        Of a wider table, those that go with the target most are the others.
    rows : int
        On which gradients are compared.
    follows : float
        Relative distance from what others imply: coefficients are known to a few digits (twoyear, intqrt).
    digits, few, tight, rounding : int, float, float, float
        What rounding explains is less than `rounding` of the spread of a target. Coefficients with more digits are
        those of an approximation, unless there are two terms at most, `few` rows are wrong, and rounding explains less
        than `tight` (intqrt: hy3 = r3 * 91 / 365).
    bits : float
        A rule says at least so much more of the labels than chance does: 10 bits, once in a thousand tables.
    """

    growth: grow.Settings = grow.BRIEF
    known: float = 0.6
    units: float = 200.0
    columns: int = 60
    rows: int = 40
    follows: float = 5e-3
    digits: int = 6
    few: float = 0.01
    tight: float = 1e-4
    rounding: float = 0.05
    bits: float = 10.0


SETTINGS = Settings()


@dataclass(frozen=True, eq=False)
class Numbers:
    """The columns of numbers of a table: (n, p) values, NaN where one is missing."""

    names: tuple[str, ...]
    values: FloatArray

    def columns(self) -> Columns:
        """Return them as terms see them."""
        return Columns(dict(zip(self.names, self.values.T, strict=True)))

    def take(self, rows: NDArray[np.intp] | BoolArray) -> Numbers:
        """Return some rows."""
        return Numbers(self.names, self.values[rows])

    def known(self, names: tuple[str, ...]) -> BoolArray:
        """Mark the rows that have a value in some columns."""
        return np.asarray(np.isfinite(self.values[:, [self.names.index(name) for name in names]]).all(axis=1))


@dataclass(frozen=True)
class Identity:
    """A target, the terms and coefficients of the sum that it is, the constant last, and the bits that a row saves."""

    target: str
    terms: tuple[Term, ...]
    coef: tuple[float, ...]
    saved: float = 0.0

    @classmethod
    def of(cls, audit: Audit) -> Identity:
        """Return the identity that the rows found right: a sum may have lost terms."""
        used = [(one.term, one.coef) for one in audit.formula.terms if one.coef and one.term is not None]
        constant = 0.0 if audit.formula.intercept is None else audit.formula.intercept.coef
        return cls(audit.formula.target, tuple(term for term, _ in used), (*(w for _, w in used), constant))

    @property
    def columns(self) -> tuple[str, ...]:
        """The target, and the columns that its terms read."""
        return (self.target, *dict.fromkeys(name for term in self.terms for name in term.columns()))

    def __str__(self) -> str:
        return f"{self.target} = " + " + ".join(
            f"{w:.4g} * {term}" for term, w in zip(self.terms, self.coef, strict=False)
        )

    @property
    def is_sum(self) -> bool:
        """Whether its terms are columns as they stand."""
        return all(term.is_column for term in self.terms)

    @property
    def difficulty(self) -> tuple[float, ...]:
        """How hard it is to read: columns, odd numbers, other terms, minus signs, numbers, rows not said, letters."""
        inner = [number for term in self.terms for number in _numbers_in(term)]
        return (
            len(self.columns),
            sum(not _is_round(w, 1e-6) for w in self.coef[:-1]),
            sum(not term.is_column for term in self.terms),
            sum(w < 0 for w in self.coef),
            sum(abs(abs(w) - 1) > 1e-6 for w in self.coef if w) + sum(not number.is_integer() for number in inner),
            -round(self.saved, 1),
            sum(len(str(term)) for term in self.terms),
        )

    @property
    def simplest(self) -> Identity:
        """The same identity, solved for the column for which it is easiest to read: a sum for any of its columns."""
        forms = [self]
        for j, w in enumerate(self.coef[:-1] if self.is_sum and all(self.coef[:-1]) else ()):
            terms = (*self.terms[:j], Term("column", (self.target,)), *self.terms[j + 1 :])
            coef = (*self.coef[:j], -1.0, *self.coef[j + 1 :])
            forms.append(Identity(str(self.terms[j].parts[0]), terms, tuple(-one / w for one in coef), self.saved))
        return min(forms, key=lambda one: one.difficulty)

    def design_bits(self, n_columns: int) -> float:
        """Return the length of its target and terms in a prefix code; coefficients cost nothing."""
        bits = 1 + float(np.log2(n_columns))
        if self.is_sum:
            return bits + choice_bits(n_columns - 1, len(self.terms))
        return bits + float(integer_bits(len(self.terms))) + sum(_bits_of(term, n_columns) for term in self.terms)

    def residuals(self, numbers: Numbers) -> FloatArray:
        """Return the target less the sum in each row."""
        columns = numbers.columns()
        left = columns.numbers[self.target] - self.coef[-1]
        for term, w in zip(self.terms, self.coef, strict=False):
            left = left - w * term.evaluate(columns)
        return np.asarray(left)

    def gradients(self, numbers: Numbers) -> FloatArray:
        """Return the gradient of the residual at each row, in units of how much the columns vary."""
        found, scale = np.zeros(numbers.values.shape), np.nanstd(numbers.values, axis=0)
        for j in [numbers.names.index(name) for name in self.columns]:
            step = np.zeros(len(scale))
            step[j] = 1e-6 * (scale[j] or 1.0)
            up, down = (Numbers(numbers.names, numbers.values + sign * step) for sign in (1, -1))
            with np.errstate(invalid="ignore"):
                found[:, j] = self.residuals(up) - self.residuals(down)
        return found


def _is_round(number: float, error: float) -> bool:
    """Return whether a number has four digits at most, but for a relative error."""
    return abs(number - float(f"{number:.4g}")) <= error * abs(number)


def _numbers_in(term: Term) -> Iterator[float]:
    for part in term.parts:
        if isinstance(part, Term):
            yield from _numbers_in(part)
        elif isinstance(part, float):
            yield part


def _bits_of(part: Term | float, n_columns: int) -> float:
    """Return the length of a part of a term: it begins with 1 for a column, 01 for `_COMMON`, 001 for a number."""
    if not isinstance(part, Term):
        return 3 + short_number(part, 0.0)[1]
    if part.op == "column":
        return 1 + float(np.log2(n_columns))
    name = 2 + np.log2(len(_COMMON)) if part.op in _COMMON else 3 + np.log2(len(OPERATIONS))
    arity = 0.0 if part.op in ("/", "^", "log") else float(integer_bits(len(part.parts)))
    return float(name) + arity + sum(_bits_of(one, n_columns) for one in part.parts if isinstance(one, Term | float))


def _is_arithmetic(term: Term) -> bool:
    """Return whether a term says the same of all rows: no cases, hinges or steps."""
    return term.op in _ARITHMETIC and all(_is_arithmetic(part) for part in term.parts if isinstance(part, Term))


class Known:
    """The identities that passed, to say which others follow from them."""

    def __init__(self, numbers: Numbers, settings: Settings = SETTINGS) -> None:
        n, self._settings = len(numbers.values), settings
        self._numbers = numbers.take(np.linspace(0, n - 1, min(n, 10 * settings.rows)).astype(np.intp))
        self._gradients: list[FloatArray] = []

    def add(self, one: Identity) -> None:
        """Add an identity."""
        self._gradients.append(one.gradients(self._numbers))

    def implies(self, one: Identity) -> bool:
        """Return whether an identity follows from those that were added, at most of the rows that have its values."""
        own = one.gradients(self._numbers)
        rows = np.flatnonzero(np.isfinite(own).all(axis=1) & own.any(axis=1))[: self._settings.rows]
        followed = 0
        for i in rows.tolist():
            known = [gradient[i] for gradient in self._gradients if np.isfinite(gradient[i]).all()]
            A = np.column_stack([np.empty((own.shape[1], 0)), *(g / (np.linalg.norm(g) or 1.0) for g in known)])
            left = own[i] - A @ np.linalg.lstsq(A, own[i], rcond=1e-7)[0]
            followed += bool(np.linalg.norm(left) <= self._settings.follows * np.linalg.norm(own[i]))
        return 2 * followed > len(rows)


@dataclass(frozen=True, eq=False)
class Grower:
    """Grows what a column may be of the others."""

    numbers: Numbers
    seed: int
    settings: Settings = SETTINGS

    def identities(self, target: str, seconds: float, without: frozenset[str] = frozenset()) -> list[Identity]:
        """Return what most rows of a column follow, of the others but some, each in its simplest form."""
        end, seen = time.thread_time() + seconds, set[tuple[int, ...]]()
        j = self.numbers.names.index(target)
        for rows, others in self._views(j, without):
            look = (len(rows), *others)
            if time.thread_time() > end:
                break
            if others and look not in seen and len(rows) and np.ptp(self.numbers.values[rows, j]) > 0:
                seen.add(look)
                found = self._twice(j, rows, others)
                alike = {name for one in found if len(one.columns) == 2 for name in one.columns}
                if alike:  # what a column is in a rule with another one that says the same
                    found += self._twice(j, rows, [k for k in others if self.numbers.names[k] not in alike])
                if found:
                    return [one.simplest for one in found]
        return []

    def _views(self, target: int, without: frozenset[str]) -> Iterator[tuple[NDArray[np.intp], list[int]]]:
        """Yield rows and columns known there: all rows, most rows, those without rare zeros, and without its own."""
        values, names = self.numbers.values, self.numbers.names
        for known in (1.0, self.settings.known):
            rows, others = np.isfinite(values[:, target]), list[int]()
            least = max(known * np.count_nonzero(rows), 1)
            there = np.isfinite(values) & rows[:, None]
            for j in np.argsort(-there.sum(axis=0), kind="stable").tolist():
                if j != target and names[j] not in without and np.count_nonzero(rows & there[:, j]) >= least:
                    others.append(j)
                    rows = rows & there[:, j]
            yield np.flatnonzero(rows), self._nearest(target, np.flatnonzero(rows), others)
        others = self._nearest(target, np.flatnonzero(rows), others)
        nonzero = values != 0
        for known_rows in (
            rows,
            rows & nonzero[:, target],
        ):  # a quotient is zero, or left out, where it divides by zero
            rows, least = known_rows, max(self.settings.known * np.count_nonzero(known_rows), 1)
            for j in sorted(others, key=lambda j: -np.count_nonzero(known_rows & nonzero[:, j])):
                if np.count_nonzero(rows & nonzero[:, j]) >= least:
                    rows = rows & nonzero[:, j]
            yield np.flatnonzero(rows), others

    def _nearest(self, target: int, rows: NDArray[np.intp], others: list[int]) -> list[int]:
        """Return the columns that go with a target most, of a wide table."""
        if len(others) > self.settings.columns:
            some = self.numbers.values[rows[:: max(1, len(rows) // 1000)]]
            ranks = np.argsort(np.argsort(some, axis=0, kind="stable"), axis=0, kind="stable")
            ranks = ranks - ranks.mean(axis=0)
            order = np.argsort(-np.abs(ranks[:, target] @ ranks[:, others]), kind="stable")
            others = [others[k] for k in order[: self.settings.columns]]
        return sorted(others)

    def _twice(self, j: int, rows: NDArray[np.intp], others: list[int]) -> list[Identity]:
        """Grow identities on some rows, and again where rows that do not follow the best one are half of them.

        So a column is seen that is zero nearly everywhere. A value that most rows of a target have is half of them.
        """
        rng, growth = np.random.default_rng(self.seed), self.settings.growth
        _, places, counts = np.unique(self.numbers.values[rows, j], return_inverse=True, return_counts=True)
        rare = (places != np.argmax(counts)) & bool(2 * counts.max() > len(rows))
        found = self._grown(j, others, _half_of(rng, rows, rare, growth.rows))
        if not found or len(rows) <= growth.rows:
            return found
        half, numbers = self._half_width(j, rows), self.numbers.take(rows)
        off = np.abs(found[0].residuals(numbers)) > half
        again = self._grown(j, others, _half_of(rng, rows, off, growth.rows)) if off.any() else []
        if not again:
            return found
        won = np.count_nonzero(off) - np.count_nonzero(np.abs(again[0].residuals(numbers)) > half)
        price = growth.number_bits / growth.miss_bits * (len(again[0].terms) - len(found[0].terms))
        return again if won > max(price, 0) else found

    def _half_width(self, j: int, rows: NDArray[np.intp]) -> float:
        """Return within what a target follows: its unit; what is left of numbers that were single; rounded columns."""
        y = self.numbers.values[rows, j]
        low, high = np.quantile(y, [0.05, 0.95])
        some = y[y != 0][:: max(1, len(y) // 1000)] if y.any() else y
        with np.errstate(over="ignore"):
            if np.array_equal(some.astype(np.float32), some):  # 23.64 was kept as 23.6400013
                some = np.array([float(f"{one:.6g}") for one in some.tolist()])
        unit, single = unit_of(some), _error_of_single(y, float(np.quantile(np.abs(y), 0.9)))
        wide = high - low > self.settings.units * unit
        return single if unit < single else 1.5 * unit if wide else 0.49 * unit  # 0.5 is neither 0 nor 1

    def _grown(self, j: int, others: list[int], rows: NDArray[np.intp]) -> list[Identity]:
        """Return identities that most of some rows follow, and more than chance explains."""
        some, names, rng = self.numbers.take(rows), self.numbers.names, np.random.default_rng(self.seed)
        y, half = some.values[:, j], self._half_width(j, rows)
        columns = Columns({names[k]: some.values[:, k] for k in others})
        spread, found = float(np.subtract(*np.quantile(y, [0.95, 0.05]))), []
        for terms, coef in grow.arithmetic(columns, y, half, rng, self.settings.growth):
            one = Identity(names[j], terms, tuple(coef.tolist()))
            residuals, bits = one.residuals(some), one.design_bits(len(names)) + 1  # for one of two widths
            share = float(np.mean(np.abs(residuals) <= half))
            beyond = [
                beyond_chance(y, y - residuals - width, y - residuals + width, bits, np.abs(residuals) <= width)
                for width in (half, _SINGLE * half)  # labels may be coarse, of which some are not
            ]
            if 2 * share > 1 and max(beyond) >= 0 and all(map(_is_arithmetic, terms)):
                found.append(replace(one, saved=share * float(np.log2(spread / half + 1))))
        return found


def _error_of_single(y: FloatArray, size: float) -> float:
    """Return the error of labels that were computed in float32 from numbers of a size, or from the larger ones.

    The difference of 13.1 and 13.2 has the last bit of these.
    """
    mantissas, exponents = np.frexp(y[y != 0][:1000])
    whole = (np.abs(mantissas) * 2.0**53).astype(np.int64)
    lowest = exponents - 53 + np.log2(np.maximum(whole & -whole, 1))
    bit = 2.0 ** float(np.quantile(lowest, 0.05)) if len(lowest) else 0.0
    return max(2 * _SINGLE * size, 2 * bit if unit_of(y) < bit else 0.0)


def _half_of(rng: np.random.Generator, rows: NDArray[np.intp], rare: BoolArray, size: int) -> NDArray[np.intp]:
    """Return some rows; half of them are rare, or fewer where there are fewer."""
    first = rng.permutation(rows[rare])[: size // 2]
    return np.concatenate([first, rng.permutation(rows[~rare])[: size - len(first)]])


def judged(table: Table, numbers: Numbers, one: Identity, request: Request, settings: Settings) -> Audit | None:
    """Return what all rows say of an identity, asked as in a request; None where it is not worth showing."""
    bits = one.design_bits(len(numbers.names))
    values = np.column_stack([term.evaluate(numbers.columns()) for term in one.terms])
    there: BoolArray = np.asarray(np.isfinite(values).all(axis=1))
    rows = None if there[numbers.known(one.columns)].all() else np.flatnonzero(there)  # some divide by zero

    def audit(tolerance: float | Literal["auto"]) -> Audit:
        terms = "columns" if one.is_sum else [str(term) for term in one.terms]
        asked = replace(request, target=one.target, terms=terms, features=one.columns[1:], tolerance=tolerance)
        asked = replace(asked, model="linear", inliers="exact", hypotheses=2 ** (bits + 1))  # 1 for two tolerances
        some = table if rows is None else replace(table, arrow=table.arrow.take(rows))
        return find(some, asked, seen=np.empty(0, dtype=np.intp)).audit

    try:
        found = audit("auto")
        if not found.agree.all():
            coef = np.array([term.coef for term in found.formula.terms])
            reach = _error_of_single(
                found.given, float((np.abs(found.X[:]) @ np.abs(coef) + np.abs(found.given)).max())
            )
            off = np.abs(found.given - found.formula.predict(found.X))[~found.agree]
            if 2 * np.count_nonzero(off <= reach) > len(off):  # no more than what float32 once left
                found = audit(reach)
    except (TableError, TermError):  # such as no row that has all values
        return None
    if not _is_worth_showing(found, bits, settings):
        return None
    if rows is None:
        return found
    design = replace(found.design, kept=rows[found.design.kept], n_total=table.n_rows)
    notice = f"{counted(table.n_rows - len(rows), 'row')} left out: no value of a term."
    return replace(found, table=table, design=design, notices=(notice, *found.notices))


def _is_short(term: Summand, digits: int) -> bool:
    """Return whether a coefficient is a number that people write, or what float32 makes of one."""
    if term.exact is not None and len(term.number().strip("-").replace(".", "")) <= digits:
        return True
    return _is_round(term.coef, _SINGLE)


def _is_worth_showing(audit: Audit, design_bits: float, settings: Settings) -> bool:
    """Return whether a rule says more than rounding and chance do, in numbers that people write.

    Where columns nearly follow from others, some sum of many of them, with odd coefficients, fits rounded values.
    """
    if audit.certificate.verdict < Verdict.PLURALITY or 2 * int(audit.agree.sum()) <= len(audit.agree):
        return False
    used = [term for term in audit.formula.terms if term.coef]
    low, high = np.percentile(audit.given[audit.agree], [5, 95])
    slack = audit.agreement.slack(audit.formula.coef) / max(high - low, 1e-300)
    odd = not all(_is_short(term, settings.digits) for term in used)
    if not used or slack > settings.rounding:
        return False
    broken = audit.certificate.verdict < Verdict.MAJORITY  # by a part of the table
    if odd and (broken or len(used) > 2 or audit.wrong_share > settings.few or slack > settings.tight):
        return False
    counts = np.sort(np.unique(audit.given[audit.agree], return_counts=True)[1])
    if not audit.is_certain and audit.wrong_share > settings.few and 2 * counts[-2:].sum() > counts.sum():
        return False  # zeros and ones exclude each other, and more than chance agree (twoyear: regions)
    # Rows next to each other that say the same are one where a rule is broken: the years of a crisis come together.
    said = np.column_stack([audit.given, audit.implied])
    new = np.append(True, (said[1:] != said[:-1]).any(axis=1) | (audit.n_wrong == 0))
    X = np.column_stack([audit.X[:], np.ones(len(said))])[new, : len(audit.formula.coef)]
    return rule_beyond_chance(X, audit.given[new], audit.formula.coef, audit.agreement) - design_bits >= settings.bits
