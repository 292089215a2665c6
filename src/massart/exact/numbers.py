r"""The numbers of a formula as its author wrote them: short decimals and fractions that chance does not explain.

The rows that agree determine each coefficient up to an interval. An arbitrary number has a multiple of g in an interval
of width b with probability b / g at most: the *chance* of a short number (:mod:`massart.exact.simplest`). The search
goes from the surest coefficient to the least sure one. It fixes those whose chance is small, fits the others again by
least squares, which makes their intervals shorter, and so on.

**Which rows must still agree.** Where labels are exact, all that agreed. Labels that were rounded are another matter:
a formula with k free coefficients takes in up to k wrong rows that lie near the edge of their intervals, and its own
author's numbers do not. So as many rows may be lost as coefficients were fixed. The fit may be worse by what the true
formula itself does not exceed: with R the triangle of the rows in units of their half-widths, :math:`\hat w` the least
squares fit, s the standard error of a row and :math:`\varepsilon` its rounding in floats,

.. math::
    \| R (w - \hat w) \|^2 \le s^2 \left( k + 4 \sqrt{2k} + 20 \right) + n \varepsilon^2 .

**What is claimed.** The first numbers rest on wide intervals. So each number is put on trial at the end, in the
interval that it has when all others are fixed. If it is an arbitrary number after all, it passes with the probability
of its chance. How likely that is depends on the others: the more of these are short, and the fewer arbitrary, the
larger a chance is allowed (`ALONE`, `AMONG`, `WHOLE`). Zeros do not count among the others: columns without effect are
as frequent among arbitrary coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from massart.exact.normal_equations import NormalEquations, reduce_rows
from massart.exact.simplest import Simple, chance_of, simplest_number
from massart.rows import EPS, Agreement, FloatArray, verify

Fractions: TypeAlias = tuple[Fraction | None, ...]
"""The exact number of each coefficient; None where it has none."""

ALONE, AMONG, WHOLE = 1e-4, 1e-2, 5e-2
"""Largest chance of a short number by itself; for each short number among the others, over one more than the number of
arbitrary ones; and for each of the others where all are short (benchmarks/exact_numbers.py, "one_decimal" and
"arbitrary")."""

MOST, ROWS_A_POINT = 0.25, 4
"""Largest chance of any number that is taken for exact; where labels are exact it is known to many digits or not at
all, so that none of a larger one is tried. It is enough where predictions lie on a grid of which each
point has this number of rows: then no label tells the shortest number from its neighbours, however many rows there
are."""

NEARBY, SIGMAS = 2.0, 5.0
"""Half-widths within which rounded labels take part in least squares; and standard errors that a number may be off."""

_EDGE = 1e-5
_MOST_ROUNDS = 100


class ExactNumbers(NamedTuple):
    """A formula in exact numbers, as far as the rows support them.

    Attributes
    ----------
    coef : (d,) array
        The exact numbers as floats; the other coefficients fitted again, given these.
    fractions : tuple of Fraction or None
    """

    coef: FloatArray
    fractions: Fractions


def exact_numbers(X: FloatArray, y: FloatArray, w: FloatArray, agreement: Agreement) -> ExactNumbers:
    """Replace coefficients by short decimals or fractions where chance does not explain them.

    Parameters
    ----------
    X, y : (n, d) and (n,) arrays
        Rows of a sample; wrong ones may be among them.
    w : (d,) array
        A formula that is polished.
    agreement : Agreement

    Notes
    -----
    Coefficients that the rows do not determine, or only to a few digits, stay as they are.

    Examples
    --------
    >>> from massart.rows import Level
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> y = X @ [1 / 3, 0.42, 0]
    >>> w = np.linalg.lstsq(X, y, rcond=None)[0]
    >>> exact = exact_numbers(X, y, w, Agreement(Level.EXACT, relative=1e-14))
    >>> [str(value) for value in exact.fractions]
    ['1/3', '21/50', '0']
    """
    none = ExactNumbers(w, (None,) * len(w))
    found = verify(X, y, w, agreement)
    n_agree = int(np.count_nonzero(found.agree))
    if n_agree <= len(w):  # d rows agree with some formula whatever they say
        return none
    # Rows that agree are those around `w`, which may hold it where it is; wrong ones nearby may pull it away.
    reaches = (
        (found.agree, np.abs(found.residuals) <= NEARBY * found.half_widths) if agreement.rounded else (found.agree,)
    )
    best = None
    for rows, fractions in product(reaches, (False, True)):
        search = _NumberSearch(reduce_rows(X[rows], y[rows], w, agreement), X, y, n_agree, fractions)
        search.propose()
        search.judge()
        if best is None or search.rank > best.rank:
            best = search
        if len(best.fixed) == len(w):
            break
    return none if best is None or not best.fixed else best.answer()


@dataclass(slots=True)
class _NumberSearch:
    """The numbers that were fixed so far, and the chance with which each was."""

    equations: NormalEquations
    X: FloatArray
    y: FloatArray
    n_agree: int
    fractions: bool = True
    chances: tuple[float, ...] = ()  # of the numbers that passed their trials
    fixed: dict[int, Fraction] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[int, float]:
        """The number of coefficients that are short, and how improbable that is by chance."""
        return len(self.fixed), -math.prod(self.chances)

    @property
    def agreement(self) -> Agreement:
        return self.equations.agreement

    def propose(self) -> None:
        """Fix short numbers, the surest first, as long as the fit allows them."""
        refused: set[int] = set()
        for _ in range(_MOST_ROUNDS):
            found = sorted(
                (simple.chance, j, simple.value)
                for j, simple in self._simplest(self.fixed).items()
                if j not in refused and (self.equations.rounded or simple.chance <= MOST)
            )
            if not found:
                break
            size = max(sum(chance <= AMONG for chance, _, _ in found), 1)
            while size and not self.equations.fits(_floats(self.fixed | {j: value for _, j, value in found[:size]})):
                size //= 2
            if size:
                self.fixed |= {j: value for _, j, value in found[:size]}
                refused.clear()  # what did not fit may fit now that more is fixed
            else:
                refused.add(found[0][1])

    def judge(self) -> None:
        """Free the numbers again that cost rows, or that chance explains."""
        while self.fixed:
            formula = self._formula()
            chances = self._trials(formula)
            terms = sum(map(bool, self.fixed.values()))
            most = {others: self._most_chance(others, formula) for others in (terms - 1, terms)}
            failed = [j for j, value in self.fixed.items() if chances[j] > most[terms - bool(value)]]
            if not failed and self._keeps(formula):
                self.chances = tuple(chances.values())
                return
            # To free one number makes the intervals of the others longer: whatever fails now would fail later.
            for j in failed or [max(self.fixed, key=lambda j: chances[j])]:
                del self.fixed[j]

    def answer(self) -> ExactNumbers:
        """Return the numbers that are left, and the others fitted again."""
        return ExactNumbers(self._formula(), tuple(self.fixed.get(j) for j in range(len(self.equations.start))))

    def _formula(self) -> FloatArray:
        """Return the formula with the numbers fixed, and the others as the rows have them."""
        return self.equations.formula(_floats(self.fixed))

    def _keeps(self, formula: FloatArray) -> bool:
        """Return whether the rows that agreed still agree, but for those that free coefficients take in."""
        if not self.agreement.rounded:
            return self.equations.keeps(formula)
        count = int(np.count_nonzero(self.agreement.agree(self.X, self.y, formula)))
        return self.n_agree - count <= len(self.fixed)

    def _simplest(self, fixed: Mapping[int, Fraction]) -> dict[int, Simple]:
        """Return the simplest number of each coefficient that is not fixed, as least squares has it, if it has one."""
        equations = self.equations
        centre = equations.formula(_floats(fixed))
        spread = equations.uncertainty(fixed, SIGMAS) + 2 * EPS * np.abs(centre)
        found = {}
        for j in set(range(len(centre))) - set(fixed):
            known = float(centre[j]), float(spread[j]), float(equations.natural[j])
            simple = simplest_number(*known, finest=self._finest, fractions=self.fractions)
            if simple is not None:
                found[j] = simple
        return found

    @property
    def _finest(self) -> float:
        return 2 * self.agreement.label if self.equations.rounded else 0.0

    def _trials(self, formula: FloatArray) -> dict[int, float]:
        """Return the chance of each number in the interval that it has given the others."""
        whole = self.equations.rounded and len(self.fixed) == len(formula)
        intervals = self._intervals(formula) if whole else None
        chances = {}
        for j, value in self.fixed.items():
            if intervals is None:
                half = float(self.equations.uncertainty(self.fixed.keys() - {j}, SIGMAS)[j])
            else:
                half = float(intervals[1][j] - intervals[0][j]) / 2
            half += 2 * EPS * abs(float(formula[j]))
            chances[j] = chance_of(value, half, float(self.equations.natural[j]), finest=self._finest)
        return chances

    def _intervals(self, formula: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return between which values each coefficient alone may move while the rows inside their intervals agree.

        Rows at the very edge do not count: where all numbers are multiples of 0.0001, so are their residuals, and a
        formula off by 0.0001 has as many rows at half a cent as the true one has.
        """
        found = verify(self.X, self.y, formula, self.agreement)
        inside = found.agree & (np.abs(found.residuals) < (1 - _EDGE) * found.half_widths)
        X, rest, widths = self.X[inside], found.residuals[inside], found.half_widths[inside]
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.sort([(rest - widths)[:, None] / X, (rest + widths)[:, None] / X], axis=0)
        ends = np.where(np.isnan(ends) | (X == 0), [[[-np.inf]], [[np.inf]]], ends)
        return formula + ends[0].max(axis=0, initial=-np.inf), formula + ends[1].min(axis=0, initial=np.inf)

    def _most_chance(self, others: int, formula: FloatArray) -> float:
        """Return how likely by chance a number may be, if this many others are not zero."""
        arbitrary = len(formula) - len(self.fixed)
        if arbitrary:
            return max(ALONE, AMONG * others / (arbitrary + 1))
        if self.equations.rounded and self._is_on_a_grid(formula):
            return MOST
        return max(AMONG, min(WHOLE * others, MOST))

    def _is_on_a_grid(self, formula: FloatArray) -> bool:
        """Return whether predictions lie on a grid so coarse that labels leave gaps, however many rows there are.

        Whole numbers times 0.137 are multiples of 0.001: then no label tells 9.9 from 9.9004.
        """
        found = verify(self.X, self.y, formula, self.agreement)
        rest = (found.residuals / found.half_widths)[found.agree]
        return len(rest) > ROWS_A_POINT * (1 + int((np.diff(np.sort(rest)) > _EDGE).sum()))


def _floats(fixed: Mapping[int, Fraction]) -> dict[int, float]:
    return {j: float(value) for j, value in fixed.items()}
