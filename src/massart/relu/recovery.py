r"""ReLU recovery (Theorem 1.3), and recovery through any link that clips.

Given rows with labels of which more than half satisfy :math:`y = f(w^* \cdot x)`, find :math:`w^*` exactly. Labels that
no w explains are dropped first: what is left is still Massart noise. The published method asks the separation oracle
(Algorithm 3) along a cutting plane; the default is the same portfolio as for linear formulas
(:mod:`massart.recover.propose`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart.agreement import Agreement
from massart.cutting_plane import Method
from massart.link import RELU, Link
from massart.progress import Callback, silent
from massart.recover import ArrayRecovery, Options, polish, propose, recover_arrays
from massart.relu.published import solve_by_cuts
from massart.rows import FloatArray, Sample

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
        w, n_queries = solve_by_cuts(sample, levels[0], link, cuts, callback)
        return polish(sample.X, sample.y, sample.counts, w, levels[0], link)[0], levels[0]

    rng = np.random.default_rng(_DEFAULT_SEED) if rng is None else rng
    found = recover_arrays(X, y, sample_weight, tolerance, link, Options(rng, None, callback), solve)
    return ReLURecovery(found.coef, found.agree, found.agreement, found.certificate, n_queries)
