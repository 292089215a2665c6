r"""Exact coefficients: from the floats that fit the rows to the short decimals and fractions behind them.

Each coefficient of the least-squares solution on the agreeing rows is known up to an uncertainty, which follows from
how far these rows are from the formula and from their condition. If a number within it is so simple that chance does
not explain it (:mod:`massart.exact.simplest`), it is proposed. Proposals are verified together: they replace the
floats only if, with the other coefficients solved for again, every row still agrees and the sum of squares grows by no
more than

.. math::
    \| R (w - \hat w) \|^2 \le s^2 \left( k + 4 \sqrt{2k} + 20 \right) + n \varepsilon^2 ,

where rows are in units of their tolerance, R is their triangular factor, s their standard error, k the number of
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
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from massart.exact.decimals import DOUBLE
from massart.exact.evidence import Evidence, agreeing, gather
from massart.exact.rational import RationalStatus, holds_exactly, solve_rational
from massart.exact.rounded import search_polytope
from massart.exact.simplest import MAX_DENOMINATOR, simplest_number
from massart.exact.tolerance import Tolerance
from massart.rows import BoolArray, FloatArray, check_labels, check_matrix

_MOST_CHANCE = 1e-3
"""A simple number is taken for the truth if at most this share of arbitrary numbers has one as simple as near."""

_MOST_CHANCE_ROUNDED = 0.05
"""The same where rows are further from the formula than floats are, but far closer than the tolerance allows."""

_UNIFORM = 0.2
"""Standard error of a row, in units of its tolerance, above which its label is taken for rounded and says an interval.
Rounding alone makes 0.29 to 0.58, since units are powers of two; below, most rows are far closer than they may be."""

_SIGMAS = 5.0
_MOST_TRIALS = 100


class Status(Enum):
    """What became of the coefficients; the value says it in words."""

    UNCHANGED = "no coefficient has a simple value that the rows support"
    SNAPPED = "the marked coefficients are short decimals or small fractions, and the rows fit at least as well"
    RATIONAL = "every row holds exactly in rational arithmetic"


@dataclass(frozen=True, slots=True)
class ExactCoefficients:
    """A formula in exact numbers, as far as the rows support it.

    Attributes
    ----------
    coef : (d,) array
        The exact numbers rounded to floats; the others solved for again, given these.
    fractions : tuple of Fraction or None
        The exact number of each coefficient; None where it has none.
    snapped : (d,) boolean array
        The coefficients that have an exact number.
    status : Status
    residual_before, residual_after : float
        The largest residual, in magnitude, of the coefficients given and of those returned.
    total_before, total_after : float
        The sum of the magnitudes of the residuals.
    """

    coef: FloatArray
    fractions: tuple[Fraction | None, ...]
    snapped: BoolArray
    status: Status
    residual_before: float
    residual_after: float
    total_before: float
    total_after: float


def exact_coefficients(
    X: ArrayLike,
    y: ArrayLike,
    coef: ArrayLike,
    tolerance: Tolerance,
    *,
    max_denominator: int = MAX_DENOMINATOR,
) -> ExactCoefficients:
    """Replace coefficients by short decimals or small fractions where these fit the rows at least as well.

    Parameters
    ----------
    X : (n, d) array
        Rows that agree with `coef`. A sample of a few thousand serves as well as all of them.
    y : (n,) array
        Their labels.
    coef : (d,) array
        The formula, in floats.
    tolerance : Tolerance
        With which the rows agree. Every row that agrees before agrees after.
    max_denominator : int
        The largest denominator of a fraction that is not a short decimal.

    Returns
    -------
    ExactCoefficients
        With the status UNCHANGED, SNAPPED or RATIONAL. The last is reached where the data are whole numbers or short
        decimals and hold exactly; then every coefficient has its fraction, be it simple or not.

    Notes
    -----
    Coefficients that the rows do not determine, or only to a few digits, stay as they are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> y = X @ [1 / 3, 0.42, 0]
    >>> w = np.linalg.lstsq(X, y, rcond=None)[0]
    >>> exact = exact_coefficients(X, y, w, Tolerance(0.0, 1e-13, "rounding of float64"))
    >>> [str(value) for value in exact.fractions]
    ['1/3', '21/50', '0']
    """
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    w = np.asarray(coef, dtype=np.float64)
    if w.shape != (rows.shape[1],):
        raise ValueError(f"coef must have shape ({rows.shape[1]},), got {w.shape}")
    if not np.isfinite(w).all():
        raise ValueError(f"coef must be finite, got {w[~np.isfinite(w)][0]} at {int(np.argmin(np.isfinite(w)))}")
    if max_denominator < 1:
        raise ValueError(f"max_denominator must be at least 1, got {max_denominator}")

    before = np.abs(labels - rows @ w)
    evidence = gather(rows, labels, w, tolerance)
    if tolerance.absolute > 0 and evidence.level > _UNIFORM:
        found = search_polytope(evidence, max_denominator)
        fixed, formula = found.fixed, found.formula
        if not evidence.keeps(formula):
            fixed = {}
    else:
        fixed = _Search(evidence, max_denominator).run()
        formula = evidence.formula(_floats(fixed))
    fractions: tuple[Fraction | None, ...] = tuple(fixed.get(j) for j in range(len(w)))
    answer = formula if fixed else w
    status = Status.SNAPPED if fixed else Status.UNCHANGED

    # Labels that were rounded contradict every formula, so exact arithmetic is for rows that agree to float rounding;
    # and d rows hold for some formula whatever they say.
    tight = Tolerance(0.0, tolerance.relative, tolerance.reason)
    if len(rows) > len(w) and agreeing(tight, rows, labels, answer).all():
        exactly = _in_rationals(X, y, fractions)
        floats = None if exactly is None else np.array([float(value) for value in exactly])
        if exactly is not None and floats is not None and evidence.keeps(floats):
            answer, fractions, status = floats, exactly, Status.RATIONAL
    after = np.abs(labels - rows @ answer)
    snapped = np.array([value is not None for value in fractions])
    return ExactCoefficients(
        answer,
        fractions,
        snapped,
        status,
        float(before.max()),
        float(after.max()),
        float(before.sum()),
        float(after.sum()),
    )


def _in_rationals(X: ArrayLike, y: ArrayLike, fractions: tuple[Fraction | None, ...]) -> tuple[Fraction, ...] | None:
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

    evidence: Evidence
    max_denominator: int
    trials: int = 0

    def run(self) -> dict[int, Fraction]:
        """Return the simple values of as many coefficients as the rows support."""
        fixed: dict[int, Fraction] = {}
        while self.trials < _MOST_TRIALS:
            known = len(fixed)
            groups = [self._propose(fixed)]
            while groups and self.trials < _MOST_TRIALS:
                group = groups.pop()
                trial = fixed | dict(group)
                self.trials += 1
                if self.evidence.fits(_floats(trial)):
                    fixed = trial
                elif len(group) > 1:  # the surest half first
                    half = len(group) // 2
                    groups += [group[half:], group[:half]]
            if len(fixed) == known:  # otherwise what failed may hold, now that more is fixed
                break
        return fixed

    def _propose(self, fixed: Mapping[int, Fraction]) -> list[tuple[int, Fraction]]:
        """Return simple values for the coefficients that are still floats, the least likely by chance first."""
        evidence = self.evidence
        w = evidence.formula(_floats(fixed))
        spread = evidence.uncertainty(fixed, _SIGMAS) + 2 * DOUBLE * np.abs(w)
        most_chance = _MOST_CHANCE_ROUNDED if evidence.rounded else _MOST_CHANCE
        found: list[tuple[float, int, Fraction]] = []
        for j in set(range(len(w))) - set(fixed):
            simple = simplest_number(
                float(w[j]),
                float(spread[j]),
                float(evidence.natural[j]),
                most_chance=most_chance,
                max_denominator=self.max_denominator,
                finest=2 * evidence.tolerance.absolute if evidence.rounded else 0.0,
            )
            if simple is not None:
                found.append((simple.chance, j, simple.value))
        return [(j, value) for _, j, value in sorted(found)]
