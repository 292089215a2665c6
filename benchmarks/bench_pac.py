"""The PAC promise: rows on subspaces, the share of new rows that are wrong, and whether the epsilon is honest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from harness import Case, Incorrect, Row, at_least, count, race  # isort: skip

import numpy as np
from numpy.typing import NDArray

from arrays import Recovered, recovered
from massart.paper import Adversary, MassartNoise, decoy, far_constant, flip, linear_labels, remove_outliers
from massart.recover import PACFormula, PACStatus, learn_pac
from row_families import dummy_table, one_hot

FloatArray = NDArray[np.float64]
Sampler = Callable[[int, np.random.Generator], FloatArray]

EPSILON = 0.05
N_FRESH = 20_000
PROMISE = 0.9
"""Theorem B.1: with probability 9/10."""

ADVERSARIES: dict[str, Callable[[FloatArray, np.random.Generator], Adversary]] = {
    "decoy": lambda w, rng: decoy(rng.standard_normal(w.size), linear_labels),
    "far constant": lambda w, rng: far_constant,
    "flip": lambda w, rng: flip(w, linear_labels),
}


@dataclass(frozen=True, slots=True)
class Mixture:
    """Rows that are Gaussian, or small integers, combinations of the rows of one of several bases."""

    shares: tuple[float, ...]
    bases: tuple[FloatArray, ...]
    whole: bool

    def __call__(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return `n` rows."""
        part = rng.choice(len(self.bases), n, p=self.shares)
        X = np.empty((n, self.bases[0].shape[1]))
        for j, basis in enumerate(self.bases):
            size = (int((part == j).sum()), len(basis))
            X[part == j] = (rng.integers(-3, 4, size) if self.whole else rng.standard_normal(size)) @ basis
        return X


def subspaces(rng: np.random.Generator, *, whole: bool = False, rare: float = 0.1) -> Mixture:
    """Return 60 % of the rows on a random plane of R^8, most others in 4 dimensions, and a share `rare` anywhere."""

    def basis(k: int) -> FloatArray:
        return rng.integers(-2, 3, (k, 8)).astype(float) if whole else rng.standard_normal((k, 8))

    return Mixture((0.6, 0.4 - rare, rare), (basis(2), basis(4), np.eye(8)), whole)


def _table(make: Callable[..., FloatArray], levels: tuple[int, ...]) -> Callable[[np.random.Generator], Sampler]:
    return lambda rng: lambda n, generator: make(n, levels, generator)


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator], Sampler]] = {
    "subspaces": subspaces,
    "integer subspaces": partial(subspaces, whole=True),
    "rare directions": partial(subspaces, rare=0.01),
    "one-hot 8": _table(one_hot, (8,)),
    "one-hot 6, 4": _table(one_hot, (6, 4)),
    "dummies 6, 5, 4": _table(dummy_table, (6, 5, 4)),
}


def cases(small: bool) -> Iterator[Case]:
    """Yield the promise for each distribution and adversary, and the time beside recovery without the promise."""
    seeds = 5 if small else 50
    for name in ("subspaces", "one-hot 8") if small else DISTRIBUTIONS:
        for adversary in ("decoy",) if small else ADVERSARIES:
            for n, eta in ((2000, 0.4),) if small else ((500, 0.3), (2000, 0.4)):
                for told in (True, False):
                    yield Case(f"{name}, {adversary}", partial(_promise, name, adversary, n, eta, told, seeds))
    yield Case("outlier removal", partial(_outliers, *((2000, 5) if small else (50_000, 20))))
    yield Case("time", partial(_time, 500 if small else 5000))


def learn(name: str, adversary: str, n: int, eta: float, told: bool, seed: int) -> tuple[PACFormula, float]:
    """Return what is learnt from planted rows, and the share of fresh rows on which it errs."""
    rng = np.random.default_rng(seed)
    draw = DISTRIBUTIONS[name](rng)
    X = draw(n, rng)
    w = rng.standard_normal(X.shape[1])
    y = MassartNoise(eta, ADVERSARIES[adversary](w, rng)).corrupt(X, X @ w, rng).labels
    found = learn_pac(X, y, EPSILON, eta=eta if told else None, rng=rng)
    fresh = draw(N_FRESH, rng)
    wrong = np.abs(fresh @ (found.coef - w)) > 1e-9 * (np.abs(fresh) @ np.abs(w))
    return found, float(wrong.mean())


def _promise(name: str, adversary: str, n: int, eta: float, told: bool, seeds: int) -> Iterator[Row]:
    """Report how often the error on fresh rows is at most epsilon, and how often at most what was reported."""
    results = [learn(name, adversary, n, eta, told, seed) for seed in range(seeds)]
    kept = np.mean([error <= EPSILON for _, error in results])
    honest = np.mean([error <= found.achieved for found, error in results])
    if honest < 0.95 - 1 / seeds:
        raise Incorrect(f"the error is at most what was reported in {100 * honest:.0f} % of the runs only")
    names = [found.status.name for found, _ in results]
    note = f"honest {100 * honest:.0f} %; median {np.median([f.achieved for f, _ in results]):.3f}; " + ", ".join(
        f"{status.name} {names.count(status.name)}" for status in PACStatus
    )
    case = f"{name}, {n} rows, {adversary} {eta:g}{', eta told' if told else ''}: error <= {EPSILON:g}"
    yield count(case, float(kept), wanted=at_least(PROMISE, ""), note=note)


def _outliers(n: int, d: int) -> Row:
    """Report how near the largest ratio comes to what no set of rows can beat."""
    X = np.random.default_rng(0).standard_t(2, (n, d))
    found = remove_outliers(X, alpha=0.02)
    kept = X[found.inside]
    M = kept.T @ kept / len(kept)
    ratio = float(np.einsum("ij,ij->i", kept @ np.linalg.inv(M), kept).max())
    if not (np.isclose(ratio, found.ratio) and found.share >= 0.98):
        raise Incorrect(f"largest ratio {ratio:g}, reported {found.ratio:g}; share {found.share:g}")
    note = f"ratio {ratio:.1f}, {n - len(kept)} of {n} removed, {found.n_iter} values of beta"
    return count(
        f"outliers of {n} x {d} Student rows: bound / ratio",
        found.lower_bound / ratio,
        wanted=at_least(0.95, ""),
        note=note,
    )


def _time(n: int) -> Row:
    rng = np.random.default_rng(0)
    X = subspaces(rng)(n, rng)
    w = rng.standard_normal(8)
    y = MassartNoise(0.4, far_constant).corrupt(X, X @ w, rng).labels

    def judge(found: PACFormula, other: Recovered) -> str:
        return f"reported {found.achieved:.3g}"

    return race(
        f"{n} x 8: time",
        lambda: learn_pac(X, y, EPSILON, eta=0.4, rng=np.random.default_rng(0)),
        lambda: recovered(X, y, rng=np.random.default_rng(0)),
        peer_name="recovered",
        wanted=at_least(0),
        judge=judge,
    )
