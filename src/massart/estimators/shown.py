"""What a fitted estimator knows, as findings that a report shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Certificate
from massart.formula import compose
from massart.relu import Link
from massart.report import Findings, JudgedRows, Support
from massart.rows import BoolArray, FloatArray

TARGET = "y"


@dataclass(frozen=True, slots=True)
class Known:
    """One formula of an estimator.

    Attributes
    ----------
    title : str
    names : sequence of str
        Of the columns, without the constant.
    coef, standard_errors : (d,) arrays
        The constant last, if there is one.
    exact : sequence of Fraction or None
    certificate : Certificate
    agreement : str
    link : Link
    """

    title: str
    names: Sequence[str]
    coef: FloatArray
    exact: Sequence[Fraction | None]
    standard_errors: FloatArray
    certificate: Certificate
    agreement: str
    link: Link


def findings_of(known: Known, agree: BoolArray, X: Any = None, y: FloatArray | None = None) -> Findings:
    """Return the findings; with pictures and wrong rows where the rows of the fit are given."""
    columns = [(name, None) for name in known.names]
    formula = compose(TARGET, columns, known.coef, known.exact, known.standard_errors, known.certificate, known.link)
    rows = None
    support: tuple[Support, ...] = ()
    if y is not None:
        rows = JudgedRows(y, formula.predict(X), ~agree, _Cells(X, known.names))
        support = _support(X, agree, constant=formula.intercept is not None)
    return Findings(
        title=known.title,
        formula=formula,
        certificate=known.certificate,
        agreement=known.agreement,
        n_rows=len(agree),
        n_wrong=int(np.count_nonzero(~agree)),
        support=support,
        rows=rows,
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    X: Any
    names: Sequence[str]

    def __call__(self, rows: NDArray[np.intp]) -> dict[str, list[object]]:
        some = self.X[rows]
        values = np.asarray(some.toarray() if hasattr(some, "toarray") else some)
        return {"row": rows.tolist(), **{name: values[:, j].tolist() for j, name in enumerate(self.names)}}


def _support(X: Any, agree: BoolArray, constant: bool) -> tuple[Support, ...]:
    used = X != 0  # sparse where X is
    counts = np.asarray(used.sum(axis=0)).ravel(), np.asarray(used[agree].sum(axis=0)).ravel()
    found = [Support(int(n), int(k)) for n, k in zip(*counts, strict=True)]
    return tuple([*found, Support(len(agree), int(agree.sum()))] if constant else found)
