"""Recovery of rows that are all in memory: what the paper's algorithms by name share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from massart.agreement import Agreement, levels, tally_of
from massart.certificate import Certificate, geometry_of
from massart.link import Link
from massart.recover.judge import judge
from massart.recover.judges import Assumption, Formula, Judges
from massart.recover.propose import Options
from massart.rows import BoolArray, FloatArray, Sample, check_labels, check_matrix, check_weights, precision_of

Solve: TypeAlias = Callable[[Sample, Sequence[Agreement], Options], tuple[FloatArray, Agreement]]


@dataclass(frozen=True, slots=True)
class ArrayRecovery:
    """A formula y = f(w.x) with what the rows say about it.

    Attributes
    ----------
    coef : (d,) array
        w.
    agree : (n,) boolean array
        Rows that agree.
    agreement : Agreement
        When a row does.
    certificate : Certificate
        What is known.
    """

    coef: FloatArray
    agree: BoolArray
    agreement: Agreement
    certificate: Certificate


def recover_arrays(
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    tolerance: float | Literal["auto"],
    link: Link,
    options: Options,
    solve: Solve,
) -> ArrayRecovery:
    """Check the arguments, solve, and judge the answer by all rows.

    Parameters
    ----------
    solve : callable
        ``solve(sample, levels, options)`` returns the formula and the level that it needs.
    """
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    sample = Sample(rows, labels, check_weights(sample_weight, len(rows)), np.arange(len(rows)))
    candidates = levels(tolerance, rows, labels, X_precision=precision_of(X), y_precision=precision_of(y))
    coef, agreement = solve(sample, candidates, options)
    agreement = agreement.uncapped
    formula = Formula(coef, agreement, link)
    judges = Judges(sample, geometry_of(rows, sample_weight=sample.weights), None, None, Assumption(), options.rng)
    found, marks = formula.marks(sample)
    return ArrayRecovery(coef, found.agree, agreement, judge(formula, judges, tally_of(marks, sample.weights)))
