"""What the estimators share: scikit-learn's conventions around one call of the driver.

Rows, labels and seeds are checked once, here, and errors name the column.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from mmap import mmap
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from massart.certificate import PLAIN, Assumption, Certificate, Verdict
from massart.estimators.fitted import Fitted, Origin, masks_of, origin_of, take_names, target_names, wrong_table
from massart.estimators.inference import Explain, Inference, Weigh
from massart.recover import Recovery, recover
from massart.report import called_wrong
from massart.rows import (
    AGREES,
    LAST_PLACE,
    Rows,
    is_elsewhere,
    is_on_host,
    like,
    matrix_of,
    namespace_of,
    place_of,
    row_blocks,
    rows_of,
    times,
    to_numpy,
)
from massart.rules import column, compose

# The rows find NaN and infinity where they read them anyway, and name the place.
CHECKS_OF_X = {"accept_sparse": "csr", "ensure_all_finite": False, "dtype": None}
CHECKS_OF_Y = {"ensure_2d": False, "ensure_all_finite": False, "dtype": None}

_SEED_WORDS = 4
_COLUMN = re.compile(r"X .*column (\d+)")


class Recoverer(MultiOutputMixin, RegressorMixin, Fitted):  # type: ignore[misc]
    """A regressor that asks the driver for a formula; its parameters and attributes are those of its children."""

    fit_intercept: bool
    tolerance: float | Literal["auto"]
    inliers: Literal["auto", "exact", "noisy"]
    random_state: int | np.random.RandomState | None

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
            A row of weight c counts c times; one of weight 0 not at all. Weights that are less than one on average are
            shares: they are scaled to one.

        Raises
        ------
        ValueError
            Naming the argument that is wrong and, where there is one, the row and the column.
        """
        origin, labels = origin_of(X, y), y
        if is_elsewhere(X):
            take_names(self, X)
        else:
            check_here(y, "y")
            X, y = validate_data(self, X, y, validate_separately=(CHECKS_OF_X, CHECKS_OF_Y))
            X = numbers_of(X, getattr(self, "feature_names_in_", None))
        with columns_named(getattr(self, "feature_names_in_", None)):
            rows = rows_of(X, y, sample_weight, intercept=self.fit_intercept)
            found = recover(
                rows,
                tolerance=self.tolerance,
                inliers=self.inliers,
                rng=generator_of(self.random_state),
                link=self._link(),
                assumption=self._assumption(),
            )
        self._targets = target_names(labels, rows.n_outputs)
        self._keep(found, rows, one_output=np.ndim(y) == 1)
        self._keep_wrong_rows(X, y, origin)
        _warn_of_doubt(found.certificates, self._names)
        return self

    def _assumption(self) -> Assumption:
        """Return what CONFIRMED assumes."""
        return PLAIN

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
        """Return R² of the predictions; of rows elsewhere, only labels are copied to the host."""
        if not is_elsewhere(X):
            return float(super().score(X, y, sample_weight))
        weights = None if sample_weight is None else to_numpy(sample_weight)
        return float(r2_score(to_numpy(y), to_numpy(self.predict(X)), sample_weight=weights))

    def _keep(self, found: Recovery, rows: Rows, one_output: bool) -> None:
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
        self.inlier_mask_ = masks_of(found.marks, AGREES, one_output)
        self.noise_rate_, self.scale_ = each(found.noise_rate), each(found.scale)
        self.certificate_ = each(found.certificates)
        self.last_place_mask_ = masks_of(found.marks, LAST_PLACE, one_output)
        answers, weighed, explained = [], [], []
        columns, link = [column(name) for name in self._names], self._link()
        row_weights = [] if rows.weights is None else [rows.weights]
        for j, (target, certificate) in enumerate(zip(self._targets, found.certificates, strict=True)):
            coef, weights, r2 = found.coef[:, j], None, 1.0 if certificate.verdict.stands else np.nan
            if certificate.scale:
                weights = rows.map(Weigh(coef, certificate.scale, link, j))
                r2 = rows.reduce(Explain(coef, link, j), weights).r2(intercept=self.fit_intercept)
            formula = compose(target, columns, coef, found.fractions[j], found.standard_errors[:, j], certificate, link)
            freedom = int(found.marks[j].reduce(_agreeing, *row_weights)) - certificate.rank
            answers.append(Inference(formula, certificate, found.covariances[j], freedom))
            weighed.append(None if weights is None else weights.native())
            explained.append(r2)
        self._answers, self._weights = tuple(answers), tuple(weighed)
        self.formula_ = each(tuple(str(answer.formula) for answer in answers))
        self.robust_r2_ = each(np.array(explained))
        self.degrees_of_freedom_ = each(np.array([answer.degrees_of_freedom for answer in answers]))

    def _keep_wrong_rows(self, X: Any, y: Any, origin: Origin) -> None:
        """Keep the wrong rows with what the formula gives for them, if the rows are in memory."""
        self._wrong_rows, self._apart = None, None
        if is_elsewhere(X) or isinstance(getattr(X, "base", None), np.memmap | mmap):
            return
        self._apart = tuple(self._rows_apart(X, j) for j in range(len(self._answers)))
        found = []
        for j, answer in enumerate(self._answers):
            formula, certificate = answer.formula, answer.certificate
            agree, last_place = (self._of_output(mask, j) for mask in (self.inlier_mask_, self.last_place_mask_))
            wrong = np.flatnonzero(called_wrong(certificate, agree, last_place, self._apart[j]))
            given = np.asarray(self._of_output(y, j)[wrong], dtype=np.float64)
            parts = [formula.predict(_picked(X, wrong[block])) for block in row_blocks(len(wrong), X.shape[1])]
            implied = np.concatenate(parts) if parts else np.empty(0)
            found.append(partial(wrong_table, wrong, given, implied, origin.of(wrong), certificate.agreement.places))
        self._wrong_rows = tuple(found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _picked(X: Any, rows: NDArray[np.intp]) -> Any:
    # Twice as fast for arrays that lie row by row; of others, take would copy the whole.
    return X.take(rows, axis=0) if isinstance(X, np.ndarray) and X.flags.c_contiguous else X[rows]


def _agreeing(marks: Any, weights: Any = None) -> int:
    """Return the number of rows that follow a formula and have weight."""
    agree = marks & AGREES > 0
    return int(namespace_of(marks).count_nonzero(agree if weights is None else agree & (weights > 0)))


def _warn_of_doubt(certificates: Sequence[Certificate], names: Sequence[str]) -> None:
    for j, certificate in enumerate(certificates):
        in_doubt = certificate.verdict in (Verdict.PLURALITY, Verdict.NONE)
        if in_doubt or certificate.undetermined_columns:
            output = f" (output {j})" if len(certificates) > 1 else ""
            # The reason for a warning is what the rows leave open, not a good verdict.
            reason = certificate.verdict.name if in_doubt else "The rows do not determine every coefficient"
            message = f"{reason}{output}: {certificate.explain(names)}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)


def check_here(y: Any, name: str) -> None:
    """Raise ValueError if labels are on a device, and the rows are not."""
    if is_elsewhere(y) and not is_on_host(y):
        raise ValueError(f"{name} must be of numpy or where X is: X is on the host, and {name} of {place_of(y)}")


@contextmanager
def columns_named(names: Sequence[str] | None) -> Iterator[None]:
    """Add the names of columns to errors that know their numbers only."""
    try:
        yield
    except ValueError as error:
        found = _COLUMN.match(str(error))
        if names is None or found is None or int(found[1]) >= len(names):
            raise
        raise ValueError(f"{found[0]} ({names[int(found[1])]}){str(error)[found.end() :]}") from None


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
