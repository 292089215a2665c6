r"""Rows with planted subspaces: the sets for which no radial-isotropic transform exists, and their close relatives.

A subspace V of dimension k is *heavy* for n points in :math:`\mathbb R^d` when it holds more than a share k/d of them
(Lemma 2.5):

.. math::

    |\{ i : x_i \in V \}| \; > \; \frac{k}{d}\, n .

The samplers here take exact counts, so that a test can ask for one row more, one row less, or equality.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from massart.noise.arguments import check_count, check_generator, check_number
from massart.rows import BoolArray, FloatArray

_OFF_SUBSPACE = 1e-6
"""Distance from which small integer rows count as outside an integer subspace; true distances are far above it."""

_MOST_SPREAD = 3
"""Integer rows have entries, and rows on an integer subspace coefficients, from -3 to 3."""


@dataclass(frozen=True, slots=True, eq=False)
class PlantedSubspace:
    """Rows of which a known number lies in a known subspace.

    Attributes
    ----------
    X : ndarray, shape (n, d)
        Rows, in random order.
    basis : ndarray, shape (d, k)
        Columns that span V; orthonormal unless the rows are integers.
    inside : ndarray of bool, shape (n,)
        The rows in V (up to rounding).
    near : ndarray of bool, shape (n,)
        The rows that only just miss V.
    """

    X: FloatArray
    basis: FloatArray
    inside: BoolArray
    near: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class PlantedFlag:
    r"""Rows along nested subspaces :math:`V_1 \subset V_2 \subset \dots \subset V_d`.

    Attributes
    ----------
    X : ndarray, shape (n, d)
        Rows, in random order.
    basis : ndarray, shape (d, d)
        Orthogonal; its first k columns span :math:`V_k`.
    level : ndarray of int, shape (n,)
        The smallest k with the row in :math:`V_k`.
    """

    X: FloatArray
    basis: FloatArray
    level: np.ndarray[tuple[int, ...], np.dtype[np.intp]]


def planted_subspace(
    n: int, d: int, k: int, n_inside: int, rng: np.random.Generator, near_miss: float = 0.0
) -> PlantedSubspace:
    r"""Return Gaussian rows of which exactly `n_inside` lie in a random subspace V of dimension `k`.

    Parameters
    ----------
    n, d, k : int
        Rows, columns and the dimension of V, ``1 <= k < d``.
    n_inside : int
        Rows in V, from 0 to `n`. V is heavy when ``n_inside * d > k * n``.
    rng : numpy.random.Generator
    near_miss : float, default 0
        If positive, :math:`\min(n - n_V, \max(1, \lfloor 0.3\, n_V \rfloor))` of the rows outside, :math:`n_V` being
        `n_inside`, lie at exactly this distance from V: the rows that a loose tolerance counts as members.
    """
    _check_plan(n, d, k, n_inside, rng)
    offset = check_number(near_miss, "near_miss")
    if offset < 0.0:
        raise ValueError(f"near_miss must not be negative, got {offset:g}")
    n_near = min(n - n_inside, max(1, 3 * n_inside // 10)) if offset > 0.0 else 0
    frame = np.linalg.qr(rng.standard_normal((d, d)))[0]
    V, complement = frame[:, :k], frame[:, k:]
    X = rng.standard_normal((n, d))
    X[: n_inside + n_near] = rng.standard_normal((n_inside + n_near, k)) @ V.T
    away = rng.standard_normal((n_near, d - k))
    away *= offset / np.linalg.norm(away, axis=1, keepdims=True)
    X[n_inside : n_inside + n_near] += away @ complement.T
    return _shuffled(X, V, n_inside, n_near, rng)


def integers_on_subspace(n: int, d: int, k: int, n_inside: int, rng: np.random.Generator) -> PlantedSubspace:
    """Return integer rows of which exactly `n_inside` lie in an integer subspace of dimension `k`, none of them zero.

    Rows inside are combinations, with coefficients from -3 to 3, of k random integer vectors with entries from -2 to 2;
    rows outside have entries from -3 to 3. The measured cases are d = 9, k = 3 with 70 % and 90 % of the rows inside:
    a wrong parameter that is right on the subspace can then fit more than half of all rows.

    Parameters
    ----------
    n, d, k : int
        Rows, columns and the dimension of V, ``1 <= k < d``.
    n_inside : int
        Rows in V, from 0 to `n`.
    rng : numpy.random.Generator
    """
    _check_plan(n, d, k, n_inside, rng)
    while True:
        basis = rng.integers(-2, 2, (d, k), endpoint=True).astype(np.float64)
        if np.linalg.matrix_rank(basis) == k:
            break
    V = np.linalg.qr(basis)[0]
    X = np.empty((n, d))
    # Integers fall on any subspace by chance: redraw the rows that would spoil the counts.
    todo = np.arange(n)
    while todo.size:
        on = todo < n_inside
        coefficients = rng.integers(-_MOST_SPREAD, _MOST_SPREAD, (todo.size, k), endpoint=True)
        free = rng.integers(-_MOST_SPREAD, _MOST_SPREAD, (todo.size, d), endpoint=True)
        X[todo] = np.where(on[:, None], coefficients @ basis.T, free)
        distance = np.linalg.norm(X[todo] - X[todo] @ V @ V.T, axis=1)
        spoilt = np.where(on, ~X[todo].any(axis=1), distance < _OFF_SUBSPACE)
        todo = todo[spoilt]
    return _shuffled(X, basis, n_inside, 0, rng)


def planted_flag(counts: Sequence[int], rng: np.random.Generator) -> PlantedFlag:
    r"""Return Gaussian rows on nested random subspaces: ``counts[k - 1]`` of them in :math:`V_k` and no smaller one.

    :math:`V_k` then holds ``sum(counts[:k])`` rows. Zeros skip a dimension, so two nested heavy subspaces of dimensions
    2 and 5 in ten are ``(0, 40, 0, 0, 40, 0, 0, 0, 0, 20)``.

    Parameters
    ----------
    counts : sequence of int
        One count for each dimension 1, ..., d; at least one is positive.
    rng : numpy.random.Generator
    """
    check_generator(rng)
    for index, count in enumerate(counts):
        check_count(count, f"counts[{index}]", 0)
    if sum(counts) == 0:
        raise ValueError(f"counts must hold at least one row, got {counts!r}")
    d = len(counts)
    frame = np.linalg.qr(rng.standard_normal((d, d)))[0]
    level = np.repeat(np.arange(1, d + 1), counts)
    coordinates = np.where(np.arange(d) < level[:, None], rng.standard_normal((level.shape[0], d)), 0.0)
    order = rng.permutation(level.shape[0])
    return PlantedFlag(X=(coordinates @ frame.T)[order], basis=frame, level=level[order])


def _check_plan(n: int, d: int, k: int, n_inside: int, rng: np.random.Generator) -> None:
    check_count(n, "n", 1)
    check_count(d, "d", 2)
    check_count(k, "k", 1, d - 1)
    check_count(n_inside, "n_inside", 0, n)
    check_generator(rng)


def _shuffled(
    X: FloatArray, basis: FloatArray, n_inside: int, n_near: int, rng: np.random.Generator
) -> PlantedSubspace:
    """Shuffle rows that came as inside, near, then the others."""
    order = rng.permutation(X.shape[0])
    return PlantedSubspace(
        X=X[order],
        basis=basis,
        inside=order < n_inside,
        near=(order >= n_inside) & (order < n_inside + n_near),
    )
