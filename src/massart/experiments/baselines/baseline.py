"""A method to compare with: its name, where it comes from, and a function of rows and labels.

Every method answers the same question, ``fit(X, y, rng) -> w``, and answers NaN where it fails: a library that raises
on an exact fit must not end an experiment of thousands of tables. Misuse (no rows, infinite values) still raises, and
so does a library that is not installed.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from massart.rows import FloatArray, check_labels, check_matrix

Fit = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]

R_PREFIX = "R: "
"""What `Baseline.requires` starts with where an R package is meant."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A method as figures show it."""

    name: str
    reference: str  # paper or library
    fit: Fit  # (X, y, rng) to coefficients, NaN where there is no answer
    requires: str | None = None  # a module that need not be installed, or "R: " and a package

    def missing(self) -> str | None:
        """Return one line that says what to install; None where nothing is missing."""
        return missing_line(self.name, self.requires)


def missing_line(name: str, requires: str | None) -> str | None:
    """Return one line that says what to install for a method; None where nothing is missing."""
    if requires is None:
        return None
    if not requires.startswith(R_PREFIX):
        found = importlib.util.find_spec(requires) is not None
        return None if found else f"{name} needs {requires}: pip install {requires}"
    package = requires.removeprefix(R_PREFIX)
    rscript = shutil.which("Rscript")
    if rscript is None:
        return f"{name} needs R: install Rscript, then install.packages('{package}')"
    return None if _has_r_package(rscript, package) else f"{name} needs an R package: install.packages('{package}')"


@cache
def _has_r_package(rscript: str, package: str) -> bool:
    program = f'quit(status = !requireNamespace("{package}", quietly = TRUE))'
    return subprocess.run([rscript, "--vanilla", "-e", program], capture_output=True, check=False).returncode == 0


def baseline(name: str, reference: str, method: Fit, requires: str | None = None) -> Baseline:
    """Return the baseline whose `fit` is `method`, with NaN in place of its errors, and no warnings."""
    return Baseline(name, reference, partial(_answer, name, requires, method), requires)


def _answer(
    name: str, requires: str | None, method: Fit, X: FloatArray, y: FloatArray, rng: np.random.Generator
) -> FloatArray:
    absent = missing_line(name, requires)
    if absent is not None:
        raise ModuleNotFoundError(absent)
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    nothing = np.full(rows.shape[1], np.nan)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            coef = np.asarray(method(rows, labels, rng), dtype=np.float64)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return nothing
    return coef if coef.shape == nothing.shape and np.isfinite(coef).all() else nothing
