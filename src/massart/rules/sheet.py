"""Some rows of a table on which rules are tried: L1 regression near radially isotropic position, in milliseconds.

Values of terms are kept, and rows that agree are counted beside those that would by chance. Nothing is proven here:
what is found is recovered again on all rows, and judged (:mod:`massart.recover`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from massart.agreement import Level, levels
from massart.l1 import l1_regression
from massart.rows import BoolArray, FloatArray
from massart.rules.columns import Columns
from massart.rules.terms import Term

NEAR = 0.98
"""Half-widths within which a row agrees: less than one, so that no formula between two others has the rows of both."""

LIKELY = 1e-4
"""How improbable it has to be that given rows speak for one rule against another by chance."""

_FEWEST = 4  # rows in which a term is not zero
_DEPENDENT = 1e-8
_LARGEST = 1e100
_ARITHMETIC = 1e-10  # relative: what floats lose in the products of a proposal
_SHELL = 3.0
_TYLER_STEPS = 3  # towards radially isotropic position
_CONCAVE_STEPS, _POWER = 12, 0.7
_POLISH = (4.0, 2.0, 1.2, 1.1)  # half-widths within which rows are fitted again
_RANK, _TINY = 1e-12, 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A rule that was tried."""

    terms: tuple[Term, ...]  # independent on the rows of the sheet; the constant is not among them
    coef: FloatArray  # (d,), that of the constant last
    agree: BoolArray  # (n,), rows of the sheet that agree
    net: float  # how many they are beyond what chance and so many coefficients explain


@dataclass(slots=True, eq=False)
class Sheet:
    """Rows and labels."""

    columns: Columns  # of all rows of the table
    rows: NDArray[np.intp]  # (n,), the rows that are looked at
    y: FloatArray  # (n,), their labels
    half_width: float  # of the interval that a label stands for
    labels: FloatArray | None = None  # (N,), of all rows of the table
    widths: FloatArray | None = None  # (n,), the same for each row, where labels are transformed
    _some: Columns = field(init=False, repr=False)
    _values: dict[Term, FloatArray] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._some = self.columns.take(self.rows)

    def values(self, term: Term) -> FloatArray:
        """Return the values of a term in these rows."""
        if term not in self._values:
            whole = term.needs_order
            self._values[term] = term.evaluate(self.columns)[self.rows] if whole else term.evaluate(self._some)
        return self._values[term]

    def matrix(self, terms: Sequence[Term]) -> FloatArray:
        """Return the values of terms, and the constant, as columns."""
        return np.column_stack([*map(self.values, terms), np.ones(len(self.rows))])

    def independent(self, terms: Sequence[Term], part: BoolArray | None = None) -> tuple[Term, ...]:
        """Return the terms without those that are constant, have no value somewhere, or are sums of earlier ones."""
        distinct = [term for term in dict.fromkeys(terms) if self._is_usable(self.values(term), part)]
        places = np.arange(len(distinct))
        X = self.matrix(distinct)[:, [-1, *places]]
        X = X if part is None else X[part]
        for _ in range(3):  # what depends on a column that goes is looked at again
            X, places = X[:, : len(X)], places[: len(X) - 1]
            norms = np.maximum(np.linalg.norm(X, axis=0), 1e-300)
            keep = np.abs(np.diag(np.linalg.qr(X / norms, mode="r"))) > _DEPENDENT
            if keep[1:].all():
                break
            keep[0] = True
            X, places = X[:, keep], places[keep[1:]]
        return tuple(distinct[j] for j in places)

    def _is_usable(self, values: FloatArray, part: BoolArray | None) -> bool:
        some = values if part is None else values[part]
        return bool(np.isfinite(some).all() and np.abs(some).max() < _LARGEST and np.count_nonzero(some) >= _FEWEST)

    def half_widths(self) -> FloatArray:
        """Return the half-width of each label, floats included."""
        widths = self.half_width + _ARITHMETIC * np.abs(self.y) if self.widths is None else self.widths
        return np.maximum(widths, _TINY)

    def fit(self, terms: Sequence[Term], part: BoolArray | None = None) -> Fit | None:
        """Return the rule in these terms that many rows follow, found on a part of the rows and counted there.

        None where there are too few rows for so many terms.
        """
        chosen = np.ones(len(self.rows), dtype=bool) if part is None else part
        if not chosen.any():
            return None
        kept = self.independent(terms, part)
        X, widths = self.matrix(kept), self.half_widths()
        if chosen.sum() < 2 * X.shape[1]:
            return None
        with np.errstate(all="ignore"):  # numbers near the end of what floats hold have no quick answer
            try:
                found = [_polished(X, self.y, widths, w, chosen) for w in _proposals(X, self.y, chosen)]
            except (np.linalg.LinAlgError, ValueError):
                return None
        fits = [self.counted(kept, w, chosen) for w in found if np.isfinite(w).all()]
        return max(fits, key=lambda fit: fit.net, default=None)

    def agrees(self, fit: Fit, rows: NDArray[np.intp]) -> BoolArray:
        """Return which rows of the whole table agree with a rule whose coefficients are not exact numbers yet."""
        assert self.labels is not None
        there = Sheet(self.columns, rows, self.labels[rows], 2 * self.half_width)
        return there.counted(fit.terms, fit.coef, np.ones(len(rows), dtype=bool)).agree

    def shortened(self, fit: Fit, part: BoolArray) -> Fit:
        """Return the rule without the terms that hardly a row of a part needs."""
        terms, coef = list(fit.terms), fit.coef
        best = fit
        sizes = [np.abs(c) * np.abs(self.values(one)[part]).max() for one, c in zip(terms, coef, strict=False)]
        order = np.argsort(sizes)
        for term in [terms[j] for j in order]:
            others = tuple(one for one in best.terms if one != term)
            chosen = part & best.agree
            without = chosen & (self.values(term) == 0)  # where it says nothing the other terms stand by themselves
            if np.count_nonzero(without) > 3 * len(best.coef):
                chosen = without
            found = self.refitted(others, chosen, part)
            if found.net >= best.net or not is_clear(best, found, part):
                best = found
        return best

    def refitted(self, terms: tuple[Term, ...], chosen: BoolArray, part: BoolArray | None = None) -> Fit:
        """Return the least squares of some rows, counted on a part."""
        X = self.matrix(terms)
        w = _least_squares(X[chosen], self.y[chosen]) if chosen.any() else np.zeros(X.shape[1])
        return self.counted(terms, w, chosen if part is None else part)

    def counted(self, terms: tuple[Term, ...], coef: FloatArray, part: BoolArray) -> Fit:
        """Return a rule with the rows that agree with it; what counts is those of a part."""
        with np.errstate(all="ignore"):
            off = np.abs(self.y - self.matrix(terms) @ coef) / self.half_widths()
        agree = off <= NEAR
        chance = np.count_nonzero(part & (off > NEAR) & (off <= NEAR * _SHELL)) / 2
        return Fit(terms, coef, agree, np.count_nonzero(agree & part) - chance - len(coef))


def is_clear(own: Fit, other: Fit, part: BoolArray, chance: float = LIKELY) -> bool:
    """Tell whether a part of the rows speaks for its own rule against another one, and not by chance.

    A wrong value that many rows share is a rule, too, and somewhere it has more rows than the right one.
    """
    for_it = int(np.count_nonzero(part & own.agree & ~other.agree))
    against = int(np.count_nonzero(part & other.agree & ~own.agree))
    return bool(bdtr(against, for_it + against, 0.5) < chance)


def _proposals(X: FloatArray, y: FloatArray, chosen: BoolArray) -> Iterator[FloatArray]:
    """Yield what L1 regression says of unit rows, and where a concave power of the residuals leads from there."""
    X, y = X[chosen], y[chosen]
    n, d = X.shape
    scale = np.maximum(np.sqrt((X * X).mean(axis=0)), _TINY)
    Q, R = np.linalg.qr(X / scale)
    for _ in range(_TYLER_STEPS):
        squares = np.maximum(np.einsum("ij,ij->i", Q, Q), _TINY)
        values, vectors = np.linalg.eigh((Q / squares[:, None]).T @ Q * (d / n))
        step = (vectors / np.sqrt(np.maximum(values, 1e-6))) @ vectors.T
        Q, R = Q @ step, np.linalg.solve(step, R)
    lengths = np.maximum(np.linalg.norm(Q, axis=1), _TINY)
    Z, labels = Q / lengths[:, None], y / lengths
    b = l1_regression(Z, labels).coef
    yield np.linalg.lstsq(R, b, rcond=_RANK)[0] / scale
    smallest = 1e-14 * float(np.median(np.abs(labels))) + _TINY
    for _ in range(_CONCAVE_STEPS):
        residuals = labels - Z @ b
        eps = max(float(np.median(np.abs(residuals))), smallest)
        weights = (1 + (residuals / eps) ** 2) ** (_POWER / 2 - 1)
        weighted = Z * weights[:, None]
        gram = Z.T @ weighted
        gram[np.diag_indices(d)] += 1e-13 * np.trace(gram) / d
        b = np.linalg.solve(gram, weighted.T @ labels)
    yield np.linalg.lstsq(R, b, rcond=_RANK)[0] / scale


def _polished(X: FloatArray, y: FloatArray, half_widths: FloatArray, w: FloatArray, chosen: BoolArray) -> FloatArray:
    """Fit the rows that nearly agree, again and again."""
    for widths in _POLISH:
        near = chosen & (np.abs(y - X @ w) <= widths * half_widths)
        if near.sum() <= X.shape[1]:
            break
        w = _least_squares(X[near], y[near])
    return w


def _least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    scale = np.abs(X).max(axis=0)
    scale[scale == 0] = 1.0
    return np.asarray(np.linalg.lstsq(X / scale, y, rcond=_RANK)[0] / scale)


def label_half_width(X: FloatArray, y: FloatArray, tolerance: float | Literal["auto"]) -> float:
    """Return half of the unit to which labels may have been rounded, or the tolerance that was given."""
    if tolerance != "auto":
        return float(tolerance)
    rounded = [level.label for level in levels("auto", X, y) if level.level is Level.LABEL]
    return rounded[0] if rounded else 0.0
