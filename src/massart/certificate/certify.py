r"""From agreeing rows to a certificate: the bounds in order of their cost, until one proves.

Let w fit a of n rows, and let h bound how many of those one hyperplane through the origin holds. If w' fits a row that
w fits, then :math:`(w' - w) \cdot x = 0`; so w' fits at most :math:`(n - a) + h` rows, and :math:`a > (n + h)/2`
proves that w is the unique l0 minimizer. For a ReLU, rows with negative labels dropped, two parameters that fit a row
with a positive label agree on its inner product, while a row with label zero may be fitted by both: another w' fits at
most :math:`(n_+ - a_+) + h + n_0`, with h counted among the agreeing rows with positive labels. Both are one rule:

    *the decisive rows off every hyperplane outnumber the rows that w does not fit.*

With fewer rows at hand, m of the a decisive ones with at most h' of them in a hyperplane, h is at most h' + (a - m),
and the rows off every hyperplane are m - h' as before.

**Tolerance.** If w fits its rows within t, then w' shares a row only where :math:`|(w' - w) \cdot x| \le 2t`:
hyperplanes become slabs, which hold more rows. So with a tolerance only bounds that hold for slabs count (packing,
sampling and fourth moments, each with its reach), counting on hyperplanes and general position do not, and PROVEN
means: every formula that fits as many rows differs by at most `resolution` from this one on every row given. Where
that fails the verdict is MAJORITY at best. Labels that are exact up to rounding have tolerance 0: independence is
asked for with a margin (`CLEAR_REACH`, `NEAR`) that is wide next to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from massart.certificate.blocks import (
    block_cost,
    check_confidence,
    failure_ceiling,
    largest_share,
    packing_bound,
    sampled_bound,
)
from massart.certificate.enumeration import exact_count
from massart.certificate.enumeration import general_position as assume_general_position
from massart.certificate.fourth_moment import fourth_moment_bound, largest_off_share
from massart.certificate.span import HyperplaneBound, Span, span_of
from massart.certificate.structural import StructuralMargin
from massart.certificate.verdict import Bound, Certificate, Verdict, group_names
from massart.rows import FloatArray, check_matrix, check_weights

BUDGET = 5e10
"""Floating-point operations that a certificate may cost: some seconds of one core."""

_ENUMERATION_SHARE = 0.02  # of the budget: small operations are slow
_OPERATIONS_PER_DRAW = 100.0  # times k^3
_MOST_DRAWS = 20_000
_WEIGHT_ROUNDING = 1e-9  # sums of weights that are not whole numbers


def certify(
    X_agree: ArrayLike,
    *,
    n_rows: float,
    n_agree: float,
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    general_position: bool = False,
    confidence: float = 0.999,
    tolerance: float = 0.0,
    budget: float = BUDGET,
    column_names: Sequence[str] | None = None,
    margin: StructuralMargin | None = None,
) -> Certificate:
    """Say what is proven about a linear formula from the rows it fits.

    Parameters
    ----------
    X_agree : (m, d) array
        The rows that the formula fits, or some of them. Zero rows fit any formula: they are taken off both counts.
    n_rows, n_agree : float
        All rows, and all that the formula fits, in the units of `sample_weight`. Zero rows that are not in `X_agree`
        should not be counted; counted among the rows, but not as agreeing, they only weaken the claim.
    sample_weight : (m,) array, optional
        A row of weight c counts c times.
    rng : numpy.random.Generator, optional
        Without one no bound is used that holds with confidence only.
    general_position : bool
        The caller's word that no d different directions of rows share a hyperplane; the bound is then ASSUMED.
    confidence : float
        Of the sampled bound.
    tolerance : float
        Largest residual that was counted as agreement; 0 for labels that are exact up to rounding.
    budget : float
        Floating-point operations to spend, about.
    column_names : sequence of str, optional
    margin : StructuralMargin, optional
        Stored in the certificate.

    Raises
    ------
    ValueError
        Naming the argument that is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((900, 4))
    >>> certificate = certify(X, n_rows=1000, n_agree=900)
    >>> certificate.verdict.name, certificate.bound.name, certificate.hyperplane_rows
    ('PROVEN', 'PACKING', 799)
    """
    rows, weights, zero_weight = _nonzero_rows(X_agree, sample_weight)
    _check_counts(n_rows, n_agree, "n_rows", "n_agree")
    total, agree = float(n_rows) - zero_weight, float(n_agree) - zero_weight
    case = _Case(rows, weights, agree, total - agree, tolerance, confidence, budget, rng, general_position)
    return _certificate(case, total, agree, 2 * agree > total, column_names, margin)


def certify_relu(
    X_pos_agree: ArrayLike,
    *,
    n_pos: float,
    a_pos: float,
    n_zero: float,
    a_zero: float,
    n_active: float | None = None,
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    general_position: bool = False,
    confidence: float = 0.999,
    tolerance: float = 0.0,
    budget: float = BUDGET,
    column_names: Sequence[str] | None = None,
) -> Certificate:
    """Say what is proven about a formula ``max(0, w.x)`` from the rows with positive labels that it fits.

    A MAJORITY takes more than half of all rows and more than half of those where the formula is positive: w = 0 fits
    all zeros. It is the same for any link that clips, with labels between its limits for positive ones and labels at
    a limit for zeros.

    Parameters
    ----------
    X_pos_agree : (m, d) array
        The rows with y > 0 that the formula fits, or some of them.
    n_pos, a_pos : float
        Rows with y > 0, and those of them that it fits.
    n_zero, a_zero : float
        Rows with y = 0, and those of them that it fits. With a tolerance t, labels up to t belong here: zero
        fits them, too. Rows with negative labels fit no formula: leave them out.
    n_active : float, optional
        Rows where the formula is positive; all with y > 0 by default.
    sample_weight, rng, general_position, confidence, tolerance, budget, column_names
        As for :func:`certify`.
    """
    rows, weights, zero_weight = _nonzero_rows(X_pos_agree, sample_weight, "X_pos_agree")
    if zero_weight:
        raise ValueError("X_pos_agree has a zero row: max(0, w.x) is 0 there, which no positive label agrees with")
    _check_counts(n_pos, a_pos, "n_pos", "a_pos")
    _check_counts(n_zero, a_zero, "n_zero", "a_zero")
    total, agree = float(n_pos + n_zero), float(a_pos + a_zero)
    case = _Case(rows, weights, float(a_pos), total - agree, tolerance, confidence, budget, rng, general_position)
    majority = 2 * agree > total and 2 * a_pos > (n_pos if n_active is None else n_active)
    certificate = _certificate(case, total, agree, majority, column_names, None)
    return certificate if n_active is None else replace(certificate, n_active=_whole(float(n_active)))


def noisy_certificate(
    n_rows: float,
    n_inliers: float,
    scale: float,
    rank: int,
    *,
    n_columns: int,
    X_inliers: ArrayLike | None = None,
    column_names: Sequence[str] | None = None,
) -> Certificate:
    """Return the certificate of an estimate whose inliers are not exact: NOISY, and nothing is proven.

    Parameters
    ----------
    n_rows, n_inliers : float
    scale : float
        Robust scale of the inliers' residuals, positive.
    rank, n_columns : int
        Rank of the inliers, and the number of columns.
    X_inliers : (m, d) array, optional
        The inliers, to name the directions they leave undetermined; needed when the rank is not full.
    column_names : sequence of str, optional
    """
    _check_counts(n_rows, n_inliers, "n_rows", "n_inliers")
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be positive and finite, got {scale}: exact rows have no scale")
    if not 0 <= rank <= n_columns:
        raise ValueError(f"rank must be between 0 and n_columns = {n_columns}, got {rank}")
    names = _check_names(column_names, n_columns)
    span = Span(rank, np.arange(rank), np.zeros((n_columns, 0)), ())
    if rank < n_columns:
        if X_inliers is None:
            raise ValueError(f"X_inliers is needed to name what is undetermined at rank {rank} of {n_columns} columns")
        span = span_of(_nonzero_rows(X_inliers, None, "X_inliers")[0])
        if span.rank != rank or len(span.undetermined) != n_columns:
            raise ValueError(
                f"rank is {rank} of {n_columns} columns, X_inliers has {span.rank} of {len(span.undetermined)}"
            )
    return Certificate(
        n_rows=_whole(n_rows),
        n_agree=_whole(n_inliers),
        n_columns=n_columns,
        rank=rank,
        n_decisive=_whole(n_inliers),
        hyperplane_rows=None,
        bound=Bound.NONE,
        confidence=1.0,
        verdict=Verdict.NOISY,
        determined=Verdict.NOISY,
        undetermined=span.undetermined,
        undetermined_columns=group_names(span.groups, names),
        column_names=names,
        scale=float(scale),
    )


@dataclass(frozen=True, slots=True)
class _Case:
    """Decisive rows, and what has to be proven of them: more than `wrong` of them off every hyperplane."""

    rows: FloatArray
    weights: FloatArray | None
    decisive: float
    wrong: float
    tolerance: float
    confidence: float
    budget: float
    rng: np.random.Generator | None
    general_position: bool

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if not (np.isfinite(self.tolerance) and self.tolerance >= 0):
            raise ValueError(f"tolerance must be a non-negative number, got {self.tolerance}")
        if not self.budget >= 0:
            raise ValueError(f"budget must not be negative, got {self.budget}")
        if self.at_hand > self.decisive + self.slack:
            raise ValueError(f"the agreeing rows given weigh {self.at_hand:g}, more than the count {self.decisive:g}")

    @property
    def at_hand(self) -> float:
        return float(len(self.rows) if self.weights is None else self.weights.sum())

    @property
    def slack(self) -> float:
        """What rounding may do to sums of weights: nothing to whole numbers."""
        whole = float(self.decisive).is_integer() and float(self.wrong).is_integer()
        if whole and (self.weights is None or bool((self.weights == np.rint(self.weights)).all())):
            return 0.0
        return _WEIGHT_ROUNDING * (self.decisive + self.wrong)

    def proves(self, bound: HyperplaneBound) -> bool:
        """Tell whether more rows are off every hyperplane than are wrong."""
        return self.at_hand - bound.rows > self.wrong + self.slack


def _certificate(
    case: _Case,
    total: float,
    agree: float,
    majority: bool,
    column_names: Sequence[str] | None,
    margin: StructuralMargin | None,
) -> Certificate:
    d = case.rows.shape[1]
    names = _check_names(column_names, d)
    span = span_of(case.rows)
    best, bound = None, Bound.NONE
    proven = False
    for name, found in _bounds(case, case.rows[:, span.columns]):
        if best is None or found.rows < best.rows or case.proves(found):
            best, bound = found, name
        proven = case.proves(found)
        if proven:
            break
    # Any k independent rows are fitted by some formula: a majority of no more than those confirms nothing.
    confirmed = majority and span.rank > 0 and len(case.rows) > span.rank
    determined = Verdict.PROVEN if proven else Verdict.MAJORITY if confirmed else Verdict.PLURALITY
    return Certificate(
        n_rows=_whole(total),
        n_agree=_whole(agree),
        n_columns=d,
        rank=span.rank,
        n_decisive=_whole(case.decisive),
        hyperplane_rows=None if best is None else _whole(best.rows + max(case.decisive - case.at_hand, 0.0)),
        bound=bound,
        confidence=case.confidence if bound is Bound.SAMPLED else 1.0,
        verdict=determined if span.rank == d else Verdict.UNIDENTIFIABLE,
        determined=determined,
        undetermined=span.undetermined,
        undetermined_columns=group_names(span.groups, names),
        column_names=names,
        tolerance=float(case.tolerance),
        resolution=2 * case.tolerance * best.reach if proven and case.tolerance and best is not None else 0.0,
        margin=margin,
    )


def _bounds(case: _Case, rows: FloatArray) -> Iterator[tuple[Bound, HyperplaneBound]]:
    """Yield bounds in order of cost, leaving out those that cannot prove enough; `rows` have full column rank."""
    k = rows.shape[1]
    if k == 0:
        return
    slab = case.tolerance > 0
    weights, at_hand, wrong = case.weights, case.at_hand, case.wrong
    found: HyperplaneBound | None
    if k <= 2 and not slab:
        found = exact_count(rows, sample_weight=weights)
        if found is not None:
            yield Bound.EXACT, found
        return
    if at_hand > k * wrong and (wrong + 1) * block_cost(k) <= case.budget:
        found = packing_bound(rows, wrong + case.slack, sample_weight=weights, slab=slab, budget=case.budget)
        if found is not None:
            yield Bound.PACKING, found
    if case.general_position and not slab:
        yield Bound.ASSUMED, assume_general_position(rows, sample_weight=weights)
        return
    if not slab:
        found = exact_count(rows, sample_weight=weights, budget=_ENUMERATION_SHARE * case.budget)
        if found is not None:
            yield Bound.EXACT, found
            return
    if wrong < largest_off_share(k) * at_hand:
        found = fourth_moment_bound(rows, sample_weight=weights, slab=slab, budget=case.budget)
        if found is not None:
            yield Bound.FOURTH_MOMENT, found
    n_draws = _draws(case, k)
    if case.rng is not None and n_draws:
        found = sampled_bound(
            rows, case.rng, n_draws=n_draws, confidence=case.confidence, sample_weight=weights, slab=slab
        )
        if found is not None:
            yield Bound.SAMPLED, found


def _draws(case: _Case, k: int) -> int:
    """Return how many draws to make: all that the budget allows if they can prove enough, else none."""
    most = int(min(_MOST_DRAWS, case.budget / (_OPERATIONS_PER_DRAW * k**3)))
    if most < 1:
        return 0
    ceiling = failure_ceiling(0, most, case.confidence)
    if case.weights is None:
        held = float(largest_share(len(case.rows), k, ceiling))
    else:
        held = case.at_hand * ceiling ** (1 / k)
    return most if case.proves(HyperplaneBound(held)) else 0


def _nonzero_rows(
    X: ArrayLike, sample_weight: ArrayLike | None, name: str = "X_agree"
) -> tuple[FloatArray, FloatArray | None, float]:
    """Return the rows that are not zero and have a weight, their weights, and the weight of the zero rows."""
    shape = np.shape(X)
    if len(shape) == 2 and shape[0] == 0 and shape[1] > 0:
        return np.zeros(shape), None, 0.0
    rows = check_matrix(X, name)
    weights = check_weights(sample_weight, len(rows))
    present = np.asarray(rows.any(axis=1))
    zero_weight = float((~present).sum() if weights is None else weights[~present].sum())
    if weights is not None:
        present &= weights > 0
        weights = weights[present]
    return (rows if present.all() else rows[present]), weights, zero_weight


def _whole(value: float) -> float:
    """Return whole numbers as int: counts read as counts."""
    return int(value) if float(value).is_integer() else float(value)


def _check_counts(n: float, agree: float, n_name: str, agree_name: str) -> None:
    for value, name in ((n, n_name), (agree, agree_name)):
        if not (np.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a non-negative number, got {value}")
    if agree > n:
        raise ValueError(f"{agree_name} = {agree:g} is more than {n_name} = {n:g}")


def _check_names(column_names: Sequence[str] | None, d: int) -> tuple[str, ...] | None:
    if column_names is None:
        return None
    if len(column_names) != d:
        raise ValueError(f"column_names has {len(column_names)} names but there are {d} columns")
    return tuple(str(name) for name in column_names)
