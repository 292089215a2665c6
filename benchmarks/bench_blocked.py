"""Kernels over the rows of a table in blocks, against the same rows in one array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from harness import Case, Incorrect, Row, at_most, race  # isort: skip
from stream_rows import StreamRows  # isort: skip

import numpy as np
from numpy.typing import NDArray

from massart.isotropy import radial_isotropy, radial_isotropy_of
from massart.l1 import l1_regression, l1_regression_of
from massart.progress import silent
from massart.robust import refine_on_table, robust_regression
from massart.robust.concentration import Positioned
from massart.robust.mm_estimator import half_of
from massart.robust.modes import separate
from massart.robust.position import place
from massart.robust.refinement import Estimate, m_and_d_steps
from massart.robust.uncertainty import uncertainty_of
from massart.rows import ArrayRows, Block, Rows

SAME = 1e-12
SLOWER = 1.3

FloatArray = NDArray[np.float64]


def cases(small: bool) -> Iterator[Case]:
    """Yield tables of a million to ten million numbers; small ones are a tenth, and check the answers."""
    for n, d in ((10_000, 10), (2_000, 50)) if small else ((500_000, 10), (50_000, 50), (100_000, 100)):
        for kind in (whole, stream):
            for gamma in (0.5, 1e-10):
                name = f"isotropy {gamma:g}, {n} x {d}, {kind.__name__}"
                yield Case(name, partial(_isotropy, name, n, d, kind, gamma))
            for noise in (0.0, 1.0):
                name = f"L1 {'noisy' if noise else 'exact'}, {n} x {d}, {kind.__name__}"
                yield Case(name, partial(_l1, name, n, d, kind, noise))
            name = f"noisy steps, {n} x {d}, {kind.__name__}"
            yield Case(name, partial(_noisy, name, n, d, kind))


def whole(X: FloatArray, y: FloatArray) -> Rows:
    """Return the rows of one array, which are read in blocks that fit the cache."""
    return ArrayRows(X, y)


def stream(X: FloatArray, y: FloatArray) -> Rows:
    """Return rows that come by in blocks of 65,536 numbers or more, none of them a multiple of another's."""
    size = max(65_536 // X.shape[1], 1_000) + 7

    def blocks() -> Iterator[Block]:
        for start in range(0, len(X), size):
            yield Block(X[start : start + size], y[start : start + size, None], None, intercept=False)

    return StreamRows(blocks)


def _isotropy(name: str, n: int, d: int, kind: Callable[..., Rows], gamma: float) -> Row:
    rng = np.random.default_rng(n + d)
    X = rng.standard_t(2, (n, d)) @ rng.standard_normal((d, d))
    rows = kind(X, X[:, 0])
    return race(
        name,
        lambda: radial_isotropy_of(rows, gamma),
        lambda: radial_isotropy(X, gamma),
        peer_name="one array",
        wanted=at_most(SLOWER),
        judge=lambda ours, known: _same(ours.matrix, known.matrix),
    )


def _l1(name: str, n: int, d: int, kind: Callable[..., Rows], noise: float) -> Row:
    X, y = _labelled(n, d, noise)
    rows = kind(X, y)
    return race(
        name,
        lambda: l1_regression_of(rows),
        lambda: l1_regression(X, y),
        peer_name="one array",
        wanted=at_most(SLOWER),
        judge=lambda ours, known: _same(ours.coef[:, 0], known.coef),
    )


def _labelled(n: int, d: int, noise: float) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    wrong = rng.random(n) < 0.4
    y[wrong] += 10 * rng.standard_normal(int(wrong.sum())) + 5
    return X, y


def _noisy(name: str, n: int, d: int, kind: Callable[..., Rows]) -> Row:
    X, y = _labelled(n, d, 1.0)
    sample = X[: 20 * d]
    start = robust_regression(sample, y[: 20 * d], rng=np.random.default_rng(0))
    position = place(sample, silent)
    rows, coef = kind(X, y), position.to_coordinates(start.coef)

    def in_memory() -> FloatArray:
        placed = Positioned(X @ position.back, y, np.full(n, 1 / n))
        modes, first = None, Estimate(coef, start.scale)
        if start.separated:
            width = float(np.ptp(placed.residuals(coef[None])))
            limits = {"width": width, "least": 0.0, "ridge": 0.0, "tol": 1e-7}
            modes = separate(placed, coef, start.scale, max_iter=500, **limits)
            found = Estimate(modes.coef, modes.scale)
        else:
            found = m_and_d_steps(placed, first, half_of(n, d), tol=1e-7, callback=silent)
        uncertainty_of(position.back, placed, found, modes)
        return np.asarray(position.back @ found.coef)

    return race(
        name,
        lambda: refine_on_table(rows, sample, start).coef,
        in_memory,
        peer_name="one array",
        wanted=at_most(SLOWER),
        judge=_same,
    )


def _same(found: FloatArray, known: FloatArray) -> str:
    error = float(np.abs(found - known).max() / np.abs(known).max())
    if error > SAME:
        raise Incorrect(f"differs by {error:.1e}")
    return f"differs by {error:.0e}"
