"""What is said of an audit in a word and in plain values: whether a table keeps its contract, and all that is known.

A contract says what is asked of a table: pass or fail, with the reason in words and as an exit status. A check that
judges nothing checks nothing: the share of the judged rows that are wrong has a limit, and so has the share of all rows
that could not be judged. The plain values are what ``massart fit --json`` prints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from massart.certificate import Verdict
from massart.options import CheckLimits
from massart.report import Notice, Usage, name_of, weakest_columns
from massart.rows import IDENTITY
from massart.rules import Rates, Summand

if TYPE_CHECKING:
    from massart.audit.error_types import RowErrorType
    from massart.audit.table_audit import Audit

NOT_CERTAIN, BAD_INPUT, TOO_MANY_WRONG = 1, 2, 3
"""Exit statuses."""

MAX_UNJUDGED = 0.05
"""The largest share of rows that are not judged of a table that passes a check, unless another is given."""

_GRAVITY = (0, NOT_CERTAIN, TOO_MANY_WRONG, BAD_INPUT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a table keeps its contract.

    Attributes
    ----------
    status : int
        0 if it does, 1 if the rule is not certain enough or too few rows could be judged, 3 if too many rows are wrong;
        2 is bad input.
    reason : str
        One sentence.
    is_open : bool
        Whether rows are wrong and no limit was set, so that nothing was asked of them.
    is_blind : bool
        Whether it fails since too few rows could be judged.
    """

    status: int
    reason: str
    is_open: bool = False
    is_blind: bool = False

    @property
    def passed(self) -> bool | None:
        """Whether it does; None where rows are wrong and nothing was asked of them."""
        return None if self.is_open else self.status == 0


@dataclass(frozen=True, slots=True)
class Contract:
    """What is asked.

    Attributes
    ----------
    max_wrong : float or None
        The largest share of wrong rows, of those that are judged; None for any.
    require : Verdict
        The least that has to be known of the rule.
    max_unjudged : float or None
        The largest share of rows that are not judged, of all: those that lack a value that the rule reads, or have a
        category that it does not know. None for any.
    """

    max_wrong: float | None = None
    require: Verdict = Verdict.MAJORITY
    max_unjudged: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_wrong", "max_unjudged"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} must be a share between 0 and 1, got {value!r}")

    @classmethod
    def of(cls, limits: CheckLimits, max_unjudged: float | None = None) -> Contract:
        """Take what the user typed; without a limit for rows that are not judged it is `max_unjudged`."""
        most = max_unjudged if limits.max_unjudged is None else limits.max_unjudged
        return cls(limits.max_wrong, Verdict[limits.require.upper()], most)

    def outcome(self, audit: Audit) -> Outcome:
        """Compare an audit with what is asked; too many wrong rows weigh more than a rule that is not certain."""
        n, verdict, facts = audit.n_judged, audit.certificate.verdict, audit.segment_facts
        counts = {"n_total": audit.n_total, "n_judged": n, "n_wrong": audit.n_wrong, "n_apart": audit.n_apart}
        if self.max_wrong is not None and audit.n_wrong / n > self.max_wrong:
            return Outcome(TOO_MANY_WRONG, Notice("too many wrong", **counts, max_wrong=self.max_wrong))
        if verdict < self.require:
            where = facts.where if facts is not None and audit.n_apart else None
            names = {"verdict": verdict.name, "required": self.require.name, "is_saved": audit.saved is not None}
            return Outcome(NOT_CERTAIN, Notice("too little known", **names, where=where))
        if self.max_unjudged is not None and (audit.n_total - n) / audit.n_total > self.max_unjudged:
            blind = Notice("too many unjudged", **counts, max_unjudged=self.max_unjudged)
            return Outcome(NOT_CERTAIN, blind, is_blind=True)
        if audit.saved is not None and 2 * audit.n_agree <= n:
            return Outcome(NOT_CERTAIN, Notice("another table", n_agree=audit.n_agree, n_judged=n))
        passed = Notice("passed", **counts, max_wrong=self.max_wrong, max_unjudged=self.max_unjudged)
        return Outcome(0, passed, self.max_wrong is None and audit.n_wrong > 0)


def worst_status(statuses: list[int]) -> int:
    """Return the gravest of several exit statuses: 2 goes over 3, and 3 over 1."""
    return max(statuses, key=_GRAVITY.index, default=0)


MOST_WRONG_ROWS = 20
"""Wrong rows that are listed unless all are asked for."""


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
    worst = audit.worst(audit.n_wrong if all_rows else MOST_WRONG_ROWS)
    usage = audit.usage() or (None,) * len(formula.all_terms)
    return {
        **_outcome(audit, contract or Contract()),
        "target": formula.target,
        "model": "linear" if formula.link == IDENTITY else "relu",
        "formula": str(formula),
        **_verdict(audit),
        **_counts(audit),
        "kinds": [_kind(audit, kind) for kind in audit.kinds.kinds],
        "second_rule": second_rule(audit),
        "rates": [_rates(rates) for rates in audit.rates],
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


def _outcome(audit: Audit, contract: Contract) -> dict[str, Any]:
    """Return what was asked of a table, and whether it keeps it."""
    outcome = contract.outcome(audit)
    return {
        "table": audit.table.name,
        "passed": outcome.passed,
        "exit_status": outcome.status,
        "reason": outcome.reason,
        "max_wrong": contract.max_wrong,
        "max_unjudged": contract.max_unjudged,
        "saved": audit.saved is not None,
    }


def _verdict(audit: Audit) -> dict[str, Any]:
    """Return what is known of the rule; of a saved one no numbers, which are those of other rows."""
    certificate, names = audit.certificate, audit.formula.names
    is_here, support = audit.saved is None, certificate.support
    return {
        "verdict": certificate.verdict.name,
        "explanation": audit.explanation,
        "certain": audit.is_certain,
        "eta_max": certificate.eta_max if is_here else None,
        "wrong_at_most": certificate.wrong_at_most if is_here else None,
        "confidence": certificate.confidence if is_here else None,
        **_independent_errors(audit),
        "alpha": None if support is None else support.alpha,
        "weakest_direction": [name_of(column, names) for column in weakest_columns(certificate)],
    }


def _counts(audit: Audit) -> dict[str, Any]:
    """Return how many rows there are of each sort."""
    n_unjudged = audit.n_total - audit.n_judged
    return {
        "rows": audit.n_total,
        "rows_judged": audit.n_judged,
        "rows_unjudged": n_unjudged,
        "share_unjudged": n_unjudged / audit.n_total,
        "rows_wrong": audit.n_wrong,
        "rows_last_place": audit.n_last_place,
        "rows_apart": audit.n_apart,
        "share_wrong": audit.wrong_share,
    }


def _kind(audit: Audit, kind: RowErrorType) -> dict[str, Any]:
    examples = audit.numbers_of(audit.design.kept[[*kind.examples]]) + 1
    return {"kind": kind.label, "rows": kind.rows, "examples": examples.tolist()}


def _rates(rates: Rates) -> dict[str, Any]:
    """Return the rates of each level of a category."""
    levels = [{"level": rate.level, "value": rate.value, "exact": _exact(rate.exact)} for rate in rates.rates]
    return {"by": rates.by, "of": str(rates.of), "levels": levels}


def _exact(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


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
        "exact": _exact(term.exact),
        "standard_error": error if math.isfinite(error) else None,
        "determined": term.determined,
        "rows": None if usage is None else usage.n_rows,
        "rows_agree": None if usage is None else usage.n_agree,
    }
