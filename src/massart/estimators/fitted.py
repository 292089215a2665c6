"""What a fitted estimator says: which rows follow its formula, tests and intervals, a summary, a report, a plot.

Rows of arrays are known by their index, from 0, as ``X[index]`` takes it, and those of pandas by the labels of its
index. (Numbers of rows in files and audits, called *row*, count from 1.)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from massart.estimators.inference import Inference, Summary
from massart.estimators.plot import Diagnostics, draw, robust_distances
from massart.report import Findings, Report, ReportRows, Usage, called_wrong, usage_of
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
    floats,
    is_elsewhere,
    matrix_of,
    namespace_of,
    row_blocks,
    rows_of,
    to_numpy,
)

TARGET = "y"
"""What labels without a name are called."""

INDEX = "index"
"""What the index of rows without a name is called."""


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
    _answers: tuple[Inference, ...]
    _weights: tuple[Any, ...]
    _wrong_rows: tuple[Callable[[], Any], ...] | None
    _apart: tuple[BoolArray, ...] | None

    def _link(self) -> Link:
        """Return f of y = f(w.x)."""
        return IDENTITY

    def agrees(self, X: Any, y: Any) -> Any:
        """Return which rows follow the formula, new ones or those of `fit`: a boolean array in the shape of `y`."""
        return self._agrees(*self._checked(X, y))

    @property
    def covariance_(self) -> FloatArray:
        """Covariance of the coefficients, the constant last: (p, p), or (m, p, p) if y had m columns."""
        check_is_fitted(self)
        p = self.n_features_in_ + self.fit_intercept
        found = [
            np.full((p, p), 0.0 if one.certificate.verdict.stands else np.nan)
            if one.covariance is None
            else one.covariance
            for one in self._answers
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
        tables = tuple(table() for table in self._wrong_rows)
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
        inference = self._answers[output]
        inference.intervals(level)  # which names a level that is none
        return Summary(findings, inference, float(np.atleast_1d(self.robust_r2_)[output]), level)

    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Return confidence intervals of the coefficients, the constant last: (p, 2), or (m, p, 2).

        Their limits are the coefficients themselves where labels are exact, and NaN where nothing is known.
        """
        check_is_fitted(self)
        limits = [answer.intervals(level) for answer in self._answers]
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
        X = validate_data(self, _on_host(X), accept_sparse="csr", reset=False)
        limits = [
            np.concatenate([answer.limits(rows, level, kind) for rows in self._blocks(X)]) for answer in self._answers
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
        answer = self._answer(output)
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together, or neither")
        agree, last_place = (self._of_output(mask, output) for mask in (self.inlier_mask_, self.last_place_mask_))
        if self._apart is not None:
            apart = self._apart[output]
        else:  # of rows elsewhere, where they are given
            apart = np.zeros(len(agree), dtype=bool) if X is None else self._rows_apart(X, output)
        wrong = called_wrong(answer.certificate, agree, last_place, apart)
        counts = len(agree), int(agree.sum()), int(wrong.sum())
        known = answer.formula, answer.certificate
        findings = Findings(type(self).__name__, *known, *counts, n_apart=int(apart.sum()))
        if X is None:
            return Report(findings)
        rows, usage = self._report_rows(X, y, output, agree, wrong)
        return Report(replace(findings, usage=usage, rows=rows if findings.is_rule else None))

    def _report_rows(
        self, X: Any, y: Any, output: int, agree: BoolArray, wrong: BoolArray
    ) -> tuple[ReportRows, tuple[Usage, ...]]:
        """Return the rows of `fit` as a report shows them, and how many use each coefficient."""
        formula, origin = self._answers[output].formula, origin_of(X, y)
        X, y = map(_on_host, self._checked(X, y))
        if y.shape != self.inlier_mask_.shape:
            raise ValueError(f"X and y must be those of fit: y had shape {self.inlier_mask_.shape}, got {y.shape}")
        index = origin.index_name
        while index in formula.names:
            index += "_"

        def cells(rows: NDArray[np.intp]) -> dict[str, list[object]]:
            some = X[rows].toarray() if hasattr(X, "toarray") else np.asarray(X[rows])
            columns = {name: some[:, j].tolist() for j, name in enumerate(formula.names)}
            return {index: origin.labels(rows), **columns}

        rows = ReportRows(self._of_output(y, output), formula.predict(X), agree, wrong, cells, terms=X)
        return rows, usage_of(X, agree, constant=formula.intercept is not None)

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
        answer, origin = self._answer(output), origin_of(X, y)
        X, y = map(_on_host, self._checked(X, y))
        agree, labels = (self._of_output(values, output) for values in (self._agrees(X, y), y))
        target, fitted, scale = str(answer.formula.target), answer.formula.predict(X), answer.certificate.scale or 0.0
        return draw(Diagnostics(target, fitted, labels - fitted, agree, scale, *robust_distances(X), origin.labels))

    def _answer(self, output: int) -> Inference:
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
        segment = self._answers[output].certificate.segment
        if segment is None or not segment.is_accused or segment.column is None:
            return np.zeros(len(off), dtype=bool)
        column = to_numpy(X[:, segment.column])
        column = column.toarray().ravel() if hasattr(column, "toarray") else column
        return np.asarray(off & (column >= segment.low) & (column <= segment.high))

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
        found = enumerate(self._answers)
        kernels = (Mark(one.formula.coef, one.certificate.agreement, self._link(), j) for j, one in found)
        return masks_of([rows.map(kernel) for kernel in kernels], AGREES, one_output=self.coef_.ndim == 1)

    def _blocks(self, X: Any) -> Iterator[FloatArray]:
        """Yield rows with their constant, some at a time."""
        for rows in row_blocks(X.shape[0], X.shape[1]):
            yield Block(X[rows], None, None, self.fit_intercept).dense()

    @property
    def _names(self) -> list[str]:
        """The names of the columns, without the constant."""
        return [*getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])]


def _on_host(rows: Any) -> Any:
    return to_numpy(rows) if is_elsewhere(rows) else rows


def masks_of(marks: Sequence[Values], mark: int, one_output: bool) -> Any:
    """Return which rows have a mark: (n,), or (n, m) if y had m columns."""
    masks = [values.map(Has(mark)).native() for values in marks]
    if one_output:
        return masks[0]
    return namespace_of(masks[0]).stack(masks, axis=1)


def _floats(mask: Any) -> Any:
    """Return a mask as numbers, where it is; arrays of Dask have a method for that, those of torch a function."""
    return mask.astype(np.float64) if hasattr(mask, "astype") else floats(mask)


def take_names(estimator: Any, X: Any, *, reset: bool = True) -> None:
    """Note the number of columns and their names, or compare with those of `fit`, as ``validate_data`` does."""
    names = None if getattr(X, "columns", None) is None else np.array([*map(str, X.columns)], dtype=object)
    if reset:
        if X.ndim != 2:
            raise ValueError(f"X must be a matrix (2 dimensions), got an array of {X.ndim} dimension(s)")
        estimator.n_features_in_ = int(X.shape[1])
        if names is not None:
            estimator.feature_names_in_ = names
        return
    if int(X.shape[1]) != estimator.n_features_in_:
        own = type(estimator).__name__
        raise ValueError(
            f"X has {int(X.shape[1])} features, but {own} is expecting {estimator.n_features_in_} features as input"
        )
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and [*names] != [*known]:
        raise ValueError("The feature names should match those that were passed during fit, in their order")


@dataclass(frozen=True, slots=True)
class Origin:
    """What the rows and labels of a fit came as."""

    library: str | None = None  # "pandas" or "polars"; None for arrays
    index: Any = None  # pandas.Index, or None: the labels of the rows

    @property
    def index_name(self) -> str:
        """What the labels of the rows are called."""
        name = getattr(self.index, "name", None)
        return INDEX if name is None else str(name)

    def labels(self, rows: NDArray[np.intp]) -> list[object]:
        """Return the labels of some rows: numbers, or text."""
        found = rows.tolist() if self.index is None else self.index[rows].tolist()
        return [label if isinstance(label, int | float | str) else str(label) for label in found]

    def of(self, rows: NDArray[np.intp]) -> Origin:
        """Return the same for some of the rows."""
        return Origin(self.library, None if self.index is None else self.index[rows])


def wrong_table(
    rows: NDArray[np.intp], given: FloatArray, implied: FloatArray, origin: Origin, places: int | None
) -> Any:
    """Return wrong rows, the worst first, as a frame of the library they came from, or an array with their index.

    What the formula implies is rounded to the decimals of the labels.
    """
    implied = implied if places is None else np.round(implied, places)
    residual = given - implied
    order = np.argsort(-np.abs(residual), kind="stable")
    columns: dict[str, NDArray[Any]] = {"given": given[order], "implied": implied[order], "residual": residual[order]}
    if origin.index is not None:
        return sys.modules["pandas"].DataFrame(columns, index=origin.index[order])
    columns = {INDEX: rows[order], **columns}
    if origin.library == "polars":
        return sys.modules["polars"].DataFrame(columns)
    array = np.empty(len(order), dtype=[(name, values.dtype) for name, values in columns.items()])
    for name, values in columns.items():
        array[name] = values
    return array


def origin_of(X: Any, y: Any = None) -> Origin:
    """Return what rows and labels came as: the rows decide, unless only the labels are of a frame."""
    for data in (X, y):
        for library in ("pandas", "polars"):
            module = sys.modules.get(library)  # which it is if there is a frame of it
            if module is not None and isinstance(data, module.DataFrame | module.Series):
                return Origin(library, data.index if library == "pandas" else None)
    return Origin()


def target_names(y: Any, m: int) -> list[str]:
    """Return the names of the m label columns: y0, y1, ... where they have none."""
    if getattr(y, "columns", None) is not None:
        return [str(column) for column in y.columns]
    name = y.name if hasattr(y, "to_frame") else None  # of a series; arrays of Dask have names of another kind
    name = name if isinstance(name, str) and name else TARGET
    return [name] if m == 1 else [f"{name}{j}" for j in range(m)]
