"""A method to compare with: a function of rows and labels, and what it needs.

Every method answers the same question, ``fit(X, y, rng) -> w``, and answers NaN where it fails: a library that raises
on an exact fit must not end an experiment of thousands of tables. Misuse (no rows, infinite values) still raises.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from massart.rows import FloatArray, check_matrix, check_vector

Fit = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]

R_PREFIX = "R: "
"""What `Baseline.requires` starts with where an R package is meant."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A method as figures compare it."""

    method: Fit
    requires: str | None = None  # a module that need not be installed, or "R: " and a package

    def missing(self, name: str) -> str:
        """Return one line that says what to install for a method of this name; empty where nothing is missing."""
        return missing_line(name, self.requires)

    def fit(self, X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the coefficients, NaN where the method has no answer; without its warnings."""
        rows = check_matrix(X)
        labels = check_vector(y, len(rows), "y")
        nothing = np.full(rows.shape[1], np.nan)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                coef = np.asarray(self.method(rows, labels, rng), dtype=np.float64)
            except (ValueError, ArithmeticError, np.linalg.LinAlgError):
                return nothing
        return coef if coef.shape == nothing.shape and np.isfinite(coef).all() else nothing


def missing_line(name: str, requires: str | None) -> str:
    """Return one line that says what to install for a method; empty where nothing is missing."""
    if requires is None:
        return ""
    if not requires.startswith(R_PREFIX):
        return "" if importlib.util.find_spec(requires) else f"{name} needs {requires}: pip install {requires}"
    package = requires.removeprefix(R_PREFIX)
    rscript = shutil.which("Rscript")
    if rscript is None:
        return f"{name} needs R: install Rscript, then install.packages('{package}')"
    return "" if _has_r_package(rscript, package) else f"{name} needs an R package: install.packages('{package}')"


@cache
def _has_r_package(rscript: str, package: str) -> bool:
    program = f'quit(status = !requireNamespace("{package}", quietly = TRUE))'
    return subprocess.run([rscript, "--vanilla", "-e", program], capture_output=True, check=False).returncode == 0
