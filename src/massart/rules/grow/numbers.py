"""Numbers of a rule in few digits: its coefficients, and those inside of its factors.

A rule is linear in its coefficients, and nearly so in a threshold, in a limit, and in the rates of
``max(guarantee, 0.47 / 1.07 * takings)``. So all of them are solved for together, by least squares of the rows that
agree, and then written in few digits one after the other, the best determined first, while the rest is solved again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from massart.rows import BoolArray, FloatArray
from massart.rules import terms as t
from massart.rules.grow.fit import SLACK, Fit
from massart.rules.grow.sample import Product, factors_of, is_condition
from massart.rules.grow.units import near_numbers
from massart.rules.terms import Part, Term

_SURE = 3.0  # standard errors within which the digits of a coefficient are open
_MOST_ROWS = 4000  # that tell numbers
_MOVE = 1e-6  # of its size, by which a number is moved to see what changes
_STEPS = 3  # in which numbers inside of factors are solved for
_MOVABLE = ("+", "-", "*", "/", "min", "max", "^")  # operations whose value changes with a number in them


# Coefficients.


def coefficient_errors(Z: FloatArray) -> FloatArray:
    """Return the standard errors of coefficients, given the rows that agree in units of their half-widths."""
    sizes = np.sqrt((Z**2).mean(axis=0)) + 1e-300
    inverse = np.linalg.pinv((Z / sizes).T @ (Z / sizes))
    return np.asarray(np.sqrt(np.abs(np.diag(inverse))) / sizes)


def written_coefficients(fit: Fit) -> FloatArray:
    """Return the coefficients in as few digits as the rows that agree leave each of them open."""
    rows = fit.agree
    if np.count_nonzero(rows) <= len(fit.terms):
        return fit.coef
    Z = fit.matrix[rows] / fit.labels.half_widths[rows, None]
    errors = np.maximum(
        _SURE * coefficient_errors(Z), fit.labels.settings.tie / (np.sqrt((Z**2).mean(axis=0)) + 1e-300)
    )
    numbers = (near_numbers(float(w), float(e)) for w, e in zip(fit.coef, errors, strict=True))
    return np.array([found[0] if found else w for found, w in zip(numbers, fit.coef.tolist(), strict=True)])


def in_few_digits(fit: Fit) -> Fit:
    """Return the rule with its coefficients as they are written, if the rows cost no more then."""
    short = Fit(fit.labels, fit.terms, written_coefficients(fit), fit.limits, fit.X)
    return short if short.bits.sum() <= fit.bits.sum() else fit


def short_coefficients(
    X: FloatArray,
    y: FloatArray,
    half_widths: FloatArray,
    coef: FloatArray,
    agree: BoolArray,
    lost: int = 0,
    known: BoolArray | None = None,
    right: Callable[[FloatArray], BoolArray] | None = None,
) -> FloatArray:
    """Return coefficients in few digits with which no fewer rows agree than with given ones, but for some.

    Those that are known stay as they are. What counts as a row that agrees may be given: what it is with a sum.
    """
    known = np.zeros(len(coef), dtype=bool) if known is None else known
    steps = 0 if right is None else _STEPS
    return _short(lambda w: np.asarray(X @ w), X, y, half_widths, coef, agree, lost, known, right, steps)


# All numbers of a rule.


def in_short_numbers(fit: Fit) -> Fit:
    """Return the rule with its numbers in few digits where hardly a row is lost, or even more rows agree."""
    fit = _with_scales_inside(fit)
    labels, sample = fit.labels, fit.labels.sample
    lost = max(2, round(labels.settings.loose * labels.n))
    places = [(factor, path) for factor in factors_of(fit.terms) for path in _inner(factor)]
    n_coef = len(fit.terms)

    def terms_at(numbers: FloatArray) -> tuple[Product, ...]:
        moved = {factor: factor for factor, _ in places}
        for (factor, path), value in zip(places, numbers.tolist(), strict=True):
            moved[factor] = _with_number(moved[factor], path, value)
        return tuple(tuple(moved.get(one, one) for one in term) for term in fit.terms)

    def matrix_at(numbers: FloatArray) -> FloatArray:
        return sample.matrix(terms_at(numbers)) if len(numbers) else fit.matrix

    numbers = np.array([_number_at(factor, path) for factor, path in places])
    moves = _MOVE * np.abs(numbers)
    slopes = [
        (matrix_at(numbers + move) - fit.matrix) @ fit.coef / move.sum() for move in np.diag(moves) if len(numbers)
    ]
    J = np.nan_to_num(np.column_stack([fit.matrix, *slopes]), posinf=0.0, neginf=0.0)
    w = np.array([*fit.coef, *numbers])

    def value(w: FloatArray) -> FloatArray:
        return np.asarray(matrix_at(w[n_coef:]) @ w[:n_coef])

    known = np.array([*(any(map(_has_own_scale, term)) for term in fit.terms), *(False for _ in places)])
    steps = _STEPS if places else 0
    w = _short(value, J, labels.y, SLACK * labels.half_widths, w, fit.inside, lost, known, steps=steps)
    terms = tuple(tuple(map(without_ones, term)) for term in terms_at(w[n_coef:]))
    short = Fit(labels, terms, w[:n_coef], fit.limits)
    return short if short.n_agree >= fit.n_agree - lost else fit


def _with_scales_inside(fit: Fit) -> Fit:
    """Return the rule with coefficients inside of factors that have numbers for all that they add or compare."""
    terms, coef = list(fit.terms), fit.coef.copy()
    for j, term in enumerate(terms):
        place = next((k for k, one in enumerate(term) if _has_own_scale(one)), None)
        if place is not None and coef[j] > 0 and coef[j] != 1:
            inside = _rescaled(term[place], float(coef[j]))
            terms[j], coef[j] = (*term[:place], inside, *term[place + 1 :]), 1.0
    return Fit(fit.labels, tuple(terms), coef, fit.limits)


def _has_own_scale(factor: Term) -> bool:
    """Return whether a factor is the larger or smaller of sums, or 1 / a sum, of which each part has a number."""
    if factor.op == "^" and factor.parts[1] == -1:
        return isinstance(factor.parts[0], Term) and factor.parts[0].op == "+" and _has_scale(factor.parts[0])
    return factor.op in ("max", "min") and all(map(_has_scale, factor.parts))


def _rescaled(factor: Term, size: float) -> Term:
    """Return such a factor times a number."""
    if factor.op == "^":
        return Term("^", (_times(factor.parts[0], 1 / size), factor.parts[1]))
    return Term(factor.op, tuple(_times(arm, size) for arm in factor.parts))


def without_ones(term: Term) -> Term:
    """Return a factor in which nothing is multiplied by 1, and nothing that is 0 is added."""
    parts = tuple(without_ones(part) if isinstance(part, Term) else part for part in term.parts)
    if term.op == "+":
        others = [part for part in parts if isinstance(part, Term) and t.number(0) not in part.factors]
        return others[0] if len(others) == 1 else t.total(*others) if others else t.number(0)
    if term.op != "*":
        return Term(term.op, parts)
    others = [part for part in parts if isinstance(part, Term) and part != t.number(1)]
    return t.product(*others) if others else t.number(1)


def _has_scale(arm: Part) -> bool:
    """Return whether each part of a sum has a number before it."""
    assert isinstance(arm, Term)
    parts = arm.parts if arm.op == "+" else (arm,)
    return all(isinstance(part, Term) and any(one.op == "number" for one in part.factors) for part in parts)


def _times(arm: Part, size: float) -> Term:
    assert isinstance(arm, Term)
    parts = arm.parts if arm.op == "+" else (arm,)
    return t.total(*(_scaled(part, size) for part in parts if isinstance(part, Term)))


def _scaled(part: Term, size: float) -> Term:
    numbers = [float(str(one.parts[0])) for one in part.factors if one.op == "number"]
    others = [one for one in part.factors if one.op != "number"]
    return t.product(t.number(size * float(np.prod(numbers))), *others)


def _inner(term: Term) -> Iterator[tuple[int, ...]]:
    """Yield where numbers stand in a factor with which its value changes: not in conditions, nor below a step."""
    for k, part in enumerate(term.parts if term.op in _MOVABLE else ()):
        if isinstance(part, Term) and part.op == "number":
            if part.parts[0] not in (0, 1):
                yield (k,)
        elif isinstance(part, Term) and not is_condition(part):
            yield from ((k, *rest) for rest in _inner(part))


def _number_at(term: Part, path: Sequence[int]) -> float:
    assert isinstance(term, Term)
    return _number_at(term.parts[path[0]], path[1:]) if path else float(str(term.parts[0]))


def _with_number(term: Part, path: Sequence[int], value: float) -> Term:
    assert isinstance(term, Term)
    if not path:
        return t.number(value)
    parts = list(term.parts)
    parts[path[0]] = _with_number(parts[path[0]], path[1:], value)
    return Term(term.op, tuple(parts))


def _short(
    value: Callable[[FloatArray], FloatArray],
    slopes: FloatArray,
    y: FloatArray,
    half_widths: FloatArray,
    numbers: FloatArray,
    agree: BoolArray,
    lost: int,
    known: BoolArray,
    right: Callable[[FloatArray], BoolArray] | None = None,
    steps: int = 0,
) -> FloatArray:
    """Return numbers in few digits with which hardly fewer rows agree than with given ones.

    Parameters
    ----------
    value : callable
        What the rule gives with other numbers.
    slopes : (n, k) array
        How this changes with each number.
    y, half_widths : (n,) arrays
    numbers : (k,) array
    agree : (n,) array of bool
        Rows by which the numbers are solved for.
    lost : int
        Rows that may agree no longer.
    known : (k,) array of bool
        Numbers that stay as they are.
    right : callable, optional
        Which rows agree with what the rule gives; by default those within their half-widths.
    steps : int
        In which all numbers are solved for before: 0 if they already are.
    """
    w = numbers.astype(np.float64).copy()
    some = np.flatnonzero(agree)
    some = some[:: max(1, len(some) // _MOST_ROWS)]
    if len(some) <= len(w):
        return w
    A = slopes[some] / half_widths[some, None]
    middle = np.zeros(A.shape[1]) if right is None else A.mean(axis=0)  # of steps, only the rows know the middle
    A = A - middle
    sizes = np.sqrt((A**2).mean(axis=0)) + 1e-300

    def n_agree(w: FloatArray) -> int:
        given = value(w)
        return int(np.count_nonzero(np.abs(y - given) <= half_widths if right is None else right(given)))

    def solved(w: FloatArray, free: BoolArray) -> FloatArray:
        w, left = w.copy(), (y[some] - value(w)[some]) / half_widths[some]
        left = left if right is None else left - left.mean()
        if free.any() and np.isfinite(left).all():
            w[free] += np.linalg.lstsq(A[:, free] / sizes[free], left, rcond=1e-12)[0] / sizes[free]
        return w

    fixed = known.copy()
    for _ in range(steps):
        found = solved(w, ~fixed)
        w = found if n_agree(found) >= n_agree(w) else w
    needed, errors = (int(agree.sum()) if right is None else n_agree(w)) - lost, np.full(len(w), np.inf)
    while not fixed.all():
        free = ~fixed
        errors[free] = 3 * coefficient_errors(A[:, free]) + 1e-12 * np.abs(w[free])
        with np.errstate(over="ignore"):  # a number of zero is known least
            relative = errors / np.maximum(np.abs(w), np.finfo(float).tiny)
        j = int(np.argmin(np.where(free, np.nan_to_num(relative, posinf=1e300), np.inf)))
        fixed[j] = True
        for number in near_numbers(float(w[j]), max(4 * errors[j], 1.5 / sizes[j])):
            tried = w.copy()
            tried[j] = number
            tried = solved(tried, ~fixed)
            if n_agree(tried) >= needed:
                w = tried
                break
    for place in np.flatnonzero(~known).tolist():  # once more, where the others are short now
        for number in near_numbers(float(w[place]), max(4 * errors[place], 1.5 / sizes[place])):
            tried = w.copy()
            tried[place] = number
            if n_agree(tried) >= needed:
                w = tried
                break
    return w
