"""Point sets with planted subspaces whose right answer is known: the cases behind "100 % verified right".

Each family is a function of a generator that returns rows and what is true of them. `check_answer` judges an answer
by definition, with nothing taken from the package: the subspace must hold the rows it claims, enough of them, and the
map must reach gamma on them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]


class Answer(Protocol):
    """What a solver returns."""

    subspace: Rows
    matrix: Rows
    members: NDArray[np.bool_]


class Truth(Enum):
    """What a right answer may be."""

    HEAVY = "a subspace holds more than its share: the answer must be a proper subspace"
    LIGHT = "no subspace holds more than its share: the answer must be the whole space"
    EITHER = "some subspace holds exactly its share, or it is not known: any verified answer is right"


def orthogonal(d: int, rng: np.random.Generator) -> Rows:
    """Return a random orthogonal matrix."""
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def planted(
    rng: np.random.Generator, above: int | None = None, near: float = 0.0, condition: float = 1.0
) -> tuple[Rows, Truth]:
    """Plant a k-dimensional subspace with floor(kn/d) + `above` rows, more rows near it, a skew map, and row scales."""
    d = int(rng.integers(3, 41))
    k = int(rng.integers(1, d))
    n = int(d * rng.integers(3, 16) + rng.integers(0, d))
    base = math.floor(k * n / d)
    if above is None:
        above = int(rng.integers(1, max(2, n - base - (d - k) - 1)))
    inside = max(base + above, 0)
    axes = orthogonal(d, rng)
    X = rng.standard_normal((n, d))
    X[:inside] = rng.standard_normal((inside, k)) @ axes[:, :k].T
    if near:
        count = min(n - inside, max(1, int(0.3 * inside)))
        close = slice(inside, inside + count)
        X[close] = rng.standard_normal((count, k)) @ axes[:, :k].T + near * rng.standard_normal((count, d))
    if condition > 1:
        X = X @ (orthogonal(d, rng) * np.logspace(0, -np.log10(condition), d)) @ orthogonal(d, rng)
    X *= np.exp(3 * rng.standard_normal((n, 1)))
    truth = Truth.EITHER
    if inside * d > k * n:
        truth = Truth.HEAVY
    elif inside * d < k * n and not near:
        truth = Truth.LIGHT
    return X[rng.permutation(n)], truth


def nested(rng: np.random.Generator) -> tuple[Rows, Truth]:
    """Plant a subspace within a subspace, both with more than their share."""
    d = int(rng.integers(6, 31))
    k_outer = int(rng.integers(3, d - 1))
    k_inner = int(rng.integers(1, k_outer))
    n = 12 * d
    outer_share = k_outer / d + (1 - k_outer / d) * rng.uniform(0.1, 0.7)
    inner_share = outer_share * (k_inner / k_outer + (1 - k_inner / k_outer) * rng.uniform(0.05, 0.7))
    outer, inner = int(outer_share * n), int(inner_share * n)
    axes = orthogonal(d, rng)
    X = rng.standard_normal((n, d))
    X[:outer] = rng.standard_normal((outer, k_outer)) @ axes[:, :k_outer].T
    X[:inner] = rng.standard_normal((inner, k_inner)) @ axes[:, :k_inner].T
    heavy = inner * d > k_inner * n or outer * d > k_outer * n
    return X[rng.permutation(n)], Truth.HEAVY if heavy else Truth.EITHER


def flag(rng: np.random.Generator) -> tuple[Rows, Truth]:
    """Plant a full flag of subspaces with random numbers of rows."""
    d = int(rng.integers(3, 13))
    axes = orthogonal(d, rng)
    steps = [rng.standard_normal((int(rng.integers(1, 8)), k)) @ axes[:, :k].T for k in range(1, d + 1)]
    X = np.vstack(steps)
    counts = np.cumsum([len(step) for step in steps])
    heavy = any(counts[k - 1] * d > k * len(X) for k in range(1, d))
    return X, Truth.HEAVY if heavy else Truth.EITHER


def direct_sum(rng: np.random.Generator) -> tuple[Rows, Truth]:
    """Return two complementary subspaces, each with exactly its share: a transform exists, at equality."""
    d = int(rng.integers(4, 21))
    k = int(rng.integers(1, d))
    multiple = int(rng.integers(2, 8))
    axes = orthogonal(d, rng)
    first = rng.standard_normal((multiple * k, k)) @ axes[:, :k].T
    second = rng.standard_normal((multiple * (d - k), d - k)) @ axes[:, k:].T
    return np.vstack([first, second]) @ rng.standard_normal((d, d)), Truth.EITHER


def dummies(rng: np.random.Generator) -> tuple[Rows, Truth]:
    """Return dummy columns of several categories, numeric columns and a constant."""
    n = 400
    columns = []
    for _ in range(int(rng.integers(2, 5))):
        levels = int(rng.integers(2, 6))
        chosen = rng.choice(levels, n, p=rng.dirichlet(np.full(levels, 0.7)))
        columns.append(np.eye(levels)[chosen][:, 1:])
    columns += [rng.standard_normal((n, int(rng.integers(1, 4)))), np.ones((n, 1))]
    return np.hstack(columns), Truth.EITHER


def sparse(rng: np.random.Generator) -> tuple[Rows, Truth]:
    """Return Gaussian entries of which most are zero."""
    d = int(rng.integers(5, 25))
    n = int(rng.integers(4 * d, 10 * d))
    return rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.uniform(0.05, 0.3)), Truth.EITHER


def signs(rng: np.random.Generator) -> tuple[Rows, Truth]:
    """Return entries -1, 0 and 1."""
    d = int(rng.integers(3, 12))
    return rng.integers(-1, 2, (int(rng.integers(3 * d, 10 * d)), d)).astype(float), Truth.EITHER


def small_integers(rng: np.random.Generator) -> tuple[Rows, Truth]:
    """Return few small integer rows in at most 5 dimensions; the truth is found by trying every flat."""
    d = int(rng.integers(2, 6))
    n = int(rng.integers(d + 1, {2: 14, 3: 14, 4: 13, 5: 12}[d] + 1))
    kind = int(rng.integers(0, 3))
    if kind < 2:
        X = rng.integers(-1 if kind == 0 else 0, 2, (n, d))
    else:
        X = rng.integers(-3, 4, (n, d))
        for i in range(n):
            if rng.random() < 0.5:
                X[i] = X[rng.integers(0, n)] * rng.integers(1, 3)
            if rng.random() < 0.3:
                X[i, rng.integers(0, d)] = 0
    if np.linalg.matrix_rank(X) < d:
        return small_integers(rng)
    return X.astype(float), heaviest_flat(X[X.any(axis=1)].astype(float))


def heaviest_flat(X: Rows) -> Truth:
    """Try every subspace that rows of X span, and tell whether one holds more than, or exactly, its share."""
    n, d = X.shape
    surplus = -n * d
    for k in range(1, d):
        for chosen in itertools.combinations(range(n), k):
            _, sizes, axes = np.linalg.svd(X[list(chosen)])
            if sizes[-1] < 1e-6:
                continue
            count = int((np.linalg.norm(X @ axes[k:].T, axis=1) < 1e-6).sum())
            surplus = max(surplus, count * d - k * n)
    return Truth.HEAVY if surplus > 0 else Truth.EITHER if surplus == 0 else Truth.LIGHT


FAMILIES: dict[str, Callable[[np.random.Generator], tuple[Rows, Truth]]] = {
    "random excess": planted,
    "one above": partial(planted, above=1),
    "two above": partial(planted, above=2),
    "at the limit": partial(planted, above=0),
    "one below": partial(planted, above=-1),
    "three below": partial(planted, above=-3),
    "near 1e-2": partial(planted, above=2, near=1e-2),
    "near 1e-4": partial(planted, above=2, near=1e-4),
    "near 1e-6": partial(planted, above=2, near=1e-6),
    "near 1e-8": partial(planted, above=2, near=1e-8),
    "one below, near 1e-4": partial(planted, above=-1, near=1e-4),
    "one below, near 1e-6": partial(planted, above=-1, near=1e-6),
    "condition 1e4, two above": partial(planted, above=2, condition=1e4),
    "condition 1e8, two above": partial(planted, above=2, condition=1e8),
    "condition 1e8, two below": partial(planted, above=-2, condition=1e8),
    "nested": nested,
    "flag": flag,
    "direct sum": direct_sum,
    "dummies": dummies,
    "sparse": sparse,
    "signs": signs,
    "all flats tried": small_integers,
}


def check_answer(
    X: Rows,
    truth: Truth,
    answer: Answer,
    gamma: float,
    *,
    two_sided: bool,
    tol: float = 1e-9,
) -> str:
    """Return what is wrong with an answer, or an empty string.

    One-sided, a set with a heavy subspace may still have a transform, so that missing it is no fault.
    """
    subspace, matrix, members = answer.subspace, answer.matrix, answer.members
    n, d = int(X.any(axis=1).sum()), X.shape[1]
    k = subspace.shape[1]
    unit = X[members] / np.linalg.norm(X[members], axis=1)[:, None]
    distance = np.linalg.norm(unit - unit @ subspace @ subspace.T, axis=1).max()
    if distance > tol:
        return f"a member is {distance:.1e} off the subspace"
    if members.sum() * d < k * n:
        return f"{members.sum()} of {n} rows are fewer than {k}/{d}"
    images = unit @ subspace @ matrix.T
    images /= np.linalg.norm(images, axis=1)[:, None]
    spectrum = np.linalg.eigvalsh(images.T @ images * (k / members.sum()))
    error = np.abs(spectrum - 1).max() if two_sided else 1 - spectrum[0]
    if error > 1.01 * gamma:
        return f"the map reaches {error:.1e}, not {gamma:.0e}"
    if truth is Truth.HEAVY and k == d and two_sided:
        return "a heavy subspace was missed"
    if truth is Truth.LIGHT and k < d:
        return "a subspace was returned though none is heavy"
    return ""
