"""An audit in plain values: what ``massart fit --json`` prints."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from massart.formula import Term
from massart.report import Support

if TYPE_CHECKING:
    from massart.audit.table_audit import Audit

MOST_WRONG_ROWS = 20


def summary(audit: Audit) -> dict[str, Any]:
    """Return the result as JSON values; the wrong rows are the worst `MOST_WRONG_ROWS`."""
    formula, certificate = audit.formula, audit.certificate
    terms = (*formula.terms, *([formula.intercept] if formula.intercept else []))
    worst = audit.worst(MOST_WRONG_ROWS)
    return {
        "massart": version("massart"),
        "table": audit.table.name,
        "target": formula.target,
        "model": "relu" if formula.clipping else "linear",
        "formula": str(formula),
        "verdict": certificate.verdict.name,
        "determined": certificate.determined.name,
        "explanation": certificate.explain(),
        "certain": audit.is_certain,
        "rows": audit.design.n_total,
        "rows_judged": len(audit.wrong),
        "rows_wrong": audit.n_wrong,
        "share_wrong": audit.wrong_share,
        "agreement": audit.tolerance.reason,
        "scale": certificate.scale,
        "coefficients": [_coefficient(*pair) for pair in zip(terms, audit.support(), strict=True)],
        "groups": [{"name": group.name, "rows": group.n_rows, "rows_wrong": group.n_wrong} for group in audit.groups()],
        "worst_rows": [dict(zip(worst, values, strict=True)) for values in zip(*worst.values(), strict=True)],
        "notices": list(audit.notices),
    }


def _coefficient(term: Term, support: Support) -> dict[str, Any]:
    error = term.standard_error
    return {
        "column": term.column,
        "level": term.level,
        "value": term.coef,
        "exact": None if term.exact is None else str(term.exact),
        "standard_error": error if math.isfinite(error) else None,
        "determined": term.determined,
        "rows": support.n_rows,
        "rows_agree": support.n_agree,
    }
