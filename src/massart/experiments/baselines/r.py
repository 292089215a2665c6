"""R's robust regressions, by one Rscript process a table.

Rows and labels go through a file of doubles, coefficients come back through another: no bindings between the two
languages are needed, and none of their versions matter. Starting R and loading a package takes about half a second,
which the time of a figure's fit includes, and that of `fit` does not.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from massart.rows import FloatArray

SECONDS = 600.0
"""After which a fit has no answer."""


def coefficients(method: str, X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the coefficients of a method of peers.R, which says what it is."""
    return fit(method, X, y, rng)[0]


def fit(method: str, X: FloatArray, y: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """Return the coefficients of a method of peers.R, and the processor's seconds without the start of R."""
    n, d = X.shape
    nothing = np.full(d, np.nan), np.nan
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "table"), Path(folder, "coefficients")
        source.write_bytes(X.tobytes(order="F") + y.tobytes())
        script = Path(__file__).with_name("peers.R")
        seed = int(rng.integers(2**31))
        command = ["Rscript", "--vanilla", str(script), method, str(source), str(target), str(n), str(d), str(seed)]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return nothing
        if done.returncode or not target.exists():
            return nothing
        *coef, seconds = np.fromfile(target)
        return np.array(coef), float(seconds)
