"""Linear or ReLU: the kind of formula of which the rows say more.

A linear answer that stands is kept unless a limit at zero would make it fit more rows. Otherwise both kinds are fitted,
where labels at zero leave room for a ReLU, and the better verdict is taken; of equal ones, that with more rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from massart.certificate import Verdict
from massart.options import Model
from massart.recover import Recovery
from massart.rows import AGREES, DECISIVE, IDENTITY, IMPOSSIBLE, RELU, Link, Mark, Rows, tally_of

LINEAR_SHARE = 0.9
"""Of what may fail, the share of the linear answer where both kinds are judged: it is right more often."""

KINDS = {"linear": IDENTITY, "relu": RELU}

_PILE = 0.05  # share of labels at zero from which a limit may explain what a linear formula does not


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer for one label column, and why it is of its kind: a sentence, "" where there was no choice."""

    link: Link
    recovery: Recovery
    reason: str


def choose(attempt: Callable[[Link, float], Recovery], kind: Model | Link, rows: Rows) -> Choice:
    """Return the formula of the kind asked for, or of the kind of which rows with one label column say more.

    An attempt recovers the formula with a link, given its share of what may fail.
    """
    if kind != "auto":
        link = kind if isinstance(kind, Link) else KINDS[kind]
        return Choice(link, attempt(link, 1.0), "")
    linear = attempt(IDENTITY, LINEAR_SHARE)
    if not _may_be_clipped(linear, rows):
        return Choice(IDENTITY, linear, "")
    relu = attempt(RELU, 1 - LINEAR_SHARE)
    noisy = relu.certificates[0].verdict is Verdict.NOISY
    if _worth(relu) <= _worth(linear) or (noisy and relu.n_agree[0] < linear.n_agree[0]):
        return Choice(IDENTITY, linear, "")  # a smaller scale of fewer rows says nothing
    why = ": so more rows follow than with no limit" if relu.n_agree[0] > linear.n_agree[0] else ""
    return Choice(RELU, relu, f"Values below zero are taken as 0{why}.")


def _may_be_clipped(linear: Recovery, rows: Rows) -> bool:
    """Tell whether a ReLU could say more than the linear answer."""
    n_agree = int(linear.n_agree[0])
    if n_agree == rows.n_rows:
        return False
    certificate = linear.certificates[0]
    counts = rows.map(Mark(linear.coef[:, 0], certificate.agreement, RELU)).reduce(tally_of)
    marks = np.arange(len(counts))
    if certificate.verdict.stands:
        return bool(counts[marks & AGREES > 0].sum() > n_agree)
    at_zero, negative = counts[marks & (DECISIVE | IMPOSSIBLE) == 0].sum(), counts[marks & IMPOSSIBLE > 0].sum()
    return bool(at_zero >= _PILE * counts.sum() and 2 * negative <= counts.sum())


def _worth(recovery: Recovery) -> tuple[Verdict, float]:
    """Rank what is known about an answer: by verdict, then by rows; estimates by their scale, since rows follow it."""
    verdict = recovery.certificates[0].verdict
    size = -float(recovery.scale[0]) if verdict is Verdict.NOISY else float(recovery.n_agree[0])
    return verdict, size
