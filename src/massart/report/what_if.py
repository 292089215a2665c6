"""How many rows would agree with other coefficients: what a reader needs to ask that.

The script counts as `massart.rows` does, with compensated sums, over the rows of the picture: it is given the
values of the terms there, in full, and when a row agrees.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from massart.report.carried import Carried
from massart.report.columns import Numbers, clean
from massart.report.findings import Findings
from massart.rows import Level
from massart.rows.agreement import EDGE

MOST_TERMS = 100
MOST_CHARACTERS = 500_000


def what_if(findings: Findings, carried: Carried) -> dict[str, Any] | None:
    """Return terms, coefficients and agreement for the script; None where the values of terms were not kept."""
    rows, formula, agreement = findings.rows, findings.formula, findings.certificate.agreement
    shown = [j for j, term in enumerate(formula.all_terms) if term.is_shown]
    if rows is None or rows.terms is None or not 0 < len(shown) <= MOST_TERMS:
        return None
    drawn = carried.packed["drawn"] or range(carried.n_off)
    places = np.array([*drawn, *range(carried.n_off, len(carried.index))], dtype=np.intp)
    cells = {c.name: (k, c.values) for k, c in enumerate(carried.columns) if isinstance(c, Numbers) and k > 3}
    stride = 1

    def packed(j: int) -> dict[str, Any]:
        if j == len(formula.terms):
            return {"constant": True}
        index = carried.index[places[::stride]]
        column = rows.terms[index, j]
        values = np.asarray(column.toarray().ravel() if hasattr(column, "toarray") else column, dtype=float)
        place, cell = cells.get(clean(formula.terms[j].label), (0, None))
        if cell is not None and np.array_equal(cell[places[::stride]], values):
            return {"column": place}  # which the page carries already
        return Numbers("", values, None).packed()

    terms = [packed(j) for j in shown]
    if (size := sum(len(term.get("data", "")) for term in terms)) > MOST_CHARACTERS:
        stride = math.ceil(size / MOST_CHARACTERS)
        terms = [packed(j) for j in shown]
    return {
        "stride": stride,
        "terms": terms,
        "coef": [formula.all_terms[j].coef for j in shown],
        "link": [_finite(formula.link.lower), _finite(formula.link.upper), formula.link.slope],
        "label": agreement.label,
        "inputs": [agreement.inputs[j] for j in shown] if agreement.inputs else [],
        "relative": agreement.relative,
        "tight": agreement.tight,
        "unit": agreement.unit,
        "edge": EDGE if agreement.level in (Level.LABEL, Level.INPUTS) else 0,
    }


def _finite(limit: float) -> float | None:
    return limit if math.isfinite(limit) else None
