"""What is asked of a table, and whether it keeps it: pass or fail, with the reason in words and as an exit status.

A check that judges nothing checks nothing: the share of the judged rows that are wrong has a limit, and so has the
share of all rows that could not be judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from massart.certificate import Verdict
from massart.options import Limits
from massart.report.words import count, share

if TYPE_CHECKING:
    from massart.audit.table_audit import Audit

NOT_CERTAIN, BAD_INPUT, TOO_MANY_WRONG = 1, 2, 3

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
    def of(cls, limits: Limits, max_unjudged: float | None = None) -> Contract:
        """Take what the user typed; without a limit for rows that are not judged it is `max_unjudged`."""
        most = max_unjudged if limits.max_unjudged is None else limits.max_unjudged
        return cls(limits.max_wrong, Verdict[limits.require.upper()], most)

    def outcome(self, audit: Audit) -> Outcome:
        """Compare an audit with what is asked; too many wrong rows weigh more than a rule that is not certain."""
        n, wrong, verdict = audit.n_judged, audit.n_wrong, audit.certificate.verdict
        unjudged, facts = audit.n_total - n, audit.segment_facts
        found, left = counted(audit.n_total, n, wrong)
        found += f", {audit.n_apart:,} set apart" if audit.n_apart else ""
        if self.max_wrong is not None and wrong / n > self.max_wrong:
            return Outcome(TOO_MANY_WRONG, f"{found}, more than {_percent(self.max_wrong)}; {left}.")
        if verdict < self.require:
            when = "" if audit.saved is None else " where it was found"
            broken = "" if facts is None or not audit.n_apart else f" It does not hold for {facts.where}."
            return Outcome(NOT_CERTAIN, f"The rule is {verdict.name}{when}, less than {self.require.name}.{broken}")
        if self.max_unjudged is not None and unjudged / audit.n_total > self.max_unjudged:
            limit = f"more than {_percent(self.max_unjudged)} (--max-unjudged)"
            return Outcome(NOT_CERTAIN, f"{left}, {limit}; {found}.", is_blind=True)
        if audit.saved is not None and 2 * audit.n_agree <= n:
            follow = f"{audit.n_agree:,} of {count(n, 'rows')} follow the saved rule"
            return Outcome(NOT_CERTAIN, f"Only {follow}: it may not be the rule of this table.")
        if unjudged and self.max_unjudged is not None:
            left += f", at most {_percent(self.max_unjudged)} allowed"
        if self.max_wrong is not None:
            return Outcome(0, f"{found}, at most {_percent(self.max_wrong)} allowed; {left}.")
        nothing_fails = "; no --max-wrong given: nothing fails" if wrong else ""
        return Outcome(0, f"{found}{nothing_fails}; {left}.", wrong > 0)


def counted(n_total: int, n_judged: int, n_wrong: int) -> tuple[str, str]:
    """Say how many rows are wrong, and how many are not judged.

    Examples
    --------
    >>> counted(400, 400, 8)
    ('8 of 400 rows are wrong (2.0 %)', '0 not judged')
    >>> counted(20, 1, 0)
    ('0 of 1 judged row is wrong (0 %)', '19 of 20 rows are not judged (95.0 %)')
    """
    if n_judged == n_total:
        return _rows_are(n_wrong, n_judged, "rows", "wrong"), "0 not judged"
    unjudged = _rows_are(n_total - n_judged, n_total, "rows", "not judged")
    return _rows_are(n_wrong, n_judged, "judged rows", "wrong"), unjudged


def _rows_are(some: int, n: int, things: str, what: str) -> str:
    return f"{some:,} of {count(n, things)} {'is' if 1 in (some, n) else 'are'} {what} ({share(some, n)})"


def worst_status(statuses: list[int]) -> int:
    """Return the gravest of several exit statuses: 2 goes over 3, and 3 over 1."""
    return max(statuses, key=_GRAVITY.index, default=0)


def _percent(value: float) -> str:
    return f"{100 * value:.4g} %"
