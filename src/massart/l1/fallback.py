"""The fallback: the dual linear program, solved by HiGHS through SciPy and checked like any other answer."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from massart.l1.program import Point, Program
from massart.l1.vertex import finish
from massart.rows import FloatArray


def linear_program(problem: Program, max_pivots: int) -> Point | None:
    """Return the vertex that HiGHS finds, with our own proof, or None where HiGHS finds none or the rows are elsewhere.

    HiGHS holds the whole constraint matrix, so this needs several times the memory of X.
    """
    from scipy.optimize import linprog  # slow to import, and rarely needed

    design, lo, hi = problem.design, problem.lo, problem.hi
    columns = slice(None) if design.columns is None else design.columns
    rows = design.matrix.for_highs()
    if rows is None:
        return None
    rows = rows[:, columns]
    rows = rows @ sp.diags_array(design.scale[columns]) if sp.issparse(rows) else rows * design.scale[columns]
    answer = linprog(-problem.y, A_eq=rows.T, b_eq=problem.b, bounds=np.column_stack([-lo, hi]), method="highs")
    if answer.x is None or answer.eqlin.marginals is None:
        return None
    w: FloatArray = -answer.eqlin.marginals
    a = np.clip(answer.x, -lo, hi)
    # Rows strictly inside their box are on the fit; the smallest residuals complete the basis.
    inside = np.minimum(hi - a, lo + a) / (hi + lo)
    r = np.abs(problem.residuals(w))
    closeness = 1.0 / (r / max(float(r.max()), np.finfo(float).tiny) + np.finfo(float).eps)
    return finish(problem, w, a, closeness * (inside + 1e-6), max_pivots)[0]
