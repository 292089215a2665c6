"""The recovery of two arrays, for benchmarks and tests: :func:`massart.recover.recover` with one label column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.certificate import Certificate
from massart.recover import recover
from massart.rows import Agreement, ArrayRows


@dataclass(frozen=True, slots=True)
class Recovered:
    """A formula, the rows that agree with it, and what they say about it."""

    coef: NDArray[np.float64]
    agree: NDArray[np.bool_]
    certificate: Certificate

    @property
    def agreement(self) -> Agreement:
        """When a row agrees."""
        return self.certificate.agreement


def recovered(X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, **options: Any) -> Recovered:
    """Recover y = f(w.x) exactly; the options are those of `recover`, with a fixed generator by default."""
    options = {"rng": np.random.default_rng(0), "inliers": "exact"} | options
    found = recover(ArrayRows(np.asarray(X), y, sample_weight), **options)
    return Recovered(found.coef[:, 0], found.agree[:, 0], found.certificates[0])
