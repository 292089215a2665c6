r"""Robust regression when the right labels are noisy: the public function and its result.

More than half of the rows follow :math:`y_i = x_i^\top w^* + \sigma e_i`; the labels of the others are arbitrary. The
estimate withstands them (starts from Algorithm 2's answer, L1 regression in radial-isotropic position, FAST-LTS and
sets of neighbours), separates them where they are a mode of their own, and loses little where there are none (Tukey's
biweight at 95 % efficiency, the MM-estimate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from massart.fast_lts import quantile
from massart.progress import Callback, silent
from massart.robust.biweight import NORMAL_MEDIAN, m_scale, slope, tuning_for_efficiency, weight
from massart.robust.concentration import (
    SCREENED_ROWS,
    Positioned,
    find_starts,
    reach_all_directions,
    starting_planes,
)
from massart.robust.exactness import agreeing_rows, solve_exactly
from massart.robust.modes import Modes, screened, separate, single_likelihood
from massart.robust.position import Position, place
from massart.robust.refinement import (
    Estimate,
    choose_ridge,
    d_scale,
    m_and_d_steps,
    m_steps,
    s_steps,
)
from massart.robust.uncertainty import UNDETERMINED, Pull, covariance_of, standard_errors_of
from massart.rows import BoolArray, FloatArray, check_labels, check_matrix, check_weights, precision_of
from massart.rows.scaling import power_of_two

EFFICIENCY = 0.95
"""Of the M-step when all rows are right, against least squares."""

CUTOFF = 3.0
"""Rows within so many scales are inliers."""

MOST_STEPS = 500
"""Re-weighted least-squares steps."""

_LEAST_BREAKDOWN = 0.1
_SCREENING_STEPS, _MODE_STEPS = 5, 60  # that tell good planes from bad ones, and that follow good ones
_FEWEST_PLANES, _MOST_PLANES, _FOLLOWED = 5, 50, 5  # how many are looked at, and followed
_MOST_WIDENED = 1.6  # scales of the right mode that M-steps begin with at most: beyond it they reach the other
_S_STARTS = 3  # planes of small M-scale from which S-steps are taken
_FAR_LIKELIER = 14.0  # twice the difference of log-likelihoods
_SETTLED = 10  # rows a column, below which the likeliest mode may be an accident
_MODE_SHRINKAGES = 3  # times that lambda is chosen again
_MODE_WORK = 5e9  # multiplications for each of these
_SHRINKAGES = 8  # times that lambda and the scale are chosen again
_ROUGH = 1e-3  # tolerance of M-steps on the way


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
    weights : array of shape (n,)
        Robustness weight of each row, from 1 (right) to 0 (wrong); the probability to be right where wrong rows are a
        mode of their own.
    inliers : boolean array of shape (n,)
        Rows with :math:`|y_i - x_i^\top w| \le 3` times `scale`; for an exact fit, those that agree.
    covariance : array of shape (d, d)
        Of `coef`, in the directions that the trusted rows determine; zero in the others.
    standard_errors : array of shape (d,)
        Square roots of the diagonal of `covariance`; infinite for a coefficient that the trusted rows do not
        determine (redundant columns, a dummy of which every row is wrong), 0 in an exact fit. Shrinkage makes them
        smaller and the coefficients biased towards 0.
    ridge : float
        :math:`\lambda` of the penalty :math:`\lambda |w|^2` on the weighted sum of squared residuals; 0 for none.
    rank : int
        The rank of X (of its rows of positive weight).
    n_iter : int
        Re-weighted least-squares steps.
    status : Status
    separated : bool
        Whether wrong rows were found to be a mode of their own: see :mod:`massart.robust.modes`.
    """

    coef: FloatArray
    scale: float
    weights: FloatArray
    inliers: BoolArray
    covariance: FloatArray
    standard_errors: FloatArray
    ridge: float
    rank: int
    n_iter: int
    status: Status
    separated: bool = False


def robust_regression(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    starts: Sequence[ArrayLike] = (),
    rng: np.random.Generator,
    tol: float = 1e-7,
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
        Coefficients to start from besides our own, such as the answer of Algorithm 2.
    rng : numpy.random.Generator
        Draws the random starts.
    tol : float
        The steps end when no trusted row's fit changes by more than this share of the scale.
    callback : callable
        Called with a :class:`~massart.progress.Progress` after each step.

    Returns
    -------
    RobustFit

    Raises
    ------
    ValueError
        Naming the argument that is wrong.

    Notes
    -----
    Steps: place the rows in radial-isotropic position; collect starts (zero, least squares, L1, those given, 500
    random ones) and take concentration steps from each; separate right rows from a mode of wrong ones by EM steps from
    the best of them, from sets of neighbours and from least squares at another height (:mod:`massart.robust.modes`). If
    the likelihood of deleted rows says that there are two modes, the right one is the answer. Else it is the
    M-estimate: S-steps, then M-steps and the D-scale in turn, held near the scale of the start. With fewer than ten
    rows for each of many columns, the fit is shrunk by a ridge that predicts deleted rows well; laws of equivariance
    under linear maps of X hold without one. If the start, or anything on the way, fits more than half of the rows to
    rounding, those rows are solved by least squares and the fit is exact.

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
    labels = _check_vector(y, n)
    sample = check_weights(sample_weight, n)
    given = [_check_start(start, d, j) for j, start in enumerate(starts)]
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy.random.Generator, got {rng!r}")
    if not tol > 0.0:
        raise ValueError(f"tol must be positive, got {tol}")
    precision = max(precision_of(X), precision_of(y))

    # Powers of two bring numbers near one, so that squares neither overflow nor vanish; they change no bit.
    x_unit, y_unit = float(power_of_two(np.abs(matrix).max())), float(power_of_two(_typical(labels)))
    present = np.ones(n, dtype=bool) if sample is None else sample > 0
    counts = np.ones(n) if sample is None else sample / sample[present].mean()
    with np.errstate(over="ignore", under="ignore"):
        problem = _Problem(
            X=matrix[present] / x_unit,
            y=labels[present] / y_unit,
            counts=counts[present],
            precision=precision,
            c=tuning_for_efficiency(EFFICIENCY),
            tol=tol,
            callback=callback,
        )
        unit = y_unit / x_unit
        answer = problem.solve([start / unit for start in given], rng)
        residuals = labels / y_unit - matrix / x_unit @ answer.coef
        if answer.scale == 0.0:
            inliers = agreeing_rows(matrix / x_unit, labels / y_unit, answer.coef, precision)
            weights = inliers.astype(float)
        else:
            inliers = np.abs(residuals) <= CUTOFF * answer.scale
            weights = weight(residuals / answer.scale, problem.c)
            if answer.modes is not None:
                weights = answer.modes.trust_of(residuals)
        return RobustFit(
            coef=answer.coef * unit,
            scale=answer.scale * y_unit,
            weights=weights,
            inliers=inliers,
            covariance=answer.covariance * unit * unit,
            standard_errors=answer.standard_errors * unit,
            ridge=answer.ridge * len(problem.y) * x_unit**2,
            rank=answer.rank,
            n_iter=answer.n_iter,
            status=answer.status,
            separated=answer.modes is not None,
        )


@dataclass(frozen=True, slots=True)
class _Answer:
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
class _Problem:
    """The rows that count, in safe units, and the options of one call."""

    X: FloatArray
    y: FloatArray
    counts: FloatArray  # sample weights of mean 1
    precision: float
    c: float
    tol: float
    callback: Callback

    @property
    def rounding(self) -> float:
        """The standard deviation that rounding gives labels, of which some are alike: a unit over the root of 12."""
        values = np.unique(self.y)
        gaps = np.diff(values)
        return float(gaps.min()) / np.sqrt(12.0) if 1 < len(values) < len(self.y) else 0.0

    def solve(self, given: list[FloatArray], rng: np.random.Generator) -> _Answer:
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
        breakdown, freedom = max(1.0 - half, _LEAST_BREAKDOWN), 1.0 - r / n
        if position.wide:
            # Without it concentration settles on the half that the columns can imitate best.
            blank = Estimate(np.zeros(r), float(m_scale(self.y, rows.shares, breakdown)))
            rows = replace(rows, ridge=choose_ridge(rows, blank, self.c) if blank.scale > 0.0 else 0.0)
        if rows.ridge > 0.0:
            candidates, freedom = find_starts(position, rows, own, half, rng, self.callback), 1.0
        modes, ridge = self._modes(position, rows, candidates, rng)
        if ridge is not None:
            return self._separated(position, replace(rows, ridge=ridge), modes)
        start = self._start(rows, candidates, modes, breakdown, freedom)
        if start.scale > 0.0:
            start = replace(start, coef=reach_all_directions(rows, start.coef, self.c * start.scale))
            refine = self._refine_wide if rows.ridge > 0.0 else self._refine
            start = refine(rows, start, half)
        agreeing = self._agreement(position.back @ start.coef, r, half)
        if agreeing is not None:
            return self._exact(position, agreeing, start.n_iter)
        return self._noisy(position, rows, start)

    def _start(
        self, rows: Positioned, candidates: FloatArray, modes: Modes, breakdown: float, freedom: float
    ) -> Estimate:
        """Return where M-steps start: where S-steps lead, or the plane of the right mode if that is far likelier."""
        planes = np.vstack([candidates, modes.coef])
        scales = m_scale(rows.residuals(planes), rows.shares, breakdown, freedom)
        found = [s_steps(rows, planes[j], breakdown, freedom) for j in np.argsort(scales, kind="stable")[:_S_STARTS]]
        start = min(found, key=lambda estimate: estimate.scale)
        if not modes.stands or len(self.y) < _SETTLED * len(modes.coef) or not start.scale:
            return start
        other = separate(
            rows,
            start.coef,
            start.scale / _MOST_WIDENED,
            width=modes.mixture.width,
            least=self.rounding,
            ridge=rows.ridge,
            max_iter=_SCREENING_STEPS,
            tol=_ROUGH,
        )
        if 2.0 * (modes.likelihood - other.likelihood) > _FAR_LIKELIER:
            start = Estimate(modes.coef, float(scales[-1]), rows.ridge)
        return replace(start, scale=min(start.scale, _MOST_WIDENED * modes.scale))

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
        steps = partial(separate, width=width, least=self.rounding, ridge=rows.ridge)
        most = int(np.clip(_MODE_WORK / (len(found) * work), _SCREENING_STEPS, _MODE_STEPS))
        best = min((steps(few, *plane, max_iter=most, tol=_ROUGH) for plane in found), key=_rank)
        if not best.is_apart(single_likelihood(few, plain, rows.ridge)):
            return best, None
        for _ in range(_MODE_SHRINKAGES if rows.ridge else 0):
            estimate = Estimate(best.coef, best.scale)
            steps.keywords["ridge"] = choose_ridge(few, estimate, self.c, best.trust)
            best = steps(few, best.coef, best.scale, max_iter=_SCREENING_STEPS, tol=_ROUGH)
        steps.keywords["width"] = float(np.ptp(rows.residuals(best.coef[None])))
        limit = int(min(max(_MODE_WORK / (n * r * r), _SCREENING_STEPS), MOST_STEPS))
        final = steps(rows, best.coef, best.scale, max_iter=limit, tol=self.tol, callback=self.callback)
        # With few rows for each column, more steps may end at a few rows that the columns can imitate.
        return final if final.stands or few is not rows else best, steps.keywords["ridge"]

    def _separated(self, position: Position, rows: Positioned, modes: Modes) -> _Answer:
        """Answer with the mode of right rows."""
        agreeing = self._agreement(position.back @ modes.coef, position.rank, half_of(len(self.y), position.rank))
        if agreeing is not None:
            return self._exact(position, agreeing, modes.n_iter)
        estimate = Estimate(modes.coef, modes.scale, rows.ridge, modes.n_iter, modes.converged)
        return self._noisy(position, rows, estimate, modes)

    def _refine(self, rows: Positioned, start: Estimate, half: float) -> Estimate:
        return m_and_d_steps(rows, start, self.c, half, max_iter=MOST_STEPS, tol=self.tol, callback=self.callback)

    def _refine_wide(self, rows: Positioned, start: Estimate, half: float) -> Estimate:
        """Choose the ridge, take M-steps and estimate the scale in turn, from the much shrunk start.

        With few rows for each column, a row that is not trusted is far off just because the fit does not know it. So
        the steps use the median residual where that is larger than the D-scale, which is what they end with.
        """
        estimate, previous = start, np.inf
        rough = max(self.tol, _ROUGH)
        for _ in range(_SHRINKAGES):
            sizes = np.abs(rows.residuals(estimate.coef[None])[0])
            scale = d_scale(rows, estimate, self.c, half)
            if scale == 0.0:
                return replace(estimate, scale=scale)
            scale = max(scale, float(quantile(sizes, rows.shares, 0.5)) / NORMAL_MEDIAN)
            estimate = replace(estimate, scale=scale)
            ridge = choose_ridge(rows, estimate, self.c)
            settled = abs(ridge - estimate.ridge) <= 0.5 * estimate.ridge and abs(scale - previous) <= 0.05 * scale
            estimate = replace(estimate, ridge=ridge)
            estimate = m_steps(rows, estimate, self.c, max_iter=MOST_STEPS, tol=rough, callback=self.callback)
            previous = scale
            if settled:
                break
        estimate = m_steps(rows, estimate, self.c, max_iter=MOST_STEPS, tol=self.tol, callback=self.callback)
        return replace(estimate, scale=d_scale(rows, estimate, self.c, half))

    def _agreement(self, coef: FloatArray, rank: int, half: float) -> BoolArray | None:
        """Return the rows that `coef`, polished on those it fits, reproduces to rounding, if they are enough."""
        agreeing = solve_exactly(self.X, self.y, coef, self.precision)[1]
        enough = agreeing.sum() > rank and self.counts[agreeing].sum() >= half * len(self.y) * (1 - 1e-12)
        return agreeing if enough else None

    def _noisy(self, position: Position, rows: Positioned, estimate: Estimate, modes: Modes | None = None) -> _Answer:
        """Answer with an estimate from noisy rows."""
        covariance, errors = uncertainty_of(position.back, rows, estimate, modes)
        return _Answer(
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

    def _exact(self, position: Position, rows: BoolArray, n_iter: int) -> _Answer:
        """Solve `rows`, which agree, by least squares."""
        X = self.X[rows]
        coef = np.asarray(np.linalg.lstsq(X, self.y[rows], rcond=None)[0])
        _, sizes, axes = np.linalg.svd(X, full_matrices=False)
        basis = axes[sizes > 1e-12 * sizes[0]]
        d = X.shape[1]
        lost = np.linalg.norm(np.eye(d) - basis.T @ basis, axis=1) > UNDETERMINED
        errors = np.where(lost, np.inf, 0.0)
        return _Answer(coef, 0.0, np.zeros((d, d)), errors, 0.0, position.rank, n_iter, Status.EXACT_FIT)

    def _trivial(self, position: Position, rows: Positioned) -> _Answer:
        """Answer for a matrix of zeros, or for too few rows."""
        d, r = self.X.shape[1], position.rank
        nothing = np.zeros((d, d)), np.full(d, np.inf), 0.0, r, 0
        if r > 0:
            coef = np.asarray(np.linalg.lstsq(self.X, self.y, rcond=None)[0])
            return _Answer(coef, 0.0, *nothing, Status.UNDERDETERMINED)
        scale = float(m_scale(self.y, rows.shares, 0.5))
        return _Answer(np.zeros(d), scale, *nothing, Status.CONVERGED if scale > 0.0 else Status.EXACT_FIT)


def uncertainty_of(
    M: FloatArray, rows: Positioned, estimate: Estimate, modes: Modes | None
) -> tuple[FloatArray, FloatArray]:
    """Return the covariance of the coefficients M c, and their standard errors."""
    residuals = rows.residuals(estimate.coef[None])[0]
    if modes is None:
        c, u = tuning_for_efficiency(EFFICIENCY), residuals / estimate.scale
        pull = Pull(weight(u, c), slope(u, c), residuals)
    else:
        pull = Pull(modes.trust, modes.slopes(residuals), residuals)
    covariance, determined = covariance_of(rows, pull, estimate.ridge)
    return M @ covariance @ M.T, standard_errors_of(M, covariance, determined)


def _rank(modes: Modes) -> tuple[bool, float]:
    return not modes.stands, -modes.likelihood


def half_of(n: int, rank: int) -> float:
    """Return h/n: half of the rows, but enough of them to leave `rank` degrees of freedom, as far as LTS allows."""
    return min((n + rank + 1) // 2, max(n // 2 + 1, 2 * rank)) / n


def _typical(labels: FloatArray) -> float:
    sizes = np.abs(labels[labels != 0])
    return float(np.median(sizes)) if sizes.size else 1.0


def _check_vector(y: ArrayLike, n: int) -> FloatArray:
    labels = check_labels(y, n)
    if labels.ndim != 1:
        raise ValueError(f"y must have shape ({n},), got {labels.shape}")
    return labels


def _check_start(start: ArrayLike, d: int, j: int) -> FloatArray:
    array = np.asarray(start, dtype=np.float64)
    if array.shape != (d,) or not np.isfinite(array).all():
        raise ValueError(f"starts[{j}] must be {d} finite numbers, got an array of shape {array.shape}")
    return array
