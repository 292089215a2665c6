r"""Noisy inliers: right labels are :math:`f(w \cdot x)` up to noise, before the link clips or after.

:func:`find_noisy` asks whether there is such a formula, and returns it with its standard errors.

Where :math:`w \cdot x` is far from the limits, by some scales of the noise, both kinds of noise are noise of a linear
formula, and which rows these are does not depend on their labels (the idea of Powell's symmetrically censored least
squares, 1986). So a robust linear fit of those rows is neither biased by the labels that were clipped nor by the choice
of the rows; the fit says which rows are far, and so on until they stay the same. A label at a limit, far inside, is
wrong for sure and left out.

Rows at a limit do not mislead that fit, and it does not use them. In a last step (:func:`refine_censored`) they count:
a right label inside the limits has the density of :math:`N(w \cdot x, \sigma^2)`, one at a limit the probability of
what lies beyond (Tobin 1958, *Estimation of relationships for limited dependent variables*). A wrong one is anywhere
inside, or at a limit, with a share of its own, so that the trust in each row is the probability that it is right. EM
steps from the robust fit alternate between these and least squares, with the expected product in place of a label that
was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_ndtr

from massart.certificate import Span, span_of
from massart.isotropy import decompose
from massart.l1 import l1_regression
from massart.recover.polish import NEAR
from massart.recover.settings import Options
from massart.robust import Inliers, RobustFit, judge_inliers, robust_regression
from massart.rows import Agreement, BoolArray, FloatArray, Link, Sample, Verified, verify
from massart.search import Consensus, Limits, alternate

FEWEST_SURPLUS = 10
"""Rows beyond those that any formula fits, of a majority that nearly agrees."""

FAR = 2.5
"""Scales of the noise from the limits at which clipping does not matter: it touches one label in 160."""

NORMAL_MEDIAN = 0.6745
"""Of the size of a standard normal number."""

CUTOFF = 3.0
"""Within this many times the median residual a row is explained by a start."""

FEWEST_AT_LIMIT, NEAR_START = 0.02, 15.0
"""Share of the rows at a limit, from which on they are worth counting; and standard errors of the robust fit within
which the answer must be: else the rows at the limit follow something else."""

_ROUNDS = 10
_ALTERNATIONS = 8
_DIRECTIONS = 4
_TINY = 1e-9
_EDGE = 1e-10  # the last inlier is one in any arithmetic
_FEWEST = 2  # rows a column, of those that a start must leave active
_STEPS, _AT_REST = 500, 1e-8  # of EM
_RIGHT = 0.9  # share to start with
_LOG_ROOT = 0.5 * np.log(2 * np.pi)


LEAST_INSIDE, MOST_SPREAD, LOOKED_AT = 0.8, 0.4, 300
"""Noise is plain where so large a share of the rows lies within `CUTOFF` scales of a formula, and the scale is at most
so large a part of the spread of the labels; of this many rows. With .75, one of 1,200 exact tables with 45 % wrong was
called noisy, with .8 none of 2,000 others (`benchmarks/speed.py`, "chance")."""

_NEAREST, _FITS = 0.55, 3  # share of the rows that L1 regression fits again, and how often
_ROWS_A_COLUMN = 10


@dataclass(frozen=True, slots=True)
class NoisyFit:
    """A formula whose inliers are noisy.

    Attributes
    ----------
    coef, standard_errors : (d,) arrays
    covariance : (d, d) array
        Of `coef`, in the directions that the inliers determine; zero in the others.
    scale : float
        Robust scale of the residuals of inliers.
    reach : float
        The largest residual of an inlier.
    span : Span
        Of the inliers.
    """

    coef: FloatArray
    standard_errors: FloatArray
    covariance: FloatArray
    scale: float
    reach: float
    span: Span


def is_plain_noise(sample: Sample, first: FloatArray, levels: Sequence[Agreement], rng: np.random.Generator) -> bool:
    """Return whether rows follow a linear formula up to noise and, as far as a glimpse shows, none exactly.

    From `first` and L1 answers of other weights, L1 regression of the nearest rows goes on to where most rows are. If
    more rows than chance gives agree on the way, an exact rule is possible, and it takes a search to tell.
    """
    n, d = sample.X.shape
    if sample.weights is not None or n < _ROWS_A_COLUMN * d:
        return False
    some = sample.take(rng.choice(n, min(n, max(LOOKED_AT, 2 * _ROWS_A_COLUMN * d)), replace=False))
    X, y = some.X, some.y
    most = MOST_SPREAD * float(np.median(np.abs(y - np.median(y))))
    closest, inside = np.inf, 0.0
    for start in (first, None, *rng.exponential(size=(2, len(y)))):
        w = first if start is first else l1_regression(X, y, sample_weight=start).coef
        for _ in range(_FITS + 1):
            if any(_is_beyond_chance(verify(X, y, w, level.uncapped), d) for level in levels):
                return False
            sizes = np.abs(y - X @ w)
            middle = float(np.median(sizes))
            if middle < closest:
                closest, inside = middle, float(np.mean(sizes <= CUTOFF * middle / NORMAL_MEDIAN))
            nearest = sizes <= np.quantile(sizes, _NEAREST)
            w = l1_regression(X[nearest], y[nearest]).coef
        if inside < LEAST_INSIDE or closest > most:  # most exact tables end with the first start
            return False
    return True


def _is_beyond_chance(found: Verified, d: int) -> bool:
    """Return whether more rows agree than any formula fits and the rows next to them explain."""
    beside = np.count_nonzero(~found.agree & (np.abs(found.residuals) <= 3 * found.half_widths)) / 2
    return bool(np.count_nonzero(found.agree) > d + 1 + beside + 3 * np.sqrt(beside))


def find_noisy(
    sample: Sample,
    exact: FloatArray | None,
    agreement: Agreement,
    *,
    link: Link,
    options: Options,
    forced: bool,
    sharp: bool = False,
) -> NoisyFit | None:
    """Return the formula that the rows follow up to noise; None where they follow none, or one exactly.

    Parameters
    ----------
    sample : Sample
        With one label column.
    exact, agreement : (d,) array or None, and Agreement
        The best formula of the exact search, if there was one: a link that clips needs it.
    link : Link
    options : Options
    forced : bool
        Whether the caller has said that labels are noisy.
    sharp : bool
        Whether `exact` is an exact rule for sure (:func:`massart.recover.certification.stands_out`): then labels are
        noisy only if a majority clearly follows another formula.
    """
    found = _robust_fit(sample, exact, link, options)
    if found is None or found[0].scale == 0:
        return None
    fit, part = found
    if sharp and not forced:
        assert exact is not None
        if not _is_another(part, exact, fit):
            return None
    if not forced and not _barely_noisy(part, fit):
        assert exact is not None, "without a search labels are known to be noisy"
        if not _looks_noisy(part, exact, fit, agreement, options):
            return None
    reach = float(np.abs(part.y - part.X @ fit.coef)[fit.inliers].max()) * (1 + _EDGE)
    span = span_of(part.X[fit.inliers])
    answer = NoisyFit(fit.coef, fit.standard_errors, fit.covariance, fit.scale, reach, span)
    return answer if link.invertible else refine_censored(sample, answer, link)


def _is_another(part: Sample, exact: FloatArray, fit: RobustFit) -> bool:
    """Return whether most rows follow a noisy formula whose slopes their noise tells from those of the exact one.

    Labels that scatter about an exact rule are wrong, wherever they scatter about it: a constant makes no difference.
    """
    differences = part.X @ (fit.coef - exact)
    if (part.X[:, -1] == part.X[0, -1]).all():
        differences = differences - np.median(differences)
    return bool(2 * np.count_nonzero(fit.inliers & (np.abs(differences) > CUTOFF * fit.scale)) > len(differences))


def _barely_noisy(part: Sample, fit: RobustFit) -> bool:
    """Return whether a majority nearly agrees: noise about as large as rounding needs no test."""
    n, d = part.X.shape
    sizes = np.abs(part.X) @ np.abs(fit.coef) + np.abs(part.y)
    enough = max(n / 2, d + FEWEST_SURPLUS, 2 * d)
    return bool(fit.inliers.sum() > enough and fit.scale <= NEAR * float(np.median(sizes)))


def _looks_noisy(part: Sample, exact: FloatArray, fit: RobustFit, agreement: Agreement, options: Options) -> bool:
    """Return whether a part of the sample follows a formula up to noise, rather than exactly or not at all."""
    judged = _judge_inliers(part, (exact, fit.coef), options)
    if judged is not Inliers.EXACT:
        return judged is Inliers.NOISY
    # An exact minority may be wrong labels by a rule, such as one value for all of them: then the rest decides, unless
    # most of what follows a formula up to noise follows it exactly.
    rest = ~agreement.agree(part.X, part.y, exact)
    if 2 * np.count_nonzero(fit.inliers & ~rest) > np.count_nonzero(fit.inliers):
        return False
    others = part.take(rest)
    return bool(2 * rest.sum() > len(rest)) and _judge_inliers(others, (exact, fit.coef), options) is Inliers.NOISY


def _judge_inliers(part: Sample, candidates: tuple[FloatArray, ...], options: Options) -> Inliers:
    return judge_inliers(
        part.X, part.y, candidates, sample_weight=part.weights, rng=options.rng, callback=options.callback
    ).inliers


def _robust_fit(
    sample: Sample, start: FloatArray | None, link: Link, options: Options
) -> tuple[RobustFit, Sample] | None:
    """Fit the rows that w leaves far from the limits; return the fit, and these rows with their products for labels.

    None if hardly any label is decisive.
    """

    def fit_to(part: Sample, starts: tuple[FloatArray, ...]) -> RobustFit:
        return robust_regression(
            part.X, part.y, sample_weight=part.weights, starts=starts, rng=options.rng, callback=options.callback
        )

    products = replace(sample, y=link.inverse(sample.y))
    if link.invertible:
        return fit_to(products, () if start is None else (start,)), products
    assert start is not None, "a link that clips needs a start"
    X, y, counts = sample.X, sample.y, sample.counts
    fewest = _FEWEST * X.shape[1]
    decisive = link.decisive(y) & X.any(axis=1) & (counts > 0)
    if decisive.sum() <= fewest:
        return None
    w = _best_start(X, y, counts, start, link, options.rng)
    rows = _far(X @ w, decisive, link, 0.0)
    if rows.sum() <= fewest:
        rows = decisive
    seen: set[bytes] = set()
    while True:
        part = products.take(rows)
        fit = fit_to(part, (w,))
        seen.add(rows.tobytes())
        now = _far(X @ fit.coef, decisive, link, FAR * fit.scale)
        if now.sum() <= fewest or now.tobytes() in seen or len(seen) >= _ROUNDS:
            return fit, part
        w, rows = fit.coef, now


def _far(products: FloatArray, decisive: BoolArray, link: Link, distance: float) -> BoolArray:
    """Return the decisive rows whose product is farther than `distance` from the limits."""
    return np.asarray(decisive & (products > link.lower + distance) & (products < link.upper - distance))


def _best_start(
    X: FloatArray, y: FloatArray, counts: FloatArray, start: FloatArray, link: Link, rng: np.random.Generator
) -> FloatArray:
    """Return the coefficients that explain a majority most closely, of `start` and L1 answers on active rows."""
    problem, basis = _problem(X, y, counts, link)
    mean = problem.Z[problem.decisive].sum(axis=0)
    directions = [mean, *rng.standard_normal((_DIRECTIONS, len(mean)))]
    candidates = [start]
    for direction in directions:
        *_, answer = alternate(problem, _TINY * direction, _ALTERNATIONS)
        candidates.append(basis @ answer)
    return candidates[_closest(np.stack(candidates), X, y, counts, link)]


def _closest(starts: FloatArray, X: FloatArray, y: FloatArray, counts: FloatArray, link: Link) -> int:
    """Return which coefficients explain a majority most closely."""
    products = starts @ X.T
    residuals = np.abs(y - link(products))
    active, decisive = link.decisive(products), link.decisive(y)
    spreads = [
        _spread(r[rows & decisive], counts[rows & decisive], counts[rows].sum() / 2)
        for r, rows in zip(residuals, active, strict=True)
    ]
    explained = residuals <= CUTOFF * np.array(spreads)[:, None]
    # An adversary's rule may be exact where the right one is noisy: it takes a majority, and then the smallest spread.
    minority = 2 * (explained @ counts) <= counts.sum()
    return int(np.lexsort((spreads, minority))[0])


def _spread(residuals: FloatArray, counts: FloatArray, majority: float) -> float:
    """Return the residual that more than `majority` of the weight does not exceed: infinite if there is less."""
    order = np.argsort(residuals)
    reached = np.flatnonzero(np.cumsum(counts[order]) > majority)
    return float(residuals[order[reached[0]]]) if len(reached) else np.inf


def _problem(X: FloatArray, y: FloatArray, counts: FloatArray, link: Link) -> tuple[Consensus, FloatArray]:
    """Return the rows as a problem with limits in the coordinates of the first piece, and these coordinates."""
    used = X.any(axis=1) & (counts > 0)
    piece = decompose(X[used], sample_weight=counts[used])[0]
    whole = piece.subspace.shape[1] == X.shape[1]
    basis = piece.subspace @ piece.matrix.T if whole else np.eye(X.shape[1])
    Z = X[used] @ basis
    lengths = np.linalg.norm(Z, axis=1)
    labels = np.clip(y[used], link.lower, link.upper)
    limits = Limits(link.lower / lengths, link.upper / lengths, link.decisive(labels))
    nothing = np.zeros(len(Z))
    return Consensus(Z / lengths[:, None], labels / lengths, nothing, 0.0, counts[used], lengths, limits), basis


def refine_censored(sample: Sample, start: NoisyFit, link: Link) -> NoisyFit:
    """Take a robust fit to the rows at the limits; it stays where they are few, or where that leads elsewhere."""
    X, y, counts, w, scale = sample.X, sample.y, sample.counts, start.coef, start.scale
    at_lower, at_upper = y == link.lower, y == link.upper
    if link.slope or (y < link.lower).any() or (y > link.upper).any() or not np.isfinite(start.standard_errors).all():
        return start
    if counts @ (at_lower | at_upper) < FEWEST_AT_LIMIT * counts.sum():
        return start
    inside = ~(at_lower | at_upper)
    width = float(np.ptp(y[inside])) or 1.0
    right, wrong_inside = _RIGHT, 0.5
    trust = expected = spare = np.zeros(len(y))
    for _ in range(_STEPS):
        mean = X @ w
        log_right, expected, spare = _behind(mean, y, scale, link, at_lower, at_upper)
        log_wrong = np.where(inside, np.log(wrong_inside / width), np.log((1 - wrong_inside) / 2))
        trust = expit(np.log(right / (1 - right)) + log_right - log_wrong)
        a = counts * trust
        gram = (X * a[:, None]).T @ X
        following = np.linalg.lstsq(gram, (a * expected) @ X, rcond=None)[0]
        change = float(np.abs(X @ (following - w)).max()) / scale
        w = following
        scale = float(np.sqrt(a @ ((expected - X @ w) ** 2 + spare) / max(a.sum() - X.shape[1], 1.0)))
        if not 0 < scale < np.inf:  # no row between the limits is trusted
            return start
        right = float(np.clip(a.sum() / counts.sum(), 0.5, 1 - 1e-6))
        off = counts * (1 - trust)
        wrong_inside = float(np.clip(off @ inside / max(off.sum(), 1e-300), 0.01, 0.99))
        if change <= _AT_REST:
            break
    if right <= 0.5 or not np.all(np.abs(w - start.coef) <= NEAR_START * start.standard_errors):
        return start
    a = counts * trust
    bread = np.linalg.pinv((X * (a * (1 - spare / scale**2))[:, None]).T @ X)
    force = a * (expected - X @ w)
    covariance = bread @ ((X * force[:, None] ** 2).T @ X) @ bread
    return NoisyFit(w, np.sqrt(covariance.diagonal()), covariance, scale, CUTOFF * scale, start.span)


def _behind(
    mean: FloatArray, y: FloatArray, scale: float, link: Link, at_lower: BoolArray, at_upper: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log-likelihood of right labels, the expected product behind each, and the variance that is left."""
    log_right = -_LOG_ROOT - np.log(scale) - 0.5 * ((y - mean) / scale) ** 2
    expected, spare = y.copy(), np.zeros(len(y))
    for rows, limit, sign in ((at_lower, link.lower, 1.0), (at_upper, link.upper, -1.0)):
        if rows.any():
            beyond = sign * (limit - mean[rows]) / scale
            log_right[rows] = log_ndtr(beyond)
            ratio = np.exp(-_LOG_ROOT - 0.5 * beyond**2 - log_ndtr(beyond))
            expected[rows] = mean[rows] - sign * scale * ratio
            spare[rows] = scale**2 * np.clip(1 - beyond * ratio - ratio**2, 0, 1)
    return log_right, expected, spare
