r"""What the rows say of a formula :math:`y = f(w \cdot x)`: marks for each row, and the verdict from their counts.

Zero fits all inactive rows of any ReLU table, so a majority of all rows alone says little. But a row that is active for
a wrong w agrees with it only where its label is wrong, which happens with a probability below one half. So MAJORITY
takes, besides more than half of all rows, more than half of the active ones at every level of their decomposition
(where a level without one hides behind the others), by a margin beyond luck and beyond the k rows that any w fits.
Rows with labels that no w explains are wrong for sure and count for no side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart import linear
from massart.certificate import Certificate, Verdict, certify_relu
from massart.exact import Tolerance
from massart.isotropy import RadialIsotropy, decompose
from massart.relu.link import RELU, Link
from massart.rows import BoolArray, FloatArray
from massart.search import is_clear_majority

Marks: TypeAlias = NDArray[np.integer]

FINE, INSIDE = 0.1, 1e-9
"""The gamma with which subspaces are looked for, and the relative distance at which a row lies in one."""

CONVINCING = 2.5
"""Standard deviations of a fair coin by which a majority of the active rows must exceed one half to be claimed."""

AGREES, ACTIVE, DECISIVE, IMPOSSIBLE, MARKS = 1, 2, 4, 8, 16
"""What a row is marked with, and the number of combinations."""


def mark(y: FloatArray, products: FloatArray, agree: BoolArray, tolerance: Tolerance, link: Link = RELU) -> Marks:
    """Return for each row whether it agrees, is active for w (products w.x), is decisive, is impossible: bits."""
    slack = tolerance.absolute
    marks = agree * np.uint8(AGREES)
    marks |= link.decisive(products) * np.uint8(ACTIVE)
    marks |= link.decisive(y, slack) * np.uint8(DECISIVE)
    marks |= link.impossible(y, slack) * np.uint8(IMPOSSIBLE)
    return np.asarray(marks)


def tally(marks: Marks, weights: FloatArray | None) -> FloatArray:
    """Return the weight of the rows with each combination of marks."""
    return np.bincount(marks, weights, MARKS).astype(np.float64)


def has_majority(tally: FloatArray) -> bool:
    """Tell whether more than half of all rows agree, and more than half of those that are active."""
    kinds = np.arange(MARKS)
    met = speaks(kinds)
    right = kinds & AGREES > 0
    return bool(2 * tally[right].sum() > tally.sum() and 2 * tally[met & right].sum() > tally[met].sum())


def certify_rows(
    X: FloatArray,
    weights: FloatArray | None,
    marks: Marks,
    tally: FloatArray,
    tolerance: Tolerance,
    pieces: Sequence[RadialIsotropy],
    rng: np.random.Generator,
    column_names: Sequence[str] | None = None,
    *,
    link: Link = RELU,
) -> Certificate:
    """Return the certificate of rows in memory, or of a table of which they are a sample.

    Parameters
    ----------
    marks : (n,) array
        Of the rows, see :func:`mark`.
    tally : (16,) array
        The weight of all rows of the table by their marks.
    """
    agree = (marks & AGREES) > 0
    kinds = np.arange(MARKS)
    if link.invertible:
        return linear.certify_rows(
            X,
            weights,
            agree,
            tolerance,
            pieces,
            rng,
            column_names,
            n_rows=tally.sum(),
            n_agree=tally[kinds & AGREES > 0].sum(),
        )
    decided = agree & (marks & DECISIVE > 0)
    possible = kinds & IMPOSSIBLE == 0
    decisive = possible & (kinds & DECISIVE > 0)
    right = kinds & AGREES > 0
    met = speaks(kinds)
    certificate = certify_relu(
        X[decided],
        n_pos=tally[decisive].sum(),
        a_pos=tally[decisive & right].sum(),
        n_zero=tally[possible & ~decisive].sum(),
        a_zero=tally[possible & ~decisive & right].sum(),
        n_active=tally[met].sum(),
        sample_weight=None if weights is None else weights[decided],
        rng=rng,
        tolerance=tolerance.absolute,
        budget=linear.CERTIFICATE_BUDGET,
        column_names=column_names,
    )
    interpolates = certificate.n_decisive <= certificate.rank  # then nothing confirms the formula
    if interpolates or (certificate.determined is Verdict.MAJORITY and not _is_confirmed(X, weights, marks, tally)):
        verdict = certificate.verdict if certificate.verdict is Verdict.UNIDENTIFIABLE else Verdict.PLURALITY
        certificate = replace(certificate, verdict=verdict, determined=Verdict.PLURALITY)
    return certificate


def speaks(marks: Marks) -> BoolArray:
    """Return the rows that speak for w or against it: active ones, but for possible limits that agree anyway."""
    neutral = (marks & AGREES > 0) & (marks & DECISIVE == 0)
    return np.asarray((marks & ACTIVE > 0) & (marks & IMPOSSIBLE == 0) & ~neutral)


def _is_confirmed(X: FloatArray, weights: FloatArray | None, marks: Marks, tally: FloatArray) -> bool:
    """Tell whether the active rows have a clear majority: all of them, on every level, and in each column."""
    kinds = np.arange(MARKS)
    active = speaks(kinds)
    n_right, n_met = float(tally[active & (kinds & AGREES > 0)].sum()), float(tally[active].sum())
    met = speaks(marks)
    right = (marks[met] & AGREES) > 0
    rows = X[met]
    counts = np.ones(len(rows)) if weights is None else weights[met]
    if not (has_majority(tally) and right.any() and linear.has_column_majorities(rows, right, counts)):
        return False
    levels = _levels(rows, right, counts)
    if len(levels) == 1:  # the table's own count is that of the level
        return _is_convincing(n_right, n_met, levels[0][1])
    return _is_convincing(n_right, n_met, sum(k for _, k in levels)) and all(
        _is_convincing(float(counts[inside & right].sum()), float(counts[inside].sum()), k) for inside, k in levels
    )


def _levels(X: FloatArray, right: BoolArray, counts: FloatArray) -> list[tuple[BoolArray, int]]:
    """Return the rows of each level, and its dimension, in the decomposition of the rows that are right.

    Where w is right on a subspace only, the rows that agree lie there, and show it; all rows together may hide it.
    """
    sizes = np.abs(X).max(axis=0)
    rows = X / np.where(sizes > 0, sizes, 1.0)
    lengths = np.linalg.norm(rows, axis=1)
    reached = np.zeros((X.shape[1], 0))
    left = np.ones(len(rows), dtype=bool)
    levels = []
    for piece in decompose(rows[right], FINE, sample_weight=counts[right]):
        reached = np.hstack([reached, piece.subspace])
        beyond = np.linalg.norm(rows - (rows @ reached) @ reached.T, axis=1)
        inside = left & (beyond <= INSIDE * lengths)
        levels.append((inside, piece.subspace.shape[1]))
        left &= ~inside
    return [*levels, (left, 0)] if left.any() else levels


def _is_convincing(right: float, met: float, k: int) -> bool:
    """Tell whether the majority is clear among the rows beyond the k that any w fits."""
    return is_clear_majority(right - k, met - k, CONVINCING)
