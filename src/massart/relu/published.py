"""The published method (Theorem 1.3): the separation oracle along a cutting plane, and nothing else.

The search runs in the coordinates in which the decomposition of the rows is radially isotropic, so that the units of
the columns do not matter. It ends when the oracle accepts, up to half of the digits, which the polish then fills. Where
the cuts leave nothing, the truth was outside of the first ball or a cut was wrong; a larger ball helps in one case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from massart import linear
from massart.cutting_plane import Method, Status
from massart.exact import Tolerance
from massart.isotropy import RadialIsotropy
from massart.progress import Callback, silent
from massart.relu.link import RELU, Link
from massart.relu.oracle import radius_of, separation_oracle
from massart.relu.separation import Answer
from massart.rows import FloatArray

GROWTH, BALLS = 100.0, 2
"""How much the ball grows when it does not hold the truth, and how many are tried."""


def solve_by_cuts(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    tolerance: Tolerance,
    pieces: Sequence[RadialIsotropy],
    method: Method,
    *,
    link: Link = RELU,
    callback: Callback = silent,
) -> tuple[FloatArray, int]:
    """Return the last query of a cutting plane, the accepted one if there is one, and the number of queries.

    Parameters
    ----------
    pieces : sequence of RadialIsotropy
        The decomposition of the rows.
    method : Method
        Such as :func:`massart.cutting_plane.analytic_center`.
    """
    basis = np.hstack([piece.subspace @ piece.matrix.T for piece in pieces])
    Z = X @ basis
    near = replace(tolerance, relative=max(linear.NEAR, tolerance.relative))
    oracle = separation_oracle(Z, y, link=link, tolerance=near, sample_weight=weights)
    radius = radius_of(Z, y, link=link)
    z = np.zeros(Z.shape[1])
    for _ in range(BALLS):
        found = method(oracle, Z.shape[1], radius, callback=callback)
        z = found.point
        if found.status is Status.ACCEPTED and oracle.separate(z).answer is Answer.ACCEPTED:
            break
        radius *= GROWTH
    return np.asarray(basis @ z), oracle.n_queries
