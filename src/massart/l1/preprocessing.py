r"""Many rows: guess the answer from few of them, then prove it on all.

When n is much larger than d, almost every row only says on which side of it the answer lies. Two guesses save most of
the passes over X; each ends in the proof of :mod:`massart.l1.program` on all rows, so a wrong guess is noticed.

1. *The sample's answer is the answer.* If the inliers follow a formula exactly, the L1 fit of a small sample finds it;
   one pass finds the rows it fits, and :func:`massart.l1.balance.prove` shows that no other w is better.
2. *The signs far away are known.* Otherwise the sample's answer is improved on all rows by a few Newton steps on the
   smoothed problem, and only the rows close to it stay in play. The others keep the dual :math:`a_i` of their sign
   and enter through the linear term :math:`b = -\sum a_i x_i`. If the solution of this small problem contradicts a
   sign, that row joins the band and the problem is solved again (Portnoy and Koenker's preprocessing, with an exact
   linear term in place of the two aggregated rows).
"""

from __future__ import annotations

import numpy as np

from massart.l1.balance import prove, smooth
from massart.l1.direct import Answer, solve_directly
from massart.l1.program import Program, evaluate
from massart.progress import Callback
from massart.rows import FloatArray

SAMPLE = 64
"""Rows of the sample for every column ..."""

SMALLEST_SAMPLE = 1024
"""... and at least: a smaller problem costs the same, since the interpreter's time dominates."""

LARGE = 8
"""How many samples the rows must amount to for guessing to pay."""

WIDTH = 0.05
"""The share of rows that the smoothed problem sees within its width."""

SMOOTHING_STEPS = 3
"""Newton steps on the smoothed problem: it only has to come close."""

BAND = 96
"""Rows that stay in play for every column, at first."""

ROUNDS = 6
"""How often the band is mended before all rows are solved instead."""


def is_large(problem: Program) -> bool:
    """Whether guessing pays."""
    n, d = problem.design.shape
    return n >= LARGE * _sample_size(d)


def _sample_size(d: int) -> int:
    return max(SAMPLE * d, SMALLEST_SAMPLE)


def solve_by_guess(problem: Program, max_iter: int, callback: Callback) -> Answer | None:
    """Return a proven answer from one of the two guesses, or None. The problem has no linear term of its own."""
    n, d = problem.design.shape
    # A generator of its own, seeded by n: the answer must not depend on anything but the data.
    index = np.sort(np.random.default_rng(n).choice(n, _sample_size(d), replace=False, shuffle=False))
    sample = problem.restricted(index, np.zeros(d))
    guess = solve_directly(sample, max_iter, callback, fall_back=False)
    n_iter = guess.n_iter
    point = evaluate(problem, guess.point.w)
    if np.count_nonzero(point.fitted) > 2 * np.count_nonzero(guess.point.fitted):
        _, start = prove(sample, guess.point)
        point, _ = prove(problem, point, start)
        if point.optimal:
            return Answer(point, n_iter, False)
    if np.count_nonzero(point.fitted) >= WIDTH * n:
        return None  # the width would be 0: an exact fit of many rows that is still not the best
    return _solve_band(problem, point.w, point.r, n_iter, max_iter, callback)


def _solve_band(
    problem: Program, w: FloatArray, r: FloatArray, n_iter: int, max_iter: int, callback: Callback
) -> Answer | None:
    n, d = problem.design.shape
    width = float(np.partition(np.abs(r), int(WIDTH * n))[int(WIDTH * n)])
    r = problem.residuals(smooth(problem, w, width, SMOOTHING_STEPS))
    positive = r > 0
    # How far a row's residual is from changing its sign, in units of how much the row reacts to an error of w.
    distance = np.abs(r)
    distance /= np.maximum(problem.design.sizes(1.0 / problem.design.lengths), np.finfo(float).tiny)
    size = BAND * d
    band = np.zeros(n, dtype=bool)
    for _ in range(ROUNDS):
        if 2 * size > n:
            return None
        band[np.argpartition(distance, size)[:size]] = True
        index = np.flatnonzero(band)
        a = np.where(positive, problem.hi, -problem.lo)
        a[index] = 0.0
        inner = problem.restricted(index, problem.b - problem.design.transposed_times(a))
        answer = solve_directly(inner, max_iter, callback, fall_back=False)
        n_iter += answer.n_iter
        if answer.point.optimal:
            wrong = (problem.residuals(answer.point.w) > 0) != positive
            wrong[index] = False
            if not wrong.any():
                a[index] = answer.point.a
                point = evaluate(problem, answer.point.w, a)
                return Answer(point, n_iter, False) if point.optimal else None
            if np.count_nonzero(wrong) <= index.size:
                band |= wrong
                continue
        # Unbounded within so narrow a band, or far off: start again from a wider one.
        size *= 4
    return None
