r"""Noisy inliers: right labels are :math:`f(w \cdot x)` up to noise, before the link clips or after.

:func:`find_noisy` asks whether there is such a formula, and returns it with its standard errors.

Where :math:`w \cdot x` is far from the limits, by some scales of the noise, both kinds of noise are noise of a linear
formula, and which rows these are does not depend on their labels (the idea of Powell's symmetrically censored least
squares, 1986). So a robust linear fit of those rows is neither biased by the labels that were clipped nor by the choice
of the rows; the fit says which rows are far, and so on until they stay the same. A label at a limit, far inside, is
wrong for sure and left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from massart.certificate import Span, span_of
from massart.isotropy import decompose
from massart.recover.censored import refine_censored
from massart.recover.polish import NEAR, least_squares
from massart.recover.propose import Options
from massart.robust import Inliers, RobustFit, judge_inliers, robust_regression
from massart.rows import Agreement, BoolArray, FloatArray, Link, Sample, verify
from massart.search import Consensus, Limits, alternate

FEWEST_SURPLUS = 10
"""Rows beyond those that any formula fits, of a majority that nearly agrees."""

UNITS_SHARE, MOST_UNITS, NEARLY_ALL, ONE_SIDE = 0.05, 2.5, 0.95, 0.3
"""Noise of the last place: more than this share of rows does not agree, nearly all of those are off by so few units,
and at least this share of them to either side."""

FAR = 2.5
"""Scales of the noise from the limits at which clipping does not matter: it touches one label in 160."""

CUTOFF = 3.0
"""Within so many times the median residual a row is explained by a start."""

_ROUNDS = 10
_ALTERNATIONS = 8
_DIRECTIONS = 4
_TINY = 1e-9
_EDGE = 1e-10  # the last inlier is one in any arithmetic
_FEWEST = 2  # rows a column, of those that a start must leave active


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


def find_noisy(
    sample: Sample,
    exact: FloatArray | None,
    agreement: Agreement,
    link: Link,
    options: Options,
    *,
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
        Whether `exact` is an exact rule for sure (:func:`massart.recover.sharpness.stands_out`): then labels are noisy
        only if a majority clearly follows another formula.
    """
    found = _fit_part(sample, exact, link, options)
    if found is None:
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
    if link.invertible:
        return answer
    better = refine_censored(sample.X, sample.y, sample.counts, fit.coef, fit.standard_errors, fit.scale, link)
    if better is None:
        return answer
    errors = np.sqrt(better.covariance.diagonal())
    return replace(
        answer,
        coef=better.coef,
        standard_errors=errors,
        covariance=better.covariance,
        scale=better.scale,
        reach=CUTOFF * better.scale,
    )


def noise_of_units(sample: Sample, coef: FloatArray, agreement: Agreement, link: Link) -> NoisyFit | None:
    """Return the estimate of labels on a grid that are off by a unit or two, to both sides; None where they are not.

    Such rows are not wrong: right labels carry noise that is about as large as their last place, and the rows that
    agree do so because noise was rounded away.
    """
    found = verify(sample.X, sample.y, coef, agreement, link)
    unit, off = agreement.unit, ~found.agree
    if not agreement.rounded or unit is None or off.sum() <= UNITS_SHARE * len(off) or not link.invertible:
        return None
    signed = found.residuals[off] / unit
    if (np.abs(signed) > MOST_UNITS).mean() > 1 - NEARLY_ALL or not ONE_SIDE < (signed > 0).mean() < 1 - ONE_SIDE:
        return None
    near = np.abs(found.residuals) <= MOST_UNITS * unit
    X, y = sample.X[near], link.inverse(sample.y[near])
    columns = span_of(X).columns
    fit = coef.copy()
    fit[columns] += least_squares(X[:, columns], y - X @ coef)
    scale = float(np.sqrt(((y - X @ fit) ** 2).sum() / max(len(y) - len(columns), 1)))
    errors, covariance = np.full(len(coef), np.nan), np.zeros((len(coef), len(coef)))
    inverse = scale * np.linalg.pinv(X[:, columns])
    covariance[np.ix_(columns, columns)] = inverse @ inverse.T
    errors[columns] = np.linalg.norm(inverse, axis=1)
    return NoisyFit(fit, errors, covariance, scale, MOST_UNITS * unit, span_of(X))


def _fit_part(
    sample: Sample, start: FloatArray | None, link: Link, options: Options
) -> tuple[RobustFit, Sample] | None:
    """Fit the rows far from the limits; return the fit and these rows with their products for labels. None if exact."""
    found = _robust_fit(sample, start, link, options)
    if found is None or found[0].scale == 0:
        return None
    fit, rows = found
    return fit, replace(sample.take(rows), y=link.inverse(sample.y[rows]))


def _is_another(part: Sample, exact: FloatArray, fit: RobustFit) -> bool:
    """Return whether most rows follow a noisy formula whose slopes their noise tells from those of the exact one.

    Labels that scatter about an exact rule are wrong, wherever they scatter about it: a constant is no difference.
    """
    differences = part.X @ (fit.coef - exact)
    if (part.X[:, -1] == part.X[0, -1]).all():
        differences = differences - np.median(differences)
    return bool(2 * np.count_nonzero(fit.inliers & (np.abs(differences) > CUTOFF * fit.scale)) > len(differences))


def _barely_noisy(part: Sample, fit: RobustFit) -> bool:
    """Tell whether a majority nearly agrees: noise about as large as rounding needs no test."""
    n, d = part.X.shape
    sizes = np.abs(part.X) @ np.abs(fit.coef) + np.abs(part.y)
    enough = max(n / 2, d + FEWEST_SURPLUS, 2 * d)
    return bool(fit.inliers.sum() > enough and fit.scale <= NEAR * float(np.median(sizes)))


def _looks_noisy(part: Sample, exact: FloatArray, fit: RobustFit, agreement: Agreement, options: Options) -> bool:
    """Tell whether a part of the sample follows a formula up to noise, rather than exactly or not at all."""
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
) -> tuple[RobustFit, BoolArray] | None:
    """Fit w to the rows that it leaves far from the limits: return the fit of :math:`f^{-1}(y)`, and these rows.

    None if hardly any label is decisive.
    """
    X, y, weights, rng, callback = sample.X, sample.y, sample.weights, options.rng, options.callback
    everything = np.ones(len(y), dtype=bool)
    labels = link.inverse(y)
    if link.invertible:
        starts = () if start is None else (start,)
        fit = robust_regression(X, labels, sample_weight=weights, starts=starts, rng=rng, callback=callback)
        return fit, everything
    assert start is not None, "a link that clips needs a start"
    counts = np.ones(len(y)) if weights is None else weights
    decisive = link.decisive(y) & X.any(axis=1) & (counts > 0)
    if decisive.sum() <= _FEWEST * X.shape[1]:
        return None
    w = _best_start(X, y, counts, start, link, rng)
    rows = _far(X @ w, decisive, link, 0.0)
    if rows.sum() <= _FEWEST * X.shape[1]:
        rows = decisive
    seen: set[bytes] = set()
    while True:
        fit = robust_regression(
            X[rows],
            labels[rows],
            sample_weight=None if weights is None else weights[rows],
            starts=(w,),
            rng=rng,
            callback=callback,
        )
        seen.add(rows.tobytes())
        now = _far(X @ fit.coef, decisive, link, FAR * fit.scale)
        if now.sum() <= _FEWEST * X.shape[1]:
            return fit, rows
        if now.tobytes() in seen or len(seen) >= _ROUNDS:
            return fit, rows
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
