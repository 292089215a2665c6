"""The published method (Theorem 1.3): the separation oracle along a cutting plane, and nothing else.

The search runs in the coordinates in which the decomposition of the rows is radially isotropic, so that the units of
the columns do not matter. It ends when the oracle accepts, up to half of the digits, which the polish then fills. Where
the cuts leave nothing, the truth was outside of the first ball or a cut was wrong; a larger ball helps in one case.
"""

from __future__ import annotations

import numpy as np

from massart.agreement import Agreement
from massart.cutting_plane import Method, Status
from massart.isotropy import decompose
from massart.link import Link
from massart.progress import Callback
from massart.recover.polish import NEAR
from massart.relu.oracle import radius_of, separation_oracle
from massart.relu.separation import Answer
from massart.rows import FloatArray, Sample

GROWTH, BALLS = 100.0, 2
"""How much the ball grows when it does not hold the truth, and how many are tried."""


def solve_by_cuts(
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
