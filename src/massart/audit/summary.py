"""An audit in plain values: what ``massart fit --json`` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from massart.audit.contract import Contract
from massart.report import Usage
from massart.report.words import name_of, weakest_columns
from massart.rows import IDENTITY
from massart.rules.formula import Summand

if TYPE_CHECKING:
    from massart.audit.table_audit import Audit

MOST_WRONG_ROWS = 20


def summary(audit: Audit, contract: Contract | None = None, *, all_rows: bool = False) -> dict[str, Any]:
    """Return the result as JSON values.

    Parameters
    ----------
    audit : Audit
    contract : Contract, optional
        What is asked of the table; by default what ``massart fit`` asks.
    all_rows : bool
        Whether to list all wrong rows that were kept, and not only the worst `MOST_WRONG_ROWS`.
    """
    formula, certificate = audit.formula, audit.certificate
    support = certificate.support
    worst = audit.worst(audit.n_wrong if all_rows else MOST_WRONG_ROWS)
    contract = contract or Contract()
    outcome = contract.outcome(audit)
    usage = audit.usage() or (None,) * len(formula.all_terms)
    return {
        "table": audit.table.name,
        "passed": outcome.passed,
        "exit_status": outcome.status,
        "reason": outcome.reason,
        "max_wrong": contract.max_wrong,
        "max_unjudged": contract.max_unjudged,
        "saved": audit.saved is not None,
        "target": formula.target,
        "model": "linear" if formula.link == IDENTITY else "relu",
        "formula": str(formula),
        "verdict": certificate.verdict.name,
        "explanation": audit.explanation,
        "certain": audit.is_certain,
        "eta_max": None if audit.saved else certificate.eta_max,
        "wrong_at_most": None if audit.saved else certificate.wrong_at_most,
        "confidence": None if audit.saved else certificate.confidence,
        **_independent_errors(audit),
        "alpha": None if support is None else support.alpha,
        "weakest_direction": [name_of(column, formula.names) for column in weakest_columns(certificate)],
        "rows": audit.n_total,
        "rows_judged": audit.n_judged,
        "rows_unjudged": audit.n_total - audit.n_judged,
        "share_unjudged": (audit.n_total - audit.n_judged) / audit.n_total,
        "rows_wrong": audit.n_wrong,
        "rows_last_place": audit.n_last_place,
        "rows_apart": audit.n_apart,
        "share_wrong": audit.wrong_share,
        "kinds": [
            {
                "kind": kind.label,
                "rows": kind.rows,
                "examples": (audit.numbers_of(audit.design.kept[[*kind.examples]]) + 1).tolist(),
            }
            for kind in audit.kinds.kinds
        ],
        "second_rule": second_rule(audit),
        "rates": [
            {
                "by": rates.by,
                "of": str(rates.of),
                "levels": [
                    {"level": rate.level, "value": rate.value, "exact": None if rate.exact is None else str(rate.exact)}
                    for rate in rates.rates
                ],
            }
            for rates in audit.rates
        ],
        "segment": segment(audit),
        **rule_list(audit),
        "agreement": str(audit.agreement),
        "scale": certificate.scale,
        "undetermined": [
            [name_of(column, formula.names) for column in group] for group in certificate.undetermined_columns
        ],
        "thin": [{"term": name_of(column, formula.names), "rows": rows} for column, rows in certificate.thin],
        "coefficients": [
            _coefficient(*pair) for pair in zip(formula.all_terms, usage, strict=True) if pair[0].is_shown
        ],
        "groups": [{"name": group.name, "rows": group.n_rows, "rows_wrong": group.n_wrong} for group in audit.groups()],
        "worst_rows": [dict(zip(worst, values, strict=True)) for values in zip(*worst.values(), strict=True)],
        "notices": list(audit.notices),
    }


def segment(audit: Audit) -> dict[str, Any] | None:
    """Return the segment in which rows that do not follow the rule crowd as JSON values."""
    found, facts = audit.segment, audit.segment_facts
    if found is None or facts is None:
        return None
    return {
        "where": facts.where,
        "columns": found.columns,
        "breach": found.breach.name.lower(),
        "rows": facts.n_rows,
        "rows_off": facts.n_wrong,
        "share_off_elsewhere": facts.n_wrong_others / facts.n_others if facts.n_others else 0.0,
        "formula": None if audit.segment_rule is None else str(audit.segment_rule.formula),
        "rows_follow_formula": None if audit.segment_rule is None else audit.segment_rule.n_agree,
    }


def _independent_errors(audit: Audit) -> dict[str, Any]:
    """Return what the declaration that errors are independent gives, if it was made."""
    found = None if audit.saved else audit.certificate.independent
    if found is None:
        return {}
    names = audit.formula.names
    return {
        "independent_errors": {
            "declared": audit.certificate.declared,
            "confirmed": [name_of(column, names) for column in found.slopes],
            "not_confirmed": [name_of(column, names) for column in found.rest],
            "share": found.share,
            "deviation": found.deviation if math.isfinite(found.deviation) else None,
            "within": found.within if found.confirmed else None,
        }
    }


def second_rule(audit: Audit) -> dict[str, Any] | None:
    """Return the rule that wrong rows follow as JSON values."""
    found = audit.second_rule
    if found is None:
        return None
    return {"formula": str(found.formula), "rows": found.n_rows, "rows_needed": found.test.needed}


def rule_list(audit: Audit) -> dict[str, Any]:
    """Return the rules of a list as JSON values; nothing for a fit of one rule."""
    from massart.audit.list_audit import ListAudit

    if not isinstance(audit, ListAudit):
        return {}

    return {
        "rules": [
            {
                "formula": str(rule.formula),
                "rows": rule.n_rows,
                "rows_shared": rule.listed.n_shared,
                "rows_needed": rule.listed.test.needed,
                "confirmed": [rule.formula.all_terms[j].label for j in rule.confirmed],
                "branch": None
                if rule.branch is None
                else {
                    "where": rule.branch.where,
                    "rows": rule.branch.n_rows,
                    "rows_follow": rule.branch.n_follow,
                    "share_elsewhere": rule.branch.n_follow_others / max(rule.branch.n_others, 1),
                },
                "coefficients": [_coefficient(term, None) for term in rule.formula.all_terms if term.is_shown],
            }
            for rule in audit.rules
        ],
        "rows_shared": audit.n_shared,
        "rows_explained": audit.most_explained,
    }


def _coefficient(term: Summand, usage: Usage | None) -> dict[str, Any]:
    error = term.standard_error
    return {
        "term": term.label,
        "column": term.column,
        "level": term.level,
        "value": term.coef,
        "exact": None if term.exact is None else str(term.exact),
        "standard_error": error if math.isfinite(error) else None,
        "determined": term.determined,
        "rows": None if usage is None else usage.n_rows,
        "rows_agree": None if usage is None else usage.n_agree,
    }
