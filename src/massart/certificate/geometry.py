r"""What X alone says about evidence: the pieces, weights and parts of the rows of a certificate.

Radial-isotropic position gives every row the same leverage, which is the best that weights can do (see
:mod:`massart.certificate.support`). Heavy subspaces have no such position, so that there are *pieces*, in the order of
:func:`massart.isotropy.decompose`; and rare columns are set aside in *parts*. All is found on some of the rows and
applied to any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.certificate.span import GOLDEN, RANK
from massart.certificate.wide import WideRows, wide_rows
from massart.isotropy import decompose
from massart.rows import FloatArray, check_matrix, check_weights, nonzero_counts, row_blocks

IntArray = NDArray[np.intp]

INSIDE = 1e-12
"""Rows this near to a subspace (columns brought to size 1, relative to the row) lie in it."""

_SAMPLE = 5_000  # rows that the transform is found on
_SIZED = 1_000  # rows that tell the size of columns
_REFINED = 10_000  # rows of the last steps towards isotropy
_MOST_STEPS = 20
_WORTH_A_STEP = 0.995  # ... which must bring L down by so much
_MOST_PARTS = 6
_RARE = 0.5  # columns that are non-zero in a larger share of the rows are never left out
_SAFE = 900  # exponents of two that leave room for squares of ratios


@dataclass(frozen=True, slots=True)
class Piece:
    """A subspace V_j, and where its rows lie: z = basis' x in columns of size 1, weighed by c = 1 / |z|^2.

    Attributes
    ----------
    exponents : (d,) array of int
        Columns are divided by these powers of two.
    subspace : (d, k) array
        Orthonormal.
    basis : (d, k) array
    """

    exponents: IntArray
    subspace: FloatArray
    basis: FloatArray

    def images(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z / |z| (zero for z = 0) and |z| in the caller's units, for each row."""
        scaled, powers = scaled_rows(rows, self.exponents)
        z = scaled @ self.basis
        lengths = np.sqrt(squared_lengths(z))
        z /= np.where(lengths > 0, lengths, 1.0)[:, None]
        if powers is not None:
            with np.errstate(over="ignore", under="ignore"):
                lengths = np.ldexp(lengths, powers)
        return z, lengths


@dataclass(frozen=True, slots=True)
class Part:
    """A set of columns: the pieces of the rows that are zero in the columns left out."""

    left_out: IntArray
    pieces: tuple[Piece, ...]

    def members(self, X: FloatArray, index: IntArray) -> IntArray:
        """Return the piece that each of the chosen rows belongs to, -1 for rows that say nothing.

        That is the last piece on which the row's projection is not zero.
        """
        subspaces = np.hstack([piece.subspace for piece in self.pieces])
        starts = np.cumsum([0, *(piece.subspace.shape[1] for piece in self.pieces[:-1])])
        found = np.full(index.size, -1)
        for block, rows in blocks(X, index):
            belongs = rows.any(axis=1) & ~rows[:, self.left_out].any(axis=1)
            if starts.size <= 1:
                found[block] = np.where(belongs, 0, -1)
                continue
            scaled = scaled_rows(rows, self.pieces[0].exponents)[0]
            squares = np.add.reduceat((scaled @ subspaces) ** 2, starts, axis=1)
            present = squares > INSIDE**2 * squared_lengths(scaled)[:, None]
            last = present.shape[1] - 1 - np.argmax(present[:, ::-1], axis=1)
            found[block] = np.where(belongs & present.any(axis=1), last, -1)
        return found


@dataclass(frozen=True, slots=True)
class Geometry:
    """What X alone says, fixed before any label is looked at.

    Attributes
    ----------
    exponents : (d,) array of int
        Columns divided by these powers of two have a typical size of about 1.
    sizes : (d,) array
        Typical sizes of the columns: medians of their non-zero entries, without sign.
    parts : tuple of Part
        The whole table first. The pieces of a part span all of its columns, so that no row is overlooked.
    sample_weight : (n,) array or None
        With units of several sizes, divided by the number of rows in the unit.
    units : (n,) array of int or None
        Numbers of the units from 0. With weights or units the geometry is only for the rows it was made from.
    wide : WideRows or None
        Those rows, where many columns make it worth to keep their sums.
    """

    exponents: IntArray
    sizes: FloatArray
    parts: tuple[Part, ...]
    sample_weight: FloatArray | None = None
    units: IntArray | None = None
    wide: WideRows | None = None


def geometry_of(
    X: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    units: NDArray[np.integer[Any]] | None = None,
    there: Any = None,
) -> Geometry:
    """Return pieces, weights and parts for the rows of a certificate, from X alone.

    Parameters
    ----------
    X : (n, d) array
    sample_weight : (n,) array, optional
        Must depend on X only. Rows of weight 0 say nothing; unequal weights make L larger.
    units : (n,) array of int, optional
        Rows of one unit are wrong together.
    there : (n, d) array, optional
        X on a device, where sums of many columns are quicker.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.column_stack([np.ones(200), np.arange(200)])
    >>> [[piece.subspace.shape[1] for piece in part.pieces] for part in geometry_of(X).parts]
    [[2]]
    """
    X = check_matrix(X)
    weights, numbers = check_weights(sample_weight, len(X)), None
    if units is not None:
        numbers, counts = _numbered(np.asarray(units), len(X))
        if counts.min() < counts.max():  # clusters weigh the same, whatever their size
            weights = 1.0 / counts[numbers] if weights is None else weights / counts[numbers]
    rows = np.flatnonzero(X.any(axis=1) if weights is None else X.any(axis=1) & (weights > 0))
    exponents, sizes = _column_sizes(X, rows)
    all_left_out = list(_left_out(X, rows))
    if len(all_left_out) == 1 and weights is None and numbers is None and len(rows) == len(X):
        wide = wide_rows(X, exponents, there)
        if wide is not None:
            whole = Piece(exponents, np.eye(X.shape[1]), wide.basis)
            return Geometry(exponents, sizes, (Part(all_left_out[0], (whole,)),), wide=wide)
    parts: list[Part] = []
    for left_out in all_left_out:
        inside = rows[~np.asarray(X[:, left_out].any(axis=1))[rows]] if left_out.size else rows
        if parts and not inside.size:
            break
        parts.append(_part(X, exponents, left_out, inside, weights))
    return Geometry(exponents, sizes, tuple(parts), weights, numbers)


def _numbered(units: NDArray[Any], n: int) -> tuple[IntArray, IntArray]:
    """Return the number of each row's unit, from 0, and how many rows each unit has."""
    if units.shape != (n,) or units.dtype.kind not in "iu":
        raise ValueError(f"units must be {n} integers, got {units.dtype} of shape {units.shape}")
    _, numbers, counts = np.unique(units, return_inverse=True, return_counts=True)
    return numbers, counts


def _left_out(X: FloatArray, rows: IntArray) -> Iterator[IntArray]:
    """Yield the columns that each part leaves out: none, then those up to a growing number of non-zero rows."""
    yield np.arange(0)
    counts = nonzero_counts(X if len(rows) == len(X) else X[rows])
    rare = counts[(counts > 0) & (counts <= _RARE * len(rows))]
    last = 0
    for edge in np.geomspace(rare.min(), rare.max(), _MOST_PARTS - 1) if rare.size else ():
        left_out = np.flatnonzero(counts <= edge * (1 + 1e-9))
        if last < left_out.size < X.shape[1]:
            yield left_out
        last = max(last, left_out.size)


def _part(X: FloatArray, exponents: IntArray, left_out: IntArray, rows: IntArray, weights: FloatArray | None) -> Part:
    """Decompose a sample of the rows, then what is left of the others, until all rows lie in the pieces."""
    ambient = np.delete(np.eye(X.shape[1]), left_out, axis=1)
    pieces: list[Piece] = []
    left = rows
    while left.size:
        sample = _spread_out(left, _SAMPLE)
        scaled = scaled_rows(X[sample], exponents)[0]
        projected = scaled @ ambient
        projected[np.abs(projected) <= INSIDE * np.linalg.norm(scaled, axis=1)[:, None]] = 0
        if not projected.any():
            break
        found = decompose(projected, sample_weight=None if weights is None else weights[sample])
        for piece in found:
            V = ambient @ piece.subspace
            pieces.append(Piece(exponents, V, V @ piece.matrix.T))
        V = np.hstack([piece.subspace for piece in found])
        ambient = ambient @ np.linalg.qr(V, mode="complete")[0][:, V.shape[1] :]
        if not ambient.shape[1]:
            break
        complement = Part(left_out, (*pieces, Piece(exponents, ambient, ambient)))
        left = left[complement.members(X, left) == len(pieces)]
    if ambient.shape[1]:
        pieces.append(Piece(exponents, ambient, ambient))
    members = Part(left_out, tuple(pieces)).members(X, rows)
    return Part(left_out, tuple(_refined(X, piece, rows[members == j], weights) for j, piece in enumerate(pieces)))


def _refined(X: FloatArray, piece: Piece, rows: IntArray, weights: FloatArray | None) -> Piece:
    """Take a few of Tyler's steps towards radial isotropy and keep the weights with the smallest L."""
    k = piece.subspace.shape[1]
    if k == 1 or rows.size <= k:
        return piece
    sample = _spread_out(rows, _REFINED)
    shares = np.ones(len(sample)) if weights is None else weights[sample]
    basis = best = piece.basis
    u = piece.images(X[sample])[0]
    least = np.inf
    for _ in range(_MOST_STEPS):
        M = u.T @ (u * shares[:, None])
        root = inverse_root(M) * np.sqrt(np.trace(M) / k)
        if root.shape[1] < k:
            break
        u = u @ root
        squares = squared_lengths(u)
        largest = float((shares * squares).max())  # L in units of k / n, but for a factor
        if largest >= least * _WORTH_A_STEP:
            break
        best, least = basis, largest
        u /= np.sqrt(squares)[:, None]
        basis = basis @ root
    return replace(piece, basis=best)


def _column_sizes(X: FloatArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
    """Return exponents and typical sizes of the columns.

    Exponents are medians over the non-zero entries of rows that are brought to size 1: scaling rows changes nothing,
    and one huge entry does not make the others of its column look like zeros.
    """
    d = X.shape[1]
    exponents, sizes = np.zeros(d, dtype=np.intp), np.ones(d)
    sample = X[_spread_out(rows, _SIZED)]
    for j in np.flatnonzero(~sample.any(axis=0)) if len(sample) < len(rows) else ():
        sample = np.vstack([sample, X[_spread_out(rows[X[rows, j] != 0], 64)]])
    filled = np.flatnonzero(sample.any(axis=0))
    if not filled.size:
        return exponents, sizes
    entries = np.abs(sample[:, filled])
    entries = np.where(entries > 0, entries, np.inf)
    logs = np.where(entries < np.inf, np.frexp(entries)[1], np.inf)
    middle = (np.isfinite(logs).sum(axis=0) - 1) // 2, np.arange(filled.size)
    sizes[filled] = np.sort(entries, axis=0)[middle]
    columns = np.zeros(filled.size)
    for _ in range(2):
        largest = np.where(np.isfinite(logs), logs - columns, -np.inf).max(axis=1)
        columns = np.sort(logs - largest[:, None], axis=0)[middle]
    columns -= round((columns.max() + columns.min()) / 2)  # a common factor is a factor of the rows
    exponents[filled] = np.clip(columns, -_SAFE, _SAFE).astype(np.intp)
    return exponents, sizes


def scaled_rows(rows: FloatArray, exponents: IntArray) -> tuple[FloatArray, IntArray | None]:
    """Return rows with columns of size 1 and, where squares would overflow or vanish, the powers of two taken out."""
    with np.errstate(over="ignore", under="ignore"):
        scaled = rows * np.ldexp(1.0, -exponents)
        squares = squared_lengths(scaled)
    odd = np.flatnonzero(~((squares > 1e-200) & (squares < 1e200)))
    odd = odd[rows[odd].any(axis=1)]
    if not odd.size:
        return scaled, None
    powers = np.zeros(len(rows), dtype=np.intp)
    fractions, logs = np.frexp(rows[odd])
    logs = np.where(fractions != 0, logs - exponents, -(1 << 20))
    powers[odd] = logs.max(axis=1)
    scaled[odd] = np.ldexp(fractions, logs - powers[odd, None])
    return scaled, powers


def inverse_root(M: FloatArray) -> FloatArray:
    """Return the columns of M^(-1/2) on its range, (k, r); eigenvalues that may be rounding are not in it."""
    values, axes = np.linalg.eigh(M)
    kept = values > RANK * values[-1]
    return np.asarray(axes[:, kept] / np.sqrt(values[kept]))


def _spread_out(index: IntArray, size: int) -> IntArray:
    """Return about `size` members of `index`, evenly spread but not periodic; all if there are not more."""
    if index.size <= size:
        return index
    return index[(np.arange(index.size) * GOLDEN) % 1.0 < size / index.size]


def squared_lengths(rows: FloatArray) -> FloatArray:
    """Return the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def blocks(X: FloatArray, index: IntArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the chosen rows in blocks, each with its place among them."""
    for block in row_blocks(index.size, X.shape[1]):
        yield block, X[block] if index.size == len(X) else X[index[block]]
