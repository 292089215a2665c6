"""A table on a GPU: what a fit takes there, next to the matrix products that any method needs, and whether it is right.

    python benchmarks/gpu.py                              # 20,000,000 x 128 of torch on its GPU: 25 GB there
    python benchmarks/gpu.py --library cupy --rows 2000000
    python benchmarks/gpu.py --device cpu --rows 50000    # without a GPU: checks the answers, and this script

Times are the best of some runs, each until the device has finished. The exit status is 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from massart import MassartRegressor
from massart.rows import (
    AGREES,
    IDENTITY,
    Agreement,
    ArrayRows,
    Block,
    Level,
    Mark,
    compensated_products,
    tally,
    to_numpy,
)

WRONG = 0.4
BLOCK = 1_000_000
"""Rows at a time, where a product needs a copy of them."""

PARTS = ("sample", "map", "tally", "geometry_of", "_find", "_final", "judge")
"""Functions of a fit whose times are shown: `map` marks all rows, `_final` has it and `judge` in it."""


@dataclass(frozen=True)
class Place:
    """A library, and where its arrays are."""

    xp: ModuleType
    device: str

    @property
    def is_torch(self) -> bool:
        """Whether the library is torch."""
        return self.xp.__name__ == "torch"

    def array(self, values: Any) -> Any:
        """Return an array there."""
        return self.xp.asarray(values, device=self.device) if self.is_torch else self.xp.asarray(values)

    def normal(self, *shape: int) -> Any:
        """Return random numbers."""
        if self.is_torch:
            return self.xp.randn(*shape, dtype=self.xp.float64, device=self.device)
        return self.xp.random.standard_normal(shape)

    def wait(self) -> None:
        """Wait until the device has finished."""
        if not self.is_torch:
            self.xp.cuda.Device().synchronize()
        elif self.device != "cpu":
            self.xp.cuda.synchronize()

    def best(self, function: Callable[[], object], runs: int = 5) -> float:
        """Return the shortest time of some runs, in seconds; the first does not count."""
        times = []
        for _ in range(runs + 1):
            self.wait()
            start = time.perf_counter()
            function()
            self.wait()
            times.append(time.perf_counter() - start)
        return min(times[1:])


def main() -> int:
    """Print times and ratios; return 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", choices=("torch", "cupy"), default="torch")
    parser.add_argument("--device", default="cuda", help="of torch")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    place = Place(__import__(chosen.library), chosen.device)
    n, d, rng = chosen.rows, chosen.columns, np.random.default_rng(chosen.seed)
    (place.xp.manual_seed if place.is_torch else place.xp.random.seed)(chosen.seed)
    w = np.round(rng.standard_normal(d) * 8) / 4 + 0.125
    X, there = place.normal(n, d), place.array(w)
    wrong = place.array(rng.random(n, dtype=np.float32) < WRONG)
    y = X @ there + wrong * place.normal(n) * 5
    print(f"{n:,} x {d} float64 on {chosen.library}'s {chosen.device}, {WRONG:.0%} of the labels wrong")
    product = primitives(place, X, there, wrong)
    ok = marking(place, X, y, w, wrong, product)
    ok &= fitting(place, X, y, w, wrong)
    ok &= bits(place, rng)
    print("all answers are right" if ok else "AN ANSWER IS WRONG")
    return 0 if ok else 1


def primitives(place: Place, X: Any, w: Any, mask: Any) -> float:
    """Print what matrix products of all rows take; return the time of the smallest."""
    blocks = [slice(start, start + BLOCK) for start in range(0, X.shape[0], BLOCK)]
    smallest = place.best(lambda: X @ w)
    times = {
        "X @ w": smallest,
        "X @ W, 8 columns": place.best(lambda: X @ place.array(np.ones((X.shape[1], 8)))),
        "X'X": place.best(lambda: X.T @ X),
        "X'X of some rows": place.best(lambda: sum((X[rows] * mask[rows, None]).T @ X[rows] for rows in blocks)),
    }
    for name, seconds in times.items():
        _line(name, seconds, seconds / smallest)
    return smallest


def marking(place: Place, X: Any, y: Any, w: Any, wrong: Any, product: float) -> bool:
    """Print what marking all rows takes, and its parts; return whether the marks are right."""
    mark = Mark(w, Agreement(Level.EXACT, relative=(6 + len(w)) * 2.0**-52), IDENTITY)
    rows = ArrayRows(X, y)
    marks = rows.map(mark)
    for name, function in {
        "the largest number, once a fit": lambda: Block(X, None, None, intercept=False).largest(),
        "Mark, all rows": lambda: rows.map(mark),
        "tally": lambda: tally(marks, None),
    }.items():
        seconds = place.best(function)
        _line(name, seconds, seconds / product)
    return _same(to_numpy(marks.native()) & AGREES > 0, ~to_numpy(wrong), "marks")


def fitting(place: Place, X: Any, y: Any, w: Any, wrong: Any) -> bool:
    """Print what a whole fit takes, and its parts; return whether its answer is right, of float32 rows, too."""

    def fit() -> MassartRegressor:
        return MassartRegressor(fit_intercept=False, random_state=0).fit(X, y)

    seconds = place.best(fit, runs=3)
    profile = cProfile.Profile()
    found = profile.runcall(fit)
    _line("fit with certificate", seconds, None)
    for (_, _, name), (_, _, _, spent, _) in sorted(pstats.Stats(profile).stats.items(), key=lambda item: -item[1][3]):
        if name in PARTS and spent > 1e-3:
            _line(f"  {name}", spent, None)
    print(f"  {found.certificate_.verdict.name}: {found.noise_rate_:.4%} of the rows are wrong")
    ok = _same(found.coef_, w, "coefficients") and found.certificate_.verdict.certain
    ok &= _same(to_numpy(found.inlier_mask_), ~to_numpy(wrong), "rows that agree")
    seconds = place.best(lambda: found.predict(X))
    _line("predict", seconds, None)
    few = slice(0, min(len(X), BLOCK))
    half = X[few].float() if place.is_torch else X[few].astype(np.float32)
    labels = half.double() @ place.array(w) if place.is_torch else half.astype(np.float64) @ place.array(w)
    found = MassartRegressor(fit_intercept=False, random_state=0).fit(
        half, labels + wrong[few] * place.normal(len(half))
    )
    return ok & _same(found.coef_, w, "coefficients of float32 rows")


def bits(place: Place, rng: np.random.Generator) -> bool:
    """Return whether compensated sums have the same bits as on the host: no multiply-add is fused there."""
    X = rng.standard_normal((100_000, 16)) * 10.0 ** rng.integers(-8, 8, (100_000, 16))
    w = rng.standard_normal(16)
    found = [to_numpy(part).view(np.uint64) for part in compensated_products(place.array(X), w)]
    known = [part.view(np.uint64) for part in compensated_products(X, w)]
    return _same(found, known, "bits of compensated sums")


def _line(name: str, seconds: float, ratio: float | None) -> None:
    print(f"{name:<36}{seconds * 1e3:>12.2f} ms" + ("" if ratio is None else f"{ratio:>10.2f} x (X @ w)"))


def _same(found: Any, known: Any, what: str) -> bool:
    same = np.array_equal(found, known)
    if not same:
        print(f"WRONG: {what}, {np.count_nonzero(np.asarray(found) != np.asarray(known)):,} of {np.size(known):,}")
    return same


if __name__ == "__main__":
    sys.exit(main())
