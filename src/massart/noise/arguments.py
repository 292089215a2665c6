"""What counts as an argument of this package: counts, numbers, parameter vectors and generators.

Each check returns the argument in its canonical type or raises one ``ValueError`` that names the parameter and the
value. Ranges of numbers are left to the caller, who knows why they hold.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from massart.rows import FloatArray, check_labels


def check_count(value: object, name: str, least: int) -> int:
    """Return `value` as an integer of at least `least`."""
    if not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def check_number(value: object, name: str) -> float:
    """Return `value` as a finite float."""
    if not isinstance(value, int | float | np.integer | np.floating) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def check_vector(values: ArrayLike, name: str) -> FloatArray:
    """Return a float64 copy of `values`, a finite vector with at least one entry."""
    array = np.asarray(values)
    if array.ndim != 1 or array.shape[0] == 0:
        raise ValueError(f"{name} must be a vector with at least one entry, got shape {array.shape}")
    return check_labels(array, array.shape[0], name).copy()


def check_label_vector(values: ArrayLike, n_rows: int, name: str) -> FloatArray:
    """Return `values` as ``n_rows`` finite, contiguous float64 numbers: one label a row."""
    labels = check_labels(values, n_rows, name)
    if labels.ndim != 1:
        raise ValueError(f"{name} must have shape ({n_rows},), got {labels.shape}")
    return np.ascontiguousarray(labels)


def check_generator(rng: object) -> np.random.Generator:
    """Return `rng` if it is a generator; a bare seed is refused because two calls with it would repeat themselves."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy.random.Generator, got {rng!r}; make one with numpy.random.default_rng")
    return rng
