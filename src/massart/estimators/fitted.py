"""What a fitted estimator tells: which rows follow its formula, tests and intervals, a summary, a report, a plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from massart.certificate import Certificate
from massart.estimators.checks import take_names
from massart.estimators.distances import robust_distances
from massart.estimators.frames import Origin, WrongRows, origin_of
from massart.estimators.inference import Inference
from massart.estimators.summary import Summary
from massart.report import Findings, JudgedRows, Report, called_wrong, usage_of
from massart.report.diagnostics import Diagnostics, draw
from massart.rows import (
    AGREES,
    IDENTITY,
    Block,
    BoolArray,
    FloatArray,
    Has,
    Link,
    Mark,
    Values,
    is_elsewhere,
    matrix_of,
    namespace_of,
    row_blocks,
    rows_of,
    to_numpy,
)
from massart.rows.namespace import floats
from massart.rules.formula import Formula


class Fitted(BaseEstimator):  # type: ignore[misc]
    """The fitted attributes of a regressor that found a formula, and what can be asked of it then."""

    fit_intercept: bool

    coef_: FloatArray
    intercept_: float | FloatArray
    standard_errors_: FloatArray
    intercept_standard_error_: float | FloatArray
    exact_coef_: tuple[Any, ...]
    exact_intercept_: Fraction | tuple[Fraction | None, ...] | None
    inlier_mask_: BoolArray
    last_place_mask_: BoolArray
    noise_rate_: float | FloatArray
    scale_: float | FloatArray
    robust_r2_: float | FloatArray
    degrees_of_freedom_: int | NDArray[np.intp]
    certificate_: Any  # a Certificate, or a tuple of them
    formula_: str | tuple[str, ...]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    _targets: Sequence[str]
    _answers: tuple[tuple[Formula, Certificate], ...]
    _covariances: tuple[FloatArray | None, ...]
    _weights: tuple[Any, ...]
    _wrong_rows: tuple[WrongRows, ...] | None
    _apart: tuple[BoolArray, ...] | None

    def _link(self) -> Link:
        """Return f of y = f(w.x)."""
        return IDENTITY

    def agrees(self, X: Any, y: Any) -> Any:
        """Tell which rows follow the formula, new ones or those of `fit`: a boolean array in the shape of `y`."""
        return self._agrees(*self._checked(X, y))

    @property
    def covariance_(self) -> FloatArray:
        """Covariance of the coefficients, the constant last: (p, p), or (m, p, p) if y had m columns."""
        check_is_fitted(self)
        p = self.n_features_in_ + self.fit_intercept
        found = [
            np.full((p, p), 0.0 if certificate.verdict.stands else np.nan) if known is None else known
            for known, (_, certificate) in zip(self._covariances, self._answers, strict=True)
        ]
        return found[0] if self.coef_.ndim == 1 else np.stack(found)

    @property
    def weights_(self) -> Any:
        """Robustness weights of the rows of `fit`, from 1 to 0; of an exact formula, whether a row follows it."""
        check_is_fitted(self)
        mask = self.inlier_mask_
        masks = [mask] if mask.ndim == 1 else [mask[:, j] for j in range(mask.shape[1])]
        found = [_floats(one) if known is None else known for one, known in zip(masks, self._weights, strict=True)]
        return found[0] if mask.ndim == 1 else namespace_of(found[0]).stack(found, axis=1)

    @property
    def wrong_rows_(self) -> Any:
        """The rows of `fit` that are called wrong, the worst first: a table of the kind that they came in."""
        check_is_fitted(self)
        if self._wrong_rows is None:
            raise AttributeError("wrong_rows_ is kept of rows in memory only: use inlier_mask_ and predict")
        tables = tuple(rows.table() for rows in self._wrong_rows)
        return tables[0] if self.coef_.ndim == 1 else tables

    def _repr_html_inner(self) -> str:
        """Return the diagram of scikit-learn and below it, once fitted, the rule and its verdict."""
        diagram = str(estimator_html_repr(self))
        if not hasattr(self, "coef_"):
            return diagram
        return diagram + "".join(self.summary(output=j)._repr_html_() for j in range(len(self._answers)))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the same for a notebook, if it shows diagrams."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def summary(self, level: float = 0.95, *, output: int = 0) -> Summary:
        """Return the verdict and a table of the coefficients, with tests and intervals where they are estimates.

        Parameters
        ----------
        level : float
            Of the confidence intervals.
        output : int
            The label column, if y had several.
        """
        findings = self.report(output=output).findings
        inference = self._inference(output)
        inference.intervals(level)  # which names a level that is none
        return Summary(findings, inference, float(np.atleast_1d(self.robust_r2_)[output]), level)

    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Return confidence intervals of the coefficients, the constant last: (p, 2), or (m, p, 2).

        Their limits are the coefficients themselves where labels are exact, and NaN where nothing is known.
        """
        check_is_fitted(self)
        limits = [self._inference(j).intervals(level) for j in range(len(self._answers))]
        return limits[0] if self.coef_.ndim == 1 else np.stack(limits)

    def predict_interval(self, X: Any, level: float = 0.95, kind: Literal["mean", "label"] = "mean") -> FloatArray:
        """Return limits for the rows of `X`: (n, 2), or (n, m, 2) if y had m columns.

        Parameters
        ----------
        X : (n, d) array, SciPy sparse matrix or data frame
        level : float
            Of confidence.
        kind : {"mean", "label"}
            Limits of what the formula gives, or of a right label, which carries noise of the same scale in every row.

        Notes
        -----
        Exact formulas have no other limits than what they give, and labels those of their rounding. Rows that the rows
        of `fit` do not determine have infinite limits; without a rule they are NaN. Behind a link that clips, noise is
        taken to come before it.
        """
        check_is_fitted(self)
        if kind not in ("mean", "label"):
            raise ValueError(f'kind must be "mean" or "label", got {kind!r}')
        X = validate_data(self, to_numpy(X) if is_elsewhere(X) else X, accept_sparse="csr", reset=False)
        limits = [
            np.concatenate([inference.limits(rows, level, kind) for rows in self._blocks(X)])
            for inference in map(self._inference, range(len(self._answers)))
        ]
        return limits[0] if self.coef_.ndim == 1 else np.stack(limits, axis=1)

    def report(self, X: Any = None, y: Any = None, *, output: int = 0) -> Report:
        """Return a page about the formula: it shows itself in a notebook, and ``save(path)`` writes it as HTML.

        Parameters
        ----------
        X, y : arrays or frames, optional
            The rows of `fit`. With them the report shows pictures and the wrong rows, by their index or its labels;
            without them, what is known of the formula.
        output : int
            The label column, if y had several.
        """
        formula, certificate = self._answer(output)
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together, or neither")
        agree, last_place = (self._of_output(mask, output) for mask in (self.inlier_mask_, self.last_place_mask_))
        if self._apart is not None:
            apart = self._apart[output]
        else:  # of rows elsewhere, where they are given
            apart = np.zeros(len(agree), dtype=bool) if X is None else self._rows_apart(X, output)
        wrong = called_wrong(certificate, agree, last_place, apart)
        counts = len(agree), int(agree.sum()), int(wrong.sum())
        findings = Findings(type(self).__name__, formula, certificate, *counts, n_apart=int(apart.sum()))
        if X is None:
            return Report(findings)
        origin = origin_of(X, y)
        X, y = (to_numpy(rows) if is_elsewhere(rows) else rows for rows in self._checked(X, y))
        if y.shape != self.inlier_mask_.shape:
            raise ValueError(f"X and y must be those of fit: y had shape {self.inlier_mask_.shape}, got {y.shape}")
        cells = _Cells(X, formula.names, origin)
        rows = JudgedRows(self._of_output(y, output), formula.predict(X), agree, wrong, cells, terms=X)
        usage = usage_of(X, agree, constant=formula.intercept is not None)
        return Report(replace(findings, usage=usage, rows=rows if findings.is_rule else None))

    def plot(self, X: Any, y: Any, *, output: int = 0) -> Any:
        """Return a matplotlib figure: residuals against fit, robust distances against residuals, normal quantiles.

        Parameters
        ----------
        X, y : arrays or frames
            The rows of `fit`, or new ones.
        output : int
            The label column, if y had several.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        formula, certificate = self._answer(output)
        origin = origin_of(X, y)
        X, y = (to_numpy(rows) if is_elsewhere(rows) else rows for rows in self._checked(X, y))
        agree, labels = (self._of_output(values, output) for values in (self._agrees(X, y), y))
        fitted = formula.predict(X)
        distances, rank = robust_distances(X)
        scale = certificate.scale or 0.0
        return draw(
            Diagnostics(str(formula.target), fitted, labels - fitted, agree, scale, distances, rank, origin.labels)
        )

    def _answer(self, output: int) -> tuple[Formula, Certificate]:
        check_is_fitted(self)
        if not 0 <= output < len(self._answers):
            raise ValueError(f"output must be from 0 to {len(self._answers) - 1}, got {output}")
        return self._answers[output]

    def _of_output(self, values: Any, output: int) -> NDArray[Any]:
        """Return the values of one label column, in memory."""
        values = to_numpy(values)
        return np.asarray(values.reshape(len(values), -1)[:, output])

    def _rows_apart(self, X: Any, output: int) -> BoolArray:
        """Return the rows that are set apart, since most rows of their segment of X break the formula."""
        off = ~self._of_output(self.inlier_mask_, output) & ~self._of_output(self.last_place_mask_, output)
        segment = self._answers[output][1].segment
        if segment is None or not segment.is_accused or segment.column is None:
            return np.zeros(len(off), dtype=bool)
        column = to_numpy(X[:, segment.column])
        column = column.toarray().ravel() if hasattr(column, "toarray") else column
        return np.asarray(off & (column >= segment.low) & (column <= segment.high))

    def _inference(self, output: int) -> Inference:
        """Return the tests and intervals of one label column."""
        freedom = float(np.atleast_1d(self.degrees_of_freedom_)[output])
        return Inference(*self._answers[output], self._covariances[output], freedom)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return rows and labels that fit those of `fit`."""
        check_is_fitted(self)
        if is_elsewhere(X):
            take_names(self, X, reset=False)
            X = matrix_of(X)
        else:
            X, y = validate_data(self, X, y, accept_sparse="csr", multi_output=True, y_numeric=True, reset=False)
        m = 1 if np.ndim(y) == 1 else int(np.shape(y)[1])
        if m != len(self._answers):
            raise ValueError(f"y must have {len(self._answers)} column(s) as in fit, got {m}")
        return X, y

    def _agrees(self, X: Any, y: Any) -> Any:
        rows = rows_of(X, y, intercept=self.fit_intercept)
        kernels = (Mark(f.coef, c.agreement, self._link(), j) for j, (f, c) in enumerate(self._answers))
        return masks_of([rows.map(kernel) for kernel in kernels], AGREES, one_output=self.coef_.ndim == 1)

    def _blocks(self, X: Any) -> Iterator[FloatArray]:
        """Yield rows with their constant, some at a time."""
        for rows in row_blocks(X.shape[0], X.shape[1]):
            yield Block(X[rows], None, None, self.fit_intercept).dense()

    @property
    def _names(self) -> list[str]:
        """The names of the columns, without the constant."""
        return [*getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])]


def masks_of(marks: Sequence[Values], mark: int, one_output: bool) -> Any:
    """Return which rows have a mark: (n,), or (n, m) if y had m columns."""
    masks = [values.map(Has(mark)).native() for values in marks]
    if one_output:
        return masks[0]
    return namespace_of(masks[0]).stack(masks, axis=1)


def _floats(mask: Any) -> Any:
    """Return a mask as numbers, where it is; arrays of Dask have a method for that, those of torch a function."""
    return mask.astype(np.float64) if hasattr(mask, "astype") else floats(mask)


@dataclass(frozen=True, slots=True)
class _Cells:
    X: Any
    names: Sequence[str]
    origin: Origin

    def __call__(self, rows: NDArray[np.intp]) -> dict[str, list[object]]:
        some = self.X[rows]
        values = np.asarray(some.toarray() if hasattr(some, "toarray") else some)
        index = self.origin.index_name
        while index in self.names:
            index += "_"
        return {index: self.origin.labels(rows), **{name: values[:, j].tolist() for j, name in enumerate(self.names)}}
