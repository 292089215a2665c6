r"""ReLU recovery (Theorem 1.3), and recovery through any link that clips.

Given rows with labels of which more than half satisfy :math:`y = f(w^* \cdot x)`, find :math:`w^*` exactly. Labels that
no w explains are dropped first: what is left is still Massart noise. The published method asks the separation oracle
(Algorithm 3) along a cutting plane. By default there is a portfolio instead, on each piece of the decomposition of the
rows: L1 regression on active rows, alternating with them, concentration, and the search of :mod:`massart.search`. It
proves nothing on its way, and need not: any answer is polished by least squares on the decisive rows that agree with
it, and then counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart import linear
from massart.certificate import Certificate
from massart.cutting_plane import Method
from massart.exact import Tolerance, tolerances
from massart.isotropy import RadialIsotropy, decompose
from massart.progress import Callback, silent
from massart.relu.evidence import certify_rows, has_majority, mark, tally
from massart.relu.link import RELU, Link
from massart.relu.published import solve_by_cuts
from massart.rows import BoolArray, FloatArray, check_labels, check_matrix, check_weights, precision_of
from massart.search import Candidate, Consensus, Limits, alternate, improve_coordinates

SEARCH_ROUNDS = 6
PLENTY, FEW_ROUNDS = 48, 3
"""With so many rows a column, so many rounds find what there is to find."""

FIRST_ALTERNATIONS = 12

_TINY = 1e-9
_DEFAULT_SEED = 0


@dataclass(frozen=True, slots=True)
class ReLURecovery:
    """A formula y = f(w.x) with what the rows say about it.

    Attributes
    ----------
    coef : (d,) array
        w.
    agree : (n,) boolean array
        Rows whose residual y - f(w.x) is within the tolerance.
    tolerance : Tolerance
        The tightest of those the data allow with which a majority agrees.
    certificate : Certificate
        What is proven. Rows with impossible labels are not counted in it.
    n_queries : int
        Questions to the separation oracle; 0 unless the published method was asked for.
    """

    coef: FloatArray
    agree: BoolArray
    tolerance: Tolerance
    certificate: Certificate
    n_queries: int


def recover_relu(
    X: ArrayLike,
    y: ArrayLike,
    *,
    link: Link = RELU,
    sample_weight: ArrayLike | None = None,
    tolerance: float | Literal["auto"] = "auto",
    cuts: Method | None = None,
    rng: np.random.Generator | None = None,
    column_names: Sequence[str] | None = None,
    callback: Callback = silent,
) -> ReLURecovery:
    """Recover w with y = f(w.x) on more than half of the rows, which are all in memory.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    link : Link
        f; max(0, z) by default.
    sample_weight : (n,) array, optional
        A row of weight c counts c times.
    tolerance : "auto" or float
        See :func:`massart.exact.tolerances`.
    cuts : Method, optional
        :func:`massart.cutting_plane.analytic_center` or :func:`massart.cutting_plane.ellipsoid` for the published
        method, with the tightest tolerance, and nothing else; the portfolio by default.
    rng : numpy.random.Generator, optional
        For the search and the certificate; a fixed one by default.
    column_names : sequence of str, optional
        For the certificate's words.
    callback : callable

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 4))
    >>> y = np.maximum(0, X @ [3, 0, -1, 0.5])
    >>> y[:60] = rng.standard_normal(60)
    >>> found = recover_relu(X, y)
    >>> np.round(found.coef, 12) + 0.0
    array([ 3. ,  0. , -1. ,  0.5])
    >>> found.certificate.verdict.name
    'PROVEN'
    """
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    weights = check_weights(sample_weight, len(rows))
    rng = np.random.default_rng(_DEFAULT_SEED) if rng is None else rng
    candidates = tolerances(tolerance, rows, labels, X_precision=precision_of(X), y_precision=precision_of(y))
    pieces = decompose(rows, sample_weight=weights, callback=callback)
    n_queries = 0
    if cuts is None:
        w, chosen, agree = propose(rows, labels, weights, candidates, pieces, rng, link=link, callback=callback)
    else:
        chosen = candidates[0]
        w, n_queries = solve_by_cuts(rows, labels, weights, chosen, pieces, cuts, link=link, callback=callback)
        w, agree = polish(rows, labels, w, chosen, link)
    marks = mark(labels, rows @ w, agree, chosen, link)
    certificate = certify_rows(
        rows, weights, marks, tally(marks, weights), chosen, pieces, rng, column_names, link=link
    )
    return ReLURecovery(w, agree, chosen, certificate, n_queries)


def propose(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    candidates: Sequence[Tolerance],
    pieces: Sequence[RadialIsotropy],
    rng: np.random.Generator,
    *,
    link: Link = RELU,
    rounds: int | None = None,
    callback: Callback = silent,
) -> tuple[FloatArray, Tolerance, BoolArray]:
    """Return the best w found, the tolerance it needs, and the rows that agree; as :func:`massart.linear.propose`."""
    if link.invertible:
        labels = link.inverse(y)
        w, chosen, _ = linear.propose(X, labels, weights, candidates, pieces, rng, rounds=rounds, callback=callback)
        return w, chosen, agreement(X, y, w, chosen, link)
    counts = np.ones(len(X)) if weights is None else weights
    # Labels of size one: coefficients and residuals have squares that neither overflow nor vanish.
    unit = float(np.exp2(np.frexp(np.abs(y).max())[1]))
    y, link = y / unit, Link(link.lower / unit, link.upper / unit)
    best: tuple[FloatArray, Tolerance, BoolArray] | None = None
    most = -1.0
    for given in candidates:
        tolerance = replace(given, absolute=given.absolute / unit)
        w, agree = _propose(X, y, counts, tolerance, pieces, link, rng, rounds, callback)
        if (agree & link.decisive(y, tolerance.absolute)).sum() <= len(w) + 1:
            # No more than any w fits: then nothing is known, and zero may say it best.
            nothing = agreement(X, y, np.zeros(len(w)), tolerance, link)
            if counts[nothing].sum() > counts[agree].sum():
                w, agree = np.zeros(len(w)), nothing
        if float(counts[agree].sum()) > most:
            best, most = (w * unit, given, agree), float(counts[agree].sum())
        if has_majority(tally(mark(y, X @ w, agree, tolerance, link), counts)):
            break
    assert best is not None  # there is at least one tolerance
    return best


def _propose(
    X: FloatArray,
    y: FloatArray,
    counts: FloatArray,
    tolerance: Tolerance,
    pieces: Sequence[RadialIsotropy],
    link: Link,
    rng: np.random.Generator,
    rounds: int | None,
    callback: Callback,
) -> tuple[FloatArray, BoolArray]:
    w = np.zeros(X.shape[1])
    possible = ~link.impossible(y, tolerance.absolute)
    for piece in pieces:
        members = piece.members & possible
        if not members.any():
            continue
        basis = piece.subspace @ piece.matrix.T
        problem = _problem(X[members], y[members], w, basis, counts[members], tolerance, link)
        w = w + basis @ _solve(problem, rng, rounds, callback)
    w, agree = polish(X, y, w, tolerance, link)
    if rounds != 0:
        w, agree = _improve(X, y, w, agree, tolerance, counts, link)
    return w, agree


def _problem(
    X: FloatArray,
    y: FloatArray,
    w: FloatArray,
    basis: FloatArray,
    weights: FloatArray,
    tolerance: Tolerance,
    link: Link,
) -> Consensus:
    """Return what is left to find by the rows of one piece when `w` explains the pieces before it."""
    slack = tolerance.absolute
    decisive = link.decisive(y, slack)
    # Labels that zero or saturation explains are limits, whatever was rounded.
    upper = ~decisive & (y >= link.upper - slack)
    labels = np.where(decisive, y, np.where(upper, link.upper, link.lower))
    Z = X @ basis
    lengths = np.linalg.norm(Z, axis=1)
    Z /= lengths[:, None]
    explained = X @ w
    limits = Limits((link.lower - explained) / lengths, (link.upper - explained) / lengths, decisive)
    near = max(linear.NEAR, tolerance.relative)
    return Consensus(Z, (labels - explained) / lengths, slack / lengths, near, weights, lengths, limits)


def _solve(problem: Consensus, rng: np.random.Generator, rounds: int | None, callback: Callback) -> FloatArray:
    """Return the best parameter found: the alternation from the mean decisive row, then the search."""
    k = problem.Z.shape[1]
    best = Candidate(np.zeros(k), -1.0)
    last = best.w
    start = _TINY * problem.Z[problem.decisive].sum(axis=0)
    for last in alternate(problem, start, FIRST_ALTERNATIONS):
        best = max(best, problem.best(last[None]), key=lambda candidate: candidate.agreement)
        if problem.settled(best, problem.unique):
            return best.w
    rounds = SEARCH_ROUNDS if rounds is None else rounds
    if not rounds or not len(problem.decisive):
        return best.w if best.agreement > problem.chance else last
    if len(problem.y) >= PLENTY * k:
        rounds = min(rounds, FEW_ROUNDS)
    return linear.search_rows(problem, last, rng, rounds, callback)


def polish(
    X: FloatArray, y: FloatArray, w: FloatArray, tolerance: Tolerance, link: Link = RELU
) -> tuple[FloatArray, BoolArray]:
    """Fit the decisive rows that agree by least squares; return w and the rows that agree."""
    agree = agreement(X, y, w, tolerance, link)
    active = link.decisive(y, tolerance.absolute) & link.decisive(X @ w)
    if not active.any():
        return w, agree
    refitted, _ = linear.polish(X[active], link.inverse(y[active]), w, tolerance)
    now = agreement(X, y, refitted, tolerance, link)
    return (refitted, now) if now.sum() >= agree.sum() else (w, agree)


def agreement(X: FloatArray, y: FloatArray, w: FloatArray, tolerance: Tolerance, link: Link) -> BoolArray:
    """Return the rows whose label is f(w.x), within the tolerance."""
    return tolerance.agree(y - link(X @ w), np.abs(X) @ np.abs(w) + np.abs(y))


def _improve(
    X: FloatArray,
    y: FloatArray,
    w: FloatArray,
    agree: BoolArray,
    tolerance: Tolerance,
    counts: FloatArray,
    link: Link,
) -> tuple[FloatArray, BoolArray]:
    """Change single coefficients where that makes more rows agree."""
    decisive = link.decisive(y, tolerance.absolute)
    if not decisive.any():
        return w, agree
    near = replace(tolerance, relative=max(linear.NEAR, tolerance.relative))
    sizes = np.abs(X[decisive]) @ np.abs(w) + np.abs(y[decisive])
    better = improve_coordinates(X[decisive], y[decisive], w, near.threshold(sizes), counts[decisive])
    if np.array_equal(better, w):
        return w, agree
    better, now = polish(X, y, better, tolerance, link)
    return (better, now) if counts[now].sum() > counts[agree].sum() else (w, agree)
