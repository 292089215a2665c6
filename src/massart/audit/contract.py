"""What is asked of a table, and whether it keeps it: pass or fail, with the reason in words and as an exit status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from massart.certificate import Verdict
from massart.certificate.words import count, share

if TYPE_CHECKING:
    from massart.audit.table_audit import Audit

NOT_CERTAIN, BAD_INPUT, TOO_MANY_WRONG = 1, 2, 3

_GRAVITY = (0, NOT_CERTAIN, TOO_MANY_WRONG, BAD_INPUT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a table keeps its contract.

    Attributes
    ----------
    status : int
        0 if it does, 1 if the rule is not certain enough, 3 if too many rows are wrong; 2 is bad input.
    reason : str
        One sentence.
    is_open : bool
        Whether rows are wrong and no limit was set, so that nothing was asked of them.
    """

    status: int
    reason: str
    is_open: bool = False

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
        The largest share of wrong rows; None for any.
    require : Verdict
        The least that has to be known of the rule.
    """

    max_wrong: float | None = None
    require: Verdict = Verdict.MAJORITY

    def __post_init__(self) -> None:
        if self.max_wrong is not None and not 0 <= self.max_wrong <= 1:
            raise ValueError(f"max_wrong must be a share between 0 and 1, got {self.max_wrong!r}")

    def outcome(self, audit: Audit) -> Outcome:
        """Compare an audit with what is asked; too many wrong rows weigh more than a rule that is not certain."""
        n, wrong, verdict = audit.n_judged, audit.n_wrong, audit.certificate.verdict
        found = f"{wrong:,} of {count(n, 'rows')} {'is' if wrong == 1 else 'are'} wrong ({share(wrong, n)})"
        if self.max_wrong is not None and wrong > self.max_wrong * n:
            return Outcome(TOO_MANY_WRONG, f"{found}, more than {_percent(self.max_wrong)}.")
        order = list(Verdict)
        if order.index(verdict) > order.index(self.require):
            when = "" if audit.saved is None else " where it was found"
            return Outcome(NOT_CERTAIN, f"The rule is {verdict.name}{when}, less than {self.require.name}.")
        if audit.saved is not None and 2 * audit.n_agree <= n:
            follow = f"{audit.n_agree:,} of {count(n, 'rows')} follow the saved rule"
            return Outcome(NOT_CERTAIN, f"Only {follow}: it may not be the rule of this table.")
        if self.max_wrong is not None:
            return Outcome(0, f"{found}, at most {_percent(self.max_wrong)} allowed.")
        return Outcome(0, f"{found}; no --max-wrong given: nothing fails." if wrong else f"{found}.", wrong > 0)


def worst_status(statuses: list[int]) -> int:
    """Return the gravest of several exit statuses: 2 goes over 3, and 3 over 1."""
    return max(statuses, key=_GRAVITY.index, default=0)


def _percent(value: float) -> str:
    return f"{100 * value:.4g} %"
