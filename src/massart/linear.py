r"""Linear recovery: Algorithms 1 and 2, and the search beyond them.

Given rows with labels of which more than half satisfy :math:`y = w^* \cdot x`, find :math:`w^*` exactly. On each piece
of the decomposition of the rows (:func:`massart.isotropy.decompose`), in its radial-isotropic position, the L1 answer

.. math::
    \hat w = \arg\min_w \sum_i \left| \frac{y_i}{|A x_i|} - w \cdot \frac{A x_i}{|A x_i|} \right| ,
    \qquad w = A^\top \hat w,

is the truth where the structural condition holds (Lemma 2.3); the next piece sees the labels less what is explained.
Algorithm 1 is the case of one piece. Where few rows agree, :mod:`massart.search` proposes more. Any answer is polished
by least squares on the rows that agree with it, and then counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart.certificate import Certificate, StructuralMargin, Verdict, certify, structural_margin
from massart.exact import Tolerance, tolerances
from massart.isotropy import RadialIsotropy, decompose
from massart.l1 import l1_regression
from massart.progress import Callback, silent
from massart.rows import BoolArray, FloatArray, check_labels, check_matrix, check_weights, precision_of
from massart.search import Consensus, improve_coordinates
from massart.search import search as search_consensus

NEAR = 2.0**-26
"""Relative residual of a row that may agree once the answer is polished: half of the digits of float64."""

CERTIFICATE_BUDGET = 4e8
"""Floating-point operations spent on a certificate, about: no more than on finding the answer."""

SEARCH_ROUNDS = 7
SEARCH_ROWS_PER_COLUMN, SMALLEST_SEARCH = 16, 400
"""Rows that the search looks at, at least."""

PLENTY, FEW_ROUNDS = 12, 2
"""With so many rows a column, so many rounds find what there is to find."""

_ROUNDING = 16 * float(np.finfo(float).eps)  # relative size of a term that is rounding of a larger one
_DEFAULT_SEED = 0


@dataclass(frozen=True, slots=True)
class LinearRecovery:
    """A formula y = w.x with what the rows say about it.

    Attributes
    ----------
    coef : (d,) array
        w.
    agree : (n,) boolean array
        Rows whose residual is within the tolerance.
    tolerance : Tolerance
        The tightest of those the data allow with which a majority agrees.
    certificate : Certificate
        What is proven.
    """

    coef: FloatArray
    agree: BoolArray
    tolerance: Tolerance
    certificate: Certificate


def recover_linear(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    tolerance: float | Literal["auto"] = "auto",
    search: bool = True,
    gamma: float = 0.5,
    margin: bool = False,
    rng: np.random.Generator | None = None,
    column_names: Sequence[str] | None = None,
    callback: Callback = silent,
) -> LinearRecovery:
    """Recover w with y = w.x on more than half of the rows, which are all in memory.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    sample_weight : (n,) array, optional
        A row of weight c counts c times.
    tolerance : "auto" or float
        See :func:`massart.exact.tolerances`.
    search : bool
        False for Algorithm 2 and nothing else.
    gamma : float
        Of the radial-isotropic transforms.
    margin : bool
        Put the margin of the structural condition (Lemma 2.3) in the certificate, for the rows that agree and the
        others in the position that L1 regression saw. It takes longer than the recovery.
    rng : numpy.random.Generator, optional
        For the search and the certificate; a fixed one by default.
    column_names : sequence of str, optional
        For the certificate's words.
    callback : callable

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> y = X @ [3, 0, -1, 0.5, 2]
    >>> y[:20] = rng.standard_normal(20)
    >>> found = recover_linear(X, y)
    >>> np.round(found.coef, 12) + 0.0
    array([ 3. ,  0. , -1. ,  0.5,  2. ])
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
    pieces = decompose(rows, gamma, sample_weight=weights, callback=callback)
    rounds = None if search else 0
    w, chosen, agree = propose(rows, labels, weights, candidates, pieces, rng, rounds=rounds, callback=callback)
    certificate = certify_rows(rows, weights, agree, chosen, pieces, rng, column_names)
    if margin and agree.any():
        certificate = replace(certificate, margin=_margin(rows, agree, pieces, rng))
    return LinearRecovery(w, agree, chosen, certificate)


def _margin(
    X: FloatArray, agree: BoolArray, pieces: Sequence[RadialIsotropy], rng: np.random.Generator
) -> StructuralMargin:
    """Return the margin of the first piece: that of Algorithm 1, or of the first step of Algorithm 2."""
    first = pieces[0]
    Z = X[first.members] @ first.subspace @ first.matrix.T
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    fitted = agree[first.members]
    return structural_margin(Z[fitted] if fitted.any() else np.zeros((1, Z.shape[1])), Z[~fitted], rng=rng)


def propose(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    candidates: Sequence[Tolerance],
    pieces: Sequence[RadialIsotropy],
    rng: np.random.Generator,
    *,
    rounds: int | None = None,
    callback: Callback = silent,
) -> tuple[FloatArray, Tolerance, BoolArray]:
    """Return the best w found, the tolerance it needs, and the rows that agree.

    Parameters
    ----------
    candidates : sequence of Tolerance
        The tightest first; looser ones are tried only where no majority agrees.
    pieces : sequence of RadialIsotropy
        The decomposition of the rows.
    rounds : int, optional
        Rounds of search for each piece: 0 for none, all by default.
    """
    counts = np.ones(len(X)) if weights is None else weights
    # Labels of size one: coefficients and residuals have squares that neither overflow nor vanish.
    unit = float(np.exp2(np.frexp(np.abs(y).max())[1]))
    y = y / unit
    best: tuple[FloatArray, Tolerance, BoolArray] | None = None
    most = -1.0
    for given in candidates:
        tolerance = replace(given, absolute=given.absolute / unit)
        w = np.zeros(X.shape[1])
        for piece in pieces:
            w = w + _solve_piece(X, y - X @ w, counts, tolerance, piece, rng, rounds, callback)
        w, agree = polish(X, y, w, tolerance)
        doubtful = 2 * agree.sum() <= len(y) + len(w) or not has_column_majorities(X, agree, counts)
        if rounds != 0 and doubtful:
            w, agree = _improve(X, y, w, agree, tolerance, counts)
        if float(counts[agree].sum()) > most:
            best, most = (w * unit, given, agree), float(counts[agree].sum())
        if 2 * most > counts.sum():
            break
    assert best is not None  # there is at least one tolerance
    return best


def _solve_piece(
    X: FloatArray,
    residuals: FloatArray,
    counts: FloatArray,
    tolerance: Tolerance,
    piece: RadialIsotropy,
    rng: np.random.Generator,
    rounds: int | None,
    callback: Callback,
) -> FloatArray:
    """Return what one piece adds to w: Algorithm 1 on its members, then the search."""
    basis = piece.subspace @ piece.matrix.T
    members = piece.members
    Z = X[members] @ basis
    lengths = np.linalg.norm(Z, axis=1)
    Z /= lengths[:, None]
    labels = residuals[members] / lengths
    weights = counts[members]
    z = l1_regression(Z, labels, sample_weight=weights, callback=callback).coef
    if rounds != 0:
        slack = tolerance.absolute / lengths
        problem = Consensus(Z, labels, slack, max(NEAR, tolerance.relative), weights, lengths)
        rounds = SEARCH_ROUNDS if rounds is None else rounds
        z = search_rows(problem, z, rng, min(rounds, FEW_ROUNDS) if len(Z) >= PLENTY * Z.shape[1] else rounds, callback)
    return np.asarray(basis @ z)


def search_rows(
    problem: Consensus, first: FloatArray, rng: np.random.Generator, rounds: int, callback: Callback
) -> FloatArray:
    """Return the answer that fits most among `first` and those of the search, on some of the rows if there are many."""
    n, k = problem.Z.shape
    best = problem.best(first[None])
    if problem.settled(best, problem.unique):
        return best.w
    size = max(SEARCH_ROWS_PER_COLUMN * k, SMALLEST_SEARCH)
    part = problem
    if n > 2 * size:
        part = problem.restricted(np.sort(rng.choice(n, size, replace=False)))
    found = search_consensus(part, first, rng, enough=part.unique, rounds=rounds, callback=callback)
    return max(best, problem.best(found.w[None]), key=lambda candidate: candidate.agreement).w


def _improve(
    X: FloatArray, y: FloatArray, w: FloatArray, agree: BoolArray, tolerance: Tolerance, counts: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Change single coefficients where that makes more rows agree."""
    threshold = replace(tolerance, relative=max(NEAR, tolerance.relative)).threshold(_residuals(X, y, w)[1])
    better = improve_coordinates(X, y, w, threshold, counts)
    if np.array_equal(better, w):
        return w, agree
    better, now = polish(X, y, better, tolerance)
    return (better, now) if counts[now].sum() > counts[agree].sum() else (w, agree)


def polish(X: FloatArray, y: FloatArray, w: FloatArray, tolerance: Tolerance) -> tuple[FloatArray, BoolArray]:
    """Fit the rows that nearly agree by least squares, then those that do; return w and the rows that agree."""
    agree = tolerance.agree(*_residuals(X, y, w))
    near = replace(tolerance, relative=max(NEAR, tolerance.relative))
    chosen = near.agree(*_residuals(X, y, w))
    for _ in range(3):
        if not chosen.any():
            break
        fitted = least_squares(X[chosen], y[chosen])
        now = tolerance.agree(*_residuals(X, y, fitted))
        if now.sum() < agree.sum():
            break
        w, agree = fitted, now
        if np.array_equal(now, chosen):
            break
        chosen = now
    w, agree = _without_rounding(X, y, w, agree, tolerance)
    return (w, agree) if tolerance.absolute == 0 else _within(X, y, w, agree, tolerance)


def _without_rounding(
    X: FloatArray, y: FloatArray, w: FloatArray, agree: BoolArray, tolerance: Tolerance
) -> tuple[FloatArray, BoolArray]:
    """Set coefficients to zero that are nothing but rounding of others, where no row minds.

    A row that uses no other column has a size of rounding, too, and would not agree with its label of zero.
    """
    terms = np.abs(w) * np.abs(X).max(axis=0, initial=0.0)
    rounding = (terms > 0) & (terms <= _ROUNDING * terms.max(initial=0.0))
    if not rounding.any():
        return w, agree
    cleared = np.where(rounding, 0.0, w)
    now = tolerance.agree(*_residuals(X, y, cleared))
    return (cleared, now) if now.sum() >= agree.sum() else (w, agree)


def _within(
    X: FloatArray, y: FloatArray, w: FloatArray, agree: BoolArray, tolerance: Tolerance
) -> tuple[FloatArray, BoolArray]:
    """Move `w` into the intervals of rounded labels, y - t <= w.x <= y + t, where least squares stays outside of some.

    The sum of what is missing to the interval of each row nearby is a one-sided L1 problem of two rows each.
    """
    t = tolerance.absolute
    near = replace(tolerance, absolute=2 * t).agree(*_residuals(X, y, w))
    if near.sum() <= agree.sum():
        return w, agree
    both = np.vstack([X[near], -X[near]])
    labels = np.concatenate([y[near] + t, t - y[near]])
    moved = l1_regression(both, labels, one_sided=np.ones(len(labels), dtype=bool)).coef
    now = tolerance.agree(*_residuals(X, y, moved))
    return (moved, now) if now.sum() > agree.sum() else (w, agree)


def _residuals(X: FloatArray, y: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the residuals and the sizes of the terms that cancel in them."""
    return y - X @ w, np.abs(X) @ np.abs(w) + np.abs(y)


def least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the least-squares solution, of minimum norm where there are many, refined to the last digits."""
    scales = np.exp2(np.frexp(np.abs(X).max(axis=0))[1].astype(np.float64))
    scaled = X / scales
    w = np.linalg.lstsq(scaled, y, rcond=None)[0]
    rest = y - np.asarray(scaled.astype(np.longdouble) @ w, dtype=np.longdouble)
    w = w + np.linalg.lstsq(scaled, np.asarray(rest, dtype=np.float64), rcond=None)[0]
    return np.asarray(w / scales)


def certify_rows(
    X: FloatArray,
    weights: FloatArray | None,
    agree: BoolArray,
    tolerance: Tolerance,
    pieces: Sequence[RadialIsotropy],
    rng: np.random.Generator,
    column_names: Sequence[str] | None = None,
    *,
    n_rows: float | None = None,
    n_agree: float | None = None,
) -> Certificate:
    """Return the certificate of rows in memory, or of a table of which they are a sample (with its own counts).

    A majority of all rows is no majority where it counts if most rows lie in a subspace: a formula that is right there
    and wrong beyond fits them all. So MAJORITY is claimed only if every piece of the decomposition has one, and the
    rows in which any one column is not zero.
    """
    counts = np.ones(len(X)) if weights is None else weights
    n_rows = float(counts.sum()) if n_rows is None else n_rows
    n_agree = float(counts[agree].sum()) if n_agree is None else n_agree
    # A zero row, which counts for no side, stands in where no row agrees.
    none = not agree.any()
    certificate = certify(
        np.zeros((1, X.shape[1])) if none else X[agree],
        n_rows=n_rows + none,
        n_agree=n_agree + none,
        sample_weight=None if weights is None or none else weights[agree],
        rng=rng,
        tolerance=tolerance.absolute,
        budget=CERTIFICATE_BUDGET,
        column_names=column_names,
    )
    claimed = {certificate.verdict, certificate.determined}
    interpolates = certificate.n_agree <= certificate.rank  # then nothing confirms the formula, unique as it may be
    majorities = has_majorities(pieces, agree, counts) and has_column_majorities(X, agree, counts)
    if interpolates or (Verdict.MAJORITY in claimed and not majorities):
        verdict = certificate.verdict if certificate.verdict is Verdict.UNIDENTIFIABLE else Verdict.PLURALITY
        certificate = replace(certificate, verdict=verdict, determined=Verdict.PLURALITY)
    return certificate


def has_majorities(pieces: Sequence[RadialIsotropy], agree: BoolArray, counts: FloatArray) -> bool:
    """Tell whether more than half of the members of every piece agree, and more of them than any formula fits."""
    return all(
        2 * counts[piece.members & agree].sum() > counts[piece.members].sum()
        and (piece.members & agree).sum() > piece.matrix.shape[0]
        for piece in pieces
    )


def has_column_majorities(X: FloatArray, agree: BoolArray, counts: FloatArray) -> bool:
    """Tell whether more than half of the rows in which a column is not zero agree, for every column."""
    present = X != 0
    rows = counts @ present
    return bool(np.all((2 * (counts * agree) @ present > rows) | (rows == 0)))
