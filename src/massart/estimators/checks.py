"""What comes in at the door of an estimator: rows, labels and seeds are checked once, and errors name the column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from massart.rows import is_elsewhere
from massart.rows.namespace import is_on_host, place_of

# The rows find NaN and infinity where they read them anyway, and name the place.
CHECKS_OF_X = {"accept_sparse": "csr", "ensure_all_finite": False, "dtype": None}
CHECKS_OF_Y = {"ensure_2d": False, "ensure_all_finite": False, "dtype": None}

_SEED_WORDS = 4
_COLUMN = re.compile(r"X .*column (\d+)")


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
