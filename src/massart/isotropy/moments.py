r"""One-pass statistics of rows under a linear map: all that the solvers ever ask of the data.

For rows :math:`x_i` with weights :math:`c_i` and a map :math:`T` (``y = T' x``, rows ``X @ T``), with
:math:`u_i = T^\top x_i / |T^\top x_i|`:

.. math::
    M = \sum_i c_i u_i u_i^\top, \qquad
    \ell = \sum_i c_i \log |T^\top x_i|^2, \qquad
    c = \sum_i c_i .

Each function reads `X` once, piece by piece; the results are sums over rows, or a number a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray, like, namespace_of, row_blocks, to_numpy

_ROUNDING_BITS = 40  # float64 has 53; sums and products of a few numbers cost some
_NO_EXPONENT = -100_000  # below the exponent of any ratio of two numbers

PointKernel: TypeAlias = Callable[[Any, Any], Any]
"""Called with some rows in coordinates, an array of any kind, and their weights or None."""


@dataclass(frozen=True, slots=True)
class RadialMoments:
    """Sums over rows; see the module's formulas. Moments of disjoint sets of rows add."""

    second: FloatArray  # M, (k, k)
    weight: float  # c
    log_norm: float = 0.0  # l, where it is of use
    lost: FloatArray | float = 0.0  # what rounding took from M: sums of many small blocks are as good as those of few

    def __add__(self, other: RadialMoments) -> RadialMoments:
        second, lost = two_sum(self.second, other.second)
        lost += self.lost + other.lost
        return RadialMoments(second, self.weight + other.weight, self.log_norm + other.log_norm, lost)

    @property
    def psi(self) -> FloatArray:
        """The matrix (k / c) M, which is the identity in radial-isotropic position (Definition 1.4)."""
        return np.asarray((self.second + self.lost) * (len(self.second) / self.weight))


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rounded sum of two arrays, and what rounding took from it (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def accumulate(
    kernel: PointKernel, X: FloatArray, weights: FloatArray | None = None, rows: BoolArray | None = None
) -> Any:
    """Return the sum of ``kernel(piece, weights)`` over pieces of `X`, or of the rows of a mask."""
    total = None
    for piece in row_blocks(*X.shape):
        chosen = piece if rows is None else np.flatnonzero(rows[piece]) + piece.start
        part = kernel(X[chosen], None if weights is None else weights[chosen])
        total = part if total is None else total + part
    return total


def radial_moments(X: FloatArray, T: FloatArray, weights: FloatArray | None = None) -> RadialMoments:
    """Return the radial moments of the rows of `X` under ``y = T' x``: one pass, ``O(n d k)``.

    Parameters
    ----------
    X : (n, d) array
        Rows, none of which `T` maps to zero.
    T : (d, k) array
    weights : (n,) array, optional
        Row weights; one each by default.
    """
    moments: RadialMoments = accumulate(_Radial(T), X, weights)
    return moments


@dataclass(frozen=True, slots=True)
class _Radial:
    """The kernel of `radial_moments`."""

    T: FloatArray

    def __call__(self, X: Any, weights: Any) -> RadialMoments:
        xp = namespace_of(X)
        Y = X @ like(self.T, X)
        squared = _row_sums_of_squares(Y)
        logs = xp.log(squared)
        if weights is None:
            total, factors = float(X.shape[0]), 1 / squared
        else:
            total, factors, logs = float(xp.sum(weights)), weights / squared, weights * logs
        Y *= xp.sqrt(factors)[:, None]
        return RadialMoments(to_numpy(Y.T @ Y), total, float(xp.sum(logs)))


def whitened_moments(X: FloatArray, T: FloatArray, W: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Return :math:`(k / c) \sum_i c_i (W u_i)(W u_i)^\top` for a symmetric W, (k, k): one pass.

    It is W Psi W, with its smallest eigenvalue as precise as its largest one.
    """
    moments: RadialMoments = accumulate(_Whitened(T, T @ W), X, weights)
    return moments.psi


@dataclass(frozen=True, slots=True)
class _Whitened:
    """The kernel of `whitened_moments`."""

    T: FloatArray
    whitening: FloatArray

    def __call__(self, X: Any, weights: Any) -> RadialMoments:
        xp = namespace_of(X)
        squared = _row_sums_of_squares(X @ like(self.T, X))
        Y = X @ like(self.whitening, X)
        Y *= xp.sqrt((1.0 if weights is None else weights) / squared)[:, None]
        return RadialMoments(to_numpy(Y.T @ Y), float(X.shape[0]) if weights is None else float(xp.sum(weights)))


def fourth_moments(X: FloatArray, T: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Return :math:`K_{ab} = (k / c) \sum_i c_i u_{ia}^2 u_{ib}^2`, (k, k): one pass."""
    moments: RadialMoments = accumulate(_Fourth(T), X, weights)
    return moments.psi


@dataclass(frozen=True, slots=True)
class _Fourth:
    """The kernel of `fourth_moments`: second moments of the squares."""

    T: FloatArray

    def __call__(self, X: Any, weights: Any) -> RadialMoments:
        xp = namespace_of(X)
        Y = X @ like(self.T, X)
        Y *= Y
        Y /= xp.sum(Y, axis=1)[:, None]
        if weights is not None:
            Y *= xp.sqrt(weights)[:, None]
        total = float(X.shape[0]) if weights is None else float(xp.sum(weights))
        return RadialMoments(to_numpy(Y.T @ Y), total)


def distances(X: FloatArray, T: FloatArray, N: FloatArray) -> FloatArray:
    """Return ``|N' u_i|`` for each row: its distance from the orthogonal complement of the columns of `N`."""
    return _values(_Distance(T, T @ N), X)


@dataclass(frozen=True, slots=True)
class _Distance:
    """The kernel of `distances`."""

    T: FloatArray
    outwards: FloatArray

    def __call__(self, X: Any, weights: Any) -> Any:
        away, whole = (_row_sums_of_squares(X @ like(T, X)) for T in (self.outwards, self.T))
        return namespace_of(X).sqrt(away / whole)


def _row_sums_of_squares(Y: Any) -> Any:
    return np.einsum("ij,ij->i", Y, Y) if isinstance(Y, np.ndarray) else namespace_of(Y).sum(Y * Y, axis=1)


def vanishing(X: FloatArray, columns: BoolArray) -> BoolArray:
    """Tell which rows have nothing but zeros in some of the columns."""
    return _values(_Vanishing(np.flatnonzero(columns)), X)


@dataclass(frozen=True, slots=True)
class _Vanishing:
    """The kernel of `vanishing`."""

    columns: NDArray[np.intp]

    def __call__(self, X: Any, weights: Any) -> Any:
        xp = namespace_of(X)
        return xp.all(xp.take(X, like(self.columns, X), axis=1) == 0, axis=1)


def _values(kernel: PointKernel, X: FloatArray) -> NDArray[Any]:
    return np.concatenate([kernel(X[piece], None) for piece in row_blocks(*X.shape)])


def nonzero_weights(X: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Return the weight of the rows in which each coordinate is not zero."""
    return np.asarray(accumulate(_NonZero(), X, weights))


@dataclass(frozen=True, slots=True)
class _NonZero:
    """The kernel of `nonzero_weights`."""

    def __call__(self, X: Any, weights: Any) -> FloatArray:
        if isinstance(X, np.ndarray):
            return np.asarray((X != 0).sum(axis=0) if weights is None else weights @ (X != 0), dtype=np.float64)
        xp = namespace_of(X)
        present = xp.where(X != 0, xp.ones_like(X), xp.zeros_like(X))
        return to_numpy(xp.sum(present if weights is None else present * weights[:, None], axis=0))


def triangular_factor(X: FloatArray, T: FloatArray, rows: BoolArray | None = None) -> FloatArray:
    """Return R of the QR factorization of the unit rows ``u_i``, (at most k, k), by a sequence of small QRs.

    Unlike a Cholesky factor of the second moment it does not square the condition number: singular values of R are
    right to rounding, so it decides ranks.

    Parameters
    ----------
    rows : (n,) boolean array, optional
        Rows to use; all by default.
    """
    factor: Triangle = accumulate(_UnitTriangle(T), X, rows=rows)
    return factor.R


@dataclass(frozen=True, slots=True)
class Triangle:
    """R of a QR factorization; that of more rows is the sum."""

    R: FloatArray

    def __add__(self, other: Triangle) -> Triangle:
        return Triangle(np.linalg.qr(np.vstack([self.R, other.R]))[1])


@dataclass(frozen=True, slots=True)
class _UnitTriangle:
    """The kernel of `triangular_factor`."""

    T: FloatArray

    def __call__(self, X: Any, weights: Any) -> Triangle:
        xp = namespace_of(X)
        Y = X @ like(self.T, X)
        Y /= xp.sqrt(_row_sums_of_squares(Y))[:, None]
        return Triangle(to_numpy(xp.linalg.qr(Y)[1]))


def typical_sizes(X: FloatArray) -> FloatArray:
    """Return a power of two for each column: the geometric mean of its entries, in rows brought to a common size.

    A maximum or a norm would let the few largest entries decide. Entries too small beside the largest of their
    column are left out, since they may be nothing but rounding. A zero column gets 1.
    """
    found: _Exponents = accumulate(_ExponentSums(), X)
    bound = np.maximum(found.largest - _ROUNDING_BITS, _NO_EXPONENT)
    if (found.least <= bound).any():
        found = accumulate(_ExponentSums(bound), X)
    return np.asarray(np.exp2(np.rint(found.total / np.maximum(found.count, 1))))


@dataclass(frozen=True, slots=True)
class _Exponents:
    """Of the entries of each column that are not zero: the largest and the least exponent, the sum, the number."""

    largest: FloatArray
    least: FloatArray
    total: FloatArray
    count: FloatArray

    def __add__(self, other: _Exponents) -> _Exponents:
        return _Exponents(
            np.maximum(self.largest, other.largest),
            np.minimum(self.least, other.least),
            self.total + other.total,
            self.count + other.count,
        )


@dataclass(frozen=True, slots=True)
class _ExponentSums:
    """The kernel of `typical_sizes`, for exponents above a bound."""

    above: FloatArray | None = None

    def __call__(self, X: Any, weights: Any) -> _Exponents:
        xp = namespace_of(X)
        present = X != 0
        exponent = _exponents_of(X)
        if not xp.all(present):
            exponent = xp.where(present, exponent, xp.full_like(exponent, _NO_EXPONENT))
        exponent = exponent - xp.max(exponent, axis=1, keepdims=True)
        if self.above is not None:
            present = present & (exponent > like(self.above, X))
        n = float(X.shape[0])
        largest = kept = exponent
        count = np.full(X.shape[1], n)
        if not xp.all(present):
            zeros = xp.zeros_like(exponent)
            largest = xp.where(present, exponent, xp.full_like(exponent, _NO_EXPONENT))
            kept = xp.where(present, exponent, zeros)
            count = to_numpy(xp.sum(xp.where(present, xp.ones_like(exponent), zeros), axis=0))
        sums = (xp.max(largest, axis=0), xp.min(kept, axis=0), xp.sum(kept, axis=0))
        highest, lowest, total = (to_numpy(values).astype(np.float64) for values in sums)
        return _Exponents(highest, lowest, total, count.astype(np.float64))


def _exponents_of(X: Any) -> Any:
    """Return the binary exponent of each entry that is not zero."""
    if isinstance(X, np.ndarray):
        return np.frexp(X)[1]
    xp = namespace_of(X)
    # The standard has no frexp; a logarithm may be one too large for a number just below a power of two.
    return xp.floor(xp.log2(xp.where(X != 0, xp.abs(X), xp.ones_like(X))))
