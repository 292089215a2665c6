"""The fallback: the dual linear program, solved by HiGHS through SciPy and checked like any other answer."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from massart.l1.problem import Point, Problem
from massart.l1.vertex import finish
from massart.rows import FloatArray


def linear_program(problem: Problem, max_pivots: int) -> Point | None:
    """Return the vertex that HiGHS finds, with our own proof, or None where HiGHS finds none.

    HiGHS holds the whole constraint matrix, so this needs several times the memory of X.
    """
    from scipy.optimize import linprog  # slow to import, and rarely needed

    design, lo, hi = problem.design, problem.lo, problem.hi
    if sp.issparse(design.matrix):
        rows = design.matrix @ sp.diags_array(design.scale, format="csr")
        columns = (rows if design.columns is None else rows[:, design.columns]).T.tocsc()
    else:
        columns = design.rows(slice(None)).T
    answer = linprog(-problem.y, A_eq=columns, b_eq=problem.b, bounds=np.column_stack([-lo, hi]), method="highs")
    if answer.x is None or answer.eqlin.marginals is None:
        return None
    w: FloatArray = -answer.eqlin.marginals
    a = np.clip(answer.x, -lo, hi)
    # Rows strictly inside their box are on the fit; the smallest residuals complete the basis.
    inside = np.minimum(hi - a, lo + a) / (hi + lo)
    r = np.abs(problem.residuals(w))
    closeness = 1.0 / (r / max(float(r.max()), np.finfo(float).tiny) + np.finfo(float).eps)
    return finish(problem, w, a, closeness * (inside + 1e-6), max_pivots)[0]
