"""What a formula gives for the rows of a table, written as the table writes its numbers: 7.14, not 7.140000000000001.

A formula in short decimals over columns of short decimals has a known number of places, to which what floats compute is
rounded; then it is exact. Labels that were rounded, to cents say, imply rounded values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from massart.audit.model_file import SavedModel
from massart.report import Notice
from massart.rows import (
    EDGE,
    EPS,
    LONG,
    Agreement,
    ArrayRows,
    BoolArray,
    FloatArray,
    Level,
    Mark,
    Marks,
    count_decimals,
)
from massart.rules import Columns, Formula, Matrix, Term, TermMatrix, column, level
from massart.tables import Design, Encoding, Gap, Table, TableError, column_values, encode

_MOST_PLACES = 12  # after the point, beyond which a float is as good as exact
_LOOKED_AT = 2_000  # rows, before all are, for a number with too many places
_FLOAT_DIGITS = 14  # that a difference of two floats has
_SMALLEST_SIZE = 1e-280  # whose logarithm is finite
_OPEN = 1e-9  # of the length of a row


def with_target(design: Design, target: str) -> Columns:
    """Return the columns with the target among them: a lag may look at it."""
    return replace(design.columns, numbers={**design.columns.numbers, target: design.labels})


def with_values(design: Design, matrix: TermMatrix) -> tuple[Design, TermMatrix]:
    """Leave out rows before which there is none, if a term looks back."""
    there = matrix.has_values()
    if there.all():
        return design, matrix
    kept = np.flatnonzero(there)
    notice = Notice("first rows", n=len(there) - len(kept))
    return design.take(kept, remarks=(*design.remarks, notice)), matrix.take(kept)


def rows_with_values(X: TermMatrix, gaps: Mapping[Gap, int]) -> tuple[NDArray[np.intp], dict[Gap, int]]:
    """Return the rows in which every term has a finite value, and why others are left out: a quotient by 0, say."""
    there, found = np.ones(len(X), dtype=bool), dict(gaps)
    for j, term in enumerate(X.terms):
        lacking = there & ~np.isfinite(X[:, j])
        if lacking.any():
            found[Gap(str(term), "no", "")] = int(np.count_nonzero(lacking))
            there &= ~lacking
    return np.flatnonzero(there), found


def plain_terms(encoding: Encoding) -> tuple[Term, ...]:
    """Return the columns of an encoding as terms: what X of its designs has."""
    return tuple(column(name) if value is None else level(name, value) for name, value in encoding.terms)


def columns_read(formula: Formula) -> set[str]:
    """Return the columns that the terms of a formula read which count."""
    return {name for term in formula.terms if term.coef and term.term for name in term.term.columns()}


def check_order(design: Design, terms: Sequence[Term]) -> None:
    """Raise TableError if a term looks at other rows, and rows were left out."""
    ordered = next((term for term in terms if term.needs_order), None)
    if ordered is not None and not design.columns.ordered:
        raise TableError(f"the term {ordered} needs the whole table in memory: raise --max-memory")
    if ordered is not None and len(design.kept) < design.n_total:
        row = int(np.setdiff1d(np.arange(design.n_total), design.kept)[0])
        raise TableError(f"the term {ordered} needs every row of the table, but row {row + 1:,} lacks a value")


def implied_by(
    model: SavedModel, table: Table, *, is_part: bool = False
) -> tuple[np.ma.MaskedArray[tuple[int], np.dtype[np.float64]], int, Design]:
    """Return what a saved formula gives for all rows of a table, masked where it gives nothing.

    Also the number of rows for which a term has no value, and the rows as numbers: they need no target, but for a term
    that looks back at it.
    """
    formula, target = model.formula, model.encoding.target
    design = encode(table, model.encoding, with_target=False, is_part=is_part)
    terms = [term.term for term in formula.terms if term.term is not None]
    check_order(design, terms)
    columns = design.columns if model.encoding.inputs else Columns({"": np.zeros(len(design.kept))})  # a constant
    if any(target.column in term.columns() for term in terms):
        given = column_values(table, target)[design.kept]
        columns = replace(columns, numbers={**columns.numbers, target.column: given})
    X = TermMatrix(columns, terms)
    complete, _ = rows_with_values(X, {})
    n_without, X = len(X) - len(complete), X.take(complete)
    implied = np.ma.MaskedArray(np.zeros(table.n_rows), mask=True)
    implied[design.kept[complete]] = implied_values(X, formula, places_of(X, formula, model.agreement))
    if not np.isfinite(implied.compressed()).all():
        raise TableError(f"{table.name}: {ArrayRows(X, np.zeros(len(X)), intercept=False).fault()}")
    return implied, n_without, design


def places_of(X: Matrix, formula: Formula, agreement: Agreement) -> int | None:
    """Return the places after the point that the formula needs on these rows; None if there is none."""
    if agreement.places is not None:
        return agreement.places
    if formula.noisy and agreement.label > 0:  # digits far below the noise say nothing
        return min(max(2 - math.floor(math.log10(agreement.label)), 0), _MOST_PLACES)
    of_coefs = count_decimals(formula.coef)
    places = 0
    for j in np.flatnonzero(formula.coef):
        places = max(places, int(of_coefs[j]) + (_column_places(X[:, j]) if j < X.shape[1] else 0))
        if places > _MOST_PLACES:
            return None
    return places


@np.errstate(over="ignore", invalid="ignore")
def implied_values(
    X: Matrix, formula: Formula, places: int | None, index: slice | NDArray[np.intp] = slice(None)
) -> FloatArray:
    """Return what the formula gives for some rows, rounded where it is known to how many places.

    Sums are made term by term: the last digit of a product of matrices depends on their size, and with it how half a
    unit is rounded.
    """
    total = np.zeros(len(X))[index]
    for place, term in enumerate(formula.all_terms):
        if term.coef:
            total += term.coef * X[:, place][index] if term.term is not None else term.coef
    values = formula.link(total)
    if places is None:
        return values
    rounded = np.round(values, places) + 0.0  # no negative zero
    return np.where(np.isfinite(rounded), rounded, values)  # near the end of floats there is nothing to round


def ways_to_round(
    X: Matrix, formula: Formula, places: int | None, given: FloatArray, right: NDArray[np.intp]
) -> tuple[int, ...]:
    """Return how programs round half a unit that agree with the `right` rows, some of which are such halves.

    They round up, down, to the even neighbour, away from 0 or towards it; without any half this is unknown.
    """
    halves, below = _halves(X, formula, places, right)
    if places is None or not len(halves):
        return ()
    known = np.round(given[right[halves]] * 10.0**places)
    return tuple(k for k, way in enumerate(_WAYS) if (way(below) == known).all())


def settle_ties(
    X: Matrix,
    formula: Formula,
    places: int | None,
    index: NDArray[np.intp],
    ways: tuple[int, ...],
    loose: float = 0.0,
) -> tuple[FloatArray, BoolArray]:
    """Return what is implied for some rows, halves rounded in one of these ways, and where these do not settle it.

    Neither is it settled where a value that is off by as much as is `loose` is rounded to another one.
    """
    values, unsettled = implied_values(X, formula, places, index), np.zeros(len(index), dtype=bool)
    if loose:
        exact = implied_values(X, formula, None, index)
        ends = [exact + sign * loose if places is None else np.round(exact + sign * loose, places) for sign in (-1, 1)]
        unsettled = ends[0] != ends[1]
    tie, below = _halves(X, formula, places, index)
    if places is None or not len(tie):
        return values, unsettled
    rounded = [_WAYS[k](below) for k in ways]
    unsettled[tie] |= np.any([way != rounded[0] for way in rounded], axis=0) if rounded else True
    if rounded:
        values[tie] = np.round(rounded[0] / 10.0**places, places) + 0.0
    return values, unsettled


def loose_of(formula: Formula, agreement: Agreement) -> float:
    """Return how far what a formula gives may move while its columns move within their rounding."""
    return agreement.slack(formula.coef) - agreement.label if agreement.level is Level.INPUTS else 0.0


def _halves(
    X: Matrix, formula: Formula, places: int | None, rows: NDArray[np.intp]
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return which of some rows are half a unit, and the unit below."""
    if places is None or not len(rows):
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    scaled = implied_values(X, formula, None, rows) * 10.0**places
    tie = np.flatnonzero(np.abs(scaled - np.floor(scaled) - 0.5) <= EDGE + 2 * EPS * np.abs(scaled))
    return tie, np.floor(scaled[tie])


_WAYS: tuple[Callable[[FloatArray], FloatArray], ...] = (
    lambda below: below + 1,
    lambda below: below,
    lambda below: below + below % 2,
    lambda below: np.where(below >= 0, below + 1, below),
    lambda below: np.where(below >= 0, below, below + 1),
)
"""Half a unit up, down, to the even neighbour, away from 0, towards it: given the unit below."""


def marks_of(name: str, X: Matrix, y: FloatArray, formula: Formula, agreement: Agreement) -> Marks:
    """Return the marks of rows of a table of that name.

    Raises
    ------
    TableError
        Where a product is not finite.
    """
    if not len(y):
        return np.zeros(0, np.uint8)
    rows = ArrayRows(X, y, intercept=formula.intercept is not None)
    try:
        return rows.map(Mark(formula.coef, agreement, formula.link)).to_numpy()
    except FloatingPointError:
        raise TableError(f"{name}: {rows.fault()}") from None


def with_constant(X: FloatArray, d: int) -> FloatArray:
    """Return rows with the constant, if a formula of d coefficients has one."""
    return X if X.shape[1] == d else np.column_stack([X, np.ones(len(X))])


def are_open(X: FloatArray, directions: FloatArray) -> BoolArray:
    """Return which rows have a part in directions of coefficients (columns) that the rows which agree leave open."""
    if not directions.size:
        return np.zeros(len(X), dtype=bool)
    rows = with_constant(X, len(directions))
    found: BoolArray = np.abs(rows @ directions).max(axis=1) > _OPEN * np.linalg.norm(rows, axis=1)
    return found


def residuals(given: FloatArray, implied: FloatArray) -> FloatArray:
    """Return given minus implied without what floats lose in such a difference: 9.37, not 9.370000000000005."""
    size = np.abs(given) + np.abs(implied)
    places = _FLOAT_DIGITS - np.ceil(np.log10(np.maximum(size, _SMALLEST_SIZE))).astype(np.int16)
    found = given - implied
    for count in np.unique(places).tolist():
        chosen = np.flatnonzero(places == count)
        found[chosen] = np.round(found[chosen], count)
    return found + 0.0  # no negative zero


def _column_places(column: FloatArray) -> int:
    some = int(count_decimals(column[:_LOOKED_AT]).max(initial=0))
    return LONG if some == LONG else int(count_decimals(column).max(initial=0))
