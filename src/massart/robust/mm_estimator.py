r"""The steps of a robust estimate: starts, modes, S-steps, M-steps, shrinkage, or an exact fit.

Rows are placed in radial-isotropic position; starts (zero, least squares, L1, given or random ones) are concentrated;
right rows are separated from a mode of wrong ones. If the likelihood of deleted rows says that there are two modes, the
right one is the answer, and else the MM-estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import islice

import numpy as np

from massart.fast_lts import quantile
from massart.robust.biweight import NORMAL_MEDIAN, TUNING, m_scale, slope, weight
from massart.robust.modes import Modes, screened, separate, single_likelihood
from massart.robust.refinement import (
    UNDETERMINED,
    Estimate,
    choose_ridge,
    covariance_of,
    d_scale,
    m_and_d_steps,
    m_steps,
    s_steps,
    solve_exactly,
)
from massart.robust.starts import (
    SCREENED_ROWS,
    Position,
    Positioned,
    find_starts,
    place,
    reach_all_directions,
    starting_planes,
)
from massart.rows import BoolArray, Callback, FloatArray

_LEAST_BREAKDOWN = 0.1
_SCREENING_STEPS, _MODE_STEPS = 5, 60  # that tell good planes from bad ones, and that follow good ones
_FEWEST_PLANES, _MOST_PLANES, _FOLLOWED = 5, 50, 5  # how many are looked at, and followed
_MOST_WIDENED = 1.6  # scales of the right mode that M-steps begin with at most: beyond it they reach the other
_SETTLED = 10  # rows a column, below which the likeliest mode may be an accident
_MODE_SHRINKAGES = 3  # times that lambda is chosen again
_MODE_WORK = 5e9  # multiplications for each of these
_SHRINKAGES = 8  # times that lambda and the scale are chosen again
_TIGHTER = 0.75  # benchmarks/noisy.py, tables with wrong rows of two kinds
_ROUGH = 1e-3  # tolerance of M-steps on the way


class Status(Enum):
    """How an estimate came about; the value is the message."""

    CONVERGED = "converged: a robust estimate with its scale"
    EXACT_FIT = "exact fit: more than half of the rows agree with the coefficients to rounding, so that the scale is 0"
    ITERATION_LIMIT = "not converged: the iteration limit was reached, and this is the last estimate"
    UNDERDETERMINED = "underdetermined: no more rows than independent columns, so that any labels are fitted exactly"


@dataclass(frozen=True, slots=True)
class Answer:
    """An estimate in the units of a problem."""

    coef: FloatArray
    scale: float
    covariance: FloatArray
    standard_errors: FloatArray
    ridge: float
    rank: int
    n_iter: int
    status: Status
    modes: Modes | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """The rows that count, in safe units, and the options of one call."""

    X: FloatArray
    y: FloatArray
    counts: FloatArray  # sample weights of mean 1
    precision: float
    tol: float
    max_iter: int
    callback: Callback

    @property
    def rounding(self) -> float:
        """The standard deviation that rounding gives labels, of which some are alike: a unit over the root of 12."""
        values = np.unique(self.y)
        gaps = np.diff(values)
        return float(gaps.min()) / np.sqrt(12.0) if 1 < len(values) < len(self.y) else 0.0

    def solve(self, given: list[FloatArray], rng: np.random.Generator) -> Answer:
        """Return the estimate, from starts that are given and others."""
        position = place(self.X, self.callback)
        n, r = len(self.y), position.rank
        rows = Positioned(position.Z, self.y, self.counts / n)
        if n <= r or r == 0:
            return self._trivial(position, rows)
        half = half_of(n, r)
        own = np.array([position.to_coordinates(start) for start in given]).reshape(-1, r)
        candidates = find_starts(position, rows, own, half, rng, self.callback)
        for candidate in candidates:
            agreeing = self._agreement(position.back @ candidate, r, half)
            if agreeing is not None:
                return self._exact(position, agreeing, 0)
        breakdown = max(1.0 - half, _LEAST_BREAKDOWN)
        if position.wide:
            # Without it concentration settles on the half that the columns can imitate best.
            blank = Estimate(np.zeros(r), float(m_scale(self.y, rows.shares, breakdown)))
            rows = replace(rows, ridge=choose_ridge(rows, blank) if blank.scale > 0.0 else 0.0)
            candidates = find_starts(position, rows, own, half, rng, self.callback) if rows.ridge else candidates
        modes, ridge = self._modes(position, rows, candidates, rng)
        if ridge is not None:
            rows, estimate = replace(rows, ridge=ridge), Estimate(modes.coef, modes.scale, ridge, modes.n_iter)
            estimate = replace(estimate, converged=modes.converged)
        else:
            estimate = self._mm_estimate(rows, candidates, modes, half, breakdown)
        agreeing = self._agreement(position.back @ estimate.coef, r, half)
        if agreeing is not None:
            return self._exact(position, agreeing, estimate.n_iter)
        return self._noisy(position, rows, estimate, None if ridge is None else modes)

    def _mm_estimate(
        self, rows: Positioned, candidates: FloatArray, modes: Modes, half: float, breakdown: float
    ) -> Estimate:
        """Return where S-steps from the candidate of the smallest M-scale lead, and M-steps from there."""
        n, r = rows.Z.shape
        planes = np.vstack([candidates, modes.coef])
        freedom = 1.0 if rows.ridge > 0.0 else 1.0 - r / n
        scales = m_scale(rows.residuals(planes), rows.shares, breakdown, freedom)
        start = s_steps(rows, planes[int(np.argmin(scales))], breakdown, freedom)
        if not start.scale:
            return start
        if modes.stands and n >= _SETTLED * r:
            start = replace(start, scale=min(start.scale, _MOST_WIDENED * modes.scale))
        start = replace(start, coef=reach_all_directions(rows, start.coef, TUNING * start.scale))
        if rows.ridge > 0.0:
            return self._refine_wide(rows, start, half)
        return m_and_d_steps(rows, start, half, tol=self.tol, max_iter=self.max_iter, callback=self.callback)

    def _modes(
        self, position: Position, rows: Positioned, candidates: FloatArray, rng: np.random.Generator
    ) -> tuple[Modes, float | None]:
        """Return the two modes of the rows, and the ridge of their fit; None for this if there is only one."""
        n, r = len(self.y), position.rank
        few, X = rows, self.X
        if n > max(SCREENED_ROWS, 20 * r):
            index = np.sort(rng.choice(n, max(SCREENED_ROWS, 20 * r), replace=False, p=rows.shares))
            few, X = rows.take(index), X[index]
        work = len(few.y) * r * r
        most = int(np.clip(_MODE_WORK / (_SCREENING_STEPS * work), _FEWEST_PLANES, _MOST_PLANES))
        plain = few.least_squares.fit(few.shares[None])[0]
        width = float(np.ptp(few.residuals(np.vstack([plain, candidates])), axis=1).max())
        planes, scales = zip(*islice(starting_planes(position, few, X, candidates, rng), most), strict=True)
        followed = int(np.clip(_MODE_WORK / (_MODE_STEPS * work), 1, _FOLLOWED))
        found = screened(
            few,
            np.array(planes),
            np.array(scales),
            width=width,
            least=self.rounding,
            steps=_SCREENING_STEPS,
            most=followed,
        )
        steps = partial(separate, width=width, least=self.rounding)
        most = int(np.clip(_MODE_WORK / (len(found) * work), _SCREENING_STEPS, _MODE_STEPS))
        best = min(
            (steps(few, *plane, max_iter=most, tol=_ROUGH) for plane in found),
            key=lambda modes: (not modes.stands, -modes.likelihood),
        )
        best = _tighter(few, candidates, best, partial(steps, few, max_iter=most, tol=_ROUGH))
        if not best.is_apart(single_likelihood(few, plain)):
            return best, None
        ridge = rows.ridge
        for _ in range(_MODE_SHRINKAGES if ridge else 0):
            ridge = choose_ridge(few, Estimate(best.coef, best.scale), best.trust)
            best = steps(replace(few, ridge=ridge), best.coef, best.scale, max_iter=_SCREENING_STEPS, tol=_ROUGH)
        final = separate(
            replace(rows, ridge=ridge),
            best.coef,
            best.scale,
            width=float(np.ptp(rows.residuals(best.coef[None]))),
            least=self.rounding,
            max_iter=int(min(max(_MODE_WORK / (n * r * r), _SCREENING_STEPS), self.max_iter)),
            tol=self.tol,
            callback=self.callback,
        )
        # With few rows for each column, more steps may end at a few rows that the columns can imitate.
        return final if final.stands or few is not rows else best, ridge

    def _refine_wide(self, rows: Positioned, start: Estimate, half: float) -> Estimate:
        """Choose the ridge, take M-steps and estimate the scale in turn, from the much shrunk start.

        With few rows for each column, a row that is not trusted is far off just because the fit does not know it. So
        the steps use the median residual where that is larger than the D-scale, which is what they end with.
        """
        estimate, previous = start, np.inf
        rough = max(self.tol, _ROUGH)
        for _ in range(_SHRINKAGES):
            sizes = np.abs(rows.residuals(estimate.coef[None])[0])
            scale = d_scale(rows, estimate, half)
            if scale == 0.0:
                return replace(estimate, scale=scale)
            scale = max(scale, float(quantile(sizes, rows.shares, 0.5)) / NORMAL_MEDIAN)
            estimate = replace(estimate, scale=scale)
            ridge = choose_ridge(rows, estimate)
            settled = abs(ridge - estimate.ridge) <= 0.5 * estimate.ridge and abs(scale - previous) <= 0.05 * scale
            estimate = replace(estimate, ridge=ridge)
            estimate = m_steps(rows, estimate, tol=rough, max_iter=self.max_iter, callback=self.callback)
            previous = scale
            if settled:
                break
        estimate = m_steps(rows, estimate, tol=self.tol, max_iter=self.max_iter, callback=self.callback)
        return replace(estimate, scale=d_scale(rows, estimate, half))

    def _agreement(self, coef: FloatArray, rank: int, half: float) -> BoolArray | None:
        """Return the rows that `coef`, polished on those it fits, reproduces to rounding, if they are enough."""
        agreeing = solve_exactly(self.X, self.y, coef, self.precision)[1]
        enough = agreeing.sum() > rank and self.counts[agreeing].sum() >= half * len(self.y) * (1 - 1e-12)
        return agreeing if enough else None

    def _noisy(self, position: Position, rows: Positioned, estimate: Estimate, modes: Modes | None = None) -> Answer:
        """Answer with an estimate from noisy rows."""
        if modes is None:  # where errors are those of rounding, half of the rows may lie beyond any scale
            middle = float(quantile(np.abs(rows.residuals(estimate.coef[None])[0]), rows.shares, 0.5))
            estimate = replace(estimate, scale=max(estimate.scale, self.precision, middle / TUNING))
        residuals = rows.residuals(estimate.coef[None])[0]
        if modes is None:
            trust, slopes = weight(residuals / estimate.scale, TUNING), slope(residuals / estimate.scale, TUNING)
        else:
            trust, slopes = modes.trust, modes.slopes(residuals)
        covariance, errors = covariance_of(position.back, rows, estimate, trust, slopes)
        return Answer(
            coef=position.back @ estimate.coef,
            scale=max(estimate.scale, self.rounding),
            covariance=covariance,
            standard_errors=errors,
            ridge=estimate.ridge,
            rank=position.rank,
            n_iter=estimate.n_iter,
            status=Status.CONVERGED if estimate.converged else Status.ITERATION_LIMIT,
            modes=modes,
        )

    def _exact(self, position: Position, rows: BoolArray, n_iter: int) -> Answer:
        """Solve `rows`, which agree, by least squares."""
        X = self.X[rows]
        coef = np.asarray(np.linalg.lstsq(X, self.y[rows], rcond=None)[0])
        _, sizes, axes = np.linalg.svd(X, full_matrices=False)
        basis = axes[sizes > 1e-12 * sizes[0]]
        d = X.shape[1]
        lost = np.linalg.norm(np.eye(d) - basis.T @ basis, axis=1) > UNDETERMINED
        errors = np.where(lost, np.inf, 0.0)
        return Answer(coef, 0.0, np.zeros((d, d)), errors, 0.0, position.rank, n_iter, Status.EXACT_FIT)

    def _trivial(self, position: Position, rows: Positioned) -> Answer:
        """Answer for a matrix of zeros, or for too few rows."""
        d, r = self.X.shape[1], position.rank
        nothing = np.zeros((d, d)), np.full(d, np.inf), 0.0, r, 0
        if r > 0:
            coef = np.asarray(np.linalg.lstsq(self.X, self.y, rcond=None)[0])
            return Answer(coef, 0.0, *nothing, Status.UNDERDETERMINED)
        scale = float(m_scale(self.y, rows.shares, 0.5))
        return Answer(np.zeros(d), scale, *nothing, Status.CONVERGED if scale > 0.0 else Status.EXACT_FIT)


def _tighter(rows: Positioned, candidates: FloatArray, best: Modes, steps: Callable[..., Modes]) -> Modes:
    """Return the modes, or those about the plane that half of the rows lie closest to, if they are far closer.

    Wrong rows of two kinds may be likelier as a part of a wide right mode than as the one mode of wrong rows.
    """
    if len(rows.y) < _SETTLED * len(best.coef):
        return best
    half = half_of(len(rows.y), len(best.coef))
    reach = quantile(np.abs(rows.residuals(np.vstack([candidates, best.coef]))), rows.shares, half)
    j = int(np.argmin(reach[:-1]))
    if reach[j] > _TIGHTER * reach[-1]:
        return best
    other = steps(candidates[j], float(reach[j]) / NORMAL_MEDIAN / 2)
    closer = quantile(np.abs(rows.residuals(other.coef[None])[0]), rows.shares, half)
    return other if other.stands and closer < _TIGHTER * reach[-1] else best


def half_of(n: int, rank: int) -> float:
    """Return h/n: half of the rows, but enough of them to leave `rank` degrees of freedom, as far as LTS allows."""
    return min((n + rank + 1) // 2, max(n // 2 + 1, 2 * rank)) / n
