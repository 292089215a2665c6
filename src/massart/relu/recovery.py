r"""ReLU recovery (Theorem 1.3), and recovery through any link that clips.

Given rows with labels of which more than half satisfy :math:`y = f(w^* \cdot x)`, find :math:`w^*` exactly. Labels that
no w explains are dropped first: what is left is still Massart noise. The published method asks the separation oracle
(Algorithm 3) along a cutting plane; the default is the same portfolio as for linear formulas
(:mod:`massart.recover.propose`).

The cuts are made in the coordinates in which the decomposition of the rows is radially isotropic, so that the units of
the columns do not matter. They end when the oracle accepts, up to half of the digits, which the polish then fills.
Where they leave nothing, the truth was outside of the first ball or a cut was wrong; a larger ball helps in one case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart.agreement import Agreement
from massart.cutting_plane import Method, Status
from massart.isotropy import decompose
from massart.link import RELU, Link
from massart.progress import Callback, silent
from massart.recover import ArrayRecovery, Options, polish, propose, recover_arrays
from massart.recover.polish import NEAR
from massart.relu.oracle import radius_of, separation_oracle
from massart.relu.separation import Answer
from massart.rows import FloatArray, Sample

GROWTH, BALLS = 100.0, 2
"""How much the ball grows when it does not hold the truth, and how many are tried."""

_DEFAULT_SEED = 0


@dataclass(frozen=True, slots=True)
class ReLURecovery(ArrayRecovery):
    """A formula y = f(w.x) with what the rows say about it, as :class:`massart.recover.ArrayRecovery`.

    Attributes
    ----------
    n_queries : int
        Questions to the separation oracle; 0 unless the published method was asked for.
    """

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
        See :func:`massart.agreement.levels`.
    cuts : Method, optional
        :func:`massart.cutting_plane.analytic_center` or :func:`massart.cutting_plane.ellipsoid` for the published
        method, with the tightest level, and nothing else; the portfolio by default.
    rng : numpy.random.Generator, optional
        For the search and the certificate; a fixed one by default.
    callback : callable

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 4))
    >>> y = np.maximum(0, X @ [3, 0, -1, 0.5])
    >>> y[:60] = rng.standard_normal(60)
    >>> found = recover_relu(X, y)
    >>> np.round(found.coef, 12) + 0.0
    array([ 3. ,  0. , -1. ,  0.5])
    >>> found.certificate.verdict.name
    'PROVEN'
    """
    n_queries = 0

    def solve(sample: Sample, levels: Sequence[Agreement], options: Options) -> tuple[FloatArray, Agreement]:
        nonlocal n_queries
        if cuts is None:
            found = propose(sample, levels, link, options)
            return found.coef, found.agreement
        w, n_queries = _solve_by_cuts(sample, levels[0], link, cuts, callback)
        return polish(sample.X, sample.y, sample.counts, w, levels[0], link)[0], levels[0]

    rng = np.random.default_rng(_DEFAULT_SEED) if rng is None else rng
    found = recover_arrays(X, y, sample_weight, tolerance, link, Options(rng, None, callback), solve)
    return ReLURecovery(found.coef, found.agree, found.agreement, found.certificate, n_queries)


def _solve_by_cuts(
    sample: Sample, agreement: Agreement, link: Link, method: Method, callback: Callback
) -> tuple[FloatArray, int]:
    """Return the last query of a cutting plane, the accepted one if there is one, and the number of queries."""
    pieces = decompose(sample.X, sample_weight=sample.weights, callback=callback)
    basis = np.hstack([piece.subspace @ piece.matrix.T for piece in pieces])
    Z, y = sample.X @ basis, sample.y
    oracle = separation_oracle(Z, y, link=link, agreement=agreement.loosened(NEAR), sample_weight=sample.weights)
    radius = radius_of(Z, y, link=link)
    z = np.zeros(Z.shape[1])
    for _ in range(BALLS):
        found = method(oracle, Z.shape[1], radius, callback=callback)
        z = found.point
        if found.status is Status.ACCEPTED and oracle.separate(z).answer is Answer.ACCEPTED:
            break
        radius *= GROWTH
    return np.asarray(basis @ z), oracle.n_queries
