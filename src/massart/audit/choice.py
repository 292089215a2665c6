"""Linear or ReLU: the kind of formula that the rows certify.

A ReLU with the formula of the linear answer keeps its positive rows, gains the rows with label zero where the formula
is negative, and loses the others there. So where no label is zero, or every row agrees, the linear answer stands.
Otherwise both are fitted, and the ReLU is taken if what is known about it is worth at least as much and it fits more
rows. That most labels are zero is not worth much: a ReLU that is clipped on most rows says so, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from massart.certificate import Verdict
from massart.progress import Callback, silent
from massart.recover import Recovery, recover, through
from massart.relu import IDENTITY, RELU, Link
from massart.rows import FloatArray, Rows

Kind: TypeAlias = Literal["auto", "linear", "relu"]

KINDS = {"linear": IDENTITY, "relu": RELU}

_CERTAIN = (Verdict.PROVEN, Verdict.MAJORITY)
_NOISY = 1


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer for one label column, and why it is of its kind.

    Attributes
    ----------
    link : Link
    recovery : Recovery
    reason : str
        A sentence; empty where there was nothing to choose.
    """

    link: Link
    recovery: Recovery
    reason: str


def fit(
    rows: Rows,
    y: FloatArray,
    kind: Kind,
    *,
    tolerance: float | Literal["auto"],
    seed: int,
    column_names: Sequence[str],
    callback: Callback = silent,
) -> Choice:
    """Fit the formula of the kind asked for, or of the kind that the rows certify.

    Parameters
    ----------
    rows : Rows
        With one label column.
    y : (n,) array
        The same labels.
    kind : {"auto", "linear", "relu"}
    tolerance : "auto" or float
    seed : int
        Of all random choices.
    column_names : sequence of str
        The constant included.
    callback : callable
    """

    def attempt(link: Link) -> Recovery:
        return recover(
            rows,
            tolerance=tolerance,
            rng=np.random.default_rng(seed),
            model=through(link),
            column_names=column_names,
            callback=callback,
        )

    if kind != "auto":
        return Choice(KINDS[kind], attempt(KINDS[kind]), "")
    return _choose(attempt, y)


def _choose(attempt: Callable[[Link], Recovery], y: FloatArray) -> Choice:
    linear = attempt(IDENTITY)
    zeros = np.abs(y) <= linear.tolerances[0].absolute
    if not zeros.any() or linear.agree.all() or 2 * np.count_nonzero(y < 0) > len(y):
        return Choice(IDENTITY, linear, "")
    relu = attempt(RELU)
    if not _better(relu, linear):
        return Choice(IDENTITY, linear, "")
    gain = int(relu.agree.sum()) - int(linear.agree.sum())
    return Choice(RELU, relu, f"Values below zero are taken as 0: so {gain:,} more rows follow than with no limit.")


def _better(relu: Recovery, linear: Recovery) -> bool:
    worth, rival = _worth(relu), _worth(linear)
    if worth == rival == _NOISY:  # what agrees depends on the scale
        return bool(relu.scale[0] < linear.scale[0])
    return worth >= rival and relu.agree.sum() > linear.agree.sum()


def _worth(recovery: Recovery) -> int:
    """Rank what is known about an answer."""
    if not recovery.coef.any():
        return 0
    certificate = recovery.certificates[0]
    if certificate.verdict in _CERTAIN:
        return 3
    if certificate.determined in _CERTAIN:
        return 2
    return _NOISY if certificate.verdict is Verdict.NOISY else 0
