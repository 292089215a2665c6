r"""Least squares with many weightings: FAST-LTS from many starts at a time, and reweighting on fresh rows.

Least trimmed squares looks for

.. math:: \min_c \sum_{i \le h} r^2_{(i)}(c), \qquad r_i(c) = y_i - z_i^\top c ,

the sum of the h smallest squared residuals. A concentration step keeps the h rows that c fits best and solves them by
least squares; it never increases the sum. One start seldom ends at the answer, so there are hundreds: fits of small
random sets of rows. All are stepped together, a step being one product with the matrix of residuals and one with that
of the products :math:`z_{ij} z_{ik}`.

References
----------
Rousseeuw and Van Driessen (2006), *Computing LTS regression for large data sets*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from massart.rows import FloatArray

_RIDGE = 1e-12  # relative to the mean eigenvalue: makes singular subsets solvable, and changes no other
_PRODUCTS = 1 << 22  # numbers n k^2 up to which the products of columns are stored
_FEW = 4  # fits for which the products are not worth their making
_NEVER = 1e-300  # a rate at which a row comes after all others
_BATCH_BYTES = 1 << 25

ROWS_PER_COLUMN, FEWEST_ROWS = 4, 200
"""Rows of a step."""

POWER, FLOOR = 1.5, 1e-3
"""p; and f in median residuals, so that no few rows decide. (Tried: powers from 1 to 2. With 45 % wrong labels, another
formula's say, 2 takes a step less.)"""

STEPS = 24
CLOSE = 1e-9
"""Median residual, relative to the labels, at which half of the rows follow."""

_ROUGH_RIDGE = 1e-6  # relative to the mean eigenvalue: what float32 leaves in doubt


@dataclass(frozen=True)
class LeastSquares:
    """Least-squares fits of the same rows with many weightings.

    Attributes
    ----------
    Z : array of shape (n, k)
    y : array of shape (n,)
    ridge : float
        Added to the diagonal of every weighted Gram matrix.
    """

    Z: FloatArray
    y: FloatArray
    ridge: float = 0.0

    def fit(self, weights: FloatArray) -> FloatArray:
        """Return the coefficients, (b, k), for each row of `weights`, (b, n)."""
        k = self.Z.shape[1]
        if len(weights) <= _FEW or self.Z.size * k > _PRODUCTS:
            gram = np.array([self._gram(row) for row in weights]).reshape(-1, k, k)
        else:
            gram = np.take(weights @ self._products, self._places, axis=1)
        return _solve(gram, (weights * self.y) @ self.Z, self.ridge)

    def fit_subsets(self, subsets: NDArray[np.intp]) -> FloatArray:
        """Return the coefficients for each set of rows, (b, h)."""
        fits = []
        batch = max(1, _BATCH_BYTES // (8 * self.Z.shape[1] * subsets.shape[1]))
        for first in range(0, len(subsets), batch):
            chosen = subsets[first : first + batch]
            Z, y = self.Z[chosen], self.y[chosen]
            transposed = Z.swapaxes(1, 2)
            fits.append(_solve(transposed @ Z, (transposed @ y[..., None])[..., 0], self.ridge))
        return np.concatenate(fits)

    def _gram(self, weights: FloatArray) -> FloatArray:
        kept = np.flatnonzero(weights)
        Z = self.Z[kept]
        return np.asarray((Z * weights[kept, None]).T @ Z)

    @cached_property
    def _products(self) -> FloatArray:
        """The products of any two columns, (n, k (k + 1) / 2)."""
        i, j = np.triu_indices(self.Z.shape[1])
        return np.asarray(self.Z[:, i] * self.Z[:, j])

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Where in `_products` the entries of a Gram matrix are, (k, k)."""
        k = self.Z.shape[1]
        places = np.zeros((k, k), dtype=np.intp)
        i, j = np.triu_indices(k)
        places[i, j] = places[j, i] = np.arange(len(i))
        return places


def _solve(gram: FloatArray, moments: FloatArray, ridge: float) -> FloatArray:
    """Return the solutions, (b, k), of normal equations with right-hand sides (b, k); changes `gram`, (b, k, k)."""
    diagonal = np.einsum("bii->bi", gram)
    least = _RIDGE * diagonal.mean(axis=1, keepdims=True) + (ridge + np.finfo(float).tiny)
    diagonal += least
    return np.asarray(np.linalg.solve(gram, moments[..., None])[..., 0])


def smallest(sizes: FloatArray, counts: int | NDArray[np.intp]) -> FloatArray:
    """Return 1 for the rows whose residuals are the smallest, a given number for each parameter, and 0 for others.

    Parameters
    ----------
    sizes : array of shape (b, n)
        Absolute residuals.
    counts : int or array of shape (b,)
        h, from 1 to n.
    """
    if isinstance(counts, int):
        limits = np.partition(sizes, counts - 1, axis=1)[:, counts - 1]
    else:
        limits = np.sort(sizes, axis=1)[np.arange(len(sizes)), counts - 1]
    return (sizes <= limits[:, None]).astype(np.float64)


def quantile(values: FloatArray, shares: FloatArray, share: float) -> FloatArray:
    """Return, for each row of `values`, the least of them up to which the `shares` (of sum 1) reach `share`."""
    n = values.shape[-1]
    target = share - n * np.finfo(float).eps  # sums of shares round
    if np.ptp(shares) == 0:
        at = min(max(int(np.ceil(target * n)) - 1, 0), n - 1)
        return np.asarray(np.partition(values, at, axis=-1)[..., at])
    order = np.argsort(values, axis=-1)
    places = np.minimum((np.cumsum(shares[order], axis=-1) < target).sum(axis=-1), n - 1)
    picked = np.take_along_axis(order, np.asarray(places)[..., None], axis=-1)
    return np.asarray(np.take_along_axis(values, picked, axis=-1)[..., 0])


def random_subsets(count: int, size: int, rates: FloatArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return `count` sets of `size` different rows, drawn with probabilities like `rates`.

    Rows are drawn one after the other, each with a probability in proportion to its rate: the first to come of
    exponential waiting times. `rates` are of shape (n,), or (count, n) for rates of each set.
    """
    n = rates.shape[-1]
    if size >= n:
        return np.broadcast_to(np.arange(n), (count, n))
    waits = rng.standard_exponential((count, n)) / np.maximum(rates, _NEVER)
    return np.argpartition(waits, size - 1, axis=1)[:, :size]


def reweighted(X: FloatArray, y: FloatArray) -> FloatArray:
    r"""Return a formula that comes near to half of the rows or more, if there is one: quick where rows are plenty.

    .. math::
        w_{t+1} = \arg\min_w \sum_{i \in B_t} \frac{(y_i - w \cdot x_i)^2}{\max(|r_i|, f_t)^p}, \qquad
        r_i = y_i - w_t \cdot x_i ,

    over unit rows, with disjoint sets of rows :math:`B_t` until all have been used. The steps of one fixed set
    would end where L1 regression (p = 1) of these rows does, and at 40 % wrong labels that is the truth from 8 to
    12 rows a column on. Fresh rows know nothing of the formula so far: their residuals tell how far it is off, and
    right rows, which come nearer with each step, weigh more each time. So four rows a column do for a step, and ten
    steps for half of the digits.

    There are sixteen rows a column, or more. Each step takes rows at equal distances (Holland and Welsch 1977, *Robust
    regression using iteratively reweighted least-squares*).
    """
    n, d = X.shape
    every = max(1, n // max(ROWS_PER_COLUMN * d, FEWEST_ROWS))
    largest = np.abs(X[::every]).max(axis=0)
    scales = 1 / np.where(largest > 0, largest, 1.0)
    w = np.zeros(d)
    for step in range(STEPS):
        chosen = slice(step % every, None, every)
        rows, labels = X[chosen], y[chosen]
        # Half of the digits for the matrix: later steps make up for what it lacks.
        rough = (rows * scales).astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rough, rough)).astype(np.float64)
        units = 1 / np.where(lengths > 0, lengths, 1.0)
        residuals = (labels - rows @ w) * units
        sizes = np.abs(residuals)
        middle = float(np.median(sizes))
        if middle <= CLOSE * float(np.median(np.abs(labels) * units)):
            break
        weights = np.ones(len(labels)) if step == 0 else (np.maximum(sizes, FLOOR * middle) / middle) ** -POWER
        rough *= (np.sqrt(weights) * units).astype(np.float32)[:, None]
        gram = (rough.T @ rough).astype(np.float64)
        gram[np.diag_indices(d)] += _ROUGH_RIDGE * np.trace(gram) / d
        moments = ((weights * units * residuals) @ rows) * scales
        w = w + scales * sla.solve(gram, moments, assume_a="pos", check_finite=False)
    return w
