"""Linear or ReLU: the kind of formula that the rows certify.

A ReLU with the formula of the linear answer keeps its positive rows, gains the rows with label zero where the formula
is negative, and loses the other rows there. Where that is no gain, and the linear answer is certain, it stands.
Otherwise both are fitted, and the ReLU is taken if what is known about it is worth at least as much and it fits more
rows. That most labels are zero is not worth much: a ReLU that is clipped on most rows says so, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from massart.certificate import Verdict
from massart.progress import Callback, silent
from massart.recover import Recovery, recover, through
from massart.relu import IDENTITY, RELU, Link
from massart.rows import FloatArray, Rows

Kind: TypeAlias = Literal["auto", "linear", "relu"]

KINDS = {"linear": IDENTITY, "relu": RELU}

CERTAIN = (Verdict.PROVEN, Verdict.MAJORITY)

_NOISY, _PARTLY, _CERTAIN = 1, 2, 3
_SAME = 1e-9


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
    linear = attempt(IDENTITY)
    if not _may_be_clipped(linear, rows, y):
        return Choice(IDENTITY, linear, "")
    relu = _confirmed(attempt(RELU), linear)
    if not _is_better(relu, linear):
        return Choice(IDENTITY, linear, "")
    gain = int(relu.agree.sum()) - int(linear.agree.sum())
    why = f": so {gain:,} more rows follow than with no limit" if gain > 0 else ""
    return Choice(RELU, relu, f"Values below zero are taken as 0{why}.")


def _may_be_clipped(linear: Recovery, rows: Rows, y: FloatArray) -> bool:
    """Tell whether a ReLU could fit more rows than the linear answer."""
    agree, slack = linear.agree[:, 0], linear.tolerances[0].absolute
    zeros = np.abs(y) <= slack
    if not zeros.any() or agree.all():
        return False
    if _worth(linear) < _CERTAIN:
        return bool(2 * np.count_nonzero(y < -slack) <= len(y))
    negative = rows.map(lambda block: block.times(linear.coef)[:, 0] < 0)
    return bool(np.count_nonzero(zeros & ~agree & negative) > np.count_nonzero(agree & (y < -slack)))


def _confirmed(relu: Recovery, linear: Recovery) -> Recovery:
    """Return the ReLU with the verdict MAJORITY if it is the linear answer with a limit, which has that verdict.

    The rows that agree without the limit are a majority of all rows and determine every coefficient; a limit only adds
    rows. The certificate of a ReLU asks for more, since its formula was chosen with the limit in view.
    """
    same = np.allclose(relu.coef, linear.coef, rtol=_SAME, atol=_SAME * np.abs(linear.coef).max(initial=0.0))
    only_adds = bool((relu.agree >= linear.agree).all())  # no row that agreed below zero is lost
    doubted = relu.certificates[0].verdict is Verdict.PLURALITY
    if not (same and only_adds and doubted and _worth(linear) == _CERTAIN):
        return relu
    certificate = replace(relu.certificates[0], verdict=Verdict.MAJORITY, determined=Verdict.MAJORITY)
    return replace(relu, certificates=(certificate,), standard_errors=np.zeros_like(relu.standard_errors))


def _is_better(relu: Recovery, linear: Recovery) -> bool:
    worth, rival = _worth(relu), _worth(linear)
    if worth == rival == _NOISY:  # what agrees depends on the scale
        return bool(relu.scale[0] < linear.scale[0])
    return worth >= rival and bool(relu.agree.sum() > linear.agree.sum())


def _worth(recovery: Recovery) -> int:
    """Rank what is known about an answer."""
    certificate = recovery.certificates[0]
    if not recovery.coef.any():
        return 0
    if certificate.verdict in CERTAIN:
        return _CERTAIN
    if certificate.determined in CERTAIN:
        return _PARTLY
    return _NOISY if certificate.verdict is Verdict.NOISY else 0
