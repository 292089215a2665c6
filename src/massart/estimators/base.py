"""What the estimators share: scikit-learn's conventions around one call of the driver."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from massart.agreement import AGREES, LAST_PLACE, Has
from massart.certificate import Certificate, Verdict
from massart.link import Link
from massart.recover import Recovery, recover
from massart.report import Findings, JudgedRows, Report, called_wrong, usage_of
from massart.rows import FloatArray, Values, is_elsewhere, like, matrix_of, namespace_of, rows_of, to_numpy
from massart.rows.memory import times
from massart.rows.namespace import is_on_host, place_of
from massart.rules.formula import Formula, compose
from massart.rules.terms import column

# The rows find NaN and infinity where they read them anyway, and name the place.
CHECKS_OF_X = {"accept_sparse": "csr", "ensure_all_finite": False, "dtype": None}
CHECKS_OF_Y = {"ensure_2d": False, "ensure_all_finite": False, "dtype": None}

TARGET = "y"
"""What reports call the labels."""

_SEED_WORDS = 4


class Recoverer(MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A regressor that asks the driver for a formula; its parameters and attributes are those of its children."""

    fit_intercept: bool
    tolerance: float | Literal["auto"]
    inliers: Literal["auto", "exact", "noisy"]
    random_state: int | np.random.RandomState | None

    @abstractmethod
    def _link(self) -> Link:
        """Return f of y = f(w.x)."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the formula and the rows that follow it.

        Parameters
        ----------
        X : (n, d) array, SciPy sparse matrix or data frame
            Neither copied nor converted if it is an array of numbers. Arrays of CuPy and torch, and those and frames of
            Dask, stay where they are.
        y : (n,) or (n, m) array
            Of numpy, or of the kind of `X` and where that is.
        sample_weight : (n,) array, optional
            A row of weight c counts c times; one of weight 0 not at all.

        Returns
        -------
        Self

        Raises
        ------
        ValueError
            Naming the argument that is wrong and, where there is one, the row and the column.
        """
        if is_elsewhere(X):
            take_names(self, X)
        else:
            check_here(y, "y")
            X, y = validate_data(self, X, y, validate_separately=(CHECKS_OF_X, CHECKS_OF_Y))
            X = numbers_of(X, getattr(self, "feature_names_in_", None))
        rows = rows_of(X, y, sample_weight, intercept=self.fit_intercept)
        found = recover(
            rows,
            tolerance=self.tolerance,
            inliers=self.inliers,
            rng=generator_of(self.random_state),
            link=self._link(),
        )
        self._keep(found, one_output=np.ndim(y) == 1)
        _warn_of_doubt(found.certificates, self._names)
        return self

    def predict(self, X: Any) -> Any:
        """Return what the formula gives for the rows of `X`, where these are: (n,), or (n, m) if y had m columns."""
        check_is_fitted(self)
        if is_elsewhere(X):
            take_names(self, X, reset=False)
            X = matrix_of(X)
            if hasattr(X, "__dask_graph__"):
                return self._link()(X @ like(self.coef_.T, X) + like(self.intercept_, X))
            predicted = self._link()(times(X, np.vstack([self.coef_.T.reshape(X.shape[1], -1), self.intercept_])))
            return predicted[:, 0] if self.coef_.ndim == 1 else predicted
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return self._link()(np.asarray(X @ self.coef_.T + self.intercept_))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the predictions; of rows elsewhere, no more than their labels come to the host."""
        if not is_elsewhere(X):
            return float(super().score(X, y, sample_weight))
        weights = None if sample_weight is None else to_numpy(sample_weight)
        return float(r2_score(to_numpy(y), to_numpy(self.predict(X)), sample_weight=weights))

    def report(self, X: Any = None, y: ArrayLike | None = None, *, output: int = 0) -> Report:
        """Return a page about the formula: it shows itself in a notebook, and ``save(path)`` writes it as HTML.

        Parameters
        ----------
        X, y : arrays, optional
            The rows of `fit`. With them the report shows pictures and the wrong rows; without them, what is known of
            the formula.
        output : int
            The label column, if y had several.
        """
        check_is_fitted(self)
        if not 0 <= output < len(self._answers):
            raise ValueError(f"output must be from 0 to {len(self._answers) - 1}, got {output}")
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together, or neither")
        formula, certificate = self._answers[output]
        masks = to_numpy(self.inlier_mask_), to_numpy(self.last_place_mask_)
        agree, last_place = (mask.reshape(len(mask), -1)[:, output] for mask in masks)
        wrong = called_wrong(certificate, agree, last_place)
        findings = Findings(type(self).__name__, formula, certificate, len(agree), int(agree.sum()), int(wrong.sum()))
        if X is None:
            return Report(findings)
        X, y = (to_numpy(rows) if is_elsewhere(rows) else rows for rows in (X, y))
        X, y = validate_data(self, X, y, accept_sparse="csr", multi_output=True, y_numeric=True, reset=False)
        labels = np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1)
        if labels.shape != masks[0].reshape(len(agree), -1).shape:
            raise ValueError(f"X and y must be those of fit: y had shape {masks[0].shape}, got {np.shape(y)}")
        rows = JudgedRows(labels[:, output], formula.predict(X), agree, wrong, _Cells(X, formula.names))
        usage = usage_of(X, agree, constant=formula.intercept is not None)
        return Report(replace(findings, usage=usage, rows=rows if findings.is_rule else None))

    def _keep(self, found: Recovery, one_output: bool) -> None:
        """Copy the fields, without the axis of the outputs where y has none."""
        coef, errors, exact = found.coef, found.standard_errors, found.fractions
        if not self.fit_intercept:  # a constant that is known to be zero
            zero = np.zeros((1, len(exact)))
            coef, errors = np.vstack([coef, zero]), np.vstack([errors, zero])
            exact = tuple((*values, Fraction(0)) for values in exact)

        def each(values: Any) -> Any:
            value = values[0] if one_output else values
            return value.item() if isinstance(value, np.generic) else value

        self.coef_, self.intercept_ = each(np.ascontiguousarray(coef[:-1].T)), each(coef[-1])
        self.standard_errors_ = each(np.ascontiguousarray(errors[:-1].T))
        self.intercept_standard_error_ = each(errors[-1])
        self.exact_coef_ = each(tuple(values[:-1] for values in exact))
        self.exact_intercept_ = each(tuple(values[-1] for values in exact))
        self.inlier_mask_ = _masks(found.marks, AGREES, one_output)
        self.noise_rate_, self.scale_ = each(found.noise_rate), each(found.scale)
        self.certificate_ = each(found.certificates)
        self.last_place_mask_ = _masks(found.marks, LAST_PLACE, one_output)
        self._keep_formulas(found.coef, found.fractions, found.standard_errors, found.certificates)

    def _keep_formulas(
        self,
        coef: FloatArray,
        exact: Sequence[Sequence[Fraction | None]],
        errors: FloatArray,
        certificates: Sequence[Certificate],
    ) -> None:
        """Put the formulas of all outputs in words; coefficients have one column for each."""
        columns = [column(name) for name in self._names]
        formulas = (
            compose(TARGET, columns, *known, self._link())
            for known in zip(coef.T, exact, errors.T, certificates, strict=True)
        )
        self._answers: tuple[tuple[Formula, Certificate], ...] = tuple(zip(formulas, certificates, strict=True))

    @property
    def _names(self) -> list[str]:
        """The names of the columns, without the constant."""
        return [*getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_here(y: Any, name: str) -> None:
    """Raise ValueError if labels are on a device, and the rows are not."""
    if is_elsewhere(y) and not is_on_host(y):
        raise ValueError(f"{name} must be of numpy or where X is: X is on the host, and {name} of {place_of(y)}")


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


def _masks(marks: Sequence[Values], mark: int, one_output: bool) -> Any:
    masks = [values.map(Has(mark)).native() for values in marks]
    if one_output:
        return masks[0]
    return namespace_of(masks[0]).stack(masks, axis=1)


def generator_of(random_state: int | np.random.RandomState | None) -> np.random.Generator:
    """Return a generator for what scikit-learn calls a random state."""
    words: NDArray[np.uint32] = check_random_state(random_state).randint(2**32, size=_SEED_WORDS, dtype=np.uint32)
    return np.random.default_rng(words)


def numbers_of(X: Any, names: Sequence[str] | None) -> Any:
    """Return `X` itself, or a float64 array where frames of mixed columns and lists of Decimal arrive as objects."""
    if X.dtype.kind != "O":
        return X
    try:
        return X.astype(np.float64)
    except ValueError:
        i, j = next(place for place, value in np.ndenumerate(X) if not _is_number(value))
        name = f"column {j}" if names is None else names[j]
        raise ValueError(f"X must hold numbers, got {X[i, j]!r} in row {i} of {name}") from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    except TypeError:  # None, which counts as NaN
        pass
    return True


def _warn_of_doubt(certificates: Sequence[Certificate], names: Sequence[str]) -> None:
    for j, certificate in enumerate(certificates):
        in_doubt = certificate.verdict in (Verdict.PLURALITY, Verdict.NONE)
        if in_doubt or certificate.undetermined_columns:
            output = f" (output {j})" if len(certificates) > 1 else ""
            message = f"{certificate.verdict.name}{output}: {certificate.explain(names)}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)


@dataclass(frozen=True, slots=True)
class _Cells:
    X: Any
    names: Sequence[str]

    def __call__(self, rows: NDArray[np.intp]) -> dict[str, list[object]]:
        some = self.X[rows]
        values = np.asarray(some.toarray() if hasattr(some, "toarray") else some)
        return {"row": rows.tolist(), **{name: values[:, j].tolist() for j, name in enumerate(self.names)}}
