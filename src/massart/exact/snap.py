r"""Exact coefficients: from the floats that fit the rows to the short decimals and fractions behind them.

Each coefficient of the least-squares solution on the agreeing rows is known up to an uncertainty, which follows from
how far these rows are from the formula and from their condition. If a number within it is so simple that chance does
not explain it (:mod:`massart.exact.simplest`), it is proposed. Proposals are verified together: they replace the
floats only if, with the other coefficients solved for again, every row still agrees and the sum of squares grows by no
more than

.. math::
    \| R (w - \hat w) \|^2 \le s^2 \left( k + 4 \sqrt{2k} + 20 \right) + n \varepsilon^2 ,

where rows are in units of their half-widths, R is their triangular factor, s their standard error, k the number of
coefficients replaced and :math:`\varepsilon` the rounding of one row in float64: what the true formula itself does
not exceed. Where the proposals fail together, they are halved until they hold. Fixing some coefficients leaves less
uncertainty in the others, so the search repeats until nothing is found.

Labels that were rounded to cents are another matter. Least squares leaves some of them, and with some coefficients
fixed it leaves others, so that "every row still agrees" would reject the truth; and it knows a coefficient to
:math:`1 / \sqrt n` where the rows determine it to 1/n. There the polytope of all formulas that the rows allow is
searched (:mod:`massart.exact.rounded`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from massart.agreement import Agreement, Level
from massart.agreement.decimals import DOUBLE
from massart.exact.normal_equations import NormalEquations, reduce_rows
from massart.exact.rational import RationalStatus, holds_exactly, solve_rational
from massart.exact.rounded import search_polytope
from massart.exact.simplest import simplest_number
from massart.rows import FloatArray

Fractions: TypeAlias = tuple[Fraction | None, ...]
"""The exact number of each coefficient; None where it has none."""

_MOST_CHANCE = 1e-3
"""A simple number is taken for the truth if at most this share of arbitrary numbers has one as simple as near."""

_MOST_CHANCE_ROUNDED = 0.05
"""The same where rows are further from the formula than floats are, but far closer than they may be."""

_UNIFORM = 0.2
"""Standard error of a row, in units of its half-width, above which its label is taken for rounded and says an interval.
Rounding alone makes 0.29 to 0.58, since units are powers of two; below, most rows are far closer than they may be."""

_SIGMAS = 5.0
_MOST_TRIALS = 100


@dataclass(frozen=True, slots=True)
class ExactCoefficients:
    """A formula in exact numbers, as far as the rows support it.

    Attributes
    ----------
    coef : (d,) array
        The exact numbers rounded to floats; the others solved for again, given these.
    fractions : tuple of Fraction or None
        The exact number of each coefficient; None where it has none.
    """

    coef: FloatArray
    fractions: Fractions


def exact_coefficients(X: FloatArray, y: FloatArray, w: FloatArray, agreement: Agreement) -> ExactCoefficients:
    """Replace coefficients by short decimals or small fractions where these fit the rows at least as well.

    Parameters
    ----------
    X : (n, d) array
        Rows that agree with `w`. A sample of a few thousand serves as well as all of them.
    y : (n,) array
        Their labels.
    w : (d,) array
        The formula, in floats.
    agreement : Agreement
        Every row that agrees before agrees after.

    Notes
    -----
    Coefficients that the rows do not determine, or only to a few digits, stay as they are. Where the data are whole
    numbers or short decimals and a formula holds exactly, every coefficient has its fraction, be it simple or not.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> y = X @ [1 / 3, 0.42, 0]
    >>> w = np.linalg.lstsq(X, y, rcond=None)[0]
    >>> exact = exact_coefficients(X, y, w, Agreement(Level.EXACT, relative=1e-14))
    >>> [str(value) for value in exact.fractions]
    ['1/3', '21/50', '0']
    """
    equations = reduce_rows(X, y, w, agreement)
    if agreement.rounded and equations.error > _UNIFORM:
        found = search_polytope(equations)
        fixed, formula = found.fixed, found.formula
        if not equations.keeps(formula):
            fixed = {}
    else:
        fixed = _Search(equations).run()
        formula = equations.formula(_floats(fixed)) if fixed else w
    fractions: Fractions = tuple(fixed.get(j) for j in range(len(w)))
    answer = formula if fixed else w

    # Labels that were rounded contradict every formula, so exact arithmetic is for rows that agree to float rounding;
    # and d rows hold for some formula whatever they say.
    exactly = replace(agreement, level=Level.EXACT, label=0.0, inputs=())
    if len(X) > len(w) and exactly.agree(X, y, answer).all():
        rational = _in_rationals(X, y, fractions)
        if rational is not None:
            floats = np.array([float(value) for value in rational])
            if equations.keeps(floats):
                return ExactCoefficients(floats, rational)
    return ExactCoefficients(answer, fractions)


def _in_rationals(X: FloatArray, y: FloatArray, fractions: Fractions) -> tuple[Fraction, ...] | None:
    """Return the formula that holds exactly on every row, if there is one."""
    known = tuple(value for value in fractions if value is not None)
    if len(known) == len(fractions) and holds_exactly(X, y, known):
        return known
    solution = solve_rational(X, y)
    return solution.coef if solution.status is RationalStatus.EXACT else None


def _floats(fixed: Mapping[int, Fraction]) -> dict[int, float]:
    return {j: float(value) for j, value in fixed.items()}


@dataclass(slots=True)
class _Search:
    """The search for simple values: what the rows say, and how often they were asked."""

    equations: NormalEquations
    trials: int = 0

    def run(self) -> dict[int, Fraction]:
        """Return the simple values of as many coefficients as the rows support."""
        fixed: dict[int, Fraction] = {}
        while self.trials < _MOST_TRIALS:
            known = len(fixed)
            groups = [group for group in [self._propose(fixed)] if group]
            while groups and self.trials < _MOST_TRIALS:
                group = groups.pop()
                trial = fixed | dict(group)
                self.trials += 1
                if self.equations.fits(_floats(trial)):
                    fixed = trial
                elif len(group) > 1:  # the surest half first
                    half = len(group) // 2
                    groups += [group[half:], group[:half]]
            if len(fixed) == known:  # otherwise what failed may hold, now that more is fixed
                break
        return fixed

    def _propose(self, fixed: Mapping[int, Fraction]) -> list[tuple[int, Fraction]]:
        """Return simple values for the coefficients that are still floats, the least likely by chance first."""
        equations = self.equations
        w = equations.formula(_floats(fixed))
        spread = equations.uncertainty(fixed, _SIGMAS) + 2 * DOUBLE * np.abs(w)
        most_chance = _MOST_CHANCE_ROUNDED if equations.rounded else _MOST_CHANCE
        found: list[tuple[float, int, Fraction]] = []
        for j in set(range(len(w))) - set(fixed):
            simple = simplest_number(
                float(w[j]),
                float(spread[j]),
                float(equations.natural[j]),
                most_chance=most_chance,
                finest=2 * equations.agreement.label if equations.rounded else 0.0,
            )
            if simple is not None:
                found.append((simple.chance, j, simple.value))
        return [(j, value) for _, j, value in sorted(found)]
