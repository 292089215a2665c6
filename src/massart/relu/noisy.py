r"""Noisy inliers: right labels are :math:`f(w \cdot x)` up to noise, before the link clips or after.

Where :math:`w \cdot x` is far from the limits, by some scales of the noise, both kinds of noise are noise of a linear
formula, and which rows these are does not depend on their labels (the idea of Powell's symmetrically censored least
squares, 1986). So a robust linear fit of those rows is neither biased by the labels that were clipped nor by the choice
of the rows; the fit says which rows are far, and so on until they stay the same. A label at a limit, far inside, is
wrong for sure and left out.
"""

from __future__ import annotations

import numpy as np

from massart.isotropy import decompose
from massart.progress import Callback, silent
from massart.relu.link import RELU, Link
from massart.robust import RobustFit, robust_regression
from massart.rows import BoolArray, FloatArray
from massart.search import Consensus, Limits, alternate

FAR = 2.5
"""Scales of the noise from the limits at which clipping does not matter: it touches one label in 160."""

CUTOFF = 3.0
"""Within so many times the median residual a row is explained by a start."""

_ROUNDS = 10
_ALTERNATIONS = 8
_DIRECTIONS = 4
_TINY = 1e-9
_FEWEST = 2  # rows a column, of those that a start must leave active


def robust_fit(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    start: FloatArray,
    rng: np.random.Generator,
    callback: Callback = silent,
    *,
    link: Link = RELU,
) -> tuple[RobustFit, BoolArray] | None:
    """Fit w to the rows that it leaves far from the limits.

    Parameters
    ----------
    X, y : (n, d) and (n,) arrays
    weights : (n,) array or None
    start : (d,) array
        Coefficients to begin with; others are tried, too.
    rng : numpy.random.Generator
    callback : callable
    link : Link

    Returns
    -------
    None if hardly any label is decisive, or

    fit : RobustFit
        Of :math:`f^{-1}(y)` on the rows below, all its row-wise fields included.
    rows : (n,) boolean array
        The rows far from the limits; all of them if the link has an inverse.
    """
    everything = np.ones(len(y), dtype=bool)
    labels = link.inverse(y)
    if link.invertible:
        fit = robust_regression(X, labels, sample_weight=weights, starts=(start,), rng=rng, callback=callback)
        return fit, everything
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
        answers = list(alternate(problem, _TINY * direction, _ALTERNATIONS))
        candidates += [basis @ answer for answer in answers[-1:]]
    starts = np.stack(candidates)
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
    best = int(np.lexsort((spreads, minority))[0])
    return candidates[best]


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
