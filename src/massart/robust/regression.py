r"""Robust regression when the right labels are noisy: the public function, its result, and its steps.

More than half of the rows follow :math:`y_i = x_i^\top w^* + \sigma e_i`; the labels of the others are arbitrary.

1. Place the rows in radial-isotropic position (:mod:`massart.robust.starts`).
2. Collect starts that withstand wrong rows: zero, least squares, L1 and those given, each followed by concentration
   steps. One that more than half of the rows agree with to rounding ends it: an exact fit.
3. Separate right rows from a mode of wrong ones (:mod:`massart.robust.modes`). If the likelihood of deleted rows says
   that there are two modes, the right one is the answer.
4. Else it is the MM-estimate (:mod:`massart.robust.refinement`), Tukey's biweight at 95 % efficiency: from the start of
   the smallest M-scale M-steps and the D-scale in turn, held near the scale of the start.

With fewer than ten rows for each of many columns, the fit is shrunk by a ridge that predicts deleted rows well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from massart.robust.modes import Modes, screened, separate, single_likelihood
from massart.robust.refinement import (
    TUNING,
    UNDETERMINED,
    Estimate,
    agreeing_rows,
    choose_ridge,
    covariance_of,
    m_and_d_steps,
    m_scale,
    slope,
    solve_exactly,
    weight,
)
from massart.robust.starts import (
    NORMAL_MEDIAN,
    RANK,
    SCREENED_ROWS,
    Position,
    Positioned,
    find_starts,
    place,
    starting_planes,
)
from massart.rows import (
    BoolArray,
    Callback,
    FloatArray,
    check_labels,
    check_matrix,
    check_weights,
    power_of_two,
    precision_of,
    silent,
)
from massart.search import quantile

CUTOFF = 3.0
"""Rows within this many scales are inliers."""

_FAR_OFF = 1 / np.finfo(float).eps  # typical labels: whatever is further off is as wrong, and they are its rounding
_LEAST_BREAKDOWN = 0.1
_SCREENING_STEPS, _MODE_STEPS = 5, 60  # that tell good planes from bad ones, and that follow good ones
_FEWEST_PLANES, _FOLLOWED = 5, 2  # how many are looked at in any case, and followed
_MOST_WIDENED = 1.6  # scales of the right mode that M-steps begin with at most: beyond it they reach the other
_MODE_WORK = 5e9  # multiplications for each of these
_TIGHTER = 0.75  # benchmarks/noisy.py, tables with wrong rows of two kinds
_ROUGH = 1e-3  # tolerance of steps on the way


class Status(Enum):
    """How an estimate came about; the value is the message."""

    CONVERGED = "converged: a robust estimate with its scale"
    EXACT_FIT = "exact fit: more than half of the rows agree with the coefficients to rounding, so that the scale is 0"
    ITERATION_LIMIT = "not converged: the iteration limit was reached, and this is the last estimate"
    UNDERDETERMINED = "underdetermined: no more rows than independent columns, so that any labels are fitted exactly"


@dataclass(frozen=True, slots=True)
class RobustFit:
    r"""Coefficients of a regression with wrong rows and noisy right ones.

    Attributes
    ----------
    coef : array of shape (d,)
        w, of minimum norm where X is rank deficient.
    scale : float
        :math:`\sigma`: the standard deviation of the noise on right rows, were it Gaussian. 0 for an exact fit.
    inliers : boolean array of shape (n,)
        Rows with :math:`|y_i - x_i^\top w| \le 3` times `scale`; for an exact fit, those that agree.
    covariance : array of shape (d, d)
        Of `coef`, in the directions that the trusted rows determine; zero in the others.
    standard_errors : array of shape (d,)
        Square roots of the diagonal of `covariance`; infinite for a coefficient that the trusted rows do not
        determine (redundant columns, a dummy of which every row is wrong), 0 in an exact fit. Shrinkage makes them
        smaller and the coefficients biased towards 0.
    status : Status
    """

    coef: FloatArray
    scale: float
    inliers: BoolArray
    covariance: FloatArray
    standard_errors: FloatArray
    status: Status


def robust_regression(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    starts: Sequence[ArrayLike] = (),
    rng: np.random.Generator,
    tol: float = 1e-7,
    max_iter: int = 500,
    callback: Callback = silent,
) -> RobustFit:
    r"""Fit a linear function to the majority of the rows, when even right labels are noisy.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
    sample_weight : array of shape (n,), optional
        How much a row counts. Only ratios matter: weights (2, 1) give the coefficients of the first row repeated, and
        the standard errors of two rows. A row of weight 0 is judged by the fit and has no part in it.
    starts : sequence of arrays of shape (d,)
        Coefficients to start from in addition to our own, such as the answer of Algorithm 2.
    rng : numpy.random.Generator
        Draws sets of neighbours, and the rows of a sample where there are many.
    tol : float
        The steps end when no trusted row's fit changes by more than this share of the scale.
    max_iter : int
        Limit of re-weighted least-squares steps.
    callback : callable
        Called with a :class:`~massart.rows.progress.Progress` after each step.

    Raises
    ------
    ValueError
        Naming the argument that is wrong.

    Notes
    -----
    The steps are listed at the top of this module. Laws of equivariance under linear maps of X hold without a ridge.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.standard_normal(500)
    >>> y[:200] = 50.0
    >>> fit = robust_regression(X, y, rng=rng)
    >>> fit.coef.round(1).tolist(), round(fit.scale, 1), int(fit.inliers[:200].sum())
    ([1.0, -2.0], 0.1, 0)
    """
    matrix = check_matrix(X)
    n, d = matrix.shape
    labels = check_labels(y, n)
    if labels.ndim != 1:
        raise ValueError(f"y must have shape ({n},), got {labels.shape}")
    sample = check_weights(sample_weight, n)
    given = [_check_start(start, d, j) for j, start in enumerate(starts)]
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy.random.Generator, got {rng!r}")
    if not tol > 0.0:
        raise ValueError(f"tol must be positive, got {tol}")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter}")
    precision = max(precision_of(X), precision_of(y))

    # Powers of two bring numbers near one, so that squares neither overflow nor vanish; they change no bit.
    typical = np.median(np.abs(labels[labels != 0])) if labels.any() else 1.0
    x_unit, y_unit = float(power_of_two(np.abs(matrix).max())), float(power_of_two(typical))
    present = np.ones(n, dtype=bool) if sample is None else sample > 0
    counts = np.ones(n) if sample is None else sample / sample[present].mean()
    with np.errstate(over="ignore", under="ignore"):
        every = matrix / x_unit, labels / y_unit
        problem = _Problem(
            every=every,
            X=every[0][present],
            y=np.clip(every[1][present], -_FAR_OFF, _FAR_OFF),
            counts=counts[present],
            precision=precision,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
        )
        unit = y_unit / x_unit
        answer = problem.solve([start / unit for start in given], rng)
        return replace(
            answer,
            coef=answer.coef * unit,
            scale=answer.scale * y_unit,
            covariance=answer.covariance * unit * unit,
            standard_errors=answer.standard_errors * unit,
        )


@dataclass(frozen=True, slots=True)
class _Problem:
    """All rows, and those that count, in safe units, and the options of one call."""

    every: tuple[FloatArray, FloatArray]
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

    def solve(self, given: list[FloatArray], rng: np.random.Generator) -> RobustFit:
        """Return the estimate, from starts that are given and others."""
        position = place(self.X, self.callback)
        n, r = len(self.y), position.rank
        rows = Positioned(position.Z, self.y, self.counts / n)
        if n <= r or r == 0:
            return self._trivial(position, rows)
        half = half_of(n, r)
        own = np.array([np.linalg.lstsq(position.back, start)[0] for start in given]).reshape(-1, r)
        candidates = find_starts(position, rows, own, half, self.callback)
        for candidate in candidates:
            exact = self._exact(position.back @ candidate, r, half)
            if exact is not None:
                return exact
        breakdown = max(1.0 - half, _LEAST_BREAKDOWN)
        if position.wide:
            # Without it concentration settles on the half that the columns can imitate best.
            blank = Estimate(np.zeros(r), float(m_scale(self.y, rows.shares, breakdown)))
            rows = replace(rows, ridge=choose_ridge(rows, blank) if blank.scale > 0.0 else 0.0)
            candidates = find_starts(position, rows, own, half, self.callback) if rows.ridge else candidates
        modes, ridge = self._modes(position, rows, candidates, rng)
        if ridge is not None:
            rows = replace(rows, ridge=ridge)
            estimate = Estimate(modes.coef, modes.scale, ridge, converged=modes.converged)
        else:
            estimate = self._mm_estimate(rows, candidates, modes, half, breakdown)
        exact = self._exact(position.back @ estimate.coef, r, half)
        return exact or self._noisy(position, rows, estimate, None if ridge is None else modes)

    def _mm_estimate(
        self, rows: Positioned, candidates: FloatArray, modes: Modes, half: float, breakdown: float
    ) -> Estimate:
        """Return where M-steps from the candidate of the smallest M-scale lead."""
        n, r = rows.Z.shape
        planes = np.vstack([candidates, modes.coef])
        freedom = 1.0 if rows.ridge > 0.0 else 1.0 - r / n
        scales = m_scale(rows.residuals(planes), rows.shares, breakdown, freedom)
        best = int(np.argmin(scales))
        start = Estimate(planes[best], float(scales[best]), rows.ridge)
        if not start.scale:
            return start
        if modes.stands:
            start = replace(start, scale=min(start.scale, _MOST_WIDENED * modes.scale))
        return m_and_d_steps(rows, start, half, tol=self.tol, max_iter=self.max_iter, callback=self.callback)

    def _modes(
        self, position: Position, rows: Positioned, candidates: FloatArray, rng: np.random.Generator
    ) -> tuple[Modes, float | None]:
        """Return the two modes of the rows, and the ridge of their fit; None for this if there is only one."""
        n, r, least = len(self.y), position.rank, self.rounding
        few, X = rows, self.X
        if n > max(SCREENED_ROWS, 20 * r):
            index = np.sort(rng.choice(n, max(SCREENED_ROWS, 20 * r), replace=False, p=rows.shares))
            few, X = rows.take(index), X[index]
        work = len(few.y) * r * r
        most = max(int(_MODE_WORK / (_SCREENING_STEPS * work)), _FEWEST_PLANES)
        plain = few.least_squares.fit(few.shares[None])[0]
        width = float(np.ptp(few.residuals(np.vstack([plain, candidates])), axis=1).max())
        planes, scales = zip(*islice(starting_planes(position, few, X, candidates, rng), most), strict=True)
        followed = int(np.clip(_MODE_WORK / (_MODE_STEPS * work), 1, _FOLLOWED))
        found = screened(
            few, np.array(planes), np.array(scales), width=width, least=least, steps=_SCREENING_STEPS, most=followed
        )
        most = int(np.clip(_MODE_WORK / (len(found) * work), _SCREENING_STEPS, _MODE_STEPS))
        follow = partial(separate, few, width=width, least=least, max_iter=most, tol=_ROUGH)
        best = min((follow(*plane) for plane in found), key=lambda modes: (not modes.stands, -modes.likelihood))
        best = _tighter(few, candidates, best, follow)
        if not best.is_apart(single_likelihood(few, plain)):
            return best, None
        ridge = rows.ridge
        if ridge:
            ridge = choose_ridge(few, Estimate(best.coef, best.scale), best.trust)
            shrunk = replace(few, ridge=ridge)
            best = separate(
                shrunk, best.coef, best.scale, width=width, least=least, max_iter=_SCREENING_STEPS, tol=_ROUGH
            )
        final = separate(
            replace(rows, ridge=ridge),
            best.coef,
            best.scale,
            width=float(np.ptp(rows.residuals(best.coef[None]))),
            least=least,
            max_iter=int(min(max(_MODE_WORK / (n * r * r), _SCREENING_STEPS), self.max_iter)),
            tol=self.tol,
            callback=self.callback,
        )
        # With few rows for each column, more steps may end at a few rows that the columns can imitate.
        return final if final.stands or few is not rows else best, ridge

    def _noisy(self, position: Position, rows: Positioned, estimate: Estimate, modes: Modes | None = None) -> RobustFit:
        """Answer with an estimate from noisy rows."""
        residuals = rows.residuals(estimate.coef[None])[0]
        if modes is None:  # where errors are those of rounding, half of the rows may lie beyond any scale
            middle = float(quantile(np.abs(residuals), rows.shares, 0.5))
            estimate = replace(estimate, scale=max(estimate.scale, self.precision, middle / TUNING))
            trust, slopes = weight(residuals / estimate.scale), slope(residuals / estimate.scale)
        else:
            trust, slopes = modes.trust, modes.slopes(residuals)
        covariance, errors = covariance_of(position.back, rows, estimate, trust, slopes)
        status = Status.CONVERGED if estimate.converged else Status.ITERATION_LIMIT
        coef, scale = position.back @ estimate.coef, max(estimate.scale, self.rounding)
        return self._answer(coef, scale, status, covariance, errors)

    def _answer(
        self, coef: FloatArray, scale: float, status: Status, covariance: FloatArray, errors: FloatArray
    ) -> RobustFit:
        X, y = self.every
        if scale == 0.0:
            inliers = agreeing_rows(X, y, coef, self.precision)
        else:
            inliers = np.abs(y - X @ coef) <= CUTOFF * scale
        return RobustFit(coef, scale, inliers, covariance, errors, status)

    def _exact(self, coef: FloatArray, rank: int, half: float) -> RobustFit | None:
        """Return the fit of the rows that `coef`, polished on those it fits, reproduces to rounding, if half do."""
        rows = solve_exactly(self.X, self.y, coef, self.precision)[1]
        if rows.sum() <= rank or self.counts[rows].sum() < half * len(self.y) * (1 - 1e-12):
            return None
        X = self.X[rows]
        coef = np.asarray(np.linalg.lstsq(X, self.y[rows], rcond=None)[0])
        _, sizes, axes = np.linalg.svd(X, full_matrices=False)
        basis = axes[sizes > RANK * sizes[0]]
        d = X.shape[1]
        lost = np.linalg.norm(np.eye(d) - basis.T @ basis, axis=1) > UNDETERMINED
        errors = np.where(lost, np.inf, 0.0)
        return self._answer(coef, 0.0, Status.EXACT_FIT, np.zeros((d, d)), errors)

    def _trivial(self, position: Position, rows: Positioned) -> RobustFit:
        """Answer for a matrix of zeros, or for too few rows."""
        d, r = self.X.shape[1], position.rank
        unknown = np.zeros((d, d)), np.full(d, np.inf)
        if r > 0:
            coef = np.asarray(np.linalg.lstsq(self.X, self.y, rcond=None)[0])
            return self._answer(coef, 0.0, Status.UNDERDETERMINED, *unknown)
        scale = float(m_scale(self.y, rows.shares, 0.5))
        status = Status.CONVERGED if scale > 0.0 else Status.EXACT_FIT
        return self._answer(np.zeros(d), scale, status, *unknown)


def _tighter(rows: Positioned, candidates: FloatArray, best: Modes, steps: Callable[..., Modes]) -> Modes:
    """Return the modes, or those about the plane that half of the rows lie closest to, if they are far closer.

    Wrong rows of two kinds may be likelier as a part of a wide right mode than as the one mode of wrong rows.
    """
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


def _check_start(start: ArrayLike, d: int, j: int) -> FloatArray:
    array = np.asarray(start, dtype=np.float64)
    if array.shape != (d,) or not np.isfinite(array).all():
        raise ValueError(f"starts[{j}] must be {d} finite numbers, got an array of shape {array.shape}")
    return array
