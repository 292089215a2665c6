"""Terms as a step of a scikit-learn pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import date
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from massart.rows import FloatArray
from massart.rules import Columns, Levels, Term, TermMatrix, parse_terms, quoted, shown

_DAY = np.timedelta64(1, "D")


class TermFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Products, ratios, hinges, rates by category and other terms of the columns of a table.

    Parameters
    ----------
    terms : str or sequence of str
        What to compute, such as ``"qty*price, hours:service, max(0, kwh - 200)"``, in the language of
        :mod:`massart.rules.language`. "columns" is every column as it stands, and each level of a column of text.

    Attributes
    ----------
    terms_ : tuple of Term
        One for each column that comes out.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        Only if X is a data frame whose columns all have names; otherwise terms call the columns x0, x1, ...

    Warns
    -----
    UserWarning
        From :meth:`transform`, for levels of a category that `fit` has not seen: all terms of the category are 0 there.

    Notes
    -----
    A column of a data frame may hold numbers, dates or text; an array holds numbers. Only the columns that terms use
    must be complete. Lags and running sums are computed in the order of the rows of each call; a lag is NaN in the
    first row. Other terms that have no finite value are an error.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from massart import MassartRegressor, TermFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(1, 50, size=(200, 2))
    >>> y = 0.5 * X[:, 0] * X[:, 1] + 3 * np.maximum(0, X[:, 1] - 20)
    >>> y[:60] = 999
    >>> model = make_pipeline(TermFeatures("x0*x1, max(0, x1 - 20)"), MassartRegressor(random_state=0)).fit(X, y)
    >>> model[-1].coef_
    array([0.5, 3. ])
    >>> model[0].get_feature_names_out()
    array(['x0 * x1', 'max(0, x1 - 20)'], dtype=object)
    """

    def __init__(self, terms: str | Sequence[str] = "columns") -> None:
        self.terms = terms

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the terms, and the levels that columns of text have.

        Parameters
        ----------
        X : (n, d) array or data frame
        y : ignored

        Raises
        ------
        TermError
            Naming the term that cannot be read, or that has no value in a row.
        """
        read = self._columns(X, reset=True)
        numbers = {name: values for name, values in read.items() if values.dtype.kind == "f"}
        levels = {name: _levels(values) for name, values in read.items() if values.dtype.kind == "O"}
        dates = {name: _days(values) for name, values in read.items() if values.dtype.kind == "M"}
        columns = Columns(numbers | dates, levels, frozenset(dates))
        self.terms_ = self._read(list(read), columns)
        used = {name for term in self.terms_ for name in term.columns()}
        self._levels = {name: known.names for name, known in levels.items() if name in used}
        self._dates = columns.dates & used
        self._matrix(read)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the values of the terms: (n, number of terms)."""
        check_is_fitted(self)
        return self._matrix(self._columns(X, reset=False))[:]

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the terms in words, such as ``qty * price``.

        Parameters
        ----------
        input_features : sequence of str, optional
            The names of the columns of `fit`, for a check.
        """
        check_is_fitted(self)
        if input_features is not None:
            seen = getattr(self, "feature_names_in_", None)
            if len(input_features) != self.n_features_in_ or (seen is not None and list(input_features) != list(seen)):
                raise ValueError("input_features is not equal to feature_names_in_, or has another length")
        return np.array([str(term) for term in self.terms_], dtype=object)

    def _read(self, names: Sequence[str], columns: Columns) -> tuple[Term, ...]:
        texts: Any = [self.terms] if isinstance(self.terms, str) else self.terms
        if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"terms must be a text, or a sequence of texts, got {self.terms!r}")
        return parse_terms(", ".join(map(quoted, names) if texts == ["columns"] else texts), columns)

    def _columns(self, X: Any, *, reset: bool) -> dict[str, NDArray[Any]]:
        """Return the columns by name: floats, datetime64, or objects where there is text."""
        if hasattr(X, "columns") and not hasattr(X, "column_names"):  # pandas, polars; an Arrow table is an array
            validate_data(self, X, reset=reset, skip_check_array=True)
            if 0 in X.shape:
                raise ValueError(
                    f"X must have rows and columns, got {X.shape[0]} sample(s) and {X.shape[1]} feature(s)"
                )
            arrays = [np.asarray(X[name]) for name in X.columns]
            names = [str(name) for name in X.columns]
        else:
            X = validate_data(self, X, reset=reset, dtype="numeric")
            arrays, names = list(X.T), [f"x{j}" for j in range(X.shape[1])]
        return {name: _plain(values) for name, values in zip(names, arrays, strict=True)}

    def _matrix(self, read: dict[str, NDArray[Any]]) -> TermMatrix:
        """Return the terms of columns that are as those of `fit` were."""
        numbers: dict[str, FloatArray] = {}
        levels: dict[str, Levels] = {}
        for name in dict.fromkeys(name for term in self.terms_ for name in term.columns()):
            values = read[name]
            if name in self._levels:
                levels[name] = _coded(name, values, self._levels[name])
                continue
            if values.dtype.kind != ("M" if name in self._dates else "f"):
                raise ValueError(f"column {shown(name)} must hold {'dates' if name in self._dates else 'numbers'}")
            numbers[name] = _days(values) if name in self._dates else values
            finite = np.isfinite(numbers[name])
            if not finite.all():
                raise ValueError(f"column {shown(name)} has NaN or infinity in row {int(np.argmin(finite))}")
        # Terms of numbers alone need to know how many rows there are.
        columns = Columns(numbers or {"": np.zeros(len(next(iter(read.values()))))}, levels, self._dates)
        TermMatrix(columns, [term for term in self.terms_ if not term.needs_order]).check()
        return TermMatrix(columns, self.terms_)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats, datetime64 or objects."""
    kind = values.dtype.kind
    if kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers")
    if kind in "biuf":
        return values.astype(np.float64, copy=False)
    if kind == "M":
        return values
    values = values.astype(object)
    if all(isinstance(value, date) for value in values):
        return values.astype("datetime64[us]")
    if any(isinstance(value, str) for value in values):
        return values
    try:
        return values.astype(np.float64)  # Decimal, whole numbers of any size, None as NaN
    except (TypeError, ValueError):
        return values


def _days(values: NDArray[Any]) -> FloatArray:
    """Return days since 1970-01-01; NaN where a date is missing."""
    return np.asarray((values - np.datetime64(0, "D").astype(values.dtype)) / _DAY)


def _levels(values: NDArray[np.object_]) -> Levels:
    texts = values.astype(str)
    names, codes, counts = np.unique(texts, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return Levels(np.argsort(order)[codes].astype(np.int32), tuple(names[order].tolist()))


def _is_missing(value: object) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _coded(name: str, values: NDArray[Any], known: tuple[str, ...]) -> Levels:
    """Return the places of known levels, -1 for others."""
    empty = np.array([_is_missing(value) for value in values.astype(object)], dtype=bool)
    if empty.any():
        raise ValueError(f"column {shown(name)} has no value (NaN or None) in row {int(np.argmax(empty))}")
    texts, inverse = np.unique(values.astype(object).astype(str), return_inverse=True)
    place = {text: code for code, text in enumerate(known)}
    codes = np.array([place.get(text, -1) for text in texts], dtype=np.int32)[inverse]
    strange = codes < 0
    if strange.any():
        example = shown(str(values[int(np.argmax(strange))]))
        n = int(np.count_nonzero(strange))
        warnings.warn(
            f"column {shown(name)} has levels such as {example} in {n:,} {'row' if n == 1 else 'rows'} that were not "
            "there in fit: terms of this category are 0 there",
            UserWarning,
            stacklevel=2,
        )
    return Levels(codes, known)
