"""Many columns, 40 % of the labels wrong, against scikit-learn's LinearRegression, which is wrong there: times only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from harness import Case, Incorrect, Row, at_most, race, require  # isort: skip

import numpy as np
from numpy.typing import NDArray

from massart import MassartRegressor

FloatArray = NDArray[np.float64]
Adversary = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]

_WRONG = 0.4
_EXACT = 1e-9  # error of a coefficient, where they are about 1

ADVERSARIES: dict[str, Adversary] = {
    "another formula": lambda X, y, rng: X @ rng.standard_normal(X.shape[1]),
    "a constant": lambda X, y, rng: np.full(len(y), 100.0),
    "permuted labels": lambda X, y, rng: rng.permutation(y),
    "flipped signs": lambda X, y, rng: -y,
}
"""What wrong labels are, for rows X whose right labels are y."""

SHAPES = ((50_000, 500, 1.0), (20_000, 1_000, 3.0))
SMALL_SHAPES = ((10_000, 150, 4.0),)
"""Rows, columns, and the ratio of times wanted."""


def cases(small: bool) -> Iterable[Case]:
    """Yield each shape with each adversary."""
    for seed, (n, d, ratio) in enumerate(SMALL_SHAPES if small else SHAPES):
        for name in ADVERSARIES:
            yield Case(f"{n:,} x {d}, {name}", partial(_race, n, d, name, ratio, seed))


def make_table(n: int, d: int, adversary: str, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Gaussian rows, labels of which 40 % are wrong, and the formula."""
    rng = np.random.default_rng([n, d, seed])
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    y = X @ w
    wrong = rng.random(n) < _WRONG
    y[wrong] = ADVERSARIES[adversary](X[wrong], y[wrong], rng)
    return X, y, w


def _race(n: int, d: int, adversary: str, ratio: float, seed: int) -> Row:
    peer = require("sklearn.linear_model").LinearRegression()
    X, y, w = make_table(n, d, adversary, seed)

    def judge(ours: Any, _: Any) -> str:
        error = float(np.abs(ours.coef_ - w).max())
        marked = int((ours.inlier_mask_ != (np.abs(y - X @ w) <= 1e-9 * np.abs(X) @ np.abs(w))).sum())
        if error > _EXACT or marked:
            raise Incorrect(f"coefficients off by {error:.1e}, {marked} rows marked wrongly")
        return f"coefficients off by {error:.0e}, {ours.certificate_.verdict.name}"

    def ours() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return MassartRegressor(random_state=0).fit(X, y)

    return race(
        f"{n:,} x {d}, {adversary}", ours, lambda: peer.fit(X, y), peer_name="LinearRegression",
        wanted=at_most(ratio), judge=judge, repeats=3, seconds=60,
    )  # fmt: skip
