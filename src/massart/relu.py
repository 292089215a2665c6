"""Moved to :mod:`massart.paper` and :class:`massart.MassartReLURegressor`; the names work for one release, and warn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from massart import paper
from massart.cutting_plane import Halfspace, Method
from massart.link import RELU, Link
from massart.moved import forwarding
from massart.recover import ArrayRecovery, judge_matrix, recover_matrix

__getattr__ = forwarding(
    __name__,
    {
        "Answer": "massart.paper:Answer",
        "Descent": "massart.paper:Descent",
        "IDENTITY": "massart.link:IDENTITY",
        "ReLURecovery": "massart.recover:ArrayRecovery",
        "Scale": "massart.paper:Scale",
        "Separation": "massart.paper:Separation",
        "Transformation": "massart.paper:Transformation",
        "descend": "massart.paper:descend",
        "separation_margin": "massart.paper:separation_margin",
    },
)


def recover_relu(
    X: ArrayLike, y: ArrayLike, *, link: Link = RELU, cuts: Method | None = None, **options: Any
) -> ArrayRecovery:
    """Do what :class:`massart.MassartReLURegressor` does, or :func:`massart.paper.recover_relu` with `cuts`."""
    _warn("recover_relu", "massart.MassartReLURegressor, and massart.paper.recover_relu for the paper's algorithm")
    if cuts is None:
        return recover_matrix(X, y, link=link, **options)
    if link != RELU or "sample_weight" in options:
        raise ValueError("cuts are for the ReLU, without weights: leave cuts out for other links")
    return judge_matrix(X, y, paper.recover_relu(X, y, method=cuts).w, link=link)


def separation_oracle(X: ArrayLike, y: ArrayLike, *, gamma: float = 0.5) -> Callable[[ArrayLike], Halfspace | None]:
    """Return a function of a query that asks :func:`massart.paper.separation_oracle`."""
    _warn("separation_oracle", "massart.paper.separation_oracle, which takes the query as well")

    def oracle(w0: ArrayLike) -> Halfspace | None:
        found = paper.separation_oracle(X, y, w0, gamma=gamma)
        cut = found.answer is paper.Answer.CUT
        return Halfspace(found.normal, float(found.normal @ np.asarray(w0, dtype=np.float64))) if cut else None

    return oracle


def _warn(name: str, new: str) -> None:
    text = f"massart.relu.{name} is now {new}; the old name will be removed in the next release"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
